#!/usr/bin/env python3
"""Every page while the store fails, and after it has recovered, without a click: `recovery_test.py STINT`"""
import os
import sys
import unittest

import browser_support
import chromium
import daemon_support
import scripted_server
from host_support import wait_for

RUN = scripted_server.RUN
FAILING = (503, {"type": "about:blank", "title": "Unavailable", "status": 503, "detail": "the store can't be used: disk I/O error"})
AGENT = {"name": "writer", "description": "writes", "driver": "command", "usage": "writer", "limits": [], "max_concurrency": None}
TIMELINE = {"id": RUN, "state": "succeeded", "begun_at": 1_000_000, "until_at": 1_005_000, "waiting_ms": 1000, "working_ms": 4000, "charged_ms": 4000, "tokens": 0, "cost_micros": 0,
            "segments": [{"kind": "queue", "at": 1_000_000, "ms": 1000}, {"kind": "working", "at": 1_001_000, "ms": 4000, "attempt": 1}],
            "attempts": [{"attempt": 1, "fence": 1, "begun_at": 1_001_000, "ended_at": 1_005_000, "cause": "succeeded", "state": "succeeded", "spans": []}],
            "sums": [{"kind": "queue", "ms": 1000, "spans": 0}, {"kind": "working", "ms": 4000, "spans": 0}], "spans_left_out": 0, "events_left_out": 0}
DETAIL = {"name": "writer", "problems": [], "definition": None,
          "day": {"hours": [], "succeeded": 1, "failed": 0, "cancelled": 0, "expired": 0, "complete": True, "worked_p50_ms": 1, "worked_p90_ms": 1, "waited_p50_ms": 1,
                  "waited_p90_ms": 1, "tokens": 0, "cost_micros": 0, "attempts": 1, "failures": []}}
# A page, and what it has when all of it could be read.
PAGES = {
    "/": "document.querySelector('[data-count=queued]')?.innerText === '8' && document.querySelector('[aria-label=Charts] .empty')",
    "/runs": f"document.querySelector('[data-key={RUN}]')",
    f"/run/{RUN}": "document.querySelector('.run-lanes') && document.querySelector('.transcript')?.innerText.includes('hello') && document.querySelector('.attempts li')",
    "/limits": "document.querySelector('.empty')?.innerText.includes('No limit is in use')",
    "/agents": "document.querySelector('[aria-label=\"Agent writer\"]')",
    "/agents/writer": "document.querySelector('[aria-label=\"Statistics of the last day\"]')?.innerText.includes('1 succeeded')",
}


class Scripted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = chromium.Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.server = scripted_server.Server()
        self.addCleanup(self.server.close)
        self.server.set_run("succeeded", [], attempt=1, finished_at=1_005_000)
        run = self.server.answers[f"/v1/runs/{RUN}"][1]
        self.server.answers |= {
            "/v1/fleet": (200, scripted_server.fleet(queued=8)), "/v1/runs": (200, {"runs": [run], "next": None, "total": {"count": 1, "exact": True}}),
            "/v1/series": (200, {"as_of": 1, "step_s": 10, "first_at": 0, "count": 0, "samples": [], "series": {}, "marks": []}),
            "/v1/batches": (200, {"batches": [], "next": None}), "/v1/agents": (200, {"agents": [AGENT], "problems": []}), "/v1/agents/writer": (200, DETAIL),
            f"/v1/runs/{RUN}/timeline": (200, TIMELINE),
            f"/v1/runs/{RUN}/transcript": (200, {"items": [{"kind": "text", "byte": 0, "text": "hello"}], "next": "1.5", "more": False, "bytes": 5}),
        }

    def check_failing(self, page, fragment):
        page.wait("document.querySelector('.connection.failing') && document.querySelector('main .trouble')?.innerText.includes('disk I/O error') && !document.querySelector('main .loading')")
        said = page.evaluate("document.querySelectorAll('select').forEach((each) => each.remove()), document.querySelector('main').innerText")  # its words are no data
        self.assertNotRegex(said, r"(?i)\b(0|none|nothing|no (runs?|agents?|limits?|samples?|one|workers?)|empty)\b", fragment)
        self.assertFalse(page.evaluate("!!document.querySelector('[data-count], main .empty')"), f"what was never read has no number, and is not empty: {fragment}")

    def opened(self, page, fragment):
        """The page, read anew."""
        page.go("about:blank")
        page.go(f"{self.server.url}/#{fragment}?token=t")

    def test_a_page_that_could_not_be_read_says_so_and_recovers_by_itself(self):
        page = self.browser.open("about:blank")
        for fragment, whole in PAGES.items():
            with self.subTest(fragment):
                self.server.failing = FAILING
                self.opened(page, fragment)
                self.check_failing(page, fragment)
                self.server.failing = None
                page.wait(f"document.querySelector('.connection.live') && ({whole}) && !document.querySelector('.trouble')")
                self.assertEqual(page.faults(), [])

    def test_one_failed_part_recovers_while_the_rest_is_live(self):
        page = self.browser.open("about:blank")
        parts = {"/": "/v1/series", "/runs": "/v1/runs", f"/run/{RUN}": f"/v1/runs/{RUN}/timeline", "/agents": "/v1/agents", "/agents/writer": "/v1/agents/writer"}
        for fragment, path in parts.items():
            with self.subTest(fragment):
                good, self.server.answers[path] = self.server.answers[path], FAILING
                self.opened(page, fragment)
                page.wait("document.querySelector('.connection.live') && document.querySelector('.trouble')?.innerText.includes('disk I/O error')")
                self.server.answers[path] = good
                page.wait(f"({PAGES[fragment]}) && !document.querySelector('.trouble')")


class Restarted(browser_support.Case):
    def test_pages_that_were_opened_without_a_daemon_fill_themselves(self):
        d = self.serve()
        run = d.submit("quick")
        d.wait(run)
        whole = {"/playground": "document.querySelector('.board')", "/agents": "document.querySelector('[aria-label=\"Agent quick\"]')", "/runs": f"document.querySelector('[data-key=\"{run}\"]')"}
        pages = {fragment: self.opened(d) for fragment in whole}
        d.process.kill()
        d.process.wait()
        for fragment, page in pages.items():
            page.show()
            page.wait("document.querySelector('.connection.lost')")
            page.evaluate(f"location.hash = '#{fragment}'")
            page.wait("document.querySelector('main .trouble')")
        again = daemon_support.Daemon(self.b, self.project, listen=f"127.0.0.1:{d.port}")
        self.addCleanup(again.close)
        for fragment, page in pages.items():
            page.show()
            page.wait(f"document.querySelector('.connection.live') && ({whole[fragment]}) && !document.querySelector('main .trouble')", 40)
            self.assert_no_faults(page)
        wait_for(lambda: again.run(run)["state"] == "succeeded", 5, "the run is still there")


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    chromium.skip_without_chromium()
    unittest.main()
