"""SentencePiece ``.model``: a protocol buffer with one message for each piece.

Only the fields that say what pieces spell are read; wire format and field numbers are those of
``sentencepiece_model.proto``."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import VocabError
from .source import as_text
from .spelling import byte_token, metaspace
from .table import MAX_IDS, Table

__all__ = ["read"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types; a key is a field number and one of them
_PIECE, _TRAINER = 1 << 3 | _BYTES, 2 << 3 | _BYTES
_TEXT, _TYPE = 1 << 3 | _BYTES, 3 << 3 | _VARINT  # of a piece
_EOS_ID, _EOS_PIECE = 42 << 3 | _VARINT, 47 << 3 | _BYTES  # of the trainer's settings
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)


def read(raw: bytes, where: str) -> Table:
    """Read the bytes of a model."""
    table = Table(where)
    eos_piece, has_eos = "</s>", True
    for key, start, content in _fields(raw, 0, len(raw), where):
        if key == _PIECE:
            if len(table.pieces) == MAX_IDS:
                raise VocabError(f"{where}: offset {start}: more than {MAX_IDS} pieces; the file is damaged")
            _read_piece(raw, start, content, table)
        elif key == _TRAINER:
            for inner, at, value in _fields(raw, start, content, where):
                if inner == _EOS_ID:
                    has_eos = value < 1 << 31  # negative ones are written as huge ones
                elif inner == _EOS_PIECE:
                    eos_piece = as_text(raw[at:value], where, f"offset {at}")
    if has_eos and eos_piece in table.special:
        table.eos.append(table.special[eos_piece])
    return table


def _read_piece(raw: bytes, start: int, end: int, table: Table) -> None:
    token_id = len(table.pieces)
    place = f"piece {token_id}"
    text, kind = b"", _NORMAL
    for key, at, value in _fields(raw, start, end, table.where):
        if key == _TEXT:
            text = raw[at:value]
        elif key == _TYPE:
            kind = value
    name = as_text(text, table.where, place)
    if kind in (_NORMAL, _USER_DEFINED):
        piece: bytes | None = metaspace(name)
    elif kind == _BYTE:
        piece = byte_token(name)
        if piece is None:
            raise VocabError(
                f"{table.where}: {place}: {name!r} is no byte such as <0x41>, though marked as one"
            )
    elif kind in (_UNKNOWN, _CONTROL, _UNUSED):
        piece = None
    else:
        raise VocabError(f"{table.where}: {place}: there is no type {kind}; the file is damaged")
    table.pieces[token_id] = piece
    if table.ids.setdefault(name, token_id) != token_id:
        raise VocabError(
            f"{table.where}: {place}: {name!r} is also piece {table.ids[name]}; every piece needs a text of its "
            f"own, so the file is damaged"
        )
    if kind == _USER_DEFINED:
        table.added[name] = token_id
    if kind == _CONTROL:
        table.special[name] = token_id


def _fields(raw: bytes, at: int, end: int, where: str) -> Iterator[tuple[int, int, int]]:
    """Fields of the message in ``raw[at:end]``: key, where the content starts, and its value or end."""
    while at < end:
        begin = at
        key, start = _varint(raw, at, end, where)
        wire = key & 7
        if wire == _BYTES:
            value, start = _varint(raw, start, end, where)
            at = value = start + value
        elif wire == _VARINT:
            value, at = _varint(raw, start, end, where)
        elif wire == _FIXED32:
            at = value = start + 4
        elif wire == _FIXED64:
            at = value = start + 8
        else:
            raise VocabError(
                f"{where}: offset {begin}: there is no wire type {wire}; not a SentencePiece model"
            )
        if at > end or key < 8:
            raise VocabError(f"{where}: offset {begin}: damaged or cut off; not a whole SentencePiece model")
        yield key, start, value


def _varint(raw: bytes, at: int, end: int, where: str) -> tuple[int, int]:
    """A number of variable length, and the offset after it."""
    if at < end and raw[at] < 0x80:
        return raw[at], at + 1
    value = 0
    for position in range(at, min(end, at + 10)):
        byte = raw[position]
        value |= (byte & 0x7F) << 7 * (position - at)
        if byte < 0x80:
            return value, position + 1
    raise VocabError(f"{where}: offset {at}: a number is damaged or cut off; not a whole SentencePiece model")
