#!/usr/bin/env python3
"""Tests each rule of prose.py with the sentences and files of prose_examples.toml."""

import copy
import unittest

import prose
from prose_text import Passage

TABLES = prose.load("prose_rules.toml")
GLOSSARY = prose.load("prose_glossary.toml")
EXAMPLES = prose.load("prose_examples.toml")
FILES = EXAMPLES.pop("file")


def kind_for(rule):
    """Returns a kind of text that the rule applies to."""
    return "comment" if "comment" in rule.kinds else sorted(rule.kinds)[0]


def found_in(rules, sentence, kind):
    """Returns the names of the rules that find something in the sentence."""
    return {name for _, name, _ in rules.check(Passage(kind, sentence, [0], [1]))}


class Sentences(unittest.TestCase):
    rules = prose.Rules.of_project()

    def test_every_rule_has_examples_and_every_example_a_rule(self):
        self.assertEqual(set(EXAMPLES), {rule.name for rule in self.rules.all})
        for name, example in EXAMPLES.items():
            self.assertTrue(example["finds"] and example["accepts"], name)

    def test_a_rule_finds_its_sentences(self):
        for rule in self.rules.all:
            for sentence in EXAMPLES[rule.name]["finds"]:
                with self.subTest(rule=rule.name, sentence=sentence):
                    self.assertIn(rule.name, found_in(self.rules, sentence, kind_for(rule)))

    def test_no_rule_finds_plain_sentences(self):
        for rule in self.rules.all:
            for sentence in EXAMPLES[rule.name]["accepts"]:
                with self.subTest(rule=rule.name, sentence=sentence):
                    self.assertEqual(found_in(self.rules, sentence, kind_for(rule)), set())

    def test_each_pattern_of_a_rule_has_a_sentence(self):
        for rule in self.rules.all:
            table = TABLES.get(rule.name, {"find": []})
            for pattern in table["find"]:
                with self.subTest(rule=rule.name, pattern=pattern):
                    alone = prose.Rule(rule.name, {**table, "find": [pattern]}, TABLES["shorthand"])
                    self.assertTrue(any(list(alone.matches(each)) for each in EXAMPLES[rule.name]["finds"]))

    def test_each_private_term_has_a_sentence(self):
        for term in GLOSSARY["terms"]:
            only_one = copy.deepcopy(GLOSSARY)
            only_one["terms"] = {term: GLOSSARY["terms"][term]}
            rule = prose.vocabulary(only_one, TABLES["shorthand"])
            self.assertTrue(any(list(rule.matches(sentence)) for sentence in EXAMPLES["vocabulary"]["finds"]), term)

    def test_a_misspelt_key_of_a_rule_is_an_error(self):
        with self.assertRaises(ValueError):
            prose.Rule("x", {"why": "", "write": "", "words": [], "find": ["a"], "exept": []}, {})


class Files(unittest.TestCase):
    rules = prose.Rules.of_project()

    def test_findings_have_the_line_and_the_rule(self):
        for file in FILES:
            with self.subTest(path=file["path"]):
                found = prose.findings([(file["path"], file["text"])], self.rules)
                self.assertEqual([f"{each.line}: {each.rule}" for each in found], file["finds"])

    def test_each_kind_of_file_has_an_example(self):
        endings = {file["path"].rpartition(".")[2] for file in FILES}
        self.assertGreaterEqual(endings, {"md", "1", "cpp", "hpp", "py", "cmake"})

    def test_private_names_are_not_standard_names(self):
        private = self.rules.identifiers
        self.assertFalse(private.keys() & set(private.values()))

    def test_a_finding_is_printed_with_path_line_and_rule(self):
        self.assertEqual(str(prose.Finding("a.md", 3, "rule", "text")), "a.md:3: rule: text")


if __name__ == "__main__":
    unittest.main()
