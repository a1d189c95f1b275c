"""The treatment of damaged boot sectors by sluice fat repair, and its undo. Run by ctest with the program as the last
argument."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop() if __name__ == "__main__" else None
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
FILES = 40
# Fields of the boot sector: offset, number of bytes, and values that such a volume never has.
FIELDS = {
    "bytes per sector": (11, 2, (0, 1024, 4096, 513)),
    "sectors per cluster": (13, 1, (0, 2, 8, 3)),
    "reserved sectors": (14, 2, (0, 1, 33)),
    "FATs": (16, 1, (0, 1, 3)),
    "root entries": (17, 2, (16, 512)),
    "total sectors, 16 bits": (19, 2, (2000, 65535)),
    "media": (21, 1, (0, 0xf0)),
    "FAT sectors, 16 bits": (22, 2, (1, 200)),
    "total sectors": (32, 4, (0, 70000, 1 << 31)),
    "FAT sectors": (36, 4, (0, 1, 500)),
    "flags": (40, 2, (0x8f, 0x10)),
    "version": (42, 2, (1,)),
    "root cluster": (44, 4, (0, 3, 9999)),
    "FSInfo": (48, 2, (0, 6, 9)),
    "backup": (50, 2, (0, 7)),
    "signature": (510, 2, (0,)),
}


class Repair(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.image = self.directory / "disk.img"

    def sluice(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, "fat", *map(str, arguments)], capture_output=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr.decode() + done.stdout.decode())
        self.said = done.stderr.decode()
        return done.stdout.decode()

    def make(self, *options):
        """Creates files of different lengths in the root and in two directories."""
        self.sluice("mkfs", self.image, *options)
        top = self.directory / "d"
        for i in range(FILES):
            directory = top / ("", "A", "B")[i % 3]
            directory.mkdir(parents=True, exist_ok=True)
            (directory / f"file {i}").write_bytes(os.urandom(i * 300))
        for each in sorted(top.iterdir()):
            self.sluice("put", each, f"{self.image}:/")
        self.original = self.image.read_bytes()
        self.top = top

    def set_field(self, offset, size, value, base=0):
        with self.image.open("r+b") as image:
            image.seek(base + offset)
            image.write(value.to_bytes(size, "little"))

    def restore_original(self):
        self.image.write_bytes(self.original)

    def files_left(self, image):
        """Returns the number of files that the volume still has with the same content."""
        back = self.directory / "back"
        shutil.rmtree(back, ignore_errors=True)
        subprocess.run([PROGRAM, "fat", "get", f"{image}:/", back], capture_output=True, timeout=120)
        files = [each for each in self.top.rglob("*") if each.is_file()]
        copies = [back / each.relative_to(self.top) for each in files]
        return sum(copy.is_file() and copy.read_bytes() == each.read_bytes() for each, copy in zip(files, copies))


class BootSector(Repair):
    def test_every_file_survives_a_wrong_field_while_the_backup_is_intact(self):
        self.make("--size", "40m", "--type", "32", "--cluster", "512")
        for name, (offset, size, values) in FIELDS.items():
            for value in values:
                with self.subTest(field=name, value=value):
                    self.restore_original()
                    self.set_field(offset, size, value)
                    said = self.sluice("repair", self.image)
                    self.assertIn("boot sector", said)
                    self.assertTrue(self.image.read_bytes() == self.original, said)
        self.assertEqual(self.files_left(self.image), FILES)

    @unittest.skipUnless(shutil.which("fsck.fat", path=PATH), "needs fsck.fat")
    def test_no_fewer_files_survive_than_with_fsck_fat(self):
        self.make("--size", "40m", "--type", "32", "--cluster", "512")
        other = self.directory / "other.img"
        for name, value in (("sectors per cluster", 8), ("FATs", 1), ("reserved sectors", 33), ("root cluster", 3)):
            with self.subTest(field=name):
                self.restore_original()
                self.set_field(*FIELDS[name][:2], value)
                shutil.copy(self.image, other)
                subprocess.run(["fsck.fat", "-a", other], env={**os.environ, "PATH": PATH}, capture_output=True, timeout=120)
                self.sluice("repair", self.image)
                self.assertEqual(self.files_left(self.image), FILES)
                self.assertLessEqual(self.files_left(other), FILES)

    def test_the_intended_changes_are_shown_with_the_evidence(self):
        self.make("--size", "40m", "--type", "32", "--cluster", "512")
        self.set_field(13, 1, 8)
        before = self.image.read_bytes()
        self.assertIn("boot sector: sectors per cluster: 8 becomes 1: ", self.sluice("check", self.image, code=4))
        told = json.loads(self.sluice("check", "--json", self.image, code=4))
        self.assertEqual(told["verdict"], "damaged")
        self.assertEqual([(each["field"], each["old"], each["new"]) for each in told["boot_sector_changes"]],
                         [("sectors_per_cluster", 8, 1)])
        self.assertTrue(told["boot_sector_evidence"])
        self.assertTrue(before == self.image.read_bytes(), "check changed the image")

    def test_a_boot_sector_that_the_volume_contradicts_is_not_used_for_a_repair(self):
        self.make("--size", "20m", "--type", "16")
        self.set_field(13, 1, self.original[13] * 2)
        before = self.image.read_bytes()
        self.assertIn("another cluster size", self.sluice("repair", self.image, code=4))
        self.assertIn("nothing was changed", self.said)
        self.assertTrue(before == self.image.read_bytes(), "the image was changed")
        self.assertEqual(json.loads(self.sluice("check", "--json", self.image, code=4))["verdict"], "doubtful")
        self.sluice("repair", "--boot-sector", "first", self.image)
        self.assertFalse(before == self.image.read_bytes())

    def test_a_backup_of_another_volume_is_not_used(self):
        self.make("--size", "40m", "--type", "32", "--cluster", "512")
        self.set_field(0, 512, 0)
        self.set_field(0, 32 * 1024 * 1024 - 16384, int.from_bytes(os.urandom(4096), "little"), base=16384)
        self.assertIn("the volume contradicts", self.sluice("repair", self.image, code=4))

    def test_the_backup_is_found_in_an_image_and_in_a_partition(self):
        self.make("--size", "40m", "--type", "32", "--cluster", "512")
        self.set_field(0, 512, 0)
        self.sluice("repair", self.image)
        self.assertTrue(self.image.read_bytes() == self.original)
        table = bytearray(1 << 20)
        table[446:462] = bytes([0, 0, 0, 0, 0xc, 0, 0, 0]) + (2048).to_bytes(4, "little") + (40 * 2048).to_bytes(4, "little")
        table[510:512] = b"\x55\xaa"
        self.image.write_bytes(bytes(table) + bytes(512) + self.original[512:])
        self.sluice("repair", self.image)
        self.assertTrue(self.image.read_bytes()[1 << 20:] == self.original)

    def test_check_prints_an_object_for_a_rejected_volume(self):
        for content in (bytes(70_000), b"short", b"\xeb\x76\x90EXFAT   " + bytes(70_000)):
            with self.subTest(content=content[:20]):
                self.image.write_bytes(content)
                for name in (self.image, f"{self.image}@0"):
                    told = json.loads(self.sluice("check", "--json", name, code=4))
                    self.assertEqual((told["consistent"], told["verdict"]), (False, "rejected"))
                    self.assertTrue(told["refusal"])
        self.sluice("check", "--json", self.directory / "missing", code=1)


class UseOfDamagedBootSectors(Repair):
    """The behaviour of commands that read or write the volume."""

    def setUp(self):
        super().setUp()
        self.make("--size", "40m", "--type", "32", "--cluster", "512")
        self.new = self.directory / "new"
        self.new.write_text("new")

    def reading(self):
        return [("ls", f"{self.image}:/"), ("ls", "-R", f"{self.image}:/"), ("cat", f"{self.image}:/file 0"),
                ("get", f"{self.image}:/", self.directory / "all"), ("map", f"{self.image}:/"), ("stat", self.image),
                ("label", self.image)]

    def writing(self):
        return [("put", self.new, f"{self.image}:/"), ("put", "--journal", self.new, f"{self.image}:/"),
                ("mkdir", f"{self.image}:/new"), ("rm", f"{self.image}:/file 3"),
                ("mv", f"{self.image}:/file 3", "/other"), ("mkfile", f"{self.image}:/zeros", "--size", "1k"),
                ("defrag", self.image), ("label", self.image, "NEW")]

    def make_doubtful(self):
        """According to the boot sector the volume is shorter than the image, but FSInfo matches it."""
        self.set_field(32, 4, int.from_bytes(self.original[32:36], "little") - 8000)
        self.set_field(488, 4, int.from_bytes(self.original[512 + 488:512 + 492], "little") - 8000, base=512)
        self.assertEqual(json.loads(self.sluice("check", "--json", self.image, code=4))["verdict"], "doubtful")

    def test_every_command_refuses_a_wrong_boot_sector_and_names_fields_and_remedy(self):
        self.set_field(13, 1, 8)
        before = self.image.read_bytes()
        for command in self.reading() + self.writing():
            with self.subTest(command=command[:2]):
                self.assertEqual(self.sluice(*command, code=1), "")
                self.assertIn("sectors per cluster 8 instead of 1", self.said)
                self.assertIn(f"run 'sluice fat repair {self.image}'", self.said)
                self.assertTrue(self.image.read_bytes() == before, "the image was changed")
        self.assertFalse((self.directory / "all").exists())
        self.sluice("repair", self.image)
        for command in self.reading():
            self.sluice(*command)

    def test_serve_refuses_a_wrong_boot_sector(self):
        self.set_field(13, 1, 8)
        for options in ((), ("--read-only",)):
            done = subprocess.run([PROGRAM, "serve", f"card={self.image}", *options, "--user", "u%secret", "--port", "0",
                                   "--listen", "127.0.0.1", "--users-file", self.directory / "users"],
                                  capture_output=True, timeout=60)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"run 'sluice fat repair {self.image}'", (done.stderr + done.stdout).decode())

    def test_a_wrong_backup_changes_nothing_for_other_commands(self):
        self.set_field(13, 1, 8, base=6 * 512)
        for command in self.reading():
            self.sluice(*command)
            self.assertEqual(self.said, "")
        self.sluice("mkdir", f"{self.image}:/new")

    def test_an_undecided_boot_sector_is_read_with_a_warning_and_not_written_to(self):
        self.make_doubtful()
        before = self.image.read_bytes()
        for command in self.reading():
            with self.subTest(command=command[:2]):
                self.sluice(*command)
                self.assertIn("warning: ", self.said)
                self.assertIn("total sectors", self.said)
        for command in self.writing():
            with self.subTest(command=command[:2]):
                self.sluice(*command, code=1)
                self.assertIn("sluice fat repair --boot-sector", self.said)
                self.assertTrue(self.image.read_bytes() == before, "the image was changed")

    def test_a_decided_boot_sector_is_written_to(self):
        for which in ("first", "backup"):
            with self.subTest(which=which):
                self.restore_original()
                self.make_doubtful()
                self.sluice("repair", "--boot-sector", which, self.image)
                self.sluice("mkdir", f"{self.image}:/new")
                self.assertEqual(self.said, "")


class Undo(Repair):
    def setUp(self):
        super().setUp()
        self.make("--size", "40m", "--type", "32", "--cluster", "512")
        self.set_field(13, 1, 8)
        with self.image.open("r+b") as image:  # a lost chain, in the first FAT only
            image.seek(int.from_bytes(self.original[14:16], "little") * 512 + 5000 * 4)
            image.write(b"\xff\xff\xff\x0f")
        self.damaged = self.image.read_bytes()
        self.undo = self.directory / "undo"

    def test_restores_the_image(self):
        self.assertIn("sluice fat undo", self.sluice("repair", "--undo", self.undo, self.image))
        self.assertEqual(self.undo.stat().st_mode & 0o777, 0o600)
        self.sluice("check", self.image)
        self.sluice("undo", self.image, self.undo)
        self.assertTrue(self.image.read_bytes() == self.damaged)
        self.sluice("undo", self.image, self.undo, code=1)
        self.assertIn("undone already", self.said)

    def test_an_image_that_was_changed_since_is_refused_without_force(self):
        self.sluice("repair", "--undo", self.undo, self.image)
        self.sluice("mkdir", f"{self.image}:/new")
        changed = self.image.read_bytes()
        self.sluice("undo", self.image, self.undo, code=1)
        self.assertIn("changed since", self.said)
        self.assertTrue(self.image.read_bytes() == changed)
        self.sluice("undo", "--force", self.image, self.undo)

    def test_another_image_and_another_file_are_refused(self):
        self.sluice("repair", "--undo", self.undo, self.image)
        other = self.directory / "other.img"
        self.sluice("mkfs", other, "--size", "40m")
        self.sluice("undo", other, self.undo, code=1)
        self.assertIn("another image", self.said)
        self.sluice("undo", self.image, other, code=1)
        self.assertIn("not an undo file", self.said)

    def test_a_present_file_is_kept_and_nothing_is_repaired(self):
        self.undo.write_text("precious")
        self.sluice("repair", "--undo", self.undo, self.image, code=1)
        self.assertEqual(self.undo.read_text(), "precious")
        self.assertTrue(self.image.read_bytes() == self.damaged)

    def test_no_file_remains_of_a_repair_that_changed_nothing(self):
        self.restore_original()
        self.sluice("repair", "--undo", self.undo, self.image)
        self.assertFalse(self.undo.exists())


if __name__ == "__main__":
    unittest.main()
