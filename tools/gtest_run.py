#!/usr/bin/env python3
"""Runs the tests of one GoogleTest program in one process, as one entry of ctest.

    gtest_run.py [OPTION…] PROGRAM

      --name NAME         the prefix of its tests: NAME.Suite.test
      --entry ENTRY       the name of this entry in ctest; default NAME
      --filter FILTER     GoogleTest's filter: only these tests
      --part I/N          only every Nth test, from the Ith on
      --seconds-max N     time limit of a single test
      --results FOLDER    folder for ENTRY.json: [[name, status, seconds]…], which tools/run_tests.py counts

A process per test costs more than most tests. One process for all of them loses the rest when a test ends it. So: a test that crashes or
takes too long counts as failed, with its output, and the tests after it run in a new process. TESTS_FILTER, a regular
expression, selects tests by their full name; matching the name of an entry selects all its tests.
"""
import argparse
import ctypes
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

DRAIN_SECONDS_MAX = 2  # a leftover process of a test may hold the pipe open
RUN, OK, FAILED, SKIPPED = (b"[ RUN      ] ", b"[       OK ] ", b"[  FAILED  ] ", b"[  SKIPPED ] ")
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def names(listing):
    """The tests in the output of --gtest_list_tests, as `Suite.test`."""
    found, suite = [], ""
    for line in listing.splitlines():
        word = line.split("#")[0].rstrip()
        if line.startswith("  "):
            found.append(suite + word.strip())
        elif word.endswith("."):
            suite = word
    return [name for name in found if not re.search(r"(^|\.|/)DISABLED_", name)]


def listed(program, gtest_filter):
    command = [program, "--gtest_list_tests"] + ([f"--gtest_filter={gtest_filter}"] if gtest_filter else [])
    return names(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def selected(tests, options, pattern):
    tests = [test for index, test in enumerate(tests) if index % options.parts == options.part - 1]
    if not pattern or (options.entry != options.name and options.parts == 1 and re.search(pattern, options.entry)):
        return tests
    return [test for test in tests if re.search(pattern, f"{options.name}.{test}")]


class Process:
    """One process of the program, for some of its tests. Parses its output, test by test."""

    def __init__(self, program, tests, seconds_max):
        self.flags = tempfile.NamedTemporaryFile("w", suffix=".flags")
        self.flags.write("--gtest_filter=" + ":".join(tests) + "\n")  # too long for an argument
        self.flags.flush()
        self.seconds_max = seconds_max
        self.current = None  # the current test
        self.since = time.monotonic()
        self.said = []  # output of the current test, or outside of any
        self.done = []  # (name, status, seconds, text)
        self.child = subprocess.Popen([program, f"--gtest_flagfile={self.flags.name}", "--gtest_color=no"], stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))

    def run(self):
        """Reads until it ends. A test that is still `current` then ended with it."""
        pipe, rest, ended_at, why = self.child.stdout.fileno(), b"", None, ""
        os.set_blocking(pipe, False)
        while True:
            ready, _, _ = select.select([pipe], [], [], 0.2)
            data = os.read(pipe, 1 << 16) if ready else None
            if data:
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self.line(line)
            if ended_at is None and self.child.poll() is not None:
                ended_at = time.monotonic()
            if data == b"" or (ended_at is not None and time.monotonic() - ended_at > DRAIN_SECONDS_MAX):
                break
            if not why and self.current and time.monotonic() - self.since > self.seconds_max:
                why = f"took longer than {self.seconds_max} s"
                self.child.kill()
        if rest:
            self.said.append(rest)
        status = self.child.wait()
        self.flags.close()
        if self.current:
            why = why or (f"ended its process with signal {-status}" if status < 0 else f"ended its process with status {status}")
            self.end("failed", f"{self.current} {why}\n".encode())
        return status

    def line(self, line):
        if line.startswith(RUN):
            self.current, self.since, self.said = line[len(RUN):].decode(), time.monotonic(), []
        elif self.current and line.startswith((OK, FAILED, SKIPPED)) and line[len(OK):].split(b" ")[0].rstrip(b",") == self.current.encode():
            self.end({OK: "passed", FAILED: "failed", SKIPPED: "skipped"}[line[:len(OK)]], line + b"\n")
        else:
            self.said.append(line)

    def end(self, status, last):
        text = b"\n".join(self.said + [last]).decode(errors="replace")
        self.done.append((self.current, status, time.monotonic() - self.since, text))
        self.current, self.said = None, []


def run(options, tests):
    """Runs all tests, in as many processes as needed. Returns the results; prints failed and skipped tests."""
    results, left = [], tests
    while left:
        process = Process(options.program, left, options.seconds_max)
        status = process.run()
        for name, verdict, seconds, text in process.done:
            results.append([f"{options.name}.{name}", verdict, round(seconds, 3)])
            if verdict != "passed":
                print(f"--- {verdict}: {options.name}.{name}\n{text}", flush=True)
        seen = {name for name, *_ in process.done}
        missing = [test for test in left if test not in seen]
        broken = any(verdict == "failed" for _, verdict, *_ in process.done)
        if (status != 0 and not broken) or (missing and not process.done):
            # Outside of any test: a sanitizer's report at the end, a teardown, a program that does not start.
            results.append([f"{options.entry}: the program itself", "failed", 0.0])
            print(f"--- failed: {options.program} ended with status {status} outside of its tests")
            print(b"\n".join(process.said).decode(errors="replace"), flush=True)
            if not process.done:
                break
        left = missing
    return results


def arguments(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--name", required=True)
    parser.add_argument("--entry")
    parser.add_argument("--filter", default="")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--seconds-max", type=float, default=60)
    parser.add_argument("--results", default=".")
    options = parser.parse_args(words)
    options.entry = options.entry or options.name
    options.part, options.parts = (int(word) for word in options.part.split("/"))
    return options


def tests_of(words, pattern):
    """The full names of the tests that these arguments and this pattern select."""
    options = arguments(words)
    return [f"{options.name}.{test}" for test in selected(listed(options.program, options.filter), options, pattern)]


def main():
    options = arguments(sys.argv[1:])
    tests = selected(listed(options.program, options.filter), options, os.environ.get("TESTS_FILTER", ""))
    results = run(options, tests)
    folder = pathlib.Path(options.results)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{options.entry}.json").write_text(json.dumps(results), encoding="utf-8")
    count = {status: sum(1 for result in results if result[1] == status) for status in ("passed", "failed", "skipped")}
    print(f"{options.entry}: {count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
