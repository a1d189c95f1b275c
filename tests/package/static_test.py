"""The static program in a directory that contains nothing else, as on a system whose libraries it cannot use.

    static_test.py

Builds the program with the preset `static`. Needs root.
"""

import os
import pathlib
import shutil
import sys
import tempfile
import unittest

from commands import run

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "build" / "static" / "sluice" / "cli" / "sluice"
SKIPPED = 77
PROGRAM_BYTES_MAX = 14_000_000
PASSWORD = "a-password-of-a-test"
# The argument is the root. The client resolves a name in /etc/hosts, and the C library asks a module for an unknown account.
TRANSFER = f"""
set -eu
root=$1
ip link set lo up
mount -t proc proc "$root/proc"
export SLUICE_PASSWORD={PASSWORD} HOME=/home
inside() {{ chroot "$root" /sluice "$@"; }}
echo {PASSWORD} | inside user --users-file /home/users add alice
chroot "$root" /sluice serve --users-file /home/users --listen 127.0.0.1:1445 files=/files > "$root/home/log" 2>&1 &
server=$!
for _ in $(seq 100); do grep -q ^I/O "$root/home/log" && break; sleep 0.1; done
head -c 3000000 /dev/urandom > "$root/home/sent"
inside put --checksum /home/sent smb://alice@server.test:1445/files/ || {{ cat "$root/home/log"; exit 1; }}
inside get smb://alice@server.test:1445/files/sent /home/received
cmp "$root/home/sent" "$root/home/received"
inside fat mkfs --size 1440k /home/disk.img
inside fat ls --code-page 932 /home/disk.img:/ 2>&1 || true
inside lock --group unknown-group /home/jobs.lock -- /sluice --version 2>&1 || true
kill $server
wait $server
"""


class Static(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        for name in ("etc", "proc", "home", "files", "tmp"):
            (self.root / name).mkdir()
        run("strip", "-o", self.root / "sluice", PROGRAM)
        (self.root / "etc" / "hosts").write_text("127.0.0.1 server.test\n")
        (self.root / "etc" / "passwd").write_text("root:x:0:0:root:/home:/\n")
        (self.root / "etc" / "group").write_text("root:x:0:\n")
        (self.root / "etc" / "nsswitch.conf").write_text("passwd: files systemd\ngroup: files systemd\nhosts: files mymachines dns\n")

    def test_it_needs_no_library_and_no_loader_and_is_position_independent(self):
        dynamic = run("readelf", "--dynamic", "--program-headers", self.root / "sluice")
        self.assertNotIn("NEEDED", dynamic)
        self.assertNotIn("INTERP", dynamic)
        self.assertIn("PIE", dynamic)
        self.assertIn("GNU_RELRO", dynamic)
        self.assertLess((self.root / "sluice").stat().st_size, PROGRAM_BYTES_MAX)

    def test_it_serves_and_transfers_in_an_empty_root(self):
        text = run("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "-c", TRANSFER, "static", self.root)
        self.assertIn("invalid value '932' for --code-page", text)
        self.assertIn("invalid value 'unknown-group' for --group", text)


def main():
    if os.geteuid() != 0 or not shutil.which("unshare"):
        print("skipped: only root can enter a chroot")
        sys.exit(SKIPPED)
    run("cmake", "--preset", "static", cwd=ROOT)
    run("cmake", "--build", "--preset", "static", cwd=ROOT)
    unittest.main()


if __name__ == "__main__":
    main()
