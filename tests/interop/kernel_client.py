#!/usr/bin/env python3
"""The Linux kernel's own client (cifs) against `sluice serve`: a virtual machine mounts the share and works on it.

    tests/interop/kernel_client.py build/release/sluice/cli/sluice [--multiplexer epoll] [--mount vers=3.1.1,seal]

The machine is qemu without KVM, with Debian's kernel package, downloaded into the build directory once; server and machine
have their own network namespace. Skipped (status 77) if one of them is not available; requires root. One boot per
multiplexer, and about a minute each.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import machine
import served

HERE = pathlib.Path(__file__).resolve().parent
MOUNTS = ("vers=3.1.1", "vers=3.1.1,seal", "vers=3.0", "vers=2.1", "vers=3.1.1,cache=none",
          "vers=3.1.1,multichannel,max_channels=4")
BOOT_SECONDS_MAX = 220  # 40 on an otherwise idle machine
# The kernel's client requests these by name only when it mounts; then modprobe in the machine finds
# them.
MODULES = ("virtio_pci", "virtio_net", "af_packet", "cifs", "ccm", "gcm", "ctr", "cmac", "ghash_generic", "aesni_intel",
           "ecb", "sha512_generic", "md5", "hmac", "nls_utf8", "libarc4")
TOOLS = {**machine.TOOLS, "unshare": "util-linux", "ip": "iproute2"}
# The address of the host in qemu's user network; it is added to lo, so that server and client use
# the same address.
HOST_ADDRESS = "10.0.2.2"


def build_initrd(kernel, cache, scratch):
    """Creates a file system of busybox, the modules and random_operations, with kernel_client.init as the first process."""
    root = scratch / "root"
    machine.make_root(root, HERE / "kernel_client.init")
    operations = cache / "random_operations"
    machine.compile_static(HERE / "random_operations.c", operations)
    shutil.copy(operations, root / "bin")
    kernel.copy_modules(MODULES, root)
    return machine.pack(root, scratch / "initrd.gz")


def run_machine(kernel, initrd, directory, mounts, operations, seed):
    """Returns the output of the machine's console."""
    settings = {"mounts": ";".join(mounts), "server": HOST_ADDRESS, "user": served.USER, "password": served.PASSWORD,
                "operations": operations, "seed": seed}
    return machine.run(kernel, initrd, settings, console=directory / "console", seconds_max=BOOT_SECONDS_MAX,
                       devices=("-nic", "user,model=virtio-net-pci"))


def check(options, multiplexer, kernel, initrd, scratch):
    """Returns whether every mount passed."""
    directory = scratch / multiplexer
    directory.mkdir()
    wanted = scratch / "wanted"
    if not wanted.exists():
        served.make_tree(wanted, sizes=(0, 1, 511, 4096, 65_535, 65_537, 1_048_577))
    shutil.copytree(wanted, directory / "tree")
    # qemu forwards connections of the machine to HOST_ADDRESS to 127.0.0.1.
    with served.Server(options.program, directory, multiplexer, options.server_argument, port=445,
                       listen="0.0.0.0") as server:
        shown = run_machine(kernel, initrd, directory, options.mounts, options.operations, options.seed)
        tail = server.log_tail()
    passed = re.findall(r"PASSED: (\S+)", shown)  # the first one comes after output of the firmware
    missing = [mount for mount in options.mounts if mount not in passed]
    for number, mount in enumerate(options.mounts):
        copied = directory / f"copy-{number}"
        if mount in passed and served.tree_of(copied) != served.tree_of(wanted):
            print(f"{multiplexer}: {mount}: the tree that the machine copied differs from the original")
            missing.append(mount)
        elif mount in passed:
            print(f"{multiplexer}: {mount}: passed", flush=True)
    if missing:
        print(f"{multiplexer}: failed: {', '.join(missing)}\nthe machine's console:\n{shown}\nthe server's log ends:\n{tail}")
        for mount in missing:
            print(f"again: {HERE / 'kernel_client.py'} {options.program} --multiplexer {multiplexer} --mount {mount} "
                  f"--seed {options.seed}")
    return not missing


def enter_namespace(cache):
    """Restarts this program in its own network namespace, where port 445 is free and packages cannot be downloaded."""
    os.environ["SLUICE_INTEROP_CACHE"] = str(cache)
    os.environ["SLUICE_KERNEL_CLIENT_NAMESPACE"] = "1"
    script = f"ip link set lo up && ip addr add {HOST_ADDRESS}/32 dev lo && exec \"$@\""
    os.execvp("unshare", ["unshare", "--net", "sh", "-c", script, "sh", sys.executable, "-B", *sys.argv])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="the sluice program")
    parser.add_argument("--multiplexer", action="append", dest="multiplexers", choices=served.MULTIPLEXERS)
    parser.add_argument("--mount", action="append", dest="mounts", help="mount options; default: " + "  ".join(MOUNTS))
    parser.add_argument("--operations", type=int, default=300, help="random operations per mount")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server-argument", action="append", default=[], help="additional argument of sluice serve")
    options = parser.parse_args()
    options.mounts = options.mounts or list(MOUNTS)
    options.program = options.program.resolve()
    kernel = machine.kernel_for(options.program, TOOLS)
    cache = served.cache_directory(options.program)
    if os.geteuid() != 0:
        served.skip("requires root, for a network namespace and port 445")
    if not os.environ.get("SLUICE_KERNEL_CLIENT_NAMESPACE"):
        if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode != 0:
            served.skip("cannot create a network namespace")
        enter_namespace(cache)
    with tempfile.TemporaryDirectory(prefix="sluice-kernel-client-") as directory:
        scratch = pathlib.Path(directory)
        initrd = build_initrd(kernel, cache, scratch)
        results = [check(options, multiplexer, kernel, initrd, scratch)
                   for multiplexer in options.multiplexers or served.MULTIPLEXERS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
