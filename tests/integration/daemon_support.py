"""A `stint serve` under test, a client of it, and the case that the tests of daemons share."""
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time
import unittest

from host_support import Bench, marked, read, wait_for, write
from namespace import within

STINT = ""
END_STATES = {"succeeded", "failed", "cancelled", "expired"}


class Daemon:
    """One `stint serve`, and its client."""

    def __init__(self, bench, project, *words, env=None, namespace=None, before=(), listen="127.0.0.1:0"):
        self.namespace = namespace
        if namespace:
            before = ["nsenter", f"--net=/run/netns/{namespace}", *before]
        self.process = subprocess.Popen([*before, STINT, "serve", "--listen", listen, "--json", *words], cwd=project,
                                        env={**bench.env, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.stderr.read())
        said = json.loads(line)
        self.host, self.port = said["url"].removeprefix("http://").rsplit(":", 1)
        self.token = said.get("token", "")
        self.errors = []
        self.reader = threading.Thread(target=lambda: self.errors.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def connection(self, timeout):
        connection = http.client.HTTPConnection(self.host, int(self.port), timeout=timeout)
        if self.namespace:
            connection.sock = within(self.namespace, lambda: socket.create_connection((self.host, int(self.port)), timeout))
        return connection

    def ask(self, method, path, body=None, headers=None, timeout=30):
        connection = self.connection(timeout)
        try:
            all_headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
            all_headers.update(headers or {})
            connection.request(method, path, None if body is None else json.dumps(body), all_headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            is_json = "json" in (answer.getheader("Content-Type") or "")
            return answer.status, json.loads(text) if is_json and text else text, dict(answer.getheaders())
        finally:
            connection.close()

    def get(self, path):
        status, body, _ = self.ask("GET", path)
        assert status == 200, (path, status, body)
        return body

    def submit(self, agent, headers=None, **more):
        status, body, _ = self.ask("POST", "/v1/runs", {"agent": agent, **more}, headers)
        assert status in (200, 201), (status, body)
        return body["id"]

    def run(self, run):
        return self.get(f"/v1/runs/{run}")

    def wait(self, run, seconds=20):
        return wait_for(lambda: (lambda seen: seen if seen["state"] in END_STATES | {"in_doubt"} else None)(self.run(run)), seconds, f"{run} to end")

    def states(self):
        found = {}
        before = ""
        while True:
            page = self.get(f"/v1/runs?limit=1000{before}")
            for run in page["runs"]:
                found[run["id"]] = run["state"]
            if not page["next"]:
                return found
            before = f"&before={page['next']}"

    def events(self, path, headers=None, most=1000, seconds=10):
        """The events of a stream, without its beats, until it ends, or until nothing but beats came for so long."""
        connection = self.connection(seconds)
        connection.request("GET", path, None, {"Authorization": f"Bearer {self.token}", "Accept": "text/event-stream", **(headers or {})})
        answer = connection.getresponse()
        assert answer.status == 200, answer.status
        events, event, heard = [], {}, time.monotonic()
        with contextlib.suppress(TimeoutError):
            for raw in answer:
                line = raw.decode().rstrip("\n")
                if line.startswith(":"):
                    continue
                if line:
                    name, _, value = line.partition(": ")
                    event[name] = value
                elif event.get("event") == "beat":
                    event = {}
                    if time.monotonic() - heard > seconds:
                        break
                elif event:
                    events.append(event)
                    event, heard = {}, time.monotonic()
                    if len(events) == most:
                        break
        connection.close()
        return events

    def end(self, seconds=30):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(seconds)
        self.reader.join(5)
        return code

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.reader.join(5)
        self.process.stderr.close()


class Case(unittest.TestCase):
    settings = ""

    def setUp(self):
        self.b = Bench(STINT)
        self.addCleanup(self.b.close)
        self.project = f"{self.b.home}/project"
        os.makedirs(f"{self.project}/.stint/agents")
        subprocess.run(["git", "init", "-q", self.project], check=True)
        write(f"{self.project}/stint.toml", self.settings)
        self.b.env["XDG_STATE_HOME"] = self.b.home
        self.b.env["HOME"] = self.b.home
        self.agent("quick", 'command: [sh, -c, "echo said $0", "{{what}}"]\nargs:\n  - {name: what, default: nothing}\n')
        self.agent("slow", 'command: [sleep, "{{seconds}}"]\nargs:\n  - {name: seconds, default: "60"}\n')

    def agent(self, name, more, on_crash="rerun"):
        write(f"{self.project}/.stint/agents/{name}.md", f"---\ndescription: {name}\ndriver: command\non_crash: {on_crash}\n{more}---\n")

    def stint(self, *words, status=0):
        done = subprocess.run([STINT, *words], cwd=self.project, env=self.b.env, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def serve(self, *words, **options):
        self.stint("trust")
        daemon = Daemon(self.b, self.project, *words, **options)
        self.addCleanup(daemon.close)
        return daemon

    def marked(self):
        return marked(self.b)

    def kill_with_wardens(self, d):
        """Kills the daemon and its wardens, so that nothing ends the agents: a frozen daemon can't take over from its wardens."""
        d.process.send_signal(signal.SIGSTOP)
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if read(f"/proc/{pid}/cmdline", "rb").split(b"\0")[1:2] == [b"__warden"] and self.parent_of(pid) == d.process.pid:
                    os.kill(int(pid), signal.SIGKILL)
        d.process.kill()
        d.process.wait()
        self.addCleanup(lambda: [os.kill(pid, signal.SIGKILL) for pid in self.marked()])

    @staticmethod
    def parent_of(pid):
        return int(read(f"/proc/{pid}/stat").rpartition(") ")[2].split()[1])
