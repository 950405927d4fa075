"""Which words may stand in which name position, as terminals.

A *slot* is a position for a name: a rule of the dialect such as ``binder``, or a pair ``(rule, table)`` for rules that
are copied for each table. A name of the catalog or of the dialect has the set of slots that it fills; every other name
is *new*, and all of those fill the same ones. There is a terminal for each set of slots that belong to no table, one
for those of each table as a relation, and one for those of its columns. A name is a word of all the terminals that its
slots are made of, and a lexeme stands for any of them: more names make no more terminals, and which columns a table has
is said by words, not by productions.

Rank does the rest: the known names outrank the pattern of new ones, and those without any slot are known too, as the
reject terminal ``HIDDEN_NAME``; the dialect's own ``ID`` stays in the lexer, as a reject terminal below all of them. A
hidden name is therefore always one lexeme that nothing can use, never two shorter ones.

Spellings: the bare word in any case (if it is no keyword), ``"w"``, `` `w` ``, ``[w]``, and ``'w'`` where SQLite takes
a string for a name. Two of them have slots of their own: ``'w'`` is always a value too; and ``"w"`` is a value where no
column is called so, hence it may stand for a column unless its name is hidden from the role.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..errors import PolicyError
from ..grammar.ir import Expr, Terminal
from .access import Access, TableAccess
from .catalog import fold

__all__ = ["Lexicon", "Slot", "Slots", "schema_numbers", "spelled"]

Slot = str | tuple[str, int]
Slots = frozenset[Slot]
_Spelt = tuple[tuple[Slots, ...], bool, bool, bool]
"""What the spellings of a name depend on: its slots, and whether it is hidden, has one terminal, and is a bare word."""

_LABELS = ("label", "bare_label", "column", "any_column")
"""Slots of a name that the statement gives to a column: where it is given, and where it may be used."""
_BINDERS = ("binder", "bare_binder")
"""Slots of a name that the statement gives to a relation or window."""
_NEW: Slots = frozenset({*_LABELS, *_BINDERS})
_RELATIONS = ("table_name", "inserted_table", "updated_table", "deleted_table")
"""Slots of a relation's name, by what is granted."""
_COLUMNS = ("column_name", "inserted_column", "updated_column")
_NO_STRING = ("column", "function")
"""Slots in which a string is not a name."""
_VALUE: Slots = frozenset({"string"})

_WORD = re.compile(r"[A-Za-z_\u0080-\ufefe\uff00-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*")
_FIRST: Expr = ("class", ((65, 90), (95, 95), (97, 122), (0x80, 0xFEFE), (0xFF00, 0x10FFFF)))
_INSIDE: Expr = ("class", ((36, 36), (48, 57), (65, 90), (95, 95), (97, 122), (0x80, 0x10FFFF)))
_CLOSING = {"": "", '"': '"', "`": "`", "[": "]", "'": "'"}
_SPECIAL = frozenset("\"`]'")
"""What has to be doubled in some quotes, or cannot be written in them."""


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The words of a role and catalog.

    Attributes
    ----------
    names : dict
        The slots of every known name, folded: of no table, then of each table as a relation and of its columns.
    terminals : tuple of (frozenset, Terminal)
        Those for each set of slots, in an order that depends on the sets alone. New names have one of their own.
    """

    names: dict[str, tuple[Slots, ...]]
    terminals: tuple[tuple[Slots, Terminal], ...]

    @classmethod
    def of(cls, access: Access) -> Lexicon:
        """Compute the lexicon of a role over a catalog.

        Every text of a terminal is one of the dialect's ``ID`` or ``STRING``: a name that cannot be spelt in some way
        is left out of it there.

        Raises
        ------
        PolicyError
            The role may use a relation whose name several schemas have.
        """
        names = _known_names(access)
        new = {
            _NEW: [_new_name(q) for q in ("", '"', "`", "[")],
            _in_quotes(_NEW, "'", False): [_new_name("'")],
        }
        known: dict[Slots, list[Expr]] = {frozenset({"column"}): [("lit", '""')], _VALUE: [("lit", "''")]}
        words: dict[tuple[Slots, tuple[str, ...]], list[str]] = {}
        hidden, keywords = access.hidden_names, access.dialect.keywords
        # A keyword falls back to one terminal: a name that is one has a terminal with all of its slots.
        whole = frozenset(fold(t.name) for t in access.dialect.ir.terminals if t.fallback is not None)
        places: dict[_Spelt, list[tuple[Slots, tuple[str, ...], list[str]]]] = {}
        for name, slots in sorted(names.items()):
            is_bare = name not in keywords and _WORD.fullmatch(name) is not None
            key = (slots, name in hidden, name in whole, is_bare)
            if key not in places:
                found = _spellings(*key)
                places[key] = [(part, quotes, words.setdefault((part, quotes), [])) for part, quotes in found]
            is_simple = _SPECIAL.isdisjoint(name)
            for part, quotes, texts in places[key]:
                if is_simple:
                    texts.append(name)
                else:
                    spelt = (spelled(name, quote, keywords) for quote in quotes)
                    known.setdefault(part, []).extend(("fold", text) for text in spelt if text is not None)
        for (part, quotes), texts in words.items():
            if texts:
                pairs = tuple((q, _CLOSING[q]) for q in quotes)
                known.setdefault(part, []).append(("words", pairs, tuple(texts)))
        for prefix in access.dialect.rules["system_prefixes"]:
            for quote in _CLOSING:
                rest: Expr = ("cat", (("fold", prefix), ("repeat", _inside(quote), 0, None)))
                known.setdefault(_in_quotes(frozenset(), quote, True), []).append(_enclosed(rest, quote))
        ranked = [(0, sorted(known.items(), key=lambda item: _order(item[0]))), (-1, list(new.items()))]
        terminals = tuple(
            (slots, Terminal(_title(slots, i, rank < 0), ("alt", tuple(exprs)), rank, reject=not slots))
            for rank, groups in ranked
            for i, (slots, exprs) in enumerate(groups)
            if exprs
        )
        return cls(names, terminals)

    def slots(self, name: str) -> Slots:
        """The slots of a name that is given as a bare word, in backquotes or in brackets."""
        parts = self.names.get(fold(name))
        return _NEW if parts is None else frozenset[Slot]().union(*parts)


def _known_names(access: Access) -> dict[str, tuple[Slots, ...]]:
    """The slots of every name of the catalog and of the dialect, but for names that fill those of new ones."""
    rules = access.dialect.rules
    schemas = frozenset(rules["schemas"]) | {fold(t.table.schema) for t in access.tables}
    numbers = schema_numbers(access)
    own = frozenset(map(fold, access.catalog.functions))
    functions = access.dialect.known_functions | own | access.functions | access.table_functions
    columns = access.readable_columns | access.hidden_columns
    written = frozenset(name for t in access.tables for name in t.insert | t.update)
    words = [*rules["types"], *rules["collations"]]
    everything = (*access.relations, *schemas, *functions, *columns, *written, *words)
    hidden = access.hidden_names
    taken = schemas | access.relations | functions | access.hidden_columns
    found: dict[str, set[Slot]] = {name: set() for name in everything}
    parts: dict[str, list[Slots]] = {}
    _check_unique(access)
    for index, table in enumerate(access.tables):
        for name, part in _of_table(index, table):
            parts.setdefault(name, []).append(part)
        if table.reachable:
            schema = fold(table.table.schema)
            found[schema].add(f"schema_{numbers[schema]}")
    for name, slots in found.items():
        if name in access.readable_columns:
            slots.update(("column", "any_column"))
        for slot, members in (
            ("function", access.functions),
            ("table_function", access.table_functions),
            ("type_word", rules["types"]),
            ("collation", rules["collations"]),
        ):
            if name in members:
                slots.add(slot)
        if name not in hidden and (name not in functions or slots & {"function", "column"}):
            slots.update(_LABELS)
        if name not in taken:
            slots.update(_BINDERS)
    return {
        name: (frozenset(slots), *parts.get(name, ()))
        for name, slots in found.items()
        if slots != _NEW or name in parts
    }


def _check_unique(access: Access) -> None:
    tables: dict[str, list[bool]] = {}
    for t in access.tables:
        tables.setdefault(fold(t.table.name), []).append(t.reachable)
    for name, reachable in tables.items():
        if len(reachable) > 1 and any(reachable):
            raise PolicyError(
                f'role "{access.role.name}" may use relation "{name}", a name that several schemas have, and which of '
                "them it means depends on the connection; rename one"
            )


def schema_numbers(access: Access) -> dict[str, int]:
    """The schemas of relations within reach, folded, in their order."""
    found = dict.fromkeys(fold(t.table.schema) for t in access.tables if t.reachable)
    return {schema: number for number, schema in enumerate(found)}


def _of_table(index: int, table: TableAccess) -> Iterator[tuple[str, Slots]]:
    """Names with the slots that they fill for one table: of the relation, and of its columns."""
    granted = (table.select, table.insert, table.update)
    given = zip(_RELATIONS, (*granted, table.delete), strict=True)
    relation = frozenset((rule, index) for rule, grant in given if grant)
    if relation:
        yield fold(table.table.name), relation
    parts: dict[tuple[bool, ...], Slots] = {}
    for name in table.select | table.insert | table.update:
        has = tuple(name in names for names in granted)
        if has not in parts:
            parts[has] = frozenset(
                (rule, index) for rule, is_given in zip(_COLUMNS, has, strict=True) if is_given
            )
        yield name, parts[has]


@lru_cache(4096)
def _spellings(
    slots: tuple[Slots, ...], hidden: bool, whole: bool, is_bare: bool
) -> tuple[tuple[Slots, tuple[str, ...]], ...]:
    """The terminals of names with these slots, and the quotes in which they are words of each."""
    found: dict[Slots, list[str]] = {}
    for quote in _CLOSING if is_bare else list(_CLOSING)[1:]:
        parts = [_in_quotes(slots[0], quote, hidden), *slots[1:]]
        parts = [frozenset[Slot]().union(*parts)] if whole else [part for part in parts if part] or parts
        for part in parts:
            found.setdefault(part, []).append(quote)
    return tuple((part, tuple(quotes)) for part, quotes in found.items())


def _order(slots: Slots) -> list[tuple[int, str]]:
    return sorted((-1, slot) if isinstance(slot, str) else (slot[1], slot[0]) for slot in slots)


def _in_quotes(slots: Slots, quote: str, hidden: bool) -> Slots:
    """The slots of a name in one spelling, given those of the bare word."""
    if quote == "'":
        return slots.difference(_NO_STRING) | _VALUE
    if quote == '"' and not hidden:
        return slots | {"column"}
    return slots


def spelled(name: str, quote: str, keywords: Container[str]) -> str | None:
    """A name as it is written in one way, in lower case; ``None`` if it cannot be."""
    if not quote:
        return None if name in keywords or not _WORD.fullmatch(name) else name
    if quote == "[" and "]" in name:
        return None
    return f"{quote}{name.replace(quote, quote * 2)}{_CLOSING[quote]}"


def _new_name(quote: str) -> Expr:
    """Any name in one spelling."""
    if not quote:
        return ("cat", (_FIRST, ("repeat", _INSIDE, 0, None)))
    return _enclosed(("repeat", _inside(quote), 1, None), quote)


def _enclosed(text: Expr, quote: str) -> Expr:
    return ("cat", (("lit", quote), text, ("lit", _CLOSING[quote]))) if quote else text


def _inside(quote: str) -> Expr:
    """One character of a name, as it is written in quotes."""
    if not quote:
        return _INSIDE
    closing = ord(_CLOSING[quote])
    others: Expr = ("class", ((1, closing - 1), (closing + 1, 0xD7FF), (0xE000, 0x10FFFF)))
    return others if quote == "[" else ("alt", (("lit", quote * 2), others))


def _title(slots: Slots, number: int, is_new: bool) -> str:
    """What people call the words of a terminal."""
    kinds = {slot if isinstance(slot, str) else slot[0] for slot in slots}
    quoted = "QUOTED_" if "string" in kinds else ""
    if not slots:
        return "HIDDEN_NAME"
    if slots == _VALUE:
        return "STRING_VALUE"
    if is_new:
        return f"NEW_{quoted}NAME"
    for kind, what in (("table_name", "TABLE"), ("column_name", "COLUMN"), ("function", "FUNCTION")):
        if kind in kinds:
            return f"{quoted}{what}_{number}"
    return f"{quoted}NAME_{number}"
