"""Which dialect a grammar's text is in, and what is wrong with it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from . import _native
from .errors import GlrgridError, GrammarError
from .grammar import Grammar, GrammarWarning
from .grammar.structural_tag import FORMATS

__all__ = ["DIALECTS", "detect", "lint", "read"]

MAX_CONFLICTS = 20
"""Conflicts that :func:`lint` describes; there may be thousands."""

DIALECTS: dict[str, Callable[..., Grammar]] = {
    "lark": Grammar.from_lark,
    "gbnf": Grammar.from_gbnf,
    # A file's last line break ends the file; it is no part of the pattern.
    "regex": lambda text, **options: Grammar.from_regex(
        text.removesuffix("\n").removesuffix("\r"), **options
    ),
    "choices": lambda text: Grammar.from_choices(_choices(text)),
    "structural_tag": Grammar.from_structural_tag,
    "json_schema": Grammar.from_json_schema,
}
"""Readers by the names of the dialects."""

_SUFFIXES = {".lark": "lark", ".gbnf": "gbnf", ".ebnf": "gbnf", ".regex": "regex"}


def detect(text: str, name: str = "") -> str:
    """The dialect of a text: by the suffix of its file's name, or else by how it looks.

    Examples
    --------
    >>> detect('root ::= "a"'), detect('start: "a"'), detect('["yes", "no"]'), detect('{"type": "object"}')
    ('gbnf', 'lark', 'choices', 'json_schema')
    """
    suffix = PurePath(name).suffix.lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    value: Any = None
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        if suffix == ".json":
            return "json_schema"
    if isinstance(value, list):
        return "choices"
    if isinstance(value, dict):
        tagged = "structures" in value or value.get("type") in ("structural_tag", *FORMATS)
        return "structural_tag" if tagged else "json_schema"
    if "::=" in text:
        return "gbnf"
    return "lark" if ":" in text else "regex"


def read(text: str, dialect: str, **options: Any) -> Grammar:
    """Read a grammar; ``options`` are those of the dialect.

    Raises
    ------
    GrammarError
        The dialect is unknown, or the text is refused.
    """
    if dialect not in DIALECTS:
        raise GrammarError(f'unknown dialect "{dialect}"; there are {", ".join(DIALECTS)}')
    return DIALECTS[dialect](text, **options)


def _choices(text: str) -> list[str]:
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise GrammarError(f"choices are a JSON list of texts; this is not: {error}") from None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise GrammarError("choices are a JSON list of texts")
    return value


def lint(text: str, dialect: str) -> dict[str, Any]:
    """Say what is wrong with a grammar, and how large it is.

    Returns
    -------
    dict
        ``dialect``. ``errors``: why it is refused, each with ``message``, ``line`` and ``column`` (or ``None``).
        ``warnings``: unused rules, places from which masks may lead to a dead end, terminals that cannot be separated
        from what follows. ``conflicts``: where the parser follows several ways, with ``before`` (symbols read),
        ``next`` (``None`` at the end), ``example`` (a text) and ``actions``; ``sizes`` has their number. ``sizes``:
        terminals, productions, states of lexer and parser.

    Examples
    --------
    >>> report = lint('start: e\\ne: e "+" e | /[0-9]+/', "lark")
    >>> report["conflicts"][0]["example"], report["conflicts"][0]["actions"]
    ('0+0+', ['shift', 'e: e PLUS e'])
    """
    report: dict[str, Any] = {"dialect": dialect, "errors": [], "warnings": [], "conflicts": [], "sizes": {}}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GrammarWarning)
        try:
            found = _native.lint(read(text, dialect).ir.to_json(), MAX_CONFLICTS)
        except GlrgridError as error:
            place = {key: getattr(error, key, None) for key in ("line", "column")}
            report["errors"].append({"message": str(error), **place})
            found = {"sizes": {}, "warnings": [], "conflicts": []}
    report["warnings"] = [str(w.message) for w in caught if issubclass(w.category, GrammarWarning)]
    report["warnings"] += found["warnings"]
    report["sizes"] = found["sizes"]
    for before, following, example, actions in found["conflicts"]:
        example = example.decode("utf-8", "backslashreplace")
        report["conflicts"].append(
            {"before": before, "next": following, "example": example, "actions": actions}
        )
    return report
