"""The grammar intermediate representation (IR): what every front end produces and every engine reads.

A :class:`GrammarIR` is a plain context-free grammar (no EBNF) over terminals whose languages are :data:`Expr`
trees. It is the only thing the Rust compiler and the executable specification (:mod:`glrgrid.reference`)
share.

Symbols
    In a production's right-hand side, ``i >= 0`` is terminal ``i`` and ``~j`` (negative) is nonterminal ``j``.

Terminal expressions
    Nested tuples, the first item a tag. They denote languages of *byte strings*; code points are UTF-8.

    =============================== ====================================================================
    ``("lit", text)``               the UTF-8 bytes of ``text``
    ``("fold", text)``              the same, each ASCII letter in either case
    ``("words", pairs, texts)``     any of the texts between the two of any of the pairs, all of it as ``fold`` takes it
    ``("bytes", (b, ...))``         these bytes
    ``("class", ((lo, hi), ...))``  one code point out of inclusive ranges (surrogates never match)
    ``("jsonclass", ranges)``       the same in any of its spellings in a JSON string: raw, ``\\n``, ``\\u0061``
    ``("byteclass", ((lo, hi),..))`` one byte out of inclusive ranges
    ``("cat", (e, ...))``           concatenation (of nothing: the empty string)
    ``("alt", (e, ...))``           union (of nothing: the empty language)
    ``("repeat", e, min, max)``     ``min`` to ``max`` copies, ``max`` may be ``None``
    ``("and", (e, ...))``           intersection
    ``("not", e)``                  complement within all byte strings
    ``("graph", (state, ...))``     what an automaton accepts that begins in state 0; a state is ``(accepting, edges)``,
                                    an edge ``(label, target)``, a label an expression without the empty string
    =============================== ====================================================================

Token terminals
    The whole expression of a terminal may instead be ``("tokens", negated, ranges, names)``: exactly one token, of the
    ids in the inclusive ranges and of those names, or of all others. Such a token is one symbol of its own, beside the
    256 bytes: it is part of no longer match, and has no priority. For compiling,
    :func:`glrgrid.grammar.tokens.resolve` turns names into ids; the empty name is that of all end ids.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Expr", "GrammarIR", "Nonterminal", "Position", "Production", "Terminal"]

Expr = tuple[Any, ...]
Position = tuple[int, int]
"""1-based (line, column)."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Terminal:
    """One terminal.

    Among the terminals that match the same longest prefix, the highest ``(priority, literal)`` wins; equals are all
    candidates.
    """

    name: str
    expr: Expr
    priority: int = 0
    literal: bool = False
    ignored: bool = False
    reject: bool = False
    """Takes part in the longest match, but no stack can ever shift it."""
    fallback: int | None = None
    """Terminal whose action is used in LR states where this one has none."""
    scope: int | None = None
    """The part of a composed grammar that it belongs to; of meaning for ignored and reject terminals with the
    contextual lexer: they take part where another terminal of their part can begin."""
    position: Position | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "name": self.name,
            "expr": self.expr,
            "priority": self.priority,
            "literal": self.literal,
            "ignored": self.ignored,
            "reject": self.reject,
            "fallback": self.fallback,
            "position": self.position,
            **({} if self.scope is None else {"scope": self.scope}),
        }


@dataclass(frozen=True, slots=True)
class Nonterminal:
    """One nonterminal."""

    name: str
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class Production:
    """``lhs -> rhs``; ``name`` is the alias, or the rule's name, by which roles select productions."""

    lhs: int
    rhs: tuple[int, ...]
    name: str


@dataclass(frozen=True, slots=True)
class GrammarIR:
    """A grammar in the form every engine reads."""

    start: int
    terminals: tuple[Terminal, ...]
    nonterminals: tuple[Nonterminal, ...]
    productions: tuple[Production, ...]
    lexer: str = "basic"
    """``"basic"``: all terminals take part in every lexeme. ``"contextual"``: those that have an action in the LR state
    where it begins, the ignored and the reject ones."""
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def to_json(self) -> str:
        """Serialise to canonical JSON; equal grammars give equal text, and the text is what is fingerprinted."""
        return canonical(
            {
                "start": self.start,
                "lexer": self.lexer,
                "terminals": [t.to_dict() for t in self.terminals],
                "nonterminals": [{"name": n.name, "position": n.position} for n in self.nonterminals],
                "productions": [{"lhs": p.lhs, "rhs": p.rhs, "name": p.name} for p in self.productions],
            }
        )

    @classmethod
    def from_json(cls, text: str, warnings: tuple[str, ...] = ()) -> GrammarIR:
        """Read what :meth:`to_json` wrote."""
        data = json.loads(text)
        terminals = (
            Terminal(**{**t, "expr": _tuples(t["expr"]), "position": _position(t)}) for t in data["terminals"]
        )
        nonterminals = (Nonterminal(n["name"], _position(n)) for n in data["nonterminals"])
        productions = (Production(p["lhs"], tuple(p["rhs"]), p["name"]) for p in data["productions"])
        return cls(
            data["start"], tuple(terminals), tuple(nonterminals), tuple(productions), data["lexer"], warnings
        )


def canonical(value: Any) -> str:
    """The text that stands for a value, or for a part of one."""
    return _ENCODER.encode(value)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _position(item: dict[str, Any]) -> Position | None:
    return tuple(item["position"]) if item["position"] else None
