"""Grammar text in Lark's format to :class:`~glrgrid.grammar.ir.GrammarIR`.

Three steps: :mod:`glrgrid.grammar.lark_text` parses the text, :mod:`glrgrid.grammar.lark_module` settles
imports, overrides and extensions into one table of definitions, and :class:`_Compiler` lowers that. Lark's
own grammar compiler takes no part.

Where the meaning differs from Lark's, it is on purpose: the longest match wins (Lark takes the first
alternative of a sorted pattern); with the basic lexer every terminal that the text defines takes part in it,
whether or not a rule uses it; priorities of rules have no effect; ``"select"i`` folds ASCII letters only.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, NoReturn

from lark import Token

from ..errors import GrammarError
from . import compose, lark_warnings, regex, regular, tokens
from .ebnf import (
    Alt,
    And,
    Call,
    Embedded,
    Leaf,
    Literal,
    Lowering,
    Name,
    Node,
    Not,
    Range,
    Regex,
    Repeat,
    Seq,
    TokenSet,
    find_useless,
)
from .ir import Expr, GrammarIR, Position, Production, Terminal
from .lark_blocks import Block
from .lark_module import Module, closest, collect, position_inside
from .lark_text import Attribute, Definition, fail, is_terminal, parse

__all__ = ["read"]

MAX_EXPR_DEPTH = 60
"""Deepest terminal expression; its JSON has up to two levels for each, and JSON readers stop at 128."""
MAX_EXPR_NODES = 100_000
"""Largest terminal expression."""
MAX_INSTANCES = 10_000
"""Most template instances."""

ReadSchema = Callable[[Any], GrammarIR]
_ATTRIBUTES = ("lazy", "stop", "suffix", "capture", "stop_capture", "max_tokens", "temperature")
_ANY_TEXT: Expr = ("repeat", regex.from_class((), negated=True), 0, None)
_WORDS = re.compile(r"\w+|\s+|[^\w\s]+")

_LITERAL_NAMES = {
    "\n": "NEWLINE", "\r\n": "CRLF", "\t": "TAB", " ": "SPACE", "!": "BANG", '"': "DBLQUOTE", "#": "HASH",
    "$": "DOLLAR", "%": "PERCENT", "&": "AMPERSAND", "'": "QUOTE", "(": "LPAR", ")": "RPAR", "*": "STAR",
    "+": "PLUS", ",": "COMMA", "-": "MINUS", ".": "DOT", "/": "SLASH", ":": "COLON", ";": "SEMICOLON",
    "<": "LESSTHAN", "=": "EQUAL", ">": "MORETHAN", "?": "QMARK", "@": "AT", "[": "LSQB", "\\": "BACKSLASH",
    "]": "RSQB", "^": "CIRCUMFLEX", "_": "UNDERSCORE", "`": "BACKQUOTE", "{": "LBRACE", "|": "VBAR",
    "}": "RBRACE", "~": "TILDE",
}  # fmt: skip
"""The names that Lark gives to literals of punctuation."""


def read(
    text: str,
    start: str = "start",
    lexer: str | None = None,
    read_schema: ReadSchema | None = None,
    markers: Collection[str] = (),
) -> GrammarIR:
    """Read a grammar in Lark's text format.

    Parameters
    ----------
    text : str
        The grammar.
    start : str
        Start rule. Left at its default, it yields to the ``%glrgrid`` directive.
    lexer : {"basic", "contextual"}, optional
        Wins over the directive; the default is ``"contextual"``.
    read_schema : callable, optional
        Makes the grammar of a JSON Schema, for ``%json``.
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
    try:
        return _Compiler(collect(*parse(text)), read_schema, markers).compile(start, lexer)
    except RecursionError:
        raise GrammarError(
            "the grammar is nested too deeply; name the inner groups as rules or terminals"
        ) from None


class _Compiler:
    """Lowers one table of definitions."""

    def __init__(self, module: Module, read_schema: ReadSchema | None, markers: Collection[str]) -> None:
        self._module = module
        self._read_schema = read_schema
        self._markers = markers
        self._marked: dict[int, int] = {}
        """Terminals with the text of markers, and the nonterminals that can be it or the tokens."""
        self._parts: dict[int, GrammarIR] = {}
        """Grammars of blocks, by nonterminal."""
        self._optional: dict[int, int] = {}
        """Terminals that could be empty, and the nonterminals that can be it or nothing."""
        self._definitions = module.definitions
        self._terminals: list[Terminal] = []
        self._terminal_ids: dict[str, int] = {}
        self._by_leaf: dict[Leaf, str] = {}
        self._exprs: dict[str, Expr] = {}
        self._open: list[str] = []
        self._lowering = Lowering(self._symbol)
        self._first_use: dict[int, tuple[str, Position]] = {}
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
        self._check_ignored()
        start_id = self._start(start)
        ir = GrammarIR(
            start=start_id,
            terminals=tuple(self._terminals),
            nonterminals=tuple(self._lowering.nonterminals),
            productions=self._lowering.productions,
            lexer=lexer,
            warnings=tuple(self._warnings(start_id, lexer)),
        )
        if self._parts and lexer != "contextual":
            place = self._lowering.nonterminals[min(self._parts)].position
            fail("%json and %lark need the contextual lexer", place or (1, 1))
        return compose.embed(ir, self._parts)

    # Terminals

    def _add_named_terminals(self) -> None:
        """Add what the text defines. What can match the empty string is left for rules that want it to trip over."""
        for definition in self._definitions.values():
            if definition.is_terminal and definition.listed:
                if not regex.is_nullable(self._named_expr(definition.name, definition.position)):
                    self._terminal(definition.name, definition.position)
                if (leaf := self._single_leaf(definition)) is not None:
                    self._by_leaf.setdefault(leaf, definition.name)

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
            if regex.is_nullable(expr) and not self._module.has_additions:
                fail(
                    f'terminal "{name}" can match the empty string; make it match at least one character',
                    definition.position,
                )
            self._add(name, expr, definition.position, definition.priority or 0, isinstance(leaf, Literal))
        return self._terminal_ids[name]

    def _terminal_or_nothing(self, index: int) -> int:
        """The symbol by which rules use a terminal; in llguidance's dialect, terminals can be empty."""
        if index not in self._optional:
            return index
        return ~self._optional[index]

    def _add(self, name: str, expr: Expr, position: Position, priority: int, literal: bool) -> int:
        index = self._terminal_ids[name] = len(self._terminals)
        if regex.is_nullable(expr):
            expr = regular.without_empty(expr)
            self._optional[index] = optional = self._lowering.declare(f"__optional_{name}", None)
            self._lowering.add(optional, (index,), name)
            self._lowering.add(optional, (), name)
        self._terminals.append(Terminal(name, expr, priority, literal, position=position))
        return index

    def _named_expr(self, name: str, position: Position) -> Expr:
        if name in self._exprs:
            return self._exprs[name]
        if name in self._open:
            chain = " -> ".join([*self._open[self._open.index(name) :], name])
            fail(f'terminal "{name}" refers to itself ({chain}); only rules can be recursive', position)
        definition = self._definitions.get(name)
        if definition is None:
            self._undefined(name, position)
        if not definition.is_terminal:
            fail(
                f'terminal "{self._open[-1]}" uses rule "{name}"; make it a rule, or "{name}" a terminal',
                position,
            )
        self._open.append(name)
        expr = self._expr(definition.body)
        self._check_size(name, expr, definition.position)
        self._open.pop()
        self._exprs[name] = expr
        return expr

    def _check_size(self, name: str, expr: Expr, position: Position) -> None:
        depth, nodes = regex.measure(expr)
        if depth > MAX_EXPR_DEPTH or nodes > MAX_EXPR_NODES:
            limit = f"{MAX_EXPR_DEPTH} levels and {MAX_EXPR_NODES:,} parts"
            fail(f'terminal "{name}" is too large once written out; the limit is {limit}', position)

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
                    message = f'terminal "{self._open[-1]}" has alias "{alternative.alias}"; only rules can'
                    fail(message, alternative.position or (1, 1))
            parts = tuple(self._expr(alternative.body) for alternative in node.items)
            return parts[0] if len(parts) == 1 else ("alt", parts)
        if isinstance(node, And):
            return ("and", tuple(map(self._expr, node.items)))
        if isinstance(node, Not):
            return ("and", (_ANY_TEXT, ("not", self._expr(node.item))))
        if isinstance(node, Embedded):
            return self._substrings(node)
        if isinstance(node, TokenSet):
            fail(f'terminal "{self._open[-1]}" uses token {node.text}; only rules can', node.position)
        fail(f'terminal "{self._open[-1]}" uses template "{node.name}"; only rules can', node.position)

    def _substrings(self, node: Embedded) -> Expr:
        """``%regex {"substring_words": "..."}`` and its like."""
        if node.kind != "regex":
            fail(f'terminal "{self._open[-1]}" uses %{node.kind}; only rules can', node.position)
        value = self._module.blocks[node.number].value
        kind, what = next(iter(value.items())) if len(value) == 1 else ("", None)
        if kind == "substring_chunks" and isinstance(what, list) and all(isinstance(c, str) for c in what):
            chunks = what
        elif kind in ("substring_words", "substring_chars") and isinstance(what, str):
            chunks = _WORDS.findall(what) if kind == "substring_words" else list(what)
        else:
            known = '"substring_chars": "...", "substring_words": "..." or "substring_chunks": ["...", ...]'
            found = ", ".join(json.dumps(key) for key in value) or "nothing"
            fail(f"%regex: {found} is not supported; expected one of {known}", node.position)
        return regular.substrings(tuple(chunks))

    def _anonymous_terminal(self, leaf: Leaf) -> int:
        name = self._by_leaf.get(leaf)
        if name is None:
            name = self._by_leaf[leaf] = self._literal_name(leaf)
            self._open.append(name)
            expr = self._expr(leaf)
            self._check_size(name, expr, leaf.position)
            if regex.is_nullable(expr) and not (self._module.has_additions or isinstance(leaf, Embedded)):
                written = f" /{leaf.pattern}/" if isinstance(leaf, Regex) else ""
                fail(
                    f'a pattern{written} in rule "{self._rule}" can match the empty string; make it match at '
                    "least one character, and optional with [...]",
                    leaf.position,
                )
            self._add(name, expr, leaf.position, 0, isinstance(leaf, Literal))
            self._open.pop()
        return self._terminal(name, leaf.position)

    def _token(self, leaf: TokenSet) -> int:
        if leaf not in self._by_leaf:
            name = self._by_leaf[leaf] = leaf.text
            self._terminal_ids[name] = len(self._terminals)
            self._terminals.append(Terminal(name, leaf.expr, position=leaf.position))
        return self._terminal_ids[self._by_leaf[leaf]]

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
            if any(a.name in ("lazy", "stop", "suffix") for a in self._attributes(definition)):
                for rhs in self._delimited(definition):
                    self._lowering.add(lhs, rhs, definition.name)
            else:
                self._lowering.add_rule(lhs, definition.name, definition.body)

    def _attributes(self, definition: Definition) -> tuple[Attribute, ...]:
        """The attributes of a rule. Captures say nothing of the language."""
        for attribute in definition.attributes:
            if attribute.name not in _ATTRIBUTES:
                fail(
                    f'rule "{definition.name}" has unknown attribute "{attribute.name}"'
                    f"{closest(attribute.name, _ATTRIBUTES)}",
                    attribute.position,
                )
            if attribute.name in ("max_tokens", "temperature"):
                why = "a grammar neither counts tokens nor draws them"
                fail(f'attribute "{attribute.name}" is not supported: {why}', attribute.position)
        return definition.attributes

    def _delimited(self, definition: Definition) -> Iterator[tuple[int, ...]]:
        """The terminal of a rule that ends as soon as it can; and what ends with a marker in its place."""
        self._open.append(f"{definition.name}[...]")
        expr = self._expr(definition.body)
        for attribute in definition.attributes:
            if attribute.name == "lazy":
                expr = regular.shortest(expr)
            elif attribute.name in ("stop", "suffix"):
                if attribute.value is None or isinstance(attribute.value, Token):
                    if attribute.value == '""':
                        continue  # up to the end
                    fail(
                        f'attribute "{attribute.name}" needs a string, pattern or terminal',
                        attribute.position,
                    )
                yield from self._up_to_marker(definition, expr, attribute)
                expr = regular.shortest(("cat", (expr, self._expr(attribute.value))))
        self._check_size(definition.name, expr, definition.position)
        self._open.pop()
        if expr[0] == "and" and regex.is_nullable(expr):
            yield ()  # nothing is shorter
            return
        index = self._add(definition.name, expr, definition.position, 0, False)
        yield (self._terminal_or_nothing(index),)

    def _up_to_marker(
        self, definition: Definition, expr: Expr, attribute: Attribute
    ) -> Iterator[tuple[int, ...]]:
        """Text without the literal at which a rule ends, and the tokens in its place."""
        literal = self._literal_of(attribute.value)
        if literal is None or len(parts := tokens.parts_of(literal.text, self._markers)) == 1:
            return
        before = ("cat", (_ANY_TEXT, ("lit", literal.text), _ANY_TEXT))
        text: Expr = ("and", (("cat", (expr, ("lit", parts[0]))), ("not", before)))
        index = self._add(f"{definition.name}[...]", text, definition.position, 0, False)
        yield (self._terminal_or_nothing(index), *self._tokens_of(["", *parts[1:]], attribute.position))

    def _literal_of(self, value: Node | Token | None) -> Literal | None:
        """The literal that a value is, by name or outright."""
        if isinstance(value, (Name, Literal)):
            named = isinstance(value, Name) and self._definitions.get(value.name)
            value = (self._single_leaf(named) if named else value) or value
        return value if isinstance(value, Literal) and not value.fold else None

    def _tokens_of(self, parts: list[str], position: Position) -> Iterator[int]:
        """The symbols of a literal's text and markers, in turn."""
        for at, part in enumerate(parts):
            if at % 2:
                yield self._token(TokenSet(tokens.token(part), part, position))
            elif part:
                yield self._anonymous_terminal(Literal(part, False, position))

    def _symbol(self, leaf: Leaf) -> int:
        symbol = self._symbol_of(leaf)
        if symbol >= 0:
            symbol = self._terminal_or_nothing(symbol)
        if symbol >= 0:
            self._first_use.setdefault(symbol, (self._rule, leaf.position))
            symbol = self._marked_or_plain(symbol, leaf)
        return symbol

    def _marked_or_plain(self, symbol: int, leaf: Leaf) -> int:
        """The symbol by which rules use a literal, which can be the tokens of the markers in it."""
        literal = self._literal_of(leaf) if self._markers else None
        if literal is None or len(parts := tokens.parts_of(literal.text, self._markers)) == 1:
            return symbol
        if symbol not in self._marked:
            place = self._marked[symbol] = self._lowering.declare(f"__spelled_{len(self._marked)}", None)
            self._lowering.add(place, (symbol,), self._rule)
            self._lowering.add(place, tuple(self._tokens_of(parts, leaf.position)), self._rule)
        return ~self._marked[symbol]

    def _symbol_of(self, leaf: Leaf) -> int:
        if isinstance(leaf, Call):
            return ~self._instance(leaf)
        if isinstance(leaf, Embedded) and leaf.kind != "regex":
            return ~self._part(leaf)
        if isinstance(leaf, TokenSet):
            return self._token(leaf)
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
            usage = f"{leaf.name}{{{', '.join(definition.params)}}}"
            fail(f'rule "{self._rule}" uses template "{leaf.name}" without arguments: {usage}', leaf.position)
        return self._terminal(leaf.name, leaf.position)

    def _part(self, leaf: Embedded) -> int:
        """The nonterminal of a schema or grammar in the text."""
        block: Block = self._module.blocks[leaf.number]
        if leaf.kind == "lark":
            try:
                part = _Compiler(collect(*parse(block.value)), self._read_schema, self._markers).compile(
                    "start", None
                )
            except GrammarError as error:
                raise GrammarError(f"in the grammar that %lark opens: {error}", *leaf.position) from None
        elif self._read_schema is None:
            fail("%json is not supported here", leaf.position)
        else:
            part = self._read_schema(block.value)
        place = self._lowering.declare(f"%{leaf.kind} on line {leaf.position[0]}", leaf.position)
        self._parts[place] = part
        return place

    def _instance(self, call: Call) -> int:
        """The nonterminal of a template with these argument symbols."""
        definition = self._definitions.get(call.name)
        if definition is None or call.name in self._bound:
            self._undefined(call.name, call.position)
        if len(definition.params) != len(call.args):
            counts = f"takes {len(definition.params)} arguments, found {len(call.args)}"
            fail(f'rule "{self._rule}" uses template "{call.name}", which {counts}', call.position)
        args = tuple(map(self._symbol, call.args))
        if (call.name, args) not in self._instances:
            if len(self._instances) >= MAX_INSTANCES:
                fail(
                    f'template "{call.name}" has more than {MAX_INSTANCES:,} instances; is it endless?',
                    call.position,
                )
            name = f"{call.name}{{{','.join(map(self._symbol_name, args))}}}"
            if len(name) > 80:
                name = f"{call.name}{{...}}_{len(self._instances)}"
            lhs = self._instances[call.name, args] = self._lowering.declare(name, definition.position)
            self._pending.append((lhs, definition, dict(zip(definition.params, args, strict=True))))
        return self._instances[call.name, args]

    def _symbol_name(self, symbol: int) -> str:
        return self._terminals[symbol].name if symbol >= 0 else self._lowering.nonterminals[~symbol].name

    def _undefined(self, name: str, position: Position) -> NoReturn:
        user = f'rule "{self._rule}"' if self._rule else "%ignore"
        if self._open:
            user = f'terminal "{self._open[-1]}"'
        known = [*self._definitions, *self._bound]
        fail(f'{user} uses undefined symbol "{name}"{closest(name, known)}', position)

    # The rest

    def _add_ignored(self) -> None:
        self._rule = ""
        for number, item in enumerate(self._module.ignored):
            body = item.body
            only = body.items[0].body.items if len(body.items) == 1 else ()
            if len(only) == 1 and isinstance(only[0], Name) and is_terminal(only[0].name):
                index = self._terminal(only[0].name, only[0].position)
            else:
                name = f"__IGNORE_{number}"
                self._definitions[name] = Definition(name, body, item.position)
                index = self._terminal(name, item.position)
            self._terminals[index] = replace(self._terminals[index], ignored=True)

    def _check_ignored(self) -> None:
        for index, (rule, position) in self._first_use.items():
            if self._terminals[index].ignored:
                why = (
                    f'terminal "{self._terminals[index].name}", which is ignored and so never reaches a rule'
                )
                fail(f'rule "{rule}" uses {why}; take it out of the rule, or out of %ignore', position)

    def _apply_reject(self) -> None:
        if "reject" not in self._module.settings:
            return
        names, token = self._module.settings["reject"]
        for name in names:
            index = self._mentioned(name, token)
            self._terminals[index] = replace(self._terminals[index], reject=True)

    def _apply_fallback(self) -> None:
        if "fallback" not in self._module.settings:
            return
        table, token = self._module.settings["fallback"]
        for target, name in ((target, name) for target, names in table.items() for name in names):
            index, own = self._mentioned(target, token), self._mentioned(name, token)
            if self._terminals[own].fallback not in (None, index):
                fail(f'%glrgrid: terminal "{name}" falls back to two terminals', position_inside(token, name))
            self._terminals[own] = replace(self._terminals[own], fallback=index)
            step: int | None = index
            while step is not None:
                if step == own:
                    fail(
                        f'%glrgrid: fallback of terminal "{name}" leads back to itself',
                        position_inside(token, name),
                    )
                step = self._terminals[step].fallback

    def _mentioned(self, name: str, token: Token) -> int:
        if name not in self._terminal_ids:
            if is_terminal(name) and name in self._definitions:
                return self._terminal(name, position_inside(token, name))
            hint = closest(name, self._terminal_ids)
            fail(f'%glrgrid: unknown terminal "{name}"{hint}', position_inside(token, name))
        return self._terminal_ids[name]

    def _start(self, start: str) -> int:
        if start not in self._rule_ids:
            hint = closest(start, self._rule_ids)
            own = [name for name in self._rule_ids if self._definitions[name].listed]
            rules = ", ".join(own[: lark_warnings.MAX_LISTED]) + (
                ", ..." if len(own) > lark_warnings.MAX_LISTED else ""
            )
            there = (
                f'; there are: {rules}; name one with start="..."' if own else "; the grammar has no rules"
            )
            # Where it is named, or where the rules are among which it is missing.
            named, token = self._module.settings.get("start", ("", None))
            place = self._definitions[own[0]].position if own else (1, 1)
            if token is not None and named == start:
                place = position_inside(token, start)
            fail(f'start rule "{start}" is not defined{hint}{there}', place)
        return self._rule_ids[start]

    def _warnings(self, start: int, lexer: str) -> Iterator[str]:
        definitions = self._definitions.values()
        yield from lark_warnings.rule_priorities(definitions)
        yield from lark_warnings.left_out(definitions, self._terminal_ids)
        if lexer == "basic":
            yield from lark_warnings.unused(self._terminals, self._first_use)
        yield from lark_warnings.overtaken(self._terminals)
        nonterminals = self._lowering.nonterminals
        dead = {i for i, t in enumerate(self._terminals) if t.ignored or t.reject}
        productions = self._lowering.productions + tuple(Production(place, (), "") for place in self._parts)
        barren, unreachable = find_useless(start, len(nonterminals), productions, dead)
        if start in barren:
            name, position = nonterminals[start].name, nonterminals[start].position
            why = "every alternative needs itself, or a terminal that is ignored or rejected"
            fail(f'start rule "{name}" derives no text: {why}', position or (1, 1))
        yield from lark_warnings.useless(nonterminals, start, barren, unreachable)
