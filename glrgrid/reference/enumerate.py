"""Languages by brute force: the ground truth that masks are held against on small finite grammars."""

from __future__ import annotations

from collections.abc import Iterable

from glrgrid.reference.oracle import Oracle

__all__ = ["language", "prefixes", "texts_over"]


def texts_over(alphabet: bytes, max_length: int, without: bytes | None = None) -> list[bytes]:
    """Return every text of up to ``max_length`` bytes over ``alphabet`` that does not contain ``without``."""
    texts = last = [b""]
    for _ in range(max_length):
        longer = (text + bytes([byte]) for text in last for byte in alphabet)
        last = [text for text in longer if without is None or not text.endswith(without)]
        texts = texts + last
    return texts


def language(oracle: Oracle, texts: Iterable[bytes]) -> set[bytes]:
    """Return the texts that :meth:`Oracle.accepts` accepts."""
    return {text for text in texts if oracle.accepts(text)}


def prefixes(texts: Iterable[bytes]) -> set[bytes]:
    """Return every prefix of the texts, themselves included."""
    return {text[:n] for text in texts for n in range(len(text) + 1)}
