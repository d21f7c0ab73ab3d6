#!/usr/bin/env python3
"""The snapshot of the fleet and the feed after it, compared with SQL counts: `snapshot_test.py STINT [CLASS]`

STINT_TRANSITIONS: how many changes of state; a full run has 10,000."""
import json
import os
import signal
import sys
import threading
import time
import unittest

import churn
import daemon_support

TRANSITIONS = int(os.environ.get("STINT_TRANSITIONS", "600"))
SECONDS_MAX = 60 + TRANSITIONS * 0.12


class Follower:
    """Follows the feed from a cursor, resuming after the last id, through the death of daemons."""

    def __init__(self, daemon, cursor):
        self.daemon, self.cursor = daemon, cursor
        self.ids, self.seen, self.beats = [], [], 0
        self.over = False
        self.thread = threading.Thread(target=self.go, daemon=True)
        self.thread.start()

    def go(self):
        while not self.over:
            try:
                self.follow()
            except (OSError, ValueError):
                time.sleep(0.1)

    def follow(self):
        connection = self.daemon.connection(3)
        last = {"Last-Event-ID": self.ids[-1]} if self.ids else {}
        connection.request("GET", f"/v1/events?after={self.cursor}", None,
                           {"Authorization": f"Bearer {self.daemon.token}", "Accept": "text/event-stream", **last})
        event = {}
        for raw in connection.getresponse():
            name, _, value = raw.decode().rstrip("\n").partition(": ")
            if value:
                event[name] = value
            elif event.get("event") == "beat":
                self.beats += 1
                event = {}
            elif event:
                if "data" in event:  # a frame that was cut off is not an event
                    self.ids.append(event["id"])
                    self.seen.append(json.loads(event["data"]))
                event = {}
            if self.over:
                break
        connection.close()


class Snapshot(daemon_support.Case):
    def setUp(self):
        super().setUp()
        churn.define_agents(self)

    def check(self, fleet, truth):
        self.assertEqual(fleet["runs"], truth.counts_at(fleet["cursor"]), fleet["cursor"])
        queue = fleet["queue"]
        self.assertEqual(queue["runs"], fleet["runs"]["queued"])
        self.assertEqual(queue["runs"], queue["startable"] + sum(group["runs"] for group in queue["held"]))
        self.assertEqual(sum(group["runs"] for group in fleet["parked"]), fleet["runs"]["parked"])
        self.assertEqual(fleet["running"]["total"], fleet["runs"]["running"])

    def test_counts_equal_sql_and_no_event_is_missing_or_doubled_through_a_kill(self):
        d = self.serve()
        truth = churn.Truth(self.project)
        first = d.get("/v1/fleet")
        self.check(first, truth)
        follower = Follower(d, first["cursor"])
        changes = churn.Churn(d, truth, TRANSITIONS)
        changes.thread.start()
        until, killed, looks = time.monotonic() + SECONDS_MAX, False, {False: 0, True: 0}  # before and after the kill
        while not changes.over.is_set():
            self.assertLess(time.monotonic(), until, "too slow")
            self.check(d.get("/v1/fleet"), truth)
            looks[killed] += 1
            if not killed and truth.transitions() > TRANSITIONS / 2:
                d.process.kill()
                d.process.wait()
                d = daemon_support.Daemon(self.b, self.project, listen=f"127.0.0.1:{d.port}")
                self.addCleanup(d.close)
                changes.daemon = follower.daemon = d
                killed = True
        changes.thread.join(60)
        self.assertTrue(killed)
        self.assertGreater(min(looks.values()), 0, looks)
        daemon_support.wait_for(lambda: follower.ids == truth.events_after(first["cursor"]), 30, "the feed to tell every event once")
        daemon_support.wait_for(lambda: follower.beats, 10, "a beat, as nothing happens any more")
        follower.over = True
        self.check(d.get("/v1/fleet"), truth)
        keys = [(event["run"], event["seq"]) for event in follower.seen if event["run"]]
        self.assertEqual(len(keys), len(set(keys)), "an event came twice")
        causes = {event["cause"] for event in follower.seen if not event["run"]}
        self.assertLessEqual({"node_joined", "node_dead"}, causes)

    def test_a_client_reads_its_own_changes(self):
        d = self.serve()
        for number in range(1, 31):
            run = d.submit("held", delay_ms=60_000)
            self.assertEqual(d.get("/v1/fleet")["runs"]["queued"], 1, number)
            d.ask("POST", f"/v1/runs/{run}/cancel")
            self.assertEqual(d.get("/v1/fleet")["runs"]["cancelled"], number)
        d.ask("POST", "/v1/limits/agent%3Aheld/pause", {})
        paused = {limit["name"]: limit["paused"] for limit in d.get("/v1/fleet")["limits"]}
        self.assertTrue(paused["agent:held"])

    def test_the_queue_is_divided_by_reason_and_agrees_with_status_and_metrics(self):
        d = self.serve()
        runs = [d.submit("held") for _ in range(4)]
        d.submit("held", session="s", delay_ms=60_000)
        d.submit("held", session="s")
        daemon_support.wait_for(lambda: d.get("/v1/fleet")["runs"]["running"] == 2, 20, "two to run")
        fleet = d.get("/v1/fleet")
        self.assertEqual({(group["reason"], group.get("limit"), group["runs"]) for group in fleet["queue"]["held"]},
                         {("limit", "agent:held", 2), ("delay", None, 1), ("session", None, 1)})
        self.assertEqual(fleet["queue"]["startable"], 0)
        self.assertIsNone(fleet["queue"]["drain_ms"])
        self.assertEqual(fleet["pool"]["busy"], 2)
        self.assertEqual({run["id"] for run in fleet["running"]["runs"]} | {w["current_run"] for w in fleet["pool"]["workers"]} - {None}, set(runs[:2]))
        self.assertEqual(d.get("/v1/status")["runs"], fleet["runs"])
        metrics = d.ask("GET", "/metrics")[1]
        for state, count in fleet["runs"].items():
            self.assertIn(f'stint_runs{{state="{state}"}} {count}\n', metrics)

    def test_the_feed_tells_what_happens_to_limits_pool_and_project(self):
        d = self.serve()
        cursor = d.get("/v1/fleet")["cursor"]
        d.ask("POST", "/v1/limits/agent%3Aheld/pause", {"for_ms": 60_000})
        d.ask("POST", "/v1/limits/agent%3Aheld/resume")
        d.ask("PUT", "/v1/pool", {"workers": 3})
        d.process.send_signal(signal.SIGHUP)

        def causes():
            return [event["cause"] for event in d.get(f"/v1/events?after={cursor}&limit=1000")["events"] if not event["run"]]

        daemon_support.wait_for(lambda: {"paused", "resumed", "scaled", "reloaded"} <= set(causes()), 20, f"the news: {causes()}")
        news = {event["cause"]: event for event in d.get(f"/v1/events?after={cursor}")["events"]}
        self.assertEqual(news["scaled"]["data"], {"workers": 3})
        self.assertEqual(news["paused"]["data"]["limit"], "agent:held")
        d.ask("POST", "/v1/pool/drain", {})
        d.process.wait(30)
        truth = churn.Truth(self.project)
        last = [cause for cause, in truth.ask("SELECT cause FROM event WHERE run_id IS NULL ORDER BY event_id DESC LIMIT 3")]
        self.assertEqual(last[0], "node_left")
        self.assertIn("draining", last)


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main()
