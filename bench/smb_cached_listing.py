#!/usr/bin/env python3
"""The requests of the Linux kernel's client (cifs) for listing a directory and opening its files again, with and without
leases of directories: a virtual machine mounts the share of one `sluice serve` with each setting.

    bench/smb_cached_listing.py build/release/sluice/cli/sluice [--files 50] [--repeats 5] [--release trixie]

One row of JSON per setting and action on standard output: the median number of requests, as the client counts them in
/proc/fs/cifs/Stats, and its extremes. The actions are `ls -l` of the directory, and `cat` of each of its files. Before each
repetition, the client's attributes expire. The client keeps closed files for 60 s (closetimeo=60) if the server grants a lease of
their handle. The machine is qemu without KVM, with the kernel package of a Debian release, which is downloaded once
(SLUICE_INTEROP_CACHE names the directory).
"""

import argparse
import json
import pathlib
import re
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "interop"))
import kernel_client  # noqa: E402  (found through the line above)
import machine  # noqa: E402
import served  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ACTIONS = ("first_listing", "listing_again", "first_reads", "reads_again")
SECONDS_MAX = 600


def build_initrd(kernel, scratch):
    root = scratch / "root"
    machine.make_root(root, HERE / "smb_cached_listing.init")
    kernel.copy_modules(kernel_client.MODULES, root)
    return machine.pack(root, scratch / "initrd.gz")


def measure(options, setting, kernel, initrd, scratch):
    """Returns action -> list of requests."""
    tree = scratch / f"leases-{setting}"
    (tree / "directory").mkdir(parents=True)
    for number in range(options.files):
        (tree / "directory" / f"file-{number}").write_text("content")
    with served.Server(options.program, tree, arguments=["--directory-leases", setting]) as server:
        shown = machine.run(kernel, initrd, {"server": kernel_client.HOST_ADDRESS, "port": server.port, "user": served.USER,
                                             "password": served.PASSWORD, "files": options.files,
                                             "repeats": options.repeats},
                            console=scratch / f"console-{setting}", seconds_max=SECONDS_MAX,
                            devices=("-nic", "user,model=virtio-net-pci"))
    rows = re.findall(r"ROW: (\w+) (\d+)", shown)
    if "FAILED" in shown or {action for action, _ in rows} != set(ACTIONS):
        sys.exit(f"the machine did not measure everything; its console:\n{shown}")
    return {action: [int(count) for name, count in rows if name == action] for action in ACTIONS}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="the sluice program")
    parser.add_argument("--files", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--release", default="trixie", help="the Debian release of the kernel")
    options = parser.parse_args()
    options.program = options.program.resolve()
    kernel = machine.kernel_for(options.program, name=f"kernel-{options.release}", release=options.release)
    with tempfile.TemporaryDirectory(prefix="sluice-cached-listing-") as directory:
        scratch = pathlib.Path(directory)
        initrd = build_initrd(kernel, scratch)
        for setting in ("off", "on"):
            for action, counts in measure(options, setting, kernel, initrd, scratch).items():
                print(json.dumps({"bench": "smb_cached_listing", "directory_leases": setting, "action": action,
                                  "metric": "requests", "better": "lower", "median": statistics.median(counts),
                                  "min": min(counts), "max": max(counts), "n": len(counts), "files": options.files,
                                  "kernel": kernel.version}), flush=True)


if __name__ == "__main__":
    main()
