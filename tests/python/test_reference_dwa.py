"""The runtime's masks against the slow walk over explicit stacks, both on one artifact."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from functools import cache

import numpy as np
import pytest
from strategies import random_case
from test_grammars import CALC_VALID, JSON_VALID, SCRIPT_VALID, SQL_VALID
from walks import EOS_BYTES

import glrgrid as gg
from glrgrid import _native
from glrgrid.grammars import load
from glrgrid.reference.dwa import SECTIONS, Configuration, ExportedDwa
from glrgrid.reference.oracle import TooManyBranches

SETTINGS = [(0, 0), (0, 256), (3, 1), (10, 4), (2048, 0), (2048, 256)]
"""``shared_tokens`` and ``min_agreement``: many shared sources, none, and in between."""
MOST = 200
"""Configurations beyond which a walk stops."""
VALID = {
    "calc": CALC_VALID,
    "json": JSON_VALID,
    "script": [text for text in SCRIPT_VALID if text],
    "sql_core": SQL_VALID,
}


def row_of(matcher: _native.Matcher, size: int) -> np.ndarray:
    """The matcher's whole bitmask row, with the bits beyond the vocabulary; all zero at a dead end."""
    row = np.zeros(-(-size // 32), np.int32)
    try:
        matcher.fill_next_token_bitmask(row)
    except gg.DeadEnd:
        assert not row.any()
    return np.unpackbits(row.view(np.uint8), bitorder="little").astype(bool)


def compare(
    dwa: ExportedDwa,
    matcher: _native.Matcher,
    configurations: frozenset[Configuration],
    tokens: list[bytes | None],
    eos_ids: list[int],
    counts: Counter[str],
) -> np.ndarray:
    """Compare one position; return the mask."""
    expected = dwa.mask(configurations, tokens, eos_ids)
    found = row_of(matcher, len(tokens))
    wrong = np.flatnonzero(found[: len(tokens)] != expected)
    assert not wrong.size, [(i, tokens[i], bool(found[i])) for i in wrong[:20].tolist()]
    assert not found[len(tokens) :].any()
    assert matcher.is_accepting() == dwa.is_accepting(configurations)
    counts["positions"] += 1
    counts["several configurations"] += len(configurations) > 1
    counts["complete"] += matcher.is_accepting()
    return expected


def walk(
    compiled: _native.CompiledGrammar,
    dwa: ExportedDwa,
    tokens: list[bytes | None],
    eos_ids: list[int],
    text: bytes,
    steps: int,
    rng: random.Random,
    counts: Counter[str],
) -> None:
    """One random path: along ``text`` as long as its tokens allow, and now and then off it."""
    matcher = _native.Matcher(compiled)
    configurations = dwa.start()
    taken = b""
    stray = rng.choice([0, 0, 0.05, 0.5])
    for _ in range(steps):
        try:
            mask = compare(dwa, matcher, configurations, tokens, eos_ids, counts)
            rest = text[len(taken) :] if text.startswith(taken) else b""
            allowed = [i for i in np.flatnonzero(mask).tolist() if i not in eos_ids]
            along = [i for i in allowed if rest.startswith(tokens[i] or b"?")]
            if not allowed:
                return
            token = rng.choice(along if along and rng.random() >= stray else allowed)
            data = tokens[token] or b""
            configurations = dwa.advance(configurations, data)
            assert configurations
            assert matcher.accept_token(token)
        except TooManyBranches:
            counts["too many"] += 1
            return
        taken += data


@pytest.mark.parametrize(("lexer", "family"), [("basic", None), ("contextual", None), ("basic", "count")])
def test_random_grammars(lexer, family, capsys):
    rng = random.Random(f"walk {lexer} {family}" if family else f"walk {lexer}")
    counts: Counter[str] = Counter()
    for n in range(20 if family else 200):
        case = random_case(rng, lexer=lexer, family=family)
        tokens = [token or None for token in case.tokens]
        eos = len(tokens)
        vocab = _native.Vocab([*tokens, EOS_BYTES], [eos])
        shared_tokens, min_agreement = SETTINGS[n % len(SETTINGS)]
        compiled = _native.compile(
            case.ir.to_json(),
            vocab,
            shared_tokens=shared_tokens,
            min_agreement=min_agreement,
            copied_states=40,
        )
        dwa = ExportedDwa.from_bytes(compiled.to_bytes(), MOST)
        counts["lexer groups"] += bool(dwa.tables["meta"][6] > 1)
        counts["limited changes"] += bool((dwa.tables["change_groups"] >= 0).any())
        counts["restricted pieces"] += bool((dwa.tables["piece_bytes"] >= 0).any())
        counts["counters"] += bool(len(dwa.tables["far_state"]))
        counts["drops"] += bool((dwa.tables["recipe_drop"] >= 0).any())
        for _ in range(4):
            walk(compiled, dwa, [*tokens, None], [eos], rng.choice(case.texts), 10, rng, counts)
    with capsys.disabled():
        print(f"\n{lexer}: {dict(counts)}")
    if family:
        assert counts["counters"] > 5 and counts["positions"] > 300, counts
        return
    assert counts["positions"] > 5000
    met = ["several configurations", "complete", "restricted pieces", "drops"]
    met += ["lexer groups", "limited changes"] if lexer == "contextual" else []
    for name in met:
        assert counts[name] > 10, counts


@cache
def bundled(name: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.CompileWarning)
        return gg.Grammar.from_lark(load(name)).ir.to_json()


def walk_texts(
    name: str,
    vocab: _native.Vocab,
    tokens: list[bytes | None],
    texts: list[str],
    settings: list[tuple[int | None, int | None]],
    steps: int,
    counts: Counter[str],
) -> None:
    """Walk along some texts of a bundled grammar under each of the settings."""
    rng = random.Random(f"walk {name}")
    for shared_tokens, min_agreement in settings:
        compiled = _native.compile(
            bundled(name), vocab, shared_tokens=shared_tokens, min_agreement=min_agreement
        )
        dwa = ExportedDwa.from_bytes(compiled.to_bytes(), MOST)
        counts["dense rows"] += len(dwa.tables["dense"])
        counts["differences"] += len(dwa.tables["dense_base"])
        for text in texts:
            walk(compiled, dwa, tokens, vocab.eos_ids, text.encode(), steps, rng, counts)


@pytest.mark.parametrize("name", VALID)
def test_bundled_grammars(name, capsys):
    counts: Counter[str] = Counter()
    vocab = gg.Vocab.default()
    texts = random.Random(name).sample(VALID[name], min(8, len(VALID[name])))
    settings = [(None, None), (0, 0), (10, 1)]
    walk_texts(name, vocab._native, list(vocab.tokens), texts, settings, 20, counts)
    with capsys.disabled():
        print(f"\n{name}: {dict(counts)}")
    assert counts["positions"] > 100


@pytest.mark.parametrize("name", ["script", "sql_core"])
def test_wide_vocabulary(name, capsys):
    """So many ids that classes are dense rows and differences of such, which the bundled vocabulary never has."""
    rng = random.Random(name)
    words = {token for token in gg.Vocab.default().tokens if token}
    letters = sorted(token for token in words if token.strip().isalpha())
    while len(words) < 90_000:
        words.add(rng.choice(letters) + rng.choice(letters).strip())
    tokens: list[bytes | None] = [*rng.sample(sorted(words), len(words)), None]
    vocab = _native.Vocab([token or b"" for token in tokens], [len(tokens) - 1])
    counts: Counter[str] = Counter()
    texts = rng.sample(VALID[name], 8)
    if name == "sql_core":
        texts += ["/* a b c */ select 1", 'with "a b c" as (', "select 'a b c'"]
    walk_texts(name, vocab, tokens, texts, [(None, None), (0, 0)], 10, counts)
    with capsys.disabled():
        print(f"\n{name}: {dict(counts)}")
    assert counts["positions"] > 50
    assert counts["dense rows"]
    assert counts["differences"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("json", '[{"a":[1,' * 12 + "0" + "]}]" * 12),
        ("calc", "2^" * 40 + "x" + "^(1)" * 20),
        ("script", "f(" + "[(a)=>" * 20 + "b" + "]" * 20 + ");"),
        ("sql_core", "SELECT " + "(" * 30 + "1" + ")" * 30),
    ],
)
def test_deep_stacks(name, text, capsys):
    """Stacks far deeper than the distance at which the runtime remembers verdicts."""
    tokens: list[bytes | None] = [*(bytes([b]) for b in range(256)), b"((", b"))", b"[{", b"]}", b"^2^", None]
    vocab = _native.Vocab([token or b"" for token in tokens], [len(tokens) - 1])
    compiled = _native.compile(bundled(name), vocab)
    dwa = ExportedDwa.from_bytes(compiled.to_bytes(), MOST)
    counts: Counter[str] = Counter()
    matcher = _native.Matcher(compiled)
    configurations = dwa.start()
    deepest = 0
    for byte in text.encode():
        compare(dwa, matcher, configurations, tokens, vocab.eos_ids, counts)
        configurations = dwa.advance(configurations, bytes([byte]))
        assert matcher.accept_token(byte)
        deepest = max(deepest, *(len(stack) for _, stack in configurations))
    compare(dwa, matcher, configurations, tokens, vocab.eos_ids, counts)
    with capsys.disabled():
        print(f"\n{name}: depth {deepest}, {dict(counts)}")
    assert matcher.is_accepting()
    assert deepest > 32


def test_weights_are_met_and_united():
    dwa = ExportedDwa.from_bytes(_native.compile(bundled("json"), gg.Vocab.default()._native).to_bytes())
    texts = (b"", b"[", b'{"a":', b'[{"a":[1')
    stacks = {stack for text in texts for _, stack in dwa.advance(dwa.start(), text)}
    said = {stack: dwa.walk(stack) for stack in stacks}
    assert len({frozenset(classes) for classes in said.values()}) > 2
    rng = np.random.default_rng(0)
    weights = {stack: rng.random(dwa.run({}).size) < 0.5 for stack in stacks}
    expected = {v for stack in stacks for v in said[stack] if weights[stack][v]}
    assert set(np.flatnonzero(dwa.run(weights)).tolist()) == expected


def test_sections_are_those_of_the_engine():
    artifact = _native.compile(bundled("calc"), gg.Vocab.default()._native).to_bytes()
    sections = _native.inspect(artifact)["section_bytes"]
    assert list(sections) == list(SECTIONS)
    tables = ExportedDwa.from_bytes(artifact).tables
    assert {name: len(tables[name]) == 0 for name in SECTIONS} == {
        name: size == 0 for name, size in sections.items()
    }
