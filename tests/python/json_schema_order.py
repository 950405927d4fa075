"""Puts the keys of instances in the order that a schema's grammar wants; ``bench/maskbench.py`` uses it too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for


class Reorderer:
    """Puts keys in schema order: those under ``properties``, then those that are only required, then others."""

    def __init__(self, schema: Any) -> None:
        self.root = schema
        self.validator = validator_for(schema, Draft202012Validator)(schema)

    def names(self, schemas: list[Any]) -> list[str]:
        """Names in the order in which schemas of one value mention them."""
        declared = [name for s in schemas for name in _object(s.get("properties"))]
        needed = [name for s in schemas for name in _list(s.get("required"))]
        return list(dict.fromkeys([*declared, *needed]))

    def applied(self, schema: Any, value: Any, seen: tuple[int, ...] = ()) -> list[Any]:
        """The schema, and those that apply to the same value and hold of it."""
        if not isinstance(schema, dict) or id(schema) in seen:
            return []
        seen = (*seen, id(schema))
        out = [schema]
        if isinstance(schema.get("$ref"), str):
            out += self.applied(self.target(schema["$ref"]), value, seen)
        for key in ("allOf", "anyOf", "oneOf"):
            for branch in _list(schema.get(key)):
                if key == "allOf" or self.holds(branch, value):
                    out += self.applied(branch, value, seen)
        if "if" in schema:
            branch = "then" if self.holds(schema["if"], value) else "else"
            out += self.applied(schema["if"], value, seen) if branch == "then" else []
            out += self.applied(schema.get(branch), value, seen)
        for name, branch in _object(schema.get("dependencies")).items():
            if name in _object(value):
                out += self.applied(branch, value, seen)
        return out

    def holds(self, schema: Any, value: Any) -> bool:
        """Whether a part of the document accepts a value."""
        try:
            return bool(self.validator.evolve(schema=schema).is_valid(value))
        except Exception:  # the validator's own troubles with odd schemas are not what is tested
            return True

    def target(self, reference: str) -> Any:
        """What a reference within the document leads to."""
        value = self.root
        if not reference.startswith("#"):
            return None
        for token in reference[1:].split("/")[1:]:
            token = token.replace("~1", "/").replace("~0", "~").replace("%24", "$").replace("%25", "%")
            try:
                value = value[int(token)] if isinstance(value, list) else value[token]
            except (KeyError, IndexError, ValueError, TypeError):
                return None
        return value

    def reordered(self, value: Any, schemas: list[Any]) -> Any:
        """A copy of the value, of which these schemas hold, with its keys in order."""
        schemas = [a for s in schemas for a in self.applied(s, value)]
        if isinstance(value, list):
            return [self.reordered(item, list(self.items(schemas, i))) for i, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        names = [n for n in self.names(schemas) if n in value]
        order = [*names, *(key for key in value if key not in set(names))]
        return {key: self.reordered(value[key], list(self.members(schemas, key))) for key in order}

    def items(self, schemas: list[Any], index: int) -> Iterator[Any]:
        for s in schemas:
            items = s.get("items")
            prefix = s.get("prefixItems") or (items if isinstance(items, list) else [])
            if index < len(prefix):
                yield prefix[index]
            elif isinstance(items, dict):
                yield items
            elif isinstance(s.get("additionalItems"), dict):
                yield s["additionalItems"]

    def members(self, schemas: list[Any], key: str) -> Iterator[Any]:
        for s in schemas:
            properties = _object(s.get("properties"))
            if key in properties:
                yield properties[key]
            else:
                yield s.get("additionalProperties")
            yield from _object(s.get("patternProperties")).values()


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
