"""Grammar front ends: text in, :class:`~glrgrid.grammar.ir.GrammarIR` out."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import lark
from .ir import GrammarIR

if TYPE_CHECKING:
    from ..sql import Catalog, Dialect, Role

__all__ = ["Grammar", "GrammarWarning"]


class GrammarWarning(UserWarning):
    """A grammar is usable, but something in it has no effect or may not mean what it seems to."""


@dataclass(frozen=True, slots=True, repr=False)
class Grammar:
    """A grammar, ready to be compiled. Immutable; equal grammars have equal fingerprints.

    Attributes
    ----------
    ir : GrammarIR
        What the engines read.
    """

    ir: GrammarIR

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
        from ..sql.dialect import Dialect
        from ..sql.grammar import compose

        return cls(compose(Dialect.load(dialect) if isinstance(dialect, str) else dialect, role, catalog))

    @property
    def lexer(self) -> str:
        """How lexemes are cut: ``"basic"`` or ``"contextual"``."""
        return self.ir.lexer

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was warned of when the grammar was read."""
        return self.ir.warnings

    @property
    def fingerprint(self) -> str:
        """BLAKE2b (256 bits, hex) of the grammar's canonical JSON."""
        return hashlib.blake2b(self.ir.to_json().encode(), digest_size=32).hexdigest()

    def __repr__(self) -> str:
        ir = self.ir
        sizes = f"{len(ir.terminals)} terminals, {len(ir.productions)} productions"
        start = ir.nonterminals[ir.start].name
        return f'<Grammar "{start}": {sizes}, {ir.lexer} lexer, {self.fingerprint[:12]}>'
