#!/usr/bin/env python3
"""Tests of tools/gtest_run.py and tools/run_tests.py, with a program that imitates GoogleTest."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import gtest_run
import run_tests

RUNNER = pathlib.Path(gtest_run.__file__)
# Its tests: A.passes, A.fails, A.crashes, A.hangs, A.skips, B/C.passes/0 and B/C.leaks/0 (after which the program ends with 3).
PROGRAM = """\
    #!/usr/bin/env python3
    import os, sys, time
    TESTS = ["A.passes", "A.fails", "A.crashes", "A.hangs", "A.skips", "B/C.passes/0", "B/C.leaks/0"]
    flags = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:] if "=" in word)
    if "gtest_flagfile" in flags:
        flags.update(line.strip().lstrip("-").split("=", 1) for line in open(flags["gtest_flagfile"]))
    chosen = flags.get("gtest_filter", "*").split(":")
    tests = [test for test in TESTS if "*" in chosen or test in chosen]
    if "--gtest_list_tests" in sys.argv:
        print("Running main() from gtest_main.cc\\nA.\\n  passes\\n  fails\\n  crashes\\n  hangs\\n  skips\\n  DISABLED_x\\nB/C.  # TypeParam = int\\n  passes/0  # GetParam() = 7\\n  leaks/0")
        sys.exit()
    status = 0
    for test in tests:
        print("[ RUN      ]", test, flush=True)
        print("words of", test, flush=True)
        what = test.split(".")[1]
        if what == "crashes":
            os.abort()
        if what == "hangs":
            time.sleep(60)
        word = {"fails": "[  FAILED  ]", "skips": "[  SKIPPED ]"}.get(what, "[       OK ]")
        status = 1 if what == "fails" else 3 if what == "leaks/0" else status
        print(word, test + (", where GetParam() = 7" if what == "fails" else ""), "(0 ms)", flush=True)
    print("[  PASSED  ] all\\nlast words")
    sys.exit(status)
    """


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "program"
        self.program.write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
        self.program.chmod(0o755)

    def run_it(self, *words, pattern=""):
        """Returns (status, results by name, output)."""
        command = [sys.executable, "-B", RUNNER, self.program, "--name", "it", "--results", self.folder, *words]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TESTS_FILTER": pattern})
        self.assertEqual(done.stderr, "")
        entry = words[words.index("--entry") + 1] if "--entry" in words else "it"
        written = json.loads((self.folder / f"{entry}.json").read_text(encoding="utf-8"))
        return done.returncode, {name: status for name, status, _ in written}, done.stdout

    def test_each_test_is_counted_and_those_after_a_crash_and_a_hang_still_run(self):
        status, results, said = self.run_it("--seconds-max", "1")
        self.assertEqual(status, 1)
        self.assertEqual(results, {"it.A.passes": "passed", "it.A.fails": "failed", "it.A.crashes": "failed", "it.A.hangs": "failed", "it.A.skips": "skipped",
                                   "it.B/C.passes/0": "passed", "it.B/C.leaks/0": "passed", "it: the program itself": "failed"})
        for text in ("words of A.fails", "words of A.crashes", "A.crashes ended its process with signal 6", "A.hangs took longer than 1.0 s", "last words",
                     "status 3 outside of its tests", "3 passed, 4 failed, 1 skipped"):
            self.assertIn(text, said)
        self.assertNotIn("words of A.passes", said)

    def test_a_filter_finds_a_test_by_its_whole_name(self):
        self.assertEqual(self.run_it(pattern=r"^it\.A\.passes$")[:2], (0, {"it.A.passes": "passed"}))
        self.assertEqual(self.run_it(pattern="no test is called so")[:2], (0, {}))

    def test_a_filter_finds_an_entry_of_its_own_by_the_entrys_name(self):
        _, results, _ = self.run_it("--entry", "it.special", "--seconds-max", "1", pattern="^it.special$")
        self.assertEqual(len(results), 8)

    def test_parts_have_each_test_once(self):
        listed = []
        for part in ("1/2", "2/2"):
            listed += gtest_run.tests_of([str(self.program), "--name", "it", "--part", part], "")
        self.assertEqual(len(listed), 7)
        self.assertEqual(len(set(listed)), 7)

    def test_a_program_that_does_not_start_is_a_failure(self):
        self.program.write_text("#!/bin/sh\ncase $1 in *list*) printf 'A.\\n  passes\\n' ;; *) echo 'no library'; exit 127 ;; esac\n", encoding="utf-8")
        status, results, said = self.run_it()
        self.assertEqual((status, results), (1, {"it: the program itself": "failed"}))
        self.assertIn("no library", said)


class Report(unittest.TestCase):
    REPORT = """<testsuite>
      <testcase name="plain" time="1.5" status="run"/>
      <testcase name="broken" time="2" status="fail"><failure message=""/></testcase>
      <testcase name="left_out" time="0" status="notrun"><skipped message=""/></testcase>
      <testcase name="program" time="9" status="run"/>
      <testcase name="killed" time="9" status="fail"><failure message=""/></testcase>
      <testcase name="odd" time="9" status="fail"><failure message=""/></testcase>
    </testsuite>"""

    def test_a_program_counts_as_its_tests_and_a_killed_runner_as_a_failure(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "program.json").write_text('[["p.a", "passed", 0.5], ["p.b", "skipped", 0.1]]', encoding="utf-8")
            (folder / "odd.json").write_text('[["o.a", "passed", 0.5]]', encoding="utf-8")
            found = run_tests.results(xml.etree.ElementTree.fromstring(self.REPORT), folder)
            self.assertEqual([(test, status) for test, status, _ in found], [
                ("plain", "passed"), ("broken", "failed"), ("left_out", "skipped"), ("p.a", "passed"), ("p.b", "skipped"), ("killed", "failed"),
                ("o.a", "passed"), ("odd", "failed")])
            run_tests.write(folder, found)
            self.assertEqual((folder / "tests.counts").read_text(), "3 3 2\n")
            self.assertEqual((folder / "tests.times").read_text().splitlines()[:2], ["9.0 killed", "9.0 odd"])

    def test_noise_of_ctest_is_left_out_and_what_failed_is_not(self):
        self.assertTrue(run_tests.PASSED.match(" 12/148 Test  #12: store ....................   Passed    4.31 sec"))
        for line in ("      Start  1: core.part1", "", "Total Test time (real) =   1.00 sec", "99% tests passed, 1 tests failed out of 148"):
            self.assertTrue(run_tests.NOISE.search(line), line)
        for line in (" 3/148 Test  #3: domain ...................***Failed    0.10 sec", "--- failed: domain.Address.reads", "The following tests FAILED:"):
            self.assertFalse(run_tests.NOISE.search(line), line)


class Ended(unittest.TestCase):
    def test_a_run_that_a_signal_ends_says_so(self):
        for number in (signal.SIGHUP, signal.SIGTERM):
            with self.subTest(number=number), tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                (folder / "CTestTestfile.cmake").write_text(f'add_test(sleeps sh -c "echo >{folder}/begun; sleep 60")\n', encoding="utf-8")
                process = subprocess.Popen([sys.executable, "-B", run_tests.__file__, folder], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                           start_new_session=True)
                end = time.monotonic() + 30
                while not (folder / "begun").exists():
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.01)
                process.send_signal(number)
                self.assertEqual(process.stderr.read(), f"run_tests.py: ended by {number.name}\n")
                os.killpg(process.pid, signal.SIGKILL)  # ctest; before its leader is reaped
                self.assertEqual(process.wait(30), -number)
                process.stderr.close()


if __name__ == "__main__":
    unittest.main()
