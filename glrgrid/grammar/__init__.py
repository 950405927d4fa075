"""Grammar front ends: text in, :class:`~glrgrid.grammar.ir.GrammarIR` out."""

from __future__ import annotations

import copy
import hashlib
import json
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from glrgrid import _native

from ..errors import GrammarError
from . import gbnf, json_schema, lark, regex, scannerless, structural_tag, tokens
from .ir import GrammarIR
from .regular import alt

if TYPE_CHECKING:
    from ..sql import Access, Catalog, Dialect, Role
    from ..vocab import Vocab

__all__ = ["Grammar", "GrammarWarning"]


class GrammarWarning(UserWarning):
    """A grammar is usable, but something in it has no effect or may not mean what it seems to."""


class Grammar:
    """A grammar, ready to be compiled. Immutable; equal grammars have equal fingerprints."""

    __slots__ = ("_ir", "_lowered", "_read", "_text_read", "_warnings")

    def __init__(self, ir: GrammarIR) -> None:
        self._ir: GrammarIR | None = ir
        self._lowered: _native.SchemaGrammar | str | None = None
        self._warnings = ir.warnings
        self._text_read = ""
        """The text that the grammar was made of, where literals in it may mean tokens as well, ..."""
        self._read: Callable[..., GrammarIR] | None = None
        """... and how to read it again, knowing the markers of a vocabulary."""

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

        llguidance's additions to the format are read too: ``{m,n}``, ``&`` and ``~`` in terminals, ``%json``,
        ``%lark``, ``%regex``, ``lazy``, ``suffix=``, ``stop=``. ``docs/grammars.md`` says more, and what is refused.

        Examples
        --------
        >>> grammar = Grammar.from_lark('start: "a" start? ";"')
        >>> [terminal.name for terminal in grammar.ir.terminals]
        ['A', 'SEMICOLON']
        """
        _check_text(text, "the grammar's text")
        return cls._of(text, partial(lark.read, text, start, lexer, _read_schema))

    @classmethod
    def from_gbnf(cls, text: str, start: str = "root") -> Grammar:
        r"""Read a grammar in llama.cpp's format, GBNF.

        Parameters
        ----------
        text : str
            Rules ``name ::= ...`` over strings, character classes, ``.``, groups, ``|`` and the repetitions ``* + ?
            {m} {m,} {m,n}``.
        start : str
            Start rule.

        Returns
        -------
        Grammar
            Accepts what the rules derive, character by character; no longest match takes part in that. Its terminals
            are the largest regular parts for which this holds.

        Raises
        ------
        GrammarError
            The text is malformed, or names tokens (``<[1000]>``, ``<think>``); with line and column.
        BudgetExceeded
            A part that cannot be cut into smaller ones is too large.

        Warns
        -----
        GrammarWarning
            Rules that the start rule does not lead to.

        Examples
        --------
        >>> grammar = Grammar.from_gbnf('root ::= "(" root? ")" | [0-9]+')
        >>> [terminal.name for terminal in grammar.ir.terminals]
        ['[0-9]+', '\\(', '\\)']
        """
        _check_text(text, "the grammar's text")
        return cls._of(text, partial(gbnf.read, text, start))

    @classmethod
    def from_regex(cls, pattern: str, flags: str = "") -> Grammar:
        """Accept the texts that match a regular expression from beginning to end.

        Parameters
        ----------
        pattern : str
            In the dialect of Python's :mod:`re`. Anchors (``^ $ \\A \\Z``) at its ends say what holds anyway.
        flags : str
            Letters out of ``imsxua``, as in ``/pattern/is``.

        Raises
        ------
        GrammarError
            The pattern is malformed, or uses what has no plain regular equivalent: look-arounds, other anchors,
            possessive quantifiers, backreferences.

        Examples
        --------
        >>> Grammar.from_regex("(yes|no)!*").ir.terminals[0].name
        '(yes|no)!*'
        """
        _check_text(pattern, "a regular expression")
        expr = regex.from_pattern(pattern, flags, whole=True)
        return cls(scannerless.build({"start": (expr, (1, 1))}, "start"))

    @classmethod
    def from_choices(cls, choices: Iterable[str]) -> Grammar:
        """Accept exactly the given texts.

        Parameters
        ----------
        choices : iterable of str
            At least one; an empty one allows the empty output.

        Raises
        ------
        GrammarError
            There are none, or one has a lone surrogate, which no UTF-8 text can contain.

        Examples
        --------
        >>> Grammar.from_choices(["yes", "no"]).ir.terminals[0].name
        'yes|no'
        """
        texts = [choices] if isinstance(choices, str) else list(choices)
        if isinstance(choices, str) or not all(isinstance(text, str) for text in texts):
            raise TypeError("choices must be several texts, as in from_choices(['yes', 'no'])")
        if not texts:
            raise GrammarError("no choices were given; pass at least one text")
        for text in texts:
            if any("\ud800" <= c <= "\udfff" for c in text):
                raise GrammarError(f"choice {text!r} has a lone surrogate, which no UTF-8 text can contain")
        return cls._of("\0".join(texts), partial(_read_choices, texts))

    @classmethod
    def from_structural_tag(cls, tag: str | dict[str, Any]) -> Grammar:
        """Read a structural tag, as XGrammar and vLLM spell them.

        It describes free text, and what must follow certain triggers in it.

        Parameters
        ----------
        tag : str or dict
            ``{"type": "structural_tag", "format": {...}}``, a format alone, or the older ``{"structures": [{"begin":
            ..., "schema": ..., "end": ...}], "triggers": [...]}``; as JSON text, or as what it means.

        Raises
        ------
        GrammarError
            It is malformed, or uses something unsupported (tokens, schemas in other notations than JSON); the message
            has the place as a JSON Pointer.
        SchemaError
            A schema in it cannot be used.

        Examples
        --------
        >>> tag = {"type": "tag", "begin": "<f>", "content": {"type": "regex", "pattern": "[0-9]+"}, "end": "</f>"}
        >>> Grammar.from_structural_tag({"type": "triggered_tags", "triggers": ["<f"], "tags": [tag]})
        <Grammar "text": ...>
        """
        text = tag if isinstance(tag, str) else ""
        try:
            tag = json.loads(text) if text else copy.deepcopy(tag)
            text = json.dumps(tag, ensure_ascii=False)
        except (ValueError, TypeError, RecursionError):
            pass  # the reader says what is wrong
        return cls._of(text, partial(structural_tag.read, tag, _read_schema))

    @classmethod
    def _of(cls, text: str, read: Callable[..., GrammarIR]) -> Grammar:
        ir = read()
        for message in ir.warnings:
            warnings.warn(message, GrammarWarning, stacklevel=3)
        grammar = cls(ir)
        grammar._text_read, grammar._read = text, read
        return grammar

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
        grammar = cls._lazily(lowered, tuple(lowered.warnings))
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
            The role grants tables, columns or functions that there are not, denies an unknown clause, or leaves no
            statement.

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

        return cls._from_access(Access.of(role, catalog, dialect))

    @classmethod
    def _from_access(cls, access: Access) -> Grammar:
        """The same, of a role that was resolved over a catalog before."""
        from ..sql.grammar import compose

        return cls._lazily(compose(access), ())

    @classmethod
    def _lazily(cls, lowered: _native.SchemaGrammar | str, warned: tuple[str, ...]) -> Grammar:
        """A grammar whose IR is only made if somebody asks for it."""
        grammar = cls.__new__(cls)
        grammar._ir, grammar._lowered, grammar._warnings = None, lowered, warned
        grammar._text_read, grammar._read = "", None
        return grammar

    @property
    def ir(self) -> GrammarIR:
        """What the engines read."""
        if self._ir is None:
            self._ir = GrammarIR.from_json(self._text, self._warnings)
        return self._ir

    def _source(self, vocab: Vocab) -> str | _native.SchemaGrammar:
        """What the compiler takes: a schema's grammar as it is, others as canonical text with tokens named by id."""
        if self._lowered is not None:
            return self._lowered
        ir = self.ir
        if self._read is not None and (
            markers := [name for name in vocab.markers if name in self._text_read]
        ):
            ir = self._read(markers=markers)
        return tokens.resolve(ir, vocab).to_json()

    @property
    def _text(self) -> str:
        source = self.ir if self._lowered is None else self._lowered
        return source if isinstance(source, str) else source.to_json()

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
        return hashlib.blake2b(self._text.encode(), digest_size=32).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if isinstance(other, Grammar) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        ir = self.ir
        sizes = f"{len(ir.terminals)} terminals, {len(ir.productions)} productions"
        start = ir.nonterminals[ir.start].name
        return f'<Grammar "{start}": {sizes}, {ir.lexer} lexer, {self.fingerprint[:12]}>'


def _read_choices(texts: Sequence[str], markers: Collection[str] = ()) -> GrammarIR:
    named = dict.fromkeys(name for text in texts for name in tokens.parts_of(text, markers)[1::2])
    choices = alt(tokens.spelled(text, markers) for text in texts)
    return scannerless.build(
        {"start": (choices, (1, 1))}, "start", tokens={name: (tokens.token(name), (1, 1)) for name in named}
    )


def _check_text(text: object, what: str) -> None:
    if not isinstance(text, str):
        raise TypeError(f"text is of type {type(text).__name__}; pass {what}, a str")


def _read_schema(schema: Any) -> GrammarIR:
    return Grammar.from_json_schema(schema).ir
