#!/usr/bin/env python3
"""Checks the house rules that no compiler knows. Runs as a test, and by `./dev check`.

    tools/tidy.py               all rules on the whole tree
    tools/tidy.py --list        the rules and their reasons
    tools/tidy.py --fix-docs    copies code that docs show from the files it is taken from

A rule is a function in tools/tidy_rules that yields (line, message). Each has a bad and a good sample in tools/tidy_test.py.
Exceptions are written down in EXEMPT, with a reason; there is no comment that silences a rule.
"""
import argparse
import dataclasses
import pathlib
import sys

from tidy_rules import build, concurrency, size, text, words  # noqa: F401  their import registers their rules
from tidy_rules.docs import fixed_docs
from tidy_rules.layers import LAYERS  # noqa: F401  docs/pictures/architecture.py draws it
from tidy_rules.tree import RULES, Tree

ROOT = pathlib.Path(__file__).resolve().parent.parent

# (rule, path or folder) → why the rule makes no sense there.
EXEMPT = {
    ("*", "bench/peers/"): "programs of others, kept to be measured against",
    ("clock", "tests/"): "they drive real processes in real time; unit tests live beside their code, where the rule holds",
    ("clock", "bench/"): "measures real time",
    ("clock", "examples/"): "programs of their own, like those of a user",
    ("clock", "src/driver/warden.cpp"): "a process of its own, one loop around poll(2); there is no executor to ask",
    ("clock", "src/store/store_bench.cpp"): "a program of its own: it has to read the clock",
    ("clock", "src/http/http_bench.cpp"): "a program of its own: it has to read the clock",
    ("clock", "src/limit/host_bench.cpp"): "a program of its own, with real processes: it has to read the clock",
    ("size", "web/src/api.gen.ts"): "generated from src/http/openapi.json",
    ("driver-names", "src/agent/foreign"): "which CLI the file format of another tool belongs to",
    ("driver-names", "src/agent/tool_table"): "the names that other tools' formats have for tools",
    ("driver-names", "src/model/provider_table"): "a provider that has the name of a CLI",
    ("driver-names", "src/domain/agent.cpp"): "the names of other tools' file formats",
    ("driver-names", "src/cli/init_templates.cpp"): "a text for people; src/cli/init_test.cpp compares it with the table",
    ("language", "src/net/transfer.cpp"): "an option of libcurl",
    ("language", "src/store/postgres_server.cpp"): "the user without rights of every system",
    ("language", "bench/postgres.py"): "the user without rights of every system",
    ("words", "src/cli/printable.cpp"): "the control character",
    ("words", "tests/integration/hostile_text_test.py"): "the control character",
    ("docs-paths", "docs/glossary.md"): "names the beginnings of paths",
    ("blocking", "tests/"): "drivers of real processes; no reactor to hold up",
    ("blocking", "bench/"): "no reactor to hold up",
    ("blocking", "core/src/spin_mutex.cpp"): "a nap of 50 µs when the holder of a lock was preempted",
    ("blocking", "src/os/"): "the one home of system calls",
    ("blocking", "src/net/stall_server.cpp"): "support of tests",
    ("blocking", "src/store/sqlite"): "runs on the writer thread",
    ("blocking", "cmake/"): "not code that runs",
    ("blocking-await", "src/fleet/store_location.cpp"): "opens a store before anything else runs on the process's reactor",
    ("blocking-await", "src/cli/store"): "opens, exports and imports a store before anything else runs on the command's reactor",
    ("blocking-await", "src/driver/ward.cpp"): "reaps a child that has just been killed; its pid must not be reused before",
    ("blocking-name", "src/os/"): "the one home of system calls",
    ("blocking-name", "src/store/sqlite"): "runs on the writer thread",
    ("blocking-name", "src/store/conformance.hpp"): "support of tests",
    ("blocking-name", "src/store/postgres_proxy.cpp"): "support of tests",
    ("blocking-name", "src/store/postgres_server.cpp"): "support of tests",
    ("blocking-name", "src/store/postgres_world.cpp"): "support of tests",
    ("blocking-name", "src/store/store_bench.cpp"): "a program of its own, without a reactor that others use",
    ("blocking-name", "src/app/log.cpp"): "a destructor at the exit of the process; it waits for at most 2 s",
    ("blocking-name", "src/driver/ward.cpp"): "a destructor; reaps wardens that have just been killed",
    ("blocking-name", "src/driver/warden.cpp"): "a process of its own, one loop around poll(2)",
}


@dataclasses.dataclass
class Finding:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}"


def exempt(name, path):
    return any(key in (name, "*") and path.startswith(prefix) for key, prefix in EXEMPT)


def check(tree, only=None):
    findings = []
    for file in tree.files:
        for name, (function, _) in RULES.items():
            if (only is None or name in only) and not exempt(name, file.path):
                findings += [Finding(file.path, line, name, message) for line, message in function(file)]
    return findings


def main(arguments):
    parser = argparse.ArgumentParser(description="Checks the house rules that no compiler knows.")
    parser.add_argument("--list", action="store_true", help="print the rules and their reasons")
    parser.add_argument("--fix-docs", action="store_true", help="copy the code shown in docs from the files it is taken from")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.list:
        for name, (_, reason) in RULES.items():
            print(f"{name:16} {reason}")
        return 0
    tree = Tree.at(options.root)
    if options.fix_docs:
        for file in tree.files:
            if file.is_markdown and fixed_docs(file) != file.text:
                (options.root / file.path).write_text(fixed_docs(file), encoding="utf-8")
                print(f"tidy: refreshed the code in {file.path}")
        return 0
    findings = check(tree)
    for finding in findings:
        print(finding)
    print(f"tidy: {len(tree.files)} files, {len(RULES)} rules, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
