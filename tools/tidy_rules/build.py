"""What the CMakeLists.txt files must say."""
import pathlib
import re

from tidy_rules.layers import RANK, included_layer
from tidy_rules.tree import rule


@rule("listed", "nothing is globbed, so a file that no CMakeLists.txt names is a test that never runs")
def listed(file):
    is_header = file.path.startswith("core/include/")
    if not (file.path.endswith(".cpp") or is_header) or file.path.startswith("cmake/"):
        return
    folder = pathlib.PurePosixPath(file.path).parent
    for parent in (folder, *folder.parents):
        relative = str(pathlib.PurePosixPath(file.path).relative_to(parent))
        lists = re.sub(r"#[^\n]*", "", file.tree.texts.get(str(parent / "CMakeLists.txt"), ""))
        by_name = rf"\bstint_example\(\s*{re.escape(relative.removesuffix('.cpp'))}(?![\w./])"  # its source is name.cpp
        if re.search(rf"(?<![\w./]){re.escape(relative)}(?![\w./])", lists) or re.search(by_name, lists):
            return
    yield 1, "no CMakeLists.txt names this file"


KEYWORDS = {"SOURCES", "ASIO_SOURCES", "TESTS", "BENCHES", "DEPENDS", "APART", "TOGETHER", "PARTS", "LABELS"}


def lists_of(call):
    """keyword → words of the arguments of stint_layer, or of stint_executable and target_link_libraries."""
    found, keyword = {}, None
    for word in call.split():
        if word in KEYWORDS:
            keyword = word
        else:
            found.setdefault(keyword, []).append(word)
    return found


def layer_of(text):
    """(position, sources, tests, layers it says it depends on) of the library or the program of a folder; None: neither."""
    text = re.sub(r"#[^\n]*", lambda match: " " * len(match.group(0)), text)
    layer = re.search(r"\bstint_layer\(\s*\w+([^()]*)\)", text)
    if layer:
        lists = lists_of(re.sub(r"\$\{\w+\}", "", layer.group(1)))
        words, position = lists.get("DEPENDS", []), layer.start() + layer.group(0).find("DEPENDS")
        sources, tests = lists.get("SOURCES", []) + lists.get("ASIO_SOURCES", []), lists.get("TESTS", []) + lists.get("BENCHES", [])
    else:
        program = re.search(r"\b(?:add_executable|stint_executable)\(\s*(\w+)([^()]*)\)", text)
        links = program and re.search(rf"\btarget_link_libraries\(\s*{program.group(1)}\b([^()]*)\)", text)
        if not links:
            return None
        words, position, sources, tests = links.group(1).split(), links.start(), program.group(2).split(), []
    return position, sources, tests, {word.removeprefix("stint::") for word in words if word.startswith("stint::")}


@rule("depends", "a library is linked with the layers that its files include, and with no others: the build shows what uses what")
def depends(file):
    match = re.fullmatch(r"src/(\w+)/CMakeLists\.txt", file.path)
    layer = match and match.group(1) in RANK and layer_of(file.text)
    if not layer:
        return
    position, sources, tests, said = layer
    folder = f"src/{match.group(1)}/"
    included = {}
    for other in file.tree.files:
        name = other.path.removeprefix(folder)
        if name == other.path or name.removesuffix(".hpp") + ".cpp" in tests or "_support." in name:
            continue
        if name in sources or name.endswith(".hpp"):
            for line, text in other.includes():
                included.setdefault(included_layer(text, match.group(1)), f"{other.path}:{line}")
    included.pop(match.group(1), None)
    included.pop(None, None)
    for missing in sorted(set(included) - said):
        yield file.line_of(position), f"stint::{missing} is missing: {included[missing]} includes it"
    for unused in sorted(said - set(included)):
        yield file.line_of(position), f"stint::{unused} is not included by a source or a header"
