"""Grammar text in llama.cpp's format, GBNF, to :class:`~glrgrid.grammar.ir.GrammarIR`.

GBNF has no lexer: its terminals are characters. :mod:`glrgrid.grammar.scannerless` chooses terminals so that nothing
depends on how the text is cut. Where more is accepted than llama.cpp accepts, it is what could only be an error there:
a line that begins with ``|`` goes on with the rule before it, and left recursion is welcome.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from typing import NoReturn

from ..errors import GrammarError
from . import regex, tokens
from .ir import Expr, GrammarIR, Position
from .regular import alt, cat, repeat
from .scannerless import build

__all__ = ["MAX_COUNT", "read", "rules"]

Rules = dict[str, tuple[Expr, Position]]

MAX_COUNT = 1_000_000
"""Largest count in a repetition."""
MAX_NESTING = 100
"""Deepest nesting of groups."""

_BLANK = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
_BLANK_LINES = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_CONTINUED = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*\|")
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_COUNTS = re.compile(r"\{[ \t]*(\d{0,9})[ \t]*(,)?[ \t]*(\d{0,9})[ \t]*\}")
_TOKEN = re.compile(r"!?(<(?:\[\d{1,9}\]|[^<>\[\]\s]+)>)")
_HEX = {"x": 2, "u": 4, "U": 8}
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-", "^": "^"}


def read(text: str, start: str = "root", markers: Collection[str] = ()) -> GrammarIR:
    """Read a grammar in GBNF.

    Parameters
    ----------
    text : str
        The grammar.
    start : str
        Start rule.
    markers : collection of str
        Names of tokens that literals with their text mean as well.

    Returns
    -------
    GrammarIR
        With the warnings that building it raised.

    Raises
    ------
    GrammarError
        The text is malformed, or uses what is not supported.
    """
    found, tokens = rules(text, start, markers)
    return build(found, start, tokens=tokens)


def rules(text: str, start: str = "root", markers: Collection[str] = ()) -> tuple[Rules, Rules]:
    """The rules of a text, one of them ``start``, and its tokens, for :mod:`glrgrid.grammar.scannerless`."""
    reader = _Reader(text, markers)
    found = reader.rules()
    if start not in found:
        hint = _closest(start, found)
        first = next(iter(found.values()))[1]
        raise GrammarError(f'rule "{start}", where the output begins, is not defined{hint}', *first)
    return found, reader.tokens


def _closest(name: str, known: Rules) -> str:
    matches = difflib.get_close_matches(name, known, 1)
    return f'; closest name: "{matches[0]}"' if matches else ""


class _Reader:
    """Recursive descent over the text; ``_at`` is the offset of what comes next."""

    def __init__(self, text: str, markers: Collection[str]) -> None:
        self._text = text
        self._markers = markers
        self._at = 0
        self._used: dict[str, int] = {}
        """Names that rules refer to, and where they do so first."""
        self.tokens: Rules = {}
        """Tokens that rules refer to, as they are written."""

    def rules(self) -> Rules:
        """All rules, in order."""
        found: Rules = {}
        self._skip(_BLANK_LINES)
        while self._at < len(self._text):
            begin = self._at
            name = self._name("the name of a rule")
            if name in found:
                self._fail(
                    f'rule "{name}" is defined more than once, first on line {found[name][1][0]}', begin
                )
            self._skip(_BLANK)
            if not self._text.startswith("::=", self._at):
                self._fail(f'expected "::=" after rule name "{name}", found {self._found()}')
            self._at += 3
            self._skip(_BLANK_LINES)
            found[name] = (self._alternatives(name, 0), self._position(begin))
            self._end_of_rule(name)
        for name, at in self._used.items():
            if name not in found:
                self._fail(f'undefined rule "{name}"{_closest(name, found)}', at)
        if not found:
            raise GrammarError('the text has no rules; write at least root ::= "..."', 1, 1)
        return found

    def _end_of_rule(self, name: str) -> None:
        if self._at < len(self._text) and self._text[self._at] not in "\r\n":
            hint = "; a group is closed that was never opened" if self._text[self._at] == ")" else ""
            self._fail(f'unexpected {self._found()} in rule "{name}"{hint}')
        self._skip(_BLANK_LINES)

    def _alternatives(self, rule: str, depth: int) -> Expr:
        if depth > MAX_NESTING:
            self._fail(f"groups are nested deeper than {MAX_NESTING}; name the inner ones")
        parts = [self._sequence(rule, depth)]
        while (found := (_BLANK_LINES if depth else _CONTINUED).match(self._text, self._at)) is not None:
            if depth:
                self._at = found.end()
                if not self._text.startswith("|", self._at):
                    break
                self._at += 1
            else:
                self._at = found.end()
            self._skip(_BLANK_LINES)
            parts.append(self._sequence(rule, depth))
        return alt(parts)

    def _sequence(self, rule: str, depth: int) -> Expr:
        items: list[Expr] = []
        while (item := self._item(rule, depth)) is not None:
            self._skip(_BLANK_LINES if depth else _BLANK)
            while (counts := self._counts()) is not None:
                item = repeat(item, *counts)
                self._skip(_BLANK_LINES if depth else _BLANK)
            items.append(item)
        return cat(items)

    def _item(self, rule: str, depth: int) -> Expr | None:
        """What stands here, or ``None`` if the sequence is over."""
        begin, character = self._at, self._text[self._at : self._at + 1]
        if character == '"':
            text = self._literal()
            for marker in tokens.parts_of(text, self._markers)[1::2]:
                self.tokens.setdefault(marker, (tokens.token(marker), self._position(begin)))
            return tokens.spelled(text, self._markers)
        if character == "[":
            return self._class()
        if character == ".":
            self._at += 1
            return regex.from_class((), negated=True)
        if character == "(":
            self._at += 1
            self._skip(_BLANK_LINES)
            inner = self._alternatives(rule, depth + 1)
            if not self._text.startswith(")", self._at):
                self._fail(
                    f'expected ")" for the group opened on line {self._position(begin)[0]}, found {self._found()}'
                )
            self._at += 1
            return inner
        if character in "<!" and character:
            return self._token()
        if character in "*+?{" and character:
            self._fail(f"{self._found()} has nothing to repeat")
        if _NAME.match(self._text, self._at):
            name = self._name("a rule")
            self._used.setdefault(name, begin)
            return ("ref", name)
        return None

    def _counts(self) -> tuple[int, int | None] | None:
        character = self._text[self._at : self._at + 1]
        if character and character in "*+?":
            self._at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[character]
        if character != "{":
            return None
        found = _COUNTS.match(self._text, self._at)
        if found is None or not (found[1] or found[3]):
            self._fail("bad repetition; expected {m}, {m,}, {,n} or {m,n} with at most nine digits")
        low = int(found[1] or 0)
        high = low if not found[2] else int(found[3]) if found[3] else None
        if not low <= (low if high is None else high) <= MAX_COUNT or (not found[2] and found[3]):
            self._fail(f"bad repetition {found[0]}; expected {{m,n}} with m <= n <= {MAX_COUNT:,}")
        self._at = found.end()
        return low, high

    def _token(self) -> Expr:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            self._fail("a token is written <name> or <[id]>, and any other one !<name> or !<[id]>")
        _, _, ranges, names = tokens.parse(found[1])
        negated = found[0].startswith("!")
        names += (tokens.END_IDS,) * negated
        self.tokens.setdefault(found[0], (("tokens", negated, ranges, names), self._position(self._at)))
        self._at = found.end()
        return ("ref", found[0])

    # Characters

    def _literal(self) -> str:
        begin = self._at
        self._at += 1
        characters = []
        while not self._text.startswith('"', self._at):
            characters.append(self._character(begin, "string"))
        self._at += 1
        return "".join(characters)

    def _class(self) -> Expr:
        begin = self._at
        self._at += 1
        negated = self._text.startswith("^", self._at)
        self._at += negated
        ranges: list[tuple[int, int]] = []
        while not self._text.startswith("]", self._at):
            low = high = ord(self._character(begin, "character class"))
            if self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at):
                self._at += 1
                high = ord(self._character(begin, "character class"))
            if low > high:
                self._fail(
                    f"bad range in {self._text[begin : self._at]}]: its ends are in the wrong order", begin
                )
            ranges.append((low, high))
        self._at += 1
        if not ranges:
            self._fail(
                f'empty character class {self._text[begin : self._at]}; write "." for any character', begin
            )
        return regex.from_class(ranges, negated)

    def _character(self, begin: int, where: str) -> str:
        character = self._text[self._at : self._at + 1]
        if not character:
            self._fail(f"this {where} does not end", begin)
        self._at += 1
        if character != "\\":
            return self._no_surrogate(character, self._at - 1)
        kind = self._text[self._at : self._at + 1]
        if kind in _HEX:
            digits = self._text[self._at + 1 : self._at + 1 + _HEX[kind]]
            if not re.fullmatch(rf"[0-9A-Fa-f]{{{_HEX[kind]}}}", digits) or int(digits, 16) > 0x10FFFF:
                self._fail(f"bad escape \\{kind}{digits}: expected {_HEX[kind]} hex digits", self._at - 1)
            self._at += 1 + _HEX[kind]
            return self._no_surrogate(chr(int(digits, 16)), self._at - 2 - _HEX[kind])
        if kind not in _ESCAPES or not kind:
            known = ", ".join(f"\\{name}" for name in (*_ESCAPES, *_HEX))
            self._fail(f"unknown escape \\{kind}; there are {known}", self._at - 1)
        self._at += 1
        return _ESCAPES[kind]

    def _no_surrogate(self, character: str, at: int) -> str:
        if "\ud800" <= character <= "\udfff":
            self._fail("surrogate code point: write the character itself, or \\U with eight digits", at)
        return character

    # Places

    def _name(self, what: str) -> str:
        found = _NAME.match(self._text, self._at)
        if found is None:
            self._fail(f"expected {what}, found {self._found()}")
        self._at = found.end()
        return found[0]

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        assert found is not None
        self._at = found.end()

    def _found(self) -> str:
        if self._at >= len(self._text):
            return "the end of the text"
        character = self._text[self._at]
        return "the end of the line" if character in "\r\n" else f"`{character}`"

    def _position(self, at: int) -> Position:
        return self._text.count("\n", 0, at) + 1, at - self._text.rfind("\n", 0, at)

    def _fail(self, message: str, at: int | None = None) -> NoReturn:
        raise GrammarError(message, *self._position(self._at if at is None else at))
