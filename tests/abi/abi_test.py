#!/usr/bin/env python3
"""The interface of libsluice.so, and the detection of changes by tools/abi. Run by ctest with the build directory and
the compiler as arguments."""

import importlib.machinery
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent

HEADER = """\
#pragma once
namespace sluice {
struct point { int x; int y; };
class box {
public:
    box();
    int area(const point& at);
private:
    struct inside;
    inside* inside_;
};
int twice(int value);
}
"""
CODE = """\
#include "sluice/base/shape.hpp"
namespace sluice {
struct box::inside { int width; };
box::box() : inside_(nullptr) {}
int box::area(const point& at) { return inside_ != nullptr ? inside_->width * at.x : at.y; }
int twice(int value) { return 2 * value; }
}
"""


def load_tool():
    loader = importlib.machinery.SourceFileLoader("abi", str(SOURCE / "tools" / "abi"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("abi", loader))
    loader.exec_module(module)
    return module


abi = load_tool()


@unittest.skipUnless(shutil.which("abidw"), "abidw is missing (Debian package abigail-tools)")
class Changes(unittest.TestCase):
    """A library of three functions, before and after a change."""
    maxDiff = None

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.before = self.description("before")

    def description(self, name, header=HEADER, code=CODE):
        directory = self.directory / name
        (directory / "sluice" / "base").mkdir(parents=True)
        (directory / "sluice" / "base" / "shape.hpp").write_text(header)
        (directory / "shape.cpp").write_text(code)
        abi.run(COMPILER, "-std=c++23", "-g", "-fPIC", "-shared", f"-I{directory}", "-o", directory / "shape.so",
                directory / "shape.cpp")
        return abi.described(directory / "shape.so", directory / "sluice", directory / "shape.xml")

    def verdict(self, before, after):
        header, code = HEADER.replace(before, after), CODE.replace(before, after)
        self.assertNotEqual((header, code), (HEADER, CODE), "the change changes nothing")
        return abi.verdict(self.before, self.description("after", header, code))

    def test_the_same_library_has_no_change(self):
        self.assertEqual(abi.verdict(self.before, self.description("after")), "")

    def assert_incompatible(self, verdict):
        self.assertIn("give the library a new SONAME", verdict)
        self.assertIn("tools/abi update build/release", verdict)

    def test_a_function_that_is_gone_needs_a_new_soname(self):
        code = CODE.replace("int twice(int value) { return 2 * value; }\n", "")
        verdict = abi.verdict(self.before, self.description("after", HEADER, code))
        self.assertIn("twice(int)", verdict)
        self.assert_incompatible(verdict)

    def test_a_function_whose_arguments_change_needs_a_new_soname(self):
        self.assert_incompatible(self.verdict("twice(int value)", "twice(long value)"))

    def test_a_member_that_changes_its_type_needs_a_new_soname(self):
        verdict = self.verdict("int x; int y;", "long x; int y;")
        self.assertIn("point", verdict)
        self.assert_incompatible(verdict)

    def test_a_private_member_that_changes_the_size_needs_a_new_soname(self):
        self.assert_incompatible(self.verdict("inside* inside_;", "inside* inside_; int more_;"))

    def test_a_new_function_is_compatible_and_has_to_be_recorded(self):
        header = HEADER.replace("int twice(int value);", "int twice(int value);\nint thrice(int value);")
        code = CODE.replace("int twice(", "int thrice(int value) { return 3 * value; }\nint twice(")
        verdict = abi.verdict(self.before, self.description("after", header, code))
        self.assertIn("thrice(int)", verdict)
        self.assertIn("still run", verdict)
        self.assertNotIn("SONAME", verdict)

    def test_types_that_no_header_shows_may_change(self):
        self.assertEqual(self.verdict("struct box::inside { int width; };", "struct box::inside { long top; int width; };"), "")


class Lists(unittest.TestCase):
    def test_a_function_that_the_headers_no_longer_declare_is_reported_by_name(self):
        verdict = abi.map_verdict(abi.map_text("0.1", []), abi.map_text("0.1", ["_ZN6sluice5twiceEi"]))
        self.assertIn("- sluice::twice(int)", verdict)
        self.assertIn("SONAME", verdict)

    def test_a_function_that_the_list_lacks_is_reported_by_name(self):
        verdict = abi.map_verdict(abi.map_text("0.1", ["_ZN6sluice5twiceEi"]), abi.map_text("0.1", []))
        self.assertIn("+ sluice::twice(int)", verdict)
        self.assertNotIn("SONAME", verdict)

    def test_only_what_a_header_declares_and_a_source_defines_is_listed(self):
        symbols = [("_ZN6sluice5twiceEi", "GLOBAL", "FUNC"),  # declared
                   ("_ZN6sluice6hiddenEi", "GLOBAL", "FUNC"),
                   ("_ZN6sluice3boxC2Ev", "GLOBAL", "FUNC"),  # declared as C1
                   ("_ZN6sluice6inlineEv", "WEAK", "FUNC"),  # every program has its own
                   ("_ZN6sluice7currentE", "WEAK", "TLS"),  # and this one must not
                   ("_ZN6sluice4sync4lockIiE4takeEv", "WEAK", "FUNC"),  # instantiated in the library
                   ("_ZTVN6sluice3boxE", "GLOBAL", "OBJECT"),
                   ("_ZTVN6sluice6secretE", "GLOBAL", "OBJECT")]
        declared = {"_ZN6sluice5twiceEi", "_ZN6sluice3boxC1Ev", "_ZN6sluice6inlineEv", "_ZN6sluice7currentE"}
        self.assertEqual(sorted(abi.chosen(symbols, declared, {"lock"})),
                         ["_ZN6sluice3boxC2Ev", "_ZN6sluice4sync4lockIiE4takeEv", "_ZN6sluice5twiceEi",
                          "_ZN6sluice7currentE", "_ZTVN6sluice3boxE"])


class Library(unittest.TestCase):
    def setUp(self):
        self.library = BUILD / "sluice" / "libsluice.so"

    def test_its_soname_and_its_symbols_carry_the_version_of_the_abi(self):
        version = re.search(r"project\(sluice VERSION (\d+\.\d+)", (SOURCE / "CMakeLists.txt").read_text()).group(1)
        self.assertIn(f"Library soname: [libsluice.so.{version}]", abi.run("readelf", "--dynamic", self.library))
        for name in self.exported():
            self.assertTrue(name.endswith(f"@@SLUICE_{version}") or name == f"SLUICE_{version}", name)

    def exported(self):
        lines = abi.run("readelf", "--dyn-syms", "--wide", self.library).splitlines()
        fields = [line.split() for line in lines]
        return [field[7] for field in fields if len(field) == 8 and field[0][:-1].isdigit() and field[6] != "UND"]

    def test_it_exports_neither_back_ends_nor_other_libraries(self):
        exported = self.exported()
        self.assertGreater(len(exported), 100)
        for name in exported:
            self.assertRegex(name, r"^(_Z\w*6sluice|SLUICE_)", name)
            self.assertNotRegex(name, r"io_uring_|N6sluice2io(5uring|12_GLOBAL__N_1)|17epoll_multiplexer|11worker_pool")

    def test_it_needs_only_the_c_and_c_plus_plus_libraries(self):
        needed = re.findall(r"Shared library: \[(\w+)", abi.run("readelf", "--dynamic", self.library))
        self.assertLessEqual(set(needed), {"libstdc", "libm", "libgcc_s", "libc", "ld"})


class Headers(unittest.TestCase):
    def test_no_installed_header_includes_liburing_or_openssl(self):
        with tempfile.TemporaryDirectory() as directory:
            directory = pathlib.Path(directory)
            abi.run("cmake", "--install", BUILD, "--component", "headers", "--prefix", directory)
            include = directory / "include"
            # An include of these fails, wherever the compiler would have found the real ones.
            poison = directory / "poison"
            for name in ("liburing.h", "liburing/io_uring.h", *openssl_headers()):
                (poison / name).parent.mkdir(parents=True, exist_ok=True)
                (poison / name).write_text(f'#error "an installed header includes {name}"\n')
            headers = sorted(str(path.relative_to(include)) for path in include.rglob("*.hpp"))
            self.assertIn("sluice/io/uring/uring_multiplexer.hpp", headers)
            has_asio = (pathlib.Path("/usr/include/asio.hpp")).exists()
            source = directory / "all.cpp"
            source.write_text("".join(f'#include "{name}"\n' for name in headers
                                      if has_asio or not name.startswith("sluice/io/asio")))
            abi.run(COMPILER, "-std=c++23", "-DASIO_STANDALONE", "-DASIO_HAS_CO_AWAIT", "-fsyntax-only", f"-I{poison}", f"-I{include}", source)


def openssl_headers():
    for root in ("/usr/include", "/usr/include/x86_64-linux-gnu"):
        for path in pathlib.Path(root, "openssl").glob("*.h"):
            yield f"openssl/{path.name}"


if __name__ == "__main__":
    COMPILER = sys.argv.pop()
    BUILD = pathlib.Path(sys.argv.pop())
    unittest.main()
