#!/usr/bin/env python3
"""Several daemons on one PostgreSQL: they share runs, limits and rescue. `daemons_test.py STINT [CLASS…]`

`STINT_MANY_RUNS=5000` gives the rolling restart its full length."""
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

import daemon_support
from host_support import alive, demand, read, wait_for, write
from namespace import Pair, possible, within

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../chaos"))
from ground import Postgres

RESCUE_S = 20
LEASE_S = 15
MANY = int(os.environ.get("STINT_MANY_RUNS", "400"))


class Wire:
    """A proxy between one daemon and the server, which can be cut: it drops all bytes and keeps the connections open."""

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
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)  # else the port stays in use until accept() returns in its thread
        self.listener.close()
        for pair in self.pairs:
            for end in pair:
                end.close()


class Link(Wire):
    """The same for a daemon in its own network namespace: cutting it takes the link down."""

    def listen(self):
        self.link = Pair()
        self.namespace = self.link.far
        return within(self.link.near, lambda: socket.create_server((Pair.NEAR, 0)))

    def set(self, up):
        self.link.set(up)

    def close(self):
        super().close()
        self.link.close()


class Case(daemon_support.Case):
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

    def attempts_alive(self, runs):
        """Attempts of these runs that have a living process, as `run:fence`."""
        found = set()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                for entry in read(f"/proc/{pid}/environ", "rb").split(b"\0"):
                    if entry.startswith(b"STINT_RUN=") and alive(pid):
                        mark = entry.decode().split("=")[1].split(",")[-1]
                        if mark.split(":")[0] in runs:
                            found.add(mark)
        return found

    def alive_of(self, runs):
        """Ids of those that have a living process."""
        return {mark.split(":")[0] for mark in self.attempts_alive(runs)}

    def begun(self):
        """How often each was started."""
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
            before = set()
            while not stop.is_set():
                now = self.attempts_alive(capped)
                most[0] = max(most[0], len(before & now))  # a look takes time: what two found was alive between them
                before = now
                time.sleep(0.02)

        watcher = threading.Thread(target=watch)
        watcher.start()
        self.addCleanup(watcher.join)
        self.addCleanup(stop.set)
        wait_for(lambda: len(self.begun()) > 10, 20, "runs in progress")
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
        ended = daemon_support.END_STATES | {"in_doubt"}
        wait_for(lambda: set(fresh.states().values()) <= ended, 90, "all to end")
        stop.set()
        watcher.join()
        states, begun = fresh.states(), self.begun()
        self.assertEqual(set(states), set(kinds), "no run is lost")
        self.assertLessEqual(most[0], 3, "never more at once than allowed, over all daemons")
        self.assertGreater(most[0], 1)
        for run, agent in kinds.items():
            if agent == "once":
                self.assertLessEqual(begun.get(run, 0), 1, "runs that may not be repeated are not")
                self.assertIn(states[run], ("succeeded", "in_doubt"))
            else:
                self.assertEqual(states[run], "succeeded", run)
        self.assertEqual(cut.run(next(iter(kinds)))["state"], states[next(iter(kinds))], "any daemon can show any run")
        self.assertEqual(cut.wait(cut.submit("again"))["state"], "succeeded", "the daemon that was cut off works again")
        self.assertEqual(self.marked(), [])


class Unready(Case):
    def test_a_daemon_without_its_store_is_not_ready(self):
        d = self.daemon()
        self.assertEqual(d.ask("GET", "/readyz")[0], 200)
        address = d.wire.listener.getsockname()
        d.wire.close()
        status, body = wait_for(lambda: (lambda answer: answer if answer[0] == 503 else None)(d.ask("GET", "/readyz")[:2]), 20, "the 503")
        self.assertNotIn("serving", body)
        wait_for(lambda: any("the store can't be used" in line for line in d.errors), 5, "a line in the log")
        d.wire.listener = d.wire.listen_again(address)
        wait_for(lambda: d.ask("GET", "/readyz")[0] == 200, 30, "readiness")
        wait_for(lambda: any("the store can be used again" in line for line in d.errors), 5, "a line in the log")


class Nested(Case):
    def test_a_nested_run_does_not_wait_for_cluster_permits_of_its_parent(self):
        self.agent("outer", f'max_concurrency: 1\ncommand: [sh, -c, "[ $0 = deep ] && exec echo deep; exec {daemon_support.STINT} run outer deep -q", "{{{{depth}}}}"]\nargs:\n  - {{name: depth, default: top}}\n')
        daemons = [self.daemon(), self.daemon()]
        for i in range(10):
            ended = daemons[i % 2].wait(daemons[(i + 1) % 2].submit("outer"))
            self.assertEqual((ended["state"], ended["result"]), ("succeeded", "deep"), ended)


    def test_a_run_does_not_get_the_password_of_the_store_and_asks_its_daemon(self):
        self.agent("inner", "command: [echo, deep]\n")
        self.agent("asker", f'command: [sh, -c, "env | grep -c geheim; {daemon_support.STINT} run inner -q; {daemon_support.STINT} store stats 2>&1"]\n')
        wire = self.way(f"{self.server.folder}/.s.PGSQL.5432")
        self.addCleanup(wire.close)
        d = self.serve(env={"STINT_STORE": f"postgres://postgres:geheim-geheim@{wire.address}/postgres", "PGPASSWORD": "geheim-geheim"})
        ended = d.wait(d.submit("asker"))
        secrets, deep, refused = ended["result"].splitlines() if ended["result"] else ended["error"].splitlines()
        self.assertEqual((secrets, deep), ("0", "deep"))
        self.assertIn("a run does not get the password of the store", refused)


class Orphans(Case):
    """A daemon and its wardens are killed: nothing on that host ends the agents, and the lease decides when another host starts the run again."""

    def orphan(self, d, name):
        run = d.submit(name)
        wait_for(lambda: f"begin {run}:1" in read(self.journal).splitlines(), 20, "it to work")
        killed = time.monotonic()
        self.kill_with_wardens(d)
        demand(self.alive_of({run}) == {run}, "no process to end: this test proves nothing")
        return run, killed

    def expect_ended_in_time(self, d, run, killed):
        wait_for(lambda: not self.alive_of({run}), LEASE_S, "it to be ended")
        took = time.monotonic() - killed
        seen = d.run(run)
        demand(took < LEASE_S, f"ended after {took:.1f} s: another host could have started it by then")
        self.assertIn((seen["state"], seen["fence"]), {("running", 1)} if took < LEASE_S - 2 else {("running", 1), ("queued", 1), ("running", 2)})

    def test_the_next_daemon_ends_them_before_their_lease_expires(self):
        self.agent("stubborn", f"command: [sh, -c, 'trap \"\" TERM; echo \"begin $STINT_RUN\" >> {self.journal}; while :; do sleep 1; done']\n")
        run, killed = self.orphan(self.daemon(), "stubborn")
        self.expect_ended_in_time(self.daemon(), run, killed)

    def test_another_daemon_of_the_host_ends_them_before_their_lease_expires(self):
        first = self.daemon()
        run = first.submit("again", args={"seconds": "300"})
        wait_for(lambda: f"begin {run}:1" in read(self.journal).splitlines(), 20, "it to work")
        second = self.daemon()
        killed = time.monotonic()
        self.kill_with_wardens(first)
        self.expect_ended_in_time(second, run, killed)


class Rolling(Case):
    settings = Case.settings + 'drain = "1s"\n'

    def test_a_rolling_restart_loses_and_fails_none(self):
        write(f"{self.project}/lines", "".join("0.01\n" for _ in range(MANY)))
        daemons = [self.daemon(), self.daemon()]
        said = subprocess.run([daemon_support.STINT, "submit", "again", "--each", "lines"], cwd=self.project, capture_output=True, text=True, timeout=300,
                              env={**self.b.env, "STINT_STORE": f"postgres://postgres@{daemons[0].wire.address}/postgres"})
        self.assertEqual(said.returncode, 0, said.stderr)
        outlast = []
        for i in (0, 1, 0, 1):
            # They take longer than the drain allows: what one daemon hands back, the other starts again.
            outlast += [daemons[0].submit("again", args={"seconds": "2.5"}, priority=1) for _ in range(4)]
            wait_for(lambda: set(outlast) & self.alive_of(outlast), 20, "one that outlasts the drain")
            time.sleep(0.5)
            self.assertEqual(daemons[i].end(60), 0)
            daemons[i] = self.daemon()
        def left():
            pool = daemons[0].get("/v1/status")["runs"]
            return pool["queued"] + pool["running"] == 0
        wait_for(left, 30 + MANY / 10, "all to end")
        runs = daemons[0].get("/v1/status")["runs"]
        self.assertEqual({state: count for state, count in runs.items() if count}, {"succeeded": MANY + len(outlast)})
        begun, handed_back = self.begun(), 0
        for run in [run for run, times in begun.items() if times > 1] + outlast:
            causes = [event["cause"] for event in daemons[0].get(f"/v1/runs/{run}/events")["events"]]
            self.assertEqual(begun[run], 1 + causes.count("hand_back"), "started again only if it was handed back")
            self.assertNotIn("lost", causes)
            self.assertEqual(daemons[0].run(run)["attempt"], 1, "which uses no attempt")
            handed_back += causes.count("hand_back")
        self.assertGreater(handed_back, 0)


class Refused(Case):
    REFUSE = """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this text'; END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON stint.run_result FOR EACH ROW WHEN (new.body LIKE '%poison%') EXECUTE FUNCTION refuse()"""

    def test_a_result_that_the_server_refuses_ends_its_run_and_frees_its_limit(self):
        self.agent("says", "max_concurrency: 1\nargs:\n  - {name: what, required: true}\ncommand: [echo, \"{{what}}\"]\n")
        d = self.daemon()
        subprocess.run(["psql", "-Xq", "-c", self.REFUSE, self.server.address], check=True)
        run = d.wait(d.submit("says", args={"what": "poison"}))
        self.assertEqual(run["state"], "failed")
        self.assertIn("the store refused its result", run["error"])
        self.assertIn("not this text", run["error"])
        self.assertTrue(any("settlement refused" in line for line in d.errors))
        self.assertEqual(d.ask("GET", "/readyz")[0], 200, "one refused text does not make the store unavailable")
        self.assertEqual(d.wait(d.submit("says", args={"what": "hello"}))["result"], "hello", "the limit is free")
        self.assertEqual(d.end(), 0)


class Limits(Case):
    settings = Case.settings + '[limits]\ngpu = 4\n"account:anthropic" = 3\n'

    def carry(self, *words):
        """`stint run`, which carries the run itself."""
        env = {**self.b.env, "STINT_STORE": self.server.address.replace("host=", "postgres:///postgres?user=postgres&host=").split(" ")[0]}
        process = subprocess.Popen([daemon_support.STINT, "run", *words], cwd=self.project, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(lambda: process.kill() if process.poll() is None else None)
        return process

    def commits(self):
        return int(subprocess.run(["psql", "-XAt", "-c", "select xact_commit from pg_stat_database where datname = 'postgres'", self.server.address], capture_output=True, text=True, check=True).stdout)

    def test_a_run_that_waits_for_a_limit_polls_rarely_and_starts_at_once(self):
        write(f"{self.project}/stint.toml", self.settings + "host = 8\n")  # with permits of the host in hand
        self.stint("trust")
        self.agent("alone", "max_concurrency: 1\nargs:\n  - {name: seconds, default: \"0\"}\ncommand: [sleep, \"{{seconds}}\"]\n")
        first = self.carry("alone", "7")
        wait_for(self.marked, 20, "the first to run")
        second = self.carry("alone")
        time.sleep(2)  # until it waits
        before, since = self.commits(), time.monotonic()
        cpu = sum(map(int, read(f"/proc/{second.pid}/stat").rpartition(")")[2].split()[11:13]))
        time.sleep(2)
        a_second = (self.commits() - before) / (time.monotonic() - since)
        used = sum(map(int, read(f"/proc/{second.pid}/stat").rpartition(")")[2].split()[11:13])) - cpu
        self.assertLess(a_second, 60, "transactions a second, of both")
        self.assertLess(used, 50, "hundredths of a second of the processor, in two seconds")
        self.assertEqual(first.wait(30), 0)
        self.assertEqual(second.wait(5), 0)

    def test_a_heavy_run_is_served_in_a_crowd_of_light_ones(self):
        self.agent("light", "limits: [gpu]\ncommand: [sleep, \"0.4\"]\n")
        self.agent("heavy", "limits: [{name: gpu, weight: 3}]\ncommand: [\"true\"]\n")
        d = self.daemon()
        light = [d.submit("light") for _ in range(200)]
        wait_for(lambda: self.marked(), 20, "the crowd")
        heavy = d.submit("heavy")
        wait_for(lambda: d.run(heavy)["state"] == "succeeded", 10, "the heavy one to be served")
        self.assertIn("queued", {d.run(run)["state"] for run in light[-5:]}, "the crowd was there all the time")

    def capacity(self, d, name):
        return next(limit for limit in d.get("/v1/limits")["limits"] if limit["name"] == name).get("capacity")

    def reload(self, d):
        said = len([line for line in d.errors if "reloaded" in line])
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: len([line for line in d.errors if "reloaded" in line]) > said, 10, "the reload")

    def test_manual_sizes_stay_and_sizes_removed_from_files_go(self):
        self.agent("uses", "limits: [\"account:anthropic\"]\ncommand: [\"true\"]\n")
        file = f"{self.project}/.stint/agents/capped.md"
        text = read(file)
        d = self.daemon()
        self.assertEqual((self.capacity(d, "agent:capped"), self.capacity(d, "account:anthropic")), (3, 3))
        self.assertEqual(d.ask("PUT", "/v1/limits/agent:capped", {"capacity": 2})[0], 200)
        self.reload(d)
        self.assertEqual(self.capacity(d, "agent:capped"), 2, "its file is unchanged")
        d.end()
        d = self.daemon()
        self.assertEqual(self.capacity(d, "agent:capped"), 2)
        write(file, text.replace("max_concurrency: 3\n", "max_concurrency: 4\n"))
        self.reload(d)
        self.assertEqual(self.capacity(d, "agent:capped"), 4)
        write(file, text.replace("max_concurrency: 3\n", ""))
        self.reload(d)
        self.assertIsNone(self.capacity(d, "agent:capped"), "removed, by a reload")
        d.end()
        write(f"{self.project}/stint.toml", Case.settings)
        self.agent("uses", "command: [\"true\"]\n")
        d = self.daemon()
        self.assertIsNone(self.capacity(d, "account:anthropic"), "removed, by a start")


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
