"""Grammar front ends: text in, :class:`~glrgrid.grammar.ir.GrammarIR` out."""

from __future__ import annotations

import hashlib
import warnings
from typing import TYPE_CHECKING

from glrgrid import _native

from . import json_schema, lark
from .ir import GrammarIR

if TYPE_CHECKING:
    from ..sql import Catalog, Dialect, Role

__all__ = ["Grammar", "GrammarWarning"]


class GrammarWarning(UserWarning):
    """A grammar is usable, but something in it has no effect or may not mean what it seems to."""


class Grammar:
    """A grammar, ready to be compiled. Immutable; equal grammars have equal fingerprints."""

    __slots__ = ("_ir", "_lowered", "_warnings")

    def __init__(self, ir: GrammarIR) -> None:
        self._ir: GrammarIR | None = ir
        self._lowered: _native.SchemaGrammar | None = None
        self._warnings = ir.warnings

    @classmethod
    def from_lark(cls, text: str, start: str = "start", lexer: str | None = None) -> Grammar:
        """Read a grammar in Lark's text format.

        Parameters
        ----------
        text : str
            Rules, terminals, templates, ``%import`` (of the grammars that Lark ships), ``%ignore``,
            ``%override`` and ``%extend``. A line ``%glrgrid {...}`` (JSON) says what Lark has no words for:
            ``"lexer"``, ``"start"``, ``"fallback"`` (``{"ID": ["KEY"]}``: KEY is read as ID where KEY itself
            is impossible) and ``"reject"`` (a list of terminals that take part in the longest match but are
            never accepted).
        start : str
            Start rule. Left at its default, it yields to the text's ``%glrgrid`` line.
        lexer : {"basic", "contextual"}, optional
            ``"contextual"``: the longest match over the terminals that the parser can use where the lexeme
            begins, and the ignored and rejected ones. ``"basic"``: over all terminals. Wins over the text's
            ``%glrgrid`` line; the default is ``"contextual"``.

        Returns
        -------
        Grammar

        Raises
        ------
        GrammarError
            The text is malformed or uses something unsupported; with line and column where they are known.

        Warns
        -----
        GrammarWarning
            Useless rules, terminals that take part though no rule uses them, and priorities that mean
            something else here than in Lark; also kept in ``warnings``.

        Notes
        -----
        The longest match wins, whereas Lark takes the first match in an order of its own. With the basic
        lexer, terminals that the text defines or imports by name take part in it even if no rule uses them.
        ``"select"i`` folds ASCII letters only.

        Examples
        --------
        >>> grammar = Grammar.from_lark('start: "a" start? ";"')
        >>> [terminal.name for terminal in grammar.ir.terminals]
        ['A', 'SEMICOLON']
        """
        if not isinstance(text, str):
            raise TypeError(f"text is of type {type(text).__name__}; pass the grammar's text, a str")
        ir = lark.read(text, start, lexer)
        for message in ir.warnings:
            warnings.warn(message, GrammarWarning, stacklevel=2)
        return cls(ir)

    @classmethod
    def from_json_schema(
        cls,
        schema: object,
        *,
        whitespace: str = "flexible",
        separators: tuple[str, str] = (",", ":"),
        max_newlines: int = 2,
        max_blanks: int = 64,
        property_order: str = "schema",
        one_of: str = "exact",
        lenient: bool = False,
    ) -> Grammar:
        """Make a grammar of the JSON texts that a schema accepts.

        Parameters
        ----------
        schema : str, bytes, dict, bool or class
            A JSON Schema, draft 4 to 2020-12: as JSON text, as what ``json.loads`` makes of it, or a class with a
            method ``model_json_schema()`` (Pydantic).
        whitespace : {"flexible", "compact"}
            ``"flexible"``: white space anywhere between tokens, in bounded runs. ``"compact"``: only ``separators``.
        separators : tuple of str
            What stands between items and between key and value of compact texts, as in ``json.dumps``.
        max_newlines, max_blanks : int
            Longest run of flexible white space: so many line feeds, and so many spaces, tabs and carriage returns.
        property_order : {"schema", "any"}
            ``"schema"``: keys under ``properties`` in their order, then those that are only required, then others.
            ``"any"``: any order, for objects of at most 12 declared keys.
        one_of : {"exact", "any"}
            ``"any"`` reads ``oneOf`` as ``anyOf``.
        lenient : bool
            Leave out what cannot be enforced, and say so in ``warnings``, instead of refusing the schema.

        Returns
        -------
        Grammar

        Raises
        ------
        SchemaError
            The schema is malformed, accepts nothing, or uses what is not supported; ``pointer`` says where.
        BudgetExceeded
            The schema takes more states or rules than are reasonable.

        Warns
        -----
        GrammarWarning
            For each constraint that is not enforced; also kept in ``warnings``. Unknown formats are annotations by the
            standard, and warned of.

        Notes
        -----
        ``docs/json_schema.md`` says what is enforced.

        Examples
        --------
        >>> grammar = Grammar.from_json_schema({"type": "object", "properties": {"n": {"type": "integer"}}})
        >>> grammar.warnings
        ()
        """
        lowered = json_schema.lower(
            schema,
            whitespace=whitespace,
            separators=separators,
            max_newlines=max_newlines,
            max_blanks=max_blanks,
            property_order=property_order,
            one_of=one_of,
            lenient=lenient,
        )
        grammar = cls.__new__(cls)
        grammar._ir, grammar._lowered, grammar._warnings = None, lowered, tuple(lowered.warnings)
        for message in grammar._warnings:
            warnings.warn(message, GrammarWarning, stacklevel=2)
        return grammar

    @classmethod
    def from_sql(cls, dialect: str | Dialect, role: Role, catalog: Catalog) -> Grammar:
        """The SQL that a role may say to a database: one statement, ended by one ``;``.

        Parameters
        ----------
        dialect : str or Dialect
            Such as ``"sqlite"``.
        role : Role
            What may be done.
        catalog : Catalog
            What there is.

        Returns
        -------
        Grammar
            Equal roles, catalogs and dialects give equal fingerprints.

        Raises
        ------
        PolicyError
            The role grants what the catalog does not have, denies an unknown clause, or leaves no statement.

        Notes
        -----
        What the grammar enforces, and what it leaves to a check of the finished statement, is said in
        :mod:`glrgrid.sql`.

        Examples
        --------
        >>> from glrgrid.sql import Catalog, Role
        >>> catalog = Catalog.from_rows([("users", "id"), ("users", "name"), ("users", "ssn"), ("salaries", "id")])
        >>> grammar = Grammar.from_sql("sqlite", Role("analyst", {"users": ["id", "name"]}), catalog)
        """
        from ..sql.access import Access
        from ..sql.dialect import Dialect
        from ..sql.grammar import compose

        chosen = Dialect.load(dialect) if isinstance(dialect, str) else dialect
        return cls(compose(Access.of(role, catalog, chosen)))

    @property
    def ir(self) -> GrammarIR:
        """What the engines read."""
        if self._ir is None:
            assert self._lowered is not None
            self._ir = GrammarIR.from_json(self._lowered.to_json(), self._warnings)
        return self._ir

    @property
    def _source(self) -> str | _native.SchemaGrammar:
        """What the compiler takes: a schema's grammar as it is, others as canonical text."""
        return self.ir.to_json() if self._lowered is None else self._lowered

    @property
    def lexer(self) -> str:
        """How lexemes are cut: ``"basic"`` or ``"contextual"``."""
        return self.ir.lexer

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was warned of when the grammar was read."""
        return self._warnings

    @property
    def fingerprint(self) -> str:
        """BLAKE2b (256 bits, hex) of the grammar's canonical JSON."""
        text = self.ir.to_json() if self._lowered is None else self._lowered.to_json()
        return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if isinstance(other, Grammar) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        ir = self.ir
        sizes = f"{len(ir.terminals)} terminals, {len(ir.productions)} productions"
        start = ir.nonterminals[ir.start].name
        return f'<Grammar "{start}": {sizes}, {ir.lexer} lexer, {self.fingerprint[:12]}>'
