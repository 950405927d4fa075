"""Explanations, expected terminals and token sets."""

from __future__ import annotations

import dataclasses
import functools
import random

import numpy as np
import pytest
from strategies import random_case
from walks import compile_case

import glrgrid as gg
from glrgrid import grammars

VOCAB = gg.Vocab.default()
EOS = VOCAB.eos_ids[0]
BASIC = '%glrgrid {"lexer": "basic"}\n'


@functools.cache
def compiled(name: str) -> gg.CompiledGrammar:
    text = grammars.load(name) if name in grammars.names() else BASIC + name
    return gg.compile(gg.Grammar.from_lark(text), VOCAB)


def after(name: str, text: bytes = b"") -> gg.Matcher:
    matcher = gg.Matcher(compiled(name))
    assert matcher.accept_bytes(text) == len(text)
    return matcher


def check(
    name: str, text: bytes, next_text: bytes, at_byte: int, found: list[str], *words: str
) -> gg.Explanation:
    """``next_text`` is refused after ``text``, with the same words as a token and as bytes."""
    matcher = after(name, text)
    explanation = matcher.explain_bytes(next_text)
    assert not explanation.allowed
    assert explanation.at_byte == at_byte
    assert explanation.found == found
    for word in words:
        assert word in explanation.reason
    assert "\n" not in explanation.reason and not explanation.reason.endswith(".")
    assert str(explanation) == f"not allowed: {explanation.reason}"
    assert matcher.accept_bytes(next_text) == at_byte
    return explanation


def test_what_came_and_what_was_expected() -> None:
    operators = ["PLUS", "MINUS", "STAR", "SLASH", "CIRCUMFLEX", "end of input", "ignored text"]
    e = check(
        "calc",
        b"12",
        b" 3",
        1,
        ["NUMBER"],
        '"3" would be NUMBER, which cannot come here',
        "expected PLUS, MINUS",
    )
    assert e.expected == operators
    e = check("calc", b"12", b"x", 0, ["NAME"], '"x" would be NAME, which cannot follow "12" (NUMBER)')
    assert e.expected == ["NUMBER", *operators]
    check("calc", b"1 +", b" 2 */", 4, ["SLASH"], '"/" would be SLASH')
    check("calc", b"(1", b"))", 1, ["RPAR"], '")" would be RPAR')
    check("sql_core", b"SELECT a FROM ", b"'t'", 0, ["STRING"], "STRING", "NAME, QUOTED_NAME", "more")


def test_a_lexeme_that_cannot_go_on() -> None:
    e = check("calc", b"12.", b"x", 0, [], '"12.", which can only become NUMBER, cannot go on with "x"')
    assert e.expected == ["NUMBER"]
    check("calc", b"", b"#", 0, [], 'no terminal that the grammar uses starts with "#"')
    check("calc", b"1 ", b"#", 0, [], '"#", and no terminal can start with it')
    check("json", b'"a', b"b\n", 1, [], '""ab"', r'cannot go on with "\n"')
    check("json", b"tr", b"\xff", 0, [], r'cannot go on with "\xff"', "TRUE")
    check("json", b'{"a": 1 ', b'"', 0, ["STRING"], "COMMA")


def test_a_longer_match() -> None:
    grammar = (
        'start: "!" LONG | ONE E PLUS DIGIT\nLONG: /1e\\+1/\nONE: "1"\nE: "e"\nPLUS: "+"\nDIGIT: /[0-9]/\n'
    )
    check(grammar, b"1e+", b"1", 0, ["LONG"], '"1e+1" is a longer match (LONG)')
    assert after(grammar, b"1e+").explain_bytes(b"2").allowed


def test_allowed() -> None:
    e = after("calc", b"1").explain_bytes(b" + 2")
    assert e.allowed and e.at_byte == 4 and e.found == []
    assert e.expected[:2] == ["NUMBER", "PLUS"]
    assert str(e).startswith("allowed: ")
    assert after("calc").explain_bytes(b"").allowed


def test_end_and_special_tokens() -> None:
    e = after("calc", b"1 +").explain(EOS)
    assert not e.allowed and e.found == ["end of input"]
    assert e.reason.startswith("the output is not complete; expected NUMBER, NAME")
    assert after("calc", b"1").explain(EOS).allowed
    silent = next(
        token for token, data in enumerate(VOCAB.tokens) if data is None and token not in VOCAB.eos_ids
    )
    e = after("calc").explain(silent)
    assert not e.allowed and "spells no text" in e.reason
    matcher = after("calc", b"1")
    for token in (-1, VOCAB.size):
        with pytest.raises(gg.StateError, match="out of range"):
            matcher.explain(token)
    assert matcher.accept_token(EOS)
    assert matcher.expected_terminals() == []
    for call in (
        lambda: matcher.explain(3),
        lambda: matcher.explain_bytes(b"1"),
        lambda: gg.allowed_tokens(matcher),
    ):
        with pytest.raises(gg.StateError, match="terminated"):
            call()


def test_expected_terminals() -> None:
    assert after("calc").expected_terminals() == ["NUMBER", "NAME", "MINUS", "LPAR", "ignored text"]
    assert after("calc", b"f(").expected_terminals() == [
        "NUMBER",
        "NAME",
        "MINUS",
        "LPAR",
        "RPAR",
        "ignored text",
    ]
    assert after("json", b'"').expected_terminals() == ["STRING"]
    assert after("json", b"1").expected_terminals() == ["NUMBER", "end of input", "ignored text"]
    assert after('start: "a" "b"', b"a").expected_terminals() == ["B"]
    assert after('start: "a" "b"', b"ab").expected_terminals() == ["end of input"]


@pytest.mark.parametrize("name", ["calc", "json", "sql_core"])
def test_explanations_agree_with_masks(name: str) -> None:
    rng = random.Random(3)
    refused = 0
    for _ in range(12):
        matcher = gg.Matcher(compiled(name))
        for _ in range(rng.randrange(12)):
            if matcher.is_terminated():
                matcher.rollback()
                break
            matcher.accept_token(int(rng.choice(np.flatnonzero(matcher.mask()))))
        if matcher.is_terminated():
            matcher.rollback()
        mask = matcher.mask()
        for token in rng.sample(range(VOCAB.size), 60):
            explanation = matcher.explain(token)
            assert explanation.allowed == mask[token], (matcher, token, explanation)
            refused += not explanation.allowed
            data = VOCAB.token_bytes(token)
            if not explanation.allowed and data is not None:
                assert matcher.fork().accept_bytes(data) == explanation.at_byte
                assert explanation.expected, (matcher, data, explanation)
    assert refused > 100


@pytest.mark.parametrize("lexer", ["basic", "contextual"])
def test_explanations_agree_with_masks_of_random_grammars(lexer: str) -> None:
    rng = random.Random(11)
    refused = longer = 0
    for _ in range(60):
        subject = compile_case(random_case(rng, lexer=lexer), rng)
        tokens, eos = subject.tokens, len(subject.tokens)
        matcher = gg.Matcher(subject.compiled["aot"])
        for _ in range(8):
            try:
                mask = matcher.mask()
            except gg.DeadEnd:
                break
            for token in range(len(mask)):
                explanation = matcher.explain(token)
                assert explanation.allowed == mask[token], (matcher, token, explanation)
                data = tokens[token] if token < eos else None
                if not explanation.allowed and data is not None:
                    refused += 1
                    longer += "longer match" in explanation.reason
                    assert matcher.fork().accept_bytes(data) == explanation.at_byte
                    assert not explanation.reason.startswith(";")
            allowed = [int(token) for token in np.flatnonzero(mask) if token < eos]
            if not allowed:
                break
            assert matcher.expected_terminals()
            assert matcher.accept_token(rng.choice(allowed))
    assert refused > 500
    assert longer or lexer == "contextual"


def test_it_is_a_frozen_value() -> None:
    e = after("calc").explain_bytes(b"#")
    assert isinstance(e, gg.Explanation) and e == after("calc").explain_bytes(b"#")
    with pytest.raises(dataclasses.FrozenInstanceError):
        e.allowed = True  # type: ignore[misc]


def test_allowed_tokens_are_a_bitmap() -> None:
    pyroaring = pytest.importorskip("pyroaring")
    matcher = after("calc", b"1")
    found = gg.allowed_tokens(matcher)
    assert isinstance(found, pyroaring.BitMap)
    assert list(found) == np.flatnonzero(matcher.mask()).tolist()
    assert EOS in found
    with pytest.warns(gg.VocabWarning):
        vocab = gg.Vocab.from_bytes([b"a", b"b", None], eos_ids=[2])
    dead = gg.Matcher(gg.compile(gg.Grammar.from_lark(BASIC + 'start: "a" "c" | "b"'), vocab))
    assert dead.accept_token(0)
    assert len(gg.allowed_tokens(dead)) == 0


def test_reprs() -> None:
    matcher = after("calc", b"1 + ")
    assert repr(matcher) == "<Matcher after 1 steps, b'1 + ': incomplete>"
    matcher.accept_bytes(b"x" * 40)
    assert repr(matcher) == f"<Matcher after 2 steps, 12 bytes and {b'x' * 32!r}: complete>"
    matcher.accept_token(EOS)
    assert repr(matcher).endswith(": terminated>")
    artifact = compiled("calc")
    for part in (artifact.grammar_fingerprint[:12], "11 terminals", "LR states", "8000 ids"):
        assert part in repr(artifact)
