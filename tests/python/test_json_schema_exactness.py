"""JSON Schema against ``jsonschema``: what a mask lets through is valid, what is valid is let through.

Keys come in the order of the grammar (:class:`json_schema_order.Reorderer`), and where that guesses wrong, in any order
that is accepted. A text with one key twice has no agreed value and is left out.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_schema_order import Reorderer
from json_schema_random import random_instance, random_schema
from json_schema_support import (
    STRICTER,
    Judge,
    compile_schema,
    mutations,
    orders,
    repeats_a_key,
    spelled_tokens,
    walk,
)
from maskbench import accepts, byte_vocab
from test_json_schema_corpus import ROWS

import glrgrid as gg

BYTES = byte_vocab()
KEPT = [row for row in ROWS if "accept" in row and not row.keys() & {"judge", "open"}]


def check_values(schema: Any, compiled: gg.CompiledGrammar, values: list[Any], counts: Counter[str]) -> None:
    """Compare acceptance with the judge's on each value."""
    judge, reorderer = Judge(schema), Reorderer(schema)
    stricter = any(f'"format": "{name}"' in json.dumps(schema) for name in STRICTER)
    for value in values:
        try:
            text = json.dumps(reorderer.reordered(value, [schema]), allow_nan=False)
        except ValueError:
            continue
        if any(mark in text for mark in ("e+", "e-")):
            continue  # bounded numbers have no exponents
        valid = judge.accepts(text)
        counts["valid" if valid else "invalid"] += 1
        found = accepts(compiled, text)
        if valid and not found and stricter:
            counts["stricter"] += 1
            continue
        if valid and not found:  # of several schemas for one object, each has an order of its own
            counts["another order"] += 1
            found = any(
                accepts(compiled, json.dumps(other)) for other in itertools.islice(orders(value), 500)
            )
        assert found == valid, f"{json.dumps(schema)}\n{text}\n{judge.why(text)}"


@pytest.mark.parametrize("row", KEPT, ids=[row["id"] for row in KEPT])
def test_mutations_of_instances_are_judged_alike(row: dict[str, Any]) -> None:
    try:
        compiled = compile_schema(row["schema"], BYTES)
    except gg.SchemaError:
        assert "may_refuse" in row
        return
    rng = random.Random(row["id"])
    values = [m for value in row["accept"] for _ in range(3) for m in mutations(value, rng)]
    counts: Counter[str] = Counter()
    check_values(row["schema"], compiled, rng.sample(values, min(len(values), 150)), counts)


def check_walks(
    schema: Any,
    compiled: gg.CompiledGrammar,
    vocab: gg.Vocab,
    rng: random.Random,
    counts: Counter[str],
    n: int,
) -> None:
    """Random walks under the mask have to parse and validate."""
    judge, tokens = Judge(schema), spelled_tokens(vocab)
    for _ in range(n):
        output = walk(compiled, tokens, rng)
        if output is None:
            counts["unfinished"] += 1
            continue
        text = output.decode()
        if repeats_a_key(text):
            counts["repeated key"] += 1
            continue
        counts["walks"] += 1
        assert judge.accepts(text), f"{json.dumps(schema)}\n{text}\n{judge.why(text)}"


@pytest.mark.parametrize("name", ["bytes", "default"])
def test_walks_over_the_corpus_validate(name: str) -> None:
    vocab = BYTES if name == "bytes" else gg.Vocab.default()
    counts: Counter[str] = Counter()
    for row in KEPT:
        try:
            compiled = compile_schema(row["schema"], vocab)
        except gg.SchemaError:
            continue
        rng = random.Random(f"{row['id']} {name}")
        check_walks(row["schema"], compiled, vocab, rng, counts, n=2)
    assert counts["walks"] > 200, counts


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 2**40))
def test_random_schemas_are_judged_alike(seed: int) -> None:
    check_random_schema(random.Random(seed), Counter())


def check_random_schema(rng: random.Random, counts: Counter[str]) -> None:
    """One random schema with its instances, their mutations, and walks."""
    schema = random_schema(rng)
    try:
        compiled = compile_schema(schema, BYTES)
    except gg.SchemaError as error:
        assert error.pointer is not None
        counts["refused" if "no value" not in str(error) else "empty"] += 1
        return
    counts["compiled"] += 1
    values = [random_instance(schema, rng) for _ in range(15)]
    values += [m for value in values[:4] for m in mutations(value, rng)][:60]
    check_values(schema, compiled, values, counts)
    check_walks(schema, compiled, BYTES, rng, counts, n=2)


def test_the_generator_is_not_vacuous() -> None:
    counts: Counter[str] = Counter()
    for seed in range(60):
        check_random_schema(random.Random(seed), counts)
    assert (
        counts["compiled"] > 35 and counts["valid"] > 300 and counts["invalid"] > 600 and counts["walks"] > 30
    ), counts
