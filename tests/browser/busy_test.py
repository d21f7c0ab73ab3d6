#!/usr/bin/env python3
"""A long list while the fleet is busy: no task of the page takes over 50 ms, nothing moves: `busy_test.py STINT [CLASS]`

A task is measured by the processor time of its thread, from the browser's own trace: the wall time of a task on a busy machine is that of the
machine.
"""
import json
import os
import subprocess
import sys
import threading
import time
import unittest

import browser_support
import chromium
import daemon_support

TASK_MS_MAX = 50


class Busy(browser_support.Case):
    settings = "[pool]\nqueue = 20000\n"

    def submit_many(self, count):
        self.stint("trust")
        lines = "".join(json.dumps({"seconds": str(5000 + number)}) + "\n" for number in range(count))
        subprocess.run([daemon_support.STINT, "submit", "slow", "--each", "-"], cwd=self.project, env=self.b.env, input=lines, capture_output=True, text=True,
                       timeout=600, check=True)

    def trace(self, page, work):
        """The longest task of the page's main thread while `work` runs, in ms of processor time; and how many there were."""
        events, ended = [], threading.Event()
        known = page.notice

        def notice(method, parameters):
            if method == "Tracing.dataCollected":
                events.extend(parameters["value"])
            elif method == "Tracing.tracingComplete":
                ended.set()
            known(method, parameters)

        page.notice = notice
        page.ask("Tracing.start", categories="toplevel,devtools.timeline,disabled-by-default-devtools.timeline", transferMode="ReportEvents")
        work()
        page.ask("Tracing.end")
        self.assertTrue(ended.wait(120), "the trace ends")
        page.notice = known
        main = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name" and event.get("args", {}).get("name") == "CrRendererMain"}
        tasks = [event["tdur"] / 1000 for event in events
                 if event["name"] == "RunTask" and "tdur" in event and (event["pid"], event["tid"]) in main]
        self.assertGreater(len(tasks), 100, "the trace has the tasks of the page")
        return max(tasks), len(tasks)

    def watch(self, rows, seconds, per_second):
        self.submit_many(rows)
        self.stint("pause")
        d = self.serve()
        page = self.opened(d, "/runs?agent=slow")
        page.wait("document.querySelectorAll('.list-row').length > 5")
        # All rows are loaded before it begins; then the reader goes somewhere into the middle.
        page.wait(f"(scrollTo(0, document.body.scrollHeight), document.querySelector('[role=table]').getAttribute('aria-rowcount') === '{rows + 1}')", 180)
        page.evaluate(f"scrollTo(0, {20 * rows})")
        page.wait("(row = [...document.querySelectorAll('.list-row')].find((each) => each.getBoundingClientRect().top > 300 && "
                  "each.getBoundingClientRect().bottom < innerHeight), row)")
        key = page.evaluate("row.dataset.key")
        chosen = f"document.querySelector('[data-key=\"{key}\"] input')"
        page.wait(f"({chosen}.checked || {chosen}.click(), {chosen}.checked)")
        page.evaluate(f"document.querySelector('[data-key=\"{key}\"] a').focus({{preventScroll: true}})")
        place = "[scrollY, document.querySelector('[data-key=\"%s\"]').getBoundingClientRect().top, document.activeElement.innerText, " \
                "document.querySelectorAll('.c-select input:checked').length]" % key
        before = page.evaluate(place)
        moved = []

        def work():
            begun = time.monotonic()
            for number in range(seconds * per_second):
                d.submit("slow", delay_ms=3_600_000)  # one event each
                if number % per_second == 0 and (now := page.evaluate(place)) != before:
                    moved.append(now)
                time.sleep(max(0.0, begun + number / per_second - time.monotonic()))
            self.took = time.monotonic() - begun

        longest, tasks = self.trace(page, work)
        page.wait("document.querySelector('.pill')")
        self.assertEqual(moved, [], f"scroll, selection and focus stay: {before}")
        self.assertEqual(page.evaluate(place), before)
        print(f"{rows} rows, {seconds * per_second / self.took:.0f} events a second: the longest of {tasks} tasks took {longest:.1f} ms of processor time")
        self.assertLess(longest, TASK_MS_MAX)
        self.assert_no_faults(page)


class Short(Busy):
    def test_nothing_moves_in_a_list_of_a_busy_fleet(self):
        self.watch(600, 4, 50)


class Large(Busy):
    def test_five_thousand_rows_at_fifty_events_a_second(self):
        self.watch(5000, 20, 50)


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    chromium.skip_without_chromium()
    unittest.main()
