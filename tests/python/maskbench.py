"""Runs JSON Schemas with test instances through the engine, and says which pass.

``python tests/python/maskbench.py FILE`` (JSON lines: ``id``, ``schema``, ``tests``) prints an outcome for each schema
that is not ``pass``, and counts; ``--expected`` compares with a file of ids and outcomes, ``--write`` makes one. An
outcome is

* ``pass``: every valid instance is accepted to the end in three ways of writing it, every invalid one in none;
* ``refused``: ``SchemaError`` or ``BudgetExceeded``;
* ``wrong``: anything else.

Keys of valid instances are put in the order that a grammar wants: those the schema names first (:func:`reordered`).
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for

import glrgrid as gg

SPELLINGS: tuple[dict[str, Any], ...] = (
    {"separators": (",", ":")},
    {"separators": (", ", ": "), "ensure_ascii": False},
    {"indent": 2},
)


def byte_vocab() -> gg.Vocab:
    """One token for each byte: small, and every text has one tokenization."""
    return gg.Vocab.from_bytes({**{i: bytes([i]) for i in range(256)}, 256: b""}, eos_ids=[256])


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The cases of a file of JSON lines, gzipped or not."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for line in data.splitlines():
        yield json.loads(line)


def accepts(compiled: gg.CompiledGrammar, text: str) -> bool:
    """Whether the text is accepted to its end, with the end allowed there."""
    matcher = gg.Matcher(compiled)
    data = text.encode("utf-8", "surrogatepass")
    return matcher.accept_bytes(data) == len(data) and matcher.is_accepting()


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


def outcome(case: dict[str, Any], vocab: gg.Vocab, quick: bool = False) -> dict[str, Any]:
    """Run one case; quickly: without white space, in one spelling."""
    spellings = SPELLINGS[:1] if quick else SPELLINGS
    options = {"whitespace": "compact"} if quick else {}
    result: dict[str, Any] = {"id": case["id"], "outcome": "pass", "reordered": 0}
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            grammar = gg.Grammar.from_json_schema(json.dumps(case["schema"]), **options)
            result["lower_ms"] = (time.perf_counter() - started) * 1e3
            compiled = gg.compile(grammar, vocab, mode="lazy")
    except (gg.SchemaError, gg.BudgetExceeded) as error:
        return {**result, "outcome": "refused", "why": str(error)}
    except gg.GlrgridError as error:
        return {**result, "outcome": "wrong", "why": f"{type(error).__name__}: {error}"}
    result["compile_ms"] = (time.perf_counter() - started) * 1e3
    result["states"] = {k: compiled.stats[k] for k in ("lr_states", "terminals", "productions")}
    if compiled.warnings:
        result["compile_warning"] = compiled.warnings[0]
    reorderer = Reorderer(case["schema"])
    for number, test in enumerate(case["tests"]):
        data = test["data"]
        if test["valid"]:
            plain = [accepts(compiled, json.dumps(data, **s)) for s in spellings]
            if not all(plain):
                ordered = reorderer.reordered(data, [case["schema"]])
                result["reordered"] += 1
                plain = [accepts(compiled, json.dumps(ordered, **s)) for s in spellings]
            if not all(plain):
                matcher = gg.Matcher(compiled)
                text = json.dumps(ordered, **spellings[plain.index(False)]).encode("utf-8", "surrogatepass")
                taken = matcher.accept_bytes(text)
                why = (
                    matcher.explain_bytes(text[taken : taken + 1]).reason
                    if taken < len(text)
                    else "not complete"
                )
                shown = f"...{text[max(0, taken - 60) : taken]!r} | {text[taken : taken + 30]!r}"
                return {
                    **result,
                    "outcome": "wrong",
                    "test": number,
                    "why": f"valid refused {plain}: {shown}: {why}",
                }
        else:
            for spelling in spellings:
                if accepts(compiled, json.dumps(data, **spelling)):
                    why = f"invalid accepted: {test.get('description')}: {json.dumps(data)[:300]}"
                    return {**result, "outcome": "wrong", "test": number, "why": why}
    return result


def read_outcomes(path: Path) -> dict[str, str]:
    """The expected outcome of each schema."""
    return dict(line.split(" ") for line in path.read_text().splitlines())


def main() -> None:
    """Run a file and print what does not pass, then counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", help="ids that contain this")
    parser.add_argument("--skip", type=int, default=0, help="schemas to leave out at the beginning")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path, help="JSON lines, one for each schema")
    parser.add_argument("--expected", type=Path, help="ids and outcomes; exit with 1 if any differs")
    parser.add_argument("--write", type=Path, help="write ids and outcomes")
    parser.add_argument("--quick", action="store_true", help="compact texts only")
    options = parser.parse_args()
    vocab = byte_vocab()
    counts: Counter[str] = Counter()
    results = []
    for case in islice(read(options.file), options.skip, None):
        if options.only and options.only not in case["id"]:
            continue
        if options.limit and len(results) >= options.limit:
            break
        result = outcome(case, vocab, options.quick)
        results.append({**result, "tests": len(case["tests"])})
        counts[result["outcome"] + ("" if case["tests"] else " (no tests)")] += 1
        if options.out:
            with options.out.open("a") as out:
                out.write(json.dumps(results[-1]) + "\n")
        if result["outcome"] != "pass":
            print(result["outcome"], result["id"], result.get("test", ""), result.get("why"), flush=True)
    print(counts, f"reordered {sum(r['reordered'] for r in results)}", file=sys.stderr)
    outcomes = {r["id"]: r["outcome"] for r in results}
    if options.write:
        options.write.write_text("".join(f"{name} {outcome}\n" for name, outcome in outcomes.items()))
    if options.expected:
        expected = read_outcomes(options.expected)
        changed = {
            name: (expected.get(name), now) for name, now in outcomes.items() if expected.get(name) != now
        }
        for name, (before, now) in changed.items():
            print(f"changed: {name} was {before}, is {now}", file=sys.stderr)
        sys.exit(bool(changed))
    for key in ("lower_ms", "compile_ms"):
        times = sorted(r[key] for r in results if key in r)
        if times:
            print(
                key, *(f"{times[min(len(times) - 1, int(len(times) * q))]:.2f}" for q in (0.5, 0.9, 0.99, 1))
            )


if __name__ == "__main__":
    main()
