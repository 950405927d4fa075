"""SQLite as a witness: what a statement touches, as its authorizer reports it, judged by a role's grants.

Nothing of grammars, lexicons or resolved access is used here, only :meth:`glrgrid.sql.Role.grant` and what SQLite says.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field

from glrgrid.sql import Dialect, Role, fold

__all__ = ["Outcome", "Witness"]

STEPS = 20_000
"""Instructions of SQLite's machine after which a statement is stopped."""

ROWS = 50
"""Rows that are fetched of a result."""

PARAMETERS = dict.fromkeys("qrp1")
"""Values of ``:q`` and so on; without a name, a parameter is an error."""

RECURSIVE = 33  # sqlite3 has no name for it
HARMLESS = (sqlite3.SQLITE_SELECT, RECURSIVE)
CLOCK = {"current_date", "current_time", "current_timestamp"}
"""Keywords that SQLite reports as functions."""


@dataclass
class Outcome:
    """What came of a statement.

    Attributes
    ----------
    error : str or None
        Why it did not run. Being stopped after :data:`STEPS` is no error.
    denied : list of (int, str, str)
        What it touches and the role may not: the code of an action, such as ``sqlite3.SQLITE_READ``, and two names,
        such as those of table and column, as SQLite reports them but folded.
    reads : int
        How often it names a column to read.
    """

    error: str | None = None
    denied: list[tuple[int, str, str]] = field(default_factory=list)
    reads: int = 0

    @property
    def syntax_error(self) -> bool:
        """Whether SQLite's parser took it for no statement."""
        return self.error is not None and any(
            words in self.error for words in ("syntax error", "unrecognized token", "incomplete input")
        )


class Witness:
    """Runs statements, undoes them, and judges what SQLite reports.

    Parameters
    ----------
    connection : sqlite3.Connection
        Its authorizer and progress handler become those of the witness.
    role : Role
        Whose grants count.
    """

    def __init__(self, connection: sqlite3.Connection, role: Role) -> None:
        self._connection = connection
        self._role = role
        rules = Dialect.load("sqlite")
        self._functions = role.allowed_functions(rules)
        self._implicit = frozenset(rules.rules["implicit_columns"])
        self._modules = {
            fold(name) for (name,) in connection.execute("SELECT name FROM pragma_module_list").fetchall()
        }
        connection.isolation_level = None
        connection.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')")  # declares them, once
        listed = "SELECT name, type FROM pragma_table_list WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        kinds = dict(connection.execute(listed).fetchall())
        self._columns = {
            fold(name): frozenset(
                fold(column)
                for (column,) in connection.execute("SELECT name FROM pragma_table_xinfo(?)", (name,))
            )
            for name in kinds
        }
        self._views = {fold(n): self._behind(n) for n, kind in kinds.items() if kind == "view"}

    def run(self, statement: str) -> Outcome:
        """Run a statement, at most for a while, and undo it."""
        outcome = Outcome()
        self._connection.execute("SAVEPOINT before")
        self._connection.set_progress_handler(lambda: 1, STEPS)
        # Set for each statement: a prepared one that Python has kept is then prepared, and reported, again.
        self._connection.set_authorizer(lambda *what: self._judge(outcome, *what))
        cursor = self._connection.cursor()
        try:
            cursor.execute(statement, PARAMETERS).fetchmany(ROWS)
        except sqlite3.Error as error:
            outcome.error = None if str(error) == "interrupted" else str(error)
        except UnicodeDecodeError:
            # SQLite quotes bytes of the statement, as of a JSON path, and Python wants text.
            outcome.error = "an error whose message is no text"
        finally:
            cursor.close()
            self._connection.set_authorizer(None)
            self._connection.set_progress_handler(None, 0)
            if self._connection.in_transaction:  # INSERT OR ROLLBACK may have ended it
                self._connection.execute("ROLLBACK TO before")
                self._connection.execute("RELEASE before")
        return outcome

    def _behind(self, view: str) -> frozenset[tuple[str, str]]:
        """What a view reads when it is read itself."""
        found = set()

        def record(action: int, first: str | None, second: str | None, *place: str | None) -> int:
            found.add((fold(first or ""), fold(second or "")))
            return sqlite3.SQLITE_OK

        quoted = view.replace('"', '""')
        self._connection.set_authorizer(record)
        self._connection.execute(f'SELECT * FROM "{quoted}" LIMIT 0')
        self._connection.set_authorizer(None)
        return frozenset(found)

    def _judge(
        self,
        outcome: Outcome,
        action: int,
        first: str | None,
        second: str | None,
        schema: str | None,
        source: str | None,
    ) -> int:
        touched = (action, fold(first or ""), fold(second or ""))
        if not self._allows(*touched, schema or "main", fold(source or "")):
            outcome.denied.append(touched)
        if action == sqlite3.SQLITE_READ:
            outcome.reads += bool(second)
        return sqlite3.SQLITE_OK

    def _allows(self, action: int, first: str, second: str, schema: str, source: str) -> bool:
        if action == sqlite3.SQLITE_FUNCTION:
            return second in self._functions or second in CLOCK
        if action == sqlite3.SQLITE_READ and not self._exists(first, second):
            return True
        if first not in self._columns:
            reads = action == sqlite3.SQLITE_READ and (not second or first in self._functions)
            return action in HARMLESS or reads
        grant = self._role.grant(first, schema)
        if action == sqlite3.SQLITE_READ:
            # SQLite names views and CTEs alike as the source: only what the view itself reads is excused. That it may
            # be read is asked for separately. (Of a table from which no column is read, no source is named; a view that
            # counts rows of a hidden table is therefore denied here.)
            behind = (first, second) in self._views.get(source, ())
            readable = self._named(first, grant.select)
            if self._role.implicit_columns and readable == self._columns[first]:
                readable |= self._implicit
            return behind or (second in readable if second else bool(readable))
        if action == sqlite3.SQLITE_INSERT:
            return bool(grant.insert)
        if action == sqlite3.SQLITE_UPDATE:
            return second in self._named(first, grant.update)
        return action == sqlite3.SQLITE_DELETE and grant.delete

    def _exists(self, table: str, column: str) -> bool:
        """Whether it is a column of the database. Those of CTEs and subqueries are reported too at times."""
        if table in self._columns:
            return not column or column in self._columns[table] | self._implicit
        return table in self._modules or table.startswith("sqlite_")

    def _named(self, table: str, columns: object) -> frozenset[str]:
        return self._columns[table] if columns == "*" else frozenset(map(fold, columns))  # type: ignore[call-overload]
