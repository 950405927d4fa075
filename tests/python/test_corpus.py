"""The corpus: grammars in every dialect, texts they accept, and where others are refused.

A row of ``tests/corpus/*.toml`` has a ``name``, a ``dialect``, the ``grammar`` (text, or a list of choices) with the
reader's ``options``, ``accept`` (texts) and ``refuse`` (``text``, ``at``: the number of bytes that are taken before the
first that no sentence can have there; the length of the text where it is only unfinished; where it is left out, all
that matters is that the text is no sentence). A text may be a list of texts, token ids and names of tokens (in a table:
``{ name = "<|end|>" }``); each token counts as one byte. ``lexers`` lists those for which the row holds, where the
dialect has a choice; ``source`` names the public report that describes the case, in our own words. A row with ``error``
instead of texts is refused with a message that contains it, at ``line`` and ``column`` where they are given.

Every row is run in every mode of ``MODES``.
"""

from __future__ import annotations

import random
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import glrgrid as gg

FOLDER = Path(__file__).parents[1] / "corpus"
SPECIAL = ("<|begin|>", "<|end|>", "<|tool|>")
ADDED = "<tool_call>"
DEFAULT = gg.Vocab.default().tokens
NAMES = {name: len(DEFAULT) + i for i, name in enumerate((*SPECIAL, ADDED))}
VOCAB = gg.Vocab.from_bytes([*DEFAULT, *(None for _ in SPECIAL), ADDED.encode()], eos_ids=0, names=NAMES)
BYTE_IDS = {token[0]: index for index, token in enumerate(VOCAB.tokens) if token and len(token) == 1}

READERS: dict[str, Callable[..., gg.Grammar]] = {
    "choices": gg.Grammar.from_choices,
    "gbnf": gg.Grammar.from_gbnf,
    "json_schema": gg.Grammar.from_json_schema,
    "lark": gg.Grammar.from_lark,
    "regex": gg.Grammar.from_regex,
    "structural_tag": gg.Grammar.from_structural_tag,
}
LEXERS = {"lark": ("basic", "contextual")}
"""Dialects in which the lexer can be chosen."""


def fresh(grammar: gg.Grammar) -> gg.CompiledGrammar:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.CompileWarning)
        return gg.compile(grammar, VOCAB)


def reloaded(grammar: gg.Grammar) -> gg.CompiledGrammar:
    return gg.load(fresh(grammar).to_bytes(), VOCAB)


def lazy(grammar: gg.Grammar) -> gg.CompiledGrammar:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.CompileWarning)
        return gg.compile(grammar, VOCAB, mode="lazy")


MODES: dict[str, Callable[[gg.Grammar], gg.CompiledGrammar]] = {
    "aot": fresh,
    "reloaded": reloaded,
    "lazy": lazy,
}


def load_rows() -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for file in sorted(FOLDER.glob("*.toml")):
        for row in tomllib.loads(file.read_text("utf-8"))["grammar"]:
            if "dialect" in row:
                name = f"{file.stem}: {row['name']}"
                assert name not in rows, name
                rows[name] = row
    return rows


ROWS = load_rows()
RUN = [name for name, row in ROWS.items() if "error" not in row]
REFUSED = [name for name, row in ROWS.items() if "error" in row]


@cache
def read(name: str, lexer: str | None) -> gg.Grammar:
    row = ROWS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.GrammarWarning)
        options = row.get("options", {}) | ({} if lexer is None else {"lexer": lexer})
        return READERS[row["dialect"]](row["grammar"], **options)


def cases() -> Iterator[tuple[str, str | None, str]]:
    for name in RUN:
        lexers = LEXERS.get(ROWS[name]["dialect"], (None,))
        for lexer in ROWS[name].get("lexers", lexers):
            for mode in MODES:
                yield name, lexer, mode


@pytest.mark.parametrize(("name", "lexer", "mode"), list(cases()))
def test_row(name: str, lexer: str | None, mode: str) -> None:
    row = ROWS[name]
    compiled = MODES[mode](read(name, lexer))
    for text in row.get("accept", ()):
        check_accepted(compiled, text)
    for refused in row.get("refuse", ()):
        check_refused(compiled, refused["text"], refused.get("at"))


Text = str | list[str | int | dict[str, str]]


def ids_of(text: Text) -> list[int]:
    """A token for each byte, and the tokens themselves."""
    ids: list[int] = []
    for part in [text] if isinstance(text, str) else text:
        if isinstance(part, str):
            ids += (BYTE_IDS[byte] for byte in part.encode())
        else:
            ids.append(part if isinstance(part, int) else NAMES[part["name"]])
    return ids


def check_accepted(compiled: gg.CompiledGrammar, text: Text) -> None:
    by_tokens = gg.Matcher(compiled)
    for token in ids_of(text):
        assert by_tokens.mask()[token] and by_tokens.accept_token(token), text
    assert by_tokens.is_accepting() and by_tokens.mask()[VOCAB.eos_ids[0]], text
    if isinstance(text, str):
        matcher = gg.Matcher(compiled)
        assert matcher.accept_bytes(text.encode()) == len(text.encode()), text
        assert by_tokens.mask().tolist() == matcher.mask().tolist(), text


def check_refused(compiled: gg.CompiledGrammar, text: Text, at: int | None) -> None:
    ids = ids_of(text)
    matcher = gg.Matcher(compiled)
    taken = next((at for at, token in enumerate(ids) if not matcher.accept_token(token)), len(ids))
    at = taken if at is None else at
    assert taken == at, text
    if at == len(ids):
        assert not matcher.is_accepting() and not matcher.mask()[VOCAB.eos_ids[0]], text
    else:
        assert not matcher.mask()[ids[at]], text
    assert matcher.mask().any(), text
    if isinstance(text, str):
        assert gg.Matcher(compiled).accept_bytes(text.encode()) == at, text


@pytest.mark.parametrize("name", REFUSED)
def test_refused_grammar(name: str) -> None:
    row = ROWS[name]
    with pytest.raises((gg.GrammarError, gg.SchemaError)) as caught:
        fresh(read(name, None))
    assert row["error"] in str(caught.value)
    if "line" in row:
        assert (caught.value.line, caught.value.column) == (row["line"], row["column"])


def test_rows_are_complete():
    for name, row in ROWS.items():
        assert row["dialect"] in READERS, name
        assert ("error" in row) != bool(row.get("accept") or row.get("refuse")), name


def test_the_corpus_is_large_enough():
    assert len(ROWS) >= 150
    assert 2 * sum("source" in row for row in ROWS.values()) >= len(ROWS)


def test_mangled_grammars_are_read_or_refused():
    """Whatever the text, an error is one of ours."""
    rng = random.Random(10)
    dialects = ("gbnf", "lark", "regex", "structural_tag")
    rows = [r for r in ROWS.values() if r["dialect"] in dialects and len(r["grammar"]) < 600]
    kinds: Counter[str] = Counter()
    for _ in range(1500):
        row = rng.choice(rows)
        text = row["grammar"]
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text) + 1)
            if rng.random() < 0.5:
                text = text[:at] + text[at + rng.randint(1, 4) :]
            else:
                text = text[:at] + rng.choice('(){}[]|*+?~&"/\\.,:<>%@#\n ^-0aA=') + text[at:]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                READERS[row["dialect"]](text)
            kinds["read"] += 1
        except gg.GlrgridError as error:
            kinds[type(error).__name__] += 1
            assert str(error).strip() and not str(error).endswith(".")
    assert kinds["read"] > 50 and kinds["GrammarError"] > 500
