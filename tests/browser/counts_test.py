#!/usr/bin/env python3
"""Every count that a page shows equals an SQL count at that moment, through random changes and a kill of the daemon: `counts_test.py STINT`

STINT_TRANSITIONS: how many changes of state; a full run has 10,000."""
import os
import sys
import time
import unittest

import browser_support
import chromium
import churn
import daemon_support

TRANSITIONS = int(os.environ.get("STINT_TRANSITIONS", "400"))
SECONDS_MAX = 90 + TRANSITIONS * 0.2
SAID_SECONDS_MAX = 3.0
SHOWN = """(() => {
  const counts = {};
  for (const each of document.querySelectorAll('[data-count]')) counts[each.dataset.count] = each.innerText;
  const held = [...document.querySelectorAll('[data-held] .num')].map((each) => Number(each.innerText));
  const queued = document.querySelector('[data-field=queued]')?.innerText;
  return {cursor: document.querySelector('[data-cursor]').dataset.cursor, counts, held, queued};
})()"""


class Counts(browser_support.Case):
    def check(self, page, truth):
        shown = page.evaluate(SHOWN)
        counts = {state: int(shown["counts"][state]) for state in churn.STATES}
        self.assertEqual(counts, truth.counts_at(shown["cursor"]), shown["cursor"])
        self.assertGreaterEqual(min(counts.values()), 0)
        if "queued" in shown:
            self.assertEqual(int(shown["queued"]), counts["queued"])
            self.assertEqual(sum(shown["held"]), counts["queued"])
        return shown["cursor"]

    def test_two_browsers_show_what_sql_counts(self):
        churn.define_agents(self)
        d = self.serve()
        truth = churn.Truth(self.project)
        other = chromium.Browser()
        self.addCleanup(other.close)
        pages = [self.opened(d), other.open(f"http://{d.host}:{d.port}/#token={d.token}")]
        pages[1].wait("document.querySelector('.connection.live')")
        changes = churn.Churn(d, truth, TRANSITIONS, seed=2)
        changes.thread.start()
        until, killed, cursors = time.monotonic() + SECONDS_MAX, False, [set(), set()]
        while not changes.over.is_set():
            self.assertLess(time.monotonic(), until, "too slow")
            for page, seen in zip(pages, cursors, strict=True):
                seen.add(self.check(page, truth))
            if not killed and truth.transitions() > TRANSITIONS / 2:
                began = time.monotonic()
                d.process.kill()
                d.process.wait()
                for page in pages:
                    page.wait("document.querySelector('.connection.lost')", 10)
                self.assertLess(time.monotonic() - began, SAID_SECONDS_MAX)
                d = daemon_support.Daemon(self.b, self.project, listen=f"127.0.0.1:{d.port}")
                self.addCleanup(d.close)
                changes.daemon = d
                for page in pages:
                    page.wait("document.querySelector('.connection.live')", 15)
                killed = True
        changes.thread.join(60)
        self.assertTrue(killed)
        for page, seen in zip(pages, cursors, strict=True):
            last = d.get("/v1/fleet")["cursor"]
            page.wait(f"Number(document.querySelector('[data-cursor]').dataset.cursor) >= {last}", 15)
            seen.add(self.check(page, truth))
            self.assertGreaterEqual(len(seen), 3, "the page has read again, before and after the restart")
            self.assert_no_faults(page)


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    chromium.skip_without_chromium()
    unittest.main()
