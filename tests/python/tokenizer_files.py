"""Small tokenizer files of every format, written byte by byte, so that no library has to agree with the readers."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

REPLACE = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
LLAMA_DECODER = {"type": "Sequence", "decoders": [REPLACE, {"type": "ByteFallback"}, {"type": "Fuse"}, STRIP]}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Types of tokens in GGUF files, and of pieces in SentencePiece models."""

PIECES: list[tuple[str, int]] = [
    ("<unk>", UNKNOWN),
    ("<s>", CONTROL),
    ("</s>", CONTROL),
    ("<0x0A>", BYTE),
    ("<0xFF>", BYTE),
    ("▁", NORMAL),
    ("▁a", NORMAL),
    ("é世", NORMAL),
    ("<0x41>", NORMAL),
    ("▁▁", USER_DEFINED),
    ("<spare>", UNUSED),
]
"""Pieces as a SentencePiece model has them."""

SPELLED = [None, None, None, b"\n", b"\xff", b" ", b" a", "é世".encode(), b"<0x41>", b"  ", None]
"""What they spell."""


def added(token_id: Any, content: Any, special: Any = False) -> dict[str, Any]:
    """An entry of added_tokens."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": token_id, "content": content, "special": special, **flags}


def metaspace_json(vocab: Any, added_tokens: Sequence[Any] = (), **parts: Any) -> dict[str, Any]:
    """A tokenizer.json of the Llama 2 kind; ``parts`` replace what stands at the top, ``model`` what the model has."""
    model = {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "vocab": vocab, "merges": []}
    top = {"added_tokens": list(added_tokens), "pre_tokenizer": None, "decoder": LLAMA_DECODER}
    return {**top, **parts, "model": {**model, **parts.get("model", {})}}


def ranks(tokens: Mapping[int, bytes] | Sequence[bytes]) -> bytes:
    """A tiktoken rank file."""
    pairs = tokens.items() if isinstance(tokens, Mapping) else enumerate(tokens)
    return b"".join(b"%s %d\n" % (base64.b64encode(token), token_id) for token_id, token in pairs)


def tekken(tokens: Sequence[bytes], first: int = 3, **fields: Any) -> dict[str, Any]:
    """A tekken.json; ``fields`` replace what stands at the top."""
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for rank, token in enumerate(tokens)
    ]
    config = {"default_vocab_size": first + len(tokens), "default_num_special_tokens": first, "version": "v3"}
    return {"config": config, "vocab": vocab, **fields}


# GGUF


def gguf(pairs: Iterable[tuple[str, Any]], version: int = 3, order: str = "<", tail: bytes = b"") -> bytes:
    """The metadata of a GGUF file: int, str, bool, float, or lists of str or int; ``tail`` stands for tensors."""
    body = [_text(key, order) + _value(value, order) for key, value in pairs]
    return b"GGUF" + struct.pack(order + "IQQ", version, 0, len(body)) + b"".join(body) + tail


def vocabulary_pairs(model: str, tokens: Sequence[tuple[str, int]], **extra: Any) -> list[tuple[str, Any]]:
    """The pairs of a GGUF file that hold a vocabulary."""
    return [
        ("general.architecture", "llama"),
        ("tokenizer.ggml.model", model),
        ("tokenizer.ggml.tokens", [text for text, _ in tokens]),
        ("tokenizer.ggml.scores", [0.5] * len(tokens)),
        ("tokenizer.ggml.token_type", [kind for _, kind in tokens]),
        ("tokenizer.ggml.merges", ["a b", "c d"]),
        *((f"tokenizer.ggml.{name}", value) for name, value in extra.items()),
        ("tokenizer.ggml.add_bos_token", True),
    ]


def _text(text: str, order: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    return struct.pack(order + "Q", len(raw)) + raw


def _value(value: Any, order: str) -> bytes:
    kinds = {bool: (7, "?"), int: (4, "I"), float: (6, "f")}
    if isinstance(value, str):
        return struct.pack(order + "I", 8) + _text(value, order)
    if isinstance(value, list):
        if value and isinstance(value[0], str):
            return struct.pack(order + "IIQ", 9, 8, len(value)) + b"".join(_text(v, order) for v in value)
        kind, code = (5, "i") if not value or isinstance(value[0], int) else (6, "f")
        return struct.pack(f"{order}IIQ{len(value)}{code}", 9, kind, len(value), *value)
    kind, code = kinds[type(value)]
    return struct.pack(order + "I" + code, kind, value)


# SentencePiece


def sentencepiece(
    pieces: Sequence[tuple[str | bytes, int]], eos_piece: str | None = None, eos_id: int | None = None
) -> bytes:
    """A SentencePiece model."""
    model = b"".join(field(1, piece(text, kind)) for text, kind in pieces)
    trainer = field(35, 1)
    if eos_id is not None:
        trainer += field(42, eos_id)
    if eos_piece is not None:
        trainer += field(47, eos_piece.encode())
    return model + field(2, trainer) + field(3, field(1, b"identity") + field(3, 1))


def piece(text: str | bytes, kind: int) -> bytes:
    """The message of a piece: text, score and, unless it is normal, type."""
    raw = text.encode() if isinstance(text, str) else text
    score = bytes([2 << 3 | 5]) + struct.pack("<f", -1.5)
    return field(1, raw) + score + (field(3, kind) if kind != NORMAL else b"")


def field(number: int, value: int | bytes) -> bytes:
    """A field of a protocol buffer."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    """A number, seven bits at a time."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def every_format() -> dict[str, bytes]:
    """One small, whole file of each format by the name it usually has."""
    specials = [added(index, text, True) for index, (text, kind) in enumerate(PIECES) if kind == CONTROL]
    vocab = {text: index for index, (text, _) in enumerate(PIECES)}
    byte_level = {"type": "ByteLevel"}
    byte_level_json = metaspace_json(
        {"a": 0, "Ġa": 1, "é": 2, "</s>": 3},
        [added(3, "</s>", True), added(4, "<x>")],
        decoder=byte_level,
        model={"byte_fallback": False, "unk_token": None},
    )
    unigram = metaspace_json(
        [[text, -1.0] for text in vocab],
        specials,
        decoder=METASPACE,
        model={"type": "Unigram", "unk_token": None, "unk_id": 0},
    )
    tokens = [bytes([value]) for value in range(256)] + [b" a", b"\xf0\x9f"]
    special_tokens = [{"rank": 2, "token_str": "</s>", "is_control": True}]
    pairs = vocabulary_pairs("llama", PIECES, eos_token_id=2, eot_token_id=1)
    return {
        "byte_level.json": json.dumps(byte_level_json).encode(),
        "metaspace.json": json.dumps(metaspace_json(vocab, specials)).encode(),
        "unigram.json": json.dumps(unigram).encode(),
        "tekken.json": json.dumps(tekken(tokens[:40], special_tokens=special_tokens)).encode(),
        "ranks.tiktoken": ranks(tokens),
        "model.gguf": gguf(pairs, tail=bytes(100)),
        "tokenizer.model": sentencepiece(PIECES, eos_piece="</s>", eos_id=2),
    }
