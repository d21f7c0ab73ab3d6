#!/usr/bin/env python3
"""The page of a waiting run says what `stint why` says: `waiting_test.py STINT`"""
import os
import re
import sys
import unittest

import browser_support
import chromium
import daemon_support


def without_times(line):
    """Ages differ by the moment at which they were read."""
    return re.sub(r"\b\d+(?:\.\d+)?(?: ms|[smhd])\b", "T", re.sub(r"(?:\d+[mhd])+\d+[smh]", "T", line))


class Waiting(browser_support.Case):
    settings = "[pool]\nmin = 4\nmax = 4\n"

    def setUp(self):
        super().setUp()
        self.agent("single", 'max_concurrency: 1\ncommand: [sleep, "60"]\ntitle: single\n')
        self.agent("flaky", 'command: [sh, -c, "exit 75"]\nretry: {attempts: 5, backoff: 60s}\n')

    def said_by_command(self, run):
        head, *lines = self.stint("why", run).splitlines()
        self.assertTrue(head.startswith(run))
        return [without_times(line.strip()) for line in lines]

    def check(self, d, run):
        page = self.opened(d, f"/run/{run}")
        page.wait("document.querySelector('[data-why]')")
        wanted = self.said_by_command(run)
        script = "[...document.querySelectorAll('[data-why]')].map((each) => each.innerText)"
        shown = [without_times(line) for line in page.evaluate(script)]
        self.assertEqual(shown, wanted)
        self.assert_no_faults(page)
        return page

    def test_a_run_behind_a_limit_names_the_limit_and_its_holders(self):
        d = self.serve()
        holder = d.submit("single")
        browser_support.daemon_support.wait_for(lambda: d.run(holder)["state"] == "running", 10, "the holder")
        first, second = d.submit("single"), d.submit("single")
        browser_support.daemon_support.wait_for(lambda: "no free permit" in " ".join(self.said_by_command(first)), 10, "the limit to be known")
        page = self.check(d, first)
        self.assertEqual(page.evaluate("document.querySelector('[data-why] a').innerText"), "agent:single")
        self.check(d, second)

    def test_a_run_behind_its_session_links_the_run_before_it(self):
        d = self.serve()
        earlier, later = d.submit("slow", session="chat"), d.submit("slow", session="chat")
        page = self.check(d, later)
        self.assertEqual(page.evaluate("document.querySelector('[data-why] a').getAttribute('href')"), f"#/run/{earlier}")

    def test_a_paused_agent_a_pool_without_workers_and_a_delay(self):
        d = self.serve()
        self.check(d, d.submit("slow", delay_ms=600_000))
        self.assertEqual(d.ask("POST", "/v1/limits/agent:quick/pause", {})[0], 200)
        self.check(d, d.submit("quick"))
        self.assertEqual(d.ask("PUT", "/v1/pool", {"workers": 0})[0], 200)
        self.check(d, d.submit("slow"))


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    chromium.skip_without_chromium()
    unittest.main()
