"""Images that are the same bytes in every run, and sluice fat build. Run by ctest with the program as the last argument."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop() if __name__ == "__main__" else None


class Build(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.image = self.directory / "disk.img"

    def sluice(self, *arguments, code=0, **environment):
        done = subprocess.run([PROGRAM, "fat", *map(str, arguments)], capture_output=True, timeout=120,
                              env={**{k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"}, **environment})
        self.assertEqual(done.returncode, code, done.stderr.decode() + done.stdout.decode())
        self.said = done.stderr.decode()
        return done.stdout.decode()

    def tree(self, name, order):
        """Creates the same tree each time, in a different order, so that the host lists it in a different order."""
        files = {"a/one": b"1" * 5000, "a/two": b"2", "b/deep/er/file with a long name.txt": b"x" * 100_000, "c": b"",
                 "README": b"r", **{f"many/{i}": bytes([i]) * 10 for i in range(40)}}
        top = self.directory / name
        for path in sorted(files, reverse=order):
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_bytes(files[path])
        return top

    def dated(self, top, seconds):
        for directory, _, names in os.walk(top):
            for name in names:
                os.utime(os.path.join(directory, name), (seconds, seconds))
        return top

    def build(self, top, *options, **environment):
        self.sluice("build", "--from", top, "--size", "8m", "--label", "x", *options, self.image, **environment)
        return self.image.read_bytes()

    def leftovers(self):
        return [name for name in os.listdir(self.directory) if name.startswith(".sluice")]


class SameBytes(Build):
    def test_every_command_writes_the_time_of_the_environment(self):
        images = []
        for i, zone in enumerate(("UTC", "Asia/Tokyo")):
            top = self.tree(f"tree{i}", i == 1)  # its times are those of this run
            same = {"SOURCE_DATE_EPOCH": "1000000000", "TZ": zone}
            self.image.unlink(missing_ok=True)
            self.sluice("mkfs", self.image, "--size", "8m", "--label", "x", **same)
            on = lambda path: f"{self.image}:{path}"
            self.sluice("put", *top.iterdir(), on("/"), **same)
            self.sluice("mkdir", "-p", on("/new/directory"), **same)
            self.sluice("mkfile", on("/new/file"), "--size", "10k", **same)
            self.sluice("mv", on("/README"), "/new/readme", **same)
            self.sluice("rm", on("/c"), **same)
            self.sluice("label", self.image, "other", **same)
            images.append(self.image.read_bytes())
        self.assertTrue(images[0] == images[1], "two runs differ")
        listed = self.sluice("ls", "-lR", f"{self.image}:/", "--time-zone", "utc", TZ="UTC")
        self.assertEqual({line.split()[2] for line in listed.splitlines()}, {"2001-09-09"})

    def test_build_does_not_depend_on_the_order_of_the_host_or_the_time(self):
        first = self.build(self.tree("tree1", False), SOURCE_DATE_EPOCH="1000000000", TZ="UTC")
        second = self.build(self.tree("tree2", True), SOURCE_DATE_EPOCH="1000000000", TZ="Asia/Tokyo")
        self.assertTrue(first == second, "two runs differ")
        third = self.build(self.tree("tree1", False), SOURCE_DATE_EPOCH="1000000002")
        self.assertFalse(first == third)

    def test_build_without_the_environment_depends_on_the_times_of_the_files(self):
        first = self.build(self.dated(self.tree("tree1", False), 1_600_000_000))
        second = self.build(self.dated(self.tree("tree2", True), 1_600_000_000))
        self.assertTrue(first == second, "two runs differ")

    def test_older_times_of_files_stay(self):
        top = self.tree("tree", False)
        os.utime(top / "README", (900_000_000, 900_000_000))
        self.build(top, SOURCE_DATE_EPOCH="1000000000")
        listed = self.sluice("ls", "-l", f"{self.image}:/", "--time-zone", "utc", TZ="UTC")
        self.assertIn("1998-07-09 16:00 README", listed)
        self.assertIn("2001-09-09 01:46 c", listed)

    def test_the_volume_id_can_be_derived_from_a_text(self):
        self.build(self.tree("tree", False), "--serial-from", "123456789")
        self.assertIn("serial    CBF4-3926\n", self.sluice("stat", f"{self.image}:/"))
        self.sluice("build", "--from", self.directory / "tree", "--size", "8m", "--serial", "1", "--serial-from", "x",
                    self.image, code=2)

    def test_an_invalid_time_is_refused_with_the_rule(self):
        top = self.tree("tree", False)
        for value in ("yesterday", "12x", "-1", "4354819200", "99999999999999999999"):
            with self.subTest(value=value):
                self.sluice("build", "--from", top, "--size", "8m", self.image, code=1, SOURCE_DATE_EPOCH=value)
                self.assertIn(f"invalid value '{value}' for SOURCE_DATE_EPOCH: use 0 to", self.said)
        self.build(top, SOURCE_DATE_EPOCH="0")


class OneCommand(Build):
    def test_the_image_has_the_tree_and_is_consistent(self):
        top = self.tree("tree", False)
        self.build(top)
        self.sluice("check", self.image)
        self.sluice("get", f"{self.image}:/", self.directory / "back")
        for path in top.rglob("*"):
            if path.is_file():
                self.assertEqual((self.directory / "back" / path.relative_to(top)).read_bytes(), path.read_bytes())
        self.assertEqual(self.sluice("label", self.image), "X\n")
        self.assertEqual(self.image.stat().st_size, 8 << 20)
        self.assertEqual(self.leftovers(), [])

    def test_a_failure_leaves_the_present_image_and_nothing_else(self):
        top = self.tree("tree", False)
        before = self.build(top)
        (top / "large").write_bytes(bytes(9 << 20))
        self.sluice("build", "--from", top, "--size", "8m", self.image, code=1)
        self.assertTrue(self.image.read_bytes() == before, "the image was changed")
        self.assertEqual(self.leftovers(), [])
        (top / "large").unlink()
        (top / "a:b").touch()
        self.sluice("build", "--from", top, "--size", "8m", self.image, code=1)
        self.assertIn("a:b: FAT cannot store this name", self.said)
        self.assertTrue(self.image.read_bytes() == before, "the image was changed")
        self.assertEqual(self.leftovers(), [])
        self.build(top, "--rename-illegal")
        self.assertIn("a%3Ab\n", self.sluice("ls", f"{self.image}:/"))

    def test_a_file_that_is_not_a_fat_image_is_replaced_only_with_force(self):
        top = self.tree("tree", False)
        self.image.write_text("notes of a user\n")
        self.sluice("build", "--from", top, "--size", "8m", self.image, code=1)
        self.assertIn("disk.img: contains data of an unknown format; use --force", self.said)
        self.assertEqual(self.image.read_text(), "notes of a user\n")
        self.build(top, "--force")

    def test_an_image_that_is_open_elsewhere_is_not_replaced(self):
        top = self.tree("tree", False)
        self.build(top)
        with self.image.open("rb"):
            self.sluice("build", "--from", top, "--size", "8m", self.image, code=1)
            self.assertIn("in use", self.said)

    def test_a_source_that_is_not_a_directory_is_refused(self):
        self.sluice("build", "--from", self.directory / "none", "--size", "8m", self.image, code=1)
        self.assertIn("none: open directory: No such file or directory", self.said)


if __name__ == "__main__":
    unittest.main()
