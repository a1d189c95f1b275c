#!/usr/bin/env python3
"""Tests of the counts and the stages of tools/run-tests, on which CI relies."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock


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


def run_stages(*names, fails=None):
    """Returns the commands, the lines and the count of stages whose commands do nothing; `fails` is a word of one that fails."""
    commands = []

    def run(*command):
        commands.append(command)
        return int(fails in command)

    said = io.StringIO()
    with tempfile.TemporaryDirectory() as directory, mock.patch.object(tool, "ROOT", pathlib.Path(directory)), \
            mock.patch.object(tool, "run", run), contextlib.redirect_stdout(said):
        count = tool.run_stages(names)
    return commands, said.getvalue().splitlines(), count


class Stages(unittest.TestCase):
    def test_a_stage_builds_its_target_runs_its_test_preset_and_says_how_long_both_took(self):
        commands, lines, count = run_stages("release-rest")
        self.assertEqual(commands[1], ("cmake", "--build", "--preset", "release", "--target", "all"))
        self.assertEqual(commands[2][:3], ("ctest", "--preset", "release-rest"))
        self.assertRegex(lines[-1], r"^== release-rest: built in \d+ s, tested in \d+ s$")
        self.assertEqual(count, tool.Count())

    def test_a_build_that_failed_is_a_failure_and_its_tests_do_not_run(self):
        commands, lines, count = run_stages("asan", fails="--build")
        self.assertEqual(len(commands), 2)
        self.assertRegex(lines[-1], r"^== asan: the build failed after \d+ s$")
        self.assertEqual(count.failures, ["failed: the build of asan"])

    def test_a_stage_is_built_at_the_lowest_priority_while_the_one_before_is_tested(self):
        commands, lines, _ = run_stages("release", "asan")
        self.assertIn(("nice", "-n", "19", "cmake", "--build", "--preset", "asan", "--target", "all_tests"), commands)
        self.assertRegex(lines[-1], r"^== asan: built in")

    def test_a_stage_is_not_built_while_programs_of_its_directory_are_tested(self):
        commands, _, _ = run_stages("release", "release-rest")
        self.assertEqual([command[0] for command in commands], ["cmake", "cmake", "ctest", "cmake", "cmake", "ctest"])

    def test_a_stage_runs_even_if_the_build_of_the_one_before_failed(self):
        _, lines, count = run_stages("release", "asan", fails="release_tests")
        self.assertEqual(count.failures, ["failed: the build of release"])
        self.assertRegex(lines[-1], r"^== asan: built in")

    def test_the_last_line_counts_all_stages_and_a_failure_is_the_exit_status(self):
        said = io.StringIO()
        with mock.patch.object(tool, "run_stages", lambda names: tool.Count(passed=len(names), failed=1)), \
                mock.patch.object(sys, "argv", ["run-tests", "asan", "tsan"]), contextlib.redirect_stdout(said):
            self.assertEqual(tool.main(), 1)
        self.assertEqual(said.getvalue().splitlines()[-1], "2 passed, 1 failed")

    def test_each_has_a_test_preset_of_its_build(self):
        presets = {preset["name"]: preset
                   for preset in json.loads((tool.ROOT / "CMakePresets.json").read_text())["testPresets"]}
        for name, stage in tool.STAGES.items():
            preset = presets[stage.tests]
            while "configurePreset" not in preset:
                preset = presets[preset["inherits"]]
            self.assertEqual(preset["configurePreset"], stage.preset, name)

    def test_a_test_that_no_stage_runs_is_a_failure_unless_it_is_labelled_long(self):
        listing = {"tests": [{"name": "io", "properties": [{"name": "LABELS", "value": ["threads", "unit"]}]},
                             {"name": "soak", "properties": [{"name": "LABELS", "value": ["interop", "long"]}]},
                             {"name": "lost", "properties": [{"name": "LABELS", "value": ["unit"]}]},
                             {"name": "tidy", "properties": []}]}
        self.assertEqual(tool.in_no_stage(listing, {"io", "tidy"}).failures,
                         ["failed: lost, which no stage of make test runs"])


if __name__ == "__main__":
    unittest.main()
