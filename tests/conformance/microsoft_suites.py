#!/usr/bin/env python3
"""Compares the results of Microsoft's protocol test suites (MS-SMB2 and MS-FSA) with the ledgers.

    tests/conformance/microsoft_suites.py --runner PATH --program build/release/sluice/cli/sluice [--suite MS-FSA] [--quick]

The suites are github.com/microsoft/WindowsProtocolTestSuites. The runner is a program that executes one of them:
`PATH SUITE --program PROGRAM --out DIRECTORY --server-args ARGUMENTS [--set NAME=VALUE ...] [--signing] [--filter FILTER]`
sets properties of the suite and leaves `DIRECTORY/SUITE.json`, an object with `[outcome, message]` for each case. Without `--runner`, the variable
SLUICE_PROTOCOL_SUITES names it; without both, the exit status is 77. A case that fails must be in the ledger of its suite
with the cause and the decision, or the run fails. A case in the ledger that passes is reported.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LEDGERS = {"MS-SMB2": HERE / "microsoft-smb2.txt", "MS-FSA": HERE / "microsoft-fsa.txt"}
# What the suites expect of a server: an administrator may read and change audit lists, files have short names, and messages are
# compressed.
SERVER_OPTIONS = ("--auditor administrator --short-names on --compression on "
                  "--previous-versions .snapshots/%Y-%m-%d_%H%M")
# One share has persistent handles, and the others have none. Another one has two snapshots. The runner writes a configuration
# without that, so it starts this program, which adds both.
AVAILABLE_SHARE = "FileShare"
STARTER = """#!/bin/sh
sed -i '/^name = "{share}"$/a continuous-availability = "on"' "$3"
directory=$(sed -n 's|^path = "\\(.*/SMBBasic\\)"$|\\1|p' "$3" | head -1)
mkdir -p "$directory/.snapshots/2026-11-27_1200" "$directory/.snapshots/2026-11-28_0100"
exec {program} "$@"
"""
# The state of persistent handles must be in memory.
MEMORY = "/dev/shm"
# Their properties that state what the server supports. The others have the values of the runner.
PROPERTIES = ("SupportedCompressionAlgorithms=LZ77;LZ77Huffman;LZNT1;Pattern_V1", "IsChainedCompressionSupported=true",
              "CompressedFileShare=SMBBasic", "IsDirectoryLeasingSupported=true", "IsPersistentHandlesSupported=true",
              f"CAShareName={AVAILABLE_SHARE}", "CAShareServerName=10.0.0.1", "NumberOfPreviousVersions=2")
# Topics that take less than a minute each: for both suites, 89 seconds (`time microsoft_suites.py --program PROGRAM --quick`).
QUICK = {"MS-SMB2": "Name~CreateClose|Name~AppInstance|Name~QueryDir|Name~BVT_SMB2Compression", "MS-FSA": "Name~QueryDirectory|Name~FsCtl"}
SKIPPED = 77


def read_ledger(path):
    """Returns the reason of each case of a ledger."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("\t") for line in lines)


def compare(results, ledger):
    """Returns the cases that fail without a reason, and those that pass although the ledger has them."""
    failed = {name for name, (outcome, _) in results.items() if outcome == "Failed"}
    passed = {name for name, (outcome, _) in results.items() if outcome == "Passed"}
    return sorted(failed - ledger.keys()), sorted(passed & ledger.keys())


def run(suite, options):
    """Executes a suite. Returns the outcome and the message of each case."""
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory(dir=MEMORY) as state:
        starter = pathlib.Path(directory) / "starter"
        starter.write_text(STARTER.format(share=AVAILABLE_SHARE, program=shlex.quote(str(pathlib.Path(options.program).resolve()))))
        starter.chmod(0o700)
        command = [options.runner, suite, "--program", str(starter), "--out", directory,
                   "--server-args", f"{SERVER_OPTIONS} --state-directory {state}"]
        for each in PROPERTIES:
            command += ["--set", each]
        command += ["--signing"] if options.signing == "required" else []
        command += ["--filter", QUICK[suite]] if options.quick else []
        status = subprocess.run(command, check=False).returncode
        results = pathlib.Path(directory) / f"{suite}.json"
        if not results.exists():
            sys.exit(f"{options.runner}: {suite}: no results, exit status {status}")
        return json.loads(results.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", default=os.environ.get("SLUICE_PROTOCOL_SUITES"))
    parser.add_argument("--program", required=True)
    parser.add_argument("--suite", choices=LEDGERS, action="append")
    parser.add_argument("--signing", choices=("required", "optional"), default="required")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if not options.runner:
        print("no runner of the suites: set SLUICE_PROTOCOL_SUITES")
        return SKIPPED
    status = 0
    for suite in options.suite or LEDGERS:
        results = run(suite, options)
        ledger = read_ledger(LEDGERS[suite])
        missing, fixed = compare(results, ledger)
        counts = [sum(outcome == wanted for outcome, _ in results.values()) for wanted in ("Passed", "Failed")]
        print(f"{suite}: {counts[0]} passed, {counts[1]} failed, {len(results) - sum(counts)} skipped")
        for name in missing:
            print(f"  FAILED without a reason: {name}: {results[name][1][:300]}")
        for name in fixed:
            print(f"  passes, remove it from the ledger: {name}")
        status |= bool(missing)
    return status


if __name__ == "__main__":
    sys.exit(main())
