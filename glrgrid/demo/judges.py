"""Two judges of a statement that share no code with the engine.

sqlglot knows SQL by itself; Lark reads the grammar's own text, with its own LALR(1) tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import lark
import sqlglot
from lark.lexer import Lexer, PatternStr

__all__ = ["LarkJudge", "parses_with_sqlglot"]


def parses_with_sqlglot(text: str) -> bool:
    """Whether sqlglot reads ``text`` as exactly one statement, in its dialect-neutral SQL."""
    try:
        trees = sqlglot.parse(text, error_level=sqlglot.ErrorLevel.RAISE)
    except sqlglot.errors.SqlglotError:
        return False
    kinds = (sqlglot.exp.Query, sqlglot.exp.Insert, sqlglot.exp.Update, sqlglot.exp.Delete)
    return len(trees) == 1 and isinstance(trees[0], kinds)


class LarkJudge:
    """Parses with Lark's LALR(1) parser, on lexemes cut by longest match with Python's ``re``.

    Lark's own lexers do not serve here: they read a keyword that is written ``"select"i`` as a name.

    Parameters
    ----------
    grammar : str
        Lark text; lines that start with ``%glrgrid`` are left out.
    """

    def __init__(self, grammar: str) -> None:
        text = re.sub(r"(?m)^%glrgrid .*$", "", grammar)
        self._parser = lark.Lark(text, parser="lalr", lexer=_LongestMatch)

    def accepts(self, text: str) -> bool:
        """Whether ``text`` is a sentence."""
        try:
            self._parser.parse(text)
        except lark.UnexpectedInput:
            return False
        return True


class _LongestMatch(Lexer):
    """At each place the longest match of any terminal; of equally long ones a literal."""

    def __init__(self, conf: Any) -> None:
        self.ignored = frozenset(conf.ignore)
        self.terminals = [
            (
                terminal.name,
                isinstance(terminal.pattern, PatternStr),
                re.compile(terminal.pattern.to_regexp()),
            )
            for terminal in conf.terminals
        ]

    def lex(self, data: str) -> Iterator[lark.Token]:  # type: ignore[override]
        at = 0
        while at < len(data):
            matches = [
                (match.end(), literal, name)
                for name, literal, pattern in self.terminals
                if (match := pattern.match(data, at))
            ]
            if not matches:
                raise lark.UnexpectedInput(f"no terminal matches at offset {at}")
            end, _, name = max(matches)
            if name not in self.ignored:
                yield lark.Token(name, data[at:end], start_pos=at)
            at = end
