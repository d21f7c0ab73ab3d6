"""The files of the repository, and the registry of rules."""
import functools
import re

from tidy_rules.cpp import blank, functions, without

SKIPPED_FOLDERS = {".git", "build", "node_modules", "__pycache__", "target"}


class File:
    """One file of the tree, with its text seen in the ways that rules need."""

    def __init__(self, path, text, tree):
        self.path, self.text, self.tree = path, text, tree

    @functools.cached_property
    def code(self):
        return without(self.text)

    @functools.cached_property
    def code_and_strings(self):
        return without(self.text, strings=False)

    @functools.cached_property
    def functions(self):
        return functions(re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", lambda match: blank(match.group(0)), self.code, flags=re.M))

    @property
    def is_cpp(self):
        return self.path.endswith((".cpp", ".hpp"))

    @property
    def is_unit_test(self):
        return self.path.endswith("_test.cpp") and self.path.startswith(("core/", "src/"))

    @property
    def is_markdown(self):
        return self.path == "README.md" or (self.path.startswith("docs/") and self.path.endswith(".md"))

    @property
    def layer(self):
        """`core`, the folder under src/, or None for tests, examples and benchmarks, which may use everything."""
        parts = self.path.split("/")
        if parts[0] == "core":
            return "core"
        return parts[1] if parts[0] == "src" and len(parts) > 2 else None

    def includes(self):
        """(line, path) of what it includes in quotes."""
        for line, match in self.matches(r'^\s*#\s*include\s*"([^"]+)"', self.code_and_strings):
            yield line, match.group(1)

    def line_of(self, position):
        return self.text.count("\n", 0, position) + 1

    def matches(self, pattern, text=None):
        """Lines of `text` (the code, if none is given) where the pattern is found, with the match."""
        for match in re.finditer(pattern, self.code if text is None else text, re.M):
            yield self.line_of(match.start()), match


class Tree:
    """All files of the repository, read once."""

    def __init__(self, files):
        self.texts = dict(files)
        self.files = [File(path, text, self) for path, text in sorted(self.texts.items())]

    @classmethod
    def at(cls, root):
        texts = {}
        for path in sorted(root.rglob("*")):
            relative = path.relative_to(root)
            if SKIPPED_FOLDERS & set(relative.parts) or not path.is_file():
                continue
            try:
                texts[str(relative)] = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                texts[str(relative)] = ""  # it exists; there is nothing to read in it
        return cls(texts)

    def exists(self, path):
        """A file, a folder, or a pattern with * that matches one."""
        path = path.rstrip("/")
        if "*" in path:
            pattern = re.compile(re.escape(path).replace(r"\*\*", ".*").replace(r"\*", "[^/]*") + r"(/.*)?$")
            return any(pattern.match(name) for name in self.texts)
        return path in self.texts or any(name.startswith(path + "/") for name in self.texts)


RULES = {}


def rule(name, reason):
    def register(function):
        RULES[name] = (function, reason)
        return function

    return register
