"""The corpus ``tests/corpus/json_schema.jsonl``: schemas of our own, with instances that they accept and reject.

A row has ``schema`` and, as far as it makes sense, ``accept`` and ``reject`` (values), ``accept_text`` and
``reject_text`` (JSON texts, for what only a spelling shows), ``refuse`` (part of the error's pointer or reason),
``may_refuse`` (the pointer, if it is refused, else the instances hold) and ``warns`` (part of a warning). ``judge``
says why ``jsonschema`` cannot confirm a row, ``open`` what is still wrong with it.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from json_schema_support import STRICTER, Judge, compile_schema
from maskbench import SPELLINGS, accepts, byte_vocab

import glrgrid as gg

CORPUS = Path(__file__).parents[1] / "corpus" / "json_schema.jsonl"
ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in CORPUS.read_text(encoding="utf-8").strip().split("\n")
]
VOCAB = byte_vocab()


def texts(row: dict[str, Any], kind: str) -> list[str]:
    spelled = [json.dumps(value, **spelling) for value in row.get(kind, []) for spelling in SPELLINGS]
    return [*dict.fromkeys(spelled), *row.get(f"{kind}_text", [])]


def as_parameters(rows: list[dict[str, Any]]) -> list[Any]:
    marks = {row["id"]: [pytest.mark.xfail(reason=row["open"])] if "open" in row else [] for row in rows}
    return [pytest.param(row, id=row["id"], marks=marks[row["id"]]) for row in rows]


@pytest.mark.parametrize("row", as_parameters(ROWS))
def test_a_row_holds(row: dict[str, Any]) -> None:
    if "refuse" in row:
        with pytest.raises(gg.SchemaError) as caught:
            compile_schema(row["schema"], VOCAB)
        assert row["refuse"] in caught.value.pointer or row["refuse"] in str(caught.value)
        assert caught.value.pointer or str(caught.value)
        return
    try:
        compiled = compile_schema(row["schema"], VOCAB)
    except gg.SchemaError as error:
        assert error.pointer == row.get("may_refuse"), error
        return
    for text in texts(row, "accept"):
        assert accepts(compiled, text), f"{text} should be accepted"
    for text in texts(row, "reject"):
        assert not accepts(compiled, text), f"{text} should be refused"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = gg.Grammar.from_json_schema(json.dumps(row["schema"])).warnings
    assert (row["warns"] in found[0]) if "warns" in row else not found


def test_compiling_ahead_of_time_changes_nothing() -> None:
    for row in ROWS:
        if row.keys() & {"refuse", "may_refuse", "open"} or row["id"] == "format-hostname":
            continue
        compiled = compile_schema(row["schema"], VOCAB, mode="aot")
        assert all(accepts(compiled, text) for text in texts(row, "accept")), row["id"]
        assert not any(accepts(compiled, text) for text in texts(row, "reject")), row["id"]


def test_jsonschema_agrees_with_the_rows() -> None:
    wrong = []
    for row in ROWS:
        if "judge" in row:
            continue
        try:
            judge = Judge(row["schema"])
        except jsonschema.SchemaError as error:
            wrong.append((row["id"], str(error)))
            continue
        for kind in ("accept", "reject"):
            for text in texts(row, kind):
                try:
                    found = judge.accepts(text)
                except ValueError:  # no JSON
                    found = False
                except Exception as error:  # an unresolvable reference
                    assert "refuse" in row, error
                    continue
                if found != (kind == "accept") and not (found and is_no_disagreement(row, text)):
                    wrong.append((row["id"], text))
    assert not wrong


def is_no_disagreement(row: dict[str, Any], text: str) -> bool:
    """Whether a text is rejected for how it is written (an exponent, a key twice), or by an RFC that is not checked."""
    written = text in row.get("reject_text", []) and any(mark in text for mark in ("e", "\\ud800", '"a":'))
    return written or row["schema"].get("format") in STRICTER


KEYWORDS = """
    type const enum properties required additionalProperties patternProperties propertyNames minProperties maxProperties
    dependentRequired dependencies items prefixItems additionalItems minItems maxItems contains minContains maxContains
    uniqueItems minLength maxLength pattern format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf allOf
    anyOf oneOf not if then else $ref $defs definitions $id $dynamicRef unevaluatedProperties dependentSchemas $anchor
"""


def test_the_corpus_covers_every_keyword() -> None:
    text = CORPUS.read_text(encoding="utf-8")
    assert [keyword for keyword in KEYWORDS.split() if f'"{keyword}"' not in text] == []
    assert len(ROWS) >= 150
    assert all(draft in text for draft in ("draft-04", "draft-07", "2020-12"))
