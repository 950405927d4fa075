"""The demo, smaller."""

from __future__ import annotations

import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("sqlglot")

from glrgrid import grammars
from glrgrid.demo import __main__ as command
from glrgrid.demo.corpus import statements
from glrgrid.demo.experiment import run
from glrgrid.demo.judges import LarkJudge, parses_with_sqlglot


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
    result = run(count=20, seed=1)
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


def test_the_command_prints_what_it_proved(capsys):
    assert command.main(["--count", "20"]) == 0
    printed = capsys.readouterr().out
    verdict = next(line for line in printed.splitlines() if line.startswith("valid: "))
    assert verdict.split()[-2] == "20"
    for word in ("artifact: ", "compile", "p50", "p99", "mask, while decoding", "commit, while decoding"):
        assert word in printed
