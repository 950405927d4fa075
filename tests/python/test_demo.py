"""The demo, smaller."""

from __future__ import annotations

import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("sqlglot")

from glrgrid import grammars
from glrgrid.demo import __main__ as command
from glrgrid.demo.corpus import TABLES, statements
from glrgrid.demo.experiment import run
from glrgrid.demo.judges import LarkJudge, parses_with_sqlglot
from glrgrid.demo.roles import ROLES, Controls, RoleResult, Ruled, database, run_roles
from glrgrid.demo.witness import Outcome, Witness
from glrgrid.sql import Catalog, Role


@pytest.fixture(scope="module")
def lark():
    return LarkJudge(grammars.load("sql_core"))


def test_the_corpus_is_sql_and_seeded(lark):
    corpus = statements(200, seed=7)
    assert corpus == statements(200, seed=7) != statements(200, seed=8)
    assert len(set(corpus)) > 150
    assert [text for text in corpus if not (lark.accepts(text) and parses_with_sqlglot(text))] == []


def test_the_judges_refuse(lark):
    for text in ("SELECT a FROM", "SELECT a FROM t WHERE (b = 1", "SELECT 'a", "SELECT a FROM t)", ""):
        assert not lark.accepts(text)
        assert not parses_with_sqlglot(text)
    for text in ("SELECT a FROM t; DELETE FROM t", "DROP TABLE t"):
        assert not lark.accepts(text)
    for text in ("SELECT a FROM t -- and so on", "select \"A\" from T where x = 'it''s';"):
        assert lark.accepts(text)
        assert parses_with_sqlglot(text)


def test_every_masked_statement_is_finished_and_valid():
    result = run(count=20, seed=command.SEED)
    assert len(result.masked) == len(result.free) == 20
    assert [judged for judged in result.masked if not judged.valid] == []
    assert any(not judged.valid for judged in result.free)
    assert result.artifact_bytes > 0
    assert len(result.first_pass.mask) >= len(result.best_pass.mask) == len(result.best_pass.commit) > 200
    assert all(best <= 10_000_000 for best in result.best_pass.mask)


def test_a_run_can_be_repeated():
    once, again = run(count=5, seed=3), run(count=5, seed=3)
    assert [judged.output for judged in once.masked] == [judged.output for judged in again.masked]
    assert [judged.output for judged in once.free] == [judged.output for judged in again.free]


def test_the_corpus_is_about_the_shop():
    catalog = Catalog.from_sqlite(database())
    assert {table.name: [c.name for c in table.columns] for table in catalog.tables} == TABLES
    assert all(f" {table}" in text for table in TABLES for text in statements(30, seed=2, about=table))
    witness = Witness(database(), ROLES[-1])
    outcomes = [witness.run(text) for text in statements(300, seed=3)]
    assert [outcome for outcome in outcomes if outcome.denied or outcome.error] == []


def test_roles_touch_nothing_that_they_may_not():
    results = run_roles(count=15, seed=4)
    assert [result.role.name for result in results] == ["analyst", "clerk", "admin"]
    for result in results:
        assert result.failures == []
        assert sum(ruled.verdict == "ran" for ruled in result.masked) == len(result.free) == 15
        assert result.controls.hidden >= 3 and result.controls.granted >= 13
    analyst, clerk, _ = results
    assert any(ruled.verdict == "denied" for ruled in analyst.free)
    assert any(ruled.verdict == "syntax" for ruled in clerk.free)
    assert analyst.controls.hidden >= 40, "each column, and each way to change each table"


def test_what_must_not_happen_is_a_failure():
    """Each kind of it; the exit code depends on them."""
    [analyst] = run_roles(count=1, seed=5, roles=ROLES[:1])
    ran = next(ruled for ruled in analyst.masked if ruled.verdict == "ran")
    leak = Ruled(ran.output, False, Outcome(denied=[(20, "customers", "email")]))
    for masked, controls, words in (
        ([ran, leak], Controls(), "1 statements decoded under masks touch what the role may not"),
        (
            [ran, Ruled(ran.output, False, Outcome("near x: syntax error"))],
            Controls(),
            "1 statements decoded under masks are no SQL",
        ),
        ([], Controls(), "1 statements are missing"),
        ([ran, Ruled(ran.output, True, leak.outcome)], Controls(), "and the checker passes them"),
        ([ran], Controls(1, 0, ["employees.salary"]), "controls that failed: employees.salary"),
    ):
        failures = RoleResult(analyst.role, 0.0, masked, analyst.free, controls).failures
        assert any(words in failure for failure in failures), failures


def test_the_witness_excuses_what_views_read_and_nothing_else():
    connection = database()
    connection.execute("CREATE VIEW staff AS SELECT first_name, salary FROM employees")
    witness = Witness(connection, Role("r", {"staff": "*", "orders": ["id"]}))
    for text in ("SELECT salary FROM staff", "SELECT count(*) FROM orders", "SELECT id FROM orders"):
        first = witness.run(text)
        assert first.error is None and not first.denied and witness.run(text) == first, text
    for text in (
        "SELECT salary FROM employees",
        "WITH staff AS (SELECT id FROM employees) SELECT id FROM staff",
        "WITH c AS (SELECT total FROM orders) SELECT 1 FROM c",
        "SELECT count(*) FROM employees",
        "SELECT rowid FROM employees",
        "SELECT sql FROM sqlite_master",
        "SELECT randomblob(9)",
        "INSERT INTO orders (id) VALUES (1)",
        "UPDATE orders SET id = 2",
        "DELETE FROM orders",
        "DROP TABLE orders",
        "PRAGMA user_version",
    ):
        assert witness.run(text).denied, text
    assert witness.run("SELECT id FROM orders ORDER BY").syntax_error
    assert witness.run("SELECT count(*) FROM orders").error is None, "nothing was dropped"


def test_an_error_whose_message_is_no_text_is_an_error():
    """SQLite quotes the path, which is no UTF-8."""
    outcome = Witness(database(), ROLES[-1]).run("SELECT '{\"a\": 1}' ->> x'5bce';")
    assert outcome.error and not outcome.denied
    assert Witness(database(), ROLES[-1]).run("SELECT 1;").error is None


def test_the_command_prints_what_it_proved(capsys):
    assert command.main(["--count", "20"]) == 0
    printed = capsys.readouterr().out
    ran = next(line for line in printed.splitlines() if line.startswith("ran "))
    assert [ran.split()[i] for i in (1, 3, 5)] == ["20", "20", "20"]
    denied = next(line for line in printed.splitlines() if line.startswith("touch what"))
    assert denied.split()[-6::2] == ["0", "0", "0"]
    verdict = next(line for line in printed.splitlines() if line.startswith("valid: "))
    assert verdict.split()[-2] == "20"
    for word in ("artifact: ", "compile", "p50", "p99", "mask, while decoding", "commit, while decoding"):
        assert word in printed
