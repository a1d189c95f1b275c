"""A `sluice serve` for tests: started on its own port, stopped with a check of its exit status."""

import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

MULTIPLEXERS = ("io_uring", "epoll")
SKIPPED = 77  # the exit status that ctest counts as skipped
NAME = "SLUICE"  # default of --name in these tests
USER = "walker"
PASSWORD = "Stone-Bridge-7"

START_SECONDS_MAX = 30
STOP_SECONDS_MAX = 30


class ServerFault(AssertionError):
    """The server did not start, died, or did not end properly; the text has the end of its log."""


class Server:
    """Runs `sluice serve SHARE=DIRECTORY` during the `with` block.

   Listens on 127.0.0.1 and a port that the kernel chose, unless `port` names one. Leaving the block ends it with
    SIGTERM and raises ServerFault if it was dead before, or if its exit status is not 0.
    """

    def __init__(self, program, directory, multiplexer="io_uring", arguments=(), share="share", port=0,
                 listen="127.0.0.1"):
        self.share = share
        self.directory = pathlib.Path(directory)
        self.multiplexer = multiplexer
        self._state = tempfile.TemporaryDirectory(prefix="sluice-served-")
        self._log = pathlib.Path(self._state.name) / "log"
        self._command = [str(program), "serve", f"{share}={self.directory}", "--listen", f"{listen}:{port}",
                         *([] if "--name" in arguments else ["--name", NAME]),
                         "--users-file", str(pathlib.Path(self._state.name) / "users"),
                         "--user", f"{USER}%{PASSWORD}", *arguments]
        self._process = None
        self._was_killed = False
        self.port = port

    def __enter__(self):
        environment = dict(os.environ, SLUICE_MULTIPLEXER=self.multiplexer)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log,
                                             stderr=subprocess.STDOUT, env=environment)
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            listening = re.search(r"^Listening +\S+:(\d+)\b", self.log(), re.MULTILINE)
            if listening:
                self.port = int(listening[1])
                return self
            if self._process.poll() is not None or time.monotonic() > deadline:
                why = self._describe("did not start")
                self._kill()
                raise ServerFault(why)
            time.sleep(0.02)

    def reload(self):
        """Makes it read its configuration again, and waits for the end of that."""
        before = self.log().count("configuration reloaded")
        self._process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + START_SECONDS_MAX
        while self.log().count("configuration reloaded") == before:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise ServerFault(self._describe("did not reload"))
            time.sleep(0.02)

    def __exit__(self, kind, value, traceback):
        try:
            if self._was_killed:
                return
            if self._process.poll() is not None:
                raise ServerFault(self._describe(f"died with status {self._process.returncode}"))
            self._process.send_signal(signal.SIGTERM)
            try:
                status = self._process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                raise ServerFault(self._describe(f"did not end {STOP_SECONDS_MAX} s after SIGTERM")) from None
            if status != 0:
                raise ServerFault(self._describe(f"ended with status {status}"))
        finally:
            self._kill()

    def kill(self):
        """Kills it, like a crash."""
        self._was_killed = True
        self._process.kill()
        self._process.wait()

    @property
    def pid(self):
        return self._process.pid

    def is_alive(self):
        return self._process.poll() is None

    def log(self):
        return self._log.read_text(errors="replace")

    def log_tail(self, lines=15):
        """Returns the end of its output after the banner."""
        behind = re.split(r"^I/O .*\n", self.log(), maxsplit=1, flags=re.MULTILINE)[-1]
        return "\n".join(behind.strip().splitlines()[-lines:])

    def memory_bytes(self):
        """Returns the amount of RAM that the server uses now."""
        pages = int(pathlib.Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize()

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def cpu_seconds(self):
        """Returns the user and system time so far, of all its threads, including those that have ended."""
        return time.clock_gettime(~self.pid << 3 | 2)  # like clock_getcpuclockid(3): not in ticks
                                                       # of 10 ms

    def _describe(self, what):
        return f"the server {what}: SLUICE_MULTIPLEXER={self.multiplexer} {' '.join(self._command)}\n{self.log_tail()}"

    def _kill(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._state.cleanup()


def on_every_multiplexer(case):
    """A class decorator: creates a TestCase of the class for each multiplexer. Each test has a new `self.server` with an
    empty `self.directory`, and an empty `self.local` for the client; `server_arguments` of the class go to the server."""
    module = sys.modules[case.__module__]
    for multiplexer in MULTIPLEXERS:
        name = f"{case.__name__}_{multiplexer}"
        made = type(name, (case, ServedCase), {"multiplexer": multiplexer, "__module__": case.__module__})
        setattr(module, name, made)
    return case


class ServedCase(unittest.TestCase):
    """The common set-up of on_every_multiplexer."""

    program = None
    multiplexer = "io_uring"
    server_arguments = ()

    def setUp(self):
        make_directories(self)
        self.server = Server(self.program, self.directory, self.multiplexer, self.server_arguments)
        self.server.__enter__()
        self.addCleanup(self.server.__exit__, None, None, None)

    def assert_same_tree(self, left, right):
        """Checks that both directories have the same names, types and bytes below them."""
        self.assertEqual(sorted(tree_of(left)), sorted(tree_of(right)))
        for name, content in tree_of(left).items():
            self.assertTrue(content == tree_of(right)[name], f"{name} differs between {left} and {right}")


def make_directories(case):
    """Gives a test empty directories, `case.directory` to serve and `case.local` for the client; returns their parent."""
    scratch = tempfile.TemporaryDirectory(prefix="sluice-interop-")
    case.addCleanup(scratch.cleanup)
    case.directory = pathlib.Path(scratch.name) / "served"
    case.local = pathlib.Path(scratch.name) / "local"
    case.directory.mkdir()
    case.local.mkdir()
    return pathlib.Path(scratch.name)


def tree_of(directory):
    """Returns a map from relative path to the bytes of a file, or None for a directory."""
    return {str(path.relative_to(directory)): None if path.is_dir() else path.read_bytes()
            for path in pathlib.Path(directory).rglob("*")}


def make_tree(directory, seed=1, sizes=(0, 1, 511, 4096, 65_535, 65_536, 65_537, 1_048_577, 3_000_000)):
    """Creates files of those sizes in directories, with names that need Unicode, quoting and several UTF-16 units."""
    chance = random.Random(seed)
    names = ("plain", "with space", "Grüße", "日本語", "a.b.c", "UPPER lower", "emoji-\U0001f600", "x" * 120, "-dash")
    for place in ("", "one", "one/two", "ein Ordner/größer"):
        below = pathlib.Path(directory) / place
        below.mkdir(parents=True, exist_ok=True)
        for size in sizes if place == "" else sizes[:5]:
            (below / f"{chance.choice(names)} {size}.bin").write_bytes(chance.randbytes(size))
    (pathlib.Path(directory) / "empty directory").mkdir()


def skip(why):
    """Ends the program, because a requirement is missing on this machine."""
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def cache_directory(program):
    """Returns the directory where a test keeps downloads and builds for its next run: $SLUICE_INTEROP_CACHE, or the
    build directory, if there is one."""
    if "SLUICE_INTEROP_CACHE" in os.environ:
        return pathlib.Path(os.environ["SLUICE_INTEROP_CACHE"])
    for parent in pathlib.Path(program).resolve().parents:
        if (parent / "CMakeCache.txt").exists():
            cache = parent / "interop"
            cache.mkdir(exist_ok=True)
            return cache
    return pathlib.Path(tempfile.mkdtemp(prefix="sluice-interop-cache-"))


class _Result(unittest.TextTestResult):
    """Adds to every failure the end of the server's log, and the command that runs the test again."""

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.failures[-1] = self._explained(test, self.failures[-1])

    def addError(self, test, err):
        super().addError(test, err)
        self.errors[-1] = self._explained(test, self.errors[-1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            into = self.failures if issubclass(err[0], test.failureException) else self.errors
            into[-1] = self._explained(test, into[-1])

    @staticmethod
    def _explained(test, entry):
        name = test.id().removeprefix("__main__.")
        again = f"again: {sys.executable} {pathlib.Path(sys.argv[0]).resolve()} {ServedCase.program} {name}\n"
        log = getattr(test, "server", None)
        try:
            tail = f"the server's log ends:\n{log.log_tail()}\n" if log else ""
        except OSError:  # it was removed with the server
            tail = ""
        return entry[0], entry[1] + tail + again


def main():
    """Runs the tests of the calling program: PROGRAM [unittest's arguments]."""
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(f"usage: {sys.argv[0]} SLUICE-PROGRAM [TEST]...")
    ServedCase.program = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(testRunner=unittest.TextTestRunner(resultclass=_Result))
