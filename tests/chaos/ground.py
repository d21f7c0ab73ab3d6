"""The store under test: a SQLite file, or a private PostgreSQL server that can be killed and restarted."""
import glob
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
VARIANTS = os.path.join(HERE, "../../src/store/sql/postgres_test/queries.sql")


class Sqlite:
    """Frozen nodes keep their runs: their lease is a lock. The feed is in commit order."""

    name = "sqlite"
    freeze_s = (0.05, 0.3)
    kills = 0

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="stint-chaos-")
        self.address = os.path.join(self.folder, "stint.db")

    def hurt(self, random):
        """Whether the store itself was hurt. There is no server to kill."""
        return False

    def moments(self, events):
        """A sortable time of each event."""
        return range(len(events))

    def watch(self):
        pass

    def lease_ms(self):
        return None

    def trouble(self):
        return []

    def close(self, keep):
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)


class Postgres:
    """A frozen node loses its lease. Events carry the database's time; the feed is not in commit order."""

    name = "postgres"
    LEASE_MS = 1000  # store_node.cpp has the same
    freeze_s = (1.3, 2.5)
    KILL_EVERY_S = (2.0, 6.0)

    def __init__(self):
        self.programs = max(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]), default=None)
        if self.programs is None:
            raise SystemExit("PostgreSQL is not installed: run ./dev setup test")
        self.folder = tempfile.mkdtemp(prefix="stint-chaos-")
        self.address = f"host={self.folder} user=postgres dbname=postgres"
        self.kills, self.watcher, self.seen, self.next_kill = 0, None, [], 0
        self.as_owner = ["setpriv", "--pdeathsig=QUIT"]
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.as_owner += [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        self.log = open(os.path.join(self.folder, "log"), "ab")
        self.spawn("initdb", "--pgdata=" + self.data(), "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync").wait()
        self.start()

    def data(self):
        return os.path.join(self.folder, "data")

    def spawn(self, program, *words):
        return subprocess.Popen([*self.as_owner, os.path.join(self.programs, program), *words], cwd=self.folder, stdout=self.log, stderr=self.log)

    def start(self):
        """Durable, as by default."""
        self.server = self.spawn("postgres", "-D", self.data(), "-k", self.folder, "-c", "listen_addresses=", "-c", "max_connections=100")

    def processes(self):
        """All processes of the server, by their working folder: a list of its children may miss one that was forked just before it died."""
        found = []
        for path in glob.glob("/proc/[0-9]*/cwd"):
            try:
                if os.readlink(path) == os.path.realpath(self.data()):
                    found.append(int(path.split("/")[2]))
            except OSError:
                continue
        return found

    def kill(self, at_once):
        """`at_once`: kills all its processes, like a power failure. Otherwise shuts down without notice to its clients."""
        if at_once:
            self.server.kill()
            while left := self.processes():
                for pid in left:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                self.server.poll()
                time.sleep(0.001)
        else:
            self.server.send_signal(signal.SIGQUIT)
        self.server.wait()

    def hurt(self, random):
        now = time.monotonic()
        if self.next_kill == 0:
            self.next_kill = now + random.uniform(*self.KILL_EVERY_S) / 2
        if now < self.next_kill:
            return False
        self.next_kill = now + random.uniform(*self.KILL_EVERY_S)
        self.kill(at_once=random.random() < 0.7)
        self.kills += 1
        self.start()
        return True

    def psql(self, *words, text=None):
        return subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", self.address, *words],
                              input=text, capture_output=True, text=True, check=True).stdout

    def break_it(self, name):
        """Replaces functions by a known-bad variant."""
        with open(VARIANTS, encoding="utf-8") as file:
            found = re.search(rf"^-- name: {name}\n(.*?)(?=^-- name:|\Z)", file.read(), re.M | re.S)
        if not found:
            raise SystemExit(f"there is no variant '{name}' in {os.path.normpath(VARIANTS)}")
        self.psql("-f", "-", text=found.group(1))

    def keep_up(self):
        """Starts the server again if it refused because a child of its predecessor was still alive."""
        if self.server.poll() is not None:
            self.start()

    def watch(self):
        """Samples the rows every 20 ms over a separate connection."""
        self.keep_up()
        if self.watcher is None or self.watcher.poll() is not None:
            self.collect()
            self.watcher = subprocess.Popen(
                ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", os.path.join(HERE, "watch.sql"), self.address],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def collect(self):
        if self.watcher is not None:
            self.watcher.kill()
            self.seen += [f"seen in the rows: {line}" for line in self.watcher.communicate()[0].splitlines() if line.strip()]
            self.watcher = None

    def moments(self, events):
        return [event["at"] for event in events]

    def lease_ms(self):
        return self.LEASE_MS

    def trouble(self):
        """Errors in the server's log, and violations seen in the rows."""
        self.collect()
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as log:
            bad = [line.strip() for line in log if re.search(r"deadlock detected|PANIC|invalid page|could not read block", line)]
        return self.seen + bad[:5]

    def events_of_table(self):
        return int(self.psql("-c", "SELECT count(*) FROM stint.event"))

    def close(self, keep):
        self.collect()
        self.kill(at_once=True)
        self.log.close()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)
