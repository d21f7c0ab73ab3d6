#!/usr/bin/env python3
"""The commands that use the fleet, with a daemon: a real one, and one that refuses.

    fleet_daemon_test.py PATH-TO-STINT [TEST…]
"""
import fcntl
import http.server
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import threading
import time
import unittest

from fleet_support import STINT, Repository, WithDaemon

ECHO = """---
description: Says it
driver: command
command: ["sh", "-c", "echo hello $0; sleep $1; printf '\\\\033]0;owned\\\\007\\\\033[31mred\\\\033[0m\\\\n'; exit $2", "{{what}}", "{{time}}", "{{status}}"]
args:
  - name: what
    required: true
  - name: time
    default: "0.1"
  - name: status
    default: "0"
title: "Say {{what}}"
---
"""


class Daemon(WithDaemon):
    AGENTS = {"echo": ECHO}

    def test_a_run_is_submitted_followed_and_ends_with_its_status(self):
        done = self.call("submit", "echo", "hi", "--wait")
        self.assertEqual((done.returncode, done.stdout), (0, "hello hi\n\033]0;owned\a\033[31mred\033[0m\n"), done.stderr)
        self.assertEqual(self.call("submit", "echo", "no", "status=3", "--attempts", "1", "--wait").returncode, 1)
        self.assertEqual(self.call("submit", "echo", "late", "60", "--time", "300ms", "--wait").returncode, 4)
        seen = json.loads(self.stint("submit", "echo", "x", "--wait", "--json"))
        self.assertEqual((seen["state"], seen["title"]), ("succeeded", "Say x"))
        self.assertIn("is missing", self.stint("submit", "echo", status=2))
        self.assertIn("no agent 'nosuch'. `stint agents` lists them", self.stint("submit", "nosuch", status=2))

    def test_each_line_is_carried_and_waited_for(self):
        done = self.call("submit", "echo", "--each", "-", "--wait", stdin='one\na=b\n{"what": "three"}\n{"wha": 4}\n')
        self.assertEqual((done.returncode, len(done.stdout.split())), (1, 3), done.stderr)
        self.assertIn("standard input:4: ", done.stderr)
        self.assertIn("3 of 3 succeeded", done.stderr)
        titles = {run["title"] for run in self.ask("ls", "--state", "succeeded", "--all")["runs"]}
        self.assertEqual(titles, {"Say one", "Say a=b", "Say three"})

    def test_joins_pages(self):
        self.stint("pause", "echo")
        ids = self.stint("submit", "echo", "--each", "-", stdin="".join(f"{i}\n" for i in range(450))).split()
        listed = [run["id"] for run in self.ask("ls", "--all")["runs"]]
        self.assertEqual(listed, list(reversed(ids)))
        self.assertEqual([run["id"] for run in self.ask("ls", "-n", "3")["runs"]], listed[:3])
        self.assertIn("agent:echo is paused", self.stint("why", ids[0]))
        self.stint("cancel", *ids)
        self.assertEqual(self.ask("resume", "echo"), {"woken": 0})

    def test_a_cancel_is_done_when_nothing_is_left(self):
        run = self.running("echo", "long", "60")
        subscriber = subprocess.Popen([STINT, "logs", "-f", run], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True)
        self.assertEqual(subscriber.stdout.readline(), "hello long\n")
        self.assertRegex(self.ask("show", run)["worker"], r"^worker-\d{3}$")
        receipt = self.ask("cancel", run[:6])
        self.assertEqual((receipt["id"], receipt["state"]), (run, "cancelled"))
        self.assertGreaterEqual(receipt["processes_ended"], 1)
        self.assertEqual(subscriber.wait(20), 5)
        subscriber.communicate()
        self.assertEqual(self.ask("show", self.stint("retry", run).strip())["retry_of"], run)
        self.assertIn("not in doubt", self.stint("resolve", run, "--done", status=1))
        self.assertIn("no run '0nosuch'", self.stint("cancel", "0nosuch", status=1))

    def test_the_status_and_the_size_of_the_pool(self):
        run = self.running("echo", "long", "60")
        status = self.ask("status")
        self.assertEqual((status["phase"], status["runs"]["running"], status["pool"]["pool_size"]), ("serving", 1, 10))
        text = self.stint("status")
        for part in ("serving  http://127.0.0.1:", "1 of 10 workers busy, 10 %", "1 running", run, "shrinks by itself"):
            self.assertIn(part, text)
        self.assertEqual(self.ask("scale", "3")["target_size"], 3)
        self.assertIn("autoscales from 1 to 5", self.stint("scale", "--min", "1", "--max", "5"))
        self.stint("scale", status=2)
        self.stint("scale", "--min", "5", "--max", "2", status=2)
        self.stint("scale", "many", status=2)

    def test_a_drain_ends_the_daemon_and_hands_back(self):
        run = self.running("echo", "long", "60")
        self.assertIn("Drained.", self.stint("drain", "--timeout", "200ms", "--wait"))
        self.assertEqual(self.daemon.wait(20), 0)
        self.assertFalse(self.place.exists())
        self.assertIn(self.ask("show", run)["state"], ("queued", "in_doubt"))
        self.assertIn("no daemon", self.stint("status"))

    def test_of_two_daemons_the_other_is_found_when_one_is_killed(self):
        other, place = self.serve()
        url = json.loads(place.read_text(encoding="utf-8"))["url"]
        self.assertIn(url, self.stint("status"), "the one that came last")
        newest = self.folder / ".git/stint/daemon.json"
        self.assertEqual(json.loads(newest.read_text(encoding="utf-8"))["url"], url)
        other.kill()
        other.wait()
        first = json.loads(self.place.read_text(encoding="utf-8"))["url"]
        self.assertIn(f"serving  {first}", self.stint("status"))
        self.assertEqual(self.call("submit", "echo", "hi", "--wait").returncode, 0)
        self.assertTrue(place.exists(), "a killed daemon does not remove it")
        self.serve()
        self.assertFalse(place.exists())

    def test_the_daemon_does_not_work_in_another_worktree(self):
        git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org"]
        (self.folder / ".stint/agents/where.md").write_text("---\ndescription: Says where\ndriver: command\ncommand: [sh, -c, 'pwd; cat mark; sleep ${0}', '{{time}}']\n"
                                                            "args:\n  - {name: time, default: '0'}\non_crash: rerun\n---\n", encoding="utf-8")
        (self.folder / "mark").write_text("main\n", encoding="utf-8")
        for words in (["add", "-A"], ["commit", "-qm", "x"], ["worktree", "add", "-q", str(self.base / "other")]):
            subprocess.run([*git, *words], cwd=self.folder, check=True)
        self.daemon.send_signal(signal.SIGHUP)
        main, self.folder = self.folder, self.base / "other"
        (self.folder / "mark").write_text("other\n", encoding="utf-8")
        self.assertEqual(self.stint("run", "where", "-q"), f"{self.folder}\nother\n")
        run = self.ask("ls")["runs"][0]["id"]
        self.assertEqual(self.ask("show", run)["state"], "succeeded", "it is in the same store")
        done = self.call("submit", "where", "--wait")
        self.assertEqual((done.returncode, done.stdout), (0, f"{main}\nmain\n"))
        self.assertIn(f"the daemon of {main} carries the run, with that", done.stderr)
        done = self.call("run", "where", "-q", STINT_URL=json.loads(self.place.read_text(encoding="utf-8"))["url"])
        self.assertEqual((done.returncode, done.stdout), (0, f"{main}\nmain\n"), "STINT_URL names the daemon")
        lost = subprocess.Popen([STINT, "run", "where", "3", "-q"], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True)
        self.assertEqual(lost.stdout.readline(), f"{self.folder}\n")
        lost.kill()
        lost.communicate()
        run = self.ask("ls")["runs"][0]["id"]
        self.wait_until(lambda: self.ask("show", run)["state"] == "succeeded", "the daemon takes it up")
        self.assertIn(f"{self.folder}\nother\n", self.stint("logs", run), "in the folder where it began")
        self.folder = main
        self.serve(folder=self.base / "other")
        self.folder = self.base / "other"
        self.assertNotIn("carries the run, with that", self.call("submit", "where").stderr, "its own daemon comes first")

    def test_a_wrong_token_is_named_and_never_goes_elsewhere(self):
        place = json.loads(self.place.read_text(encoding="utf-8"))
        self.assertIn("STINT_TOKEN", self.stint("ls", status=1, STINT_URL=place["url"], STINT_TOKEN="wrong"))
        self.stint("ls", STINT_TOKEN="of another daemon")  # without STINT_URL it is not sent
        token = pathlib.Path(place["token_file"]).read_text(encoding="utf-8").strip()
        self.stint("ls", STINT_URL=place["url"])
        self.stint("ls", STINT_URL=place["url"] + "/", STINT_TOKEN=token)
        with Refuser() as refuser:
            refuser.answers = [(200, {}, {"runs": [], "next": None})]
            self.stint("ls", STINT_URL=refuser.url)
            self.assertEqual(refuser.seen[0]["Authorization"], None)

    # ---- top -------------------------------------------------------------------------------------------------------
    def top(self, **variables):
        """Starts `top` on a terminal of its own: its pid, and a function that reads until a text appears."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execve(STINT, [STINT, "top"], self.environment | {"TERM": "xterm"} | variables)
        seen = ""

        def until(text):
            nonlocal seen
            end = time.monotonic() + 20
            while text not in seen:
                self.assertLess(time.monotonic(), end, f"{text!r} is not in {seen[-3000:]!r}")
                if select.select([terminal], [], [], 0.1)[0]:
                    try:
                        seen += os.read(terminal, 1 << 16).decode(errors="replace")
                    except OSError:
                        self.assertIn(text, seen)
            before, seen = seen.split(text, 1)
            return before

        self.addCleanup(os.close, terminal)
        return pid, terminal, until

    def test_top_selects_cancels_and_gives_the_terminal_back(self):
        run = self.running("echo", "long", "60")
        pid, terminal, until = self.top()
        until("\033[?1049h")
        until(run)
        os.write(terminal, b"\033[B\033[Ac")
        until(f"Cancel {run}? y/n")
        os.write(terminal, b"n")
        until("nothing was done.")
        os.write(terminal, b"cy")
        until(f"{run}: cancelled")
        self.assertEqual(self.ask("show", run)["state"], "cancelled")
        os.write(terminal, b"d")
        until("Drain the daemon")
        os.write(terminal, b"n")
        os.write(terminal, b"q")
        until("\033[?1049l")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)

    def test_top_gives_the_terminal_back_when_a_signal_ends_it(self):
        pid, _, until = self.top()
        until("select")
        os.kill(pid, signal.SIGTERM)
        until("\033[?25h\033[?1049l")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 128 + signal.SIGTERM)

    def test_top_without_a_terminal_prints_one_picture(self):
        run = self.running("echo", "long", "60")
        text = self.stint("top")
        self.assertIn(run, text)
        self.assertNotIn("\033", text)
        self.assertLessEqual(len(text.splitlines()), 24)
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()))

    def test_top_on_a_dumb_terminal_prints_one_picture(self):
        run = self.running("echo", "long", "60")
        pid, _, until = self.top(TERM="dumb")
        before = until(run)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertNotIn("\033", before)
        self.assertNotIn("no daemon", before)

    def test_top_json_prints_a_line_per_look(self):
        watching = self.start("top", "--json")
        for _ in range(2):
            self.assertEqual(json.loads(watching.stdout.readline())["phase"], "serving")

    def test_a_word_that_is_too_long_for_the_kernel_is_refused(self):
        said = self.stint("submit", "echo", "--each", "-", status=1, stdin=json.dumps({"what": "x" * 140_000}) + "\n")
        self.assertIn("the argument 'what' makes a word of 140000 bytes in the command; the kernel allows 131071", said)


class Refuser:
    """A daemon with scripted answers that records its requests."""

    def __enter__(self):
        self.seen, self.answers = [], []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.seen.append({"line": f"{self.command} {self.path}", "body": body.decode(),
                                   "Authorization": self.headers.get("Authorization"), "key": self.headers.get("Idempotency-Key")})
                status, headers, document = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                text = (document if isinstance(document, str) else json.dumps(document)).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(text))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PUT = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Refusals(Repository):
    def setUp(self):
        super().setUp()
        self.refuser = Refuser()
        self.refuser.__enter__()
        self.addCleanup(self.refuser.__exit__)

    def answer(self, *answers):
        self.refuser.seen.clear()
        self.refuser.answers = list(answers)

    def call(self, *words, **more):
        return super().call(*words, **{"STINT_URL": self.refuser.url, "STINT_TOKEN": "t0ken"} | more)

    def problem(self, status, detail, **headers):
        return (status, {"Content-Type": "application/problem+json"} | headers, {"type": "about:blank", "status": status, "detail": detail})

    def test_a_request_carries_token_key_and_body(self):
        self.answer((201, {}, {"id": "abcdefghijkl", "state": "queued", "created": True}))
        self.assertEqual(self.stint("submit", "review", "42", "focus=x", "--key", "k", "--delay", "1m", "--priority", "2"), "abcdefghijkl\n")
        seen = self.refuser.seen[0]
        self.assertEqual((seen["line"], seen["Authorization"], seen["key"]), ("POST /v1/runs", "Bearer t0ken", "k"))
        self.assertEqual(json.loads(seen["body"]), {"agent": "review", "words": ["42", "focus=x"], "priority": 2, "delay_ms": 60000})
        self.answer((200, {}, {"runs": [], "next": None}))
        self.stint("ls", "--state", "failed", "--state", "queued", "--agent", "a b", "--session", "s&t", "-n", "7")
        self.assertEqual(self.refuser.seen[0]["line"], "GET /v1/runs?limit=7&state=failed&state=queued&agent=a%20b&session=s%26t")

    def test_refusals_have_their_exit_statuses(self):
        for status, exit_status, words in ((422, 2, ("submit", "a")), (404, 2, ("submit", "a")), (503, 3, ("submit", "a")), (403, 1, ("submit", "a")),
                                           (500, 1, ("submit", "a")), (404, 1, ("show", "x")), (409, 1, ("drain",)), (503, 3, ("drain",))):
            self.answer(self.problem(status, "because of that"))
            text = self.stint(*words, status=exit_status)
            if words[0] == "submit":
                self.assertIn("because of that", text)
        self.answer((500, {}, "<html>"))
        self.assertIn("HTTP 500", self.stint("ls", status=1))
        self.answer((200, {}, "<html>hello</html>"))
        self.assertIn("not an answer of a daemon", self.stint("ls", status=1))

    def test_waits_for_a_full_daemon_and_keeps_the_order(self):
        accepted = [(201, {}, {"id": f"accepted{i}", "state": "queued", "created": True}) for i in range(2)]
        self.answer(self.problem(503, "full", **{"Retry-After": "1"}), *accepted)
        began = time.monotonic()
        done = self.call("submit", "a", "--each", "-", stdin="one\ntwo\n")
        self.assertEqual((done.returncode, done.stdout), (0, "accepted0\naccepted1\n"), done.stderr)
        self.assertGreaterEqual(time.monotonic() - began, 0.9)
        self.assertEqual([json.loads(each["body"])["words"][-1] for each in self.refuser.seen], ["one", "one", "two"])

    def test_a_daemon_that_does_not_answer_is_named(self):
        self.assertIn("http://127.0.0.1:1 does not answer", self.stint("ls", status=1, STINT_URL="http://127.0.0.1:1"))
        self.assertIn("write it as", self.stint("ls", status=1, STINT_URL="nonsense"))

    def place(self, text):
        """Writes the file of a daemon that lives as long as the returned file is open."""
        path = self.folder / ".git/stint/daemons/1.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        file = path.open(encoding="utf-8")
        self.addCleanup(file.close)
        fcntl.flock(file, fcntl.LOCK_EX)
        return file

    def test_skips_a_dead_daemon(self):
        for text in (json.dumps({"url": self.refuser.url, "pid": os.getpid(), "token_file": ""}), "nonsense"):
            self.place(text).close()  # another process may have its pid now
            self.assertIn("No runs yet", self.stint("ls", STINT_URL=""))
        self.place("nonsense")
        self.assertIn("No runs yet", self.stint("ls", STINT_URL=""))
        self.assertIn("no daemon", self.stint("status", STINT_URL=""))
        self.assertIn("no daemon", self.stint("top", STINT_URL=""))
        for words in (("drain",), ("scale", "3")):
            self.assertRegex(self.stint(*words, status=1, STINT_URL=""), "no daemon runs here: `stint serve` starts one")

    def test_only_the_token_beside_it_is_sent(self):
        beside = self.folder / ".git/stint"
        beside.mkdir(parents=True)
        (self.base / "secret").write_text("secret", encoding="utf-8")
        (beside / "link").symlink_to(self.base / "secret")
        (beside / "token").write_text("token\n", encoding="utf-8")
        for name, sent in ((self.base / "secret", None), (beside / "link", None), (beside / "token", "Bearer token")):
            held = self.place(json.dumps({"url": self.refuser.url, "pid": os.getpid(), "token_file": str(name)}))
            self.answer((200, {}, {"runs": [], "next": None}))
            self.stint("ls", STINT_URL="", STINT_TOKEN="")
            self.assertEqual(self.refuser.seen[0]["Authorization"], sent)
            held.close()

    def test_a_live_daemon_that_does_not_answer_is_named_with_the_remedy(self):
        self.place(json.dumps({"url": "http://127.0.0.1:1", "pid": os.getpid(), "token_file": ""}))
        text = self.stint("ls", status=1, STINT_URL="")
        for part in ("http://127.0.0.1:1 does not answer", ".git/stint/daemons/1.json names it", f"kill {os.getpid()}"):
            self.assertIn(part, text)

    def test_a_hostile_daemon_does_not_reach_the_terminal(self):
        self.answer((200, {}, {"runs": [{"id": "x\033[2J", "agent": "\033]0;a\a", "state": "queued", "title": "\033[31m"}], "next": None}))
        self.assertIsNone(re.search("[\033\a]", self.stint("ls")))


if __name__ == "__main__":
    unittest.main()
