"""One grammar out of a dialect, a role and a catalog.

Three steps: the role drops productions; rules that belong to one table are copied for each, so that a name is checked
together with its table (``users.ssn``, the columns of an INSERT); and the slots get the lexicon's terminals. Terminals
are only ever added, so bytes are cut into lexemes as the dialect does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..errors import InternalError
from ..grammar.ir import GrammarIR, Nonterminal, Production, Terminal
from .access import Access
from .dialect import Dialect
from .lexicon import Lexicon, Slots
from .projection import reduced

__all__ = ["compose", "slot_rules"]

_WHOLE_ROW = (
    "star", "table_star", "binder_star", "natural_join", "in_table", "from_joined", "update_from_several",
)  # fmt: skip
"""Productions that read columns without naming them; the last two because SQLite makes a ``SELECT *`` of them."""
_BELOW = -2
"""Priority of the dialect's own terminals for names and strings, below those of the lexicon."""


def compose(access: Access) -> GrammarIR:
    """The grammar of what a role may say to a database.

    Raises
    ------
    PolicyError
        The role denies an unknown clause, or leaves no statement.
    """
    return _Composer(access, Lexicon.of(access)).compose()


def slot_rules(dialect: Dialect) -> dict[str, bool]:
    """The rules of a dialect that are positions of names, and whether keywords may fill them."""
    ir = dialect.ir
    names = [n.name for n in ir.nonterminals]
    name, word, id_ = (~names.index(rule) for rule in ("name", "word", "id"))
    kinds = {(name,): True, (word,): True, (id_,): False}
    kinds.update(((i,), False) for i, t in enumerate(ir.terminals) if t.name in ("ID", "STRING"))
    found = {names[p.lhs]: kinds[p.rhs] for p in ir.productions if p.rhs in kinds}
    return {rule: keywords for rule, keywords in found.items() if rule not in ("name", "word", "id")}


class _Composer:
    def __init__(self, access: Access, lexicon: Lexicon) -> None:
        self._access = access
        self._lexicon = lexicon
        self._ir = access.dialect.ir
        self._names = [n.name for n in self._ir.nonterminals]
        self._per_table = {self._names.index(name) for name in access.dialect.rules["per_table"]}
        self._reachable = [i for i, table in enumerate(access.tables) if table.reachable]
        self._nonterminals = list(self._ir.nonterminals)
        self._terminals = list(self._ir.terminals)
        self._words = {slots: len(self._terminals) + i for i, slots in enumerate(lexicon.terminals)}
        self._copies: dict[tuple[int, int], int] = {}

    def compose(self) -> GrammarIR:
        dropped = self._dropped()
        productions = [p for p in self._productions() if p.name not in dropped or self._is_helper(p)]
        self._add_terminals()
        productions += self._row_limit()
        whole = replace(
            self._ir,
            terminals=tuple(self._terminals),
            nonterminals=tuple(self._nonterminals),
            productions=tuple(dict.fromkeys(productions)),
            warnings=(),
        )
        return reduced(whole, lambda p: False, f'role "{self._access.role.name}"')

    def _dropped(self) -> set[str]:
        dropped = set(self._access.role.dropped(self._access.dialect))
        if self._access.role.row_limit is not None:
            dropped.add("row_count")
        if self._access.hides_columns:
            dropped.update(_WHOLE_ROW)
        tables = [self._access.tables[i] for i in self._reachable]
        if any(t.hides for t in tables if t.insert or t.update or t.delete):
            dropped.add("returning")
        if any(not t.delete for t in tables if t.insert or t.update):
            dropped.add("replace")
        return dropped

    def _is_helper(self, production: Production) -> bool:
        return self._nonterminals[production.lhs].name.startswith("__")

    def _productions(self) -> Iterator[Production]:
        """All productions, with copies for tables, and with the lexicon's terminals in the slots."""
        slots = {self._names.index(rule): k for rule, k in slot_rules(self._access.dialect).items()}
        for production in self._ir.productions:
            lhs = production.lhs
            if lhs in slots:
                continue
            if lhs not in self._per_table:
                yield production
                if self._is_helper(production) and any(
                    ~s in self._per_table for s in production.rhs if s < 0
                ):
                    raise InternalError(f"{self._names[lhs]} uses a rule that is copied for each table")
                continue
            for table in self._reachable:
                if production.name == "insert_all" and not self._access.tables[table].inserts_all:
                    continue
                rhs = tuple(
                    ~self._copy(~s, table) if s < 0 and ~s in self._per_table else s for s in production.rhs
                )
                yield Production(lhs, rhs, production.name)
                yield Production(self._copy(lhs, table), rhs, production.name)
        for lhs, takes_keywords in slots.items():
            yield from self._slot(lhs, takes_keywords)

    def _slot(self, lhs: int, takes_keywords: bool) -> Iterator[Production]:
        rule = self._names[lhs]
        words: list[tuple[int, Slots]] = [(t, slots) for slots, t in self._words.items()]
        if takes_keywords:
            listed = self._names.index("word")
            for keyword in (p.rhs[0] for p in self._ir.productions if p.lhs == listed):
                if keyword >= 0 and self._terminals[keyword].literal:
                    words.append((keyword, self._lexicon.slots(self._terminals[keyword].name)))
        for terminal, slots in words:
            if rule in slots:
                yield Production(lhs, (terminal,), rule)
            for table in self._reachable if lhs in self._per_table else ():
                if (rule, table) in slots:
                    yield Production(lhs, (terminal,), rule)
                    yield Production(self._copy(lhs, table), (terminal,), rule)

    def _copy(self, nonterminal: int, table: int) -> int:
        """The nonterminal that stands for a rule in the scope of one table."""
        key = (nonterminal, table)
        if key not in self._copies:
            self._copies[key] = len(self._nonterminals)
            self._nonterminals.append(Nonterminal(f"{self._names[nonterminal]}_{table}"))
        return self._copies[key]

    def _add_terminals(self) -> None:
        """Add the lexicon's terminals; what they replace stays to keep unknown words whole."""
        by_name = {t.name: i for i, t in enumerate(self._terminals)}
        identifier = by_name["ID"]
        for index, terminal in enumerate(self._terminals):
            if terminal.fallback == identifier:
                slots = self._lexicon.slots(terminal.name)
                self._terminals[index] = replace(terminal, fallback=self._words[slots] if slots else None)
        for name in ("ID", "STRING"):
            old = self._terminals[by_name[name]]
            self._terminals[by_name[name]] = replace(old, priority=_BELOW, reject=True)
        self._terminals += self._lexicon.terminals.values()

    def _row_limit(self) -> list[Production]:
        """Productions for integers that respect the limit, which become a terminal of their own."""
        limit = self._access.role.row_limit
        if limit is None:
            return []
        number, count = self._names.index("number"), self._names.index("row_count")
        small = len(self._terminals)
        self._terminals.append(Terminal("ROW_COUNT", ("alt", tuple(_up_to(limit))), priority=1))
        return [Production(number, (small,), "number"), Production(count, (small,), "row_count")]


def _up_to(limit: int) -> Iterator[tuple[object, ...]]:
    """The decimal numbers from 0 to a limit, as patterns by their length and the digits they share with it."""
    digits = str(limit)
    digit = ("class", ((48, 57),))
    yield digit if len(digits) > 1 else ("class", ((48, ord(digits)),))
    for size in range(2, len(digits)):
        yield ("cat", (("class", ((49, 57),)), ("repeat", digit, size - 1, size - 1)))
    if len(digits) > 1:
        yield ("lit", digits)
        for i, d in enumerate(digits):
            low = 49 if i == 0 else 48
            if ord(d) > low:
                rest = len(digits) - i - 1
                yield (
                    "cat",
                    (("lit", digits[:i]), ("class", ((low, ord(d) - 1),)), ("repeat", digit, rest, rest)),
                )
