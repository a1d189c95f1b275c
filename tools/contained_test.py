#!/usr/bin/env python3
"""Tests of tools/contained: a test that hangs or leaves processes running must not outlive its time."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TOOL = pathlib.Path(__file__).with_name("contained")
# Starts a process in its own session, prints its process ID, and then runs `then`.
START_ONE = "import subprocess, sys, time; print(subprocess.Popen(['sleep', '600'], start_new_session=True).pid, flush=True)"


def contained(seconds, *command):
    return subprocess.run([str(TOOL), str(seconds), *command], capture_output=True, text=True, timeout=60)


def is_running(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Contained(unittest.TestCase):
    def test_the_exit_status_is_that_of_the_command(self):
        for status in (0, 1, 77):
            self.assertEqual(contained(30, "sh", "-c", f"exit {status}").returncode, status)

    def test_a_command_that_a_signal_ended_has_not_succeeded(self):
        self.assertEqual(contained(30, "sh", "-c", "kill -SEGV $$").returncode, 128 + signal.SIGSEGV)

    def test_at_the_limit_the_command_ends_with_all_it_started_and_can_say_where_it_was(self):
        began = time.monotonic()
        done = contained(2, sys.executable, "-c", START_ONE + "; time.sleep(600)")
        self.assertEqual(done.returncode, 124)
        self.assertIn("did not end within 2 s", done.stderr)
        self.assertIn("KeyboardInterrupt", done.stderr)
        self.assertFalse(is_running(int(done.stdout)))
        self.assertLess(time.monotonic() - began, 30)

    def test_what_the_command_left_running_ends_and_is_a_failure(self):
        done = contained(30, sys.executable, "-c", START_ONE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("left running: sleep", done.stderr)
        self.assertFalse(is_running(int(done.stdout)))

    def test_a_failure_ends_what_was_started_too(self):
        done = contained(30, sys.executable, "-c", START_ONE + "; sys.exit(3)")
        self.assertEqual(done.returncode, 3)
        self.assertFalse(is_running(int(done.stdout)))

    def test_being_stopped_ends_what_was_started(self):
        tool = subprocess.Popen([str(TOOL), "600", sys.executable, "-c", START_ONE + "; time.sleep(600)"],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        started = int(tool.stdout.readline())
        tool.terminate()
        tool.communicate(timeout=30)
        self.assertEqual(tool.returncode, 124)
        self.assertFalse(is_running(started))

    def test_temporary_files_go(self):
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run([str(TOOL), "30", "sh", "-c", "touch $TMPDIR/file; echo $TMPDIR"],
                                  env=dict(os.environ, TMPDIR=directory), capture_output=True, text=True, timeout=60)
            self.assertEqual(str(pathlib.Path(done.stdout.strip()).parent), directory)
            self.assertEqual(os.listdir(directory), [])


if __name__ == "__main__":
    unittest.main()
