"""Grammars inside of grammars.

A grammar with a lexer keeps its own way of cutting texts when it becomes part of another one, because the contextual
lexer only takes the terminals that are possible where a lexeme begins: inside of the part, the part's own. Terminals
that take part everywhere, ignored and reject ones, get a *scope*: they take part where another terminal of their part
can begin. So ignored text may stand before every lexeme of a part, but not after its last one, where only the host goes
on. What is left to look at are the edges, where terminals of both can meet; ``find_cuts`` does.

Parts are often alike: every JSON Schema has strings, numbers and commas. Terminals that are the same in two parts are
one (:func:`embed` with ``share``), so that lexers and all that is computed for them are shared too. That changes
nothing if the parser is never in a state in which it may begin either part: then the LR automaton of the whole is the
same but for the names of terminals, and so are the languages of the terminals in each of its rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import GrammarError
from .ir import GrammarIR, Production, Terminal

__all__ = ["embed"]

Key = tuple[Any, ...]


@dataclass(slots=True)
class _Pool:
    """Parts that share terminals."""

    scope: int
    places: set[int] = field(default_factory=set)
    terminals: dict[Key, int] = field(default_factory=dict)


def embed(host: GrammarIR, parts: Mapping[int, GrammarIR], share: bool = True) -> GrammarIR:
    """Let nonterminals of a grammar derive what other grammars do.

    Parameters
    ----------
    host : GrammarIR
        With the contextual lexer.
    parts : mapping of int to GrammarIR
        By nonterminal of the host.
    share : bool
        Let equal terminals of different parts be one, where that changes nothing.

    Returns
    -------
    GrammarIR
        The whole. The terminals of parts have scopes; those of the host get one if any of them takes part everywhere.

    Raises
    ------
    GrammarError
        A part needs the basic lexer.
    """
    if not parts:
        return host
    scope = 1 + max((t.scope for t in host.terminals if t.scope is not None), default=-1)
    terminals, nonterminals = list(host.terminals), list(host.nonterminals)
    productions = list(host.productions)
    if any(t.ignored or t.reject for t in terminals):
        terminals = [t if t.scope is not None else replace(t, scope=scope) for t in terminals]
        scope += 1
    meetings = _meetings(host, parts) if share and len(parts) > 1 else {}
    pools: dict[Key, list[_Pool]] = defaultdict(list)
    for place, part in parts.items():
        name = nonterminals[place].name
        if part.lexer != "contextual" and len(part.terminals) > 1:
            raise GrammarError(f'grammar "{name}" needs the basic lexer, so it cannot be part of another one')
        offset = len(nonterminals)
        if share and all(t.scope is None and t.fallback is None for t in part.terminals):
            keys = _keys(part.terminals)
            known = pools[tuple(key for key in keys if key[3] or key[4])]
            pool = next((pool for pool in known if not pool.places & meetings.get(place, set())), None)
            if pool is None:
                pool = _Pool(scope)
                known.append(pool)
                scope += 1
            pool.places.add(place)
            for key, terminal in zip(keys, part.terminals, strict=True):
                if key not in pool.terminals:
                    pool.terminals[key] = len(terminals)
                    terminals.append(replace(terminal, scope=pool.scope))
            number = [pool.terminals[key] for key in keys]
        else:
            first = len(terminals)
            terminals += (
                replace(
                    t,
                    fallback=None if t.fallback is None else t.fallback + first,
                    scope=scope if t.scope is None else scope + 1 + t.scope,
                )
                for t in part.terminals
            )
            scope = 1 + max((t.scope for t in terminals if t.scope is not None), default=scope)
            number = list(range(first, len(terminals)))
        nonterminals += part.nonterminals
        productions.append(Production(place, (~(part.start + offset),), name))
        productions += (
            Production(p.lhs + offset, tuple(number[s] if s >= 0 else s - offset for s in p.rhs), p.name)
            for p in part.productions
        )
    return replace(
        host,
        terminals=tuple(terminals),
        nonterminals=tuple(nonterminals),
        productions=tuple(productions),
    )


def _keys(terminals: Iterable[Terminal]) -> list[Key]:
    """What makes terminals of different parts the same one; all of a part differ."""
    seen: Counter[Key] = Counter()
    keys = []
    for t in terminals:
        key = (t.name, t.expr, (t.priority, t.literal), t.ignored, t.reject)
        keys.append((*key, seen[key]))
        seen[key] += 1
    return keys


def _meetings(host: GrammarIR, places: Iterable[int]) -> dict[int, set[int]]:
    """For each place the others that the host's parser may begin in the same LR(0) state."""
    by_lhs: dict[int, list[int]] = defaultdict(list)
    for index, production in enumerate(host.productions):
        by_lhs[production.lhs].append(index)
    wanted = frozenset(places)
    meetings: dict[int, set[int]] = defaultdict(set)

    def closed(kernel: frozenset[tuple[int, int]]) -> dict[int, set[tuple[int, int]]]:
        """The items after each symbol that can come next."""
        moves: dict[int, set[tuple[int, int]]] = defaultdict(set)
        work, entered = list(kernel), set[int]()
        while work:
            index, dot = work.pop()
            rhs = host.productions[index].rhs
            if dot == len(rhs):
                continue
            moves[rhs[dot]].add((index, dot + 1))
            if rhs[dot] < 0 and ~rhs[dot] not in entered:
                entered.add(~rhs[dot])
                work += ((following, 0) for following in by_lhs[~rhs[dot]])
        return moves

    start = frozenset((index, 0) for index in by_lhs[host.start])
    seen, work = {start}, [start]
    while work:
        moves = closed(work.pop())
        here = {~symbol for symbol in moves if symbol < 0 and ~symbol in wanted}
        for place in here:
            meetings[place] |= here - {place}
        for items in moves.values():
            kernel = frozenset(items)
            if kernel not in seen:
                seen.add(kernel)
                work.append(kernel)
    return meetings
