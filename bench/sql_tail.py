"""The tail of SQL decoding: glrgrid beside its peers in one run.

Every engine masks the same tokens of the same SQL statements under ``sql_core``, peers under a derivation of
it (``peer_grammar.py``). The report gives compile time, artifact size and the distribution of the time of a
decoding step.

Method
    - An engine lives in a process of its own, pinned to one core. The driver waits for each call, so two
      never run at once.
    - A step is what a serving loop does from Python: fill a preallocated int32 bitmask, then accept the next
      token.
    - Passes alternate between the engines, in rotating order. Each loads the artifact afresh (or compiles, if
      the engine has none) and takes a fresh matcher per text. Garbage collection is off while timing.
    - Reported are the minima of each step over the passes, which leave out most of what other processes did,
      and the first pass as it was. Each pass is then repeated on the object it loaded: "warm", for engines
      that keep what they computed. The cost of the timing itself is reported and not subtracted.
    - An engine that computes its masks while decoding takes long over a pass, so it makes fewer of them and is
      not repeated "warm"; and when the time given with ``--seconds`` is over, no further round of passes begins.
    - A text that an engine refuses is counted, and timed for no engine.
    - Before timing, each engine's masks are checked: mask and accept agree at every step, and neither the
      bitmask's former content nor an earlier run shows in them.
    - Compile time is of the first compilation in a fresh process, after the vocabulary was prepared by
      compiling a trivial grammar; a second compilation in the same process is reported apart.

Texts and vocabulary: ``corpus.py``. To have the real ones, set ``GLRGRID_DATA``.

    python bench/sql_tail.py [--engines glrgrid,glrmask] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cli
import numpy as np
import peer_grammar
import report
from corpus import Corpus, note, read_sql
from engines import ENGINES, LARK_ENGINES
from worker import Pass, Worker

from glrgrid import Vocab, grammars

GRAMMAR = "sql_core"
COMPILE_AIM, ARTIFACT_AIM = 1 / 10, 1 / 5
STEP_AIMS = {"minima": {"p50": 1 / 4, "p99": 1 / 4, "p99.9": 1 / 4}, "first pass": {"p99": 1 / 2}}
"""What share of GLRMask's figure ours may be."""
PARTS = {"fill": "mask", "accept": "commit", "new": "new matcher", "fork": "fork at the end of a text"}
LAZY_AIM, LAZY_WARM_AIM = 1 / 5, 1.1
"""Of the p99 on demand beside llguidance's; and of the second pass on demand beside ahead of time, p50 and p99."""
MASKS_COMPARED = 60
"""Texts whose masks are compared bit by bit between engines."""


@dataclass
class Measured:
    """All that was measured of one engine."""

    version: str = ""
    vocab_seconds: list[float] = field(default_factory=list)
    compile_seconds: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    """(parse, compile) by number of cores, once per fresh process."""
    again_seconds: dict[int, list[float]] = field(default_factory=dict)
    """Parse and compile, the second time in the same process."""
    vocab_rss_bytes: int = 0
    compile_rss_bytes: int = 0
    """Of the process: with the vocabulary prepared, and the most while compiling."""
    artifact_bytes: list[int] = field(default_factory=list)
    """Once per compilation, none if the engine has no artifact. GLRMask's varies from build to build."""
    refused: dict[int, int] = field(default_factory=dict)
    """Step of the refusal by number of the text."""
    probes: dict[str, bool] = field(default_factory=dict)
    passes: list[Pass] = field(default_factory=list)
    overhead: np.ndarray = field(default_factory=lambda: np.zeros(1))

    def parse(self, cores: int) -> list[float]:
        return [parse for parse, _ in self.compile_seconds[cores]]

    def compile(self, cores: int) -> list[float]:
        return [compile_ for _, compile_ in self.compile_seconds[cores]]

    def minima(self, part: str) -> np.ndarray:
        return np.min([getattr(run.fresh, part) for run in self.passes], axis=0)

    def first(self, part: str) -> np.ndarray:
        return getattr(self.passes[0].fresh, part)

    def warm(self, part: str) -> np.ndarray:
        """NaN if no pass was repeated."""
        repeated = [getattr(run.warm, part) for run in self.passes if run.warm]
        return np.min(repeated, axis=0) if repeated else np.array([math.nan])


SERIES = {"minima": Measured.minima, "first pass": Measured.first, "warm minima": Measured.warm}


def main() -> None:
    options = _options()
    corpus = read_sql(options.texts)
    cores = os.sched_getaffinity(0)
    machine = report.machine()
    measured = {engine: Measured() for engine in options.engines}
    with tempfile.TemporaryDirectory() as folder:
        one = {max(cores)}
        core_sets = [one] if options.quick or cores == one else [one, cores]
        measure_compile(measured, corpus, core_sets, options.rounds, Path(folder))
        until = time.monotonic() + options.seconds
        timed, differences = measure_steps(measured, corpus, max(cores), options.passes, until, Path(folder))

    steps = sum(map(len, timed))
    facts = {
        "grammar": GRAMMAR,
        "source": corpus.source,
        "vocab_size": corpus.vocab.size,
        "texts": len(corpus.texts),
        "texts_timed": len(timed),
        "steps": steps,
        "passes": {engine: len(of.passes) for engine, of in measured.items()},
        "rounds": options.rounds,
        "aims": options.texts is None and "GLRGRID_DATA" in os.environ,
        "machine": machine,
    }
    records = to_records(facts, measured, differences)
    options.out.mkdir(parents=True, exist_ok=True)
    report.write_jsonl(options.out / "sql_tail.jsonl", records)
    title = f"{GRAMMAR}, {corpus.vocab.size:,} ids, {steps:,} steps, {_passes(facts)}"
    panels = {f"mask + commit, {series}": ("µs", 1e3) for series in ("minima", "first pass")}
    curves = {
        engine: dict(zip(panels, (of.minima("step"), of.first("step")), strict=True))
        for engine, of in measured.items()
    }
    plotted = report.tail_plot(options.out / "sql_tail.svg", title, panels, curves)
    text = to_text(facts, corpus, measured, differences)
    (options.out / "sql_tail.txt").write_text(text, encoding="utf-8")
    if options.json:
        sys.stdout.writelines(json.dumps(record) + "\n" for record in records)
        return
    print(text)
    print(
        f"\nwritten to {options.out}: sql_tail.jsonl, sql_tail.txt"
        + (", sql_tail.svg" if plotted else "; no plot without matplotlib")
    )


def _options() -> argparse.Namespace:
    parser = cli.parser(__doc__)
    known = [engine.name for engine in LARK_ENGINES]
    cli.add_engines(parser, known, known)
    parser.add_argument(
        "--passes", type=int, default=5, help="over all texts, alternating (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="of compilation, in fresh processes (default: %(default)s)"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=150,
        help="from then on no further round of passes begins, the first apart (default: %(default)s)",
    )
    parser.add_argument("--texts", type=int, help="take every n-th text, so as to have at most this many")
    parser.add_argument(
        "--quick", action="store_true", help="smoke run: 12 texts, 2 passes, 1 round on one core"
    )
    options = cli.parse(parser)
    if options.quick:
        options.texts, options.passes, options.rounds = 12, 2, 1
    return options


def measure_compile(
    measured: dict[str, Measured], corpus: Corpus, core_sets: Sequence[set[int]], rounds: int, folder: Path
) -> None:
    """Vocabulary preparation, first and second compilation, each time in a fresh process.

    Leaves the artifacts in ``folder``.
    """
    text, tokens, eos_ids = grammars.load(GRAMMAR), corpus.vocab.tokens, corpus.vocab.eos_ids
    for cores in core_sets:
        for number in range(rounds):
            for engine in _rotated(list(measured), number):
                note(f"compile: {engine}, {len(cores)} core(s), round {number + 1} of {rounds}")
                of = measured[engine]
                with Worker(engine, cores) as worker:
                    of.vocab_seconds.append(worker.call("prepare_vocab", tokens, eos_ids))
                    of.vocab_rss_bytes = worker.call("rss_bytes")
                    of.compile_seconds.setdefault(len(cores), []).append(worker.call("compile", text))
                    of.again_seconds.setdefault(len(cores), []).append(sum(worker.call("compile", text)))
                    if (size := worker.call("save", str(folder / engine))) is not None:
                        of.artifact_bytes.append(size)
                    of.compile_rss_bytes = worker.call("peak_rss_bytes")
                    of.version = worker.call("version")


def measure_steps(
    measured: dict[str, Measured], corpus: Corpus, core: int, passes: int, until: float, folder: Path
) -> tuple[list[list[int]], dict[str, dict[str, int]]]:
    """Check the engines, then time them pass by pass.

    Returns the texts timed, and how masks differ from the first engine's.
    """
    with contextlib.ExitStack() as stack:
        workers = {engine: stack.enter_context(Worker(engine, {core})) for engine in measured}
        accepted = [True] * len(corpus.texts)
        probes = [corpus.encode(text) for text in peer_grammar.PROBES]
        for engine, worker in workers.items():
            note(f"check: {engine}")
            worker.call("prepare_vocab", corpus.vocab.tokens, corpus.vocab.eos_ids)
            refused = worker.call("check", str(folder / engine), corpus.texts).refused
            measured[engine].refused = {text: at for text, at in enumerate(refused) if at is not None}
            accepted = [fine and at is None for fine, at in zip(accepted, refused, strict=True)]
            refused = worker.call("check", str(folder / engine), probes).refused
            accepts = [at is None for at in refused]
            measured[engine].probes = dict(zip(peer_grammar.PROBES, accepts, strict=True))
        timed = [text for text, fine in zip(corpus.texts, accepted, strict=True) if fine]
        if not timed:
            raise SystemExit("no text is accepted by every engine; nothing to time")
        differences = _compare_masks(workers, timed[:MASKS_COMPARED], corpus.vocab, folder)
        for number in range(passes):
            if number and time.monotonic() > until:
                note(f"time is over after {number} passes")
                break
            for engine in _rotated(list(measured), number):
                if number < ENGINES[engine].most_passes:
                    note(f"time: {engine}, pass {number + 1} of {passes}")
                    measured[engine].passes.append(workers[engine].call("run", str(folder / engine), timed))
        for engine, worker in workers.items():
            measured[engine].overhead = worker.call("overhead", sum(map(len, timed)))
    return timed, differences


def _compare_masks(
    workers: dict[str, Worker], texts: list[list[int]], vocab: Vocab, folder: Path
) -> dict[str, dict[str, int]]:
    """How masks differ from the first engine's: in how many steps of all, and by how many tokens."""
    spelled = np.array([token is not None for token in vocab.tokens] + [False] * (-vocab.size % 32))
    ordinary = np.packbits(spelled, bitorder="little").view(np.int32)
    result, first = {}, None
    for engine, worker in workers.items():
        clean = worker.call("check", str(folder / engine), texts)
        poisoned = worker.call("check", str(folder / engine), texts, True)
        if clean.digests != poisoned.digests:
            raise SystemExit(f"{engine}: the former content of the bitmask shows in the mask")
        path = folder / f"{engine}.npy"
        worker.call("masks", str(folder / engine), texts, str(path))
        masks = np.load(path) & ordinary
        path.unlink()
        if first is None:
            first = masks
            continue
        result[engine] = {
            "steps": len(masks),
            "steps_different": int((masks != first).any(axis=1).sum()),
            "tokens_added": int(np.bitwise_count((masks & ~first).view(np.uint32)).sum()),
            "tokens_missing": int(np.bitwise_count((first & ~masks).view(np.uint32)).sum()),
        }
    return result


def _rotated(names: list[str], by: int) -> list[str]:
    by %= len(names)
    return names[by:] + names[:by]


def to_records(
    facts: dict[str, Any], measured: dict[str, Measured], differences: dict[str, dict[str, int]]
) -> list[dict[str, Any]]:
    """One record per engine and quantity, after one about the run."""
    records: list[dict[str, Any]] = [
        {"bench": "sql_tail", "quantity": "run", "time": int(time.time()), **facts}
    ]
    for engine, of in measured.items():
        head = {"bench": "sql_tail", "engine": engine, "version": of.version}
        quantities = list(_quantities(of))
        if engine in differences:
            quantities.append(("masks beside the first engine", dict(differences[engine])))
        reads = {"flavour": ENGINES[engine].flavour, "language": ENGINES[engine].language}
        records.append(
            {**head, "quantity": "language", **reads, "refused": len(of.refused), "probes": of.probes}
        )
        records += [{**head, "quantity": quantity, **values} for quantity, values in quantities]
    return records


def _quantities(of: Measured) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "vocabulary", {"unit": "s", **report.spread(of.vocab_seconds)}
    for cores, both in of.compile_seconds.items():
        on = {"unit": "s", "cores": cores}
        yield "parse", {**on, **report.spread(of.parse(cores))}
        yield "compile", {**on, **report.spread(of.compile(cores))}
        yield "parse and compile", {**on, **report.spread([sum(times) for times in both])}
        yield "parse and compile again", {**on, **report.spread(of.again_seconds[cores])}
    memory = {"vocabulary": of.vocab_rss_bytes, "compiling at most": of.compile_rss_bytes}
    yield "memory", {"unit": "bytes", **memory}
    if of.artifact_bytes:
        yield "artifact", {"unit": "bytes", "max": max(of.artifact_bytes), **report.spread(of.artifact_bytes)}
    yield "load", {"unit": "us", **report.spread([run.load / 1e3 for run in of.passes])}
    for part in ("step", *PARTS):
        for series, values in SERIES.items():
            times = values(of, part)
            if np.isnan(times).any():
                continue
            yield part, {"unit": "us", "series": series, "n": len(times), **report.distribution(times)}
    yield "timing alone", {"unit": "us", **report.distribution(of.overhead)}


def to_text(
    facts: dict[str, Any],
    corpus: Corpus,
    measured: dict[str, Measured],
    differences: dict[str, dict[str, int]],
) -> str:
    """The report for people."""
    machine = facts["machine"]
    lines = [
        f"{facts['grammar']}: {facts['source']}; {facts['vocab_size']:,} ids",
        f"{facts['texts']:,} texts, {facts['texts_timed']:,} of them accepted by every engine and timed: "
        f"{facts['steps']:,} steps, {_passes(facts)}, alternating, {facts['rounds']} compilations",
        f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:.1f} at the start; "
        f"{machine['system']}, Python {machine['python']}, numpy {machine['numpy']}; "
        + ", ".join(f"{name} {of.version}" for name, of in measured.items()),
        "",
        report.table(list(measured), _rivals(list(measured)), _sections(measured, facts["aims"])),
        "",
    ]
    lines += _on_demand(measured, facts["aims"]) + _language(corpus, measured, differences)
    return "\n".join(lines)


def _passes(facts: dict[str, Any]) -> str:
    """How many there were, of each engine where they differ."""
    passes = facts["passes"]
    most = max(passes.values())
    fewer = [f"{engine} {count}" for engine, count in passes.items() if count < most]
    return f"{most} passes" + (f" ({', '.join(fewer)})" if fewer else "")


def _rivals(measured: Sequence[str]) -> list[str]:
    """What glrgrid is compared with: GLRMask, at which the aims are directed, or else whatever there is."""
    others = [engine for engine in measured if not engine.startswith("glrgrid")]
    if "glrgrid" not in measured:
        return []
    return [engine for engine in others if engine.startswith("glrmask")] or others


def _sections(measured: dict[str, Measured], aims: bool) -> dict[str, list[report.Row]]:
    def row(label: str, value: Any, aim: float | None = None, digits: int = 2) -> report.Row:
        figures = {engine: value(of) for engine, of in measured.items()}
        return report.Row(label, figures, aim if aims else None, digits)

    def rows(
        found: dict[str, dict[str, float]], points: Iterable[str], prefix: str = "", **more: Any
    ) -> list[report.Row]:
        return [
            report.Row(prefix + point, {name: of[point] for name, of in found.items()}, **more)
            for point in points
        ]

    def steps(values: Any, part: str) -> dict[str, dict[str, float]]:
        return {engine: report.distribution(values(of, part)) for engine, of in measured.items()}

    sections = {"Vocabulary, seconds": [row("min", lambda of: min(of.vocab_seconds), digits=3)]}
    for cores in next(iter(measured.values())).compile_seconds:
        figures = {
            "parse the grammar text, min": (lambda of, cores=cores: min(of.parse(cores)), None),
            "compile, min": (lambda of, cores=cores: min(of.compile(cores)), COMPILE_AIM),
            "compile, median": (lambda of, cores=cores: statistics.median(of.compile(cores)), COMPILE_AIM),
            "both, min": (lambda of, cores=cores: min(map(sum, of.compile_seconds[cores])), None),
            "both again in one process, min": (lambda of, cores=cores: min(of.again_seconds[cores]), None),
        }
        sections[f"Build on {cores} core{'s' if cores > 1 else ''}, seconds"] = [
            row(label, value, aim, 3) for label, (value, aim) in figures.items()
        ]
    sections["Size"] = [
        row("artifact, KB, min", lambda of: min(of.artifact_bytes, default=math.nan) / 1e3, ARTIFACT_AIM, 1),
        row("load (or compile again), min, ms", lambda of: min(run.load for run in of.passes) / 1e6),
        row("memory with the vocabulary prepared, MB", lambda of: of.vocab_rss_bytes / 1e6, digits=0),
        row(
            "more at most while compiling, MB",
            lambda of: (of.compile_rss_bytes - of.vocab_rss_bytes) / 1e6,
            digits=1,
        ),
    ]
    for series, values in SERIES.items():
        found = steps(values, "step")
        of_series = STEP_AIMS.get(series, {}) if aims else {}
        sections[f"Mask + commit, µs, {series}"] = [
            report.Row(point, {name: of[point] for name, of in found.items()}, of_series.get(point))
            for point in report.POINTS
        ]
    sections["Parts, µs, minima"] = []
    for part, name in PARTS.items():
        sections["Parts, µs, minima"] += rows(steps(Measured.minima, part), ("p50", "p99"), f"{name}, ")
    alone = {engine: report.distribution(of.overhead) for engine, of in measured.items()}
    sections["Timing alone, µs per step, included above"] = rows(
        alone, ("p50", "p99.9", "max"), digits=3, compared=False
    )
    return sections


def _on_demand(measured: dict[str, Measured], aims: bool) -> list[str]:
    """Tables filled on demand, beside the peer that computes masks on demand and beside our own ahead of time."""
    lazy = measured.get("glrgrid-lazy")
    if lazy is None:
        return []

    def line(label: str, series: Callable[[Measured], np.ndarray], other: str, point: str, aim: float) -> str:
        ours = report.distribution(series(lazy))[point]
        theirs = report.distribution(series(measured[other]))[point]
        found = f"  {label}, {point}: {ours:.2f} beside {other} {theirs:,.2f}: {report.share(ours / theirs)}"
        return found + (report.verdict(ours / theirs, aim) if aims else "")

    lines = ["On demand, mask + commit, µs"]
    if "llguidance" in measured:
        lines.append(line("first pass", lambda of: of.first("step"), "llguidance", "p99", LAZY_AIM))
        lines.append(line("minima", lambda of: of.minima("step"), "llguidance", "p99", LAZY_AIM))
    if "glrgrid" in measured:
        for point in ("p50", "p99"):
            lines.append(line("warm minima", lambda of: of.warm("step"), "glrgrid", point, LAZY_WARM_AIM))
    return [*lines, ""]


def _refusal(corpus: Corpus, text: int, at: int) -> str:
    """Where a text was refused: what comes before and after."""
    before, after = corpus.decode(corpus.texts[text][:at]), corpus.decode(corpus.texts[text][at:])
    return f"text {text} after `...{before[-40:]}` at `{after[:20]}`"


def _language(
    corpus: Corpus, measured: dict[str, Measured], differences: dict[str, dict[str, int]]
) -> list[str]:
    lines = ["Language"]
    for engine, of in measured.items():
        flavour = ENGINES[engine].flavour
        lines.append(
            f"  {engine}" + (f", peer grammar {flavour!r}: " if flavour else ": ") + ENGINES[engine].language
        )
        lines.append(
            f"    refused {len(of.refused)} texts"
            + "".join(f"; {_refusal(corpus, *at)}" for at in [*of.refused.items()][:2])
        )
        lines.append("    accepts: " + "; ".join(text for text, fine in of.probes.items() if fine))
        if engine in differences:
            seen = differences[engine]
            lines.append(
                f"    masks beside {next(iter(measured))}: {seen['steps_different']:,} of {seen['steps']:,} differ; "
                f"{seen['tokens_added']:,} tokens in addition, {seen['tokens_missing']:,} missing"
            )
    return lines


if __name__ == "__main__":
    main()
