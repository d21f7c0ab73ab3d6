#!/usr/bin/env python3
"""Checks that the stand-in misbehaves as configured: other tests of processes depend on it."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
STREAMS = HERE.parent / "streams"


def start(settings, **more):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("STINT_")}
    environment = {**inherited, "STAND_IN": json.dumps(settings), "STINT_RUN": "abc:1"}
    return subprocess.Popen([sys.executable, "-B", HERE / "stand_in.py", "-p", "--verbose"], env=environment, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class StandIn(unittest.TestCase):
    def test_plays_a_stream_after_a_line_of_stdin(self):
        stream = STREAMS / "claude" / "tool.jsonl"
        out, err = start({"stream": str(stream), "stderr": "a warning\n", "exit": 3}).communicate('{"type":"user"}\n', timeout=30)
        self.assertEqual((out, err), (stream.read_text(encoding="utf-8"), "a warning\n"))

    def test_exit_status_signal_and_flood(self):
        for settings, code in (({"exit": 3}, 3), ({"signal": "KILL"}, -signal.SIGKILL)):
            process = start(settings)
            process.communicate("\n", timeout=30)
            self.assertEqual(process.returncode, code)
        out, _ = start({"flood": 50_000, "long_line": 100_000}).communicate("\n", timeout=30)
        self.assertEqual(len(out), 150_001)

    def test_obeys_an_interrupt_or_not(self):
        process = start({"lines": ["one"], "hang_after": 1})
        process.stdin.write("{}\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "one\n")
        out, _ = process.communicate('{"type":"control_request","request":{"subtype":"interrupt"}}\n', timeout=30)
        self.assertIn("aborted_streaming", out)
        self.assertEqual(process.returncode, 1)

    def test_ignores_term_and_leaves_processes_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "report")
            process = start({"children": 1, "escapees": 1, "ignore": ["TERM"], "hang_after": 1, "lines": ["up"], "report": report}, start_new_session=True)
            process.stdin.write("{}\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), "up\n")
            with open(report, encoding="utf-8") as file:
                said = json.loads(file.readline())
            child, escapee = said["pids"]
            try:
                self.assertEqual((said["arguments"], said["environment"]), (["-p", "--verbose"], {"STINT_RUN": "abc:1"}))
                os.killpg(process.pid, signal.SIGTERM)
                time.sleep(0.2)
                self.assertTrue(all(map(alive, (process.pid, child, escapee))))
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(30)
                self.assertTrue(alive(escapee), "a signal to the group does not reach it")
            finally:
                os.kill(escapee, signal.SIGKILL)
                process.stdin.close()
                process.stdout.close()
                process.stderr.close()

    def test_the_second_run_may_differ(self):
        with tempfile.TemporaryDirectory() as folder:
            settings = {"once": os.path.join(folder, "mark"), "exit": 5, "again": {"exit": 0}}
            codes = []
            for _ in range(2):
                process = start(settings)
                process.communicate("\n", timeout=30)
                codes.append(process.returncode)
            self.assertEqual(codes, [5, 0])


if __name__ == "__main__":
    unittest.main(verbosity=1)
