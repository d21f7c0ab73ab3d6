"""Reports must name every missed target, skipped peer and broken program. Run: python3 bench/report_test.py"""
import pathlib
import stat
import sys
import tempfile
import unittest

import core_suite
import harness
import report
import run
import serve_suite
import store_suite
from suite import Figure, Group, Results, Row

FACTS = {"suite": "t", "date": "d", "commit": "c", "rounds": 5, "quick": False, "versions": {}, "skipped": {},
         "machine": {"cpu": "x", "cores": 2, "mem_gib": 1, "os": "o", "kernel": "k"}}


def results_of(group, bench, values):
    """`values`: label → one value per round."""
    results = Results()
    for label, series in values.items():
        for value in series:
            row = Row(label, "p", {})
            results.add(group, row, harness.Run({bench: [value]}, 0.0, 1.0))
    return results


def judged(text, results):
    judged = report.judged(results, core_suite.TARGETS, quick=False)
    return next(entry for entry in judged if text in entry["target"])


class TargetResults(unittest.TestCase):
    def test_the_strongest_thread_safe_peer_decides(self):
        group = core_suite.GROUPS["sem.uncontended"]
        values = {"stint": [10.0] * 5, "go x/sync semaphore.Weighted": [9.0] * 5, "tokio Semaphore": [20.0] * 5,
                  "asio channel, try_receive": [1.0] * 5, "bound: bare atomic counter": [1.0] * 5}
        seen = judged("uncontended", results_of(group, "sem.uncontended", values))
        self.assertFalse(seen["reached"])
        self.assertIn("0.90× against go x/sync", seen["seen"])
        values["stint"] = [8.0] * 5
        self.assertTrue(judged("uncontended", results_of(group, "sem.uncontended", values))["reached"])

    def test_the_better_go_row_counts_for_the_pool(self):
        group = core_suite.GROUPS["pool.throughput"]
        labels = [row.label for row in group.rows if row.program == "go"]
        values = {"stint": [3e6] * 5, labels[0]: [4e6] * 5, labels[1]: [2e6] * 5}
        seen = judged("ahead of Go", results_of(group, "pool.throughput", values))
        self.assertFalse(seen["reached"])
        self.assertIn("0.75×", seen["seen"])

    def test_fixed_limits(self):
        group = core_suite.GROUPS["sem.waiter_mem"]
        for value, reached in ((192.14, True), (193.0, False)):
            seen = judged("untimed", results_of(group, "sem.waiter_mem", {"stint": [value] * 5}))
            self.assertEqual(seen["reached"], reached)

    def test_what_was_not_measured_is_neither_reached_nor_missed(self):
        seen = judged("6× faster", Results())
        self.assertIsNone(seen["reached"])
        self.assertEqual(seen["seen"], "not measured")

    def test_ratios_are_taken_round_by_round(self):
        group = core_suite.GROUPS["spawn"]
        # Noise doubles two rounds for both and one for the peer alone: the medians say 6, most rounds say 3.
        results = results_of(group, "spawn", {"stint": [1, 1, 1, 2, 2], "tokio spawn": [3, 3, 6, 6, 6]})
        self.assertEqual(results.ratio("spawn", "spawn", "tokio spawn", "stint"), 3)


class Stores(unittest.TestCase):
    def judge(self, text, group, values):
        """`values`: bench → label → one value per round."""
        results = Results()
        for bench, rows in values.items():
            for label, series in rows.items():
                for value in series:
                    results.add(store_suite.GROUPS[group], Row(label, "p", {}), harness.Run({bench: [value]}, 0.0, 1.0))
        judged = report.judged(results, store_suite.TARGETS, quick=False)
        return next(entry for entry in judged if text in entry["target"])

    def test_a_rate_is_held_against_the_peer_that_is_named(self):
        rows = {"stint": [11e3] * 5, "graphile-worker, batched": [10e3] * 5, "graphile-worker": [2.5e3] * 5}
        self.assertTrue(self.judge("batched mode", "postgres.drain", {"drain": rows})["reached"])
        plain = self.judge("plain mode", "postgres.drain", {"drain": rows})
        self.assertFalse(plain["reached"])
        self.assertIn("4.40×", plain["seen"])

    def test_the_dearest_depth_counts(self):
        costs = {f"depth.{depth}": {"stint, SQLite": [1.0]} for depth in store_suite.DEPTHS}
        self.assertTrue(self.judge("queued, SQLite", "depth", costs)["reached"])
        costs["depth.10000"] = {"stint, SQLite": [2.0]}
        self.assertFalse(self.judge("queued, SQLite", "depth", costs)["reached"])
        del costs["depth.1000000"]
        self.assertIsNone(self.judge("queued, SQLite", "depth", costs)["reached"])

    def test_a_slow_down_beside_blocked_runs_is_seen(self):
        rates = {"blocked.one": {"stint, PostgreSQL": [10e3] * 5}, "blocked.many": {"stint, PostgreSQL": [7e3] * 5}}
        self.assertFalse(self.judge("slow another, PostgreSQL", "blocked", rates)["reached"])


class Daemons(unittest.TestCase):
    def judge(self, text, group, values):
        """`values`: label → bench → one value for all rounds."""
        results = Results()
        for label, samples in values.items():
            for _ in range(5):
                row = Row(label, "p", {})
                results.add(serve_suite.GROUPS[group], row, harness.Run({bench: [value] for bench, value in samples.items()}, 0.0, 1.0))
        judged = report.judged(results, serve_suite.TARGETS, quick=False)
        return next(entry for entry in judged if text in entry["target"])

    def test_a_durable_rate_is_said_with_its_latency(self):
        seen = self.judge("durable", "submit", {"stint": {"requests.rate": 4000.0, "requests.p99": 12_300.0}})
        self.assertEqual((seen["reached"], seen["seen"]), (False, "4,000/s, p99 12.3 ms"))

    def test_a_share_of_a_peers_rate_is_enough(self):
        for fastapi, go, ahead, near in ((15e3, 58e3, True, False), (17e3, 56e3, False, True)):
            rates = {"stint": 40e3, serve_suite.BARE: 39e3, serve_suite.FASTAPI: fastapi, serve_suite.GO: go}
            values = {label: {"requests.rate": rate} for label, rate in rates.items()}
            self.assertEqual(self.judge("FastAPI", "wait", values)["reached"], ahead)
            self.assertEqual(self.judge("Go's channel pool", "wait", values)["reached"], near)

    def test_what_must_stay_small(self):
        for memory, wakeups, small, quiet in ((24.0, 2.1, True, False), (26.0, 1.9, False, True)):
            values = {"stint": {"idle.memory": memory, "idle.wakeups": wakeups}}
            self.assertEqual(self.judge("under 25 MB", "idle", values)["reached"], small)
            self.assertEqual(self.judge("wakes up", "idle", values)["reached"], quiet)

    def test_every_row_has_a_program(self):
        programs = serve_suite.programs()
        self.assertEqual([row.program for group in serve_suite.GROUPS.values() for row in group.rows if row.program not in programs], [])


class Honesty(unittest.TestCase):
    def group(self):
        return Group("g", "b", "note", {"b": Figure("Title", "ns")}, [Row("stint", "ours", {}), Row("other", "p", {})])

    def run_with(self, script):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "program"
            path.write_text(script)
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
            return harness.run_once([str(path)], 0.5)

    def test_a_program_that_fails_is_named(self):
        results = Results()
        group = self.group()
        results.add(group, group.rows[1], self.run_with("#!/bin/sh\necho broken >&2\nexit 3\n"))
        self.assertIn("Not here: other; failed: exit 3: broken.", report.markdown(FACTS, results, [group], []))

    def test_a_program_that_hangs_is_ended_and_named(self):
        self.assertIn("still running after", self.run_with("#!/bin/sh\nsleep 60\n").error)

    def test_a_program_is_ended_with_us(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "program"
            path.write_text(f"#!/bin/sh\ntrap 'echo ended >{folder}/said; exit' TERM\necho $$ >{folder}/pid\nkill -INT $PPID\nsleep 60 & wait\n")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
            with self.assertRaises(KeyboardInterrupt):
                harness.run_once([str(path)], 30)
            self.assertEqual((pathlib.Path(folder) / "said").read_text(), "ended\n")
            self.assertFalse(pathlib.Path(f"/proc/{(pathlib.Path(folder) / 'pid').read_text().strip()}").exists())

    def test_a_program_that_is_not_there_is_named_with_the_remedy(self):
        programs = core_suite.programs("no/such/file")
        stderr, sys.stderr = sys.stderr, open("/dev/null", "w")
        try:
            skipped = run.prepare(programs, ["stint"], quick=False)
        finally:
            sys.stderr.close()
            sys.stderr = stderr
        text = report.markdown(dict(FACTS, skipped=skipped), Results(), [self.group()], [])
        self.assertIn("SKIPPED stint: no/such/file does not exist. To have it: ./dev build release", text)

    def test_quick_runs_judge_nothing(self):
        group = core_suite.GROUPS["sem.waiter_mem"]
        results = results_of(group, "sem.waiter_mem", {"stint": [1.0]})
        judged = report.judged(results, core_suite.TARGETS, quick=True)
        self.assertEqual({entry["reached"] for entry in judged}, {None})


if __name__ == "__main__":
    unittest.main()
