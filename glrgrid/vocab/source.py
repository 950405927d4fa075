"""Reading files and JSON documents with errors that name the place.

Everything that is read here was written by others: sizes are capped before memory is taken, and whatever is
wrong ends in a :class:`~glrgrid.errors.VocabError`."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import VocabError

__all__ = ["ADVICE", "as_text", "expect", "load_json", "parse_json", "read_bytes", "read_head", "segment"]

ADVICE = "or pass the bytes of each id to Vocab.from_bytes"

MAX_FILE_BYTES = 1 << 27
"""Largest file that is read as a whole; real ones have some tens of megabytes."""


def read_head(file: Path, count: int) -> bytes:
    """The first bytes of a file."""
    try:
        if file.exists() and not file.is_file():
            raise VocabError(f"{file}: not a regular file; pass the file of a tokenizer")
        with file.open("rb") as stream:
            return stream.read(count)
    except OSError as error:
        raise unreadable(file, error) from error


def read_bytes(file: Path) -> bytes:
    """A whole file."""
    try:
        with file.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > MAX_FILE_BYTES:
                raise VocabError(
                    f"{file}: has {size:,} bytes, which no tokenizer has; up to {MAX_FILE_BYTES:,} are read"
                )
            return stream.read(size)
    except OSError as error:
        raise unreadable(file, error) from error


def unreadable(file: Path, error: OSError) -> VocabError:
    return VocabError(
        f"{file}: cannot be read ({error.strerror or error}); pass a tokenizer.json, or a tokenizer's file of "
        f"another format"
    )


def load_json(file: Path) -> Any:
    """The JSON document in a file."""
    return parse_json(read_bytes(file), str(file))


def parse_json(raw: bytes | str, where: str) -> Any:
    """A JSON document in which no object has a key twice."""
    try:
        with _without_collection():
            return json.loads(raw, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise VocabError(
            f"{where}: not a complete JSON document ({error}); pass an undamaged file, {ADVICE}"
        ) from error


@contextmanager
def _without_collection() -> Iterator[None]:
    """No garbage collection: looking through a tokenizer's many lists again and again takes half of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"an object has the key {twice!r} twice")
    return made


def expect(value: Any, kind: type, where: str, pointer: str, wanted: str) -> Any:
    """``value``, if it is a ``kind``."""
    if not isinstance(value, kind):
        found = "nothing" if value is None else type(value).__name__
        raise VocabError(
            f"{where}: {pointer or 'the root'}: expected {wanted}, found {found}; pass a complete file"
        )
    return value


def as_text(raw: bytes, where: str, place: str) -> str:
    """Bytes as UTF-8 text."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise VocabError(
            f"{where}: {place}: byte {error.start} of the text is not valid UTF-8; the file is damaged"
        ) from error


def segment(token: str) -> str:
    """A token as a segment of a JSON pointer, printable."""
    return token.replace("~", "~0").replace("/", "~1").encode("ascii", "backslashreplace").decode()
