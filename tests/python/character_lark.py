"""GBNF as a Lark grammar of single characters, in which a longest match decides nothing: what llguidance can read."""

from __future__ import annotations

import re
from typing import Any

from glrgrid.grammar import gbnf


def character_lark(text: str, start: str = "root") -> str:
    """The same language with a terminal for each set of characters.

    (llguidance's own converter makes terminals as large as it can. Where one of them can take what should follow it, as
    white space at the end of a number, it accepts less.)
    """
    rules, tokens = gbnf.rules(text, start)
    assert not tokens
    names = {name: "r_" + re.sub("[^a-z0-9]", lambda found: f"_{ord(found[0]):x}_", name) for name in rules}
    names[start] = "start"
    terminals: dict[tuple[tuple[int, int], ...], str] = {}

    def terminal(ranges: Any) -> str:
        return terminals.setdefault(tuple(map(tuple, ranges)), f"C{len(terminals)}")

    def body(expr: Any) -> str:
        tag, *args = expr
        if tag == "lit":
            return " ".join(terminal([(ord(c), ord(c))]) for c in args[0]) or '""'
        if tag == "class":
            return terminal(args[0])
        if tag == "ref":
            return names[args[0]]
        if tag == "repeat":
            low, high = args[1:]
            return f"({body(args[0])}){{{low},{'' if high is None else high}}}"
        return f"({(' | ' if tag == 'alt' else ' ').join(map(body, args[0]))})"

    lines = [f"{names[name]}: {body(expr)}" for name, (expr, _) in rules.items()]
    for ranges, name in terminals.items():
        members = "".join(rf"\x{{{low:x}}}-\x{{{high:x}}}" for low, high in ranges)
        lines.append(f"{name}: /[{members}]/")
    return "\n".join(lines) + "\n"
