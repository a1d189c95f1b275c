#!/usr/bin/env python3
"""Counts the ENSURE per function of the components whose state has invariants, and compares the counts with lower bounds.

    tools/ensure_count.py [ROOT]
    tools/ensure_count.py --raise [ROOT]   raise the bounds below to the present values

Counted are the sources (*.cpp) without tests: functions that begin in the first column and whose head ends a line, and
each ENSURE. The bounds only rise, up to 0.5; an ENSURE states a relation between fields, not that a pointer is set.
"""

import argparse
import pathlib
import re
import sys
from dataclasses import dataclass

# The lower bounds of ENSURE per function. Raise a value, never lower it.
BOUNDS = {
    "smb/server": 0.5,
    "fat": 0.5,
    "io": 0.5,
}
TARGET = 0.5  # the bounds rise no further

FUNCTION = re.compile(
    r"""^\S.*\)            # the parameters end on the line of the brace
        (?:\ const)?(?:\ noexcept)?
        (?:\ ->[^{;]*)?    # a trailing return type
        \ \{$""", re.MULTILINE | re.VERBOSE)
ENSURE = re.compile(r"\bENSURE\(")
ENTRY = r'(?m)^    "{}": [0-9.]+,$'


@dataclass
class Count:
    functions: int = 0
    ensures: int = 0

    def add(self, text):
        self.functions += len(FUNCTION.findall(text))
        self.ensures += len(ENSURE.findall(text))

    @property
    def per_function(self):
        return self.ensures / self.functions if self.functions else 0.0


def count(directory):
    total = Count()
    for source in sorted(directory.rglob("*.cpp")):
        if not source.stem.endswith("_test"):
            total.add(source.read_text(errors="replace"))
    return total


def raised(text, counts):
    """Returns the text of this program with the counts as bounds, rounded down. No bound is lowered."""
    for component, found in counts.items():
        bound = min(TARGET, max(BOUNDS[component], int(found.per_function * 100) / 100))
        text = re.sub(ENTRY.format(re.escape(component)), f'    "{component}": {bound},', text)
    return text


def shortfalls(counts, bounds):
    """Returns a sentence for each component with too few."""
    return [f"sluice/{component}: {found.ensures} ENSURE in {found.functions} functions are {found.per_function:.3f}, and "
            f"{bounds[component]} is the least: state what must hold between the fields that a function changes"
            for component, found in counts.items() if found.per_function < bounds[component]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parent.parent, type=pathlib.Path)
    parser.add_argument("--raise", dest="raises", action="store_true", help="raise the bounds to the present values")
    options = parser.parse_args()
    counts = {component: count(options.root / "sluice" / component) for component in BOUNDS}
    for component, found in counts.items():
        print(f"{component}: {found.ensures} ENSURE, {found.functions} functions, {found.per_function:.3f} per function")
    if options.raises:
        program = pathlib.Path(__file__)
        program.write_text(raised(program.read_text(), counts))
        return 0
    found = shortfalls(counts, BOUNDS)
    for sentence in found:
        print(sentence, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
