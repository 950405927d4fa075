"""How the text of a token stands for bytes.

Tokenizers write tokens in one of two ways. *Byte-level* ones (GPT-2, Llama 3, Qwen) write each byte as one
character of an alphabet of 256. *Metaspace* ones (SentencePiece, Llama 2, Gemma) write text, with U+2581
(``▁``) for a space, and ``<0x41>`` for a byte that no other token has."""

from __future__ import annotations

import codecs
import re

__all__ = ["METASPACE", "byte_level", "byte_token", "metaspace"]

METASPACE = "\u2581"

_BYTE_TOKEN = re.compile("<0x([0-9A-Fa-f]{2})>")


def _byte_alphabet() -> str:
    """GPT-2's alphabet: character ``b`` of the string stands for byte ``b``.

    Printable Latin-1 characters stand for themselves; the other 68 bytes take the characters from U+0100 on,
    in order.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    stand_ins = iter(range(0x100, 0x200))
    return "".join(chr(byte if byte in printable else next(stand_ins)) for byte in range(256))


_TO_BYTE = codecs.charmap_build(_byte_alphabet())


def byte_level(text: str) -> bytes:
    """The bytes that the characters stand for, or the UTF-8 of the whole text if one is outside of the
    alphabet.

    The exception is what ``tokenizers`` decodes such tokens to. Raises UnicodeEncodeError for a lone
    surrogate."""
    try:
        return codecs.charmap_encode(text, "strict", _TO_BYTE)[0]
    except UnicodeEncodeError:
        return text.encode()


def metaspace(text: str, space: str = METASPACE) -> bytes:
    """The UTF-8 of the text, spaces restored. Raises UnicodeEncodeError for a lone surrogate."""
    return text.replace(space, " ").encode()


def byte_token(text: str) -> bytes | None:
    """The byte that ``<0x41>`` and the like stand for, None for other text."""
    match = _BYTE_TOKEN.fullmatch(text)
    return bytes((int(match[1], 16),)) if match else None
