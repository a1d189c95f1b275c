#!/usr/bin/env python3
"""Two clients written in Python against `sluice serve`: smbprotocol and impacket."""

import os
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
from impacket.dcerpc.v5 import lsad, lsat, samr, srvs, transport, wkst  # noqa: E402
from impacket.dcerpc.v5.dtypes import NULL  # noqa: E402
from impacket.dcerpc.v5.rpcrt import DCERPCException  # noqa: E402
from impacket.ldap import ldaptypes  # noqa: E402
from impacket.nmb import NetBIOSError  # noqa: E402
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


@served.on_every_multiplexer
class ImpacketServices:
    """The RPC services, for a user and for an administrator."""

    server_arguments = ("--user", "boss%Lake-Tower-3", "--administrator", "boss")

    def calls(self, name, interface, user=served.USER, password=served.PASSWORD):
        connection = SMBConnection("127.0.0.1", "127.0.0.1", sess_port=self.server.port)
        connection.login(user, password)
        self.addCleanup(connection.close)
        calls = transport.SMBTransport("127.0.0.1", filename=name, smb_connection=connection).get_dce_rpc()
        calls.connect()
        calls.bind(interface)
        return calls

    def of_boss(self, name, interface):
        return self.calls(name, interface, "boss", "Lake-Tower-3")

    def policy(self, calls):
        return lsad.hLsarOpenPolicy2(calls, lsat.POLICY_LOOKUP_NAMES | 1)["PolicyHandle"]

    def test_sids_have_names_and_names_have_sids(self):
        calls = self.calls(r"\lsarpc", lsat.MSRPC_UUID_LSAT)
        policy = self.policy(calls)
        found = lsat.hLsarLookupNames3(calls, policy, [served.USER, "Everyone", rf"SLUICE\{served.USER}"])
        user, everyone, again = [one["Sid"].formatCanonical() for one in found["TranslatedSids"]["Sids"]]
        self.assertEqual((everyone, again), ("S-1-1-0", user))
        sids = [user, "S-1-5-11", "S-1-5-32-544", f"S-1-22-1-{os.getuid()}"]
        for look_up in (lsat.hLsarLookupSids, lsat.hLsarLookupSids2):
            answer = look_up(calls, policy, sids)
            domains = [one["Name"] for one in answer["ReferencedDomains"]["Domains"]]
            names = [(domains[one["DomainIndex"]], one["Name"]) for one in answer["TranslatedNames"]["Names"]]
            self.assertEqual(names, [("SLUICE", served.USER), ("NT AUTHORITY", "Authenticated Users"),
                                     ("BUILTIN", "Administrators"), ("Unix User", str(os.getuid()))])

    def test_the_sid_of_a_user_is_the_owner_of_their_files(self):
        calls = self.calls(r"\lsarpc", lsat.MSRPC_UUID_LSAT)
        found = lsat.hLsarLookupNames3(calls, self.policy(calls), [served.USER])["TranslatedSids"]["Sids"]
        connection = calls.get_rpc_transport().get_smb_connection()
        tree = connection.connectTree("share")
        file = connection.createFile(tree, "file", desiredAccess=0x1f01ff)
        raw = connection.getSMBServer().queryInfo(tree, file, infoType=smb3structs.SMB2_0_INFO_SECURITY,
                                                  fileInfoClass=smb3structs.SMB2_SEC_INFO_00, additionalInformation=1)
        owner = ldaptypes.SR_SECURITY_DESCRIPTOR(data=raw)["OwnerSid"].formatCanonical()
        self.assertEqual(owner, found[0]["Sid"].formatCanonical())

    def test_unknown_sids_and_names_are_reported(self):
        calls = self.calls(r"\lsarpc", lsat.MSRPC_UUID_LSAT)
        policy = self.policy(calls)
        for look_up, unknown in ((lsat.hLsarLookupNames, "nobody"), (lsat.hLsarLookupNames2, "nobody"),
                                 (lsat.hLsarLookupSids, "S-1-5-21-1-2-3-4")):
            with self.assertRaisesRegex(DCERPCException, "NONE_MAPPED"):
                look_up(calls, policy, [unknown])

    def test_the_policy_describes_the_server_and_the_caller(self):
        calls = self.calls(r"\lsarpc", lsat.MSRPC_UUID_LSAT)
        policy = self.policy(calls)
        which = lsad.POLICY_INFORMATION_CLASS
        for query in (lsad.hLsarQueryInformationPolicy, lsad.hLsarQueryInformationPolicy2):
            domain = query(calls, policy, which.PolicyAccountDomainInformation)["PolicyInformation"]
            domain = domain["PolicyAccountDomainInfo"]
            self.assertEqual(domain["DomainName"], "SLUICE")
            self.assertRegex(domain["DomainSid"].formatCanonical(), r"^S-1-5-21-\d+-\d+-\d+$")
            workgroup = query(calls, policy, which.PolicyPrimaryDomainInformation)["PolicyInformation"]
            self.assertEqual(workgroup["PolicyPrimaryDomainInfo"]["Name"], "WORKGROUP")
        self.assertEqual(lsat.hLsarGetUserName(calls)["UserName"], served.USER)
        lsad.hLsarClose(calls, policy)

    def test_accounts_are_listed_looked_up_and_described(self):
        calls = self.of_boss(r"\samr", samr.MSRPC_UUID_SAMR)
        for connect in (samr.hSamrConnect, samr.hSamrConnect2, samr.hSamrConnect4, samr.hSamrConnect5):
            server = connect(calls)["ServerHandle"]
        names = samr.hSamrEnumerateDomainsInSamServer(calls, server)["Buffer"]["Buffer"]
        self.assertEqual([one["Name"] for one in names], ["SLUICE", "Builtin"])

        def open_domain(name):
            number = samr.hSamrLookupDomainInSamServer(calls, server, name)["DomainId"]
            return samr.hSamrOpenDomain(calls, server, domainId=number)["DomainHandle"]

        domain, builtin = open_domain("SLUICE"), open_domain("Builtin")
        users = samr.hSamrEnumerateUsersInDomain(calls, domain)["Buffer"]["Buffer"]
        numbers = {one["Name"]: one["RelativeId"] for one in users}
        self.assertEqual(set(numbers), {"boss", served.USER})
        groups = samr.hSamrEnumerateGroupsInDomain(calls, domain)["Buffer"]["Buffer"]
        self.assertEqual([one["Name"] for one in groups], ["None"])
        aliases = samr.hSamrEnumerateAliasesInDomain(calls, builtin)["Buffer"]["Buffer"]
        self.assertEqual([one["Name"] for one in aliases], ["Administrators", "Users", "Guests"])
        found = samr.hSamrLookupNamesInDomain(calls, domain, ["Boss"])["RelativeIds"]["Element"]
        self.assertEqual([one["Data"] for one in found], [numbers["boss"]])
        named = samr.hSamrLookupIdsInDomain(calls, domain, [numbers["boss"]])["Names"]["Element"]
        self.assertEqual([one["Data"] for one in named], ["boss"])
        user = samr.hSamrOpenUser(calls, domain, userId=numbers["boss"])["UserHandle"]
        everything = samr.USER_INFORMATION_CLASS.UserAllInformation
        for query in (samr.hSamrQueryInformationUser, samr.hSamrQueryInformationUser2):
            described = query(calls, user, everything)["Buffer"]["All"]
            self.assertEqual((described["UserName"], described["UserId"]), ("boss", numbers["boss"]))
        groups = samr.hSamrGetGroupsForUser(calls, user)["Groups"]["Groups"]
        self.assertEqual([one["RelativeId"] for one in groups], [513])
        sid = samr.hSamrRidToSid(calls, domain, numbers["boss"])["Sid"]
        member = samr.PSAMPR_SID_INFORMATION()
        member["SidPointer"] = sid
        members = samr.SAMPR_PSID_ARRAY()
        members["Sids"].append(member)
        aliases = samr.hSamrGetAliasMembership(calls, builtin, members)["Membership"]["Element"]
        self.assertEqual([one["Data"] for one in aliases], [545, 544])
        samr.hSamrCloseHandle(calls, user)

    def test_an_administrator_lists_and_ends_sessions(self):
        others = self.calls(r"\srvsvc", srvs.MSRPC_UUID_SRVS)
        calls = self.of_boss(r"\srvsvc", srvs.MSRPC_UUID_SRVS)
        for level in (0, 1, 2, 10, 502):
            found = srvs.hNetrSessionEnum(calls, "\0", "\0", level)["InfoStruct"]["SessionInfo"][f"Level{level}"]
            self.assertEqual(len(found["Buffer"]), 2)
            self.assertEqual(found["Buffer"][0][f"sesi{level}_cname"], "127.0.0.1\0")
        srvs.hNetrSessionDel(calls, "\0", f"{served.USER}\0")
        found = srvs.hNetrSessionEnum(calls, "\0", "\0", 10)["InfoStruct"]["SessionInfo"]["Level10"]["Buffer"]
        self.assertEqual([one["sesi10_username"] for one in found], ["boss\0"])
        with self.assertRaises((SessionError, NetBIOSError)):
            srvs.hNetrSessionEnum(others, "\0", "\0", 10)

    def test_an_administrator_lists_and_closes_files(self):
        connection = self.calls(r"\srvsvc", srvs.MSRPC_UUID_SRVS).get_rpc_transport().get_smb_connection()
        tree = connection.connectTree("share")
        connection.createFile(tree, "file")
        calls = self.of_boss(r"\srvsvc", srvs.MSRPC_UUID_SRVS)
        found = srvs.hNetrFileEnum(calls, NULL, NULL, 3)["InfoStruct"]["FileInfo"]["Level3"]["Buffer"]
        self.assertEqual([(one["fi3_path_name"], one["fi3_username"]) for one in found],
                         [("C:\\share\\file\0", f"{served.USER}\0")])
        number = found[0]["fi3_id"]
        described = srvs.hNetrFileGetInfo(calls, number, 3)["InfoStruct"]["FileInfo3"]
        self.assertEqual(described["fi3_path_name"], "C:\\share\\file\0")
        srvs.hNetrFileClose(calls, number)
        with self.assertRaisesRegex(DCERPCException, "0x90a"):
            srvs.hNetrFileClose(calls, number)
        trees = srvs.hNetrConnectionEnum(calls, "share\0", 1)["InfoStruct"]["ConnectInfo"]["Level1"]["Buffer"]
        self.assertEqual([one["coni1_username"] for one in trees], [f"{served.USER}\0"])

    def test_a_user_sees_and_ends_nothing_of_others(self):
        self.of_boss(r"\srvsvc", srvs.MSRPC_UUID_SRVS)
        calls = self.calls(r"\srvsvc", srvs.MSRPC_UUID_SRVS)
        found = srvs.hNetrSessionEnum(calls, "\0", "\0", 10)["InfoStruct"]["SessionInfo"]["Level10"]["Buffer"]
        self.assertEqual([one["sesi10_username"] for one in found], [f"{served.USER}\0"])
        for refused in (lambda: srvs.hNetrSessionEnum(calls, "\0", "\0", 502),
                        lambda: srvs.hNetrSessionDel(calls, "\0", "boss\0"),
                        lambda: srvs.hNetrFileEnum(calls, NULL, NULL, 3),
                        lambda: srvs.hNetrFileClose(calls, 1)):
            with self.assertRaisesRegex(DCERPCException, "access_denied"):
                refused()

    def test_the_workstation_lists_its_users_for_an_administrator(self):
        calls = self.of_boss(r"\wkssvc", wkst.MSRPC_UUID_WKST)
        for level in (0, 1):
            found = wkst.hNetrWkstaUserEnum(calls, level)["UserInfo"]["WkstaUserInfo"][f"Level{level}"]["Buffer"]
            self.assertEqual([one[f"wkui{level}_username"] for one in found], ["boss\0"])
        self.assertEqual(wkst.hNetrWkstaGetInfo(calls, 102)["WkstaInfo"]["WkstaInfo102"]["wki102_computername"],
                         "SLUICE\0")
        calls = self.calls(r"\wkssvc", wkst.MSRPC_UUID_WKST)
        with self.assertRaisesRegex(DCERPCException, "access_denied"):
            wkst.hNetrWkstaUserEnum(calls, 0)


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
