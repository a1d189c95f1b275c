#!/usr/bin/env python3
"""Samba's smbclient and the recycle bin of `sluice serve`."""

import os
import pwd
import time
import unittest

import served
from smbclient_test import COMMAND_SECONDS_MAX, DIALECTS, Configured, dialect


@served.on_every_multiplexer
class RecycleBin(Configured):
    """Deleted files move to the bin of the share."""
    SETTINGS = 'recycle = { days = 30, size = "1G", exclude = ["*.tmp"] }\n'
    BIN = f".recycle/{os.geteuid()}"

    def put(self, name, content=b"content"):
        (self.directory / name).parent.mkdir(parents=True, exist_ok=True)
        (self.directory / name).write_bytes(content)

    def wait_until(self, is_true):
        deadline = time.monotonic() + COMMAND_SECONDS_MAX
        while not is_true():
            self.assertLess(time.monotonic(), deadline, self.server.log())
            time.sleep(0.02)

    def test_a_deleted_file_moves_to_the_bin_and_back(self):
        for name in DIALECTS:
            with self.subTest(dialect=name):
                self.put("d/f", b"data")
                self.do("del d/f", *dialect(name))
                self.assertFalse((self.directory / "d" / "f").exists())
                self.assertEqual((self.directory / self.BIN / "d" / "f").read_bytes(), b"data")
                self.do(f"rename {self.BIN}/d/f d/f", *dialect(name))
                self.assertEqual((self.directory / "d" / "f").read_bytes(), b"data")

    def test_a_deleted_tree_is_in_the_bin_with_its_versions(self):
        for content in (b"1", b"2"):
            self.put("tree/a/b/file.txt", content)
            self.do("deltree tree")
        self.assertFalse((self.directory / "tree").exists())
        found = served.tree_of(self.directory / self.BIN)
        self.assertEqual(found["tree/a/b/file.txt"], b"1")
        self.assertEqual(found["tree/a/b/file (2).txt"], b"2")

    def test_excluded_files_and_those_in_the_bin_are_removed(self):
        self.put("a.tmp")
        self.put("f")
        self.do(f"del a.tmp; del f; del {self.BIN}/f")
        self.assertEqual(list((self.directory / self.BIN).iterdir()), [])

    def test_a_rename_and_an_overwritten_file_leave_the_bin_empty(self):
        (self.local / "new").write_bytes(b"new")
        self.put("f")
        self.do("put new f; rename f g")
        self.assertEqual(list((self.directory / ".recycle").iterdir()), [])

    def test_a_replaced_file_is_in_the_bin(self):
        self.put("d/f", b"old")
        self.put("new", b"new")
        self.do("rename new d/f -f")
        self.assertEqual((self.directory / "d" / "f").read_bytes(), b"new")
        self.assertEqual((self.directory / self.BIN / "d" / "f").read_bytes(), b"old")

    def test_the_bin_is_hidden(self):
        self.put("f")
        self.do("del f")
        self.assertRegex(self.do("ls"), r"\.recycle +DH")

    def test_the_log_tells_why_a_file_cannot_be_moved(self):
        self.put("f")
        (self.directory / ".recycle").rmdir()
        self.put(".recycle/other")
        self.refuse("del f", "NT_STATUS_ACCESS_DENIED")
        self.assertEqual((self.directory / "f").read_bytes(), b"content")
        self.wait_until(lambda: "cannot use the recycle bin" in self.server.log())
        self.assertIn("f: use a directory with other files as the recycle bin", self.server.log())

    def test_the_name_of_the_bin_is_reserved(self):
        for command in ("rename .recycle bin", "rmdir .recycle", "mkdir .recycle/mine"):
            self.refuse(command, "NT_STATUS_ACCESS_DENIED")
        (self.directory / ".recycle").rmdir()
        self.refuse("mkdir .recycle", "NT_STATUS_ACCESS_DENIED")
        self.put("f")
        self.do("del f")
        self.assertTrue((self.directory / self.BIN / "f").exists())

    def test_a_bin_to_which_others_may_write_is_repaired(self):
        (self.directory / ".recycle").chmod(0o777)
        self.put("f")
        self.do("del f")
        self.assertEqual((self.directory / ".recycle").stat().st_mode & 0o7777, 0o755)

    def test_old_files_are_removed_by_size_after_a_reload(self):
        for name in ("f", "g"):
            self.put(name, b"x" * 600_000)
        self.do("del f; del g")
        self.write_settings('recycle = { size = "1M" }\n')
        self.server.reload()
        self.wait_until(lambda: len(list((self.directory / self.BIN).iterdir())) == 1)


@unittest.skipUnless(os.geteuid() == 0, "only root acts as other accounts")
@served.on_every_multiplexer
class RecycleBinOfUsers(Configured):
    """With --impersonate, each owner of files has a directory in the bin."""
    SETTINGS = "recycle = true\n"
    USERS = ("games", "nobody")
    ARGUMENTS = ("--impersonate", *(part for user in USERS for part in ("--user", f"{user}%Stone-Bridge-8")))

    def setUp(self):
        super().setUp()
        # A directory that all may reach, whatever the mode of the test's directory is.
        self.directory.parent.chmod(0o755)
        self.directory.chmod(0o777)

    def put(self, name, owner, mode=0o600):
        (self.directory / name).write_bytes(b"content")
        (self.directory / name).chmod(mode)
        os.chown(self.directory / name, pwd.getpwnam(owner).pw_uid, -1)

    def run_as(self, user, commands):
        return self.run_smbclient("//127.0.0.1/share", "-c", commands, user=f"{user}%Stone-Bridge-8")[1]

    def bin_of(self, user):
        return f".recycle/{pwd.getpwnam(user).pw_uid}"

    def test_a_file_goes_to_the_directory_of_its_owner_whoever_deletes_it(self):
        self.put("f", "games")
        self.assertNotIn("NT_STATUS", self.run_as("nobody", "del f"))
        self.assertFalse((self.directory / "f").exists())
        found = self.directory / self.bin_of("games")
        self.assertEqual((found / "f").read_bytes(), b"content")
        self.assertEqual(found.stat().st_uid, pwd.getpwnam("games").pw_uid)
        self.assertEqual(found.stat().st_mode & 0o7777, 0o700)

    def test_only_the_owner_reads_and_restores_it(self):
        self.put("f", "games", mode=0o666)
        self.run_as("games", "del f")
        name = f"{self.bin_of('games')}/f"
        self.assertIn("NT_STATUS_ACCESS_DENIED", self.run_as("nobody", f"get {name}"))
        self.assertIn("NT_STATUS_ACCESS_DENIED", self.run_as("nobody", f"rename {name} stolen"))
        self.assertIn("NT_STATUS_ACCESS_DENIED", self.run_as("nobody", f"del {name}"))
        self.assertNotIn("NT_STATUS", self.run_as("games", f"rename {name} f"))
        self.assertEqual((self.directory / "f").read_bytes(), b"content")


if __name__ == "__main__":
    served.main()
