"""The checker held against cases, gold queries, another resolver, and SQLite's authorizer."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from sql_support import Sampler, json_lines, text_to_sql_catalogs
from test_sql_policy import (
    ADMIN,
    ANALYST,
    CASES,
    CASES_CATALOG,
    CASES_ROLES,
    CLERK,
    SHARED_CATALOG,
    SHARED_ROLE,
    SHOP,
    access,
    grammar,
    shared_cases,
    witness_of,
)

import glrgrid as gg
from glrgrid.sql import Catalog, Role, SemanticChecker, repair

sqlglot = pytest.importorskip("sqlglot")
OWN = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "corpus" / "sql_checker.jsonl").open(encoding="utf-8")
]
CHECKERS = {name: SemanticChecker(CASES_CATALOG, role) for name, role in CASES_ROLES.items()}


@pytest.mark.parametrize("case", OWN, ids=lambda case: case["sql"])
def test_own_cases(case: dict[str, str]) -> None:
    found = CHECKERS[case["role"]].check(case["sql"])
    assert {v.rule for v in found} == ({case["rule"]} if case["rule"] else set()), list(map(str, found))


def test_what_masks_leave_is_flagged_and_what_is_allowed_passes() -> None:
    for case in CASES:
        found = CHECKERS[case["role"]].check(case["sql"])
        if (
            case["verdict"] != "mask" and case["id"] != "owner-01"
        ):  # SQLite: no such column, of several rowids
            assert bool(found) == (case["verdict"] == "checker"), (case, found)


def test_shared_cases() -> None:
    checker = SemanticChecker(SHARED_CATALOG, SHARED_ROLE)
    for case in shared_cases():
        if not case["verdict"].startswith("deny-or"):
            assert bool(checker.check(case["sql"])) == (case["verdict"] == "deny"), case


def test_positions_and_what_is_allowed_instead() -> None:
    [violation] = CHECKERS["reader"].check('SELECT u.id\n  FROM users u WHERE u."SSN" > 1')
    assert (violation.offset, violation.line, violation.column) == (35, 2, 24)
    assert violation.allowed == ('"home town"', "id", "name")


@pytest.mark.parametrize("sql", ["SELECT {} FROM users", "SELECT u.{} FROM users u", "SELECT 1 FROM {}",
                                 "SELECT 1 FROM users JOIN orders USING ({})", "SELECT {}.id FROM users"])  # fmt: skip
@pytest.mark.parametrize("hidden", ["ssn", "bonus", "salaries", "order_archive"])
def test_hidden_names_read_as_names_that_do_not_exist(sql: str, hidden: str) -> None:
    """What is said is what would be said if the database had nothing that is hidden."""
    shown = [(t.table.name, c) for t in CHECKERS["reader"].access.tables for c in sorted(t.select)]
    role = CASES_ROLES["reader"]
    without = SemanticChecker(Catalog.from_rows(shown), role)
    found = CHECKERS["reader"].check(sql.format(hidden))
    assert found == without.check(sql.format(hidden)) != []
    assert not any(name in v.allowed for v in found for name in ("bonus", "salaries", "order_archive"))


def test_deny_and_row_limit() -> None:
    role = Role("r", {"*": "*"}, deny=["cte", "window", "star"], row_limit=10)
    checker = SemanticChecker(CASES_CATALOG, role)
    assert not checker.check("SELECT id FROM users LIMIT 10")
    for sql, rule in (
        ("SELECT id FROM users", "limit"),
        ("SELECT id FROM users LIMIT 11", "limit"),
        ("SELECT * FROM users LIMIT 1", "clause"),
        ("SELECT count(*) OVER () FROM users LIMIT 1", "clause"),
        ("WITH c AS (SELECT 1) SELECT 1 LIMIT 1", "clause"),
    ):
        assert [v.rule for v in checker.check(sql)] == [rule]
    keeper = SemanticChecker(CASES_CATALOG, Role("k", {"*": "*"}, ["insert", "update"], deny=["replace"]))
    assert not keeper.check("INSERT OR IGNORE INTO orders (id) VALUES (1)")
    for sql in ("REPLACE INTO orders (id) VALUES (1)", "UPDATE OR REPLACE orders SET id = 1"):
        assert {v.rule for v in keeper.check(sql)} == {"clause", "verb"}


def gold(name: str, tables: str) -> list[tuple[Catalog, str]]:
    catalogs = text_to_sql_catalogs(f"sql/{tables}")
    return [(catalogs[row["db_id"]], row["query"].strip()) for row in json_lines(f"sql/{name}")]


def false_alarms(queries: list[tuple[Catalog, str]]) -> list[str]:
    checkers = {id(c): SemanticChecker(c, Role("all", {"*": "*"})) for c, _ in queries}
    return [sql for catalog, sql in queries if checkers[id(catalog)].check(sql)]


def test_no_false_alarm_on_gold_queries() -> None:
    queries = gold("spider_dev_gold.jsonl.gz", "spider_tables.json.gz")
    assert len(queries) == 1034 and not false_alarms(queries)


def test_qualify_finds_the_same_names() -> None:
    """sqlglot's resolver as a second opinion: with a column of each query taken from the catalog, both object."""
    from sqlglot.optimizer.qualify import qualify

    rng = random.Random(5)
    compared = 0
    for catalog, sql in rng.sample(gold("spider_dev_gold.jsonl.gz", "spider_tables.json.gz"), 60):
        names = [c for t in catalog.tables for c in t.columns if c.name.lower() in sql.lower()]
        gone = rng.choice(names).name.lower() if names else "nothing"
        rows = [(t.name, c.name) for t in catalog.tables for c in t.columns if c.name.lower() != gone]
        rows = [r for r in rows if r] + [(t.name, "kept_column") for t in catalog.tables]
        schema: dict[str, dict[str, str]] = {}
        for table, column in rows:
            schema.setdefault(table.lower(), {})[column.lower()] = "text"
        try:
            qualify(sqlglot.parse_one(sql, read="sqlite"), schema=schema, dialect="sqlite")
            objects = False
        except sqlglot.errors.OptimizeError:
            objects = True
        found = SemanticChecker(Catalog.from_rows(rows), Role("all", {"*": "*"})).check(sql)
        if '"' not in sql:  # SQLite alone takes "x" for a string
            compared += 1
            assert bool(found) == objects, (gone, sql, found)
    assert compared > 30


def check_witness(role: Role, count: int, seed: int) -> None:
    """Of what anyone may say, SQLite denies nothing that the checker passes."""
    sampler = Sampler(grammar(ADMIN).ir, random.Random(seed), fresh=0.02, access=access(ADMIN))
    checker, witness = SemanticChecker(SHOP, role), witness_of(role)
    judged = passed = 0
    while judged < count:
        statement = sampler.statement(depth=12, length=25)
        outcome = witness.run(statement)
        if outcome.error is None:
            judged += 1
            if not checker.check(statement):
                passed += 1
                assert not outcome.denied, f"{outcome.denied}: {statement}"
    assert passed >= 0.02 * judged


@pytest.mark.parametrize("role", [ANALYST, CLERK], ids=lambda role: role.name)
def test_sqlite_denies_nothing_that_passes(role: Role) -> None:
    check_witness(role, 150, seed=21)


@pytest.mark.full
@pytest.mark.parametrize("role", [ANALYST, CLERK], ids=lambda role: role.name)
def test_sqlite_denies_nothing_that_passes_at_length(role: Role) -> None:
    check_witness(role, 10_000, seed=22)


def test_mutated_statements_never_raise(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever the text, there is a list; what passes is a statement for SQLite or fails by names alone."""
    rng = random.Random(6)
    pieces = [
        "(",
        ")",
        ",",
        "'",
        '"',
        "[",
        ";",
        "--",
        "ssn",
        "users",
        ".",
        "*",
        "SELECT ",
        " FROM ",
        "\0",
        "😀",
        " x ",
    ]
    for case in [*OWN, *CASES]:
        for _ in range(3):
            at, text = rng.randrange(len(case["sql"])), case["sql"]
            mutated = text[:at] + rng.choice(pieces) + text[at + rng.randrange(4) :]
            CHECKERS[case["role"]].check(mutated)
    assert CHECKERS["reader"].check("SELECT " + "(" * 5000 + "1" + ")" * 5000)
    assert not caplog.records


def test_repair_quotes_the_violations_and_asks_once_more() -> None:
    asked = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return "SELECT ssn FROM users" if len(asked) % 2 else "SELECT name FROM users"

    assert repair(model, "names", CHECKERS["reader"]) == "SELECT name FROM users"
    assert len(asked) == 2 and 'allowed: "home town", id, name' in asked[1] and asked[1].startswith("names")
    with pytest.raises(gg.PolicyError, match='refused twice: line 1, column 8: "ssn" is no column'):
        repair(lambda prompt: "SELECT ssn FROM users", "names", CHECKERS["reader"])
