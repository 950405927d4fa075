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

Run ``python bench/peer_grammar.py reserved`` to print the text.
"""

from __future__ import annotations

import argparse
import re

from glrgrid import grammars

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
