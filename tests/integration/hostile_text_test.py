#!/usr/bin/env python3
"""Hostile text on a terminal: no control character from a checkout, a caller or an agent reaches the terminal.

    hostile_text_test.py STINT [unittest arguments]

Every place that accepts text gets the same hostile text, and every command that shows text runs on a pseudo-terminal.
"""
import errno
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import unittest

import run_test
from host_support import write

# Each is recognisable in the bytes of a terminal, and Stint itself sends none of them.
PIECES = {"escape": "\x1b[31337J", "title": "\x1b]0;EVIL\x07", "8-bit escape": "\x9b31337J", "return": "\rEVIL", "backspace": "\bEVIL", "bell": "\x07EVIL",
          "right to left": "\u202eEVIL", "isolate": "\u2066EVIL", "mark": "\u200fEVIL", "arabic mark": "\u061cEVIL", "line separator": "\u2028EVIL", "tag": "\U000e0041EVIL",
          "zero width space": "\u200bEVIL", "joiner": "\u200dEVIL", "word joiner": "\u2060EVIL", "byte order mark": "\ufeffEVIL", "soft hyphen": "\u00adEVIL", "filler": "\u3164EVIL",
          "selector": "\ufe0fEVIL", "selector 17": "\U000e0100EVIL"}
HOSTILE = "".join(PIECES.values()) + " end"
TOML = "".join(c if " " <= c <= "~" and c not in '"\\' else f"\\U{ord(c):08x}" for c in HOSTILE)
YAML = TOML  # both support these escapes
FOLLOW_SECONDS_MAX = 30


class HostileText(run_test.Case):
    def setUp(self):
        super().setUp()
        self.b.env.update(TERM="xterm", PGCONNECT_TIMEOUT="1")
        self.b.env.pop("NO_COLOR", None)

    def terminal(self, *words, say=b"", until=None):
        """The bytes that a command sends to a terminal; interrupts it once it has shown `until`."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([run_test.STINT, *words], cwd=self.project, env=self.b.env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        if say:
            os.write(ours, say)
        shown, end = b"", time.monotonic() + FOLLOW_SECONDS_MAX
        while time.monotonic() < end:
            if until and until in shown:
                process.send_signal(signal.SIGTERM)
                until = None
            if not select.select([ours], [], [], 0.1)[0]:
                if process.poll() is not None:
                    break
                continue
            try:
                piece = os.read(ours, 65536)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                break
            if not piece:
                break
            shown += piece
        process.kill() if process.poll() is None else None
        process.wait(10)
        os.close(ours)
        return shown

    def check(self, *words, **how):
        shown = self.terminal(*words, **how)
        with self.subTest(words=words):
            self.assertEqual([name for name, piece in PIECES.items() if piece.encode() in shown], [], "reached the terminal")
        return shown

    def test_text_of_untrusted_files(self):
        write(f"{self.project}/.stint/agents/evil.md", f'---\ndescription: "d {YAML}"\ndriver: command\ncommand: [sh, -c, "true {YAML}"]\ntitle: "t {YAML}"\nargs:\n  - {{name: a, description: "{YAML}", default: "{YAML}"}}\n---\nDo it.\n')
        self.agent("args", f'driver: claude\ndriver_args: ["--model", "{YAML}"]\n')
        self.agent("wrong", f'driver: "{YAML}"\n"key{YAML}": 1\n')
        write(f"{self.project}/stint.toml", f'[land]\ngate = ["./gate", "{TOML}"]\n[accounts.x]\nkey_env = "{TOML}"\n')
        question = self.check("run", "evil", say=b"n\n")
        self.assertIn(b"[y/N]", question)
        for what in (b"./gate", b"--model", b"sh -c true"):
            self.assertIn(what, question, "everything that needs trust")
        for words in (["run", "wrong"], ["submit", "evil"], ["agents"], ["agents", "evil"], ["agents", "wrong"], ["config"], ["doctor"], ["trust", "--list"], ["status"], ["limits"]):
            self.check(*words)
        served = self.check("serve", "--listen", "127.0.0.1:0", until=b"(Ctrl-C drains)")
        self.assertIn(b"evil can't run", served)
        self.check("trust")
        self.check("trust", "--revoke")

    def test_text_of_an_unreachable_store(self):
        write(f"{self.project}/stint.toml", f'store = "postgres://u@127.0.0.1:1/{TOML}"\nlimits_dir = "/nonexistent/{TOML}"\n')
        self.assertIn(b"[y/N]", self.check("run", "-p", "hello", say=b"n\n"))
        for words in (["ls"], ["config"], ["doctor"], ["trust"], ["ls"], ["limits"], ["serve", "--listen", "127.0.0.1:0"]):
            self.check(*words)

    def test_text_of_callers_and_agents(self):
        self.agent("say", 'driver: command\ncommand: [sh, -c, \'printf "%s\\n" "$0"; printf "%s\\n" "$0" >&2; exit 3\', "{{what}}"]\ntitle: "{{what}}"\nargs:\n  - {name: what, required: true}\n')
        self.trust()
        self.check("run", "say", HOSTILE, "--session", HOSTILE)
        run = json.loads(self.b.run("ls", "--json").stdout)["runs"][0]["id"]
        for words in (["ls"], ["show", run], ["logs", run], ["why", run], ["status"], ["submit", "say", HOSTILE, "--session", HOSTILE], ["ls", "--agent", HOSTILE], ["show", HOSTILE],
                      ["run", HOSTILE], ["run", "say", f"{HOSTILE}={HOSTILE}"], ["pause", HOSTILE], ["limits", f"{HOSTILE}=2"], ["store", "import", HOSTILE]):
            self.check(*words)
        served = self.check("serve", "--listen", "127.0.0.1:0", "--log-level", "debug", until=b"attempt ended")
        self.assertIn(b"attempt ended", served)
        self.assertTrue(re.search(rb"why=\S*", served), "the log has the reason")


if __name__ == "__main__":
    run_test.STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
