"""Languages by brute force: the ground truth that masks are held against on small finite grammars."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from glrgrid.reference.oracle import Oracle

__all__ = ["language", "prefixes"]


def language(oracle: Oracle, alphabet: bytes, max_length: int) -> set[bytes]:
    """Return every text of up to ``max_length`` bytes over ``alphabet`` that :meth:`Oracle.accepts` accepts.

    Cost: ``len(alphabet) ** max_length`` trials.
    """
    texts = (bytes(text) for n in range(max_length + 1) for text in product(alphabet, repeat=n))
    return {text for text in texts if oracle.accepts(text)}


def prefixes(texts: Iterable[bytes]) -> set[bytes]:
    """Return every prefix of the texts, themselves included."""
    return {text[:n] for text in texts for n in range(len(text) + 1)}
