#!/usr/bin/env python3
"""`stint open`: how the browser gets the dashboard's address, and what other users can see of it: `open_test.py STINT`"""
import os
import pathlib
import re
import stat
import subprocess
import sys
import unittest

import daemon_support
from host_support import wait_for, write


class Open(daemon_support.Case):
    def setUp(self):
        super().setUp()
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
            self.b.env.pop(name, None)

    def browser(self):
        """A browser that writes down its arguments."""
        seen, program = pathlib.Path(self.b.home, "seen"), f"{self.b.home}/browser"
        write(program, f'#!/bin/sh\nprintf "%s\\n" "$@" >{seen}.new\nmv {seen}.new {seen}\n')
        os.chmod(program, 0o755)
        self.b.env["BROWSER"] = program
        return seen

    def test_without_a_screen_it_prints_the_address(self):
        d = self.serve()
        self.assertEqual(self.stint("open"), f"http://{d.host}:{d.port}/#token={d.token}\n")
        self.browser()
        self.assertEqual(self.stint("open", "--print", "abcd"), f"http://{d.host}:{d.port}/#/run/abcd?token={d.token}\n")

    def test_the_browser_gets_a_private_file_and_not_the_token(self):
        d = self.serve()
        seen = self.browser()
        self.assertNotIn(d.token, self.stint("open"))
        wait_for(seen.exists, 10, "the browser")
        file = pathlib.Path(seen.read_text(encoding="utf-8").strip())
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        self.assertEqual(re.findall(r'replace\("([^"]+)"\)', file.read_text(encoding="utf-8")), [f"http://{d.host}:{d.port}/#token={d.token}"])

    def test_without_a_daemon_it_says_what_to_do(self):
        self.assertEqual(self.stint("open", status=1), "")

    def test_text_that_is_no_id_is_refused(self):
        self.serve()
        self.stint("open", 'x");alert("', status=1)

    def test_serve_prints_the_address_with_the_token_in_the_fragment(self):
        self.stint("trust")
        process = subprocess.Popen([daemon_support.STINT, "serve", "--listen", "127.0.0.1:0"], cwd=self.project, env=self.b.env, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        lines = [process.stdout.readline() for _ in range(4)]
        token = next(line.split()[1] for line in lines if line.startswith("  token"))
        self.assertRegex(lines[3], rf"^  page   http://127\.0\.0\.1:\d+/#token={token}$")


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main()
