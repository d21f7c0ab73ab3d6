#!/usr/bin/env python3
"""The page of the playground: a lesson, a shared address, a sandbox by hand, a daemon that forgot it: `playground_test.py STINT`"""
import os
import sys
import unittest

import browser_support
import chromium
import daemon_support
import playground_support


class Playground(browser_support.Case):
    def rows(self, page):
        return page.evaluate(playground_support.ROWS)

    def ready(self, page, script="true"):
        page.wait(f"document.querySelector('.stage') && !document.querySelector('.loading') && ({script})")

    def press_and_wait(self, page, role, name, script):
        page.click(role, name)
        self.ready(page, script)

    def test_a_lesson_asks_plays_and_compares(self):
        d = self.serve()
        page = self.opened(d, "/playground")
        self.ready(page, "document.querySelector('.prediction legend')")
        self.assertTrue(page.evaluate("document.querySelector('.play').disabled"), "the prediction comes first")
        page.click("button", "After two seconds")
        self.ready(page, "!document.querySelector('.play').disabled")
        self.press_and_wait(page, "button", "Step", "document.querySelectorAll('[data-event]').length === 1")
        self.assertEqual(page.evaluate("document.querySelectorAll('.bay .car').length"), 1)
        self.assertIn("garage.acquire", page.evaluate("document.querySelector('.cpp .at').innerText"))
        self.press_and_wait(page, "button", "To the end", "document.querySelector('.prediction.over')")
        self.assertIn("You predicted After two seconds. It is: After one second.", page.evaluate("document.querySelector('.verdict').innerText"))
        self.assertEqual(self.rows(page), [playground_support.row(event) for event in playground_support.played(d, preset="three-at-two")["events"]])
        self.press_and_wait(page, "button", "Back to the start", "document.querySelectorAll('[data-event]').length === 0")
        self.assert_no_faults(page)

    def test_the_address_shows_the_same_again(self):
        d = self.serve()
        page = self.opened(d, "/playground/priority-inversion?guess=2&seed=7")
        self.ready(page)  # a key before that is for no lesson
        for count in range(1, 6):
            page.press("n")
            self.ready(page, f"document.querySelectorAll('[data-event]').length >= {count} && !location.hash.includes('step=0')")
        address, rows = page.evaluate("location.hash"), self.rows(page)
        again = self.browser.open(f"http://{d.host}:{d.port}/{address}&token={d.token}")
        self.ready(again, f"document.querySelectorAll('[data-event]').length === {len(rows)}")
        self.assertEqual(self.rows(again), rows)
        self.assertEqual(again.evaluate("location.hash"), address)
        self.assertIn("30 s for the semaphore, 10 s for the mutex", again.evaluate("document.querySelector('.prediction').innerText"))
        again.evaluate("location.hash = '#/playground/no-such-lesson'")
        again.wait("document.querySelector('.empty')?.innerText.includes('There is no lesson')")

    def test_a_garage_by_hand_survives_a_restart_of_the_daemon(self):
        d = self.serve()
        page = self.opened(d, "/playground/own")
        self.ready(page)
        for count in (1, 2, 3):
            self.press_and_wait(page, "button", "Acquire", f"document.querySelectorAll('[data-event]').length === {count}")
        self.assertEqual(page.evaluate("[...document.querySelectorAll('.queue .car')].map((car) => car.innerText)"), ["c"])
        self.press_and_wait(page, "button", "+ 1 s", "document.querySelector('.clock').innerText === '1.0 s'")
        self.press_and_wait(page, "button", "Release", "document.querySelectorAll('[data-event]').length === 5")
        self.press_and_wait(page, "button", "Back", "document.querySelectorAll('[data-event]').length === 4")
        d.process.kill()
        d.process.wait()
        page.wait("document.querySelector('.connection.lost')", 10)
        again = daemon_support.Daemon(self.b, self.project, listen=f"127.0.0.1:{d.port}")
        self.addCleanup(again.close)
        page.wait("document.querySelector('.connection.live')", 15)
        before = self.rows(page)
        self.press_and_wait(page, "button", "Set bypass", "document.querySelector('.trouble')")
        self.assertIn("'garage' is in use", page.evaluate("document.querySelector('.stage .trouble').innerText"))
        self.press_and_wait(page, "button", "+ 1 s", "document.querySelector('.clock').innerText === '2.0 s'")
        self.assertEqual(self.rows(page)[:len(before)], before)
        self.assert_no_faults(page)

    def test_a_lost_sandbox_is_made_anew(self):
        d = self.serve()
        page = self.opened(d, "/playground/cancelled-head?guess=0")
        self.ready(page)
        self.press_and_wait(page, "button", "Step", "document.querySelectorAll('[data-event]').length === 1")
        for _ in range(16):  # as many as there may be: the page's own goes first
            d.ask("POST", "/v1/playground", {})
        self.press_and_wait(page, "button", "Step", "document.querySelector('.note')?.innerText.includes('made again') && document.querySelectorAll('[data-event]').length === 2")


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    chromium.skip_without_chromium()
    unittest.main()
