"""The suite `serve`: the daemon beside an asyncio worker pool behind uvicorn, Go's net/http with a channel pool, and nginx.

The daemon is an unmodified `stint serve`, except in `wait`: a job of the peers does nothing, and one of ours would start a process.
There its parts are wired over the store in memory with a driver that answers at once (`src/app/serve_bench.cpp`), and
a separate row shows the cost of a process. wrk takes one of the two cores.
"""
import os

from harness import GoPeer, Ours, Program, Skip, PEERS, first_line
from http_suite import Served
from suite import Figure, Group, Row, Target, TargetResult

STINT, STINT_PROCESS = "stint", "stint, with a process for each run (`true`)"
GO, NGINX = "Go net/http, channel pool", "nginx, 1 worker, a file"
BARE, FASTAPI = "asyncio pool, uvicorn, bare ASGI", "asyncio pool, uvicorn, FastAPI"
SCALED = ("ms", "runs", "requests")  # parameters that --quick divides
QUICK_MIN = 10

DURABLE_RATE = 5000
PYTHON_SHARE, GO_SHARE, GO_HEALTH_SHARE, NGINX_SHARE = 2.5, 0.7, 1.2, 0.5
RUN_KIB, IDLE_MB, IDLE_WAKEUPS, REFUSAL_US = 16, 25, 2, 1000
SHORT_FORM = "/api/agent/run?session_id={n}&query=q"  # runs of one session wait for each other
POOL = {"workers": 10, "queue": 200}  # the defaults of `stint serve`


class Loaded(Served):
    """A server, with `serve_peer.py` as its client."""

    peer = "serve_peer.py"

    def __init__(self, name, inner=None, words="", daemon=False):
        super().__init__(name, inner)
        self.words, self.daemon = words, daemon

    def server(self):
        if self.inner is None:
            return "nginx"
        return ("daemon " if self.daemon else "") + " ".join(self.inner.command()) + self.words


class Uvicorn(Program):
    """Debian's, with the system's Python."""

    python, remedy = "/usr/bin/python3", "apt-get install python3-fastapi python3-httptools python3-uvicorn python3-uvloop"
    packages = ("uvicorn", "uvloop", "httptools", "fastapi")

    def prepare(self, build):
        if not os.path.exists(self.python) or self.version().count(" ") < 2 * len(self.packages):
            raise Skip("uvicorn, uvloop, httptools or FastAPI are not installed", self.remedy)

    def command(self):
        return [self.python, "-B", str(PEERS / "py" / "pool_server.py")]

    def version(self):
        script = ("import platform, importlib.metadata as m\n"
                  f"print('Python', platform.python_version(), *(f'{{p}} {{m.version(p)}}' for p in {self.packages}))")
        return first_line([self.python, "-c", script])


def programs(ours=None):
    return {
        "stint": Loaded("stint", Ours("stint", ours), daemon=True),
        "stint pool": Loaded("stint", Ours("src/app/serve_bench"), " serve"),
        "go": Loaded("go", GoPeer(), " pool.serve threads=2"),
        "asyncio": Loaded("asyncio", Uvicorn(), " serve"),
        "asyncio fastapi": Loaded("asyncio", Uvicorn(), " serve framework=fastapi"),
        "nginx": Loaded("nginx"),
    }


def figures():
    return {"requests.rate": Figure("Requests per second", "req/s", "", higher_is_better=True),
            "requests.cpu": Figure("Processor time of the server per request", "us"),
            "requests.p99": Figure("Latency, p99", "us")}


def submit():
    work = {"ms": 2000, "connections": 64, "path": "/v1/runs", "post": '{"agent":"quick"}', "workers": 0, "queue": 100_000}
    return Group("submit", "requests", "POST /v1/runs with 64 connections; an answer means that the run is on the disk (SQLite, "
                 "synchronous=FULL). The pool has no workers. The store in memory, for a second only, shows the cost of the disk.", figures(),
                 [Row(STINT, "stint", work), Row("stint, store in memory", "stint", work | {"store": "memory", "ms": 900})])


def wait():
    work = {"ms": 2000, "connections": 64, "path": SHORT_FORM, "post": ""} | POOL
    return Group("wait", "requests", "Submit a job that does nothing and wait for its result: 10 workers, a queue of 200, 64 "
                 "connections, nothing on disk. Ours is the whole daemon without the process.", figures(),
                 [Row(STINT, "stint pool", work), Row(GO, "go", work), Row(BARE, "asyncio", work),
                  Row(FASTAPI, "asyncio fastapi", work), Row(STINT_PROCESS, "stint", work | {"store": "memory"})])


def health():
    work = {"ms": 2000, "connections": 64, "path": "/healthz"} | POOL
    return Group("health", "requests", "GET /healthz of the daemon, 64 connections; nginx answers with a small file.", figures(),
                 [Row(STINT, "stint", work), Row(GO, "go", work), Row(NGINX, "nginx", work | {"path": "/hello.txt"})])


def flight():
    return Group("flight", "flight", "Runs whose processes sleep. Memory: growth of the daemon's own resident set, from a pool of "
                 "one worker that has carried 20 runs to all of them in flight, divided by their number; the store is SQLite. A "
                 "warden is a process of its own, and has its share of pages that several map.",
                 {"flight.memory": Figure("Resident in the daemon, per run", "KiB"),
                  "flight.warden": Figure("A warden, proportional set", "KiB"),
                  "flight.start": Figure("Runs started per second", "runs/s", "", higher_is_better=True)},
                 [Row(STINT, "stint", {"runs": 2000}, gib=6)], rounds_max=2)


def idle():
    return Group("idle", "idle", "A daemon with 10 workers that has carried one run, over ten seconds. A wake-up is a voluntary "
                 "switch of any of its threads.",
                 {"idle.memory": Figure("Resident", "MB"), "idle.wakeups": Figure("Wake-ups", "/s"),
                  "idle.cpu": Figure("Processor time", "ms/s")}, [Row(STINT, "stint", {"ms": 10_000})], rounds_max=2)


def full():
    return Group("full", "full", "POST /v1/runs to a full queue, one request at a time over a kept connection, by a client in "
                 "Python: 503 with Retry-After.",
                 {"full.p50": Figure("p50", "us"), "full.p99": Figure("p99", "us")}, [Row(STINT, "stint", {"requests": 5000})])


def at_least(group, peer, share):
    def judge(results):
        ratio = results.ratio(group, "requests.rate", STINT, peer)
        return None if ratio is None else TargetResult(f"{ratio:.2f}×", ratio >= share, f"{share / ratio:.2f}× too slow")

    return judge


def at_most(group, bench, most, unit):
    def judge(results):
        seen = results.median(group, STINT, bench)
        return None if seen is None else TargetResult(f"{seen:.4g} {unit}", seen <= most, f"{seen / most:.2f}× too much")

    return judge


def durable(results):
    rate, late = (results.median("submit", STINT, f"requests.{name}") for name in ("rate", "p99"))
    if rate is None or late is None:
        return None
    return TargetResult(f"{rate:,.0f}/s, p99 {late / 1000:.1f} ms", rate >= DURABLE_RATE, f"{DURABLE_RATE / rate:.2f}× too slow")


GROUPS = {group.name: group for group in (submit(), wait(), health(), flight(), idle(), full())}

TARGETS = [
    Target("submit", f"{DURABLE_RATE:,} durable submits a second with 64 connections", durable),
    Target("wait", f"submit and wait at {PYTHON_SHARE}× an asyncio pool behind uvicorn, FastAPI", at_least("wait", FASTAPI, PYTHON_SHARE)),
    Target("wait", f"submit and wait at {GO_SHARE}× Go's channel pool", at_least("wait", GO, GO_SHARE)),
    Target("health", f"health at {NGINX_SHARE}× nginx with one worker and a file", at_least("health", NGINX, NGINX_SHARE)),
    Target("health", f"health at {GO_HEALTH_SHARE}× Go's net/http", at_least("health", GO, GO_HEALTH_SHARE)),
    Target("flight", f"a run in flight under {RUN_KIB} KiB in the daemon", at_most("flight", "flight.memory", RUN_KIB, "KiB")),
    Target("idle", f"an idle daemon under {IDLE_MB} MB", at_most("idle", "idle.memory", IDLE_MB, "MB")),
    Target("idle", f"an idle daemon wakes up at most {IDLE_WAKEUPS} times a second", at_most("idle", "idle.wakeups", IDLE_WAKEUPS, "a second")),
    Target("full", f"a full queue refuses within {REFUSAL_US} us, p50", at_most("full", "full.p50", REFUSAL_US, "us")),
    Target("full", f"a full queue refuses within {REFUSAL_US} us, p99", at_most("full", "full.p99", REFUSAL_US, "us")),
]
