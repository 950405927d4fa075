"""Real vocabularies of every format: what a tokenizer encodes a text to spells that text.

The files come from GLRGRID_DATA and from installed packages that ship tokenizers (litellm, dashscope, mistral-common);
a test whose file or library is not there is skipped. GLRGRID_ROUNDTRIP_TEXTS sets the number of random texts.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from texts import random_texts
from tokenizer_files import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    added,
    every_format,
    metaspace_json,
)

from glrgrid import Vocab, VocabError
from glrgrid.data import default_tokenizer_path

TEXTS = random_texts(int(os.environ.get("GLRGRID_ROUNDTRIP_TEXTS", "300")))
pytestmark = pytest.mark.filterwarnings("ignore::glrgrid.vocab.VocabWarning")

SPLIT = r" ?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+"
"""How texts are cut before tiktoken merges bytes. Any pattern that loses nothing will do."""

LITELLM = "litellm:litellm_core_utils/tokenizers/"
MISTRAL = "mistral_common:data/"
DASHSCOPE = "dashscope:resources/"
BYTE_LEVEL = {
    "default": "",
    "gpt2": "data:vocabs/gpt2.tokenizer.json",
    "llama3": "data:vocabs/llama3.tokenizer.json",
    "qwen2": "data:vocabs/qwen2.tokenizer.json",
    "deepseek": LITELLM + "deepseek_tokenizer.json",
    "anthropic": LITELLM + "anthropic_tokenizer.json",
}
RANKS = {
    "p50k": LITELLM + "ec7223a39ce59f226a68acc30dc1af2788490e15",
    "cl100k": LITELLM + "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k": LITELLM + "fb374d419588a4632f3f557e76b4b70aebbca790",
    "qwen": DASHSCOPE + "qwen.tiktoken",
}
TEKKEN = {"nemo": MISTRAL + "tekken_240718.json", "pixtral": MISTRAL + "tekken_240911.json"}
SENTENCEPIECE = {
    "mistral_v1": MISTRAL + "tokenizer.model.v1",
    "mistral_v3": MISTRAL + "mistral_instruct_tokenizer_240323.model.v3",
    "mistral_v7": MISTRAL + "mistral_instruct_tokenizer_241114.model.v7",
}


def located(source: str) -> Path:
    """A file of GLRGRID_DATA or of an installed package, or skip."""
    if not source:
        return default_tokenizer_path()
    holder, _, name = source.partition(":")
    if holder == "data":
        folder = os.environ.get("GLRGRID_DATA")
        if not folder:
            pytest.skip(f"GLRGRID_DATA is not set, so there is no {name}")
    else:
        package = importlib.util.find_spec(holder)  # found, not imported
        if package is None or package.origin is None:
            pytest.skip(f"{holder} is not installed, so there is no {name}")
        folder = str(Path(package.origin).parent)
    path = Path(folder) / name
    if not path.is_file():
        pytest.skip(f"there is no {path}")
    return path


def check(vocab: Vocab, encode: Callable[[str], list[int]], spelled: Callable[[str], str] = str) -> None:
    """Every text's ids spell what ``spelled`` says of it."""
    tokens = vocab.tokens
    for text in TEXTS:
        pieces = [tokens[token_id] for token_id in encode(text)]
        assert None not in pieces, repr(text)
        assert b"".join(pieces) == spelled(text).encode(), repr(text)  # type: ignore[arg-type]


def tiktoken_encoding(path: Path, special: dict[str, int]) -> Any:
    """A tiktoken.Encoding, of what tiktoken itself reads."""
    tiktoken, load = pytest.importorskip("tiktoken"), pytest.importorskip("tiktoken.load")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", "")
        ranks = load.load_tiktoken_bpe(str(path))
    return tiktoken.Encoding(path.name, pat_str=SPLIT, mergeable_ranks=ranks, special_tokens=special)


@pytest.mark.parametrize("name", BYTE_LEVEL)
def test_byte_level(name: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    path = located(BYTE_LEVEL[name])
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    vocab = Vocab.from_file(path)
    assert vocab.missing_bytes == () and vocab.eos_ids
    normal = tokenizer.normalizer.normalize_str if tokenizer.normalizer else str
    check(vocab, lambda text: tokenizer.encode(text, add_special_tokens=False).ids, normal)
    assert Vocab.from_tokenizer(tokenizer) == vocab
    special = {i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    assert not special & set(vocab.markers.values())
    for token_id, token in enumerate(vocab.tokens):
        assert (token is None) == (token_id in special or token_id in vocab.markers.values())
        if token is not None:
            assert tokenizer.decode([token_id]) == token.decode(errors="replace")


def test_marks_of_a_format_are_no_text() -> None:
    vocab = Vocab.from_file(located(BYTE_LEVEL["deepseek"]))
    assert len(vocab.markers) == 53 and {"<think>", "<｜tool▁sep｜>", "<dsml:"} <= vocab.markers.keys()
    as_text = Vocab.from_file(located(BYTE_LEVEL["deepseek"]), added_tokens="text")
    assert as_text.token_bytes(vocab.markers["<think>"]) == b"<think>" and not as_text.markers


@pytest.mark.parametrize("name", RANKS)
def test_ranks(name: str) -> None:
    path = located(RANKS[name])
    encoding = tiktoken_encoding(path, {})
    vocab = Vocab.from_file(path, eos_ids=[])
    assert vocab.missing_bytes == ()
    check(vocab, lambda text: encoding.encode(text, disallowed_special=()))

    end = encoding.n_vocab + 3
    encoding = tiktoken_encoding(path, {"<|endoftext|>": end, "<|other|>": end + 2})
    assert Vocab.from_tokenizer(encoding) == Vocab.from_file(path, eos_ids=end, size=end + 3)


@pytest.mark.parametrize("name", TEKKEN)
def test_tekken(name: str) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    path = located(TEKKEN[name])
    vocab = Vocab.from_file(path)
    assert (vocab.size, vocab.eos_ids, vocab.missing_bytes) == (131072, (2,), ())
    assert vocab.tokens[:1000] == [None] * 1000
    entries = json.loads(path.read_bytes())["vocab"][: 131072 - 1000]
    ranks = {base64.b64decode(entry["token_bytes"]): entry["rank"] for entry in entries}
    encoding = tiktoken.Encoding(name, pat_str=SPLIT, mergeable_ranks=ranks, special_tokens={})
    check(vocab, lambda text: [1000 + rank for rank in encoding.encode(text, disallowed_special=())])


def with_spaces(text: str) -> str:
    """What the pieces of a SentencePiece model spell: a space before the text, and spaces for U+2581."""
    return f" {text}".replace("\u2581", " ") if text else ""


@pytest.mark.parametrize("name", SENTENCEPIECE)
def test_sentencepiece(name: str) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    path = located(SENTENCEPIECE[name])
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    vocab = Vocab.from_file(path)
    assert (vocab.size, vocab.eos_ids, vocab.missing_bytes) == (len(processor), (processor.eos_id(),), ())
    check(vocab, processor.encode, with_spaces)
    assert Vocab.from_tokenizer(processor) == vocab
    for token_id, token in enumerate(vocab.tokens):
        marker = token_id in vocab.markers.values()  # [INST] and the like, which users define
        silent = marker or processor.is_control(token_id) or processor.is_unknown(token_id)
        assert (token is None) == silent
        if not silent and not processor.is_byte(token_id):
            assert processor.id_to_piece(token_id).replace("\u2581", " ").encode() == token


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_model_that_was_just_trained(kind: str, tmp_path: Path) -> None:
    """Also with an end piece of another name, symbols that users define, and the twin as a tokenizer.json."""
    sentencepiece = pytest.importorskip("sentencepiece")
    tokenizers = pytest.importorskip("tokenizers")
    sentencepiece.SentencePieceTrainer.train(
        input=str(Path(__file__).parents[2] / "README.md"),
        model_prefix=str(tmp_path / "x"),
        model_type=kind,
        vocab_size=700,
        character_coverage=0.98,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        user_defined_symbols=["▁▁", "<tool>"],
        control_symbols=["<|im_end|>"],
        eos_piece="<end>",
        minloglevel=2,
    )
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "x.model"))
    vocab = Vocab.from_file(tmp_path / "x.model")
    assert vocab.eos_ids == (2, processor.piece_to_id("<|im_end|>"))
    assert b"  " in vocab.tokens and vocab.missing_bytes == ()
    assert vocab.markers == {"<tool>": processor.piece_to_id("<tool>")}
    check(vocab, processor.encode, with_spaces)
    if kind == "unigram":
        entries = [[processor.id_to_piece(i), processor.get_score(i)] for i in range(len(processor))]
        specials = [added(i, entries[i][0], True) for i in range(len(processor)) if processor.is_control(i)]
        specials += [added(i, name) for name, i in vocab.markers.items()]
        model = {"type": "Unigram", "unk_token": None, "unk_id": 0}
        normalizer = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
        document = metaspace_json(entries, specials, model=model, normalizer=normalizer)
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(document))
        twin = Vocab.from_tokenizer(tokenizer, eos_ids=vocab.eos_ids)
        assert twin == vocab
        check(
            twin,
            lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
            lambda text: text.replace("▁", " "),
        )


def merges(pieces: dict[str, float]) -> list[tuple[str, str]]:
    """The merges that make a SentencePiece model's pieces out of shorter ones, best score first."""
    ranked = []
    for whole, score in pieces.items():
        parts = [(whole[:at], whole[at:]) for at in range(1, len(whole))]
        ranked += [(-score, pair) for pair in parts if pair[0] in pieces and pair[1] in pieces]
    return [pair for _, pair in sorted(ranked, key=lambda entry: entry[0])]


@pytest.mark.parametrize("name", SENTENCEPIECE)
def test_metaspace(name: str, tmp_path: Path) -> None:
    """The same vocabulary as a tokenizer.json of the Llama 2 kind."""
    tokenizers = pytest.importorskip("tokenizers")
    sentencepiece = pytest.importorskip("sentencepiece")
    path = located(SENTENCEPIECE[name])
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    names = [processor.id_to_piece(token_id) for token_id in range(len(processor))]
    scores = {
        piece: processor.get_score(token_id)
        for token_id, piece in enumerate(names)
        if not (
            processor.is_control(token_id) or processor.is_unknown(token_id) or processor.is_byte(token_id)
        )
    }
    space = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    normalizer = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, space]}
    model = {"fuse_unk": True, "merges": [list(pair) for pair in merges(scores)]}
    specials = [added(i, piece, True) for i, piece in enumerate(names) if processor.is_control(i)]
    specials += [added(i, piece) for piece, i in Vocab.from_file(path).markers.items()]
    vocab = {piece: token_id for token_id, piece in enumerate(names)}
    document = metaspace_json(vocab, specials, normalizer=normalizer, model=model)
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(document), "utf-8")

    loaded = Vocab.from_file(file)
    assert loaded == Vocab.from_file(path)
    tokenizer = tokenizers.Tokenizer.from_file(str(file))
    assert Vocab.from_tokenizer(tokenizer) == loaded
    check(loaded, lambda text: tokenizer.encode(text, add_special_tokens=False).ids, with_spaces)
    for token_id, token in enumerate(loaded.tokens):
        if (
            token is not None
        ):  # decoded behind an "a", since decoders take a space away from the start of a text
            assert tokenizer.decode([vocab["a"], token_id]) == "a" + token.decode(errors="replace")


def write_gguf(path: Path, model: str, tokens: list[str], kinds: list[int], eos_id: int) -> None:
    """The vocabulary as llama.cpp's converter writes it, merges left out."""
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(4096)
    writer.add_tokenizer_model(model)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(["a b"] * len(tokens))
    writer.add_eos_token_id(eos_id)
    writer.add_add_bos_token(True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


@pytest.mark.parametrize("name", BYTE_LEVEL)
def test_gguf_of_a_byte_level_tokenizer(name: str, tmp_path: Path) -> None:
    path = located(BYTE_LEVEL[name])
    vocab = Vocab.from_file(path)
    document = json.loads(path.read_bytes())
    tokens, kinds = [f"[PAD{token_id}]" for token_id in range(vocab.size)], [UNUSED] * vocab.size
    for token, token_id in document["model"]["vocab"].items():
        tokens[token_id], kinds[token_id] = token, NORMAL
    for entry in document["added_tokens"]:
        tokens[entry["id"]] = entry["content"]
        kinds[entry["id"]] = CONTROL if entry["special"] else USER_DEFINED
    write_gguf(tmp_path / "x.gguf", "gpt2", tokens, kinds, vocab.eos_ids[0])
    assert Vocab.from_file(tmp_path / "x.gguf") == vocab


@pytest.mark.parametrize("name", SENTENCEPIECE)
def test_gguf_of_a_sentencepiece_model(name: str, tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    path = located(SENTENCEPIECE[name])
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    markers = set(Vocab.from_file(path).markers.values())
    tests = {
        UNKNOWN: processor.is_unknown,
        CONTROL: processor.is_control,
        BYTE: processor.is_byte,
        USER_DEFINED: markers.__contains__,
    }
    kinds = [next((k for k, test in tests.items() if test(i)), NORMAL) for i in range(len(processor))]
    tokens = [processor.id_to_piece(token_id) for token_id in range(len(processor))]
    write_gguf(tmp_path / "x.gguf", "llama", tokens, kinds, processor.eos_id())
    assert Vocab.from_file(tmp_path / "x.gguf") == Vocab.from_file(path)


def test_slow_tokenizers_of_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("sentencepiece")
    path = located(SENTENCEPIECE["mistral_v1"])
    slow = transformers.GPTSw3Tokenizer(
        str(path), unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="<unk>"
    )
    slow.add_special_tokens({"additional_special_tokens": ["<|im_end|>"]})
    slow.add_tokens(["<tool>", "naïve"])
    vocab = Vocab.from_tokenizer(slow)
    assert vocab.tokens == [*Vocab.from_file(path).tokens, None, None, "naïve".encode()]
    assert vocab.markers == {"<tool>": 32001}
    assert vocab.eos_ids == (2,)

    with pytest.raises(VocabError, match=r"ByT5Tokenizer spell: it has neither"):
        Vocab.from_tokenizer(transformers.ByT5Tokenizer())


def test_fast_tokenizers_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    path = located("")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path), eos_token="<|endoftext|>")
    assert Vocab.from_tokenizer(fast) == Vocab.from_file(path)


def test_llama_cpp_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(every_format()["model.gguf"])
    # Building llama.cpp takes too long for a test; what is used of its object is a path and a number.
    llama = type("Llama", (), {"__module__": "llama_cpp.llama", "n_vocab": lambda self: 13})()
    llama.model_path = str(tmp_path / "model.gguf")
    assert Vocab.from_tokenizer(llama) == Vocab.from_file(tmp_path / "model.gguf", size=13)
