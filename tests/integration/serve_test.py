#!/usr/bin/env python3
"""`stint serve` with real processes: its API. `serve_test.py STINT [CLASS…]`"""
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
import time
import unittest

import daemon_support
from host_support import read, wait_for, write


def mismatches(value, schema, schemas, where="$"):
    """Differences of `value` from `schema`: the part of JSON Schema that the document uses."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rsplit("/", 1)[1]]
    if "anyOf" in schema:
        if all(list(mismatches(value, each, schemas, where)) for each in schema["anyOf"]):
            yield f"{where}: no alternative matches"
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
        yield f"{where}: {value!r} does not match {schema['pattern']}"
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


class Api(daemon_support.Case):
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

    def test_a_stream_carries_output_on_request(self):
        self.agent("talker", 'command: [sh, -c, "for i in 1 2 3; do echo line $i; sleep 0.6; done"]\n')
        self.d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: any(agent["name"] == "talker" for agent in self.d.get("/v1/agents")["agents"]), 10, "the new agent")
        run = self.d.submit("talker")
        stream = self.d.events(f"/v1/runs/{run}/events?output=1", seconds=20)
        printed = [event for event in stream if event["event"] == "output"]
        slices = [json.loads(event["data"]) for event in printed]
        self.assertEqual("".join(each["text"] for each in slices), "line 1\nline 2\nline 3\n")
        self.assertEqual([each["offset"] for each in slices], [0] + [each["next"] for each in slices[:-1]])
        self.assertEqual((slices[-1]["next"], slices[-1]["bytes"]), (21, 21))
        self.assertGreater(len(printed), 1, "while it is printed")
        path = f"/v1/runs/{run}/output"
        self.assertEqual(self.d.get(f"{path}?from=14"), {"offset": 14, "text": "line 3\n", "next": 21, "bytes": 21})
        self.assertEqual(self.d.get(f"{path}?from=21"), {"offset": 21, "text": "", "next": 21, "bytes": 21})
        self.assertEqual(self.d.get(path)["head"], "line 1\nline 2\nline 3\n")
        self.assertEqual(self.d.ask("GET", f"{path}?from=-1")[0], 422)
        self.assertFalse(any("id" in event for event in printed), "they are not events of the run, and do not move its cursor")
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
        for body, status, text in (({"agent": "unknown"}, 404, "unknown"), ({"agent": "assistant"}, 422, "query"), ({"agent": "assistant", "args": {"query": {}}}, 422, "query"),
                                   ({"agent": "assistant", "args": {"query": "x", "wrong": 1}}, 422, "wrong"), ({}, 422, "agent"), ({"agent": "quick", "prioritty": 1}, 422, "prioritty"),
                                   ({"agent": "quick", "budget": {"attempts": 0}}, 422, "attempts"), ({"agent": "quick", "budget": {"attempts": 101}}, 422, "attempts"),
                                   ({"agent": "quick", "driver": "bogus"}, 422, "bogus"),
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

    def test_an_idempotency_key_covers_one_submission(self):
        key = {"Idempotency-Key": "once"}
        run = self.d.submit("quick", key, args={"what": "a"})
        self.assertEqual(self.d.wait(run)["state"], "succeeded")
        status, body, headers = self.d.ask("POST", "/v1/runs", {"agent": "quick", "args": {"what": "a"}}, key)
        self.assertEqual((status, body["id"], body["created"], body["state"], headers["Location"]), (200, run, False, "succeeded", f"/v1/runs/{run}"))
        for other in ({"args": {"what": "b"}}, {}, {"args": {"what": "a"}, "session": "s"}):
            status, body, _ = self.d.ask("POST", "/v1/runs", {"agent": "quick", **other}, key)
            self.assertEqual((status, "'once'" in body["detail"], run in body["detail"]), (409, True, True), body)

    def test_an_idempotency_key_outlives_the_definition_of_its_agent(self):
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

    def test_the_token_is_required(self):
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

    def test_a_deadline_is_absolute_or_relative(self):
        soon = time.time() + 2
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(soon)) + f".{int(soon % 1 * 1000):03}Z"
        run = self.d.submit("slow", deadline=moment)
        self.assertAlmostEqual(self.d.run(run)["deadline_at"] / 1000, soon, delta=0.01)
        self.assertEqual(self.d.wait(run)["state"], "expired")
        self.assertLess(time.time() - soon, 3)
        status, body, _ = self.d.ask("POST", "/v1/runs", {"agent": "slow", "deadline": "tomorrow"})
        self.assertEqual(status, 422)
        self.assertIn("'deadline' must be a time", body["detail"])

    def test_a_full_queue_answers_with_retry_after(self):
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

    def test_cancel_answers_when_all_processes_have_ended(self):
        run = self.d.submit("slow")
        wait_for(lambda: self.d.run(run)["state"] == "running" and self.marked(), 10, "it to run")
        status, receipt, _ = self.d.ask("POST", f"/v1/runs/{run}/cancel")
        self.assertEqual(self.marked(), [], "no process is left when the answer arrives")
        self.assertEqual((status, receipt["state"], receipt["processes_ended"]), (200, "cancelled", 1))
        waiting = [self.d.submit("slow", session="s") for _ in range(2)]
        self.assertEqual(self.d.ask("POST", f"/v1/runs/{waiting[1]}/cancel")[1]["state"], "cancelled")

    def test_a_waiting_client_that_leaves_cancels_unless_it_has_a_key(self):
        for headers, end in (({}, "cancelled"), ({"Idempotency-Key": "k1"}, "running")):
            connection = http.client.HTTPConnection(self.d.host, int(self.d.port), timeout=20)
            connection.request("POST", "/v1/runs", json.dumps({"agent": "slow", "wait": True}), {"Authorization": f"Bearer {self.d.token}", **headers})
            run = wait_for(lambda: next((run["id"] for run in self.d.get("/v1/runs?state=running")["runs"]), None), 10, "it to run")
            connection.close()
            time.sleep(0.5)
            wait_for(lambda: self.d.run(run)["state"] == end, 10, f"it to be {end}")
        self.assertEqual(self.d.submit("slow", {"Idempotency-Key": "k1"}), run, "the same key is the same run")

    def test_the_stream_of_the_fleet_resumes_after_any_event(self):
        for i in range(3):
            self.d.wait(self.d.submit("quick"))
        page = self.d.get("/v1/events?limit=1000")["events"]
        stream = self.d.events("/v1/events?after=", most=len(page))
        self.assertEqual([json.loads(event["data"]) for event in stream], page)
        self.assertEqual(len({event["id"] for event in stream}), len(page), "each has its own id")
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
        done = subprocess.run([daemon_support.STINT, "cancel", run], cwd=self.project, env=self.b.env, capture_output=True, text=True, timeout=30)
        self.assertEqual((done.returncode, done.stdout), (6, ""))
        self.assertIn("`stint resolve` settles it", done.stderr)

    def test_the_document_describes_the_server(self):
        document = self.d.get("/openapi.json")
        schemas = document["components"]["schemas"]
        run = self.d.submit("quick")
        self.d.wait(run)
        doubt = self.d.submit("slow")
        asked = {"get": {}, "post": {"/v1/runs": {"agent": "quick"}, "/v1/runs/{id}/resolve": {"as": "done"}}, "put": {"/v1/limits/{name}": {"capacity": 3}, "/v1/pool": {"workers": 2}}, "delete": {}}
        asked["post"] |= {"/v1/playground": {"preset": "stranger-releases", "step": 20}, "/v1/playground/{sandbox}/act": {"do": "advance", "ms": 9000}}
        wait_for(lambda: self.d.run(doubt)["state"] == "running", 10, "one to run")
        for path, methods in sorted(document["paths"].items(), key=lambda each: "drain" in each[0]):
            for method, operation in methods.items():
                target = path.replace("{id}", doubt if "cancel" in path else run).replace("{name}", "agent:quick")
                if "{sandbox}" in path:
                    target = target.replace("{sandbox}", self.d.ask("POST", "/v1/playground", asked["post"]["/v1/playground"])[1]["id"])
                if path == "/api/agent/run":
                    target += "?session_id=s&query=x"
                status, body, headers = self.d.ask(method.upper(), target, asked[method].get(path))
                self.assertIn(str(status), operation["responses"], (method, path, body))
                described = operation["responses"][str(status)]
                if "$ref" in described:
                    described = document["components"]["responses"][described["$ref"].rsplit("/", 1)[1]]
                for name, header in described.get("headers", {}).items():
                    self.assertTrue(not header.get("required") or name in headers, (method, path, status, name))
                if "{sandbox}" in path:
                    self.assertLess(status, 300, (method, path, body))
                kind = headers.get("Content-Type", "").split(";")[0]
                if status == 204:
                    continue
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

    def test_unknown_limits_and_host_limits(self):
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
        done = subprocess.run([daemon_support.STINT, "run", "quick", "you"], cwd=self.project, env=self.b.env, capture_output=True, text=True, timeout=30)
        self.assertEqual((done.returncode, done.stdout), (0, "said you\n"), done.stderr)
        self.assertIn("succeeded after", done.stderr)
        self.assertEqual(self.d.get("/v1/runs")["runs"][0]["state"], "succeeded")
        self.assertEqual(self.d.get("/v1/pool")["total_completed"], 1, "by the daemon's own pool")
        run = subprocess.Popen([daemon_support.STINT, "run", "slow", "-q"], cwd=self.project, env=self.b.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.marked, 10, "it to run")
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(15), 5)
        self.assertEqual(self.marked(), [])

    def test_a_nested_run_is_a_child_and_does_not_wait_for_its_parents_permit(self):
        self.agent("outer", f'max_concurrency: 1\ncommand: [sh, -c, "[ $0 = deep ] && exec echo deep; exec {daemon_support.STINT} run outer deep -q", "{{{{depth}}}}"]\nargs:\n  - {{name: depth, default: top}}\n')
        self.d.process.send_signal(signal.SIGHUP)
        run = wait_for(lambda: self.d.ask("POST", "/v1/runs", {"agent": "outer"})[1].get("id"), 5, "the new agent")
        for _ in range(20):  # the daemon must not claim the child first: it would wait
            ended = self.d.wait(run)
            self.assertEqual((ended["state"], ended["result"]), ("succeeded", "deep"), ended)
            self.assertEqual([each.get("parent") for each in self.d.get("/v1/runs")["runs"]][:2], [run, None])
            run = self.d.submit("outer")

    def test_the_token_of_a_run_covers_its_descendants_only(self):
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
        self.assertEqual((ended["state"], ended["parent"]), ("succeeded", run), "whatever parent it names")
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
        self.assertNotEqual(self.d.submit("quick", {"Idempotency-Key": "k9"}), keyed, "a run has its own key namespace")
        self.d.ask("POST", f"/v1/runs/{run}/cancel")
        self.d.token = token
        self.assertEqual(self.d.ask("GET", "/v1/agents")[0], 401, "the run has ended")
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


class Cost(daemon_support.Case):
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
        words = [daemon_support.STINT, "submit", "paid", "--each", "-", "--wait", "--one-budget"]
        done = subprocess.run([*words, "--cost", "0.15"], cwd=self.project, env=self.b.env, input=lines, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertRegex(done.stderr, "budget of '[a-z2-7]{12}', (which several runs share|on which this run would draw)")
        states = [run["state"] for run in d.get("/v1/runs?limit=100")["runs"]]
        self.assertIn(len(states), range(10, 41), "when nothing is left, a line may be refused")
        self.assertEqual(states.count("succeeded") + states.count("expired"), len(states), states)
        self.assertIn(states.count("succeeded"), range(1, 12), "each costs 0.097 and takes a second and a half")
        for wrong in (["--cost", "1"], ["--each", "-", "--wait"]):
            self.stint("submit", "paid", "--one-budget", *wrong, status=2)

    def test_the_daily_cost_budget_stops_new_runs(self):
        write(f"{self.project}/stint.toml", "[budget]\ncost_per_day = 0.01\n")
        d = self.serve()
        first = d.wait(d.submit("paid"))
        self.assertEqual(first["state"], "succeeded", first)
        self.assertGreater(first["usage"]["cost_micros"], 0)
        wait_for(lambda: d.get("/v1/status").get("shortage"), 5, "the stop")
        second = d.submit("paid")
        time.sleep(1.5)
        self.assertEqual(d.run(second)["state"], "queued", "nothing new is started")
        reasons = d.get(f"/v1/runs/{second}/why")["reasons"]
        short = [each["shortage"] for each in reasons if each["reason"] == "shortage"]
        self.assertEqual([(each["kind"], each["bound"]) for each in short], [("cost_per_day", 10_000)], reasons)
        self.assertGreaterEqual(short[0]["amount"], 10_000)
        self.assertRegex(self.stint("why", second), "the fleet has spent .* today")
        write(f"{self.project}/stint.toml", "[budget]\ncost_per_day = 100\n")
        d.process.send_signal(signal.SIGHUP)
        self.assertEqual(d.wait(second)["state"], "succeeded")


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
