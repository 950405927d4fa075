"""A dialect of SQL: a grammar in Lark's format, and a TOML file that says what its names mean."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from ..errors import GrammarError
from ..grammar import lark
from ..grammar.ir import Expr, GrammarIR

__all__ = ["Dialect"]


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """A dialect; immutable.

    Attributes
    ----------
    name, version : str
        Such as ``"sqlite"``, and the version of the database that it describes.
    ir : GrammarIR
        The whole grammar, in which any identifier is a name.
    rules : mapping
        The TOML file: ``clauses``, ``functions``, ``implicit_columns`` and so on.
    keywords : frozenset of str
        In lower case: the words that the lexer takes for more than a name.
    names : frozenset of str
        Keywords that may be names where they cannot be meant as keywords.
    fingerprint : str
        Of both files, hexadecimal.
    """

    name: str
    version: str
    ir: GrammarIR
    rules: Mapping[str, Any]
    keywords: frozenset[str]
    names: frozenset[str]
    fingerprint: str

    @classmethod
    def load(cls, name: str) -> Dialect:
        """Load a bundled dialect, once.

        Raises
        ------
        GrammarError
            There is none of that name.
        """
        return _load(name)

    @classmethod
    def of(cls, dialect: str | Dialect) -> Dialect:
        """A dialect, by its name if it is one."""
        return cls.load(dialect) if isinstance(dialect, str) else dialect

    @property
    def safe_functions(self) -> frozenset[str]:
        """What a role may call unless it says otherwise; table functions included."""
        functions = self.rules["functions"]
        return frozenset(functions["safe"]) | frozenset(functions["safe_tables"])

    @property
    def known_functions(self) -> frozenset[str]:
        """Every function that the database may have built in."""
        return self.safe_functions | frozenset(self.rules["functions"]["others"])


@cache
def _load(name: str) -> Dialect:
    folder = resources.files(f"{__package__}.dialects")
    known = sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))
    if name not in known:
        raise GrammarError(f'no SQL dialect "{name}"; there are: {", ".join(known)}')
    texts = [(folder / f"{name}.{kind}").read_text("utf-8") for kind in ("lark", "toml")]
    digest = hashlib.blake2b("\0".join(texts).encode(), digest_size=32).hexdigest()
    rules = tomllib.loads(texts[1])
    ir = lark.read(texts[0])
    words = (text for t in ir.terminals if t.literal or t.name == "RESERVED" for text in _texts(t.expr))
    keywords = frozenset(word for word in words if word[0].isalpha())
    return Dialect(rules["name"], rules["version"], ir, rules, keywords, keywords & _names(ir), digest)


def _names(ir: GrammarIR) -> frozenset[str]:
    """The texts of literals that fall back to a name, or are listed as one."""
    listed = {
        s for p in ir.productions if ir.nonterminals[p.lhs].name == "word" and len(p.rhs) == 1 for s in p.rhs
    }
    literals = (
        t for i, t in enumerate(ir.terminals) if t.literal and (t.fallback is not None or i in listed)
    )
    return frozenset(text for t in literals for text in _texts(t.expr))


def _texts(expr: Expr) -> list[str]:
    """The texts of a literal, or of several, in lower case."""
    tag, value = expr[0], expr[1]
    if tag == "alt":
        return [text for part in value for text in _texts(part)]
    if tag == "cat":
        return ["".join(text for part in value for text in _texts(part))]
    return [value if tag == "lit" else chr(value[-1][0])]
