"""`sluice serve` under a service manager: reports to NOTIFY_SOCKET, and sockets that it passes.

    service_test.py PROGRAM

The test plays the manager: it binds the socket for the reports, opens the listening sockets, and starts the program as systemd does.
"""

import contextlib
import fcntl
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = None
FIRST_DESCRIPTOR = 3


class Service(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        (self.directory / "files").mkdir()
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.manager.close)
        self.manager.settimeout(30)
        self.errors = self.directory / "errors"

    def listening_socket(self):
        opened = socket.socket(socket.AF_INET6)
        self.addCleanup(opened.close)
        opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        opened.bind(("::", 0))
        opened.listen()
        return opened

    def start(self, *arguments, pass_sockets=(), environment=(), address=None, shares=("files",)):
        """Starts a server with these sockets from descriptor 3 on, as systemd does."""
        variables = {"PATH": os.environ["PATH"], "HOME": str(self.directory), "XDG_RUNTIME_DIR": str(self.directory)}
        if address is not None:
            if not self.manager.getsockname():
                self.manager.bind(address if address[0] == "/" else "\0" + address[1:])
            variables["NOTIFY_SOCKET"] = address
        variables.update(environment)
        descriptors = [each.fileno() for each in pass_sockets]

        def place_descriptors():
            copies = [fcntl.fcntl(each, fcntl.F_DUPFD, 100) for each in descriptors]
            for i, copy in enumerate(copies):
                os.dup2(copy, FIRST_DESCRIPTOR + i)
                os.close(copy)

        # The shell becomes the program, so its process is the one that LISTEN_PID names.
        count = variables.pop("LISTEN_FDS", str(len(descriptors)) if descriptors else None)
        process = variables.pop("LISTEN_PID", "$$")
        script = f"export LISTEN_FDS='{count}' LISTEN_PID=\"{process}\"; " if count is not None else ""
        with open(self.errors, "w") as errors:
            server = subprocess.Popen(
                ["/bin/sh", "-c", script + 'exec "$0" "$@"', PROGRAM, "serve", *shares, "--user", "bob%secret", "--users-file", "users",
                 "--status-socket", "status.sock", *arguments],
                cwd=self.directory, env=variables, stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=place_descriptors,
                close_fds=False)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        return server

    def report(self):
        text, _ = self.manager.recvmsg(4096)[:2]
        return dict(line.split("=", 1) for line in text.decode().splitlines())

    def report_with(self, name):
        """Returns the next report with this variable."""
        while True:
            if name in (found := self.report()):
                return found

    def end(self, server):
        server.terminate()
        self.assertEqual(server.wait(timeout=60), 0, self.errors.read_text())

    def refusal(self, *arguments, **how):
        server = self.start(*arguments, **how)
        self.assertEqual(server.wait(timeout=60), 1)
        return self.errors.read_text()

    def warning_of(self, **how):
        """Starts a server in spite of a useless variable, and returns its warning."""
        server = self.start("--listen", "127.0.0.1:0", **how)
        deadline = time.monotonic() + 60
        while not (self.directory / "status.sock").exists():
            self.assertIsNone(server.poll(), self.errors.read_text())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        self.end(server)
        return self.errors.read_text().splitlines()[0]

    def connects(self, port):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10):
            return True
        return False

    # Reports.

    def check_life(self, address):
        server = self.start("--listen", "127.0.0.1:0", address=address)
        ready = self.report()
        self.assertEqual(ready["READY"], "1")
        self.assertRegex(ready["STATUS"], r"^serves 1 share at 127\.0\.0\.1:[0-9]+$")
        self.assertTrue(self.connects(int(ready["STATUS"].rpartition(":")[2])), "ready means that clients can connect")
        self.end(server)
        self.assertEqual(self.report()["STOPPING"], "1")

    def test_the_start_and_the_stop_are_reported_to_a_path(self):
        self.check_life(str(self.directory / "notify"))

    def test_the_start_and_the_stop_are_reported_to_an_abstract_name(self):
        self.check_life(f"@sluice-service-test-{os.getpid()}")

    def test_a_reload_is_reported_when_it_begins_and_when_it_has_ended(self):
        configuration = self.directory / "sluice.toml"
        table = '[[share]]\nname = "{0}"\npath = "files"\n'
        configuration.write_text(table.format("a"))
        server = self.start("--listen", "127.0.0.1:0", "--config", "sluice.toml", address=str(self.directory / "notify"), shares=())
        self.assertRegex(self.report()["STATUS"], "^serves 1 share at ")
        for content, status in ((table.format("a") + table.format("b"), "^serves 2 shares at .*; changes of the last reload: 1 share added$"), ("wrong", "^the last reload has failed")):
            configuration.write_text(content)
            before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
            server.send_signal(signal.SIGHUP)
            begun = self.report_with("RELOADING")
            self.assertGreaterEqual(int(begun["MONOTONIC_USEC"]), before)
            self.assertRegex(self.report_with("READY")["STATUS"], status)
        self.end(server)

    def test_a_server_that_is_watched_reports_that_it_is_alive(self):
        server = self.start("--listen", "127.0.0.1:0", address=str(self.directory / "notify"), environment={"WATCHDOG_USEC": "400000"})
        for _ in range(3):
            self.assertEqual(self.report_with("WATCHDOG"), {"WATCHDOG": "1"})
        self.end(server)

    def test_a_server_that_cannot_listen_does_not_report_that_it_is_ready(self):
        busy = self.listening_socket()
        server = self.start("--port", str(busy.getsockname()[1]), address=str(self.directory / "notify"))
        self.assertEqual(server.wait(timeout=60), 1)
        self.manager.settimeout(0)
        with self.assertRaises(BlockingIOError):
            self.report()

    def test_a_manager_that_does_not_read_delays_nothing(self):
        server = self.start("--listen", "127.0.0.1:0", address=str(self.directory / "notify"), environment={"WATCHDOG_USEC": "1"})
        self.assertEqual(self.report()["READY"], "1")
        time.sleep(1)  # more reports than the queue has room for
        self.end(server)

    def test_variables_that_cannot_be_used_cause_a_warning_and_nothing_else(self):
        unread = "the service manager is not informed about the state of the server"
        rule = "use an absolute path, or a name that begins with '@', of at most 107 bytes"
        long = "/" + "x" * 199
        none = self.directory / "none"
        file = self.directory / "file"
        file.touch()
        for value, text in (("relative", f"invalid value 'relative' for NOTIFY_SOCKET: {rule}"),
                            (long, f"invalid value '{long[:40]}...' (200 bytes) for NOTIFY_SOCKET: {rule}"),
                            (str(none), f"NOTIFY_SOCKET: {none}: connect: No such file or directory"),
                            (str(file), f"NOTIFY_SOCKET: {file}: connect: Connection refused")):
            self.assertEqual(self.warning_of(environment={"NOTIFY_SOCKET": value}), f"sluice serve: warning: {text}; {unread}")

    def test_watchdog_variables_that_are_not_numbers_cause_a_warning(self):
        ignored = "the watchdog of the service manager is not served"
        self.manager.bind(str(self.directory / "notify"))
        given = {"NOTIFY_SOCKET": str(self.directory / "notify")}
        self.assertEqual(self.warning_of(environment=given | {"WATCHDOG_USEC": "often"}), "sluice serve: warning: invalid value 'often' for "
                         f"WATCHDOG_USEC: use 1 to 31536000000000 microseconds; {ignored}")
        self.assertEqual(self.warning_of(environment=given | {"WATCHDOG_USEC": "9", "WATCHDOG_PID": "me"}), "sluice serve: warning: invalid "
                         f"value 'me' for WATCHDOG_PID: use the number of a process; {ignored}")

    # Sockets.

    def test_clients_connect_by_the_sockets_of_the_manager_in_place_of_the_options(self):
        opened = [self.listening_socket(), self.listening_socket()]
        server = self.start("--port", "1", pass_sockets=opened, address=str(self.directory / "notify"))
        status = self.report()["STATUS"]
        for each in opened:
            self.assertIn(f"[::]:{each.getsockname()[1]}", status)
            self.assertTrue(self.connects(each.getsockname()[1]))
        done = subprocess.run([PROGRAM, "ls", f"smb://bob@127.0.0.1:{opened[1].getsockname()[1]}/files"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=os.environ | {"SLUICE_PASSWORD": "secret"}, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.end(server)
        self.assertEqual(self.errors.read_text().splitlines()[0], "sluice serve: warning: the sockets of the service manager replace --port and "
                         "--listen; remove these, or disable the socket unit")

    def test_a_client_that_connects_between_two_servers_is_served_by_the_second(self):
        opened = self.listening_socket()
        server = self.start(pass_sockets=[opened], address=str(self.directory / "notify"))
        self.report_with("READY")
        self.end(server)
        with socket.create_connection(("127.0.0.1", opened.getsockname()[1]), timeout=30) as client:
            server = self.start(pass_sockets=[opened], address=str(self.directory / "notify"))
            client.sendall(bytes([0, 0, 0, 4]) + b"none")  # not a message, so the server closes the connection
            self.assertEqual(client.recv(1), b"")
            self.end(server)

    def test_no_child_process_would_inherit_the_sockets_or_the_variables(self):
        opened = self.listening_socket()
        server = self.start("--no-confinement", pass_sockets=[opened], address=str(self.directory / "notify"))
        self.report()
        flags = pathlib.Path(f"/proc/{server.pid}/fdinfo/{FIRST_DESCRIPTOR}").read_text()
        self.assertTrue(int(flags.split("flags:")[1].split()[0], 8) & os.O_CLOEXEC)
        self.end(server)

    def test_sockets_for_another_process_are_ignored(self):
        opened = self.listening_socket()
        server = self.start("--listen", "127.0.0.1:0", pass_sockets=[opened], address=str(self.directory / "notify"),
                            environment={"LISTEN_PID": "1"})
        self.assertNotIn(f":{opened.getsockname()[1]}", self.report()["STATUS"])
        self.end(server)

    def test_descriptors_of_the_wrong_kind_end_the_start_with_the_reason(self):
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        local = socket.socket(socket.AF_UNIX)
        deaf = socket.socket(socket.AF_INET)
        for each in (datagrams, local, deaf):
            self.addCleanup(each.close)
        local.bind(str(self.directory / "local"))
        local.listen()
        file = open(self.errors, "w")
        self.addCleanup(file.close)
        for wrong, why in ((datagrams, "not a stream socket; use ListenStream="),
                           (local, "not an internet socket; use a port, or an IP address with a port"), (deaf, "not listening; use Accept=no"),
                           (file, "not a socket")):
            self.assertEqual(self.refusal(pass_sockets=[self.listening_socket(), wrong], environment={"LISTEN_FDNAMES": "smb:a b"}),
                             f"sluice serve: socket 2 of the service manager, 'a b': {why}\n")

    def test_a_descriptor_that_is_not_open_ends_the_start(self):
        self.assertEqual(self.refusal(pass_sockets=[self.listening_socket()], environment={"LISTEN_FDS": "64"}),
                         "sluice serve: socket 2 of the service manager: Bad file descriptor\n")

    def test_more_sockets_than_the_limit_end_the_start(self):
        self.assertEqual(self.refusal(pass_sockets=[self.listening_socket()], environment={"LISTEN_FDS": "65"}),
                         "sluice serve: the service manager has passed 65 sockets; use at most 64\n")

    def test_numbers_of_sockets_that_are_not_numbers_cause_a_warning(self):
        ignored = "sockets of the service manager are ignored"
        self.assertEqual(self.warning_of(environment={"LISTEN_FDS": "many"}),
                         f"sluice serve: warning: invalid value 'many' for LISTEN_FDS: use the number of sockets; {ignored}")
        self.assertEqual(self.warning_of(environment={"LISTEN_FDS": "1", "LISTEN_PID": "self"}),
                         f"sluice serve: warning: invalid value 'self' for LISTEN_PID: use the number of a process; {ignored}")


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
