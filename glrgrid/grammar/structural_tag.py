"""Structural tags, as XGrammar and vLLM spell them, to :class:`~glrgrid.grammar.ir.GrammarIR`.

A structural tag is JSON: ``{"type": "structural_tag", "format": {...}}``, the older ``{"structures": [...], "triggers":
[...]}``, or a format alone. A format becomes an expression over rules, for :mod:`glrgrid.grammar.scannerless`; schemas
and Lark grammars in it keep their lexers and become parts of the whole.

Free text ends where something else begins, so formats are translated together with what follows them: text up to
an end tag is one regular expression, ``no trigger and no end in it, then the end``. Text up to a trigger ends with
the first occurrence of any trigger. Where formats speak of tokens, those are symbols of their own; free tokens are
never ones that end the output.

Begins, ends and triggers are often the text of a *marker*, a token that free text does not match. The token is then
another way of writing them. Where a trigger is only the first part of a marker, as ``<tool`` of ``<tool_call>``, the
token is the trigger and what follows it in the begin of its tag.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

from ..errors import GrammarError, SchemaError
from . import gbnf, lark, regex, tokens
from .ir import Expr, GrammarIR, Position
from .regular import EMPTY, NOTHING, alt, cat, has_reference, repeat
from .scannerless import build

__all__ = ["FORMATS", "read"]

_ANY: Expr = ("repeat", regex.from_class((), negated=True), 0, None)
_MAX_NESTING = 50
_UNLIMITED = (
    "any_text",
    "triggered_tags",
    "dispatch",
    "any_tokens",
    "token_triggered_tags",
    "token_dispatch",
)
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
    "token": ("token", ""),
    "exclude_token": ("", "exclude_tokens"),
    "any_tokens": ("", "exclude_tokens max_tokens"),
    "token_triggered_tags": ("trigger_tokens tags", "exclude_tokens at_least_one stop_after_first"),
    "token_dispatch": ("rules", "loop exclude_tokens"),
}
"""For each format the keys that it needs, and those that it may have."""

FORMATS = tuple(_KEYS)
"""The types of formats; none is a type of JSON Schema."""


Token = int | str
"""An id, or the name of a token."""


class _Ends(NamedTuple):
    """What ends the tag around, and so cannot be part of free text or free tokens directly inside."""

    texts: tuple[str, ...] = ()
    tokens: tuple[Token, ...] = ()


def read(tag: Any, read_schema: Callable[[Any], GrammarIR], markers: Collection[str] = ()) -> GrammarIR:
    """Read a structural tag.

    Parameters
    ----------
    tag : str or dict
        JSON, or what it means.
    read_schema : callable
        Makes the grammar of a JSON Schema.
    markers : collection of str
        Names of tokens that texts of the tag mean as well.

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
    reader = _Reader(read_schema, markers)
    body = reader.then(tag, place, _Ends(), EMPTY)
    return build({**reader.rules, "text": (body, _BEGIN)}, "text", reader.parts, reader.tokens)


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
    raise GrammarError(f"structural tag, at {place or 'the root'}: {message}")


@contextmanager
def _inside_of(place: str) -> Iterator[None]:
    """Give errors of what stands in a tag the place in the tag."""
    try:
        yield
    except GrammarError as error:
        raise GrammarError(f"structural tag, at {place}: {error}") from None
    except SchemaError as error:
        raise SchemaError(f"structural tag: {error.reason}", place + error.pointer) from None


def _free(stops: Iterable[str]) -> Expr:
    """Text in which none of ``stops`` occurs."""
    texts = alt(("lit", stop) for stop in stops)
    return _ANY if texts == NOTHING else ("and", (_ANY, ("not", cat((_ANY, texts, _ANY)))))


def _free_with(end: str, stops: Iterable[str]) -> Expr:
    """The same, with ``end`` at its end."""
    text = _free(stops)
    return ("and", (text, cat((_ANY, ("lit", end))))) if end else text


def _up_to(stop: str, stops: Iterable[str]) -> Expr:
    """Text that ends with ``stop``, the first occurrence of any of ``stops``."""
    before = cat((_ANY, alt(("lit", s) for s in stops), _ANY[1], _ANY))
    return ("and", (cat((_ANY, ("lit", stop))), ("not", before)))


def _before(text: Expr, tail: Expr) -> Expr:
    """Free text and what follows. With texts that may follow it is one regular expression, with others it is not."""
    first, *rest = tail[1] if tail[0] == "cat" else (tail,)
    if first[0] != "alt" or not has_reference(first):
        return cat((text, tail))
    plain = alt(item for item in first[1] if not has_reference(item))
    others = (item for item in first[1] if has_reference(item))
    return alt(cat((text, item, *rest)) for item in (plain, *others))


class _Item(NamedTuple):
    """What is entered from free text: the trigger and what follows that."""

    trigger: str
    rest: Expr
    before: str = ""
    """Where a marker is in the way of the trigger: the text before the marker, ..."""
    marked: Expr = NOTHING
    """... and the marker with what follows it."""


class _Reader:
    def __init__(self, read_schema: Callable[[Any], GrammarIR], markers: Collection[str] = ()) -> None:
        self._markers = markers
        self.rules: dict[str, tuple[Expr, Position]] = {}
        self.parts: dict[str, GrammarIR] = {}
        self.tokens: dict[str, tuple[Expr, Position]] = {}
        self._read_schema = read_schema

    def then(self, value: Any, place: str, ends: _Ends, tail: Expr) -> Expr:
        """A format and what follows it."""
        kind = self._check(value, place)
        if kind == "any_text":
            return _before(self._any_text(value, place, ends), tail)
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
                self._item(rule[0], rule[0], self.then(rule[1], f"{place}/rules/{index}/1", _Ends(), EMPTY))
                for index, rule in enumerate(rules)
            ]
            excludes = (*self._texts(value, "excludes", place), *ends.texts)
            return self._dispatch(items, place, excludes, self._flag(value, "loop", place, True), tail)
        if kind == "token_triggered_tags":
            return self._token_triggered(value, place, ends, tail)
        if kind == "token_dispatch":
            return self._token_rules(value, place, ends, tail)
        return cat((self._plain(kind, value, place, ends), tail))

    def _plain(self, kind: str, value: dict[str, Any], place: str, ends: _Ends) -> Expr:
        """Formats that have no free text of their own."""
        if kind == "token":
            return self._token(value["token"], f"{place}/token")
        if kind == "exclude_token":
            return self._other_token(self._token_list(value, "exclude_tokens", place))
        if kind == "any_tokens":
            longest = self._count(value, "max_tokens", place, "tokens")
            return repeat(
                self._other_token((*self._token_list(value, "exclude_tokens", place), *ends.tokens)),
                0,
                longest,
            )
        if kind == "const_string":
            return self._literal(self._text(value, "value", place))
        if kind == "regex":
            if value.get("excludes"):
                _fail('"excludes" of a regular expression is not supported', f"{place}/excludes")
            pattern = self._text(value, "pattern", place)
            with _inside_of(f"{place}/pattern"):
                return regex.from_pattern(pattern, whole=True)
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

    def _any_text(self, value: dict[str, Any], place: str, ends: _Ends) -> Expr:
        if value.get("max_tokens") is not None:
            _fail(
                '"max_tokens" of a text is not supported: its tokens are not counted', f"{place}/max_tokens"
            )
        text = _free((*self._texts(value, "excludes", place), *ends.texts))
        longest = self._count(value, "max_chars", place, "characters")
        if longest is None:
            return text
        bounded = repeat(_ANY[1], 0, longest)
        return bounded if text == _ANY else ("and", (text, bounded))

    def _tag(self, value: Any, place: str) -> Expr:
        """A tag."""
        if self._check(value, place) != "tag":
            _fail('expected a format of type "tag"', place)
        if isinstance(value["begin"], dict):
            return cat(
                (self._token(self._begin_token(value, place), f"{place}/begin"), self._inside(value, place))
            )
        return cat((self._literal(self._text(value, "begin", place)), self._inside(value, place)))

    def _tags(self, value: dict[str, Any], place: str) -> list[Any]:
        """Tags, which in a list of tags need not say that they are."""
        tags = self._list(value, "tags", place)
        return [{"type": "tag", **tag} if isinstance(tag, dict) else tag for tag in tags]

    def _begin_token(self, value: dict[str, Any], place: str) -> Any:
        if self._check(value["begin"], f"{place}/begin") != "token":
            _fail("expected a text or a token", f"{place}/begin")
        return value["begin"]["token"]

    def _inside(self, value: dict[str, Any], place: str) -> Expr:
        """What follows the begin of a tag."""
        end = value["end"]
        if isinstance(end, dict):
            if self._check(end, f"{place}/end") != "token":
                _fail("expected a text, a list of texts or a token", f"{place}/end")
            after = self._token(end["token"], f"{place}/end/token")
            return self.then(value["content"], f"{place}/content", _Ends((), (end["token"],)), after)
        texts = tuple(end) if isinstance(end, list) else (end,)
        if not texts or not all(isinstance(text, str) for text in texts):
            _fail("expected a text, a list of texts or a token", f"{place}/end")
        after = alt(map(self._literal, texts))
        ends = _Ends(tuple(filter(None, texts)), tuple(text for text in texts if text in self._markers))
        return self.then(value["content"], f"{place}/content", ends, after)

    def _triggered(self, value: dict[str, Any], place: str, ends: _Ends, tail: Expr) -> Expr:
        triggers = self._texts(value, "triggers", place)
        tags = self._tags(value, place)
        if not triggers or not all(triggers):
            _fail("expected at least one trigger, and none of them empty", f"{place}/triggers")
        items: list[_Item] = []
        whole = []
        for index, tag in enumerate(tags):
            at = f"{place}/tags/{index}"
            whole.append(self._tag(tag, at))
            begin = self._text(tag, "begin", at)
            found = [trigger for trigger in triggers if begin.startswith(trigger)]
            if len(found) != 1:
                _fail(f"begin must start with exactly one trigger, not {len(found)}", f"{at}/begin")
            items.append(self._item(found[0], begin, self._inside(tag, at)))
        used = {item.trigger for item in items}
        items += [_Item(trigger, NOTHING) for trigger in triggers if trigger not in used]
        once = self._flag(value, "stop_after_first", place, False)
        excludes = (*self._texts(value, "excludes", place), *ends.texts)
        if not self._flag(value, "at_least_one", place, False):
            return self._dispatch(items, place, excludes, not once, tail)
        rest = tail if once else self._dispatch(items, place, excludes, True, tail)
        return cat((alt(whole), rest))

    def _item(self, trigger: str, begin: str, inside: Expr) -> _Item:
        """How to get from free text into a tag."""
        before, *marked = tokens.parts_of(begin, self._markers)
        if not marked or len(before) >= len(trigger):
            return _Item(trigger, cat((self._literal(begin[len(trigger) :]), inside)))
        self._literal(begin)
        parts = cat(("lit" if at % 2 else "ref", part) for at, part in enumerate(marked))
        return _Item(trigger, cat((("lit", begin[len(trigger) :]), inside)), before, cat((parts, inside)))

    def _literal(self, text: str) -> Expr:
        """A text, or the same with the tokens of markers in it."""
        for marker in tokens.parts_of(text, self._markers)[1::2]:
            self.tokens[marker] = (tokens.token(marker), _BEGIN)
        return tokens.spelled(text, self._markers)

    def _dispatch(
        self, items: Sequence[_Item], place: str, excludes: Iterable[str], loop: bool, tail: Expr
    ) -> Expr:
        """Free text, up to a trigger and what must follow that; then ``tail``, or the same again."""
        stops = [*(item.trigger for item in items), *excludes]
        name = f"free text at {place or 'the root'}"
        again: Expr = ("ref", name) if loop else tail
        following: dict[str, list[Expr]] = {item.trigger: [] for item in items}
        marked: dict[str, list[Expr]] = {item.before: [] for item in items if item.marked != NOTHING}
        for item in items:
            following[item.trigger].append(item.rest)
            if item.marked != NOTHING:
                marked[item.before].append(item.marked)
        choices = [cat((_up_to(trigger, stops), alt(rests), again)) for trigger, rests in following.items()]
        choices += [cat((_free_with(end, stops), alt(rests), again)) for end, rests in marked.items()]
        body = alt((*choices, _before(_free(stops), tail)))
        if not loop:
            return body
        self.rules[name] = (body, _BEGIN)
        return ("ref", name)

    def _token_triggered(self, value: dict[str, Any], place: str, ends: _Ends, tail: Expr) -> Expr:
        triggers = self._token_list(value, "trigger_tokens", place)
        if not triggers:
            _fail("expected at least one token", f"{place}/trigger_tokens")
        items: list[tuple[Token, Expr]] = []
        for index, tag in enumerate(self._tags(value, place)):
            at = f"{place}/tags/{index}"
            if self._check(tag, at) != "tag" or not isinstance(tag["begin"], dict):
                _fail("expected a tag that begins with a token", at)
            begin = self._begin_token(tag, at)
            # Whether a name and an id are the same is only known with a vocabulary.
            if begin not in triggers and all(type(trigger) is type(begin) for trigger in triggers):
                _fail(f"{json.dumps(begin)} is not one of the trigger tokens", f"{at}/begin")
            items.append((begin, self._inside(tag, at)))
        once = self._flag(value, "stop_after_first", place, False)
        begins = (token for token, _ in items)
        excludes = (*triggers, *begins, *self._token_list(value, "exclude_tokens", place), *ends.tokens)
        if not self._flag(value, "at_least_one", place, False):
            return self._token_dispatch(items, place, excludes, not once, tail)
        whole = alt(cat((self._token(begin, place), rest)) for begin, rest in items)
        return cat((whole, tail if once else self._token_dispatch(items, place, excludes, True, tail)))

    def _token_rules(self, value: dict[str, Any], place: str, ends: _Ends, tail: Expr) -> Expr:
        rules = self._list(value, "rules", place)
        if not all(isinstance(rule, list) and len(rule) == 2 for rule in rules):
            _fail("expected pairs of a token and a format", f"{place}/rules")
        items: list[tuple[Token, Expr]] = [
            (
                self._token_value(rule[0], f"{place}/rules/{index}/0"),
                self.then(rule[1], f"{place}/rules/{index}/1", _Ends(), EMPTY),
            )
            for index, rule in enumerate(rules)
        ]
        excludes = (
            *(token for token, _ in items),
            *self._token_list(value, "exclude_tokens", place),
            *ends.tokens,
        )
        return self._token_dispatch(items, place, excludes, self._flag(value, "loop", place, True), tail)

    def _token_dispatch(
        self,
        items: Sequence[tuple[Token, Expr]],
        place: str,
        excludes: Sequence[Token],
        loop: bool,
        tail: Expr,
    ) -> Expr:
        """Free tokens, up to one of some and what must follow that; then ``tail``, or the same again."""
        name = f"free tokens at {place or 'the root'}"
        again: Expr = ("ref", name) if loop else tail
        choices = [cat((self._token(token, place), rest, again)) for token, rest in items]
        body = cat((repeat(self._other_token(excludes), 0, None), alt((*choices, tail))))
        if not loop:
            return body
        self.rules[name] = (body, _BEGIN)
        return ("ref", name)

    def _token(self, token: Any, place: str) -> Expr:
        token = self._token_value(token, place)
        return self._tokens(token if isinstance(token, str) else f"<[{token}]>", False, (token,))

    def _other_token(self, excludes: Sequence[Token]) -> Expr:
        """Any token but some, and but those that end the output."""
        shown = ", ".join(
            token if isinstance(token, str) else f"<[{token}]>" for token in dict.fromkeys(excludes)
        )
        return self._tokens(
            f"any token but {shown}" if shown else "any token", True, (*excludes, tokens.END_IDS)
        )

    def _tokens(self, name: str, negated: bool, listed: Sequence[Token]) -> Expr:
        ranges = tuple((token, token) for token in dict.fromkeys(listed) if isinstance(token, int))
        names = tuple(token for token in dict.fromkeys(listed) if isinstance(token, str))
        self.tokens[name] = (("tokens", negated, ranges, names), _BEGIN)
        return ("ref", name)

    def _separated(self, value: dict[str, Any], place: str) -> Expr:
        tags = enumerate(self._tags(value, place))
        one = alt(self._tag(tag, f"{place}/tags/{index}") for index, tag in tags)
        if not self._flag(value, "stop_after_first", place, False):
            one = cat(
                (one, repeat(cat((self._literal(self._text(value, "separator", place)), one)), 0, None))
            )
        return one if self._flag(value, "at_least_one", place, False) else repeat(one, 0, 1)

    def _grammar(self, value: dict[str, Any], place: str) -> Expr:
        text, syntax = self._text(value, "grammar", place), value.get("syntax", "ebnf")
        if syntax == "ebnf":
            name = f"grammar at {place}"
            with _inside_of(f"{place}/grammar"):
                rules, named = gbnf.rules(text, markers=self._markers)
            self.tokens |= named
            for rule, (body, position) in rules.items():
                self.rules[f"{rule} of {name}"] = (_renamed(body, name, named), position)
            return ("ref", f"root of {name}")
        if syntax != "lark":
            _fail(f'unknown syntax {json.dumps(syntax)}; there are "ebnf" and "lark"', f"{place}/syntax")
        with _inside_of(f"{place}/grammar"):
            return self._part(lark.read(text, read_schema=self._read_schema, markers=self._markers))

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
        schema = value["json_schema"]
        if not isinstance(schema, (dict, bool, str)):
            _fail(f"expected a JSON Schema, found {json.dumps(schema)[:60]}", f"{place}/json_schema")
        with _inside_of(f"{place}/json_schema"):
            return self._part(self._read_schema(schema))

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
        if kind not in _KEYS:
            _fail(f'unknown format "{kind}"; there are {", ".join(_KEYS)}', place)
        needed, possible = (set(keys.split()) for keys in _KEYS[kind])
        for key in sorted(needed - value.keys()):
            _fail(f'format "{kind}" lacks "{key}"', place)
        for key in sorted(value.keys() - needed - possible - {"type"}):
            _fail(f'format "{kind}" has no "{key}"', f"{place}/{key}")
        return kind

    def _count(self, value: dict[str, Any], key: str, place: str, of: str) -> int | None:
        count = value.get(key)
        if count is None:
            return None
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= gbnf.MAX_COUNT:
            _fail(f"expected a number of {of}, at most {gbnf.MAX_COUNT:,}", f"{place}/{key}")
        return count

    def _token_value(self, token: Any, place: str) -> Token:
        if (isinstance(token, str) and token) or (type(token) is int and 0 <= token < 1 << 32):
            return token
        _fail(f"expected an id or the name of a token, found {json.dumps(token)[:60]}", place)

    def _token_list(self, value: dict[str, Any], key: str, place: str) -> tuple[Token, ...]:
        listed = value.get(key, [])
        if not isinstance(listed, list):
            _fail("expected a list of tokens", f"{place}/{key}")
        return tuple(self._token_value(token, f"{place}/{key}/{index}") for index, token in enumerate(listed))

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


def _renamed(expr: Expr, name: str, named: Container[str]) -> Expr:
    """With the rules that it refers to named after the grammar they are part of."""
    tag, *args = expr
    if tag == "ref":
        return expr if args[0] in named else ("ref", f"{args[0]} of {name}")
    if tag in ("cat", "alt") and has_reference(expr):
        return (tag, tuple(_renamed(item, name, named) for item in args[0]))
    return ("repeat", _renamed(args[0], name, named), *args[1:]) if tag == "repeat" else expr
