"""sluice lock as a shell sees it. Run by ctest with the program as the last argument.

Processes wait for each other by pipes: a process that must stay alive ends when its standard input ends.
"""

import contextlib
import fcntl
import itertools
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop() if __name__ == "__main__" else None
QUEUES = "memory_map", "atomic_append"
ALGORITHMS = *QUEUES, "byte_ranges", "lock_files"

# Starts a process in its own session, and waits for it. The process writes its process id, and
# lives until the end of its input. `close_fds`: whether it does not inherit the descriptors of the
# lock.
PARENT = """
import subprocess, sys
child = [sys.executable, "-c", "import os, sys; os.write(1, b'%d\\\\n' % os.getpid()); os.close(1); sys.stdin.read()"]
subprocess.Popen(child, start_new_session=True, close_fds=CLOSE_FDS)WAIT
"""


def parent_of_a_process(inherits, waits=True):
    text = PARENT.replace("CLOSE_FDS", str(not inherits)).replace("WAIT", ".wait()" if waits else "")
    return [sys.executable, "-c", text]


def sluice(*arguments, **options):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60, **options)


class LockTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.directory = scratch.name
        self.file = os.path.join(scratch.name, "jobs")

    def start(self, *arguments, command, **options):
        """Starts a process that holds the lock and runs the command. Returns after the command has written a line."""
        process = subprocess.Popen([PROGRAM, "lock", *arguments, self.file, "--", *command], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        for stream in process.stdin, process.stdout, process.stderr:
            self.addCleanup(stream.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.first_line = process.stdout.readline()
        if not process.first_line:
            self.fail(process.stderr.read())
        return process

    @contextlib.contextmanager
    def holding(self, *arguments):
        process = self.start(*arguments, command=["sh", "-c", "echo held; read line"])
        yield process
        process.communicate("\n", timeout=60)

    def is_free(self, *arguments):
        done = sluice("lock", "-n", *arguments, self.file, "--", "echo", "ran")
        self.assertIn((done.returncode, done.stdout), ((0, "ran\n"), (1, "")), done.stderr)
        return done.returncode == 0

    def wait_until_free(self, *arguments):
        """Waits for the lock. Returns whether the death of a previous holder was reported."""
        done = sluice("lock", *arguments, self.file, "--", "sh", "-c", "echo $SLUICE_LOCK_OWNER_DIED")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout == "1\n"

    def listed(self, *arguments):
        return sluice("lock", "--list", *arguments, self.file).stdout


def kinds():
    """Returns every kind of lock: (algorithm, options)."""
    for algorithm in ALGORITHMS:
        yield algorithm, ["--algorithm", algorithm]
        yield algorithm, ["--algorithm", algorithm, "--exclusive", "a", "--exclusive", "b"]
    yield "flock", ["--algorithm", "flock"]


class Command(LockTest):
    def test_the_status_is_that_of_the_command_as_a_shell_reports_it(self):
        self.assertEqual(sluice("lock", self.file, "--", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(sluice("lock", self.file, "--", "sh", "-c", "kill -TERM $$").returncode, 128 + 15)
        self.assertEqual(sluice("lock", self.file, "--", "echo", "--shared").stdout, "--shared\n")

    def test_a_command_that_cannot_run_is_69_and_named(self):
        for command in "/no/such/program", "/etc/passwd":
            done = sluice("lock", self.file, "--", command)
            self.assertEqual(done.returncode, 69)
            self.assertIn(f"{command}: execute: ", done.stderr)

    def test_without_a_command_or_with_wrong_options_nothing_is_done(self):
        for line in ([], ["--algorithm", "hope", self.file, "true"], ["--timeout", "-1", self.file, "true"],
                     ["-F", "-o", self.file, "true"], [self.file], [self.file, "--"], ["--list", self.file, "true"],
                     ["--exclusive", "a", "-s", self.file, "--", "true"]):
            with self.subTest(line=line):
                done = sluice("lock", *line)
                self.assertEqual(done.returncode, 64)
                self.assertRegex(done.stderr, r"\Asluice lock: .+\nUsage: ")
        self.assertEqual(os.listdir(self.directory), [])

    def test_names_exclude_each_other_in_every_algorithm(self):
        for algorithm in ALGORITHMS:
            with self.subTest(algorithm=algorithm):
                self.file += "x"
                chosen = "--algorithm", algorithm
                with self.holding(*chosen, "--exclusive", "a", "--exclusive", "b"):
                    self.assertFalse(self.is_free(*chosen, "--exclusive", "b", "--exclusive", "c"))
                    self.assertTrue(self.is_free(*chosen, "--exclusive", "c"))
                self.assertTrue(self.is_free(*chosen, "--exclusive", "b"))

    def test_a_conflict_is_silent_unless_verbose(self):
        for options, remedy in ([], "held by another process\n"), (["--algorithm", "memory_map"], "--list"):
            self.file += "x"
            with self.holding(*options):
                self.assertEqual(sluice("lock", "-n", *options, self.file, "true").stderr, "")
                self.assertIn(remedy, sluice("lock", "-n", "--verbose", *options, self.file, "true").stderr)

    def test_shared_names_are_shared(self):
        with self.holding("--shared", "a"):
            self.assertTrue(self.is_free("--shared", "a"))
            self.assertFalse(self.is_free("--exclusive", "a"))
            self.assertEqual(sluice("lock", "-w", "0.1", "-E", "9", "--exclusive", "a", self.file, "--", "true").returncode, 9)

    def test_a_whole_file_is_shared_with_s(self):
        for algorithm in "memory_map", "atomic_append", "byte_ranges", "flock":
            with self.subTest(algorithm=algorithm):
                self.file += "x"
                with self.holding("-s", "--algorithm", algorithm):
                    self.assertTrue(self.is_free("-s", "--algorithm", algorithm))
                    self.assertFalse(self.is_free("-x", "--algorithm", algorithm))

    def test_a_shared_lock_with_an_exclusive_algorithm_is_refused_with_the_remedy(self):
        os.mkdir(self.file)
        for line in (["-s", "--algorithm", "lock_files", self.file, "true"],
                     ["--shared", "a", "--algorithm", "lock_files", self.file, "--", "true"],
                     ["--shared", "a", self.file, "--", "true"]):
            done = sluice("lock", *line)
            self.assertEqual(done.returncode, 64)
            self.assertRegex(done.stderr, "lock_files has only exclusive locks; use another")

    def test_names_without_a_separator_are_refused_because_the_options_of_flock_take_none(self):
        done = sluice("lock", "--exclusive", self.file, "echo", "ran")
        self.assertEqual((done.returncode, done.stdout), (64, ""))
        self.assertIn("use -x", done.stderr)

    def test_list_shows_the_holder_and_creates_nothing(self):
        self.assertEqual(sluice("lock", "--list", self.file).returncode, 66)
        self.assertFalse(os.path.exists(self.file))
        for algorithm in QUEUES:
            self.file += "x"
            with self.subTest(algorithm=algorithm), self.holding("--algorithm", algorithm, "--exclusive", "a") as holder:
                listed = self.listed("--exclusive", "a")
                found = re.search(rf"(?m)^holds +(\d+) +{socket.gethostname()[:20]} .* exclusive:a$", listed)
                with open(f"/proc/{found[1]}/stat") as status:  # the holder process
                    self.assertEqual(int(status.read().rpartition(")")[2].split()[1]), holder.pid)

    def test_list_sends_no_escapes_of_a_damaged_file_to_the_terminal(self):
        os.mkdir(self.file)
        with open(os.path.join(self.file, "000000000000002a"), "w") as file:
            file.write("host \x1b[31mred\nboot y\npid 1\nstart 1\n")
        listed = self.listed("--algorithm", "lock_files")
        self.assertIn(" ?[31mred ", listed)
        self.assertNotIn("\x1b", listed)

    def test_list_does_not_write_to_a_file_that_is_not_a_mutex(self):
        open(self.file, "w").close()
        self.assertEqual(self.listed().count("\n"), 1)
        self.assertEqual(os.path.getsize(self.file), 0)

    def test_a_lock_on_the_users_file_keeps_editors_waiting(self):
        users = os.path.join(self.directory, "users")
        self.file = f"{users}.lock"
        with self.holding():
            editor = subprocess.Popen([PROGRAM, "user", "--users-file", users, "add", "bob"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
            editor.stdin.write("secret\n")
            editor.stdin.close()
            with self.assertRaises(subprocess.TimeoutExpired):
                editor.wait(0.5)
            self.assertFalse(os.path.exists(users))
        self.assertEqual(editor.wait(20), 0)
        editor.stdout.close()
        self.assertEqual(sluice("user", "--users-file", users, "list").stdout, "bob\n")
        self.assertFalse(os.path.exists(self.file))


class Descendants(LockTest):
    def test_a_process_that_outlives_the_command_keeps_the_lock_after_sigterm(self):
        for algorithm, options in kinds():
            for inherits in True, False:
                with self.subTest(options=options, inherits=inherits):
                    self.file += "x"
                    holder = self.start(*options, command=parent_of_a_process(inherits))
                    holder.terminate()
                    self.assertEqual(holder.wait(60), -signal.SIGTERM)
                    self.assertFalse(self.is_free(*options))
                    holder.stdin.close()
                    self.assertFalse(self.wait_until_free(*options))

    def test_a_background_process_keeps_the_lock_and_the_caller_does_not_wait_for_it(self):
        holder = self.start(command=parent_of_a_process(inherits=False, waits=False))
        self.assertEqual(holder.stdout.read(), "")  # no other process has the pipe open
        self.assertEqual(holder.wait(60), 0)
        self.assertFalse(self.is_free())
        holder.stdin.close()
        self.wait_until_free()

    def test_release_on_exit_and_close_do_not_wait_for_descendants(self):
        for option in "--release-on-exit", "-o":
            for algorithm, options in kinds():
                with self.subTest(options=options, option=option):
                    self.file += "x"
                    holder = self.start(option, *options, command=parent_of_a_process(inherits=True))
                    self.assertFalse(self.is_free(*options))
                    holder.terminate()
                    self.assertEqual(holder.wait(60), -signal.SIGTERM)
                    self.assertTrue(self.is_free(*options))

    def test_the_command_keeps_the_lock_when_sluice_lock_is_killed(self):
        for algorithm, options in kinds():
            with self.subTest(options=options):
                self.file += "x"
                holder = self.start(*options, command=["sh", "-c", "echo held; read line"])
                holder.kill()
                holder.wait(60)
                self.assertFalse(self.is_free(*options))
                holder.stdin.close()
                self.assertFalse(self.wait_until_free(*options))

    def holder_process(self, front):
        with open(f"/proc/{front.pid}/task/{front.pid}/children") as children:
            return int(children.read())

    def test_inherited_descriptors_keep_the_lock_when_the_holder_is_killed_too(self):
        for algorithm, options in kinds():
            with self.subTest(options=options):
                self.file += "x"
                front = self.start(*options, command=parent_of_a_process(inherits=True))
                os.kill(self.holder_process(front), signal.SIGKILL)
                self.assertEqual(front.wait(60), 128 + signal.SIGKILL)
                self.assertIn("keeps the lock", front.stderr.readline())
                self.assertFalse(self.is_free(*options))
                if algorithm != "lock_files" or "--exclusive" not in options:
                    self.assertFalse(self.is_free("-F", *options))
                front.stdin.close()
                # The refusals above must not consume the report of the death.
                self.assertEqual(self.wait_until_free(*options), algorithm in (*QUEUES, "lock_files"))
                self.assertFalse(self.wait_until_free(*options))

    def test_no_fork_keeps_the_lock_in_the_command(self):
        for algorithm, options in kinds():
            if algorithm == "lock_files" and "--exclusive" in options:
                continue
            with self.subTest(options=options):
                self.file += "x"
                holder = self.start("-F", *options, command=["sh", "-c", "echo $$; read line"])
                self.assertEqual(int(holder.first_line), holder.pid)
                self.assertFalse(self.is_free(*options))
                holder.communicate("\n", timeout=60)
                self.assertFalse(self.wait_until_free(*options))

    def test_no_fork_with_names_in_a_directory_is_refused_with_the_remedy(self):
        done = sluice("lock", "-F", "--algorithm", "lock_files", "--exclusive", "a", self.file, "--", "true")
        self.assertEqual(done.returncode, 64)
        self.assertRegex(done.stderr, "--no-fork is not possible with lock_files.*byte_ranges")


class OtherContent(LockTest):
    """A file that is not a lock file by itself keeps its content and its name."""

    def test_a_disk_image_is_neither_changed_nor_removed(self):
        image = bytes(1080) + b"S" + bytes((1 << 20) - 1081)  # ext4 has its signature there
        with open(self.file, "wb") as file:
            file.write(image)
        for options, status in (([], 0), (["-s"], 0), (["--exclusive", "a"], 66), (["--algorithm", "memory_map"], 66),
                                (["--algorithm", "atomic_append"], 66), (["--algorithm", "byte_ranges"], 0)):
            with self.subTest(options=options):
                self.assertEqual(sluice("lock", *options, self.file, "--", "true").returncode, status)
                with open(self.file, "rb") as file:
                    self.assertEqual(file.read(), image)

    def test_a_file_that_was_locked_as_a_whole_stays_the_same_file(self):
        for algorithm in "best", *QUEUES, "flock":
            with self.subTest(algorithm=algorithm):
                self.file += "x"
                with self.holding("--algorithm", algorithm):
                    before = os.stat(self.file)
                self.assertTrue(os.path.samestat(os.stat(self.file), before))
                self.assertTrue(self.is_free("--algorithm", algorithm))
                self.assertTrue(os.path.samestat(os.stat(self.file), before))

    def test_a_shell_may_cut_the_file_while_it_is_locked(self):
        for redirection in "9>", "9>>":
            with self.subTest(redirection=redirection):
                with self.holding() as holder:
                    script = f'( "$1" lock -n 9; echo $? ) {redirection}"$2"'
                    done = subprocess.run(["sh", "-c", script, "sh", PROGRAM, self.file], capture_output=True, text=True)
                    self.assertEqual((done.stdout, done.stderr), ("1\n", ""))
                self.assertEqual(holder.returncode, 0)
                self.assertTrue(self.is_free())
                self.assertEqual(os.path.getsize(self.file), 0)

    @unittest.skipUnless(shutil.which("flock"), "flock(1) is not installed")
    def test_a_waiting_flock_gets_the_file_of_that_name(self):
        for algorithm in "best", "memory_map":
            with self.subTest(algorithm=algorithm):
                self.file += "x"
                with self.holding("--algorithm", algorithm):
                    before = os.stat(self.file)
                    waiter = subprocess.Popen(["flock", self.file, "sh", "-c", "echo granted; read line"], stdin=subprocess.PIPE,
                                              stdout=subprocess.PIPE, text=True)
                    self.addCleanup(waiter.communicate, "\n")
                    while not self.has_a_waiter(before.st_ino):
                        self.assertIsNone(waiter.poll())
                self.assertEqual(waiter.stdout.readline(), "granted\n")
                self.assertTrue(os.path.samestat(os.stat(self.file), before))
                self.assertFalse(self.is_free("--algorithm", algorithm))

    def has_a_waiter(self, inode):
        with open("/proc/locks") as locks:
            return any("->" in line and f":{inode} " in line for line in locks)

    def test_a_waiter_locks_the_file_that_has_the_name_by_then(self):
        open(self.file, "w").close()
        before = os.stat(self.file)
        descriptor = os.open(self.file, os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        waiter = subprocess.Popen([PROGRAM, "lock", self.file, "sh", "-c", "echo granted; read line"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(waiter.communicate, "\n")
        while not self.has_a_waiter(before.st_ino):
            self.assertIsNone(waiter.poll())
        os.unlink(self.file)
        open(self.file, "w").close()
        os.close(descriptor)
        self.assertEqual(waiter.stdout.readline(), "granted\n")
        self.assertFalse(self.is_free())


class ClosedDescriptors(LockTest):
    def test_descriptors_closed_by_the_caller_are_closed_in_the_command_and_the_lock_file_is_unchanged(self):
        report = os.path.join(self.directory, "report")
        command = 'for n in 0 1 2; do [ -e /proc/$$/fd/$n ] && echo $n; done >"$0"; echo out; echo error >&2; true'
        for options in [], ["-F"], ["-o"]:
            for closed in itertools.product([False, True], repeat=3):
                with self.subTest(options=options, closed=closed):
                    self.file += "x"
                    redirections = " ".join(text for text, is_closed in zip(("<&-", ">&-", "2>&-"), closed) if is_closed)
                    script = f'exec "$@" {redirections}'
                    done = subprocess.run(["sh", "-c", script, "sh", PROGRAM, "lock", *options, self.file, "sh", "-c", command, report],
                                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    with open(report) as found:
                        # The redirection to the report takes 1 if it is closed, for as long as the report is written.
                        open_ones = {int(line) for line in found} - {1}
                    self.assertEqual(open_ones, {n for n in (0, 2) if not closed[n]})
                    self.assertEqual(os.path.getsize(self.file), 0)
                    self.assertEqual(done.stdout, "" if closed[1] else "out\n")

    def test_a_closed_descriptor_is_refused(self):
        for number in "0", "1", "2":
            for option in "-x", "-u":
                with self.subTest(number=number, option=option):
                    done = subprocess.run(["sh", "-c", f'exec "$@" {number}>&-', "sh", PROGRAM, "lock", option, number],
                                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
                    self.assertEqual(done.returncode, 65)


class Signals(LockTest):
    def test_the_outcome_is_known_although_the_caller_ignores_sigchld(self):
        ignore = lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        self.assertEqual(sluice("lock", self.file, "sh", "-c", "exit 7", preexec_fn=ignore).returncode, 7)
        front = self.start(command=["sh", "-c", "echo held; read line"], preexec_fn=ignore)
        with open(f"/proc/{front.pid}/task/{front.pid}/children") as children:
            os.kill(int(children.read()), signal.SIGKILL)
        self.assertEqual(front.wait(60), 128 + signal.SIGKILL)
        self.assertIn("was killed by signal 9", front.stderr.readline())

    def test_signals_are_forwarded_to_the_command(self):
        for number in signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2:
            with self.subTest(signal=number):
                # A trap of a shell may run only after the next command.
                script = (f"import signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [{int(number)}]); "
                          f"print('held', flush=True); signal.sigwait([{int(number)}]); print('got'); sys.exit(3)")
                holder = self.start(command=[sys.executable, "-c", script])
                holder.send_signal(number)
                self.assertEqual(holder.stdout.read(), "got\n")
                self.assertEqual(holder.wait(60), 3)

    def test_a_signal_while_waiting_ends_the_wait(self):
        with self.holding("--algorithm", "memory_map"):
            waiter = subprocess.Popen([PROGRAM, "lock", self.file, "true"])
            while not re.search(r"(?m)^waits ", self.listed()):
                pass
            waiter.terminate()
            self.assertEqual(waiter.wait(60), -signal.SIGTERM)
            while re.search(r"(?m)^waits ", self.listed()):  # until its death is detected
                pass

    def test_ctrl_c_and_ctrl_z_reach_the_command_once_and_the_job_continues(self):
        done = subprocess.run([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "terminal_testing.py"),
                               PROGRAM, self.file], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.stdout, done.returncode), ("stopped\ncontinued\ninterrupted once\nstatus 3\n", 0), done.stderr)


class Descriptors(LockTest):
    def open_file(self, flags=os.O_RDWR | os.O_CREAT):
        descriptor = os.open(self.file, flags, 0o600)
        self.addCleanup(os.close, descriptor)
        return str(descriptor), {"pass_fds": [descriptor]}

    def test_a_descriptor_is_locked_until_it_is_unlocked_or_closed(self):
        first, passed = self.open_file()
        second, passed_too = self.open_file()
        self.assertEqual(sluice("lock", "-n", first, **passed).returncode, 0)
        self.assertEqual(sluice("lock", "-n", first, **passed).returncode, 0)
        refused = sluice("lock", "-n", "-E", "9", second, **passed_too)
        self.assertEqual((refused.returncode, refused.stderr), (9, ""))
        self.assertEqual(sluice("lock", "-u", first, **passed).returncode, 0)
        self.assertEqual(sluice("lock", "-w", "60", second, **passed_too).returncode, 0)
        self.assertEqual(os.path.getsize(self.file), 0)

    def test_a_descriptor_opened_for_reading_only_can_be_locked(self):
        open(self.file, "w").close()
        descriptor, passed = self.open_file(os.O_RDONLY)
        self.assertEqual(sluice("lock", "-x", descriptor, **passed).returncode, 0)
        self.assertFalse(self.is_free("--algorithm", "flock"))

    def test_a_descriptor_excludes_the_file_in_every_algorithm_and_is_not_removed(self):
        for algorithm in *QUEUES, "byte_ranges", "flock", "best":
            with self.subTest(algorithm=algorithm):
                self.file += "x"
                descriptor, passed = self.open_file()
                self.assertEqual(sluice("lock", descriptor, **passed).returncode, 0)
                self.assertFalse(self.is_free("--algorithm", algorithm))
                self.assertFalse(self.is_free("-s", "--algorithm", algorithm))
                self.assertTrue(os.path.samestat(os.fstat(int(descriptor)), os.stat(self.file)))
                self.assertEqual(sluice("lock", "-u", descriptor, **passed).returncode, 0)
                with self.holding("--algorithm", algorithm):
                    self.assertEqual(sluice("lock", "-n", descriptor, **passed).returncode, 1)

    def test_a_descriptor_of_a_removed_file_is_refused_with_the_remedy(self):
        descriptor, passed = self.open_file()
        os.unlink(self.file)
        done = sluice("lock", descriptor, **passed)
        self.assertEqual(done.returncode, 65)
        self.assertIn("open the file again", done.stderr)

    def test_operations_unsupported_on_descriptors_are_refused_with_the_remedy(self):
        descriptor, passed = self.open_file()
        for line, rule in (["--exclusive", "a"], "names require a LOCKFILE"), (["--algorithm", "byte_ranges"], "only flock"):
            done = sluice("lock", *line, descriptor, **passed)
            self.assertEqual(done.returncode, 64)
            self.assertIn(f"descriptor {descriptor}: ", done.stderr)
            self.assertIn(rule, done.stderr)
        self.assertIn("-u releases the lock of a descriptor", sluice("lock", "-u", self.file, "true").stderr)


@unittest.skipUnless(shutil.which("flock"), "flock(1) is not installed")
class LikeFlock(LockTest):
    """The same command lines for both programs. FILE is a free file, HELD one that flock(1) has locked, SHARED one that it
    has locked shared; 8 and 9 are descriptors of FILE and HELD."""
    LINES = [
        "FILE true", "FILE sh -c 'exit 5'", "FILE sh -c 'kill -TERM $$'", "FILE -c 'echo $0; exit 6'",
        "FILE --command 'exit 6'", "FILE -c", "FILE -c 'exit 5' x", "-c true FILE", "FILE /no/such", "FILE /etc/passwd",
        "/no/such/file true", "FILE", "", "77", "9x", "99999999999", "-1", "--bogus FILE true", "-o -F FILE true",
        "-w x FILE true", "-w 0 FILE true", "-w .5 FILE true", "-w 1e-2 FILE true", "-E 300 FILE true", "-E x FILE true",
        "-E -1 FILE true", "-- FILE true", "-n FILE echo -n --shared", "-en FILE echo ran", "-x -s FILE true", "-e FILE true",
        "--nonblock FILE true", "--nb FILE true", "--timeout 1 FILE true", "--timeout=1 FILE true", "--wait 1 FILE true",
        "--close FILE true", "--no-fork FILE sh -c 'exit 4'", "--conflict-exit-code 7 FILE true", "-oF FILE true",
        "-n HELD true", "-n -E 9 HELD true", "-E9 -n HELD true", "-E 0 -n HELD true", "-w 0.01 HELD true", "-nw 5 HELD true",
        "-w 0 -E 8 HELD true", "-sn HELD true", "-n SHARED true", "-sn SHARED true", "-xsn SHARED true", "-sxn SHARED true",
        "-n --nonblock -n HELD true", "-Fn FILE true", "-on FILE true", "-n DIRECTORY true", "-n SCRIPT true",
        "8", "-n 8", "-s 8", "-x 8", "-u 8", "-n 9", "-sn 9", "-u 9", "-w 0.01 9", "-E 9 -n 9", "-E 9 -w 0.01 9",
    ]

    def run_line(self, words, line):
        path = lambda name: os.path.join(self.directory, name)
        for name in "FILE", "HELD", "SHARED", "DIRECTORY", "SCRIPT":
            line = line.replace(name, f"'{path(name)}'")
        script = f"exec 8>>'{path('FILE')}' 9>>'{path('HELD')}'; {words} {line}; status=$?; exec 8>&- 9>&-; exit $status"
        return subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, env={**os.environ, "SHELL": "/bin/sh"})

    def test_the_same_command_lines_have_the_same_statuses_and_output(self):
        path = lambda name: os.path.join(self.directory, name)
        os.mkdir(path("DIRECTORY"))
        with open(path("SCRIPT"), "w") as script:
            script.write("#!/bin/sh\n")
        held = [subprocess.Popen(["flock", mode, path(name), "sh", "-c", "echo held; read line"], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True) for mode, name in (("-x", "HELD"), ("-s", "SHARED"))]
        for holder in held:
            self.addCleanup(holder.communicate, "\n")
            holder.stdout.readline()
        for line in self.LINES:
            with self.subTest(line=line):
                theirs = self.run_line("flock", line)
                ours = self.run_line(f"'{PROGRAM}' lock", line)
                self.assertEqual((ours.returncode, ours.stdout, bool(ours.stderr)),
                                 (theirs.returncode, theirs.stdout, bool(theirs.stderr)), ours.stderr + theirs.stderr)

    def test_flock_and_sluice_lock_exclude_each_other(self):
        for algorithm in *QUEUES, "byte_ranges", "flock", "best":
            with self.subTest(algorithm=algorithm):
                self.file += "x"
                with self.holding("--algorithm", algorithm):
                    self.assertEqual(subprocess.run(["flock", "-n", self.file, "true"]).returncode, 1)
                open(self.file, "w").close()
                script = 'exec 9<"$1"; flock 9; exec "$2" lock -n --algorithm "$3" "$1" true'
                done = subprocess.run(["sh", "-c", script, "sh", self.file, PROGRAM, algorithm])
                self.assertEqual(done.returncode, 1)

    def test_a_background_process_keeps_the_lock_as_with_flock(self):
        for program in ["flock"], [PROGRAM, "lock"]:
            with self.subTest(program=program):
                self.file += "x"
                done = subprocess.Popen([*program, self.file, *parent_of_a_process(inherits=True, waits=False)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                done.stdout.readline()
                self.assertEqual(done.wait(60), 0)
                self.assertEqual(subprocess.run([*program, "-n", self.file, "true"]).returncode, 1)
                done.stdin.close()
                self.assertEqual(subprocess.run([*program, self.file, "true"]).returncode, 0)
                done.stdout.close()


class Permissions(LockTest):
    def created(self, *options, umask=0o077):
        holder = self.start(*options, command=["sh", "-c", "echo held; read line"], umask=umask)
        status = os.stat(self.file)
        holder.communicate("\n", timeout=60)
        return stat.S_IMODE(status.st_mode), status.st_gid

    def test_mode_is_exact_whatever_the_umask(self):
        for algorithm in *QUEUES, "byte_ranges", "flock":
            self.file += "x"
            self.assertEqual(self.created("--algorithm", algorithm, "--mode", "664")[0], 0o664)

    def test_the_default_follows_the_directory(self):
        for mode, expected in (0o755, 0o600), (0o770, 0o660), (0o2775, 0o660), (0o777, 0o666), (0o1777, 0o600):
            with self.subTest(mode=oct(mode)):
                self.file += "x"
                os.chmod(self.directory, mode)
                self.assertEqual(self.created()[0], expected)

    def test_a_wrong_mode_or_group_is_refused_with_value_and_rule(self):
        for option, value, rule in (("--mode", "888", "octal number"), ("--mode", "60", "octal number"),
                                    ("--mode", "1777", "octal number"), ("--group", "no-such-group", "name or the number")):
            done = sluice("lock", option, value, self.file, "true")
            self.assertEqual(done.returncode, 64)
            self.assertIn(f"invalid value '{value}' for {option}: ", done.stderr)
            self.assertIn(rule, done.stderr)

    def as_user(self, *arguments, user=65534, group=65534):
        return sluice("lock", "-n", *arguments, self.file, "true", user=user, group=group, extra_groups=[])

    @unittest.skipUnless(os.geteuid() == 0, "only root can be several users")
    def test_a_second_user_shares_the_file_by_group_and_by_mode_and_otherwise_gets_the_remedy(self):
        os.chmod(self.directory, 0o1777)
        for options in ["--group", "65534"], ["--mode", "666"]:
            with self.subTest(options=options), self.holding(*options):
                self.assertEqual(self.as_user(*options).returncode, 1)
        self.file += "x"
        with self.holding():
            refused = self.as_user()
            self.assertEqual(refused.returncode, 66)
            self.assertRegex(refused.stderr, "Permission denied.*--mode, --group, or chmod")
        os.chmod(self.directory, 0o2770)
        os.chown(self.directory, 0, 65534)
        self.file += "x"
        with self.holding():
            self.assertEqual(self.as_user().returncode, 1)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be several users")
    def test_a_file_of_another_user_in_a_sticky_directory_is_refused_unless_it_is_shared(self):
        os.chmod(self.directory, 0o1777)
        open(self.file, "w").close()
        os.chown(self.file, 65534, 65534)
        os.chmod(self.file, 0o666)
        refused = sluice("lock", "-n", "--exclusive", "a", self.file, "--", "true")
        self.assertEqual(refused.returncode, 66)
        self.assertIn("must belong to you, to root, or to the owner of the directory", refused.stderr)
        self.assertEqual(os.path.getsize(self.file), 0)
        self.assertEqual(sluice("lock", "-n", "--mode", "666", "--exclusive", "a", self.file, "--", "true").returncode, 0)


if __name__ == "__main__":
    unittest.main()
