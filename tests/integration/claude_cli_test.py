#!/usr/bin/env python3
"""The real Claude Code CLI, started and read as our dialect says, against the simulated provider.

    claude_cli_test.py PATH-TO-STINT PATH-TO-DIALECT_TOOL FOLDER-FOR-THE-CLI

Installs the npm package @anthropic-ai/claude-code into the folder if it is not there, only in `./dev test --full`. Elsewhere, and
where that fails, it prints the reason and exits with status 77, which counts as skipped.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

STINT, TOOL, FOLDER = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
PACKAGE = "@anthropic-ai/claude-code@2.1.197"  # the version that tests/streams was recorded with
INSTALL_SECONDS_MAX = 90
SKIPPED = 77


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def works(program):
    try:
        return subprocess.run([program, "--version"], capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def install():
    """The CLI's path."""
    package = FOLDER / "node_modules" / "@anthropic-ai" / "claude-code"
    program = FOLDER / "node_modules" / ".bin" / "claude"
    if works(program):
        return program
    if os.environ.get("TESTS_FROM_REGISTRIES") != "1":
        skip("it installs the CLI from npm; `./dev test --full` runs it")
    for needed in ("npm", "node"):
        if shutil.which(needed) is None:
            skip(f"{needed} is not installed, and the CLI comes from there")
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", FOLDER, PACKAGE], check=True, capture_output=True, timeout=INSTALL_SECONDS_MAX)
        subprocess.run(["node", "install.cjs"], cwd=package, check=True, capture_output=True, timeout=INSTALL_SECONDS_MAX)  # npm may not run it
    except (OSError, subprocess.SubprocessError) as error:
        skip(f"npm could not install {PACKAGE}: {error}")
    if not works(program):
        skip(f"{PACKAGE} is installed and does not run here")
    return program


class Run:
    """One attempt, as the dialect says."""

    def __init__(self, provider, folder, prompt, permissions="edit", conversation=None):
        plan = [TOOL, "launch", "claude", permissions, prompt] + ([conversation] if conversation else [])
        self.launch = json.loads(subprocess.run(plan, check=True, capture_output=True, text=True).stdout)
        home = folder / "home"
        home.mkdir(exist_ok=True)
        (folder / "project").mkdir(exist_ok=True)
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / "claude"), "IS_SANDBOX": "1", "STINT_MARK": str(folder),
                       "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDECODE": "1", **provider.environment}
        for name, value in self.launch["env"].items():
            environment.pop(name, None)
            if value is not None:
                environment[name] = value
        self.mark = f"STINT_MARK={folder}"
        self.process = subprocess.Popen([CLAUDE, *self.launch["argv"][1:]], env=environment, cwd=folder / "project", stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.process.stdin.write(self.launch["stdin"])
        self.process.stdin.flush()
        assert not self.launch["close_stdin"]

    def read_result(self):
        """Reads up to the result, closes stdin, and returns the outcome."""
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if '"type":"result"' in line:
                break
        return self.finish(lines, "alone")

    def end(self):
        """Interrupts it, and returns the outcome."""
        self.process.stdin.write(self.launch["end"]["stdin"])
        self.process.stdin.flush()
        assert self.launch["end"]["close_stdin"]
        return self.finish([], "killed")

    def finish(self, lines, how):
        rest, self.errors = self.process.communicate(timeout=30)
        stream = "".join(lines) + rest
        outcome = subprocess.run([TOOL, "finish", "claude", str(self.process.returncode), how], input=stream, check=True, capture_output=True, text=True)
        return json.loads(outcome.stdout)

    def left(self):
        """Processes that still carry this run's mark."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and self.mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append((entry / "cmdline").read_bytes())
            except OSError:
                pass
        return found


class Provider:
    def __init__(self):
        self.process = subprocess.Popen([STINT, "provider", "--json"], stdout=subprocess.PIPE, text=True)
        listening = json.loads(self.process.stdout.readline())
        self.url = listening["url"]
        self.environment = {name: value for name, value in listening["environment"].items() if name.startswith("ANTHROPIC")}

    def stats_when(self, wanted, seconds=60):
        end = time.monotonic() + seconds
        while True:
            with urllib.request.urlopen(self.url + "/_/stats") as answer:
                stats = json.load(answer)
            if wanted(stats):
                return stats
            if time.monotonic() > end:
                raise AssertionError(f"not seen within {seconds} s: {stats}")
            time.sleep(0.01)

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=20)


class ClaudeCode(unittest.TestCase):
    def setUp(self):
        self.provider = Provider()
        self.addCleanup(self.provider.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_claude(self, prompt, *more, **settings):
        return Run(self.provider, self.folder, prompt, *more, **settings)

    def test_success_and_continuation(self):
        run = self.run_claude("@provider: text=\"hello you\" cache_read=1000")
        first = run.read_result()
        self.assertEqual((first["kind"], first["text"], run.process.returncode), ("succeeded", "hello you", 0))
        self.assertGreater(first["tokens"], 1000)
        self.assertGreater(first["cost_micros"], 0)
        second = self.run_claude("@provider: text=\"and again\"", conversation=first["conversation"]).read_result()
        self.assertEqual((second["kind"], second["text"], second["conversation"]), ("succeeded", "and again", first["conversation"]))
        self.assertLess(second["tokens"], 1.5 * first["tokens"], "it counts this attempt alone")

    def test_a_tool_call_and_what_permissions_allow(self):
        prompt = '@provider: tool=Write input={"file_path": "%s", "content": "hi"}\n@provider: text=done' % (self.folder / "project" / "a.txt")
        allowed = self.run_claude(prompt, "edit").read_result()
        self.assertEqual((allowed["kind"], allowed["allow"], (self.folder / "project/a.txt").read_text()), ("succeeded", [], "hi"))
        (self.folder / "project/a.txt").unlink()
        self.run_claude(prompt, "read").read_result()
        self.assertFalse((self.folder / "project/a.txt").exists())
        shell = '@provider: tool=Bash input={"command": "%s"}\n@provider: text=done'
        refused = self.run_claude(shell % "curl -s http://127.0.0.1:1/", "edit").read_result()
        self.assertEqual((refused["kind"], refused["allow"]), ("succeeded", ['driver_args: ["--allowedTools","Bash(curl:*)"]']))
        full = self.run_claude(shell % "echo out > b.txt", "full").read_result()
        self.assertEqual((full["kind"], (self.folder / "project/b.txt").read_text()), ("succeeded", "out\n"))

    def test_api_errors_are_retried_once(self):
        for fault, kind, status in (("429", "rate_limited", 429), ("529", "api_error", 529), ("401", "not_logged_in", 401), ("spend_limit", "api_error", 429),
                                    ("half_stream", "api_error", 0), ("reset", "api_error", 0)):
            with self.subTest(fault):
                before = self.provider.stats_when(lambda stats: True)["requests"]
                outcome = self.run_claude(f"@provider: tokens=20 fault={fault}").read_result()
                self.assertEqual((outcome["kind"], outcome["http_status"], outcome["text"]), (kind, status, ""), outcome)
                self.assertLessEqual(self.provider.stats_when(lambda stats: True)["requests"], before + 2, "it retries once")

    def test_a_cancel_in_mid_stream_closes_the_connection_and_leaves_no_process(self):
        run = self.run_claude("@provider: tokens=1000 rate=20/s")
        self.provider.stats_when(lambda stats: stats["tokens"] >= 3)
        begun = time.monotonic()
        outcome = run.end()
        took = time.monotonic() - begun
        stats = self.provider.stats_when(lambda stats: stats["active"] == 0)
        print(f"interrupt to exit: {1000 * took:.0f} ms", file=sys.stderr)
        self.assertEqual((outcome["kind"], stats["streams_closed_early"], stats["tokens_after_gone"]), ("cancelled", 1, 0))
        self.assertGreater(outcome["tokens"], 0, "the tokens used are counted")
        self.assertLess(took, 5)
        self.assertEqual(run.left(), [])

    def test_a_stall_is_ended_in_the_same_way(self):
        run = self.run_claude("@provider: tokens=50 fault=hang_stream after=5")
        self.provider.stats_when(lambda stats: stats["tokens"] >= 5)
        time.sleep(0.5)
        outcome = run.end()
        self.assertEqual(outcome["kind"], "cancelled")
        self.assertEqual(self.provider.stats_when(lambda stats: stats["active"] == 0)["tokens_after_gone"], 0)
        self.assertEqual(run.left(), [])

    def test_an_interrupted_tool_leaves_no_process(self):
        mark = self.folder / "project" / "begun"
        run = self.run_claude('@provider: tool=Bash input={"command": "touch begun; sleep 1000"}\n@provider: text=never', "full")
        end = time.monotonic() + 20
        while not mark.exists() and time.monotonic() < end:
            time.sleep(0.02)
        self.assertTrue(mark.exists())
        self.assertEqual(run.end()["kind"], "cancelled")
        end = time.monotonic() + 5
        while run.left() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(run.left(), [])


if __name__ == "__main__":
    CLAUDE = install()
    unittest.main(argv=sys.argv[:1], verbosity=1)
