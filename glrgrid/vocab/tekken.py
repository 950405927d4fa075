"""Mistral's ``tekken.json``: the bytes of each token in base64, ordered by rank.

Special tokens take the first ids; a token's id is its rank behind them. The file lists more ranks than the
model has; ``default_vocab_size`` cuts them off."""

from __future__ import annotations

import reprlib
from binascii import Error, a2b_base64
from typing import Any

from ..errors import VocabError
from .source import expect
from .table import MAX_IDS, Table

__all__ = ["read"]

_UNLISTED_SPECIALS = {"<unk>": 0, "<s>": 1, "</s>": 2}
"""What older files, which list no special tokens, leave unsaid."""


def read(document: dict[str, Any], where: str) -> Table:
    """Read a parsed tekken.json."""
    config = expect(document.get("config"), dict, where, "/config", "an object")
    vocab = expect(document.get("vocab"), list, where, "/vocab", "an array")
    width = _count(config, "default_vocab_size", where)
    first = _count(config, "default_num_special_tokens", where)
    if not first <= width <= first + len(vocab):
        raise VocabError(
            f"{where}: /config/default_vocab_size is {width}, with {first} special tokens and {len(vocab)} others; "
            f"the file is damaged"
        )
    table = Table(where, pieces=dict.fromkeys(range(first)), size=width)
    table.special = _specials(document.get("special_tokens"), first, where)
    table.ids = dict(table.special)
    for rank, entry in enumerate(vocab[: width - first]):
        pointer = f"/vocab/{rank}"
        if not isinstance(entry, dict) or type(entry.get("rank")) is not int or entry["rank"] != rank:
            raise VocabError(f"{where}: {pointer}: expected an object with rank {rank}; the file is damaged")
        encoded = entry.get("token_bytes")
        if not isinstance(encoded, str) or not encoded:
            raise VocabError(
                f"{where}: {pointer}/token_bytes: expected a string in base64; the file is damaged"
            )
        try:
            table.pieces[first + rank] = a2b_base64(encoded, strict_mode=True)
        except (Error, ValueError) as error:
            raise VocabError(
                f"{where}: {pointer}/token_bytes: not valid base64 ({error}); the file is damaged"
            ) from error
    return table


def _specials(entries: Any, first: int, where: str) -> dict[str, int]:
    if entries is None:
        return {name: rank for name, rank in _UNLISTED_SPECIALS.items() if rank < first}
    specials: dict[str, int] = {}
    for position, entry in enumerate(expect(entries, list, where, "/special_tokens", "an array")):
        pointer = f"/special_tokens/{position}"
        expect(entry, dict, where, pointer, "an object")
        name = expect(entry.get("token_str"), str, where, f"{pointer}/token_str", "a string")
        rank = entry.get("rank")
        if type(rank) is not int or not 0 <= rank < first:
            raise VocabError(
                f"{where}: {pointer}/rank: expected an id from 0 to {first - 1}, found {reprlib.repr(rank)}"
            )
        if name in specials or rank in specials.values():
            raise VocabError(
                f"{where}: {pointer}: {name!r} or its rank {rank} is given twice; the file is damaged"
            )
        specials[name] = rank
    return specials


def _count(config: dict[str, Any], name: str, where: str) -> int:
    value = config.get(name)
    if type(value) is not int or not 0 <= value <= MAX_IDS:
        raise VocabError(
            f"{where}: /config/{name}: expected an integer from 0 to {MAX_IDS}, found {reprlib.repr(value)}"
        )
    return value
