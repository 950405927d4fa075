"""Typed stub of the native module; checked against the binary by the tests."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__version__: str

class Vocab:
    """Token ids and their bytes."""

    def __new__(cls, tokens: Sequence[bytes | None], eos_ids: Sequence[int]) -> Vocab: ...
    def prepare(self) -> None:
        """Build what compiling needs of the vocabulary now, instead of in the first ``compile``."""
    @property
    def size(self) -> int: ...
    @property
    def eos_ids(self) -> list[int]: ...
    @property
    def fingerprint(self) -> str: ...
    def token_bytes(self, token_id: int) -> bytes | None: ...

class CompiledGrammar:
    """A grammar compiled for a vocabulary; serves any number of matchers on any number of threads."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the artifact to ``path``, atomically.

        Raises
        ------
        ArtifactError
            If the file cannot be written.
        """
    def to_bytes(self) -> bytes:
        """The artifact's bytes, as ``save`` writes them."""
    @property
    def stats(self) -> dict[str, Any]:
        """Milliseconds by stage (of the build, empty if loaded), counts, and artifact bytes by section."""
    @property
    def warnings(self) -> list[str]:
        """What the author of the grammar should know."""
    @property
    def grammar_fingerprint(self) -> str:
        """Fingerprint of the grammar, hexadecimal."""
    @property
    def vocab_fingerprint(self) -> str:
        """Fingerprint of the vocabulary, hexadecimal."""
    @property
    def vocab_size(self) -> int:
        """Width of the logits, padding included."""

class Matcher:
    """One output being decoded.

    Every method either does what it says or raises and leaves the matcher as it was. A matcher must not be used by two
    threads at once; any number of matchers may share a compiled grammar.
    """

    def __new__(cls, compiled: CompiledGrammar) -> Matcher: ...
    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> None:
        """Write the tokens allowed next into row ``index`` of ``bitmask``.

        Parameters
        ----------
        bitmask : int32 array or CPU tensor of shape (batch, ceil(size / 32)), or (ceil(size / 32),)
            C-contiguous and writable. Bit ``t % 32`` of word ``t // 32`` is token id ``t``; the whole row is written.
            End ids are set if and only if the output so far is complete.
        index : int
            Row.

        Raises
        ------
        StateError
            For another dtype, shape or layout, a row out of range, or after an end token; the bitmask is untouched.
        DeadEnd
            If no token is allowed and the output is not complete.
        """
    def accept_token(self, token_id: int) -> bool:
        """Take a token. False, with nothing changed, if the mask does not allow it.

        Raises
        ------
        StateError
            If the id is out of range or an end token was accepted before.
        """
    def accept_bytes(self, data: bytes) -> int:
        """Take bytes up to the first that no continuation allows; return how many were taken.

        Taking any counts as one step for :meth:`rollback`.

        Raises
        ------
        StateError
            If an end token was accepted before.
        """
    def rollback(self, n: int = 1) -> None:
        """Undo the last ``n`` steps, accepted end tokens included.

        Raises
        ------
        StateError
            If fewer steps were taken.
        """
    def fork(self) -> Matcher:
        """An independent matcher in the same state, with the same history."""
    def reset(self) -> None:
        """Back to the empty output."""
    def is_accepting(self) -> bool:
        """Whether the output so far is a sentence, so that an end token is allowed."""
    def is_terminated(self) -> bool:
        """Whether an end token was accepted."""
    def mask(self) -> npt.NDArray[np.bool_]:
        """The next mask as a bool array of shape (size,), for people; raises as ``fill_next_token_bitmask``."""
    @property
    def steps(self) -> int:
        """Steps that can be rolled back."""
    @property
    def branch_counts(self) -> tuple[int, int]:
        """Live branches, and stack tops in all of them: more than (1, 1) where the text so far is ambiguous."""

def compile(
    ir: str,
    vocab: Vocab,
    *,
    progress: Callable[[str, float], object] | None = None,
    shared_tokens: int | None = None,
    min_agreement: int | None = None,
) -> CompiledGrammar: ...
def load(source: str | bytes, vocab: Vocab) -> CompiledGrammar: ...
