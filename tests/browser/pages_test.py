#!/usr/bin/env python3
"""Every page of the dashboard by keyboard and screen reader names, on wide and narrow screens: `pages_test.py STINT`"""
import os
import sys
import unittest

import browser_support
import chromium
import daemon_support
from host_support import marked, wait_for

PAGES = {"": "Fleet", "/runs": "Runs", "/limits": "Limits", "/agents": "Agents", "/playground": "Playground"}


class Pages(browser_support.Case):
    def test_the_token_leaves_the_address_and_is_in_no_request_line(self):
        d = self.serve()
        run = d.submit("quick")
        d.wait(run)
        page = self.opened(d, f"/run/{run}")
        page.wait("document.querySelector('.output')")
        self.assertEqual(page.evaluate("location.hash"), f"#/run/{run}")
        self.assertEqual([address for _, address, _ in page.requests if d.token in address.partition("#")[0]], [])
        asked = [headers for _, address, headers in page.requests if "/v1/" in address]
        self.assertTrue(asked and all(headers.get("Authorization") == f"Bearer {d.token}" for headers in asked))
        self.assertTrue(all(f"http://{d.host}:{d.port}/" in address for _, address, _ in page.requests), "nothing comes from elsewhere")
        self.assertEqual([line for line in d.errors if d.token in line], [], "the log")
        self.assert_no_faults(page)

    def test_every_page_by_keyboard(self):
        d = self.serve()
        run = d.submit("slow")
        page = self.opened(d)
        for key, title in (("r", "Runs"), ("l", "Limits"), ("a", "Agents"), ("p", "Playground"), ("f", "Fleet"), ("r", "Runs")):
            for _ in range(5):  # the second key must follow within a time that a loaded machine may miss
                page.press("g")
                page.press(key)
                if page.shows(f"document.querySelector('h1')?.innerText === '{title}'", 4) is not None:
                    break
            else:
                self.fail(f"g {key} does not open {title}")
        page.wait(f"document.querySelector('[data-key=\"{run}\"]')")
        page.press("j")
        page.wait(f"document.activeElement.innerText === '{run}'")
        page.press("Enter")
        page.wait(f"location.hash === '#/run/{run}' && document.querySelector('.headline')")
        page.press("c")
        page.wait("document.querySelector('dialog[open]')")
        page.press("Escape")
        page.wait("!document.querySelector('dialog[open]')")
        page.press("?")
        page.wait("document.querySelector('dialog[open]')?.innerText.includes('Go to the filter')")
        self.assertEqual(d.run(run)["state"], "running", "a question that was not answered changes nothing")
        self.assert_no_faults(page)

    def test_every_control_has_a_name_and_every_page_one_heading(self):
        d = self.serve()
        d.submit("slow")
        page = self.opened(d)
        for fragment, title in PAGES.items():
            page.evaluate(f"location.hash = '#{fragment or '/'}'")
            page.wait(f"document.querySelector('h1')?.innerText === '{title}' && !document.querySelector('.loading')")
            self.assertEqual(page.evaluate("document.querySelectorAll('h1').length"), 1)
            nodes = page.ask("Accessibility.getFullAXTree")["nodes"]
            named = {"button", "link", "textbox", "spinbutton", "combobox", "checkbox"}
            nameless = [node for node in nodes if node.get("role", {}).get("value") in named and not node.get("name", {}).get("value")]
            self.assertEqual(nameless, [], title)

    def test_an_empty_fleet_says_what_to_do_next(self):
        d = self.serve()
        page = self.opened(d, "/runs")
        page.wait("document.body.innerText.includes('There is no run yet.')")
        page.evaluate("location.hash = '#/runs?state=failed'")
        page.wait("document.body.innerText.includes('No run matches this filter.')")


class Actions(browser_support.Case):
    def test_a_run_is_submitted_followed_and_cancelled_with_its_receipt(self):
        self.agent("talker", 'command: [sh, -c, "while :; do echo hello $0; sleep 0.1; done", "{{who}}"]\nargs:\n  - {name: who, required: true}\ntitle: talk to {{who}}\n')
        d = self.serve()
        page = self.opened(d, "/agents/talker")
        page.wait("document.querySelector('textarea')")
        page.evaluate("document.querySelector('textarea').focus()")
        page.type("the world")
        page.click("button", "Submit a run")
        run = page.wait("/^#\\/run\\/([a-z2-7]{12})$/.exec(location.hash)?.[1]")
        page.wait("document.querySelector('.output')?.innerText.includes('hello the world')")
        self.assertEqual(page.evaluate("document.querySelector('h1').innerText"), "talk to the world")
        page.click("button", "Cancel…")
        page.wait("document.querySelector('dialog[open]')")
        page.click("button", "Cancel the run")
        said = page.wait("(document.querySelector('.message')?.innerText.includes('cancelled') || false) && document.querySelector('.message').innerText")
        self.assertRegex(said, rf"{run}: cancelled; \d+ process(es)? ended in ")
        self.assertEqual(marked(self.b), [], "nothing of the run is alive when the page says so")
        page.wait("document.querySelector('.headline .state').innerText.includes('cancelled')")
        self.assert_no_faults(page)

    def test_a_prompt_is_submitted_without_an_agent(self):
        d = self.serve()
        page = self.opened(d, "/agents/prompt")
        page.wait("document.querySelector('textarea')")
        page.evaluate("document.querySelector('textarea').focus()")
        page.type("say hello")
        page.click("button", "Submit a run")
        run = page.wait("/^#\\/run\\/([a-z2-7]{12})$/.exec(location.hash)?.[1]")
        self.assertEqual(d.run(run)["prompt"], "say hello")

    def test_new_runs_wait_behind_a_pill_and_rows_keep_their_places(self):
        d = self.serve()
        first = d.submit("slow")
        page = self.opened(d, "/runs")
        page.wait(f"document.querySelector('[data-key=\"{first}\"]')")
        second = d.submit("slow")
        page.wait("document.querySelector('.pill')?.innerText === '1 new'")
        self.assertFalse(page.evaluate(f"!!document.querySelector('[data-key=\"{second}\"]')"))
        page.click("button", "1 new")
        page.wait(f"document.querySelector('.list-row')?.dataset.key === '{second}'")
        d.ask("POST", f"/v1/runs/{first}/cancel")
        page.wait(f"document.querySelector('[data-key=\"{first}\"]').innerText.includes('cancelled')")

    def test_a_limit_is_resized_and_paused(self):
        self.agent("single", 'max_concurrency: 1\ncommand: [sleep, "60"]\ntitle: single\n')
        d = self.serve()
        run = d.submit("single")
        wait_for(lambda: d.run(run)["state"] == "running", 10, "the run")
        page = self.opened(d, "/limits")
        page.wait(f"document.querySelector('.space.taken')?.innerText.includes('{run}')")
        page.click("button", "Resize…")
        page.wait("document.querySelector('dialog[open] input')")
        page.evaluate("document.querySelector('dialog input').select()")
        page.type("3")
        page.click("button", "Resize")
        page.wait("document.querySelectorAll('.space').length === 3 && document.querySelectorAll('.space.free').length === 2")
        limits = {limit["name"]: limit for limit in d.get("/v1/limits")["limits"]}
        self.assertEqual(limits["agent:single"]["capacity"], 3)
        self.assert_no_faults(page)


class Narrow(browser_support.Case):
    def test_no_page_is_wider_than_a_phone_in_both_themes(self):
        self.agent("with-a-name-that-is-rather-long-for-a-phone", 'max_concurrency: 1\ncommand: [sleep, "60"]\ntitle: ' + "long " * 30 + "\n")
        d = self.serve()
        run, _ = d.submit("with-a-name-that-is-rather-long-for-a-phone"), d.submit("with-a-name-that-is-rather-long-for-a-phone")
        d.submit("slow", session="a session")
        for dark in (False, True):
            page = self.opened(d, width=360, height=740, dark=dark)
            for fragment in (*PAGES, f"/run/{run}"):
                page.evaluate(f"location.hash = '#{fragment or '/'}'")
                page.wait("document.querySelector('h1') && !document.querySelector('.loading')")
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 360, fragment)
            self.assert_no_faults(page)


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    chromium.skip_without_chromium()
    unittest.main()
