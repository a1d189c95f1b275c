"""For tests of the program: a server, started as from a shell."""

import contextlib
import signal
import socket
import subprocess
import time

SECONDS_MAX = 60


@contextlib.contextmanager
def running_server(case, program, directory, users, *arguments, end="terminate", environment=None, log=None):
    """Starts a server of the share `files` and waits for the end of its banner. Returns its port and the banner. At the
    end of the test it receives the signal `end`; after terminate it must exit with 0. `case` is the test, which fails
    otherwise; it cleans up in any case. The messages of the server are appended to the list `log`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [program, "serve", f"files={directory}", "--listen", "127.0.0.1", "--port", str(port), "--users-file", str(users),
         *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    case.addCleanup(process.wait)
    case.addCleanup(process.kill)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("I/O"):
            break
    yield port, "".join(lines)
    getattr(process, end)()
    _, messages = process.communicate(timeout=SECONDS_MAX)
    if log is not None:
        log.append(messages)
    if end == "terminate":
        case.assertEqual(process.returncode, 0, messages)


class ConfiguredServer:
    """For a test case: a server with the configuration `self.file`, whose output goes to `self.log`. The passwords of its users are
    their names."""

    program = None
    account = ()  # the command that starts the server as another account
    port = 0

    def start(self, *arguments):
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*self.account, self.program, "serve", *(arguments or ("--config", str(self.file)))], stdout=log,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.addCleanup(self.stop)
        self.wait_for("I/O ")
        self.port = next(int(line.rsplit(":", 1)[1]) for line in self.said().splitlines() if line.startswith("Listening"))

    def stop(self):
        self.process.terminate()
        self.assertEqual(self.process.wait(SECONDS_MAX), 0, self.said())

    def said(self):
        return self.log.read_text(errors="replace")

    def wait_for(self, text, count=1):
        until = time.monotonic() + SECONDS_MAX
        while self.said().count(text) < count:
            self.assertIsNone(self.process.poll(), self.said())
            self.assertLess(time.monotonic(), until, self.said())
            time.sleep(0.02)

    def reload(self, text="configuration reloaded"):
        count = self.said().count(text)
        self.process.send_signal(signal.SIGHUP)
        self.wait_for(text, count + 1)

    def run_as(self, user, share, command="ls"):
        """Returns what smbclient prints; for None, as an anonymous user."""
        who = ["-N"] if user is None else ["-U", f"{user}%{user}"]
        return subprocess.run(["smbclient", "-p", str(self.port), f"//127.0.0.1/{share}", *who, "-c", command], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS_MAX,
                              cwd=self.scratch).stdout
