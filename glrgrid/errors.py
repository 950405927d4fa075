"""The exception tree. Everything glrgrid raises on purpose derives from :class:`GlrgridError`.

The native module raises these same classes, so one ``except`` serves both halves of the package. Each message says what
was wrong, where, and what to do about it.
"""

from __future__ import annotations

__all__ = [
    "ArtifactError",
    "BudgetExceeded",
    "Cancelled",
    "DeadEnd",
    "GlrgridError",
    "GrammarError",
    "InternalError",
    "PolicyError",
    "SchemaError",
    "StateError",
    "VocabError",
]


class GlrgridError(Exception):
    """Base class of every error that glrgrid raises on purpose."""


class GrammarError(GlrgridError):
    """The grammar text, or the grammar it describes, cannot be used.

    Attributes
    ----------
    line, column : int or None
        1-based position in the grammar text, where one is known.
    """

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message if line is None else f"{message} (line {line}, column {column})")
        self.line = line
        self.column = column


class SchemaError(GlrgridError):
    """A JSON Schema uses something that is not supported, or is not a schema.

    Attributes
    ----------
    reason : str
        What is wrong, without the place.
    pointer : str
        JSON Pointer of the offending place, ``""`` for the whole schema.
    """

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(f"{message} (at {pointer or 'the root'})")
        self.reason = message
        self.pointer = pointer


class VocabError(GlrgridError):
    """A tokenizer file or token table is malformed, or is of a kind that cannot be read."""


class ArtifactError(GlrgridError):
    """A compiled artifact is damaged, of another version, or was built for another vocabulary."""


class BudgetExceeded(GlrgridError):
    """A build passed a limit its caller, or the engine, had set."""


class PolicyError(GlrgridError):
    """A role or catalog asks for something that cannot be granted or does not exist."""


class StateError(GlrgridError):
    """A matcher, bitmask or vocabulary was used in a way it does not allow; nothing was changed."""


class Cancelled(GlrgridError):
    """A build was stopped by its :class:`CancelToken`; the message names the stage it was in."""


class DeadEnd(GlrgridError):
    """The mask is empty: no token can continue the output, though it is not yet complete."""


class InternalError(GlrgridError):
    """A broken invariant inside glrgrid. Please report it."""
