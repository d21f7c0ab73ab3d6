"""Fixture of the tests of the fleet's commands: a repository with agents, a home of its own, and `stint` in it."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

STINT = os.path.abspath(sys.argv.pop(1))


class Repository(unittest.TestCase):
    AGENTS = {}  # a name → the text of its file

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="stint-test-")
        self.addCleanup(temporary.cleanup)
        self.base = pathlib.Path(temporary.name).resolve()
        self.folder = self.base / "work"
        (self.folder / ".stint/agents").mkdir(parents=True)
        subprocess.run(["git", "init", "-q"], cwd=self.folder, check=True)
        for name, text in self.AGENTS.items():
            (self.folder / f".stint/agents/{name}.md").write_text(text, encoding="utf-8")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("STINT_", "XDG_"))} | {"HOME": str(self.base)}

    def call(self, *words, stdin=None, **variables):
        return subprocess.run([STINT, *map(str, words)], cwd=self.folder, env=self.environment | variables, capture_output=True, text=True,
                              input=stdin, timeout=60)

    def start(self, *words):
        process = subprocess.Popen([STINT, *words], cwd=self.folder, env=self.environment, text=True, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        def end():
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                stream.close()

        self.addCleanup(end)
        return process

    def stint(self, *words, status=0, stdin=None, **variables):
        done = self.call(*words, stdin=stdin, **variables)
        self.assertEqual(done.returncode, status, done.stderr or done.stdout)
        return done.stdout if status == 0 else done.stderr

    def ask(self, *words, **variables):
        return json.loads(self.stint(*words, "--json", **variables))

    def wait_until(self, condition, what):
        end = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)


class WithDaemon(Repository):
    def setUp(self):
        super().setUp()
        self.stint("trust")
        (self.folder / "stint.toml").write_text("[pool]\nqueue = 1000\n", encoding="utf-8")
        self.daemon, self.place = self.serve()

    def serve(self, address="127.0.0.1:0", folder=None):
        daemon = subprocess.Popen([STINT, "serve", "--listen", address], cwd=folder or self.folder, env=self.environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, daemon)
        place = self.folder / f".git/stint/daemons/{daemon.pid}.json"
        self.wait_until(place.exists, "no daemon")
        return daemon, place

    def end(self, daemon):
        daemon.kill()
        daemon.wait()

    def running(self, *words):
        run = self.stint("submit", *words).strip()
        # A short run may have ended already.
        self.wait_until(lambda: self.ask("show", run)["state"] != "queued", "it does not run")
        return run
