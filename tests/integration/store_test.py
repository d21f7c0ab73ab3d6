#!/usr/bin/env python3
"""`stint store` as a person uses it: a hundred thousand runs from a file to SQLite to PostgreSQL and back, files that are cut off or
damaged, two imports at once, an import that is killed.

    store_test.py PATH-TO-STINT [TEST…]        STINT_STORE_RUNS=N: number of runs, instead of 100,000
"""
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../chaos"))
import ground  # noqa: E402

STINT = os.path.abspath(sys.argv.pop(1))
RUNS = int(os.environ.get("STINT_STORE_RUNS", "100000"))
LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
DAY = 1_790_000_000_000


def identity(number):
    bits = number * 2654435761 % (1 << 60)
    return "".join(LETTERS[bits >> 5 * place & 31] for place in range(12))


def export_of(count, seed=1):
    """The lines of an export of another store: ended runs, ready, delayed, and in sessions."""
    chance, heads, events = random.Random(seed), set(), 0
    yield {"stint_export": 1}
    for name in ("land", "plan", "review"):
        yield {"agent": {"name": name, "limits": [{"name": "gpu", "weight": 1}], "queued_max": 200, "attempts_max": 3, "lost_max": 3}}
    yield {"limit": {"name": "gpu", "capacity": 4}}
    for number in range(count):
        at, kind = DAY + number, chance.random()
        run = {"id": identity(number + 1), "agent": ("land", "plan", "review")[number % 3], "on_crash": "rerun", "created_ms": at, "rank_ms": at,
               "input": json.dumps({"n": number, "text": "ä" * 30})}
        first = {"cause": "enqueued", "at_ms": at, "state": "queued"}
        run["events"] = [first]
        if kind < 0.7:
            run.update(state="succeeded", attempt=1, fence=1, started_ms=at + 5, finished_ms=at + 9, result='{"ok":true}', output_bytes=12,
                       head="one\ntwo\nthr\n")
            run["events"] += [{"cause": "claimed", "at_ms": at + 5, "fence": 1, "node": 3, "state": "running"},
                              {"cause": "succeeded", "at_ms": at + 9, "fence": 1, "node": 3, "state": "succeeded"}]
        elif kind < 0.8:
            session = f"s{number % 100}"
            run.update(state="queued", session=session)
            if session in heads:
                run["hold"] = first["hold"] = "session"
            heads.add(session)
        elif kind < 0.9:
            run.update(state="queued", key=f"k{number}")
        else:
            run.update(state="queued", hold="delay", not_before_ms=at + 10**12)
            first["hold"] = "delay"
        events += len(run["events"])
        yield {"run": run}
    yield {"end": {"agents": 3, "limits": 1, "runs": count, "events": events}}


class Store(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="stint-test-")
        self.addCleanup(temporary.cleanup)
        self.base = pathlib.Path(temporary.name).resolve()
        self.folder = self.base / "work"
        self.folder.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=self.folder, check=True)
        self.database = self.folder / ".git/stint/stint.db"
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("STINT_", "XDG_"))} | {"HOME": str(self.base)}

    def stint(self, *words, status=0, **variables):
        done = subprocess.run([STINT, "store", *map(str, words)], cwd=self.folder, env=self.environment | variables, capture_output=True, text=True,
                              timeout=240)
        self.assertEqual(done.returncode, status, done.stderr or done.stdout)
        return done.stdout if status == 0 else done.stderr

    def ask(self, *words, **variables):
        return json.loads(self.stint(*words, "--json", **variables))

    def write(self, name, lines):
        path = self.base / name
        with open(path, "w", encoding="utf-8") as file:
            for line in lines:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        return path

    def lines(self, path):
        """Compares parsed lines, not text."""
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def postgres(self):
        server = ground.Postgres()
        self.addCleanup(server.close, False)
        address = f"postgres:///postgres?host={server.folder}&user=postgres"
        end = time.monotonic() + 30
        while subprocess.run(["pg_isready", "-q", "-h", server.folder, "-U", "postgres"], check=False).returncode and time.monotonic() < end:
            time.sleep(0.05)
        return address

    # ---- all of it -------------------------------------------------------------------------------------------------
    def test_a_hundred_thousand_runs_go_from_a_file_to_sqlite_to_postgres_and_back(self):
        given = self.write("given", export_of(RUNS))
        counts = self.lines(given)[-1]["end"]
        self.assertEqual(self.ask("import", given), {"read": counts, "added": counts})
        self.assertEqual(self.ask("check")["findings"], [])
        self.stint("export", self.base / "sqlite")
        self.assertEqual(self.lines(given), self.lines(self.base / "sqlite"))

        address = self.postgres()
        self.assertEqual(self.ask("import", self.database, STINT_STORE=address), {"read": counts, "added": counts})
        self.assertEqual(self.ask("check", STINT_STORE=address)["findings"], [])
        self.stint("export", self.base / "postgres", STINT_STORE=address)
        self.assertEqual((self.base / "sqlite").read_bytes(), (self.base / "postgres").read_bytes())
        here, there = self.ask("stats"), self.ask("stats", STINT_STORE=address)
        for name in ("runs", "ready", "limits"):
            self.assertEqual(here[name], there[name])
        again = self.ask("import", self.base / "postgres", STINT_STORE=address)
        self.assertEqual(again["added"], {"agents": 0, "limits": 0, "runs": 0, "events": 0})

    # ---- what goes wrong -------------------------------------------------------------------------------------------
    def test_a_missing_store_is_reported(self):
        for command in ("stats", "check", "export"):
            self.assertIn("there is no store yet", self.stint(command, status=1))
        self.assertFalse(self.database.exists(), "reading creates nothing")
        self.assertIn("created, schema", self.stint("migrate"))
        self.assertIn("up to date", self.stint("migrate"))
        self.assertIn("exists only inside the process", self.stint("stats", status=1, STINT_STORE="memory"))
        self.assertIn("has no address", self.stint("stats", status=1, STINT_STORE="postgres"))

    def test_a_password_is_not_shown(self):
        self.assertNotIn("geheim", self.stint("stats", status=1, STINT_STORE="postgres://u:geheim@127.0.0.1:1/x"))

    def test_a_truncated_file_is_detected_and_may_be_repeated(self):
        lines = list(export_of(1000))
        for kept in (1, 4, 500, len(lines) - 1):
            error = self.stint("import", self.write("cut", lines[:kept]), status=1)
            self.assertIn("its end is missing", error)
        half = self.base / "half"
        whole = self.write("whole", lines)
        half.write_bytes(whole.read_bytes()[:-200])
        self.assertIn("not a line of an export", self.stint("import", half, status=1))
        self.assertEqual(sum(self.ask("import", whole)["read"].values()), sum(lines[-1]["end"].values()))
        self.assertEqual(self.ask("stats")["runs"]["succeeded"] + self.ask("stats")["runs"]["queued"], 1000)
        self.assertEqual(self.ask("check")["findings"], [])

    def test_a_line_that_is_damaged_is_named(self):
        lines = list(export_of(20))
        lines[9]["run"]["state"] = "asleep"
        self.assertIn(":10: 'state'", self.stint("import", self.write("bad", lines), status=1))
        lines = list(export_of(20))
        lines[9]["run"]["events"].pop()
        lines[9]["run"]["events"].append({"cause": "claimed", "at_ms": 5, "state": "running"})
        self.assertIn(lines[9]["run"]["id"], self.stint("import", self.write("bad", lines), status=1))
        for text in ("", "x", '{"stint_export":2}\n', "\0" * 100, '{"run":{}}\n'):
            (self.base / "bad").write_text(text)
            self.stint("import", self.base / "bad", status=1)

    def test_an_export_may_come_through_a_pipe(self):
        given = self.write("given", export_of(500))
        with open(given, "rb") as file:
            subprocess.run([STINT, "store", "import", "-"], stdin=file, cwd=self.folder, env=self.environment, check=True, capture_output=True, timeout=60)
        os.remove(self.database)
        pipe = self.base / "pipe"
        os.mkfifo(pipe)
        writer = subprocess.Popen(["dd", f"if={given}", f"of={pipe}", "status=none"])
        self.assertEqual(self.ask("import", pipe)["added"]["runs"], 500)
        self.assertEqual(writer.wait(10), 0)
        self.stint("export", self.base / "out")
        self.assertEqual(self.lines(given), self.lines(self.base / "out"))

    def test_a_foreign_file_creates_no_store_and_uses_no_memory(self):
        self.assertIn("can't be read", self.stint("import", self.base / "nothing", status=1))
        self.assertFalse(self.database.exists())
        self.assertIn("this is not an export", self.stint("import", "/dev/zero", status=1))

    def test_an_export_is_never_overwritten_or_partial(self):
        self.stint("import", self.write("given", export_of(2000)))
        target = self.base / "there"
        target.write_text("mine")
        self.assertIn("it may exist already", self.stint("export", target, status=1))
        self.assertEqual(target.read_text(), "mine")
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([STINT, "store", "export"], cwd=self.folder, env=self.environment, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("check the disk space", done.stderr)

    def test_running_runs_prevent_an_export(self):
        self.stint("import", self.write("given", export_of(20)))
        with sqlite3.connect(self.database) as database:
            database.execute("INSERT INTO node (label) VALUES ('other')")
            database.execute("UPDATE run SET state = 'running', node_id = 1 WHERE run_id = (SELECT min(run_id) FROM run WHERE state = 'queued' AND hold IS NULL)")
        leases = pathlib.Path(f"{self.database}.nodes")
        with open(leases / "1.lock", "w", encoding="utf-8") as lock:
            subprocess.run(["flock", "-x", str(lock.fileno())], pass_fds=[lock.fileno()], check=True)
            self.assertIn("1 run is running", self.stint("export", self.base / "out", status=1))
        self.assertFalse((self.base / "out").exists())

    def test_two_imports_at_once_and_one_that_is_killed(self):
        given = self.write("given", export_of(20_000 if RUNS >= 20_000 else RUNS))
        command = [STINT, "store", "import", str(given)]
        killed = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.7)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        two = [subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        self.assertEqual([process.wait(200) for process in two], [0, 0])
        for process in two:
            process.stdout.close()
        self.assertEqual(self.ask("check")["findings"], [])
        self.stint("export", self.base / "out")
        self.assertEqual(self.lines(given), self.lines(self.base / "out"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
