"""Arguments of ``compile`` and ``load`` that are of the wrong type are named, with what to pass instead."""

from __future__ import annotations

from typing import Any

import pytest

import glrgrid as gg

TEXT = 'start: "a"'


@pytest.mark.parametrize(
    "grammar, message",
    [
        (TEXT, r"grammar is of type str \('start: .*pass Grammar.from_lark\(text\)"),
        (None, "grammar is None; pass a Grammar"),
        (gg.Vocab.default(), "grammar is of type Vocab; pass a Grammar"),
    ],
)
def test_compile_wants_a_grammar(grammar: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        gg.compile(grammar, gg.Vocab.default())


@pytest.mark.parametrize("vocab", ["default", None, [b"a", b"b"]])
def test_compile_and_load_want_a_vocabulary(vocab: Any) -> None:
    for call in (
        lambda: gg.compile(gg.Grammar.from_lark(TEXT), vocab),
        lambda: gg.load("artifact", vocab),
    ):
        with pytest.raises(TypeError, match=r"vocab is .*pass a Vocab: Vocab.default"):
            call()


@pytest.mark.parametrize("source", [None, 3, bytearray(b"x")])
def test_load_wants_a_path_or_bytes(source: Any) -> None:
    with pytest.raises(TypeError, match=r"source is .*pass the path of an artifact, or its bytes"):
        gg.load(source, gg.Vocab.default())
