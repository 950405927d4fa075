"""Terminal expressions with references to rules, and which rules are regular.

Scannerless front ends describe a grammar as rules that are :data:`~glrgrid.grammar.ir.Expr` trees with one more tag,
``("ref", name)``. :func:`solve` finds the rules whose language has a plain expression: those that refer to none but
such rules, and recursion that is right-linear or left-linear throughout (``ws ::= ([ \\t] ws)?``), by elimination
with Arden's rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from .ir import Expr
from .regex import is_nullable, measure

__all__ = [
    "EMPTY",
    "NOTHING",
    "NOT_EMPTY",
    "alt",
    "cat",
    "fits",
    "has_reference",
    "references",
    "repeat",
    "shortest",
    "solve",
    "split_first",
    "substrings",
    "without_empty",
]  # fmt: skip

EMPTY: Expr = ("lit", "")
"""The empty string."""
NOTHING: Expr = ("alt", ())
"""The empty language."""
NOT_EMPTY: Expr = ("not", EMPTY)
"""All texts but the empty one."""

MAX_DEPTH = 60
"""Deepest expression; its JSON has up to two levels for each, and JSON readers stop at 128."""
MAX_NODES = 5_000
"""Largest expression that a rule is solved to."""
MAX_COMPONENT = 12
"""Most mutually recursive rules that elimination is tried on; expressions can double with each."""

Equation = tuple[dict[str, Expr], Expr]
"""``X = sum of coefficient X_j + rest``, coefficients before the unknowns (right-linear) or after (left-linear)."""


def fits(expr: Expr) -> bool:
    """Whether an expression is small enough to be a terminal."""
    depth, nodes = measure(expr)
    return depth <= MAX_DEPTH and nodes <= MAX_NODES


def cat(parts: Iterable[Expr]) -> Expr:
    """Concatenate; flat, and literals next to each other are one."""
    flat: list[Expr] = []
    for part in parts:
        for item in part[1] if part[0] == "cat" else (part,):
            if item == NOTHING:
                return NOTHING
            if item[0] == "lit" and flat and flat[-1][0] == "lit":
                item = ("lit", flat.pop()[1] + item[1])
            if item != EMPTY:
                flat.append(item)
    return ("cat", tuple(flat)) if len(flat) > 1 else flat[0] if flat else EMPTY


def alt(parts: Iterable[Expr]) -> Expr:
    """Unite; flat, and each alternative once."""
    flat = dict.fromkeys(item for part in parts for item in (part[1] if part[0] == "alt" else (part,)))
    return next(iter(flat)) if len(flat) == 1 else ("alt", tuple(flat))


def repeat(item: Expr, low: int, high: int | None) -> Expr:
    """Repeat; what can be empty is repeated without its empty text, which would only make it ambiguous."""
    if high == 0 or item == EMPTY:
        return EMPTY
    if item == NOTHING:
        return EMPTY if low == 0 else NOTHING
    if (low, high) == (1, 1):
        return item
    if not has_reference(item) and is_nullable(item):
        item, low = without_empty(item), 0
    if item[0] == "repeat" and (low, high) in ((0, 1), (0, None)) and item[2] <= 1:
        return ("repeat", item[1], 0, item[3] if high == 1 else None)
    return ("repeat", item, low, high)


def without_empty(expr: Expr) -> Expr:
    """The language without the empty string."""
    if not is_nullable(expr):
        return expr
    tag, *args = expr
    if tag in ("lit", "bytes"):
        return NOTHING
    if tag == "alt":
        return alt(map(without_empty, args[0]))
    if tag == "repeat":
        return repeat(without_empty(args[0]), 1, args[2])
    return ("and", (expr, NOT_EMPTY))


def split_first(items: tuple[Expr, ...]) -> Expr:
    """The language of a concatenation without the empty string, by whether its first item is empty."""
    first, rest = items[0], cat(items[1:])
    return alt((cat((without_empty(first), rest)), without_empty(rest)))


def shortest(expr: Expr) -> Expr:
    """The texts that have no shorter one of the language at their beginning."""
    byte: Expr = ("byteclass", ((0, 255),))
    return ("and", (expr, ("not", ("cat", (expr, byte, ("repeat", byte, 0, None))))))


def substrings(chunks: tuple[str, ...]) -> Expr:
    """What can be cut out of a sequence of chunks, without cutting one of them; nothing at all, too."""
    return _cuttings(chunks)[0]


def _cuttings(chunks: tuple[str, ...]) -> tuple[Expr, Expr, Expr]:
    """All that can be cut out, what begins at the beginning, and what ends at the end; in halves, to stay flat."""
    if len(chunks) <= 1:
        whole = alt((EMPTY, *(("lit", chunk) for chunk in chunks)))
        return whole, whole, whole
    half = len(chunks) // 2
    left, right = _cuttings(chunks[:half]), _cuttings(chunks[half:])
    before, after = ("lit", "".join(chunks[:half])), ("lit", "".join(chunks[half:]))
    return (
        alt((left[0], right[0], cat((left[2], right[1])))),
        alt((left[1], cat((before, right[1])))),
        alt((right[2], cat((left[2], after)))),
    )


def references(expr: Expr) -> Iterator[str]:
    """The names of the rules that an expression refers to."""
    if expr[0] == "ref":
        yield expr[1]
    elif expr[0] in ("cat", "alt", "and"):
        for item in expr[1]:
            yield from references(item)
    elif expr[0] in ("repeat", "not"):
        yield from references(expr[1])


def has_reference(expr: Expr) -> bool:
    """Whether an expression refers to a rule."""
    return next(references(expr), None) is not None


def solve(rules: dict[str, Expr]) -> dict[str, Expr]:
    """Replace references to regular rules by their expressions.

    Afterwards a rule is regular if and only if it has no references, and only irregular ones are referred to.
    """
    solved: dict[str, Expr] = {}
    result: dict[str, Expr] = {}
    for component in _components(rules):
        bodies = {name: _substitute(rules[name], solved) for name in component}
        found = _eliminate(bodies, left=False) or _eliminate(bodies, left=True)
        if found is not None:
            solved.update(found)
        result.update(found or bodies)
    return {name: result[name] for name in rules}


def _substitute(expr: Expr, solved: dict[str, Expr]) -> Expr:
    tag, *args = expr
    if tag == "ref":
        return solved.get(args[0], expr)
    if tag == "cat":
        return cat(_substitute(item, solved) for item in args[0])
    if tag == "alt":
        return alt(_substitute(item, solved) for item in args[0])
    if tag == "repeat":
        return repeat(_substitute(args[0], solved), args[1], args[2])
    return expr


def _eliminate(bodies: dict[str, Expr], left: bool) -> dict[str, Expr] | None:
    """Solve mutually recursive rules, if they are linear on one side and stay small."""
    if len(bodies) > MAX_COMPONENT:
        return None
    equations: dict[str, Equation] = {}
    for name, body in bodies.items():
        equation = _equation(body, left)
        if equation is None or not equation[0].keys() <= bodies.keys():
            return None
        equations[name] = equation
    names = list(bodies)
    for index, name in enumerate(names):
        equations[name] = own = _without_itself(name, equations[name], left)
        for other in names[index + 1 :]:
            equations[other] = _insert(name, own, equations[other], left)
            if not all(map(fits, (*equations[other][0].values(), equations[other][1]))):
                return None
    solved: dict[str, Expr] = {}
    for name in reversed(names):
        coefficients, rest = equations[name]
        parts = [_join(coefficient, solved[other], left) for other, coefficient in coefficients.items()]
        solved[name] = alt((*parts, rest))
        if not fits(solved[name]):
            return None
    return solved


def _join(coefficient: Expr, value: Expr, left: bool) -> Expr:
    return cat((value, coefficient) if left else (coefficient, value))


def _equation(expr: Expr, left: bool) -> Equation | None:
    """The equation of a body, or ``None`` if it is not linear."""
    if not has_reference(expr):
        return {}, expr
    tag, *args = expr
    if tag == "ref":
        return {args[0]: EMPTY}, NOTHING
    if tag == "alt":
        parts = [_equation(item, left) for item in args[0]]
        if None in parts:
            return None
        return _unite(part for part in parts if part is not None)
    if tag == "cat":
        last, others = (args[0][0], args[0][1:]) if left else (args[0][-1], args[0][:-1])
        inner = None if any(map(has_reference, others)) else _equation(last, left)
        if inner is None:
            return None
        before = cat(others)
        return {n: _join(before, c, left) for n, c in inner[0].items()}, _join(before, inner[1], left)
    if tag == "repeat" and args[1:] == [0, 1]:
        inner = _equation(args[0], left)
        return inner and (inner[0], alt((inner[1], EMPTY)))
    return None


def _unite(equations: Iterable[Equation]) -> Equation:
    coefficients: dict[str, Expr] = {}
    rest = NOTHING
    for others, other in equations:
        rest = alt((rest, other))
        for name, coefficient in others.items():
            coefficients[name] = alt((coefficients.get(name, NOTHING), coefficient))
    return coefficients, rest


def _without_itself(name: str, equation: Equation, left: bool) -> Equation:
    """Arden's rule: ``X = C X + R`` has the least solution ``C* R``."""
    coefficients, rest = equation
    if name not in coefficients:
        return equation
    again = repeat(coefficients[name], 0, None)
    others = {other: _join(again, c, left) for other, c in coefficients.items() if other != name}
    return others, _join(again, rest, left)


def _insert(name: str, value: Equation, into: Equation, left: bool) -> Equation:
    coefficients, rest = into
    if name not in coefficients:
        return into
    before = coefficients[name]
    others = {other: c for other, c in coefficients.items() if other != name}
    inserted = {other: _join(before, c, left) for other, c in value[0].items()}
    return _unite(((others, rest), (inserted, _join(before, value[1], left))))


def _components(rules: dict[str, Expr]) -> Iterator[list[str]]:
    """Strongly connected components of the rules, what is referred to first (Tarjan's algorithm, without recursion)."""
    callees = cache(lambda name: tuple(dict.fromkeys(n for n in references(rules[name]) if n in rules)))
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    open_names: list[str] = []
    done: set[str] = set()
    for root in rules:
        work = [] if root in index else [(root, 0)]
        while work:
            name, position = work.pop()
            if position == 0:
                index[name] = low[name] = len(index)
                open_names.append(name)
            elif position > 0:
                low[name] = min(low[name], low[callees(name)[position - 1]])
            following = callees(name)
            while position < len(following) and following[position] in index:
                if following[position] not in done:
                    low[name] = min(low[name], index[following[position]])
                position += 1
            if position < len(following):
                work += [(name, position + 1), (following[position], 0)]
            elif low[name] == index[name]:
                component = open_names[open_names.index(name) :]
                del open_names[-len(component) :]
                done.update(component)
                yield component
