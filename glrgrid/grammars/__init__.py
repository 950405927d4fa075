"""Grammars that come with the package, as Lark text."""

from __future__ import annotations

from importlib import resources

from ..errors import GrammarError

__all__ = ["load", "names"]


def names() -> list[str]:
    """Names of the bundled grammars, sorted."""
    files = (entry.name for entry in resources.files(__package__).iterdir())
    return sorted(name.removesuffix(".lark") for name in files if name.endswith(".lark"))


def load(name: str) -> str:
    """Text of a bundled grammar.

    Parameters
    ----------
    name : str
        One of :func:`names`, such as ``"sql_core"``.

    Returns
    -------
    str
        Lark text, for :meth:`glrgrid.grammar.Grammar.from_lark`.

    Raises
    ------
    GrammarError
        There is no such grammar.
    """
    known = names()
    if name not in known:
        raise GrammarError(f'no bundled grammar "{name}"; there are: {", ".join(known)}')
    return (resources.files(__package__) / f"{name}.lark").read_text("utf-8")
