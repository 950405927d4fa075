"""Whether a step costs more the longer the output is: mask + commit over position, at several nestings.

A text of the calculator grammar is opened with 0, 4, 16 or 64 parentheses and goes on with sums of names and
small calls, inside of them, for 16,000 one-byte tokens. The per-step minima over the passes are fitted by a
line; a slope of less than 1e-4 µs per position is the aim. Its confidence interval comes from means over
blocks of 100 positions, so that neither the pattern of the text nor single interruptions count as noise that
they are not.

    python bench/position_slope.py [--passes 5] [--tokens 16000] [--json]
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import time
from typing import Any

import cli
import numpy as np
import report
from corpus import note

import glrgrid
from glrgrid import grammars

NESTINGS = (0, 4, 16, 64)
AIM = 1e-4
"""Microseconds per position."""
BLOCK = 100
"""Positions in a block; whole repetitions of ``PIECE`` fit in."""
PIECE = b"a+f(b,2)*(c-1)+22^d-"
WARM = 200
"""Positions left out at the start, where parentheses are opened and rows computed for the first time."""
T_95 = 1.98
"""Student's t for 95 % at some 150 degrees of freedom."""


def main() -> None:
    options = _options()
    vocab = glrgrid.Vocab([*(bytes([byte]) for byte in range(256)), b"<end>"], [256])
    compiled = glrgrid.compile(glrgrid.Grammar.from_lark(grammars.load("calc")), vocab)
    machine = report.machine()
    records: list[dict[str, Any]] = [
        {"bench": "position_slope", "quantity": "run", "time": int(time.time()), "machine": machine}
    ]
    for nesting in NESTINGS:
        note(f"nesting {nesting}, {options.passes} passes")
        text = text_of(nesting, options.tokens)
        minima = np.min([_pass(compiled, text) for _ in range(options.passes)], axis=0) / 1e3
        slope, half = fit(minima)
        records.append(
            {
                "bench": "position_slope",
                "nesting": nesting,
                "tokens": options.tokens,
                "passes": options.passes,
                "unit": "us per position",
                "slope": slope,
                "confidence_95": [slope - half, slope + half],
                "aim": AIM,
                "met": slope + half < AIM,
                "step_us": report.distribution(minima * 1e3),
            }
        )
    options.out.mkdir(parents=True, exist_ok=True)
    report.write_jsonl(options.out / "position_slope.jsonl", records)
    if options.json:
        print("\n".join(map(json.dumps, records)))
        return
    print(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:.1f}; {options.passes} passes")
    print(
        f"calc, {options.tokens:,} one-byte tokens; slope of mask + commit, µs per position, 95 % interval\n"
    )
    for record in records[1:]:
        low, high = record["confidence_95"]
        print(
            f"  nesting {record['nesting']:>2}   {record['slope']:+.2e}   [{low:+.2e}, {high:+.2e}]   "
            f"p50 {record['step_us']['p50']:.2f} µs   (aim below {AIM:.0e}: {'met' if record['met'] else 'missed'})"
        )


def text_of(nesting: int, tokens: int) -> bytes:
    body = PIECE * (tokens // len(PIECE) + 1)
    return (b"(" * nesting + body)[:tokens]


def fit(minima: np.ndarray) -> tuple[float, float]:
    """Least-squares slope over block means, and half of its 95 % interval."""
    blocks = minima[WARM : WARM + (len(minima) - WARM) // BLOCK * BLOCK].reshape(-1, BLOCK).mean(axis=1)
    at = (np.arange(len(blocks)) + 0.5) * BLOCK
    spread = float(((at - at.mean()) ** 2).sum())
    slope = float(((at - at.mean()) * (blocks - blocks.mean())).sum()) / spread
    residuals = blocks - blocks.mean() - slope * (at - at.mean())
    return slope, T_95 * math.sqrt(float((residuals**2).sum()) / (len(blocks) - 2) / spread)


def _pass(compiled: Any, text: bytes) -> np.ndarray:
    """Nanoseconds of each step of one matcher."""
    clock = time.perf_counter_ns
    bitmask = glrgrid.allocate_token_bitmask(1, compiled.vocab_size)
    matcher = glrgrid.Matcher(compiled)
    fill, accept = matcher.fill_next_token_bitmask, matcher.accept_token
    times = []
    gc.collect()
    gc.disable()
    try:
        for id_ in text:
            before = clock()
            fill(bitmask)
            taken = accept(id_)
            times.append(clock() - before)
            if not taken:
                raise RuntimeError(f"token {id_} refused at position {len(times) - 1}")
    finally:
        gc.enable()
    return np.array(times)


def _options() -> argparse.Namespace:
    parser = cli.parser(__doc__)
    parser.add_argument("--passes", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--tokens", type=int, default=16_000, help="default: %(default)s")
    options = cli.parse(parser)
    if options.passes < 1 or options.tokens < 10 * BLOCK:
        parser.error(f"passes start at 1 and tokens at {10 * BLOCK}")
    return options


if __name__ == "__main__":
    main()
