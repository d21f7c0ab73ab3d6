"""The suite `core`: the library of bounded concurrency beside semaphores, tasks and pools of other runtimes.

Floors were measured once with minimal prototypes (another machine: 2 cores at 2.8 GHz); rows
marked as bounds are measured in the same run as everything else. Sizes are those of the targets; `quick` divides them.
"""
import os

from harness import AsyncioPeer, CppPeer, GoPeer, Ours, TokioPeer
from suite import Figure, Group, Row, Target, TargetResult

MILLION = 1_000_000
WAITERS_TO_CANCEL = 100_000
SCALED = ("n", "iters", "jobs")  # parameters that --quick divides
QUICK_MIN = 1000  # the smallest `n` that it leaves
STINT = "stint"


def programs(ours=None):
    return {
        "stint": Ours("core/core_bench", ours),
        "floor": CppPeer("floor.cpp", "floor"),
        "threads": CppPeer("threads.cpp", "threads"),
        "asio": CppPeer("asio_sem.cpp", "asio", boost=True),
        "asio_pool": CppPeer("asio_pool.cpp", "asio pool", boost=True),
        "go": GoPeer(),
        "tokio": TokioPeer(),
        "asyncio": AsyncioPeer(),
    }


def uncontended():
    n = {"n": 5 * MILLION, "reps": 3}
    return Group(
        "sem.uncontended", "sem.uncontended",
        "One task acquires and releases a permit of ten; there are no waiters.",
        {"sem.uncontended": Figure("Uncontended acquire + release", "ns", "15 thread-safe, 4.5 on one thread")},
        [
            Row(STINT, "stint", n),
            Row("stint, holders listed", "stint", n | {"holders": "on"}),
            Row("go x/sync semaphore.Weighted", "go", n | {"impl": "weighted", "threads": 1}),
            Row("go buffered channel", "go", n | {"impl": "chan", "threads": 1}),
            Row("tokio Semaphore", "tokio", n | {"threads": 1}),
            Row("std::mutex + condition_variable", "threads", n | {"impl": "mutex_cv"}),
            Row("asio concurrent_channel", "asio", {"n": MILLION, "impl": "concurrent", "reps": 3}),
            Row("asio channel", "asio", {"n": MILLION, "impl": "channel", "reps": 3}, thread_safe=False),
            Row("asio channel, try_receive", "asio", n | {"impl": "try"}, thread_safe=False),
            Row("asyncio.Semaphore", "asyncio", {"n": 200_000, "reps": 2}, thread_safe=False),
            Row("bound: bare atomic counter", "threads", n | {"impl": "atomic"}, bound=True),
            Row("bound: bare coroutine semaphore", "floor", n, thread_safe=False, bound=True),
            Row("bound: plain counter", "threads", n | {"impl": "plain"}, thread_safe=False, bound=True),
        ])


def contended_one_thread():
    work = {"threads": 1, "tasks": 1000, "iters": 1000, "permits": 10, "reps": 2}
    bare = {"tasks": 1000, "iters": 1000, "permits": 10, "reps": 2}
    return Group(
        "sem.contended.1", "sem.contended",
        "1000 tasks share 10 permits on one thread; a holder yields once to its scheduler. Time per acquire.",
        {"sem.contended": Figure("Contended hand-over, one thread", "ns", "11 (64 tasks, 1 permit, no cancel)")},
        [
            Row(STINT, "stint", work),
            Row("tokio Semaphore", "tokio", work),
            Row("asio channel", "asio", work, thread_safe=False),
            Row("go buffered channel", "go", work | {"impl": "chan"}),
            Row("go x/sync semaphore.Weighted", "go", work | {"impl": "weighted"}),
            Row("asyncio.Semaphore", "asyncio", bare | {"iters": 50, "reps": 1}, thread_safe=False),
            Row("std::mutex + condition_variable, 100 threads on 1 core", "threads",
                {"impl": "mutex_cv", "tasks": 100, "iters": 100, "permits": 10, "cpus": 1, "reps": 2}),
            Row("bound: bare coroutine semaphore", "floor", bare, thread_safe=False, bound=True),
        ])


def contended_two_threads():
    work = {"threads": 2, "tasks": 1000, "iters": 1000, "permits": 10, "reps": 1}
    threads = {"tasks": 100, "iters": 100, "permits": 10, "cpus": 2, "reps": 2}
    return Group(
        "sem.contended.2", "sem.contended",
        "The same on two threads that share the semaphore; ours take turns in its line, so that every hand-over crosses. "
        "Time per acquire.",
        {"sem.contended": Figure("Contended hand-over, two threads", "ns", "241–400 (2 × 8 tasks, 1 permit)")},
        [
            Row(STINT, "stint", work),
            Row("stint, each thread's tasks together in the line", "stint", work | {"order": "blocks"}),
            Row("tokio Semaphore", "tokio", work),
            Row("go buffered channel", "go", work | {"impl": "chan"}),
            Row("go x/sync semaphore.Weighted", "go", work | {"impl": "weighted"}),
            Row("asio concurrent_channel", "asio", work),
            Row("std::mutex + condition_variable, 100 threads on 2 cores", "threads", threads | {"impl": "mutex_cv"}),
            Row("bound: bare atomic counter, spinning", "threads",
                {"impl": "atomic", "tasks": 2, "iters": MILLION, "permits": 10, "cpus": 2, "reps": 2}, bound=True),
        ])


def waiter_memory(timed):
    def size(n, **more):
        return {"n": n, "timed": int(timed)} | more

    rows = [
        Row(STINT, "stint", size(MILLION), gib=1),
        Row("tokio Semaphore" + (" + timeout" if timed else ""), "tokio", size(MILLION, threads=1), gib=2.5),
        Row("asyncio.Semaphore" + (" + timeout" if timed else ""), "asyncio", size(200_000), thread_safe=False, gib=1),
        Row("go x/sync semaphore.Weighted" + (" + context" if timed else ""), "go",
            size(200_000, impl="weighted", threads=2), gib=2),
        Row("std::mutex + condition_variable (a thread each)", "threads", size(10_000), gib=1),
    ]
    if not timed:
        rows[1:1] = [Row("stint, two frames deep", "stint", size(MILLION, frames=2), gib=1)]
        rows += [Row("asio channel", "asio", {"n": MILLION}, thread_safe=False, gib=1.5),
                 Row("bound: bare coroutine semaphore", "floor", {"n": MILLION}, thread_safe=False, bound=True)]
    return Group(
        "sem.waiter_mem.timed" if timed else "sem.waiter_mem", "sem.waiter_mem",
        f"Growth of resident memory per parked waiter, with the task that waits{' and its timeout' if timed else ''}. "
        "A thread's kernel stack is not counted.",
        {"sem.waiter_mem": Figure("Memory per parked waiter" + (", timed" if timed else ""), "bytes",
                                  "128 (coroutine + timer)" if timed else "80, two frames 144")},
        rows)


def cancel():
    n = {"n": WAITERS_TO_CANCEL, "reps": 2}
    return Group(
        "sem.cancel", "sem.cancel",
        "From the first cancel until the last waiter has ended, per waiter. `all`: one call cancels all of them; "
        "otherwise one by one, first come first. A single Asio cancel scans the line, hence 10,000 only.",
        {"sem.cancel": Figure("Cancel parked waiters", "ns", "27")},
        [
            Row(STINT, "stint", n),
            Row("tokio, abort each", "tokio", n | {"order": "fifo", "threads": 1}),
            Row("go, parent context (all)", "go", n | {"impl": "weighted", "order": "all", "threads": 2}, gib=1),
            Row("go, a context each", "go", n | {"impl": "weighted", "order": "fifo", "threads": 2}, gib=1),
            Row("asio channel.cancel (all)", "asio", n | {"order": "all"}, thread_safe=False),
            Row("asio, a signal each, 10,000", "asio", {"n": 10_000, "order": "fifo", "reps": 1}, thread_safe=False),
            Row("asyncio, task.cancel each", "asyncio", {"n": WAITERS_TO_CANCEL, "order": "fifo", "reps": 1},
                thread_safe=False),
            Row("bound: bare coroutine semaphore", "floor", n, thread_safe=False, bound=True),
        ])


def started_and_cancelled(name, command, note, prefix, title, floors, ours, peers):
    start, stop, memory = floors
    return Group(name, command, note, {
        prefix + "start": Figure(f"{title}: start, each", "ns", start),
        prefix + "cancel": Figure(f"{title}: cancel all, each", "ns", stop),
        prefix + "mem": Figure(f"{title}: memory, each", "bytes", memory),
    }, ours + peers)


def scopes():
    return started_and_cancelled(
        "scope.timer", "scope.timer",
        "A scope of its own with a deadline an hour away and one child that waits; then one cancel from above.",
        "scope.timer_", "Scope with a timer",
        ("242–292 (three frames)", "109–115 (three frames)", "320 (three frames)"),
        [Row(STINT, "stint", {"n": MILLION}, gib=1.5),
         Row("stint, with_deadline only", "stint", {"n": MILLION, "kind": "deadline"}, gib=1)],
        [Row("tokio, spawned timeout()", "tokio", {"n": MILLION, "threads": 1}, gib=3),
         Row("asio, timer + signal each", "asio", {"n": MILLION}, thread_safe=False, gib=1.5),
         Row("go, context.WithTimeout each", "go", {"n": 100_000, "threads": 2}, gib=1),
         Row("asyncio.timeout each", "asyncio", {"n": 100_000}, thread_safe=False, gib=0.5)])


def sleepers():
    return started_and_cancelled(
        "sleep", "sleep", "A task that sleeps for an hour; then all are cancelled.", "sleep.", "Sleeper",
        ("88–133", "44–57", "128"),
        [Row(STINT, "stint", {"n": MILLION}, gib=1)],
        [Row("tokio sleep", "tokio", {"n": MILLION, "threads": 1}, gib=3),
         Row("asio timer + signal", "asio", {"n": MILLION}, thread_safe=False, gib=1.5),
         Row("go timer + context", "go", {"n": 100_000, "threads": 2}, gib=1),
         Row("asyncio.sleep", "asyncio", {"n": 100_000}, thread_safe=False)])


def spawn():
    n = {"n": 2 * MILLION, "reps": 2}
    return Group(
        "spawn", "spawn", "Tasks that do nothing, joined by the thousand. Time per task.",
        {"spawn": Figure("Spawn and run to the end", "ns", "25")},
        [
            Row(STINT, "stint", n),
            Row("tokio spawn", "tokio", n | {"threads": 1}),
            Row("go statement", "go", n | {"threads": 1}),
            Row("asio co_spawn", "asio", n, thread_safe=False),
            Row("asyncio.create_task", "asyncio", {"n": 50_000, "reps": 1}, thread_safe=False),
            Row("bound: bare coroutine", "floor", n, thread_safe=False, bound=True),
        ])


def await_child():
    n = {"n": 10 * MILLION, "reps": 2}
    return Group(
        "await_child", "await_child",
        "A task awaits another that returns at once. tokio's child is boxed: awaited in place it would be inlined.",
        {"await_child": Figure("Await a child", "ns", "13")},
        [
            Row(STINT, "stint", n),
            Row("tokio, boxed future", "tokio", n | {"threads": 1}),
            Row("asio awaitable", "asio", n, thread_safe=False),
            Row("asyncio coroutine", "asyncio", {"n": MILLION, "reps": 1}, thread_safe=False),
            Row("bound: bare coroutine", "floor", n, thread_safe=False, bound=True),
        ])


def pool_rows(work, one_rep):
    cores = os.cpu_count()
    return [
        Row(STINT, "stint", work),
        Row("go channel pool, 1 thread", "go", work | {"threads": 1}),
        Row(f"go channel pool, {cores} threads", "go", work | {"threads": cores}),
        Row("tokio mpsc pool, 1 thread", "tokio", work | {"impl": "mpsc", "threads": 1}),
        Row("tokio mpsc pool, 2 threads", "tokio", work | {"impl": "mpsc", "threads": 2}),
        Row("tokio spawn + Semaphore, 1 thread", "tokio", work | {"impl": "spawn", "threads": 1}),
        Row("asio channel pool (no results)", "asio_pool", work, thread_safe=False),
        Row("asyncio queue pool", "asyncio", one_rep, thread_safe=False),
    ]


def pool_throughput():
    work = {"cap": 100, "workers": 10, "jobs": 200_000, "reps": 2}
    return Group(
        "pool.throughput", "pool.throughput",
        "One submitter, a queue of 100, 10 workers, 200,000 jobs that do nothing; every result is collected (Asio's "
        "pool only counts). Latency: from the submit, with its wait for room, until the result is set.",
        {
            "pool.throughput": Figure("Worker pool: jobs per second", "jobs/s", "", higher_is_better=True),
            "pool.latency_p50": Figure("Worker pool when saturated: latency, p50", "us"),
            "pool.latency_p99": Figure("Worker pool when saturated: latency, p99", "us"),
        },
        pool_rows(work, work | {"reps": 1}))


def pool_ping():
    work = {"workers": 10, "jobs": 20_000, "reps": 2}
    return Group(
        "pool.ping", "pool.ping", "One job at a time: submit, await the result.",
        {"pool.ping_p50": Figure("Worker pool, one job at a time: p50", "us"),
         "pool.ping_p99": Figure("Worker pool, one job at a time: p99", "us")},
        pool_rows(work, work))


def groups():
    return [uncontended(), contended_one_thread(), contended_two_threads(), waiter_memory(False), waiter_memory(True),
            cancel(), scopes(), sleepers(), spawn(), await_child(), pool_throughput(), pool_ping()]


def at_most(group, bench, limit, unit, factor=1.0, below=False, rounding=0.0):
    """A figure of ours, times `factor`, against a fixed limit. `rounding` allows for the rounding to whole pages."""
    def judge(results):
        value = results.median(group, STINT, bench)
        if value is None:
            return None
        value *= factor
        reached = value < limit if below else value <= limit + rounding
        return TargetResult(f"{value:,.4g} {unit}", reached, f"{value / limit - 1:.1%} over")

    return judge


def times_faster(group, bench, peers, least, higher_is_better=False):
    """Ours against each of `peers` (a function of the group's rows); the closest one decides."""
    def judge(results):
        rows = [row for row in GROUPS[group].rows if not row.ours and not row.bound and peers(row)]
        seen = []
        for row in rows:
            pair = (STINT, row.label) if higher_is_better else (row.label, STINT)
            ratio = results.ratio(group, bench, *pair)
            if ratio is not None:
                seen.append((ratio, row.label))
        if not seen:
            return None
        ratio, label = min(seen)
        missing = f", {len(rows) - len(seen)} not measured" if len(seen) < len(rows) else ""
        return TargetResult(f"{ratio:.2f}× against {label}{missing}", ratio > least if least == 1 else ratio >= least,
                       f"{least / ratio:.2f}× short")

    return judge


GROUPS = {group.name: group for group in groups()}

TARGETS = [
    Target("sem.uncontended", "uncontended acquire + release ahead of every thread-safe peer",
           times_faster("sem.uncontended", "sem.uncontended", lambda row: row.thread_safe, 1)),
    Target("sem.contended.1", "contended hand-over on one thread at least 6× faster than tokio's",
           times_faster("sem.contended.1", "sem.contended", lambda row: row.program == "tokio", 6)),
    Target("sem.contended.2", "contended hand-over between two threads ahead of tokio's",
           times_faster("sem.contended.2", "sem.contended", lambda row: row.program == "tokio", 1)),
    Target("sem.waiter_mem", "a parked waiter, untimed, at most 192 bytes at one million",
           at_most("sem.waiter_mem", "sem.waiter_mem", 192, "bytes", rounding=0.5)),
    Target("sem.waiter_mem.timed", "a parked waiter, timed, at most 240 bytes at one million",
           at_most("sem.waiter_mem.timed", "sem.waiter_mem", 240, "bytes", rounding=0.5)),
    Target("sem.cancel", "100,000 parked waiters cancelled in under 20 ms",
           at_most("sem.cancel", "sem.cancel", 20, "ms", WAITERS_TO_CANCEL / 1e6, below=True)),
    Target("scope.timer", "one million scopes with a timer started in under 1 s",
           at_most("scope.timer", "scope.timer_start", 1, "s", MILLION / 1e9, below=True)),
    Target("scope.timer", "one million scopes with a timer cancelled in under 1 s",
           at_most("scope.timer", "scope.timer_cancel", 1, "s", MILLION / 1e9, below=True)),
    Target("pool.throughput", "worker pool at least 10× asyncio's jobs per second",
           times_faster("pool.throughput", "pool.throughput", lambda row: row.program == "asyncio", 10, True)),
    Target("pool.throughput", "worker pool ahead of Go's in jobs per second",
           times_faster("pool.throughput", "pool.throughput", lambda row: row.program == "go", 1, True)),
]
