"""A virtual machine for tests: qemu without KVM, a Debian kernel, and a root file system in memory."""

import pathlib
import re
import shutil
import subprocess
import tempfile

import served

# Program -> the Debian package that contains it.
TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "depmod": "kmod", "modprobe": "kmod",
         "cpio": "cpio", "unxz": "xz-utils", "gcc": "gcc libc6-dev", "dpkg": "dpkg", "apt-get": "apt"}
PROGRAM_TOOLS = {"strip": "binutils", "ldd": "libc-bin"}  # for copy_programs()
FETCH_SECONDS_MAX = 300


class Unavailable(Exception):
    """A requirement of a machine is not available; the text names it and the remedy."""


def require(tools=TOOLS):
    """Raises Unavailable unless all of `tools`, named as in TOOLS, are installed."""
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        packages = " ".join(dict.fromkeys(tools[tool] for tool in missing))
        raise Unavailable(f"not installed: {', '.join(missing)}; apt-get install --no-install-recommends {packages}")
    # A program that needs libraries names its loader directly after the ELF headers.
    if b"/ld-linux" in pathlib.Path(shutil.which("busybox")).read_bytes()[:4096]:
        raise Unavailable("busybox needs libraries that the machine does not have; apt-get install busybox-static")


class Apt:
    """The package lists of one Debian release: that of this machine, or another one from the same mirror."""

    def __init__(self, release=None, directory=None):
        # Downloads go to a directory of the caller, which the user of apt may not access.
        self._options = ["-o", "APT::Sandbox::User=root"]
        if release is not None:
            self._options += self._lists_of(release, directory)

    @staticmethod
    def _lists_of(release, directory):
        """Returns apt's options for separate lists below `directory`, downloaded once."""
        targets = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
                                  "Origin: Debian", "Label: Debian"], capture_output=True, text=True, check=True)
        if not targets.stdout.split():
            raise Unavailable("apt has no Debian mirror")
        mirror = targets.stdout.split()[0]
        keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
        lists = directory / "lists"
        options = ["-o", f"Dir::Etc::sourcelist={directory}/sources.list", "-o", "Dir::Etc::sourceparts=/dev/null",
                   "-o", f"Dir::State::lists={lists}", "-o", f"Dir::Cache={directory}/cache", "-o", "Acquire::Languages=none",
                   "-o", "Dir::State::status=/dev/null"]  # installed packages belong to this
                                                          # machine's release
        if not lists.exists():
            (directory / "cache").mkdir(parents=True, exist_ok=True)
            (directory / "sources.list").write_text(f"deb [signed-by={keys}] {mirror} {release} main\n")
            try:
                (directory / "lists.part" / "partial").mkdir(parents=True, exist_ok=True)
                subprocess.run(["apt-get", *options, "-o", f"Dir::State::lists={directory}/lists.part", "update"],
                               check=True, capture_output=True, timeout=FETCH_SECONDS_MAX)
            except (subprocess.SubprocessError, OSError) as wrong:
                raise Unavailable(f"the package lists of Debian {release} are not available: {wrong}") from None
            (directory / "lists.part").rename(lists)
        return options

    def dependency(self, package, prefix):
        """Returns the first package with that prefix that `package` depends on."""
        depends = subprocess.run(["apt-cache", *self._options, "depends", package], capture_output=True, text=True,
                                 check=True).stdout
        return next(line.split()[1] for line in depends.splitlines() if f"Depends: {prefix}" in line)

    def unpack(self, package, into):
        """Downloads the package and unpacks it, without installing it."""
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run(["apt-get", *self._options, "download", package], cwd=directory, check=True,
                           capture_output=True, timeout=FETCH_SECONDS_MAX)
            unpacked = into.with_name(into.name + ".part")
            shutil.rmtree(unpacked, ignore_errors=True)
            subprocess.run(["dpkg", "-x", str(next(pathlib.Path(directory).glob("*.deb"))), str(unpacked)], check=True)
            unpacked.rename(into)


class Kernel:
    """An unpacked kernel package."""

    def __init__(self, directory):
        self.directory = directory
        found = sorted(directory.glob("boot/vmlinuz-*"))
        if not found:
            raise Unavailable(f"{directory} contains no kernel")
        self.image = found[0]
        self.version = self.image.name.removeprefix("vmlinuz-")
        if not (directory / "lib").exists():  # from Debian 13 on
            (directory / "lib").symlink_to("usr/lib")

    @staticmethod
    def fetch(into, package="linux-image-amd64", release=None):
        """Returns the kernel of `package`, from this machine's Debian or another release; downloaded once."""
        try:
            if not into.exists():
                into.parent.mkdir(parents=True, exist_ok=True)
                apt = Apt(release, into.with_name(into.name + ".apt"))
                apt.unpack(apt.dependency(package, "linux-image-"), into)
        except (subprocess.SubprocessError, OSError, StopIteration) as wrong:
            raise Unavailable(f"the kernel package of Debian {release or 'here'} is not available: {wrong}") from None
        return Kernel(into)

    def copy_modules(self, modules, root):
        """Copies the modules and their dependencies, uncompressed, and creates the index for modprobe."""
        subprocess.run(["depmod", "-b", str(self.directory), self.version], check=True)
        for module in modules:
            shown = subprocess.run(["modprobe", "-d", str(self.directory), "-S", self.version, "--show-depends", module],
                                   capture_output=True, text=True, check=False).stdout
            for line in shown.splitlines():
                if line.startswith("insmod "):
                    self._copy_module(pathlib.Path(line.split()[1]), root)
        for index in (self.directory / "lib" / "modules" / self.version).glob("modules.*"):
            shutil.copy(index, root / "lib" / "modules" / self.version)
        subprocess.run(["depmod", "-b", str(root), self.version], check=True)

    def _copy_module(self, source, root):
        target = root / source.relative_to(self.directory)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        if target.suffix == ".xz":
            subprocess.run(["unxz", "--force", str(target)], check=True)


def kernel_for(program, tools=TOOLS, name="kernel", **wanted):
    """Returns a kernel, as Kernel.fetch(), from the cache of a test of `program`. Skips the test if the kernel or one of
    `tools` is not available."""
    try:
        require(tools)
        return Kernel.fetch(served.cache_directory(program) / name, **wanted)
    except Unavailable as why:
        served.skip(str(why))


def make_root(root, init, directories=()):
    """Creates a root file system of busybox and the first process."""
    for directory in ("bin", "proc", "sys", "dev", "mnt", "tmp", *directories):
        (root / directory).mkdir(parents=True, exist_ok=True)
    shutil.copy(shutil.which("busybox"), root / "bin" / "busybox")
    shutil.copy(init, root / "init")
    (root / "init").chmod(0o755)


def copy_programs(programs, root):
    """Copies the programs without debug information into /tests, and their libraries into /lib."""
    (root / "tests").mkdir()
    (root / "lib").mkdir(exist_ok=True)
    libraries = set()
    for program in programs:
        subprocess.run(["strip", "-o", str(root / "tests" / program.name), str(program)], check=True)
        listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
        libraries |= set(re.findall(r"(?:=> )?(/\S+) \(0x", listed))
    for library in libraries:
        # The loader is at the path it was linked with; it finds libraries by LD_LIBRARY_PATH.
        target = root / library.lstrip("/") if "/ld-linux" in library else root / "lib" / pathlib.Path(library).name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)


def compile_static(source, into):
    """Compiles a C program that needs no libraries."""
    subprocess.run(["gcc", "-O1", "-static", "-Wall", "-Wextra", "-o", str(into), str(source)], check=True)


def pack(root, initrd):
    """Packs the root file system in the format that the kernel expects."""
    subprocess.run(["sh", "-c", 'find . | cpio --quiet -o -H newc | gzip -1 > "$0"', str(initrd)], cwd=root, check=True)
    return initrd


def run(kernel, initrd, settings, *, console, seconds_max, processor="max", processors=1, memory_mib=768,
        devices=()):
    """Boots, and returns the output of the console until the machine is off; until then it is in the file `console`.
    `settings` become variables of the first process."""
    # An emulated timer may be late on a busy machine; then Linux 5.10 does not boot.
    append = ["console=ttyS0 quiet panic=-1 no_timer_check", *(f"{name}={value}" for name, value in settings.items())]
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", processor, "-m", str(memory_mib),
               "-smp", str(processors), "-nographic", "-no-reboot", "-kernel", str(kernel.image), "-initrd", str(initrd),
               "-append", " ".join(append), *devices]
    late = ""
    with console.open("wb") as shown:
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=shown, stderr=subprocess.STDOUT, timeout=seconds_max)
        except subprocess.TimeoutExpired:
            late = f"\nFAILED: the machine did not end within {seconds_max} s"
    return console.read_text(errors="replace").replace("\r", "") + late
