#!/usr/bin/env python3
"""Runs `stint doctor` as a user does: in good and bad repositories, with stand-ins for agent CLIs.

    doctor_test.py PATH-TO-STINT
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

STINT = os.path.abspath(sys.argv.pop(1))
SYSTEM_PATH = "/usr/bin:/bin"
AGENT = "---\ndescription: Reviews\n---\nDo it.\n"


class Doctor(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="stint-test-")
        self.addCleanup(self.temporary.cleanup)
        self.base = pathlib.Path(self.temporary.name).resolve()
        self.folder, self.programs = self.base / "work", self.base / "bin"
        for path in (self.folder, self.programs, self.base / "home"):
            path.mkdir()

    def environment(self, **more):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("STINT_", "XDG_", "GIT_")) and not key.endswith("_API_KEY")}
        return {**kept, "HOME": str(self.base / "home"), "PATH": f"{self.programs}:{SYSTEM_PATH}", **more}

    def run_doctor(self, *arguments, **more):
        return subprocess.run([STINT, "doctor", *arguments], cwd=self.folder, env=self.environment(**more), capture_output=True, text=True, timeout=50)

    def checks(self, **more):
        """The checks by id, and the exit status, which must fit."""
        done = self.run_doctor("--json", **more)
        self.assertEqual(done.stderr, "")
        answer = json.loads(done.stdout)
        self.assertEqual(set(answer), {"schema", "status", "checks"})
        self.assertEqual(answer["schema"], 1)
        found = {}
        for check in answer["checks"]:
            self.assertEqual(set(check), {"id", "category", "status", "summary", "remedy"})
            self.assertNotIn(check["id"], found)
            self.assertEqual(check["status"] == "ok", check["remedy"] == "", check)
            found[check["id"]] = check
        worst = max((check["status"] for check in answer["checks"]), key=["ok", "warn", "fail"].index)
        self.assertEqual(answer["status"], worst)
        self.assertEqual(done.returncode, 1 if worst == "fail" else 0)
        return found

    def git(self, *arguments):
        subprocess.run(["git", *arguments], cwd=self.folder, env=self.environment(), check=True, capture_output=True)

    def write(self, path, text, mode=0o644):
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def program(self, name, script):
        self.write(self.programs / name, "#!/bin/sh\n" + script, 0o755)

    def test_a_good_repository_passes_and_is_not_changed(self):
        self.git("init", "-q")
        self.write(".stint/agents/review.md", AGENT)
        self.program("claude", "echo '2.1.300 (Claude Code)'\n")
        before = sorted(path for path in self.base.rglob("*"))
        found = self.checks()
        self.assertEqual(before, sorted(path for path in self.base.rglob("*")))
        for name in ("git.program", "git.repository", "cli.claude", "cli.codex", "cli.gemini", "limits.directory", "limits.filesystem", "limits.space",
                     "agents.directory", "agents.filesystem", "limits.keepers", "settings.files", "agents.files", "trust.state"):
            self.assertEqual(found[name]["status"], "ok", found[name])
        self.assertIn("2.1.300", found["cli.claude"]["summary"])
        self.assertIn("1 agent,", found["agents.files"]["summary"])

    def test_for_people_each_finding_has_an_arrow_with_its_remedy(self):
        done = self.run_doctor()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"(?m)^warn  git\.repository .*not in a git repository")
        self.assertRegex(done.stdout, r"(?m)^ +→ git init$")
        self.assertRegex(done.stdout, r"\d+ ok, \d+ warnings, 0 failed\n$")

    def test_a_key_is_never_shown(self):
        for arguments in ((), ("--json",)):
            done = self.run_doctor(*arguments, ANTHROPIC_API_KEY="sk-secret-1234")
            self.assertIn("ANTHROPIC_API_KEY is set", done.stdout)
            self.assertNotIn("secret", done.stdout + done.stderr)

    def test_a_missing_cli_that_an_agent_needs_fails(self):
        self.write(".stint/agents/review.md", AGENT.replace("---\nDo", "driver: codex\n---\nDo"))
        found = self.checks()
        self.assertEqual(found["cli.codex"]["status"], "fail")
        self.assertEqual(found["cli.claude"]["status"], "warn")

    def test_an_old_cli_is_named(self):
        self.program("claude", "echo '2.1.100 (Claude Code)'\n")
        self.assertIn("leaves the commands", self.checks()["cli.claude"]["summary"])

    def test_a_hanging_cli_is_killed_with_its_children(self):
        self.program("gemini", f"setsid sh -c 'echo $$ > {self.base}/pid; exec sleep 1000' & exec sleep 1000\n")
        start = time.monotonic()
        found = self.checks()
        self.assertLess(time.monotonic() - start, 20)
        self.assertIn("no answer in time", found["cli.gemini"]["summary"])
        pid = int((self.base / "pid").read_text())
        self.assertFalse(pathlib.Path(f"/proc/{pid}").exists() and "sleep" in pathlib.Path(f"/proc/{pid}/comm").read_text()
                         and ") Z" not in pathlib.Path(f"/proc/{pid}/stat").read_text())

    def test_wrong_agent_files_and_settings_fail(self):
        self.write(".stint/agents/review.md", AGENT.replace("---\nDo", "max_concurrency: 0\n---\nDo"))
        self.write("stint.toml", "[limits]\ngpu = 'many'\n")
        found = self.checks()
        self.assertEqual(found["agents.files"]["status"], "fail")
        self.assertIn("max_concurrency", found["agents.files"]["summary"])
        self.assertEqual(found["settings.files"]["status"], "fail")

    def test_a_limits_directory_that_can_not_be_made_fails(self):
        self.write(self.base / "file", "")
        found = self.checks(STINT_LIMITS_DIR=str(self.base / "file" / "limits"))
        self.assertEqual(found["limits.directory"]["status"], "fail")
        self.assertIn("Not a directory", found["limits.directory"]["summary"])

    def test_a_git_file_that_leads_nowhere_fails(self):
        self.write(".git", "gitdir: /nowhere/at/all\n")
        self.assertEqual(self.checks()["git.repository"]["status"], "fail")

    def test_no_git_fails(self):
        self.assertEqual(self.checks(PATH=str(self.programs))["git.program"]["status"], "fail")

    def test_warns_until_trust_is_given(self):
        self.git("init", "-q")
        self.write(".stint/agents/make.md", "---\ndescription: Makes\ndriver: command\ncommand: [make]\n---\n")
        self.assertEqual(self.checks()["trust.state"]["status"], "warn")
        subprocess.run([STINT, "trust"], cwd=self.folder, env=self.environment(), check=True, capture_output=True)
        self.assertEqual(self.checks()["trust.state"]["status"], "ok")

    def test_finds_a_permit_whose_warden_was_killed(self):
        process = subprocess.Popen([STINT, "with", "gpu", "--no-cgroup", "--", "sh", "-c", "echo here; sleep 1000"], cwd=self.folder,
                                   env=self.environment(), stdout=subprocess.PIPE)
        try:
            self.assertEqual(process.stdout.readline(), b"here\n")
            command = process.pid
            children = pathlib.Path(f"/proc/{command}/task/{command}/children").read_text().split()
            self.assertEqual(len(children), 1, "its warden")
            process.send_signal(signal.SIGSTOP)  # so that it does not end what its warden leaves
            os.kill(int(children[0]), signal.SIGKILL)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
        found = self.checks()
        self.assertEqual(found["limits.keepers"]["status"], "warn", found["limits.keepers"])
        self.assertIn("gpu slot 0", found["limits.keepers"]["summary"])
        # The remedy works.
        subprocess.run([STINT, "with", "gpu", "--", "true"], cwd=self.folder, env=self.environment(), check=True, timeout=20)
        self.assertEqual(self.checks()["limits.keepers"]["status"], "ok")


if __name__ == "__main__":
    unittest.main()
