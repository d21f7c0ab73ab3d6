#!/usr/bin/env python3
"""The code of a page compiles as a reader sees it: its pieces one after another, with nothing that the page does not show.

    docs_code_test.py COMPILER ARGUMENTS…

Pieces that are taken from a program in examples/ are parts of it, and compiled with it; a piece with a `main` is a
program of its own, and the same.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ["docs/library.md", "docs/learn.md"]
PIECE = re.compile(r"<!-- from: examples/snippets/([^ ]+) -->\n```cpp\n(.*?)```", re.S)


def page_as_code(text):
    return "\n".join(f'#line 1 "{name}"\n{code}' for name, code in PIECE.findall(text))


def refusal(command, code):
    done = subprocess.run([*command, "-fsyntax-only", "-x", "c++", "-"], input=code, capture_output=True, text=True,
                          check=False)
    return done.stderr if done.returncode != 0 else None


def main(command):
    assert page_as_code("<!-- from: examples/snippets/a.cpp#b -->\n```cpp\nint a;\n```\n") == '#line 1 "a.cpp#b"\nint a;\n'
    problems = 0
    for page in PAGES:
        said = refusal(command, page_as_code((ROOT / page).read_text(encoding="utf-8")))
        if said is not None:
            problems += 1
            print(f"{page}: its code does not compile as it stands:\n{said}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
