#!/usr/bin/env python3
"""Tortures a store: several processes carry runs under exact limits and in sessions while they are killed and frozen at random;
then an auditor that knows nothing of the store reads its event log.

    chaos.py STORE_WORKER [--runs N] [--workers N] [--seconds N] [--seed N] [--keep]

What it checks: everything accepted ends, once, and nothing happens to it afterwards · no limit is exceeded at any event · runs of a session
never overlap and keep their order · every end carries the fence of the claim before it, and no fence is given twice · events have no gaps, and the
feed has each once · what was marked unsafe is never started again.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LIMITS = {"a0": {"one": 1}, "a1": {"two": 1}, "a2": {"five": 1}, "a3": {"five": 2, "two": 1}, "a4": {}}
CAPACITY = {"one": 1, "two": 2, "five": 5}
ENDS = {"succeeded", "failed", "cancelled", "expired"}
WORK_MS = 600_000  # a worker ends by itself long before


class Fleet:
    """The worker processes; whoever dies is replaced."""

    def __init__(self, program, store, seed):
        self.program, self.store = program, store
        self.random = random.Random(seed)
        self.workers, self.frozen = [], {}
        self.kills = self.freezes = 0

    def start(self):
        words = [self.program, self.store, "work", str(WORK_MS), str(self.random.randrange(1 << 30))]
        self.workers.append(subprocess.Popen(words, stderr=subprocess.PIPE, text=True))

    def hurt(self):
        """One of them, now: dead, or frozen for a moment."""
        now = time.monotonic()
        for worker, until in list(self.frozen.items()):
            if now >= until:
                del self.frozen[worker]
                if worker.poll() is None:
                    worker.send_signal(signal.SIGCONT)
        alive = [worker for worker in self.workers if worker.poll() is None and worker not in self.frozen]
        if not alive:
            return
        victim = self.random.choice(alive)
        if self.random.random() < 0.7:
            victim.kill()
            victim.wait()
            self.workers.remove(victim)
            self.kills += 1
            self.start()
        elif not self.frozen:
            victim.send_signal(signal.SIGSTOP)
            self.frozen[victim] = now + self.random.uniform(0.05, 0.3)
            self.freezes += 1

    def thaw(self):
        for worker in self.frozen:
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
        self.frozen.clear()

    def finish(self, seconds):
        self.thaw()
        end = time.monotonic() + seconds
        for worker in self.workers:
            try:
                worker.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                return f"a worker still works after {seconds} s"
            if worker.returncode != 0:
                return f"a worker ended with {worker.returncode}: {worker.stderr.read().strip()}"
        return None

    def close(self):
        self.thaw()
        for worker in self.workers:
            worker.kill()
            worker.wait()


def lines(program, store, mode):
    done = subprocess.run([program, store, mode], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Auditor:
    """Replays the log, one event after the other."""

    def __init__(self, runs):
        self.runs = {run["id"]: run for run in runs}
        self.findings = []
        self.seq = collections.Counter()
        self.state, self.fence, self.unsafe = {}, collections.Counter(), set()
        self.held = collections.Counter()
        self.session = collections.defaultdict(list)  # unfinished runs, in order
        for run in sorted(runs, key=lambda run: run["number"]):
            if run["session"]:
                self.session[run["session"]].append(run["id"])
        self.claims = self.lost = 0

    def find(self, event, what):
        self.findings.append(f"{event['run']} seq {event['seq']} {event['cause']}: {what}")

    def replay(self, event):
        name = event["run"]
        if not name:
            return
        run = self.runs[name]
        self.seq[name] += 1
        if event["seq"] != self.seq[name]:
            self.find(event, f"seq {self.seq[name]} was next")
        if self.state.get(name) in ENDS:
            self.find(event, f"after its end as {self.state[name]}")
        if event["cause"] == "claimed":
            self.claim(event, run)
        elif self.state.get(name) == "running" and event["state"] != "running":
            self.release(event, run)
        if event["cause"] == "unsafe":
            self.unsafe.add(name)
        if event["cause"] == "safe":
            self.unsafe.discard(name)
        self.state[name] = event["state"]
        if event["state"] in ENDS and run["session"]:
            self.session[run["session"]].remove(name)

    def claim(self, event, run):
        self.claims += 1
        name = event["run"]
        if event["fence"] <= self.fence[name]:
            self.find(event, f"fence {event['fence']} was given before")
        self.fence[name] = event["fence"]
        if name in self.unsafe:
            self.find(event, "started again although nobody knows what it did")
        if run["session"] and self.session[run["session"]][0] != name:
            self.find(event, f"before {self.session[run['session']][0]} of its session has ended")
        for limit, weight in LIMITS[run["agent"]].items():
            self.held[limit] += weight
            if self.held[limit] > CAPACITY[limit]:
                self.find(event, f"{self.held[limit]} of {CAPACITY[limit]} {limit}")

    def release(self, event, run):
        self.lost += event["cause"] == "lost"
        if event["fence"] != self.fence[event["run"]]:
            self.find(event, f"under fence {event['fence']}, claimed with {self.fence[event['run']]}")
        for limit, weight in LIMITS[run["agent"]].items():
            self.held[limit] -= weight

    def conclude(self, accepted):
        for name in accepted:
            if name not in self.runs:
                self.findings.append(f"{name} was accepted and is not there")
            elif self.state.get(name) not in ENDS | {"in_doubt"}:
                behind = self.runs[name]["session"] and self.session[self.runs[name]["session"]][0] != name
                if not behind:  # a run in doubt holds its session: a person's turn
                    self.findings.append(f"{name} was accepted and is {self.state.get(name)}")
        for name, run in self.runs.items():
            if run["seq"] != self.seq[name]:
                self.findings.append(f"{name}: {run['seq']} events by its row, {self.seq[name]} in the feed")


def torture(options, store):
    program = options.program
    subprocess.run([program, store, "define"], check=True)
    half = options.runs // 2
    accepted = subprocess.run([program, store, "submit", str(half), str(options.seed)], check=True, capture_output=True, text=True).stdout.split()
    fleet = Fleet(program, store, options.seed)
    for _ in range(options.workers):
        fleet.start()
    late = subprocess.Popen([program, store, "submit", str(options.runs - half), str(options.seed + 1)], stdout=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            time.sleep(fleet.random.uniform(0.02, 0.2))
            fleet.hurt()
        accepted += late.communicate(timeout=60)[0].split()
        trouble = fleet.finish(options.patience)
    finally:
        late.kill()
        fleet.close()
    auditor = Auditor(lines(program, store, "runs"))
    for event in lines(program, store, "events"):
        auditor.replay(event)
    auditor.conclude(accepted)
    if trouble:
        auditor.findings.insert(0, trouble)
    states = collections.Counter(auditor.state.values())
    print(f"{len(accepted)} accepted, {auditor.claims} claims, {auditor.lost} lost; {fleet.kills} killed, {fleet.freezes} frozen; "
          f"{dict(sorted(states.items()))}; {len(auditor.findings)} findings")
    return auditor.findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--patience", type=float, default=120, help="for what is left when nobody is killed any more")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", action="store_true", help="leave the store behind")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="stint-chaos-")
    print(f"seed {options.seed}", flush=True)
    findings = torture(options, os.path.join(folder, "stint.db"))
    for finding in findings[:20]:
        print(f"  {finding}")
    if options.keep:
        print(f"kept in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    if findings:
        print(f"again: {sys.argv[0]} {options.program} --seed {options.seed} --runs {options.runs} --seconds {options.seconds}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
