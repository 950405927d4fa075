"""Compile grammars, and load what was compiled."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable

from glrgrid import _native
from glrgrid._native import CancelToken
from glrgrid.errors import StateError
from glrgrid.grammar import Grammar
from glrgrid.vocab import Vocab

__all__ = ["CancelToken", "CompileWarning", "compile", "load"]


class CompileWarning(UserWarning):
    """The grammar compiles, but something about it will surprise its users."""


def compile(
    grammar: Grammar,
    vocab: Vocab,
    mode: str = "aot",
    *,
    max_seconds: float | None = None,
    max_memory_mb: float | None = None,
    max_artifact_mb: float | None = None,
    on_budget: str = "partial",
    max_threads: int | None = None,
    cancel: CancelToken | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> _native.CompiledGrammar:
    """Compile a grammar for a vocabulary.

    The same grammar and vocabulary always give the same artifact, byte for byte. The GIL is released while it runs, and
    Ctrl-C stops it.

    Parameters
    ----------
    grammar : Grammar
        What the output must be.
    vocab : Vocab
        The tokens it is spelt with. What compiling needs of it is prepared once, in the first call.
    mode : {"aot", "lazy"}
        ``"aot"``: everything is computed now. ``"lazy"``: lexer and parser tables are computed now, what masks are made
        of when the first matcher gets there; all matchers share it. Masks are the same bit for bit.
    max_seconds : float, optional
        Time that the build may take, in seconds. If it may stay partial, the lexer and parser tables, without which
        nothing can be served, do not count.
    max_memory_mb : float, optional
        Memory that the build may take, in MiB. Builds that run at the same time are counted together.
    max_artifact_mb : float, optional
        Size that the artifact may have, in MiB.
    on_budget : {"partial", "error"}
        What to do when a limit is passed. ``"partial"``: serve as in lazy mode, and say so in ``.warnings``;
        ``.stats["rows_missing"]`` counts the lexer states whose rows were not needed yet. ``"error"``: raise. A build
        that may stay partial and has no limit stays so past 1 GiB, or if the lexer has more than 16,384 states.
    max_threads : int, optional
        Threads that the build may use; one for each core by default.
    cancel : CancelToken, optional
        Stops the build, from another thread, within a tenth of a second.
    progress : callable, optional
        Called as ``progress(stage, share)`` with the stage's name and how much of it is done, 0 to 1. If it raises, the
        build stops and the exception is passed on.

    Returns
    -------
    CompiledGrammar
        Serves any number of matchers on any number of threads; ``.stats`` has sizes, and milliseconds and the highest
        number of bytes allocated by stage, ``.warnings`` what the grammar's author should know.

    Raises
    ------
    GrammarError
        If the grammar cannot be compiled: no text matches it, a terminal matches the empty string, ...
    BudgetExceeded
        If a limit is passed with ``on_budget="error"``, or before the lexer and parser tables were there; or if these
        outgrow what the engine can address.
    Cancelled
        If ``cancel`` was used.
    TypeError
        If an argument is no ``Grammar`` or no ``Vocab``; grammar text and names of tokenizers are neither.

    Warns
    -----
    CompileWarning
        With the first of ``.warnings``, if there are any: terminals that can never be used, places from which masks may
        lead to a dead end or to a lexeme that cannot end, and passed limits.
    """
    if not isinstance(grammar, Grammar):
        hint = "pass Grammar.from_lark(text)" if isinstance(grammar, str) else "pass a Grammar"
        raise TypeError(
            f"grammar is {_described(grammar)}; {hint}, as in compile(Grammar.from_lark(text), vocab)"
        )
    _check_vocab(vocab)
    if mode not in ("aot", "lazy"):
        raise StateError(f'unknown mode {mode!r}; expected "aot" or "lazy"')
    if on_budget not in ("partial", "error"):
        raise StateError(f'unknown on_budget {on_budget!r}; expected "partial" or "error"')
    if max_threads is not None and not 1 <= max_threads <= 1024:
        raise StateError(f"max_threads is {max_threads}; expected 1 to 1024, or None")
    compiled = _native.compile(
        grammar._source(vocab),
        vocab._native,
        lazy=mode == "lazy",
        max_seconds=max_seconds,
        max_memory_mb=max_memory_mb,
        max_artifact_mb=max_artifact_mb,
        partial=on_budget == "partial",
        max_threads=max_threads,
        cancel=cancel,
        progress=progress,
    )
    if compiled.warnings:
        more = len(compiled.warnings) - 1
        text = compiled.warnings[0] + (f" (and {more} more, see CompiledGrammar.warnings)" if more else "")
        warnings.warn(CompileWarning(text), stacklevel=2)
    return compiled


def load(source: str | os.PathLike[str] | bytes, vocab: Vocab) -> _native.CompiledGrammar:
    """Load an artifact that :meth:`CompiledGrammar.save` wrote.

    The file is mapped, so processes that load it share its memory; nothing is rebuilt. A partial artifact, of lazy mode
    or of a build that passed a limit, holds its grammar: lexer and parser tables are made again and compared with the
    file's, and the rest is filled on demand.

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
