"""What a new catalog costs under a role, and what its masks cost.

*A catalog*: 30 tables of 10 columns, made from a list of words; a role that reads 20 of the tables, and one column of
another. Times of each stage, from the catalog to the first mask, ahead of time and lazily; the best of several runs.

*Masks*: Spider's dev queries, each under an administrator's grammar over the catalog of its database: per-step minima
of mask + commit over several passes, each on a freshly loaded artifact. Needs ``GLRGRID_DATA``.

    python bench/sql_family.py [--runs 3] [--databases 20]
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import time
from collections import defaultdict
from pathlib import Path

import corpus
import numpy as np

import glrgrid as gg
from glrgrid.sql import Catalog, Dialect, Role

TEXT = """
user order item product price amount total date name city state zip code region status kind level score rate count hour
day week month year address phone email title note type owner dept salary bonus manager start end open close
"""
WORDS = TEXT.split()


def catalog(tables: int = 30, columns: int = 10) -> tuple[Catalog, Role]:
    rng = random.Random(3)
    names = rng.sample([f"{a}_{b}s" for a in WORDS for b in WORDS], tables)
    words = [*WORDS, *(f"{a}_{b}" for a in WORDS for b in WORDS)]
    rows = [(name, column) for name in names for column in ("id", *rng.sample(words, columns - 1))]
    return Catalog.from_rows(rows), Role("reader", {n: "*" for n in names[:20]} | {names[20]: ["id"]})


def new_catalog(vocab: gg.Vocab, runs: int) -> None:
    there, role = catalog()
    Dialect.load("sqlite")
    bitmask = gg.allocate_token_bitmask(1, vocab.size)
    for mode in ("aot", "lazy"):
        best: dict[str, float] = {}
        for _ in range(runs):
            times = [time.perf_counter()]
            grammar = gg.Grammar.from_sql("sqlite", role, there)
            times.append(time.perf_counter())
            compiled = gg.compile(grammar, vocab, mode=mode)
            times.append(time.perf_counter())
            gg.Matcher(compiled).fill_next_token_bitmask(bitmask)
            times.append(time.perf_counter())
            spent = {
                "from_sql": times[1] - times[0],
                "compile": times[2] - times[1],
                "first mask": times[3] - times[2],
            }
            stages = {f"  {k}": v / 1e3 for k, v in compiled.stats["milliseconds"].items()}
            for name, seconds in (spent | stages | {"all": times[3] - times[0]}).items():
                best[name] = min(best.get(name, seconds), seconds)
        print(f"a new catalog of 30 tables, {mode}; milliseconds, each the best of {runs}")
        for name, seconds in best.items():
            print(f"  {name:16} {seconds * 1e3:9.1f}")


def masks(vocab: gg.Vocab, databases: int) -> None:
    folder = os.environ.get("GLRGRID_DATA")
    if not folder:
        corpus.note("GLRGRID_DATA is not set: there are no queries to measure masks on")
        return
    with gzip.open(Path(folder, "sql", "spider_tables.json.gz"), "rt", encoding="utf-8") as file:
        schemas = {d["db_id"]: d for d in json.load(file)}
    queries = defaultdict(dict)
    with gzip.open(Path(folder, "sql", "spider_dev_gold.jsonl.gz"), "rt", encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            queries[line["db_id"]][f"{line['query'].strip().rstrip(';')};"] = None
    encode = corpus.encoder(Path(folder, "vocabs", "llama3.tokenizer.json"), vocab.tokens)
    bitmask = gg.allocate_token_bitmask(1, vocab.size)
    minima = []
    for db in sorted(queries)[:databases]:
        tables = schemas[db]["table_names_original"]
        there = Catalog.from_rows((tables[t], c) for t, c in schemas[db]["column_names_original"] if t >= 0)
        artifact = gg.compile(gg.Grammar.from_sql("sqlite", Role.admin(), there), vocab).to_bytes()
        texts = [encode(text) for text in queries[db]]
        minima.append(np.min([one_pass(gg.load(artifact, vocab), texts, bitmask) for _ in range(5)], axis=0))
    steps = np.concatenate(minima) / 1e3
    p50, p99, p999 = np.percentile(steps, [50, 99, 99.9])
    print(
        f"mask + commit over {len(steps):,} steps of {len(minima)} databases, microseconds, per-step minima of 5 passes"
    )
    print(f"  p50 {p50:.2f}  p99 {p99:.2f}  p99.9 {p999:.2f}  max {steps.max():.1f}")


def one_pass(compiled: gg.CompiledGrammar, texts: list[list[int]], bitmask: object) -> list[int]:
    spent = []
    for ids in texts:
        matcher = gg.Matcher(compiled)
        for token in ids:
            start = time.perf_counter_ns()
            matcher.fill_next_token_bitmask(bitmask)
            accepted = matcher.accept_token(token)
            spent.append(time.perf_counter_ns() - start)
            assert accepted
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--databases", type=int, default=20)
    options = parser.parse_args()
    vocab = corpus.read_sql(limit=1).vocab
    vocab._native.prepare()
    new_catalog(vocab, options.runs)
    masks(vocab, options.databases)


if __name__ == "__main__":
    main()
