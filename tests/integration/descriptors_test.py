#!/usr/bin/env python3
"""The descriptors of wardens and agents whose parent serves clients, follows runs and inherited open files. `descriptors_test.py STINT [CLASS…]`"""
import errno
import os
import pathlib
import re
import socket
import subprocess
import sys
import unittest

import daemon_support
from host_support import PYTHON, read, wait_for

CLOSE_RANGE = 436  # the same number on every architecture
OLD_KERNEL = pathlib.Path(__file__).with_name("old_kernel.py")
STREAMS = {0, 1, 2}


def before_close_range(error):
    return [*PYTHON, str(OLD_KERNEL), str(CLOSE_RANGE), str(error)]


def descriptors(pid):
    """Number → target, once two reads agree: a process that has just started still opens and closes files."""
    def look():
        found = {}
        for number in os.listdir(f"/proc/{pid}/fd"):
            try:
                found[int(number)] = os.readlink(f"/proc/{pid}/fd/{number}")
            except OSError:
                return None
        return found
    return wait_for(lambda: (lambda one, two: one if one and one == two else None)(look(), look()), 10, f"the descriptors of {pid}")


def tcp_sockets():
    lines = [line.split() for name in ("tcp", "tcp6") for line in read(f"/proc/net/{name}").splitlines()[1:]]
    return {f"socket:[{words[9]}]" for words in lines}


class Descriptors(daemon_support.Case):
    settings = "[pool]\nworkers = 2\n"

    def pair(self):
        """The warden and the command of the one run."""
        def find():
            pids = self.marked()
            wardens = [pid for pid in pids if b"__warden" in read(f"/proc/{pid}/cmdline", "rb")]
            agents = [pid for pid in pids if read(f"/proc/{pid}/cmdline", "rb").startswith(b"sleep\0")]
            return (wardens[0], agents[0]) if len(wardens) == len(agents) == 1 else None
        return wait_for(find, 20, "a warden and its agent")

    def audit(self):
        warden, agent = self.pair()
        wait_for(lambda: all(descriptors(warden).get(stream) == "/dev/null" for stream in STREAMS), 20, "the warden to have started its command")
        held = descriptors(warden)
        for number, target in held.items():
            with self.subTest(warden=number, target=target):
                if number in STREAMS:
                    continue
                self.assertNotIn(target, tcp_sockets())
                self.assertTrue(re.fullmatch(r"socket:\[\d+\]|anon_inode:\[signalfd\]|.*\.lock", target), "its connection to stint, its signals, its slots")
        self.assertLessEqual(sum(target.startswith("socket:") for target in held.values()), 1, held)
        self.assertEqual(set(descriptors(agent)), STREAMS, descriptors(agent))

    def audit_own(self, pid):
        """No child of a daemon, warden or not, inherits descriptors."""
        for number, target in descriptors(pid).items():
            flags = int(re.search(r"flags:\s*(\d+)", read(f"/proc/{pid}/fdinfo/{number}")).group(1), 8)
            with self.subTest(daemon=number, target=target):
                self.assertTrue(number in STREAMS or flags & os.O_CLOEXEC)

    def leave_open(self):
        """Descriptors that a careless caller leaks to its children."""
        read_end, write_end = os.pipe()
        for end in (read_end, write_end):
            os.set_inheritable(end, True)
            self.addCleanup(os.close, end)
        return read_end, write_end

    def served(self, before=()):
        d = self.serve(before=before)
        kept = [socket.create_connection((d.host, int(d.port)), 10) for _ in range(3)]
        for one in kept:
            self.addCleanup(one.close)
            one.sendall(f"GET /healthz HTTP/1.1\r\nHost: {d.host}:{d.port}\r\n\r\n".encode())
            self.assertIn(b"200", one.recv(100))
        kept[0].sendall(f"GET /v1/events HTTP/1.1\r\nHost: {d.host}:{d.port}\r\nAuthorization: Bearer {d.token}\r\nAccept: text/event-stream\r\n\r\n".encode())
        d.submit("slow")
        self.audit()
        self.audit_own(d.process.pid)

    def test_of_a_daemon_with_clients(self):
        self.served()

    def test_of_a_daemon_on_a_kernel_whose_close_range_has_no_flags(self):
        self.served(before_close_range(errno.EINVAL))

    def test_of_a_run_in_the_foreground(self):
        for before in ((), before_close_range(errno.ENOSYS)):
            with self.subTest(before=before):
                self.stint("trust")
                process = subprocess.Popen([*before, daemon_support.STINT, "run", "slow"], cwd=self.project, env=self.b.env, stdin=subprocess.DEVNULL,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=self.leave_open())
                try:
                    self.audit()
                finally:
                    process.terminate()
                    process.wait(30)
                    wait_for(lambda: not self.marked(), 20, "its end")


if __name__ == "__main__":
    daemon_support.STINT = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
