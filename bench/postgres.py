"""A PostgreSQL server of our own for the suite `store`, from Debian's package, with its default durability.

It listens on a socket in its own folder and nowhere else, and ends with this process. Not under /tmp, which may be memory.
"""
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

from harness import Skip, first_line

FOLDERS = "/var/tmp"
START_S, STOP_S = 30, 20
REMEDY = "apt-get install postgresql"


def programs():
    """The folder of the newest version's programs in Debian."""
    found = [path for path in pathlib.Path("/usr/lib/postgresql").glob("*/bin") if (path / "postgres").exists()]
    return max(found, key=lambda path: int(path.parent.name), default=None)


def owner():
    """The user that owns the server's data if this runs as root; None: the current user."""
    if os.geteuid():
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def processor_seconds(pid):
    """Processor time of a process and all its ended children."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


class Postgres:
    """One server for all rows; each process gets a new database. Started and stopped on the main thread: the kernel
    ends the server with the thread that started it."""

    def __init__(self):
        self.bin, self.folder, self.process = None, None, None

    def prepare(self):
        self.bin = programs()
        if self.bin is None:
            raise Skip("there is no PostgreSQL", REMEDY)

    def start(self):
        if self.process:
            return
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stint-bench-", dir=FOLDERS))
        user = owner()
        if user:
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        try:
            made = subprocess.run(self.as_owner("initdb", f"--pgdata={self.folder}/data", "--username=postgres",
                                                "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"),
                                  capture_output=True, text=True, cwd=self.folder)
            if made.returncode:
                raise Skip(f"initdb: {made.stderr.strip()[-200:]}", REMEDY)
            with open(self.folder / "log", "w") as log:
                self.process = subprocess.Popen(
                    self.as_owner("postgres", "-D", f"{self.folder}/data", "-k", str(self.folder),
                                  "-c", "listen_addresses="),
                    stdout=log, stderr=log, cwd=self.folder, start_new_session=True)
            self.wait()
        except BaseException:
            self.stop()
            raise

    def wait(self):
        deadline = time.monotonic() + START_S
        while subprocess.run([self.bin / "pg_isready", "--quiet", "--host", self.folder, "--username=postgres"]).returncode:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Skip(f"the server does not start: {(self.folder / 'log').read_text()[-200:]}", REMEDY)
            time.sleep(0.05)

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGINT)  # a fast shutdown: its connections are cut
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGQUIT)
                self.process.wait()
            self.process = None
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def as_owner(self, program, *arguments):
        command = ["setpriv", "--pdeathsig=QUIT"]
        user = owner()
        if user:
            command += [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        return command + [str(self.bin / program), *arguments]

    def renew(self):
        """A new database, so that no row is slowed by the data of another."""
        for command in (["dropdb", "--if-exists", "--force"], ["createdb"]):
            subprocess.run([self.bin / command[0], *command[1:], "--host", self.folder, "--username=postgres", "bench"],
                           check=True, capture_output=True)

    def url(self):
        return f"postgres://postgres@/bench?host={self.folder}"

    def seconds(self):
        """Processor time of the server so far."""
        children = subprocess.run(["pgrep", "--parent", str(self.process.pid)], capture_output=True, text=True)
        return sum(map(processor_seconds, [self.process.pid, *children.stdout.split()]))

    def version(self):
        return first_line([str(self.bin / "postgres"), "--version"])
