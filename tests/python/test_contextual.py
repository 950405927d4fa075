"""Grammars that need the contextual lexer (``tests/corpus/contextual.toml``), through the engine and through Lark."""

from __future__ import annotations

import tomllib
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import lark
import pytest

import glrgrid as gg
from glrgrid.reference.oracle import Oracle

CORPUS = Path(__file__).parents[1] / "corpus" / "contextual.toml"
ROWS: dict[str, dict[str, Any]] = {
    row["name"]: row for row in tomllib.loads(CORPUS.read_text("utf-8"))["grammar"]
}
VOCAB = gg.Vocab.default()
BYTE_IDS = {token[0]: index for index, token in enumerate(VOCAB.tokens) if token and len(token) == 1}

each_row = pytest.mark.parametrize("name", ROWS)


@cache
def compiled(name: str, lexer: str | None = None) -> gg.CompiledGrammar:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", gg.CompileWarning
        )  # neighbouring texts cannot be told apart, nor need be
        return gg.compile(gg.Grammar.from_lark(ROWS[name]["lark"], lexer=lexer), VOCAB)


@cache
def reloaded(name: str) -> gg.CompiledGrammar:
    return gg.load(compiled(name).to_bytes(), VOCAB)


def accepts(grammar: gg.CompiledGrammar, text: str) -> bool:
    matcher = gg.Matcher(grammar)
    data = text.encode()
    return matcher.accept_bytes(data) == len(data) and matcher.is_accepting()


def accepted_by_lark(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except lark.UnexpectedInput:
        return False
    return True


def test_the_corpus_is_large_enough():
    assert len(ROWS) >= 12
    assert sum(len(row["accept"]) + len(row["refuse"]) for row in ROWS.values()) >= 60


@each_row
def test_contextual_is_the_default(name):
    assert gg.Grammar.from_lark(ROWS[name]["lark"]).lexer == "contextual"


@each_row
@pytest.mark.parametrize("source", [compiled, reloaded], ids=["fresh", "reloaded"])
def test_accepted_texts(name, source):
    end = VOCAB.eos_ids[0]
    for text in ROWS[name]["accept"]:
        data = text.encode()
        matcher = gg.Matcher(source(name))
        assert matcher.accept_bytes(data) == len(data), text
        assert matcher.is_accepting() and matcher.mask()[end], text
        by_tokens = gg.Matcher(source(name))
        for byte in data:
            assert by_tokens.mask()[BYTE_IDS[byte]] and by_tokens.accept_token(BYTE_IDS[byte]), text
        assert by_tokens.mask().tolist() == matcher.mask().tolist(), text


@each_row
@pytest.mark.parametrize("source", [compiled, reloaded], ids=["fresh", "reloaded"])
def test_refused_texts(name, source):
    for row in ROWS[name]["refuse"]:
        data, at = row["text"].encode(), row["at"]
        matcher = gg.Matcher(source(name))
        assert matcher.accept_bytes(data) == at, row["text"]
        assert at < len(data) or not matcher.is_accepting(), row["text"]
        mask = matcher.mask()
        assert at == len(data) or not mask[BYTE_IDS[data[at]]], row["text"]
        assert mask.any(), row["text"]


@each_row
def test_the_basic_lexer_would_not_do(name):
    try:
        basic = compiled(name, "basic")
    except gg.GrammarError:
        return
    assert not all(accepts(basic, text) for text in ROWS[name]["accept"])


@each_row
def test_lark_agrees(name):
    row = ROWS[name]
    parser = lark.Lark(row["lark"], parser="lalr", lexer="contextual")
    differs = set(row.get("differs", ()))
    for text in row["accept"]:
        assert accepted_by_lark(parser, text) == (text not in differs), text
    for text in (refused["text"] for refused in row["refuse"]):
        assert accepted_by_lark(parser, text) == (text in differs), text


@each_row
def test_the_reference_agrees(name):
    row = ROWS[name]
    oracle = Oracle(gg.Grammar.from_lark(row["lark"]).ir)
    assert [text for text in row["accept"] if not oracle.accepts(text.encode())] == []
    assert [refused for refused in row["refuse"] if oracle.accepts(refused["text"].encode())] == []
