#!/usr/bin/env python3
"""Runs every command that Stint prints as a remedy: `remedies_test.py STINT [CLASS…]`

A table of reasons why runs wait for a person. The test causes each with a stand-in for the CLI, searches the output of the commands for remedies,
fixes the cause, and executes each remedy in a fresh environment. Then the fleet must
proceed: the run that waits behind it, and a new one. Once with a daemon, once without.
"""
import json
import os
import pathlib
import re
import shlex
import stat
import subprocess
import sys
import unittest

import daemon_support
from host_support import PATIENCE, Bench, read, wait_for, write

HERE = pathlib.Path(__file__).resolve().parent
STREAMS = HERE.parent / "streams"
SECONDS_MAX = 20
VERBS = {"answer", "resume", "cancel", "resolve", "retry"}
ENDS_ONE_RUN = {"cancel"}  # remedies for one run, not for the fleet: the runs behind it have their own
STAND_IN = f"""#!{sys.executable}
import os, pathlib, signal, sys
mode = pathlib.Path(os.environ["STAND_IN_MODE"]).read_text().strip()
name = pathlib.Path(sys.argv[0]).name
os.read(0, 65536)
if mode == "crash":
    print('{{"type":"system","subtype":"init","session_id":"s","tools":[]}}', flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
print(pathlib.Path({str(STREAMS)!r}, name, mode + ".jsonl").read_text(), flush=True)
sys.exit(0 if mode == "success" else 1)
"""


class World:
    """A checkout, CLIs that behave as `mode` says, and optionally a daemon."""

    def __init__(self, case, daemon, agents=()):
        self.bench = Bench(daemon_support.STINT)
        case.addCleanup(self.bench.close)
        env = self.bench.env
        self.project = self.bench.folder = f"{self.bench.home}/project"
        os.makedirs(f"{self.project}/.stint/agents")
        os.makedirs(f"{self.bench.home}/bin")
        subprocess.run(["git", "init", "-q", self.project], check=True)
        for name in ("claude", "codex", "gemini"):
            path = f"{self.bench.home}/bin/{name}"
            write(path, STAND_IN)
            os.chmod(path, stat.S_IRWXU)
        self.mode_file = f"{self.bench.home}/mode"
        self.mode("success")
        env.update(HOME=self.bench.home, STAND_IN_MODE=self.mode_file, PATH=f"{self.bench.home}/bin:{env['PATH']}")
        write(f"{self.project}/.stint/agents/work.md", "---\ndescription: Works\ndriver: claude\non_crash: doubt\nbudget: {attempts: 1}\n---\nWork.\n")
        for name, driver in dict(agents).items():
            write(f"{self.project}/.stint/agents/{name}.md", f"---\ndescription: Works\ndriver: {driver}\n---\nWork.\n")
        self.stint("trust")
        self.daemon = None
        if daemon:
            self.daemon = daemon_support.Daemon(self.bench, self.project)
            case.addCleanup(self.daemon.close)

    def mode(self, mode):
        write(self.mode_file, mode)

    def stint(self, *words, timeout=PATIENCE * SECONDS_MAX):
        return self.bench.run(*words, timeout=timeout)

    def start(self, *words):
        """A run in the background, whose output goes to a file."""
        said = f"{self.bench.home}/said{len(self.bench.started)}"
        with open(said, "w", encoding="utf-8") as file:
            process = subprocess.Popen([self.bench.binary, "run", *words], env=self.bench.env, cwd=self.project, stdout=file, stderr=file)
        process.said = said
        process.stderr = open(said, encoding="utf-8")  # closed with the bench
        self.bench.started.append(process)
        return process

    def runs(self):
        return json.loads(self.stint("ls", "--all", "--json").stdout)["runs"]

    def when(self, state, count=1):
        def look():
            found = [run for run in self.runs() if run["state"] == state]
            return found[0] if len(found) >= count else None
        return wait_for(look, SECONDS_MAX, f"a run that is {state}")


class Reason:
    """How a fleet comes to wait, and how the test detects it."""

    def __init__(self, name, mode="", state="parked", pause=None, blocks=True):
        self.name, self.mode, self.state, self.pause, self.blocks = name, mode, state, pause, blocks

    def bring_about(self, world):
        """(the run that waits for a person, or None; what was printed)"""
        said = ""
        run = None
        if self.pause is not None:
            said += world.stint("pause", *self.pause).stdout
        else:
            world.mode(self.mode)
            first = world.start("work")
            run = world.when(self.state)
            if self.state != "parked" or run["hold"] == "person":
                first.wait(PATIENCE * SECONDS_MAX)
            said += read(first.said)
        behind = None
        if self.blocks:
            behind = world.start("work")
            wait_for(lambda: "stint resume" in read(behind.said) or behind.poll() is not None, SECONDS_MAX, "the run behind it to print what it waits for")
            said += read(behind.said)
            queued = world.when("queued")
            said += world.stint("why", queued["id"]).stdout
        if run is not None:
            for words in (("show", run["id"]), ("why", run["id"]), ("inbox",)):
                said += world.stint(*words).stdout
        return run, behind, said


REASONS = [
    Reason("expired login", mode="unauthorized"),
    Reason("usage limit", mode="session_limit"),
    Reason("unreachable provider", mode="connection_refused"),
    Reason("pause of an account", pause=["account:anthropic"]),
    Reason("pause of an agent", pause=["work"]),
    Reason("pause of all", pause=[]),
    Reason("doubt", mode="crash", state="in_doubt", blocks=False),
    Reason("failure", mode="prompt_too_long", state="failed", blocks=False),
]


def remedies(said):
    found = re.findall(r"`(stint [^`]+)`", said) + re.findall(r"^\s+(stint \S+(?: \S+)*)", said, re.MULTILINE)
    commands = []
    for text in found:
        words = shlex.split(text.split("   ")[0])
        if words[1] in VERBS and words not in commands:
            commands.append(words)
    return commands


class Remedies(unittest.TestCase):
    daemon = False

    def check(self, reason):
        world = World(self, self.daemon)
        run, behind, said = reason.bring_about(world)
        general = [[word.replace(run["id"], "ID") if run else word for word in words] for words in remedies(said)]
        self.assertTrue(general, f"{reason.name}: no remedy is printed:\n{said}")
        for number, words in enumerate(general):
            with self.subTest(reason=reason.name, remedy=" ".join(words)):
                if number > 0:
                    world = World(self, self.daemon)
                    run, behind, said = reason.bring_about(world)
                self.try_out(world, run, behind, [word.replace("ID", run["id"]) if run else word for word in words])

    def try_out(self, world, run, behind, words):
        if words[1] in ("answer", "resume") and run and run["state"] == "parked":
            world.when("parked")  # a short park may be over; it is parked again, since its provider still fails
        world.mode("success")
        done = world.stint(*words[1:])
        self.assertEqual(done.returncode, 0, (words, done.stdout, done.stderr))
        if words[1] in ENDS_ONE_RUN and behind is not None:
            (resume,) = [each for each in remedies(read(behind.said)) if each[1] == "resume"]
            self.assertEqual(world.stint(*resume[1:]).returncode, 0, resume)
        if behind is not None:
            self.assertEqual(behind.wait(PATIENCE * SECONDS_MAX), 0, read(behind.said))
        new = world.stint("run", "work", "--deadline", f"{PATIENCE * SECONDS_MAX - 20}s")
        self.assertEqual(new.returncode, 0, (words, new.stdout, new.stderr))
        if words[1] in ("answer", "resume") and run and self.daemon:
            state = wait_for(lambda: next((each["state"] for each in world.runs() if each["id"] == run["id"] and each["state"] != "queued" and each["state"] != "running"), None),
                             SECONDS_MAX, "the run itself to end")
            self.assertEqual(state, "succeeded", words)


def test_of(reason):
    return lambda self: self.check(reason)


class WithDaemon(Remedies):
    daemon = True


class WithoutDaemon(Remedies):
    pass


for each in REASONS:
    for kind in (WithDaemon, WithoutDaemon):
        setattr(kind, "test_" + each.name.replace(" ", "_"), test_of(each))


class Accounts(unittest.TestCase):
    """The driver of a run decides which account it waits for and pauses."""

    ACCOUNTS = {"claude": "account:anthropic", "codex": "account:openai", "gemini": "account:google"}

    def paused(self, world):
        return sorted(limit["name"] for limit in json.loads(world.stint("status", "--json").stdout)["limits"] if limit.get("paused"))

    def check(self, daemon):
        for driver, account in self.ACCOUNTS.items():
            for words in (["-p", "hello", "--driver", driver], ["other", "--driver", driver], [driver]):
                with self.subTest(words=words):
                    others = [name for name in self.ACCOUNTS if name != driver]
                    world = World(self, daemon, {**{name: name for name in self.ACCOUNTS}, "other": others[0]})
                    world.mode("unauthorized")
                    run = world.stint("run", *words, "--attempts", "1")
                    self.assertEqual(run.returncode, 6, run.stderr)
                    self.assertEqual(self.paused(world), [account], run.stderr)
                    world.mode("success")
                    for name in others:
                        free = world.stint("run", "-p", "hello", "--driver", name, "--deadline", "20s")
                        self.assertEqual(free.returncode, 0, (name, free.stderr))
                    held = world.start("-p", "hello", "--driver", driver)
                    wait_for(lambda: f"`stint resume {account}`" in read(held.said), SECONDS_MAX, "the run to print what it waits for")
                    listed = {each["agent"] for each in world.runs()}
                    self.assertLessEqual(listed, {"prompt", "other", *self.ACCOUNTS}, "an agent has one name with every driver")
                    name = "prompt" if words[0] == "-p" else words[0]
                    parked = json.loads(world.stint("ls", "--agent", name, "--state", "parked", "--json").stdout)["runs"]
                    self.assertEqual([each["agent"] for each in parked], [name])
                    self.assertEqual(world.stint("resume", account).returncode, 0)
                    self.assertEqual(held.wait(SECONDS_MAX), 0, read(held.said))

    def test_with_a_daemon(self):
        self.check(True)

    def test_without_a_daemon(self):
        self.check(False)

    def test_the_default_driver(self):
        world = World(self, False)
        write(f"{world.project}/stint.toml", 'driver = "gemini"\n')
        world.stint("trust")
        world.mode("unauthorized")
        self.assertEqual(world.stint("run", "-p", "hello").returncode, 6)
        self.assertEqual(self.paused(world), ["account:google"])

    def test_an_idempotency_key_covers_one_submission_with_any_driver(self):
        world = World(self, True)
        first = world.stint("submit", "-p", "hello", "--key", "k").stdout
        self.assertEqual(world.stint("submit", "-p", "hello", "--key", "k").stdout, first)
        other = world.stint("submit", "-p", "hello", "--key", "k", "--driver", "codex")
        self.assertNotEqual(other.returncode, 0, other.stdout)
        second = world.stint("submit", "-p", "hello", "--key", "l", "--driver", "codex").stdout
        self.assertEqual(world.stint("submit", "-p", "hello", "--key", "l", "--driver", "codex").stdout, second)
        self.assertNotEqual(world.stint("submit", "-p", "hello", "--key", "l").returncode, 0)


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
