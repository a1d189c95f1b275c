"""The program as a shell sees it: exit codes and streams. Run by ctest with the program as the last argument."""

import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop() if __name__ == "__main__" else None


def sluice(*arguments, stdout=subprocess.PIPE):
    return subprocess.run([PROGRAM, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60)


class CommandLine(unittest.TestCase):
    def test_version_is_one_line_on_standard_output(self):
        done = sluice("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"\Asluice \d+\.\d+\.\d+\n\Z")

    def test_help_documents_the_exit_codes(self):
        done = sluice("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("Exit status: 0 done; 1", done.stdout)

    def test_without_arguments_it_says_what_it_can_do(self):
        done = sluice()
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.startswith("sluice "), done.stdout)

    def test_an_unknown_command_is_a_usage_error_on_standard_error(self):
        done = sluice("no-such-command")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")
        self.assertIn("no-such-command", done.stderr)

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w") as full:
            done = sluice("--version", stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)


if __name__ == "__main__":
    unittest.main()
