#!/usr/bin/env python3
"""Uses the API through its OpenAPI document, as third-party clients do: `clients_test.py TOOL STINT SOURCE WORK`

redocly lints src/http/openapi.json; schemathesis sends a daemon requests that the document allows and others that it does not;
typescript, python and go compile a generated client, which submits a run, waits, lists and cancels.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import unittest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration"))
import daemon_support  # noqa: E402

NPM = {"redocly": ["@redocly/cli@2"], "typescript": ["openapi-typescript@7", "openapi-fetch@0.17", "typescript@5.9", "@types/node@20"]}
PYPI = {"schemathesis": ["schemathesis==4.*"], "python": ["openapi-python-client==0.*", "ruff"]}
GENERATOR = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2"
CHECKS = ("not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,"
          "negative_data_rejection,ignored_auth")


class Missing(Exception):
    """A tool's packages can't be installed here."""


def run(words, cwd, env=None, seconds=500):
    done = subprocess.run(words, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=seconds, check=False)
    return done.returncode, done.stdout + done.stderr


def must(words, cwd, env=None):
    status, said = run(words, cwd, env)
    assert status == 0, f"{words}: {said[-4000:]}"
    return said


def install(words, cwd, program):
    """Installs packages from registries. Without access to them the test is skipped, not failed."""
    if shutil.which(program) is None:
        raise Missing(f"{program} is not installed")
    try:
        status, said = run(words, cwd, seconds=300)
    except (subprocess.TimeoutExpired, OSError) as error:
        raise Missing(str(error)) from None
    if status != 0:
        raise Missing(f"{' '.join(words)}: {said.strip().splitlines()[-1] if said.strip() else status}")


def install_npm(tool, work):
    (work / "package.json").write_text('{"private": true, "type": "module"}\n')
    install(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *NPM[tool]], work, "npm")
    return work / "node_modules" / ".bin"


def install_pypi(tool, work):
    if not (work / "venv").exists():
        install([sys.executable, "-m", "venv", str(work / "venv")], work, "python3")  # Debian has it in a separate package
    install([str(work / "venv" / "bin" / "pip"), "install", "--quiet", *PYPI[tool]], work, "python3")
    return work / "venv" / "bin"


class Clients(daemon_support.Case):
    settings = 'default_agent = "quick"\n[pool]\nworkers = 4\nautoscale = false\n'

    def setUp(self):
        super().setUp()
        self.tool, self.source, self.work = TOOL, SOURCE, WORK
        self.document = self.source / "src" / "http" / "openapi.json"

    def runTest(self):
        self.work.mkdir(parents=True, exist_ok=True)
        try:
            getattr(self, self.tool)()
        except Missing as missing:
            print(f"SKIPPED: {missing}")

    def environment(self):
        daemon = self.serve()
        return {"STINT_URL": f"http://{daemon.host}:{daemon.port}", "STINT_TOKEN": daemon.token}

    def redocly(self):
        programs = install_npm("redocly", self.work)
        print(must([programs / "redocly", "lint", self.document], self.work, {"CI": "true"}))

    @staticmethod
    def end_runs(daemon, ended):
        """The document allows runs with a delay, a pause and a pool without workers: a request that waits for such a run must still end."""
        while not ended.wait(1):
            for state in ("queued", "running", "parked"):
                for run in daemon.get(f"/v1/runs?state={state}&limit=1000")["runs"]:
                    daemon.ask("POST", f"/v1/runs/{run['id']}/cancel")

    def schemathesis(self):
        programs = install_pypi("schemathesis", self.work)
        daemon = self.serve()
        for _ in range(3):
            daemon.wait(daemon.submit("quick"))
        ended = threading.Event()
        ending = threading.Thread(target=self.end_runs, args=(daemon, ended))
        ending.start()
        self.addCleanup(ending.join)
        self.addCleanup(ended.set)
        print(must([programs / "schemathesis", "run", f"http://{daemon.host}:{daemon.port}/openapi.json", "-H", f"Authorization: Bearer {daemon.token}",
                    "--exclude-path", "/v1/pool/drain", "--checks", CHECKS, "--max-examples", "30", "--seed", "1", "--phases", "examples,coverage,fuzzing",
                    "--suppress-health-check", "all", "--no-color"], self.work))
        self.assertEqual(daemon.ask("GET", "/healthz")[0], 200)

    def typescript(self):
        programs = install_npm("typescript", self.work)
        shutil.copy(HERE / "client.ts", self.work)
        must([programs / "openapi-typescript", self.document, "-o", "api.d.ts"], self.work)
        must([programs / "tsc", "--strict", "--noEmitOnError", "--target", "es2022", "--module", "nodenext", "--outDir", "out", "client.ts"], self.work)
        self.assertIn("done", must(["node", "out/client.js"], self.work, self.environment()))

    def python(self):
        programs = install_pypi("python", self.work)
        path = {"PATH": f"{programs}:{os.environ['PATH']}"}
        must([programs / "openapi-python-client", "generate", "--path", self.document, "--output-path", self.work / "client", "--overwrite", "--fail-on-warning"], self.work, path)
        install([str(programs / "pip"), "install", "--quiet", "httpx", "attrs", "python-dateutil"], self.work, "python3")
        self.assertIn("done", must([programs / "python3", HERE / "client_use.py"], self.work, {**self.environment(), "PYTHONPATH": str(self.work / "client")}))

    def go(self):
        (self.work / "go.mod").write_text("module stint.test/clients\n\ngo 1.23\n")
        install(["go", "get", "-tool", GENERATOR], self.work, "go")
        shutil.copy(HERE / "client.go", self.work)
        must(["go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "main", "-o", "api.go", self.document], self.work)
        install(["go", "mod", "tidy"], self.work, "go")
        must(["go", "vet", "."], self.work)
        self.assertIn("done", must(["go", "run", "."], self.work, self.environment()))


if __name__ == "__main__":
    if os.environ.get("TESTS_FROM_REGISTRIES") != "1":
        print("SKIPPED: it installs packages from registries; `./dev test --full` runs it")
        sys.exit(0)
    TOOL, daemon_support.STINT, SOURCE, WORK = sys.argv[1], os.path.abspath(sys.argv[2]), pathlib.Path(sys.argv[3]).resolve(), pathlib.Path(sys.argv[4]).resolve()
    result = unittest.TextTestRunner(verbosity=2).run(Clients())
    sys.exit(not result.wasSuccessful())
