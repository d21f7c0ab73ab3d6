#!/usr/bin/env python3
"""Runs the tests of a build directory with ctest, and counts them one by one.

    run_tests.py BUILD [--jobs N] [--filter REGEX] [--label REGEX] [--without-label REGEX] [--repeat N] [--list]

Prints failures with their output, names skipped tests, and shows progress: on a terminal in one line, elsewhere once a minute.
Writes files for ./dev into BUILD: tests.counts, `passed failed skipped`; tests.times, `seconds name` from the slowest on.

An entry of ctest is one test, or a GoogleTest program whose tests tools/gtest_run.py runs and records, one by one. --filter matches the names
of tests in both.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import gtest_run

PROGRESS_SECONDS = 60  # between two lines where there is no terminal
RUNNER = "gtest_run.py"
PASSED = re.compile(r"^ *(\d+)/(\d+) Test +#.* Passed +[0-9.]+ sec$")
ENDED = re.compile(r"^ *(\d+)/(\d+) Test +#")
NOISE = re.compile(r"^$|^ *Start +\d+: |^(Test project|Internal ctest|Label Time Summary|Total Test time|Errors while running CTest|"
                   r"Output from these tests|Use \"--rerun-failed)|sec\*proc|tests passed, \d+ tests failed out of")


class Progress:
    """Prints brief progress."""

    def __init__(self, title, terminal):
        self.title, self.terminal, self.open = title, terminal, False
        self.began = self.said = time.monotonic()

    def show(self, done, total):
        now = time.monotonic()
        minutes, seconds = divmod(int(now - self.began), 60)
        text = f"{self.title}: {done} of {total} done, {minutes}:{seconds:02d}"
        if self.terminal:
            print(f"\r{text} ", end="", flush=True)
            self.open = True
        elif now - self.said >= PROGRESS_SECONDS:
            print(text, flush=True)
            self.said = now

    def line(self, text):
        if self.open:
            print("\r\033[K", end="")
            self.open = False
        print(text, flush=True)


def entries(build, options):
    """The entries that ctest would run: name → command."""
    command = ["ctest", "--test-dir", str(build), "--show-only=json-v1", *labels(options)]
    listing = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {test["name"]: test.get("command", []) for test in json.loads(listing)["tests"]}


def labels(options):
    return [word for flag, value in (("-L", options.label), ("-LE", options.without_label)) if value for word in (flag, value)]


def is_program(command):
    return any(word.endswith(RUNNER) for word in command)


def matching(found, pattern):
    """The entries with matching tests: entry → names."""
    matches = {}
    for entry, command in found.items():
        if is_program(command):
            names = gtest_run.tests_of(command[[word.endswith(RUNNER) for word in command].index(True) + 1 :], pattern)
        else:
            names = [entry] if re.search(pattern, entry) else []
        if names:
            matches[entry] = names
    return matches


def run(build, options, chosen):
    """Runs ctest; returns its report as a tree, or nothing if it did not run."""
    report = build / "ctest.xml"
    report.unlink(missing_ok=True)
    shutil.rmtree(build / "test-results", ignore_errors=True)
    command = ["ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=ignore", "-j", str(options.jobs),
               "--output-junit", str(report), *labels(options)]
    if chosen is not None:
        command += ["-R", "^(" + "|".join(re.escape(entry) for entry in chosen) + ")$"]
    if options.repeat:
        command += ["--repeat", f"until-fail:{options.repeat}"]
    # MALLOC_PERTURB_ fills fresh and freed memory: code that works only on a zeroed heap fails here.
    environment = {**os.environ, "MALLOC_PERTURB_": "165", "TESTS_FILTER": options.filter}
    progress = Progress(f"{build.name} tests", sys.stdout.isatty())
    with (open(build / "ctest.txt", "w", encoding="utf-8", errors="replace") as log,
          subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment) as ctest):
        for raw in ctest.stdout:
            line = raw.decode(errors="replace").rstrip("\n")
            log.write(line + "\n")
            if ended := ENDED.match(line):
                progress.show(*ended.groups())
            if not PASSED.match(line) and not NOISE.search(line):
                progress.line(line)
    return xml.etree.ElementTree.parse(report).getroot() if report.exists() else None


def results(report, folder):
    """(name, status, seconds) of every test."""
    found = []
    for case in report.iter("testcase"):
        entry, status, seconds = case.get("name"), "passed", float(case.get("time", "0"))
        if case.find("failure") is not None or case.get("status") == "fail":
            status = "failed"
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            status = "skipped"
        written = folder / f"{entry}.json"
        tests = json.loads(written.read_text(encoding="utf-8")) if written.exists() else []
        found += [tuple(test) for test in tests]
        # A killed runner has written nothing; one that found a failure outside of its tests reports it by its status.
        if not written.exists() or (status == "failed" and all(test[1] != "failed" for test in tests)):
            found.append((entry, status, seconds))
    return found


def write(build, found):
    counts = [sum(1 for _, status, _ in found if status == wanted) for wanted in ("passed", "failed", "skipped")]
    (build / "tests.counts").write_text("{} {} {}\n".format(*counts), encoding="utf-8")
    slowest = sorted(found, key=lambda test: -test[2])
    (build / "tests.times").write_text("".join(f"{seconds:.1f} {name}\n" for name, _, seconds in slowest), encoding="utf-8")


def end_by(number, _):
    """A run that is ended from outside says so: it may have no terminal, and a shell above it that ends by the same signal says nothing."""
    print(f"run_tests.py: ended by {signal.Signals(number).name}", file=sys.stderr, flush=True)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--repeat", type=int)
    parser.add_argument("--list", action="store_true")
    for name in ("--filter", "--label", "--without-label"):
        parser.add_argument(name, default="")
    options = parser.parse_args()
    build = options.build.resolve()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):  # nohup and background jobs ignore them, which tests would inherit
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, end_by)
    for name in ("tests.counts", "tests.times"):
        (build / name).unlink(missing_ok=True)
    chosen = None
    if options.filter or options.list:
        chosen = matching(entries(build, options), options.filter)
    if options.list:
        print("".join(f"{name}\n" for name in sorted(name for names in chosen.values() for name in names)), end="")
        return 0
    if chosen == {}:
        write(build, [])
        return 0
    report = run(build, options, chosen)
    if report is None:
        print(f"run_tests.py: ctest did not run; its output is in {build / 'ctest.txt'}", file=sys.stderr)
        return 1
    found = results(report, build / "test-results")
    for name, status, _ in found:
        if status == "skipped":
            print(f"skipped: {name}")
    write(build, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
