"""MaskBench schemas under ``GLRGRID_DATA``: a seeded slice; ``make maskbench`` runs all of them."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from maskbench import Runner, outcome, read, read_outcomes

DATA = os.environ.get("GLRGRID_DATA")
EXPECTED = read_outcomes(Path(__file__).parents[1] / "corpus" / "maskbench.txt")
SLICE, SEED, LARGEST = 60, 4, 20_000
"""How many schemas the slice has, of up to so many characters."""

needs_data = pytest.mark.skipif(DATA is None, reason="GLRGRID_DATA is not set")


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[[dict[str, Any]], dict[str, Any]]]:
    """Runs a case in a process of its own."""
    runner = Runner(outcome)
    yield runner.run
    runner.close()


def cases() -> list[dict[str, Any]]:
    """All schemas there are."""
    assert DATA is not None
    return list(read(Path(DATA, "maskbench", "dev.jsonl.gz")))


def test_outcomes_are_known_and_none_is_wrong() -> None:
    assert len(EXPECTED) == 2000
    assert set(EXPECTED.values()) == {"pass", "refused"}
    assert sum(outcome == "pass" for outcome in EXPECTED.values()) >= 0.97 * len(EXPECTED)


@needs_data
def test_a_slice_has_its_expected_outcomes(run: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    small = [case for case in cases() if len(str(case["schema"])) <= LARGEST]
    for case in random.Random(SEED).sample(small, SLICE):
        result = run(case)
        assert result["outcome"] == EXPECTED[case["id"]], result
