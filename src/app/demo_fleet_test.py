#!/usr/bin/env python3
"""`stint demo fleet`: what `./dev run` shows. `demo_fleet_test.py PATH-TO-STINT`"""
import json
import os
import pathlib
import re
import signal
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

STINT = sys.argv.pop(1)


class DemoFleet(unittest.TestCase):
    def test_runs_flow_within_the_limit_and_no_token_is_wasted(self):
        done = subprocess.run([STINT, "demo", "fleet"], capture_output=True, text=True, timeout=90)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("7 succeeded, 1 cancelled; at most 2 of 2 writers at once.", done.stdout)
        self.assertRegex(done.stdout, r"1 disconnected early, 0 tokens were not delivered")
        self.assertNotIn("\033", done.stdout)

    def test_the_address_answers_and_ctrl_c_drains(self):
        demo = subprocess.Popen([STINT, "demo", "fleet", "--runs", "50"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(demo.stdout.close)
        self.addCleanup(demo.stderr.close)
        demo.stdout.readline()
        page = demo.stdout.readline()
        url, token = re.search(r"STINT_URL=(\S+) STINT_TOKEN=(\S+) /\S+/stint top", demo.stdout.readline()).groups()
        self.assertEqual(page.split()[-1], f"{url}/#token={token}")
        time.sleep(1.5)
        request = urllib.request.Request(url + "/v1/runs", headers={"Authorization": "Bearer " + token})
        with urllib.request.urlopen(request) as answer:
            runs = json.load(answer)["runs"]
        self.assertGreater(len(runs), 2)
        self.assertTrue(any(run["state"] == "running" for run in runs))
        demo.send_signal(signal.SIGINT)
        out, _ = demo.communicate(timeout=45)
        self.assertIn("0 tokens were not delivered", out)

    def test_a_refused_submission_ends_it(self):
        with tempfile.TemporaryDirectory(prefix="stint-test-") as base:
            demo = subprocess.Popen([STINT, "demo", "fleet", "--runs", "5000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    env=os.environ | {"TMPDIR": base})
            self.addCleanup(demo.kill)
            for _ in range(4):  # the fourth line: a run was submitted
                demo.stdout.readline()
            for agents in pathlib.Path(base).glob("stint-demo-*/.stint/agents"):
                shutil.rmtree(agents)
            demo.send_signal(signal.SIGHUP)
            _, errors = demo.communicate(timeout=45)
            self.assertEqual(demo.returncode, 1, errors)
            self.assertRegex(errors, r"^stint: .*'(?:writer|reader)'")


if __name__ == "__main__":
    unittest.main()
