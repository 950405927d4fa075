"""A model of token ids that counts short contexts, in place of a language model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["NgramModel"]

Logits = npt.NDArray[np.float32]

WEIGHTS = (0.001, 0.02, 0.1, 0.88)
"""Share of the probability that goes to contexts of 0, 1, 2 and 3 tokens."""

UNSEEN = 1e-5
"""Probability shared by all ids, so that a mask never leaves nothing to choose from."""


class NgramModel:
    """Interpolated n-grams of up to four tokens.

    Parameters
    ----------
    sequences : iterable of sequences of int
        Token ids of each text, the end id left out.
    size : int
        Width of the logits.
    end_id : int
        Ends every sequence.
    """

    def __init__(self, sequences: Iterable[Sequence[int]], size: int, end_id: int) -> None:
        self.end_id = end_id
        counts: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        for sequence in sequences:
            ids = [*self._padding, *sequence, end_id]
            for at in range(len(self._padding), len(ids)):
                for order in range(len(WEIGHTS)):
                    counts[tuple(ids[at - order : at])][ids[at]] += 1
        self._shares = {
            context: (np.array(list(seen)), np.array(list(seen.values())) / seen.total())
            for context, seen in counts.items()
        }
        self._floor = np.full(size, UNSEEN / size)

    @property
    def _padding(self) -> list[int]:
        return [self.end_id] * (len(WEIGHTS) - 1)

    def logits(self, ids: Sequence[int]) -> Logits:
        """Log probabilities of what follows ``ids``, shape ``(size,)`` float32."""
        context = [*self._padding, *ids[-len(self._padding) :]]
        probabilities = self._floor.copy()
        for order, weight in enumerate(WEIGHTS):
            found = self._shares.get(tuple(context[len(context) - order :]))
            if found is not None:
                probabilities[found[0]] += weight * found[1]
        logits: Logits = np.log(probabilities).astype(np.float32)
        return logits
