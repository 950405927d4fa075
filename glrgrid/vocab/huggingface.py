"""Hugging Face ``tokenizer.json``: byte-level BPE, and BPE or Unigram in the SentencePiece manner.

What an id spells is what the file's decoder makes of it in the middle of a text. That is all a decoder
decides here: the space that many strip from the start of a text is a matter of the text, not of the token.
Normalisation and pre-tokenization only matter for encoding and are not looked at."""

from __future__ import annotations

import reprlib
import warnings
from collections.abc import Callable
from typing import Any

from ..errors import VocabError
from .source import ADVICE, expect, segment
from .spelling import METASPACE, byte_level, byte_token, metaspace
from .table import MAX_IDS, Table, VocabWarning, bad_id

__all__ = ["read"]

_Speller = Callable[[str], bytes]


def read(document: Any, where: str) -> Table:
    """Read a parsed tokenizer.json."""
    top = expect(document, dict, where, "", "an object")
    model = expect(top.get("model"), dict, where, "/model", "an object")
    ordinary, added_spelling = _spellers(top, model, where)
    added = expect(top.get("added_tokens", []), list, where, "/added_tokens", "an array")
    if _model_kind(model) == "Unigram" and isinstance(model.get("vocab"), list):
        vocab = _unigram_ids(model["vocab"], where)
    else:
        vocab = expect(model.get("vocab"), dict, where, "/model/vocab", "an object from token to id")

    table = Table(where, ids=vocab)
    owner: dict[int, str] = {}
    for token, token_id in vocab.items():
        if type(token_id) is not int or not 0 <= token_id < MAX_IDS:
            raise bad_id(where, f"/model/vocab/{segment(token)}", token_id)
        if token_id in owner:
            raise VocabError(
                f"{where}: /model/vocab/{segment(token)}: id {token_id} is also the id of "
                f"{owner[token_id]!r}; every token needs an id of its own, so the file is damaged"
            )
        owner[token_id] = token
        try:
            table.pieces[token_id] = ordinary(token)
        except UnicodeEncodeError as error:
            raise _bad_text(where, f"/model/vocab/{token_id}") from error
    _read_unknown(model, table, owner)
    if added:
        _read_added(added, owner, table, added_spelling)
    return table


def _unigram_ids(vocab: list[Any], where: str) -> dict[str, int]:
    """Ids of a Unigram model, whose vocabulary is an array of tokens with scores."""
    ids: dict[str, int] = {}
    for token_id, entry in enumerate(vocab):
        pointer = f"/model/vocab/{token_id}"
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], str):
            raise VocabError(
                f"{where}: {pointer}: expected an array of a token and its score; the file is damaged"
            )
        if ids.setdefault(entry[0], token_id) != token_id:
            raise VocabError(
                f"{where}: {pointer}: {entry[0]!r} is also token {ids[entry[0]]}; which one the model uses "
                f"cannot be told, so correct the file"
            )
    return ids


def _read_unknown(model: dict[str, Any], table: Table, owner: dict[int, str]) -> None:
    """Take the token for unknown text out of those that spell something."""
    token, token_id = model.get("unk_token"), model.get("unk_id")
    if token is not None and not isinstance(token, str):
        raise VocabError(f"{table.where}: /model/unk_token: expected a string, found {type(token).__name__}")
    if token_id is not None and (type(token_id) is not int or token_id not in table.pieces):
        raise VocabError(
            f"{table.where}: /model/unk_id: {reprlib.repr(token_id)} is no id of the model; correct the file"
        )
    for unknown in (table.ids.get(token) if token else None, token_id):
        if unknown is not None:
            table.pieces[unknown] = None
            table.special[owner[unknown]] = unknown


def _read_added(added: list[Any], owner: dict[int, str], table: Table, spelling: _Speller) -> None:
    """Put the added tokens of a tokenizer.json into ``table``."""
    where = table.where
    vocab, table.ids = table.ids, dict(table.ids)
    next_id, renumbered = len(vocab), ""
    for position, entry in enumerate(added):
        pointer = f"/added_tokens/{position}"
        expect(entry, dict, where, pointer, "an object")
        content = expect(entry.get("content"), str, where, f"{pointer}/content", "a string")
        special = expect(entry.get("special", False), bool, where, f"{pointer}/special", "true or false")
        token_id = entry.get("id")
        if type(token_id) is not int or not 0 <= token_id < MAX_IDS:
            raise bad_id(where, f"{pointer}/id", token_id)
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
            spelled = spelling(content)
        except UnicodeEncodeError as error:
            raise _bad_text(where, f"{pointer}/content") from error
        if content and known is None:
            if token_id != next_id and not renumbered:
                renumbered = f"{pointer}/id is {token_id}, but the tokenizers library would make it {next_id}"
            next_id += 1
        table.ids[content] = table.added[content] = token_id
        if special or content in table.special:
            table.special[content] = token_id
            table.pieces[token_id] = None
        else:
            table.pieces[token_id] = spelled
    if renumbered:
        warnings.warn(
            f"{where}: {renumbered}, since it numbers added tokens without gaps; the ids of the file are "
            f"used. If the model is run with that library, use Vocab.from_tokenizer",
            VocabWarning,
            stacklevel=5,
        )


# Which kind of tokenizer it is


def _spellers(top: dict[str, Any], model: dict[str, Any], where: str) -> tuple[_Speller, _Speller]:
    """How ordinary and how added tokens are spelled. Raises VocabError for other kinds of tokenizers."""
    kind = _model_kind(model)
    decoders = _components(top.get("decoder"))
    before = _components(top.get("pre_tokenizer")) + _components(top.get("normalizer"))
    names = [_name(part) for part in decoders]

    reasons = [] if kind in ("BPE", "Unigram") else [f"its model is {kind}"]
    unset = ("continuing_subword_prefix", "end_of_word_suffix")
    reasons += [f"its model sets {name}" for name in unset if model.get(name)]
    if (
        not decoders
    ):  # tokenizers would then put spaces between the tokens; how they were made says what they mean
        decoders = [part for part in before if _name(part) in ("ByteLevel", "Metaspace")]
        names = [_name(part) for part in decoders]
    if not reasons and "ByteLevel" in names:
        if others := sorted(set(names) - {"ByteLevel", "Fuse"}):
            reasons.append(f"its decoder also changes the text ({', '.join(others)})")
        elif model.get("byte_fallback"):
            reasons.append("its model uses byte_fallback")
        else:
            return byte_level, str.encode
    elif not reasons:
        spaces, others = _metaspace_parts(decoders)
        fallback = "ByteFallback" in names or bool(model.get("byte_fallback"))
        if others:
            reasons.append(f"its decoder also changes the text ({', '.join(others)})")
        elif not spaces and not fallback:
            reasons.append("neither its decoder nor its pre-tokenizer is ByteLevel or Metaspace")
        else:
            speller = _metaspace_speller(spaces[0] if spaces else METASPACE, fallback)
            return speller, speller
    raise VocabError(
        f"{where}: not a tokenizer that spells bytes: {', '.join(reasons)}; pass a tokenizer.json of the "
        f"GPT-2, Llama or Gemma kind, {ADVICE}"
    )


def _metaspace_speller(space: str, fallback: bool) -> _Speller:
    def spell(text: str) -> bytes:
        return (fallback and byte_token(text)) or metaspace(text, space)

    return spell


def _metaspace_parts(decoders: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """Characters that stand for a space, and names of parts that do anything but restore text from tokens."""
    spaces, others = [], []
    for part in decoders:
        name, pattern = _name(part), part.get("pattern")
        if name == "Metaspace":
            space = part.get("replacement", METASPACE)
        elif name == "Replace" and part.get("content") == " " and isinstance(pattern, dict):
            space = pattern.get("String")
        elif name in ("ByteFallback", "Fuse") or (
            name == "Strip"
            and part.get("content") == " "
            and part.get("stop") == 0  # at the start of a text only
        ):
            continue
        else:
            others.append(name)
            continue
        if isinstance(space, str) and len(space) == 1 and space not in spaces:
            spaces.append(space)
        elif not isinstance(space, str) or len(space) != 1:
            others.append(name)
    if len(spaces) > 1:
        others.append("two characters for a space")
    return spaces, others


def _model_kind(model: dict[str, Any]) -> str:
    kind = model.get("type")
    if kind is None:  # old files leave it out
        if isinstance(model.get("merges"), list):
            return "BPE"
        return "Unigram" if isinstance(model.get("vocab"), list) else "of an unnamed type"
    return _name(model)


def _components(component: Any) -> list[dict[str, Any]]:
    """The parts of a normalizer, pre-tokenizer or decoder, those inside a Sequence in its place."""
    parts, todo = [], [component]
    while todo:
        part = todo.pop()
        if isinstance(part, dict) and part.get("type") == "Sequence":
            lists = (part.get(key) for key in ("pretokenizers", "normalizers", "decoders"))
            todo += reversed(next((value for value in lists if isinstance(value, list)), []))
        elif isinstance(part, dict):
            parts.append(part)
    return parts


def _name(part: dict[str, Any]) -> str:
    kind = part.get("type")
    return kind if isinstance(kind, str) else "of an unnamed type"


def _bad_text(where: str, pointer: str) -> VocabError:
    return VocabError(
        f"{where}: {pointer}: the text holds a lone surrogate, which spells no bytes; correct the file"
    )
