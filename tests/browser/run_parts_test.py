#!/usr/bin/env python3
"""The parts of a run's page: decisions, attempts, relatives, budget, tool calls, receipt, timeline: `run_parts_test.py STINT [CLASS]`"""
import os
import sys
import unittest

import browser_support
import chromium
import daemon_support
import scripted_server
from fleet_test import confirmed
from host_support import wait_for, write

RUN, CHILD, PARENT = scripted_server.RUN, "cccccccccccc", "dddddddddddd"
BEGUN = 1_000_000_000_000
NOTE, SPAN = {"fence": 1, "state": "running"}, {"kind": "tool", "name": "Bash", "ms": 2500, "text": "ok"}


def timeline(segments, attempts=(), **more):
    """Of a run that began at BEGUN: segments as (kind, name, ms)."""
    at, drawn, sums = BEGUN, [], {}
    for kind, name, ms in segments:
        drawn.append({"kind": kind, "at": at, "ms": ms, **({"name": name} if name else {})})
        sums[kind] = sums.get(kind, 0) + ms
        at += ms
    working = sum(ms for kind, _, ms in segments if kind in ("model_call", "tool", "ending", "working"))
    return {"id": RUN, "state": "succeeded", "begun_at": BEGUN, "until_at": at, "waiting_ms": at - BEGUN - working, "working_ms": working, "charged_ms": working, "tokens": 0,
            "cost_micros": 0, "segments": drawn, "attempts": list(attempts), "sums": [{"kind": kind, "ms": ms, "spans": 1} for kind, ms in sums.items()],
            "spans_left_out": 0, "events_left_out": 0} | more


def attempt(number, begun, ended, cause, state, **more):
    return {"attempt": number, "fence": begun + 1, "begun_at": BEGUN + begun, "ended_at": BEGUN + ended, "cause": cause, "state": state, "spans": []} | more


def verdict(rule, number=1, **more):
    return {"rule": rule, "attempt": number, "attempts_max": 3} | more


class Scripted(unittest.TestCase):
    """Runs that a server made up: each part shows the fields that it gives."""

    @classmethod
    def setUpClass(cls):
        cls.browser = chromium.Browser()
        cls.addClassCleanup(cls.browser.close)

    def opened(self, state, of=None, reasons=(), items=(), events=(), fleet=None, **more):
        self.server = scripted_server.Server()
        self.addCleanup(self.server.close)
        self.server.set_run(state, list(reasons), created_at=BEGUN, seq=len(events) + 1, **more)
        path = f"/v1/runs/{RUN}"
        self.server.answers |= {
            f"{path}/timeline": (200, of or timeline([("working", "", 1000)])), "/v1/limits": (200, {"limits": []}), "/v1/fleet": (200, fleet or scripted_server.fleet()),
            f"{path}/transcript": (200, {"items": list(items), "next": "9.9", "more": False, "bytes": sum(len(item.get("text", "")) for item in items)}),
            f"{path}/events": (200, {"events": [{"run": RUN, "seq": at + 1, "at": BEGUN, **event} for at, event in enumerate(events)], "next": "9"})}
        page = self.browser.open(f"{self.server.url}/#/run/{RUN}")
        page.wait("document.querySelector('.headline') && document.querySelector('.run-lanes')")
        return page

    def card(self, page, title):
        return page.wait(f"[...document.querySelectorAll('section.card')].find((card) => card.querySelector('h2')?.innerText === '{title}')?.innerText")

    def test_an_answer_says_how_many_runs_go_on_before_it_does(self):
        fleet = scripted_server.fleet(parked=4) | {"parked": [{"reason": "quota", "limit": "account:a", "runs": 4, "oldest_at": None}]}
        page = self.opened("parked", hold="quota", error="429", fleet=fleet, reasons=[{"reason": "quota", "limit": "account:a"}])
        question = confirmed(page, "Let it go on…", "Keep as it is")
        self.assertIn("4 runs until a quota resets", question)
        self.assertEqual(self.server.asked, [], "a question that was declined changes nothing")
        self.server.answers[f"POST /v1/runs/{RUN}/answer"] = (200, {"id": RUN, "state": "queued"})
        confirmed(page, "Let it go on…", "Let 4 runs go on")
        page.wait("document.querySelector('.message')?.innerText.includes('goes on: queued')")
        self.assertEqual(self.server.asked, [("POST", f"/v1/runs/{RUN}/answer", None)])

    def test_a_denial_shows_the_call_and_what_allows_it(self):
        denials = [{"tool": "Bash", "call": "rm -r build", "allow": "permissions: edit"}]
        page = self.opened("parked", hold="person", error="a tool was denied", denials=denials, reasons=[{"reason": "person"}])
        said = page.wait("document.querySelector('.decision')?.innerText")
        for part in ("It waits for you", "Bash rm -r build", "permissions: edit"):
            self.assertIn(part, said)
        self.server.answers[f"POST /v1/runs/{RUN}/answer"] = (200, {"id": RUN, "state": "queued"})
        page.click("button", "Let it go on")
        page.wait("document.querySelector('.message')?.innerText.includes('goes on: queued')")

    def test_each_attempt_stands_beside_its_verdict(self):
        attempts = [
            attempt(1, 0, 1000, "lost", "queued"), attempt(1, 1000, 2000, "retry", "queued", hold="backoff", error="529", verdict=verdict("transient", until_at=BEGUN + 5000)),
            attempt(2, 5000, 6000, "park", "parked", hold="quota", error="429", verdict=verdict("quota", 2, until_at=BEGUN + 9000, limit="account:a", resumes=True)),
            attempt(2, 9000, 10_000, "failed", "failed", error="exit 3", verdict=verdict("attempts", 3))]
        page = self.opened("failed", timeline([("working", "", 10_000)], attempts), attempt=3, finished_at=BEGUN + 10_000, error="exit 3", budget={"attempts": 3})
        said = page.wait("[...document.querySelectorAll('.attempts li')].map((each) => each.innerText)")
        for line, parts in zip(said, (("1 (lost)", "its process died; back to the queue"), ("attempt 1 of 3: repeated after 3.0s", "529"),
                                      ("2 (parked)", "a rate limit: parked for 3.0s, and account:a is paused; the next attempt continues the conversation"),
                                      ("not repeated: that was attempt 3 of 3", "exit 3")), strict=True):
            for part in parts:
                self.assertIn(part, line)
        self.assertEqual(page.evaluate("[...document.querySelectorAll('.run-lanes .name')].map((name) => name.innerText)"),
                         ["run", "attempt 1 (lost)", "attempt 1", "attempt 2 (parked)", "attempt 2"])
        self.assertIn("3 of 3\nAttempts that were lost, parked or handed back do not count.", self.card(page, "Budget").replace("\n\n", "\n"))

    def test_budget_shows_what_was_used_of_what(self):
        budget = {"time_ms": 60_000, "tokens": 2000, "cost_micros": 2_000_000, "attempts": 3}
        usage = scripted_server.run("running")["usage"] | {"tokens": 500, "cost_micros": 250_000}
        page = self.opened("running", timeline([("working", "", 15_000)], tokens=1500, cost_micros=1_250_000, budget=budget), usage=usage, attempt=1, budget=budget)
        said = self.card(page, "Budget")
        for part in ("15s of 1m", "1 of 3", "1.5k of 2.0k", "$1.25 of $2", "With its child runs: 1.5k tokens"):
            self.assertIn(part, said)
        widths = page.evaluate("[...document.querySelectorAll('.meters .bar > span')].map((part) => part.style.width)")
        self.assertEqual(widths, ["25%", "33.3333%", "75%", "62.5%"])

    def test_relatives_are_links(self):
        page = self.opened("running", parent=PARENT, retry_of=CHILD, session="chat")
        self.server.answers["/v1/runs"] = (200, {"runs": [scripted_server.run("succeeded") | {"id": CHILD, "title": "a child"}], "next": None})
        page.wait("document.body.innerText.includes('a child')")
        links = page.evaluate("[...[...document.querySelectorAll('section.card')].find((card) => card.innerText.startsWith('Relatives')).querySelectorAll('a')].map((link) => link.getAttribute('href'))")
        self.assertEqual(links, [f"#/run/{PARENT}", f"#/run/{CHILD}", "#/runs?session=chat", f"#/run/{CHILD}"])

    def test_the_transcript_has_tool_calls_between_what_was_said(self):
        items = [{"kind": "attempt", "byte": 0, "seq": 2, "at": BEGUN}, {"kind": "text", "byte": 0, "text": "I look. "}, {"kind": "tool", "byte": 8, "seq": 3, "text": "Bash ls"},
                 {"kind": "tool_end", "byte": 8, "seq": 4, "name": "Bash", "ms": 2500, "text": "a.txt"}, {"kind": "model_call", "byte": 8, "seq": 5, "name": "opus", "ms": 900},
                 {"kind": "text", "byte": 8, "text": "There is a.txt."}, {"kind": "ended", "byte": 23, "seq": 6, "text": "succeeded"}]
        page = self.opened("succeeded", items=items, finished_at=BEGUN + 1000, result="There is a.txt.")
        said = page.wait("document.querySelector('.transcript')?.innerText")
        parts = ["I look.", "Bash ls", "Bash 2.5s", "a.txt", "opus 900 ms", "There is a.txt.", "attempt ended: succeeded"]
        places = [said.index(part) for part in parts]
        self.assertEqual(places, sorted(places), said)
        self.assertNotIn("Result", page.evaluate("[...document.querySelectorAll('h2')].map((title) => title.innerText)"), "it was said above")

    def test_a_long_result_is_not_shown_twice(self):
        text = "word " * 2000
        for result in (text[:900] + "…", "…" + text.strip()[-900:]):
            page = self.opened("succeeded", items=[{"kind": "text", "byte": 0, "text": text}], finished_at=BEGUN + 1000, result=result)
            page.wait("document.querySelector('.transcript .said')")
            self.assertNotIn("Result", page.evaluate("[...document.querySelectorAll('h2')].map((title) => title.innerText)"))

    def test_events_have_words(self):
        span = {"cause": "span", **NOTE}
        events = [{"cause": "claimed", "at": BEGUN + 1500, "data": {"waits": [{"limit": "gpu", "ago_ms": 900, "ms": 900}]}}, {"cause": "tool", **NOTE, "data": {"text": "Bash ls"}},
                  {**span, "data": SPAN}, {**span, "data": {"kind": "ending", "name": "", "ms": 0}}, {"cause": "cancelled", "state": "cancelled", "error": "cancelled"}]
        page = self.opened("cancelled", events=events, finished_at=BEGUN + 8200, error="cancelled")
        page.wait("document.querySelectorAll('.events li').length === 5")
        said = [" ".join(line.split()) for line in page.evaluate("[...document.querySelectorAll('.events li')].map((each) => each.innerText)")]
        self.assertEqual(said, ["+1.5s attempt begins after waiting for gpu (900 ms)", "+0 ms tool called: Bash ls", "+0 ms tool ended: Bash, 2.5s: ok",
                                "+0 ms its processes have ended 0 ms", "+0 ms cancelled"])
        self.assertEqual(page.evaluate("document.querySelector('.headline').innerText").count("cancelled"), 1)

    def test_the_receipt_is_there_after_a_reload(self):
        page = self.opened("cancelled", finished_at=BEGUN + 8200, processes_ended=14, streams_closed=1, ending_ms=230, permits_returned=["agent:tree", "gpu"])
        said = page.wait("document.querySelector('[data-receipt]')?.innerText")
        for part in ("14 processes ended in 230 ms; none is left", "1 stream closed", "returned: agent:tree, gpu"):
            self.assertIn(part, said)

    def test_the_timeline_shows_work_as_work_and_says_how_long_a_folded_wait_was(self):
        spans = [{"kind": "tool", "name": "Bash", "at": BEGUN + 62_000, "ms": 2000}]
        of = timeline([("limit", "gpu", 61_000), ("working", "", 1000), ("tool", "Bash", 2000), ("working", "", 1000)], [attempt(1, 61_000, 65_000, "succeeded", "succeeded", spans=spans)])
        page = self.opened("succeeded", of, attempt=1, started_at=BEGUN + 61_000, finished_at=BEGUN + 65_000)
        self.assertRegex(page.evaluate("document.querySelector('.headline').innerText"), r"succeeded after 1m5s")
        folded = page.wait("document.querySelector('.run-lanes .piece.limit.folded')?.innerText")
        self.assertEqual(" ".join(folded.split()), "1m1s // limit gpu")
        lanes = page.evaluate("[...document.querySelectorAll('.lane-row')].map((lane) => [...lane.querySelectorAll('.piece')].map((piece) => [piece.classList[1], Number(piece.dataset.ms)]))")
        self.assertEqual(lanes, [[["limit", 61_000], ["working", 4000], ["tool", 2000]], [["working", 4000], ["tool", 2000]]], "calls are drawn over work in both lanes")
        colours = page.evaluate("""['.track', '.piece.working', '.piece.tool', '.piece.limit > .label'].map((each) => getComputedStyle(document.querySelector(`.run-lanes ${each}`)).backgroundColor)""")
        self.assertEqual(len(set(colours)), 4, "work does not look like an empty track")
        self.assertNotIn("rgba(0, 0, 0, 0)", colours, "a label has a background of its own")
        self.assertEqual(page.evaluate("[...document.querySelectorAll('[data-sum]')].map((sum) => [sum.dataset.sum, Number(sum.dataset.ms)])"), [["limit", 61_000], ["working", 2000], ["tool", 2000]])


class Decisions(browser_support.Case):
    def test_a_run_in_doubt_is_resolved(self):
        self.agent("publish", 'command: [sleep, "60"]\ntitle: Publish\n', on_crash="doubt")
        first = self.serve()
        runs = [first.submit("publish") for _ in range(2)]
        wait_for(lambda: all(first.run(run)["state"] == "running" for run in runs), 20, "the runs")
        first.process.kill()
        first.process.wait()
        d = self.serve()
        wait_for(lambda: all(d.run(run)["state"] == "in_doubt" for run in runs), 30, "the doubt")
        page = self.opened(d)
        page.wait("document.querySelector('[data-count=needs]')?.innerText === '2'")
        for run, choice, state in zip(runs, ("done", "discard"), ("succeeded", "cancelled"), strict=True):
            page.evaluate(f"location.hash = '#/run/{run}'")
            page.wait("document.querySelector('.decision')?.innerText.includes('was the work done')")
            self.assertNotIn("stint resolve", page.evaluate("document.querySelector('.headline').innerText"), "the buttons are there")
            confirmed(page, choice, f"Resolve: {choice}")
            page.wait(f"document.querySelector('.headline .state.{state}') && !document.querySelector('.decision')")
            self.assertEqual(d.run(run)["state"], state)
        self.assert_no_faults(page)


class Killed(browser_support.Case):
    def test_output_goes_on_at_the_exact_byte_after_the_daemon_was_killed(self):
        go = f"{self.b.home}/go"
        self.agent("talker", f'command: [sh, -c, "for i in $(seq 100000 100999); do echo line $i; done; until test -e {go}; do sleep 0.1; done; for i in $(seq 101000 101999); do echo line $i; done"]\n')
        d = self.serve()
        run = d.submit("talker")
        page = self.opened(d, f"/run/{run}")
        shown = "[...document.querySelectorAll('.transcript .said')].map((each) => [Number(each.dataset.byte), each.textContent])"
        page.wait("document.querySelector('[data-bytes]')?.dataset.bytes === '12000'")
        d.process.kill()
        d.process.wait()
        page.wait("document.querySelector('.connection.lost')")
        again = daemon_support.Daemon(self.b, self.project, listen=f"127.0.0.1:{d.port}")
        self.addCleanup(again.close)
        write(go, "")
        again.wait(run, 60)
        total = again.get(f"/v1/runs/{run}/transcript?from=0.0")["bytes"]
        page.wait(f"document.querySelector('.headline .state.succeeded') && ({shown}).at(-1)[0] + ({shown}).at(-1)[1].length === {total}")
        before, at = page.evaluate(shown), 0
        for byte, text in before:
            self.assertEqual(byte, at, "no byte is missing and none is doubled")
            at += len(text)
        self.assertEqual(at, total)
        page.ask("Page.reload")
        page.wait(f"document.querySelector('[data-bytes]')?.dataset.bytes === '{total}' && ({shown}).at(-1)[0] + ({shown}).at(-1)[1].length === {total}")
        joined = ["".join(text for _, text in items) for items in (before, page.evaluate(shown))]
        self.assertEqual(joined[0], joined[1], "a page that was read anew has the same bytes")
        self.assertTrue(joined[0].endswith("line 101999\n"))
        self.assert_no_faults(page)


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    chromium.skip_without_chromium()
    unittest.main()
