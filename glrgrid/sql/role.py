"""Who may do what: an immutable policy, from Python or TOML, and the part of a dialect that it leaves."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from ..errors import PolicyError
from ..grammar.ir import GrammarIR
from .catalog import fold
from .dialect import Dialect
from .projection import without

__all__ = ["VERBS", "Grant", "Role"]

VERBS = ("select", "insert", "update", "delete")
Columns = tuple[str, ...] | Literal["*"]


@dataclass(frozen=True, slots=True)
class Grant:
    """What may be done with one table: the columns that may be read, inserted and updated (``"*"``: all), and whether
    rows may be deleted."""

    select: Columns = ()
    insert: Columns = ()
    update: Columns = ()
    delete: bool = False

    def __post_init__(self) -> None:
        for verb in VERBS[:3]:
            object.__setattr__(self, verb, _columns(getattr(self, verb), f"grant: {verb}"))
        if not isinstance(self.delete, bool):
            raise PolicyError(f"grant: delete is {self.delete!r}; expected true or false")

    @classmethod
    def of(cls, columns: object) -> Grant:
        """All verbs on some columns (of all columns if ``"*"``, which includes deleting)."""
        listed = _columns(columns, "grant")
        return cls(listed, listed, listed, listed == "*")

    def only(self, verbs: Collection[str]) -> Grant:
        """The part of it that these verbs need."""
        none: Columns = ()
        return Grant(
            self.select if "select" in verbs else none,
            self.insert if "insert" in verbs else none,
            self.update if "update" in verbs else none,
            self.delete and "delete" in verbs,
        )


@dataclass(frozen=True, slots=True, init=False)
class Role:
    """A role; immutable, and equal to another one with the same contents.

    Parameters
    ----------
    name : str
        For people.
    tables : mapping
        Table names (``"schema.table"`` where the schema is not ``main``) to what is granted: ``"*"`` or a list of
        columns, for all ``verbs``, or a :class:`Grant`. The name ``"*"`` stands for all tables that are not listed.
    verbs : iterable of str
        Out of ``select``, ``insert``, ``update``, ``delete``. What a :class:`Grant` gives beyond them is not granted.
    functions : iterable of str, optional
        What may be called; table functions too. Default: what the dialect lists as safe. They must be known to the
        dialect or listed in the catalog (:attr:`Catalog.functions`).
    deny : iterable of str
        Clauses that may not be used: keys of the dialect's ``[clauses]``, such as ``"recursive_cte"``.
    row_limit : int, optional
        Statements that read must end with ``LIMIT n``, n at most this.
    implicit_columns : bool
        Whether the implicit columns (``rowid`` and the like) of tables that hide none may be read.

    Raises
    ------
    PolicyError
        Something of this is malformed.
    """

    name: str
    tables: tuple[tuple[str, Grant], ...]
    verbs: tuple[str, ...]
    functions: tuple[str, ...] | None
    deny: tuple[str, ...]
    row_limit: int | None
    implicit_columns: bool

    def __init__(
        self,
        name: str,
        tables: Mapping[str, Grant | str | Iterable[str]],
        verbs: Iterable[str] = ("select",),
        functions: Iterable[str] | None = None,
        deny: Iterable[str] = (),
        row_limit: int | None = None,
        implicit_columns: bool = False,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise PolicyError(f"role: name is {name!r}; expected a text")
        who = f'role "{name}": '
        chosen = set(_names(verbs, f"{who}verbs"))
        if not chosen or not chosen <= set(VERBS):
            raise PolicyError(f"{who}verbs are {sorted(chosen)}; expected some of {', '.join(VERBS)}")
        if not isinstance(implicit_columns, bool):
            raise PolicyError(f"{who}implicit_columns is {implicit_columns!r}; expected true or false")
        limited = isinstance(row_limit, int) and not isinstance(row_limit, bool) and row_limit > 0
        if row_limit is not None and not limited:
            raise PolicyError(f"{who}row_limit is {row_limit!r}; expected a whole number above 0")
        if not isinstance(tables, Mapping):
            raise PolicyError(f"{who}tables are no table of names and grants")
        grants = {fold(t): _grant(g, f'{who}table "{t}": ').only(chosen) for t, g in tables.items()}
        if len(grants) != len(tables):
            raise PolicyError(f"{who}a table is listed twice, in different cases")
        values = {
            "name": name,
            "tables": tuple(sorted(grants.items())),
            "verbs": tuple(verb for verb in VERBS if verb in chosen),
            "functions": None if functions is None else _names(functions, f"{who}functions"),
            "deny": _names(deny, f"{who}deny"),
            "row_limit": row_limit,
            "implicit_columns": implicit_columns,
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    @classmethod
    def admin(cls, name: str = "admin") -> Role:
        """A role that may do everything the dialect has, to every table."""
        return cls(name, {"*": "*"}, VERBS)

    @classmethod
    def from_toml(cls, source: str | os.PathLike[str]) -> Role:
        """Read a role from TOML: a path, or the text itself.

        Keys are the parameters of :class:`Role`; a table's grant is ``"*"``, a list of columns, or a table with the
        keys of :class:`Grant`.

        Raises
        ------
        PolicyError
            The file is missing or malformed, or has a key that means nothing.

        Examples
        --------
        >>> role = Role.from_toml('''
        ... name = "analyst"
        ... row_limit = 1000
        ... [tables]
        ... orders = "*"
        ... users = ["id", "name"]
        ... ''')
        >>> role.grant("users").select
        ('id', 'name')
        """
        is_text = isinstance(source, str) and ("\n" in source or "=" in source)
        try:
            value = tomllib.loads(str(source) if is_text else Path(source).read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            place = "" if is_text else f" {source}"
            raise PolicyError(f"role: cannot read the TOML{place}: {error}") from None
        known = {f.name for f in fields(cls)}
        if not {"name", "tables"} <= value.keys() <= known:
            odd = sorted(value.keys() - known) or sorted({"name", "tables"} - value.keys())
            raise PolicyError(
                f"role: key {odd[0]!r} is unknown or missing; the keys are: {', '.join(sorted(known))}"
            )
        if isinstance(value["tables"], dict):
            value["tables"] = {t: _read_grant(t, g) for t, g in value["tables"].items()}
        return cls(**value)

    def grant(self, table: str, schema: str = "main") -> Grant:
        """What is granted on a table; nothing if it is not listed."""
        grants = dict(self.tables)
        name = fold(table) if fold(schema) == "main" else fold(f"{schema}.{table}")
        return grants.get(name) or grants.get("*") or Grant()

    def project(self, dialect: str | Dialect) -> GrammarIR:
        """The part of a dialect's grammar that the role leaves, whatever the catalog: no nonterminal of what it denies
        remains, all terminals do.

        Raises
        ------
        PolicyError
            No statement is left, or a denied clause is unknown.
        """
        chosen = Dialect.of(dialect)
        return without(chosen.ir, self.dropped(chosen), f'role "{self.name}"')

    def dropped(self, dialect: Dialect) -> frozenset[str]:
        """Names of the productions that the role denies."""
        clauses = dialect.rules["clauses"]
        unknown = sorted(set(self.deny) - clauses.keys())
        if unknown:
            known = ", ".join(clauses)
            raise PolicyError(f'role "{self.name}" denies unknown clause "{unknown[0]}"; there are: {known}')
        dropped = {verb for verb in VERBS if verb not in self.verbs}
        dropped |= {name for clause in self.deny for name in clauses[clause]}
        allowed = self.allowed_functions(dialect)
        operators = dialect.rules["operators"]
        dropped |= {operator for operator, needed in operators.items() if not allowed.issuperset(needed)}
        dropped.add("select" if self.row_limit is not None else "limited_select")
        return frozenset(dropped)

    def allowed_functions(self, dialect: Dialect) -> frozenset[str]:
        """Folded names of what may be called."""
        return dialect.safe_functions if self.functions is None else frozenset(map(fold, self.functions))

    @property
    def fingerprint(self) -> str:
        """BLAKE2b (256 bits, hex) of everything but the name."""
        value = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "name"}
        text = json.dumps(value, default=lambda g: [g.select, g.insert, g.update, g.delete])
        return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()


def _columns(value: object, what: str) -> Columns:
    if value == "*":
        return "*"
    return _names(value, what)


def _names(value: object, what: str) -> tuple[str, ...]:
    is_list = isinstance(value, Iterable) and not isinstance(value, (str, Mapping))
    listed: list[Any] = list(value) if is_list else []  # type: ignore[call-overload]
    if not is_list or not all(isinstance(name, str) and name for name in listed):
        raise PolicyError(f"{what}: expected a list of names, found {value!r}")
    return tuple(sorted(set(listed)))


def _grant(value: object, where: str) -> Grant:
    try:
        return value if isinstance(value, Grant) else Grant.of(value)
    except PolicyError as error:
        raise PolicyError(f'{where}{error}; write "*" for all columns') from None


def _read_grant(table: str, value: Any) -> Any:
    """A table of TOML as a grant; what else stands there, :class:`Role` looks at."""
    if not isinstance(value, dict):
        return value
    known = {f.name for f in fields(Grant)}
    if not value.keys() <= known:
        odd = sorted(value.keys() - known)[0]
        hint = f'; write the name of a table that is not in schema main in quotes: [tables."{table}.{odd}"]'
        raise PolicyError(f'role: table "{table}" has unknown key "{odd}"{hint}')
    try:
        return Grant(**value)
    except PolicyError as error:
        raise PolicyError(f'role: table "{table}": {error}') from None
