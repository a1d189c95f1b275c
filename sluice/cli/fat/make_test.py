"""Which data sluice fat mkfs overwrites, and which it refuses to. Run by ctest with the program as the last argument."""

import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop() if __name__ == "__main__" else None
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


class Mkfs(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.image = self.directory / "disk.img"

    def sluice(self, *arguments, code=0, **environment):
        done = subprocess.run([PROGRAM, "fat", *map(str, arguments)], capture_output=True, timeout=120,
                              env={**os.environ, **environment})
        self.assertEqual(done.returncode, code, done.stderr.decode() + done.stdout.decode())
        self.said = done.stderr.decode()
        return done.stdout.decode()

    def other(self, *command, **options):
        program = shutil.which(command[0], path=PATH)
        if program is None:
            self.skipTest(f"needs {command[0]}")
        subprocess.run([program, *map(str, command[1:])], check=True, capture_output=True, **options)

    def blank(self, megabytes=128):
        with self.image.open("wb") as file:
            file.truncate(megabytes << 20)

    def write_at(self, offset, data):
        with self.image.open("r+b") as file:
            file.seek(offset)
            file.write(data)

    def assert_refused(self, name):
        before = self.image.read_bytes()
        for more in ([], ["--size", "256m"]):
            self.sluice("mkfs", self.image, *more, code=1)
            self.assertIn(f"disk.img: contains {name}", self.said)
            self.assertIn("--force", self.said)
            self.assertTrue(self.image.read_bytes() == before, "the image was changed")
        self.sluice("mkfs", self.image, "--force")
        self.sluice("ls", f"{self.image}:/")

    def test_numbers_that_cannot_be_are_refused_with_the_rule(self):
        self.blank(1)
        for options, rule in ((["--sector", "0"], "invalid value '0' for --sector: use 512, 1024"),
                              (["--reserved", "0"], "invalid value '0' for --reserved: use 1 to"),
                              (["--fats", "0"], "invalid value '0' for --fats: use 1 or 2")):
            self.sluice("mkfs", self.image, *options, code=2)
            self.assertIn(rule, self.said)
        self.sluice("mkfs", self.directory / "new.img", "--size", "40m", "--cluster", "512", "--reserved", "8", code=1)
        self.assertFalse((self.directory / "new.img").exists())
        self.sluice("mkfs", self.directory / "new.img", "--size", "64g", "--reserved", "8", code=1)
        self.assertIn("reserved sectors is 8, must be at least 9 on FAT32", self.said)

    def test_ext4_is_named(self):
        self.blank()
        self.other("mkfs.ext4", "-q", self.image)
        self.assert_refused("ext4")

    def test_btrfs_is_named(self):
        self.blank()
        self.other("mkfs.btrfs", "-q", self.image)
        self.assert_refused("btrfs")

    def test_xfs_is_named(self):
        self.blank(320)
        self.other("mkfs.xfs", "-q", self.image)
        before = os.stat(self.image).st_mtime_ns
        self.sluice("mkfs", self.image, code=1)
        self.assertIn("contains xfs", self.said)
        self.assertEqual(os.stat(self.image).st_mtime_ns, before)

    def test_swap_is_named(self):
        self.blank()
        self.other("mkswap", self.image)
        self.assert_refused("swap")

    def test_an_iso_image_is_named(self):
        self.blank()
        volume = b"\x01CD001\x01\x00" + b"LINUX".ljust(32) + b"LABEL".ljust(32)
        self.write_at(32768, volume.ljust(2048, b"\0"))
        self.write_at(32768 + 2048, b"\xffCD001\x01".ljust(2048, b"\0"))
        self.assert_refused("iso9660")

    def test_a_physical_volume_of_lvm_is_named(self):
        self.blank()
        # The label in sector 1: its checksum is a CRC-32 without the final complement, as in LVM.
        fields = struct.pack("<I", 32) + b"LVM2 001" + b"A" * 32
        rest = fields.ljust(512 - 20, b"\0")
        crc = 0xf597a6cf
        for byte in rest:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ (0xedb88320 if crc & 1 else 0)
        self.write_at(512, b"LABELONE" + struct.pack("<QI", 1, crc) + rest)
        self.assert_refused("LVM2_member")

    def test_partition_tables_are_named(self):
        for kind in ("gpt", "dos"):
            with self.subTest(kind=kind):
                self.blank()
                self.other("sfdisk", "-q", self.image, input=f"label: {kind}\nstart=2048, size=20480\n".encode())
                self.assert_refused(f"{kind} partition table")

    def test_a_fat_volume_is_named(self):
        self.sluice("mkfs", self.image, "--size", "20m")
        self.sluice("mkfs", self.image, code=1)
        self.assertIn("contains vfat", self.said)

    def test_a_file_system_in_a_partition_is_named(self):
        self.blank()
        self.other("sfdisk", "-q", self.image, input=b"label: gpt\nstart=2048, size=81920\nstart=90112, size=81920\n")
        part = self.directory / "part"
        with part.open("wb") as file:
            file.truncate(40 << 20)
        self.other("mkfs.ext4", "-q", part)
        self.write_at(2048 * 512, part.read_bytes())
        self.sluice("mkfs", f"{self.image}@1", code=1)
        self.assertIn("@1: contains ext4", self.said)
        self.sluice("mkfs", f"{self.image}@2")
        self.sluice("mkfs", f"{self.image}@1", "--force")

    def test_data_of_an_unknown_format_is_refused(self):
        self.blank()
        self.write_at(70_000, b"some data")
        self.assert_refused("data of an unknown format")

    def test_an_image_that_is_open_elsewhere_is_refused_also_with_force(self):
        self.blank()
        with self.image.open("rb"):
            self.sluice("mkfs", self.image, "--force", code=1)
            self.assertIn("disk.img: in use", self.said)
        self.sluice("mkfs", self.image)

    def test_an_unknown_use_of_the_image_is_a_warning(self):
        self.blank(20)
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("needs root and setpriv")
        self.image.chmod(0o666)
        self.directory.chmod(0o777)
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", PROGRAM, "fat", "mkfs", self.image],
                              capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertIn("warning: " + str(self.image) + ": cannot check whether another program uses the image",
                      done.stderr.decode())

    def test_a_lease_of_a_fuse_file_system_is_no_proof(self):
        below, mounted = self.directory / "below", self.directory / "mounted"
        below.mkdir()
        mounted.mkdir()
        self.other("bindfs", below, mounted)
        self.addCleanup(subprocess.run, ["umount", str(mounted)])
        self.image = mounted / "disk.img"
        self.blank(20)
        with self.image.open("rb"):
            self.sluice("mkfs", self.image, code=1)
            self.assertIn("disk.img: in use", self.said)
        self.sluice("mkfs", self.image)
        self.assertIn("cannot check whether another program uses the image", self.said)

    def test_impossible_options_create_no_file(self):
        self.sluice("mkfs", self.image, "--size", "1m", "--type", "32", code=1)
        self.assertFalse(self.image.exists())

    def test_impossible_options_do_not_extend_an_image(self):
        self.blank(1)
        self.sluice("mkfs", self.image, "--size", "2m", "--type", "32", code=1)
        self.assertEqual(self.image.stat().st_size, 1 << 20)


if __name__ == "__main__":
    unittest.main()
