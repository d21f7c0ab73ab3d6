"""Code and paths in the docs."""
import pathlib
import re

from tidy_rules.cpp import blank
from tidy_rules.layers import RANK
from tidy_rules.tree import rule

FENCE = re.compile(r"^(?P<mark>[ \t]*<!--(?P<kind> from| sketch):\s*(?P<what>[^>]*?)\s*-->\n)?(?P<open>```(?P<language>\w*)[^\n]*\n)(?P<code>.*?)^```[ \t]*$", re.M | re.S)


def region(tree, reference):
    """The lines that `path#tag` names, without the indentation they share. Raises KeyError with the reason."""
    path, _, tag = reference.partition("#")
    if path not in tree.texts:
        raise KeyError(f"there is no {path}")
    text = tree.texts[path]
    if not tag:
        return text
    match = re.search(rf"^[ \t]*// \[{re.escape(tag)}\]\n(.*?)^[ \t]*// \[/{re.escape(tag)}\]", text, re.M | re.S)
    if not match:
        raise KeyError(f"{path} has no lines between // [{tag}] and // [/{tag}]")
    lines = match.group(1).split("\n")
    indentation = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[indentation:] for line in lines)


@rule("docs-code", "code in docs is taken from a file that is compiled, so that it cannot rot")
def docs_code(file):
    if not file.is_markdown:
        return
    for match in FENCE.finditer(file.text):
        line = file.line_of(match.start())
        if match.group("kind") == " from":
            try:
                wanted = region(file.tree, match.group("what"))
            except KeyError as error:
                yield line, error.args[0]
                continue
            if match.group("code") != wanted:
                yield line, f"differs from {match.group('what')}: ./dev format copies it anew"
        elif match.group("language") in ("cpp", "c++", "hpp") and not match.group("what"):
            yield line, "C++ without a source: put <!-- from: path#tag --> before it, or <!-- sketch: why it is not compiled -->"


def fixed_docs(file):
    """The text of a Markdown file with its code taken anew from the files it names."""

    def replace(match):
        if match.group("kind") != " from":
            return match.group(0)
        try:
            wanted = region(file.tree, match.group("what"))
        except KeyError:
            return match.group(0)  # the check will say why
        return match.group("mark") + match.group("open") + wanted + "```"

    return FENCE.sub(replace, file.text)


TOP = ("core", "src", "tests", "bench", "docs", "examples", "tools", "cmake", "web", ".ci")


@rule("docs-paths", "a path in the docs that leads nowhere costs a reader more than no path")
def docs_paths(file):
    if not file.is_markdown:
        return
    prose = re.sub(r"^```.*?^```", lambda match: blank(match.group(0)), file.text, flags=re.M | re.S)
    for line, match in file.matches(r"`([\w.*/-]+)(?:[:#][\w/-]+)?`", prose):
        path = match.group(1)
        first = path.split("/")[0]
        if "NNNN" in path or path.startswith("/") or "/" not in path:
            candidate = path if re.fullmatch(r"(?:README|CHANGELOG|CMakePresets|CMakeLists)\.\w+", path) else None
        elif first in TOP:
            candidate = path
        elif first == "stint" and path.endswith(".hpp"):
            candidate = "core/include/" + path
        elif first in RANK and re.search(r"\.\w+$", path):
            candidate = "src/" + path
        else:
            candidate = None
        if candidate and not file.tree.exists(candidate):
            yield line, f"{path} does not exist"
    folder = pathlib.PurePosixPath(file.path).parent
    for line, match in file.matches(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose):
        target = match.group(1)
        if re.match(r"\w+:", target):
            continue
        parts = []
        for part in (folder / target).parts:
            if part == "..":
                if parts:
                    parts.pop()
            else:
                parts.append(part)
        if not file.tree.exists("/".join(parts)):
            yield line, f"the link to {target} leads nowhere"
