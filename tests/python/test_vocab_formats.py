"""The formats of tokenizer files: what tokens spell, what is found beside them, and where damage is said to be."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tokenizer_files import (
    BYTE,
    CONTROL,
    METASPACE,
    NORMAL,
    PIECES,
    REPLACE,
    SPELLED,
    UNKNOWN,
    USER_DEFINED,
    added,
    every_format,
    field,
    gguf,
    metaspace_json,
    piece,
    ranks,
    sentencepiece,
    tekken,
    varint,
    vocabulary_pairs,
)

from glrgrid import Grammar, Vocab, VocabError, compile

pytestmark = pytest.mark.filterwarnings("ignore::glrgrid.vocab.VocabWarning")


def saved(folder: Path, content: Any, name: str) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def test_formats_are_told_by_what_is_in_them(tmp_path: Path) -> None:
    for name, content in every_format().items():
        vocab = Vocab.from_file(saved(tmp_path, content, f"{name}.any"))
        assert vocab == Vocab.from_file(saved(tmp_path, content, name))


@pytest.mark.parametrize(
    ("content", "start"),
    [(b"", "is empty"), (b"PK\x03\x04rest", r"starts with b'PK"), (b"\xff" * 9, "starts with")],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, start: str) -> None:
    with pytest.raises(VocabError, match=f"x.bin: not a tokenizer: it {start}.*; pass a tokenizer.json"):
        Vocab.from_file(saved(tmp_path, content, "x.bin"))


def test_files_that_are_not_read(tmp_path: Path) -> None:
    with (tmp_path / "huge.json").open("wb") as stream:
        stream.write(b"{")
        stream.truncate(1 << 40)  # takes no room
    with pytest.raises(VocabError, match=r"huge.json: has 1,099,511,627,776 bytes, which no tokenizer has"):
        Vocab.from_file(tmp_path / "huge.json")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(VocabError, match="pipe: not a regular file"):
        Vocab.from_file(tmp_path / "pipe")


def test_only_the_metadata_of_a_gguf_file_is_read(tmp_path: Path) -> None:
    path = saved(tmp_path, every_format()["model.gguf"], "x.gguf")
    small = Vocab.from_file(path)
    os.truncate(path, 1 << 40)
    assert Vocab.from_file(path) == small


# tokenizer.json with U+2581 for spaces


@pytest.mark.parametrize(
    ("parts", "fallback"),
    [
        ({}, True),
        ({"decoder": {"type": "Sequence", "decoders": [REPLACE, {"type": "ByteFallback"}]}}, True),
        ({"decoder": METASPACE, "model": {"byte_fallback": False}}, False),
        ({"decoder": REPLACE, "model": {"byte_fallback": False}}, False),
        ({"decoder": {"type": "ByteFallback"}}, True),
        ({"decoder": None, "pre_tokenizer": METASPACE, "model": {"byte_fallback": False}}, False),
    ],
)
def test_metaspace(tmp_path: Path, parts: dict[str, Any], fallback: bool) -> None:
    vocab = {"<unk>": 0, "</s>": 1, "▁the": 2, "a▁b": 3, "<0x0A>": 4, "<0x0a0>": 5, "世": 6, "▁▁": 7}
    entries = [added(1, "</s>", True), added(8, "<tool>"), added(7, "▁▁")]
    loaded = Vocab.from_file(saved(tmp_path, metaspace_json(vocab, entries, **parts), "tokenizer.json"))
    newline = b"\n" if fallback else b"<0x0A>"
    spelled = [None, None, b" the", b"a b", newline, b"<0x0a0>", "世".encode(), b"  ", None]
    assert (loaded.tokens, loaded.eos_ids) == (spelled, (1,))


def test_another_character_for_a_space(tmp_path: Path) -> None:
    document = metaspace_json({"_a": 0, "▁": 1}, decoder=METASPACE | {"replacement": "_"})
    assert Vocab.from_file(saved(tmp_path, document, "x.json")).tokens == [b" a", "▁".encode()]


def test_unigram(tmp_path: Path) -> None:
    vocab = [["<pad>", 0.0], ["</s>", 0.0], ["<unk>", -2.0], ["▁a", -3.1], ["b", -4.0]]
    model = {"type": "Unigram", "unk_token": None, "unk_id": 2, "byte_fallback": False}
    entries = [added(0, "<pad>", True), added(1, "</s>", True)]
    document = metaspace_json(vocab, entries, decoder=METASPACE, model=model)
    loaded = Vocab.from_file(saved(tmp_path, document, "tokenizer.json"))
    assert (loaded.tokens, loaded.eos_ids) == ([None, None, None, b" a", b"b"], (1,))


def test_deeply_nested_decoders(tmp_path: Path) -> None:
    decoder: dict[str, Any] = METASPACE
    for _ in range(400):
        decoder = {"type": "Sequence", "decoders": [decoder]}
    document = metaspace_json({"▁a": 0}, decoder=decoder)
    assert Vocab.from_file(saved(tmp_path, document, "x.json")).tokens == [b" a"]


@pytest.mark.parametrize(
    ("vocab", "model", "message"),
    [
        ([["a"]], {"type": "Unigram"}, "/model/vocab/0: expected an array of a token and its score"),
        ([["a", 1], [3, 1]], {"type": "Unigram"}, "/model/vocab/1: expected an array of a token"),
        ([["a", 1], ["a", 1]], {"type": "Unigram"}, "/model/vocab/1: 'a' is also token 0"),
        ([["a", 1]], {"type": "Unigram", "unk_id": 1}, "/model/unk_id: 1 is no id of the model"),
        ([["a", 1]], {"type": "Unigram", "unk_id": "a"}, "/model/unk_id: 'a' is no id of the model"),
        ({"a": 0}, {"unk_token": 3}, "/model/unk_token: expected a string, found int"),
        ({"\udc00": 0}, {}, "/model/vocab/0: the text holds a lone surrogate"),
    ],
)
def test_malformed_metaspace(tmp_path: Path, vocab: Any, model: dict[str, Any], message: str) -> None:
    document = metaspace_json(vocab, model=model)
    with pytest.raises(VocabError, match=f"tokenizer.json: {message}"):
        Vocab.from_file(saved(tmp_path, document, "tokenizer.json"))


# tiktoken rank files


def test_ranks(tmp_path: Path) -> None:
    path = saved(
        tmp_path, ranks({0: b"a", 1: b"\xff", 4: b" b"}).replace(b"\n", b"\r\n") + b"\n\n", "x.tiktoken"
    )
    vocab = Vocab.from_file(path, eos_ids=6, size=8)
    assert (vocab.tokens, vocab.eos_ids) == ([b"a", b"\xff", None, None, b" b", None, None, None], (6,))
    with pytest.warns(UserWarning, match="no end-of-sequence id was found"):
        assert Vocab.from_file(path).size == 5


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (b"YQ== 0\nYg==\n", r"line 2: expected the base64 of a token, a space and its id; found 'Yg=='"),
        (b"YQ== 0\nYg== 1 2\n", "line 2: expected the base64"),
        (b"YQ== 0\nYg== -1\n", "line 2: expected the base64"),
        (b"YQ== 0\nYg== 1_0\n", "line 2: expected the base64"),
        (b"YQ== 0\n\nY 1\n", "line 3: not valid base64"),
        (b"YQ== 0\nY!== 1\n", "line 2: not valid base64"),
        (b"YQ== 0\nYg=== 1\n", "line 2: not valid base64"),
        (b"YQ== 0\nYg== 2097152\n", "line 2: an id is an integer from 0 to 2097151"),
        (b"YQ== 0\nYg== " + b"9" * 5000, "line 2: an id is an integer"),
        (b"YQ== 0\nYg== 0\n", "line 2: id 0 has a token already"),
        (b"YQ== 0\nYQ== 1\n", "line 2: its token has id 0 already"),
        (b"#version: 0.2\n", "line 1: expected the base64"),
        (b"", "there are no tokens"),
    ],
)
def test_malformed_ranks(tmp_path: Path, lines: bytes, message: str) -> None:
    with pytest.raises(VocabError, match=f"x.tiktoken: {message}"):
        Vocab.from_file(saved(tmp_path, lines, "x.tiktoken"))


# tekken.json


def test_tekken(tmp_path: Path) -> None:
    document = tekken([b"a", b"\xff", b" b", b"cut off"])
    document["config"]["default_vocab_size"] = 6
    vocab = Vocab.from_file(saved(tmp_path, document, "tekken.json"))
    assert (vocab.tokens, vocab.eos_ids) == ([None, None, None, b"a", b"\xff", b" b"], (2,))

    document["special_tokens"] = [{"rank": 1, "token_str": "</s>", "is_control": True}]
    assert Vocab.from_file(saved(tmp_path, document, "tekken.json")).eos_ids == (1,)


def tekken_with(path: str, value: Any) -> dict[str, Any]:
    """A tekken.json in which the value at ``path`` is another; ``...`` removes it."""
    document: Any = tekken(
        [b"a", b"b"], special_tokens=[{"rank": 2, "token_str": "</s>"}, {"rank": 1, "token_str": "x"}]
    )
    *way, last = [int(key) if key.isdigit() else key for key in path.split("/")]
    place = document
    for key in way:
        place = place[key]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("config", [], "/config: expected an object, found list"),
        ("config/default_vocab_size", ..., "/config/default_vocab_size: expected an integer .* found None"),
        (
            "config/default_vocab_size",
            99,
            "/config/default_vocab_size is 99, with 3 special tokens and 2 others",
        ),
        ("config/default_vocab_size", 2, "/config/default_vocab_size is 2"),
        ("config/default_num_special_tokens", -1, "/config/default_num_special_tokens: expected an integer"),
        (
            "config/default_num_special_tokens",
            10**9,
            "/config/default_num_special_tokens: expected an integer",
        ),
        ("vocab", {}, "/vocab: expected an array, found dict"),
        ("vocab/1", 7, "/vocab/1: expected an object with rank 1"),
        ("vocab/1/rank", 0, "/vocab/1: expected an object with rank 1"),
        ("vocab/0/rank", False, "/vocab/0: expected an object with rank 0"),
        ("vocab/1/token_bytes", "Y", "/vocab/1/token_bytes: not valid base64"),
        ("vocab/1/token_bytes", "é", "/vocab/1/token_bytes: not valid base64"),
        ("vocab/1/token_bytes", "", "/vocab/1/token_bytes: expected a string in base64"),
        ("vocab/1/token_bytes", 5, "/vocab/1/token_bytes: expected a string in base64"),
        ("special_tokens", {}, "/special_tokens: expected an array, found dict"),
        ("special_tokens/0", 1, "/special_tokens/0: expected an object, found int"),
        ("special_tokens/0/token_str", 1, "/special_tokens/0/token_str: expected a string, found int"),
        ("special_tokens/0/rank", 3, "/special_tokens/0/rank: expected an id from 0 to 2, found 3"),
        ("special_tokens/1/rank", 2, "/special_tokens/1: 'x' or its rank 2 is given twice"),
    ],
)
def test_malformed_tekken(tmp_path: Path, path: str, value: Any, message: str) -> None:
    with pytest.raises(VocabError, match=f"tekken.json: {message}"):
        Vocab.from_file(saved(tmp_path, tekken_with(path, value), "tekken.json"))


# GGUF


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("version", [2, 3])
def test_gguf_of_the_llama_kind(tmp_path: Path, order: str, version: int) -> None:
    pairs = vocabulary_pairs("llama", PIECES, eos_token_id=2, eot_token_id=1, eom_token_id=2)
    vocab = Vocab.from_file(saved(tmp_path, gguf(pairs, version, order), "x.gguf"))
    raw = [text if text != b"  " else "▁▁".encode() for text in SPELLED]  # what users define stays as it is
    assert (vocab.tokens, vocab.eos_ids) == (raw, (1, 2))


def test_gguf_of_the_gpt2_kind(tmp_path: Path) -> None:
    tokens = [
        ("a", NORMAL),
        ("Ġa", NORMAL),
        ("Ċ", NORMAL),
        ("<|eot_id|>", CONTROL),
        ("Ġx", USER_DEFINED),
        ("<end>", CONTROL),
    ]
    vocab = Vocab.from_file(saved(tmp_path, gguf(vocabulary_pairs("gpt2", tokens, eos_token_id=5)), "x.gguf"))
    assert (vocab.tokens, vocab.eos_ids) == ([b"a", b" a", b"\n", None, "Ġx".encode(), None], (3, 5))


@pytest.mark.parametrize(("model", "extra"), [("gemma4", {}), ("gpt2", {"pre": "gemma4"}), ("t5", {})])
def test_other_gguf_kinds_with_marked_spaces(tmp_path: Path, model: str, extra: dict[str, Any]) -> None:
    tokens = [("▁a", NORMAL), ("Ġ", NORMAL), ("<0x0A>", BYTE), ("<eos>", CONTROL)]
    vocab = Vocab.from_file(saved(tmp_path, gguf(vocabulary_pairs(model, tokens, **extra)), "x.gguf"))
    assert (vocab.tokens, vocab.eos_ids) == ([b" a", "Ġ".encode(), b"\n", None], (3,))


def without(name: str) -> list[tuple[str, Any]]:
    return [pair for pair in vocabulary_pairs("llama", PIECES) if pair[0] != f"tokenizer.ggml.{name}"]


GOOD = vocabulary_pairs("llama", PIECES, eos_token_id=2)
LENGTH = struct.pack("<Q", 1 << 60)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"GGUF", "offset 4: 4 bytes are announced, but 0 are left"),
        (gguf(GOOD, version=1), "offset 8: GGUF version 1 is not supported"),
        (gguf(GOOD, version=4), "offset 8: GGUF version 4 is not supported"),
        (gguf(GOOD)[:-1], r"key 'tokenizer.ggml.add_bos_token', offset \d+: .* cut off"),
        (gguf(GOOD)[:16] + LENGTH, r"offset 24: 1152921504606846976 keys are more"),
        (gguf([*GOOD, GOOD[0]]), "key 'general.architecture', offset .*: the key is given twice"),
        (gguf(GOOD)[:24] + LENGTH, "offset 24: a string goes beyond the end"),
        (
            gguf(GOOD).replace(struct.pack("<IQ", 8, 11), struct.pack("<I", 8) + LENGTH),
            "'tokenizer.ggml.tokens', .* strings",
        ),
        (
            gguf(GOOD).replace(struct.pack("<IQ", 5, 11), struct.pack("<I", 5) + LENGTH),
            "token_type', .* bytes are announced",
        ),
        (
            gguf(GOOD).replace(struct.pack("<IQ", 5, 11), struct.pack("<IQ", 9, 11)),
            "token_type', .* no value type 9",
        ),
        (gguf([("a", "b\udcff")]), "key 'tokenizer.ggml.model' is missing"),
        (gguf([("a\udcff", "b")]), "offset 32: byte 1 of the text is not valid UTF-8"),
        (gguf(without("tokens")), "key 'tokenizer.ggml.tokens' is missing; pass a GGUF file that holds"),
        (gguf(without("token_type")), "key 'tokenizer.ggml.token_type' is missing"),
        (gguf([*without("tokens"), ("tokenizer.ggml.tokens", 3)]), "tokens' is a int, expected a list"),
        (gguf([*without("token_type"), ("tokenizer.ggml.token_type", [1])]), "1 types for 11 tokens"),
        (
            gguf([*without("token_type"), ("tokenizer.ggml.token_type", [9] * 11)]),
            "token 0: there is no token type 9",
        ),
        (
            gguf([*without("token_type"), ("tokenizer.ggml.token_type", [6] * 11)]),
            "token 0: b'<unk>' is no byte token",
        ),
        (gguf(vocabulary_pairs("bert", PIECES)), "a tokenizer of the kind 'bert' cannot be read"),
        (
            gguf(vocabulary_pairs("llama", PIECES, eos_token_id=11)),
            "eos_token_id': 11 is no id of a vocabulary of 11",
        ),
        (
            gguf(vocabulary_pairs("llama", PIECES, eos_token_id="</s>")),
            "eos_token_id' is a bytes, expected a int",
        ),
        (
            gguf(vocabulary_pairs("llama", PIECES, eos_token_id=True)),
            "eos_token_id' is a bool, expected a int",
        ),
        (
            gguf(vocabulary_pairs("gpt2", [("\udcff", NORMAL)])),
            "token 0: byte 0 of the text is not valid UTF-8",
        ),
        (gguf(vocabulary_pairs("llama", [])), "tokens' is a tuple, expected a list"),
    ],
)
def test_malformed_gguf(tmp_path: Path, raw: bytes, message: str) -> None:
    with pytest.raises(VocabError, match=f"x.gguf: .*{message}|x.gguf: {message}"):
        Vocab.from_file(saved(tmp_path, raw, "x.gguf"))


# SentencePiece


@pytest.mark.parametrize(
    ("settings", "eos_ids"),
    [({}, (2,)), ({"eos_piece": "<s>", "eos_id": 1}, (1, 2)), ({"eos_piece": "<unk>", "eos_id": -1}, (2,))],
)
def test_sentencepiece(tmp_path: Path, settings: dict[str, Any], eos_ids: tuple[int, ...]) -> None:
    vocab = Vocab.from_file(saved(tmp_path, sentencepiece(PIECES, **settings), "tokenizer.model"))
    assert (vocab.tokens, vocab.eos_ids) == (SPELLED, eos_ids)
    processor = SimpleNamespace(serialized_model_proto=lambda: sentencepiece(PIECES, **settings))
    assert Vocab.from_tokenizer(processor) == vocab


def test_sentencepiece_without_an_end(tmp_path: Path) -> None:
    pieces = [("<unk>", UNKNOWN), ("<stop>", CONTROL), ("▁a", NORMAL)]
    path = saved(tmp_path, sentencepiece(pieces, eos_piece="<stop>", eos_id=-1), "tokenizer.model")
    assert Vocab.from_file(path).eos_ids == ()
    path = saved(tmp_path, sentencepiece(pieces, eos_piece="<stop>", eos_id=1), "tokenizer.model")
    assert Vocab.from_file(path).eos_ids == (1,)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (sentencepiece(PIECES)[:100], r"offset \d+: damaged or cut off"),
        (field(1, piece("a", NORMAL)) + varint(1 << 3 | 3), "offset 10: there is no wire type 3"),
        (field(1, piece("a", NORMAL)) + b"\x02\x00", "offset 10: damaged or cut off"),
        (field(1, piece("a", NORMAL)) + b"\xff" * 12, "offset 10: a number is damaged or cut off"),
        (field(1, b"\x0a\xff\xff\xff\xff\x7f"), "offset 2: damaged or cut off"),
        (field(1, piece(b"a\xff", NORMAL)), "piece 0: byte 1 of the text is not valid UTF-8"),
        (field(1, piece("a", NORMAL)) * 2, "piece 1: 'a' is also piece 0"),
        (field(1, piece("a", 9)), "piece 0: there is no type 9"),
        (field(1, piece("a", BYTE)), "piece 0: 'a' is no byte such as <0x41>"),
        (field(2, b""), "there are no tokens"),
    ],
)
def test_malformed_sentencepiece(tmp_path: Path, raw: bytes, message: str) -> None:
    with pytest.raises(VocabError, match=f"tokenizer.model: {message}"):
        Vocab.from_file(saved(tmp_path, raw, "tokenizer.model"))


# Folders


def test_a_folder_of_a_model(tmp_path: Path) -> None:
    saved(tmp_path, sentencepiece(PIECES), "tokenizer.model")
    entries = {"2": {"content": "</s>", "special": True}, "11": {"content": "<tool>", "special": False}}
    config = {
        "eos_token": "</s>",
        "added_tokens_decoder": entries | {"12": {"content": "<|im_end|>", "special": True}},
    }
    saved(tmp_path, config, "tokenizer_config.json")
    saved(tmp_path, {"text_config": {"vocab_size": 16}}, "config.json")
    saved(tmp_path, {"eos_token_id": [12]}, "generation_config.json")
    vocab = Vocab.from_file(tmp_path)
    assert vocab.tokens == [*SPELLED, *[None] * 5]
    assert (vocab.eos_ids, vocab.markers) == ((2, 12), {"<tool>": 11})
    assert Vocab.from_file(tmp_path, size=12).eos_ids == (2,)

    (tmp_path / "tokenizer_config.json").unlink()
    saved(tmp_path, metaspace_json({"x": 0, "y": 1, "</s>": 2}), "tokenizer.json")
    assert Vocab.from_file(tmp_path, eos_ids=2).tokens == [b"x", b"y", *[None] * 14]


def test_the_configuration_adds_tokens_and_calls_tokens_special(tmp_path: Path) -> None:
    entries = [added(1, "</s>", True), added(2, "<tool>"), added(3, "▁x")]
    saved(tmp_path, metaspace_json({"a": 0, "</s>": 1}, entries), "tokenizer.json")
    assert Vocab.from_file(tmp_path).tokens == [b"a", None, None, b" x"]
    decoder = {
        "1": {"content": "</s>", "special": False},
        "2": {"content": "<tool>", "special": True},
        "3": {"content": "▁x", "special": False},
        "4": {"content": "<|im_end|>", "special": True},
    }
    saved(tmp_path, {"added_tokens_decoder": decoder, "eos_token": "<|im_end|>"}, "tokenizer_config.json")
    vocab = Vocab.from_file(tmp_path)
    assert (vocab.tokens, vocab.eos_ids) == ([b"a", None, None, b" x", None], (4,))


def test_the_model_may_be_narrower_than_its_tokenizer(tmp_path: Path) -> None:
    saved(
        tmp_path,
        metaspace_json({"a": 0, "</s>": 1, "<image>": 2}, [added(1, "</s>", True)]),
        "tokenizer.json",
    )
    saved(tmp_path, {"vocab_size": 2, "eos_token_id": [1, 2]}, "config.json")
    vocab = Vocab.from_file(tmp_path)
    assert (vocab.tokens, vocab.eos_ids) == ([b"a", None], (1,))


def test_rank_files_in_a_folder(tmp_path: Path) -> None:
    saved(tmp_path, ranks([b"a", b"b"]), "qwen.tiktoken")
    saved(tmp_path, {"vocab_size": 5, "eos_token_id": 3}, "config.json")
    assert Vocab.from_file(tmp_path).eos_ids == (3,)
    saved(tmp_path, ranks([b"a"]), "other.tiktoken")
    with pytest.raises(VocabError, match="there are 2 files"):
        Vocab.from_file(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "config.json",
            {"vocab_size": "9"},
            "config.json: /vocab_size: expected the width .* found '9'; .* size=",
        ),
        ("config.json", {"vocab_size": 0}, "/vocab_size: expected the width"),
        ("config.json", {"vocab_size": 1 << 40}, "/vocab_size: expected the width"),
        ("config.json", [], "config.json: the root: expected an object, found list"),
        ("tokenizer_config.json", {"added_tokens_decoder": []}, "/added_tokens_decoder: expected an object"),
        (
            "tokenizer_config.json",
            {"added_tokens_decoder": {"x": {}}},
            "/added_tokens_decoder/x: an id is an integer",
        ),
        (
            "tokenizer_config.json",
            {"added_tokens_decoder": {"9": 1}},
            "/added_tokens_decoder/9: expected an object",
        ),
        ("tokenizer_config.json", {"added_tokens_decoder": {"9": {}}}, "/9/content: expected a string"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"9": {"content": "<s>"}}}, "'<s>' has id 1 in"),
        (
            "tokenizer_config.json",
            {"added_tokens_decoder": {"6": {"content": "x"}}},
            "id 6 is another token in",
        ),
        (
            "tokenizer_config.json",
            {"added_tokens_decoder": {"99": {"content": "\ud800", "special": False}}},
            "added_tokens_decoder/99: the text holds a lone surrogate",
        ),
    ],
)
def test_malformed_configuration(tmp_path: Path, name: str, content: Any, message: str) -> None:
    saved(tmp_path, sentencepiece(PIECES), "tokenizer.model")
    saved(tmp_path, content, name)
    with pytest.raises(VocabError, match=message):
        Vocab.from_file(tmp_path)


# Loaded tokenizers of which there is no library here


def test_slow_tokenizers_with_a_byte_alphabet() -> None:
    special, plain = SimpleNamespace(special=True), SimpleNamespace(special=False)
    slow = SimpleNamespace(
        get_vocab=lambda: {"a": 0, "Ġa": 1, "é": 2, "</s>": 3, "<pad>": 4, "<x>": 6, "é!": 7},
        added_tokens_decoder={3: special, 6: plain, 7: plain},
        all_special_ids=[4],
        byte_decoder={"a": 97},
        eos_token_id=3,
    )
    vocab = Vocab.from_tokenizer(slow)
    assert vocab.tokens == [b"a", b" a", b"\xe9", None, None, None, None, "é!".encode()]
    assert (vocab.eos_ids, vocab.markers) == ((3,), {"<x>": 6})
    slow.get_vocab = lambda: {"a": "0"}
    with pytest.raises(VocabError, match=r"SimpleNamespace: get_vocab\(\): an id is an integer, found '0'"):
        Vocab.from_tokenizer(slow)
    del slow.byte_decoder
    with pytest.raises(VocabError, match=r"cannot tell what the tokens of .*SimpleNamespace spell"):
        Vocab.from_tokenizer(slow)


def test_slow_tokenizers_have_ids_of_their_own() -> None:
    """As those of the fairseq kind, whose ids are not those of the SentencePiece model inside."""
    model = SimpleNamespace(serialized_model_proto=lambda: sentencepiece(PIECES))
    slow = SimpleNamespace(
        get_vocab=lambda: {"<s>": 0, "<pad>": 1, "▁a": 2, "<0x0A>": 3, "é世": 4, "<mask>": 5, "not there": 6},
        added_tokens_decoder={5: SimpleNamespace(special=True)},
        all_special_ids=[0, 1],
        sp_model=model,
    )
    assert Vocab.from_tokenizer(slow).tokens == [None, None, b" a", b"\n", "é世".encode(), None, None]


# Saved vocabularies


def test_saved(tmp_path: Path) -> None:
    vocab = Vocab.from_file(saved(tmp_path, every_format()["metaspace.json"], "x.json"))
    path = tmp_path / "x.vocab"
    vocab.save(path)
    loaded = Vocab.from_file(path)
    assert loaded == vocab and loaded.tokens == vocab.tokens and loaded.missing_bytes == vocab.missing_bytes
    grammar = Grammar.from_lark('start: "a" " a"* "\\n"')
    assert compile(grammar, loaded).to_bytes() == compile(grammar, vocab).to_bytes()
    loaded.save(path)  # in place of the file that is mapped
    assert loaded.tokens == Vocab.from_file(path).tokens == vocab.tokens

    changed = Vocab.from_file(path, eos_ids=[5], size=7)
    assert (changed.tokens, changed.eos_ids) == ([*vocab.tokens[:5], None, vocab.tokens[6]], (5,))
    assert Vocab.from_file(path, size=20).eos_ids == vocab.eos_ids


def test_saved_files_that_cannot_be_used(tmp_path: Path) -> None:
    vocab = Vocab.from_file(saved(tmp_path, every_format()["metaspace.json"], "x.json"))
    with pytest.raises(VocabError, match=r"nowhere/x\.vocab: cannot be written"):
        vocab.save(tmp_path / "nowhere" / "x.vocab")
    path = tmp_path / "x.vocab"
    vocab.save(path)
    raw = path.read_bytes()
    for content, message in [
        (raw[:-1], "is truncated or padded: expected"),
        (raw[:8] + b"\x07" + raw[9:], "has version 7, this release reads 3"),
        (raw[:-1] + bytes([raw[-1] ^ 1]), "is damaged: section"),
    ]:
        with pytest.raises(VocabError, match=f"y.vocab: the saved vocabulary {message}.*; save it again"):
            Vocab.from_file(saved(tmp_path, content, "y.vocab"))
