"""Terminal expressions to byte automata, by Brzozowski derivatives.

An IR expression becomes a *language term* over bytes; the derivative of a term by a byte is the language of
what may follow that byte; the terms reachable by derivatives are the states of a DFA. Union, intersection and
complement need no construction of their own, which is why this route is taken here: every rule below is one
line of algebra.

Terms (tuples, compared structurally)
    ``("set", mask)`` one byte whose bit is set in the 256-bit ``mask`` (0: the empty language) · ``("eps",)``
    the empty string · ``("cat", a, b)`` · ``("alt", terms)`` · ``("and", terms)`` · ``("not", a)`` ·
    ``("rep", a, min, max)`` · ``("graph", states, q)`` what is accepted from state ``q`` on. The constructors
    keep unions and intersections as flat sets and concatenations nested to the right, which bounds the number of
    distinct derivatives.

Source: Brzozowski, Derivatives of Regular Expressions, 1964; Owens, Reppy and Turon, Regular-expression
Derivatives Re-examined, 2009. Not done here: minimisation (no definition depends on it).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from glrgrid.grammar.ir import Expr

__all__ = ["TOKENS", "Dfa", "compile_expr", "utf8_ranges"]

TOKENS = 256
"""Token ids as letters begin here."""

Term = tuple[Any, ...]
ByteRange = tuple[int, int]

EPSILON: Term = ("eps",)
EMPTY: Term = ("set", 0)
EVERYTHING: Term = ("not", EMPTY)


@dataclass(frozen=True)
class Dfa:
    """A deterministic automaton over bytes, and over token ids behind them, without dead states; state 0 is the start.

    ``next[state][letter]`` is ``None`` where no continuation can be accepted. Only the start can be useless
    (when the language is empty); it then has no transitions.
    """

    next: tuple[tuple[int | None, ...], ...]
    accepting: tuple[bool, ...]

    def fullmatch(self, data: bytes) -> bool:
        """Return whether ``data`` is in the language."""
        state: int | None = 0
        for byte in data:
            if state is None:
                return False
            state = self.next[state][byte]
        return state is not None and self.accepting[state]

    def is_empty(self) -> bool:
        """Return whether the language has no string."""
        return not any(self.accepting)


def compile_expr(expr: Expr, ids: int = 0) -> Dfa:
    """Build the DFA of an IR expression, for a vocabulary of so many ids if tokens can be letters."""
    if expr[0] == "tokens":
        _, negated, ranges, _ = expr
        named = [any(low <= token <= high for low, high in ranges) for token in range(ids)]
        row = (None,) * TOKENS + tuple(1 if found != negated else None for found in named)
        return Dfa((row, (None,) * len(row)), (False, True)) if any(row) else Dfa((row,), (False,))
    dfa = _build(_term(expr))
    return Dfa(tuple(row + (None,) * ids for row in dfa.next), dfa.accepting)


def utf8_ranges(lo: int, hi: int) -> Iterator[tuple[ByteRange, ...]]:
    """Yield sequences of byte ranges that together match the UTF-8 forms of the code points ``lo..hi``.

    Surrogates have no UTF-8 form and are left out.
    """
    for first, last in ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF)):
        low, high = max(lo, first), min(hi, last)
        if low <= high:  # one encoded length, no surrogate inside
            yield from _between(chr(low).encode(), chr(high).encode())


def _between(lo: bytes, hi: bytes) -> Iterator[tuple[ByteRange, ...]]:
    """Byte strings of one length from ``lo`` to ``hi``, every byte after the first a continuation byte."""
    if len(lo) == 1:
        yield ((lo[0], hi[0]),)
    elif lo[0] == hi[0]:
        for rest in _between(lo[1:], hi[1:]):
            yield ((lo[0], lo[0]), *rest)
    else:
        least, greatest = b"\x80" * (len(lo) - 1), b"\xbf" * (len(lo) - 1)
        for rest in _between(lo[1:], greatest):
            yield ((lo[0], lo[0]), *rest)
        if lo[0] + 1 < hi[0]:
            yield ((lo[0] + 1, hi[0] - 1), *[(0x80, 0xBF)] * (len(lo) - 1))
        for rest in _between(least, hi[1:]):
            yield ((hi[0], hi[0]), *rest)


# Constructors.


def _bytes_in(ranges: Iterable[ByteRange]) -> Term:
    mask = 0
    for lo, hi in ranges:
        mask |= (1 << (hi + 1)) - (1 << lo)
    return ("set", mask)


def _cat(left: Term, right: Term) -> Term:
    if EMPTY in (left, right):
        return EMPTY
    if left == EPSILON:
        return right
    if right == EPSILON:
        return left
    if left[0] == "cat":
        return _cat(left[1], _cat(left[2], right))
    return ("cat", left, right)


def _sequence(terms: Iterable[Term]) -> Term:
    result = EPSILON
    for term in reversed(list(terms)):
        result = _cat(term, result)
    return result


def _alt(terms: Iterable[Term]) -> Term:
    mask = 0
    flat: set[Term] = set()
    for term in terms:
        for part in term[1] if term[0] == "alt" else (term,):
            if part[0] == "set":
                mask |= part[1]
            else:
                flat.add(part)
    if EVERYTHING in flat:
        return EVERYTHING
    if mask:
        flat.add(("set", mask))
    if not flat:
        return EMPTY
    return next(iter(flat)) if len(flat) == 1 else ("alt", frozenset(flat))


def _and(terms: Iterable[Term]) -> Term:
    flat: set[Term] = set()
    for term in terms:
        flat.update(term[1] if term[0] == "and" else (term,))
    if EMPTY in flat:
        return EMPTY
    flat.discard(EVERYTHING)
    if not flat:
        return EVERYTHING
    return next(iter(flat)) if len(flat) == 1 else ("and", frozenset(flat))


def _not(term: Term) -> Term:
    return term[1] if term[0] == "not" else ("not", term)


def _repeat(term: Term, least: int, most: int | None) -> Term:
    if most == 0 or term == EPSILON:
        return EPSILON
    if term == EMPTY:
        return EMPTY if least else EPSILON
    if _nullable(term):
        least = 0  # any copy may be empty
    if (least, most) == (1, 1):
        return term
    return ("rep", term, least, most)


class _States(tuple[Any, ...]):
    """The states of a graph, compared by identity: they are many, and terms are compared often."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


_SHORT_ESCAPES = {0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r", 0x22: '"', 0x2F: "/", 0x5C: "\\"}


def _spellings(lo: int, hi: int) -> Term:
    """The spellings in a JSON string (RFC 8259, section 7) of the code points ``lo..hi``; surrogates have none."""
    terms = [
        _sequence(_bytes_in([(b, b)]) for b in f"\\{c}".encode())
        for p, c in _SHORT_ESCAPES.items()
        if lo <= p <= hi
    ]
    for first, last in ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF)):
        terms += [_sequence(_bytes_in([r]) for r in s) for s in utf8_ranges(max(lo, first), min(hi, last))]
    for first, last in ((0, 0xD7FF), (0xE000, 0xFFFF)):
        terms.append(_escaped(max(lo, first), min(hi, last)))
    for first, last in _whole_kibis(max(lo, 0x10000) - 0x10000, hi - 0x10000):
        low, high = (
            (0xD800 + (first >> 10), 0xD800 + (last >> 10)),
            (0xDC00 + (first & 0x3FF), 0xDC00 + (last & 0x3FF)),
        )
        terms.append(_cat(_escaped(*low), _escaped(*high)))
    return _alt(terms)


def _whole_kibis(lo: int, hi: int) -> Iterator[tuple[int, int]]:
    """Divide ``lo..hi`` so that each part lies in one block of 1,024 numbers or consists of whole blocks."""
    while lo <= hi:
        blocks = (hi + 1 >> 10) - (lo >> 10) if lo & 0x3FF == 0 else 0
        last = lo + (blocks << 10) - 1 if blocks else min(hi, lo | 0x3FF)
        yield lo, last
        lo = last + 1


def _escaped(lo: int, hi: int) -> Term:
    """``\\uXXXX`` for the numbers ``lo..hi``."""

    def hexadecimal(lo: int, hi: int, digits: int) -> Term:
        if digits == 0:
            return EPSILON
        unit = 16 ** (digits - 1)
        return _alt(
            _cat(
                _bytes_in([(ord(case), ord(case)) for case in {f"{d:x}", f"{d:X}"}]),
                hexadecimal(max(lo - d * unit, 0), min(hi - d * unit, unit - 1), digits - 1),
            )
            for d in range(lo // unit, hi // unit + 1)
        )

    if lo > hi:
        return EMPTY
    return _sequence([_bytes_in([(0x5C, 0x5C)]), _bytes_in([(0x75, 0x75)]), hexadecimal(lo, hi, 4)])


def _term(expr: Expr) -> Term:
    """Translate an IR expression."""
    match expr:
        case ("lit", text):
            return _sequence(_bytes_in([(b, b)]) for b in text.encode())
        case ("fold", text):
            cases = (bytes([b]) for b in text.encode())
            return _sequence(_bytes_in([(b, b) for b in sorted({*c.upper(), *c.lower()})]) for c in cases)
        case ("words", pairs, texts):
            return _alt(_term(("fold", before + text + after)) for text in texts for before, after in pairs)
        case ("bytes", values):
            return _sequence(_bytes_in([(b, b)]) for b in values)
        case ("class", ranges):
            return _alt(
                _sequence(_bytes_in([r]) for r in sequence)
                for lo, hi in ranges
                for sequence in utf8_ranges(lo, hi)
            )
        case ("jsonclass", ranges):
            return _alt(_spellings(lo, hi) for lo, hi in ranges)
        case ("byteclass", ranges):
            return _bytes_in(ranges)
        case ("cat", parts):
            return _sequence(map(_term, parts))
        case ("alt", parts):
            return _alt(map(_term, parts))
        case ("and", parts):
            return _and(map(_term, parts))
        case ("not", part):
            return _not(_term(part))
        case ("repeat", part, least, most):
            return _repeat(_term(part), least, most)
        case ("graph", states):
            terms = (
                (accepting, tuple((_term(label), target) for label, target in edges))
                for accepting, edges in states
            )
            return ("graph", _States(terms), 0) if states else EMPTY
        case _:
            raise ValueError(f"unknown terminal expression {expr!r}")


def _nullable(term: Term) -> bool:
    """Whether the empty string is in the language."""
    match term:
        case ("eps",):
            return True
        case ("set", _):
            return False
        case ("cat", a, b):
            return _nullable(a) and _nullable(b)
        case ("alt", parts):
            return any(map(_nullable, parts))
        case ("and", parts):
            return all(map(_nullable, parts))
        case ("not", a):
            return not _nullable(a)
        case ("rep", a, least, _):
            return least == 0 or _nullable(a)
        case ("graph", states, q):
            return bool(states[q][0])
    raise AssertionError(term)


def _derive(term: Term, byte: int) -> Term:
    """The language of what may follow ``byte``."""
    match term:
        case ("eps",):
            return EMPTY
        case ("set", mask):
            return EPSILON if mask >> byte & 1 else EMPTY
        case ("cat", a, b):
            stays = _cat(_derive(a, byte), b)
            return _alt((stays, _derive(b, byte))) if _nullable(a) else stays
        case ("alt", parts):
            return _alt(_derive(part, byte) for part in parts)
        case ("and", parts):
            return _and(_derive(part, byte) for part in parts)
        case ("not", a):
            return _not(_derive(a, byte))
        case ("rep", a, least, most):
            rest = _repeat(a, max(least - 1, 0), None if most is None else most - 1)
            return _cat(_derive(a, byte), rest)
        case ("graph", states, q):
            edges = states[q][1]
            return _alt(_cat(_derive(label, byte), ("graph", states, to)) for label, to in edges)
    raise AssertionError(term)


def _byte_classes(term: Term) -> list[list[int]]:
    """Bytes grouped so that no byte set of the term, or of a derivative, tells two of a group apart."""
    masks: set[int] = set()
    todo = [term]
    while todo:
        node = todo.pop()
        if node[0] == "set":
            masks.add(node[1])
        elif node[0] in ("alt", "and"):
            todo.extend(node[1])
        elif node[0] == "graph":
            todo.extend(label for _, edges in node[1] for label, _ in edges)
        else:
            todo.extend(part for part in node[1:] if isinstance(part, tuple))
    ordered = sorted(masks)
    classes: dict[tuple[int, ...], list[int]] = {}
    for byte in range(256):
        classes.setdefault(tuple(mask >> byte & 1 for mask in ordered), []).append(byte)
    return list(classes.values())


def _build(start: Term) -> Dfa:
    classes = _byte_classes(start)
    number = {start: 0}
    order = [start]
    rows: list[list[int]] = []  # per state: successor by class
    for term in order:  # grows while it is walked
        row = []
        for members in classes:
            successor = _derive(term, members[0])
            if successor not in number:
                number[successor] = len(order)
                order.append(successor)
            row.append(number[successor])
        rows.append(row)
    accepting = [_nullable(term) for term in order]
    useful = {state for state, accepts in enumerate(accepting) if accepts}
    before: dict[int, set[int]] = {}
    for state, row in enumerate(rows):
        for successor_state in row:
            before.setdefault(successor_state, set()).add(state)
    todo = list(useful)
    while todo:
        for state in before.get(todo.pop(), ()):
            if state not in useful:
                useful.add(state)
                todo.append(state)
    kept = [0] + [state for state in range(1, len(order)) if state in useful]
    renumbered = {state: i for i, state in enumerate(kept)}
    table = []
    for state in kept:
        out: list[int | None] = [None] * 256
        for members, successor_state in zip(classes, rows[state], strict=True):
            if successor_state in useful:
                for byte in members:
                    out[byte] = renumbered[successor_state]
        table.append(tuple(out))
    return Dfa(tuple(table), tuple(accepting[state] for state in kept))
