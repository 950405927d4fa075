"""The second part: three roles over the shop's database, each with masks of its own, and SQLite as the witness.

A loop as docs/sql.md describes it: decode under the role's masks, check the finished statement (which table has a
column, no mask made from left to right can know), decode again if that fails, run what passes. Whatever was decoded is
shown to the witness. Then the same model, asked the same without masks.
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources

import numpy as np
from tokenizers import Tokenizer

from glrgrid import CompiledGrammar, Grammar, Matcher, Vocab, compile
from glrgrid.data import default_tokenizer_path
from glrgrid.sql import Catalog, Grant, Role, SemanticChecker

from .corpus import TABLES, statements
from .decode import Decoded, Timing, decode, decode_freely
from .ngram import NgramModel
from .witness import Outcome, Witness

__all__ = ["ROLES", "VERDICTS", "Controls", "RoleResult", "Ruled", "database", "run_roles"]

CORPUS = 300
"""Statements about each table that the model learns from."""

MOST = 10
"""Outputs are decoded until as many have run as are wanted, but at most this many times as many."""

ROLES = (
    Role(
        "analyst",
        {"orders": "*", "products": "*", "employees": ["id", "first_name", "department"]},
        deny=["cte"],
        row_limit=100,
    ),
    Role(
        "clerk",
        {
            "customers": Grant(select=("id", "name")),
            "products": Grant(select="*"),
            "orders": Grant(select="*", insert=("customer_id", "total", "status")),
        },
        ["select", "insert"],
        deny=["cte"],
    ),
    Role.admin(),
)

VERDICTS = {
    "denied": "touch what the role may not",
    "unfinished": "did not end",
    "syntax": "are no SQL",
    "checker": "name what is not in reach: the checker's part",
    "error": "fail in SQLite otherwise",
    "ran": "ran",
}
"""What may be said of a statement, the worst first."""

FUNCTIONS = ("load_extension('x')", "randomblob(9)", "total_changes()")
"""Calls of functions that no role may call unless it lists them."""


def database() -> sqlite3.Connection:
    """The shop, in memory."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(resources.files(__package__).joinpath("shop.sql").read_text("utf-8"))
    return connection


@dataclass(frozen=True)
class Ruled:
    """An output, whether the checker passes it for the role, and what came of it in SQLite."""

    output: Decoded
    passes: bool
    outcome: Outcome

    @property
    def verdict(self) -> str:
        """One of :data:`VERDICTS`."""
        if self.outcome.denied:
            return "denied"
        if not self.output.finished:
            return "unfinished"
        if self.outcome.syntax_error:
            return "syntax"
        if not self.passes:
            return "checker"
        return "ran" if self.outcome.error is None else "error"


@dataclass
class Controls:
    """Statements that touch one thing each, to show what masks, checker and witness see.

    Attributes
    ----------
    hidden : int
        Things that the role may not touch.
    granted : int
        Columns that it may read.
    missed : list of str
        What the witness or the checker let pass though it is hidden, or objected to though it is granted, and what
        the masks let be said though it is hidden.
    """

    hidden: int = 0
    granted: int = 0
    missed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class RoleResult:
    """What happened under one role."""

    role: Role
    compile_milliseconds: float
    masked: list[Ruled]
    free: list[Ruled]
    controls: Controls

    @property
    def failures(self) -> list[str]:
        """What must not have happened, in words."""
        masked = Counter(ruled.verdict for ruled in self.masked)
        passed = [r for r in (*self.masked, *self.free) if r.passes and r.outcome.denied]
        found = [
            (masked["denied"], "decoded under masks touch what the role may not"),
            (masked["syntax"], "decoded under masks are no SQL"),
            (len(self.free) - masked["ran"], "are missing: too few of those decoded under masks run"),
            (len(passed), "touch what the role may not, and the checker passes them"),
            (len(self.controls.missed), f"are controls that failed: {', '.join(self.controls.missed)}"),
        ]
        return [f"{self.role.name}: {number} statements {what}" for number, what in found if number]


def run_roles(count: int, seed: int, roles: Sequence[Role] = ROLES) -> list[RoleResult]:
    """Decode for each role until ``count`` statements have run, and ``count`` without masks."""
    vocab = Vocab.default()
    tokenizer = Tokenizer.from_file(str(default_tokenizer_path()))
    models = {}
    for table in TABLES:
        encoded = tokenizer.encode_batch([f"{text};" for text in statements(CORPUS, seed, table)])
        models[table] = NgramModel((text.ids for text in encoded), vocab.size, vocab.eos_ids[0])
    last = tokenizer.encode(";").ids
    return [_RoleRun(role, vocab, models, last, seed).result(count) for role in roles]


class _RoleRun:
    def __init__(
        self, role: Role, vocab: Vocab, models: dict[str, NgramModel], last: list[int], seed: int
    ) -> None:
        connection = database()
        self._role, self._vocab, self._last = role, vocab, last
        self._catalog = Catalog.from_sqlite(connection)
        self._checker = SemanticChecker(self._catalog, role)
        self._witness = Witness(connection, role)
        self._random = np.random.default_rng(seed)
        # A model is told what it may read, so it is asked about that.
        self._models = [model for table, model in models.items() if role.grant(table).select]

    def result(self, count: int) -> RoleResult:
        started = time.perf_counter()
        compiled = compile(Grammar.from_sql("sqlite", self._role, self._catalog), self._vocab)
        milliseconds = (time.perf_counter() - started) * 1e3
        masked: list[Ruled] = []
        ran = 0
        while ran < count and len(masked) < MOST * count:
            model = self._models[len(masked) % len(self._models)]
            output = decode(compiled, self._vocab, model, self._random, Timing(), self._last)
            masked.append(self._judge(output))
            ran += masked[-1].verdict == "ran"
        free = [
            self._judge(decode_freely(self._vocab, self._models[i % len(self._models)], self._random))
            for i in range(count)
        ]
        return RoleResult(self._role, milliseconds, masked, free, self._controls(compiled))

    def _judge(self, output: Decoded) -> Ruled:
        return Ruled(output, not self._checker.check(output.text), self._witness.run(output.text))

    def _controls(self, compiled: CompiledGrammar) -> Controls:
        controls = Controls()
        matcher = Matcher(compiled)
        for what, statement, granted in self._things():
            controls.granted += granted
            controls.hidden += not granted
            matcher.reset()
            said = matcher.accept_bytes(statement.encode()) == len(statement) and matcher.is_accepting()
            seen = not self._witness.run(statement).denied
            if not said == seen == (not self._checker.check(statement)) == granted:
                controls.missed.append(what)
        return controls

    def _things(self) -> Iterator[tuple[str, str, bool]]:
        """Everything that may be granted: its name, a statement that touches nothing else, and whether it is."""
        limit = "" if self._role.row_limit is None else f" LIMIT {self._role.row_limit}"
        for table in self._catalog.tables:
            grant = self._role.grant(table.name)
            name = table.name
            key, *others = (column.name for column in table.columns)
            for column in (key, *others):
                granted = grant.select == "*" or column in grant.select
                yield f"{name}.{column}", f"SELECT {name}.{column} FROM {name}{limit};", granted
            for column in others:
                granted = grant.update == "*" or column in grant.update
                yield f"update {name}.{column}", f"UPDATE {name} SET {column} = 1;", granted
            written = others if grant.insert == "*" else grant.insert or others
            values = ", ".join("1" for _ in written)
            insert = f"INSERT INTO {name} ({', '.join(written)}) VALUES ({values});"
            yield f"insert {name}", insert, bool(grant.insert)
            yield f"delete {name}", f"DELETE FROM {name};", grant.delete
        for call in FUNCTIONS:
            yield call, f"SELECT {call}{limit};", False
