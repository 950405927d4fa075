"""Markers: added tokens that free text does not match, and that a literal with their text means as well."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from tokenizer_files import NORMAL, USER_DEFINED, added, gguf, metaspace_json, sentencepiece, vocabulary_pairs

import glrgrid as gg
from glrgrid.vocab.markers import is_marker

NAMES = ["<think>", "</think>", "<tool_call>", "</tool_call>"]
BASE = gg.Vocab.default()
IDS = {name: BASE.size + index for index, name in enumerate(NAMES)}
TOKENS = [*BASE.tokens, *(name.encode() for name in NAMES)]
VOCAB = gg.Vocab.from_bytes(TOKENS, eos_ids=BASE.eos_ids, names=IDS, markers=NAMES)
END = BASE.eos_ids[0]
BYTES = {token[0]: index for index, token in enumerate(BASE.tokens) if token and len(token) == 1}
OPEN, CLOSE, CALL, CALLED = IDS.values()

Written = list[str | int]
pytestmark = pytest.mark.filterwarnings(
    "ignore::glrgrid.CompileWarning", "ignore::glrgrid.vocab.VocabWarning"
)


def ids_of(written: Written) -> list[int]:
    """A token for each byte of texts, and the tokens."""
    return [
        i
        for part in written
        for i in ([part] if isinstance(part, int) else [BYTES[b] for b in part.encode()])
    ]


def accepts(grammar: gg.Grammar, written: Written) -> bool:
    """Whether tokens are a sentence, ahead of time and lazily; masks have to agree with steps."""
    verdicts = set()
    for mode in ("aot", "lazy"):
        matcher = gg.Matcher(gg.compile(grammar, VOCAB, mode))
        for token in ids_of(written):
            allowed = bool(matcher.mask()[token])
            assert matcher.accept_token(token) == allowed
            if not allowed:
                verdicts.add(False)
                break
        else:
            verdicts.add(bool(matcher.mask()[END]))
    assert len(verdicts) == 1
    return verdicts.pop()


# What is a marker


@pytest.mark.parametrize(
    "text",
    [
        "<think>",
        "</think>",
        "<|fim_middle|>",
        "<｜tool▁sep｜>",
        "｜DSML｜",
        "</dsml:",
        "[TOOL_CALLS]",
        "[/INST]",
        "<unused7>",
    ],
)
def test_marks(text: str) -> None:
    assert is_marker(text)


@pytest.mark.parametrize(
    "text",
    [
        "  ",
        "\n\n",
        "\t",
        "naïve",
        "<=",
        "<",
        "<-",
        "[0]",
        "[",
        "->",
        "<table>",
        "</td>",
        "<h1>",
        "a>",
        "|",
        "<a b>",
    ],
)
def test_texts(text: str) -> None:
    assert not is_marker(text)


def vocabulary(texts: list[str]) -> list[str]:
    return ["a", "</s>", *texts]


@pytest.mark.parametrize("form", ["tokenizer.json", "byte level", "folder", "model.gguf", "tokenizer.model"])
def test_all_readers_find_them(form: str, tmp_path: Path) -> None:
    texts = ["<think>", "  ", "<td>"]
    name = {"byte level": "tokenizer.json", "folder": "tokenizer.json"}.get(form, form)
    entries = [added(1, "</s>", True), *(added(2 + i, text) for i, text in enumerate(texts))]
    content: Any = metaspace_json({"a": 0, "</s>": 1}, entries)
    if form == "byte level":
        parts: dict[str, Any] = {
            "decoder": {"type": "ByteLevel"},
            "model": {"byte_fallback": False, "unk_token": None},
        }
        content = metaspace_json({"a": 0, "</s>": 1}, entries, **parts)
    elif form == "folder":
        content = metaspace_json({"a": 0, "</s>": 1}, entries[:1])
        decoder = {str(2 + i): {"content": text, "special": False} for i, text in enumerate(texts)}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": decoder}))
    pieces = [("a", NORMAL), ("</s>", 3), *((text, USER_DEFINED) for text in texts)]
    if form == "model.gguf":
        content = gguf(vocabulary_pairs("llama", pieces, eos_token_id=1))
    elif form == "tokenizer.model":
        content = sentencepiece(pieces)
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    (tmp_path / name).write_bytes(raw)
    vocab = gg.Vocab.from_file(tmp_path / name)
    assert vocab.tokens == [b"a", None, None, b"  ", b"<td>"]
    assert vocab.markers == {"<think>": 2}
    assert {"<think>", "  ", "<td>"} <= vocab.names.keys()

    as_text = gg.Vocab.from_file(tmp_path / name, added_tokens="text")
    assert (as_text.tokens, as_text.markers) == ([b"a", None, b"<think>", b"  ", b"<td>"], {})
    none = gg.Vocab.from_file(tmp_path / name, added_tokens="marker")
    assert (none.tokens, sorted(none.markers)) == ([b"a", None, None, None, None], ["  ", "<td>", "<think>"])
    with pytest.raises(gg.VocabError, match="unknown added_tokens 'all'; expected"):
        gg.Vocab.from_file(tmp_path / name, added_tokens="all")
    ended = gg.Vocab.from_file(tmp_path / name, eos_ids=2)
    assert ended.markers == {} and ended.tokens[2] is None


def test_they_are_saved_and_pickled(tmp_path: Path) -> None:
    VOCAB.save(tmp_path / "x")
    saved = gg.Vocab.from_file(tmp_path / "x")
    assert saved.markers == VOCAB.markers == IDS and saved == VOCAB
    assert pickle.loads(pickle.dumps(VOCAB)).markers == IDS
    wider = gg.Vocab.from_file(tmp_path / "x", size=VOCAB.size + 3)
    assert (wider.markers, wider.eos_ids) == (IDS, VOCAB.eos_ids)
    assert gg.Vocab.from_file(tmp_path / "x", added_tokens="text").tokens == TOKENS
    plain = gg.Vocab.from_bytes(TOKENS, eos_ids=BASE.eos_ids, names=IDS)
    plain.save(tmp_path / "y")
    assert gg.Vocab.from_file(tmp_path / "y", size=plain.size).markers == {}
    assert gg.Vocab.from_file(tmp_path / "y", added_tokens="marker") == VOCAB


def test_those_that_are_given() -> None:
    with pytest.raises(gg.VocabError, match=r"markers: '<x>' is none of the names"):
        gg.Vocab.from_bytes(TOKENS, eos_ids=0, markers=["<x>"])
    with pytest.raises(gg.VocabError, match=r"markers: '<x>' ends the output"):
        gg.Vocab.from_bytes(TOKENS, eos_ids=0, names={"<x>": 0}, markers=["<x>"])


# Free text never matches them


@pytest.mark.parametrize(
    "grammar",
    [
        gg.Grammar.from_json_schema({"type": "string"}),
        gg.Grammar.from_json_schema({"const": "<think>"}),
        gg.Grammar.from_regex('"[^"]*"|"<think>"'),
        gg.Grammar.from_gbnf(r'root ::= "\"" [^"]* "\""'),
        gg.Grammar.from_lark(r'start: /"[^"]*"/ | "\"" "<think"i ">" "\""'),
    ],
)
def test_texts_do_not_match_them(grammar: gg.Grammar) -> None:
    assert accepts(grammar, ['"<think>"'])
    matcher = gg.Matcher(gg.compile(grammar, VOCAB))
    matcher.accept_bytes(b'"')
    assert not matcher.mask()[list(IDS.values())].any()
    assert not accepts(grammar, ['"', OPEN, '"'])
    assert gg.compile(grammar, VOCAB).to_bytes() == gg.compile(gg.Grammar(grammar.ir), VOCAB).to_bytes()


# Literals do

ROWS: dict[str, tuple[gg.Grammar, list[Written], list[Written]]] = {
    "lark": (
        gg.Grammar.from_lark('start: "<think>\\n" /[^<]+/ END (NAME)?\nEND: "</think>"\nNAME: /[a-z]+/'),
        [
            ["<think>\nhm</think>"],
            [OPEN, "\nhm", CLOSE, "yes"],
            ["<think>\nhm", CLOSE],
            [OPEN, "\nhm</think>no"],
        ],
        [[OPEN, "hm", CLOSE], [OPEN, "\n", OPEN, CLOSE], ["<think>\n", CLOSE], [OPEN, "\na", CLOSE, CLOSE]],
    ),
    "lark, both lexers": (
        gg.Grammar.from_lark('start: "<think>" "a"+ "</think>"\n%ignore " "', lexer="basic"),
        [[OPEN, " a a ", CLOSE, " "], ["<think>aa</think>"]],
        [["a"], [OPEN, CLOSE]],
    ),
    "lark, up to one": (
        gg.Grammar.from_lark('start: "<think>" text "!"?\ntext[suffix="</think>"]: /(?s:.*)/'),
        [
            [OPEN, "a</thin</think", CLOSE, "!"],
            ["<think>a</think>!"],
            [OPEN, CLOSE],
            [OPEN, "</think>"],
            [OPEN, "a", CLOSE],
        ],
        [[OPEN, "a"], [OPEN, "a</think>", CLOSE], [OPEN, OPEN, CLOSE], [OPEN, "a", CLOSE, "a", CLOSE]],
    ),
    "lark, inside": (
        gg.Grammar.from_lark('start: %lark {\nstart: "<think>" "a"\n} "</think>"'),
        [[OPEN, "a", CLOSE], ["<think>a</think>"]],
        [[OPEN, CLOSE]],
    ),
    "gbnf": (
        gg.Grammar.from_gbnf(
            'root ::= "<think>" [^<]* "</think>" "\\n"? ("<tool_call>" [0-9]+ "</tool_call>")*'
        ),
        [
            [OPEN, "x", CLOSE],
            ["<think>x</think>"],
            [OPEN, CLOSE, "\n", CALL, "12", CALLED, CALL, "3</tool_call>"],
        ],
        [[OPEN, OPEN], [OPEN, "x", CALL], [CLOSE], [OPEN, CLOSE, "\n\n"]],
    ),
    "choices": (
        gg.Grammar.from_choices(["<think>", "a<tool_call>b", "none"]),
        [[OPEN], ["<think>"], ["a", CALL, "b"], ["a<tool_call>b"], ["none"]],
        [[CALL], ["a", OPEN]],
    ),
    "two at once": (
        gg.Grammar.from_choices(["<think></think>!"]),
        [[OPEN, CLOSE, "!"], ["<think></think>!"]],
        [[OPEN, "</think>!"], [OPEN, "!"]],
    ),
}

TAG = {
    "type": "tag",
    "begin": '<tool_call>\n{"name": "f", "arguments": ',
    "content": {
        "type": "json_schema",
        "json_schema": {"type": "object", "properties": {"q": {"type": "string"}}},
    },
    "end": "}\n</tool_call>",
}
BEGIN, CONTENT, TAIL = '\n{"name": "f", "arguments": ', '{"q": "<think>"}', "}\n"
for trigger in ("<tool_call>", "<tool", '<tool_call>\n{"name"'):
    ROWS[f"triggered by {trigger!r}"] = (
        gg.Grammar.from_structural_tag({"type": "triggered_tags", "triggers": [trigger], "tags": [TAG]}),
        [
            ["hello"],
            [""],
            [CALL, BEGIN, CONTENT, TAIL, CALLED],
            ["so: <to ", CALL, BEGIN, CONTENT, TAIL, CALLED, " and ", CALL, BEGIN, "{}", TAIL, CALLED],
            ["so: <tool_call>", BEGIN, CONTENT, TAIL, "</tool_call>."],
            ["so: ", CALL, BEGIN, CONTENT, TAIL, "</tool_call>."],
        ],
        [
            ["so: ", OPEN],
            ["so: ", CALLED],
            ["so: ", CALL, "x"],
            [CALL, BEGIN, '{"q": "', OPEN],
            [CALL, BEGIN, CONTENT, TAIL, CALL],
            *([] if "name" in trigger else [["<tool_call>x"]]),
        ],
    )
ROWS["thoughts, then an answer"] = (
    gg.Grammar.from_structural_tag(
        {
            "type": "sequence",
            "elements": [
                {"type": "tag", "begin": "<think>\n", "content": {"type": "any_text"}, "end": "\n</think>"},
                {"type": "regex", "pattern": "[0-9]+"},
            ],
        }
    ),
    [[OPEN, "\nhm\n", CLOSE, "42"], [OPEN, "\n a\n\n</think\n", CLOSE, "1"], ["<think>\na\n</think>7"]],
    [[OPEN, "\nhm", CLOSE], [OPEN, "hm"], [OPEN, "\n", OPEN], [OPEN, "\n\n</think>", CLOSE]],
)
ROWS["tokens up to one"] = (
    gg.Grammar.from_structural_tag(
        {"type": "tag", "begin": "<think>", "content": {"type": "any_tokens"}, "end": "</think>"}
    ),
    [[OPEN, "a", CALL, "b", CLOSE]],
    [[OPEN, "a", CLOSE, CLOSE]],
)


@pytest.mark.parametrize("name", ROWS)
def test_literals_mean_them_as_well(name: str) -> None:
    grammar, accepted, refused = ROWS[name]
    for written in accepted:
        assert accepts(grammar, written), written
    for written in refused:
        assert not accepts(grammar, written), written


@pytest.mark.parametrize("name", [name for name in ROWS if "lark" not in name and "tokens" not in name])
def test_what_is_written_with_them_is_a_text_of_the_grammar(name: str) -> None:
    """Random walks under masks; the same text is taken where there are no markers, as far as it goes."""
    grammar, rng, taken = ROWS[name][0], random.Random(name), 0
    plain, marked = gg.compile(grammar, BASE), gg.Matcher(gg.compile(grammar, VOCAB, "lazy"))
    for _ in range(12):
        marked.reset()
        beside = gg.Matcher(plain)
        for _ in range(40):
            allowed = marked.mask().nonzero()[0].tolist()
            marks = [token for token in allowed if token >= BASE.size]
            token = rng.choice(marks if marks and rng.random() < 0.7 else allowed)
            assert marked.accept_token(token)
            if token == END:
                assert beside.is_accepting()
                break
            taken += token >= BASE.size
            text = TOKENS[token]
            assert text is not None and beside.accept_bytes(text) == len(text), (name, text)
            assert beside.is_accepting() or not marked.is_accepting()
    assert taken >= 5


def test_without_markers_nothing_changes() -> None:
    for grammar, _, _ in ROWS.values():
        assert gg.compile(grammar, BASE).to_bytes() == gg.compile(gg.Grammar(grammar.ir), BASE).to_bytes()
