#!/usr/bin/env python3
"""Clients connect and disconnect for minutes; at the end, the server must not hold more memory and descriptors than early on.

    tests/soak/churn_test.py build/release/sluice/cli/sluice --seconds 600
    tests/soak/churn_test.py build/release/sluice/cli/sluice --seconds 20

Each round is one smbclient: log on (sometimes with a wrong password, sometimes encrypted, sometimes killed in the middle),
upload, list, download and remove files and directories. After a first fifth, in which pools and caches fill up, the memory
in RAM may grow by MEMORY_BYTES_MAX and a hundredth per minute of the run, and with no client connected the server must have
no more descriptors than before the first one.
"""

import argparse
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "interop"))
import served  # noqa: E402  (found through the line above)

CLIENTS = 4
MEMORY_BYTES_MAX = 8 << 20
SAMPLE_SECONDS = 1.0
# A closed connection is detected at once; the kernel may take a moment to deliver its remaining
# data.
SETTLE_SECONDS_MAX = 10


class Client(threading.Thread):
    """Repeated rounds of smbclient, in a separate directory of the share."""

    def __init__(self, server, scratch, number, seed, deadline):
        super().__init__()
        self.server = server
        self.place = scratch / f"client-{number}"
        self.number = number
        self.chance = random.Random(seed + number)
        self.deadline = deadline
        self.rounds = 0
        self.problems = []
        self.place.mkdir()
        served.make_tree(self.place / "sent", seed=number, sizes=(0, 1, 4096, 65_537, 1_048_577))

    def run(self):
        while time.monotonic() < self.deadline and not self.problems:
            kind = self.chance.choice(("whole", "whole", "whole", "encrypted", "wrong password", "killed"))
            self.rounds += 1
            try:
                self.one_round(kind)
            except (subprocess.SubprocessError, OSError) as wrong:
                self.problems.append(f"client {self.number}, round {self.rounds} ({kind}): {wrong}")

    def one_round(self, kind):
        directory = f"client {self.number} round {self.rounds}"
        shutil.rmtree(self.place / "back", ignore_errors=True)
        (self.place / "back").mkdir()
        password = "wrong" if kind == "wrong password" else served.PASSWORD
        commands = (f'prompt off; recurse on; mkdir "{directory}"; cd "{directory}"; lcd sent; mput *; ls *; '
                    f'lcd ../back; mget *; cd ..; deltree "{directory}"')
        process = subprocess.Popen(
            ["smbclient", "//127.0.0.1/share", "-p", str(self.server.port), "-U", f"{served.USER}%{password}",
             *(["--client-protection=encrypt"] if kind == "encrypted" else []), "-c", commands],
            cwd=self.place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            text, _ = process.communicate(timeout=self.chance.uniform(0.05, 0.5) if kind == "killed" else 120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            if kind == "killed":
                return
            raise
        expects_refusal = kind == "wrong password"
        if expects_refusal != ("NT_STATUS_LOGON_FAILURE" in text) or (not expects_refusal and "NT_STATUS_" in text):
            self.problems.append(f"client {self.number}, round {self.rounds} ({kind}):\n{text}")
        elif not expects_refusal and served.tree_of(self.place / "sent") != served.tree_of(self.place / "back"):
            self.problems.append(f"client {self.number}, round {self.rounds} ({kind}): the downloaded tree differs")


def watch(server, deadline):
    """Returns (bytes in RAM, descriptors), once a second until the deadline."""
    samples = []
    while time.monotonic() < deadline and server.is_alive():
        samples.append((server.memory_bytes(), server.descriptors()))
        time.sleep(SAMPLE_SECONDS)
    return samples


def settled_descriptors(server, wanted):
    """Returns the server's descriptors, once there are no more than wanted or the time to close them is over."""
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while (now := server.descriptors()) > wanted and time.monotonic() < deadline:
        time.sleep(0.1)
    return now


def churn(options, multiplexer, scratch):
    """Returns the problems, as a list of sentences."""
    (scratch / "served").mkdir()
    with served.Server(options.program, scratch / "served", multiplexer) as server:
        first = Client(server, scratch, CLIENTS, options.seed, time.monotonic() + 0.1)
        first.run()  # resources that the server opens once, for the first client, stay open
        descriptors_before = settled_descriptors(server, 0)
        deadline = time.monotonic() + options.seconds
        clients = [Client(server, scratch, number, options.seed, deadline) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        samples = watch(server, deadline)
        for client in clients:
            client.join()
        problems = [problem for client in [first, *clients] for problem in client.problems]
        if not server.is_alive():
            return problems + [f"the server died\n{server.log_tail()}"]
        descriptors_after = settled_descriptors(server, descriptors_before)

    fifth = len(samples) // 5
    if fifth == 0:
        return problems + [f"{len(samples)} samples of memory are too few for a result"]
    ram_bytes = [max(memory for memory, _ in samples[number * fifth:(number + 1) * fifth]) for number in range(5)]
    early_bytes, late_bytes = ram_bytes[1], ram_bytes[-1]
    allowed = MEMORY_BYTES_MAX + int(early_bytes * options.seconds / 60 / 100)
    print(f"{multiplexer}: {sum(client.rounds for client in clients)} rounds in {options.seconds:g} s; RAM in each fifth "
          f"{', '.join(str(memory >> 10) for memory in ram_bytes)} KiB; descriptors "
          f"{descriptors_before} before, {max(count for _, count in samples)} at most, {descriptors_after} after",
          flush=True)
    if late_bytes > early_bytes + allowed:
        problems.append(f"memory grew by {(late_bytes - early_bytes) >> 10} KiB, allowed are {allowed >> 10} KiB")
    if descriptors_after > descriptors_before:
        problems.append(f"{descriptors_after - descriptors_before} descriptors were not closed")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="the sluice program")
    parser.add_argument("--seconds", type=float, default=600, help="per multiplexer")
    parser.add_argument("--multiplexer", action="append", dest="multiplexers", choices=served.MULTIPLEXERS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not shutil.which("smbclient"):
        served.skip("smbclient is not installed (Debian package smbclient)")
    status = 0
    for multiplexer in options.multiplexers or served.MULTIPLEXERS:
        with tempfile.TemporaryDirectory(prefix="sluice-soak-") as directory:
            for problem in churn(options, multiplexer, pathlib.Path(directory)):
                status = 1
                print(f"{multiplexer}: {problem}\nagain: {sys.argv[0]} {options.program} --seconds {options.seconds} "
                      f"--multiplexer {multiplexer} --seed {options.seed}")
    return status


if __name__ == "__main__":
    sys.exit(main())
