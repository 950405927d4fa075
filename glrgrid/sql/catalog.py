"""What a database holds: relations and their columns, as an immutable value with a fingerprint."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from ..errors import PolicyError

__all__ = ["Catalog", "Column", "Table", "fold"]

_FOLDED = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_KINDS = ("table", "view", "virtual")


def fold(name: str) -> str:
    """Canonical form of a name: ASCII letters in lower case, others as they are, which is how SQLite compares."""
    return name.lower() if name.isascii() else name.translate(_FOLDED)


@dataclass(frozen=True, slots=True)
class Column:
    """A column. ``hidden``: it can be named but is no part of ``*``, as some columns of virtual tables."""

    name: str
    type: str = ""
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A relation: ``kind`` is ``"table"``, ``"view"`` or ``"virtual"``; with ``rowid`` it has implicit columns."""

    name: str
    columns: tuple[Column, ...]
    schema: str = "main"
    kind: str = "table"
    rowid: bool = True

    def column(self, name: str) -> Column | None:
        """The column of that name, in any case."""
        return next((c for c in self.columns if fold(c.name) == fold(name)), None)


@dataclass(frozen=True, slots=True)
class Catalog:
    """The relations of a database.

    Attributes
    ----------
    tables : tuple of Table
        All that the account of the connection can see, whatever a role may.
    modules : tuple of str
        Further names that FROM could reach, such as virtual tables that exist without being created.
    functions : tuple of str
        What the connection can call beyond the dialect's functions: those that the application has defined. Read from a
        connection; else they are given here, as in ``dataclasses.replace(catalog, functions=("score",))``.

    Raises
    ------
    PolicyError
        Two relations of a schema, or two columns of a relation, have one name; a name is empty or has a NUL.
    """

    tables: tuple[Table, ...]
    modules: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    _index: dict[tuple[str, str], Table] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        index: dict[tuple[str, str], Table] = {}
        for table in self.tables:
            key = (fold(table.schema), fold(table.name))
            if key in index:
                raise PolicyError(f'catalog: two relations are called "{table.schema}.{table.name}"')
            index[key] = table
            columns = [fold(column.name) for column in table.columns]
            if len(set(columns)) != len(columns):
                raise PolicyError(f'catalog: relation "{table.name}" has two columns of one name')
            for name in (table.schema, table.name, *columns):
                if not name or "\0" in name:
                    raise PolicyError(f'catalog: {name!r} in relation "{table.name}" cannot be a name')
            if table.kind not in _KINDS:
                raise PolicyError(f'catalog: relation "{table.name}" is of unknown kind "{table.kind}"')
        object.__setattr__(self, "_index", index)

    @classmethod
    def from_sqlite(cls, source: str | os.PathLike[str] | sqlite3.Connection) -> Catalog:
        """Read the catalog of a SQLite database, attached ones and temporary tables included.

        Parameters
        ----------
        source : path or sqlite3.Connection
            A file, which is opened for reading only, or the connection that will run the statements.

        Raises
        ------
        PolicyError
            The file is missing or is no database.
        """
        if isinstance(source, sqlite3.Connection):
            return cls(tuple(_tables(source)), tuple(_modules(source)), tuple(_functions(source)))
        uri = f"file:{quote(os.fspath(source))}?mode=ro"
        try:
            with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
                return cls.from_sqlite(connection)
        except sqlite3.Error as error:
            raise PolicyError(f'catalog: cannot read "{os.fspath(source)}": {error}') from None

    @classmethod
    def from_ddl(cls, text: str, dialect: str = "sqlite") -> Catalog:
        """Read definitions.

        Parameters
        ----------
        text : str
            CREATE statements. SQLite's are run in a database in memory, so that they mean what they mean there.
        dialect : str
            Any other dialect is read by sqlglot: CREATE TABLE statements with written columns.

        Raises
        ------
        PolicyError
            The text is malformed, or creates what has no written list of columns.
        """
        return cls(tuple(_run(text) if dialect == "sqlite" else _parse(text, dialect)))

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[str, ...] | Mapping[str, Any]]) -> Catalog:
        """Build a catalog from one row for each column.

        Parameters
        ----------
        rows : iterable
            ``(table, column)`` or ``(table, column, type)``, or mappings with the keys of ``information_schema``:
            ``table_name``, ``column_name`` and perhaps ``table_schema`` and ``data_type``.
        """
        found: dict[tuple[str, str], list[Column]] = {}
        for row in rows:
            if isinstance(row, Mapping):
                place = (row.get("table_schema") or "main", row["table_name"])
                column = Column(row["column_name"], row.get("data_type") or "")
            else:
                place, column = ("main", row[0]), Column(row[1], row[2] if len(row) > 2 else "")
            found.setdefault(place, []).append(column)
        return cls(tuple(Table(name, tuple(cs), schema) for (schema, name), cs in found.items()))

    def table(self, name: str, schema: str | None = None) -> Table | None:
        """The relation of that name, in any case; ``None`` if there is none, or several and no schema is given."""
        if schema is not None:
            return self._index.get((fold(schema), fold(name)))
        found = [table for (_, n), table in self._index.items() if n == fold(name)]
        return found[0] if len(found) == 1 else None

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        tables = [
            {
                "schema": t.schema,
                "name": t.name,
                "kind": t.kind,
                "rowid": t.rowid,
                "columns": [[c.name, c.type, c.hidden] for c in t.columns],
            }
            for t in self.tables
        ]
        return {"tables": tables, "modules": list(self.modules), "functions": list(self.functions)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Catalog:
        """The catalog that :meth:`to_dict` wrote."""
        try:
            tables = tuple(
                Table(t["name"], tuple(Column(*c) for c in t["columns"]), t["schema"], t["kind"], t["rowid"])
                for t in value["tables"]
            )
            return cls(tables, tuple(value["modules"]), tuple(value.get("functions", ())))
        except (KeyError, TypeError) as error:
            raise PolicyError(f"catalog: not what Catalog.to_dict writes: {error!r}") from None

    @property
    def fingerprint(self) -> str:
        """BLAKE2b (256 bits, hex) of :meth:`to_dict` as JSON."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()


def _tables(connection: sqlite3.Connection) -> Iterator[Table]:
    rows = connection.execute("SELECT schema, name, type, wr FROM pragma_table_list ORDER BY schema, name")
    for schema, name, kind, without_rowid in rows.fetchall():
        if fold(name).startswith("sqlite_"):
            continue
        columns = connection.execute(
            "SELECT name, type, hidden FROM pragma_table_xinfo(?, ?) ORDER BY cid", (name, schema)
        )
        described = tuple(Column(column, type_, hidden == 1) for column, type_, hidden in columns)
        kind = kind if kind in _KINDS else "table"  # shadow tables of virtual ones are tables
        yield Table(name, described, schema, kind, rowid=kind != "view" and not without_rowid)


def _modules(connection: sqlite3.Connection) -> list[str]:
    return sorted(name for (name,) in connection.execute("SELECT name FROM pragma_module_list"))


def _functions(connection: sqlite3.Connection) -> list[str]:
    """What every connection has is the dialect's business."""
    with contextlib.closing(sqlite3.connect(":memory:")) as plain:
        every, its = (
            {name for (name,) in c.execute("SELECT name FROM pragma_function_list")}
            for c in (plain, connection)
        )
    return sorted(its - every)


def _run(text: str) -> Iterator[Table]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.set_authorizer(lambda action, *_: action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH))
        try:
            connection.executescript(text)
            connection.set_authorizer(None)
            yield from _tables(connection)
        except sqlite3.Error as error:
            raise PolicyError(f"catalog: cannot read the definitions: {error}") from None


def _parse(text: str, dialect: str) -> Iterator[Table]:
    import sqlglot
    from sqlglot import exp

    try:
        statements = sqlglot.parse(text, read=dialect)
    except (sqlglot.errors.SqlglotError, ValueError) as error:
        raise PolicyError(f"catalog: cannot read the definitions: {error}") from None
    for statement in statements:
        if isinstance(statement, exp.Create) and statement.kind not in ("TABLE", "VIEW"):
            continue
        shape = statement.this if isinstance(statement, exp.Create) and statement.kind == "TABLE" else None
        if not isinstance(shape, exp.Schema):
            raise PolicyError(
                f'catalog: cannot read the columns of "{str(statement)[:60]}"; list them with Catalog.from_rows'
            )
        columns = [
            Column(c.name, c.kind.sql(dialect) if c.kind else "") for c in shape.find_all(exp.ColumnDef)
        ]
        yield Table(shape.this.name, tuple(columns), shape.this.db or "main", rowid=False)
