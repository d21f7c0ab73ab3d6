#!/usr/bin/env python3
"""Completes `stint` in real shells.

    completions_test.py PATH-TO-STINT
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import unittest

from home_support import Home

STINT = os.path.abspath(sys.argv.pop(1))


class Shells(Home):
    def setUp(self):
        super().setUp()
        (self.base / "bin").mkdir()
        (self.base / "bin" / "stint").symlink_to(STINT)
        agents = self.folder / ".stint" / "agents"
        agents.mkdir(parents=True)
        (agents / "review.md").write_text("---\ndescription: Reviews it's \"all\" $HOME\n---\nDo it.\n")
        (self.folder / "stint.toml").write_text('[limits]\ngpu = 2\n"model:opus" = 1\n"model:haiku" = 1\n')
        (self.folder / "a file").write_text("")

    def environment(self):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("STINT_", "XDG_"))}
        return {**kept, "HOME": str(self.base / "home"), "PATH": f"{self.base / 'bin'}:{os.environ['PATH']}"}

    def run_in(self, command, text=None):
        done = subprocess.run(command, cwd=self.folder, env=self.environment(), input=text, capture_output=True, text=True, timeout=50)
        self.assertEqual((done.returncode, done.stderr), (0, ""), command)
        return done.stdout

    def script(self, shell):
        path = self.base / f"stint.{shell}"
        path.write_text(self.run_in([STINT, "completions", shell]))
        return path

    def shell(self, name):
        if not shutil.which(name):
            self.skipTest(f"{name} is not installed: apt-get install {name}")

    def bash(self, line):
        """What bash offers at the end of the line, with words broken at : and =, as readline does."""
        words = [word for word in re.split(r"\s+|([:=])", line) if word is not None]
        array = " ".join(shlex.quote(word) for word in words)
        text = (f"source {self.script('bash')}\nCOMP_WORDS=({array}); COMP_CWORD={len(words) - 1}\n"
                f"COMP_LINE={shlex.quote(line)}; COMP_POINT=${{#COMP_LINE}}\n_stint\n"
                'for word in "${COMPREPLY[@]}"; do printf "%s\\n" "$word"; done\n')
        return self.run_in(["bash", "--norc", "--noprofile"], text).splitlines()

    def test_bash_completes_commands_options_and_names(self):
        self.assertEqual(self.bash("stint wi"), ["with"])
        self.assertEqual(self.bash("stint doctor --j"), ["--json"])
        self.assertEqual(self.bash("stint agents "), ["review"])
        self.assertEqual(self.bash("stint with g"), ["gpu"])
        self.assertEqual(self.bash("stint completions "), ["bash", "zsh", "fish"])

    def test_bash_completes_what_follows_a_colon(self):
        self.assertEqual(self.bash("stint with model:"), ["opus", "haiku"][::-1])
        self.assertEqual(self.bash("stint with model:o"), ["opus"])

    def test_bash_offers_commands_and_files_after_the_dashes(self):
        self.assertIn("true", self.bash("stint with gpu -- tru"))
        self.assertEqual(self.bash("stint with gpu -- cat a"), ["a file"])

    def test_bash_knows_the_function_for_stint(self):
        self.assertIn("complete -F _stint stint", self.run_in(["bash", "--norc"], f"source {self.script('bash')}; complete -p stint"))

    def test_every_command_and_option_of_the_help_is_completed(self):
        listed = re.search(r"Subcommands:\n(.*)", self.run_in([STINT, "--help"]), re.S)[1]
        commands = re.findall(r"(?m)^  (\w+)", listed)
        self.assertGreater(len(commands), 5)
        self.assertEqual(sorted(self.bash("stint ")), sorted(commands))
        for command in commands:
            options = re.findall(r"(?m)^  (?:-\w,)?(--[\w-]+)", self.run_in([STINT, command, "--help"]))
            self.assertLessEqual(set(options), set(self.bash(f"stint {command} --")), command)

    def test_it_prints_no_errors(self):
        (self.folder / "stint.toml").write_text("not toml")
        self.assertEqual(self.bash("stint with g"), [])
        self.assertEqual(self.bash("stint nonsense --"), ["--help", "--version"])

    def test_an_unknown_shell_is_refused(self):
        done = subprocess.run([STINT, "completions", "tcsh"], capture_output=True, text=True, timeout=50)
        self.assertEqual(done.returncode, 2)
        self.assertIn("bash", done.stderr)

    def test_zsh(self):
        self.shell("zsh")
        script = self.script("zsh")
        self.run_in(["zsh", "-n", str(script)])
        # Its completion system needs a terminal; what the function would hand over to it does not.
        text = (f"compdef() {{ }}\ncompadd() {{ print -rl -- $names; print -rl -- $shown }}\n_files() {{ print files }}\n_command_names() {{ print commands }}\n"
                f"source {script}\nfor line in 'stint wi' 'stint agents r' 'stint with model:o' 'stint with gpu -- x'; do\n"
                "words=(${(z)line}); CURRENT=$#words; _stint\ndone\n")
        self.assertEqual(self.run_in(["zsh", "-f"], text).splitlines(),
                         ["with", "with  -- Run any command under host limits: stint with gpu=2 -- ./train.sh",
                          "review", "review  -- Reviews it's \"all\" $HOME", "model:opus", "model:opus", "commands"])

    def test_fish(self):
        self.shell("fish")
        script = self.script("fish")
        self.run_in(["fish", "--no-execute", str(script)])

        def complete(line):
            return self.run_in(["fish", "--no-config", "-c", f"source {script}; complete -C {shlex.quote(line)}"]).splitlines()

        self.assertEqual(complete("stint wi"), ["with\tRun any command under host limits: stint with gpu=2 -- ./train.sh"])
        self.assertEqual(complete("stint agents r"), ["review\tReviews it's \"all\" $HOME"])
        self.assertEqual(complete("stint with model:o"), ["model:opus"])
        self.assertIn("a file", " ".join(complete("stint with gpu -- cat a")))


if __name__ == "__main__":
    unittest.main()
