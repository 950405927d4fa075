"""Builds that are filled on demand, stopped, or limited: masks never differ from those of a whole build."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import glrgrid as gg
from glrgrid import grammars

GRAMMARS = ["calc", "json", "script", "sql_core"]
SLOW = "start: A\nA: /[ab]*a[ab]{16}/"


@pytest.fixture(scope="module")
def vocab() -> gg.Vocab:
    return gg.Vocab.default()


def grammar(name: str) -> gg.Grammar:
    return gg.Grammar.from_lark(grammars.load(name))


def walk(compiled: gg.CompiledGrammar, seed: int, steps: int) -> list[tuple[int, bytes]]:
    """A random output, as what was taken and the mask before it."""
    rng = random.Random(seed)
    matcher = gg.Matcher(compiled)
    path = []
    for _ in range(steps):
        mask = matcher.mask()
        allowed = np.flatnonzero(mask)
        token = int(allowed[rng.randrange(len(allowed))])
        path.append((token, mask.tobytes()))
        assert matcher.accept_token(token)
        if matcher.is_terminated():
            break
    return path


def replays(compiled: gg.CompiledGrammar, path: list[tuple[int, bytes]]) -> bool:
    matcher = gg.Matcher(compiled)
    return all(matcher.mask().tobytes() == mask and matcher.accept_token(token) for token, mask in path)


@pytest.mark.parametrize("name", GRAMMARS)
def test_all_schedules_give_the_same_masks(name: str, vocab: gg.Vocab) -> None:
    whole = gg.compile(grammar(name), vocab)
    lazy = gg.compile(grammar(name), vocab, mode="lazy")
    with pytest.warns(gg.CompileWarning, match="max_artifact_mb"):
        limited = gg.compile(grammar(name), vocab, max_artifact_mb=1e-6)
    others = {
        "lazy": lazy,
        "reloaded": gg.load(whole.to_bytes(), vocab),
        "partial": limited,
        "partial, reloaded": gg.load(limited.to_bytes(), vocab),
        "one thread": gg.compile(grammar(name), vocab, max_threads=1),
    }
    missing = lazy.stats["rows_missing"]
    assert missing > 0 and whole.stats["rows_missing"] == 0
    for seed in range(25):
        path = walk(whole, seed, 30)
        for kind, other in others.items():
            assert replays(other, path), f"{kind} differs on seed {seed}"
    assert lazy.stats["rows_missing"] < missing
    assert others["one thread"].to_bytes() == whole.to_bytes()
    assert lazy.to_bytes() == limited.to_bytes()


def test_filling_is_shared_by_threads(vocab: gg.Vocab) -> None:
    whole = gg.compile(grammar("script"), vocab)
    paths = [walk(whole, seed, 25) for seed in range(24)]
    for _ in range(3):
        lazy = gg.compile(grammar("script"), vocab, mode="lazy")
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(partial(replays, lazy), paths * 2))


def test_a_partial_artifact_is_checked_against_its_grammar(vocab: gg.Vocab) -> None:
    one = gg.compile(gg.Grammar.from_lark('start: "a"'), vocab, mode="lazy").to_bytes()
    other = gg.compile(gg.Grammar.from_lark('start: "b"'), vocab, mode="lazy").to_bytes()
    assert len(one) == len(other)
    for at in range(len(one)):
        if one[at] != other[at]:
            with pytest.raises(gg.ArtifactError):
                gg.load(one[:at] + other[at : at + 1] + one[at + 1 :], vocab)


def test_limits(vocab: gg.Vocab) -> None:
    with pytest.raises(gg.BudgetExceeded, match=r"max_artifact_mb = 0\.01.*stage artifact"):
        gg.compile(grammar("sql_core"), vocab, max_artifact_mb=0.01, on_budget="error")
    with pytest.raises(gg.BudgetExceeded, match=r"max_seconds = 0\.000000001 in stage"):
        gg.compile(grammar("sql_core"), vocab, max_seconds=1e-9, on_budget="error")
    with pytest.raises(gg.BudgetExceeded, match="max_memory_mb = 1 in stage"):
        gg.compile(gg.Grammar.from_lark(SLOW), vocab, max_memory_mb=1)
    for limit in ("max_seconds", "max_memory_mb", "max_artifact_mb"):
        for value in (0, -1, float("nan")):
            with pytest.raises(gg.StateError, match=limit):
                gg.compile(grammar("calc"), vocab, **{limit: value})  # type: ignore[arg-type]
    with pytest.raises(gg.StateError, match="max_threads"):
        gg.compile(grammar("calc"), vocab, max_threads=0)
    with pytest.raises(gg.StateError, match="on_budget"):
        gg.compile(grammar("calc"), vocab, on_budget="stop")


def test_without_limits_a_large_lexer_is_served_on_demand(vocab: gg.Vocab) -> None:
    values = {"a": {"format": "hostname"}, "b": {"type": "string", "maxLength": 3000}}
    schema = {"type": "object", "additionalProperties": {"type": "object", "properties": values}}
    with pytest.warns(gg.CompileWarning, match=r"default limit of 16384 lexer states \(there are \d+\)"):
        partial = gg.compile(gg.Grammar.from_json_schema(schema), vocab)
    assert partial.stats["rows_missing"] == partial.stats["lexer_states"] > 16384
    assert gg.Matcher(partial).accept_bytes(b'{"x":{"a":"h.example","b":"') == 27
    with pytest.warns(gg.CompileWarning, match="max_seconds = 0.01"):
        gg.compile(gg.Grammar.from_json_schema(schema), vocab, max_seconds=0.01)


def test_memory_is_counted_by_stage(vocab: gg.Vocab) -> None:
    stats = gg.compile(grammar("sql_core"), vocab).stats
    assert stats["peak_bytes"].keys() == stats["milliseconds"].keys()
    assert 100_000 < max(stats["peak_bytes"].values()) < 1 << 30


@pytest.mark.parametrize("mode", ["aot", "lazy"])
def test_cancelling(vocab: gg.Vocab, mode: str) -> None:
    token = gg.CancelToken()
    asked = []

    def cancel() -> None:
        asked.append(time.monotonic())
        token.cancel()

    timer = threading.Timer(0.3, cancel)
    timer.start()
    text = "start: A\nA: /[ab]*a[ab]{18}/"
    with pytest.raises(gg.Cancelled, match="in stage lexer"):
        gg.compile(gg.Grammar.from_lark(text), vocab, mode=mode, cancel=token)
    # Far above the promise of 100 ms: other processes may keep the machine busy.
    assert time.monotonic() - asked[0] < 10
    assert token.is_cancelled
    with pytest.raises(gg.Cancelled):
        gg.compile(grammar("calc"), vocab, cancel=token)
