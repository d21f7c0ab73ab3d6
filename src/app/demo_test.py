#!/usr/bin/env python3
"""Runs `stint demo` as a user does: into a pipe, as JSON, with wrong options, on a terminal, and stopped by Ctrl-C.

    demo_test.py PATH-TO-STINT
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

STINT = sys.argv.pop(1)
FAST = ["--speed", "60"]


def run(*arguments, **environment):
    return subprocess.run([STINT, *arguments], capture_output=True, text=True, timeout=50, env={**os.environ, **environment})


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, arguments, columns=80, rows=24, **environment):
        self.output = b""
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "", "NO_COLOR": "", **environment})
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execv(STINT, [STINT, *arguments])

    def read_until(self, wanted, seconds=40):
        """Reads until `wanted(output)`, or the end."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if wanted(self.output):
                return
            ready, _, _ = select.select([self.descriptor], [], [], 0.2)
            if not ready:
                continue
            try:
                chunk = os.read(self.descriptor, 65536)
            except OSError:  # the other side is gone
                return
            if not chunk:
                return
            self.output += chunk
        raise AssertionError(f"not seen within {seconds} s; the end of what was: {self.output[-600:]!r}")

    def press(self, keys):
        os.write(self.descriptor, keys)

    def finish(self):
        self.read_until(lambda output: False)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(status), self.output.decode()


class Piped(unittest.TestCase):
    def test_one_line_per_event_then_the_sums(self):
        done = run("demo", *FAST)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        self.assertNotIn("\033", done.stdout)
        self.assertRegex(done.stdout, r"van +parks at once +inside 1 of 4, line 0")
        self.assertRegex(done.stdout, r"granted +\d+; over the limit: never")
        self.assertRegex(done.stdout, r"permits out now +0\n$")
        for inside, limit in re.findall(r"parks .* inside (\d+) of (\d+)", done.stdout):
            self.assertLessEqual(int(inside), int(limit))

    def test_json_is_one_object_per_line_and_the_last_has_the_sums(self):
        done = run("demo", "--json", *FAST)
        self.assertEqual(done.returncode, 0, done.stderr)
        *events, summary = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(summary["event"], "summary")
        self.assertEqual(summary["over_limit"], 0)
        self.assertEqual(summary["permits_out"], 0)
        self.assertFalse(summary["interrupted"])
        self.assertEqual(summary["granted"], sum(event["event"] == "enters" for event in events))
        self.assertEqual(summary["gave_up"], sum(event["event"] == "gives_up" for event in events))

    def test_options_change_the_garage(self):
        done = run("demo", "--capacity", "7", "--workers", "20", "--seconds", "10", "--seed", "5", "--json", "--speed", "100")
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual((summary["capacity_max"], summary["inside_max"]), (7, 7))
        # No upper bound: at this speed a millisecond of delay on a busy machine is a tenth of a second of demo time.
        self.assertGreaterEqual(summary["took_ms"], 10_000)


class Usage(unittest.TestCase):
    def test_a_wrong_value_is_named_with_the_range(self):
        for option, value, expected in (
            ("--capacity", "0", "--capacity: '0' is not a whole number from 1 to 32"),
            ("--capacity", "4.5", "--capacity: '4.5' is not a whole number from 1 to 32"),
            ("--workers", "201", "--workers: '201' is not a whole number from 1 to 200"),
            ("--seconds", "abc", "--seconds: 'abc' is not a whole number from 10 to 3600"),
            ("--seed", "-1", "--seed: '-1' is not a whole number from 0 to 1000000000"),
            ("--speed", "0", "--speed: '0' is not a number from 0.1 to 1000"),
            ("--speed", "nan", "--speed: 'nan' is not a number from 0.1 to 1000"),
        ):
            done = run("demo", f"{option}={value}")
            self.assertEqual(done.returncode, 2, (option, value))
            self.assertIn(expected, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_an_unknown_command_is_a_usage_error(self):
        done = run("dmeo")
        self.assertEqual(done.returncode, 2)
        self.assertIn("dmeo", done.stderr)

    def test_without_arguments_it_prints_help(self):
        done = run()
        self.assertEqual(done.returncode, 0)
        self.assertIn("demo", done.stdout)
        self.assertIn("docs/fleet.md", done.stdout)

    def test_version(self):
        self.assertRegex(run("--version").stdout, r"^stint \d+\.\d+\.\d+\n$")


class OnATerminal(unittest.TestCase):
    def test_draws_in_place_within_the_width_and_gives_the_cursor_back(self):
        for columns in (60, 80, 132):
            status, output = Terminal(["demo", "--speed", "20"], columns=columns).finish()
            self.assertEqual(status, 0)
            self.assertIn("\033[?25l", output)
            self.assertGreater(output.rfind("\033[?25h"), output.rfind("\033[?25l"))
            picture = output[: output.rfind("\033[?25h")]
            for line in re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", picture).replace("\r", "").split("\n"):
                self.assertLessEqual(len(line), columns, line)
            self.assertRegex(output, r"permits out now +0")

    def test_no_color_is_respected(self):
        _, output = Terminal(["demo", "--speed", "60"], NO_COLOR="1").finish()
        self.assertNotRegex(output, r"\033\[[0-9;]*m")

    def test_a_locale_without_utf8_gets_ascii(self):
        _, output = Terminal(["demo", "--speed", "60"], LC_ALL="C").finish()
        self.assertTrue(output.isascii())
        self.assertIn("+- 1 -", output)

    def test_a_dumb_terminal_gets_lines(self):
        _, output = Terminal(["demo", "--speed", "60"], TERM="dumb").finish()
        self.assertNotIn("\033", output)
        self.assertIn("parks at once", output)

    def test_ctrl_c_cancels_all_workers_and_reports_it(self):
        terminal = Terminal(["demo"])
        terminal.read_until(lambda output: b"jeep" in output)
        terminal.press(b"\x03")
        status, output = terminal.finish()
        self.assertEqual(status, 128 + signal.SIGINT)
        self.assertIn("\033[?25h", output)
        self.assertRegex(output, r"Ctrl-C: cancelled and joined in \d+\.\d ms")
        self.assertRegex(output, r"inside +(van|cab|jeep)")
        self.assertRegex(output, r"permits out now +0")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
