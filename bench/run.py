#!/usr/bin/env python3
"""Runs our benchmarks beside their peers and prints tables, ratios and targets; JSON goes to build/bench.

    bench/run.py [SUITE] [--quick] [--only PATTERN] [--rounds N] [--ours PATH]

Without a suite all are run. `./dev bench [SUITE]` builds our programs first and then calls this.
"""
import argparse
import concurrent.futures
import json
import os
import re
import signal
import sys

import core_suite
import harness
import host_suite
import http_suite
import report
import serve_suite
import store_suite
import web_suite
from suite import Results

SUITES = {"core": core_suite, "host": host_suite, "http": http_suite, "serve": serve_suite, "store": store_suite, "web": web_suite}
BUILD = harness.ROOT / "build" / "bench"
ROUNDS, QUICK_ROUNDS, ROUNDS_MIN = 5, 2, 5  # with fewer rounds than ROUNDS_MIN a median means little
QUICK_DIVISOR = 100
TIMEOUT_S, QUICK_TIMEOUT_S = 300, 30


def say(text):
    print(text, file=sys.stderr, flush=True)


def prepare(programs, wanted, quick):
    """Builds the programs of the chosen rows. → the programs that can be run, and for the others the reason."""
    skipped = {}

    def one(key):
        program = programs[key]
        if quick and program.slow_to_build and not program.built(BUILD):
            raise harness.Skip("not built, and a quick run builds nothing slow", "run without --quick once")
        program.prepare(BUILD)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {key: pool.submit(one, key) for key in wanted}
    for key, job in jobs.items():
        try:
            job.result()
            programs[key].start()
        except harness.Skip as skip:
            skipped[key] = {"why": skip.why, "remedy": skip.remedy}
            say(f"SKIPPED {key}: {skip.why}. To have it: {skip.remedy}")
    return skipped


def arguments(row, suite, quick):
    args = dict(row.args)
    if quick:
        for key in suite.SCALED:
            if key in args:
                args[key] = max(args[key] // QUICK_DIVISOR, 10)
        if "n" in args:
            args["n"] = max(args["n"], suite.QUICK_MIN)
    return [f"{key}={value}" for key, value in args.items() if value is not None]


def run_group(group, suite, programs, skipped, results, rounds, quick):
    """All rows of a group, in turns; each round begins with another row, so that none always follows the same one."""
    runnable = []
    for row in group.rows:
        if row.program in skipped:
            results.skipped[group.name, row.label] = f"skipped: {skipped[row.program]['why']}"
        elif not quick and harness.available_gib() < row.gib:
            results.skipped[group.name, row.label] = f"skipped: needs {row.gib} GiB of free memory"
        else:
            runnable.append(row)
    for turn in range(min(rounds, group.rounds_max or rounds)):
        say(f"{group.name}: round {turn + 1}")
        start = turn % max(len(runnable), 1)
        for row in runnable[start:] + runnable[:start]:
            if results.errors(group.name, row.label):
                continue  # it would fail again
            program = programs[row.program]
            program.renew()
            command = program.command() + [group.command] + arguments(row, suite, quick)
            timeout_s = QUICK_TIMEOUT_S if quick else TIMEOUT_S
            results.add(group, row, harness.run_once(command, timeout_s, program.served_seconds))


def run_suite(name, suite, options):
    programs = suite.programs(options.ours)
    pattern = re.compile(options.only or "")
    groups = [group for group in suite.GROUPS.values() if pattern.search(group.name)]
    if not groups:
        sys.exit(f"no group of {name} matches {options.only!r}; there are: {' '.join(suite.GROUPS)}")
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    wanted = sorted({row.program for group in groups for row in group.rows})
    BUILD.mkdir(parents=True, exist_ok=True)
    os.chdir(BUILD)  # where programs put their files
    begun = {"date": report.now(), "commit": harness.commit()}  # before anything can change them
    results = Results()
    try:
        skipped = prepare(programs, wanted, options.quick)
        for group in groups:
            run_group(group, suite, programs, skipped, results, rounds, options.quick)
    finally:
        for key in wanted:
            programs[key].stop()
    facts = {
        "suite": name, **begun, "machine": harness.machine(), "quick": options.quick or rounds < ROUNDS_MIN,
        "rounds": rounds, "skipped": skipped,
        "versions": {key: programs[key].version() for key in wanted if key not in skipped},
    }
    targets = [target for target in suite.TARGETS if target.group in {group.name for group in groups}]
    text = report.markdown(facts, results, groups, targets)
    print(text)
    # A quick or partial run must not overwrite the figures of a whole one.
    file = name + ("-quick" if options.quick else "") + ("-only" if options.only else "")
    (BUILD / f"{file}.md").write_text(text)
    document = report.document(facts, results, groups, targets)
    (BUILD / f"{file}.json").write_text(json.dumps(document, indent=1) + "\n")
    say(f"written: {BUILD.relative_to(harness.ROOT)}/{file}.json and {file}.md")
    return not any(run.error for runs in results.runs.values() for run in runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("suite", nargs="?", choices=sorted(SUITES), help="default: all")
    parser.add_argument("--quick", action="store_true", help="make a smoke run in under a minute: small sizes, no results")
    parser.add_argument("--only", metavar="PATTERN", help="run only the groups whose name matches this regular expression")
    parser.add_argument("--rounds", type=int, metavar="N", help=f"default {ROUNDS}; below {ROUNDS_MIN} no results")
    parser.add_argument("--ours", metavar="PATH", help="use this program instead of the one of the release preset")
    options = parser.parse_args()
    if options.ours:
        options.ours = os.path.abspath(options.ours)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that child processes are ended
    chosen = {options.suite: SUITES[options.suite]} if options.suite else SUITES
    clean = [run_suite(name, suite, options) for name, suite in chosen.items()]
    sys.exit(0 if all(clean) else 1)


if __name__ == "__main__":
    main()
