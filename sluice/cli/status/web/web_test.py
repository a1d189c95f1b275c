"""The web page of `sluice serve --web`, as HTTP clients see it. Run by ctest with the program as the last argument."""

import contextlib
import html
import http.client
import os
import pathlib
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from server_testing import running_server  # noqa: E402  (found through the line above)

PROGRAM = sys.argv.pop() if __name__ == "__main__" else None
TOKEN = "correct-horse-battery-staple"
FORM = "application/x-www-form-urlencoded"
HAS_SMBCLIENT = unittest.skipUnless(shutil.which("smbclient"), "smbclient is not installed (Debian package smbclient)")


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Page(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.directory = self.scratch / "served<b>&'"
        self.directory.mkdir()
        self.environment = os.environ | {"XDG_RUNTIME_DIR": str(self.scratch)}
        self.token_file = self.scratch / "token"
        self.token_file.write_text(TOKEN + "\n")
        self.token_file.chmod(0o600)

    @contextlib.contextmanager
    def server(self, *arguments, web="0", token=False, **how):
        more = ("--web-token-file", str(self.token_file)) if token else ()
        with running_server(self, PROGRAM, self.directory, self.scratch / "users", "--user", "u%p", "--web", web, *more,
                            *arguments, environment=self.environment, **how) as (port, banner):
            where = re.search(r"^Web page +(\S+)", banner, re.MULTILINE)[1]
            self.web_port = int(where.rsplit(":", 1)[1]) if where.startswith("http") else None
            yield port, where

    def ask(self, path="/", method="GET", body=None, host=None, **headers):
        """Returns status, headers and text of a reply. Underscores of header names are hyphens."""
        connection = http.client.HTTPConnection("127.0.0.1", self.web_port, timeout=30)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if host is not None:
            named["Host"] = host
        connection.request(method, path, body, named)
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        return reply.status, reply.headers, text

    def post(self, path, body, **headers):
        return self.ask(path, "POST", body, Content_Type=FORM, **headers)

    def log_on(self):
        status, headers, _ = self.post("/logon", f"token={TOKEN}")
        self.assertEqual((status, headers["Location"]), (303, "/"))
        cookie = headers["Set-Cookie"]
        self.assertIn("HttpOnly", cookie)
        self.assertIn("SameSite=Strict", cookie)
        return cookie.split(";")[0]

    def raw(self, request):
        """Sends bytes and returns everything that comes back until the end."""
        with socket.create_connection(("127.0.0.1", self.web_port), timeout=30) as connection:
            connection.sendall(request)
            reply = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := connection.recv(65536):
                    reply += piece
        return reply

    @contextlib.contextmanager
    def client(self, port, *commands):
        """A session of smbclient that stays until the end. Each command is followed by the text that it prints."""
        process = subprocess.Popen(["smbclient", "-p", str(port), "//127.0.0.1/files", "-U", "u%p"], cwd=self.scratch,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for command, sign in commands:
            process.stdin.write(command + "\n")
            process.stdin.flush()
            while sign not in (line := process.stdout.readline()):
                self.assertNotEqual(line, "", "smbclient has ended")
        yield process
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


class ReadOnly(Page):
    def test_every_page_is_html_without_scripts_and_with_strict_headers(self):
        with self.server():
            for path in "/", "/sessions", "/files", "/rejections", "/?refresh=5":
                status, headers, text = self.ask(path)
                self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"), path)
                policy = headers["Content-Security-Policy"]
                for part in "default-src 'none'", "style-src 'self'", "form-action 'self'", "frame-ancestors 'none'":
                    self.assertIn(part, policy)
                self.assertEqual(headers["X-Frame-Options"], "DENY")
                self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
                self.assertEqual(headers["Cache-Control"], "no-store")
                self.assertNotRegex(text, r"<script|https?://(?!127)|<form")
            self.assertIn('http-equiv="refresh" content="5"', text)
            self.assertEqual(self.ask("/style.css")[1]["Content-Type"], "text/css; charset=utf-8")

    def test_the_overview_has_shares_charts_and_findings(self):
        with self.server():
            _, _, text = self.ask()
            self.assertIn("served&lt;b&gt;&amp;&#39;", text)
            self.assertEqual(text.count("<svg"), 3)
            self.assertIn("every account of this host can read this page", text)

    def test_the_overview_has_the_findings_of_doctor(self):
        users = self.scratch / "users"
        subprocess.run([PROGRAM, "user", "--users-file", str(users), "add", "bob"], input="password\n", text=True, check=True,
                       stdout=subprocess.DEVNULL, timeout=60)
        with self.server():
            text = self.ask()[2]
            self.assertIn("the users file has 1 user<", text)
            self.assertIn("<details><summary>Other facts of this host: ", text)

    def test_a_denied_address_is_counted_as_a_rejection(self):
        with self.server("--denied-host", "127.0.0.1") as (port, _):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                with contextlib.suppress(ConnectionResetError):
                    self.assertEqual(connection.recv(1), b"")
            deadline = time.monotonic() + 30
            while "deny their address: <b>1</b>" not in self.ask("/rejections")[2]:
                self.assertLess(time.monotonic(), deadline, "the connection is closed")
                time.sleep(0.05)

    @HAS_SMBCLIENT
    def test_sessions_and_open_files_are_shown_with_their_names_escaped(self):
        with self.server() as (port, _), self.client(port, ("put token", "putting")):
            text = self.ask("/sessions")[2]
            self.assertIn("1 sessions.", text)
            self.assertRegex(text, r"<td>u</td><td>127\.0\.0\.1:\d+<br></td><td>3\.1\.1</td><td>valid</td>")
            text = self.ask()[2]
            self.assertNotIn(str(self.directory), text)
            self.assertIn(html.escape(str(self.directory)).replace("&#x27;", "&#39;"), text)

    @HAS_SMBCLIENT
    def test_a_long_list_of_open_files_has_pages(self):
        (self.directory / "file").write_bytes(b"x")
        os.mkfifo(self.scratch / "source")
        commands = "open file;" * 149 + "put source held"  # it waits for a writer of the pipe
        with self.server() as (port, _):
            client = subprocess.Popen(["smbclient", "-p", str(port), "//127.0.0.1/files", "-U", "u%p", "-c", commands],
                                      cwd=self.scratch, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(client.wait)
            self.addCleanup(client.kill)
            deadline = time.monotonic() + 60
            while "150 opens" not in (first := self.ask("/files")[2]):
                self.assertLess(time.monotonic(), deadline, "the client opens the file")
                time.sleep(0.05)
            self.assertEqual(first.count("<tr><td"), 100)
            after = re.search(r'href="/files\?after=(\d+)">Next page', first)[1]
            second = self.ask(f"/files?after={after}")[2]
            self.assertEqual(second.count("<tr><td"), 50)
            self.assertNotIn("Next page", second)
            self.assertIn("First page", second)

    def test_requests_for_other_hosts_are_refused(self):
        with self.server():
            for host in "evil.example", f"evil.example:{self.web_port}", "localhost.evil.example", "":
                self.assertEqual(self.ask(host=host)[0], 421, host)
            for host in "localhost", f"localhost:{self.web_port}", "[::1]:1", "127.0.0.1":
                self.assertEqual(self.ask(host=host)[0], 200, host)
            self.assertTrue(self.raw(b"GET / HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 421 "))

    def test_without_a_token_nothing_can_be_changed(self):
        with self.server():
            for path in "/files/close", "/sessions/end", "/logon", "/logoff":
                self.assertEqual(self.post(path, "number=1&form=x")[0], 405, path)
            self.assertEqual(self.ask("/logon")[0], 404)

    def test_invalid_requests_have_the_status_of_http(self):
        with self.server():
            self.assertEqual(self.ask("/x")[0], 404)
            self.assertEqual(self.ask("/../etc/passwd")[0], 404)
            self.assertEqual(self.ask(method="DELETE")[0], 405)
            head = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
            self.assertTrue(self.raw(head + b"X: " + b"x" * 9000).startswith(b"HTTP/1.1 431 "))
            self.assertTrue(self.raw(head + b"Host: localhost\r\n\r\n").startswith(b"HTTP/1.1 400 "))
            post = b"POST /logon HTTP/1.1\r\nHost: localhost\r\n"
            self.assertTrue(self.raw(post + b"Content-Length: 5000\r\n\r\n").startswith(b"HTTP/1.1 413 "))
            chunked = post + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            self.assertTrue(self.raw(chunked).startswith(b"HTTP/1.1 411 "))
            self.assertEqual(self.ask("/files?after=-1")[0], 200)
            self.assertEqual(self.ask("/files?after=99999999999999999999")[0], 200)
            status, headers, text = self.ask(method="HEAD")
            self.assertEqual((status, text), (200, ""))
            self.assertGreater(int(headers["Content-Length"]), 1000)

    def test_slow_clients_do_not_block_others(self):
        with self.server():
            with contextlib.ExitStack() as open_ones:
                for _ in range(20):
                    slow = open_ones.enter_context(socket.create_connection(("127.0.0.1", self.web_port), timeout=30))
                    slow.sendall(b"GET / HTTP/1.1\r\nHost: loc")
                started = time.monotonic()
                self.assertEqual(self.ask()[0], 200)
                self.assertLess(time.monotonic() - started, 8, "it does not wait for the slow ones")

    def test_the_page_of_a_unix_socket_is_for_its_owner(self):
        path = self.scratch / "web.sock"
        with self.server(web=f"unix:{path}") as (_, where):
            self.assertEqual(where, f"unix:{path}")
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
            connection = UnixConnection(str(path))
            connection.request("GET", "/")
            reply = connection.getresponse()
            self.assertEqual(reply.status, 200)
            self.assertNotIn("every account of this host", reply.read().decode())
            connection.close()
        self.assertFalse(path.exists())

    def test_pages_of_other_sites_cannot_request_pages(self):
        with self.server():
            for site in "cross-site", "same-site":
                image = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
                self.assertEqual(self.ask("/files", **image)[0], 403)
                link = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
                self.assertEqual(self.ask("/files", **link)[0], 200)

    def test_a_port_in_use_delays_the_page_and_the_metrics_but_not_the_server(self):
        with socket.socket() as page, socket.socket() as metrics:
            for one in page, metrics:
                one.bind(("127.0.0.1", 0))
                one.listen()
            port, other = (one.getsockname()[1] for one in (page, metrics))
            log = []
            with self.server("--metrics", str(other), web=str(port), log=log) as (smb, where):
                self.assertEqual(where, "not", "the banner says that it is not available yet")
                socket.create_connection(("127.0.0.1", smb), timeout=30).close()
                for one in page, metrics:
                    one.close()
                for self.web_port, path in (port, "/"), (other, "/metrics"):
                    self.assertEqual(self.ask_soon(path)[0], 200)
        for option in "--metrics", "--web":
            self.assertRegex(log[0], rf'level=error msg="cannot listen for observers[^"]*" option="?{option}"? why=.*in use')
            self.assertRegex(log[0], rf'msg="listening for observers" option="?{option}')

    def ask_soon(self, path):
        deadline = time.monotonic() + 60
        while True:
            try:
                return self.ask(path)
            except ConnectionRefusedError:
                self.assertLess(time.monotonic(), deadline, "the server tries again")
                time.sleep(0.05)

    def test_the_page_can_be_in_the_directory_of_the_status_sockets(self):
        path = self.scratch / "sluice" / "web.sock"
        with self.server("--no-confinement", web=f"unix:{path}"):
            self.assertTrue(path.is_socket())
            done = subprocess.run([PROGRAM, "status"], capture_output=True, text=True, timeout=60, env=self.environment)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            with subprocess.Popen([PROGRAM, "status", "--watch", "0.2"], stdout=subprocess.PIPE, text=True,
                                  env=self.environment) as watching:
                self.assertIn("  up ", watching.stdout.readline())
                watching.kill()
        self.assertFalse(path.exists())

    def test_addresses_that_other_hosts_reach_are_refused(self):
        for where in "0.0.0.0:0", "[::]:0", "192.0.2.1:9446":
            done = subprocess.run([PROGRAM, "serve", str(self.directory), "--listen", "127.0.0.1:0", "--users-file",
                                   str(self.scratch / "users"), "--web", where], capture_output=True, text=True, timeout=60,
                                  env=self.environment)
            self.assertEqual(done.returncode, 2, where)
            self.assertIn("use 'ssh -L' or a reverse proxy with TLS", done.stderr)


class WithToken(Page):
    def test_pages_are_for_those_who_have_the_token(self):
        with self.server(token=True):
            for path in "/", "/sessions", "/files", "/rejections":
                status, headers, text = self.ask(path)
                self.assertEqual((status, headers["Location"], text), (303, "/logon", ""), path)
            self.assertIn('name="token"', self.ask("/logon")[2])
            self.assertEqual(self.ask(Cookie="sluice_web=00000000000000000000000000000000")[0], 303)
            cookie = self.log_on()
            self.assertEqual(self.ask(Cookie=cookie)[0], 200)
            self.assertEqual(self.ask(Authorization=f"Bearer {TOKEN}")[0], 200)

    def test_a_wrong_token_is_refused_after_a_delay_and_logged(self):
        with self.server(token=True):
            for body in "token=wrong", "token=", "", f"token={TOKEN[:-1]}", f"token=%{TOKEN}":
                started = time.monotonic()
                self.assertEqual(self.post("/logon", body)[0], 403, body)
                self.assertGreaterEqual(time.monotonic() - started, 0.9)
            self.assertEqual(self.ask(Authorization="Bearer wrong")[0], 401)
            self.assertEqual(self.ask(f"/?token={TOKEN}")[0], 303, "a token in a URL is ignored")

    def test_many_wrong_tokens_do_not_lock_out_who_has_the_right_one(self):
        body = b"token=wrong"
        request = (b"POST /logon HTTP/1.1\r\nHost: localhost\r\nContent-Type: " + FORM.encode() +
                   b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        log = []
        with self.server(token=True, log=log), contextlib.ExitStack() as all_of_them:
            attempts = [all_of_them.enter_context(socket.create_connection(("127.0.0.1", self.web_port), timeout=30))
                        for _ in range(28)]
            for attempt in attempts:
                attempt.sendall(request)
            self.log_on()
            self.assertEqual(self.ask(Authorization=f"Bearer {TOKEN}")[0], 200)
            for attempt in attempts:
                reply = b""
                while piece := attempt.recv(65536):
                    reply += piece
                self.assertTrue(reply.startswith(b"HTTP/1.1 403 "), reply[:40])
            self.assertEqual(self.ask(Authorization="Bearer wrong")[0], 401)
        self.assertEqual(log[0].count('msg="wrong token for the web page"'), 29)

    def test_a_program_hears_that_what_it_ends_does_not_exist(self):
        with self.server(token=True):
            for path in "/files/close", "/sessions/end":
                self.assertEqual(self.post(path, "number=1", Authorization=f"bearer {TOKEN}")[0], 404, path)

    def test_an_action_returns_to_the_part_of_the_list_it_was_on(self):
        with self.server(token=True):
            cookie = self.log_on()
            text = self.ask("/files?after=7&refresh=5", Cookie=cookie)[2]
            form = re.search(r'name="form" value="([0-9a-f]{32})"', text)[1]
            for body, location in ("&after=7&refresh=5", "/files?after=7&refresh=5"), ("&refresh=1&after=x%0d%0a", "/files"):
                _, headers, _ = self.post("/files/close", f"number=1&form={form}{body}", Cookie=cookie)
                self.assertEqual(headers["Location"], location)

    def test_two_servers_of_a_host_do_not_replace_their_cookies(self):
        with self.server(token=True):
            first = self.log_on()
            with self.server(token=True):
                both = first + "; " + self.log_on()
                self.assertEqual(len({one.split("=")[0] for one in both.split("; ")}), 2)
                self.assertEqual(self.ask(Cookie=both)[0], 200)

    def test_a_form_needs_the_token_of_the_session_and_the_right_origin(self):
        with self.server(token=True):
            cookie = self.log_on()
            form = re.search(r'name="form" value="([0-9a-f]{32})"', self.ask(Cookie=cookie)[2])[1]
            other = self.log_on()
            for body in "number=1", "number=1&form=", f"number=1&form={form[::-1]}":
                self.assertEqual(self.post("/files/close", body, Cookie=cookie)[0], 403, body)
            self.assertEqual(self.post("/files/close", f"number=1&form={form}", Cookie=other)[0], 403)
            self.assertEqual(self.post("/files/close", f"number=1&form={form}")[0], 401)
            body = f"number=1&form={form}"
            for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
                            {"Sec-Fetch-Site": "same-site"}):
                self.assertEqual(self.post("/files/close", body, Cookie=cookie, **headers)[0], 403, headers)
                self.assertEqual(self.post("/logon", f"token={TOKEN}", **headers)[0], 403, headers)
            self.assertEqual(self.ask("/files/close", "POST", body, Cookie=cookie, Content_Type="text/plain")[0], 415)
            self.assertEqual(self.ask("/files/close?" + body, Cookie=cookie)[0], 404, "a GET changes nothing")
            own = {"Origin": f"http://127.0.0.1:{self.web_port}"}
            self.assertEqual(self.post("/files/close", body, Cookie=cookie, **own)[0], 303)
            self.assertEqual(self.post("/files/close", body.replace("1", "x", 1), Cookie=cookie)[0], 400)
            self.assertEqual(self.post("/logoff", f"form={form}", Cookie=cookie)[0], 303)
            self.assertEqual(self.ask(Cookie=cookie)[0], 303)
            self.assertEqual(self.ask(Cookie=other)[0], 200)

    @HAS_SMBCLIENT
    def test_an_administrator_ends_a_session(self):
        log = []
        with self.server(token=True, log=log) as (port, _), self.client(port, ("put token", "putting")) as client:
            cookie = self.log_on()
            text = self.ask("/sessions", Cookie=cookie)[2]
            form = re.search(r'name="form" value="([0-9a-f]{32})"', text)[1]
            number = re.search(r'action="/sessions/end">.*?name="number" value="(\d+)"', text)[1]
            status, headers, _ = self.post("/sessions/end", f"form={form}&number={number}", Cookie=cookie)
            self.assertEqual((status, headers["Location"]), (303, "/sessions"))
            self.assertNotIn(f'value="{number}"', self.ask("/sessions", Cookie=cookie)[2])
            client.stdin.write("put token\n")
            client.stdin.flush()
        self.assertRegex(log[0], r'msg="administrator logged on to the web page" peer="127\.0\.0\.1:\d+"')
        self.assertRegex(log[0], r'msg="session ended by administrator" by="web page, session 1 at 127\.0\.0\.1:\d+" user="u"')

    @HAS_SMBCLIENT
    def test_a_program_with_the_token_closes_a_file(self):
        os.mkfifo(self.scratch / "source")
        log = []
        with self.server(token=True, log=log) as (port, _), self.client(port, ("put token", "putting")) as client:
            client.stdin.write("put source held\n")  # it opens the file, and waits for the writer of the pipe
            client.stdin.flush()
            writer = open(self.scratch / "source", "wb", buffering=0)
            self.addCleanup(writer.close)
            writer.write(b"x" * 100_000)
            deadline = time.monotonic() + 30
            while "held" not in (text := self.ask("/files", Authorization=f"Bearer {TOKEN}")[2]):
                self.assertLess(time.monotonic(), deadline, "the client opens the file")
                time.sleep(0.05)
            cookie = self.log_on()
            text = self.ask("/files", Cookie=cookie)[2]
            number = re.search(r'name="number" value="(\d+)"', text)[1]
            self.assertEqual(self.post("/files/close", f"number={number}")[0], 401)
            self.assertEqual(self.post("/files/close", f"number={number}", Authorization="Bearer " + "x" * 20)[0], 401)
            self.assertIn("held", self.ask("/files", Cookie=cookie)[2])
            self.assertEqual(self.post("/files/close", f"number={number}", Authorization=f"Bearer {TOKEN}")[0], 303)
            self.assertNotIn("held", self.ask("/files", Cookie=cookie)[2])
        self.assertIn('msg="wrong token for the web page"', log[0])
        self.assertRegex(log[0], r'msg="file closed by administrator" by="web page, program at 127\.0\.0\.1:\d+" user="u"')


if __name__ == "__main__":
    unittest.main()
