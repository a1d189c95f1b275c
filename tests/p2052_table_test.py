#!/usr/bin/env python3
"""Checks that docs/p2052.md names existing files, and tests that exist, in a suite of that name."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "p2052.md"
TEST = re.compile(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)", re.M)


def existing_tests():
    """Returns `suite.test` for every test in the sources."""
    names = set()
    for directory in ("sluice", "tests", "examples"):
        for path in (ROOT / directory).rglob("*_test.cpp"):
            names.update(f"{suite}.{test}" for suite, test in TEST.findall(path.read_text()))
    return names


def problems(text, tests):
    """Returns the problems of the table, as lines of text."""
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        if not (TABLE.parent / link).exists():
            yield f"{TABLE.name} links to {link}, which does not exist"
    for name in re.findall(r"`(\w+\.\w+)`", text):
        if name not in tests:
            yield f"{TABLE.name} names the test {name}, which does not exist"
    rows = [line for line in text.splitlines() if line.startswith("|") and not line.startswith(("|---", "| Guarantee"))]
    for row in rows:
        if "`" not in row.split("|")[-2]:
            yield f"{TABLE.name}: no test in the row {row.split('|')[1].strip()!r}"


def main():
    tests = existing_tests()
    assert tests, "no tests found: the search is broken"
    assert list(problems("| a | b | [c](no_such_file) |", tests)), "a wrong table passes"
    assert list(problems("| a | b | `no.test` |", tests)), "a wrong table passes"
    found = list(problems(TABLE.read_text(), tests))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
