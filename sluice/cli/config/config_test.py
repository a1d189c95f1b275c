"""sluice config and sluice user import. Run by ctest with the program as the last argument."""

import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop() if __name__ == "__main__" else None
SECRET = "a-password-of-a-test"
HASH = "8846F7EAEE8FB117AD06BDD830B7586C"
DEBIAN = pathlib.Path("/usr/share/samba/smb.conf")

HOME = """
[global]
   workgroup = HOME
   netbios name = nas
   server role = standalone server
   map to guest = bad user
   log file = /var/log/samba/log.%m
   min protocol = SMB2
   socket options = TCP_NODELAY
   vfs objects = catia fruit streams_xattr
   fruit:metadata = stream

[homes]
   browseable = no
   read only = no
   valid users = %S
   path = {dir}/homes/%S

[Media]
   comment = Films and "music"
   path = {dir}/media
   public = yes

[Backup Drive]
   path = {dir}/%S
   writeable = yes
   valid users = alice
   vfs objects = recycle
   recycle:repository = .bin
   max disk size = 500000
"""

OFFICE = """
[global]
workgroup = OFFICE
server string = File server
security = user
passdb backend = tdbsam
server min protocol = SMB3
smb encrypt = required
hosts allow = 127. \\
   192.168.10.0/255.255.255.0
load printers = yes
include = {dir}/shares.conf

[printers]
path = /var/spool/samba
printable = yes
"""

OFFICE_SHARES = """
[base]
path = {dir}/base
available = no
read only = no
create mask = 0660
directory mask = 0770
force group = staff

[projects]
copy = base
path = {dir}/projects
available = yes
valid users = @staff, alice
read list = bob
hide unreadable = yes

[archive$]
path = {dir}/archive
comment = Closed projects
vfs objects = shadow_copy2
shadow:snapdir = .snapshots
shadow:format = %Y-%m-%d_%H%M
"""


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="sluice-config-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.environment = {**os.environ, "HOME": str(self.directory), "XDG_RUNTIME_DIR": str(self.directory)}
        self.environment.pop("XDG_CONFIG_HOME", None)

    def write(self, name, text, mode=0o600):
        path = self.directory / name
        path.write_text(text.replace("{dir}", str(self.directory)))
        path.chmod(mode)
        return path

    def sluice(self, *arguments, status=0, input=None):
        done = subprocess.run([PROGRAM, *arguments], cwd=self.directory, env=self.environment, capture_output=True, text=True,
                              timeout=60, input=input)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def add_user(self, name):
        self.sluice("user", "--users-file", "users", "add", name, input=SECRET + "\n")

    @contextlib.contextmanager
    def server(self, *arguments):
        log = open(self.directory / "log", "w+")
        self.addCleanup(log.close)
        process = subprocess.Popen([PROGRAM, "serve", *arguments], cwd=self.directory, env=self.environment,
                                   stdout=subprocess.PIPE, stderr=log, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        banner = ""
        for line in process.stdout:
            banner += line
            if line.startswith("I/O"):
                break
        log.seek(0)
        self.assertIn("I/O", banner, log.read())
        yield process, banner
        process.terminate()
        self.assertEqual(process.wait(timeout=60), 0)

    def log(self):
        return (self.directory / "log").read_text()

    def await_reload(self, process, count):
        process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 60
        while len(re.findall("configuration reloaded|cannot reload", self.log())) < count:
            self.assertLess(time.monotonic(), deadline, self.log())
            time.sleep(0.02)


class Show(Case):
    def settings(self, *arguments):
        document = json.loads(self.sluice("config", "show", "--json", *arguments).stdout)
        by_name = {each["name"]: each for each in document["settings"]}
        return by_name, [{each["name"]: each for each in share["settings"]} for share in document["shares"]]

    def test_each_value_has_its_origin(self):
        self.write("sluice.toml", 'name = "A"\nread-only = true\nread-only-user = ["bob"]\n[[share]]\npath = "{dir}"\n'
                                  'comment = "c"\nread-only-user = ["guest"]\n')
        server, (share,) = self.settings("sluice.toml", "--port", "1446", "--short-names", "on")
        self.assertEqual((server["name"]["value"], server["name"]["origin"], server["name"]["line"]), ("A", "file", 1))
        self.assertEqual((server["port"]["value"], server["port"]["origin"]), (1446, "command line"))
        self.assertEqual((server["loops"]["value"], server["loops"]["default"]), (None, "0"))
        self.assertEqual(server["users-file"]["value"], str(self.directory / ".config/sluice/users"))
        self.assertEqual((server["users-file"]["origin"], server["users-file"]["source"]), ("environment", "HOME"))
        self.assertEqual((share["read-only"]["value"], share["read-only"]["origin"], share["read-only"]["line"]),
                         (True, "server", 2))
        self.assertEqual(share["short-names"]["value"], "on")
        self.assertEqual(share["read-only-user"]["value"], ["guest", "bob"])
        self.assertEqual((share["comment"]["value"], share["comment"]["line"]), ("c", 6))

    def test_guests_and_hosts_of_a_share_are_those_in_effect(self):
        self.write("sluice.toml", 'guest-write = true\nallowed-host = ["192.0.2.1"]\n[groups]\nstaff = ["bob"]\n[[share]]\npath = "{dir}"\n'
                                  'hide = ["*.tmp"]\nhide-dot-files = true\n[[share]]\npath = "{dir}"\nguest = "off"\n')
        server, (first, second) = self.settings("sluice.toml")
        self.assertEqual(server["groups"]["value"].replace("'", '"').replace(" ", ""), '{staff=["bob"]}')
        self.assertEqual((first["guest"]["value"], first["guest"]["origin"], first["guest"]["line"]), ("write", "server", 1))
        self.assertEqual((second["guest"]["value"], second["guest"]["origin"]), ("off", "file"))
        self.assertIsNone(first["allowed-host"]["value"])
        self.assertEqual((first["hide"]["value"], first["hide"]["origin"]), (["*.tmp"], "file"))

    def test_each_option_of_the_server_is_a_setting_that_is_shown(self):
        self.write("sluice.toml", '[[share]]\npath = "{dir}"\n')
        server, _ = self.settings("sluice.toml")
        words = set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", self.sluice("config", "show", "--help").stdout, re.M))
        self.assertEqual(words - set(server) - {"json", "help", "verbose", "version", "no-discovery"}, set())
        self.assertIs(server["discovery"]["value"], True)

    def test_the_text_is_a_valid_configuration_without_passwords(self):
        self.add_user("bob")
        self.write("sluice.toml", f'users-file = "users"\nuser = ["bob", "eve%{SECRET}"]\n[[share]]\npath = "{{dir}}"\n')
        shown = self.sluice("config", "show", "sluice.toml", "--user", f"tim%{SECRET}").stdout
        self.assertNotIn(SECRET, shown)
        self.assertIn('user = ["tim", "bob", "eve"]', shown)
        self.assertIn("; the password is not shown\n", shown)
        users = self.settings("sluice.toml")[0]["user"]
        self.assertEqual((users["value"], users["hides_password"]), (["bob", "eve"], True))
        self.assertNotIn(SECRET, self.sluice("config", "show", "sluice.toml", "--json").stdout)
        self.write("again.toml", shown)
        # A user without a password must be in the users file: no other password is a valid one.
        done = self.sluice("config", "check", "again.toml", status=1)
        self.assertIn("eve", done.stderr)
        self.assertNotIn(SECRET, done.stderr + self.sluice("config", "check", "sluice.toml").stderr)

    def test_groups_are_valid_in_the_shown_text(self):
        self.add_user("bob")
        self.write("sluice.toml", 'users-file = "users"\n[groups]\n"a b" = ["bob"]\n[[share]]\npath = "{dir}"\nuser = ["@a b"]\n')
        self.write("again.toml", self.sluice("config", "show", "sluice.toml").stdout)
        self.sluice("config", "check", "again.toml")

    def test_the_recycle_bin_is_shown_and_read_again(self):
        self.write("sluice.toml", 'guest = true\n[[share]]\npath = "{dir}"\nrecycle = { days = 30, exclude = ["*.tmp"] }\n')
        shown = self.sluice("config", "show", "sluice.toml").stdout
        self.assertRegex(shown, r"recycle = \{ days = 30, exclude = \[ ?'\*\.tmp' ?\] \}|recycle = \{ ?days = 30, ?exclude = .*tmp")
        self.write("again.toml", shown)
        self.sluice("config", "check", "again.toml")


class Check(Case):
    def test_the_default_file_is_in_the_configuration_directory(self):
        (self.directory / ".config/sluice").mkdir(parents=True)
        self.write(".config/sluice/sluice.toml", '[[share]]\npath = "{dir}"\n')
        self.sluice("user", "add", "bob", input=SECRET + "\n")
        self.assertEqual(self.sluice("config", "check").stdout,
                         f"{self.directory}/.config/sluice/sluice.toml: 0 errors, 0 warnings, 1 share\n")

    def test_a_file_that_the_server_refuses_has_errors(self):
        self.add_user("bob")
        for text in ('name = "a b"\n[[share]]\npath = "{dir}"\n', '[[share]]\npath = "{dir}/none"\n', "[[share]]\n",
                     'user = ["eve"]\n[[share]]\npath = "{dir}"\n', '[[share]]\npath = "{dir}"\nuser = ["@no-such-group"]\n',
                     '[[share]]\npath = "{dir}"\nrecycle = { days = 99999 }\n', '[[share]]\npath = "{dir}"\nrecycle = { keep = 1 }\n',
                     'version = 2\n', '[[share]]\npath = "{dir}"\nhide = ["*"]\n',
                     '[[share]]\npath = "{dir}"\njournal = true\n'):
            with self.subTest(text=text):
                self.write("sluice.toml", 'users-file = "users"\n' + text)
                self.sluice("config", "check", "sluice.toml", status=1)
                self.sluice("serve", "--config", "sluice.toml", "--listen", "127.0.0.1:0", status=1)


class Import(Case):
    def setUp(self):
        super().setUp()
        self.add_user("alice")
        self.add_user("bob")
        for name in ("media", "Backup Drive", "projects", "archive/.snapshots", "homes"):
            (self.directory / name).mkdir(parents=True)

    def imported(self, name):
        report = self.sluice("config", "import", name, "--output", "sluice.toml").stderr
        text = (self.directory / "sluice.toml").read_text()
        self.assertEqual(self.sluice("config", "import", name).stdout, text)
        if os.geteuid() != 0:  # only root can use the rights of other accounts
            text = text.replace("impersonate = true\n", "")
        self.write("sluice.toml", 'users-file = "users"\n' + text)
        return text, report

    def assert_is_served(self, *shares):
        self.sluice("config", "check", "sluice.toml")
        with self.server("--config", "sluice.toml", "--listen", "127.0.0.1:0") as (_, banner):
            for share in shares:
                self.assertIn(f"  {share} ", banner)

    def test_the_configuration_of_a_home_server_is_served(self):
        self.write("smb.conf", HOME)
        text, report = self.imported("smb.conf")
        self.assertIn('comment = "Films and \\"music\\""', text)
        self.assertIn('size-limit = "500000M"', text)
        self.assertNotIn("[homes]", report)
        self.assertIn(f'homes = "{self.directory}/homes"', text)
        self.assertIn('recycle = { directory = ".bin", versions = false }', text)
        self.assertIn("[Backup Drive] vfs objects = recycle: the meaning of its setting differs", report)
        self.assertIn("[global] log file: no equivalent", report)
        self.assert_is_served("Media", "Backup Drive")

    def test_the_configuration_of_an_office_is_served(self):
        self.write("smb.conf", OFFICE)
        self.write("shares.conf", OFFICE_SHARES)
        text, report = self.imported("smb.conf")
        self.assertIn("encrypt = true", text)
        self.assertIn('user = ["@staff", "alice"]', text)
        self.assertIn('previous-versions = ".snapshots/%Y-%m-%d_%H%M"', text)
        self.assertIn("[printers]: share skipped", report)
        self.assertNotIn('name = "base"', text)
        self.assert_is_served("projects", "archive$")

    @unittest.skipUnless(DEBIAN.exists(), f"{DEBIAN} is missing")
    def test_the_configuration_that_debian_installs_has_no_other_share_than_homes_and_printers(self):
        done = self.sluice("config", "import", str(DEBIAN), status=1)
        self.assertIn("no share can be imported", done.stderr)
        self.assertIn('users could write to their shares, unlike with Samba; set homes = "/home" if they may', done.stderr)
        self.assertNotIn("unknown", done.stderr)
        self.write("smb.conf", DEBIAN.read_text() + "\n[media]\npath = {dir}/media\n")
        self.imported("smb.conf")
        self.assert_is_served("media")


    def test_a_group_that_the_host_does_not_have_gives_nobody_write_access(self):
        self.write("smb.conf", "[media]\npath = {dir}/media\nread only = no\nread list = @no-such-group\n")
        text, _ = self.imported("smb.conf")
        self.assertIn('read-only-user = ["@no-such-group"]', text)
        self.sluice("config", "check", "sluice.toml", status=1)
        self.assertIn("no-such-group", self.sluice("serve", "--config", "sluice.toml", "--listen", "127.0.0.1:0", status=1).stderr)

    def test_a_remark_of_the_file_hides_no_line(self):
        self.write("smb.conf", "[media]\npath = {dir}/media\n; users of C:\\\nvalid users = alice\n")
        self.assertIn('user = ["alice"]', self.imported("smb.conf")[0])
        self.assert_is_served("media")

    def test_a_result_that_cannot_be_written_completely_leaves_no_file(self):
        self.write("smb.conf", "[media]\npath = {dir}/media\ncomment = " + "x" * 2000 + "\n")
        before = sorted(self.directory.iterdir())
        done = subprocess.run([PROGRAM, "config", "import", "smb.conf", "--output", "new.toml"], cwd=self.directory,
                              env=self.environment, capture_output=True, text=True, timeout=60, restore_signals=False,
                              preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                                                  resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("new.toml: write: File too large", done.stderr)
        self.assertEqual(sorted(self.directory.iterdir()), before)

    def test_the_result_never_replaces_a_file(self):
        self.write("smb.conf", "[media]\npath = {dir}/media\n")
        (self.directory / "new.toml").symlink_to("nowhere")
        self.sluice("config", "import", "smb.conf", "--output", "new.toml", status=1)
        self.assertFalse((self.directory / "nowhere").exists())
        (self.directory / "new.toml").unlink()
        previous = os.umask(0o027)
        self.addCleanup(os.umask, previous)
        self.sluice("config", "import", "smb.conf", "--output", "new.toml")
        self.assertEqual((self.directory / "new.toml").stat().st_mode & 0o777, 0o640)
        self.assertEqual(sorted(each.name for each in self.directory.glob("new*")), ["new.toml"])


class UserImport(Case):
    LINES = (f"alice:1000:{'X' * 32}:{HASH}:[U          ]:LCT-60000000:\n"
             f"pc$:1001:{'X' * 32}:{HASH}:[W          ]:LCT-60000000:\n"
             f"eve:1002:{'X' * 32}:{HASH}:[DU         ]:LCT-60000000:\n")

    def import_lines(self, *arguments):
        done = self.sluice("user", "--users-file", "users", "import", *arguments, "-", input=self.LINES)
        self.assertNotIn(HASH.lower(), (done.stdout + done.stderr).lower())
        return done.stdout

    def test_users_are_added_and_accounts_that_cannot_log_on_are_skipped(self):
        shown = self.import_lines()
        self.assertIn("added alice\n", shown)
        self.assertIn("skipped pc$: the account is of a computer or a domain\n", shown)
        self.assertIn("skipped eve: the account is disabled\n", shown)
        users = self.directory / "users"
        self.assertEqual(users.read_text().splitlines()[1:], [f"alice:{HASH.lower()}"])
        self.assertEqual(users.stat().st_mode & 0o777, 0o600)

    def test_a_user_that_exists_is_kept_unless_it_is_to_be_replaced(self):
        self.add_user("Alice")
        before = (self.directory / "users").read_text()
        self.assertIn("kept alice: ", self.import_lines())
        self.assertEqual((self.directory / "users").read_text(), before)
        self.assertIn("replaced alice\n", self.import_lines("--replace"))
        self.assertIn(HASH.lower(), (self.directory / "users").read_text())

    def test_standard_input_may_be_a_socket_and_begins_where_it_is(self):
        ours, theirs = socket.socketpair()
        ours.sendall(self.LINES.encode())
        ours.close()
        with theirs:
            done = subprocess.run([PROGRAM, "user", "--users-file", "users", "import", "-"], cwd=self.directory,
                                  env=self.environment, stdin=theirs, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("added alice\n", done.stdout)
        path = self.write("smbpasswd", self.LINES)
        with path.open("rb") as file:
            os.lseek(file.fileno(), len(self.LINES), os.SEEK_SET)
            done = subprocess.run([PROGRAM, "user", "--users-file", "users", "import", "-"], cwd=self.directory,
                                  env=self.environment, stdin=file, capture_output=True, text=True, timeout=60)
        self.assertIn("no users in the form of smbpasswd", done.stderr)

    def test_a_dry_run_changes_nothing(self):
        self.assertIn("nothing changed; 1 added", self.import_lines("--dry-run"))
        self.assertFalse((self.directory / "users").exists())


class Reload(Case):
    def test_the_log_has_the_changes_and_the_settings_that_need_a_restart(self):
        self.add_user("bob")
        general = f'users-file = "users"\nlisten = ["127.0.0.1:0"]\nuser = ["bob", "eve%{SECRET}"]\n'
        share = '[[share]]\nname = "{0}"\npath = "{{dir}}"\n'.format
        self.write("sluice.toml", general + share("a") + share("b"))
        with self.server("--config", "sluice.toml") as (process, _):
            self.await_reload(process, 1)
            self.assertIn('msg="configuration reloaded" changes="none"', self.log())
            self.write("sluice.toml", 'name = "OTHER"\nread-only-user = ["bob"]\n' + general.replace(SECRET, SECRET + "2") +
                       share("a") + "read-only = true\n" + share("c"))
            self.await_reload(process, 2)
            log = self.log()
            for line in ('msg="share added" share="c"', 'msg="share removed" share="b"',
                         'msg="share changed" share="a" settings="read-only: not set -> true"',
                         'msg="setting changed" setting="read-only-user" before="not set" after="[',
                         'msg="a changed setting has no effect before a restart" setting="name" before="not set"',
                         "1 share added, 1 share removed, 1 share changed, 2 settings changed; restart needed for name"):
                self.assertIn(line, log)
            self.assertNotIn(SECRET, log)
            self.await_reload(process, 3)
            self.assertIn('changes="restart needed for name"', self.log())

    def test_another_password_is_a_change_that_does_not_show_it(self):
        self.add_user("bob")
        text = 'users-file = "users"\nlisten = ["127.0.0.1:0"]\nuser = ["bob", "eve%{0}"]\n[[share]]\npath = "{{dir}}"\n'
        self.write("sluice.toml", text.format(SECRET))
        with self.server("--config", "sluice.toml") as (process, _):
            self.await_reload(process, 1)
            self.assertIn('changes="none"', self.log())
            self.write("sluice.toml", text.format(SECRET + "2"))
            self.await_reload(process, 2)
            self.assertIn('msg="setting changed" setting="user"', self.log())
            self.assertIn('with another password"', self.log())
            self.assertIn('changes="1 setting changed"', self.log())
            self.assertNotIn(SECRET, self.log())

    def test_groups_hosts_and_the_rules_for_files_are_reloaded(self):
        self.add_user("bob")
        general = 'users-file = "users"\nlisten = ["127.0.0.1:0"]\n'
        share = '[[share]]\nname = "a"\npath = "{dir}"\n'
        self.write("sluice.toml", general + share)
        with self.server("--config", "sluice.toml") as (process, _):
            members = ", ".join(f'"user{n}"' for n in range(200))
            self.write("sluice.toml", f'version = 1\n{general}guest-write = true\ndenied-host = ["192.0.2.0/24"]\n'
                                      f'[groups]\nstaff = ["bob"]\nmany = [{members}]\n' + share +
                       'recycle = { days = 30 }\nfile-mode = "0600"\nhide = ["*.tmp"]\nwrite-user = ["@staff"]\nguest = "off"\nallowed-host = ["127.0.0.1"]\n')
            self.await_reload(process, 1)
            log = self.log()
            for setting in ("version", "guest-write", "denied-host", "groups"):
                self.assertIn(f'msg="setting changed" setting="{setting}" before="not set"', log)
            for setting in ("file-mode", "hide", "recycle", "write-user", "guest", "allowed-host"):
                self.assertRegex(log, f'msg="share changed" share="a" settings=.*{setting}: not set -> ')
            self.assertIn('changes="1 share changed, 4 settings changed"', log)
            self.assertLess(max(len(line) for line in log.splitlines() if '"groups"' in line), 1000)


if __name__ == "__main__":
    unittest.main()
