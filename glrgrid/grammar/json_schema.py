"""JSON Schema as text, as Python values or as a class → a lowered grammar. The lowering itself is Rust."""

from __future__ import annotations

import json
import re

from glrgrid import _native
from glrgrid.errors import SchemaError

__all__ = ["lower"]

MAX_WHITE_SPACE = 200
"""Longest run of line feeds, and of blanks, that a grammar counts."""


def lower(
    schema: object,
    *,
    whitespace: str,
    separators: tuple[str, str],
    max_newlines: int,
    max_blanks: int,
    property_order: str,
    one_of: str,
    lenient: bool,
) -> _native.SchemaGrammar:
    """Lower a schema; see :meth:`glrgrid.grammar.Grammar.from_json_schema`."""
    _check("whitespace", whitespace, ("flexible", "compact"))
    _check("property_order", property_order, ("schema", "any"))
    _check("one_of", one_of, ("exact", "any"))
    if whitespace == "compact":
        _check_separators(separators)
    for name, count in (("max_newlines", max_newlines), ("max_blanks", max_blanks)):
        if not 0 <= count <= MAX_WHITE_SPACE:
            raise SchemaError(f"{name} is {count}; expected 0 to {MAX_WHITE_SPACE}")
    return _native.lower_schema(
        _text(schema),
        separators=separators if whitespace == "compact" else None,
        max_newlines=max_newlines,
        max_blanks=max_blanks,
        any_order=property_order == "any",
        one_of_any=one_of == "any",
        lenient=lenient,
    )


def _check(name: str, value: str, allowed: tuple[str, str]) -> None:
    if value not in allowed:
        raise SchemaError(f'{name} is {value!r}; expected "{allowed[0]}" or "{allowed[1]}"')


def _check_separators(separators: tuple[str, str]) -> None:
    for text, mark in zip(separators, ",:", strict=True):
        if text.strip(" \t\n\r") != mark:
            raise SchemaError(f'separator {text!r} is not "{mark}" with white space around it')


def _text(schema: object) -> str:
    if hasattr(schema, "model_json_schema"):
        schema = schema.model_json_schema()
    if isinstance(schema, bytes):
        try:
            return schema.decode()
        except UnicodeDecodeError as error:
            raise SchemaError(f"the schema is not UTF-8 text: {error}") from None
    if isinstance(schema, str):
        return _utf8(schema)
    if not isinstance(schema, (dict, bool)):
        kind = type(schema).__name__
        raise TypeError(
            f"schema is of type {kind}; pass JSON text, a dict, or a class with model_json_schema()"
        )
    try:
        return _utf8(json.dumps(schema, allow_nan=False, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaError(f"the schema is not JSON: {error}") from None


def _utf8(text: str) -> str:
    """The text, if it has no lone surrogates, which no JSON text in UTF-8 can contain."""
    found = re.search("[\ud800-\udfff]", text)
    if found is None:
        return text
    around = ascii(text[max(0, found.start() - 20) : found.end()])
    raise SchemaError(f"the schema has a lone surrogate, which no UTF-8 text can contain: {around}")
