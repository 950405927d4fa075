"""The statements of a Lark grammar to one table of definitions: imports, overrides, extensions, settings."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

from lark import Token

from .ebnf import Alt, Alternative, And, Call, Leaf, Name, Node, Not, Regex, Repeat, Seq, TokenSet, map_leaves
from .ir import Position
from .lark_blocks import Block
from .lark_text import (
    Change,
    Declare,
    Definition,
    Directive,
    Ignore,
    Import,
    Options,
    fail,
    parse,
    position_of,
)

__all__ = ["Module", "closest", "collect", "names_in", "position_inside"]

_EXACT = {
    ("common", "ESCAPED_STRING"): r'"([^"\\\n]|\\[^\n])*"',
    ("common", "C_COMMENT"): r"/\*([^*]|\*+[^*/])*\*+/",
    ("python", "LONG_STRING"): (
        r"([ubfUBF]?[rR]?|[rR][ubfUBF])"
        r'("""("?"?([^"\\]|\\[\s\S]))*"""' + r"|'''('?'?([^'\\]|\\[\s\S]))*''')"
    ),
}
"""Terminals of the shipped files that use lazy quantifiers or look-behinds, as plain regular expressions: the
texts that the original matches and stops at. (python.STRING and python.DEC_NUMBER look beyond their end; they
have none.)"""


@dataclass(slots=True)
class Module:
    """Everything that one grammar text says."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    ignored: list[Ignore] = field(default_factory=list)
    settings: dict[str, tuple[Any, Token]] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    has_additions: bool = False
    """Whether the text uses what is llguidance's and not Lark's: there, terminals can be empty."""


def collect(statements: list[Any], blocks: list[Block], shipped: bool = False) -> Module:
    """Settle imports, then definitions, overrides and extensions in order.

    What a shipped file declares without defining matters only if it is used: it is then an undefined symbol.
    """
    module = Module(blocks=blocks)
    wanted: dict[str, Import] = {}
    for item in statements:
        if isinstance(item, Import):
            earlier = wanted.get(item.module, item)
            wanted[item.module] = replace(earlier, names={**earlier.names, **item.names})
    for item in wanted.values():
        for definition in _imported(item):
            _define(module, definition)
    for item in statements:
        if isinstance(item, Definition):
            _define(module, item)
        elif isinstance(item, Change):
            _change(module, item)
        elif isinstance(item, Ignore):
            module.ignored.append(item)
        elif isinstance(item, Declare) and not shipped:
            token = item.tokens[0]
            fail(
                f'%declare {token}: a symbol without a definition cannot be matched; define "{token}"',
                position_of(token),
            )
        elif isinstance(item, Directive):
            _read_directive(module, item.token)
        elif isinstance(item, Options):
            _read_options(blocks[item.number], item.position)
    definitions = module.definitions.values()
    module.has_additions = bool(blocks) or any(d.attributes or _has_additions(d.body) for d in definitions)
    return module


def _define(module: Module, definition: Definition) -> None:
    name, earlier = definition.name, module.definitions.get(definition.name)
    if earlier is not None:
        where = f"first on line {earlier.position[0]}"
        hint = "use %override or %extend to change an imported one"
        fail(f'{definition.kind} "{name}" is defined more than once, {where}; {hint}', definition.position)
    if len(set(definition.params)) != len(definition.params):
        fail(f'template "{name}" has two parameters of one name', definition.position)
    module.definitions[name] = definition


def _change(module: Module, change: Change) -> None:
    new = change.definition
    old = module.definitions.get(new.name)
    if old is None:
        hint = closest(new.name, module.definitions)
        fail(
            f'%{change.verb} of {new.kind} "{new.name}", which is not defined or imported above{hint}',
            new.position,
        )
    if change.verb == "extend":
        if old.params != new.params:
            fail(f'%extend of "{new.name}" has other parameters than its definition', new.position)
        new = replace(new, body=Alt(old.body.items + new.body.items), priority=old.priority)
    module.definitions[new.name] = new


@cache
def _shipped(module: str) -> dict[str, Definition]:
    """Definitions of a grammar file inside the installed lark package."""
    text = (resources.files("lark.grammars") / f"{module}.lark").read_text("utf-8")
    definitions = collect(*parse(text), shipped=True).definitions
    for name, definition in definitions.items():
        if (module, name) in _EXACT:
            leaf = Regex(_EXACT[module, name], "", definition.position)
            definitions[name] = replace(definition, body=Alt((Alternative(Seq((leaf,))),)))
    return definitions


def _imported(item: Import) -> Iterator[Definition]:
    """The imported definitions and all they need, renamed, placed at the import statement."""
    source = _shipped(item.module)
    for name in item.names.values():
        if name not in source:
            hint = closest(name, source)
            fail(f'grammar "{item.module}" has no "{name}"{hint}', item.position)
    renamed = {name: alias for alias, name in item.names.items()}

    def rename(leaf: Leaf) -> Leaf:
        if isinstance(leaf, Name):
            return Name(renamed.get(leaf.name, leaf.name), item.position)
        if isinstance(leaf, Call):
            return Call(renamed.get(leaf.name, leaf.name), tuple(map(rename, leaf.args)), item.position)
        return replace(leaf, position=item.position)

    work, done = list(renamed), set[str]()
    while work:
        definition = source[work.pop()]
        for needed in names_in(definition.body):
            if needed in source and needed not in definition.params and needed not in renamed:
                underscore = "_" if needed.startswith("_") else ""
                renamed[needed] = f"{underscore}{item.module}__{needed.removeprefix('_')}"
                work.append(needed)
    for name, alias in [*((n, a) for a, n in item.names.items()), *renamed.items()]:
        if alias in done:
            continue
        done.add(alias)
        # In no shipped file does a parameter of a template share its name with a definition.
        body = map_leaves(source[name].body, rename)
        assert isinstance(body, Alt)
        yield replace(source[name], name=alias, body=body, position=item.position, listed=alias in item.names)


def names_in(node: Node) -> Iterator[str]:
    """Names that a tree refers to."""
    if isinstance(node, Name):
        yield node.name
    elif isinstance(node, Call):
        yield node.name
        for argument in node.args:
            yield from names_in(argument)
    elif isinstance(node, (Repeat, Not)):
        yield from names_in(node.item)
    elif isinstance(node, (Seq, Alt, And)):
        for item in node.items:
            yield from names_in(item.body if isinstance(item, Alternative) else item)


def _has_additions(node: Node) -> bool:
    """Whether a tree has what Lark's format has not."""
    if isinstance(node, Repeat):
        return _has_additions(node.item)
    if isinstance(node, (Seq, Alt)):
        return any(
            _has_additions(item.body if isinstance(item, Alternative) else item) for item in node.items
        )
    return isinstance(node, (And, Not, TokenSet))


def _read_directive(module: Module, token: Token) -> None:
    """Read ``%glrgrid {...}``: what Lark's format has no words for."""
    line, column = position_of(token)
    body = token.removeprefix("%glrgrid")
    try:
        values = json.loads(body)
    except json.JSONDecodeError as error:
        column += len(token) - len(body) + error.pos
        fail(f"%glrgrid: bad JSON: {error.msg}", (line, column))
    if not isinstance(values, dict):
        fail('%glrgrid: expected a JSON object, as in %glrgrid {"lexer": "basic"}', (line, column))
    for key, value in values.items():
        check = _SETTINGS.get(key)
        if check is None:
            hint = closest(key, _SETTINGS)
            fail(
                f'%glrgrid: unknown key "{key}"{hint}; known: {", ".join(_SETTINGS)}',
                position_inside(token, key),
            )
        if key in module.settings:
            fail(f'%glrgrid: key "{key}" is given twice', position_inside(token, key))
        if not check[0](value):
            fail(
                f'%glrgrid: "{key}" must be {check[1]}, found {json.dumps(value)[:60]}',
                position_inside(token, key),
            )
        module.settings[key] = (value, token)


_OPTIONS = {"no_forcing": None, "allow_initial_skip": None, "allow_invalid_utf8": False, "ignore_once": False}
"""The options of ``%llguidance``, and the only value that is supported if not all are."""


def _read_options(block: Block, position: Position) -> None:
    for name, value in block.value.items():
        if name not in _OPTIONS:
            fail(f'%llguidance: unknown option "{name}"{closest(name, _OPTIONS)}', position)
        if not isinstance(value, bool):
            fail(f'%llguidance: option "{name}" must be true or false', position)
        if _OPTIONS[name] is not None and value != _OPTIONS[name]:
            fail(f'%llguidance: "{name}": {json.dumps(value)} is not supported', position)


def _is_list_of_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


_SETTINGS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "lexer": (lambda v: v in ("basic", "contextual"), '"basic" or "contextual"'),
    "start": (lambda v: isinstance(v, str), "the name of a rule"),
    "fallback": (
        lambda v: isinstance(v, dict) and all(map(_is_list_of_names, v.values())),
        'an object of terminal names, as in {"ID": ["KEY", "INDEX"]}',
    ),
    "reject": (_is_list_of_names, "a list of terminal names"),
}


def position_inside(token: Token, name: str) -> Position:
    """Where a directive mentions a name."""
    line, column = position_of(token)
    return (line, column + max(token.find(json.dumps(name)), 0))


def closest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the known name most like it, if any is."""
    matches = difflib.get_close_matches(name, list(known), 1)
    return f'; closest name: "{matches[0]}"' if matches else ""
