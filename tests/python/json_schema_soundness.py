"""Holds real schemas against ``jsonschema``: random walks under the mask, and mutations of the instances.

``python tests/python/json_schema_soundness.py FILE [--vocab TOKENIZER]`` takes a file of cases like ``maskbench.py``.
Every text that a walk ends with has to parse and validate, every mutation has to be accepted exactly if it validates.
Seeds are the ids of the cases and ``--seed``.
"""

from __future__ import annotations

import argparse
import decimal
import json
import random
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from json_schema_support import Judge, compile_schema, mutations
from maskbench import Runner, read
from test_json_schema_exactness import check_values, check_walks

import glrgrid as gg

WALKS, MUTATIONS = 6, 60


def soundness(case: dict[str, Any], vocab: gg.Vocab, seed: int = 0) -> dict[str, Any]:
    """Walk and mutate; the outcome is ``pass``, ``wrong``, or why there is none."""
    result: dict[str, Any] = {"id": case["id"], "outcome": "pass", "tests": len(case["tests"])}
    schema, rng = case["schema"], random.Random(f"{case['id']} {seed}")
    try:
        judge = Judge(schema)
        for test in case["tests"]:
            judge.accepts(json.dumps(test["data"]))
    except Exception as error:  # a schema that is none, or that looks elsewhere
        return {**result, "outcome": "no judge", "why": repr(error)[:200]}
    try:
        compiled = compile_schema(schema, vocab)
    except (gg.SchemaError, gg.BudgetExceeded) as error:
        return {**result, "outcome": "refused", "why": str(error)}
    counts: Counter[str] = Counter()
    try:
        check_walks(schema, compiled, vocab, rng, counts, WALKS)
        values = [m for test in case["tests"] if test["valid"] for m in mutations(test["data"], rng)]
        check_values(schema, compiled, rng.sample(values, min(len(values), MUTATIONS)), counts)
    except decimal.InvalidOperation as error:  # remainders of numbers with thousands of digits
        return {**result, "outcome": "no judge", "why": repr(error)}
    except AssertionError as error:
        return {**result, "outcome": "wrong", "why": str(error)[-1500:]}
    return {**result, "counts": counts}


def main() -> None:
    """Run a sample of a file; print what is wrong, then counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--vocab", help="tokenizer file; one token for each byte if left out")
    parser.add_argument("--sample", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    cases = list(read(options.file))
    cases = random.Random(options.seed).sample(cases, min(options.sample, len(cases)))
    runner = Runner(partial(soundness, seed=options.seed), options.vocab)
    outcomes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for case in cases:
        result = runner.run(case)
        outcomes[result["outcome"]] += 1
        counts.update(result.get("counts", {}))
        if result["outcome"] == "wrong":
            print(result["id"], result["why"], flush=True)
    runner.close()
    print(f"seed {options.seed}: {outcomes} {counts}", file=sys.stderr)
    sys.exit(bool(outcomes["wrong"]))


if __name__ == "__main__":
    main()
