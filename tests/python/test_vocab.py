"""Vocabularies: what ids spell, where end-of-sequence ids come from, and what is refused."""

from __future__ import annotations

import json
import os
import pickle
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from texts import random_texts

from glrgrid.data import default_tokenizer_path
from glrgrid.errors import StateError, VocabError
from glrgrid.vocab import MAX_IDS, Vocab, VocabWarning

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
KEEP_WARNINGS = pytest.mark.filterwarnings("default::glrgrid.vocab.VocabWarning")
pytestmark = pytest.mark.filterwarnings("ignore::glrgrid.vocab.VocabWarning")


def added(token_id: Any, content: Any, special: Any = False) -> dict[str, Any]:
    """An entry of added_tokens."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": token_id, "content": content, "special": special, **flags}


def document(vocab: Any = None, added_tokens: Any = (), model: Any = None, **parts: Any) -> dict[str, Any]:
    """A small byte-level tokenizer.json; ``model`` and ``parts`` replace fields, ``...`` removes one."""
    fields = {
        "type": "BPE",
        "continuing_subword_prefix": "",
        "end_of_word_suffix": "",
        "byte_fallback": False,
        "vocab": {"a": 0, "b": 1, "Ġa": 2} if vocab is None else vocab,
        "merges": [],
        **(model or {}),
    }
    top = {
        "version": "1.0",
        "added_tokens": list(added_tokens) if isinstance(added_tokens, tuple) else added_tokens,
        "normalizer": None,
        "pre_tokenizer": BYTE_LEVEL,
        "decoder": BYTE_LEVEL,
        "model": {key: value for key, value in fields.items() if value is not ...},
        **parts,
    }
    return {key: value for key, value in top.items() if value is not ...}


def saved(folder: Path, content: Any, name: str = "tokenizer.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


# Real vocabularies


def vocabulary_file(name: str) -> Path:
    if name == "default":
        return default_tokenizer_path()
    data = os.environ.get("GLRGRID_DATA")
    if not data:
        pytest.skip("GLRGRID_DATA is not set, so there is no " + name)
    path = Path(data) / "vocabs" / f"{name}.tokenizer.json"
    if not path.is_file():
        pytest.skip(f"there is no {path}")
    return path


@pytest.mark.parametrize("name", ["default", "gpt2", "llama3", "qwen2"])
def test_encoded_ids_spell_the_text(name: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    path = vocabulary_file(name)
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    tokens = Vocab.from_file(path).tokens
    for text in random_texts(600):
        wanted = tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer else text
        spelled = [tokens[token_id] for token_id in tokenizer.encode(text, add_special_tokens=False).ids]
        assert None not in spelled
        assert b"".join(spelled) == wanted.encode(), repr(text)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["default", "gpt2", "llama3", "qwen2"])
def test_every_id_spells_what_tokenizers_decodes(name: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    path = vocabulary_file(name)
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    special = {i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    vocab = Vocab.from_file(path)
    assert vocab.size == max(tokenizer.get_vocab().values()) + 1
    assert vocab.missing_bytes == ()
    for token_id, token in enumerate(vocab.tokens):
        assert (token is None) == (token_id in special)
        if token is not None:
            assert tokenizer.decode([token_id]) == token.decode(errors="replace")


@pytest.mark.parametrize(
    ("name", "size", "eos_ids"),
    [
        ("gpt2", 50257, (50256,)),
        ("llama3", 128256, (128001, 128009)),
        ("qwen2", 151936, (151643, 151645)),
    ],
)
def test_known_vocabularies(name: str, size: int, eos_ids: tuple[int, ...]) -> None:
    vocab = Vocab.from_file(vocabulary_file(name))
    assert (vocab.size, vocab.eos_ids) == (size, eos_ids)


@KEEP_WARNINGS
def test_default() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vocab = Vocab.default()
    ids = json.loads(default_tokenizer_path().read_text(encoding="utf-8"))["model"]["vocab"]
    assert vocab is Vocab.default()
    assert len(vocab) == vocab.size == 8000
    assert vocab.eos_ids == (ids["<|endoftext|>"],)
    assert vocab.token_bytes(ids["<|endoftext|>"]) is vocab.token_bytes(ids["<|pad|>"]) is None
    assert {b" SELECT", b" select", b'":', b"\n", b" WHERE"} <= set(vocab.tokens)
    assert vocab.tokens.count(None) == 2
    assert vocab.missing_bytes == ()


# What tokens spell


def test_ordinary_added_and_special_tokens(tmp_path: Path) -> None:
    vocab = {"a": 0, "Ġa": 1, "Ċ": 2, "Ã": 3, "©": 4, "世": 5, "世Ġ": 6, " b": 7, "": 8}
    entries = (
        added(9, "<think>"),
        added(10, "<|eot_id|>", True),
        added(11, "   "),
        added(12, "naïve"),
        added(13, "｜x"),
        added(14, " a"),
    )
    loaded = Vocab.from_file(saved(tmp_path, document(vocab, entries)))
    # fmt: off
    assert loaded.tokens == [
        b"a", b" a", b"\n", b"\xc3", b"\xa9", "世".encode(), "世Ġ".encode(), b" b", None,
        None, None, b"   ", "naïve".encode(), "｜x".encode(), b" a",
    ]
    # fmt: on
    assert (loaded.eos_ids, loaded.markers) == ((10,), {"<think>": 9})


def test_an_added_token_may_repeat_one_of_the_model(tmp_path: Path) -> None:
    loaded = Vocab.from_file(saved(tmp_path, document(added_tokens=(added(1, "b", True),))))
    assert loaded.tokens == [b"a", None, b" a"]


@KEEP_WARNINGS
def test_holes_spell_nothing(tmp_path: Path) -> None:
    path = saved(tmp_path, document({"a": 0, "b": 4}, (added(6, "</s>", True),)))
    with pytest.warns(
        VocabWarning, match=r"/added_tokens/0/id is 6, but the tokenizers library would make it 2"
    ):
        loaded = Vocab.from_file(path)
    assert loaded.tokens == [b"a", None, None, None, b"b", None, None]
    assert loaded.eos_ids == (6,)


def test_aliases_keep_their_ids() -> None:
    assert Vocab.from_bytes([b"x", b"y", b"x"]).tokens == [b"x", b"y", b"x"]


@KEEP_WARNINGS
def test_missing_bytes_are_listed_in_a_warning() -> None:
    tokens = [bytes([byte]) for byte in range(256) if byte not in (0, 1, 2, 0x41)] + [b"A\x00"]
    with pytest.warns(VocabWarning, match=r"4 of 256 bytes .*\(0x00-0x02, 0x41\)") as caught:
        vocab = Vocab.from_bytes(tokens)
    assert caught[0].filename == __file__
    assert vocab.missing_bytes == (0, 1, 2, 0x41)


@pytest.mark.parametrize(
    "parts",
    [
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits"}, BYTE_LEVEL]}},
        {"decoder": {"type": "Sequence", "decoders": [BYTE_LEVEL, {"type": "Fuse"}]}},
        {"decoder": None},
        {"decoder": None, "pre_tokenizer": None, "normalizer": {"type": "ByteLevel"}},
        {"pre_tokenizer": None, "normalizer": {"type": "NFC"}},
        {"model": {"type": ...}},
        {"model": {"continuing_subword_prefix": None, "end_of_word_suffix": ..., "byte_fallback": ...}},
        {"added_tokens": ...},
    ],
)
def test_forms_of_byte_level_files(tmp_path: Path, parts: dict[str, Any]) -> None:
    assert Vocab.from_file(saved(tmp_path, document(**parts))).tokens == [b"a", b"b", b" a"]


# Size


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        (None, [b"a", b"b", b" a", b"xx", None]),
        (5, [b"a", b"b", b" a", b"xx", None]),
        (7, [b"a", b"b", b" a", b"xx", None, None, None]),
        (2, [b"a", b"b"]),
    ],
)
def test_size_of_a_file(tmp_path: Path, size: int | None, tokens: list[bytes | None]) -> None:
    path = saved(tmp_path, document(added_tokens=(added(3, "xx"), added(4, "</s>", True))))
    vocab = Vocab.from_file(path, size=size)
    assert vocab.tokens == tokens
    assert len(vocab) == vocab.size == len(tokens)
    assert vocab.eos_ids == ((4,) if len(tokens) > 4 else ())


def test_size_of_bytes() -> None:
    assert Vocab.from_bytes({0: b"a", 2: b"b"}).tokens == [b"a", None, b"b"]
    assert Vocab.from_bytes({0: b"a"}, eos_ids=[2]).tokens == [b"a", None, None]
    assert Vocab.from_bytes({0: b"a", 2: b"b"}, size=2).tokens == [b"a", None]
    assert Vocab.from_bytes([b"a", b"", None], size=4).tokens == [b"a", None, None, None]
    assert Vocab.from_bytes({}, size=2).tokens == [None, None]


@pytest.mark.parametrize("size", [0, -1, MAX_IDS + 1, 1.5, "3", True])
def test_unusable_sizes(tmp_path: Path, size: Any) -> None:
    with pytest.raises(VocabError, match="size must be an integer from 1 to"):
        Vocab.from_bytes([b"a"], size=size)
    with pytest.raises(VocabError, match="size must be an integer from 1 to"):
        Vocab.from_file(saved(tmp_path, document()), size=size)


# End of sequence

SPECIALS = (added(3, "<|im_end|>", True), added(4, "</s>", True), added(5, "<pad>", True), added(6, "<eos>"))


@pytest.mark.parametrize(
    ("configs", "eos_ids"),
    [
        ({}, (3, 4)),
        ({"generation_config.json": {"eos_token_id": 5}}, (5,)),
        ({"generation_config.json": {"eos_token_id": [4, 3, 4]}}, (3, 4)),
        ({"generation_config.json": {"eos_token_id": None}, "config.json": {"eos_token_id": 4}}, (4,)),
        ({"generation_config.json": {"eos_token_id": 3}, "config.json": {"eos_token_id": 4}}, (3,)),
        ({"config.json": {"text_config": {"eos_token_id": [5]}}}, (5,)),
        ({"tokenizer_config.json": {"eos_token": "<pad>"}}, (5,)),
        ({"tokenizer_config.json": {"eos_token": {"content": "<eos>", "special": True}}}, (6,)),
        ({"tokenizer_config.json": {"eos_token": "</s>"}, "config.json": {"eos_token_id": 3}}, (3, 4)),
        ({"tokenizer_config.json": {"eos_token": None}}, (3, 4)),
    ],
)
def test_where_eos_ids_come_from(tmp_path: Path, configs: dict[str, Any], eos_ids: tuple[int, ...]) -> None:
    path = saved(tmp_path, document(added_tokens=SPECIALS))
    for name, config in configs.items():
        saved(tmp_path, config, name)
    vocab = Vocab.from_file(path)
    assert vocab.eos_ids == eos_ids
    assert all(vocab.token_bytes(token_id) is None for token_id in eos_ids)
    assert Vocab.from_file(tmp_path) == vocab


@KEEP_WARNINGS
def test_the_argument_names_the_eos_ids(tmp_path: Path) -> None:
    path = saved(tmp_path, document(added_tokens=SPECIALS))
    (tmp_path / "generation_config.json").write_text("not JSON")
    with pytest.warns(VocabWarning, match="bytes have no token") as caught:
        assert Vocab.from_file(path, eos_ids=[5, 1]).eos_ids == (1, 5)
        assert Vocab.from_file(path, eos_ids=4).eos_ids == (4,)
        assert Vocab.from_file(path, eos_ids=()).eos_ids == ()
        assert Vocab.from_file(path, eos_ids=[9], size=10).eos_ids == (9,)
    assert not [warning for warning in caught if "end-of-sequence" in str(warning.message)]


def test_an_eos_id_spells_nothing() -> None:
    assert Vocab.from_bytes({0: b"a", 1: b"\n"}, eos_ids=[1]).tokens == [b"a", None]


@KEEP_WARNINGS
def test_no_eos_id_is_a_warning(tmp_path: Path) -> None:
    path = saved(tmp_path, document(added_tokens=(added(3, "<|other|>", True),)))
    with pytest.warns(VocabWarning, match=r"no end-of-sequence id was found.* pass eos_ids=") as caught:
        assert Vocab.from_file(path).eos_ids == ()
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        (
            {"generation_config.json": {"eos_token_id": "</s>"}},
            r"/eos_token_id: an id is an integer.*eos_ids=",
        ),
        ({"generation_config.json": {"eos_token_id": [True]}}, r"/eos_token_id: an id is an integer"),
        ({"generation_config.json": {"eos_token_id": -1}}, r"/eos_token_id: id -1 is outside"),
        ({"generation_config.json": {"eos_token_id": 7}}, r"end-of-sequence id 7 is outside .* 7 ids"),
        ({"generation_config.json": []}, r"generation_config.json: the root: expected an object, found list"),
        ({"tokenizer_config.json": {"eos_token": "<no>"}}, r"/eos_token: '<no>' is no token of"),
        ({"tokenizer_config.json": {"eos_token": 5}}, r"/eos_token: 5 is no token of"),
    ],
)
def test_contradicting_configuration_files(tmp_path: Path, configs: dict[str, Any], message: str) -> None:
    path = saved(tmp_path, document(added_tokens=SPECIALS))
    for name, config in configs.items():
        saved(tmp_path, config, name)
    with pytest.raises(VocabError, match=message):
        Vocab.from_file(path)


@pytest.mark.parametrize("eos_ids", [[9], [-1], ["</s>"], "</s>", [1.0], True])
def test_unusable_eos_arguments(tmp_path: Path, eos_ids: Any) -> None:
    with pytest.raises(VocabError, match=r"eos_ids|end-of-sequence id 9"):
        Vocab.from_file(saved(tmp_path, document()), eos_ids=eos_ids)
    if eos_ids != [9]:
        with pytest.raises(VocabError, match="eos_ids"):
            Vocab.from_bytes([b"a"], eos_ids=eos_ids)


# Refusals

METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (document(model={"type": "WordPiece"}, decoder={"type": "WordPiece"}), "its model is WordPiece"),
        (document(model={"type": "WordLevel"}), "its model is WordLevel"),
        (document(model={"type": ..., "merges": ...}), "its model is of an unnamed type"),
        (document(model={"byte_fallback": True}), "its model uses byte_fallback"),
        (document(model={"end_of_word_suffix": "</w>"}), "its model sets end_of_word_suffix"),
        (document(decoder={"type": "BPEDecoder", "suffix": "</w>"}), r"changes the text \(BPEDecoder\)"),
        (document(decoder=None, pre_tokenizer={"type": "Whitespace"}), "neither its decoder nor"),
        (document(decoder={"type": "Fuse"}), "neither its decoder nor"),
        (document(decoder=METASPACE | {"replacement": 3}), r"changes the text \(Metaspace\)"),
        (
            document(decoder={"type": "Replace", "pattern": {"String": "▁"}, "content": "-"}),
            r"changes the text \(Replace\)",
        ),
        (
            document(decoder={"type": "Sequence", "decoders": [METASPACE, METASPACE | {"replacement": "_"}]}),
            "two characters for a space",
        ),
        (
            document(decoder={"type": "Sequence", "decoders": [BYTE_LEVEL, {"type": "Strip"}]}),
            r"its decoder also changes the text \(Strip\)",
        ),
    ],
)
def test_other_kinds_are_refused_by_name(tmp_path: Path, content: Any, reason: str) -> None:
    with pytest.raises(VocabError, match=f"not a tokenizer that spells bytes: .*{reason}.*Vocab.from_bytes"):
        Vocab.from_file(saved(tmp_path, content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "the root: expected an object, found list"),
        ({}, "/model: expected an object, found nothing"),
        (document() | {"model": [1]}, "/model: expected an object, found list"),
        (document(model={"vocab": ...}), "/model/vocab: expected an object from token to id, found nothing"),
        (document(["a"]), "/model/vocab: expected an object from token to id, found list"),
        (document({}), "there are no tokens"),
        (document({"a": 0, "b": 0}), "/model/vocab/b: id 0 is also the id of 'a'"),
        (document({"a/~é": -1}), r"/model/vocab/a~1~0\\xe9: an id is an integer from 0 to 2097151, found -1"),
        (document({"a": MAX_IDS}), "/model/vocab/a: an id is an integer from 0 to 2097151, found 2097152"),
        (document({"a": 10**30}), "/model/vocab/a: an id is an integer"),
        (document({"a": 1.0}), "/model/vocab/a: an id is an integer from 0 to 2097151, found 1.0"),
        (document({"a": True}), "/model/vocab/a: an id is an integer"),
        (document({"a": None}), "/model/vocab/a: an id is an integer"),
        (document({"a": "0"}), "/model/vocab/a: an id is an integer"),
        (document({"\ud800": 0}), "/model/vocab/0: the text holds a lone surrogate"),
        (document(added_tokens={"a": 1}), "/added_tokens: expected an array, found dict"),
        (document(added_tokens=["</s>"]), "/added_tokens/0: expected an object, found str"),
        (document(added_tokens=[{"id": 3}]), "/added_tokens/0/content: expected a string, found nothing"),
        (document(added_tokens=[added(3, 7)]), "/added_tokens/0/content: expected a string, found int"),
        (
            document(added_tokens=[added(3, "x", "yes")]),
            "/added_tokens/0/special: expected true or false, found str",
        ),
        (document(added_tokens=[added(-3, "x")]), "/added_tokens/0/id: an id is an integer"),
        (document(added_tokens=[{"content": "x"}]), "/added_tokens/0/id: an id is an integer .*found None"),
        (
            document(added_tokens=[added(3, "x"), added(3, "y")]),
            "/added_tokens/1/id: id 3 of 'y' is also .* 'x'",
        ),
        (document(added_tokens=[added(1, "x")]), "/added_tokens/0/id: id 1 of 'x' is also the id of 'b'"),
        (document(added_tokens=[added(3, "b")]), "/added_tokens/0/id: 'b' has id 3 here and 1 elsewhere"),
        (
            document(added_tokens=[added(3, "x"), added(4, "x")]),
            "/added_tokens/1/id: 'x' has id 4 here and 3",
        ),
        (
            document(added_tokens=[added(3, "\udfff")]),
            "/added_tokens/0/content: the text holds a lone surrogate",
        ),
    ],
)
def test_malformed_documents(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(VocabError, match=f"tokenizer.json: {message}"):
        Vocab.from_file(saved(tmp_path, content))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        json.dumps(document()).encode()[:-20],
        b"\x00\x01\xfe\xff",
        b"\xff\xfe{",
        b"[" * 100_000,
        b'{"model": {"vocab": {"a": 0, "a": 1}}}',
    ],
    ids=["empty", "brace", "truncated", "binary", "utf16", "deep", "key twice"],
)
def test_files_that_are_not_json(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(raw)
    with pytest.raises(VocabError, match=r"tokenizer.json: not a complete JSON document"):
        Vocab.from_file(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(VocabError, match=r"none\.json: cannot be read"):
        Vocab.from_file(tmp_path / "none.json")
    with pytest.raises(VocabError, match=r"there is no tokenizer in this folder"):
        Vocab.from_file(tmp_path)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ({"0": b"a"}, "an id is an integer, found '0'"),
        ({True: b"a"}, "an id is an integer"),
        ({-1: b"a"}, "id -1 is outside"),
        ({MAX_IDS: b"a"}, "is outside"),
        ({0: "a"}, r"tokens\[0\] must be bytes or None, found str; encode it first"),
        ([b"a", 3], r"tokens\[1\] must be bytes or None, found int"),
        (b"abc", "found bytes"),
        ("abc", "found str"),
        (7, "found int"),
        ({}, "there are no tokens"),
        ([], "there are no tokens"),
    ],
)
def test_malformed_tables(tokens: Any, message: str) -> None:
    with pytest.raises(VocabError, match=message):
        Vocab.from_bytes(tokens)


# Loaded tokenizers


def test_from_tokenizer() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(default_tokenizer_path()))
    assert Vocab.from_tokenizer(tokenizer) == Vocab.default()
    assert Vocab.from_tokenizer(tokenizer, eos_ids=[1], size=9000).eos_ids == (1,)

    fast = SimpleNamespace(backend_tokenizer=tokenizer, eos_token_id=1)
    assert Vocab.from_tokenizer(fast).eos_ids == (1,)
    assert Vocab.from_tokenizer(fast, eos_ids=0).eos_ids == (0,)
    fast.eos_token_id = None
    assert Vocab.from_tokenizer(fast) == Vocab.default()


def test_from_tokenizer_follows_tokens_added_later() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(default_tokenizer_path()))
    tokenizer.add_special_tokens(["<|eot_id|>"])
    tokenizer.add_tokens(["<tool>", "naïve"])
    vocab = Vocab.from_tokenizer(tokenizer)
    assert vocab.tokens[8000:] == [None, None, "naïve".encode()]
    assert vocab.markers == {"<tool>": 8001}
    assert Vocab.from_tokenizer(tokenizer, added_tokens="text").token_bytes(8001) == b"<tool>"
    assert vocab.eos_ids == (0, 8000)


@pytest.mark.parametrize("obj", [None, "gpt2", object(), SimpleNamespace(backend_tokenizer=3)])
def test_other_tokenizer_types_are_refused_by_name(obj: Any) -> None:
    with pytest.raises(
        VocabError, match=f"{type(obj).__module__}.{type(obj).__qualname__}.*pass a tokenizers"
    ):
        Vocab.from_tokenizer(obj)


# The object


def test_a_vocab_is_an_immutable_value() -> None:
    vocab = Vocab.from_bytes([b"a", b"b", None], eos_ids=[2])
    twin = Vocab.from_bytes({1: b"b", 0: b"a"}, eos_ids=[2])
    assert vocab == twin and hash(vocab) == hash(twin) and vocab.fingerprint == twin.fingerprint
    assert vocab != Vocab.from_bytes([b"a", b"c", None], eos_ids=[2])
    assert vocab != Vocab.from_bytes([b"a", b"b", None])
    assert vocab != Vocab.from_bytes([b"a", b"b"], eos_ids=[2], size=4)
    assert vocab != "vocab"
    assert pickle.loads(pickle.dumps(vocab)) == vocab
    vocab.tokens[0] = b"changed"
    assert vocab.tokens == [b"a", b"b", None]
    for name in ("size", "_native", "other"):
        with pytest.raises(AttributeError):
            setattr(vocab, name, 1)
    with pytest.raises(AttributeError):
        del vocab._native
    assert repr(vocab) == f"Vocab(size=3, eos_ids=(2,), fingerprint='{vocab.fingerprint[:12]}')"
    assert int(vocab.fingerprint, 16) > 0


@pytest.mark.parametrize("token_id", [-1, 2, MAX_IDS, "0", 0.0, None, True])
def test_token_bytes_of_something_else(token_id: Any) -> None:
    vocab = Vocab.from_bytes([b"a", b"b"])
    with pytest.raises(StateError, match="token id"):
        vocab.token_bytes(token_id)
