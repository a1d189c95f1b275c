#!/usr/bin/env python3
"""Users, groups, guests and hosts of shares: what smbclient may do, and what a reload changes."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import server_testing  # noqa: E402

PROGRAM = None
SECONDS_MAX = server_testing.SECONDS_MAX
USERS = ("alice", "bob", "carol", "dave")


class Shares(server_testing.ConfiguredServer, unittest.TestCase):
    """A server with a configuration file."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.directory = self.scratch / "data"
        self.directory.mkdir(mode=0o777)
        self.directory.chmod(0o777)
        self.file = self.scratch / "sluice.toml"
        self.log = self.scratch / "log"

    def configure(self, shares, head=""):
        users = ", ".join(f'"{name}%{name}"' for name in USERS)
        fresh = self.scratch / "sluice.toml.new"
        fresh.write_text(f'user = [{users}]\nusers-file = "{self.scratch}/users"\nlisten = ["127.0.0.1:{self.port}"]\n'
                         f'status-socket = "{self.scratch}/status"\n{head}\n' + shares.replace("DATA", str(self.directory)),
                         encoding="utf-8")
        fresh.rename(self.file)

    def may(self, user, share):
        """Returns "no", "read" or "write"."""
        said = self.run_as(user, share, f"mkdir of-{user}; ls")
        if "blocks available" not in said:
            self.assertIn("NT_STATUS_ACCESS_DENIED", said)
            return "no"
        made = self.directory / f"of-{user}"
        if made.is_dir():
            made.rmdir()
            return "write"
        self.assertIn("NT_STATUS_ACCESS_DENIED", said)
        return "read"

    def listed(self, user):
        who = ["-N"] if user is None else ["-U", f"{user}%{user}"]
        done = subprocess.run(["smbclient", "-p", str(self.port), "-g", "-L", "127.0.0.1", *who], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS_MAX)
        return {line.split("|")[1] for line in done.stdout.splitlines() if line.startswith("Disk|")}

    def test_groups_and_lists_of_users_decide_who_may_read_and_write(self):
        self.configure('[groups]\nstaff = ["alice", "Bob"]\nvacant = []\n'
                       '[[share]]\nname = "team"\npath = "DATA"\nuser = ["@STAFF", "carol"]\nwrite-user = ["@staff"]\n'
                       'read-only-user = ["bob"]\n'
                       '[[share]]\nname = "empty"\npath = "DATA"\nuser = ["@vacant"]\n'
                       '[[share]]\nname = "all"\npath = "DATA"\n')
        self.start()
        self.assertEqual({user: self.may(user, "team") for user in USERS},
                         {"alice": "write", "bob": "read", "carol": "read", "dave": "no"})
        self.assertEqual([self.may(user, "empty") for user in USERS], ["no"] * 4)
        self.assertEqual([self.may(user, "all") for user in USERS], ["write"] * 4)
        self.assertEqual(self.listed("carol"), {"team", "all"})
        self.assertEqual(self.listed("dave"), {"all"})

    def test_guests_read_unless_the_share_says_otherwise(self):
        self.configure('[[share]]\nname = "plain"\npath = "DATA"\n'
                       '[[share]]\nname = "open"\npath = "DATA"\nguest = "write"\n'
                       '[[share]]\nname = "closed"\npath = "DATA"\nguest = "off"\n', "guest = true\nno-signing = true")
        self.start()
        self.assertEqual([self.may(None, share) for share in ("plain", "open", "closed")], ["read", "write", "no"])
        self.assertEqual(self.may("alice", "closed"), "write")
        self.assertEqual(self.listed(None), {"plain", "open"})

    def connected(self):
        """Returns a client of alice that has made the directory `first`."""
        client = subprocess.Popen(["smbclient", "-p", str(self.port), "//127.0.0.1/team", "-U", "alice%alice"], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        client.stdin.write("mkdir first\n")
        client.stdin.flush()
        until = time.monotonic() + SECONDS_MAX
        while not (self.directory / "first").exists():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.02)
        return client

    def test_a_reload_with_rejected_names_ends_the_connection_to_the_share_without_them(self):
        share = '[[share]]\nname = "team"\npath = "DATA"\n'
        self.configure(share)
        self.start()
        client = self.connected()
        self.configure(share + 'reject = ["*.exe"]\n')
        self.reload()
        said, _ = client.communicate("mkdir second.exe\nquit\n", timeout=SECONDS_MAX)
        self.assertFalse((self.directory / "second.exe").exists(), said)
        self.run_as("alice", "team", "mkdir third.exe; mkdir fourth")
        self.assertEqual(sorted(each.name for each in self.directory.iterdir() if each.name.startswith(("th", "fo"))), ["fourth"])

    def test_a_reload_takes_rights_from_a_client_that_is_connected(self):
        share = '[[share]]\nname = "team"\npath = "DATA"\n'
        self.configure(share)
        self.start()
        client = self.connected()
        self.configure(share + 'user = ["bob"]\n')
        self.reload()
        self.assertIn('msg="tree connection ended: its share has other rules" user="alice" share="team"', self.said())
        said, _ = client.communicate("mkdir second\nquit\n", timeout=SECONDS_MAX)
        self.assertFalse((self.directory / "second").exists(), said)
        self.assertEqual([self.may(user, "team") for user in ("alice", "bob")], ["no", "write"])

    def test_guest_in_a_group_does_not_mean_the_guests(self):
        self.configure('[groups]\nvisitors = ["guest", "alice"]\n'
                       '[[share]]\nname = "team"\npath = "DATA"\nguest = "write"\nwrite-user = ["@visitors"]\n'
                       '[[share]]\nname = "open"\npath = "DATA"\nguest = "write"\nwrite-user = ["guest"]\n',
                       "guest = true\nno-signing = true")
        self.start()
        self.assertEqual([self.may(user, "team") for user in (None, "alice", "bob")], ["read", "write", "read"])
        self.assertEqual(self.may(None, "open"), "write")

    def test_an_unknown_group_is_an_error_that_names_it(self):
        self.configure('[[share]]\nname = "team"\npath = "DATA"\nuser = ["@no-such-group"]\n')
        done = subprocess.run([PROGRAM, "serve", "--config", str(self.file)], capture_output=True, text=True, timeout=SECONDS_MAX)
        self.assertEqual(done.returncode, 1)
        self.assertIn("share 'team': unknown group '@no-such-group'; add it to [groups], or create it on this host", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "only root can have an account database of its own")
    def test_groups_of_the_host_are_read_at_startup_and_again_by_a_server_without_confinement(self):
        self.configure('[[share]]\nname = "team"\npath = "DATA"\nuser = ["@wheelers"]\n'
                       '[[share]]\nname = "others"\npath = "DATA"\nuser = ["@Wheelers"]\n')
        group = self.scratch / "group"
        group.write_text("root:x:0:\nwheelers:x:7001:alice\nWheelers:x:7002:carol\n")
        own = f"mount --bind {group} /etc/group && exec {PROGRAM} serve --config {self.file} --no-confinement"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(["unshare", "-m", "sh", "-c", own], stdout=log, stderr=subprocess.STDOUT,
                                            stdin=subprocess.DEVNULL)
        self.addCleanup(self.stop)
        self.wait_for("I/O ")
        self.port = int(next(line for line in self.said().splitlines() if line.startswith("Listening")).rsplit(":", 1)[1])
        self.assertEqual([self.may(user, "team") for user in ("alice", "bob")], ["write", "no"])
        self.assertEqual([self.may(user, "others") for user in ("alice", "carol")], ["no", "write"])
        group.write_text("root:x:0:\nwheelers:x:7001:bob\nWheelers:x:7002:\n")
        self.reload()
        self.assertEqual([self.may(user, "team") for user in ("alice", "bob")], ["no", "write"])

    def test_hosts_of_a_share_and_of_the_server_are_denied(self):
        share = '[[share]]\nname = "here"\npath = "DATA"\n[[share]]\nname = "there"\npath = "DATA"\nallowed-host = ["192.0.2.0/24"]\n'
        self.configure(share)
        self.start()
        self.assertEqual([self.may("alice", name) for name in ("here", "there")], ["write", "no"])
        self.assertEqual(self.listed("alice"), {"here"})
        self.configure(share, 'denied-host = ["127.0.0.0/8"]')
        self.reload()
        self.assertNotIn("blocks available", self.run_as("alice", "here", "ls"))
        self.wait_for('msg="connection closed: its address is denied"')
        shown = subprocess.run([PROGRAM, "status", "--socket", str(self.scratch / "status"), "--json"], capture_output=True,
                               text=True, timeout=SECONDS_MAX)
        self.assertRegex(shown.stdout, r'"denied_connections":\s*[1-9]')
        self.configure(share)
        self.reload()
        self.assertEqual(self.may("alice", "here"), "write")


if __name__ == "__main__":
    PROGRAM = server_testing.ConfiguredServer.program = os.path.abspath(sys.argv.pop(1))
    if shutil.which("smbclient") is None:
        print("smbclient is not installed")
        sys.exit(77)
    unittest.main()
