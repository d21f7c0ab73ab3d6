"""Shared by the tests of host limits and wardens: a scratch home, and inspection of real processes. Standard library only."""
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PYTHON = [sys.executable, "-S", "-E"]
FAST = ["--grace", "200ms"]


def read(path, mode="r"):
    with open(path, mode) as file:
        return file.read()


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def demand(condition, text):
    if not condition:
        raise AssertionError(text)


def alive(pid):
    """Whether it can still run code. A zombie can't."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def marked(b, run=""):
    """Living processes that carry the mark of a run, or of this one, and belong to this home."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            environment = read(f"/proc/{pid}/environ", "rb").split(b"\0")
            ours = f"XDG_STATE_HOME={b.home}".encode() in environment
            if ours and any(e.startswith(f"STINT_RUN={run}".encode()) for e in environment) and alive(pid):
                found.append(int(pid))
    return found


def tagged(tag):
    """Living processes whose command line contains the tag, without this one, the fronts and the wardens."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        ours = words[1:2] in ([b"with"], [b"__warden"])
        if int(pid) != os.getpid() and not ours and any(tag.encode() in w for w in words) and alive(pid):
            found.append(int(pid))
    return found


PATIENCE = 4  # a busy machine takes longer for everything; only a failing test waits this long


def wait_for(condition, seconds, what):
    end = time.monotonic() + PATIENCE * seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.002)
    raise AssertionError(f"not within {PATIENCE * seconds} s: {what}")


class Bench:
    """A scratch state directory, and the processes that a test has started; all are ended with it."""

    def __init__(self, binary, root=None):
        self.binary = binary
        self.home = tempfile.mkdtemp(prefix="stint-", dir=root)
        self.folder = self.home
        self.limits = f"{self.home}/stint/limits"
        self.tag = "tag" + os.path.basename(self.home).replace("-", "")
        self.env = dict(os.environ, XDG_STATE_HOME=self.home)
        self.env.pop("STINT_RUN", None)
        self.started = []

    def start(self, *words, **options):
        process = subprocess.Popen([self.binary, *words], env=self.env, cwd=self.folder, stderr=subprocess.PIPE, **options)
        self.started.append(process)
        return process

    def run(self, *words, timeout=20):
        return subprocess.run([self.binary, *words], env=self.env, cwd=self.folder, timeout=timeout, capture_output=True, text=True)

    def sleeper(self, seconds=60):
        return [*PYTHON, "-c", f"import time; time.sleep({seconds})", self.tag]

    def hold(self, *flags, seconds=60):
        """A holder whose command is up."""
        before = set(tagged(self.tag))
        front = self.start("with", *FAST, *flags, "--", *self.sleeper(seconds))
        command = wait_for(lambda: set(tagged(self.tag)) - before, 10, "the command to be up").pop()
        return front, command

    def warden_of(self, front):
        def find():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                with contextlib.suppress(OSError):
                    parent = read(f"/proc/{pid}/stat").rpartition(")")[2].split()[1]
                    if int(parent) == front.pid and b"__warden" in read(f"/proc/{pid}/cmdline", "rb"):
                        return int(pid)
        return wait_for(find, 5, "a warden")

    def slot_free(self, name="x.0"):
        with open(f"{self.limits}/{name}.lock", "a") as f:
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except OSError:
                return False

    def close(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.stderr.close()
            process.wait()
        time.sleep(0.3)  # for wardens to finish
        end, quiet = time.monotonic() + 20, 0
        while quiet < 5 and time.monotonic() < end:  # broken variants leave processes that keep forking
            left = tagged(self.tag)
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            quiet = 0 if left else quiet + 1
        shutil.rmtree(self.home, ignore_errors=True)
