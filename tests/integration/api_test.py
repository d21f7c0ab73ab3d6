#!/usr/bin/env python3
"""The API as real clients use it: what it refuses, and what a client that retries can rely on. `api_test.py STINT [CLASS…]`"""
import contextlib
import json
import os
import re
import resource
import socket
import sys
import unittest

import daemon_support
from host_support import read, wait_for


class Refused(daemon_support.Case):
    """An ambiguous or invalid request changes nothing and gets the reason."""
    settings = 'default_agent = "quick"\n[pool]\nworkers = 2\nautoscale = false\n[limits]\nspare = 1\n'

    def setUp(self):
        super().setUp()
        self.agent("echo", 'command: [printf, "%s", "{{x}}"]\nargs:\n  - {name: x, required: true}\n')
        self.d = self.serve()

    def raw(self, method, path, body=b"", headers=None):
        connection = self.d.connection(30)
        try:
            connection.request(method, path, body, {"Authorization": f"Bearer {self.d.token}", **(headers or {})})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        finally:
            connection.close()

    def assert_refused(self, status, *request):
        answer = self.raw(*request)
        self.assertEqual((answer[0], answer[1].get("status")), (status, status), (request, answer))

    def test_a_number_reaches_the_command_unchanged(self):
        for number in ("0.5", "100.0", "1e400", "-0", "12345678901234567890"):
            status, run = self.raw("POST", "/v1/runs", b'{"agent":"echo","wait":true,"args":{"x":%s}}' % number.encode())
            self.assertEqual((status, run["result"]), (200, number), run)

    def test_bodies(self):
        fields = ["agent", "args", "words", "prompt", "session", "parent", "priority", "budget", "deadline", "deadline_ms", "delay_ms", "driver", "model", "wait", "parent_waits"]
        for field in fields:
            self.assert_refused(422, "POST", "/v1/runs", json.dumps({"prompt": "p", field: None}))
        for body in (b'{"agent":"quick","agent":"quick"}', b'{"agent":"quick","args":{"what":"a","what":"b"}}', b'{"agent":"quick","args":{"what":"a\\u0000b"}}',
                     b'{"agent":"quick","args":{"what":"\xff"}}', b'{"agent":"quick","args":{"what":"\\ud800"}}', b'{"agent":"quick","session":"\\u0000"}',
                     b'{"agent":"quick","deadline_ms":5,"deadline":"2030-01-01T00:00:00Z"}', b'{"agent":"quick","priority":1.5}', b'{"agent":"quick","priority":1e400}',
                     b'{"agent":"quick"}{}', b'{"agent":"quick","session":"%s"}' % (b"s" * 513), b'{"agent":"quick","model":"%s"}' % (b"m" * 257)):
            self.assert_refused(422, "POST", "/v1/runs", body)
        for key in ("k" * 513, "\xff"):
            self.assert_refused(422, "POST", "/v1/runs", b'{"agent":"quick"}', {"Idempotency-Key": key})
        for path, body in (("/v1/pool", b'{"workers":null}'), ("/v1/pool", b'{"workers":-1}'), ("/v1/limits/agent:quick", b'{"capacity":null}'), ("/v1/limits/agent:quick", b"")):
            self.assert_refused(422, "PUT", path, body)
        self.assertEqual(self.d.get("/v1/runs")["runs"], [], "no run was created")
        self.assertEqual(self.raw("POST", "/v1/runs", b'{"agent":"quick","priority":1.0,"budget":{"attempts":2.0}}')[0], 201)

    def operations(self):
        """Every operation of the document: method, a path that exists, and its statuses."""
        run = self.d.submit("quick")
        self.d.wait(run)
        for path, methods in self.d.get("/openapi.json")["paths"].items():
            for method, operation in methods.items():
                yield method.upper(), path.replace("{id}", run).replace("{name}", "agent:quick"), operation["responses"]

    def test_every_operation_refuses_unknown_fields(self):
        for method, path, statuses in self.operations():
            for body, query in ((b'{"nosuch":1}', ""), (b'{"nosuch":{"deep":[1]},"":0}', ""), (b"", "?x=1&x=2"), (b"", "?limit=1&%6Cimit=1"), (b"", "?after=1&after=")):
                status, answer = self.raw(method, path + query, body)
                self.assertEqual(status, 422, (method, path, query, body, answer))
                self.assertIn("422", statuses, (method, path))
                self.assertIn("nosuch" if body else "twice", answer["detail"])
        self.assertEqual(len(self.d.states()), 1, "no run was created")

    def test_every_operation_refuses_unknown_parameters(self):
        """A misspelt filter would list everything. A monitor may add its own parameters to probes and metrics."""
        watched = ("/", "/healthz", "/readyz", "/metrics")
        for method, path, statuses in self.operations():
            if path in watched:
                self.assertEqual(self.d.ask(method, path + "?nosuch=1")[0], 200, path)
                continue
            for query in ("nosuch=1", "%20=1", "limit%20=1", "state%20agent=1", "=1"):
                status, answer = self.raw(method, f"{path}?{query}")
                self.assertEqual(status, 422, (method, path, query, answer))
                self.assertIn("there is no parameter", answer["detail"])

    def test_an_empty_idempotency_key_is_refused(self):
        for key in ("", " ", "\t"):
            self.assert_refused(422, "POST", "/v1/runs", b'{"agent":"quick"}', {"Idempotency-Key": key})
            self.assert_refused(422, "POST", "/api/agent/run?session_id=s&query=x", b"", {"Idempotency-Key": key})
        self.assertEqual(self.d.states(), {})

    def test_a_parent_may_be_named_by_a_prefix_of_its_id(self):
        parent = self.d.submit("slow", args={"seconds": "30"})
        wait_for(lambda: self.d.run(parent)["state"] == "running", 20, "it to run")
        child = self.d.submit("quick", parent=parent[:8])
        self.assertEqual(self.d.run(child)["parent"], parent)

    def test_a_limit_that_no_agent_takes_can_be_resized(self):
        self.assertEqual(self.raw("PUT", "/v1/limits/spare", b'{"capacity":3}')[0], 200)
        self.assertEqual(next(each for each in self.d.get("/v1/limits")["limits"] if each["name"] == "spare")["capacity"], 3)

    def test_every_operation_refuses_doubled_headers(self):
        own = f"Authorization: Bearer {self.d.token}"
        for method, path, statuses in self.operations():
            for lines in ((own, "Authorization: Bearer x"), ("Authorization: Bearer x", own), (own, "Content-Type: application/json", "content-type: text/plain"),
                          (own, "Idempotency-Key: a", "IDEMPOTENCY-KEY: a"), (own, f"Origin: http://{self.d.host}:{self.d.port}", "Origin: http://elsewhere"),
                          (own, "Content-Length: 0", "Content-Length: 2"), (own, "Content-Length: 0, 0"), (own, "Content-Length: 2", "Transfer-Encoding: chunked"),
                          (own, "Last-Event-ID: 1", "Last-Event-ID: 2"), (own, "traceparent: a", "traceparent: b")):
                head = "\r\n".join((f"{method} {path} HTTP/1.1", f"Host: {self.d.host}:{self.d.port}", *lines, "", ""))
                with socket.create_connection((self.d.host, int(self.d.port)), 30) as client:
                    client.sendall(head.encode())
                    said = b"".join(iter(lambda: client.recv(65536), b""))
                self.assertTrue(said.startswith(b"HTTP/1.1 400 "), (method, path, lines, said[:300]))
                self.assertIn("400", statuses, (method, path))
        self.assertEqual(len(self.d.states()), 1)

    def test_no_name_is_echoed_whole(self):
        long, hostile = "n" * 7000, "%1b%5b2J%c2%9b%e2%80%ae%0d%0aX"
        for method, path, body in (("POST", "/v1/runs", {"agent": long * 100}), ("POST", "/v1/runs", {"agent": "quick", long * 100: 1}), ("POST", "/v1/runs", {"prompt": "p", "driver": long * 100}),
                                   ("POST", "/v1/runs", {"agent": "quick", "budget": {long * 100: 1}}), ("POST", "/v1/runs", {"agent": "quick", "args": {long * 100: 1}}),
                                   ("POST", "/v1/runs", {"agent": "quick", "args": {"what": {long * 100: 1}}}), ("POST", "/v1/runs", {"agent": "quick", "parent": long * 100}),
                                   ("POST", "/v1/runs", {"agent": "quick", "deadline": long * 100}), ("GET", f"/v1/runs/{long}", None), ("GET", f"/v1/runs/{hostile}", None),
                                   ("PUT", f"/v1/limits/{long}", {"capacity": 1}), ("PUT", f"/v1/limits/{hostile}", {"capacity": 1}), ("POST", f"/v1/limits/{long}/pause", None),
                                   ("POST", f"/v1/limits/{hostile}/resume", None), ("GET", f"/{long}", None), ("GET", f"/v1/runs?state={long}", None), ("GET", f"/v1/runs?state={hostile}", None),
                                   ("GET", f"/v1/runs?limit={long}", None), ("GET", f"/v1/runs?{long[:3500]}=1&{long[:3500]}=2", None), ("GET", f"/v1/events?after={long}", None), ("GET", f"/v1/events?after={hostile}", None),
                                   ("GET", f"/v1/runs?{long}=%ff", None), ("X" * 7000, "/v1/runs", None)):
            status, answer = self.raw(method, path, b"" if body is None else json.dumps(body))
            self.assertIn(status, (404, 405, 422), (method[:9], path[:60]))
            self.assertLess(len(answer["detail"]), 600, (method[:9], path[:60], answer["detail"][:200]))
            self.assertRegex(answer["detail"], r"\A[^\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]+\Z")
        key = {"Idempotency-Key": "k" * 500}
        self.assertEqual(self.raw("POST", "/v1/runs", b'{"agent":"quick"}', key)[0], 201)
        status, answer = self.raw("POST", "/v1/runs", b'{"agent":"quick","args":{"what":"other"}}', key)
        self.assertEqual((status, len(answer["detail"]) < 300), (409, True), answer)

    def test_a_budget_of_cost_is_never_rounded_to_nothing(self):
        for cost in (b"1e-7", b"0.0000004", b"1e-300"):
            self.assert_refused(422, "POST", "/v1/runs", b'{"agent":"quick","budget":{"cost":%s}}' % cost)
        status, run = self.raw("POST", "/v1/runs", b'{"agent":"quick","budget":{"cost":0.000001}}')
        self.assertEqual((status, self.d.run(run["id"])["budget"]["cost_micros"]), (201, 1))

    def test_media_types(self):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/xml", "multipart/form-data; boundary=x"):
            self.assert_refused(415, "POST", "/v1/runs", b'{"agent":"quick"}', {"Content-Type": kind})
        for headers in ({}, {"Content-Type": "application/json"}, {"content-type": "Application/JSON; charset=utf-8"}):
            self.assertEqual(self.raw("POST", "/v1/runs", b'{"agent":"quick"}', headers)[0], 201, headers)
        run = self.d.submit("quick")
        self.d.wait(run)
        for accept in ("Text/Event-Stream", "text/event-stream;charset=utf-8", "text/html, text/event-stream;q=0.5"):
            self.assertEqual([event["event"] for event in self.d.events(f"/v1/runs/{run}/events", {"Accept": accept})], ["enqueued", "claimed", "succeeded"], accept)

    def test_targets_and_cursors(self):
        run = self.d.submit("quick")
        seq = self.d.wait(run) and len(self.d.get(f"/v1/runs/{run}/events")["events"])
        for path in ("/v1/runs?session=%ff", "/v1/runs/%ff", "/v1/events?after=%80", f"/v1/runs/{run}/events?output=-1", f"/v1/runs/{run}/events?output=2",
                     f"/v1/runs/{run}/events?after={seq + 1}", "/v1/events?after=99999999"):
            self.assert_refused(422, "GET", path)
        self.assert_refused(422, "POST", "/api/agent/run?session_id=s&query=%ff")
        self.assert_refused(422, "POST", f"/api/agent/run?session_id={'s' * 513}&query=x")
        self.assert_refused(422, "POST", "/api/agent/run?session_id=s&query=x", b"", {"Idempotency-Key": "k" * 513})
        stream = {"Accept": "text/event-stream"}
        for path, last in ((f"/v1/runs/{run}/events", str(seq + 1)), ("/v1/events", "99999999")):
            self.assert_refused(422, "GET", path, b"", {**stream, "Last-Event-ID": last})
        self.assertEqual(self.raw("GET", f"/v1/runs/{run}/events", b"", {**stream, "Last-Event-ID": str(seq)})[0], 204)
        for path in (f"/v1/runs/{run}/events?limit=x", "/v1/events?limit=0"):
            self.assert_refused(422, "GET", path, b"", stream)
        self.assertEqual(len(self.d.events(f"/v1/runs/{run}/events", {"Last-Event-ID": ""})), seq, "an empty one counts as absent")


class Memory(daemon_support.Case):
    """The memory that a client can make the daemon use is bounded, with or without a token."""

    def test_without_a_token_no_body_is_read(self):
        d = self.serve()
        for request in ("POST /healthz", "GET /healthz", "PUT /readyz"):
            with socket.create_connection((d.host, int(d.port)), 30) as client:
                client.sendall(f"{request} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n".encode())
                self.assertTrue(client.recv(100).startswith(b"HTTP/1.1 401 "), request)  # before any of the body arrives

    def test_a_page_of_runs_omits_their_prompts(self):
        d = self.serve()
        big = "x" * 3_000_000
        d.submit("quick")
        peak = lambda: int(re.search(r"VmHWM:\s+(\d+)", read(f"/proc/{d.process.pid}/status")).group(1))
        for _ in range(30):
            d.ask("POST", "/v1/runs", {"prompt": big, "delay_ms": 3600_000})
        before = peak()
        for _ in range(3):
            page = d.get("/v1/runs?limit=1000")["runs"]
        self.assertEqual(len(page), 31)
        self.assertEqual(page[0]["title"], "x" * 77 + "…")
        self.assertLess(peak() - before, 80_000, "kB")  # with a sanitizer; without one a few MiB


class Waits(daemon_support.Case):
    """A client that waits for the end of its run, in all the ways in which clients do that."""

    def test_a_client_that_half_closes_gets_the_end_of_its_run(self):
        d = self.serve()
        body = json.dumps({"agent": "slow", "args": {"seconds": "1"}, "wait": True}).encode()
        head = f"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {d.token}\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection((d.host, int(d.port)), 30) as client:
            client.sendall(head.encode() + body)
            client.shutdown(socket.SHUT_WR)
            said = b"".join(iter(lambda: client.recv(65536), b""))
        final = said[said.rindex(b"HTTP/1.1 "):]
        self.assertTrue(final.startswith(b"HTTP/1.1 200 "), said)
        self.assertEqual(json.loads(final.partition(b"\r\n\r\n")[2])["state"], "succeeded")


class Crowd(daemon_support.Case):
    """With any number of clients the operator gets in and runs continue."""

    def test_neither_subscribers_nor_incomplete_heads_lock_the_operator_out(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        d = self.serve()
        stream = f"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {d.token}\r\nAccept: text/event-stream\r\n\r\n".encode()
        for bytes_sent, places in ((b"GET /healthz HTTP/1.1\r\nHost: lo", 1100), (stream, 1024)):
            with contextlib.ExitStack() as closing:
                for _ in range(places):
                    closing.enter_context(socket.create_connection((d.host, int(d.port)), 30)).sendall(bytes_sent)
                if bytes_sent is stream:
                    wait_for(lambda: "\nstint_http_streams 1024\n" in d.ask("GET", "/metrics")[1], 60, "all subscribers")
                    for ask in (("GET", "/v1/events", None, {"Accept": "text/event-stream"}), ("POST", "/v1/runs", {"agent": "quick", "wait": True})):
                        status, _, headers = d.ask(*ask)
                        self.assertEqual((status, "Retry-After" in headers), (503, True), ask)
                self.assertEqual(d.ask("GET", "/healthz")[0], 200)
                run = d.submit("slow")
                wait_for(lambda: d.run(run)["state"] == "running", 20, "it to run")
                self.assertEqual(d.ask("POST", f"/v1/runs/{run}/cancel")[1]["state"], "cancelled")
                self.assertEqual(d.ask("PUT", "/v1/pool", {"workers": 3})[0], 200)
            wait_for(lambda: "\nstint_http_streams 0\n" in d.ask("GET", "/metrics")[1], 60, "them to go")


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
