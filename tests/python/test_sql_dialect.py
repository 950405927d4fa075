"""The dialect of SQLite beside SQLite itself."""

from __future__ import annotations

import random
import re
import sqlite3
import string

import pytest
from sql_support import Sampler, accepts, bytes_vocab, database, syntax_error

import glrgrid as gg
from glrgrid.errors import GrammarError
from glrgrid.sql import Dialect
from glrgrid.sql.projection import without

VALID = """\
SELECT 1
select distinct a, t.b as x, main.t.c y, t.*, * from t as "T" where not a == 1 or b <> 'it''s' and c is not null
SELECT "a""b", `c d`, [e f], x'0aFF', 0x1F, 1., .5e-3, ?1, :p, @q, $r, true FROM "t"
WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c WHERE n < 9) SELECT n FROM c ORDER BY n LIMIT 3, 4
WITH a AS MATERIALIZED (SELECT 1), b(x) AS NOT MATERIALIZED (SELECT 2) SELECT * FROM a, b EXCEPT SELECT 1, 2
SELECT a FROM t JOIN u ON t.a = u.a LEFT OUTER JOIN v USING (a, b), w CROSS JOIN x NATURAL FULL JOIN (y INNER JOIN z)
SELECT a FROM (SELECT b FROM u UNION SELECT 2) v, json_each(v.b, '$') WHERE (a, b) IN (VALUES (1, 2)) AND c IN t
SELECT count(*), count(DISTINCT a), sum(a) FILTER (WHERE a > 1) OVER w, rank() OVER (PARTITION BY a ORDER BY b DESC \
NULLS LAST) FROM t GROUP BY a HAVING count(*) > 1 WINDOW w AS (x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES)
SELECT CASE a WHEN 1 THEN 'x' ELSE NULL END, CAST(b AS decimal(10, -2)), iif(a, b, c), EXISTS (SELECT 1) FROM t
SELECT a LIKE b || '%' ESCAPE '\\' , a NOT GLOB b, a BETWEEN b AND c AND d, a NOT IN (), a ISNULL, a NOT NULL, -+~a
SELECT a IS NOT DISTINCT FROM b, a COLLATE nocase, a -> '$.x' ->> 0, a << 1 | 2 & 3, NOT a = NOT b, current_date
SELECT desc, key, left, first key FROM conflict AS current, rows AS "x y", over ORDER BY desc DESC NULLS FIRST
SELECT replace(a, 'b', 'c'), [count](*), glob(a, b), t.'a', 't'."b" 'label' FROM 't' 'alias'
INSERT INTO t VALUES (1, 'x'), (2, NULL) ON CONFLICT (a, b COLLATE nocase DESC) WHERE a DO UPDATE SET b = excluded.b \
WHERE b < 9 ON CONFLICT DO NOTHING RETURNING *, a AS b
INSERT OR IGNORE INTO main.t AS x (a, "b c") SELECT a, b FROM u WHERE true ON CONFLICT DO UPDATE SET (a, b) = (1, 2)
REPLACE INTO t DEFAULT VALUES RETURNING a
WITH v AS (SELECT 1) UPDATE OR ROLLBACK t AS x SET a = a + 1, (b, c) = (SELECT 1, 2) FROM u WHERE x.a RETURNING x.a
WITH v AS (SELECT 1) DELETE FROM main.t AS x WHERE a IN v RETURNING *
""".splitlines()

INVALID = """\
SELECT
SELECT a FROM
SELECT a b c FROM t
SELECT a FROM t WHERE a = = 1
SELECT a FROM t; SELECT b FROM t
SELECT a FROM t;;
SELECT a BETWEEN 1 OR 2 AND 3
SELECT 12abc
SELECT 1--2
SELECT x'0'
SELECT a /* no comments */ FROM t
SELECT a FROM t ON CONFLICT DO NOTHING
INSERT INTO t SELECT a FROM u ON CONFLICT DO NOTHING
SELECT a FROM table
SELECT a table FROM t
SELECT 1 left
VALUES (1) LIMIT 1
VALUES (1) UNION SELECT 2 LIMIT 1 UNION SELECT 3
SELECT a FROM t USING (a)
SELECT main.t.* FROM t
SELECT (SELECT a FROM t
EXPLAIN SELECT 1
CREATE TABLE t (a)
PRAGMA user_version
ATTACH 'x' AS y
BEGIN
""".splitlines()


@pytest.fixture(scope="module")
def grammar() -> gg.Grammar:
    dialect = Dialect.load("sqlite")
    return gg.Grammar(without(dialect.ir, {"limited_select"}, "the test"))


@pytest.fixture(scope="module")
def matcher(grammar: gg.Grammar) -> gg.Matcher:
    return gg.Matcher(gg.compile(grammar, bytes_vocab()))


@pytest.mark.parametrize("statement", VALID)
def test_valid(matcher: gg.Matcher, statement: str) -> None:
    assert accepts(matcher, statement)
    assert syntax_error(database(), f"{statement};") is None


@pytest.mark.parametrize("statement", INVALID)
def test_invalid(matcher: gg.Matcher, statement: str) -> None:
    assert not accepts(matcher, statement)


def test_derivations_are_accepted_and_parse_in_sqlite(grammar: gg.Grammar, matcher: gg.Matcher) -> None:
    """Masks accept what the grammar derives, and SQLite finds no fault in the syntax of any of it."""
    rng = random.Random(5)
    sampler = Sampler(grammar.ir, rng, fresh=0.85)
    connection = database()
    for _ in range(700):
        statement = sampler.statement(length=rng.choice([20, 60, 150]))
        assert accepts(matcher, statement), statement
        assert (error := syntax_error(connection, statement)) is None, f"{error}: {statement}"
    assert sampler.coverage() >= 0.9, sampler.unused()


def test_mutations_are_judged_as_sqlite_does(matcher: gg.Matcher) -> None:
    """Of statements with a few lexemes changed, none is accepted that SQLite's parser rejects, and few the other way.

    Those few are what the grammar leaves out, see the head of sqlite.lark, and texts that parse but mean nothing.
    """
    rng, connection = random.Random(6), database()
    lexemes = [re.findall(r"'[^']*'|\"[^\"]*\"|\w+|[^\w\s]", s) for s in VALID]
    pool = sorted({lexeme for line in lexemes for lexeme in line})
    counts = {(a, b): 0 for a in (False, True) for b in (False, True)}
    for _ in range(4_000):
        changed = list(rng.choice(lexemes))
        for _ in range(rng.randint(1, 2)):
            at = rng.randrange(len(changed))
            changed[at : at + rng.randint(0, 1)] = rng.sample(pool, rng.randint(0, 1))
        statement = f"{' '.join(changed)};"
        accepted, parses = accepts(matcher, statement), syntax_error(connection, statement) is None
        counts[accepted, parses] += 1
        assert parses or not accepted, statement
    assert counts[True, True] > 500
    assert counts[False, False] > 1_000
    assert counts[False, True] < 120


def test_keywords_are_names_where_they_are_in_sqlite(matcher: gg.Matcher) -> None:
    """Every keyword, as a column, after AS, as an alias without AS, and quoted."""
    connection = sqlite3.connect(":memory:")
    words = sorted(Dialect.load("sqlite").keywords | {"key", "view", "true", "rowid"})
    assert len(words) > 100
    for word in words:
        for shape in (
            "SELECT 1 AS {};",
            "SELECT 1 {};",
            "SELECT x.{} FROM (SELECT 1) AS x;",
            'SELECT 1 AS "{}";',
        ):
            statement = shape.format(word)
            accepted, parses = accepts(matcher, statement), syntax_error(connection, statement) is None
            stricter = word in ("over", "filter", "window") and shape == "SELECT 1 {};"
            assert accepted == (parses and not stricter), statement


def test_lexemes_end_where_sqlite_ends_them(matcher: gg.Matcher) -> None:
    rng, connection = random.Random(7), sqlite3.connect(":memory:")
    for _ in range(3_000):
        text = "".join(
            rng.choices(
                "0123456789exX.abf'\"[]`_$?:@-+><|&~% " + string.ascii_letters[:4], k=rng.randint(1, 7)
            )
        )
        statement = f"SELECT {text};"
        accepted, parses = accepts(matcher, statement), syntax_error(connection, statement) is None
        left_out = (
            "--" in text or "$" in text or re.search(r"\?[0-9]", text)
        )  # or rejected with another message
        assert accepted == parses or (left_out and not accepted), statement


def test_names_are_what_sqlite_reads(matcher: gg.Matcher) -> None:
    """A word that is accepted as a label is the label that SQLite gives, to the last byte: nothing of it is skipped."""
    rng, connection = random.Random(8), sqlite3.connect(":memory:")
    odd = "\ufeff\u00a0\u2003\u200b\u0301\ufefe\uff00ÄſK\x7f\x85é𝔸\U0010ffff$_a1"
    accepted = 0
    for _ in range(2_000):
        word = "".join(rng.choices(odd, k=rng.randint(1, 4)))
        for statement in (f"SELECT 1 AS {word};", f"SELECT 1 {word};"):
            if accepts(matcher, statement):
                accepted += 1
                assert connection.execute(statement).description[0][0] == word, ascii(word)
    assert accepted > 1_000
    assert not accepts(matcher, "SELECT 1 FROM \ufeffsqlite_master")


def test_unknown_dialect() -> None:
    with pytest.raises(GrammarError, match='no SQL dialect "oracle"; there are: sqlite'):
        Dialect.load("oracle")
