"""Typed stub of the native module; checked against the binary by the tests."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from glrgrid.explain import Explanation

__version__: str

class Vocab:
    """Token ids and their bytes."""

    def __new__(
        cls,
        tokens: Sequence[bytes | None],
        eos_ids: Sequence[int],
        names: Sequence[tuple[str, int]] | None = None,
        markers: Sequence[int] | None = None,
    ) -> Vocab: ...
    def prepare(self) -> None:
        """Build what compiling needs of the vocabulary now, instead of in the first ``compile``."""
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the vocabulary and what compiling needs of it, atomically.

        Raises
        ------
        VocabError
            If the file cannot be written.
        """
    @staticmethod
    def load(path: str | os.PathLike[str]) -> Vocab:
        """Map what ``save`` wrote.

        Raises
        ------
        VocabError
            If it is missing, damaged or of another version.
        """
    @property
    def size(self) -> int:
        """Number of ids, padding included."""
    @property
    def names(self) -> list[tuple[str, int]]:
        """Ids of tokens by the names they are known by, sorted."""
    @property
    def markers(self) -> list[int]:
        """Ids of markers, ascending: named tokens that a grammar may also name by their text."""
    @property
    def eos_ids(self) -> list[int]:
        """Ids that end the output, ascending."""
    @property
    def fingerprint(self) -> str:
        """BLAKE3 of ids, bytes and end ids, hexadecimal."""
    @property
    def missing_bytes(self) -> bytes:
        """Bytes that no token of one byte spells."""
    def token_bytes(self, token_id: int) -> bytes | None:
        """Bytes of a token; None for ids that spell no text."""

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

    Every method either does what it says or raises and leaves the matcher as it was. A matcher serves one call at a
    time; a second one, from another thread, raises StateError. Any number of matchers may share a compiled grammar.
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
    def validate_tokens(self, ids: Iterable[int]) -> int:
        """How many of ``ids`` could be accepted one after the other; the state does not change.

        End tokens count like others; nothing is acceptable after one, so the result is 0 if one was accepted before.

        Raises
        ------
        StateError
            If any of the ids is out of range, wherever it stands.
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
    def forced_bytes(self) -> bytes:
        """The text that must come next: bytes as long as exactly one can follow and the output is not complete.

        At most 4,096 bytes; empty after an end token.
        """
    def forced_tokens(self, encode: Any = None) -> list[int]:
        """The tokens that must come next, if it is certain how the tokenizer would write them; never end ids.

        Parameters
        ----------
        encode : tokenizers.Tokenizer, transformers tokenizer or callable from str to token ids, optional
            The tokenizer of the vocabulary. Without it, the tokens are those of positions at which the mask allows a
            single id, of which there are few: nearly every text can be spelt in several ways.

        Returns
        -------
        list of int
            Acceptable one after the other. They are what ``encode`` gives, after the output so far, for every text
            that the language allows from here, provided that the output itself is what it gives. Empty where any
            choice is left.

        Notes
        -----
        The forced text w (:meth:`forced_bytes`) is encoded behind the end of the output. Its last tokens might be
        others if more text followed: a token of the longer text may lie across the end of w. The mask knows where
        such tokens can start. Byte pair encoding is closed under prefixes, so before such a token, the longer text is
        encoded as w cut off there is. What all these encodings, and those of w with one character of each kind that
        may follow it (which decide how text is split into words first), have in common is certain.

        That argument holds for byte pair encoding behind a splitter that looks at most one character ahead. Ids that
        do not spell the text (a tokenizer that normalises, or another vocabulary's) are never returned.

        Raises
        ------
        StateError
            If ``encode`` cannot encode, or gives ids that are out of range.
        """
    def expected_terminals(self) -> list[str]:
        """Names of the terminals that may come next, or that the pending lexeme can still become.

        In the order of the grammar; then "end of input" if the output is complete, and "ignored text" where that may
        come. Empty after an end token.
        """
    def explain(self, token_id: int) -> Explanation:
        """Why a token is, or is not, allowed next. For people: reads the whole output again.

        Raises
        ------
        StateError
            If the id is out of range or an end token was accepted before.
        """
    def explain_bytes(self, data: bytes) -> Explanation:
        """As :meth:`explain`, of text."""
    def mask(self) -> npt.NDArray[np.bool_]:
        """The next mask as a bool array of shape (size,), for people; raises as ``fill_next_token_bitmask``."""
    @property
    def steps(self) -> int:
        """Steps that can be rolled back."""
    @property
    def branch_counts(self) -> tuple[int, int]:
        """Live branches, and stack tops in all of them: more than (1, 1) where the text so far is ambiguous."""

class SchemaGrammar:
    """The grammar of a JSON Schema."""

    def to_json(self) -> str:
        """Canonical JSON of the grammar, as ``GrammarIR.to_json`` writes it."""
    @property
    def warnings(self) -> list[str]:
        """What is not enforced."""

def lower_schema(
    text: str,
    *,
    separators: tuple[str, str] | None = None,
    max_newlines: int = 2,
    max_blanks: int = 64,
    any_order: bool = False,
    one_of_any: bool = False,
    lenient: bool = False,
) -> SchemaGrammar:
    """Lower a JSON Schema, given as text; see ``Grammar.from_json_schema``."""

class CancelToken:
    """Stops the builds it was given to."""

    def __new__(cls) -> CancelToken: ...
    def cancel(self) -> None:
        """Stop them. A build that sees this raises ``Cancelled``."""

    @property
    def is_cancelled(self) -> bool:
        """Whether ``cancel`` was called."""

def compile(
    ir: str | SchemaGrammar,
    vocab: Vocab,
    *,
    lazy: bool = False,
    max_seconds: float | None = None,
    max_memory_mb: float | None = None,
    max_artifact_mb: float | None = None,
    partial: bool = True,
    max_threads: int | None = None,
    cancel: CancelToken | None = None,
    progress: Callable[[str, float], object] | None = None,
    shared_tokens: int | None = None,
    min_agreement: int | None = None,
    overlapping_sets: int | None = None,
    copied_states: int | None = None,
) -> CompiledGrammar:
    """Compile a grammar, in canonical IR text or as it was lowered."""

def load(source: str | bytes, vocab: Vocab) -> CompiledGrammar:
    """Load an artifact, from a file (mapped) or from its bytes."""

def fill_bitmask_batch(matchers: Iterable[Matcher], bitmask: Any, rows: Iterable[int] | None = None) -> None:
    """Fill the rows of many matchers, on several threads and without the GIL.

    As ``fill_next_token_bitmask`` for each matcher. Small batches are filled by the calling thread.

    Parameters
    ----------
    matchers : iterable of Matcher
        All different, of any grammars compiled for vocabularies of one size. None may be used meanwhile.
    bitmask : int32 array or CPU tensor of shape (batch, ceil(size / 32))
        C-contiguous and writable. Other threads must leave these rows alone meanwhile.
    rows : iterable of int, optional
        Row of each matcher, all different; other rows are left as they are. Default: the matchers' positions.

    Raises
    ------
    StateError
        For bitmasks, rows or matchers that do not fit, a matcher that is given twice, in use, or that accepted an end
        token. Nothing was written.
    DeadEnd
        If no token is allowed for some matcher and its output is not complete; the first is named. All other rows are
        filled, its own is zero.
    """

def find_cuts(ir: str, max_states: int) -> tuple[list[tuple[bytes, int, int, int]], str | None]:
    """Where the longest match could cut a sentence elsewhere than the grammar does.

    Parameters
    ----------
    ir : str
        Canonical JSON of a grammar.
    max_states : int
        Largest automaton to build.

    Returns
    -------
    list of (bytes, int, int, int)
        A text, the terminal that should end there, a terminal that can match more, and the terminal that follows.
    str or None
        If an automaton is too large, the terminal's name, empty for all of them together; nothing is known then.

    Raises
    ------
    GrammarError
        If the grammar derives nothing, or a terminal is empty or matches the empty string.
    """

def lint(ir: str, max_conflicts: int) -> dict[str, Any]:
    """What can be said about a grammar without a vocabulary.

    Returns
    -------
    dict
        ``sizes`` of lexer and parser; ``warnings`` that compiling would give; the first ``conflicts``, each the names
        of the symbols read, that of the next terminal (``None`` at the end), an example text up to there, and what
        the parser can do.

    Raises
    ------
    GrammarError, BudgetExceeded
        As compiling does.
    """

def inspect(source: str | bytes) -> dict[str, Any]:
    """What an artifact, a file or its bytes, holds: fingerprints, terminals, counts, bytes of each section.

    Raises
    ------
    ArtifactError
        If it is missing, damaged or of another version.
    """

def dot(source: str | bytes, automaton: str, max_states: int = 200) -> str:
    """The ``"lexer"`` or the ``"parser"`` automaton of an artifact in Graphviz's language.

    Raises
    ------
    ArtifactError
        If it is missing, damaged or of another version.
    BudgetExceeded
        If the automaton has more than ``max_states`` states.
    StateError
        For another automaton.
    """
