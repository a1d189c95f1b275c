"""sluice fat as a shell sees it, verified with dosfstools, mtools and 7-Zip. Run by ctest with the program as the last
argument."""

import fcntl
import filecmp
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop() if __name__ == "__main__" else None
OTHERS = ("fsck.fat", "mdir", "mcopy", "mlabel", "7z", "sfdisk")
# Debian installs some of them in directories that are only in the PATH of root.
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
SKIPPED = 77


def run(*command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, timeout=120,
                          env={**os.environ, "PATH": PATH, "MTOOLS_SKIP_CHECK": "1", **options})


class Fat(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.image = self.directory / "disk.img"

    def sluice(self, *arguments, code=0, **options):
        done = run(PROGRAM, "fat", *arguments, **options)
        self.assertEqual(done.returncode, code, done.stderr.decode() + done.stdout.decode())
        return done.stdout.decode() if code == 0 or code == 4 else done.stderr.decode()

    def other(self, *command):
        done = run(*command)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def on(self, path):
        return f"{self.image}:{path}"

    def make(self, size="20m", *options):
        self.sluice("mkfs", self.image, "--size", size, *options)

    def start(self):
        with self.image.open("rb") as image:
            return image.read(1 << 20)

    def assert_consistent(self):
        self.other("fsck.fat", "-n", self.image)
        self.assertTrue(json.loads(self.sluice("check", self.image, "--json"))["consistent"])


class Volumes(Fat):
    def test_mkfs_follows_its_options_and_writes_the_same_bytes_for_the_same_options(self):
        for size, bits, sector in (("1440k", 12, 512), ("64m", 16, 512), ("600m", 32, 512), ("64g", 32, 512),
                                   ("64m", 16, 2048), ("1g", 32, 4096)):
            with self.subTest(size=size, bits=bits, sector=sector):
                self.image.unlink(missing_ok=True)
                said = self.sluice("mkfs", self.image, "--size", size, "--sector", sector, "--label", "a disk",
                                   "--serial", "1234-ABCD", SOURCE_DATE_EPOCH="1000000000", TZ="UTC")
                self.assertIn(f"FAT{bits},", said)
                self.assertIn("serial 1234-ABCD", said)
                self.assert_consistent()
                self.assertIn(b"A DISK", self.other("mlabel", "-s", "-i", self.image, "::"))
                first = self.start()
                self.sluice("mkfs", self.image, "--force", "--sector", sector, "--label", "a disk", "--serial",
                            "1234abcd", SOURCE_DATE_EPOCH="1000000000", TZ="UTC")
                self.assertEqual(first, self.start())

    def test_mkfs_overwrites_existing_data_only_with_force(self):
        self.make()
        self.assertIn("--force", self.sluice("mkfs", self.image, code=1))
        self.assertIn("use --size to create", self.sluice("mkfs", self.directory / "none", code=1))
        self.assertIn("must be 65541 to", self.sluice("mkfs", self.directory / "new", "--size", "1m", "--type", "32",
                                                      code=1))

    def test_label_is_shown_set_and_removed(self):
        self.make()
        self.assertEqual(self.sluice("label", self.image), "\n")
        self.sluice("label", self.image, "music")
        self.assertEqual(self.sluice("label", self.image), "MUSIC\n")
        self.assertIn(b"MUSIC", self.other("mlabel", "-s", "-i", self.image, "::"))
        self.assert_consistent()
        self.sluice("label", self.image, "--remove")
        self.assertIn(b"no label", self.other("mlabel", "-s", "-i", self.image, "::"))
        self.assert_consistent()

    def test_a_partition_is_named_by_its_number(self):
        with self.image.open("wb") as file:
            file.truncate(40 << 20)
        subprocess.run(["sfdisk", "-q", self.image], check=True, env={**os.environ, "PATH": PATH}, text=True,
                       input="label: gpt\nstart=2048, size=20480\nstart=24576, size=40960\n")
        self.sluice("mkfs", f"{self.image}@2")
        source = self.directory / "a.txt"
        source.write_text("second\n")
        self.sluice("put", source, f"{self.image}@2:/")
        self.assertEqual(self.sluice("cat", f"{self.image}:/a.txt"), "second\n")  # the only FAT
                                                                                  # partition
        self.assertEqual(self.other("mcopy", "-i", f"{self.image}@@12582912", "::a.txt", "-"), b"second\n")
        self.assertIn("no partition @3, only: @1", self.sluice("ls", f"{self.image}@3:/", code=1))


class Files(Fat):
    def tree(self):
        top = self.directory / "tree"
        (top / "deep" / "deeper").mkdir(parents=True)
        (top / "a long name with spaces.txt").write_bytes(os.urandom(100_000))
        (top / "deep" / "naïve \U0001f600.bin").write_bytes(os.urandom(3_000_000))
        (top / "deep" / "deeper" / "EMPTY").touch()
        os.utime(top / "a long name with spaces.txt", (1_600_000_000, 1_600_000_000))
        return top

    def assert_same_tree(self, a, b):
        same = filecmp.dircmp(a, b)
        self.assertEqual((same.left_only, same.right_only, same.diff_files, same.funny_files), ([], [], [], []))
        for name in same.common_dirs:
            self.assert_same_tree(a / name, b / name)

    def test_trees_survive_a_round_trip_and_other_programs_read_them(self):
        self.make("64m")
        top = self.tree()
        self.sluice("put", top, self.on("/"))
        self.assert_consistent()
        self.sluice("get", self.on("/tree"), self.directory / "back")
        self.assert_same_tree(top, self.directory / "back")
        self.assertEqual((self.directory / "back" / "a long name with spaces.txt").stat().st_mtime, 1_600_000_000)
        self.other("7z", "x", "-y", f"-o{self.directory / 'seven'}", self.image)
        self.assert_same_tree(top, self.directory / "seven" / "tree")
        listed = self.sluice("ls", "-R", self.on("/"))
        self.assertIn("tree/deep/naïve \U0001f600.bin\n", listed)

    def test_files_written_by_mtools_are_read(self):
        self.make("64m")
        top = self.tree()
        self.other("mcopy", "-s", "-m", "-i", self.image, top / "a long name with spaces.txt", "::")
        self.sluice("get", self.on("/A LONG name with spaces.txt"), self.directory / "one")
        self.assertEqual((self.directory / "one").read_bytes(), (top / "a long name with spaces.txt").read_bytes())

    def test_names_are_created_moved_and_removed(self):
        self.make()
        self.sluice("mkdir", "-p", self.on("/a/b/c"))
        self.sluice("mkfile", self.on("/a/b/file"), "--size", "5k")
        self.sluice("mv", self.on("/a/b/file"), "/a")
        self.sluice("mv", self.on("/a/file"), "/a/Renamed.data")
        self.assertEqual(self.sluice("ls", self.on("/a")), "Renamed.data\nb/\n")
        self.assertIn("use -r", self.sluice("rm", self.on("/a"), code=1))
        self.sluice("rm", self.on("/a/Renamed.data"))
        self.sluice("rm", "-r", self.on("/a"))
        self.assertEqual(self.sluice("ls", self.on("/")), "")
        self.assert_consistent()

    def test_impossible_copies_are_refused_with_the_reason(self):
        self.make("1440k")
        big = self.directory / "big"
        big.write_bytes(bytes(2_000_000))
        self.assertIn("No space left", self.sluice("put", big, self.on("/"), code=1))
        self.assertIn("none: open: No such file", self.sluice("put", self.directory / "none", self.on("/"), code=1))
        self.assertIn("No such file", self.sluice("cat", self.on("/none"), code=1))
        self.assertIn("name it, as in", self.sluice("put", big, self.image, code=2))
        self.assert_consistent()

    def test_reading_takes_a_step_per_cluster_with_runs_and_quadratic_steps_naively(self):
        self.make("20m", "--type", "16", "--cluster", "512")
        self.sluice("mkfile", self.on("/f"), "--size", "256k")

        def steps(strategy):
            text = self.sluice("stat", self.on("/f"), "--counters", "--strategy", strategy)
            return int(text.partition("steps")[2].split()[0])

        self.assertLess(steps("runs"), 1000)
        self.assertLess(steps("cursor"), 1100)
        self.assertGreater(steps("naive"), 512 * 511 // 2 - 1000)

    def test_map_shows_where_bytes_are_and_defrag_joins_them(self):
        self.make("20m", "--type", "16", "--cluster", "2k")
        for i in range(20):
            self.sluice("mkfile", self.on(f"/f{i}"), "--size", "100k")
        for i in range(0, 20, 2):
            self.sluice("rm", self.on(f"/f{i}"))
        rest = int(next(line for line in self.sluice("stat", self.on("/")).splitlines() if "clusters" in line).split()[1])
        self.sluice("mkfile", self.on("/tail"), "--size", f"{(rest - 1020) * 2}k")  # leaves the holes and
                                                                                    # a little more
        self.sluice("mkfile", self.on("/spread"), "--size", "900k")
        before = self.other(PROGRAM, "fat", "cat", self.on("/spread"))
        self.assertGreater(len(self.sluice("map", self.on("/spread")).splitlines()), 2)
        self.sluice("rm", self.on("/tail"))
        self.sluice("mkfile", self.on("/SLUICE.DFG"), "--size", "1k")  # no name is reserved for a copy
        self.assertIn("/spread: 1 runs, were", self.sluice("defrag", self.on("/")))
        lines = self.sluice("map", self.on("/spread")).splitlines()
        self.assertEqual(len(lines), 2)
        offset, length, place = (int(number) for number in lines[1].split())
        self.assertEqual((offset, length), (0, 900 << 10))
        with self.image.open("rb") as image:
            image.seek(place)
            self.assertEqual(image.read(length), before)
        self.assert_consistent()


class Damage(Fat):
    def damaged(self):
        self.make("20m")
        self.sluice("mkfile", self.on("/FILE"), "--size", "100k")
        with self.image.open("r+b") as image:
            image.seek(0)
            boot = image.read(64)
            fat = int.from_bytes(boot[14:16], "little") * 512
            length = int.from_bytes(boot[22:24], "little") * 512
            for copy in range(2):
                image.seek(fat + copy * length + 2 * 10)
                image.write(b"\x03\x00")  # back to the beginning

    def test_check_reports_damage_and_repair_corrects_it(self):
        self.damaged()
        self.assertIn("/FILE: its chain leads", self.sluice("check", self.image, code=4))
        report = json.loads(self.sluice("check", self.image, "--json", code=4))
        self.assertFalse(report["consistent"])
        self.assertIn("chain_loop", [one["kind"] for one in report["problems"]])
        self.assertIn("repaired: /FILE", self.sluice("repair", self.image))
        self.assert_consistent()
        self.assertIn("FSCK0000.REC", self.sluice("ls", self.on("/")))

    def test_an_image_without_a_volume_is_refused_with_the_reason(self):
        with self.image.open("wb") as image:
            image.truncate(100_000)
        self.assertIn("all zeros", self.sluice("ls", self.on("/"), code=1))
        self.image.write_bytes(b"short")
        self.assertIn("5 bytes", self.sluice("ls", self.on("/"), code=1))

    def test_an_image_has_one_writer_at_a_time_and_the_message_names_it(self):
        self.make()
        holder = subprocess.Popen([PROGRAM, "lock", "--algorithm", "memory_map", f"{self.image}.lock", "--",
                                   "sh", "-c", "echo; exec sleep 60"], stdout=subprocess.PIPE)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.terminate)  # terminate() is forwarded to the command
        self.addCleanup(holder.stdout.close)
        holder.stdout.readline()
        told = re.search(r"held by process (\d+) on ", self.sluice("mkdir", self.on("/x"), code=1))
        status = pathlib.Path(f"/proc/{told[1]}/status").read_text()
        self.assertIn(f"PPid:\t{holder.pid}\n", status)  # the process that holds the lock is a child of sluice lock
        self.sluice("ls", self.on("/"))

    def test_an_image_locked_by_flock_is_not_written(self):
        self.make()
        with open(f"{self.image}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertIn("flock(2)", self.sluice("mkdir", self.on("/x"), code=1))
        self.sluice("mkdir", self.on("/x"))


@unittest.skipUnless(shutil.which("smbclient"), "needs smbclient")
class Share(Fat):
    def serve(self, *arguments):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        server = subprocess.Popen([PROGRAM, "serve", *(str(part) for part in arguments), "--user", "u%secret", "--port",
                                   str(self.port), "--listen", "127.0.0.1", "--users-file", str(self.directory / "users")],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.assertTrue(server.stdout.readline())  # the banner: the server is listening
        return server

    def client(self, share, *commands):
        return run("smbclient", f"//127.0.0.1/{share}", "-p", self.port, "-U", "u%secret", "-c", "; ".join(commands))

    def test_an_image_is_served_and_is_consistent_afterwards(self):
        self.make("64m")
        big = self.directory / "big"
        big.write_bytes(os.urandom(3_000_000))
        server = self.serve(f"card={self.image}")
        done = self.client("card", f'put {big} "Ein langer Name.bin"', "mkdir sub", f"put {big} sub\\b",
                           "rename sub\\b sub\\c", f"get sub\\c {self.directory / 'back'}", "ls")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(b"Ein langer Name.bin", done.stdout)
        self.assertEqual((self.directory / "back").read_bytes(), big.read_bytes())
        self.assertIn(str(server.pid), self.sluice("mkdir", self.on("/x"), code=1))  # one writer at a time
        server.terminate()
        self.assertEqual(server.wait(timeout=30), 0)
        self.assert_consistent()
        self.sluice("get", self.on("/sub/c"), self.directory / "again")
        self.assertEqual((self.directory / "again").read_bytes(), big.read_bytes())

    def test_an_image_served_read_only_does_not_change(self):
        self.make("20m")
        self.sluice("mkfile", self.on("/f"), "--size", "10k")
        before = self.image.read_bytes()
        self.serve(f"card={self.image}", "--read-only")
        self.assertNotEqual(self.client("card", "mkdir new").stdout.find(b"NT_STATUS_"), -1)
        self.assertEqual(self.client("card", f"get f {self.directory / 'f'}").returncode, 0)
        self.assertEqual(before, self.image.read_bytes())


if __name__ == "__main__":
    missing = [tool for tool in OTHERS if shutil.which(tool, path=PATH) is None]
    if missing:
        print("needs " + ", ".join(missing))
        sys.exit(SKIPPED)
    unittest.main()
