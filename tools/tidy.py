#!/usr/bin/env python3
"""Checks the house rules that no compiler knows. Runs as a test, and by `./dev check`.

    tools/tidy.py               all rules on the whole tree
    tools/tidy.py --list        the rules and their reasons
    tools/tidy.py --fix-docs    copies code that docs show from the files it is taken from

A rule is a function that yields (line, message). Each has a bad and a good sample in tools/tidy_test.py. Exceptions are
written down in EXEMPT, with a reason; there is no comment that silences a rule.
"""
import argparse
import dataclasses
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIPPED_FOLDERS = {".git", "build", "node_modules", "__pycache__", "target"}

FILE_LINES_MAX = 800
FUNCTION_LINES_MAX = 80

# From the ground up. A folder includes only folders of lower rows; folders of one row never include each other.
LAYERS = [
    {"core"},
    {"domain"},  # the words of the domain: `agent` and `os` speak them too, so they stand one step higher
    {"agent", "os", "net"},
    {"project"},  # what a checkout says, as one snapshot
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

# (rule, path or folder) → why the rule makes no sense there.
EXEMPT = {
    ("*", "bench/peers/"): "other people's ways of doing it, kept to be measured against",
    ("clock", "tests/"): "they drive real processes in real time; unit tests live beside their code, where the rule holds",
    ("clock", "bench/"): "measures real time",
    ("clock", "examples/"): "programs of their own, like those of a user",
    ("clock", "src/driver/warden.cpp"): "a process of its own, one loop around poll(2); there is no executor to ask",
    ("clock", "src/store/store_bench.cpp"): "a program of its own: somebody must look at the clock",
    ("clock", "src/http/http_bench.cpp"): "a program of its own: somebody must look at the clock",
    ("clock", "src/limit/host_bench.cpp"): "a program of its own, with real processes: somebody must look at the clock",
    ("language", "core/include/stint/stop_cord.hpp"): "leaves the public interface",
    ("language", "core/src/stop_cord_test.cpp"): "leaves the public interface",
    ("driver-names", "src/agent/foreign"): "which CLI the file format of another tool belongs to",
    ("driver-names", "src/agent/tool_table"): "the names that other tools' formats have for tools",
    ("driver-names", "src/domain/agent.cpp"): "the names of other tools' file formats",
    ("driver-names", "src/cli/init_templates.cpp"): "a text for people; src/cli/init_test.cpp compares it with the table",
    ("blocking", "tests/"): "drivers of real processes; no reactor to hold up",
    ("blocking", "bench/"): "no reactor to hold up",
    ("blocking", "core/src/spin_mutex.cpp"): "a nap of 50 µs when the holder of a lock was preempted",
    ("blocking", "src/os/"): "the one home of system calls",
    ("blocking", "src/store/sqlite"): "runs on the writer thread",
    ("blocking", "cmake/"): "not code that runs",
    ("blocking-await", "src/fleet/store_location.cpp"): "opens a store before anything else runs on the process's reactor",
    ("blocking-await", "src/cli/store"): "opens, exports and imports a store before anything else runs on the command's reactor",
    ("blocking-await", "src/driver/ward.cpp"): "reaps a child that has just been killed; its pid must not be reused before",
}


@dataclasses.dataclass
class Finding:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}"


def blank(text):
    """As many characters and lines, all of them spaces."""
    return re.sub(r"[^\n]", " ", text)


TOKENS = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)")
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<separator>(?<=[0-9a-fA-F])'(?=[0-9a-fA-F]))
      | (?P<character>'(?:\\.|[^'\\\n])+')""",
    re.S | re.X,
)


def without(text, comments=True, strings=True):
    """The C++ text with comments and the insides of strings blanked; positions stay the same."""

    def replace(match):
        whole = match.group(0)
        if match.group("comment"):
            return blank(whole) if comments else whole
        if match.group("separator"):
            return whole
        return whole[0] + blank(whole[1:-1]) + whole[-1] if strings else whole

    return TOKENS.sub(replace, text)


@dataclasses.dataclass
class Function:
    name: str
    first: int  # line of the opening brace
    last: int


CONTAINER = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b(?![^;{]*\)\s*(?:const|noexcept|override)?\s*$)")
TAIL = re.compile(r"\s*(?:(?:const|noexcept|override|final|mutable|try)\b\s*|&&?\s*)*(?:->[^;{]*|requires\b[^;{]*)?$")
NAME = re.compile(r"([~\w]+)\s*\(")


def opens_body(before):
    """Whether a brace after this text opens the body of a function: a parameter list, then only what may follow one."""
    close = before.rfind(")")
    return close >= 0 and TAIL.match(before, close + 1) is not None


def functions(code):
    """The outermost functions (a lambda belongs to the one around it), by counting braces."""
    found, stack, head = [], [], 0
    line = 1
    for position, character in enumerate(code):
        if character == "\n":
            line += 1
        elif character == "{":
            if stack and stack[-1][0] in ("function", "inner"):
                stack.append(("inner", None))
                continue
            before = code[head:position].strip()
            in_initializers = re.search(r"\)\s*(?:noexcept\s*)?:[^:]", before)
            if in_initializers and re.search(r"[\w>]$", before) and not opens_body(before):
                stack.append(("value", None))  # `: member_{1}` of a constructor
            elif opens_body(before) or (in_initializers and before.endswith(("}", ")"))):
                declarator = before[: in_initializers.start() + 1] if in_initializers else before
                names = NAME.findall(re.sub(r"<[^<>()]*>", "", declarator))
                stack.append(("function", Function(names[0] if names else "?", line, line)))
            elif CONTAINER.search(before):
                stack.append(("container", None))
                head = position + 1
            else:
                stack.append(("value", None))
        elif character == "}" and stack:
            kind, function = stack.pop()
            if kind == "function":
                function.last = line
                found.append(function)
            if kind in ("function", "container"):
                head = position + 1
        elif character == ";" and not (stack and stack[-1][0] in ("function", "inner", "value")):
            head = position + 1
    return found


CONTROL = {"if", "for", "while", "switch", "catch", "constexpr"}


def word_before_parameters(before):
    """The word before the last parameter list of this text; empty before a lambda's; None: it has no whole list."""
    depth = 0
    for position in range(before.rfind(")"), -1, -1):
        depth += {")": 1, "(": -1}.get(before[position], 0)
        if depth == 0:
            return re.search(r"\w*$", before[:position].rstrip()).group(0)
    return None


def bodies(code):
    """(begin, end) of the bodies of all functions and lambdas, nested ones too; an inner body comes before its outer."""
    found, stack, head = [], [], 0
    for position, character in enumerate(code):
        if character == "{":
            before = code[head:position].rstrip()
            word = word_before_parameters(before) if opens_body(before) else None
            stack.append(position if before.endswith("]") or (word is not None and word not in CONTROL) else None)
        elif character == "}" and stack:
            begin = stack.pop()
            if begin is not None:
                found.append((begin, position))
        if character in ";{}":
            head = position + 1
    return found


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


# ---- layers and texts ------------------------------------------------------------------------------------------------


@rule("layer", "a folder includes only folders below it, and stages never each other: one can be read without the rest")
def layers(file):
    if not file.is_cpp or file.layer is None:
        return
    if file.layer not in RANK:
        yield 1, f"src/{file.layer} has no place among the layers: give it one in LAYERS"
        return
    for line, match in file.matches(r'^\s*#\s*include\s*"([^"]+)"', file.code_and_strings):
        included = match.group(1)
        if ".." in included.split("/"):
            yield line, f'"{included}": include from the layer\'s root, not by ".."'
            continue
        folder = included.split("/")[0] if "/" in included else file.layer
        folder = "core" if folder == "stint" else folder
        if folder == file.layer or folder not in RANK:
            continue
        if RANK[folder] == RANK[file.layer]:
            yield line, f"{file.layer}/ and {folder}/ stand side by side and must not include each other"
        elif RANK[folder] > RANK[file.layer]:
            yield line, f"{file.layer}/ stands below {folder}/ and must not include it"


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


@rule("json-names", "the names of our JSON exist once, in src/wire; a foreign protocol's in its dialect file")
def json_names(file):
    if not file.is_cpp or file.layer in (None, "core", "wire", "driver", "provider", "tape") or file.is_unit_test:
        return
    if not re.search(r"\bjson::", file.code):
        return
    for line, match in file.matches(r'(?:\[\s*|\.(?:at|find|if_contains|contains)\(\s*|\{\s*)"([a-z][a-z0-9_]*)"\s*[\]),]', file.code_and_strings):
        yield line, f'the JSON name "{match.group(1)}" belongs in src/wire'


@rule("http-status", "how a failure looks from outside is decided in src/http alone")
def http_status(file):
    if not file.is_cpp or file.layer in (None, "core", "http", "driver", "provider"):
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


# ---- size and names --------------------------------------------------------------------------------------------------


@rule("size", "a file is read in one sitting, a function on one screen or two")
def size(file):
    if not file.is_cpp:
        return
    lines = file.text.count("\n")
    if lines > FILE_LINES_MAX:
        yield FILE_LINES_MAX, f"{lines} lines; at most {FILE_LINES_MAX}"
    for function in file.functions:
        length = function.last - function.first + 1
        if length > FUNCTION_LINES_MAX:
            yield function.first, f"{function.name} has {length} lines; at most {FUNCTION_LINES_MAX}"


@rule("names", "a coroutine is named by the verb alone: what it returns already says that it is one")
def names(file):
    if not file.is_cpp:
        return
    for line, match in file.matches(r"\bTask<[^;{}()=]*>\s+(?:\w+::)*(async_\w+|co_\w+|\w+_(?:async|coro))\s*\("):
        yield line, f"{match.group(1)}: name the coroutine by its verb alone"


@rule("todo", "what is not built is an issue, not a note in the code")
def todo(file):
    if file.path.startswith("tools/tidy"):
        return
    if file.is_cpp or file.path.endswith((".py", ".cmake", ".txt", ".ts", ".tsx")) or file.path == "dev":
        for line, match in file.matches(r"\b(TODO|FIXME|XXX)\b", file.text):
            yield line, f"{match.group(1)}: do it, or open an issue"


# Folders and files whose language has been rewritten: the old register must not come back. Add one when it is done.
PLAIN_LANGUAGE = ("core/", "examples/", "docs/library.md", "docs/learn.md")
# Also inside identifiers, such as the names of tests.
OLD_REGISTER = r"(?i)(?<![a-z])(whoever|whomever|somebody|nobody|anybody|everybody|in[ _]vain|lets?[ _]go[ _]of)(?![a-z])"


@rule("language", "plain technical English: the subject of a sentence is the thing that acts, not an unnamed person")
def language(file):
    if not file.path.startswith(PLAIN_LANGUAGE) or not (file.is_cpp or file.path.endswith((".md", ".py", ".txt"))):
        return
    for line, match in file.matches(OLD_REGISTER, file.text):
        yield line, f"{match.group(1)}: name what acts (the waiter, the caller, the thread), or say that there is none"


# ---- concurrency -----------------------------------------------------------------------------------------------------

# `co_await sleep_for(…)` is ours and suspends; the standard library's sleeps the thread.
SLEEPS = r"\bthis_thread::sleep_(?:for|until)\b|\busing\s+namespace\s+std::this_thread\b|\b(?:usleep|nanosleep|clock_nanosleep)\s*\(|(?<![\w.>:])(?:::)?sleep\s*\(\s*\d"
BLOCKING = SLEEPS + r"|\bsqlite3_\w+\s*\(|\bgetaddrinfo\s*\(|\bgethostby\w+\s*\(|\bwaitpid\s*\(|\bpopen\s*\(|\bstd::system\s*\("


@rule("blocking", "a blocking call on a reactor thread holds up every coroutine of the process")
def blocking(file):
    if not file.is_cpp or file.is_unit_test:
        return
    for line, match in file.matches(BLOCKING):
        around = [f for f in file.functions if f.first <= line <= f.last]
        if not any(f.name.startswith("blocking_") for f in around):
            yield line, f"{match.group(0).strip(' (')} blocks: only in src/os, or in a function named blocking_… that runs in the blocking pool"


@rule("blocking-await", "a coroutine runs on a reactor thread: what blocks there holds up every other one")
def blocking_in_coroutine(file):
    if not file.is_cpp or file.layer in (None, "core") or file.is_unit_test:
        return
    all_bodies = None
    for match in re.finditer(r"\bblocking_\w+\s*\(", file.code):
        all_bodies = bodies(file.code) if all_bodies is None else all_bodies
        around = [body for body in all_bodies if body[0] < match.start() < body[1]]
        if not around:
            continue
        own = file.code[slice(*around[0])]  # the innermost; what the lambdas in it do is not its own
        for begin, end in all_bodies:
            if around[0][0] < begin and end < around[0][1]:
                own = own[: begin - around[0][0]] + " " * (end - begin) + own[end - around[0][0] :]
        if re.search(r"\bco_(?:await|return|yield)\b|\bSTINT_CO_\w+", own):
            yield file.line_of(match.start()), f"{match.group(0).rstrip(' (')} in a coroutine: co_await offload(pool, …) around it"


@rule("test-sleep", "a test that sleeps is slow on a good day and fails on a bad one: advance virtual time, or wait on a signal")
def test_sleep(file):
    if not file.is_unit_test:
        return
    for line, match in file.matches(SLEEPS):
        yield line, f"{match.group(0).strip(' (')} in a unit test"


@rule("unread-check", "rc::check returns whether the property held and fails no test: a result that nobody reads can't go red")
def unread_check(file):
    if not file.is_cpp:
        return
    for line, _ in file.matches(r"(?m)^[ \t]*rc::check\s*\("):
        yield line, "rc::check whose result is dropped: EXPECT_TRUE(rc::check(…))"


@rule("asio-coroutines", "one coroutine type, one way to cancel; Asio 1.26's own lose errors and use freed memory across executors")
def asio_coroutines(file):
    if not file.is_cpp:
        return
    for line, match in file.matches(r"\bco_spawn\b|\basio::awaitable\b|\bawaitable<|\buse_awaitable\b|\basio::detached\b|\bdetached_t\b|\bawaitable_operators\b"):
        yield line, f"{match.group(0)}: await Asio through stint/asio.hpp, spawn into a Scope"


@rule("std-waiting", "in this libstdc++ they lose wake-ups: 32 threads on a counting_semaphore hang")
def std_waiting(file):
    if not file.is_cpp:
        return
    banned = r"\b(?:counting_semaphore|binary_semaphore)\b|\bstd::(?:latch|barrier|atomic_wait|atomic_notify\w*)\b|#\s*include\s*<(?:semaphore|latch|barrier)>"
    for line, match in file.matches(banned):
        yield line, f"{match.group(0)}: use a mutex and a condition variable"
    atomics = set(re.findall(r"\batomic(?:_\w+|<[^;=]*>)\s+(\w+)\s*[;={(]", file.code))
    for line, match in file.matches(r"\b(\w+)\s*(?:\.|->)\s*(wait|notify_one|notify_all)\s*\("):
        if match.group(1) in atomics:
            yield line, f"{match.group(1)}.{match.group(2)} waits on an atomic: use a mutex and a condition variable"


@rule("print", "fmt::print throws where nothing can be written, and a full disk or a closed terminal must crash no command")
def printing(file):
    if not file.is_cpp or not file.path.startswith("src/") or file.is_unit_test or file.path.endswith("_bench.cpp"):
        return
    for line, match in file.matches(r"\bfmt::print(?:ln)?\s*\(|\bstd::print(?:ln)?\s*\("):
        yield line, f"{match.group(0).rstrip('( ')}: print by cli/print.hpp"


@rule("clock", "time and chance are injected, or nothing can be simulated and replayed")
def clock(file):
    if not file.is_cpp or file.layer in ("core", "app"):
        return
    pattern = r"\b(?:\w*[cC]lock::now|gettimeofday|clock_gettime|std::time|std::random_device|random_device|s?rand)\b\s*[({;\s]"
    for line, match in file.matches(pattern):
        yield line, f"{match.group(0).strip(' ({;')}: take the clock or the random source as an argument"


# ---- build -----------------------------------------------------------------------------------------------------------


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


# ---- docs ------------------------------------------------------------------------------------------------------------

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


# ---- the program -----------------------------------------------------------------------------------------------------


def exempt(name, path):
    return any(key in (name, "*") and path.startswith(prefix) for key, prefix in EXEMPT)


def check(tree, only=None):
    findings = []
    for file in tree.files:
        for name, (function, _) in RULES.items():
            if (only is None or name in only) and not exempt(name, file.path):
                findings += [Finding(file.path, line, name, message) for line, message in function(file)]
    return findings


def main(arguments):
    parser = argparse.ArgumentParser(description="Checks the house rules that no compiler knows.")
    parser.add_argument("--list", action="store_true", help="print the rules and their reasons")
    parser.add_argument("--fix-docs", action="store_true", help="copy the code shown in docs from the files it is taken from")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.list:
        for name, (_, reason) in RULES.items():
            print(f"{name:16} {reason}")
        return 0
    tree = Tree.at(options.root)
    if options.fix_docs:
        for file in tree.files:
            if file.is_markdown and fixed_docs(file) != file.text:
                (options.root / file.path).write_text(fixed_docs(file), encoding="utf-8")
                print(f"tidy: refreshed the code in {file.path}")
        return 0
    findings = check(tree)
    for finding in findings:
        print(finding)
    print(f"tidy: {len(tree.files)} files, {len(RULES)} rules, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
