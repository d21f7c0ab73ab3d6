#!/usr/bin/env python3
"""`stint serve` with real processes: its API, its drain, its death. `serve_test.py STINT [CLASS…]`"""
import contextlib
import http.client
import json
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

from host_support import Bench, alive, read, wait_for, write
from namespace import within

STINT = ""
END_STATES = {"succeeded", "failed", "cancelled", "expired"}


class Daemon:
    """One `stint serve`, and a client of it."""

    def __init__(self, bench, project, *words, env=None, namespace=None, before=()):
        self.namespace = namespace
        if namespace:
            before = ["nsenter", f"--net=/run/netns/{namespace}", *before]
        self.process = subprocess.Popen([*before, STINT, "serve", "--listen", "127.0.0.1:0", "--json", *words], cwd=project,
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
        """Of a stream, until it ends."""
        connection = self.connection(seconds)
        connection.request("GET", path, None, {"Authorization": f"Bearer {self.token}", "Accept": "text/event-stream", **(headers or {})})
        answer = connection.getresponse()
        assert answer.status == 200, answer.status
        events, event = [], {}
        with contextlib.suppress(TimeoutError):
            for raw in answer:
                line = raw.decode().rstrip("\n")
                if line.startswith(":"):
                    continue
                if line:
                    name, _, value = line.partition(": ")
                    event[name] = value
                elif event:
                    events.append(event)
                    event = {}
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
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                environment = read(f"/proc/{pid}/environ", "rb").split(b"\0")
                ours = f"XDG_STATE_HOME={self.b.home}".encode() in environment
                if ours and any(e.startswith(b"STINT_RUN=") for e in environment) and alive(pid):
                    found.append(int(pid))
        return found


class Api(Case):
    settings = 'default_agent = "assistant"\n[pool]\nworkers = 2\nautoscale = false\nqueue = 4\n'

    def setUp(self):
        super().setUp()
        self.agent("assistant", 'command: [sh, -c, "echo you asked $0; sleep ${1:-0}", "{{query}}"]\nargs:\n  - {name: query, required: true}\n')
        self.agent("broken", 'command: [sh, -c, "echo why >&2; exit 3"]\n')
        self.d = self.serve()

    def test_a_run_from_its_submit_to_its_end(self):
        status, body, headers = self.d.ask("POST", "/v1/runs", {"agent": "quick", "args": {"what": "hello"}})
        self.assertEqual((status, headers["Location"], body["created"]), (201, f"/v1/runs/{body['id']}", True))
        run = self.d.wait(body["id"])
        self.assertEqual((run["state"], run["result"], run["args"]), ("succeeded", "said hello", {"what": "hello"}))
        self.assertEqual(self.d.get(f"/v1/runs/{run['id'][:8]}")["id"], run["id"], "a prefix is enough")
        self.assertEqual(self.d.get(f"/v1/runs/{run['id']}/output")["head"], "said hello\n")
        causes = [event["cause"] for event in self.d.get(f"/v1/runs/{run['id']}/events")["events"]]
        self.assertEqual(causes, ["enqueued", "claimed", "succeeded"])
        stream = self.d.events(f"/v1/runs/{run['id']}/events")
        self.assertEqual([event["event"] for event in stream], causes)
        resumed = self.d.events(f"/v1/runs/{run['id']}/events", {"Last-Event-ID": "2"})
        self.assertEqual([json.loads(event["data"])["seq"] for event in resumed], [3])
        self.assertEqual(self.d.ask("GET", f"/v1/runs/{run['id']}/events", None, {"Accept": "text/event-stream", "Last-Event-ID": "3"})[0], 204)
        self.assertEqual(self.stint("show", run["id"], "--json") and json.loads(self.stint("show", run["id"], "--json"))["state"], "succeeded")

    def test_a_stream_tells_of_output_if_it_is_asked_to(self):
        self.agent("talker", 'command: [sh, -c, "for i in 1 2 3; do echo line $i; sleep 0.6; done"]\n')
        self.d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: any(agent["name"] == "talker" for agent in self.d.get("/v1/agents")["agents"]), 10, "the new agent")
        run = self.d.submit("talker")
        stream = self.d.events(f"/v1/runs/{run}/events?output=1", seconds=20)
        printed = [event for event in stream if event["event"] == "output"]
        bytes_told = [json.loads(event["data"])["bytes"] for event in printed]
        self.assertEqual((sorted(set(bytes_told)), bytes_told[-1]), (bytes_told, 21))
        self.assertGreater(len(printed), 1, "as it is printed")
        self.assertFalse(any("id" in event for event in printed), "they are no events of the run, and do not move its cursor")
        self.assertEqual([event["event"] for event in stream if event not in printed], ["enqueued", "claimed", "succeeded"])
        self.assertEqual([event["event"] for event in self.d.events(f"/v1/runs/{run}/events")], ["enqueued", "claimed", "succeeded"])
        self.assertEqual(self.d.ask("GET", f"/v1/runs/{run}/events?output=2", None, {"Accept": "text/event-stream"})[0], 422)

    def test_waiting_for_the_end_and_what_went_wrong(self):
        status, body, _ = self.d.ask("POST", "/v1/runs", {"agent": "broken", "wait": True})
        self.assertEqual((status, body["state"], body["outcome"]), (200, "failed", "agent_error"))
        self.assertIn("exit status 3: why", body["error"])
        status, body, _ = self.d.ask("POST", f"/v1/runs/{body['id']}/retry")
        self.assertEqual(status, 201)
        again = self.d.wait(body["id"])
        self.assertEqual((again["state"], again["retry_of"] != again["id"]), ("failed", True))

    def test_refusals(self):
        for body, status, text in (({"agent": "nobody"}, 404, "nobody"), ({"agent": "assistant"}, 422, "query"), ({"agent": "assistant", "args": {"query": {}}}, 422, "query"),
                                   ({"agent": "assistant", "args": {"query": "x", "wrong": 1}}, 422, "wrong"), ({}, 422, "agent"), ({"agent": "quick", "prioritty": 1}, 422, "prioritty"),
                                   ({"agent": "quick", "budget": {"attempts": 0}}, 422, "attempts"), ({"agent": "quick", "budget": {"attempts": 101}}, 422, "attempts"),
                                   ({"agent": "quick", "driver": "bogus"}, 422, "bogus"), ({"agent": "quick", "driver": "llm"}, 422, "llm"),
                                   ({"prompt": "x", "driver": "command"}, 422, "command"), ([], 422, "object")):
            answer = self.d.ask("POST", "/v1/runs", body)
            self.assertEqual(answer[0], status, answer)
            self.assertEqual((answer[1]["status"], text in answer[1]["detail"]), (status, True), answer)
            self.assertEqual(answer[2]["Content-Type"], "application/problem+json")
        self.assertEqual(self.d.ask("GET", "/v1/runs/aaaaaaaaaaaa")[0], 404)
        status, _, headers = self.d.ask("DELETE", "/v1/runs")
        self.assertEqual((status, headers["Allow"]), (405, "POST, GET, HEAD"))
        for path in ("/v1/runs?limit=0", "/v1/runs?limit=1001", "/v1/events?limit=0", "/v1/runs?before=-1"):
            self.assertEqual(self.d.ask("GET", path)[0], 422, path)
        self.assertEqual(self.d.ask("POST", "/v1/runs", {"agent": "quick"}, {"Content-Encoding": "gzip"})[0], 415)
        self.assertEqual(self.d.ask("GET", "/nothing")[0], 404)
        run = self.d.submit("quick")
        self.d.wait(run)
        self.assertEqual(self.d.ask("POST", f"/v1/runs/{run}/resolve", {"as": "done"})[0], 409)
        self.assertEqual(self.d.ask("POST", f"/v1/runs/{run}/resolve", {"as": "gone"})[0], 422)
        self.assertEqual(self.d.ask("POST", f"/v1/runs/{self.d.submit('slow')}/retry")[0], 409)

    def test_a_key_stands_for_one_wish(self):
        key = {"Idempotency-Key": "once"}
        run = self.d.submit("quick", key, args={"what": "a"})
        self.assertEqual(self.d.wait(run)["state"], "succeeded")
        status, body, headers = self.d.ask("POST", "/v1/runs", {"agent": "quick", "args": {"what": "a"}}, key)
        self.assertEqual((status, body["id"], body["created"], body["state"], headers["Location"]), (200, run, False, "succeeded", f"/v1/runs/{run}"))
        for other in ({"args": {"what": "b"}}, {}, {"args": {"what": "a"}, "session": "s"}):
            status, body, _ = self.d.ask("POST", "/v1/runs", {"agent": "quick", **other}, key)
            self.assertEqual((status, "'once'" in body["detail"], run in body["detail"]), (409, True, True), body)

    def test_a_key_outlives_the_definition_that_its_run_was_made_from(self):
        def ask_again(what):
            status, body, _ = self.d.ask("POST", "/v1/runs", {"agent": "quick", "args": {"what": "a"}}, {"Idempotency-Key": "once"})
            self.assertEqual((status, body.get("id"), body.get("created")), (200, run, False), (what, body))
            status, body, _ = self.d.ask("POST", "/v1/runs", {"agent": "quick", "args": {"what": "b"}}, {"Idempotency-Key": "once"})
            self.assertEqual((status, run in body["detail"]), (409, True), (what, body))
            self.assertEqual(self.d.ask("POST", "/api/agent/run?session_id=s&query=x", None, {"Idempotency-Key": "short"})[:2], answer, what)

        def reload(is_there):
            self.d.process.send_signal(signal.SIGHUP)
            wait_for(lambda: is_there({each["name"]: each for each in self.d.get("/v1/agents")["agents"]}), 10, "the new definition")

        run = self.d.submit("quick", {"Idempotency-Key": "once"}, args={"what": "a"})
        answer = self.d.ask("POST", "/api/agent/run?session_id=s&query=x", None, {"Idempotency-Key": "short"})[:2]
        self.assertEqual(answer, (200, {"status": "success", "result": "you asked x"}))
        ask_again("nothing has changed")
        said = 'command: [sh, -c, "echo said $0", "{{why}}"]\nargs:\n  - {name: why, default: another}\n'
        self.agent("quick", said)
        self.agent("helper", said)
        self.agent("assistant", 'command: [echo, "you asked again"]\nargs:\n  - {name: question, default: none}\n')
        reload(lambda agents: "helper" in agents)
        ask_again("its argument has another name, and another default")
        os.remove(f"{self.project}/.stint/agents/quick.md")
        os.remove(f"{self.project}/.stint/agents/assistant.md")
        reload(lambda agents: "quick" not in agents)
        ask_again("its file is gone")
        self.assertEqual(self.d.ask("POST", "/v1/runs", {"agent": "quick"}, {"Idempotency-Key": "new"})[0], 404)

    def test_every_wait_has_a_true_reason(self):
        self.agent("bounded", 'command: [sleep, "60"]\nmax_concurrency: 1\n')
        self.d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "bounded" in {each["name"] for each in self.d.get("/v1/agents")["agents"]}, 5, "the new agents")
        self.assertEqual(self.d.ask("POST", "/v1/runs", {"agent": "quick", "budget": {"time_ms": 0}})[0], 422)
        self.stint("pause", "quick")
        self.stint("resume", "quick")
        slow = [self.d.submit("slow") for _ in range(2)]
        wait_for(lambda: all(self.d.run(run)["state"] == "running" for run in slow), 5, "both to run, although they were paused")
        status, body, _ = self.d.ask("PUT", "/v1/limits/agent:slow", {"capacity": 1})
        self.assertEqual((status, "max_concurrency" in body["detail"]), (422, True), body)
        queued = self.d.submit("bounded")
        wait_for(lambda: any(r["reason"] == "workers" for r in self.d.get(f"/v1/runs/{queued}/why")["reasons"]), 5, "the reason")

    def test_nobody_without_the_token(self):
        token, self.d.token = self.d.token, ""
        for path in ("/v1/runs", "/metrics", "/openapi.json", "/api/agent/health", "/v1/status"):
            self.assertEqual(self.d.ask("GET", path)[0], 401, path)
        self.assertEqual(self.d.ask("GET", "/healthz")[0], 200)
        self.d.token = "x" * len(token)
        self.assertEqual(self.d.ask("GET", "/v1/runs")[0], 401)
        self.d.token = token
        self.assertEqual(self.d.ask("GET", "/v1/runs", None, {"Host": "evil.example"})[0], 421)
        self.assertEqual(self.d.ask("GET", "/v1/runs", None, {"Origin": "http://evil.example"})[0], 403)
        self.assertEqual(self.d.ask("GET", "/v1/runs", None, {"Origin": f"http://localhost:{self.d.port}"})[0], 200)
        self.assertEqual(os.stat(f"{self.project}/.git/stint/token").st_mode & 0o777, 0o600)
        self.assertNotIn(token, "".join(self.d.errors))
        for name in ("environ", "cmdline"):
            self.assertNotIn(token, read(f"/proc/{self.d.process.pid}/{name}"))

    def test_a_deadline_is_a_moment_or_a_length(self):
        soon = time.time() + 2
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(soon)) + f".{int(soon % 1 * 1000):03}Z"
        run = self.d.submit("slow", deadline=moment)
        self.assertAlmostEqual(self.d.run(run)["deadline_at"] / 1000, soon, delta=0.01)
        self.assertEqual(self.d.wait(run)["state"], "expired")
        self.assertLess(time.time() - soon, 3)
        status, body, _ = self.d.ask("POST", "/v1/runs", {"agent": "slow", "deadline": "tomorrow"})
        self.assertEqual(status, 422)
        self.assertIn("'deadline' is no moment", body["detail"])

    def test_a_full_queue_says_when_to_come_again(self):
        ids = [self.d.submit("slow") for _ in range(2)]
        wait_for(lambda: all(self.d.run(run)["state"] == "running" for run in ids), 10, "both workers to be busy")
        for _ in range(4):
            self.d.submit("slow")
        status, body, headers = self.d.ask("POST", "/v1/runs", {"agent": "slow"})
        self.assertEqual((status, int(headers["Retry-After"]) >= 1), (503, True), body)
        health = self.d.get("/v1/pool")
        self.assertEqual((health["queue_fullness"], health["queue_size"], [each for each in health["queues"] if each["size"]]), (1, 4, [{"agent": "slow", "size": 4, "capacity": 4}]), health)
        self.assertIn('stint_agent_queue_runs{agent="slow"} 4', self.d.get("/metrics"))
        self.assertIn("the queue of slow is full", self.stint("status"))
        for _ in range(4):
            self.d.submit("assistant", args={"query": "x"}, delay_ms=3600_000)
        status, body, headers = self.d.ask("POST", "/api/agent/run?session_id=s&query=x")
        self.assertEqual((status, body, "Retry-After" in headers), (503, {"detail": "Agent pool at capacity. Retry later."}, True))
        why = self.d.get(f"/v1/runs/{self.d.get('/v1/runs?state=queued')['runs'][0]['id']}/why")
        self.assertTrue(any(reason["reason"] == "workers" for reason in why["reasons"]), why)

    def test_the_short_form(self):
        self.assertEqual(self.d.ask("POST", "/api/agent/run?session_id=s&query=hi+there")[:2], (200, {"status": "success", "result": "you asked hi there"}))
        for query in ("", "?session_id=s", "?query=x", "?session_id=&query=x"):
            self.assertEqual(self.d.ask("POST", f"/api/agent/run{query}")[0], 422, query)
        health = self.d.get("/api/agent/health")
        for name in ("pool_size", "queue_size", "queue_capacity", "utilization", "total_completed", "total_failed", "stale_workers"):
            self.assertIn(name, health)
        self.assertEqual(len(health["workers"]), 2)
        for name in ("id", "state", "completed", "failed", "avg_time", "last_heartbeat_ago", "current_run"):
            self.assertIn(name, health["workers"][0])

    def test_cancel_answers_when_the_work_is_gone(self):
        run = self.d.submit("slow")
        wait_for(lambda: self.d.run(run)["state"] == "running" and self.marked(), 10, "it to run")
        status, receipt, _ = self.d.ask("POST", f"/v1/runs/{run}/cancel")
        self.assertEqual(self.marked(), [], "nothing is left when the answer comes")
        self.assertEqual((status, receipt["state"], receipt["processes_ended"]), (200, "cancelled", 1))
        waiting = [self.d.submit("slow", session="s") for _ in range(2)]
        self.assertEqual(self.d.ask("POST", f"/v1/runs/{waiting[1]}/cancel")[1]["state"], "cancelled")

    def test_who_waits_and_goes_away_cancels_unless_it_has_a_key(self):
        for headers, end in (({}, "cancelled"), ({"Idempotency-Key": "k1"}, "running")):
            connection = http.client.HTTPConnection(self.d.host, int(self.d.port), timeout=20)
            connection.request("POST", "/v1/runs", json.dumps({"agent": "slow", "wait": True}), {"Authorization": f"Bearer {self.d.token}", **headers})
            run = wait_for(lambda: next((run["id"] for run in self.d.get("/v1/runs?state=running")["runs"]), None), 10, "it to run")
            connection.close()
            time.sleep(0.5)
            wait_for(lambda: self.d.run(run)["state"] == end, 10, f"it to be {end}")
        self.assertEqual(self.d.submit("slow", {"Idempotency-Key": "k1"}), run, "the same key is the same run")

    def test_the_stream_of_the_fleet_goes_on_after_any_event(self):
        for i in range(3):
            self.d.wait(self.d.submit("quick"))
        page = self.d.get("/v1/events?limit=1000")["events"]
        stream = self.d.events("/v1/events?after=", most=len(page))
        self.assertEqual([json.loads(event["data"]) for event in stream], page)
        self.assertEqual(len({event["id"] for event in stream}), len(page), "each has an id of its own")
        for i in range(len(stream) - 1):
            rest = self.d.events("/v1/events", {"Last-Event-ID": stream[i]["id"]}, most=len(page) - i - 1)
            self.assertEqual([event["id"] for event in rest], [event["id"] for event in stream[i + 1:]])

    def test_a_stream_that_can_not_be_resumed_is_refused(self):
        run = self.d.submit("quick")
        for path in ("/v1/events", f"/v1/runs/{run}/events"):
            for wrong in ("nonsense", "-1"):
                status, body, _ = self.d.ask("GET", path, None, {"Accept": "text/event-stream", "Last-Event-ID": wrong})
                self.assertEqual((status, wrong in body["detail"]), (422, True), (path, wrong))

    def test_a_run_in_doubt_is_resolved_not_cancelled(self):
        self.agent("careful", 'command: [sh, -c, "kill -9 $PPID; sleep 60"]\n', on_crash="doubt")
        self.d.process.send_signal(signal.SIGHUP)
        run = wait_for(lambda: self.d.ask("POST", "/v1/runs", {"agent": "careful"})[1].get("id"), 5, "the new agent")
        self.assertEqual(self.d.wait(run)["state"], "in_doubt")
        status, body, _ = self.d.ask("POST", f"/v1/runs/{run}/cancel")
        self.assertEqual((status, "resolve" in body["detail"]), (409, True), body)
        done = subprocess.run([STINT, "cancel", run], cwd=self.project, env=self.b.env, capture_output=True, text=True, timeout=30)
        self.assertEqual((done.returncode, done.stdout), (6, ""))
        self.assertIn("`stint resolve` settles it", done.stderr)

    def test_the_document_describes_the_server(self):
        document = self.d.get("/openapi.json")
        schemas = document["components"]["schemas"]
        run = self.d.submit("quick")
        self.d.wait(run)
        doubt = self.d.submit("slow")
        asked = {"get": {}, "post": {"/v1/runs": {"agent": "quick"}, "/v1/runs/{id}/resolve": {"as": "done"}}, "put": {"/v1/limits/{name}": {"capacity": 3}, "/v1/pool": {"workers": 2}}}
        wait_for(lambda: self.d.run(doubt)["state"] == "running", 10, "one to run")
        for path, methods in sorted(document["paths"].items(), key=lambda each: "drain" in each[0]):
            for method, operation in methods.items():
                target = path.replace("{id}", doubt if "cancel" in path else run).replace("{name}", "agent:quick")
                if path == "/api/agent/run":
                    target += "?session_id=s&query=x"
                status, body, headers = self.d.ask(method.upper(), target, asked[method].get(path))
                self.assertIn(str(status), operation["responses"], (method, path, body))
                described = operation["responses"][str(status)]
                if "$ref" in described:
                    described = document["components"]["responses"][described["$ref"].rsplit("/", 1)[1]]
                for name, header in described.get("headers", {}).items():
                    self.assertTrue(not header.get("required") or name in headers, (method, path, status, name))
                kind = headers.get("Content-Type", "").split(";")[0]
                self.assertIn(kind, described["content"], (method, path, status, body))
                problems = list(mismatches(body, described["content"][kind]["schema"], schemas))
                self.assertEqual(problems, [], (method, path, status, body))

    def test_metrics_follow_the_rules(self):
        self.d.wait(self.d.submit("quick"))
        text = self.d.get("/metrics")
        kinds = dict(line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE"))
        for line in text.splitlines():
            if line.startswith("#") or not line:
                continue
            name, value = line.split("{")[0].split()[0], line.rsplit(" ", 1)[1]
            float(value)
            self.assertIn(name, kinds, line)
            self.assertTrue(name.startswith("stint_"), name)
            self.assertEqual(kinds[name] == "counter", name.endswith("_total"), name)
        self.assertIn('stint_runs{state="succeeded"} 1', text)
        documented = set(part for part in read(pathlib.Path(__file__).parents[2] / "docs" / "operations.md").split("`") if part.startswith("stint_"))
        self.assertEqual(set(kinds) - documented, set(), "docs/operations.md lists them all")

    def test_the_pool_is_resized(self):
        self.assertEqual(self.d.ask("PUT", "/v1/pool", {"workers": 5})[1]["target_size"], 5)
        wait_for(lambda: self.d.get("/v1/pool")["pool_size"] == 5, 5, "five workers")
        self.assertEqual(self.d.ask("PUT", "/v1/pool", {"min": 1})[0], 422, "it has a fixed size")
        self.assertEqual(self.d.ask("PUT", "/v1/pool", {})[0], 422)
        self.d.ask("PUT", "/v1/pool", {"workers": 0})
        run = self.d.submit("quick")
        time.sleep(0.5)
        self.assertEqual(self.d.run(run)["state"], "queued")
        self.d.ask("PUT", "/v1/pool", {"workers": 1})
        self.assertEqual(self.d.wait(run)["state"], "succeeded")

    def test_pause_and_resume(self):
        self.assertEqual(self.d.ask("POST", "/v1/limits/agent:quick/pause")[0], 200)
        run = self.d.submit("quick")
        time.sleep(1.2)
        self.assertEqual(self.d.run(run)["state"], "queued")
        self.assertTrue(any(reason["reason"] == "paused" for reason in self.d.get(f"/v1/runs/{run}/why")["reasons"]))
        self.assertEqual(self.d.ask("POST", "/v1/limits/agent:quick/resume")[0], 200)
        self.assertEqual(self.d.wait(run)["state"], "succeeded")

    def test_a_limit_that_is_not_there_or_not_the_stores(self):
        self.stint("with", "gpu=2", "--", "true")
        self.assertIn("gpu", [limit["name"] for limit in self.d.get("/v1/limits")["limits"]])
        for method, path, body in (("POST", "/pause", None), ("POST", "/resume", None), ("PUT", "", {"capacity": 3})):
            self.assertEqual(self.d.ask(method, f"/v1/limits/nosuch{path}", body)[0], 404, path)
        for path in ("/pause", "/resume"):
            self.assertEqual(self.d.ask("POST", f"/v1/limits/gpu{path}")[0], 422, path)

    def test_a_session_keeps_its_order(self):
        runs = [self.d.submit("quick", session="s", args={"what": str(i)}) for i in range(4)]
        ends = [self.d.wait(run)["finished_at"] for run in runs]
        starts = [self.d.run(run)["started_at"] for run in runs]
        self.assertEqual(sorted(ends), ends)
        self.assertTrue(all(start >= end for start, end in zip(starts[1:], ends)), (starts, ends))

    def test_a_run_in_the_foreground_is_carried_by_the_daemon(self):
        done = subprocess.run([STINT, "run", "quick", "you"], cwd=self.project, env=self.b.env, capture_output=True, text=True, timeout=30)
        self.assertEqual((done.returncode, done.stdout), (0, "said you\n"), done.stderr)
        self.assertIn("succeeded after", done.stderr)
        self.assertEqual(self.d.get("/v1/runs")["runs"][0]["state"], "succeeded")
        self.assertEqual(self.d.get("/v1/pool")["total_completed"], 1, "by the daemon's own pool")
        run = subprocess.Popen([STINT, "run", "slow", "-q"], cwd=self.project, env=self.b.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.marked, 10, "it to run")
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(15), 5)
        self.assertEqual(self.marked(), [])

    def test_a_run_within_a_run_is_its_child_and_does_not_wait_for_its_permit(self):
        self.agent("outer", f'max_concurrency: 1\ncommand: [sh, -c, "[ $0 = deep ] && exec echo deep; exec {STINT} run outer deep -q", "{{{{depth}}}}"]\nargs:\n  - {{name: depth, default: top}}\n')
        self.d.process.send_signal(signal.SIGHUP)
        run = wait_for(lambda: self.d.ask("POST", "/v1/runs", {"agent": "outer"})[1].get("id"), 5, "the new agent")
        for _ in range(20):  # the daemon must not be quicker to take it, for it would wait
            ended = self.d.wait(run)
            self.assertEqual((ended["state"], ended["result"]), ("succeeded", "deep"), ended)
            self.assertEqual([each.get("parent") for each in self.d.get("/v1/runs")["runs"]][:2], [run, None])
            run = self.d.submit("outer")

    def test_the_token_of_a_run_is_good_for_what_is_below_it_and_nothing_else(self):
        self.agent("asker", 'command: [sh, -c, "echo $STINT_TOKEN > token; sleep 60"]\nbudget: {time: 30s}\n')
        self.d.process.send_signal(signal.SIGHUP)
        person = self.d.token
        stranger = self.d.submit("quick")
        self.d.wait(stranger)
        run = wait_for(lambda: self.d.ask("POST", "/v1/runs", {"agent": "asker"})[1].get("id"), 5, "the new agent")
        token = wait_for(lambda: os.path.exists(f"{self.project}/token") and read(f"{self.project}/token").strip(), 5, "its token")
        self.assertNotEqual(token, person)
        self.d.token = token
        child = self.d.submit("quick", parent="000000000000")
        ended = self.d.wait(child)
        self.assertEqual((ended["state"], ended["parent"]), ("succeeded", run), "whatever it says")
        self.assertLessEqual(ended["expires_at"], self.d.run(run)["expires_at"], "within its budget")
        self.assertEqual([each["id"] for each in self.d.get("/v1/runs")["runs"]], [child])
        self.d.get(f"/v1/runs/{run}")
        self.d.get(f"/v1/runs/{child}/output")
        self.d.get("/v1/agents")
        for method, path in (("GET", f"/v1/runs/{stranger}"), ("GET", f"/v1/runs/{stranger}/output"), ("GET", "/v1/events"), ("GET", "/v1/status"),
                             ("GET", "/metrics"), ("POST", f"/v1/runs/{run}/cancel"), ("POST", f"/v1/runs/{stranger}/retry"), ("PUT", "/v1/pool"),
                             ("POST", "/v1/pool/drain"), ("POST", "/v1/pause"), ("PUT", "/v1/limits/agent:quick"), ("POST", "/api/agent/run?session_id=1&query=x")):
            self.assertEqual(self.d.ask(method, path, {})[0], 403, (method, path))
        keyed = self.d.submit("quick", {"Idempotency-Key": "k9"})
        self.assertEqual(self.d.submit("quick", {"Idempotency-Key": "k9"}), keyed)
        below = self.d.submit("slow")
        self.assertEqual(self.d.ask("POST", f"/v1/runs/{below}/cancel")[1]["state"], "cancelled")
        for wrong in (token[:-1] + ("0" if token[-1] != "0" else "1"), f"run-{stranger}-" + token.rsplit("-", 1)[1], f"run-{run}-", f"run-{run}", "run-"):
            self.d.token = wrong
            self.assertEqual(self.d.ask("GET", "/v1/agents")[0], 401, wrong)
        self.d.token = person
        self.assertNotEqual(self.d.submit("quick", {"Idempotency-Key": "k9"}), keyed, "a run takes nobody's keys")
        self.d.ask("POST", f"/v1/runs/{run}/cancel")
        self.d.token = token
        self.assertEqual(self.d.ask("GET", "/v1/agents")[0], 401, "it has ended")
        self.d.token = person

    def test_ten_thousand_idle_connections_do_not_keep_others_out(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        ask = f"GET /healthz HTTP/1.1\r\nHost: {self.d.host}\r\n\r\n".encode()
        with contextlib.ExitStack() as closing:
            for i in range(min(10_000, hard - 300)):
                connection = closing.enter_context(socket.create_connection((self.d.host, int(self.d.port))))
                with contextlib.suppress(OSError):
                    if i % 2:  # half of them have been answered once
                        connection.sendall(ask)
                if i % 2500 == 0:
                    began = time.monotonic()
                    self.assertEqual(self.d.wait(self.d.submit("quick"))["state"], "succeeded")
                    self.assertLess(time.monotonic() - began, 5)
            self.assertEqual(self.d.wait(self.d.submit("quick"))["state"], "succeeded")
            open_now = re.search(r"^stint_http_connections (\d+)", self.d.ask("GET", "/metrics")[1], re.M)
            self.assertLessEqual(int(open_now.group(1)), 1024, "the daemon's own bound")

    def test_clients_that_misbehave_do_not_keep_others_out(self):
        address = (self.d.host, int(self.d.port))
        held = [socket.create_connection(address) for _ in range(300)]
        for connection in held[:100]:
            connection.sendall(b"GET /v1/runs HTTP/1.1\r\nHost: x")
        for junk in (b"\0" * 1000, b"GET / HTTP/1.1\r\n" + b"a: " + b"b" * 100_000 + b"\r\n\r\n", b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\n"):
            with socket.create_connection(address) as connection, contextlib.suppress(OSError):
                connection.sendall(junk)
                connection.settimeout(5)
                self.assertRegex(connection.recv(20), rb"HTTP/1.1 4")
        self.assertEqual(self.d.wait(self.d.submit("quick"))["state"], "succeeded")
        for connection in held:
            connection.close()


class Cost(Case):
    settings = "[pool]\nworkers = 1\nautoscale = false\n"

    def setUp(self):
        super().setUp()
        here = pathlib.Path(__file__).resolve().parent
        os.makedirs(f"{self.b.home}/bin")
        os.symlink(here / "stand_in.py", f"{self.b.home}/bin/claude")
        write(f"{self.project}/.stint/agents/paid.md", "---\ndescription: paid\ndriver: claude\n---\nhello\n")
        self.b.env["PATH"] = f"{self.b.home}/bin:{os.environ['PATH']}"
        self.b.env["STAND_IN"] = json.dumps({"stream": str(here.parent / "streams/claude/success.jsonl"), "delay": 0.5})

    def test_the_lines_of_a_file_share_one_budget(self):
        d = self.serve()
        lines = "{}\n" * 40
        words = [STINT, "submit", "paid", "--each", "-", "--wait", "--one-budget"]
        done = subprocess.run([*words, "--cost", "0.15"], cwd=self.project, env=self.b.env, input=lines, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("the money of all is used up; what is left is cancelled", done.stderr)
        states = [run["state"] for run in d.get("/v1/runs?limit=100")["runs"]]
        self.assertEqual(len(states), 40)
        self.assertEqual(states.count("succeeded") + states.count("cancelled"), 40, states)
        self.assertIn(states.count("succeeded"), range(2, 12), "each costs 0.097 and takes a second and a half")
        for wrong in (["--cost", "1"], ["--each", "-", "--cost", "1"], ["--each", "-", "--wait"]):
            self.stint("submit", "paid", "--one-budget", *wrong, status=2)

    def test_what_the_fleet_may_spend_in_a_day_is_all_it_spends(self):
        write(f"{self.project}/stint.toml", "[budget]\ncost_per_day = 0.01\n")
        d = self.serve()
        first = d.wait(d.submit("paid"))
        self.assertEqual(first["state"], "succeeded", first)
        self.assertGreater(first["usage"]["cost_micros"], 0)
        wait_for(lambda: d.get("/v1/status").get("held_up"), 5, "the stop")
        second = d.submit("paid")
        time.sleep(1.5)
        self.assertEqual(d.run(second)["state"], "queued", "nothing new is begun")
        reasons = d.get(f"/v1/runs/{second}/why")["reasons"]
        self.assertRegex(json.dumps(reasons), "the fleet has spent .* today")
        write(f"{self.project}/stint.toml", "[budget]\ncost_per_day = 100\n")
        d.process.send_signal(signal.SIGHUP)
        self.assertEqual(d.wait(second)["state"], "succeeded")


class Logs(Case):
    TRACE = "0af7651916cd43dd8448eb211c80319c"
    speakers = 0

    def test_lines_for_programs_have_run_attempt_and_trace_and_no_secret(self):
        self.agent("teller", 'command: [sh, -c, "echo key $SOME_API_KEY; echo token $STINT_TOKEN; echo $TRACEPARENT; echo $SOME_API_KEY >&2; exit ${0}", "{{status}}"]\nargs:\n  - {name: status, default: "0"}\n')
        d = self.serve("--log", "json", env={"SOME_API_KEY": "sk-very-secret-1"})
        header = {"traceparent": f"00-{self.TRACE}-b7ad6b7169203331-01"}
        well = d.wait(d.submit("teller", header))
        ill = d.wait(d.submit("teller", args={"status": "3"}))
        self.assertEqual(well["trace"], self.TRACE)
        self.assertRegex(ill["trace"], "^[0-9a-f]{32}$")
        output = d.get(f"/v1/runs/{well['id']}/output")["head"].splitlines()
        self.assertEqual(output[:2], ["key ***", "token ***"])
        self.assertEqual(output[2].split("-")[1], self.TRACE)
        everything = json.dumps([well, ill, d.get(f"/v1/runs/{ill['id']}/events"), d.get(f"/v1/runs/{ill['id']}/output")])
        self.assertEqual(d.end(), 0)
        self.assertNotIn("sk-very-secret-1", everything + "".join(d.errors))
        self.assertNotIn(d.token, everything + "".join(d.errors))
        lines = [json.loads(line) for line in d.errors]
        of_well = [line for line in lines if line.get("run") == well["id"]]
        self.assertEqual([(line["event"], line["attempt"], line["trace"], line["level"]) for line in of_well],
                         [("run begun", 1, self.TRACE, "info"), ("attempt ended", 1, self.TRACE, "info")])
        end = [line for line in lines if line.get("run") == ill["id"]][-1]
        self.assertEqual((end["level"], end["state"], end["outcome"]), ("warning", "failed", "agent_error"))
        self.assertEqual(lines[-1]["event"], "drained")

    def output_of(self, d, command):
        self.speakers += 1
        name = f"speaker{self.speakers}"  # an agent of its own: the daemon may still know the old file of an earlier one
        self.agent(name, f"command: {json.dumps(['sh', '-c', command])}\n")
        d.process.send_signal(signal.SIGHUP)
        run = wait_for(lambda: d.ask("POST", "/v1/runs", {"agent": name})[1].get("id"), 5, "the new agent")
        self.assertEqual(d.wait(run, 60)["state"], "succeeded")
        return run, d.get(f"/v1/runs/{run}/output")

    def test_of_a_flood_both_ends_are_kept_and_nothing_is_miscounted(self):
        d = self.serve()
        run, output = self.output_of(d, "seq 1 2000000; echo THE END")
        whole = sum(len(str(i)) + 1 for i in range(1, 2_000_001)) + len("THE END\n")
        self.assertEqual((output["bytes"], output["left_out"]), (whole, whole - len(output["head"]) - len(output["tail"])))
        self.assertTrue(output["head"].startswith("1\n2\n3\n"))
        self.assertTrue(output["tail"].endswith("1999999\n2000000\nTHE END\n"), output["tail"][-100:])
        self.assertEqual((len(output["head"]), len(output["tail"])), (64 << 10, 192 << 10))
        piped = subprocess.run([STINT, "logs", run], cwd=self.project, env=self.b.env, capture_output=True, text=True, timeout=60)
        self.assertEqual(piped.stdout, output["head"] + output["tail"])
        self.assertIn(f"… {output['left_out']} bytes left out …", piped.stderr)

    def test_who_follows_a_flood_hears_how_much_he_missed(self):
        self.agent("flood", "command: [sh, -c, 'seq 1 2000000; echo THE END']\n")
        self.serve()
        said = subprocess.run([STINT, "run", "-q", "flood"], cwd=self.project, env=self.b.env, capture_output=True, text=True, timeout=60)
        self.assertEqual(said.returncode, 0, said.stderr)
        whole = sum(len(str(i)) + 1 for i in range(1, 2_000_001)) + len("THE END\n")
        missed = sum(int(count) for count in re.findall("([0-9]+) bytes of its output are left out", said.stderr))
        self.assertEqual(len(said.stdout) + missed, whole, said.stderr)
        self.assertTrue(said.stdout.endswith("2000000\nTHE END\n"))

    def test_a_line_may_be_long_and_need_not_end(self):
        d = self.serve()
        _, output = self.output_of(d, "head -c 10000000 /dev/zero | tr '\\0' x")
        self.assertEqual((output["bytes"], output["head"][:3], output["tail"][-3:]), (10_000_000, "xxx", "xxx"))
        run, output = self.output_of(d, "printf 'a\\r\\nabc'")
        self.assertEqual((output["head"], output["bytes"]), ("a\r\nabc", 6))
        raw = subprocess.run([STINT, "logs", "--raw", run], cwd=self.project, env=self.b.env, capture_output=True, timeout=20)
        self.assertEqual(raw.stdout, b"a\r\nabc")

    def test_a_reader_who_sleeps_holds_up_nobody(self):
        reader, writer = os.pipe()
        d = self.serve()
        d.close()
        process = subprocess.Popen([STINT, "serve", "--listen", "127.0.0.1:0", "--json"], cwd=self.project, env=self.b.env, stdout=subprocess.PIPE, stderr=writer, text=True)
        os.close(writer)
        self.addCleanup(os.close, reader)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        said = json.loads(process.stdout.readline())
        d.host, d.port = said["url"].removeprefix("http://").rsplit(":", 1)
        d.token = said["token"]
        for _ in range(8):  # 1,600 lines of some 150 bytes do not fit a pipe
            for run in [d.submit("quick", args={"what": "x" * 1000}) for _ in range(100)]:
                last = run
            self.assertEqual(d.wait(last, 60)["state"], "succeeded")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 0, "nor does it keep it from leaving")


class FullDisk(Case):
    settings = "[pool]\nworkers = 2\nautoscale = false\ndrain = \"2s\"\n"

    def setUp(self):
        super().setUp()
        place = f"{self.project}/.git/stint"
        os.makedirs(place)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", place], capture_output=True).returncode != 0:
            self.skipTest("only root can make a small disk")
        self.addCleanup(subprocess.run, ["umount", "-l", place], check=True)
        self.ballast = f"{place}/ballast"

    def test_a_full_disk_is_said_once_and_not_called_ready(self):
        d = self.serve()
        self.assertEqual(d.ask("GET", "/readyz")[:2], (200, "serving\n"))
        run = d.submit("slow", args={"seconds": "2"})
        wait_for(lambda: d.run(run)["state"] == "running", 10, "it to run")
        with contextlib.suppress(OSError), open(self.ballast, "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        status, body = wait_for(lambda: (lambda answer: answer if answer[0] == 503 else None)(d.ask("GET", "/readyz")[:2]), 20, "it to say so")
        self.assertIn("full", body)
        time.sleep(3)  # it is tried several times
        self.assertEqual(len([line for line in d.errors if "store can't be used" in line and "full" in line]), 1, d.errors)
        os.remove(self.ballast)
        self.assertEqual(d.wait(run)["state"], "succeeded", "what has ended is told until it is taken")
        wait_for(lambda: d.ask("GET", "/readyz")[0] == 200, 5, "it to be well again")
        again = lambda: [line for line in d.errors if "store can be used again" in line]
        wait_for(again, 10, "the line in the log")
        self.assertEqual(len(again()), 1, d.errors)

    def fill(self):
        with contextlib.suppress(OSError), open(self.ballast, "ab", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def chat(self):
        """A daemon with a run that prints, on a disk that has become full."""
        self.agent("chatty", 'command: [sh, -c, "yes some words that somebody might want to read"]\n')
        d = self.serve()
        run = d.submit("chatty")
        wait_for(lambda: d.run(run)["state"] == "running" and self.marked(), 10, "it to run")
        self.fill()
        wait_for(lambda: d.ask("GET", "/readyz")[0] == 503 and self.fill() is None, 20, "it to say so")
        return d, run

    def test_a_submit_to_a_full_store_fails_and_says_why(self):
        """It is no budget that ended (4), and no refusal of a daemon (3)."""
        self.stint("trust")
        self.stint("submit", "quick")
        self.fill()
        done = subprocess.run([STINT, "submit", "-p", "x" * 100_000], cwd=self.project, env=self.b.env, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("no space left", done.stderr)

    def test_while_an_agent_prints_it_is_said_and_a_cancel_ends_it(self):
        d, run = self.chat()
        self.assertIn("full", d.ask("GET", "/readyz")[1])
        self.assertIn("full", json.dumps(d.get(f"/v1/runs/{run}/why")))
        self.assertTrue([line for line in d.errors if "store can't be used" in line and "full" in line], d.errors)
        status, answer, headers = d.ask("POST", f"/v1/runs/{run}/cancel")
        self.assertEqual((status, self.marked()), (503, []), answer)
        self.assertIn("record", answer["detail"])
        self.assertIn("Retry-After", headers)
        os.remove(self.ballast)
        self.assertEqual(d.wait(run)["state"], "cancelled", "it is recorded when it can be")
        self.assertEqual(d.end(), 0)

    def test_a_run_in_the_foreground_is_ended_by_a_signal(self):
        self.agent("chatty", 'command: [sh, -c, "yes some words that somebody might want to read"]\n')
        self.stint("trust")
        process = subprocess.Popen([STINT, "run", "-q", "chatty"], cwd=self.project, env=self.b.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        wait_for(self.marked, 10, "it to run")
        wait_for(lambda: self.fill() is None and os.stat(self.ballast).st_size > 0, 10, "the disk to be full")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(40), 1)
        self.assertIn("the store can't record it yet", process.stderr.read())
        self.assertEqual(self.marked(), [])

    def test_while_an_agent_prints_the_daemon_leaves_when_it_is_told_to(self):
        d, run = self.chat()
        began = time.monotonic()
        self.assertEqual(d.end(40), 1, d.errors)
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(self.marked(), [])
        self.assertRegex("".join(d.errors), "not_recorded=1")
        self.assertRegex("".join(d.errors), "stint: how 1 of its runs ended could not be stored: .*full")
        os.remove(self.ballast)
        d = self.serve()
        wait_for(lambda: d.run(run)["state"] == "running" and d.run(run).get("lost") == 1, 10, "it to be taken up again")
        self.assertEqual(d.ask("POST", f"/v1/runs/{run}/cancel")[0], 200)


class Moved(Case):
    """The files of the store go away under a daemon."""

    def test_what_can_not_be_kept_is_not_accepted(self):
        d = self.serve()
        before = d.wait(d.submit("quick"))["id"]
        place = f"{self.project}/.git/stint/stint.db"
        for name in ("", "-wal", "-shm"):
            os.rename(place + name, f"{place}{name}.away")
            status, answer, _ = d.ask("POST", "/v1/runs", {"agent": "quick"})
            self.assertEqual(status, 503, answer)
            self.assertIn(f"stint.db{name} was deleted or moved", answer["detail"])
            wait_for(lambda: f"stint.db{name} was deleted" in d.ask("GET", "/readyz")[1], 10, "it to say so")
            self.assertEqual(d.ask("GET", "/readyz")[0], 503)
            os.rename(f"{place}{name}.away", place + name)
            self.assertEqual(d.wait(d.submit("quick"))["state"], "succeeded")
            wait_for(lambda: d.ask("GET", "/readyz")[0] == 200, 10, "it to be well again")
        self.assertEqual(len([line for line in d.errors if "store can't be used" in line]), 1, "once a minute")
        os.remove(place)
        self.assertEqual(d.ask("POST", "/v1/runs", {"agent": "quick"})[0], 503)
        self.assertEqual(d.run(before)["state"], "succeeded", "what is there can be read")
        self.assertEqual(d.end(), 0)
        d = self.serve()
        self.assertEqual(d.states(), {}, "a new one was begun")
        self.assertEqual(d.wait(d.submit("quick"))["state"], "succeeded")


def mismatches(value, schema, schemas, where="$"):
    """What of `value` is not as `schema` says: the part of JSON Schema that the document uses."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rsplit("/", 1)[1]]
    if "anyOf" in schema:
        if all(list(mismatches(value, each, schemas, where)) for each in schema["anyOf"]):
            yield f"{where}: none of the shapes fits"
        return
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict, "array": list, "null": type(None)}
    wanted = schema.get("type")
    if wanted:
        wanted = wanted if isinstance(wanted, list) else [wanted]
        if not any(isinstance(value, kinds[each]) and (each == "boolean" or not isinstance(value, bool)) for each in wanted):
            yield f"{where}: {value!r} is no {wanted}"
            return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is not in {schema['enum']}"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{where}: {value!r} is not like {schema['pattern']}"
    if isinstance(value, (int, float)) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{where}: {value!r} is not within its range"
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                yield f"{where}: {name} is missing"
        for name, each in value.items():
            if name in schema.get("properties", {}):
                yield from mismatches(each, schema["properties"][name], schemas, f"{where}.{name}")
            elif schema.get("additionalProperties", True) is False:
                yield f"{where}: {name} is not described"
            elif isinstance(schema.get("additionalProperties"), dict):
                yield from mismatches(each, schema["additionalProperties"], schemas, f"{where}.{name}")
    if isinstance(value, list):
        for i, each in enumerate(value):
            yield from mismatches(each, schema.get("items", {}), schemas, f"{where}[{i}]")


class Drain(Case):
    settings = "[pool]\nworkers = 6\nautoscale = false\ndrain = \"3s\"\n"

    def test_what_runs_may_finish_and_the_rest_is_handed_back(self):
        self.agent("careful", 'command: [sleep, "60"]\n', on_crash="doubt")
        d = self.serve()
        short, long, doubtful = d.submit("slow", args={"seconds": "1.5"}), d.submit("slow"), d.submit("careful")
        wait_for(lambda: all(d.run(run)["state"] == "running" for run in (short, long, doubtful)), 10, "all to run")
        d.process.send_signal(signal.SIGTERM)
        wait_for(lambda: d.ask("GET", "/readyz")[0] == 503, 5, "it to say so")
        status, body, headers = d.ask("POST", "/v1/runs", {"agent": "quick"})
        self.assertEqual((status, "Retry-After" in headers, "draining" in body["detail"]), (503, True, True))
        self.assertEqual(d.process.wait(20), 0)
        d.reader.join(5)
        self.assertRegex("".join(d.errors), "drained seconds=[0-9.]+ ended=1 handed_back=1 in_doubt=1")
        self.assertEqual(self.marked(), [])
        self.assertEqual(os.listdir(f"{self.project}/.git/stint/daemons"), [])
        d = self.serve()
        self.assertEqual(d.run(short)["state"], "succeeded")
        self.assertEqual(d.run(doubtful)["state"], "in_doubt")
        wait_for(lambda: d.run(long)["state"] == "running", 5, "it to be carried on")
        self.assertEqual(d.run(long)["attempt"], 1, "it cost no attempt")
        self.assertEqual(d.ask("POST", f"/v1/runs/{doubtful}/resolve", {"as": "done"})[1]["state"], "succeeded")

    def test_who_waits_while_it_drains_is_told_where_the_run_is(self):
        write(f"{self.project}/stint.toml", 'default_agent = "asked"\n')
        self.agent("asked", 'command: [sleep, "60"]\nargs:\n  - {name: query}\n')
        d = self.serve()
        answers = {}
        asks = {"long": ("/v1/runs", {"agent": "slow", "wait": True}), "short": ("/api/agent/run?session_id=s&query=x", None)}
        threads = [threading.Thread(target=lambda name=name, ask=ask: answers.update({name: d.ask("POST", *ask)})) for name, ask in asks.items()]
        for thread in threads:
            thread.start()
        runs = wait_for(lambda: (lambda all_of: all_of if len(all_of) == 2 else None)(d.get("/v1/runs?state=running")["runs"]), 10, "both to run")
        ids = {"short" if run["agent"] == "asked" else "long": run["id"] for run in runs}
        followed = []
        threads.append(threading.Thread(target=lambda: followed.extend(d.events("/v1/events", seconds=30))))
        threads[-1].start()
        wait_for(lambda: 'stint_http_streams 1' in d.get("/metrics"), 5, "one who follows")
        self.assertFalse(d.get("/v1/pool")["draining"])
        status, body, _ = d.ask("POST", "/v1/pool/drain", {"timeout_ms": 2000})
        since = time.monotonic()
        self.assertEqual((status, body["draining"]), (202, True))
        for again in (None, {"timeout_ms": 60000}):
            self.assertTrue(d.ask("POST", "/v1/pool/drain", again)[1]["draining"], "to ask again does not hurry")
        self.assertTrue(d.get("/v1/pool")["draining"])
        for thread in threads:
            thread.join(20)
        self.assertGreater(time.monotonic() - since, 1.9)
        self.assertEqual(d.process.wait(20), 0)
        self.assertLess(time.monotonic() - since, 5, "nobody is waited for in vain")
        for name, run in ids.items():
            status, body, headers = answers[name]
            self.assertEqual((status, headers["Location"], "Retry-After" in headers), (202, f"/v1/runs/{run}", True), answers)
            self.assertIn(run, body["detail" if name == "long" else "error"])
        self.assertEqual(followed[-1]["event"], "hand_back", "and who follows reads a whole stream")

    def test_a_drain_by_request_hurries_if_it_says_so(self):
        write(f"{self.project}/stint.toml", "[pool]\ndrain = \"60s\"\n")
        d = self.serve()
        run = d.submit("slow")
        wait_for(lambda: d.run(run)["state"] == "running", 10, "it to run")
        self.assertEqual(d.ask("POST", "/v1/pool/drain", {"hurry": 1})[0], 422)
        d.ask("POST", "/v1/pool/drain")
        time.sleep(0.5)
        self.assertIsNone(d.process.poll())
        self.stint("drain", "--hurry", "--wait")
        self.assertEqual(d.process.wait(10), 0)

    def test_a_second_signal_hurries_and_a_third_leaves_at_once(self):
        write(f"{self.project}/stint.toml", "[pool]\ndrain = \"60s\"\n")
        self.agent("stubborn", 'command: [sh, -c, "trap : TERM INT; while :; do sleep 1; done"]\n')
        for signals, most in ((2, 8), (3, 4)):
            d = self.serve()
            run = d.submit("slow" if signals == 2 else "stubborn")
            wait_for(lambda: d.run(run)["state"] == "running" and self.marked(), 10, "it to run")
            time.sleep(0.3)
            since = time.monotonic()
            for _ in range(signals):
                d.process.send_signal(signal.SIGINT)
                time.sleep(0.2)
            self.assertEqual(d.process.wait(20), 0 if signals == 2 else 130)
            self.assertLess(time.monotonic() - since, most)
            wait_for(lambda: not self.marked(), 8, "its processes to be gone")

    def test_agents_have_the_descriptors_that_the_daemon_was_given(self):
        self.agent("limits", 'command: [sh, -c, "ulimit -Sn"]\n')
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        d = self.serve()
        self.assertEqual(d.wait(d.submit("limits"))["result"], "512")
        self.assertIn(f"{hard}", re.search("Max open files.*", read(f"/proc/{d.process.pid}/limits")).group().split()[3])

    def test_a_checkout_that_comes_to_be_trusted_needs_no_more(self):
        d = Daemon(self.b, self.project)
        self.addCleanup(d.close)
        self.assertEqual(d.ask("POST", "/v1/runs", {"agent": "quick"})[0], 403)
        self.stint("trust")
        run = wait_for(lambda: d.ask("POST", "/v1/runs", {"agent": "quick"})[1].get("id"), 5, "the daemon to hear of it")
        self.assertEqual(d.wait(run)["state"], "succeeded")
        self.stint("trust", "--revoke")
        wait_for(lambda: d.ask("POST", "/v1/runs", {"agent": "quick"})[0] == 403, 5, "the daemon to hear of that")

    def test_a_reload_loses_nothing(self):
        d = self.serve()
        run = d.submit("slow", args={"seconds": "2"})
        wait_for(lambda: d.run(run)["state"] == "running", 10, "it to run")
        self.agent("fresh", 'command: [echo, new]\n')
        self.assertEqual(d.ask("POST", "/v1/runs", {"agent": "fresh"})[0], 404)
        write(f"{self.project}/.stint/agents/wrong.md", "---\nmax_concurrency: 0\n---\n")
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: d.ask("POST", "/v1/runs", {"agent": "fresh"})[0] == 201, 5, "the new agent")
        self.assertEqual(d.wait(run)["state"], "succeeded")
        write(f"{self.project}/stint.toml", "[pool\n")
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: any("not reloaded" in line for line in d.errors), 5, "it to say what is wrong")
        self.assertEqual(d.wait(d.submit("quick"))["state"], "succeeded")


    def test_an_agent_whose_file_breaks_stays_as_it_was_and_one_that_is_deleted_ends_what_it_has(self):
        self.agent("held", 'max_concurrency: 1\ncommand: [sh, -c, "sleep ${0}; echo done", "{{seconds}}"]\nargs:\n  - {name: seconds, default: "0"}\n')
        d = self.serve()
        first, second = d.submit("held", args={"seconds": "2"}), d.submit("held")
        wait_for(lambda: d.run(first)["state"] == "running", 10, "it to run")
        os.remove(f"{self.project}/.stint/agents/held.md")
        write(f"{self.project}/.stint/agents/quick.md", "---\ndescription: quick\nmax_concurrency: 0\n---\n")
        for _ in range(2):
            d.errors.clear()
            d.process.send_signal(signal.SIGHUP)
            wait_for(lambda: any("reloaded" in line for line in d.errors), 5, "it to read them again")
            self.assertEqual(d.ask("POST", "/v1/runs", {"agent": "held"})[0], 404)
            self.assertNotIn("held", [agent["name"] for agent in d.get("/v1/agents")["agents"]])
            self.assertRegex("".join(d.errors), "file is broken: kept as it was agent=quick")
        self.assertEqual(d.wait(d.submit("quick", args={"what": "still"}))["result"], "said still")
        for run in (first, second):
            self.assertEqual((d.wait(run)["state"], d.run(run)["result"]), ("succeeded", "done"))

    def test_runs_of_an_agent_that_may_not_run_any_more_wait_with_a_reason(self):
        d = self.serve("--workers", "0")
        run = d.submit("quick")
        self.stint("trust", "--revoke")
        why = wait_for(lambda: [each["detail"] for each in d.get(f"/v1/runs/{run}/why")["reasons"] if each["reason"] == "agent"], 5, "the reason")
        self.assertIn("is not trusted", why[0])
        d.ask("PUT", "/v1/pool", {"workers": 1})
        time.sleep(1.5)
        self.assertEqual(d.run(run)["state"], "queued")
        self.assertEqual(d.end(), 0)
        os.remove(f"{self.project}/.stint/agents/quick.md")
        d = self.serve()
        why = [each["detail"] for each in d.get(f"/v1/runs/{run}/why")["reasons"] if each["reason"] == "agent"]
        self.assertIn("no file of the agent 'quick'", why[0])
        self.agent("quick", "command: [echo, back]\n")
        d.process.send_signal(signal.SIGHUP)
        self.assertEqual(d.wait(run)["result"], "back")


class Deleted(Case):
    def test_a_checkout_that_is_deleted_under_a_daemon_is_named_and_not_made_again(self):
        self.agent("capped", "max_concurrency: 1\ncommand: [sleep, '60']\n")
        d = self.serve(env={"STINT_STORE": "memory"})
        os.rename(self.project, f"{self.b.home}/elsewhere")
        wait_for(lambda: "does not exist any more" in d.get("/v1/status").get("held_up", ""), 20, "it to be noticed")
        runs = [d.submit(agent) for agent in ("capped", "quick")]
        for run in runs:
            reasons = [each["detail"] for each in d.get(f"/v1/runs/{run}/why")["reasons"]]
            self.assertTrue(any(self.project in reason and "deleted or moved" in reason for reason in reasons), reasons)
        self.assertFalse(os.path.exists(self.project))
        os.rename(f"{self.b.home}/elsewhere", self.project)
        self.assertEqual(d.wait(runs[1])["state"], "succeeded", "when it is there again, they go on")


class Death(Case):
    settings = "[pool]\nworkers = 50\nautoscale = false\n"

    def test_fifty_runs_survive_the_death_of_their_daemon(self):
        """No agent process survives a second, and after the restart every run is where `on_crash` says."""
        self.agent("again", 'command: [sh, -c, "sleep 300 & setsid sleep 300 & wait"]\n')
        self.agent("doubtful", 'command: [sleep, "300"]\n', on_crash="doubt")
        d = self.serve()
        runs = {d.submit(agent): agent for agent in ("again", "doubtful") for _ in range(25)}
        wait_for(lambda: list(d.states().values()).count("running") == 50, 40, "all to run")
        wait_for(lambda: len(self.marked()) >= 25 * 3 + 25, 20, "all their processes")
        d.process.kill()
        since = time.monotonic()
        wait_for(lambda: not self.marked(), 10, "the last process to be gone")
        self.assertLess(time.monotonic() - since, 6 if "asan" in STINT else 1.5)
        d = self.serve("--workers", "0")
        wait_for(lambda: "running" not in d.states().values(), 5, "them to be taken back")
        for run, state in d.states().items():
            self.assertEqual(state, "queued" if runs[run] == "again" else "in_doubt")

    def test_a_daemon_that_is_killed_while_its_cli_starts_leaves_no_doubt(self):
        """The id of the conversation was chosen and kept before: nothing was asked in it, so the run begins anew."""
        streams = pathlib.Path(__file__).resolve().parent.parent / "streams" / "claude"
        os.makedirs(f"{self.b.home}/bin")
        write(f"{self.b.home}/bin/claude", f"""#!{sys.executable}
import sys, time
with open("{self.b.home}/starts", "a") as file:
    file.write(" ".join(word for word in sys.argv if word.startswith(("--resume", "--session-id"))) + "\\n")
starts = len(open("{self.b.home}/starts").readlines())
while starts == 1:
    time.sleep(1)
print(open("{streams}/" + ("unknown_conversation" if starts == 2 else "success") + ".jsonl").read(), flush=True)
sys.exit(1 if starts == 2 else 0)
""")
        os.chmod(f"{self.b.home}/bin/claude", 0o755)
        self.b.env["PATH"] = f"{self.b.home}/bin:{os.environ['PATH']}"
        write(f"{self.project}/.stint/agents/asks.md", "---\ndescription: asks\ndriver: claude\n---\nDo it.\n")
        d = self.serve()
        run = d.submit("asks")

        def starts():
            return read(f"{self.b.home}/starts").splitlines() if os.path.exists(f"{self.b.home}/starts") else []
        wait_for(lambda: len(starts()) == 1, 20, "the CLI to start")
        d.process.kill()
        d.process.wait()
        d = self.serve()
        wait_for(lambda: d.run(run)["state"] not in ("queued", "running", "parked"), 30, "the end of the run")
        self.assertEqual(d.run(run)["state"], "succeeded", d.run(run))
        first, second, third = starts()
        self.assertEqual(second, first.replace("--session-id=", "--resume="))
        self.assertTrue(third.startswith("--session-id=") and third != first, starts())

    def test_why_says_that_a_cli_waits_for_the_network(self):
        os.makedirs(f"{self.b.home}/bin")
        write(f"{self.b.home}/bin/claude", """#!/bin/sh
echo '{"type":"system","subtype":"init","session_id":"s"}'
echo '{"type":"system","subtype":"api_retry","attempt":1,"max_retries":1,"retry_delay_ms":600,"error_status":null,"error":"unknown"}'
exec sleep 300
""")
        os.chmod(f"{self.b.home}/bin/claude", 0o755)
        self.b.env["PATH"] = f"{self.b.home}/bin:{os.environ['PATH']}"
        write(f"{self.project}/.stint/agents/asks.md", "---\ndescription: asks\ndriver: claude\n---\nDo it.\n")
        d = self.serve()
        run = d.submit("asks")
        wait_for(lambda: "waits for the network" in self.stint("why", run), 20, "the reason")

    def test_where_the_runs_of_a_frozen_daemon_go_is_said_by_on_crash(self):
        self.agent("again", 'command: [sleep, "300"]\n')
        self.agent("once", 'command: [sleep, "300"]\n', on_crash="doubt")
        d = self.serve()
        again, once = d.submit("again"), d.submit("once")
        wait_for(lambda: len(self.marked()) == 4, 10, "both, and their wardens")
        d.process.send_signal(signal.SIGSTOP)
        self.addCleanup(d.process.send_signal, signal.SIGCONT)
        wait_for(lambda: not self.marked(), 30, "the wardens to end them")
        d.process.send_signal(signal.SIGCONT)
        wait_for(lambda: d.run(once)["state"] == "in_doubt", 10, "the doubt")
        self.assertIn("stopped for longer than the lease", d.run(once)["error"])
        wait_for(lambda: d.run(again)["state"] == "running" and d.run(again)["fence"] == 2, 20, "it to run again")

    def kill_with_wardens(self, d):
        """Nobody is left who would end the agents: a frozen daemon does not take over what its wardens leave."""
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

    def begin_writers(self):
        """A daemon, and the runs of two agents that write their mark into a journal again and again."""
        self.journal = f"{self.project}/journal"
        write(self.journal, "")
        for name, on_crash in (("again", "rerun"), ("once", "doubt")):
            self.agent(name, f'command: [sh, -c, \'while :; do echo $STINT_RUN >> {self.journal}; sleep 0.05; done\']\n', on_crash)
        d = self.serve()
        again, once = d.submit("again"), d.submit("once")
        wait_for(lambda: {f"{again}:1", f"{once}:1"} <= set(read(self.journal).split()), 10, "both to work")
        return d, again, once

    def test_what_outlives_daemon_and_warden_is_ended_before_its_run_begins_again(self):
        d, again, once = self.begin_writers()
        self.kill_with_wardens(d)
        self.assertTrue(self.marked(), "somebody works on")
        d = self.serve()
        wait_for(lambda: f"{again}:2" in read(self.journal), 15, "it to begin again")
        wait_for(lambda: d.run(once)["state"] == "in_doubt", 5, "the doubt")
        wait_for(lambda: set(read(self.journal).split()[-5:]) == {f"{again}:2"}, 10, "only the second attempt to work")
        marks = [mark for mark in read(self.journal).split() if mark.startswith(again)]
        self.assertNotIn(f"{again}:1", marks[marks.index(f"{again}:2"):], "never both at once")
        self.assertEqual(d.ask("POST", f"/v1/runs/{again}/cancel")[1]["state"], "cancelled")
        self.assertEqual(self.marked(), [])

    def test_a_cancel_without_a_daemon_ends_what_outlived_it(self):
        d, again, once = self.begin_writers()
        self.kill_with_wardens(d)
        self.assertTrue(self.marked(), "somebody works on")
        self.stint("cancel", again)
        self.stint("cancel", once, status=6)
        self.assertEqual(self.marked(), [])

    def test_a_stint_run_is_found_by_the_daemon_that_comes_after(self):
        self.stint("trust")
        self.b.folder = self.project
        run = self.b.start("run", "slow", stdout=subprocess.DEVNULL)
        wait_for(self.marked, 10, "it to run")
        run.kill()
        run.wait()
        wait_for(lambda: not self.marked(), 10, "its process to be gone")
        d = self.serve()
        wait_for(lambda: list(d.states().values()) == ["running"], 10, "the daemon to carry it on")


if __name__ == "__main__":
    STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
