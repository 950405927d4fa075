"""Structural tags, as XGrammar and vLLM spell them, to :class:`~glrgrid.grammar.ir.GrammarIR`.

A structural tag is JSON: ``{"type": "structural_tag", "format": {...}}``, the older ``{"structures": [...], "triggers":
[...]}``, or a format alone. A format becomes an expression over rules, for :mod:`glrgrid.grammar.scannerless`; schemas
and Lark grammars in it keep their lexers and become parts of the whole.

Free text ends where something else begins, so formats are translated together with what follows them: text up to
an end tag is one regular expression, ``no trigger and no end in it, then the end``. Text up to a trigger ends with
the first occurrence of any trigger.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from ..errors import GrammarError
from . import gbnf, lark, regex
from .ir import Expr, GrammarIR, Position
from .regular import EMPTY, NOTHING, alt, cat, has_reference, repeat
from .scannerless import build

__all__ = ["read"]

_ANY: Expr = ("repeat", regex.from_class((), negated=True), 0, None)
_MAX_NESTING = 50
_TOKENS = ("token", "exclude_token", "any_tokens", "token_triggered_tags", "token_dispatch")
_UNLIMITED = ("any_text", "triggered_tags", "dispatch")
_BEGIN: Position = (1, 1)

_KEYS: dict[str, tuple[str, str]] = {
    "const_string": ("value", ""),
    "json_schema": ("json_schema", "style any_order max_whitespace_cnt excludes"),
    "any_text": ("", "excludes max_chars max_tokens"),
    "grammar": ("grammar", "syntax"),
    "regex": ("pattern", "excludes"),
    "sequence": ("elements", ""),
    "or": ("elements", ""),
    "tag": ("begin content end", ""),
    "triggered_tags": ("triggers tags", "at_least_one stop_after_first excludes"),
    "tags_with_separator": ("tags separator", "at_least_one stop_after_first"),
    "optional": ("content", ""),
    "plus": ("content", ""),
    "star": ("content", ""),
    "repeat": ("min max content", ""),
    "dispatch": ("rules", "loop excludes"),
}
"""For each format the keys that it needs, and those that it may have."""


def read(tag: Any, read_schema: Callable[[Any], GrammarIR]) -> GrammarIR:
    """Read a structural tag.

    Parameters
    ----------
    tag : str or dict
        JSON, or what it means.
    read_schema : callable
        Makes the grammar of a JSON Schema.

    Returns
    -------
    GrammarIR

    Raises
    ------
    GrammarError
        It is malformed or uses something unsupported; the message has the place as a JSON Pointer.
    """
    if isinstance(tag, str):
        try:
            tag = json.loads(tag)
        except (json.JSONDecodeError, RecursionError) as error:
            raise GrammarError(f"a structural tag is JSON; this is not: {error}") from None
    place = ""
    if isinstance(tag, dict) and "structures" in tag:
        tag = _from_structures(tag)
    elif isinstance(tag, dict) and tag.get("type") == "structural_tag":
        place, tag = "/format", tag.get("format")
    reader = _Reader(read_schema)
    body = reader.then(tag, place, (), EMPTY)
    return build({**reader.rules, "text": (body, _BEGIN)}, "text", reader.parts)


def _from_structures(tag: dict[str, Any]) -> dict[str, Any]:
    """The older form: begin, schema and end of each tag, and the triggers."""
    structures = tag["structures"]
    if not isinstance(structures, list) or not all(
        isinstance(s, dict) and {"begin", "schema", "end"} <= s.keys() for s in structures
    ):
        _fail("expected a list of objects with begin, schema and end", "/structures")
    tags = [
        {
            "type": "tag",
            "begin": s["begin"],
            "content": {"type": "json_schema", "json_schema": s["schema"]},
            "end": s["end"],
        }
        for s in structures
    ]
    return {"type": "triggered_tags", "triggers": tag.get("triggers", []), "tags": tags}


def _fail(message: str, place: str) -> NoReturn:
    raise GrammarError(f"structural tag, at {place or '/'}: {message}")


def _free(stops: Iterable[str]) -> Expr:
    """Text in which none of ``stops`` occurs."""
    texts = alt(("lit", stop) for stop in stops)
    return _ANY if texts == NOTHING else ("and", (_ANY, ("not", cat((_ANY, texts, _ANY)))))


def _up_to(stop: str, stops: Iterable[str]) -> Expr:
    """Text that ends with ``stop``, the first occurrence of any of ``stops``."""
    before = cat((_ANY, alt(("lit", s) for s in stops), _ANY[1], _ANY))
    return ("and", (cat((_ANY, ("lit", stop))), ("not", before)))


class _Reader:
    def __init__(self, read_schema: Callable[[Any], GrammarIR]) -> None:
        self.rules: dict[str, tuple[Expr, Position]] = {}
        self.parts: dict[str, GrammarIR] = {}
        self._read_schema = read_schema

    def then(self, value: Any, place: str, ends: tuple[str, ...], tail: Expr) -> Expr:
        """A format and what follows it; ``ends`` are the end tags that free text directly inside cannot contain."""
        kind = self._check(value, place)
        if kind == "any_text":
            return cat((self._any_text(value, place, ends), tail))
        if kind == "sequence":
            for index, element in reversed(list(enumerate(self._list(value, "elements", place)))):
                tail = self.then(element, f"{place}/elements/{index}", ends, tail)
            return tail
        if kind == "or":
            elements = list(enumerate(self._list(value, "elements", place)))
            if any(_is_unlimited(element) for _, element in elements):
                return alt(self.then(e, f"{place}/elements/{i}", ends, tail) for i, e in elements)
            return cat((alt(self.then(e, f"{place}/elements/{i}", ends, EMPTY) for i, e in elements), tail))
        if kind == "tag":
            return cat((self._tag(value, place), tail))
        if kind == "triggered_tags":
            return self._triggered(value, place, ends, tail)
        if kind == "dispatch":
            rules = self._list(value, "rules", place)
            if not all(isinstance(r, list) and len(r) == 2 and isinstance(r[0], str) for r in rules):
                _fail("expected pairs of a text and a format", f"{place}/rules")
            items = [
                (rule[0], self.then(rule[1], f"{place}/rules/{index}/1", (), EMPTY))
                for index, rule in enumerate(rules)
            ]
            loop = self._flag(value, "loop", place, True)
            return self._dispatch(items, place, (*self._texts(value, "excludes", place), *ends), loop, tail)
        return cat((self._plain(kind, value, place, ends), tail))

    def _plain(self, kind: str, value: dict[str, Any], place: str, ends: tuple[str, ...]) -> Expr:
        """Formats that have no free text of their own."""
        if kind == "const_string":
            return ("lit", self._text(value, "value", place))
        if kind == "regex":
            if value.get("excludes"):
                _fail('"excludes" of a regular expression is not supported', f"{place}/excludes")
            return regex.from_pattern(self._text(value, "pattern", place), whole=True)
        if kind == "grammar":
            return self._grammar(value, place)
        if kind == "json_schema":
            return self._schema(value, place)
        if kind == "tags_with_separator":
            return self._separated(value, place)
        counts: dict[str, tuple[int, int | None]] = {"optional": (0, 1), "plus": (1, None), "star": (0, None)}
        low, high = counts.get(kind) or self._counts(value, place)
        return repeat(self.then(value["content"], f"{place}/content", ends, EMPTY), low, high)

    # Formats

    def _any_text(self, value: dict[str, Any], place: str, ends: tuple[str, ...]) -> Expr:
        if value.get("max_tokens") is not None:
            _fail('"max_tokens" is not supported: a grammar does not count tokens', f"{place}/max_tokens")
        text = _free((*self._texts(value, "excludes", place), *ends))
        longest = value.get("max_chars")
        if longest is None:
            return text
        if not isinstance(longest, int) or isinstance(longest, bool) or longest < 0:
            _fail("expected a number of characters", f"{place}/max_chars")
        bounded = repeat(_ANY[1], 0, longest)
        return bounded if text == _ANY else ("and", (text, bounded))

    def _tag(self, value: Any, place: str, without: int = 0) -> Expr:
        """A tag; its first ``without`` characters have been read."""
        if self._check(value, place) != "tag":
            _fail('expected a format of type "tag"', place)
        begin = self._text(value, "begin", place)
        end = value["end"]
        ends = tuple(end) if isinstance(end, list) else (end,)
        if not ends or not all(isinstance(text, str) for text in ends):
            _fail("expected a text or a list of texts; end tokens are not supported", f"{place}/end")
        stops = tuple(text for text in ends if text)
        after = alt(("lit", text) for text in ends)
        return cat((("lit", begin[without:]), self.then(value["content"], f"{place}/content", stops, after)))

    def _triggered(self, value: dict[str, Any], place: str, ends: tuple[str, ...], tail: Expr) -> Expr:
        triggers = self._texts(value, "triggers", place)
        tags = self._list(value, "tags", place)
        if not triggers or not all(triggers):
            _fail("expected at least one trigger, and none of them empty", f"{place}/triggers")
        items, whole = [], []
        for index, tag in enumerate(tags):
            at = f"{place}/tags/{index}"
            whole.append(self._tag(tag, at))
            found = [trigger for trigger in triggers if tag["begin"].startswith(trigger)]
            if len(found) != 1:
                _fail(f"begin must start with exactly one trigger, not {len(found)}", f"{at}/begin")
            items.append((found[0], self._tag(tag, at, len(found[0]))))
        items += [(trigger, NOTHING) for trigger in triggers if trigger not in dict(items)]
        once = self._flag(value, "stop_after_first", place, False)
        excludes = (*self._texts(value, "excludes", place), *ends)
        if not self._flag(value, "at_least_one", place, False):
            return self._dispatch(items, place, excludes, not once, tail)
        rest = tail if once else self._dispatch(items, place, excludes, True, tail)
        return cat((alt(whole), rest))

    def _dispatch(
        self, items: Sequence[tuple[str, Expr]], place: str, excludes: Iterable[str], loop: bool, tail: Expr
    ) -> Expr:
        """Free text, up to a trigger and what must follow that; then ``tail``, or the same again."""
        stops = [*(trigger for trigger, _ in items), *excludes]
        name = f"free text at {place or '/'}"
        again: Expr = ("ref", name) if loop else tail
        following: dict[str, list[Expr]] = {trigger: [] for trigger, _ in items}
        for trigger, rest in items:
            following[trigger].append(rest)
        choices = [cat((_up_to(trigger, stops), alt(rests), again)) for trigger, rests in following.items()]
        body = alt((*choices, cat((_free(stops), tail))))
        if not loop:
            return body
        self.rules[name] = (body, _BEGIN)
        return ("ref", name)

    def _separated(self, value: dict[str, Any], place: str) -> Expr:
        tags = enumerate(self._list(value, "tags", place))
        one = alt(self._tag(tag, f"{place}/tags/{index}") for index, tag in tags)
        if not self._flag(value, "stop_after_first", place, False):
            one = cat((one, repeat(cat((("lit", self._text(value, "separator", place)), one)), 0, None)))
        return one if self._flag(value, "at_least_one", place, False) else repeat(one, 0, 1)

    def _grammar(self, value: dict[str, Any], place: str) -> Expr:
        text, syntax = self._text(value, "grammar", place), value.get("syntax", "ebnf")
        if syntax == "ebnf":
            name = f"grammar at {place}"
            for rule, (body, position) in gbnf.rules(text).items():
                self.rules[f"{rule} of {name}"] = (_renamed(body, name), position)
            return ("ref", f"root of {name}")
        if syntax != "lark":
            _fail(f'unknown syntax {json.dumps(syntax)}; there are "ebnf" and "lark"', f"{place}/syntax")
        return self._part(lark.read(text, read_schema=self._read_schema))

    def _schema(self, value: dict[str, Any], place: str) -> Expr:
        for key, plain in (
            ("style", "json"),
            ("any_order", False),
            ("max_whitespace_cnt", None),
            ("excludes", []),
        ):
            if value.get(key, plain) != plain:
                found = f"{key} = {json.dumps(value[key])}"
                _fail(f"{found} is not supported, only {json.dumps(plain)}", f"{place}/{key}")
        return self._part(self._read_schema(value["json_schema"]))

    def _part(self, ir: GrammarIR) -> Expr:
        for name, known in self.parts.items():
            if known == ir:
                return ("ref", name)
        name = f"part {len(self.parts) + 1}"
        self.parts[name] = ir
        return ("ref", name)

    def _counts(self, value: dict[str, Any], place: str) -> tuple[int, int | None]:
        low, high = value["min"], value["max"]
        if not all(isinstance(n, int) and not isinstance(n, bool) for n in (low, high)):
            _fail("min and max must be whole numbers", place)
        if low < 0 or (high != -1 and high < low) or max(low, high) > gbnf.MAX_COUNT:
            _fail(f"bad repetition {low} to {high}; expected 0 <= min <= max, or max = -1", place)
        return low, None if high == -1 else high

    # Values

    def _check(self, value: Any, place: str) -> str:
        """The type of a format, whose keys are those it may have."""
        if place.count("/") > 2 * _MAX_NESTING:
            _fail(f"formats are nested deeper than {_MAX_NESTING}", place)
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            _fail('expected a format: an object with a "type"', place)
        kind: str = value["type"]
        if kind in _TOKENS:
            _fail(f'format "{kind}" is not supported: it names tokens; write their text', place)
        if kind not in _KEYS:
            _fail(f'unknown format "{kind}"; there are {", ".join(_KEYS)}', place)
        needed, possible = (set(keys.split()) for keys in _KEYS[kind])
        for key in sorted(needed - value.keys()):
            _fail(f'format "{kind}" lacks "{key}"', place)
        for key in sorted(value.keys() - needed - possible - {"type"}):
            _fail(f'format "{kind}" has no "{key}"', f"{place}/{key}")
        return kind

    def _text(self, value: dict[str, Any], key: str, place: str) -> str:
        text = value[key]
        if not isinstance(text, str) or any("\ud800" <= c <= "\udfff" for c in text):
            _fail(f"expected a text, found {json.dumps(text)[:60]}", f"{place}/{key}")
        return text

    def _texts(self, value: dict[str, Any], key: str, place: str) -> list[str]:
        texts = value.get(key, [])
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            _fail("expected a list of texts", f"{place}/{key}")
        if "" in texts:
            _fail("an empty text occurs everywhere", f"{place}/{key}")
        return texts

    def _list(self, value: dict[str, Any], key: str, place: str) -> list[Any]:
        items = value[key]
        if not isinstance(items, list) or not items:
            _fail("expected a list that is not empty", f"{place}/{key}")
        return items

    def _flag(self, value: dict[str, Any], key: str, place: str, default: bool) -> bool:
        flag = value.get(key, default)
        if not isinstance(flag, bool):
            _fail("expected true or false", f"{place}/{key}")
        return flag


def _is_unlimited(value: Any) -> bool:
    """Whether a format may end in free text, so that it has to know what follows."""
    if not isinstance(value, dict):
        return False
    if value.get("type") == "sequence" and isinstance(value.get("elements"), list):
        return any(map(_is_unlimited, value["elements"][-1:]))
    if value.get("type") == "or" and isinstance(value.get("elements"), list):
        return any(map(_is_unlimited, value["elements"]))
    return value.get("type") in _UNLIMITED


def _renamed(expr: Expr, name: str) -> Expr:
    """With the rules that it refers to named after the grammar they are part of."""
    tag, *args = expr
    if tag == "ref":
        return ("ref", f"{args[0]} of {name}")
    if tag in ("cat", "alt") and has_reference(expr):
        return (tag, tuple(_renamed(item, name) for item in args[0]))
    return ("repeat", _renamed(args[0], name), *args[1:]) if tag == "repeat" else expr
