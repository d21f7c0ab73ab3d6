"""The suite `http`: our server beside Go's net/http and nginx, with wrk on the other core.

One thread of ours, one worker of nginx; Go may use both cores. On two cores the client takes one of them, so the
rate of a fast server is limited by wrk: look at the processor time per request.
"""
import os
import shutil

from harness import GoPeer, Ours, Program, Skip, PEERS
from suite import Figure, Group, Row, Target, TargetResult

STINT, GO, NGINX_FILE, NGINX_TEXT = "stint", "Go net/http", "nginx, 1 worker, a file", "nginx, 1 worker, a text of its configuration"
SCALED = ()  # a second and a few thousand connections are quick enough
QUICK_MIN = 10
GO_SHARE, NGINX_SHARE = 1.5, 0.5


class Served(Program):
    """A server, with wrk as its client."""

    python, peer = "/usr/bin/python3", "http_peer.py"

    def __init__(self, name, inner=None):
        self.name, self.inner = name, inner

    def prepare(self, build):
        if not shutil.which("wrk"):
            raise Skip("wrk is not installed", "apt-get install wrk")
        if self.inner:
            self.inner.prepare(build)
        elif not shutil.which("nginx") and not os.path.exists("/usr/sbin/nginx"):
            raise Skip("nginx is not installed", "apt-get install nginx-light")

    def server(self):
        if self.inner is None:
            return "nginx"
        threads = " threads=2" if isinstance(self.inner, GoPeer) else ""
        return " ".join(self.inner.command()) + " serve" + threads

    def command(self):
        return ["env", f"STINT_BENCH_SERVER={self.server()}", self.python, "-B", str(PEERS / "py" / self.peer)]

    def version(self):
        return self.inner.version() if self.inner else "nginx-light"


def programs(ours=None):
    return {
        "stint": Served("stint", Ours("src/http/http_bench", ours)),
        "stint itself": Ours("src/http/http_bench", ours),
        "go": Served("go", GoPeer()),
        "nginx": Served("nginx"),
    }


def figures():
    return {"requests.rate": Figure("Requests per second", "req/s", "", higher_is_better=True),
            "requests.cpu": Figure("Processor time of the server per request", "us"),
            "requests.p99": Figure("Latency, p99", "us")}


def get():
    work = {"seconds": 3, "connections": 64, "path": "/"}
    return Group("get", "requests", "A small answer, 64 persistent connections.", figures(),
                 [Row(STINT, "stint", work), Row(GO, "go", work), Row(NGINX_FILE, "nginx", work | {"path": "/hello.txt"}),
                  Row(NGINX_TEXT, "nginx", work)])


def post():
    work = {"seconds": 3, "connections": 64, "path": "/echo", "body": 1000}
    return Group("post", "requests", "A body of 1,000 bytes, and the same back.", figures(),
                 [Row(STINT, "stint", work), Row(GO, "go", work)])


def idle():
    return Group("idle", "idle", "Resident memory of the process per idle connection that has been answered once.",
                 {"idle": Figure("Per idle connection", "B")}, [Row(STINT, "stint itself", {"connections": 9000})])


def at_least(group, label, peer, share):
    def judge(results):
        ratio = results.ratio(group, "requests.rate", label, peer)
        return None if ratio is None else TargetResult(f"{ratio:.2f}× {peer}", ratio >= share, f"{share / ratio:.2f}× too slow")

    return judge


GROUPS = {group.name: group for group in (get(), post(), idle())}

TARGETS = [
    Target("get", f"a small GET at {GO_SHARE}× Go's net/http", at_least("get", STINT, GO, GO_SHARE)),
    Target("get", f"a small GET at {NGINX_SHARE}× nginx with one worker and a file", at_least("get", STINT, NGINX_FILE, NGINX_SHARE)),
]
