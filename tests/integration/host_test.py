#!/usr/bin/env python3
"""Host limits and wardens, with real processes, real signals and real lock files.

    host_test.py STINT [unittest arguments]        STINT_TEST_ROOT=DIR: on another file system

tests/integration/host_broken.py breaks the code, one place at a time, and requires that these tests fail.
"""
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import unittest

from host_support import FAST, PYTHON, Bench, alive, demand, read, tagged, wait_for, write

BINARY = ""


class Case(unittest.TestCase):
    def setUp(self):
        self.b = Bench(BINARY, os.environ.get("STINT_TEST_ROOT"))
        self.addCleanup(self.b.close)


def kill_both(b, front):
    """Kills both as if at once. (Stopping the warden instead does not work: it is continued when its parent dies.)"""
    warden = b.warden_of(front)
    os.kill(front.pid, signal.SIGSTOP)
    for pid in (warden, front.pid):
        os.kill(pid, signal.SIGKILL)
    front.wait()


def is_dead(pid):
    """A command that succeeds if `pid` can run no more (init may take its time to reap it)."""
    return ["sh", "-c", f"! grep -qs '^State:.[^ZX]' /proc/{pid}/status"]


# ---- the cap, under kills ---------------------------------------------------------------------------------------------

# The command has a child that left the session and ignores TERM. When the command ends by itself, so does the child; when
# it is killed, the child keeps working for a second: a slot that is free before that was freed too early.
INSIDE = r"""
import fcntl, json, os, random, signal, sys, time
home, who = sys.argv[1:3]
def alive(p):
    try: return open('/proc/%d/stat' % p).read().rpartition(')')[2].split()[0] not in 'ZX'
    except OSError: return False
ends, starts = os.pipe()
child = os.fork()
if child == 0:
    os.setsid(); signal.signal(15, signal.SIG_IGN); os.close(starts)
    if not os.read(ends, 1): time.sleep(1)
    os._exit(0)
f = open(home + '/inside', 'a+'); fcntl.flock(f, fcntl.LOCK_EX); f.seek(0)
runs = [r for r in json.loads(f.read() or '[]') if any(map(alive, r))] + [[os.getpid(), child]]
f.truncate(0); f.write(json.dumps(runs)); f.flush()
if len(runs) > 2: open(home + '/over', 'a').write('%d\n' % len(runs))
fcntl.flock(f, fcntl.LOCK_UN); open(home + '/grants', 'a').write(who + '\n')
time.sleep(0.03 + random.random() * 0.06)
os.write(starts, b'x'); os.waitpid(child, 0)
"""


def ours(b):
    """(pid, front|warden) of this test's home."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = read(f"/proc/{pid}/cmdline", "rb").split(b"\0")
            if b.tag.encode() in words and words[1] in (b"with", b"__warden"):
                found.append((int(pid), "front" if words[1] == b"with" else "warden"))
    return found


class Cap(Case):
    def test_8_contend_for_2_while_stint_and_wardens_are_killed(self):
        b, seconds = self.b, float(os.environ.get("STINT_CAP_SECONDS", "20"))
        write(f"{b.home}/inside.py", INSIDE)
        end = time.monotonic() + seconds
        slowest = [0.0] * 8
        # A leak checker runs in a process with its parent's command line; if that one is killed, its parent spins forever.
        environment = dict(b.env, ASAN_OPTIONS="detect_leaks=0")

        def loop(i):
            while time.monotonic() < end:
                since = time.monotonic()
                front = subprocess.Popen([b.binary, "with", *FAST, "x=2", "--", *PYTHON, f"{b.home}/inside.py", b.home, str(i), b.tag],
                                         env=environment, cwd=b.folder, stderr=subprocess.DEVNULL)
                try:
                    front.wait(30)
                except subprocess.TimeoutExpired:
                    front.kill()
                    front.wait()
                slowest[i] = max(slowest[i], time.monotonic() - since)

        threads = [threading.Thread(target=loop, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        kills = {"front": 0, "warden": 0}
        while time.monotonic() < end:
            kind = random.choice(list(kills))
            victims = [p for p in ours(b) if p[1] == kind]
            if victims:
                with contextlib.suppress(OSError):
                    os.kill(random.choice(victims)[0], signal.SIGKILL)
                    kills[kind] += 1
            time.sleep(0.15)
        for t in threads:
            t.join()
        wait_for(lambda: not tagged(b.tag) and not ours(b), 5, "an orphan, or a front or warden that stays")
        over = read(f"{b.home}/over").split() if os.path.exists(f"{b.home}/over") else []
        demand(not over, f"{len(over)} times more than 2 alive inside")
        who = read(f"{b.home}/grants").split()
        per = [who.count(str(i)) for i in range(8)]
        demand(min(kills.values()) > 0, f"no process was killed: {kills}")
        demand(min(per) >= 0.4 * max(per), f"starved: {per}, {kills} killed, longest round {max(slowest):.2f} s")
        demand(max(slowest) < 5, f"one of them hung: longest round {max(slowest):.2f} s")
        for slot in (0, 1):
            demand(b.slot_free(f"x.{slot}"), f"slot {slot} lost")
        demand(b.run("with", "--timeout", "5s", "--weight", "2", "x=2", "--", "true").returncode == 0, "not all slots can be taken")
        print(f"  {sum(per)} entries {per}, {kills} killed, 0 over, longest round {max(slowest):.2f} s", file=sys.stderr)

    def test_acquire_at_1_makes_the_lock_file(self):
        self.assertEqual(self.b.run("with", "x=1", "--", "true").returncode, 0)
        self.assertEqual(sorted(os.listdir(self.b.limits)), ["x.0.lock", "x.line"])
        self.assertEqual(read(f"{self.b.limits}/x.0.lock").strip(), "", "the record is erased when all processes have ended")

    def test_two_can_be_held_at_2_a_third_waits_and_no_wait_fails(self):
        b = self.b
        fronts = [b.hold("x=2")[0] for _ in range(2)]
        self.assertFalse(b.slot_free("x.0") or b.slot_free("x.1"))
        for how in (["--no-wait"], ["--timeout", "200ms"]):
            refused = b.run("with", *how, "x=2", "--", "touch", f"{b.home}/started")
            self.assertEqual(refused.returncode, 124)
            self.assertFalse(os.path.exists(f"{b.home}/started"), "no permit means: not started")
        self.assertIn("held by", refused.stderr)
        third = b.start("with", "x=2", "--", "true")
        time.sleep(0.3)
        self.assertIsNone(third.poll())
        fronts[0].terminate()
        self.assertEqual(third.wait(5), 0)


# ---- frozen, and both killed ---------------------------------------------------------------------------------------------
class Frozen(Case):
    def test_no_command_outlives_the_lease_of_a_stopped_stint(self):
        b = self.b
        front, command = b.hold("x=1", "--lease", "600ms")
        time.sleep(1.2)
        demand(alive(command), "ended although beats came")
        os.kill(front.pid, signal.SIGSTOP)
        since = time.monotonic()
        while not b.slot_free():
            time.sleep(0.001)
            demand(time.monotonic() - since < 5, "a frozen front holds the slot forever")
        demand(not alive(command), "slot free while the command lives")
        demand(b.run("with", "--timeout", "2s", "x=1", "--", "true").returncode == 0, "the slot can't be taken")
        os.kill(front.pid, signal.SIGCONT)
        demand(front.wait(5) == 125, "a front that lost its command must exit with 125")

    def test_a_suspend_of_everything_ends_nothing(self):
        """A suspended container or laptop: front and warden stop and continue; the warden runs first."""
        b = self.b
        front, command = b.hold("x=1", "--lease", "600ms")
        warden = b.warden_of(front)
        for pid in (front.pid, warden):
            os.kill(pid, signal.SIGSTOP)
        time.sleep(2)
        os.kill(warden, signal.SIGCONT)
        time.sleep(0.3)
        os.kill(front.pid, signal.SIGCONT)
        time.sleep(1)
        demand(alive(command), "frozen together and yet ended")

    def test_a_stopped_warden_is_dropped_and_its_command_ended(self):
        b = self.b
        front, command = b.hold("x=1")
        os.kill(b.warden_of(front), signal.SIGSTOP)
        front.terminate()
        demand(front.wait(15) == 137, "status of a dropped warden's command")
        demand(not alive(command) and b.slot_free(), "left behind")

    def test_a_stopped_warden_wakes_up_when_stint_is_killed(self):
        b = self.b
        front, command = b.hold("x=1")
        warden = b.warden_of(front)
        os.kill(warden, signal.SIGSTOP)
        wait_for(lambda: read(f"/proc/{warden}/stat").rpartition(")")[2].split()[0] == "T", 5, "the stop")
        front.kill()
        wait_for(lambda: not alive(command) and b.slot_free(), 5, "the end of the command")

    def test_a_stopped_waiter_is_passed_over_and_keeps_its_place(self):
        b = self.b
        front, _ = b.hold("x=1")
        waiters = in_line(b, 3)
        os.kill(waiters[0].pid, signal.SIGSTOP)
        front.terminate()
        for w in waiters[1:]:
            demand(w.wait(10) == 0, "blocked behind a stopped waiter")
        os.kill(waiters[0].pid, signal.SIGCONT)
        demand(waiters[0].wait(5) == 0, "a stopped waiter must get its turn once continued")

    def test_both_killed_the_next_start_sweeps(self):
        b = self.b
        for cgroup in ([], ["--no-cgroup"]):
            for _ in range(5):
                front, command = b.hold("x=1", *cgroup)
                kill_both(b, front)
                wait_for(b.slot_free, 5, "the kernel to free the slot")
                demand(alive(command), "no process to sweep: this test proves nothing")
                demand(b.run("with", "x=1", "--", *is_dead(command)).returncode == 0, "granted while the dead run's command lived")

    def test_both_killed_above_a_lowered_n(self):
        """That slot is never taken again, yet its orphan must still be counted."""
        b = self.b
        hold0, _ = b.hold("x=2")
        front, command = b.hold("x=2")
        kill_both(b, front)
        hold0.terminate()
        hold0.wait()
        demand(alive(command), "no process to sweep")
        demand("1 of 1 held" in b.run("limits", "x=1").stdout, "the orphan counts")
        demand(b.run("with", "x=1", "--", *is_dead(command)).returncode == 0, "orphan above N was not ended")
        demand("0 of 1 held" in b.run("limits", "x").stdout, "a slot above N whose processes have ended is free")

    def test_a_slot_without_live_processes_is_not_held(self):
        """Even before the next caller: at any index, also above a lowered N."""
        b = self.b
        for cgroup in ([], ["--no-cgroup"]):
            b.run("limits", "x=3")
            holds = [b.hold("x=3", *cgroup) for _ in range(3)]
            for front, command in holds:
                kill_both(b, front)
                os.kill(command, signal.SIGKILL)
            wait_for(lambda: not any(alive(command) for _, command in holds), 5, "all to be gone")
            b.run("limits", "x=1")
            demand("0 of 1 held" in b.run("limits", "x").stdout, b.run("limits", "x").stdout)
            demand(b.run("limits", "x", "--json").stdout.count('"slot"') == 0, "nothing is listed")
            demand(b.run("with", "x=3", "--", "true").returncode == 0, "the next caller")
            demand(not any(read(f"{b.limits}/{name}").strip() for name in os.listdir(b.limits) if name.endswith(".lock")), "records are erased")


# ---- the line and the slots ----------------------------------------------------------------------------------------------
def in_line(b, count, *flags):
    """Waiters that joined one after the other."""
    waiters = []
    for i in range(count):
        tickets = os.path.getsize(f"{b.limits}/x.line")
        waiters.append(b.start("with", *FAST, *flags, "x=1", "--", "sh", "-c", f"echo {i} >> {b.home}/order"))
        wait_for(lambda: os.path.getsize(f"{b.limits}/x.line") > tickets, 5, "a ticket")
        time.sleep(0.01)
    return waiters


class Line(Case):
    def order(self):
        return read(f"{self.b.home}/order").split()

    def test_flock_and_stint_exclude_each_other_and_its_release_wakes_us(self):
        b = self.b
        demand(b.run("with", "x=1", "--", "true").returncode == 0, "plain run")
        slot = f"{b.limits}/x.0.lock"
        holder = subprocess.Popen(["flock", slot, "sleep", "1.6"])  # ends between two slow polls, far from either
        time.sleep(0.3)
        refused = b.run("with", "--timeout", "100ms", "x=1", "--", "true")
        demand(refused.returncode == 124 and "another tool" in refused.stderr, f"flock ignored: {refused}")
        waiter = b.start("with", "x=1", "--", "true")
        holder.wait()
        since = time.monotonic()
        waiter.wait(5)
        woken = time.monotonic() - since
        demand(woken < 0.5, f"woken only after {woken:.3f} s")
        front, _ = b.hold("x=1")
        demand(subprocess.run(["flock", "-n", slot, "true"]).returncode == 1, "our slot is not flocked")
        front.terminate()
        front.wait()
        demand(subprocess.run(["flock", "-n", slot, "true"]).returncode == 0, "slot is locked after the end")

    def test_dead_and_cancelled_waiters_leave_the_order_alone(self):
        b = self.b
        front, _ = b.hold("x=1")
        waiters = in_line(b, 8)
        waiters[3].kill()  # crashed in the middle
        since = time.monotonic()
        waiters[5].terminate()  # cancelled in the middle
        demand(waiters[5].wait(5) == 143, "cancelled waiter's status")
        left = time.monotonic() - since
        demand(left < 0.5, f"a cancelled waiter took {left:.2f} s")
        waiters[0].kill()  # crashed head
        time.sleep(0.05)
        since = time.monotonic()
        front.terminate()
        for i in (1, 2, 4, 6, 7):
            demand(waiters[i].wait(10) == 0, "a waiter behind a dead one")
        took = time.monotonic() - since
        self.assertEqual(self.order(), ["1", "2", "4", "6", "7"])
        demand(took < 0.9, f"5 hand-overs took {took:.2f} s")

    def test_held_slots_above_a_lowered_n_count_and_a_raised_one_wakes(self):
        b = self.b
        fronts = [b.hold("x=3")[0] for _ in range(3)]
        b.run("limits", "x=1")
        fronts[0].terminate()
        fronts[0].wait()
        late = b.run("with", "--timeout", "300ms", "x=3", "--", "true")
        demand(late.returncode == 124, "two held above N=1, slot 0 free, and it was admitted")
        fronts[1].terminate()
        fronts[1].wait()
        waiter = b.start("with", "x=3", "--", "true")
        time.sleep(0.3)
        demand(waiter.poll() is None, "one held at N=1 and it was admitted")
        since = time.monotonic()
        b.run("limits", "x=2")
        demand(waiter.wait(5) == 0, "raised and not woken")
        woken = time.monotonic() - since
        demand(woken < 0.5, f"raised, woken after {woken:.2f} s")
        heavy = b.run("with", "--weight", "3", "x=9", "--", "true")
        demand(heavy.returncode == 125 and "more than its capacity" in heavy.stderr, "weight 3 of 2 must fail at once")

    def test_a_caller_with_a_different_n_is_refused_naming_both(self):
        b = self.b
        fronts = [b.hold("x=3")[0] for _ in range(2)]
        for other in ("x=2", "x=4"):
            out = b.run("with", "--timeout", "200ms", other, "--", "true")
            demand(out.returncode == 125 and other in out.stderr and "holds it as x=3" in out.stderr, f"a caller that counts to another number is refused: {out}")
        demand(b.run("with", "--timeout", "2s", "x=3", "--", "true").returncode == 0, "one that counts to 3 may enter")
        for front in fronts:
            front.terminate()
            front.wait()

    def test_a_heavy_head_is_not_starved(self):
        b = self.b
        fronts = [b.hold("x=3")[0] for _ in range(3)]
        heavy = b.start("with", *FAST, "--weight", "3", "x=3", "--", "sh", "-c", f"echo heavy >> {b.home}/order")
        time.sleep(0.3)
        light = b.start("with", *FAST, "x=3", "--", "sh", "-c", f"echo light >> {b.home}/order")
        time.sleep(0.3)
        for front in fronts:
            front.terminate()
            front.wait()
            time.sleep(0.1)
        demand(heavy.wait(5) == 0 and light.wait(5) == 0, "stuck")
        self.assertEqual(self.order(), ["heavy", "light"])

    def test_a_slow_head_is_not_overtaken(self):
        """A stopped head is passed over at the slow poll, a second after the last event; a quicker waiter does not overtake."""
        b = self.b
        front, _ = b.hold("x=1")
        head, late = in_line(b, 2)
        os.kill(head.pid, signal.SIGSTOP)
        front.terminate()
        front.wait()
        time.sleep(0.4)
        demand(late.poll() is None and not os.path.exists(f"{b.home}/order"), "overtaken at once")
        os.kill(head.pid, signal.SIGCONT)
        demand(head.wait(5) == 0 and late.wait(5) == 0, "stuck")
        self.assertEqual(self.order(), ["0", "1"])

    def test_several_limits_in_any_order_do_not_deadlock(self):
        b = self.b
        ends = time.monotonic() + 3
        codes = []

        def pair(names):
            while time.monotonic() < ends:
                codes.append(b.run("with", *names, "--", "true").returncode)

        sets = (["a=1", "b=1"], ["b=1", "a=1"], ["b=1"], ["c=1", "b=1", "a=1"])
        threads = [threading.Thread(target=pair, args=(n,)) for n in sets]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(set(codes), {0})

    def test_a_nested_call_does_not_wait_for_its_own_run(self):
        b = self.b
        out = b.run("with", "x=1", "--", b.binary, "with", "x=1", "--timeout", "2s", "--", "echo", "inner")
        self.assertEqual((out.returncode, out.stdout), (0, "inner\n"), out.stderr)
        more = b.run("with", "x=2", "--", b.binary, "with", "x=2", "--weight", "2", "--timeout", "2s", "--", "true")
        self.assertEqual(more.returncode, 125, "it holds one already and would wait for itself")
        self.assertIn("this run already holds 1 of its units", more.stderr)

    def test_works_by_polling_where_inotify_does_not(self):
        b = self.b
        front, _ = b.hold("x=1")
        waiters = in_line(b, 4, "--no-inotify")
        front.terminate()
        for w in waiters:
            demand(w.wait(5) == 0, "stuck without inotify")
        self.assertEqual(self.order(), ["0", "1", "2", "3"])

    def test_the_line_is_bounded(self):
        b = self.b
        for _ in range(5):
            loops = [threading.Thread(target=lambda: [b.run("with", "x=4", "--", "true") for _ in range(15)]) for _ in range(4)]
            for t in loops:
                t.start()
            for t in loops:
                t.join()
        size = os.path.getsize(f"{b.limits}/x.line")
        demand(size <= 137 * 160, f"the line has grown to {size} bytes after 300 tickets")

    def test_a_listing_names_holders_and_waiters_without_side_effects(self):
        b = self.b
        front, _ = b.hold("x=1", "--label", "holder one")
        waiters = in_line(b, 2, "--label", "w")
        listing = json.loads(b.run("limits", "--json", "x").stdout)["limits"][0]
        self.assertEqual((listing["capacity"], listing["holders"][0]["label"]), (1, "holder one"))
        self.assertEqual(listing["holders"][0]["pid"], front.pid)
        self.assertEqual([w["pid"] for w in listing["waiters"]], [w.pid for w in waiters])
        self.assertIn("1 of 1 held, 2 waiting", b.run("limits").stdout)


# ---- descriptors, statuses, bad places -----------------------------------------------------------------------------------
class Edges(Case):
    def test_the_command_gets_only_the_callers_descriptors(self):
        b = self.b
        with open("/dev/null") as extra:
            os.set_inheritable(extra.fileno(), True)
            script = ("import os,json; print(json.dumps([(int(n), os.readlink('/proc/self/fd/'+n)) "
                      "for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/'+n)]))")
            out = subprocess.run([b.binary, "with", "x=2", "y=1", "--", *PYTHON, "-c", script], env=b.env, cwd=b.folder,
                                 stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, pass_fds=[extra.fileno()], timeout=10)
            seen = {n for n, _ in json.loads(out.stdout)}
            demand(seen == {0, 1, 2, extra.fileno()}, f"the command sees {json.loads(out.stdout)}")
        # The front and the warden hold the lock, not the command: with both killed, it is free although the command lives.
        front, command = b.hold("x=1")
        kill_both(b, front)
        wait_for(b.slot_free, 2, "the lock to be free of the command")
        demand(alive(command), "the command died with its keepers")
        os.kill(command, signal.SIGKILL)

    def test_exit_statuses(self):
        b = self.b
        for words, status in ((["true"], 0), (["sh", "-c", "exit 7"], 7), (["/nonexistent"], 127), (["/etc/passwd"], 126),
                              (["sh", "-c", "kill -TERM $$"], 143)):
            self.assertEqual(b.run("with", "x=1", "--", *words).returncode, status, words)
        front, _ = b.hold("x=1")
        front.send_signal(signal.SIGINT)
        self.assertEqual(front.wait(5), 130)

    def test_invalid_arguments_are_refused(self):
        b = self.b
        for words in (["x=0"], ["x=-1"], ["x=two"], ["x=1099511627776"], ["../x=1"], ["a/b"], [".x"], ["x=1", "--weight", "0"],
                      ["x=1", "--nonsense"], ["x=1", "--weight", "2"], ["x=1", "--timeout", "soon"], ["x=1", "--timeout", "1s", "--no-wait"], []):
            out = b.run("with", *words, "--", "true")
            self.assertEqual(out.returncode, 125, f"{words}: {out}")
            self.assertTrue(out.stderr.strip(), words)
        self.assertEqual(b.run("with", "x").returncode, 125)

    def test_an_agents_limit_lives_in_its_repository(self):
        b = self.b
        self.assertEqual(b.run("with", "agent:review=1", "--", "true").returncode, 0)
        self.assertTrue(os.path.exists(f"{b.home}/.stint/semaphores/review.0.lock"))
        subprocess.run(["git", "init", "-q", b.home], check=True)
        self.assertEqual(b.run("with", "agent:review=1", "--", "true").returncode, 0)
        self.assertTrue(os.path.exists(f"{b.home}/.git/stint/semaphores/review.0.lock"))
        os.rename(f"{b.home}/.stint", f"{b.home}/.coven")
        self.assertEqual(b.run("with", "agent:review=1", "--", "true").returncode, 0)
        self.assertTrue(os.path.exists(f"{b.home}/.git/coven/semaphores/review.0.lock"), "both tools share one cap")

    def test_the_configuration_decides_n_and_a_differing_one_is_refused(self):
        b = self.b
        write(f"{b.home}/stint.toml", "[limits]\ngpu = 2\n")
        self.assertEqual(b.run("with", "gpu", "--weight", "2", "--", "true").returncode, 0)
        out = b.run("with", "gpu=3", "--", "true")
        self.assertEqual(out.returncode, 125)
        self.assertIn("gpu=3 asks for 3, but stint.toml:2 sets 2", out.stderr)

    def test_an_unwritable_place_is_named_with_the_remedy(self):
        b = self.b
        os.makedirs(f"{b.home}/stint")
        open(f"{b.home}/stint/limits", "w").close()  # a file instead of a directory; even root can't write into it
        out = b.run("with", "x=1", "--", "true", timeout=5)
        self.assertEqual(out.returncode, 125)
        self.assertIn("STINT_LIMITS_DIR", out.stderr)
        b.env["STINT_LIMITS_DIR"] = f"{b.home}/elsewhere"
        self.assertEqual(b.run("with", "x=1", "--", "true").returncode, 0)
        self.assertTrue(os.path.exists(f"{b.home}/elsewhere/x.0.lock"))

    def test_a_full_disk_is_an_error_and_nothing_hangs(self):
        b = self.b
        full = f"{b.home}/full"
        os.mkdir(full)
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", full]).returncode != 0:
            self.skipTest("needs root and a mount")
        self.addCleanup(lambda: subprocess.run(["umount", "-l", full]))
        b.env["STINT_LIMITS_DIR"] = full
        self.assertEqual(b.run("with", "x=1", "--", "true").returncode, 0)
        with contextlib.suppress(OSError), open(f"{full}/ballast", "wb") as ballast:
            while True:
                ballast.write(b"x" * 4096)
                ballast.flush()
        out = b.run("with", "y=1", "--", "true", timeout=5)
        self.assertEqual(out.returncode, 125)
        self.assertIn("No space left", out.stderr)
        os.remove(f"{full}/ballast")
        self.assertEqual(b.run("with", "y=1", "--", "true").returncode, 0)

    def test_many_runs_leave_nothing_behind(self):
        b = self.b
        count = int(os.environ.get("STINT_MANY_RUNS", "200"))
        before = {p for p in os.listdir("/proc") if p.isdigit()}
        for _ in range(count):
            self.assertEqual(b.run("with", "x=2", "--", "sh", "-c", "true &").returncode, 0)
        self.assertEqual(ours(b) + tagged(b.tag), [])
        zombies = [p for p in os.listdir("/proc") if p.isdigit() and p not in before and is_zombie(p)]
        self.assertEqual(zombies, [])
        self.assertEqual(sorted(os.listdir(b.limits)), ["x.0.lock", "x.1.lock", "x.line"])


def is_zombie(pid):
    """Our own: other processes on this machine may have theirs."""
    try:
        state, parent = read(f"/proc/{pid}/stat").rpartition(")")[2].split()[:2]
        return state == "Z" and int(parent) == os.getpid()
    except OSError:
        return False


if __name__ == "__main__":
    BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
