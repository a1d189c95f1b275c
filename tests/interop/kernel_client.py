#!/usr/bin/env python3
"""The Linux kernel's own client (cifs) against `sluice serve`: a virtual machine mounts the share and works on it.

    tests/interop/kernel_client.py build/release/sluice/cli/sluice [--multiplexer epoll] [--mount vers=3.1.1,seal]

The machine is qemu without KVM, its kernel Debian's package, fetched into the build folder once; server and machine
have a network namespace of their own. Skipped (status 77) where one of those cannot be had; needs root. One boot per
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
BOOT_SECONDS_MAX = 220  # 40 on a machine that does nothing else
# The kernel's client asks for these by name only once it mounts, when modprobe in the machine finds them.
MODULES = ("virtio_pci", "virtio_net", "af_packet", "cifs", "ccm", "gcm", "ctr", "cmac", "ghash_generic", "aesni_intel",
           "ecb", "sha512_generic", "md5", "hmac", "nls_utf8", "libarc4")
TOOLS = {**machine.TOOLS, "unshare": "util-linux", "ip": "iproute2"}
# The address at which qemu's user network shows its host; put on lo, so that server and client agree on it.
HOST_ADDRESS = "10.0.2.2"


def build_initrd(kernel, cache, scratch):
    """A file system of busybox, the modules and random_operations, with kernel_client.init as the first process."""
    root = scratch / "root"
    machine.make_root(root, HERE / "kernel_client.init")
    operations = cache / "random_operations"
    machine.compile_static(HERE / "random_operations.c", operations)
    shutil.copy(operations, root / "bin")
    kernel.copy_modules(MODULES, root)
    return machine.pack(root, scratch / "initrd.gz")


def run_machine(kernel, initrd, folder, mounts, operations, seed):
    """What the machine's console showed."""
    settings = {"mounts": ";".join(mounts), "server": HOST_ADDRESS, "user": served.USER, "password": served.PASSWORD,
                "operations": operations, "seed": seed}
    return machine.run(kernel, initrd, settings, console=folder / "console", seconds_max=BOOT_SECONDS_MAX,
                       devices=("-nic", "user,model=virtio-net-pci"))


def check(options, multiplexer, kernel, initrd, scratch):
    """True if every mount passed."""
    folder = scratch / multiplexer
    folder.mkdir()
    wanted = scratch / "wanted"
    if not wanted.exists():
        served.make_tree(wanted, sizes=(0, 1, 511, 4096, 65_535, 65_537, 1_048_577))
    shutil.copytree(wanted, folder / "tree")
    # qemu hands on to 127.0.0.1 what the machine sends to HOST_ADDRESS.
    with served.Server(options.program, folder, multiplexer, options.server_argument, port=445,
                       listen="0.0.0.0") as server:
        shown = run_machine(kernel, initrd, folder, options.mounts, options.operations, options.seed)
        tail = server.log_tail()
    passed = re.findall(r"PASSED: (\S+)", shown)  # the first stands behind what the firmware wrote
    missing = [mount for mount in options.mounts if mount not in passed]
    for number, mount in enumerate(options.mounts):
        copied = folder / f"copy-{number}"
        if mount in passed and served.tree_of(copied) != served.tree_of(wanted):
            print(f"{multiplexer}: {mount}: the tree the machine copied differs from the one it was given")
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
    """Starts this program again in a network namespace of its own, where port 445 is free and no package is to be had."""
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
    parser.add_argument("--server-argument", action="append", default=[], help="a further argument of sluice serve")
    options = parser.parse_args()
    options.mounts = options.mounts or list(MOUNTS)
    options.program = options.program.resolve()
    try:
        machine.require(TOOLS)
        cache = served.cache_folder(options.program)
        kernel = machine.Kernel.fetch(cache / "kernel")
    except machine.Unavailable as why:
        served.skip(str(why))
    if os.geteuid() != 0:
        served.skip("needs root, for a network namespace and port 445")
    if not os.environ.get("SLUICE_KERNEL_CLIENT_NAMESPACE"):
        if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode != 0:
            served.skip("no network namespace can be made here")
        enter_namespace(cache)
    with tempfile.TemporaryDirectory(prefix="sluice-kernel-client-") as folder:
        scratch = pathlib.Path(folder)
        initrd = build_initrd(kernel, cache, scratch)
        results = [check(options, multiplexer, kernel, initrd, scratch)
                   for multiplexer in options.multiplexers or served.MULTIPLEXERS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
