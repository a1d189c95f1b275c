#!/usr/bin/env python3
"""Runs one attack of the attack suite against the `sluice` program.

    tests/attacks/attack_test.py PROGRAM SUITE NAME
    tests/attacks/attack_test.py build/release/sluice/cli/sluice ../shared/attacks gmac_oracle

The suite is not part of this project (README.md). The exit status is 0 if the property of the attack holds; 1 if it
is broken, or if the attack was inconclusive; and 77 if the attack needs something that this machine lacks.
"""

import json
import pathlib
import subprocess
import sys

SKIPPED = 77  # the exit status that ctest counts as skipped


def run(program, suite, name):
    """Returns the suite's result for this attack: a dictionary with `outcome`, `evidence` and `seconds`."""
    done = subprocess.run([sys.executable, "-B", str(suite / "run.py"), "--program", str(program), "--only", name, "--json"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if "No module named 'cryptography'" in done.stderr:
        return {"outcome": "skipped", "evidence": "needs the Python package cryptography (python3-cryptography)"}
    try:
        results = json.loads(done.stdout)["results"]
        return next(result for result in results if result["attack"] == name)
    except (ValueError, KeyError, StopIteration):
        last_lines = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        return {"outcome": "error", "evidence": f"the suite gave no result (exit status {done.returncode}):\n{last_lines}"}


def judge(name, result):
    """Prints one line about the result and returns the exit status."""
    outcome, evidence = result["outcome"], result["evidence"]
    if outcome == "skipped":
        print(f"skipped: {name}: {evidence}")
        return SKIPPED
    print(f"{outcome}: {name} ({result.get('seconds', 0)} s): {evidence}")
    return 0 if outcome == "holds" else 1


def main():
    if len(sys.argv) != 4:
        sys.exit(f"usage: {sys.argv[0]} PROGRAM SUITE NAME")
    program, suite, name = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
    if not (suite / "run.py").exists():
        result = {"outcome": "skipped", "evidence": f"no attack suite at {suite} (CMake variable SLUICE_ATTACK_SUITE)"}
    else:
        result = run(program, suite, name)
    return judge(name, result)


if __name__ == "__main__":
    sys.exit(main())
