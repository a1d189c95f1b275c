#!/usr/bin/env python3
"""Kills `sluice serve --continuous-availability on` at random moments, and checks what a persistent handle promises.

usage: kill_storm_test.py SLUICE-PROGRAM [KILLS [SEED]]

An owner has a persistent handle with a lease on each of three files. It writes, locks, renames and marks for deletion,
with up to one request for each file in flight, until the server ends. A request without a reply may have taken effect
or not; everything that was acknowledged must hold after the restart, and no more. Some servers are killed while they
start. The seed decides the requests and most delays of the kills; what the server does then differs from run to run.
"""

import collections
import dataclasses
import logging
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import python_clients  # noqa: F401  (must be first: the next modules may be only in its
                       # environment)
import served

from smbprotocol.connection import Capabilities, Connection  # noqa: E402
from smbprotocol.create_contexts import (SMB2CreateContextRequest, SMB2CreateDurableHandleReconnectV2,  # noqa: E402
                                         SMB2CreateDurableHandleRequestV2, SMB2CreateDurableHandleResponseV2,
                                         SMB2CreateRequestLeaseV2, SMB2CreateResponseLeaseV2)
from smbprotocol.exceptions import SMBException, SMBResponseException  # noqa: E402
from smbprotocol.file_info import FileDispositionInformation, FileRenameInformation  # noqa: E402
from smbprotocol.open import (CreateDisposition, ImpersonationLevel, LockFlags, Open,  # noqa: E402
                              RequestedOplockLevel, ShareAccess, SMB2LockElement, SMB2SetInfoRequest)
from smbprotocol.session import Session  # noqa: E402
from smbprotocol.tree import TreeConnect  # noqa: E402

SUCCESS, PENDING, END_OF_FILE = 0, 0x103, 0xc0000011
FILE_NOT_AVAILABLE, LOCK_NOT_GRANTED, DELETE_PENDING, NAME_NOT_FOUND = 0xc0000467, 0xc0000055, 0xc0000056, 0xc0000034
READ, READ_WRITE_AND_DELETE = 0x8000_0000, 0xc001_0000
PERSISTENT = 2
CACHED = 1 | 2  # read and handle: opens of others for reading do not break them

OTHER_USER, OTHER_PASSWORD = "visitor", "River-Tower-4"
FILES = 3
PLACES = range(100, 108)  # of locks
ANSWER_SECONDS_MAX = 20
START_KILL_SECONDS_MAX = 0.03
STARTS_KILLED = (1, 1, 1, 2, 5)  # in a row
# After three servers in a row that have ended in the restoration, the next one drops the handles.
RESTORATIONS_KILLED_MAX = 2
ATTEMPTS_AT = 64  # in the journal
PROGRESS = 25


class Disconnected(Exception):
    """The server has closed the connection before its reply."""


class Client(Connection):
    """A connection that returns each reply that has come, although the server has ended since."""

    def send(self, *arguments, **named):
        return self._try(super().send, *arguments, **named)

    def send_compound(self, *arguments, **named):
        return self._try(super().send_compound, *arguments, **named)

    @staticmethod
    def _try(send, *arguments, **named):
        try:
            return send(*arguments, **named)
        except (SMBException, OSError) as closed:
            raise Disconnected from closed

    def receive(self, request, wait=True, timeout=None, resolve_symlinks=True):
        end = time.monotonic() + ANSWER_SECONDS_MAX
        while True:
            is_alive = self._t_worker.is_alive()
            is_answered = request.response_event.wait(0.1) and request.response is not None
            status = request.response["status"].get_value() if is_answered else PENDING
            if status == SUCCESS:
                self.outstanding_requests.pop(request.message["message_id"].get_value(), None)
                return request.response
            if status != PENDING:
                raise SMBResponseException(request.response)
            if not is_alive:
                raise Disconnected
            assert time.monotonic() < end, "the server does not reply"


def connect(port, client, user, password):
    connection = Client(client, "127.0.0.1", port)
    connection.client_capabilities |= Capabilities.SMB2_GLOBAL_CAP_PERSISTENT_HANDLES
    try:
        connection.connect(timeout=ANSWER_SECONDS_MAX)
    except (SMBException, OSError, ValueError) as refused:
        raise Disconnected from refused
    session = Session(connection, user, password, require_encryption=False)
    session.connect()
    tree = TreeConnect(session, r"\\127.0.0.1\share")
    tree.connect()
    return tree


def context(name, content):
    made = SMB2CreateContextRequest()
    made["buffer_name"] = name
    made["buffer_data"] = content
    return made


def create(tree, name, access, disposition, contexts=None):
    """Returns the open and the contexts of the reply."""
    file = Open(tree, name)
    shared = ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE | ShareAccess.FILE_SHARE_DELETE
    oplock = RequestedOplockLevel.SMB2_OPLOCK_LEVEL_LEASE if contexts else RequestedOplockLevel.SMB2_OPLOCK_LEVEL_NONE
    replied = file.create(ImpersonationLevel.Impersonation, access, 0, shared, disposition, 0, create_contexts=contexts,
                          oplock_level=oplock)
    return file, replied or []


def try_open(tree, name):
    """Returns the status of an open for reading that shares all access, and that does not stay."""
    try:
        create(tree, name, READ, CreateDisposition.FILE_OPEN)[0].close()
    except SMBResponseException as refused:
        return refused.status
    return SUCCESS


@dataclasses.dataclass(frozen=True)
class State:
    name: str
    data: bytes = b""
    locks: frozenset = frozenset()
    is_delete_pending: bool = False


class File:
    """A file with a persistent handle, and the states that it can have after the replies so far."""

    def __init__(self, number):
        self.names = (f"f{number}", f"g{number}")
        self.acknowledged = State(self.names[0])
        self.possible = [self.acknowledged]
        self.handle = None
        self._guid, self._lease_key = uuid.uuid4(), uuid.uuid4().bytes

    def _contexts(self, name, durable):
        durable["create_guid"] = self._guid
        durable["flags"] = PERSISTENT
        lease = SMB2CreateRequestLeaseV2()
        lease["lease_key"] = self._lease_key
        lease["lease_state"] = CACHED
        lease["parent_lease_key"] = bytes(16)
        lease["epoch"] = bytes(2)
        return [context(name, durable), context(b"RqLs", lease)]

    def _keep(self, opened):
        self.handle, replied = opened
        leases = [each["lease_state"].get_value() for each in replied if isinstance(each, SMB2CreateResponseLeaseV2)]
        assert leases == [CACHED], f"the lease of {self.acknowledged.name} is {leases}"
        return replied

    def open(self, tree):
        replied = self._keep(create(tree, self.acknowledged.name, READ_WRITE_AND_DELETE, CreateDisposition.FILE_OPEN_IF,
                                    self._contexts(b"DH2Q", SMB2CreateDurableHandleRequestV2())))
        flags = [each["flags"].get_value() for each in replied if isinstance(each, SMB2CreateDurableHandleResponseV2)]
        assert flags == [PERSISTENT], f"no persistent handle: {flags}"

    def reconnect(self, tree):
        back = SMB2CreateDurableHandleReconnectV2()
        back["file_id"] = self.handle.file_id
        self._keep(create(tree, self.acknowledged.name, READ_WRITE_AND_DELETE, CreateDisposition.FILE_OPEN_IF,
                          self._contexts(b"DH2C", back)))

    def narrow(self, seen, is_so):
        """Drops the states that contradict what the client has seen."""
        left = [each for each in self.possible if is_so(each)]
        assert left, f"{seen}, which contradicts {self.possible}"
        self.possible = left

    def check_grace(self, other):
        """Checks, before its client is back, that no other user opens the file by any name."""
        for name in self.names:
            status = try_open(other, name)
            seen = f"another user's open of {name} returned {status:#x} before the reconnect"
            if status == NAME_NOT_FOUND:
                self.narrow(seen, lambda each: each.name != name)
                continue
            assert status in (FILE_NOT_AVAILABLE, DELETE_PENDING), seen
            self.narrow(seen, lambda each: each.name == name)
            if status == DELETE_PENDING:
                self.narrow(seen, lambda each: each.is_delete_pending)

    def check_owned(self):
        """Reads the state by the handle. A kill in between leaves several possible states."""
        try:
            data = self.handle.read(0, 8)
        except SMBResponseException as refused:
            assert refused.status == END_OF_FILE, hex(refused.status)
            data = b""
        self.narrow(f"{self.acknowledged.name} has {data}", lambda each: each.data == data)
        for place in PLACES:
            before = self.possible
            locked = [dataclasses.replace(each, locks=each.locks | {place}) for each in before]
            self.possible = before + [each for each in locked if each not in before]
            is_granted = try_lock(self.handle, place)
            self.possible = before
            self.narrow(f"the lock of {self.acknowledged.name} at {place} was {'not ' * (not is_granted)}free",
                        lambda each: (place in each.locks) != is_granted)
            if is_granted:
                self.possible = before = self.possible + [
                    dataclasses.replace(each, locks=each.locks | {place}) for each in self.possible]
                self.handle.lock([lock_element(place, False)])
                self.possible = [each for each in before if place not in each.locks]

    def check_shared(self, other):
        """Checks, after the reconnect, that another user can open the file. Returns whether it could, and whether a
        request without a reply had taken effect."""
        name = self.possible[0].name
        status = try_open(other, name)
        seen = f"another user's open of {name} returned {status:#x} after the reconnect"
        assert status in (SUCCESS, DELETE_PENDING), seen
        self.narrow(seen, lambda each: each.is_delete_pending == (status == DELETE_PENDING))
        assert len(self.possible) == 1, self.possible
        had_effect = self.possible[0] != self.acknowledged
        self.acknowledge(self.possible[0])
        return status == SUCCESS, had_effect

    def next_request(self, chance):
        """Returns a request, and the state after it."""
        now, = self.possible
        kind = chance.choices(("write", "lock", "rename", "delete"), (3, 4, 2, 1 + 4 * now.is_delete_pending))[0]
        if kind == "write" or kind == "rename" and now.is_delete_pending:
            data = b"%08d" % chance.randrange(10**8)
            return self.handle.write(data, 0, send=False)[0], dataclasses.replace(now, data=data)
        if kind == "lock":
            place = chance.choice(PLACES)
            message = self.handle.lock([lock_element(place, place not in now.locks)], send=False)[0]
            return message, dataclasses.replace(now, locks=now.locks ^ {place})
        if kind == "rename":
            information = FileRenameInformation()
            target = self.names[now.name == self.names[0]]
            information["file_name"] = target
            return set_information(self.handle, information), dataclasses.replace(now, name=target)
        return self.set_deletion(not now.is_delete_pending)

    def set_deletion(self, is_pending):
        information = FileDispositionInformation()
        information["delete_pending"] = is_pending
        return set_information(self.handle, information), dataclasses.replace(self.possible[0],
                                                                              is_delete_pending=is_pending)

    def acknowledge(self, state):
        self.acknowledged = state
        self.possible = [state]


def set_information(handle, information):
    request = SMB2SetInfoRequest()
    request["info_type"] = information.INFO_TYPE
    request["file_info_class"] = information.INFO_CLASS
    request["file_id"] = handle.file_id
    request["buffer"] = information.pack()
    return request


def lock_element(place, locks):
    element = SMB2LockElement()
    element["offset"] = place
    element["length"] = 1
    element["flags"] = (LockFlags.SMB2_LOCKFLAG_EXCLUSIVE_LOCK | LockFlags.SMB2_LOCKFLAG_FAIL_IMMEDIATELY if locks else
                        LockFlags.SMB2_LOCKFLAG_UNLOCK)
    return element


def try_lock(handle, place):
    try:
        handle.lock([lock_element(place, True)])
    except SMBResponseException as refused:
        assert refused.status == LOCK_NOT_GRANTED, hex(refused.status)
        return False
    return True


class Boundary:
    """An estimate of the time that an event takes. It finds moments close to it, on both sides."""

    def __init__(self, seconds, step):
        self._seconds, self._step = seconds, step

    def moment(self, chance):
        return max(0, self._seconds + chance.uniform(-2, 2) * self._step)

    def learn(self, was_late):
        """Takes into account whether the last moment was after the event."""
        self._seconds = max(0, self._seconds + (-self._step if was_late else self._step))


class Victim(served.Server):
    """A server that ends while its clients work."""

    is_ending = False

    def end(self, how):
        self.is_ending = self._was_killed = True
        os.kill(self.pid, how)
        self._process.wait(served.STOP_SECONDS_MAX)

    def end_after(self, how, seconds):
        """Continues it, after pause(), and ends it when that time has passed."""
        end = time.perf_counter() + seconds
        os.kill(self.pid, signal.SIGCONT)
        while time.perf_counter() < end:  # a sleep is too long
            pass
        self.end(how)

    def pause(self):
        os.kill(self.pid, signal.SIGSTOP)

    def check_end(self, how):
        status = self._process.poll()
        assert status == (0 if how == signal.SIGTERM else -how), f"the server ended with status {status}"

    def kill_while_it_starts(self, seconds):
        """Returns its log."""
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log,
                                             stderr=subprocess.STDOUT)
        time.sleep(seconds)
        self.end(signal.SIGKILL)
        self.check_end(signal.SIGKILL)
        log = self.log()
        self._kill()
        return log


class Storm:
    def __init__(self, program, chance, scratch):
        (scratch / "served").mkdir()
        self._program, self._chance, self._scratch = program, chance, scratch
        self._files = [File(number) for number in range(FILES)]
        self._owner = uuid.uuid4()
        self._restoration = Boundary(START_KILL_SECONDS_MAX / 8, 0.0002)
        self._reply = Boundary(0.0002, 0.00002)
        self.kills = 0
        self.counts = collections.Counter()

    def _server(self, availability="on"):
        options = ("--continuous-availability", availability, "--state-directory", str(self._scratch / "state"),
                   "--user", f"{OTHER_USER}%{OTHER_PASSWORD}")
        return Victim(self._program, self._scratch / "served", arguments=options)

    def _connect_owner(self, server):
        return connect(server.port, self._owner, served.USER, served.PASSWORD)

    @staticmethod
    def _connect_other(server):
        return connect(server.port, uuid.uuid4(), OTHER_USER, OTHER_PASSWORD)

    def _count(self, what):
        self.counts[what] += 1

    def _count_kill(self):
        self.kills += 1
        if self.kills % PROGRESS == 0:
            print(f"{self.kills} kills", flush=True)

    def begin(self):
        with self._server() as server:
            tree = self._connect_owner(server)
            for file in self._files:
                file.open(tree)
            server.kill()
        self._count_kill()

    def round(self):
        """One server, or several of which all but the last are killed while they start."""
        if self._chance.random() < 1 / 8:
            for _ in range(self._chance.choice(STARTS_KILLED)):
                if self._attempts() < RESTORATIONS_KILLED_MAX:
                    self._kill_start()
        how = signal.SIGTERM if self._chance.random() < 1 / 8 else signal.SIGKILL
        # By the timer, while the clients connect or work, or by the owner while requests are handled. The
        # timer hits few of them, because the server is faster than this client.
        moment = self._chance.choice(("return", "work", "request", "request"))
        delay = self._chance.uniform(0, 0.3 if moment == "return" else 0.1)
        with self._server() as server:
            killer = threading.Timer(delay, server.end, [how])
            if moment == "return":
                killer.start()
            try:
                tree = self._return(server)
                if moment == "work":
                    killer.start()
                self._work(tree, server, how, self._chance.randrange(10) if moment == "request" else None)
            except Exception as fault:
                if not (isinstance(fault, Disconnected) and server.is_ending):
                    print(f"after {self.kills} kills; the server's log ends:\n{server.log_tail()}")
                    raise
            finally:
                killer.cancel()
                if killer.ident is not None:
                    killer.join()
            server.check_end(how)
        if how == signal.SIGTERM:
            self._count("ends by SIGTERM")
        self._count_kill()

    def _attempts(self):
        """Returns how many restorations have begun since the last one that was completed."""
        files = [each for each in (self._scratch / "state").rglob("*") if each.is_file() and each.stat().st_size != 0]
        assert len(files) == 1, f"the journals are {files}"
        return struct.unpack_from("<I", files[0].read_bytes(), ATTEMPTS_AT)[0]

    def _kill_start(self):
        """Kills a server at any moment of its start, or near the restoration. Earlier kills show when that is."""
        is_near = self._chance.random() < 2 / 3
        anywhere = self._chance.uniform(0, START_KILL_SECONDS_MAX)
        before = self._attempts()
        log = self._server().kill_while_it_starts(self._restoration.moment(self._chance) if is_near else anywhere)
        self._count_kill()
        if self._attempts() > before:
            return self._count("kills of a starting server in the restoration")
        is_after = self._attempts() < before or "persistent handles wait for their clients" in log
        if is_near:
            self._restoration.learn(is_after)
        self._count(f"kills of a starting server {'after' if is_after else 'before'} the restoration")

    def _return(self, server):
        """The owner and the other user connect to a new server, and check it."""
        other = self._connect_other(server)
        for file in self._files:
            file.check_grace(other)
        tree = self._connect_owner(server)
        for file in self._files:
            file.reconnect(tree)
        for file in self._files:
            file.check_owned()
        for file in self._files:
            is_opened, had_effect = file.check_shared(other)
            self.counts["opens by the other user"] += is_opened
            self.counts["requests without a reply that took effect"] += had_effect
        return tree

    def _work(self, tree, server, how, last):
        """Requests, one in flight for each file, until the server ends: by the timer, or in batch number `last`."""
        unanswered = number = 0
        while unanswered == 0:
            # All requests of the last batch wait for the server, so that it ends while it handles them.
            if number == last:
                server.pause()
            sent = self._send_batch(tree, is_compound=number != 0 and self._chance.random() < 0.5)
            if number == last:
                server.end_after(how, self._reply.moment(self._chance))
            for file, state, request in sent:
                try:
                    tree.session.connection.receive(request)
                    file.acknowledge(state)
                except Disconnected:
                    unanswered += 1
            unanswered += len(sent) < FILES
            if number == last:
                self._reply.learn(was_late=unanswered == 0)
            number += 1
        self._count("kills of a working server")
        self.counts["requests without a reply"] += unanswered
        raise Disconnected

    def _send_batch(self, tree, is_compound):
        """Sends a request for each file, and returns it with the file and the state after it."""
        batch = []
        for file in self._files:
            batch.append((file, *file.next_request(self._chance)))
        session, sent = tree.session, []
        try:
            if is_compound:  # one reply to all of them, so that more effects come before it
                for file, _, state in batch:
                    file.possible.append(state)
                requests = session.connection.send_compound([message for _, message, _ in batch], session.session_id,
                                                            tree.tree_connect_id)
                return [(file, state, request) for (file, _, state), request in zip(batch, requests)]
            for file, message, state in batch:
                file.possible.append(state)
                sent.append((file, state, self._send(tree, message)))
        except Disconnected:
            pass
        return sent

    @staticmethod
    def _send(tree, message):
        return tree.session.connection.send(message, tree.session.session_id, tree.tree_connect_id, credit_request=8)

    def finish(self):
        """Closes the handles. Their promises must end, too."""
        with self._server() as server:
            tree = self._return(server)
            for file in self._files:
                message, state = file.set_deletion(False)
                tree.session.connection.receive(self._send(tree, message))
                file.acknowledge(state)
                file.handle.close()
            server.kill()
        with self._server() as server:
            other = self._connect_other(server)
            for file in self._files:
                status = try_open(other, file.acknowledged.name)
                assert status == SUCCESS, f"after its handle was closed, {file.acknowledged.name} returned {status:#x}"

    def end(self):
        """A server without the option removes the records of its predecessors, and logs it. Once."""
        journals = self._scratch / "state"
        assert list(journals.glob("handles-*")), "no server has left a journal"
        for is_first in (True, False):
            with self._server(availability="off") as server:
                server.end(signal.SIGTERM)  # afterwards the log is complete
                is_logged = "persistent handles of an earlier server are not restored" in server.log()
                assert is_logged == is_first, server.log()
            assert not list(journals.glob("handles-*")), "the journal is still there"


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(10**6)
    print(f"seed {seed}; again: {sys.argv[0]} {program} {kills} {seed}", flush=True)
    if not os.access("/dev/shm", os.W_OK):
        served.skip("the state directory needs a tmpfs, /dev/shm")
    logging.getLogger("smbprotocol").setLevel(logging.CRITICAL + 1)  # each kill is an error there
    with tempfile.TemporaryDirectory(prefix="sluice-storm-", dir="/dev/shm") as scratch:
        storm = Storm(program, random.Random(seed), pathlib.Path(scratch))
        storm.begin()
        while storm.kills < kills:
            storm.round()
        storm.finish()
        storm.end()
    print(f"{storm.kills} kills")
    for what, count in sorted(storm.counts.items()):
        print(f"{what}: {count}")
    assert storm.counts["opens by the other user"] > 0, "no open by the other user was possible"


if __name__ == "__main__":
    main()
