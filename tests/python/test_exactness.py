"""The engine's masks against the executable specification, on random grammars."""

from __future__ import annotations

import os
import random
import time

import pytest
from hypothesis import HealthCheck, given, settings
from strategies import Case, cases, random_case
from walks import Walks, compile_case, walk

SEED = 20260
FLOORS = {
    "walks": 2500,
    "positions": 20_000,
    "live watcher": 100,
    "three terminals": 100,
    "ends in ignored": 100,
    "fallback": 40,
    "reject": 40,
    "fork": 40,
    "separability reports": 40,
    "refusals": 200,
    "rollbacks": 200,
}
"""What a run in one lexer mode must at least have met."""
JSON_FLOORS = {
    "walks": 500,
    "positions": 5000,
    "rows share a lexer": 50,
    "several groups": 20,
    "three terminals": 100,
}
"""The same on grammars such as those of JSON Schema."""


def run(case: Case, rng: random.Random, walks: Walks, count: int) -> None:
    compiled, tokens, eos = compile_case(case, rng)
    reports = case.oracle.separability()
    walks.counts["separability reports"] += bool(reports)
    walks.counts["several groups"] += (
        compiled.stats["lexer_groups"] > 1 if "lexer_groups" in compiled.stats else 0
    )
    walks.counts["rows share a lexer"] += compiled.stats.get("lexer_rows", 0) > compiled.stats.get(
        "lexer_groups", 0
    )
    before = walks.counts["dead ends"]
    for _ in range(count):
        walk(case, compiled, tokens, eos, rng, walks)
    walks.counts["dead ends where clean"] += (not reports) and walks.counts["dead ends"] - before


@pytest.mark.parametrize("kind", ["basic", "contextual", "json"])
def test_masks_equal_the_reference(kind: str, capsys) -> None:
    """A seeded slice; with ``GLRGRID_FUZZ_SECONDS`` (see ``make fuzz``) new cases for that long."""
    seconds = float(os.environ.get("GLRGRID_FUZZ_SECONDS", "0"))
    until = time.monotonic() + seconds
    seed = random.randrange(2**32) if seconds else SEED
    rng = random.Random(seed)
    walks = Walks()
    floors = {"basic": FLOORS, "contextual": {**FLOORS, "several groups": 100}, "json": JSON_FLOORS}[kind]
    options = {"family": "json"} if kind == "json" else {"lexer": kind}
    while (
        walks.counts["walks"] < floors["walks"]
        or walks.counts["positions"] < floors["positions"]
        or time.monotonic() < until
    ):
        try:
            run(random_case(rng, **options), rng, walks, 6)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    with capsys.disabled():
        print(f"\n{kind}: {walks.counts['positions']} positions equal, met: {dict(walks.counts)}")
    walks.check_floors(floors)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_masks_equal_the_reference_shrinking(case: Case) -> None:
    run(case, random.Random(1), Walks(), 3)
