#!/usr/bin/env python3
"""PROGRAM has the properties that the build flags of a hardened Debian package provide."""

import pathlib
import re
import subprocess
import sys
import unittest

PROGRAM = None


def readelf(*options):
    return subprocess.run(["readelf", "--wide", *options, str(PROGRAM)], capture_output=True, text=True,
                          check=True).stdout


class HardenedProgram(unittest.TestCase):
    def test_is_position_independent(self):
        self.assertRegex(readelf("--file-header"), r"Type: +DYN")
        self.assertIn("PIE", readelf("--dynamic"))

    def test_resolves_all_symbols_at_startup_and_makes_them_read_only(self):
        self.assertIn("GNU_RELRO", readelf("--program-headers"))
        self.assertRegex(readelf("--dynamic"), r"\bBIND_NOW\b|\bNOW\b")

    def test_has_no_executable_stack(self):
        stack = re.search(r"GNU_STACK .*", readelf("--program-headers"))[0]
        self.assertNotIn("RWE", stack)

    def test_guards_stack_frames(self):
        self.assertIn("__stack_chk_fail", readelf("--dyn-syms"))

    def test_calls_the_checking_functions_of_the_c_library(self):
        self.assertRegex(readelf("--dyn-syms"), r"__\w+_chk@")


if __name__ == "__main__":
    PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
