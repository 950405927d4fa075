"""Vocabularies: which bytes each token id spells.

A :class:`Vocab` turns a tokenizer into the one thing the engine needs of it, a table from id to bytes, as
wide as the logits it will mask. Where the table came from is forgotten; nothing here encodes text.

Invariants
    1. Ids are those of the tokenizer, ``0 <= id < size``. Several ids may spell the same bytes.
    2. An id without bytes (``None``) is a special token, a marker, an end-of-sequence id, a hole or padding. Text
       never matches it.
    3. Each format has a reader of its own, which makes a :class:`~glrgrid.vocab.table.Table`. Width and
    end-of-sequence
       ids are settled by the same rules for all (:func:`~glrgrid.vocab.table.finish`).

Reading Llama 3's 128,256 ids takes a third of a second, most of it in the JSON parser.

``docs/vocabularies.md`` tells the formats, the rules and the traps. Not done here: WordPiece and other
tokenizers that lose bytes are refused by name."""

from __future__ import annotations

import functools
import operator
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, SupportsIndex

from .._native import Vocab as NativeVocab
from ..data import default_tokenizer_path
from ..errors import StateError, VocabError
from . import files, objects
from .markers import is_marker
from .table import MAX_IDS, Table, VocabWarning, as_id, eos_list, finish, lay_out, require_below, settle_width

__all__ = ["MAX_IDS", "Vocab", "VocabWarning"]


class Vocab:
    """An immutable table of the bytes that each token id spells.

    Make one with :meth:`from_file`, :meth:`from_tokenizer`, :meth:`from_bytes` or :meth:`default`.

    Parameters
    ----------
    tokens : sequence of bytes or None
        One entry per id; its length is the width of the logits.
    eos_ids : iterable of int
        Ids that end a sequence.
    names : mapping from str to int, optional
        Ids by the names that grammars can use for them.
    markers : iterable of str, optional
        Those of the names that are markers: see :attr:`markers`.

    Notes
    -----
    A :class:`VocabWarning` lists the bytes that no single-byte token spells. With such a vocabulary a grammar
    may demand a byte that cannot be written.

    Examples
    --------
    >>> vocab = Vocab.default()
    >>> vocab.token_bytes(vocab.eos_ids[0]) is None
    True
    >>> vocab.missing_bytes
    ()
    """

    __slots__ = ("_missing_bytes", "_native")

    _missing_bytes: tuple[int, ...]
    _native: NativeVocab

    def __init__(
        self,
        tokens: Sequence[bytes | None],
        eos_ids: Iterable[int] = (),
        names: Mapping[str, int] | None = None,
        markers: Iterable[str] = (),
    ) -> None:
        named = dict(names or {})
        marked = [named[name] for name in markers]
        self._adopt(NativeVocab(list(tokens), list(eos_ids), list(named.items()), marked))

    def _adopt(self, native: NativeVocab) -> None:
        missing = tuple(native.missing_bytes)
        object.__setattr__(self, "_native", native)
        object.__setattr__(self, "_missing_bytes", missing)
        if missing:
            warnings.warn(
                f"{len(missing)} of 256 bytes have no token of their own ({_byte_ranges(missing)}); outputs "
                f"that need them may be impossible to write",
                VocabWarning,
                stacklevel=4,
            )

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        eos_ids: Iterable[int] | int | None = None,
        size: int | None = None,
        added_tokens: str = "auto",
    ) -> Self:
        """Read the file of a tokenizer.

        Parameters
        ----------
        path : str or path-like
            A ``tokenizer.json`` (byte-level BPE, or BPE and Unigram with ``▁`` for spaces), a ``tekken.json``, a
            tiktoken rank file, a GGUF file, a SentencePiece model, or what :meth:`save` wrote, told apart by
            what they hold; or a folder with one of them, such as that of a Hugging Face model.
        eos_ids : int or iterable of int, optional
            Ids that end a sequence. Left out, they come from the files next to ``path``: ``eos_token_id`` of
            ``generation_config.json`` (or else of ``config.json``) together with ``eos_token`` of
            ``tokenizer_config.json``; without those, what the file itself says, and every special token with
            a well-known name.
        size : int, optional
            Width of the logits. Left out: ``vocab_size`` of the ``config.json`` next to ``path``, or what the
            file itself says, or else the highest id + 1. A larger one is padded with ids without bytes; with
            a smaller one the ids at and beyond it are dropped.
        added_tokens : {"auto", "text", "marker"}
            What added tokens are that are not special. ``"auto"``: those that look like marks of a format, such as
            ``<think>`` and ``<|fim_middle|>``, are :attr:`markers`, which free text does not match; runs of spaces,
            words and tags of HTML are text. ``"text"``: all are text. ``"marker"``: all are markers. What was saved
            stays as it was with ``"auto"``.

        Raises
        ------
        VocabError
            The file cannot be read, is malformed (the message gives the place), or is of another kind of
            tokenizer.

        Warns
        -----
        VocabWarning
            The vocabulary is not byte-complete, no end-of-sequence id was found, or the ``tokenizers``
            library would give an added token another id than the file does.

        Notes
        -----
        Special tokens, markers, and those for unknown text, spell nothing, nor do end-of-sequence ids, whatever the
        file says.

        Byte-level tokens spell the bytes that their characters stand for in GPT-2's byte alphabet. One with
        any other character spells its own UTF-8, which is what ``tokenizers`` decodes it to. Other added tokens
        that are not special spell the UTF-8 of their content, the text that encodes to them. ``tokenizers``
        agrees for ASCII content and wherever a character lies outside the byte alphabet, but decodes content
        that lies wholly inside it as if it were an ordinary token: an added ``naïve`` comes back with the
        single byte ``0xEF`` in place of ``ï``.

        Tokens of SentencePiece and its kin spell their UTF-8 with a space for each ``▁``; ``<0x41>`` and the
        like spell their byte. The space that such tokenizers put before a text, and take away again from the
        start of what they decode, belongs to the token: ``▁Hello`` spells `` Hello`` everywhere.

        Normalisation and pre-tokenization only matter for encoding and are not looked at.
        """
        marks = _marks(added_tokens)
        file = files.locate(Path(path))
        if files.is_saved(file):
            vocab = cls.__new__(cls)
            vocab._adopt(NativeVocab.load(file))
            if eos_ids is None and size is None and added_tokens == "auto":
                return vocab
            was_marker = vocab.markers.__contains__
            return cls(
                *finish(
                    _reopened(vocab, file), eos_ids, size, was_marker if added_tokens == "auto" else marks
                )
            )
        table = files.read(file, want_eos=eos_ids is None, want_size=size is None)
        return cls(*finish(table, eos_ids, size, marks))

    @classmethod
    def from_tokenizer(
        cls,
        obj: object,
        *,
        eos_ids: Iterable[int] | int | None = None,
        size: int | None = None,
        added_tokens: str = "auto",
    ) -> Self:
        """Take the vocabulary of a loaded tokenizer.

        Parameters
        ----------
        obj : tokenizer
            A ``tokenizers.Tokenizer``, a ``transformers`` tokenizer (fast, or slow around SentencePiece,
            tiktoken or a byte alphabet), a ``tiktoken.Encoding``, a ``llama_cpp.Llama`` or a
            ``sentencepiece.SentencePieceProcessor``.
        eos_ids : int or iterable of int, optional
            Ids that end a sequence. Left out: ``obj.eos_token_id`` if there is one, else those that the
            tokenizer names and the special tokens with well-known names. A model's ``generation_config``
            often lists more.
        size : int, optional
            Width of the logits, as in :meth:`from_file`. A model's is often larger than its tokenizer's.
        added_tokens : {"auto", "text", "marker"}
            As in :meth:`from_file`.

        Raises
        ------
        VocabError
            The object is of another type, or its tokenizer of another kind.

        Notes
        -----
        Tokens spell what :meth:`from_file` says. A ``llama_cpp.Llama`` is read from the file of its model.
        """
        return cls(*finish(objects.read(obj), eos_ids, size, _marks(added_tokens)))

    @classmethod
    def from_bytes(
        cls,
        tokens: Mapping[int, bytes | None] | Sequence[bytes | None],
        eos_ids: Iterable[int] | int | None = None,
        size: int | None = None,
        names: Mapping[str, int] | None = None,
        markers: Iterable[str] = (),
    ) -> Self:
        """Make a vocabulary out of the bytes of each id.

        Parameters
        ----------
        tokens : mapping from id to bytes or None, or sequence of bytes or None
            ``None`` and ``b""`` stand for an id without bytes; so do ids that a mapping leaves out.
        eos_ids : int or iterable of int, optional
            Ids that end a sequence; they spell nothing, even if ``tokens`` gives them bytes. Without any, no mask
            ever allows the output to end, and a finished one comes to a dead end: left out, that is warned of; an
            empty list says it is meant.
        size : int, optional
            Width of the logits. Default: the highest id + 1, those of ``eos_ids`` and ``names`` included. Larger:
            padded. Smaller: ids at and beyond it are dropped.
        names : mapping from str to int, optional
            Ids by the names that grammars can use for them, such as ``{"<|tool_call|>": 128010}``.
        markers : iterable of str, optional
            Those of the names that are :attr:`markers`; they spell nothing, even if ``tokens`` gives them bytes.

        Raises
        ------
        VocabError
            An id is negative, no integer or too large, an entry is not bytes, a name is no text, or a marker is no
            name or ends the output.

        Warns
        -----
        VocabWarning
            The vocabulary is not byte-complete, or ``eos_ids`` was left out.

        Examples
        --------
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", VocabWarning)
        ...     vocab = Vocab.from_bytes({0: b"a", 1: b"ab"}, eos_ids=[2], size=4)
        >>> vocab.tokens
        [b'a', b'ab', None, None]
        """
        pieces = _checked_pieces(tokens)
        eos = [] if eos_ids is None else eos_list(eos_ids, "eos_ids")
        named = _checked_names(names or {})
        width = settle_width(size, max([*pieces, *eos, *named.values()], default=-1) + 1, "Vocab.from_bytes")
        require_below(eos, width)
        marked = _checked_markers(markers, named, eos)
        pieces |= dict.fromkeys(named[name] for name in marked)
        if eos_ids is None:
            warnings.warn(
                "Vocab.from_bytes: eos_ids was left out, so masks will never allow the output to end; pass the ids "
                "that end it, or [] if there are none",
                VocabWarning,
                stacklevel=2,
            )
        return cls(lay_out(pieces, eos, width), eos, named, [name for name in marked if named[name] < width])

    @staticmethod
    def default() -> Vocab:
        """The bundled vocabulary for trials and tests: 8,000 ids of byte-level BPE made for SQL and JSON."""
        return _default()

    @property
    def size(self) -> int:
        """Width of the logits, padding included."""
        return self._native.size

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """Ids that end a sequence, ascending."""
        return tuple(self._native.eos_ids)

    @property
    def names(self) -> dict[str, int]:
        """Ids of special and added tokens by name, as a new dict: what ``<name>`` in a grammar can name."""
        return dict(self._native.names)

    @property
    def markers(self) -> dict[str, int]:
        """Those of :attr:`names` that are marks of a format without being special, as a new dict.

        Like special tokens they spell nothing, so free text, patterns and strings of JSON never match them. But a
        grammar that writes the text of one out in a literal (``"<think>"`` in Lark, begin and end of a structural
        tag) means the token as well.
        """
        markers = set(self._native.markers)
        return {name: token_id for name, token_id in self._native.names if token_id in markers}

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digest of the whole table, names apart; artifacts are bound to it."""
        return self._native.fingerprint

    @property
    def missing_bytes(self) -> tuple[int, ...]:
        """Byte values that no single-byte token spells; empty for a byte-complete vocabulary."""
        return self._missing_bytes

    @property
    def tokens(self) -> list[bytes | None]:
        """What each id spells, as a new list of length ``size``."""
        return [self._native.token_bytes(token_id) for token_id in range(self.size)]

    def token_bytes(self, token_id: int) -> bytes | None:
        """What one id spells, or None.

        Raises
        ------
        StateError
            ``token_id`` is not an integer in ``range(size)``.
        """
        if isinstance(token_id, bool) or not isinstance(token_id, SupportsIndex):
            raise StateError(f"a token id is an integer, found {token_id!r}")
        index = operator.index(token_id)
        if not 0 <= index < self.size:
            raise StateError(
                f"token id {index} is outside of this vocabulary, whose ids are 0 to {self.size - 1}"
            )
        return self._native.token_bytes(index)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this vocabulary, prepared for compiling, to a file that :meth:`from_file` maps instead of reading.

        The file is replaced at once or not at all. Processes that map it share its memory.

        Raises
        ------
        VocabError
            It cannot be written.

        Notes
        -----
        Llama 3's 128,256 ids take 16 MB. Loading them takes 15 ms, where reading the ``tokenizer.json`` and
        preparing it takes 0.3 s.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Vocab.default().save(folder + "/default.vocab")
        ...     Vocab.from_file(folder + "/default.vocab") == Vocab.default()
        True
        """
        self._native.save(path)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Vocab is immutable; cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Vocab is immutable; cannot delete {name!r}")

    def __len__(self) -> int:
        return self.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocab):
            return NotImplemented
        # Names are what a file happens to say about ids; artifacts are bound to what the ids are.
        return self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tokens, self.eos_ids, self.names, list(self.markers))

    def __repr__(self) -> str:
        return f"Vocab(size={self.size}, eos_ids={self.eos_ids}, fingerprint={self.fingerprint[:12]!r})"


@functools.cache
def _default() -> Vocab:
    return Vocab.from_file(default_tokenizer_path())


def _checked_pieces(tokens: Mapping[int, bytes | None] | Sequence[bytes | None]) -> dict[int, bytes | None]:
    """The entries given to :meth:`Vocab.from_bytes`, checked."""
    if isinstance(tokens, (bytes, bytearray, memoryview, str)) or not isinstance(tokens, (Mapping, Sequence)):
        raise VocabError(
            f"tokens must map ids to bytes or list the bytes of each id, found {type(tokens).__name__}"
        )
    pieces: dict[int, bytes | None] = {}
    for key, value in tokens.items() if isinstance(tokens, Mapping) else enumerate(tokens):
        token_id = as_id(key, "tokens")
        if value is not None and not isinstance(value, (bytes, bytearray, memoryview)):
            hint = "encode it first" if isinstance(value, str) else "use None for an id without bytes"
            raise VocabError(
                f"tokens[{token_id}] must be bytes or None, found {type(value).__name__}; {hint}"
            )
        pieces[token_id] = bytes(value) if value else None
    return pieces


_MARKS: dict[str, Callable[[str], bool]] = {
    "auto": is_marker,
    "text": lambda name: False,
    "marker": lambda name: True,
}


def _marks(added_tokens: str) -> Callable[[str], bool]:
    if added_tokens not in _MARKS:
        raise VocabError(f'unknown added_tokens {added_tokens!r}; expected "auto", "text" or "marker"')
    return _MARKS[added_tokens]


def _reopened(vocab: Vocab, file: Path) -> Table:
    """A vocabulary that was saved, to settle width, ends and markers of it again."""
    table = Table(str(file), dict(enumerate(vocab.tokens)), eos=list(vocab.eos_ids))
    for name, token_id in vocab.names.items():
        if name in vocab.markers:
            table.pieces[token_id] = name.encode()
        text = table.pieces[token_id] is not None
        (table.added if text else table.special)[name] = token_id
    table.configured_eos = table.eos
    return table


def _checked_markers(markers: Iterable[str], names: Mapping[str, int], eos: Sequence[int]) -> list[str]:
    """The markers given to :meth:`Vocab.from_bytes`, checked."""
    marked = [markers] if isinstance(markers, str) else list(markers)
    for name in marked:
        if name not in names:
            raise VocabError(f"markers: {name!r} is none of the names; give its id in names=")
        if names[name] in eos:
            raise VocabError(f"markers: {name!r} ends the output; leave it out")
    return marked


def _checked_names(names: Mapping[str, int]) -> dict[str, int]:
    """The names given to :meth:`Vocab.from_bytes`, checked."""
    for name in names:
        if not isinstance(name, str) or not name or any("\ud800" <= c <= "\udfff" for c in name):
            raise VocabError(f"names: a name is a text that is not empty, found {name!r}")
    return {name: as_id(token_id, f"names[{name!r}]") for name, token_id in names.items()}


def _byte_ranges(values: Sequence[int]) -> str:
    """``0x00-0x1f, 0x7f`` for an ascending sequence of byte values, cut after eight ranges."""
    ranges: list[list[int]] = []
    for value in values:
        if ranges and ranges[-1][1] == value - 1:
            ranges[-1][1] = value
        else:
            ranges.append([value, value])
    shown = [f"0x{low:02x}" if low == high else f"0x{low:02x}-0x{high:02x}" for low, high in ranges[:8]]
    return ", ".join(shown) + (", ..." if len(ranges) > 8 else "")
