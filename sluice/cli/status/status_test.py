"""`sluice status` and `sluice serve --metrics`, as a client sees them. Run by ctest with the program as the last argument."""

import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from server_testing import running_server  # noqa: E402  (found through the line above)

PROGRAM = sys.argv.pop() if __name__ == "__main__" else None
LIMITS = pathlib.Path(__file__).resolve().parents[2] / "smb" / "server" / "core" / "limits.hpp"
DASHBOARD = pathlib.Path(__file__).resolve().parents[3] / "packaging" / "grafana" / "sluice.json"
GUIDE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "guide" / "serve.md"
NOBODY = 65534
TCP_ESTABLISHED, KEEPALIVE_TIMER = "01", "02"
HAS_SMBCLIENT = unittest.skipUnless(shutil.which("smbclient"), "smbclient is not installed (Debian package smbclient)")


class Observed(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.directory = self.scratch / "served"
        self.directory.mkdir()
        self.environment = os.environ | {"XDG_RUNTIME_DIR": str(self.scratch)}

    def server(self, *arguments, **how):
        return running_server(self, PROGRAM, self.directory, self.scratch / "users", "--user", "u%p", *arguments,
                              environment=self.environment, **how)

    def status(self, *arguments):
        return subprocess.run([PROGRAM, "status", *arguments], capture_output=True, text=True, timeout=60,
                              env=self.environment)

    def document(self, *arguments):
        done = self.status("--json", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def sockets(self):
        return sorted((self.scratch / "sluice").glob("*"))

    @contextlib.contextmanager
    def client(self, port):
        """Starts a session that stays connected, after it has put a file of 5,000 bytes and fetched it."""
        (self.scratch / "file").write_bytes(b"x" * 5000)
        process = subprocess.Popen(["smbclient", "-p", str(port), "//127.0.0.1/files", "-U", "u%p"], cwd=self.scratch,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        for command, sign in (("put file", "putting"), ("get file back", "getting")):  # it takes them one by one
            process.stdin.write(command + "\n")
            process.stdin.flush()
            while sign not in (line := process.stdout.readline()):
                self.assertNotEqual(line, "", "smbclient has ended")
        yield process
        process.stdin.close()
        process.wait(60)


class Status(Observed):
    def test_the_last_refused_clients_are_listed_without_names_that_may_be_passwords(self):
        with self.server() as (port, _):
            for user in "u", "typed-password":
                subprocess.run([PROGRAM, "ls", f"smb://{user}@127.0.0.1:{port}/files"], capture_output=True, timeout=60,
                               env=self.environment | {"SLUICE_PASSWORD": "wrong"}, check=False)
            refused = self.document()["refusals"]
            text = self.status().stdout
        self.assertEqual([(each["event"], each["why"]) for each in refused],
                         [("logon failed", "wrong password"), ("logon failed", "no such user")])
        for each in refused:
            self.assertRegex(each["peer"], r"^127\.0\.0\.1:\d+$")
        self.assertIn("REFUSED AT", text)
        self.assertIn("logon failed: wrong password", text)
        self.assertNotIn("typed-password", text + json.dumps(refused))

    @HAS_SMBCLIENT
    def test_it_shows_clients_and_their_traffic(self):
        with self.server() as (port, _), self.client(port):
            said = self.document()
            self.assertEqual((said["format"], said["version"]), ("sluice-status", 1))
            self.assertEqual(said["server"]["addresses"], [f"127.0.0.1:{port}"])
            self.assertEqual(said["traffic"]["read_bytes"], 5000)
            self.assertEqual(said["traffic"]["written_bytes"], 5000)
            (session,) = said["sessions"]
            self.assertEqual((session["user"], session["state"], session["shares"]), ("u", "valid", ["files"]))
            (channel,) = session["channels"]
            self.assertEqual(channel["dialect"], "3.1.1")
            self.assertEqual(channel["traffic"]["requests"]["negotiate"], 1)
            self.assertEqual(said["counts"]["sessions"], 1)
            self.assertEqual([share["sessions"] for share in said["shares"] if share["name"] == "files"], [1])
            text = self.status().stdout
            self.assertRegex(text, rf"(?m)^u +127\.0\.0\.1:\d+ +3\.1\.1 +valid +files +0 +5\.0 kB +5\.0 kB$")
            self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_exactly_the_limits_of_the_server_are_reported(self):
        declared = re.findall(r"^inline constexpr [\w:]+ (\w+)[\s={]", LIMITS.read_text(), re.MULTILINE)
        self.assertGreater(len(declared), 20)
        with self.server():
            self.assertEqual(sorted(row["name"] for row in self.document()["limits"]), sorted(declared))

    def test_the_guide_has_every_limit_at_which_something_is_rejected(self):
        guide = GUIDE.read_text(encoding="utf-8")
        with self.server():
            for row in self.document()["limits"]:
                if row["rejected"] is not None:
                    self.assertIn(f"`{row['name']}`", guide)
                    self.assertNotEqual(row["when_reached"], "")

    def test_rejections_at_a_limit_are_counted_and_logged_once(self):
        with contextlib.ExitStack() as silent, self.server() as (port, _):
            limits = {row["name"]: row for row in self.document()["limits"]}
            bound = limits["connections_without_session_max"]["limit"]
            self.assertEqual(limits["connections_without_session_max"]["rejected"], 0)
            for _ in range(bound + 5):
                silent.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            deadline = time.monotonic() + 20
            while True:
                limits = {row["name"]: row for row in self.document()["limits"]}
                if limits["connections_without_session_max"]["rejected"] >= 5:
                    break
                self.assertLess(time.monotonic(), deadline, "the oldest connections are dropped")
                time.sleep(0.05)
            self.assertLessEqual(limits["connections_without_session_max"]["in_use"], bound)
            self.assertRegex(self.status().stdout, r"(?m)^connections without a session +\d+$")

    def test_the_server_raises_its_descriptor_limit(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 512), hard))
        with self.server():
            process = self.document()["program"]["pid"]
            self.assertEqual(resource.prlimit(process, resource.RLIMIT_NOFILE), (hard, hard))

    def test_an_idle_connection_has_a_keepalive_timer(self):
        with self.server() as (port, _), socket.create_connection(("127.0.0.1", port)) as client:
            ports = port, client.getsockname()[1]
            deadline = time.monotonic() + 20
            while self.tcp_timer(*ports) != KEEPALIVE_TIMER:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)

    @staticmethod
    def tcp_timer(local_port, remote_port):
        for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, local, remote, state, _, timer, *_ = line.split()
            ports = int(local.split(":")[1], 16), int(remote.split(":")[1], 16)
            if ports == (local_port, remote_port) and state == TCP_ESTABLISHED:
                return timer.split(":")[0]
        return None

    def test_only_the_account_of_the_server_reaches_the_socket(self):
        with self.server() as (port, _):
            (path,) = self.sockets()
            self.assertEqual(path.name, f"{port}.sock")
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
            self.assertEqual(stat.S_IMODE(path.parent.stat().st_mode), 0o700)
        self.assertEqual(self.sockets(), [])

    def test_a_status_socket_in_use_delays_its_answers_but_not_the_server(self):
        path = self.scratch / "status"
        log = []
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
            other.listen()
            with self.server("--status-socket", str(path), log=log) as (port, _):
                socket.create_connection(("127.0.0.1", port), timeout=30).close()
                other.close()
                deadline = time.monotonic() + 60
                while (done := self.status("--socket", str(path))).returncode != 0:
                    self.assertLess(time.monotonic(), deadline, "the server tries again")
                    time.sleep(0.05)
                self.assertIn(f":{port}", done.stdout)
        self.assertIn('msg="listening for observers"', log[0])

    def test_a_socket_whose_server_sends_nothing_is_ignored(self):
        with self.server() as (port, _):
            path = self.scratch / "sluice" / "1.sock"
            with socket.socket(socket.AF_UNIX) as silent:
                silent.bind(str(path))
                silent.listen()
                asking = subprocess.Popen([PROGRAM, "status"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                          env=self.environment)
                silent.accept()[0].close()
                shown, problems = asking.communicate(timeout=60)
                self.assertEqual((asking.returncode, problems), (0, ""))
                self.assertIn(f":{port}", shown)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to connect as another user")
    def test_another_account_is_refused_even_if_it_can_access_the_socket(self):
        path = self.scratch / "status"
        with self.server("--status-socket", str(path)):
            for place in (self.scratch, path):
                place.chmod(0o777)
            child = os.fork()  # that account might not be allowed to execute a separate program
            if child == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                with socket.socket(socket.AF_UNIX) as asking:
                    asking.connect(str(path))
                    os._exit(0 if asking.recv(100) == b"" else 1)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_a_directory_that_others_can_write_to_is_not_trusted(self):
        (self.scratch / "sluice").mkdir()
        (self.scratch / "sluice").chmod(0o777)
        with self.server():
            self.assertEqual(self.sockets(), [])
            self.assertEqual(self.status().returncode, 1)

    def test_servers_are_distinguished_by_their_ports_and_dead_ones_are_skipped(self):
        with self.server(end="kill"):
            pass
        left, = self.sockets()
        self.wait_until_no_server_answers(str(left))
        done = self.status()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no running servers found", done.stderr)
        with self.server() as (first, _), self.server() as (second, _):
            done = self.status("--json")
            seen = [json.loads(line)["server"]["addresses"] for line in done.stdout.splitlines()]
            self.assertEqual(sorted(seen), sorted([[f"127.0.0.1:{first}"], [f"127.0.0.1:{second}"]]))
            self.assertEqual(self.document("--port", str(second))["server"]["addresses"], [f"127.0.0.1:{second}"])
        done = self.status("--port", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("1.sock: connect: No such file or directory", done.stderr)

    def wait_until_no_server_answers(self, path):
        """After the end of a process, the kernel may take a moment to close descriptors that io_uring was using."""
        for _ in range(1000):
            with socket.socket(socket.AF_UNIX) as asking:
                try:
                    asking.connect(path)
                except ConnectionRefusedError:
                    return
            time.sleep(0.01)
        self.fail(f"{path} answers though its server was killed")

    def test_a_socket_left_by_a_server_that_died_is_taken_over(self):
        path = str(self.scratch / "status")
        with self.server("--status-socket", path, end="kill"):
            pass
        self.wait_until_no_server_answers(path)
        with self.server("--status-socket", path):
            self.assertEqual(self.document("--socket", path)["version"], 1)

    def test_a_requested_socket_that_cannot_be_opened_is_an_error(self):
        done = subprocess.run([PROGRAM, "serve", str(self.directory), "--port", "0", "--listen", "127.0.0.1:0", "--users-file",
                               str(self.scratch / "users"), "--status-socket", "/no/such/directory/x"],
                              capture_output=True, text=True, timeout=60, env=self.environment)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("--status-socket", done.stderr)

    def test_an_unknown_request_is_refused_and_an_endless_one_is_not_awaited(self):
        with self.server() as (port, _):
            for question in (b"status everything\n", b"x" * 10_000):
                with socket.socket(socket.AF_UNIX) as asking:
                    asking.connect(str(self.sockets()[0]))
                    with contextlib.suppress(BrokenPipeError):
                        asking.sendall(question)
                    answer = b""
                    with contextlib.suppress(ConnectionResetError):
                        while piece := asking.recv(65536):
                            answer += piece
                    self.assertIn("unknown request", json.loads(answer)["error"])
            with socket.socket(socket.AF_UNIX) as silent:  # blocks neither other clients nor the end of the server
                silent.connect(str(self.sockets()[0]))
                self.assertEqual(self.document()["version"], 1)


class Load(Observed):
    def test_the_load_generator_and_the_server_count_the_same_operations(self):
        with self.server() as (port, _):
            def bench(workload, *arguments):
                done = subprocess.run([PROGRAM, "bench", "smb", f"smb://u@127.0.0.1:{port}/files", "--json", "--workload",
                                       workload, "--seconds", "0.1", *arguments], capture_output=True, text=True,
                                      timeout=60, env=self.environment | {"SLUICE_PASSWORD": "p"})
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                return json.loads(done.stdout)
            echoed = bench("echo", "--connections", "2")
            self.assertEqual(self.document()["traffic"]["requests"]["echo"], echoed["operations"])
            put = bench("put", "--files", "20", "--size", "500")
            self.assertEqual((put["operations"], put["bytes"]), (20, 10_000))
            self.assertEqual(self.document()["traffic"]["written_bytes"], 10_000)
            read = bench("read", "--file-size", "1000000", "--size", "100000", "--encrypt")
            self.assertEqual(self.document()["traffic"]["read_bytes"], read["bytes"])
            self.assertEqual(read["bytes"], read["operations"] * 100_000)
            self.assertEqual(list(self.directory.iterdir()), [])


SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"\})? (-?[0-9.]+(?:e[+-]\d+)?)')


class Metrics(Observed):
    def url_of(self, banner):
        return re.search(r"^Metrics +(http://\S+)$", banner, re.MULTILINE)[1]

    def fetch(self, url):
        with urllib.request.urlopen(url, timeout=30) as answer:
            self.assertEqual(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
            return answer.read().decode()

    def samples(self, text):
        """Checks the form, as promtool does, and returns a map from name and labels to value."""
        self.assertTrue(text.endswith("\n"))
        types, helps, found = {}, set(), {}
        for line in text.splitlines():
            if line.startswith("# HELP "):
                name, words = line.split(" ", 3)[2:]
                self.assertNotIn(name, helps, "described twice")
                self.assertTrue(words.endswith("."), line)
                helps.add(name)
            elif line.startswith("# TYPE "):
                name, kind = line.split(" ")[2:]
                self.assertIn(name, helps)
                self.assertNotIn(name, types)
                self.assertFalse(any(key.startswith(name) for key in found if key.split("{")[0] == name))
                types[name] = kind
            else:
                match = SAMPLE.fullmatch(line)
                self.assertIsNotNone(match, line)
                name, labels, value = match.groups()
                self.assertEqual(name, list(types)[-1], "samples follow their type")
                self.assertNotIn(name + (labels or ""), found, "reported twice")
                found[name + (labels or "")] = float(value)
        for name, kind in types.items():
            self.assertEqual(kind == "counter", name.endswith("_total"), name)
            self.assertNotRegex(name, r"(milliseconds|_ms|kilobytes|_kb)(_|$)", "base units")
        return found

    @HAS_SMBCLIENT
    def test_what_clients_do_is_counted_in_prometheus_form(self):
        with self.server("--metrics", "0") as (port, banner), self.client(port):
            seen = self.samples(self.fetch(self.url_of(banner)))
            self.assertEqual(seen["sluice_smb_read_bytes_total"], 5000)
            self.assertEqual(seen['sluice_smb_requests_total{command="negotiate"}'], 1)
            self.assertEqual(seen["sluice_smb_sessions"], 1)
            descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            opens = 131_072 if descriptors == resource.RLIM_INFINITY else min(131_072, descriptors // 8 * 3)
            self.assertEqual(seen['sluice_smb_limit{name="opens_max"}'], opens)
            self.assertEqual(seen['sluice_smb_limit_rejections_total{name="opens_max"}'], 0)
            self.assertEqual(seen['sluice_smb_limit_in_use{name="trees_per_session_max"}'], 1)
            self.assertAlmostEqual(seen["sluice_smb_start_time_seconds"], time.time(), delta=60)
            self.assertGreater(seen["process_cpu_seconds_total"], 0)

    def test_the_dashboard_queries_existing_metrics_only(self):
        dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
        queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        queries += [each["query"] for each in dashboard["templating"]["list"]]
        named = set(re.findall(r"\b(?:sluice|process)_\w+", " ".join(queries)))
        self.assertGreater(len(named), 15)
        with self.server("--metrics", "0") as (_, banner):
            text = self.fetch(self.url_of(banner))
        types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
        self.assertEqual(named - types.keys(), set(), "metrics that the server does not have")
        for query in queries:
            for name in re.findall(r"\b(?:rate|increase)\((\w+)", query):
                self.assertEqual(types[name], "counter", query)
        labels = {name: set(re.findall(r'(\w+)="', text_of)) for name, text_of in re.findall(r"^(\w+)\{(.*)\}", text, re.MULTILINE)}
        for query in queries:
            for label in re.findall(r"by \((\w+)\)", query):
                known = {"instance"}.union(*(labels.get(name, set()) for name in re.findall(r"\bsluice_\w+", query)))
                self.assertIn(label, known, query)

    def test_a_port_alone_listens_on_the_loopback_interface_only(self):
        with self.server("--metrics", "0") as (_, banner):
            self.assertTrue(self.url_of(banner).startswith("http://127.0.0.1:"))
        with self.server("--metrics", "[::1]:0") as (_, banner):
            self.assertTrue(self.url_of(banner).startswith("http://[::1]:"))
        with self.server() as (_, banner):
            self.assertNotIn("Metrics", banner)

    def test_other_paths_and_methods_are_refused_with_the_status_of_http(self):
        with self.server("--metrics", "0") as (_, banner):
            url = self.url_of(banner)
            for request, expected in ((url + "/x", 404), (urllib.request.Request(url, method="PUT"), 405)):
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(request, timeout=30)
                self.assertEqual(refused.exception.code, expected)
                refused.exception.close()
            with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=30) as head:
                self.assertGreater(int(head.headers["Content-Length"]), 1000)

    def test_clients_beyond_the_limit_do_not_block_later_ones(self):
        with self.server("--metrics", "0") as (_, banner):
            host, port = re.search(r"//(.+):(\d+)/", self.url_of(banner)).groups()
            idle = [socket.create_connection((host, int(port))) for _ in range(20)]
            for one in idle:
                one.close()
            for _ in range(50):
                with contextlib.suppress(OSError):
                    self.samples(self.fetch(self.url_of(banner)))
                    return
                time.sleep(0.1)
            self.fail("no request is answered any more")

    def test_an_invalid_address_is_refused(self):
        for where in "metrics", "localhost:1", "unix:/tmp/x", "70000":
            done = subprocess.run([PROGRAM, "serve", str(self.directory), "--listen", "127.0.0.1:0", "--users-file",
                                   str(self.scratch / "users"), "--metrics", where], capture_output=True, text=True,
                                  timeout=60, env=self.environment)
            self.assertEqual(done.returncode, 2, where)
            self.assertIn(f"invalid value '{where}' for --metrics", done.stderr)


if __name__ == "__main__":
    unittest.main()
