#!/usr/bin/env python3
"""A share for each user (homes): the users that can use and see it, and the changes by a reload."""

import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent))
import server_testing  # noqa: E402

PROGRAM = None
SECONDS_MAX = server_testing.SECONDS_MAX


class Homes(server_testing.ConfiguredServer, unittest.TestCase):
    """A server with `homes`, and users of a users file whose passwords are their names."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.scratch.chmod(0o755)
        self.homes = self.scratch / "homes"
        self.homes.mkdir()
        self.homes.chmod(0o755)
        self.team = self.scratch / "team"
        self.team.mkdir()
        # The server may access all of these directories.
        for name in ("etc", "run"):
            (self.scratch / name).mkdir()
        self.users = self.scratch / "etc" / "users"
        self.file = self.scratch / "etc" / "sluice.toml"
        self.log = self.scratch / "log"
        for user in ("alice", "Bob"):
            self.add_user(user)

    def add_user(self, name):
        subprocess.run([PROGRAM, "user", "--users-file", str(self.users), "add", name], input=f"{name}\n", text=True, check=True,
                       stdout=subprocess.DEVNULL, timeout=SECONDS_MAX)

    def remove_user(self, name):
        subprocess.run([PROGRAM, "user", "--users-file", str(self.users), "remove", name], check=True, stdout=subprocess.DEVNULL,
                       timeout=SECONDS_MAX)

    def configure(self, head="", shares='[[share]]\nname = "team"\npath = "TEAM"\n'):
        fresh = self.scratch / "etc" / "sluice.toml.new"
        fresh.write_text(f'homes = "{self.homes}"\nusers-file = "{self.users}"\nlisten = ["127.0.0.1:{self.port}"]\n'
                         f'status-socket = "{self.scratch}/run/status"\n{head}\n' + shares.replace("TEAM", str(self.team)),
                         encoding="utf-8")
        fresh.rename(self.file)

    def can_use(self, user, share):
        return "blocks available" in self.run_as(user, share)

    def listed(self, user):
        who = ["-N"] if user is None else ["-U", f"{user}%{user}"]
        done = subprocess.run(["smbclient", "-p", str(self.port), "-g", "-L", "127.0.0.1", *who], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS_MAX)
        return {line.split("|")[1] for line in done.stdout.splitlines() if line.startswith("Disk|")}

    def test_each_user_sees_and_reaches_the_own_share_only(self):
        self.configure("guest = true\nno-signing = true")
        self.start()
        self.assertIn(f"  homes            {self.homes}  (2 users)\n", self.said())
        self.assertNotIn("  alice ", self.said())
        self.assertEqual([self.listed(user) for user in ("alice", "Bob", None)], [{"alice", "team"}, {"Bob", "team"}, {"team"}])
        self.assertTrue(self.can_use("alice", "ALICE"))
        self.assertTrue(self.can_use("Bob", "bob"))
        for user, share in (("Bob", "alice"), ("alice", "bob"), (None, "alice")):
            self.assertIn("NT_STATUS_ACCESS_DENIED", self.run_as(user, share), share)
        self.run_as("alice", "alice", "mkdir photos")
        self.assertTrue((self.homes / "alice" / "photos").is_dir())
        self.assertEqual({each.name: each.stat().st_mode & 0o7777 for each in self.homes.iterdir()},
                         {"alice": 0o700, "Bob": 0o700})

    def test_the_client_of_sluice_lists_the_own_share(self):
        self.configure()
        self.start()
        done = subprocess.run([PROGRAM, "ls", f"//alice@127.0.0.1:{self.port}"], text=True, capture_output=True,
                              env={**os.environ, "SLUICE_PASSWORD": "alice"}, stdin=subprocess.DEVNULL, timeout=SECONDS_MAX)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("alice", done.stdout)
        self.assertNotIn("Bob", done.stdout)

    def test_a_reload_adds_the_share_of_a_new_user_and_ends_that_of_a_removed_one(self):
        self.configure()
        self.start()
        self.add_user("carol")
        self.remove_user("Bob")
        self.reload()
        self.assertTrue(self.can_use("carol", "carol"))
        self.assertEqual(self.listed("carol"), {"carol", "team"})
        self.assertEqual((self.homes / "carol").stat().st_mode & 0o7777, 0o700)
        self.assertIn('msg="share added" share="carol"', self.said())
        self.assertIn('msg="share removed" share="Bob"', self.said())
        self.assertIn('changes="1 share added, 1 share removed"', self.said())
        self.assertNotIn("blocks available", self.run_as("Bob", "Bob"))
        self.add_user("Bob")
        self.reload()
        self.assertTrue(self.can_use("Bob", "Bob"))

    def test_a_configured_share_has_precedence_and_unusable_directories_are_reported(self):
        elsewhere = self.scratch / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "secret").touch()
        (self.homes / "Bob").symlink_to(elsewhere)
        (self.homes / "dave").write_text("a file")
        self.add_user("dave")
        self.add_user("..")
        self.configure(shares='[[share]]\nname = "Alice"\npath = "TEAM"\n')
        self.start()
        self.wait_for('msg="a user has no share of their own"', 4)  # the log has a thread of its own
        for user, why in (("alice", "a configured share has this name"), ("Bob", "a symbolic link"),
                          ("dave", "Not a directory"), ("..", "the name begins with a dot")):
            self.assertRegex(self.said(), f'msg="a user has no share of their own" user="{user}" why=".*{why}')
        self.assertEqual(self.listed("dave"), {"Alice"})
        self.assertNotIn("secret", self.run_as("Bob", "Bob"))
        self.assertIn("(0 users)", self.said())
        self.assertTrue(self.can_use("Bob", "alice"), "it has no list of users")
        (self.homes / "Bob").unlink()
        self.reload()
        self.assertTrue(self.can_use("Bob", "Bob"))
        self.assertIn('changes="1 share added"', self.said())

    def test_a_directory_that_becomes_a_link_is_not_served_after_a_reload(self):
        self.configure()
        self.start()
        self.assertTrue(self.can_use("alice", "alice"))
        (self.homes / "alice").rename(self.homes / "alice.old")
        (self.homes / "alice").symlink_to(self.team)
        self.reload()
        self.assertFalse(self.can_use("alice", "alice"))
        self.assertTrue(self.can_use("Bob", "Bob"))
        self.assertIn('msg="share removed" share="alice"', self.said())

    def test_a_directory_that_the_server_may_not_read_is_only_missing(self):
        if os.geteuid() == 0:
            self.account = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
            for each in (self.scratch, *self.scratch.rglob("*")):
                os.chown(each, 65534, 65534)
        (self.homes / "alice").mkdir(mode=0)
        self.configure()
        self.start()
        self.assertTrue(self.can_use("Bob", "Bob"))
        self.wait_for(f"{self.homes}/alice: open: Permission denied")
        (self.homes / "Bob").chmod(0)
        self.reload()
        self.assertTrue(self.can_use("alice", "team"))
        self.assertEqual(self.listed("Bob"), {"team"})

    def test_a_mount_in_a_home_is_not_served_even_if_another_share_has_the_directory(self):
        if os.geteuid() != 0:
            self.skipTest("only root can mount")
        mount = self.homes / "alice" / "mount"
        mount.mkdir(parents=True)
        (self.homes / "alice").chmod(0o700)
        self.account = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && touch "$0/secret" && exec "$@"', str(mount)]
        self.configure(shares=f'[[share]]\nname = "all"\npath = "{self.homes}/alice"\n')
        self.start()
        self.assertIn("secret", self.run_as("alice", "all", "cd mount; ls"))
        self.assertNotIn("secret", self.run_as("alice", "alice", "cd mount; ls"))
        self.reload()
        self.assertNotIn("secret", self.run_as("alice", "alice", "cd mount; ls"))

    def test_homes_of_the_command_line_need_no_other_share(self):
        self.start("--homes", str(self.homes), "--users-file", str(self.users), "--listen", "127.0.0.1:0", "--status-socket",
                   str(self.scratch / "run" / "status"))
        self.assertRegex(self.said(), r"smbclient -p \d+ //[^/]+/alice -U alice|smbclient -p \d+ //[^/]+/Bob -U Bob")
        self.assertTrue(self.can_use("alice", "alice"))

    def test_a_reload_can_add_homes_only_where_the_server_may_access_them(self):
        self.configure()
        text = self.file.read_text()
        self.file.write_text(text.replace("homes =", "# homes ="))
        self.start()
        self.assertEqual(self.listed("alice"), {"team"})
        self.file.write_text(self.file.read_text().replace("# homes =", "homes ="))
        if "access to its own files only" in self.said().split("not active")[0]:
            self.reload("cannot reload shares")
            self.assertIn("confined itself to its shares", self.said())
        else:
            self.reload()
            self.assertEqual(self.listed("alice"), {"team", "alice"})

    def test_hundreds_of_users_have_shares(self):
        limit = int(pathlib.Path("/proc/sys/fs/inotify/max_user_instances").read_text())
        names = [f"user{number}" for number in range(300)]
        with self.users.open("a") as users:
            users.writelines(f"{name}:8846f7eaee8fb117ad06bdd830b7586c\n" for name in names)
        self.configure()
        self.start()
        self.assertIn("(302 users)", self.said())
        self.assertEqual(len(list(self.homes.iterdir())), 302)
        if limit < 606:
            self.wait_for("303 shares need 606 inotify instances")
        self.assertIn(", and 282 others\n", self.said())
        shown = subprocess.run([PROGRAM, "status", "--socket", str(self.scratch / "run" / "status")], capture_output=True, text=True,
                               check=True, timeout=SECONDS_MAX).stdout
        self.assertIn("304 shares without sessions are not shown", shown)
        self.assertNotIn("user7", shown)
        self.reload()
        self.assertIn('changes="none"', self.said())
        self.assertEqual(self.listed("alice"), {"alice", "team"})
        self.assertTrue(self.can_use("Bob", "bob"))

    @unittest.skipUnless(os.geteuid() == 0, "only root can use other accounts")
    def test_the_directory_belongs_to_the_account_with_impersonation(self):
        account = pwd.getpwnam("daemon")
        self.add_user("daemon")
        self.configure("impersonate = true")
        self.start()
        status = (self.homes / "daemon").stat()
        self.assertEqual((status.st_uid, status.st_gid, status.st_mode & 0o7777), (account.pw_uid, account.pw_gid, 0o700))
        self.run_as("daemon", "daemon", "mkdir photos")
        self.assertEqual((self.homes / "daemon" / "photos").stat().st_uid, account.pw_uid)
        self.wait_for('user="alice" why=')
        self.assertRegex(self.said(), 'user="alice" why=".*no account of this name')


if __name__ == "__main__":
    PROGRAM = server_testing.ConfiguredServer.program = os.path.abspath(sys.argv.pop(1))
    if shutil.which("smbclient") is None:
        print("smbclient is not installed")
        sys.exit(77)
    unittest.main()
