"""Masks and commits where the text is ambiguous: glrgrid beside GLRMask.

The grammar is ``e: e e | e "+" e | ID``, of which a text of n names has exponentially many trees. Every step
fills the mask and accepts the next token; reported is the greatest of the per-step minima over the passes,
and how it grows with the length of the text. For glrgrid there is also ``s: s s | "a" |``, byte by byte.

Method: as in ``sql_tail.py``. Engines live in processes of their own on one core, take turns pass by pass,
and each pass loads the artifact afresh. GLRMask becomes slow with the length, so it runs the first lengths
only.

    python bench/ambiguity.py [--engines glrgrid,glrmask] [--passes 5] [--json]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cli
import numpy as np
import report
from corpus import note
from worker import Worker

from glrgrid import Vocab

ENGINES_MEASURED = ("glrgrid", "glrmask")
LENGTHS = (30, 60, 119, 240, 480)
AIMED, AIM = ("e + e e, mixed", 119), 1 / 50
"""In which case ours may be what share of GLRMask's greatest step."""
SLOW_FROM = 120
"""Length from which on only glrgrid is measured."""
SHAPES = {"e + e e, mixed": 0.3, "e + e": 1.0, "e e": 0.0}
"""Probability of a "+" after a name."""
OURS = '%glrgrid {"lexer": "basic"}\n'
"""What other engines are not shown."""
EXPRESSION = OURS + 'start: e\ne: e e | e "+" e | ID\nID: /[a-z]/\n%ignore " "\n'
LETTERS = OURS + 'start: s\ns: s s | "a" |\n'
LETTER_COUNTS = (40, 80, 160, 320)

Case = tuple[str, int]
"""Shape and number of tokens."""


def expression(length: int, plus: float) -> bytes:
    """A text of so many one-byte tokens that ends in a name."""
    source = random.Random(length)
    text = "a"
    while len(text) < length:
        text += "a" if text[-1] == "+" or len(text) == length - 1 or source.random() >= plus else "+"
    return text.encode()


def main() -> None:
    options = _options()
    vocab = Vocab([*(bytes([byte]) for byte in range(256)), b"<end>"], [256])
    cases = {
        (shape, length): list(expression(length, plus))
        for shape, plus in SHAPES.items()
        for length in LENGTHS
    }
    letters = {("s: s s | a |", length): [ord("a")] * length for length in LETTER_COUNTS}
    core = {max(os.sched_getaffinity(0))}
    with tempfile.TemporaryDirectory() as folder:
        steps = measure(options.engines, EXPRESSION, vocab, cases, options.passes, core, Path(folder))
        ours = [engine for engine in options.engines if engine == "glrgrid"]
        for engine, found in measure(
            ours, LETTERS, vocab, letters, options.passes, core, Path(folder)
        ).items():
            steps[engine].update(found)

    machine = report.machine()
    records: list[dict[str, Any]] = [
        {"bench": "ambiguity", "quantity": "run", "time": int(time.time()), "machine": machine}
    ]
    for engine, found in steps.items():
        for (shape, length), minima in found.items():
            head = {"bench": "ambiguity", "engine": engine, "shape": shape, "tokens": length}
            records.append({**head, "unit": "us", "series": "minima", **report.distribution(minima)})
    options.out.mkdir(parents=True, exist_ok=True)
    report.write_jsonl(options.out / "ambiguity.jsonl", records)
    if options.json:
        print("\n".join(map(json.dumps, records)))
        return
    sections: dict[str, list[report.Row]] = {}
    for shape, length in [*cases, *letters]:
        values = {
            engine: found[shape, length].max() / 1e3 if (shape, length) in found else float("nan")
            for engine, found in steps.items()
        }
        aim = AIM if (shape, length) == AIMED else None
        sections.setdefault(f"{shape}: mask + commit, µs, greatest of the minima", []).append(
            report.Row(f"{length} tokens", values, aim)
        )
    print(
        f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:.1f}; {options.passes} passes\n\n"
        + report.table(
            options.engines, [engine for engine in options.engines if engine != "glrgrid"], sections
        )
    )


def measure(
    engines: Sequence[str],
    grammar: str,
    vocab: Vocab,
    cases: Mapping[Case, list[int]],
    passes: int,
    core: set[int],
    folder: Path,
) -> dict[str, dict[Case, np.ndarray]]:
    """Nanoseconds of each step, minima over the passes, by engine and case."""
    steps: dict[str, dict[Case, np.ndarray]] = {engine: {} for engine in engines}
    with contextlib.ExitStack() as stack:
        workers = {engine: stack.enter_context(Worker(engine, core)) for engine in engines}
        for engine, worker in workers.items():
            worker.call("prepare_vocab", vocab.tokens, vocab.eos_ids)
            worker.call("compile", grammar if engine == "glrgrid" else grammar.removeprefix(OURS), False)
            worker.call("save", str(folder / engine))
        for case, ids in cases.items():
            note(f"time: {case[0]}, {case[1]} tokens")
            able = [engine for engine in engines if engine == "glrgrid" or case[1] < SLOW_FROM]
            for engine in able:
                if (at := workers[engine].call("check", str(folder / engine), [ids]).refused[0]) is not None:
                    raise SystemExit(f"{engine} refuses {bytes(ids)!r} at step {at}")
            for _ in range(passes):
                for engine in able:
                    step = workers[engine].call("run", str(folder / engine), [ids]).fresh.step
                    steps[engine][case] = np.minimum(step, steps[engine].get(case, step))
    return steps


def _options() -> argparse.Namespace:
    parser = cli.parser(__doc__)
    cli.add_engines(parser, ENGINES_MEASURED, ENGINES_MEASURED)
    parser.add_argument("--passes", type=int, default=5, help="default: %(default)s")
    return cli.parse(parser)


if __name__ == "__main__":
    main()
