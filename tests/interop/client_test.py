#!/usr/bin/env python3
"""`sluice get`, `put`, `ls`, `cat`, `rm`, `mkdir` against our server and against Debian's Samba."""

import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import time
import unittest

import served

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import smb  # noqa: E402  (found through the line above)

WAYS = {"signed": (), "unsigned": ("--no-signing",), "encrypted": ("--encrypt",), "2.1": ("--dialect", "2.1"),
        "3.0": ("--dialect", "3.0"), "3.0.2 encrypted": ("--dialect", "3.0.2", "--encrypt")}
COMMAND_SECONDS_MAX = 120
SAMBA_SETTINGS = ("store dos attributes = yes", "vfs objects = catia",
                  "catia:mappings = 0x22:0xf020,0x2a:0xf021,0x3a:0xf022,0x3c:0xf023,0x3e:0xf024,0x3f:0xf025,"
                  "0x5c:0xf026,0x7c:0xf027")


class Client:
    """What the cases below share: they differ in the server."""

    def url(self, path=""):
        return f"smb://{self.user}@127.0.0.1:{self.port}/share/{path}"

    def run_client(self, *arguments, password=served.PASSWORD):
        environment = {key: value for key, value in os.environ.items() if key != "SLUICE_PASSWORD"}
        environment["SLUICE_MULTIPLEXER"] = getattr(self, "multiplexer", "io_uring")
        if password is not None:
            environment["SLUICE_PASSWORD"] = password
        return subprocess.run([str(served.ServedCase.program), *map(str, arguments)], stdin=subprocess.DEVNULL,
                              capture_output=True, cwd=self.local, env=environment, timeout=COMMAND_SECONDS_MAX)

    def do(self, *arguments):
        done = self.run_client(*arguments)
        self.assertEqual((done.returncode, done.stderr.decode()), (0, ""), arguments)
        return done.stdout

    def refuse(self, *arguments, **how):
        done = self.run_client(*arguments, **how)
        self.assertEqual(done.returncode, 1, arguments)
        return done.stderr.decode()

    def test_a_tree_goes_there_and_comes_back_in_every_way(self):
        served.make_tree(self.local / "tree")
        for name, options in WAYS.items():
            with self.subTest(way=name):
                self.do("put", "-r", *options, "tree", self.url("copy"))
                self.assert_same_tree(self.local / "tree", self.folder / "copy")
                self.do("get", "-r", *options, self.url("copy"), "back")
                self.assert_same_tree(self.local / "tree", self.local / "back")
                self.do("rm", "-r", *options, self.url("copy"))
                self.assertEqual(list(self.folder.iterdir()), [])
                shutil.rmtree(self.local / "back")

    def test_a_large_file_is_compared_and_keeps_its_time(self):
        data = os.urandom(40 << 20)
        (self.local / "large").write_bytes(data)
        os.utime(self.local / "large", ns=(10**18, 10**18 + 123456700))
        self.do("put", "--checksum", "large", self.url())
        self.assertTrue((self.folder / "large").read_bytes() == data)
        self.assertEqual((self.folder / "large").stat().st_mtime_ns, 10**18 + 123456700)
        self.do("get", "--checksum", self.url("large"), "again")
        self.assertTrue((self.local / "again").read_bytes() == data)
        self.assertEqual((self.local / "again").stat().st_mtime_ns, 10**18 + 123456700)
        self.assertTrue(self.do("cat", self.url("large")) == data)

    def test_names_that_windows_forbids_keep_their_meaning(self):
        names = ['a:b', 'who?', 'star*', '<x>', 'a"b', 'p|q', 'back\\slash']
        (self.local / "odd").mkdir()
        for name in names:
            (self.local / "odd" / name).write_text(name)
        self.do("put", "-r", "odd", self.url("odd"))
        self.assertEqual(sorted(os.listdir(self.folder / "odd")), sorted(names))
        self.do("get", "-r", self.url("odd"), "back")
        self.assert_same_tree(self.local / "odd", self.local / "back")

    def test_a_folder_is_listed_with_sizes_and_times(self):
        (self.folder / "f").write_bytes(b"x" * 1234)
        (self.folder / "d").mkdir()
        os.utime(self.folder / "f", (10**9, 10**9))
        self.assertEqual(self.do("ls", self.url()), b"d/\nf\n")
        line = self.do("ls", "-l", self.url("f")).decode().split()
        self.assertEqual((line[1], line[2][:4], line[-1]), ("1234", "2001", "f"))

    def test_folders_are_made_and_removed(self):
        self.do("mkdir", "-p", self.url("a/b/c"))
        self.do("mkdir", "-p", self.url("a/b/c"))
        self.assertIn("exists", self.refuse("mkdir", self.url("a/b")))
        self.assertIn("-r takes", self.refuse("rm", self.url("a")))
        self.do("rm", "-r", self.url("a"))
        self.assertFalse((self.folder / "a").exists())

    def test_what_is_refused_is_said_with_its_place_and_its_remedy(self):
        said = self.refuse("get", self.url("no/such"))
        self.assertIn(f"smb://127.0.0.1:{self.port}/share/no/such: ", said)
        self.assertIn("does not exist", said)
        self.assertIn("password", self.refuse("ls", self.url(), password="wrong"))
        self.assertIn("no such share", self.refuse("ls", f"smb://{self.user}@127.0.0.1:{self.port}/nowhere"))
        self.assertIn("refused", self.refuse("ls", f"smb://{self.user}@127.0.0.1:1/share").lower())
        self.assertIn("--password-file", self.refuse("ls", "smb://me:secret@127.0.0.1/share"))

    def test_a_file_never_takes_the_place_of_what_is_none(self):
        (self.folder / "small").write_bytes(b"hello")
        os.mkfifo(self.local / "pipe")
        said = self.refuse("get", self.url("small"), "pipe")
        self.assertIn("pipe is no file", said)
        self.assertIn("sluice cat", said)
        self.assertTrue((self.local / "pipe").is_fifo())
        self.assertEqual(self.do("cat", self.url("small")), b"hello")

    def test_the_password_may_come_from_a_file(self):
        (self.local / "secret").write_text(served.PASSWORD + "\n")
        done = self.run_client("ls", "--password-file", "secret", self.url(), password=None)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_what_is_cut_off_has_not_the_final_name_and_is_resumed(self):
        data = os.urandom(100 << 20)
        (self.folder / "large").write_bytes(data)
        part = self.local / "large.part"
        environment = dict(os.environ, SLUICE_PASSWORD=served.PASSWORD)
        for _ in range(20):
            process = subprocess.Popen([str(served.ServedCase.program), "get", self.url("large")], cwd=self.local,
                                       env=environment, stderr=subprocess.DEVNULL)
            while process.poll() is None and not (part.exists() and part.stat().st_size > 1 << 20):
                time.sleep(0.001)
            process.send_signal(signal.SIGINT)
            process.wait()
            if part.exists():
                break
            (self.local / "large").unlink()  # it was faster
        self.assertFalse((self.local / "large").exists())
        # What is there already is not read again: a byte that differs stays.
        with part.open("r+b") as file:
            file.write(bytes([data[0] ^ 1]))
        os.truncate(part, 1 << 20)
        resumed = self.run_client("get", "--resume", self.url("large"))
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        got = (self.local / "large").read_bytes()
        self.assertTrue(got[1:] == data[1:])
        self.assertFalse(part.exists())
        if got[0] == data[0]:
            self.skipTest("the file system here keeps no attributes, so it began again")

    def test_what_is_there_already_is_left_alone(self):
        served.make_tree(self.local / "tree")
        self.do("put", "-r", "tree", self.url("copy"))
        before = {path: path.stat().st_ino for path in (self.folder / "copy").rglob("*") if path.is_file()}
        # `put` into a folder that is there makes one of its name in it: so name the folder above.
        (self.local / "copy").symlink_to("tree")
        self.do("put", "-r", "--resume", "copy", self.url())
        self.assertEqual(before, {path: path.stat().st_ino for path in before})

    def test_links_here_are_left_out_and_said(self):
        (self.local / "d").mkdir()
        (self.local / "d" / "link").symlink_to("/etc/passwd")
        done = self.run_client("put", "-r", "d", self.url("d"))
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"left out", done.stderr)
        self.assertEqual(os.listdir(self.folder / "d"), [])


@served.on_every_multiplexer
class Sluice(Client):
    server_arguments = ("--no-signing",)
    user = served.USER

    @property
    def port(self):
        return self.server.port


class Samba(Client, unittest.TestCase):
    def setUp(self):
        if not shutil.which("smbd") or os.geteuid() != 0 and not shutil.which("smbpasswd"):
            self.skipTest("smbd is not installed (Debian package samba)")
        served.make_folders(self).chmod(stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
        samba = smb.Samba(self.folder, settings=SAMBA_SETTINGS)
        samba.__enter__()
        self.addCleanup(samba.__exit__, None, None, None)
        self.port = samba.port
        self.user = samba.account.split("%")[0]

    def test_several_channels_carry_one_file(self):
        data = os.urandom(40 << 20)
        (self.local / "large").write_bytes(data)
        self.do("put", "--channels", "4", "--checksum", "large", self.url())
        self.do("get", "--channels", "4", "--encrypt", self.url("large"), "again")
        self.assertTrue((self.local / "again").read_bytes() == data)

    assert_same_tree = served.ServedCase.assert_same_tree


if __name__ == "__main__":
    served.main()
