"""Regular expressions and choices as whole grammars."""

from __future__ import annotations

import itertools
import random
import re

import pytest

import glrgrid as gg

VOCAB = gg.Vocab.from_bytes({i: bytes([i]) for i in range(256)}, eos_ids=[256], size=257)


def random_pattern(rng: random.Random, depth: int) -> str:
    if depth == 0:
        return rng.choice(["a", "b", "ab", ".", "[ab]", "[^a]", r"\w", r"\n", ""])
    kind = rng.random()
    if kind < 0.4:
        return "".join(random_pattern(rng, depth - 1) for _ in range(rng.randint(1, 3)))
    if kind < 0.65:
        group = rng.choice(["(", "(?:", "(?i:", "(?s:"])
        return f"{group}{random_pattern(rng, depth - 1)}|{random_pattern(rng, depth - 1)})"
    counts = rng.choice(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{,2}?", "{2,}"])
    return f"(?:{random_pattern(rng, depth - 1)}){counts}"


def test_the_language_is_that_of_fullmatch():
    rng = random.Random(3)
    texts = ["".join(t) for n in range(5) for t in itertools.product("ab\n", repeat=n)] + ["A", "aB", "é"]
    accepted = refused = 0
    for _ in range(60):
        pattern = random_pattern(rng, 3)
        if rng.random() < 0.3:
            pattern = f"^{pattern}$" if "|" not in pattern else rf"\A(?:{pattern})\Z"
        compiled = gg.compile(gg.Grammar.from_regex(pattern), VOCAB)
        for text in texts:
            matcher = gg.Matcher(compiled)
            data = text.encode()
            found = matcher.accept_bytes(data) == len(data) and matcher.is_accepting()
            assert found == (re.fullmatch(pattern, text) is not None), (pattern, text)
            accepted += found
            refused += not found
    assert accepted > 300 and refused > 300


def test_flags():
    assert gg.Grammar.from_regex("a.", "is") == gg.Grammar.from_regex("(?is)a.")


def test_what_grows_exponentially_is_taken_apart():
    """Its automaton would have two million states."""
    grammar = gg.Grammar.from_regex("[ab]*a[ab]{20}")
    matcher = gg.Matcher(gg.compile(grammar, VOCAB))
    for count in range(40):
        assert matcher.accept_bytes(b"a") == 1
        assert matcher.is_accepting() == (count >= 20)


@pytest.mark.parametrize("value", [None, 1, b"a", ["a"]])
def test_patterns_are_text(value):
    with pytest.raises(TypeError, match="a regular expression"):
        gg.Grammar.from_regex(value)


@pytest.mark.parametrize("value", ["yes", [1], ["a", None]])
def test_choices_are_several_texts(value):
    with pytest.raises(TypeError, match="several texts"):
        gg.Grammar.from_choices(value)


def test_choices_have_no_surrogates():
    with pytest.raises(gg.GrammarError, match="surrogate"):
        gg.Grammar.from_choices(["\ud800"])


def test_many_choices():
    words = [f"word-{number}" for number in range(3000)]
    compiled = gg.compile(gg.Grammar.from_choices(words), VOCAB)
    matcher = gg.Matcher(compiled)
    assert matcher.accept_bytes(b"word-2999") == 9
    assert matcher.is_accepting() and not matcher.mask()[ord("0")]


@pytest.mark.parametrize(
    "read",
    [
        lambda: gg.Grammar.from_regex("(ab){0,4294967290}c"),
        lambda: gg.Grammar.from_gbnf('root ::= x{3,1000000}\nx ::= "(" x? ")"'),
        lambda: gg.Grammar.from_lark('start: x{0,1000000}\nx: "a" x? "b"'),
    ],
)
def test_large_counts_take_as_many_rules_as_they_have_bits(read) -> None:
    assert len(read().ir.productions) < 200
