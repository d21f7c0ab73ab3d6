#!/usr/bin/env python3
"""`stint serve` with real processes: drain, reload, death and rescue. `serve_end_test.py STINT [CLASS…]`"""
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import unittest

import daemon_support
from host_support import read, wait_for, write


class Drain(daemon_support.Case):
    settings = "[pool]\nworkers = 6\nautoscale = false\ndrain = \"3s\"\n"

    def test_a_drain_finishes_running_runs_and_hands_back_the_rest(self):
        self.agent("careful", 'command: [sleep, "60"]\n', on_crash="doubt")
        d = self.serve()
        short, long, doubtful = d.submit("slow", args={"seconds": "1.5"}), d.submit("slow"), d.submit("careful")
        wait_for(lambda: all(d.run(run)["state"] == "running" for run in (short, long, doubtful)), 10, "all to run")
        d.process.send_signal(signal.SIGTERM)
        wait_for(lambda: d.ask("GET", "/readyz")[0] == 503, 5, "the 503")
        status, body, headers = d.ask("POST", "/v1/runs", {"agent": "quick"})
        self.assertEqual((status, "Retry-After" in headers, "draining" in body["detail"]), (503, True, True))
        self.assertEqual(d.process.wait(20), 0)
        d.reader.join(5)
        self.assertRegex("".join(d.errors), "drained seconds=[0-9.]+ ended=1 handed_back=1 in_doubt=1")
        self.assertEqual(self.marked(), [])
        self.assertEqual(os.listdir(f"{self.project}/.git/stint/daemons"), [])
        d = self.serve()
        self.assertEqual(d.run(short)["state"], "succeeded")
        self.assertEqual(d.run(doubtful)["state"], "in_doubt")
        wait_for(lambda: d.run(long)["state"] == "running", 5, "it to continue")
        self.assertEqual(d.run(long)["attempt"], 1, "it used no attempt")
        self.assertEqual(d.ask("POST", f"/v1/runs/{doubtful}/resolve", {"as": "done"})[1]["state"], "succeeded")

    def test_a_waiting_client_gets_the_location_of_its_run_during_a_drain(self):
        write(f"{self.project}/stint.toml", 'default_agent = "asked"\n')
        self.agent("asked", 'command: [sleep, "60"]\nargs:\n  - {name: query}\n')
        d = self.serve()
        answers = {}
        asks = {"long": ("/v1/runs", {"agent": "slow", "wait": True}), "short": ("/api/agent/run?session_id=s&query=x", None)}
        threads = [threading.Thread(target=lambda name=name, ask=ask: answers.update({name: d.ask("POST", *ask)})) for name, ask in asks.items()]
        for thread in threads:
            thread.start()
        runs = wait_for(lambda: (lambda all_of: all_of if len(all_of) == 2 else None)(d.get("/v1/runs?state=running")["runs"]), 10, "both to run")
        ids = {"short" if run["agent"] == "asked" else "long": run["id"] for run in runs}
        followed = []
        threads.append(threading.Thread(target=lambda: followed.extend(d.events("/v1/events", seconds=30))))
        threads[-1].start()
        wait_for(lambda: 'stint_http_streams 1' in d.get("/metrics"), 5, "one subscriber")
        self.assertFalse(d.get("/v1/pool")["draining"])
        status, body, _ = d.ask("POST", "/v1/pool/drain", {"timeout_ms": 2000})
        since = time.monotonic()
        self.assertEqual((status, body["draining"]), (202, True))
        for again in (None, {"timeout_ms": 60000}):
            self.assertTrue(d.ask("POST", "/v1/pool/drain", again)[1]["draining"], "a repeated request does not hurry")
        self.assertTrue(d.get("/v1/pool")["draining"])
        for thread in threads:
            thread.join(20)
        self.assertGreater(time.monotonic() - since, 1.9)
        self.assertEqual(d.process.wait(20), 0)
        self.assertLess(time.monotonic() - since, 5, "the daemon does not wait for subscribers")
        for name, run in ids.items():
            status, body, headers = answers[name]
            self.assertEqual((status, headers["Location"], "Retry-After" in headers), (202, f"/v1/runs/{run}", True), answers)
            self.assertIn(run, body["detail" if name == "long" else "error"])
        self.assertEqual([event["event"] for event in followed][-2:], ["hand_back", "node_left"], "and a subscriber gets the complete stream")

    def test_a_drain_by_request_can_hurry(self):
        write(f"{self.project}/stint.toml", "[pool]\ndrain = \"60s\"\n")
        d = self.serve()
        run = d.submit("slow")
        wait_for(lambda: d.run(run)["state"] == "running", 10, "it to run")
        self.assertEqual(d.ask("POST", "/v1/pool/drain", {"hurry": 1})[0], 422)
        d.ask("POST", "/v1/pool/drain")
        time.sleep(0.5)
        self.assertIsNone(d.process.poll())
        self.stint("drain", "--hurry", "--wait")
        self.assertEqual(d.process.wait(10), 0)

    def test_a_second_signal_hurries_and_a_third_leaves_at_once(self):
        write(f"{self.project}/stint.toml", "[pool]\ndrain = \"60s\"\n")
        self.agent("stubborn", 'command: [sh, -c, "trap : TERM INT; while :; do sleep 1; done"]\n')
        for signals, most in ((2, 8), (3, 4)):
            d = self.serve()
            run = d.submit("slow" if signals == 2 else "stubborn")
            wait_for(lambda: d.run(run)["state"] == "running" and self.marked(), 10, "it to run")
            time.sleep(0.3)
            since = time.monotonic()
            for _ in range(signals):
                d.process.send_signal(signal.SIGINT)
                time.sleep(0.2)
            self.assertEqual(d.process.wait(20), 0 if signals == 2 else 130)
            self.assertLess(time.monotonic() - since, most)
            wait_for(lambda: not self.marked(), 8, "its processes to be gone")

    def test_agents_inherit_the_original_descriptor_limit(self):
        self.agent("limits", 'command: [sh, -c, "ulimit -Sn"]\n')
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        d = self.serve()
        self.assertEqual(d.wait(d.submit("limits"))["result"], "512")
        self.assertIn(f"{hard}", re.search("Max open files.*", read(f"/proc/{d.process.pid}/limits")).group().split()[3])

    def test_a_newly_trusted_checkout_needs_no_restart(self):
        d = daemon_support.Daemon(self.b, self.project)
        self.addCleanup(d.close)
        self.assertEqual(d.ask("POST", "/v1/runs", {"agent": "quick"})[0], 403)
        self.stint("trust")
        run = wait_for(lambda: d.ask("POST", "/v1/runs", {"agent": "quick"})[1].get("id"), 5, "the daemon to notice")
        self.assertEqual(d.wait(run)["state"], "succeeded")
        self.stint("trust", "--revoke")
        wait_for(lambda: d.ask("POST", "/v1/runs", {"agent": "quick"})[0] == 403, 5, "the daemon to notice")

    def test_a_reload_loses_nothing(self):
        d = self.serve()
        run = d.submit("slow", args={"seconds": "2"})
        wait_for(lambda: d.run(run)["state"] == "running", 10, "it to run")
        self.agent("fresh", 'command: [echo, new]\n')
        self.assertEqual(d.ask("POST", "/v1/runs", {"agent": "fresh"})[0], 404)
        write(f"{self.project}/.stint/agents/wrong.md", "---\nmax_concurrency: 0\n---\n")
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: d.ask("POST", "/v1/runs", {"agent": "fresh"})[0] == 201, 5, "the new agent")
        self.assertEqual(d.wait(run)["state"], "succeeded")
        write(f"{self.project}/stint.toml", "[pool\n")
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: any("not reloaded" in line for line in d.errors), 5, "the line in the log")
        self.assertEqual(d.wait(d.submit("quick"))["state"], "succeeded")


    def test_a_broken_agent_file_keeps_the_old_agent_and_a_deleted_one_finishes_its_runs(self):
        self.agent("held", 'max_concurrency: 1\ncommand: [sh, -c, "sleep ${0}; echo done", "{{seconds}}"]\nargs:\n  - {name: seconds, default: "0"}\n')
        d = self.serve()
        first, second = d.submit("held", args={"seconds": "2"}), d.submit("held")
        wait_for(lambda: d.run(first)["state"] == "running", 10, "it to run")
        os.remove(f"{self.project}/.stint/agents/held.md")
        write(f"{self.project}/.stint/agents/quick.md", "---\ndescription: quick\nmax_concurrency: 0\n---\n")
        for _ in range(2):
            d.errors.clear()
            d.process.send_signal(signal.SIGHUP)
            wait_for(lambda: any("reloaded" in line for line in d.errors), 5, "the reload")
            self.assertEqual(d.ask("POST", "/v1/runs", {"agent": "held"})[0], 404)
            self.assertNotIn("held", [agent["name"] for agent in d.get("/v1/agents")["agents"]])
            self.assertRegex("".join(d.errors), "agent file has errors: keeping the agent as it was agent=quick")
        self.assertEqual(d.wait(d.submit("quick", args={"what": "still"}))["result"], "said still")
        for run in (first, second):
            self.assertEqual((d.wait(run)["state"], d.run(run)["result"]), ("succeeded", "done"))

    def test_runs_of_an_agent_that_lost_its_trust_wait_with_a_reason(self):
        d = self.serve("--workers", "0")
        run = d.submit("quick")
        self.stint("trust", "--revoke")
        why = wait_for(lambda: [each["detail"] for each in d.get(f"/v1/runs/{run}/why")["reasons"] if each["reason"] == "agent"], 10, "the reason")
        self.assertIn("is not trusted", why[0])
        d.ask("PUT", "/v1/pool", {"workers": 1})
        time.sleep(1.5)
        self.assertEqual(d.run(run)["state"], "queued")
        self.assertEqual(d.end(), 0)
        os.remove(f"{self.project}/.stint/agents/quick.md")
        d = self.serve()
        self.assertIn({"reason": "agent"}, d.get(f"/v1/runs/{run}/why")["reasons"])
        self.assertIn("this daemon has no file for its agent", self.stint("why", run))
        self.agent("quick", "command: [echo, back]\n")
        d.process.send_signal(signal.SIGHUP)
        self.assertEqual(d.wait(run)["result"], "back")


class Deleted(daemon_support.Case):
    def test_a_deleted_checkout_is_named_and_not_recreated(self):
        self.agent("capped", "max_concurrency: 1\ncommand: [sleep, '60']\n")
        d = self.serve(env={"STINT_STORE": "memory"})
        os.rename(self.project, f"{self.b.home}/elsewhere")
        wait_for(lambda: d.get("/v1/status").get("shortage", {}).get("kind") == "checkout", 20, "it to be noticed")
        runs = [d.submit(agent) for agent in ("capped", "quick")]
        for run in runs:
            reasons = d.get(f"/v1/runs/{run}/why")["reasons"]
            self.assertIn({"reason": "shortage", "shortage": {"kind": "checkout", "path": os.path.realpath(self.project)}}, reasons)
        self.assertFalse(os.path.exists(self.project))
        os.rename(f"{self.b.home}/elsewhere", self.project)
        self.assertEqual(d.wait(runs[1])["state"], "succeeded", "when the checkout is back, they continue")


class Death(daemon_support.Case):
    settings = "[pool]\nworkers = 50\nautoscale = false\n"

    def test_fifty_runs_survive_the_death_of_their_daemon(self):
        """No agent process survives a second, and after the restart every run is in the state that `on_crash` demands."""
        self.agent("again", 'command: [sh, -c, "sleep 300 & setsid sleep 300 & wait"]\n')
        self.agent("doubtful", 'command: [sleep, "300"]\n', on_crash="doubt")
        d = self.serve()
        runs = {d.submit(agent): agent for agent in ("again", "doubtful") for _ in range(25)}
        wait_for(lambda: list(d.states().values()).count("running") == 50, 40, "all to run")
        wait_for(lambda: len(self.marked()) >= 25 * 3 + 25, 20, "all their processes")
        d.process.kill()
        since = time.monotonic()
        wait_for(lambda: not self.marked(), 10, "the last process to be gone")
        self.assertLess(time.monotonic() - since, 6 if "asan" in daemon_support.STINT else 1.5)
        d = self.serve("--workers", "0")
        wait_for(lambda: "running" not in d.states().values(), 5, "them to be taken back")
        for run, state in d.states().items():
            self.assertEqual(state, "queued" if runs[run] == "again" else "in_doubt")

    def test_a_kill_during_the_start_of_a_cli_does_not_park_the_run_in_doubt(self):
        """The id of the conversation was stored before the start: it has no messages yet, so the run starts over."""
        streams = pathlib.Path(__file__).resolve().parent.parent / "streams" / "claude"
        os.makedirs(f"{self.b.home}/bin")
        write(f"{self.b.home}/bin/claude", f"""#!{sys.executable}
import sys, time
with open("{self.b.home}/starts", "a") as file:
    file.write(" ".join(word for word in sys.argv if word.startswith(("--resume", "--session-id"))) + "\\n")
starts = len(open("{self.b.home}/starts").readlines())
while starts == 1:
    time.sleep(1)
print(open("{streams}/" + ("unknown_conversation" if starts == 2 else "success") + ".jsonl").read(), flush=True)
sys.exit(1 if starts == 2 else 0)
""")
        os.chmod(f"{self.b.home}/bin/claude", 0o755)
        self.b.env["PATH"] = f"{self.b.home}/bin:{os.environ['PATH']}"
        write(f"{self.project}/.stint/agents/asks.md", "---\ndescription: asks\ndriver: claude\n---\nDo it.\n")
        d = self.serve()
        run = d.submit("asks")

        def starts():
            return read(f"{self.b.home}/starts").splitlines() if os.path.exists(f"{self.b.home}/starts") else []
        wait_for(lambda: len(starts()) == 1, 20, "the CLI to start")
        d.process.kill()
        d.process.wait()
        d = self.serve()
        wait_for(lambda: d.run(run)["state"] not in ("queued", "running", "parked"), 30, "the end of the run")
        self.assertEqual(d.run(run)["state"], "succeeded", d.run(run))
        first, second, third = starts()
        self.assertEqual(second, first.replace("--session-id=", "--resume="))
        self.assertTrue(third.startswith("--session-id=") and third != first, starts())

    def test_why_names_a_cli_that_waits_for_the_network(self):
        os.makedirs(f"{self.b.home}/bin")
        write(f"{self.b.home}/bin/claude", """#!/bin/sh
echo '{"type":"system","subtype":"init","session_id":"s"}'
echo '{"type":"system","subtype":"api_retry","attempt":1,"max_retries":1,"retry_delay_ms":600,"error_status":null,"error":"unknown"}'
exec sleep 300
""")
        os.chmod(f"{self.b.home}/bin/claude", 0o755)
        self.b.env["PATH"] = f"{self.b.home}/bin:{os.environ['PATH']}"
        write(f"{self.project}/.stint/agents/asks.md", "---\ndescription: asks\ndriver: claude\n---\nDo it.\n")
        d = self.serve()
        run = d.submit("asks")
        wait_for(lambda: "waits for the network" in self.stint("why", run), 20, "the reason")

    def test_on_crash_decides_the_runs_of_a_frozen_daemon(self):
        self.agent("again", 'command: [sleep, "300"]\n')
        self.agent("once", 'command: [sleep, "300"]\n', on_crash="doubt")
        d = self.serve()
        again, once = d.submit("again"), d.submit("once")
        wait_for(lambda: len(self.marked()) == 4, 10, "both, and their wardens")
        d.process.send_signal(signal.SIGSTOP)
        self.addCleanup(d.process.send_signal, signal.SIGCONT)
        wait_for(lambda: not self.marked(), 30, "the wardens to end them")
        d.process.send_signal(signal.SIGCONT)
        wait_for(lambda: d.run(once)["state"] == "in_doubt", 10, "the doubt")
        self.assertIn("stopped for longer than the lease", d.run(once)["error"])
        wait_for(lambda: d.run(again)["state"] == "running" and d.run(again)["fence"] == 2, 20, "it to run again")

    def begin_writers(self):
        """A daemon, and the runs of two agents that write their marks into a journal repeatedly."""
        self.journal = f"{self.project}/journal"
        write(self.journal, "")
        for name, on_crash in (("again", "rerun"), ("once", "doubt")):
            self.agent(name, f'command: [sh, -c, \'while :; do echo $STINT_RUN >> {self.journal}; sleep 0.05; done\']\n', on_crash)
        d = self.serve()
        again, once = d.submit("again"), d.submit("once")
        wait_for(lambda: {f"{again}:1", f"{once}:1"} <= set(read(self.journal).split()), 10, "both to work")
        return d, again, once

    def test_processes_that_outlive_daemon_and_warden_are_ended_before_their_run_restarts(self):
        d, again, once = self.begin_writers()
        self.kill_with_wardens(d)
        self.assertTrue(self.marked(), "a process still works")
        d = self.serve()
        wait_for(lambda: f"{again}:2" in read(self.journal), 15, "it to begin again")
        wait_for(lambda: d.run(once)["state"] == "in_doubt", 5, "the doubt")
        wait_for(lambda: set(read(self.journal).split()[-5:]) == {f"{again}:2"}, 10, "only the second attempt to work")
        marks = [mark for mark in read(self.journal).split() if mark.startswith(again)]
        self.assertNotIn(f"{again}:1", marks[marks.index(f"{again}:2"):], "never both at once")
        self.assertEqual(d.ask("POST", f"/v1/runs/{again}/cancel")[1]["state"], "cancelled")
        self.assertEqual(self.marked(), [])

    def test_a_cancel_without_a_daemon_ends_leftover_processes(self):
        d, again, once = self.begin_writers()
        self.kill_with_wardens(d)
        self.assertTrue(self.marked(), "a process still works")
        self.stint("cancel", again)
        self.stint("cancel", once, status=6)
        self.assertEqual(self.marked(), [])

    def test_a_daemon_rescues_the_run_of_a_killed_stint_run(self):
        self.stint("trust")
        self.b.folder = self.project
        run = self.b.start("run", "slow", stdout=subprocess.DEVNULL)
        wait_for(self.marked, 10, "it to run")
        run.kill()
        run.wait()
        wait_for(lambda: not self.marked(), 10, "its process to be gone")
        d = self.serve()
        wait_for(lambda: list(d.states().values()) == ["running"], 10, "the daemon to carry it on")


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
