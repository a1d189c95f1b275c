"""From a clean Debian system to a used share: the commands of docs/guide/install.md on two machines that are booted with systemd.

    five_minutes_test.py BUILD-DIRECTORY

Builds the packages with the preset `package`, unless SLUICE_PACKAGE names one, and prints the time of each command. Then it tests the service: its reloads, its restarts, its
watchdog, and its socket. Needs root, systemd-nspawn, debootstrap, debhelper, and access to a mirror of Debian. The systems are kept in
BUILD-DIRECTORY/systems for the next run.
"""

import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time
import unittest

from booted_machines import Machine, Network, create_system
from commands import run

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GUIDE = ROOT / "docs" / "guide" / "install.md"
SKIPPED = 77
RELEASE = "bookworm"
COMMANDS_MAX = 5
PASSWORD = "a-password-of-a-test"
ON_THE_SERVER = {"systemd", "systemd-sysv", "dbus", "iproute2", "procps"}
ON_THE_DESK = ON_THE_SERVER | {"avahi-daemon", "avahi-utils", "libnss-mdns", "curl"}


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def commands_of_guide():
    """Yields the machine and the command of each line under the heading "Five commands"."""
    section = GUIDE.read_text().partition("\n## Five commands\n")[2].partition("\n## ")[0]
    for block in re.findall(r"```console\n(.*?)```", section, re.DOTALL):
        yield from re.findall(r"^(server|desk)[#$] (.*?)(?:  +#.*)?$", block, re.MULTILINE)


class FiveMinutes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.network, cls.machines = Network(), {}
        cls.addClassCleanup(cls.network.remove)
        directory = tempfile.TemporaryDirectory(dir=SYSTEMS)
        cls.addClassCleanup(directory.cleanup)
        for number, name in enumerate(("server", "desk"), 1):
            root = pathlib.Path(directory.name, name)
            root.mkdir()
            run("tar", "-C", root, "-xf", SYSTEMS / f"{name}.tar")
            cls.prepare(root, downloads_only=name == "server")
            machine = cls.machines[name] = Machine(root, name, cls.network, number)
            cls.addClassCleanup(cls.network.disconnect, machine.namespace)
            cls.addClassCleanup(machine.stop)
            if machine.wait_until_booted() != "running":
                raise AssertionError(machine.run("systemctl", "--failed"))
        cls.server, cls.desk = cls.machines["server"], cls.machines["desk"]

    @classmethod
    def prepare(cls, root, downloads_only):
        """Copies the package, and downloads or installs the libraries it needs: a booted machine has no network."""
        shutil.copy(PACKAGE, root / "root" / PACKAGE.name)
        if os.path.exists("/etc/resolv.conf"):
            shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")
        install = ["apt-get", "install", "--yes", "--quiet", f"/root/{PACKAGE.name}"] + (["--download-only"] if downloads_only else [])
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        run("chroot", root, "apt-get", "update", env=environment)
        run("chroot", root, *install, env=environment)

    def page(self):
        """Returns the answer to a browser on the server that opens http://localhost:9446/."""
        return self.server.shell(r"""exec 3<>/dev/tcp/127.0.0.1/9446
                                     printf 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n' >&3
                                     cat <&3""")

    def status(self):
        return json.loads(self.server.run("sluice", "status", "--socket", "/run/sluice/status.sock", "--json"))

    def unit(self, name):
        return self.server.run("systemctl", "show", "--value", f"--property={name}", "sluice.service").strip()

    def main_process(self):
        """Returns the number of the process of the service, as text. kill(1) takes 0 for a group of processes."""
        number = self.unit("MainPID")
        self.assertGreater(int(number), 1, "the service does not run")
        return number

    def wait_for_restart(self):
        self.server.run("timeout", "60", "bash", "-c", """
            until [ $(systemctl show --value --property=NRestarts sluice) != 0 ]; do sleep 0.1; done
            until systemctl is-active --quiet sluice; do sleep 0.1; done""")

    def test_1_the_commands_of_the_guide_lead_from_a_clean_system_to_a_used_share(self):
        commands = list(commands_of_guide())
        self.assertTrue(0 < len(commands) <= COMMANDS_MAX, commands)
        self.desk.shell("head -c 3000000 /dev/urandom > /root/film.mkv")
        started = time.monotonic()
        for machine, command in commands:
            began = time.monotonic()
            # What a user types. `user add` reads the password from standard input, and the client from this variable.
            answer = "y" if command.startswith("apt ") else PASSWORD
            self.machines[machine].shell(f"cd; export SLUICE_PASSWORD={PASSWORD}; echo {answer} | {command}")
            print(f"{time.monotonic() - began:6.1f} s  {machine}: {command}", flush=True)
        self.assertIn(";SERVER;", self.desk.run("avahi-browse", "--terminate", "--resolve", "--parsable", "_smb._tcp"))
        page = self.page()
        print(f"{time.monotonic() - started:6.1f} s  in all, with the network view and the page", flush=True)
        self.assertIn("200 OK", page)
        self.assertIn("public", page)
        self.assertEqual(self.server.shell("md5sum < /var/lib/sluice/public/film.mkv"), self.desk.shell("md5sum < /root/film.mkv"))

    def test_2_the_service_is_active_watched_and_restricted(self):
        self.assertEqual(self.unit("ActiveState"), "active")
        self.assertNotEqual(self.unit("WatchdogTimestampMonotonic"), "0", "the server has reported that it is alive")
        self.assertNotEqual(self.unit("StatusText"), "")
        self.server.run("systemd-analyze", "security", "--threshold=25", "sluice.service")

    def test_3_a_reload_adds_a_share_in_the_same_process(self):
        before = self.main_process()
        self.server.shell("""install -d -o sluice -g sluice /srv/projects
                             printf '[[share]]\nname = "projects"\npath = "/srv/projects"\n' >> /etc/sluice/sluice.toml
                             systemctl reload sluice""")
        self.assertIn("projects", [share["name"] for share in self.status()["shares"]])
        self.assertEqual(self.main_process(), before)

    def test_4_systemd_restarts_a_server_that_was_killed(self):
        before = self.main_process()
        self.server.run("kill", "-KILL", before)
        self.wait_for_restart()
        self.assertNotEqual(self.main_process(), before)
        self.assertEqual(self.unit("NRestarts"), "1")
        self.status()

    def test_5_systemd_restarts_a_server_that_hangs(self):
        before = self.main_process()
        self.server.shell("""mkdir -p /run/systemd/system/sluice.service.d
                             printf '[Service]\nWatchdogSec=2\nRestartSec=0\n' > /run/systemd/system/sluice.service.d/test.conf
                             systemctl daemon-reload && systemctl restart sluice""")
        hung = self.main_process()
        self.server.run("kill", "-STOP", hung)
        self.wait_for_restart()
        self.assertNotIn(self.main_process(), (before, hung))
        self.server.shell("""rm -r /run/systemd/system/sluice.service.d
                             systemctl daemon-reload && systemctl restart sluice""")

    def test_6_with_its_socket_clients_wait_while_the_service_restarts(self):
        self.server.shell("systemctl stop sluice && systemctl start sluice.socket")
        self.assertEqual(self.unit("ActiveState"), "inactive")
        copy = f"SLUICE_PASSWORD={PASSWORD} sluice get //alice@server.local/public/film.mkv /root/copied"
        self.desk.shell(copy)
        self.assertEqual(self.unit("ActiveState"), "active", "the first client has started it")
        self.assertEqual(self.desk.shell("md5sum < /root/copied"), self.desk.shell("md5sum < /root/film.mkv"))
        self.server.run("systemctl", "stop", "sluice")
        self.desk.shell(f"rm /root/copied; {copy}")


def main():
    global PACKAGE, SYSTEMS
    build = pathlib.Path(sys.argv.pop(1)).resolve()
    if os.geteuid() != 0:
        skip("only root can boot a system")
    for program in ("debootstrap", "dpkg-buildpackage", "dh", "systemd-nspawn", "ip"):
        if not shutil.which(program):
            skip(f"{program} is not installed (tools/install-deps)")
    if "SLUICE_PACKAGE" in os.environ:
        PACKAGE = pathlib.Path(os.environ["SLUICE_PACKAGE"])
    else:
        run("cmake", "--preset", "package", cwd=ROOT)
        run("cmake", "--build", "--preset", "package", cwd=ROOT)
        paths = run(ROOT / "tools" / "package", "deb", "--output", build / "five_minutes").split()
        PACKAGE = next(pathlib.Path(path) for path in paths if pathlib.Path(path).name.startswith("sluice_"))
    SYSTEMS = build / "systems"
    SYSTEMS.mkdir(parents=True, exist_ok=True)
    for name, packages in (("server", ON_THE_SERVER), ("desk", ON_THE_DESK)):
        archive = SYSTEMS / f"{name}.tar"
        if not archive.exists() and not create_system(archive, RELEASE, packages):
            skip("debootstrap cannot create a system")
    unittest.main(failfast=True)  # each test continues where the one before it has ended


if __name__ == "__main__":
    main()
