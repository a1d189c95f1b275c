#!/usr/bin/env python3
"""The quotas of a real kernel and file system: `sluice serve --quotas` and Samba's smbcquotas, in a virtual machine.

    tests/interop/kernel_quotas.py build/release [--keep DIRECTORY]

The machine has an ext4 disk with quotas, which kernels of containers and cloud hosts often lack. It also runs the unit
tests of the kernel's quotas. Skipped (status 77) if qemu, its kernel or smbcquotas is not available. One boot.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import machine

HERE = pathlib.Path(__file__).resolve().parent
MODULES = ("virtio_pci", "virtio_blk", "ext4", "crc32c_generic", "quota_v2")
TOOLS = {**machine.TOOLS, **machine.PROGRAM_TOOLS, "mkfs.ext4": "e2fsprogs", "smbcquotas": "smbclient",
         "smbclient": "smbclient"}
PROGRAMS = ("sluice/cli/sluice", "sluice/vfs/sluice_vfs_test")
CHECKS = ("unit", "administrators_set_quotas", "administrators_list_quotas", "administrators_query_by_name", "users_query_their_own",
          "users_cannot_query_others", "users_cannot_set_quotas", "quotas_are_the_size_of_the_volume",
          "quotas_are_enforced", "file_system_flags", "stop")
BOOT_SECONDS_MAX = 280
DISK_BYTES = 64 << 20
PROCESSOR = "max,-cx16"  # as in older_kernels.py


def build_initrd(kernel, build, scratch):
    root = scratch / "root"
    machine.make_root(root, HERE / "kernel_quotas.init")
    clients = (pathlib.Path(shutil.which(name)) for name in ("smbcquotas", "smbclient"))
    machine.copy_programs([*(build / program for program in PROGRAMS), *clients], root)
    kernel.copy_modules(MODULES, root)
    return machine.pack(root, scratch / "initrd.gz")


def make_disk(path):
    with path.open("wb") as disk:
        disk.truncate(DISK_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-O", "quota", str(path)], check=True)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="the build directory")
    parser.add_argument("--keep", type=pathlib.Path, help="directory for the console output")
    options = parser.parse_args()
    build = options.build.resolve()
    kernel = machine.kernel_for(build / PROGRAMS[0], TOOLS)
    with tempfile.TemporaryDirectory(prefix="sluice-kernel-quotas-") as directory:
        scratch = options.keep or pathlib.Path(directory)
        scratch.mkdir(exist_ok=True)
        disk = f"file={make_disk(pathlib.Path(directory) / 'disk')},format=raw,if=virtio,cache=unsafe"
        shown = machine.run(kernel, build_initrd(kernel, build, pathlib.Path(directory)), {},
                            console=scratch / "console", seconds_max=BOOT_SECONDS_MAX, processor=PROCESSOR,
                            processors=2, memory_mib=1536, devices=("-drive", disk))
    missing = [each for each in CHECKS if each not in re.findall(r"PASSED: (\S+)", shown)]
    if missing:
        print(f"failed: {', '.join(missing)}\nthe machine's console:\n{shown}")
        return 1
    print(f"Linux {kernel.version}, ext4: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
