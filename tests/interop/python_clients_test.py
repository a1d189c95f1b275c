#!/usr/bin/env python3
"""Two clients written in Python against `sluice serve`: smbprotocol and impacket."""

import subprocess
import time
import uuid

import python_clients  # noqa: F401  (must be first: the next modules may be only in its
                       # environment)
import served

import smbclient  # noqa: E402  (smbprotocol's own interface of that name, not Samba's program)
import smbclient.shutil  # noqa: E402
import smbprotocol.exceptions as smb_errors  # noqa: E402
from impacket import smb3structs  # noqa: E402
from impacket.dcerpc.v5 import srvs, transport  # noqa: E402
from impacket.dcerpc.v5.rpcrt import DCERPCException  # noqa: E402
from impacket.ldap import ldaptypes  # noqa: E402
from impacket.smbconnection import SessionError, SMBConnection  # noqa: E402
from smbprotocol.change_notify import ChangeNotifyFlags, CompletionFilter, FileSystemWatcher  # noqa: E402
from smbprotocol.connection import Connection, Dialects  # noqa: E402
from smbprotocol.open import (CreateDisposition, CreateOptions, FilePipePrinterAccessMask,  # noqa: E402
                              ImpersonationLevel, Open, ShareAccess, DirectoryAccessMask)
from smbprotocol.session import Session  # noqa: E402
from smbprotocol.tree import TreeConnect  # noqa: E402

CONTENT = bytes(range(256)) * 3000


class Smbprotocol:
    """A session of smbprotocol's high-level interface."""

    is_encrypted = False

    def setUp(self):
        super().setUp()
        self.connections = {}
        self.access = {"port": self.server.port, "connection_cache": self.connections}
        smbclient.register_session("127.0.0.1", username=served.USER, password=served.PASSWORD,
                                   encrypt=self.is_encrypted, **self.access)
        self.addCleanup(smbclient.reset_connection_cache, connection_cache=self.connections)

    def path(self, name=""):
        return rf"\\127.0.0.1\share\{name}".rstrip("\\")

    def write(self, name, content):
        with smbclient.open_file(self.path(name), mode="wb", **self.access) as file:
            file.write(content)

    def read(self, name):
        with smbclient.open_file(self.path(name), mode="rb", share_access="rwd", **self.access) as file:
            return file.read()


@served.on_every_multiplexer
class SmbprotocolFiles(Smbprotocol):
    def test_written_data_is_read_back(self):
        self.write("file", CONTENT)
        self.assertTrue(self.read("file") == CONTENT)
        self.assertTrue((self.directory / "file").read_bytes() == CONTENT)

    def test_parts_of_a_file_are_read_and_written_in_place(self):
        self.write("file", CONTENT)
        with smbclient.open_file(self.path("file"), mode="r+b", **self.access) as file:
            file.seek(300_000)
            file.write(b"in the middle")
            file.seek(299_999)
            self.assertEqual(file.read(14), CONTENT[299_999:300_000] + b"in the middle")
        expected = CONTENT[:300_000] + b"in the middle" + CONTENT[300_013:]
        self.assertTrue((self.directory / "file").read_bytes() == expected)

    def test_directories_are_created_listed_and_removed(self):
        smbclient.makedirs(self.path(r"one\two\three"), **self.access)
        self.write(r"one\two\file", b"12345")
        entries = {entry.name: entry for entry in smbclient.scandir(self.path(r"one\two"), **self.access)}
        self.assertEqual(set(entries), {"three", "file"})
        self.assertTrue(entries["three"].is_dir())
        self.assertEqual(entries["file"].smb_info.end_of_file, 5)
        walked = [(place.rsplit("\\", 1)[-1], directories, files)
                  for place, directories, files in smbclient.walk(self.path("one"), **self.access)]
        self.assertEqual(walked, [("one", ["two"], []), ("two", ["three"], ["file"]), ("three", [], [])])
        smbclient.shutil.rmtree(self.path("one"), **self.access)
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_rename_refuses_and_replace_replaces_an_existing_file(self):
        self.write("one", b"1")
        self.write("two", b"2")
        with self.assertRaises(OSError):
            smbclient.rename(self.path("one"), self.path("two"), **self.access)
        smbclient.replace(self.path("one"), self.path("two"), **self.access)
        self.assertEqual(served.tree_of(self.directory), {"two": b"1"})

    def test_metadata_of_a_file_are_those_of_the_host(self):
        self.write("file", CONTENT)
        facts = smbclient.stat(self.path("file"), **self.access)
        self.assertEqual(facts.st_size, len(CONTENT))
        self.assertAlmostEqual(facts.st_mtime, (self.directory / "file").stat().st_mtime, delta=0.01)
        smbclient.utime(self.path("file"), times=(1_000_000_000, 1_100_000_000), **self.access)
        self.assertEqual(int((self.directory / "file").stat().st_mtime), 1_100_000_000)

    def test_the_server_copies_a_file_by_itself(self):
        self.write("file", CONTENT)
        smbclient.shutil.copyfile(self.path("file"), self.path("copy"), **self.access)
        self.assertTrue((self.directory / "copy").read_bytes() == CONTENT)

    def test_a_file_that_is_not_shared_is_not_opened_twice(self):
        with smbclient.open_file(self.path("file"), mode="wb", share_access="", **self.access):
            with self.assertRaisesRegex(smb_errors.SMBOSError, "0xc0000043"):  # sharing violation
                smbclient.open_file(self.path("file"), mode="rb", share_access="r", **self.access)

    def test_missing_files_are_reported_as_missing(self):
        with self.assertRaises(OSError) as seen:
            smbclient.stat(self.path("absent"), **self.access)
        self.assertEqual(seen.exception.errno, 2)


@served.on_every_multiplexer
class SmbprotocolEncrypted(Smbprotocol):
    is_encrypted = True

    def test_encrypted_data_is_read_back(self):
        self.write("file", CONTENT)
        self.assertTrue(self.read("file") == CONTENT)
        self.assertEqual(smbclient.listdir(self.path(), **self.access), ["file"])


@served.on_every_multiplexer
class SmbprotocolMessages:
    """smbprotocol's lower interface: one request at a time."""

    def connect(self, dialect=None):
        connection = Connection(uuid.uuid4(), "127.0.0.1", self.server.port)
        connection.connect(dialect)
        self.addCleanup(connection.disconnect)
        session = Session(connection, served.USER, served.PASSWORD, require_encryption=False)
        session.connect()
        tree = TreeConnect(session, r"\\127.0.0.1\share")
        tree.connect()
        return tree

    def test_every_dialect_opens_a_file(self):
        for dialect in (Dialects.SMB_2_0_2, Dialects.SMB_2_1_0, Dialects.SMB_3_0_0, Dialects.SMB_3_0_2,
                        Dialects.SMB_3_1_1):
            with self.subTest(dialect=hex(dialect)):
                file = Open(self.connect(dialect), "file")
                file.create(ImpersonationLevel.Impersonation, FilePipePrinterAccessMask.MAXIMUM_ALLOWED, 0,
                            ShareAccess.FILE_SHARE_READ, CreateDisposition.FILE_OVERWRITE_IF,
                            CreateOptions.FILE_NON_DIRECTORY_FILE)
                file.write(b"content", 0)
                self.assertEqual(file.read(0, 100), b"content")
                file.flush()
                file.close()

    def test_a_watched_directory_reports_a_new_file(self):
        directory = Open(self.connect(), "")
        directory.create(ImpersonationLevel.Impersonation, DirectoryAccessMask.FILE_LIST_DIRECTORY, 0,
                      ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE | ShareAccess.FILE_SHARE_DELETE,
                      CreateDisposition.FILE_OPEN, CreateOptions.FILE_DIRECTORY_FILE)
        watcher = FileSystemWatcher(directory)
        watcher.start(CompletionFilter.FILE_NOTIFY_CHANGE_FILE_NAME, ChangeNotifyFlags.NONE)
        time.sleep(0.2)
        other = Open(self.connect(), "new file")
        other.create(ImpersonationLevel.Impersonation, FilePipePrinterAccessMask.GENERIC_WRITE, 0, 0,
                     CreateDisposition.FILE_CREATE, CreateOptions.FILE_NON_DIRECTORY_FILE)
        other.close()
        watcher.response_event.wait(20)
        self.assertTrue(watcher.response_event.is_set(), "no answer to CHANGE_NOTIFY within 20 s")
        names = [action["file_name"].get_value() for action in watcher.result]
        self.assertEqual(names, ["new file"])
        directory.close()


@served.on_every_multiplexer
class SmbprotocolMessagesOffloaded(SmbprotocolMessages):
    """The same if no file system call runs on an event loop, as on FUSE and network file systems."""

    server_arguments = ("--offload",)


@served.on_every_multiplexer
class Impacket:
    def connect(self, dialect=None):
        connection = SMBConnection("127.0.0.1", "127.0.0.1", sess_port=self.server.port, preferredDialect=dialect)
        connection.login(served.USER, served.PASSWORD)
        self.addCleanup(connection.close)
        return connection

    def test_every_dialect_carries_a_file_both_ways(self):
        dialects = (smb3structs.SMB2_DIALECT_002, smb3structs.SMB2_DIALECT_21, smb3structs.SMB2_DIALECT_30,
                    smb3structs.SMB2_DIALECT_311, None)
        for dialect in dialects:
            with self.subTest(dialect=dialect and hex(dialect)):
                connection = self.connect(dialect)
                (self.local / "sent").write_bytes(CONTENT)
                with (self.local / "sent").open("rb") as sent:
                    connection.putFile("share", "file", sent.read)
                received = []
                connection.getFile("share", "file", received.append)
                self.assertTrue(b"".join(received) == CONTENT)
                connection.deleteFile("share", "file")
                self.assertEqual(list(self.directory.iterdir()), [])

    def test_shares_are_listed(self):
        names = [share["shi1_netname"][:-1] for share in self.connect().listShares()]
        self.assertEqual(sorted(names), ["IPC$", "share"])

    def test_the_descriptor_of_a_share_has_its_rights_and_cannot_be_set(self):
        read_only = served.Server(self.program, self.directory, self.multiplexer, ("--read-only",))
        with read_only:
            for server, rights in ((self.server, 0x001f_01ff), (read_only, 0x0012_00a9)):
                connection = SMBConnection("127.0.0.1", "127.0.0.1", sess_port=server.port)
                connection.login(served.USER, served.PASSWORD)
                pipe = transport.SMBTransport("127.0.0.1", filename=r"\srvsvc", smb_connection=connection)
                calls = pipe.get_dce_rpc()
                calls.connect()
                calls.bind(srvs.MSRPC_UUID_SRVS)
                share = srvs.hNetrShareGetInfo(calls, "share\0", 502)["InfoStruct"]["ShareInfo502"]
                descriptor = ldaptypes.SR_SECURITY_DESCRIPTOR(data=b"".join(share["shi502_security_descriptor"]))
                entries = [(entry["Ace"]["Sid"].formatCanonical(), entry["Ace"]["Mask"]["Mask"])
                           for entry in descriptor["Dacl"]["Data"]]
                self.assertEqual(entries, [("S-1-1-0", rights)])
                comment = srvs.SHARE_INFO_1004()
                comment["shi1004_remark"] = "changed\0"
                with self.assertRaisesRegex(DCERPCException, "access_denied"):
                    srvs.hNetrShareSetInfo(calls, "share\0", 1004, comment)
                connection.close()

    def test_directories_are_created_listed_renamed_and_removed(self):
        connection = self.connect()
        connection.createDirectory("share", "directory")
        (self.directory / "directory" / "file").write_bytes(b"12345")
        listed = {entry.get_longname(): entry for entry in connection.listPath("share", r"directory\*")}
        self.assertEqual(set(listed), {".", "..", "file"})
        self.assertEqual(listed["file"].get_filesize(), 5)
        connection.rename("share", r"directory\file", r"directory\renamed")
        self.assertEqual(served.tree_of(self.directory), {"directory": None, "directory/renamed": b"12345"})
        connection.deleteFile("share", r"directory\renamed")
        connection.deleteDirectory("share", "directory")
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_a_file_has_no_previous_versions(self):
        (self.directory / "file").write_bytes(b"12345")
        connection = self.connect()
        tree = connection.connectTree("share")
        self.assertEqual(connection.listSnapshots(tree, "file"), [])

    def test_a_wrong_password_is_refused(self):
        connection = SMBConnection("127.0.0.1", "127.0.0.1", sess_port=self.server.port)
        self.addCleanup(connection.close)
        with self.assertRaisesRegex(SessionError, "STATUS_LOGON_FAILURE"):
            connection.login(served.USER, "wrong")


class ServedImage(served.ServedCase):
    """Like ServedCase, with an image next to the directory of `self.server`."""

    def setUp(self):
        super().setUp()
        image = self.local / "disk.img"
        subprocess.run([self.program, "fat", "mkfs", image, "--size", "64m"], check=True, capture_output=True)
        self.server = served.Server(self.program, image)
        self.server.__enter__()
        self.addCleanup(self.server.__exit__, None, None, None)


class SmbprotocolOnImage(Smbprotocol, ServedImage):
    """Objects that a FAT volume cannot store are refused at once, with a specific status."""

    def assert_refused(self, status, what):
        with self.assertRaisesRegex((smb_errors.SMBOSError, smb_errors.SMBResponseException), status):
            what()

    def test_a_length_of_four_gigabytes_is_refused_when_it_is_set(self):
        self.write("file", CONTENT)
        self.assert_refused("0xc0000904",  # file too large
                            lambda: smbclient.truncate(self.path("file"), 1 << 32, **self.access))
        self.assertTrue(self.read("file") == CONTENT)

    def test_streams_extended_attributes_and_hard_links_are_refused(self):
        self.write("file", CONTENT)
        self.assert_refused("0xc0000033",  # object name invalid: like Windows, because FAT does not
                                           # allow colons
                            lambda: self.write("file:stream", b"x"))
        self.assert_refused("0xc00000bb",  # not supported
                            lambda: smbclient.setxattr(self.path("file"), b"name", b"value", **self.access))
        self.assert_refused("0xc00000bb",
                            lambda: smbclient.link(self.path("file"), self.path("other"), **self.access))
        self.assertEqual(smbclient.listdir(self.path(), **self.access), ["file"])
        self.assertTrue(self.read("file") == CONTENT)


if __name__ == "__main__":
    served.main()
