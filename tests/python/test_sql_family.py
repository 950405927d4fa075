"""Catalogs under one dialect and role: what is kept from one to the next must not show."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

import glrgrid as gg
from glrgrid.grammar.ir import GrammarIR
from glrgrid.sql import Catalog, Grant, Role
from glrgrid.sql.grammar import _Frame

WORDS = [
    "id",
    "name",
    "date",
    "price",
    "total",
    "city",
    "code",
    "note",
    "main",
    "full",
    "users",
    "orders",
    "rank",
]
ROLES = {
    "admin": Role.admin(),
    "reader": Role("reader", {"*": "*"}, row_limit=50),
    "writer": Role(
        "writer", {"*": Grant(select=("id",), insert="*", update=("id",))}, ["select", "insert", "update"]
    ),
}


def catalog(seed: int) -> Catalog:
    """Tables whose names and columns meet in all ways: names of columns, keywords, functions, several tables."""
    rng = random.Random(seed)
    tables = rng.sample([f"{w}s" for w in WORDS] + ["Full", "x y", "sqlite", "t"], rng.randint(1, 5))
    return Catalog.from_rows(
        (table, column)
        for table in tables
        for column in (
            "id",
            *rng.sample([w for w in WORDS if w != "id"] + ["A b", "é", 'q"'], rng.randint(0, 5)),
        )
    )


def steps(compiled: gg.CompiledGrammar, size: int, rng: random.Random) -> Iterator[bytes]:
    """The masks along a random text."""
    matcher, bitmask = gg.Matcher(compiled), gg.allocate_token_bitmask(1, size)
    for _ in range(40):
        matcher.fill_next_token_bitmask(bitmask)
        yield bitmask.tobytes()
        allowed = np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little"))
        if not matcher.accept_token(int(rng.choice(allowed))) or matcher.is_terminated():
            break


@pytest.mark.parametrize("role", ROLES)
def test_kept_parts_do_not_show(role: str) -> None:
    """Artifacts and masks of catalogs compiled one after the other, in two orders, are those of catalogs compiled
    alone: with nothing kept, and a vocabulary of their own."""
    seeds = range(6)
    alone: dict[int, tuple[str, bytes, list[bytes]]] = {}
    for seed in seeds:
        _Frame.of.cache_clear()
        vocab = gg.Vocab(gg.Vocab.default().tokens, gg.Vocab.default().eos_ids)
        grammar = gg.Grammar.from_sql("sqlite", ROLES[role], catalog(seed))
        compiled = gg.compile(grammar, vocab)
        masks = list(steps(compiled, vocab.size, random.Random(seed)))
        alone[seed] = (grammar.fingerprint, compiled.to_bytes(), masks)
    vocab = gg.Vocab.default()
    for order in (seeds, reversed(seeds)):
        for seed in order:
            grammar = gg.Grammar.from_sql("sqlite", ROLES[role], catalog(seed))
            compiled = gg.compile(grammar, vocab)
            assert (grammar.fingerprint, compiled.to_bytes()) == alone[seed][:2], seed
            lazy = gg.compile(grammar, vocab, mode="lazy")
            assert list(steps(lazy, vocab.size, random.Random(seed))) == alone[seed][2], seed
    assert len({artifact for _, artifact, _ in alone.values()}) == len(seeds)


@pytest.mark.parametrize("role", ROLES)
def test_text_is_canonical(role: str) -> None:
    """The text that is put together is the one that the grammar it says would be written as."""
    for seed in range(6):
        grammar = gg.Grammar.from_sql("sqlite", ROLES[role], catalog(seed))
        assert grammar._text == GrammarIR.from_json(grammar._text).to_json()
        assert grammar == gg.Grammar(grammar.ir)
