"""Masks beside llguidance's, where the two define the same language; runs where llguidance is installed.

GBNF goes there as Lark in which every character is a terminal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from character_lark import character_lark
from test_corpus import NAMES, ROWS, VOCAB, fresh, ids_of, read

import glrgrid as gg

llguidance = pytest.importorskip("llguidance")

IGNORED = "llguidance skips ignored text between lexemes only; here it may also come first and last"
RANK = "of two terminals that match the same text, a literal wins here; llguidance follows both"
UNICODE = "Python and Rust put other characters into \\s and \\w"
FALLS_BACK = "llguidance does not go back to a shorter match when a longer one that had begun does not come"
LAZY = (
    "a lazy rule ends at once there, even if another terminal goes on; here the longest match of all counts"
)
EITHER = "llguidance takes a token that the grammar names as that alone; here its text is followed too"
DIFFERENT = {
    "lark: a grammar inside": IGNORED,
    "lark: a schema inside": IGNORED,
    "lark: a schema between tokens": IGNORED,
    "lark: any token": EITHER,
    "lark: brackets": IGNORED,
    "lark: ignored text of two grammars": IGNORED,
    "lark: thoughts between tokens, then an answer": IGNORED,
    "regex: digits of every script": UNICODE,
    "reports: a literal and a pattern that match the same": RANK,
    "reports: a word that is imported but not used": IGNORED,
    "reports: base64": UNICODE,
    "reports: no white space": UNICODE,
    "reports: text up to a marker": LAZY,
    "reports: what begins alike": FALLS_BACK,
    "reports: white space before the first lexeme": IGNORED,
}
"""Corpus rows that mean something else there, and why."""
TOKENS = ("gbnf: tokens", "gbnf: a token by its id")
"""Rows with tokens, which its Lark can say and characters cannot."""
END = VOCAB.eos_ids[0]


class Tokenizer:
    """What llguidance wants to know of a vocabulary."""

    eos_token_id = END
    bos_token_id = None
    special_token_ids = [index for index, token in enumerate(VOCAB.tokens) if not token]  # noqa: RUF012
    tokens = [  # noqa: RUF012
        token or {i: name.encode() for name, i in NAMES.items()}.get(index, b"<%d>" % index)
        for index, token in enumerate(VOCAB.tokens)
    ]

    def __call__(self, text: bytes | str) -> list[int]:
        data = text.encode() if isinstance(text, str) else text
        return [VOCAB.tokens.index(data[i : i + 1]) for i in range(len(data))]


TOKENIZER = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()))
COMPARED = [
    name
    for name, row in ROWS.items()
    if row["dialect"] in ("gbnf", "lark", "regex")
    and "error" not in row
    and name not in (*DIFFERENT, *TOKENS)
]


def their_grammar(row: dict[str, Any]) -> str:
    """The grammar, told not to leave out tokens because others are canonical."""
    text = row["grammar"]
    if row["dialect"] == "gbnf":
        text = character_lark(text, **row.get("options", {}))
    if row["dialect"] == "regex":
        text = (
            "start: /"
            + text.removeprefix("^").removesuffix("$").replace("\\/", "/").replace("/", "\\/")
            + "/"
        )
    return str(llguidance.LLMatcher.grammar_from_lark('%llguidance {"no_forcing": true}\n' + text))


def their_mask(matcher: Any) -> np.ndarray:
    words = np.frombuffer(matcher.compute_bitmask(), dtype="<u4")
    return np.unpackbits(words.view(np.uint8), bitorder="little")[: VOCAB.size].astype(bool)


@pytest.mark.parametrize("name", COMPARED)
def test_masks_agree(name: str) -> None:
    row = ROWS[name]
    compiled = fresh(read(name, "contextual" if row["dialect"] == "lark" else None))
    theirs = llguidance.LLMatcher(TOKENIZER, their_grammar(row), log_level=0)
    if theirs.get_error():
        pytest.skip(f"llguidance refuses it: {theirs.get_error().splitlines()[0]}")
    for text in row["accept"]:
        ours, other = gg.Matcher(compiled), theirs.deep_copy()
        ids = ids_of(text)
        for at, token in enumerate([*ids, None]):
            if other.is_stopped():
                break
            expected, found = their_mask(other), ours.mask()
            wrong = [(VOCAB.tokens[i], bool(found[i])) for i in np.flatnonzero(expected != found)[:5]]
            assert not wrong, f"after {text!r}[:{at}]: (token, allowed here) {wrong}"
            if token is not None:
                assert ours.accept_token(token) and other.consume_token(token)
