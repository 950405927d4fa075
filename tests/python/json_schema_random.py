"""Random schemas, and instances that are mostly valid for them.

Schemas are drawn from every keyword that is enforced, small enough for the judge and the engine to be asked hundreds of
times. :func:`random_instance` follows a schema and does not try hard: what it makes is judged anyway.
"""

from __future__ import annotations

import random
from typing import Any

NAMES = ("a", "b", "c", "id")
OTHERS = ("x_1", "zz", "A", "")
PATTERNS = ("^a", "b$", "^[a-c]+$", "^\\d{2}$", "a|b", "^(?!x)", "^[^\\s]*$", "\\.", "^(ab)*$", "\u00e9")
TEXTS = ("", "a", "b", "ab", "ba", "abab", "c", "12", "x", "x.a", "a b", "\u00e9", "zz", "\U0001f600", '"\\')
FORMATS = ("date", "ipv4", "uuid", "time", "json-pointer", "uri-reference")
NUMBERS = (0, 1, 2, 3, 5, 7, 10, 12, -1, -3, 0.5, 1.5, 2.25, -0.5, 100, 1e3)
DIVISORS = (1, 2, 3, 5, 0.5, 0.1, 2.5)


def random_schema(rng: random.Random, depth: int = 3) -> Any:
    """Draw a schema."""
    if rng.random() < 0.06:
        return rng.choice([True, {}])
    makers = [_string, _string, _number, _number, _finite, _simple]
    if depth > 0:
        makers += [_object, _object, _object, _array, _array, _combined, _combined]
    return rng.choice(makers)(rng, depth)


def _simple(rng: random.Random, depth: int) -> Any:
    return {
        "type": rng.choice(
            ["null", "boolean", "string", "integer", "number", ["string", "null"], ["integer", "boolean"]]
        )
    }


def _some(rng: random.Random, **choices: Any) -> dict[str, Any]:
    """Each keyword with a chance of its own."""
    return {name: make() for name, (chance, make) in choices.items() if rng.random() < chance}


def _string(rng: random.Random, depth: int) -> Any:
    return {
        "type": "string",
        **_some(
            rng,
            minLength=(0.25, lambda: rng.randint(0, 3)),
            maxLength=(0.25, lambda: rng.randint(1, 5)),
            pattern=(0.35, lambda: rng.choice(PATTERNS)),
            format=(0.1, lambda: rng.choice(FORMATS)),
        ),
    }


def _number(rng: random.Random, depth: int) -> Any:
    return {
        "type": rng.choice(["integer", "number", "number"]),
        **_some(
            rng,
            minimum=(0.3, lambda: rng.choice(NUMBERS)),
            maximum=(0.3, lambda: rng.choice(NUMBERS)),
            exclusiveMinimum=(0.15, lambda: rng.choice(NUMBERS)),
            exclusiveMaximum=(0.15, lambda: rng.choice(NUMBERS)),
            multipleOf=(0.25, lambda: rng.choice(DIVISORS)),
        ),
    }


def _finite(rng: random.Random, depth: int) -> Any:
    values: list[Any] = [*rng.sample(TEXTS, 2), *rng.sample(NUMBERS, 2), None, True, False, [1], {"a": 1}]
    chosen = rng.sample(values, rng.randint(1, 4))
    return {"enum": chosen} if len(chosen) > 1 else {"const": chosen[0]}


def _array(rng: random.Random, depth: int) -> Any:
    schema = {
        "type": "array",
        **_some(
            rng,
            minItems=(0.3, lambda: rng.randint(0, 2)),
            maxItems=(0.3, lambda: rng.randint(1, 4)),
            prefixItems=(0.2, lambda: [random_schema(rng, depth - 1) for _ in range(rng.randint(1, 2))]),
            items=(0.8, lambda: rng.choice([False, *[random_schema(rng, depth - 1)] * 4])),
        ),
    }
    if rng.random() < 0.15:
        return {
            **schema,
            "contains": {"const": rng.choice([1, "a"])},
            **_some(rng, maxContains=(0.3, lambda: 2)),
        }
    if rng.random() < 0.15:
        return {"type": "array", "items": {"enum": [1, "a", None]}, "uniqueItems": True}
    return schema


def _object(rng: random.Random, depth: int) -> Any:
    names = [name for name in NAMES if rng.random() < 0.6]
    properties = {name: random_schema(rng, depth - 1) for name in names}
    required = [name for name in (*names, "zz") if rng.random() < (0.4 if name in names else 0.1)]
    schema = {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        **_some(
            rng,
            additionalProperties=(0.6, lambda: rng.choice([False, False, random_schema(rng, depth - 1)])),
            patternProperties=(0.15, lambda: {rng.choice(PATTERNS): random_schema(rng, 0)}),
            propertyNames=(
                0.1,
                lambda: rng.choice([{"maxLength": 2}, {"pattern": "^[a-z]"}, {"enum": ["a", "b", "zz"]}]),
            ),
            minProperties=(0.1, lambda: rng.randint(0, 2)),
            maxProperties=(0.1, lambda: rng.randint(1, 3)),
        ),
    }
    if len(names) > 1 and rng.random() < 0.15:
        schema["dependentRequired"] = {names[0]: [names[-1]]}
    return schema


def _combined(rng: random.Random, depth: int) -> Any:
    kind = rng.choice(["anyOf", "allOf", "oneOf", "not", "if"])
    maker = rng.choice([_string, _number, _finite, _object])
    first, second = maker(rng, depth - 1), maker(rng, depth - 1)
    if kind == "not":
        return {**first, "not": second}
    if kind == "if":
        return {
            **first,
            "if": second,
            **_some(rng, then=(0.7, lambda: maker(rng, 0)), **{"else": (0.7, lambda: maker(rng, 0))}),
        }
    return {kind: [first, second if rng.random() < 0.7 else random_schema(rng, depth - 1)]}


def random_instance(schema: Any, rng: random.Random) -> Any:
    """A value that has a fair chance to be valid."""
    if not isinstance(schema, dict) or not schema:
        return rng.choice([None, 1, "a", [], {}])
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    for kind in ("anyOf", "allOf", "oneOf"):
        if kind in schema:
            return random_instance(rng.choice(schema[kind]), rng)
    kind = schema.get("type")
    match rng.choice(kind) if isinstance(kind, list) else kind:
        case "null":
            return None
        case "boolean":
            return rng.random() < 0.5
        case "string":
            samples = {
                "date": "2024-02-29",
                "ipv4": "1.2.3.4",
                "uuid": "2eb8aa08-aa98-11ea-b4aa-73b441d16380",
                "time": "12:00:00Z",
            }
            return samples.get(schema.get("format", ""), rng.choice(TEXTS))
        case "integer" | "number":
            bounds = [
                schema[k]
                for k in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
                if k in schema
            ]
            near = rng.choice(bounds or [0]) + rng.choice([0, 1, -1, 0.5, 2])
            return rng.choice([near, rng.choice(NUMBERS), schema.get("multipleOf", 1) * rng.randint(-3, 9)])
        case "array":
            prefix = schema.get("prefixItems", [])
            count = rng.randint(
                schema.get("minItems", 0), max(schema.get("maxItems", 3), schema.get("minItems", 0))
            )
            return [
                random_instance(prefix[i] if i < len(prefix) else schema.get("items", {}), rng)
                for i in range(count)
            ]
        case "object":
            return _random_object(schema, rng)
    return rng.choice(TEXTS)


def _random_object(schema: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    value = {
        name: random_instance(sub, rng)
        for name, sub in properties.items()
        if name in required or rng.random() < 0.5
    }
    additional = schema.get("additionalProperties", {})
    for name in [
        *(name for name in required if name not in value),
        *(n for n in OTHERS if rng.random() < 0.1),
    ]:
        value[name] = random_instance(additional, rng)
    return value
