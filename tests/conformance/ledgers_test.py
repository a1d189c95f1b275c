#!/usr/bin/env python3
"""The ledgers of smbtorture: signing must not make a test fail that passes without it, and each failure has a reason."""

import pathlib
import tempfile
import unittest

import smbtorture
import smbtorture_settings


def ledger(signing):
    return smbtorture.read_ledger(smbtorture_settings.RELEASES["4.17"].ledgers[signing])


class Ledgers(unittest.TestCase):
    def test_each_test_that_passes_without_signing_passes_with_required_signing(self):
        self.assertEqual(ledger("required").keys() - ledger("optional").keys(), set())

    def test_each_entry_has_an_examined_reason(self):
        for release in smbtorture_settings.RELEASES.values():
            for path in release.ledgers.values():
                for name, reason in smbtorture.read_ledger(path).items():
                    self.assertFalse(reason.startswith("not examined"), name)

    def test_each_entry_of_4_22_has_a_decision_and_states_the_result_of_samba(self):
        for name, reason in smbtorture.read_ledger(smbtorture_settings.RELEASES["4.22"].ledgers["required"]).items():
            self.assertRegex(reason, r"^(Samba passes|Samba fails|Samba skips it)\. .*\. Decision: .*\.$", name)

    def test_a_test_is_listed_once_however_often_smbtorture_repeats_its_name(self):
        listed = ("echo", " smb2.notify.mask.mask\n  smb2.leases.first.test1.test1\n  smb2.charset.Testing wide-a\n raw.a.b.b")
        self.assertEqual(smbtorture.tests_of(listed), {"notify": ["mask"], "leases": ["first.test1"],
                                                       "charset": ["Testing wide-a"]})

    def test_the_result_of_a_test_on_its_own_replaces_the_one_in_its_suite(self):
        whole = smbtorture.Outcome("session", failed={"bind1": "a", "bind2": "b"})
        smbtorture.add_result(whole, "bind1", smbtorture.Outcome("session", passed=["bind1"]))
        smbtorture.add_result(whole, "bind2", smbtorture.Outcome("session", failed={"bind2": "c"}))
        self.assertEqual((whole.passed, whole.failed), (["bind1"], {"bind2": "c"}))

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
