#!/usr/bin/env python3
"""Kills `sluice serve --continuous-availability on` at random moments, and checks what a persistent handle promises.

usage: kill_storm_test.py SLUICE-PROGRAM [KILLS [SEED]]
"""

import os
import pathlib
import random
import sys
import tempfile
import time
import uuid

import python_clients  # noqa: F401  (must be first: the next modules may be only in its
                       # environment)
import served

from smbprotocol.connection import Capabilities, Connection  # noqa: E402
from smbprotocol.create_contexts import (SMB2CreateContextRequest, SMB2CreateDurableHandleReconnectV2,  # noqa: E402
                                         SMB2CreateDurableHandleRequestV2)
from smbprotocol.exceptions import SMBException, SMBResponseException  # noqa: E402
from smbprotocol.open import (CreateDisposition, ImpersonationLevel, LockFlags, Open, ShareAccess,  # noqa: E402
                              SMB2LockElement)
from smbprotocol.session import Session  # noqa: E402
from smbprotocol.tree import TreeConnect  # noqa: E402

FILE_NOT_AVAILABLE, LOCK_NOT_GRANTED = 0xc0000467, 0xc0000055
READ_AND_WRITE = 0xc000_0000  # generic
PERSISTENT = 2
CONNECT_SECONDS_MAX = 20


def connect(port, client):
    """Connects as soon as the server answers."""
    end = time.monotonic() + CONNECT_SECONDS_MAX
    while True:
        try:
            connection = Connection(client, "127.0.0.1", port)
            connection.client_capabilities |= Capabilities.SMB2_GLOBAL_CAP_PERSISTENT_HANDLES
            connection.connect(timeout=5)
            session = Session(connection, served.USER, served.PASSWORD, require_encryption=False)
            session.connect()
            tree = TreeConnect(session, r"\\127.0.0.1\share")
            tree.connect()
            return tree
        except (SMBException, OSError, ValueError):
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def create(tree, name="file", context=None):
    file = Open(tree, name)
    shared = ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE | ShareAccess.FILE_SHARE_DELETE
    file.create(ImpersonationLevel.Impersonation, READ_AND_WRITE, 0, shared, CreateDisposition.FILE_OPEN_IF, 0,
                create_contexts=[context] if context else None)
    return file


def durable(name, content, guid):
    content["create_guid"] = guid
    content["flags"] = PERSISTENT
    context = SMB2CreateContextRequest()
    context["buffer_name"] = name
    context["buffer_data"] = content
    return context


def lock(file, offset, flags):
    """Returns whether the lock was granted, or released."""
    element = SMB2LockElement()
    element["offset"] = offset
    element["length"] = 1
    element["flags"] = flags
    try:
        file.lock([element])
    except SMBResponseException as refused:
        assert refused.status == LOCK_NOT_GRANTED, hex(refused.status)
        return False
    return True


EXCLUSIVE = LockFlags.SMB2_LOCKFLAG_EXCLUSIVE_LOCK | LockFlags.SMB2_LOCKFLAG_FAIL_IMMEDIATELY
UNLOCK = LockFlags.SMB2_LOCKFLAG_UNLOCK


def work(file, chance, locked, seconds):
    """Writes and locks until the time is over. Returns the acknowledged data."""
    data = b""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data = b"%08d" % chance.randrange(10**8)
        file.write(data, 0)
        place = 100 + chance.randrange(8)
        assert lock(file, place, UNLOCK if place in locked else EXCLUSIVE)
        locked ^= {place}
    return data


def check(file, data, locked):
    assert not data or file.read(0, 8) == data, (file.read(0, 8), data)
    for place in range(100, 108):
        if lock(file, place, EXCLUSIVE):
            assert place not in locked, f"the lock at {place} is lost"
            assert lock(file, place, UNLOCK)
        else:
            assert place in locked, f"the lock at {place} was released"


def storm(program, kills, chance, scratch):
    (scratch / "served").mkdir()
    options = ("--continuous-availability", "on", "--state-directory", str(scratch / "state"))
    owner, guid, port = uuid.uuid4(), uuid.uuid4(), 0
    file_id, data, locked = None, b"", set()
    for number in range(kills + 1):
        with served.Server(program, scratch / "served", arguments=options, port=port) as server:
            port = server.port
            if file_id is None:
                file = create(connect(port, owner), context=durable(b"DH2Q", SMB2CreateDurableHandleRequestV2(), guid))
            else:
                try:
                    create(connect(port, uuid.uuid4()))
                    raise AssertionError(f"another client was admitted after kill {number}")
                except SMBResponseException as refused:
                    assert refused.status == FILE_NOT_AVAILABLE, hex(refused.status)
                back = SMB2CreateDurableHandleReconnectV2()
                back["file_id"] = file_id
                file = create(connect(port, owner), context=durable(b"DH2C", back, guid))
                check(file, data, locked)
            file_id = file.file_id
            data = work(file, chance, locked, chance.uniform(0.002, 0.1)) or data
            server.kill()


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(10**6)
    print(f"seed {seed}; again: {sys.argv[0]} {program} {kills} {seed}", flush=True)
    if not os.access("/dev/shm", os.W_OK):
        served.skip("the state directory needs a tmpfs, /dev/shm")
    with tempfile.TemporaryDirectory(prefix="sluice-storm-", dir="/dev/shm") as scratch:
        storm(program, kills, random.Random(seed), pathlib.Path(scratch))
    print(f"{kills} kills")


if __name__ == "__main__":
    main()
