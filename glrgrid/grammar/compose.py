"""Grammars inside of grammars.

A grammar with a lexer keeps its own way of cutting texts when it becomes part of another one, because the contextual
lexer only takes the terminals that are possible where a lexeme begins: inside of the part, the part's own. Terminals
that take part everywhere, ignored and reject ones, get a *scope*: they take part where another terminal of their part
can begin. So ignored text may stand before every lexeme of a part, but not after its last one, where only the host goes
on. What is left to look at are the edges, where terminals of both can meet; ``find_cuts`` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..errors import GrammarError
from .ir import GrammarIR, Production

__all__ = ["embed"]


def embed(host: GrammarIR, parts: Mapping[int, GrammarIR]) -> GrammarIR:
    """Let nonterminals of a grammar derive what other grammars do.

    Parameters
    ----------
    host : GrammarIR
        With the contextual lexer.
    parts : mapping of int to GrammarIR
        By nonterminal of the host.

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
    for place, part in parts.items():
        name = nonterminals[place].name
        if part.lexer != "contextual" and len(part.terminals) > 1:
            raise GrammarError(f'grammar "{name}" needs the basic lexer, so it cannot be part of another one')
        first, offset = len(terminals), len(nonterminals)
        terminals += (
            replace(
                t,
                fallback=None if t.fallback is None else t.fallback + first,
                scope=scope if t.scope is None else scope + 1 + t.scope,
            )
            for t in part.terminals
        )
        scope = 1 + max((t.scope for t in terminals if t.scope is not None), default=scope)
        nonterminals += part.nonterminals
        productions.append(Production(place, (~(part.start + offset),), name))
        productions += (
            Production(p.lhs + offset, tuple(s + first if s >= 0 else s - offset for s in p.rhs), p.name)
            for p in part.productions
        )
    return replace(
        host,
        terminals=tuple(terminals),
        nonterminals=tuple(nonterminals),
        productions=tuple(productions),
    )
