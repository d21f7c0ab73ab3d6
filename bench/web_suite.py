"""The suite `web`: open dashboards of an unmodified `stint serve`, and what they cost it.

A dashboard holds one stream of events and reads the first screen again when something happened, at most once a second, as web/src/live.ts
does. The events come from runs that are submitted with a delay, so that no process starts. The row without dashboards is the floor: what the
submissions cost by themselves. The client takes most of the other core. There is no peer: the pages of other systems poll, each in its own way.
"""
import gzip

from harness import PEERS, ROOT, Ours, Program
from suite import Figure, Group, Row, Target, TargetResult

OPEN, NONE = "stint, 100 open dashboards", "stint, no dashboard"
SCALED = ("ms",)  # parameters that --quick divides
QUICK_MIN = 10
SHARE_MAX, BUNDLE_MAX = 10, 80_000


class Watched(Program):
    """A daemon, with `web_peer.py` as its client."""

    def __init__(self, inner):
        self.name, self.inner = "stint", inner

    def prepare(self, build):
        self.inner.prepare(build)

    def command(self):
        return ["env", f"STINT_BENCH_SERVER=daemon {' '.join(self.inner.command())}", "/usr/bin/python3", "-B", str(PEERS / "py" / "web_peer.py")]

    def version(self):
        return self.inner.version()


def programs(ours=None):
    return {"stint": Watched(Ours("stint", ours))}


def dashboards():
    work = {"ms": 10_000, "events": 50}
    return Group("dashboards", "dashboards", "50 events a second for ten seconds, SQLite, 500 runs in the queue before. Processor time is that of the whole "
                 "daemon, as a share of one core. To the page: from the request that commits an event until its frame has arrived, over all dashboards.",
                 {"dashboards.cpu": Figure("Processor time of the daemon", "%"), "dashboards.memory": Figure("Resident", "MB"),
                  "dashboards.events": Figure("Events that the client could make", "/s", higher_is_better=True),
                  "dashboards.p50": Figure("Event to the page, p50", "ms"), "dashboards.p99": Figure("Event to the page, p99", "ms"),
                  "dashboards.reads": Figure("Reads of the first screen", "/s"), "dashboards.missed": Figure("Events that did not arrive", "")},
                 [Row(OPEN, "stint", work | {"dashboards": 100}), Row(NONE, "stint", work | {"dashboards": 0})])


def share(results):
    seen = results.median("dashboards", OPEN, "dashboards.cpu")
    return None if seen is None else TargetResult(f"{seen:.1f} %", seen <= SHARE_MAX, f"{seen / SHARE_MAX:.2f}× too much")


def weight(_results):
    files = (ROOT / "web/dist").iterdir()
    seen = sum(len(gzip.compress(file.read_bytes(), 9, mtime=0)) for file in files if file.name != "manifest.json")
    return TargetResult(f"{seen:,} bytes", seen <= BUNDLE_MAX, f"{seen - BUNDLE_MAX:,} bytes too much")


GROUPS = {group.name: group for group in (dashboards(),)}

TARGETS = [
    Target("dashboards", f"100 open dashboards at 50 events a second under {SHARE_MAX} % of a core", share),
    Target("dashboards", f"the whole dashboard under {BUNDLE_MAX:,} bytes, compressed", weight),
]
