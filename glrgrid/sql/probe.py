"""A model-free speller: shows that masks let no token path spell a forbidden name.

For every position of a name (a production and the slot in it) a shortest text leads there. From there, each forbidden
name in each spelling is tried over *all* token paths: a path that has spelt a part goes on with every allowed token
that spells more of it, and the name counts as spelt if, behind it, any allowed token could end the lexeme. Only masks
are asked, so it does not matter how they were made. What is forbidden is decided from the grants, not from the lexicon.
Positive controls: at each position, names that are granted must be spelt in the same way.

A string ``'ssn'`` is a value, and so is ``"abs"``, which no column is called; where a value may stand, such a text
counts only if it goes on as a name would, with ``.`` or ``(``.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .._native import CompiledGrammar, Matcher
from ..bitmask import allocate_token_bitmask
from ..grammar.ir import Expr, GrammarIR
from ..vocab import Vocab
from .access import Access, TableAccess
from .catalog import fold
from .grammar import compose, slot_rules
from .lexicon import Lexicon

__all__ = ["Bypass", "Report", "probe"]

_QUOTES = {'"': '"', "`": "`", "[": "]", "'": "'"}
_TOGETHER = (
    (
        {"primary", "call", "table_column", "select_item"},
        {"column", "function", "binder", "table_name", "schema", "table_function"},
    ),
    ({"source", "table", "tested"}, {"binder", "table_name", "schema", "table_function"}),
    ({"inserted"}, {"inserted_table", "schema"}),
    ({"updated"}, {"updated_table", "schema"}),
    ({"deleted"}, {"deleted_table", "schema"}),
)
"""Rules whose first symbols (of "tested", those behind IN) are slots that begin at one place of the text; the slots."""
_BESIDE_KEYWORDS = (": bare_binder", ": bare_label", "window_frame: binder")
"""Positions where a keyword may come instead of a name, and a word that is one is therefore no sign of a bypass."""
_IN_WORDS = frozenset(b for b in range(256) if b >= 0x80 or chr(b).isalnum() or chr(b) in "_$")
_WORD = re.compile(r"[A-Za-z_\u0080-\ufefe\uff00-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*")


@dataclass(frozen=True, slots=True)
class Bypass:
    """A forbidden name that can be spelt: ``prefix + text`` is a text that masks allow."""

    position: str
    kind: str
    prefix: str
    text: str


@dataclass(slots=True)
class Report:
    """What a probe found.

    Attributes
    ----------
    pairs : set
        Of (position, kind of target) that were tried.
    tried : int
        Spellings of forbidden names.
    bypasses : list of Bypass
        Those that some path of tokens spells; empty if masks are right.
    silent : list of str
        Positions at which no granted name could be spelt, so that nothing was shown there; empty if the probe is right.
    """

    pairs: set[tuple[str, str]] = field(default_factory=set)
    tried: int = 0
    bypasses: list[Bypass] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)


def probe(access: Access, compiled: CompiledGrammar, vocab: Vocab) -> Report:
    """Try to spell every forbidden name at every position of a name.

    Parameters
    ----------
    access : Access
        The role over the catalog.
    compiled : CompiledGrammar
        Their grammar, compiled for ``vocab``.

    Returns
    -------
    Report

    Notes
    -----
    Cost: positions x forbidden names x spellings x some 50 us.
    """
    report = Report()
    speller = _Speller(compiled, vocab)
    for title, slot, rules, prefix in _positions(access):
        speller.start(prefix)
        allowed, forbidden = _names(access, slot[1], rules)
        if not any(
            speller.spells(text, quote, "") for name in allowed for quote, text in _spellings(name, access)
        ):
            report.silent.append(title)
        for kind, name in forbidden:
            report.pairs.add((title, kind))
            for quote, text in _spellings(name, access):
                if not quote and name in access.dialect.keywords and title.endswith(_BESIDE_KEYWORDS):
                    continue
                report.tried += 1
                if speller.spells(text, quote, kind):
                    report.bypasses.append(Bypass(title, kind, prefix, text))
    return report


class _Speller:
    """Asks the masks of a matcher behind one prefix."""

    def __init__(self, compiled: CompiledGrammar, vocab: Vocab) -> None:
        self._compiled = compiled
        known = [(t, i) for i, t in enumerate(vocab.tokens) if t and i not in vocab.eos_ids]
        self._sorted = sorted(known)
        first = np.full(vocab.size, -1)
        for token, i in known:
            first[i] = token[0]
        self._mask = allocate_token_bitmask(1, vocab.size)
        self._ending = {
            quote: self._packed((first >= 0) & (first != ord(end))) for quote, end in _QUOTES.items()
        }
        self._ending[""] = self._packed((first >= 0) & ~np.isin(first, sorted(_IN_WORDS)))
        self._known: dict[tuple[bytes, str], tuple[list[tuple[int, int]], list[int]]] = {}

    def _packed(self, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
        padded = np.zeros(self._mask.size * 32, dtype=bool)
        padded[: len(chosen)] = chosen
        return np.packbits(padded, bitorder="little").view(np.int32)

    def start(self, prefix: str) -> None:
        self._matcher = Matcher(self._compiled)
        assert self._matcher.accept_bytes(prefix.encode()) == len(prefix.encode()), prefix
        self._takes_value = self._matcher.fork().accept_bytes(b"'' +") == 4

    def spells(self, text: str, quote: str, kind: str) -> bool:
        """Whether some path of tokens spells a text as a name."""
        value = self._takes_value and (quote == "'" or (quote == '"' and kind == "function"))
        matcher = self._matcher.fork()
        return self._goes_on(matcher, text.encode(), quote, value, set(), 0)

    def _goes_on(
        self, matcher: Matcher, text: bytes, quote: str, value: bool, seen: set[int], at: int
    ) -> bool:
        if at in seen:
            return False
        seen.add(at)
        if at == len(text) and value:
            return any(matcher.fork().accept_bytes(more) == len(more) for more in (b".", b" .", b"(", b" ("))
        matcher.fill_next_token_bitmask(self._mask)
        if at == len(text):
            return bool((self._mask[0] & self._ending[quote]).any())
        mask = self._mask[0].copy()
        inside, beyond = self._tokens(text[at:], quote)
        if not value and any(mask[i >> 5] >> (i & 31) & 1 for i in beyond):
            return True
        for length, i in inside:
            if mask[i >> 5] >> (i & 31) & 1:
                matcher.accept_token(i)
                found = self._goes_on(matcher, text, quote, value, seen, at + length)
                matcher.rollback(1)
                if found:
                    return True
        return False

    def _tokens(self, rest: bytes, quote: str) -> tuple[list[tuple[int, int]], list[int]]:
        """Tokens that spell a part of a text, with their lengths; and those that spell all of it and end the lexeme."""
        key = (rest, quote)
        if key not in self._known:
            inside = [
                (end, i)
                for end in range(1, len(rest) + 1)
                for token, i in self._from(rest[:end])
                if len(token) == end
            ]
            beyond = [
                i
                for token, i in self._from(rest)
                if len(token) > len(rest) and self._ends(token[len(rest)], quote)
            ]
            self._known[key] = (inside, beyond)
        return self._known[key]

    def _from(self, beginning: bytes) -> list[tuple[bytes, int]]:
        """Tokens that begin with a text, shortest first."""
        low = bisect.bisect_left(self._sorted, (beginning, -1))
        return self._sorted[low : bisect.bisect_left(self._sorted, (beginning + b"\xff" * 9, -1))]

    def _ends(self, byte: int, quote: str) -> bool:
        return byte != ord(_QUOTES[quote]) if quote else byte not in _IN_WORDS


def _names(
    access: Access, index: int | None, rules: frozenset[str]
) -> tuple[list[str], list[tuple[str, str]]]:
    """What may be spelt at a position, and what may not, with its kind."""
    granted = {name for rule in rules for name in _granted(access, rule, index)}
    strict = not rules & {"column", "any_column", "label", "bare_label"}
    forbidden = [
        (kind, name)
        for kind, names in _targets(access, strict).items()
        for name in sorted(names - granted)
        if strict or name not in access.readable_columns
    ]
    new = ["zq0"] if rules & {"binder", "bare_binder", "label", "bare_label"} else []
    return [*sorted(granted), *new], forbidden


def _granted(access: Access, rule: str, index: int | None) -> Iterable[str]:
    """The names that are granted in a slot, for one table or for any."""
    tables = [t for i, t in enumerate(access.tables) if index in (None, i)]
    of_tables: dict[str, Callable[[TableAccess], object]] = {
        "table_name": lambda t: t.select,
        "inserted_table": lambda t: t.insert,
        "updated_table": lambda t: t.update,
        "deleted_table": lambda t: t.delete,
    }
    if rule in of_tables:
        return (fold(t.table.name) for t in tables if of_tables[rule](t))
    columns = {"column_name": "select", "inserted_column": "insert", "updated_column": "update"}
    if rule in columns:
        return {name for t in tables for name in getattr(t, columns[rule])}
    if rule == "schema":
        return (fold(t.table.schema) for t in tables if t.reachable)
    words: dict[str, Iterable[str]] = {
        "function": access.functions,
        "table_function": access.table_functions,
        "collation": access.dialect.rules["collations"],
        "type_word": access.dialect.rules["types"],
        "column": access.readable_columns,
        "any_column": access.readable_columns,
    }
    return words.get(rule, ())


def _targets(access: Access, strict: bool) -> dict[str, set[str]]:
    """Names by kind: where ``strict``, all that are not granted at the position are forbidden, else the hidden ones."""
    rules = access.dialect.rules
    relations = {fold(t.table.name) for t in access.tables}
    columns = {fold(c.name) for t in access.tables for c in t.table.columns}
    reachable = {fold(t.table.name) for t in access.tables if t.reachable}
    hidden_functions = set(access.dialect.known_functions - access.functions - access.table_functions)
    implicit = set(rules["implicit_columns"])
    schemas = {"temp"} - {fold(t.table.schema) for t in access.tables if t.reachable}
    targets = {
        "relation": relations if strict else relations - reachable,
        "column": columns & access.hidden_columns if strict else columns & access.hidden_names,
        "implicit column": implicit & access.hidden_columns,
        "system relation": {"sqlite_master", "sqlite_schema", "pragma_table_info", "dbstat"},
        "function": hidden_functions,
    }
    return targets | ({"schema": schemas} if strict else {})


def _spellings(name: str, access: Access) -> Iterator[tuple[str, str]]:
    """Texts that are a name, with their opening quote."""
    for cased in dict.fromkeys((name, name.upper(), name.swapcase().title())):
        if _WORD.fullmatch(cased):
            yield "", cased
        for opening, closing in _QUOTES.items():
            if opening != "[":
                yield opening, f"{opening}{cased.replace(opening, opening * 2)}{closing}"
            elif "]" not in cased:
                yield opening, f"[{cased}]"


def _positions(access: Access) -> Iterator[tuple[str, tuple[str, int | None], frozenset[str], str]]:
    """Every position of a name: its title and slot, all slots that begin there, and a text that leads there."""
    ir = GrammarIR.from_json(compose(access))
    slots = {name: _slot(name, access) for name in (n.name for n in ir.nonterminals)}
    before = _Contexts(ir, Lexicon.of(access))
    seen = set()
    for p in ir.productions:
        owner = ir.nonterminals[p.lhs].name
        for at, symbol in enumerate(p.rhs):
            slot = slots[ir.nonterminals[~symbol].name] if symbol < 0 else None
            if slot is None or slots[owner] or (owner, p.name, at, slot) in seen:
                continue
            seen.add((owner, p.name, at, slot))
            rule = re.sub(r"_[0-9]+$", "", owner)
            begins = at == 0 or rule == "tested"
            together = next(
                (s for rules, s in _TOGETHER if begins and rule in rules and slot[0] in s), {slot[0]}
            )
            index = slot[1] if slot[0].endswith("_column") or slot[0] == "column_name" else None
            yield (
                f"{p.name}: {slot[0]}",
                (slot[0], index),
                frozenset(together),
                before.text(p.lhs, p.rhs[:at]),
            )


def _slot(name: str, access: Access) -> tuple[str, int | None] | None:
    rules = slot_rules(access.dialect).keys() - {"string", "row_count"}
    if name in rules:
        return (name, None)
    rule, _, index = name.rpartition("_")
    return (rule, int(index)) if rule in rules and index.isdecimal() else None


class _Contexts:
    """Shortest texts of nonterminals, and shortest texts before them."""

    def __init__(self, ir: GrammarIR, lexicon: Lexicon) -> None:
        self._ir, self._lexicon = ir, lexicon
        self._yields = self._settle({}, lambda p, known: {p.lhs: self._join(p.rhs, known)})
        start = {ir.start: ""}
        self._before = self._settle(start, lambda p, known: self._below(p.lhs, p.rhs, known))

    def text(self, lhs: int, left: tuple[int, ...]) -> str:
        """A text that leads to the place behind ``left`` in a production of ``lhs``."""
        inside = self._join(left, self._yields)
        assert inside is not None
        return f"{self._before[lhs]}{inside}"

    def _settle(self, known: dict[int, str], step: object) -> dict[int, str]:
        assert callable(step)
        changed = True
        while changed:
            changed = False
            for p in self._ir.productions:
                for symbol, text in step(p, known).items():
                    if text is not None and (symbol not in known or len(text) < len(known[symbol])):
                        known[symbol], changed = text, True
        return known

    def _below(self, lhs: int, rhs: tuple[int, ...], known: dict[int, str]) -> dict[int, str]:
        if lhs not in known:
            return {}
        found: dict[int, str] = {}
        for at, symbol in enumerate(rhs):
            if symbol < 0:
                inside = self._join(rhs[:at], self._yields)
                text = f"{known[lhs]}{inside}"
                if ~symbol not in found or len(text) < len(found[~symbol]):
                    found[~symbol] = text
        return found

    def _join(self, rhs: tuple[int, ...], known: dict[int, str]) -> str | None:
        parts = []
        for symbol in rhs:
            if symbol < 0 and ~symbol not in known:
                return None
            parts.append(known[~symbol] if symbol < 0 else self._lexeme(symbol))
        return "".join(parts)

    def _lexeme(self, terminal: int) -> str:
        t = self._ir.terminals[terminal]
        if t.name == "NEW_NAME":
            return f"{next(n for i in range(10_000) if (n := f'zq{i}') not in self._lexicon.names)} "
        return f"{_shortest(t.expr)} "


def _shortest(expr: Expr) -> str:
    """A shortest text of an expression."""
    tag, value = expr[0], expr[1]
    if tag in ("lit", "fold"):
        return str(value)
    if tag == "words":
        return min((f"{before}{text}{after}" for text in expr[2] for before, after in value), key=len)
    if tag == "class":
        return chr(value[-1][0])
    if tag == "cat":
        return "".join(map(_shortest, value))
    if tag == "alt":
        return min(map(_shortest, value), key=len)
    return _shortest(value) * int(expr[2])
