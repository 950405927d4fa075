"""Grammars inside of grammars, and structural tags."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from strategies import random_case
from walks import Walks, walk_some

import glrgrid as gg
from glrgrid import _native
from glrgrid.grammar import compose
from glrgrid.grammar.ir import GrammarIR, Nonterminal, Production, Terminal
from glrgrid.reference.oracle import Oracle

VOCAB = gg.Vocab.from_bytes({i: bytes([i]) for i in range(256)}, eos_ids=[256], size=257)
JSON = r"""
start: value
?value: "{" [pair ("," pair)*] "}" | "[" [value ("," value)*] "]" | STRING | NUMBER
pair: STRING ":" value
STRING: /"([^"\\]|\\.)*"/
NUMBER: /-?[0-9]+(\.[0-9]+)?/
%ignore /[ \n]+/
"""


def accepts(compiled: gg.CompiledGrammar, text: str) -> bool:
    matcher = gg.Matcher(compiled)
    data = text.encode()
    return matcher.accept_bytes(data) == len(data) and matcher.is_accepting()


def wrapped(part: GrammarIR, begin: str, end: str) -> GrammarIR:
    terminals = (Terminal("begin", ("lit", begin)), Terminal("end", ("lit", end)))
    production = Production(0, (0, ~1, 1), "all")
    host = GrammarIR(
        0, terminals, (Nonterminal("all"), Nonterminal("part")), (production,), lexer="contextual"
    )
    return compose.embed(host, {1: part})


def test_masks_of_parts_equal_the_reference():
    """Parts with ignored and reject terminals of their own, two different ones in one grammar."""
    rng = random.Random(12)
    walks = Walks()
    while walks.counts["positions"] < 2500:
        cases = [random_case(rng, lexer="contextual") for _ in range(2)]
        whole = wrapped(wrapped(cases[0].ir, "(", ")"), "[", "]")
        whole = compose.embed(
            replace(
                whole, productions=(*whole.productions, Production(0, (0, ~len(whole.nonterminals)), "two"))
            ),
            {},
        )
        whole = replace(whole, nonterminals=(*whole.nonterminals, Nonterminal("second")))
        whole = compose.embed(whole, {len(whole.nonterminals) - 1: cases[1].ir})
        tokens = (*cases[0].tokens, *cases[1].tokens, b"[", b"(", b")", b"]", b"[(", b")]")
        case = replace(cases[0], ir=whole, tokens=tokens, texts=(), oracle=Oracle(whole))
        if case.oracle.separability():
            continue
        walks.counts["ignored"] += any(t.ignored for t in whole.terminals)
        walk_some(case, rng, walks)
    walks.check_floors({"positions": 2500, "ends in ignored": 100, "ignored": 20, "refusals": 100})


def test_a_part_keeps_its_lexer():
    part = gg.Grammar.from_lark('start: "if" NAME "."\nNAME: /[a-z]+/\n%ignore / +/').ir
    whole = gg.compile(gg.Grammar(wrapped(part, "if (", ")")), VOCAB)
    for text in ("if (if x.)", "if ( if  x .)", "if (ifx.)"):
        assert accepts(whole, text), text
    for text in ("if(if x.)", "if (if x. )", "if  (if x.)", "if (if x.) ", "if (x.)"):
        assert not accepts(whole, text), text


def test_what_cannot_be_a_part():
    basic = gg.Grammar.from_lark('start: "a" "b"', lexer="basic").ir
    with pytest.raises(gg.GrammarError, match="basic lexer"):
        wrapped(basic, "(", ")")


# Structural tags


def test_schemas_in_tags():
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    older = {
        "structures": [
            {"begin": "<f=a>", "schema": schema, "end": "</f>"},
            {"begin": "<f=b>", "schema": {}, "end": "</f>"},
        ],
        "triggers": ["<f="],
    }
    compiled = compiled_tag(older)
    for text in ("", 'x<f=a>{"n": 12}</f><f=b>[1, null]</f> <f', "<f=b>7</f>"):
        assert accepts(compiled, text), text
    for text in ("<f=c>", "<f=a>{}</f>", '<f=a>{"n":1.5}</f>', "<f=b>7"):
        assert not accepts(compiled, text), text


def tag(begin: str, content: object, end: object) -> dict[str, object]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


LARK = {"type": "grammar", "syntax": "lark", "grammar": JSON}
WORD = {"type": "regex", "pattern": "[a-z]+"}
CALLS = {
    "type": "triggered_tags",
    "triggers": ["<call", "<think>"],
    "tags": [
        tag("<call=a>", LARK, "</call>"),
        tag("<call=b>", WORD, ["</call>", "/>"]),
        tag("<think>", {"type": "any_text"}, "</think>"),
    ],
}


def compiled_tag(value: object) -> gg.CompiledGrammar:
    compiled = gg.compile(gg.Grammar.from_structural_tag(value), VOCAB)
    assert compiled.warnings == []
    return compiled


def test_triggered_tags():
    compiled = compiled_tag({"type": "structural_tag", "format": CALLS})
    for text in (
        "",
        "no call, <cal and < and > </call>",
        '<call=a>{"k" : [1, "</call>"] } </call>',
        "free <call=b>x/> text <call=b>yz</call><think><call=c> \n</thin </think><",
    ):
        assert accepts(compiled, text), text
    for text, at in (
        ("<call", 5),
        ("a <call=c>", 8),
        ("<call>", 5),
        ("<call=b>1", 8),
        ("<call=a>[1,]", 11),
        ("<think> no end", 14),
        ("<call=a>[]</call", 16),
    ):
        matcher = gg.Matcher(compiled)
        assert matcher.accept_bytes(text.encode()) == at, text
        assert not matcher.is_accepting()


def test_the_older_form_and_json_text_mean_the_same():
    triggers, tags = ["<f"], [tag("<f>", WORD, "</f>")]
    one = {"type": "triggered_tags", "triggers": triggers, "tags": tags}
    assert gg.Grammar.from_structural_tag(json.dumps(one)) == gg.Grammar.from_structural_tag(one)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{", "is JSON; this is not"),
        ({"type": "structural_tag"}, 'at /format: expected a format: an object with a "type"'),
        ({"type": "const"}, 'at the root: unknown format "const"; there are const_string'),
        ({"type": "regex"}, 'format "regex" lacks "pattern"'),
        ({"type": "regex", "pattern": "a", "x": 1}, 'at /x: format "regex" has no "x"'),
        ({"type": "regex", "pattern": "(?=a)"}, "a look-around"),
        ({"type": "const_string", "value": 1}, "at /value: expected a text"),
        ({"type": "sequence", "elements": []}, "at /elements: expected a list that is not empty"),
        ({"type": "sequence", "elements": [WORD, {}]}, "at /elements/1: expected a format"),
        ({"type": "token", "token": -1}, "at /token: expected an id or the name of a token"),
        ({"type": "any_text", "max_tokens": 4}, "its tokens are not counted"),
        ({"type": "any_text", "excludes": [""]}, "occurs everywhere"),
        ({"type": "repeat", "min": 3, "max": 2, "content": WORD}, "bad repetition 3 to 2"),
        (tag("<a>", WORD, {"type": "any_text"}), "at /end: expected a text, a list of texts or a token"),
        (
            {**CALLS, "triggers": ["<call"]},
            "at /tags/2/begin: begin must start with exactly one trigger, not 0",
        ),
        ({**CALLS, "triggers": ["<call", "<"]}, "exactly one trigger, not 2"),
        ({**CALLS, "triggers": []}, "at least one trigger"),
        ({**CALLS, "at_least_one": 1}, "at /at_least_one: expected true or false"),
        ({"structures": [{}], "triggers": ["<"]}, "at /structures"),
        ({"type": "json_schema", "json_schema": {}, "style": "qwen_xml"}, "at /style: style = "),
        ({"type": "dispatch", "rules": [["a"]]}, "at /rules: expected pairs"),
    ],
)
def test_malformed_tags(value, message):
    with pytest.raises(gg.GrammarError) as caught:
        gg.Grammar.from_structural_tag(value)
    assert message in str(caught.value)


def test_nesting_has_an_end():
    value: object = WORD
    for _ in range(500):
        value = {"type": "optional", "content": value}
    with pytest.raises(gg.GrammarError, match="nested deeper"):
        gg.Grammar.from_structural_tag(value)


def test_a_part_that_may_swallow_what_follows_it_is_refused():
    value = {
        "type": "sequence",
        "elements": [
            {"type": "grammar", "syntax": "lark", "grammar": 'start: "a" NAME\nNAME: /[a-z]+/'},
            {"type": "const_string", "value": "end"},
        ],
    }
    with pytest.raises(gg.GrammarError, match="NAME may take what should follow NAME"):
        gg.Grammar.from_structural_tag(value)


HOSTS = {
    "apart": (("[", 0, "]"), ("(", 1, ")")),
    "one after the other": (("[", 0, 1, "]"),),
    "one or the other": (("[", 0, "]"), ("[", 1, ")")),
    "first and last": ((0, "]"), ("(", 1)),
    "inside": (("[", 2, "]"), ("(", 1, ")")),
}
"""Right-hand sides over literals, two parts, and the whole."""


def host_of(rhss: tuple[tuple[str | int, ...], ...]) -> GrammarIR:
    terminals = tuple(Terminal(text, ("lit", text)) for text in "[]()")
    names = ("first", "second", "all")
    productions = tuple(
        Production(2, tuple("[]()".index(s) if isinstance(s, str) else ~s for s in rhs), "all")
        for rhs in (*rhss, (0,))[: len(rhss) + any(2 in rhs for rhs in rhss)]
    )
    return GrammarIR(2, terminals, tuple(map(Nonterminal, names)), productions, lexer="contextual")


def mask_of(matcher: _native.Matcher) -> np.ndarray:
    """The mask; all false at a dead end, which tokens that do not spell every byte may lead to."""
    try:
        return matcher.mask()
    except gg.DeadEnd:
        return np.zeros(1, bool)


def test_sharing_terminals_changes_nothing():
    """Parts with terminals in common, some of them possible in one place, which must keep them apart."""
    rng = random.Random(5)
    counts: Counter[str] = Counter()
    while counts["positions"] < 1500:
        case = random_case(rng, lexer="contextual")
        name = rng.choice(sorted(HOSTS))
        others = [p for p in case.ir.productions if rng.random() < 0.8 or p.lhs == case.ir.start]
        parts = {
            0: case.ir,
            1: replace(case.ir, productions=tuple(others), start=rng.randrange(len(case.ir.nonterminals))),
        }
        if any(t.fallback is not None for t in case.ir.terminals):
            continue
        both = [compose.embed(host_of(HOSTS[name]), parts, share=share) for share in (False, True)]
        tokens = sorted({t for t in case.tokens if t} | {b"[", b"]", b"(", b")", b"](", b"[("})
        vocab = _native.Vocab([*tokens, None], [len(tokens)])
        try:
            compiled = [_native.compile(ir.to_json(), vocab) for ir in both]
        except gg.GrammarError:
            continue  # a part that derives nothing
        if any(c.warnings for c in compiled):
            continue
        shares = len(both[1].terminals) < len(both[0].terminals)
        assert shares == (name != "one or the other")
        for _ in range(6):
            matchers = [_native.Matcher(c) for c in compiled]
            for _ in range(12):
                masks = [mask_of(matcher) for matcher in matchers]
                assert (masks[0] == masks[1]).all(), (name, case.ir, matchers)
                counts["positions"] += 1
                counts[name] += 1
                allowed = [int(i) for i in masks[0].nonzero()[0] if i < len(tokens)]
                if not allowed:
                    break
                token = rng.choice(allowed)
                assert all(matcher.accept_token(token) for matcher in matchers)
    assert all(counts[name] > 100 for name in HOSTS), counts


def test_many_tools_take_what_one_takes():
    """Schemas of tools have nearly all of their terminals in common."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "required": ["a"],
    }
    tags = [
        tag(
            f"<f={i}>", {"type": "json_schema", "json_schema": {**schema, "maxProperties": 1 + i % 2}}, "</f>"
        )
        for i in range(40)
    ]
    sizes = {}
    for count in (2, 40):
        compiled = compiled_tag({"type": "triggered_tags", "triggers": ["<f="], "tags": tags[:count]})
        sizes[count] = compiled.stats
        assert accepts(compiled, 'x<f=0>{"a": "b"}</f>y<f=1>{"a":"", "b": 1}</f>')
        assert not accepts(compiled, '<f=0>{"b": 1}</f>')
    assert sizes[40]["lexer_groups"] <= sizes[2]["lexer_groups"] + 2
    assert sizes[40]["lexer_states"] < 2 * sizes[2]["lexer_states"]
