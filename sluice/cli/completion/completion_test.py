"""The completion of command lines as the shells do it. Run by ctest with the program as the last argument.

bash runs the completion function with the COMP_* variables of a line, and once on a terminal. fish completes a line with
`complete -C`. zsh checks the syntax and completes on a terminal. A shell that is not installed is skipped.
"""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = pathlib.Path(sys.argv.pop()).resolve() if __name__ == "__main__" else None
# Splits a line as readline does, calls the function, and prints the reply and the settings it made.
BASH_LINE = r"""
compopt() { shift $(($# - 1)); echo "compopt $1"; }
source <("$1" completion bash)
COMP_LINE=$2
COMP_POINT=${#2}
COMP_WORDS=("${@:3}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_sluice sluice
printf '%s\n' "${COMPREPLY[@]}"
"""


def environment():
    return {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8",
            "TERM": "dumb"}


def run(*command, directory=None):
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env=environment(), cwd=directory, timeout=60)
    return done.returncode, done.stdout, done.stderr


def split_by_readline(line):
    """Returns the words of `line` as bash puts them into COMP_WORDS."""
    words = re.findall(r"[=:]+|[^\s=:]+", line)
    return words if not line[-1:].isspace() else [*words, ""]


def help_of(command):
    return run(PROGRAM, *command, "--help")[1]


def commands_below(command=()):
    """Returns every command of the program with its subcommands, as the help lists them."""
    found = [command]
    section = re.split(r"^(?:Options|Network|Files):", help_of(command).partition("\n\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    if "COMMAND [OPTIONS]" in help_of(command).splitlines()[0]:
        for name in re.findall(r"^  ([a-z]+) ", section, re.MULTILINE):
            found += commands_below((*command, name)) if name != "help" else []
    return found


def type_on_terminal(shell, keys, directory, wanted, seconds=10):
    """Starts an interactive shell, types `keys` when it prompts, and returns its output when it has `wanted`."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(directory)
        os.execvpe(shell[0], shell, environment())
    seen, typed, until = "", False, time.monotonic() + seconds
    try:
        while time.monotonic() < until and wanted not in seen:
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    seen += os.read(terminal, 65536).decode(errors="replace")
                except OSError:
                    break
            if not typed and "ready>" in seen:
                seen, typed = "", True
                os.write(terminal, keys.encode())
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)
        os.close(terminal)
    return seen


class Program(unittest.TestCase):
    def candidates(self, *words):
        status, text, errors = run(PROGRAM, "complete", *words)
        self.assertEqual((status, errors), (0, ""))
        *lines, also = text.splitlines()
        return [line.split("\t")[0] for line in lines], also

    def test_every_option_and_subcommand_of_the_help_is_completed_and_no_other(self):
        commands = commands_below()
        self.assertIn(("fat", "mkfs"), commands)
        self.assertIn(("user", "add"), commands)
        for command in commands:
            with self.subTest(command=command):
                text = help_of(command)
                options = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.MULTILINE))
                found = {word for word in self.candidates(*command, "--")[0] if word.startswith("--")}
                above = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", help_of(command[:-1]), re.MULTILINE)) if command[1:] else set()
                self.assertEqual(found - above, options - above)
                if "COMMAND [OPTIONS]" in text.splitlines()[0]:
                    below = {each[len(command)] for each in commands if each[:-1] == command and each}
                    self.assertEqual(set(self.candidates(*command, "")[0]) - {"help"}, below)

    def test_every_value_that_the_help_calls_a_file_or_directory_is_completed_as_one(self):
        for command in commands_below():
            for option, value in re.findall(r"^  (?:-\w, )?(--[a-z-]+) (\S+)", help_of(command), re.MULTILINE):
                with self.subTest(command=command, option=option):
                    expected = {"FILE": ":files ", "PATH": ":files ", "DIR": ":directories ", "COMMAND": ":commands"}.get(value, ":none")
                    self.assertEqual(self.candidates(*command, option, "")[1], expected)

    def test_enumerated_values_are_those_that_the_program_accepts(self):
        self.assertEqual(self.candidates("fat", "mkfs", "--type", "")[0], ["12", "16", "32"])
        self.assertEqual(self.candidates("get", "--dialect", "3.0")[0], ["3.0", "3.0.2"])
        self.assertEqual(self.candidates("serve", "--compression", "")[0], ["off", "on"])
        self.assertIn("byte_ranges", self.candidates("lock", "--algorithm", "")[0])
        self.assertEqual(self.candidates("completion", "")[0], ["bash", "zsh", "fish"])


class Shells(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        (self.directory / "first picture.jpg").write_text("")
        (self.directory / "settings.toml").write_text("")
        (self.directory / "subdirectory").mkdir()

    def need(self, shell):
        if not shutil.which(shell):
            self.skipTest(f"{shell} is not installed")

    def test_an_unknown_shell_is_refused_with_the_known_ones(self):
        status, _, errors = run(PROGRAM, "completion", "tcsh")
        self.assertEqual((status, errors.splitlines()[0]),
                         (2, "sluice completion: invalid value 'tcsh' for SHELL: use bash, zsh, or fish"))

    def test_the_installed_scripts_are_what_the_program_prints(self):
        for shell in ("bash", "zsh", "fish"):
            self.assertEqual(run(PROGRAM, "completion", shell)[1], (HERE / f"sluice.{shell}").read_text())

    def test_every_script_is_accepted_by_its_shell(self):
        for shell in ("bash", "zsh", "fish"):
            if shutil.which(shell):
                self.assertEqual(run(shell, "-n", HERE / f"sluice.{shell}"), (0, "", ""))

    def bash(self, line):
        self.need("bash")
        status, text, errors = run("bash", "--norc", "-c", BASH_LINE, "bash", PROGRAM, line, *split_by_readline(line),
                                   directory=self.directory)
        self.assertEqual((status, errors), (0, ""))
        return text.split()

    def test_bash_completes_commands_options_and_values(self):
        self.assertEqual(self.bash("sluice se"), ["serve"])
        self.assertEqual(self.bash("sluice fat re"), ["repair", "rebind"])
        self.assertEqual(self.bash("sluice get --dial"), ["--dialect"])
        self.assertEqual(self.bash("sluice get --dialect 2"), ["2.1"])
        self.assertEqual(self.bash("sluice help user a"), ["add"])

    def test_bash_completes_the_part_of_a_word_that_it_replaces(self):
        self.assertEqual(self.bash("sluice get --dialect=3.0."), ["3.0.2"])
        self.assertEqual(self.bash("sluice serve --compression="), ["off", "on"])
        self.assertEqual(self.bash("sluice ls sm"), ["compopt", "nospace", "smb://"])
        self.assertEqual(self.bash("sluice ls smb:"), ["compopt", "nospace", "//"])

    def test_bash_itself_completes_names_of_files(self):
        self.assertEqual(self.bash("sluice serve --config set"), ["compopt", "default"])
        self.assertEqual(self.bash("sluice fat build --from "), ["compopt", "dirnames"])
        self.assertIn("bash", self.bash("sluice lock jobs.lock -- bas"))

    def test_bash_on_a_terminal_inserts_the_only_completion(self):
        self.need("bash")
        script = self.directory / "rc"
        script.write_text("PS1='ready>'\nbind 'set enable-bracketed-paste off'\nsource <(sluice completion bash)\n")
        for keys, wanted in (("sluice serve --users\tset\t", "--users-file settings.toml"), ("sluice serve --config=set\t", "--config=settings.toml"),
                             ("sluice put fir\t", "first\\ picture.jpg"), ("sluice get smb\t", "smb://")):
            with self.subTest(keys=keys):
                shown = type_on_terminal(["bash", "--rcfile", str(script), "-i"], keys, self.directory, wanted)
                self.assertIn(wanted, shown)

    def fish(self, line):
        self.need("fish")
        status, text, errors = run("fish", "--no-config", "-c", "sluice completion fish | source; complete -C $argv[1]", line,
                                   directory=self.directory)
        self.assertEqual((status, errors), (0, ""))
        return [each.split("\t")[0] for each in text.splitlines()]

    def test_fish_completes_commands_options_values_and_files(self):
        self.assertEqual(self.fish("sluice se"), ["serve"])
        self.assertEqual(self.fish("sluice get --dialect 3.0."), ["3.0.2"])
        self.assertEqual(self.fish("sluice get --dialect=3.0."), ["--dialect=3.0.2"])
        self.assertEqual(self.fish("sluice serve --config set"), ["settings.toml"])
        self.assertEqual(self.fish("sluice serve --config=set"), ["--config=settings.toml"])
        self.assertEqual(self.fish("sluice fat build --from s"), ["subdirectory/"])
        self.assertEqual(self.fish("sluice ls s"), ["smb://"])

    def test_zsh_on_a_terminal_inserts_the_only_completion(self):
        self.need("zsh")
        (self.directory / ".zshrc").write_text("PS1='ready>'\nunsetopt zle_bracketed_paste\nautoload -U compinit\n"
                                               "compinit -D -u\nsource <(sluice completion zsh)\n")
        for keys, wanted in (("sluice serve --users\t", "--users-file"), ("sluice get --dialect 2\t", "2.1"),
                             ("sluice serve --config=set\t", "--config=settings.toml"), ("sluice put fir\t", "first\\ picture.jpg"),
                             ("sluice get smb\t", "smb://")):
            with self.subTest(keys=keys):
                shown = type_on_terminal(["env", f"ZDOTDIR={self.directory}", "zsh", "-d", "-i"], keys, self.directory, wanted)
                self.assertIn(wanted, shown)


if __name__ == "__main__":
    unittest.main()
