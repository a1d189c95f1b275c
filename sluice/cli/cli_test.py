"""The program as a shell sees it: exit codes and streams. Run by ctest with the program as the last argument."""

import json
import os
import subprocess
import sys
import tempfile
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


class Serve(unittest.TestCase):
    def test_a_setting_of_the_file_that_would_be_without_effect_is_refused_with_its_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "sluice.toml")
            with open(path, "w") as file:
                file.write('port = 1445\nmultiplexer = "epoll"\n')
            done = sluice("serve", folder, "--config", path)
            self.assertEqual(done.returncode, 1)
            self.assertIn("line 2: the server: 'multiplexer' is no setting here", done.stderr)


class Probe(unittest.TestCase):
    def test_atomicity_reports_every_size_and_leaves_nothing_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            done = sluice("probe", "atomicity", folder, "--json", "--time", "2", "--max", "4096")
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(done.stdout)
            self.assertEqual([series["io"] for series in report["series"]], ["buffered", "direct"])
            sizes = [row["write_bytes"] for row in report["series"][0]["rows"]]
            self.assertEqual(sizes, [2**i for i in range(13)])
            self.assertEqual(os.listdir(folder), [])

    def test_atomicity_says_what_it_proves_and_what_not(self):
        with tempfile.TemporaryDirectory() as folder:
            done = sluice("probe", "atomicity", folder, "--time", "1", "--max", "2")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("What it does not:", done.stdout)

    def test_atomicity_does_not_overwrite_a_file(self):
        with tempfile.NamedTemporaryFile() as file:
            done = sluice("probe", "atomicity", file.name)
            self.assertEqual(done.returncode, 1)
            self.assertIn("name a directory", done.stderr)

    def test_atomicity_in_a_directory_that_takes_no_files_says_why(self):
        done = sluice("probe", "atomicity", "/proc")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "")
        self.assertIn("in /proc: open", done.stderr)


if __name__ == "__main__":
    unittest.main()
