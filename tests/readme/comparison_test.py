#!/usr/bin/env python3
"""Counts the lines to type in docs/guide/comparison.md, and checks those that sluice and Samba read.

    comparison_test.py SLUICE-PROGRAM
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "guide" / "comparison.md"
SETTINGS_OF_SHARES = ("recycle",)
PROGRAMS = ("sluice", "samba", "ksmbd", "dufs", "copyparty")


def sections():
    """Yields each heading with its blocks: the language, the program, and the lines."""
    for heading, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.S | re.M):
        blocks = re.findall(r"^```(\w+) (\w+)\n(.*?)^```$", text, re.S | re.M)
        yield heading, [(language, program, lines.splitlines()) for language, program, lines in blocks]


def table():
    """Yields the rows: the task, and a cell for each program."""
    for row in re.findall(r"^\| \[(.*)$", PAGE.read_text(), re.M):
        task, *cells = [cell.strip() for cell in row.strip("|").split("|")]
        yield task.partition("]")[0], cells


class Comparison(unittest.TestCase):
    def test_the_table_has_the_number_of_lines_of_each_block(self):
        rows = dict(table())
        self.assertEqual(list(rows), [heading for heading, _ in sections()])
        for heading, blocks in sections():
            for program, cell in zip(PROGRAMS, rows[heading], strict=True):
                count = sum(len(lines) for _, one, lines in blocks if one == program)
                with self.subTest(heading, program=program):
                    self.assertEqual(count, 0 if cell == "none" else int(cell.removesuffix(" per user")))

    def test_sluice_accepts_its_settings(self):
        for heading, blocks in sections():
            for lines in (lines for language, program, lines in blocks if (language, program) == ("toml", "sluice")):
                with self.subTest(heading), tempfile.TemporaryDirectory() as directory:
                    text = "\n".join(lines)
                    share = f'name = "films"\npath = "{directory}"\n'
                    if text.startswith(SETTINGS_OF_SHARES):
                        text = f"[[share]]\n{share}{text}"
                    else:
                        text += f"\n{share}" if "[[share]]" in text else f"\n[[share]]\n{share}"
                    file = pathlib.Path(directory, "sluice.toml")
                    file.write_text(text.replace("/srv/homes", directory))
                    done = subprocess.run([sys.argv[1], "config", "check", file], capture_output=True, text=True, check=False)
                    self.assertEqual(done.returncode, 0, f"{text}\n{done.stdout}{done.stderr}")

    def test_samba_knows_its_settings(self):
        if not shutil.which("testparm"):
            self.skipTest("testparm is not installed")
        for heading, blocks in sections():
            for lines in (lines for language, program, lines in blocks if (language, program) == ("ini", "samba")):
                with self.subTest(heading), tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
                    file.write("\n".join(lines if lines[0].startswith("[") else ["[global]", *lines]) + "\n")
                    file.flush()
                    done = subprocess.run(["testparm", "-s", file.name], capture_output=True, text=True, check=False)
                    self.assertNotIn("Unknown parameter", done.stderr)
                    self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
