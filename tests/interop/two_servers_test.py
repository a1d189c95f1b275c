#!/usr/bin/env python3
"""Two `sluice serve --shared-locks FILE` on one directory, each with a client that knows only this server."""

import concurrent.futures
import contextlib
import functools
import pathlib
import subprocess
import tempfile
import time
import uuid

import python_clients  # noqa: F401  (must be first: the next modules may be only in its
                       # environment)
import served

import smbprotocol.exceptions as smb_errors  # noqa: E402
from impacket.smbconnection import SessionError, SMBConnection  # noqa: E402
from smbprotocol.connection import Connection  # noqa: E402
from smbprotocol.file_info import FileDispositionInformation, FileRenameInformation  # noqa: E402
from smbprotocol.open import (CreateDisposition, CreateOptions, ImpersonationLevel, LockFlags, Open,  # noqa: E402
                              RequestedOplockLevel, SMB2LockElement, SMB2SetInfoRequest)
from smbprotocol.session import Session  # noqa: E402
from smbprotocol.tree import TreeConnect  # noqa: E402

READ, WRITE, DELETE = 0x0001, 0x0002, 0x0001_0000
SHARED_WITH = {"": 0, "r": 1, "w": 2, "d": 4, "rw": 3, "rwd": 7}
SHARING_VIOLATION, DELETE_PENDING, ACCESS_DENIED = 0xc0000043, 0xc0000056, 0xc0000022
FILE_LOCK_CONFLICT, LOCK_NOT_GRANTED, NOT_FOUND = 0xc0000054, 0xc0000055, 0xc0000034


class Client:
    """A client of one of the servers, one request at a time."""

    def __init__(self, case, server):
        connection = Connection(uuid.uuid4(), "127.0.0.1", server.port)
        connection.connect()
        session = Session(connection, served.USER, served.PASSWORD, require_encryption=False)
        session.connect()
        self.tree = TreeConnect(session, r"\\127.0.0.1\share")
        self.tree.connect()
        case.addCleanup(self.disconnect)

    def disconnect(self):
        try:
            self.tree.session.connection.disconnect(close=False)
        except OSError:  # its server was killed
            pass

    def open(self, name="file", access=READ, share="rwd", disposition=CreateDisposition.FILE_OPEN, options=0,
             oplock=RequestedOplockLevel.SMB2_OPLOCK_LEVEL_NONE):
        file = Open(self.tree, name)
        file.create(ImpersonationLevel.Impersonation, access, 0, SHARED_WITH[share], disposition,
                    CreateOptions.FILE_NON_DIRECTORY_FILE | options, oplock_level=oplock)
        return file


def change(file, information):
    """Sends SET_INFO, for which smbprotocol has only the messages."""
    request = SMB2SetInfoRequest()
    request["info_type"] = information.INFO_TYPE
    request["file_info_class"] = information.INFO_CLASS
    request["file_id"] = file.file_id
    request["buffer"] = information
    sent = file.connection.send(request, file.tree_connect.session.session_id, file.tree_connect.tree_connect_id)
    file.connection.receive(sent)


def set_disposition(file, is_to_go=True):
    wanted = FileDispositionInformation()
    wanted["delete_pending"] = is_to_go
    change(file, wanted)


def replace(file, target):
    wanted = FileRenameInformation()
    wanted["replace_if_exists"] = True
    wanted["file_name"] = target
    change(file, wanted)


def lock_element(offset, length, flags):
    element = SMB2LockElement()
    element["offset"] = offset
    element["length"] = length
    element["flags"] = flags
    return element


def lock(file, offset, length, flags=LockFlags.SMB2_LOCKFLAG_EXCLUSIVE_LOCK):
    if flags != LockFlags.SMB2_LOCKFLAG_UNLOCK:
        flags |= LockFlags.SMB2_LOCKFLAG_FAIL_IMMEDIATELY
    file.lock([lock_element(offset, length, flags)])


def run_each(function, clients):
    """Runs function(number, client) for each client, at the same time. Raises what any of them raises."""
    with concurrent.futures.ThreadPoolExecutor(len(clients)) as threads:
        for each in [threads.submit(function, *numbered) for numbered in enumerate(clients)]:
            each.result()


class Peers:
    """Two servers of one directory, and a client of each."""

    more_arguments = ()

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="sluice-peers-")
        self.addCleanup(scratch.cleanup)
        self.locks = pathlib.Path(scratch.name) / "locks"
        self.server_arguments = ("--shared-locks", str(self.locks), *self.more_arguments)
        super().setUp()
        self.other_server = served.Server(self.program, self.directory, self.multiplexer, self.server_arguments)
        self.other_server.__enter__()
        self.addCleanup(self.other_server.__exit__, None, None, None)
        (self.directory / "file").write_bytes(bytes(100))
        self.here, self.there = Client(self, self.server), Client(self, self.other_server)

    def assert_refused(self, status, action, *arguments, **named):
        with self.assertRaises(smb_errors.SMBResponseException) as seen:
            action(*arguments, **named)
        self.assertEqual(hex(seen.exception.status), hex(status))

    def assert_soon(self, condition, what):
        deadline = time.monotonic() + 10
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.01)


@served.on_every_multiplexer
class TwoServers(Peers):
    def test_share_modes_apply_both_ways(self):
        for first, second in ((self.here, self.there), (self.there, self.here)):
            held = first.open(access=READ, share="r")
            self.assert_refused(SHARING_VIOLATION, second.open, access=WRITE)
            self.assert_refused(SHARING_VIOLATION, second.open, access=READ, share="w")
            self.assert_refused(SHARING_VIOLATION, second.open, access=DELETE)
            second.open(access=READ, share="r").close()
            held.close()
            second.open(access=WRITE, share="").close()

    def test_a_new_file_is_shared_as_its_creator_requested(self):
        made = self.here.open("new", access=WRITE, share="", disposition=CreateDisposition.FILE_CREATE)
        self.assert_refused(SHARING_VIOLATION, self.there.open, "new", access=READ)
        self.assert_refused(SHARING_VIOLATION, self.there.open, "new", access=WRITE,
                            disposition=CreateDisposition.FILE_OVERWRITE_IF)
        made.write(b"kept", 0)
        made.close()
        self.assertEqual((self.directory / "new").read_bytes(), b"kept")

    def test_a_file_pending_removal_is_removed_when_both_have_closed_it(self):
        doomed = self.here.open(access=DELETE)
        other = self.there.open(access=READ)
        set_disposition(doomed)
        self.assert_refused(DELETE_PENDING, self.there.open)
        self.assert_refused(DELETE_PENDING, self.here.open)
        doomed.close()
        time.sleep(0.3)
        self.assertTrue((self.directory / "file").exists(), "the other server has it open")
        self.assert_refused(DELETE_PENDING, self.here.open)
        self.assert_refused(DELETE_PENDING, self.there.open)
        self.assertEqual(other.read(0, 1), b"\0")
        other.close()
        self.assert_soon(lambda: not (self.directory / "file").exists(), "the last has closed it")
        self.assert_refused(NOT_FOUND, self.there.open)

    def test_a_withdrawn_removal_lets_other_clients_open_the_file_again(self):
        doomed = self.here.open(access=DELETE)
        set_disposition(doomed)
        self.assert_refused(DELETE_PENDING, self.there.open)
        set_disposition(doomed, False)
        self.there.open().close()
        doomed.close()
        self.assertTrue((self.directory / "file").exists())

    def test_delete_on_close_waits_for_the_other_server_too(self):
        other = self.there.open(access=READ)
        self.here.open(access=DELETE, options=CreateOptions.FILE_DELETE_ON_CLOSE).close()
        self.assertTrue((self.directory / "file").exists())
        other.close()
        self.assert_soon(lambda: not (self.directory / "file").exists(), "the last has closed it")

    def test_a_file_that_is_open_at_the_other_server_is_not_replaced(self):
        (self.directory / "fresh").write_bytes(b"fresh")
        other = self.there.open(access=READ)
        fresh = self.here.open("fresh", access=DELETE)
        self.assert_refused(ACCESS_DENIED, replace, fresh, "file")
        other.close()
        replace(fresh, "file")
        fresh.close()
        self.assertEqual(served.tree_of(self.directory), {"file": b"fresh"})

    def test_ranges_locked_at_one_server_are_locked_at_the_other(self):
        mine, theirs = (client.open(access=READ | WRITE) for client in (self.here, self.there))
        lock(mine, 0, 10)
        lock(mine, 20, 10, LockFlags.SMB2_LOCKFLAG_SHARED_LOCK)
        self.assert_refused(LOCK_NOT_GRANTED, lock, theirs, 9, 5)
        self.assert_refused(LOCK_NOT_GRANTED, lock, theirs, 25, 1)
        self.assert_refused(FILE_LOCK_CONFLICT, theirs.read, 9, 1)
        self.assert_refused(FILE_LOCK_CONFLICT, theirs.write, b"x", 29)
        self.assertEqual(theirs.read(20, 10), bytes(10))
        lock(theirs, 25, 1, LockFlags.SMB2_LOCKFLAG_SHARED_LOCK)
        lock(theirs, 10, 10)
        theirs.write(b"x" * 10, 10)
        self.assert_refused(FILE_LOCK_CONFLICT, mine.read, 19, 1)
        lock(mine, 0, 10, LockFlags.SMB2_LOCKFLAG_UNLOCK)
        lock(theirs, 9, 1)
        mine.close()
        lock(theirs, 20, 5)

    def test_a_waiting_lock_is_granted_when_the_other_server_unlocks_the_range(self):
        mine, theirs = (client.open(access=READ | WRITE) for client in (self.here, self.there))
        lock(mine, 0, 10)
        request, _ = theirs.lock([lock_element(5, 1, LockFlags.SMB2_LOCKFLAG_EXCLUSIVE_LOCK)], send=False)
        waiting = theirs.connection.send(request, self.there.tree.session.session_id, self.there.tree.tree_connect_id)
        time.sleep(0.3)
        self.assert_refused(LOCK_NOT_GRANTED, lock, theirs, 5, 1)
        lock(mine, 0, 10, LockFlags.SMB2_LOCKFLAG_UNLOCK)
        theirs.connection.receive(waiting, timeout=10)
        self.assert_refused(LOCK_NOT_GRANTED, lock, mine, 5, 1)

    def test_no_caching_is_granted_because_servers_cannot_break_it(self):
        file = self.here.open(oplock=RequestedOplockLevel.SMB2_OPLOCK_LEVEL_BATCH)
        self.assertEqual(file.oplock_level, RequestedOplockLevel.SMB2_OPLOCK_LEVEL_NONE)

    def test_the_locks_of_a_killed_server_are_released(self):
        theirs = self.there.open(access=READ | WRITE, share="")
        lock(theirs, 0, 10)
        self.assert_refused(SHARING_VIOLATION, self.here.open)
        self.other_server.kill()
        mine = self.here.open(access=READ | WRITE, share="")
        lock(mine, 0, 10)
        self.assertEqual(mine.read(0, 10), bytes(10))

    @contextlib.contextmanager
    def process_checking(self, lock_byte_file):
        """Starts a process, and stops it while it holds the entity of a file."""
        command = [self.program, "lock", "--algorithm", "byte_ranges", "--exclusive", lock_byte_file, self.locks, "--",
                   "sh", "-c", "echo held; read line"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            self.assertEqual(process.stdout.readline(), "held\n")
            yield lambda: process.communicate("\n", timeout=20)

    def test_a_stopped_peer_delays_only_requests_for_the_same_file_and_not_indefinitely(self):
        (self.directory / "other").touch()
        file = self.here.open()
        lock_byte_file = next(pathlib.Path(f"{self.locks}.d").iterdir()).name
        file.close()
        with self.process_checking(lock_byte_file) as let_go, concurrent.futures.ThreadPoolExecutor(1) as thread:
            self.assert_refused(SHARING_VIOLATION, self.here.open)
            opening = thread.submit(self.here.open)
            another = Client(self, self.server)
            another.open("other").close()
            self.assertFalse(opening.done())
            let_go()
            opening.result(10)
        self.assert_refused(SHARING_VIOLATION, self.there.open, share="")

    def test_closed_files_leave_no_lock_byte_files(self):
        self.here.open().close()
        self.there.open().close()
        self.assertEqual(list(pathlib.Path(f"{self.locks}.d").iterdir()), [])

    def test_impacket_is_refused_a_file_that_another_impacket_has_exclusively(self):
        ids = []
        for server in (self.server, self.other_server):
            connection = SMBConnection("127.0.0.1", "127.0.0.1", sess_port=server.port)
            connection.login(served.USER, served.PASSWORD)
            self.addCleanup(connection.close)
            ids.append((connection, connection.connectTree("share")))
        (first, first_tree), (second, second_tree) = ids
        held = first.openFile(first_tree, "file", shareMode=0)
        with self.assertRaisesRegex(SessionError, "STATUS_SHARING_VIOLATION"):
            second.openFile(second_tree, "file", shareMode=7)
        first.closeFile(first_tree, held)
        second.closeFile(second_tree, second.openFile(second_tree, "file", shareMode=0))


@served.on_every_multiplexer
class TwoServersOnLoops(Peers):
    more_arguments = ("--loops", "2")

    def setUp(self):
        super().setUp()
        # A server assigns the second connection of an address to its second loop.
        self.clients = [self.here, self.there, Client(self, self.server), Client(self, self.other_server)]

    def test_only_one_of_all_clients_has_a_file_or_a_range_exclusively(self):
        inside, visits, problems = [], dict.fromkeys(range(len(self.clients)), 0), []
        over = time.monotonic() + 2

        def visit(who, client):
            shared = client.open(access=READ | WRITE)
            while time.monotonic() < over and not problems:
                try:
                    if visits[who] % 2 == 0:
                        leave = client.open("other", access=READ | WRITE, share="").close
                        place = "file"
                    else:
                        lock(shared, 0, 10)
                        leave = functools.partial(lock, shared, 0, 10, LockFlags.SMB2_LOCKFLAG_UNLOCK)
                        place = "range"
                except smb_errors.SMBResponseException as refused:
                    if refused.status not in (SHARING_VIOLATION, LOCK_NOT_GRANTED):
                        problems.append(f"client {who}: {refused}")
                    continue
                inside.append(place)
                time.sleep(0.005)
                if inside.count(place) != 1:
                    problems.append(f"two clients have the {place} exclusively")
                inside.remove(place)
                visits[who] += 1
                leave()

        (self.directory / "other").write_bytes(b"")
        run_each(visit, self.clients)
        self.assertEqual(problems, [])
        self.assertTrue(all(visits.values()), f"each client succeeded: {visits}")

    def test_a_file_that_no_server_has_open_is_gone_when_its_close_is_answered(self):
        left = []

        def delete_files(who, client):
            name = f"doomed-{who}"
            for _ in range(200):
                client.open(name, access=DELETE, disposition=CreateDisposition.FILE_CREATE,
                            options=CreateOptions.FILE_DELETE_ON_CLOSE).close()
                if (self.directory / name).exists():
                    left.append(name)

        run_each(delete_files, self.clients)
        self.assertEqual(left, [])


@served.on_every_multiplexer
class WithoutTheOption:
    """The results of the tests above if the option had no effect: they show that the tests can fail."""

    def test_servers_that_do_not_share_locks_do_not_see_each_others_opens(self):
        (self.directory / "file").write_bytes(bytes(100))
        with served.Server(self.program, self.directory, self.multiplexer) as other:
            here, there = Client(self, self.server), Client(self, other)
            held = here.open(access=READ | WRITE, share="", oplock=RequestedOplockLevel.SMB2_OPLOCK_LEVEL_BATCH)
            self.assertEqual(held.oplock_level, RequestedOplockLevel.SMB2_OPLOCK_LEVEL_BATCH)
            there.open(access=READ | WRITE, share="").close()


if __name__ == "__main__":
    served.main()
