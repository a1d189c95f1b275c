"""Every error that a user can cause, with its whole text: the transcripts of this directory. Run by ctest with the program
as the last argument.

    errors_test.py [--accept] [NAME...] PROGRAM

With names of transcripts, runs only those. --accept writes the output of the program into them instead, for a review of
the difference. README.md has the rules.
"""

import argparse
import concurrent.futures
import ctypes
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import tomllib
import unittest

import message_templates
import transcript

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
PASSWORD = "a-password-of-a-test"
# Two more than there are CPUs, because many cases wait.
CASES_AT_ONCE = (os.cpu_count() or 1) + 2

SERVER_CONFIGURATION = """
listen = ["127.0.0.1:0"]
users-file = "users"
[[share]]
name = "files"
path = "files"
[[share]]
name = "readonly"
path = "files"
read-only = true
[[share]]
name = "private"
path = "files"
user = ["bob"]
[[share]]
name = "secret"
path = "files"
encrypt = true
[[share]]
name = "small"
path = "small.img"
"""


def environment(directory, program_directory):
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")
            if name in os.environ}
    return {**kept, "PATH": f"{program_directory}:{kept.get('PATH', '')}:/usr/sbin:/sbin", "HOME": str(directory),
            "XDG_RUNTIME_DIR": str(directory), "LC_ALL": "C.UTF-8", "TZ": "UTC", "USER": "alice", "SLUICE_PASSWORD": PASSWORD,
            "USERS": str(directory / "users")}


class Server:
    """The server of the shares that the cases of the client use."""

    def __init__(self, directory, program_directory):
        self.directory = directory
        (directory / "files").mkdir()
        self._environment = environment(directory, program_directory)
        for name in ("alice", "bob"):
            self._do("sluice", "user", "--users-file", "users", "add", name, input=PASSWORD + "\n")
        self._do("sluice", "fat", "mkfs", "--size", "1m", "small.img")
        (directory / "sluice.toml").write_text(SERVER_CONFIGURATION)
        self._log = open(directory / "log", "w+")
        self._process = subprocess.Popen(["sluice", "serve", "--config", "sluice.toml"], cwd=directory, env=self._environment,
                                         stdout=subprocess.PIPE, stderr=self._log, text=True)
        self.address = None
        for line in self._process.stdout:
            listening = re.match(r"Listening +(\S+)", line)
            self.address = listening[1] if listening else self.address
            if line.startswith("I/O"):
                break

    def _do(self, *command, **options):
        subprocess.run(command, cwd=self.directory, env=self._environment, text=True, check=True, capture_output=True, **options)

    def stop(self):
        self._process.terminate()
        self._process.communicate(timeout=60)
        self._log.close()
        return self._process.returncode


def has_landlock():
    """Whether the kernel confines a process to its files, in the version that the server needs."""
    landlock_create_ruleset, version_flag, version_min = 444, 1, 2
    return ctypes.CDLL(None).syscall(landlock_create_ruleset, None, 0, version_flag) >= version_min


class Runner:
    """Runs cases, each in a directory of its own. A case that this machine cannot run keeps its expected results."""

    def __init__(self, program, directory):
        self.directory = directory
        directory.chmod(0o755)  # some cases run as another account
        self.program_directory = directory / "bin"
        self.program_directory.mkdir()
        (self.program_directory / "sluice").symlink_to(pathlib.Path(program).resolve())
        (directory / "server").mkdir()
        self.server = Server(directory / "server", self.program_directory)
        self._has_landlock = has_landlock()
        self._is_root = os.geteuid() == 0
        # The directory of the program may be closed to other accounts.
        drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if self._is_root else []
        self._has_unprivileged = subprocess.run([*drop, program, "--version"], capture_output=True).returncode == 0

    def can_run(self, case):
        uses_other_account = any("unprivileged " in line for step in case.steps for line in step.command)
        return ((self._has_landlock or not case.name.endswith("(Landlock)")) and
                (self._is_root or not case.name.endswith("(root)")) and (self._has_unprivileged or not uses_other_account))

    def run(self, number, case):
        if not self.can_run(case):
            return case.steps
        directory = self.directory / f"case{number}"
        directory.mkdir()
        directory.chmod(0o777)
        files = self.server.directory / "files" / str(number)
        files.mkdir()
        share = f"smb://alice@{self.server.address}/"
        variables = {"SERVER": self.server.address, "FILES": str(files), "URL": f"{share}files/{number}", "SHARE": share,
                     "CASE": str(number)}
        steps = transcript.run(case, HERE / "prelude.sh", directory, {**environment(directory, self.program_directory), **variables})
        replacements = ((f"{self.server.address}/files/{number}", "{server}/files"),
                        (f"{self.server.address}/readonly/{number}", "{server}/readonly"), (str(files), "{files}"),
                        (self.server.address, "{server}"), (str(directory), "{dir}"))
        for step in steps:
            step.stderr = [general(line, replacements) for line in step.stderr]
        return steps


def general(line, replacements):
    """Replaces the parts of a line that differ between two runs."""
    for found, name in replacements:
        line = line.replace(found, name)
    line = re.sub(r"\btime=\S+ ", "", line)
    line = re.sub(r"\b(process|pid) \d+\b", r"\1 {pid}", line)
    line = re.sub(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "{time}", line)
    line = re.sub(r"\.sluice-[0-9a-f]{16}\b", ".sluice-{random}", line)
    line = re.sub(r"127\.0\.0\.1:\d+", "{address}", line)
    return line.replace(f" on {socket.gethostname()} since", " on {host} since")


def transcripts(names=()):
    return [path for path in sorted(HERE.glob("*.txt")) if not names or path.stem in names]


def run_all(program, paths):
    """Returns the blocks of each transcript, and the results of each case."""
    with tempfile.TemporaryDirectory() as name:
        runner = Runner(program, pathlib.Path(name))
        blocks = {path: transcript.parse(path.read_text()) for path in paths}
        cases = [case for path in paths for case in blocks[path] if isinstance(case, transcript.Case)]
        try:
            with concurrent.futures.ThreadPoolExecutor(CASES_AT_ONCE) as pool:
                results = list(pool.map(runner.run, range(len(cases)), cases))
        finally:
            status = runner.server.stop()
    return blocks, list(zip(cases, results)), status


def accept(program, names):
    blocks, results, _ = run_all(program, transcripts(names))
    for case, steps in results:
        case.steps = steps
    for path, parsed in blocks.items():
        path.write_text(transcript.text_of(parsed))


class Errors(unittest.TestCase):
    maxDiff = None
    program = None
    names = ()

    def test_each_error_has_the_reviewed_text_and_status(self):
        _, results, status = run_all(self.program, transcripts(self.names))
        for case, steps in results:
            with self.subTest(case=case.name):
                actual = transcript.Case(case.name, case.line, steps)
                self.assertEqual(actual.text(), case.text())
        self.assertEqual(status, 0, "the exit status of the server")


class Templates(unittest.TestCase):
    def texts(self, source):
        return [each.text for each in message_templates.templates("x.cpp", source)]

    def test_adjacent_literals_are_one_message(self):
        self.assertEqual(self.texts('fail(fmt::format("{}: not a "\n  // why\n "directory", path));'), ["{}: not a directory"])

    def test_a_message_counts_however_it_is_passed_on(self):
        for source in ('return "the file is too large";', 'refuse({.message = path + ": in use by another process"});',
                       'made.why = is_new ? "no such file" : "";', 'fmt::print(stderr, "it is full\\n");'):
            self.assertEqual(len(self.texts(source)), 1, source)

    def test_an_operation_of_one_word_counts(self):
        self.assertEqual(self.texts('return failure(error::with_path(errno, "open", path));'), ["open"])
        self.assertEqual(self.texts('return failure({ENOSPC, "write", descriptor()});'), ["write"])
        self.assertEqual(self.texts('const char* const name = "open";'), [])

    def test_help_output_and_invariants_are_not_messages(self):
        for source in ('#include "a b.hpp"', 'app.add_option("--a", x, "a file with a name");', '// "a comment with words"',
                       'fmt::print("{} of {} files\\n", a, b);', 'ENSURE(x, "the list is empty");'):
            self.assertEqual(self.texts(source), [], source)

    def test_a_line_matches_if_it_has_all_the_pieces_in_their_order(self):
        template = message_templates.Template("x.cpp", 1, "{}: has {} bytes, more than {}")
        self.assertTrue(template.matches("sluice fat mkfs: a: has 5 bytes, more than 4"))
        self.assertFalse(template.matches("sluice fat mkfs: a: has 5 bytes"))

    def test_a_line_matches_an_operation_of_one_word_after_its_subject(self):
        template = message_templates.Template("x.cpp", 1, "fork")
        self.assertTrue(template.matches("sluice lock: fork: Resource temporarily unavailable"))
        self.assertFalse(template.matches("sluice lock: --no-fork: takes no value"))


class Coverage(unittest.TestCase):
    """Detects a message of the sources that no transcript has."""

    @classmethod
    def setUpClass(cls):
        blocks = [block for path in transcripts() for block in transcript.parse(path.read_text())]
        cls.steps = [step for block in blocks if isinstance(block, transcript.Case) for step in block.steps]
        cls.lines = [line for step in cls.steps for line in step.stderr]
        rules = tomllib.loads((HERE / "untested.toml").read_text())
        cls.exempt_files = {entry["file"]: entry["reason"] for entry in rules["files"]}
        cls.exempt = {(entry["file"], text) for entry in rules["messages"] for text in entry["texts"]}
        cls.templates = []
        sources = sorted((ROOT / "sluice/cli").rglob("*.[ch]pp"))
        sources += [ROOT / path for path in rules["libraries"]]
        for source in sources:
            path = str(source.relative_to(ROOT))
            if not source.stem.endswith("_test") and path not in cls.exempt_files:
                cls.templates += message_templates.templates(path, source.read_text())

    def test_each_message_of_the_sources_is_in_a_transcript_or_has_a_reason_not_to_be(self):
        missing = [f"{each.path}:{each.line}: {each.text!r}" for each in self.templates
                   if (each.path, each.text) not in self.exempt and not any(map(each.matches, self.lines))]
        self.assertEqual(missing, [], "add a case to a transcript, or the message with a reason to untested.toml")

    def test_untested_messages_exist_and_are_not_in_a_transcript(self):
        known = {(each.path, each.text): each for each in self.templates}
        self.assertEqual([each for each in sorted(self.exempt) if each not in known], [], "remove it from untested.toml")
        tested = [key for key in sorted(self.exempt) if any(map(known[key].matches, self.lines))]
        self.assertEqual(tested, [], "remove it from untested.toml")

    def test_only_one_file_prints_messages(self):
        printing = re.compile(r"\bstderr\b|\bperror\b|\bstd::cerr\b")
        rules = tomllib.loads((HERE / "untested.toml").read_text())["standard-error"]
        found = {str(path.relative_to(ROOT)) for path in (ROOT / "sluice/cli").rglob("*.cpp") if printing.search(path.read_text())}
        self.assertEqual(sorted(found), sorted(rules), "use print_error(), warn() or fail()")

    def test_messages_have_the_form_of_the_others(self):
        shows_reports = re.compile(r"check \S+ >&2$")  # fat check prints its results to standard output
        for line in (line for step in self.steps if not shows_reports.search(step.command[-1]) for line in step.stderr):
            with self.subTest(line=line):
                if line.startswith(("Usage: ", "Run '", "level=")):
                    continue
                self.assertRegex(line, r"\Asluice( [a-z]+)*: (warning: )?\S")
                self.assertFalse(line.endswith("."), "a message ends without a full stop")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("names", nargs="*")
    parser.add_argument("program")
    options = parser.parse_args()
    if shutil.which("setpriv") is None:
        sys.exit("errors_test.py: setpriv(1) is missing")
    if options.accept:
        return accept(options.program, options.names)
    Errors.program, Errors.names = options.program, options.names
    unittest.main(argv=sys.argv[:1])


if __name__ == "__main__":
    main()
