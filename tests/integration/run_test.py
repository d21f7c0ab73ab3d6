#!/usr/bin/env python3
"""`stint run` from end to end: commands, a stand-in that misbehaves as agent CLIs do, and the real Claude Code CLI, which
talks to the simulated provider.

    run_test.py STINT FOLDER-FOR-THE-CLI [unittest arguments]

Without npm or a network the class Claude is skipped, with the reason.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest
import urllib.request

from host_support import PYTHON, Bench, alive, demand, marked, read, wait_for, write

HERE = pathlib.Path(__file__).resolve().parent
STAND_IN = HERE / "stand_in.py"
STREAMS = HERE.parent / "streams" / "claude"
STINT = CLIS = ""


class Case(unittest.TestCase):
    def setUp(self):
        self.b = Bench(STINT)
        self.addCleanup(self.b.close)
        self.b.env["HOME"] = self.b.home
        self.project = f"{self.b.home}/project"
        os.makedirs(f"{self.project}/.stint/agents")
        subprocess.run(["git", "init", "-q", self.project], check=True)
        self.b.folder = self.project

    def agent(self, name, head, body="Do it.\n"):
        write(f"{self.project}/.stint/agents/{name}.md", f"---\ndescription: A test\n{head}---\n{body}")

    def command(self, name, *argv, more=""):
        self.agent(name, f"driver: command\ncommand: {json.dumps(list(argv))}\n{more}")

    def trust(self):
        self.assertEqual(self.b.run("trust").returncode, 0)

    def run_json(self, *words, timeout=30):
        out = self.b.run("run", *words, "--json", timeout=timeout)
        events = [json.loads(line) for line in out.stdout.splitlines()]
        return out.returncode, events

    def start(self, *words):
        process = self.b.start("run", *words, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        return process

    def marked(self):
        return marked(self.b)


class Command(Case):
    def test_a_command_gets_prompt_and_arguments_and_its_output_is_shown(self):
        self.agent("greet", 'driver: command\nargs:\n  - {name: who, required: true}\ncommand: ["sh", "-c", "cat; echo; echo for $0", "{{who}}"]\n',
                   "Greet {{who}}.\n")
        self.trust()
        out = self.b.run("run", "greet", "you; rm -rf x")
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertEqual(out.stdout, "Greet you; rm -rf x.\nfor you; rm -rf x\n")
        self.assertIn("succeeded after", out.stderr)

    def test_nothing_of_an_untrusted_checkout_runs(self):
        self.command("touch", "touch", f"{self.project}/ran")
        out = self.b.run("run", "touch")
        self.assertEqual(out.returncode, 1)
        self.assertIn("stint trust", out.stderr)
        self.assertFalse(os.path.exists(f"{self.project}/ran"))

    def test_exit_statuses(self):
        self.command("good", "true")
        self.command("bad", "sh", "-c", "echo why >&2; exit 3")
        self.command("lost", "sh", "-c", "kill -9 $$")
        self.command("slow", "sleep", "30")
        self.command("missing", "/nonexistent/tool")
        self.command("alone", "sleep", "30", more="max_concurrency: 1\n")
        self.trust()
        self.assertEqual(self.b.run("run", "good").returncode, 0)
        bad = self.b.run("run", "bad")
        self.assertEqual((bad.returncode, "exit status 3: why" in bad.stderr), (1, True), bad.stderr)
        lost = self.b.run("run", "lost")
        self.assertEqual(lost.returncode, 6, lost.stderr)
        self.assertEqual(self.b.run("run", "slow", "--time", "300ms").returncode, 4)
        missing = self.b.run("run", "missing")
        self.assertEqual((missing.returncode, "No such file" in missing.stderr), (1, True), missing.stderr)
        self.assertEqual(self.b.run("run", "unknown").returncode, 2)
        self.assertEqual(self.b.run("run", "good", "too", "many").returncode, 2)
        holder = self.start("alone")
        wait_for(lambda: self.marked(), 5, "the holder")
        self.assertEqual(self.b.run("run", "alone", "--no-wait").returncode, 3)
        expired = self.b.run("run", "alone", "--deadline", "200ms")
        self.assertEqual(expired.returncode, 4, expired.stderr)
        self.assertRegex(expired.stderr, r"held by [a-z2-7]{12} “alone” \(pid")
        holder.send_signal(signal.SIGINT)
        self.assertEqual(holder.wait(10), 5)
        self.assertEqual(self.marked(), [])

    def test_max_concurrency_makes_the_lock_files_and_a_line(self):
        self.command("two", "sleep", "30", more="max_concurrency: 2\n")
        self.trust()
        holders = [self.start("two") for _ in range(2)]
        folder = f"{self.project}/.git/stint/semaphores"
        wait_for(lambda: all(pathlib.Path(f"{folder}/two.{i}.lock").exists() and read(f"{folder}/two.{i}.lock").strip() for i in (0, 1)), 5, "both hold a slot")
        self.assertEqual(sorted(os.listdir(folder)), ["two.0.lock", "two.1.lock", "two.line"])
        third = self.start("two", "--json")
        self.assertEqual(json.loads(third.stdout.readline())["event"], "enqueued")
        event = json.loads(third.stdout.readline())
        self.assertEqual((event["event"], event["reason"], event["limit"], event["held"], event["ahead"]), ("waiting", "limit", "agent:two", 2, 0))
        self.assertEqual({holder["pid"] for holder in event["holders"]}, {holder.pid for holder in holders})
        self.assertRegex(event["why"], r"agent:two: 2 of 2 held by [a-z2-7]{12} “two” \(pid")
        holders[0].send_signal(signal.SIGINT)
        while (event := json.loads(third.stdout.readline()))["event"] == "waiting":
            pass  # the reason may change again
        self.assertEqual(event["event"], "claimed")
        for process in (holders[1], third):
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(10), 143)
        holders[0].wait(10)
        self.assertEqual(self.marked(), [])

    def test_several_limits_and_an_undefined_limit(self):
        self.command("heavy", "true", more="limits: [{name: gpu, weight: 2}]\n")
        self.trust()
        out = self.b.run("run", "heavy")
        self.assertEqual(out.returncode, 2)
        self.assertIn("'gpu' is defined nowhere", out.stderr)
        write(f"{self.project}/stint.toml", "[limits]\ngpu = 2\n")
        self.assertEqual(self.b.run("run", "heavy").returncode, 0)
        write(f"{self.project}/stint.toml", "[limits]\ngpu = 1\n")
        self.assertEqual(self.b.run("run", "heavy").returncode, 2)

    def test_one_budget_over_attempts_and_waits(self):
        self.command("crash", "sh", "-c", "echo x >> runs; kill -9 $$", more="on_crash: rerun\nretry: {base: 10ms, cap: 20ms}\n")
        self.trust()
        status, events = self.run_json("crash", "--attempts", "3")
        self.assertEqual(status, 1)
        self.assertEqual(read(f"{self.project}/runs"), "x\n" * 3)
        self.assertEqual([e["attempt"] for e in events if e["event"] == "claimed"], [1, 2, 3])
        os.remove(f"{self.project}/runs")
        self.command("crash", "sh", "-c", "echo x >> runs; kill -9 $$", more="on_crash: rerun\nretry: {base: 30s, cap: 30s}\n")
        since = time.monotonic()
        status, events = self.run_json("crash", "--attempts", "3", "--time", "300ms")
        self.assertLess(time.monotonic() - since, 3, "a back-off beyond the budget is not waited for")
        self.assertIn(status, (1, 4))

    def test_a_slow_reader_gets_all_output(self):
        self.command("flood", "sh", "-c", "seq 1 2000000; echo THE END", more="idle_timeout: 1s\n")
        self.trust()
        everything = "".join(f"{i}\n" for i in range(1, 2_000_001)) + "THE END\n"
        self.assertEqual(self.b.run("run", "flood", timeout=60).stdout == everything, True)
        slow = self.start("flood", "-q")
        time.sleep(12)  # longer than the warden's lease and the agent's idle timeout
        self.assertEqual(slow.stdout.read() == everything, True)
        self.assertEqual(slow.wait(20), 0)
        status, events = self.run_json("flood", timeout=60)
        self.assertEqual((status, "".join(event["text"] for event in events if event["event"] == "text") == everything), (0, True))
        kinds = [event["event"] for event in events]
        self.assertLess(kinds.index("claimed"), kinds.index("text"), "the attempt's event precedes its text")

    def test_ctrl_c_ends_a_run_with_unread_output(self):
        self.command("flood", "yes", more="")
        self.trust()
        run = self.start("flood", "-q")
        wait_for(self.marked, 10, "it to run")
        time.sleep(1)
        for _ in range(2):
            run.send_signal(signal.SIGINT)
            time.sleep(0.3)
        self.assertEqual(run.wait(15), 5)
        self.assertEqual(self.marked(), [])

    def test_closing_our_output_is_harmless(self):
        self.command("talk", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.05; done")
        self.trust()
        out = subprocess.run(f"{STINT} run talk | head -1", shell=True, env=self.b.env, cwd=self.project, capture_output=True, text=True, timeout=20)
        self.assertEqual(out.stdout, "line 1\n")
        self.assertEqual(self.marked(), [])

    def test_each_permit_can_have_a_home_of_its_own(self):
        self.command("homely", "sh", "-c", "echo $HOME; sleep 1", more="max_concurrency: 2\nhome: slot\n")
        self.trust()
        runs = [self.start("homely", "-q") for _ in range(2)]
        homes = sorted(run.communicate(timeout=15)[0].strip() for run in runs)
        self.assertEqual([home.split("/")[-2:] for home in homes], [["homely", "0"], ["homely", "1"]])
        for home in homes:  # not in the checkout, which could contain prepared ones
            self.assertTrue(home.startswith(f"{self.b.env['XDG_STATE_HOME']}/stint/homes/"), home)

    def test_memory_is_bounded_where_cgroups_allow(self):
        eat = "x = bytearray(200 * 1024 * 1024)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint('ate')"
        self.command("eat", *PYTHON, "-c", eat, more="memory: 60M\n")
        self.trust()
        out = self.b.run("run", "eat")
        if out.returncode == 0:
            self.skipTest("no memory limit can be set here: no delegated cgroup with a memory controller")
        self.assertEqual(out.returncode, 1, out.stderr)
        self.assertIn("memory", out.stderr)

    def test_a_run_inside_a_run_does_not_wait_for_its_own_permit(self):
        self.command("inner", "echo", "inside", more="max_concurrency: 1\n")
        self.command("outer", STINT, "run", "inner", "-q", more="limits: [slot]\n")
        self.command("self", "sh", "-c", f'[ -n "$DEEP" ] && exec echo deep; DEEP=1 exec {STINT} run self -q', more="max_concurrency: 1\n")
        write(f"{self.project}/stint.toml", "[limits]\nslot = 1\n")
        self.trust()
        self.assertEqual(self.b.run("run", "outer", "-q").stdout, "inside\n")
        self.assertEqual(self.b.run("run", "self", "-q", "--deadline", "5s").stdout, "deep\n")


class StandIn(Case):
    """The dialect of Claude, with a process that misbehaves."""

    def play(self, **plan):
        plan.setdefault("stream", str(STREAMS / "success.jsonl"))
        plan["report"] = f"{self.b.home}/report"
        self.b.env["STAND_IN"] = json.dumps(plan)
        return ["-p", "hello", "--program", str(STAND_IN)]

    def setUp(self):
        super().setUp()
        if not (STREAMS / "success.jsonl").exists():
            self.skipTest(f"no stream {STREAMS / 'success.jsonl'}: {sorted(os.listdir(STREAMS))[:5]}")

    def is_up(self):
        """Whether the report is complete: an existing file may still be empty."""
        return os.path.exists(f"{self.b.home}/report") and read(f"{self.b.home}/report").endswith("\n")

    def pids(self):
        wait_for(self.is_up, 5, "it to be up")
        report = json.loads(read(f"{self.b.home}/report").splitlines()[-1])
        return report["pids"]

    def test_success_with_usage_and_cost(self):
        status, events = self.run_json(*self.play())
        self.assertEqual(status, 0, events)
        result = events[-1]
        self.assertEqual((result["event"], result["state"]), ("result", "succeeded"))
        self.assertGreater(result["usage"]["tokens"], 0)
        self.assertTrue(result["text"])

    def test_a_secret_in_a_denied_call_is_masked(self):
        secret = "sk-very-secret-1"
        self.b.env["SOME_API_KEY"] = secret
        lines = [json.loads(line) for line in read(str(STREAMS / "denied.jsonl")).splitlines()]
        for line in lines:
            if line["type"] == "result":
                line["permission_denials"] = [{"tool_name": "Bash", "tool_input": {"command": command}}
                                              for command in (f"curl -H 'x-api-key: {secret}' https://example.com", f"{secret} --help")]
        status, events = self.run_json(*self.play(stream=None, lines=[json.dumps(line) for line in lines]))
        denials = events[-1]["denials"]
        self.assertEqual(denials[0]["call"], "curl -H 'x-api-key: ***' https://example.com", (status, events[-1]))
        self.assertEqual(denials[1]["call"], "*** --help")
        self.assertIn("***", denials[1]["allow"])
        for seen in (json.dumps(events), self.b.run("show", events[-1]["run"]).stdout, self.b.run("show", events[-1]["run"], "--json").stdout):
            self.assertNotIn(secret, seen)

    def driven_by(self, driver, stream, *words, **plan):
        """The arguments for a run with the stream of another dialect."""
        self.play(stream=str(STREAMS.parent / driver / f"{stream}.jsonl"), stdin="all", **plan)
        return ["-p", "hello", "--program", str(STAND_IN), "--driver", driver, *words]

    def test_tokens_without_a_cost_are_priced_by_the_settings(self):
        write(f"{self.project}/stint.toml", '[models.codex.price]\ninput = 2\noutput = 8\n')
        self.trust()
        status, events = self.run_json(*self.driven_by("codex", "success"))
        self.assertEqual(status, 0, events[-1])
        usage = events[-1]["usage"]
        self.assertEqual(usage["cost_micros"], 2 * usage["fresh_in"] + 8 * usage["out"])
        today = json.loads(self.b.run("status", "--json").stdout)
        self.assertEqual(today["cost_micros_today"], usage["cost_micros"], "so that cost_per_day counts it")

    def test_a_budget_that_can_not_be_enforced_is_refused(self):
        self.trust()
        for words, part in ((["gemini", "success", "--tokens", "1000"], "a token budget can't be enforced for gemini"),
                            (["gemini", "success", "--cost", "1"], "a cost budget can't be enforced for gemini"),
                            (["codex", "success", "--cost", "1"], "models.codex")):
            out = self.b.run("run", *self.driven_by(*words))
            self.assertEqual(out.returncode, 2, out.stderr)
            self.assertIn(part, out.stderr)
        self.assertFalse(os.path.exists(f"{self.b.home}/report"), "nothing was started")
        write(f"{self.project}/stint.toml", "[budget]\ncost_per_day = 5\n")
        self.trust()
        self.assertIn("budget.cost_per_day can't be enforced for gemini", self.b.run("submit", "-p", "hello", "--driver", "gemini").stderr)
        status, events = self.run_json(*self.play())
        self.assertEqual(status, 0, events[-1])

    def test_without_a_daemon_too_nothing_begins_when_the_cost_of_the_day_is_used_up(self):
        write(f"{self.project}/stint.toml", "[budget]\ncost_per_day = 0.01\n")
        self.trust()
        status, events = self.run_json(*self.play())
        self.assertEqual(status, 0, events[-1])
        self.assertGreaterEqual(events[-1]["usage"]["cost_micros"], 10_000)
        os.remove(f"{self.b.home}/report")
        second = self.start(*self.play(), "--json")
        self.assertEqual(json.loads(second.stdout.readline())["event"], "enqueued")
        event = json.loads(second.stdout.readline())
        self.assertEqual(event["event"], "waiting", event)
        self.assertRegex(event["why"], "the fleet has spent .* today")
        second.send_signal(signal.SIGINT)
        second.wait(20)
        self.assertFalse(os.path.exists(f"{self.b.home}/report"), "nothing was started")

    def test_a_token_budget_is_passed_to_codex_which_enforces_it(self):
        self.trust()
        status, events = self.run_json(*self.driven_by("codex", "budget_reached", "--tokens", "12000", exit=1))
        self.assertEqual((status, events[-1]["state"]), (4, "expired"), events[-1])
        self.assertEqual(events[-1]["usage"]["tokens"], 12000)
        arguments = json.loads(read(f"{self.b.home}/report").splitlines()[-1])["arguments"]
        self.assertTrue(any("rollout_budget" in word and "limit_tokens=12000" in word for word in arguments), arguments)

    def test_the_text_of_gemini_is_unchanged(self):
        self.trust()
        out = self.b.run("run", *self.driven_by("gemini", "half_stream_once"), "-q")
        self.assertEqual(out.stdout, "I have read it twice, slowly. It is \n", out.stderr)

    def test_an_expired_run_names_its_last_error(self):
        plan = self.play(stream=str(STREAMS / "server_error.jsonl"), exit=1, once=f"{self.b.home}/once", again={"hang_after": 0, "lines": []})
        status, events = self.run_json(*plan, "--time", "12s", timeout=60)
        self.assertEqual((status, events[-1]["state"]), (4, "expired"), events[-1])
        self.assertRegex(events[-1]["message"], "time is used up.*previous error: API Error")

    def test_leftover_processes_are_ended_even_if_they_hold_the_pipes(self):
        status, events = self.run_json(*self.play(children=2, escapees=3, ignore=["TERM", "INT"], linger=30))
        self.assertEqual(status, 0, events[-1])
        self.assertEqual([p for p in self.pids() if alive(p)], [])
        self.assertEqual(self.marked(), [])

    def test_a_stall_is_detected_and_cpu_time_counts_as_progress(self):
        self.agent("quiet", "idle_timeout: 700ms\non_crash: doubt\n")
        self.play(hang_after=1, ignore=["TERM"])
        out = self.b.run("run", "quiet", "--program", str(STAND_IN), timeout=40)
        self.assertEqual(out.returncode, 6, out.stderr)
        self.assertIn("no output and no work", out.stderr)
        self.play(busy_after=1)
        busy = self.start("quiet", "--program", str(STAND_IN))
        time.sleep(2.5)
        self.assertIsNone(busy.poll(), "CPU time counts as progress")
        busy.send_signal(signal.SIGINT)
        busy.wait(20)
        self.assertEqual(self.marked(), [])

    def test_ctrl_c_ends_gracefully_and_twice_at_once(self):
        run = self.start(*self.play(hang_after=1))
        wait_for(self.is_up, 5, "it to be up")
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(15), 5)
        os.remove(f"{self.b.home}/report")
        run = self.start(*self.play(hang_after=1, ignore=["TERM", "INT"], interrupt="ignore", escapees=2))
        wait_for(self.is_up, 5, "it to be up")
        time.sleep(0.3)
        since = time.monotonic()
        run.send_signal(signal.SIGINT)
        time.sleep(0.3)
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(15), 5)
        self.assertLess(time.monotonic() - since, 2.5, "the second one ends it at once")
        self.assertEqual([p for p in self.pids() if alive(p)], [])

    def test_floods_and_huge_lines_are_bounded(self):
        status, events = self.run_json(*self.play(flood=20_000_000, long_line=40_000_000), timeout=60)
        self.assertEqual(status, 0, events[-1])

    def test_kill_of_stint_leaves_no_process(self):
        run = self.start(*self.play(hang_after=1, ignore=["TERM"], children=3, escapees=3))
        pids = self.pids()
        run.kill()
        run.wait()
        wait_for(lambda: not any(alive(p) for p in pids), 10, "the last of its processes to be gone")


class Claude(Case):
    """The real CLI against the simulated provider."""

    @classmethod
    def setUpClass(cls):
        cls.program = str(pathlib.Path(CLIS) / "node_modules" / ".bin" / "claude")
        if not os.path.exists(cls.program):
            raise unittest.SkipTest(f"the CLI is not in {CLIS}: integration.claude_cli installs it, where npm can")

    def setUp(self):
        super().setUp()
        provider = subprocess.Popen([STINT, "provider", "--json"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(provider.stdout.close)
        self.addCleanup(provider.wait)
        self.addCleanup(provider.terminate)
        said = json.loads(provider.stdout.readline())
        self.url = said["url"]
        self.b.env.update(said["environment"], CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", IS_SANDBOX="1", DISABLE_AUTOUPDATER="1")

    def ask(self, prompt):
        return ["-p", prompt, "--program", self.program]

    def stats(self):
        with urllib.request.urlopen(f"{self.url}/_/stats") as answer:
            return json.load(answer)

    def test_success(self):
        status, events = self.run_json(*self.ask("Say something."), timeout=60)
        self.assertEqual(status, 0, events[-1])
        self.assertGreater(events[-1]["usage"]["tokens"], 0)
        self.assertTrue(events[-1]["text"])
        self.assertEqual(self.marked(), [])

    def test_an_api_error_is_tried_again_within_the_budget(self):
        status, events = self.run_json(*self.ask("@provider: fault=529 times=3\nSay it."), "--attempts", "2", timeout=60)
        self.assertEqual(status, 0, events[-1])
        self.assertEqual(events[-1]["attempts"], 2)
        status, events = self.run_json(*self.ask("@provider: fault=401\nSay it."), "--attempts", "3", timeout=60)
        self.assertEqual((status, events[-1]["state"], events[-1]["attempts"]), (6, "parked", 0), "an expired login waits for a person")
        self.assertEqual(self.b.run("resume", "account:anthropic").returncode, 0, "nothing starts before `resume`")
        status, events = self.run_json(*self.ask("@provider: fault=400\nSay it."), "--attempts", "3", timeout=60)
        self.assertEqual((status, events[-1]["attempts"]), (1, 1), "a final error is not retried")

    def test_cancel_in_mid_stream_closes_the_provider_connection(self):
        run = self.start(*self.ask("@provider: tokens=3000 rate=30/s\nTalk."))
        wait_for(lambda: self.stats()["active"] == 1, 30, "the stream")
        time.sleep(1)
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(20), 5)
        stats = wait_for(lambda: self.stats()["active"] == 0 and self.stats(), 5, "the provider to notice")
        self.assertEqual((stats["streams_closed_early"], stats["tokens_after_gone"]), (1, 0))
        self.assertEqual(self.marked(), [])

    def test_a_stall_in_the_stream_is_ended(self):
        self.agent("wait", "idle_timeout: 4s\non_crash: doubt\n", "@provider: fault=hang_stream\nTalk.\n")
        out = self.b.run("run", "wait", "--program", self.program, timeout=90)
        self.assertEqual(out.returncode, 6, out.stderr)
        self.assertEqual(self.marked(), [])


if __name__ == "__main__":
    STINT = os.path.abspath(sys.argv.pop(1))
    CLIS = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
