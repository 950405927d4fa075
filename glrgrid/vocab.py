"""Vocabularies: which bytes each token id spells.

A :class:`Vocab` turns a tokenizer into the one thing the engine needs of it, a table from id to bytes, as
wide as the logits it will mask. Where the table came from is forgotten; nothing here encodes text.

Invariants
    1. Ids are those of the tokenizer, ``0 <= id < size``. Several ids may spell the same bytes.
    2. An id without bytes (``None``) is a special token, an end-of-sequence id, a hole or padding. Text never
       matches it.
    3. What a token spells is decided by :func:`_spelling` alone.

Reading Llama 3's 128,256 ids takes under half a second, most of it in the JSON parser.

Not done here: SentencePiece, WordPiece, Unigram and byte-fallback tokenizers are refused by name.
"""

from __future__ import annotations

import codecs
import functools
import json
import operator
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, SupportsIndex

from . import _native
from .data import default_tokenizer_path
from .errors import StateError, VocabError

__all__ = ["MAX_IDS", "Vocab", "VocabWarning"]

MAX_IDS = 1 << 22
"""Largest supported ``size``; an id at or above it is taken for damage."""

EOS_NAMES = (
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "</s>",
    "<eos>",
    "<|eos|>",
    "[EOS]",
    "<end_of_turn>",
    "<turn|>",
    "<|endofturn|>",
    "<|return|>",
    "<|call|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|EOT|>",
    "<｜end▁of▁sentence｜>",
)
"""Special tokens taken as end of sequence when no configuration file names any."""

_Kind = Literal["ordinary", "added", "special"]
_PASS_BYTES = "or pass the bytes of each id to Vocab.from_bytes"


class VocabWarning(UserWarning):
    """The vocabulary can be used, but some outputs cannot be written or ended with it."""


class Vocab:
    """An immutable table of the bytes that each token id spells.

    Make one with :meth:`from_file`, :meth:`from_tokenizer`, :meth:`from_bytes` or :meth:`default`.

    Parameters
    ----------
    tokens : sequence of bytes or None
        One entry per id; its length is the width of the logits.
    eos_ids : iterable of int
        Ids that end a sequence.

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
    _native: _native.Vocab

    def __init__(self, tokens: Sequence[bytes | None], eos_ids: Iterable[int] = ()) -> None:
        spelled = {token[0] for token in tokens if token is not None and len(token) == 1}
        missing = tuple(byte for byte in range(256) if byte not in spelled)
        object.__setattr__(self, "_native", _native.Vocab(list(tokens), list(eos_ids)))
        object.__setattr__(self, "_missing_bytes", missing)
        if missing:
            warnings.warn(
                f"{len(missing)} of 256 bytes have no token of their own ({_byte_ranges(missing)}); outputs "
                f"that need them may be impossible to write",
                VocabWarning,
                stacklevel=3,
            )

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        eos_ids: Iterable[int] | int | None = None,
        size: int | None = None,
    ) -> Self:
        """Read a Hugging Face ``tokenizer.json`` of the byte-level BPE kind (GPT-2, Llama 3, Qwen, ...).

        Parameters
        ----------
        path : str or path-like
            The file, or a folder that holds a ``tokenizer.json``.
        eos_ids : int or iterable of int, optional
            Ids that end a sequence. Left out, they come from the files next to ``path``: ``eos_token_id`` of
            ``generation_config.json`` (or else of ``config.json``) together with ``eos_token`` of
            ``tokenizer_config.json``; without those, every special token with a well-known name counts.
        size : int, optional
            Width of the logits. Default: the highest id + 1. A larger one is padded with ids without bytes;
            with a smaller one the ids at and beyond it are dropped.

        Raises
        ------
        VocabError
            The file cannot be read, is malformed (the message gives the place as a JSON pointer), or is of
            another kind of tokenizer.

        Warns
        -----
        VocabWarning
            The vocabulary is not byte-complete, no end-of-sequence id was found, or the ``tokenizers``
            library would give an added token another id than the file does.

        Notes
        -----
        Ordinary tokens spell the bytes that their characters stand for in GPT-2's byte alphabet. One with any
        other character spells its own UTF-8, which is what ``tokenizers`` decodes it to.

        Added tokens marked special spell nothing. Other added tokens spell the UTF-8 of their content, the
        text that encodes to them. ``tokenizers`` agrees for ASCII content and wherever a character lies
        outside the byte alphabet, but decodes content that lies wholly inside it as if it were an ordinary
        token: an added ``naïve`` comes back with the single byte ``0xEF`` in place of ``ï``.

        End-of-sequence ids spell nothing, whatever the file says. Normalisation and pre-tokenization only
        matter for encoding and are not looked at.
        """
        file = Path(path)
        if file.is_dir():
            file = file / "tokenizer.json"
        table = _read_hf(_load_json(file), str(file))
        found = None if eos_ids is not None else _configured_eos(file.parent, table)
        tokens, eos = _finish(table, eos_ids, found, size)
        return cls(tokens, eos)

    @classmethod
    def from_tokenizer(
        cls, obj: object, *, eos_ids: Iterable[int] | int | None = None, size: int | None = None
    ) -> Self:
        """Take the vocabulary of a loaded tokenizer.

        Parameters
        ----------
        obj : tokenizers.Tokenizer or transformers fast tokenizer
            Of the kind that :meth:`from_file` reads.
        eos_ids : int or iterable of int, optional
            Ids that end a sequence. Left out: ``obj.eos_token_id`` if there is one, else the special tokens
            with well-known names. A model's ``generation_config`` often lists more.
        size : int, optional
            Width of the logits, as in :meth:`from_file`. A model's is often larger than its tokenizer's.

        Raises
        ------
        VocabError
            The object is of another type, or its tokenizer of another kind.
        """
        backend = getattr(obj, "backend_tokenizer", obj)
        name = f"{type(obj).__module__}.{type(obj).__qualname__}"
        if type(backend).__module__.partition(".")[0] != "tokenizers" or not hasattr(backend, "to_str"):
            raise VocabError(
                f"cannot take a vocabulary from an object of type {name}; pass a tokenizers.Tokenizer or a "
                f"transformers fast tokenizer, {_PASS_BYTES}"
            )
        table = _read_hf(_parse_json(backend.to_str(), name), name)
        own = getattr(obj, "eos_token_id", None)
        found = None if own is None else _eos_list(own, f"{name}: eos_token_id")
        tokens, eos = _finish(table, eos_ids, found, size)
        return cls(tokens, eos)

    @classmethod
    def from_bytes(
        cls,
        tokens: Mapping[int, bytes | None] | Sequence[bytes | None],
        eos_ids: Iterable[int] | int = (),
        size: int | None = None,
    ) -> Self:
        """Make a vocabulary out of the bytes of each id.

        Parameters
        ----------
        tokens : mapping from id to bytes or None, or sequence of bytes or None
            ``None`` and ``b""`` stand for an id without bytes; so do ids that a mapping leaves out.
        eos_ids : int or iterable of int
            Ids that end a sequence; they spell nothing, even if ``tokens`` gives them bytes.
        size : int, optional
            Width of the logits. Default: the highest id + 1, end-of-sequence ids included. Larger: padded.
            Smaller: ids at and beyond it are dropped.

        Raises
        ------
        VocabError
            An id is negative, no integer or too large, or an entry is not bytes.

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
        eos = _eos_list(eos_ids, "eos_ids")
        width = _width(size, max([*pieces, *eos], default=-1) + 1, "Vocab.from_bytes")
        _require_below(eos, width)
        return cls(_lay_out(pieces, eos, width), eos)

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
    def fingerprint(self) -> str:
        """Hexadecimal digest of the whole table; artifacts are bound to it."""
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

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Vocab is immutable; cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Vocab is immutable; cannot delete {name!r}")

    def __len__(self) -> int:
        return self.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocab):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tokens, self.eos_ids)

    def __repr__(self) -> str:
        return f"Vocab(size={self.size}, eos_ids={self.eos_ids}, fingerprint={self.fingerprint[:12]!r})"

    def _identity(self) -> tuple[str, int, tuple[int, ...]]:
        return self.fingerprint, self.size, self.eos_ids


@functools.cache
def _default() -> Vocab:
    return Vocab.from_file(default_tokenizer_path())


# What a token spells


def _byte_alphabet() -> str:
    """GPT-2's alphabet: character ``b`` of the string stands for byte ``b``.

    Printable Latin-1 characters stand for themselves; the other 68 bytes take the characters from U+0100 on,
    in order.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    stand_ins = iter(range(0x100, 0x200))
    return "".join(chr(byte if byte in printable else next(stand_ins)) for byte in range(256))


_TO_BYTE = codecs.charmap_build(_byte_alphabet())


def _spelling(content: str, kind: _Kind) -> bytes | None:
    """The bytes that a token of a byte-level tokenizer spells; see the notes of :meth:`Vocab.from_file`.

    Raises UnicodeEncodeError if ``content`` holds a lone surrogate.
    """
    if kind == "special":
        return None
    if kind == "ordinary":
        try:
            return codecs.charmap_encode(content, "strict", _TO_BYTE)[0] or None
        except UnicodeEncodeError:
            pass
    return content.encode() or None


# Hugging Face tokenizer.json


@dataclass(slots=True)
class _Table:
    """A tokenizer that was read: ids, what they spell, and what its end-of-sequence ids can be found by."""

    where: str
    pieces: dict[int, bytes | None]
    ids: dict[str, int]
    special: dict[str, int]

    @property
    def width(self) -> int:
        return max(self.pieces, default=-1) + 1


def _load_json(file: Path) -> Any:
    """The JSON document in a file."""
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise VocabError(
            f"{file}: cannot be read ({error.strerror or error}); pass a tokenizer.json"
        ) from error
    return _parse_json(raw, str(file))


def _parse_json(raw: bytes | str, where: str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise VocabError(
            f"{where}: not a complete JSON document ({error}); pass an undamaged tokenizer.json, "
            f"{_PASS_BYTES}"
        ) from error


def _read_hf(document: Any, where: str) -> _Table:
    """Read a parsed tokenizer.json."""
    top = _expect(document, dict, where, "", "an object")
    model = _expect(top.get("model"), dict, where, "/model", "an object")
    _refuse_other_kinds(top, model, where)
    vocab = _expect(model.get("vocab"), dict, where, "/model/vocab", "an object from token to id")
    added = _expect(top.get("added_tokens", []), list, where, "/added_tokens", "an array")

    table = _Table(where, {}, vocab, {})
    owner: dict[int, str] = {}
    for token, token_id in vocab.items():
        if type(token_id) is not int or not 0 <= token_id < MAX_IDS:
            raise _bad_id(where, f"/model/vocab/{_escape(token)}", token_id)
        if token_id in owner:
            raise VocabError(
                f"{where}: /model/vocab/{_escape(token)}: id {token_id} is also the id of "
                f"{owner[token_id]!r}; every token needs an id of its own, so the file is damaged"
            )
        owner[token_id] = token
        try:
            table.pieces[token_id] = _spelling(token, "ordinary")
        except UnicodeEncodeError as error:
            raise _bad_text(where, f"/model/vocab/{token_id}") from error
    if added:
        _read_added(added, owner, table)
    if not table.pieces:
        raise VocabError(f"{where}: /model/vocab: there are no tokens; pass a complete tokenizer.json")
    return table


def _read_added(added: list[Any], owner: dict[int, str], table: _Table) -> None:
    """Put the added tokens of a tokenizer.json into ``table``."""
    where = table.where
    vocab, table.ids = table.ids, dict(table.ids)
    next_id, renumbered = len(vocab), ""
    for position, entry in enumerate(added):
        pointer = f"/added_tokens/{position}"
        _expect(entry, dict, where, pointer, "an object")
        content = _expect(entry.get("content"), str, where, f"{pointer}/content", "a string")
        special = _expect(entry.get("special", False), bool, where, f"{pointer}/special", "true or false")
        token_id = entry.get("id")
        if type(token_id) is not int or not 0 <= token_id < MAX_IDS:
            raise _bad_id(where, f"{pointer}/id", token_id)
        known = table.ids.get(content)
        if known is not None and known != token_id:
            raise VocabError(
                f"{where}: {pointer}/id: {content!r} has id {token_id} here and {known} elsewhere in the "
                f"file; which one the model uses cannot be told, so correct the file"
            )
        if owner.setdefault(token_id, content) != content:
            raise VocabError(
                f"{where}: {pointer}/id: id {token_id} of {content!r} is also the id of "
                f"{owner[token_id]!r}; every token needs an id of its own, so the file is damaged"
            )
        try:
            table.pieces[token_id] = _spelling(content, "special" if special else "added")
        except UnicodeEncodeError as error:
            raise _bad_text(where, f"{pointer}/content") from error
        if content and known is None:
            if token_id != next_id and not renumbered:
                renumbered = f"{pointer}/id is {token_id}, but the tokenizers library would make it {next_id}"
            next_id += 1
        table.ids[content] = token_id
        if special:
            table.special[content] = token_id
    if renumbered:
        warnings.warn(
            f"{where}: {renumbered}, since it numbers added tokens without gaps; the ids of the file are "
            f"used. If the model is run with that library, use Vocab.from_tokenizer",
            VocabWarning,
            stacklevel=4,
        )


def _refuse_other_kinds(top: dict[str, Any], model: dict[str, Any], where: str) -> None:
    """Raise VocabError unless the tokenizer is byte-level BPE."""
    kind = model.get("type")
    if kind is None:  # old files leave it out
        if isinstance(model.get("merges"), list):
            kind = "BPE"
        else:
            kind = "Unigram" if isinstance(model.get("vocab"), list) else "of an unnamed type"
    decoders = _components(top.get("decoder"))
    before = _components(top.get("pre_tokenizer")) + _components(top.get("normalizer"))

    reasons = []
    if kind != "BPE":
        reasons.append(f"its model is {kind}")
    reasons += [f"it uses {name}" for name in ("Metaspace", "ByteFallback") if name in before + decoders]
    if model.get("byte_fallback"):
        reasons.append("its model uses byte_fallback")
    unset = ("continuing_subword_prefix", "end_of_word_suffix")
    reasons += [f"its model sets {name}" for name in unset if model.get(name)]
    if not reasons and "ByteLevel" not in (decoders or before):
        reasons.append("neither its decoder nor its pre-tokenizer is ByteLevel")
    if not reasons and (others := sorted(set(decoders) - {"ByteLevel", "Fuse"})):
        reasons.append(f"its decoder also changes the text ({', '.join(others)})")
    if reasons:
        raise VocabError(
            f"{where}: not a byte-level BPE tokenizer: {', '.join(reasons)}; pass a tokenizer.json of the "
            f"GPT-2 or Llama 3 kind, {_PASS_BYTES}"
        )


def _components(component: Any) -> list[str]:
    """Type names of a normalizer, pre-tokenizer or decoder, those inside a Sequence in its place."""
    if not isinstance(component, dict):
        return []
    if component.get("type") != "Sequence":
        return [str(component.get("type"))]
    parts = next(
        (v for k in ("pretokenizers", "normalizers", "decoders") if isinstance(v := component.get(k), list)),
        [],
    )
    return [name for part in parts for name in _components(part)]


# End-of-sequence ids


def _configured_eos(folder: Path, table: _Table) -> list[int] | None:
    """The end-of-sequence ids that the configuration files in ``folder`` name, None if they name none."""
    found: list[int] = []
    for name in ("generation_config.json", "config.json"):
        config = _optional_config(folder / name)
        value = config.get("eos_token_id")
        if value is None and isinstance(nested := config.get("text_config"), dict):
            value = nested.get("eos_token_id")
        if value is not None:
            found += _eos_list(value, f"{folder / name}: /eos_token_id", "; correct it or pass eos_ids=")
            break
    file = folder / "tokenizer_config.json"
    token = _optional_config(file).get("eos_token")
    if isinstance(token, dict):
        token = token.get("content")
    if token is not None:
        if not isinstance(token, str) or token not in table.ids:
            raise VocabError(
                f"{file}: /eos_token: {token!r} is no token of {table.where}; correct it or pass eos_ids="
            )
        found.append(table.ids[token])
    return found or None


def _optional_config(file: Path) -> dict[str, Any]:
    """The object in a configuration file, an empty one if there is no such file."""
    if not file.is_file():
        return {}
    config: dict[str, Any] = _expect(_load_json(file), dict, str(file), "", "an object")
    return config


def _finish(
    table: _Table, given: Iterable[int] | int | None, found: list[int] | None, size: int | None
) -> tuple[list[bytes | None], list[int]]:
    """Settle width and end-of-sequence ids of a tokenizer that was read."""
    width = _width(size, table.width, table.where)
    if given is not None:
        eos = _eos_list(given, "eos_ids")
        _require_below(eos, width)
    else:
        if found is None:
            found = [table.special[name] for name in EOS_NAMES if name in table.special]
        _require_below(found, max(width, table.width))
        eos = sorted(token_id for token_id in set(found) if token_id < width)
        if not eos:
            warnings.warn(
                f"{table.where}: no end-of-sequence id was found, so masks will never allow the output to "
                f"end; pass eos_ids=",
                VocabWarning,
                stacklevel=3,
            )
    return _lay_out(table.pieces, eos, width), eos


# Checks and layout shared by all sources


def _checked_pieces(tokens: Mapping[int, bytes | None] | Sequence[bytes | None]) -> dict[int, bytes | None]:
    """The entries given to :meth:`Vocab.from_bytes`, checked."""
    if isinstance(tokens, (bytes, bytearray, memoryview, str)) or not isinstance(tokens, (Mapping, Sequence)):
        raise VocabError(
            f"tokens must map ids to bytes or list the bytes of each id, found {type(tokens).__name__}"
        )
    pieces: dict[int, bytes | None] = {}
    for key, value in tokens.items() if isinstance(tokens, Mapping) else enumerate(tokens):
        token_id = _as_id(key, "tokens")
        if value is not None and not isinstance(value, (bytes, bytearray, memoryview)):
            hint = "encode it first" if isinstance(value, str) else "use None for an id without bytes"
            raise VocabError(
                f"tokens[{token_id}] must be bytes or None, found {type(value).__name__}; {hint}"
            )
        pieces[token_id] = bytes(value) if value else None
    return pieces


def _lay_out(pieces: Mapping[int, bytes | None], eos: Iterable[int], width: int) -> list[bytes | None]:
    """One entry per id below ``width``; holes, padding and end-of-sequence ids are None."""
    tokens = [pieces.get(token_id) for token_id in range(width)]
    for token_id in eos:
        tokens[token_id] = None
    return tokens


def _width(size: int | None, natural: int, where: str) -> int:
    """The width of the logits: ``size`` if given, else ``natural``."""
    if size is None:
        if natural == 0:
            raise VocabError(f"{where}: there are no tokens; pass at least one, or a size")
        return natural
    if (
        isinstance(size, bool)
        or not isinstance(size, SupportsIndex)
        or not 0 < operator.index(size) <= MAX_IDS
    ):
        raise VocabError(
            f"size must be an integer from 1 to {MAX_IDS}, the width of the logits; found {size!r}"
        )
    return operator.index(size)


def _eos_list(value: Any, what: str, advice: str = "") -> list[int]:
    """End-of-sequence ids as ascending distinct integers."""
    values = (
        value if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)) else [value]
    )
    return sorted({_as_id(item, what, advice) for item in values})


def _require_below(eos: Iterable[int], width: int) -> None:
    for token_id in eos:
        if token_id >= width:
            raise VocabError(
                f"end-of-sequence id {token_id} is outside of the vocabulary of {width} ids; pass other "
                f"eos_ids= or a larger size="
            )


def _as_id(value: object, what: str, advice: str = "") -> int:
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, SupportsIndex)):
        raise VocabError(f"{what}: an id is an integer, found {value!r}{advice}")
    token_id = operator.index(value)
    if not 0 <= token_id < MAX_IDS:
        raise VocabError(f"{what}: id {token_id} is outside of 0 to {MAX_IDS - 1}{advice}")
    return token_id


def _expect(value: Any, kind: type, where: str, pointer: str, wanted: str) -> Any:
    if not isinstance(value, kind):
        found = "nothing" if value is None else type(value).__name__
        raise VocabError(
            f"{where}: {pointer or '/'}: expected {wanted}, found {found}; pass a complete tokenizer.json"
        )
    return value


def _bad_id(where: str, pointer: str, found: object) -> VocabError:
    return VocabError(
        f"{where}: {pointer}: an id is an integer from 0 to {MAX_IDS - 1}, found {found!r}; correct the file"
    )


def _bad_text(where: str, pointer: str) -> VocabError:
    return VocabError(
        f"{where}: {pointer}: the text holds a lone surrogate, which spells no bytes; correct the file"
    )


def _escape(token: str) -> str:
    """A token as a segment of a JSON pointer, printable."""
    return token.replace("~", "~0").replace("/", "~1").encode("ascii", "backslashreplace").decode()


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
