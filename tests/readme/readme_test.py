#!/usr/bin/env python3
"""Every `sluice` command of README.md, run as it stands. Run by ctest with the program as argument.

Replaced are only the names that a reader replaces as well: the server, and the directory /srv/photos. Servers get
`--listen`, so that they do not need port 445.
"""

import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import unittest

README = pathlib.Path(__file__).resolve().parent.parent.parent / "README.md"
PASSWORD = "a-password-of-this-test"


def commands(heading):
    """The lines of the first sh block below the paragraph that begins with **heading**."""
    block = re.search(rf"^\*\*{heading}.*?^```sh\n(.*?)^```", README.read_text(), re.S | re.M)
    assert block, f"README.md has no sh block below **{heading}"
    lines = [line.partition("  #")[0].strip() for line in block.group(1).splitlines()]
    assert all(line.startswith("sluice ") for line in lines), lines
    return lines


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Readme(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.photos = self.directory / "photos"
        (self.photos / "2026").mkdir(parents=True)
        (self.photos / "2026" / "one.jpg").write_bytes(b"a picture" * 1000)
        (self.directory / "Public").mkdir()
        self.address = f"127.0.0.1:{free_port()}"
        self.environment = {**os.environ, "HOME": str(self.directory), "XDG_CONFIG_HOME": str(self.directory / ".config"),
                            "XDG_RUNTIME_DIR": str(self.directory), "SLUICE_PASSWORD": PASSWORD}
        (self.directory / "work").mkdir()

    def words(self, line):
        """The words of a command, as this test runs it."""
        line = line.replace("/srv/photos", str(self.photos)).replace("@server/", f"@{self.address}/")
        words = [re.sub(r"^~", str(self.directory), word) for word in shlex.split(line)]
        return [PROGRAM, *words[1:]]

    def run_line(self, line, stdin="", statuses=(0,)):
        done = subprocess.run(self.words(line), cwd=self.directory / "work", env=self.environment, input=stdin, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
        self.assertIn(done.returncode, statuses, f"{line}\n{done.stdout}")
        return done.stdout

    def serve(self, line, *more):
        """Starts a server, and returns its output until it is listening."""
        server = subprocess.Popen([*self.words(line), "--listen", self.address, *more], cwd=self.directory / "work",
                                  env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        said = ""
        for text in server.stdout:
            said += text
            if text.startswith("I/O"):
                return server, said
        self.fail(f"{line}\n{said}")

    def test_the_commands_that_serve_directories(self):
        two_shares, protected, add_user, status, doctor = commands("Serve directories")
        server, said = self.serve(two_shares)
        self.assertIn("Public", said)
        self.assertIn("photos", said)
        self.run_line(add_user, stdin=PASSWORD + "\n")
        self.assertIn(self.address.partition(":")[2], self.run_line(status))
        # The machine of the test may have problems, too.
        self.assertIn(self.address, self.run_line(doctor, statuses=(0, 1)))
        server.terminate()
        self.assertEqual(server.wait(timeout=30), 0)
        self.assertIn("photos", self.serve(protected)[1])

    def test_the_commands_that_copy_files(self):
        backup = self.directory / "backup"
        backup.mkdir()
        self.serve(f"sluice serve photos={self.photos} backup={backup}", "--user", f"alice%{PASSWORD}")
        get, resume, sync, put = commands("Copy files")
        self.run_line(get)
        copied = self.directory / "work" / "2026" / "one.jpg"
        self.assertEqual(copied.read_bytes(), (self.photos / "2026" / "one.jpg").read_bytes())
        self.run_line(resume)
        (self.directory / "work" / "photos").mkdir()
        (self.directory / "work" / "photos" / "two.jpg").write_bytes(b"two")
        self.run_line(sync)
        self.assertEqual((backup / "photos" / "two.jpg").read_bytes(), b"two")
        (self.directory / "work" / "backup.tar").write_bytes(b"an archive")
        self.run_line(put)
        self.assertEqual((self.photos / "backup.tar").read_bytes(), b"an archive")

    def test_the_commands_that_work_with_images(self):
        (self.directory / "work" / "notes.txt").write_text("notes\n")
        *lines, serve = commands("Work with FAT images")
        said = "".join(self.run_line(line) for line in lines)
        self.assertIn("notes.txt", said)
        self.assertIn("disk", self.serve(serve)[1])

    def test_the_commands_that_hold_locks(self):
        for name in ("rebuild", "report"):
            script = self.directory / "work" / name
            script.write_text(f"#!/bin/sh\necho {name}\n")
            script.chmod(0o755)
        rebuild, report = commands("Serialise jobs")
        self.assertEqual(self.run_line(rebuild), "rebuild\n")
        self.assertEqual(self.run_line(report), "report\n")

    def test_the_first_screen_shows_what_the_server_prints(self):
        said = re.sub(r"^\S+ serves$", "NAS serves", self.serve("sluice serve ~/Public")[1], flags=re.M)  # the name of the host
        shown = re.search(r"^\$ sluice serve ~/Public\n(.*?)^\.\.\.$", README.read_text(), re.S | re.M).group(1)
        words = {line.split()[0] for line in shown.splitlines() if line and not line.startswith(" ")}
        self.assertEqual(words - {line.split()[0] for line in said.splitlines() if line.strip()}, set(), said)


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop()).resolve())
    unittest.main()
