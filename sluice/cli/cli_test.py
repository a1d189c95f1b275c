"""The program as a shell sees it: exit codes and streams. Run by ctest with the program as the last argument."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

from server_testing import running_server

PROGRAM = sys.argv.pop() if __name__ == "__main__" else None


def sluice(*arguments, stdout=subprocess.PIPE):
    return subprocess.run([PROGRAM, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60)


class CommandLine(unittest.TestCase):
    def test_version_is_one_line_on_standard_output(self):
        done = sluice("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"\Asluice \d+\.\d+\.\d+\n\Z")

    def test_operands_are_called_as_the_manual_calls_them(self):
        for command, operands in ((["put"], "SOURCE... URL"), (["fat", "put"], "SOURCE... IMAGE:/PATH"),
                                  (["fat", "mv"], "IMAGE:/PATH TARGET")):
            with self.subTest(command=command):
                self.assertIn(f"[OPTIONS] {operands}", sluice(*command, "--help").stdout)
                self.assertEqual(sluice(*command).stderr, f"sluice {' '.join(command)}: missing argument {operands}\n"
                                                          f"Usage: sluice {' '.join(command)} [OPTIONS] {operands}\n")

    def test_help_documents_the_exit_codes(self):
        done = sluice("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("Exit status: 0 success, 1 failure", done.stdout)

    def test_help_of_check_and_repair_documents_the_status_of_a_damaged_volume(self):
        for command in (["fat"], ["fat", "check"], ["fat", "repair"]):
            self.assertTrue(sluice(*command, "--help").stdout.endswith(", 2 invalid usage, 4 volume damaged.\n"))
        self.assertTrue(sluice("fat", "mkfs", "--help").stdout.endswith(", 2 invalid usage.\n"))

    def test_help_states_where_the_serial_number_comes_from_and_what_becomes_of_an_overlay(self):
        for command, text in (("mkfs", "[default: $SOURCE_DATE_EPOCH, or random]"),
                              ("build", "[default: $SOURCE_DATE_EPOCH, or time of newest file]"),
                              ("check", "check IMAGE with the changes in FILE"), ("commit", "overlay to apply"),
                              ("discard", "overlay to remove"), ("rebind", "overlay to update")):
            with self.subTest(command=command):
                self.assertIn(text, " ".join(sluice("fat", command, "--help").stdout.split()))

    def test_without_arguments_it_prints_its_help(self):
        done = sluice()
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout, sluice("--help").stdout)
        self.assertTrue(done.stdout.startswith("Usage: sluice COMMAND [OPTIONS]\n"), done.stdout)

    def test_no_line_of_a_help_text_is_wider_than_84_columns(self):
        commands = [[], *([name] for name in "serve config status user streams snapshot get put ls cat mkdir rm fat lock probe bench completion".split()),
                    *(["fat", name] for name in "mkfs build label ls stat get put mkfile check repair commit".split()),
                    ["bench", "smb"], ["bench", "fsmutex"], ["probe", "atomicity"], ["user", "add"], ["user", "import"], ["streams", "import"], ["config", "check"], ["config", "show"], ["config", "import"],
                    ["streams", "check"], ["snapshot", "create"], ["snapshot", "list"], ["snapshot", "delete"]]
        for command in commands:
            with self.subTest(command=command):
                self.assertEqual([line for line in sluice(*command, "--help").stdout.splitlines()
                                  if len(line) > 84 and "Exit status" not in line], [])

    def test_help_of_a_command_is_what_its_help_option_prints(self):
        for command in [[], ["serve"], ["fat"], ["fat", "mkfs"], ["lock"], ["user", "add"]]:
            with self.subTest(command=command):
                shown = sluice("help", *command)
                self.assertEqual((shown.returncode, shown.stderr), (0, ""))
                self.assertEqual(shown.stdout, sluice(*command, "--help").stdout)
        self.assertIn("show the help of a command", sluice("help").stdout)

    def test_an_unknown_command_is_a_usage_error_on_standard_error(self):
        done = sluice("no-such-command")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr, "sluice: unknown command 'no-such-command'\n"
                                      "Run 'sluice --help' for a list of commands.\n")

    def test_usage_errors_name_the_command_the_value_and_the_usage(self):
        usage = "Usage: sluice get [OPTIONS] URL [TARGET]\n"
        self.assertEqual(sluice("get", "--bogus", "smb://h/s").stderr, "sluice get: unknown option '--bogus'\n" + usage)
        self.assertEqual(sluice("get").stderr, "sluice get: missing argument URL\n" + usage)
        self.assertEqual(sluice("fat", "bogus", "x").stderr.splitlines()[0], "sluice fat: unknown command 'bogus'")
        self.assertEqual(sluice("fat", "--bogus").stderr.splitlines()[0], "sluice fat: unknown option '--bogus'")
        wrong = sluice("get", "--channels", "99", "smb://h/s").stderr
        self.assertTrue(wrong.startswith("sluice get: invalid value '99' for --channels: use 1 to 32\n"), wrong)
        self.assertEqual(sluice("fat").stderr, "sluice fat: missing command\nRun 'sluice fat --help' for a list of commands.\n")

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w") as full:
            done = sluice("--version", stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)


class Listening(unittest.TestCase):
    def test_a_port_that_is_in_use_is_refused_with_its_number_and_exit_status_1(self):
        with tempfile.TemporaryDirectory() as directory, socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            done = sluice("serve", directory, "--listen", address, "--user", "u%a-password-of-a-test")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(address, done.stderr)
            self.assertNotIn("invariant", done.stderr)


class Users(unittest.TestCase):
    @unittest.skipIf(os.geteuid() != 0, "only root can give files away")
    def test_root_keeps_the_owner_of_a_users_file(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "users")
            for name in ("alice", "bob"):
                done = subprocess.run([PROGRAM, "user", "--users-file", path, "add", name], input="a-password-of-a-test\n",
                                      text=True, stderr=subprocess.PIPE, timeout=60)
                self.assertEqual(done.returncode, 0, done.stderr)
                os.chown(path, 1234, 5678) if name == "alice" else None
            self.assertEqual((os.stat(path).st_uid, os.stat(path).st_gid), (1234, 5678))


class Configuration(unittest.TestCase):
    def test_a_setting_of_the_file_that_would_be_without_effect_is_refused_with_its_line(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "sluice.toml")
            with open(path, "w") as file:
                file.write('port = 1445\nmultiplexer = "epoll"\n')
            done = sluice("serve", directory, "--config", path)
            self.assertEqual(done.returncode, 1)
            self.assertIn("line 2: unknown setting 'multiplexer'", done.stderr)

    def test_a_share_that_names_an_unknown_user_is_reported(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "sluice.toml")
            with open(path, "w") as file:
                file.write(f'users-file = "{directory}/users"\n[[share]]\nname = "team"\npath = "{directory}"\nuser = ["staff", "@all"]\n'
                           'read-only-user = ["guest", "visitors"]\n[groups]\nall = ["member"]\n')
            server = subprocess.Popen([PROGRAM, "serve", "--config", path, "--listen", "127.0.0.1:0", "--no-confinement",
                                       "--user", "u%a-password-of-a-test"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(server.kill)
            for line in server.stdout:
                if line.startswith("I/O"):
                    break
            server.terminate()
            said = server.communicate(timeout=60)[1]
            self.assertEqual(server.returncode, 0, said)
            self.assertIn("a share names an unknown user", said)
            self.assertIn('user="staff"', said)
            self.assertIn('user="visitors"', said)
            self.assertIn('msg="a group names an unknown user" group="all" user="member"', said)
            self.assertNotRegex(said, 'user="?guest')

    def test_more_loops_than_there_can_be_are_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual(sluice("serve", directory, "--loops", "65").returncode, 2)
            path = os.path.join(directory, "sluice.toml")
            with open(path, "w") as file:
                file.write("loops = 65\n")
            done = sluice("serve", directory, "--config", path)
            self.assertEqual(done.returncode, 1)
            self.assertIn("line 1: invalid value '65' for loops: use 0 to 64", done.stderr)


    def refused_with(self, *arguments, file=""):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "sluice.toml")
            with open(path, "w") as text:
                text.write(file)
            done = sluice("serve", directory, "--config", path, *arguments)
            self.assertEqual(done.returncode, 2 if arguments else 1)
            return done.stderr

    def test_an_unknown_signing_algorithm_is_refused_with_its_name_and_the_known_ones(self):
        refusal = "unknown algorithm '{}'; use a list of aes-gmac, aes-cmac, and hmac-sha256, as in aes-gmac,aes-cmac\n"
        for given, unknown in ("aes-cbc", "aes-cbc"), ("aes-cmac,x,aes-gmac", "x"), ("aes-cmac,", ""):
            self.assertIn(f"sluice serve: invalid value '{given}' for --signing-algorithms: " + refusal.format(unknown),
                          self.refused_with("--signing-algorithms", given))
        self.assertIn("line 2: invalid value 'gmac' for signing-algorithms: " + refusal.format("gmac"),
                      self.refused_with(file='port = 0\nsigning-algorithms = ["aes-cmac", "gmac"]\n'))
        self.assertIn("line 1: invalid value for signing-algorithms: use a list",
                      self.refused_with(file='signing-algorithms = "aes-cmac"\n'))

    def test_an_empty_list_of_signing_algorithms_is_refused_with_the_known_ones(self):
        refusal = "the list is empty; use a list of aes-gmac, aes-cmac, and hmac-sha256, as in aes-gmac,aes-cmac\n"
        self.assertIn("for --signing-algorithms: " + refusal, self.refused_with("--signing-algorithms", ""))
        self.assertIn("line 1: invalid value for signing-algorithms: " + refusal,
                      self.refused_with(file="signing-algorithms = []\n"))


class Probe(unittest.TestCase):
    def test_atomicity_reports_every_size_and_leaves_nothing_behind(self):
        with tempfile.TemporaryDirectory() as directory:
            done = sluice("probe", "atomicity", directory, "--json", "--time", "2", "--max", "4096")
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(done.stdout)
            self.assertEqual([series["io"] for series in report["series"]], ["buffered", "direct"])
            sizes = [row["write_bytes"] for row in report["series"][0]["rows"]]
            self.assertEqual(sizes, [2**i for i in range(13)])
            self.assertEqual(os.listdir(directory), [])

    def test_atomicity_tries_the_sizes_the_offset_and_the_io_it_is_asked_for(self):
        with tempfile.TemporaryDirectory() as directory:
            done = sluice("probe", "atomicity", directory, "--json", "--time", "2", "--min", "64", "--max", "512", "--offset", "1",
                          "--io", "buffered")
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(done.stdout)
            self.assertEqual([series["io"] for series in report["series"]], ["buffered"])
            self.assertEqual([row["write_bytes"] for row in report["series"][0]["rows"]], [64, 128, 256, 512])
            self.assertEqual(report["offset_bytes"], 1)
            self.assertGreaterEqual(report["processors"], 1)
            self.assertIn("Linux", report["kernel"])
            for row in report["series"][0]["rows"]:
                self.assertEqual((row["short_reads"], row["short_writes"]), (0, 0))

    def test_atomicity_refuses_a_smallest_write_larger_than_the_largest(self):
        done = sluice("probe", "atomicity", "/tmp", "--min", "8", "--max", "4")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--min 8 is larger than --max 4", done.stderr)

    def test_json_is_valid_whatever_bytes_a_directory_is_named_with(self):
        with tempfile.TemporaryDirectory() as directory:
            odd = os.path.join(os.fsencode(directory), b"\xff\"\n")
            os.mkdir(odd)
            done = subprocess.run([PROGRAM, "probe", "atomicity", odd, "--json", "--time", "1", "--max", "1"],
                                  stdout=subprocess.PIPE, timeout=60, check=True)
            self.assertEqual(json.loads(done.stdout.decode())["path"], directory + "/\ufffd\"\n")

    def test_atomicity_states_what_it_proves_and_does_not_prove(self):
        with tempfile.TemporaryDirectory() as directory:
            done = sluice("probe", "atomicity", directory, "--time", "1", "--max", "2")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("What it does not:", done.stdout)

    def test_atomicity_does_not_overwrite_a_file(self):
        with tempfile.NamedTemporaryFile() as file:
            done = sluice("probe", "atomicity", file.name)
            self.assertEqual(done.returncode, 1)
            self.assertIn("name a directory", done.stderr)

    def test_atomicity_in_a_directory_that_takes_no_files_reports_why(self):
        done = sluice("probe", "atomicity", "/proc")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "")
        self.assertIn("/proc: open", done.stderr)


class Bench(unittest.TestCase):
    def bench(self, directory, *arguments):
        return sluice("bench", "fsmutex", directory, "--time", "2", "--repeats", "2", "--entities", "1,3", *arguments)

    def test_fsmutex_measures_every_subject_in_every_workload_and_leaves_nothing_behind(self):
        with tempfile.TemporaryDirectory() as directory:
            done = self.bench(directory, "--json", "--waiters", "1,2")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(os.listdir(directory), [])
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        everybody = {row["subject"] for row in rows}
        self.assertLessEqual({"sluice.memory_map", "sluice.atomic_append", "sluice.byte_ranges", "sluice.lock_files",
                              "flock", "fcntl.ofd", "pthread.robust", "limit.hand_off"}, everybody)
        workloads = {(row["workload"], row["subject"]) for row in rows}
        self.assertEqual(len(workloads), len(rows))
        for subject in everybody - {"limit.hand_off", "limit.atomic_append"}:
            for workload in "same_1x1", "same_1x3", "same_2x1", "same_2x3", "disjoint_2x1", "disjoint_2x3":
                self.assertIn((workload, subject), workloads)
        for row in rows:
            self.assertEqual(row["n"], 2)
            self.assertTrue(0 < row["min"] <= row["median"] <= row["max"])

    def test_fsmutex_prints_a_table_of_the_selected_subjects(self):
        with tempfile.TemporaryDirectory() as directory:
            done = self.bench(directory, "--waiters", "2", "--which", "same", "--only", "memory_map", "--only", "flock")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^waiters x entities +2x1 +2x3$")
        self.assertRegex(done.stdout, r"(?m)^sluice\.memory_map +[\d.]+ +[\d.]+$")
        self.assertRegex(done.stdout, r"(?m)^flock +[\d.]+ +[\d.]+$")
        self.assertNotIn("lock_files", done.stdout)
        self.assertNotIn("separate entities", done.stdout)

    def test_fsmutex_reports_why_it_failed(self):
        self.assertEqual(self.bench("/no/such/directory").returncode, 1)
        self.assertEqual(self.bench("/tmp", "--only", "hope").returncode, 2)
        self.assertEqual(self.bench("/tmp", "--waiters", "0").returncode, 2)
        self.assertEqual(sluice("bench").returncode, 2)


class Serve(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.directory = scratch.name
        self.users = os.path.join(self.directory, "users")

    def server(self, *arguments):
        return running_server(self, PROGRAM, self.directory, self.users, *arguments)

    def banner(self, *arguments):
        with self.server(*arguments) as (_, text):
            return text

    @unittest.skipUnless(shutil.which("smbclient"), "smbclient is not installed")
    def test_only_the_named_users_may_log_on(self):
        subprocess.run([PROGRAM, "user", "--users-file", self.users, "add", "bob"], input="b\nb\n", text=True, check=True,
                       stdout=subprocess.DEVNULL)
        def logs_on(port, user):
            return subprocess.run(["smbclient", "-p", str(port), "//127.0.0.1/files", "-U", user, "-c", "ls"],
                                  capture_output=True, text=True, timeout=60).returncode == 0
        with self.server("--user", "alice%a") as (port, _):
            self.assertTrue(logs_on(port, "alice%a"))
            self.assertFalse(logs_on(port, "bob%b"))
        with self.server() as (port, _):
            self.assertTrue(logs_on(port, "bob%b"))

    def test_a_first_start_creates_a_user_and_shows_the_password_once(self):
        self.assertRegex(self.banner(), r"(?m)^Password    [a-z2-9]{5}(-[a-z2-9]{5}){3}$")
        self.assertNotIn("Password  ", self.banner())
        self.assertEqual(os.stat(self.users).st_mode & 0o777, 0o600)

    def test_the_banner_shows_which_protection_is_active(self):
        self.assertRegex(self.banner(), r"(?m)^Protection  SMB 2\.0\.2 to 3\.1\.1, signed; encrypted on request")
        self.assertRegex(self.banner("--no-signing"), r"(?m)^Protection .*, signed on request;")
        self.assertIn("anonymous logons are accepted", self.banner("--guest"))

    def test_a_name_that_netbios_cannot_take_is_refused_with_the_rule_and_a_remedy(self):
        for name in "a-name-of-sixteen", "two words":
            done = sluice("serve", self.directory, "--users-file", self.users, "--name", name)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"invalid value '{name}' for --name: use 1 to 15 letters", done.stderr)

    def test_the_command_line_comes_before_the_file(self):
        file = os.path.join(self.directory, "serve.toml")
        with open(file, "w") as text:
            text.write('name = "FROMFILE"\nread-only = true\n')
        self.assertIn("FROMLINE serves", self.banner("--name", "FROMLINE", "--config", file))
        self.assertIn("FROMFILE serves", self.banner("--config", file))
        self.assertIn("(read-only)", self.banner("--config", file))

    @unittest.skipUnless(shutil.which("smbclient"), "smbclient is not installed")
    def test_the_signing_algorithms_of_the_command_line_replace_those_of_the_file(self):
        file = os.path.join(self.directory, "serve.toml")
        with open(file, "w") as text:
            text.write('signing-algorithms = ["aes-cmac", "aes-gmac"]\n')
        def algorithm(*arguments):
            socket_path = os.path.join(self.directory, "status")
            with self.server("--user", "alice%a", "--status-socket", socket_path, *arguments) as (port, _):
                shown = subprocess.run(["smbclient", "-p", str(port), "//127.0.0.1/files", "-U", "alice%a"],
                                       input=f"!'{PROGRAM}' status --json --socket '{socket_path}'\n",
                                       capture_output=True, text=True, timeout=60)
                return re.search('"signing": ?"([^"]+)"', shown.stdout)[1]
        self.assertEqual(algorithm(), "AES-GMAC")
        self.assertEqual(algorithm("--config", file), "AES-CMAC")
        self.assertEqual(algorithm("--config", file, "--signing-algorithms", "hmac-sha256,aes-gmac"), "HMAC-SHA256")

    def test_an_unknown_user_is_refused_with_the_command_that_creates_it(self):
        done = sluice("serve", self.directory, "--users-file", self.users, "--user", "bob")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"'sluice user --users-file {self.users} add bob'", done.stderr)


if __name__ == "__main__":
    unittest.main()
