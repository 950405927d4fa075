"""What no mask can know, because it is made from left to right: to which relation every name of a statement belongs.

:class:`SemanticChecker` reads a finished statement and lists what its role may not say. sqlglot parses; what names mean
is resolved here, as SQLite does: from the innermost scope outwards, aliases of results after columns, ``"x"`` as a
string where nothing is called so. It fails closed, in three ways: a text that cannot be parsed, a construct that is
not listed below, and a word of the text that the parse has no name for (lexemes are cut here too, as SQLite cuts them)
are violations themselves.

Messages never confirm that a hidden name exists: what is said of it, and what is listed as allowed, is what would be
said if the database had no such name.

Not seen: what views and triggers do, and names that the catalog does not have. A CTE that refers to columns of a query
around it is refused, because SQLite looks for them where the CTE is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import PolicyError
from .access import Access, TableAccess
from .catalog import Catalog, fold
from .lexicon import spelled
from .role import Role
from .syntax import ARGUMENTS, CLAUSES, LEAVES, PLAIN, Source, exp

__all__ = ["SemanticChecker", "Violation", "repair"]


ASK = (
    "{prompt}\n\n{statement}\n\nThis statement is refused:\n{violations}\n\nWrite it without these faults.\n"
)
"""How :func:`repair` asks again."""


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """Something that a role may not say.

    Attributes
    ----------
    offset, line, column : int
        Where: characters from 0, and both from 1.
    rule : str
        ``syntax``, ``construct``, ``verb``, ``clause``, ``limit``, ``table``, ``column``, ``star`` or ``function``.
    message : str
        What is wrong.
    allowed : tuple of str
        What may stand there instead, in quotes where they are needed; names that the role may know.
    """

    offset: int
    line: int
    column: int
    rule: str
    message: str
    allowed: tuple[str, ...] = ()

    def __str__(self) -> str:
        instead = f"; allowed: {', '.join(self.allowed)}" if self.allowed else ""
        return f"line {self.line}, column {self.column}: {self.message}{instead}"


class SemanticChecker:
    """Checks finished statements against a role; immutable.

    Parameters
    ----------
    catalog : Catalog
        Of the database that will run them.
    role : Role
        Who asks.
    dialect : str
        Only ``"sqlite"``.

    Raises
    ------
    PolicyError
        The role names what the catalog does not have, sqlglot is not installed, or the dialect is another one.

    Examples
    --------
    >>> catalog = Catalog.from_rows([("users", "id"), ("users", "ssn"), ("orders", "ssn")])
    >>> checker = SemanticChecker(catalog, Role("analyst", {"users": ["id"], "orders": "*"}))
    >>> for violation in checker.check("SELECT u.ssn FROM users AS u"):
    ...     print(violation)
    line 1, column 10: "ssn" is no column that may be read here; allowed: id
    """

    def __init__(self, catalog: Catalog, role: Role, dialect: str = "sqlite") -> None:
        if dialect != "sqlite":
            raise PolicyError(f'no checker for SQL dialect "{dialect}"; there is: sqlite')
        self.access = Access.of(role, catalog, dialect)
        role.dropped(self.access.dialect)  # refuses unknown clauses

    def check(self, sql: str) -> list[Violation]:
        """All violations of a statement, by position; none if the role may say it.

        Parameters
        ----------
        sql : str
            Any text. One statement, with or without a final ``;``, is what may pass.
        """
        check = _Check(self.access, Source(sql))
        check.run()
        return sorted(set(check.violations))


def repair(
    generate: Callable[[str], str],
    prompt: str,
    checker: SemanticChecker,
    ask: str = ASK,
) -> str:
    """Generate a statement; if it is refused, generate one more with the violations quoted.

    Parameters
    ----------
    generate : callable
        From a prompt to a statement, best under the masks of the same role.
    prompt : str
        What the statement should do.
    checker : SemanticChecker
        What it may do.
    ask : str
        The second prompt, with the fields ``prompt``, ``statement`` and ``violations``.

    Returns
    -------
    str
        A statement without violations.

    Raises
    ------
    PolicyError
        The second statement is refused too; the message lists why.
    """
    statement = generate(prompt)
    if not (found := checker.check(statement)):
        return statement
    quoted = "\n".join(f"- {violation}" for violation in found)
    statement = generate(ask.format(prompt=prompt, statement=statement, violations=quoted))
    if found := checker.check(statement):
        listed = "; ".join(map(str, found))
        raise PolicyError(f'role "{checker.access.role.name}": the statement is refused twice: {listed}')
    return statement


@dataclass(slots=True)
class _Relation:
    """What a scope knows by a name: columns that may be read, and that may not; ``open``: it may have others too."""

    name: str
    readable: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    open: bool = False
    hides: bool = False
    outputs: tuple[str, ...] = ()
    schema: str | None = None
    qualified_only: bool = False

    @classmethod
    def of(cls, table: TableAccess, access: Access, alias: str) -> _Relation:
        shape = table.table
        names = frozenset(fold(c.name) for c in shape.columns)
        has_rowid = (
            shape.rowid or shape.kind == "view"
        )  # of a view it is NULL, but found before names of results
        implicit = frozenset(access.dialect.rules["implicit_columns"]) if has_rowid else frozenset()
        outputs = tuple(fold(c.name) for c in shape.columns if not c.hidden)
        hidden = (names | implicit) - table.select
        return cls(alias, table.select, hidden, False, table.hides, outputs, fold(shape.schema))


@dataclass(slots=True)
class _Scope:
    relations: list[_Relation] = field(default_factory=list)
    merged: set[str] = field(default_factory=set)  # by USING and NATURAL
    aliases: frozenset[str] = frozenset()

    def having(self, name: str, qualifier: str | None, schema: str | None) -> list[_Relation]:
        return [
            r
            for r in self.relations
            if name in r.readable | r.hidden
            and (qualifier is not None or not r.qualified_only)
            and qualifier in (None, r.name)
            and schema in (None, r.schema)
        ]


@dataclass(slots=True)
class _Cte:
    node: Any
    names: _Names
    outputs: tuple[str, ...] | None = None
    begun: bool = False


@dataclass(frozen=True, slots=True)
class _Names:
    """What names mean at a place of a statement: CTEs, and the scopes from the innermost outwards."""

    ctes: Mapping[str, _Cte] = field(default_factory=dict)
    scopes: tuple[_Scope, ...] = ()

    def inside(self, scope: _Scope) -> _Names:
        return _Names(self.ctes, (scope, *self.scopes))


class _Check:
    def __init__(self, access: Access, source: Source) -> None:
        self.violations: list[Violation] = []
        self._access = access
        self._source = source
        self._e: Any = exp()

    def run(self) -> None:
        problem, root = self._source.parse(self._access)
        if root is None:
            self._add(problem[0], problem[1], problem[2])
            return
        try:
            self._clauses(root)
            self._statement(root)
        except RecursionError:
            self._add(0, "syntax", "the statement is nested too deeply")
        except (
            AttributeError,
            IndexError,
            KeyError,
            TypeError,
        ):  # a tree of a shape that SQLite has no text for
            self._add(0, "construct", "this is not a construct that can be checked")

    # Reporting

    def _add(self, at: Any, rule: str, message: str, allowed: Any = ()) -> None:
        offset = at if isinstance(at, int) else self._source.offset(at)
        line, column = self._source.place(offset)
        self.violations.append(Violation(offset, line, column, rule, message, tuple(sorted(set(allowed)))))

    def _not_understood(self, node: Any) -> None:
        self._add(node, "construct", f"{type(node).__name__} is not a construct that can be checked")

    def _only(self, node: Any) -> None:
        """Refuse what a node has beyond the arguments that are looked at here."""
        for key, value in node.args.items():
            if value and key not in ARGUMENTS[type(node).__name__]:
                self._add(node, "construct", f'"{key}" is not a construct that can be checked')

    def _spell(self, name: str) -> str:
        """A name as it may be written: in quotes if it must be."""
        keywords = self._access.dialect.keywords
        return spelled(name, "", keywords) or spelled(name, '"', keywords) or name

    def _name(self, identifier: Any) -> str:
        return fold(self._source.name(identifier))

    # Statements

    def _clauses(self, root: Any) -> None:
        role = self._access.role
        for node in root.walk():
            for clause in role.deny:
                if CLAUSES[clause](node):
                    self._add(node, "clause", f'clause "{clause}" is denied')
        for word in self._source.operators:
            if not self._access.functions.issuperset(self._access.dialect.rules["operators"][word]):
                self._add(root, "function", f'operator "{word}" calls a function that may not be called')

    def _statement(self, root: Any) -> None:
        verb = type(root).__name__.lower()
        verb = verb if verb in ("insert", "update", "delete") else "select"
        if verb not in self._access.role.verbs:
            self._add(0, "verb", f"{verb.upper()} may not be used", map(str.upper, self._access.role.verbs))
            return
        if verb == "select":
            self._limit(root)
            self._query(root, _Names())
        else:
            self._only(root)
            change = {"insert": self._insert, "update": self._update, "delete": self._delete}[verb]
            change(root, self._with(root, _Names()))

    def _limit(self, root: Any) -> None:
        limit = self._access.role.row_limit
        if limit is None:
            return
        given = root.args.get("limit")
        count = given.expression.name if given and isinstance(given.expression, self._e.Literal) else ""
        if not (count.isdecimal() and int(count) <= limit):
            self._add(given or 0, "limit", "rows must be limited", [f"LIMIT {limit}"])

    def _target(self, node: Any, verb: str) -> tuple[TableAccess | None, _Relation]:
        """The table that is changed, and what its columns are in the statement."""
        self._only(node)
        schema = self._name(node.args["db"]) if node.args.get("db") else None
        may: dict[str, Callable[[TableAccess], object]] = {
            "insert": lambda t: t.insert,
            "update": lambda t: t.update,
            "delete": lambda t: t.delete,
        }
        table = self._access.find(self._name(node.this), schema)
        if table is None or not may[verb](table):
            allowed = [self._spell(t.table.name) for t in self._access.tables if may[verb](t)]
            self._add(node, "table", f'"{node.name}" is no table for {verb.upper()}', allowed)
            return None, _Relation("", open=True)
        if self._source.replaces and not table.delete:
            self._add(node, "verb", "REPLACE deletes rows, which may not be deleted")
        if self._source.replaces and "replace" in self._access.role.deny:
            self._add(node, "clause", 'clause "replace" is denied')
        alias = node.args.get("alias")
        name = self._name(alias.this) if alias else fold(table.table.name)
        return table, _Relation.of(table, self._access, name)

    def _insert(self, root: Any, names: _Names) -> None:
        listed = isinstance(root.this, self._e.Schema)
        table, relation = self._target(root.this.this if listed else root.this, "insert")
        if listed:
            self._only(root.this)
        if table and listed:
            for column in root.this.expressions:
                self._written(column, table.insert)
        elif table and not table.inserts_all:
            self._add(root.this, "star", "INSERT must list its columns", map(self._spell, table.insert))
        if root.expression:
            self._query(root.expression, names)
        own = _Scope([relation])
        if conflict := root.args.get("conflict"):
            self._only(conflict)
            known = relation.readable | (table.insert if table else frozenset())
            excluded = _Relation("excluded", known, relation.hidden - known, qualified_only=True)
            self._under(conflict, ("conflict_keys",), names.inside(own))
            self._assignments(conflict, table, names.inside(_Scope([relation, excluded])))
        self._returning(root, names.inside(own))

    def _update(self, root: Any, names: _Names) -> None:
        table, relation = self._target(root.this, "update")
        scope = _Scope([relation])
        if source := root.args.get("from_"):
            self._from(source.this, [], scope, names)
            self._conditions(source.this, None, names.inside(scope))
            if len(scope.relations) > 2:  # SQLite makes a SELECT * of several
                self._no_star(source, scope.relations[1:])
        self._assignments(root, table, names.inside(scope))
        self._returning(root, names.inside(_Scope([relation])))

    def _delete(self, root: Any, names: _Names) -> None:
        _, relation = self._target(root.this, "delete")
        self._under(root, ("where",), names.inside(_Scope([relation])))
        self._returning(root, names.inside(_Scope([relation])))

    def _assignments(self, node: Any, table: TableAccess | None, names: _Names) -> None:
        """What SET assigns, and its WHERE."""
        for assignment in node.expressions:
            if not isinstance(assignment, self._e.EQ):
                self._not_understood(assignment)
                continue
            left = assignment.this
            for column in left.expressions if isinstance(left, self._e.Tuple) else [left.unnest()]:
                # A string is a name here.
                bare = isinstance(column, self._e.Column) and not column.args.get("table")
                target = column.this if bare else column
                if not isinstance(target, (self._e.Identifier, self._e.Literal)):
                    self._not_understood(target)
                elif table:
                    self._written(target, table.update)
            self._expression(assignment.expression, names)
        self._under(node, ("where",), names)

    def _written(self, identifier: Any, granted: frozenset[str]) -> None:
        if self._name(identifier) not in granted:
            allowed = map(self._spell, granted)
            self._add(identifier, "column", f'"{identifier.name}" is no column that may be written', allowed)

    def _returning(self, root: Any, names: _Names) -> None:
        if returning := root.args.get("returning"):
            self._results(returning, names)

    # Queries

    def _query(
        self, node: Any, names: _Names, first: Callable[[tuple[str, ...]], None] = lambda outputs: None
    ) -> tuple[str, ...]:
        """Check a query; the names of its results, ``""`` for those without one. ``first`` is told them as soon as the
        leftmost part of it is known, on which recursion depends."""
        return self._parts(node, names, first)[0]

    def _parts(
        self, node: Any, names: _Names, first: Callable[[tuple[str, ...]], None]
    ) -> tuple[tuple[str, ...], list[_Scope]]:
        e = self._e
        while isinstance(node, (e.Subquery, e.Paren)) and not node.args.get("alias"):
            self._only(node)
            node = node.this
        if isinstance(node, (e.Select, e.SetOperation)):
            self._only(node)
            names = self._with(node, names)
        outputs: tuple[str, ...] = ()
        scopes = [_Scope()]
        if isinstance(node, e.Values):
            self._under(node, ("expressions",), names)
            outputs = tuple(f"column{i + 1}" for i in range(len(node.expressions[0].expressions)))
            first(outputs)
        elif isinstance(node, e.SetOperation):
            outputs, scopes = self._parts(node.this, names, first)
            scopes = scopes + self._parts(node.expression, names, lambda outputs: None)[1]
            self._order_of_set(node, names, scopes)
            self._under(node, ("limit", "offset"), names)
        elif isinstance(node, e.Select):
            outputs, scope = self._select(node, names)
            first(outputs)
            scopes = [scope]
        else:
            self._not_understood(node)
        return outputs, scopes

    def _under(self, node: Any, keys: Iterable[str], names: _Names) -> None:
        """Check what a node has of these."""
        for key in keys:
            found = node.args.get(key) or ()
            for part in found if isinstance(found, (list, tuple)) else [found]:
                self._expression(part, names)

    def _order_of_set(self, node: Any, names: _Names, parts: list[_Scope]) -> None:
        """SQLite resolves a term in one part after the other, until it means a result there."""
        order = node.args.get("order")
        for term in order.expressions if order else ():
            refused: list[Violation] | None = None
            for scope in parts:
                before, self.violations = self.violations, []
                self._expression(term, names.inside(scope), aliases_first=True)
                found, self.violations = self.violations, before
                if self._is_result(term.this, scope):
                    refused = []
                    break
                if self._hides(term, scope):  # it is read, though it need not mean anything
                    refused = found
                    break
                if refused is None or not found:
                    refused = found
            self.violations += refused or []

    def _is_result(self, node: Any, scope: _Scope) -> bool:
        bare = isinstance(node, self._e.Column) and not node.args.get("table")
        return bare and isinstance(node.this, self._e.Identifier) and self._name(node.this) in scope.aliases

    def _hides(self, term: Any, scope: _Scope) -> bool:
        columns = (c for c in term.find_all(self._e.Column) if isinstance(c.this, self._e.Identifier))
        return any(
            name in relation.hidden
            for name, qualifier, schema in map(self._parts_of, columns)
            for relation in scope.having(name, qualifier, schema)
        )

    def _select(self, node: Any, outer: _Names) -> tuple[tuple[str, ...], _Scope]:
        scope = _Scope()
        names = outer.inside(scope)
        source = node.args.get("from_")
        if source:
            self._from(source.this, node.args.get("joins") or [], scope, outer)
        outputs = self._results(node, names)
        named = (item.args["alias"] for item in node.expressions if isinstance(item, self._e.Alias))
        scope.aliases = frozenset(map(self._name, named))
        self._conditions(source.this if source else None, node, names)
        self._under(node, ("where", "group", "having", "windows"), names)
        order = node.args.get("order")
        for term in order.expressions if order else ():
            self._expression(term, names, aliases_first=True)
        self._under(node, ("limit", "offset"), outer)
        return outputs, _Scope(scope.relations, scope.merged, scope.aliases | frozenset(outputs))

    def _results(self, node: Any, names: _Names) -> tuple[str, ...]:
        """Check what a SELECT or RETURNING lists; the names of the results."""
        e, scope, outputs = self._e, names.scopes[0], []
        for item in node.expressions:
            inner = item.this if isinstance(item, e.Column) else item
            if isinstance(inner, e.Star):
                qualifier = self._name(item.args["table"]) if inner is not item else None
                chosen = [r for r in scope.relations if qualifier in (None, r.name)]
                if any(inner.args.values()) or not chosen or (inner is not item and item.args.get("db")):
                    allowed = [self._spell(r.name) for r in scope.relations]
                    self._add(item, "table", "* stands for no relation here", allowed)
                self._no_star(item, chosen)
                outputs += self._starred(chosen, scope.merged)
                continue
            self._expression(item, names)
            named = item.args["alias"] if isinstance(item, e.Alias) else inner
            outputs.append(self._name(named) if isinstance(named, e.Identifier) else "")
        return tuple(outputs)

    def _starred(self, relations: list[_Relation], merged: set[str]) -> list[str]:
        names = [name for r in relations for name in r.outputs]
        return [n for i, n in enumerate(names) if n not in merged or n not in names[:i]]

    def _no_star(self, node: Any, relations: list[_Relation], what: str = "* reads columns") -> None:
        if any(r.hides for r in relations):
            allowed = (name for r in relations for name in self._listed(r.readable, r, relations))
            self._add(node, "star", f"{what} that are not named; name them", allowed)

    def _listed(self, names: frozenset[str], relation: _Relation, among: list[_Relation]) -> list[str]:
        before = f"{self._spell(relation.name)}." if len(among) > 1 or relation.qualified_only else ""
        return [before + self._spell(n) for n in names]

    # Tables

    def _from(self, node: Any, joins: list[Any], scope: _Scope, outer: _Names) -> None:
        """Add the relations of a FROM clause to a scope; conditions are looked at when all are known."""
        scope.relations += self._source_of(node, scope, outer)
        for join in [*(node.args.get("joins") or []), *joins]:
            self._only(join)
            before = list(scope.relations)
            added = self._source_of(join.this, scope, outer)
            scope.relations += added
            if join.args.get("method") == "NATURAL":
                self._no_star(join, scope.relations, "NATURAL JOIN compares columns")
                scope.merged |= {n for r in before for n in r.outputs} & {n for r in added for n in r.outputs}
            for identifier in join.args.get("using") or ():
                for side in (before, added):
                    self._using(identifier, side)
                scope.merged.add(self._name(identifier))
            for nested in join.this.args.get("joins") or ():
                self._not_understood(nested)

    def _using(self, identifier: Any, side: list[_Relation]) -> None:
        name = self._name(identifier)
        holders = [r for r in side if name in r.readable | r.hidden or r.open]
        if not holders or any(name in r.hidden for r in holders):
            allowed = frozenset().union(*(r.readable for r in side))
            self._no_column(identifier, map(self._spell, allowed))

    def _no_column(self, identifier: Any, allowed: Any) -> None:
        self._add(identifier, "column", f'"{identifier.name}" is no column that may be read here', allowed)

    def _source_of(self, node: Any, scope: _Scope, outer: _Names) -> list[_Relation]:
        e = self._e
        if not isinstance(node, (e.Table, e.Subquery, e.Values)):
            self._not_understood(node)
            return [_Relation("", open=True)]
        self._only(node)
        alias = node.args.get("alias")
        if alias and alias.args.get("columns"):
            self._not_understood(alias)
        name = self._name(alias.this) if alias and alias.this else ""
        if isinstance(node, e.Table):
            return [self._table(node, name, outer)]
        if isinstance(node, e.Subquery) and isinstance(node.this, (e.Table, e.Subquery)):
            if name or not isinstance(node.this, e.Table):
                self._not_understood(node)
            inside = _Scope()
            self._from(node.this, [], inside, outer)
            self._conditions(node.this, None, outer.inside(inside))
            self._no_star(node, inside.relations)  # SQLite makes a SELECT * of it
            scope.merged |= inside.merged
            return inside.relations
        outputs = self._query(node if isinstance(node, e.Values) else node.this, outer)
        return [_Relation(name, frozenset(outputs) - {""}, outputs=outputs)]

    def _conditions(self, first: Any, select: Any, names: _Names) -> None:
        joins = [join for node in (first, select) if node for join in node.args.get("joins") or ()]
        for join in joins:
            self._under(join, ("on",), names)
        for node in [first, *(join.this for join in joins)]:
            if isinstance(node, self._e.Table) and isinstance(node.this, self._e.Anonymous):
                self._under(node.this, ("expressions",), names)

    def _table(self, node: Any, alias: str, names: _Names) -> _Relation:
        schema = self._name(node.args["db"]) if node.args.get("db") else None
        called = isinstance(node.this, self._e.Anonymous)
        name = self._name(node.this)
        if not called and schema is None and name in names.ctes:
            outputs = self._cte(names.ctes[name], node)
            return _Relation(alias or name, frozenset(outputs) - {""}, outputs=outputs)
        table = None if called else self._access.find(name, schema)
        if table is not None and table.select:
            return _Relation.of(table, self._access, alias or name)
        if schema is not None or table is not None or name not in self._access.table_functions:
            self._no_table(node, names)
        return _Relation(alias or name, open=True)

    def _no_table(self, node: Any, names: _Names) -> None:
        name = self._source.name(node.this) if isinstance(node.this, self._e.Anonymous) else node.name
        readable = (t.table.name for t in self._access.tables if t.select)
        allowed = map(self._spell, (*readable, *names.ctes))
        self._add(node, "table", f'"{name}" is no table that may be read', allowed)

    def _with(self, node: Any, names: _Names) -> _Names:
        clause = node.args.get("with_")
        if not clause:
            return names
        ctes = dict(names.ctes)  # of which each has all, itself too
        own = {self._name(cte.args["alias"].this): _Cte(cte, _Names(ctes)) for cte in clause.expressions}
        ctes.update(own)
        for cte in own.values():
            self._cte(cte, cte.node)
        return _Names(ctes, names.scopes)

    def _cte(self, cte: _Cte, user: Any) -> tuple[str, ...]:
        """The names of what a CTE gives; its body is checked once, without the scopes around it."""

        def know(outputs: tuple[str, ...]) -> None:
            listed = cte.node.args["alias"].args.get("columns")
            cte.outputs = tuple(map(self._name, listed)) if listed else outputs

        if not cte.begun:
            cte.begun = True
            know(self._query(cte.node.this, cte.names, know))
        if cte.outputs is None:
            self._add(user, "table", f'"{cte.node.alias}" refers to itself before it has columns')
        return cte.outputs or ()

    # Expressions

    def _expression(self, node: Any, names: _Names, aliases_first: bool = False) -> None:
        """Check an expression. ``aliases_first``: alone, a name means a result, as in ORDER BY."""
        e, kind = self._e, type(node).__name__
        if isinstance(node, e.Column):
            self._column(node, names.scopes, aliases_first)
        elif isinstance(node, (e.Subquery, e.Select, e.SetOperation, e.Values)):
            self._query(node, names)
        elif kind in LEAVES or (
            kind == "Star" and isinstance(node.parent, e.Anonymous) and not any(node.args.values())
        ):
            pass
        elif kind in PLAIN:
            if kind == "Anonymous":
                self._function(node)
            tested = node.args.get("field") if kind == "In" else None
            if tested is not None:
                self._tested(tested, names)
            for child in node.iter_expressions():
                if child is not tested:
                    self._expression(child, names, aliases_first and kind == "Ordered")
        else:
            self._not_understood(node)

    def _function(self, node: Any) -> None:
        name = self._source.name(node)
        if fold(name) not in self._access.functions:
            self._add(node, "function", f'"{name}" is no function that may be called', self._access.functions)

    def _tested(self, node: Any, names: _Names) -> None:
        """``x IN table``: reads all columns of it."""
        if not isinstance(node, self._e.Column) or node.args.get("db"):
            self._not_understood(node)
            return
        table = self._e.Table(this=node.this.copy(), db=node.args.get("table") and node.args["table"].copy())
        self._no_star(node, [self._table(table, "", names)], "IN reads columns")

    def _parts_of(self, column: Any) -> tuple[str, str | None, str | None]:
        """The name of a column, and its table and schema if they are said."""
        table, schema = (
            self._name(column.args[key]) if column.args.get(key) else None for key in ("table", "db")
        )
        return self._name(column.this), table, schema

    def _column(self, node: Any, scopes: tuple[_Scope, ...], aliases_first: bool) -> None:
        if not isinstance(node.this, self._e.Identifier) or node.args.get("catalog"):
            self._not_understood(node)
            return
        name, qualifier, schema = self._parts_of(node)
        bare = qualifier is None
        if bare and aliases_first and name in scopes[0].aliases:
            return
        for scope in scopes:
            if found := scope.having(name, qualifier, schema):
                if any(name in r.hidden for r in found):
                    break
                if len(found) > 1 and not (bare and name in scope.merged):
                    allowed = (f"{self._spell(r.name)}.{self._spell(name)}" for r in found)
                    self._add(node, "column", f'"{node.name}" is ambiguous', allowed)
                return
            if bare and name in scope.aliases:
                return
        else:
            if any(r.open and qualifier in (None, r.name) for scope in scopes for r in scope.relations):
                return
            if bare and self._source.spelt(node.this).startswith('"'):
                return  # SQLite takes it for a string
        chosen = [r for scope in scopes for r in scope.relations if qualifier in (None, r.name)]
        self._no_column(node.this, (n for r in chosen for n in self._listed(r.readable, r, chosen)))
