#!/usr/bin/env python3
"""How Stint classifies a failing provider, with the real agent CLIs: one table, CLI × fault × phase → verdict, requests,
account, text. src/driver/dialect_table_test.cpp checks the same table with recorded streams.

    cli_faults_test.py STINT FOLDER-FOR-THE-CLIS claude|codex|gemini[@VERSION] [row…]

Each row is one attempt of `stint run` against `stint provider`. Installs the CLI from npm, so it runs only in
`./dev test --full`; elsewhere, and where npm fails, it prints the reason and counts as skipped.
"""
import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

STINT = pathlib.Path(sys.argv[1]).resolve()
DRIVER, _, VERSION = sys.argv[3].partition("@")
FOLDER = pathlib.Path(sys.argv[2]).resolve() / sys.argv[3]
WANTED = sys.argv[4:]
PACKAGES = {"claude": ("@anthropic-ai/claude-code", "2.1.325"), "codex": ("@openai/codex", "0.169.0"), "gemini": ("@google/gemini-cli", "0.61.0")}
PACKAGE = f"{PACKAGES[DRIVER][0]}@{VERSION or PACKAGES[DRIVER][1]}"
ACCOUNTS = {"claude": "account:anthropic", "codex": "account:openai", "gemini": "account:google"}
INSTALL_SECONDS_MAX = 120
ROW_SECONDS_MAX = 90
IDLE = "6s"  # until a silent CLI counts as stalled, in the rows that test it
UNREACHABLE = "http://127.0.0.1:9"  # the port of `discard`: nothing listens there

# verdict: succeeded; final (fails at once); attempt (uses one up); parked (for a time); asks (parked until a person acts).
Row = collections.namedtuple("Row", "fault verdict requests text options", defaults=("", ()))
COMMON = [
    Row("", "succeeded", 1),
    Row("401", "asks", 2),
    Row("403", "final", 1, "not permitted to do that"),
    Row("404", "final", 2),
    Row("spend_limit", "final", 2),
    Row("429", "parked", 2),
    Row("429 retry_after=30", "parked", 2),
    Row("500", "attempt", 2),
    Row("529", "attempt", 2),
    Row("500 times=1", "succeeded", 2),
    Row("reset", "attempt", 2),
    Row("reset times=1", "succeeded", 2),
    Row("reset_stream", "attempt", 2),
    Row("half_stream", "attempt", 2),
    Row("unreachable", "parked", 0),
    Row("hang", "attempt", 1, "no output and no work for 6 s"),
    Row("hang_stream", "attempt", 1, "no output and no work for 6 s"),
]
SLOW = Row("first_token=6s", "succeeded", 1)
ROWS = {
    "claude": COMMON + [Row("400", "final", 6, "400"), SLOW],  # it retries without one optional field of the request after the other
    "codex": COMMON + [Row("400", "final", 1), SLOW, Row("budget", "expired", 1, "budget", ("--tokens", "9000")),
                       # Its own provider has no setting for retries: it tries five times before it reports the failure.
                       Row("builtin", "succeeded", 1), Row("builtin 500", "attempt", 5)],
    # It retries a broken stream up to four times, with any setting; a daily quota is a limit that expires.
    # After a reset it looks the same as a provider that is not there.
    "gemini": [row for row in COMMON if row.fault not in ("spend_limit", "reset", "half_stream", "reset_stream")] + [
        Row("spend_limit", "parked", 1), Row("reset", "parked", 2), Row("half_stream", "attempt", 4), Row("reset_stream", "attempt", 4),
        Row("400", "final", 1, "400"), SLOW],
}
RETRY_AFTER_KEPT = {"claude"}  # the others do not report the header's value


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(0)


def works(program):
    try:
        return subprocess.run([program, "--version"], capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def install():
    """The CLI's path."""
    program = FOLDER / "node_modules" / ".bin" / DRIVER
    if works(program):
        return program
    for needed in ("npm", "node"):
        if shutil.which(needed) is None:
            skip(f"{needed} is not installed, and the CLI comes from there")
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", FOLDER, PACKAGE], check=True, capture_output=True,
                       timeout=INSTALL_SECONDS_MAX)
        if DRIVER == "claude":  # npm may not run it
            subprocess.run(["node", "install.cjs"], cwd=FOLDER / "node_modules" / "@anthropic-ai" / "claude-code", check=True, capture_output=True,
                           timeout=INSTALL_SECONDS_MAX)
    except (OSError, subprocess.SubprocessError) as error:
        skip(f"npm could not install {PACKAGE}: {error}")
    if not works(program):
        skip(f"{PACKAGE} is installed and does not run here")
    return program


class Bench:
    """A project, a home and a provider of its own."""

    def __init__(self, program):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stint-faults-"))
        self.program = program
        self.provider = subprocess.Popen([STINT, "provider", "--json"], stdout=subprocess.PIPE, text=True)
        said = json.loads(self.provider.stdout.readline())
        self.url = said["url"]
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "XDG_STATE_HOME": str(self.folder / "state"), "LANG": "C.UTF-8",
                            "XDG_CONFIG_HOME": str(self.folder / "config"), "IS_SANDBOX": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                            "DISABLE_AUTOUPDATER": "1", "CODEX_API_KEY": "simulated", "GEMINI_CLI_TRUST_WORKSPACE": "true", **said["environment"]}
        (self.folder / ".gemini").mkdir()
        (self.folder / ".gemini" / "settings.json").write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')

    def agent(self, url, fault):
        """A project for each row: accounts are paused in one alone."""
        project = pathlib.Path(tempfile.mkdtemp(prefix="project-", dir=self.folder))
        (project / ".stint" / "agents").mkdir(parents=True)
        subprocess.run(["git", "init", "-q", project], check=True)
        args = ""
        if DRIVER == "codex":
            provider = f'model_providers.sim={{name="sim", base_url="{url}/v1", wire_api="responses", env_key="OPENAI_API_KEY"}}'
            builtin = ["-c", f'openai_base_url="{url}/v1"']
            args = "driver_args: " + json.dumps(builtin if fault.startswith("builtin") else ["-c", 'model_provider="sim"', "-c", provider]) + "\n"
        model = ("model: gemini-2.5-flash\n" if DRIVER == "gemini" else "") + (f"idle_timeout: {IDLE}\n" if fault.startswith("hang") else "")
        (project / ".stint" / "agents" / "ask.md").write_text(
            f"---\ndescription: asks\ndriver: {DRIVER}\n{model}{args}args:\n  - {{name: what, required: true}}\n---\n{{{{what}}}}\n")
        subprocess.run([STINT, "trust"], cwd=project, env=self.environment, check=True, capture_output=True)
        return project

    def stats(self):
        with urllib.request.urlopen(self.url + "/_/stats", timeout=20) as answer:
            return json.load(answer)

    def close(self):
        self.provider.terminate()
        self.provider.wait(20)
        self.provider.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def observe(bench, row):
    """The result of one attempt: verdict, requests, whether the account is paused, its text, the wait."""
    unreachable = row.fault == "unreachable"
    url = UNREACHABLE if unreachable else bench.url
    project = bench.agent(url, row.fault)
    environment = dict(bench.environment)
    if unreachable:
        environment.update(ANTHROPIC_BASE_URL=url, GOOGLE_GEMINI_BASE_URL=url, OPENAI_BASE_URL=url + "/v1")
    fault = row.fault.removeprefix("builtin").strip()
    order = "" if unreachable or fault in ("", "budget") else fault if "first_token" in fault else f"fault={fault}"
    before = bench.stats()["requests"]
    run = subprocess.Popen([STINT, "run", "ask", f"@provider: tokens=8 {order}\nSay it.", "--program", bench.program, "--attempts", "1", "--json",
                            *row.options],
                           cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    guard = threading.Timer(ROW_SECONDS_MAX, run.kill)
    guard.start()
    seen = {}
    try:
        for line in run.stdout:
            event = json.loads(line)
            if event["event"] in ("park", "result"):
                seen = event
                break
        status = json.loads(subprocess.run([STINT, "status", "--json"], cwd=project, env=environment, capture_output=True, check=True, text=True).stdout)
        paused = [limit for limit in status["limits"] if limit["paused"]]
        if run.poll() is None:
            run.send_signal(signal.SIGINT)
        run.communicate(timeout=30)
    finally:
        guard.cancel()
        run.kill()
        run.wait()
    text = seen.get("error") or seen.get("message") or seen.get("text") or ""
    state = seen.get("state", "no result in time")
    verdict = state
    if state == "failed":
        verdict = "attempt" if "that was attempt 1 of 1" in text else "final"
    if state == "parked":
        verdict = "parked" if paused and paused[0].get("paused_until_at") else "asks"
    wait = (paused[0].get("paused_until_at") or 0) / 1000 - time.time() if paused else 0
    return verdict, bench.stats()["requests"] - before, [limit["name"] for limit in paused], text, wait


def judge(row, verdict, requests, paused, text, wait):
    """The differences from the expected row; empty: none."""
    wrong = []
    if verdict != row.verdict:
        wrong.append(f"verdict {verdict}, expected {row.verdict}")
    if requests > row.requests or (row.requests and not requests):
        wrong.append(f"{requests} requests, expected at most {row.requests}")
    if paused != ([ACCOUNTS[DRIVER]] if row.verdict in ("parked", "asks") else []):
        wrong.append(f"paused: {paused}")
    if row.text and row.text not in text:
        wrong.append(f"the text lacks '{row.text}'")
    if verdict != "succeeded" and not text:
        wrong.append("no text")
    if "retry_after" in row.fault and DRIVER in RETRY_AFTER_KEPT and not 5 < wait <= 30:
        wrong.append(f"waits {wait:.0f} s, expected 30 s from the answer")
    return wrong


def main():
    if os.environ.get("TESTS_FROM_REGISTRIES") != "1":
        skip("it installs agent CLIs from npm; `./dev test --full` runs it")
    bench = Bench(install())
    failed = 0
    try:
        for row in ROWS[DRIVER]:
            if WANTED and row.fault not in WANTED:
                continue
            at = time.monotonic()
            seen = observe(bench, row)
            wrong = judge(row, *seen)
            failed += bool(wrong)
            print(f"{'FAILED' if wrong else 'ok':7}{DRIVER:7}{row.fault or 'none':22}{seen[0]:11}{seen[1]} requests {time.monotonic() - at:5.1f} s  {seen[3][:110]!r}",
                  flush=True)
            for each in wrong:
                print("        " + each, flush=True)
    finally:
        bench.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
