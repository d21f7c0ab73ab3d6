#!/usr/bin/env python3
"""Search and batches: through the API and the commands, with a daemon that is killed, and without one: `batches_test.py STINT`"""
import json
import os
import signal
import subprocess
import sys
import time
import unittest
import urllib.parse

import daemon_support
from host_support import wait_for

RUNS = 300  # six steps of a batch


class Batches(daemon_support.Case):
    settings = "[pool]\nqueue = 20000\n"

    def submit_many(self, count, agent="slow", **more):
        """Without a daemon: they wait in the store."""
        lines = "".join(json.dumps({"seconds": str(3600 + number)}) + "\n" for number in range(count))
        done = subprocess.run([daemon_support.STINT, "submit", agent, "--each", "-", *more.get("words", [])], cwd=self.project, env=self.b.env, input=lines,
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)

    def begin(self, d, expected=202, headers=None, **request):
        status, body, found = d.ask("POST", "/v1/batches", request, headers)
        self.assertEqual(status, expected, body)
        if status == 202:
            self.assertEqual(found["Location"], f"/v1/batches/{body['id']}")
        return body

    def ended(self, d, batch, seconds=60):
        return wait_for(lambda: (lambda now: now if now["ended_at"] else None)(d.get(f"/v1/batches/{batch}")), seconds, "the batch to end")

    def paused(self, words=()):
        """A daemon that begins no run."""
        self.stint("pause")
        return self.serve(*words)

    def test_search_is_in_the_address(self):
        d = self.serve()
        wanted = d.submit("quick", args={"what": "50% of Ärger_1"})
        other = d.submit("quick", args={"what": "50x of trouble"})
        for run in (wanted, other):
            d.wait(run)

        def found(text, **more):
            return [run["id"] for run in d.get("/v1/runs?" + urllib.parse.urlencode({"q": text, **more}))["runs"]]

        self.assertEqual(found("50%"), [wanted])
        self.assertEqual(found("OF Ärger_"), [wanted])
        self.assertEqual(found("50"), [other, wanted])
        self.assertEqual(found(other[:7]), [other])
        self.assertEqual(found("50", limit=1), [other])
        self.assertEqual(found("50", state="failed"), [])
        page = d.get("/v1/runs?q=50&total=true")
        self.assertEqual(page["total"], {"count": 2, "exact": True})
        created = d.run(other)["created_at"]
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(created // 1000)) + f".{created % 1000:03}Z"
        self.assertEqual(found("50", since=moment), [other])
        self.assertEqual(found("50", until=moment), [wanted])
        for wrong in ("q=", "q=" + "x" * 201, "hold=nothing", "since=yesterday", "since=", "parent=", "total=maybe", "q=a&q=b", "search=x"):
            status, body, _ = d.ask("GET", f"/v1/runs?{wrong}")
            self.assertEqual(status, 422, (wrong, body))
        listed = json.loads(self.stint("ls", "--search", "ärger_1", "--json"))["runs"]
        self.assertEqual(listed, [], "only letters of ASCII have no case")
        listed = json.loads(self.stint("ls", "--search", "Ärger_1", "--state", "succeeded", "--since", "1h", "--json"))["runs"]
        self.assertEqual([run["id"] for run in listed], [wanted])

    def test_a_batch_refuses_what_is_not_meant(self):
        self.stint("trust")
        self.submit_many(3)
        d = self.paused()
        self.begin(d, 422, action="cancel", filter={}, expect=3)
        self.begin(d, 422, action="cancel", filter={"agent": "slow"})
        self.begin(d, 422, action="cancel", filter={"state": ["succeeded"]}, expect=0)
        self.begin(d, 422, action="stop", filter={"agent": "slow"}, expect=3)
        self.begin(d, 422, action="cancel", filter={"agent": "slow", "typo": 1}, expect=3)
        refused = self.begin(d, 409, action="cancel", filter={"agent": "slow"}, expect=2)
        self.assertEqual(refused["matched"], 3)
        counted = self.begin(d, 200, action="cancel", filter={"agent": "slow"}, dry_run=True)
        self.assertEqual(counted, {"action": "cancel", "dry_run": True, "matched": 3})
        self.assertEqual(d.get("/v1/batches"), {"batches": [], "next": None}, "nothing has begun")
        self.assertEqual(set(d.states().values()), {"queued"})
        self.assertEqual(d.ask("GET", "/v1/batches/nosuchbatchx")[0], 404)
        self.assertEqual(d.ask("POST", "/v1/batches/nosuchbatchx/cancel", {})[0], 404)

    def test_a_killed_daemon_goes_on_with_its_batch_and_hits_nothing_else(self):
        self.stint("trust")
        self.submit_many(RUNS)
        before = self.paused()
        queued = before.get("/v1/runs?limit=1000")["runs"]
        batch = self.begin(before, action="cancel", filter={"agent": "slow"}, expect=RUNS, headers={"Idempotency-Key": "once"})
        self.assertEqual((batch["matched"], batch["left"] + batch["done"]), (RUNS, RUNS))
        later = before.submit("slow")
        wait_for(lambda: before.get(f"/v1/batches/{batch['id']}")["done"] > 0, 30, "the batch to begin")
        before.process.send_signal(signal.SIGKILL)
        before.process.wait()
        d = self.serve()
        done = self.ended(d, batch["id"])
        self.assertEqual((done["state"], done["done"], done["skipped"], done["failed"], done["left"]), ("done", RUNS, 0, 0, 0))
        states = d.states()
        self.assertEqual({states[run["id"]] for run in queued}, {"cancelled"})
        self.assertIn(states[later], ("queued", "running"), "a run that was submitted later is not in the set")
        again = self.begin(d, 200, action="cancel", filter={"agent": "slow"}, expect=RUNS, headers={"Idempotency-Key": "once"})
        self.assertEqual(again["id"], batch["id"])
        self.begin(d, 409, action="retry", filter={"agent": "slow"}, expect=RUNS, headers={"Idempotency-Key": "once"})
        causes = [event["cause"] for event in d.get("/v1/events?limit=1000")["events"] if not event["run"]]
        self.assertEqual((causes.count("batch_began"), causes.count("batch_ended")), (1, 1))
        metrics = d.ask("GET", "/metrics")[1]
        self.assertIn('stint_batch_runs_total{outcome="done"}', metrics)

    def test_a_retry_is_never_doubled_by_a_kill(self):
        self.stint("trust")
        self.submit_many(RUNS)
        self.stint("cancel", "--all", "--yes")
        before = self.paused()
        batch = self.begin(before, action="retry", filter={"agent": "slow", "state": ["cancelled"]}, expect=RUNS)
        wait_for(lambda: before.get(f"/v1/batches/{batch['id']}")["done"] > 0, 30, "the batch to begin")
        before.process.send_signal(signal.SIGKILL)
        before.process.wait()
        d = self.serve()
        self.assertEqual(self.ended(d, batch["id"])["done"], RUNS)
        originals = {}
        for run in d.get("/v1/runs?limit=1000")["runs"]:
            whole = d.run(run["id"])
            if whole.get("retry_of"):
                originals.setdefault(whole["retry_of"], []).append(run["id"])
        self.assertEqual(len(originals), RUNS)
        self.assertEqual({len(runs) for runs in originals.values()}, {1}, "each run was retried once")

    def test_a_batch_stops_and_reports_each_failure(self):
        self.agent("doomed", "command: [sleep, '3600']\n")
        self.stint("trust")
        self.submit_many(2, "slow")
        doomed = [self.stint("submit", "doomed").strip() for _ in range(2)]
        self.stint("cancel", "--all", "--yes")
        os.unlink(f"{self.project}/.stint/agents/doomed.md")
        d = self.paused()
        done = self.ended(d, self.begin(d, action="retry", filter={"state": ["cancelled"]}, expect=4)["id"])
        self.assertEqual((done["done"], done["failed"], done["left"]), (2, 2, 0))
        self.assertEqual({failure["run"] for failure in done["failures"]}, set(doomed))
        self.assertTrue(all("doomed" in failure["error"] for failure in done["failures"]), done["failures"])
        self.assertNotIn("failures", d.get("/v1/batches")["batches"][0])
        status, body, _ = d.ask("POST", f"/v1/batches/{done['id']}/cancel", {})
        self.assertEqual((status, body["state"]), (200, "done"), "an ended batch stays as it is")

    def test_commands_ask_and_report(self):
        self.stint("trust")
        self.submit_many(7)
        # Without a daemon: the command carries the batch itself.
        refused = subprocess.run([daemon_support.STINT, "cancel", "--agent", "slow"], cwd=self.project, env=self.b.env, stdin=subprocess.DEVNULL,
                                 capture_output=True, text=True, timeout=60)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("7 runs match", refused.stderr)
        self.stint("cancel", "--agent", "slow", "abc", status=2)
        self.stint("cancel", status=2)
        done = json.loads(self.stint("cancel", "--search", "360", "--state", "queued", "--yes", "--json"))
        self.assertEqual((done["state"], done["matched"], done["done"]), ("done", 7, 7))
        self.assertEqual(self.stint("cancel", "--all", "--yes"), "No run matches.\n")
        self.assertIn("Submitted again 7 of 7 runs.", self.stint("retry", "--agent", "slow", "--yes"))
        d = self.paused()
        self.assertIn("Cancelled 7 of 7 runs.", self.stint("cancel", "--agent", "slow", "--yes"))
        self.assertEqual(len(d.get("/v1/batches")["batches"]), 3)


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main()
