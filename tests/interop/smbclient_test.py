#!/usr/bin/env python3
"""Samba's smbclient against `sluice serve`: commands at its prompt, in every dialect and protection."""

import hashlib
import os
import re
import shutil
import subprocess
import time
import unittest

import served

DIALECTS = ("SMB2_02", "SMB2_10", "SMB3_00", "SMB3_02", "SMB3_11")
COMMAND_SECONDS_MAX = 120

if not shutil.which("smbclient"):
    served.skip("smbclient is not installed (Debian package smbclient)")


class Smbclient:
    """The common part of the cases below."""

    def run_smbclient(self, *arguments, user=f"{served.USER}%{served.PASSWORD}"):
        """Returns its exit status and its whole output."""
        command = ["smbclient", "-p", str(self.server.port), "-U", user, *arguments]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, cwd=self.local, timeout=COMMAND_SECONDS_MAX)
        return done.returncode, done.stdout

    def do(self, commands, *arguments):
        """Runs commands on the share. All of them must succeed: smbclient itself exits with the status of the last one."""
        status, text = self.run_smbclient("//127.0.0.1/share", *arguments, "-c", commands)
        self.assertEqual(status, 0, f"smbclient -c '{commands}' printed:\n{text}")
        self.assertNotIn("NT_STATUS_", text, f"smbclient -c '{commands}'")
        return text

    def refuse(self, commands, expected, *arguments):
        """Runs commands of which one must fail with this status."""
        _, text = self.run_smbclient("//127.0.0.1/share", *arguments, "-c", commands)
        self.assertIn(expected, text, f"smbclient -c '{commands}'")


def dialect(name):
    return ("--max-protocol", name, f"--option=client min protocol={name}")


@served.on_every_multiplexer
class Transfer(Smbclient):
    def put_and_get(self, *arguments):
        data = (b"sluice " * 50_000) + b"end"
        (self.local / "sent").write_bytes(data)
        (self.local / "received").unlink(missing_ok=True)
        self.do("put sent; get sent received; del sent", *arguments)
        self.assertTrue((self.local / "received").read_bytes() == data, "received differs from sent")
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_every_dialect_carries_a_file_both_ways(self):
        for name in DIALECTS:
            with self.subTest(dialect=name):
                self.put_and_get(*dialect(name))

    def test_every_dialect_signs_on_request(self):
        for name in DIALECTS:
            with self.subTest(dialect=name):
                self.put_and_get("--client-protection=sign", *dialect(name))

    def test_every_dialect_from_3_0_on_encrypts_on_request(self):
        for name in DIALECTS[2:]:
            with self.subTest(dialect=name):
                self.put_and_get("--client-protection=encrypt", *dialect(name))

    def test_every_cipher_and_signing_algorithm_works(self):
        for cipher in ("AES-128-CCM", "AES-128-GCM", "AES-256-CCM", "AES-256-GCM"):
            with self.subTest(cipher=cipher):
                self.put_and_get("--client-protection=encrypt",
                                 f"--option=client smb3 encryption algorithms={cipher}")
        for algorithm in ("HMAC-SHA256", "AES-128-CMAC", "AES-128-GMAC"):
            with self.subTest(algorithm=algorithm):
                self.put_and_get("--client-protection=sign",
                                 f"--option=client smb3 signing algorithms={algorithm}")

    def test_a_tree_comes_back_byte_for_byte(self):
        served.make_tree(self.local / "sent")
        (self.local / "received").mkdir()
        self.do("prompt off; recurse on; lcd sent; mput *")
        self.assert_same_tree(self.local / "sent", self.directory)
        self.do("prompt off; recurse on; lcd received; mget *")
        self.assert_same_tree(self.local / "sent", self.local / "received")

    def test_an_encrypted_tree_comes_back_byte_for_byte(self):
        served.make_tree(self.local / "sent", seed=2)
        (self.local / "received").mkdir()
        self.do("prompt off; recurse on; lcd sent; mput *; lcd ../received; mget *", "--client-protection=encrypt")
        self.assert_same_tree(self.local / "sent", self.directory)
        self.assert_same_tree(self.local / "sent", self.local / "received")

    def test_a_large_file_is_transferred_completely(self):
        block = hashlib.sha256(b"sluice").digest() * 32_768  # 1 MiB
        with (self.local / "big").open("wb") as big:
            for number in range(200):
                big.write(number.to_bytes(8, "little") + block[8:])
            big.write(b"odd end")
        self.do("put big; get big back")
        expected = digest(self.local / "big")
        self.assertEqual(digest(self.directory / "big"), expected)
        self.assertEqual(digest(self.local / "back"), expected)

    def test_an_interrupted_download_is_resumed(self):
        (self.directory / "file").write_bytes(bytes(range(256)) * 4096)
        (self.local / "file").write_bytes((bytes(range(256)) * 4096)[:300_001])
        self.do("reget file")
        self.assertTrue((self.local / "file").read_bytes() == (self.directory / "file").read_bytes())


def digest(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@served.on_every_multiplexer
class Names(Smbclient):
    def test_a_listing_shows_names_sizes_and_kinds(self):
        (self.directory / "directory").mkdir()
        (self.directory / "Grüße.txt").write_bytes(b"12345")
        text = self.do("ls")
        self.assertRegex(text, r"(?m)^  Grüße\.txt +\S* +5  ")
        self.assertRegex(text, r"(?m)^  directory +D +0  ")
        self.assertRegex(text, r"blocks of size \d+\. \d+ blocks available")

    def test_a_pattern_narrows_a_listing(self):
        for name in ("a.txt", "b.txt", "c.bin"):
            (self.directory / name).touch()
        names = re.findall(r"(?m)^  (\S+) +[A-Z]+ ", self.do("ls *.txt"))
        self.assertEqual(sorted(names), ["a.txt", "b.txt"])

    def test_a_directory_of_thousands_is_listed_completely(self):
        wanted = [f"file number {number:05}" for number in range(3000)]
        for name in wanted:
            (self.directory / name).touch()
        listed = re.findall(r"(?m)^  (file number \d+) ", self.do("ls"))
        self.assertEqual(sorted(listed), wanted)

    def test_files_and_directories_are_renamed_and_deleted(self):
        (self.directory / "old").write_bytes(b"content")
        self.do("mkdir directory; rename old directory\\new; mkdir other; rmdir other; rename directory moved")
        self.assertEqual(served.tree_of(self.directory), {"moved": None, "moved/new": b"content"})
        self.do("del moved\\new; rmdir moved")
        self.assertEqual(served.tree_of(self.directory), {})

    def test_deltree_removes_a_whole_tree(self):
        served.make_tree(self.directory / "tree", sizes=(0, 1, 2, 3, 4))
        self.do("deltree tree")
        self.assertEqual(served.tree_of(self.directory), {})

    def test_a_rename_does_not_replace_an_existing_file(self):
        (self.directory / "one").write_bytes(b"1")
        (self.directory / "two").write_bytes(b"2")
        self.refuse("rename one two", "NT_STATUS_OBJECT_NAME_COLLISION")
        self.assertEqual(served.tree_of(self.directory), {"one": b"1", "two": b"2"})

    def test_case_does_not_matter_when_a_name_is_looked_up(self):
        (self.directory / "Report Übersicht.txt").write_bytes(b"found")
        self.do("get \"REPORT übersicht.TXT\" got")
        self.assertEqual((self.local / "got").read_bytes(), b"found")

    def test_missing_files_and_directories_have_distinct_errors(self):
        (self.directory / "directory").mkdir()
        (self.directory / "directory" / "kept").touch()
        self.refuse("get absent", "NT_STATUS_OBJECT_NAME_NOT_FOUND")
        self.refuse("get absent\\file", "NT_STATUS_OBJECT_PATH_NOT_FOUND")
        self.refuse("get directory", "NT_STATUS_FILE_IS_A_DIRECTORY")
        self.refuse("mkdir directory", "NT_STATUS_OBJECT_NAME_COLLISION")
        self.refuse("rmdir directory", "NT_STATUS_DIRECTORY_NOT_EMPTY")
        self.refuse("cd absent", "NT_STATUS_OBJECT_NAME_NOT_FOUND")

    def test_files_outside_the_directory_cannot_be_accessed(self):
        (self.directory.parent / "secret").write_bytes(b"secret")
        (self.directory / "way out").symlink_to(self.directory.parent)
        for path in ("..\\secret", "way out\\secret", "way out\\..\\..\\local"):
            with self.subTest(path=path):
                self.run_smbclient("//127.0.0.1/share", "-c", f'get "{path}" stolen')
                self.assertFalse((self.local / "stolen").exists(), f"{path} was read")


@served.on_every_multiplexer
class Facts(Smbclient):
    def test_allinfo_shows_size_times_and_streams(self):
        (self.directory / "file").write_bytes(b"x" * 1234)
        text = self.do("allinfo file")
        self.assertIn("stream: [::$DATA], 1234 bytes", text)
        year = time.strftime("%Y")
        for what in ("create_time", "access_time", "write_time", "change_time"):
            self.assertRegex(text, rf"(?m)^{what}: .*{year}")

    def test_attributes_are_kept(self):
        (self.directory / "file").touch()
        self.do("setmode file +rh")
        self.assertRegex(self.do("ls file"), r"(?m)^  file +\w*H\w*R|^  file +\w*R\w*H")
        self.do("setmode file -rh")
        self.assertNotRegex(self.do("ls file"), r"(?m)^  file +\w*[HR]")

    def test_a_write_time_that_was_set_is_kept(self):
        (self.directory / "file").touch()
        self.do("utimes file -1 -1 2001:02:03-04:05:06 -1")
        self.assertIn("2001", time.strftime("%Y", time.localtime((self.directory / "file").stat().st_mtime)))
        self.assertRegex(self.do("allinfo file"), r"(?m)^write_time: .*2001")

    def test_the_volume_has_a_name_and_a_size(self):
        self.assertRegex(self.do("volume"), r"Volume: \|.+\| serial number 0x[0-9a-f]+")
        self.assertRegex(self.do("du"), r"\d+ blocks of size \d+")

    def test_named_streams_are_stored_with_the_file(self):
        (self.local / "data").write_bytes(b"in a stream")
        (self.directory / "file").write_bytes(b"in the file")
        self.do("put data file:notes; get file:notes back; get file main")
        self.assertEqual((self.local / "back").read_bytes(), b"in a stream")
        self.assertEqual((self.local / "main").read_bytes(), b"in the file")
        self.assertIn("stream: [:notes:$DATA], 11 bytes", self.do("allinfo file"))


@served.on_every_multiplexer
class LogOn(Smbclient):
    def test_shares_are_listed(self):
        status, text = self.run_smbclient("-L", "127.0.0.1")
        self.assertEqual(status, 0, text)
        self.assertRegex(text, r"(?m)^\s+share +Disk")
        self.assertRegex(text, r"(?m)^\s+IPC\$ +IPC")

    def test_a_wrong_password_is_refused(self):
        status, text = self.run_smbclient("//127.0.0.1/share", "-c", "ls", user=f"{served.USER}%wrong")
        self.assertNotEqual(status, 0)
        self.assertIn("NT_STATUS_LOGON_FAILURE", text)

    def test_an_unknown_user_cannot_be_distinguished_from_a_wrong_password(self):
        status, text = self.run_smbclient("//127.0.0.1/share", "-c", "ls", user=f"nobody-here%{served.PASSWORD}")
        self.assertNotEqual(status, 0)
        self.assertIn("NT_STATUS_LOGON_FAILURE", text)

    def test_anonymous_logons_are_refused(self):
        status, text = self.run_smbclient("//127.0.0.1/share", "-N", "-c", "ls", user="%")
        self.assertNotEqual(status, 0)
        self.assertIn("NT_STATUS_ACCESS_DENIED", text)

    def test_an_unknown_share_is_refused(self):
        status, text = self.run_smbclient("//127.0.0.1/absent", "-c", "ls")
        self.assertNotEqual(status, 0)
        self.assertIn("NT_STATUS_BAD_NETWORK_NAME", text)


@served.on_every_multiplexer
class EncryptionRequired(Smbclient):
    server_arguments = ("--encrypt",)

    def test_a_client_that_supports_encryption_encrypts(self):
        (self.directory / "file").write_bytes(b"content")
        self.do("get file")
        self.assertEqual((self.local / "file").read_bytes(), b"content")

    def test_a_dialect_without_encryption_is_refused(self):
        self.refuse("ls", "NT_STATUS_ACCESS_DENIED", *dialect("SMB2_10"))


@served.on_every_multiplexer
class PreviousVersions(Smbclient):
    server_arguments = ("--previous-versions", ".snapshots/%Y-%m-%d_%H%M")
    MONDAY = "@GMT-2026.11.23-06.00.00"
    TUESDAY = "@GMT-2026.11.24-06.00.00"

    def setUp(self):
        served.make_directories(self)
        for day, text in (("2026-11-23_0600", b"monday"), ("2026-11-24_0600", b"tuesday")):
            (self.directory / ".snapshots" / day / "d").mkdir(parents=True)
            (self.directory / ".snapshots" / day / "d" / "file").write_bytes(text)
        (self.directory / ".snapshots" / "2026-11-23_0600" / "gone").write_bytes(b"old")
        (self.directory / ".snapshots" / "2026-11-22_0600").symlink_to("/etc")
        (self.directory / "d").mkdir()
        (self.directory / "d" / "file").write_bytes(b"now")
        self.server = served.Server(self.program, self.directory, self.multiplexer, self.server_arguments)
        self.server.__enter__()
        self.addCleanup(self.server.__exit__, None, None, None)

    def test_allinfo_lists_them_with_the_latest_first(self):
        text = self.do("allinfo d/file")
        self.assertEqual(re.findall("^@GMT.*$", text, re.MULTILINE), [self.TUESDAY, self.MONDAY])
        self.assertEqual(re.findall(r"^size: (\d+)$", text, re.MULTILINE), ["7", "6"])

    def test_a_file_is_copied_back_from_each_of_them(self):
        for name in DIALECTS:
            with self.subTest(dialect=name):
                self.do(f"get {self.MONDAY}/d/file monday; get d/{self.TUESDAY}/file tuesday; get d/file now", *dialect(name))
                self.assertEqual([(self.local / each).read_bytes() for each in ("monday", "tuesday", "now")],
                                 [b"monday", b"tuesday", b"now"])

    def test_a_directory_lists_the_files_that_it_had(self):
        self.assertIn("gone", self.do(f"ls {self.MONDAY}/*"))
        self.assertNotIn("gone", self.do(f"ls {self.TUESDAY}/*"))

    def test_nothing_changes_in_them(self):
        before = served.tree_of(self.directory)
        (self.local / "new").write_bytes(b"new")
        for command in (f"put new {self.MONDAY}/new", f"put new {self.MONDAY}/d/file", f"del {self.MONDAY}/gone",
                        f"mkdir {self.MONDAY}/directory"):
            with self.subTest(command=command):
                self.refuse(command, "NT_STATUS_MEDIA_WRITE_PROTECTED")
        for command in (f"rename {self.MONDAY}/gone {self.MONDAY}/other", f"rename d/file {self.MONDAY}/other"):
            with self.subTest(command=command):
                self.refuse(command, "NT_STATUS_NOT_SAME_DEVICE")
        self.assertEqual(served.tree_of(self.directory), before)

    def test_a_time_without_a_snapshot_is_not_found(self):
        for token in ("@GMT-2026.11.23-06.00.01", "@GMT-2026.11.25-06.00.00", "@GMT-2026.11.22-06.00.00"):
            self.refuse(f"get {token}/d/file", "NT_STATUS_OBJECT_NAME_NOT_FOUND")


class Configured(Smbclient):
    """A share with SETTINGS in a configuration file."""
    ARGUMENTS = ()

    def setUp(self):
        served.make_directories(self)
        self.configuration = self.local / "sluice.toml"
        self.write_settings(self.SETTINGS)
        self.server = served.Server(self.program, self.local, self.multiplexer, ("--config", str(self.configuration), *self.ARGUMENTS),
                                    share="local")
        self.server.__enter__()
        self.addCleanup(self.server.__exit__, None, None, None)

    def write_settings(self, settings):
        self.configuration.write_text(f'[[share]]\nname = "share"\npath = "{self.directory}"\n{settings}')


@served.on_every_multiplexer
class FileRules(Configured):
    """The settings of a share for its files: owners, modes, hidden and rejected names."""
    SETTINGS = f"""
group = {os.getegid()}
file-mode = "0640"
folder-mode = "2750"
hide = ["*.tmp"]
hide-dot-files = true
reject = ["*.exe", "private"]
"""

    def mode(self, name):
        return f"{(self.directory / name).stat().st_mode & 0o7777:04o}"

    def attributes(self, name):
        listed = re.search(rf"^  {re.escape(name)} +(\w*) +\d+  ", self.do("ls"), re.MULTILINE)
        return listed[1] if listed else None

    def test_new_files_and_directories_have_the_mode_and_the_group(self):
        (self.local / "new").write_bytes(b"new")
        for name in DIALECTS:
            with self.subTest(dialect=name):
                self.do("put new f; mkdir d; put new d/g", *dialect(name))
                self.assertEqual([self.mode(each) for each in ("f", "d", "d/g")], ["0640", "2750", "0640"])
                self.assertEqual((self.directory / "f").stat().st_gid, os.getegid())
                self.do("del f; del d/g; rmdir d", *dialect(name))

    def test_hidden_names_are_listed_with_the_attribute(self):
        for name in ("a.TMP", ".profile", "b"):
            (self.directory / name).write_bytes(b"")
        self.assertEqual([self.attributes(each) for each in ("a.TMP", ".profile", "b")], ["AH", "AH", "A"])

    def test_rejected_names_do_not_exist_and_cannot_be_created(self):
        (self.local / "new").write_bytes(b"new")
        (self.directory / "a.exe").write_bytes(b"old")
        (self.directory / "private").mkdir()
        (self.directory / "private" / "f").write_bytes(b"old")
        (self.directory / "b").write_bytes(b"old")
        before = served.tree_of(self.directory)
        self.assertEqual([self.attributes(each) for each in ("a.exe", "private", "b")], [None, None, "A"])
        for name in DIALECTS:
            for command, status in (("get a.exe", "OBJECT_NAME_NOT_FOUND"), ("get A.EXE:stream", "OBJECT_NAME_NOT_FOUND"),
                                    ("get private/f", "OBJECT_PATH_NOT_FOUND"), ("put new c.exe", "ACCESS_DENIED"),
                                    ("put new a.exe", "ACCESS_DENIED"), ("mkdir d.exe", "ACCESS_DENIED"),
                                    ("put new private/g", "OBJECT_PATH_NOT_FOUND"), ("del a.exe", "NO_SUCH_FILE"),
                                    ("rename b b.exe", "ACCESS_DENIED"), ("hardlink b b.exe", "ACCESS_DENIED")):
                with self.subTest(dialect=name, command=command):
                    self.refuse(command, f"NT_STATUS_{status}", *dialect(name))
        self.assertEqual(served.tree_of(self.directory), before)

    def test_a_reload_changes_the_rules_for_later_files(self):
        (self.local / "new").write_bytes(b"new")
        self.do("put new f")
        self.refuse("put new a.exe", "NT_STATUS_ACCESS_DENIED")
        self.write_settings('file-mode = "0600"\n')
        self.server.reload()
        self.do("put new g; put new a.exe")
        self.assertEqual([self.mode(each) for each in ("f", "g", "a.exe")], ["0640", "0600", "0600"])


@served.on_every_multiplexer
class ReadOnly(Smbclient):
    server_arguments = ("--read-only",)

    def test_files_are_read_and_changes_are_refused(self):
        (self.directory / "file").write_bytes(b"content")
        (self.local / "new").write_bytes(b"new")
        self.do("get file")
        for command in ("put new", "del file", "mkdir directory", "rename file other"):
            with self.subTest(command=command):
                _, text = self.run_smbclient("//127.0.0.1/share", "-c", command)
                self.assertRegex(text, "NT_STATUS_(ACCESS_DENIED|MEDIA_WRITE_PROTECTED)")
        self.assertEqual(served.tree_of(self.directory), {"file": b"content"})


@served.on_every_multiplexer
class Guests(Smbclient):
    server_arguments = ("--guest", "--guest-write")

    def test_a_guest_reads_and_writes_without_a_password_where_all_users_may(self):
        self.directory.chmod(0o777)
        (self.local / "file").write_bytes(b"content")
        status, text = self.run_smbclient("//127.0.0.1/share", "-N", "-c", "put file; get file back", user="%")
        self.assertEqual(status, 0, text)
        self.assertEqual((self.local / "back").read_bytes(), b"content")

    def test_a_guest_cannot_write_where_only_the_owner_may(self):
        self.directory.chmod(0o755)
        (self.local / "file").write_bytes(b"content")
        _, text = self.run_smbclient("//127.0.0.1/share", "-N", "-c", "ls; put file", user="%")
        self.assertIn("blocks available", text)
        self.assertIn("NT_STATUS_ACCESS_DENIED", text)


@served.on_every_multiplexer
class GuestsThatRead(Smbclient):
    server_arguments = ("--guest",)

    def test_a_guest_reads_and_does_not_write_where_all_accounts_may(self):
        self.directory.chmod(0o777)
        (self.directory / "file").write_bytes(b"content")
        status, text = self.run_smbclient("//127.0.0.1/share", "-N", "-c", "get file", user="%")
        self.assertEqual(status, 0, text)
        self.assertEqual((self.local / "file").read_bytes(), b"content")
        for command in "put file other", "rm file", "mkdir d":
            _, text = self.run_smbclient("//127.0.0.1/share", "-N", "-c", command, user="%")
            self.assertIn("NT_STATUS_ACCESS_DENIED", text)
        self.assertEqual(served.tree_of(self.directory), {"file": b"content"})


@unittest.skipUnless(shutil.which("rpcclient"), "rpcclient is not installed (Debian package smbclient)")
@served.on_every_multiplexer
class Rpcclient:
    """The RPC services."""

    server_arguments = ("--user", "boss%Lake-Tower-3", "--administrator", "boss")

    def ask(self, command, user="boss%Lake-Tower-3"):
        done = subprocess.run(["rpcclient", "-p", str(self.server.port), "-U", user, "127.0.0.1", "-c", command],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=COMMAND_SECONDS_MAX)
        return done.stdout

    def test_names_have_sids_and_sids_have_names(self):
        found = re.search(rf"^{served.USER} (S-1-5-21-\S+) \(User: 1\)$", self.ask(f"lookupnames {served.USER}"), re.M)
        self.assertTrue(found)
        named = self.ask(f"lookupsids {found[1]} S-1-1-0 S-1-5-18 S-1-22-1-7").splitlines()
        self.assertEqual(named, [rf"{found[1]} SLUICE\{served.USER} (1)", r"S-1-1-0 \Everyone (5)",
                                 r"S-1-5-18 NT AUTHORITY\SYSTEM (5)", r"S-1-22-1-7 Unix User\7 (1)"])
        self.assertIn("NT_STATUS_NONE_MAPPED", self.ask("lookupnames nobody"))
        self.assertIn("*unknown*", self.ask("lookupsids S-1-5-21-1-2-3-4"))

    def test_accounts_are_listed(self):
        users = re.findall(r"^user:\[(\w+)\] rid:\[0x[0-9a-f]+\]$", self.ask("enumdomusers"), re.M)
        self.assertEqual(set(users), {"boss", served.USER})
        self.assertIn("group:[None] rid:[0x201]", self.ask("enumdomgroups"))
        self.assertIn("group:[Administrators] rid:[0x220]", self.ask("enumalsgroups builtin"))
        self.assertRegex(self.ask("samlookupnames domain boss"), r"name boss: 0x[0-9a-f]+ \(1\)")
        self.assertIn("Total Users:\t2", self.ask("querydominfo"))

    def test_the_policy_names_the_caller(self):
        self.assertIn("Account Name: boss, Authority Name: SLUICE", self.ask("getusername"))
        self.assertIn("Domain Name: WORKGROUP", self.ask("lsaquery"))

    def test_shares_sessions_and_users_are_listed(self):
        self.assertIn("netname: share", self.ask("netshareenumall"))
        self.assertIn("Received 1 entries", self.ask("netsessenum"))
        self.assertEqual(self.ask("wkssvc_enumerateusers"), "boss\n")
        self.assertIn("WERR_ACCESS_DENIED", self.ask("netsessenum", f"{served.USER}%{served.PASSWORD}"))


if __name__ == "__main__":
    served.main()
