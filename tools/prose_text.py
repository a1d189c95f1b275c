"""Finds the prose in the files of the project: paragraphs, comments, messages, help texts, names of tests.

Each passage is one line of text, with the line of the file where each part of it begins. Code within prose is
replaced by "_", so that the rules do not read it.
"""

import bisect
import re
from dataclasses import dataclass, field

from tidy import TOKEN

CPP_ENDINGS = (".cpp", ".hpp", ".c", ".h", ".inc", ".go")
HASH_ENDINGS = (".cmake", ".sh", ".toml", ".yml", "CMakeLists.txt", "Makefile")
MANUAL = re.compile(r"\.[1-8]$")

BULLET = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+")
CODE_SPAN = re.compile(r"``[^`]+``|`[^`]+`")
ADDRESS = re.compile(r"\bhttps?:[^\s<>)]+")
LINK_TARGET = re.compile(r"\]\([^)\s]*\)|\]\[[^\]]*\]")
ESCAPED_SPACE = re.compile(r"\\[nrt]")


@dataclass
class Passage:
    """A text of one kind, joined from pieces of several lines."""
    kind: str
    text: str = ""
    offsets: list = field(default_factory=list)
    lines: list = field(default_factory=list)

    def append(self, line, piece):
        piece = " ".join(piece.split())
        if piece:
            self.text += " " if self.text else ""
            self.offsets.append(len(self.text))
            self.lines.append(line)
            self.text += piece

    def line_at(self, offset):
        return self.lines[bisect.bisect_right(self.offsets, offset) - 1]


class Collector:
    """Gathers lines into paragraphs, without code spans, targets of links and emphasis."""

    def __init__(self, kind):
        self.kind = kind
        self.passages = []
        self._open = []

    def add(self, line, text):
        """Adds a line; an empty line ends the paragraph, and a bullet begins one."""
        bullet = BULLET.match(text)
        if bullet or not text.strip():
            self.close()
        if text.strip():
            self._open.append((line, text[bullet.end():] if bullet else text))

    def close(self, kind=None):
        if not self._open:
            return
        # A code span may cross the end of a line, so the lines stay joined until the spans are gone.
        joined = "\n".join(text for _, text in self._open)
        joined = CODE_SPAN.sub(lambda span: "_" + "\n" * span[0].count("\n"), joined) if "`" in joined else joined
        joined = LINK_TARGET.sub("", joined) if "](" in joined or "][" in joined else joined
        joined = ADDRESS.sub("_", joined) if "http" in joined else joined
        passage = Passage(kind or self.kind)
        for (line, _), text in zip(self._open, joined.split("\n")):
            passage.append(line, re.sub(r"\*\*|!?\[(?=[^\]\n]*$)|[\[\]]", "", text))
        self._open = []
        if passage.text:
            self.passages.append(passage)

    def alone(self, line, text, kind=None):
        """Adds a paragraph of one line."""
        self.close()
        self.add(line, text)
        self.close(kind)


def passages(path, text):
    """Returns the passages of the file; none for a kind of file without prose."""
    if path.endswith(".md"):
        return markdown(text)
    if MANUAL.search(path):
        return manual(text)
    if path.endswith(CPP_ENDINGS):
        return cpp(text)
    if path.endswith(HASH_ENDINGS):
        return hash_comments(text)
    if path.endswith(".py"):
        return python(text)
    if text.startswith("#!"):
        return python(text) if "python" in text.split("\n", 1)[0] else hash_comments(text)
    return []


def markdown(text):
    found = Collector("page")
    fence = None
    for number, line in enumerate(text.split("\n"), start=1):
        bare = line.strip()
        if bare.startswith(("```", "~~~")):
            found.close()
            fence = None if fence else bare[:3]
        elif fence:
            comment = re.search(r"(?:^|\s)(?://|#) +(\w.*)", line)
            if comment:
                found.alone(number, comment[1])
        elif bare.startswith("#"):
            found.alone(number, bare.lstrip("#"), "heading")
        elif bare.startswith("|"):
            for cell in CODE_SPAN.sub("_", bare).split("|"):
                found.alone(number, cell.strip(" -:"))
        elif bare.startswith("<!--") or not bare.strip("-=_* "):
            found.close()
        else:
            found.add(number, line.lstrip("> "))
    found.close()
    return found.passages


# Macros of mdoc(7): those that begin a paragraph, and those whose arguments are prose.
PARAGRAPH_MACROS = {"Sh", "Ss", "Pp", "It", "Bl", "El", "Bd", "Ed", "Dl", "D1", "Nd"}
SILENT_MACROS = {"Bl", "El", "Bd", "Ed", "Pp", "Dl", "D1", "Dd", "Dt", "Os"}
PROSE_MACROS = {"Sh": "heading", "Ss": "heading", "Nd": "help", "Em": None, "Sy": None}


def manual(text):
    found = Collector("manual")
    in_display = in_synopsis = False
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.startswith("."):
            if not line.strip():
                found.close()
            elif not in_display and not in_synopsis:
                found.add(number, re.sub(r"\\&|\\f.", "", line).replace("\\-", "-"))
            continue
        macro, _, operands = line[1:].partition(" ")
        if macro in PARAGRAPH_MACROS:
            found.close()
        if macro == "Sh":
            in_synopsis = operands == "SYNOPSIS"
        elif macro in ("Bd", "Ed"):
            in_display = macro == "Bd" and "-ragged" not in operands and "-filled" not in operands
        if macro in SILENT_MACROS or macro.startswith("\\") or in_display or in_synopsis:
            continue
        if macro in PROSE_MACROS:
            found.add(number, operands.replace('"', ""))
            if PROSE_MACROS[macro]:
                found.close(PROSE_MACROS[macro])
        else:
            closing = re.search(r" ([.,:;)]+)$", line)
            found.add(number, "_" + (closing[1] if closing else ""))
    found.close()
    return found.passages


TEST_CASE = re.compile(r"\b(?:TYPED_)?TEST(?:_F|_P|_CASE)?\s*\(\s*\w+\s*,\s*(\w+)")
HELP_STATEMENT = re.compile(r"\b(?:add_\w*(?:option|flag|subcommand)|description)\b[^;{}]*$")
MESSAGE_WORDS_MIN = 2


def line_counter(text):
    """Returns a function from an offset to its line."""
    ends = [match.start() for match in re.finditer("\n", text)]
    return lambda offset: bisect.bisect_left(ends, offset) + 1


def without_mark(comment):
    """Removes the mark of a line comment: //, ///, //! or ///<."""
    return re.sub(r"^//[/!]?<?", "", comment)


def cpp(text):
    line_of = line_counter(text)
    comments = Collector("comment")
    messages = []
    comment_end = literal_end = None
    code, code_end = [], 0
    for token in TOKEN.finditer(text):
        if token["number"]:
            continue
        code += [text[code_end:token.start()], re.sub(r"[^\n]", " ", token[0])]
        code_end = token.end()
        if token["comment"]:
            gap = text[comment_end:token.start()] if comment_end is not None else ""
            if gap.strip() or gap.count("\n") != 1:
                comments.close()
            add_cpp_comment(comments, line_of(token.start()), token[0])
            comment_end = token.end()
        elif token["string"] or token["raw"]:
            adjacent = literal_end is not None and not text[literal_end:token.start()].strip()
            if not adjacent:
                statement = "".join(code[-7:-1])[-240:]
                messages.append(Passage("help" if HELP_STATEMENT.search(statement) else "message"))
            add_literal(messages[-1], line_of(token.start()), token)
            literal_end = token.end()
    comments.close()
    code = "".join(code) + text[code_end:]
    names = [Passage("test", match[1].replace("_", " "), [0], [line_of(match.start())])
             for match in TEST_CASE.finditer(code)] if "TEST" in code else []
    return comments.passages + [each for each in messages if is_sentence(each.text)] + names


def add_cpp_comment(comments, line, comment):
    if comment.startswith("//"):
        comments.add(line, without_mark(comment))
        return
    for number, text in enumerate(comment[2:-2].split("\n"), start=line):
        comments.add(number, re.sub(r"^\s*\*+(?=\s|$)", "", text))
    comments.close()


def add_literal(message, line, token):
    """Adds a literal to the message. A piece continues where the one before it ends."""
    if token["raw"]:
        content = re.sub(r'^[^(]*\(|\)[^)"]*"$', "", token[0])
    else:
        content = ESCAPED_SPACE.sub(" ", token["string"][1:-1]).replace('\\"', '"')
    message.offsets.append(len(message.text))
    message.lines.append(line)
    message.text += content


def is_sentence(text):
    return " " in text and len(text) < 2500 and len(re.findall(r"[A-Za-z]{2,}", text)) >= MESSAGE_WORDS_MIN


PYTHON_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)
      | (?P<block>[rRbBfF]{0,2}(?:\"{3}.*?\"{3}|'{3}.*?'{3}))
      | [rRbBfF]{0,2}(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""", re.VERBOSE | re.DOTALL)
SCRIPT_WORDS_MIN = 4


def python(text):
    line_of = line_counter(text)
    found = Collector("script")
    comment_end = None
    for token in PYTHON_TOKEN.finditer(text):
        line = line_of(token.start())
        if token["comment"]:
            gap = text[comment_end:token.start()] if comment_end is not None else ""
            if gap.strip() or gap.count("\n") != 1:
                found.close()
            found.add(line, token[0].lstrip("#! "))
            comment_end = token.end()
        elif token["block"]:
            found.close()
            for number, piece in enumerate(re.sub(r"^\w*...|...$", "", token[0]).split("\n"), start=line):
                found.add(number, piece)
            found.close()
        elif len(re.findall(r"[A-Za-z]{2,}", token["string"])) >= SCRIPT_WORDS_MIN and " " in token["string"]:
            found.alone(line, ESCAPED_SPACE.sub(" ", token["string"][1:-1]))
    found.close()
    return found.passages


def hash_comments(text):
    found = Collector("script")
    for number, line in enumerate(text.split("\n"), start=1):
        whole = re.match(r"\s*#+(?!!)(.*)", line)
        if whole:
            found.add(number, whole[1])
            continue
        found.close()
        trailing = re.search(r"\s# (.*)$", line)
        if trailing:
            found.alone(number, trailing[1])
    found.close()
    return found.passages
