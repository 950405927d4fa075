"""Parts of a grammar: productions go by name, then what has become useless; terminals always stay, so that the part
cuts bytes into lexemes as the whole does."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from ..errors import PolicyError
from ..grammar.ebnf import find_useless
from ..grammar.ir import GrammarIR, Production

__all__ = ["reduced", "without"]


def without(ir: GrammarIR, names: Collection[str], who: str) -> GrammarIR:
    """The grammar without productions of these names.

    The productions of helpers (for options and repetitions) may serve several rules; they are kept as long as they
    are of use.
    """
    return reduced(ir, lambda p: p.name in names and not ir.nonterminals[p.lhs].name.startswith("__"), who)


def reduced(ir: GrammarIR, unwanted: Callable[[Production], bool], who: str) -> GrammarIR:
    """The grammar without unwanted productions and, as a consequence, useless ones.

    Raises
    ------
    PolicyError
        No sentence is left.
    """
    productions = tuple(p for p in ir.productions if not unwanted(p))
    dead = {index for index, t in enumerate(ir.terminals) if t.reject or t.ignored}
    count = len(ir.nonterminals)
    barren, _ = find_useless(ir.start, count, productions, dead)
    if ir.start in barren:
        raise PolicyError(f"{who} leaves no statement at all; grant a verb and a table, or deny less")
    productions = tuple(
        p for p in productions if p.lhs not in barren and not any(~s in barren for s in p.rhs if s < 0)
    )
    _, unreachable = find_useless(ir.start, count, productions, dead)
    kept = [index for index in range(count) if index not in barren and index not in unreachable]
    number = {old: new for new, old in enumerate(kept)}
    return replace(
        ir,
        start=number[ir.start],
        nonterminals=tuple(ir.nonterminals[old] for old in kept),
        productions=tuple(
            Production(number[p.lhs], tuple(s if s >= 0 else ~number[~s] for s in p.rhs), p.name)
            for p in productions
            if p.lhs in number
        ),
    )
