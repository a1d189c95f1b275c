"""The manual pages in docs/man: they have exactly the options of the program, and mandoc and groff report no problem.

    man_pages_test.py options SLUICE-PROGRAM
    man_pages_test.py lint
"""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

PAGES = pathlib.Path(__file__).resolve().parent.parent / "docs" / "man"
# Page -> the commands that it documents.
COMMANDS = {"sluice": [()], "sluice-completion": [("completion",)],
            "sluice-config": [("config",), *(("config", verb) for verb in ("check", "show", "import"))],
            "sluice-serve": [("serve",)], "sluice-status": [("status",)], "sluice-doctor": [("doctor",)],
            "sluice-probe": [("probe",), ("probe", "atomicity")],
            "sluice-bench": [("bench",), ("bench", "fsmutex"), ("bench", "smb")],
            "sluice-fat": [("fat",), *(("fat", verb) for verb in (
                "mkfs", "build", "label", "ls", "cat", "stat", "map", "get", "put", "mkfile", "mkdir", "rm", "mv", "defrag", "check",
                "repair", "undo", "commit", "discard", "rebind"))],
            "sluice-get": [("get",), ("put",), ("cp",), ("mv",), ("sync",), ("ls",), ("cat",), ("mkdir",), ("rm",)],
            "sluice-lock": [("lock",)], "sluice-snapshot": [("snapshot",), *(("snapshot", verb) for verb in ("create", "list", "delete"))],
            "sluice-streams": [("streams",), ("streams", "import"), ("streams", "check")],
             "sluice-user": [("user",), *(("user", verb) for verb in ("add", "passwd", "remove", "import", "list"))]}
# These pages refer to another for the options that both have.
REFERRING = {"sluice-config": "sluice-serve"}
SKIPPED = 77


def page_text(name):
    return (PAGES / f"{name}.1").read_text()


def options_of_program(program, commands):
    helps = [subprocess.run([program, *command, "--help"], capture_output=True, text=True, check=True).stdout
             for command in commands]
    return {option for text in helps for option in re.findall(r"^  (?:-\w, )?--([a-z-]+)", text, re.MULTILINE)}


class Options(unittest.TestCase):
    program = None

    def test_every_command_has_a_page_and_every_page_a_command(self):
        self.assertEqual({path.stem for path in PAGES.glob("*.1")}, set(COMMANDS))
        text = subprocess.run([self.program, "--help"], capture_output=True, text=True, check=True).stdout
        # help shows the help of the others, and is described in sluice(1).
        verbs = [verb for verb in re.findall(r"^  ([a-z]+) ", text, re.MULTILINE) if verb != "help"]
        self.assertEqual(sorted(verbs), sorted({command[0] for commands in COMMANDS.values() for command in commands if command}))

    def test_a_page_has_exactly_the_options_of_the_program(self):
        for name, commands in COMMANDS.items():
            with self.subTest(page=name):
                elsewhere = REFERRING.get(name)
                shared = options_of_program(self.program, COMMANDS[elsewhere]) - {"help"} if elsewhere else set()
                explained = re.findall(r"^\.It (?:Fl \w , )?Fl -([a-z-]+)", page_text(name), re.MULTILINE)
                self.assertEqual(sorted(set(explained)), sorted(options_of_program(self.program, commands) - shared))

    def test_the_synopsis_of_serve_has_every_option(self):
        synopsis = page_text("sluice-serve").partition(".Sh SYNOPSIS")[2].partition(".Sh DESCRIPTION")[0]
        shown = re.findall(r"Fl -([a-z-]+)", synopsis)
        self.assertEqual(sorted([*shown, "help"]), sorted(options_of_program(self.program, [("serve",)])))


class Lint(unittest.TestCase):
    linter = ()

    def test_no_page_causes_a_warning(self):
        for path in sorted(PAGES.glob("*.1")):
            with self.subTest(page=path.name):
                done = subprocess.run([*self.linter, str(path)], capture_output=True, text=True)
                self.assertEqual((done.stdout + done.stderr, done.returncode), ("", 0))


def main():
    mode = sys.argv.pop(1)
    if mode == "options":
        Options.program = sys.argv.pop(1)
        unittest.main(defaultTest="Options")
    if shutil.which("mandoc"):
        Lint.linter = ("mandoc", "-Tlint", "-Wwarning")
    elif shutil.which("groff"):
        Lint.linter = ("groff", "-mdoc", "-ww", "-z", "-Tutf8")
    else:
        print("skipped: neither mandoc nor groff is installed (Debian packages mandoc, groff-base)")
        sys.exit(SKIPPED)
    unittest.main(defaultTest="Lint")


if __name__ == "__main__":
    main()
