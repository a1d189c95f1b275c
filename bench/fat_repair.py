#!/usr/bin/env python3
"""Measures how long `sluice fat repair` and fsck.fat take for a volume with many lost chains.

    bench/fat_repair.py build/release/sluice/cli/sluice [--chains 1000 8000 32000] [--repeats 5] [--limit 30]

The volume is FAT32 of 64 MiB with clusters of 512 bytes. Each lost chain has one cluster, and the next is free. The programs
are interleaved, each with a copy of the same image:

    sluice         sluice fat repair: saves each chain as a file
    sluice_undo    the same with --undo
    fsck           fsck.fat -a -f: saves each chain as a file

A program that takes more than --limit seconds is stopped, and is not measured with more chains.

One row of JSON per program and number of chains on standard output: median, minimum and maximum of the wall-clock time in
seconds, which includes the start of the process, the exit status, and the number of files on the volume afterwards.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ENVIRONMENT = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
CLUSTER_MIN = 1000
LAST = 0x0FFFFFFF
SECONDS_MAX = 120


def run(*command, seconds_max=SECONDS_MAX):
    return subprocess.run([str(part) for part in command], capture_output=True, env=ENVIRONMENT, timeout=seconds_max)


def damaged_image(program, path, chains):
    """Writes the end of a chain to every other entry of both FATs."""
    made = run(program, "fat", "mkfs", path, "--size", "64m", "--type", "32", "--cluster", "512")
    if made.returncode != 0:
        sys.exit(made.stderr.decode())
    with path.open("r+b") as image:
        sector = image.read(512)
        number = lambda offset, size: int.from_bytes(sector[offset:offset + size], "little")
        entries = (LAST.to_bytes(4, "little") + bytes(4)) * chains
        for copy in range(number(16, 1)):
            image.seek((number(14, 2) + copy * number(36, 4)) * number(11, 2) + 4 * CLUSTER_MIN)
            image.write(entries)


def files_on(program, path):
    told = json.loads(run(program, "fat", "check", "--json", path).stdout)
    return told.get("files")


def measure(program, directory, chains, repeats, limit, too_slow):
    image, copy, undo = directory / "image", directory / "copy", directory / "undo"
    damaged_image(program, image, chains)
    subjects = {
        "sluice": (program, "fat", "repair", copy),
        "sluice_undo": (program, "fat", "repair", "--undo", undo, copy),
        "fsck": ("fsck.fat", "-a", "-f", copy),
    }
    seconds = {name: [] for name in subjects}
    ends = {}
    for _ in range(repeats):
        for name, command in subjects.items():
            if name in too_slow:
                continue
            shutil.copyfile(image, copy)
            undo.unlink(missing_ok=True)
            begin = time.perf_counter()
            try:
                done = run(*command, seconds_max=limit)
            except subprocess.TimeoutExpired:
                too_slow.add(name)
                print(json.dumps({"benchmark": "fat_repair", "subject": name, "lost_chains": chains, "more_than_seconds": limit}),
                      flush=True)
                continue
            seconds[name].append(time.perf_counter() - begin)
            ends[name] = (done.returncode, files_on(program, copy))
    for name, taken in seconds.items():
        if name in too_slow:
            continue
        print(json.dumps({"benchmark": "fat_repair", "subject": name, "lost_chains": chains,
                          "seconds": round(statistics.median(taken), 4), "least": round(min(taken), 4),
                          "most": round(max(taken), 4), "exit_status": ends[name][0], "files_after": ends[name][1]}),
              flush=True)
    image.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--chains", type=int, nargs="+", default=[1000, 8000, 32000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=float, default=30)
    parser.add_argument("--directory", default="/dev/shm")
    arguments = parser.parse_args()
    if shutil.which("fsck.fat", path=ENVIRONMENT["PATH"]) is None:
        sys.exit("fat_repair.py: needs fsck.fat")
    too_slow = set()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        for chains in arguments.chains:
            measure(arguments.program.resolve(), pathlib.Path(directory), chains, arguments.repeats, arguments.limit, too_slow)


if __name__ == "__main__":
    main()
