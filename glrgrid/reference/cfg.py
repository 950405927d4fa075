"""Grammar analysis for the reference: reduction, nullable, FIRST, FOLLOW, two awkward shapes of recursion.

Productions are ``(lhs, rhs)`` with the IR's symbol code (``i >= 0`` terminal, ``~j`` nonterminal). Production
0 is the added ``S' -> S``. The end of input is the extra terminal ``Cfg.end``.
"""

from __future__ import annotations

from glrgrid.grammar.ir import GrammarIR

__all__ = ["Cfg"]


class Cfg:
    """The reduced grammar of an IR with its fixpoints.

    Parameters
    ----------
    ir
        The grammar.
    dead_terminals
        Terminals without any string; a production that needs one is useless.

    Raises
    ------
    ValueError
        No sentence exists; a reject or an ignored terminal occurs in a production; fallbacks form a cycle.
    """

    def __init__(self, ir: GrammarIR, dead_terminals: frozenset[int] = frozenset()) -> None:
        self.ir = ir
        self.end = len(ir.terminals)
        self.fallbacks = [self._fallback_chain(t) for t in range(self.end)]
        for production in ir.productions:
            for terminal in (ir.terminals[symbol] for symbol in production.rhs if symbol >= 0):
                if terminal.reject or terminal.ignored:
                    kind = "reject" if terminal.reject else "ignored"
                    raise ValueError(f"{kind} terminal {terminal.name} occurs in rule {production.name}")
        self.productions = self._reduced(dead_terminals)
        self.by_lhs: dict[int, list[int]] = {}
        for index, (lhs, _) in enumerate(self.productions):
            self.by_lhs.setdefault(lhs, []).append(index)
        self.used = frozenset(s for _, rhs in self.productions for s in rhs if s >= 0)
        """Terminals of the reduced grammar."""
        self.usable = frozenset(t for t in range(self.end) if self.used & {t, *self.fallbacks[t]})
        """Terminals that some stack can shift: the used ones, and those that fall back to one."""
        self.nullable = self._nullable()
        self.first = self._first()
        self.follow = self._follow()
        self.can_start = self._falling_to(self.first[self.productions[0][0]])
        """Terminals that a sentence can start with, closed under fallback."""

    def _fallback_chain(self, terminal: int) -> tuple[int, ...]:
        chain: list[int] = []
        current = self.ir.terminals[terminal].fallback
        while current is not None:
            if current == terminal or current in chain:
                name = self.ir.terminals[terminal].name
                raise ValueError(f"the fallback of terminal {name} leads to a cycle")
            chain.append(current)
            current = self.ir.terminals[current].fallback
        return tuple(chain)

    def _reduced(self, dead: frozenset[int]) -> list[tuple[int, tuple[int, ...]]]:
        """Drop productions that derive no terminal string, then those that the start cannot reach."""
        pairs = [(~p.lhs, p.rhs) for p in self.ir.productions]
        productive: set[int] = set(range(self.end)) - dead
        while True:
            found = {lhs for lhs, rhs in pairs if all(s in productive for s in rhs)}
            if found <= productive:
                break
            productive |= found
        start = ~self.ir.start
        if start not in productive:
            raise ValueError("the grammar derives no sentence")
        pairs = [(lhs, rhs) for lhs, rhs in pairs if all(s in productive for s in rhs)]
        reachable = {start}
        while True:
            found = {s for lhs, rhs in pairs if lhs in reachable for s in rhs}
            if found <= reachable:
                break
            reachable |= found
        kept = dict.fromkeys((lhs, rhs) for lhs, rhs in pairs if lhs in reachable)  # duplicates go
        return [(~len(self.ir.nonterminals), (start,)), *kept]

    def _nullable(self) -> frozenset[int]:
        nullable: set[int] = set()
        while True:
            found = {lhs for lhs, rhs in self.productions if all(s in nullable for s in rhs)}
            if found <= nullable:
                return frozenset(nullable)
            nullable |= found

    def is_nullable(self, symbols: tuple[int, ...]) -> bool:
        """Return whether these symbols derive the empty sentence."""
        return all(s in self.nullable for s in symbols)

    def _first(self) -> dict[int, set[int]]:
        first: dict[int, set[int]] = {s: {s} for s in range(self.end + 1)}
        for lhs, _ in self.productions:
            first[lhs] = set()
        changed = True
        while changed:
            changed = False
            for lhs, rhs in self.productions:
                for i, symbol in enumerate(rhs):
                    if not self.is_nullable(rhs[:i]):
                        break
                    changed |= not first[symbol] <= first[lhs]
                    first[lhs] |= first[symbol]
        return first

    def first_of(self, symbols: tuple[int, ...]) -> set[int]:
        """Return the terminals that can start a sentence of these symbols."""
        found: set[int] = set()
        for symbol in symbols:
            found |= self.first[symbol]
            if symbol not in self.nullable:
                break
        return found

    def _follow(self) -> list[frozenset[int]]:
        """FOLLOW of every terminal, closed under fallback on both sides; ``end``: a sentence can stop."""
        follow: dict[int, set[int]] = {s: set() for s in self.first}
        follow[self.productions[0][0]].add(self.end)
        changed = True
        while changed:
            changed = False
            for lhs, rhs in self.productions:
                for i, symbol in enumerate(rhs):
                    rest = rhs[i + 1 :]
                    found = self.first_of(rest) | (follow[lhs] if self.is_nullable(rest) else set())
                    changed |= not found <= follow[symbol]
                    follow[symbol] |= found
        closed = []
        for t in range(self.end):
            here = follow[t].union(*(follow[f] for f in self.fallbacks[t]))
            closed.append(self._falling_to(here))
        return closed

    def _falling_to(self, terminals: set[int]) -> frozenset[int]:
        """These, and the terminals that fall back to one of them."""
        return frozenset(terminals | {u for u in range(self.end) if terminals & set(self.fallbacks[u])})

    def has_hidden_left_recursion(self) -> bool:
        """Return whether some A derives αA… with α nullable, not empty: reductions could push without end."""
        corner = [
            (lhs, symbol, i > 0)
            for lhs, rhs in self.productions
            for i, symbol in enumerate(rhs)
            if symbol < 0 and self.is_nullable(rhs[:i])
        ]
        reach = _closure({(a, b) for a, b, _ in corner})
        return any(hidden and (b == a or (b, a) in reach) for a, b, hidden in corner)

    def has_cycle(self) -> bool:
        """Return whether some A derives A in one step or more."""
        unit = {
            (lhs, symbol)
            for lhs, rhs in self.productions
            for i, symbol in enumerate(rhs)
            if symbol < 0 and self.is_nullable(rhs[:i]) and self.is_nullable(rhs[i + 1 :])
        }
        return any(a == b for a, b in _closure(unit))


def _closure(relation: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Transitive closure."""
    closed = set(relation)
    while True:
        found = {(a, d) for a, b in closed for c, d in relation if b == c}
        if found <= closed:
            return closed
        closed |= found
