"""Random changes of a fleet over its API, and what is true by SQL: for tests that compare what a daemon or a page shows with the store."""
import contextlib
import http.client
import random
import sqlite3
import threading

STATES = ("queued", "running", "parked", "in_doubt", "succeeded", "failed", "cancelled", "expired")
LAST_STATE = """SELECT e.state, count(*) FROM event e JOIN (SELECT run_id, max(event_id) AS last FROM event
  WHERE run_id IS NOT NULL AND state IS NOT NULL AND event_id <= ? GROUP BY run_id) x ON x.last = e.event_id GROUP BY e.state"""


class Truth:
    """The store's own file, read by SQL. A cursor of SQLite's feed is the number of the last event."""

    def __init__(self, project):
        self.path = f"{project}/.git/stint/stint.db"

    def ask(self, sql, *values):
        with contextlib.closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=30)) as connection:
            return connection.execute(sql, values).fetchall()

    def counts_at(self, cursor):
        return {state: 0 for state in STATES} | dict(self.ask(LAST_STATE, int(cursor)))

    def transitions(self):
        return self.ask("SELECT count(*) FROM event WHERE run_id IS NOT NULL AND state IS NOT NULL")[0][0]

    def events_after(self, cursor):
        return [str(number) for number, in self.ask("SELECT event_id FROM event WHERE event_id > ? ORDER BY event_id", int(cursor))]


def define_agents(case):
    """The agents whose runs a Churn submits: one that waits until it is cancelled, and one that ends at once."""
    case.agent("held", 'command: [sleep, "600"]\nmax_concurrency: 2\n')
    case.agent("quick", 'command: ["true"]\n')


class Churn:
    """Changes runs and limits at random until the store has seen so many transitions. `daemon` may be replaced meanwhile; failed requests
    do not count: a daemon that was killed refuses them."""

    def __init__(self, daemon, truth, transitions, seed=1):
        self.daemon, self.truth, self.wanted = daemon, truth, transitions
        self.random = random.Random(seed)
        self.runs = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.go, daemon=True)

    def go(self):
        while not self.over.is_set():
            for _ in range(25):
                with contextlib.suppress(OSError, http.client.HTTPException, AssertionError):
                    self.step()
            with contextlib.suppress(sqlite3.Error):  # the test has ended, and its folder is gone
                if self.truth.transitions() < self.wanted:
                    continue
            self.over.set()

    def step(self):
        dice = self.random.random()
        if dice < 0.5 or not self.runs:
            more = {"session": f"s{self.random.randrange(5)}"} if self.random.random() < 0.4 else {}
            if self.random.random() < 0.4:
                more["delay_ms"] = self.random.choice((300, 60_000))
            self.runs.append(self.daemon.submit("held" if self.random.random() < 0.7 else "quick", **more))
        elif dice < 0.96:
            self.daemon.ask("POST", f"/v1/runs/{self.runs.pop(self.random.randrange(len(self.runs)))}/cancel")
        elif dice < 0.98:
            self.daemon.ask("POST", "/v1/limits/agent%3Aheld/pause", {})
        else:
            self.daemon.ask("POST", "/v1/limits/agent%3Aheld/resume")
