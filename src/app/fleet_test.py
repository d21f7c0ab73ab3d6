#!/usr/bin/env python3
"""The commands that use the fleet, without a daemon: they open the store of a repository themselves.

    fleet_test.py PATH-TO-STINT [TEST…]
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from fleet_support import STINT, Repository

REVIEW = """---
description: Reviews a pull request
args:
  - name: pr
    required: true
  - name: focus
title: "Review {{pr}}"
---
Review {{pr}}, look at {{focus}}
"""


class Fleet(Repository):
    AGENTS = {"review": REVIEW}

    def submit(self, *words, **variables):
        return self.stint("submit", *words, **variables).strip()

    def states(self):
        return [run["state"] for run in self.ask("ls")["runs"]]

    def bring(self, **fields):
        """Imports a run in a state that no command produces."""
        run = {"id": "doubtful2345", "agent": "review", "state": "in_doubt", "on_crash": "doubt", "created_ms": 1_790_000_000_000,
               "rank_ms": 1_790_000_000_000, "attempt": 1, "fence": 1, "started_ms": 1_790_000_000_500,
               "input": json.dumps({"args": {"pr": "7"}, "title": "Review 7"}),
               "events": [{"cause": "enqueued", "at_ms": 1_790_000_000_000, "state": "queued"},
                          {"cause": "claimed", "at_ms": 1_790_000_000_500, "fence": 1, "node": 3, "state": "running"},
                          {"cause": "lost", "at_ms": 1_790_000_001_000, "fence": 1, "node": 3, "state": "in_doubt"}]} | fields
        lines = [{"stint_export": 1},
                 {"agent": {"name": "review", "limits": [{"name": "agent:review", "weight": 1}], "queued_max": 200, "attempts_max": 3,
                            "lost_max": 3}},
                 {"run": run}, {"end": {"agents": 1, "limits": 0, "runs": 1, "events": len(run["events"])}}]
        self.stint("store", "import", "-", stdin="".join(json.dumps(line) + "\n" for line in lines))
        return run["id"]

    # ---- submit ----------------------------------------------------------------------------------------------------
    def test_what_is_submitted_is_listed_and_shown(self):
        self.assertIn("No runs yet", self.stint("ls"))
        self.assertFalse((self.folder / ".git/stint/stint.db").exists(), "reading creates no store")
        run = self.submit("review", "42", "focus=tests", "--session", "s", "--key", "k", "--time", "1h", "--cost", "2.50", "--attempts", "2",
                          "--priority", "-1", "--model", "opus")
        self.assertRegex(run, r"^[a-z2-7]{12}$")
        seen = self.ask("show", run[:5])
        self.assertEqual((seen["id"], seen["agent"], seen["state"], seen["title"]), (run, "review", "queued", "Review 42"))
        self.assertEqual(seen["args"], {"pr": "42", "focus": "tests"})
        self.assertEqual(seen["budget"], {"time_ms": 3600000, "attempts": 2, "cost_micros": 2500000})
        self.assertEqual((seen["session"], seen["key"], seen["model"]), ("s", "k", "opus"))
        self.assertEqual([event["cause"] for event in seen["events"]], ["enqueued"])
        text = self.stint("show", run)
        for part in ("Review 42", "focus = tests", "1h, 2 attempts, $2.50", "submitted", "stint serve"):
            self.assertIn(part, text)
        line = self.stint("ls").splitlines()[1]
        self.assertEqual(line.split(), [run, "review", "queued", "0s", "Review", "42", "-"])

    def test_a_prompt_needs_no_agent(self):
        run = self.submit("-p", "fix {{the}} tests\nall of them")
        seen = self.ask("show", run)
        self.assertEqual((seen["agent"], seen["prompt"], seen["title"]), ("prompt", "fix {{the}} tests\nall of them", "fix {{the}} tests"))

    def test_a_submit_without_a_daemon_warns_and_wait_is_refused(self):
        done = self.call("submit", "review", "1")
        self.assertIn("stint serve", done.stderr)
        self.assertIn("stint run", self.stint("submit", "review", "1", "--wait", status=3))
        self.assertEqual(len(self.states()), 1, "a refused --wait submits nothing")

    def test_wrong_arguments_are_usage_errors(self):
        self.assertIn("'pr' is missing", self.stint("submit", "review", status=2))
        self.assertIn("no agent 'nosuch'", self.stint("submit", "nosuch", status=2))
        self.assertIn("no agent given", self.stint("submit", status=2))
        self.assertIn("takes no agent", self.stint("submit", "review", "-p", "x", status=2))
        for option in ("--time", "--delay", "--deadline", "--tokens", "--cost", "--priority", "--attempts"):
            self.assertIn(option, self.stint("submit", "review", "1", option, "nonsense", status=2))
            self.assertIn(option, self.stint("run", "review", "1", option, "nonsense", status=2))
        self.assertIn("--priority: must be at most 1000", self.stint("submit", "review", "1", "--priority", "5000", status=2))
        self.assertIn("--deadline: ", self.stint("submit", "review", "1", "--deadline", "0s", status=2))
        self.assertIn("No runs yet", self.stint("ls"))

    def test_lost_output_is_a_failure_but_a_closed_reader_is_not(self):
        self.submit("review", "1")
        for words in (["ls"], ["submit", "review", "2"], ["--version"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([STINT, *words], cwd=self.folder, env=self.environment, stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=60, check=False)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn("could not be written completely", done.stderr)
        reading, writing = os.pipe()
        os.close(reading)
        for ignored in (True, False):
            done = subprocess.run([STINT, "ls"], cwd=self.folder, env=self.environment, stdout=writing, stderr=subprocess.PIPE, timeout=60,
                                  restore_signals=not ignored, check=False)
            self.assertEqual((done.returncode, done.stderr), (0 if ignored else -signal.SIGPIPE, b""))
        os.close(writing)

    def test_a_folder_that_was_deleted_is_named_and_not_made_again(self):
        commands = (["ls"], ["run", "-p", "x"], ["submit", "-p", "x"], ["agents"], ["with", "gpu", "--", "true"], ["serve", "--listen", "127.0.0.1:0"],
                    ["limits"], ["doctor"], ["trust"], ["init"], ["config"], ["store", "stats"])
        for words in commands:
            with self.subTest(words=words):
                folder = self.base / "deleted"
                folder.mkdir()
                script = f'cd "{folder}" && rmdir "{folder}" && exec "$@"'
                done = subprocess.run(["sh", "-c", script, "sh", STINT, *words], env=self.environment, capture_output=True, text=True, timeout=60)
                self.assertIn(done.returncode, (1, 125))
                self.assertIn("the current folder does not exist any more", done.stderr)
                self.assertFalse(folder.exists())

    def test_a_file_that_is_not_a_store_is_named_without_sql(self):
        database = self.folder / ".git/stint/stint.db"
        database.parent.mkdir(exist_ok=True)
        database.write_bytes(b"no database" * 1000)
        said = self.stint("ls", status=1)
        self.assertIn("stint.db is not a Stint database. Move it away", said)
        self.assertNotIn("PRAGMA", said)

    def test_outside_a_repository_the_advice_works_there(self):
        shutil.rmtree(self.folder / ".git")
        shutil.rmtree(self.folder / ".stint")
        self.assertIn("`git init && stint init`", self.stint("agents"))
        serving = self.start("serve", "--listen", "127.0.0.1:0")
        self.assertIn("`git init && stint init`", "".join(serving.stdout.readline() for _ in range(5)))

    def test_the_log_of_a_daemon_is_json_from_its_first_line(self):
        (self.folder / ".stint/agents/bad.md").write_text("---\ndescription: x\nmax_concurrency: two\n---\nx\n", encoding="utf-8")
        (self.folder / ".stint/agents/large.md").write_text("---\ndescription: x\nmemory: 1G\n---\nx\n", encoding="utf-8")
        serving = self.start("serve", "--listen", "127.0.0.1:0", "--log", "json")
        self.wait_until((self.folder / f".git/stint/daemons/{serving.pid}.json").exists, "no daemon")
        serving.send_signal(signal.SIGHUP)
        lines = []
        while not any(line["event"] == "reloaded" for line in lines):
            lines.append(json.loads(serving.stderr.readline()))
        problems = [line["problem"] for line in lines if line["event"] == "agent file"]
        self.assertEqual(len(problems), 2, lines)
        self.assertIn("bad.md:3", problems[0])
        self.assertEqual([line["agents"] for line in lines if line["event"] == "reloaded"], [2])
        cgroups = json.loads(self.call("doctor", "--json").stdout)["checks"]
        bounded = any(check["id"] == "cgroup.memory" and check["status"] == "ok" for check in cgroups)
        warned = [line["agents"] for line in lines if line["event"].startswith("memory limits are not enforced")]
        self.assertEqual(warned, [] if bounded else ["large"] * 2)

    def test_the_same_key_is_the_same_run(self):
        first = self.ask("submit", "review", "1", "--key", "k")
        again = self.ask("submit", "review", "1", "--key", "k")
        self.assertEqual((first["created"], again["created"], again["id"]), (True, False, first["id"]))
        self.assertIn("idempotency key 'k' was already used by run", self.stint("submit", "review", "2", "--key", "k", status=1))

    def test_a_memory_store_is_refused(self):
        for words in (("ls",), ("submit", "review", "1")):
            self.assertIn('the store is "memory"', self.stint(*words, status=1, STINT_STORE="memory"))

    def test_what_a_run_submits_is_cancelled_with_it(self):
        (self.folder / ".stint/agents/parent.md").write_text(
            '---\ndescription: Submits\ndriver: command\ncommand: ["sh", "-c", "$0 submit review 1 && echo done && sleep 60", "' + STINT + '"]\n---\n', encoding="utf-8")
        self.stint("trust")
        parent = self.start("run", "parent")
        child = parent.stdout.readline().strip()
        seen = self.ask("show", child)
        self.assertEqual((seen["state"], seen["agent"]), ("queued", "review"))
        receipt = self.ask("cancel", seen["parent"])
        self.assertEqual((receipt["state"], receipt["reached"]), ("cancelled", [child]))
        self.assertEqual(self.ask("show", child)["state"], "cancelled")
        self.assertEqual(parent.wait(20), 5)

    # ---- submit --each ---------------------------------------------------------------------------------------------
    def test_each_line_is_a_run_and_a_bad_one_does_not_stop_the_others(self):
        lines = 'one\n{"pr": 5, "focus": "x"}\n{"pr": \n\na=b c\n{"nosuch": 1}\n' + "x" * (1 << 20) + "y\nlast"
        done = self.call("submit", "review", "--each", "-", "--key", "night", stdin=lines)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stdout.split()), 4)
        for number in (3, 6, 7):
            self.assertIn(f"standard input:{number}: ", done.stderr)
        self.assertIn("4 runs submitted, 3 lines refused", done.stderr)
        titles = [run["title"] for run in reversed(self.ask("ls")["runs"])]
        self.assertEqual(titles, ["Review one", "Review 5", "Review a=b c", "Review last"])
        again = self.call("submit", "review", "--each", "-", "--key", "night", stdin=lines)
        self.assertIn("0 runs submitted, 4 existed already", again.stderr)

    def test_each_of_a_file_without_an_agent_is_a_prompt(self):
        path = self.base / "submissions"
        path.write_text("first\r\nsecond\n", encoding="utf-8")
        self.assertEqual(len(self.submit("--each", path).split()), 2)
        self.assertEqual([run["title"] for run in self.ask("ls")["runs"]], ["second", "first"])
        self.assertIn("can't be read", self.stint("submit", "review", "--each", self.base / "nosuch", status=1))

    def test_a_full_queue_refuses_or_is_waited_for(self):
        (self.folder / "stint.toml").write_text("[pool]\nqueue = 3\n", encoding="utf-8")
        done = self.call("submit", "review", "--each", "-", "--no-wait", stdin="a\nb\nc\nd\ne\n")
        self.assertEqual((done.returncode, len(done.stdout.split())), (3, 3), done.stderr)
        self.assertIn("3 runs submitted, 2 lines refused", done.stderr)
        self.stint("submit", "review", "f", status=3)
        waiting = self.start("submit", "review", "--each", "-")
        waiting.stdin.write("g\nh\n")
        waiting.stdin.close()
        self.assertIn("waiting for room", waiting.stderr.readline())
        self.stint("cancel", *done.stdout.split())
        self.assertEqual(waiting.wait(30), 0)
        self.assertEqual(len(waiting.stdout.read().split()), 2)

    def test_lines_of_a_pipe_are_submitted_as_they_arrive_until_a_signal(self):
        feeding = self.start("submit", "review", "--each", "-")
        feeding.stdin.write("one\n")
        feeding.stdin.flush()
        self.assertRegex(feeding.stdout.readline(), r"^[a-z2-7]{12}$")
        time.sleep(0.2)  # it reads again
        feeding.send_signal(signal.SIGTERM)
        self.assertEqual(feeding.wait(20), 128 + signal.SIGTERM)

    # ---- looking ---------------------------------------------------------------------------------------------------
    def test_lists_are_filtered_and_paged(self):
        (self.folder / "stint.toml").write_text("[pool]\nqueue = 1000\n", encoding="utf-8")
        ids = self.submit("review", "--each", "-", stdin="".join(f"{i}\n" for i in range(450))).split()
        prompt = self.submit("-p", "x", "--session", "s")
        self.stint("cancel", ids[0], ids[449])
        self.assertEqual(len(self.ask("ls")["runs"]), 30)
        self.assertEqual([run["id"] for run in self.ask("ls", "--all")["runs"]], [prompt, *reversed(ids)])
        self.assertEqual([run["id"] for run in self.ask("ls", "--state", "cancelled")["runs"]], [ids[449], ids[0]])
        both = self.ask("ls", "--state", "cancelled", "--state", "queued", "-n", "3")["runs"]
        self.assertEqual([run["id"] for run in both], [prompt, ids[449], ids[448]])
        self.assertEqual(len(self.ask("ls", "--state", "cancelled", "--state", "queued", "--all")["runs"]), 451)
        self.assertEqual([run["id"] for run in self.ask("ls", "--session", "s")["runs"]], [prompt])
        self.assertEqual([run["id"] for run in self.ask("ls", "--agent", "prompt")["runs"]], [prompt])
        self.assertIn("No runs match", self.stint("ls", "--state", "failed"))
        self.assertEqual(len(self.stint("ls", "--all").splitlines()), 452)
        self.stint("ls", "--state", "nonsense", status=2)

    def test_bad_and_ambiguous_ids_are_named(self):
        run = self.submit("review", "1")
        self.bring(id=run[:6] + "zzzzzz")
        for words in (("show",), ("why",), ("logs",), ("cancel",), ("retry",), ("answer",)):
            self.assertIn("several runs have ids that begin with", self.stint(*words, run[:6], status=1))
            self.assertIn("no run '0nosuch'", self.stint(*words, "0nosuch", status=1))
            self.stint(*words, status=2)
        self.assertIn("no run", self.stint("resolve", "0nosuch", "--done", status=1))

    def test_why_lists_each_reason(self):
        first, second = self.submit("review", "1", "--session", "s"), self.submit("review", "2", "--session", "s")
        self.assertIn(f"an earlier run of its session has not ended: {first} is queued", self.stint("why", second))
        self.assertEqual([(each["behind"], each["behind_state"]) for each in self.ask("why", second)["reasons"] if each["reason"] == "session"], [(first, "queued")])
        late = self.submit("review", "3", "--delay", "2h")
        self.assertIn("delayed start, for 1h59m more", self.stint("why", late))
        self.stint("pause", "review", "--for", "10m")
        reasons = {each["reason"]: each for each in self.ask("why", first)["reasons"]}
        self.assertEqual(set(reasons), {"paused", "place"})
        self.assertGreater(reasons["paused"]["until_at"], time.time() * 1000)
        self.assertIn("`stint resume agent:review` ends that", self.stint("why", first))
        self.stint("resume", "review")
        self.assertEqual([each["reason"] for each in self.ask("why", first)["reasons"]], ["place"])

    def on_terminal(self, *words):
        """What the command prints on a terminal without colours."""
        primary, secondary = os.openpty()
        with subprocess.Popen([STINT, *words], cwd=self.folder, env=self.environment | {"NO_COLOR": "1", "TERM": "xterm"}, stdin=subprocess.DEVNULL, stdout=secondary,
                              stderr=subprocess.DEVNULL) as process:
            os.close(secondary)
            text = b""
            with contextlib.suppress(OSError):  # the last writer has closed it
                while piece := os.read(primary, 65536):
                    text += piece
            os.close(primary)
        return process.returncode, text.decode().replace("\r\n", "\n")

    def test_logs_are_cleaned_on_a_terminal_and_their_gap_is_shown(self):
        text = ("\033]0;owned\a\033[31mred\033[0m\r\n\033[2J" + "." * (64 << 10))[: (64 << 10) - 1] + "\n"  # a whole head
        run = self.bring(output_bytes=100000, head=text, tail="the end\n", state="succeeded", finished_ms=1_790_000_002_000,
                         events=[{"cause": "enqueued", "at_ms": 1_790_000_000_000, "state": "queued"},
                                 {"cause": "claimed", "at_ms": 1_790_000_000_500, "fence": 1, "node": 3, "state": "running"},
                                 {"cause": "succeeded", "at_ms": 1_790_000_002_000, "fence": 1, "node": 3, "state": "succeeded"}])
        left = 100000 - len(text) - 8
        self.assertRegex(self.on_terminal("logs", run)[1], rf"^red\n\.+\n… {left} bytes left out …\nthe end\n$")
        self.assertEqual(self.on_terminal("logs", "-f", run), self.on_terminal("logs", run))
        piped = self.call("logs", run)
        self.assertEqual((piped.stdout, f"{left} bytes left out" in piped.stderr), (text.replace("\r\n", "\n") + "the end\n", True))
        self.assertTrue(self.call("logs", run, "--raw").stdout.startswith("\033]0;owned"))
        self.assertEqual(self.ask("logs", run)["left_out"], left)
        followed = self.call("logs", "-f", run)
        self.assertEqual((followed.returncode, followed.stdout), (0, self.stint("logs", run)))

    def test_hostile_titles_stay_text(self):
        run = self.submit("-p", "\033]0;owned\a\033[2J\033[31mred\u202e")
        for words in (("ls",), ("show", run), ("why", run), ("inbox",)):
            text = self.stint(*words)
            self.assertNotIn("\033", text)
            self.assertNotIn("\u202e", text)
        self.assertEqual(self.ask("show", run)["prompt"], "\033]0;owned\a\033[2J\033[31mred\u202e")

    def test_colour_only_on_a_terminal_and_not_with_no_color(self):
        self.stint("cancel", self.submit("review", "1"))
        self.assertNotIn("\033", self.stint("ls"))
        for variables, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
            primary, secondary = os.openpty()
            subprocess.run([STINT, "ls"], cwd=self.folder, env=self.environment | {"TERM": "xterm"} | variables, stdout=secondary, check=True,
                           timeout=20)
            os.close(secondary)
            self.assertEqual(b"\033" in os.read(primary, 1 << 16), coloured)
            os.close(primary)

    # ---- changing --------------------------------------------------------------------------------------------------
    def test_a_cancel_gives_a_receipt(self):
        run, other = self.submit("review", "1"), self.submit("review", "2")
        receipt = self.ask("cancel", run)
        self.assertEqual((receipt["id"], receipt["state"], receipt["processes_ended"], receipt["reached"]), (run, "cancelled", 0, []))
        done = self.call("cancel", run, other, "0nosuch")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{other}: cancelled", done.stdout)
        self.assertIn("no run '0nosuch'", done.stderr)
        self.assertEqual(self.states(), ["cancelled", "cancelled"])

    def test_only_an_ended_run_is_retried(self):
        run = self.submit("review", "9", "--session", "s")
        self.assertIn("only an ended run", self.stint("retry", run, status=1))
        self.stint("cancel", run)
        again = self.ask("show", self.stint("retry", run).strip())
        self.assertEqual((again["retry_of"], again["args"], again["session"], again["state"]), (run, {"pr": "9"}, "s", "queued"))

    def test_runs_in_doubt_are_listed_and_settled(self):
        self.assertIn("No run waits", self.stint("inbox"))
        for how, state in (("--done", "succeeded"), ("--rerun", "queued"), ("--discard", "cancelled")):
            run = self.bring(id=f"doubtful{how[2:6].ljust(4, 'x')}")
            inbox = self.stint("inbox")
            self.assertIn(f"stint resolve {run} {how}", inbox)
            self.assertIn("its process died → in_doubt", self.stint("show", run))
            self.assertEqual([each["id"] for each in self.ask("inbox")["runs"]], [run])
            self.assertIn("--done, --rerun and --discard", self.stint("resolve", run, status=2))
            self.stint("resolve", run, "--done", "--rerun", status=2)
            self.assertEqual(self.ask("resolve", run, how), {"id": run, "state": state})
            self.assertIn("not in doubt", self.stint("resolve", run, how, status=1))
        self.assertIn("No run waits", self.stint("inbox"))

    def test_a_parked_run_goes_on_when_answered(self):
        events = [{"cause": "enqueued", "at_ms": 1_790_000_000_000, "state": "queued"},
                  {"cause": "claimed", "at_ms": 1_790_000_000_500, "fence": 1, "node": 3, "state": "running"},
                  {"cause": "park", "at_ms": 1_790_000_001_000, "fence": 1, "node": 3, "state": "parked", "hold": "person"}]
        for words in ("answer", "resume"):
            run = self.bring(id="parked" + words, state="parked", hold="person", events=events)
            self.assertIn(f"stint answer {run}", self.stint("inbox"))
            self.assertIn("waits for a person", self.stint("why", run))
            self.stint(words, run)
            self.assertEqual(self.ask("show", run)["state"], "queued")
            self.assertIn("is queued, not parked", self.stint("answer", run, status=1))

    def test_all_agents_are_paused_and_resumed(self):
        self.submit("review", "1")
        self.assertIn("All agents are paused", self.stint("pause"))
        paused = {limit["name"] for limit in self.ask("pause")["limits"] if limit["paused"]}
        self.assertEqual(paused, {"agent:review", "agent:prompt"})
        self.assertEqual(self.ask("resume"), {"woken": 0})
        self.assertEqual([limit for limit in self.ask("pause", "agent:review")["limits"] if limit["paused"]][0]["name"], "agent:review")
        self.assertIn("neither an agent nor a limit", self.stint("pause", "nosuch", status=2))
        self.stint("pause", "--for", "soon", status=2)

    def test_unknown_names_are_usage_errors(self):
        for command in ("pause", "resume"):
            self.assertIn("'nosuch'", self.stint(command, "nosuch", status=2))
        self.assertIn("there is no limit 'nosuch'", self.stint("limits", "nosuch=3", status=2))
        self.assertIn("there is no limit 'nosuch'", self.stint("limits", "nosuch", status=2))
        self.assertIn("agent:review  0 of 3 held", self.stint("limits", "agent:review=3"))
        self.assertNotIn("nosuch", self.stint("limits"))

    def test_a_run_that_expired_in_the_queue_says_so(self):
        run = self.submit("review", "1", "--deadline", "10ms")
        self.wait_until(lambda: self.ask("show", run)["state"] == "expired", "it does not expire")
        self.assertIn("the deadline passed", self.ask("show", run)["error"])

    def test_logs_of_a_run_that_no_daemon_carries_say_why(self):
        run = self.submit("review", "1")
        following = self.start("logs", "-f", run)
        self.assertIn("no daemon runs here", following.stderr.readline() + following.stderr.readline())
        self.stint("cancel", run)
        self.assertEqual(following.wait(30), 5)

    def test_a_key_outlives_the_definition_that_its_run_was_made_from(self):
        file = self.folder / ".stint/agents/review.md"
        run = self.submit("review", "42", "--key", "k")
        for text in (REVIEW.replace("focus", "about"), REVIEW.replace("name: pr", "name: number").replace("{{pr}}", "{{number}}"), None):
            file.write_text(text, encoding="utf-8") if text else file.unlink()
            self.assertEqual(self.submit("review", "42", "--key", "k"), run)
            self.assertIn(f"was already used by run '{run}'", self.stint("submit", "review", "43", "--key", "k", status=1))
        self.assertEqual(len(self.ask("ls")["runs"]), 1)

    def test_no_run_is_accepted_into_the_session_of_a_run_above_it(self):
        for name, command in (("outer", "$0 run middle -q"), ("middle", "$0 run inner --session s -q 2>&1; echo exit $?"), ("inner", "echo done")):
            (self.folder / f".stint/agents/{name}.md").write_text(
                f'---\ndescription: Nested\ndriver: command\ncommand: ["sh", "-c", "{command}", "{STINT}"]\nbudget: {{time: 50s}}\n---\n', encoding="utf-8")
        self.stint("trust")
        done = self.call("run", "outer", "--session", "s")
        self.assertIn("exit 2", done.stdout, done.stderr)
        self.assertIn("session 's' is held by run", done.stdout + done.stderr)
        self.assertEqual([run["agent"] for run in self.ask("ls")["runs"]], ["middle", "outer"])

    def test_without_a_daemon_commands_prune_old_runs(self):
        (self.folder / "stint.toml").write_text('[retention]\nruns = "1h"\n', encoding="utf-8")
        (self.folder / ".stint/agents/echo.md").write_text('---\ndescription: Echoes\ndriver: command\ncommand: [echo, done]\n---\n', encoding="utf-8")
        self.stint("trust")
        ended = {"state": "failed", "finished_ms": 1_790_000_001_000,
                 "events": [{"cause": "enqueued", "at_ms": 1_790_000_000_000, "state": "queued"},
                            {"cause": "claimed", "at_ms": 1_790_000_000_500, "fence": 1, "node": 3, "state": "running"},
                            {"cause": "failed", "at_ms": 1_790_000_001_000, "fence": 1, "node": 3, "state": "failed"}]}
        old = self.bring(**ended)
        self.assertEqual(self.ask("show", old)["state"], "failed", "a command that only reads prunes nothing")
        young = self.submit("review", "1")
        self.assertIn("there is no run", self.stint("show", old, status=1))
        again = self.bring(**ended)
        self.stint("run", "echo")
        self.assertEqual(self.ask("show", again)["state"], "failed", "not twice within an hour")
        subprocess.run(["python3", "-c", "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(\"UPDATE meta SET value = value - 3600000 WHERE key = 'pruned_at'\"); "
                        "c.commit()", str(self.folder / ".git/stint/stint.db")], check=True)
        self.stint("run", "echo")
        self.assertIn("there is no run", self.stint("show", again, status=1))
        self.assertEqual(self.ask("show", young)["state"], "queued")
        self.assertEqual(list((self.folder / ".git/stint/stint.db.nodes").iterdir()), [], "nothing is left of processes that are gone")

    def test_ids_are_completed(self):
        run = self.submit("review", "1")
        for command in ("show", "why", "logs", "cancel", "retry", "resolve", "answer"):
            self.assertEqual(self.stint("__complete", command, run[:3]), f"none\n{run}\treview queued Review 1\n")
        self.assertIn("review\t", self.stint("__complete", "submit", ""))


if __name__ == "__main__":
    unittest.main()
