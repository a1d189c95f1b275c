#!/usr/bin/env python3
"""The cost of opens and listings on the share of a FAT image, compared with the share of a directory: one `sluice serve` with
both shares, the same load from `sluice bench smb` on each alternately.

    bench/fat_share.py build/release/sluice/cli/sluice [--quick] [--only list] [--directory /dev/shm] [--repeats 9]

One row of JSON per workload and share on standard output: the server's CPU time per operation, and operations per second.
speed_of_directory_share is the median of the ratios of neighbouring runs, by CPU time; 1 is the same speed, and higher is
better. speed_min and speed_max are the extremes, and rate_of_directory_share is the ratio of operations per second.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "interop"))
import served  # noqa: E402  (found through the line above)

WORKLOADS = ("open", "list")
DEPTH = 64  # requests in flight, so that the server never waits for the client


def load(options, server, share, workload):
    done = subprocess.run(
        [options.program, "bench", "smb", f"smb://{served.USER}@127.0.0.1:{server.port}/{share}", "--json", "--keep", "--spin",
         "--discard", "--workload", workload, "--depth", str(DEPTH), "--seconds", str(options.seconds),
         "--server-pid", str(server.pid)],
        check=True, capture_output=True, text=True, env=os.environ | {"SLUICE_PASSWORD": served.PASSWORD})
    row = json.loads(done.stdout)
    return row["server_cpu_s"] / row["operations"] * 1e6, row["operations"] / row["seconds"]


def measure(options, server, workload):
    """Returns share -> list of (CPU microseconds per operation, operations per second)."""
    seen = {"directory": [], "image": []}
    for repeat in range(options.repeats + 1):
        for share in ("directory", "image") if repeat % 2 == 0 else ("image", "directory"):
            taken = load(options, server, share, workload)
            if repeat != 0:  # the first run creates the files
                seen[share].append(taken)
    return seen


def print_rows(workload, seen):
    for share, taken in seen.items():
        costs = [cost for cost, _ in taken]
        row = {"bench": "fat_share", "workload": workload, "subject": share, "metric": "server_cpu", "unit": "us/operation",
               "better": "lower", "median": statistics.median(costs), "min": min(costs), "max": max(costs), "n": len(costs),
               "rate_per_s": statistics.median(rate for _, rate in taken)}
        if share == "image":
            pairs = list(zip(seen["directory"], taken))
            speeds = [theirs[0] / ours[0] for theirs, ours in pairs]
            row |= {"speed_of_directory_share": statistics.median(speeds), "speed_min": min(speeds), "speed_max": max(speeds),
                    "rate_of_directory_share": statistics.median(ours[1] / theirs[1] for theirs, ours in pairs)}
        print(json.dumps({key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in row.items()}),
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="the sluice program, of a release build")
    parser.add_argument("--quick", action="store_true", help="three repeats of 0.3 s")
    parser.add_argument("--only", action="append", help="open or list (repeatable)")
    parser.add_argument("--directory", default="/dev/shm", help="directory for the share and the image [default: /dev/shm]")
    parser.add_argument("--repeats", type=int, help="repeats of each measurement [default: 9]")
    options = parser.parse_args()
    options.program = options.program.resolve()
    options.repeats = options.repeats or (3 if options.quick else 9)
    options.seconds = 0.3 if options.quick else 0.6
    with tempfile.TemporaryDirectory(prefix="sluice-bench-", dir=options.directory) as made:
        top = pathlib.Path(made)
        (top / "directory").mkdir()
        subprocess.run([options.program, "fat", "mkfs", "--size", "1g", top / "disk.img"], check=True,
                       stdout=subprocess.DEVNULL)
        with served.Server(options.program, top / "directory", share="directory",
                           arguments=["--no-signing", f"image={top / 'disk.img'}"]) as server:
            for workload in WORKLOADS:
                if any(part in workload for part in options.only or [""]):
                    print_rows(workload, measure(options, server, workload))
    return 0


if __name__ == "__main__":
    sys.exit(main())
