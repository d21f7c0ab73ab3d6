"""Which folder may include which, and which text belongs in which folder."""
import re

from tidy_rules.cpp import TOKENS, blank, without
from tidy_rules.tree import rule

# From the ground up. A folder includes only folders of lower rows; folders of one row never include each other.
LAYERS = [
    {"core"},
    {"domain"},  # the words of the domain: `agent` and `os` speak them too, so they stand one step higher
    {"agent", "os", "net", "playground"},  # the playground stands on the library alone
    {"project", "model"},  # what a checkout says, as one snapshot; calls of models
    {"queue", "limit", "driver", "store", "events"},  # the stages
    {"pool"},
    {"engine", "tape"},
    {"wire"},  # the shapes of what the engine tells
    {"fleet"},  # the fleet as commands and the loop see it: an engine here, or a daemon over HTTP
    {"provider"},  # simulated; `stint provider` and the demos stand on it
    {"http", "cli", "loop"},
    {"app"},
]
RANK = {folder: rank for rank, row in enumerate(LAYERS) for folder in row}


def included_layer(included, own):
    """The layer of a path in an include; None: not one of ours."""
    folder = included.split("/")[0] if "/" in included else own
    folder = "core" if folder == "stint" else folder
    return folder if folder in RANK else None


@rule("layer", "a folder includes only folders below it, and stages never each other: one can be read without the rest")
def layers(file):
    if not file.is_cpp or file.layer is None:
        return
    if file.layer not in RANK:
        yield 1, f"src/{file.layer} has no place among the layers: give it one in LAYERS"
        return
    for line, included in file.includes():
        if ".." in included.split("/"):
            yield line, f'"{included}": include from the layer\'s root, not by ".."'
            continue
        folder = included_layer(included, file.layer)
        if folder in (None, file.layer):
            continue
        if RANK[folder] == RANK[file.layer]:
            yield line, f"{file.layer}/ and {folder}/ stand side by side and must not include each other"
        elif RANK[folder] > RANK[file.layer]:
            yield line, f"{file.layer}/ stands below {folder}/ and must not include it"


# What an engine is made of. Commands and the loop get it from fleet/, whole.
ASSEMBLED = r"engine/engine\.hpp|driver/process_driver\.hpp|store/\w+_store\.hpp|limit/host_permits\.hpp"


@rule("assembly", "one place makes an engine, a store and their parts, fleet/ or app/: commands and the loop only use them")
def assembly(file):
    if not file.is_cpp or file.layer not in ("cli", "loop") or file.is_unit_test:
        return
    for line, included in file.includes():
        if re.fullmatch(ASSEMBLED, included):
            yield line, f"{included}: let fleet/ make it"


@rule("core-headers", "a file that includes the library's headers compiles in about a second; Boost alone takes two")
def core_headers(file):
    if not file.path.startswith("core/include/") or file.path == "core/include/stint/asio.hpp":
        return
    for line, match in file.matches(r'^\s*#\s*include\s*[<"](boost/[^>"]*|stint/asio\.hpp)', file.code_and_strings):
        yield line, f"{match.group(1)} belongs in stint/asio.hpp or in a .cpp"


@rule("header", "a header says what it is for before anything else")
def header(file):
    if not file.path.endswith(".hpp"):
        return
    if not file.text.lstrip().startswith("///"):
        yield 1, "begin with a paragraph of purpose (///)"
    if "#pragma once" not in file.text:
        yield 1, "#pragma once is missing"


@rule("sql", "SQL is read and tuned in one place, src/store/sql")
def sql(file):
    if not file.is_cpp or file.layer in (None, "core") or file.path.startswith("src/store/sql/") or file.is_unit_test:
        return
    words = r"SELECT\s|INSERT\s+INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s|(?:CREATE|ALTER|DROP)\s+(?:TABLE|INDEX)\s|PRAGMA\s|BEGIN\s+IMMEDIATE"
    for line, _ in file.matches(r'["(\s](?:' + words + ")", strings_only(file)):
        yield line, "SQL text belongs under src/store/sql"


def strings_only(file):
    """Everything but the insides of strings blanked."""
    text = list(blank(file.text))
    for match in TOKENS.finditer(file.text):
        if match.group("string") or match.group("raw"):
            text[match.start() : match.end()] = match.group(0)
    return "".join(text)


# The files of src/model that know a provider's protocol, or the form of a message in the store. Elsewhere in that folder all is neutral.
PROTOCOL_FILES = re.compile(r"src/model/(?:(?:anthropic|chat|gemini|openai|responses)_|message_codec\.)")
JSON_NAME = r'(?:\[\s*|\.(?:at|find|if_contains|contains)\(\s*|\{\s*)"([a-z][a-z0-9_]*)"\s*[\]),]'
READ_NAME = r'_at\([^"()]*,\s*"([a-z]\w*)"\)'  # by the helpers of src/model/json.hpp


@rule("json-names", "the names of our JSON exist once, in src/wire; a foreign protocol's in its dialect file")
def json_names(file):
    if not file.is_cpp or file.layer in (None, "core", "wire", "driver", "provider", "tape") or file.is_unit_test:
        return
    if PROTOCOL_FILES.match(file.path) or not re.search(r"\bjson::", file.code):
        return
    in_model = file.layer == "model"
    home = "in the file of its protocol" if in_model else "in src/wire"
    for line, match in file.matches(f"{JSON_NAME}|{READ_NAME}" if in_model else JSON_NAME, file.code_and_strings):
        yield line, f'the JSON name "{next(filter(None, match.groups()))}" belongs {home}'


@rule("http-status", "how a failure looks from outside is decided in src/http alone")
def http_status(file):
    if not file.is_cpp or file.layer in (None, "core", "http", "driver", "provider") or PROTOCOL_FILES.match(file.path):
        return
    for line, _ in file.matches(r"\bhttp::status::|\bstatus(?:_code)?\w*\s*(?:==|!=|=|\(|\{)\s*[1-5]\d\d\b"):
        yield line, "HTTP status codes of our API belong in src/http"


DRIVER_TABLE = "src/domain/driver_descriptor.hpp"


def driver_names_in(tree):
    """The names in the table of drivers, and those that it reserves."""
    table = without(tree.texts.get(DRIVER_TABLE, ""), strings=False)
    planned = re.search(r"\bkPlannedDrivers\{([^}]*)\}", table)
    return re.findall(r'\.name = "(\w+)"', table) + re.findall(r'"(\w+)"', planned.group(1) if planned else "")


@rule("driver-names", "what depends on a driver is a field of its descriptor: a name in the code is a place that the next driver forgets")
def driver_names(file):
    if not file.is_cpp or file.layer in (None, "core", "driver", "provider") or file.is_unit_test or file.path == DRIVER_TABLE:
        return
    if PROTOCOL_FILES.match(file.path):  # a protocol may have the name of a CLI
        return
    names = driver_names_in(file.tree)
    words = "|".join(name for name in names if name != "command")  # which is also an ordinary word
    for token in TOKENS.finditer(file.text):
        if not (token.group("string") or token.group("raw")):
            continue
        if words and (match := re.search(rf"(?<![\w./@-])(?:{words})(?![\w/-]|\.\w)", token.group(0))):
            yield file.line_of(token.start() + match.start()), f'the driver "{match.group(0)}" belongs in {DRIVER_TABLE}: ask its descriptor'
    for line, match in file.matches(r'\bdriver\w*(?:\(\))?\s*[=!]=\s*"(\w*)"', file.code_and_strings):
        if match.group(1) == "command":
            yield line, f'the driver "command" belongs in {DRIVER_TABLE}: ask its descriptor'
