"""Token terminals: how they are written, and names of tokens to the ids that a vocabulary gives them.

A vocabulary may have *markers*, tokens such as ``<think>`` that no text matches. A literal of a grammar that has the
text of one in it means the token as well (:func:`parts_of`, :func:`spelled`): front ends that are given the markers
let it be written either wholly as text, or with the tokens for all markers in it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import GrammarError
from .ir import Expr, GrammarIR
from .regular import alt, cat

if TYPE_CHECKING:
    from ..vocab import Vocab

__all__ = ["END_IDS", "parse", "parts_of", "resolve", "spelled"]

END_IDS = ""
"""The name that stands for all ids that end the output."""

_LISTED = 12
_RANGE = re.compile(r"\s*(\d{1,10})\s*(?:-\s*(\d{1,10})\s*)?")


def parse(text: str) -> Expr:
    """Read ``<name>``, ``<[id]>``, ``<[first-last,id]>``, ``<[^id]>`` (all others) or ``<[*]>`` (any).

    Raises
    ------
    ValueError
        It is malformed; says how, in words that follow the text.
    """
    if not text.startswith("<["):
        return ("tokens", False, (), (text,))
    body = text[2:-2]
    if body.strip() == "*":
        return ("tokens", True, (), ())
    negated = body.startswith("^")
    ranges = []
    for part in body[negated:].split(","):
        found = _RANGE.fullmatch(part)
        if found is None:
            raise ValueError(
                "expected ids and ranges of ids, such as <[5,10-20]>, <[^5]> for all others, <[*]> for any"
            )
        low, high = int(found[1]), int(found[2] or found[1])
        if not low <= high < 1 << 32:
            raise ValueError(f"bad range {part.strip()}: expected two ids in order")
        ranges.append((low, high))
    return ("tokens", negated, tuple(ranges), ())


def parts_of(text: str, markers: Collection[str]) -> list[str]:
    """A text cut at the markers in it, longest first: text, marker, text, ..., text."""
    if not any(marker in text for marker in markers):
        return [text]
    longest_first = sorted(markers, key=lambda marker: (-len(marker), marker))
    return re.split(f"({'|'.join(map(re.escape, longest_first))})", text)


def token(marker: str) -> Expr:
    """The expression of the terminal that a marker is."""
    return ("tokens", False, (), (marker,))


def spelled(text: str, markers: Collection[str]) -> Expr:
    """A literal: the text, or the same with references to the markers in it."""
    parts = parts_of(text, markers)
    if len(parts) == 1:
        return ("lit", text)
    return alt((("lit", text), cat(("ref" if at % 2 else "lit", part) for at, part in enumerate(parts))))


def resolve(ir: GrammarIR, vocab: Vocab) -> GrammarIR:
    """Give the tokens that a grammar names their ids.

    Parameters
    ----------
    ir : GrammarIR
        May have token terminals with names.
    vocab : Vocab
        Knows the ids.

    Returns
    -------
    GrammarIR
        Has ids in their place.

    Raises
    ------
    GrammarError
        The vocabulary has no token of a name; lists those that it has.
    """
    if all(terminal.expr[0] != "tokens" or not terminal.expr[3] for terminal in ir.terminals):
        return ir
    terminals, known = list(ir.terminals), vocab.names
    for index, terminal in enumerate(terminals):
        if terminal.expr[0] == "tokens":
            _, negated, ranges, names = terminal.expr
            for name in names:
                if name not in known and name != END_IDS:
                    raise GrammarError(_unknown(name, known), *(terminal.position or (None, None)))
            ids = tuple((i, i) for n in names for i in (vocab.eos_ids if n == END_IDS else (known[n],)))
            terminals[index] = replace(terminal, expr=("tokens", negated, ranges + ids, ()))
    return replace(ir, terminals=tuple(terminals))


def _unknown(name: str, names: Mapping[str, int]) -> str:
    close = difflib.get_close_matches(name, names, 1)
    known = close + [other for other in sorted(names) if other not in close]
    more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    there = f"it has {', '.join(known[:_LISTED])}{more}" if known else "it has no named tokens"
    return (
        f"the vocabulary has no special or added token {name}; {there}; other tokens are named by id: <[123]>"
    )
