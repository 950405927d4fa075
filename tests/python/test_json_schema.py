"""JSON Schema front end: what is accepted, refused and relaxed; canonical text; hostile schemas; the harness's file."""

from __future__ import annotations

import json
import time
import warnings
from typing import Any

import pytest
from maskbench import accepts, byte_vocab

import glrgrid as gg
from glrgrid.data import default_tokenizer_path
from glrgrid.grammar import GrammarWarning
from glrgrid.grammar.ir import GrammarIR
from glrgrid.reference.oracle import Oracle

VOCAB = byte_vocab()


def compiled(schema: Any, **options: Any) -> gg.CompiledGrammar:
    """A schema's compiled grammar; compact texts unless asked otherwise, because those compile fastest."""
    options = {"whitespace": "compact", **options}
    return gg.compile(gg.Grammar.from_json_schema(schema, **options), VOCAB, mode="lazy")


def check(schema: Any, good: list[str], bad: list[str], **options: Any) -> None:
    """All of ``good`` are accepted, none of ``bad``."""
    grammar = compiled(schema, **options)
    assert [text for text in good if not accepts(grammar, text)] == []
    assert [text for text in bad if accepts(grammar, text)] == []


A_INTEGER = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
NAMED = {"type": "object", "required": ["a", "b"], "properties": {"b": {"type": "null"}, "c": True}}

CASES: dict[str, tuple[Any, list[str], list[str]]] = {
    "anything": (True, ["1", '{"a":[1,{"b":null}]}', '""', "[]", "-1.5e3"], ["", "{", "[1,]", "01", "nul"]),
    "types": ({"type": ["null", "string"]}, ["null", '"x"'], ["1", "true", "[]", "{}"]),
    "integer": ({"type": "integer"}, ["0", "-12", "1.0"], ["1.5", '"1"']),
    "integer of draft 4": (
        {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"},
        ["1"],
        ["1.0", "1.5"],
    ),
    "const object": (
        {"const": {"a": [1, "x"]}},
        ['{"a":[1,"x"]}', '{"a":[1.0,"x"]}'],
        ["{}", '{"a":[1,"x"],"b":0}'],
    ),
    "enum": (
        {"enum": [1, "a", None, [2]]},
        ["1", "1.00", '"a"', "null", "[2]"],
        ["2", '"b"', "[1]", "[2,2]"],
    ),
    "order": (
        NAMED,
        ['{"b":null,"c":1,"a":2,"z":3}', '{"b":null,"a":2}'],
        ['{"a":2,"b":null}', '{"b":null,"a":1,"a":2}', '{"b":null}', '{"b":1,"a":2}'],
    ),
    "spelt keys": (
        A_INTEGER,
        ['{"a":1}'],
        ['{"\\u0061":1}', '{"a":1,"\\u0061":2}', '{"\\u0061":"x"}', '{"a":1,"a":"x"}'],
    ),
    "closed": ({**A_INTEGER, "additionalProperties": False}, ['{"a":1}'], ['{"a":1,"b":2}', "{}"]),
    "additional": (
        {**A_INTEGER, "additionalProperties": {"type": "string"}},
        ['{"a":1}', '{"a":1,"b":"x","c":""}'],
        ['{"a":1,"b":2}'],
    ),
    "overlapping patterns": (
        {
            "patternProperties": {"^a": {"type": "integer"}, "b$": {"minimum": 3}},
            "additionalProperties": False,
        },
        ['{"ax":1,"xb":"s","ab":3}', "{}", "7"],
        ['{"ab":1}', '{"ab":"s"}', '{"c":1}', '{"ax":"s"}'],
    ),
    "pattern and property": (
        {"properties": {"ab": {"minimum": 5}}, "patternProperties": {"^a": {"type": "integer"}}},
        ['{"ab":5}', '{"b":"x"}'],
        ['{"ab":4}', '{"ab":"x"}', '{"ac":"x"}'],
    ),
    "property names": (
        {"type": "object", "propertyNames": {"pattern": "^[a-z]+$", "maxLength": 2}},
        ['{"ab":1}', "{}"],
        ['{"A":1}', '{"abc":1}', '{"":1}'],
    ),
    "min properties": (
        {
            "type": "object",
            "properties": {"a": True, "b": True, "c": True},
            "minProperties": 2,
            "additionalProperties": False,
        },
        ['{"a":1,"c":2}', '{"a":1,"b":2,"c":3}'],
        ["{}", '{"b":1}'],
    ),
    "max properties": (
        {"type": "object", "properties": {"a": True, "b": True}, "maxProperties": 2},
        ["{}", '{"a":1,"z":2}', '{"x":1,"y":2}'],
        ['{"a":1,"b":2,"c":3}', '{"x":1,"y":2,"z":3}'],
    ),
    "at least one": ({"type": "object", "minProperties": 1}, ['{"x":1}'], ["{}"]),
    "dependent required": (
        {"type": "object", "properties": {"a": True, "b": True}, "dependentRequired": {"a": ["b"]}},
        ["{}", '{"b":1}', '{"a":1,"b":2}'],
        ['{"a":1}'],
    ),
    "dependent schema": (
        {
            "type": "object",
            "properties": {"a": True, "b": True},
            "dependencies": {"a": {"properties": {"b": {"const": 1}}}},
        },
        ['{"b":2}', '{"a":0,"b":1}', '{"a":0}'],
        ['{"a":0,"b":2}'],
    ),
    "counted items": (
        {"items": {"type": "null"}, "minItems": 2, "maxItems": 5, "type": "array"},
        ["[null,null]", "[null,null,null,null,null]"],
        ["[]", "[null]", "[null,null,null,null,null,null]", "[1,2]"],
    ),
    "tuple": (
        {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "items": False,
            "minItems": 1,
        },
        ["[1]", '[1,"x"]'],
        ["[]", '["x"]', '[1,"x",2]', "[1,2]"],
    ),
    "tuple of draft 4": (
        {"type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "null"}, "maxItems": 3},
        ["[]", "[1]", "[1,null,null]"],
        ["[1,2]", "[1,null,null,null]"],
    ),
    "contains": (
        {"type": "array", "contains": {"type": "string"}, "minContains": 2, "maxContains": 3},
        ['["a",1,"b"]', '[1,"a","b","c",2]'],
        ["[]", '["a"]', '["a","b","c","d"]'],
    ),
    "contains within limits": (
        {"type": "array", "items": {"type": "integer"}, "contains": {"const": 3}, "maxItems": 3},
        ["[3]", "[1,2,3]", "[3,3]"],
        ["[]", "[1]", "[1,1,1,3]", '[3,"x"]'],
    ),
    "unique": (
        {"type": "array", "items": {"enum": ["a", "b", 1]}, "uniqueItems": True, "minItems": 1},
        ['["a"]', '["b",1,"a"]'],
        ["[]", '["a","a"]', "[1,1.0]"],
    ),
    "unique tuple": (
        {
            "type": "array",
            "prefixItems": [{"type": "string"}, {"type": "null"}],
            "items": False,
            "uniqueItems": True,
        },
        ['["a",null]'],
        ["[null]"],
    ),
    "all of": (
        {"allOf": [A_INTEGER, {"properties": {"a": {"minimum": 3}}}]},
        ['{"a":3}'],
        ['{"a":2}', "{}", "1"],
    ),
    "any of": (
        {"anyOf": [A_INTEGER, {"type": "object", "properties": {"b": {"type": "null"}}, "required": ["b"]}]},
        ['{"a":1}', '{"b":null}', '{"a":1,"b":"x"}', '{"b":null,"a":"y"}'],
        ["{}", '{"a":"x"}', '{"b":1}'],
    ),
    "one of, disjoint": (
        {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"k": {"const": c}, c: {"type": "null"}},
                    "required": ["k", c],
                }
                for c in "xy"
            ]
        },
        ['{"k":"x","x":null}', '{"k":"y","y":null}'],
        ['{"k":"x","y":null}', '{"k":"z","x":null}'],
    ),
    "one of, overlapping": (
        {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        ['{"a":1}', '{"b":1,"c":2}'],
        ["{}", '{"a":1,"b":2}', '{"b":1,"a":2}'],
    ),
    "one of, nested numbers": (
        {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 10}]},
        ["1", "10.5"],
        ["10", "9.5", "11.0"],
    ),
    "not": ({"not": A_INTEGER}, ["1", "{}", '{"a":"x"}', '{"b":1}'], ['{"a":1}', '{"a":1,"b":2}']),
    "not closed": (
        {"type": "object", "not": {"properties": {"a": True}, "additionalProperties": False}},
        ['{"b":1}', '{"a":1,"b":2}'],
        ["{}", '{"a":1}'],
    ),
    "not enum": (
        {"not": {"enum": [1, "a", {"k": 1}]}},
        ["2", '"b"', "{}", '{"k":2}', '{"k":1,"l":1}'],
        ["1", "1.0", '"a"', '{"k":1}'],
    ),
    "not items": (
        {"type": "array", "not": {"items": {"type": "string"}}},
        ["[1]", '["a",1,"b"]'],
        ["[]", '["a"]'],
    ),
    "if": (
        {
            "type": "object",
            "properties": {"k": {"enum": ["a", "b"]}, "n": True},
            "required": ["k"],
            "if": {"properties": {"k": {"const": "a"}}},
            "then": {"required": ["n"]},
            "else": {"properties": {"n": False}},
        },
        ['{"k":"a","n":1}', '{"k":"b"}'],
        ['{"k":"a"}', '{"k":"b","n":1}'],
    ),
    "recursion": (
        {
            "$ref": "#/$defs/node",
            "$defs": {
                "node": {
                    **A_INTEGER,
                    "properties": {"a": {"type": "integer"}, "n": {"$ref": "#/$defs/node"}},
                    "additionalProperties": False,
                }
            },
        },
        ['{"a":1}', '{"a":1,"n":{"a":2,"n":{"a":3}}}'],
        ['{"a":1,"n":{}}', '{"n":{"a":1}}'],
    ),
    "siblings of a reference": (
        {"$defs": {"s": {"type": "string"}}, "$ref": "#/$defs/s", "maxLength": 1},
        ['"a"'],
        ['"ab"', "1"],
    ),
    "ids": (
        {"$id": "http://x.org/a.json", "$defs": {"b": {"$id": "b.json", "type": "null"}}, "$ref": "b.json"},
        ["null"],
        ["1"],
    ),
    "bounded strings": (
        {"type": "string", "minLength": 1, "maxLength": 2},
        ['"a"', '"\\ud83d\\ude00x"'],
        ['""', '"abc"'],
    ),
    "pattern and length": (
        {"type": "string", "pattern": "^a+$", "maxLength": 2},
        ['"a"', '"aa"'],
        ['"aaa"', '""', '"b"'],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_accepts_exactly_the_instances(name: str) -> None:
    check(*CASES[name])


def test_any_order_takes_every_order_and_no_key_twice() -> None:
    schema = {
        **NAMED,
        "properties": {"a": True, "b": {"type": "null"}, "c": True},
        "additionalProperties": False,
    }
    good = ['{"a":1,"b":null}', '{"c":0,"b":null,"a":1}', '{"b":null,"a":1,"c":0}']
    check(schema, good, ['{"a":1,"b":null,"a":1}', '{"a":1}', '{"a":1,"b":0}'], property_order="any")
    many = {"type": "object", "properties": {f"p{i}": True for i in range(13)}}
    with pytest.raises(gg.SchemaError, match="at most 12"):
        gg.Grammar.from_json_schema(many, property_order="any")


def test_white_space_is_bounded() -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    good = ["[1,2]", " [ 1 , 2 ] ", "[\n\n1]", "[" + " " * 64 + "]", "[\n" + " " * 64 + "1]", "[\r\n\t1]"]
    bad = ["[" + " " * 65 + "]", "[\n \n \n1]", "[1 2]", "[\v1]"]
    check(schema, good, bad, whitespace="flexible")
    check(schema, ["[\n1]"], ["[\n\n1]", "[  1]"], whitespace="flexible", max_newlines=1, max_blanks=1)
    check(schema, ["[1, 2]"], ["[1,2]", "[1 , 2]", "[ 1]"], separators=(", ", ": "))
    check({"type": "object"}, ['{"a": 1, "b": 2}'], ['{"a":1}'], separators=(", ", ": "))


REFUSED: dict[str, tuple[Any, str, str]] = {
    "malformed type": ({"type": "strin"}, "/type", "not a type"),
    "malformed place": (
        {"properties": {"a/b": {"minLength": -1}}},
        "/properties/a~1b/minLength",
        "whole number",
    ),
    "not a schema": ({"items": 3}, "/items", "a schema is"),
    "unsatisfiable": ({"type": "string", "enum": [1]}, "", "no value satisfies"),
    "empty enum": (
        {"type": "object", "properties": {"x": {"enum": []}}, "required": ["x"]},
        "",
        "no value satisfies",
    ),
    "missing reference": ({"$ref": "#/$defs/x"}, "/$ref", "not in the document"),
    "remote reference": ({"$ref": "http://x.org/y.json"}, "/$ref", "not in the document"),
    "reference cycle": (
        {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        "/$defs/a/$ref",
        "circles",
    ),
    "self-application": ({"allOf": [{"$ref": "#"}], "type": "null"}, "", "applies itself"),
    "unevaluated": ({"unevaluatedProperties": False}, "/unevaluatedProperties", "not supported"),
    "unique strings": ({"type": "array", "uniqueItems": True}, "", "uniqueItems"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_where_and_why(name: str) -> None:
    schema, pointer, reason = REFUSED[name]
    with pytest.raises(gg.SchemaError, match=reason) as caught:
        gg.Grammar.from_json_schema(schema)
    assert caught.value.pointer == pointer


def test_lenient_relaxes_and_says_so() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True, "maxItems": 3}}}
    with pytest.warns(GrammarWarning, match="/properties/a: not enforced: uniqueItems"):
        grammar = gg.Grammar.from_json_schema(schema, lenient=True, whitespace="compact")
    assert len(grammar.warnings) == 1
    built = gg.compile(grammar, VOCAB)
    assert accepts(built, '{"a":[1,1]}') and not accepts(built, '{"a":[1,1,1,1]}')


def test_unknown_formats_are_annotations_with_a_warning() -> None:
    with pytest.warns(GrammarWarning, match='/items: format "slug" is not known'):
        grammar = gg.Grammar.from_json_schema(
            {"type": "array", "items": {"type": "string", "format": "slug"}}
        )
    assert len(grammar.warnings) == 1


@pytest.mark.parametrize("options", [{"whitespace": "some"}, {"property_order": "x"}, {"one_of": "all"}])
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(gg.SchemaError, match="expected"):
        gg.Grammar.from_json_schema(True, **options)
    with pytest.raises(gg.SchemaError, match="separator"):
        gg.Grammar.from_json_schema(True, whitespace="compact", separators=(";", ":"))
    with pytest.raises(TypeError, match="model_json_schema"):
        gg.Grammar.from_json_schema(3)


def test_schemas_are_text_values_or_classes() -> None:
    class Model:
        @staticmethod
        def model_json_schema() -> dict[str, Any]:
            return A_INTEGER

    grammars = [gg.Grammar.from_json_schema(s) for s in (A_INTEGER, json.dumps(A_INTEGER), Model)]
    assert len({g.fingerprint for g in grammars}) == 1 and grammars[0] == grammars[2]


@pytest.mark.parametrize("name", CASES)
def test_canonical_text_is_the_one_that_python_writes(name: str) -> None:
    grammar = gg.Grammar.from_json_schema(CASES[name][0])
    text = grammar.ir.to_json()
    assert text == grammar._source(gg.Vocab.default()).to_json()
    assert GrammarIR.from_json(text) == grammar.ir


def test_masks_equal_those_of_the_reference() -> None:
    grammar = gg.Grammar.from_json_schema(CASES["overlapping patterns"][0], max_blanks=1)
    matcher, oracle = gg.Matcher(gg.compile(grammar, VOCAB)), Oracle(grammar.ir)
    state = oracle.start()
    for byte in b'{"ab": 3, "xb":"s" }':
        assert matcher.mask().tolist()[:256] == oracle.mask(state, VOCAB.tokens[:256])
        assert matcher.accept_token(byte)
        advanced = oracle.advance(state, bytes([byte]))
        assert advanced is not None
        state = advanced


def nested(depth: int, kind: str) -> str:
    inner = {"items": '{"items":', "properties": '{"properties":{"a":', "allOf": '{"allOf":['}[kind]
    close = {"items": "}", "properties": "}}", "allOf": "]}"}[kind]
    return inner * depth + "{}" + close * depth


HOSTILE = {
    "nested items": nested(10_000, "items"),
    "nested properties": nested(10_000, "properties"),
    "nested allOf": nested(10_000, "allOf"),
    "long reference chain": json.dumps(
        {
            "$ref": "#/$defs/d0",
            "$defs": {f"d{i}": {"$ref": f"#/$defs/d{i + 1}", "minimum": i} for i in range(10_000)},
        }
    ),
    "recursive allOf": json.dumps(
        {
            "$defs": {
                "t": {
                    "type": "object",
                    "properties": {"n": {"allOf": [{"$ref": "#/$defs/t"}, {"$ref": "#/$defs/u"}]}},
                },
                "u": {"properties": {"n": {"allOf": [{"$ref": "#/$defs/u"}, {"$ref": "#/$defs/t"}]}}},
            },
            "$ref": "#/$defs/t",
        }
    ),
    "alternatives to the power of 20": json.dumps(
        {"allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(20)]}
    ),
    "hundreds of dependencies": json.dumps({"dependencies": {f"a{i}": [f"b{i}"] for i in range(300)}}),
    "patterns": json.dumps({"patternProperties": {f"x{i}.*y{i}": {"minimum": i} for i in range(15)}}),
    "counts": json.dumps({"items": {"maxItems": 10**15, "items": {"minItems": 10**9}}, "maxItems": 2**63}),
    "huge numbers": '{"minimum": 1e999999999, "multipleOf": 1e-999999999}',
    "not JSON": "{",
    "not UTF-8": b'{"\xff": 1}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_schemas_end_soon_with_a_typed_error_or_a_grammar(name: str) -> None:
    started = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            gg.Grammar.from_json_schema(HOSTILE[name])
        except (gg.SchemaError, gg.BudgetExceeded) as error:
            assert str(error)
    assert time.monotonic() - started < 20


SEEN = [
    {"type": "object", "properties": {"a": {"type": "string"}, "ab": {"type": "integer"}}},
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 20}, "note": {"type": "string"}},
    },
    {"type": "array", "items": {"type": "string", "minLength": 2, "maxLength": 20}},
    {"type": "object", "properties": {"id": {"type": "string", "pattern": "^[a-z]+-[0-9]{2,9}$"}}},
    {"enum": ["red", "green", 5, None]},
    {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "number"}}},
]


def test_what_was_compiled_before_changes_nothing() -> None:
    """Automata and what tokens do in them are remembered beside the vocabulary, whichever grammars came first."""
    path = default_tokenizer_path()

    def build(schemas: list[Any]) -> list[bytes]:
        vocab = gg.Vocab.from_file(path)
        grammars = [gg.Grammar.from_json_schema(schema) for schema in schemas]
        return [gg.compile(grammar, vocab).to_bytes() for grammar in grammars]

    alone = [build([schema])[0] for schema in SEEN]
    assert build(SEEN) == alone
    assert build(SEEN[::-1]) == alone[::-1]
