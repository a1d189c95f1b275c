#!/usr/bin/env python3
"""Tests of the counts of tools/run-tests, on which CI relies."""

import importlib.machinery
import importlib.util
import pathlib
import sys
import unittest


def load(name):
    """Loads a tool without .py in its name as a module."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(pathlib.Path(__file__).with_name(name)))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


tool = load("run-tests")


def junit(**tests):
    return "<testsuite>" + "".join(
        f'<testcase name="{name}" status="{status}">{"<failure/>" if status == "fail" else ""}</testcase>'
        for name, status in tests.items()) + "</testsuite>"


def report(*results):
    """Returns a GoogleTest report with one case per word."""
    cases = {"passed": {"status": "RUN", "result": "COMPLETED"},
             "failed": {"name": "opens", "status": "RUN", "result": "COMPLETED", "failures": [{"failure": "it did not"}]},
             "skipped": {"status": "RUN", "result": "SKIPPED"},
             "filtered": {"status": "NOTRUN", "result": "SUPPRESSED"}}
    return {"testsuites": [{"name": "file", "testsuite": [cases[result] for result in results]}]}


class Counting(unittest.TestCase):
    def test_a_googletest_program_counts_by_its_cases(self):
        self.assertEqual(tool.count_stage(junit(io="fail"), {"io": report("passed", "failed", "passed", "skipped")}),
                         tool.Count(passed=2, failed=1, skipped=1))

    def test_any_other_test_counts_as_one(self):
        self.assertEqual(tool.count_stage(junit(tidy="run", format="fail"), {}), tool.Count(passed=1, failed=1))

    def test_a_program_that_crashed_after_its_cases_passed_is_a_failure(self):
        self.assertEqual(tool.count_stage(junit(io="fail"), {"io": report("passed")}), tool.Count(passed=1, failed=1))

    def test_a_program_that_left_no_report_is_a_failure(self):
        self.assertEqual(tool.count_stage(junit(io="fail"), {}), tool.Count(failed=1))

    def test_a_program_that_was_not_built_is_a_failure(self):
        text = '<testsuite><testcase name="io" status="notrun"><failure/></testcase></testsuite>'
        self.assertEqual(tool.count_stage(text, {}), tool.Count(failed=1))

    def test_a_test_that_lacks_something_has_neither_passed_nor_failed_and_its_reason_is_shown(self):
        text = ('<testsuite><testcase name="go" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>'
                '<system-out>looking\nskipped: go is not installed\n</system-out></testcase>'
                '<testcase name="io" status="run"><system-out>skipped: one case</system-out></testcase></testsuite>')
        self.assertEqual(tool.count_stage(text, {}), tool.Count(passed=1, skipped=1))
        self.assertEqual(tool.reasons_to_skip(text), ["go skipped: go is not installed"])

    def test_cases_that_were_filtered_out_are_not_counted(self):
        self.assertEqual(tool.count_cases("io", report("passed", "filtered")), tool.Count(passed=1))

    def test_each_failure_is_named_with_its_message(self):
        count = tool.count_stage(junit(io="fail", tidy="fail"), {"io": report("passed", "failed")})
        self.assertEqual(count.failures,
                         ["failed: io file.opens\n    it did not", "failed: tidy, without a failing case"])


if __name__ == "__main__":
    unittest.main()
