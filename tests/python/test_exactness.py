"""The engine's masks against the executable specification, on random grammars."""

from __future__ import annotations

import os
import random
import time

from hypothesis import HealthCheck, given, settings
from strategies import Case, cases, random_case
from walks import Walks, compile_case, walk

SEED = 20260
FLOORS = {
    "walks": 1000,
    "positions": 10_000,
    "live watcher": 50,
    "three terminals": 50,
    "ends in ignored": 50,
    "fallback": 20,
    "reject": 20,
    "fork": 20,
    "separability reports": 20,
    "refusals": 100,
    "rollbacks": 100,
}


def run(case: Case, rng: random.Random, walks: Walks, count: int) -> None:
    compiled, tokens, eos = compile_case(case, rng)
    reports = case.oracle.separability()
    walks.counts["separability reports"] += bool(reports)
    before = walks.counts["dead ends"]
    for _ in range(count):
        walk(case, compiled, tokens, eos, rng, walks)
    walks.counts["dead ends where clean"] += (not reports) and walks.counts["dead ends"] - before


def test_masks_equal_the_reference(capsys) -> None:
    """A seeded slice; with ``GLRGRID_FUZZ_SECONDS`` (see ``make fuzz``) new cases for that long."""
    seconds = float(os.environ.get("GLRGRID_FUZZ_SECONDS", "0"))
    until = time.monotonic() + seconds
    seed = random.randrange(2**32) if seconds else SEED
    rng = random.Random(seed)
    walks = Walks()
    while walks.counts["walks"] < 1500 or walks.counts["positions"] < 12_000 or time.monotonic() < until:
        try:
            run(random_case(rng, lexer="basic"), rng, walks, 6)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    with capsys.disabled():
        print(f"\n{dict(walks.counts)}")
    walks.check_floors(FLOORS)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases(lexer="basic"))
def test_masks_equal_the_reference_shrinking(case: Case) -> None:
    run(case, random.Random(1), Walks(), 3)
