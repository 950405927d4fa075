"""Checker and masks against SQLite, on statements of a writer that knows neither.

What SQLite prepares, and reports to touch what the role may not, is flagged by the checker; and masks refuse it, but
for columns of names that the role may read elsewhere.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from random import Random

import pytest
from sql_random import TABLES, Writer, script
from sql_support import accepts, bytes_vocab

import glrgrid as gg
from glrgrid.demo.witness import Witness
from glrgrid.sql import Catalog, Dialect, Grant, Role, SemanticChecker, Violation

pytest.importorskip("sqlglot")
ALL = ("select", "insert", "update", "delete")
FUNCTIONS = ("count", "sum", "max", "min", "avg", "lower", "length", "coalesce", "likely", "unlikely", "abs", "like",
             "->", "->>", "rank", "json_each")  # fmt: skip
GRANTS: list[tuple[dict[str, Grant], tuple[str, ...], bool]] = [
    ({"users": Grant(("id", "name")), "orders": Grant("*"), "notes": Grant("*")}, ("select",), False),
    ({"users": Grant(("id", "name"), ("name",)), "notes": Grant(("note",)),
      "orders": Grant(("id", "user_id", "note"), ("user_id", "note"), ("note", "ssn"))}, ALL, False),
    ({"users": Grant(("id", "ssn")), "orders": Grant(("id", "note", "amount"), "*", "*", True),
      "salaries": Grant(("bonus",)), "notes": Grant(("id",))}, ALL, True),
]  # fmt: skip
"""What roles may do, their verbs, and whether they may read implicit columns where nothing is hidden."""

IMPLICIT = {"rowid", "oid", "_rowid_"}
RUNS = re.compile("constraint failed|mismatch|malformed|overflow|ESCAPE expression")
"""Errors of statements that SQLite has prepared."""


class Judge:
    """A role over the database of :mod:`sql_random`, under other names perhaps."""

    def __init__(self, number: int, renamed: dict[str, str]) -> None:
        grants, verbs, implicit = GRANTS[number]

        def called(columns: tuple[str, ...] | str) -> tuple[str, ...] | str:
            return columns if isinstance(columns, str) else tuple(renamed.get(c, c) for c in columns)

        role = Role(
            "r",
            {
                renamed.get(table, table): Grant(*map(called, (g.select, g.insert, g.update)), g.delete)
                for table, g in grants.items()
            },
            verbs,
            FUNCTIONS,
            implicit_columns=implicit,
        )
        connection = sqlite3.connect(":memory:")
        connection.executescript(script(renamed))
        self.checker = SemanticChecker(Catalog.from_sqlite(connection), role)
        self.witness = Witness(connection, role)
        grammar = gg.Grammar.from_sql("sqlite", role, self.checker.access.catalog)
        self.matcher = gg.Matcher(gg.compile(grammar, bytes_vocab(), mode="lazy"))
        self.key = renamed.get("id", "id")

    def unexplained(
        self, denied: list[tuple[int, str, str]], found: list[Violation]
    ) -> list[tuple[int, str, str]]:
        """What is denied and no violation is about: a statement that is refused for something else shows nothing."""
        rules = {violation.rule for violation in found}
        named = {name.lower() for v in found for name in re.findall(r'"([^"]*)"', v.message)}
        if rules & {"syntax", "construct", "star"} or any("may not be used" in v.message for v in found):
            return []
        left = []
        for action, table, column in denied:
            if action == sqlite3.SQLITE_READ:
                said = {table, column} & named or (column in IMPLICIT | {self.key} and IMPLICIT & named)
            else:
                said = rules & {"function", "verb", "table", "column"}
            if not said:
                left.append((action, table, column))
        return left

    def not_for_masks(self, denied: list[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
        """What is denied and masks must refuse: all but columns whose names may be read in another relation."""
        access = self.checker.access
        return [
            (action, table, column)
            for action, table, column in denied
            if not (
                action == sqlite3.SQLITE_READ
                and column in access.readable_columns
                and (relation := access.find(table)) is not None
                and relation.select
            )
        ]


def check(seed: int, count: int, renaming: bool) -> None:
    """``renaming``: columns and tables are called as keywords that may be names are."""
    rng = Random(seed)
    hidden = [
        {
            (t, c)
            for t, cs in TABLES.items()
            for c in cs
            if t not in g or not (g[t].select == "*" or c in g[t].select)
        }
        for g, _, _ in GRANTS
    ]
    keywords = sorted(Dialect.load("sqlite").names - {"cast", "replace", "filter"})
    prepared = tried = 0
    verdicts: Counter[tuple[int, bool, bool]] = Counter()
    masked: Counter[int] = Counter()
    while prepared < count:
        if tried % 600 == 0:
            names = [
                "id",
                "name",
                "ssn",
                "user_id",
                "note",
                "amount",
                "bonus",
                "users",
                "orders",
                "salaries",
                "x",
                "y",
            ]
            words = rng.sample(keywords, len(names))
            renamed = {n: w for n, w in zip(names, words, strict=True) if renaming and rng.random() < 0.5}
            judges = [Judge(number, renamed) for number in range(len(GRANTS))]
            writers = [Writer(rng, rare, renamed) for rare in hidden]
        number = tried % len(GRANTS)
        tried += 1
        statement = writers[number].statement()
        outcome = judges[number].witness.run(statement)
        if outcome.error is not None and not RUNS.search(outcome.error):
            continue
        prepared += 1
        found = judges[number].checker.check(statement)
        verdicts[number, bool(outcome.denied), bool(found)] += 1
        left = judges[number].unexplained(outcome.denied, found)
        assert not left, f"{left}: {statement}: {list(map(str, found))}"
        if accepts(judges[number].matcher, statement):
            masked[number] += 1
            left = judges[number].not_for_masks(outcome.denied)
            assert not left, f"{left}: {statement}"
    for number in range(len(GRANTS)):
        passed, flagged = verdicts[number, False, False], verdicts[number, True, True]
        assert min(passed, flagged, masked[number]) > count // 20, (verdicts, masked)


@pytest.mark.parametrize("renaming", [False, True], ids=["plain", "keywords"])
def test_what_sqlite_reports_is_flagged(renaming: bool) -> None:
    check(seed=31, count=600, renaming=renaming)


@pytest.mark.full
@pytest.mark.parametrize("renaming", [False, True], ids=["plain", "keywords"])
def test_what_sqlite_reports_is_flagged_at_length(renaming: bool) -> None:
    check(seed=32, count=30_000, renaming=renaming)


def test_the_judge_would_notice() -> None:
    """A checker of an administrator passes what the witness of a lesser role denies."""
    judge = Judge(0, {})
    statement = "SELECT ssn AS x FROM users ORDER BY +x"
    denied = judge.witness.run(statement).denied
    assert (sqlite3.SQLITE_READ, "users", "ssn") in denied
    admin = SemanticChecker(judge.checker.access.catalog, Role.admin())
    assert judge.unexplained(denied, admin.check(statement)) == denied
    assert judge.unexplained(denied, judge.checker.check(statement)) == []
    assert judge.unexplained(denied, judge.checker.check("SELECT bonus FROM orders")) == denied

    assert judge.not_for_masks(denied) == []
    assert judge.not_for_masks(judge.witness.run("SELECT bonus FROM salaries").denied)
    assert judge.not_for_masks(judge.witness.run("DELETE FROM users").denied)


def test_rowids_of_views_are_found_before_names_of_results() -> None:
    checker = Judge(0, {}).checker
    assert checker.check("SELECT note AS rowid FROM notes ORDER BY -rowid")
    assert not checker.check("SELECT note AS rowid FROM notes ORDER BY rowid")
