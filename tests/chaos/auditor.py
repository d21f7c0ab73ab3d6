"""Compares the events of a store with the answers that its users got, and reports violations. Independent of the store's code."""
import bisect
import collections

LIMITS = {"a0": {"one": 1}, "a1": {"two": 1}, "a2": {"five": 1}, "a3": {"five": 2, "two": 1}, "a4": {}}
CAPACITY = {"one": 1, "two": 2, "five": 5}
ENDS = {"succeeded", "failed", "cancelled", "expired"}
BY_OWNER = {"succeeded", "failed", "retry", "hand_back", "park", "cancelled"}  # ends of an attempt that its owner settled


class Journal:
    """The answers that the processes got."""

    def __init__(self):
        self.accepted, self.claimed, self.marked, self.settled = [], [], [], []
        self.beats = collections.defaultdict(list)  # of a node: when it sent each heartbeat, in ms
        self.stale = 0

    def read(self, text):
        for line in text.split("\n")[:-1]:
            word, *rest = line.split()
            if word == "accepted":
                self.accepted.append(rest[0])
            elif word == "beat":
                self.beats[int(rest[0])].append(int(rest[1]))
            elif word == "stale":
                self.stale += 1
            else:
                key = (rest[1], int(rest[2]))  # run and fence
                {"claimed": self.claimed, "marked": self.marked, "settled": self.settled}[word].append((key, int(rest[0]), *rest[3:]))


class Attempt:
    """An attempt, from its claim to its end."""

    def __init__(self, event, moment):
        self.run, self.fence, self.node, self.begin = event["run"], event["fence"], event["node"], moment
        self.end = self.state = self.cause = None
        self.unsafe = False


class Auditor:
    def __init__(self, runs, events, moments, lease_ms, journal):
        self.runs = {run["id"]: run for run in runs}
        self.journal, self.lease_ms = journal, lease_ms
        self.findings, self.attempts, self.ended = [], {}, {}
        self.states = collections.Counter()
        of_run = collections.defaultdict(list)
        for event, moment in zip(events, moments):
            if event["run"]:
                of_run[event["run"]].append((event["seq"], moment, event))
        for name in self.runs:
            self.replay(name, sorted(of_run.pop(name, []), key=lambda entry: entry[0]))
        for name in of_run:
            self.findings.append(f"{name} has events but is not a run")
        self.check_limits()
        self.check_sessions()
        self.check_journal()

    def find(self, event, what):
        self.findings.append(f"{event['run']} seq {event['seq']} {event['cause']}: {what}")

    def replay(self, name, entries):
        """One run: no gap, one end, each attempt under its own fence and ended by its owner or lost."""
        attempt, state, fence, unsafe = None, None, 0, False
        for number, (seq, moment, event) in enumerate(entries, 1):
            if seq != number:
                self.find(event, f"expected seq {number}")
            if state in ENDS:
                self.find(event, f"event after the end as {state}")
            if event["cause"] == "claimed":
                if state != "queued":
                    self.find(event, f"claimed while {state}")
                if event["fence"] != fence + 1:
                    self.find(event, f"fence {event['fence']} after {fence}")
                if unsafe:
                    self.find(event, "started again although its outcome is unknown")
                fence, attempt = event["fence"], Attempt(event, moment)
                self.attempts[name, fence] = attempt
            elif attempt and event["state"] != "running":
                self.end_attempt(attempt, event, moment)
                attempt = None
            unsafe = {"unsafe": True, "safe": False, "resolved_rerun": False}.get(event["cause"], unsafe)
            if event["cause"] == "unsafe" and attempt:
                attempt.unsafe = True
            state = event["state"]
            if state in ENDS:
                self.ended[name] = moment
        self.states[state] += 1
        if state not in ENDS:
            self.findings.append(f"{name} did not end: {state}")
        if self.runs[name]["seq"] != len(entries):
            self.findings.append(f"{name}: {self.runs[name]['seq']} events by its row, {len(entries)} in the feed")

    def end_attempt(self, attempt, event, moment):
        attempt.end, attempt.state, attempt.cause = moment, event["state"], event["cause"]
        if (event["fence"], event["node"]) != (attempt.fence, attempt.node):
            self.find(event, f"by {event['node']} under fence {event['fence']}, claimed by {attempt.node} with {attempt.fence}")
        if event["cause"] in BY_OWNER and event["error"] != f"{attempt.node}:{attempt.fence}":
            self.find(event, f"a settlement of {event['error']} was accepted for {attempt.node}:{attempt.fence}")
        if event["cause"] == "lost" and self.lease_ms:
            beats = self.journal.beats[attempt.node]
            at = bisect.bisect_right(beats, event["at"])
            if at > 0 and event["at"] < beats[at - 1] + self.lease_ms:
                self.find(event, f"taken {event['at'] - beats[at - 1]} ms after a heartbeat, with a lease of {self.lease_ms}")

    def check_limits(self):
        """At equal times, ends are counted before beginnings."""
        changes = collections.defaultdict(list)
        for attempt in self.attempts.values():
            if attempt.end is None or attempt.end > attempt.begin:
                for limit, weight in LIMITS[self.runs[attempt.run]["agent"]].items():
                    changes[limit].append((attempt.begin, 1, weight, attempt.run))
                    if attempt.end is not None:
                        changes[limit].append((attempt.end, 0, -weight, attempt.run))
        for limit, steps in changes.items():
            held = 0
            for _, begins, units, run in sorted(steps):
                held += units
                if begins and held > CAPACITY[limit]:
                    self.findings.append(f"{run}: {held} of {CAPACITY[limit]} {limit}")

    def check_sessions(self):
        before = {}
        first = {}
        for attempt in self.attempts.values():
            first[attempt.run] = min(first.get(attempt.run, attempt.begin), attempt.begin)
        for run in sorted(self.runs.values(), key=lambda run: run["number"]):
            if not run["session"]:
                continue
            last = before.get(run["session"])
            if run["id"] in first and last is not None and first[run["id"]] < last[0]:
                self.findings.append(f"{run['id']} began before {last[1]} of its session had ended")
            end = self.ended.get(run["id"], float("inf"))
            if last is None or end >= last[0]:
                before[run["session"]] = (end, run["id"])

    def check_journal(self):
        """Every answer matches the events."""
        for name in self.journal.accepted:
            if name not in self.runs:
                self.findings.append(f"{name} was accepted but is missing")
        for key, node in self.journal.claimed:
            if key not in self.attempts or self.attempts[key].node != node:
                self.findings.append(f"{key} was claimed by {node}, but the log has no such claim")
        for key, node in self.journal.marked:
            if key not in self.attempts or not self.attempts[key].unsafe:
                self.findings.append(f"{key} was marked by {node}, but the log has no such mark")
        for key, node, state in self.journal.settled:
            attempt = self.attempts.get(key)
            if attempt is None or attempt.node != node or attempt.state != state or attempt.cause == "lost":
                self.findings.append(f"{key} was settled by {node} as {state}, but the log has another end")
