"""Compile grammars, and load what was compiled."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable

from glrgrid import _native
from glrgrid.errors import GrammarError
from glrgrid.grammar import Grammar
from glrgrid.vocab import Vocab

__all__ = ["CompileWarning", "compile", "load"]


class CompileWarning(UserWarning):
    """The grammar compiles, but something about it will surprise its users."""


def compile(
    grammar: Grammar,
    vocab: Vocab,
    mode: str = "aot",
    *,
    progress: Callable[[str, float], object] | None = None,
) -> _native.CompiledGrammar:
    """Compile a grammar for a vocabulary.

    The same grammar and vocabulary always give the same artifact, byte for byte. The GIL is released while it runs.

    Parameters
    ----------
    grammar : Grammar
        What the output must be.
    vocab : Vocab
        The tokens it is spelt with. What compiling needs of it is prepared once, in the first call.
    mode : str
        ``"aot"``: everything is computed now. ``"lazy"``: lexer and parser tables are computed now, what masks are made
        of when the first matcher gets there; all matchers share it. Masks are the same bit for bit.
    progress : callable, optional
        Called as ``progress(stage, share)`` with the stage's name and how much of it is done, 0 to 1. If it raises, the
        build stops and the exception is passed on.

    Returns
    -------
    CompiledGrammar
        Serves any number of matchers on any number of threads; ``.stats`` has sizes and milliseconds by stage,
        ``.warnings`` what the grammar's author should know.

    Raises
    ------
    GrammarError
        If the grammar cannot be compiled: no text matches it, a terminal matches the empty string, ...
    BudgetExceeded
        If its automata outgrow what the engine can address.
    TypeError
        If an argument is no ``Grammar`` or no ``Vocab``; grammar text and names of tokenizers are neither.

    Warns
    -----
    CompileWarning
        With the first of ``.warnings``, if there are any: terminals that can never be used, and places from which
        masks may lead to a dead end or to a lexeme that cannot end.
    """
    if not isinstance(grammar, Grammar):
        hint = "pass Grammar.from_lark(text)" if isinstance(grammar, str) else "pass a Grammar"
        raise TypeError(
            f"grammar is {_described(grammar)}; {hint}, as in compile(Grammar.from_lark(text), vocab)"
        )
    _check_vocab(vocab)
    if mode not in ("aot", "lazy"):
        raise GrammarError(f'unknown mode {mode!r}; expected "aot" or "lazy"')
    compiled = _native.compile(grammar._source, vocab._native, lazy=mode == "lazy", progress=progress)
    if compiled.warnings:
        more = len(compiled.warnings) - 1
        text = compiled.warnings[0] + (f" (and {more} more, see CompiledGrammar.warnings)" if more else "")
        warnings.warn(CompileWarning(text), stacklevel=2)
    return compiled


def load(source: str | os.PathLike[str] | bytes, vocab: Vocab) -> _native.CompiledGrammar:
    """Load an artifact that :meth:`CompiledGrammar.save` wrote.

    The file is mapped, so processes that load it share its memory; nothing is rebuilt.

    Parameters
    ----------
    source : path or bytes
        The file, or its contents.
    vocab : Vocab
        The vocabulary it was compiled for.

    Raises
    ------
    ArtifactError
        If it is missing, damaged, of another version, or was compiled for another vocabulary; the message says which.
    """
    if not isinstance(source, (str, bytes, os.PathLike)):
        raise TypeError(f"source is {_described(source)}; pass the path of an artifact, or its bytes")
    _check_vocab(vocab)
    return _native.load(source if isinstance(source, bytes) else os.fspath(source), vocab._native)


def _check_vocab(vocab: object) -> None:
    if not isinstance(vocab, Vocab):
        raise TypeError(
            f"vocab is {_described(vocab)}; pass a Vocab: Vocab.default(), Vocab.from_file(path) or "
            "Vocab.from_tokenizer(tokenizer)"
        )


def _described(value: object) -> str:
    """A value of the wrong type, for a message: its type, and its beginning if it is text."""
    if value is None:
        return "None"
    kind = f"of type {type(value).__name__}"
    return f"{kind} ({value[:30]!r})" if isinstance(value, str) else kind
