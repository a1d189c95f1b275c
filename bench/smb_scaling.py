#!/usr/bin/env python3
"""Measures how the rate of `sluice serve` grows with its number of loops.

    bench/smb_scaling.py build/release/sluice/cli/sluice [--before OTHER_SLUICE] [--loops 1,2,4,8] [--repeats 3] [--seconds 1]
                         [--directory /dev/shm]

The server is confined to as many CPUs as it has loops, and the load generators (`sluice bench smb`, one process for each CPU
that is left) to the others. So the machine needs more CPUs than loops; twice as many show the server's limit rather than the
clients'. Each generator has its own directory, sessions and connections, and waits with its load until all have created their
files. With --before, an earlier build serves the same load.
Programs and numbers of loops alternate. One row of JSON per workload, program and number of loops on standard output:

    median, min, max   operations per second of all generators, until the last one ends, of the repeats
    times_one_loop     this rate, divided by the rate of the first number of loops, repeat by repeat (median)
    server_us          CPU time of the server for an operation, in us (median)
    server_busy        CPU time of the server per second and loop: 1 means that the server is the limit (median)

Progress is written to standard error.
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
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "interop"))
import served  # noqa: E402  (found through the line above)

WORKLOADS = ("echo", "random-read", "open", "create", "delete", "list")
CLIENT_SECONDS_MAX = 300
FILES = {"delete": 4000}  # per session: a delete load ends with its files. Others have the default


class PinnedServer(served.Server):
    """A server that runs on the given CPUs only."""

    def __init__(self, program, directory, loops, cpus):
        super().__init__(program, directory, arguments=("--loops", str(loops), "--no-signing"))
        self._cpus = cpus

    def __enter__(self):
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self._cpus)
        try:
            return super().__enter__()
        finally:
            os.sched_setaffinity(0, before)


def start_load(options, server, workload, number, cpu):
    directory = f"client-{number}"
    (server.directory / directory).mkdir(exist_ok=True)
    command = [options.program, "bench", "smb", f"smb://{served.USER}@127.0.0.1:{server.port}/{server.share}/{directory}", "--json",
               "--spin", "--discard", "--no-signing", "--workload", workload, "--connections", str(options.connections), "--depth",
               str(options.depth), "--seconds", str(options.seconds), "--file-size", "16MB", "--server-pid", str(server.pid),
               "--hold", "--keep"]  # the clean-up of one would disturb the load of others
    if workload in FILES:
        command += ["--files", str(FILES[workload])]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=os.environ | {"SLUICE_PASSWORD": served.PASSWORD},
                            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))


def begin_together(clients):
    """Lets all loads begin once each client is ready."""
    for client in clients:
        too_late = threading.Timer(CLIENT_SECONDS_MAX, client.kill)  # then the line is empty
        too_late.start()
        line = client.stderr.readline()
        too_late.cancel()
        if line != "ready\n":
            client.kill()  # it may wait for its input
            raise served.ServerFault(f"sluice bench smb printed instead of 'ready':\n{line}{client.stderr.read()}")
    for client in clients:
        client.stdin.close()
        client.stdin = None  # communicate() would write to it


def result_of(client, workload):
    out, err = client.communicate(timeout=CLIENT_SECONDS_MAX)
    if client.returncode != 0:
        raise served.ServerFault(f"sluice bench smb --workload {workload} printed:\n{err}")
    return json.loads(out)


def measure_once(options, program, workload, loops, cpus):
    """Returns operations per second, the server's CPU time per operation in us, and its CPU time per second and loop."""
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="sluice-scaling-", dir=options.directory))
    try:
        with PinnedServer(program, scratch, loops, set(cpus[:loops])) as server:
            clients = [start_load(options, server, workload, number, one)
                       for number, one in enumerate(cpus[max(options.loops):])]
            try:
                begin_together(clients)
                rows = [result_of(client, workload) for client in clients]
            finally:
                for client in clients:
                    client.kill()  # those that still run after a failure
        # Each generator measures the whole server while its own load runs: the last one, during all loads.
        last = max(rows, key=lambda row: row["seconds"])
        operations = sum(row["operations"] for row in rows)
        busy = last["server_cpu_s"] / last["seconds"]
        return operations / last["seconds"], last["server_cpu_s"] * 1e6 / operations, busy / loops
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def print_row(workload, subject, loops, samples, first):
    rates = [sample[0] for sample in samples]
    row = {"bench": "smb_scaling", "workload": f"{workload}_{loops}", "subject": subject, "series": workload,
           "parameter": "event loops", "value": loops, "metric": "rate", "unit": "operations/s", "better": "higher",
           "median": statistics.median(rates), "min": min(rates), "max": max(rates), "n": len(rates),
           "times_one_loop": statistics.median(now / then[0] for now, then in zip(rates, first)),
           "server_us": statistics.median(sample[1] for sample in samples),
           "server_busy": statistics.median(sample[2] for sample in samples)}
    print(json.dumps({key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in row.items()}),
          flush=True)


def measure(options, workload, programs, cpus):
    """Measures each program with each number of loops; the order is reversed in each second repeat."""
    turns = [(subject, loops) for loops in options.loops for subject in programs]
    samples = {turn: [] for turn in turns}
    for repeat in range(options.repeats):
        for subject, loops in turns if repeat % 2 == 0 else turns[::-1]:
            print(f"smb_scaling: {workload}, {subject}, {loops} loops, repeat {repeat + 1}", file=sys.stderr)
            samples[subject, loops].append(measure_once(options, programs[subject], workload, loops, cpus))
    for subject, loops in turns:
        print_row(workload, subject, loops, samples[subject, loops], samples[subject, options.loops[0]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="the sluice program, of a release build")
    parser.add_argument("--before", type=pathlib.Path, metavar="OTHER_SLUICE", help="an earlier build, measured in turn")
    parser.add_argument("--loops", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2, 4, 8],
                        metavar="N,N,…", help="numbers of loops (1,2,4,8)")
    parser.add_argument("--only", action="append", choices=WORKLOADS, metavar="WORKLOAD", help=", ".join(WORKLOADS))
    parser.add_argument("--repeats", type=int, default=3, help="repeats of each (3)")
    parser.add_argument("--seconds", type=float, default=1, help="length of the load of a repeat, in seconds (1)")
    parser.add_argument("--connections", type=int, default=4, help="sessions of each generator (4)")
    parser.add_argument("--depth", type=int, default=16, help="requests in flight per session (16)")
    parser.add_argument("--directory", type=pathlib.Path, default=pathlib.Path("/dev/shm"),
                        help="where the served directories are created (/dev/shm)")
    options = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) <= max(options.loops):
        parser.error(f"{max(options.loops)} loops need more than {len(cpus)} CPUs: the clients take the others; "
                     "name fewer with --loops")
    programs = {"sluice.serve": options.program} | ({"before": options.before} if options.before else {})
    for workload in options.only or WORKLOADS:
        measure(options, workload, programs, cpus)


if __name__ == "__main__":
    main()
