#!/usr/bin/env python3
"""The tests of `base` and `sluice::io` on kernels older than that of this machine, in a virtual machine.

    tests/kernels/older_kernels.py build/release [--kernel 6.1] [--manner allowed] [--program conformance] [--filter GLOB]

The machine is qemu without KVM; its kernels are those of Debian 11, 12 and 13, downloaded into the build directory once, from
the mirror of this machine. Every program runs in each manner: with io_uring `allowed`, denied by `seccomp` as in a
container, and denied by `sysctl` (kernel.io_uring_disabled, in kernels from 6.6 on). Skipped (status 77) if qemu or a
kernel is not available. It takes minutes for each kernel, so `make test` does not run it.
"""

import argparse
import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "interop"))
import machine  # noqa: E402  (found through the line above)
import served  # noqa: E402

RELEASES = {"5.10": "bullseye", "6.1": "bookworm", "6.12": "trixie"}  # kernel -> the Debian that has it
MANNERS = ("allowed", "seccomp", "sysctl")
DIRECTORIES = ("sluice/base", "sluice/io", "tests/conformance")
MODULES = ("virtio_pci", "virtio_blk", "ext4", "crc32c_generic")
TOOLS = {**machine.TOOLS, **machine.PROGRAM_TOOLS, "mkfs.ext4": "e2fsprogs"}
PROGRAM_SECONDS_MAX = 1800  # per test program; the longest takes five minutes on an idle machine
# qemu 7.2 sometimes leaves wrong flags after cmpxchg16b, which Linux 6.12 uses to allocate memory:
# it crashes.
PROCESSOR = "max,-cx16"
DISK_BYTES = 512 << 20


@dataclasses.dataclass
class Outcome:
    """The result of one program in one manner."""

    manner: str
    program: str
    status: int
    passed: int
    skipped: int
    ran: int
    text: str

    @property
    def is_good(self):
        return self.status == 0


def find_programs(build, names):
    """Returns the test programs of the build directory, or only the given ones."""
    found = sorted(path for directory in DIRECTORIES for path in (build / directory).glob("sluice_*_test"))
    if names:
        found = [path for path in found if any(name in path.name for name in names)]
    if not found:
        sys.exit(f"no test programs below {build}; cmake --build --preset release --target all_tests")
    return found


def build_initrd(kernel, programs, scratch):
    root = scratch / "root"
    machine.make_root(root, HERE / "older_kernels.init")
    machine.compile_static(HERE / "deny_io_uring.c", root / "bin" / "deny_io_uring")
    machine.copy_programs(programs, root)
    kernel.copy_modules(MODULES, root)
    return machine.pack(root, scratch / "initrd.gz")


def make_disk(path):
    with path.open("wb") as disk:
        disk.truncate(DISK_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(path)], check=True)
    return path


def number(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def outcomes_of(shown):
    """Returns the result of each program, from the BEGIN and END lines; a program that never ended has status -1."""
    for part in re.split(r"^BEGIN ", shown, flags=re.MULTILINE)[1:]:
        manner, program = part.split(maxsplit=2)[:2]
        end = re.search(rf"^END {manner} {program} (\d+)$", part, re.MULTILINE)
        text = part[:end.start()] if end else part
        ran = number(r"\[==========\] (\d+) tests? from .* ran", text)
        passed = number(r"\[  PASSED  \] (\d+) test", text)
        skipped = number(r"\[  SKIPPED \] (\d+) test", text)
        if ": Skipped\n" in text and skipped == 0:  # by the set-up of the suite; gtest then counts
                                                    # them as passed
            passed, skipped = 0, ran
        yield Outcome(manner, program, int(end[1]) if end else -1, passed, skipped, ran, text)


def report(name, shown, manners, programs):
    """Prints a line for each manner, and the output of failures. Returns whether all succeeded."""
    outcomes = list(outcomes_of(shown))
    version = re.search(r"KERNEL (\S+)", shown)  # after output of the firmware
    if not version or not outcomes:
        print(f"{name}: the machine did not start:\n{shown[-4000:]}")
        return False
    good = True
    for manner in manners:
        if f"ABSENT {manner}" in shown:
            print(f"{version[1]}, io_uring {manner}: this kernel has no such setting")
            continue
        mine = [outcome for outcome in outcomes if outcome.manner == manner]
        failed = [outcome for outcome in mine if not outcome.is_good]
        ran = sum(outcome.ran for outcome in mine)
        passed = sum(outcome.passed for outcome in mine)
        skipped = sum(outcome.skipped for outcome in mine)
        print(f"{version[1]}, io_uring {manner}: {passed} passed, {ran - passed - skipped} failed, {skipped} skipped "
              f"in {len(mine)} of {programs} programs", flush=True)
        for outcome in failed:
            print(f"--- {outcome.program}: status {outcome.status}\n{outcome.text}")
        good = good and not failed and len(mine) == programs
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="a build directory with its tests built; the release build is fastest")
    parser.add_argument("--kernel", action="append", dest="kernels", choices=RELEASES)
    parser.add_argument("--manner", action="append", dest="manners", choices=MANNERS)
    parser.add_argument("--program", action="append", dest="programs", help="part of a test program's name")
    parser.add_argument("--filter", default="", help="as --gtest_filter")
    parser.add_argument("--processors", type=int, default=2)
    parser.add_argument("--show", action="store_true", help="list every test, and print the whole console output")
    options = parser.parse_args()
    manners = options.manners or list(MANNERS)
    build = options.build.resolve()
    programs = find_programs(build, options.programs)
    good = True
    for name in options.kernels or RELEASES:
        try:
            machine.require(TOOLS)
            kernel = machine.Kernel.fetch(served.cache_directory(programs[0]) / f"kernel-{name}",
                                          "linux-image-cloud-amd64", RELEASES[name])
        except machine.Unavailable as why:
            served.skip(f"{name}: {why}")
        with tempfile.TemporaryDirectory(prefix="sluice-kernels-") as directory:
            scratch = pathlib.Path(directory)
            initrd = build_initrd(kernel, programs, scratch)
            settings = {"manners": ",".join(manners), "seconds_each": PROGRAM_SECONDS_MAX, "filter": options.filter,
                        "brief": 0 if options.show else 1}
            disk = f"file={make_disk(scratch / 'disk')},format=raw,if=virtio,cache=unsafe"
            shown = machine.run(kernel, initrd, settings, console=scratch / "console", memory_mib=2048, processor=PROCESSOR, processors=options.processors,
                                seconds_max=PROGRAM_SECONDS_MAX * len(programs) * len(manners), devices=("-drive", disk))
        if options.show:
            print(shown)
        good = report(name, shown, manners, len(programs)) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
