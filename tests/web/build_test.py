#!/usr/bin/env python3
"""Builds the dashboard from its lock file and compares it byte by byte with what is checked in: `build_test.py WORK`

Needs Node and a registry of packages: runs in `./dev test --full`, and prints SKIPPED where they are missing.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = pathlib.Path(sys.argv.pop(1)).resolve()
NODE_LEAST = 20


def run(words, cwd, seconds=600):
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=seconds, check=False)


def missing():
    """Why it can't run here; empty: it can."""
    if not os.environ.get("TESTS_FROM_REGISTRIES"):
        return "packages come from a registry: only in ./dev test --full"
    if shutil.which("node") is None or shutil.which("npm") is None:
        return "node or npm is not installed"
    version = run(["node", "--version"], ROOT).stdout.strip()
    return "" if int(version.lstrip("v").partition(".")[0]) >= NODE_LEAST else f"node {version} is older than {NODE_LEAST}"


class Build(unittest.TestCase):
    def test_a_build_gives_the_bytes_that_are_checked_in(self):
        web = WORK / "tree/web"
        shutil.rmtree(WORK / "tree", ignore_errors=True)
        shutil.copytree(ROOT / "web", web, ignore=shutil.ignore_patterns("node_modules", "dist"))
        (WORK / "tree/src/http").mkdir(parents=True)
        shutil.copy(ROOT / "src/http/openapi.json", WORK / "tree/src/http")
        installed = run(["npm", "ci", "--no-audit", "--no-fund"], web)
        if installed.returncode != 0:
            print(f"SKIPPED: npm ci: {installed.stderr.strip()[-400:]}")
            return
        for words in (["node", "build.mjs"], ["node_modules/.bin/tsc"]):
            done = run(words, web)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual((web / "src/api.gen.ts").read_bytes(), (ROOT / "web/src/api.gen.ts").read_bytes(), "./dev web")
        built = {path.name: path.read_bytes() for path in (web / "dist").iterdir()}
        kept = {path.name: path.read_bytes() for path in (ROOT / "web/dist").iterdir()}
        self.assertEqual(built.keys(), kept.keys(), "./dev web")
        for name, data in built.items():
            self.assertTrue(data == kept[name], f"{name} differs: ./dev web")


if __name__ == "__main__":
    if why := missing():
        print(f"SKIPPED: {why}")
        sys.exit(0)
    unittest.main()
