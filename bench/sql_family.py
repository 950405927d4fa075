"""SQL under roles: what a new catalog costs to compile, and what its masks cost.

*Catalogs* are made from a list of words: 30 tables of 10 columns; a role reads 20 of the tables, and one column
of another, and an administrator does everything. In a process of its own, with the vocabulary prepared: the first
catalog, when dialect and role are still cold, and others after it, warm. Milliseconds from the catalog to the first
mask, ahead of time and lazily, and of each stage; of the warm ones the best.

*Masks*: Spider's dev queries, each under an administrator's grammar over the catalog of its own database, ours
compiled ahead of time (loaded from its artifact in each pass) and lazily, and llguidance with a grammar derived from
ours (``peer_grammar.of_ir``). A step is mask + commit from Python; passes alternate, each on a freshly loaded object;
reported are per-step minima, and the first pass as it was. Queries that an engine refuses are counted, and timed for
none. Needs ``GLRGRID_DATA``.

    python bench/sql_family.py [--runs 5] [--databases 20] [--passes 5] [--json]
"""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import json
import math
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cli
import corpus
import numpy as np
import peer_grammar
import report
from engines import ENGINES
from worker import Worker

import glrgrid as gg
from glrgrid.sql import Catalog, Role

TEXT = """
user order item product price amount total date name city state zip code region status kind level score rate count hour
day week month year address phone email title note type owner dept salary bonus manager start end open close
"""
WORDS = TEXT.split()
AIMS = {"lazy": 10, "aot": 250, "cold": 2000}
"""Milliseconds: the first mask lazily, a whole artifact, and either when dialect and role are cold."""
STEP_AIMS = {"p50": 2.5, "p99": 12}
"""Microseconds, ahead of time."""


def catalog(seed: int = 3, tables: int = 30, columns: int = 10) -> tuple[Catalog, Role]:
    """A catalog, and a role that reads two thirds of it."""
    rng = random.Random(seed)
    names = rng.sample([f"{a}_{b}s" for a in WORDS for b in WORDS], tables)
    words = [*WORDS, *(f"{a}_{b}" for a in WORDS for b in WORDS)]
    rows = [(name, column) for name in names for column in ("id", *rng.sample(words, columns - 1))]
    share = tables * 2 // 3
    return Catalog.from_rows(rows), Role("reader", {n: "*" for n in names[:share]} | {names[share]: ["id"]})


def build(seed: int, role: str, mode: str, vocab: gg.Vocab) -> dict[str, float]:
    """Milliseconds from a catalog to its first mask, as a whole and by stage."""
    there, reader = catalog(seed)
    chosen = reader if role == "reader" else Role.admin()
    bitmask = gg.allocate_token_bitmask(1, vocab.size)
    times = [time.perf_counter()]
    grammar = gg.Grammar.from_sql("sqlite", chosen, there)
    times.append(time.perf_counter())
    compiled = gg.compile(grammar, vocab, mode=mode)
    times.append(time.perf_counter())
    gg.Matcher(compiled).fill_next_token_bitmask(bitmask)
    times.append(time.perf_counter())
    spent = dict(zip(("from_sql", "compile", "first mask"), np.diff(times) * 1e3, strict=True))
    stages = {f"  {name}": ms for name, ms in compiled.stats["milliseconds"].items()}
    return {"all": (times[-1] - times[0]) * 1e3, **spent, **stages}


def builds(
    connection: Any, tokens: list[bytes | None], eos_ids: tuple[int, ...], role: str, mode: str, runs: int
) -> None:
    """In a fresh process: the first build, and the best of those after it."""
    vocab = gg.Vocab(tokens, eos_ids)
    gg.compile(gg.Grammar.from_lark('start: "a"'), vocab)
    cold = build(1_000, role, mode, vocab)
    warm = [build(seed, role, mode, vocab) for seed in range(runs)]
    connection.send((cold, {name: min(run[name] for run in warm) for name in cold}))


def new_catalogs(vocab: gg.Vocab, runs: int) -> Iterator[dict[str, Any]]:
    """One record for each role, mode and temperature."""
    context = multiprocessing.get_context("spawn")
    for role in ("reader", "admin"):
        for mode in ("aot", "lazy"):
            corpus.note(f"build: {role}, {mode}")
            ours, theirs = context.Pipe()
            arguments = (theirs, vocab.tokens, vocab.eos_ids, role, mode, runs)
            process = context.Process(target=builds, args=arguments)
            process.start()
            for temperature, stages in zip(("cold", "warm"), ours.recv(), strict=True):
                yield {
                    "quantity": "build",
                    "role": role,
                    "mode": mode,
                    "state": temperature,
                    "unit": "ms",
                    **stages,
                }
            process.join()


def queries() -> tuple[dict[str, Catalog], dict[str, list[str]]] | None:
    """Spider's databases and the dev queries of each; ``None`` without data."""
    folder = os.environ.get("GLRGRID_DATA")
    if not folder:
        corpus.note("GLRGRID_DATA is not set: there are no queries to measure masks on")
        return None
    with gzip.open(Path(folder, "sql", "spider_tables.json.gz"), "rt", encoding="utf-8") as file:
        schemas = {d["db_id"]: d for d in json.load(file)}
    found: dict[str, dict[str, None]] = defaultdict(dict)
    with gzip.open(Path(folder, "sql", "spider_dev_gold.jsonl.gz"), "rt", encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            found[line["db_id"]][f"{line['query'].strip().rstrip(';')};"] = None
    catalogs = {}
    for db in found:
        tables, columns = schemas[db]["table_names_original"], schemas[db]["column_names_original"]
        catalogs[db] = Catalog.from_rows((tables[t], c) for t, c in columns if t >= 0)
    return catalogs, {db: list(texts) for db, texts in found.items()}


def masks(read: corpus.Corpus, databases: int, passes: int) -> Iterator[dict[str, Any]]:
    """One record for each engine and series of step times."""
    found = queries()
    if found is None:
        return
    catalogs, texts = found
    chosen = sorted(texts)[:databases]
    # A lazily compiled artifact is served lazily by whoever loads it.
    engines = {"glrgrid": "glrgrid", "glrgrid-lazy": "glrgrid", "llguidance": "llguidance-large"}
    if importlib.util.find_spec("llguidance") is None:
        corpus.note("llguidance is left out: it is not installed")
        del engines["llguidance"]
    core = {max(os.sched_getaffinity(0))}
    steps: dict[str, list[list[np.ndarray]]] = {name: [] for name in engines}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        workers = {name: stack.enter_context(Worker(engine, core)) for name, engine in engines.items()}
        for worker in workers.values():
            worker.call("prepare_vocab", read.vocab.tokens, read.vocab.eos_ids)
        refused = dict.fromkeys(engines, 0)
        timed: dict[str, list[list[int]]] = {}
        for db in chosen:
            corpus.note(f"check: {db}")
            _compile(catalogs[db], read.vocab, Path(folder), db, engines)
            ids = [read.encode(text) for text in texts[db]]
            fine = [True] * len(ids)
            for name, worker in workers.items():
                at = worker.call("check", str(Path(folder, f"{db}.{name}")), ids).refused
                refused[name] += sum(where is not None for where in at)
                fine = [ok and where is None for ok, where in zip(fine, at, strict=True)]
            timed[db] = [text for text, ok in zip(ids, fine, strict=True) if ok]
        for number in range(passes):
            for name, worker in workers.items():
                if number < ENGINES[engines[name]].most_passes:
                    corpus.note(f"time: {name}, pass {number + 1} of {passes}")
                    run = (worker.call("run", str(Path(folder, f"{db}.{name}")), timed[db]) for db in chosen)
                    steps[name].append([np.asarray(of.fresh.step) for of in run])
    for name, runs in steps.items():
        joined = [np.concatenate(run) for run in runs]
        for series, values in (("minima", np.min(joined, axis=0)), ("first pass", joined[0])):
            yield {
                "quantity": "mask + commit", "engine": name, "series": series, "unit": "us", "passes": len(runs),
                "databases": len(chosen), "n": len(values), "refused": refused[name], **report.distribution(values),
            }  # fmt: skip


def _compile(there: Catalog, vocab: gg.Vocab, folder: Path, db: str, engines: dict[str, str]) -> None:
    """Write what each engine loads."""
    grammar = gg.Grammar.from_sql("sqlite", Role.admin(), there)
    gg.compile(grammar, vocab).save(folder / f"{db}.glrgrid")
    gg.compile(grammar, vocab, mode="lazy").save(folder / f"{db}.glrgrid-lazy")
    if "llguidance" in engines:
        (folder / f"{db}.llguidance").write_text(peer_grammar.of_ir(grammar.ir), "utf-8")


def to_text(records: list[dict[str, Any]]) -> str:
    """The report for people."""
    nan = math.nan
    lines = []
    found = [r for r in records if r["quantity"] == "build"]
    columns = {f"{r['role']}, {r['mode']}, {r['state']}": r for r in found}
    stages = dict.fromkeys(key for r in found for key, value in r.items() if isinstance(value, float))
    rows = [report.Row(s, {name: r.get(s, nan) for name, r in columns.items()}, digits=1) for s in stages]
    lines.append(report.table(list(columns), [], {"A catalog of 30 tables and 300 columns, ms": rows}))
    for r in found:
        aim = AIMS["cold"] if r["state"] == "cold" else AIMS[r["mode"]]
        verdict = "met" if r["all"] <= aim else "missed"
        lines.append(f"  {r['role']}, {r['mode']}, {r['state']}: {r['all']:.1f} ms, aim {aim} ({verdict})")
    for series in ("minima", "first pass"):
        of = {r["engine"]: r for r in records if r.get("series") == series}
        if of:
            rows = [report.Row(point, {name: r[point] for name, r in of.items()}) for point in report.POINTS]
            heading = f"Mask + commit on Spider dev under its catalogs, us, {series}"
            rivals = [name for name in of if not name.startswith("glrgrid")]
            lines += ["", report.table(list(of), rivals, {heading: rows})]
            if series == "minima":
                lines += [
                    f"  {point}: {of['glrgrid'][point]:.2f} us, aim {aim} "
                    f"({'met' if of['glrgrid'][point] <= aim else 'missed'})"
                    for point, aim in STEP_AIMS.items()
                ]
                lines += [
                    f"  {name}: {r['n']:,} steps, refused {r['refused']} queries" for name, r in of.items()
                ]
    return "\n".join(lines)


def main() -> None:
    parser = cli.parser(__doc__)
    parser.add_argument("--runs", type=int, default=5, help="warm catalogs (default: %(default)s)")
    parser.add_argument("--databases", type=int, default=20, help="Spider's, at most (default: %(default)s)")
    parser.add_argument("--passes", type=int, default=5, help="over all queries (default: %(default)s)")
    options = cli.parse(parser)
    read = corpus.read_sql(limit=1)
    head = {"bench": "sql_family", "quantity": "run", "time": int(time.time()), "vocab_size": read.vocab.size}
    records = [{**head, "machine": report.machine()}]
    records += new_catalogs(read.vocab, options.runs)
    records += masks(read, options.databases, options.passes)
    options.out.mkdir(parents=True, exist_ok=True)
    report.write_jsonl(options.out / "sql_family.jsonl", records)
    if options.json:
        sys.stdout.writelines(json.dumps(record) + "\n" for record in records)
    else:
        print(to_text(records))


if __name__ == "__main__":
    main()
