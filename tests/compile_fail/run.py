#!/usr/bin/env python3
"""Compiles a case without its mistakes, which must work, and with each of them, which must fail with the expected error.

    run.py case.cpp compiler arguments…

A case has a comment `// MISTAKE 1: regular expression` for each of its `#if MISTAKE == 1`.
"""
import re
import subprocess
import sys


def compile_with(command, case, mistake):
    return subprocess.run([*command, f"-DMISTAKE={mistake}", case], capture_output=True, text=True, check=False)


def main(case, command):
    with open(case, encoding="utf-8") as file:
        expected = re.findall(r"^// MISTAKE (\d+): (.*)$", file.read(), re.M)
    if not expected:
        return [f"{case} names no mistake"]
    problems = []
    good = compile_with(command, case, 0)
    if good.returncode != 0:
        problems.append(f"without a mistake it does not compile:\n{good.stderr}")
    for number, words in expected:
        bad = compile_with(command, case, number)
        if bad.returncode == 0:
            problems.append(f"mistake {number} compiles; it must be refused with: {words}")
        elif not re.search(words, bad.stderr):
            problems.append(f"mistake {number} is refused, but not with: {words}\n{bad.stderr}")
    return problems


if __name__ == "__main__":
    found = main(sys.argv[1], sys.argv[2:])
    for problem in found:
        print(problem)
    sys.exit(1 if found else 0)
