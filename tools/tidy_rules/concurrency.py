"""What holds up a thread, what waits in an unsafe way, and where time comes from."""
import re

from tidy_rules.cpp import bodies
from tidy_rules.tree import rule

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


CALLS_BLOCKING = r"\bblocking_\w+\s*\("
COROUTINE = r"\bco_(?:await|return|yield)\b|\bSTINT_CO_\w+"


def blocking_calls(file):
    """(match, bodies around it, innermost first, whether that is a coroutine's) of the calls outside of tests."""
    if not file.is_cpp or file.layer in (None, "core") or file.is_unit_test:
        return
    all_bodies = None
    for match in re.finditer(CALLS_BLOCKING, file.code):
        all_bodies = bodies(file.code) if all_bodies is None else all_bodies
        around = [body for body in all_bodies if body[0] < match.start() < body[1]]
        if not around:
            continue
        own = file.code[slice(*around[0])]  # the innermost; what the lambdas in it do is not its own
        for begin, end in all_bodies:
            if around[0][0] < begin and end < around[0][1]:
                own = own[: begin - around[0][0]] + " " * (end - begin) + own[end - around[0][0] :]
        yield match, around, re.search(COROUTINE, own) is not None


@rule("blocking-await", "a coroutine runs on a reactor thread: what blocks there holds up every other one")
def blocking_in_coroutine(file):
    for match, _, in_coroutine in blocking_calls(file):
        if in_coroutine:
            yield file.line_of(match.start()), f"{match.group(0).rstrip(' (')} in a coroutine: co_await offload(pool, …) around it"


# The bodies of commands: on the main thread, before and after its reactor runs.
COMMANDS = {"run", "run_command_line", "run_on_fleet"}
LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(?:\((?:[^()]|\([^()]*\))*\))?[^;{}()]*$")
ELSEWHERE = re.compile(r"(?:\boffload\s*\([^;{}]*,|\bblocking_\w+\s*=|\bthread\w*\s*\()\s*$")


def runs_elsewhere(code, begin):
    """Whether the body is that of a lambda for the blocking pool or a thread, or of one that has a blocking name."""
    before = code[max(code.rfind(mark, 0, begin) for mark in ";{}") + 1 : begin]
    captures = LAMBDA.search(before)
    return captures is not None and ELSEWHERE.search(before[: captures.start()]) is not None


@rule("blocking-name", "blocking-await sees direct calls only: what blocks through another function must say so by its name")
def blocking_name(file):
    for match, around, in_coroutine in blocking_calls(file):
        if in_coroutine or any(runs_elsewhere(file.code, begin) for begin, _ in around):
            continue
        line = file.line_of(match.start())
        names = [f.name for f in file.functions if f.first <= line <= f.last]
        if not names or names[0] == "main" or names[0].startswith("blocking_"):
            continue
        if file.layer not in ("app", "cli") or names[0] not in COMMANDS:
            yield line, f"{names[0]} calls {match.group(0).rstrip(' (')}: name it blocking_… as well, or call that in offload(pool, …)"


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
