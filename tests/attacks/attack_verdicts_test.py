#!/usr/bin/env python3
"""attack_test.py must not report an attack that succeeded, or that was inconclusive, as a pass."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("attack_test.py")


class AttackVerdicts(unittest.TestCase):
    def verdict(self, suite_program, name="gmac_oracle"):
        """Runs attack_test.py with a suite whose run.py is `suite_program`."""
        with tempfile.TemporaryDirectory() as suite:
            if suite_program is not None:
                (pathlib.Path(suite) / "run.py").write_text(suite_program)
            return subprocess.run([sys.executable, "-B", str(SCRIPT), "sluice", suite, name], capture_output=True, text=True)

    def verdict_of(self, outcome, name="gmac_oracle"):
        result = {"attack": name, "outcome": outcome, "evidence": "some evidence", "seconds": 1.5}
        return self.verdict(f"import json; print(json.dumps({{'results': [{result!r}]}}))", name)

    def test_an_attack_whose_property_holds_passes(self):
        done = self.verdict_of("holds")
        self.assertEqual((done.returncode, done.stdout), (0, "holds: gmac_oracle (1.5 s): some evidence\n"))

    def test_an_attack_that_succeeds_or_is_inconclusive_fails(self):
        for outcome in ("broken", "error", "unheard of"):
            self.assertEqual(self.verdict_of(outcome).returncode, 1, outcome)

    def test_an_attack_that_lacks_something_is_skipped_with_the_reason(self):
        done = self.verdict_of("skipped")
        self.assertEqual((done.returncode, done.stdout), (77, "skipped: gmac_oracle: some evidence\n"))

    def test_a_missing_suite_is_skipped_with_its_path(self):
        done = self.verdict(None)
        self.assertEqual(done.returncode, 77)
        self.assertRegex(done.stdout, r"^skipped: gmac_oracle: no attack suite at /\S+ \(CMake variable SLUICE_ATTACK_SUITE\)$")

    def test_a_missing_package_is_skipped_with_its_name(self):
        done = self.verdict("raise ModuleNotFoundError(\"No module named 'cryptography'\")")
        self.assertEqual(done.returncode, 77)
        self.assertIn("python3-cryptography", done.stdout)

    def test_a_suite_without_a_result_fails_and_shows_its_output(self):
        for program in ("print('it broke')", "import sys; sys.exit('it broke')", "print('{\"results\": []}'); print('it broke')"):
            done = self.verdict(program)
            self.assertEqual(done.returncode, 1)
            self.assertIn("it broke", done.stdout)


if __name__ == "__main__":
    unittest.main()
