#!/usr/bin/env python3
"""The restrictions that `sluice serve` applies to itself at startup, and that all functions still work."""

import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = None
PASSWORD = "Stone-Bridge-7"
START_SECONDS_MAX = 30
STOP_SECONDS_MAX = 30
ALL_MEASURES = ["no core dumps", "no unused privileges", "access to its own files only"]
# CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, NET_BIND_SERVICE, IPC_LOCK, SYS_RESOURCE
KEPT = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 10 | 1 << 14 | 1 << 24


class Hardened(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="sluice-hardening-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.share = self.scratch / "share"
        self.share.mkdir()
        self.state = self.scratch / "state"  # not an ancestor of any path that is refused below
        self.state.mkdir()
        self.log = self.scratch / "log"
        self.log.touch()

    def start(self, *arguments, shares=None, environment=None, users=None):
        """Serves with one user from the command line, or with those of the file `users`."""
        admitted = ["--users-file", str(self.state / "users"), "--user", f"walker%{PASSWORD}"]
        command = [PROGRAM, "serve", *(shares if shares is not None else [f"share={self.share}"]),
                   "--listen", "127.0.0.1:0", *(["--users-file", str(users)] if users else admitted),
                   "--status-socket", str(self.state / "socket"), *arguments]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                            env={**os.environ, **(environment or {})})
        self.addCleanup(self.stop)
        self.wait_for(r"^I/O .*$")
        self.port = int(re.search(r"^Listening +\S+:(\d+)", self.text(), re.MULTILINE)[1])

    def stop(self):
        if self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.assertEqual(self.process.wait(STOP_SECONDS_MAX), 0, self.text())
        except subprocess.TimeoutExpired:
            self.fail(f"the server did not end {STOP_SECONDS_MAX} s after SIGTERM:\n{self.text()}")
        finally:
            self.process.kill()  # no effect on a process that has ended
            self.process.wait()

    def text(self):
        return self.log.read_text(errors="replace")

    def wait_for(self, pattern):
        deadline = time.monotonic() + START_SECONDS_MAX
        while not re.search(pattern, self.text(), re.MULTILINE):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.fail(f"no '{pattern}' in:\n{self.text()}")
            time.sleep(0.02)

    def status(self, key, thread=None):
        path = f"/proc/{self.process.pid}/status" if thread is None else f"/proc/{self.process.pid}/task/{thread}/status"
        return re.search(rf"^{key}:\s*(\S+)", pathlib.Path(path).read_text(), re.MULTILINE)[1]

    def client(self, *arguments, given=b""):
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.scratch, input=given,
                              capture_output=True, timeout=60,
                              env={**os.environ, "SLUICE_PASSWORD": PASSWORD, "XDG_STATE_HOME": str(self.scratch / "own")})

    def do(self, *arguments, **how):
        done = self.client(*arguments, **how)
        self.assertEqual((done.returncode, done.stderr.decode()), (0, ""), (arguments, self.text()))
        return done.stdout

    def url(self, path="", share="share"):
        return f"smb://walker@127.0.0.1:{self.port}/{share}/{path}"

    def assert_usable(self, share="share"):
        """Creates, lists, reads, renames between directories, and removes."""
        (self.scratch / "small").write_text("hello")
        self.do("mkdir", "-p", self.url("d/e", share))
        self.do("put", "small", self.url("d/e/f", share))
        self.assertEqual(self.do("cat", self.url("d/e/f", share)), b"hello")
        self.assertEqual(self.do("ls", self.url("d", share)), b"e/\n")
        self.do("rm", "-r", self.url("d", share))

    def requires(self, measure):
        reason = re.search(rf"not active: {measure}: (.*)", self.text())
        if reason:
            self.skipTest(f"{measure}: {reason[1]}")

    def test_every_measure_is_active_and_reported(self):
        self.start()
        self.assertNotIn("sanitizer", self.text())
        self.requires("access to its own files only")
        self.assertIn("Hardening   " + ", ".join(ALL_MEASURES), self.text())
        self.assertNotIn("not active", self.text())

    def test_the_account_is_named(self):
        self.start()
        account = os.geteuid()
        try:
            name = pwd.getpwuid(account).pw_name
        except KeyError:
            self.skipTest("the account has no name")
        self.assertIn(f"Files       accessed as {name} (uid {account})", self.text())

    def test_every_thread_is_restricted(self):
        self.start("--loops", "4")
        threads = os.listdir(f"/proc/{self.process.pid}/task")
        self.assertGreaterEqual(len(threads), 4)
        for thread in threads:
            self.assertEqual(self.status("NoNewPrivs", thread), "1")
            for kind in ("CapEff", "CapPrm"):
                self.assertEqual(int(self.status(kind, thread), 16) & ~KEPT, 0, kind)
            self.assertEqual(int(self.status("CapInh", thread), 16), 0)
            self.assertEqual(int(self.status("CapAmb", thread), 16), 0)

    def test_the_process_leaves_no_core_dump(self):
        self.start()
        limits = pathlib.Path(f"/proc/{self.process.pid}/limits").read_text()
        self.assertRegex(limits, r"Max core file size +0 +0 ")
        # The effect of not being dumpable: only root owns its entries in /proc.
        self.assertEqual(os.stat(f"/proc/{self.process.pid}/environ").st_uid, 0)

    def test_a_share_is_usable_over_several_loops(self):
        self.start("--loops", "3")
        for _ in range(4):
            self.assert_usable()

    def test_both_multiplexers_are_usable(self):
        for multiplexer in ("io_uring", "epoll"):
            with self.subTest(multiplexer=multiplexer):
                try:
                    self.start(environment={"SLUICE_MULTIPLEXER": multiplexer})
                except AssertionError:
                    if denied := re.search("io_uring_setup, denied by .*", self.text()):
                        self.skipTest(denied[0])
                    raise
                self.assert_usable()
                self.stop()

    def test_status_and_metrics_are_served(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.start("--metrics", str(port))
        self.assertIn(b"share", self.do("status", "--socket", self.state / "socket"))
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        self.assertRegex(answer, rb"process_open_fds [1-9]")
        self.assertRegex(answer, rb"process_resident_memory_bytes [1-9]")

    def test_shared_locks_are_usable(self):
        self.start("--shared-locks", str(self.state / "locks"))
        self.assert_usable()

    def test_an_image_with_a_journal_is_usable(self):
        image = self.scratch / "images" / "disk.img"
        image.parent.mkdir()
        self.assertEqual(self.client("fat", "mkfs", "--size", "64m", image).returncode, 0)
        self.start("--journal", shares=[f"share={image}"])
        self.assert_usable()

    def test_users_and_shares_are_reloaded(self):
        config = self.state / "config.toml"
        config.write_text(f'[[share]]\nname = "share"\npath = "{self.share}"\n')
        self.start("--config", str(config), shares=[])
        (self.share / "inner").mkdir()
        config.write_text(f'[[share]]\nname = "share"\npath = "{self.share}"\n'
                          f'[[share]]\nname = "inner"\npath = "{self.share}/inner"\n')
        self.process.send_signal(signal.SIGHUP)
        self.wait_for("configuration reloaded")
        self.assert_usable("inner")

    def test_users_and_configuration_that_are_links_are_reloaded(self):
        files = self.scratch / "files"
        links = self.scratch / "links"  # no other rule covers these two directories
        files.mkdir()
        links.mkdir()
        for name in ("users", "config.toml"):
            (links / name).symlink_to(files / name)
        (files / "config.toml").write_text(f'[[share]]\nname = "share"\npath = "{self.share}"\n')
        for user in ("walker", "removed"):
            self.do("user", "--users-file", files / "users", "add", user, given=PASSWORD.encode() + b"\n")
        self.start("--config", str(links / "config.toml"), shares=[], users=links / "users")
        removed = ("ls", f"smb://removed@127.0.0.1:{self.port}/share")
        self.do(*removed)
        self.do("user", "--users-file", files / "users", "remove", "removed")
        (files / "config.toml").write_text(f'[[share]]\nname = "other"\npath = "{self.share}"\n')
        self.process.send_signal(signal.SIGHUP)
        self.wait_for("configuration reloaded")
        self.assertNotIn("cannot reload", self.text())
        self.assertEqual(self.client(*removed).returncode, 1)
        self.assert_usable("other")

    def test_a_new_share_elsewhere_is_refused_with_the_remedy(self):
        elsewhere = self.scratch / "elsewhere"
        elsewhere.mkdir()
        config = self.state / "config.toml"
        config.write_text(f'[[share]]\nname = "share"\npath = "{self.share}"\n')
        self.start("--config", str(config), shares=[])
        self.requires("access to its own files only")
        config.write_text(config.read_text() + f'[[share]]\nname = "new"\npath = "{elsewhere}"\n')
        self.process.send_signal(signal.SIGHUP)
        self.wait_for("restart the server")
        self.assertIn("elsewhere", self.text())
        self.assert_usable()  # the old shares stay

    def test_confine_to_names_the_directories_of_later_shares(self):
        later = self.scratch / "later" / "share"
        later.mkdir(parents=True)
        config = self.state / "config.toml"
        config.write_text(f'[[share]]\nname = "share"\npath = "{self.share}"\n')
        self.start("--config", str(config), "--confine-to", str(later.parent), shares=[])
        config.write_text(config.read_text() + f'[[share]]\nname = "new"\npath = "{later}"\n')
        self.process.send_signal(signal.SIGHUP)
        self.wait_for("configuration reloaded")
        self.assert_usable("new")

    def test_a_directory_that_replaced_a_share_is_refused_with_the_remedy(self):
        config = self.state / "config.toml"
        config.write_text(f'[[share]]\nname = "share"\npath = "{self.share}"\n')
        self.start("--config", str(config), shares=[])
        self.requires("access to its own files only")
        self.share.rename(self.scratch / "old")
        self.share.mkdir()
        self.process.send_signal(signal.SIGHUP)
        self.wait_for("restart the server")

    def test_a_read_only_share_cannot_become_writable_without_a_restart(self):
        config = self.state / "config.toml"
        config.write_text(f'[[share]]\nname = "share"\npath = "{self.share}"\nread-only = true\n')
        self.start("--config", str(config), shares=[])
        self.requires("access to its own files only")
        config.write_text(config.read_text().replace("true", "false"))
        self.process.send_signal(signal.SIGHUP)
        self.wait_for("cannot become writable")

    def test_no_confinement_restricts_nothing_and_is_reported(self):
        self.start("--no-confinement")
        self.assertIn("--no-confinement was given", self.text())
        own = re.search(r"^Seccomp:\s*(\d)", pathlib.Path("/proc/self/status").read_text(), re.MULTILINE)[1]
        self.assertEqual(self.status("Seccomp"), own)
        self.assert_usable()

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_impersonation_keeps_the_privileges_that_it_needs(self):
        self.start("--impersonate")
        self.assertIn("--impersonate needs", self.text())
        # Not SYS_RESOURCE: the kernel would ignore the quotas of the accounts.
        self.assertEqual(int(self.status("CapEff"), 16) & ~(KEPT & ~(1 << 24) | 1 << 6 | 1 << 7), 0)
        self.assertEqual(self.status("Seccomp"), "2")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_impersonation_obeys_quotas_without_confinement(self):
        self.start("--impersonate", "--no-confinement")
        self.assertEqual(int(self.status("CapEff"), 16) & 1 << 24, 0)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_quotas_keep_one_more_privilege_behind_a_filter_of_system_calls(self):
        self.start("--quotas")
        own = int(re.search(r"^CapBnd:\s*(\S+)", pathlib.Path("/proc/self/status").read_text(), re.MULTILINE)[1], 16)
        self.assertEqual(int(self.status("CapEff"), 16) & 1 << 21, own & 1 << 21)
        self.assertEqual(int(self.status("CapEff"), 16) & ~(KEPT | 1 << 21), 0)
        self.assertEqual(self.status("Seccomp"), "2")
        self.assert_usable()

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    def test_an_ordinary_account_can_serve(self):
        try:
            for path in (self.scratch, self.share, self.state):
                os.chown(path, 65534, 65534)
        except OSError as why:  # a user namespace with one account
            self.skipTest(f"cannot give files to another account: {why.strerror}")
        global PROGRAM
        program, copy = PROGRAM, self.scratch / "sluice"
        shutil.copy(program, copy)
        starter = self.scratch / "start"
        starter.write_text(f'#!/bin/sh\nexec setpriv --reuid 65534 --regid 65534 --clear-groups "{copy}" "$@"\n')
        starter.chmod(0o755)
        PROGRAM = str(starter)
        try:
            self.start("--loops", "2")
        finally:
            PROGRAM = program
        self.assertEqual(int(self.status("CapEff"), 16), 0)
        self.assert_usable()


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
