#!/usr/bin/env python3
"""The lists of smbtorture tests that fail: signing must not make a test fail that passes without it."""

import pathlib
import tempfile
import unittest

import smbtorture


def ledger(signing):
    _, path = smbtorture.SIGNING[signing]
    return smbtorture.read_ledger(path)


class Ledgers(unittest.TestCase):
    def test_each_test_that_passes_without_signing_passes_with_required_signing(self):
        self.assertEqual(ledger("required").keys() - ledger("optional").keys(), set())

    def test_each_entry_has_an_examined_reason(self):
        for signing in smbtorture.SIGNING:
            for name, reason in ledger(signing).items():
                self.assertFalse(reason.startswith("not examined"), name)

    def test_writing_a_ledger_removes_passed_tests_and_refers_to_the_reason_without_signing(self):
        outcome = smbtorture.Outcome("lock", passed=["fixed"], failed={"known": "a", "both": "b", "new": "c"})
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "ledger.txt"
            path.write_text("# a comment\nlock.fixed\told\nlock.known\ta reason\nother.kept\tanother reason\n")
            smbtorture.write_ledger(path, smbtorture.read_ledger(path), [outcome], {"lock.both": "its reason"})
            self.assertEqual(path.read_text(), "# a comment\nlock.both\tas without signing\nlock.known\ta reason\n"
                                               "lock.new\tnot examined: c\nother.kept\tanother reason\n")


if __name__ == "__main__":
    unittest.main()
