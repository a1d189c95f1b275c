#!/usr/bin/env python3
"""Mutual exclusion between hosts that share a volume by NFS: the algorithms of fsmutex on two mounts of one export.

    tests/interop/kernel_nfs.py build/release [--version 4.1] [--storm SECONDS] [--keep DIRECTORY]

In a virtual machine (as in kernel_client.py) Linux' NFS server exports a directory, and two hosts, which are two network
namespaces with an NFS client each, mount it. The tests of the contract of every mutex and the kill storm run with half
of the processes on each host; then one host loses its connection while it holds locks. Skipped (status 77) if qemu or
its kernel is not available. One boot, about a minute.
"""

import argparse
import pathlib
import re
import sys
import tempfile

import machine

HERE = pathlib.Path(__file__).resolve().parent
MODULES = ("nfsd", "nfsv4", "veth")
TOOLS = {**machine.TOOLS, **machine.PROGRAM_TOOLS, "ip": "iproute2"}
PROGRAMS = ("sluice/cli/sluice", "sluice/fsmutex/sluice_fsmutex_conformance_test", "sluice/fsmutex/sluice_fsmutex_storm_test")
TRIED = ("two_clients", "reason", "no_mapping", "conformance", "storm", "host_gone", "host_gone_untold")
BOOT_SECONDS_MAX = 280  # 70 on an otherwise idle machine


def build_initrd(kernel, build, scratch):
    root = scratch / "root"
    machine.make_root(root, HERE / "kernel_nfs.init")
    machine.copy_programs([*(build / program for program in PROGRAMS), pathlib.Path(machine.shutil.which("ip"))], root)
    kernel.copy_modules(MODULES, root)
    return machine.pack(root, scratch / "initrd.gz")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="the build directory")
    parser.add_argument("--version", default="4.2", help="NFS version: 4.1 or 4.2")
    parser.add_argument("--storm", type=int, default=1, help="seconds per algorithm")
    parser.add_argument("--keep", type=pathlib.Path, help="directory for the console output")
    options = parser.parse_args()
    build = options.build.resolve()
    kernel = machine.kernel_for(build / PROGRAMS[0], TOOLS)
    with tempfile.TemporaryDirectory(prefix="sluice-kernel-nfs-") as directory:
        scratch = options.keep or pathlib.Path(directory)
        scratch.mkdir(exist_ok=True)
        shown = machine.run(kernel, build_initrd(kernel, build, pathlib.Path(directory)),
                            {"version": options.version, "storm": options.storm}, console=scratch / "console",
                            seconds_max=BOOT_SECONDS_MAX + 3 * options.storm, processors=2, memory_mib=1024)
    missing = [each for each in TRIED if each not in re.findall(r"PASSED: (\S+)", shown)]
    if missing:
        shown = "\n".join(line for line in shown.splitlines() if not re.search(r"\[ +(OK|RUN) +\]", line))
        print(f"failed: {', '.join(missing)}\nthe machine's console:\n{shown}")
        return 1
    print(f"Linux {kernel.version}, NFS {options.version}: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
