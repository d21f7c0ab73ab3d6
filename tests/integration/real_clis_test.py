#!/usr/bin/env python3
"""The real agent CLIs under Stint, against `stint provider`: `real_clis_test.py STINT WORK CLI`

CLI is claude, codex or gemini, from npm; or sdk, Anthropic's Python SDK. Runs only in `./dev test --full`; elsewhere,
and where the CLI can't be installed, it prints SKIPPED.

`permissions: read` writes nothing: whatever tool the model calls, every file of the checkout and of its .git stays unchanged. Each refused call is
reported with a line that allows it; with that line in the agent's file the same call succeeds.
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
import clients_test  # noqa: E402
import run_test  # noqa: E402
from host_support import read, write  # noqa: E402

PACKAGES = {"claude": "@anthropic-ai/claude-code@2.1.325", "codex": "@openai/codex@0.169.0", "gemini": "@google/gemini-cli@0.61.0"}
RUN_SECONDS_MAX = 100
CALLS_MAX = 30  # of one turn
COMMANDS = ["touch x", "echo hi > x", "git status", "git diff", "git branch foo", "git tag t", "git stash", "git config user.name x", "git log --output=x",
            "sort -o x a.txt", "sed -i s/a/b/ a.txt", "find . -name a.txt -delete", "cat a.txt | tee y", "cp a.txt b.txt", "bash -c 'touch x'",
            "true && touch x", "git checkout -b x", "uniq a.txt x", "mkdir d", "rm a.txt", "git gc", "git update-index --refresh", "git worktree add w"]


def fingerprint(folder):
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
    return found


def prompt_of(calls):
    turns = [calls[i:i + CALLS_MAX] for i in range(0, len(calls), CALLS_MAX)]
    lines = ["@provider: " + " ".join(f"tool={name} input={json.dumps(given)}" for name, given in turn) for turn in turns]
    return "\n".join([*lines, "@provider: text=done"]) + "\n"


class Case(run_test.Case):
    cli = ""

    def setUp(self):
        super().setUp()
        self.provider = subprocess.Popen([run_test.STINT, "provider", "--json"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.provider.stdout.close)
        self.addCleanup(self.provider.wait)
        self.addCleanup(self.provider.terminate)
        listening = json.loads(self.provider.stdout.readline())
        self.url = listening["url"]
        self.b.env.update(listening["environment"], CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", IS_SANDBOX="1", CODEX_HOME=f"{self.b.home}/codex")
        self.b.env["PATH"] = f"{WORK}/node_modules/.bin:{self.b.env['PATH']}"
        os.makedirs(f"{self.b.home}/codex")
        write(f"{self.b.home}/codex/config.toml", 'model_provider = "sim"\n[model_providers.sim]\nname = "sim"\n'
              f'base_url = "{self.url}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n')
        write(f"{self.project}/a.txt", "hi\n")
        git = ["git", "-C", self.project, "-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run([*git, "add", "a.txt"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)

    def run_calls(self, permissions, calls, more=""):
        self.agent("try", f"driver: {self.cli}\npermissions: {permissions}\nbudget: {{attempts: 1}}\n{more}", prompt_of(calls))
        self.trust()
        status, events = self.run_json("try", timeout=RUN_SECONDS_MAX)
        self.assertEqual((status, events[-1]["state"]), (0, "succeeded"), events[-1])
        return events[-1]

    def check_read(self, calls):
        """Makes all these calls, and returns the refused ones."""
        self.run_calls("read", [])  # files of a CLI's first start don't count
        os.utime(f"{self.project}/a.txt")  # makes git rewrite its index
        before = {name: value for name, value in fingerprint(self.project).items() if not name.startswith((".stint", ".git/stint"))}
        result = self.run_calls("read", calls)
        after = {name: value for name, value in fingerprint(self.project).items() if not name.startswith((".stint", ".git/stint"))}
        self.assertEqual(before, after)
        return result["denials"]

    def check_allowed(self, denial, call, made):
        """The printed line shows that the call is done."""
        key, _, value = denial["allow"].partition(": ")
        self.run_calls(value if key == "permissions" else "read", [call], "" if key == "permissions" else denial["allow"] + "\n")
        self.assertTrue(os.path.exists(f"{self.project}/{made}"), denial)


class Claude(Case):
    cli = "claude"

    def test_read_permission_writes_nothing_with_any_tool(self):
        path = f"{self.project}/w.txt"
        given = {"Task": {"description": "d", "prompt": "p", "subagent_type": "general-purpose", "isolation": "worktree"},
                 "Write": {"file_path": path, "content": "x"}, "Edit": {"file_path": f"{self.project}/a.txt", "old_string": "hi", "new_string": "ho"},
                 "NotebookEdit": {"notebook_path": f"{self.project}/n.ipynb", "new_source": "x"}, "EnterWorktree": {"name": "tree"},
                 "Monitor": {"command": "touch m", "description": "d", "timeout_ms": 2000, "persistent": False},
                 "CronCreate": {"cron": "*/5 * * * *", "prompt": "x", "recurring": True, "durable": True}, "Skill": {"skill": "init"},
                 "Read": {"file_path": f"{self.project}/a.txt"}}
        launch = subprocess.run(["claude", "-p", "--output-format=stream-json", "--verbose", "--permission-mode=bypassPermissions", "hello"], env=self.b.env,
                                cwd=self.project, capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
        tools = next(event["tools"] for event in map(json.loads, launch.stdout.splitlines()) if event.get("subtype") == "init")
        self.assertIn("EnterWorktree", tools)
        calls = [(name, given.get(name, {})) for name in [*tools, "Agent", "MultiEdit"] if name != "Bash"] + [("Bash", {"command": each}) for each in COMMANDS]
        denials = {(denial["tool"], denial["call"]): denial for denial in self.check_read(calls)}
        tools_denied = {tool for tool, _ in denials}
        self.assertLessEqual({"Write", "Edit", "EnterWorktree", "Bash"}, tools_denied)
        self.assertNotIn("Read", tools_denied)
        self.check_allowed(denials[("Bash", "touch x")], ("Bash", {"command": "touch x"}), "x")
        self.check_allowed(denials[("Bash", "true && touch x")], ("Bash", {"command": "true && touch x2"}), "x2")
        self.check_allowed(denials[("Write", path)], ("Write", given["Write"]), "w.txt")
        self.check_allowed(next(denial for (tool, _), denial in denials.items() if tool == "EnterWorktree"), ("EnterWorktree", {"name": "tree"}), ".claude/worktrees")

    def test_a_rule_in_a_foreign_file_allows_its_command_alone(self):
        os.makedirs(f"{self.project}/.claude/agents")
        write(f"{self.project}/.claude/agents/logs.md", "---\nname: logs\ndescription: d\ntools: Read, Bash(touch allowed:*)\n---\nx\n")
        self.trust()
        calls = [("Bash", {"command": each}) for each in ("touch allowed", "touch other", "rm a.txt", "mv a.txt b.txt")] + [("Write", {"file_path": "w", "content": "x"})]
        out = self.b.run("run", "logs", prompt_of(calls), timeout=RUN_SECONDS_MAX)
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertEqual(sorted(name for name in os.listdir(self.project) if not name.startswith(".")), ["a.txt", "allowed"])

    def test_edits_beside_a_rule_stay_in_the_folder(self):
        os.makedirs(f"{self.project}/.claude/agents")
        write(f"{self.project}/.claude/agents/edits.md", "---\nname: edits\ndescription: d\ntools: Read, Edit, Write, Bash(git log:*)\n---\nx\n")
        self.trust()
        calls = [("Write", {"file_path": f"{self.project}/inside.txt", "content": "x"}), ("Write", {"file_path": f"{self.b.home}/outside.txt", "content": "x"})]
        out = self.b.run("run", "edits", prompt_of(calls), timeout=RUN_SECONDS_MAX)
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertTrue(os.path.exists(f"{self.project}/inside.txt"), out.stdout + out.stderr)
        self.assertFalse(os.path.exists(f"{self.b.home}/outside.txt"))


class Codex(Case):
    cli = "codex"

    def test_read_permission_writes_nothing_with_any_call(self):
        patch = "*** Begin Patch\n*** Add File: p\n+x\n*** End Patch"
        calls = [("exec_command", {"cmd": each}) for each in [*COMMANDS, "echo; echo x > c; echo", f"apply_patch <<'EOF'\n{patch}\nEOF"]]
        denials = self.check_read(calls)
        self.assertTrue(denials)
        told = {denial["tool"]: denial for denial in denials}
        self.check_allowed(told["shell"], ("exec_command", {"cmd": "echo x > c"}), "c")
        if "apply_patch" in told:
            self.check_allowed(told["apply_patch"], calls[-1], "p")


class Gemini(Case):
    cli = "gemini"

    def test_read_permission_writes_nothing_with_any_call(self):
        path = f"{self.project}/g.txt"
        calls = [("run_shell_command", {"command": each, "description": "d"}) for each in COMMANDS[:6]]
        calls += [("write_file", {"file_path": path, "content": "x"}), ("replace", {"file_path": f"{self.project}/a.txt", "old_string": "hi", "new_string": "ho", "instruction": "i"}),
                  ("save_memory", {"fact": "x"}), ("write_todos", {"todos": []}), ("enter_plan_mode", {}), ("no_such_tool", {}), ("read_file", {"file_path": f"{self.project}/a.txt"})]
        told = {denial["tool"]: denial for denial in self.check_read(calls)}
        self.assertEqual(sorted(told), ["replace", "run_shell_command", "write_file"])
        self.check_allowed(told["write_file"], ("write_file", {"file_path": path, "content": "x"}), "g.txt")
        self.check_allowed(told["run_shell_command"], ("run_shell_command", {"command": "touch s", "description": "d"}), "s")

    def test_the_printed_variables_are_enough(self):
        names = [name for name in self.b.env if name.startswith(("GOOGLE_", "GEMINI_"))]
        env = {"PATH": self.b.env["PATH"], "HOME": self.b.home, **{name: self.b.env[name] for name in names}}
        done = subprocess.run(["gemini", "--skip-trust", "-p", "@provider: text=\"hello from here\""], env=env, cwd=self.project, capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "hello from here"), done.stderr)


SDK = """
import anthropic, sys
client = anthropic.Anthropic(base_url=sys.argv[1], api_key="simulated")
@anthropic.beta_tool
def add(a: int, b: int) -> str:
    '''Adds.'''
    return str(a + b)
prompt = '@provider: tool=add input={"a": 1, "b": 2}\\n@provider: tool=add input={"a": 3, "b": 4}\\n@provider: text=finished'
said = [message.stop_reason for message in client.beta.messages.tool_runner(model="m", max_tokens=1000, tools=[add], messages=[{"role": "user", "content": prompt}])]
cut = client.messages.create(model="m", max_tokens=2, messages=[{"role": "user", "content": [{"type": "text", "text": "hello"}]}])
print(said, cut.stop_reason, cut.usage.output_tokens, client.models.retrieve("some-model").id)
"""


class Sdk(Case):
    def test_tool_runner_cut_answer_and_model(self):
        done = subprocess.run([f"{WORK}/venv/bin/python", "-c", SDK, self.url], capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
        self.assertEqual(done.stdout.strip(), "['tool_use', 'tool_use', 'end_turn'] max_tokens 2 some-model", done.stderr[-2000:])


def install(cli):
    WORK.mkdir(parents=True, exist_ok=True)
    if cli == "sdk":
        if not (WORK / "venv").exists():
            clients_test.install([sys.executable, "-m", "venv", str(WORK / "venv")], WORK, "python3")
        clients_test.install([str(WORK / "venv" / "bin" / "pip"), "install", "--quiet", "anthropic==2.9.0"], WORK, "python3")
        return
    (WORK / "package.json").write_text('{"private": true}\n')
    clients_test.install(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", PACKAGES[cli]], WORK, "npm")
    if cli == "claude":  # npm may not run it
        clients_test.install(["node", "install.cjs"], WORK / "node_modules" / "@anthropic-ai" / "claude-code", "node")


if __name__ == "__main__":
    run_test.STINT, WORK, name = os.path.abspath(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1)).resolve(), sys.argv.pop(1)
    if os.environ.get("TESTS_FROM_REGISTRIES") != "1":
        print("SKIPPED: it installs packages from registries; `./dev test --full` runs it")
        sys.exit(0)
    try:
        install(name)
    except clients_test.Missing as missing:
        print(f"SKIPPED: {missing}")
        sys.exit(0)
    sys.argv.insert(1, name.capitalize())
    unittest.main(verbosity=2)
