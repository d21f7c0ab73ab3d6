#!/usr/bin/env python3
"""Several daemons on one PostgreSQL: they share the work, the caps and the rescue. `daemons_test.py STINT [CLASS…]`

`STINT_MANY_RUNS=5000` makes the rolling restart as long as it is meant to be by hand."""
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

import serve_test
from host_support import alive, read, wait_for, write
from namespace import Pair, possible, within

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../chaos"))
from ground import Postgres

RESCUE_S = 20
MANY = int(os.environ.get("STINT_MANY_RUNS", "600"))


class Wire:
    """The way of one daemon to the server, which can be cut: nothing goes through, and nobody is told."""

    namespace = None

    def __init__(self, path):
        self.path, self.held, self.pairs = path, False, []
        self.listener = self.listen()
        self.address = "{}:{}".format(*self.listener.getsockname())
        threading.Thread(target=self.accept, daemon=True).start()

    def listen(self):
        return socket.create_server(("127.0.0.1", 0))

    def listen_again(self, address):
        self.pairs = []
        self.listener = socket.create_server(address)
        threading.Thread(target=self.accept, daemon=True).start()
        return self.listener

    def set(self, up):
        self.held = not up

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.path)
                self.pairs.append((client, server))
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self.carry, args=(source, sink), daemon=True).start()

    def carry(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                while self.held:
                    time.sleep(0.05)
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.held = False
        self.listener.close()
        for pair in self.pairs:
            for end in pair:
                end.close()


class Link(Wire):
    """The same, for a daemon in a network namespace of its own: to cut it is to take the link down."""

    def listen(self):
        self.link = Pair()
        self.namespace = self.link.far
        return within(self.link.near, lambda: socket.create_server((Pair.NEAR, 0)))

    def set(self, up):
        self.link.set(up)

    def close(self):
        super().close()
        self.link.close()


class Case(serve_test.Case):
    settings = '[pool]\nworkers = 8\nautoscale = false\nqueue = 100000\n'
    way = Wire

    def setUp(self):
        super().setUp()
        self.server = Postgres()
        self.addCleanup(lambda: self.server.close(False))
        wait_for(lambda: subprocess.run(["psql", "-X", "-c", "select 1", self.server.address], capture_output=True).returncode == 0, 20, "the server")
        self.journal = f"{self.project}/journal"
        write(self.journal, "")
        work = f'echo "begin $STINT_RUN" >> {self.journal}; sleep $0; echo "end $STINT_RUN" >> {self.journal}'
        for name, more, on_crash in (("again", "", "rerun"), ("once", "", "doubt"), ("capped", "max_concurrency: 3\n", "rerun")):
            self.agent(name, f"{more}args:\n  - {{name: seconds, default: \"0.3\"}}\ncommand: [sh, -c, '{work}', \"{{{{seconds}}}}\"]\n", on_crash)

    def daemon(self):
        wire = self.way(f"{self.server.folder}/.s.PGSQL.5432")
        self.addCleanup(wire.close)
        d = self.serve(env={"STINT_STORE": f"postgres://postgres@{wire.address}/postgres"}, namespace=wire.namespace)
        d.wire = wire
        return d

    def alive_of(self, runs):
        """Ids of those that have a living process."""
        found = set()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                for entry in read(f"/proc/{pid}/environ", "rb").split(b"\0"):
                    if entry.startswith(b"STINT_RUN=") and alive(pid):
                        run = entry.decode().split("=")[1].split(",")[-1].split(":")[0]
                        if run in runs:
                            found.add(run)
        return found

    def begun(self):
        """How often each was begun."""
        counts = {}
        for line in read(self.journal).splitlines():
            word, mark = line.split()
            if word == "begin":
                run = mark.split(",")[-1].split(":")[0]
                counts[run] = counts.get(run, 0) + 1
        return counts


class Several(Case):
    way = Link if possible() else Wire

    def test_one_is_killed_one_is_frozen_one_is_cut_off(self):
        killed, frozen, cut = (self.daemon() for _ in range(3))
        kinds = {}
        for agent in ("again", "once", "capped"):
            for i in range(60):
                kinds[(killed, frozen, cut)[i % 3].submit(agent, args={"seconds": "0.5"})] = agent
        capped = {run for run, agent in kinds.items() if agent == "capped"}
        most, stop = [0], threading.Event()

        def watch():
            while not stop.is_set():
                most[0] = max(most[0], len(self.alive_of(capped)))
                time.sleep(0.02)

        watcher = threading.Thread(target=watch)
        watcher.start()
        self.addCleanup(watcher.join)
        self.addCleanup(stop.set)
        wait_for(lambda: len(self.begun()) > 10, 20, "work to be under way")
        lost = [run["id"] for run in cut.get("/v1/runs?state=running")["runs"]]
        killed.process.kill()
        killed.process.wait()
        since = time.monotonic()
        os.kill(frozen.process.pid, signal.SIGSTOP)
        self.addCleanup(lambda: os.kill(frozen.process.pid, signal.SIGCONT) if frozen.process.poll() is None else None)
        cut.wire.set(False)
        fresh = self.daemon()
        wait_for(lambda: not {state for run, state in fresh.states().items() if run in lost} & {"running"}
                 or all(fresh.run(run)["state"] != "running" or fresh.run(run)["fence"] > 1 for run in lost), RESCUE_S + 5, "their runs to be taken back")
        self.assertLess(time.monotonic() - since, RESCUE_S)
        time.sleep(2)
        os.kill(frozen.process.pid, signal.SIGCONT)
        cut.wire.set(True)
        ended = serve_test.END_STATES | {"in_doubt"}
        wait_for(lambda: set(fresh.states().values()) <= ended, 90, "all to end")
        stop.set()
        watcher.join()
        states, begun = fresh.states(), self.begun()
        self.assertEqual(set(states), set(kinds), "nothing is lost")
        self.assertLessEqual(most[0], 3, "never more at once than allowed, over all daemons")
        self.assertGreater(most[0], 1)
        for run, agent in kinds.items():
            if agent == "once":
                self.assertLessEqual(begun.get(run, 0), 1, "what may not be repeated is not")
                self.assertIn(states[run], ("succeeded", "in_doubt"))
            else:
                self.assertEqual(states[run], "succeeded", run)
        self.assertEqual(cut.run(next(iter(kinds)))["state"], states[next(iter(kinds))], "any of them answers for any run")
        self.assertEqual(cut.wait(cut.submit("again"))["state"], "succeeded", "who was cut off carries on")
        self.assertEqual(self.marked(), [])


class Unready(Case):
    def test_a_daemon_without_its_store_is_not_ready(self):
        d = self.daemon()
        self.assertEqual(d.ask("GET", "/readyz")[0], 200)
        address = d.wire.listener.getsockname()
        d.wire.close()
        status, body = wait_for(lambda: (lambda answer: answer if answer[0] == 503 else None)(d.ask("GET", "/readyz")[:2]), 20, "it to say so")
        self.assertNotIn("serving", body)
        wait_for(lambda: any("the store can't be used" in line for line in d.errors), 5, "a line in the log")
        d.wire.listener = d.wire.listen_again(address)
        wait_for(lambda: d.ask("GET", "/readyz")[0] == 200, 30, "it to be well again")
        wait_for(lambda: any("the store can be used again" in line for line in d.errors), 5, "a line in the log")


class Nested(Case):
    def test_a_run_within_a_run_does_not_wait_for_what_it_holds_in_the_cluster(self):
        self.agent("outer", f'max_concurrency: 1\ncommand: [sh, -c, "[ $0 = deep ] && exec echo deep; exec {serve_test.STINT} run outer deep -q", "{{{{depth}}}}"]\nargs:\n  - {{name: depth, default: top}}\n')
        daemons = [self.daemon(), self.daemon()]
        for i in range(10):
            ended = daemons[i % 2].wait(daemons[(i + 1) % 2].submit("outer"))
            self.assertEqual((ended["state"], ended["result"]), ("succeeded", "deep"), ended)


class Rolling(Case):
    def test_a_rolling_restart_loses_and_fails_none(self):
        write(f"{self.project}/lines", "".join("0.01\n" for _ in range(MANY)))
        daemons = [self.daemon(), self.daemon()]
        said = subprocess.run([serve_test.STINT, "submit", "again", "--each", "lines"], cwd=self.project, capture_output=True, text=True, timeout=300,
                              env={**self.b.env, "STINT_STORE": f"postgres://postgres@{daemons[0].wire.address}/postgres"})
        self.assertEqual(said.returncode, 0, said.stderr)
        for i in (0, 1, 0, 1):
            time.sleep(1)
            self.assertEqual(daemons[i].end(60), 0)
            daemons[i] = self.daemon()
        def left():
            pool = daemons[0].get("/v1/status")["runs"]
            return pool["queued"] + pool["running"] == 0
        wait_for(left, 30 + MANY / 10, "all to end")
        runs = daemons[0].get("/v1/status")["runs"]
        self.assertEqual({state: count for state, count in runs.items() if count}, {"succeeded": MANY})
        self.assertEqual(set(self.begun().values()), {1}, "and none was begun twice")


if __name__ == "__main__":
    serve_test.STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
