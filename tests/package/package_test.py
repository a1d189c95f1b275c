#!/usr/bin/env python3
"""Sluice as users get it: installed and found, or added as a subdirectory. Run by ctest with the build directory and
the compiler as arguments."""

import contextlib
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
CONSUMER = SOURCE / "tests" / "package" / "consumer"
WITHOUT_OPENSSL = ("-DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON",)

# Inline functions and the library use the same thread-local variables here: the multiplexer that runs, the frame pool.
SHARED_PROGRAM = """\
#include <array>
#include <sluice/fsmutex/entity.hpp>
#include <sluice/io/best_available.hpp>
#include <sluice/io/task/awaitable.hpp>
#include <sluice/io/stream/pipe_handle.hpp>
#include <sluice/io/task/sync_wait.hpp>
#include <sluice/io/task/task.hpp>
using namespace sluice::io;

task<std::size_t> bytes_read(pipe_handle& reader) {
    std::array<std::byte, 8> room;
    const auto got = co_await co_read(reader, io_request<bytes_type>{room});
    co_return got.bytes_transferred();
}
int main() {
    const auto multiplexer = best_available().value();
    auto pipe = pipe_handle::anonymous().value();
    pipe.reader.set_multiplexer(multiplexer.get()).value();
    const std::array<std::byte, 5> sent{};
    if (!pipe.writer.write(io_request<const_bytes_type>{sent})) return 2;
    return sync_wait(*multiplexer, bytes_read(pipe.reader)) == 5 ? 0 : 1;
}
"""


def old_gcc():
    """Returns the path of a GCC on this machine that is too old, or None."""
    for name in ("g++-13", "g++-12", "g++-11", "g++"):
        path = shutil.which(name)
        if path and int(run(path, "-dumpversion").split(".")[0]) < 14 and "clang" not in run(path, "--version"):
            return path
    return None


def run(*command):
    """Returns the standard output; a failure shows the whole output of the command."""
    done = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} returned {done.returncode}:\n{done.stdout}")
    return done.stdout


def refused(*command):
    """Returns the output of a command that must fail."""
    done = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == 0:
        raise AssertionError(f"{' '.join(map(str, command))} succeeded:\n{done.stdout}")
    return " ".join(done.stdout.split())  # CMake breaks lines at any position


def configure(source, build, *settings):
    return run("cmake", "-G", "Ninja", "-S", source, "-B", build, f"-DCMAKE_CXX_COMPILER={COMPILER}",
               "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *settings)


def compile_commands(build):
    return {entry["file"]: entry["command"] for entry in json.loads((build / "compile_commands.json").read_text())}


class Package(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def assert_no_warning_flags(self, command):
        self.assertEqual([word for word in command.split() if word.startswith(("-W", "-pedantic", "-fsanitize"))], [])


class Installed(Package):
    def setUp(self):
        super().setUp()
        self.prefix = self.directory / "prefix"
        run("cmake", "--install", BUILD, "--prefix", self.prefix)

    def test_a_consumer_builds_and_runs_without_our_flags(self):
        build = self.directory / "build"
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
        project = self.directory / "first"
        project.mkdir()
        (project / "main.cpp").write_text(re.search(r"```cpp\n(.*?)```", readme, re.S).group(1))
        (project / "CMakeLists.txt").write_text(re.search(r"```cmake\n(.*?)```", readme, re.S).group(1))
        build = self.directory / "build"
        configure(project, build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        server = subprocess.Popen([build / "first"])
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.assertEqual(self.echo_of(b"hello", port=7007), b"hello")

    def test_the_other_programs_of_the_readme_build_as_they_stand_and_run(self):
        programs = dict(re.findall(r"^### sluice::(sync|fsmutex|fat)$.*?^```cpp\n(.*?)^```",
                                   (SOURCE / "README.md").read_text(), re.S | re.M))
        self.assertEqual(set(programs), {"sync", "fsmutex", "fat"})
        project = self.directory / "others"
        project.mkdir()
        lines = ["cmake_minimum_required(VERSION 3.25)", "project(others CXX)",
                 f"find_package(sluice REQUIRED COMPONENTS {' '.join(programs)})"]
        for name, text in programs.items():
            (project / f"{name}.cpp").write_text(text)
            lines += [f"add_executable({name} {name}.cpp)", f"target_link_libraries({name} PRIVATE sluice::{name})"]
        (project / "CMakeLists.txt").write_text("\n".join(lines) + "\n")
        build = self.directory / "build"
        configure(project, build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        self.assertEqual(run(build / "sync"), "busy\n")
        run(self.prefix / "bin" / "sluice", "fat", "mkfs", "--size", "1440k", self.directory / "disk.img")
        with contextlib.chdir(self.directory):  # their files are in the current directory
            self.assertEqual(run(build / "fsmutex"), "locked\n")
            run(build / "fat")

    def test_the_programs_of_the_guide_to_the_libraries_build_as_they_stand_and_run(self):
        guide = (SOURCE / "docs" / "guide" / "libraries.md").read_text()
        programs = dict(re.findall(r"^## sluice::(\w+)$.*?^```cpp\n(.*?)^```", guide, re.S | re.M))
        self.assertEqual(set(programs), {"io", "sync", "fsmutex", "fat", "smb_client"})
        project = self.directory / "guide"
        project.mkdir()
        for name, text in programs.items():
            (project / f"{name}.cpp").write_text(text)
        (project / "CMakeLists.txt").write_text(re.search(r"```cmake\n(.*?)```", guide, re.S).group(1))
        build = self.directory / "build"
        configure(project, build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        self.assertEqual(run(build / "io", project / "CMakeLists.txt"), "7 lines\n")
        self.assertEqual(run(build / "sync"), "1000 2000 2000 2000 1000 0 0 0 \n")
        held = subprocess.run([build / "fsmutex", self.directory / "jobs.lock", "index-a", "index-b"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(held.stdout, "locked; press Enter to unlock\n")
        run(build / "fat", self.directory / "disk.img")
        self.assertEqual(run(self.prefix / "bin" / "sluice", "fat", "cat", f"{self.directory}/disk.img:/notes.txt"), "hello\n")
        self.assertIn("connect: Connection refused", refused(build / "smb_client", "127.0.0.1", "1", "alice", "pub", "a"))

    def echo_of(self, sent, port):
        for _ in range(100):  # until the server listens
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
                    client.sendall(sent)
                    return client.recv(len(sent), socket.MSG_WAITALL)
            except ConnectionRefusedError:
                time.sleep(0.05)
        self.fail(f"no server listens on port {port}")

    def test_a_component_that_does_not_exist_is_not_found(self):
        project = self.directory / "project"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES CXX)\n"
            "find_package(sluice QUIET COMPONENTS base telepathy)\n"
            "if(sluice_FOUND)\n  message(FATAL_ERROR telepathy)\nendif()\n")
        configure(project, self.directory / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")

    def project(self, components, main="int main() {}", link="base"):
        """Returns a project that requires these components."""
        directory = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
        (directory / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES CXX)\n"
            f"find_package(sluice REQUIRED {components})\n"
            f"add_executable(x main.cpp)\ntarget_link_libraries(x PRIVATE sluice::{link})\n")
        (directory / "main.cpp").write_text(main)
        return directory

    def configuration(self, project, *settings):
        return ("cmake", "-G", "Ninja", "-S", project, "-B", project / "build", f"-DCMAKE_CXX_COMPILER={COMPILER}",
                f"-DCMAKE_PREFIX_PATH={self.prefix}", *settings)

    def test_io_is_found_and_used_on_a_machine_without_openssl(self):
        project = self.project("COMPONENTS io", link="io", main=(
            '#include <sluice/io/stream/pipe_handle.hpp>\n'
            "int main() { return sluice::io::pipe_handle::anonymous().has_value() ? 0 : 1; }\n"))
        run(*self.configuration(project, *WITHOUT_OPENSSL))
        run("cmake", "--build", project / "build")
        run(project / "build" / "x")

    def test_the_shared_library_is_used_on_a_machine_without_liburing(self):
        project = self.project("COMPONENTS shared", link="shared", main=SHARED_PROGRAM)
        run(*self.configuration(project, *WITHOUT_OPENSSL, "-DCMAKE_DISABLE_FIND_PACKAGE_Uring=ON"))
        run("cmake", "--build", project / "build")
        run(project / "build" / "x")
        self.assertIn("libsluice.so.0.1 => " + str(self.prefix), run("ldd", project / "build" / "x"))

    def test_a_program_cannot_link_the_shared_library_and_an_archive_that_is_in_it(self):
        project = self.project("COMPONENTS shared fat", link="fat sluice::shared")
        self.assertIn("SLUICE_LINKAGE", refused(*self.configuration(project)))

    def test_a_component_whose_package_is_missing_is_refused_with_both_names(self):
        for component in ("smb_auth", "smb_client"):
            said = refused(*self.configuration(self.project(f"COMPONENTS {component}"), *WITHOUT_OPENSSL))
            self.assertIn("component smb_auth cannot be used: it needs OpenSSL (Debian package libssl-dev)", said)

    def test_an_optional_component_whose_package_is_missing_is_skipped(self):
        project = self.project("COMPONENTS io OPTIONAL_COMPONENTS smb_auth")
        with open(project / "CMakeLists.txt", "a") as more:
            more.write('if(sluice_smb_auth_FOUND OR TARGET sluice::smb_auth)\n  message(FATAL_ERROR there)\nendif()\n')
        run(*self.configuration(project, *WITHOUT_OPENSSL))

    def test_without_components_all_are_found(self):
        run(*self.configuration(self.project("", link="smb_client")))

    def test_an_unknown_component_is_refused_by_name(self):
        self.assertIn("there is no component telepathy", refused(*self.configuration(self.project("COMPONENTS telepathy"))))

    def test_a_consumers_compiler_that_cannot_compile_the_headers_is_refused_by_name_and_reason(self):
        old = old_gcc()
        if old is None:
            self.skipTest("no GCC before 14 here")
        said = refused(*self.configuration(self.project("COMPONENTS io"), f"-DCMAKE_CXX_COMPILER={old}"))
        self.assertRegex(said, r"sluice: GCC 1[0-3]\.[^ ]* \(.*\) miscompiles coroutines.*Use clang 19")

    def test_tests_and_the_headers_of_the_program_are_not_installed(self):
        installed = [str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*") if path.is_file()]
        self.assertTrue(any(path.endswith("sluice/base/error.hpp") for path in installed), installed)
        self.assertEqual([path for path in installed if "_test" in path or "/cli/" in path], [])


class Alone(Package):
    """One component without the others."""

    def built(self, components):
        build = self.directory / "build"
        configure(SOURCE, build, f"-DSLUICE_COMPONENTS={components}", *WITHOUT_OPENSSL)
        return build

    def test_io_is_configured_without_openssl_and_builds_nothing_above_it(self):
        directories = {pathlib.Path(path).relative_to(SOURCE / "sluice").parts[0]
                   for path in compile_commands(self.built("io"))}
        self.assertEqual(directories, {"base", "io", "sync"})

    def test_one_that_is_installed_alone_is_found_and_the_others_are_refused(self):
        build = self.built("sync_skiplist")
        run("cmake", "--build", build)
        prefix = self.directory / "prefix"
        run("cmake", "--install", build, "--prefix", prefix)
        for header in ("base/error.hpp", "sync/range_lock.hpp", "sync/skiplist/skiplist_range_lock.hpp"):
            self.assertTrue((prefix / "include" / "sluice" / header).exists(), header)
        self.assertFalse((prefix / "include" / "sluice" / "io").exists())
        for component, expected in (("sync_skiplist", None), ("io", "component io cannot be used: it was not installed")):
            project = self.directory / component
            project.mkdir()
            (project / "CMakeLists.txt").write_text(
                "cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES CXX)\n"
                f"find_package(sluice REQUIRED COMPONENTS {component})\n")
            command = ("cmake", "-G", "Ninja", "-S", project, "-B", project / "build",
                       f"-DCMAKE_CXX_COMPILER={COMPILER}", f"-DCMAKE_PREFIX_PATH={prefix}")
            if expected is None:
                run(*command)
            else:
                self.assertIn(expected, refused(*command))

    def test_an_unknown_component_is_refused_with_the_known_ones(self):
        said = refused("cmake", "-G", "Ninja", "-S", SOURCE, "-B", self.directory / "build",
                       f"-DCMAKE_CXX_COMPILER={COMPILER}", "-DSLUICE_COMPONENTS=io;telepathy")
        self.assertIn("there is no component 'telepathy'; there are base, sync", said)


class Compilers(Package):
    def problem(self, identity, version, system="Linux"):
        """Returns the problem that the check reports for a compiler, which need not be installed."""
        script = self.directory / "check.cmake"
        script.write_text(f'include("{SOURCE}/cmake/sluice-compiler.cmake")\n'
                          'sluice_compiler_problem(problem)\nmessage("problem: ${problem}")\n')
        return " ".join(run("cmake", f"-DCMAKE_CXX_COMPILER_ID={identity}", f"-DCMAKE_CXX_COMPILER_VERSION={version}",
                            "-DCMAKE_CXX_COMPILER=/opt/c++", f"-DCMAKE_SYSTEM_NAME={system}", "-P", script).split())

    def test_each_unsupported_compiler_is_named_with_version_and_reason(self):
        for identity, version, expected in (
                ("GNU", "13.2.0", "GCC 13.2.0 (/opt/c++) miscompiles coroutines"),
                ("Clang", "18.1.8", "clang 18.1.8 (/opt/c++) does not implement the concepts"),
                ("IntelLLVM", "2024.1", "IntelLLVM 2024.1 (/opt/c++) is not a compiler that sluice is built with"),
                ("", "", "the project has no C++ compiler")):
            said = self.problem(identity, version)
            self.assertIn(expected, said)
        self.assertIn("sluice runs on Linux only", self.problem("AppleClang", "16", system="Darwin"))

    def test_the_supported_ones_have_no_problem(self):
        for identity, version in (("GNU", "14.1.0"), ("Clang", "19.1.7"), ("Clang", "20")):
            self.assertEqual(self.problem(identity, version), "problem:")

    def test_the_build_refuses_an_old_gcc_before_it_compiles_anything(self):
        old = old_gcc()
        if old is None:
            self.skipTest("no GCC before 14 here")
        said = refused("cmake", "-G", "Ninja", "-S", SOURCE, "-B", self.directory / "build",
                       f"-DCMAKE_CXX_COMPILER={old}")
        self.assertRegex(said, r"sluice: GCC 1[0-3]\.[^ ]* \(.*\) miscompiles coroutines.*Use clang 19")

    def test_a_standard_library_without_expected_is_refused_by_name(self):
        include = self.directory / "old-library"
        include.mkdir()
        (include / "expected").write_text("// nothing in it: as in libstdc++ 11\n")
        said = refused("cmake", "-G", "Ninja", "-S", SOURCE, "-B", self.directory / "build",
                       f"-DCMAKE_CXX_COMPILER={COMPILER}", f"-DCMAKE_CXX_FLAGS=-I{include}")
        self.assertIn("has no std::expected or no coroutines. Install libstdc++ 12", said)


class Subdirectory(Package):
    def test_a_parent_project_gets_libraries_without_tests_or_our_flags(self):
        (self.directory / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(parent LANGUAGES CXX)\nenable_testing()\n"
            f'add_subdirectory("{SOURCE}" sluice)\n'
            f'add_executable(consumer "{CONSUMER}/main.cpp")\n'
            "target_link_libraries(consumer PRIVATE sluice::fat)\n")
        build = self.directory / "build"
        configure(self.directory, build)
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
