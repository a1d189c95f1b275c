"""The server in the network view of another host: Avahi and wsdd in a second network namespace find it.

    discovery_test.py SLUICE

The two namespaces are joined by a virtual Ethernet link. Needs root; skipped with 77 where namespaces or the packages
avahi-daemon, avahi-utils and dbus are missing.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import served  # noqa: E402

PROGRAM = None
INSIDE = "SLUICE_DISCOVERY_TEST_INSIDE"
WAIT_SECONDS = 25
HOST_ADDRESS = "10.93.7.1"
PEER_ADDRESS = "10.93.7.2"

BUS_CONFIGURATION = """<busconfig><type>system</type><listen>unix:path={0}/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*" eavesdrop="false"/>
<allow receive_sender="*"/></policy></busconfig>
"""
AVAHI_CONFIGURATION = """[server]
host-name={0}
use-ipv4=yes
use-ipv6=yes
allow-interfaces={1}
[wide-area]
enable-wide-area=no
[publish]
publish-workstation=no
"""


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def wait_for(what, condition):
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.2)
    raise AssertionError(f"after {WAIT_SECONDS} s: no {what}")


class Namespace:
    """A process that keeps a network and a mount namespace; None: the namespaces of this process."""

    def __init__(self, process=None):
        self.process = process

    def command(self, *words):
        if self.process is None:
            return list(words)
        return ["nsenter", f"--net=/proc/{self.process.pid}/ns/net", f"--mount=/proc/{self.process.pid}/ns/mnt", *words]


class Avahi(contextlib.ExitStack):
    """avahi-daemon with a message bus of its own, in a namespace."""

    def __init__(self, where, name, interface):
        super().__init__()
        self._where = where
        self._directory = self.enter_context(tempfile.TemporaryDirectory(prefix="sluice-avahi-"))
        self.environment = dict(os.environ, DBUS_SYSTEM_BUS_ADDRESS=f"unix:path={self._directory}/bus")
        bus = pathlib.Path(self._directory, "bus.conf")
        bus.write_text(BUS_CONFIGURATION.format(self._directory))
        configuration = pathlib.Path(self._directory, "avahi.conf")
        configuration.write_text(AVAHI_CONFIGURATION.format(name, interface))
        run(*where.command("mkdir", "-p", "/run/avahi-daemon"))
        self._start("dbus-daemon", f"--config-file={bus}", "--nofork")
        wait_for("message bus", pathlib.Path(self._directory, "bus").exists)
        self.daemon = self._start("avahi-daemon", "-f", str(configuration), "--no-drop-root", "--no-chroot",
                                  "--no-rlimits")
        wait_for("Avahi", lambda: "smb" in self._browse("--dump-db") or True)

    def _start(self, *command):
        process = subprocess.Popen(self._where.command(*command), env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.callback(end, process)
        return process

    def _browse(self, *arguments):
        answer = subprocess.run(self._where.command("avahi-browse", *arguments), env=self.environment, text=True,
                                capture_output=True, timeout=30, check=False)
        return answer.stdout

    def services(self, kind="_smb._tcp"):
        """Returns {instance: (host, port)} of the services that resolve now."""
        found = {}
        for line in self._browse("-p", "-r", "-t", kind).splitlines():
            parts = line.split(";")
            if parts[0] == "=":
                name = parts[3].replace(r"\032", " ").replace(r"\040", "(").replace(r"\041", ")")
                found[name] = (parts[6], int(parts[8]))
        return found


def end(process):
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Discovery(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        holder = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c",
                                   "mount -t tmpfs none /run && ip link set lo up && echo ready && exec sleep 600"],
                                  stdout=subprocess.PIPE, text=True)
        self.stack.callback(end, holder)
        self.assertEqual(holder.stdout.readline(), "ready\n")
        holder.stdout.close()
        self.peer = Namespace(holder)
        run("ip", "link", "add", "here", "type", "veth", "peer", "name", "there", "netns", str(holder.pid))
        self.stack.callback(lambda: subprocess.run(["ip", "link", "del", "here"], check=False, capture_output=True))
        run("ip", "address", "add", f"{HOST_ADDRESS}/24", "dev", "here")
        run("ip", "link", "set", "here", "up")
        run(*self.peer.command("ip", "address", "add", f"{PEER_ADDRESS}/24", "dev", "there"))
        run(*self.peer.command("ip", "link", "set", "there", "up"))
        self.directory = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="sluice-shared-"))

    def server(self, *arguments, port=0):
        return served.Server(PROGRAM, self.directory, arguments=("--name", "ATTIC", *arguments), listen="0.0.0.0",
                             port=port)

    def avahi(self, where=None, name="peer", interface="there"):
        return self.stack.enter_context(Avahi(where or self.peer, name, interface))

    def test_avahi_resolves_the_server_until_it_stops(self):
        avahi = self.avahi()
        with self.server() as server:
            found = wait_for("service", avahi.services)
            self.assertEqual(found, {"ATTIC": ("ATTIC.local", server.port)})
            self.assertIn("Discovery   'ATTIC' in the network view of computers on here", server.log())
        # Without the goodbye, the records would stay for two minutes.
        wait_for("end of the service", lambda: not avahi.services())

    def test_a_name_that_another_host_has_is_changed(self):
        avahi = self.avahi(name="ATTIC")
        published = subprocess.Popen(self.peer.command("avahi-publish-service", "ATTIC", "_smb._tcp", "4450"),
                                     env=avahi.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.stack.callback(end, published)
        wait_for("service of the other host", lambda: "ATTIC" in avahi.services())
        with self.server() as server:
            found = wait_for("renamed service", lambda: avahi.services().get("ATTIC (2)"))
            self.assertEqual(found, ("ATTIC-2.local", server.port))

    def test_an_avahi_on_the_same_host_shares_the_port(self):
        self.avahi(Namespace(), "same-host", "here")
        avahi = self.avahi()
        with self.server() as server:
            found = wait_for("service", avahi.services)
            self.assertEqual(found, {"ATTIC": ("ATTIC.local", server.port)})
        wait_for("end of the service", lambda: not avahi.services())

    def test_a_server_on_loopback_opens_no_multicast_port(self):
        with served.Server(PROGRAM, self.directory) as server:
            self.assertNotIn("Discovery", server.log())
            ports = run("ss", "--udp", "--tcp", "--listening", "--numeric", "--no-header")
            for port in (":5353 ", ":3702 ", ":5357 "):
                self.assertNotIn(port, ports)

    @unittest.skipIf(shutil.which("wsdd") is None, "wsdd is not installed (package wsdd)")
    def test_the_client_of_wsdd_lists_the_server_until_it_stops(self):
        # Its socket for queries does not work with Python 3.11; its log has the same facts.
        log = pathlib.Path(self.directory, "wsdd.log")
        with log.open("wb") as to:
            client = subprocess.Popen(self.peer.command("wsdd", "--discovery", "--no-host", "--ipv4only", "--interface",
                                                        "there", "-vvv"), stdout=to, stderr=subprocess.STDOUT)
        self.stack.callback(end, client)
        with self.server(port=445):
            # The name is in the description, which wsdd reads over HTTP.
            wait_for("server", lambda: "discovered ATTIC in Workgroup:WORKGROUP" in log.read_text())
            self.assertIn(HOST_ADDRESS, log.read_text())
        wait_for("end of the server", lambda: "/Bye" in log.read_text())

    def test_nothing_is_sent_if_discovery_is_off(self):
        avahi = self.avahi()
        with self.server("--no-discovery") as server:
            self.assertIn("Discovery   off", server.log())
            time.sleep(3)
            self.assertEqual(avahi.services(), {})


def skip(why):
    print(f"skipped: {why}")
    sys.exit(served.SKIPPED)


def main():
    global PROGRAM
    PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
    for program in ("avahi-daemon", "avahi-browse", "dbus-daemon", "unshare", "nsenter", "ip"):
        if shutil.which(program) is None:
            skip(f"{program} is not installed (packages avahi-daemon, avahi-utils, dbus, util-linux, iproute2)")
    if os.environ.get(INSIDE) != "1":
        probe = subprocess.run(["unshare", "--net", "--mount", "ip", "link", "add", "probe0", "type", "veth"],
                               capture_output=True, text=True, check=False)
        if probe.returncode != 0:
            skip(f"no network namespaces: {probe.stderr.strip()}")
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--net", "--mount", sys.executable, "-B", __file__, str(PROGRAM),
                              *sys.argv[1:]])
    run("mount", "-t", "tmpfs", "none", "/run")
    run("ip", "link", "set", "lo", "up")
    unittest.main()


if __name__ == "__main__":
    main()
