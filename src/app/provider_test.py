#!/usr/bin/env python3
"""Runs `stint provider` and talks to it over real sockets: each protocol, each fault, clients that leave or read slowly.

    provider_test.py PATH-TO-STINT
"""
import http.client
import json
import os
import pathlib
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

STINT = sys.argv.pop(1)
SLOW = 6 if "asan" in STINT else 1  # sanitizers: how much longer things may take
STREAMS = 200


class Provider:
    """A running provider."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([STINT, "provider", "--json", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.stderr.read())
        self.listening = json.loads(line)
        host, port = self.listening["address"].rsplit(":", 1)
        self.address = (host, int(port))

    def close(self, by=signal.SIGTERM):
        self.process.send_signal(by)
        rest, errors = self.process.communicate(timeout=20 * SLOW)
        return self.process.returncode, rest, errors

    def call(self, method, path, body=None, headers=None):
        """(status, headers, body) of one request on a connection of its own."""
        connection = http.client.HTTPConnection(*self.address, timeout=20 * SLOW)
        try:
            connection.request(method, path, body if isinstance(body, (str, bytes, type(None))) else json.dumps(body), headers or {})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def stats(self):
        return json.loads(self.call("GET", "/_/stats")[2])

    def records(self):
        return [json.loads(line) for line in self.call("GET", "/_/requests")[2].decode().splitlines()]

    def stats_when(self, wanted, seconds=10):
        end = time.monotonic() + seconds * SLOW
        while True:
            stats = self.stats()
            if wanted(stats):
                return stats
            if time.monotonic() > end:
                raise AssertionError(f"not seen within {seconds} s: {stats}")
            time.sleep(0.005)

    def script(self, text):
        status, _, body = self.call("POST", "/_/script", text.encode())
        assert status == 200, body


def message(prompt, stream=True, **more):
    return {"model": "simulated", "max_tokens": 100_000, "stream": stream, "messages": [{"role": "user", "content": prompt}], **more}


def events(body):
    """The (name, data) pairs of a stream."""
    found = []
    for part in body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in part.splitlines() if ": " in line)
        if fields:
            found.append((fields.get("event", ""), fields["data"]))
    return found


def raw_request(path, body):
    text = json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(text)}\r\n\r\n".encode() + text


def open_stream(provider, prompt, path="/v1/messages"):
    """A socket that has sent its request and read the first bytes of the stream."""
    client = socket.create_connection(provider.address, timeout=20 * SLOW)
    client.sendall(raw_request(path, message(prompt)))
    got = b""
    while b"\r\n\r\n" not in got or b"data:" not in got:
        piece = client.recv(4096)
        assert piece, got
        got += piece
    return client


def read_to_end(client):
    """(bytes, how it ended: "closed" or "reset")"""
    got = b""
    while True:
        try:
            piece = client.recv(65536)
        except ConnectionResetError:
            return got, "reset"
        if not piece:
            return got, "closed"
        got += piece


class WithProvider(unittest.TestCase):
    def setUp(self):
        self.provider = Provider()

    def tearDown(self):
        code, _, errors = self.provider.close()
        self.assertEqual(code, 0, errors)
        self.assertEqual(errors, "")

    def ask(self, prompt, path="/v1/messages", **more):
        return self.provider.call("POST", path, message(prompt, **more))


class Messages(WithProvider):
    def test_whole(self):
        status, headers, body = self.ask("@provider: text=\"hello you\" cache_read=7 cache_write=5", stream=False)
        answer = json.loads(body)
        self.assertEqual((status, headers["content-type"]), (200, "application/json"))
        self.assertIn("request-id", headers)
        self.assertEqual(answer["content"], [{"type": "text", "text": "hello you"}])
        self.assertEqual((answer["type"], answer["role"], answer["stop_reason"]), ("message", "assistant", "end_turn"))
        usage = answer["usage"]
        self.assertEqual((usage["output_tokens"], usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]), (2, 7, 5))

    def test_stream(self):
        status, headers, body = self.ask("@provider: thinking=hm text=\"hello you\"")
        found = events(body)
        self.assertEqual((status, headers["content-type"].split(";")[0]), (200, "text/event-stream"))
        names = [name for name, _ in found]
        self.assertEqual((names[0], names[-2:]), ("message_start", ["message_delta", "message_stop"]))
        for name, data in found:
            self.assertEqual(json.loads(data)["type"], name)
        deltas = [json.loads(data)["delta"] for name, data in found if name == "content_block_delta"]
        self.assertEqual("".join(delta.get("text", "") for delta in deltas), "hello you")
        self.assertEqual("".join(delta.get("thinking", "") for delta in deltas), "hm")
        self.assertEqual(names.count("content_block_start"), names.count("content_block_stop"))

    def test_tool_call_then_the_answer_after_its_result(self):
        prompt = '@provider: tool=Bash input={"command": "echo \\"a b\\""}\n@provider: text=finished'
        answer = json.loads(self.ask(prompt, stream=False)[2])
        self.assertEqual(answer["stop_reason"], "tool_use")
        (call,) = answer["content"]
        self.assertEqual((call["type"], call["name"], call["input"]), ("tool_use", "Bash", {"command": 'echo "a b"'}))
        conversation = [
            {"role": "user", "content": [{"type": "text", "text": "<system-reminder>be brief</system-reminder>"}, {"type": "text", "text": prompt}]},
            {"role": "assistant", "content": answer["content"]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "a b"}]},
        ]
        _, _, body = self.provider.call("POST", "/v1/messages", message("", stream=False, messages=conversation))
        self.assertEqual(json.loads(body)["content"], [{"type": "text", "text": "finished"}])
        parts = [json.loads(data) for name, data in events(self.ask(prompt)[2]) if name == "content_block_delta"]
        self.assertEqual(json.loads("".join(part["delta"]["partial_json"] for part in parts)), {"command": 'echo "a b"'})

    def test_a_conversation_that_is_kept_here_goes_on_with_its_tool_results_alone(self):
        # What the tool runner of Anthropic's Python SDK sends.
        prompt = '@provider: tool=add input={"a": 1}\n@provider: tool=add input={"a": 2}\n@provider: text=finished'
        answer = json.loads(self.ask(prompt, stream=False, thread={"type": "create"})[2])
        for wanted in ({"a": 2}, None):
            (call,) = answer["content"]
            result = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": [{"type": "text", "text": "3"}]}]}]
            thread = {"type": "continue", "previous_message_id": answer["id"]}
            answer = json.loads(self.provider.call("POST", "/v1/messages?beta=true", message("", stream=False, messages=result, thread=thread))[2])
            (block,) = answer["content"]
            self.assertEqual(block.get("input"), wanted)
        self.assertEqual((block["text"], answer["stop_reason"]), ("finished", "end_turn"))
        thread = {"type": "continue", "previous_message_id": "msg_never"}
        status, _, body = self.provider.call("POST", "/v1/messages", message("", messages=[], thread=thread))
        self.assertEqual((status, json.loads(body)["error"]["details"]), (404, {"error_code": "thread_not_found"}))

    def test_an_answer_ends_at_the_tokens_that_the_caller_allows(self):
        answer = json.loads(self.ask("@provider: tokens=50", stream=False, max_tokens=3)[2])
        self.assertEqual((answer["stop_reason"], answer["usage"]["output_tokens"]), ("max_tokens", 3))
        deltas = [json.loads(data) for name, data in events(self.ask("@provider: tokens=50", max_tokens=3)[2]) if name == "message_delta"]
        self.assertEqual([(delta["delta"]["stop_reason"], delta["usage"]["output_tokens"]) for delta in deltas], [("max_tokens", 3)])
        self.assertEqual(self.ask("hello", stream=False, max_tokens=0)[0], 400)

    def test_one_model(self):
        theirs = {"anthropic-version": "2023-06-01"}
        model = json.loads(self.provider.call("GET", "/v1/models/claude-sonnet-5?beta=true", headers=theirs)[2])
        self.assertEqual((model["type"], model["id"]), ("model", "claude-sonnet-5"))
        model = json.loads(self.provider.call("GET", "/v1/models/org/gpt-x")[2])
        self.assertEqual((model["object"], model["id"]), ("model", "org/gpt-x"))
        self.assertEqual(json.loads(self.provider.call("GET", "/v1beta/models/gemini-x")[2])["name"], "models/gemini-x")
        self.assertIn("models/simulated", [each["name"] for each in json.loads(self.provider.call("GET", "/v1beta/models")[2])["models"]])

    def test_without_a_script_the_same_prompt_gets_the_same_short_answer(self):
        texts = [json.loads(self.ask(prompt, stream=False)[2])["content"][0]["text"] for prompt in ("one", "one", "two", "three", "four")]
        self.assertEqual(texts[0], texts[1])
        self.assertGreater(len(set(texts)), 2)
        self.assertLess(max(map(len, texts)), 300)

    def test_count_tokens_models_and_what_clis_probe(self):
        self.assertGreater(json.loads(self.provider.call("POST", "/v1/messages/count_tokens?beta=true", message("hello"))[2])["input_tokens"], 10)
        self.assertEqual(self.provider.call("HEAD", "/")[0], 200)
        self.assertEqual(self.provider.call("GET", "/")[0], 200)
        ours = json.loads(self.provider.call("GET", "/v1/models", headers={"anthropic-version": "2023-06-01"})[2])
        theirs = json.loads(self.provider.call("GET", "/v1/models")[2])
        self.assertEqual(ours["data"][0]["type"], "model")
        self.assertEqual(theirs["data"][0]["object"], "model")
        self.assertEqual(self.provider.call("GET", "/v1/nothing")[0], 404)

    def test_a_line_that_cannot_be_read_is_refused_with_the_reason(self):
        for line, reason in (("colour=red", "unknown key"), ("delay=soon", "like 2s"), ("fault=199", "from 400 to 599"), ('text="open', "not closed")):
            status, _, body = self.ask(f"@provider: {line}")
            self.assertEqual(status, 400)
            self.assertIn(reason, json.loads(body)["error"]["message"])
        self.assertEqual(self.provider.stats()["bad_requests"], 4)
        for body in ("", "[]", "{", '{"model": "x"}', '{"messages": []}', '{"messages": [{"role": "user", "content": "x"}]}', "\xff"):
            self.assertEqual(self.provider.call("POST", "/v1/messages", body.encode("latin-1"))[0], 400, body)

    def test_two_requests_sent_at_once_are_answered_in_order_on_one_connection(self):
        with socket.create_connection(self.provider.address, timeout=20) as client:
            client.sendall(b"".join(raw_request("/v1/messages", message(f"@provider: text={word}")) for word in ("first", "second")))
            got = b""
            while got.count(b"message_stop\"}") < 2:
                piece = client.recv(65536)
                self.assertTrue(piece, got)
                got += piece
        self.assertLess(got.index(b'"first"'), got.index(b'"second"'))
        self.assertEqual(self.provider.stats_when(lambda stats: stats["active"] == 0)["closed_early"], 0)


class OpenAi(WithProvider):
    def test_chat_whole_and_stream(self):
        answer = json.loads(self.ask("@provider: text=\"hello you\" cache_read=4", path="/v1/chat/completions", stream=False)[2])
        self.assertEqual(answer["choices"][0]["message"]["content"], "hello you")
        self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
        self.assertEqual(answer["usage"]["completion_tokens"], 2)
        self.assertEqual(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 4)
        body = self.ask("@provider: text=hello tool=f input={\"a\": 1}", path="/v1/chat/completions", stream_options={"include_usage": True})[2]
        found = events(body)
        self.assertEqual(found[-1][1], "[DONE]")
        chunks = [json.loads(data) for _, data in found[:-1]]
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
        self.assertEqual("".join(delta.get("content") or "" for delta in deltas), "hello")
        calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
        self.assertEqual((calls[0]["function"]["name"], calls[0]["index"]), ("f", 0))
        self.assertEqual(json.loads("".join(call["function"]["arguments"] for call in calls)), {"a": 1})
        self.assertIn("usage", chunks[-1])
        without = events(self.ask("hi", path="/v1/chat/completions")[2])
        self.assertFalse(any("usage" in json.loads(data) for _, data in without[:-1]), "only if it was asked for")

    def test_responses_whole_and_stream(self):
        asked = {"model": "simulated", "input": [{"role": "user", "content": [{"type": "input_text", "text": '@provider: text="hello you" tool=f input={"a": 1}\n@provider: text=finished'}]}]}
        answer = json.loads(self.provider.call("POST", "/v1/responses", asked)[2])
        text, call = answer["output"]
        self.assertEqual((answer["status"], text["content"][0]["text"], json.loads(call["arguments"])), ("completed", "hello you", {"a": 1}))
        found = [json.loads(data) for _, data in events(self.provider.call("POST", "/v1/responses", {**asked, "stream": True})[2])]
        self.assertEqual([event["sequence_number"] for event in found], list(range(len(found))))
        self.assertEqual((found[0]["type"], found[-1]["type"]), ("response.created", "response.completed"))
        self.assertEqual("".join(event["delta"] for event in found if event["type"] == "response.output_text.delta"), "hello you")
        self.assertEqual(found[-1]["response"]["usage"]["output_tokens"], 3)
        asked["input"] += [text, call, {"type": "function_call_output", "call_id": call["call_id"], "output": "1"}]
        second = json.loads(self.provider.call("POST", "/v1/responses", asked)[2])
        self.assertEqual(second["output"][0]["content"][0]["text"], "finished")

    def test_gemini_whole_and_stream(self):
        asked = {"contents": [{"role": "user", "parts": [{"text": '@provider: text="hello you" tool=f input={"a": 1}'}]}]}
        answer = json.loads(self.provider.call("POST", "/v1beta/models/g-1:generateContent", asked)[2])
        parts = answer["candidates"][0]["content"]["parts"]
        self.assertEqual((parts[0]["text"], parts[1]["functionCall"]["args"], answer["modelVersion"]), ("hello you", {"a": 1}, "g-1"))
        found = [json.loads(data) for _, data in events(self.provider.call("POST", "/v1beta/models/g-1:streamGenerateContent?alt=sse", asked)[2])]
        self.assertEqual(found[-1]["candidates"][0]["finishReason"], "STOP")
        self.assertEqual(found[-1]["usageMetadata"]["candidatesTokenCount"], 3)


class Faults(WithProvider):
    def test_statuses_in_each_protocols_form(self):
        for fault, kind in ((400, "invalid_request_error"), (401, "authentication_error"), (429, "rate_limit_error"), (500, "api_error"), (529, "overloaded_error")):
            status, headers, body = self.ask(f"@provider: fault={fault}")
            self.assertEqual((status, json.loads(body)["error"]["type"]), (fault, kind))
            self.assertNotIn("retry-after", headers)
        status, headers, body = self.ask("@provider: fault=429 retry_after=3", path="/v1/chat/completions")
        self.assertEqual((status, headers["retry-after"], json.loads(body)["error"]["code"]), (429, "3", "rate_limit_exceeded"))
        status, _, body = self.provider.call("POST", "/v1beta/models/g:generateContent", {"contents": [{"parts": [{"text": "@provider: fault=429"}]}]})
        self.assertEqual((status, json.loads(body)["error"]["status"]), (429, "RESOURCE_EXHAUSTED"))
        self.assertEqual(self.provider.stats()["faults"], 7)

    def test_spend_limit_has_no_retry_after(self):
        status, headers, body = self.ask("@provider: fault=spend_limit")
        self.assertEqual((status, json.loads(body)["error"]["details"]["error_code"]), (429, "enforced_spend_limit_reached"))
        self.assertNotIn("retry-after", headers)
        self.assertEqual(json.loads(self.ask("@provider: fault=spend_limit", path="/v1/chat/completions")[2])["error"]["code"], "insufficient_quota")

    def test_headers_and_message_of_ones_own(self):
        _, headers, body = self.ask('@provider: fault=429 message="come back later" header="anthropic-ratelimit-unified-reset: 12345"')
        self.assertEqual((headers["anthropic-ratelimit-unified-reset"], json.loads(body)["error"]["message"]), ("12345", "come back later"))

    def test_times_then_fine(self):
        prompt = "@provider: text=fine fault=529 times=2"
        self.assertEqual([self.ask(prompt, stream=False)[0] for _ in range(4)], [529, 529, 200, 200])

    def test_a_fault_is_switched_on_and_off_while_it_runs(self):
        self.assertEqual(self.ask("x")[0], 200)
        self.provider.script('[[reply]]\nfault = 503\nretry_after = 1\n')
        status, headers, _ = self.ask("x")
        self.assertEqual((status, headers["retry-after"]), (503, "1"))
        self.provider.script(json.dumps({"reply": [{"match": "x", "text": "back", "turn": 0}]}))
        self.assertEqual(json.loads(self.ask("x", stream=False)[2])["content"][0]["text"], "back")
        status, _, body = self.provider.call("POST", "/_/script", '[[reply]]\ncolour = "red"\n')
        self.assertEqual(status, 400)
        self.assertIn(b"reply 1: colour=red: unknown key", body)
        self.assertEqual(json.loads(self.ask("x", stream=False)[2])["content"][0]["text"], "back", "a bad script changes nothing")
        self.provider.call("DELETE", "/_/script")
        self.assertNotEqual(json.loads(self.ask("x", stream=False)[2])["content"][0]["text"], "back")

    def test_hang_says_nothing_until_the_client_leaves(self):
        with socket.create_connection(self.provider.address) as client:
            client.sendall(raw_request("/v1/messages", message("@provider: fault=hang")))
            self.provider.stats_when(lambda stats: stats["active"] == 1)
            self.assertEqual(select.select([client], [], [], 0.3)[0], [])
        stats = self.provider.stats_when(lambda stats: stats["active"] == 0)
        self.assertEqual((stats["closed_early"], stats["tokens"], stats["tokens_after_gone"]), (1, 0, 0))

    def test_hang_in_the_stream(self):
        with open_stream(self.provider, "@provider: tokens=50 fault=hang_stream after=4") as client:
            client.settimeout(0.3)
            with self.assertRaises(TimeoutError):
                while client.recv(65536):
                    pass
        stats = self.provider.stats_when(lambda stats: stats["active"] == 0)
        self.assertEqual((stats["streams_closed_early"], stats["tokens"]), (1, 4))

    def test_half_a_stream_ends_in_order_but_without_the_last_event(self):
        status, _, body = self.ask("@provider: tokens=50 fault=half_stream after=4")
        names = [name for name, _ in events(body)]
        self.assertEqual((status, names.count("content_block_delta")), (200, 4))
        self.assertNotIn("message_stop", names)

    def test_cut_closes_in_the_middle_of_an_event(self):
        with open_stream(self.provider, "@provider: tokens=50 rate=50/s fault=cut after=4") as client:
            got, how = read_to_end(client)
        self.assertEqual((how, got[-3:]), ("closed", b"nev"))
        with self.assertRaises(http.client.IncompleteRead):
            self.ask("@provider: tokens=50 fault=cut", stream=False)

    def test_reset_before_and_in_the_stream(self):
        with self.assertRaises((ConnectionResetError, http.client.RemoteDisconnected)):
            self.ask("@provider: fault=reset")
        with open_stream(self.provider, "@provider: tokens=50 rate=50/s fault=reset_stream after=5") as client:
            self.assertEqual(read_to_end(client)[1], "reset")

    def test_malformed_event_then_the_rest(self):
        found = events(self.ask("@provider: tokens=9 fault=malformed after=4")[2])
        broken = [data for _, data in found if not data.endswith("}")]
        self.assertEqual(len(broken), 1)
        self.assertEqual(found[-1][0], "message_stop")
        with self.assertRaises(json.JSONDecodeError):
            json.loads(self.ask("@provider: fault=malformed", stream=False)[2])

    def test_an_error_in_a_stream_that_began_well(self):
        status, _, body = self.ask("@provider: tokens=50 fault=error_event after=4")
        name, data = events(body)[-1]
        self.assertEqual((status, name, json.loads(data)["error"]["type"]), (200, "error", "overloaded_error"))
        chat = events(self.ask("@provider: fault=error_event", path="/v1/chat/completions")[2])
        self.assertIn("error", json.loads(chat[-1][1]))
        failed = json.loads(events(self.provider.call("POST", "/v1/responses", {"model": "m", "stream": True, "input": "@provider: fault=error_event"})[2])[-1][1])
        self.assertEqual((failed["type"], failed["response"]["status"]), ("response.failed", "failed"))

    def test_a_fault_after_more_tokens_than_there_are_still_strikes(self):
        names = [name for name, _ in events(self.ask('@provider: text="a b" fault=half_stream after=99')[2])]
        self.assertNotIn("message_stop", names)

    def test_pace(self):
        begun = time.monotonic()
        self.ask("@provider: delay=100ms first_token=100ms tokens=20 rate=100/s")
        took = time.monotonic() - begun
        self.assertGreater(took, 0.1 + 0.1 + 0.19)
        self.assertLess(took, 2 * SLOW)
        begun = time.monotonic()
        self.ask("@provider: tokens=20 rate=100/s", stream=False)
        self.assertGreater(time.monotonic() - begun, 0.19, "an answer that is no stream takes as long to make")


class Clients(WithProvider):
    def test_a_cancel_in_mid_stream_is_seen_at_once_and_nothing_is_generated_after_it(self):
        client = open_stream(self.provider, "@provider: tokens=1000 rate=100/s")
        self.provider.stats_when(lambda stats: stats["tokens"] >= 5)
        client.close()
        closed = time.monotonic()
        stats = self.provider.stats_when(lambda stats: stats["active"] == 0)
        noticed = time.monotonic() - closed
        self.assertLess(noticed, 0.25 * SLOW)
        self.assertEqual((stats["streams_closed_early"], stats["tokens_after_gone"]), (1, 0))
        time.sleep(0.1)
        self.assertEqual(self.provider.stats()["tokens"], stats["tokens"])
        self.assertEqual(self.provider.records()[-1]["end"], "client_closed")

    def test_a_cancel_while_nothing_is_being_written_is_seen_too(self):
        for line in ("delay=30s", "first_token=30s", "tokens=9 rate=0.01/s"):
            client = socket.create_connection(self.provider.address)
            client.sendall(raw_request("/v1/messages", message(f"@provider: {line}")))
            self.provider.stats_when(lambda stats: stats["active"] == 1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()  # a reset, not a FIN
            self.provider.stats_when(lambda stats: stats["active"] == 0, seconds=2)
        self.assertEqual(self.provider.stats()["streams_closed_early"], 3)

    def test_an_answer_that_is_no_stream_is_finished_for_nobody_and_counted(self):
        client = socket.create_connection(self.provider.address)
        client.sendall(raw_request("/v1/messages", message("@provider: tokens=30 rate=60/s", stream=False)))
        self.provider.stats_when(lambda stats: stats["tokens"] >= 3)
        client.close()
        stats = self.provider.stats_when(lambda stats: stats["active"] == 0)
        self.assertEqual((stats["tokens"], stats["closed_early"], stats["streams_closed_early"]), (30, 1, 0))
        self.assertGreater(stats["tokens_after_gone"], 10)

    def test_a_deaf_upstream_goes_on_after_the_client_is_gone(self):
        open_stream(self.provider, "@provider: tokens=30 rate=60/s deaf=true").close()
        stats = self.provider.stats_when(lambda stats: stats["active"] == 0 and stats["requests"] == 1)
        self.assertEqual(stats["tokens"], 30)
        self.assertGreater(stats["tokens_after_gone"], 10)

    def test_a_client_that_leaves_right_after_the_last_byte_did_not_leave_early(self):
        for _ in range(300):
            client = socket.create_connection(self.provider.address, timeout=20 * SLOW)
            client.sendall(raw_request("/v1/messages", message("@provider: text=x")))
            got = b""
            while not got.endswith(b"\r\n0\r\n\r\n"):
                piece = client.recv(65536)
                self.assertTrue(piece, got)
                got += piece
            client.close()
        stats = self.provider.stats_when(lambda stats: stats["active"] == 0 and stats["connections"] == 1)
        self.assertEqual((stats["requests"], stats["closed_early"]), (300, 0))

    def test_a_half_closed_socket_counts_as_gone(self):
        client = open_stream(self.provider, "@provider: tokens=1000 rate=100/s")
        client.shutdown(socket.SHUT_WR)
        stats = self.provider.stats_when(lambda stats: stats["active"] == 0)
        self.assertEqual((stats["streams_closed_early"], stats["tokens_after_gone"]), (1, 0))
        self.assertNotIn(b"message_stop", read_to_end(client)[0])
        client.close()

    def test_a_half_sent_request_is_no_request(self):
        for part in (b"POST /v1/messages HT", b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{"):
            with socket.create_connection(self.provider.address, timeout=20) as client:
                client.sendall(part)
                client.shutdown(socket.SHUT_WR)
                self.assertEqual(client.recv(100), b"")
        self.assertEqual(self.provider.stats()["requests"], 0)

    def test_a_slow_reader_holds_up_itself_alone_and_gets_everything(self):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(self.provider.address)
        client.sendall(raw_request("/v1/messages", message("@provider: tokens=50000")))
        self.provider.stats_when(lambda stats: stats["active"] == 1)
        begun = time.monotonic()
        self.assertEqual(self.ask("hello")[0], 200)
        self.assertLess(time.monotonic() - begun, 2 * SLOW)
        self.assertLess(self.provider.stats()["tokens"], 50000, "what nobody reads is not generated")
        client.settimeout(30 * SLOW)
        got = 0
        tail = b""
        while b"message_stop\"}\n\n\r\n0\r\n\r\n" not in tail:
            piece = client.recv(1 << 20)
            self.assertTrue(piece)
            got += piece.count(b"text_delta")
            tail = (tail + piece)[-200:]
        client.close()
        self.assertEqual(self.provider.stats_when(lambda stats: stats["active"] == 0)["closed_early"], 0)

    def test_a_reader_that_stops_and_leaves(self):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(self.provider.address)
        client.sendall(raw_request("/v1/messages", message("@provider: tokens=100000")))
        before = self.provider.stats_when(lambda stats: stats["active"] == 1)
        client.close()
        stats = self.provider.stats_when(lambda stats: stats["active"] == 0)
        self.assertEqual(stats["streams_closed_early"], 1, before)
        self.assertLess(stats["tokens"], 100000)

    def test_two_hundred_streams_at_once(self):
        clients = []
        for number in range(STREAMS):
            client = socket.create_connection(self.provider.address)
            client.sendall(raw_request("/v1/messages", message(f"@provider: tokens=2000 rate=50/s text=number{number}")))
            clients.append(client)
        stats = self.provider.stats_when(lambda stats: stats["active"] == STREAMS and stats["tokens"] > 5 * STREAMS)
        self.assertEqual(stats["active_max"], STREAMS)
        for client in clients:
            client.close()
        closed = time.monotonic()
        stats = self.provider.stats_when(lambda stats: stats["active"] == 0)
        print(f"{STREAMS} streams closed; all noticed {1000 * (time.monotonic() - closed):.0f} ms later", file=sys.stderr)
        self.assertEqual((stats["streams_closed_early"], stats["tokens_after_gone"], stats["connections"]), (STREAMS, 0, 1))

    def test_two_hundred_whole_streams_at_once(self):
        answers = [None] * STREAMS

        def ask(number):
            found = events(self.ask(f"@provider: tokens=20 rate=100/s text=number{number}")[2])
            answers[number] = "".join(json.loads(data)["delta"].get("text", "") for name, data in found if name == "content_block_delta")

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(STREAMS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number, answer in enumerate(answers):
            self.assertEqual(answer, f"number{number} " * 20)
        self.assertEqual(self.provider.stats()["closed_early"], 0)


class Bounds(WithProvider):
    def refused(self, data):
        with socket.create_connection(self.provider.address, timeout=20 * SLOW) as client:
            try:
                client.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass
            return read_to_end(client)[0].split(b"\r\n")[0]

    def test_header_and_body(self):
        self.assertIn(b" 431 ", self.refused(b"GET / HTTP/1.1\r\nx: " + b"a" * 100_000 + b"\r\n\r\n"))
        self.assertIn(b" 413 ", self.refused(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n"))
        self.assertIn(b" 400 ", self.refused(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n"))
        self.assertIn(b" 505 ", self.refused(b"GET / HTTP/1.0\r\n\r\n"))
        self.assertEqual(self.ask("still there")[0], 200)

    def test_chunks_that_come_in_any_pieces(self):
        """Down to a byte each: a reader that sees half a chunk's head must not trip over it."""
        text = json.dumps(message("@provider: text=fine", stream=False)).encode()
        half = len(text) // 2
        body = b"%x;a=\"b\"\r\n%s\r\n%X\r\n%s\r\n" % (half, text[:half], len(text) - half, text[half:])
        for last in (b"0\r\n\r\n", b"000;x\r\nA: b\r\nC:\r\n\r\n"):
            for sizes in ((1,), (3, 1), (2, 2), (4,), (1, 3), (1000,)):
                for chunks, status in ((body, b" 200 "), (b"", b" 400 ")):  # nothing is no question
                    with socket.create_connection(self.provider.address, timeout=20 * SLOW) as client:
                        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                        client.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" + chunks)
                        self.send_in_pieces(client, last, sizes)
                        self.assertIn(status, client.recv(4096).split(b"\r\n")[0], (last, sizes))

    def send_in_pieces(self, client, data, sizes):
        at = number = 0
        while at < len(data):
            client.sendall(data[at : at + sizes[number % len(sizes)]])
            at += sizes[number % len(sizes)]
            number += 1
            self.provider.stats()  # on another connection: the piece before was read when this is answered

    def test_malformed_chunks_are_refused_and_the_next_client_is_served(self):
        head = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        for status, chunks in (
            (b" 400 ", b"x\r\n"),
            (b" 400 ", b"-5\r\nhello\r\n0\r\n\r\n"),
            (b" 400 ", b"fffffffffffffffff\r\n"),
            (b" 400 ", b"5\nhello\r\n0\r\n\r\n"),
            (b" 400 ", b"5\r\nhelloXX0\r\n\r\n"),
            (b" 400 ", b"5;" + b"e" * 100_000 + b"\r\nhello\r\n0\r\n\r\n"),
            (b" 400 ", b"0\r\nX: " + b"e" * 100_000 + b"\r\n\r\n"),
            (b" 400 ", b"0\r\nGET / HTTP/1.1\r\n\r\n"),
            (b" 413 ", b"fffffff\r\n"),
            (b" 413 ", b"fffffffffffffff\r\n"),
        ):
            self.assertIn(status, self.refused(head + chunks), chunks[:40])
        for half in (b"5", b"5\r", b"5\r\nhel", b"5\r\nhello", b"0\r\n", b"0\r\n\r", b"0\r\nX"):
            with socket.create_connection(self.provider.address, timeout=20 * SLOW) as client:
                client.sendall(head + half)
                client.shutdown(socket.SHUT_WR)
                self.assertEqual(client.recv(100), b"", half)
        self.assertEqual(self.ask("still there")[0], 200)

    def test_a_body_whose_end_is_not_certain_is_refused(self):
        head = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\n"
        self.assertIn(b" 400 ", self.refused(head + b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"))
        self.assertIn(b" 400 ", self.refused(head + b"content-length: 4\r\ncontent-length: 5\r\n\r\n01234"))
        self.assertIn(b" 501 ", self.refused(head + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"))

    def test_a_large_body_with_expect_continue(self):
        body = json.dumps(message("x" * 2_000_000, stream=False)).encode()
        with socket.create_connection(self.provider.address, timeout=20 * SLOW) as client:
            client.sendall(f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: {len(body)}\r\n\r\n".encode())
            self.assertIn(b"100 Continue", client.recv(100))
            client.sendall(body)
            self.assertIn(b"200 OK", client.recv(4096))

    def test_what_is_sent_ahead_is_bounded(self):
        client = open_stream(self.provider, "@provider: tokens=1000 rate=10/s")
        try:
            client.sendall(b"x" * 4_000_000)
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            pass
        self.provider.stats_when(lambda stats: stats["active"] == 0)
        client.close()


class Docs(WithProvider):
    """What docs/provider.md shows works."""

    def setUp(self):
        super().setUp()
        self.text = (pathlib.Path(__file__).resolve().parents[2] / "docs/provider.md").read_text(encoding="utf-8")

    def test_the_script(self):
        (script,) = re.findall(r"```toml\n(.*?)```", self.text, re.S)
        self.provider.script(script)
        self.assertEqual([self.ask("a flaky one", stream=False)[0] for _ in range(3)], [529, 529, 200])
        self.assertEqual(json.loads(self.ask("a flaky one", stream=False)[2])["content"][0]["text"], "Third time lucky.")
        self.assertEqual(json.loads(self.ask("else", stream=False)[2])["content"][0]["name"], "Read")

    def test_the_lines(self):
        prompts = re.findall(r"```\n(.*?@provider:.*?)```", self.text, re.S)
        self.assertEqual(len(prompts), 2)
        self.provider.call("DELETE", "/_/script")
        for prompt in prompts:
            self.assertEqual(self.ask(prompt.replace("delay=2s", "delay=2ms").replace("rate=40/s", "rate=4000/s"))[0], 200, prompt)

    def test_every_fault_and_sum_is_named(self):
        for fault in re.search(r"one of: ([^\"]*)", self.ask("@provider: fault=x")[2].decode()).group(1).split(", "):
            if fault not in ("none", "status"):
                self.assertIn(f"| `{fault}` |", self.text)
        for name in self.provider.stats():
            if name != "event":
                self.assertIn(f"`{name}`", self.text)
        for key in re.search(r"known are ([^\"]*)", self.ask("@provider: x=y")[2].decode()).group(1).split(", "):
            if key != "status":
                self.assertIn(f"`{key}`", self.text)


class Command(unittest.TestCase):
    def test_says_where_it_listens_and_ends_cleanly(self):
        for by in (signal.SIGINT, signal.SIGTERM):
            provider = Provider()
            url = provider.listening["url"]
            self.assertRegex(url, r"^http://127\.0\.0\.1:\d+$")
            self.assertEqual(provider.listening["environment"]["ANTHROPIC_BASE_URL"], url)
            client = open_stream(provider, "@provider: tokens=1000 rate=10/s")  # a stream does not hold it up
            begun = time.monotonic()
            code, rest, errors = provider.close(by)
            self.assertLess(time.monotonic() - begun, 2 * SLOW)
            self.assertEqual((code, errors), (0, ""))
            stats = json.loads(rest)
            self.assertEqual((stats["requests"], stats["active"], stats["connections"]), (1, 0, 0))
            client.close()

    def test_for_people(self):
        process = subprocess.Popen([STINT, "provider"], stdout=subprocess.PIPE, text=True)
        seen = ""
        while "/_/stats" not in seen:
            seen += process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=20 * SLOW)[0]
        self.assertEqual(process.returncode, 0)
        self.assertRegex(seen, r"(?m)^export ANTHROPIC_BASE_URL=http://127\.0\.0\.1:\d+$")
        self.assertIn("0 requests", rest)

    def test_script_and_log_files(self):
        with tempfile.TemporaryDirectory() as folder:
            script, log = os.path.join(folder, "script.toml"), os.path.join(folder, "log.jsonl")
            with open(script, "w", encoding="utf-8") as file:
                file.write('[default]\nrate = "1000/s"\n[[reply]]\nmatch = "tea"\ntext = """two\nlines"""\n[[reply]]\nmodel = "simulated"\ntool = "Read"\ninput = {file = "a.txt"}\n')
            provider = Provider("--script", script, "--log", log)
            first = json.loads(provider.call("POST", "/v1/messages", message("some tea?", stream=False))[2])
            second = json.loads(provider.call("POST", "/v1/messages", message("anything", stream=False))[2])
            self.assertEqual(provider.close()[0], 0)
            self.assertEqual(first["content"][0]["text"], "two\nlines")
            self.assertEqual((second["content"][0]["name"], second["content"][0]["input"]), ("Read", {"file": "a.txt"}))
            with open(log, encoding="utf-8") as file:
                lines = [json.loads(line) for line in file]
            self.assertEqual([(line["number"], line["prompt"], line["end"]) for line in lines], [(1, "some tea?", "done"), (2, "anything", "done")])

    def test_what_cannot_be_is_refused_with_the_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            bad = os.path.join(folder, "bad.toml")
            with open(bad, "w", encoding="utf-8") as file:
                file.write("[[reply]\n")
            for arguments, reason in (
                (["--listen", "0.0.0.0:0"], "loopback only"),
                (["--listen", "example.com:80"], "give an address and a port"),
                (["--listen", "127.0.0.1"], "give an address and a port"),
                (["--script", os.path.join(folder, "none.toml")], "can't be read"),
                (["--script", bad], "line 1"),
                (["--log", os.path.join(folder, "no", "log")], "can't be written"),
            ):
                done = subprocess.run([STINT, "provider", *arguments], capture_output=True, text=True, timeout=20 * SLOW)
                self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
                self.assertIn(reason, done.stderr)

    def test_a_port_that_is_taken(self):
        provider = Provider()
        done = subprocess.run([STINT, "provider", "--listen", provider.listening["address"]], capture_output=True, text=True, timeout=20 * SLOW)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, re.escape(provider.listening["address"]))
        provider.close()

    def test_ipv6_loopback(self):
        try:
            with socket.socket(socket.AF_INET6) as probe:
                probe.bind(("::1", 0))
        except OSError:
            self.skipTest("no IPv6 loopback here")
        provider = Provider("--listen", "[::1]:0")
        self.assertRegex(provider.listening["url"], r"^http://\[::1\]:\d+$")
        provider.close()


if __name__ == "__main__":
    unittest.main(verbosity=1)
