"""Limits between processes as they are usually made by hand, and commands that hold them.

    host_peer.py handover impl=poll|flock rounds=N [end=kill]     a process gives the lock back, or is killed → the next holds it
    host_peer.py grants impl=poll seconds=S processes=P slots=N   N lock files, tried every 100 ms
    host_peer.py handover.command rounds=N run='TOOL … {inside}' inside=PROGRAM   the end of a command → the start of the next
    host_peer.py command n=N run='TOOL … true'                    a command from its start to its end

One JSON line per sample, as all peers print them. `{dir}` in `run` is a folder for locks, `{inside}` a command that says
when it runs (peers/cpp/inside.cpp).
"""
import fcntl
import json
import mmap
import os
import shlex
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

POLL_S = 0.1
ASLEEP_S = 0.003  # after which a waiter is surely in the kernel
HOLD_S = 0.001
COMMAND_ASLEEP_S = 0.4  # GNU sem is a Perl program; it polls, too


class Args:
    def __init__(self, words):
        self.bench = words[0]
        self.values = dict(word.split("=", 1) for word in words[1:])

    def number(self, key):
        return int(self.values[key])

    def emit(self, bench, value, unit):
        params = {key: int(text) if text.isdigit() else text for key, text in self.values.items()}
        print(json.dumps({"bench": bench, "peer": self.values.get("impl", "command"), "value": value, "unit": unit, "params": params}), flush=True)

    def emit_percentiles(self, bench, values, unit):
        self.emit(bench + ".p50", percentile(values, 0.5), unit)
        self.emit(bench + ".p99", percentile(values, 0.99), unit)


def percentile(values, share):
    return sorted(values)[int(share * (len(values) - 1))]


class Shared:
    """A few 64-bit numbers that forked processes share."""

    def __init__(self, count):
        self.memory = mmap.mmap(-1, 8 * count)

    def __getitem__(self, index):
        return struct.unpack_from("q", self.memory, 8 * index)[0]

    def __setitem__(self, index, value):
        struct.pack_into("q", self.memory, 8 * index, value)

    def wait(self, index, value):
        while self[index] != value:
            time.sleep(0.00005)


def fork(work):
    pid = os.fork()
    if pid:
        return pid
    work()
    os._exit(0)


def open_lock(path):
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def take_blocking(paths):
    lock = open_lock(paths[0])
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def take_polling(paths):
    while True:
        for path in paths:
            lock = open_lock(path)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
            except BlockingIOError:
                os.close(lock)
        time.sleep(POLL_S)


TAKE = {"flock": take_blocking, "poll": take_polling}
TURN, RELEASED, GOT = 0, 1, 2
HELD, WAITING, RELEASE, TAKEN = 1, 2, 3, 4


def handover(args, folder):
    take, kill = TAKE[args.values["impl"]], args.values.get("end") == "kill"
    paths = [folder + "/x.0.lock"]
    shared = Shared(3)
    latencies = []

    def hold():
        lock = take(paths)
        shared[TURN] = HELD
        shared.wait(TURN, RELEASE)
        shared[RELEASED] = time.monotonic_ns()
        if kill:
            os.kill(os.getpid(), signal.SIGKILL)
        os.close(lock)

    def wait():
        shared[TURN] = WAITING
        take(paths)
        shared[GOT] = time.monotonic_ns()
        shared[TURN] = TAKEN

    for index in range(args.number("rounds")):
        holder = fork(hold)
        shared.wait(TURN, HELD)
        waiter = fork(wait)
        shared.wait(TURN, WAITING)
        # At any moment of the other's poll, as it would be.
        time.sleep(ASLEEP_S + (POLL_S * (index * 0.618 % 1) if take is take_polling else 0))
        shared[TURN] = RELEASE
        shared.wait(TURN, TAKEN)
        latencies.append((shared[GOT] - shared[RELEASED]) / 1e3)
        os.waitpid(holder, 0)
        os.waitpid(waiter, 0)
    args.emit_percentiles("handover", latencies[1:], "us")


def grants(args, folder):
    processes, slots, seconds = args.number("processes"), args.number("slots"), args.number("seconds")
    paths = [f"{folder}/x.{index}.lock" for index in range(slots)]
    shared = Shared(processes)
    end = time.monotonic() + seconds
    readers = []

    def contend(self, out):
        waits = []
        while time.monotonic() < end:
            since = time.monotonic()
            lock = take_polling(paths)
            waits.append((time.monotonic() - since) * 1e3)
            time.sleep(HOLD_S)
            shared[self] += 1
            os.close(lock)
        os.write(out, f"{percentile(waits, 0.99) if waits else seconds * 1e3}\n".encode())

    pids = []
    for index in range(processes):
        ours, theirs = os.pipe()
        pids.append(fork(lambda self=index, out=theirs: contend(self, out)))
        os.close(theirs)
        readers.append(ours)
    for pid in pids:
        os.waitpid(pid, 0)
    counts = [shared[index] for index in range(processes)]
    args.emit("grants.rate", sum(counts) / seconds, "grants/s")
    args.emit("grants.wait_p99", max(float(os.read(reader, 100)) for reader in readers), "ms")
    args.emit("grants.fairness", min(counts) / max(max(counts), 1), "ratio")


def handover_command(args, folder):
    latencies = []

    def start(index):
        command = args.values["run"].format(dir=folder, inside=f"{args.values['inside']} {folder}/said.{index}")
        return subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)

    def said(index, lines):
        while True:
            try:
                with open(f"{folder}/said.{index}") as file:
                    text = file.read()
            except FileNotFoundError:
                text = ""
            if text.count("\n") >= lines:
                return int(text.split("\n")[lines - 1])
            time.sleep(0.001)

    rounds = args.number("rounds")
    current = start(0)
    said(0, 1)
    for index in range(rounds):
        following = start(index + 1)
        time.sleep(COMMAND_ASLEEP_S)
        current.stdin.close()
        ended, began = said(index, 2), said(index + 1, 1)
        latencies.append((began - ended) / 1e6)
        current.wait()
        current = following
    current.stdin.close()
    current.wait()
    args.emit_percentiles("handover.command", latencies[1:], "ms")


def command(args, folder):
    words = shlex.split(args.values["run"].format(dir=folder))
    program = next(path for path in ([words[0]] if "/" in words[0] else [f"{part}/{words[0]}" for part in os.environ["PATH"].split(":")])
                   if os.access(path, os.X_OK))
    nothing = os.open("/dev/null", os.O_WRONLY)
    times = []
    for _ in range(args.number("n") + 1):
        start = time.perf_counter_ns()
        pid = os.posix_spawn(program, words, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, nothing, 1)])
        status = os.waitpid(pid, 0)[1]
        times.append((time.perf_counter_ns() - start) / 1e6)
        if status:
            sys.exit(f"{words}: status {status}")
    args.emit("command", statistics.median(times[1:]), "ms")


BENCHES = {"handover": handover, "grants": grants, "handover.command": handover_command, "command": command}

if __name__ == "__main__":
    if sys.argv[1:2] == [] or sys.argv[1] not in BENCHES:
        sys.exit(f"usage: host_peer.py BENCH key=value…, one of: {' '.join(BENCHES)}")
    with tempfile.TemporaryDirectory(prefix="stint-bench-") as temporary:
        os.environ |= {"STINT_LIMITS_DIR": temporary, "PARALLEL_HOME": temporary}  # nothing is left in the user's own
        BENCHES[sys.argv[1]](Args(sys.argv[1:]), temporary)
