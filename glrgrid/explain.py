"""What may come next, for people: explanations, and sets of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from glrgrid._native import Matcher
from glrgrid.errors import DeadEnd, GlrgridError

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["Explanation", "allowed_tokens"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether a token, or some text, may come next, and why; see :meth:`Matcher.explain`.

    Attributes
    ----------
    allowed : bool
        Whether it may.
    reason : str
        Why, in a sentence.
    at_byte : int
        The first of its bytes that cannot stand where it does; their number if all can.
    expected : list of str
        Names of the terminals that could have come there; if it is allowed, of those that may come after it.
    found : list of str
        Names of the terminals that came instead; empty if the text is no terminal.
    """

    allowed: bool
    reason: str
    at_byte: int
    expected: list[str]
    found: list[str]

    def __str__(self) -> str:
        return f"{'allowed' if self.allowed else 'not allowed'}: {self.reason}"


def allowed_tokens(matcher: Matcher) -> BitMap:
    """The token ids that may come next, as a set.

    Needs ``pyroaring``, which the extra ``glrgrid[explain]`` installs. For decoding, use
    :meth:`Matcher.fill_next_token_bitmask`.

    Returns
    -------
    pyroaring.BitMap
        Ids in ascending order; empty at a dead end.

    Raises
    ------
    StateError
        If an end token was accepted.
    GlrgridError
        If ``pyroaring`` is not installed.
    """
    try:
        from pyroaring import BitMap
    except ImportError as error:
        raise GlrgridError(
            "allowed_tokens needs the package pyroaring; install it, or use Matcher.mask"
        ) from error
    try:
        mask: Any = matcher.mask()
    except DeadEnd:
        return BitMap()
    return BitMap(mask.nonzero()[0].tolist())
