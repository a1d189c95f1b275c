"""smbprotocol and impacket for tests: importing this restarts the program with an interpreter that has them, if necessary.

They are installed from the package index into a virtual environment in the build directory, once; without a network the
test is skipped. If both are installed already, no network is needed.
"""

import fcntl
import importlib.util
import os
import subprocess
import sys

import served

PACKAGES = ("smbprotocol==1.17.0", "impacket==0.13.1")
INSTALL_SECONDS_MAX = 240


def has_packages():
    return all(importlib.util.find_spec(package.split("==")[0]) for package in PACKAGES)


def make_environment(environment):
    complete = environment / "complete"
    with open(f"{environment}.lock", "w") as turns:  # two tests may begin at the same time
        fcntl.flock(turns, fcntl.LOCK_EX)
        if complete.exists():
            return
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True, capture_output=True, timeout=120)
        subprocess.run([str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--retries", "1", *PACKAGES],
                       check=True, capture_output=True, timeout=INSTALL_SECONDS_MAX)
        complete.touch()


def enter_environment():
    """Restarts this program with an interpreter that has the packages."""
    if os.environ.get("SLUICE_INTEROP_ENVIRONMENT"):
        served.skip(f"{PACKAGES} were installed, but cannot be imported")
    environment = served.cache_directory(sys.argv[1]) / "python"
    try:
        make_environment(environment)
    except (subprocess.SubprocessError, OSError) as wrong:
        served.skip(f"{' and '.join(PACKAGES)} cannot be installed: {wrong}")
    os.environ["SLUICE_INTEROP_ENVIRONMENT"] = "1"
    interpreter = environment / "bin" / "python"
    os.execv(interpreter, [str(interpreter), "-B", *sys.argv])


if not has_packages():
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} SLUICE-PROGRAM [TEST]...")
    enter_environment()
