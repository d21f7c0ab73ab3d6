#!/usr/bin/env python3
"""The tests that the docs name exist, and the tables of docs/testing.md have a row for every behaviour.

A name is `Suite.test` in backticks; a * stands for the rest of it. Paths are checked by tools/tidy.py.
"""
import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEHAVIOURS, HARDEST = 130, 15
DEFINED = re.compile(r"^(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP)\(\s*(\w+),\s*(\w+)", re.M)
NAMED = re.compile(r"`([A-Z]\w*\.[a-z*][\w*]*)`")
FILES = (".json", ".md", ".txt")  # `CMakeLists.txt` is a file, not a test


def defined(root):
    tests = set()
    for folder in ("core", "src", "tests", "examples"):
        for path in (root / folder).rglob("*_test.cpp"):
            tests.update(f"{suite}.{name}" for suite, name in DEFINED.findall(path.read_text(encoding="utf-8")))
    return tests


def missing(text, tests):
    names = {name for name in NAMED.findall(text) if not name.endswith(FILES)}
    return sorted(name for name in names if not fnmatch.filter(tests, name))


def bad_rows(text, count):
    """Rows of `| number | … | tests or a reason |`: each number once, in order, and none of them empty."""
    rows = re.findall(r"^\| (\d+) \|([^|]*)\|([^|]*)\|$", text, re.M)
    found = [int(number) for number, _, _ in rows]
    bad = [] if found == list(range(1, count + 1)) else [f"rows {found} instead of 1 to {count}"]
    return bad + [f"row {number} says nothing" for number, behaviour, tests in rows if not behaviour.strip() or not tests.strip()]


def main():
    tests = defined(ROOT)
    # Both checks can fail.
    assert missing("`Semaphore.no_test_has_this_name` and `CMakeLists.txt`", tests) == ["Semaphore.no_test_has_this_name"]
    assert bad_rows("| 1 | a | `b` |\n| 3 | a | |\n", 3) == ["rows [1, 3] instead of 1 to 3", "row 3 says nothing"]

    problems = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if path.exists():
            problems += [f"{path.relative_to(ROOT)}: no test is called {name}" for name in missing(path.read_text(encoding="utf-8"), tests)]
    behaviours, hardest = (ROOT / "docs/testing.md").read_text(encoding="utf-8").split("## The hardest cases", 1)
    problems += [f"docs/testing.md: {problem}" for problem in bad_rows(behaviours, BEHAVIOURS) + bad_rows(hardest, HARDEST)]
    for problem in problems:
        print(problem)
    print(f"docs: {len(tests)} tests, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
