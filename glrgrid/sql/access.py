"""A role over a catalog: every grant resolved to columns, and the sets of names that follow from it."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ..errors import PolicyError
from .catalog import Catalog, Table, fold
from .dialect import Dialect
from .role import Columns, Role

__all__ = ["Access", "TableAccess"]


@dataclass(frozen=True, slots=True)
class TableAccess:
    """What a role may do with one relation of the catalog; sets of folded column names."""

    table: Table
    select: frozenset[str]
    insert: frozenset[str]
    update: frozenset[str]
    delete: bool

    @property
    def reachable(self) -> bool:
        """Whether anything may be done with it."""
        return bool(self.select or self.insert or self.update or self.delete)

    @property
    def hides(self) -> bool:
        """Whether ``*`` would read a column that may not be read."""
        return not all(fold(c.name) in self.select for c in self.table.columns if not c.hidden)

    @property
    def inserts_all(self) -> bool:
        """Whether every column may be inserted, so that they need not be listed."""
        return bool(self.insert) and all(
            fold(c.name) in self.insert for c in self.table.columns if not c.hidden
        )


@dataclass(frozen=True, slots=True)
class Access:
    """What a role may do in a database.

    Attributes
    ----------
    tables : tuple of TableAccess
        One for each relation of the catalog, in its order, also where nothing is granted.
    readable_columns, hidden_columns : frozenset of str
        Folded names of columns that some relation has and the role may, or may not, read there; implicit ones too. A
        name may be in both.
    relations : frozenset of str
        Folded names of all relations that the database may know, allowed or not.
    functions, table_functions : frozenset of str
        What may be called.
    """

    role: Role
    catalog: Catalog
    dialect: Dialect
    tables: tuple[TableAccess, ...]
    readable_columns: frozenset[str]
    hidden_columns: frozenset[str]
    relations: frozenset[str]
    functions: frozenset[str]
    table_functions: frozenset[str]

    @classmethod
    def of(cls, role: Role, catalog: Catalog, dialect: str | Dialect) -> Access:
        """Resolve a role.

        Raises
        ------
        PolicyError
            It grants tables, columns or functions that there are not.
        """
        dialect = Dialect.of(dialect)
        _check_tables(role, catalog)
        _check_functions(role, catalog, dialect)
        implicit = frozenset(dialect.rules["implicit_columns"])
        tables = tuple(_resolve(role, table, implicit) for table in catalog.tables)
        named = [(t, frozenset(fold(c.name) for c in t.table.columns)) for t in tables]
        everywhere = [(t, names | implicit if t.table.rowid else names) for t, names in named]
        system = frozenset(dialect.rules["system_relations"])
        allowed = role.allowed_functions(dialect)
        table_functions = frozenset(dialect.rules["functions"]["safe_tables"]) | frozenset(
            map(fold, catalog.modules)
        )
        return cls(
            role,
            catalog,
            dialect,
            tables,
            readable_columns=_union(t.select for t in tables),
            hidden_columns=_union([*(names - t.select for t, names in everywhere), implicit])
            if not role.implicit_columns
            else _union(names - t.select for t, names in everywhere),
            relations=system
            | _union({fold(t.name)} for t in catalog.tables)
            | frozenset(map(fold, catalog.modules)),
            functions=allowed - table_functions,
            table_functions=allowed & (table_functions | system),
        )

    def find(self, name: str, schema: str | None = None) -> TableAccess | None:
        """The access to the relation that a name stands for; ``None`` if there is none, or the schema must be said."""
        table = self.catalog.table(name, schema)
        return next((t for t in self.tables if t.table is table), None) if table else None

    @property
    def fingerprint(self) -> str:
        """BLAKE2b (256 bits, hex) of the three fingerprints, on which the grammar depends; known before it is built."""
        parts = (self.dialect.fingerprint, self.role.fingerprint, self.catalog.fingerprint)
        return hashlib.blake2b("".join(parts).encode(), digest_size=32).hexdigest()

    @property
    def hidden_names(self) -> frozenset[str]:
        """Folded names that must not be confirmed to exist: relations without access, columns readable nowhere."""
        reachable = _union({fold(t.table.name)} for t in self.tables if t.reachable)
        return (self.relations - reachable) | (self.hidden_columns - self.readable_columns)

    @property
    def hides_columns(self) -> bool:
        """Whether a relation within reach has a column that may not be read."""
        return any(t.hides for t in self.tables if t.reachable)


def _union(sets: Iterable[Iterable[str]]) -> frozenset[str]:
    return frozenset(name for names in sets for name in names)


def _check_tables(role: Role, catalog: Catalog) -> None:
    known = {_key(table) for table in catalog.tables}
    for name, _ in role.tables:
        if name != "*" and name not in known:
            raise PolicyError(
                f'role "{role.name}" grants table "{name}", which the catalog does not have{_near(name, known)}'
            )


def _check_functions(role: Role, catalog: Catalog, dialect: Dialect) -> None:
    rules = dialect.rules
    tables = (*rules["system_relations"], *map(fold, catalog.modules))
    known = dialect.known_functions.union(tables, map(fold, catalog.functions))
    for name in sorted(role.allowed_functions(dialect)):
        if name not in known and not name.startswith(tuple(rules["system_prefixes"])):
            raise PolicyError(
                f'role "{role.name}" grants function "{name}", which neither SQL dialect "{dialect.name}" '
                f"({dialect.version}) nor the catalog has{_near(name, known)}; one that the application defines is to "
                "be listed in the catalog's functions"
            )


def _near(name: str, known: Collection[str]) -> str:
    """What may have been meant."""
    close = difflib.get_close_matches(name, known, 3)
    if close:
        return f"; closest: {', '.join(map(_quoted, close))}"
    some = sorted(known)[:8]
    return f"; there are: {', '.join(map(_quoted, some))}{' and others' if len(known) > len(some) else ''}"


def _quoted(name: str) -> str:
    return f'"{name}"'


def _key(table: Table) -> str:
    return fold(table.name) if fold(table.schema) == "main" else fold(f"{table.schema}.{table.name}")


def _resolve(role: Role, table: Table, implicit: frozenset[str]) -> TableAccess:
    grant = role.grant(table.name, table.schema)
    names = {fold(c.name) for c in table.columns}

    def columns(granted: Columns) -> frozenset[str]:
        if granted == "*":
            return frozenset(names)
        folded = frozenset(map(fold, granted))
        if not folded <= names:
            odd = sorted(folded - names)[0]
            raise PolicyError(
                f'role "{role.name}" grants column "{odd}" of "{table.name}", which has none of that name'
                f"{_near(odd, names)}"
            )
        return folded

    readable = columns(grant.select)
    if (
        role.implicit_columns and table.rowid and readable == names
    ):  # a rowid may be the value of another column
        readable |= implicit
    return TableAccess(table, readable, columns(grant.insert), columns(grant.update), grant.delete)
