"""What people and models write is accepted: with the right catalog and an administrator, nothing valid is lost."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from sql_support import accepts, database, json_lines, matcher, text_to_sql_catalogs

import glrgrid as gg
from glrgrid.sql import Catalog, Role

CORPUS = Path(__file__).parents[1] / "corpus"
SETS = {
    "spider_dev": ("sql/spider_dev_gold.jsonl.gz", "sql/spider_tables.json.gz"),
    "spider_train": ("sql/spider_train_gold_half.jsonl.gz", "sql/spider_tables.json.gz"),
    "bird": ("sql/bird_mini_dev_sqlite_half.jsonl.gz", "sql/bird_dev_tables.json.gz"),
}
KNOWN_MISSES = json.loads((CORPUS / "sql_misses.json").read_text("utf-8"))
"""By set, the index of each query that is not accepted, and the kind of reason."""


def test_twin() -> None:
    """In small what the large sets test: case, quoting, strings in double quotes, aliases, functions, joins."""
    m = matcher(gg.Grammar.from_sql("sqlite", Role.admin(), Catalog.from_sqlite(database())))
    lines = (CORPUS / "sql_accept.sql").read_text("utf-8").splitlines()
    statements = [line for line in lines if not line.startswith("--")]
    assert len(statements) > 20
    for statement in statements:
        assert accepts(m, statement), statement
        database().execute(f"EXPLAIN {statement}")
    for statement in (
        "SELECT nmae FROM customers LIMIT",
        "SELECT customers.total FROM customers",
        "SELECT 1 FROM custom-ers",
    ):
        assert not accepts(m, statement), statement


def misses(name: str, rows: list[tuple[int, dict[str, Any]]]) -> list[int]:
    """Indices of the queries that are not accepted under the catalog of their database."""
    catalogs = text_to_sql_catalogs(SETS[name][1])
    by_database = defaultdict(list)
    for index, row in rows:
        by_database[row["db_id"]].append((index, row["query"]))
    found = []
    for db, queries in by_database.items():
        m = matcher(gg.Grammar.from_sql("sqlite", Role.admin(), catalogs[db]))
        found += [index for index, query in queries if not accepts(m, query.strip())]
    return sorted(found)


@pytest.mark.parametrize("name", SETS)
def test_some_databases(name: str) -> None:
    rows = json_lines(SETS[name][0])
    chosen = set(random.Random(3).sample(sorted({row["db_id"] for row in rows}), 3))
    known = {miss["index"] for miss in KNOWN_MISSES[name]}
    assert set(misses(name, [(i, r) for i, r in enumerate(rows) if r["db_id"] in chosen])) <= known


@pytest.mark.full
@pytest.mark.parametrize("name", SETS)
def test_all_databases(name: str) -> None:
    """Exactly the listed queries are missed, and SQLite rejects each that is listed as invalid."""
    rows = json_lines(SETS[name][0])
    listed = KNOWN_MISSES[name]
    assert misses(name, list(enumerate(rows))) == [miss["index"] for miss in listed]
    share = {"spider_dev": 0, "spider_train": 0.005, "bird": 0.02}[name]
    assert len(listed) <= share * len(rows)
    for miss in listed:
        if miss["kind"].startswith("invalid"):
            with pytest.raises(Exception, match="clause should come after"):
                database().execute(rows[miss["index"]]["query"])
