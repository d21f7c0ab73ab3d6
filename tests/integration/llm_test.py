#!/usr/bin/env python3
"""Agents whose model Stint calls itself, against the simulated provider. `llm_test.py STINT [CLASS…]`"""
import json
import os
import signal
import subprocess
import sys
import unittest

import daemon_support
from host_support import read, wait_for, write

SCRIPT = """
[[reply]]
match = "Look"
text = "I look."
tools = [{name = "look", input = {what = "the sea"}}]
turn = 0

[[reply]]
match = "Mail"
text = "I mail."
tools = [{name = "mail", input = {to = "ann"}}]
turn = 0

[default]
text = "All done."
"""
AGENT = """---
description: {name}
driver: llm
model: local/simulated
args: [{{name: task, required: true}}]
tools:
  - {{name: look, description: Looks at something, class: read, timeout: 30s, command: [sh, "{script}", look, "{{{{what}}}}"]}}
  - {{name: mail, description: Sends a mail, timeout: 30s, command: [sh, "{script}", mail, "{{{{to}}}}"]}}
---
{{{{task}}}}
"""
# Each call leaves a line, and may have to wait.
TOOL = 'echo "$1 $2" >> "{journal}"\nwhile [ -e "{wait}" ]; do sleep 0.05; done\necho "result of $1"\n'


class Llm(daemon_support.Case):
    def setUp(self):
        super().setUp()
        self.journal, self.wait_file = f"{self.project}/journal", f"{self.b.home}/wait"
        write(self.journal, "")
        write(f"{self.b.home}/tool.sh", TOOL.format(journal=self.journal, wait=self.wait_file))
        write(f"{self.b.home}/replies.toml", SCRIPT)
        self.provider = subprocess.Popen([daemon_support.STINT, "provider", "--json", "--script", f"{self.b.home}/replies.toml"],
                                         stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end_provider)
        address = json.loads(self.provider.stdout.readline())["address"]
        write(f"{self.project}/stint.toml", f'[models."local/simulated"]\nendpoint = "http://{address}"\n')
        write(f"{self.project}/.stint/agents/helper.md", AGENT.format(name="helper", script=f"{self.b.home}/tool.sh"))

    def end_provider(self):
        self.provider.terminate()
        self.provider.wait()
        self.provider.stdout.close()

    def lines(self):
        return read(self.journal).splitlines()

    def crash_within(self, task, line):
        """Kills a daemon while the tool works, and starts another. Returns that and the run."""
        write(self.wait_file, "")
        first = self.serve()
        run = first.submit("helper", args={"task": task})
        wait_for(lambda: self.lines() == [line], 30, "the tool to begin")
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        os.unlink(self.wait_file)
        wait_for(lambda: not self.marked(), 20, "the tool to be gone")
        return self.serve(), run

    def test_a_run_calls_its_model_and_its_tools(self):
        self.assertIn("not trusted", self.refused())
        self.stint("trust")
        self.assertEqual(self.stint("run", "helper", "Look"), "I look.\nAll done.\n")
        self.assertEqual(self.lines(), ["look the sea"])

    def refused(self):
        done = subprocess.run([daemon_support.STINT, "run", "helper", "Look"], cwd=self.project, env=self.b.env, capture_output=True, text=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(self.lines(), [], "nothing of an untrusted checkout is started")
        return done.stderr

    def test_a_daemon_carries_it_too(self):
        d = self.serve()
        seen = d.wait(d.submit("helper", args={"task": "Mail"}), 30)
        self.assertEqual(seen["state"], "succeeded", seen)
        self.assertEqual(self.lines(), ["mail ann"])

    def test_after_a_crash_a_read_tool_is_called_again(self):
        d, run = self.crash_within("Look", "look the sea")
        seen = d.wait(run, 40)
        self.assertEqual(seen["state"], "succeeded", seen)
        self.assertEqual(self.lines(), ["look the sea", "look the sea"])

    def test_after_a_crash_a_once_tool_is_not_called_again(self):
        d, run = self.crash_within("Mail", "mail ann")
        seen = d.wait(run, 40)
        self.assertEqual(seen["state"], "in_doubt", seen)
        self.assertEqual(self.lines(), ["mail ann"])


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main()
