"""A server that delivers the dashboard's files and gives the answers of the API that a test writes down: for states that a real daemon
reaches rarely."""
import http.server
import json
import pathlib
import threading
import time

DIST = pathlib.Path(__file__).resolve().parents[2] / "web/dist"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
RUN = "aaaaaaaaaaaa"


def fleet(**counts):
    zero = {state: 0 for state in ("queued", "running", "parked", "in_doubt", "succeeded", "failed", "cancelled", "expired")}
    runs = zero | counts
    none = {"needs": {"total": 0, "runs": []}, "refused_agents": [], "refused_agents_total": 0, "failures": [], "limits": [], "nodes": [], "pool": None, "shortage": None}
    queue = {"runs": runs["queued"], "startable": runs["queued"], "startable_oldest_at": None, "oldest_at": None, "held": [], "drain_ms": None}
    return {"as_of": int(time.time() * 1000), "cursor": "1", "version": "0", "store": "scripted", "phase": "serving", "runs": runs, "queue": queue, "parked": [],
            "running": {"total": runs["running"], "runs": []}, **none, "spend": {"cost_micros": 0, "tokens": 0, "cost_micros_per_day": None}}


def pool(*workers, **more):
    """A pool of these workers: (id, facts of it that differ from an idle one)."""
    idle = {"state": "idle", "completed": 0, "failed": 0, "cancelled": 0, "avg_time": 0, "last_heartbeat_ago": 0.1, "stale": False, "current_run": None}
    made = [{"id": name, **idle, **facts} for name, facts in workers]
    busy = sum(worker["current_run"] is not None for worker in made)
    return {"pool_size": len(made), "target_size": len(made), "busy": busy, "queue_size": 0, "queue_capacity": 200, "utilization": 0, "total_completed": 0,
            "total_failed": 0, "total_cancelled": 0, "stale_workers": sum(worker["stale"] for worker in made), "draining": False, "workers": made, "min": 1, "max": 9,
            "queue_fullness": 0, "queues": []} | more


def run(state, **more):
    usage = {name: 0 for name in ("fresh_in", "cache_read", "cache_write", "out", "reasoning", "tokens", "cost_micros")} | {"estimated": False}
    return {"id": RUN, "agent": "writer", "state": state, "title": "a title", "attempt": 0, "created_at": 1_000_000, "started_at": None,
            "finished_at": None, "usage": usage, "on_crash": "rerun", "fence": 0, "seq": 1, "args": {}} | more


class Server:
    """`answers`: a path without its query, or `METHOD path` → (status, JSON). A path in `hanging` gets no answer; while `frozen` none does. While
    `failing` is set, every request of the API gets it. `asked`: the changes that were requested, as (method, path, body)."""

    def __init__(self):
        self.hanging, self.frozen, self.over = set(), False, threading.Event()
        self.failing, self.asked = None, []
        self.answers = {"/v1/fleet": (200, fleet()), "/v1/runs": (200, {"runs": [], "next": None}),
                        "/v1/agents": (200, {"agents": [], "problems": []})}
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def set_run(self, state, reasons, **more):
        self.answers[f"/v1/runs/{RUN}"] = (200, run(state, **more))
        self.answers[f"/v1/runs/{RUN}/why"] = (200, {"id": RUN, "state": state, "reasons": reasons})
        self.answers[f"/v1/runs/{RUN}/events"] = (200, {"events": [], "next": "0"})

    def close(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)

    def handler(self):
        script, answers = self, self.answers

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):  # noqa: N802  the name that the library calls
                path = self.path.partition("?")[0]
                if script.frozen or path in script.hanging:
                    script.over.wait(60)
                    return None
                file = DIST / ("index.html" if path == "/" else path.removeprefix("/assets/"))
                if path == "/" or path.startswith("/assets/"):
                    return self.send(200, TYPES[file.suffix], file.read_bytes())
                return self.say(path, answers.get(path, (404, None)))

            def change(self):
                path, length = self.path.partition("?")[0], int(self.headers.get("Content-Length", 0))
                script.asked.append((self.command, path, json.loads(self.rfile.read(length) or b"null")))
                return self.say(path, answers.get(f"{self.command} {path}", (404, None)))

            do_POST = do_PUT = change  # noqa: N815  the names that the library calls

            def say(self, path, answer):
                code, body = script.failing or answer
                if body is None:
                    body = {"type": "about:blank", "title": "Failed", "status": code, "detail": f"{path} is not scripted"}
                return self.send(code, "application/json" if code < 400 else "application/problem+json", json.dumps(body).encode())

            def send(self, code, kind, data):
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        return Handler
