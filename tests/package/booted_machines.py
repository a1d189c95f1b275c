"""Debian systems that are booted with systemd as machines of one network.

Each machine is a directory with a system that systemd-nspawn boots. It has a network namespace with one interface, `host0`, on a
bridge in a namespace of its own, so that no machine reaches the network of this host.
"""

import os
import pathlib
import signal
import subprocess
import time

from commands import run

NETWORK = "10.86.24"  # a private network: sluice announces itself there
BOOT_SECONDS = 120


def create_system(archive, release, packages):
    """Writes an archive of a minimal system with these packages. Returns whether debootstrap succeeded."""
    directory = archive.with_suffix(".new")
    done = subprocess.run(["debootstrap", "--variant=minbase", f"--include={','.join(sorted(packages))}", release, directory],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if done.returncode == 0:
        run("tar", "-C", directory, "-cf", f"{archive}.new", ".")
        os.rename(f"{archive}.new", archive)
    run("rm", "-rf", directory)
    return done.returncode == 0


class Network:
    """A bridge in a namespace. Machines connect to it in the order of their numbers."""

    def __init__(self):
        self.name = f"sluice-{os.getpid()}"
        run("ip", "netns", "add", self.name)
        self.on_switch("ip", "link", "add", "switch", "type", "bridge", "mcast_snooping", "0")
        self.on_switch("ip", "link", "set", "switch", "up")

    def on_switch(self, *command):
        return run("ip", "netns", "exec", self.name, *command)

    def connect(self, number):
        """Returns the name of a namespace with a connected interface."""
        name = f"{self.name}-{number}"
        run("ip", "netns", "add", name)
        self.on_switch("ip", "link", "add", f"port{number}", "type", "veth", "peer", "name", "host0", "netns", name)
        self.on_switch("ip", "link", "set", f"port{number}", "master", "switch", "up")
        for command in (["addr", "add", f"{NETWORK}.{number}/24", "dev", "host0"], ["link", "set", "host0", "up"], ["link", "set", "lo", "up"]):
            run("ip", "-netns", name, *command)
        return name

    def disconnect(self, namespace):
        subprocess.run(["ip", "netns", "delete", namespace], check=False)

    def remove(self):
        subprocess.run(["ip", "netns", "delete", self.name], check=False)


class Machine:
    """A booted system. `run` runs a command in it as root."""

    def __init__(self, root, name, network, number):
        self.root, self.name, self.address = pathlib.Path(root), name, f"{NETWORK}.{number}"
        (self.root / "etc" / "hostname").write_text(f"{name}\n")
        (self.root / "etc" / "hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {name}\n")
        self.namespace = network.connect(number)
        self.container = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--boot", "--console=pipe", "--kill-signal=SIGRTMIN+3",
             f"--directory={self.root}", f"--hostname={name}", f"--machine={name}-{os.getpid()}", "--resolv-conf=off",
             f"--network-namespace-path=/run/netns/{self.namespace}",
             "--system-call-filter=landlock_create_ruleset landlock_add_rule landlock_restrict_self"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.leader = None

    def wait_until_booted(self):
        """Returns the state of systemd: `running`, or `degraded` with a failed unit."""
        deadline = time.monotonic() + BOOT_SECONDS
        while time.monotonic() < deadline:
            if self.container.poll() is not None:
                raise AssertionError(f"the machine {self.name} did not boot: {self.container.stderr.read()}")
            children = pathlib.Path(f"/proc/{self.container.pid}/task/{self.container.pid}/children").read_text().split()
            if children:
                self.leader = int(children[0])
                done = self.try_to_run("systemctl", "is-system-running")
                if done.stdout.strip() in ("running", "degraded"):
                    return done.stdout.strip()
            time.sleep(0.2)
        raise AssertionError(f"the machine {self.name} did not boot within {BOOT_SECONDS} s")

    def _entered(self, command):
        environment = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"]
        return ["nsenter", f"--target={self.leader}", "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--root", "--wd",
                "env", "-i", *environment, *map(str, command)]

    def run(self, *command):
        return run(*self._entered(command))

    def shell(self, line):
        return self.run("bash", "-euc", line)

    def try_to_run(self, *command):
        return subprocess.run(self._entered(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)

    def stop(self):
        self.container.terminate()
        try:
            self.container.wait(30)
        except subprocess.TimeoutExpired:
            os.kill(self.leader or self.container.pid, signal.SIGKILL)
            self.container.kill()
            self.container.wait()
