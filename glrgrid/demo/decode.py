"""The decode loop: logits, mask, sample, commit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from glrgrid import (
    CompiledGrammar,
    InternalError,
    Matcher,
    Vocab,
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
)

from .ngram import Logits, NgramModel

__all__ = ["CAP", "LONG", "Decoded", "Timing", "decode", "decode_freely", "replay"]

TEMPERATURE = 0.7

LONG = 60
"""Tokens after which an output is cut back to where it was last complete."""

CAP = 120
"""Tokens after which an output that never was complete is started again."""

STARTS = 3
"""Starts after which an output is left unfinished."""


@dataclass
class Timing:
    """Nanoseconds of each call, in order."""

    mask: list[int] = field(default_factory=list)
    commit: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Decoded:
    """One output.

    Attributes
    ----------
    ids : list of int
        Its tokens, the end id left out.
    text : str
    finished : bool
        Whether it ended. One that did not is no valid output, whatever its text.
    cut : bool
        Whether it ended by being cut back.
    restarts : int
        How often it was started again.
    """

    ids: list[int]
    text: str
    finished: bool
    cut: bool = False
    restarts: int = 0


def decode(
    compiled: CompiledGrammar,
    vocab: Vocab,
    model: NgramModel,
    random: np.random.Generator,
    timing: Timing,
    last: Sequence[int] = (),
) -> Decoded:
    """Decode one output under masks. ``last``: the tokens, if any, with which every output of the grammar ends."""
    output = _start(compiled, vocab, model, random, timing, last)
    for restarts in range(1, STARTS):
        if not output.finished:
            output = replace(_start(compiled, vocab, model, random, timing, last), restarts=restarts)
    return output


def _start(
    compiled: CompiledGrammar,
    vocab: Vocab,
    model: NgramModel,
    random: np.random.Generator,
    timing: Timing,
    last: Sequence[int],
) -> Decoded:
    matcher = Matcher(compiled)
    bitmask = allocate_token_bitmask(1, vocab.size)
    clock = time.perf_counter_ns
    ids: list[int] = []
    complete_at: int | None = None
    while len(ids) < CAP:
        started = clock()
        matcher.fill_next_token_bitmask(bitmask)
        timing.mask.append(clock() - started)

        ending = [*last, model.end_id]
        if bitmask[0, ending[0] // 32] >> ending[0] % 32 & 1:
            complete_at = len(ids)
        if len(ids) >= LONG and complete_at is not None:
            matcher.rollback(len(ids) - complete_at)
            for token in ending:
                matcher.accept_token(token)
            kept = [*ids[:complete_at], *last]
            return Decoded(kept, _text(vocab, kept), matcher.is_terminated(), cut=True)

        logits = model.logits(ids)
        apply_token_bitmask_inplace(logits, bitmask[0])
        token = _sample(logits, random)
        started = clock()
        accepted = matcher.accept_token(token)
        timing.commit.append(clock() - started)
        if not accepted:
            raise InternalError(f"token {token} was in the mask but was not accepted")
        if matcher.is_terminated():
            return Decoded(ids, _text(vocab, ids), finished=True)
        ids.append(token)
    return Decoded(ids, _text(vocab, ids), finished=False)


def decode_freely(vocab: Vocab, model: NgramModel, random: np.random.Generator) -> Decoded:
    """Decode one output of the same model without masks."""
    ids: list[int] = []
    while len(ids) < CAP:
        token = _sample(model.logits(ids), random)
        if token == model.end_id:
            return Decoded(ids, _text(vocab, ids), finished=True)
        ids.append(token)
    return Decoded(ids, _text(vocab, ids), finished=False)


def replay(compiled: CompiledGrammar, vocab: Vocab, outputs: Sequence[Decoded], passes: int) -> Timing:
    """Take the same steps again; the least time of each over some passes."""
    bitmask = allocate_token_bitmask(1, vocab.size)
    clock = time.perf_counter_ns
    runs = []
    for _ in range(passes):
        timing = Timing()
        for output in outputs:
            matcher = Matcher(compiled)
            for token in output.ids:
                started = clock()
                matcher.fill_next_token_bitmask(bitmask)
                filled = clock()
                matcher.accept_token(token)
                timing.commit.append(clock() - filled)
                timing.mask.append(filled - started)
        runs.append(timing)
    best = Timing()
    best.mask = [min(times) for times in zip(*(run.mask for run in runs), strict=True)]
    best.commit = [min(times) for times in zip(*(run.commit for run in runs), strict=True)]
    return best


def _sample(logits: Logits, random: np.random.Generator) -> int:
    heaps = np.cumsum(np.exp((logits - logits.max()) / TEMPERATURE, dtype=np.float64))
    return int(np.searchsorted(heaps, random.random() * heaps[-1], side="right"))


def _text(vocab: Vocab, ids: Sequence[int]) -> str:
    return b"".join(vocab.token_bytes(token) or b"" for token in ids).decode("utf-8", "replace")
