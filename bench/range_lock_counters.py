#!/usr/bin/env python3
"""Counts instructions and first-level cache misses per pair of lock and unlock, where CPU counters are unavailable.

    bench/range_lock_counters.py build/release/bench/range_lock [--only NAME]

Runs each subject and workload of `range_lock --once` under callgrind, which counts the operations of one thread: once with
few pairs, once with more. The difference is that of the pairs alone, without the start of the program and the ranges held
before. The misses are those of callgrind's model of a cache (of this machine's size), not the CPU's own. Prints JSON Lines
like the benchmarks, for tools/plot.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FEW, MANY = 2_000, 22_000
EVENTS = {  # in the rows: (metric, unit, function of callgrind's events)
    "instructions": ("instructions/op", lambda count: count["Ir"]),
    "l1_data_misses": ("misses/op", lambda count: count["D1mr"] + count["D1mw"]),
}


def events_of(text):
    """Parses a callgrind file. Returns {event: count} over the whole program."""
    names = re.search(r"^events: (.*)$", text, re.MULTILINE)
    counts = re.search(r"^(?:totals|summary): (.*)$", text, re.MULTILINE)
    if not names or not counts:
        raise ValueError("callgrind wrote no totals")
    values = [int(value) for value in counts[1].split()]
    return dict.fromkeys(names[1].split(), 0) | dict(zip(names[1].split(), values))


def counted(program, subject, workload, pairs):
    with tempfile.TemporaryDirectory(prefix="sluice-counters-") as directory:
        out = pathlib.Path(directory) / "counts"
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--cache-sim=yes", f"--callgrind-out-file={out}",
             program, "--once", subject, workload, str(pairs)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{subject} {workload}: {done.stderr}")
        return events_of(out.read_text(encoding="utf-8"))


def rows_of(program, subject, workload):
    few, many = (counted(program, subject, workload, pairs) for pairs in (FEW, MANY))
    for metric, (unit, made_of) in EVENTS.items():
        per_pair = (made_of(many) - made_of(few)) / (MANY - FEW)
        yield {"bench": "range_lock_counters", "workload": workload, "subject": subject, "metric": metric,
               "unit": unit, "better": "lower", "median": round(per_pair, 4), "min": round(per_pair, 4),
               "max": round(per_pair, 4), "n": 1, "cpu_ns_per_op": None}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the benchmark program range_lock")
    parser.add_argument("--only", default="", help='run only if "SUBJECT WORKLOAD" contains this')
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        sys.exit("valgrind is not installed (Debian package valgrind)")
    listed = subprocess.run([options.program, "--once"], capture_output=True, text=True, check=True)
    chosen = [line.split() for line in listed.stdout.splitlines() if options.only in line]
    if not chosen:
        sys.exit(f"no subject and workload name contains '{options.only}'")
    with tempfile.TemporaryDirectory(prefix="sluice-counters-") as directory:
        # Debian's valgrind fails on the debug information of clang 19.
        stripped = pathlib.Path(directory) / "range_lock"
        subprocess.run(["strip", "--strip-debug", "-o", stripped, options.program], check=True)
        for subject, workload in sorted(chosen, key=lambda each: each[1]):
            for row in rows_of(stripped, subject, workload):
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
