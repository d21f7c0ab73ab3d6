#!/usr/bin/env python3
"""Subscribers of a daemon do not poll, miss nothing and see nothing twice through its restarts, and report if it stops.

    following_test.py PATH-TO-STINT [TEST…]
"""
import http.server
import json
import os
import pathlib
import pty
import re
import select
import signal
import threading
import time
import unittest
import urllib.request

from fleet_support import STINT, Repository, WithDaemon

TELL = """---
description: Says a word so many times; once it has said `at` of them, it waits for the file `gate` before it goes on
driver: command
command: ["sh", "-c", "i=0; while [ $i -lt $0 ]; do i=$((i + 1)); echo {{word}} $i; sleep $1; while [ $i -ge $3 ] && [ -n \\"$2\\" ] && [ ! -e \\"$2\\" ]; do sleep 0.05; done; done", "{{times}}", "{{pause}}", "{{gate}}", "{{at}}"]
on_crash: rerun
args:
  - name: word
    required: true
  - name: times
    default: "1"
  - name: pause
    default: "0"
  - name: gate
    default: ""
  - name: at
    default: "2"
---
"""


class Reader:
    """Collects the output of a process as it arrives."""

    def __init__(self, stream):
        self.text = ""
        self.thread = threading.Thread(target=self.read, args=(stream,), daemon=True)
        self.thread.start()

    def read(self, stream):
        for line in stream:
            self.text += line


class Following(WithDaemon):
    AGENTS = {"tell": TELL}

    def follow(self, *words):
        process = self.start(*words)
        process.out, process.said = Reader(process.stdout), Reader(process.stderr)
        return process

    def ended(self, process, status):
        self.assertEqual(process.wait(60), status, process.said.text)
        process.out.thread.join()
        process.said.thread.join()
        return process.out.text

    def metrics(self):
        place = json.loads(self.place.read_text(encoding="utf-8"))
        token = pathlib.Path(place["token_file"]).read_text(encoding="utf-8").strip()
        request = urllib.request.Request(place["url"] + "/metrics", headers={"Authorization": "Bearer " + token})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return dict(re.findall(r"(?m)^(stint_http_\w+) (\d+)$", answer.read().decode()))

    def requests(self):
        return int(self.metrics()["stint_http_requests_total"])

    def gate(self):
        """A file that does not exist yet: a run that waits for it lasts as long as the test needs, on any machine."""
        self.gates = getattr(self, "gates", 0) + 1
        return self.base / f"gate{self.gates}"

    def restart(self, by, gate, subscribers, address=None):
        """Kills or drains the daemon under a run that waits for `gate`, and starts another when all subscribers have noticed."""
        address = address or json.loads(self.place.read_text(encoding="utf-8"))["url"].removeprefix("http://")
        self.daemon.send_signal(by)
        if by == signal.SIGTERM:
            gate.touch()  # a drain lets the run end
        self.daemon.wait(60)
        for subscriber in subscribers if by == signal.SIGKILL else ():
            self.wait_until(lambda: "does not answer" in subscriber.said.text, "it is not noticed")
        self.daemon, self.place = self.serve(address)
        gate.touch()

    def test_a_subscriber_does_not_poll(self):
        gate = self.gate()
        run = self.running("tell", "quiet", "2", "0", f"gate={gate}", "at=1")
        subscribers = [self.follow("logs", "-f", run) for _ in range(3)]
        for subscriber in subscribers:
            self.wait_until(lambda: subscriber.out.text == "quiet 1\n", "its output does not arrive")
        self.wait_until(lambda: self.metrics()["stint_http_streams"] == "3", "there are no streams")
        before = self.requests()
        time.sleep(3)
        self.assertLess(self.requests() - before, 10, "polling every 250 ms would be 70")
        gate.touch()
        for subscriber in subscribers:
            self.assertEqual(self.ended(subscriber, 0), "quiet 1\nquiet 2\n")

    def test_output_arrives_at_once(self):
        for command in (("logs", "-f"), ("run",)):
            if command[0] == "run":
                subscriber = self.follow("run", "tell", "loud", "8", "0.4")
            else:
                subscriber = self.follow("logs", "-f", self.running("tell", "loud", "8", "0.4"))
            seen = {}
            while subscriber.poll() is None:
                for line in subscriber.out.text.splitlines():
                    seen.setdefault(line, time.monotonic())
                time.sleep(0.01)
            self.assertEqual(self.ended(subscriber, 0), "".join(f"loud {i}\n" for i in range(1, 9)))
            moments = sorted(seen.values())
            self.assertGreater(len({round(moment, 1) for moment in moments}), 5, "lines arrive one by one, not in batches")

    def test_the_end_arrives_at_once(self):
        done = self.follow("submit", "--wait", "tell", "x", "1", "1.5")
        each = self.follow("submit", "tell", "--each", "-", "--wait")
        each.stdin.write("one\ntwo\n")
        each.stdin.close()
        self.assertEqual(self.ended(done, 0), "x 1\n")
        self.assertEqual(len(self.ended(each, 0).split()), 2)
        self.assertIn("2 of 2 succeeded", each.said.text)

    def test_a_restart_of_the_daemon_makes_no_gap_and_no_repetition(self):
        for by in (signal.SIGKILL, signal.SIGTERM):
            gate = self.gate()
            run = self.running("tell", "again", "6", "0", f"gate={gate}")
            subscribers = [self.follow("logs", "-f", run), self.follow("logs", "-f", run, "--raw")]
            for subscriber in subscribers:
                self.wait_until(lambda: "again 2\n" in subscriber.out.text, "its output does not arrive")
            self.restart(by, gate, subscribers)
            # A person settles a run in doubt; in either case the subscriber ends as the run does, with all its output.
            for subscriber in subscribers:
                status = subscriber.wait(60)
                self.assertIn(status, (0, 6), subscriber.said.text)
                self.assertEqual(self.ended(subscriber, status), self.stint("logs", run))
                if by == signal.SIGKILL:  # a drain lets the run end first
                    self.assertIn("connected again", subscriber.said.text)

    def test_finds_a_daemon_that_restarts_at_another_address(self):
        gate = self.gate()
        run = self.running("tell", "again", "6", "0", f"gate={gate}")
        subscriber = self.follow("logs", "-f", run)
        self.wait_until(lambda: "again 2\n" in subscriber.out.text, "its output does not arrive")
        self.restart(signal.SIGKILL, gate, [subscriber], "127.0.0.1:0")
        self.assertEqual(self.ended(subscriber, 0), self.stint("logs", run))

    def test_run_outlives_a_restart_too(self):
        gate = self.gate()
        subscriber = self.follow("run", "tell", "again", "6", "0", f"gate={gate}", "--json")
        self.wait_until(lambda: "again 2" in subscriber.out.text, "its output does not arrive")
        self.restart(signal.SIGKILL, gate, [])
        lines = [json.loads(line) for line in self.ended(subscriber, 0).splitlines()]
        run = lines[-1]["run"]
        events = [line for line in lines if "seq" in line]
        self.assertEqual([line["seq"] for line in events], [event["seq"] for event in self.ask("show", run)["events"]])
        self.assertEqual("".join(line["text"] for line in lines if line["event"] == "text"), self.stint("logs", run))

    def test_reports_a_stopped_daemon_and_reconnects_when_it_continues(self):
        run = self.running("tell", "slow", "2", "20")
        subscriber, impatient = self.follow("logs", "-f", run), self.follow("logs", "-f", run)
        for each in (subscriber, impatient):
            self.wait_until(lambda: each.out.text == "slow 1\n", "its output does not arrive")
        self.daemon.send_signal(signal.SIGSTOP)
        try:
            began = time.monotonic()
            self.wait_until(lambda: "does not answer" in subscriber.said.text, "it is not noticed")
            self.assertLess(time.monotonic() - began, 25)
            asked = time.monotonic()
            impatient.send_signal(signal.SIGINT)
            self.assertEqual(impatient.wait(20), 128 + signal.SIGINT)
            self.assertLess(time.monotonic() - asked, 2)
        finally:
            self.daemon.send_signal(signal.SIGCONT)
        self.wait_until(lambda: "connected again" in subscriber.said.text, "it does not reconnect")
        # Its lease has expired meanwhile and the work was ended: the run's outcome is not tested here.
        self.call("cancel", run)
        self.assertEqual(self.ended(subscriber, self.call("logs", "-f", run).returncode), self.stint("logs", run))

    def test_the_second_ctrl_c_leaves_a_daemon_that_does_not_answer(self):
        subscriber = self.follow("run", "tell", "long", "1", "60")
        self.wait_until(lambda: subscriber.out.text == "long 1\n", "its output does not arrive")
        self.daemon.send_signal(signal.SIGSTOP)
        try:
            subscriber.send_signal(signal.SIGINT)
            time.sleep(0.3)
            self.assertIsNone(subscriber.poll(), "it waits until the run is gone")
            subscriber.send_signal(signal.SIGINT)
            self.ended(subscriber, 5)
        finally:
            self.daemon.send_signal(signal.SIGCONT)
        self.assertIn("the daemon is still ending the run", subscriber.said.text)

    def test_top_draws_when_something_happens_and_not_more_often_than_it_can_be_read(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execve(STINT, [STINT, "top"], self.environment | {"TERM": "xterm"})
        self.addCleanup(os.close, terminal)

        def frames(seconds):
            drawn, end = b"", time.monotonic() + seconds
            while time.monotonic() < end:
                if select.select([terminal], [], [], 0.05)[0]:
                    drawn += os.read(terminal, 1 << 16)
            return drawn.count(b"\033[H"), drawn.decode(errors="replace")

        try:
            frames(1)
            self.assertGreaterEqual(frames(3)[0], 2, "at least once a second")
            before = self.requests()
            frames(3)
            looks = (self.requests() - before - 1) / 4  # status, limits and two lists of runs; one request is our own
            self.assertLessEqual(looks, 4, "one look a second while nothing happens")
            feeder = self.start("submit", "tell", "--each", "-")
            writer = threading.Thread(target=lambda: feeder.communicate("".join(f"{i}\n" for i in range(150))))
            writer.start()
            count, text = frames(4)
            writer.join()
            self.assertGreater(count, 6, "it draws when something happens")
            self.assertLess(count, 30, "and at most five times a second, and when its own picture changes")
            self.assertIn("tell", text)
        finally:
            os.write(terminal, b"q")
            os.waitpid(pid, 0)


class OddDaemon:
    """A daemon with one run, which ends when `ended` is set, and a scripted event stream."""

    def __init__(self, stream):
        self.ended = False
        self.looks, self.streams = [], []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                if self.headers["Accept"] == "text/event-stream":
                    outer.streams.append((time.monotonic(), self.headers["Last-Event-ID"]))
                    self.close_connection = True
                    stream(self)
                    return
                outer.looks.append(time.monotonic())
                document = {"id": "oddoddoddodd", "agent": "a", "state": "succeeded" if outer.ended else "running"}
                if self.path.endswith("/output"):
                    document = {"head": "", "tail": "", "bytes": 0, "left_out": 0}
                text = json.dumps(document).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def begin_stream(handler):
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.end_headers()
    handler.wfile.flush()


class OddDaemons(Repository):
    def follow(self, stream, seconds):
        """The requests and streams of that time; the subscriber has seen the end of the run."""
        daemon = OddDaemon(stream)
        self.addCleanup(daemon.close)
        self.environment["STINT_URL"] = daemon.url
        process = self.start("logs", "-f", "odd")
        self.wait_until(lambda: daemon.streams, "it wants no stream")
        time.sleep(seconds)
        self.assertIsNone(process.poll())
        looks, streams = list(daemon.looks), list(daemon.streams)
        daemon.ended = True
        self.assertEqual(process.wait(20), 0, process.stderr.read())
        return looks, streams

    def test_resumes_a_broken_stream_after_the_last_event(self):
        def stream(handler):
            begin_stream(handler)
            handler.wfile.write(b":\n\nid: 5\nevent: claimed\ndata: {}\n\nid: 6\ndata: {")

        looks, streams = self.follow(stream, 4)
        self.assertEqual([last for _, last in streams], [None] + (len(streams) - 1) * ["5"])
        self.assertGreaterEqual(len(streams), 2)
        self.assertLessEqual(len(streams), 6, "a stream that breaks at once is not reopened in a loop")
        self.assertLess(len(looks), 80)

    def test_polls_without_a_stream(self):
        def stream(handler):
            handler.send_error(404)

        looks, streams = self.follow(stream, 3)
        self.assertGreater(len(looks), 12, "four times a second, the run and its output")
        self.assertLessEqual(len(streams), 5)

    def test_a_silent_stream_costs_no_requests(self):
        def stream(handler):
            begin_stream(handler)
            time.sleep(8)

        looks, _ = self.follow(stream, 3)
        self.assertLessEqual(len(looks), 6)


if __name__ == "__main__":
    unittest.main()
