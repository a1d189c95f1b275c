#!/usr/bin/env python3
"""Checks rules of architecture and style that a compiler does not check.

    tools/tidy.py [ROOT]

Prints "path:line: rule: remedy" for each finding and exits with 1 if there is any. A rule is a generator over
the whole repository; tidy_test.py has one repository per rule that breaks only that rule. C++ is read by
tokens, not parsed, which is enough for these rules; a rule that needs more moves to clang-tidy.
"""

import bisect
import functools
import pathlib
import posixpath
import re
import subprocess
import sys
from dataclasses import dataclass

from tidy_standard_names import STANDARD_NAMES

FILE_LINES_MAX = 600
COMMENT_COLUMNS_MAX = 100  # of code: ColumnLimit in .clang-format
FUNCTION_LINES_MAX = 70
TEST_NAME_WORDS_MIN = 3
DIRECTORY_SOURCES_MAX = 80  # about 40 units of header, source and test

# The layer table of ARCHITECTURE.md: the components that the sources and tests of a component may include.
LAYERS = {
    "base": (),
    "sync": ("base",),
    "smb/wire": ("base",),
    "io": ("base", "sync"),
    "smb/auth": ("base", "smb/wire"),
    "fsmutex": ("base", "sync", "io"),
    "discovery": ("base", "sync", "io"),
    "vfs": ("base", "sync", "io"),
    "fat": ("base", "sync", "io", "vfs"),
    "smb/server": ("base", "sync", "io", "vfs", "smb/wire", "smb/auth"),
    "smb/client": ("base", "sync", "io", "vfs", "smb/wire", "smb/auth"),
}
LAYERS["cli"] = tuple(LAYERS)
LAYERS["sync/skiplist"] = ("base", "sync")  # optional, so not even the program includes it

# The order of the modules of a component: each may include itself and those before it. "" is the component's own
# directory. A component without an entry has no order yet.
MODULES = {
    "io": ("call", "path", "loop", "epoll", "uring", "simulated", "", "handle", "sender", "task", "file", "stream", "name",
           "asio"),
    "fat": ("", "codec", "device", "engine", "volume", "edit", "check", "partition"),
    "smb/server": ("core", "report", "journal", "file", "session", "open", "metadata", "net", "operation", "command", ""),
    "discovery": ("", "dns", "network", "mdns", "http", "wsd", "avahi", "advertiser"),
    "smb/wire": ("", "security", "fscc", "message", "compression", "create", "file", "fsctl", "rpc"),
    "vfs": ("domain", "", "snapshot", "host", "memory"),
}

SYSTEM_IO_HEADER = re.compile(
    r"(sys|netinet|arpa|net|linux)/.*|(fcntl|unistd|poll|netdb|dirent|aio|termios|ifaddrs)\.h|liburing(/.*|\.h)")
# In those directories, but neither files nor sockets: random numbers, and the futexes of sync.
NOT_IO_HEADERS = {"sys/random.h", "sys/syscall.h", "linux/futex.h"}
SYSTEM_IO_COMPONENTS = {"io", "fsmutex", "discovery", "vfs", "cli"}
# These include <unistd.h> only for syscall(2), to call futexes.
SYSCALL_SOURCES = ("sluice/sync/atomics.cpp",)
LIBURING_DIRECTORIES = ("sluice/io/uring/", "bench/")  # bench: the lower bound is raw liburing

STANDARD_HOMES = {name: header for header, names in STANDARD_NAMES.items() for name in names.split()}

STANDARD_OUTPUT_FREE = ("sluice/cli/", "bench/", "examples/", "sluice/base/ensure.cpp")

# (pattern, directories that it applies to, exempt files and directories, remedy)
BANNED = [
    (r"\bassert\s*\(|<cassert>|<assert\.h>", ("",), (), "use ENSURE: it also holds in release builds"),
    (r"\bstd::(cout|wcout)\b", ("sluice/",), ("sluice/cli/",), "a library returns text; the program prints it"),
    (r"\bstd::(cerr|clog)\b|\bfprintf\s*\(\s*stderr\b", ("sluice/",), ("sluice/cli/", "sluice/base/ensure.cpp"),
     "remove the debug print; a library reports errors as values"),
    (r"\b(printf|puts|putchar|fputs|perror)\s*\(", ("",), STANDARD_OUTPUT_FREE,
     "a library returns text; the program prints it"),
    (r"\bv?sprintf\s*\(", ("",), (), "use snprintf or fmt: sprintf does not know the size of its buffer"),
    (r"\bstr(cpy|cat|tok)\s*\(", ("",), (), "use std::string_view and std::span: they know their size"),
    (r"\batoi\s*\(", ("",), (), "use std::from_chars: atoi cannot report an error"),
    (r"\bs?rand\s*\(", ("",), (), "take the random source by constructor, so that a failure can be replayed"),
    (r"\busing\s+namespace\s+std\s*;", ("",), (), "name what is used"),
]

# Written in two halves, so that the pattern does not match this file.
MARKERS = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")

TOKEN = re.compile(
    r"""(?P<raw>\b(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\((?:.|\n)*?\)(?P=fence)")
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<number>\b\d(?:[\w.]|'\w)*)
      | (?P<character>'(?:\\.|[^'\\\n])*')
      | (?P<comment>//(?:\\\n|[^\n])*|/\*(?:.|\n)*?\*/)""", re.VERBOSE)


@dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    rule: str
    remedy: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.remedy}"


@dataclass(frozen=True)
class Include:
    line: int
    target: str
    quoted: bool


def blank(text):
    """Replaces the text by spaces with the same line breaks, so that offsets and line numbers stay valid."""
    return re.sub(r"[^\n]", " ", text)


class Source:
    """One C++ file, in the forms that the rules use."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self._line_starts = [0] + [match.end() for match in re.finditer("\n", text)]

    def line_of(self, offset):
        return bisect.bisect_right(self._line_starts, offset)

    @functools.cached_property
    def code(self):
        """Returns the text with comments and the contents of literals blanked."""
        return TOKEN.sub(lambda m: m[0] if m["number"] else blank(m[0]), self.text)

    def comment_lines(self):
        """Yields (line, the column of its end) for each line of each comment."""
        for match in TOKEN.finditer(self.text):
            if match["comment"]:
                column = match.start() - self._line_starts[self.line_of(match.start()) - 1]
                for number, part in enumerate(match[0].split("\n"), start=self.line_of(match.start())):
                    yield number, column + len(part)
                    column = 0

    @functools.cached_property
    def includes(self):
        without_comments = TOKEN.sub(lambda m: blank(m[0]) if m["comment"] else m[0], self.text)
        pattern = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
        return [Include(self.line_of(m.start(1)), m[2], m[1] == '"') for m in pattern.finditer(without_comments)]

    @property
    def component(self):
        """Returns the row of the layer table for this file; None outside sluice/."""
        return component_of(self.path)

    @property
    def is_test(self):
        return self.path.endswith("_test.cpp") or not self.path.startswith("sluice/")


class Repository:
    """All files by path from the root. The text of binary files is None."""

    def __init__(self, files):
        self.files = files
        self.directories = {str(parent) for path in files for parent in pathlib.PurePosixPath(path).parents}

    @functools.cached_property
    def sources(self):
        return {path: Source(path, text) for path, text in self.texts() if path.endswith((".cpp", ".hpp"))}

    def texts(self, *suffixes):
        for path, text in self.files.items():
            if text is not None and (not suffixes or path.endswith(suffixes)):
                yield path, text

    @staticmethod
    def at(root):
        """Returns the files that git tracks or would track, because findings are useful before the commit."""
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                cwd=root, capture_output=True, check=False)
        if listed.returncode == 0:
            paths = sorted(set(listed.stdout.decode().split("\0")) - {""})
        else:  # an unpacked release
            paths = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
            paths = [path for path in paths if not path.startswith((".", "build/"))]
        return Repository({path: read(root / path) for path in paths if (root / path).is_file()})


def read(path):
    data = path.read_bytes()
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def component_of(path):
    """sluice/smb/server/command/read.cpp -> smb/server; the first directory if the table has no longer name."""
    parts = path.split("/")
    if parts[0] != "sluice" or len(parts) < 3:
        return None
    two = "/".join(parts[1:3])
    return two if two in LAYERS else parts[1]


RULES = []


def rule(check):
    RULES.append(check)
    return check


@rule
def layering(repository):
    """A component includes itself, its row of the table, and nothing relative to the including file."""
    for source in repository.sources.values():
        own = source.component
        if own and own not in LAYERS:
            yield source.path, 1, f"{own} is missing in the layer table (tools/tidy.py and ARCHITECTURE.md)"
            continue
        for include in source.includes:
            if not include.quoted:
                if include.target.startswith("sluice/"):
                    yield source.path, include.line, f'include "{include.target}" in quotes, as all of sluice'
                continue
            if "/" not in include.target:
                yield source.path, include.line, f'name "{include.target}" by its path from the root'
                continue
            other = component_of(include.target)
            if own is None:
                continue  # tests, benchmarks and examples may use everything
            if other is None and (source.is_test or is_for_tests(source.path)):
                continue  # a unit test may count allocations, with bench/harness, and use shared code of tests/
            if other is None:
                yield source.path, include.line, f"sluice/ does not include from {include.target.split('/')[0]}/"
            elif other != own and other not in LAYERS[own]:
                yield source.path, include.line, f"{own} may not include {other}, only: {', '.join(LAYERS[own])}"


def module_of(path):
    """sluice/smb/server/net/reply.hpp -> ("smb/server", "net"); the module is "" in the component's own directory."""
    component = component_of(path)
    if component not in MODULES:
        return None, None
    rest = path[len(f"sluice/{component}/"):].split("/")
    return component, rest[0] if len(rest) > 1 else ""


def is_for_tests(path):
    return re.search(r"_testing\.[ch]pp$", path) is not None


@rule
def module_order(repository):
    """A module of a component with an order includes only itself and the modules before it."""
    for source in repository.sources.values():
        component, own = module_of(source.path)
        if component is None or source.is_test or is_for_tests(source.path):
            continue
        order = MODULES[component]
        if own not in order:
            yield source.path, 1, f"{own}/ is not in the order of the modules of {component} (tools/tidy.py)"
            continue
        for include in source.includes:
            if is_for_tests(include.target):
                yield source.path, include.line, "only tests include a header for tests"
            other_component, other = module_of(include.target)
            if include.quoted and other_component == component and other in order:
                if order.index(other) > order.index(own):
                    yield (source.path, include.line,
                           f"{own}/ comes before {other + '/' if other else 'the component itself'}: move the code, or pass what it needs")


def unit_of(path):
    """A header, its source and its test are one unit: the path without the ending."""
    return re.sub(r"(_test)?\.[ch]pp$", "", path)


@rule
def include_cycles(repository):
    """No unit includes itself indirectly."""
    edges = {}
    for source in repository.sources.values():
        if source.is_test:
            continue
        for include in source.includes:
            if include.quoted and include.target in repository.sources and unit_of(include.target) != unit_of(source.path):
                edges.setdefault(unit_of(source.path), {}).setdefault(unit_of(include.target), (source.path, include.line))

    def way_back(start):
        seen, ways = {start}, [(start, (start,))]
        while ways:
            at, way = ways.pop()
            for onward in edges.get(at, ()):
                if onward == start:
                    return way
                if onward not in seen:
                    seen.add(onward)
                    ways.append((onward, way + (onward,)))
        return None

    reported = set()
    for unit in sorted(edges):
        way = way_back(unit) if unit not in reported else None
        if way:
            reported.update(way)
            path, line = edges[unit][way[1]]
            yield path, line, "a cycle of includes: " + " -> ".join([*way, unit])


def source_directories(repository):
    """Returns the sources directly in each directory of sluice/."""
    directories = {}
    for path in repository.sources:
        if path.startswith("sluice/"):
            directories.setdefault(posixpath.dirname(path), []).append(path)
    return directories


@rule
def directory_size(repository):
    for directory, paths in source_directories(repository).items():
        if len(paths) > DIRECTORY_SOURCES_MAX:
            yield directory, 1, f"{len(paths)} sources, at most {DIRECTORY_SOURCES_MAX}: sort them into directories by concept"


@rule
def directory_readme(repository):
    """A directory of sluice/ has a README of its contents."""
    for directory in source_directories(repository):
        if f"{directory}/README.md" not in repository.files:
            yield directory, 1, "add a README.md with the contents of the directory, and the includes that it may have"


@rule
def system_headers(repository):
    """Files and sockets are used through io, fsmutex and vfs; liburing through io's uring directory."""
    for source in repository.sources.values():
        for include in source.includes:
            if include.quoted or not SYSTEM_IO_HEADER.fullmatch(include.target):
                continue
            if include.target.startswith("liburing"):
                if not source.path.startswith(LIBURING_DIRECTORIES):
                    yield source.path, include.line, "liburing is included only under sluice/io/uring/"
            elif include.target == "unistd.h" and source.path in SYSCALL_SOURCES:
                continue
            elif include.target in NOT_IO_HEADERS or source.is_test or source.component in SYSTEM_IO_COMPONENTS:
                continue
            else:
                yield source.path, include.line, f"<{include.target}>: use files and sockets through io"


@rule
def public_headers(repository):
    """A program that includes a header of io (no back end) gets no system I/O header with it, even indirectly."""
    sources = repository.sources

    def path_to_system_header(path, seen):
        for include in sources[path].includes:
            if not include.quoted and SYSTEM_IO_HEADER.fullmatch(include.target):
                return [f"<{include.target}>"]
            if include.quoted and include.target in sources and include.target not in seen:
                seen.add(include.target)
                rest = path_to_system_header(include.target, seen)
                if rest:
                    return [include.target, *rest]
        return []

    for path in sources:
        if re.fullmatch(r"sluice/io/(?!(asio|epoll|simulated|uring)/)(\w+/)?\w+\.hpp", path):
            way = path_to_system_header(path, {path})
            if way:
                yield path, 1, "public, yet brings " + " -> ".join(way) + "; move that to a .cpp"


@rule
def standard_includes(repository):
    """A source of sluice/ includes, itself or by a header of ours, the headers of the standard names it uses."""
    sources = repository.sources

    def collect(path, seen, found):
        for include in sources[path].includes:
            if not include.quoted:
                found.add(include.target)
            elif include.target in sources and include.target not in seen:
                seen.add(include.target)
                collect(include.target, seen, found)
        return found

    for path, source in sources.items():
        if not path.startswith("sluice/") or source.is_test:
            continue
        had = collect(path, {path}, set())
        for use in re.finditer(r"\bstd::(\w+)", source.code):
            header = STANDARD_HOMES.get(use[1])
            if header and header not in had:
                had.add(header)  # reported once
                yield path, source.line_of(use.start()), f"{use[0]}: include <{header}>"


@rule
def include_guards(repository):
    for path, source in repository.sources.items():
        if path.endswith(".hpp") and not source.code.lstrip().startswith("#pragma once"):
            yield path, 1, "begin the header with #pragma once"


@rule
def file_length(repository):
    for path, text in repository.texts(".cpp", ".hpp", ".py"):
        lines = text.count("\n")
        if lines > FILE_LINES_MAX:
            yield path, FILE_LINES_MAX + 1, f"{lines} lines, at most {FILE_LINES_MAX}: split it by concept"


@rule
def comment_width(repository):
    """Prose is easier to read in shorter lines than code; clang-format, whose limit is that of code, keeps them."""
    for source in repository.sources.values():
        for line, columns in source.comment_lines():
            if columns > COMMENT_COLUMNS_MAX:
                yield (source.path, line,
                       f"a comment up to column {columns}, at most {COMMENT_COLUMNS_MAX}: fill its lines again")


@rule
def function_length(repository):
    for source in repository.sources.values():
        for first, last in functions(source):
            if last - first + 1 > FUNCTION_LINES_MAX:
                yield source.path, first, (f"a function of {last - first + 1} lines, at most {FUNCTION_LINES_MAX}: "
                                           "find the part that deserves a name")


def functions(source):
    """Returns (first line, last line) of every function body, by matching braces.

    A brace opens a function if the code between it and the last statement has a parameter list and is not a
    type, namespace or initialiser. Function bodies are not analysed further: a lambda counts with its function.
    """
    code = without_directives(source.code)
    found = []
    scopes = []  # the kind of each open brace: "function", "inner" to one, "initialiser", or "other": namespace, type
    head_start = 0
    for match in re.finditer(r"[{};]", code):
        if match[0] == "{":
            if scopes and scopes[-1] != "other":
                scopes.append("initialiser" if scopes[-1] == "initialiser" else "inner")
            else:
                kind = kind_of_brace(code[head_start:match.start()])
                scopes.append(kind)
                if kind == "function":
                    begin = match.start()
                if kind != "initialiser":
                    head_start = match.end()
        elif match[0] == "}":
            closed = scopes.pop() if scopes else "other"
            if closed == "function":
                found.append((source.line_of(begin), source.line_of(match.start())))
            if closed in ("function", "other"):
                head_start = match.end()
        elif not scopes or scopes[-1] == "other":
            head_start = match.end()
    return found


def without_directives(code):
    """Blanks preprocessor lines, and all branches of a conditional but the first: each may open the same brace."""
    kept = []
    skipping = []  # one per open #if: are we past its first branch?
    continued = False
    for line in code.splitlines(keepends=True):
        directive = re.match(r"\s*#\s*(\w+)", line)
        if directive and not continued:
            if directive[1] in ("if", "ifdef", "ifndef"):
                skipping.append(False)
            elif directive[1] in ("else", "elif") and skipping:
                skipping[-1] = True
            elif directive[1] == "endif" and skipping:
                skipping.pop()
        keep = not (directive or continued or any(skipping))
        kept.append(line if keep else blank(line))
        continued = (bool(directive) or continued) and line.rstrip().endswith("\\")
    return "".join(kept)


def kind_of_brace(head):
    """Returns the kind of the brace after `head`, outside of functions."""
    head = head.strip()
    if re.search(r"(=|\b(requires|and|or)|&&|\|\||\(|!)\s*requires\s*(\([^{}]*\))?$", head):
        return "initialiser"  # a requires-expression; the function that it constrains may follow
    head = re.sub(r"\[\[.*?\]\]|\b(public|private|protected)\s*:(?!:)"
                  r"|\b(alignas|alignof|sizeof|noexcept|decltype)\s*\([^()]*(\([^()]*\)[^()]*)*\)", " ", head).strip()
    if re.match(r"(inline\s+)?namespace\b", head) or re.search(r"\bextern$", head):
        return "other"
    if re.search(r"=$|\)[^{}]*(?<!:)[:,](?!:)\s*[\w:]+(<[^{}]*>)?$", head):
        return "initialiser"  # `x = {…}`, or a member in a constructor's list: `a() : b_{1}, c_{2} {`
    head = re.sub(r"\btemplate\s*<.*?>\s*(?=\w)", "", head, flags=re.DOTALL)
    if re.search(r"\b(class|struct|union|enum)\b[^()]*$", head):
        return "other"
    return "function" if "(" in head else "initialiser"


@rule
def banned_calls(repository):
    for source in repository.sources.values():
        for pattern, where, exempt, remedy in BANNED:
            if source.path.startswith(where) and not source.path.startswith(exempt or ("\0",)):
                for match in re.finditer(pattern, source.code):
                    yield source.path, source.line_of(match.start()), f"{match[0].rstrip('( ')}: {remedy}"


@rule
def markers(repository):
    for path, text in repository.texts():
        for number, line in enumerate(text.split("\n"), start=1):
            marker = MARKERS.search(line)
            if marker:
                yield path, number, f"{marker[0]}: do it now, or open an issue"


@rule
def dead_files(repository):
    """Every .cpp is named by a CMakeLists.txt, by its path from there; otherwise nothing compiles it.

    If a loop generates the names, as foreach(name IN ITEMS a b) with copy_${name}.cpp, any word of the file may
    be the value of the variable.
    """
    named = set()
    for path, text in repository.texts("CMakeLists.txt"):
        directory = posixpath.dirname(path)
        code = re.sub(r"#.*", "", text)
        words = set(re.findall(r"\w+", code))
        for name in re.findall(r"(?:[\w./+-]|\$\{\w+\})+\.cpp\b", code):
            for source in {re.sub(r"\$\{\w+\}", word, name) for word in words}:
                named.add(posixpath.normpath(posixpath.join(directory, source)))
    for path in repository.sources:
        if path.endswith(".cpp") and path not in named:
            yield path, 1, "no CMakeLists.txt names it: add it there or delete it"


@rule
def links(repository):
    """A link in a markdown file leads to a file, a directory or a heading that exists."""
    for path, text in repository.texts(".md"):
        prose = re.sub(r"^```.*?^```|`[^`\n]*`", lambda m: blank(m[0]), text, flags=re.DOTALL | re.MULTILINE)
        for match in re.finditer(r"\]\(\s*<?([^)\s>]+)|^\[[^\]]+\]:\s*(\S+)", prose, flags=re.MULTILINE):
            target = match[1] or match[2]
            if re.match(r"[a-z][a-z+.-]*:", target):
                continue
            name, _, heading = target.partition("#")
            name = posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) if name else path
            line = text.count("\n", 0, match.start()) + 1
            if name not in repository.files and name not in repository.directories:
                yield path, line, f"{target} does not exist"
            elif heading and name.endswith(".md") and heading not in anchors(repository.files[name]):
                yield path, line, f"{name} has no heading #{heading}"


def anchors(text):
    """Returns the anchors that GitHub generates for the headings of a page."""
    headings = re.findall(r"^#+\s+(.*?)\s*#*$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE),
                          flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@rule
def trailing_whitespace(repository):
    for path, text in repository.texts():
        for number, line in enumerate(text.split("\n"), start=1):
            if line != line.rstrip():
                yield path, number, "remove the white space at the end of the line"


@rule
def test_names(repository):
    for source in repository.sources.values():
        for match in re.finditer(r"\b(?:TYPED_)?TEST(?:_F|_P)?\s*\(\s*\w+\s*,\s*(\w+)\s*\)", source.code):
            words = [word for word in match[1].split("_") if word]
            if len(words) < TEST_NAME_WORDS_MIN:
                yield source.path, source.line_of(match.start()), f"{match[1]}: state the behaviour in a sentence"


def findings(repository):
    return sorted(Finding(path, line, check.__name__, remedy)
                  for check in RULES for path, line, remedy in check(repository))


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    found = findings(Repository.at(root))
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
