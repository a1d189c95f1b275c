#!/usr/bin/env python3
"""Measures how long it takes to copy a directory of many small files out of a FAT image, and into it: `sluice fat get` and
mcopy, `sluice fat put`, alternately.

    bench/fat_tree.py build/release/sluice/cli/sluice [--quick] [--only get] [--directory /dev/shm --directory /var/tmp]
                      [--repeats 9] [--before PROGRAM] [--calls build/release/bench/tools/fat_tree_calls]

A directory of 10,000 files of 1 to 4,096 bytes, in a sparse image of 32 GiB that also has a file of 1 GiB after them, so
that the data of the image is one long run. mcopy (mtools) copies with -m, so that both keep the times of files. mcopy has
no row for put: its time per name grows with the number of names. One row of JSON per workload and subject on standard
output; ratio_to_mcopy and ratio_to_before are the medians of the ratios of neighbouring runs, with their extremes. A ratio
of 0.5 is half the time. With --calls there are rows for the bare system calls that create the files, on two threads and
without an image to read: a lower bound for any copy.

Each copy goes to a new directory. On tmpfs it is removed before the next one, so that all have the same memory. Elsewhere it
is removed at the end, because ext4 spends more on new files for minutes after files were removed.
"""

import argparse
import json
import mmap
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

IMAGE_BYTES = "32g"
OTHER_DATA = "1g"
FILES = 10_000
COPY_BYTES = 100 << 20  # exceeds the memory of a copy, with its inodes


def run(*command):
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)


class Directory:
    """A directory of the host on one file system, with the image and the copies."""

    def __init__(self, program, directory, files):
        self.path = directory
        self.image = directory / "disk.img"
        self.source = directory / "source"
        self.copies = 0
        self.source.mkdir()
        generator = random.Random(1)
        for number in range(files):
            (self.source / f"small file number {number:05}.txt").write_bytes(
                generator.randbytes(generator.randint(1, 4096)))
        run(program, "fat", "mkfs", "--size", IMAGE_BYTES, self.image)
        run(program, "fat", "put", self.source, f"{self.image}:/")
        run(program, "fat", "mkfile", "--size", OTHER_DATA, f"{self.image}:/other")
        with open(self.image, "r+b") as image:  # the zeros of the file become data of the image
            end = max(self.data_end(image.fileno()), 1)
            for offset in range(end // (1 << 20) << 20, end + (1 << 30), 1 << 20):
                block = os.pread(image.fileno(), 1 << 20, offset)
                os.pwrite(image.fileno(), block, offset)

    @staticmethod
    def data_end(descriptor):
        end = 0
        while True:
            try:
                end = os.lseek(descriptor, os.lseek(descriptor, end, os.SEEK_DATA), os.SEEK_HOLE)
            except OSError:  # no more data
                return end

    def new_copy(self):
        self.copies += 1
        made = self.path / f"copy-{self.copies}"
        made.mkdir()
        return made


def get_with(program):
    def work(directory, target):
        run(program, "fat", "get", f"{directory.image}:/source", target)
    return work


def mcopy_get(directory, target):
    run("mcopy", "-s", "-m", "-i", directory.image, "::/source", target)


def bare_calls(program):
    def work(directory, target):
        done = subprocess.run([program, directory.source, target / "source", "2"], check=True, capture_output=True, text=True)
        return float(done.stdout)
    return work


def put_with(program):
    def work(directory, target):
        run(program, "fat", "put", directory.source, f"{target / 'disk.img'}:/")
    return work


def prepare_put(program, target):
    run(program, "fat", "mkfs", "--size", "1g", target / "disk.img")


def workloads(options):
    get = {"sluice": get_with(options.program)}
    put = {"sluice": put_with(options.program)}
    if shutil.which("mcopy"):
        get["mcopy"] = mcopy_get
    else:
        print("fat_tree: mcopy is not installed (Debian package mtools): skipping it", file=sys.stderr)
    if options.calls:
        get["calls"] = bare_calls(options.calls)
    if options.before:
        get["before"] = get_with(options.before)
        put["before"] = put_with(options.before)
    return {"get": get, "put": put}


def touch_memory(total):
    """Touches memory once, because unused memory of a virtual machine is slow on first use."""
    with mmap.mmap(-1, total) as memory:
        for offset in range(0, total, mmap.PAGESIZE):
            memory[offset] = 1


def measure(options, directory, workload, subjects):
    seconds = {name: [] for name in subjects}
    names = list(subjects)
    is_in_memory = file_system_of(directory.path) == "tmpfs"
    touch_memory(COPY_BYTES * (1 if is_in_memory else (options.repeats + 1) * len(names)) * options.files // FILES)
    for repeat in range(options.repeats + 1):
        for name in names if repeat % 2 == 0 else names[::-1]:
            target = directory.new_copy()
            if workload == "put":
                prepare_put(options.program, target)
            os.sync()
            began = time.monotonic()
            own_seconds = subjects[name](directory, target)
            took = time.monotonic() - began if own_seconds is None else own_seconds
            if repeat != 0:  # the first run warms the page cache
                seconds[name].append(took)
            if workload == "put":
                (target / "disk.img").unlink()
            elif is_in_memory:
                shutil.rmtree(target)
    return seconds


def print_rows(options, kind, workload, seconds):
    for subject, taken in seconds.items():
        row = {"bench": "fat_tree", "workload": f"{workload}_{options.files}_files_{kind}", "subject": subject, "metric": "wall",
               "unit": "ms", "better": "lower", "median": statistics.median(taken) * 1000, "min": min(taken) * 1000,
               "max": max(taken) * 1000, "n": len(taken)}
        for other in ("mcopy", "before"):
            if subject in ("sluice", "calls") and other in seconds:
                ratios = [ours / theirs for ours, theirs in zip(taken, seconds[other])]
                row |= {f"ratio_to_{other}": statistics.median(ratios), f"ratio_to_{other}_min": min(ratios),
                        f"ratio_to_{other}_max": max(ratios)}
        print(json.dumps({key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in row.items()}),
              flush=True)


def file_system_of(path):
    return subprocess.run(["stat", "-f", "-c", "%T", str(path)], check=True, capture_output=True,
                          text=True).stdout.strip().replace("ext2/ext3", "ext4")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="the sluice program, of a release build")
    parser.add_argument("--before", type=pathlib.Path, metavar="PROGRAM", help="another sluice program to compare with")
    parser.add_argument("--calls", type=pathlib.Path, metavar="PROGRAM", help="program fat_tree_calls of the same build")
    parser.add_argument("--quick", action="store_true", help="1,000 files, three repeats")
    parser.add_argument("--only", action="append", help="get or put (repeatable)")
    parser.add_argument("--directory", action="append", help="directory for the image and the copies (repeatable) "
                                                          "[default: /dev/shm and /var/tmp]")
    parser.add_argument("--repeats", type=int, help="repeats of each measurement [default: 9]")
    options = parser.parse_args()
    options.program = options.program.resolve()
    options.repeats = options.repeats or (3 if options.quick else 9)
    options.files = 1_000 if options.quick else FILES
    for where in options.directory or ["/dev/shm", "/var/tmp"]:
        with tempfile.TemporaryDirectory(prefix="sluice-bench-", dir=where) as made:
            directory = Directory(options.program, pathlib.Path(made), options.files)
            for workload, subjects in workloads(options).items():
                if any(part in workload for part in options.only or [""]):
                    print_rows(options, file_system_of(made), workload, measure(options, directory, workload, subjects))
    return 0


if __name__ == "__main__":
    sys.exit(main())
