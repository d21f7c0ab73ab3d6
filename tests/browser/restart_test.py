#!/usr/bin/env python3
"""A daemon that is killed, frozen or restarted under an open page: `restart_test.py STINT`"""
import os
import signal
import sys
import time
import unittest

import browser_support
import chromium
import daemon_support
import scripted_server

SAID_SECONDS_MAX = 3.0


class Restart(browser_support.Case):
    def said_after(self, page, end):
        """Seconds until the page says that it is disconnected."""
        began = time.monotonic()
        end()
        page.wait("document.querySelector('.connection.lost')", 10)
        return time.monotonic() - began

    def test_a_killed_daemon_is_said_and_its_successor_found(self):
        d = self.serve()
        ended = d.submit("quick")
        d.wait(ended)
        page = self.opened(d)
        page.wait("document.querySelector('[data-count=succeeded]').innerText === '1'")
        self.assertLess(self.said_after(page, lambda: (d.process.kill(), d.process.wait())), SAID_SECONDS_MAX)
        self.assertRegex(page.text(), r"Disconnected from the daemon\. .*was read at \d\d:\d\d:\d\d")
        self.assertEqual(page.evaluate("document.querySelector('[data-count=succeeded]').innerText"), "1", "what was read stays")
        again = daemon_support.Daemon(self.b, self.project, listen=f"127.0.0.1:{d.port}")
        self.addCleanup(again.close)
        page.wait("document.querySelector('.connection.live')", 15)
        again.wait(again.submit("quick"))
        page.wait("document.querySelector('[data-count=succeeded]').innerText === '2'")
        self.assert_no_faults(page)

    def test_a_frozen_daemon_is_said_too(self):
        d = self.serve()
        page = self.opened(d)
        self.addCleanup(lambda: d.process.send_signal(signal.SIGCONT))
        self.assertLess(self.said_after(page, lambda: d.process.send_signal(signal.SIGSTOP)), SAID_SECONDS_MAX)
        d.process.send_signal(signal.SIGCONT)
        page.wait("document.querySelector('.connection.live')", 15)

    def test_a_daemon_that_freezes_before_the_feed_is_open_is_said_too(self):
        server = scripted_server.Server()
        self.addCleanup(server.close)
        server.hanging.add("/v1/events")
        page = self.browser.open(f"{server.url}/#/")
        page.wait("document.querySelector('.connection.live')")

        def freeze():
            server.frozen = True
        self.assertLess(self.said_after(page, freeze), SAID_SECONDS_MAX)

    def test_the_events_of_a_run_are_whole_after_a_restart(self):
        d = self.serve()
        run = d.submit("slow", args={"seconds": "3"})
        page = self.opened(d, f"/run/{run}")
        page.wait("document.querySelectorAll('[data-seq]').length >= 2")
        d.process.kill()
        d.process.wait()
        page.wait("document.querySelector('.connection.lost')", 10)
        again = daemon_support.Daemon(self.b, self.project, listen=f"127.0.0.1:{d.port}")
        self.addCleanup(again.close)
        again.wait(run, 60)
        wanted = [event["seq"] for event in again.get(f"/v1/runs/{run}/events?limit=1000")["events"]]
        script = "[...document.querySelectorAll('[data-seq]')].map((each) => Number(each.dataset.seq))"
        page.wait(f"JSON.stringify({script}) === '{wanted}'.replaceAll(' ', '')")

    def test_a_wrong_token_asks_for_one_and_shows_no_number(self):
        d = self.serve()
        page = self.browser.open(f"http://{d.host}:{d.port}/#token=wrong")
        page.wait("document.querySelector('.lock-page')")
        self.assertFalse(page.evaluate("!!document.querySelector('[data-count]')"))
        page.evaluate("document.querySelector('input[name=token]').focus()")
        page.type(d.token)
        page.press("Enter")
        page.wait("document.querySelector('[data-count]')")


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    chromium.skip_without_chromium()
    unittest.main()
