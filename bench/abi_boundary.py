#!/usr/bin/env python3
"""Compares calls of libsluice.so with calls of the archives, and measures the compile time of the headers.

    cmake --build --preset release --target abi_boundary_programs
    bench/abi_boundary.py build/release calls [ROUNDS]      the calls [default: 30 rounds]
    bench/abi_boundary.py build/release headers [HEADER…]   the headers [default: all installed ones]

Calls: the programs run alternately, ROUNDS times, on one CPU. A ratio is the median of the ratios of one round.
Headers: CPU time of the compiler (-O2) for a program that includes one header and has an empty main, and for the first
program of README.md; the least of three.
"""

import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile

PROGRAMS = {"archives": "io", "libsluice.so": "shared", "exports all": "bench_exports_all"}
SECONDS = "0.05"
ROOT = pathlib.Path(__file__).resolve().parent.parent
# The headers of other libraries, for comparison.
OTHERS = ("liburing.h", "uv.h", "expected", "asio.hpp")


def measured(program):
    """Returns the nanoseconds of each workload."""
    output = subprocess.run(["taskset", "-c", "0", program, SECONDS], check=True, text=True, stdout=subprocess.PIPE).stdout
    return {line.split()[0]: float(line.split()[1]) for line in output.splitlines()}


def compare_calls(build, rounds):
    programs = {name: build / "bench" / "tools" / f"abi_boundary_{kind}" for name, kind in PROGRAMS.items()}
    runs = {name: [] for name in programs}
    for number in range(rounds):
        order = list(programs)
        for name in order[number % len(order):] + order[:number % len(order)]:
            runs[name].append(measured(programs[name]))
    baseline = next(iter(programs))
    print("| workload | ns, archives |" + "".join(f" {name}, ratio (quartiles) |" for name in list(programs)[1:]))
    print("|---|---|" + "---|" * (len(programs) - 1))
    for workload in runs[baseline][0]:
        row = f"| `{workload}` | {statistics.median(run[workload] for run in runs[baseline]):.1f} |"
        for name in list(programs)[1:]:
            ratios = [run[workload] / base[workload] for run, base in zip(runs[name], runs[baseline])]
            low, middle, high = statistics.quantiles(ratios, n=4)
            row += f" {middle:.3f} ({low:.3f} to {high:.3f}) |"
        print(row)


def compile_seconds(compiler, include, text, directory):
    source = directory / "main.cpp"
    source.write_text(text)
    least = float("inf")
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([compiler, "-std=c++23", "-O2", "-DASIO_STANDALONE", "-DASIO_HAS_CO_AWAIT", f"-I{include}", "-c",
                        "-o", os.devnull, source], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        least = min(least, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return least


def compare_headers(build, headers):
    cache = (build / "CMakeCache.txt").read_text()
    compiler = next(line.split("=", 1)[1] for line in cache.splitlines() if line.startswith("CMAKE_CXX_COMPILER:"))
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        subprocess.run(["cmake", "--install", build, "--component", "headers", "--prefix", directory], check=True,
                       stdout=subprocess.DEVNULL)
        include = directory / "include"
        found = sorted(str(path.relative_to(include)) for name in ("base", "sync", "io", "fsmutex")
                       for path in (include / "sluice" / name).rglob("*.hpp") if "skiplist" not in path.parts)
        programs = {header: f"#include <{header}>\nint main() {{}}\n" for header in (*OTHERS, *(headers or found))}
        programs["none"] = "int main() {}\n"
        programs["README.md"] = re.search(r"```cpp\n(.*?)```", (ROOT / "README.md").read_text(), re.S).group(1)
        times = {name: compile_seconds(compiler, include, text, directory) for name, text in programs.items()}
    for header, seconds in sorted(times.items(), key=lambda item: item[1]):
        print(f"| `{header}` | {seconds:.2f} |")


if __name__ == "__main__":
    build_directory, action, *rest = sys.argv[1:]
    if action == "calls":
        compare_calls(pathlib.Path(build_directory), int(rest[0]) if rest else 30)
    else:
        compare_headers(pathlib.Path(build_directory), rest)
