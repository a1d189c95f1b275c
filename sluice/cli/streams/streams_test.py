"""sluice streams, and that a client does not see the files in which large streams are stored. Run by ctest with the
program as the last argument."""

import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from server_testing import running_server  # noqa: E402

PROGRAM = sys.argv.pop() if __name__ == "__main__" else None
LARGE = os.urandom(3000)


class Streams(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.share = self.directory / "share"
        self.share.mkdir()
        self.file = self.share / "file"
        self.file.write_text("content")
        try:
            os.setxattr(self.file, "user.test", b"")
        except OSError as why:
            self.skipTest(f"no extended attributes in {self.directory}: {why}")

    def sluice(self, *arguments, code=0, **environment):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120,
                              env={**os.environ, **environment})
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done.stdout if code == 0 else done.stdout + done.stderr

    def stored(self):
        return sorted(path.name for path in self.share.rglob("=*"))

    def import_large_stream(self):
        os.setxattr(self.file, "user.DosStream.large:$DATA", LARGE + b"\0")
        self.sluice("streams", "import", "--remove", self.share)

    def test_import_copies_streams_of_samba_once(self):
        os.setxattr(self.file, "user.DosStream.small:$DATA", b"small\0")
        (self.share / ".streams" / "AB" / "CD").mkdir(parents=True)
        self.assertEqual(self.sluice("streams", "import", self.share), "imported 1 stream; 0 imported before\n")
        self.assertEqual(os.getxattr(self.file, "user.sluice.stream.small"), b"small")
        self.assertEqual(self.sluice("streams", "import", self.share), "imported 0 streams; 1 imported before\n")
        self.import_large_stream()
        self.assertEqual(self.stored(), ["=large"])
        self.assertEqual(next(self.share.rglob("=large")).read_bytes(), LARGE)
        self.assertEqual([name for name in os.listxattr(self.file) if "DosStream" in name], [])

    def test_import_reports_streams_with_other_content(self):
        os.setxattr(self.file, "user.sluice.stream.s", b"present")
        os.setxattr(self.file, "user.DosStream.s:$DATA", b"another\0")
        output = self.sluice("streams", "import", self.share, code=1)
        self.assertIn("file:s: exists with other content; not changed\n", output)
        self.assertIn("not imported: 1 stream with other content\n", output)
        self.assertEqual(os.getxattr(self.file, "user.sluice.stream.s"), b"present")

    def test_import_uses_the_store_of_the_outer_share(self):
        self.import_large_stream()
        nested = self.share / "nested"
        nested.mkdir()
        (nested / "file").write_text("content")
        os.setxattr(nested / "file", "user.DosStream.large:$DATA", LARGE + b"\0")
        output = self.sluice("streams", "import", "--remove", nested, code=1)
        self.assertIn(f"add --store '{self.share.resolve()}'", output)
        self.assertIn("user.DosStream.large:$DATA", os.listxattr(nested / "file"))
        self.sluice("streams", "import", "--remove", "--store", self.share, nested)
        self.assertFalse((nested / ".sluice-streams").exists())
        self.assertEqual(self.stored(), ["=large", "=large"])
        self.assertIn("does not contain", self.sluice("streams", "import", "--store", nested, self.share, code=1))
        os.setxattr(nested / "file", "user.DosStream.other:$DATA", LARGE + b"\0")
        self.sluice("streams", "import", "--store", nested, nested)
        self.assertTrue((nested / ".sluice-streams").exists())

    def test_import_fails_if_a_part_is_not_imported(self):
        depot = self.share / ".streams" / "AB" / "CD" / ("0" * 32)
        depot.mkdir(parents=True)
        self.sluice("streams", "import", self.share)
        (depot / ":s:$DATA").write_text("of no file")
        output = self.sluice("streams", "import", self.share, code=1)
        self.assertIn(f"AB/CD/{'0' * 32}: the file of these streams was not found\n", output)
        self.assertIn("1 directory in the depot without a matching file; see --any-device\n", output)

    def test_options_for_a_depot_require_one(self):
        for option in ("--any-device", "--any-owner", "--unmarked"):
            self.assertIn(f"{option}: is for streams in a depot", self.sluice("streams", "import", option, self.share, code=1))

    def test_check_finds_and_repairs_streams_without_a_file(self):
        self.import_large_stream()
        self.assertEqual(self.sluice("streams", "check", self.share), "1 file with large streams\n")
        self.file.unlink()
        output = self.sluice("streams", "check", self.share, code=4)
        self.assertRegex(output, r"^[0-9a-f]{32}: streams without a file\n")
        self.assertIn("1 problem; run with --repair\n", output)
        self.assertIn("repaired 1, failed 0\n", self.sluice("streams", "check", "--repair", self.share))
        self.assertEqual(self.stored(), ["=large"])
        self.assertIn("1 directory in .sluice-streams/lost\n", self.sluice("streams", "check", self.share))
        self.sluice("streams", "check", "--repair", "--keep", "0", self.share)
        self.assertEqual(self.stored(), [])

    def test_check_keeps_the_streams_of_the_directory_itself(self):
        os.setxattr(self.share, "user.DosStream.large:$DATA", LARGE + b"\0")
        self.assertEqual(self.sluice("streams", "import", self.share), "imported 1 stream; 0 imported before\n")
        self.assertIn("1 file with large streams\n", self.sluice("streams", "check", "--repair", self.share))
        self.assertEqual(self.stored(), ["=large"])
        self.assertEqual(os.listdir(self.share / ".sluice-streams" / "lost")
                         if (self.share / ".sluice-streams" / "lost").exists() else [], [])

    def test_check_reports_what_does_not_belong_to_the_store(self):
        self.import_large_stream()
        (self.share / ".sluice-streams" / "stray").write_text("")
        output = self.sluice("streams", "check", self.share, code=1)
        self.assertIn(".sluice-streams/stray: not a part of the store", output)
        self.assertIn("1 object in stores that are not a part of them\n", output)

    def test_check_moves_nothing_if_a_directory_cannot_be_read_unless_that_is_accepted(self):
        if os.geteuid() == 0:
            self.skipTest("root may read every directory")
        self.import_large_stream()
        self.file.unlink()
        closed = self.share / "closed"
        closed.mkdir(mode=0)
        self.addCleanup(closed.chmod, 0o700)
        output = self.sluice("streams", "check", "--repair", self.share, code=1)
        self.assertIn("closed: cannot be read: ", output)
        self.assertIn("nothing is moved to lost without --skip-unreadable\n", output)
        self.assertIn("repaired 0, failed 1\n", output)
        output = self.sluice("streams", "check", "--repair", "--skip-unreadable", self.share)
        self.assertIn("repaired 1, failed 0\n", output)

    def test_options_of_a_repair_are_rejected_without_it(self):
        for option in (["--keep", "0"], ["--skip-unreadable"]):
            output = self.sluice("streams", "check", *option, self.share, code=2)
            self.assertIn(f"{option[0]} needs --repair: ", output)
        self.assertIn(", 4 problems that --repair repairs.", self.sluice("streams", "check", "--help"))

    def test_errors_name_the_directory(self):
        self.assertIn("missing", self.sluice("streams", "check", self.directory / "missing", code=1))
        (self.share / ".sluice-streams").symlink_to("elsewhere")
        self.assertIn(".sluice-streams: is a symbolic link", self.sluice("streams", "check", self.share, code=1))
        self.sluice("streams", code=2)
        self.sluice("streams", "check", code=2)

    def test_clients_do_not_see_where_large_streams_are(self):
        self.import_large_stream()
        self.assertEqual(stat.S_IMODE((self.share / ".sluice-streams").stat().st_mode), 0o1700)
        users = self.directory / "users"
        subprocess.run([PROGRAM, "user", "--users-file", users, "add", "bob"], input="secret", text=True, check=True,
                       capture_output=True)
        with running_server(self, PROGRAM, self.share, users) as (port, _):
            url = f"smb://bob@127.0.0.1:{port}/files"
            listed = self.sluice("ls", url, SLUICE_PASSWORD="secret")
            self.assertIn("file", listed)
            self.assertNotIn("sluice-streams", listed)
            for path in (".sluice-streams", ".Sluice-Streams/lost"):
                self.sluice("ls", f"{url}/{path}", code=1, SLUICE_PASSWORD="secret")
            self.sluice("mkdir", f"{url}/.SLUICE-STREAMS", code=1, SLUICE_PASSWORD="secret")
        self.assertEqual(self.stored(), ["=large"])

    def test_the_server_warns_if_large_streams_are_not_available(self):
        (self.share / ".sluice-streams").mkdir(mode=0o770)
        os.chmod(self.share / ".sluice-streams", 0o770)
        users = self.directory / "users"
        subprocess.run([PROGRAM, "user", "--users-file", users, "add", "bob"], input="secret", text=True, check=True,
                       capture_output=True)
        process = subprocess.Popen([PROGRAM, "serve", f"files={self.share}", "--listen", "127.0.0.1", "--port", "0",
                                    "--users-file", users], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for line in process.stdout:
            if line.startswith("I/O"):
                break
        process.terminate()
        _, log = process.communicate(timeout=60)
        self.assertTrue(re.search('large streams are not available.*share="files".*mode 00770', log), log)


if __name__ == "__main__":
    unittest.main()
