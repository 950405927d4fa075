"""SQL texts as token ids.

They come from the folder named by ``GLRGRID_DATA`` (Llama 3's ``tokenizer.json``, the 60 statements and
Spider's dev queries); without it, from the package's own vocabulary and ``statements.sql``.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from glrgrid import Vocab
from glrgrid.data import default_tokenizer_path


@dataclass
class Corpus:
    """Texts, and the vocabulary whose ids they are."""

    source: str
    vocab: Vocab
    encode: Callable[[str], list[int]]
    texts: list[list[int]]

    def decode(self, ids: list[int]) -> str:
        return b"".join(self.vocab.token_bytes(id_) or b"" for id_ in ids).decode(errors="replace")


def read_sql(limit: int | None = None) -> Corpus:
    """The statements; with ``limit`` every n-th, so as to have at most so many."""
    if folder := os.environ.get("GLRGRID_DATA"):
        source = "Llama 3, statements.txt and Spider dev gold"
        tokenizer = Path(folder) / "vocabs" / "llama3.tokenizer.json"
        texts = _lines(Path(folder) / "sql" / "statements.txt")
        with gzip.open(Path(folder) / "sql" / "spider_dev_gold.jsonl.gz", "rt", encoding="utf-8") as file:
            texts += [json.loads(line)["query"] for line in file]
    else:
        note("GLRGRID_DATA is not set: a bundled vocabulary and a dozen statements, for a smoke run only")
        source = "bundled vocabulary and statements, GLRGRID_DATA is not set"
        tokenizer = default_tokenizer_path()
        texts = _lines(Path(__file__).with_name("statements.sql"))
    if limit is not None and len(texts) > limit:
        texts = texts[:: -(-len(texts) // limit)]
    vocab = Vocab.from_file(tokenizer)
    encode = encoder(tokenizer, vocab.tokens)
    return Corpus(source, vocab, encode, [encode(text) for text in texts])


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if line.strip()]


def encoder(path: Path | str, tokens: Sequence[bytes | None]) -> Callable[[str], list[int]]:
    """Text to ids: by the tokenizer if ``tokenizers`` is installed, else the longest token each time."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        note("tokenizers is not installed: texts are cut greedily, the longest token first")
        return _greedy(tokens)
    tokenizer = Tokenizer.from_file(str(path))
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def _greedy(tokens: Sequence[bytes | None]) -> Callable[[str], list[int]]:
    ids = {token: id_ for id_, token in enumerate(tokens) if token}
    longest = max(map(len, ids))

    def encode(text: str) -> list[int]:
        data, result = text.encode(), []
        while data:
            size = next(size for size in range(longest, 0, -1) if data[:size] in ids)
            result.append(ids[data[:size]])
            data = data[size:]
        return result

    return encode


def note(text: str) -> None:
    """Tell who watches; standard output is for results."""
    print(text, file=sys.stderr, flush=True)
