"""Tests of sluice ls //host, cp, mv and sync against a server of this project. Run by ctest with the program as the last
argument."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import server_testing  # noqa: E402

PROGRAM = pathlib.Path(sys.argv.pop()).resolve() if __name__ == "__main__" else None
PASSWORD = "Stone-Bridge-7"


class ClientCase(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="sluice-client-")
        self.addCleanup(holder.cleanup)
        self.base = pathlib.Path(holder.name)
        self.files = self.base / "files"
        self.other = self.base / "other"
        self.home = self.base / "home"
        for each in (self.files, self.other, self.home):
            each.mkdir()
        server = server_testing.running_server(self, str(PROGRAM), self.files, self.base / "users",
                                               f"other={self.other}", f"again={self.files}", "--user", f"alice%{PASSWORD}")
        port, _ = server.__enter__()
        self.addCleanup(server.__exit__, None, None, None)
        self.host = f"//alice@127.0.0.1:{port}"
        self.url = f"{self.host}/files"

    def run_sluice(self, *arguments, status=0):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "SLUICE_PASSWORD": PASSWORD}
        done = subprocess.run([str(PROGRAM), *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=environment, cwd=self.home, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        return done


def tree_of(directory):
    return {str(each.relative_to(directory)): each.read_bytes() if each.is_file() else None
            for each in sorted(directory.rglob("*"))}


class Shares(ClientCase):
    def test_the_shares_of_a_server_are_listed(self):
        names = self.run_sluice("ls", self.host).stdout.split()
        self.assertLessEqual({"files", "other", "IPC$"}, set(names))
        self.assertRegex(self.run_sluice("ls", "-l", self.host).stdout, r"(?m)^disk +files")


class Copies(ClientCase):
    def test_a_tree_is_copied_on_the_server_and_to_another_share(self):
        (self.files / "a" / "b").mkdir(parents=True)
        (self.files / "a" / "b" / "large").write_bytes(os.urandom(20_000_000))
        (self.files / "a" / "empty").write_bytes(b"")
        os.utime(self.files / "a" / "b" / "large", (1_600_000_000, 1_600_000_000))
        for target in (f"{self.url}/copy", f"{self.host}/other"):
            self.run_sluice("cp", "-r", f"{self.url}/a", target)
        self.assertEqual(tree_of(self.files / "copy"), tree_of(self.files / "a"))
        self.assertEqual(tree_of(self.other / "a"), tree_of(self.files / "a"))
        self.assertEqual((self.other / "a" / "b" / "large").stat().st_mtime, 1_600_000_000)

    def test_a_file_is_copied_from_and_to_this_machine(self):
        (self.home / "x").write_text("one")
        self.run_sluice("cp", "x", f"{self.url}/y")
        self.run_sluice("cp", f"{self.url}/y", "z")
        self.assertEqual((self.home / "z").read_text(), "one")

    def test_a_directory_is_not_copied_into_itself(self):
        (self.files / "a").mkdir()
        self.assertIn("is in the directory that is copied",
                      self.run_sluice("cp", "-r", f"{self.url}/a", f"{self.url}/A/b", status=1).stderr)


class Moves(ClientCase):
    def test_a_file_is_renamed_and_nothing_is_replaced_without_force(self):
        (self.files / "a").write_text("a")
        (self.files / "b").write_text("b")
        self.assertIn("use --force", self.run_sluice("mv", f"{self.url}/a", f"{self.url}/b", status=1).stderr)
        self.assertEqual(tree_of(self.files), {"a": b"a", "b": b"b"})
        self.run_sluice("mv", "--force", f"{self.url}/a", f"{self.url}/b")
        self.assertEqual(tree_of(self.files), {"b": b"a"})

    def test_a_directory_changes_its_case_and_does_not_move_into_itself(self):
        (self.files / "dir").mkdir()
        self.run_sluice("mv", f"{self.url}/dir", f"{self.url}/DIR")
        self.assertEqual(list(tree_of(self.files)), ["DIR"])
        self.assertIn("is in the directory that is moved",
                      self.run_sluice("mv", f"{self.url}/DIR", f"{self.url}/DIR/x", status=1).stderr)

    def test_a_tree_is_moved_to_another_share(self):
        (self.files / "a" / "b").mkdir(parents=True)
        (self.files / "a" / "b" / "f").write_text("f")
        self.run_sluice("mv", f"{self.url}/a", f"{self.host}/other/")
        self.assertEqual(tree_of(self.files), {})
        self.assertEqual(tree_of(self.other), {"a": None, "a/b": None, "a/b/f": b"f"})

    def test_nothing_is_removed_if_a_file_cannot_be_copied(self):
        (self.files / "a").mkdir()
        (self.files / "a" / "f").write_text("f")
        (self.files / "a" / "link").symlink_to("none")
        self.run_sluice("mv", f"{self.url}/a", f"{self.host}/other/", status=1)
        self.assertEqual((self.files / "a" / "f").read_text(), "f")

    def test_a_file_that_two_shares_have_is_not_lost(self):
        # `--force` replaces the file by a copy of itself; the source is then another version.
        (self.files / "f").write_text("f")
        self.run_sluice("mv", "--force", f"{self.url}/f", f"{self.host}/again/f", status=1)
        self.assertEqual((self.files / "f").read_text(), "f")


if __name__ == "__main__":
    unittest.main()
