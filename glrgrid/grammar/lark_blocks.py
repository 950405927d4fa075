"""Blocks inside of Lark texts: ``%json {...}``, ``%regex {...}``, ``%lark {...}`` and ``%llguidance {...}``.

Their contents are no Lark. Before the text is parsed they are taken out, and a mark with their number is put in their
place, so that the rest keeps its lines and columns.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from ..errors import GrammarError
from .ir import Position

__all__ = ["Block", "take_out"]

_TEXT = r'"(?:\\.|[^"\\\n])*"|/(?!/)(?:\\.|[^/\\\n])+/|//[^\n]*|#[^\n]*'
"""What can contain braces and percent signs that mean nothing: strings, regular expressions, comments."""
_BEGIN = re.compile(
    rf"(?P<text>{_TEXT})|%(?P<kind>json|regex|lark|llguidance)\s*(?=\{{)|(?P<parametric>[\w-]+::)|%if\b"
)
_BRACE = re.compile(rf"(?:{_TEXT})|(?P<brace>[{{}}])")


@dataclass(frozen=True, slots=True)
class Block:
    """A block; ``value`` is what its JSON means, or the text of a grammar."""

    kind: str
    value: Any
    position: Position


def take_out(text: str) -> tuple[str, list[Block]]:
    """The text with a mark ``%kind<number>`` for each block, and the blocks."""
    blocks: list[Block] = []
    kept: list[str] = []
    at = 0
    while (found := _BEGIN.search(text, at)) is not None:
        position = (
            text.count("\n", 0, found.start()) + 1,
            found.start() - text.rfind("\n", 0, found.start()),
        )
        if found["parametric"] or found[0] == "%if":
            raise GrammarError(
                "parametric rules (name::..., %if) are not supported; write a rule for each case", *position
            )
        kept.append(text[at : found.start()])
        at = found.end()
        if found["text"] is not None:
            kept.append(found[0])
            continue
        kind = found["kind"]
        value, at = _grammar(text, at, position) if kind == "lark" else _json(text, at, kind, position)
        mark = f"%{kind}<{len(blocks)}>"
        blocks.append(Block(kind, value, position))
        kept.append(mark + _blank(text[found.start() + len(mark) : at]))
    return "".join((*kept, text[at:])), blocks


def _json(text: str, at: int, kind: str, position: Position) -> tuple[Any, int]:
    try:
        return json.JSONDecoder().raw_decode(text, at)
    except (json.JSONDecodeError, RecursionError) as error:
        raise GrammarError(f"%{kind}: bad JSON: {error}", *position) from None


def _grammar(text: str, at: int, position: Position) -> tuple[str, int]:
    depth = 0
    for found in _BRACE.finditer(text, at):
        depth += {"{": 1, "}": -1}.get(found["brace"] or "", 0)
        if depth == 0:
            return text[at + 1 : found.start()], found.end()
    raise GrammarError('%lark: the "{" that opens it is never closed', *position)


def _blank(text: str) -> str:
    """As many lines and, on the last one, columns; all of it is ignored."""
    *lines, last = text.split("\n")
    return "\\\n" * len(lines) + " " * len(last)
