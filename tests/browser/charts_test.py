#!/usr/bin/env python3
"""Charts draw gaps as gaps and marks as lines; the page of an agent shows it and submits a run: `charts_test.py STINT`"""
import os
import sys
import unittest

import browser_support
import chromium
import daemon_support
import scripted_server
from host_support import write

NAMES = ("startable", "held", "running", "busy", "workers", "started", "succeeded", "failed", "cancelled", "expired", "in_doubt", "tokens", "cost_micros")
KNOWN = [1, 2, 3, None, None, 4, 0, None, 5, None]


def series(values):
    marks = [{"at": 1_000_000_025_000, "cause": "resized", "data": {"limit": "gpu", "capacity": 3}}, {"at": 1_000_000_060_000, "cause": "node_joined", "data": {"label": "host:1"}}]
    return {"as_of": 1_000_000_093_000, "step_s": 10, "first_at": 1_000_000_000_000, "count": len(values), "samples": [None if value is None else 1 for value in values],
            "series": {name: values for name in NAMES}, "marks": marks}


class Charts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = chromium.Browser()
        cls.addClassCleanup(cls.browser.close)

    def opened(self, answer, **options):
        self.server = scripted_server.Server()
        self.addCleanup(self.server.close)
        self.server.answers["/v1/series"] = answer
        return self.browser.open(f"{self.server.url}/#/", **options)

    def test_unknown_values_are_gaps_and_marks_are_lines_with_numbers(self):
        page = self.opened((200, series(KNOWN)))
        page.wait("document.querySelector('.chart .curve')")
        drawn = page.evaluate("[...document.querySelectorAll('.curve[data-line=\"held\"] polyline')].map((line) => line.getAttribute('points').split(' ').length)")
        self.assertEqual(drawn, [3, 2], "one line per stretch of known values, and none across a gap")
        self.assertEqual(page.evaluate("document.querySelectorAll('.curve[data-line=\"held\"] circle').length"), 1, "a single value is a point")
        self.assertEqual(page.evaluate("[...document.querySelector('.chart').querySelectorAll('.mark-lines text')].map((text) => text.textContent)"), ["1", "2"])
        self.assertEqual(page.evaluate("[...document.querySelectorAll('.marks li')].map((item) => item.innerText.replace(/^[\\d:]+ /, ''))"), ["limit gpu: capacity 3", "node host:1 started"])
        self.assertEqual(page.faults(), [])

    def test_the_keyboard_moves_the_cursor_and_a_table_has_the_same_values(self):
        page = self.opened((200, series(KNOWN)))
        page.wait("document.querySelector('.chart .curve')")
        page.evaluate("document.querySelector('.plot').focus()")
        value = "document.querySelector('.chart-legend strong').innerText"
        self.assertEqual(page.evaluate(value), "5", "the last known one")
        seen = []
        for _ in range(4):
            page.press("ArrowLeft")
            seen.append(page.evaluate(value))
        self.assertEqual(seen, ["–", "5", "–", "0"], "what is not known is not 0")
        page.press("Home")
        self.assertEqual(page.evaluate(value), "1")
        page.evaluate("document.querySelector('.chart-table').open = true")
        rows = page.wait("(document.querySelectorAll('.chart-table table tbody tr').length || false)")
        self.assertEqual(rows, sum(value is not None for value in KNOWN))
        page.wait("document.querySelector('.table-place').innerText.includes('4 of 10 steps have no sample')")

    def test_each_line_has_its_own_colour_and_its_legend_the_same(self):
        page = self.opened((200, series(KNOWN)))
        page.wait("document.querySelector('.chart .curve')")
        pairs = page.evaluate("""[...document.querySelectorAll('.chart')].flatMap((chart) => [...chart.querySelectorAll('.chart-swatch')].map((swatch, at) =>
          [getComputedStyle(swatch).backgroundColor, getComputedStyle(chart.querySelectorAll('.curve')[at]).stroke, getComputedStyle(swatch).borderLeftWidth]))""")
        self.assertEqual(len(pairs), 8)
        for swatch, stroke, border in pairs:
            self.assertEqual((swatch, border), (stroke, "0px"))
        for first, count in ((0, 2), (2, 2), (4, 3)):
            self.assertEqual(len({swatch for swatch, _, _ in pairs[first:first + count]}), count, "within a chart no two lines have the same colour")

    def test_numbers_beside_the_plot_are_whole_also_when_nothing_was_spent(self):
        page = self.opened((200, series([0, 0, 0])))
        page.wait("document.querySelectorAll('.chart').length === 4")
        texts = "[...document.querySelectorAll('.axes text')]"
        cost = "[...[...document.querySelectorAll('.chart')].at(-1).querySelectorAll('.axes g text')].map((text) => text.textContent)"
        self.assertEqual(page.evaluate(cost), ["0", "$0.01", "$0.02"])
        for micros in (0, 3_000, 7_000_000_000):
            self.server.answers["/v1/series"] = (200, series([micros, micros]))
            page.evaluate("location.reload()")
            page.wait(f"document.querySelectorAll('.chart').length === 4 && {texts}.length > 8")
            page.wait(f"{texts}.every((text) => text.getBoundingClientRect().left >= text.closest('svg').getBoundingClientRect().left)")

    def test_a_young_fleet_is_drawn_from_its_first_sample(self):
        page = self.opened((200, series([None] * 300 + [7] * 60)))
        page.wait("document.querySelector('.chart .curve')")
        drawn = "[...document.querySelectorAll('.curve[data-line=\"held\"] polyline')].map((line) => line.getBoundingClientRect().width / line.closest('svg').clientWidth)"
        page.wait(f"({drawn})[0] > 0.7")
        self.assertRegex(page.evaluate("document.querySelector('[data-field=first-sample]').innerText"), r"\d\d:\d\d:\d\d")
        self.server.answers["/v1/series"] = (200, series([None] * 358 + [7] * 2))
        page.evaluate("location.reload()")
        page.wait(f"({drawn})[0] > 0 && ({drawn})[0] < 0.1")  # the axis has ten minutes

    def test_the_legend_names_the_marks_at_the_cursor(self):
        page = self.opened((200, {**series(KNOWN), "marks": [{"at": 1_000_000_020_000 + at, "cause": "scaled", "data": {"workers": at}} for at in range(3)]}))
        page.wait("document.querySelector('.chart .curve')")
        self.assertFalse(page.evaluate("!!document.querySelector('.at-cursor')"))
        page.evaluate("document.querySelector('.plot').focus()")
        page.press("Home")
        for _ in range(2):
            page.press("ArrowRight")
        page.wait("document.querySelector('.at-cursor')?.innerText === '1. pool scaled to 0; 2. pool scaled to 1; 3. pool scaled to 2'")

    def test_failed_and_empty_look_different(self):
        page = self.opened((503, {"type": "about:blank", "title": "Unavailable", "status": 503, "detail": "the store is gone"}))
        page.wait("[...document.querySelectorAll('.trouble')].some((each) => each.innerText.includes('the store is gone'))")
        self.assertFalse(page.evaluate("document.querySelector('.chart') !== null"))
        self.server.answers["/v1/series"] = (200, series([None, None]))
        page.wait("document.querySelector('[aria-label=\"Charts\"] .empty')?.innerText.includes('No sample was taken')")

    def test_a_phone_shows_them_without_scrolling_sideways(self):
        page = self.opened((200, series(KNOWN)), width=360, height=740)
        page.wait("document.querySelector('.chart .curve')")
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 360)


class Agent(browser_support.Case):
    def test_the_page_of_an_agent(self):
        self.agent("review", 'command: [sh, -c, "echo $0 $1", "{{pr}}", "{{focus}}"]\nargs:\n  - {name: pr, description: the number, required: true}\n  - {name: focus, default: all}\nbudget: {attempts: 2}\n')
        write(f"{self.project}/.stint/agents/broken.md", "---\ndescription: broken\nmax_concurrency: 0\n---\nhello\n")
        d = self.serve()
        d.wait(d.submit("review", args={"pr": "1"}))
        page = self.opened(d, "/agents")
        page.wait("document.querySelector('.problems')?.innerText.includes('broken.md:3')")
        page.wait("document.body.innerText.includes('review')")
        page.evaluate("location.hash = '#/agents/review'")
        page.wait("document.querySelector('[aria-label=\"Statistics of the last day\"]')?.innerText.includes('1 succeeded')")
        self.assertIn("2 attempts", page.evaluate("document.querySelector('[aria-label=\"Definition\"]').innerText"))
        self.assertEqual(page.evaluate("document.querySelector('textarea[name=\"arg.focus\"]').placeholder"), "all")
        page.evaluate("document.querySelector('textarea[name=\"arg.pr\"]').required = false")
        page.click("button", "Submit a run")
        page.wait("document.querySelector('#bad-pr')?.innerText.includes(\"'pr'\")")
        self.assertEqual(page.evaluate("document.querySelector('textarea[name=\"arg.pr\"]').getAttribute('aria-invalid')"), "true", "the refusal is at its field")
        page.evaluate("document.querySelector('textarea[name=\"arg.pr\"]').focus()")
        page.type("42")
        page.click("button", "Submit a run")
        run = page.wait("/^#\\/run\\/([a-z2-7]{12})$/.exec(location.hash)?.[1]")
        self.assertEqual(d.wait(run)["args"], {"pr": "42", "focus": "all"})
        self.assert_no_faults(page)


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    chromium.skip_without_chromium()
    unittest.main(verbosity=2)
