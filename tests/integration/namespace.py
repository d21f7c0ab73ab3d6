"""Network namespaces: processes of this machine that reach each other by virtual interfaces only, which can be taken down."""
import ctypes
import itertools
import os
import shutil
import subprocess
import threading

CLONE_NEWNET = 0x40000000
NUMBERS = itertools.count(1)


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def possible():
    """Root of a machine that lets us."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        return False
    probe = f"stint-{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True).returncode == 0
    return made and subprocess.run(["ip", "netns", "del", probe], capture_output=True).returncode == 0


def within(name, make):
    """What `make` gives, called in that namespace: a socket stays there, whoever uses it."""
    made = []

    def enter():
        handle = os.open(f"/run/netns/{name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(handle, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(handle)
        made.append(make())

    thread = threading.Thread(target=enter)  # only a thread goes there, and ends with it
    thread.start()
    thread.join()
    return made[0]


class Pair:
    """Two namespaces with one link between them."""

    NEAR, FAR = "10.0.0.1", "10.0.0.2"

    def __init__(self):
        name = f"stint-{os.getpid()}-{next(NUMBERS)}"
        self.near, self.far = name + "-near", name + "-far"
        ip("netns", "add", self.near)
        ip("netns", "add", self.far)
        ip("-n", self.near, "link", "add", "link0", "type", "veth", "peer", "name", "link0", "netns", self.far)
        for namespace, address in ((self.near, self.NEAR), (self.far, self.FAR)):
            ip("-n", namespace, "addr", "add", address + "/24", "dev", "link0")
            ip("-n", namespace, "link", "set", "lo", "up")
            ip("-n", namespace, "link", "set", "link0", "up")

    def set(self, up):
        ip("-n", self.near, "link", "set", "link0", "up" if up else "down")

    def close(self):
        for namespace in (self.near, self.far):
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True)
