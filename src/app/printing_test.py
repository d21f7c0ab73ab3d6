#!/usr/bin/env python3
"""What every command does when its output can't be written: a full disk on either stream, a terminal that was closed.

The commands are those of `stint --help`: a new one has to be added to WORDS, or this fails."""
import contextlib
import os
import pty
import re
import signal
import subprocess
import time
import unittest

from fleet_support import STINT, Repository

AGENT = "---\ndescription: Says something\ndriver: command\non_crash: rerun\ncommand: [sh, -c, 'echo words; echo more >&2']\n---\n"

# How each is called so that it has something to print. `RUN` is a run that waits in the store, `DONE` one that has ended.
WORDS = {
    "init": [["init", "--dry-run"]],
    "agents": [["agents"], ["agents", "talk"], ["agents", "--json"]],
    "config": [["config"]],
    "cost": [["cost"], ["cost", "--by", "run"], ["cost", "--json"]],
    "trust": [["trust"], ["trust", "--list"]],
    "run": [["run", "talk"], ["run", "talk", "--json"], ["run", "nosuch"]],
    "submit": [["submit", "talk"], ["submit", "talk", "--json"], ["submit", "nosuch"]],
    "ls": [["ls"], ["ls", "--json"], ["ls", "--all"]],
    "show": [["show", "DONE"], ["show", "nosuch"]],
    "logs": [["logs", "DONE"], ["logs", "-f", "DONE"], ["logs", "--json", "DONE"]],
    "why": [["why", "RUN"], ["why", "DONE"]],
    "cancel": [["cancel", "DONE"]],
    "retry": [["retry", "DONE"]],
    "resolve": [["resolve", "DONE", "--done"]],
    "inbox": [["inbox"]],
    "answer": [["answer", "DONE"]],
    "pause": [["pause"], ["pause", "--json"]],
    "resume": [["resume"]],
    "status": [["status"], ["status", "--json"]],
    "top": [["top"]],
    "open": [["open", "--print"]],
    "scale": [["scale", "3"]],
    "drain": [["drain"]],
    "serve": [["serve", "--listen", "127.0.0.1:0"]],
    "with": [["with", "gpu", "--", "true"], ["with", "nosuch=0", "--", "true"]],
    "limits": [["limits"], ["limits", "--json"]],
    "store": [["store", "stats"], ["store", "check"], ["store", "migrate"], ["store", "export", "-"], ["store", "import", "/dev/null"]],
    "doctor": [["doctor"]],
    "completions": [["completions", "bash"]],
    "demo": [["demo", "--seconds", "10", "--speed", "1000"], ["demo", "fleet", "--runs", "1"]],
    "provider": [["provider"]],
}
ENDLESS = {"serve", "provider"}  # until a signal comes
HELP = [["--help"], ["--version"], [], ["nosuch"]]


class Printing(Repository):
    AGENTS = {"talk": AGENT}

    def setUp(self):
        super().setUp()
        self.stint("trust")
        self.stint("run", "talk")
        self.done = self.ask("ls")["runs"][0]["id"]
        self.waiting = self.stint("submit", "talk", "--delay", "1h").strip()
        self.stint("with", "gpu", "--", "true")

    def words_of(self, words):
        return [{"RUN": self.waiting, "DONE": self.done}.get(word, word) for word in words]

    def spawn(self, words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE):
        process = subprocess.Popen([STINT, *self.words_of(words)], cwd=self.folder, env=self.environment, stdin=stdin, stdout=stdout, stderr=stderr)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.communicate()

    def every(self):
        listed = re.search(r"Subcommands:\n(.*)", self.stint("--help"), re.S)[1]
        commands = re.findall(r"(?m)^  (\w+)", listed)
        self.assertEqual(sorted(commands), sorted(WORDS), "add the new command to WORDS")
        return [words for command in commands for words in WORDS[command]] + HELP

    def finish(self, process, words):
        """Its status, and what it said."""
        out, error = process.communicate(timeout=60)
        self.assertFalse(process.returncode in (-signal.SIGABRT, -signal.SIGSEGV, 134, 139), f"{words} crashed: {error}")
        return process.returncode, out or b"", (error or b"").decode()

    def start_on_closed_terminal(self, words):
        """Not the terminal of its session: no signal comes, and what is written fails."""
        ours, theirs = pty.openpty()
        os.close(ours)
        try:
            return self.spawn(words, stdin=theirs, stdout=theirs, stderr=theirs)
        finally:
            os.close(theirs)

    def test_lost_output_never_crashes_and_turns_a_success_into_a_failure(self):
        for words in self.every():
            with self.subTest(words=words), open("/dev/full", "wb") as full:
                endless = bool(words) and words[0] in ENDLESS
                normal, no_out = self.spawn(words), self.spawn(words, stdout=full)
                no_errors, neither = self.spawn(words, stderr=full), self.spawn(words, stdout=full, stderr=full)
                closed = self.start_on_closed_terminal(words)
                if endless:
                    normal.stdout.read1(1)
                    time.sleep(0.5)
                    for process in (normal, no_out, no_errors, neither, closed):
                        process.send_signal(signal.SIGTERM)
                status, out, _ = self.finish(normal, words)
                lost, _, error = self.finish(no_out, words)
                quiet, said, _ = self.finish(no_errors, words)
                both, _, _ = self.finish(neither, words)
                self.finish(closed, words)
                if endless:
                    continue  # a signal before it handles signals ends it
                if status == 0 and out and words[:1] != ["with"]:  # which prints nothing by itself
                    self.assertEqual(lost, 1, error)
                    self.assertRegex(error, "could not be written completely|check the disk space")
                else:
                    self.assertEqual(lost, status, error)
                self.assertEqual((quiet, bool(said)), (status, bool(out)), "a lost message on stderr changes no status")
                self.assertIn(both, {status, 1})


class Following(Repository):
    """A run that is followed on a terminal that is closed meanwhile."""

    AGENTS = {"slow": "---\ndescription: x\ndriver: command\non_crash: rerun\ncommand: [sh, -c, 'echo begun; exec sleep 300']\n---\n"}

    def on_terminal(self, *words, session=False):
        ours, theirs = pty.openpty()
        self.addCleanup(self.close, ours)

        def begin():
            if session:
                import fcntl
                import termios
                os.setsid()
                fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

        process = subprocess.Popen([STINT, *words], cwd=self.folder, env=self.environment, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=begin)
        self.addCleanup(lambda: (process.kill(), process.wait()))
        os.close(theirs)
        seen = b""
        while b"begun" not in seen:
            seen += os.read(ours, 4096)
        return process, ours

    @staticmethod
    def close(descriptor):
        with contextlib.suppress(OSError):
            os.close(descriptor)

    def test_a_terminal_that_closes_cancels_the_run_in_the_foreground(self):
        self.stint("trust")
        for session in (False, True):
            with self.subTest(session=session):
                process, terminal = self.on_terminal("run", "slow", session=session)
                os.close(terminal)
                self.assertEqual(process.wait(30), 128 + signal.SIGHUP)
                self.assertEqual(self.ask("ls")["runs"][0]["state"], "cancelled")

    def test_nohup_keeps_the_run_although_the_terminal_closes(self):
        self.stint("trust")
        ours, theirs = pty.openpty()
        process = subprocess.Popen(["nohup", STINT, "run", "slow"], cwd=self.folder, env=self.environment, stdin=theirs, stdout=subprocess.DEVNULL,
                                   stderr=theirs)
        self.addCleanup(lambda: (process.kill(), process.wait()))
        os.close(theirs)
        self.wait_until(lambda: [run["state"] for run in self.ask("ls")["runs"]] == ["running"], "it to run")
        os.close(ours)
        time.sleep(1)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(30), 128 + signal.SIGTERM)

    def test_a_subscriber_exits_when_its_terminal_closes(self):
        self.stint("trust")
        run = self.start("run", "slow")
        self.wait_until(lambda: [each["state"] for each in self.ask("ls")["runs"]] == ["running"], "it to run")
        found = self.ask("ls")["runs"][0]["id"]
        process, terminal = self.on_terminal("logs", "-f", found)
        os.close(terminal)
        self.assertEqual(process.wait(30), 128 + signal.SIGHUP)
        self.assertEqual(self.ask("show", found)["state"], "running", "the run itself goes on")
        run.send_signal(signal.SIGINT)
        run.wait(30)


if __name__ == "__main__":
    unittest.main()
