"""Forced text, and the tokens that are certain to spell it."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from tokenizers import Tokenizer

import glrgrid as gg
from glrgrid import grammars
from glrgrid.data import default_tokenizer_path

VOCAB = gg.Vocab.default()
TOKENIZER = Tokenizer.from_file(str(default_tokenizer_path()))
FIRST_BYTES = np.array([token[0] if token else 256 for token in VOCAB.tokens])
BASIC = '%glrgrid {"lexer": "basic"}\n'

RECORD = r"""
start: "{\"name\":" STRING ",\"age\":" NUMBER ",\"tags\":[" STRING ("," STRING)* "],\"address\":" address "}"
address: "null" | "{\"street\":" STRING ",\"zip code\":" NUMBER "}"
STRING: /"[a-zà-ÿ0-9 .,:'_-]*"/
NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?/
"""
PRETTY = r"""
start: "{\n  \"id\": " ID ",\n  \"status\": " STATUS ",\n  \"values\": [" (NUMBER (", " NUMBER)*)? "]\n}\n"
STATUS: "\"active\"" | "\"inactive\"" | "\"activated\"" | "null"
ID: /[0-9]{6}/
NUMBER: /[0-9]+/
"""
STATEMENT = """
start: "SELECT " columns " FROM " TABLE " WHERE " COLUMN " = " VALUE [" ORDER BY " COLUMN] ";"
columns: COLUMN (", " COLUMN)*
COLUMN: "id" | "identifier" | "name" | "customer_id" | "customer_name"
TABLE: "customers" | "customer_orders" | "orders"
VALUE: /'[a-z é🙂]*'/ | /[0-9]+/
"""
ACCENTS = """
start: ("été à la plage" | "été à la montagne" | "🙂🙃 ok" | "🙂🙂 ok") ("…" | "!")
"""


def compiled(text: str, vocab: gg.Vocab = VOCAB) -> gg.CompiledGrammar:
    return gg.compile(gg.Grammar.from_lark(BASIC + text), vocab)


def encode(text: str) -> list[int]:
    ids: list[int] = TOKENIZER.encode(text, add_special_tokens=False).ids
    return ids


def sample(grammar: gg.CompiledGrammar, rng: random.Random, most: int = 300) -> str | None:
    """Some accepted text, byte by byte; printable ASCII mostly, and mostly ended when it can be."""
    matcher = gg.Matcher(grammar)
    text = bytearray()
    while len(text) < most:
        if matcher.is_accepting() and rng.random() < 0.5:
            break
        firsts = [bytes([first]) for first in np.unique(FIRST_BYTES[matcher.mask()]) if first < 256]
        if not firsts:
            break
        closing = [byte for byte in firsts if byte in b"\"',];}"]
        byte = rng.choice(closing if closing and rng.random() < 0.3 else firsts)
        assert matcher.accept_bytes(byte) == 1
        text += byte
    if not matcher.is_accepting():
        return None
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


@pytest.mark.parametrize(
    "text", [RECORD, PRETTY, STATEMENT, ACCENTS], ids=["record", "pretty", "statement", "accents"]
)
def test_appended_tokens_are_those_of_the_whole_text(text: str) -> None:
    grammar = compiled(text)
    rng = random.Random(5)
    texts = {t for _ in range(150) if (t := sample(grammar, rng)) is not None}
    assert len(texts) >= 4
    forced_tokens = calls = 0
    for whole in sorted(texts):
        ids = encode(whole)
        assert b"".join(VOCAB.token_bytes(token) or b"" for token in ids).decode() == whole
        matcher = gg.Matcher(grammar)
        i = 0
        while i < len(ids):
            found = matcher.forced_tokens(TOKENIZER)
            assert found == ids[i : i + len(found)], (whole, i, matcher)
            assert matcher.validate_tokens(found) == len(found)
            calls += 1
            forced_tokens += len(found)
            assert matcher.accept_token(ids[i])
            i += 1
        assert matcher.is_accepting()
    assert calls >= 20
    assert forced_tokens >= calls / 4


def test_a_loop_that_appends_them_writes_the_same_text() -> None:
    """Decode along sampled texts, appending what is forced: fewer steps, the same tokens."""
    grammar = compiled(PRETTY)
    rng = random.Random(6)
    asked = written = 0
    for _ in range(20):
        whole = sample(grammar, rng)
        if whole is None:
            continue
        ids = encode(whole)
        matcher = gg.Matcher(grammar)
        done: list[int] = []
        while len(done) < len(ids):
            more = matcher.forced_tokens(encode) or [ids[len(done)]]
            asked += 1
            written += len(more)
            for token in more:
                assert matcher.accept_token(token)
            done += more
        assert done == ids
    assert written > 1.05 * asked > 0


def test_forced_bytes() -> None:
    matcher = gg.Matcher(compiled(RECORD))
    assert matcher.forced_bytes() == b'{"name":"'
    assert matcher.accept_bytes(b'{"name":"x"') == 11
    assert matcher.forced_bytes() == b',"age":'
    assert matcher.accept_bytes(b',"age":1,') == 9
    assert matcher.forced_bytes() == b'"tags":["'
    assert matcher.accept_bytes(b'"tags":["x"],"address":null') == 27
    assert matcher.forced_bytes() == b"}"
    assert matcher.accept_bytes(b"}") == 1
    assert matcher.forced_bytes() == b"" and matcher.forced_tokens(TOKENIZER) == []
    assert matcher.accept_token(VOCAB.eos_ids[0])
    assert matcher.forced_bytes() == b"" and matcher.forced_tokens() == []
    assert matcher.forced_tokens(TOKENIZER) == []

    matcher = gg.Matcher(gg.compile(gg.Grammar.from_lark(grammars.load("json")), VOCAB))
    assert matcher.forced_bytes() == b""  # white space may come anywhere
    assert matcher.accept_bytes(b"tr") == 2
    assert matcher.forced_bytes() == b"ue"
    assert matcher.accept_bytes(b"ue") == 2
    assert matcher.forced_bytes() == b"" == matcher.forced_bytes()


def test_a_long_forced_text_is_cut() -> None:
    long = "ab" * 5000
    matcher = gg.Matcher(compiled(f'start: "{long}"'))
    assert matcher.forced_bytes() == long[:4096].encode()
    found = matcher.forced_tokens(TOKENIZER)
    assert 100 < len(found) <= 4096
    assert found == encode(long)[: len(found)]


def test_without_a_tokenizer_only_single_ids_count() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.VocabWarning)
        vocab = gg.Vocab.from_bytes([b"a", b"b", b"ab", b"c", b"c", b"d", b"abx", None], eos_ids=[7])
    matcher = gg.Matcher(compiled('start: "ddab" | "ddacd"', vocab))
    assert matcher.forced_bytes() == b"dda"
    assert matcher.forced_tokens() == [5, 5]  # then "a" or "ab"
    assert matcher.accept_bytes(b"dda") == 3
    assert matcher.forced_tokens() == []
    assert matcher.accept_token(3)  # the two ids of "c" are alternatives
    assert matcher.forced_tokens() == [5]
    matcher.rollback()
    assert matcher.accept_token(1)
    assert matcher.forced_tokens() == []  # complete: nothing but the end may come
    cs = gg.Matcher(compiled('start: "c" "d"', vocab))
    assert cs.forced_tokens() == []


def test_a_merge_across_the_end_of_the_forced_text() -> None:
    """``xab`` is ``x ab``, but ``xabz`` is ``xa bz``: no token of ``xab`` is certain where z may come."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.VocabWarning)
        vocab = gg.Vocab.from_bytes([b"x", b"a", b"b", b"z", b"y", b"xa", b"ab", b"bz", None], eos_ids=[8])

    def bpe(text: str) -> list[int]:
        """Merges by rank: b z, a b, x a."""
        parts = list(text)
        for pair in ("bz", "ab", "xa"):
            i = 0
            while i + 1 < len(parts):
                if parts[i] + parts[i + 1] == pair:
                    parts[i : i + 2] = [pair]
                i += 1
        return [vocab.tokens.index(part.encode()) for part in parts]

    assert bpe("xab") == [0, 6] and bpe("xabz") == [5, 7]
    either = gg.Matcher(compiled('start: "xab" ("z" | "y")', vocab))
    assert either.forced_bytes() == b"xab"
    assert either.forced_tokens(bpe) == []
    other = gg.Matcher(compiled('start: "xab" ("y" | "yy")', vocab))
    assert other.forced_tokens(bpe) == [0, 6, 4]
    certain = gg.Matcher(compiled('start: "xabz"', vocab))
    assert certain.forced_tokens(bpe) == [5, 7]


def test_off_the_canonical_path_nothing_is_certain() -> None:
    """Inside of a token of the whole text, only what the mask leaves no choice about is forced."""
    whole = b'{"name":"'
    ends = np.cumsum([len(VOCAB.token_bytes(token) or b"") for token in encode(whole.decode())]).tolist()
    inside = [i for i in range(1, len(whole)) if i not in ends]
    assert inside
    for taken in inside:
        matcher = gg.Matcher(compiled(RECORD))
        assert matcher.accept_bytes(whole[:taken]) == taken
        assert matcher.forced_bytes() == whole[taken:]
        assert matcher.forced_tokens(TOKENIZER) == matcher.forced_tokens()


@pytest.mark.parametrize(
    "encode",
    [lambda text: encode(text.upper()), lambda text: [], lambda text: [VOCAB.eos_ids[0], *encode(text)]],
    ids=["normalises", "empty", "special first"],
)
def test_odd_encoders(encode: Callable[[str], list[int]]) -> None:
    matcher = gg.Matcher(compiled(RECORD))
    found = matcher.forced_tokens(encode)
    expected = TOKENIZER.encode('{"name":"x').ids
    assert found == expected[: len(found)]


def test_misuse() -> None:
    matcher = gg.Matcher(compiled(RECORD))
    with pytest.raises(gg.StateError, match="cannot encode text with a int"):
        matcher.forced_tokens(3)
    for bad in (-1, VOCAB.size, 2**80):
        with pytest.raises(gg.StateError, match="out of range"):
            matcher.forced_tokens(lambda text, bad=bad: [bad])
    with pytest.raises(ZeroDivisionError):
        matcher.forced_tokens(lambda text: [1 // 0])
    with pytest.raises(gg.StateError, match="in use"):
        matcher.forced_tokens(lambda text: [matcher.steps])
    assert matcher.steps == 0 and matcher.forced_bytes() == b'{"name":"'
