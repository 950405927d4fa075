"""Policies held against judges that know nothing of masks: cases, SQLite's parser, its authorizer, and a speller."""

from __future__ import annotations

import functools
import json
import random
from collections import Counter
from pathlib import Path

import pytest
from sql_support import Sampler, accepts, bytes_vocab, data, database, matcher, syntax_error

import glrgrid as gg
from glrgrid.demo.witness import Witness
from glrgrid.sql import Access, Catalog, Dialect, Grant, Role, fold
from glrgrid.sql.probe import Report, probe

SQLITE = Dialect.load("sqlite")
SHOP = Catalog.from_sqlite(database())
ANALYST = Role(
    "analyst", {"customers": ["id", "name", "city"], "orders": "*", "items": "*", "big_orders": "*"}
)
READER = Role("reader", {"customers": "*", "orders": "*", "items": "*"})
CLERK = Role(
    "clerk",
    {
        "items": "*",
        "customers": Grant(select=["id", "name"]),
        "orders": Grant("*", ["customer_id", "total"], ["total"]),
    },
    ["select", "insert", "update", "delete"],
)
ADMIN = Role.admin()
ROLES = {role.name: role for role in (ANALYST, READER, CLERK, ADMIN)}


@functools.cache
def access(role: Role) -> Access:
    return Access.of(role, SHOP, SQLITE)


@functools.cache
def grammar(role: Role) -> gg.Grammar:
    return gg.Grammar.from_sql("sqlite", role, SHOP)


@functools.cache
def matcher_of(role: Role) -> gg.Matcher:
    return matcher(grammar(role))


# Cases


CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "corpus" / "sql_policy.jsonl").open(encoding="utf-8")
]
CASES_CATALOG = Catalog.from_rows(
    [
        ("users", "id"), ("users", "name"), ("users", "ssn"), ("users", "home town"),
        ("orders", "id"), ("orders", "ssn"), ("orders", "note"), ("orders", "amount"),
        ("salaries", "id"), ("salaries", "amount"), ("salaries", "bonus"),
        ("order_archive", "id"), ("desc", "key"), ("a]b", "x\"y"),
    ]
)  # fmt: skip
CASES_ROLES = {
    "reader": Role("reader", {"users": ["id", "name", "home town"], "orders": "*"},
                   functions=["count", "sum", "avg", "min", "max", "lower", "upper", "coalesce", "like"]),
    "clerk": Role("clerk", {"orders": Grant("*", ["id", "note"], ["note"], True), "users": Grant(["id"])},
                  ["select", "insert", "update", "delete"]),
    "owner": Role("owner", {"users": "*", "orders": "*", "desc": "*", "a]b": "*"}, implicit_columns=True),
}  # fmt: skip


@functools.cache
def cases_matcher(role: str) -> gg.Matcher:
    return matcher(gg.Grammar.from_sql("sqlite", CASES_ROLES[role], CASES_CATALOG))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_cases(case: dict[str, str]) -> None:
    """``allow``: accepted; ``mask``: refused here; ``checker``: accepted here, to be refused once it is complete."""
    m = cases_matcher(case["role"])
    assert accepts(m, case["sql"]) == (case["verdict"] != "mask")


def test_there_are_cases_enough() -> None:
    verdicts = Counter(case["verdict"] for case in CASES)
    assert len(CASES) >= 60 and min(verdicts["allow"], verdicts["mask"], verdicts["checker"]) >= 8
    assert len({case["id"] for case in CASES}) == len({(c["role"], c["sql"]) for c in CASES}) == len(CASES)


SHARED_CATALOG = Catalog.from_rows(
    (table, column)
    for table, columns in (
        ("users", "id name ssn"),
        ("orders", "id ssn note amount"),
        ("salaries", "id amount"),
    )
    for column in columns.split()
)
SHARED_ROLE = Role(
    "reader",
    {"users": ["id", "name"], "orders": "*"},
    functions=["count", "sum", "avg", "min", "max", "lower", "upper", "coalesce"],
)


def shared_cases() -> list[dict[str, str]]:
    """What people tried elsewhere. ``layer``: what has to refuse it; ``-``: not of this dialect."""
    lines = data("cases/rbac_cases.jsonl").read_text("utf-8").splitlines()
    return [case for case in map(json.loads, lines) if case["layer"] not in ("-", "engine error")]


def test_shared_cases() -> None:
    m = matcher(gg.Grammar.from_sql("sqlite", SHARED_ROLE, SHARED_CATALOG))
    refused = 0
    for case in shared_cases():
        accepted = accepts(m, case["sql"])
        if case["layer"].startswith("mask"):
            assert not accepted, case
            refused += 1
        elif case["verdict"] == "allow":
            assert accepted, case
    assert refused >= 20


# SQLite's parser


def check_soundness(role: Role, count: int, seed: int, coverage: float) -> None:
    rng = random.Random(seed)
    sampler = Sampler(grammar(role).ir, rng, fresh=0.85)
    connection, m = database(), matcher_of(role)
    for _ in range(count):
        statement = sampler.statement(depth=30, length=rng.choice([15, 40, 120]))
        assert accepts(m, statement), statement
        assert (error := syntax_error(connection, statement)) is None, f"{error}: {statement}"
    assert sampler.coverage() >= coverage, sampler.unused()


@pytest.mark.parametrize("role", ["analyst", "clerk"])
def test_what_masks_accept_parses_in_sqlite(role: str) -> None:
    check_soundness(ROLES[role], 500, seed=11, coverage=0.85)


@pytest.mark.full
@pytest.mark.parametrize("role", ROLES)
def test_what_masks_accept_parses_in_sqlite_at_length(role: str) -> None:
    check_soundness(ROLES[role], 10_000, seed=12, coverage=0.95)


# SQLite's authorizer


@functools.cache
def witness_of(role: Role) -> Witness:
    return Witness(database(), role)


def check_witness(role: Role, count: int, seed: int) -> None:
    """Of ``count`` statements that run, four of five read a column; what runs beyond that is judged too."""
    sampler = Sampler(grammar(role).ir, random.Random(seed), fresh=0.02, access=access(role))
    witness, m = witness_of(role), matcher_of(role)
    ran = reading = 0
    while ran < count or reading < 0.8 * count:
        statement = sampler.statement(depth=12, length=25)
        outcome = witness.run(statement)
        if outcome.error is None:
            ran += 1
            reading += outcome.reads > 0
            assert accepts(m, statement), statement
        assert not outcome.denied, f"{outcome.denied}: {statement}"
        assert ran < 2 * count, "changes often read nothing, but not all"


@pytest.mark.parametrize("role", ["analyst", "clerk"])
def test_sqlite_finds_nothing_denied(role: str) -> None:
    check_witness(ROLES[role], 150, seed=13)


@pytest.mark.full
@pytest.mark.parametrize("role", ["analyst", "reader", "clerk"])
def test_sqlite_finds_nothing_denied_at_length(role: str) -> None:
    check_witness(ROLES[role], 10_000, seed=14)


def test_the_witness_sees_every_hidden_object() -> None:
    """Positive controls: the administrator can say what reads each hidden object, and the witness would object."""
    witness, admin, analyst = witness_of(ANALYST), matcher_of(ADMIN), matcher_of(ANALYST)
    seen = set()
    for table in access(ANALYST).tables:
        name = table.table.name.replace('"', '""')
        for column in table.table.columns:
            statement = f'SELECT "{name}"."{column.name.replace(chr(34), chr(34) * 2)}" FROM "{name}";'
            hidden = fold(column.name) not in table.select
            for whole in (statement, f"WITH c AS ({statement[:-1]}) SELECT 1 FROM c;"):
                outcome = witness.run(whole)
                assert accepts(admin, whole) and outcome.error is None, whole
                assert bool(outcome.denied) == hidden == (not accepts(analyst, whole)), whole
            seen.add(hidden)
    for statement in ("SELECT rowid FROM orders", "SELECT load_extension('x')", "SELECT name FROM sqlite_master",
                      "DELETE FROM orders", "UPDATE orders SET total = 1", "INSERT INTO items VALUES (1, 2, 3, 4)",
                      "SELECT * FROM salaries", "SELECT count(*) FROM salaries", "PRAGMA user_version"):  # fmt: skip
        assert witness.run(statement).denied or statement == "SELECT rowid FROM orders", statement
        assert not accepts(analyst, statement), statement
    assert seen == {True, False}


# The speller


def check_probe(role: Role, vocab: gg.Vocab, pairs: int) -> None:
    report = probe(access(role), gg.compile(grammar(role), vocab), vocab)
    assert not report.bypasses and not report.silent
    assert len(report.pairs) >= pairs
    kinds = {kind for _, kind in report.pairs}
    assert kinds == {"relation", "column", "implicit column", "system relation", "function", "schema"}


def test_no_token_path_spells_a_forbidden_name() -> None:
    check_probe(CLERK, gg.Vocab.default(), 150)


@pytest.mark.full
@pytest.mark.parametrize("role", ["analyst", "reader", "clerk"])
def test_no_token_path_of_a_large_vocabulary_spells_a_forbidden_name(role: str) -> None:
    check_probe(ROLES[role], gg.Vocab.from_file(data("vocabs/llama3.tokenizer.json")), 100)


def test_the_speller_finds_every_hidden_object() -> None:
    """Positive controls: behind the masks of the administrator, it spells all that is hidden from the analyst."""
    report: Report = probe(access(ANALYST), gg.compile(grammar(ADMIN), bytes_vocab()), bytes_vocab())
    spelt = {(b.kind, b.text.lower().strip("\"'`[]")) for b in report.bypasses}
    assert {("relation", "salaries"), ("relation", "orders_audit"), ("relation", "key")} <= spelt
    assert {
        ("column", c) for c in ("card number", "employee", "amount", "quantity_before", "left", "desc")
    } <= spelt
