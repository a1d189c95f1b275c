#!/usr/bin/env python3
"""What serving costs: CPU time of `sluice serve` and of Samba's smbd, with the same client, files and options, in turns.

    bench/smb.py build/release/sluice/cli/sluice [--quick] [--folder /dev/shm]

Big files: CPU seconds per gigabyte that smbclient reads or writes, unsigned, signed, encrypted. Small files: CPU time
per file of 4 KiB that is put, listed, fetched, deleted. It is the servers' CPU time that is compared, not the rate:
smbclient takes as much of the machine as a server does. One row of JSON per workload and subject on standard output,
of the form the other benchmarks have; progress and what is missing on standard error. Needs smbclient; without smbd
there are no rows of Samba.
"""

import argparse
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "interop"))
import served  # noqa: E402  (found through the line above)

PROTECTIONS = {"unsigned": "off", "signed": "sign", "encrypted": "encrypt"}
SMALL_FILE_BYTES = 4096
LISTINGS = 20


class Sluice(served.Server):
    name = "sluice"

    def __init__(self, program, folder, multiplexer):
        super().__init__(program, folder, multiplexer, ["--no-signing"])
        self.account = f"{served.USER}%{served.PASSWORD}"


class Samba:
    """Debian's smbd on the same kind of folder, as the same account, with its defaults for reading and writing."""

    name = "samba"

    def __init__(self, folder):
        self.folder = folder
        self.share = "share"
        self._state = tempfile.TemporaryDirectory(prefix="sluice-bench-samba-")
        self._process = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.account = f"{pwd.getpwuid(os.geteuid()).pw_name}%{served.PASSWORD}"

    def __enter__(self):
        state = pathlib.Path(self._state.name)
        folders = {"private dir": "private", "lock directory": "lock", "state directory": "state",
                   "cache directory": "cache", "pid directory": "pid", "ncalrpc dir": "ncalrpc"}
        for folder in folders.values():
            (state / folder).mkdir()
        configuration = state / "smb.conf"
        configuration.write_text("\n".join([
            "[global]", "server role = standalone server", f"smb ports = {self.port}", "interfaces = lo",
            "bind interfaces only = yes", "disable netbios = yes", "load printers = no", "printing = bsd",
            "printcap name = /dev/null", "disable spoolss = yes", "passdb backend = tdbsam", f"log file = {state}/log",
            "log level = 0", *(f"{key} = {state}/{folder}" for key, folder in folders.items()),
            "[share]", f"path = {self.folder}", "read only = no", ""]))
        user, password = self.account.split("%")
        subprocess.run(["smbpasswd", "-c", str(configuration), "-a", "-s", user], input=f"{password}\n{password}\n",
                       text=True, check=True, stdout=subprocess.DEVNULL)
        # A session of its own: smbd has a process per client, and all of them end with it.
        self._process = subprocess.Popen(["smbd", "--foreground", "--no-process-group", "-s", str(configuration)],
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL, start_new_session=True)
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return self
            except OSError:
                time.sleep(0.05)
        raise served.ServerFault("smbd did not start")

    def __exit__(self, kind, value, traceback):
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._state.cleanup()

    def cpu_seconds(self):
        """Of smbd, what it has for clients now, and those whose client has gone."""
        total = 0
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            except (OSError, IndexError):  # it ended meanwhile
                continue
            if int(fields[3]) == self._process.pid:  # the session
                total += sum(map(int, fields[11:13]))
                if folder.name == str(self._process.pid):
                    total += sum(map(int, fields[13:15]))
        return total / os.sysconf("SC_CLK_TCK")


def cpu_of(server, commands, local, *arguments):
    """CPU seconds the server took for one smbclient that runs these commands, and the seconds it all took."""
    before, began = server.cpu_seconds(), time.monotonic()
    done = subprocess.run(["smbclient", f"//127.0.0.1/{server.share}", "-p", str(server.port), "-U", server.account,
                           *arguments, "-c", commands], cwd=local, capture_output=True, text=True, timeout=300)
    if done.returncode != 0 or "NT_STATUS_" in done.stdout:
        raise served.ServerFault(f"{server.name}: smbclient -c '{commands}' printed:\n{done.stdout}{done.stderr}")
    took = time.monotonic() - began
    time.sleep(0.2)  # the server's last work for a client that has gone
    return server.cpu_seconds() - before, took


def workloads(options):
    """(name, commands to prepare, commands to measure, smbclient's options, units of work, unit)."""
    small = options.files
    for protection, word in PROTECTIONS.items():
        protect = (f"--client-protection={word}",)
        gigabytes = options.megabytes / 1000
        yield f"read_{protection}", "put big", "; ".join(["get big /dev/null"] * options.times), protect, \
            gigabytes * options.times, "s/GB"
        yield f"write_{protection}", "", "; ".join(["put big"] * options.times), protect, \
            gigabytes * options.times, "s/GB"
    away = "mkdir small; cd small; prompt off; lcd small; mput *"
    yield "put_4k", "", away, (), small, "ms/file"
    yield "list", "", "; ".join(["ls small\\*"] * LISTINGS), (), small * LISTINGS, "ms/file"
    yield "get_4k", "", "cd small; prompt off; lcd back; mget *", (), small, "ms/file"
    yield "delete", "", "del small\\*; rmdir small", (), small, "ms/file"


def measure(servers, options, local):
    """(workload, server) -> the cost per unit of each repeat; the servers take turns."""
    costs = {}
    for repeat in range(options.repeats):
        print(f"smb: repeat {repeat + 1} of {options.repeats}", file=sys.stderr)
        order = servers if repeat % 2 == 0 else servers[::-1]
        for name, prepare, commands, arguments, work, unit in workloads(options):
            for server in order:
                if prepare:
                    cpu_of(server, prepare, local)
                cpu, took = cpu_of(server, commands, local, *arguments)
                scale = 1000 if unit == "ms/file" else 1
                costs.setdefault((name, unit, server.name), []).append((cpu * scale / work, work / took))
    return costs


def print_rows(costs):
    for (name, unit, subject), samples in costs.items():
        values = [cost for cost, _ in samples]
        row = {"bench": "smb", "workload": name, "subject": subject, "metric": "server_cpu", "unit": unit,
               "better": "lower", "median": statistics.median(values), "min": min(values), "max": max(values),
               "n": len(values), "rate_per_s": statistics.median(rate for _, rate in samples)}
        theirs = [cost for cost, _ in costs.get((name, unit, "samba"), [])]
        if subject != "samba" and theirs and min(theirs) > 0:
            row["ratio_to_samba"] = statistics.median(ours / other for ours, other in zip(values, theirs))
        print(json.dumps(row), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="the sluice program, of a release build")
    parser.add_argument("--quick", action="store_true", help="less of everything: half a minute")
    parser.add_argument("--folder", default="/dev/shm", help="where the shares are made")
    parser.add_argument("--multiplexer", choices=served.MULTIPLEXERS, default="io_uring")
    options = parser.parse_args()
    options.megabytes, options.times, options.files, options.repeats = \
        (256, 2, 300, 2) if options.quick else (1000, 2, 1000, 5)
    if not shutil.which("smbclient"):
        served.skip("smbclient is not installed (Debian package smbclient)")
    with tempfile.TemporaryDirectory(prefix="sluice-bench-", dir=options.folder) as scratch:
        place = {name: pathlib.Path(scratch) / name for name in ("ours", "theirs", "local")}
        for folder in (*place.values(), place["local"] / "small", place["local"] / "back"):
            folder.mkdir()
        with (place["local"] / "big").open("wb") as big:
            for _ in range(options.megabytes):
                big.write(os.urandom(1000) * 1000)
        for number in range(options.files):
            (place["local"] / "small" / f"file {number}").write_bytes(os.urandom(SMALL_FILE_BYTES))
        with Sluice(options.program, place["ours"], options.multiplexer) as ours:
            if not shutil.which("smbd"):
                print("smb: smbd is not installed (Debian package samba): no rows of Samba", file=sys.stderr)
                costs = measure([ours], options, place["local"])
            else:
                with Samba(place["theirs"]) as theirs:
                    costs = measure([ours, theirs], options, place["local"])
        print_rows(costs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
