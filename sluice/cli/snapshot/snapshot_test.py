"""`sluice snapshot` on a btrfs in a file, and what clients see of its snapshots. Run by ctest with the program as the last argument.

Needs root, mkfs.btrfs, btrfs, and a loop device; is skipped without them.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "interop"))
import served  # noqa: E402

PATTERN = ".snapshots/%Y-%m-%d_%H%M%S"
IMAGE_BYTES = 256 << 20


def run(*command, **how):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **how)


def mount_image(image, where):
    """Returns why a btrfs cannot be mounted; None after it has been mounted."""
    if os.geteuid() != 0:
        return "only root can mount a btrfs"
    for program in ("mkfs.btrfs", "btrfs", "mount"):
        if not shutil.which(program):
            return f"{program} is not installed (Debian package btrfs-progs)"
    with open(image, "wb") as file:
        file.truncate(IMAGE_BYTES)
    for command in (("mkfs.btrfs", "-q", image), ("mount", "-o", "loop", image, where)):
        done = run(*command)
        if done.returncode != 0:
            return f"{command[0]}: {done.stderr.strip()}"
    return None


class Snapshots(unittest.TestCase):
    program = None

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="sluice-snapshot-")
        cls.addClassCleanup(scratch.cleanup)
        cls.root = pathlib.Path(scratch.name) / "mount"
        cls.root.mkdir()
        problem = mount_image(pathlib.Path(scratch.name) / "image", cls.root)
        if problem is not None:
            raise unittest.SkipTest(problem)
        cls.addClassCleanup(run, "umount", "-l", cls.root)

    def setUp(self):
        self.share = self.root / self._testMethodName
        self.assertEqual(run("btrfs", "subvolume", "create", self.share).returncode, 0)
        (self.share / ".snapshots").mkdir()
        (self.share / "d").mkdir()

    def snapshot(self, *arguments):
        done = run(self.program, "snapshot", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def refuse(self, *arguments):
        done = run(self.program, "snapshot", *arguments)
        self.assertEqual(done.returncode, 1, done.stdout)
        return done.stderr

    def test_a_snapshot_is_created_read_only_listed_and_deleted(self):
        (self.share / "d" / "file").write_text("before")
        made = pathlib.Path(self.snapshot("create", self.share).strip())
        (self.share / "d" / "file").write_text("after")
        self.assertEqual((made / "d" / "file").read_text(), "before")
        with self.assertRaises(OSError):
            (made / "d" / "file").write_text("changed")
        self.assertIn(made.name, self.snapshot("list", self.share))
        daily = ("--pattern", ".snapshots/daily-%Y%m%d", self.share)
        self.snapshot("create", *daily)
        self.assertIn("File exists", self.refuse("create", *daily))
        self.snapshot("delete", self.share, made.name)
        self.assertFalse(made.exists())
        self.assertNotIn(made.name, self.snapshot("list", self.share))

    def test_a_share_below_a_subvolume_names_its_path_after_the_time(self):
        pattern = f"{self.share}/{PATTERN}/d"
        made = pathlib.Path(self.snapshot("create", "--pattern", pattern, self.share / "d").strip())
        self.assertTrue((made / "d").is_dir())

    def test_only_subvolumes_have_snapshots_and_only_snapshots_are_deleted(self):
        (self.share / "d" / ".snapshots").mkdir()
        self.assertIn("is not the root of a btrfs subvolume", self.refuse("create", self.share / "d"))
        shutil.rmtree(self.share / "d" / ".snapshots")
        (self.share / ".snapshots" / "2026-11-28_120000").mkdir()
        self.assertIn("is not a read-only snapshot", self.refuse("delete", self.share, "2026-11-28_120000"))
        run("btrfs", "subvolume", "create", self.share / ".snapshots" / "2026-11-28_120001")
        self.assertIn("is not a read-only snapshot", self.refuse("delete", self.share, "2026-11-28_120001"))
        (self.share / ".snapshots" / "2026-11-28_120002").symlink_to("/etc")
        self.assertIn("delete", self.refuse("delete", self.share, "2026-11-28_120002"))
        self.assertIn("does not match the pattern", self.refuse("delete", self.share, "../d"))

    def test_the_directory_of_the_snapshots_must_exist_on_the_same_file_system(self):
        (self.share / ".snapshots").rmdir()
        self.assertIn("create the directory first", self.refuse("create", self.share))
        with tempfile.TemporaryDirectory() as elsewhere:
            self.assertIn("must name a directory of the same btrfs", self.refuse("create", "--pattern", f"{elsewhere}/%s", self.share))

    def test_a_link_that_a_client_has_created_does_not_lead_to_the_snapshots_of_another_share(self):
        made = pathlib.Path(self.snapshot("create", self.share).strip())
        other = self.root / "linking"
        self.assertEqual(run("btrfs", "subvolume", "create", other).returncode, 0)
        (other / ".snapshots").symlink_to(self.share / ".snapshots")
        for command in (("create", other), ("list", other), ("delete", other, made.name)):
            self.assertIn("without symbolic links", self.refuse(*command))
        self.assertEqual(list((self.share / ".snapshots").iterdir()), [made])

    def test_clients_see_the_content_and_the_streams_of_a_snapshot(self):
        if not shutil.which("smbclient"):
            self.skipTest("smbclient is not installed (Debian package smbclient)")
        with tempfile.TemporaryDirectory() as local:
            big = os.urandom(100_000)
            (pathlib.Path(local) / "big").write_bytes(big)
            (pathlib.Path(local) / "other").write_bytes(b"other")
            (self.share / "file").write_text("before")
            arguments = ("--previous-versions", PATTERN)
            with served.Server(self.program, self.share, "io_uring", arguments) as server:
                def do(commands):
                    done = run("smbclient", "-p", server.port, "-U", f"{served.USER}%{served.PASSWORD}", "//127.0.0.1/share", "-c", commands,
                               cwd=local)
                    self.assertNotIn("NT_STATUS_", done.stdout + done.stderr)
                do("put big file:stream")
                made = pathlib.Path(self.snapshot("create", self.share).strip()).name
                day, time = made.split("_")
                token = f"@GMT-{day.replace('-', '.')}-{time[:2]}.{time[2:4]}.{time[4:]}"
                (self.share / "file").write_text("after")
                do(f"put other file:stream; get {token}/file old; get {token}/file:stream stream; get file new; get file:stream now")
            self.assertEqual((pathlib.Path(local) / "old").read_text(), "before")
            self.assertEqual((pathlib.Path(local) / "new").read_text(), "after")
            self.assertTrue((pathlib.Path(local) / "stream").read_bytes() == big, "the stream of the snapshot differs")
            self.assertEqual((pathlib.Path(local) / "now").read_bytes(), b"other")


if __name__ == "__main__":
    Snapshots.program = pathlib.Path(sys.argv.pop(1)).resolve()
    outcome = unittest.main(exit=False).result
    if outcome.wasSuccessful() and outcome.testsRun == 0:
        sys.exit(77)
    sys.exit(0 if outcome.wasSuccessful() else 1)
