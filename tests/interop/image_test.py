#!/usr/bin/env python3
"""smbclient against `sluice serve disk.img`: overlays, journals, and reloading by SIGHUP."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import served

if not shutil.which("smbclient"):
    served.skip("smbclient is not installed (Debian package smbclient)")


class Image(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="sluice-interop-")
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        self.image = self.directory / "disk.img"
        self.overlay = self.directory / "disk.overlay"
        self.sent = self.directory / "sent"
        served.make_tree(self.sent, sizes=(0, 1, 4096, 65_537, 1_048_577))
        self.fat("mkfs", self.image, "--size", "64m")
        self.fat("put", __file__, f"{self.image}:/before.py")
        self.pristine = self.image.read_bytes()

    def fat(self, *arguments):
        done = subprocess.run([served.ServedCase.program, "fat", *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def serve(self, arguments=(), **options):
        return served.Server(served.ServedCase.program, self.image, arguments=arguments, **options)

    def client(self, server, commands, share="share"):
        done = subprocess.run(["smbclient", "-p", str(server.port), "-U", f"{served.USER}%{served.PASSWORD}",
                               f"//127.0.0.1/{share}", "-c", commands], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, cwd=self.directory, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("NT_STATUS_", done.stdout)
        return done.stdout


class Overlay(Image):
    def setUp(self):
        super().setUp()
        self.image.chmod(0o444)

    def test_a_tree_written_by_a_client_is_in_the_image_only_after_a_commit(self):
        with self.serve(("--overlay", self.overlay)) as server:
            self.client(server, "mkdir tree; cd tree; lcd sent; prompt off; recurse on; mput *")
            self.client(server, "del before.py")
        self.assertTrue(self.image.read_bytes() == self.pristine, "the image was changed")
        with self.serve(("--overlay", self.overlay), multiplexer="epoll") as server:
            (self.directory / "back").mkdir()
            self.client(server, "cd tree; lcd back; prompt off; recurse on; mget *")
            self.assertNotIn("before.py", self.client(server, "ls"))
        self.assertEqual(served.tree_of(self.sent), served.tree_of(self.directory / "back"))
        with self.serve(("--read-only",)) as server:
            self.assertIn("before.py", self.client(server, "ls"))
        self.image.chmod(0o644)
        self.fat("commit", self.image, "--overlay", self.overlay)
        self.fat("check", self.image)
        self.fat("get", f"{self.image}:/tree", self.directory / "got")
        self.assertEqual(served.tree_of(self.sent), served.tree_of(self.directory / "got"))

    def test_committed_changes_survive_the_death_of_the_server(self):
        with self.serve(("--overlay", self.overlay)) as server:
            self.client(server, "lcd sent; prompt off; recurse on; mput *")
            time.sleep(3)  # changes are committed a second later
            server.kill()
        self.assertTrue(self.image.read_bytes() == self.pristine, "the image was changed")
        with self.serve(("--overlay", self.overlay)) as server:
            (self.directory / "back").mkdir()
            self.client(server, "del before.py; lcd back; prompt off; recurse on; mget *")
        self.assertEqual(served.tree_of(self.sent), served.tree_of(self.directory / "back"))


class Journal(Image):
    def test_committed_changes_are_complete_and_the_volume_consistent_after_the_death_of_the_server(self):
        with self.serve(("--journal",)) as server:
            self.client(server, "lcd sent; prompt off; recurse on; mput *")
            time.sleep(3)  # changes are committed a second later
            server.kill()
        self.assertTrue(pathlib.Path(f"{self.image}.journal").exists())
        report = subprocess.run([served.ServedCase.program, "fat", "check", "--json", self.image], capture_output=True)
        self.assertEqual({each["kind"] for each in json.loads(report.stdout)["problems"]}, {"dirty"})
        with self.serve(("--journal",)) as server:
            (self.directory / "back").mkdir()
            self.client(server, "del before.py; lcd back; prompt off; recurse on; mget *")
        self.assertEqual(served.tree_of(self.sent), served.tree_of(self.directory / "back"))
        self.assertFalse(pathlib.Path(f"{self.image}.journal").exists())
        self.fat("check", self.image)


class Shares(Image):
    def setUp(self):
        super().setUp()
        self.link = self.directory / "link.img"
        self.link.symlink_to(self.image)
        self.configuration = self.directory / "serve.toml"

    def test_shares_of_one_image_by_two_paths_are_one_volume(self):
        self.configuration.write_text(f'[[share]]\nname = "more"\npath = "{self.link}"\n')
        with self.serve(("--config", self.configuration)) as server:
            self.client(server, "mkdir one")
            self.client(server, "rmdir one; mkdir two", share="more")
            self.assertIn("two", self.client(server, "ls"))
        self.fat("check", self.image)

    def test_one_share_of_an_image_may_be_read_only_and_another_writable(self):
        self.configuration.write_text(f'[[share]]\nname = "more"\npath = "{self.link}"\nread-only = true\n')
        with self.serve(("--config", self.configuration)) as server:
            self.client(server, "mkdir one")
            self.assertIn("one", self.client(server, "ls", share="more"))
            for change in ("mkdir two", "rmdir one", "del before.py", "rename before.py after.py",
                           "put disk.img x", "setmode before.py +h"):
                with self.assertRaisesRegex(AssertionError, "NT_STATUS_", msg=change):
                    self.client(server, change, share="more")
            self.assertIn("before.py", self.client(server, "ls"))
        self.fat("check", self.image)


class Reload(Image):
    def test_shares_are_reloaded_while_an_image_is_being_written(self):
        configuration = self.directory / "serve.toml"
        configuration.write_text("")
        with self.serve(("--config", configuration)) as server:
            self.client(server, "mkdir one")
            configuration.write_text(f'[[share]]\nname = "more"\npath = "{self.sent}"\n')
            self.reload(server, "configuration reloaded")
            self.client(server, "mkdir one\\two; rmdir one\\two")
            self.assertIn("empty directory", self.client(server, "ls", share="more"))
            self.image.rename(self.directory / "moved.img")
            (self.directory / "disk.img").write_bytes(self.pristine)
            self.reload(server, "the file was replaced since the server opened it")
            self.client(server, "mkdir three")
        self.image = self.directory / "moved.img"
        with self.serve(("--read-only",)) as server:
            self.assertRegex(self.client(server, "ls"), "(?s)one.*three")

    def test_shares_of_an_image_are_reloaded_with_another_comment(self):
        configuration = self.directory / "serve.toml"
        share = f'[[share]]\nname = "more"\npath = "{self.image}"\ncomment = "%s"\n'
        configuration.write_text(share % "before")
        with self.serve(("--config", configuration)) as server:
            self.client(server, "mkdir one")
            configuration.write_text(share % "after")
            self.reload(server, "configuration reloaded")
            self.client(server, "rmdir one; mkdir two", share="more")
            self.assertIn("two", self.client(server, "ls"))
        self.fat("check", self.image)

    def reload(self, server, expected):
        before = server.log().count(expected)
        os.kill(server.pid, signal.SIGHUP)
        deadline = time.monotonic() + 30
        while server.log().count(expected) == before:
            self.assertLess(time.monotonic(), deadline, server.log_tail())
            time.sleep(0.02)


if __name__ == "__main__":
    served.main()
