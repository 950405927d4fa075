"""Grammars over characters (GBNF) against a recogniser of their own, on all short texts, and against the reference."""

from __future__ import annotations

import itertools
import os
import random
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from strategies import Case
from walks import Walks, walk_some

import glrgrid as gg
from glrgrid.reference.cfg import Cfg
from glrgrid.reference.oracle import Oracle

Tree = tuple[Any, ...]
"""``("text", str)``, ``("set", str)``, ``("ref", name)``, ``("seq", [...])``, ``("or", [...])`` or
``("times", tree, low, high)``."""

LETTERS = "abéè"
"""The last two share their first byte."""


# Random grammars as trees, and as text


def random_tree(rng: random.Random, names: list[str], depth: int) -> Tree:
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        leaf = rng.random()
        if leaf < 0.5:
            return ("ref", rng.choice(names))
        if leaf < 0.8:
            return ("text", "".join(rng.choices(LETTERS, k=rng.choice((0, 1, 1, 1, 2, 3)))))
        return ("set", "".join(sorted(rng.sample(LETTERS, rng.randint(1, 3)))))
    if kind < 0.65:
        return ("seq", [random_tree(rng, names, depth - 1) for _ in range(rng.randint(2, 3))])
    if kind < 0.85:
        return ("or", [random_tree(rng, names, depth - 1) for _ in range(rng.randint(2, 3))])
    low, high = rng.choice(((0, 1), (0, None), (1, None), (2, 2), (0, 2), (1, 3), (2, None)))
    return ("times", random_tree(rng, names, depth - 1), low, high)


def random_rules(rng: random.Random) -> dict[str, Tree]:
    names = ["root", "a-1", "b_", "C"][: rng.randint(2, 4)]
    rules = {name: random_tree(rng, names, 3) for name in names}
    for name in names:
        if rng.random() < 0.6:  # a way out of the recursion
            rules[name] = ("or", [rules[name], ("text", rng.choice(("a", "ab", "é")))])
    return rules


def written(tree: Tree, rng: random.Random) -> str:
    tag, *args = tree
    if tag == "ref":
        return args[0]
    if tag == "text":
        return f'"{args[0]}"'
    if tag == "set":
        left_out = "".join(c for c in LETTERS if c not in args[0])
        # Other letters never occur in the texts that are tried.
        return f"[^{left_out}]" if rng.random() < 0.3 and left_out else f"[{args[0]}]"
    if tag == "seq":
        return "(" + " ".join(written(item, rng) for item in args[0]) + ")"
    if tag == "or":
        return "(" + " | ".join(written(item, rng) for item in args[0]) + ")"
    item, low, high = args
    counts = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((low, high))
    return f"({written(item, rng)})" + (counts or f"{{{low},{'' if high is None else high}}}")


def gbnf_text(rules: dict[str, Tree], rng: random.Random) -> str:
    return "\n".join(f"{name} ::= {written(tree, rng)}" for name, tree in rules.items())


# A recogniser: sets of ends, and whether a text may go on


class Recogniser:
    """Where each rule can end from each position, by iteration to the least fixed point.

    ``MORE`` among the ends says that the text ends inside, and could go on.
    """

    MORE = -1

    def __init__(self, rules: dict[str, Tree]) -> None:
        self.rules = rules
        self.known: dict[str, set[int]] = {}
        self.productive: set[str] = set()
        while found := {n for n, t in rules.items() if n not in self.productive and self._derives(t)}:
            self.productive |= found

    def _derives(self, tree: Tree) -> bool:
        tag, *args = tree
        if tag == "ref":
            return args[0] in self.productive
        if tag == "seq":
            return all(map(self._derives, args[0]))
        if tag == "or":
            return any(map(self._derives, args[0]))
        return tag != "times" or args[1] == 0 or self._derives(args[0])

    def read(self, text: str) -> set[int]:
        """Ends of the root rule from the beginning of the text."""
        if text in self.known:
            return self.known[text]
        self.text = text
        self.table: dict[tuple[str, int], set[int]] = {
            (name, at): set() for name in self.rules for at in range(len(text) + 1)
        }
        grew = True
        while grew:
            grew = False
            for (name, at), known in self.table.items():
                found = self._ends(self.rules[name], at)
                grew |= not found <= known
                known |= found
        self.known[text] = self.table["root", 0]
        return self.known[text]

    def _ends(self, tree: Tree, at: int) -> set[int]:
        tag, *args = tree
        if tag == "ref":
            return self.table[args[0], at]
        if tag in ("text", "set"):
            options = [args[0]] if tag == "text" else list(args[0])
            rest = self.text[at:]
            ends = {at + len(o) for o in options if rest.startswith(o)}
            return ends | {self.MORE for o in options if o.startswith(rest) and o != rest}
        if tag == "or":
            return set().union(*(self._ends(item, at) for item in args[0]))
        if tag == "seq":
            ends = {at}
            for item in args[0]:
                ends = self._then(ends, item)
            return ends
        item, low, high = args
        ends = {at}
        for _ in range(low):
            ends = self._then(ends, item)
        steps = len(self.text) + 1 if high is None else high - low
        for _ in range(steps):
            ends |= self._then(ends, item)
        return ends

    def _then(self, ends: set[int], item: Tree) -> set[int]:
        found = {self.MORE} if self.MORE in ends and self._derives(item) else set()
        return found.union(*(self._ends(item, end) for end in ends if end != self.MORE))


def test_the_recogniser():
    rules = {"root": ("seq", [("ref", "root"), ("text", "ab")]), "x": ("text", "")}
    assert Recogniser(rules).productive == {"x"}
    rules["root"] = ("or", [rules["root"], ("times", ("set", "ab"), 1, 2)])
    recogniser = Recogniser(rules)
    assert recogniser.read("") == {Recogniser.MORE}
    assert recogniser.read("ba") == {1, 2, Recogniser.MORE}
    assert recogniser.read("aaab") == {1, 2, 4, Recogniser.MORE}
    assert recogniser.read("baé") == {1, 2}


# The engine


def texts(rng: random.Random, recogniser: Recogniser, count: int) -> Iterator[str]:
    """Short texts, most of them along what is possible."""
    for _ in range(count):
        text = ""
        for _ in range(rng.randint(0, 9)):
            letters = rng.sample(LETTERS, len(LETTERS))
            viable = (c for c in letters if is_viable(recogniser, text + c))
            text += next(viable, letters[0]) if rng.random() < 0.9 else letters[0]
        yield text


def is_viable(recogniser: Recogniser, text: str) -> bool:
    ends = recogniser.read(text)
    return Recogniser.MORE in ends or len(text) in ends


def read_quietly(text: str) -> gg.Grammar:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.GrammarWarning)
        return gg.Grammar.from_gbnf(text)


VOCAB = gg.Vocab.from_bytes({**{i: bytes([i]) for i in range(256)}}, eos_ids=[256], size=257)


def check_texts(
    grammar: gg.Grammar, recogniser: Recogniser, rng: random.Random, counts: Counter[str]
) -> None:
    compiled = gg.compile(grammar, VOCAB)
    assert compiled.warnings == []
    for text in [*map("".join, itertools.product(LETTERS[:2], repeat=3)), *texts(rng, recogniser, 12)]:
        matcher = gg.Matcher(compiled)
        data = text.encode()
        longest = next(n for n in range(len(text), -1, -1) if is_viable(recogniser, text[:n]))
        taken = matcher.accept_bytes(data)
        whole = len(text[:longest].encode())
        # The first byte of the next character can be right though the character is not.
        assert taken == whole or (whole + 1 == taken < len(data) and data[whole] == 0xC3), (text, taken)
        counts["refused" if taken < len(data) else "taken"] += 1
        if taken == len(data):
            accepted = len(text) in recogniser.read(text)
            assert matcher.is_accepting() == accepted, text
            counts["accepted"] += accepted


def test_random_grammars_character_by_character():
    """The engine on the chosen terminals against the recogniser on the rules; see ``make fuzz``."""
    until = time.monotonic() + float(os.environ.get("GLRGRID_FUZZ_SECONDS", "0"))
    rng = random.Random(random.randrange(2**32) if until > time.monotonic() else 77)
    counts: Counter[str] = Counter()
    number = 0
    while number < 100 or time.monotonic() < until:
        number += 1
        rules = random_rules(rng)
        recogniser = Recogniser(rules)
        text = gbnf_text(rules, rng)
        if "root" not in recogniser.productive:
            with pytest.raises(gg.GrammarError):
                gg.compile(read_quietly(text), VOCAB)
            counts["empty"] += 1
            continue
        grammar = read_quietly(text)
        counts["several terminals"] += len(grammar.ir.terminals) > 1
        counts["recursive"] += len(grammar.ir.nonterminals) > 1
        try:
            check_texts(grammar, recogniser, rng, counts)
        except AssertionError as error:
            raise AssertionError(f"{error} in\n{text}\n{grammar.ir}") from error
    floors = {
        "empty": 3,
        "several terminals": 40,
        "recursive": 40,
        "refused": 200,
        "taken": 200,
        "accepted": 100,
    }
    assert not {name: counts[name] for name, floor in floors.items() if counts[name] < floor}, counts


def test_masks_equal_the_reference():
    """On tokens of several characters and parts of characters.

    There are dead ends, because not all characters can be spelt.
    """
    rng = random.Random(5)
    walks = Walks()
    while walks.counts["positions"] < 1500:
        rules = random_rules(rng)
        recogniser = Recogniser(rules)
        if "root" not in recogniser.productive:
            continue
        ir = read_quietly(gbnf_text(rules, rng)).ir
        if Cfg(ir).has_hidden_left_recursion():
            continue  # the reference has no table for it
        tokens = {"".join(rng.choices(LETTERS, k=rng.randint(1, 4))).encode() for _ in range(12)}
        tokens |= {token[: rng.randint(1, len(token))] for token in tokens} | {c.encode() for c in LETTERS}
        tokens |= {c.encode()[1:] for c in "éè"}
        sampled = tuple(text.encode() for text in texts(rng, recogniser, 3))
        case = Case(ir, LETTERS.encode(), tuple(sorted(tokens)), sampled, family="gbnf", oracle=Oracle(ir))
        assert not case.oracle.separability()
        walk_some(case, rng, walks)
    walks.check_floors({"positions": 1500, "ambiguous": 10, "refusals": 20})
