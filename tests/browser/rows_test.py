#!/usr/bin/env python3
"""Long lists and long output: few elements, fixed places, nothing moves under the reader: `rows_test.py STINT`"""
import os
import sys
import unittest

import browser_support
import chromium
import daemon_support

RUNS = 600
DRAWN_MAX = 80  # rows of the viewport and its margin


class Rows(browser_support.Case):
    settings = "[pool]\nqueue = 5000\n"

    def test_only_rows_near_the_viewport_are_drawn_and_older_ones_are_loaded(self):
        d = self.serve()
        for _ in range(RUNS):
            d.submit("slow", delay_ms=3_600_000)
        page = self.opened(d, "/runs")
        page.wait("document.querySelectorAll('.list-row').length > 5")
        self.assertLess(page.evaluate("document.querySelectorAll('.list-row').length"), DRAWN_MAX)
        first = page.evaluate("document.querySelector('.list-row').dataset.key")
        oldest = list(d.states())[-1]
        page.wait(f"(scrollTo(0, 1e9), document.querySelector('[data-key=\"{oldest}\"]'))")
        self.assertEqual(page.evaluate("document.querySelector('[role=table]').getAttribute('aria-rowcount')"), str(RUNS + 1))
        self.assertLess(page.evaluate("document.querySelectorAll('.list-row').length"), DRAWN_MAX)
        # New runs move nothing, wherever the reader is.
        place = page.evaluate("scrollY")
        d.submit("slow", delay_ms=3_600_000)
        page.wait("document.querySelector('.pill')?.innerText === '1 new'")
        self.assertEqual(page.evaluate("scrollY"), place)
        page.wait(f"(scrollTo(0, 0), document.querySelector('.list-row')?.dataset.key === '{first}')")
        self.assert_no_faults(page)

    def test_output_is_followed_only_at_the_bottom(self):
        self.agent("talker", 'command: [sh, -c, "for i in $(seq 1 3000); do echo line $i; sleep 0.02; done"]\n')
        d = self.serve()
        page = self.opened(d, f"/run/{d.submit('talker')}")
        bottom = "(box = document.querySelector('.output'), box.scrollHeight > box.clientHeight && box.scrollHeight - box.scrollTop - box.clientHeight < 30)"
        page.wait(f"document.querySelector('.output') && {bottom}")
        page.evaluate("box.scrollTop = 5")
        page.wait("/^[0-9]+ new ↓$/.test(document.querySelector('.output-place .pill')?.innerText)")
        self.assertEqual(page.evaluate("box.scrollTop"), 5)
        page.evaluate("document.querySelector('.output-place .pill').click()")
        page.wait(f"!document.querySelector('.output-place .pill') && {bottom}")
        lines = page.evaluate("box.innerText").split("\n")
        numbers = [int(line.split()[1]) for line in lines if line.startswith("line ")]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)), "each line once")
        self.assert_no_faults(page)


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    chromium.skip_without_chromium()
    unittest.main()
