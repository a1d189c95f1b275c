#!/usr/bin/env python3
"""Measures how long clients wait while the file system of another share is slow, or hangs.

    bench/smb_slow_share.py build/release/sluice/cli/sluice [--quick] [--only hung] [--seconds 3] [--directory /var/tmp]

One server has the share "fast" and others, which are on FUSE file systems. Two clients of "fast" do one operation after the
other, each on a separate connection: open, stat, read, write, flush, list, rename, delete. In the meantime, clients of the
other shares open, read and close files:

    calm          the other file system has no delay
    slow_200ms    each of its calls takes 200 ms
    hung          none of its calls returns
    eight_hung    the same of eight shares
    mount_inside  "fast" remains; in the directory of another local share, a file system is mounted whose calls take 200 ms

Then the server gets SIGTERM. Subjects are sluice and Debian's smbd, which has a process for each connection. One row of JSON
per variant, subject and operation on standard output; a row `all`: the share of time that clients spent in operations of more
than 20 ms, because a client that waits sends few requests in that time; and a row `stop`: the seconds until the server has
ended, and whether its log names a hung share. An operation that takes longer than 10 s ends the variant, and counts as 10 s.
Needs root or a user that may mount FUSE, and python3-fusepy.
"""

import argparse
import contextlib
import json
import math
import multiprocessing
import os
import pathlib
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "interop"))
import smb_attacked  # for its client

CREATE, CLOSE, FLUSH, READ, WRITE, QUERY_DIRECTORY, QUERY_INFO, SET_INFO = 5, 6, 7, 8, 9, 14, 16, 17
RENAME_INFORMATION, DISPOSITION_INFORMATION, ALL_INFORMATION = 10, 13, 18
EVERYDAY_RIGHTS = 0x0013_019F  # read, write, delete; a guest may not change owners
OPERATION_SECONDS_MAX = 10
STOP_SECONDS_MAX = 12
START_SECONDS_MAX = 20
LOAD_CLIENTS = 4
OPERATIONS = ("open", "stat", "read", "write", "flush", "list", "rename", "delete")


class Client(smb_attacked.Attacker):
    """A guest of one share."""

    def __init__(self, port, share, timeout=OPERATION_SECONDS_MAX):
        super().__init__(port, timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.log_on_as_guest(share)

    def checked(self, command, body):
        status, *_, message = self.call(command, body)
        if status != 0:
            raise RuntimeError(f"command {command}: {status:#x}")
        return message

    def open(self, name, options=0):
        text = name.encode("utf-16-le")
        message = self.checked(CREATE, struct.pack("<HBBIQQIIIIIHHII", 57, 0, 0, 2, 0, 0, EVERYDAY_RIGHTS, 0, 7,
                                                   smb_attacked.OPEN_IF, options, 120, len(text), 0, 0) + text)
        return message[64 + 64:64 + 80]

    def close_file(self, file):
        self.checked(CLOSE, struct.pack("<HHI16s", 24, 0, 0, file))

    def stat(self, file):
        self.checked(QUERY_INFO, struct.pack("<HBBIHHIII16s", 41, 1, ALL_INFORMATION, 4096, 0, 0, 0, 0, 0, file) + b"\0")

    def read(self, file):
        self.checked(READ, struct.pack("<HBBIQ16sIIIHH", 49, 0x50, 0, 4096, 0, file, 0, 0, 0, 0, 0) + b"\0")

    def write(self, file):
        data = bytes(4096)
        self.checked(WRITE, struct.pack("<HHIQ16sIIHHI", 49, 112, len(data), 0, file, 0, 0, 0, 0, 0) + data)

    def flush(self, file):
        self.checked(FLUSH, struct.pack("<HHI16s", 24, 0, 0, file))

    def list(self, directory):
        pattern = "*".encode("utf-16-le")
        self.checked(QUERY_DIRECTORY, struct.pack("<HBBI16sHHI", 33, 37, 1, 0, directory, 96, len(pattern), 65536) + pattern)

    def set_information(self, file, which, value):
        self.checked(SET_INFO, struct.pack("<HBBIHHI16s", 33, 1, which, len(value), 96, 0, 0, file) + value)

    def rename(self, file, name):
        text = name.encode("utf-16-le")
        self.set_information(file, RENAME_INFORMATION, struct.pack("<B7xQI", 1, 0, len(text)) + text)

    def delete(self, file):
        self.set_information(file, DISPOSITION_INFORMATION, b"\1")
        self.close_file(file)


def do_round(client, number, into):
    """Does each operation once. Returns the seconds of each, also if one fails."""
    name = f"file {number}"
    directory = file = None

    def timed(operation, work):
        began = time.monotonic()
        try:
            return work()
        except TimeoutError:
            into[operation].append(OPERATION_SECONDS_MAX)
            raise
        finally:
            if sys.exc_info()[0] is None:
                into[operation].append(time.monotonic() - began)

    file = timed("open", lambda: client.open(name))
    directory = timed("open", lambda: client.open("directory", smb_attacked.DIRECTORY_FILE))
    timed("write", lambda: client.write(file))
    timed("stat", lambda: client.stat(file))
    timed("read", lambda: client.read(file))
    timed("flush", lambda: client.flush(file))
    timed("list", lambda: client.list(directory))
    timed("rename", lambda: client.rename(file, name + " renamed"))
    timed("delete", lambda: client.delete(file))
    client.close_file(directory)


def load_share(port, share, path):
    """Opens, reads and closes one file repeatedly, in a separate process."""
    try:
        client = Client(port, share, timeout=600)
        while True:
            file = client.open(path)
            client.read(file)
            client.close_file(file)
    except (OSError, RuntimeError) as error:
        print(f"smb_slow_share: a client of {share} ended: {error}", file=sys.stderr)


class SlowMount:
    """A file system with the delay of `set`, while the `with` block runs."""

    def __init__(self, scratch, name, mount_point=None):
        self.source, self.control = scratch / f"{name}.source", scratch / f"{name}.control"
        self.mount_point = mount_point or scratch / name
        for directory in (self.source, self.mount_point):
            directory.mkdir(exist_ok=True)
            directory.chmod(0o777)
        (self.source / "file").write_bytes(bytes(4096))
        (self.source / "file").chmod(0o666)
        self.set("0")

    def set(self, delay):
        fresh = self.control.with_suffix(".new")
        fresh.write_text(delay, encoding="utf-8")
        fresh.rename(self.control)

    def __enter__(self):
        script = pathlib.Path(__file__).resolve().parent / "slow_file_system.py"
        self._process = subprocess.Popen([python_with_fuse(), "-B", str(script), str(self.source), str(self.mount_point),
                                          str(self.control)], stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not os.path.ismount(self.mount_point):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise RuntimeError("the FUSE file system cannot be mounted")
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.set("0")  # releases calls in the kernel
        self._process.kill()
        self._process.wait()
        unmount = shutil.which("fusermount") or shutil.which("fusermount3")
        subprocess.run([unmount, "-u", "-z", str(self.mount_point)], stderr=subprocess.DEVNULL, check=False)


def python_with_fuse():
    for python in (sys.executable, "/usr/bin/python3"):
        probe = [python, "-c", "try:\n import fuse\nexcept ImportError:\n import fusepy"]
        if subprocess.run(probe, stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return python
    raise SystemExit("smb_slow_share: Debian's package python3-fusepy is not installed")


class Server:
    """A process that serves `shares`, a dictionary of directories, to guests."""

    def __init__(self, state):
        self.state, self.log_file = state, state / "log"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def start(self, command):
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True)
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            time.sleep(0.05)
        raise RuntimeError(f"{self.name} did not start: {self.log()[-500:]}")

    def log(self):
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def stop(self):
        """Returns the seconds until it has ended after SIGTERM, or None."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            return None
        return time.monotonic() - began

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)


class Sluice(Server):
    name = "sluice"

    def __init__(self, state, shares, program):
        super().__init__(state)
        self.start([str(program), "serve", *(f"{name}={path}" for name, path in shares.items()), "--listen", "127.0.0.1",
                    "--port", str(self.port), "--users-file", str(state / "users"), "--status-socket",
                    str(state / "status"), "--guest", "--guest-write", "--no-signing",
                    "--loops", "2"])


class Samba(Server):
    name = "samba"

    def __init__(self, state, shares, _):
        super().__init__(state)
        directories = {key: key.split()[0] for key in ("private dir", "lock directory", "state directory", "cache directory",
                                                   "pid directory", "ncalrpc dir")}
        for directory in directories.values():
            (state / directory).mkdir()
        lines = ["[global]", "server role = standalone server", f"smb ports = {self.port}", "interfaces = lo",
                 "bind interfaces only = yes", "disable netbios = yes", "load printers = no", "disable spoolss = yes",
                 "printcap name = /dev/null", "passdb backend = tdbsam", "map to guest = Bad User",
                 f"log file = {self.log_file}", "log level = 0", "oplocks = no",
                 *(f"{key} = {state}/{directory}" for key, directory in directories.items())]
        for name, path in shares.items():
            lines += [f"[{name}]", f"path = {path}", "read only = no", "guest ok = yes", "force user = root"]
        configuration = state / "smb.conf"
        configuration.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.start(["smbd", "--foreground", "--no-process-group", "-s", str(configuration)])


def percentile(values, share):
    """Returns the smallest value that at least this share of all values does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def print_row(row):
    print(json.dumps({"benchmark": "smb_slow_share"} | {key: float(f"{value:.4g}") if isinstance(value, float) else value
                                                       for key, value in row.items()}), flush=True)


def share_of_long_waits(took):
    """Returns the share of time in operations of more than 20 ms: quick ones in between do not hide it."""
    all_seconds = [seconds for each in took.values() for seconds in each]
    return sum(seconds for seconds in all_seconds if seconds > 0.02) / sum(all_seconds)


def measure(server, clients, seconds):
    """Returns the seconds of each operation of the clients, which take turns; each does at least one round."""
    took = {name: [] for name in OPERATIONS}
    ends = time.monotonic() + seconds
    number = 0
    try:
        while number < len(clients) or time.monotonic() < ends:
            do_round(clients[number % len(clients)], number, took)
            number += 1
    except TimeoutError:
        print(f"smb_slow_share: {server.name}: an operation took {OPERATION_SECONDS_MAX} s", file=sys.stderr)
    return took


def run_variant(variant, make, options, scratch):
    """Serves, loads, measures, stops. Prints the rows."""
    local = scratch / "fast"
    local.mkdir()
    (scratch / "outer").mkdir()
    (local / "directory").mkdir()
    for directory in (local, local / "directory", scratch / "outer"):
        directory.chmod(0o777)
    state = scratch / "state"
    state.mkdir()
    inside = variant == "mount_inside"
    count = 8 if variant == "eight_hung" else 1
    with contextlib.ExitStack() as mounted:
        mounts = [mounted.enter_context(SlowMount(scratch, f"slow{i}", scratch / "outer" / "inner" if inside else None))
                  for i in range(count)]
        shares = {"fast": local} | ({"outer": scratch / "outer"} if inside else
                                    {f"slow{i}": one.mount_point for i, one in enumerate(mounts)})
        server = make(state, shares, options.program)
        clients = []
        try:
            targets = [("outer", "inner\\file")] if inside else [(f"slow{i}", "file") for i in range(count)]
            clients = [multiprocessing.Process(target=load_share, args=(server.port, share, path), daemon=True)
                       for share, path in targets for _ in range(LOAD_CLIENTS)]
            measured = [Client(server.port, "fast") for _ in range(2)]
            for each in clients:
                each.start()
            time.sleep(0.5)
            delay = {"calm": "0", "slow_200ms": "0.2", "mount_inside": "0.2"}.get(variant, "hang")
            for each in mounts:
                each.set(delay)
            time.sleep(1)
            took = measure(server, measured, options.seconds)
            for name in OPERATIONS:
                if not took[name]:
                    continue
                ms = [each * 1000 for each in took[name]]
                print_row({"variant": variant, "subject": server.name, "operation": name, "unit": "ms", "samples": len(ms),
                           "p50": statistics.median(ms), "p99": percentile(ms, 0.99), "max": max(ms)})
            before = len(server.log())
            print_row({"variant": variant, "subject": server.name, "operation": "all", "unit": "share of time",
                       "waited_over_20ms": share_of_long_waits(took)})
            seconds = server.stop()
            names = [name for name in shares if name != "fast"]
            print_row({"variant": variant, "subject": server.name, "operation": "stop", "unit": "s",
                       "seconds": seconds, "ended": seconds is not None,
                       "log_names_share": any(name in server.log()[before:] for name in names)})
        finally:
            for each in clients:
                each.kill()
            for each in mounts:
                each.set("0")
            server.kill()


VARIANTS = ("calm", "slow_200ms", "hung", "eight_hung", "mount_inside")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="the sluice program, of a release build")
    parser.add_argument("--quick", action="store_true", help="one slow and one hung share, for a second each")
    parser.add_argument("--only", action="append", choices=VARIANTS, help="only this variant (repeatable)")
    parser.add_argument("--seconds", type=float, help="duration of each measurement [default: 3]")
    parser.add_argument("--directory", help="directory for the shares [default: the system's temporary directory]")
    parser.add_argument("--no-samba", action="store_true", help="sluice only")
    options = parser.parse_args()
    options.seconds = options.seconds or (1 if options.quick else 3)
    subjects = [Sluice]
    if not options.no_samba and shutil.which("smbd"):
        subjects.append(Samba)
    elif not options.no_samba:
        print("smb_slow_share: smbd is not installed (Debian package samba): skipping Samba", file=sys.stderr)
    for variant in options.only or (("slow_200ms", "hung") if options.quick else VARIANTS):
        for make in subjects:
            print(f"smb_slow_share: {variant}, {make.name}", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(prefix="sluice-slow-", dir=options.directory) as scratch:
                path = pathlib.Path(scratch)
                path.chmod(0o755)
                run_variant(variant, make, options, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
