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

import served

HERE = pathlib.Path(__file__).resolve().parent
MOUNTS = ("vers=3.1.1", "vers=3.1.1,seal", "vers=3.0", "vers=2.1", "vers=3.1.1,cache=none")
BOOT_SECONDS_MAX = 220  # 40 on a machine that does nothing else
# The kernel's client asks for these by name only once it mounts, when modprobe in the machine finds them.
MODULES = ("virtio_pci", "virtio_net", "af_packet", "cifs", "ccm", "gcm", "ctr", "cmac", "ghash_generic", "aesni_intel",
           "ecb", "sha512_generic", "md5", "hmac", "nls_utf8", "libarc4")
# Program -> the Debian package that has it.
TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "depmod": "kmod", "modprobe": "kmod",
         "cpio": "cpio", "unxz": "xz-utils", "gcc": "gcc libc6-dev", "unshare": "util-linux", "ip": "iproute2",
         "dpkg": "dpkg", "apt-get": "apt"}
# The address at which qemu's user network shows its host; put on lo, so that server and client agree on it.
HOST_ADDRESS = "10.0.2.2"


def fetch_kernel(cache):
    """The unpacked package of Debian's default kernel, and its version."""
    for found in sorted(cache.glob("kernel/boot/vmlinuz-*")):
        return cache / "kernel", found.name.removeprefix("vmlinuz-")
    try:
        depends = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True,
                                 check=True).stdout
        package = next(line.split()[1] for line in depends.splitlines() if "Depends: linux-image-" in line)
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            subprocess.run(["apt-get", "download", package], cwd=folder, check=True, capture_output=True, timeout=200)
            archive = next(pathlib.Path(folder).glob("*.deb"))
            unpacked = cache / "kernel.part"
            shutil.rmtree(unpacked, ignore_errors=True)
            subprocess.run(["dpkg", "-x", str(archive), str(unpacked)], check=True)
            unpacked.rename(cache / "kernel")
    except (subprocess.SubprocessError, OSError, StopIteration) as wrong:
        served.skip(f"Debian's kernel package cannot be had: {wrong}")
    return fetch_kernel(cache)


def copy_modules(kernel, version, root):
    """The modules and what they depend on, uncompressed, and the index modprobe needs."""
    subprocess.run(["depmod", "-b", str(kernel), version], check=True)
    for module in MODULES:
        shown = subprocess.run(["modprobe", "-d", str(kernel), "-S", version, "--show-depends", module],
                               capture_output=True, text=True, check=False).stdout
        for line in shown.splitlines():
            if not line.startswith("insmod "):
                continue
            source = pathlib.Path(line.split()[1])
            target = root / source.relative_to(kernel)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
            if target.suffix == ".xz":
                subprocess.run(["unxz", "--force", str(target)], check=True)
    modules = root / "lib" / "modules" / version
    for index in (kernel / "lib" / "modules" / version).glob("modules.*"):
        shutil.copy(index, modules)
    subprocess.run(["depmod", "-b", str(root), version], check=True)


def build_initrd(kernel, version, cache, scratch):
    """A file system of busybox, the modules and random_operations, with kernel_client.init as the first process."""
    root = scratch / "root"
    for folder in ("bin", "proc", "sys", "dev", "mnt", "tmp"):
        (root / folder).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin" / "busybox")
    shutil.copy(HERE / "kernel_client.init", root / "init")
    (root / "init").chmod(0o755)
    operations = cache / "random_operations"
    subprocess.run(["gcc", "-O1", "-static", "-Wall", "-Wextra", "-o", str(operations),
                    str(HERE / "random_operations.c")], check=True)
    shutil.copy(operations, root / "bin")
    copy_modules(kernel, version, root)
    initrd = scratch / "initrd.gz"
    subprocess.run("find . | cpio --quiet -o -H newc | gzip -1 > ../initrd.gz", shell=True, cwd=root, check=True)
    return initrd


def run_machine(kernel, version, initrd, mounts, operations, seed):
    """What the machine's console showed."""
    settings = [f"mounts={';'.join(mounts)}", f"server={HOST_ADDRESS}", f"user={served.USER}",
                f"password={served.PASSWORD}", f"operations={operations}", f"seed={seed}"]
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "768", "-smp", "1",
               "-nographic", "-no-reboot", "-kernel", str(kernel / "boot" / f"vmlinuz-{version}"),
               "-initrd", str(initrd), "-append", " ".join(["console=ttyS0 quiet panic=-1", *settings]),
               "-nic", "user,model=virtio-net-pci"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=BOOT_SECONDS_MAX)
        return done.stdout.decode(errors="replace").replace("\r", "")
    except subprocess.TimeoutExpired as late:
        shown = (late.stdout or b"").decode(errors="replace").replace("\r", "")
        return f"{shown}\nFAILED: the machine did not end within {BOOT_SECONDS_MAX} s"


def check(options, multiplexer, kernel, version, initrd, scratch):
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
        shown = run_machine(kernel, version, initrd, options.mounts, options.operations, options.seed)
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
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        packages = " ".join(dict.fromkeys(TOOLS[tool] for tool in missing))
        served.skip(f"not installed: {', '.join(missing)}; apt-get install --no-install-recommends {packages}")
    # A program that needs libraries names its loader right behind the ELF headers.
    if b"/ld-linux" in pathlib.Path(shutil.which("busybox")).read_bytes()[:4096]:
        served.skip("busybox needs libraries that the machine will not have; apt-get install busybox-static")
    if os.geteuid() != 0:
        served.skip("needs root, for a network namespace and port 445")
    cache = served.cache_folder(options.program)
    kernel, version = fetch_kernel(cache)
    if not os.environ.get("SLUICE_KERNEL_CLIENT_NAMESPACE"):
        if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode != 0:
            served.skip("no network namespace can be made here")
        enter_namespace(cache)
    with tempfile.TemporaryDirectory(prefix="sluice-kernel-client-") as folder:
        scratch = pathlib.Path(folder)
        initrd = build_initrd(kernel, version, cache, scratch)
        results = [check(options, multiplexer, kernel, version, initrd, scratch)
                   for multiplexer in options.multiplexers or served.MULTIPLEXERS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
