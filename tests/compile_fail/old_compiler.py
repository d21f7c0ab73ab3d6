#!/usr/bin/env python3
"""Every header of the library, included alone, refuses g++ 12 with the reason: `old_compiler.py core/include`."""
import pathlib
import shutil
import subprocess
import sys

REASON = "g++ 12 destroys temporaries twice in coroutines"
FIRST_THAT_WORKS = 14


def old_compiler():
    for name in ("g++-12", "g++"):
        path = shutil.which(name)
        if path is None:
            continue
        version = subprocess.run([path, "-dumpversion"], capture_output=True, text=True, check=True).stdout
        if int(version.split(".")[0]) < FIRST_THAT_WORKS:
            return path
    return None


def main(include):
    compiler = old_compiler()
    if compiler is None:
        print(f"SKIPPED: no g++ before {FIRST_THAT_WORKS} is installed")
        return []
    problems = []
    for header in sorted(pathlib.Path(include).glob("stint/**/*.hpp")):
        name = header.relative_to(include)
        # Preprocessing only: other errors of such a compiler don't matter.
        refused = subprocess.run([compiler, "-std=c++23", "-E", "-x", "c++", "-", "-I", include, "-o", "/dev/null"],
                                 input=f'#include "{name}"\n', capture_output=True, text=True, check=False)
        if refused.returncode == 0:
            problems.append(f"{name} is accepted by {compiler}")
        elif REASON not in refused.stderr:
            problems.append(f"{name} is refused by {compiler}, but not with the reason:\n{refused.stderr}")
    return problems


if __name__ == "__main__":
    found = main(sys.argv[1])
    for problem in found:
        print(problem)
    sys.exit(1 if found else 0)
