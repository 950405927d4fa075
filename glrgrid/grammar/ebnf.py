"""EBNF trees and their lowering to plain productions.

The number of productions stays linear in the size of the text: an option, repetition or group becomes a
*helper* nonterminal instead of variants of the alternative it stands in. Helpers with equal content are one
nonterminal, so ``[NOT]`` in two alternatives never makes an LR parser choose between two empty reductions.

=========== ================= =========================================================
text        helper            productions
=========== ================= =========================================================
``[x]``     ``__opt_n``       ``x`` and the empty one
``x*``      ``__star_n``      the empty one and ``__star_n x``
``x+``      ``__plus_n``      ``x`` and ``__plus_n x``
``(x | y)`` ``__group_n``     ``x`` and ``y``
``x~p``     ``__repeat_n``    two copies of half of it; p a power of two
``x~0..m``  ``__upto_n``      ``x~0..p-1`` and ``x~p x~0..m-p``; p the largest power <= m
=========== ================= =========================================================

The last scheme is unambiguous, and LALR(1) when ``x`` is: a thousand copies are some twenty
productions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..errors import GrammarError
from .ir import Expr, Nonterminal, Position, Production

__all__ = [
    "Alt",
    "Alternative",
    "And",
    "Call",
    "Embedded",
    "Leaf",
    "Literal",
    "Lowering",
    "Name",
    "Node",
    "Not",
    "Range",
    "Regex",
    "Repeat",
    "Seq",
    "TokenSet",
    "find_useless",
    "map_leaves",
    "place_of",
]

_MAX_INLINE = 8
"""Exact counts up to this are written out."""

Rhs = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Name:
    """Reference to a rule or terminal."""

    name: str
    position: Position = field(compare=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """String literal; ``fold`` ignores case."""

    text: str
    fold: bool
    position: Position = field(compare=False)


@dataclass(frozen=True, slots=True)
class Regex:
    """Regular expression with its flag letters, sorted."""

    pattern: str
    flags: str
    position: Position = field(compare=False)


@dataclass(frozen=True, slots=True)
class Range:
    """One code point between two."""

    low: str
    high: str
    position: Position = field(compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """Use of a template."""

    name: str
    args: tuple[Leaf, ...]
    position: Position = field(compare=False)


@dataclass(frozen=True, slots=True)
class Seq:
    """Concatenation."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """One alternative of a rule or group, with its alias."""

    body: Seq
    alias: str | None = None
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Alt:
    """Choice."""

    items: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """``low`` to ``high`` copies; ``high`` may be ``None``."""

    item: Node
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Embedded:
    """A block of another language: its kind, and its number in the text."""

    kind: str
    number: int
    position: Position = field(compare=False)


@dataclass(frozen=True, slots=True)
class TokenSet:
    """One token out of some, as an expression and as it is written; in rules only."""

    expr: Expr
    text: str = field(compare=False)
    position: Position = field(compare=False)


@dataclass(frozen=True, slots=True)
class And:
    """Intersection; in terminals only."""

    items: tuple[Seq, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """All texts but those of ``item``; in terminals only."""

    item: Node


Leaf = Name | Literal | Regex | Range | Call | Embedded | TokenSet
Node = Leaf | Seq | Alt | Repeat | And | Not


def place_of(node: Node) -> Position | None:
    """Where a tree begins, as far as it is known."""
    if isinstance(node, (Repeat, Not)):
        return place_of(node.item)
    if isinstance(node, Alt):
        return node.items[0].position
    if isinstance(node, (Seq, And)):
        return next((place for item in node.items if (place := place_of(item))), None)
    return node.position


def map_leaves(node: Node, change: Callable[[Leaf], Node]) -> Node:
    """Copy a tree with every leaf replaced."""
    if isinstance(node, Seq):
        return Seq(tuple(map_leaves(item, change) for item in node.items))
    if isinstance(node, Alt):
        bodies = (Seq(tuple(map_leaves(i, change) for i in a.body.items)) for a in node.items)
        return Alt(
            tuple(Alternative(b, a.alias, a.position) for a, b in zip(node.items, bodies, strict=True))
        )
    if isinstance(node, Repeat):
        return Repeat(map_leaves(node.item, change), node.low, node.high)
    if isinstance(node, Not):
        return Not(map_leaves(node.item, change))
    if isinstance(node, And):
        return And(tuple(Seq(tuple(map_leaves(i, change) for i in s.items)) for s in node.items))
    return change(node)


class Lowering:
    """Productions under construction.

    Parameters
    ----------
    symbol : callable
        Maps a leaf of a rule to its symbol (:class:`~glrgrid.grammar.ir.GrammarIR` numbering).
    """

    def __init__(self, symbol: Callable[[Leaf], int]) -> None:
        self.nonterminals: list[Nonterminal] = []
        self._symbol = symbol
        self._productions: dict[tuple[int, Rhs], str] = {}
        self._helpers: dict[tuple[str, tuple[Rhs, ...]], int] = {}
        self._up_to_found: dict[tuple[Rhs, int], Rhs] = {}
        self._rule = ""

    @property
    def productions(self) -> tuple[Production, ...]:
        """All productions, in order of creation."""
        return tuple(Production(lhs, rhs, name) for (lhs, rhs), name in self._productions.items())

    def declare(self, name: str, position: Position | None) -> int:
        """Add a nonterminal and return its index."""
        self.nonterminals.append(Nonterminal(name, position))
        return len(self.nonterminals) - 1

    def add(self, lhs: int, rhs: Rhs, name: str) -> None:
        """Add one production."""
        self._productions.setdefault((lhs, rhs), name)

    def add_rule(self, lhs: int, name: str, body: Alt) -> None:
        """Lower a rule's alternatives into productions of ``lhs``; an alias takes the place of ``name``.

        Several may be empty, as two options are; the first names the production.
        """
        self._rule = name
        for alternative in body.items:
            for rhs in self._alternatives(alternative.body):
                chosen = alternative.alias or name
                if self._productions.setdefault((lhs, rhs), chosen) != chosen and rhs:
                    earlier = self._productions[lhs, rhs]
                    raise GrammarError(
                        f'rule "{name}" has one alternative twice, as "{earlier}" and "{chosen}"; drop one',
                        *(alternative.position or ()),
                    )

    def _alternatives(self, node: Node) -> list[Rhs]:
        """Right-hand sides whose union is ``node``; a group or option that is the whole of it is opened."""
        if isinstance(node, Alt):
            return _unique(rhs for a in node.items for rhs in self._alternatives(self._unaliased(a)))
        if isinstance(node, Seq) and len(node.items) == 1:
            return self._alternatives(node.items[0])
        if isinstance(node, Repeat) and (node.low, node.high) == (0, 1):
            return _unique([*self._alternatives(node.item), ()])
        return [self._sequence(node)]

    def _unaliased(self, alternative: Alternative) -> Seq:
        if alternative.alias is not None:
            raise GrammarError(
                f'rule "{self._rule}" has alias "{alternative.alias}" inside a group; '
                "only a whole alternative of a rule can have one",
                *(alternative.position or ()),
            )
        return alternative.body

    def _sequence(self, node: Node) -> Rhs:
        if isinstance(node, Seq):
            return tuple(symbol for item in node.items for symbol in self._sequence(item))
        if isinstance(node, Alt):
            alternatives = self._alternatives(node)
            return alternatives[0] if len(alternatives) == 1 else (self._helper("group", alternatives),)
        if isinstance(node, Repeat):
            return self._repeat(node)
        if isinstance(node, (And, Not)):
            what = "&" if isinstance(node, And) else "~"
            raise GrammarError(
                f'rule "{self._rule}" uses "{what}"; only terminals can, so name that part as one',
                *(place_of(node) or ()),
            )
        return (self._symbol(node),)

    def _repeat(self, node: Repeat) -> Rhs:
        low, high = node.low, node.high
        if high == 0:
            return ()
        if (low, high) == (1, 1):
            return self._sequence(node.item)
        if high is not None and (low, high) != (0, 1):
            return self._counted(self._sequence(node.item), low, high)
        if low > 1:
            unit = self._unit(self._sequence(node.item))
            return (*self._exactly(unit, low - 1), *self._repeat(Repeat(node.item, 1, None)))
        alternatives = self._alternatives(node.item)
        if () in alternatives:
            alternatives.remove(())
            low = 0
        if not alternatives:
            return ()
        if high == 1:
            return (self._helper("opt", [*alternatives, ()]),)
        return (self._helper("plus" if low else "star", alternatives),)

    def _counted(self, unit: Rhs, low: int, high: int) -> Rhs:
        unit = self._unit(unit)
        return self._exactly(unit, low) + self._up_to(unit, high - low)

    def _unit(self, rhs: Rhs) -> Rhs:
        return (self._helper("group", [rhs]),) if len(rhs) > 1 else rhs

    def _exactly(self, unit: Rhs, count: int) -> Rhs:
        if count <= _MAX_INLINE:
            return unit * count
        powers = []
        while count:
            if count & 1:
                powers.append(unit)
            unit = (self._helper("repeat", [unit * 2]),) if count > 1 else unit
            count >>= 1
        return tuple(symbol for power in reversed(powers) for symbol in power)

    def _power(self, unit: Rhs, power: int) -> Rhs:
        """``power`` copies, a power of two."""
        while power > 1:
            unit, power = (self._helper("repeat", [unit * 2]),), power // 2
        return unit

    def _up_to(self, unit: Rhs, count: int) -> Rhs:
        if count == 0:
            return ()
        if (unit, count) not in self._up_to_found:
            power = 1 << (count.bit_length() - 1)
            longer = self._power(unit, power) + self._up_to(unit, count - power)
            self._up_to_found[unit, count] = (self._helper("upto", [self._up_to(unit, power - 1), longer]),)
        return self._up_to_found[unit, count]

    def _helper(self, kind: str, alternatives: list[Rhs]) -> int:
        """The nonterminal for this content, as a symbol."""
        key = (kind, tuple(alternatives))
        if key not in self._helpers:
            helper = self._helpers[key] = self.declare(f"__{kind}_{len(self._helpers)}", None)
            if kind == "star":
                alternatives = [(), *((~helper, *rhs) for rhs in alternatives)]
            elif kind == "plus":
                alternatives = [*alternatives, *((~helper, *rhs) for rhs in alternatives)]
            for rhs in alternatives:
                self._productions.setdefault((helper, rhs), self._rule)
        return ~self._helpers[key]


def find_useless(
    start: int, size: int, productions: tuple[Production, ...], dead: set[int]
) -> tuple[set[int], set[int]]:
    """Nonterminals that derive no text (``dead`` terminals never match), and those ``start`` cannot reach."""
    missing = [sum(s < 0 or s in dead for s in p.rhs) for p in productions]
    uses: dict[int, list[int]] = defaultdict(list)
    of: dict[int, list[Production]] = defaultdict(list)
    for index, production in enumerate(productions):
        of[production.lhs].append(production)
        for symbol in production.rhs:
            if symbol < 0:
                uses[~symbol].append(index)
    productive: set[int] = set()
    work = [p.lhs for p, count in zip(productions, missing, strict=True) if count == 0]
    while work:
        found = work.pop()
        if found not in productive:
            productive.add(found)
            for index in uses[found]:
                missing[index] -= 1
                if missing[index] == 0:
                    work.append(productions[index].lhs)
    reached: set[int] = set()
    work = [start]
    while work:
        found = work.pop()
        if found not in reached:
            reached.add(found)
            work.extend(~s for p in of[found] for s in p.rhs if s < 0)
    everything = set(range(size))
    return everything - productive, everything - reached


def _unique(items: Iterable[Rhs]) -> list[Rhs]:
    return list(dict.fromkeys(items))
