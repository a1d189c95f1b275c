#!/usr/bin/env python3
"""The Linux kernel's vfat as the reference for FAT volumes: names, short names, attributes, sizes, times, contents, labels.

    tests/interop/kernel_vfat.py build/release/tests/interop/fat_probe [--keep DIRECTORY]

The kernel in a virtual machine (as in kernel_client.py) lists volumes of the three types that we filled, and then changes
them; our view of both states must be the same as the kernel's. Skipped (status 77) if qemu, its kernel or a C compiler is
not available. One boot, about half a minute.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import machine

HERE = pathlib.Path(__file__).resolve().parent
TYPES = ("12", "16", "32")
BOOT_SECONDS_MAX = 220
MODULES = ("virtio_pci", "virtio_blk", "nls_cp437", "nls_ascii", "nls_utf8", "nls_iso8859-1", "vfat")
# Half of a surrogate pair, which Linux omits from a name in UTF-8.
LONE = "eda0bd"


def probe(program, *arguments):
    """Returns the output of fat_probe; raises if it failed."""
    return subprocess.run([str(program), *map(str, arguments)], check=True, capture_output=True, text=True,
                          errors="replace").stdout


def entries(shown):
    """Returns a map from path to the rest of the line, both in hexadecimal and as printed."""
    found = re.findall(r"^entry (\S+) (.*)$", shown, re.MULTILINE)
    return {path.replace(LONE, ""): behind for path, behind in found}


def differences(title, ours, kernels):
    """Returns lines that describe the differences between the two listings."""
    found = []
    for path in sorted(ours.keys() | kernels.keys()):
        if ours.get(path) != kernels.get(path):
            name = bytes.fromhex(path).decode(errors="backslashreplace")
            found.append(f"{title}: {name}\n    ours:   {ours.get(path)}\n    Linux': {kernels.get(path)}")
    return found


def build_initrd(kernel, scratch):
    root = scratch / "root"
    machine.make_root(root, HERE / "kernel_vfat.init")
    machine.compile_static(HERE / "kernel_vfat_tool.c", root / "bin" / "kernel_vfat_tool")
    kernel.copy_modules(MODULES, root)
    return machine.pack(root, scratch / "initrd.gz")


def check_volume(program, title, image, before, section):
    """Returns lines about the problems of one volume; `section` is the part of the machine's console about it."""
    first, _, second = section.partition("after\n")
    wrong = re.findall(r"^FAILED: .*$", section, re.MULTILINE)
    wrong += differences(f"{title}, made by us", entries(before), entries(first))
    if subprocess.run([str(program), "check", str(image)], capture_output=True).returncode != 0:
        wrong.append(f"{title}: the volume is damaged after the changes by Linux:\n{probe_text(program, image)}")
    after = probe(program, "show", image)
    # Labels are read by the library that mount uses, not by the kernel.
    label = bytes.fromhex(re.search(r"^label (\S+)$", after, re.MULTILINE)[1]).decode()
    seen = subprocess.run(["blkid", "-p", "-s", "LABEL", "-o", "value", str(image)], capture_output=True, text=True)
    if label != "KERNEL TEST" or seen.stdout.strip() != label:
        wrong.append(f"{title}: our label is {label}, that of blkid is {seen.stdout.strip()}")
    if "dirty 1" in after:
        wrong.append(f"{title}: Linux unmounted it, but it is marked dirty for us")
    wrong += differences(f"{title}, made by Linux", entries(after), entries(second))
    if len(entries(second)) < len(entries(first)) + 40:
        wrong.append(f"{title}: Linux did not create the expected entries")
    return wrong


def probe_text(program, image):
    return subprocess.run([str(program), "check", str(image)], capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="the program fat_probe")
    parser.add_argument("--keep", type=pathlib.Path, help="directory for images and console output")
    options = parser.parse_args()
    options.program = options.program.resolve()
    kernel = machine.kernel_for(options.program, {**machine.TOOLS, "blkid": "util-linux"})
    with tempfile.TemporaryDirectory(prefix="sluice-kernel-vfat-") as directory:
        scratch = options.keep or pathlib.Path(directory)
        scratch.mkdir(exist_ok=True)
        images = [scratch / f"fat{bits}.img" for bits in TYPES]
        before = [probe(options.program, "make", image, bits) for image, bits in zip(images, TYPES)]
        disks = [f"vd{letter}" for letter in "abc"]
        devices = [argument for image in images
                   for argument in ("-drive", f"if=virtio,format=raw,file={image}")]
        shown = machine.run(kernel, build_initrd(kernel, scratch), {"volumes": ",".join(disks)},
                            console=scratch / "console", seconds_max=BOOT_SECONDS_MAX, devices=devices)
        sections = dict(re.findall(r"volume (vd.)\n(.*?)^end$", shown, re.MULTILINE | re.DOTALL))
        wrong = [] if "PASSED: all" in shown else ["the machine did not complete its work"]
        if "not properly unmounted" in shown:
            wrong.append("Linux treats a volume of ours as dirty")
        for bits, image, disk, made in zip(TYPES, images, disks, before):
            wrong += check_volume(options.program, f"FAT{bits}", image, made, sections.get(disk, ""))
    if wrong:
        print("\n".join(wrong), f"\nthe machine's console ended:\n{shown[-2000:]}", sep="\n")
        return 1
    print(f"Linux {kernel.version} and we agree on {len(TYPES)} volumes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
