"""Options for the use of a FAT image: overlays, journals, code pages and time zones, as a shell sees them. Run by ctest
with the program as the last argument."""

import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop() if __name__ == "__main__" else None
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


class Image(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.image = self.directory / "disk.img"
        self.overlay = self.directory / "disk.overlay"
        self.source = self.directory / "source"
        self.source.write_bytes(os.urandom(300_000))
        self.sluice("mkfs", self.image, "--size", "20m")
        self.sluice("put", self.source, self.on("/before"))
        self.pristine = self.image.read_bytes()

    def sluice(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, "fat", *map(str, arguments)], capture_output=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr.decode() + done.stdout.decode())
        return (done.stdout if code == 0 else done.stderr).decode()

    def over(self, *arguments, code=0):
        return self.sluice(*arguments, "--overlay", self.overlay, code=code)

    def on(self, path):
        return f"{self.image}:{path}"

    def names(self, *options):
        return self.sluice("ls", self.on("/"), *options).split()

    def fill(self):
        self.over("put", self.source, self.on("/new"))
        self.over("rm", self.on("/before"))
        self.over("mkdir", self.on("/dir"))

    def assert_pristine(self):
        self.assertTrue(self.image.read_bytes() == self.pristine, "the image was changed")

    def assert_consistent(self):
        done = subprocess.run(["fsck.fat", "-n", self.image], capture_output=True, env={**os.environ, "PATH": PATH})
        self.assertEqual(done.returncode, 0, done.stdout)


class Overlays(Image):
    def test_has_the_changes_while_the_image_stays_the_same(self):
        self.image.chmod(0o444)
        self.fill()
        self.assert_pristine()
        self.assertEqual(self.names(), ["before"])
        self.assertEqual(self.names("--overlay", self.overlay), ["dir/", "new"])
        self.over("get", self.on("/new"), self.directory / "back")
        self.assertEqual((self.directory / "back").read_bytes(), self.source.read_bytes())
        self.over("check", self.image)
        self.over("label", self.image, "laid over")
        self.assertEqual(self.over("label", self.image), "LAID OVER\n")
        self.assert_pristine()
        self.assertEqual(list(self.directory.glob("*.lock")), [])

    def test_commit_writes_it_into_the_image(self):
        self.fill()
        self.assertIn("written", self.over("commit", self.image))
        self.assertEqual(self.names(), ["dir/", "new"])
        self.assert_consistent()
        self.assertFalse(self.overlay.exists())
        self.assertIn("No such file", self.over("commit", self.image, code=1))

    def test_a_commit_killed_at_any_point_is_finished_by_the_next(self):
        # Twenty files, so that a part of the overlay is stored in the image after the end of the
        # lock file.
        self.sluice("mkfs", self.image, "--size", "20m", "--force")
        self.pristine = self.image.read_bytes()
        for number in range(20):
            self.over("mkfile", self.on(f"/{number}"), "--size", "700k", "--block", "64k")
        names = self.names("--overlay", self.overlay)
        kept = self.overlay.read_bytes()
        marker = pathlib.Path(f"{self.image}.commit")
        killed = 0
        # The image is written in ascending order; a write beyond the limit kills the process by
        # SIGXFSZ.
        for limit in (4 << 20, 8 << 20, (8 << 20) + 4096, 12 << 20):
            self.image.write_bytes(self.pristine)
            self.overlay.write_bytes(kept)
            self.over("rebind", self.image)
            done = subprocess.run([PROGRAM, "fat", "commit", self.image, "--overlay", self.overlay],
                                  capture_output=True,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            if done.returncode != 0:
                self.assertEqual(done.returncode, -signal.SIGXFSZ)
                self.assertTrue(marker.exists())
                killed += 1
                self.assertIn("sluice fat commit", self.sluice("ls", self.on("/"), code=1))
                self.assertIn("sluice fat commit", self.sluice("mkdir", self.on("/x"), code=1))
                self.assertEqual(self.names("--overlay", self.overlay), names)
                self.assertIn("sluice fat commit", self.over("mkdir", self.on("/x"), code=1))
                self.assertIn("sluice fat commit", self.over("discard", self.image, code=1))
                self.over("commit", self.image)
            self.assertFalse(marker.exists())
            self.assertFalse(self.overlay.exists())
            self.assertEqual(self.names(), names)
            self.assert_consistent()
        self.assertGreater(killed, 2)

    def test_leftovers_of_an_almost_complete_commit_are_removed(self):
        pathlib.Path(f"{self.image}.commit").write_text(f"{self.overlay}\n")
        self.overlay.write_bytes(b"")
        self.over("commit", self.image)
        self.assertEqual(self.names(), ["before"])
        self.assertFalse(self.overlay.exists())

    def test_discard_removes_only_the_overlay(self):
        self.fill()
        self.assertIn("not an overlay", self.sluice("discard", self.image, "--overlay", self.source, code=1))
        self.assertTrue(self.source.exists())
        self.over("discard", self.image)
        self.assertFalse(self.overlay.exists())
        self.assert_pristine()

    def test_of_a_modified_image_is_refused_until_rebind_accepts_it(self):
        self.fill()
        os.utime(self.image, (1_000_000_000, 1_000_000_000))
        said = self.over("ls", self.on("/"), code=1)
        self.assertIn("modified at 2001-09-09T01:46:40", said)
        self.assertIn("sluice fat rebind", said)
        self.over("rebind", self.image)
        self.assertEqual(self.names("--overlay", self.overlay), ["dir/", "new"])
        self.sluice("put", self.source, self.on("/other"))
        for command in (("ls", self.on("/")), ("mkdir", self.on("/x")), ("commit", self.image)):
            self.assertIn("the content differs", self.over(*command, code=1))
        larger = self.directory / "larger.img"
        self.sluice("mkfs", larger, "--size", "21m")
        self.assertIn("belongs to an image of", self.sluice("ls", larger, "--overlay", self.overlay, code=1))

    def test_is_created_only_by_commands_that_write(self):
        self.assertIn("No such file", self.over("ls", self.on("/"), code=1))
        self.assertFalse(self.overlay.exists())
        self.assertIn("not an overlay", self.sluice("mkdir", self.on("/x"), "--overlay", self.source, code=1))

    def test_excludes_writers_of_the_image_but_not_other_overlays(self):
        second = self.directory / "second.overlay"
        with Served(self.image, self.overlay), Served(self.image, second):
            self.assertIn("held by", self.sluice("mkdir", self.on("/x"), code=1))
            self.assertIn("held by", self.over("mkdir", self.on("/x"), code=1))
            self.assertIn("held by", self.over("commit", self.image, code=1))
            self.assertIn("held by", self.over("discard", self.image, code=1))
            self.assertEqual(self.names(), ["before"])
        self.over("mkdir", self.on("/x"))
        self.sluice("commit", self.image, "--overlay", self.overlay)


class Journals(Image):
    def setUp(self):
        super().setUp()
        self.journal = pathlib.Path(f"{self.image}.journal")

    def interrupt(self):
        """Puts a file through a journal, and kills the process while it writes the journal to the image."""
        self.sluice("mkfile", self.on("/filler"), "--size", "12m", "--block", "64k")
        done = subprocess.run([PROGRAM, "fat", "put", self.source, self.on("/new"), "--journal"], capture_output=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, 8 << 20)))
        self.assertEqual(done.returncode, -signal.SIGXFSZ, done.stderr)
        self.assertGreater(self.journal.stat().st_size, 300_000)

    def test_an_interrupted_journal_is_used_for_reading_and_then_replayed(self):
        self.interrupt()
        listed = subprocess.run([PROGRAM, "fat", "ls", self.on("/")], capture_output=True, text=True)
        self.assertEqual(listed.stdout.split(), ["before", "filler", "new"])
        self.assertIn("batches are in", listed.stderr)
        self.sluice("get", self.on("/new"), self.directory / "back")
        self.assertEqual((self.directory / "back").read_bytes(), self.source.read_bytes())
        self.assertTrue(self.journal.exists())
        self.assertIn("sluice fat repair", self.over("ls", self.on("/"), code=1))
        self.assertIn("remove the journal first", self.sluice("mkfs", self.image, "--force", code=1))
        self.sluice("mkdir", self.on("/directory"))
        self.assertFalse(self.journal.exists())
        self.assert_consistent()
        self.assertEqual(self.names(), ["before", "directory/", "filler", "new"])
        self.sluice("get", self.on("/new"), self.directory / "again")
        self.assertEqual((self.directory / "again").read_bytes(), self.source.read_bytes())

    def test_a_journal_is_removed_after_its_replay(self):
        self.sluice("put", self.source, self.on("/new"), "--journal")
        self.assertFalse(self.journal.exists())
        self.assert_consistent()
        self.assertIn("exclude each other", self.over("put", self.source, self.on("/new"), "--journal", code=2))

    def test_a_journal_is_refused_if_another_program_has_repaired_the_volume_since(self):
        self.interrupt()
        subprocess.run(["fsck.fat", "-a", self.image], capture_output=True, env={**os.environ, "PATH": PATH})
        self.assertIn("another program", self.sluice("ls", self.on("/"), code=1))
        self.assertIn("another program", self.sluice("mkdir", self.on("/x"), code=1))
        self.journal.unlink()
        self.sluice("ls", self.on("/"))


class Readings(Image):
    def test_names_are_written_in_the_given_code_page(self):
        short = "ЖУК".encode("cp866").ljust(8) + b"TXT"
        for page, expected in (("437", False), ("866", True)):
            with self.subTest(page=page):
                self.sluice("mkfs", self.image, "--size", "20m", "--force")
                self.sluice("put", self.source, self.on("/ЖУК.TXT"), "--code-page", page)
                self.assertEqual(short in self.image.read_bytes(), expected)
                self.assertEqual(self.names("--code-page", page), ["ЖУК.TXT"])
        self.assertIn("invalid value '8' for --code-page", self.sluice("ls", self.on("/"), "--code-page", "8", code=2))

    def test_names_are_written_in_double_byte_code_pages(self):
        for page, name in (("932", "ソ表.TXT"), ("936", "文件.TXT"), ("949", "파일.TXT"), ("950", "檔案.TXT")):
            with self.subTest(page=page):
                self.sluice("mkfs", self.image, "--size", "20m", "--force")
                self.sluice("put", self.source, self.on("/" + name), "--code-page", page)
                short = name[:-4].encode("cp" + page).ljust(8) + b"TXT"
                self.assertIn(short, self.image.read_bytes())
                self.assertEqual(self.names("--code-page", page), [name])
                self.sluice("check", self.image, "--code-page", page)

    def test_short_names_of_other_programs_are_read_in_the_given_code_page(self):
        self.sluice("mkfs", self.image, "--size", "20m", "--force")
        self.sluice("put", self.source, self.on("/12345678.TXT"))
        written = self.image.read_bytes()
        self.assertEqual(written.count(b"12345678TXT"), 1)
        self.image.write_bytes(written.replace(b"12345678TXT", "日本語".encode("cp932").ljust(8) + b"TXT"))
        self.assertEqual(self.names("--code-page", "932"), ["日本語.TXT"])
        self.assertEqual(len(self.names()), 1)

    def test_times_are_in_the_given_zone(self):
        os.utime(self.source, (1_000_000_000, 1_000_000_000))
        os.environ["TZ"] = "UTC"
        self.sluice("put", self.source, self.on("/new"), "--time-zone", "+05:30")
        for zone, shown in (("+05:30", "2001-09-09 01:46"), ("utc", "2001-09-09 07:16"), ("-01:00", "2001-09-09 08:16")):
            self.assertIn(shown, self.sluice("stat", self.on("/new"), "--time-zone", zone))
        for wrong in ("+5", "+05:60", "+15:00", "Berlin"):
            self.assertIn(f"invalid value '{wrong}' for --time-zone", self.sluice("ls", self.on("/"), f"--time-zone={wrong}", code=2))


class Served:
    """Runs `sluice serve IMAGE --overlay FILE` during the `with` block."""

    def __init__(self, image, overlay):
        self.users = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [PROGRAM, "serve", image, "--overlay", overlay, "--listen", "127.0.0.1:0", "--user", "a%b",
             "--users-file", self.users.name + "/users"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def __enter__(self):
        for line in self.process.stdout:
            if re.match("^Listening", line):
                return self
        raise AssertionError("the server did not start")

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        self.process.kill()
        self.process.stdout.close()
        self.users.cleanup()


if __name__ == "__main__":
    unittest.main()
