"""Starts a daemon, or a peer with a worker pool, puts load on it and says what came of it.

    serve_peer.py requests ms= connections= path= [post=TEXT] [store=memory|sqlite] [workers=N] [queue=N]
    serve_peer.py flight runs=      resident memory of the daemon for each run whose process sleeps
    serve_peer.py idle ms=          resident memory and wake-ups of a daemon that has nothing to do
    serve_peer.py full requests=    how soon a full queue refuses, over one connection that is kept

The server is the command in STINT_BENCH_SERVER; `daemon PROGRAM` is `stint serve` in a project of its own, with the store
that it comes with, in a scratch folder below the current one. All others print their port and end with their input, except
nginx. Every process it started is ended with it, also on SIGTERM.
"""
import contextlib
import http.client
import json
import os
import pathlib
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import http_peer
from http_peer import cpu_seconds, emit, load

ENDED_S_MAX = 30
WARM_MS = 1000  # what is shorter is a smoke run, and not warmed up
SLEEP_S = 600
AGENTS = {
    "quick": 'command: ["true"]\nargs:\n  - {name: query, default: nothing}\n',
    "sleeper": f'command: [sleep, "{SLEEP_S}"]\n',
}


class Daemon:
    """`stint serve` in a project of its own."""

    def __init__(self, program, folder, workers="0", queue="100000", store="sqlite"):
        self.folder = folder
        (folder / ".stint" / "agents").mkdir(parents=True)
        for name, more in AGENTS.items():
            text = f"---\ndescription: {name}\ndriver: command\non_crash: rerun\n{more}---\n"
            (folder / ".stint" / "agents" / f"{name}.md").write_text(text)
        settings = f'default_agent = "quick"\n[pool]\nautoscale = false\nqueue = {queue}\ndrain = "10s"\n'
        (folder / "stint.toml").write_text(('store = "memory"\n' if store == "memory" else "") + settings)
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        self.env = dict(os.environ, HOME=str(folder), XDG_STATE_HOME=f"{folder}/state", XDG_CONFIG_HOME=f"{folder}/config")
        self.env.pop("STINT_RUN", None)
        subprocess.run([program, "trust"], cwd=folder, env=self.env, check=True, stdout=subprocess.DEVNULL)
        self.errors = open(folder / "errors.txt", "w+")
        words = ["serve", "--listen", "127.0.0.1:0", "--no-token", "--json", "--workers", workers]
        self.process = subprocess.Popen([program, *words], cwd=folder, env=self.env, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True)
        self.port = 0

    def wait_until_served(self):
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            sys.exit(f"the daemon did not start: {self.errors.read().strip()}")
        self.port = int(json.loads(line)["url"].rsplit(":", 1)[1])
        while self.ask("GET", "/readyz")[0] != 200:
            time.sleep(0.01)

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def resident(self):
        """Bytes, of this process alone: what it maps and what is in memory. Wardens and agents are other processes."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    def end(self):
        """Drains it. The agents are ended from here: how long it takes to end thousands at once is another question."""
        for _ in range(2):  # the second one hurries
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
                time.sleep(0.1)  # nothing new is begun from here on
                for pid in self.left():
                    with contextlib.suppress(OSError):
                        if pid != self.process.pid and not is_warden(pid):
                            os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(ENDED_S_MAX / 2)
        if self.process.poll() is None:
            self.process.kill()  # wardens end what is left
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()
        end = time.monotonic() + ENDED_S_MAX
        while self.left():
            if time.monotonic() > end:
                sys.exit(f"still alive: {self.left()}")
            time.sleep(0.05)

    def left(self):
        """The daemon, processes of its runs, and their wardens: they have its environment."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if f"XDG_STATE_HOME={self.folder}/state".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes():
                    found.append(int(pid))
        return found


@contextlib.contextmanager
def daemon(folder, **options):
    one = Daemon(os.environ["STINT_BENCH_SERVER"].removeprefix("daemon "), folder, **options)
    try:
        one.wait_until_served()
        yield one
    finally:
        one.end()


@contextlib.contextmanager
def served(folder, values):
    """→ the process, its port, and the daemon if it is one."""
    command = os.environ["STINT_BENCH_SERVER"]
    if command.startswith("daemon "):
        options = {key: values[key] for key in ("workers", "queue", "store") if key in values}
        with daemon(folder, **options) as one:
            yield one.process, one.port, one
        return
    if command == "nginx":
        server, port = http_peer.start_nginx(folder)
    else:
        more = [f"{key}={values[key]}" for key in ("workers", "queue") if key in values]
        server = subprocess.Popen(shlex.split(command) + more, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = server.stdout.readline()
        if not line:
            sys.exit(f"{command}: it did not start")
        port = int(line)
    try:
        yield server, port, None
    finally:
        if server.stdin:
            server.stdin.close()
        else:
            server.terminate()
        try:
            server.wait(ENDED_S_MAX)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def requests(folder, values):
    warm = int(values["ms"]) >= WARM_MS
    work = values | {"seconds": str(max(1, int(values["ms"]) // 1000))}
    text = values.get("post")
    with served(folder, values) as (server, port, one):
        if warm:
            load(port, work | {"seconds": "1"}, folder, text)
        before = cpu_seconds(server.pid)
        seen = load(port, work, folder, text)
        spent = cpu_seconds(server.pid) - before
        if one and values["path"] == "/v1/runs":  # what was answered is there
            queued = json.loads(one.ask("GET", "/v1/status")[1])["runs"]["queued"]
            if queued < http_peer.requests_in(seen):
                sys.exit(f"{http_peer.requests_in(seen)} runs were taken, and {queued} are there")
    for name, value, unit in http_peer.figures(seen, spent):
        emit(f"requests.{name}", value, unit, values, "serve")


def wait_until(seconds, condition, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"not within {seconds} s: {what}")
        time.sleep(0.02)


def flight(folder, values):
    """The pool is made as large as it has to be after the first look: its workers are counted, too."""
    runs = int(values["runs"])
    with daemon(folder, workers="1") as one:
        for _ in range(20):  # what is made once is there
            status, text = one.ask("POST", "/v1/runs", {"agent": "quick", "wait": True})
            if status != 200 or json.loads(text)["state"] != "succeeded":
                sys.exit(f"a first run: {status} {text}")
        before = one.resident()
        began = time.monotonic()
        status, text = one.ask("PUT", "/v1/pool", {"workers": runs})
        if status != 200:
            sys.exit(f"the pool: {status} {text}")
        for _ in range(runs):
            status, text = one.ask("POST", "/v1/runs", {"agent": "sleeper"})
            if status != 201:
                sys.exit(f"a run: {status} {text}")

        def running():
            return json.loads(one.ask("GET", "/v1/status")[1])["runs"]["running"] == runs

        wait_until(120, running, f"{runs} runs")
        took = time.monotonic() - began
        wait_until(60, lambda: len(one.left()) >= 2 * runs, f"{runs} processes with their wardens")
        time.sleep(1)
        emit("flight.memory", (one.resident() - before) / runs / 1024, "KiB", values, "serve")
        emit("flight.start", runs / took, "runs/s", values, "serve")
        wardens = [pid for pid in one.left() if is_warden(pid)]
        emit("flight.warden", statistics.median(map(proportional_kib, wardens[:50])), "KiB", values, "serve")


def is_warden(pid):
    with contextlib.suppress(OSError):
        return b"__warden" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def proportional_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return float(line.split()[1])
    return 0.0


def switches(pid):
    """How often a thread of it went to sleep of its own will: as often it was woken up."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for line in (task / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches:"):
                total += int(line.split()[1])
    return total


def idle(folder, values):
    """With the workers that the daemon comes with; one run has been carried."""
    with daemon(folder, workers="10") as one:
        one.ask("POST", "/v1/runs", {"agent": "quick", "wait": True})
        time.sleep(min(2.0, int(values["ms"]) / 1000))
        before, cpu, began = switches(one.process.pid), cpu_seconds(one.process.pid), time.monotonic()
        time.sleep(int(values["ms"]) / 1000)
        passed = time.monotonic() - began
        emit("idle.wakeups", (switches(one.process.pid) - before) / passed, "/s", values, "serve")
        emit("idle.cpu", (cpu_seconds(one.process.pid) - cpu) / passed * 1000, "ms/s", values, "serve")
        emit("idle.memory", one.resident() / 1e6, "MB", values, "serve")


def ask_raw(connection, request):
    """→ head and body of one answer."""
    connection.sendall(request)
    seen = b""
    while b"\r\n\r\n" not in seen:
        seen += connection.recv(65536)
    head, _, body = seen.partition(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    while len(body) < length:
        body += connection.recv(65536)
    return head, body


def full(folder, values):
    body = b'{"agent":"quick"}'
    request = b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with daemon(folder, workers="0", queue="1") as one, socket.create_connection(("127.0.0.1", one.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head, _ = ask_raw(connection, request)
        if b" 201 " not in head:
            sys.exit(f"the first run: {head.decode()}")
        took = []
        for _ in range(int(values["requests"]) + 100):
            began = time.perf_counter()
            head, _ = ask_raw(connection, request)
            took.append((time.perf_counter() - began) * 1e6)
            if b" 503 " not in head or b"retry-after:" not in head.lower():
                sys.exit(f"a full queue: {head.decode()}")
    took = sorted(took[100:])
    emit("full.p50", took[len(took) // 2], "us", values, "serve")
    emit("full.p99", took[int(0.99 * (len(took) - 1))], "us", values, "serve")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    bench = {"requests": requests, "flight": flight, "idle": idle, "full": full}[sys.argv[1]]
    values = dict(word.split("=", 1) for word in sys.argv[2:])
    with tempfile.TemporaryDirectory(prefix="serve-", dir=os.getcwd()) as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)  # nginx' worker is another user
        bench(folder, values)


if __name__ == "__main__":
    main()
