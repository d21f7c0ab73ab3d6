#!/usr/bin/env python3
"""Process trees that do not want to end, under a warden, with real processes and real signals.

    host_tree_test.py STINT [unittest arguments]        STINT_TEST_ROOT=DIR: on another file system

tests/integration/host_broken.py breaks the code, one place at a time, and demands that these go red.
"""
import contextlib
import os
import select
import signal
import sys
import time
import unittest

from host_support import FAST, PYTHON, Bench, demand, read, tagged, wait_for, write

BINARY = ""

TREE = r"""
import os, signal, subprocess, sys, time
tag = sys.argv[1]
stubborn = 'import signal,time; signal.signal(15,1); signal.signal(2,1); time.sleep(300)'
signal.signal(15, 1); signal.signal(2, 1)
def daemon(what):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: what()
        os._exit(0)
    os.wait()
def sleeper(): os.execv(sys.executable, [sys.executable, '-S', '-E', '-c', stubborn, tag])
def hopper():  # a new process every 2 ms, each leaving its parent behind; ends by itself if the code under test is broken
    end = time.monotonic() + 60
    while time.monotonic() < end:
        time.sleep(0.002)
        if os.fork(): os._exit(0)
for _ in range(5): daemon(sleeper)
daemon(hopper)
for i in range(5): subprocess.Popen([sys.executable, '-S', '-E', '-c', stubborn, tag], start_new_session=i % 2 == 0)
open(sys.argv[2] + '.new', 'w').write(str(os.getpid())); os.rename(sys.argv[2] + '.new', sys.argv[2]); time.sleep(300)
"""


class Tree(unittest.TestCase):
    def setUp(self):
        self.b = Bench(BINARY, os.environ.get("STINT_TEST_ROOT"))
        self.addCleanup(self.b.close)

    def end_a_tree(self, how, cgroup):
        b = self.b
        write(f"{b.home}/tree.py", TREE)
        up = f"{b.home}/up"
        with contextlib.suppress(OSError):
            os.remove(up)
        read_end, write_end = os.pipe()
        front = b.start("with", *FAST, *cgroup, "x=1", "--", *PYTHON, f"{b.home}/tree.py", b.tag, up, stdout=write_end)
        os.close(write_end)
        wait_for(lambda: os.path.exists(up) and len(tagged(b.tag)) >= 12, 20, "the tree to be up")
        warden = b.warden_of(front)
        root = int(read(up))
        since = time.monotonic()
        victim = {"TERM to front": front.pid, "KILL front": front.pid, "KILL warden": warden, "command KILLed": root}[how]
        os.kill(victim, signal.SIGTERM if how.startswith("TERM") else signal.SIGKILL)
        while not b.slot_free():
            demand(time.monotonic() - since < 5, f"{how} {cgroup}: still held; only the lease of 10 s would end it")
            time.sleep(0.0005)
        took = time.monotonic() - since
        left = tagged(b.tag)
        demand(not left, f"{how} {cgroup}: slot free with {len(left)} alive")
        front.wait(5)
        demand(select.select([read_end], [], [], 1)[0] and os.read(read_end, 1) == b"", "stdout is still open somewhere")
        os.close(read_end)
        return took

    def end_three(self, how):
        for cgroup in ([], ["--no-cgroup"]):
            times = [self.end_a_tree(how, cgroup) for _ in range(3)]
            print(f"  {how}, {'walks' if cgroup else 'cgroup'}: {min(times) * 1000:.0f}–{max(times) * 1000:.0f} ms", file=sys.stderr)

    def test_13_stubborn_processes_end_when_stint_gets_term(self):
        self.end_three("TERM to front")

    def test_13_stubborn_processes_end_when_stint_is_killed(self):
        self.end_three("KILL front")

    def test_13_stubborn_processes_end_when_the_warden_is_killed(self):
        self.end_three("KILL warden")

    def test_13_stubborn_processes_end_when_their_command_is_killed(self):
        self.end_three("command KILLed")

    def test_short_leftovers_may_finish_long_ones_are_ended(self):
        b = self.b
        out = b.run("with", "x=1", "--", "bash", "-c", "echo kept > >(sleep 0.05; cat)")
        demand(out.stdout == "kept\n", f"output of a short leftover lost: {out.stdout!r}")
        left = f"setsid {' '.join(PYTHON)} -c 'import time; time.sleep(60)' {b.tag} & exit 3"
        out = b.run("with", *FAST, "x=1", "--", "sh", "-c", left)
        demand(out.returncode == 3 and not tagged(b.tag), "leftover still there")


if __name__ == "__main__":
    BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
