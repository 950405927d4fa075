"""Statements as sqlglot parses them, held against the lexemes that SQLite sees.

sqlglot accepts more than SQLite and reads some of it otherwise: ``date 'x'`` is a column with an alias to SQLite and a
cast to sqlglot. So lexemes are cut here again, and each word and quoted text must be where the parse has a name, a call
or a string; what SQLite writes otherwise is replaced by as many characters, so that positions stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from ..errors import PolicyError
from .access import Access
from .catalog import fold
from .dialect import Dialect

__all__ = ["ARGUMENTS", "CLAUSES", "LEAVES", "PLAIN", "Source", "exp"]

_LEXEME = re.compile(
    r"""(?P<space>[ \t\n\f\r]+)
    | (?P<comment>--|/\*)
    | (?P<blob>[xX]'[^']*')
    | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|'(?:[^']|'')*')
    | (?P<number>\.?[0-9][0-9A-Za-z_$.\u0080-\U0010ffff]*)
    | (?P<parameter>\?[0-9]*|[:@$][0-9A-Za-z_$\u0080-\U0010ffff]+)
    | (?P<word>[A-Za-z_\u0080-\ufefe\uff00-\U0010ffff][0-9A-Za-z_$\u0080-\U0010ffff]*)
    | (?P<sign>[-+*/%=<>!&|~,.;()])""",
    re.VERBOSE,
)
_VERBS = ("select", "with", "values", "insert", "replace", "update", "delete")


def _kinds(names: str) -> frozenset[str]:
    return frozenset(names.split())


LEAVES = _kinds(
    "Literal Null Boolean Placeholder Parameter Identifier Var DataType HexString JSONPath CurrentDate CurrentTime "
    "CurrentTimestamp"
)
"""Nodes that read nothing, whatever is below them."""
PLAIN = _kinds(
    "Add Alias And Anonymous Between BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr BitwiseRightShift Case Cast "
    "Collate Distinct Div DPipe EQ Escape Exists Filter Fetch GT GTE Glob Group Having If In Is IsNot JSONExtract "
    "JSONExtractScalar LT LTE Like Limit Match Mod Mul NEQ Neg Not NotNull NullSafeEQ NullSafeNEQ Offset Or Order "
    "Ordered Paren RegexpLike Sub Tuple Where Window WindowSpec"
)
"""Nodes that mean no more than what is below them."""
ARGUMENTS = {
    kind: frozenset(keys.split())
    for kind, keys in {
        "Select": "expressions from_ joins where group having order limit offset with_ distinct windows",
        "Union": "this expression distinct order limit offset with_",
        "Intersect": "this expression distinct order limit offset with_",
        "Except": "this expression distinct order limit offset with_",
        "Subquery": "this alias",
        "Paren": "this",
        "Values": "expressions alias",
        "Table": "this db alias joins",
        "Join": "this on using side kind method",
        "Schema": "this expressions",
        "Insert": "this expression conflict returning with_ default",
        "OnConflict": "expressions action conflict_keys where",
        "Update": "this expressions from_ where returning with_",
        "Delete": "this where returning with_",
    }.items()
}
"""What is looked at of each node that holds tables."""


def _is(*kinds: str) -> Callable[[Any], bool]:
    return lambda node: type(node).__name__ in kinds


def _join(node: Any, *words: str) -> bool:
    return type(node).__name__ == "Join" and any(node.args.get(k) in words for k in ("method", "side"))


def _subquery(node: Any) -> bool:
    kind, inside = type(node).__name__, type(node.parent).__name__
    return (
        kind in ("Subquery", "Exists")
        or (kind == "In" and node.args.get("field") is not None)
        or (kind in ("Select", "Union") and inside in ("Exists", "In", "Subquery"))
    )


CLAUSES: dict[str, Callable[[Any], bool]] = {
    "aggregate_filter": _is("Filter"),
    "case": _is("Case"),
    "cast": _is("Cast"),
    "collate": _is("Collate"),
    "cte": _is("With"),
    "exists": _is("Exists"),
    "group_by": _is("Group"),
    "having": _is("Having"),
    "join": _is("Join"),
    "natural_join": lambda node: _join(node, "NATURAL"),
    "order_by": lambda node: bool(node.args.get("order")) and type(node).__name__ != "Window",
    "outer_join": lambda node: _join(node, "NATURAL", "LEFT", "RIGHT", "FULL"),
    "parameter": _is("Placeholder", "Parameter"),
    "recursive_cte": lambda node: type(node).__name__ == "With" and bool(node.args.get("recursive")),
    "replace": lambda node: False,  # see Source.replaces
    "returning": _is("Returning"),
    "row_value": lambda node: type(node).__name__ == "Tuple" and type(node.parent).__name__ != "Values",
    "set_operation": _is("Union", "Intersect", "Except"),
    "star": lambda node: type(node).__name__ == "Star" and type(node.parent).__name__ != "Anonymous",
    "subquery": _subquery,
    "table_function": lambda node: (
        type(node).__name__ == "Anonymous" and type(node.parent).__name__ == "Table"
    ),
    "update_from": lambda node: type(node).__name__ == "Update" and bool(node.args.get("from_")),
    "upsert": _is("OnConflict"),
    "values": lambda node: type(node).__name__ == "Values" and type(node.parent).__name__ != "Insert",
    "window": lambda node: type(node).__name__ == "Window",
}
"""By clause of the dialect, whether a node is one."""

_BEFORE_OPERANDS = frozenset(("by", "like", "glob", "match", "regexp", "offset", "rows", "range", "groups"))
"""Of the words that may be names, those after which an operand may begin."""

_OPERATORS = {"like": "Like", "glob": "Glob", "match": "Match", "regexp": "RegexpLike"}


def exp() -> Any:
    """sqlglot's module of nodes.

    Raises
    ------
    PolicyError
        It is not installed.
    """
    try:
        from sqlglot import exp as nodes
    except ImportError:
        raise PolicyError("checking needs sqlglot; install glrgrid[sql]") from None
    return nodes


@cache
def _dialect() -> Any:
    """SQLite as sqlglot reads it, but with every function left as it is written."""
    from sqlglot.dialects.sqlite import SQLite

    base: Any = SQLite.Parser
    members = {
        "FUNCTIONS": {},
        "FUNCTION_PARSERS": {"CAST": base.FUNCTION_PARSERS["CAST"]},
        "NO_PAREN_FUNCTION_PARSERS": {"CASE": base.NO_PAREN_FUNCTION_PARSERS["CASE"]},
    }
    return type("_AsWritten", (SQLite,), {"Parser": type("Parser", (base,), members)})


class Source:
    """The text of a statement, its lexemes, and its parse."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.replaces = False
        self.operators: set[str] = set()
        self._spans: dict[int, int] = {}
        self._lexemes: list[tuple[str, int, int]] = []

    def parse(self, access: Access) -> tuple[tuple[int, str, str], Any]:
        """A problem and ``None``, or the parse of one statement whose names are all where SQLite has them."""
        if (odd := self._cut()) is not None:
            return (odd, "syntax", "this is no text of a statement; comments are refused too"), None
        words = self._words()
        if not words or words[0] not in _VERBS:
            at = self._lexemes[0][1] if self._lexemes else 0
            return (at, "verb", "this is no statement that may be used"), None
        statement, problem = self._parsed(words, access.dialect)
        if problem is None:
            missed = self._unaccounted(statement, access)
            problem = None if missed is None else (missed, "syntax", "this cannot be read for certain")
        return (problem, None) if problem else ((0, "", ""), statement)

    def _cut(self) -> int | None:
        """Cut the text; the place where that fails."""
        at = 0
        while at < len(self.text):
            m = _LEXEME.match(self.text, at)
            if m is None or m.lastgroup == "comment" or "\0" in m[0]:
                return at
            if m.lastgroup != "space":
                self._lexemes.append((str(m.lastgroup), at, m.end()))
            at = m.end()
        if self._lexemes and self._at(-1) == ";":
            self._lexemes.pop()
        return next((start for _, start, end in self._lexemes if self.text[start:end] == ";"), None)

    def _at(self, index: int) -> str:
        return self.text[self._lexemes[index][1] : self._lexemes[index][2]]

    def _words(self) -> list[str]:
        return [
            fold(self._at(i)) if kind == "word" else self._at(i)
            for i, (kind, _, _) in enumerate(self._lexemes)
        ]

    def _parsed(self, words: list[str], dialect: Dialect) -> tuple[Any, tuple[int, str, str] | None]:
        import sqlglot

        try:
            statements = sqlglot.parse(self._rewritten(words, dialect), read=_dialect())
        except (
            sqlglot.errors.SqlglotError,
            RecursionError,
            ValueError,
            AttributeError,
            TypeError,
            IndexError,
        ) as error:
            found = getattr(error, "errors", None)
            line, column = (found[0]["line"], found[0]["col"]) if found else (1, 1)
            return None, (self._offset_of(line or 1, column or 1), "syntax", "this cannot be parsed")
        if len(statements) != 1 or statements[0] is None:
            return None, (0, "syntax", "this is not one statement")
        return statements[0], None

    def _rewritten(self, words: list[str], dialect: Dialect) -> str:
        """The text in what sqlglot knows of SQLite, at the same length."""
        text = list(self.text)

        def put(index: int, new: str) -> None:
            _, start, end = self._lexemes[index]
            text[start:end] = new.ljust(end - start)

        for i, word in enumerate(words):
            following = [*words[i + 1 : i + 3], "", ""]
            if word == "replace" and following[0] == "into" and words[i - 1] != "or":
                self.replaces = True
                put(i, "INSERT")
            elif word in ("insert", "update") and following[0] == "or":
                self.replaces |= following[1] == "replace"
                put(i + 1, "")
                put(i + 2, "")
            elif self._lexemes[i][0] == "parameter" and word[0] == "?":
                put(i, "?")
            elif word == "+" and not self._ends_operand(i - 1, words, dialect):
                # sqlglot drops a sign before an operand; to SQLite, "+x" is no name of a result. One "~" is enough, and
                # two are an operator.
                put(i, "" if following[0] == "~" or (i and words[i - 1] in ("+", "~")) else "~")
        return "".join(text)

    def _ends_operand(self, index: int, words: list[str], dialect: Dialect) -> bool:
        """Whether an operator follows the lexeme. Of words that may be names it is taken for granted."""
        if index < 0:
            return False
        kind, word = self._lexemes[index][0], words[index]
        if kind == "word" and word in dialect.keywords:
            return word == "null" or (word in dialect.names and word not in _BEFORE_OPERANDS)
        return kind != "sign" or word == ")"

    def _unaccounted(self, root: Any, access: Access) -> int | None:
        """The first word or quoted text that the parse has no name for."""
        literals: set[int] = set()
        for node in root.walk():
            kind = type(node).__name__
            if "start" in node.meta and kind in ("Identifier", "Anonymous", "Literal"):
                start, end = node.meta["start"], node.meta["end"] + 1
                if kind == "Literal":
                    literals.add(start)
                else:
                    self._spans[start] = end
            self.operators |= {word for word, operator in _OPERATORS.items() if kind == operator}
            if kind in ("JSONExtract", "JSONExtractScalar"):
                self.operators.add("json_arrow")
        plain = access.dialect.keywords | ({"true", "false"} - access.hidden_columns)
        reserved = access.dialect.keywords - access.dialect.names  # the parse takes some for names
        previous = ""
        types = frozenset(access.dialect.rules["types"])
        in_type = False
        spans = {(start, end) for _, start, end in self._lexemes}
        for kind, start, end in self._lexemes:
            word = fold(self.text[start:end]) if kind == "word" else self.text[start:end]
            in_type = word in types and (previous == "as" or in_type)
            named = self._spans.get(start) == end
            if kind == "quoted" and not named and start not in literals:
                if not (word[0] == "'" and previous == ">"):
                    return start
            elif kind == "word":
                known = word not in reserved if named else in_type or word in plain or previous == "collate"
                if not known:
                    return start
            previous = word
        return next((s for s, e in self._spans.items() if (s, e) not in spans), None)

    def spelt(self, identifier: Any) -> str:
        """A name as it is written, in its quotes."""
        if "start" not in identifier.meta:
            return str(identifier.name)
        return self.text[identifier.meta["start"] : identifier.meta["end"] + 1]

    def name(self, identifier: Any) -> str:
        """A name without its quotes."""
        text = self.spelt(identifier)
        if "start" not in identifier.meta or text[:1] not in ('"', "`", "[", "'"):
            return text
        return text[1:-1] if text[0] == "[" else text[1:-1].replace(text[0] * 2, text[0])

    def offset(self, node: Any) -> int:
        """Where a node begins, as far as is known."""
        starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
        return min(starts, default=0)

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, from 1."""
        before = self.text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    def _offset_of(self, line: int, column: int) -> int:
        starts = [0, *(m.end() for m in re.finditer("\n", self.text))]
        return min(starts[min(line, len(starts)) - 1] + max(column - 1, 0), len(self.text))
