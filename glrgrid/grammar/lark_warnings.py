"""What the author of a grammar should know though the grammar can be used; the texts of
:attr:`glrgrid.grammar.ir.GrammarIR.warnings`."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Sequence

from . import regex
from .ir import Nonterminal, Terminal
from .lark_module import names_in
from .lark_text import Definition

__all__ = ["MAX_LISTED", "left_out", "overtaken", "rule_priorities", "unused", "useless"]

MAX_LISTED = 10
"""Most names that a message lists, where their number may grow with its square."""


def rule_priorities(definitions: Iterable[Definition]) -> Iterator[str]:
    """Rules with a priority."""
    for definition in definitions:
        if not definition.is_terminal and definition.priority is not None:
            line = definition.position[0]
            yield f'priority of rule "{definition.name}" (line {line}) has no effect: all parses are kept'


def left_out(definitions: Collection[Definition], kept: Iterable[str]) -> Iterator[str]:
    """Terminals that are neither ``kept`` nor part of another one."""
    known = set(kept)
    for definition in definitions:
        if definition.is_terminal:
            known.update(name for name in names_in(definition.body) if name != definition.name)
    for definition in definitions:
        name = definition.name
        if definition.is_terminal and definition.listed and name not in known:
            where = f"(line {definition.position[0]})"
            yield f'terminal "{name}" {where} is left out: no rule uses it, and it can match the empty string'


def unused(terminals: Sequence[Terminal], used: Container[int]) -> Iterator[str]:
    """Terminals that no rule uses, and that have no other purpose either."""
    targets = {terminal.fallback for terminal in terminals}
    found = [
        f'"{terminal.name}"'
        for index, terminal in enumerate(terminals)
        if index not in used and index not in targets
        if not terminal.ignored and not terminal.reject and terminal.fallback is None
    ]
    if found:
        one = len(found) == 1
        yield (
            f"{'terminal' if one else 'terminals'} {', '.join(found)} {'takes' if one else 'take'} part in the "
            f"longest match though no rule uses {'it' if one else 'them'}; with the contextual lexer "
            f"{'it' if one else 'they'} would not"
        )


def overtaken(terminals: Sequence[Terminal]) -> Iterator[str]:
    """Terminals of high priority that may match the beginning of a longer match of another one."""
    if len({terminal.priority for terminal in terminals}) < 2:
        return
    spelt = (terminal for terminal in terminals if terminal.expr[0] != "tokens")
    outlines = [(terminal, regex.outline(terminal.expr)) for terminal in spelt]
    pairs = [
        f'"{high.name}" ({high.priority}) and "{low.name}" ({low.priority})'
        for high, short in outlines
        for low, long in outlines
        if high.priority > low.priority and short.can_begin(long)
    ]
    if pairs:
        more = f" and {len(pairs) - MAX_LISTED} more" if len(pairs) > MAX_LISTED else ""
        yield (
            f"of terminals {', '.join(pairs[:MAX_LISTED])}{more}, Lark may take the first where the second "
            "matches longer text; here the longest match wins, priority decides between equals"
        )


def useless(
    nonterminals: Sequence[Nonterminal], start: int, barren: set[int], unreachable: set[int]
) -> Iterator[str]:
    """Rules that no sentence needs."""
    for index in sorted(barren | unreachable):
        nonterminal = nonterminals[index]
        if nonterminal.position is not None:
            reason = (
                "derives no text"
                if index in barren
                else f'cannot be reached from "{nonterminals[start].name}"'
            )
            yield f'rule "{nonterminal.name}" (line {nonterminal.position[0]}) {reason}'
