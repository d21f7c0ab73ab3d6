#!/usr/bin/env python3
"""Search and batches on the Runs page: found, counted, confirmed, tracked; they survive the page and the daemon: `batch_test.py STINT [CLASS]`"""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

import browser_support
import chromium
import daemon_support
from host_support import wait_for


class Page(browser_support.Case):
    settings = "[pool]\nqueue = 20000\n"

    def submit_many(self, count):
        self.stint("trust")
        lines = "".join(json.dumps({"seconds": str(5000 + number)}) + "\n" for number in range(count))
        subprocess.run([daemon_support.STINT, "submit", "slow", "--each", "-"], cwd=self.project, env=self.b.env, input=lines, capture_output=True, text=True,
                       timeout=600, check=True)

    def paused(self, listen="127.0.0.1:0"):
        self.stint("pause")
        return self.serve(listen=listen)

    def cancel_all(self, count):
        """Through the page, which is closed at once; the daemon is killed on the way."""
        self.submit_many(count)
        d = self.paused()
        page = self.opened(d, "/runs?agent=slow")
        page.wait("document.querySelector('.run-actions [role=status]').innerText.includes('match')")
        page.click("button", "Cancel all matching…")
        page.wait(f"document.querySelector('dialog[open]')?.innerText.includes('{count} runs')")
        later = d.submit("slow", args={"seconds": "1"}, delay_ms=3_600_000)
        # The count has changed: nothing happens, and the page says the true number.
        page.click("button", f"Cancel {count} runs")
        page.wait(f"document.querySelector('.message.bad')?.innerText.includes('{count + 1} runs match')")
        self.assertEqual(d.get("/v1/batches")["batches"], [])
        d.ask("POST", f"/v1/runs/{later}/cancel", {})
        page.click("button", "Cancel all matching…")
        page.wait(f"document.querySelector('dialog[open]')?.innerText.includes('{count} runs')")
        page.click("button", f"Cancel {count} runs")
        page.wait("document.querySelector('.batch')")
        self.assert_no_faults(page)
        batch = d.get("/v1/batches")["batches"][0]
        page.go("about:blank")
        wait_for(lambda: d.get(f"/v1/batches/{batch['id']}")["done"] > 0, 60, "the batch to begin")
        d.process.send_signal(signal.SIGKILL)
        d.process.wait()
        done_before = time.time()
        d = self.paused()
        late = d.submit("slow", args={"seconds": "2"}, delay_ms=3_600_000)
        done = wait_for(lambda: (lambda now: now if now["ended_at"] else None)(d.get(f"/v1/batches/{batch['id']}")), 600, "the batch to end")
        self.assertEqual((done["matched"], done["done"], done["failed"], done["left"]), (count, count, 0, 0))
        states = d.states()
        self.assertEqual(states.pop(late), "queued", "submitted later")
        self.assertEqual(states.pop(later), "cancelled")
        self.assertEqual((len(states), set(states.values())), (count, {"cancelled"}))
        print(f"{count} runs, {time.time() - done_before:.1f} s after the restart")
        return d


class Small(Page):
    def test_cancel_all_matching_survives_the_page_and_the_daemon(self):
        d = self.cancel_all(250)
        page = self.opened(d, "/runs?q=slow&state=cancelled")
        page.wait("document.querySelector('.run-actions [role=status]').innerText === '251 runs match'")

    def test_search_lives_in_the_address_and_actions_need_a_filter(self):
        self.submit_many(30)
        d = self.paused()
        page = self.opened(d, "/runs")
        page.wait("document.querySelectorAll('.list-row').length > 20")
        disabled = "[...document.querySelectorAll('.run-actions button')].every((button) => button.disabled)"
        self.assertTrue(page.evaluate(disabled), "no action without a filter")
        page.press("/")
        page.type("5007")
        page.wait("location.hash.includes('q=5007') && document.querySelectorAll('.list-row').length === 1")
        page.wait("document.querySelector('.run-actions [role=status]').innerText === '1 run matches'")
        self.assertFalse(page.evaluate(disabled))
        self.assertEqual(page.evaluate("document.activeElement.name"), "q", "the focus stays where one types")
        page.evaluate("location.reload()")
        page.wait("document.querySelectorAll('.list-row').length === 1 && document.querySelector('[name=q]').value === '5007'")
        page.click("button", "Clear")
        page.wait("document.querySelectorAll('.list-row').length > 20 && document.querySelector('[name=q]').value === ''")
        page.go(page.evaluate("location.href.split('?')[0]") + "?q=%25")
        page.wait("document.querySelector('.empty')?.innerText.includes('No run matches')")
        self.assert_no_faults(page)

    def test_a_selection_freezes_the_list_and_is_acted_on(self):
        self.submit_many(10)
        d = self.paused()
        page = self.opened(d, "/runs?state=queued")
        page.wait("document.querySelectorAll('.list-row').length === 10")
        first = page.evaluate("[...document.querySelectorAll('.list-row')].map((row) => row.dataset.key)")
        page.click("checkbox", f"Select {first[2]}")
        page.click("checkbox", f"Select {first[5]}")
        page.wait("document.querySelector('.run-actions').innerText.includes('2 selected')")
        d.submit("slow", delay_ms=3_600_000)
        page.wait("document.querySelector('.pill')?.innerText === '1 new'")
        self.assertTrue(page.evaluate("document.querySelector('.pill').disabled"), "no row comes while some are selected")
        d.ask("POST", f"/v1/runs/{first[2]}/cancel", {})
        page.wait(f"document.querySelector('[data-key=\"{first[2]}\"] .state').innerText.includes('cancelled')")
        rows = page.evaluate("[...document.querySelectorAll('.list-row')].map((row) => row.dataset.key)")
        self.assertEqual(rows, first, "a row that left the filter keeps its place")
        page.click("button", "Cancel selected")
        page.wait("document.querySelector('dialog[open]')?.innerText.includes('1 selected run')")
        page.click("button", "Cancel 1 run")
        page.wait("document.querySelector('.message')?.innerText.includes('1 run cancelled')")
        wait_for(lambda: d.run(first[5])["state"] == "cancelled", 10, "the selected run to end")
        self.assert_no_faults(page)

    def test_a_batch_shows_progress_and_each_failure(self):
        self.agent("doomed", "command: [sleep, '3600']\n")
        self.submit_many(3)
        doomed = self.stint("submit", "doomed").strip()
        self.stint("cancel", "--all", "--yes")
        os.unlink(f"{self.project}/.stint/agents/doomed.md")
        d = self.paused()
        page = self.opened(d, "/runs?state=cancelled", width=360, height=800)
        page.wait("document.querySelectorAll('.list-row').length === 4")
        page.click("button", "Retry all matching…")
        page.wait("document.querySelector('dialog[open]')?.innerText.includes('4 runs')")
        page.press("Tab")
        page.click("button", "Retry 4 runs")
        page.wait("document.querySelector('.batch-state.done')")
        self.assertIn("3 submitted again · 1 failed", page.evaluate("document.querySelector('.batch-counts').innerText"))
        page.evaluate("document.querySelector('.batch summary').click()")
        self.assertIn(doomed, page.evaluate("document.querySelector('.batch details').innerText"))
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 360, "nothing is wider than the screen")
        page.click("button", f"Dismiss batch {d.get('/v1/batches')['batches'][0]['id']}")
        page.wait("!document.querySelector('.batch')")
        self.assert_no_faults(page)


class Large(Page):
    def test_cancel_all_ten_thousand_matching(self):
        self.cancel_all(10_000)


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    chromium.skip_without_chromium()
    unittest.main()
