#!/usr/bin/env python3
"""`stint serve` with real processes: output, logs, a full disk, a store that moved. `serve_output_test.py STINT [CLASS…]`"""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import unittest

import daemon_support
from host_support import wait_for


class Logs(daemon_support.Case):
    TRACE = "0af7651916cd43dd8448eb211c80319c"
    speakers = 0

    def test_json_log_lines_have_run_attempt_and_trace_and_no_secret(self):
        self.agent("teller", 'command: [sh, -c, "echo key $SOME_API_KEY; echo token $STINT_TOKEN; echo $TRACEPARENT; echo $SOME_API_KEY >&2; exit ${0}", "{{status}}"]\nargs:\n  - {name: status, default: "0"}\n')
        d = self.serve("--log", "json", env={"SOME_API_KEY": "sk-very-secret-1"})
        header = {"traceparent": f"00-{self.TRACE}-b7ad6b7169203331-01"}
        well = d.wait(d.submit("teller", header))
        ill = d.wait(d.submit("teller", args={"status": "3"}))
        self.assertEqual(well["trace"], self.TRACE)
        self.assertRegex(ill["trace"], "^[0-9a-f]{32}$")
        output = d.get(f"/v1/runs/{well['id']}/output")["head"].splitlines()
        self.assertEqual(output[:2], ["key ***", "token ***"])
        self.assertEqual(output[2].split("-")[1], self.TRACE)
        everything = json.dumps([well, ill, d.get(f"/v1/runs/{ill['id']}/events"), d.get(f"/v1/runs/{ill['id']}/output")])
        self.assertEqual(d.end(), 0)
        self.assertNotIn("sk-very-secret-1", everything + "".join(d.errors))
        self.assertNotIn(d.token, everything + "".join(d.errors))
        lines = [json.loads(line) for line in d.errors]
        of_well = [line for line in lines if line.get("run") == well["id"]]
        self.assertEqual([(line["event"], line["attempt"], line["trace"], line["level"]) for line in of_well],
                         [("run begun", 1, self.TRACE, "info"), ("attempt ended", 1, self.TRACE, "info")])
        end = [line for line in lines if line.get("run") == ill["id"]][-1]
        self.assertEqual((end["level"], end["state"], end["outcome"]), ("warning", "failed", "agent_error"))
        self.assertEqual(lines[-1]["event"], "drained")

    def output_of(self, d, command):
        self.speakers += 1
        name = f"speaker{self.speakers}"  # a new agent: the daemon may still have the old file of an earlier one
        self.agent(name, f"command: {json.dumps(['sh', '-c', command])}\n")
        d.process.send_signal(signal.SIGHUP)
        run = wait_for(lambda: d.ask("POST", "/v1/runs", {"agent": name})[1].get("id"), 5, "the new agent")
        self.assertEqual(d.wait(run, 60)["state"], "succeeded")
        return run, d.get(f"/v1/runs/{run}/output")

    def test_a_flood_keeps_both_ends_of_the_output_and_exact_counts(self):
        d = self.serve()
        run, output = self.output_of(d, "seq 1 2000000; echo THE END")
        whole = sum(len(str(i)) + 1 for i in range(1, 2_000_001)) + len("THE END\n")
        self.assertEqual((output["bytes"], output["left_out"]), (whole, whole - len(output["head"]) - len(output["tail"])))
        self.assertTrue(output["head"].startswith("1\n2\n3\n"))
        first = d.get(f"/v1/runs/{run}/output?from=2")
        behind = d.get(f"/v1/runs/{run}/output?from={first['next']}")
        self.assertEqual((first["text"], behind["text"]), (output["head"][2:], output["tail"]))
        self.assertEqual(behind["offset"] - first["next"], output["left_out"], "the offset shows what is missing")
        self.assertTrue(output["tail"].endswith("1999999\n2000000\nTHE END\n"), output["tail"][-100:])
        self.assertEqual((len(output["head"]), len(output["tail"])), (64 << 10, 192 << 10))
        piped = subprocess.run([daemon_support.STINT, "logs", run], cwd=self.project, env=self.b.env, capture_output=True, text=True, timeout=60)
        self.assertEqual(piped.stdout, output["head"] + output["tail"])
        self.assertIn(f"… {output['left_out']} bytes left out …", piped.stderr)

    def test_a_subscriber_of_a_flood_gets_the_number_of_dropped_bytes(self):
        self.agent("flood", "command: [sh, -c, 'seq 1 2000000; echo THE END']\n")
        self.serve()
        said = subprocess.run([daemon_support.STINT, "run", "-q", "flood"], cwd=self.project, env=self.b.env, capture_output=True, text=True, timeout=60)
        self.assertEqual(said.returncode, 0, said.stderr)
        whole = sum(len(str(i)) + 1 for i in range(1, 2_000_001)) + len("THE END\n")
        missed = sum(int(count) for count in re.findall("([0-9]+) bytes of output left out", said.stderr))
        self.assertEqual(len(said.stdout) + missed, whole, said.stderr)
        self.assertTrue(said.stdout.endswith("2000000\nTHE END\n"))

    def test_a_line_may_be_long_and_need_not_end(self):
        d = self.serve()
        _, output = self.output_of(d, "head -c 10000000 /dev/zero | tr '\\0' x")
        self.assertEqual((output["bytes"], output["head"][:3], output["tail"][-3:]), (10_000_000, "xxx", "xxx"))
        run, output = self.output_of(d, "printf 'a\\r\\nabc'")
        self.assertEqual((output["head"], output["bytes"]), ("a\r\nabc", 6))
        raw = subprocess.run([daemon_support.STINT, "logs", "--raw", run], cwd=self.project, env=self.b.env, capture_output=True, timeout=20)
        self.assertEqual(raw.stdout, b"a\r\nabc")

    def test_a_stalled_reader_does_not_delay_others(self):
        reader, writer = os.pipe()
        d = self.serve()
        d.close()
        process = subprocess.Popen([daemon_support.STINT, "serve", "--listen", "127.0.0.1:0", "--json"], cwd=self.project, env=self.b.env, stdout=subprocess.PIPE, stderr=writer, text=True)
        os.close(writer)
        self.addCleanup(os.close, reader)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        said = json.loads(process.stdout.readline())
        d.host, d.port = said["url"].removeprefix("http://").rsplit(":", 1)
        d.token = said["token"]
        for _ in range(8):  # 1,600 lines of some 150 bytes do not fit a pipe
            for run in [d.submit("quick", args={"what": "x" * 1000}) for _ in range(100)]:
                last = run
            self.assertEqual(d.wait(last, 60)["state"], "succeeded")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 0, "and it does not block the exit")


class FullDisk(daemon_support.Case):
    settings = "[pool]\nworkers = 2\nautoscale = false\ndrain = \"2s\"\n"

    def setUp(self):
        super().setUp()
        place = f"{self.project}/.git/stint"
        os.makedirs(place)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", place], capture_output=True).returncode != 0:
            self.skipTest("only root can make a small disk")
        self.addCleanup(subprocess.run, ["umount", "-l", place], check=True)
        self.ballast = f"{place}/ballast"

    def test_a_full_disk_is_logged_once_and_not_ready(self):
        d = self.serve()
        self.assertEqual(d.ask("GET", "/readyz")[:2], (200, "serving\n"))
        run = d.submit("slow", args={"seconds": "2"})
        wait_for(lambda: d.run(run)["state"] == "running", 10, "it to run")
        with contextlib.suppress(OSError), open(self.ballast, "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        status, body = wait_for(lambda: (lambda answer: answer if answer[0] == 503 else None)(d.ask("GET", "/readyz")[:2]), 20, "the 503")
        self.assertIn("full", body)
        time.sleep(3)  # several retries
        self.assertEqual(len([line for line in d.errors if "store can't be used" in line and "full" in line]), 1, d.errors)
        os.remove(self.ballast)
        self.assertEqual(d.wait(run)["state"], "succeeded", "a settlement is retried until the store accepts it")
        wait_for(lambda: d.ask("GET", "/readyz")[0] == 200, 5, "readiness")
        again = lambda: [line for line in d.errors if "store can be used again" in line]
        wait_for(again, 10, "the line in the log")
        self.assertEqual(len(again()), 1, d.errors)

    def fill(self):
        with contextlib.suppress(OSError), open(self.ballast, "ab", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def keep_full(self, process):
        """Until the process ends: SQLite shortens its log now and then, and could use what that leaves."""
        def refill():
            while process.poll() is None:
                self.fill()
                time.sleep(0.01)
        self.fill()
        filler = threading.Thread(target=refill)
        filler.start()
        self.addCleanup(filler.join)

    def chat(self):
        """A daemon with a run that prints, on a full disk."""
        self.agent("chatty", 'command: [sh, -c, "yes some words that a person might want to read"]\n')
        d = self.serve()
        run = d.submit("chatty")
        wait_for(lambda: d.run(run)["state"] == "running" and self.marked(), 10, "it to run")
        self.fill()
        wait_for(lambda: d.ask("GET", "/readyz")[0] == 503 and self.fill() is None, 20, "the 503")
        return d, run

    def test_a_submit_to_a_full_store_fails_with_the_reason(self):
        """Neither a used-up budget (4) nor a refusal of a daemon (3)."""
        self.stint("trust")
        self.stint("submit", "quick")
        self.fill()
        done = subprocess.run([daemon_support.STINT, "submit", "-p", "x" * 100_000], cwd=self.project, env=self.b.env, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("no space left", done.stderr)

    def test_while_an_agent_prints_it_is_logged_and_a_cancel_ends_it(self):
        d, run = self.chat()
        self.assertIn("full", d.ask("GET", "/readyz")[1])
        self.assertIn("full", json.dumps(d.get(f"/v1/runs/{run}/why")))
        wait_for(lambda: [line for line in d.errors if "store can't be used" in line and "full" in line], 10, "the line in the log")
        status, answer, headers = d.ask("POST", f"/v1/runs/{run}/cancel")
        self.assertEqual((status, self.marked()), (503, []), answer)
        self.assertIn("record", answer["detail"])
        self.assertIn("Retry-After", headers)
        os.remove(self.ballast)
        self.assertEqual(d.wait(run)["state"], "cancelled", "recorded once there is room")
        self.assertEqual(d.end(), 0)

    def test_a_run_in_the_foreground_is_ended_by_a_signal(self):
        self.agent("chatty", 'command: [sh, -c, "yes some words that a person might want to read"]\n')
        self.stint("trust")
        process = subprocess.Popen([daemon_support.STINT, "run", "-q", "chatty"], cwd=self.project, env=self.b.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        wait_for(self.marked, 10, "it to run")
        self.keep_full(process)
        process.send_signal(signal.SIGINT)
        status, said = process.wait(40), process.stderr.read()
        self.assertIn(status, (1, 5), said)  # 5: the end fitted into room that SQLite's log had left
        if status == 1:
            self.assertIn("the store can't record that yet", said)
        self.assertEqual(self.marked(), [])

    def test_while_an_agent_prints_the_daemon_stops_on_a_signal(self):
        d, run = self.chat()
        began = time.monotonic()
        self.assertEqual(d.end(40), 1, d.errors)
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(self.marked(), [])
        self.assertRegex("".join(d.errors), "not_recorded=1")
        self.assertRegex("".join(d.errors), "stint: the outcome of 1 run could not be stored: .*full")
        os.remove(self.ballast)
        d = self.serve()
        wait_for(lambda: d.run(run)["state"] == "running" and d.run(run).get("lost") == 1, 10, "it to be rescued")
        self.assertEqual(d.ask("POST", f"/v1/runs/{run}/cancel")[0], 200)


class Moved(daemon_support.Case):
    """The files of the store disappear while a daemon runs."""

    def test_a_run_that_can_not_be_stored_is_not_accepted(self):
        d = self.serve()
        before = d.wait(d.submit("quick"))["id"]
        place = f"{self.project}/.git/stint/stint.db"
        for name in ("", "-wal", "-shm"):
            os.rename(place + name, f"{place}{name}.away")
            status, answer, _ = d.ask("POST", "/v1/runs", {"agent": "quick"})
            self.assertEqual(status, 503, answer)
            self.assertIn(f"stint.db{name} was deleted or moved", answer["detail"])
            wait_for(lambda: f"stint.db{name} was deleted" in d.ask("GET", "/readyz")[1], 10, "the 503")
            self.assertEqual(d.ask("GET", "/readyz")[0], 503)
            os.rename(f"{place}{name}.away", place + name)
            self.assertEqual(d.wait(d.submit("quick"))["state"], "succeeded")
            wait_for(lambda: d.ask("GET", "/readyz")[0] == 200, 10, "readiness")
        self.assertEqual(len([line for line in d.errors if "store can't be used" in line]), 1, "once a minute")
        os.remove(place)
        self.assertEqual(d.ask("POST", "/v1/runs", {"agent": "quick"})[0], 503)
        self.assertEqual(d.run(before)["state"], "succeeded", "stored runs can be read")
        self.assertEqual(d.end(), 0)
        d = self.serve()
        self.assertEqual(d.states(), {}, "a new store was created")
        self.assertEqual(d.wait(d.submit("quick"))["state"], "succeeded")


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
