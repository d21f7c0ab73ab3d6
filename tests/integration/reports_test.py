"""`reports_test.py STINT`: time series with gaps and marks, agents with statistics, and cost, of real daemons."""
import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest

import daemon_support
from host_support import read, wait_for, write


def points(d, **query):
    """The known values of each series, by time."""
    answer = d.get("/v1/series" + "".join(f"{'&' if at else '?'}{name}={value}" for at, (name, value) in enumerate(query.items())))
    times = [answer["first_at"] + at * answer["step_s"] * 1000 for at in range(answer["count"])]
    known = [at for at, samples in enumerate(answer["samples"]) if samples is not None]
    return answer, [{"at": times[at], **{name: values[at] for name, values in answer["series"].items()}} for at in known]


class Series(daemon_support.Case):
    def test_points_survive_a_restart_and_the_time_between_is_a_gap(self):
        d = self.serve("--workers", "3")
        wait_for(lambda: points(d)[1], 15, "the first sample")
        self.assertEqual(points(d)[1][0]["workers"], 3)
        held = d.submit("slow", delay_ms=3_600_000)
        wait_for(lambda: points(d)[1][-1]["held"] == 1, 25, "the run in the queue")
        self.assertEqual(d.end(), 0)
        _, before = points(self.again(), span_s=3600)
        self.assertEqual([each["held"] for each in before][-1], 1)
        time.sleep(1)
        self.d.end()
        time.sleep(21)  # two steps without a daemon
        d = self.again()
        answer, after = wait_for(lambda: (lambda seen: seen if len(seen[1]) > len(before) else None)(points(d)), 25, "a sample")
        self.assertEqual(after[:len(before)], before, "what was known stays")
        self.assertGreaterEqual(after[len(before)]["at"] - after[len(before) - 1]["at"], 20_000, "and nothing is invented for the gap")
        self.assertIsNone(after[len(before)]["started"], "what happened in it is unknown")
        self.assertIn(None, answer["series"]["held"])
        self.assertEqual(answer["series"]["held"][-1] if answer["series"]["held"][-1] is not None else 1, 1)
        d.ask("POST", f"/v1/runs/{held}/cancel")

    def again(self):
        self.d = self.serve("--workers", "3")
        return self.d

    def test_marks_and_bad_requests(self):
        write(f"{self.project}/stint.toml", "[limits]\ngpu = 2\n")
        d = self.serve()
        for wrong in ("step_s=7", "step_s=", "span_s=5", "span_s=99999999", "span_s=x", "step_s=10&span_s=86400", "step_s=3600&span_s=60", "from=1"):
            self.assertIn(d.ask("GET", f"/v1/series?{wrong}")[0], (400, 422), wrong)
        answer = d.get("/v1/series?span_s=60&step_s=60")
        self.assertEqual((answer["count"], answer["step_s"]), (1, 60))
        self.assertLess(abs(answer["as_of"] - time.time() * 1000), 5000)


class Agents(daemon_support.Case):
    def test_an_agent_with_its_definition_problems_and_statistics(self):
        self.agent("review", 'command: [sh, -c, "exit $0", "{{status}}"]\nargs:\n  - {name: status, description: exit status, required: true}\n  - {name: focus, default: all}\nbudget: {time: 5m, attempts: 1}\nmax_concurrency: 2\n')
        write(f"{self.project}/.stint/agents/broken.md", "---\ndescription: broken\nmax_concurrency: 0\n---\nhello\n")
        d = self.serve()
        done = d.wait(d.submit("review", args={"status": "0"}))
        failed = d.wait(d.submit("review", args={"status": "3"}))
        self.assertEqual((done["state"], failed["state"]), ("succeeded", "failed"))
        agent = d.get("/v1/agents/review")
        self.assertEqual(agent["problems"], [])
        definition = agent["definition"]
        self.assertEqual([(arg["name"], arg["required"], arg.get("default")) for arg in definition["args"]], [("status", True, None), ("focus", False, "all")])
        self.assertEqual((definition["budget"]["time_ms"], definition["max_concurrency"], definition["on_crash"]), (300_000, 2, "rerun"))
        self.assertTrue(definition["file"].endswith(".stint/agents/review.md"))
        day = agent["day"]
        self.assertEqual((day["succeeded"], day["failed"], day["cancelled"], day["expired"]), (1, 1, 0, 0))
        self.assertEqual([failure["id"] for failure in day["failures"]], [failed["id"]])
        self.assertLessEqual(day["worked_p50_ms"], day["worked_p90_ms"])
        self.assertEqual((len(day["hours"]), sum(hour["attempts"] for hour in day["hours"])), (24, 2))
        self.assertIsNone(d.get("/v1/agents/slow")["day"]["worked_p50_ms"], "no run tells: not 0")
        self.assertEqual(d.ask("GET", "/v1/agents/missing")[0], 404)

        listed = d.get("/v1/agents")
        names = [each["name"] for each in listed["agents"]]
        self.assertEqual(names, sorted(names))
        self.assertIn("review", names, "one bad file does not hide the others")
        bad = next(each for each in listed["agents"] if each["name"] == "broken")
        self.assertRegex(bad["refused"], r"broken\.md:3.*max_concurrency")
        self.assertEqual([(each["severity"], each["line"], each["field"]) for each in listed["problems"]], [("error", 3, "max_concurrency")])
        detail = d.get("/v1/agents/broken")
        self.assertIsNone(detail["definition"])
        self.assertEqual(detail["problems"], listed["problems"])
        text = self.stint("agents", "review")
        self.assertIn("1 succeeded, 1 failed", text)
        self.assertIn(failed["id"], text)
        self.assertEqual(json.loads(self.stint("agents", "review", "--json"))["day"], d.get("/v1/agents/review")["day"])
        self.assertEqual(d.end(), 0)
        self.assertIn("1 succeeded, 1 failed", self.stint("agents", "review"), "the same from the store alone")


PAID = r'''#!/usr/bin/env python3
import json, os, random, sys, time
run, fence = os.environ["STINT_RUN"].split(":")
chance = random.Random(f"{os.environ['PAID_SEED']}:{run}:{fence}")
cost = chance.randrange(1, 100000) / 1e6
sys.stdin.readline()
print(json.dumps({"type": "system", "subtype": "init", "session_id": "s", "model": "m", "tools": []}), flush=True)
usage = {"input_tokens": chance.randrange(1, 1000), "output_tokens": chance.randrange(1, 1000)}
print(json.dumps({"type": "assistant", "message": {"id": fence, "role": "assistant", "content": [{"type": "text", "text": "hi"}], "usage": usage}}), flush=True)
how = chance.choice(["done", "done", "fails", "hangs", "retries"])
if how == "hangs":
    time.sleep(60)
with open(os.environ["PAID_LOG"], "a") as log:
    log.write(f"{run} {round(cost * 1e6)}\n")
error = {"done": {"subtype": "success", "is_error": False, "result": "ok"},
         "fails": {"subtype": "error_during_execution", "is_error": True, "result": "no"},
         "retries": {"subtype": "success", "is_error": True, "result": "API Error: 529 overloaded", "api_error_status": 529}}[how]
print(json.dumps({"type": "result", "session_id": "s", "total_cost_usd": cost, "usage": usage, "num_turns": 1, "duration_ms": 1, **error}), flush=True)
'''


class Explained(daemon_support.Case):
    """What the first screen, the limits, the run's page and the commands say about the same thing is the same."""

    def stint_says(self, *words):
        done = subprocess.run([daemon_support.STINT, *words], cwd=self.project, env=self.b.env, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_line_of_a_limit_lists_runs_and_its_length_is_that_of_the_first_screen(self):
        self.agent("writer", 'max_concurrency: 1\ncommand: [sleep, "60"]\ntitle: "write it"\n')
        d = self.serve("--workers", "2")
        first = d.submit("writer")
        wait_for(lambda: d.run(first)["state"] == "running", 20, "it to run")
        rest = [d.submit("writer") for _ in range(120)]
        held = lambda: {group.get("limit"): group["runs"] for group in d.get("/v1/fleet")["queue"]["held"]}
        wait_for(lambda: held() == {"agent:writer": 120}, 10, "the queue")
        time.sleep(1)  # by then the daemon stands in line for the agent
        limit = next(each for each in d.get("/v1/limits")["limits"] if each["name"] == "agent:writer")
        self.assertEqual((limit["held"], limit["waiting"]), (1, 120))
        self.assertEqual([entry["run"] for entry in limit["line"]], rest[:100])
        self.assertEqual([entry["place"] for entry in limit["line"]], list(range(1, 101)))
        self.assertEqual({(entry["agent"], entry["weight"], "pid" in entry) for entry in limit["line"]}, {("writer", 1, False)})
        self.assertTrue(all(entry["since_at"] >= d.run(first)["created_at"] for entry in limit["line"]))
        self.assertEqual((limit["holders"][0]["run"], limit["holders"][0]["agent"], limit["holders"][0]["title"]), (first, "writer", "write it"))
        fleet = next(each for each in d.get("/v1/fleet")["limits"] if each["name"] == "agent:writer")
        self.assertEqual((fleet["waiting"], fleet["line"]), (120, limit["line"]))
        self.assertIn('stint_limit_waiting{limit="agent:writer"} 120', d.get("/metrics"))
        why = self.stint_says("why", rest[50])
        self.assertIn("number 51 in the queue of its agent", why)
        self.assertIn("the first of them is next in line", why)
        self.assertIn(f"{first} of writer “write it” (pid ", why)

    def test_the_receipt_of_a_cancel_is_kept_with_the_run(self):
        self.agent("writer", 'max_concurrency: 1\ncommand: [sleep, "60"]\n')
        d = self.serve()
        run = d.submit("writer")
        wait_for(lambda: d.run(run)["state"] == "running" and self.marked(), 20, "it to run")
        _, receipt, _ = d.ask("POST", f"/v1/runs/{run}/cancel")
        self.assertEqual((receipt["permits_returned"], receipt["permits_held"]), (["agent:writer"], []))
        names = ("processes_ended", "streams_closed", "ending_ms", "permits_returned", "permits_held")
        again = d.run(run)
        self.assertEqual({name: again[name] for name in names}, {name: receipt[name] for name in names})

    def test_each_end_of_an_attempt_has_the_verdict_about_it(self):
        self.agent("wrong", 'command: [sh, -c, "exit 3"]\n')
        self.agent("crashing", 'command: [sh, -c, "kill -9 $$"]\nbudget: {attempts: 2}\nretry: {base: 100ms, cap: 200ms}\n', on_crash="rerun")
        self.agent("careful", 'command: [sh, -c, "kill -9 $$"]\n', on_crash="doubt")
        d = self.serve()
        verdicts = {}
        for agent in ("wrong", "crashing", "careful", "quick"):
            run = d.submit(agent)
            d.wait(run)
            attempts = d.get(f"/v1/runs/{run}/timeline")["attempts"]
            verdicts[agent] = [attempt.get("verdict", {}).get("rule") for attempt in attempts]
            if agent == "crashing":
                first = attempts[0]["verdict"]
                self.assertEqual((first["attempt"], first["attempts_max"]), (1, 2))
                self.assertGreaterEqual(attempts[1]["begun_at"], first["until_at"], "the back-off that it names")
                self.assertIn("attempt 1 of 2: repeated after", self.stint_says("show", run))
                self.assertIn("not repeated: that was attempt 2 of 2", self.stint_says("show", run))
        self.assertEqual(verdicts, {"wrong": ["permanent"], "crashing": ["transient", "attempts"], "careful": ["effects"], "quick": [None]})

    def test_the_first_screen_names_agents_that_can_not_run(self):
        write(f"{self.project}/.stint/agents/broken.md", "---\ndescription: d\ndriver: nosuch\n---\nx\n")
        d = self.serve()
        refused = d.get("/v1/fleet")["refused_agents"]
        self.assertEqual([each["name"] for each in refused], ["broken"])
        self.assertIn("nosuch", refused[0]["why"])

    def test_a_run_that_is_deleted_is_not_found(self):
        d = self.serve()
        self.assertEqual(d.ask("GET", "/v1/runs/aaaaaaaaaaaa/timeline")[0], 404)


class Cost(daemon_support.Case):
    settings = "[pool]\nworkers = 6\nautoscale = false\n"

    def setUp(self):
        super().setUp()
        os.makedirs(f"{self.b.home}/bin")
        write(f"{self.b.home}/bin/claude", PAID)
        os.chmod(f"{self.b.home}/bin/claude", 0o755)
        for name in ("paid", "dear"):
            write(f"{self.project}/.stint/agents/{name}.md", f"---\ndescription: {name}\ndriver: claude\non_crash: rerun\nbudget: {{attempts: 3}}\nretry: {{base: 50ms, cap: 100ms}}\n---\nhello\n")
        self.seed = random.randrange(1 << 30)
        self.b.env.update(PATH=f"{self.b.home}/bin:{os.environ['PATH']}", PAID_SEED=str(self.seed), PAID_LOG=f"{self.b.home}/paid.log")
        write(f"{self.b.home}/paid.log", "")

    def cost(self, *words):
        return json.loads(self.stint("cost", "--json", *words))

    def test_a_run_costs_what_its_attempts_cost_and_every_page_and_command_says_the_same(self):
        print("seed", self.seed)
        d = self.serve()
        chance = random.Random(self.seed)
        runs = [d.submit(chance.choice(["paid", "dear"])) for _ in range(24)]
        wait_for(lambda: read(f"{self.b.home}/paid.log").count("\n") >= 5, 30, "some attempts")
        d.process.send_signal(signal.SIGKILL)  # its attempts are lost, and begun again by the next daemon
        d.process.wait()
        d = self.serve()
        open_states = {"queued", "running", "parked"}
        end = time.monotonic() + 60
        while left := [run for run in runs if d.run(run)["state"] in open_states]:
            self.assertLess(time.monotonic(), end, left)
            stuck = [run for run in left if d.run(run)["state"] == "running"]
            if stuck and chance.random() < 0.5:
                d.ask("POST", f"/v1/runs/{chance.choice(stuck)}/cancel")
            time.sleep(0.2)
        by_attempt = {run: 0 for run in runs}
        for line in read(f"{self.b.home}/paid.log").splitlines():
            run, micros = line.split()
            by_attempt[run] += int(micros)
        seen = {run: d.run(run)["usage"]["cost_micros"] for run in runs}
        lost = [run for run in runs if d.run(run).get("lost", 0) > 0]
        for run in runs:
            if run not in lost:  # an attempt may have written its line and died before its daemon read the cost
                self.assertEqual(seen[run], by_attempt[run], f"{run}: the sum of its attempts")
        self.check(d, runs)
        self.assertEqual(d.end(), 0)
        offline = self.cost("--by", "agent,day")
        self.assertEqual(offline["total"]["cost_micros"], self.total, "the same without a daemon")

    def check(self, d, runs):
        by_run = self.cost("--by", "run,agent")
        listed = {line["run"]: line["cost_micros"] for line in by_run["lines"]}
        self.assertEqual(set(listed), set(runs))
        self.total = by_run["total"]["cost_micros"]
        self.assertGreater(self.total, 0)
        self.assertEqual(sum(listed.values()), self.total)
        for by in ("agent", "day", "agent,day"):
            self.assertEqual(self.cost("--by", by)["total"], {**by_run["total"], "attempts": self.cost("--by", by)["total"]["attempts"]}, by)
        for line in self.cost("--by", "agent")["lines"]:
            day = d.get(f"/v1/agents/{line['agent']}")["day"]
            self.assertEqual(day["cost_micros"], line["cost_micros"], "the statistics of the agent")
            self.assertEqual(sum(hour["cost_micros"] for hour in day["hours"]), line["cost_micros"], "its chart")
            self.assertEqual(sum(each["cost_micros"] for each in by_run["lines"] if each["agent"] == line["agent"]), line["cost_micros"], "its runs")
        self.assertEqual(d.get("/v1/status")["cost_micros_today"], self.total, "the first page")

    def test_words_that_it_refuses_and_times_it_reads(self):
        self.assertIn("Nothing was used", self.stint("cost"))
        self.assertIn("model", self.refused("cost", "--by", "model"))
        self.assertIn("weather", self.refused("cost", "--by", "weather"))
        self.assertIn("--since", self.refused("cost", "--since", "yesterday"))
        for since in ("7d", "2026-01-01", "2026-01-01T10:00:00Z"):
            self.assertEqual(self.cost("--since", since)["lines"], [])
        d = self.serve()
        for wrong in ("by=model", "by=", "by=agent,", "since_at=-1", "since_at=x", "until=1"):
            self.assertIn(d.ask("GET", f"/v1/cost?{wrong}")[0], (400, 422), wrong)

    def refused(self, *words):
        done = subprocess.run([daemon_support.STINT, *words], cwd=self.project, env=self.b.env, capture_output=True, text=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
