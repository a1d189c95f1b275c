#!/usr/bin/env python3
"""A share that refers to another `sluice serve`: clients that ask for the referral, and follow it."""

import os
import pathlib
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import uuid

import python_clients  # noqa: F401  (must be first: the next modules may be only in its
                       # environment)
import served

from smbprotocol.connection import Connection  # noqa: E402
from smbprotocol.exceptions import SMBResponseException  # noqa: E402
from smbprotocol.ioctl import CtlCode, IOCTLFlags, SMB2IOCTLRequest, SMB2IOCTLResponse  # noqa: E402
from smbprotocol.session import Session  # noqa: E402
from smbprotocol.tree import TreeConnect  # noqa: E402

HOME, FAR = "127.0.0.1", "127.0.0.2"
NOT_FOUND = 0xc0000225
COMMAND_SECONDS_MAX = 120
RELOAD_SECONDS_MAX = 30
DIALECTS = ("SMB2_02", "SMB2_10", "SMB3_00", "SMB3_02", "SMB3_11")


def ask_for_referral(tree, path, version=4, extended=False):
    """Returns (bytes consumed, time to live, targets) of FSCTL_DFS_GET_REFERRALS."""
    name = path.encode("utf-16-le")
    request = struct.pack("<H", version) + name + b"\0\0"
    if extended:
        request = struct.pack("<HHIH", version, 0, 2 + len(name), len(name)) + name
    message = SMB2IOCTLRequest()
    message["ctl_code"] = CtlCode.FSCTL_DFS_GET_REFERRALS_EX if extended else CtlCode.FSCTL_DFS_GET_REFERRALS
    message["file_id"] = b"\xff" * 16
    message["max_output_response"] = 4096
    message["flags"] = IOCTLFlags.SMB2_0_IOCTL_IS_FSCTL
    message["buffer"] = request
    connection = tree.session.connection
    sent = connection.send(message, tree.session.session_id, tree.tree_connect_id)
    reply = SMB2IOCTLResponse()
    reply.unpack(connection.receive(sent)["data"].get_value())
    data = reply["buffer"].get_value()
    consumed, count, _ = struct.unpack_from("<HHI", data)
    targets, at = [], 8
    for _ in range(count):
        _, size, _, _, lifetime, _, _, target = struct.unpack_from("<HHHHIHHH", data, at)
        text = data[at + target:].decode("utf-16-le", "replace")
        targets.append(text[:text.index("\0")])
        at += size
    return consumed, lifetime, targets


@served.on_every_multiplexer
class Referral:
    """Two servers on one port: shares of the first refer to the share of the second."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="sluice-referral-")
        self.addCleanup(scratch.cleanup)
        self.far = pathlib.Path(scratch.name) / "far"
        (self.far / "deep").mkdir(parents=True)
        (self.far / "file").write_text("from the other server")
        (self.far / "deep" / "file").write_text("from a directory there")
        self.configuration = pathlib.Path(scratch.name) / "configuration" / "sluice.toml"
        self.configuration.parent.mkdir()
        self.refer(link=[f"//{FAR}/share"], deep=[f"//{FAR}/share/deep"])
        self.server_arguments = ("--config", str(self.configuration))
        super().setUp()
        other = served.Server(self.program, self.far, self.multiplexer, port=self.server.port, listen=FAR)
        other.__enter__()
        self.addCleanup(other.__exit__, None, None, None)

    def refer(self, **shares):
        self.configuration.write_text("".join(
            f"[[share]]\nname = \"{name}\"\nreferral = {targets!r}\n" for name, targets in shares.items()))

    def ipc(self):
        connection = Connection(uuid.uuid4(), HOME, self.server.port)
        connection.connect()
        self.addCleanup(connection.disconnect, close=False)
        session = Session(connection, served.USER, served.PASSWORD, require_encryption=False)
        session.connect()
        tree = TreeConnect(session, rf"\\{HOME}\IPC$")
        tree.connect()
        return tree

    def run_smbclient(self, *arguments):
        if not shutil.which("smbclient"):
            self.skipTest("smbclient is not installed (Debian package smbclient)")
        command = ["smbclient", "-p", str(self.server.port), "-U", f"{served.USER}%{served.PASSWORD}", *arguments]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, cwd=self.local, timeout=COMMAND_SECONDS_MAX)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_smbclient_follows_it_in_every_dialect(self):
        for name in DIALECTS:
            with self.subTest(dialect=name):
                for left in (self.local / "got", self.far / "sent"):
                    left.unlink(missing_ok=True)
                self.run_smbclient("--max-protocol", name, f"--option=client min protocol={name}", f"//{HOME}/link",
                                   "-c", "get file got; put got sent; ls")
                self.assertEqual((self.local / "got").read_text(), "from the other server")
                self.assertEqual((self.far / "sent").read_text(), "from the other server")

    def test_smbclient_uses_other_shares_in_every_dialect_as_without_referrals(self):
        for name in DIALECTS:
            with self.subTest(dialect=name):
                for left in (self.local / "back", self.server.directory / "sent"):
                    left.unlink(missing_ok=True)
                (self.local / "own").write_text("from here")
                self.run_smbclient("--max-protocol", name, f"--option=client min protocol={name}",
                                   f"//{HOME}/{self.server.share}", "-c", "put own sent; get sent back; ls")
                self.assertEqual((self.server.directory / "sent").read_text(), "from here")
                self.assertEqual((self.local / "back").read_text(), "from here")

    def test_smbclient_lists_it_among_the_shares(self):
        self.assertRegex(self.run_smbclient("-g", "-L", HOME), r"(?m)^Disk\|link\|")

    def test_it_is_returned_for_paths_on_the_share(self):
        tree = self.ipc()
        for extended in (False, True):
            with self.subTest(extended=extended):
                path = rf"\{HOME}\LINK\a\b"
                consumed, lifetime, targets = ask_for_referral(tree, path, extended=extended)
                self.assertEqual(consumed, 2 * len(rf"\{HOME}\LINK"))
                self.assertEqual(lifetime, 300)
                self.assertEqual(targets, [rf"\{FAR}\share"])
                self.assertEqual(ask_for_referral(tree, rf"\{HOME}\deep")[2], [rf"\{FAR}\share\deep"])

    def reload(self):
        os.kill(self.server.pid, signal.SIGHUP)
        deadline = time.monotonic() + RELOAD_SECONDS_MAX
        while "configuration reloaded" not in self.server.log():
            self.assertLess(time.monotonic(), deadline, "the server reloads its configuration")
            time.sleep(0.01)

    def test_reload_adds_changes_and_removes_it(self):
        tree = self.ipc()
        self.refer(link=["//third/share", "//fourth/share"], fresh=[f"//{FAR}/share"])
        self.reload()
        self.assertEqual(ask_for_referral(tree, rf"\{HOME}\link")[2], [r"\third\share", r"\fourth\share"])
        self.assertEqual(ask_for_referral(tree, rf"\{HOME}\fresh")[2], [rf"\{FAR}\share"])
        with self.assertRaises(SMBResponseException) as refused:
            ask_for_referral(tree, rf"\{HOME}\deep")
        self.assertEqual(refused.exception.status, NOT_FOUND)


if __name__ == "__main__":
    served.main()
