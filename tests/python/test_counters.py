"""Repeats of many copies: counting and copying agree, and where nobody could copy, arithmetic is the judge.

Random lexers that count are held against the reference by ``test_exactness``, kind ``count``.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest
from strategies import grammar, lit, pat
from walks import variants

import glrgrid as gg
from glrgrid import _native

COPIED = 2**32 - 1
LETTERS = b'ab1;" '
TOKENS = [bytes([b]) for b in LETTERS] + [
    b"aa",
    b"ab",
    b"aaaa",
    b"a;",
    b'"a',
    b'";',
    b"1a",
    b"a1b",
    b"  ",
    b'1"1',
]
VOCAB = _native.Vocab([*TOKENS, b"<end>"], [len(TOKENS)])
SMALL = _native.Vocab([b";", b"b", b"<end>"], [2])
"""Nothing that most patterns repeat."""

PATTERNS = {
    "a{20,30}": b"a" * 31,
    "a{2,100}|b{40}1": b"b" * 40 + b"1",
    '"a{2,30}1{2,40}"': b'"' + b"a" * 30 + b"1" * 40 + b'"',
    '"(a+b*1+){0,25}"&"[ab1]{12,60}"': b'"' + b"aab11" * 12 + b'"',
    "(1(ab?|1){12,40}b)+": b"1" + b"a" * 12 + b"ab" * 20 + b"bb1" + b"1" * 40 + b"b",
    "a+|(aa){0,40}1": b"a" * 80 + b"1",
    "(a{10,12}b){10,14}": (b"a" * 11 + b"b") * 14,
    "(a|aa){12,30}": b"a" * 60,
}


def mask(matcher: _native.Matcher) -> int:
    row = np.zeros(1, np.int32)
    try:
        matcher.fill_next_token_bitmask(row)
    except gg.DeadEnd:
        return 0
    return int(row[0])


@pytest.mark.parametrize("vocab", [VOCAB, SMALL], ids=["letters", "none of the letters"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_counting_and_copying_agree(pattern: str, vocab: _native.Vocab) -> None:
    ir = grammar(
        {"s": "A SEMI s | "}, {"A": pat(pattern), "SEMI": lit(";"), "I": pat(" {1,20}", ignored=True)}
    )
    counted = variants(ir.to_json(), vocab, copied_states=0, shared_tokens=0, min_agreement=0)
    copied = _native.compile(ir.to_json(), vocab, copied_states=COPIED)
    matchers = {name: _native.Matcher(make()) for name, make in counted.items()}
    judge = _native.Matcher(copied)
    for byte in b" " * 18 + PATTERNS[pattern] + b"; " + PATTERNS[pattern] + b"b":
        wanted = mask(judge)
        taken = judge.accept_bytes(bytes([byte]))
        for name, matcher in matchers.items():
            assert mask(matcher) == wanted, name
            assert matcher.accept_bytes(bytes([byte])) == taken, name
            assert matcher.is_accepting() == judge.is_accepting(), name
        if not taken:
            break


BESIDE = {
    "an ignored one that is never one": (
        {"A": pat("a{20}b"), "I": pat("b{9}", ignored=True), "R": pat("[ab]{25}", reject=True)},
        b"b" * 9 + b"a" * 20 + b"b",
    ),
    "and that can be one": (
        {"A": pat("a{14,}b"), "I": pat("b{9,22}", ignored=True), "R": pat("[ab1]{25}", reject=True)},
        b"b" * 9 + b"a" * 14 + b"b" * 12,
    ),
    "a longer match by one": (
        {"A": pat("a{20}1"), "B": pat("b{12}"), "C": pat("b{12}a{21}")},
        b"b" * 12 + b"a" * 20 + b"1" + b"b" * 12 + b"a" * 21,
    ),
    "no longer match by one": (
        {"A": pat("a{20}1"), "B": pat("b{12}"), "C": pat("b{12}a{20}")},
        b"b" * 12 + b"a" * 20 + b"1",
    ),
}
"""Lexemes beside longer matches that count as well, with a text."""


@pytest.mark.parametrize("name", BESIDE)
def test_counts_of_longer_matches_are_known(name: str) -> None:
    terminals, text = BESIDE[name]
    parts = [t for t in terminals if t not in "IR"]
    ir = grammar({"s": " | ".join([*(f"{t} s" for t in parts), ""])}, terminals).to_json()
    judged = _native.compile(ir, VOCAB, copied_states=COPIED)
    for variant, make in variants(ir, VOCAB, copied_states=0, shared_tokens=0, min_agreement=0).items():
        judge, matcher = _native.Matcher(judged), _native.Matcher(make())
        for byte in text:
            assert mask(matcher) == mask(judge), variant
            taken = judge.accept_bytes(bytes([byte]))
            assert matcher.accept_bytes(bytes([byte])) == taken, variant
            if not taken:
                break


def schema(**keywords: Any) -> gg.Grammar:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gg.Grammar.from_json_schema(json.dumps({"type": "string", **keywords}))


@pytest.mark.parametrize("mode", ["aot", "lazy"])
@pytest.mark.parametrize("least, most", [(0, 100_000), (70_000, 100_000), (5_000, 5_000)])
def test_lengths_are_exact(least: int, most: int, mode: str) -> None:
    vocab = gg.Vocab.default()
    compiled = gg.compile(schema(minLength=least, maxLength=most), vocab, mode=mode)
    words = [(i, vocab.token_bytes(i)) for i in range(vocab.size)]
    words = [(i, word) for i, word in words if word and word.isalpha()]
    longest = max(len(word) for _, word in words)
    quote = next(i for i in range(vocab.size) if vocab.token_bytes(i) == b'"')
    bitmask = gg.allocate_token_bitmask(1, vocab.size)
    lengths = {0, 1, 2, *range(most - longest - 2, most + 1), *range(max(least - 3, 0), min(least + 3, most))}
    matcher = gg.Matcher(compiled)
    assert matcher.accept_bytes(b'"')
    written = 0
    for length in sorted(lengths):
        # Three code points in every spelling there is.
        pieces = [b"a", b"\\u0061", "\u20ac\U0001f600".encode(), b"\\ud83d\\ude00\\n"]
        for piece, points in zip(pieces, (1, 1, 2, 2), strict=True):
            if written + points <= length:
                assert matcher.accept_bytes(piece) == len(piece)
                written += points
        rest = b"x" * (length - written)
        assert matcher.accept_bytes(rest) == len(rest)
        written = length
        matcher.fill_next_token_bitmask(bitmask)
        allowed = np.unpackbits(np.asarray(bitmask).view(np.uint8), bitorder="little").astype(bool)
        assert all(allowed[i] == (length + len(word) <= most) for i, word in words), length
        assert allowed[quote] == (least <= length <= most), length
    assert matcher.accept_bytes(b"x") == 0


@pytest.mark.parametrize("mode", ["aot", "lazy"])
def test_words_and_lengths_are_counted_together(mode: str) -> None:
    vocab = gg.Vocab.from_bytes(
        {0: b'"', 1: b"a", 2: b" ", 3: b"a ", 4: b" a", 5: b"aa", 6: b""}, eos_ids=[6]
    )
    compiled = gg.compile(schema(pattern=r"^(?:\S+\s+){0,299}\S+$", maxLength=700), vocab, mode=mode)
    bitmask = gg.allocate_token_bitmask(1, vocab.size)

    def allowed(text: bytes) -> set[int]:
        matcher = gg.Matcher(compiled)
        assert matcher.accept_bytes(text) == len(text)
        matcher.fill_next_token_bitmask(bitmask)
        return {i for i in range(vocab.size) if int(np.asarray(bitmask)[0, 0]) >> i & 1}

    assert allowed(b'"' + b"a " * 297 + b"a") == {0, 1, 2, 3, 4, 5}
    assert allowed(b'"' + b"a " * 298 + b"a") == {0, 1, 2, 3, 4, 5}
    assert allowed(b'"' + b"a " * 299) == {1, 2, 4, 5}
    assert allowed(b'"' + b"a " * 299 + b"a") == {0, 1, 5}
    for length, expected in [
        (696, {0, 1, 2, 3, 4, 5}),
        (698, {0, 1, 2, 4, 5}),
        (699, {0, 1}),
        (700, {0}),
    ]:
        words = b"aaaa " * 130
        assert allowed(b'"' + words + b"a" * (length - len(words))) == expected, length
