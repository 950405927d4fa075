"""Everything the demo does, without printing: compile, save, load, decode, judge."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from glrgrid import Grammar, Vocab, compile, grammars, load
from glrgrid.data import default_tokenizer_path

from .corpus import statements
from .decode import Decoded, Timing, decode, decode_freely, replay
from .judges import LarkJudge, parses_with_sqlglot
from .ngram import NgramModel

__all__ = ["Judged", "Result", "run"]

GRAMMAR = "sql_core"
CORPUS = 500
"""Statements that the model learns from."""
PASSES = 5
"""Times the steps are taken again for the second row of times."""


@dataclass(frozen=True)
class Judged:
    """An output and what the two judges said of it; an unfinished one is not valid, whatever they said."""

    output: Decoded
    lark: bool
    sqlglot: bool

    @property
    def valid(self) -> bool:
        """Finished, and accepted by both."""
        return self.output.finished and self.lark and self.sqlglot


@dataclass(frozen=True)
class Result:
    """What happened."""

    milliseconds: dict[str, float]
    artifact_bytes: int
    masked: list[Judged]
    free: list[Judged]
    first_pass: Timing
    best_pass: Timing


def run(count: int, seed: int) -> Result:
    """Decode ``count`` statements with masks and as many without; the same seed gives the same ones."""
    milliseconds: dict[str, float] = {}
    last = time.perf_counter()

    def lap(what: str) -> None:
        nonlocal last
        now = time.perf_counter()
        milliseconds[what] = (now - last) * 1e3
        last = now

    text = grammars.load(GRAMMAR)
    grammar = Grammar.from_lark(text)
    lap("read the grammar")
    vocab = Vocab.default()
    lap("read the vocabulary")
    built = compile(grammar, vocab)
    lap("compile, vocabulary prepared on the way")
    milliseconds["  of it, the stages of the compiler"] = sum(built.stats["milliseconds"].values())
    with tempfile.TemporaryDirectory() as folder:
        artifact = Path(folder) / f"{GRAMMAR}.glrgrid"
        built.save(artifact)
        lap("save")
        compiled = load(artifact, vocab)
        lap("load")
        artifact_bytes = artifact.stat().st_size

    tokenizer = Tokenizer.from_file(str(default_tokenizer_path()))
    encoded = tokenizer.encode_batch(statements(CORPUS, seed))
    model = NgramModel((text.ids for text in encoded), vocab.size, vocab.eos_ids[0])
    lap("train the model")

    timing = Timing()
    random = np.random.default_rng(seed)
    masked = [decode(compiled, vocab, model, random, timing) for _ in range(count)]
    lap("decode with masks")
    free = [decode_freely(vocab, model, random) for _ in range(count)]
    lap("decode without masks")
    best = replay(compiled, vocab, masked, PASSES)

    lark = LarkJudge(text)

    def judge(output: Decoded) -> Judged:
        return Judged(output, lark.accepts(output.text), parses_with_sqlglot(output.text))

    return Result(milliseconds, artifact_bytes, [*map(judge, masked)], [*map(judge, free)], timing, best)
