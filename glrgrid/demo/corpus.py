"""Seeded SQL statements about a small shop: what the demo's model learns from."""

from __future__ import annotations

from random import Random

__all__ = ["statements"]

TABLES = {
    "customers": ["id", "name", "email", "city", "country", "created_at"],
    "orders": ["id", "customer_id", "total", "status", "created_at"],
    "products": ["id", "title", "price", "stock", "category"],
    "reviews": ["id", "product_id", "rating", "body"],
}
JOINS = [
    ("orders o", "customers c", "o.customer_id = c.id"),
    ("reviews r", "products p", "r.product_id = p.id"),
    ("customers c", "orders o", "o.customer_id = c.id"),
]
FUNCTIONS = ["count", "sum", "avg", "min", "max"]
WORDS = ["open", "paid", "shipped", "Lisbon", "Oslo", "books", "music", "blue", "O''Brien", "2024-05-01"]


def statements(count: int, seed: int) -> list[str]:
    """Make ``count`` statements; the same seed gives the same ones."""
    writer = _Writer(Random(seed))
    return [writer.statement() for _ in range(count)]


class _Writer:
    def __init__(self, random: Random) -> None:
        self.random = random

    def statement(self) -> str:
        kinds = [self.select, self.join, self.grouped, self.insert, self.update, self.delete, self.nested]
        return self.random.choices(kinds, [8, 5, 4, 3, 3, 2, 4])[0]()

    def table(self) -> tuple[str, list[str]]:
        return self.random.choice(list(TABLES.items()))

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
        left, right, condition = self.random.choice(JOINS)
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
        chosen = self.random.sample(columns, self.random.randint(2, 3))
        rows = ", ".join(
            f"({', '.join(self.value() for _ in chosen)})" for _ in range(self.random.randint(1, 2))
        )
        return f"INSERT INTO {table} ({', '.join(chosen)}) VALUES {rows}"

    def update(self) -> str:
        table, columns = self.table()
        column = self.random.choice(columns)
        change = self.random.choice([self.value(), f"{column} + {self.random.choice([1, 5, 10])}"])
        return f"UPDATE {table} SET {column} = {change}{self.where(columns)}"

    def delete(self) -> str:
        table, columns = self.table()
        return f"DELETE FROM {table}{self.where(columns)}"

    def nested(self) -> str:
        inner, key, outer = self.random.choice(
            [("orders", "customer_id", "customers"), ("reviews", "product_id", "products")]
        )
        columns = TABLES[inner]
        if self.random.random() < 0.5:
            query = f"SELECT {key} FROM {inner}{self.where(columns)}{self.tail(columns)}"
            return f"SELECT {self.some(TABLES[outer])} FROM {outer} WHERE id IN ({query})"
        case = f"CASE WHEN {self.predicate(columns)} THEN {self.value()} ELSE {self.value()} END"
        return f"SELECT {key}, {case} AS label FROM {inner}{self.tail([key, 'label'])}"
