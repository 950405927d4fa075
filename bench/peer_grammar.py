"""Write a bundled grammar in the Lark dialect of a peer.

glrgrid's bundled grammars rely on two things that peers lack: reserved words (a word that any terminal spells
out is never an identifier) and the longest match over all terminals. This script rewrites the text so that a
peer reads a language that contains ours and differs as little as its dialect permits. :data:`PROBES` shows by
example where it is larger; how much larger it is depends on how the peer cuts text into terminals, and is
said with its adapter in ``engines.py``.

Two flavours, because no single one is a peer's best in everything:

``reserved``
    Identifiers exclude the reserved words, by an exact pattern. The closest language; for GLRMask the fastest
    masks.
``loose``
    Identifiers are the plain pattern, so every word may be one. For GLRMask the quickest to compile and the
    smallest artifact.

Both flavours also
    - drop the ``%glrgrid`` directive, which names the lexer mode;
    - drop the rule ``unreserved`` and its uses: identifiers include those words again, so it would only add
      ambiguity;
    - join all ``%ignore`` terminals into one. The language is the same; GLRMask compiles three times faster
      for it, to a third of the size.

Grammars that come as IR, such as those of SQL under a role, are written by :func:`of_ir`.

Run ``python bench/peer_grammar.py reserved`` to print the text.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict

from glrgrid import grammars
from glrgrid.grammar.ir import Expr, GrammarIR, Terminal

FLAVOURS = ("reserved", "loose")

PROBES = (
    "select a from t",
    "selecta from t",
    "select a from t order bya",
    "select select",
    "select from from t",
    "select a where",
    "select a and from t",
)
"""Texts that show the difference; the first is in every language."""

_WORD = re.compile(r'"([a-z]+)"i')
_IDENTIFIER_REST = r"A-Za-z0-9_$\u0080-\U0010ffff"


def derive(text: str, flavour: str) -> str:
    """The grammar for a peer.

    Parameters
    ----------
    text : str
        Lark text in the manner of ``sql_core``: rules ``name`` and ``unreserved``, a terminal ``NAME``,
        keywords as case-insensitive literals.
    flavour : str
        One of :data:`FLAVOURS`.
    """
    if flavour not in FLAVOURS:
        raise ValueError(f"unknown flavour {flavour!r}; expected one of {', '.join(FLAVOURS)}")
    unreserved = _rule(text, "unreserved")
    reserved = set(_WORD.findall(text)) - set(_WORD.findall(unreserved))
    text = re.sub(r"(?m)^%glrgrid.*\n", "", text)
    text = re.sub(r"\s*\|\s*unreserved\b", "", text.replace(unreserved, ""))
    if flavour == "reserved":
        text = re.sub(r"(?m)^NAME:.*$", lambda _: f"NAME: /{name_pattern(reserved)}/", text)
    return _join_ignored(text)


def name_pattern(reserved: set[str]) -> str:
    """A regular expression for the identifiers that are none of some lower-case words, in any case.

    It follows the trie of the words: at each prefix an identifier ends, leaves the trie, or goes on to a
    longer prefix.
    """

    def after(prefix: str) -> str:
        letters = sorted(
            {word[len(prefix)] for word in reserved if word.startswith(prefix) and word != prefix}
        )
        ways = [f"[{_other_characters(letters, prefix == '')}][{_IDENTIFIER_REST}]*"]
        ways += [f"[{letter.upper()}{letter}]{after(prefix + letter)}" for letter in letters]
        may_end = prefix != "" and prefix not in reserved
        return f"({'|'.join(ways)})" + ("?" if may_end else "")

    return after("")


def _other_characters(letters: list[str], first: bool) -> str:
    """The inside of a class of identifier characters without some letters."""
    kept = [letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter not in letters]
    return "".join(kept).upper() + "".join(kept) + ("_" if first else "0-9_$") + r"\u0080-\U0010ffff"


def _rule(text: str, name: str) -> str:
    """The lines of a rule: its head and those that continue it."""
    found = re.search(rf"(?m)^{name}:.*\n(?:[ \t]+\S.*\n)*", text)
    if found is None:
        raise ValueError(f"the grammar has no rule {name!r}")
    return found.group()


def _join_ignored(text: str) -> str:
    patterns = re.findall(r"(?m)^%ignore /(.*)/$", text)
    text = re.sub(r"(?m)^%ignore .*\n?", "", text)
    return f"{text.rstrip()}\n\n%ignore /{'|'.join(patterns)}/\n"


def of_ir(ir: GrammarIR) -> str:
    """A grammar for llguidance.

    Patterns exclude the words of higher rank, by its ``&`` and ``~``, but for those that fall back to them. What cannot
    be said: the longest match over terminals that may not come here, hence reject terminals (an allowed name and a
    suffix are two lexemes); that a word with a fallback is a name only where the parser has no use for the word itself.
    """
    used = sorted({s for p in ir.productions for s in p.rhs if s >= 0})
    rules = defaultdict(list)
    for p in ir.productions:
        rules[p.lhs].append(" ".join(f"T{s}" if s >= 0 else f"r{~s}" for s in p.rhs) or '""')
    lines = ['%llguidance {"allow_initial_skip": true}', f"start: r{ir.start}"]
    lines += [f"r{lhs}: {' | '.join(alternatives)}" for lhs, alternatives in rules.items()]
    for index in used:
        above = [t for i, t in enumerate(ir.terminals) if _outranks(ir, i, index)]
        excluded = f" & ~/{'|'.join(_regex(t.expr) for t in above)}/" if above else ""
        lines.append(f"T{index}: /{_regex(ir.terminals[index].expr)}/{excluded}")
    lines += [f"%ignore /{_regex(t.expr)}/" for t in ir.terminals if t.ignored]
    return "\n".join(lines) + "\n"


def _outranks(ir: GrammarIR, index: int, other: int) -> bool:
    """Whether a terminal takes words from a pattern for words."""

    def rank(t: Terminal) -> tuple[int, bool]:
        return t.priority, t.literal

    t, pattern = ir.terminals[index], ir.terminals[other]
    return (
        not pattern.literal
        and not t.ignored
        and rank(t) > rank(pattern)
        and t.fallback != other
        and _is_of_words(t) == _is_of_words(pattern) is True
    )


def _is_of_words(terminal: Terminal) -> bool:
    return (
        terminal.priority < 1 and (not terminal.literal or terminal.name.isidentifier())
    ) or terminal.reject


def _regex(expr: Expr) -> str:
    """An expression as a regular expression of Rust's."""
    tag, value = expr[0], expr[1]
    if tag == "lit":
        return "".join(map(_character, map(ord, value)))
    if tag == "fold":
        return "".join(
            f"[{c.lower()}{c.upper()}]" if c.isascii() and c.isalpha() else _character(ord(c)) for c in value
        )
    if tag == "words":
        return _regex(("alt", tuple(("fold", a + text + b) for text in expr[2] for a, b in value)))
    if tag == "class":
        return f"[{''.join(f'{_character(low)}-{_character(high)}' for low, high in value)}]"
    if tag == "cat":
        return "".join(map(_regex, value))
    if tag == "alt":
        return f"({'|'.join(map(_regex, value))})"
    if tag == "repeat":
        return f"({_regex(value)}){{{expr[2]},{'' if expr[3] is None else expr[3]}}}"
    raise ValueError(f"no regular expression for {tag!r}")


def _character(code: int) -> str:
    c = chr(code)
    return c if c.isascii() and c.isalnum() else f"\\x{{{code:X}}}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Print a bundled grammar in the dialect of a peer.")
    parser.add_argument("flavour", choices=FLAVOURS)
    parser.add_argument(
        "--grammar", default="sql_core", help="name of the bundled grammar (default: %(default)s)"
    )
    options = parser.parse_args()
    text = derive(grammars.load(options.grammar), options.flavour)
    print(f"// {options.grammar} for a peer, {options.flavour}.\n\n{text}", end="")


if __name__ == "__main__":
    main()
