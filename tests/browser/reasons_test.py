#!/usr/bin/env python3
"""The page and `stint why` say the same about every reason; a store that fails never becomes a zero: `reasons_test.py STINT`"""
import os
import subprocess
import sys
import time
import unittest

import browser_support
import chromium
import scripted_server
from waiting_test import without_times

STINT = os.path.abspath(sys.argv.pop(1))
NOW = int(time.time() * 1000)
SOON, HOLDER = NOW + 3_600_000, {"run": "bbbbbbbbbbbb", "agent": "writer", "weight": 1, "since_at": NOW - 240_000}
HOST = {"run": "eeeeeeeeeeee", "agent": "trainer", "title": "train", "pid": 5, "weight": 1, "since_at": NOW - 5000}
FULL = {"limit": "model:opus", "capacity": 2, "held": 2, "holders": [HOLDER]}
SHORTAGES = [{"kind": "checkout", "path": "/gone"}, {"kind": "memory", "amount": 100 << 20, "bound": 512 << 20},
             {"kind": "descriptors", "amount": 1000, "bound": 1024}, {"kind": "cost_per_day", "amount": 20_100_000, "bound": 20_000_000}]
ODD = [{"label": "build", "pid": 7, "weight": 1, "since_at": NOW - 5000, "user": "ann", "unjudged": True},
       {"label": "test", "pid": 8, "weight": 1, "other_container": True}, {"label": "", "pid": 9, "weight": 1, "swept": True, "counts_to": 3}]
REASONS = [
    {"reason": "session", "behind": "bbbbbbbbbbbb", "behind_state": "running"}, {"reason": "delay", "until_at": SOON}, {"reason": "delay", "until_at": 1},
    {"reason": "backoff", "until_at": SOON}, {"reason": "quota"}, {"reason": "quota", "limit": "account:a", "until_at": SOON}, {"reason": "person"},
    {"reason": "person", "limit": "account:a"}, {"reason": "paused", "limit": "agent:writer"},
    {"reason": "paused", "limit": "account:a", "until_at": SOON, "behind": "bbbbbbbbbbbb", "detail": "429"}, {"reason": "probe", "limit": "account:a"},
    {"reason": "probe", "limit": "account:a", "ramp": 2}, {"reason": "limit", **FULL}, {"reason": "limit", **FULL, "ahead": 0, "weight": 3},
    {"reason": "limit", **FULL, "ahead": 4, "indirect": True}, {"reason": "limit", "limit": "gpu", "held": 1}, {"reason": "limit", "limit": "gpu", "capacity": 1, "held": 1, "holders": [HOST], "ahead": 1},
    {"reason": "limit", "limit": "gpu", "capacity": 4, "held": 4, "holders": [*ODD, HOLDER, HOLDER, {"weight": 1}]},
    {"reason": "turn", **FULL, "turn_of": "large", "until_at": SOON}, {"reason": "place", "place": 3}, {"reason": "place", "place": 1000},
    {"reason": "workers", "capacity": 4}, {"reason": "workers", "capacity": 0}, *({"reason": "shortage", "shortage": each} for each in SHORTAGES),
    {"reason": "agent"}, {"reason": "agent", "detail": "its file has errors"}, {"reason": "permits", "detail": "no lock"},
    {"reason": "network", "detail": "connect"}, {"reason": "ending", "detail": "3 left"}, {"reason": "ending", "detail": "1 left", "beyond": "pid 4 (sh)"},
    {"reason": "leftovers"}, {"reason": "store", "detail": "disk full"}, {"reason": "other", "detail": "something else"}]


class Reasons(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = chromium.Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.server = scripted_server.Server()
        cls.addClassCleanup(cls.server.close)

    def said_by_command(self):
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "STINT_URL": self.server.url, "STINT_TOKEN": "t"}
        done = subprocess.run([STINT, "why", scripted_server.RUN], env=environment, capture_output=True, text=True, timeout=30, cwd="/")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [without_times(line.strip()) for line in done.stdout.splitlines()[1:]]

    def wanted(self, state):
        """What the command says, without what the page shows otherwise: the state, and buttons instead of commands."""
        lines = [line for line in self.said_by_command() if line != "not waiting: it is running"]
        return ["its effects are unknown. Check them, then decide below"] if state == "in_doubt" else lines

    def said_by_page(self, page, state):
        page.evaluate("location.reload()")
        page.wait(f"document.querySelector('.headline .state.{state}')")
        script = "[...document.querySelectorAll('[data-why]')].map((each) => each.innerText)"
        if state != "running":
            page.wait(f"{script}.length > 0")
        return [without_times(line) for line in page.evaluate(script)]

    def test_every_reason_has_the_same_words(self):
        self.server.set_run("queued", REASONS)
        page = self.browser.open(f"{self.server.url}/#/run/{scripted_server.RUN}")
        self.assertEqual(self.said_by_page(page, "queued"), self.said_by_command())
        for state in ("queued", "running", "parked", "in_doubt"):
            self.server.set_run(state, REASONS[6:7] if state == "parked" else [])
            self.assertEqual(self.said_by_page(page, state), self.wanted(state), state)
        self.assertIn("its effects are unknown", self.said_by_command()[0])

    def test_a_failing_store_keeps_the_last_numbers_with_their_time(self):
        self.server.answers["/v1/fleet"] = (200, scripted_server.fleet(queued=7))
        page = self.browser.open(f"{self.server.url}/#token=t")
        page.wait("document.querySelector('[data-count=queued]')?.innerText === '7'")
        failing = {"type": "about:blank", "title": "Unavailable", "status": 503, "detail": "the store can't be used: disk I/O error"}
        self.server.answers["/v1/fleet"] = (503, failing)
        page.wait("document.querySelector('.connection.failing')", 3)
        self.assertIn("disk I/O error", page.text())
        self.assertRegex(page.text(), r"was read at \d\d:\d\d:\d\d")
        self.assertEqual(page.evaluate("document.querySelector('[data-count=queued]').innerText"), "7")
        other = self.browser.open(f"{self.server.url}/#token=t")
        other.wait("document.querySelector('.trouble')")
        self.assertFalse(other.evaluate("!!document.querySelector('[data-count], .empty')"), "what was never read has no number, and is not empty")
        self.assertNotRegex(other.evaluate("document.querySelector('main').innerText"), r"(?i)\b(0|none|nothing|no runs?|empty)\b")
        self.server.answers["/v1/fleet"] = (200, scripted_server.fleet(queued=8))
        for each in (page, other):
            each.show()
            each.wait("document.querySelector('.connection.live') && document.querySelector('[data-count=queued]').innerText === '8'")


if __name__ == "__main__":
    chromium.skip_without_chromium()
    unittest.main()
