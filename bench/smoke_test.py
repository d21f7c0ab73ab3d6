#!/usr/bin/env python3
"""Every row of the library's own benchmarks runs to its end and yields its figures, with small sizes: `smoke_test.py CORE_BENCH`"""
import json
import subprocess
import sys
import unittest

import core_suite
import run

PROGRAM = ""


class Core(unittest.TestCase):
    def test_every_row_yields_the_figures_of_its_group(self):
        for group in core_suite.GROUPS.values():
            for row in group.rows:
                if not row.ours:
                    continue
                with self.subTest(group=group.name, row=row.label):
                    done = subprocess.run([PROGRAM, group.command, *run.arguments(row, core_suite, True)], capture_output=True, text=True, timeout=60)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    yielded = {json.loads(line)["bench"] for line in done.stdout.splitlines()}
                    self.assertTrue(yielded & set(group.figures), f"{sorted(yielded)} has none of {sorted(group.figures)}")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
