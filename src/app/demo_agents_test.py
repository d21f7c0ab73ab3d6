#!/usr/bin/env python3
"""`stint demo agents`: what `./dev run` shows. `demo_agents_test.py PATH-TO-STINT`"""
import re
import signal
import subprocess
import sys
import time
import unittest

STINT = sys.argv.pop(1)


class DemoAgents(unittest.TestCase):
    def test_never_more_at_once_than_allowed_and_nothing_is_made_for_nobody(self):
        done = subprocess.run([STINT, "demo", "agents"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("5 succeeded, 1 cancelled; at most 2 of 2 at once.", done.stdout)
        self.assertRegex(done.stdout, r"1 client left early, 0 tokens were made for nobody")
        self.assertRegex(done.stdout, r"writer 6 +waits, \d ahead")
        self.assertNotIn("\033", done.stdout)

    def test_ctrl_c_ends_all_of_them(self):
        demo = subprocess.Popen([STINT, "demo", "agents", "--runs", "8", "--max-concurrency", "3"], stdout=subprocess.PIPE, text=True)
        time.sleep(2)
        demo.send_signal(signal.SIGINT)
        output, _ = demo.communicate(timeout=20)
        self.assertTrue(re.search(r"at most 3 of 3 at once", output), output)
        self.assertIn("0 tokens were made for nobody", output)


if __name__ == "__main__":
    unittest.main()
