#!/usr/bin/env python3
"""Host limits and wardens under attack: hostile files, odd callers, terminals, kills at any moment.

    host_hostile_test.py STINT [unittest arguments]

Each test failed before the code handled its case.
"""
import contextlib
import glob
import json
import os
import pty
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
import unittest

from host_support import FAST, PYTHON, Bench, alive, read, tagged, wait_for, write

BINARY = ""


class Case(unittest.TestCase):
    def setUp(self):
        self.b = Bench(BINARY, os.environ.get("STINT_TEST_ROOT"))
        self.addCleanup(self.b.close)
        os.makedirs(self.b.limits)

    def path(self, name):
        return f"{self.b.limits}/{name}"

    def clear(self):
        shutil.rmtree(self.b.limits)
        os.makedirs(self.b.limits)

    def run_with(self, *words, timeout=5, **options):
        """Runs `stint with` like an unusual caller; kills it if it does not end."""
        words = [self.b.binary, "with", *FAST, *words]
        return subprocess.run(words, env=self.b.env, cwd=self.b.folder, timeout=timeout, capture_output=True, text=True, **options)

    def assert_refused(self, done, text):
        self.assertEqual(done.returncode, 125, done)
        self.assertIn(text, done.stderr)


# ---- files that another process has placed ------------------------------------------------------------------------------
class Files(Case):
    def test_a_link_is_never_followed(self):
        precious = f"{self.b.home}/precious"
        for name in ("x.0.lock", "x.line"):
            write(precious, "precious\n" * 100)
            self.clear()
            os.symlink(precious, self.path(name))
            self.assert_refused(self.run_with("x=1", "--", "true"), f"{name} is not a regular file")
            self.b.run("limits", timeout=5)
            self.assertEqual(read(precious), "precious\n" * 100, name)

    def test_a_resize_does_not_write_through_a_link(self):
        precious = f"{self.b.home}/precious"
        write(precious, "precious\n")
        self.run_with("x=1", "--", "true")  # creates the limit
        child = subprocess.Popen(["sh", "-c", f"read go; exec {self.b.binary} limits x=3"], stdin=subprocess.PIPE, env=self.b.env,
                                 cwd=self.b.folder)
        os.symlink(precious, self.path(f"x.capacity.{child.pid}"))  # its name can be guessed
        child.communicate(b"\n", timeout=5)
        self.assertEqual(child.returncode, 0)
        self.assertEqual((read(precious), read(self.path("x.capacity"))), ("precious\n", "3\n"))

    def test_pipes_and_directories_do_not_block(self):
        for name in ("x.0.lock", "x.line", "x.7.lock"):
            for make in (os.mkfifo, os.mkdir):
                self.clear()
                make(self.path(name))
                self.assert_refused(self.run_with("x=1", "--", "true"), f"{name} is not a regular file")
                self.assertEqual(self.b.run("limits", timeout=5).returncode, 0)
        self.clear()
        os.mkfifo(self.path("x.capacity"))
        self.assertEqual(self.run_with("x=1", "--", "true").returncode, 0)

    def test_garbage_is_overwritten(self):
        for text in (b"\0" * 4096, os.urandom(100_000), b"stint run=", b"stint pid=-1 run=a/../b:1 cgroup=/../../stint-a/../b:1\n"):
            for name in ("x.0.lock", "x.line", "x.capacity"):
                with open(self.path(name), "wb") as file:
                    file.write(text)
            self.assertEqual(self.b.run("limits", timeout=5).returncode, 0)
            self.assertEqual(self.run_with("x=1", "--", "true").returncode, 0, text[:40])
        for text in ("0", "-3", "zwei", "", "99999999999999999999"):
            write(self.path("x.capacity"), text)
            self.assertEqual(self.run_with("x=1", "--", "true").returncode, 0, text)

    def test_a_line_of_terabytes_takes_no_time(self):
        front, _ = self.b.hold("x=1")
        for size in (1 << 30, 15 << 40):
            with contextlib.suppress(OSError):  # as far as the file system allows
                os.truncate(self.path("x.line"), size)
            self.assertEqual(self.run_with("--timeout", "100ms", "x=1", "--", "true").returncode in (124, 125), True)
            self.assertIn("1 of 1 held", self.b.run("limits", timeout=5).stdout)
        front.terminate()
        front.wait(5)
        self.assertEqual(self.run_with("x=1", "--", "true").returncode, 0)
        self.assertLess(os.path.getsize(self.path("x.line")), 1 << 20, "it must shrink again")

    def test_files_for_all_users_can_be_written_by_all_whatever_the_umask(self):
        self.b.env["STINT_LIMITS_DIR"] = f"{self.b.home}/shared"
        done = self.run_with("x=1", "--", "true", preexec_fn=lambda: os.umask(0o077))
        self.assertEqual(done.returncode, 0, done)
        modes = {name: oct(os.stat(f"{self.b.home}/shared/{name}").st_mode & 0o777) for name in os.listdir(f"{self.b.home}/shared")}
        self.assertEqual(set(modes.values()), {"0o666"}, modes)

    def test_a_record_cannot_make_us_write_elsewhere(self):
        """The cgroup in a record is a path from a file: only a real cgroup gets the kill."""
        trap = f"{self.b.home}/stint-abc:1"
        os.mkdir(trap)
        write(f"{self.b.home}/precious", "precious\n")
        os.symlink(f"{self.b.home}/precious", f"{trap}/cgroup.kill")
        write(self.path("x.0.lock"), f"stint run=abc:1 pid=1 start=1 ns=0 cgroup={trap} label=\n")
        self.run_with("--timeout", "200ms", "x=1", "--", "true")
        self.assertEqual(read(f"{self.b.home}/precious"), "precious\n")

    def test_a_label_is_a_label(self):
        front, _ = self.b.hold("x=1", "--label", "a n=7 cgroup=/x run=y:1 pid=1")
        waiter = self.b.start("with", "--label", "w run=z:1 n=9", "x=1", "--", "true")
        wait_for(lambda: len(self.listing()["waiters"]) == 1, 5, "a waiter")
        listing = self.listing()
        self.assertEqual((listing["holders"][0]["label"], listing["holders"][0]["pid"]), ("a n=7 cgroup=/x run=y:1 pid=1", front.pid))
        self.assertEqual((listing["waiters"][0]["label"], listing["waiters"][0]["pid"]), ("w run=z:1 n=9", waiter.pid))

    def listing(self):
        return json.loads(self.b.run("limits", "--json", "x").stdout)["limits"][0]

    def test_hostile_names_and_labels_do_not_reach_the_terminal(self):
        write(self.path("a\x1b[31m.line"), "")
        write(self.path("x.0.lock"), "stint run=abcdefgh:1 pid=1 start=1 ns=1 boot=gone label=\x1b[31mred\n")
        front, _ = self.b.hold("x=2", "--label", "b\x1b]0;title\x07")
        for words in (["limits"], ["limits", "--json"]):
            out = self.b.run(*words)
            self.assertEqual(out.returncode, 0)
            self.assertNotIn("\x1b", out.stdout, words)
        front.terminate()

    def test_records_from_before_a_reboot_are_ignored(self):
        write(self.path("x.0.lock"), "stint run=abcdefgh:1 pid=1 start=1 ns=12 boot=another label=old\n")
        self.assertEqual(self.run_with("--no-wait", "x=1", "--", "true").returncode, 0)


# ---- callers that are not like a shell -----------------------------------------------------------------------------------
def cgroups_of(tag):
    """Cgroups of Stint with a process whose command line contains the tag. Other tests have theirs at the same time."""
    found = []
    for path in glob.glob("/sys/fs/cgroup/**/stint-*", recursive=True):
        with contextlib.suppress(OSError):
            if any(tag in read(f"/proc/{pid}/cmdline") for pid in read(f"{path}/cgroup.procs").split()):
                found.append(path)
    return found


class Callers(Case):
    def test_one_limit_twice_is_refused_at_once(self):
        for words in (["x=1", "x=1"], ["a:b", "a.b"], ["b", "x", "b"]):
            self.assert_refused(self.run_with(*words, "--", "true"), "is listed twice")

    def test_names_that_mean_the_same_files_are_taken_in_one_order(self):
        for _ in range(10):
            pair = [self.b.start("with", *FAST, *words, "--", "true") for words in (["a:b", "a.c"], ["a.b", "a.c"])]
            self.assertEqual([p.wait(5) for p in pair], [0, 0])

    def test_a_caller_that_ignores_sigchld_gets_the_status_at_once(self):
        since = time.monotonic()
        done = self.run_with("x=1", "--", "sh", "-c", "exit 7", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(done.returncode, 7)
        self.assertLess(time.monotonic() - since, 1.5)

    def test_the_command_has_the_callers_signals(self):
        """Ignored signals stay ignored, as under nohup, blocked ones stay blocked, and no others are either."""
        def caller():
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
                signal.signal(number, signal.SIG_IGN)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [signal.SIGUSR1, signal.SIGCHLD])
        look = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
        plain = subprocess.run(look, preexec_fn=caller, stdout=subprocess.PIPE, text=True, check=True).stdout
        ours = self.run_with("x=1", "--", *look, preexec_fn=caller).stdout
        self.assertEqual(self.without_glibcs(ours), self.without_glibcs(plain))

    @staticmethod
    def without_glibcs(lines):
        """Signals 32 and 33 belong to the C library; posix_spawn(3) makes a new program ignore them."""
        return [(line.split()[0], int(line.split()[1], 16) & ~(3 << 31)) for line in lines.splitlines()]

    def test_nohup_survives_a_hang_up(self):
        front = self.b.start("with", *FAST, "x=1", "--", "sh", "-c", "echo up; sleep 0.5; echo done",
                             stdout=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertEqual(front.stdout.readline(), b"up\n")
        front.send_signal(signal.SIGHUP)
        self.assertEqual((front.stdout.read(), front.wait(5)), (b"done\n", 0))
        front.stdout.close()

    def test_closed_streams_stay_closed(self):
        look = ["sh", "-c", f"ls -l /proc/self/fd > {self.b.home}/seen; exit 5"]
        for closed in ([0], [1], [2], [0, 1], [0, 1, 2]):
            words = [self.b.binary, "with", *FAST, "x=1", "--", *look]
            front = subprocess.Popen(words, env=self.b.env, cwd=self.b.folder, preexec_fn=lambda c=closed: [os.close(n) for n in c])
            self.assertEqual(front.wait(5), 5, closed)
            for line in read(f"{self.b.home}/seen").splitlines():
                self.assertFalse(" -> anon_inode" in line or ".lock" in line or ".line" in line, f"{closed}: {line}")
        self.assertEqual(read(self.path("x.0.lock")).strip(), "")

    def test_a_warden_without_streams_sleeps(self):
        words = [self.b.binary, "with", "x=1", "--", *self.b.sleeper()]
        front = subprocess.Popen(words, env=self.b.env, cwd=self.b.folder, stderr=subprocess.PIPE,
                                 preexec_fn=lambda: [os.close(0), os.close(1)])
        self.b.started.append(front)
        wait_for(lambda: tagged(self.b.tag), 5, "the command")
        warden = self.b.warden_of(front)
        time.sleep(1)
        used = sum(map(int, read(f"/proc/{warden}/stat").rpartition(")")[2].split()[11:13]))
        self.assertLess(used, 30, "clock ticks of CPU time in a second of waiting")

    def test_closed_output_does_not_crash(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([self.b.binary, "with", "x=0", "--", "true"], env=self.b.env, cwd=self.b.folder, stderr=full, timeout=5)
            self.assertEqual(done.returncode, 125)
            listing = subprocess.run([self.b.binary, "limits"], env=self.b.env, cwd=self.b.folder, stdout=full, stderr=full, timeout=5)
            self.assertIn(listing.returncode, (0, 1))
        for closed in ([2], [1, 2]):
            done = subprocess.run([self.b.binary, "with", "x=0", "--", "true"], env=self.b.env, cwd=self.b.folder, timeout=5,
                                  preexec_fn=lambda c=closed: [os.close(n) for n in c])
            self.assertEqual(done.returncode, 125)

    def test_few_descriptors_are_an_error_or_enough(self):
        if b"__asan_init" in read(self.b.binary, "rb"):
            self.skipTest("a sanitizer reads memory through a pipe, and reports its failure as a finding")
        for most in range(4, 24):
            done = self.run_with("x=1", "--", "true", preexec_fn=lambda n=most: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
            self.assertIn(done.returncode, (0, 125, 126), f"{most}: {done}")
            self.assertTrue(done.returncode == 0 or "Too many open files" in done.stderr, f"{most}: {done}")
        self.assertEqual(self.run_with("--no-wait", "x=1", "--", "true").returncode, 0, "a slot was lost")
        front, _ = self.b.hold("x=1")
        for most in range(8, 20):
            done = self.run_with("--timeout", "50ms", "x=1", "--", "true",
                                 preexec_fn=lambda n=most: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
            self.assertIn(done.returncode, (124, 125), f"{most}: {done}")
        front.terminate()

    def test_a_thousand_descriptors_go_to_the_command_and_none_of_ours(self):
        script = "import os; print(len(os.listdir('/proc/self/fd')), any('inotify' in os.readlink('/proc/self/fd/' + n) " \
                 "for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + n)))"
        front, _ = self.b.hold("x=1")
        files = [os.open("/dev/null", os.O_RDONLY) for _ in range(900)]
        try:
            waiter = subprocess.Popen([self.b.binary, "with", "x=1", "--", *PYTHON, "-c", script], env=self.b.env, cwd=self.b.folder,
                                      pass_fds=files, stdout=subprocess.PIPE, text=True)
            time.sleep(0.4)  # it waits, so it has an inotify descriptor
            front.terminate()
            self.assertEqual(waiter.communicate(timeout=10)[0].split(), ["904", "False"])  # the last is the listing's own
        finally:
            for file in files:
                os.close(file)

    def test_children_that_a_shell_had_before_are_not_ended(self):
        """`helper & exec stint with …`: the helper is a child of the front; the warden is killed; the helper is spared."""
        marker = f"{self.b.tag}helper"
        script = f"{' '.join(PYTHON)} -c 'import time; time.sleep(20)' {marker} & exec {self.b.binary} with --grace 200ms x=1 -- sleep 20"
        front = subprocess.Popen(["sh", "-c", script], env=self.b.env, cwd=self.b.folder, stderr=subprocess.PIPE)
        self.b.started.append(front)
        warden = self.b.warden_of(front)
        helper = wait_for(lambda: tagged(marker), 5, "the helper")[0]
        wait_for(lambda: read(f"/proc/{warden}/task/{warden}/children").split(), 5, "the command")
        os.kill(warden, signal.SIGKILL)
        self.assertEqual(front.wait(5), 125)
        self.assertTrue(alive(helper), "an unrelated child was killed")
        os.kill(helper, signal.SIGKILL)

    def test_a_stopped_process_of_the_caller_does_not_hang_up_on_the_caller(self):
        """The caller leads its session, as in a container or under cron. If the command or its warden tied the caller's process group to
        the session, their end would orphan it, and the kernel sends SIGHUP to an orphaned group with a stopped process."""
        stop = "stop() { kill -STOP $1; until grep -q 'State:.T' /proc/$1/status; do sleep 0.01; done; }\n"
        ends = f"sleep 60 & stop $!; {self.b.binary} with x=1 -- true; status=$?; kill -KILL $!; exit $status"
        loses_its_warden = (f"{self.b.binary} with x=1 -- sh -c 'echo begun >{self.b.home}/begun; sleep 60' {self.b.tag} & front=$!\n"
                            f"until [ -s {self.b.home}/begun ]; do sleep 0.01; done; stop $front\n"
                            "read -r warden _ </proc/$front/task/$front/children; kill -KILL $warden\n"
                            "until grep -q 'State:.Z' /proc/$warden/status; do sleep 0.01; done; kill -KILL $front; exit 0")
        for script in (ends, loses_its_warden):
            done = subprocess.run(["sh", "-c", stop + script], env=self.b.env, cwd=self.b.folder, start_new_session=True, timeout=30)
            self.assertEqual(done.returncode, 0, script)

    def test_a_lease_that_cannot_be_kept_is_refused(self):
        for lease in ("0s", "1ms"):
            self.assert_refused(self.run_with("--lease", lease, "x=1", "--", "true"), "too short")

    def test_without_a_home_the_error_names_the_variable(self):
        done = subprocess.run([self.b.binary, "with", "x=1", "--", "true"], env={"PATH": os.environ["PATH"]}, cwd=self.b.folder,
                              timeout=5, capture_output=True, text=True)
        self.assert_refused(done, "HOME")

    def test_runs_in_runs_leave_no_cgroup(self):
        inner = [self.b.binary, "with", "y=1", "--", *self.b.sleeper()]
        front = self.b.start("with", "--grace", "0s", "x=1", "--", *inner)
        wait_for(lambda: tagged(self.b.tag), 5, "the command")
        ours = cgroups_of(self.b.tag)
        front.terminate()
        front.wait(5)
        self.assertFalse(tagged(self.b.tag))
        self.assertEqual([path for path in ours if os.path.exists(path)], [])
        self.assertEqual(self.run_with("--timeout", "2s", "y=1", "--", "true").returncode, 0, "the inner slot is lost")


# ---- a real terminal ---------------------------------------------------------------------------------------------------
class Terminal(Case):
    """bash with job control in a pseudo-terminal."""

    def setUp(self):
        super().setUp()
        self.shell, self.terminal = pty.fork()
        if self.shell == 0:
            os.chdir(self.b.folder)
            os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-i"], dict(self.b.env, PS1="$ ", TERM="dumb", HISTFILE=""))
        self.seen = ""
        self.addCleanup(self.hang_up)
        self.expect("$ ")

    def hang_up(self):
        if self.terminal is not None:
            os.close(self.terminal)
            self.terminal = None
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.shell, 0)

    def type(self, text):
        self.seen = ""
        os.write(self.terminal, text.encode())

    def expect(self, text, seconds=8):
        end = time.monotonic() + seconds
        while text not in self.seen:
            if not select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no {text!r} in {self.seen!r}")
            self.seen += os.read(self.terminal, 65536).decode(errors="replace")

    def start(self, *flags):
        self.type(f"{self.b.binary} with {' '.join(FAST)} {' '.join(flags)} x=1 -- {' '.join(PYTHON)} -c 'import time; print(\"it has \" \"begun\", "
                  f"flush=True); time.sleep(60)' {self.b.tag}\n")
        self.expect("it has begun")  # which no file name contains
        return tagged(self.b.tag)[0]

    def test_stop_and_continue_after_the_lease(self):
        command = self.start("--lease", "300ms")
        self.type("\x1a")
        self.expect("Stopped")
        time.sleep(1.2)  # four leases
        self.assertTrue(alive(command), "a stopped job was ended")
        self.assertIn("1 of 1 held", self.b.run("limits").stdout)
        self.type("fg\n")
        time.sleep(0.6)
        self.assertTrue(alive(command), "ended when it was continued")
        self.assertNotIn("T", read(f"/proc/{command}/stat").rpartition(")")[2].split()[0])
        self.type("\x03")
        self.expect("$ ")
        self.type("echo status $?\n")
        self.expect("status 130")
        wait_for(self.b.slot_free, 2, "the slot")

    def test_a_hang_up_ends_everything(self):
        command = self.start()
        self.hang_up()
        wait_for(lambda: not alive(command) and self.b.slot_free(), 5, "the end of the command")

    def test_a_stopped_command_that_left_its_group_is_ended(self):
        script = f"{self.b.home}/stops.py"
        write(script, "import os, signal, sys\nos.setpgid(0, 0) if sys.argv[1] == 'group' else os.setsid()\n"
                      "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.kill(0, signal.SIGSTOP)\n")
        for how in ("group", "session"):
            front = self.b.start("with", *FAST, "x=1", "--", *PYTHON, "-c",
                                 f"import os\nif os.fork() == 0: os.execv('{PYTHON[0]}', ['python', '{script}', '{how}', '{self.b.tag}'])\nos.wait()")
            wait_for(lambda: any(read(f"/proc/{p}/stat").rpartition(")")[2].split()[0] == "T" for p in tagged(self.b.tag)), 5, "a stopped one")
            front.terminate()
            front.wait(5)
            self.assertFalse(tagged(self.b.tag))


# ---- kills at any moment -----------------------------------------------------------------------------------------------
STUBBORN = "import os,signal,time; os.fork() or os.setsid(); signal.signal(15, 1); time.sleep(60)"


class Kills(Case):
    def test_both_keepers_killed_in_any_order_at_any_moment(self):
        """Any kill at any moment: while a process of a run lives, the slot is held or has a record; the next start finds no live process."""
        rounds = int(os.environ.get("STINT_KILL_ROUNDS", "40"))
        seed = int(os.environ.get("STINT_SEED", random.randrange(1 << 30)))
        chance = random.Random(seed)
        for number in range(rounds):
            cgroup = ["--no-cgroup"] if number % 2 else []
            front = self.b.start("with", "--grace", "30ms", *cgroup, "x=1", "--", *PYTHON, "-c", STUBBORN, self.b.tag)
            time.sleep(chance.random() * 0.15)
            victims = [lambda: front.pid, lambda: self.warden_now(front.pid)]
            chance.shuffle(victims)
            for victim in victims:
                pid = victim()
                if pid and chance.random() < 0.9:
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(chance.random() * 0.05)
            if front.poll() is None:
                front.send_signal(signal.SIGTERM)
            left = self.b.run("with", "--timeout", "8s", "x=1", "--", "sh", "-c", self.counts(), timeout=15)
            self.assertEqual((left.returncode, left.stdout), (0, "alive:\n"), f"round {number}, seed {seed}: {left.stderr}")
            front.wait(5)

    def test_a_signal_at_the_moment_of_the_end_leaves_no_process(self):
        for _ in range(25):
            front = self.b.start("with", "x=1", "--", "sh", "-c", "trap '' HUP; sleep 0.02")
            since = time.monotonic()
            time.sleep(0.012)
            while front.poll() is None and time.monotonic() < since + 0.1:
                for _ in range(50):
                    front.send_signal(signal.SIGHUP)
            front.wait(5)

    def counts(self):
        """Prints the pids of live processes of an earlier run."""
        return (f"printf alive:; for p in /proc/[0-9]*; do [ $p != /proc/$$ ] && tr '\\0' '\\n' < $p/cmdline 2>/dev/null | grep -qx {self.b.tag} && "
                "tr '\\0' '\\n' < $p/cmdline | sed -n 2p | grep -qvx -e with -e __warden && "
                "grep -qs '^State:.[^ZX]' $p/status && printf ' %s' $p; done; echo")

    def warden_now(self, parent):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if b"__warden" in read(f"/proc/{pid}/cmdline", "rb") and self.b.tag.encode() in read(f"/proc/{pid}/cmdline", "rb"):
                    return int(pid)
        return None

    def test_a_fork_bomb_is_contained(self):
        """Forks as fast as possible, up to its own bound; all its processes ignore TERM."""
        bomb = ("import os,signal,sys,time\nsignal.signal(15, 1)\nend = time.monotonic() + 8\nroot = os.getpid()\n"
                "for _ in range(4): os.fork()\nif os.getpid() == root: time.sleep(60)\n"
                "while time.monotonic() < end:\n  time.sleep(0.02)\n  if os.fork(): os._exit(0)\n")
        for cgroup in ([], ["--no-cgroup"]):
            front = self.b.start("with", *FAST, *cgroup, "x=1", "--", *PYTHON, "-c", bomb, self.b.tag)
            wait_for(lambda: len(tagged(self.b.tag)) > 8, 6, "the bomb")
            since = time.monotonic()
            front.terminate()
            front.wait(10)
            took = time.monotonic() - since
            self.assertFalse(tagged(self.b.tag))
            self.assertLess(took, 5)


FIRST, SECOND = 54321, 54322


@unittest.skipIf(os.geteuid() != 0, "a second user needs root")
class Users(Case):
    """Two users share a limits_dir: neither may decide whether the other's processes have ended."""

    def setUp(self):
        super().setUp()
        os.chmod(self.b.home, 0o755)
        shared = f"{self.b.home}/shared"
        os.mkdir(shared)
        os.chmod(shared, 0o1777)
        self.b.env["STINT_LIMITS_DIR"] = shared
        self.limits = shared
        self.binary = shutil.copy(BINARY, f"{self.b.home}/stint-for-all")  # the build may be in a folder that only root can read
        for user in (FIRST, SECOND):
            os.mkdir(f"{self.b.home}/{user}")
            os.chown(f"{self.b.home}/{user}", user, user)

    def of(self, user):
        home = f"{self.b.home}/{user}"
        return {"user": user, "group": user, "extra_groups": [], "cwd": home, "env": {**self.b.env, "HOME": home, "XDG_STATE_HOME": home}}

    def orphan(self):
        """A command of the first user whose stint and warden were killed at the same moment."""
        front = subprocess.Popen([self.binary, "with", *FAST, "--no-cgroup", "gpu=1", "--", "sh", "-c", "while sleep 1; do :; done", self.b.tag],
                                 stderr=subprocess.PIPE, **self.of(FIRST))  # the test's Python may be in a folder that only root can read
        self.b.started.append(front)
        command = wait_for(lambda: tagged(self.b.tag), 10, "the command to be up")[0]
        keepers = [self.b.warden_of(front), front.pid]  # in this order: the kernel continues a stopped warden whose parent exits
        for signal_number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in keepers:
                os.kill(pid, signal_number)
        front.wait(5)
        wait_for(lambda: not any(alive(pid) for pid in keepers), 5, "both keepers to be gone")
        self.assertTrue(alive(command))
        return command

    def ask(self, user, *flags):
        return subprocess.run([self.binary, "with", *flags, "gpu=1", "--", "true"], capture_output=True, text=True, timeout=20, **self.of(user))

    def test_live_processes_of_another_user_keep_their_slot(self):
        command = self.orphan()
        refused = self.ask(SECOND, "--no-wait")
        self.assertEqual(refused.returncode, 124, refused.stderr)
        self.assertIn(f"of user {FIRST}", refused.stderr)
        self.assertIn("only that user or root", refused.stderr)
        self.assertTrue(alive(command), "and another user does not end it")
        granted = self.ask(FIRST, "--timeout", "10s")
        self.assertEqual(granted.returncode, 0, granted.stderr)
        self.assertFalse(alive(command), "its own user ends it first")

    def test_a_slot_is_free_once_the_other_users_processes_have_ended(self):
        os.kill(self.orphan(), signal.SIGKILL)
        granted = self.ask(SECOND, "--timeout", "10s")
        self.assertEqual(granted.returncode, 0, granted.stderr)

    def test_root_may_end_processes_of_another_user(self):
        command = self.orphan()
        granted = subprocess.run([BINARY, "with", "--timeout", "10s", "gpu=1", "--", "true"], env=self.b.env, cwd=self.b.home, capture_output=True, text=True, timeout=20)
        self.assertEqual(granted.returncode, 0, granted.stderr)
        self.assertFalse(alive(command))


if __name__ == "__main__":
    BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
