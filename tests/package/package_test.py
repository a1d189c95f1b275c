#!/usr/bin/env python3
"""Sluice as others get it: installed and found, or added as a subdirectory. Run by ctest with the build folder and
the compiler as arguments."""

import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
CONSUMER = SOURCE / "tests" / "package" / "consumer"


def run(*command):
    """Standard output; a failure shows everything the command said."""
    done = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} returned {done.returncode}:\n{done.stdout}")
    return done.stdout


def configure(source, build, *settings):
    return run("cmake", "-G", "Ninja", "-S", source, "-B", build, f"-DCMAKE_CXX_COMPILER={COMPILER}",
               "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *settings)


def compile_commands(build):
    return {entry["file"]: entry["command"] for entry in json.loads((build / "compile_commands.json").read_text())}


class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assert_no_warning_flags(self, command):
        self.assertEqual([word for word in command.split() if word.startswith(("-W", "-pedantic", "-fsanitize"))], [])


class Installed(Package):
    def setUp(self):
        super().setUp()
        self.prefix = self.folder / "prefix"
        run("cmake", "--install", BUILD, "--prefix", self.prefix)

    def test_a_consumer_builds_and_runs_without_our_flags(self):
        build = self.folder / "build"
        configure(CONSUMER, build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        for command in compile_commands(build).values():
            self.assert_no_warning_flags(command)
            self.assertNotIn(str(SOURCE / "sluice"), command)
        run("cmake", "--build", build)
        run(build / "consumer")

    def test_the_program_comes_with_its_manual_pages(self):
        self.assertTrue((self.prefix / "bin" / "sluice").exists())
        for page in (SOURCE / "docs" / "man").iterdir():
            self.assertTrue((self.prefix / "share" / "man" / "man1" / page.name).exists(), page.name)

    def test_the_first_program_of_the_readme_builds_as_it_stands_and_echoes(self):
        readme = (SOURCE / "README.md").read_text()
        project = self.folder / "first"
        project.mkdir()
        (project / "main.cpp").write_text(re.search(r"```cpp\n(.*?)```", readme, re.S).group(1))
        (project / "CMakeLists.txt").write_text(re.search(r"```cmake\n(.*?)```", readme, re.S).group(1))
        build = self.folder / "build"
        configure(project, build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        server = subprocess.Popen([build / "first"])
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.assertEqual(self.echo_of(b"hello", port=7007), b"hello")

    def echo_of(self, sent, port):
        for _ in range(100):  # until the server listens
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
                    client.sendall(sent)
                    return client.recv(len(sent), socket.MSG_WAITALL)
            except ConnectionRefusedError:
                time.sleep(0.05)
        self.fail(f"nobody listens on port {port}")

    def test_a_component_that_does_not_exist_is_not_found(self):
        project = self.folder / "project"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES CXX)\n"
            "find_package(sluice QUIET COMPONENTS base telepathy)\n"
            "if(sluice_FOUND)\n  message(FATAL_ERROR telepathy)\nendif()\n")
        configure(project, self.folder / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")

    def test_tests_and_the_headers_of_the_program_stay_behind(self):
        installed = [str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*") if path.is_file()]
        self.assertTrue(any(path.endswith("sluice/base/error.hpp") for path in installed), installed)
        self.assertEqual([path for path in installed if "_test" in path or "/cli/" in path], [])


class Subdirectory(Package):
    def test_a_parent_project_gets_libraries_without_tests_or_our_flags(self):
        (self.folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(parent LANGUAGES CXX)\nenable_testing()\n"
            f'add_subdirectory("{SOURCE}" sluice)\n'
            f'add_executable(consumer "{CONSUMER}/main.cpp")\n'
            "target_link_libraries(consumer PRIVATE sluice::fat)\n")
        build = self.folder / "build"
        configure(self.folder, build)
        commands = compile_commands(build)
        self.assertIn(str(SOURCE / "sluice/base/error.cpp"), commands)
        for path, command in commands.items():
            self.assert_no_warning_flags(command)
            self.assertFalse(path.endswith(("_test.cpp", "_bench.cpp")) or "/cli/" in path, path)
        self.assertIn("Total Tests: 0", run("ctest", "--test-dir", build, "-N"))


if __name__ == "__main__":
    COMPILER = sys.argv.pop()
    BUILD = sys.argv.pop()
    unittest.main()
