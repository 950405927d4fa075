"""The union lexer and what an unfinished lexeme can still become.

A lexer state is a tuple over all terminals of per-terminal DFA states, ``None`` where the terminal is out of
the game: dead, or outside the *universe* the lexeme started in. Tuples are interned as integers. Because a
tuple remembers its universe, candidates, transitions and watchers need no other context; only the start of
the next lexeme does.

:class:`Lexer`
    Transitions and candidates.
:class:`Liveness`
    ``live(x)`` for ``x = (universe, state, watchers)``, with traps removed, and the separability reports
   .
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from glrgrid.grammar.ir import Terminal
from glrgrid.reference.cfg import Cfg
from glrgrid.reference.regex import TOKENS, Dfa

__all__ = ["Lexeme", "Lexer", "Liveness", "Report", "TooManyBranches", "Trap", "Universe", "Watchers"]

Universe = frozenset[int]
Watchers = frozenset[int]
Lexeme = tuple[Universe, int, Watchers]
"""A place inside a lexeme: the universe it started in, the lexer state, the watchers."""

NO_TERMINALS: frozenset[int] = frozenset()


MOST_PLACES = 60_000
"""Most places inside lexemes that are looked at together; some grammars have millions, which fill the memory."""


class TooManyBranches(RuntimeError):
    """There are more branches, or places inside lexemes, than what goes through them one by one can serve."""


class Lexer:
    """Longest-match automaton over all terminals, explored on demand.

    Its letters are bytes, and from 256 on tokens that are taken as one symbol: 256 + id.

    Parameters
    ----------
    terminals
        The terminals of the IR, used or not.
    dfas
        Their automata.
    """

    def __init__(self, terminals: tuple[Terminal, ...], dfas: list[Dfa]) -> None:
        self.terminals = terminals
        self.dfas = dfas
        self.ignored = frozenset(t for t, terminal in enumerate(terminals) if terminal.ignored)
        self._states: list[tuple[int | None, ...]] = []
        self._number: dict[tuple[int | None, ...], int] = {}
        self._delta: list[dict[int, int | None]] = []
        self._candidates: list[frozenset[int]] = []
        columns: dict[tuple[tuple[int | None, ...], ...], list[int]] = {}
        for byte in range(len(dfas[0].next[0]) if dfas else 256):
            column = tuple(tuple(row[byte] for row in dfa.next) for dfa in dfas)
            columns.setdefault(column, []).append(byte)
        self.representatives = [
            next((b for b in members if 0x21 <= b <= 0x7E), members[0]) for members in columns.values()
        ]
        """One letter, printable if there is one, of every class of letters that no terminal tells apart."""

    def start(self, universe: Universe) -> int:
        """Return the state before a lexeme of this universe."""
        return self._intern(tuple(0 if t in universe else None for t in range(len(self.dfas))))

    def step(self, state: int, byte: int) -> int | None:
        """Return δ(state, byte), ``None`` where no terminal can go on."""
        known = self._delta[state]
        if byte not in known:
            successor = tuple(
                None if part is None else dfa.next[part][byte]
                for part, dfa in zip(self._states[state], self.dfas, strict=True)
            )
            known[byte] = self._intern(successor) if any(part is not None for part in successor) else None
        return known[byte]

    def candidates(self, state: int) -> frozenset[int]:
        """Return the terminals of highest rank among those that accept here."""
        return self._candidates[state]

    def is_final(self, state: int) -> bool:
        """Return whether no byte leads on: the lexeme is over as soon as it gets here."""
        return all(self.step(state, byte) is None for byte in self.representatives)

    def advance_watchers(self, watchers: Watchers, byte: int) -> Watchers | None:
        """Return the watchers after ``byte``, or ``None`` if one of them accepts: the longer match exists."""
        if not watchers:
            return watchers
        moved = set()
        for watcher in watchers:
            successor = self.step(watcher, byte)
            if successor is not None:
                if self._candidates[successor]:
                    return None
                moved.add(successor)
        return frozenset(moved)

    def _intern(self, parts: tuple[int | None, ...]) -> int:
        if parts not in self._number:
            self._number[parts] = len(self._states)
            self._states.append(parts)
            self._delta.append({})
            accepting = [
                t
                for t, (part, dfa) in enumerate(zip(parts, self.dfas, strict=True))
                if part is not None and dfa.accepting[part]
            ]
            rank = {t: (self.terminals[t].priority, self.terminals[t].literal) for t in accepting}
            best = max(rank.values(), default=None)
            self._candidates.append(frozenset(t for t in accepting if rank[t] == best))
        return self._number[parts]


def _written(letter: int) -> bytes:
    """A letter as people read it in reports."""
    return bytes([letter]) if letter < TOKENS else b"<[%d]>" % (letter - TOKENS)


@dataclass(frozen=True)
class Report:
    """After ``text`` the lexeme may become ``terminal``, but never so that ``following`` can start behind it.

    The grammar allows ``following`` there, so masks may lead into a dead end. ``terminal`` is ``None`` for
    the beginning of the text if nothing that sentences start with can start there: no text is in the
    language.
    """

    text: bytes
    terminal: int | None
    following: int


@dataclass(frozen=True)
class Trap:
    """After ``text`` nothing that may follow ``terminal`` can start behind it, so it is not live."""

    text: bytes
    terminal: int


class Liveness:
    """What lexemes can still become, as the greatest fixpoint of trap removal.

    Parameters
    ----------
    cfg
        Gives FOLLOW.
    lexer
        The union lexer.
    first_universe
        Universe of the first lexeme.
    universes_after
        Universes in which the lexeme after a given terminal may start.
    """

    def __init__(
        self,
        cfg: Cfg,
        lexer: Lexer,
        first_universe: Universe,
        universes_after: Callable[[int], Iterable[Universe]],
    ) -> None:
        self.cfg = cfg
        self.lexer = lexer
        self.first_universe = first_universe
        self.next_universes = [frozenset(universes_after(t)) for t in range(cfg.end)]
        self._inside: dict[Lexeme, tuple[Lexeme, ...]] = {}
        self._beyond: dict[tuple[Lexeme, Universe], tuple[Lexeme, ...]] = {}
        self._live: dict[Lexeme, frozenset[int]] = {}
        self._separable: dict[tuple[Lexeme, Universe], frozenset[int]] = {}

    def live(self, x: Lexeme) -> frozenset[int]:
        """Return the terminals that the unfinished lexeme ``x`` can still become, traps removed."""
        if x not in self._live:
            self._solve(x)
        return self._live[x]

    def starts(self, universe: Universe) -> list[Lexeme]:
        """Return the lexemes one byte long."""
        q0 = self.lexer.start(universe)
        states = (self.lexer.step(q0, byte) for byte in self.lexer.representatives)
        return [(universe, state, NO_TERMINALS) for state in states if state is not None]

    def inside(self, x: Lexeme) -> tuple[Lexeme, ...]:
        """Return where one more byte inside the lexeme leads, completing no watcher."""
        if x not in self._inside:
            self._inside[x] = tuple(dict.fromkeys(y for _, y in self._inside_steps(x)))
        return self._inside[x]

    def beyond(self, x: Lexeme, universe: Universe) -> tuple[Lexeme, ...]:
        """Return the first bytes of lexemes of ``universe`` that may start if ``x`` ends here."""
        if (x, universe) not in self._beyond:
            self._beyond[x, universe] = tuple(dict.fromkeys(y for _, y in self._beyond_steps(x, universe)))
        return self._beyond[x, universe]

    def _inside_steps(self, x: Lexeme) -> list[tuple[int, Lexeme]]:
        universe, state, watchers = x
        steps = []
        for byte in self.lexer.representatives:
            successor, moved = self.lexer.step(state, byte), self.lexer.advance_watchers(watchers, byte)
            if successor is not None and moved is not None:
                steps.append((byte, (universe, successor, moved)))
        return steps

    def _beyond_steps(self, x: Lexeme, universe: Universe) -> list[tuple[int, Lexeme]]:
        _, state, watchers = x
        q0 = self.lexer.start(universe)
        steps = []
        for byte in self.lexer.representatives:
            fresh, moved = self.lexer.step(q0, byte), self.lexer.advance_watchers(watchers, byte)
            if fresh is None or moved is None:
                continue
            longer = self.lexer.step(state, byte)
            if longer is None:
                steps.append((byte, (universe, fresh, moved)))
            elif not self.lexer.candidates(longer):
                steps.append((byte, (universe, fresh, moved | {longer})))
        return steps

    def _universes_beyond(self, x: Lexeme, terminal: int) -> frozenset[Universe]:
        """Universes of the lexeme after ``x`` if it is ``terminal``; an ignored one keeps the row."""
        return frozenset({x[0]}) if terminal in self.lexer.ignored else self.next_universes[terminal]

    def _ends(self, x: Lexeme) -> list[Universe]:
        """Universes that can come after ``x`` if it ends here."""
        found = {u for t in self.lexer.candidates(x[1]) for u in self._universes_beyond(x, t)}
        return sorted(found, key=sorted)

    def _solve(self, x: Lexeme) -> None:
        """Fill ``_live`` and ``_separable`` for everything that steps reach from ``x``."""
        region = [x]
        seen = {x}
        for y in region:  # grows while it is walked
            for z in (*self.inside(y), *(z for u in self._ends(y) for z in self.beyond(y, u))):
                if z not in seen and z not in self._live:
                    seen.add(z)
                    region.append(z)
            if len(region) > MOST_PLACES:
                raise TooManyBranches(f"more than {MOST_PLACES} places inside lexemes")
        region.reverse()  # far places first: fewer rounds
        good = {y: self.lexer.candidates(y[1]) for y in region}  # what may end exactly here
        while True:
            live = self._spread(region, good)
            separable = self._separate(region, live)
            kept = {
                y: frozenset(t for t in terminals if self._can_go_on(y, t, separable))
                for y, terminals in good.items()
            }
            if kept == good:
                break
            good = kept
        self._live.update(live)
        self._separable.update(separable)

    def _spread(
        self, region: list[Lexeme], here: dict[Lexeme, frozenset[int]]
    ) -> dict[Lexeme, frozenset[int]]:
        """Union of ``here`` over the places that more bytes inside the lexeme lead to."""
        total = dict(here)
        changed = True
        while changed:
            changed = False
            for y in region:
                found = total[y].union(*(total[z] if z in total else self._live[z] for z in self.inside(y)))
                if found != total[y]:
                    total[y] = found
                    changed = True
        return total

    def _separate(
        self, region: list[Lexeme], live: dict[Lexeme, frozenset[int]]
    ) -> dict[tuple[Lexeme, Universe], frozenset[int]]:
        """``sep``: terminals the next lexeme can become if this one ends here, also behind ignored ones."""
        sep = {(y, u): NO_TERMINALS for y in region for u in self._ends(y)}
        through = dict.fromkeys(region, NO_TERMINALS)  # what an ignored lexeme from here on leads to
        changed = True
        while changed:
            changed = False
            for y in region:
                found = through[y].union(
                    *(through[z] if z in through else self._through(z) for z in self.inside(y))
                )
                if self.lexer.candidates(y[1]) & self.lexer.ignored:
                    found |= sep[y, y[0]]
                changed |= found != through[y]
                through[y] = found
            for y, u in sep:
                found = sep[y, u].union(
                    *(
                        (live[z] | through[z]) if z in through else (self._live[z] | self._through(z))
                        for z in self.beyond(y, u)
                    )
                )
                changed |= found != sep[y, u]
                sep[y, u] = found
        return sep

    def _through(self, x: Lexeme) -> frozenset[int]:
        """Terminals behind an ignored lexeme from a solved place on."""
        return NO_TERMINALS.union(
            *(
                self._separable[y, y[0]]
                for y in self._reachable_inside(x)
                if self.lexer.candidates(y[1]) & self.lexer.ignored
            )
        )

    def _reachable_inside(self, x: Lexeme) -> list[Lexeme]:
        places = {x: None}
        todo = [x]
        while todo:
            for y in self.inside(todo.pop()):
                if y not in places:
                    places[y] = None
                    todo.append(y)
        return list(places)

    def _can_go_on(
        self, x: Lexeme, terminal: int, separable: dict[tuple[Lexeme, Universe], frozenset[int]]
    ) -> bool:
        """Whether a lexeme that ends here as ``terminal`` is no trap."""
        follow = self.cfg.follow[terminal]
        if not follow or self.cfg.end in follow or terminal in self.lexer.ignored:
            return True
        return any(follow & separable[x, u] for u in self._universes_beyond(x, terminal))

    def reachable(self) -> dict[Lexeme, bytes]:
        """Return every place that bytes can lead to, whatever the parser says, with a shortest text."""
        text: dict[Lexeme, bytes] = {}
        queue: deque[tuple[bytes, Lexeme]] = deque()
        q0 = self.lexer.start(self.first_universe)
        for byte in self.lexer.representatives:
            state = self.lexer.step(q0, byte)
            if state is not None:
                queue.append((_written(byte), (self.first_universe, state, NO_TERMINALS)))
        while queue:
            path, x = queue.popleft()
            if x in text:
                continue
            text[x] = path
            steps = self._inside_steps(x)
            for universe in self._ends(x):
                steps += self._beyond_steps(x, universe)
            queue.extend((path + _written(byte), y) for byte, y in steps if y not in text)
        return text

    def check(self) -> tuple[list[Report], list[Trap]]:
        """Return where separability fails for some following terminals, and where for all."""
        reports: dict[tuple[int | None, int], Report] = {}
        traps: dict[int, Trap] = {}
        at_start = NO_TERMINALS.union(
            *(self.live(x) | self._through(x) for x in self.starts(self.first_universe))
        )
        if not self.cfg.can_start & at_start and not self.cfg.is_nullable(self.cfg.productions[0][1]):
            for t2 in sorted(self.cfg.can_start):
                reports[None, t2] = Report(b"", None, t2)
        for x, text in self.reachable().items():  # in the order of length
            live = self.live(x)
            ways: dict[tuple[int, Universe], frozenset[int]] = {}
            possible: set[int] = set()
            for y in self._reachable_inside(x):
                for t in self.lexer.candidates(y[1]):
                    possible.add(t)
                    for u in self._universes_beyond(y, t):
                        ways[t, u] = ways.get((t, u), NO_TERMINALS) | self._separable[y, u]
            for t in sorted(possible - live):
                traps.setdefault(t, Trap(text, t))
            for (t, u), separable in ways.items():
                if t in live:
                    follow = self.cfg.usable if t in self.lexer.ignored else self.cfg.follow[t]
                    for t2 in sorted((follow & u) - separable - {self.cfg.end}):
                        reports.setdefault((t, t2), Report(text, t, t2))
        return list(reports.values()), list(traps.values())
