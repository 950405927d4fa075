"""GGUF, the model files of llama.cpp: the vocabulary in their metadata.

A model has many gigabytes and its vocabulary a few megabytes at the start, so the file is mapped and only the
metadata is read. Every length is held against what is left of the file before anything is made of it."""

from __future__ import annotations

import mmap
import reprlib
import struct
from pathlib import Path
from typing import Any

from ..errors import VocabError
from .source import as_text, unreadable
from .spelling import byte_level, byte_token, metaspace
from .table import MAX_IDS, Table

__all__ = ["MAGIC", "read"]

MAGIC = b"GGUF"

_STRING, _ARRAY = 8, 9
_SCALARS = dict(enumerate("BbHhIif?", 0)) | {10: "Q", 11: "q", 12: "d"}
_MAX_KEYS = 1 << 16
_MAX_STRINGS = 1 << 24

_PREFIX = "tokenizer.ggml."
_EOS_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
_WANTED = {_PREFIX + name for name in ("model", "pre", "tokens", "token_type", *_EOS_KEYS)}
_SPACE_MARKING_BPE = ("gemma4", "granite-embed-multi-311m", "sarvam-moe")
"""Pre-tokenizers of BPE models whose tokens are text, with U+2581 for a space."""

_NORMAL, _USER_DEFINED, _BYTE = 1, 4, 6
_WITHOUT_TEXT = (0, 2, 3, 5)  # undefined, unknown, control, unused
_CONTROL = 3


def read(file: Path) -> Table:
    """Read the vocabulary of a GGUF file."""
    try:
        with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found = _Metadata(data, str(file)).read()
    except OSError as error:
        raise unreadable(file, error) from error
    return _table(found, str(file))


class _Metadata:
    """A reader that goes through the metadata from front to back."""

    def __init__(self, data: mmap.mmap, where: str) -> None:
        self.data, self.size, self.where = data, len(data), where
        self.at, self.order, self.key = len(MAGIC), "<", ""

    def read(self) -> dict[str, Any]:
        """Values of the keys that are wanted."""
        version = self.number("I")
        if version & 0xFFFF == 0:
            self.order = ">"
            version = struct.unpack(">I", struct.pack("<I", version))[0]
        if version not in (2, 3):
            raise self.error(
                f"GGUF version {version} is not supported, only 2 and 3; convert the model again"
            )
        self.number("Q")  # tensors
        keys = self.number("Q")
        if keys > _MAX_KEYS:
            raise self.error(f"{keys} keys are more than {_MAX_KEYS}; the file is damaged")
        found: dict[str, Any] = {}
        seen: set[bytes] = set()
        for _ in range(keys):
            self.key = ""
            name = self.strings(1)[0]
            self.key = as_text(name, self.where, f"offset {self.at - len(name)}")
            if name in seen:
                raise self.error("the key is given twice; the file is damaged")
            seen.add(name)
            wanted = self.key in _WANTED
            value = self.value(self.number("I"), wanted)
            if wanted:
                found[self.key] = value
        return found

    def value(self, kind: int, wanted: bool) -> Any:
        if kind == _STRING:
            return self.strings(1)[0]
        if kind != _ARRAY:
            return self.number(self.scalar(kind))
        kind, count = self.number("I"), self.number("Q")
        if kind == _STRING:
            return self.strings(count, keep=wanted)
        return self.numbers(self.scalar(kind), count, wanted)

    def scalar(self, kind: int) -> str:
        if kind not in _SCALARS:
            raise self.error(f"there is no value type {kind}; the file is damaged")
        return _SCALARS[kind]

    def number(self, code: str) -> Any:
        return self.numbers(code, 1, True)[0]

    def numbers(self, code: str, count: int, wanted: bool) -> tuple[Any, ...]:
        start, length = self.at, count * struct.calcsize("=" + code)
        if length > self.size - start:
            raise self.error(
                f"{length} bytes are announced, but {self.size - start} are left; the file is cut off"
            )
        self.at += length
        if not wanted:
            return ()
        if count > MAX_IDS:
            raise self.error(f"{count} elements are more than {MAX_IDS}; the file is damaged")
        return struct.unpack_from(f"{self.order}{count}{code}", self.data, start)

    def strings(self, count: int, keep: bool = True) -> list[bytes]:
        if count > (MAX_IDS if keep else _MAX_STRINGS) or count * 8 > self.size - self.at:
            raise self.error(f"{count} strings are announced; the file is damaged or cut off")
        data, size, at = self.data, self.size, self.at
        length_at = struct.Struct(self.order + "Q").unpack_from
        strings = []
        for _ in range(count):
            self.at = at
            start = at + 8
            if start > size or (at := start + length_at(data, at)[0]) > size:
                raise self.error("a string goes beyond the end of the file; the file is damaged or cut off")
            if keep:
                strings.append(data[start:at])
        self.at = at
        return strings

    def error(self, problem: str) -> VocabError:
        key = f"key {self.key!r}, " if self.key else ""
        return VocabError(f"{self.where}: {key}offset {self.at}: {problem}")


def _table(found: dict[str, Any], where: str) -> Table:
    """What the metadata says."""
    model = _checked(found, "model", bytes, where)
    pre = _checked(found, "pre", bytes, where) if _PREFIX + "pre" in found else b""
    tokens = _checked(found, "tokens", list, where)
    types = _checked(found, "token_type", tuple, where)
    if model not in (b"gpt2", b"llama", b"t5", b"gemma4"):
        shown = model.decode("utf-8", "replace")
        raise VocabError(
            f"{where}: key '{_PREFIX}model': a tokenizer of the kind {shown!r} cannot be read; those of the "
            f"kinds gpt2, llama, t5 and gemma4 can"
        )
    if len(types) != len(tokens):
        raise VocabError(
            f"{where}: key '{_PREFIX}token_type': {len(types)} types for {len(tokens)} tokens; the file is damaged"
        )
    marks_spaces = model != b"gpt2" or pre.decode("utf-8", "replace") in _SPACE_MARKING_BPE
    ordinary = metaspace if marks_spaces else byte_level
    table = Table(where)
    for token_id, (raw, kind) in enumerate(zip(tokens, types, strict=True)):
        if kind == _NORMAL:
            piece: bytes | None = ordinary(as_text(raw, where, f"token {token_id}"))
        elif kind == _USER_DEFINED:
            piece = raw
        elif kind == _BYTE:
            piece = byte_token(raw.decode("utf-8", "replace"))
            if piece is None:
                raise VocabError(
                    f"{where}: token {token_id}: {reprlib.repr(raw)} is no byte token such as "
                    f"<0x41>, though marked as one"
                )
        elif kind in _WITHOUT_TEXT:
            piece = None
        else:
            raise VocabError(f"{where}: token {token_id}: there is no token type {kind}; the file is damaged")
        table.pieces[token_id] = piece
        if kind == _USER_DEFINED:
            table.added.setdefault(raw.decode("utf-8", "replace"), token_id)
        if kind == _CONTROL:
            table.special.setdefault(raw.decode("utf-8", "replace"), token_id)
    for name in _EOS_KEYS:
        if _PREFIX + name in found:
            token_id = _checked(found, name, int, where)
            if not 0 <= token_id < len(tokens):
                raise VocabError(
                    f"{where}: key '{_PREFIX}{name}': {token_id} is no id of a vocabulary of {len(tokens)}; the "
                    f"file is damaged"
                )
            table.eos.append(token_id)
    return table


def _checked(found: dict[str, Any], name: str, kind: type, where: str) -> Any:
    value = found.get(_PREFIX + name)
    if not isinstance(value, kind) or isinstance(value, bool):
        problem = (
            "is missing" if value is None else f"is a {type(value).__name__}, expected a {kind.__name__}"
        )
        raise VocabError(
            f"{where}: key '{_PREFIX}{name}' {problem}; pass a GGUF file that holds a whole vocabulary"
        )
    return value
