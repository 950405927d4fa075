"""The engine's masks against the executable specification, on random grammars.

Each case has a seed of its own and is walked in every way there is to serve a grammar (``walks.variants``). A run is
spread over processes; to repeat one case alone: ``python tests/python/test_exactness.py contextual 20260``. Kinds of
cases are the two lexer modes, grammars such as those of JSON Schema, and repeats that are counted.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from itertools import count, islice

import pytest
from hypothesis import HealthCheck, given, settings
from strategies import FAMILIES, Case, cases, random_case
from walks import Lanes, Walks, compile_case, walk

from glrgrid.errors import BudgetExceeded
from glrgrid.reference.parser import LrParser

BATCH = 20
SEED = 20260
WALKS = 9
"""Per case, of which one is long."""
WIDE = 0.05
"""Share of cases with a wide vocabulary."""
FLOORS = {
    "walks": 5_000,
    "positions": 60_000,
    "live watcher": 1_000,
    "three terminals": 1_000,
    "eight terminals": 20,
    "ends in ignored": 5_000,
    "ignored split": 2_000,
    "fallback": 500,
    "reject": 500,
    "fork": 1_000,
    "ambiguous": 2_000,
    "stack over 16": 2_000,
    "stack over 64": 20,
    "separability reports": 60,
    "clean and complete": 100,
    "refusals": 5_000,
    "rollbacks": 2_000,
    "dense rows": 4,
    "cycle": 20,
    "nullable": 60,
    **{f"family {name}": 20 for name in FAMILIES},
}
"""What a run in one lexer mode must at least have met."""
OF_KIND = {
    "basic": {**FLOORS, "hidden left recursion": 8, "over 64 verdicts": 4},
    "contextual": {**FLOORS, "several groups": 200, "group change inside a token": 2_000},
    "json": {
        "walks": 800,
        "positions": 5_000,
        "rows share a lexer": 50,
        "several groups": 20,
        "group change inside a token": 200,
        "three terminals": 100,
    },
    "count": {"walks": 480, "positions": 5_000, "counters": 20, "live watcher": 5, "several groups": 2},
}
CASES = {"basic": 600, "contextual": 600, "json": 100, "count": 70}


def run(case: Case, rng: random.Random, walks: Walks, number: int) -> None:
    subject = compile_case(case, rng, wide=rng.random() < WIDE)
    counts = walks.counts
    reports = case.oracle.separability()
    counts["separability reports"] += bool(reports)
    counts["hidden left recursion"] += case.oracle.cfg.has_hidden_left_recursion()
    counts["cycle"] += case.oracle.cfg.has_cycle()
    counts["nullable"] += len(case.oracle.cfg.nullable) > 1
    for name in case.family.split("|"):
        counts[f"family {name}"] += 1
    stats = subject.stats()
    counts["counters"] += stats["far_lexer_states"] > 0
    counts["several groups"] += stats["lexer_groups"] > 1
    counts["rows share a lexer"] += stats.get("lexer_rows", 0) > stats["lexer_groups"]
    counts["over 64 verdicts"] += stats["verdict_classes"] > 64
    counts["dense rows"] += stats["dense_rows"] > 0
    clean = not reports and is_byte_complete(case)
    counts["clean and complete"] += clean
    before = counts["dead ends"]
    lanes = Lanes(subject)
    for i in range(number):
        if rng.random() < 0.5:
            lanes = Lanes(subject)
        lanes.restart()
        # Earley's item sets are compared to the bottom, which takes long where they are deep.
        if i == 0 and isinstance(case.oracle.parser, LrParser):
            walk(subject, lanes, rng, walks, rng.choice(case.long_texts), 100)
            continue
        follow = rng.choice(case.texts) if case.texts and rng.random() < 0.6 else None
        walk(subject, lanes, rng, walks, follow, rng.randint(3, 14))
    counts["dead ends where clean"] += clean and counts["dead ends"] - before


def is_byte_complete(case: Case) -> bool:
    """Whether every byte that a lexeme may have is a token."""
    rows = (row for dfa in case.oracle.lexer.dfas for row in dfa.next)
    needed = {byte for row in rows for byte, state in enumerate(row) if state is not None}
    return needed <= {token[0] for token in case.tokens if token and len(token) == 1}


def batch(kind: str, seeds: range) -> Counter[str]:
    """Cases by seed."""
    walks = Walks()
    options = {"family": kind} if kind in ("json", "count") else {"lexer": kind}
    for seed in seeds:
        rng = random.Random(f"{kind} {seed}")
        try:
            run(random_case(rng, **options), rng, walks, WALKS)
        except BudgetExceeded:
            # Of new grammars, one in a hundred thousand multiplies its lexer's states beyond what is allowed.
            if "GLRGRID_FUZZ_SECONDS" not in os.environ:
                raise
            walks.counts["too large"] += 1
        except AssertionError as error:
            raise AssertionError(f"case {kind} {seed}: {error}") from None
    return walks.counts


def batches(kind: str) -> Counter[str]:
    """All cases of a run: a seeded slice, or new ones for ``GLRGRID_FUZZ_SECONDS`` (see ``make fuzz``)."""
    seconds = float(os.environ.get("GLRGRID_FUZZ_SECONDS", "0"))
    times = int(os.environ.get("GLRGRID_FUZZ_TIMES", "1"))
    until = time.monotonic() + seconds
    first = random.randrange(2**40) if seconds else SEED
    starts = count(first, BATCH) if seconds else iter(range(first, first + times * CASES[kind], BATCH))
    workers = int(os.environ.get("GLRGRID_FUZZ_WORKERS", os.cpu_count() or 1))
    counts: Counter[str] = Counter()
    # The native module has threads, so workers cannot be forked.
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(batch, kind, range(n, n + BATCH)) for n in islice(starts, 2 * workers)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                counts.update(future.result())
                start = next(starts, None)
                if start is not None and (not seconds or time.monotonic() < until):
                    running.add(pool.submit(batch, kind, range(start, start + BATCH)))
    return counts


@pytest.mark.parametrize("kind", OF_KIND)
def test_masks_equal_the_reference(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    counts = batches(kind)
    with capsys.disabled():
        print(f"\n{kind}: {counts['positions']} positions equal, met: {dict(sorted(counts.items()))}")
    times = int(os.environ.get("GLRGRID_FUZZ_TIMES", "1"))
    if "GLRGRID_FUZZ_SECONDS" not in os.environ:
        Walks(counts).check_floors({name: n * times for name, n in OF_KIND[kind].items()})
    assert not counts["dead ends where clean"]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_masks_equal_the_reference_shrinking(case: Case) -> None:
    run(case, random.Random(1), Walks(), 3)


if __name__ == "__main__":
    seed = int(sys.argv[2])
    print(dict(batch(sys.argv[1], range(seed, seed + 1))))
