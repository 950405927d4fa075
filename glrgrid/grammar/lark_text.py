"""The text of a Lark grammar to statements: syntax only, nothing is looked up.

``lark_meta.lark`` describes the format and ``lark`` parses with it; :class:`_Statements` builds the trees of
:mod:`glrgrid.grammar.ebnf` bottom-up during the parse, so that hostile nesting costs no recursion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NoReturn

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.lexer import PatternStr

from ..errors import GrammarError
from . import tokens
from .ebnf import (
    Alt,
    Alternative,
    And,
    Call,
    Embedded,
    Literal,
    Name,
    Node,
    Not,
    Range,
    Regex,
    Repeat,
    Seq,
    TokenSet,
    place_of,
)
from .ir import Position
from .lark_blocks import Block, take_out

__all__ = [
    "SHIPPED",
    "Attribute",
    "Change",
    "Declare",
    "Definition",
    "Directive",
    "Ignore",
    "Import",
    "Options",
    "fail",
    "is_terminal",
    "parse",
    "position_of",
]

MAX_COUNT = 1_000_000
"""Largest ``n`` in ``x~n``."""
MAX_PRIORITY = 2**31 - 1
"""Highest priority; the lowest is one beyond its negative."""
MAX_NESTING = 100
"""Deepest nesting of groups."""

SHIPPED = ("common", "lark", "python", "unicode")
"""Lark's own grammar files, the only ones that can be imported."""

_TOKEN_WORDS = {
    "HEAD": "a rule name",
    "RULE": "a rule name",
    "TERMINAL": "a terminal name",
    "STRING": "a string",
    "REGEXP": "a regular expression",
    "OPERATOR": "an operator (? * +)",
    "NUMBER": "a number",
    "PATH": "a grammar and a name (common.INT)",
    "DIRECTIVE": '"%glrgrid"',
    "EMPTY": "an empty string",
    "COUNTS": "counts ({2,4})",
    "TOKEN": "a token",
    "BLOCK": '"%json"',
    "OPTIONS": '"%llguidance"',
    "_COUNT": '"~" and a number',
    "_NOT": '"~"',
    "_NL": "the end of the line",
    "_OR": '"|"',
    "$END": "the end of the text",
}

_HINTS = (
    (r"\"'", "strings are written in double quotes"),
    (r"\"\\\"", "a string ends on its line"),
    (r'"/', 'a regular expression ends with "/"'),
    (r'"_?[A-Z]+[a-z]|"_?[a-z]+[A-Z]', "names of rules are lower case, those of terminals upper case"),
    (r'":*[=:]|"->', 'a definition is written as "name: ..."'),
    (r'";', "a definition ends with its line"),
)
"""What the beginning of an unexpected token suggests."""


def is_terminal(name: str) -> bool:
    """Whether a name is a terminal's, by its case."""
    return name.rpartition("__")[2].lstrip("_")[:1].isupper()  # "common__INT": part of an import


def position_of(token: Token) -> Position:
    """Where a token begins."""
    return (token.line or 1, token.column or 1)


def fail(message: str, position: Position) -> NoReturn:
    """Raise a :class:`~glrgrid.errors.GrammarError`."""
    raise GrammarError(message, *position)


@dataclass(frozen=True, slots=True)
class Attribute:
    """What stands in brackets after the name of a rule: ``lazy``, ``suffix="..."``."""

    name: str
    value: Node | Token | None
    position: Position


@dataclass(frozen=True, slots=True)
class Options:
    """``%llguidance``."""

    number: int
    position: Position


@dataclass(frozen=True, slots=True)
class Definition:
    """A rule, template or terminal."""

    name: str
    body: Alt
    position: Position
    params: tuple[str, ...] = ()
    priority: int | None = None
    attributes: tuple[Attribute, ...] = ()
    listed: bool = True
    """Stands in the text itself, or is imported by name; other definitions are parts of imported ones."""

    @property
    def is_terminal(self) -> bool:
        return is_terminal(self.name)

    @property
    def kind(self) -> str:
        return "terminal" if self.is_terminal else "rule"


@dataclass(frozen=True, slots=True)
class Import:
    """``%import``; ``names`` maps each name here to the name there."""

    module: str
    names: dict[str, str]
    position: Position


@dataclass(frozen=True, slots=True)
class Change:
    """``%override`` or ``%extend``."""

    verb: str
    definition: Definition


@dataclass(frozen=True, slots=True)
class Ignore:
    """``%ignore``."""

    body: Alt
    position: Position


@dataclass(frozen=True, slots=True)
class Declare:
    """``%declare``."""

    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Directive:
    """``%glrgrid``."""

    token: Token


class _Statements(Transformer[Token, Any]):
    """Builds trees bottom-up, while the text is being parsed."""

    def start(self, items: list[Any]) -> list[Any]:
        return items

    def rule(self, items: list[Any]) -> Definition:
        head, params, attributes, priority, body = items
        return Definition(
            head.lstrip("!?"), body, position_of(head), params or (), priority, tuple(attributes or ())
        )

    def terminal(self, items: list[Any]) -> Definition:
        head, priority, body = items
        return Definition(str(head), body, position_of(head), (), priority)

    def attributes(self, items: list[Attribute]) -> list[Attribute]:
        return items

    def attribute(self, items: list[Any]) -> Attribute:
        name, value = items
        return Attribute(str(name), value, position_of(name))

    def params(self, items: list[Token]) -> tuple[str, ...]:
        return tuple(map(str, items))

    def priority(self, items: list[Token]) -> int:
        token = items[0]
        if len(token) > 11 or not -MAX_PRIORITY - 1 <= int(token) <= MAX_PRIORITY:
            expected = f"expected {-MAX_PRIORITY - 1} to {MAX_PRIORITY}"
            fail(f"priority {token[:12]} is out of range; {expected}", position_of(token))
        return int(token)

    def override(self, items: list[Definition]) -> Change:
        return Change("override", items[0])

    def extend(self, items: list[Definition]) -> Change:
        return Change("extend", items[0])

    def ignore(self, items: list[Alt]) -> Ignore:
        return Ignore(items[0], items[0].items[0].position or (1, 1))

    def declare(self, items: list[Token]) -> Declare:
        return Declare(tuple(items))

    def import_one(self, items: list[Token]) -> Import:
        path, alias = items
        module, _, name = path.rpartition(".")
        return self._import(path, module, {str(alias or name): name})

    def import_many(self, items: list[Token]) -> Import:
        path, *names = items
        return self._import(path, str(path), {str(name): str(name) for name in names})

    def _import(self, path: Token, module: str, names: dict[str, str]) -> Import:
        if module not in SHIPPED:
            known = ", ".join(SHIPPED)
            fail(
                f'cannot import "{path}": only Lark\'s own grammars can be imported ({known})',
                position_of(path),
            )
        for alias, name in names.items():
            if is_terminal(name) != is_terminal(alias):
                fail(
                    f'cannot import "{name}" as "{alias}": one is a terminal, the other a rule',
                    position_of(path),
                )
        return Import(module, names, position_of(path))

    def directive(self, items: list[Token]) -> Directive:
        return Directive(items[0])

    def alternatives(self, items: list[Alternative]) -> Alt:
        return Alt(tuple(items))

    def options(self, items: list[Token]) -> Options:
        return Options(_mark(items[0])[1], position_of(items[0]))

    def alternative(self, items: list[Any]) -> Alternative:
        *sequences, alias = items
        body = sequences[0] if len(sequences) == 1 else Seq((And(tuple(sequences)),))
        position = position_of(alias) if alias else place_of(body)
        return Alternative(body, str(alias) if alias else None, position)

    def sequence(self, items: list[Node]) -> Seq:
        return Seq(tuple(items))

    def complement(self, items: list[Node]) -> Not:
        return Not(items[0])

    def token(self, items: list[Token]) -> TokenSet:
        text, position = str(items[0]), position_of(items[0])
        if text.startswith("@"):
            fail(f"{text}: other grammars (@name) are not supported; write the grammar itself", position)
        try:
            return TokenSet(tokens.parse(text), text, position)
        except ValueError as error:
            fail(f"{text}: {error}", position)

    def block(self, items: list[Token]) -> Embedded:
        return Embedded(*_mark(items[0]), position_of(items[0]))

    def repeat(self, items: list[Any]) -> Node:
        item, operator = items
        low, high = {"?": (0, 1), "*": (0, None), "+": (1, None)}[operator]
        return _repeat(item, low, high)

    def counted(self, items: list[Any]) -> Node:
        item, low, high = items
        counts = (_number(low), _number(high if high is not None else low))
        if not 0 <= counts[0] <= counts[1] <= MAX_COUNT:
            expected = f"expected 0 <= low <= high <= {MAX_COUNT:,}"
            fail(f"bad repetition ~{counts[0]}..{counts[1]}: {expected}", position_of(low))
        return Repeat(item, *counts)

    def braced(self, items: list[Any]) -> Node:
        item, token = items
        low, comma, high = (part.strip() for part in token[1:-1].partition(","))
        counts = (_count(low, token) if low else 0, _count(high, token) if high else None)
        if not comma:
            counts = (counts[0], counts[0])
        if counts[1] is not None and counts[0] > counts[1]:
            fail(f"bad repetition {token}: expected low <= high", position_of(token))
        return _repeat(item, *counts) if counts in ((0, 1), (0, None), (1, None)) else Repeat(item, *counts)

    def maybe(self, items: list[Node]) -> Node:
        return _repeat(items[0], 0, 1)

    def symbol(self, items: list[Token]) -> Name:
        return Name(str(items[0]), position_of(items[0]))

    def literal(self, items: list[Token]) -> Literal:
        token = items[0]
        body, _, flags = token[1:].rpartition('"')
        text = _unescape(token, body, "\\")
        if not text:
            fail('empty string: write an empty alternative, or "[...]"', position_of(token))
        return Literal(text, flags == "i", position_of(token))

    def regex(self, items: list[Token]) -> Regex:
        token = items[0]
        body, _, flags = token[1:].rpartition("/")
        if "\n" in body and "x" not in flags:
            fail(
                "a regular expression goes on over the end of its line, which takes flag x",
                position_of(token),
            )
        return Regex(_unescape(token, body, "\\\\"), "".join(sorted(set(flags))), position_of(token))

    def range(self, items: list[Token]) -> Range:
        low, high = (_unescape(token, token[1:].rpartition('"')[0], "\\") for token in items)
        if len(low) != 1 or len(high) != 1 or low > high:
            fail(f"bad range {items[0]}..{items[1]}: expected two characters in order", position_of(items[0]))
        return Range(low, high, position_of(items[0]))

    def call(self, items: list[Any]) -> Call:
        name, *args = items
        return Call(str(name), tuple(args), position_of(name))


def _mark(token: Token) -> tuple[str, int]:
    """Kind and number of a block that was taken out."""
    kind, number = token[1:-1].split("<")
    return kind, int(number)


def _count(digits: str, token: Token) -> int:
    if len(digits) > 10 or int(digits) > MAX_COUNT:
        fail(f"bad repetition {token[:40]}: expected at most {MAX_COUNT:,}", position_of(token))
    return int(digits)


def _number(token: Token) -> int:
    if len(token) > 10:
        fail(f"number {token[:10]}... is too large", position_of(token))
    return int(token)


def _repeat(item: Node, low: int, high: int | None) -> Node:
    """``item?``, ``item*`` or ``item+``; of one of those, the one repetition that says the same."""
    while isinstance(item, Alt) and len(item.items) == 1 and len(item.items[0].body.items) == 1:
        if item.items[0].alias is not None:
            break
        item = item.items[0].body.items[0]
    if isinstance(item, Repeat) and (item.low, item.high) in ((0, 1), (0, None), (1, None)):
        return Repeat(item.item, low * item.low, 1 if high == item.high == 1 else None)
    if isinstance(item, Repeat) and item.low == 0 and (low, high) == (0, 1):
        return item
    return Repeat(item, low, high)


def _unescape(token: Token, body: str, backslash: str) -> str:
    """Resolve Lark's escapes; ``backslash`` is what an escaped backslash stands for, other escapes stay."""
    text, i = [], 0
    while i < len(body):
        if body[i] != "\\":
            text.append(body[i])
            i += 1
            continue
        kind = body[i + 1]
        i += 2
        if kind in "nrtf":
            text.append({"n": "\n", "r": "\r", "t": "\t", "f": "\f"}[kind])
        elif kind in "xuU":
            length = {"x": 2, "u": 4, "U": 8}[kind]
            digits = body[i : i + length]
            if not re.fullmatch(rf"[0-9A-Fa-f]{{{length}}}", digits) or int(digits, 16) > 0x10FFFF:
                fail(
                    f"bad escape \\{kind}{digits} in {token}: expected {length} hex digits",
                    position_of(token),
                )
            text.append(chr(int(digits, 16)))
            i += length
        else:
            text.append({"\\": backslash, '"': '"'}.get(kind, "\\" + kind))
    joined = "".join(text)
    if any("\ud800" <= c <= "\udfff" for c in joined):
        fail(
            f"surrogate code point in {token}: write the character itself, or \\U with eight digits",
            position_of(token),
        )
    return joined


@cache
def _parser() -> Lark:
    meta = (resources.files(__package__) / "lark_meta.lark").read_text("utf-8")
    return Lark(meta, parser="lalr", transformer=_Statements())


def parse(text: str) -> tuple[list[Any], list[Block]]:
    """Statements of a grammar text, in order: definitions, changes, imports, and so on; and its blocks."""
    text, blocks = take_out(text)
    try:
        statements: Any = _parser().parse(text + "\n")
    except UnexpectedInput as error:
        raise _syntax_error(error, text) from None
    _check_nesting(statements)
    return list(statements), blocks


def _syntax_error(error: UnexpectedInput, text: str) -> GrammarError:
    if isinstance(error, UnexpectedToken):
        found = "end of line" if error.token.type == "_NL" else json.dumps(str(error.token)[:40])
        found = "end of text" if error.token.type == "$END" else found
        expected = error.accepts or error.expected
    else:
        assert isinstance(error, UnexpectedCharacters)
        found, expected = json.dumps(error.char, ensure_ascii=False), error.allowed
    words = sorted(set(map(_token_words, expected or ())))
    before, hint = "", ""
    if error.line > 0:
        written = (text + "\n").splitlines()[error.line - 1][: error.column - 1]
        before = f" after `{written.strip()[-40:]}`" if written.strip() else ""
        hint = next((f"; {advice}" for pattern, advice in _HINTS if re.match(pattern, found)), "")
    if ":" not in text:
        hint = "; pass the text of a grammar, not its name"
    message = f"unexpected {found}{before}; expected {', '.join(words)}{hint}"
    return GrammarError(message, error.line, error.column)


def _token_words(name: str) -> str:
    """What a token of the meta-grammar is called in messages."""
    if name in _TOKEN_WORDS:
        return _TOKEN_WORDS[name]
    pattern = _parser().get_terminal(name).pattern
    return json.dumps(pattern.value) if isinstance(pattern, PatternStr) else name


def _check_nesting(statements: Iterable[Any]) -> None:
    for statement in statements:
        holder = statement.definition if isinstance(statement, Change) else statement
        work: list[tuple[Node, int]] = [(holder.body, 0)] if isinstance(holder, (Definition, Ignore)) else []
        while work:
            node, level = work.pop()
            if level > MAX_NESTING:
                fail(f"groups are nested deeper than {MAX_NESTING}; name the inner ones", holder.position)
            if isinstance(node, Alt):
                work.extend(
                    (item, level + 1) for alternative in node.items for item in alternative.body.items
                )
            elif isinstance(node, (Repeat, Not)):
                work.append((node.item, level + 1))
            elif isinstance(node, And):
                work.extend((item, level + 1) for sequence in node.items for item in sequence.items)
            elif isinstance(node, Call):
                work.extend((argument, level + 1) for argument in node.args)
