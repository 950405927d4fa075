"""Databases, sampled statements and judges that the tests of glrgrid.sql share."""

from __future__ import annotations

import functools
import gzip
import json
import os
import random
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import glrgrid as gg
from glrgrid.grammar.ir import Expr, GrammarIR, Production, Terminal
from glrgrid.sql import Access, Catalog, Dialect
from glrgrid.sql.lexicon import Lexicon

SYNTAX = re.compile("syntax error|unrecognized token|incomplete input")
"""What SQLite says of texts that are no statements."""

SHOP = """\
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT, "card number" TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, total REAL, placed DATE, "ship to" TEXT);
CREATE TABLE items (order_id INTEGER, product TEXT, quantity INTEGER, price REAL);
CREATE TABLE salaries (id INTEGER PRIMARY KEY, employee TEXT, amount REAL);
CREATE TABLE "key" (id INTEGER, "desc" TEXT, "left" TEXT, "order" TEXT, [a"b] TEXT);
CREATE TABLE orders_audit (id INTEGER, quantity_before INTEGER);
CREATE VIEW big_orders AS SELECT id, total FROM orders WHERE total > 100;
INSERT INTO customers VALUES (1, 'Ann', 'Oslo', '4111'), (2, 'Bob', 'Rome', '4222'), (3, 'Cid', 'Oslo', '4333');
INSERT INTO orders VALUES (1, 1, 120.5, '2024-01-02', 'x'), (2, 1, 20, '2024-02-03', 'y'), (3, 3, 7, '2024-03-04', 'z');
INSERT INTO items VALUES (1, 'pen', 3, 1.5), (1, 'ink', 1, 7), (2, 'pen', 9, 1.4), (3, 'cup', 1, 7);
INSERT INTO salaries VALUES (1, 'Eve', 5000), (2, 'Dan', 4000);
"""


def database(script: str = SHOP) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.executescript(script)
    return connection


@functools.cache
def bytes_vocab() -> gg.Vocab:
    """One token for each byte: whatever other tokens may spell, it can spell."""
    return gg.Vocab.from_bytes({i: bytes([i]) for i in range(256)}, eos_ids=[256], size=257)


def matcher(grammar: gg.Grammar) -> gg.Matcher:
    return gg.Matcher(gg.compile(grammar, bytes_vocab()))


def accepts(m: gg.Matcher, text: str) -> bool:
    """Whether a text is a statement; a final ";" is added if it has none."""
    m.reset()
    data = (text if text.rstrip().endswith(";") else f"{text};").encode()
    return m.accept_bytes(data) == len(data) and m.is_accepting()


def reads(m: gg.Matcher, text: str) -> bool:
    """Whether some statement begins with a text."""
    m.reset()
    return m.accept_bytes(text.encode()) == len(text.encode())


def syntax_error(connection: sqlite3.Connection, statement: str) -> str | None:
    """What SQLite's parser objects to, if it is only its parser that does."""
    try:
        connection.execute(f"EXPLAIN {statement}")
    except sqlite3.Error as error:
        return str(error) if SYNTAX.search(str(error)) else None
    return None


def data(name: str) -> Path:
    folder = os.environ.get("GLRGRID_DATA")
    if not folder:
        pytest.skip("GLRGRID_DATA does not name the folder of shared test data")
    return Path(folder) / name


def json_lines(name: str) -> list[dict[str, Any]]:
    with gzip.open(data(name), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def text_to_sql_catalogs(name: str) -> dict[str, Catalog]:
    """The catalogs of a file in Spider's format."""
    with gzip.open(data(name), "rt", encoding="utf-8") as file:
        databases = json.load(file)
    return {
        d["db_id"]: Catalog.from_rows(
            (d["table_names_original"][table], column)
            for table, column in d["column_names_original"]
            if table >= 0
        )
        for d in databases
    }


NEW_NAMES = {
    "NEW_NAME": ["t1", "T1", "x", "zq_2", '"a b"', "`q``r`", "[s t]", "größe", "no", "row"],
    "NEW_QUOTED_NAME": ["'t1'", "'it''s'"],
}
"""What the sampler takes for the terminals of names that are not in the catalog."""


LIKELY = {
    "from_table": 30.0, "from_binder": 0.2, "from_function": 0.2, "from_query": 1.0, "from_joined": 0.5,
    "column": 1.0, "table_column": 1.0, "binder_column": 0.02, "call": 1.0, "case": 0.5, "cast": 0.5, "row_value": 0.05,
    "scalar_query": 0.2, "exists": 0.2, "in_query": 0.2, "in_table": 0.02, "in_binder": 0.02,
    "collate": 0.1, "parameter": 0.3,
    "select": 8.0, "insert": 0.3, "with": 0.05, "with_recursive": 0.05, "join_using": 0.05, "natural_join": 0.1,
    "window_call": 0.3, "order_item": 1.0, "having": 0.05,
}  # fmt: skip
"""Weights of productions in statements that should mean something; others weigh 1."""


def words(terminal: Terminal) -> list[str]:
    """The texts of a terminal that are words, each in all its spellings, in lower case."""
    parts = terminal.expr[1] if terminal.expr[0] == "alt" else ()
    folded = [part[1] for part in parts if part[0] == "fold"]
    spelt = [part[1:] for part in parts if part[0] == "words"]
    return folded + [a + text + b for pairs, texts in spelt for a, b in pairs for text in texts]


class Sampler:
    """Random statements of a grammar, by derivation, with what was used of it.

    Parameters
    ----------
    fresh
        How often a production is chosen for having been used least.
    access
        If given, statements should mean something: inside of one SELECT, names of columns and relations are mostly
        drawn from the same table, and constructs that seldom work are rare.
    """

    def __init__(
        self, ir: GrammarIR, rng: random.Random, fresh: float = 0.1, access: Access | None = None
    ) -> None:
        self.ir, self.rng, self.fresh = ir, rng, fresh
        self.used: Counter[Production] = Counter()
        self._of: dict[int, list[Production]] = defaultdict(list)
        for production in ir.productions:
            self._of[production.lhs].append(production)
        self._cost = self._costs()
        self._keywords = Dialect.load("sqlite").keywords
        self._tables = [i for i, t in enumerate(access.tables) if t.select] if access else []
        self._columns: dict[int | None, set[str]] = defaultdict(set)
        for filled, terminal in Lexicon.of(access).terminals if access else ():
            for slot in filled:
                if slot[0] == "column_name":
                    self._columns[int(slot[1])].update(words(terminal))
        self._weights: dict[tuple[Production, int | None], float] = {}
        self._budget = 0

    def statement(self, depth: int = 30, length: int = 60) -> str:
        """One statement: beyond ``depth`` levels or ``length`` lexemes, the shortest way out is taken."""
        self._budget = length
        return " ".join(self._derive(~self.ir.start, depth, None))

    def coverage(self) -> float:
        return len(self.used) / len(self.ir.productions)

    def unused(self) -> list[str]:
        return [self.show(p) for p in self.ir.productions if p not in self.used]

    def show(self, p: Production) -> str:
        names = [self.ir.terminals[s].name if s >= 0 else self.ir.nonterminals[~s].name for s in p.rhs]
        return f"{self.ir.nonterminals[p.lhs].name} -> {' '.join(names)}"

    def _costs(self) -> list[float]:
        """Least number of derivation steps of every nonterminal."""
        cost = [float("inf")] * len(self.ir.nonterminals)
        changed = True
        while changed:
            changed = False
            for p in self.ir.productions:
                new = 1 + sum(cost[~s] for s in p.rhs if s < 0)
                if new < cost[p.lhs]:
                    cost[p.lhs], changed = new, True
        return cost

    def _derive(self, symbol: int, depth: int, scope: int | None) -> Iterator[str]:
        name = self.ir.nonterminals[~symbol].name
        if name in ("open_select", "closed_select", "update", "delete", "insert") and self._tables:
            scope = self.rng.choice(self._tables)
        production = self._choose(~symbol, depth, scope)
        self.used[production] += 1
        for part in production.rhs:
            if part < 0:
                yield from self._derive(part, depth - 1, scope)
            else:
                self._budget -= 1
                yield self._lexeme(self.ir.terminals[part], scope if name == "column" else None)

    def _choose(self, lhs: int, depth: int, scope: int | None) -> Production:
        options = self._of[lhs]
        if depth <= 0 or self._budget <= 0:
            costs = [sum(self._cost[~s] for s in p.rhs if s < 0) for p in options]
            unused = [p for p in options if not self.used[p]]  # each is chosen so only once
            options = unused or [p for p, cost in zip(options, costs, strict=True) if cost <= min(costs) + 1]
        elif self.rng.random() < self.fresh:
            least = min(self.used[p] for p in options)
            options = [p for p in options if self.used[p] == least]
        weights = [self._weight(p, scope) for p in options] if self._tables else None
        return self.rng.choices(options, weights)[0]

    def _weight(self, p: Production, scope: int | None) -> float:
        if (p, scope) not in self._weights:
            self._weights[p, scope] = self._weigh(p, scope)
        return self._weights[p, scope]

    def _weigh(self, p: Production, scope: int | None) -> float:
        symbols = [self.ir.terminals[s].name if s >= 0 else self.ir.nonterminals[~s].name for s in p.rhs]
        lhs = self.ir.nonterminals[p.lhs].name
        if lhs == "column":
            return 10.0 if self._columns_of(self.ir.terminals[p.rhs[0]], scope) else 0.01
        if lhs == "primary" and p.name == "primary":
            return {"literal": 1.0, "column": 8.0}.get(symbols[0], 1.0)
        if "values_core" in symbols or symbols[0:1] == ["values"]:
            return 0.05
        if lhs == "closed_select" or symbols == ["from"]:
            return 0.02 if symbols == ["select_head"] else 10.0 if symbols == ["from"] else 1.0
        if lhs.startswith("__opt"):
            return 0.1 if symbols and symbols[0] in LIKELY and LIKELY[symbols[0]] < 0.1 else 1.0
        numbers = {m[1] for name in symbols if (m := re.search(r"[a-z]_([0-9]+)$", name))}
        fits = scope is None or numbers <= {str(scope)}
        return LIKELY.get(p.name, 1.0) * (1.0 if fits else 0.05)

    def _columns_of(self, terminal: Terminal, scope: int | None) -> list[str]:
        """The words of a terminal that are columns of a table."""
        return (
            [word for word in words(terminal) if word in self._columns[scope]]
            if scope in self._columns
            else []
        )

    def _lexeme(self, terminal: Terminal, scope: int | None) -> str:
        """A text of a terminal that no other one claims, if there is one a column of the scope; new names are few, so
        that they are met again."""
        if terminal.name in NEW_NAMES:
            return self.rng.choice(NEW_NAMES[terminal.name])
        columns = self._columns_of(terminal, scope)
        expr = ("words", (("", ""),), columns) if columns else terminal.expr
        while True:
            text = self._text(expr)
            if terminal.literal or text.lower() not in self._keywords:
                return text

    def _text(self, expr: Expr) -> str:
        tag, value = expr[0], expr[1]
        if tag == "lit":
            return str(value)
        if tag == "fold":
            return "".join(self.rng.choice((c.lower(), c.upper())) if c.isascii() else c for c in value)
        if tag == "words":
            before, after = self.rng.choice(value)
            return self._text(("fold", before + self.rng.choice(expr[2]) + after))
        if tag == "class":
            low, high = self.rng.choice(value)
            return chr(self.rng.randint(low, min(high, low + 60)))
        if tag == "cat":
            return "".join(map(self._text, value))
        if tag == "alt":
            return self._text(self.rng.choice(value))
        assert tag == "repeat", expr
        count = expr[2] + (self.rng.randint(0, 2) if expr[3] is None else 0)
        return "".join(self._text(value) for _ in range(count))
