"""Schemas that are large where peers copy, and schemas that mean harm: a result in time, or a typed error.

Each case runs in a process of its own, so that a crash, a hang or a memory leak is a failed test and not the end of the
run.
``python tests/python/test_json_schema_hostile.py`` prints a table of all cases with their figures.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Case = tuple[Callable[[], str], str]
"""What makes the schema's text, and what has to come out: ``result``, the name of an error, or ``any`` of these."""

SLOW = (
    "hostname",
    "enum of 10 MB",
    "oneOf of 60 overlapping patterns",
    "pattern of look-aheads",
    "pattern of exponential states",
)
"""Half a minute all together, or more; left to ``-m full``."""


def _nested(depth: int, wrap: Callable[[str], str], core: str) -> str:
    for _ in range(depth):
        core = wrap(core)
    return core


def _one_of(depth: int) -> dict[str, Any]:
    leaf = {"a": {"type": "integer"}} if depth == 0 else {"a": _one_of(depth - 1)}
    items = {"type": "integer"} if depth == 0 else _one_of(depth - 1)
    record = {"type": "object", "properties": leaf, "required": ["a"], "additionalProperties": False}
    return {"oneOf": [record, {"type": "array", "items": items, "maxItems": 1}]}


def _max_items(depth: int) -> dict[str, Any]:
    return {
        "type": "array",
        "maxItems": 1000,
        "items": _max_items(depth - 1) if depth else {"type": "integer"},
    }


def _text(schema: Any) -> Callable[[], str]:
    return lambda: json.dumps(schema)


def _string(**keywords: Any) -> Callable[[], str]:
    return _text({"type": "string", **keywords})


LARGE: dict[str, Case] = {
    "maxLength 100,000": (_string(maxLength=100_000), "result"),
    "minLength 129": (_string(minLength=129), "result"),
    "minLength 5,000 and maxLength 100,000": (_string(minLength=5_000, maxLength=100_000), "result"),
    "words and maxLength 500": (_string(pattern=r"^(?:\S+\s+){0,49}\S+$", maxLength=500), "result"),
    "pattern and maxLength 255": (
        _string(pattern=r"^([\w\/-]|[\w-][\w\/-]*[\w-])$", maxLength=255),
        "result",
    ),
    "hostname": (_string(format="hostname"), "result"),
    "enum of 5,000 values": (
        _text({"enum": [f"value-{i * 7919 % 100_003:05}" for i in range(5_000)]}),
        "result",
    ),
    "nested maxItems 1,000": (lambda: json.dumps(_max_items(2)), "result"),
    "500 optional properties": (
        _text({"type": "object", "properties": {f"property_{i}": {"type": "string"} for i in range(500)}}),
        "result",
    ),
    "500 required properties": (
        _text(
            {
                "type": "object",
                "properties": {f"property_{i}": {"type": "integer"} for i in range(500)},
                "required": [f"property_{i}" for i in range(500)],
            }
        ),
        "result",
    ),
    "bounds of 1e308": (
        _text({"type": "number", "minimum": -1.5e308, "maximum": 1e308, "multipleOf": 0.01}),
        "result",
    ),
}

HOSTILE: dict[str, Case] = {
    "nesting 10,000": (lambda: _nested(10_000, lambda s: f'{{"items":{s}}}', "{}"), "any"),
    "nesting 10,000 of allOf": (lambda: _nested(10_000, lambda s: f'{{"allOf":[{s}]}}', "{}"), "any"),
    "nesting 10,000 of groups": (_string(pattern="(" * 10_000 + "a" + ")" * 10_000), "any"),
    "nesting 10,000 in const": (lambda: '{"const":' + "[" * 10_000 + "]" * 10_000 + "}", "any"),
    "enum of 10 MB": (lambda: json.dumps({"enum": [f"{i:020}" for i in range(430_000)]}), "any"),
    "enum of one string of 10 MB": (lambda: json.dumps({"const": "x" * 10_000_000}), "any"),
    "recursive allOf": (_text({"allOf": [{"$ref": "#"}]}), "any"),
    "recursive allOf with siblings": (
        _text(
            {"type": "object", "properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#/properties/a"}]}}}
        ),
        "any",
    ),
    "$ref cycle": (
        _text({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        "any",
    ),
    "not of itself": (_text({"not": {"$ref": "#"}}), "any"),
    "anyOf that grows": (
        _text(
            {
                "anyOf": [
                    {"type": "array", "items": {"allOf": [{"$ref": "#"}, {"minItems": 1}]}},
                    {"type": "null"},
                ]
            }
        ),
        "any",
    ),
    "pattern (a+)+": (_string(pattern="^(a+)+$"), "result"),
    "pattern (a|a)*b": (_string(pattern="^((a|a)*|(a|aa)+)*b$"), "result"),
    "pattern of nested counts": (_string(pattern="^((a{1,100}){1,100}){1,100}$"), "any"),
    "pattern of a huge count": (_string(pattern="^(?:ab){4000000000}$"), "any"),
    "pattern of exponential states": (_string(pattern="(a|b)*a(a|b){24}$"), "any"),
    "pattern of look-aheads": (
        _string(pattern="^" + "".join(f"(?=.*{c}.{{9}})" for c in "abcdefghij")),
        "any",
    ),
    "product of anyOf": (
        _text({"allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(30)]}),
        "any",
    ),
    "oneOf nested 10 deep": (lambda: json.dumps(_one_of(10)), "any"),
    "oneOf of 60 overlapping patterns": (
        _string(oneOf=[{"pattern": f"{chr(97 + i % 26)}.{{{i}}}b"} for i in range(60)]),
        "any",
    ),
    "oneOf of 2,000 patterns": (
        _string(oneOf=[{"pattern": f"^k{i}$"} for i in range(2_000)]),
        "BudgetExceeded",
    ),
    "oneOf of 450 open objects": (
        _text(
            {"oneOf": [{"type": "object", "properties": {f"v{i}": {"type": "integer"}}} for i in range(450)]}
        ),
        "any",
    ),
    "conjunctions that multiply": (
        _text(
            {
                "$ref": "#/$defs/a0",
                "$defs": {
                    f"a{i}": {
                        "properties": {
                            "x": {
                                "allOf": [
                                    {"$ref": f"#/$defs/a{(k * i + n) % 40}"} for k, n in ((7, 1), (11, 3))
                                ]
                            },
                            "y": {"$ref": f"#/$defs/a{(i + 1) % 40}"},
                        }
                    }
                    for i in range(40)
                },
            }
        ),
        "BudgetExceeded",
    ),
    "key of 5 MB": (_text({"properties": {"k" * 5_000_000: {}}}), "BudgetExceeded"),
    "200 keys of 20 kB": (
        _text({"properties": {f"k{i}" + "x" * 20_000: {} for i in range(200)}}),
        "BudgetExceeded",
    ),
    "pattern of 500,000 optional letters": (_string(pattern="a?" * 500_000), "any"),
    "patterns that overlap too much to tell": (
        _text(
            {"type": "object", "patternProperties": {f"(a|b)*{c}(a|b){{12}}$": {"minimum": 1} for c in "ab"}}
        ),
        "any",
    ),
    "not of a large enum": (_string(**{"not": {"enum": [f"word{i}" for i in range(20_000)]}}), "any"),
    "30 overlapping patternProperties": (
        _text(
            {
                "type": "object",
                "patternProperties": {f"{chr(97 + i % 26)}.*{i}": {"minimum": i} for i in range(30)},
            }
        ),
        "any",
    ),
    "required of 100,000 names": (
        _text({"type": "object", "required": [f"n{i}" for i in range(100_000)]}),
        "any",
    ),
    "maxLength of 4 billion": (_string(maxLength=4_000_000_000), "any"),
    "maxItems of 4 billion": (_text({"type": "array", "maxItems": 4_000_000_000}), "any"),
    "minItems of 4 billion": (_text({"type": "array", "minItems": 4_000_000_000}), "any"),
    "minProperties of 4 billion": (_text({"type": "object", "minProperties": 4_000_000_000}), "any"),
    "maxProperties of 4 billion": (_text({"type": "object", "maxProperties": 4_000_000_000}), "any"),
    "propertyNames that explode": (
        _text({"type": "object", "propertyNames": {"pattern": "(x|y)*x(x|y){24}$"}, "maxProperties": 3}),
        "any",
    ),
    "items that are each other": (
        _text(
            {
                "$ref": "#/$defs/a",
                "$defs": {
                    "a": {"items": {"allOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/a"}]}},
                    "b": {"items": {"allOf": [{"$ref": "#/$defs/a"}, {"not": {"$ref": "#/$defs/b"}}]}},
                },
            }
        ),
        "any",
    ),
    "enum of 100,000 objects": (
        lambda: json.dumps({"enum": [{"a": i, "b": [i]} for i in range(100_000)]}),
        "any",
    ),
    "anyOf of 20,000 objects": (
        lambda: json.dumps(
            {"anyOf": [{"required": [f"k{i}"], "properties": {f"k{i}": {}}} for i in range(20_000)]}
        ),
        "any",
    ),
    "multipleOf of a large prime": (_text({"type": "integer", "multipleOf": 4_294_967_291}), "any"),
    "bounds of 1e999999": (lambda: '{"type":"number","minimum":1e999999}', "any"),
    "surrogates in the schema": (lambda: '{"const":"\\ud800"}', "any"),
    "no JSON": (lambda: '{"type":', "any"),
    "keys twice": (lambda: '{"type":"string","type":"integer"}', "any"),
}

LIMIT_SECONDS, LIMIT_BYTES = 60, 3 << 30
"""Seconds of processor time: a busy machine is no hang."""
MOST_MEGABYTES = 1024
"""Memory of a process, its vocabulary included, that a hostile schema may take."""


def run(text: str, mode: str) -> dict[str, Any]:
    """In the child: lower, compile, take one mask."""
    import glrgrid as gg

    warnings.simplefilter("ignore")
    vocab = gg.Vocab.default()
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_SECONDS, LIMIT_SECONDS))
    started = time.perf_counter()
    try:
        compiled = gg.compile(gg.Grammar.from_json_schema(text), vocab, mode=mode)
        matcher = gg.Matcher(compiled)
        matcher.fill_next_token_bitmask(gg.allocate_token_bitmask(1, vocab.size))
        outcome = "result"
    except (gg.SchemaError, gg.BudgetExceeded, gg.GrammarError) as error:
        compiled, outcome = None, f"{type(error).__name__}: {str(error)[:150]}"
    figures = {"outcome": outcome, "milliseconds": round((time.perf_counter() - started) * 1e3, 1)}
    if compiled is not None:
        stats = compiled.stats
        figures |= {"lexer_states": stats.get("lexer_states"), "artifact_bytes": stats.get("artifact_bytes")}
    return {**figures, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}


def spawn(name: str, mode: str = "lazy") -> dict[str, Any]:
    make, _ = (LARGE | HOSTILE)[name]
    command = [sys.executable, __file__, "--child", mode]
    child = subprocess.run(
        command, input=make(), capture_output=True, text=True, timeout=20 * LIMIT_SECONDS, check=False
    )
    assert child.returncode == 0, f"{name}: exit {child.returncode}, {child.stderr[-500:]}"
    result: dict[str, Any] = json.loads(child.stdout)
    return result


def as_parameters(names: Iterable[str]) -> list[Any]:
    return [
        pytest.param(
            name,
            marks=[pytest.mark.full] if name in SLOW else [],
        )
        for name in names
    ]


@pytest.mark.parametrize("name", as_parameters(LARGE))
def test_large_schemas_are_compiled(name: str) -> None:
    figures = spawn(name)
    assert figures["outcome"] == "result", figures


@pytest.mark.parametrize("name", as_parameters(HOSTILE))
def test_hostile_schemas_get_a_result_or_a_typed_error(name: str) -> None:
    figures = spawn(name)
    expected = HOSTILE[name][1]
    assert expected == "any" or figures["outcome"].partition(":")[0] == expected, figures
    assert figures["peak_mb"] < MOST_MEGABYTES, figures


def main() -> None:
    """Print all figures."""
    for name in LARGE | HOSTILE:
        for mode in ("lazy", "aot"):
            try:
                print(f"{name:36} {mode:5}", spawn(name, mode), flush=True)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                print(f"{name:36} {mode:5}", "FAILED", str(error)[:300], flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(run(sys.stdin.read(), sys.argv[2])))
    else:
        main()
