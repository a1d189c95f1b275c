#!/usr/bin/env python3
"""The go-smb2 client (tests/interop/go) against `sluice serve`. Skipped without Go, or if the module is not available."""

import os
import pathlib
import shutil
import subprocess
import sys

import served

SOURCE = pathlib.Path(__file__).resolve().parent / "go"
BUILD_SECONDS_MAX = 240


def build_client():
    """Builds the program and returns its path; go caches its builds, so only the first one takes long."""
    if not shutil.which("go"):
        served.skip("go is not installed; version 1.25 or later from https://go.dev/dl runs this test")
    # Only an installed toolchain: a test does not download compilers.
    environment = dict(os.environ, GOTOOLCHAIN="local", GOFLAGS="-mod=readonly", CGO_ENABLED="0")
    run = {"cwd": SOURCE, "env": environment, "capture_output": True, "text": True, "timeout": BUILD_SECONDS_MAX}
    fetched = subprocess.run(["go", "mod", "download"], **run)
    if fetched.returncode != 0:
        served.skip(f"the go-smb2 module is not available: {fetched.stderr.strip()}")
    program = served.cache_directory(sys.argv[1]) / "go-client"
    built = subprocess.run(["go", "build", "-o", str(program), "."], **run)
    if built.returncode != 0:
        sys.exit(f"tests/interop/go does not build:\n{built.stderr}")
    return program


@served.on_every_multiplexer
class GoClient:
    client = None
    server_arguments = ()

    def test_files_directories_and_names_are_as_go_expects_them(self):
        done = subprocess.run([str(self.client), f"127.0.0.1:{self.server.port}", served.USER, served.PASSWORD, "share"],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(sorted(served.tree_of(self.directory)), ["file"])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        GoClient.client = build_client()
    served.main()
