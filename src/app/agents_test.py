#!/usr/bin/env python3
"""Runs `stint init`, `agents`, `config` and `trust` as a user does: in repositories, outside, into a pipe, on a terminal.

    agents_test.py PATH-TO-STINT
"""
import json
import os
import pty
import subprocess
import sys
import unittest

import home_support

STINT = os.path.abspath(sys.argv.pop(1))
GOOD = "---\ndescription: Good\n---\nDo it.\n"


class Home(home_support.Home):
    def environment(self, **more):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("STINT_", "XDG_", "GIT_")) and key != "NO_COLOR"}
        return {**kept, "HOME": str(self.base / "home"), "TERM": "xterm-256color", **more}

    def stint(self, *arguments, folder=None, **more):
        return subprocess.run([STINT, *arguments], cwd=folder or self.folder, env=self.environment(**more), capture_output=True, text=True, timeout=50)

    def git(self, *arguments, folder=None):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=folder or self.folder, env=self.environment(), check=True, capture_output=True)

    def write(self, path, text):
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def on_a_terminal(self, *arguments, **more):
        """What it writes to a terminal, as bytes."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([STINT, *arguments], cwd=self.folder, env=self.environment(**more), stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        output = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # the other side is gone
                break
            if not chunk:
                break
            output += chunk
        process.wait(timeout=50)
        os.close(ours)
        return output


class Init(Home):
    def test_in_a_repository_without_a_commit(self):
        self.git("init", "-q")
        done = self.stint("init")
        self.assertEqual(done.returncode, 0, done.stderr)
        for path in (".stint/agents/dispatch.md", ".stint/agents/implement.md", ".stint/agents/review.md", ".stint/system.md", "stint.toml", "brief.md", ".stint/.gitignore"):
            self.assertTrue((self.folder / path).is_file(), path)
            self.assertIn(f"made        {path}", done.stdout)
        self.assertIn("Try next:", done.stdout)
        listed = self.stint("agents")
        self.assertEqual((listed.returncode, listed.stderr), (0, ""))
        self.assertRegex(listed.stdout, r"dispatch +max 1 +claude +Route work to agents based on issue state")

    def test_from_below_and_in_a_worktree_it_writes_to_that_checkouts_root(self):
        self.git("init", "-q")
        self.git("commit", "-q", "--allow-empty", "-m", "x")
        self.git("worktree", "add", "-q", str(self.base / "tree"), "-b", "other")
        below = self.base / "tree" / "a" / "b"
        below.mkdir(parents=True)
        self.assertEqual(self.stint("init", folder=below).returncode, 0)
        self.assertTrue((self.base / "tree" / "stint.toml").is_file())
        self.assertFalse((self.folder / "stint.toml").exists())

    def test_never_overwrites(self):
        self.git("init", "-q")
        self.write("stint.toml", "# mine\n")
        done = self.stint("init")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"kept +stint.toml +exists, left unchanged")
        self.assertEqual((self.folder / "stint.toml").read_text(), "# mine\n")
        self.assertEqual(self.stint("init", "--force").returncode, 2)

    def test_a_dry_run_writes_nothing(self):
        self.git("init", "-q")
        done = self.stint("init", "--dry-run")
        self.assertEqual(done.returncode, 0)
        self.assertIn("would make  brief.md", done.stdout)
        self.assertEqual([path.name for path in self.folder.iterdir()], [".git"])
        answer = json.loads(self.stint("init", "--dry-run", "--json").stdout)
        self.assertTrue(answer["dry_run"])
        self.assertEqual({file["action"] for file in answer["files"]}, {"made"})

    def test_outside_a_repository_it_names_the_remedy(self):
        done = self.stint("init")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("git init", done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])


class Agents(Home):
    def test_without_agents_it_names_the_next_step(self):
        done = self.stint("agents")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("stint init", done.stdout)

    def test_errors_make_it_fail_and_hide_nothing(self):
        self.write(".stint/agents/good.md", GOOD)
        self.write(".stint/agents/bad.md", "---\ndescription: d\nmax_concurrency: 0\n---\nx\n")
        self.write(".claude/agents/theirs.md", "---\nname: theirs\ndescription: From Claude\n---\nx\n")
        done = self.stint("agents")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"good +- +claude +Good\n")
        self.assertRegex(done.stdout, r"theirs .*From Claude  \(claude\)")
        self.assertEqual(done.stderr, ".stint/agents/bad.md:3:18: error: max_concurrency: must be at least 1, found 0; leave it out for no limit\n")
        answer = json.loads(self.stint("agents", "--json").stdout)
        self.assertEqual([agent["name"] for agent in answer["agents"]], ["good", "theirs"])
        self.assertEqual((answer["problems"][0]["line"], answer["problems"][0]["field"]), (3, "max_concurrency"))
        self.assertEqual(self.stint("agents", "good").returncode, 0)
        self.assertEqual(self.stint("agents", "bad").returncode, 1)

    def test_a_limit_that_is_defined_nowhere_is_an_error(self):
        self.write(".stint/agents/a.md", "---\ndescription: d\nlimits: [gpu]\n---\nx\n")
        done = self.stint("agents")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the limit 'gpu' is defined nowhere", done.stderr)
        self.write("stint.toml", "[limits]\ngpu = 1\n")
        self.assertEqual(self.stint("agents").returncode, 0)

    def test_one_agent_is_shown_whole_and_a_wrong_name_with_the_right_one(self):
        self.write(".stint/agents/review.md", "---\ndescription: d\nargs: [{name: pr, required: true}]\nbudget: {time: 20m, cost: 2.5}\n---\n{{pr}}\n")
        done = self.stint("agents", "review")
        self.assertIn("stint run review PR", done.stdout)
        self.assertIn("time 20m, cost 2.50", done.stdout)
        done = self.stint("agents", "reveiw")
        self.assertEqual(done.returncode, 1)
        self.assertIn("did you mean 'review'?", done.stderr)

    def test_a_terminal_gets_colour_but_no_control_characters_of_files(self):
        self.write(".stint/agents/a.md", b'---\ndescription: "\\e[2Jboo\\x9b31m"\nmodel: "\\a"\nke\xe2\x80\xaey: 1\n---\nx\n')
        self.write(".stint/agents/b\x1b[2J.md", "x")
        output = self.on_a_terminal("agents")
        self.assertIn(b"\x1b[1m", output)
        for harmful in (b"\x1b[2J", b"\xc2\x9b", b"\x07", b"\xe2\x80\xae"):
            self.assertNotIn(harmful, output)
        self.assertNotIn(b"\x1b", self.on_a_terminal("agents", NO_COLOR="1"))
        piped = self.stint("agents")
        self.assertNotIn("\x1b", piped.stdout + piped.stderr)


class Config(Home):
    def test_every_value_has_its_origin(self):
        self.write("stint.toml", "[pool]\nworkers = 3\nqueue = 4\n")
        config = self.base / "home" / ".config" / "stint" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text("[pool]\nqueue = 5\n")
        done = self.stint("config", STINT_POOL_MAX="6")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"pool.workers += 3 +stint.toml:2\n")
        self.assertRegex(done.stdout, rf"pool.queue += 5 +{config}:2\n")
        self.assertRegex(done.stdout, r"pool.max += 6 +STINT_POOL_MAX\n")
        self.assertRegex(done.stdout, r"store += sqlite +default\n")
        answer = json.loads(self.stint("config", "pool.workers", "--json").stdout)
        self.assertEqual(answer["settings"], [{"key": "pool.workers", "value": "3", "origin": {"kind": "project", "where": "stint.toml", "line": 2}}])

    def test_a_wrong_value_fails_with_the_line(self):
        self.write("stint.toml", "[limits]\ngpu = 0\n")
        done = self.stint("config")
        self.assertEqual(done.returncode, 1)
        self.assertIn("stint.toml:2:7: error: limits.gpu: must be at least 1, found 0", done.stderr)

    def test_reports_an_unknown_key(self):
        done = self.stint("config", "pool.worker")
        self.assertEqual(done.returncode, 1)
        self.assertIn("did you mean 'pool.workers'?", done.stderr)

    def test_a_password_is_masked_everywhere(self):
        for arguments in (("config",), ("config", "store"), ("config", "--json")):
            done = self.stint(*arguments, STINT_STORE="postgres://u:geheim@h/d")
            self.assertIn("u:***@h/d", done.stdout)
            self.assertNotIn("geheim", done.stdout + done.stderr)


class Trust(Home):
    def test_is_granted_listed_and_revoked(self):
        self.git("init", "-q")
        self.write("stint.toml", '[land]\ngate = ["./dev", "check"]\n')
        self.assertIn("Nothing is trusted", self.stint("trust", "--list").stdout)
        done = self.stint("trust")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("./dev check  (stint.toml:2)", done.stdout)
        self.assertEqual(self.stint("trust", "--list").stdout, f"{self.folder}/.git\n")
        record = next((self.base / "home/.local/state/stint/trust").iterdir())
        self.assertEqual(record.stat().st_mode & 0o777, 0o600)
        self.assertIn("no longer trusted", self.stint("trust", "--revoke").stdout)
        self.assertEqual(json.loads(self.stint("trust", "--list", "--json").stdout), {"trusted": []})

    def test_an_agent_cannot_grant_trust(self):
        self.git("init", "-q")
        done = self.stint("trust", STINT_RUN="x:1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Nothing is trusted", self.stint("trust", "--list").stdout)

    def test_reports_a_missing_home(self):
        done = self.stint("trust", HOME="")
        self.assertEqual(done.returncode, 1)
        self.assertIn("HOME", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
