"""Random statements that SQLite often runs, from a writer that knows nothing of glrgrid's grammars.

Few names, which mean many things: columns, aliases, results, CTEs and windows share them, so that a name resolved to
the wrong one of these is soon met.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from random import Random

SCRIPT = """\
CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, ssn TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER, note TEXT UNIQUE, ssn TEXT, amount REAL);
CREATE TABLE salaries (id INTEGER PRIMARY KEY, amount REAL, bonus REAL);
CREATE VIEW notes AS SELECT id, note FROM orders;
INSERT INTO users VALUES (1, 'Ann', '123'), (2, 'Bob', '456');
INSERT INTO orders VALUES (1, 1, 'x', '789', 2.5), (2, 1, 'y', '789', 3), (3, 2, 'z', '000', 7);
INSERT INTO salaries VALUES (1, 5000, 10), (2, 4000, 20);
"""
TABLES = {
    "users": ["id", "name", "ssn"],
    "orders": ["id", "user_id", "note", "ssn", "amount"],
    "salaries": ["id", "amount", "bonus"],
    "notes": ["id", "note"],
}
NAMES = ["ssn", "amount", "bonus", "name", "note", "id", "x", "y", "users", "salaries", "orders", "rowid"]
"""What results are called."""

RELATIONS = [name for name in NAMES if name != "salaries"]
"""What CTEs, subqueries and windows are called; not as a relation that is hidden altogether, because of some reads
SQLite says no more than the name."""

FUNCTIONS = ["count", "sum", "max", "min", "avg", "lower", "length", "coalesce", "likely", "unlikely", "abs"]


@dataclass
class Scope:
    """What an expression may name: qualifiers with their columns, and names of results."""

    sources: list[tuple[str, list[str]]] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)


class Writer:
    """Writes statements; the same seed gives the same ones.

    Parameters
    ----------
    rare
        Pairs of table and column to be named seldom.
    renamed
        What columns and tables are called instead.
    """

    def __init__(
        self, rng: Random, rare: Collection[tuple[str, str]] = (), renamed: Mapping[str, str] | None = None
    ) -> None:
        self.rng = rng
        self.renamed = renamed or {}
        self.ctes: list[tuple[str, list[str]]] = []
        self.likely = {t: [c for c in columns if (t, c) not in rare] for t, columns in TABLES.items()}

    def statement(self) -> str:
        self.ctes = []
        kinds: list[Callable[[], str]] = [self.select, self.insert, self.update, self.delete]
        text = self.rng.choices(kinds, [8, 1, 1, 1])[0]()
        return text + self.maybe(";", 0.3)

    # Small parts

    def maybe(self, text: str, chance: float = 0.3) -> str:
        return text if self.rng.random() < chance else ""

    def one(self, *options: str) -> str:
        return self.rng.choice(options)

    def spelt(self, name: str, string: bool = False) -> str:
        """A name, as often as not as it is; ``string``: it may be in single quotes too."""
        name = self.renamed.get(name, name)
        forms = ["{}", "{}", "{}", "{}", '"{}"', "`{}`", "[{}]", *(["'{}'"] if string else [])]
        name = "".join(self.rng.choice((c, c.upper())) for c in name) if self.rng.random() < 0.1 else name
        return self.rng.choice(forms).format(name)

    def new_name(self) -> str:
        return self.rng.choice(NAMES)

    def new_relation(self) -> str:
        return self.rng.choice(RELATIONS)

    # Queries. Each gives its text and the names of its columns.

    def select(self) -> str:
        return self.query([], self.rng.randint(0, 3), None)[0]

    def table(self, *options: str) -> str:
        """One of some tables, a likely one mostly."""
        likely = [table for table in options if self.likely[table]]
        return self.rng.choice(likely if likely and self.rng.random() < 0.95 else options)

    def query(self, outer: list[Scope], depth: int, width: int | None) -> tuple[str, list[str]]:
        known = list(self.ctes)
        clause = self.with_clause(outer, depth - 1) if depth > 0 and self.rng.random() < 0.2 else ""
        text, outputs, scope = self.core(outer, depth, width)
        parts = [scope]
        while depth > 0 and self.rng.random() < 0.2:
            other, _, scope = self.core(outer, depth - 1, len(outputs))
            text += f" {self.one('UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT')} {other}"
            parts.append(scope)
        if all(part.sources for part in parts):
            parts[0].aliases += outputs if len(parts) > 1 else []
            if self.rng.random() < 0.4:
                terms = []
                for _ in range(self.rng.randint(1, 2)):
                    part = self.rng.choice(parts)
                    terms.append(self.order_term([part, *outer], depth, len(parts) > 1))
                text += f" ORDER BY {', '.join(terms)}"
            text += self.maybe(f" LIMIT {self.one('3', '(SELECT 2)', '+2', '2 OFFSET 1', '1, 2')}")
        self.ctes = known
        return clause + text, outputs

    def with_clause(self, outer: list[Scope], depth: int) -> str:
        parts = []
        for _ in range(self.rng.randint(1, 2)):
            name = self.new_relation()
            if self.rng.random() < 0.2:
                self.ctes.append((name, ["x"]))
                start = self.core([], depth - 1, 1)[0]
                parts.append(
                    f"{self.spelt(name, True)}(x) AS ({start} UNION ALL SELECT x + 1 FROM {self.spelt(name)} LIMIT 3)"
                )
                continue
            inside = outer if self.rng.random() < 0.1 else []
            text, outputs = self.query(inside, depth - 1, None)
            renamed = [self.new_name() for _ in outputs] if self.rng.random() < 0.3 else []
            listed = f"({', '.join(map(self.spelt, renamed))})" if renamed else ""
            hint = self.one("", "", "MATERIALIZED ", "NOT MATERIALIZED ")
            parts.append(f"{self.spelt(name, True)}{listed} AS {hint}({text})")
            self.ctes.append((name, renamed or outputs))
        return f"WITH {self.maybe('RECURSIVE ', 0.3)}{', '.join(parts)} "

    def core(self, outer: list[Scope], depth: int, width: int | None) -> tuple[str, list[str], Scope]:
        if self.rng.random() < 0.05:
            width = width or self.rng.randint(1, 2)
            row = ", ".join(self.expression(outer, depth - 1) for _ in range(width))
            return f"VALUES ({row})", [f"column{i + 1}" for i in range(width)], Scope()
        scope = Scope()
        source = self.from_clause(scope, outer, depth) if self.rng.random() < 0.95 else ""
        inside = [scope, *outer]
        results, outputs, aliases = [], [], []
        for _ in range(width or self.rng.randint(1, 3)):
            if width is None and scope.sources and self.rng.random() < 0.1:
                qualifier, columns = self.rng.choice(scope.sources)
                whole = self.rng.random() < 0.4
                results.append("*" if whole else f"{self.spelt(qualifier)}.*")
                outputs += [c for _, cs in scope.sources for c in cs] if whole else columns
                continue
            text = self.expression(inside, depth) if self.rng.random() < 0.4 else self.column(inside)
            if self.rng.random() < 0.4:
                name = self.new_name()
                results.append(f"{text} {self.maybe('AS ', 0.7)}{self.spelt(name, True)}")
                outputs.append(name)
                aliases.append(name)
            else:
                results.append(text)
                outputs.append(text.rpartition(".")[2].strip('"`[]').lower())
        scope.aliases = aliases
        text = f"SELECT {self.maybe(self.one('DISTINCT ', 'ALL '), 0.1)}{', '.join(results)}{source}"
        if self.rng.random() < 0.4:
            text += f" WHERE {self.expression(inside, depth)}"
        if self.rng.random() < 0.2:
            text += f" GROUP BY {self.column(inside) if self.rng.random() < 0.7 else self.expression(inside, depth)}"
            text += f" HAVING {self.expression(inside, depth)}" if self.rng.random() < 0.4 else ""
        if self.rng.random() < 0.05:
            text += f" WINDOW {self.spelt(self.new_relation())} AS {self.frame(inside, depth)}"
        return text, outputs, scope

    def from_clause(self, scope: Scope, outer: list[Scope], depth: int) -> str:
        text = f" FROM {self.source(scope, outer, depth)}"
        for _ in range(self.rng.choices([0, 1, 2], [6, 3, 1])[0]):
            before = [c for _, cs in scope.sources for c in cs]
            join = self.one(
                ", ", " JOIN ", " LEFT JOIN ", " CROSS JOIN ", " NATURAL JOIN ", " FULL OUTER JOIN "
            )
            text += join + self.source(scope, outer, depth)
            shared = [c for c in scope.sources[-1][1] if c in before]
            if "NATURAL" in join or join == ", " or self.rng.random() < 0.2:
                continue
            if shared and self.rng.random() < 0.4:
                text += f" USING ({self.spelt(self.rng.choice(shared))})"
            else:
                text += f" ON {self.expression([scope, *outer], depth - 1)}"
        return text

    def source(self, scope: Scope, outer: list[Scope], depth: int) -> str:
        choice = self.rng.random()
        if choice < 0.12 and depth > 0:
            text, columns = self.query(outer if self.rng.random() < 0.1 else [], depth - 1, None)
            name, text = self.new_relation(), f"({text})"
            scope.sources.append((name, columns))
            return f"{text} {self.maybe('AS ', 0.5)}{self.spelt(name, True)}"
        if choice < 0.17 and depth > 0:
            inner = Scope()
            text = self.from_clause(inner, outer, depth - 1).removeprefix(" FROM ")
            scope.sources += inner.sources
            return f"({text})"
        if choice < 0.2:
            scope.sources.append(("json_each", ["key", "value"]))
            return f"json_each({self.one(chr(39) + '[1]' + chr(39), self.column([scope, *outer]))})"
        if self.ctes and choice < 0.6:
            name, columns = self.rng.choice(self.ctes)
        else:
            name = self.table("users", "users", "users", "orders", "orders", "orders", "salaries", "notes")
            columns = TABLES[name]
        text = self.maybe("main.", 0.1) + self.spelt(name, True)
        if self.rng.random() < 0.4:
            name = self.one("a", "b", "c", self.new_name())
            text += f" {self.maybe('AS ', 0.6)}{self.spelt(name)}"
        scope.sources.append((name, columns))
        return text

    def order_term(self, scopes: list[Scope], depth: int, compound: bool) -> str:
        choice = self.rng.random()
        if scopes[0].aliases and choice < 0.5:
            text = self.spelt(self.rng.choice(scopes[0].aliases))
        elif choice < 0.6:
            text = "1"
        else:
            text = self.column(scopes) if compound or choice < 0.8 else self.expression(scopes, depth - 1)
        form = self.one(
            "{}",
            "{}",
            "{}",
            "+{}",
            "({})",
            "-{}",
            "{} COLLATE nocase",
            "likely({})",
            "+ +{}",
            "~{}",
            "{} + 0",
        )
        text = form.format(text)
        return (
            text
            + self.maybe(self.one(" ASC", " DESC"))
            + self.maybe(self.one(" NULLS FIRST", " NULLS LAST"), 0.1)
        )

    # Expressions

    def column(self, scopes: list[Scope]) -> str:
        frames = [s for s in scopes if s.sources]
        choice = self.rng.random()
        if not frames or choice < 0.05:
            return self.spelt(self.new_name()) if frames else self.literal()
        scope = frames[0] if choice < 0.85 else self.rng.choice(frames)
        if scope.aliases and choice < 0.2:
            return self.spelt(self.rng.choice(scope.aliases))
        qualifier, columns = self.rng.choice(scope.sources)
        if qualifier in TABLES and columns == TABLES[qualifier] and self.rng.random() < 0.9:
            columns = self.likely[qualifier]
        name = (
            self.rng.choice(columns)
            if columns and self.rng.random() < 0.95
            else self.one("rowid", "oid", *NAMES)
        )
        if not name.isidentifier():
            return self.literal()
        if (len(scope.sources) == 1 and self.rng.random() < 0.5) or self.rng.random() < 0.2:
            return self.spelt(name)
        schema = self.maybe("main.", 0.05) if qualifier in TABLES else ""
        return f"{schema}{self.spelt(qualifier)}.{self.spelt(name, self.rng.random() < 0.1)}"

    def literal(self) -> str:
        return self.one(
            "1", "0", "2.5", "'x'", "NULL", "'ssn'", "x'00'", "current_date", "true", "?1", ":q", '"q"'
        )

    def expression(self, scopes: list[Scope], depth: int) -> str:
        if depth <= 0 or self.rng.random() < 0.35:
            return self.column(scopes) if self.rng.random() < 0.7 else self.literal()
        forms: list[Callable[[list[Scope], int], str]] = [
            self.binary, self.binary, self.binary, self.unary, self.unary, self.tested, self.call, self.call, self.case,
            self.nested, self.nested, self.cast, self.row_value, self.window_call,
        ]  # fmt: skip
        return self.rng.choice(forms)(scopes, depth - 1)

    def binary(self, scopes: list[Scope], depth: int) -> str:
        operator = self.one(
            "=", "==", "<>", "<", ">=", "+", "-", "*", "||", "AND", "OR", "IS", "IS NOT", "LIKE", "NOT LIKE", "&", "<<",
            "IS NOT DISTINCT FROM", "IS DISTINCT FROM", "->>",
        )  # fmt: skip
        return f"{self.expression(scopes, depth)} {operator} {self.expression(scopes, depth)}"

    def unary(self, scopes: list[Scope], depth: int) -> str:
        form = self.one(
            "+{}", "-{}", "~{}", "NOT {}", "({})", "(({}))", "+ +{}", "{} COLLATE nocase", "- +{}", "+({})"
        )
        return form.format(self.expression(scopes, depth))

    def tested(self, scopes: list[Scope], depth: int) -> str:
        first = self.expression(scopes, depth)
        form = self.one("{} ISNULL", "{} NOT NULL", "{} NOTNULL", "{} BETWEEN {} AND {}", "{} IN ({}, {})",
                        "{} LIKE {} ESCAPE 'x'", "{} IS NULL", "{} NOT BETWEEN {} AND +{}", "{} IN ()")  # fmt: skip
        return form.format(first, *(self.expression(scopes, depth - 1) for _ in range(2)))

    def call(self, scopes: list[Scope], depth: int) -> str:
        name = self.rng.choice(FUNCTIONS)
        inside = self.expression(scopes, depth)
        inside += f", {self.expression(scopes, depth)}" if name in ("coalesce", "max", "min") else ""
        whole = name == "count" and self.rng.random() < 0.5
        text = f"{name}({'*' if whole else self.maybe('DISTINCT ', 0.1) + inside})"
        filtered = name in ("count", "sum", "avg") and self.rng.random() < 0.1
        return text + (f" FILTER (WHERE {self.expression(scopes, depth)})" if filtered else "")

    def case(self, scopes: list[Scope], depth: int) -> str:
        parts = [self.expression(scopes, depth) for _ in range(4)]
        return f"CASE {self.maybe(parts[3], 0.4)} WHEN {parts[0]} THEN {parts[1]} {self.maybe('ELSE ' + parts[2])} END"

    def nested(self, scopes: list[Scope], depth: int) -> str:
        form = self.one(
            "({})", "({})", "EXISTS ({})", "NOT EXISTS ({})", "{1} IN ({0})", "{1} NOT IN ({0})", "{1} IN {2}"
        )
        table = self.spelt(self.rng.choice([*TABLES, *(name for name, _ in self.ctes)]), True)
        return form.format(self.query(scopes, depth, 1)[0], self.expression(scopes, depth), table)

    def cast(self, scopes: list[Scope], depth: int) -> str:
        type_ = self.one(
            "text", "integer", "decimal(5, 2)", "varying character(+3)", "ssn", "unsigned big int", '"x"'
        )
        return f"CAST({self.expression(scopes, depth)} AS {type_})"

    def row_value(self, scopes: list[Scope], depth: int) -> str:
        parts = [self.expression(scopes, depth) for _ in range(4)]
        return "({}, {}) {op} ({}, {})".format(*parts, op=self.one("=", "<", "IS", "IS NOT"))

    def window_call(self, scopes: list[Scope], depth: int) -> str:
        return f"{self.one('count(*)', 'rank()', 'sum(1)')} OVER {self.frame(scopes, depth)}"

    def frame(self, scopes: list[Scope], depth: int) -> str:
        partition = self.maybe(f"PARTITION BY {self.expression(scopes, depth)} ")
        order = self.maybe(f"ORDER BY {self.expression(scopes, depth)} ", 0.6)
        rows = self.one("ROWS UNBOUNDED PRECEDING", "ROWS BETWEEN +1 PRECEDING AND CURRENT ROW EXCLUDE TIES",
                        "GROUPS 1 PRECEDING")  # fmt: skip
        return f"({partition}{order}{rows if order and self.rng.random() < 0.4 else ''})"

    # Changes

    def insert(self) -> str:
        clause = self.with_clause([], 2) if self.rng.random() < 0.15 else ""
        table = self.table("users", "orders", "orders", "salaries")
        columns = self.rng.sample(TABLES[table], self.rng.randint(1, len(TABLES[table])))
        if self.rng.random() < 0.15:
            columns = TABLES[table]
            listed = ""
        else:
            listed = f" ({', '.join(self.spelt(c, True) for c in columns)})"
        alias = self.maybe(f" AS {self.spelt(self.new_name(), True)}", 0.2)
        name = alias.removeprefix(" AS ").strip("\"'`[]").lower() or table
        verb = self.one("INSERT", "INSERT", "INSERT", "INSERT OR IGNORE", "REPLACE", "INSERT OR REPLACE")
        scope = Scope([(name, TABLES[table]), ("excluded", TABLES[table])])
        if self.rng.random() < 0.1:
            listed, body = "", " DEFAULT VALUES"
        elif self.rng.random() < 0.5:
            body = f" VALUES ({', '.join(self.expression([], 1) for _ in columns)})"
        else:
            body = f" {self.query([], 2, len(columns))[0]}"
        if self.rng.random() < 0.3 and "DEFAULT" not in body:
            target = self.one(
                "",
                f" ({self.spelt('id')})",
                f" ({self.spelt('note')})",
                f" ({self.spelt('note')}) WHERE " + self.expression([Scope(scope.sources[:1])], 1),
            )
            body += " WHERE true" * ("SELECT" in body and "WHERE" not in body[-60:])
            body += f" ON CONFLICT{target} DO "
            body += self.one("NOTHING", f"UPDATE SET {self.assignments(table, [scope])}")
        return f"{clause}{verb} INTO {self.spelt(table, True)}{alias}{listed}{body}{self.returning(scope.sources[0])}"

    def update(self) -> str:
        clause = self.with_clause([], 2) if self.rng.random() < 0.15 else ""
        table = self.table("users", "orders", "orders", "salaries")
        alias = self.maybe(f" AS {self.spelt(self.new_name(), True)}", 0.2)
        name = alias.removeprefix(" AS ").strip("\"'`[]").lower() or table
        scope = Scope([(name, TABLES[table])])
        source = self.from_clause(scope, [], 1) if self.rng.random() < 0.3 else ""
        where = f" WHERE {self.expression([scope], 2)}" if self.rng.random() < 0.6 else ""
        verb = self.one("UPDATE", "UPDATE", "UPDATE OR IGNORE", "UPDATE OR REPLACE")
        changes = self.assignments(table, [scope])
        target = f"{self.spelt(table, True)}{alias}"
        return f"{clause}{verb} {target} SET {changes}{source}{where}{self.returning(scope.sources[0])}"

    def delete(self) -> str:
        clause = self.with_clause([], 2) if self.rng.random() < 0.15 else ""
        table = self.table("users", "orders", "orders", "salaries")
        alias = self.maybe(f" AS {self.spelt(self.new_name(), True)}", 0.2)
        name = alias.removeprefix(" AS ").strip("\"'`[]").lower() or table
        scope = Scope([(name, TABLES[table])])
        where = f" WHERE {self.expression([scope], 2)}" if self.rng.random() < 0.7 else ""
        return (
            f"{clause}DELETE FROM {self.spelt(table, True)}{alias}{where}{self.returning(scope.sources[0])}"
        )

    def assignments(self, table: str, scopes: list[Scope]) -> str:
        parts = []
        for column in self.rng.sample(TABLES[table][1:], self.rng.randint(1, 2)):
            text = self.expression(scopes, 2)
            pair = f"({self.spelt(column)}, {self.spelt(TABLES[table][1])}) = ({text}, 1)"
            parts.append(pair if self.rng.random() < 0.1 else f"{self.spelt(column, True)} = {text}")
        return ", ".join(parts)

    def returning(self, source: tuple[str, list[str]]) -> str:
        if self.rng.random() < 0.8:
            return ""
        results = self.one("*", *(self.expression([Scope([source])], 1) for _ in range(3)))
        return (
            f" RETURNING {results}{self.maybe(' AS ' + self.spelt(self.new_name()), 0.2 * (results != '*'))}"
        )


def script(renamed: Mapping[str, str] | None = None) -> str:
    """:data:`SCRIPT` with other names."""
    names = renamed or {}
    return re.sub(r"(?<!')\b[a-z_]+\b(?!')", lambda m: f'"{names[m[0]]}"' if m[0] in names else m[0], SCRIPT)
