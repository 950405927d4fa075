"""A sample of the MaskBench schemas under ``GLRGRID_DATA``; ``maskbench.py`` runs them all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from maskbench import byte_vocab, outcome, read, read_outcomes

DATA = os.environ.get("GLRGRID_DATA")
EXPECTED = read_outcomes(Path(__file__).parents[1] / "corpus" / "maskbench.txt")
EVERY = 50


def test_outcomes_are_known_and_none_is_wrong() -> None:
    assert len(EXPECTED) > 1000
    assert set(EXPECTED.values()) == {"pass", "refused"}
    assert sum(outcome == "pass" for outcome in EXPECTED.values()) >= 0.95 * len(EXPECTED)


@pytest.mark.skipif(DATA is None, reason="GLRGRID_DATA is not set")
def test_sample_has_its_expected_outcomes() -> None:
    assert DATA is not None
    vocab = byte_vocab()
    for i, case in enumerate(read(Path(DATA, "maskbench", "dev.jsonl.gz"))):
        if i % EVERY == 0 and case["id"] in EXPECTED:
            result = outcome(case, vocab, quick=True)
            assert result["outcome"] == EXPECTED[case["id"]], result
