#!/usr/bin/env python3
"""Runs Samba's own test suite, smbtorture, against `sluice serve`.

    tests/conformance/smbtorture.py --program build/release/sluice/cli/sluice [--suite lock]... [--signing required] [--jobs 2]

Each suite runs against its own server and directory. A test that fails must be in the ledger of its kind of signing,
with the reason, or the run fails. A test in the ledger that passes is reported. The output compares each suite with the
result of Samba 4.17 on its own suite. See README.md in this directory.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "interop"))
import served  # noqa: E402  (found through the line above)

SUITE_SECONDS_MAX = 150
# They wait for the timeout of breaks, 35 seconds each, or for notifications that must not be sent.
SLOW_SUITE_SECONDS_MAX = {"lease": 300, "notify": 300, "oplock": 300, "replay": 400}
# They wait for a key press, count descriptors for minutes, or measure.
LEFT_OUT = ("bench", "hold-oplock", "hold-sharemode", "maxfid", "scan")
# Seconds each, with the same result in each run, so that `make test` can run them: the usual
# operations of clients.
QUICK = ("acls", "async_dosmode", "charset", "check-sharemode", "compound", "compound_async", "connect", "create",
         "credits", "delete-on-close-perms", "deny", "durable-open", "durable-open-disconnect", "durable-v2-open",
         "fileid", "getinfo", "ioctl", "ioctl-on-stream", "lock", "mkdir", "openattr", "read", "rename", "rw",
         "session", "session-id", "session-require-signing", "sharemode", "tcon", "winattr")
# Kind of signing -> the server's options and the list of failing tests. `required` is the server's
# default.
SIGNING = {"required": ([], HERE / "ledger-signed.txt"), "optional": (["--no-signing"], HERE / "ledger.txt")}
# Suite -> options of its server, with each kind of signing. smbtorture numbers its messages from 0 on each connection. With
# AES-GMAC, it would repeat nonces on the third channel of a session, so that the server rejects that channel.
BINDS_MORE_CHANNELS_THAN_GMAC_ALLOWS = ["--signing-algorithms", "aes-cmac"]
SERVER_OPTIONS = {"multichannel": BINDS_MORE_CHANNELS_THAN_GMAC_ALLOWS, "replay": BINDS_MORE_CHANNELS_THAN_GMAC_ALLOWS}
# Suite -> the name of a second share that smbtorture connects to, and its setting in the configuration file.
SECOND_SHARES = {"acls": ("hideunread", "hide-unreadable = true")}
REQUIRES_SIGNING = "session-require-signing"  # a suite about servers that require signing
DID_NOT_FINISH = "did not finish"
AS_UNSIGNED = "as without signing"  # in the ledger of `required`: ledger.txt has the reason


@dataclass
class Outcome:
    """The results of a suite. A test that was running when smbtorture ended has failed."""

    suite: str
    passed: list = field(default_factory=list)
    failed: dict = field(default_factory=dict)  # name -> the first line of smbtorture's reason
    skipped: list = field(default_factory=list)
    fault: str = ""  # a problem outside of the tests: the server died, smbtorture crashed
    is_cut: bool = False
    seconds: float = 0.0


def parse_subunit(suite, text):
    """smbtorture --format=subunit: `test: NAME`, then `success: NAME`, or `failure: NAME [`, the reason and `]`."""
    outcome = Outcome(suite)
    running = None
    lines = iter(text.splitlines())
    for line in lines:
        match = re.match(r"(test|success|failure|error|skip|xfail): (.*?)( \[)?$", line)
        if not match:
            continue
        kind, name, has_reason = match[1], match[2], match[3]
        if kind == "test":
            running = name
            continue
        reason = []
        if has_reason:
            for more in lines:
                if more == "]":
                    break
                reason.append(more.strip())
        running = None
        if kind == "success":
            outcome.passed.append(name)
        elif kind == "skip":
            outcome.skipped.append(name)
        else:
            outcome.failed[name] = re.sub(r"^(\.\./)+source4/torture/", "", next(filter(None, reason), kind))
    if running is not None:
        outcome.failed[running] = DID_NOT_FINISH
    return outcome


def second_share(suite, root):
    """Returns the server's arguments for the second share of a suite, with its files in `root`."""
    if suite not in SECOND_SHARES:
        return []
    name, setting = SECOND_SHARES[suite]
    directory, file = root / name, root / "configuration" / "serve.toml"
    directory.mkdir()
    file.parent.mkdir()
    file.write_text(f'[[share]]\nname = "{name}"\npath = "{directory}"\n{setting}\n')
    return ["--config", str(file)]


def run_suite(suite, options):
    """Runs one suite, or one test of it (lock.valid-request), against a new server and directory."""
    with tempfile.TemporaryDirectory(prefix="sluice-smbtorture-", dir=options.scratch) as root:
        directory = pathlib.Path(root) / "share"
        directory.mkdir()
        began = time.monotonic()
        fault, text, status = "", "", 0
        try:
            name = suite.split(".")[0]
            arguments, _ = SIGNING["required" if name == REQUIRES_SIGNING else options.signing]
            arguments = arguments + SERVER_OPTIONS.get(name, []) + second_share(name, pathlib.Path(root))
            with served.Server(options.program, directory, options.multiplexer, arguments) as server:
                text, status = run_smbtorture(suite, server, options)
        except served.ServerFault as wrong:
            fault = str(wrong)
        outcome = parse_subunit(suite.split(".")[0], text)
        outcome.seconds = time.monotonic() - began
        outcome.is_cut = status is None
        if status is not None and status < 0:
            fault = fault or f"smbtorture ended with signal {-status}"
        if not fault and not (outcome.passed or outcome.failed or outcome.skipped):
            fault = "smbtorture ran no test; is this the name of a suite?"
        outcome.fault = fault
        return outcome


def run_smbtorture(suite, server, options):
    """Returns its output, and its exit status: None if it had to be killed."""
    command = ["smbtorture", f"//127.0.0.1/{server.share}", "-p", str(server.port),
               "-U", f"{served.USER}%{served.PASSWORD}", "--format=subunit", "--option=torture:progress=no",
               f"smb2.{suite}"]
    with tempfile.TemporaryFile(dir=options.scratch) as output:
        # A separate session: some tests fork, and all their processes must be ended.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL,
                                   start_new_session=True, cwd=options.scratch)
        try:
            status = process.wait(options.timeout or SLOW_SUITE_SECONDS_MAX.get(suite, SUITE_SECONDS_MAX))
        except subprocess.TimeoutExpired:
            status = None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        output.seek(0)
        return output.read().decode(errors="replace"), status


def all_suites():
    listed = subprocess.run(["smbtorture", "--list"], capture_output=True, text=True, check=False).stdout
    suites = {match[1] for match in re.finditer(r"^\s*smb2\.([^.\s]+)", listed, re.MULTILINE)}
    return sorted(suites - set(LEFT_OUT))


def read_ledger(path):
    """Reads lines of `suite.test<TAB>reason`; `smb2.` before it is allowed, empty lines and # comments are ignored."""
    ledger = {}
    if not path.exists():
        return ledger
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, tab, reason = line.partition("\t")
        if not tab or not reason.strip():
            sys.exit(f"{path}:{number}: expected suite.test, a tab and the reason, not: {line}")
        ledger[name.removeprefix("smb2.")] = reason.strip()
    return ledger


def write_ledger(path, ledger, outcomes, unsigned):
    """Adds the tests that fail and removes those that pass. A new entry gets smbtorture's message as its reason, or a
    reference to the entry in the ledger `unsigned`, if there is one."""
    comments = [line for line in path.read_text().splitlines() if line.startswith("#")] if path.exists() else []
    entries = dict(ledger)
    for outcome in outcomes:
        for name in outcome.passed:
            entries.pop(f"{outcome.suite}.{name}", None)
        for name, reason in outcome.failed.items():
            name = f"{outcome.suite}.{name}"
            entries.setdefault(name, AS_UNSIGNED if name in unsigned else f"not examined: {reason}")
    lines = [f"{name}\t{reason}" for name, reason in sorted(entries.items())]
    path.write_text("\n".join(comments + lines) + "\n")


def read_reference(path):
    """Reads lines of `suite passed failed skipped`, with a * after them if the suite reached the time limit."""
    reference = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            suite, passed, failed, skipped = line.replace("*", " ").split()
            reference[suite] = (int(passed), int(failed), int(skipped))
    return reference


def print_outcome(outcome, reference, ledger):
    counts = f"{len(outcome.passed)}/{len(outcome.failed)}/{len(outcome.skipped)}{'*' if outcome.is_cut else ''}"
    theirs = reference.get(outcome.suite)
    text = "-" if theirs is None else "/".join(map(str, theirs))
    below = " below Samba" if theirs and len(outcome.passed) < theirs[0] else ""
    print(f"{outcome.suite:28} {counts:>10}  Samba {text:>8}  {outcome.seconds:5.1f} s{below}")
    for name, reason in outcome.failed.items():
        full = f"{outcome.suite}.{name}"
        known = ledger.get(full)
        print(f"    {'known' if known else 'FAILS'}: {full}: {known or reason}")
    if outcome.fault:
        print("    FAULT: " + outcome.fault.replace("\n", "\n        "))
    sys.stdout.flush()


def new_failures(outcome, ledger):
    return [name for name in (f"{outcome.suite}.{test}" for test in outcome.failed) if name not in ledger]


def judge(outcomes, ledger, options):
    """Prints the totals. Returns whether all failures are known."""
    unknown = {outcome.suite: new for outcome in outcomes if (new := new_failures(outcome, ledger))}
    faults = [outcome.suite for outcome in outcomes if outcome.fault]
    recovered = [f"{outcome.suite}.{name}" for outcome in outcomes for name in outcome.passed
                 if f"{outcome.suite}.{name}" in ledger]
    count = {kind: sum(len(getattr(outcome, kind)) for outcome in outcomes) for kind in ("passed", "failed", "skipped")}
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped in {len(outcomes)} suites"
          f" ({options.multiplexer}, signing {options.signing})")
    if recovered:
        print(f"passes now, remove it from {options.ledger.name}: " + ", ".join(recovered))
    again = (f"{pathlib.Path(__file__)} --program {options.program} --multiplexer {options.multiplexer}"
             f" --signing {options.signing} --suite")
    for suite, names in unknown.items():
        print(f"failed and not in {options.ledger.name}: {', '.join(names)}; again: {again} {suite}")
    for suite in faults:
        print(f"fault: {suite}; again: {again} {suite}")
    return not unknown and not faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, type=pathlib.Path, help="the sluice program")
    parser.add_argument("--suite", action="append", help="a suite (lock) or a test (lock.valid-request); default all")
    parser.add_argument("--quick", action="store_true", help="the suites that `make test` runs")
    parser.add_argument("--multiplexer", choices=served.MULTIPLEXERS, default="io_uring")
    parser.add_argument("--signing", choices=SIGNING, default="optional", help="selects the server's options and the ledger")
    parser.add_argument("--jobs", type=int, default=1, help="suites at a time")
    parser.add_argument("--timeout", type=float, help="seconds a suite may take")
    parser.add_argument("--keep-going", action="store_true", help="after a failure that is not in the ledger")
    parser.add_argument("--ledger", type=pathlib.Path, help="default: the ledger of --signing")
    parser.add_argument("--write-ledger", action="store_true", help="bring the ledger up to date with this run")
    parser.add_argument("--scratch", help="directory for the shares; must have extended attributes")
    options = parser.parse_args()
    if not shutil.which("smbtorture"):
        served.skip("smbtorture is not installed (Debian package samba-testsuite)")
    options.program = options.program.resolve()
    options.ledger = options.ledger or SIGNING[options.signing][1]
    suites = options.suite or (list(QUICK) if options.quick else all_suites())
    suites = [suite.removeprefix("smb2.") for suite in suites]
    ledger = read_ledger(options.ledger)
    reference = read_reference(HERE / "samba-4.17.txt")

    outcomes = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(lambda suite: run_suite(suite, options), suites):
            outcomes.append(outcome)
            print_outcome(outcome, reference, ledger)
            is_bad = outcome.fault or new_failures(outcome, ledger)
            if is_bad and not (options.keep_going or options.write_ledger):
                pool.shutdown(wait=False, cancel_futures=True)
                break
    if options.write_ledger:
        unsigned = read_ledger(SIGNING["optional"][1]) if options.signing == "required" else {}
        write_ledger(options.ledger, ledger, outcomes, unsigned)
        ledger = read_ledger(options.ledger)
    return 0 if judge(outcomes, ledger, options) else 1


if __name__ == "__main__":
    sys.exit(main())
