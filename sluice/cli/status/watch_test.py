"""`sluice status --watch`, on a terminal and in a pipe. Run by ctest with the program as the last argument."""

import contextlib
import fcntl
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from server_testing import running_server  # noqa: E402  (found through the line above)

PROGRAM = sys.argv.pop() if __name__ == "__main__" else None
BEGIN, END = b"\x1b[?1049h", b"\x1b[?1049l"


class Watch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.directory = self.scratch / "served"
        self.directory.mkdir()
        self.environment = os.environ | {"XDG_RUNTIME_DIR": str(self.scratch), "TERM": "xterm"}

    def server(self, *arguments, **how):
        return running_server(self, PROGRAM, self.directory, self.scratch / "users", "--user", "u%p", "--name", "SLUICE", *arguments,
                              environment=self.environment, **how)

    @contextlib.contextmanager
    def terminal(self, *arguments, rows=24, columns=80):
        """Runs the program on a terminal of its own. Returns the process and the controlling end."""
        ours, its = pty.openpty()
        self.resize(ours, rows, columns)
        self.settings = termios.tcgetattr(its)  # before the program changes them
        process = subprocess.Popen([PROGRAM, "status", "--watch", *arguments], stdin=its, stdout=its, stderr=its,
                                   env=self.environment, start_new_session=True,
                                   preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        try:
            yield process, ours, its
        finally:
            process.kill()
            process.wait()
            os.close(ours)
            os.close(its)

    @staticmethod
    def resize(terminal, rows, columns):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, terminal, sign, seen=b""):
        deadline = time.monotonic() + 30
        while sign not in seen:
            ready, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
            self.assertTrue(ready, seen)
            seen += os.read(terminal, 65536)
        return seen

    def assert_restored(self, process, terminal, its):
        self.read_until(terminal, END)
        self.assertEqual(process.wait(30), 0)
        echoes = termios.tcgetattr(its)[3] & (termios.ECHO | termios.ICANON)
        self.assertEqual(echoes, self.settings[3] & (termios.ECHO | termios.ICANON))

    def test_the_screen_is_restored_after_each_way_to_end(self):
        with self.server():
            for end in signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, b"q", b"\x03":
                with self.terminal("30") as (process, terminal, its):
                    seen = self.read_until(terminal, b"SHARE")
                    self.assertTrue(seen.startswith(BEGIN), seen)
                    if isinstance(end, bytes):
                        os.write(terminal, end)
                    else:
                        process.send_signal(end)
                    self.assert_restored(process, terminal, its)

    def test_the_drawing_follows_the_size_of_the_terminal(self):
        with self.server(), self.terminal("30", rows=3, columns=20) as (_, terminal, _):
            seen = self.read_until(terminal, b"\x1b[J")
            self.assertNotIn(b"SHARE", seen)
            self.resize(terminal, 40, 100)
            self.read_until(terminal, b"SHARE")

    def test_a_stopped_program_gives_the_screen_back_and_takes_it_again(self):
        with self.server(), self.terminal("30") as (process, terminal, its):
            self.read_until(terminal, b"SHARE")
            os.write(terminal, b"\x1a")
            self.read_until(terminal, END)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
            process.send_signal(signal.SIGCONT)
            self.read_until(terminal, b"SHARE")
            process.send_signal(signal.SIGTERM)
            self.assert_restored(process, terminal, its)

    def test_a_server_that_is_started_again_is_found_again(self):
        path = str(self.scratch / "status")
        with contextlib.ExitStack() as first:
            first.enter_context(self.server("--status-socket", path))
            terminal = self.terminal("0.2", "--socket", path)
            with terminal as (process, ours, its):
                self.read_until(ours, b"SHARE")
                first.close()
                self.read_until(ours, b"retrying")
                with self.server("--status-socket", path):
                    self.read_until(ours, b"SLUICE")
                    process.send_signal(signal.SIGINT)
                    self.assert_restored(process, ours, its)

    def test_in_a_pipe_it_prints_plain_text_again_and_again(self):
        with self.server():
            process = subprocess.Popen([PROGRAM, "status", "--watch", "0.2"], stdout=subprocess.PIPE, text=True,
                                       env=self.environment)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            seen = []
            while sum(line.startswith("SLUICE") for line in seen) < 3:
                seen.append(process.stdout.readline())
                self.assertNotEqual(seen[-1], "")
            process.stdout.close()
            self.assertNotIn("\x1b", "".join(seen))

    def test_of_several_servers_one_must_be_chosen(self):
        with self.server() as (first, _), self.server():
            done = subprocess.run([PROGRAM, "status", "--watch"], capture_output=True, text=True, timeout=60,
                                  env=self.environment)
            self.assertEqual(done.returncode, 1)
            self.assertIn("choose one with --port or --socket", done.stderr)
            with self.terminal("--port", str(first)) as (_, terminal, _):
                self.read_until(terminal, b"SHARE")


if __name__ == "__main__":
    unittest.main()
