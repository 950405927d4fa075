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
from collections.abc import Container
from dataclasses import dataclass

from ..errors import PolicyError
from ..grammar.ir import Expr, Terminal
from .access import Access, TableAccess
from .catalog import fold

__all__ = ["Lexicon", "Slot", "Slots", "schema_numbers", "spelled"]

Slot = str | tuple[str, int]
Slots = frozenset[Slot]

_LABELS = ("label", "bare_label", "column", "any_column")
"""Slots of a name that the statement gives to a column: where it is given, and where it may be used."""
_BINDERS = ("binder", "bare_binder")
"""Slots of a name that the statement gives to a relation or window."""
_NEW: Slots = frozenset({*_LABELS, *_BINDERS})
_RELATIONS = frozenset({"table_name", "inserted_table", "updated_table", "deleted_table"})
"""Slots of a relation's name."""
_NO_STRING = ("column", "function")
"""Slots in which a string is not a name."""
_VALUE: Slots = frozenset({"string"})

_WORD = re.compile(r"[A-Za-z_\u0080-\ufefe\uff00-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*")
_FIRST: Expr = ("class", ((65, 90), (95, 95), (97, 122), (0x80, 0xFEFE), (0xFF00, 0x10FFFF)))
_INSIDE: Expr = ("class", ((36, 36), (48, 57), (65, 90), (95, 95), (97, 122), (0x80, 0x10FFFF)))
_CLOSING = {'"': '"', "`": "`", "[": "]", "'": "'"}
_SPELLINGS = ("", *_CLOSING)


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The words of a role and catalog.

    Attributes
    ----------
    names : dict
        The slots of every known name, folded.
    terminals : tuple of (frozenset, Terminal)
        Those for each set of slots, in an order that depends on the sets alone. New names have one of their own.
    """

    names: dict[str, Slots]
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
        names = {name: slots for name, slots in _known_names(access).items() if slots != _NEW}
        new = {
            _NEW: [_new_name(q) for q in ("", '"', "`", "[")],
            _in_quotes(_NEW, "'", False): [_new_name("'")],
        }
        known: dict[Slots, list[Expr]] = {frozenset({"column"}): [("lit", '""')], _VALUE: [("lit", "''")]}
        hidden, keywords = access.hidden_names, access.dialect.keywords
        # A keyword falls back to one terminal: a name that is one has a terminal with all of its slots.
        whole = frozenset(fold(t.name) for t in access.dialect.ir.terminals if t.fallback is not None)
        places: dict[tuple[Slots, bool, bool], list[tuple[str, list[list[Expr]]]]] = {}
        for name, slots in sorted(names.items()):
            key = (slots, name in hidden, name in whole)
            if key not in places:
                spellings = ((quote, _in_quotes(slots, quote, key[1])) for quote in _SPELLINGS)
                places[key] = [
                    (quote, [known.setdefault(part, []) for part in ([here] if key[2] else _parts(here))])
                    for quote, here in spellings
                    if here not in new
                ]
            for quote, parts in places[key]:
                text = spelled(name, quote, keywords)
                if text is not None:
                    for texts in parts:
                        texts.append(("fold", text))
        for prefix in access.dialect.rules["system_prefixes"]:
            for quote in _SPELLINGS:
                rest: Expr = ("cat", (("fold", prefix), ("repeat", _inside(quote), 0, None)))
                known.setdefault(_in_quotes(frozenset(), quote, True), []).append(_enclosed(rest, quote))
        terminals = [
            (
                slots,
                Terminal(
                    _title(slots, number, priority < 0), ("alt", tuple(texts)), priority, reject=not slots
                ),
            )
            for priority, groups in (
                (0, sorted(known.items(), key=lambda item: _order(item[0]))),
                (-1, new.items()),
            )
            for number, (slots, texts) in enumerate(groups)
            if texts
        ]
        return cls(names, tuple(terminals))

    def slots(self, name: str) -> Slots:
        """The slots of a name that is given as a bare word, in backquotes or in brackets."""
        return self.names.get(fold(name), _NEW)


def _known_names(access: Access) -> dict[str, Slots]:
    """The slots of every name of the catalog and of the dialect."""
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
    _check_unique(access)
    for index, table in enumerate(access.tables):
        _add_table(found, index, table)
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
    return {name: frozenset(slots) for name, slots in found.items()}


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


def _add_table(found: dict[str, set[Slot]], index: int, table: TableAccess) -> None:
    """Fill the slots that belong to one table."""
    relation = found[fold(table.table.name)]
    for rule, granted in (
        ("table_name", table.select),
        ("inserted_table", table.insert),
        ("updated_table", table.update),
        ("deleted_table", table.delete),
    ):
        if granted:
            relation.add((rule, index))
    for rule, names in (
        ("column_name", table.select),
        ("inserted_column", table.insert),
        ("updated_column", table.update),
    ):
        for name in names:
            found[name].add((rule, index))


def _parts(slots: Slots) -> list[Slots]:
    """Those of no table, those of each as a relation, and those of its columns."""
    parts: dict[tuple[int, bool], set[Slot]] = {}
    for slot in slots:
        key = (-1, False) if isinstance(slot, str) else (slot[1], slot[0] in _RELATIONS)
        parts.setdefault(key, set()).add(slot)
    return [frozenset(part) for part in parts.values()] or [slots]


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
