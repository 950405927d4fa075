"""Structural tags beside XGrammar's reading of them; runs where XGrammar is installed."""

from __future__ import annotations

import json
import random
import warnings
from typing import Any

import pytest

import glrgrid as gg

xgrammar = pytest.importorskip("xgrammar")

END = 255  # a byte that no text has
VOCAB = gg.Vocab.from_bytes({i: bytes([i]) for i in range(END)} | {256: b"\xff"}, eos_ids=[END], size=257)
COMPILER = xgrammar.GrammarCompiler(
    xgrammar.TokenizerInfo(
        [bytes([i]) for i in range(END)] + [b"<end>"],
        vocab_type=xgrammar.VocabType.RAW,
        stop_token_ids=[END],
    )
)

WORD = {"type": "tag", "begin": "<f>", "content": {"type": "regex", "pattern": "[a-z]+"}, "end": "</f>"}
TEXT = {"type": "tag", "begin": "<g>", "content": {"type": "any_text"}, "end": ["</g>", "!"]}
TAGS = {"type": "triggered_tags", "triggers": ["<f", "<g"], "tags": [WORD, TEXT]}
BANG = {"type": "const_string", "value": "!"}
DIGIT = {"type": "regex", "pattern": ">[0-9]"}
FORMATS: dict[str, dict[str, Any]] = {
    "triggered": TAGS,
    "at least one": {**TAGS, "at_least_one": True},
    "the first only": {**TAGS, "stop_after_first": True},
    "exactly one": {**TAGS, "at_least_one": True, "stop_after_first": True},
    "without zz": {**TAGS, "excludes": ["zz"]},
    "an end that overlaps itself": {
        "type": "tag",
        "begin": "<a>",
        "content": {"type": "any_text"},
        "end": "abab",
    },
    "any text, then one": {"type": "sequence", "elements": [{"type": "any_text"}, BANG]},
    "text up to one": {"type": "sequence", "elements": [{"type": "any_text", "excludes": ["!"]}, BANG]},
    "separated": {"type": "tags_with_separator", "tags": [WORD, TEXT], "separator": ","},
    "separated, one": {"type": "tags_with_separator", "tags": [WORD], "separator": ",", "at_least_one": True},
    "tags in a tag": {"type": "tag", "begin": "[", "content": TAGS, "end": "]"},
    "tags in a tag with a longer end": {"type": "tag", "begin": "[", "content": TAGS, "end": "</]"},
    "or": {"type": "or", "elements": [WORD, {"type": "const_string", "value": "<f>b"}]},
    "repeated": {"type": "repeat", "min": 1, "max": 2, "content": WORD},
    "star": {"type": "star", "content": TEXT},
    "optional": {"type": "optional", "content": TEXT},
    "dispatch": {"type": "dispatch", "rules": [["<f", DIGIT]]},
    "dispatch once": {"type": "dispatch", "rules": [["<f", DIGIT]], "loop": False},
    "dispatch up to one": {
        "type": "sequence",
        "elements": [{"type": "dispatch", "rules": [["<f", DIGIT]], "excludes": ["!"]}, BANG],
    },
    "tags, then one": {"type": "sequence", "elements": [TAGS, BANG]},
    "tags in triggered tags": {
        "type": "triggered_tags",
        "triggers": ["ab"],
        "tags": [{"type": "tag", "begin": "abb", "content": TAGS, "end": "]"}],
    },
}
PIECES = [
    "<f>",
    "<f",
    "<g>",
    "a",
    "b",
    "</f>",
    "</g>",
    "!",
    "<",
    "zz",
    ",",
    "[",
    "]",
    "</",
    "abab",
    "ab",
    ">1",
    "</]",
    "<a>",
]


def theirs(compiled: Any, data: bytes) -> tuple[int, bool]:
    matcher = xgrammar.GrammarMatcher(compiled)
    taken = next((n for n, byte in enumerate(data) if not matcher.accept_token(byte)), len(data))
    if taken < len(data):
        return taken, False
    bitmask = xgrammar.allocate_token_bitmask(1, 256)
    matcher.fill_next_token_bitmask(bitmask)
    return taken, bool(int(bitmask[0, END // 32]) >> END % 32 & 1)


def ours(compiled: gg.CompiledGrammar, data: bytes) -> tuple[int, bool]:
    matcher = gg.Matcher(compiled)
    taken = matcher.accept_bytes(data)
    return taken, taken == len(data) and matcher.is_accepting()


@pytest.mark.parametrize("name", FORMATS)
def test_texts_are_judged_alike(name: str) -> None:
    tag = json.dumps({"type": "structural_tag", "format": FORMATS[name]})
    mine, other = gg.compile(gg.Grammar.from_structural_tag(tag), VOCAB), COMPILER.compile_structural_tag(tag)
    rng = random.Random(name)
    accepted = 0
    for _ in range(400):
        data = b""
        for _ in range(rng.randint(0, 8)):  # most of the way along what is possible
            pieces = [piece.encode() for piece in rng.sample(PIECES, 6)]
            data += next((p for p in pieces if ours(mine, data + p)[0] == len(data + p)), pieces[0])
        assert ours(mine, data) == theirs(other, data), data
        accepted += ours(mine, data)[1]
    assert accepted


PLAIN = [b"a", b"b", b"<t>", b"</t>", b"ab", b"<", b"t", b">", b"/", b"!"]
STOP = len(PLAIN)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", gg.VocabWarning)
    TOKEN_VOCAB = gg.Vocab.from_bytes(PLAIN, eos_ids=STOP, names={"<t>": 2, "</t>": 3, "!": 9})
TOKEN_COMPILER = xgrammar.GrammarCompiler(
    xgrammar.TokenizerInfo([*PLAIN, b"<end>"], vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[STOP])
)


def token(value: int | str) -> dict[str, Any]:
    return {"type": "token", "token": value}


def between(begin: Any, content: dict[str, Any], end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


ANY_TOKENS = {"type": "any_tokens"}
A = {"type": "const_string", "value": "a"}
SLASH = {"type": "const_string", "value": "/"}
"""No token goes on after it: a free token is a whole one here, and there may be the rest of another."""
TOKEN_FORMATS: dict[str, dict[str, Any]] = {
    "one": token("<t>"),
    "any": ANY_TOKENS,
    "any but": {
        "type": "sequence",
        "elements": [{"type": "exclude_token", "exclude_tokens": [0, "</t>"]}, A],
    },
    "between tokens": between(token(2), ANY_TOKENS, token("</t>")),
    "text between tokens": between(token(2), {"type": "any_text"}, token("</t>")),
    "at most two": between("<t>", {**ANY_TOKENS, "max_tokens": 2}, token(3)),
    "triggered": {
        "type": "token_triggered_tags",
        "trigger_tokens": ["<t>", 9],
        "tags": [between(token(2), A, token(3)), between(token("!"), {"type": "any_text"}, "!")],
    },
    "triggered once": {
        "type": "token_triggered_tags",
        "trigger_tokens": [2],
        "tags": [
            between(token("<t>"), A, "</t>"),
            between(token(2), {"type": "const_string", "value": "b"}, ""),
        ],
        "exclude_tokens": ["!"],
        "at_least_one": True,
        "stop_after_first": True,
    },
    "dispatch": {
        "type": "token_dispatch",
        "rules": [[2, SLASH], ["!", {"type": "regex", "pattern": "[ab]{2}/"}]],
    },
    "dispatch once": {"type": "token_dispatch", "rules": [[2, A]], "loop": False, "exclude_tokens": [3]},
    "triggered between tokens": between(
        token("!"), {"type": "token_dispatch", "rules": [[2, SLASH]], "exclude_tokens": [3]}, token("</t>")
    ),
}


@pytest.mark.parametrize("name", TOKEN_FORMATS)
def test_token_masks_agree(name: str) -> None:
    tag = json.dumps({"type": "structural_tag", "format": TOKEN_FORMATS[name]})
    compiled = gg.compile(gg.Grammar.from_structural_tag(tag), TOKEN_VOCAB)
    rng = random.Random(name)
    for _ in range(60):
        mine, other = (
            gg.Matcher(compiled),
            xgrammar.GrammarMatcher(TOKEN_COMPILER.compile_structural_tag(tag)),
        )
        taken: list[bytes] = []
        for _ in range(8):
            bitmask = xgrammar.allocate_token_bitmask(1, STOP + 1)
            other.fill_next_token_bitmask(bitmask)
            expected = [bool(int(bitmask[0, 0]) >> i & 1) for i in range(STOP + 1)]
            assert mine.mask().tolist() == expected, taken
            allowed = [i for i in range(STOP) if expected[i]]
            if not allowed:
                break
            choice = rng.choice(allowed)
            taken.append(PLAIN[choice])
            assert mine.accept_token(choice) and other.accept_token(choice)
