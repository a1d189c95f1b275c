#!/usr/bin/env python3
"""Tests each rule of tidy.py with one repository that breaks only that rule."""

import posixpath
import unittest

import tidy

# A repository without findings; the tests change one file of it, or add one.
CLEAN = {
    "CMakeLists.txt": "add_subdirectory(sluice)\n",
    "README.md": "# Sluice\n\nSee [the io](sluice/io/handle.hpp), [below](#more-of-it) and [the web](https://x.y).\n\n"
                 "## More of it\n\n```\n[not a link](nowhere.md)\n```\n",
    "sluice/io/CMakeLists.txt": "sluice_component(io SOURCES handle.cpp)\nsluice_test(io SOURCES handle_test.cpp)\n",
    "sluice/io/handle.hpp": '#pragma once\n#include "sluice/base/error.hpp"\nint open_it();\n',
    "sluice/io/handle.cpp": '#include "sluice/io/handle.hpp"\n\n#include <fcntl.h>\n\nint open_it() { return 0; }\n',
    "sluice/io/handle_test.cpp": '#include <sys/socket.h>\n\nTEST(handle, opens_a_file) {}\n',
    "sluice/base/error.hpp": "#pragma once\n",
}


def body(lines):
    return "".join(f"    step({n});\n" for n in range(lines))


def guarded(files):
    """Returns the same files, with a guard in each header that has none."""
    return {path: "#pragma once\n" + text if path.endswith(".hpp") and "#pragma once" not in text else text
            for path, text in files.items()}


def described(files, but=None):
    """Returns the same files, with a README.md in each directory of sluice/ except `but`."""
    directories = {posixpath.dirname(path) for path in files if path.startswith("sluice/")} - {but}
    return {**{f"{directory}/README.md": "" for directory in directories}, **files}


class TidyTest(unittest.TestCase):
    def refuses(self, rule, remedy, files, undescribed=None):
        """`files`, put over the clean repository, break `rule` once and nothing else."""
        found = tidy.findings(tidy.Repository(described({**CLEAN, **guarded(files)}, undescribed)))
        self.assertEqual([finding.rule for finding in found], [rule], found)
        self.assertIn(remedy, found[0].remedy)

    def accepts(self, files):
        self.assertEqual(tidy.findings(tidy.Repository(described({**CLEAN, **guarded(files)}))), [])


class Layering(TidyTest):
    def test_the_clean_repository_is_clean(self):
        self.accepts({})

    def test_a_component_includes_only_its_row(self):
        self.refuses("layering", "base may not include io",
                     {"sluice/base/error.hpp": '#include "sluice/io/request.hpp"\n'})

    def test_the_server_never_includes_fat(self):
        self.refuses("layering", "smb/server may not include fat",
                     {"sluice/smb/server/session/share.hpp": '#include "sluice/fat/volume/volume.hpp"\n'})

    def test_the_program_includes_everything(self):
        self.accepts({"sluice/cli/serve.hpp": '#include "sluice/fat/volume/volume.hpp"\n#include "sluice/smb/server/x.hpp"\n'})

    def test_a_directory_of_a_component_belongs_to_it(self):
        self.accepts({"sluice/smb/server/command/read.hpp": '#include "sluice/smb/server/session/session.hpp"\n'})

    def test_a_component_outside_the_table_is_refused(self):
        self.refuses("layering", "utils is missing in the layer table", {"sluice/utils/misc.hpp": "#pragma once\n"})

    def test_an_include_is_a_path_from_the_root(self):
        self.refuses("layering", "by its path from the root", {"sluice/base/error.hpp": '#include "result.hpp"\n'})

    def test_a_library_does_not_include_from_the_benchmarks(self):
        self.refuses("layering", "sluice/ does not include from bench/",
                     {"sluice/base/error.hpp": '#include "bench/harness/harness.hpp"\n'})

    def test_what_is_for_tests_includes_from_the_tests_of_the_whole(self):
        self.accepts({"sluice/base/error_testing.hpp": '#include "tests/simulation.hpp"\n'})

    def test_a_commented_include_is_no_include(self):
        self.accepts({"sluice/base/error.hpp": '// #include "sluice/io/request.hpp"\n'})


class Structure(TidyTest):
    LISTED = {"sluice/smb/server/CMakeLists.txt": "sluice_component(smb_server SOURCES net/reply.cpp open/pipe.cpp)\n"}

    def test_a_module_includes_those_before_it(self):
        self.accepts({**self.LISTED, "sluice/smb/server/core/one_shot_event.hpp": "",
                      "sluice/smb/server/net/reply.cpp": '#include "sluice/smb/server/core/one_shot_event.hpp"\n'})

    def test_a_module_does_not_include_those_after_it(self):
        self.refuses("module_order", "open/ comes before net/",
                     {**self.LISTED, "sluice/smb/server/net/reply.hpp": "",
                      "sluice/smb/server/open/pipe.cpp": '#include "sluice/smb/server/net/reply.hpp"\n'})

    def test_no_module_includes_the_whole(self):
        self.refuses("module_order", "net/ comes before the component itself",
                     {**self.LISTED, "sluice/smb/server/server.hpp": "",
                      "sluice/smb/server/net/reply.cpp": '#include "sluice/smb/server/server.hpp"\n'})

    def test_a_module_outside_the_order_is_refused(self):
        self.refuses("module_order", "misc/ is not in the order", {"sluice/smb/server/misc/things.hpp": ""})

    def test_the_directory_of_a_component_may_come_first(self):
        self.refuses("module_order", "comes before codec/",
                     {"sluice/fat/CMakeLists.txt": "sluice_component(fat SOURCES device.cpp)\n", "sluice/fat/codec/boot.hpp": "",
                      "sluice/fat/device.cpp": '#include "sluice/fat/codec/boot.hpp"\n'})

    def test_only_tests_include_what_is_for_tests(self):
        self.refuses("module_order", "only tests include",
                     {"sluice/fat/CMakeLists.txt": "sluice_component(fat SOURCES device.cpp)\n", "sluice/fat/image_testing.hpp": "",
                      "sluice/fat/device.cpp": '#include "sluice/fat/image_testing.hpp"\n'})

    def test_an_include_in_angle_brackets_does_not_evade_the_rules(self):
        self.refuses("layering", "in quotes",
                     {**self.LISTED, "sluice/smb/server/net/reply.cpp": "#include <sluice/smb/server/server.hpp>\n",
                      "sluice/smb/server/server.hpp": ""})

    def test_units_do_not_include_each_other_in_a_circle(self):
        self.refuses("include_cycles", "net/a -> sluice/smb/server/net/b -> sluice/smb/server/net/a",
                     {"sluice/smb/server/CMakeLists.txt": "sluice_component(smb_server SOURCES net/b.cpp)\n",
                      "sluice/smb/server/net/a.hpp": '#include "sluice/smb/server/net/b.hpp"\n',
                      "sluice/smb/server/net/b.hpp": "",
                      "sluice/smb/server/net/b.cpp": '#include "sluice/smb/server/net/a.hpp"\n'})

    def test_an_implementation_header_is_a_unit_of_its_own(self):
        self.refuses("include_cycles", "sync/a -> sluice/sync/a_impl -> sluice/sync/a",
                     {"sluice/sync/a.hpp": '#include "sluice/sync/a_impl.hpp"\n',
                      "sluice/sync/a_impl.hpp": '#include "sluice/sync/a.hpp"\n'})


class Directories(TidyTest):
    def headers(self, count):
        return {f"sluice/io/stream/h{n}.hpp": "" for n in range(count)}

    def test_a_directory_has_at_most_80_sources(self):
        self.accepts(self.headers(80))
        self.refuses("directory_size", "81 sources, at most 80", self.headers(81))

    def test_a_directory_says_what_belongs_there(self):
        self.refuses("directory_readme", "add a README.md", {"sluice/io/path/names.hpp": ""}, undescribed="sluice/io/path")


class StandardIncludes(TidyTest):
    def test_a_source_includes_what_it_uses(self):
        self.refuses("standard_includes", "std::min: include <algorithm>",
                     {"sluice/base/error.cpp": "int least(int a, int b) { return std::min(a, b); }\n",
                      "sluice/base/CMakeLists.txt": "sluice_component(base SOURCES error.cpp)\n"})

    def test_a_header_of_ours_may_include_it(self):
        self.accepts({"sluice/base/least.hpp": '#include "sluice/base/error.hpp"\nint a = std::min(1, 2);\n',
                      "sluice/base/error.hpp": "#include <algorithm>\n"})

    def test_a_header_does_not_live_on_what_its_users_include(self):
        self.refuses("standard_includes", "std::vector: include <vector>",
                     {"sluice/base/error.hpp": "std::vector<int> a;\nstd::vector<int> b;\n"})

    def test_a_test_may_live_on_what_its_framework_includes(self):
        self.accepts({"sluice/io/handle_test.cpp": "std::vector<int> a;\nTEST(handle, opens_a_file) {}\n"})


class SystemHeaders(TidyTest):
    def test_files_and_sockets_stay_in_three_components(self):
        self.refuses("system_headers", "<fcntl.h>", {"sluice/sync/queue.hpp": "#include <fcntl.h>\n"})

    def test_waiting_and_random_numbers_are_neither(self):
        self.accepts({"sluice/sync/queue.hpp": "#include <linux/futex.h>\n#include <sys/random.h>\n"})

    def test_liburing_stays_in_its_directory(self):
        self.refuses("system_headers", "liburing",
                     {"sluice/vfs/host.hpp": "#include <liburing.h>\n"})
        self.accepts({"sluice/io/uring/ring.hpp": "#include <liburing.h>\n"})

    def test_tests_and_the_program_are_free(self):
        self.accepts({"sluice/cli/serve.hpp": "#include <unistd.h>\n", "tests/soak/load.hpp": "#include <poll.h>\n"})


class PublicHeaders(TidyTest):
    def test_a_public_header_brings_no_system_header(self):
        self.refuses("public_headers", "<sys/uio.h>", {"sluice/io/buffer.hpp": "#include <sys/uio.h>\n"})

    def test_not_even_through_another_header(self):
        self.refuses("public_headers", "sluice/io/uring/ring.hpp -> <liburing.h>",
                     {"sluice/io/multiplexer.hpp": '#include "sluice/io/uring/ring.hpp"\n',
                      "sluice/io/uring/ring.hpp": "#include <liburing.h>\n"})

    def test_headers_that_include_each_other_are_a_cycle(self):
        self.refuses("include_cycles", "io/a -> sluice/io/b -> sluice/io/a",
                     {"sluice/io/a.hpp": '#include "sluice/io/b.hpp"\n', "sluice/io/b.hpp": '#include "sluice/io/a.hpp"\n'})


class IncludeGuards(TidyTest):
    def test_a_header_begins_with_its_guard(self):
        self.refuses("include_guards", "#pragma once",
                     {"sluice/base/error.hpp": "struct late;\n#pragma once\n"})

    def test_a_comment_may_stand_before_it(self):
        self.accepts({"sluice/base/error.hpp": "// What it is.\n#pragma once\n"})


class Lengths(TidyTest):
    def source(self, text):
        return {"sluice/io/handle.cpp": text}

    def test_a_file_has_a_ceiling(self):
        self.accepts(self.source("int x;\n" * tidy.FILE_LINES_MAX))
        self.refuses("file_length", "601 lines", self.source("int x;\n" * (tidy.FILE_LINES_MAX + 1)))

    def test_a_comment_ends_at_column_100(self):
        for begin, end in (("//", ""), ("int x;  //", ""), ("/// a\n///", ""), ('auto s = "//";  //', ""), ("/* a\n", " */")):
            with self.subTest(begin=begin):
                rest = 100 - len(begin.rpartition("\n")[2] + end)
                self.accepts(self.source(begin + "b" * rest + end + "\n"))
                self.refuses("comment_width", "column 101, at most 100",
                             self.source(begin + "b" * (rest + 1) + end + "\n"))

    def test_code_may_be_longer_than_a_comment(self):
        self.accepts(self.source("int " + "x" * 105 + ";\n" + 'auto s = "// ' + "x" * 95 + '";\n'))

    def test_a_function_has_a_ceiling(self):
        self.accepts(self.source("void f() {\n" + body(68) + "}\n"))
        self.refuses("function_length", "71 lines", self.source("void f() {\n" + body(69) + "}\n"))

    def test_functions_are_found_wherever_they_stand(self):
        long = " {\n" + body(80) + "}\n"
        for head in ("namespace a { namespace {\nvoid f()%s}}\n",
                     "namespace a::b {\nclass c final : d<sizeof(int)> {\npublic:\n  void f() const noexcept override%s};\n}\n",
                     "auto f() -> a::list<int>%s",
                     "a::a(int b) : b_{b}, c_(3), d_{} %s",
                     "template <class T> requires requires(T t) { t.size(); }\nvoid f(T t)%s",
                     "template <class T> requires small<T> struct x {\n int y{3};\n void f()%s};\n",
                     "TEST(suite, a_long_story_told)%s",
                     'extern "C" {\nint main()%s}\n',
                     "[[nodiscard]] bool operator()(int a)%s",
                     "#if A\nvoid f(int)\n{\n#else\nvoid f(long)\n{\n#endif\n" + body(80) + "}\n%.0s"):
            with self.subTest(head=head):
                self.refuses("function_length", "lines, at most", self.source(head % long))

    def test_what_is_no_function_has_no_ceiling(self):
        for text in ("namespace a {\n" + "int x;\n" * 80 + "}\n",
                     "struct alignas(64) a {\n" + "int x;\n" * 80 + "};\n",
                     "enum class a : int {\n" + "x,\n" * 80 + "};\n",
                     "constexpr int a[] = {\n" + "f(1),\n" * 80 + "};\n",
                     "template <class T>\nconcept a = requires(T t) {\n" + "{ t.f() } -> b;\n" * 80 + "};\n",
                     "void f();\n" * 80):
            with self.subTest(text=text[:30]):
                self.accepts(self.source(text))

    def test_braces_in_literals_and_comments_do_not_count(self):
        self.accepts(self.source('void f() { g("{", \'{\', R"x({ ")" )x"); /* { */ }  // {\n' + "int n = 1'000;\n" * 80))


class BannedCalls(TidyTest):
    def test_each_is_refused_with_its_replacement(self):
        for call, remedy in (("assert(x);", "ENSURE"),
                             ("std::cout << x;", "a library returns text"),
                             ("std::cerr << x;", "debug print"),
                             ("printf(x);", "a library returns text"),
                             ("sprintf(x, y);", "snprintf"),
                             ("strcpy(x, y);", "std::string_view"),
                             ("atoi(x);", "from_chars"),
                             ("rand();", "random source"),
                             ("using namespace std;", "name what is used")):
            with self.subTest(call=call):
                self.refuses("banned_calls", remedy, {"sluice/io/handle.cpp": "void f() { " + call + " }\n"})

    def test_a_debug_print_is_found(self):
        self.refuses("banned_calls", "debug print", {"sluice/io/handle.cpp": 'void f() { fprintf(stderr, "here"); }\n'})

    def test_what_only_looks_alike_passes(self):
        self.accepts({"sluice/io/handle.cpp": "static_assert(true);  // assert(x)\nusing namespace std::chrono_literals;\n"
                                              'void f() { snprintf(a, 3, "rand()"); operand(); }\n'})

    def test_the_program_prints(self):
        self.accepts({"sluice/cli/print.hpp": "#include <cstdio>\ninline void f() { std::printf(x); std::cerr << y; }\n"})


class Text(TidyTest):
    def test_markers_are_refused_in_any_file(self):
        self.refuses("markers", "do it now", {"notes.txt": "TO" "DO: finish\n"})
        self.refuses("markers", "do it now", {"sluice/base/error.hpp": "// FIX" "ME later\n"})

    def test_the_pattern_of_a_temporary_file_is_no_marker(self):
        self.accepts({"notes.txt": "sluice-" + "X" * 6 + "\n"})

    def test_trailing_white_space_is_refused(self):
        self.refuses("trailing_whitespace", "white space", {"notes.txt": "one \ntwo\n"})

    def test_binary_files_are_left_alone(self):
        self.accepts({"fuzz/seeds/read/one": None})


class DeadFiles(TidyTest):
    def test_a_source_that_nothing_compiles_is_refused(self):
        self.refuses("dead_files", "no CMakeLists.txt names it", {"sluice/io/old.cpp": "int x;\n"})

    def test_a_comment_does_not_keep_a_file_alive(self):
        self.refuses("dead_files", "no CMakeLists.txt names it",
                     {"bench/CMakeLists.txt": "# old.cpp\n", "bench/old.cpp": "int x;\n"})

    def test_a_file_may_be_named_by_a_loop(self):
        files = {"examples/CMakeLists.txt": "foreach(way IN ITEMS fast)\n  add_executable(x copy_${way}.cpp)\nendforeach()\n"}
        self.accepts({**files, "examples/copy_fast.cpp": "int x;\n"})
        self.refuses("dead_files", "no CMakeLists.txt names it", {**files, "examples/copy_old.cpp": "int x;\n"})

    def test_a_file_may_be_named_from_a_directory_above(self):
        self.accepts({"sluice/CMakeLists.txt": "add_library(x io/uring/ring.cpp)\n", "sluice/io/uring/ring.cpp": "int x;\n"})


class Links(TidyTest):
    def test_a_link_to_a_missing_file_is_refused(self):
        self.refuses("links", "docs/gone.md does not exist", {"NOTES.md": "[gone](docs/gone.md)\n"})

    def test_a_link_is_relative_to_its_page(self):
        self.refuses("links", "README.md does not exist", {"docs/NOTES.md": "[up](README.md)\n"})
        self.accepts({"docs/NOTES.md": "[up](../README.md), [a directory](../sluice/io)\n"})

    def test_a_link_to_a_missing_heading_is_refused(self):
        self.refuses("links", "no heading #less-of-it", {"NOTES.md": "[less](README.md#less-of-it)\n"})

    def test_reference_definitions_count(self):
        self.refuses("links", "gone.md does not exist", {"NOTES.md": "[gone]\n\n[gone]: gone.md\n"})


class TestNames(TidyTest):
    def test_a_name_is_a_sentence(self):
        for macro in ("TEST", "TEST_F", "TEST_P", "TYPED_TEST"):
            with self.subTest(macro=macro):
                self.refuses("test_names", "in a sentence",
                             {"sluice/io/handle_test.cpp": macro + "(handle, read_works) {}\n"})


class RuleCoverage(unittest.TestCase):
    def test_every_rule_has_a_case_here(self):
        with open(__file__, encoding="utf-8") as file:
            text = file.read()
        for check in tidy.RULES:
            self.assertIn(f'refuses("{check.__name__}"', text)


if __name__ == "__main__":
    unittest.main()
