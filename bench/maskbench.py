"""JSON Schema: correctness, time to first mask and the tail of decoding, glrgrid beside its peers.

Every engine is given the same schemas and the same instances, as tokens of the same vocabulary, schema by schema.

Method
    - An engine lives in a process of its own, pinned to one core. The driver waits for each call, so two never run
      at once; engines take turns in rotating order. A schema that takes an engine longer than ``--timeout`` ends its
      process, counts as refused, and a new process goes on with the next.
    - Time to first mask: from the schema's text to the mask of the empty output, once, as it comes. Preparing the
      vocabulary is not part of it; it includes compiling a trivial schema and is reported apart.
    - A step is what a serving loop does from Python: fill a preallocated int32 bitmask, then accept the next token.
      The first pass runs on the object that was just compiled; each further one takes fresh matchers of an object
      loaded from the artifact, or compiled anew by engines that have none. Reported are the first pass as it was, the
      second (for engines with artifacts: the first on a loaded object), and the minima of each step over all passes.
      The cost of the timing itself is reported and not subtracted.
    - Steps of the first pass in which the thread lost its core (involuntary context switches) are counted; they stay
      in the figures.
    - An engine *passes* a schema if it accepts every valid instance to the end, where the end is allowed, and no
      invalid one; it *refuses* it if it does not compile it; otherwise it is *wrong*. Texts are written with ", " and
      ": ", since GLRMask knows no other spelling. Keys may stand as they are or in the schema's order; either will do.
      Instances whose label ``jsonschema`` contradicts are left out.
    - Comparisons are over the schemas that all engines in the comparison pass.
    - GLRMask's AUTO does not say which strategy it took; that is told from the size of its artifact.

Schemas: MaskBench's under ``GLRGRID_DATA``; without it, those of the tests, for a smoke run.

    python -m bench maskbench [--sample 300] [--seed 1] [--engines glrgrid,glrgrid-lazy,llguidance] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import math
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cli
import numpy as np
import report
from corpus import encoder, note
from engines import SCHEMA_ENGINES
from worker import Schema, Worker

from glrgrid import Vocab
from glrgrid.data import default_tokenizer_path

TESTS = Path(__file__).parents[1] / "tests"
ENGINES = [engine.name for engine in SCHEMA_ENGINES]
DEFAULT = [name for name in ENGINES if name not in ("xgrammar", "outlines-core")]
"""What is measured unless asked for; the others need torch, and minutes."""
AIMS = {
    ("mask + commit, minima", "glrgrid", "glrmask-auto"): {
        "p50": 0.5,
        "p99": 0.5,
        "p99.9": 0.5,
        "p99.99": 0.5,
    },
    ("time to first mask", "glrgrid", "glrmask-auto"): {"p50": 1 / 7, "p99": 1 / 10},
    ("time to first mask", "glrgrid-lazy", "llguidance"): {"p50": 0.6, "p99": 0.6},
    ("mask + commit, first pass", "glrgrid-lazy", "llguidance"): {"p99": 0.25},
    ("artifact", "glrgrid", "glrmask-auto"): {"mean": 0.2},
}
"""What share of a peer's figure ours may be."""


@dataclass
class Case:
    """A schema with its instances as token ids, each in one or two spellings."""

    id: str
    schema: str
    valid: list[list[list[int]]]
    invalid: list[list[list[int]]]


@dataclass
class Corpus:
    """Cases, and the vocabulary whose ids they are."""

    source: str
    vocab: Vocab
    tokenizer: Path
    cases: list[Case]


@dataclass
class Measured:
    """All that was measured of one engine, by schema."""

    version: str = ""
    vocab_seconds: float = 0
    overhead: np.ndarray = field(default_factory=lambda: np.zeros(1))
    schemas: dict[str, Schema] = field(default_factory=dict)

    def with_outcome(self, outcome: str) -> list[str]:
        return [id_ for id_, schema in self.schemas.items() if outcome_of(schema) == outcome]

    def pooled(self, series: str, ids: Sequence[str]) -> np.ndarray:
        """All values of a series over some schemas, nanoseconds or bytes; NaN if there are none."""
        parts = [SERIES[series](self.schemas[id_]) for id_ in ids]
        values = np.concatenate([np.asarray(part, dtype=float) for part in parts]) if parts else np.zeros(0)
        return values if len(values) else np.array([math.nan])


SERIES: dict[str, Callable[[Schema], Any]] = {
    "time to first mask": lambda of: [of.first_mask],
    "load": lambda of: [min(load for load, _ in of.loads)] if of.loads and of.artifact_bytes else [],
    "load to first mask": lambda of: [of.loads[0][1]] if of.loads and of.artifact_bytes else [],
    "mask + commit, first pass": lambda of: of.first,
    "mask + commit, second pass": lambda of: of.second,
    "mask + commit, minima": lambda of: of.minima,
    "new matcher, minima": lambda of: of.new,
    "fork, minima": lambda of: of.fork,
    "artifact": lambda of: [of.artifact_bytes] if of.artifact_bytes else [],
    "memory of compiling": lambda of: [of.compile_bytes],
}
STEPS = [name for name in SERIES if name.startswith("mask")]
UNITS = {"artifact": ("KB", 1e3), "memory of compiling": ("MB", 1e6)}
"""Others are nanoseconds, shown in the unit given here or in µs."""
UNITS |= {name: ("ms", 1e6) for name in ("time to first mask", "load", "load to first mask")}


def outcome_of(schema: Schema) -> str:
    if schema.refused is not None:
        return "refused"
    return "wrong" if schema.valid_refused or schema.invalid_accepted else "passed"


def main() -> None:
    options = _options()
    corpus = read_cases(options.sample, options.seed)
    machine = report.machine()
    measured = measure(corpus, options)
    common = [
        case.id
        for case in corpus.cases
        if all(outcome_of(of.schemas[case.id]) == "passed" for of in measured.values())
    ]
    facts = {
        "source": corpus.source,
        "vocab_size": corpus.vocab.size,
        "schemas": len(corpus.cases),
        "schemas_all_pass": len(common),
        "steps_all_pass": sum(len(next(iter(measured.values())).schemas[id_].first) for id_ in common),
        "sample": options.sample,
        "seed": options.seed,
        "passes": options.passes,
        "machine": machine,
    }
    records = [{"bench": "maskbench", "quantity": "run", "time": int(time.time()), **facts}]
    records += list(_records(measured, common))
    options.out.mkdir(parents=True, exist_ok=True)
    report.write_jsonl(options.out / "maskbench.jsonl", records)
    text = to_markdown(facts, measured, common)
    (options.out / "maskbench.md").write_text(text, encoding="utf-8")
    if common:
        curves = {
            name: {series: of.pooled(series, common) for series in PLOTTED} for name, of in measured.items()
        }
        title = f"{len(common)} schemas, {facts['steps_all_pass']:,} steps, {corpus.vocab.size:,} ids"
        report.tail_plot(options.out / "maskbench.svg", title, PLOTTED, curves)
    if options.json:
        sys.stdout.writelines(json.dumps(record) + "\n" for record in records)
        return
    print(text)
    print(f"written to {options.out}: maskbench.jsonl, maskbench.md, maskbench.svg")


PLOTTED = {
    "time to first mask": ("ms", 1e6),
    "mask + commit, first pass": ("µs", 1e3),
    "mask + commit, minima": ("µs", 1e3),
}


def _options() -> argparse.Namespace:
    parser = cli.parser(__doc__)
    cli.add_engines(parser, ENGINES, DEFAULT)
    parser.add_argument("--sample", type=int, default=300, help="schemas (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: %(default)s)")
    parser.add_argument("--passes", type=int, default=5, help="over each schema (default: %(default)s)")
    parser.add_argument(
        "--timeout", type=float, default=60, help="seconds for a schema (default: %(default)s)"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=5,
        help="after which no further pass over a schema begins (default: %(default)s)",
    )
    parser.add_argument("--quick", action="store_true", help="smoke run: 12 schemas, 2 passes")
    options = cli.parse(parser)
    if options.quick:
        options.sample, options.passes = 12, 2
    return options


def read_cases(sample: int, seed: int) -> Corpus:
    """A sample of the schemas that have instances, each instance encoded."""
    if folder := os.environ.get("GLRGRID_DATA"):
        source, tokenizer = "MaskBench, Llama 3", Path(folder) / "vocabs" / "llama3.tokenizer.json"
        with gzip.open(Path(folder) / "maskbench" / "dev.jsonl.gz", "rt", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
    else:
        note(
            "GLRGRID_DATA is not set: the schemas of the tests and a bundled vocabulary, for a smoke run only"
        )
        source, tokenizer = "schemas of the tests, bundled vocabulary", default_tokenizer_path()
        lines = (TESTS / "corpus" / "json_schema.jsonl").read_text("utf-8").strip().split("\n")
        rows = [
            {
                "id": row["id"],
                "schema": row["schema"],
                "tests": [
                    {"valid": valid, "data": data}
                    for valid in (True, False)
                    for data in row.get("accept" if valid else "reject", [])
                ],
            }
            for row in map(json.loads, lines)
            if "accept" in row
        ]
    rows = [row for row in rows if any(test["valid"] for test in row["tests"])]
    rows = random.Random(seed).sample(rows, min(sample, len(rows)))
    vocab = Vocab.from_file(tokenizer)
    encode = encoder(tokenizer, vocab.tokens)
    return Corpus(source, vocab, tokenizer, [_case(row, encode) for row in rows])


def _case(row: Mapping[str, Any], encode: Callable[[str], list[int]]) -> Case:
    # The tests know the order of keys that grammars want, and how to ask jsonschema.
    sys.path[1:1] = [str(TESTS / "python")] * (str(TESTS / "python") not in sys.path)
    from json_schema_order import Reorderer
    from json_schema_support import Judge

    reorderer = Reorderer(row["schema"])
    case = Case(row["id"], json.dumps(row["schema"]), [], [])
    for test in row["tests"]:
        with contextlib.suppress(Exception):  # the judge's own troubles with odd schemas
            if Judge(row["schema"]).accepts(json.dumps(test["data"])) != test["valid"]:
                continue
        values = (test["data"], reorderer.reordered(test["data"], [row["schema"]]))
        texts = dict.fromkeys(json.dumps(value, ensure_ascii=False) for value in values)
        (case.valid if test["valid"] else case.invalid).append([encode(text) for text in texts])
    return case


def measure(corpus: Corpus, options: argparse.Namespace) -> dict[str, Measured]:
    """Run all engines over all cases, one at a time."""
    core = {max(os.sched_getaffinity(0))}
    measured = {engine: Measured() for engine in options.engines}
    with contextlib.ExitStack() as stack:
        start = {engine: _Starter(engine, core, corpus, measured[engine]) for engine in measured}
        for starter in start.values():
            stack.callback(starter.close)
        for number, case in enumerate(corpus.cases):
            note(f"schema {number + 1} of {len(corpus.cases)}: {case.id}")
            by = number % len(measured)
            for engine in [*measured][by:] + [*measured][:by]:
                arguments = (case.schema, case.valid, case.invalid, options.passes, options.seconds)
                try:
                    found = start[engine].worker().call("schema", *arguments, timeout=options.timeout)
                except (TimeoutError, RuntimeError) as error:
                    note(str(error))
                    start[engine].close()
                    found = Schema(refused=str(error)[:300])
                measured[engine].schemas[case.id] = found
        steps = sum(len(schema.first) for of in measured.values() for schema in of.schemas.values())
        for engine, of in measured.items():
            of.overhead = start[engine].worker().call("overhead", max(1, steps // len(measured)))
    return measured


class _Starter:
    """Keeps a worker with its vocabulary prepared."""

    def __init__(self, engine: str, core: set[int], corpus: Corpus, of: Measured) -> None:
        self.engine, self.core, self.corpus, self.of = engine, core, corpus, of
        self.running: Worker | None = None
        self.worker()

    def worker(self) -> Worker:
        if self.running is None:
            note(f"vocabulary: {self.engine}")
            self.running = Worker(self.engine, self.core)
            vocab = self.corpus.vocab
            seconds = self.running.call(
                "prepare_vocab", vocab.tokens, vocab.eos_ids, str(self.corpus.tokenizer)
            )
            self.of.vocab_seconds = min(seconds, self.of.vocab_seconds or seconds)
            self.of.version = self.running.call("version")
        return self.running

    def close(self) -> None:
        if self.running is not None:
            self.running.close()
            self.running = None


def strategies(measured: Mapping[str, Measured]) -> Counter[str]:
    """What GLRMask's AUTO took, schema by schema; empty unless both strategies were measured."""
    auto, trie = (measured.get(name, Measured()).schemas for name in ("glrmask-auto", "glrmask-trie"))
    sizes = [(auto[id_].artifact_bytes, trie[id_].artifact_bytes) for id_ in auto if id_ in trie]
    return Counter(
        "TOKEN_TRIE" if abs(a - b) <= 0.02 * b else "PARSER_DWA"
        for a, b in sizes
        if a is not None and b is not None
    )


def _records(measured: Mapping[str, Measured], common: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A record for each schema and engine, then one for each engine and series."""
    for engine, of in measured.items():
        head = {"bench": "maskbench", "engine": engine, "version": of.version}
        for id_, schema in of.schemas.items():
            record = {**head, "schema": id_, "outcome": outcome_of(schema), "refused": schema.refused}
            record |= {"valid_refused": schema.valid_refused, "invalid_accepted": schema.invalid_accepted}
            record |= {"first_mask_us": schema.first_mask / 1e3, "compile_bytes": schema.compile_bytes}
            record |= {"artifact_bytes": schema.artifact_bytes, "preempted": int(schema.preempted.sum())}
            record |= {"passes": 1 + len(schema.loads) if schema.artifact_bytes else None}
            steps = {name: SERIES[name](schema) for name in STEPS}
            record |= {name: report.distribution(values) for name, values in steps.items() if len(values)}
            yield record
    for engine, of in measured.items():
        for over, ids in (("schemas it passes", of.with_outcome("passed")), ("schemas all pass", common)):
            for series in SERIES:
                if not np.isnan(values := of.pooled(series, ids)).any():
                    unit = "bytes" if series in ("artifact", "memory of compiling") else "us"
                    figures = report.distribution(values * (1e3 if unit == "bytes" else 1))
                    yield {
                        "bench": "maskbench",
                        "engine": engine,
                        "quantity": series,
                        "over": over,
                        "unit": unit,
                        "n": len(values),
                        **figures,
                    }


def to_markdown(facts: Mapping[str, Any], measured: Mapping[str, Measured], common: Sequence[str]) -> str:
    """The report for people."""
    machine = facts["machine"]
    lines = [
        "# JSON Schema",
        "",
        f"{facts['source']}: {facts['schemas']} schemas (seed {facts['seed']}), {facts['vocab_size']:,} ids; "
        f"{facts['schemas_all_pass']} of them pass everywhere: {facts['steps_all_pass']:,} steps, "
        f"{facts['passes']} passes, engines in turn on one core of {machine['cores']}.",
        f"{machine['cpu']}, load {machine['load']:.1f} at the start; {machine['system']}, Python {machine['python']}; "
        + ", ".join(f"{name} {of.version}" for name, of in measured.items())
        + ".",
        "",
        _table("", measured, _outcomes(measured)),
    ]
    if chosen := strategies(measured):
        lines += [
            "",
            "GLRMask's AUTO took " + ", ".join(f"{k} {v} times" for k, v in chosen.most_common()) + ".",
        ]
    lines += ["", f"## Over the {len(common)} schemas that all pass", ""]
    lines += _sections(measured, {engine: common for engine in measured}) if common else ["None."]
    lines += ["", "## Each over the schemas that it passes", ""]
    lines += _sections(measured, {engine: of.with_outcome("passed") for engine, of in measured.items()})
    lines += ["", "## Ratios", "", *_ratios(measured), ""]
    return "\n".join(lines)


def _outcomes(measured: Mapping[str, Measured]) -> dict[str, list[str]]:
    def row(value: Callable[[Measured], Any]) -> list[str]:
        return [str(value(of)) for of in measured.values()]

    rows = {
        outcome: row(lambda of, o=outcome: len(of.with_outcome(o)))
        for outcome in ("passed", "refused", "wrong")
    }
    rows["of the wrong ones, some invalid instance accepted"] = row(
        lambda of: sum(schema.invalid_accepted > 0 for schema in of.schemas.values())
    )
    rows["preparing the vocabulary, s"] = row(lambda of: f"{of.vocab_seconds:.2f}")
    rows["timing alone, µs a step, p50"] = row(lambda of: f"{report.distribution(of.overhead)['p50']:.2f}")
    rows["timing alone, µs a step, p99.99"] = row(
        lambda of: f"{report.distribution(of.overhead)['p99.99']:.2f}"
    )
    rows["steps of the first pass that lost their core"] = row(
        lambda of: sum(int(schema.preempted.sum()) for schema in of.schemas.values())
    )
    return rows


def _sections(measured: Mapping[str, Measured], ids: Mapping[str, Sequence[str]]) -> list[str]:
    lines = []
    for series in SERIES:
        unit, scale = UNITS.get(series, ("µs", 1e3))
        found = {
            name: report.distribution(of.pooled(series, ids[name]) * 1e3) for name, of in measured.items()
        }
        points = report.POINTS if series in STEPS else ("p50", "p90", "p99", "max", "mean")
        rows = {point: [report.figure(found[name][point] / scale) for name in measured] for point in points}
        lines += [_table(f"{series}, {unit}", measured, rows), ""]
    return lines


def _table(heading: str, columns: Mapping[str, Any], rows: Mapping[str, Sequence[str]]) -> str:
    lines = [f"| {heading} | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    return "\n".join(lines + [f"| {label} | " + " | ".join(row) + " |" for label, row in rows.items()])


def _ratios(measured: Mapping[str, Measured]) -> list[str]:
    """Ours over theirs where there is an aim, over the schemas that both pass."""
    lines = []
    for (series, ours, theirs), aims in AIMS.items():
        if ours not in measured or theirs not in measured:
            continue
        passed = set(measured[theirs].with_outcome("passed"))
        ids = [id_ for id_ in measured[ours].with_outcome("passed") if id_ in passed]
        both = [report.distribution(measured[name].pooled(series, ids)) for name in (ours, theirs)]
        for point, aim in aims.items():
            ratio = both[0][point] / both[1][point]
            verdict = "met" if ratio <= aim else "missed"
            lines.append(
                f"- {series}, {point}: {ours} / {theirs} = {ratio:.3f} (aim {aim:.3g}: {verdict}), {len(ids)} schemas"
            )
    return lines


if __name__ == "__main__":
    main()
