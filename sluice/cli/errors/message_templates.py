"""Finds the messages in the sources: every string literal that a user may see in an error, a warning or a log line.

A literal counts unless it certainly is something else. So a message that reaches the user in a new way is found, too.
"""

import re
from dataclasses import dataclass

TOKEN = re.compile(
    r"""(?P<number>\b\d(?:[\w.]|'\w)*)
      | (?P<comment>//[^\n]*|/\*(?:.|\n)*?\*/)
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<character>'(?:\\.|[^'\\\n])*')""", re.VERBOSE)

# The code before a literal, back to the beginning of its statement, if the literal is not a message.
OTHER_USES = re.compile(
    r"""\#\s*include\s*$
      | \b(?:add(?:_\w*(?:option|flag|subcommand|command))?|example|usage|value_name|group|one_of)\s*\([^;{}]*$
      | \boption_text\{[^;]*$
      | \b(?:ENSURE|static_assert|getenv)\s*\([^;{}]*$
      | \bfmt::print\((?!stderr)[^;]*$  # standard output
      | \b(?:starts_with|ends_with|contains|find|exists)\(\s*$
      | [!=]=\s*$""", re.VERBOSE)
# A literal of one word is a message only as the operation of an error: "open".
OPERATION = re.compile(
    r"\b(?:failure\(\{|error\(|error::last\(|with_path\(|\.last\(|of_io\(|of_policy\(|of_protocol\(|of_status\()[^;{}]*$"
    r"|\bsystem_failure\($|\.operation = $")
PLACEHOLDER = re.compile(r"\{[^{}]*\}")
# A statement has fewer pieces of code between its comments and literals.
STATEMENT_PIECES_MAX = 80
WORD = re.compile(r"[A-Za-z]{2,}")


@dataclass(frozen=True)
class Template:
    path: str
    line: int
    text: str

    def pieces(self):
        """The constant parts between the placeholders, without those that are only punctuation."""
        parts = PLACEHOLDER.split(self.text.replace("{{", "\x01").replace("}}", "\x02"))
        parts = [part.replace("\x01", "{").replace("\x02", "}").strip() for part in parts]
        return [part for part in parts if WORD.search(part)]

    def matches(self, line):
        """Whether the line has all the pieces, in their order. An operation of one word stands after a subject."""
        if WORD.fullmatch(self.text):
            return re.search(rf": {self.text}(:|;|$)", line) is not None
        at = 0
        for piece in self.pieces():
            at = line.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return True


def decoded(literal):
    text = literal[1:-1]
    return text.replace('\\"', '"').replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t").replace("\\\\", "\\")


def templates(path, source):
    """Yields the messages of one source file. Adjacent literals are one message."""
    code = []  # without comments and literals
    group, group_start, group_end = "", 0, -1
    position = 0

    def finish():
        if group and is_message("".join(code_before_group), group):
            yield Template(path, source.count("\n", 0, group_start) + 1, group.rstrip("\n"))

    code_before_group = []
    for token in TOKEN.finditer(source):
        if token["number"]:  # it may have quotes
            continue
        between = source[position:token.start()]
        code.append(between)
        position = token.end()
        if token["comment"]:
            code.append(" ")
            continue
        if token["character"]:
            code.append("''")
            continue
        is_adjacent = group and not re.sub(r"//[^\n]*", "", source[group_end:token.start()]).strip()
        if not is_adjacent:
            yield from finish()
            code_before_group = code[-STATEMENT_PIECES_MAX:]
            group, group_start = "", token.start()
        group += decoded(token["string"])
        group_end = token.end()
        code.append('""')
    yield from finish()


def is_message(code, text):
    statement = code[-2000:].rpartition(";")[2]
    if "\n" in text.strip() or OTHER_USES.search(statement):  # a message is one line
        return False
    if len(WORD.findall(PLACEHOLDER.sub(" ", text))) >= 2 and " " in text.strip():
        return True
    return bool(WORD.search(text)) and bool(OPERATION.search(statement))
