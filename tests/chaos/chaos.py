#!/usr/bin/env python3
"""Chaos test of a store: several processes carry runs under exact limits and in sessions while they, and PostgreSQL, are killed and
frozen at random; then an auditor that is independent of the store's code reads its event log.

    chaos.py STORE_NODE [--store sqlite|postgres] [--runs N] [--nodes N] [--seconds N] [--seed N] [--break VARIANT] [--keep]

Checks: every accepted run ends exactly once and has no event afterwards · no limit is exceeded, by the events and by samples of the rows ·
runs of a session never overlap and keep their order · every end was settled by the owner of the attempt, under its fence, or the owner's lease
was over · events have no gaps, and the feed has each once · a run marked unsafe is never started again unless a person decides so · every
answer of the store matches what happened.
"""
import argparse
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

from auditor import Auditor, Journal
from ground import Postgres, Sqlite


class Fleet:
    """The node processes; a dead one is replaced. Keeps their output."""

    def __init__(self, program, ground, chance):
        self.program, self.ground, self.random = program, ground, chance
        self.output = tempfile.TemporaryFile()
        self.nodes, self.helpers, self.frozen = [], [], {}
        self.kills = self.freezes = 0

    def spawn(self, *words):
        output = os.dup(self.output.fileno())
        os.set_inheritable(output, True)
        process = subprocess.Popen(["setpriv", "--pdeathsig=KILL", self.program, self.ground.address, *map(str, words)], stdout=output, stderr=subprocess.PIPE, text=True)
        os.close(output)
        return process

    def seed(self):
        return self.random.randrange(1 << 30)

    def start_node(self):
        self.nodes.append(self.spawn("work", self.seed()))

    def start_helper(self, *words):
        self.helpers.append(self.spawn(*words, self.seed()))
        return self.helpers[-1]

    def hurt(self):
        """Kills a process, freezes it for a moment, or hurts the store itself."""
        now = time.monotonic()
        self.thaw_in_time()
        if self.ground.hurt(self.random):
            return
        alive = [node for node in self.nodes if node.poll() is None and node not in self.frozen]
        if not alive:
            return
        victim = self.random.choice(alive)
        if self.random.random() < 0.6:
            victim.kill()
            victim.wait()
            self.nodes.remove(victim)
            self.kills += 1
            self.start_node()
        elif len(self.frozen) < max(1, len(self.nodes) // 2):
            victim.send_signal(signal.SIGSTOP)
            self.frozen[victim] = now + self.random.uniform(*self.ground.freeze_s)
            self.freezes += 1

    def thaw_in_time(self):
        now = time.monotonic()
        for node, until in list(self.frozen.items()):
            if now >= until:
                self.thaw(node)

    def thaw(self, node):
        self.frozen.pop(node)
        if node.poll() is None:
            node.send_signal(signal.SIGCONT)

    def left(self):
        """The number of runs that have not ended."""
        asked = subprocess.Popen([self.program, self.ground.address, "left"], stdout=subprocess.PIPE, text=True)
        while asked.poll() is None:  # it waits for a frozen process that holds the write lock
            self.thaw_in_time()
            self.ground.watch()
            time.sleep(0.01)
        return int(asked.communicate()[0])

    def finish(self, seconds):
        """Waits for the end of all runs without further faults. Returns what prevents it."""
        for node in list(self.frozen):
            self.thaw(node)
        end = time.monotonic() + seconds
        while self.left() > 0:
            self.ground.watch()
            if time.monotonic() > end:
                return [f"{self.left()} runs have not ended after {seconds} s without faults"]
            time.sleep(0.1)
        findings = []
        for process in self.nodes + self.helpers:
            process.terminate()
        for process in self.nodes + self.helpers:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                findings.append("a process does not end on SIGTERM")
                continue
            if process.returncode != 0:
                findings.append(f"a process ended with {process.returncode}: {process.stderr.read().strip()}")
        return findings

    def journal(self):
        journal = Journal()
        self.output.seek(0)
        journal.read(self.output.read().decode())
        return journal

    def close(self):
        for process in self.nodes + self.helpers:
            if process.poll() is None:
                process.kill()
                process.send_signal(signal.SIGCONT)
                process.wait()


def lines(program, ground, mode):
    done = subprocess.run([program, ground.address, mode], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def events_of(program, ground):
    """The feed; on PostgreSQL it is complete when no older transaction is under way."""
    end = time.monotonic() + 20
    while True:
        events = lines(program, ground, "events")
        if ground.name != "postgres" or len(events) == ground.events_of_table():
            return events, []
        if time.monotonic() > end:
            return events, [f"the feed has {len(events)} events, the table {ground.events_of_table()}"]
        time.sleep(0.2)


def torture(options, ground):
    program, chance = options.program, random.Random(options.seed)
    subprocess.run([program, ground.address, "define"], check=True)
    if options.break_with:
        ground.break_it(options.break_with)
    fleet = Fleet(program, ground, chance)
    try:
        submitters = [fleet.start_helper("submit", options.runs // 2) for _ in range(2)]
        fleet.start_helper("meddle")
        for _ in range(options.nodes):
            fleet.start_node()
        begin = time.monotonic()
        while time.monotonic() < begin + options.seconds:
            time.sleep(chance.uniform(*options.pause))
            fleet.hurt()
            ground.watch()
            if all(submitter.poll() is not None for submitter in submitters) and chance.random() < 0.1 and fleet.left() == 0:
                break
        for submitter in submitters:
            submitter.terminate()
        for submitter in submitters:
            submitter.wait(60)
        trouble = fleet.finish(options.patience)
        seconds = time.monotonic() - begin
    finally:
        fleet.close()
    journal = fleet.journal()
    events, gaps = events_of(program, ground)
    auditor = Auditor(lines(program, ground, "runs"), events, ground.moments(events), ground.lease_ms(), journal)
    findings = trouble + gaps + ground.trouble() + auditor.findings
    lost = sum(attempt.cause == "lost" for attempt in auditor.attempts.values())
    print(f"{ground.name}: {len(auditor.runs)} runs, {len(auditor.attempts)} claims, {lost} lost, {journal.stale} calls of zombies refused, "
          f"{len(events)} events; {fleet.kills} nodes killed, {fleet.freezes} frozen, the server killed {ground.kills} times; "
          f"{dict(sorted(auditor.states.items(), key=lambda item: str(item[0])))}; {seconds:.0f} s; {len(findings)} findings")
    return findings


def by_kind(findings):
    """Groups findings that differ only in ids and numbers."""
    kinds = {}
    for finding in findings:
        kinds.setdefault(re.sub(r"\b[a-z2-7]{12}\b|\d+", "", finding), []).append(finding)
    return kinds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10, help="inject faults for so long, or until all runs have ended")
    parser.add_argument("--pause", type=float, nargs=2, default=(0.02, 0.2), help="wait between two faults, in seconds: least and most")
    parser.add_argument("--patience", type=float, default=120, help="wait for the remaining runs after the last fault, in seconds")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--break", dest="break_with", help="use a known-bad variant of the SQL; then there must be findings")
    parser.add_argument("--keep", action="store_true", help="keep the store")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(f"seed {options.seed}", flush=True)
    ground = Postgres() if options.store == "postgres" else Sqlite()
    try:
        findings = torture(options, ground)
    finally:
        ground.close(options.keep)
    for examples in by_kind(findings).values():
        print(f"  {len(examples)} × {examples[0]}")
    if options.keep:
        print(f"kept in {ground.folder}")
    if options.break_with:
        return 0 if findings else 1
    if findings:
        print(f"again: {sys.argv[0]} {options.program} --store {options.store} --seed {options.seed} --runs {options.runs} --seconds {options.seconds}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
