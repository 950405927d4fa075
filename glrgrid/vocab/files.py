"""Which file of a folder holds the tokenizer, of which format it is, and what the configuration files beside
it say.

Formats are told by their first bytes, since their names tell little: ``tokenizer.model`` may be a
SentencePiece model or a tiktoken rank file."""

from __future__ import annotations

import re
import reprlib
from pathlib import Path
from typing import Any

from ..errors import VocabError
from . import gguf, huggingface, ranks, sentencepiece, tekken
from .source import expect, load_json, read_bytes, read_head
from .table import MAX_IDS, Table, as_id, eos_list

__all__ = ["is_saved", "locate", "read"]

_NAMES = ("tokenizer.json", "tekken.json", "tokenizer.model", "tiktoken.model", "*.tiktoken", "*.gguf")
"""Files that hold a tokenizer, in the order in which they are looked for."""

_HEAD = 4096
_SAVED = b"glrgridv"  # as compiler/src/vocab/saved.rs defines it
_RANK_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2}[ \t]+[0-9]+[ \t]*[\r\n]")
_CORRECT_IT = "; correct it or pass eos_ids="


def locate(path: Path) -> Path:
    """The tokenizer's file in a folder; any other path as it is."""
    if not path.is_dir():
        return path
    for name in _NAMES:
        found = sorted(path.glob(name))
        if len(found) > 1:
            raise VocabError(f"{path}: there are {len(found)} files {name}; pass the path of one")
        if found:
            return found[0]
    raise VocabError(f"{path}: there is no tokenizer in this folder; looked for {', '.join(_NAMES)}")


def is_saved(file: Path) -> bool:
    """Whether a file was written by :meth:`glrgrid.Vocab.save`."""
    return read_head(file, len(_SAVED)) == _SAVED


def read(file: Path, *, want_eos: bool, want_size: bool) -> Table:
    """Read a tokenizer's file, and what is wanted of the configuration files beside it."""
    where, suffix = str(file), file.suffix
    head = read_head(file, _HEAD)
    if head.startswith(gguf.MAGIC):
        return gguf.read(file)  # complete in itself; what lies beside it may belong to other models
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") or suffix == ".json":
        document = load_json(file)
        is_tekken = isinstance(document, dict) and "config" in document and "model" not in document
        table = tekken.read(document, where) if is_tekken else huggingface.read(document, where)
    elif _RANK_LINE.match(head) or suffix in (".tiktoken", ".bpe"):
        table = ranks.read(read_bytes(file), where)
    elif head.startswith(b"\n") or suffix == ".model":  # the key of the first piece
        table = sentencepiece.read(read_bytes(file), where)
    else:
        start = "is empty" if not head else f"starts with {head[:12]!r}"
        raise VocabError(
            f"{where}: not a tokenizer: it {start}; pass a tokenizer.json, a tekken.json, a tiktoken rank "
            f"file, a GGUF file, a SentencePiece model or a saved Vocab"
        )
    config = _optional(file.parent / "tokenizer_config.json")
    _add_tokens(table, config.get("added_tokens_decoder"), file.parent / "tokenizer_config.json")
    if want_size:
        _configure_size(table, file.parent / "config.json")
    if want_eos:
        _configure_eos(table, file.parent, config.get("eos_token"))
    return table


def _add_tokens(table: Table, added: Any, file: Path) -> None:
    """Put added tokens that only tokenizer_config.json lists, or only it calls special, into ``table``."""
    if added is None:
        return
    pointer = "/added_tokens_decoder"
    for key, entry in expect(added, dict, str(file), pointer, "an object").items():
        place = f"{file}: {pointer}/{key}"
        token_id = as_id(int(key) if key.isdecimal() and len(key) < 10 else key, place)
        expect(entry, dict, str(file), f"{pointer}/{key}", "an object")
        content = expect(entry.get("content"), str, str(file), f"{pointer}/{key}/content", "a string")
        known = table.ids.get(content)
        if known is not None and known != token_id:
            raise VocabError(f"{place}: {content!r} has id {known} in {table.where}; correct the file")
        if known is None and table.pieces.get(token_id) not in (None, content.encode("utf-8", "replace")):
            raise VocabError(f"{place}: id {token_id} is another token in {table.where}; correct the file")
        table.ids[content] = table.added[content] = token_id
        if entry.get("special", True):
            table.special[content] = token_id
            table.pieces[token_id] = None
        elif known is None:
            try:
                table.pieces[token_id] = content.encode()
            except UnicodeEncodeError as error:
                raise VocabError(f"{place}: the text holds a lone surrogate; correct the file") from error


def _configure_size(table: Table, file: Path) -> None:
    size = _of_model(_optional(file), "vocab_size")
    if size is None:
        return
    if type(size) is not int or not 0 < size <= MAX_IDS:
        raise VocabError(
            f"{file}: /vocab_size: expected the width of the logits, from 1 to {MAX_IDS}, found "
            f"{reprlib.repr(size)}; correct it or pass size="
        )
    table.size = size


def _configure_eos(table: Table, folder: Path, token: Any) -> None:
    found: list[int] = []
    for name in ("generation_config.json", "config.json"):
        value = _of_model(_optional(folder / name), "eos_token_id")
        if value is not None:
            found += eos_list(value, f"{folder / name}: /eos_token_id", _CORRECT_IT)
            break
    if isinstance(token, dict):
        token = token.get("content")
    if token is not None:
        if not isinstance(token, str) or token not in table.ids:
            raise VocabError(
                f"{folder / 'tokenizer_config.json'}: /eos_token: {reprlib.repr(token)} is no token of "
                f"{table.where}{_CORRECT_IT}"
            )
        found.append(table.ids[token])
    table.configured_eos = found or None


def _of_model(config: dict[str, Any], key: str) -> Any:
    """A value of a configuration, or of its part for text."""
    value = config.get(key)
    if value is None and isinstance(nested := config.get("text_config"), dict):
        value = nested.get(key)
    return value


def _optional(file: Path) -> dict[str, Any]:
    """The object in a configuration file, an empty one if there is no such file."""
    if not file.is_file():
        return {}
    config: dict[str, Any] = expect(load_json(file), dict, str(file), "", "an object")
    return config
