#!/usr/bin/env python3
"""Checks the model of the semaphore's slow path (semaphore.pml) with spin.

The right model must hold in every scene, searched to the end, and the scenes together must reach every step of it. Each
fault must be found. `check.py --trace NAME` prints the counter-example of one fault, or of a scene that fails.
"""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

MODEL = pathlib.Path(__file__).resolve().parent / "semaphore.pml"
MEMORY_MB_MAX = 2000
SEARCH_SECONDS_MAX = 300  # the largest scene takes about 10 on an idle core
DEPTH_MAX = 10_000  # the deepest scene goes below 300


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    about: str
    scene: tuple[str, ...]
    fault: str = ""


LINE = ("THREADS=3",)
FOUR = ("THREADS=4", "CAPACITY=3")
RESIZE = ("THREADS=3", "RESIZES=1")
RESIZE_TWICE = ("THREADS=2", "RESIZES=2")
CLOSE = ("THREADS=3", "CLOSES")

SCENES = [
    Case("line", "three acquire, cancel, release", LINE),
    Case("four", "four, three units", FOUR),
    Case("resize", "one resize", RESIZE),
    Case("resize_twice", "two resizes: debt, then growth", RESIZE_TWICE),
    Case("close", "a thread closes", CLOSE),
]

FAULTS = [
    Case("forget_followers", "leave does not settle", LINE, "FORGET_FOLLOWERS"),
    Case("barge", "the fast path ignores kSlow", LINE, "BARGE"),
    Case("stale_line_up", "the word is not read again under the lock", LINE, "STALE_LINE_UP"),
    Case("lost_grant", "an undelivered grant is not returned", LINE, "LOST_GRANT"),
    Case("blind_cancel", "cancel decides a wait a second time", LINE, "BLIND_CANCEL"),
    Case("unlocked_store", "settle stores the word though kSlow is clear", LINE, "UNLOCKED_STORE"),
    Case("drop_slow", "settle clears kSlow though a thread waits", LINE, "DROP_SLOW"),
    Case("forget_wake", "a posted waiter's executor is not woken", LINE, "FORGET_WAKE"),
    Case("post_unlocked", "a decided waiter is posted after the lock", LINE, "POST_UNLOCKED"),
    Case("uncounted_settler", "the destructor overtakes a settler", LINE, "UNCOUNTED_SETTLER"),
    Case("forget_debt", "a shrink below the held units is cut off at 0", RESIZE, "FORGET_DEBT"),
    Case("keep_impossible", "0 → 1 leaves a request of 2 in line", RESIZE_TWICE, "KEEP_IMPOSSIBLE"),
    Case("grant_after_close", "settle grants while close has yielded the lock", CLOSE, "GRANT_AFTER_CLOSE"),
]


@dataclasses.dataclass
class Verdict:
    complaint: str  # empty: the model holds
    states: int
    seconds: float
    unreached: set[tuple[str, str]]


def run(command: list[str], folder: pathlib.Path, seconds_max: float = 120) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds_max)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def defines(case: Case) -> list[str]:
    return [f"-D{define}" for define in (*case.scene, case.fault) if define]


def search(case: Case, folder: pathlib.Path) -> Verdict:
    run(["spin", "-a", *defines(case), str(MODEL)], folder)
    effort = "-O0" if case.fault else "-O2"  # a fault is found in less time than it takes to optimize the search
    options = ["-DSAFETY", "-DNOFAIR", "-DCOLLAPSE", f"-DMEMLIM={MEMORY_MB_MAX}"]
    run(["gcc", effort, "-w", *options, "-o", "pan", "pan.c"], folder)
    began = time.monotonic()
    report = run(["./pan", f"-m{DEPTH_MAX}"], folder, SEARCH_SECONDS_MAX)
    return read_report(report, time.monotonic() - began)


def read_report(report: str, seconds: float) -> Verdict:
    found = re.search(r"^pan:\d+: (.*?)(?: \(at depth \d+\))?$", report, re.MULTILINE)
    errors = re.search(r"errors: (\d+)", report)
    states = re.search(r"(\S+) states, stored", report)
    if errors is None or states is None:
        raise RuntimeError("cannot parse pan's report:\n" + report)
    complaint = found.group(1) if found else ""
    if "Search not completed" in report and not complaint:
        complaint = "search not completed"
    if errors.group(1) != "0" and not complaint:
        complaint = "errors without a message"
    return Verdict(complaint, int(float(states.group(1))), seconds, unreached_steps(report))


def unreached_steps(report: str) -> set[tuple[str, str]]:
    steps, process = set(), ""
    for text in report.splitlines():
        if heading := re.match(r"unreached in (?:proctype )?(\w+)", text):
            process = heading.group(1)
        elif step := re.match(r"\s+\S*?(\d+), state (\d+), \"(.*)\"", text):
            steps.add((process, f"line {step.group(1)}: {step.group(3)} (state {step.group(2)})"))
    return steps


def trace(case: Case, folder: pathlib.Path) -> str:
    if not list(folder.glob("*.trail")):
        return "There is no counter-example: the model holds.\n"
    command = ["spin", "-p", "-g", *defines(case), "-k", str(next(folder.glob("*.trail"))), str(MODEL)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120).stdout


def judge(case: Case, verdict: Verdict) -> str:
    if case.fault:
        return "found" if verdict.complaint else "NOT FOUND"
    return "FAILS" if verdict.complaint else "holds"


def check_all(base: pathlib.Path) -> list[str]:
    problems: list[str] = []
    unreached: set[tuple[str, str]] | None = None
    cases = SCENES + FAULTS
    folders = {case.name: base / case.name for case in cases}
    for folder in folders.values():
        folder.mkdir()
    print(f"{'scene or fault':<18} {'verdict':<10} {'states':>9} {'seconds':>8}  what")
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        for case, verdict in zip(cases, pool.map(lambda case: search(case, folders[case.name]), cases)):
            word = judge(case, verdict)
            why = f" → {verdict.complaint}" if verdict.complaint else ""
            print(f"{case.name:<18} {word:<10} {verdict.states:>9} {verdict.seconds:>8.1f}  {case.about}{why}", flush=True)
            if word in ("FAILS", "NOT FOUND"):
                problems.append(f"{case.name}: {word}")
                print(trace(case, folders[case.name])[-4000:] if verdict.complaint else "")
            if not case.fault:
                unreached = verdict.unreached if unreached is None else unreached & verdict.unreached
    problems += [f"no scene reaches {process}, {step}" for process, step in sorted(unreached or ())]
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", metavar="NAME", help="print the counter-example of one scene or fault")
    arguments = parser.parse_args()
    if shutil.which("spin") is None or shutil.which("gcc") is None:
        print("The model checker spin and gcc are needed: run ./dev setup.", file=sys.stderr)
        return 1
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="stint-model-") as base:
        if arguments.trace:
            case = next((case for case in SCENES + FAULTS if case.name == arguments.trace), None)
            if case is None:
                parser.error(f"there is no scene or fault {arguments.trace}")
            search(case, pathlib.Path(base))
            print(trace(case, pathlib.Path(base)), end="")
            return 0
        problems = check_all(pathlib.Path(base))
    for problem in problems:
        print(problem)
    print(f"{len(SCENES)} scenes, {len(FAULTS)} faults, {len(problems)} problems, {time.monotonic() - began:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
