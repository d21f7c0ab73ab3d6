#!/usr/bin/env python3
"""What a person does from the first screen and from Limits, and what the screen marks: `fleet_test.py STINT [CLASS]`"""
import os
import sys
import time
import unittest

import browser_support
import chromium
import daemon_support
import scripted_server
from host_support import wait_for


def confirmed(page, button, action, number=None):
    """Presses a button, waits for its question, and confirms. Returns the text of the question."""
    page.click("button", button)
    question = page.wait("document.querySelector('dialog[open]')?.innerText")
    if number is not None:
        page.evaluate("document.querySelector('dialog input').select()")
        page.type(str(number))
    page.click("button", action)
    return question


class Buttons(browser_support.Case):
    settings = "[pool]\nmin = 2\nmax = 8\nautoscale = false\nworkers = 2\n"

    def test_scale_pause_resume_and_drain_ask_first_and_then_act(self):
        d = self.serve()
        run = d.submit("slow")
        wait_for(lambda: d.run(run)["state"] == "running", 10, "the run")
        page = self.opened(d)
        page.click("button", "Drain…")
        page.wait("document.querySelector('dialog[open]')")
        page.click("button", "Keep as it is")
        page.wait("!document.querySelector('dialog[open]')")
        self.assertFalse(d.get("/v1/pool")["draining"], "a question that was declined changes nothing")

        confirmed(page, "Scale…", "Scale", 5)
        page.wait("document.querySelector('[data-field=pool_size]')?.innerText === '5'")
        self.assertEqual(d.get("/v1/pool")["target_size"], 5)

        confirmed(page, "Pause…", "Pause")
        page.wait("document.querySelector('.message')?.innerText.includes('Paused')")
        held = d.submit("quick")
        page.wait("document.querySelector('[data-held^=paused]')?.innerText.includes('1')")
        self.assertEqual(d.run(held)["state"], "queued")
        question = confirmed(page, "Resume…", "Resume")
        self.assertIn("agent:quick", question, "it names what is paused")
        d.wait(held)

        confirmed(page, "Drain…", "Drain")
        page.wait("document.querySelector('[data-field=phase]')?.innerText.includes('draining')")
        page.wait("document.querySelectorAll('.lane').length === document.querySelectorAll('.lane.draining').length")
        self.assert_no_faults(page)
        d.process.kill()

    def test_a_limit_is_paused_and_resumed_after_a_question(self):
        self.agent("single", 'max_concurrency: 3\ncommand: [echo, hi]\ntitle: single\n')
        d = self.serve()
        d.wait(d.submit("single"))
        page = self.opened(d, "/limits/agent:single")
        page.wait("document.querySelector('.limit.chosen')")
        confirmed(page, "Pause…", "Pause")
        page.wait("document.querySelector('.limit.chosen .bad')?.innerText.includes('paused')")
        run = d.submit("single")
        page.wait("document.querySelector('.limit.chosen')")
        self.assertEqual(d.run(run)["state"], "queued")
        question = confirmed(page, "Resume…", "Resume")
        self.assertIn("No run is parked on it", question)
        d.wait(run)
        page.wait("!document.querySelector('.limit.chosen .bad')")
        self.assert_no_faults(page)

    def test_an_unbounded_limit_that_is_paused_says_so(self):
        d = self.serve()
        self.assertEqual(d.ask("POST", "/v1/limits/agent:quick/pause", {})[0], 200)
        page = self.opened(d, "/limits/agent:quick")
        page.wait("document.querySelector('.limit.chosen')?.innerText.includes('no request gets its permit')")
        self.assertNotIn("every request", page.evaluate("document.querySelector('.limit.chosen').innerText"))


class Marked(unittest.TestCase):
    """States of the fleet that a real daemon reaches rarely."""

    @classmethod
    def setUpClass(cls):
        cls.browser = chromium.Browser()
        cls.addClassCleanup(cls.browser.close)

    def opened(self, fleet, fragment="/", **options):
        self.server = scripted_server.Server()
        self.addCleanup(self.server.close)
        self.server.answers["/v1/fleet"] = (200, fleet)
        page = self.browser.open(f"{self.server.url}/#{fragment}", **options)
        page.wait("document.querySelector('.connection.live') && !document.querySelector('main > .loading')")
        return page

    def test_refused_agents_are_among_what_needs_a_person(self):
        fleet = scripted_server.fleet() | {"refused_agents": [{"name": "writer", "why": "its driver is unknown"}], "refused_agents_total": 3}
        page = self.opened(fleet)
        self.assertIn("its driver is unknown", page.wait("document.querySelector('[data-refused=writer]')?.innerText"))
        self.assertEqual(page.evaluate("document.querySelector('[data-refused=writer] a').getAttribute('href')"), "#/agents/writer")
        said = page.evaluate("document.querySelector('main').innerText")
        self.assertIn("3 agents can't run", said)
        self.assertNotIn("Nothing needs you", said)

    def test_the_queue_says_what_is_parked_until_when_and_how_long_the_first_waits(self):
        fleet, now = scripted_server.fleet(queued=5, parked=3), int(time.time() * 1000)
        fleet["queue"] |= {"startable": 2, "startable_oldest_at": now - 65_000, "oldest_at": now - 180_000, "held": [{"reason": "limit", "limit": "gpu", "runs": 3, "oldest_at": None}]}
        fleet["parked"] = [{"reason": "quota", "limit": "account:a", "runs": 2, "until_at": now + 3_600_000, "oldest_at": now - 120_000}, {"reason": "person", "runs": 1, "oldest_at": now - 60_000}]
        page = self.opened(fleet)
        parked = page.wait("document.querySelector('[data-parked=\"quota account:a\"]')?.innerText")
        self.assertRegex(parked, r"(?s)2.*account:a: until a quota resets, until \d\d:\d\d:\d\d.*2m")
        self.assertIn("for an answer", page.evaluate("document.querySelector('[data-parked=person]').innerText"))
        self.assertRegex(page.evaluate("document.querySelector('[data-held=startable]').innerText"), r"(?s)2.*could start now.*1m\d+s")

    def test_stale_and_draining_workers_are_marked(self):
        run = scripted_server.run("running", started_at=1_000_000)
        fleet = scripted_server.fleet(running=1, queued=1)
        workers = (("w-1", {"state": "busy", "current_run": run["id"], "stale": True, "last_heartbeat_ago": 200}), ("w-2", {}), ("w-3", {"state": "draining"}))
        fleet |= {"pool": scripted_server.pool(*workers), "running": {"total": 1, "runs": [run]}}
        fleet["queue"]["startable"] = 1
        page = self.opened(fleet)
        self.assertEqual(page.wait("[...document.querySelectorAll('.lane')].map((lane) => [lane.matches('.stale'), lane.matches('.draining')])"), [[True, False], [False, False], [False, True]])
        self.assertIn("w-1 carries", page.evaluate("document.querySelector('main').innerText"))
        self.server.answers["/v1/fleet"] = (200, fleet | {"pool": fleet["pool"] | {"draining": True}, "phase": "finishing"})
        page.wait("document.querySelectorAll('.lane.draining').length === 3 && [...document.querySelectorAll('.lane')].every((lane) => lane.innerText.includes('draining'))")
        page.wait("document.querySelector('[data-held=startable]').innerText.includes('none begins: this daemon drains')")
        self.assertNotIn("could start now", page.text())

    def test_states_of_the_list_are_not_cut(self):
        states = ("queued", "running", "parked", "in_doubt", "succeeded", "failed", "cancelled", "expired")
        runs = [scripted_server.run(state, finished_at=2_000_000) | {"id": f"{at}".rjust(12, "a").replace("0", "b")} for at, state in enumerate(states)]
        for width in (1280, 1180, 1020, 720):
            page = self.opened(scripted_server.fleet(), "/agents", width=width)
            self.server.answers["/v1/runs"] = (200, {"runs": runs, "next": None, "total": {"count": 8, "exact": True}})
            page.evaluate("location.hash = '#/runs'")
            page.wait("document.querySelectorAll('.list-row').length === 8")
            cut = page.evaluate("[...document.querySelectorAll('.c-state')].filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.innerText)")
            self.assertEqual(cut, [], width)


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    chromium.skip_without_chromium()
    unittest.main()
