#!/usr/bin/env python3
"""Faults of the simulated provider: scripted faults, clients that leave, hostile requests. `provider_faults_test.py STINT`"""
import http.client
import json
import select
import socket
import struct
import sys
import threading
import time
import unittest

from provider_support import SLOW, STREAMS, WithProvider, events, message, open_stream, raw_request, read_to_end


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

    def test_custom_headers_and_message(self):
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

    def test_an_answer_without_a_stream_is_finished_after_the_client_left_and_counted(self):
        client = socket.create_connection(self.provider.address)
        client.sendall(raw_request("/v1/messages", message("@provider: tokens=30 rate=60/s", stream=False)))
        self.provider.stats_when(lambda stats: stats["tokens"] >= 3)
        client.close()
        stats = self.provider.stats_when(lambda stats: stats["active"] == 0)
        self.assertEqual((stats["tokens"], stats["closed_early"], stats["streams_closed_early"]), (30, 1, 0))
        self.assertGreater(stats["tokens_after_gone"], 10)

    def test_a_deaf_upstream_continues_after_the_client_left(self):
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

    def test_ignores_an_incomplete_request(self):
        for part in (b"POST /v1/messages HT", b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{"):
            with socket.create_connection(self.provider.address, timeout=20) as client:
                client.sendall(part)
                client.shutdown(socket.SHUT_WR)
                self.assertEqual(client.recv(100), b"")
        self.assertEqual(self.provider.stats()["requests"], 0)

    def test_a_slow_reader_delays_only_itself_and_gets_everything(self):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(self.provider.address)
        client.sendall(raw_request("/v1/messages", message("@provider: tokens=50000")))
        self.provider.stats_when(lambda stats: stats["active"] == 1)
        begun = time.monotonic()
        self.assertEqual(self.ask("hello")[0], 200)
        self.assertLess(time.monotonic() - begun, 2 * SLOW)
        self.assertLess(self.provider.stats()["tokens"], 50000, "tokens that are not read are not generated")
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
                for chunks, status in ((body, b" 200 "), (b"", b" 400 ")):  # an empty body is not a request
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


if __name__ == "__main__":
    unittest.main(verbosity=1)
