"""The engine against ground truths that know nothing of it: plain enumeration, and Lark."""

from __future__ import annotations

import random

import pytest
from lark import Lark
from lark.exceptions import LarkError
from strategies import grammar, lit, pat
from test_reference import MAX_LENGTH, random_finite_ir

from glrgrid import Grammar, GrammarError, Vocab, _native
from glrgrid.grammar.ir import GrammarIR
from glrgrid.reference.enumerate import language, prefixes, texts_over
from glrgrid.reference.oracle import Oracle

EOS = 256
BYTES = _native.Vocab([*(bytes([b]) for b in range(256)), b"<end>"], [EOS])

BLANKS = pat(" +", ignored=True)
NUMBERS = {"NUM": pat("1+(e1+)?"), "NAME": pat("e+")}
# The grammars on which simpler rules are wrong: text alphabet, length of texts, length of prefixes checked.
TINY = {
    "trap state": (grammar({"s": "NAME SEMI"}, {"NAME": pat("x|y[xy;]*"), "SEMI": lit(";")}), b"xy;", 6, 3),
    "short branch doomed by its watcher": (
        grammar({"s": "A B C | L"}, {"A": lit("a"), "B": lit("b"), "C": lit("c"), "L": lit("abc")}),
        b"abc",
        6,
        3,
    ),
    "keyword shadows name": (
        grammar({"s": "NAME C | C KW"}, {"NAME": pat("a|ab"), "KW": lit("ab"), "C": lit("c")}),
        b"abc",
        6,
        3,
    ),
    "merged row shadows": (
        grammar(
            {"s": "P r X | Q r NAME | P K", "r": "R"},
            {"P": lit("p"), "Q": lit("q"), "R": lit("r"), "K": lit("k"), "X": lit("x"), "NAME": pat("x|k")},
            lexer="contextual",
        ),
        b"pqrxk",
        5,
        4,
    ),
    "pairs are not enough": (
        grammar({"s": "A B C"}, {"A": pat("a(x)?"), "B": pat("xb|yb?"), "C": lit("b")}),
        b"axyb",
        7,
        4,
    ),
    "number before names": (grammar({"s": "NUM n m", "n": "NAME |", "m": "NUM |"}, NUMBERS), b"1e", 7, 4),
    "list of numbers": (
        grammar({"s": "NUM SEMI | s NUM SEMI"}, {**NUMBERS, "SEMI": lit(";"), "WS": BLANKS}),
        b"1e; ",
        6,
        3,
    ),
    "trap that ends at once": (
        grammar(
            {"s": "X B |"}, {"LETTER": pat("[ab]", priority=1), "B": lit("b"), "X": pat("b|ca", priority=1)}
        ),
        b"abc",
        5,
        3,
    ),
}


def check(
    ir: GrammarIR,
    alphabet: bytes,
    max_length: int,
    checked: int,
    exact: bool = True,
    without: bytes | None = None,
) -> int:
    """Compare every mask on texts of up to ``checked`` bytes with what enumeration says; return how many."""
    oracle = Oracle(ir)
    compiled = _native.compile(ir.to_json(), BYTES, shared_tokens=0, min_agreement=0)
    texts = language(oracle, texts_over(alphabet, max_length, without))
    viable = prefixes(texts)
    count = 0
    for text in texts_over(alphabet, checked, without):
        matcher = _native.Matcher(compiled)
        if matcher.accept_bytes(text) < len(text):
            assert text not in viable, text
            continue
        if text not in viable:
            assert not exact, text
            continue
        mask = matcher.mask()
        count += 1
        assert bool(mask[EOS]) == (text in texts), text
        for byte in alphabet:
            longer = text + bytes([byte])
            if without is not None and longer.endswith(without):
                continue
            allowed = longer in viable
            assert mask[byte] >= allowed and (not exact or mask[byte] == allowed), (text, byte)
    return count


@pytest.mark.parametrize("name", TINY)
def test_tiny_grammars(name: str) -> None:
    assert check(*TINY[name]) > 0


def test_finite_languages() -> None:
    """Where separability is clean, masks are viability by plain enumeration; elsewhere they refuse nothing viable."""
    positions = clean = 0
    for seed in range(80):
        ir = random_finite_ir(random.Random(seed))
        alphabet = bytes(byte for byte in b"abc_" if any(chr(byte) in t.name for t in ir.terminals))
        exact = not Oracle(ir).separability()
        try:
            positions += check(ir, alphabet, MAX_LENGTH, 3, exact, without=b"__")
        except GrammarError as error:
            assert "no text matches" in str(error)
            continue
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {ir}") from error
        clean += exact
    assert clean > 40 and positions > 400


def test_longest_match() -> None:
    ir = Grammar.from_lark('start: "select" NAME\nNAME: /[a-z]+/\n%ignore " "\n', lexer="basic").ir
    compiled = _native.compile(ir.to_json(), BYTES)
    for text, taken, complete in [(b"selecta", 7, False), (b"select a", 8, True), (b"select", 6, False)]:
        matcher = _native.Matcher(compiled)
        assert (matcher.accept_bytes(text), matcher.is_accepting()) == (
            taken if complete else len(b"select"),
            complete,
        )


LARK_GRAMMARS = {
    "list": 'start: "[" [item ("," item)*] "]"\nitem: "a" | start\n',
    "expression": 'start: start "+" term | term\nterm: "a" | "(" start ")"\n%ignore " "\n',
    "ambiguous": 'start: start start | "a" | "b"\n',
    "optional": 'start: "a"? "b"* ("c" | "d" "a")~1..2\n',
    "names": 'start: NAME ("=" NAME)?\nNAME: /[ab]+/\n',
    "numbers": 'start: NUM ("," NUM)*\nNUM: /a(b+)?/\n',
}


@pytest.mark.parametrize("name", LARK_GRAMMARS)
def test_whole_texts_agree_with_lark(name: str) -> None:
    """Grammars on which Lark's rule, first match by priority and length, and ours cut alike."""
    text = LARK_GRAMMARS[name]
    theirs = Lark(text, parser="earley", lexer="basic")
    compiled = _native.compile(Grammar.from_lark(text, lexer="basic").ir.to_json(), BYTES)
    alphabet = bytes(b for b in b"ab+()[],=cd " if chr(b) in text)
    rng = random.Random(5)
    accepted = 0
    for _ in range(3000):
        candidate = bytes(rng.choice(alphabet) for _ in range(rng.randint(1, 7)))
        try:
            theirs.parse(candidate.decode())
            expected = True
        except LarkError:
            expected = False
        matcher = _native.Matcher(compiled)
        found = matcher.accept_bytes(candidate) == len(candidate) and matcher.is_accepting()
        assert found == expected, candidate
        accepted += expected
    assert accepted > 5


@pytest.mark.parametrize("body", [r'[^"]', "[a-zà-ÿ]", "[a-c](é|-)?"])
def test_bounded_repeats(body: str) -> None:
    """Near its bound a repeat counts exactly; far from it, states that no token tells apart share their tokens."""
    vocab = Vocab.default()
    ir = Grammar.from_lark(f'start: STR+\nSTR: /"({body}){{0,40}}"/\n', lexer="basic").ir
    compiled = _native.compile(ir.to_json(), vocab._native, shared_tokens=64, min_agreement=1)
    oracle = Oracle(ir)
    rng = random.Random(3)
    tokens = [i for i in range(vocab.size) if vocab.token_bytes(i)]
    short = rng.sample([i for i in tokens if len(vocab.token_bytes(i) or b"") < 4], 60)
    for filled in [0, 5, 20, 30, *range(34, 41)]:
        text = b'"' + b"a" * filled
        matcher = _native.Matcher(compiled)
        assert matcher.accept_bytes(text) == len(text)
        state = oracle.advance(oracle.start(), text)
        assert state is not None
        sample = rng.sample(tokens, 200) + short
        expected = oracle.mask(state, [vocab.token_bytes(i) for i in sample])
        assert matcher.mask()[sample].tolist() == expected, filled
        assert matcher.accept_bytes(b"a" * 50) == 40 - filled


def test_states_that_leave_different_watchers_go_apart() -> None:
    """Two lexer groups emit the same terminal, but only one of them still watches for a longer match."""
    terminals = {
        "X": lit("x"),
        "I": lit("i", priority=-1),
        "W": pat("[ifx]+"),
        "L": pat("x(_x)*"),
        "B1": pat("[ _]+", priority=1, ignored=True),
        "B2": pat(" +", ignored=True),
        "B3": pat("_+", ignored=True),
        "R": pat("[ifx]{1,3}", reject=True),
    }
    rules = {"a": "X | a c", "b": "I I X | X b W", "c": "L I X | a b | I"}
    ir = grammar(rules, terminals, lexer="contextual")
    oracle = Oracle(ir)
    tokens = [b"x_x_x_x ", b"x_x ", b"x_", b"x_x_", b"x_x_x", b"x_x_x ", b"x", b"_", b" "]
    compiled = _native.compile(ir.to_json(), _native.Vocab([*tokens, b"<end>"], [len(tokens)]))
    assert compiled.stats["lexer_groups"] > 1
    assert _native.Matcher(compiled).mask()[:-1].tolist() == oracle.mask(oracle.start(), tokens)


def test_rows_are_lexed_apart() -> None:
    """After the sentence only ignored text may come, whatever the terminals of other rows could start with."""
    terminals = {
        "A": pat("a(/a)*"),
        "CLOSE": lit("*/"),
        "B": pat("a"),
        "C": pat("[a/]+"),
        "D": pat("//[a/*]*"),
        "E": lit("**"),
        "COMMENT": pat(r"/\*([^*]|\*+[^*/])*\*+/", ignored=True),
    }
    ir = grammar({"s": "A C B | B"}, terminals, lexer="contextual")
    oracle = Oracle(ir)
    tokens = [b"a/", b"a/**/", b"a", b"/", b"/*", b"*", b"/**/"]
    compiled = _native.compile(ir.to_json(), _native.Vocab([*tokens, b"<end>"], [len(tokens)]))
    for path in ([], [1], [2, 6], [2, 3]):
        matcher, state = _native.Matcher(compiled), oracle.start()
        for token in path:
            assert matcher.accept_token(token)
            after = oracle.advance(state, tokens[token])
            assert after is not None
            state = after
        assert matcher.mask()[:-1].tolist() == oracle.mask(state, tokens), path
