"""Network namespaces: processes of this machine that reach each other only through virtual interfaces, which can be taken down."""
import contextlib
import ctypes
import itertools
import os
import shutil
import subprocess
import threading

CLONE_NEWNET = 0x40000000
NUMBERS = itertools.count(1)


def ip(*words, namespace=None):
    """Not `ip -n`, which also creates a mount namespace, and fails if the root is not a mount point."""
    enter = ["nsenter", f"--net=/run/netns/{namespace}"] if namespace else []
    subprocess.run([*enter, "ip", *words], check=True, capture_output=True)


def possible():
    """Whether we are root and the machine permits namespaces."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        return False
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        with contextlib.closing(Pair()) as probe:
            probe.set(False)
        return True
    return False


def within(name, make):
    """The result of `make`, called in that namespace: a socket stays there, whatever thread uses it."""
    made = []

    def enter():
        handle = os.open(f"/run/netns/{name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(handle, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(handle)
        made.append(make())

    thread = threading.Thread(target=enter)  # only this thread enters the namespace, and ends afterwards
    thread.start()
    thread.join()
    return made[0]


class Pair:
    """Two namespaces with one link between them."""

    NEAR, FAR = "10.0.0.1", "10.0.0.2"

    def __init__(self):
        name = f"stint-{os.getpid()}-{next(NUMBERS)}"
        self.near, self.far = name + "-near", name + "-far"
        try:
            self.make()
        except subprocess.CalledProcessError:
            self.close()
            raise

    def make(self):
        ip("netns", "add", self.near)
        ip("netns", "add", self.far)
        ip("link", "add", "link0", "type", "veth", "peer", "name", "link0", "netns", self.far, namespace=self.near)
        for namespace, address in ((self.near, self.NEAR), (self.far, self.FAR)):
            ip("addr", "add", address + "/24", "dev", "link0", namespace=namespace)
            ip("link", "set", "lo", "up", namespace=namespace)
            ip("link", "set", "link0", "up", namespace=namespace)

    def set(self, up):
        ip("link", "set", "link0", "up" if up else "down", namespace=self.near)

    def close(self):
        for namespace in (self.near, self.far):
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True)
