"""Tests of sluice ls //host, cp, mv and sync against a server of this project. Run by ctest with the program as the last
argument."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import server_testing  # noqa: E402

PROGRAM = pathlib.Path(sys.argv.pop()).resolve() if __name__ == "__main__" else None
PASSWORD = "Stone-Bridge-7"


class ClientCase(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="sluice-client-")
        self.addCleanup(holder.cleanup)
        self.base = pathlib.Path(holder.name)
        self.files = self.base / "files"
        self.other = self.base / "other"
        self.home = self.base / "home"
        for each in (self.files, self.other, self.home):
            each.mkdir()
        server = server_testing.running_server(self, str(PROGRAM), self.files, self.base / "users",
                                               f"other={self.other}", f"again={self.files}", "--user", f"alice%{PASSWORD}")
        port, _ = server.__enter__()
        self.addCleanup(server.__exit__, None, None, None)
        self.host = f"//alice@127.0.0.1:{port}"
        self.url = f"{self.host}/files"

    def run_sluice(self, *arguments, status=0):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "SLUICE_PASSWORD": PASSWORD}
        done = subprocess.run([str(PROGRAM), *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=environment, cwd=self.home, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        return done


def tree_of(directory):
    return {str(each.relative_to(directory)): each.read_bytes() if each.is_file() else None
            for each in sorted(directory.rglob("*"))}


class Shares(ClientCase):
    def test_the_shares_of_a_server_are_listed(self):
        names = self.run_sluice("ls", self.host).stdout.split()
        self.assertLessEqual({"files", "other", "IPC$"}, set(names))
        self.assertRegex(self.run_sluice("ls", "-l", self.host).stdout, r"(?m)^disk +files")


class Settings(ClientCase):
    def write_settings(self, *lines):
        file = self.home / ".config" / "sluice" / "client.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{line}\n" for line in lines))
        file.chmod(0o600)

    def list_without_password(self, url, status=0):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        done = subprocess.run([str(PROGRAM), "ls", url], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=environment, timeout=60, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_a_host_has_an_address_a_port_a_user_and_a_program_that_prints_the_password(self):
        (self.files / "film.mkv").write_bytes(b"")
        port = self.host.rpartition(":")[2]
        self.write_settings("[host.nas]", 'address = "127.0.0.1"', f"port = {port}", 'user = "alice"', "encrypt = true",
                            f"""password-command = ["sh", "-c", 'test $SLUICE_USER@$SLUICE_HOST = alice@NAS && echo {PASSWORD}']""")
        self.assertEqual(self.list_without_password("//NAS/files").stdout, "film.mkv\n")
        self.assertEqual(self.list_without_password("//alice@NAS/files").stdout, "film.mkv\n")

    def test_the_password_is_for_the_user_of_the_file_only(self):
        port = self.host.rpartition(":")[2]
        known = ('[host."127.0.0.1"]', 'user = "alice"', f'password-command = ["echo", "{PASSWORD}"]')
        self.write_settings(*known)
        self.assertIn("standard input", self.list_without_password(self.url, status=1).stderr, "another port")
        self.write_settings(*known, f"port = {port}")
        self.assertEqual(self.list_without_password(self.url).stdout, "")
        refused = self.list_without_password(self.url.replace("alice", "bob"), status=1)
        self.assertIn("standard input", refused.stderr, "it asks for the password of bob")
        other = self.list_without_password(self.url.replace("alice", "OTHER;alice"), status=1)
        self.assertIn("standard input", other.stderr, "another domain")

    def test_the_environment_and_an_option_win_over_the_file(self):
        self.write_settings('[host."127.0.0.1"]', 'user = "alice"', 'password-command = ["echo", "wrong"]')
        self.run_sluice("ls", self.url)
        (self.home / "password").write_text(f"{PASSWORD}\n")
        self.run_sluice("ls", "--password-file", self.home / "password", self.url)


class Copies(ClientCase):
    def test_a_tree_is_copied_on_the_server_and_to_another_share(self):
        (self.files / "a" / "b").mkdir(parents=True)
        (self.files / "a" / "b" / "large").write_bytes(os.urandom(20_000_000))
        (self.files / "a" / "empty").write_bytes(b"")
        os.utime(self.files / "a" / "b" / "large", (1_600_000_000, 1_600_000_000))
        for target in (f"{self.url}/copy", f"{self.host}/other"):
            self.run_sluice("cp", "-r", f"{self.url}/a", target)
        self.assertEqual(tree_of(self.files / "copy"), tree_of(self.files / "a"))
        self.assertEqual(tree_of(self.other / "a"), tree_of(self.files / "a"))
        self.assertEqual((self.other / "a" / "b" / "large").stat().st_mtime, 1_600_000_000)

    def test_a_file_is_copied_from_and_to_this_machine(self):
        (self.home / "x").write_text("one")
        self.run_sluice("cp", "x", f"{self.url}/y")
        self.run_sluice("cp", f"{self.url}/y", "z")
        self.assertEqual((self.home / "z").read_text(), "one")

    def test_a_file_is_not_copied_to_itself(self):
        (self.files / "x").write_text("one")
        self.assertIn("is the source", self.run_sluice("cp", f"{self.url}/x", f"{self.url}/X", status=1).stderr)

    def test_the_second_of_two_names_that_differ_only_in_case_does_not_replace_the_first(self):
        (self.files / "a").mkdir()
        (self.files / "b").mkdir()
        (self.files / "a" / "x").write_text("one")
        (self.files / "b" / "x").write_text("two")
        message = self.run_sluice("cp", f"{self.url}/a/x", f"{self.url}/b/x", f"{self.host}/other", status=1).stderr
        self.assertIn("some files were not copied", message)
        self.assertNotIn("--resume", message)
        self.assertEqual(tree_of(self.other), {"x": b"one"})

    def test_a_directory_is_not_copied_into_itself(self):
        (self.files / "a").mkdir()
        self.assertIn("is in the directory that is copied",
                      self.run_sluice("cp", "-r", f"{self.url}/a", f"{self.url}/A/b", status=1).stderr)


class Links(ClientCase):
    def test_put_sends_a_directory_in_each_spelling(self):
        (self.home / "d" / "e").mkdir(parents=True)
        (self.home / "d" / "e" / "f").write_text("f")
        for source in ("d", "d/", "./d/", "d/e/..", str(self.home / "d")):
            self.run_sluice("put", "-r", source, f"{self.url}/copy")
            self.assertEqual(tree_of(self.files / "copy"), {"e": None, "e/f": b"f"})
            self.run_sluice("rm", "-r", f"{self.url}/copy")

    def test_put_skips_links_or_follows_them_without_a_loop(self):
        (self.home / "d" / "e").mkdir(parents=True)
        (self.home / "f").write_text("f")
        (self.home / "d" / "link").symlink_to("../f")
        (self.home / "d" / "e" / "loop").symlink_to("..")
        self.assertIn("link: skipped", self.run_sluice("put", "-r", "d", self.url).stderr)
        self.assertEqual(tree_of(self.files), {"d": None, "d/e": None})
        message = self.run_sluice("put", "-r", "--links", "follow", "d", self.url).stderr
        self.assertIn("loop: skipped: a link leads back", message)
        self.assertEqual(tree_of(self.files), {"d": None, "d/e": None, "d/link": b"f"})


class LinksOfTheServer(ClientCase):
    """The server follows links inside its share, and lists them as what they lead to."""

    def setUp(self):
        super().setUp()
        (self.files / "v1").mkdir()
        (self.files / "v1" / "f").write_text("precious")
        (self.files / "t").mkdir()
        (self.files / "t" / "cur").symlink_to("../v1")

    def test_rm_removes_a_link_and_not_what_it_leads_to(self):
        self.run_sluice("rm", "-r", f"{self.url}/t")
        self.assertEqual(tree_of(self.files), {"v1": None, "v1/f": b"precious"})
        (self.files / "link").symlink_to("v1")
        self.run_sluice("rm", "-r", f"{self.url}/link")
        self.assertEqual(tree_of(self.files), {"v1": None, "v1/f": b"precious"})

    def test_sync_neither_writes_nor_removes_through_a_link(self):
        local = self.home / "local"
        (local / "cur").mkdir(parents=True)
        (local / "cur" / "g").write_text("g")
        (local / "x").write_text("x")
        (self.files / "t" / "x").write_text("y")
        message = self.run_sluice("sync", "--delete", "local", f"{self.url}/t", status=1).stderr
        self.assertIn("cur: skipped: the target has an object of another kind", message)
        self.assertEqual(tree_of(self.files / "v1"), {"f": b"precious"})

    def test_sync_removes_a_link_and_not_what_it_leads_to(self):
        local = self.home / "local"
        local.mkdir()
        (local / "x").write_text("x")
        (self.files / "t" / "x").write_text("y")
        self.run_sluice("sync", "--delete", "local", f"{self.url}/t")
        self.assertEqual(tree_of(self.files / "t"), {"x": b"x"})
        self.assertEqual(tree_of(self.files / "v1"), {"f": b"precious"})

    def test_mv_to_another_share_refuses_a_tree_with_a_link_before_it_changes_anything(self):
        (self.files / "t" / "f").write_text("f")
        for _ in range(2):
            message = self.run_sluice("mv", f"{self.url}/t", f"{self.host}/other/", status=1).stderr
            self.assertIn("cur: is a link, which cannot be moved to another share; nothing was moved", message)
        self.assertEqual(tree_of(self.other), {})
        self.assertEqual(tree_of(self.files / "v1"), {"f": b"precious"})


class FullDisks(ClientCase):
    def test_a_full_disk_of_this_machine_has_a_remedy(self):
        (self.files / "large").write_bytes(bytes(3_000_000))
        small = self.base / "small"
        small.mkdir()
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(small)],
                                               stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("a test that mounts a file system needs root")
        self.addCleanup(subprocess.run, ["umount", str(small)])
        message = self.run_sluice("get", f"{self.url}/large", small, status=1).stderr
        self.assertIn("No space left on device; free space on this machine", message)
        self.assertEqual(list(small.iterdir()), [])


class Moves(ClientCase):
    def test_a_file_is_renamed_and_nothing_is_replaced_without_force(self):
        (self.files / "a").write_text("a")
        (self.files / "b").write_text("b")
        self.assertIn("use --force", self.run_sluice("mv", f"{self.url}/a", f"{self.url}/b", status=1).stderr)
        self.assertEqual(tree_of(self.files), {"a": b"a", "b": b"b"})
        self.run_sluice("mv", "--force", f"{self.url}/a", f"{self.url}/b")
        self.assertEqual(tree_of(self.files), {"b": b"a"})

    def test_a_directory_changes_its_case_and_does_not_move_into_itself(self):
        (self.files / "dir").mkdir()
        self.run_sluice("mv", f"{self.url}/dir", f"{self.url}/DIR")
        self.assertEqual(list(tree_of(self.files)), ["DIR"])
        self.assertIn("is in the directory that is moved",
                      self.run_sluice("mv", f"{self.url}/DIR", f"{self.url}/DIR/x", status=1).stderr)

    def test_a_tree_is_moved_to_another_share(self):
        (self.files / "a" / "b").mkdir(parents=True)
        (self.files / "a" / "b" / "f").write_text("f")
        self.run_sluice("mv", f"{self.url}/a", f"{self.host}/other/")
        self.assertEqual(tree_of(self.files), {})
        self.assertEqual(tree_of(self.other), {"a": None, "a/b": None, "a/b/f": b"f"})

    def test_nothing_is_removed_if_a_file_cannot_be_copied(self):
        (self.files / "a").mkdir()
        (self.files / "a" / "f").write_text("f")
        (self.files / "a" / "link").symlink_to("none")
        self.run_sluice("mv", f"{self.url}/a", f"{self.host}/other/", status=1)
        self.assertEqual((self.files / "a" / "f").read_text(), "f")

    def test_two_names_that_differ_only_in_case_do_not_become_one(self):
        (self.files / "a").mkdir()
        (self.files / "a" / "X").write_text("one")
        (self.files / "a" / "x").write_text("two")
        message = self.run_sluice("mv", "--force", f"{self.url}/a", f"{self.host}/other/", status=1).stderr
        self.assertIn("differs only in case; it was not moved", message)
        self.assertEqual(tree_of(self.files / "a"), {"X": b"one", "x": b"two"})
        self.assertEqual(tree_of(self.other), {})

    def test_a_source_does_not_replace_one_that_was_just_moved(self):
        for target in (f"{self.host}/other", f"{self.url}/into"):
            for each in ("a", "b", "into"):
                (self.files / each).mkdir(exist_ok=True)
            (self.files / "a" / "x").write_text("one")
            (self.files / "b" / "X").write_text("two")
            message = self.run_sluice("mv", "-f", f"{self.url}/a/x", f"{self.url}/b/X", target, status=1).stderr
            self.assertIn("it was not moved: move it to another directory", message)
            self.assertEqual((self.files / "b" / "X").read_text(), "two")
        self.assertEqual(tree_of(self.other), {"x": b"one"})
        self.assertEqual(tree_of(self.files / "into"), {"x": b"one"})

    def test_a_file_with_named_streams_is_not_moved(self):
        (self.files / "f").write_text("f")
        os.setxattr(self.files / "f", "user.sluice.stream.other", b"value")
        message = self.run_sluice("mv", f"{self.url}/f", f"{self.host}/other/", status=1).stderr
        self.assertIn("has named streams, which a copy would not have", message)
        self.assertEqual(tree_of(self.other), {})
        self.assertEqual((self.files / "f").read_text(), "f")

    def test_an_existing_directory_is_not_replaced(self):
        (self.files / "a").mkdir()
        (self.other / "a").mkdir()
        message = self.run_sluice("mv", "--force", f"{self.url}/a", f"{self.host}/other/", status=1).stderr
        self.assertIn("a directory with this name already exists", message)

    def test_a_file_that_two_shares_have_is_not_lost(self):
        # `--force` replaces the file by a copy of itself; the source is then another version.
        (self.files / "f").write_text("f")
        self.run_sluice("mv", "--force", f"{self.url}/f", f"{self.host}/again/f", status=1)
        self.assertEqual((self.files / "f").read_text(), "f")


class Synchronisation(ClientCase):
    def setUp(self):
        super().setUp()
        self.local = self.home / "local"
        (self.local / "d").mkdir(parents=True)
        (self.local / "d" / "f").write_text("f")
        (self.local / "g").write_text("g")

    def test_both_directions_copy_what_changed_and_keep_times(self):
        os.utime(self.local / "g", ns=(1_600_000_000_123_456_700,) * 2)
        self.run_sluice("sync", "local", f"{self.url}/a/b")
        self.assertEqual(tree_of(self.files / "a" / "b"), tree_of(self.local))
        before = (self.files / "a" / "b" / "g").stat()
        (self.local / "d" / "f").write_text("changed")
        self.run_sluice("sync", "local", f"{self.url}/a/b")
        self.assertEqual((self.files / "a" / "b" / "g").stat().st_ino, before.st_ino)
        self.run_sluice("sync", f"{self.url}/a/b", "back")
        self.assertEqual(tree_of(self.home / "back"), tree_of(self.local))
        self.assertEqual((self.home / "back" / "g").stat().st_mtime_ns, 1_600_000_000_123_456_700)

    def test_delete_removes_only_with_the_option_and_shows_it_before(self):
        self.run_sluice("sync", "local", self.url)
        (self.files / "old" / "x").mkdir(parents=True)
        (self.files / "old" / "x" / "f").write_text("old")
        self.run_sluice("sync", "local", self.url)
        shown = self.run_sluice("sync", "--delete", "--dry-run", "local", self.url).stdout
        self.assertEqual(shown, "remove old/x/f\nremove old/x\nremove old\n")
        self.assertTrue((self.files / "old" / "x" / "f").exists())
        self.run_sluice("sync", "--delete", "local", self.url)
        self.assertEqual(tree_of(self.files), tree_of(self.local))
        (self.home / "back" / "old").mkdir(parents=True)
        (self.home / "back" / "g").write_text("other")
        self.run_sluice("sync", "--delete", self.url, "back")
        self.assertEqual(tree_of(self.home / "back"), tree_of(self.local))

    def test_delete_removes_nothing_for_an_empty_or_unrelated_source(self):
        (self.home / "empty").mkdir()
        (self.files / "precious").write_text("p")
        for source in ("empty", "local"):
            message = self.run_sluice("sync", "--delete", source, self.url, status=1).stderr
            self.assertIn("nothing is removed", message)
        self.assertTrue((self.files / "precious").exists())

    def test_delete_removes_nothing_after_an_incomplete_listing(self):
        self.run_sluice("sync", "local", self.url)
        (self.files / "old").write_text("old")
        (self.local / "loop").symlink_to("..", target_is_directory=True)
        message = self.run_sluice("sync", "--delete", "--links", "follow", "local", self.url, status=1).stderr
        self.assertIn("a link leads back", message)
        self.assertIn("so nothing was removed", message)
        self.assertTrue((self.files / "old").exists())

    def test_delete_keeps_a_file_that_is_listed_under_another_name_than_it_was_copied(self):
        back = self.home / "back"
        back.mkdir()
        (back / "g").write_text("g")
        # Host names that a server shows with a mapped character, and the mapped character itself.
        (self.files / "g").write_text("g")
        (self.files / "dot.").write_text("dot")
        (self.files / "a:b").write_text("colon")
        for _ in range(2):
            self.run_sluice("sync", "--delete", self.url, "back")
            self.assertEqual(tree_of(back), tree_of(self.files))

    def test_delete_does_not_cross_a_mount_of_the_target(self):
        self.run_sluice("sync", "local", self.url)
        back = self.home / "back"
        (back / "mount").mkdir(parents=True)
        (back / "g").write_text("g")
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "none", str(back / "mount")],
                                               stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("a test that mounts a file system needs root")
        self.addCleanup(subprocess.run, ["umount", str(back / "mount")])
        (back / "mount" / "precious").write_text("p")
        self.run_sluice("sync", "--delete", self.url, "back", status=1)
        self.assertEqual((back / "mount" / "precious").read_text(), "p")

    def test_a_directory_does_not_replace_a_file_and_the_others_are_copied(self):
        (self.files / "d").write_text("a file")
        (self.files / "g").write_text("old")
        self.run_sluice("sync", "local", self.url, status=1)
        self.assertEqual((self.files / "g").read_text(), "g")
        self.assertEqual((self.files / "d").read_text(), "a file")

    def test_a_dry_run_shows_no_removals_that_would_not_be_done(self):
        self.run_sluice("sync", "local", self.url)
        (self.files / "old").write_text("old")
        (self.local / "loop").symlink_to("..", target_is_directory=True)
        done = self.run_sluice("sync", "--delete", "-n", "--links", "follow", "local", self.url, status=1)
        self.assertNotIn("remove", done.stdout)
        self.assertIn("so nothing was removed", done.stderr)

    def test_links_are_skipped_with_a_report_or_followed(self):
        (self.home / "elsewhere").write_text("e")
        (self.local / "link").symlink_to("../elsewhere")
        self.assertIn("link: skipped", self.run_sluice("sync", "local", self.url, status=1).stderr)
        self.assertFalse((self.files / "link").exists())
        self.run_sluice("sync", "--links", "follow", "local", self.url)
        self.assertEqual((self.files / "link").read_text(), "e")

    def test_nothing_is_written_through_a_link_of_the_target(self):
        outside = self.home / "outside"
        outside.mkdir()
        self.run_sluice("sync", "local", self.url)
        back = self.home / "back"
        back.mkdir()
        (back / "d").symlink_to(outside)
        self.run_sluice("sync", "--delete", self.url, "back", status=1)
        self.assertEqual(tree_of(outside), {})
        self.assertTrue((back / "d").is_symlink())


if __name__ == "__main__":
    unittest.main()
