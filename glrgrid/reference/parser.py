"""Two parsers over terminal sequences, behind one interface: explicit GLR stacks, and Earley item sets.

Both answer, for an immutable *stack*, which stacks a terminal leads to and whether the input may end. They
are written from different definitions so that tests can hold one against the other.

:class:`LrParser`
    LALR(1) by the definition: the canonical LR(1) collection, states of one core merged, conflicts kept, then
    fallback filling. A stack is the tuple of its states; every action of a cell is tried and equal stacks are
    one. It refuses hidden left recursion, where reductions could push without end.
:class:`EarleyParser`
    Any grammar, but no rows and no fallback, since these are defined on the table. A "stack" is the last item
    set; an item holds the set it was predicted in, so that equal futures are equal values.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from glrgrid.reference.cfg import Cfg

__all__ = ["EarleyParser", "LrParser", "LrTable", "Parser", "Stack"]

Stack = Hashable
Item = tuple[int, int]  # production, dot
Kernel = frozenset[tuple[Item, frozenset[int]]]  # items with their lookaheads


class Parser(Protocol):
    """What the oracle needs of a parser."""

    def start(self) -> Stack:
        """Return the stack before any terminal."""

    def shift(self, stack: Stack, terminal: int) -> frozenset[Stack]:
        """Return every stack that results from shifting ``terminal`` after any number of reductions."""

    def accepts_end(self, stack: Stack) -> bool:
        """Return whether the input may end here."""

    def uses_fallback(self, stack: Stack, terminal: int) -> bool:
        """Return whether shifting ``terminal`` looks at a cell that only fallback has filled."""


class LrTable:
    """The LALR(1) table.

    Attributes
    ----------
    actions : list of dict
        Per state, terminal (``cfg.end`` included) to the set of ``("shift", state)``, ``("reduce",
        production)`` and ``("accept", 0)``.
    rows : list of frozenset
        Per state, the terminals that have an action: the *row* of contextual lexing.
    gotos : list of dict
        Per state, nonterminal symbol to state.
    filled : set of (state, terminal)
        Cells that exist by fallback only.
    """

    def __init__(self, cfg: Cfg) -> None:
        self.cfg = cfg
        kernels, edges = self._canonical_lr1()
        cores: dict[frozenset[Item], int] = {}
        merged: list[dict[Item, set[int]]] = []
        state_of = []
        for kernel in kernels:
            core = frozenset(item for item, _ in kernel)
            if core not in cores:
                cores[core] = len(merged)
                merged.append({})
            state = cores[core]
            state_of.append(state)
            for item, lookaheads in self._closure(kernel).items():
                merged[state].setdefault(item, set()).update(lookaheads)
        self.actions: list[dict[int, set[tuple[str, int]]]] = [{} for _ in merged]
        self.gotos: list[dict[int, int]] = [{} for _ in merged]
        for (source, symbol), target in edges.items():
            if symbol >= 0:
                self.actions[state_of[source]].setdefault(symbol, set()).add(("shift", state_of[target]))
            else:
                self.gotos[state_of[source]][symbol] = state_of[target]
        for state, items in enumerate(merged):
            for (production, dot), lookaheads in items.items():
                if dot == len(cfg.productions[production][1]):
                    action = ("reduce", production) if production else ("accept", 0)
                    for terminal in lookaheads:
                        self.actions[state].setdefault(terminal, set()).add(action)
        self._fill_fallbacks()
        self.rows = [frozenset(row) - {cfg.end} for row in self.actions]

    def _fill_fallbacks(self) -> None:
        self.filled: set[tuple[int, int]] = set()
        for state, row in enumerate(self.actions):
            before = dict(row)
            for terminal in range(self.cfg.end):
                source = next((f for f in self.cfg.fallbacks[terminal] if f in before), None)
                if terminal not in before and source is not None:
                    row[terminal] = before[source]
                    self.filled.add((state, terminal))

    def _canonical_lr1(self) -> tuple[list[Kernel], dict[tuple[int, int], int]]:
        start: Kernel = frozenset({((0, 0), frozenset({self.cfg.end}))})
        number = {start: 0}
        kernels = [start]
        edges: dict[tuple[int, int], int] = {}
        for state, kernel in enumerate(kernels):  # grows while it is walked
            successors: dict[int, dict[Item, frozenset[int]]] = {}
            for (production, dot), lookaheads in self._closure(kernel).items():
                rhs = self.cfg.productions[production][1]
                if dot < len(rhs):
                    successors.setdefault(rhs[dot], {})[production, dot + 1] = frozenset(lookaheads)
            for symbol, items in successors.items():
                successor = frozenset(items.items())
                if successor not in number:
                    number[successor] = len(kernels)
                    kernels.append(successor)
                edges[state, symbol] = number[successor]
        return kernels, edges

    def _closure(self, kernel: Kernel) -> dict[Item, set[int]]:
        items = {item: set(lookaheads) for item, lookaheads in kernel}
        todo = list(items)
        while todo:
            production, dot = item = todo.pop()
            rhs = self.cfg.productions[production][1]
            if dot == len(rhs) or rhs[dot] >= 0:
                continue
            rest = rhs[dot + 1 :]
            lookaheads = self.cfg.first_of(rest) | (items[item] if self.cfg.is_nullable(rest) else set())
            for predicted in self.cfg.by_lhs[rhs[dot]]:
                known = items.get((predicted, 0))
                if known is None or not lookaheads <= known:
                    items[predicted, 0] = lookaheads | (known or set())
                    todo.append((predicted, 0))
        return items


class LrParser:
    """GLR over explicit stacks: try every action.

    Raises
    ------
    ValueError
        The grammar has hidden left recursion.
    """

    def __init__(self, cfg: Cfg) -> None:
        if cfg.has_hidden_left_recursion():
            raise ValueError("hidden left recursion: reductions on explicit stacks need not end")
        self.cfg = cfg
        self.table = LrTable(cfg)
        self._memo: dict[tuple[Stack, int], tuple[frozenset[Stack], bool, bool]] = {}

    def start(self) -> Stack:
        """Return the stack before any terminal."""
        return (0,)

    def shift(self, stack: Stack, terminal: int) -> frozenset[Stack]:
        """Return every stack that results from shifting ``terminal`` after any number of reductions."""
        return self._try(stack, terminal)[0]

    def accepts_end(self, stack: Stack) -> bool:
        """Return whether the input may end here."""
        return self._try(stack, self.cfg.end)[1]

    def uses_fallback(self, stack: Stack, terminal: int) -> bool:
        """Return whether shifting ``terminal`` looks at a cell that only fallback has filled."""
        return self._try(stack, terminal)[2]

    def row(self, stack: Stack) -> frozenset[int]:
        """Return the terminals that have an action, reductions included, in the state on top."""
        assert isinstance(stack, tuple)
        return self.table.rows[stack[-1]]

    def rows_after(self, terminal: int) -> set[frozenset[int]]:
        """Return the rows of all states that a shift of ``terminal`` can lead to."""
        return {
            self.table.rows[target]
            for row in self.table.actions
            for kind, target in row.get(terminal, ())
            if kind == "shift"
        }

    def _try(self, stack: Stack, terminal: int) -> tuple[frozenset[Stack], bool, bool]:
        """Resulting stacks, whether an accept was met, whether a filled cell was looked at."""
        if (stack, terminal) in self._memo:
            return self._memo[stack, terminal]
        assert isinstance(stack, tuple)
        seen = {stack}
        todo = [stack]
        shifted: set[Stack] = set()
        accepted = filled = False
        while todo:
            current = todo.pop()
            filled |= (current[-1], terminal) in self.table.filled
            for kind, argument in self.table.actions[current[-1]].get(terminal, ()):
                if kind == "shift":
                    shifted.add((*current, argument))
                elif kind == "accept":
                    accepted = True
                else:
                    lhs, rhs = self.cfg.productions[argument]
                    below = current[: len(current) - len(rhs)]
                    reduced = (*below, self.table.gotos[below[-1]][lhs])
                    if reduced not in seen:
                        seen.add(reduced)
                        todo.append(reduced)
        result = (frozenset(shifted), accepted, filled)
        self._memo[stack, terminal] = result
        return result


class EarleyParser:
    """Earley recognition, one immutable item set a position.

    An item is ``(production, dot, origin)``; ``origin`` is the set it was predicted in, ``None`` for the set
    it is in. Completed items are left out once the set is closed, except the one that says the input may end.
    """

    def __init__(self, cfg: Cfg) -> None:
        self.cfg = cfg
        self._intern: dict[frozenset[tuple[int, int, Stack]], frozenset[tuple[int, int, Stack]]] = {}
        self._memo: dict[tuple[Stack, int], frozenset[Stack]] = {}
        self._start = self._closed({(0, 0, None)})

    def start(self) -> Stack:
        """Return the item set before any terminal."""
        return self._start

    def shift(self, stack: Stack, terminal: int) -> frozenset[Stack]:
        """Return the item set after ``terminal``, if there is one."""
        if (stack, terminal) not in self._memo:
            scanned = self._advanced(stack, terminal)
            self._memo[stack, terminal] = frozenset({self._closed(scanned)} if scanned else ())
        return self._memo[stack, terminal]

    def accepts_end(self, stack: Stack) -> bool:
        """Return whether the input may end here."""
        assert isinstance(stack, frozenset)
        return any((production, dot) == (0, 1) for production, dot, _ in stack)

    def uses_fallback(self, stack: Stack, terminal: int) -> bool:
        """Return False: this parser knows no fallback."""
        return False

    def _advanced(self, items: Stack, symbol: int) -> set[tuple[int, int, Stack]]:
        """The items of a closed set that wait for ``symbol``, moved over it."""
        assert isinstance(items, frozenset)
        return {
            (production, dot + 1, items if origin is None else origin)
            for production, dot, origin in items
            if self.cfg.productions[production][1][dot : dot + 1] == (symbol,)
        }

    def _closed(self, kernel: set[tuple[int, int, Stack]]) -> Stack:
        items = set(kernel)
        todo = list(kernel)
        while todo:
            production, dot, origin = todo.pop()
            lhs, rhs = self.cfg.productions[production]
            found: set[tuple[int, int, Stack]] = set()
            if dot < len(rhs) and rhs[dot] < 0:
                found = {(predicted, 0, None) for predicted in self.cfg.by_lhs[rhs[dot]]}
                if rhs[dot] in self.cfg.nullable:
                    found.add((production, dot + 1, origin))
            elif (
                dot == len(rhs) and origin is not None
            ):  # completions within one set: nullable symbols, above
                found = self._advanced(origin, lhs)
            todo.extend(found - items)
            items |= found
        kept = frozenset(
            (production, dot, origin)
            for production, dot, origin in items
            if dot < len(self.cfg.productions[production][1]) or production == 0
        )
        return self._intern.setdefault(kept, kept)
