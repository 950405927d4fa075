"""Tokenizers for :meth:`Matcher.forced_tokens`: whatever can encode text, as a function from bytes to ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from glrgrid.errors import StateError

__all__ = ["Encoder", "encoder"]

Encoder = Callable[[bytes], Sequence[int] | None]
"""Ids of a text in UTF-8, or None if the bytes are no text."""


def encoder(tokenizer: Any) -> Encoder:
    """Make an :data:`Encoder` of a tokenizer.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer, transformers tokenizer, or callable
        A callable takes text (str) and returns ids; ids that spell no text (such as one for the beginning of a
        sequence) may stand before the others.

    Raises
    ------
    StateError
        If it is none of these.
    """
    tokenizer = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if type(tokenizer).__module__.partition(".")[0] == "tokenizers" and hasattr(tokenizer, "encode"):

        def encode(text: str) -> Sequence[int]:
            ids: Sequence[int] = tokenizer.encode(text, add_special_tokens=False).ids
            return ids
    elif callable(tokenizer):
        encode = tokenizer
    else:
        raise StateError(
            f"cannot encode text with a {type(tokenizer).__name__}; pass a tokenizers.Tokenizer or a function from "
            f"str to token ids"
        )

    def encode_bytes(data: bytes) -> Sequence[int] | None:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None
        return encode(text)

    return encode_bytes
