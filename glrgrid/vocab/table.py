"""A tokenizer that was read, on its way to a :class:`~glrgrid.vocab.Vocab`.

Every reader makes a :class:`Table`; :func:`finish` settles the width of the logits and the end-of-sequence
ids, by the same rules for all of them."""

from __future__ import annotations

import operator
import reprlib
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, SupportsIndex

from ..errors import VocabError

__all__ = [
    "MAX_IDS",
    "Table",
    "VocabWarning",
    "as_id",
    "bad_id",
    "eos_list",
    "finish",
    "lay_out",
    "require_below",
]

MAX_IDS = 1 << 21
"""Largest supported ``size``; an id at or above it is taken for damage."""

EOS_NAMES = (
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "</s>",
    "<eos>",
    "<|eos|>",
    "[EOS]",
    "<end_of_turn>",
    "<turn|>",
    "<end_of_utterance>",
    "<|endofturn|>",
    "<|return|>",
    "<|call|>",
    "<|END_OF_TURN_TOKEN|>",
    "<EOT>",
    "<|EOT|>",
    "[EOT]",
    "<｜end▁of▁sentence｜>",
)
"""Special tokens taken as end of sequence when no configuration file names any."""


class VocabWarning(UserWarning):
    """The vocabulary can be used, but some outputs cannot be written or ended with it."""


@dataclass(slots=True)
class Table:
    """Ids, what they spell, and what end-of-sequence ids can be found by."""

    where: str
    """Name of the file or object, for messages."""
    pieces: dict[int, bytes | None] = field(default_factory=dict)
    """What each id spells. Ids that are left out are holes."""
    ids: dict[str, int] = field(default_factory=dict)
    """Ids by the text that configuration files may name them with."""
    special: dict[str, int] = field(default_factory=dict)
    """Those of them that are special tokens."""
    added: dict[str, int] = field(default_factory=dict)
    """Further tokens that grammars can name: those that were added to the model's own."""
    eos: list[int] = field(default_factory=list)
    """End-of-sequence ids that the tokenizer itself names."""
    configured_eos: list[int] | None = None
    """End-of-sequence ids that configuration files name; they settle it."""
    size: int | None = None
    """Width of the logits that the file, or a configuration file, names."""

    @property
    def width(self) -> int:
        """The highest id + 1."""
        return max(self.pieces, default=-1) + 1

    def names(self, width: int) -> dict[str, int]:
        """Ids below ``width`` by the names that grammars can use for them; a name is Unicode text."""
        names = (self.added | self.special).items()
        return {
            name: i for name, i in names if i < width and not any("\ud800" <= c <= "\udfff" for c in name)
        }


Finished = tuple[list[bytes | None], list[int], dict[str, int], list[str]]
"""What each id spells, end-of-sequence ids, ids by name, and the names that are markers."""


def finish(
    table: Table, given: Iterable[int] | int | None, size: int | None, is_marker: Callable[[str], bool]
) -> Finished:
    """Settle width, end-of-sequence ids, and which added tokens spell nothing."""
    if not table.pieces:
        raise VocabError(f"{table.where}: there are no tokens; pass a complete file")
    width = settle_width(size, table.size or table.width, table.where)
    if given is not None:
        eos = eos_list(given, "eos_ids")
        require_below(eos, width)
        return _finished(table, eos, width, is_marker)
    found = table.configured_eos
    if found is None:
        found = table.eos + [table.special[name] for name in EOS_NAMES if name in table.special]
    require_below(found, max(width, table.width))
    eos = sorted(token_id for token_id in set(found) if token_id < width)
    if not eos:
        warnings.warn(
            f"{table.where}: no end-of-sequence id was found, so masks will never allow the output to "
            f"end; pass eos_ids=",
            VocabWarning,
            stacklevel=3,
        )
    return _finished(table, eos, width, is_marker)


def _finished(table: Table, eos: list[int], width: int, is_marker: Callable[[str], bool]) -> Finished:
    names = table.names(width)
    markers = [
        name
        for name, token_id in table.added.items()
        if name in names
        and token_id not in eos
        and table.pieces[token_id] == name.encode()
        and is_marker(name)
    ]
    table.pieces |= dict.fromkeys(table.added[name] for name in markers)
    return lay_out(table.pieces, eos, width), eos, names, markers


def lay_out(pieces: Mapping[int, bytes | None], eos: Iterable[int], width: int) -> list[bytes | None]:
    """One entry per id below ``width``; holes, padding and end-of-sequence ids are None."""
    tokens = list(map(pieces.get, range(width)))
    for token_id in eos:
        tokens[token_id] = None
    return tokens


def settle_width(size: int | None, natural: int, where: str) -> int:
    """The width of the logits: ``size`` if given, else ``natural``."""
    if size is None:
        if natural == 0:
            raise VocabError(f"{where}: there are no tokens; pass at least one, or a size")
        return natural
    if (
        isinstance(size, bool)
        or not isinstance(size, SupportsIndex)
        or not 0 < operator.index(size) <= MAX_IDS
    ):
        raise VocabError(
            f"size must be an integer from 1 to {MAX_IDS}, the width of the logits; found "
            f"{reprlib.repr(size)}"
        )
    return operator.index(size)


def eos_list(value: Any, what: str, advice: str = "") -> list[int]:
    """End-of-sequence ids as ascending distinct integers."""
    values = (
        value if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)) else [value]
    )
    return sorted({as_id(item, what, advice) for item in values})


def require_below(eos: Iterable[int], width: int) -> None:
    """Raise VocabError for an end-of-sequence id at or beyond ``width``."""
    for token_id in eos:
        if token_id >= width:
            raise VocabError(
                f"end-of-sequence id {token_id} is outside of the vocabulary of {width} ids; pass other "
                f"eos_ids= or a larger size="
            )


def as_id(value: object, what: str, advice: str = "") -> int:
    """``value``, if it is an id."""
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, SupportsIndex)):
        raise VocabError(f"{what}: an id is an integer, found {reprlib.repr(value)}{advice}")
    token_id = operator.index(value)
    if not 0 <= token_id < MAX_IDS:
        raise VocabError(f"{what}: id {token_id} is outside of 0 to {MAX_IDS - 1}{advice}")
    return token_id


def bad_id(where: str, pointer: str, found: object) -> VocabError:
    """The error for something that should be an id."""
    return VocabError(
        f"{where}: {pointer}: an id is an integer from 0 to {MAX_IDS - 1}, found {reprlib.repr(found)}; "
        f"correct the file"
    )
