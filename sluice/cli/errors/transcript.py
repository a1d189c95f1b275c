"""Transcripts of a shell: the commands of a case, with the standard error and the exit status of each.

    # A line of prose, ignored.
    The name of a case
      $ touch a
      $ sluice fat ls a
      sluice fat ls: a: …
      [1]

A case begins with a line at the margin and has an indented block. `$` begins a command, `>` continues it. Below a command
are its lines on standard error, and its exit status in brackets unless it is 0. README.md describes the placeholders.
"""

import dataclasses
import os
import re
import signal
import subprocess

INDENT = "  "
MARK = "\x1e"


@dataclasses.dataclass
class Step:
    """A command and its result."""
    command: list  # lines
    stderr: list = dataclasses.field(default_factory=list)
    status: int = 0

    def lines(self):
        shown = [f"{INDENT}{'>' if number else '$'} {line}".rstrip() for number, line in enumerate(self.command)]
        shown += [INDENT + line for line in self.stderr]
        return shown + ([f"{INDENT}[{self.status}]"] if self.status else [])


@dataclasses.dataclass
class Case:
    name: str
    line: int
    steps: list

    def text(self):
        return "\n".join([self.name, *(line for step in self.steps for line in step.lines())])


def parse(text):
    """Returns the blocks of a transcript: texts (prose and empty lines) and cases, in their order."""
    blocks = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith(INDENT):
            if not blocks or not isinstance(blocks[-1], Case):
                raise ValueError(f"line {number}: a command without the name of a case")
            add_line(blocks[-1], number, line[len(INDENT):])
        elif line.strip() and not line.startswith("#"):
            blocks.append(Case(line, number, []))
        else:
            blocks.append(line)
    return blocks


def add_line(case, number, line):
    status = re.fullmatch(r"\[(\d+)\]", line)
    if line.startswith("$ "):
        case.steps.append(Step([line[2:]]))
    elif not case.steps:
        raise ValueError(f"line {number}: the case does not begin with a command")
    elif line == ">" or line.startswith("> "):
        case.steps[-1].command.append(line[2:])
    elif status:
        case.steps[-1].status = int(status[1])
    else:
        case.steps[-1].stderr.append(line)


def text_of(blocks):
    return "\n".join(block.text() if isinstance(block, Case) else block for block in blocks) + "\n"


def run(case, prelude, directory, environment, seconds_max=60):
    """Runs the commands in one shell in `directory`. Returns their raw results as steps."""
    script = [f". {prelude}", "exec >/dev/null"]
    for step in case.steps:
        script += ["{ " + step.command[0], *step.command[1:], "}", f"printf '\\036%d\\n' $? >&2"]
    shell = subprocess.Popen(["/bin/sh", "-c", "\n".join(script)], cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    try:
        _, stderr = shell.communicate(timeout=seconds_max)
    except subprocess.TimeoutExpired:
        os.killpg(shell.pid, signal.SIGKILL)  # a server that should not have started
        _, stderr = shell.communicate()
    parts = stderr.decode(errors="backslashreplace").split(MARK)
    outputs = [parts[0], *(part.partition("\n")[2] for part in parts[1:])]
    statuses = [int(part.partition("\n")[0]) for part in parts[1:]]
    if len(statuses) != len(case.steps):
        raise AssertionError(f"{case.name}: the shell did not reach its end: {outputs}")
    return [Step(step.command, output.splitlines(), status)
            for step, output, status in zip(case.steps, outputs, statuses)]
