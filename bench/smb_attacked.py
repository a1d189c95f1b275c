#!/usr/bin/env python3
"""Measures how much an attacker slows down an honest client of `sluice serve`.

    bench/smb_attacked.py build/release/sluice/cli/sluice [--only locks] [--pairs 5] [--seconds 3] [--directory /dev/shm]

The honest client is `sluice bench smb --workload get` at 127.0.0.1: it opens a file, which returns its attributes, reads and
closes it, one request at a time. Its p99 latency is measured without and with an attack, interleaved. The attacker is a
separate process at 127.0.0.2, under SCHED_IDLE, because a real attacker has a separate machine. An attack continues while
the latency is measured:

    idle_connections     connects, sends nothing, and connects again when the server closes a connection
    unfinished_sessions  starts sessions and never authenticates
    passwords            sends wrong passwords over many connections and abandons each attempt after 0.1 s
    opens                opens files until the server rejects that, and keeps trying
    locks                locks bytes until the server rejects that, and keeps trying
    watches              watches a directory many times, queries none of the changes, and changes it
    partial_frames       sends requests of 8 MiB without their end

Attackers that need a session have a guest session. One row of JSON per attack on standard output; progress on standard
error.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import resource
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "interop"))
import served  # noqa: E402  (found through the line above)

ATTACKER_ADDRESS = "127.0.0.2"
READY_SECONDS_MAX = 60
SETTLE_SECONDS = 0.5
FILES = 64
FILE_BYTES = 4096

NEGOTIATE, SESSION_SETUP, TREE_CONNECT, CREATE, LOCK, CHANGE_NOTIFY = 0, 1, 3, 5, 10, 15
DIALECT_3_0_2 = 0x0302
MORE_PROCESSING_REQUIRED = 0xC000_0016
PENDING = 0x103
NTLM_FLAGS = 0xE208_8297
NTLM_ANONYMOUS = 0x800
GENERIC_ALL = 0x001F_01FF
OPEN_IF = 3
DIRECTORY_FILE = 1


class Attacker:
    """A connection that implements as much of SMB 3.0.2 as an attack needs, unsigned."""

    def __init__(self, port, timeout=5):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout,
                                               source_address=(ATTACKER_ADDRESS, 0))
        self.next_id, self.session, self.tree = 0, 0, 0

    def close(self):
        self.socket.close()

    def send(self, command, body, charge=1):
        """Returns the message ID."""
        header = struct.pack("<4sHHIHHIIQIIQ16x", b"\xfeSMB", 64, charge, 0, command, 64, 0, 0, self.next_id, 0xFEFF,
                             self.tree, self.session)
        self.socket.sendall(struct.pack(">I", len(header) + len(body)) + header + body)
        self.next_id += charge
        return self.next_id - charge

    def receive(self):
        """Returns status, message ID, session ID, tree ID, and the complete message."""
        (length,) = struct.unpack(">I", self._exactly(4))
        message = self._exactly(length)
        (status,) = struct.unpack_from("<I", message, 8)
        message_id, _, tree, session = struct.unpack_from("<QIIQ", message, 24)
        return status, message_id, session, tree, message

    def call(self, command, body):
        wanted = self.send(command, body)
        while True:
            answer = self.receive()
            if answer[1] == wanted and answer[0] != PENDING:
                return answer

    def _exactly(self, count):
        parts = bytearray()
        while len(parts) != count:
            part = self.socket.recv(count - len(parts))
            if not part:
                raise ConnectionError("closed by the server")
            parts += part
        return bytes(parts)

    def negotiate(self):
        body = struct.pack("<HHHHI16sQH", 36, 1, 1, 0, 0, os.urandom(16), 0, DIALECT_3_0_2)
        self.call(NEGOTIATE, body)
        return self

    def set_up_session(self, token):
        body = struct.pack("<HBBIIHHQ", 25, 0, 1, 0, 0, 88, len(token), 0) + token
        return self.call(SESSION_SETUP, body)

    def begin_session(self):
        self.session = 0
        status, _, session, _, _ = self.set_up_session(
            struct.pack("<8sII16x", b"NTLMSSP\0", 1, NTLM_FLAGS & ~NTLM_ANONYMOUS))
        self.session = session
        return status

    def prove(self, user=None):
        """Authenticates with a wrong password of a user, or anonymously without a user name."""
        name = (user or "").encode("utf-16-le")
        blob = b"\1\1" + bytes(6) + bytes(8) + os.urandom(8) + bytes(8)
        proof = os.urandom(16) + blob if user else b""
        lm = bytes(24) if user else b"\0"
        flags = (NTLM_FLAGS if user else NTLM_FLAGS | NTLM_ANONYMOUS) & ~0x4000_0000
        fields, payload, offset = b"", b"", 64
        for part in (lm, proof, b"", name, b"", b""):
            fields += struct.pack("<HHI", len(part), len(part), offset + len(payload))
            payload += part
        return self.set_up_session(b"NTLMSSP\0" + struct.pack("<I", 3) + fields + struct.pack("<I", flags) + payload)[0]

    def log_on_as_guest(self, share="share"):
        self.negotiate()
        if self.begin_session() != MORE_PROCESSING_REQUIRED or self.prove() != 0:
            raise RuntimeError("the server does not accept guests")
        path = f"\\\\127.0.0.1\\{share}".encode("utf-16-le")
        status, _, _, tree, _ = self.call(TREE_CONNECT, struct.pack("<HHHH", 9, 0, 72, len(path)) + path)
        if status != 0:
            raise RuntimeError(f"tree connect: {status:#x}")
        self.tree = tree
        return self

    def create(self, name, options=0):
        """Returns the file ID, or None if the server rejects the open."""
        text = name.encode("utf-16-le")
        body = struct.pack("<HBBIQQIIIIIHHII", 57, 0, 0, 2, 0, 0, GENERIC_ALL, 0, 7, OPEN_IF, options, 120, len(text), 0,
                           0) + text
        status, _, _, _, message = self.call(CREATE, body)
        return message[64 + 64:64 + 80] if status == 0 else None

    def lock(self, file, offset):
        body = struct.pack("<HHI16sQQII", 48, 1, 0, file, offset, 1, 0x12, 0)
        return self.call(LOCK, body)[0]

    def watch(self, directory):
        return self.send(CHANGE_NOTIFY, struct.pack("<HHI16sII", 32, 1, 4096, directory, 0xFFF, 0))


def idle_connections(options, ready):
    idle = []
    while True:
        for each in list(idle):
            with contextlib.suppress(BlockingIOError):
                if not each.recv(1):
                    idle.remove(each)
                    each.close()
        while len(idle) < 600:
            one = socket.create_connection(("127.0.0.1", options.port), source_address=(ATTACKER_ADDRESS, 0))
            one.setblocking(False)
            idle.append(one)
        ready()


def unfinished_sessions(options, ready):
    attackers = []
    for number in itertools.count():
        if len(attackers) == 40:
            attackers.pop(0).close()
            ready()
        with contextlib.suppress(OSError):
            attackers.append(Attacker(options.port).negotiate())
            for _ in range(64):
                if attackers[-1].begin_session() != MORE_PROCESSING_REQUIRED:
                    break


def passwords(options, ready):
    waiting = []
    for number in itertools.count():
        if number == 50:
            ready()
        with contextlib.suppress(OSError):
            one = Attacker(options.port, timeout=0.1).negotiate()
            waiting.append(one)
            one.begin_session()
            one.prove(served.USER)
        if len(waiting) > 8:
            waiting.pop(0).close()


def opens(options, ready):
    one = Attacker(options.port).log_on_as_guest()
    for number in itertools.count():
        if one.create(f"open {number}") is None:
            ready()


def locks(options, ready):
    one = Attacker(options.port).log_on_as_guest()
    offset = 0
    for number in itertools.count():
        file = one.create(f"locked {number}")
        while file is not None and one.lock(file, offset) == 0:
            offset += 2
        if file is None or offset > 20_000:
            ready()


def watches(options, ready):
    one = Attacker(options.port).log_on_as_guest()
    one.create("watched", DIRECTORY_FILE)
    for _ in range(400):
        directory = one.create("watched", DIRECTORY_FILE)
        if directory is None:
            break
        one.watch(directory)
    for number in itertools.count():
        one.create("watched\\" + "n" * 100 + str(number))
        if number == 20:
            ready()


def partial_frames(options, ready):
    attackers = []
    frame = struct.pack(">I", 8 << 20) + bytes((8 << 20) - 1)
    while True:
        for each in list(attackers):
            each.socket.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                if not each.socket.recv(1 << 16):
                    attackers.remove(each)
            each.socket.setblocking(True)
        if len(attackers) < 400:
            with contextlib.suppress(OSError, RuntimeError):
                attackers.append(Attacker(options.port).log_on_as_guest())
                attackers[-1].socket.sendall(frame)
        else:
            time.sleep(0.01)
        if len(attackers) > 100:
            ready()


ATTACKS = (idle_connections, unfinished_sessions, passwords, opens, locks, watches, partial_frames)


def attack(options):
    """Runs until it is killed. Prints a line once the attack has its full effect."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # runs only on an idle CPU
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    announced = []

    def ready():
        if not announced:
            announced.append(True)
            print("ready", flush=True)

    next(each for each in ATTACKS if each.__name__ == options.attack)(options, ready)


@contextlib.contextmanager
def attacking(name, port):
    process = subprocess.Popen([sys.executable, __file__, "", "--attack", name, "--port", str(port)],
                               stdout=subprocess.PIPE, text=True)
    try:
        began = time.monotonic()
        if process.stdout.readline().strip() != "ready" or time.monotonic() - began > READY_SECONDS_MAX:
            raise RuntimeError(f"{name}: the attack does not reach its full effect")
        yield
        if process.poll() is not None:
            raise RuntimeError(f"{name}: the attacker ended")
    finally:
        process.kill()
        process.wait()


def honest_p99_us(options, server, password):
    done = subprocess.run(
        [options.program, "bench", "smb", f"smb://{served.USER}@127.0.0.1:{server.port}/share", "--workload", "get",
         "--depth", "1", "--files", str(FILES), "--size", f"{FILE_BYTES}b", "--seconds", str(options.seconds), "--keep",
         "--json", "--password-file", str(password)], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the honest client failed: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])["p99_us"]


def measure(options, name, scratch):
    directory = scratch / name
    directory.mkdir()
    password = scratch / "password"
    password.write_text(served.PASSWORD + "\n", encoding="utf-8")
    calm, attacked = [], []
    with served.Server(options.program, directory, arguments=("--guest", "--guest-write", "--no-signing", "--loops", "2")) as server:
        honest_p99_us(options, server, password)  # creates the files
        for pair in range(options.pairs):
            calm.append(honest_p99_us(options, server, password))
            with attacking(name, server.port):
                attacked.append(honest_p99_us(options, server, password))
            print(f"{name} {pair + 1}/{options.pairs}: {calm[-1]:.0f} us, attacked {attacked[-1]:.0f} us", file=sys.stderr)
            time.sleep(SETTLE_SECONDS)
    ratios = [under / without for without, under in zip(calm, attacked)]
    return {"benchmark": "smb_attacked", "attack": name, "pairs": options.pairs, "seconds": options.seconds,
            "p99_us_calm": statistics.median(calm), "p99_us_attacked": statistics.median(attacked),
            "ratio": statistics.median(ratios), "ratio_min": min(ratios), "ratio_max": max(ratios)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--only", action="append", choices=[each.__name__ for each in ATTACKS])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--directory", help="directory for the served files [default: the system's temporary directory]")
    parser.add_argument("--attack", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack:
        attack(options)
        return
    with tempfile.TemporaryDirectory(prefix="sluice-attacked-", dir=options.directory) as scratch:
        for each in ATTACKS:
            if not options.only or each.__name__ in options.only:
                print(json.dumps(measure(options, each.__name__, pathlib.Path(scratch))), flush=True)


if __name__ == "__main__":
    main()
