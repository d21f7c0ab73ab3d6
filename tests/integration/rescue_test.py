#!/usr/bin/env python3
"""Rescue of agents whose daemon is killed, however they react. `rescue_test.py STINT [CLASS…]`

`STINT_SEED=N` repeats the same agents and moments."""
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
import unittest

import daemon_support
from host_support import alive, read, wait_for, write

# How an agent reacts to a signal, and which process works: it writes its mark into a journal forever.
AGENT = """\
manner=$1 way=$2 journal=$3 mark=${4:-$STINT_RUN}
case $manner in
  stubborn) trap '' TERM INT HUP ;;
  late) trap 'sleep 0.7; exit 0' TERM ;;
esac
rest() { while :; do sleep 1; done; }
case $way in
  itself) while :; do echo "$mark" >> "$journal"; sleep 0.03; done ;;
  child) sh "$0" "$manner" itself "$journal" "$mark" & wait ;;
  session) (setsid sh "$0" "$manner" itself "$journal" "$mark" &); rest ;;
  wiped) exec env -i sh "$0" "$manner" itself "$journal" "$mark" ;;
  wiped_child) (env -i setsid sh "$0" "$manner" itself "$journal" "$mark" &); rest ;;
  wiped_grandchild) (setsid sh "$0" "$manner" wiped_child "$journal" "$mark" &); rest ;;
esac
"""
MANNERS = ("plain", "stubborn", "late")
WAYS = ("itself", "child", "session", "wiped", "wiped_child", "wiped_grandchild")
MARKED_WAYS = WAYS[:3]
# Hides cgroups from one process and its descendants.
NO_CGROUPS = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh")
GRACE_S = 5


def own_cgroup():
    """Our folder in cgroup v2, if runs can create cgroups below it; else none."""
    mounts = [line.split()[4] for line in read("/proc/self/mountinfo").splitlines() if " - cgroup2 " in line]
    path = next((line[3:] for line in read("/proc/self/cgroup").splitlines() if line.startswith("0::")), None)
    folder = mounts[0] + path.rstrip("/") if mounts and path else ""
    return folder if folder and os.access(f"{folder}/cgroup.procs", os.W_OK) else ""


class Case(daemon_support.Case):
    settings = "[pool]\nworkers = 20\nautoscale = false\n"
    def setUp(self):
        super().setUp()
        self.journal, self.script = f"{self.project}/journal", f"{self.project}/agent.sh"
        write(self.journal, "")
        write(self.script, AGENT)
        self.agent("any", f'args: [{{name: manner, required: true}}, {{name: way, required: true}}]\n'
                          f'command: [sh, "{self.script}", "{{{{manner}}}}", "{{{{way}}}}", "{self.journal}"]\n')
        self.addCleanup(self.end_workers)

    def workers(self):
        """Processes of agents, even with a changed environment."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                words = read(f"/proc/{pid}/cmdline", "rb").split(b"\0")
                if self.script.encode() in words and words[1:2] != [b"__warden"] and alive(pid):
                    found.append(int(pid))
        return found

    def end_workers(self):
        for _ in range(3):
            for pid in self.workers():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)

    def marks(self):
        return read(self.journal).split()

    def cgroups_of(self, runs):
        folder = own_cgroup()
        return [name for name in os.listdir(folder) if name.removeprefix("stint-").split(":")[0] in runs] if folder else []


class Rescue(Case):
    def one_round(self, draw, cgroups, with_wardens):
        ways = WAYS if cgroups or not with_wardens else MARKED_WAYS  # else they can't be found
        # One of each kind: the most likely failures are in every round.
        drawn = [(manner, draw.choice(ways)) for manner in MANNERS] + [(draw.choice(MANNERS), draw.choice(ways)) for _ in range(2)]
        delay = draw.choice((0, draw.uniform(0, 1.2)))
        self.note = f"cgroups {cgroups}, wardens killed {with_wardens}, {drawn}, restarted after {delay:.2f} s"
        before = NO_CGROUPS if own_cgroup() and not cgroups else ()  # where none is delegated, none needs to be hidden
        d = self.serve(before=before)
        runs = [d.submit("any", args={"manner": manner, "way": way}) for manner, way in drawn]
        wait_for(lambda: {f"{run}:1" for run in runs} <= set(self.marks()), 30, "all to work")
        if with_wardens:
            self.kill_with_wardens(d)
        else:
            d.process.kill()
            d.process.wait()
        killed = time.monotonic()
        time.sleep(delay)
        # A command that only reads does not wait for the end: a stubborn agent is still in its grace period when it answers.
        self.read_only("ls", before)
        if not with_wardens and time.monotonic() - killed < GRACE_S - 1:
            self.assertTrue(self.workers(), "it waited for them")
        d = self.serve(before=before)
        wait_for(lambda: {f"{run}:2" for run in runs} <= set(self.marks()), 40, "all to begin again")
        marks = self.marks()
        for run in runs:
            self.assertNotIn(f"{run}:1", marks[marks.index(f"{run}:2"):], "never both at once")
        # The same without a later daemon.
        if with_wardens:
            self.kill_with_wardens(d)
            self.read_only("ls", before)
        else:
            d.process.kill()
            d.process.wait()
        wait_for(lambda: not self.workers(), 20, "all to be gone")
        if cgroups and not with_wardens:
            wait_for(lambda: not self.cgroups_of(runs), 10, "no cgroup to be left")
        self.stint("cancel", *runs)  # the next round has its own runs
        return runs

    def read_only(self, command, before):
        done = subprocess.run([*before, daemon_support.STINT, command], cwd=self.project, env=self.b.env, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)

    def rounds(self, cgroups):
        seed = int(os.environ.get("STINT_SEED", time.time_ns() % 1_000_000))
        draw = random.Random(seed)
        for with_wardens in (False, True):
            self.note = ""
            try:
                runs = self.one_round(draw, cgroups, with_wardens)
            except AssertionError as error:
                raise AssertionError(f"STINT_SEED={seed}: {self.note}: {error}") from error
            if cgroups and with_wardens:
                # The next daemon removes those that no process was left to remove.
                d = self.serve("--workers", "0")
                wait_for(lambda: not self.cgroups_of(runs), 20, f"STINT_SEED={seed}: empty cgroups to be removed")
                d.close()

    @unittest.skipUnless(own_cgroup(), "no cgroup is delegated here")
    def test_any_agent_begins_again_once_and_leaves_nothing(self):
        self.rounds(cgroups=True)

    @unittest.skipUnless(os.geteuid() == 0, "only root can hide the cgroups of this host")
    def test_any_agent_begins_again_once_and_leaves_nothing_without_cgroups(self):
        self.rounds(cgroups=False)

    def begin_stubborn(self):
        """A daemon that has just replaced a killed one, whose agent resists."""
        d = self.serve()
        run = d.submit("any", args={"manner": "stubborn", "way": "session"})
        wait_for(lambda: f"{run}:1" in self.marks(), 20, "it to work")
        d.process.kill()
        d.process.wait()
        d = self.serve()
        wait_for(lambda: (lambda seen: seen["state"] == "running" and seen["fence"] == 2)(d.run(run)), 20, "it to be taken")
        return d, run

    def test_why_names_the_wait_for_an_earlier_attempt_and_a_cancel_ends_it(self):
        d, run = self.begin_stubborn()
        named = lambda: "leftovers" in [each["reason"] for each in d.get(f"/v1/runs/{run}/why")["reasons"]]
        # The claim comes first, and a busy machine may be slower than the grace period.
        wait_for(lambda: named() or f"{run}:2" in self.marks(), 20, "the reason")
        status, receipt, _ = d.ask("POST", f"/v1/runs/{run}/cancel", timeout=60)
        self.assertEqual((status, receipt["state"]), (200, "cancelled"))
        self.assertEqual(self.workers(), [])

    def test_a_daemon_that_waits_for_an_earlier_attempt_can_be_drained(self):
        d, run = self.begin_stubborn()
        d.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        d.process.send_signal(signal.SIGTERM)
        self.assertEqual(d.process.wait(30), 0)
        wait_for(lambda: not self.workers(), 10, "all to be gone")


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
