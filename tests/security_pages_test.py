#!/usr/bin/env python3
"""The tests that docs/security.md and docs/cves.md name in the last column of their tables must exist.

    tests/security_pages_test.py [ATTACK-SUITE]
"""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("docs/security.md", "docs/cves.md")
SUITE = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None


def named_tests(page):
    """Yields each test named in the last column of a table: the line number, the word before the name, and the name."""
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        if line.startswith("|"):
            for match in re.finditer(r"(\w+)? ?`(\w[^`/]*)`", line.rstrip("| ").rpartition("|")[2]):
                yield number, match[1], match[2]


def googletests():
    pattern = re.compile(r"^(?:TEST(?:_F|_P)?)\((\w+), (\w+)\)", re.MULTILINE)
    return {f"{suite}.{name}" for directory in ("sluice", "tests") for path in (ROOT / directory).rglob("*_test.cpp")
            for suite, name in pattern.findall(path.read_text())}


def ctests():
    lists = [path.read_text() for path in ROOT.rglob("CMakeLists.txt") if "build" not in path.parts]
    named = {name for text in lists for name in re.findall(r"^\s*sluice_(?:contained_|python_)?test\((\w+)", text, re.MULTILINE)}
    return named | {f"fuzz_seeds_{path.name}" for path in (ROOT / "fuzz/seeds").iterdir()}


def python_tests():
    return {name for directory in ("sluice", "tests") for path in (ROOT / directory).rglob("*.py")
            for name in re.findall(r"^\s+def (test_\w+)", path.read_text(), re.MULTILINE)}


def failing_in_smbtorture():
    lines = (ROOT / "tests/conformance/ledger-signed.txt").read_text().splitlines()
    return {line.partition("\t")[0] for line in lines}


class SecurityPages(unittest.TestCase):
    def setUp(self):
        self.googletests, self.others, self.failing = googletests(), ctests() | python_tests(), failing_in_smbtorture()
        self.groups = {name.partition(".")[0] for name in self.googletests}
        self.attacks = {path.stem for path in (SUITE / "cases").glob("*.py")} if SUITE else set()  # empty: no suite here

    def exists(self, before, name):
        if before == "smbtorture":
            return name not in self.failing
        if name.endswith(".*"):
            return name[:-2] in self.groups
        if name in self.googletests or name in self.others:
            return True
        if "." in name or name.startswith(("test_", "fuzz_seeds_")):
            return False
        return not self.attacks or any(pathlib.PurePath(one).match(name) for one in self.attacks)

    def test_each_test_that_a_page_names_exists(self):
        missing = [f"{page}:{number}: {name}" for page in PAGES for number, before, name in named_tests(page)
                   if not self.exists(before, name)]
        self.assertFalse(missing, "\n".join(missing))

    def test_no_promise_lacks_a_test_until_later(self):
        open_entries = [f"{page}:{number}: {line}" for page in PAGES
                        for number, line in enumerate((ROOT / page).read_text().splitlines(), 1) if "TBD" in line]
        self.assertFalse(open_entries, "\n".join(open_entries))

    def test_no_cve_is_listed_twice(self):
        numbers = re.findall(r"^\| (CVE-20\d\d-\d+) \|", (ROOT / "docs/cves.md").read_text(), re.MULTILINE)
        self.assertEqual(len(numbers), len(set(numbers)))


if __name__ == "__main__":
    unittest.main()
