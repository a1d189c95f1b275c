"""The Debian packages on a clean system: installed, used, removed, and purged, in a chroot of Debian 12 and one of Debian 13.

    deb_test.py BUILD-DIRECTORY

Builds the packages with the preset `package`. Needs root, debhelper, debootstrap, and access to a mirror of Debian. The
systems are kept in BUILD-DIRECTORY/systems for the next run. Lintian is run if it is installed.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from commands import run

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77
PROGRAM_BYTES_MAX = 8_000_000
# The project has no mail address; the publisher of the packages sets DEBEMAIL.
SUPPRESSED = "bogus-mail-host,bogus-mail-host-in-debian-changelog"
PASSWORD = "a-password-of-a-test"
# Runs in the chroot: the service as systemd would start it, except for the port, and a client.
TRANSFER = f"""
set -eu
export SLUICE_PASSWORD={PASSWORD}
echo {PASSWORD} | sluice user --users-file /etc/sluice/users add alice
test "$(stat -c %U:%a /etc/sluice/users)" = sluice:600
install -d -o sluice -g sluice -m 0750 /var/lib/sluice /var/lib/sluice/public
install -d -o sluice -g sluice -m 0700 /run/sluice
setpriv --reuid=sluice --regid=sluice --init-groups sluice serve --config /etc/sluice/sluice.toml --listen 127.0.0.1:1445 > /tmp/log 2>&1 &
server=$!
for _ in $(seq 100); do grep -q ^I/O /tmp/log && break; sleep 0.1; done
head -c 3000000 /dev/urandom > /tmp/sent
sluice put --checksum /tmp/sent smb://alice@127.0.0.1:1445/public/ || {{ cat /tmp/log; exit 1; }}
sluice get smb://alice@127.0.0.1:1445/public/sent /tmp/received
cmp /tmp/sent /tmp/received
test "$(stat -c %U /var/lib/sluice/public/sent)" = sluice
sluice status --socket /run/sluice/status.sock > /tmp/status
grep -q public /tmp/status
kill $server
wait $server
"""
COMPLETION = """
source /usr/share/bash-completion/completions/sluice
compopt() { :; }
COMP_LINE='sluice se' COMP_WORDS=(sluice se) COMP_CWORD=1
_sluice sluice
echo "${COMPREPLY[@]}"
"""


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def prepare_systems(directory):
    """Returns the archive of a minimal system for each release of Debian."""
    directory.mkdir(parents=True, exist_ok=True)
    systems = {}
    for release in ("bookworm", "trixie"):
        archive = systems[release] = directory / f"{release}.tar"
        if archive.exists():
            continue
        with tempfile.TemporaryDirectory(dir=directory) as root:
            done = subprocess.run(["debootstrap", "--variant=minbase", release, root], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            if done.returncode != 0:
                skip(f"debootstrap cannot create a system: {done.stdout[-300:]}")
            run("tar", "-C", root, "--exclude=./var/cache/apt/archives/*.deb", "-cf", f"{archive}.new", ".")
            os.rename(f"{archive}.new", archive)
    return systems


class Contents(unittest.TestCase):
    def listed(self, package):
        return {line.split(None, 5)[5].lstrip(".") for line in run("dpkg-deb", "--contents", PACKAGES[package]).splitlines()}

    def test_the_program_has_its_manual_completion_service_and_configuration(self):
        files = self.listed("sluice")
        for path in ("/usr/bin/sluice", "/usr/share/man/man1/sluice-serve.1.gz", "/usr/share/bash-completion/completions/sluice",
                     "/usr/share/zsh/vendor-completions/_sluice", "/usr/share/fish/vendor_completions.d/sluice.fish",
                     "/usr/lib/sysusers.d/sluice.conf", "/etc/sluice/sluice.toml"):
            self.assertTrue(path in files, path)
        self.assertTrue({"/lib/systemd/system/sluice.service", "/usr/lib/systemd/system/sluice.service"} & files, files)
        self.assertTrue({"/lib/systemd/system/sluice.socket", "/usr/lib/systemd/system/sluice.socket"} & files, files)
        self.assertEqual([path for path in files if path.endswith((".hpp", ".a"))], [])

    def test_the_libraries_have_headers_archives_and_a_package_of_cmake(self):
        files = self.listed("libsluice-dev")
        for path in ("/usr/include/sluice/io/task/task.hpp", f"/usr/lib/{TRIPLET}/libsluice_io.a",
                     f"/usr/lib/{TRIPLET}/cmake/sluice/sluice-config.cmake"):
            self.assertTrue(path in files, path)

    def test_debug_symbols_are_in_a_package_of_their_own(self):
        self.assertTrue(any(re.match(r"/usr/lib/debug/\.build-id/../.*\.debug$", path) for path in self.listed("sluice-dbgsym")))

    def test_the_program_is_small_and_needs_only_libraries_that_both_releases_have(self):
        with tempfile.TemporaryDirectory() as directory:
            run("dpkg-deb", "--extract", PACKAGES["sluice"], directory)
            program = pathlib.Path(directory, "usr/bin/sluice")
            self.assertLess(program.stat().st_size, PROGRAM_BYTES_MAX)
            needed = set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", program)))
        self.assertEqual({name for name in needed if name.startswith(("libfmt", "libtoml", "liburing"))}, set())

    def test_no_package_contains_a_path_of_the_machine_that_built_it(self):
        with tempfile.TemporaryDirectory() as directory:
            for path in PACKAGES.values():
                run("dpkg-deb", "--extract", path, directory)
            found = subprocess.run(["grep", "-rlF", str(ROOT), directory], stdout=subprocess.PIPE, text=True)
            self.assertEqual(found.stdout, "")

    def test_lintian_has_no_complaint(self):
        if not shutil.which("lintian"):
            self.skipTest("lintian is not installed")
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", "--suppress-tags", SUPPRESSED, *map(str, PACKAGES.values())],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


class System(unittest.TestCase):
    def in_chroot(self, *command, network="--net"):
        """Runs a command in the system with processes, and by default a network, of its own."""
        start = 'mount -t proc proc "$0/proc"; mount -t tmpfs tmpfs "$0/run"; ip link set lo up 2>/dev/null; exec chroot "$0" "$@"'
        namespaces = ["--mount", "--pid", "--fork", "--kill-child"] + ([network] if network else [])
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
                       "HOME": "/root"}
        return run("unshare", *namespaces, "sh", "-c", start, self.root, *command, env=environment)

    def apt(self, *arguments):
        return self.in_chroot("apt-get", "--quiet", "--yes", "--no-install-recommends", *arguments, network="")

    def create(self, release):
        directory = tempfile.TemporaryDirectory(dir=SYSTEMS[release].parent)
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        run("tar", "-C", self.root, "-xf", SYSTEMS[release])
        if os.path.exists("/etc/resolv.conf"):
            shutil.copy("/etc/resolv.conf", self.root / "etc" / "resolv.conf")
        for package, path in PACKAGES.items():
            shutil.copy(path, self.root / f"{package}.deb")
        self.apt("update")

    def path(self, name):
        return self.root / name.lstrip("/")

    def check_life(self, release):
        self.create(release)
        self.apt("install", "/sluice.deb")
        self.assertIn("sluice:", self.path("/etc/passwd").read_text())
        self.assertFalse(any(self.root.glob("etc/systemd/system/*.wants/sluice.service")), "not enabled without users")
        self.assertFalse(any(self.root.glob("etc/systemd/system/*.wants/sluice.socket")), "optional")
        self.assertRegex(self.in_chroot("sluice", "--version"), r"^sluice [0-9.]+\n$")
        self.assertEqual(self.in_chroot("bash", "-c", COMPLETION), "serve\n")
        self.in_chroot("bash", "-c", TRANSFER)
        if any(self.root.glob("usr/bin/systemd-analyze")):
            self.in_chroot("systemd-analyze", "security", "--offline=true", "--threshold=25", "sluice.service")
        self.apt("install", "/libsluice-dev.deb", "/sluice-dbgsym.deb")
        self.assertTrue(self.path(f"/usr/lib/{TRIPLET}/libsluice_fat.a").exists())
        self.apt("remove", "sluice", "libsluice-dev", "sluice-dbgsym")
        self.assertFalse(self.path("/usr/bin/sluice").exists())
        self.assertFalse(self.path("/usr/include/sluice").exists())
        self.assertTrue(self.path("/etc/sluice/sluice.toml").exists())
        self.assertTrue(self.path("/etc/sluice/users").exists())
        self.apt("purge", "sluice")
        self.assertFalse(self.path("/etc/sluice").exists())
        self.assertTrue(self.path("/var/lib/sluice/public/sent").exists(), "files of clients stay")
        left = [path for directory in ("etc", "usr", "lib", "var/lib/systemd") for path in self.root.glob(f"{directory}/**/*sluice*")]
        self.assertEqual(left, [])

    def test_debian_12_installs_serves_transfers_removes_and_purges(self):
        self.check_life("bookworm")

    def test_debian_13_installs_serves_transfers_removes_and_purges(self):
        self.check_life("trixie")


def main():
    global PACKAGES, SYSTEMS, TRIPLET
    build = pathlib.Path(sys.argv.pop(1)).resolve()
    if os.geteuid() != 0:
        skip("only root can enter a chroot")
    for program in ("debootstrap", "dpkg-buildpackage", "dh", "unshare"):
        if not shutil.which(program):
            skip(f"{program} is not installed (tools/install-deps package)")
    run("cmake", "--preset", "package", cwd=ROOT)
    run("cmake", "--build", "--preset", "package", cwd=ROOT)
    paths = run(ROOT / "tools" / "package", "deb", "--output", build / "deb").split()
    TRIPLET = run("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()
    PACKAGES = {pathlib.Path(path).name.partition("_")[0]: pathlib.Path(path) for path in paths}
    SYSTEMS = prepare_systems(build / "systems")
    unittest.main()


if __name__ == "__main__":
    main()
