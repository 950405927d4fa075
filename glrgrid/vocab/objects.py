"""Vocabularies of tokenizers that are loaded already.

The libraries are not imported: an object is known by the module of its class and by what it has.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import VocabError
from . import gguf, huggingface, sentencepiece
from .source import ADVICE, parse_json
from .spelling import byte_level
from .table import Table, as_id, eos_list

__all__ = ["read"]


def read(obj: Any) -> Table:
    """Take ids and bytes from a tokenizer of any known library."""
    name = f"{type(obj).__module__}.{type(obj).__qualname__}"
    table = _read(obj, name)
    own = getattr(obj, "eos_token_id", None)
    if own is not None:
        table.configured_eos = eos_list(own, f"{name}: eos_token_id")
    return table


def _read(obj: Any, name: str) -> Table:
    backend = getattr(obj, "backend_tokenizer", obj)  # of a fast tokenizer of transformers
    if _is_of("tokenizers", backend, "to_str"):
        return huggingface.read(parse_json(backend.to_str(), name), name)
    for part in (
        obj,
        *(getattr(obj, own, None) for own in ("tokenizer", "model")),
    ):  # of slow ones made of tiktoken
        if _is_of("tiktoken", part, "decode_single_token_bytes"):
            return _tiktoken(part, name)
    if _is_of("llama_cpp", obj, "model_path"):
        table = gguf.read(Path(obj.model_path))
        table.size = obj.n_vocab()
        return table
    if hasattr(obj, "serialized_model_proto"):
        return sentencepiece.read(obj.serialized_model_proto(), name)
    if hasattr(obj, "get_vocab") and hasattr(obj, "added_tokens_decoder"):
        return _slow(obj, name)
    raise VocabError(
        f"cannot take a vocabulary from an object of type {name}; pass a tokenizers.Tokenizer, a transformers "
        f"tokenizer, a tiktoken.Encoding, a llama_cpp.Llama or a SentencePieceProcessor, {ADVICE}"
    )


def _is_of(library: str, obj: Any, method: str) -> bool:
    return hasattr(obj, method) and any(
        kind.__module__.partition(".")[0] == library for kind in type(obj).__mro__
    )


def _tiktoken(encoding: Any, name: str) -> Table:
    table = Table(name)
    table.special = {token: encoding.encode_single_token(token) for token in encoding.special_tokens_set}
    special = set(table.special.values())
    for token_id in range(encoding.n_vocab):
        if token_id not in special:
            try:
                table.pieces[token_id] = encoding.decode_single_token_bytes(token_id)
            except KeyError:  # a hole
                continue
    table.pieces |= dict.fromkeys(special)
    return table


def _slow(obj: Any, name: str) -> Table:
    """A tokenizer of transformers that is written in Python: around SentencePiece, or with a byte alphabet
    like GPT-2's.

    Its ids may differ from those of the SentencePiece model inside.
    """
    model = getattr(obj, "sp_model", None)
    pieces = sentencepiece.read(model.serialized_model_proto(), name) if model is not None else None
    if pieces is None and not isinstance(getattr(obj, "byte_decoder", None), dict):
        raise VocabError(
            f"cannot tell what the tokens of {name} spell: it has neither a SentencePiece model (sp_model) nor a byte "
            f"alphabet (byte_decoder); pass the bytes of each id to Vocab.from_bytes"
        )
    table = Table(name)
    added = obj.added_tokens_decoder
    special = {*obj.all_special_ids, *(token_id for token_id, token in added.items() if token.special)}
    for text, given in obj.get_vocab().items():
        token_id = as_id(given, f"{name}: get_vocab()")
        if token_id in special:
            piece, table.special[text] = None, token_id
        elif token_id in added:
            piece, table.added[text] = text.encode(), token_id
        elif pieces is None:
            piece = byte_level(text)
        else:
            piece = pieces.pieces.get(pieces.ids.get(text, -1))
        table.pieces[token_id] = piece
    return table
