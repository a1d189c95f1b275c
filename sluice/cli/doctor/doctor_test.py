"""`sluice doctor` against servers that work, that lie and that hang. Run by ctest with the program as the last argument."""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from server_testing import running_server  # noqa: E402  (found through the line above)

PROGRAM = sys.argv.pop() if __name__ == "__main__" else None
SMBD = shutil.which("smbd") or shutil.which("smbd", path="/usr/sbin") or os.environ.get("SMBD")
IS_CONTAINED = os.geteuid() == 0 and shutil.which("unshare") and subprocess.run(
    ["unshare", "-nm", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
NOBODY = 65534
ENDS_WITHIN_S = 60  # 30, on a busy machine
SMB1_NEGOTIATE = b"\xffSMB\x72"
UNIX_EPOCH_TICKS = 116_444_736_000_000_000


def frame(message):
    return struct.pack(">I", len(message)) + message


def smb2_header(status=0, command=0):
    return b"\xfeSMB" + struct.pack("<HHIHHIIQIIQ", 64, 0, status, command, 1, 1, 0, 0, 0, 0, 0) + bytes(16)


def negotiate_reply(dialect=0x0311, mode=3, sizes=(8 << 20, 8 << 20, 8 << 20), ticks=None, contexts=(0, 0), tail=b""):
    """A NEGOTIATE reply; `contexts` is the count of the contexts and their offset from the header."""
    now = int(time.time() * 10_000_000) + UNIX_EPOCH_TICKS
    body = struct.pack("<HHHH16sIIIIQQHHI", 65, mode, dialect, contexts[0], bytes(range(16)), 0x7F, *sizes,
                       now if ticks is None else ticks, 0, 128, 0, contexts[1])
    return frame(smb2_header() + body + tail)


def receive(connection):
    """Returns one frame, or what came before its end."""
    prefix = connection.recv(4, socket.MSG_WAITALL)
    return connection.recv(struct.unpack(">I", prefix)[0], socket.MSG_WAITALL) if len(prefix) == 4 else b""


@contextlib.contextmanager
def fake_server(handle):
    """A server that calls `handle` with each connection, in a thread of its own. Returns its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve(connection):
            with connection, contextlib.suppress(OSError):
                connection.settimeout(60)
                handle(connection)

        def accept():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def answering(reply):
    def handle(connection):
        receive(connection)
        connection.sendall(reply)
        connection.recv(1)

    return handle


class Doctor(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.directory = self.scratch / "served"
        self.directory.mkdir()
        (self.directory / "file").write_bytes(b"x" * 100_000)
        (self.scratch / "password").write_text("secret-password\n")
        self.environment = {key: value for key, value in os.environ.items() if key != "SLUICE_PASSWORD"} | {
            "XDG_RUNTIME_DIR": str(self.scratch), "XDG_CONFIG_HOME": str(self.scratch)}

    def doctor(self, *arguments, status):
        began = time.monotonic()
        done = subprocess.run([PROGRAM, "doctor", *map(str, arguments)], capture_output=True, text=True, timeout=120,
                              env=self.environment, stdin=subprocess.DEVNULL)
        self.took = time.monotonic() - began
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertNotIn("secret-password", done.stdout + done.stderr)
        return done

    def report(self, *arguments, status):
        """Returns the findings, of which each warning and problem has a remedy."""
        document = json.loads(self.doctor(*arguments, "--json", status=status).stdout)
        self.assertEqual((document["format"], document["version"]), ("sluice-doctor", 1))
        for each in document["findings"]:
            if each["severity"] != "note":
                self.assertTrue(each["remedy"], each)
        return document["findings"]

    def problems(self, *arguments):
        found = [each for each in self.report(*arguments, status=1) if each["severity"] == "problem"]
        return [each["what"] for each in found]

    def assert_problem(self, text, *arguments):
        found = self.problems(*arguments)
        self.assertTrue(any(text in each for each in found), found)


class OtherServers(Doctor):
    def check(self, handle, text):
        with fake_server(handle) as port:
            self.assert_problem(text, f"127.0.0.1:{port}")

    def test_a_closed_port_is_distinguished(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        self.assert_problem("is closed", f"127.0.0.1:{port}")

    def test_a_port_that_does_not_answer_is_distinguished(self):
        with contextlib.ExitStack() as held, socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(0)
            # The kernel drops requests to connect while the queue of the listener is full.
            for _ in range(3):
                waiting = held.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(listener.getsockname())
            self.assert_problem("does not answer: a firewall", f"127.0.0.1:{listener.getsockname()[1]}")

    @unittest.skipUnless(IS_CONTAINED, "needs root and network namespaces")
    def test_a_name_server_that_does_not_answer_is_named(self):
        (self.scratch / "resolv.conf").write_text("nameserver 127.0.0.99\n")
        silent = "import socket, time; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('127.0.0.99', 53)); time.sleep(60)"
        script = (f"ip link set lo up && mount --bind {self.scratch}/resolv.conf /etc/resolv.conf || exit 77\n"
                  f'{sys.executable} -c "{silent}" & "{PROGRAM}" doctor nas; status=$?; kill $!; exit $status')
        done = subprocess.run(["unshare", "-nm", "sh", "-c", script], capture_output=True, text=True, timeout=120,
                              env=self.environment)
        if done.returncode == 77:
            self.skipTest("cannot change the network of a namespace")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("no name server answered for 'nas'", done.stdout)
        self.assertIn("127.0.0.99", done.stdout)

    def test_a_name_without_address_is_reported(self):
        self.assert_problem("sluice.invalid", "sluice.invalid")

    def test_a_silent_server_ends_at_the_deadline(self):
        self.check(lambda connection: connection.recv(1 << 20) and time.sleep(60), "does not answer")
        self.assertLess(self.took, ENDS_WITHIN_S)

    def test_a_server_that_sends_byte_by_byte_ends_at_the_same_deadline(self):
        def handle(connection):
            receive(connection)
            for byte in frame(b"\xfeSMB" + bytes(50_000)):
                connection.sendall(bytes([byte]))
                time.sleep(0.1)

        self.check(handle, "does not answer")
        self.assertLess(self.took, ENDS_WITHIN_S)

    def test_a_server_that_closes_at_once_is_reported(self):
        self.check(lambda connection: None, "closes the connection")

    def test_smb1_only_is_recognised(self):
        def handle(connection):
            if receive(connection).startswith(SMB1_NEGOTIATE):
                connection.sendall(frame(SMB1_NEGOTIATE + bytes(27) + b"\x11" + bytes(36)))
                connection.recv(1)

        self.check(handle, "only SMB1")

    def test_http_is_recognised(self):
        self.check(answering(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "HTTP")

    def test_tls_is_recognised(self):
        self.check(answering(b"\x15\x03\x01\x00\x02\x02\x28"), "TLS")

    def test_a_banner_of_another_protocol_is_recognised(self):
        self.check(lambda connection: (connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"), connection.recv(1 << 20)), "SSH")

    def test_garbage_cannot_control_the_terminal(self):
        with fake_server(answering(b"\x1b[2J\xff\x9b31m" * 100)) as port:
            done = self.doctor(f"127.0.0.1:{port}", status=1)
        self.assertIn("unknown protocol", done.stdout)
        self.assertNotIn("\x1b", done.stdout + done.stderr)

    def test_a_frame_without_end_is_not_awaited(self):
        self.check(answering(b"\x00\xff\xff\xff" + bytes(100)), "unknown protocol")

    def test_an_error_of_the_server_is_its_status(self):
        self.check(answering(frame(smb2_header(status=0xC00000BB) + struct.pack("<HBBI", 9, 0, 0, 0) + b"\0")),
                   "rejects every SMB 2 and 3 dialect")

    def test_hostile_contexts_are_violations(self):
        hostile = {"offset after the end": negotiate_reply(contexts=(1, 0xFFFF_FFF0)),
                   "too many": negotiate_reply(contexts=(0xFFFF, 128), tail=bytes(64)),
                   "length after the end": negotiate_reply(contexts=(1, 128), tail=struct.pack("<HHI", 1, 0xFFFF, 0)),
                   "misaligned": negotiate_reply(contexts=(1, 129), tail=bytes(32)),
                   "truncated": frame(smb2_header() + b"\x41\x00")}
        for name, reply in hostile.items():
            with self.subTest(name):
                self.check(answering(reply), "violates the protocol")

    def test_extreme_values_are_findings(self):
        with fake_server(answering(negotiate_reply(dialect=0x0302, mode=0, sizes=(0, 0, 0), ticks=2**64 - 1))) as port:
            found = self.problems(f"127.0.0.1:{port}")
        for text in "does not offer signing", "less than 4 KiB", "more than 5 minutes":
            self.assertTrue(any(text in each for each in found), found)

    def test_a_server_that_hangs_at_the_logon_ends_at_the_deadline(self):
        def handle(connection):
            receive(connection)
            connection.sendall(negotiate_reply(dialect=0x0302))
            connection.recv(1 << 20)
            time.sleep(60)

        with fake_server(handle) as port:
            self.report(f"bob@127.0.0.1:{port}", "--password-file", self.scratch / "password", status=1)
        self.assertLess(self.took, ENDS_WITHIN_S)


class Sluice(Doctor):
    def server(self, *arguments):
        users = self.scratch / "users"
        subprocess.run([PROGRAM, "user", "--users-file", str(users), "add", "bob"], input="secret-password\n", text=True,
                       check=True, capture_output=True)
        return running_server(self, PROGRAM, self.directory, users, *arguments, environment=self.environment)

    def test_a_good_server_has_no_problem(self):
        with self.server() as (port, _):
            found = self.report(f"//bob@127.0.0.1:{port}/files/file", "--password-file", self.scratch / "password",
                                status=0)
        texts = {each["what"]: each["evidence"] for each in found}
        self.assertEqual(texts["the newest common dialect is 3.1.1"], "the server accepts 2.0.2, 2.1, 3.0, 3.0.2, 3.1.1")
        for text in "the server requires signed messages", "the server can encrypt", "the user 'bob' can log on":
            self.assertIn(text, texts)
        self.assertTrue({"latency", "throughput", "share", "path"} <= {each["check"] for each in found})
        self.assertFalse([each for each in found if each["check"] == "guest"])

    def test_the_network_does_not_distinguish_a_wrong_user_from_a_wrong_password(self):
        (self.scratch / "wrong").write_text("wrong\n")
        with self.server() as (port, _):
            texts = [self.problems(f"//{user}@127.0.0.1:{port}", "--password-file", self.scratch / "wrong")
                     for user in ("bob", "eve")]
        self.assertEqual([each.replace("eve", "bob") for each in texts[1]], texts[0])

    def test_on_its_host_the_users_file_says_what_is_wrong(self):
        (self.scratch / "wrong").write_text("wrong\n")
        how = "--password-file", self.scratch / "wrong", "--users-file", self.scratch / "users"
        with self.server() as (port, _):
            self.assert_problem("the password of 'bob' is wrong", f"bob@127.0.0.1:{port}", *how)
            self.assert_problem("does not have the user 'eve'", f"eve@127.0.0.1:{port}", *how)

    def test_missing_share_and_file_are_reported(self):
        how = "--password-file", self.scratch / "password"
        with self.server() as (port, _):
            self.assert_problem("has no share 'none'", f"//bob@127.0.0.1:{port}/none", *how)
            self.assert_problem("'none' cannot be read", f"//bob@127.0.0.1:{port}/files/none", *how)

    def test_guest_access_is_a_warning(self):
        with self.server("--guest") as (port, _):
            found = self.report(f"//127.0.0.1:{port}/files", status=0)
        self.assertTrue([each for each in found if each["check"] == "guest" and each["severity"] == "warning"], found)

    def test_a_running_server_is_found_on_its_host(self):
        with self.server() as (port, _):
            found = self.report(status=0)
        evidence = [each["evidence"] for each in found if each["check"] == "server"]
        self.assertEqual(evidence, [f"it listens at 127.0.0.1:{port}"])

    @unittest.skipUnless(SMBD, "smbd is not installed (Debian package samba)")
    def test_samba_is_examined(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        for name in "private", "lock", "state", "cache", "pid", "ncalrpc":
            (self.scratch / name).mkdir(mode=0o700)
        settings = "\n".join(["[global]", "interfaces = 127.0.0.1", "bind interfaces only = yes", f"smb ports = {port}",
                              "map to guest = Bad User", "server min protocol = SMB2_10", "load printers = no",
                              f"private dir = {self.scratch}/private", f"lock directory = {self.scratch}/lock",
                              f"state directory = {self.scratch}/state", f"cache directory = {self.scratch}/cache",
                              f"pid directory = {self.scratch}/pid", f"ncalrpc dir = {self.scratch}/ncalrpc",
                              f"log file = {self.scratch}/log", "[files]", f"path = {self.directory}", "guest ok = yes"])
        (self.scratch / "smb.conf").write_text(settings + "\n")
        server = subprocess.Popen([SMBD, "--foreground", "--no-process-group", f"--configfile={self.scratch}/smb.conf"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            self.assertIsNone(server.poll(), "smbd ended")
            time.sleep(0.05)
        found = self.report(f"//127.0.0.1:{port}/files", status=0)
        dialect = next(each for each in found if each["check"] == "dialect")
        self.assertEqual(dialect["evidence"], "the server accepts 2.1, 3.0, 3.0.2, 3.1.1")
        warnings = [each["check"] for each in found if each["severity"] == "warning"]
        self.assertIn("signing", warnings)
        self.assertIn("guest", warnings)


class ThisHost(Doctor):
    def configuration(self, *lines):
        path = self.scratch / "sluice.toml"
        path.write_text("\n".join([f'users-file = "{self.scratch}/users"', *lines]) + "\n")
        return path

    def share(self, path):
        return "[[share]]", 'name = "media"', f'path = "{path}"'

    def test_a_missing_share_names_the_component(self):
        path = self.configuration(*self.share(self.directory / "none" / "deep"))
        found = [each for each in self.report(path, status=1) if each["check"] == "share"]
        self.assertEqual(found[0]["evidence"], f"{self.directory}/none: missing")
        self.assertEqual(found[0]["remedy"], f"mkdir -p {self.directory}/none/deep")

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    def test_a_directory_that_the_account_cannot_enter_is_named(self):
        closed = self.directory / "closed"
        (closed / "share").mkdir(parents=True)
        closed.chmod(0o700)
        self.scratch.chmod(0o755)
        path = self.configuration(*self.share(closed / "share"))
        account = str(NOBODY)
        done = subprocess.run(["setpriv", f"--reuid={account}", f"--regid={account}", "--clear-groups", PROGRAM, "doctor",
                               path, "--json"], capture_output=True, text=True, timeout=120,
                              env=self.environment | {"XDG_RUNTIME_DIR": str(self.scratch / "run")})
        found = [each for each in json.loads(done.stdout)["findings"] if each["check"] == "share"]
        self.assertEqual(found[0]["remedy"], f"setfacl -m u:{account}:x {closed}")

    def test_no_running_server_is_a_problem(self):
        self.assert_problem("no server of this account is running")

    def test_a_port_of_another_program_names_it(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            path = self.configuration(f"port = {listener.getsockname()[1]}", *self.share(self.directory))
            self.assert_problem(f"(process {os.getpid()})", path)

    def test_a_users_file_that_others_can_read_is_a_problem(self):
        (self.scratch / "users").write_text("")
        (self.scratch / "users").chmod(0o644)
        path = self.configuration(*self.share(self.directory))
        self.assert_problem("other accounts can access the users file", path)

    def test_a_write_test_leaves_nothing(self):
        path = self.configuration(*self.share(self.directory))
        found = self.report(path, "--write-test", status=1)
        self.assertTrue([each for each in found if "a synchronous write of 4 KiB" in each["what"]], found)
        self.assertEqual(os.listdir(self.directory), ["file"])

    def test_text_without_terminal_has_no_colours(self):
        done = self.doctor(status=1)
        self.assertNotIn("\x1b", done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")

    def test_invalid_use_exits_with_2(self):
        for arguments in (["bob:secret-password@nas"], ["nas:0"], ["nas", "--write-test"], ["--user", "bob"],
                          ["nas", "--password-file", "x"]):
            self.doctor(*arguments, status=2)


if __name__ == "__main__":
    unittest.main()
