"""Batches of masks: ``fill_bitmask_batch`` on all cores, beside a call per row and the bare copy of the rows.

Every matcher stands at another position of an SQL statement, and all rows have been filled before (warm). The
copy, of as many bytes from one numpy array to another on one core, is what memory allows. 512 rows are to take
at most 500 µs on two cores.

Texts and vocabulary: ``corpus.py``. To have the real ones, set ``GLRGRID_DATA``.

    python bench/batch.py [--rounds 500] [--json]
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import time
from collections.abc import Callable
from typing import Any

import cli
import numpy as np
import report
from corpus import Corpus, note, read_sql

import glrgrid
from glrgrid import grammars

GRAMMAR = "sql_core"
ROWS = (512, 64, 1)
AIM = 500
"""Microseconds for the most rows, on two cores."""


def main() -> None:
    options = _options()
    corpus = read_sql()
    compiled = glrgrid.compile(glrgrid.Grammar.from_lark(grammars.load(GRAMMAR)), corpus.vocab)
    machine = report.machine()
    found: dict[int, dict[str, np.ndarray]] = {}
    matchers = mid_statement(compiled, corpus, max(ROWS))
    for rows in ROWS:
        note(f"time: {rows} rows")
        found[rows] = measure(matchers[:rows], corpus.vocab.size, options.rounds)

    records: list[dict[str, Any]] = [
        {"bench": "batch", "quantity": "run", "time": int(time.time()), "machine": machine}
    ]
    for rows, ways in found.items():
        for way, nanoseconds in ways.items():
            figures = {"min": float(nanoseconds.min()) / 1e3, **report.distribution(nanoseconds)}
            records.append({"bench": "batch", "rows": rows, "way": way, "unit": "us", **figures})
    options.out.mkdir(parents=True, exist_ok=True)
    report.write_jsonl(options.out / "batch.jsonl", records)
    if options.json:
        print("\n".join(map(json.dumps, records)))
        return
    sections = {
        f"{rows} rows, µs": [
            report.Row(
                point,
                {record["way"]: record[point] for record in records if record.get("rows") == rows},
                compared=False,
            )
            for point in ("min", "p50", "p99")
        ]
        for rows in ROWS
    }
    print(
        f"{GRAMMAR}: {corpus.source}; {corpus.vocab.size:,} ids; {options.rounds} rounds\n"
        f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:.1f}\n\n"
        + report.table(list(found[1]), [], sections)
    )
    slowest = float(np.median(found[max(ROWS)]["batch"])) / 1e3
    print(f"\n{max(ROWS)} rows, p50: {slowest:.0f} µs (aim {AIM}: {'met' if slowest <= AIM else 'missed'})")


def mid_statement(compiled: glrgrid.CompiledGrammar, corpus: Corpus, count: int) -> list[glrgrid.Matcher]:
    """Matchers at random positions of random statements."""
    source = random.Random(0)
    matchers: list[glrgrid.Matcher] = []
    while len(matchers) < count:
        ids = source.choice(corpus.texts)
        matcher = glrgrid.Matcher(compiled)
        if all(matcher.accept_token(id_) for id_ in ids[: source.randrange(len(ids))]):
            matchers.append(matcher)
    return matchers


def measure(matchers: list[glrgrid.Matcher], size: int, rounds: int) -> dict[str, np.ndarray]:
    """Nanoseconds of each round, by way. Ways take turns; the first round of each is left out."""
    bitmask = glrgrid.allocate_token_bitmask(len(matchers), size)
    other = np.ones_like(bitmask)

    def batch() -> None:
        glrgrid.fill_bitmask_batch(matchers, bitmask)

    def one_by_one() -> None:
        for row, matcher in enumerate(matchers):
            matcher.fill_next_token_bitmask(bitmask, row)

    def copy() -> None:
        np.copyto(bitmask, other)

    one_by_one()
    expected = bitmask.copy()
    copy()
    batch()
    if not np.array_equal(bitmask, expected):
        raise SystemExit("a batch differs from its rows filled one by one")
    ways: dict[str, Callable[[], None]] = {"batch": batch, "one by one": one_by_one, "copy": copy}
    times: dict[str, list[int]] = {way: [] for way in ways}
    clock = time.perf_counter_ns
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        for way, run in ways.items():
            start = clock()
            run()
            times[way].append(clock() - start)
    gc.enable()
    return {way: np.array(series[1:]) for way, series in times.items()}


def _options() -> argparse.Namespace:
    parser = cli.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=500, help="default: %(default)s")
    options = cli.parse(parser)
    if options.rounds < 2:
        parser.error("rounds start at 2")
    return options


if __name__ == "__main__":
    main()
