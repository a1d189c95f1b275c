#!/usr/bin/env python3
"""The comparison of Microsoft's suites with their ledgers."""

import unittest

import microsoft_suites


class Ledgers(unittest.TestCase):
    def test_each_entry_has_a_reason(self):
        for suite, path in microsoft_suites.LEDGERS.items():
            for case, reason in microsoft_suites.read_ledger(path).items():
                self.assertGreater(len(reason), 20, f"{suite}: {case}")

    def test_a_failure_without_a_reason_and_a_pass_with_one_are_found(self):
        results = {"new": ["Failed", "why"], "known": ["Failed", ""], "fixed": ["Passed", ""], "skipped": ["NotExecuted", ""]}
        ledger = {"known": "a reason", "fixed": "another", "skipped": "a third"}
        self.assertEqual(microsoft_suites.compare(results, ledger), (["new"], ["fixed"]))


if __name__ == "__main__":
    unittest.main()
