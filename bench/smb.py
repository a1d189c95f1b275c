#!/usr/bin/env python3
"""Measures the CPU time of `sluice serve` and of Samba's smbd, interleaved, with the same clients, files and options.

    bench/smb.py build/release/sluice/cli/sluice [--quick] [--only read] [--directory /dev/shm] [--repeats 3] [--seconds 1]

Big files: CPU seconds per gigabyte (10^9 bytes) that smbclient reads or writes, unsigned, signed, encrypted. Small files: CPU
time per file of 4 KiB that is put, listed, fetched, deleted. Single operations: per logon, per echo, per open and close, the
last two from smbtorture's benchmarks. The servers' CPU time is compared, not the rate: the clients take as much of the
machine as a server does. One row of JSON per workload and subject on standard output, in the form of the other benchmarks;
progress and missing programs on standard error. Needs smbclient; without smbd there are no rows of Samba, without smbtorture
neither echo nor open_close.

The workloads named bench_ are those of `sluice bench smb`, which takes less of the machine than smbclient does, has many
requests in flight, never sleeps, and discards read data unchecked unless it is encrypted, so that no server waits for it:
transfers of 4 KiB to 8 MiB over one and four channels of a session, and small operations. There the CPU time is that of the
load alone, without connecting and creating files. With eight small operations in flight, the default, a quick server
repeatedly waits for the next one, and is woken: that is a cost of the machine rather than of the server. So there are also
workloads with enough operations in flight to keep every server busy (_busy).

get_1024m, cat_1024m: seconds for a file of 1 GiB with the client of each project, `sluice get` and smbclient, into a new file;
`sluice cat` and smbclient into /dev/null, which excludes the cost of a new file's memory. idle_memory: KiB of a server's
memory for each of 1,000 idle sessions. beside_idle: the cost of an echo and a READ of 64 active sessions next to 1,000 idle
ones, as a multiple of the cost without those. loops_: gigabytes per second over four channels with one loop and with two,
limited by the share of this machine that the client leaves. busiest_loop_: CPU time of the busiest loop for a gigabyte, or
for an operation of two sessions, each with its own directory. It bounds the rate of a server with fast enough clients.

With --before, two programs are measured alternately, and ratio_to_before is the median of the ratios of their costs, pair by
pair; ratio_min and ratio_max are the extremes, and the quartiles are between them. ratio_median_low and ratio_median_high
are the limits of the median with a probability of 95%, for any distribution of the noise; they need six pairs or more.
--argument passes an option to the servers of the first program only, so that `--before` with the same program shows the cost
of the option.

Rows contain the congestion control of TCP on this machine: bbr sends by a timer, also over loopback, which costs every server
more, and sometimes makes a connection slow. Debian's default is cubic.
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "interop"))
import served  # noqa: E402  (found through the line above)

PROTECTIONS = {"unsigned": "off", "signed": "sign", "encrypted": "encrypt"}
LOAD_PROTECTIONS = {"unsigned": ["--no-signing"], "signed": [], "encrypted": ["--encrypt"]}
SMALL_FILE_BYTES = 4096
LISTINGS = 20
BUSY_DEPTH = 64  # requests in flight that keep a server busy: no server waits for a client
LOG_ONS = 30
CLIENT_SECONDS_MAX = 120
CONGESTION_CONTROL = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control")
BEFORE = "before."  # prefix of the subjects of --before
SETTLE_SECONDS = 0.2  # for a server's last work for a client that has disconnected


class Sluice(served.Server):
    """`sluice serve` with signing offered, not required, as in Samba: the client decides."""

    def __init__(self, program, directory, multiplexer, name=None, arguments=()):
        super().__init__(program, directory, multiplexer, ["--no-signing", *arguments])
        self.program = program
        self.name = name or f"sluice.{multiplexer}"
        self.account = f"{served.USER}%{served.PASSWORD}"


class Samba:
    """Debian's smbd on a directory on the same file system, with the same account, with its defaults except for `settings`."""

    def __init__(self, directory, name="samba", settings=()):
        self.name = name
        self.directory = directory
        self.share = "share"
        self._settings = settings
        self._state = tempfile.TemporaryDirectory(prefix="sluice-bench-samba-")
        self._process = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.account = f"{pwd.getpwuid(os.geteuid()).pw_name}%{served.PASSWORD}"

    def __enter__(self):
        state = pathlib.Path(self._state.name)
        directories = {"private dir": "private", "lock directory": "lock", "state directory": "state",
                   "cache directory": "cache", "pid directory": "pid", "ncalrpc dir": "ncalrpc"}
        for directory in directories.values():
            (state / directory).mkdir()
        configuration = state / "smb.conf"
        configuration.write_text("\n".join([
            "[global]", "server role = standalone server", f"smb ports = {self.port}", "interfaces = lo",
            "bind interfaces only = yes", "disable netbios = yes", "load printers = no", "printing = bsd",
            "printcap name = /dev/null", "disable spoolss = yes", "passdb backend = tdbsam", f"log file = {state}/log",
            "log level = 0", *(f"{key} = {state}/{directory}" for key, directory in directories.items()),
            "[share]", f"path = {self.directory}", "read only = no", *self._settings, ""]))
        user, password = self.account.split("%")
        subprocess.run(["smbpasswd", "-c", str(configuration), "-a", "-s", user], input=f"{password}\n{password}\n",
                       text=True, check=True, stdout=subprocess.DEVNULL)
        # A separate session: smbd has a process per client, and all of them end with it.
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

    @property
    def pid(self):
        return self._process.pid

    def cpu_seconds(self):
        """Returns the CPU time of smbd, its processes for current clients, and those of disconnected clients."""
        total = 0
        for directory in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                fields = (directory / "stat").read_text().rsplit(")", 1)[1].split()
            except (OSError, IndexError):  # it has ended
                continue
            if int(fields[3]) == self._process.pid:  # the session
                total += sum(map(int, fields[11:13]))
                if directory.name == str(self._process.pid):
                    total += sum(map(int, fields[13:15]))
        return total / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Done:
    """The measurements of a load generator: the amount of work, and its CPU time and duration."""

    amount: float
    cpu_seconds: float
    seconds: float


@dataclass(frozen=True)
class Workload:
    """The work of a client, in `unit`s of which a second of CPU time has `per_second`; or another `metric`."""

    name: str
    unit: str
    per_second: int
    prepare: object  # (server) -> None: preparation, not measured
    work: object     # (server) -> the amount of work, or Done
    subjects: tuple = ("sluice.io_uring", "sluice.epoll", "samba")
    metric: str = "server_cpu"
    better: str = "lower"


@dataclass
class Samples:
    """The measurements of one subject, a number per repeat."""

    costs: list = field(default_factory=list)
    rates: list = field(default_factory=list)


def run_smbclient(server, commands, local, protection="off"):
    done = subprocess.run(["smbclient", f"//127.0.0.1/{server.share}", "-p", str(server.port), "-U", server.account,
                           f"--client-protection={protection}", "-c", commands],
                          cwd=local, capture_output=True, text=True, timeout=CLIENT_SECONDS_MAX)
    if done.returncode != 0 or "NT_STATUS_" in done.stdout:
        raise served.ServerFault(f"{server.name}: smbclient -c '{commands}' printed:\n{done.stdout}{done.stderr}")


def run_smbtorture(server, benchmark, seconds):
    """Returns the number of operations of smbtorture, which prints a rate for each second."""
    done = subprocess.run(["smbtorture", f"//127.0.0.1/{server.share}", "-p", str(server.port), "-U", server.account,
                           f"--option=torture:timelimit={seconds}", "--option=torture:nprocs=2",
                           "--option=torture:qdepth=4", f"smb2.bench.{benchmark}"],
                          capture_output=True, text=True, timeout=CLIENT_SECONDS_MAX)
    seen = re.findall(r"([\d.]+) seconds?: \w+\[num/s=(\d+)", done.stdout + done.stderr)
    if done.returncode != 0 or not seen:
        raise served.ServerFault(f"{server.name}: smbtorture {benchmark} printed:\n{done.stdout}{done.stderr}")
    ends = [0.0, *(float(end) for end, _ in seen)]
    return sum(int(rate) * (end - begin) for begin, end, (_, rate) in zip(ends, ends[1:], seen))


def run_load(program, server, workload, protection, *arguments):
    """Runs `sluice bench smb` once, which measures the server at the same time."""
    user, password = server.account.split("%")
    done = subprocess.run([program, "bench", "smb", f"smb://{user}@127.0.0.1:{server.port}/{server.share}", "--json", "--keep",
                           "--spin", "--discard", "--workload", workload, "--server-pid", str(server.pid), "--subject", server.name,
                           *LOAD_PROTECTIONS[protection], *arguments],
                          capture_output=True, text=True, timeout=CLIENT_SECONDS_MAX,
                          env=os.environ | {"SLUICE_PASSWORD": password})
    if done.returncode != 0:
        raise served.ServerFault(f"{server.name}: sluice bench smb --workload {workload} printed:\n{done.stderr}")
    return json.loads(done.stdout)


def bench_loads(options, local):
    """Transfers of every size, and small operations, with our own load generator."""
    def nothing(server):
        pass

    def remove(server):
        shutil.rmtree(server.directory / "sluice-bench.tmp", ignore_errors=True)

    def load(workload, protection, by_bytes, *arguments):
        def work(server):
            row = run_load(options.program, server, workload, protection, "--seconds", str(options.load_seconds), *arguments)
            amount = row["bytes"] / 1e9 if by_bytes else row["operations"]
            return Done(amount, row["server_cpu_s"], row["seconds"])
        return work

    everybody = Workload.subjects + ("samba.io_uring",)
    for protection in PROTECTIONS:
        for direction in ("read", "write"):
            subjects = everybody + (("samba.sendfile",) if (direction, protection) == ("read", "unsigned") else ())
            for size in options.load_sizes:
                for channels in options.load_channels:
                    depth = 16 if size < 1 << 20 else 4
                    yield Workload(f"bench_{direction}_{size}_{protection}_{channels}", "s/GB", 1, nothing,
                                   load(direction, protection, True, "--size", str(size), "--channels", str(channels),
                                        "--depth", str(depth), "--file-size", "64MB"), subjects)
    count = ("--files", str(options.files))
    for workload, prepare, arguments in (
            ("put", remove, count), ("get", nothing, count), ("list", nothing, count), ("delete", nothing, count),
            ("open", remove, ()), ("create", nothing, ()), ("random-read", remove, ("--file-size", "64MB")),
            ("random-write", nothing, ("--file-size", "64MB")), ("echo", remove, ()),
            ("log-on", nothing, ("--depth", "1"))):  # with more at once Samba 4.17 leaves some unanswered for a minute
        unit = {"put": "file", "get": "file", "delete": "file", "log-on": "logon", "echo": "echo", "list": "listing"}
        for name, depth in (("", ()), ("_busy", ("--depth", str(BUSY_DEPTH)))):
            if name and workload in ("list", "log-on"):
                continue  # long enough to keep any server busy; one at a time
            yield Workload(f"bench_{workload.replace('-', '_')}{name}", f"us/{unit.get(workload, 'operation')}", 1_000_000, prepare,
                           load(workload, "signed", False, *arguments, *depth), everybody)


def big_files(options, local):
    """Gigabytes read and written; the file exists after the first write."""
    def put_once(server):
        if not (server.directory / "big").exists():
            run_smbclient(server, "put big", local)

    def transfer(command, protection):
        def work(server):
            run_smbclient(server, "; ".join([command] * options.times), local, protection)
            return options.megabytes / 1000 * options.times
        return work

    for name, protection in PROTECTIONS.items():
        subjects = Workload.subjects + (("samba.sendfile",) if name == "unsigned" else ())
        yield Workload(f"read_{name}", "s/GB", 1, put_once, transfer("get big /dev/null", protection), subjects)
        yield Workload(f"write_{name}", "s/GB", 1, put_once, transfer("put big", protection))


def small_files(options, local):
    """Files put, listed, fetched, deleted."""
    put = "mkdir small; cd small; prompt off; lcd small; mput *"

    def put_once(server):
        if not (server.directory / "small").exists():
            run_smbclient(server, put, local)

    def remove(server):
        shutil.rmtree(server.directory / "small", ignore_errors=True)

    def each(commands, count):
        def work(server):
            run_smbclient(server, commands, local)
            return count
        return work

    count = options.files
    yield Workload("put_4k", "us/file", 1_000_000, remove, each(put, count))
    yield Workload("list", "us/entry", 1_000_000, put_once, each("; ".join(["ls small\\*"] * LISTINGS), count * LISTINGS))
    yield Workload("get_4k", "us/file", 1_000_000, put_once, each("cd small; prompt off; lcd back; mget *", count))
    yield Workload("delete", "us/file", 1_000_000, put_once, each("del small\\*; rmdir small", count))


def single_operations(options, local):
    """Logons, echoes, and opens that are closed at once."""
    def nothing(server):
        pass

    def log_on(server):
        for _ in range(LOG_ONS):
            run_smbclient(server, "quit", local)
        return LOG_ONS

    yield Workload("log_on", "us/logon", 1_000_000, nothing, log_on)
    if not shutil.which("smbtorture"):
        print("smb: smbtorture is not installed (Debian package samba-testsuite): skipping echo and open_close", file=sys.stderr)
        return
    known = subprocess.run(["smbtorture", "--list"], capture_output=True, text=True, check=False).stdout
    for name, benchmark, unit in (("echo", "echo", "us/echo"), ("open_close", "path-contention-shared", "us/open"),
                                  ("torture_read_4k", "read", "us/read"), ("torture_log_on", "session-setup", "us/logon")):
        if f"smb2.bench.{benchmark}" not in known:
            print(f"smb: smbtorture is too old for bench.{benchmark}: skipping {name}", file=sys.stderr)
            continue
        yield Workload(name, unit, 1_000_000, nothing,
                       lambda server, benchmark=benchmark: run_smbtorture(server, benchmark, options.seconds))


def whole_files(options, local):
    """Fetches a large file with the client of each project: seconds."""
    def put_once(server):
        (local / "gigabyte").unlink(missing_ok=True)
        path = server.directory / "gigabyte"
        if not path.exists():
            with path.open("wb") as big:
                for _ in range(options.get_megabytes):
                    big.write(os.urandom(1 << 10) * (1 << 10))

    def fetch(command, protection):
        target = local / "gigabyte" if command == "get" else "/dev/null"

        def work(server):
            began = time.monotonic()
            if isinstance(server, Sluice):
                url = f"smb://{served.USER}@127.0.0.1:{server.port}/{server.share}/gigabyte"
                # The end of a pipe shows at once that the client has ended; otherwise Python polls
                # every 50 ms.
                subprocess.run([server.program, command, *LOAD_PROTECTIONS[protection], url, *([target] * (command == "get"))],
                               check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=CLIENT_SECONDS_MAX,
                               env=os.environ | {"SLUICE_PASSWORD": served.PASSWORD})
            else:
                run_smbclient(server, f"get gigabyte {target}", local, PROTECTIONS[protection])
            took = time.monotonic() - began
            return Done(1, took, took)
        return work

    for command in ("get", "cat"):
        for protection in PROTECTIONS:
            yield Workload(f"{command}_{options.get_megabytes}m_{protection}", "s", 1, put_once, fetch(command, protection),
                           metric="wall")


def idle_sessions(options, local):
    """Memory of idle sessions, in KiB each."""
    count = 100 if options.quick else 1000
    resting = {}

    def hold(server):
        before = resting.setdefault(server.name, server.memory_bytes())  # memory that is freed later is kept for the next sessions
        with subprocess.Popen([options.program, "bench", "smb", f"smb://{served.USER}@127.0.0.1:{server.port}/{server.share}",
                               "--workload", "echo", "--connections", str(count), "--depth", "1", "--seconds", "0.5"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              env=os.environ | {"SLUICE_PASSWORD": served.PASSWORD}) as client:
            most = before
            while client.poll() is None:
                most = max(most, server.memory_bytes())
                time.sleep(0.01)
            if client.returncode != 0:
                raise served.ServerFault(f"{server.name}: sluice bench smb printed:\n{client.stderr.read()}")
        return Done(count, (most - before) / 1024, 1)

    yield Workload("idle_memory", "KiB/session", 1, lambda server: None, hold, ("sluice.fresh_io_uring", "sluice.fresh_epoll"), "memory")


def active_beside_idle(options, local):
    """Single operations of 64 sessions next to 1,000 idle ones: the server's CPU time of each, as a multiple of the time without
    those, measured directly before or after."""
    idle_sessions = 100 if options.quick else 1000

    def cost(server, workload, idle):
        row = run_load(options.program, server, workload, "signed", "--seconds", str(options.load_seconds), "--connections", "64",
                       "--depth", "1", "--idle", str(idle), "--file-size", "1MB", "--size", "4096")
        return row["server_cpu_s"] / row["operations"]

    def compare(workload):
        turns = {}

        def work(server):
            turns[server.name] = turns.get(server.name, 0) + 1
            order = (0, idle_sessions) if turns[server.name] % 2 else (idle_sessions, 0)
            costs = {idle: cost(server, workload, idle) for idle in order}
            return Done(1, costs[idle_sessions] / costs[0], 1)
        return work

    for workload in ("echo", "random-read"):
        yield Workload(f"beside_idle_{workload.replace('-', '_')}_64_beside_{idle_sessions}", "times", 1, lambda server: None,
                       compare(workload), ("sluice.io_uring", "sluice.epoll"), "server_cpu")


def loop_counts(options, local):
    """Four channels of one session, or two sessions, served by one loop and by two."""
    def load(protection, direction, done):
        def work(server):
            row = run_load(options.program, server, direction, protection, "--seconds", str(options.load_seconds), "--channels",
                           "4", "--depth", "4", "--file-size", "64MB")
            return done(row)
        return work

    for protection in PROTECTIONS:
        for direction in ("read", "write"):
            for name, unit, metric, better, done in (
                    ("loops", "GB/s", "rate", "higher", lambda row: Done(row["seconds"], row["bytes"] / 1e9, row["seconds"])),
                    ("busiest_loop", "s/GB", "busiest_thread", "lower",
                     lambda row: Done(row["bytes"] / 1e9, row["server_busiest_thread_s"], row["seconds"]))):
                yield Workload(f"{name}_{direction}_1048576_{protection}", unit, 1, lambda server: None,
                               load(protection, direction, done), ("sluice.one_loop", "sluice.two_loops"), metric, better)

    def names(workload):
        def work(server):
            row = run_load(options.program, server, workload, "signed", "--seconds", str(options.load_seconds), "--connections",
                           "2", "--depth", "64")
            return Done(row["operations"], row["server_busiest_thread_s"], row["seconds"])
        return work

    for workload in ("open", "create", "delete", "list"):
        yield Workload(f"busiest_loop_{workload}", "us/operation", 1e6, lambda server: None, names(workload),
                       ("sluice.one_loop", "sluice.two_loops"), "busiest_thread")


def measure(workload, servers, repeats):
    """Returns subject -> Samples. The order of the servers alternates, so that each is first as often as last."""
    samples = {server.name: Samples() for server in servers}
    for repeat in range(repeats):
        for server in servers if repeat % 2 == 0 else servers[::-1]:
            workload.prepare(server)
            time.sleep(SETTLE_SECONDS)
            cpu, began = server.cpu_seconds(), time.monotonic()
            done = workload.work(server)
            if not isinstance(done, Done):
                took = time.monotonic() - began
                time.sleep(SETTLE_SECONDS)
                done = Done(done, server.cpu_seconds() - cpu, took)
            samples[server.name].costs.append(done.cpu_seconds * workload.per_second / done.amount)
            samples[server.name].rates.append(done.amount / done.seconds)
    return samples


def print_rows(workload, samples):
    for subject, seen in samples.items():
        row = {"bench": "smb", "workload": workload.name, "subject": subject, "metric": workload.metric,
               "unit": workload.unit, "better": workload.better, "median": statistics.median(seen.costs),
               "min": min(seen.costs), "max": max(seen.costs), "n": len(seen.costs),
               "rate_per_s": statistics.median(seen.rates), "tcp": CONGESTION_CONTROL.read_text().strip()}
        theirs = samples.get("samba", Samples()).costs
        if subject != "samba" and theirs and min(theirs) > 0:
            row["ratio_to_samba"] = statistics.median(our / their for our, their in zip(seen.costs, theirs))
        before = samples.get(BEFORE + subject, Samples()).costs
        if before and min(before) > 0:
            ratios = sorted(now / then for now, then in zip(seen.costs, before))
            quarter = len(ratios) // 4
            lowest = median_rank(len(ratios))
            row |= {"ratio_to_before": statistics.median(ratios), "ratio_min": ratios[0], "ratio_max": ratios[-1],
                    "ratio_lower_quartile": ratios[quarter], "ratio_upper_quartile": ratios[-1 - quarter],
                    "ratio_median_low": ratios[lowest], "ratio_median_high": ratios[-1 - lowest]}
        print(json.dumps({key: float(f"{value:.4g}") if isinstance(value, float) else value
                          for key, value in row.items()}), flush=True)


def median_rank(count):
    """Returns the index, in ascending order, of the lower limit of the 95% confidence interval of the median.

    From the binomial distribution of the number of samples below the median. Assumes nothing about the noise.
    """
    below, chance = 0, 0.5 ** count
    while below < (count - 1) // 2 and chance + math.comb(count, below + 1) * 0.5 ** count <= 0.025:
        below += 1
        chance += math.comb(count, below) * 0.5 ** count
    return below


def make_subjects(options, scratch):
    """Returns the servers, not started, each with its own directory."""
    both = ["--loops", str(options.loops)] if options.loops else []
    made = sluice_subjects("", options.program, [*both, *(options.argument or [])])
    if options.before:
        made += sluice_subjects(BEFORE, options.before, both)
    elif shutil.which("smbd"):
        made += [Samba, lambda directory: Samba(directory, "samba.sendfile", ("use sendfile = yes", "aio read size = 0")),
                 lambda directory: Samba(directory, "samba.io_uring", ("vfs objects = io_uring",))]
    else:
        print("smb: smbd is not installed (Debian package samba): skipping Samba", file=sys.stderr)
    for number, make in enumerate(made):
        directory = scratch / f"served-{number}"
        directory.mkdir()
        yield make(directory)


def sluice_subjects(prefix, program, arguments):
    """Returns functions that create the subjects of a program, each from a directory."""
    def subject(name, multiplexer, *more):
        return lambda directory: Sluice(program, directory, multiplexer, f"{prefix}sluice.{name}", [*more, *arguments])

    made = [subject(kind + one, one) for kind in ("", "fresh_") for one in served.MULTIPLEXERS]
    if "--loops" in arguments:
        return made
    return made + [subject(name, "io_uring", "--loops", loops) for name, loops in (("one_loop", "1"), ("two_loops", "2"))]


def make_local_files(options, local):
    for directory in (local, local / "small", local / "back"):
        directory.mkdir()
    with (local / "big").open("wb") as big:
        for _ in range(options.megabytes):
            big.write(os.urandom(1000) * 1000)
    for number in range(options.files):
        (local / "small" / f"file {number}").write_bytes(os.urandom(SMALL_FILE_BYTES))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="the sluice program, of a release build")
    parser.add_argument("--before", type=pathlib.Path, metavar="PROGRAM",
                        help="another sluice program to compare with, instead of Samba")
    parser.add_argument("--argument", action="append", help="passed to `sluice serve` of the first program (repeatable)")
    parser.add_argument("--loops", type=int, metavar="N",
                        help="event loops of the servers; with one, the client has the other CPU, and ratios vary less")
    parser.add_argument("--quick", action="store_true", help="fewer files and repeats: about a minute")
    parser.add_argument("--only", action="append", help="only workloads whose name contains this (repeatable)")
    parser.add_argument("--directory", default="/dev/shm", help="directory for the shares [default: /dev/shm]")
    parser.add_argument("--repeats", type=int, help="repeats of each measurement [default: 5]")
    parser.add_argument("--seconds", type=float, dest="load_seconds", help="duration of each load [default: 1]")
    options = parser.parse_args()
    options.megabytes, options.times, options.files, options.seconds, options.get_megabytes = \
        (256, 1, 300, 1, 256) if options.quick else (500, 2, 1000, 2, 1024)
    options.repeats = options.repeats or (2 if options.quick else 5)
    options.load_seconds = options.load_seconds or (0.3 if options.quick else 1)
    options.load_sizes, options.load_channels = \
        ((4096, 1 << 20), (1,)) if options.quick else ((4096, 65_536, 1 << 20, 8 << 20), (1, 4))
    families = [big_files, small_files, single_operations, bench_loads, whole_files, idle_sessions, active_beside_idle,
                loop_counts]
    if not shutil.which("smbclient"):
        print("smb: smbclient is not installed (Debian package smbclient)", file=sys.stderr)
        return 0
    with tempfile.TemporaryDirectory(prefix="sluice-bench-", dir=options.directory) as directory, \
            contextlib.ExitStack() as running:
        scratch = pathlib.Path(directory)
        local = scratch / "local"
        make_local_files(options, local)
        servers = [running.enter_context(server) for server in make_subjects(options, scratch)]
        for family in families:
            for workload in family(options, local):
                if any(part in workload.name for part in options.only or [""]):
                    print(f"smb: {workload.name}", file=sys.stderr, flush=True)
                    chosen = [server for server in servers if server.name.removeprefix(BEFORE) in workload.subjects]
                    chosen.sort(key=lambda server: server.name.removeprefix(BEFORE))  # pairs are adjacent
                    print_rows(workload, measure(workload, chosen, options.repeats))
    return 0


if __name__ == "__main__":
    sys.exit(main())
