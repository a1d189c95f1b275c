"""How sluice fat put treats names: it decides before it writes. Run by ctest with the program as the last argument."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop() if __name__ == "__main__" else None


class Put(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.image = self.directory / "disk.img"
        self.tree = self.directory / "tree"
        self.tree.mkdir()
        self.sluice("mkfs", self.image, "--size", "20m", "--serial", "1234-ABCD")
        self.pristine = self.image.read_bytes()

    def sluice(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, "fat", *map(os.fsencode, arguments)], capture_output=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr.decode() + done.stdout.decode())
        self.said = done.stderr.decode()
        return done.stdout.decode()

    def on(self, path):
        return f"{self.image}:{path}"

    def files(self, *names):
        for name in names:
            path = os.path.join(os.fsencode(self.tree), os.fsencode(name))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(os.fsencode(name))

    def assert_untouched(self):
        self.assertTrue(self.image.read_bytes() == self.pristine, "the image was written to")
        self.assertFalse(pathlib.Path(f"{self.image}.journal").exists())

    def listed(self, path="/tree"):
        return self.sluice("ls", "-R", self.on(path)).splitlines()


class IllegalNames(Put):
    def test_all_are_reported_before_anything_is_written(self):
        self.files("good", "a:b", "sub/what?", "sub/deep/end.", b"bytes\xff")
        os.mkdir(self.tree / "d*r")
        self.files("d*r/fine", "d*r/not|fine")
        self.sluice("put", self.tree, self.on("/"), code=1)
        for part in ("tree/a:b: FAT cannot store this name: ':' is not allowed", "tree/sub/what?: FAT",
                     "tree/sub/deep/end.: FAT cannot store this name: a name cannot end with a dot or a space",
                     "tree/bytes?: FAT cannot store this name: the name is not UTF-8", "tree/d*r: FAT"):
            self.assertIn(part, self.said)
        self.assertIn("nothing was written", self.said)
        self.assertIn("--rename-illegal", self.said)
        self.assert_untouched()

    def test_rename_illegal_stores_each_under_a_name_of_its_own(self):
        self.files("a:b", "A:B", "a?b", "a%3Ab", "d:r/x:y", b"\xff\xfe", "end.", "long" * 60 + ":" * 15)
        self.sluice("put", "--rename-illegal", self.tree, self.on("/"))
        self.assertIn("tree/a:b: stored as ", self.said)
        self.sluice("get", self.on("/tree"), self.directory / "back")
        found = {}
        for directory, _, names in os.walk(self.directory / "back"):
            for name in names:
                path = pathlib.Path(directory) / name
                found[path.read_bytes()] = os.path.relpath(path, self.directory / "back")
        self.assertEqual(len(found), 8)
        self.assertEqual(found[b"a%3Ab"], "a%3Ab", "a legal name stays")
        self.assertEqual(found[b"A:B"], "A%3AB~2")
        self.assertEqual(found[b"a:b"], "a%3Ab~3")
        self.assertEqual(found[b"a?b"], "a%3Fb")
        self.assertEqual(found[b"d:r/x:y"], "d%3Ar/x%3Ay")
        self.assertEqual(found[b"\xff\xfe"], "%FF%FE")
        self.assertEqual(found[b"end."], "end%2E")
        first = self.image.read_bytes()
        self.sluice("put", "--rename-illegal", self.tree, self.on("/"))
        self.assertEqual(sorted(self.listed()), sorted(set(self.listed())))
        self.assertEqual(len(self.listed()), 9)
        self.assertNotEqual(first, b"")

    def test_a_renamed_file_replaces_only_its_own_earlier_copy(self):
        self.files("a:b", "d:/x")
        self.sluice("put", "--rename-illegal", self.tree, self.on("/"))
        (self.tree / "a:b").write_text("another file")
        before = self.image.read_bytes()
        self.sluice("put", "--rename-illegal", self.tree, self.on("/"), code=1)
        self.assertIn("tree/a:b: would replace /tree/a%3Ab, which may be another file", self.said)
        self.assertTrue(self.image.read_bytes() == before, "the volume was changed")
        self.sluice("rm", self.on("/tree/a%3Ab"))
        self.sluice("put", "--rename-illegal", self.tree, self.on("/"))
        self.sluice("get", self.on("/tree/a%3Ab"), self.directory / "back")
        self.assertEqual((self.directory / "back").read_text(), "another file")

    def test_many_files_and_a_large_one_arrive_complete(self):
        sizes = [0, 1, 4096, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3_500_000] + [i % 700 for i in range(600)]
        self.tree.mkdir(exist_ok=True)
        for i, size in enumerate(sizes):
            (self.tree / f"file {i}").write_bytes(os.urandom(size))
        self.sluice("put", self.tree, self.on("/"))
        self.sluice("get", self.on("/tree"), self.directory / "back")
        self.assertEqual(len(os.listdir(self.directory / "back")), len(sizes))
        for i in range(len(sizes)):
            self.assertEqual((self.directory / "back" / f"file {i}").read_bytes(), (self.tree / f"file {i}").read_bytes())

    def test_skip_illegal_skips_these_and_everything_below_them(self):
        self.files("good", "a:b", "d*r/fine", "sub/ok")
        self.sluice("put", "--skip-illegal", self.tree, self.on("/"))
        self.assertIn("tree/a:b: skipped: ", self.said)
        self.assertIn("tree/d*r: skipped: ", self.said)
        self.assertEqual(self.listed(), ["good", "sub/", "sub/ok"])

    def test_the_two_options_exclude_each_other(self):
        self.files("good")
        self.sluice("put", "--skip-illegal", "--rename-illegal", self.tree, self.on("/"), code=2)

    def test_a_target_with_an_illegal_name_is_refused(self):
        self.files("good")
        self.sluice("put", "--rename-illegal", self.tree / "good", self.on("/a:b"), code=1)
        self.assertIn("/a:b: FAT cannot store this name", self.said)
        self.assert_untouched()


class EqualNames(Put):
    def test_names_that_differ_only_in_case_are_reported_with_both_names(self):
        self.files("README", "readme", "sub/straße", "sub/STRAßE", "sub/other")
        self.sluice("put", self.tree, self.on("/"), code=1)
        self.assertRegex(self.said, "tree/readme: has the same name on FAT as .*tree/README; rename one of them")
        self.assertIn("tree/sub/straße: has the same name on FAT as", self.said)
        self.assertIn("because of 2 problems", self.said)
        self.assert_untouched()

    def test_directories_that_differ_only_in_case_are_reported(self):
        self.files("Sub/a", "sub/b")
        self.sluice("put", self.tree, self.on("/"), code=1)
        self.assertIn("tree/sub: has the same name on FAT as", self.said)
        self.assert_untouched()

    def test_sources_of_one_name_are_reported(self):
        self.files("a/File", "b/file")
        self.sluice("put", self.tree / "a" / "File", self.tree / "b" / "file", self.on("/"), code=1)
        self.assertIn("b/file: has the same name on FAT as", self.said)
        self.assert_untouched()

    def test_directories_of_one_name_are_merged(self):
        self.files("a/d/one", "b/d/two")
        self.sluice("put", self.tree / "a" / "d", self.tree / "b" / "d", self.on("/"))
        self.assertEqual(self.listed("/d"), ["one", "two"])

    def test_a_file_with_the_short_name_of_another_replaces_nothing(self):
        names = ["a long name.txt", "ALONGN~1.TXT", "alongn~2.txt", "A LONG NAME2.TXT"]
        self.files(*names)
        self.sluice("put", self.tree, self.on("/"))
        self.sluice("get", self.on("/tree"), self.directory / "back")
        for name in names:
            self.assertEqual((self.directory / "back" / name).read_text(), name)

    def test_the_short_name_of_a_file_on_the_volume_is_reported(self):
        self.files("a long name.txt", "new")
        self.sluice("put", self.tree / "a long name.txt", self.on("/"))
        self.pristine = self.image.read_bytes()
        (self.tree / "a long name.txt").rename(self.tree / "ALONGN~1.TXT")
        self.sluice("put", self.tree / "ALONGN~1.TXT", self.tree / "new", self.on("/"), code=1)
        self.assertIn("/ALONGN~1.TXT is the short name of /a long name.txt on the volume", self.said)
        self.assert_untouched()

    def test_a_file_in_the_place_of_a_directory_is_reported(self):
        self.files("x", "y/z")
        self.sluice("mkdir", self.on("/X"))
        self.sluice("put", self.tree / "x", self.on("/Y"))
        self.pristine = self.image.read_bytes()
        self.sluice("put", self.tree / "x", self.tree / "y", self.on("/"), code=1)
        self.assertIn("/X is a directory on the volume", self.said)
        self.assertIn("/Y is not a directory on the volume", self.said)
        self.assert_untouched()


class Objects(Put):
    def test_a_file_that_is_too_large_is_reported_before_anything_is_written(self):
        self.files("small")
        with (self.tree / "large").open("wb") as file:
            file.truncate(1 << 32)
        self.sluice("put", self.tree, self.on("/"), code=1)
        self.assertIn("tree/large: has 4294967296 bytes; a file on FAT has at most 4294967295", self.said)
        self.assert_untouched()

    def test_links_to_directories_and_special_files_are_skipped(self):
        self.files("real/file")
        os.symlink("real", self.tree / "link")
        os.symlink("real/file", self.tree / "to_file")
        os.symlink("nowhere", self.tree / "dangling")
        os.mkfifo(self.tree / "pipe")
        self.sluice("put", self.tree, self.on("/"))
        self.assertIn("tree/link: skipped: a symbolic link to a directory", self.said)
        self.assertIn("tree/pipe: skipped: neither a file nor a directory", self.said)
        self.assertIn("tree/dangling: skipped: ", self.said)
        self.assertEqual(self.listed(), ["real/", "real/file", "to_file"])

    def test_names_are_written_in_the_order_of_their_bytes(self):
        self.files("c", "B", "a/2", "a/10", "zz long name.txt", "ZZLONG~9.TXT", "b2")
        self.sluice("put", self.tree, self.on("/"))
        lines = self.sluice("map", self.on("/tree")).splitlines()
        self.assertEqual([line.split("  ", 2)[-1].split("/", 2)[-1] for line in lines],
                         ["ZZLONG~9.TXT", "B", "a/10", "a/2", "b2", "c", "zz long name.txt"])


if __name__ == "__main__":
    unittest.main()
