#!/usr/bin/env python3
"""The page of a waiting run says what `stint why` says: `waiting_test.py STINT`"""
import os
import re
import sys
import unittest

import browser_support
import chromium
import daemon_support
from host_support import wait_for, write


def without_times(line):
    """Ages differ by the moment at which they were read; commands in a page have a look of their own instead of quotation marks."""
    line = line.replace("`", "")
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

    def check_holder(self, agent, limit):
        """Two runs wait for a limit: the page of each links limit and holder, and says its place in line."""
        d = self.serve()
        holder = d.submit(agent)
        wait_for(lambda: d.run(holder)["state"] == "running", 10, "the holder")
        waiting = [d.submit(agent), d.submit(agent)]
        links = "[...document.querySelectorAll('[data-why] a')].map((link) => [link.innerText, link.getAttribute('href')])"
        for place, run in enumerate(waiting):
            line = "next in line" if place == 0 else f"{place} ahead in line"
            wait_for(lambda run=run, line=line: line in " ".join(self.said_by_command(run)) or "queue of its agent" in " ".join(self.said_by_command(run)), 10, "the line to be known")
            page = self.check(d, run)
            found = dict(page.evaluate(links))
            self.assertEqual(found.get(limit), f"#/limits/{limit.replace(':', '%3A')}")
            self.assertEqual(found.get(holder), f"#/run/{holder}", "the holder is a link to its page")
            said = page.evaluate("document.querySelector('.why').innerText")
            self.assertRegex(said, rf"number {place + 1} in the queue|{line}")
            page.evaluate(f"[...document.querySelectorAll('[data-why] a')].find((link) => link.innerText === '{holder}').click()")
            page.wait(f"location.hash === '#/run/{holder}' && document.querySelector('.headline .state.running')")
        page = self.opened(d, f"/limits/{limit}")
        page.wait(f"document.querySelector('.space.taken a')?.getAttribute('href') === '#/run/{holder}'")
        return d, waiting, page

    def test_a_run_behind_the_limit_of_its_agent_names_its_holder_and_its_place(self):
        self.check_holder("single", "agent:single")

    def test_a_run_behind_a_limit_that_agents_share_names_its_holder_and_its_place(self):
        write(f"{self.project}/stint.toml", self.settings + "[limits]\ngpu = 1\n")
        self.agent("trainer", 'limits: [gpu]\ncommand: [sleep, "60"]\ntitle: train\n')
        self.check_holder("trainer", "gpu")

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
