#!/usr/bin/env python3
"""Prints the rows of NFS and 9p in docs/benchmarks/atomicity.md: `sluice probe atomicity` in a virtual machine.

    bench/atomicity_vm.py build/release [--volume nfs4.2-ext4] [--time 500] > rows.jsonl

The machine is that of tests/interop: qemu without KVM, a Debian kernel, two CPUs. NFS is mounted from a server in the
machine itself; 9p is a directory of this host, shared by virtio. One boot for each volume, about two minutes. Prints a line
for each run of the probe, and the mount options on standard error. Needs qemu-system-x86 busybox-static kmod cpio
e2fsprogs and gcc.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "interop"))
import machine  # noqa: E402  (found through the line above)

# The protocol, and the exported file system or the client's cache mode.
VOLUMES = ("nfs4.2-ext4", "nfs4.2-tmpfs", "nfs3-ext4", "nfs3-tmpfs", "9p-none", "9p-loose")
MODULES = ("virtio_pci", "virtio_blk", "ext4", "crc32c_generic", "nfsd", "nfsv3", "nfsv4", "9pnet_virtio", "9p")
TOOLS = {**machine.TOOLS, **machine.PROGRAM_TOOLS, "mkfs.ext4": "e2fsprogs"}
SIZES_MAX = 200  # of the three runs together
DISK_BYTES = 1 << 30


def build_initrd(kernel, program, scratch):
    root = scratch / "root"
    machine.make_root(root, HERE / "atomicity_vm.init")
    machine.compile_static(HERE / "atomicity_vm_nfs3.c", root / "bin" / "atomicity_vm_nfs3")
    machine.copy_programs([program], root)
    kernel.copy_modules(MODULES, root)
    return machine.pack(root, scratch / "initrd.gz")


def devices_of(scratch, shared):
    disk = scratch / "disk"
    with disk.open("wb") as image:
        image.truncate(DISK_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(disk)], check=True)
    return ("-drive", f"file={disk},format=raw,if=virtio,cache=unsafe",
            "-fsdev", f"local,id=host,path={shared},security_model=none",
            "-device", "virtio-9p-pci,fsdev=host,mount_tag=share")


def rows_of(volume, shown):
    """Returns the output of the probe, a dictionary for each run."""
    for arguments, text, status in re.findall(r"^BEGIN ?([^\n]*)\n(.*?)^END (\d+)$", shown, re.MULTILINE | re.DOTALL):
        if status != "0":
            print(f"{volume}: sluice probe atomicity {arguments}: status {status}: {text}", file=sys.stderr)
            continue
        yield {**json.loads(text), "path": volume}


def measure(volume, kernel, initrd, options):
    """Boots for one volume, and prints its rows. Returns whether it has the expected number of rows."""
    with tempfile.TemporaryDirectory(prefix="sluice-atomicity-", dir=options.share) as directory:
        scratch = pathlib.Path(directory)
        shared = scratch / "shared"
        shared.mkdir()
        shown = machine.run(kernel, initrd, {"volume": volume, "milliseconds": options.time, "max": options.max},
                            console=scratch / "console", processors=2, memory_mib=3072,
                            seconds_max=120 + 3 * SIZES_MAX * options.time // 1000, devices=devices_of(scratch, shared))
    print(*re.findall(r"MOUNTED .*", shown), sep="\n", file=sys.stderr)
    rows = list(rows_of(volume, shown))
    for row in rows:
        print(json.dumps(row), flush=True)
    if len(rows) != 3:
        print(f"{volume}: {len(rows)} of 3 runs ended; the console's end:\n{shown[-3000:]}", file=sys.stderr)
    return len(rows) == 3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="the build directory")
    parser.add_argument("--volume", action="append", dest="volumes", choices=VOLUMES, help="volume to measure (repeatable) [default: all]")
    parser.add_argument("--time", type=int, default=500, help="milliseconds for each size [default: 500]")
    parser.add_argument("--max", type=int, default=64 << 20, help="the largest write, in bytes [default: 64 MiB]")
    parser.add_argument("--share", type=pathlib.Path, help="directory for the share of 9p [default: $TMPDIR]")
    options = parser.parse_args()
    program = options.build.resolve() / "sluice" / "cli" / "sluice"
    kernel = machine.kernel_for(program, TOOLS)
    with tempfile.TemporaryDirectory(prefix="sluice-atomicity-") as directory:
        initrd = build_initrd(kernel, program, pathlib.Path(directory))
        done = [measure(volume, kernel, initrd, options) for volume in options.volumes or VOLUMES]
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
