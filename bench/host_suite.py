"""The suite `host`: limits between processes, beside flock(1), GNU sem and lock files that are polled.

The targets are for a machine that does nothing else; on a busy one look at `others` and `best`. With `chrt -f 10
./dev bench host` the kernel gives the benchmark's processes a core at once, which is the nearest to an idle machine.
"""
import harness
from harness import CppPeer, HostPeer, Ours
from suite import Figure, Group, Row, Target, TargetResult

STINT = "stint"
WITH = "stint with"
FLOCK = "flock(1)"
SCALED = ("rounds", "n")  # parameters that --quick divides
QUICK_MIN = 10  # the smallest `n` that it leaves
CLI = harness.ROOT / "build" / "release" / "stint"
INSIDE = harness.ROOT / "build" / "bench" / "inside"
SEM_REMEDY = "apt-get install parallel"


def programs(ours=None):
    inside = CppPeer("inside.cpp", "inside")
    return {
        "stint": Ours("src/limit/limit_bench", ours),
        "stint cli": HostPeer("stint", CLI, "./dev build release", inside),
        "py": HostPeer("python"),
        "flock": HostPeer("flock", "flock", "apt-get install util-linux", inside),
        "sem": HostPeer("sem", "sem", SEM_REMEDY, inside),
    }


def run(words, **more):
    return {"run": words} | more


def handover(kill):
    rounds = {"rounds": 300} | ({"end": "kill"} if kill else {})
    few = rounds | {"rounds": 40}  # half a tenth of a second each
    what = "SIGKILL of the holder" if kill else "Release"
    return Group(
        "handover.kill" if kill else "handover", "handover",
        f"{what} in one process until the next one holds the slot, which was asleep." +
        (" Ours first makes sure that no process of the killed holder is alive (two walks through /proc); the "
         "others do not check." if kill else ""),
        {"handover.p50": Figure(f"{what} → next holds, p50", "us", "98–124" if kill else "33–37"),
         "handover.p99": Figure(f"{what} → next holds, p99", "us")},
        [
            Row(STINT, "stint", rounds),
            Row("stint without inotify (20 ms poll)", "stint", few | {"wake": "poll"}),
            Row("lock file polled every 100 ms", "py", few | {"impl": "poll"}),
            Row("bound: flock(2), blocking, in Python", "py", rounds | {"impl": "flock"}, bound=True),
        ])


def grants():
    work = {"seconds": 3, "processes": 8, "slots": 2}
    return Group(
        "grants", "grants",
        "8 processes repeatedly take one of 2 slots and hold it for 1 ms: at best 2000 a second. Fairness: the "
        "fewest grants of a process divided by the most. A poller that has just released takes the slot again.",
        {"grants.rate": Figure("Grants per second", "grants/s", "", higher_is_better=True),
         "grants.wait_p99": Figure("Wait for a grant, p99", "ms"),
         "grants.fairness": Figure("Fairness, 1 is best", "ratio", "", higher_is_better=True)},
        [Row(STINT, "stint", work),
         Row("lock files polled every 100 ms", "py", work | {"impl": "poll"})])


def handover_command():
    rounds = {"rounds": 20, "inside": str(INSIDE)}
    return Group(
        "handover.command", "handover.command",
        "The end of a command until the start of the next, which waits for the same limit: including everything that the tool does "
        "to start it.",
        {"handover.command.p50": Figure("Command → next command, p50", "ms"),
         "handover.command.p99": Figure("Command → next command, p99", "ms")},
        [Row(WITH, "stint cli", run(f"{CLI} with bench -- {{inside}}", **rounds)),
         Row(FLOCK, "flock", run("flock {dir}/x {inside}", **rounds)),
         Row("GNU sem", "sem", run("sem --id stint-bench --fg {inside}", **rounds))])


def command():
    n = {"n": 200}
    return Group(
        "command", "command", "A command that does nothing under a free limit, from its start to its end.",
        {"command": Figure("TOOL x true", "ms")},
        [Row(WITH, "stint cli", run(f"{CLI} with bench -- true", **n)),
         Row("stint with --no-cgroup", "stint cli", run(f"{CLI} with bench --no-cgroup -- true", **n)),
         Row(FLOCK, "flock", run("flock {dir}/x true", **n)),
         Row("GNU sem", "sem", run("sem --id stint-bench --fg true", n=10)),
         Row("bound: true", "py", run("true", **n), bound=True)])


def help_text():
    n = {"n": 200}
    return Group("help", "command", "The start of the program.", {"command": Figure("stint --help", "ms")},
                 [Row(STINT, "stint cli", run(f"{CLI} --help", **n)),
                  Row("flock --help", "flock", run("flock --help", **n)),
                  Row("bound: true", "py", run("true", **n), bound=True)])


def at_most(group, label, bench, limit, unit):
    def judge(results):
        value = results.median(group, label, bench)
        return None if value is None else TargetResult(f"{value:,.4g} {unit}", value < limit, f"{value / limit - 1:.0%} over")

    return judge


def within(group, bench, label, peer, most):
    def judge(results):
        ratio = results.ratio(group, bench, label, peer)
        return None if ratio is None else TargetResult(f"{ratio:.2f}× {peer}", ratio <= most, f"{ratio / most:.2f}× too much")

    return judge


GROUPS = {group.name: group for group in (handover(False), handover(True), grants(), handover_command(), command(), help_text())}

TARGETS = [
    Target("handover", "hand-over between processes under 100 µs at the median",
           at_most("handover", STINT, "handover.p50", 100, "µs")),
    Target("handover.kill", "hand-over after SIGKILL of the holder under 2 ms at the median",
           at_most("handover.kill", STINT, "handover.p50", 2000, "µs")),
    Target("command", "`stint with x -- true` within 2× of `flock x true`", within("command", "command", WITH, FLOCK, 2)),
    Target("help", "`stint --help` under 20 ms", at_most("help", STINT, "command", 20, "ms")),
]
