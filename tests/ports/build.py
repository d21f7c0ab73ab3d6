#!/usr/bin/env python3
"""Builds the library for a port, and programs that use it, and runs them.

    build.py libcxx|gcc|aarch64 COMPILER SOURCE WORK

The sources of core/ are compiled as two files, not forty: a port is about headers and code generation, and that takes
seconds instead of minutes. Missing tools are reported as `SKIPPED: …`, which ctest shows.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

DEFINITIONS = ["-DBOOST_ASIO_SEPARATE_COMPILATION", "-DBOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE=8"]
PROGRAMS = [  # each checks itself, and ends with status 0
    "tests/install/outside/plain.cpp",
    "tests/install/outside/with_asio.cpp",
    "examples/first.cpp",
    "examples/autoscaling_pool.cpp",
    "examples/reactor_threads.cpp",
]
SETUP = "`./dev setup ports` installs the packages that Debian has"


class Port:
    """How to compile, link and run; `missing` names what is not installed."""

    def __init__(self, compiler, compile_flags=(), link_flags=(), runner=()):
        self.compile = [compiler, "-std=c++23", "-O1", "-Wall", "-Wextra", "-Werror", *DEFINITIONS, *compile_flags]
        self.link = [compiler, *link_flags]
        self.runner = list(runner)

    def missing(self, work):
        probe = work / "probe.cpp"
        probe.write_text("#include <expected>\n#include <cstdio>\nint main() { return std::expected<int, int>(0).value(); }\n")
        built = subprocess.run([*self.compile, probe, "-c", "-o", work / "probe.o"], capture_output=True, text=True,
                               check=False)
        if built.returncode == 0:
            built = subprocess.run([*self.link, work / "probe.o", "-o", work / "probe"], capture_output=True, text=True,
                                   check=False)
        if built.returncode != 0:
            return built.stderr.strip().splitlines()[0]
        if self.runner and shutil.which(self.runner[0]) is None:
            return f"{self.runner[0]} is not installed"
        return None


def gcc():
    """The oldest g++ that is new enough: later ones are less tested."""
    for name in ("g++-14", "g++-15", "g++"):
        path = shutil.which(name)
        if path is None:
            continue
        version = subprocess.run([path, "-dumpversion"], capture_output=True, text=True, check=True).stdout
        if int(version.split(".")[0]) >= 14:
            # Symmetric transfer is a jump only from -O2 on; below it a long chain of resumes overflows the stack.
            return Port(path, ["-O2"], ["-pthread"])
    return None


def port_of(name, compiler):
    if name == "libcxx":
        return Port(compiler, ["-stdlib=libc++"], ["-stdlib=libc++", "-pthread"])
    if name == "aarch64":
        target = "--target=aarch64-linux-gnu"
        return Port(compiler, [target], [target, "-fuse-ld=lld", "-static", "-pthread"], ["qemu-aarch64"])
    return gcc()


def sources(core):
    text = (core / "CMakeLists.txt").read_text(encoding="utf-8")
    plain, with_asio = re.search(r"\bSOURCES\n(.*?)\bASIO_SOURCES\n(.*?)\bTESTS\n", text, re.S).groups()
    return re.findall(r"src/\w+\.cpp", plain), re.findall(r"src/\w+\.cpp", with_asio)


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(" ".join(str(word) for word in command))
        print(done.stdout + done.stderr)
        sys.exit(1)
    return done.stdout


def compiled(port, root, source, into):
    launcher = [shutil.which("ccache")] if shutil.which("ccache") else []
    run([*launcher, *port.compile, "-I", root / "core", "-I", root / "core/include", "-c", source, "-o", into])
    return into


def main(name, compiler, root, work):
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    port = port_of(name, compiler)
    lacking = "no g++ 14 or later is installed" if port is None else port.missing(work)
    if lacking:
        print(f"SKIPPED: {name}: {lacking}; {SETUP}")
        return
    objects = []
    for unit, files in zip(("plain", "asio"), sources(root / "core")):
        joined = work / f"library_{unit}.cpp"
        joined.write_text("".join(f'#include "{file}"\n' for file in files), encoding="utf-8")
        objects.append(compiled(port, root, joined, work / f"library_{unit}.o"))
    for source in PROGRAMS:
        program = work / pathlib.Path(source).stem
        own = compiled(port, root, root / source, program.with_suffix(".o"))
        run([*port.link, own, *objects, "-o", program])
        print(f"{source}: " + run([*port.runner, program]).strip().splitlines()[-1], flush=True)


if __name__ == "__main__":
    os.environ.setdefault("CCACHE_SLOPPINESS", "time_macros")
    main(sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4]))
