#!/usr/bin/env python3
"""Runs Samba's own test suite, smbtorture, against `sluice serve`.

    tests/conformance/smbtorture.py --program build/release/sluice/cli/sluice [--suite lock]... [--signing required] [--jobs 2]

Each suite runs against its own server and directory. A test that fails must be in the ledger of its release and its kind
of signing, with the reason, or the run fails. A test in the ledger that passes is reported. The output compares each suite
with the result of Samba of the same release. smbtorture_settings.py has the requirements of the suites.
"""

import argparse
import ctypes
import functools
import os
import pathlib
import re
import shlex
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
import smbtorture_settings as settings  # noqa: E402

SMB_PORT = 445
CLONE_NEWNET = 0x40000000  # unshare(2)
COMMAND_VARIABLE = {"4.17": None, "4.22": "SLUICE_SMBTORTURE_4_22"}
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


def enter_own_network():
    """Gives the calling thread, and the processes that it starts, a network namespace with a loopback device only."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "no new network namespace")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def second_share(suite, root):
    """Returns the server's arguments for the second share of a suite, with its files in `root`."""
    if suite not in settings.SECOND_SHARES:
        return []
    name, setting = settings.SECOND_SHARES[suite]
    directory, file = root / name, root / "configuration" / "serve.toml"
    directory.mkdir()
    file.parent.mkdir()
    file.write_text(f'[[share]]\nname = "{name}"\npath = "{directory}"\n{setting}\n')
    return ["--config", str(file)]


def settings_of(suite, options):
    return settings.SETTINGS.get(suite, settings.Settings()) if options.release.is_full else settings.Settings()


def make_share(needed, root, program):
    """Returns the path of a new share in `root`: a directory, or a FAT image."""
    if needed.is_fat:
        image = root / "share.img"
        subprocess.run([program, "fat", "mkfs", "--size", "64m", image], check=True, stdout=subprocess.DEVNULL)
        return image
    directory = root / "share"
    directory.mkdir()
    for name in needed.files:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).touch()
    return directory


def server_arguments(suite, root, options):
    is_signed = suite == settings.REQUIRES_SIGNING or options.signing == "required"
    return [*settings.SIGNING["required" if is_signed else "optional"], *options.release.server_options,
            *settings.SERVER_OPTIONS.get(suite, []), *settings_of(suite, options).server, *second_share(suite, root)]


def run_once(name, options, more_arguments=(), seconds=None):
    """Runs a suite, or one test of it (lock.valid-request), against a new server and share."""
    suite = name.split(".")[0]
    with tempfile.TemporaryDirectory(prefix="sluice-smbtorture-", dir=options.scratch) as root:
        root = pathlib.Path(root)
        began = time.monotonic()
        fault, text, status = "", "", 0
        try:
            if options.release.needs_namespaces:
                enter_own_network()
            share = make_share(settings_of(suite, options), root, options.program)
            arguments = [*server_arguments(suite, root, options), *more_arguments]
            port = SMB_PORT if options.release.needs_namespaces else 0
            with served.Server(options.program, share, options.multiplexer, arguments, port=port) as server:
                text, status = run_smbtorture(name, server, options, seconds)
        except served.ServerFault as wrong:
            fault = str(wrong)
        outcome = parse_subunit(suite, text)
        outcome.seconds = time.monotonic() - began
        outcome.is_cut = status is None
        if status is not None and status < 0:
            fault = fault or f"smbtorture ended with signal {-status}"
        if not fault and not (outcome.passed or outcome.failed or outcome.skipped):
            fault = "smbtorture ran no test; is this the name of a suite?"
        outcome.fault = fault
        return outcome


def run_one_by_one(suite, options):
    """Runs each test of a suite on its own, several times if it hangs."""
    whole = Outcome(suite)
    for test in tests_of(options.smbtorture).get(suite, []):
        for _ in range(settings.ATTEMPTS_MAX):
            one = run_once(f"{suite}.{test}", options, seconds=options.timeout or settings.ONE_BY_ONE[suite])
            whole.seconds += one.seconds
            if not one.is_cut:
                break
        add_result(whole, test, one)
    return whole


def add_result(whole, test, one):
    """Adds the result of a test that ran on its own to that of its suite, instead of an earlier one."""
    whole.failed.pop(test, None)
    if one.passed:
        whole.passed.append(test)
    elif one.skipped:
        whole.skipped.append(test)
    else:
        whole.failed[test] = next(iter(one.failed.values()), one.fault or DID_NOT_FINISH)


def run_suite(suite, options):
    """Runs one suite, or one test of it, as the release requires."""
    if options.release.is_full and suite in settings.ONE_BY_ONE:
        return run_one_by_one(suite, options)
    outcome = run_once(suite, options)
    for test in list(outcome.failed) if options.release.is_full and "." not in suite else []:
        more = settings.ALONE.get(f"{suite}.{test}")
        if more is not None:
            one = run_once(f"{suite}.{test}", options, more)
            outcome.seconds += one.seconds
            add_result(outcome, test, one)
    return outcome


def run_smbtorture(name, server, options, seconds):
    """Returns its output, and its exit status: None if it had to be killed."""
    suite = name.split(".")[0]
    torture = ["progress=no", *settings_of(suite, options).torture]
    torture += ["use_iptables=yes"] if options.release.needs_namespaces else []
    command = [*options.smbtorture, f"//127.0.0.1/{server.share}", "-p", str(server.port),
               "-U", f"{served.USER}%{served.PASSWORD}", "--format=subunit",
               *(f"--option=torture:{setting}" for setting in torture), f"smb2.{name}"]
    seconds = seconds or options.timeout or settings.SLOW_SUITE_SECONDS_MAX.get(suite, settings.SUITE_SECONDS_MAX)
    with tempfile.TemporaryFile(dir=options.scratch) as output:
        # A separate session: some tests fork, and all their processes must be ended.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL,
                                   start_new_session=True, cwd=options.scratch)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        output.seek(0)
        text = output.read()
        if options.output:
            (options.output / f"{name}.txt").write_bytes(text)
        return text.decode(errors="replace"), status


@functools.cache
def list_tests(command):
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    tests = {}
    # A test that is not part of a group is listed with its name twice.
    for match in re.finditer(r"^\s*smb2\.([^.\n]+)\.(.+?)(?:\.([^.\n]+))?$", listed, re.MULTILINE):
        name = match[2] if match[3] is None or match[2].split(".")[-1] == match[3] else f"{match[2]}.{match[3]}"
        tests.setdefault(match[1], []).append(name)
    return tests


def tests_of(smbtorture):
    """Returns the names of the tests of each suite of smb2."""
    return list_tests((*smbtorture, "--list"))


def all_suites(smbtorture):
    """Returns the suites, the slowest ones first, so that no process waits for a last one at the end."""
    suites = sorted(set(tests_of(smbtorture)) - set(settings.LEFT_OUT))
    return sorted(suites, key=lambda suite: suite not in settings.SLOW_SUITE_SECONDS_MAX)


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
    if not path.exists():
        return reference
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
          f" (smbtorture {options.release.name}, {options.multiplexer}, signing {options.signing})")
    if recovered:
        print(f"passes now, remove it from {options.ledger.name}: " + ", ".join(recovered))
    again = (f"{pathlib.Path(__file__)} --program {options.program} --multiplexer {options.multiplexer}"
             f" --signing {options.signing} --release {options.release.name} --suite")
    for suite, names in unknown.items():
        print(f"failed and not in {options.ledger.name}: {', '.join(names)}; again: {again} {suite}")
    for suite in faults:
        print(f"fault: {suite}; again: {again} {suite}")
    return not unknown and not faults


def missing_requirement(options):
    """Returns the requirement of the run that this machine does not meet, or an empty string."""
    if not options.smbtorture:
        return f"no command for smbtorture {options.release.name}: set {COMMAND_VARIABLE[options.release.name]}"
    if not shutil.which(options.smbtorture[0]):
        return f"{options.smbtorture[0]} is not installed (smbtorture: Debian package samba-testsuite)"
    if options.signing not in options.release.ledgers:
        return f"there is no ledger of {options.release.name} for --signing {options.signing}"
    if options.release.needs_namespaces:
        try:
            subprocess.run(["unshare", "--net", "iptables", "--list"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return "network namespaces with iptables are required: root, and the Debian package iptables"
    return ""


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, type=pathlib.Path, help="the sluice program")
    parser.add_argument("--suite", action="append", help="a suite (lock) or a test (lock.valid-request); default all")
    parser.add_argument("--quick", action="store_true", help="the suites that `make test` runs")
    parser.add_argument("--multiplexer", choices=served.MULTIPLEXERS, default="io_uring")
    parser.add_argument("--signing", choices=settings.SIGNING, help="selects the server's options and the ledger")
    parser.add_argument("--release", choices=settings.RELEASES, default="4.17", help="of smbtorture")
    parser.add_argument("--smbtorture", help="its command; default: smbtorture, for 4.22 $SLUICE_SMBTORTURE_4_22")
    parser.add_argument("--jobs", type=int, default=1, help="suites at a time")
    parser.add_argument("--timeout", type=float, help="seconds a suite may take")
    parser.add_argument("--keep-going", action="store_true", help="after a failure that is not in the ledger")
    parser.add_argument("--ledger", type=pathlib.Path, help="default: the ledger of --release and --signing")
    parser.add_argument("--write-ledger", action="store_true", help="bring the ledger up to date with this run")
    parser.add_argument("--output", type=pathlib.Path, help="directory for what smbtorture prints, a file for each suite")
    parser.add_argument("--scratch", help="directory for the shares; must have extended attributes")
    options = parser.parse_args()
    options.release = settings.RELEASES[options.release]
    variable = COMMAND_VARIABLE[options.release.name]
    options.smbtorture = shlex.split(options.smbtorture or (os.environ.get(variable, "") if variable else "smbtorture"))
    options.signing = options.signing or ("required" if options.release.is_full else "optional")
    if missing := missing_requirement(options):
        served.skip(missing)
    options.program = options.program.resolve()
    options.ledger = options.ledger or options.release.ledgers[options.signing]
    return options


def main():
    options = parse_options()
    suites = options.suite or (list(settings.QUICK) if options.quick else all_suites(options.smbtorture))
    suites = [suite.removeprefix("smb2.") for suite in suites]
    ledger = read_ledger(options.ledger)
    reference = read_reference(options.release.reference)

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
        unsigned = options.release.ledgers.get("optional") if options.signing == "required" else None
        write_ledger(options.ledger, ledger, outcomes, read_ledger(unsigned) if unsigned else {})
        ledger = read_ledger(options.ledger)
    return 0 if judge(outcomes, ledger, options) else 1


if __name__ == "__main__":
    sys.exit(main())
