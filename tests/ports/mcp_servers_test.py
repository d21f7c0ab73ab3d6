#!/usr/bin/env python3
"""Our client of MCP with real servers, from npm and PyPI: `mcp_servers_test.py MCP_TOOL WORK`

Where a registry can't be reached, it prints `SKIPPED: …`, which ctest shows.
"""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import unittest

TOOL, WORK = sys.argv[1], pathlib.Path(sys.argv[2])
NPM = ["@modelcontextprotocol/server-everything@2026.8.31", "@modelcontextprotocol/server-filesystem@2026.8.31"]
PYPI = "mcp==1.30.0"
PYTHON_SERVER = """
from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations
import sys
server = FastMCP("sums", port=int(sys.argv[2]) if len(sys.argv) > 2 else 8000)

@server.tool()
def add(a: int, b: int) -> int:
    return a + b

@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def fail() -> str:
    raise ValueError("out of sums")

server.run(sys.argv[1])
"""


def install(what, command, marker):
    """Installs once; a registry that can't be reached skips what needs it."""
    if marker.exists():
        return
    if shutil.which(command[0]) is None:
        raise unittest.SkipTest(f"{command[0]} is not installed")
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    if done.returncode != 0:
        raise unittest.SkipTest(f"{what} can't be installed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    marker.touch()


def talk(words, calls):
    done = subprocess.run([TOOL, *words], input="".join(call + "\n" for call in calls), capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


class Npm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        install("servers from npm", ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(WORK / "npm"), *NPM], WORK / "npm.installed")

    def server(self, name):
        return str(WORK / "npm/node_modules/.bin" / name)

    def test_everything(self):
        said = talk(["stdio", self.server("mcp-server-everything")], ['s__echo {"message": "hello"}', 's__echo {"message": 1}'])
        self.assertIn("tool s__echo ", said)
        self.assertIn("done Echo: hello", said)
        self.assertIn("not_started error", said)
        self.assertIn("left 0", said)

    def test_filesystem(self):
        folder = WORK / "files"
        folder.mkdir(exist_ok=True)
        (folder / "a.txt").write_text("inside")
        said = talk(["stdio", self.server("mcp-server-filesystem"), str(folder)],
                    [f's__read_text_file {{"path": "{folder}/a.txt"}}', 's__read_text_file {"path": "/etc/passwd"}'])
        self.assertIn("tool s__read_text_file read", said)
        self.assertIn("done inside", said)
        self.assertIn("done error", said)
        self.assertIn("left 0", said)


class Python(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        venv = WORK / "venv"
        if not (venv / "bin/pip").exists():
            subprocess.run([sys.executable, "-m", "venv", str(venv)], check=False, capture_output=True)
        install("the Python SDK", [str(venv / "bin/pip"), "install", "-q", PYPI], WORK / "pypi.installed")
        cls.python = str(venv / "bin/python3")
        (WORK / "sums.py").write_text(PYTHON_SERVER)

    def expect(self, said):
        self.assertIn("tool s__fail read", said)
        self.assertIn("tool s__add once", said)
        self.assertIn("done 5", said)
        self.assertIn("done error", said)
        self.assertIn("out of sums", said)
        self.assertIn("left 0", said)

    def test_stdio(self):
        self.expect(talk(["stdio", self.python, str(WORK / "sums.py"), "stdio"], ['s__add {"a": 2, "b": 3}', "s__fail {}"]))

    def test_streamable_http(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = subprocess.Popen([self.python, str(WORK / "sums.py"), "streamable-http", str(port)], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        self.expect(talk(["http", f"http://127.0.0.1:{port}/mcp"], ['s__add {"a": 2, "b": 3}', "s__fail {}"]))


if __name__ == "__main__":
    os.makedirs(WORK, exist_ok=True)
    outcome = unittest.main(argv=sys.argv[:1], exit=False).result
    for case, reason in outcome.skipped:
        print(f"SKIPPED: {case}: {reason}")
    sys.exit(0 if outcome.wasSuccessful() else 1)
