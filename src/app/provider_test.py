#!/usr/bin/env python3
"""The simulated provider as a client sees it: protocols, documentation, command. `provider_test.py STINT`"""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from provider_support import Provider, SLOW, STINT, WithProvider, events, message, open_stream, raw_request


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
        for key in re.search(r"allowed: ([^\"]*)", self.ask("@provider: x=y")[2].decode()).group(1).split(", "):
            if key != "status":
                self.assertIn(f"`{key}`", self.text)


class Command(unittest.TestCase):
    def test_prints_its_address_and_ends_cleanly(self):
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

    def test_refuses_invalid_options_with_the_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            bad = os.path.join(folder, "bad.toml")
            with open(bad, "w", encoding="utf-8") as file:
                file.write("[[reply]\n")
            for arguments, reason in (
                (["--listen", "0.0.0.0:0"], "not a loopback address"),
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
