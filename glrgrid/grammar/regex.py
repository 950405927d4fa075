"""Python ``re`` patterns, string literals and character ranges to terminal expressions
(:mod:`glrgrid.grammar.ir`).

The standard library's own parser reads the pattern, so the dialect is Python's; what is kept is the
*language* of the pattern, as :func:`re.fullmatch` defines it on ``str``. Whatever looks beyond the text it
matches, or prefers one match to another, has no language of its own and is refused by name: look-arounds,
anchors, lazy and possessive quantifiers, atomic groups, backreferences, conditional groups.

Character sets are sorted tuples of inclusive code point ranges without surrogates. Sets that depend on
Unicode tables (``\\w`` and friends, IGNORECASE) are not re-derived: ``re`` itself is run over all code
points, or over all that have a case.
"""

from __future__ import annotations

import importlib
import operator
import re
from collections.abc import Iterable
from functools import cache, lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np

from ..errors import GrammarError
from .ir import Expr, Position

__all__ = [
    "Outline",
    "from_class",
    "from_literal",
    "from_pattern",
    "from_range",
    "is_nullable",
    "measure",
    "outline",
    "render",
]

Ranges = tuple[tuple[int, int], ...]

try:
    _parser: Any = importlib.import_module("re._parser")
except ImportError:  # the module's name before Python 3.11
    _parser = importlib.import_module("sre_parse")

_MAX_CODE_POINT = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
_TYPE_FLAGS = int(re.ASCII | re.LOCALE | re.UNICODE)
_CLASS_FLAGS = int(re.ASCII | re.IGNORECASE)
_REFUSED = {
    "ASSERT": "a look-around",
    "ASSERT_NOT": "a negative look-around",
    "FAILURE": "a negative look-around",
    "AT_BEGINNING": "an anchor (^)",
    "AT_BEGINNING_STRING": "an anchor (\\A)",
    "AT_END": "an anchor ($)",
    "AT_END_STRING": "an anchor (\\Z)",
    "AT_BOUNDARY": "an anchor (\\b)",
    "AT_NON_BOUNDARY": "an anchor (\\B)",
    "MIN_REPEAT": "a lazy quantifier",
    "POSSESSIVE_REPEAT": "a possessive quantifier",
    "ATOMIC_GROUP": "an atomic group",
    "GROUPREF": "a backreference",
    "GROUPREF_EXISTS": "a conditional group",
}
_ADVICE = {
    "a lazy quantifier": "rewrite it to match up to the first end only, as /<[^>]*>/ does",
    "an anchor (^)": "a terminal is matched wherever a lexeme may begin, so leave it out",
    "an anchor (\\A)": "a terminal is matched wherever a lexeme may begin, so leave it out",
    "a backreference": "list the texts that may repeat as alternatives",
}
_WORD_END = re.compile(r"(?:\\b)?(\w+)(?:\\b|\(\?!(?:\\w|\[[^]]*\])\))?")
"""A word with what keeps it from being matched inside a longer one."""
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}


def from_pattern(
    pattern: str, flags: str = "", position: Position | None = None, whole: bool = False
) -> Expr:
    """Translate a Python regular expression.

    Parameters
    ----------
    pattern : str
        In the dialect of :mod:`re`, inline flags included.
    flags : str
        Letters out of ``imsxua``.
    position : (int, int), optional
        Line and column that errors quote.
    whole : bool
        The pattern is not a part of something, but describes whole texts. Anchors at its ends then say what holds
        anyway, and lazy quantifiers what greedy ones do. Without a position, errors quote that in the pattern.

    Returns
    -------
    Expr
        Its language is ``{s : re.fullmatch(pattern, s, flags)}``.

    Raises
    ------
    GrammarError
        The pattern is malformed, or uses what has no plain regular equivalent.
    """
    where: tuple[int | None, int | None] = position or (None, None)
    if "l" in flags.lower():
        raise GrammarError(
            f'regular expression /{pattern}/ has flag "l": the locale is not supported', *where
        )
    try:
        parsed = _parser.parse(pattern, sum(int(re.RegexFlag[f.upper()]) for f in set(flags)))
        return _sequence(parsed, int(parsed.state.flags), (True, True) if whole else None)
    except _Unsupported as error:
        raise GrammarError(
            f"regular expression /{pattern}/ uses {error}, which has no plain regular equivalent; "
            f"{_advice(pattern, flags, str(error))}",
            *where,
        ) from None
    except re.error as error:
        if position is None and whole and error.pos is not None:
            where = (error.lineno, error.colno)
        raise GrammarError(f"regular expression /{pattern}/ is malformed ({error.msg})", *where) from None
    except (OverflowError, RecursionError) as error:
        raise GrammarError(f"regular expression is too large or nested too deeply: {error}", *where) from None


def _advice(pattern: str, flags: str, construct: str) -> str:
    """What to write instead of a refused pattern."""
    word = _WORD_END.fullmatch(pattern)
    if word is not None and word[1] != pattern:
        fold = "i" if "i" in flags else ""
        return f'the longest match wins anyway, so leave it out: write "{word[1]}"{fold}'
    if construct in ("an anchor (\\b)", "an anchor ($)", "an anchor (\\Z)", "a negative look-around"):
        return "the longest match wins anyway, so leave it out if it only marks where the text ends"
    return _ADVICE.get(construct, "rewrite it to match exactly the text it should consume")


def from_literal(text: str, fold: bool) -> Expr:
    """Translate a string literal; ``fold`` ignores case.

    ASCII text folds ASCII letters only: ``"select"i`` never matches ``ſelect``. Other text folds as
    ``re.IGNORECASE`` does.
    """
    if not fold:
        return ("lit", text)
    if text.isascii():
        return _cat([_both_cases(c) if c.isalpha() else ("lit", c) for c in text])
    flags = int(re.IGNORECASE | re.UNICODE)
    return _cat([_characters([("LITERAL", ord(c))], False, flags) for c in text])


@cache
def _both_cases(letter: str) -> Expr:
    upper, lower = ord(letter.upper()), ord(letter.lower())
    return ("class", ((upper, upper), (lower, lower)))


def from_range(low: str, high: str) -> Expr:
    """Translate ``"a".."z"``."""
    return ("class", _normalize([(ord(low), ord(high))]))


def from_class(ranges: Iterable[tuple[int, int]], negated: bool = False) -> Expr:
    """One code point out of inclusive ranges, or of none of them."""
    chosen = _normalize(ranges)
    if negated:
        chosen = _complement(chosen)
    if len(chosen) == 1 and chosen[0][0] == chosen[0][1]:
        return ("lit", chr(chosen[0][0]))
    return ("class", chosen) if chosen else ("alt", ())


def render(expr: Expr, limit: int = 40) -> str:
    """An expression as a regular expression for people, cut to some forty characters."""
    text = _rendered(expr, limit + 1)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _rendered(expr: Expr, limit: int) -> str:
    tag, *args = expr
    if tag == "lit":
        text: str = args[0]
        return re.escape(text[:limit]).replace("\\ ", " ").replace("\\\n", "\\n").replace("\\\t", "\\t")
    if tag == "bytes":
        return "".join(f"\\x{byte:02x}" for byte in args[0][:limit])
    if tag in ("class", "byteclass"):
        others = _complement(args[0]) if tag == "class" else args[0]
        negated = tag == "class" and len(others) < len(args[0])
        if negated and not others:
            return "."
        shown = (
            "-".join(map(_class_character, dict.fromkeys(p)))
            for p in (others if negated else args[0])[:limit]
        )
        return f"[{'^' * negated}{''.join(shown)}]"
    if tag in ("cat", "alt", "and"):
        text = ""
        for item in args[0]:
            if len(text) > limit:
                break
            part = _rendered(item, limit)
            part = f"({part})" if tag != "alt" and item[0] in ("alt", "and") else part
            text += ({"alt": "|", "and": "&"}.get(tag, "") if text else "") + part
        return text
    inner = _rendered(args[0], limit)
    if not (args[0][0] in ("class", "byteclass") or (args[0][0] == "lit" and len(args[0][1]) == 1)):
        inner = f"({inner})"
    if tag == "not":
        return f"~{inner}"
    low, high = args[1], args[2]
    counts = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    return inner + counts.get((low, high), f"{{{low},{'' if high is None else high}}}")


def _class_character(code: int) -> str:
    """A code point inside of brackets."""
    character = chr(code)
    return character if character.isprintable() and character not in "[]^-\\" else f"\\x{code:02x}"


def is_nullable(expr: Expr) -> bool:
    """Whether the language contains the empty string."""
    tag, *args = expr
    if tag in ("lit", "bytes"):
        return not args[0]
    if tag in ("cat", "and"):
        return all(map(is_nullable, args[0]))
    if tag == "alt":
        return any(map(is_nullable, args[0]))
    if tag == "repeat":
        return args[1] == 0 or is_nullable(args[0])
    return tag == "not" and not is_nullable(args[0])


def measure(expr: Expr) -> tuple[int, int]:
    """Depth (a leaf has 1) and number of nodes of an expression."""
    children = (
        expr[1] if expr[0] in ("cat", "alt", "and") else expr[1:2] if expr[0] in ("repeat", "not") else ()
    )
    depths_nodes = [measure(child) for child in children]
    return 1 + max((d for d, _ in depths_nodes), default=0), 1 + sum(n for _, n in depths_nodes)


class Outline(NamedTuple):
    """What can be seen of a language from far away."""

    shortest: int
    """No text has fewer bytes."""
    longest: int | None
    """No text has more; ``None`` if there is no bound."""
    first: int
    """The bytes that texts begin with, as a set of bits."""
    literal: str | None
    """The only text, if it is written as one."""

    def can_begin(self, other: Outline) -> bool:
        """Whether a text of ``other`` could begin with a shorter one of this; False only if it cannot."""
        if self.literal is not None and other.literal is not None:
            return other.literal.startswith(self.literal) and other.literal != self.literal
        fits = other.longest is None or self.shortest < other.longest
        return fits and bool(self.first & other.first)


def outline(expr: Expr) -> Outline:
    """Look at a language from far away; nothing here is exact, but all bounds hold."""
    return Outline(*_lengths(expr), _first_bytes(expr), expr[1] if expr[0] == "lit" else None)


def _lengths(expr: Expr) -> tuple[int, int | None]:
    """Least and greatest number of bytes; ``None`` has no bound."""
    tag, *args = expr
    if tag in ("lit", "bytes"):
        size = len(args[0].encode()) if tag == "lit" else len(args[0])
        return size, size
    if tag == "class":
        return (1, 1) if all(high < 0x80 for _, high in args[0]) else (1, 4)
    if tag == "byteclass":
        return 1, 1
    if tag == "repeat":
        (shortest, longest), low, high = _lengths(args[0]), args[1], args[2]
        bounded = longest is not None and high is not None
        return shortest * low, longest * high if bounded else None
    if tag in ("cat", "alt"):
        parts = [_lengths(part) for part in args[0]] or [(0, 0)]
        least = [low for low, _ in parts]
        most = [high for _, high in parts if high is not None]
        if tag == "cat":
            return sum(least), sum(most) if len(most) == len(parts) else None
        return min(least), max(most) if len(most) == len(parts) else None
    return 0, None


def _first_bytes(expr: Expr) -> int:
    """The bytes that texts can begin with, as a set of bits."""
    tag, *args = expr
    if tag == "lit":
        return 1 << args[0].encode()[0] if args[0] else 0
    if tag == "bytes":
        return 1 << args[0][0] if args[0] else 0
    if tag == "class":
        return _bits((chr(low).encode()[0], chr(high).encode()[0]) for low, high in args[0])
    if tag == "byteclass":
        return _bits(args[0])
    if tag == "cat":
        found = 0
        for part in args[0]:
            found |= _first_bytes(part)
            if not is_nullable(part):
                break
        return found
    if tag == "alt":
        return _bits_union(map(_first_bytes, args[0]))
    if tag == "repeat":
        return 0 if args[2] == 0 else _first_bytes(args[0])
    return (1 << 256) - 1


def _bits(ranges: Iterable[tuple[int, int]]) -> int:
    return _bits_union((2 << high) - (1 << low) for low, high in ranges)


def _bits_union(sets: Iterable[int]) -> int:
    return reduce(operator.or_, sets, 0)


class _Unsupported(Exception):
    """Carries the name of the refused construct."""


_Edges = tuple[bool, bool] | None
"""Whether nothing comes before and after, in a pattern of whole texts."""


def _sequence(items: Iterable[Any], flags: int, edges: _Edges) -> Expr:
    found = [(op.name, argument) for op, argument in items]
    if edges is not None:
        while edges[0] and found and _is_anchor(found[0], "AT_BEGINNING"):
            del found[0]
        while edges[1] and found and _is_anchor(found[-1], "AT_END"):
            del found[-1]
    inside = [
        edges and (edges[0] and index == 0, edges[1] and index == len(found) - 1)
        for index in range(len(found))
    ]
    return _cat([_item(op, argument, flags, e) for (op, argument), e in zip(found, inside, strict=True)])


def _is_anchor(item: tuple[str, Any], name: str) -> bool:
    return item[0] == "AT" and item[1].name in (name, f"{name}_STRING")


def _item(op: str, argument: Any, flags: int, edges: _Edges) -> Expr:
    if op in ("LITERAL", "NOT_LITERAL"):
        return _characters([("LITERAL", argument)], op == "NOT_LITERAL", flags)
    if op == "ANY":
        return ("class", _complement(() if flags & re.DOTALL else ((10, 10),)))
    if op == "IN":
        items = [(kind.name, value) for kind, value in argument]
        return _characters([i for i in items if i[0] != "NEGATE"], ("NEGATE", None) in items, flags)
    if op == "BRANCH":
        return ("alt", tuple(_sequence(branch, flags, edges) for branch in argument[1]))
    if op == "SUBPATTERN":
        _, added, removed, body = argument
        if added & _TYPE_FLAGS:
            flags &= ~_TYPE_FLAGS
        return _sequence(body, (flags | added) & ~removed, edges)
    if op == "MAX_REPEAT" or (op == "MIN_REPEAT" and edges is not None):
        low, high, body = argument
        high = None if high == _parser.MAXREPEAT else int(high)
        return ("repeat", _sequence(body, flags, edges and (False, False)), int(low), high)
    raise _Unsupported(_REFUSED.get(argument.name if op == "AT" else op, op))


def _cat(parts: list[Expr]) -> Expr:
    """Concatenate, joining neighbouring literals."""
    joined: list[Expr] = []
    for part in parts:
        if part[0] == "lit" and joined and joined[-1][0] == "lit":
            joined[-1] = ("lit", joined[-1][1] + part[1])
        else:
            joined.append(part)
    return joined[0] if len(joined) == 1 else ("cat", tuple(joined))


def _characters(items: list[tuple[str, Any]], negated: bool, flags: int) -> Expr:
    """One code point out of a character class (``LITERAL``, ``RANGE`` and ``CATEGORY`` items)."""
    return _character_class(tuple(items), negated, flags & _CLASS_FLAGS)


@lru_cache(4096)
def _character_class(items: tuple[tuple[str, Any], ...], negated: bool, flags: int) -> Expr:
    ascii_only = flags & re.ASCII
    ranges: list[tuple[int, int]] = []
    for kind, value in items:
        if kind == "LITERAL":
            ranges.append((value, value))
        elif kind == "RANGE":
            ranges.append(value)
        else:
            ranges.extend(_category(_CATEGORIES[value.name], bool(ascii_only)))
    chosen = _normalize(ranges)
    if flags & re.IGNORECASE:
        matcher = re.compile(_class_text(items), re.IGNORECASE | (re.ASCII if ascii_only else re.UNICODE))
        with_case = _normalize((ord(c), ord(c)) for c in matcher.findall(_cased()))
        chosen = _normalize(_complement(_normalize(_complement(chosen) + _cased_ranges())) + with_case)
    if negated:
        chosen = _complement(chosen)
    if len(chosen) == 1 and chosen[0][0] == chosen[0][1]:
        return ("lit", chr(chosen[0][0]))
    return ("class", chosen)


def _class_text(items: tuple[tuple[str, Any], ...]) -> str:
    """The items as the text of a character class, every code point escaped."""
    parts = []
    for kind, value in items:
        if kind == "CATEGORY":
            parts.append(_CATEGORIES[value.name])
        else:
            low, high = (value, value) if kind == "LITERAL" else value
            parts.append(f"\\U{low:08x}-\\U{high:08x}")
    return f"[{''.join(parts)}]"


@cache
def _category(escape: str, ascii_only: bool) -> Ranges:
    """Code points that ``escape`` matches, found by one scan over all of them."""
    codes = np.arange(_MAX_CODE_POINT + 1, dtype="<u4")
    texts = codes[(codes < _SURROGATES[0]) | (codes > _SURROGATES[1])].tobytes()
    everything = texts.decode("utf-32-le")
    runs = re.findall(f"{escape}+", everything, re.ASCII if ascii_only else re.UNICODE)
    return _normalize((ord(run[0]), ord(run[-1])) for run in runs)


@cache
def _cased() -> str:
    """All characters that a case mapping changes, or yields; Unicode has none beyond plane 1."""
    return "".join(
        c
        for c in map(chr, (*range(_SURROGATES[0]), *range(_SURROGATES[1] + 1, 0x20000)))
        if c.lower() != c or c.upper() != c or c.casefold() != c
    )


@cache
def _cased_ranges() -> Ranges:
    return _normalize((ord(c), ord(c)) for c in _cased())


def _normalize(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sort, cut the surrogates out, and merge what touches."""
    low_surrogate, high_surrogate = _SURROGATES
    pieces = []
    for low, high in ranges:
        if high < low_surrogate or low > high_surrogate:
            pieces.append((low, high))
        else:
            pieces += [(low, low_surrogate - 1), (high_surrogate + 1, high)]
    merged: list[tuple[int, int]] = []
    last = -2
    for low, high in sorted(pieces):
        if low > high:
            continue
        if low > last + 1:
            merged.append((low, high))
            last = high
        elif high > last:
            merged[-1] = (merged[-1][0], high)
            last = high
    return tuple(merged)


def _complement(ranges: Ranges) -> Ranges:
    gaps, start = [], 0
    for low, high in ranges:
        gaps.append((start, low - 1))
        start = high + 1
    return _normalize([*gaps, (start, _MAX_CODE_POINT)])
