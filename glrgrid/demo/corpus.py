"""Seeded SQL statements about a small shop, that of ``shop.sql``: what the demo's model learns from."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

__all__ = ["TABLES", "statements"]

TABLES = {
    "customers": ["id", "name", "email", "city", "country", "since"],
    "orders": ["id", "customer_id", "total", "status", "created_at"],
    "products": ["id", "title", "price", "stock", "category"],
    "reviews": ["id", "product_id", "rating", "body"],
    "employees": ["id", "first_name", "department", "salary"],
}
"""Columns of each table, its key first."""

JOINS = [
    ("orders o", "customers c", "o.customer_id = c.id"),
    ("reviews r", "products p", "r.product_id = p.id"),
    ("customers c", "orders o", "o.customer_id = c.id"),
]
NESTED = [("orders", "customer_id", "customers"), ("reviews", "product_id", "products")]
FUNCTIONS = ["count", "sum", "avg", "min", "max"]
WORDS = ["open", "paid", "shipped", "Lisbon", "Oslo", "books", "music", "blue", "O''Brien", "2024-05-01"]


def statements(count: int, seed: int, about: str | None = None) -> list[str]:
    """Make ``count`` statements; the same seed gives the same ones. ``about``: one table, the first of a join."""
    writer = _Writer(Random(seed), [about] if about else list(TABLES))
    return [writer.statement() for _ in range(count)]


class _Writer:
    def __init__(self, random: Random, tables: list[str]) -> None:
        self.random = random
        self.tables = tables
        self.joins = [join for join in JOINS if join[0].split()[0] in tables]
        self.nestings = [nesting for nesting in NESTED if nesting[0] in tables]

    def statement(self) -> str:
        kinds = [
            (self.select, 8), (self.join, 5 if self.joins else 0), (self.grouped, 4), (self.insert, 3),
            (self.update, 3), (self.delete, 2), (self.nested, 4 if self.nestings else 0),
        ]  # fmt: skip
        writers, weights = zip(*kinds, strict=True)
        chosen: Callable[[], str] = self.random.choices(writers, weights)[0]
        return chosen()

    def table(self) -> tuple[str, list[str]]:
        name = self.random.choice(self.tables)
        return name, TABLES[name]

    def some(self, items: list[str], most: int = 3) -> str:
        return ", ".join(self.random.sample(items, self.random.randint(1, min(most, len(items)))))

    def maybe(self, text: str, chance: float = 0.4) -> str:
        return text if self.random.random() < chance else ""

    def value(self) -> str:
        if self.random.random() < 0.5:
            return str(self.random.choice([1, 2, 5, 10, 42, 100, 250, 19.99]))
        return f"'{self.random.choice(WORDS)}'"

    def predicate(self, columns: list[str]) -> str:
        column = self.random.choice(columns)
        forms = [
            f"{column} {self.random.choice(['=', '<', '>', '>=', '<>'])} {self.value()}",
            f"{column} IN ({', '.join(self.value() for _ in range(self.random.randint(1, 3)))})",
            f"{column} BETWEEN {self.value()} AND {self.value()}",
            f"{column} LIKE '%{self.random.choice(WORDS)}%'",
            f"{column} IS {self.maybe('NOT ')}NULL",
            f"({column} = {self.value()} OR {self.random.choice(columns)} > {self.value()})",
        ]
        return self.random.choices(forms, [6, 2, 1, 2, 1, 1])[0]

    def where(self, columns: list[str]) -> str:
        parts = [self.predicate(columns) for _ in range(self.random.randint(1, 2))]
        return f" WHERE {' AND '.join(parts)}"

    def tail(self, columns: list[str]) -> str:
        order = f" ORDER BY {self.random.choice(columns)}{self.random.choice(['', ' DESC'])}"
        return self.maybe(order) + self.maybe(f" LIMIT {self.random.choice([1, 5, 10, 20])}", 0.3)

    def select(self) -> str:
        table, columns = self.table()
        wanted = "*" if self.random.random() < 0.2 else self.maybe("DISTINCT ", 0.1) + self.some(columns)
        where = self.where(columns) if self.random.random() < 0.7 else ""
        return f"SELECT {wanted} FROM {table}{where}{self.tail(columns)}"

    def join(self) -> str:
        left, right, condition = self.random.choice(self.joins)
        columns = [
            f"{alias}.{column}" for name, alias in (left.split(), right.split()) for column in TABLES[name]
        ]
        kind = self.random.choice(["JOIN", "LEFT JOIN"])
        where = self.where(columns) if self.random.random() < 0.5 else ""
        source = f"{left} {kind} {right} ON {condition}"
        return f"SELECT {self.some(columns)} FROM {source}{where}{self.tail(columns)}"

    def grouped(self) -> str:
        table, columns = self.table()
        key, measure = self.random.sample(columns, 2)
        total = f"{self.random.choice(FUNCTIONS)}({measure})"
        having = self.maybe(f" HAVING count(*) > {self.random.choice([1, 2, 5, 10])}")
        return (
            f"SELECT {key}, {total} AS total FROM {table} GROUP BY {key}{having}{self.tail([key, 'total'])}"
        )

    def insert(self) -> str:
        table, columns = self.table()
        chosen = self.random.sample(columns[1:], self.random.randint(2, 3))
        rows = ", ".join(
            f"({', '.join(self.value() for _ in chosen)})" for _ in range(self.random.randint(1, 2))
        )
        return f"INSERT INTO {table} ({', '.join(chosen)}) VALUES {rows}"

    def update(self) -> str:
        table, columns = self.table()
        column = self.random.choice(columns[1:])
        change = self.random.choice([self.value(), f"{column} + {self.random.choice([1, 5, 10])}"])
        return f"UPDATE {table} SET {column} = {change}{self.where(columns)}"

    def delete(self) -> str:
        table, columns = self.table()
        return f"DELETE FROM {table}{self.where(columns)}"

    def nested(self) -> str:
        inner, key, outer = self.random.choice(self.nestings)
        columns = TABLES[inner]
        if self.random.random() < 0.5:
            query = f"SELECT {key} FROM {inner}{self.where(columns)}{self.tail(columns)}"
            return f"SELECT {self.some(TABLES[outer])} FROM {outer} WHERE id IN ({query})"
        case = f"CASE WHEN {self.predicate(columns)} THEN {self.value()} ELSE {self.value()} END"
        return f"SELECT {key}, {case} AS label FROM {inner}{self.tail([key, 'label'])}"
