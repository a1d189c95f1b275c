"""A `sluice serve` for tests: started on a port of its own, stopped with its exit status looked at."""

import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import time

MULTIPLEXERS = ("io_uring", "epoll")
USER = "walker"
PASSWORD = "Stone-Bridge-7"

START_SECONDS_MAX = 30
STOP_SECONDS_MAX = 30


class ServerFault(AssertionError):
    """The server did not start, died, or did not end as it should; the text has the end of its log."""


class Server:
    """`sluice serve SHARE=FOLDER` while the `with` block runs.

    Listens on 127.0.0.1 and a port that the kernel chose, unless `port` names one. Leaving the block ends it with
    SIGTERM and raises ServerFault if it was dead before or ends with anything but 0.
    """

    def __init__(self, program, folder, multiplexer="io_uring", arguments=(), share="share", port=0,
                 listen="127.0.0.1"):
        self.share = share
        self.folder = pathlib.Path(folder)
        self.multiplexer = multiplexer
        self._state = tempfile.TemporaryDirectory(prefix="sluice-served-")
        self._log = pathlib.Path(self._state.name) / "log"
        self._command = [str(program), "serve", f"{share}={self.folder}", "--listen", f"{listen}:{port}",
                         "--users-file", str(pathlib.Path(self._state.name) / "users"),
                         "--user", f"{USER}%{PASSWORD}", *arguments]
        self._process = None
        self.port = port

    def __enter__(self):
        environment = dict(os.environ, SLUICE_MULTIPLEXER=self.multiplexer)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log,
                                             stderr=subprocess.STDOUT, env=environment)
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            listening = re.search(r"^Listening +\S+:(\d+)\b", self.log(), re.MULTILINE)
            if listening:
                self.port = int(listening[1])
                return self
            if self._process.poll() is not None or time.monotonic() > deadline:
                why = self._describe("did not start")
                self._kill()
                raise ServerFault(why)
            time.sleep(0.02)

    def __exit__(self, kind, value, traceback):
        try:
            if self._process.poll() is not None:
                raise ServerFault(self._describe(f"died with status {self._process.returncode}"))
            self._process.send_signal(signal.SIGTERM)
            try:
                status = self._process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                raise ServerFault(self._describe(f"did not end {STOP_SECONDS_MAX} s after SIGTERM")) from None
            if status != 0:
                raise ServerFault(self._describe(f"ended with status {status}"))
        finally:
            self._kill()

    @property
    def pid(self):
        return self._process.pid

    def is_alive(self):
        return self._process.poll() is None

    def log(self):
        return self._log.read_text(errors="replace")

    def log_tail(self, lines=15):
        return "\n".join(self.log().splitlines()[-lines:])

    def memory_bytes(self):
        """What the server holds in RAM now."""
        pages = int(pathlib.Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize()

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def cpu_seconds(self):
        """User and system time so far."""
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _describe(self, what):
        return f"the server {what}: SLUICE_MULTIPLEXER={self.multiplexer} {' '.join(self._command)}\n{self.log_tail()}"

    def _kill(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._state.cleanup()
