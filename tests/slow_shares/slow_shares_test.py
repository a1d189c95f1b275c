#!/usr/bin/env python3
"""Clients of a local share while the file systems of other shares are slow or hang, SIGHUP and SIGTERM arrive.

    tests/slow_shares/slow_shares_test.py build/release/sluice/cli/sluice [TEST]...

Skipped without the right to mount FUSE, or without python3-fusepy.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "bench"))
import smb_slow_share as load  # noqa: E402  (found through the line above)

SKIPPED = 77
STOP_SECONDS_MAX = 10
RELOADED = "configuration reloaded"
SILENT = "the file system of a share does not answer"
LEFT_OUT = 'effect="it is not served until it answers"'
RELOAD_WAITS = 'msg="a reload waits for a file system; the server ends without it"'
ENDS_WITHOUT = 'msg="a file system does not answer; the server ends without it"'


class Server(load.Server):
    """`sluice serve` with a configuration file of shares, a dictionary of directories, for guests."""

    name = "sluice"

    def __init__(self, state, shares, program):
        super().__init__(state)
        self.config = state / "sluice.toml"
        self.configure(shares)
        self.start([str(program), "serve", "--config", str(self.config), "--listen", "127.0.0.1", "--port", str(self.port),
                    "--users-file", str(state / "users"), "--status-socket", str(state / "status"), "--guest", "--guest-write", "--no-signing",
                    "--loops", "2", "--no-confinement"])

    def configure(self, shares, comment=""):
        fresh = self.config.with_suffix(".new")
        fresh.write_text("".join(f'[[share]]\nname = "{name}"\npath = "{path}"\ncomment = "{comment}"\n'
                                 for name, path in shares.items()), encoding="utf-8")
        fresh.rename(self.config)

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def has_logged(self, text, count=1, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.log().count(text) >= count:
                return True
            time.sleep(0.02)
        return False


class SlowShares(unittest.TestCase):
    program = None

    def setUp(self):
        self.cleanup = contextlib.ExitStack()
        self.addCleanup(self.cleanup.close)
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="sluice-slow-shares-"))
        self.cleanup.callback(shutil.rmtree, self.scratch, ignore_errors=True)
        self.scratch.chmod(0o755)
        self.fast = self.directory("fast")
        self.state = self.directory("state")

    def directory(self, name):
        path = self.scratch / name
        self.make_usable(path)
        return path

    def make_usable(self, path):
        """Creates the directories that load.do_round() uses."""
        for each in path, path / "directory":
            each.mkdir(exist_ok=True)
            each.chmod(0o777)

    def slow(self, name, mount_point=None):
        mount = load.SlowMount(self.scratch, name, mount_point)
        self.make_usable(mount.source)
        return self.cleanup.enter_context(mount)

    def serve(self, shares):
        server = Server(self.state, shares, self.program)
        self.cleanup.callback(server.kill)
        return server

    def work(self, server, rounds, share="fast"):
        """Does each operation in the share, after the requests of hang() have arrived; a server that hangs makes it time out."""
        time.sleep(1)
        client = load.Client(server.port, share)
        for number in range(rounds):
            load.do_round(client, number, {operation: [] for operation in load.OPERATIONS})
        client.socket.close()

    def settled_threads(self, server):
        """Returns the number of threads, once those that were ending have ended."""
        seen = [-1, -2]
        while seen[-1] != seen[-2]:
            time.sleep(0.5)
            seen.append(len(os.listdir(f"/proc/{server.process.pid}/task")))
        return seen[-1]

    def read_file(self, server, share):
        client = load.Client(server.port, share)
        file = client.open("file")
        client.read(file)
        client.close_file(file)
        client.socket.close()

    def hang(self, server, share, path="file"):
        """Sends requests that hang, from more clients than a file system has threads. They end with their processes."""
        for _ in range(3):
            client = load.multiprocessing.Process(target=load.load_share, args=(server.port, share, path), daemon=True)
            client.start()
            self.cleanup.callback(client.kill)

    def assert_ends(self, server):
        seconds = server.stop()
        self.assertIsNotNone(seconds, server.log()[-2000:])
        self.assertLess(seconds, STOP_SECONDS_MAX)

    def assert_ends_without(self, server, hung):
        """The kernel keeps the process until the calls of `hung`, by the names of their shares, return; but it serves nothing
        any more, and its successor may listen."""
        server.process.send_signal(signal.SIGTERM)
        for share in hung:
            self.assertTrue(server.has_logged(f'{ENDS_WITHOUT} shares="{share}"', seconds=STOP_SECONDS_MAX), server.log()[-2000:])
        with socket.create_server(("127.0.0.1", server.port)):
            pass
        for mount in hung.values():
            mount.set("0")
        server.process.wait(STOP_SECONDS_MAX)

    def test_a_share_that_hangs_delays_neither_another_one_nor_the_end_after_sigterm(self):
        hung = self.slow("hung")
        server = self.serve({"fast": self.fast, "hung": hung.mount_point})
        hung.set("hang")
        self.hang(server, "hung")
        self.work(server, 20)
        self.assert_ends_without(server, {"hung": hung})

    def test_eight_shares_that_hang_delay_neither_another_one_nor_the_end_after_sigterm(self):
        mounts = {f"hung{number}": self.slow(f"hung{number}") for number in range(8)}
        server = self.serve({"fast": self.fast, **{name: each.mount_point for name, each in mounts.items()}})
        for name, each in mounts.items():
            each.set("hang")
            self.hang(server, name)
        self.work(server, 20)
        self.assert_ends_without(server, mounts)

    def test_a_mount_that_hangs_inside_a_local_share_delays_no_client_of_the_rest_of_it(self):
        (self.fast / "mounted").mkdir()
        inside = self.slow("inside", self.fast / "mounted")
        server = self.serve({"fast": self.fast})
        inside.set("hang")
        self.hang(server, "fast", "mounted\\file")
        self.work(server, 20)
        self.assert_ends_without(server, {"fast": inside})

    def test_calls_of_200_ms_delay_no_client_of_another_share(self):
        slow = self.slow("slow")
        server = self.serve({"fast": self.fast, "slow": slow.mount_point})
        slow.set("0.2")
        self.hang(server, "slow")
        self.work(server, 20)
        slow.set("0")
        self.assert_ends(server)

    def test_sighup_while_the_root_of_a_share_hangs_reloads_the_others(self):
        hung = self.slow("hung")
        shares = {"fast": self.fast, "hung": hung.mount_point}
        server = self.serve(shares)
        client = load.Client(server.port, "fast")
        file = client.open("before")
        hung.set("hang")
        time.sleep(1.2)  # the kernel forgets the attributes of the root
        server.configure({**shares, "new": self.directory("new")}, "after")
        server.reload()
        for _ in range(20):
            client.stat(file)
            time.sleep(0.05)
        self.work(server, 5)
        self.assertTrue(server.has_logged(SILENT), server.log()[-2000:])
        self.assertTrue(server.has_logged(RELOADED))
        self.work(server, 1, "new")
        client.stat(file)
        hung.set("0")
        self.read_file(server, "hung")
        self.assert_ends(server)

    def test_a_new_share_that_hangs_at_sighup_is_served_when_it_answers(self):
        hung = self.slow("hung")
        server = self.serve({"fast": self.fast})
        hung.set("hang")
        server.configure({"fast": self.fast, "hung": hung.mount_point})
        server.reload()
        self.assertTrue(server.has_logged(LEFT_OUT), server.log()[-2000:])
        self.work(server, 5)
        hung.set("0")
        self.assertTrue(server.has_logged(RELOADED, 2), server.log()[-2000:])
        self.read_file(server, "hung")
        self.assert_ends(server)

    def test_each_sighup_leaves_no_further_thread_while_a_share_hangs(self):
        hung = self.slow("hung")
        shares = {"fast": self.fast, "hung": hung.mount_point}
        server = self.serve(shares)
        hung.set("hang")
        time.sleep(1.2)  # the kernel forgets the attributes of the root
        counts = []
        for number in range(3):
            server.configure(shares, f"comment {number}")
            server.reload()
            self.assertTrue(server.has_logged(RELOADED, number + 1), server.log()[-2000:])
            counts.append(self.settled_threads(server))
        self.assertEqual(counts[1:], counts[:-1])
        hung.set("0")
        self.assert_ends(server)

    def test_sigterm_after_a_sighup_names_the_path_that_does_not_answer(self):
        hung = self.slow("hung")
        server = self.serve({"fast": self.fast, "hung": hung.mount_point})
        hung.set("hang")
        time.sleep(1.2)  # the kernel forgets the attributes of the root
        server.reload()
        self.assertTrue(server.has_logged(RELOADED), server.log()[-2000:])
        server.process.send_signal(signal.SIGTERM)
        self.assertTrue(server.has_logged(f'{RELOAD_WAITS} path="{hung.mount_point}"', seconds=STOP_SECONDS_MAX),
                        server.log()[-2000:])
        hung.set("0")
        server.process.wait(STOP_SECONDS_MAX)

    def test_sighup_ten_times_a_second_disturbs_no_client(self):
        shares = {"fast": self.fast, "other": self.directory("other")}
        server = self.serve(shares)
        is_over = threading.Event()

        def reload_often():
            number = 0
            while not is_over.is_set():
                number += 1
                server.configure(shares, f"comment {number % 3}")
                server.reload()
                time.sleep(0.1)

        client = load.Client(server.port, "fast")
        file = client.open("stays")
        reloading = threading.Thread(target=reload_often)
        reloading.start()
        try:
            for _ in range(3):
                self.work(server, 30)
                self.work(server, 30, "other")
                client.stat(file)
        finally:
            is_over.set()
            reloading.join()
        self.assertTrue(server.has_logged(RELOADED, 5))
        self.assertNotIn("cannot reload", server.log())
        client.socket.close()
        self.assert_ends(server)


def is_possible():
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse cannot be opened"
    if not (shutil.which("fusermount") or shutil.which("fusermount3")):
        return "fusermount is not installed"
    try:
        load.python_with_fuse()
    except SystemExit as missing:
        return str(missing)
    with tempfile.TemporaryDirectory(prefix="sluice-slow-shares-") as scratch:
        try:
            with load.SlowMount(pathlib.Path(scratch), "probe"):
                return ""
        except RuntimeError as why:
            return str(why)


def main():
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} PROGRAM [TEST]...")
    SlowShares.program = pathlib.Path(sys.argv.pop(1)).resolve()
    if why := is_possible():
        print(f"skipped: {why}")
        sys.exit(SKIPPED)
    unittest.main(warnings="ignore")  # of sockets that a client leaves open


if __name__ == "__main__":
    main()
