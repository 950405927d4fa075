"""The bundled grammars: what they accept, and that Lark reads the same thing in them."""

from __future__ import annotations

import gzip
import json
import logging
import os
import re
from functools import cache
from pathlib import Path

import lark
import pytest

import glrgrid as gg
from glrgrid.errors import GrammarError
from glrgrid.grammar import Grammar
from glrgrid.grammar.ir import GrammarIR
from glrgrid.grammars import load, names

SQL_VALID = """\
SELECT 1
SELECT * FROM t;
select distinct a, t.b as x, t.* from s.t as t where not a = 1 or b <> 'it''s' and c is not null
SELECT "a""b", `c d`, [e f] FROM "t" -- trailing comment
SELECT /* ** inner */ count(*), count(DISTINCT a), sum(ALL b) n FROM t GROUP BY a HAVING count(*) > 1
SELECT a FROM t1 JOIN t2 ON t1.a = t2.a LEFT OUTER JOIN t3 USING (a, b), t4 CROSS JOIN t5 NATURAL JOIN t6
SELECT a FROM (SELECT b AS a FROM u) AS v (a) FULL JOIN (t RIGHT JOIN w ON t.x = w.x) ON v.a = t.a
SELECT a FROM t UNION ALL SELECT b FROM u EXCEPT VALUES (1, 'x'), (2, NULL) ORDER BY 1 DESC NULLS LAST LIMIT 5
SELECT a FROM t JOIN u JOIN v ON t.a = v.a JOIN w WHERE a IN (SELECT b FROM x JOIN y)
INSERT INTO t SELECT a FROM u JOIN v ON u.a = v.a ON CONFLICT DO NOTHING
INSERT INTO t (SELECT a FROM u JOIN v) ON CONFLICT DO NOTHING
(SELECT a FROM t ORDER BY a LIMIT 1) UNION (SELECT b FROM u) LIMIT 3, 4
WITH RECURSIVE c (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c WHERE n < 9) SELECT n FROM c
WITH recursive AS (SELECT 1) SELECT * FROM recursive
SELECT CASE WHEN a THEN 1 END, CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'y' ELSE NULL END FROM t
SELECT CAST(a AS NUMERIC(10, 2)), CAST(b AS double precision), DATE '2024-01-01' FROM t
SELECT rank() OVER (PARTITION BY a, b ORDER BY c DESC), sum(d) OVER w FROM t
SELECT sum(a) OVER (ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t
SELECT sum(a) OVER (RANGE UNBOUNDED PRECEDING) FROM t
SELECT a FROM t WHERE a IN (1, 2) AND b NOT IN (SELECT c FROM u) AND (a, b) IN ((1, 2)) AND EXISTS (SELECT 1)
SELECT a FROM t WHERE a NOT LIKE '%x!%' ESCAPE '!' AND b NOT BETWEEN 1 AND 2 + 3 AND d ISNULL
SELECT -a + +b - -4 * 2.5e-3 / .5 % 7 || 'x' = (1 + 2) == 3 != 4 <= 5 FROM t
SELECT last, first, rows.range FROM conflict AS current WHERE ? = :name OFFSET 3
INSERT INTO t VALUES (1, DEFAULT, 'x'), (2, NULL, '')
INSERT INTO s.t (a) SELECT a FROM u ON CONFLICT (a) DO UPDATE SET b = t.b + 1 WHERE t.b < 9 RETURNING *
INSERT INTO t AS x (a) (SELECT b FROM u) ON CONFLICT DO NOTHING
insert into t default values returning a as b, c
UPDATE t AS x SET a = a + 1, (b, c) = (1, 2), d = DEFAULT FROM u WHERE u.a = x.a RETURNING x.a
WITH v AS (SELECT 1 AS a) DELETE FROM t AS x USING v JOIN u ON v.a = u.a WHERE x.a = v.a RETURNING x.*
SELECT naïve, größe FROM "tábla" WHERE x = 'ß'
""".splitlines()

SQL_INVALID = """\
SELECT
SELECT a FROM
SELECT a b c FROM t
SELECT a FROM t WHERE a = = 1
SELECT a FROM t; SELECT b FROM t
SELECT count(* FROM t
SELECT a FROM t GROUP a
SELECT CASE a ELSE 1 END FROM t
SELECT select FROM t
SELECT 'open FROM t
INSERT INTO t (a, b VALUES (1, 2)
INSERT INTO t SELECT a FROM u JOIN v ON CONFLICT DO NOTHING
UPDATE t SET a b
DELETE t WHERE a = 1
DROP TABLE t
SELECT a FROM t WHERE a IN 1, 2
SELECT sum(a) OVER (ROWS BETWEEN 1 PRECEDING) FROM t
""".splitlines()

JSON_VALID = [
    *("{}", " [ ] ", "0", "-1.5e+10", "[1,2 ,3]", "false", '"é\x7f😀"', '"a\\"\\\\\\/\\b\\u00eF"'),
    '{"a": [1, {"b": null}], "c": true}',
]
JSON_INVALID = [
    *("", "[1,]", "{a: 1}", "01", "1.", ".5", "+1", "-", "NaN", "nul", "'a'", "[1 2]", "{} {}"),
    *('"\t"', '"\\x"', '"\\u12"', '{"a":1,}'),
]

CALC_VALID = ["1", "-x^2 * (3.5e2 + f(1, g())) / --2", " a - b\n- c ", "2^-3^2"]
CALC_INVALID = ["", "1 +", "()", "2 3", "f(,)", "a ** b", "+1"]

SCRIPT_VALID = [
    "",
    "let x: int = 1; const y; x = x + 1; y += [1, 2][0];",
    "fn f(a, b: list<[int]> = [], c = 1) -> map<text, int> { return a ** -b * 2 % c; } // done",
    "if (a) b(); else if (not c or d and e != f) { ; } else g();",
    "while (x < 10) x = x + 1; do { x -= 1; } while (x > 0);",
    "for (x in xs) { if (x in seen) continue; if (x not in known) break; }",
    "try { f(); } catch (e) { throw e; } finally { g(); }\ntry {} finally {}",
    "switch (x + 1) { case 1: case 2: f(); default: { g(); } }",
    "let f = (a, b) => a + b; let g = x => { return x; }; let h = () => 1; let t = (a, b);",
    "f((a, b), (a, b) => (a), ...rest).in[1 ..][.. 2][..](x => y => x ? y : z);",
    "let m = #{if: 1, [k + 1]: #{}, while: [x * x for x in xs if x]}; m.return.for = 'a' \"b\\n\" '\\'';",
    "in = 1; in = in + in in in; /* ** / */",
    "iff = 1; ifx(1); elsewhere = fnord;",
]
SCRIPT_INVALID = {
    "x = 1": 5,
    "let 1 = x;": 4,
    "x = (1, 2) => 3;": 12,
    "(a, b = 2);": 10,
    "fn (a) {}": 3,
    "else f();": 5,
    "if a { }": 3,
    "try { }": 7,
    "f(1,);": 4,
    "x = [1 for y];": 12,
    "a + b = c;": 7,
    "'open": 5,
    "/* open": 7,
    "#{1: 2};": 2,
    "a.1;": 2,
}


class _Reader:
    """Lexes by the IR's terminals (longest match, then rank); parses its productions with Lark's LALR(1)."""

    def __init__(self, ir: GrammarIR) -> None:
        from glrgrid.reference.regex import compile_expr

        self.terminals = [(i, t, compile_expr(t.expr)) for i, t in enumerate(ir.terminals)]
        rules: dict[int, list[str]] = {}
        for production in ir.productions:
            symbols = (f"T{s}" if s >= 0 else f"n{~s}" for s in production.rhs)
            rules.setdefault(production.lhs, []).append(" ".join(symbols))
        text = "".join(f"n{lhs}: {' | '.join(bodies)}\n" for lhs, bodies in rules.items())
        text += "".join(f'T{i}: "<{i}>"\n' for i in range(len(ir.terminals)))
        reader = self

        class Lexer(lark.lexer.Lexer):
            def __init__(self, conf) -> None:
                pass

            def lex(self, data):
                return reader.tokens(str(data).encode())

        self.parser = lark.Lark(text, start=f"n{ir.start}", parser="lalr", lexer=Lexer, debug=True)

    def tokens(self, data: bytes):
        at = 0
        while at < len(data):
            matches = []
            for index, terminal, automaton in self.terminals:
                state, end = 0, 0
                for position in range(at, len(data)):
                    state = automaton.next[state][data[position]]
                    if state is None:
                        break
                    if automaton.accepting[state]:
                        end = position + 1
                if end:
                    matches.append((end, terminal.priority, terminal.literal, index, terminal.ignored))
            if not matches:
                raise lark.exceptions.UnexpectedCharacters(data.decode(errors="replace"), at, 1, at + 1)
            matches.sort(reverse=True)
            assert len(matches) == 1 or matches[0][:3] > matches[1][:3], "two terminals of one rank"
            at, *_, index, ignored = matches[0]
            if not ignored:
                yield lark.Token(f"T{index}", str(at))


@cache
def reader(name: str) -> _Reader:
    return _Reader(Grammar.from_lark(load(name)).ir)


def accepts(name: str, text: str) -> bool:
    try:
        reader(name).parser.parse(text)
    except lark.UnexpectedInput:
        return False
    return True


def check(name: str, valid: list[str], invalid: list[str]) -> None:
    assert [text for text in valid if not accepts(name, text)] == []
    assert [text for text in invalid if accepts(name, text)] == []


def lark_text(name: str) -> str:
    """The grammar as Lark itself reads it."""
    return re.sub("(?m)^%glrgrid .*$", "", load(name))


def data(name: str) -> Path:
    folder = os.environ.get("GLRGRID_DATA")
    if folder is None:
        pytest.skip("GLRGRID_DATA does not name the folder of shared test data")
    return Path(folder) / name


def test_names():
    assert names() == ["calc", "json", "script", "sql_core"]
    with pytest.raises(
        GrammarError, match='no bundled grammar "sql"; there are: calc, json, script, sql_core'
    ):
        load("sql")


def test_sql():
    check("sql_core", SQL_VALID, SQL_INVALID)


def test_json():
    check("json", JSON_VALID, JSON_INVALID)
    for text in JSON_VALID:
        json.loads(text)


def test_calc():
    check("calc", CALC_VALID, CALC_INVALID)


@pytest.mark.parametrize("name", ["calc", "json", "sql_core"])
def test_no_warnings_and_no_lalr_conflicts(name, caplog):
    assert Grammar.from_lark(load(name)).warnings == ()
    with caplog.at_level(logging.DEBUG, lark.logger.name):
        reader.__wrapped__(name)
        lark.Lark(lark_text(name), parser="lalr", lexer="basic", debug=True)
    assert [m for m in caplog.messages if "onflict" in m] == []


def test_lark_reports_conflicts(caplog):
    with caplog.at_level(logging.DEBUG, lark.logger.name):
        lark.Lark('start: "a" start "a" | "a" start | "a"', parser="lalr", debug=True)
    assert [m for m in caplog.messages if "onflict" in m]


@cache
def script() -> gg.CompiledGrammar:
    return gg.compile(Grammar.from_lark(load("script")), gg.Vocab.default())


@pytest.mark.parametrize("source", [script, lambda: gg.load(script().to_bytes(), gg.Vocab.default())])
def test_script(source):
    compiled = source()
    for text in SCRIPT_VALID:
        matcher = gg.Matcher(compiled)
        assert matcher.accept_bytes(text.encode()) == len(text), text
        assert matcher.is_accepting(), text
    for text, at in SCRIPT_INVALID.items():
        matcher = gg.Matcher(compiled)
        assert matcher.accept_bytes(text.encode()) == at, text
        assert at < len(text) or not matcher.is_accepting(), text


def test_script_is_a_grammar_with_conflicts():
    grammar = Grammar.from_lark(load("script"))
    assert grammar.warnings == () and grammar.lexer == "contextual"
    assert 40 <= sum(n.position is not None for n in grammar.ir.nonterminals) <= 60
    assert script().stats["lr_conflicts"] >= 2 and script().warnings == []
    with pytest.raises(lark.exceptions.GrammarError, match="Reduce/Reduce"):
        lark.Lark(load("script"), parser="lalr")


def test_script_follows_both_readings_until_one_is_left():
    matcher = gg.Matcher(script())
    assert matcher.branch_counts == (1, 1)
    assert matcher.accept_bytes(b"let f = (a") == 10 and matcher.branch_counts == (1, 1)
    assert matcher.accept_bytes(b", b) ") == 5 and matcher.branch_counts > (1, 1)  # a tuple or parameters
    arrow = matcher.fork()
    assert arrow.accept_bytes(b"=> a") == 4 and arrow.branch_counts == (1, 1)
    assert matcher.accept_bytes(b"[0];") == 4 and matcher.branch_counts == (1, 1) and matcher.is_accepting()


def test_script_may_pair_an_else_with_either_if():
    text = b"if (a) if (b) f(); else g();"
    matcher = gg.Matcher(script())
    assert matcher.accept_bytes(text) == len(text) and matcher.is_accepting()
    assert matcher.accept_bytes(b" else h();") == 10 and matcher.is_accepting()
    assert (
        matcher.accept_bytes(b" else i();") == 5
    )  # there are two "if" only; but "elsewhere" would be a name


@pytest.mark.parametrize("name", ["calc", "json", "script", "sql_core"])
def test_lark_reads_the_same_terminals(name):
    theirs = lark.Lark(lark_text(name), parser="earley", lexer="basic")
    ours = Grammar.from_lark(load(name)).ir
    assert {t.name for t in theirs.terminals} == {t.name for t in ours.terminals}


def test_lark_agrees_on_json_and_calc():
    for name, valid, invalid in [("json", JSON_VALID, JSON_INVALID), ("calc", CALC_VALID, CALC_INVALID)]:
        parser = lark.Lark(lark_text(name), parser="lalr", lexer="basic")
        for text in valid:
            parser.parse(text)
        for text in invalid:
            with pytest.raises(lark.UnexpectedInput):
                parser.parse(text)


def test_lark_agrees_on_script():
    parser = lark.Lark(load("script"), parser="earley", lexer="dynamic")
    for text in SCRIPT_VALID:
        parser.parse(text)
    for text in SCRIPT_INVALID:
        with pytest.raises(lark.UnexpectedInput):
            parser.parse(text)


def test_sql_size():
    assert 200 <= len(Grammar.from_lark(load("sql_core")).ir.productions) <= 300


def test_shared_statements():
    valid = data("sql/statements.txt").read_text("utf-8").splitlines()
    check("sql_core", valid, data("sql/invalid.txt").read_text("utf-8").splitlines())


def test_spider_queries():
    with gzip.open(data("sql/spider_dev_gold.jsonl.gz"), "rt", encoding="utf-8") as lines:
        queries = sorted({json.loads(line)["query"] for line in lines})
    assert [query for query in queries[::4] if not accepts("sql_core", query)] == []


def test_the_ir_that_rust_tests_read_is_up_to_date() -> None:
    folder = Path(__file__).parent.parent / "corpus" / "ir"
    for path in folder.glob("*.json"):
        current = Grammar.from_lark(load(path.stem)).ir.to_json() + "\n"
        assert path.read_text("utf-8") == current, f"{path.name} is not: run python tools/write_ir.py"
    assert len(list(folder.glob("*.json"))) == 4
