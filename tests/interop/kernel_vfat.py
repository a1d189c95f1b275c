#!/usr/bin/env python3
"""The Linux kernel's vfat as the judge of FAT volumes: names, short names, attributes, sizes, times, contents, labels.

    tests/interop/kernel_vfat.py build/release/tests/interop/fat_probe [--keep FOLDER]

Volumes of the three types that we filled are listed by the kernel in a virtual machine (as in kernel_client.py), which
then works on them; what it sees of both has to be what we see. Skipped (status 77) where qemu, its kernel or a C
compiler cannot be had. One boot, about half a minute.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import machine
import served

HERE = pathlib.Path(__file__).resolve().parent
TYPES = ("12", "16", "32")
BOOT_SECONDS_MAX = 220
MODULES = ("virtio_pci", "virtio_blk", "nls_cp437", "nls_ascii", "nls_utf8", "nls_iso8859-1", "vfat")
# Half of a surrogate pair, which Linux leaves out of a name in UTF-8.
LONE = "eda0bd"


def probe(program, *arguments):
    """What fat_probe printed; raises if it failed."""
    return subprocess.run([str(program), *map(str, arguments)], check=True, capture_output=True, text=True,
                          errors="replace").stdout


def entries(shown):
    """Path -> what stands behind it in the line, both in hexadecimal and as printed."""
    found = re.findall(r"^entry (\S+) (.*)$", shown, re.MULTILINE)
    return {path.replace(LONE, ""): behind for path, behind in found}


def differences(title, ours, kernels):
    """Lines that say where the two listings differ."""
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
    """Lines about what is wrong with one volume; `section` is what the machine's console showed of it."""
    first, _, second = section.partition("after\n")
    wrong = re.findall(r"^FAILED: .*$", section, re.MULTILINE)
    wrong += differences(f"{title}, made by us", entries(before), entries(first))
    if subprocess.run([str(program), "check", str(image)], capture_output=True).returncode != 0:
        wrong.append(f"{title}: what Linux left is not sound:\n{probe_text(program, image)}")
    after = probe(program, "show", image)
    # The kernel has no say in labels, the library that mount asks has.
    label = bytes.fromhex(re.search(r"^label (\S+)$", after, re.MULTILINE)[1]).decode()
    seen = subprocess.run(["blkid", "-p", "-s", "LABEL", "-o", "value", str(image)], capture_output=True, text=True)
    if label != "KERNEL TEST" or seen.stdout.strip() != label:
        wrong.append(f"{title}: the label is {label} to us and {seen.stdout.strip()} to blkid")
    if "dirty 1" in after:
        wrong.append(f"{title}: Linux unmounted it, and we take it for dirty")
    wrong += differences(f"{title}, made by Linux", entries(after), entries(second))
    if len(entries(second)) < len(entries(first)) + 40:
        wrong.append(f"{title}: Linux did not make what it should")
    return wrong


def probe_text(program, image):
    return subprocess.run([str(program), "check", str(image)], capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="the program fat_probe")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder to leave images and console in")
    options = parser.parse_args()
    options.program = options.program.resolve()
    try:
        machine.require({**machine.TOOLS, "blkid": "util-linux"})
        kernel = machine.Kernel.fetch(served.cache_folder(options.program) / "kernel")
    except machine.Unavailable as why:
        served.skip(str(why))
    with tempfile.TemporaryDirectory(prefix="sluice-kernel-vfat-") as folder:
        scratch = options.keep or pathlib.Path(folder)
        scratch.mkdir(exist_ok=True)
        images = [scratch / f"fat{bits}.img" for bits in TYPES]
        before = [probe(options.program, "make", image, bits) for image, bits in zip(images, TYPES)]
        disks = [f"vd{letter}" for letter in "abc"]
        devices = [argument for image in images
                   for argument in ("-drive", f"if=virtio,format=raw,file={image}")]
        shown = machine.run(kernel, build_initrd(kernel, scratch), {"volumes": ",".join(disks)},
                            console=scratch / "console", seconds_max=BOOT_SECONDS_MAX, devices=devices)
        sections = dict(re.findall(r"volume (vd.)\n(.*?)^end$", shown, re.MULTILINE | re.DOTALL))
        wrong = [] if "PASSED: all" in shown else ["the machine did not come to its end"]
        if "not properly unmounted" in shown:
            wrong.append("Linux takes a volume of ours for dirty")
        for bits, image, disk, made in zip(TYPES, images, disks, before):
            wrong += check_volume(options.program, f"FAT{bits}", image, made, sections.get(disk, ""))
    if wrong:
        print("\n".join(wrong), f"\nthe machine's console ended:\n{shown[-2000:]}", sep="\n")
        return 1
    print(f"Linux {kernel.version} and we agree on {len(TYPES)} volumes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
