"""Builds the benchmark programs, runs them in turns and measures the noise around them.

A program is called as `program BENCH key=value…` and prints one JSON line per sample:
{"bench", "peer", "value", "unit", "params"}. What differs between programs is hidden behind `Program.command`.
"""
import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import platform
import re
import resource
import shutil
import signal
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / "bench" / "peers"
CARGO_REGISTRY = pathlib.Path("/usr/share/cargo/registry")  # where Debian puts the sources of crates
ENDED_S_MAX = 60  # for a program to end after a signal
NODE_LOCK = threading.Lock()  # its programs share one folder
GO_PACKAGES = pathlib.Path("/usr/share/gocode")  # where Debian puts the sources of Go packages


class Skip(Exception):
    """A program that is not available here; states why and the remedy."""

    def __init__(self, why, remedy):
        super().__init__(why)
        self.why, self.remedy = why, remedy


def first_line(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except OSError:
        return ""
    return (done.stdout or done.stderr).strip().split("\n")[0]


def compile_once(output, sources, commands, maker, remedy, cwd=None, env=None):
    """Runs `commands` unless `output` is newer than its sources and was made by the same commands and compiler, `maker`."""
    stamp = output.with_name(output.name + ".command")
    recipe = json.dumps([maker, commands])
    newest = max(source.stat().st_mtime for source in sources)
    if output.exists() and output.stat().st_mtime > newest and stamp.exists() and stamp.read_text() == recipe:
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    for command in commands:
        done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().split("\n")
            errors = [line for line in lines if "error" in line] or lines[-1:]
            raise Skip(f"does not build: {errors[0][:200]}", remedy)
    stamp.write_text(recipe)


class Program:
    """The program of a table's row. `prepare` builds it, or raises Skip."""

    name = ""
    slow_to_build = False

    def prepare(self, build):
        raise NotImplementedError

    def built(self, build):
        """True if prepare() would have little to do."""
        return True

    def start(self):
        """Called once, after all builds, on the main thread: starts what it needs, or raises Skip."""

    def renew(self):
        """Called before each of its processes."""

    def stop(self):
        """Called after the last row."""

    def served_seconds(self):
        """Processor time that other processes have spent for it so far: not noise."""
        return 0.0

    def command(self):
        raise NotImplementedError

    def version(self):
        return ""


class Ours(Program):
    """Built by CMake with everything else; never by this script."""

    name = "stint"

    def __init__(self, target, path=None):
        self.path = pathlib.Path(path) if path else ROOT / "build" / "release" / target

    def prepare(self, build):
        if not self.path.exists():
            raise Skip(f"{self.path} does not exist", "./dev build release")

    def command(self):
        return [str(self.path)]


class CppPeer(Program):
    """One C++ file, compiled as our release preset compiles ours."""

    def __init__(self, source, name, boost=False):
        self.source, self.name, self.boost = PEERS / "cpp" / source, name, boost
        self.slow_to_build = boost
        self.output = None

    def built(self, build):
        return (build / self.source.stem).exists()

    def prepare(self, build):
        remedy = "apt-get install clang-19" + (" libboost-dev" if self.boost else "")
        if not shutil.which("clang++-19"):
            raise Skip("clang++-19 is not installed", remedy)
        self.output = build / self.source.stem
        command = ["clang++-19", "-std=c++20", "-O2", "-pthread", "-o", str(self.output), str(self.source)]
        compile_once(self.output, [self.source, PEERS / "cpp" / "peer.hpp"], [command], self.compiler(), remedy)

    def command(self):
        return [str(self.output)]

    @staticmethod
    def compiler():
        return first_line(["clang++-19", "--version"])

    def version(self):
        if not self.boost:
            return self.compiler()
        header = pathlib.Path("/usr/include/boost/version.hpp")
        found = re.search(r'BOOST_LIB_VERSION "(.*)"', header.read_text()) if header.exists() else None
        return f"Boost {found[1]}" if found else ""


class GoPeer(Program):
    name = "go"
    remedy = "apt-get install golang-go golang-golang-x-sync-dev"

    def __init__(self):
        self.go, self.output = None, None

    @staticmethod
    def newest():
        """The newest installed compiler: one that the user installed beside Debian's is the stronger peer."""
        def age(go):
            found = re.search(r"go(\d+)\.(\d+)", first_line([go, "version"]))
            return (int(found[1]), int(found[2])) if found else (0, 0)

        found = [go for go in (shutil.which("go"), "/usr/bin/go") if go and os.path.exists(go)]
        return max(found, key=age, default=None)

    def prepare(self, build):
        self.go = self.newest()
        if self.go is None:
            raise Skip("no Go compiler", self.remedy)
        if not (GO_PACKAGES / "src/golang.org/x/sync/semaphore").exists():
            raise Skip("golang.org/x/sync is not installed", self.remedy)
        self.output = build / "go_peers"
        sources = sorted((PEERS / "go").glob("*.go"))
        env = dict(os.environ, GO111MODULE="off", GOPATH=str(GO_PACKAGES), GOCACHE=str(build / "go-cache"),
                   GOTOOLCHAIN="local", GOFLAGS="")
        command = [self.go, "build", "-o", str(self.output)] + [str(source) for source in sources]
        compile_once(self.output, sources, [command], self.version(), self.remedy, env=env)

    def command(self):
        return [str(self.output)]

    def version(self):
        return first_line([self.go, "version"])


class TokioPeer(Program):
    name = "tokio"
    slow_to_build = True
    remedy = "apt-get install cargo rustc librust-tokio-dev"

    def __init__(self):
        self.output = None

    def built(self, build):
        return (build / "tokio_peers").exists()

    def prepare(self, build):
        if not shutil.which("cargo"):
            raise Skip("no cargo", self.remedy)
        if not list(CARGO_REGISTRY.glob("tokio-1.*")):
            raise Skip("tokio's sources are not installed", self.remedy)
        self.output = build / "tokio_peers"
        crate = PEERS / "rust"
        copy = build / "tokio-source"  # cargo writes a lock file beside its manifest
        copy.mkdir(parents=True, exist_ok=True)
        shutil.copytree(crate, copy, dirs_exist_ok=True)
        config = build / "cargo-debian.toml"
        config.write_text('[source.crates-io]\nreplace-with = "debian"\n'
                          f'[source.debian]\ndirectory = "{CARGO_REGISTRY}"\n')
        cargo = ["cargo", "--config", str(config), "build", "--release", "--offline", "--quiet"]
        env = dict(os.environ, CARGO_TARGET_DIR=str(build / "tokio-target"))
        take = ["cp", str(build / "tokio-target/release/tokio_peers"), str(self.output)]
        sources = [crate / "Cargo.toml"] + sorted((crate / "src").glob("*.rs"))
        compile_once(self.output, sources, [cargo, take], self.version(), self.remedy, cwd=copy, env=env)

    def command(self):
        return [str(self.output)]

    def version(self):
        crate = max(CARGO_REGISTRY.glob("tokio-1.*")).name
        return f"{crate}, {first_line(['rustc', '--version'])}"


class AsyncioPeer(Program):
    """The system's Python, not the first on PATH: it is the one that Debian's users have."""

    name = "asyncio"
    python = "/usr/bin/python3"

    def prepare(self, build):
        if not os.path.exists(self.python):
            raise Skip(f"no {self.python}", "apt-get install python3")
        version = re.search(r"(\d+)\.(\d+)", first_line([self.python, "--version"]))
        if (int(version[1]), int(version[2])) < (3, 11):
            raise Skip("asyncio.timeout needs Python 3.11", "use Debian 12 or later")

    def command(self):
        return [self.python, str(PEERS / "py" / "peer.py")]

    def version(self):
        return first_line([self.python, "--version"])


class HostPeer(Program):
    """A loop in Python around locks, or around a command that takes them: `tool`, if installed."""

    python = "/usr/bin/python3"

    def __init__(self, name, tool=None, remedy="", inside=None):
        self.name, self.tool, self.remedy, self.inside = name, tool, remedy, inside

    def prepare(self, build):
        if not os.path.exists(self.python):
            raise Skip(f"no {self.python}", "apt-get install python3")
        if self.tool and not shutil.which(str(self.tool)):
            raise Skip(f"{self.tool} is not installed", self.remedy)
        if self.inside:
            self.inside.prepare(build)

    def command(self):
        return [self.python, "-B", str(PEERS / "py" / "host_peer.py")]

    def version(self):
        return first_line([str(self.tool or self.python), "--version"])


class NodePeer(Program):
    """A program for Node.js. Its packages are installed once, by name and version, beside a copy of the programs."""

    slow_to_build = True
    node_min = 20  # required by pg-boss and better-sqlite3; Debian 12 has 18
    remedy = "install Node.js 20 or newer with npm, g++ and make; npm must reach its registry"

    def __init__(self, name, package):
        self.name, self.package = name, package
        self.folder = None

    def built(self, build):
        return (build / "node.installed").exists()

    def prepare(self, build):
        if not shutil.which("node") or not shutil.which("npm"):
            raise Skip("no node, or no npm", self.remedy)
        version = re.search(r"v(\d+)", first_line(["node", "--version"]))
        if not version or int(version[1]) < self.node_min:
            raise Skip(f"node is older than {self.node_min}", self.remedy)
        source, self.folder = PEERS / "node", build / "node"
        with NODE_LOCK:
            shutil.copytree(source, self.folder, dirs_exist_ok=True)
            installed = build / "node.installed"
            install = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"]
            compile_once(installed, [source / "package.json"], [install, ["touch", str(installed)]],
                         first_line(["node", "--version"]), self.remedy, cwd=self.folder)

    def command(self):
        return ["node", str(self.folder / f"{self.name}.mjs")]

    def version(self):
        wanted = json.loads((PEERS / "node" / "package.json").read_text())["dependencies"]
        return f"{self.package} {wanted[self.package]}, node {first_line(['node', '--version'])}"


@dataclasses.dataclass
class Run:
    """One process: the samples it printed, by bench, or why it failed."""

    samples: dict
    other_cores: float
    wall_s: float
    error: str = ""


def busy_seconds():
    """Processor seconds since boot that were not idle."""
    with open("/proc/stat") as stat:
        fields = [int(field) for field in stat.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    total = 0.0
    for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    return total


def run_once(command, timeout_s, served_seconds=lambda: 0.0):
    """Runs one process to its end. `other_cores` is the number of cores busy with other work meanwhile."""
    busy, own, start = busy_seconds(), own_seconds() + served_seconds(), time.monotonic()
    # A signal between its start and the `try` would leave it running.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    unblock = functools.partial(signal.pthread_sigmask, signal.SIG_SETMASK, before)
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True, preexec_fn=unblock)
    except BaseException:
        unblock()
        raise
    error = ""
    try:
        unblock()
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        error = f"still running after {timeout_s} s"
    except BaseException:  # this process is ending: end the program and all its children
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ENDED_S_MAX)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    wall = max(time.monotonic() - start, 1e-9)
    other = (busy_seconds() - busy - (own_seconds() + served_seconds() - own)) / wall
    other = min(max(other, 0.0), float(os.cpu_count()))  # the kernel counts in ticks: short runs are rough
    if process.returncode and not error:
        last = err.strip().split("\n")[-1]
        error = f"exit {process.returncode}: {last[:200]}"
    samples = {}
    for line in out.splitlines():
        if line.startswith("{"):
            sample = json.loads(line)
            samples.setdefault(sample["bench"], []).append(float(sample["value"]))
    return Run(samples, round(other, 2), round(wall, 3), error)


def available_gib():
    with open("/proc/meminfo") as meminfo:
        found = re.search(r"MemAvailable:\s+(\d+)", meminfo.read())
    return int(found[1]) / 2**20 if found else 0.0


def machine():
    def field(path, pattern):
        try:
            found = re.search(pattern, pathlib.Path(path).read_text())
        except OSError:
            return ""
        return found[1] if found else ""

    return {
        "cpu": field("/proc/cpuinfo", r"model name\s*:\s*(.*)"),
        "cores": os.cpu_count(),
        "mem_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "os": field("/etc/os-release", r'PRETTY_NAME="(.*)"'),
        "libc": " ".join(platform.libc_ver()),
    }


def commit():
    """The commit that was measured; `+` if the tree differed from it."""
    head = first_line(["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"])
    changed = first_line(["git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no"])
    return head + ("+" if changed else "")
