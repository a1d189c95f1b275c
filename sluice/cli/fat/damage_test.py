"""How sluice fat reads damaged and hostile volumes: it continues, reports every object, and exits with 1. Run by ctest
with the program as the last argument."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop() if __name__ == "__main__" else None
SLOT = 32


class Volume:
    """The bytes of a FAT16 image, which the test edits directly."""

    def __init__(self, path):
        self.path = path
        self.bytes = bytearray(path.read_bytes())
        number = lambda offset, size: int.from_bytes(self.bytes[offset:offset + size], "little")
        self.sector = number(11, 2)
        self.cluster = self.sector * number(13, 1)
        self.fat = number(14, 2) * self.sector
        self.fat_bytes = number(22, 2) * self.sector
        self.root = self.fat + number(16, 1) * self.fat_bytes
        self.data = self.root + number(17, 2) * SLOT

    def save(self):
        self.path.write_bytes(self.bytes)

    def place(self, cluster):
        return self.data + (cluster - 2) * self.cluster

    def entry(self, name, directory=None):
        """Returns the offset of the entry with this short name, "FILE    TXT"."""
        start = self.root if directory is None else self.place(directory)
        for offset in range(start, start + 65536 * SLOT, SLOT):
            if self.bytes[offset:offset + 11] == name.encode():
                return offset
        raise KeyError(name)

    def first(self, entry):
        return int.from_bytes(self.bytes[entry + 26:entry + 28], "little")

    def set_first(self, entry, cluster):
        self.bytes[entry + 26:entry + 28] = cluster.to_bytes(2, "little")

    def link(self, cluster, to):
        for copy in (self.fat, self.fat + self.fat_bytes):
            self.bytes[copy + 2 * cluster:copy + 2 * cluster + 2] = to.to_bytes(2, "little")

    def replace_in_long_name(self, old, new):
        """Replaces text within one slot of a long name, where the characters have fixed positions."""
        assert len(old) == len(new)
        found = 0
        for offset in range(self.root, len(self.bytes) - SLOT, SLOT):
            if self.bytes[offset + 11] != 0x0f:
                continue
            places = [offset + at for at in (1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30)]
            text = "".join(chr(int.from_bytes(self.bytes[at:at + 2], "little")) for at in places)
            at = text.find(old)
            if at < 0:
                continue
            for place, character in zip(places[at:], new):
                self.bytes[place:place + 2] = ord(character).to_bytes(2, "little")
            found += 1
        assert found, old


class Damaged(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.image = self.directory / "disk.img"
        self.sluice("mkfs", self.image, "--size", "20m", "--type", "16", "--cluster", "2k")

    def sluice(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, "fat", *map(str, arguments)], capture_output=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr.decode() + done.stdout.decode())
        self.said = done.stderr.decode()
        return done.stdout.decode()

    def on(self, path):
        return f"{self.image}:{path}"

    def put_files(self, count):
        """Writes FILE00 to FILEnn of 10 kB in /D."""
        top = self.directory / "d"
        top.mkdir()
        for i in range(count):
            (top / f"FILE{i:02}").write_bytes(os.urandom(10_000))
        self.sluice("mkdir", self.on("/D"))
        for each in sorted(top.iterdir()):
            self.sluice("put", each, self.on("/D"))
        return top


class Objects(Damaged):
    def damage_file(self, name):
        """Makes the chain of the file end after two clusters."""
        volume = Volume(self.image)
        entry = volume.entry(name, volume.first(volume.entry("D          ")))
        volume.link(volume.first(entry) + 1, 0xfff7)
        volume.save()

    def test_get_extracts_every_other_file_and_fails_at_the_end(self):
        top = self.put_files(40)
        self.damage_file("FILE00     ")
        self.sluice("get", self.on("/D"), self.directory / "back", code=1)
        self.assertEqual(sorted(os.listdir(self.directory / "back")), [f"FILE{i:02}" for i in range(1, 40)])
        for i in range(1, 40):
            self.assertEqual((self.directory / "back" / f"FILE{i:02}").read_bytes(), (top / f"FILE{i:02}").read_bytes())
        self.assertIn("sluice fat get: /D/FILE00: ", self.said)
        self.assertIn("1 object is not complete", self.said)

    def test_get_keeps_the_present_target_of_a_file_that_cannot_be_read(self):
        self.put_files(1)
        self.damage_file("FILE00     ")
        target = self.directory / "FILE00"
        target.write_text("old")
        self.sluice("get", self.on("/D/FILE00"), target, code=1)
        self.assertEqual(target.read_text(), "old")

    def test_problems_are_reported_in_the_order_of_the_entries(self):
        self.put_files(40)
        for i in range(0, 40, 3):
            self.damage_file(f"FILE{i:02}     ")
        for i in range(5):
            self.sluice("get", self.on("/D"), self.directory / f"back{i}", code=1)
            names = [line.split(": ")[1] for line in self.said.splitlines()[:-1]]
            self.assertEqual(names, [f"/D/FILE{i:02}" for i in range(0, 40, 3)])

    def test_problems_of_directories_and_files_are_reported_in_the_order_of_the_entries(self):
        self.put_files(40)
        for name in ("D1", "D2"):
            self.sluice("mkdir", self.on(f"/{name}"))
            self.sluice("mkfile", self.on(f"/{name}/LAST"), "--size", "1k")
        self.damage_file("FILE00     ")
        self.damage_file("FILE39     ")
        volume = Volume(self.image)
        volume.set_first(volume.entry("D1         "), 1)
        volume.save()
        for i in range(5):
            self.sluice("get", self.on("/"), self.directory / f"back{i}", code=1)
            names = [line.split(": ")[1] for line in self.said.splitlines()[:-1]]
            self.assertEqual(names, ["/D/FILE00", "/D/FILE39", "/D1"])
            self.assertTrue((self.directory / f"back{i}" / "D2" / "LAST").exists())

    def test_a_second_copy_replaces_the_files_of_the_first_and_leaves_nothing_else(self):
        top = self.put_files(40)
        for _ in range(2):
            self.sluice("get", self.on("/D"), self.directory)
            self.assertEqual(sorted(os.listdir(self.directory / "D")), [f"FILE{i:02}" for i in range(40)])
            for each in (self.directory / "D").iterdir():
                self.assertEqual(each.read_bytes(), (top / each.name).read_bytes())
                each.write_text("old")

    def test_a_copy_replaces_no_directory_and_leaves_nothing_else(self):
        top = self.put_files(3)
        back = self.directory / "back"
        (back / "FILE01").mkdir(parents=True)
        self.sluice("get", self.on("/D/FILE00"), back)
        self.sluice("get", self.on("/D/FILE01"), back / "FILE01" / "copy")
        self.sluice("get", self.on("/D"), self.directory / "all")
        (self.directory / "all" / "FILE01").unlink()
        (self.directory / "all" / "FILE01").mkdir()
        (self.directory / "all" / "FILE02").write_text("old")
        self.sluice("mv", self.on("/D"), "/all")
        self.sluice("get", self.on("/all"), self.directory, code=1)
        self.assertIn("all/FILE01: replace: Is a directory", self.said)
        self.assertEqual((self.directory / "all" / "FILE02").read_bytes(), (top / "FILE02").read_bytes())
        self.assertEqual(sorted(os.listdir(self.directory / "all")), ["FILE00", "FILE01", "FILE02"])

    def test_a_copy_replaces_a_symbolic_link_and_not_its_target(self):
        top = self.put_files(1)
        (self.directory / "other").write_text("other")
        (self.directory / "link").symlink_to("other")
        self.sluice("get", self.on("/D/FILE00"), self.directory / "link")
        self.assertEqual((self.directory / "other").read_text(), "other")
        self.assertFalse((self.directory / "link").is_symlink())
        self.assertEqual((self.directory / "link").read_bytes(), (top / "FILE00").read_bytes())

    def test_copies_have_the_permissions_that_the_umask_leaves(self):
        self.put_files(1)
        before = os.umask(0o027)
        self.addCleanup(os.umask, before)
        self.sluice("get", self.on("/D"), self.directory / "back")
        self.assertEqual((self.directory / "back" / "FILE00").stat().st_mode & 0o777, 0o640)

    def test_a_full_file_system_ends_the_command_and_leaves_no_incomplete_copy(self):
        top = self.put_files(30)
        small = self.directory / "small"
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(small)], capture_output=True).returncode:
            self.skipTest("needs the right to mount")
        self.addCleanup(subprocess.run, ["umount", str(small)])
        self.sluice("get", self.on("/D"), small / "back", code=1)
        self.assertIn("No space left on device", self.said)
        self.assertEqual(self.said.count("\n"), 1)
        copies = os.listdir(small / "back")
        self.assertLess(len(copies), 30)
        for name in copies:
            self.assertEqual((small / "back" / name).read_bytes(), (top / name).read_bytes())

    def test_copies_to_a_file_system_that_reports_errors_late_are_complete(self):
        top = self.put_files(20)
        below, mounted = self.directory / "below", self.directory / "mounted"
        below.mkdir()
        mounted.mkdir()
        if shutil.which("bindfs") is None or subprocess.run(["bindfs", str(below), str(mounted)], capture_output=True).returncode:
            self.skipTest("needs bindfs and the right to mount")
        self.addCleanup(subprocess.run, ["umount", str(mounted)])
        self.sluice("get", self.on("/D"), mounted / "back")
        self.sluice("mv", self.on("/D"), "/back")
        self.sluice("get", self.on("/back"), mounted)  # each replaces a copy
        self.assertEqual(sorted(os.listdir(below / "back")), [f"FILE{i:02}" for i in range(20)])
        for i in range(20):
            self.assertEqual((below / "back" / f"FILE{i:02}").read_bytes(), (top / f"FILE{i:02}").read_bytes())

    def test_a_large_file_between_holes_of_the_image_is_copied_completely(self):
        data = os.urandom(5_000_000)
        (self.directory / "data").write_bytes(data[:3_000_000] + bytes(4 << 20) + data[3_000_000:])
        self.sluice("put", self.directory / "data", self.on("/"))
        self.sluice("get", self.on("/data"), self.directory / "copy")
        self.assertEqual((self.directory / "copy").read_bytes(), (self.directory / "data").read_bytes())

    def test_salvage_copies_readable_parts_and_reports_the_rest(self):
        top = self.put_files(3)
        self.damage_file("FILE01     ")
        self.sluice("get", "--salvage", self.on("/D"), self.directory / "back", code=1)
        self.assertEqual((self.directory / "back" / "FILE01").read_bytes(),
                         (top / "FILE01").read_bytes()[:4096] + bytes(10_000 - 4096))
        self.assertEqual((self.directory / "back" / "FILE02").read_bytes(), (top / "FILE02").read_bytes())
        self.assertIn("/D/FILE01: missing, and zero in the copy: bytes 4096-9999\n", self.said)

    def test_a_short_image_is_reported_and_salvaged_by_ranges(self):
        top = self.put_files(3)
        volume = Volume(self.image)
        entry = volume.entry("FILE01     ", volume.first(volume.entry("D          ")))
        os.truncate(self.image, volume.place(volume.first(entry)) + 1024)
        (self.directory / "older").write_text("a good copy")
        self.sluice("get", self.on("/D/FILE01"), self.directory / "older", code=1)
        self.assertEqual((self.directory / "older").read_text(), "a good copy")
        self.sluice("get", self.on("/D"), self.directory / "back", code=1)
        self.assertEqual(os.listdir(self.directory / "back"), ["FILE00"])
        self.assertIn("/D/FILE01: ", self.said)
        self.assertIn("/D/FILE02: ", self.said)
        self.sluice("get", "--salvage", self.on("/D"), self.directory / "saved", code=1)
        self.assertEqual((self.directory / "saved" / "FILE01").read_bytes(),
                         (top / "FILE01").read_bytes()[:1024] + bytes(10_000 - 1024))
        self.assertIn("bytes 1024-9999", self.said)
        self.assertIn("bytes 0-9999", self.said)

    def test_a_copy_replaces_no_pipe_or_device(self):
        self.put_files(1)
        os.mkfifo(self.directory / "pipe")
        self.sluice("get", self.on("/D/FILE00"), self.directory / "pipe", code=1)
        self.assertTrue((self.directory / "pipe").is_fifo())

    def test_map_lists_every_other_file(self):
        self.put_files(5)
        self.damage_file("FILE02     ")
        self.assertEqual(len(self.sluice("map", self.on("/"), code=1).splitlines()), 4)
        self.assertIn("/D/FILE02: ", self.said)

    def test_listings_continue_after_a_directory_that_cannot_be_read(self):
        self.sluice("mkdir", "-p", self.on("/A/B"))
        self.sluice("mkdir", "-p", self.on("/C/E"))
        self.sluice("mkfile", self.on("/C/E/LAST"), "--size", "1k")
        volume = Volume(self.image)
        volume.set_first(volume.entry("A          "), 1)
        volume.save()
        self.assertEqual(self.sluice("ls", "-R", self.on("/"), code=1), "A/\nC/\nC/E/\nC/E/LAST\n")
        self.assertIn(": /A: ", self.said)
        self.sluice("get", self.on("/"), self.directory / "back", code=1)
        self.assertTrue((self.directory / "back" / "C" / "E" / "LAST").exists())
        self.assertIn(": /A: ", self.said)

    def test_entries_after_the_damage_of_a_directory_are_reported_as_missing(self):
        self.put_files(40)
        for i in range(40, 70):  # a cluster has room for 64 entries
            self.sluice("mkfile", self.on(f"/D/FILE{i:02}"), "--size", "0")
        volume = Volume(self.image)
        first = volume.first(volume.entry("D          "))
        volume.link(first, 0xfff7)
        volume.save()
        self.assertIn("D/FILE00", self.sluice("ls", "-R", self.on("/"), code=1))
        self.assertIn("/D: damaged directory, so entries after the damage are missing", self.said)

    def test_defrag_moves_no_file_while_files_share_clusters(self):
        self.put_files(2)
        volume = Volume(self.image)
        entry = [volume.entry(f"FILE0{i}     ", volume.first(volume.entry("D          "))) for i in range(2)]
        volume.link(volume.first(entry[1]), volume.first(entry[0]) + 1)
        volume.save()
        before = self.image.read_bytes()
        self.sluice("defrag", self.on("/"), code=1)
        self.assertIn("files share clusters; run 'sluice fat repair", self.said)
        self.assertTrue(self.image.read_bytes() == before, "the image was changed")

    def test_rm_removes_nothing_of_a_tree_that_cannot_be_read(self):
        self.sluice("mkdir", "-p", self.on("/A/B/C"))
        self.sluice("mkfile", self.on("/A/FILE"), "--size", "1k")
        volume = Volume(self.image)
        volume.set_first(volume.entry("B          ", volume.first(volume.entry("A          "))), 1)
        volume.save()
        self.sluice("rm", "-r", self.on("/A"), code=1)
        self.assertIn("A/FILE", self.sluice("ls", "-R", self.on("/"), code=1))


class Hostile(Damaged):
    def test_a_graph_of_directories_is_walked_once(self):
        # Sixteen directories, each of which has entries for all of them: 16^n paths of length n.
        names = [f"N{i:02}" for i in range(16)]
        self.sluice("mkdir", self.on("/TOP"))
        for name in names:
            self.sluice("mkdir", self.on(f"/TOP/{name}"))
        volume = Volume(self.image)
        top = volume.first(volume.entry("TOP        "))
        entries = b"".join(bytes(volume.bytes[at:at + SLOT])
                           for at in (volume.entry(f"{name:11}", top) for name in names))
        for name in names:
            place = volume.place(volume.first(volume.entry(f"{name:11}", top))) + 2 * SLOT
            volume.bytes[place:place + len(entries)] = entries
        volume.save()
        listed = self.sluice("ls", "-R", self.on("/"), code=1)
        self.assertLess(len(listed.splitlines()), 16 * 17 + 2)
        self.assertIn("its clusters belong to another directory", self.said)
        self.sluice("get", self.on("/TOP"), self.directory / "back", code=1)

    def test_directories_that_are_too_deep_are_reported_and_not_read(self):
        levels = 3000
        volume = Volume(self.image)

        def entry(name, cluster):
            return name.ljust(11).encode() + b"\x10" + bytes(14) + cluster.to_bytes(2, "little") + bytes(4)

        volume.bytes[volume.root:volume.root + SLOT] = entry("D", 2)
        for cluster in range(2, 2 + levels):
            volume.link(cluster, 0xffff)
            volume.bytes[volume.place(cluster):volume.place(cluster) + 3 * SLOT] = \
                entry(".", cluster) + entry("..", cluster - 1 if cluster > 2 else 0) + entry("D", cluster + 1)
        volume.save()
        listed = self.sluice("ls", "-R", self.on("/"), code=1).splitlines()
        self.assertEqual(listed[-1], "/".join(["D"] * 1000) + "/")
        self.assertIn("not read: it is more than 1000 directories deep; move it up with 'sluice fat mv'", self.said)
        self.assertEqual(len(self.said.splitlines()), 2)
        self.sluice("get", self.on("/"), self.directory / "back", code=1)
        self.assertIn("more than 1000 directories deep", self.said)
        subprocess.run(["rm", "-r", str(self.directory / "back")], check=True)  # too deep for the clean-up of Python
        self.sluice("rm", "-r", self.on("/D"), code=1)
        self.assertIn("D/D/D", self.sluice("ls", "-R", self.on("/"), code=1))

    def test_names_cannot_control_the_terminal(self):
        self.sluice("mkdir", self.on("/xxDirEsc"))
        self.sluice("mkfile", self.on("/xxDirEsc/xxFileEsc"), "--size", "5k")
        volume = Volume(self.image)
        volume.replace_in_long_name("xxDirEsc", "\x9b\x7fDirEsc")
        volume.replace_in_long_name("xxFileEsc", "\u202e\x9bFileEsc")
        entry = volume.entry("XXFILE~1   ", volume.first(volume.entry("XXDIRE~1   ")))
        volume.link(volume.first(entry), 0xfff7)
        volume.save()
        name = self.on("/\x9b\x7fDirEsc")
        for command in (("ls", self.on("/")), ("ls", "-lR", self.on("/")), ("map", self.on("/")), ("stat", name),
                        ("map", name + "/\u202e\x9bFileEsc"), ("cat", name + "/\u202e\x9bFileEsc"), ("cat", name),
                        ("get", name, self.directory / "back"), ("get", "--salvage", name, self.directory / "saved"),
                        ("defrag", self.on("/")), ("mkdir", name), ("rm", name), ("mv", name + "/x", "/y"),
                        ("check", self.image), ("check", "--json", self.image)):
            with self.subTest(command=command):
                done = subprocess.run([PROGRAM, "fat", *map(str, command)], capture_output=True, timeout=120)
                printed = (done.stdout + (b"" if "--json" in command else done.stderr)).decode()
                for character in "\x1b\x7f\x9b\u202e":
                    self.assertNotIn(character, printed.replace("\r\x1b[K", ""))


if __name__ == "__main__":
    unittest.main()
