"""For tests of the program: a server, started as from a shell."""

import contextlib
import socket
import subprocess


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
    _, messages = process.communicate(timeout=60)
    if log is not None:
        log.append(messages)
    if end == "terminate":
        case.assertEqual(process.returncode, 0, messages)
