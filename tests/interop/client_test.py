#!/usr/bin/env python3
"""`sluice get`, `put`, `ls`, `cat`, `rm`, `mkdir` against our server and against Debian's Samba."""

import os
import pathlib
import queue
import shutil
import signal
import stat
import subprocess
import sys
import unittest

import relay
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
    """The common part of the cases below, which differ in the server."""

    port_override = None  # the port of a relay

    def url(self, path=""):
        return f"smb://{self.user}@127.0.0.1:{self.port_override or self.port}/share/{path}"

    def client_environment(self, password=served.PASSWORD):
        environment = {key: value for key, value in os.environ.items() if key != "SLUICE_PASSWORD"}
        environment["XDG_STATE_HOME"] = str(self.local.parent / "state")
        environment["SLUICE_MULTIPLEXER"] = getattr(self, "multiplexer", "io_uring")
        if password is not None:
            environment["SLUICE_PASSWORD"] = password
        return environment

    def run_client(self, *arguments, password=served.PASSWORD):
        return subprocess.run([str(served.ServedCase.program), *map(str, arguments)], stdin=subprocess.DEVNULL,
                              capture_output=True, cwd=self.local, env=self.client_environment(password),
                              timeout=COMMAND_SECONDS_MAX)

    def do(self, *arguments):
        done = self.run_client(*arguments)
        self.assertEqual((done.returncode, done.stderr.decode()), (0, ""), arguments)
        return done.stdout

    def refuse(self, *arguments, **how):
        done = self.run_client(*arguments, **how)
        self.assertEqual(done.returncode, 1, arguments)
        return done.stderr.decode()

    def test_a_tree_survives_a_round_trip_with_every_option(self):
        served.make_tree(self.local / "tree")
        for name, options in WAYS.items():
            with self.subTest(way=name):
                self.do("put", "-r", *options, "tree", self.url("copy"))
                self.assert_same_tree(self.local / "tree", self.directory / "copy")
                self.do("get", "-r", *options, self.url("copy"), "back")
                self.assert_same_tree(self.local / "tree", self.local / "back")
                self.do("rm", "-r", *options, self.url("copy"))
                self.assertEqual(list(self.directory.iterdir()), [])
                shutil.rmtree(self.local / "back")

    def test_a_large_file_is_compared_and_keeps_its_time(self):
        data = os.urandom(40 << 20)
        (self.local / "large").write_bytes(data)
        os.utime(self.local / "large", ns=(10**18, 10**18 + 123456700))
        self.do("put", "--checksum", "large", self.url())
        self.assertTrue((self.directory / "large").read_bytes() == data)
        self.assertEqual((self.directory / "large").stat().st_mtime_ns, 10**18 + 123456700)
        self.do("get", "--checksum", self.url("large"), "again")
        self.assertTrue((self.local / "again").read_bytes() == data)
        self.assertEqual((self.local / "again").stat().st_mtime_ns, 10**18 + 123456700)
        self.assertTrue(self.do("cat", self.url("large")) == data)

    def test_names_that_windows_forbids_are_preserved(self):
        names = ['a:b', 'who?', 'star*', '<x>', 'a"b', 'p|q', 'back\\slash']
        (self.local / "odd").mkdir()
        for name in names:
            (self.local / "odd" / name).write_text(name)
        self.do("put", "-r", "odd", self.url("odd"))
        self.assertEqual(sorted(os.listdir(self.directory / "odd")), sorted(names))
        self.do("get", "-r", self.url("odd"), "back")
        self.assert_same_tree(self.local / "odd", self.local / "back")

    def test_a_directory_is_listed_with_sizes_and_times(self):
        (self.directory / "f").write_bytes(b"x" * 1234)
        (self.directory / "d").mkdir()
        os.utime(self.directory / "f", (10**9, 10**9))
        self.assertEqual(self.do("ls", self.url()), b"d/\nf\n")
        line = self.do("ls", "-l", self.url("f")).decode().split()
        self.assertEqual((line[1], line[2][:4], line[-1]), ("1234", "2001", "f"))

    def test_directories_are_created_and_removed(self):
        self.do("mkdir", "-p", self.url("a/b/c"))
        self.do("mkdir", "-p", self.url("a/b/c"))
        self.assertIn("exists", self.refuse("mkdir", self.url("a/b")))
        self.assertIn("use -r", self.refuse("rm", self.url("a")))
        self.do("rm", "-r", self.url("a"))
        self.assertFalse((self.directory / "a").exists())

    def test_errors_name_the_path_and_the_remedy(self):
        said = self.refuse("get", self.url("no/such"))
        self.assertIn(f"smb://127.0.0.1:{self.port}/share/no/such: ", said)
        self.assertIn("does not exist", said)
        self.assertIn("password", self.refuse("ls", self.url(), password="wrong"))
        self.assertIn("no such share", self.refuse("ls", f"smb://{self.user}@127.0.0.1:{self.port}/nowhere"))
        self.assertIn("refused", self.refuse("ls", f"smb://{self.user}@127.0.0.1:1/share").lower())
        done = self.run_client("ls", "smb://me:secret@127.0.0.1/share")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--password-file", done.stderr.decode())

    def test_a_copy_replaces_only_regular_files(self):
        (self.directory / "small").write_bytes(b"hello")
        os.mkfifo(self.local / "pipe")
        said = self.refuse("get", self.url("small"), "pipe")
        self.assertIn("pipe: not a regular file", said)
        self.assertIn("sluice cat", said)
        self.assertTrue((self.local / "pipe").is_fifo())
        self.assertEqual(self.do("cat", self.url("small")), b"hello")

    def test_the_password_may_come_from_a_file(self):
        (self.local / "secret").write_text(served.PASSWORD + "\n")
        done = self.run_client("ls", "--password-file", "secret", self.url(), password=None)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def partial_files(self, directory):
        return [path for path in directory.iterdir() if path.name.startswith(".sluice-")]

    def operands_through(self, between, arguments):
        """Returns operands with URLs of a relay instead of "@path"."""
        self.port_override = between.port
        operands = [self.url(each[1:]) if each.startswith("@") else each for each in arguments]
        self.port_override = None
        return operands

    def copy_through(self, between, command, *arguments):
        return self.run_client(command, *self.operands_through(between, arguments))

    def interrupt(self, command, request, *arguments):
        """Copies through a relay that closes the connection after some of the file's bytes."""
        with relay.Relay(self.port, relay.at_request(request, 14, relay.cut)) as between:
            done = self.copy_through(between, command, *arguments)
        self.assertEqual(done.returncode, 1, done.stderr)

    def kill_during(self, command, request, *arguments):
        """Copies through a relay, and kills the client when it sends the third of these requests."""
        started = queue.SimpleQueue()
        with relay.Relay(self.port, relay.at_request(request, 3, lambda: started.get().kill())) as between:
            operands = self.operands_through(between, arguments)
            with subprocess.Popen([str(served.ServedCase.program), command, *operands], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.local,
                                  env=self.client_environment()) as client:
                started.put(client)
                self.assertEqual(client.wait(COMMAND_SECONDS_MAX), -signal.SIGKILL)

    def requires_attributes(self):
        try:
            os.setxattr(self.local, "user.probe", b"1")
        except OSError:
            self.skipTest("the file system has no extended attributes")

    def test_an_unrelated_file_named_part_is_not_changed(self):
        for directory in (self.directory, self.local):
            (directory / "x").write_bytes(b"x" * 100_000)
            (directory / "x.part").write_text("unrelated")
        self.do("get", self.url("x"), "x")
        self.do("put", "x", self.url("x"))
        for directory in (self.directory, self.local):
            self.assertEqual((directory / "x.part").read_text(), "unrelated")
            self.assertEqual(sorted(os.listdir(directory)), ["x", "x.part"])

    def test_an_interrupted_get_lacks_the_final_name_and_is_resumed(self):
        self.requires_attributes()
        data = os.urandom(100 << 20)
        (self.directory / "large").write_bytes(data)
        self.interrupt("get", relay.READ, "@large")
        self.assertFalse((self.local / "large").exists())
        part, = self.partial_files(self.local)
        self.assertGreater(part.stat().st_size, 2 << 20)
        with part.open("r+b") as file:  # before the compared end: this byte stays if the copy is
                                        # resumed
            file.write(bytes([data[0] ^ 1]))
        self.do("get", "--resume", self.url("large"))
        got = (self.local / "large").read_bytes()
        self.assertTrue(got[1:] == data[1:])
        self.assertNotEqual(got[0], data[0], "the copy started over")
        self.assertEqual(self.partial_files(self.local), [])

    def test_an_interrupted_get_starts_over_if_the_end_of_the_partial_file_differs(self):
        data = os.urandom(100 << 20)
        (self.directory / "large").write_bytes(data)
        self.interrupt("get", relay.READ, "@large")
        part, = self.partial_files(self.local)
        with part.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)[0]
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last ^ 1]))
        self.do("get", "--resume", self.url("large"))
        self.assertTrue((self.local / "large").read_bytes() == data)

    def test_an_interrupted_get_of_an_older_version_starts_over(self):
        size = 100 << 20
        (self.directory / "large").write_bytes(b"A" * size)
        os.utime(self.directory / "large", (10**9, 10**9))
        self.interrupt("get", relay.READ, "@large")
        (self.directory / "large").write_bytes(b"B" * size)
        os.utime(self.directory / "large", (10**9, 10**9))  # the same size and write time
        self.do("get", "--resume", self.url("large"))
        self.assertTrue((self.local / "large").read_bytes() == b"B" * size)

    def test_an_interrupted_put_lacks_the_final_name_and_is_resumed(self):
        self.requires_attributes()  # the server stores the creation time in attributes
        data = os.urandom(100 << 20)
        (self.local / "large").write_bytes(data)
        self.interrupt("put", relay.WRITE, "large", "@large")
        self.assertFalse((self.directory / "large").exists())
        part, = self.partial_files(self.directory)
        with part.open("r+b") as file:
            file.write(bytes([data[0] ^ 1]))
        resumed = self.run_client("put", "--resume", "large", self.url("large"))
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        got = (self.directory / "large").read_bytes()
        self.assertTrue(got[1:] == data[1:])
        self.assertNotEqual(got[0], data[0], "the copy started over")
        self.assertEqual(self.partial_files(self.directory), [])

    def test_the_next_copy_removes_the_partial_files_of_a_killed_client(self):
        self.requires_attributes()
        for directory in (self.local, self.directory):
            (directory / "tree").mkdir()
            for number in range(6):
                (directory / "tree" / str(number)).write_bytes(bytes([number]) * 900_000)
        self.do("mkdir", self.url("copy"))
        (self.local / "copy").mkdir()
        cases = {"put": (relay.WRITE, self.directory / "copy" / "tree", ("-r", "tree"), "@copy"),
                 "get": (relay.READ, self.local / "copy" / "tree", ("-r", "@tree"), "copy")}
        for command, (request, target, source, to) in cases.items():
            with self.subTest(command=command):
                self.kill_during(command, request, *source, to)
                self.assertNotEqual(self.partial_files(target), [])
                urls = [self.url(each[1:]) if each.startswith("@") else each for each in (*source, to)]
                self.do(command, "--resume", *urls)  # waits until the server has detected the end
                                                     # of the client
                self.assert_same_tree(self.local / "tree", target)

    def test_partial_files_in_a_tree_are_skipped_and_reported(self):
        name = f".sluice-{'0123456789abcdef' * 2}.part"
        for directory in (self.local, self.directory):
            (directory / "d").mkdir()
            (directory / "d" / name).write_text("part")
            (directory / "d" / f"{name}.txt").write_text("complete")
        for command, operands, copied in (("put", ("d", self.url("copy")), self.directory / "copy"),
                                          ("get", (self.url("d"), "copy"), self.local / "copy")):
            with self.subTest(command=command):
                done = self.run_client(command, "-r", *operands)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(b"interrupted copy", done.stderr)
                self.assertEqual(os.listdir(copied), [f"{name}.txt"])

    def test_an_interrupted_put_of_an_older_version_starts_over(self):
        size = 100 << 20
        (self.local / "large").write_bytes(b"A" * size)
        os.utime(self.local / "large", (10**9, 10**9))
        self.interrupt("put", relay.WRITE, "large", "@large")
        (self.local / "large").write_bytes(b"B" * size)
        os.utime(self.local / "large", (10**9, 10**9))
        resumed = self.run_client("put", "--resume", "large", self.url("large"))
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertTrue((self.directory / "large").read_bytes() == b"B" * size)
        self.assertEqual(self.partial_files(self.directory), [])

    def test_a_file_that_took_the_name_of_a_partial_file_is_not_changed(self):
        size = 100 << 20
        for command, request, directory in (("get", relay.READ, self.local), ("put", relay.WRITE, self.directory)):
            with self.subTest(command=command):
                (self.directory / "large").write_bytes(b"A" * size)
                (self.local / "large").write_bytes(b"A" * size)
                operands = ("large", "@large") if command == "put" else ("@large", "large")
                (directory / "large").unlink()
                self.interrupt(command, request, *operands)
                part, = self.partial_files(directory)
                part.unlink()
                part.mkdir()
                (part / "kept").write_text("kept")
                urls = [self.url(each[1:]) if each.startswith("@") else each for each in operands]
                self.do(command, "--resume", *urls)
                self.assertTrue((directory / "large").read_bytes() == b"A" * size)
                self.assertEqual((part / "kept").read_text(), "kept")

    def test_names_that_differ_only_in_case_do_not_replace_each_other(self):
        (self.local / "d").mkdir()
        (self.local / "d" / "Name").write_text("first")
        (self.local / "d" / "name").write_text("second")
        done = self.run_client("put", "-r", "d", self.url("d"))
        stored = {path.name: path.read_text() for path in (self.directory / "d").iterdir()}
        if done.returncode == 0:
            self.assertEqual(stored, {"Name": "first", "name": "second"})
        else:
            self.assertEqual(len(stored), 1, done.stderr)
            self.assertIn(b"exists", done.stderr)

    def test_a_file_that_changes_during_a_get_is_an_error_and_leaves_nothing(self):
        size = 64 << 20

        def shorten():
            (self.directory / "f").write_bytes(b"B" * (1 << 20))

        def rewrite():
            with (self.directory / "f").open("r+b") as file:
                file.write(b"B")

        def lengthen():
            with (self.directory / "f").open("ab") as file:
                file.write(b"B")

        for change in (shorten, rewrite, lengthen):
            with self.subTest(change=change.__name__):
                (self.directory / "f").write_bytes(b"A" * size)
                os.utime(self.directory / "f", (10**9, 10**9))
                with relay.Relay(self.port, relay.at_request(relay.READ, 6, change)) as between:
                    done = self.copy_through(between, "get", "@f")
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(b"changed", done.stderr)
                self.assertEqual(os.listdir(self.local), [])

    def test_a_file_that_changes_during_a_put_is_an_error_and_leaves_nothing(self):
        (self.local / "f").write_bytes(b"A" * (64 << 20))
        os.utime(self.local / "f", (10**9, 10**9))

        def append():
            with (self.local / "f").open("ab") as file:
                file.write(b"B")

        with relay.Relay(self.port, relay.at_request(relay.WRITE, 6, append)) as between:
            done = self.copy_through(between, "put", "f", "@f")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"changed during the copy", done.stderr)
        self.assertEqual(os.listdir(self.directory), [])

    def test_cat_of_a_file_that_becomes_shorter_fails(self):
        (self.directory / "f").write_bytes(b"A" * (64 << 20))
        shorten = lambda: os.truncate(self.directory / "f", 1 << 20)  # noqa: E731
        with relay.Relay(self.port, relay.at_request(relay.READ, 6, shorten)) as between:
            done = self.copy_through(between, "cat", "@f")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"shorter", done.stderr)

    def test_names_cannot_control_the_terminal(self):
        (self.local / "d").mkdir()
        (self.local / "d" / "\x1b[2J\u202egpj").symlink_to("x")
        said = self.run_client("put", "-r", "d", self.url("d")).stderr.decode()
        self.assertIn("?[2J?gpj", said)
        self.assertNotIn("\x1b", said)

    def test_two_names_that_are_one_name_here_are_refused(self):
        (self.directory / "d").mkdir()
        for name in (":", "\uf022"):  # the second is the representation of the first
            (self.directory / "d" / name).write_text("x")
        if self.do("ls", self.url("d")).decode().split() != ["\uf022", "\uf022"]:
            self.skipTest("this server shows two names")
        self.assertIn("same name on this system", self.refuse("get", "-r", self.url("d")))

    def test_existing_files_are_not_changed(self):
        served.make_tree(self.local / "tree")
        self.do("put", "-r", "tree", self.url("copy"))
        before = {path: path.stat().st_ino for path in (self.directory / "copy").rglob("*") if path.is_file()}
        # `put` into an existing directory creates a directory of the source's name in it, so the
        # command names the parent.
        (self.local / "copy").symlink_to("tree")
        self.do("put", "-r", "--resume", "copy", self.url())
        self.assertEqual(before, {path: path.stat().st_ino for path in before})

    def test_a_load_that_holds_begins_when_its_input_ends(self):
        command = [str(served.ServedCase.program), "bench", "smb", "--hold", "--json", "--keep", "--workload", "get", "--files", "2",
                   self.url()]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=self.client_environment()) as load:
            self.assertEqual(load.stderr.readline(), b"ready\n")
            made = self.directory / "sluice-bench.tmp" / "small1"
            self.assertTrue(made.exists(), "the files exist")
            made.unlink()  # which the load would need
            made.mkdir()
            _, said = load.communicate(timeout=COMMAND_SECONDS_MAX)  # ends the input
        self.assertEqual(load.returncode, 1)
        self.assertIn(b": read: ", said)

    def test_links_here_are_skipped_and_reported(self):
        (self.local / "d").mkdir()
        (self.local / "d" / "link").symlink_to("/etc/passwd")
        done = self.run_client("put", "-r", "d", self.url("d"))
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"skipped", done.stderr)
        self.assertEqual(os.listdir(self.directory / "d"), [])


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
        served.make_directories(self).chmod(stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
        samba = smb.Samba(self.directory, settings=SAMBA_SETTINGS)
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
