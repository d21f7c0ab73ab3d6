#!/usr/bin/env python3
"""The commands when a file, a limit, a store or a terminal is not as they expect: each must fail at once with the
remedy, or pass bytes through unchanged. `commands_test.py STINT [CLASS…]`"""
import contextlib
import json
import os
import pathlib
import pty
import random
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import unittest

import daemon_support
from host_support import Bench, read, wait_for, write

STINT = ""


class Case(unittest.TestCase):
    """A trusted checkout with agents that are commands."""

    def setUp(self):
        self.b = Bench(STINT)
        self.addCleanup(self.b.close)
        self.b.env["HOME"] = self.b.home
        self.project = self.b.folder = f"{self.b.home}/project"
        os.makedirs(f"{self.project}/.stint/agents")
        subprocess.run(["git", "init", "-q", self.project], check=True)
        self.stint("trust")

    def agent(self, name, more):
        write(f"{self.project}/.stint/agents/{name}.md", f"---\ndescription: A test\ndriver: command\non_crash: rerun\n{more}---\n")

    def settings(self, text):
        write(f"{self.project}/stint.toml", text)

    def stint(self, *words, status=0, timeout=30):
        done = self.b.run(*words, timeout=timeout)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def serve(self, *words, **options):
        daemon = daemon_support.Daemon(self.b, self.project, *words, **options)
        self.addCleanup(daemon.close)
        return daemon


class Keys(Case):
    """A misspelt key is always reported."""

    SLIPS = {"max_concurency: 1": "did you mean 'max_concurrency'?", "budget: {tim: 1m}": "did you mean 'time'?",
             "limts: [gpu]": "did you mean 'limits'?"}

    def test_a_near_miss_is_refused_by_run_submit_and_serve(self):
        for i, line in enumerate(self.SLIPS):
            self.agent(f"slip{i}", f"command: [touch, ran]\n{line}\n")
        for i, meant in enumerate(self.SLIPS.values()):
            self.assertIn(meant, self.stint("run", f"slip{i}", status=2).stderr)
            self.assertIn(meant, self.stint("submit", f"slip{i}", status=2).stderr)
        daemon = self.serve()
        for i, meant in enumerate(self.SLIPS.values()):
            self.assertIn(meant, self.stint("submit", f"slip{i}", status=2).stderr)
            wait_for(lambda meant=meant: any(meant in line for line in daemon.errors), 10, f"{meant} in the log")
        self.assertFalse(os.path.exists(f"{self.project}/ran"))

    def test_other_unknown_keys_warn_wherever_the_agent_is_used(self):
        self.agent("good", "command: [echo, done]\nfrobnicate: 1\n")
        self.settings("frobnicate = 2\n")
        for words in (("run", "good"), ("submit", "good")):
            said = self.stint(*words).stderr
            self.assertIn("good.md:6:1: warning: frobnicate: unknown key, ignored", said)
            self.assertIn("stint.toml:1:1: warning: frobnicate: unknown key, ignored", said)
        daemon = self.serve()
        for file in ("good.md:6:1", "stint.toml:1:1"):
            wait_for(lambda file=file: any(file in line and "unknown key" in line for line in daemon.errors), 10, f"{file} in the log")
        self.assertIn("good.md:6:1: warning", self.stint("submit", "good", "--wait").stderr)

    def test_a_near_miss_in_the_settings_is_refused_by_everything_that_reads_them(self):
        self.agent("good", "command: [touch, ran]\n")
        self.settings("[budgett]\ntime = \"1s\"\n")
        for words in (("run", "good"), ("submit", "good"), ("serve", "--listen", "127.0.0.1:0"), ("with", "x", "--", "true")):
            out = self.b.run(*words)
            self.assertNotEqual(out.returncode, 0, words)
            self.assertIn("did you mean 'budget'?", out.stderr)
        self.assertFalse(os.path.exists(f"{self.project}/ran"))


class Unusable(Case):
    """A limit that can never be taken fails at once instead of waiting."""

    def setUp(self):
        super().setUp()
        write(f"{self.b.home}/file", "no folder")
        self.agent("gpu", "command: [touch, ran]\nlimits: [gpu]\n")
        self.settings(f'limits_dir = "{self.b.home}/file/limits"\n[limits]\ngpu = 1\n')

    def test_run_and_submit_fail_at_once_with_the_remedy(self):
        for words in (("run", "gpu"), ("submit", "gpu")):
            out = self.b.run(*words)
            self.assertIn(out.returncode, (1, 2), out.stderr)
            self.assertIn("for the limit 'gpu': Not a directory", out.stderr)
            self.assertIn("STINT_LIMITS_DIR", out.stderr)
        self.assertFalse(os.path.exists(f"{self.project}/ran"))

    def test_serve_reports_it_and_continues_when_it_is_repaired(self):
        daemon = self.serve()
        wait_for(lambda: any("can't begin" in line and "limit 'gpu'" in line for line in daemon.errors), 10, "the line in the log")
        status, body, _ = daemon.ask("POST", "/v1/runs", {"agent": "gpu"})
        self.assertGreaterEqual(status, 400)
        self.assertIn("limit 'gpu'", body["detail"])
        os.unlink(f"{self.b.home}/file")
        os.mkdir(f"{self.b.home}/file")
        wait_for(lambda: any("reloaded" in line for line in daemon.errors), 10, "the reload")
        self.assertEqual(daemon.wait(daemon.submit("gpu"))["state"], "succeeded")

    def test_a_folder_that_breaks_while_a_run_waits_ends_the_wait(self):
        self.settings(f'limits_dir = "{self.b.home}/limits"\n[limits]\ngpu = 1\n')
        self.agent("gpu", "command: [sleep, '60']\nlimits: [gpu]\n")
        daemon = self.serve()
        run = daemon.submit("gpu")
        wait_for(lambda: daemon.run(run)["state"] == "running", 10, "the holder")
        daemon.submit("gpu")
        wait_for(lambda: os.path.exists(f"{self.b.home}/limits/gpu.line"), 10, "the line")
        os.rename(f"{self.b.home}/limits", f"{self.b.home}/moved")
        write(f"{self.b.home}/limits", "no folder")
        daemon.submit("gpu")
        daemon.ask("POST", f"/v1/runs/{run}/cancel")
        wait_for(lambda: any("permits can't be taken" in line for line in daemon.errors), 20, "the line in the log")


class Parent(Case):
    """A run that waits for a child which needs the parent's own permit."""

    def test_submit_wait_of_itself_is_refused_at_once(self):
        self.agent("self", f"command: [sh, -c, 'if [ $0 = 1 ]; then {STINT} submit --wait self 0; echo status $?; fi', '{{{{n}}}}']\nargs: [{{name: n, required: true}}]\nmax_concurrency: 1\n")
        daemon = self.serve()
        run = daemon.wait(daemon.submit("self", args={"n": "1"}), 20)
        said = daemon.get(f"/v1/runs/{run['id']}/output")["head"]
        self.assertIn("status 1", said)
        self.assertEqual(len(daemon.states()), 1, "no child was submitted")

    def test_submit_wait_of_another_agent_with_a_limit_succeeds(self):
        self.agent("one", "command: [echo, inner]\nmax_concurrency: 1\n")
        self.agent("outer", f"command: [sh, -c, '{STINT} submit --wait one']\n")
        self.agent("outmost", f"command: [sh, -c, '{STINT} submit --wait outer']\nmax_concurrency: 2\n")
        daemon = self.serve()
        run = daemon.wait(daemon.submit("outmost"), 20)
        self.assertEqual((run["state"], daemon.get(f"/v1/runs/{run['id']}/output")["head"]), ("succeeded", "inner\n"))

    def test_a_permit_of_an_ancestor_is_found_at_any_depth(self):
        """`top` holds the permit, and waits for `middle`, which waits for `inner`, which would wait for another `top`."""
        self.agent("top", f"command: [sh, -c, '[ $0 = 1 ] && exec {STINT} submit --wait middle', '{{{{n}}}}']\nargs: [{{name: n, default: \"1\"}}]\nmax_concurrency: 1\n")
        self.agent("middle", f"command: [sh, -c, '{STINT} submit --wait inner']\n")
        self.agent("inner", f"command: [sh, -c, '{STINT} submit --wait top 0 2>&1; echo status $?']\n")
        daemon = self.serve()
        run = daemon.wait(daemon.submit("top"), 30)
        said = daemon.get(f"/v1/runs/{run['id']}/output")["head"]
        self.assertIn("with its ancestors holds 1 of 1 of agent:top", said)
        self.assertIn("status 1", said)
        self.assertEqual(len(daemon.states()), 3, "no fourth run was submitted")

    def test_a_nested_stint_run_counts_as_an_ancestor(self):
        """Its processes have the token of the run above it: `here` holds what the child needs, `outer` holds nothing."""
        self.agent("here", f"command: [sh, -c, '[ $0 = 1 ] || exit 0; {STINT} submit --wait here 0 2>&1; echo status $?', '{{{{n}}}}']\nargs: [{{name: n, default: \"1\"}}]\nmax_concurrency: 1\n")
        self.agent("outer", f"command: [sh, -c, '{STINT} run -q here']\n")
        daemon = self.serve()
        run = daemon.wait(daemon.submit("outer"), 30)
        said = daemon.get(f"/v1/runs/{run['id']}/output")["head"]
        self.assertIn("holds 1 of 1 of agent:here", said)
        self.assertEqual(len(daemon.states()), 2)

    def test_units_held_by_unrelated_runs_do_not_refuse_a_wait(self):
        """Two units: one held by the waiter, one by an unrelated run. The unrelated run ends, and the child starts."""
        self.agent("one", f"command: [sh, -c, 'case $0 in (outer) exec {STINT} submit --wait one inner;; (inner) echo inner;; (*) while [ ! -e end ]; do sleep 0.1; done;; esac', '{{{{n}}}}']\nargs: [{{name: n, required: true}}]\nmax_concurrency: 2\n")
        daemon = self.serve()
        stranger = daemon.submit("one", args={"n": "stranger"})
        wait_for(lambda: daemon.get(f"/v1/runs/{stranger}")["state"] == "running", 20, "the stranger runs")
        outer = daemon.submit("one", args={"n": "outer"})
        wait_for(lambda: len(daemon.states()) == 3, 20, "the child was accepted")
        write(f"{self.project}/end", "")
        self.assertEqual(daemon.wait(outer, 20)["state"], "succeeded")

    def test_without_a_daemon_wait_is_refused(self):
        """`stint run` carries its own run alone: a submission from within it would wait until the budget ends."""
        self.agent("inner", "command: [echo, inner]\n")
        self.agent("outer", f"command: [sh, -c, '{STINT} submit --wait inner; echo status $?']\n")
        for words in (("submit", "--wait", "inner"), ("submit", "--wait", "-p", "x"), ("submit", "--wait", "--json", "inner")):
            said = self.stint(*words, status=3).stderr
            self.assertIn("not submitted: `--wait` needs a running daemon (`stint serve`)", said)
        done = self.stint("run", "-q", "outer")
        self.assertIn("status 3", done.stdout)
        runs = json.loads(self.stint("ls", "--json").stdout)["runs"]
        self.assertEqual([run["agent"] for run in runs], ["outer"], "nothing was submitted")

    def test_the_token_of_a_run_can_not_read_limits(self):
        self.agent("idle", "command: [sh, -c, 'echo $STINT_TOKEN > token.txt; sleep 60']\n")
        daemon = self.serve()
        daemon.submit("idle")
        token = wait_for(lambda: os.path.exists(f"{self.project}/token.txt") and read(f"{self.project}/token.txt").strip(), 10, "the run's token")
        self.assertEqual(daemon.ask("GET", "/v1/limits", None, {"Authorization": f"Bearer {token}"})[0], 403)

    def test_run_of_itself_uses_the_permits_of_the_parent(self):
        self.agent("self", f"command: [sh, -c, 'if [ $0 = 1 ]; then {STINT} run -q self 0; else echo inner; fi', '{{{{n}}}}']\nargs: [{{name: n, required: true}}]\nmax_concurrency: 1\n")
        daemon = self.serve()
        run = daemon.wait(daemon.submit("self", args={"n": "1"}), 20)
        self.assertEqual(daemon.get(f"/v1/runs/{run['id']}/output")["head"], "inner\n")

    def test_a_wait_by_the_api_is_refused_too(self):
        self.agent("self", "command: [sh, -c, 'echo $STINT_TOKEN > token.txt; sleep 60']\nmax_concurrency: 1\n")
        daemon = self.serve()
        daemon.submit("self")
        token = wait_for(lambda: os.path.exists(f"{self.project}/token.txt") and read(f"{self.project}/token.txt").strip(), 10, "the run's token")
        status, body, _ = daemon.ask("POST", "/v1/runs", {"agent": "self", "wait": True}, {"Authorization": f"Bearer {token}"}, timeout=10)
        self.assertEqual(status, 409, body)
        self.assertIn("holds 1 of 1 of agent:self", body["detail"])


class Bytes(Case):
    """The output of a run arrives unchanged."""

    def setUp(self):
        super().setUp()
        seed = int(os.environ.get("STINT_SEED", random.randrange(2**32)))
        print(f"seed {seed}: STINT_SEED={seed} draws the same bytes", file=sys.stderr)
        draw = random.Random(seed)
        pieces = [b"\t", b"\r", b"\r\n", b"\n", b"\x1b[31m", b"\x1b[2J", b"\x00", b"\xff", "é€😀".encode(), b"\xc2\x9b", "\u202e".encode(), b"text", b"\x07"]
        self.bytes = b"a\tb\rc\n" + b"".join(draw.choice([draw.choice(pieces), draw.randbytes(3)]) for _ in range(3000))
        with open(f"{self.project}/bytes", "wb") as file:
            file.write(self.bytes)
        self.agent("cat", "command: [cat, bytes]\n")

    def output(self, *words):
        done = subprocess.run([STINT, *words], cwd=self.project, env=self.b.env, capture_output=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_through_a_pipe_unchanged(self):
        self.assertEqual(self.output("run", "-q", "cat"), self.bytes)
        run = json.loads(self.output("ls", "--json"))["runs"][0]["id"]
        self.assertEqual(self.output("logs", run), self.bytes)

    def test_on_a_terminal_tabs_and_colour_stay_and_the_rest_is_cleaned(self):
        write(f"{self.project}/bytes", "a\tb\x1b[31mred\x1b[0m\x1b[2J\x07\u202e\n")
        main, other = pty.openpty()
        self.addCleanup(os.close, main)
        env = {**self.b.env, "TERM": "xterm"}
        env.pop("NO_COLOR", None)
        process = subprocess.Popen([STINT, "run", "-q", "cat"], cwd=self.project, env=env, stdout=other, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        os.close(other)
        process.communicate(timeout=30)
        self.assertEqual(os.read(main, 4096).replace(b"\r\n", b"\n"), b"a\tb\x1b[31mred\x1b[0m\n")

    def test_arguments_that_are_not_utf8_are_refused(self):
        self.agent("say", 'command: [printf, "%s", "{{what}}"]\nargs: [{name: what, required: true}]\n')
        for daemon in (False, True):
            if daemon:
                self.serve()
            for words in (("run", "say", b"a\xff"), ("submit", "say", b"what=\xc3"), ("submit", "-p", b"\x80")):
                done = subprocess.run([STINT, *words], cwd=self.project, env=self.b.env, capture_output=True, timeout=30)
                self.assertEqual(done.returncode, 2, (words, done.stderr))
                self.assertIn(b"not valid UTF-8", done.stderr)


class Init(Case):
    """Everything that `init` writes and prints, and that docs and help texts name, exists."""

    def commands(self):
        return set(re.findall(r"^  ([a-z]+)[ ,]", self.stint("--help").stdout, re.MULTILINE))

    def test_every_command_in_docs_and_help_exists(self):
        known = self.commands()
        self.assertLessEqual({"run", "submit", "serve"}, known)
        texts = {"init": self.stint("init").stdout}
        for root, _, files in os.walk(self.project):
            if "/.git" not in root:
                texts.update({f"{root}/{name}": read(f"{root}/{name}") for name in files})
        for name in sorted(known):
            texts[f"stint {name} --help"] = self.stint(name, "--help").stdout
        here = pathlib.Path(__file__).resolve().parents[2]
        texts.update({str(path): read(path) for path in [here / "README.md", *sorted((here / "docs").glob("*.md"))]})
        for place, text in texts.items():
            for command in re.findall(r"(?:`|^ *\$? *)stint ([a-z]+)\b", text, re.MULTILINE):
                self.assertIn(command, known, place)

    def test_it_promises_no_worktree_and_its_agents_can_be_used(self):
        self.stint("init")
        for root, _, files in os.walk(self.project):
            if "/.git" not in root:
                for name in files:
                    self.assertNotRegex(read(f"{root}/{name}"), r"worktree|stint (work|land|issues)\b", name)
        said = self.stint("agents")
        self.assertEqual(said.stderr, "")
        self.assertEqual(self.stint("config").stderr, "")


class Places(Case):
    """Errors name stores, tokens and ports that are in use, with their owner."""

    def checks(self):
        done = self.b.run("doctor", "--json")
        return {check["id"]: check for check in json.loads(done.stdout)["checks"]}

    def test_doctor_opens_the_store(self):
        self.assertEqual(self.checks()["store.open"]["status"], "ok")
        self.assertIn("does not exist yet", self.checks()["store.open"]["summary"])
        self.agent("good", "command: [echo, done]\n")
        self.stint("run", "good")
        self.assertIn("1 run", self.checks()["store.open"]["summary"])
        for file in ("stint.db", "stint.db-wal", "stint.db-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self.project}/.git/stint/{file}")
        write(f"{self.project}/.git/stint/stint.db", "this is no database, and long enough to be looked at" * 50)
        broken = self.checks()["store.open"]
        self.assertEqual(broken["status"], "fail")
        self.assertIn("not a Stint database", broken["summary"])
        self.assertEqual(self.b.run("doctor").returncode, 1)

    def test_files_with_output_of_runs_are_private(self):
        self.agent("good", "command: [echo, done]\n")
        self.addCleanup(os.umask, os.umask(0o022))
        self.stint("run", "good")
        self.stint("store", "export", "export.jsonl")
        self.serve()
        for file in ("export.jsonl", ".git/stint/stint.db", ".git/stint/stint.db-wal", ".git/stint/stint.db-shm", ".git/stint/token"):
            self.assertEqual(oct(os.stat(f"{self.project}/{file}").st_mode & 0o077), "0o0", file)

    @unittest.skipIf(os.geteuid() != 0, "a second user needs root")
    def test_another_users_store_and_token_are_named(self):
        self.agent("good", "command: [echo, done]\n")
        self.stint("run", "good")
        self.serve().end()
        os.chmod(self.b.home, 0o777)
        subprocess.run(["chown", "-R", "54321", f"{self.project}/.git/stint"], check=True)
        home = f"{self.b.home}/second"
        os.mkdir(home)
        os.chown(home, 54322, 54322)
        env = {**self.b.env, "HOME": home, "XDG_STATE_HOME": home, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        program = shutil.copy(STINT, f"{self.b.home}/stint-for-all")  # the build may be in a folder that only root can read

        def as_second(*words):
            return subprocess.run([program, *words], cwd=self.project, env=env, capture_output=True, text=True, timeout=30, user=54322, group=54322, extra_groups=[])
        trusted = as_second("trust")
        self.assertEqual(trusted.returncode, 0, trusted.stderr)
        for words in (("ls",), ("run", "-p", "x"), ("doctor",)):
            done = as_second(*words)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn("stint.db belongs to user 54321", done.stdout + done.stderr, words)
        serve = self.b.run("serve", "--listen", "127.0.0.1:0")
        self.assertEqual(serve.returncode, 1)
        self.assertIn("is the token of the daemon of user 54321", serve.stderr)

    def test_a_port_in_use_is_named_and_the_default_falls_back(self):
        with socket.socket() as holder:
            with contextlib.suppress(OSError):  # else another process has it, which works as well
                holder.bind(("127.0.0.1", 7717))
                holder.listen()
            process = subprocess.Popen([STINT, "serve", "--json"], cwd=self.project, env=self.b.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.stderr.close)
            self.addCleanup(process.stdout.close)
            try:
                url = json.loads(process.stdout.readline())["url"]
                self.assertRegex(url, r"^http://127\.0\.0\.1:\d+$")
                self.assertFalse(url.endswith(":7717"))
                self.assertRegex(process.stderr.readline(), r"port 7717 is taken by (process \d+ \(|a process of )")
                self.assertIn(url, self.stint("status").stdout)
            finally:
                process.terminate()
                process.wait(20)
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            port = holder.getsockname()[1]
            refused = self.b.run("serve", "--listen", f"127.0.0.1:{port}")
            self.assertEqual(refused.returncode, 1)
            self.assertIn(f"port {port} is taken by process {os.getpid()} (", refused.stderr)


class Limits(Case):
    """One limit has one name and one number, and every command shows the same."""

    def test_a_file_name_is_not_a_limit_name(self):
        self.agent("ok", 'command: [echo, done]\nlimits: ["account:x"]\n')
        self.settings('[limits]\n"account:x" = 2\n')
        self.stint("run", "ok")
        for words in (("with", "account.x", "--", "true"), ("limits", "account.x=3"), ("limits", "account.x")):
            out = self.b.run(*words)
            self.assertNotEqual(out.returncode, 0, words)
            self.assertIn("is called 'account:x'", out.stderr)
        self.assertEqual([each["name"] for each in json.loads(self.stint("limits", "--json").stdout)["limits"]], ["account:x"])
        self.settings('[limits]\n"account.x" = 2\n')
        self.assertIn('is called "account:x"', self.b.run("config").stderr)
        self.settings('[limits]\n"team:gpu" = 2\n"team.gpu" = 3\n')
        self.assertIn("is the same limit as", self.b.run("config").stderr)
        os.unlink(f"{self.project}/stint.toml")
        self.assertEqual([each["name"] for each in json.loads(self.stint("limits", "--json").stdout)["limits"]], ["account:x"], "also without a configuration")

    def test_config_shows_a_manual_resize_and_reset_ends_it(self):
        self.settings("[limits]\ngpu = 2\n")
        self.stint("limits", "gpu=5")
        said = self.stint("config", "limits.gpu").stdout
        self.assertRegex(said, r"= 5 +by hand; `stint limits gpu --reset` ends that; stint\.toml:2 sets 2")
        shown = json.loads(self.stint("config", "limits.gpu", "--json").stdout)["settings"]
        self.assertIn("resized", json.dumps(shown))
        self.assertIn("2 held", self.stint("limits", "gpu", "--reset").stdout.replace("of ", ""))
        self.assertRegex(self.stint("config", "limits.gpu").stdout, r"= 2 +stint\.toml:2")
        self.assertIn("was not resized", self.stint("limits", "gpu", "--reset").stderr)
        self.stint("limits", "--reset", status=2)

    def test_a_differing_number_is_refused_while_it_is_held(self):
        self.b.hold("foo=2")
        self.b.hold("foo=2")
        refused = self.b.run("with", "foo=3", "--", "touch", "ran")
        self.assertEqual(refused.returncode, 125, refused.stderr)
        self.assertIn("foo=3, but", refused.stderr)
        self.assertIn("holds it as foo=2", refused.stderr)
        self.assertFalse(os.path.exists(f"{self.project}/ran"))
        self.stint("limits", "foo=3")
        self.stint("with", "foo=3", "--", "true")

    def test_a_refused_number_leaves_no_trace(self):
        holder = self.b.hold("foo=2")
        self.assertEqual(self.b.run("with", "foo=4", "--", "true").returncode, 125)
        self.assertIn("1 of 2 held", self.stint("limits", "foo").stdout)
        holder[0].terminate()
        wait_for(lambda: "0 of 2 held" in self.stint("limits", "foo").stdout, 10, "the number that was accepted")

    def test_reset_of_an_agents_limit_shows_the_number_of_its_file(self):
        self.agent("capped", "command: [sleep, '60']\nmax_concurrency: 2\n")
        daemon = self.serve()
        self.stint("limits", "agent:capped=4")
        runs = [daemon.submit("capped") for _ in range(4)]
        wait_for(lambda: all(daemon.run(run)["state"] == "running" for run in runs), 20, "four at once")
        self.assertIn("4 of 4 held", self.stint("limits", "agent:capped").stdout)
        for words in (("limits", "agent:capped", "--reset"), ("limits", "agent:capped"), ("limits",)):
            self.assertIn("agent:capped  4 of 2 held", self.stint(*words).stdout, words)
        self.assertEqual(next(each for each in daemon.get("/v1/limits")["limits"] if each["name"] == "agent:capped")["capacity"], 2)
        for run in runs:
            self.stint("cancel", run)
        self.assertIn("agent:capped  0 of 2 held", self.stint("limits").stdout)

    def test_a_host_limit_can_be_paused(self):
        self.agent("train", "command: [echo, done]\nlimits: [gpu]\n")
        self.settings("[limits]\ngpu = 1\nspare = 1\n")
        self.stint("pause", "gpu")
        daemon = self.serve()
        run = daemon.submit("train")
        wait_for(lambda: "gpu is paused" in self.stint("why", run).stdout, 10, "the reason")
        self.assertEqual(daemon.run(run)["state"], "queued")
        self.stint("resume", "gpu")
        self.assertEqual(daemon.wait(run)["state"], "succeeded")
        self.assertIn("no agent here takes the limit 'spare'", self.b.run("pause", "spare").stderr)

    def test_why_shows_each_run_its_own_place(self):
        self.agent("one", "command: [sleep, '60']\nmax_concurrency: 1\n")
        daemon = self.serve()
        runs = [daemon.submit("one") for _ in range(4)]
        wait_for(lambda: daemon.run(runs[0])["state"] == "running", 10, "the first")
        wait_for(lambda: "next in line" in self.stint("why", runs[1]).stdout, 10, "the second to stand in line")
        said = [self.stint("why", run).stdout for run in runs[1:]]
        self.assertEqual([re.search(r"number (\d+)", text)[1] for text in said], ["1", "2", "3"])
        self.assertNotIn("behind other runs", said[0])
        for text in said[1:]:
            self.assertIn("behind other runs of its agent in the queue", text)
        for run in runs:
            daemon.ask("POST", f"/v1/runs/{run}/cancel")
        daemon.end()
        for _ in range(3):
            self.b.start("run", "one")

        def by_state(state):
            return [run["id"] for run in json.loads(self.stint("ls", "--json").stdout)["runs"] if run["state"] == state]

        wait_for(lambda: len(by_state("running")) == 1, 10, "one to run")
        queued = wait_for(lambda: (lambda runs: len(runs) == 2 and runs)(by_state("queued")), 10, "two to wait")

        def places():
            return sorted(place for run in queued for place in re.findall(r"number (\d+)", self.stint("why", run).stdout))

        wait_for(lambda: len(places()) == 2, 10, "both to stand in line")
        self.assertEqual(places(), ["1", "2"])


class Reach(Case):
    """Errors about missing permissions and unreachable servers name the remedy."""

    def silent_server(self, greets):
        """Accepts and stays silent; or completes the handshake of PostgreSQL, and answers no statement."""
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        connections = []
        self.addCleanup(lambda: [each.close() for each in connections])

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connections.append(server.accept()[0])
                    if greets:
                        connections[-1].recv(4096)
                        status = b"server_version\0" + b"16.0\0"
                        connections[-1].sendall(b"R" + struct.pack("!ii", 8, 0) + b"S" + struct.pack("!i", 4 + len(status)) + status + b"Z" + struct.pack("!i", 5) + b"I")

        threading.Thread(target=serve, daemon=True).start()
        return f"postgres://x@127.0.0.1:{server.getsockname()[1]}/x?sslmode=disable"

    def test_a_silent_database_does_not_block_commands(self):
        self.agent("ok", "command: [echo, done]\n")
        started = []
        for greets in (False, True):
            env = {**self.b.env, "STINT_STORE": self.silent_server(greets)}
            for words in (("ls",), ("status",), ("show", "x"), ("why", "x"), ("logs", "x"), ("cancel", "x"), ("submit", "ok"), ("run", "ok"), ("pause",), ("store", "stats"), ("serve", "--listen", "127.0.0.1:0")):
                process = subprocess.Popen([STINT, *words], cwd=self.project, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
                started.append((greets, words, process))
                self.addCleanup(process.kill)
        for greets, words, process in started:
            said = process.communicate(timeout=60)[0]  # the timeout is 10 s; a migration may take 5 minutes
            self.assertNotEqual(process.returncode, 0, (greets, words, said))
            self.assertRegex(said, "answer within 10 s", (greets, words))

    def test_many_slots_need_many_descriptors(self):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, most))  # noqa: E731
        if most > 6000:
            done = subprocess.run([STINT, "with", "gpu=5000", "--", "sh", "-c", "ulimit -n"], cwd=self.project, env=self.b.env, capture_output=True, text=True,
                                  timeout=30, preexec_fn=few)
            self.assertEqual((done.returncode, done.stdout), (0, "1024\n"), done.stderr)
        none = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))  # noqa: E731
        done = subprocess.run([STINT, "with", "gpu=5000", "--", "true"], cwd=self.project, env=self.b.env, capture_output=True, text=True, timeout=30, preexec_fn=none)
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn("5000 slots need one file descriptor each, and this process may have 1024. Raise `ulimit -Hn`", done.stderr)

    @unittest.skipIf(os.geteuid() != 0, "a second user needs root")
    def test_why_names_a_child_that_can_not_be_signalled(self):
        user = ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups"]
        helper = f"{self.project}/as-root"
        shutil.copy(shutil.which("setpriv"), helper)
        self.agent("sudo", f"command: [sh, -c, '{helper} --reuid 0 sleep 60 & echo $! > child; wait']\n")
        subprocess.run(["chown", "-R", "54321:54321", self.b.home], check=True)
        os.chown(helper, 0, 0)
        os.chmod(helper, 0o4755)
        subprocess.run([*user, STINT, "trust"], cwd=self.project, env=self.b.env, check=True, capture_output=True)
        daemon = self.serve(before=user)
        run = daemon.submit("sudo")
        child = int(wait_for(lambda: os.path.exists(f"{self.project}/child") and read(f"{self.project}/child").strip(), 10, "the child"))
        wait_for(lambda: read(f"/proc/{child}/cmdline").startswith("sleep"), 10, "the program of another user")
        if os.stat(f"/proc/{child}").st_uid != 0:
            self.skipTest("set-user-id programs do not work in this folder")
        cancel = threading.Thread(target=lambda: daemon.ask("POST", f"/v1/runs/{run}/cancel"))
        cancel.start()
        try:
            reasons = wait_for(lambda: [each for each in daemon.get(f"/v1/runs/{run}/why")["reasons"] if each.get("beyond")], 20, "the reason")
            self.assertEqual(reasons[0]["reason"], "ending")
            self.assertIn(f"pid {child} (sleep)", reasons[0]["beyond"])
            said = subprocess.run([*user, STINT, "why", run], cwd=self.project, env=self.b.env, capture_output=True, text=True, timeout=30)
            self.assertIn("Stint may not signal", said.stdout, said.stderr)
        finally:
            os.kill(child, signal.SIGKILL)
            cancel.join(20)
        self.assertEqual(daemon.run(run)["state"], "cancelled")


if __name__ == "__main__":
    STINT = daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
