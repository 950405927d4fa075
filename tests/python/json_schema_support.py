"""What the JSON Schema tests share: the judge, the texts of an instance, walks under the mask, and mutations."""

from __future__ import annotations

import decimal
import itertools
import json
import random
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import jsonschema
import numpy as np

import glrgrid as gg

# Remainders of numbers with hundreds of digits, as the engine computes them.
decimal.getcontext().prec = 2_000


def compile_schema(schema: Any, vocab: gg.Vocab, mode: str = "lazy", **options: Any) -> gg.CompiledGrammar:
    """Compile a schema; warnings are not of interest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gg.compile(gg.Grammar.from_json_schema(json.dumps(schema), **options), vocab, mode=mode)


FORMATS = (
    *("date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6"),
    *("uri", "uri-reference", "iri", "iri-reference", "uuid", "json-pointer"),
)
STRICTER = ("date-time", "duration", "email", "hostname", "time", "uri", "uri-reference", "uuid")
"""Formats of which ``jsonschema`` lets more through than their RFCs: signed durations, anything with an ``@``, a dot or
a line feed at the end, stray hyphens in a UUID."""


ECMA_SPACE = r"\s\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"


class Judge:
    """``jsonschema`` on exact numbers, with the formats that are enforced and with patterns read as ECMA-262 does."""

    def __init__(self, schema: Any) -> None:
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
        self._draft4 = kind is jsonschema.Draft4Validator
        exact = self.value(json.dumps(schema))
        self._validator = kind(_ecma_patterns(exact), format_checker=_format_checker())

    def value(self, text: str) -> Any:
        """The value of a JSON text; a whole number with a point is an ``int``, but in draft 4."""
        return json.loads(text, parse_float=self._number, parse_constant=_refuse_constant)

    def _number(self, text: str) -> Decimal | int:
        number = Decimal(text)
        small = abs(number.adjusted()) < 400
        return int(number) if small and number == number.to_integral_value() and not self._draft4 else number

    def accepts(self, text: str) -> bool:
        """Whether the text's value is valid."""
        return bool(self._validator.is_valid(self.value(text)))

    def why(self, text: str) -> str:
        """The first error."""
        return next(
            (f"{e.json_path}: {e.message}"[:300] for e in self._validator.iter_errors(self.value(text))),
            "valid",
        )


def _format_checker() -> jsonschema.FormatChecker:
    """Every enforced format, in any draft."""
    known = jsonschema.Draft202012Validator.FORMAT_CHECKER.checkers
    checker = jsonschema.FormatChecker(())
    checker.checkers = {name: known[name] for name in FORMATS}
    return checker


def _ecma_patterns(schema: Any) -> Any:
    """The schema with its patterns rewritten for :mod:`re`: ASCII classes, ``$`` only at the end."""
    if isinstance(schema, list):
        return [_ecma_patterns(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: _ecma_patterns(value) for key, value in schema.items()}
    if isinstance(out.get("pattern"), str):
        out["pattern"] = _ecma(out["pattern"])
    if isinstance(out.get("patternProperties"), dict):
        out["patternProperties"] = {_ecma(key): value for key, value in out["patternProperties"].items()}
    return out


def _ecma(pattern: str) -> str:
    parts = re.findall(r"\\.|\[(?:\\.|[^\]])*\]|.", pattern, re.DOTALL)
    rewritten = {"$": r"\Z", r"\s": f"[{ECMA_SPACE}]", r"\S": f"[^{ECMA_SPACE}]"}
    parts = [
        part.replace(r"\s", ECMA_SPACE) if part[0] == "[" else rewritten.get(part, part) for part in parts
    ]
    return f"(?a:{''.join(parts)})"


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def repeats_a_key(text: str) -> bool:
    """Whether some object has a key twice, which makes its value anybody's guess."""
    found = False

    def pairs(items: list[tuple[str, Any]]) -> None:
        nonlocal found
        keys = Counter(key for key, _ in items)
        found |= any(count > 1 for count in keys.values())

    json.loads(text, object_pairs_hook=pairs)
    return found


def walk(
    compiled: gg.CompiledGrammar, tokens: list[bytes | None], rng: random.Random, budget: int = 120
) -> bytes | None:
    """A random path under the mask, as bytes; none if it does not end.

    Half of the budget goes where the dice say; then tokens that close something are preferred.
    """
    matcher = gg.Matcher(compiled)
    bitmask = gg.allocate_token_bitmask(1, len(tokens))
    output = b""
    for step in range(6 * budget):
        matcher.fill_next_token_bitmask(bitmask)
        allowed = np.flatnonzero(np.unpackbits(bitmask[0].view(np.uint8), bitorder="little")[: len(tokens)])
        assert len(allowed), f"dead end after {output!r}"
        ends = [t for t in allowed if tokens[t] is None]
        if ends and (step > budget // 2 or rng.random() < 0.2):
            return output
        pick = rng.choice([t for t in allowed if tokens[t] is not None] or ends)
        if step > budget // 2:
            pick = min(rng.choices(allowed, k=30), key=lambda t: _openness(tokens[t]))
        if tokens[pick] is None:
            return output
        assert matcher.accept_token(int(pick)), (output, tokens[pick])
        output += tokens[pick] or b""
    return None


def _openness(token: bytes | None) -> int:
    """How far a token leads away from the end; closing brackets and quotes least."""
    if token is None:
        return -10
    text = token.strip(b" \n\r\t")
    return 3 * sum(text.count(c) for c in b"{[,") - 2 * sum(text.count(c) for c in b'}]"') + len(token)


def spelled_tokens(vocab: gg.Vocab) -> list[bytes | None]:
    """The bytes of each id that text can have; the end has none."""
    return [None if i in vocab.eos_ids else token for i, token in enumerate(vocab.tokens)]


def orders(value: Any) -> Iterator[Any]:
    """The value with its keys in every order."""
    if isinstance(value, dict):
        for names in itertools.permutations(value):
            for members in itertools.product(*(list(orders(value[name])) for name in names)):
                yield dict(zip(names, members, strict=True))
    elif isinstance(value, list):
        yield from map(list, itertools.product(*map(list, map(orders, value))))
    else:
        yield value


SCALARS = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2.5,
    7,
    100,
    "",
    "a",
    "ab",
    "zz",
    "2024-02-29",
    "\u00e9\U0001f600",
    '"\\/',
]


def mutations(value: Any, rng: random.Random) -> Iterator[Any]:
    """Values that differ from ``value`` in one place."""
    yield from _local(value, rng)
    if isinstance(value, dict):
        for key in value:
            yield {k: v for k, v in value.items() if k != key}
            for other in mutations(value[key], rng):
                yield {**value, key: other}
            yield {(k + rng.choice("ax_0") if k == key else k): v for k, v in value.items()}
        yield {**value, rng.choice(["a", "b", "zz", "", "x_1", "id"]): rng.choice(SCALARS)}
    elif isinstance(value, list):
        for i in range(len(value)):
            yield value[:i] + value[i + 1 :]
            yield value[: i + 1] + value[i:]
            for other in mutations(value[i], rng):
                yield [*value[:i], other, *value[i + 1 :]]
        yield [*value, rng.choice(SCALARS)]


def _local(value: Any, rng: random.Random) -> Iterator[Any]:
    yield rng.choice(SCALARS)
    yield rng.choice([[], {}, [value], {"a": value}])
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        yield from (value + 1, value - 1, -value, value * 10, value + 0.5, str(value))
    elif isinstance(value, str):
        at = rng.randint(0, len(value))
        yield value + rng.choice("a0 é")
        yield value[:at] + rng.choice('aZ9_-. /:@é\n"') + value[at:]
        yield value[:at] + value[at + 1 :]
        yield value * 2
