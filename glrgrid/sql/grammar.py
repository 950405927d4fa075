"""One grammar out of a dialect, a role and a catalog.

Three steps: the role drops productions; rules that belong to one table are copied for each, so that a name is checked
together with its table (``users.ssn``, the columns of an INSERT); and the slots get the lexicon's terminals. Terminals
are only ever added, so bytes are cut into lexemes as the dialect does.

The first two hardly depend on the catalog: which productions are of use is the same for all tables that are granted in
the same way, their *kind*. So the dialect with one table of each kind is reduced once (:class:`_Frame`), and a catalog
only numbers the copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

from ..errors import InternalError
from ..grammar.ir import GrammarIR, Nonterminal, Production, Terminal, canonical
from .access import Access
from .catalog import fold
from .dialect import Dialect
from .lexicon import Lexicon, schema_numbers
from .projection import reduced

__all__ = ["compose", "slot_rules"]

_WHOLE_ROW = (
    "star", "table_star", "binder_star", "natural_join", "in_table", "in_binder", "from_joined",
    "update_from_several",
)  # fmt: skip
"""Productions that read columns without naming them; the last two because SQLite makes a ``SELECT *`` of them."""
_BELOW = -2
"""Priority of the dialect's own terminals for names and strings, below those of the lexicon."""

Kind = tuple[frozenset[str], bool, int]
"""How a table is granted: the slots that names fill for it, whether all its columns may be inserted, and its schema."""


def compose(access: Access) -> str:
    """The grammar of what a role may say to a database, as canonical JSON.

    Raises
    ------
    PolicyError
        The role denies an unknown clause, or leaves no statement.
    """
    lexicon = Lexicon.of(access)
    filled: dict[int | None, set[str]] = {None: set()}
    for slots, _ in lexicon.terminals:
        for slot in slots:
            rule, table = (slot, None) if isinstance(slot, str) else slot
            filled[None].add(rule)
            filled.setdefault(table, set()).add(rule)
    schemas = schema_numbers(access)
    kinds: dict[int, Kind] = {
        i: (frozenset(filled.get(i, ())), table.inserts_all, schemas[fold(table.table.schema)])
        for i, table in enumerate(access.tables)
        if table.reachable
    }
    frame = _Frame.of(
        access.dialect,
        frozenset(_dropped(access)),
        frozenset(filled[None]),
        tuple(sorted(set(kinds.values()), key=lambda kind: (sorted(kind[0]), *kind[1:]))),
        access.role.row_limit is not None,
        f'role "{access.role.name}"',
    )
    return frame.fill(lexicon, kinds, access.role.row_limit)


def slot_rules(dialect: Dialect) -> dict[str, bool]:
    """The rules of a dialect that are positions of names, and whether keywords may fill them."""
    ir = dialect.ir
    names = [n.name for n in ir.nonterminals]
    name, word, id_ = (~names.index(rule) for rule in ("name", "word", "id"))
    kinds = {(name,): True, (word,): True, (id_,): False}
    kinds.update(((i,), False) for i, t in enumerate(ir.terminals) if t.name in ("ID", "STRING"))
    found = {names[p.lhs]: kinds[p.rhs] for p in ir.productions if p.rhs in kinds}
    return {rule: keywords for rule, keywords in found.items() if rule not in ("name", "word", "id")}


def _dropped(access: Access) -> set[str]:
    """Names of productions that role and catalog leave out."""
    dropped = set(access.role.dropped(access.dialect))
    if access.role.row_limit is not None:
        dropped.add("row_count")
    if access.hides_columns:
        dropped.update(_WHOLE_ROW)
    if any(t.hides for t in access.tables if t.insert or t.update or t.delete):
        dropped.add("returning")
    if any(not t.delete for t in access.tables if t.insert or t.update):
        dropped.add("replace")
    return dropped


@dataclass(frozen=True, slots=True)
class _Copies:
    """The rules of a kind's tables, as templates.

    Attributes
    ----------
    names : tuple of str
        Rules that are copied.
    productions : str
        JSON, with ``%d`` for the copies.
    numbers : tuple of (int, bool)
        The copies in their order, and whether they stand on a right-hand side.
    """

    names: tuple[str, ...]
    productions: str
    numbers: tuple[tuple[int, bool], ...]

    def numbered(self, base: int) -> str:
        return self.productions % tuple([~(base + k) if right else base + k for k, right in self.numbers])


@dataclass(frozen=True, slots=True)
class _Frame:
    """A dialect under a role, for any catalog whose tables are of certain kinds.

    Attributes
    ----------
    start : int
        Start rule.
    names, productions : tuple of str
        JSON of the rules that are not copied, and of their productions.
    copies : dict
        The others, of each kind.
    terminals : tuple of str
        JSON of the dialect's own terminals.
    fallbacks : dict
        Those that fall back to a name: their position, name, and JSON with ``%d`` for the terminal.
    keywords : tuple of (int, str)
        Terminals that are names too where keywords are taken.
    slots : dict
        From rules that are slots to their number and whether they take keywords.
    """

    start: int
    names: tuple[str, ...]
    productions: tuple[str, ...]
    copies: dict[Kind, _Copies]
    terminals: tuple[str, ...]
    fallbacks: dict[int, tuple[str, str]]
    keywords: tuple[tuple[int, str], ...]
    slots: dict[str, tuple[int, bool]]

    @staticmethod
    @lru_cache(64)
    def of(
        dialect: Dialect,
        dropped: frozenset[str],
        filled: frozenset[str],
        kinds: tuple[Kind, ...],
        limited: bool,
        who: str,
    ) -> _Frame:
        """Reduce the dialect. ``filled``: the slots that some name fills."""
        return _Builder(dialect, dropped, filled, kinds, limited).build(who)

    def fill(self, lexicon: Lexicon, kinds: dict[int, Kind], row_limit: int | None) -> str:
        """The grammar of a lexicon and of tables of these kinds."""
        first = len(self.terminals)
        number = {slots: first + i for i, (slots, _) in enumerate(lexicon.terminals)}
        terminals = list(self.terminals)
        for at, (name, text) in self.fallbacks.items():
            slots = lexicon.slots(name)
            terminals[at] = text % (number[slots] if slots else "null")
        terminals += (_terminal(terminal) for _, terminal in lexicon.terminals)
        names, productions, base = list(self.names), list(self.productions), {}
        for table, kind in kinds.items():
            copies = self.copies[kind]
            base[table] = len(names)
            if copies.productions:
                productions.append(copies.numbered(len(names)))
            names += [_name(f"{rule}_{table}") for rule in copies.names]
        if row_limit is not None:
            limit = len(terminals)
            terminals.append(_terminal(Terminal("ROW_COUNT", ("alt", tuple(_up_to(row_limit))), priority=1)))
            for rule in ("number", "row_count"):
                if rule in self.slots:
                    productions.append(_production(self.slots[rule][0], (limit,), rule))
        words = [(first + i, slots, False) for i, (slots, _) in enumerate(lexicon.terminals)]
        words += [(t, lexicon.slots(name), True) for t, name in self.keywords]
        index = {
            kind: {rule: k for k, rule in enumerate(copies.names)} for kind, copies in self.copies.items()
        }
        for terminal, slots, is_keyword in words:
            fills: set[tuple[int, str]] = set()
            for slot in slots:
                rule, of = (slot, None) if isinstance(slot, str) else slot
                lhs, takes_keywords = self.slots.get(rule, (None, False))
                if is_keyword and not takes_keywords:
                    continue
                if lhs is not None:
                    fills.add((lhs, rule))
                if of is not None and rule in index[kinds[of]]:
                    fills.add((base[of] + index[kinds[of]][rule], rule))
            productions += [_production(lhs, (terminal,), rule) for lhs, rule in sorted(fills)]
        return (
            f'{{"start":{self.start},"lexer":"basic","terminals":[{",".join(terminals)}],'
            f'"nonterminals":[{",".join(names)}],"productions":[{",".join(productions)}]}}'
        )


class _Builder:
    """Makes a frame: the dialect with one table of each kind, and one word in each slot."""

    def __init__(
        self,
        dialect: Dialect,
        dropped: frozenset[str],
        filled: frozenset[str],
        kinds: tuple[Kind, ...],
        limited: bool,
    ) -> None:
        self._dialect, self._dropped, self._filled = dialect, dropped, filled
        self._kinds, self._limited = kinds, limited
        self._ir = dialect.ir
        self._names = [n.name for n in self._ir.nonterminals]
        self._per_table = {self._names.index(name) for name in dialect.rules["per_table"]}
        self._slots = slot_rules(dialect)
        self._nonterminals = list(self._ir.nonterminals)
        self._copies: dict[str, int] = {}
        self._word = len(self._ir.terminals)
        """Stands for any word."""

    def build(self, who: str) -> _Frame:
        productions = [p for p in self._productions() if p.name not in self._dropped or self._is_helper(p)]
        productions += self._slot_productions()
        whole = replace(
            self._ir, nonterminals=tuple(self._nonterminals), productions=tuple(dict.fromkeys(productions))
        )
        return self._frame(reduced(whole, lambda p: False, who))

    def _is_helper(self, production: Production) -> bool:
        return self._nonterminals[production.lhs].name.startswith("__")

    def _productions(self) -> Iterator[Production]:
        """Those of the dialect but for slots, with copies for each kind."""
        for production in self._ir.productions:
            lhs = production.lhs
            if self._names[lhs] in self._slots:
                continue
            if lhs not in self._per_table:
                yield production
                if self._is_helper(production) and any(
                    ~s in self._per_table for s in production.rhs if s < 0
                ):
                    raise InternalError(f"{self._names[lhs]} uses a rule that is copied for each table")
                continue
            for kind, (_, inserts_all, _) in enumerate(self._kinds):
                if production.name == "insert_all" and not inserts_all:
                    continue
                rhs = tuple(
                    ~self._copy(~s, kind) if s < 0 and ~s in self._per_table else s for s in production.rhs
                )
                yield Production(lhs, rhs, production.name)
                yield Production(self._copy(lhs, kind), rhs, production.name)

    def _slot_productions(self) -> Iterator[Production]:
        for rule in self._slots:
            lhs = self._names.index(rule)
            if rule in self._filled:
                yield Production(lhs, (self._word,), rule)
            for kind, (filled, _, schema) in enumerate(self._kinds):
                if rule in filled:
                    yield Production(self._copy(lhs, kind), (self._word,), rule)
                if f"{rule}_{schema}" in self._filled:
                    yield Production(self._copy(lhs, kind), (self._word,), rule)
        if self._limited:
            for rule in ("number", "row_count"):
                yield Production(self._names.index(rule), (self._word,), rule)

    def _copy(self, nonterminal: int, kind: int) -> int:
        """The nonterminal that stands for a rule in the scope of one table; its schema is shared with others."""
        rule = self._names[nonterminal]
        name = f"{rule}_{self._kinds[kind][2]}" if rule == "schema" else f"{rule} {kind}"
        if name not in self._copies:
            self._copies[name] = len(self._nonterminals)
            self._nonterminals.append(Nonterminal(name))
        return self._copies[name]

    def _frame(self, ir: GrammarIR) -> _Frame:
        """Cut the reduced grammar into what is copied and what is not."""
        plain: list[int] = []
        copied: list[list[int]] = [[] for _ in self._kinds]
        for i, n in enumerate(ir.nonterminals):
            _, is_copy, of_kind = n.name.partition(" ")
            (copied[int(of_kind)] if is_copy else plain).append(i)
        number = {i: k for part in (plain, *copied) for k, i in enumerate(part)}
        kind_of = {i: kind for kind, part in enumerate(copied) for i in part}
        texts: list[str] = []
        templates: list[list[str]] = [[] for _ in self._kinds]
        numbers: list[list[tuple[int, bool]]] = [[] for _ in self._kinds]
        for p in ir.productions:
            if p.rhs == (self._word,):
                continue
            symbols = [(p.lhs, False), *((~s, True) for s in p.rhs if s < 0)]
            kinds = {kind_of[i] for i, _ in symbols if i in kind_of}
            rhs = [s if s >= 0 else "%d" if ~s in kind_of else ~number[~s] for s in p.rhs]
            text = _production("%d" if p.lhs in kind_of else number[p.lhs], rhs, p.name)
            if kinds:
                (of,) = kinds
                templates[of].append(text)
                numbers[of] += [(number[i], right) for i, right in symbols if i in kind_of]
            else:
                texts.append(text)
        terminals, fallbacks = self._terminals()
        listed = self._names.index("word")
        keywords = [p.rhs[0] for p in self._ir.productions if p.lhs == listed and p.rhs[0] >= 0]
        by_name = {ir.nonterminals[i].name: number[i] for i in plain}
        schemas = {f"schema_{schema}": self._slots["schema"] for _, _, schema in self._kinds}
        takes = {"number": False, "row_count": False, **schemas, **self._slots}
        slots = {rule: (by_name[rule], keywords) for rule, keywords in takes.items() if rule in by_name}
        return _Frame(
            start=number[ir.start],
            names=tuple(canonical(asdict(ir.nonterminals[i])) for i in plain),
            productions=tuple(texts),
            copies={
                kind: _Copies(
                    tuple(ir.nonterminals[i].name.partition(" ")[0] for i in copied[k]),
                    ",".join(templates[k]),
                    tuple(numbers[k]),
                )
                for k, kind in enumerate(self._kinds)
            },
            terminals=terminals,
            fallbacks=fallbacks,
            keywords=tuple(
                (t, self._ir.terminals[t].name) for t in keywords if self._ir.terminals[t].literal
            ),
            slots=slots,
        )

    def _terminals(self) -> tuple[tuple[str, ...], dict[int, tuple[str, str]]]:
        """The dialect's terminals; what the lexicon replaces stays to keep unknown words whole."""
        identifier = next(i for i, t in enumerate(self._ir.terminals) if t.name == "ID")
        texts, fallbacks = [], {}
        for i, t in enumerate(self._ir.terminals):
            if t.name in ("ID", "STRING"):
                t = replace(t, priority=_BELOW, reject=True)
            texts.append(_terminal(t))
            if t.fallback == identifier:
                head, tail = texts[i].replace("%", "%%").rsplit(f'"fallback":{identifier}', 1)
                fallbacks[i] = (t.name, f'{head}"fallback":%s{tail}')
        return tuple(texts), fallbacks


def _terminal(terminal: Terminal) -> str:
    """As :meth:`GrammarIR.to_json` writes it."""
    return canonical(terminal.to_dict())


def _name(name: str) -> str:
    return f'{{"name":"{name}","position":null}}'


def _production(lhs: int | str, rhs: Iterable[int | str], name: str) -> str:
    return f'{{"lhs":{lhs},"rhs":[{",".join(map(str, rhs))}],"name":"{name}"}}'


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
