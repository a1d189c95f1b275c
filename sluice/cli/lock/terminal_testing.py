"""terminal_testing.py PROGRAM FILE: runs `sluice lock` as the foreground job of a shell on its own terminal, types
Ctrl-Z and Ctrl-C, and prints the results. For lock_test.py."""

import os
import pty
import signal
import sys

COMMAND = """
import signal, sys
count = 0
def interrupted(*_):
    global count
    count += 1
    print("interrupted", flush=True)
signal.signal(signal.SIGINT, interrupted)
print("held", flush=True)
sys.stdin.readline()
print("total", count, flush=True)
sys.exit(3)
"""


def foreground(group):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
    os.tcsetpgrp(0, group)


def shell(program, file, out):
    """The session leader: one job, with job control."""
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        foreground(os.getpgrp())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTTOU])
        os.execv(program, [program, "lock", file, sys.executable, "-c", COMMAND])
    _, status = os.waitpid(job, os.WUNTRACED)
    foreground(os.getpgrp())
    os.write(out, b"stopped\n" if os.WIFSTOPPED(status) else b"ended\n")
    foreground(job)
    os.kill(-job, signal.SIGCONT)
    os.write(out, b"continued\n")
    _, status = os.waitpid(job, os.WUNTRACED)
    os.write(out, b"status %d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def read_until(terminal, wanted, seen=b""):
    while wanted not in seen:
        try:
            more = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            more = b""
        if not more:
            sys.exit(f"no {wanted} in {seen}")
        seen += more
    return seen.partition(wanted)[2]


def main():
    program, file = sys.argv[1:]
    reports, out = os.pipe()
    leader, terminal = pty.fork()
    if leader == 0:
        os.close(reports)
        shell(program, file, out)
    os.close(out)
    reports = os.fdopen(reports)
    rest = read_until(terminal, b"held")
    os.write(terminal, b"\x1a")
    print(reports.readline(), end="")
    print(reports.readline(), end="")
    os.write(terminal, b"\x03")
    rest = read_until(terminal, b"interrupted", rest)
    os.write(terminal, b"\n")
    read_until(terminal, b"total 1\r\n", rest)
    print("interrupted once")
    print(reports.readline(), end="")
    os.waitpid(leader, 0)


if __name__ == "__main__":
    main()
