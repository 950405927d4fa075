"""Grammar text in Lark's format to :class:`~glrgrid.grammar.ir.GrammarIR`.

Three steps: ``lark_meta.lark`` describes the text format, and ``lark`` parses with it (:class:`_Statements`); imports,
overrides and extensions are settled into one table of definitions (:func:`_collect`); the table is lowered
(:class:`_Compiler`). Lark's own grammar compiler takes no part.

Where the meaning differs from Lark's, it is on purpose: the longest match wins over all terminals (Lark takes the first
alternative of a sorted pattern), every terminal that the text defines takes part in it whether or not a rule uses it,
priorities of rules have no effect, and ``"select"i`` folds ASCII letters only.
"""

from __future__ import annotations

import difflib
import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any, NoReturn

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from ..errors import GrammarError
from . import regex
from .ebnf import (
    Alt,
    Alternative,
    Call,
    Leaf,
    Literal,
    Lowering,
    Name,
    Node,
    Range,
    Regex,
    Repeat,
    Seq,
    find_useless,
    map_leaves,
)
from .ir import Expr, GrammarIR, Position, Terminal

__all__ = ["read"]

MAX_COUNT = 1_000_000
"""Largest ``n`` in ``x~n``."""
MAX_NESTING = 100
"""Deepest nesting of groups."""
MAX_EXPR_DEPTH = 60
"""Deepest terminal expression; its JSON has up to two levels for each, and JSON readers stop at 128."""
MAX_EXPR_NODES = 100_000
"""Largest terminal expression."""
MAX_INSTANCES = 10_000
"""Most template instances."""

_SHIPPED = ("common", "lark", "python", "unicode")
_EXACT = {
    ("common", "ESCAPED_STRING"): r'"([^"\\\n]|\\[^\n])*"',
    ("common", "C_COMMENT"): r"/\*([^*]|\*+[^*/])*\*+/",
    ("python", "LONG_STRING"): (
        r"([ubUB]?[rR]?|[rR][ubUB])"
        r'("""("?"?([^"\\]|\\[\s\S]))*"""' + r"|'''('?'?([^'\\]|\\[\s\S]))*''')"
    ),
}
"""Terminals of the shipped files that use lazy quantifiers or look-behinds, as plain regular expressions: the texts that the
original matches and stops at. (python.STRING and python.DEC_NUMBER look beyond their end; they have none.)"""

_LITERAL_NAMES = {
    **{"\n": "NEWLINE", "\r\n": "CRLF", "\t": "TAB", " ": "SPACE", "!": "BANG", '"': "DBLQUOTE", "#": "HASH"},
    **{"$": "DOLLAR", "%": "PERCENT", "&": "AMPERSAND", "'": "QUOTE", "(": "LPAR", ")": "RPAR", "*": "STAR"},
    **{"+": "PLUS", ",": "COMMA", "-": "MINUS", ".": "DOT", "/": "SLASH", ":": "COLON", ";": "SEMICOLON"},
    **{"<": "LESSTHAN", "=": "EQUAL", ">": "MORETHAN", "?": "QMARK", "@": "AT", "[": "LSQB", "\\": "BACKSLASH"},
    **{"]": "RSQB", "^": "CIRCUMFLEX", "_": "UNDERSCORE", "`": "BACKQUOTE", "{": "LBRACE", "|": "VBAR"},
    **{"}": "RBRACE", "~": "TILDE"},
}
"""The names that Lark gives to literals of punctuation."""

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
    "_NL": "the end of the line",
    "_OR": '"|"',
    "__ANON_0": '"->"',
    "__ANON_1": '".."',
    "COLON": '":"',
    "COMMA": '","',
    "DOT": '"."',
    "LBRACE": '"{"',
    "LPAR": '"("',
    "LSQB": '"["',
    "RBRACE": '"}"',
    "RPAR": '")"',
    "RSQB": '"]"',
    "TILDE": '"~"',
    "$END": "the end of the text",
}


@dataclass(frozen=True, slots=True)
class Definition:
    """A rule, template or terminal."""

    name: str
    body: Alt
    position: Position
    params: tuple[str, ...] = ()
    priority: int | None = None
    listed: bool = True
    """Stands in the text itself, or is imported by name; other definitions are parts of imported ones."""

    @property
    def is_terminal(self) -> bool:
        return _is_terminal(self.name)

    @property
    def kind(self) -> str:
        return "terminal" if self.is_terminal else "rule"


@dataclass(frozen=True, slots=True)
class _Import:
    module: str
    names: dict[str, str]
    position: Position


@dataclass(frozen=True, slots=True)
class _Change:
    verb: str
    definition: Definition


@dataclass(frozen=True, slots=True)
class _Ignore:
    body: Alt
    position: Position


@dataclass(frozen=True, slots=True)
class _Declare:
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class _Directive:
    token: Token


@dataclass(slots=True)
class _Module:
    """Everything that one grammar text says."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    ignored: list[_Ignore] = field(default_factory=list)
    settings: dict[str, tuple[Any, Token]] = field(default_factory=dict)


def read(text: str, start: str = "start", lexer: str | None = None) -> GrammarIR:
    """Read a grammar in Lark's text format.

    Parameters
    ----------
    text : str
        The grammar.
    start : str
        Start rule. Left at its default, it yields to the ``%glrgrid`` directive.
    lexer : {"basic", "contextual"}, optional
        Wins over the directive; the default is ``"contextual"``.

    Returns
    -------
    GrammarIR
        With the warnings that building it raised.

    Raises
    ------
    GrammarError
        The text is malformed, or uses what is not supported.
    """
    try:
        return _Compiler(_collect(_parse(text), "the grammar")).compile(start, lexer)
    except RecursionError:
        raise GrammarError("the grammar is nested too deeply; name the inner groups as rules or terminals") from None


# --- text to statements -----------------------------------------------------------------------------------------------


def _is_terminal(name: str) -> bool:
    return name.rpartition("__")[2].lstrip("_")[:1].isupper()  # "common__INT": part of an import


def _at(token: Token) -> Position:
    return (token.line or 1, token.column or 1)


def _fail(message: str, position: Position) -> NoReturn:
    raise GrammarError(message, *position)


class _Statements(Transformer[Token, Any]):
    """Builds trees bottom-up, while the text is being parsed."""

    def start(self, items: list[Any]) -> list[Any]:
        return items

    def rule(self, items: list[Any]) -> Definition:
        head, params, priority, body = items
        return Definition(_public_name(head), body, _at(head), params or (), priority)

    def terminal(self, items: list[Any]) -> Definition:
        head, priority, body = items
        return Definition(_public_name(head), body, _at(head), (), priority)

    def params(self, items: list[Token]) -> tuple[str, ...]:
        return tuple(map(str, items))

    def priority(self, items: list[Token]) -> int:
        return _number(items[0])

    def override(self, items: list[Definition]) -> _Change:
        return _Change("override", items[0])

    def extend(self, items: list[Definition]) -> _Change:
        return _Change("extend", items[0])

    def ignore(self, items: list[Alt]) -> _Ignore:
        return _Ignore(items[0], items[0].items[0].position or (1, 1))

    def declare(self, items: list[Token]) -> _Declare:
        return _Declare(tuple(items))

    def import_one(self, items: list[Token]) -> _Import:
        path, alias = items
        module, _, name = path.rpartition(".")
        return self._import(path, module, {name: str(alias or name)})

    def import_many(self, items: list[Token]) -> _Import:
        path, *names = items
        return self._import(path, str(path), {str(name): str(name) for name in names})

    def _import(self, path: Token, module: str, names: dict[str, str]) -> _Import:
        if module not in _SHIPPED:
            known = ", ".join(_SHIPPED)
            _fail(f'cannot import "{path}": only Lark\'s own grammars can be imported ({known})', _at(path))
        for name, alias in names.items():
            if _is_terminal(name) != _is_terminal(alias):
                _fail(f'cannot import "{name}" as "{alias}": one is a terminal, the other a rule', _at(path))
        return _Import(module, names, _at(path))

    def directive(self, items: list[Token]) -> _Directive:
        return _Directive(items[0])

    def alternatives(self, items: list[Alternative]) -> Alt:
        return Alt(tuple(items))

    def alternative(self, items: list[Any]) -> Alternative:
        *body, alias = items
        position = _at(alias) if alias else next(map(_position, body), None)
        return Alternative(Seq(tuple(body)), str(alias) if alias else None, position)

    def repeat(self, items: list[Any]) -> Node:
        item, operator = items
        low, high = {"?": (0, 1), "*": (0, None), "+": (1, None)}[operator]
        return _repeat(item, low, high)

    def counted(self, items: list[Any]) -> Node:
        item, low, high = items
        counts = (_number(low), _number(high if high is not None else low))
        if not 0 <= counts[0] <= counts[1] <= MAX_COUNT:
            expected = f"expected 0 <= low <= high <= {MAX_COUNT:,}"
            _fail(f"bad repetition ~{counts[0]}..{counts[1]}: {expected}", _at(low))
        return Repeat(item, *counts)

    def maybe(self, items: list[Node]) -> Node:
        return _repeat(items[0], 0, 1)

    def symbol(self, items: list[Token]) -> Name:
        return Name(str(items[0]), _at(items[0]))

    def literal(self, items: list[Token]) -> Literal:
        token = items[0]
        body, _, flags = token[1:].rpartition('"')
        text = _unescape(token, body, "\\")
        if not text:
            _fail('empty string: write an empty alternative, or "[...]"', _at(token))
        return Literal(text, flags == "i", _at(token))

    def regex(self, items: list[Token]) -> Regex:
        token = items[0]
        body, _, flags = token[1:].rpartition("/")
        if "\n" in body and "x" not in flags:
            _fail("a regular expression goes on over the end of its line, which takes flag x", _at(token))
        return Regex(_unescape(token, body, "\\\\"), "".join(sorted(set(flags))), _at(token))

    def range(self, items: list[Token]) -> Range:
        low, high = (_unescape(token, token[1:].rpartition('"')[0], "\\") for token in items)
        if len(low) != 1 or len(high) != 1 or low > high:
            _fail(f"bad range {items[0]}..{items[1]}: expected two characters in order", _at(items[0]))
        return Range(low, high, _at(items[0]))

    def call(self, items: list[Any]) -> Call:
        name, *args = items
        return Call(str(name), tuple(args), _at(name))


def _number(token: Token) -> int:
    if len(token) > 10:
        _fail(f"number {token[:10]}... is too large", _at(token))
    return int(token)


def _public_name(token: Token) -> str:
    name = token.lstrip("!?")
    if name.startswith("__"):
        _fail(f'name "{name}" is reserved: it begins with two underscores', _at(token))
    return name


def _repeat(item: Node, low: int, high: int | None) -> Node:
    """``item?``, ``item*`` or ``item+``; of one of those, the one repetition that says the same."""
    while isinstance(item, Alt) and len(item.items) == 1 and len(item.items[0].body.items) == 1:
        if item.items[0].alias is not None:
            break
        item = item.items[0].body.items[0]
    if isinstance(item, Repeat) and (item.low, item.high) in ((0, 1), (0, None), (1, None)):
        return Repeat(item.item, low * item.low, 1 if high == item.high == 1 else None)
    return Repeat(item, low, high)


def _position(node: Node) -> Position | None:
    """Where a tree begins, as far as it is known."""
    if isinstance(node, Repeat):
        return _position(node.item)
    if isinstance(node, Alt):
        return node.items[0].position
    if isinstance(node, Seq):
        return _position(node.items[0]) if node.items else None
    return node.position


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
            digits = body[i : i + {"x": 2, "u": 4, "U": 8}[kind]]
            try:
                text.append(chr(int(digits, 16)) if digits.isalnum() else chr(-1))
            except ValueError:
                _fail(f"bad escape \\{kind}{digits} in {token}", _at(token))
            i += {"x": 2, "u": 4, "U": 8}[kind]
        else:
            text.append({"\\": backslash, '"': '"'}.get(kind, "\\" + kind))
    joined = "".join(text)
    if any("\ud800" <= c <= "\udfff" for c in joined):
        _fail(f"surrogate code point in {token}: write the character itself, or \\U with eight digits", _at(token))
    return joined


@cache
def _parser() -> Lark:
    meta = (resources.files(__package__) / "lark_meta.lark").read_text("utf-8")
    return Lark(meta, parser="lalr", transformer=_Statements())


def _parse(text: str) -> list[Any]:
    try:
        statements: Any = _parser().parse(text + "\n")
    except UnexpectedInput as error:
        raise _syntax_error(error) from None
    _check_nesting(statements)
    return list(statements)


def _syntax_error(error: UnexpectedInput) -> GrammarError:
    if isinstance(error, UnexpectedToken):
        found = "end of line" if error.token.type == "_NL" else json.dumps(str(error.token)[:40])
        found = "end of text" if error.token.type == "$END" else found
        expected = error.accepts or error.expected
    else:
        assert isinstance(error, UnexpectedCharacters)
        found, expected = json.dumps(error.char, ensure_ascii=False), error.allowed
    words = sorted({_TOKEN_WORDS.get(name, f'"%{name.lower()}"') for name in expected or ()})
    return GrammarError(f"unexpected {found}; expected {', '.join(words)}", error.line, error.column)


def _check_nesting(statements: Iterable[Any]) -> None:
    for statement in statements:
        holder = statement.definition if isinstance(statement, _Change) else statement
        work = [(holder.body, 0)] if isinstance(holder, (Definition, _Ignore)) else []
        while work:
            node, level = work.pop()
            if level > MAX_NESTING:
                _fail(f"groups are nested deeper than {MAX_NESTING}; name the inner ones", holder.position)
            if isinstance(node, Alt):
                work.extend((item, level + 1) for alternative in node.items for item in alternative.body.items)
            elif isinstance(node, Repeat):
                work.append((node.item, level + 1))
            elif isinstance(node, Call):
                work.extend((argument, level + 1) for argument in node.args)


# --- statements to definitions ----------------------------------------------------------------------------------------


def _collect(statements: list[Any], title: str) -> _Module:
    """Settle imports, then definitions, overrides and extensions in order."""
    module = _Module()
    wanted: dict[str, _Import] = {}
    for item in statements:
        if isinstance(item, _Import):
            earlier = wanted.get(item.module, item)
            wanted[item.module] = replace(earlier, names={**earlier.names, **item.names})
    for item in wanted.values():
        for definition in _imported(item):
            _define(module, definition)
    for item in statements:
        if isinstance(item, Definition):
            _define(module, item)
        elif isinstance(item, _Change):
            _change(module, item)
        elif isinstance(item, _Ignore):
            module.ignored.append(item)
        elif isinstance(item, _Declare) and title == "the grammar":
            token = item.tokens[0]
            _fail(f'%declare {token}: a symbol without a definition cannot be matched; define "{token}"', _at(token))
        elif isinstance(item, _Directive):
            _read_directive(module, item.token)
    return module


def _define(module: _Module, definition: Definition) -> None:
    name, earlier = definition.name, module.definitions.get(definition.name)
    if earlier is not None:
        where = f"first on line {earlier.position[0]}"
        hint = "use %override or %extend to change an imported one"
        _fail(f'{definition.kind} "{name}" is defined more than once, {where}; {hint}', definition.position)
    if len(set(definition.params)) != len(definition.params):
        _fail(f'template "{name}" has two parameters of one name', definition.position)
    module.definitions[name] = definition


def _change(module: _Module, change: _Change) -> None:
    new = change.definition
    old = module.definitions.get(new.name)
    if old is None:
        hint = _closest(new.name, module.definitions)
        _fail(f'%{change.verb} of {new.kind} "{new.name}", which is not defined or imported above{hint}', new.position)
    if change.verb == "extend":
        if old.params != new.params:
            _fail(f'%extend of "{new.name}" has other parameters than its definition', new.position)
        new = replace(new, body=Alt(old.body.items + new.body.items), priority=old.priority)
    module.definitions[new.name] = new


@cache
def _shipped(module: str) -> dict[str, Definition]:
    """Definitions of a grammar file inside the installed lark package."""
    text = (resources.files("lark.grammars") / f"{module}.lark").read_text("utf-8")
    definitions = _collect(_parse(text), module).definitions
    for name, definition in definitions.items():
        if (module, name) in _EXACT:
            leaf = Regex(_EXACT[module, name], "", definition.position)
            definitions[name] = replace(definition, body=Alt((Alternative(Seq((leaf,))),)))
    return definitions


def _imported(item: _Import) -> Iterator[Definition]:
    """The imported definitions and all they need, renamed, placed at the import statement."""
    source = _shipped(item.module)
    for name in item.names:
        if name not in source:
            hint = _closest(name, source)
            _fail(f'grammar "{item.module}" has no {"terminal" if _is_terminal(name) else "rule"} "{name}"{hint}', item.position)
    renamed = dict(item.names)

    def rename(leaf: Leaf) -> Leaf:
        if isinstance(leaf, Name):
            return Name(renamed.get(leaf.name, leaf.name), item.position)
        if isinstance(leaf, Call):
            return Call(renamed.get(leaf.name, leaf.name), tuple(map(rename, leaf.args)), item.position)
        return replace(leaf, position=item.position)

    work = list(renamed)
    while work:
        definition = source[work.pop()]
        for needed in _names(definition.body):
            if needed in source and needed not in definition.params and needed not in renamed:
                underscore = "_" if needed.startswith("_") else ""
                renamed[needed] = f"{underscore}{item.module}__{needed.removeprefix('_')}"
                work.append(needed)
    for name, alias in renamed.items():
        definition = source[name]
        # Parameters are local to the template; none shares a name with a definition that it uses.
        body = map_leaves(definition.body, rename)
        assert isinstance(body, Alt)
        yield replace(definition, name=alias, body=body, position=item.position, listed=name in item.names)


def _names(node: Node) -> Iterator[str]:
    """Names that a tree refers to."""
    if isinstance(node, Name):
        yield node.name
    elif isinstance(node, Call):
        yield node.name
        for argument in node.args:
            yield from _names(argument)
    elif isinstance(node, Repeat):
        yield from _names(node.item)
    elif isinstance(node, (Seq, Alt)):
        for item in node.items:
            yield from _names(item.body if isinstance(item, Alternative) else item)


def _read_directive(module: _Module, token: Token) -> None:
    """Read ``%glrgrid {...}``: what Lark's format has no words for."""
    line, column = _at(token)
    body = token.removeprefix("%glrgrid")
    try:
        values = json.loads(body)
    except json.JSONDecodeError as error:
        column += len(token) - len(body) + error.pos
        _fail(f"%glrgrid: bad JSON: {error.msg}", (line, column))
    if not isinstance(values, dict):
        _fail('%glrgrid: expected a JSON object, as in %glrgrid {"lexer": "basic"}', (line, column))
    for key, value in values.items():
        check = _SETTINGS.get(key)
        if check is None:
            hint = _closest(key, _SETTINGS)
            _fail(f'%glrgrid: unknown key "{key}"{hint}; known: {", ".join(_SETTINGS)}', _inside(token, key))
        if key in module.settings:
            _fail(f'%glrgrid: key "{key}" is given twice', _inside(token, key))
        if not check[0](value):
            _fail(f'%glrgrid: "{key}" must be {check[1]}, found {json.dumps(value)[:60]}', _inside(token, key))
        module.settings[key] = (value, token)


def _is_list_of_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


_SETTINGS = {
    "lexer": (lambda v: v in ("basic", "contextual"), '"basic" or "contextual"'),
    "start": (lambda v: isinstance(v, str), "the name of a rule"),
    "fallback": (
        lambda v: isinstance(v, dict) and all(map(_is_list_of_names, v.values())),
        'an object of terminal names, as in {"ID": ["KEY", "INDEX"]}',
    ),
    "reject": (_is_list_of_names, "a list of terminal names"),
}


def _inside(token: Token, name: str) -> Position:
    """Where a directive mentions a name."""
    line, column = _at(token)
    return (line, column + max(token.find(json.dumps(name)), 0))


def _closest(name: str, known: Iterable[str]) -> str:
    matches = difflib.get_close_matches(name, list(known), 1)
    return f'; closest name: "{matches[0]}"' if matches else ""


# --- definitions to the IR --------------------------------------------------------------------------------------------


class _Compiler:
    """Lowers one table of definitions."""

    def __init__(self, module: _Module) -> None:
        self._module = module
        self._definitions = module.definitions
        self._terminals: list[Terminal] = []
        self._terminal_ids: dict[str, int] = {}
        self._by_leaf: dict[Leaf, str] = {}
        self._exprs: dict[str, Expr] = {}
        self._open: list[str] = []
        self._lowering = Lowering(self._symbol)
        self._rule_ids: dict[str, int] = {}
        self._instances: dict[tuple[str, tuple[int, ...]], int] = {}
        self._pending: deque[tuple[int, Definition, dict[str, int]]] = deque()
        self._bound: dict[str, int] = {}
        self._rule = ""
        self._anonymous = 0

    def compile(self, start: str, lexer: str | None) -> GrammarIR:
        settings = self._module.settings
        if start == "start" and "start" in settings:
            start = settings["start"][0]
        if lexer is None:
            lexer = settings["lexer"][0] if "lexer" in settings else "contextual"
        elif lexer not in ("basic", "contextual"):
            raise GrammarError(f'unknown lexer "{lexer}"; expected "basic" or "contextual"')
        self._add_named_terminals()
        self._add_rules()
        self._add_ignored()
        self._apply_reject()
        self._apply_fallback()
        start_id = self._start(start)
        return GrammarIR(
            start=start_id,
            terminals=tuple(self._terminals),
            nonterminals=tuple(self._lowering.nonterminals),
            productions=self._lowering.productions,
            lexer=lexer,
            warnings=tuple(self._warnings(start_id)),
        )

    # Terminals

    def _add_named_terminals(self) -> None:
        for definition in self._definitions.values():
            if definition.is_terminal:
                if definition.listed:
                    self._terminal(definition.name, definition.position)
                if (leaf := self._single_leaf(definition)) is not None:
                    self._by_leaf[leaf] = definition.name

    def _single_leaf(self, definition: Definition) -> Leaf | None:
        """The literal, pattern or range that is the whole definition, if it is one."""
        seen = set()
        node: Node = definition.body
        while True:
            if isinstance(node, Alt) and len(node.items) == 1:
                node = node.items[0].body
            elif isinstance(node, Seq) and len(node.items) == 1:
                node = node.items[0]
            elif isinstance(node, Name) and node.name in self._definitions and node.name not in seen:
                seen.add(node.name)
                node = self._definitions[node.name].body
            else:
                return node if isinstance(node, (Literal, Regex, Range)) else None

    def _terminal(self, name: str, position: Position) -> int:
        """Index of a named terminal, which takes part from now on."""
        if name not in self._terminal_ids:
            definition = self._definitions.get(name)
            if definition is None:
                self._undefined(name, position)
            leaf = self._single_leaf(definition)
            expr = self._named_expr(name, position)
            self._add(name, expr, definition.position, definition.priority or 0, isinstance(leaf, Literal))
        return self._terminal_ids[name]

    def _add(self, name: str, expr: Expr, position: Position, priority: int, literal: bool) -> int:
        if regex.is_nullable(expr):
            _fail(f'terminal "{name}" can match the empty string; make it match at least one character', position)
        self._terminal_ids[name] = len(self._terminals)
        self._terminals.append(Terminal(name, expr, priority, literal, position=position))
        return self._terminal_ids[name]

    def _named_expr(self, name: str, position: Position) -> Expr:
        if name in self._exprs:
            return self._exprs[name]
        if name in self._open:
            chain = " -> ".join([*self._open[self._open.index(name) :], name])
            _fail(f'terminal "{name}" refers to itself ({chain}); only rules can be recursive', position)
        definition = self._definitions.get(name)
        if definition is None:
            self._undefined(name, position)
        if not definition.is_terminal:
            _fail(f'terminal "{self._open[-1]}" uses rule "{name}"; make it a rule, or "{name}" a terminal', position)
        self._open.append(name)
        expr = self._expr(definition.body)
        depth, nodes = regex.measure(expr)
        if depth > MAX_EXPR_DEPTH or nodes > MAX_EXPR_NODES:
            limit = f"{MAX_EXPR_DEPTH} levels and {MAX_EXPR_NODES:,} parts"
            _fail(f'terminal "{name}" is too large once written out; the limit is {limit}', definition.position)
        self._open.pop()
        self._exprs[name] = expr
        return expr

    def _expr(self, node: Node) -> Expr:
        if isinstance(node, Name):
            return self._named_expr(node.name, node.position)
        if isinstance(node, Literal):
            return regex.from_literal(node.text, node.fold)
        if isinstance(node, Regex):
            return regex.from_pattern(node.pattern, node.flags, node.position)
        if isinstance(node, Range):
            return regex.from_range(node.low, node.high)
        if isinstance(node, Repeat):
            return ("repeat", self._expr(node.item), node.low, node.high)
        if isinstance(node, Seq):
            parts = tuple(map(self._expr, node.items))
            return parts[0] if len(parts) == 1 else ("cat", parts)
        if isinstance(node, Alt):
            for alternative in node.items:
                if alternative.alias is not None:
                    message = f'terminal "{self._open[-1]}" has alias "{alternative.alias}"; only rules can have one'
                    _fail(message, alternative.position or (1, 1))
            parts = tuple(self._expr(alternative.body) for alternative in node.items)
            return parts[0] if len(parts) == 1 else ("alt", parts)
        _fail(f'terminal "{self._open[-1]}" uses template "{node.name}"; only rules can', node.position)

    def _anonymous_terminal(self, leaf: Leaf) -> int:
        name = self._by_leaf.get(leaf)
        if name is None:
            name = self._by_leaf[leaf] = self._literal_name(leaf)
            self._open.append(name)
            self._add(name, self._expr(leaf), leaf.position, 0, isinstance(leaf, Literal))
            self._open.pop()
        return self._terminal(name, leaf.position)

    def _literal_name(self, leaf: Leaf) -> str:
        """The name that Lark gives to an anonymous terminal."""
        if isinstance(leaf, Literal):
            name = _LITERAL_NAMES.get(leaf.text) or (leaf.text.upper() if leaf.text.isidentifier() else "")
            if name and name not in self._definitions and name not in self._terminal_ids:
                return name
        self._anonymous += 1
        return f"__ANON_{self._anonymous - 1}"

    # Rules

    def _add_rules(self) -> None:
        rules = [d for d in self._definitions.values() if not d.is_terminal and not d.params]
        for definition in rules:
            self._rule_ids[definition.name] = self._lowering.declare(definition.name, definition.position)
            self._pending.append((self._rule_ids[definition.name], definition, {}))
        while self._pending:
            lhs, definition, self._bound = self._pending.popleft()
            self._rule = definition.name
            self._lowering.add_rule(lhs, definition.name, definition.body)

    def _symbol(self, leaf: Leaf) -> int:
        if isinstance(leaf, Call):
            return ~self._instance(leaf)
        if not isinstance(leaf, Name):
            return self._anonymous_terminal(leaf)
        if leaf.name in self._bound:
            return self._bound[leaf.name]
        if leaf.name in self._rule_ids:
            return ~self._rule_ids[leaf.name]
        definition = self._definitions.get(leaf.name)
        if definition is None:
            self._undefined(leaf.name, leaf.position)
        if definition.params:
            usage = f'{leaf.name}{{{", ".join(definition.params)}}}'
            _fail(f'rule "{self._rule}" uses template "{leaf.name}" without arguments: {usage}', leaf.position)
        return self._terminal(leaf.name, leaf.position)

    def _instance(self, call: Call) -> int:
        """The nonterminal of a template with these argument symbols."""
        definition = self._definitions.get(call.name)
        if definition is None or call.name in self._bound:
            self._undefined(call.name, call.position)
        if len(definition.params) != len(call.args):
            counts = f"takes {len(definition.params)} arguments, found {len(call.args)}"
            _fail(f'rule "{self._rule}" uses template "{call.name}", which {counts}', call.position)
        args = tuple(map(self._symbol, call.args))
        if (call.name, args) not in self._instances:
            if len(self._instances) >= MAX_INSTANCES:
                _fail(f'template "{call.name}" has more than {MAX_INSTANCES:,} instances; is it endless?', call.position)
            name = f"{call.name}{{{','.join(map(self._symbol_name, args))}}}"
            if len(name) > 80:
                name = f"{call.name}{{...}}_{len(self._instances)}"
            lhs = self._instances[call.name, args] = self._lowering.declare(name, definition.position)
            self._pending.append((lhs, definition, dict(zip(definition.params, args, strict=True))))
        return self._instances[call.name, args]

    def _symbol_name(self, symbol: int) -> str:
        return self._terminals[symbol].name if symbol >= 0 else self._lowering.nonterminals[~symbol].name

    def _undefined(self, name: str, position: Position) -> NoReturn:
        user = f'terminal "{self._open[-1]}"' if self._open else f'rule "{self._rule}"' if self._rule else "%ignore"
        known = [*self._definitions, *self._bound]
        _fail(f'{user} uses undefined symbol "{name}"{_closest(name, known)}', position)

    # The rest

    def _add_ignored(self) -> None:
        self._rule = ""
        for number, item in enumerate(self._module.ignored):
            body = item.body
            only = body.items[0].body.items if len(body.items) == 1 else ()
            if len(only) == 1 and isinstance(only[0], Name) and _is_terminal(only[0].name):
                index = self._terminal(only[0].name, only[0].position)
            else:
                name = f"__IGNORE_{number}"
                definition = self._definitions[name] = Definition(name, body, item.position)
                index = self._terminal(definition.name, item.position)
            self._terminals[index] = replace(self._terminals[index], ignored=True)

    def _apply_reject(self) -> None:
        names, token = self._module.settings.get("reject", ((), None))
        for name in names:
            index = self._mentioned(name, token)
            self._terminals[index] = replace(self._terminals[index], reject=True)

    def _apply_fallback(self) -> None:
        table, token = self._module.settings.get("fallback", ({}, None))
        for target, names in table.items():
            index = self._mentioned(target, token)
            for name in names:
                own = self._mentioned(name, token)
                if self._terminals[own].fallback not in (None, index):
                    _fail(f'%glrgrid: terminal "{name}" falls back to two terminals', _inside(token, name))
                self._terminals[own] = replace(self._terminals[own], fallback=index)
                step: int | None = index
                while step is not None:
                    if step == own:
                        message = f'%glrgrid: fallback of terminal "{name}" leads back to itself'
                        _fail(message, _inside(token, name))
                    step = self._terminals[step].fallback

    def _mentioned(self, name: str, token: Token) -> int:
        if name not in self._terminal_ids:
            hint = _closest(name, self._terminal_ids)
            _fail(f'%glrgrid: unknown terminal "{name}"{hint}', _inside(token, name))
        return self._terminal_ids[name]

    def _start(self, start: str) -> int:
        if start not in self._rule_ids:
            hint = _closest(start, self._rule_ids)
            raise GrammarError(f'start rule "{start}" is not defined{hint}; name one with start="..."')
        return self._rule_ids[start]

    def _warnings(self, start: int) -> Iterator[str]:
        for definition in self._definitions.values():
            if not definition.is_terminal and definition.priority is not None:
                line = definition.position[0]
                yield f'priority of rule "{definition.name}" (line {line}) has no effect: every parse is followed'
        ranks = sorted({t.priority for t in self._terminals})
        if len(ranks) > 1:
            marked = ", ".join(f"{t.name} {t.priority}" for t in self._terminals if t.priority)
            yield (
                f"terminals have different priorities ({marked}): Lark takes the higher one even where another "
                "matches longer text; here the longest match wins, and the priority decides between equals"
            )
        nonterminals, dead = self._lowering.nonterminals, {
            i for i, t in enumerate(self._terminals) if t.ignored or t.reject
        }
        barren, unreachable = find_useless(start, len(nonterminals), self._lowering.productions, dead)
        if start in barren:
            name, position = nonterminals[start].name, nonterminals[start].position or (1, 1)
            _fail(f'start rule "{name}" derives no text: every alternative needs itself, or a dead terminal', position)
        for index, nonterminal in enumerate(nonterminals):
            if nonterminal.position is not None and index in barren | unreachable:
                why = "derives no text" if index in barren else f'cannot be reached from "{nonterminals[start].name}"'
                yield f'rule "{nonterminal.name}" (line {nonterminal.position[0]}) {why}'
