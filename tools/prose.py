#!/usr/bin/env python3
"""Checks that texts and names of the project are plain English with the standard terms of the field.

    tools/prose.py [--count | --list] [--root DIRECTORY] [PATH ...]

Prints "path:line: rule: text" for each finding and exits with 1 if there is any. Without PATH, it checks every
file that git tracks or would track. The rules are in prose_rules.toml, the terms in prose_glossary.toml, and
prose_examples.toml has sentences for each rule, which prose_test.py checks.

  --count   prints the number of findings per rule
  --list    prints every rule with its reason and the better wording

A text that has to stay, such as a quotation, is exempt if a comment in its line or in the line before it names the
rule and the reason: "prose: RULE is exempt because REASON".
"""

import argparse
import collections
import functools
import pathlib
import posixpath
import re
import sys
import tomllib
from dataclasses import dataclass

from prose_text import CPP_ENDINGS, line_counter, passages
from tidy import Repository, Source

HOME = pathlib.Path(__file__).resolve().parent
EXEMPTION = re.compile(r"prose: ([\w-]+) is exempt because \S+")
KINDS = {"page", "heading", "manual", "comment", "message", "help", "script", "test"}
KEYS = {"why", "write", "words", "find", "keep", "only", "skip", "case"}
EXCERPT_CHARACTERS = 30


@dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    rule: str
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


class Rule:
    """A table of prose_rules.toml, compiled."""

    def __init__(self, name, table, shorthand):
        unknown = set(table) - KEYS | (set(table.get("only", [])) | set(table.get("skip", []))) - KINDS
        if unknown:
            raise ValueError(f"rule {name}: unknown {', '.join(sorted(unknown))}")
        flags = 0 if table.get("case") else re.IGNORECASE
        self.name = name
        self.why = table["why"]
        self.write = table["write"]
        self.words = table["words"]
        self.find = compiled(table["find"], shorthand, flags)
        self.keep = compiled(table["keep"], shorthand, flags) if "keep" in table else None
        self.kinds = set(table.get("only", KINDS)) - set(table.get("skip", []))

    def matches(self, text):
        """Yields the matches of the rule in the text that no phrase to keep overlaps."""
        kept = None
        for match in self.find.finditer(text):
            if kept is None:
                kept = [each.span() for each in self.keep.finditer(text)] if self.keep else []
            if not any(begin < match.end() and match.start() < end for begin, end in kept):
                yield match


def compiled(patterns, shorthand, flags):
    """Joins the patterns into one that matches whole words only."""
    def expanded(pattern):
        pattern = re.sub(r"\{([a-z]+)\}", lambda name: shorthand[name[1]], pattern)
        return ("" if pattern.startswith(("^", "(?:^", "[", ";")) else r"(?<!\w)") + pattern + r"(?!\w)"

    return re.compile("|".join(f"(?:{expanded(pattern)})" for pattern in patterns), flags)


def load(name):
    with open(HOME / name, "rb") as file:
        return tomllib.load(file)


class Rules:
    """The rules of the project and its glossary."""

    def __init__(self, tables, glossary):
        shorthand = tables["shorthand"]
        self.all = [Rule(name, table, shorthand) for name, table in tables.items() if name != "shorthand"]
        self.all.append(vocabulary(glossary, shorthand))
        self.identifiers = glossary["identifiers"]
        self.prefixes = glossary["prefixes"]
        self.of_word = collections.defaultdict(list)
        for rule in self.all:
            for word in rule.words:
                self.of_word[word].append(rule)

    @staticmethod
    @functools.cache
    def of_project():
        return Rules(load("prose_rules.toml"), load("prose_glossary.toml"))

    def standard_name(self, name):
        """Returns the name to use instead of a private one; None for any other name."""
        if name in self.identifiers:
            return self.identifiers[name]
        prefix = name[:name.find("_") + 1]
        return self.prefixes[prefix] + name[len(prefix):] if prefix in self.prefixes else None

    def check(self, passage):
        """Yields (offset, rule, excerpt) for each finding in the passage."""
        words = set(re.findall("[a-z]+", passage.text.lower()))
        for rule in {rule.name: rule for word in words & self.of_word.keys() for rule in self.of_word[word]}.values():
            if passage.kind in rule.kinds:
                for match in rule.matches(passage.text):
                    begin = max(0, match.start() - EXCERPT_CHARACTERS)
                    yield match.start(), rule.name, passage.text[begin:match.end() + EXCERPT_CHARACTERS]


def vocabulary(glossary, shorthand):
    """Returns the rule against the private terms of the glossary."""
    return Rule("vocabulary", {
        "why": "Only authors of the project know the term",
        "write": "; ".join(term["write"] for term in glossary["terms"].values()),
        "words": [word for term in glossary["terms"].values() for word in term["words"]],
        "find": [pattern for term in glossary["terms"].values() for pattern in term["find"]],
        "keep": glossary["kept_phrases"]["keep"],
    }, shorthand)


def private_names(path, text, rules):
    """Yields a finding for each private name in the code of the file, once, and in the name of the file."""
    stem = posixpath.basename(path).split(".")[0].removesuffix("_test")
    if rules.standard_name(stem):
        yield Finding(path, 1, "identifier", f"file name {stem}: use {rules.standard_name(stem)}")
    if not path.endswith(CPP_ENDINGS):
        return
    code = Source(path, text).code
    line_of = line_counter(text)
    for name in set(re.findall(r"\b[a-z]\w*", code)):
        standard = rules.standard_name(name)
        if standard:
            line = line_of(re.search(rf"\b{name}\b", code).start())
            yield Finding(path, line, "identifier", f"{name}: use {standard}")


def exempt_lines(text):
    """Returns (line, rule) for each exemption in the text."""
    if "prose: " not in text:
        return set()
    found = set()
    for number, line in enumerate(text.split("\n"), start=1):
        for match in EXEMPTION.finditer(line):
            found |= {(number, match[1]), (number + 1, match[1])}
    return found


def findings(files, rules):
    """Returns the findings in the files, which are (path, text)."""
    found = []
    for path, text in files:
        here = []
        for passage in passages(path, text):
            for offset, rule, excerpt in rules.check(passage):
                here.append(Finding(path, passage.line_at(offset), rule, excerpt))
        here += private_names(path, text, rules)
        exempt = exempt_lines(text) if here else ()
        found += [each for each in here if (each.line, each.rule) not in exempt]
    return sorted(found)


def listing(rules):
    lines = [f"{rule.name}\n  why:   {rule.why}\n  write: {rule.write}" for rule in rules.all]
    lines += ["identifier", "  why:   A private term in the name of a type, a function or a file"]
    return "\n".join(lines + [f"  {name} -> {term}" for name, term in rules.identifiers.items()])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=HOME.parent)
    parser.add_argument("paths", nargs="*")
    options = parser.parse_args()
    rules = Rules.of_project()
    if options.list:
        print(listing(rules))
        return 0
    below = tuple(posixpath.normpath(path) for path in options.paths)
    files = [(path, text) for path, text in Repository.at(options.root.resolve()).texts()
             if not below or path in below or path.startswith(tuple(directory + "/" for directory in below))]
    found = findings(files, rules)
    if options.count:
        for rule, count in collections.Counter(finding.rule for finding in found).most_common():
            print(f"{count:6} {rule}")
    else:
        print("".join(f"{finding}\n" for finding in found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
