"""The suite `store`: runs that survive, beside widely used job queues, on the same server and the same disk.

All our guarantees are on: fences, exact limits, an event for each change. A row shows the cost of the events.
"""
import statistics

from harness import NodePeer, Ours
from postgres import Postgres
from suite import Figure, Group, Row, Target, TargetResult

STINT = "stint"
GRAPHILE, GRAPHILE_BATCHED = "graphile-worker", "graphile-worker, batched"
PG_BOSS, PLAINJOB = "pg-boss", "plainjob, synchronous=NORMAL"
SCALED = ("runs", "rounds", "most", "blocked")  # parameters that --quick divides
QUICK_MIN = 10
BATCH = 500  # the size of graphile-worker's local queue
DEPTHS = (1_000, 10_000, 100_000, 1_000_000)
FLAT = 1.5  # at most this many times the cost with the shortest queue
UNHINDERED = 0.8  # at least this share of the speed beside one blocked run
NPM_SHARE = 3  # at least this many times plainjob's speed
PLAIN_SHARE = 5  # at least this many times graphile-worker's plain speed


class OnPostgres:
    """A program whose processes each get a new database of one server, `server`, shared by all."""

    def __init__(self, program, server):
        self.program, self.server = program, server
        self.name, self.slow_to_build = program.name, program.slow_to_build

    def built(self, build):
        return self.program.built(build)

    def prepare(self, build):
        self.program.prepare(build)
        self.server.prepare()

    def start(self):
        self.server.start()

    def renew(self):
        self.server.renew()

    def stop(self):
        self.server.stop()

    def served_seconds(self):
        return self.server.seconds()

    def command(self):
        return ["env", f"STINT_BENCH_POSTGRES={self.server.url()}"] + self.program.command()

    def version(self):
        return ", ".join(filter(None, [self.program.version(), self.server.version()]))


def programs(ours=None):
    server = Postgres()
    stint = Ours("src/store/store_bench", ours)
    return {
        "stint": stint,
        "stint postgres": OnPostgres(stint, server),
        "graphile": OnPostgres(NodePeer("graphile", "graphile-worker"), server),
        "pg-boss": OnPostgres(NodePeer("pgboss", "pg-boss"), server),
        "plainjob": NodePeer("plainjob", "plainjob"),
    }


def drain_figures(where):
    return {"drain": Figure(f"{where}: runs claimed and completed per second", "runs/s", "", higher_is_better=True),
            "drain.submit": Figure(f"{where}: submitted in bulk, runs per second", "runs/s", "", higher_is_better=True)}


def ours(program, store, runs, batch, carriers=2, **more):
    return program, {"store": store, "runs": runs, "batch": batch, "carriers": carriers} | more


def drain_postgres():
    runs, key, store = 20_000, "stint postgres", "postgres"
    return Group(
        "postgres.drain", "drain",
        "Runs that do nothing are queued; one worker process carries them until all are settled in the store. Ours claims 500 at "
        "a time, and claims the next while it completes the last; graphile-worker fetches as many and carries 100 at "
        "once, pg-boss 100. fsync and synchronous_commit are on. The peers have neither limits nor fences, and "
        "graphile-worker deletes ended jobs.",
        drain_figures("PostgreSQL"),
        [
            Row(STINT, *ours(key, store, runs, BATCH)),
            Row("stint without events", *ours(key, store, runs, BATCH, events="off")),
            Row("stint, nothing claimed ahead", *ours(key, store, runs, BATCH, carriers=1)),
            Row("stint, batches of 100", *ours(key, store, runs, 100)),
            Row("stint, batches of 10", *ours(key, store, 5_000, 10)),
            Row("stint, one by one", *ours(key, store, 1_000, 1, carriers=1)),
            Row(GRAPHILE_BATCHED, "graphile", {"runs": runs, "carriers": 100, "batched": "yes"}),
            Row(GRAPHILE, "graphile", {"runs": 5_000, "carriers": 100}),
            Row(PG_BOSS, "pg-boss", {"runs": 10_000, "carriers": 100}),
        ])


def drain_sqlite():
    runs, key, store = 20_000, "stint", "sqlite"
    return Group(
        "sqlite.drain", "drain",
        "The same in a SQLite file. Ours syncs every commit (FULL), plainjob does not (NORMAL): after a loss of power it "
        "may have lost the last ones. A worker of plainjob runs one job at a time; 100 of them are its best.",
        drain_figures("SQLite"),
        [
            Row(STINT, *ours(key, store, runs, BATCH)),
            Row("stint without events", *ours(key, store, runs, BATCH, events="off")),
            Row("stint, batches of 100", *ours(key, store, runs, 100)),
            Row("stint, batches of 10", *ours(key, store, runs, 10)),
            Row("stint, one by one", *ours(key, store, 2_000, 1, carriers=1)),
            Row("stint, one by one, 100 at once", *ours(key, store, runs, 1, carriers=100)),
            Row(PLAINJOB, "plainjob", {"runs": 10_000, "carriers": 100}),
        ])


def latency():
    rounds = {"rounds": 300}
    return Group(
        "latency", "latency",
        "Submit → claimed while nothing else happens, submitter and worker in one process. pg-boss and plainjob poll "
        "for work, every half second at best: they are left out.",
        {"latency.p50": Figure("Idle: submit → claimed, p50", "ms", "1.45 on PostgreSQL, 1.06 on SQLite"),
         "latency.p99": Figure("Idle: submit → claimed, p99", "ms")},
        [
            Row("stint, PostgreSQL", "stint postgres", rounds | {"store": "postgres"}),
            Row("stint, SQLite", "stint", rounds | {"store": "sqlite"}),
            Row(GRAPHILE, "graphile", rounds),
            Row(GRAPHILE_BATCHED, "graphile", rounds | {"batched": "yes"}),
        ])


def depth():
    work = {"most": DEPTHS[-1], "rounds": 500}
    return Group(
        "depth", "depth", "One run is claimed while that many are queued. All depths in one process, shortest first.",
        {f"depth.{depth}": Figure(f"A claim beside {depth:,} queued runs, p50", "ms") for depth in DEPTHS},
        [Row("stint, PostgreSQL", "stint postgres", work | {"store": "postgres"}, gib=1),
         Row("stint, SQLite", "stint", work | {"store": "sqlite"}, gib=1)],
        rounds_max=2)


def blocked():
    work = {"blocked": 100_000, "runs": 10_000, "batch": 100, "carriers": 2}
    return Group(
        "blocked", "blocked",
        "One agent is drained in batches of 100, while another has a run that may not start, because its limit is used "
        "up, and is checked before each claim; then again while it has 100,000 of them.",
        {"blocked.one": Figure("Beside one blocked run: runs per second", "runs/s", "", higher_is_better=True),
         "blocked.many": Figure("Beside 100,000 blocked runs: runs per second", "runs/s", "", higher_is_better=True)},
        [Row("stint, PostgreSQL", "stint postgres", work | {"store": "postgres"}),
         Row("stint, SQLite", "stint", work | {"store": "sqlite"})])


def times(group, peer, least):
    """Our rate divided by that of a peer."""
    def judge(results):
        ratio = results.ratio(group, "drain", STINT, peer)
        return None if ratio is None else TargetResult(f"{ratio:.2f}×", ratio >= least, f"{least / ratio:.2f}× short")

    return judge


def below(label, limit):
    def judge(results):
        value = results.median("latency", label, "latency.p50")
        return None if value is None else TargetResult(f"{value:.3g} ms", value < limit, f"{value / limit - 1:.0%} over")

    return judge


def flat(label):
    """The cost of the most expensive depth divided by that of the shortest, per process."""
    def judge(results):
        costs = [results.values("depth", label, f"depth.{depth}") for depth in DEPTHS]
        if not all(costs):
            return None
        ratio = statistics.median(max(process) / process[0] for process in zip(*costs))
        return TargetResult(f"at most {ratio:.2f}× that beside {DEPTHS[0]:,}", ratio <= FLAT, f"{ratio / FLAT:.2f}× too much")

    return judge


def unhindered(label):
    def judge(results):
        one, many = (results.values("blocked", label, f"blocked.{bench}") for bench in ("one", "many"))
        if not one or not many:
            return None
        share = statistics.median(b / a for a, b in zip(one, many))
        return TargetResult(f"{share:.2f} of the speed beside one", share >= UNHINDERED, f"{UNHINDERED / share:.2f}× too slow")

    return judge


GROUPS = {group.name: group for group in (drain_postgres(), drain_sqlite(), latency(), depth(), blocked())}

TARGETS = [
    Target("postgres.drain", "on PostgreSQL no slower than graphile-worker's batched mode",
           times("postgres.drain", GRAPHILE_BATCHED, 1)),
    Target("postgres.drain", f"on PostgreSQL at least {PLAIN_SHARE}× graphile-worker's plain mode",
           times("postgres.drain", GRAPHILE, PLAIN_SHARE)),
    Target("sqlite.drain", f"on SQLite with FULL at least {NPM_SHARE}× plainjob with NORMAL",
           times("sqlite.drain", PLAINJOB, NPM_SHARE)),
    Target("latency", "idle submit → claimed under 3 ms on PostgreSQL, p50", below("stint, PostgreSQL", 3)),
    Target("latency", "idle submit → claimed under 2 ms on SQLite, p50", below("stint, SQLite", 2)),
    *[Target("depth", f"the cost of a claim flat from 1,000 to 1,000,000 queued, {store} (within {FLAT}×)",
             flat(f"stint, {store}")) for store in ("PostgreSQL", "SQLite")],
    *[Target("blocked", f"100,000 blocked runs of one agent do not slow another, {store} (at least {UNHINDERED})",
             unhindered(f"stint, {store}")) for store in ("PostgreSQL", "SQLite")],
]
