"""sluice lock with a lock file that other programs damage, or that is not one. Run by ctest with the program as the last
argument.

Processes wait for each other by pipes: a process that must stay alive ends when its standard input ends.
"""

import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop() if __name__ == "__main__" else None


def sluice(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60)


class DamagedFiles(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.file = os.path.join(scratch.name, "jobs")

    def start(self, *command):
        """Starts a process that runs the command with the lock, or waits for it."""
        process = subprocess.Popen([PROGRAM, "lock", "--exclusive", "a", self.file, "--", *command],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for stream in process.stdin, process.stdout, process.stderr:
            self.addCleanup(stream.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def lock(self, command, *arguments):
        return sluice("lock", *arguments, "--exclusive", "a", self.file, "--", *command)

    def test_a_holder_reports_that_its_file_was_truncated_and_fails(self):
        for size in "0", "100", "65536":
            done = self.lock(["truncate", "-s", size, self.file])
            self.assertEqual(done.returncode, 65, (size, done))
            self.assertIn(f"sluice lock: {self.file}: the lock file was damaged or truncated while the command ran",
                          done.stderr)
            self.assertFalse(os.path.exists(self.file), "its last user removes it")
        self.assertEqual(self.lock(["sh", "-c", f": > '{self.file}'; exit 7"]).returncode, 7)
        self.assertEqual(self.lock(["true"]).returncode, 0)

    def test_a_holder_reports_that_a_shell_has_truncated_and_refilled_its_file(self):
        done = self.lock(["sh", "-c", f": > '{self.file}'; head -c 2000000 /dev/urandom > '{self.file}'"])
        self.assertEqual(done.returncode, 65, done)

    def test_a_waiter_ends_with_a_message_when_its_file_is_truncated(self):
        for cut in 0, 70000:
            holder = self.start("sh", "-c", "echo held; read line")
            self.assertEqual(holder.stdout.readline(), "held\n")
            waiter = self.start("true")
            while "waits" not in sluice("lock", "--list", self.file).stdout:
                pass
            os.truncate(self.file, cut)
            _, message = waiter.communicate(timeout=60)
            self.assertEqual(waiter.returncode, 65, message)
            self.assertIn(f"sluice lock: {self.file}: lock: the lock file was damaged or truncated", message)
            refused = self.lock(["true"], "-n")
            self.assertEqual(refused.returncode, 66, refused)
            self.assertIn("damaged", refused.stderr)
            _, message = holder.communicate("\n", timeout=60)
            self.assertEqual(holder.returncode, 65, message)
            self.assertEqual(self.lock(["true"]).returncode, 0)

    def test_a_lock_file_that_is_not_a_regular_file_is_refused(self):
        os.mkfifo(self.file)
        for algorithm in "memory_map", "atomic_append", "byte_ranges":
            refused = self.lock(["true"], "--algorithm", algorithm)
            self.assertEqual(refused.returncode, 66, refused)
            self.assertIn("a lock file must be a regular file", refused.stderr)


if __name__ == "__main__":
    unittest.main()
