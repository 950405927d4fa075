"""Random grammars, vocabularies and texts for holding engines against the reference.

:func:`random_case` needs nothing but a ``random.Random``, so thousands of seeded cases cost little;
:func:`cases` is the same generator under Hypothesis, whose random source records its draws and can shrink
them.

Grammars are made of a *family* of terminals over a few bytes, chosen so that they overlap (keywords and
names, numbers that need backtracking, comments and division, strings, free text with code in it, repeats
longer than tokens, multi-byte characters), and of random or templated productions over a few of them; the
rest of the terminals stays unused and takes part in lexing only. Large grammars unite two families.
"""

from __future__ import annotations

import functools
import operator
import random
import string
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from glrgrid.grammar.ir import Expr, GrammarIR, Nonterminal, Production, Terminal
from glrgrid.reference.cfg import Cfg
from glrgrid.reference.oracle import Oracle, TooManyBranches
from glrgrid.reference.regex import Dfa, compile_expr

# Terminal expressions from pattern text.


def rx(pattern: str) -> Expr:
    """Translate a pattern to an IR expression.

    Known are ``. [a-z] [^a] ( ) | * + ? {m,n}``, ``&``, prefix ``~`` and ``\\`` escapes.

    ``&`` binds tighter than ``|``, ``~`` complements the rest of a sequence. ``.`` is any code point but the
    line feed.
    """
    parser = _PatternParser(pattern)
    expr = parser.alternatives()
    assert parser.at == len(pattern), pattern
    return expr


class _PatternParser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def take(self) -> str:
        self.at += 1
        return self.pattern[self.at - 1]

    def alternatives(self) -> Expr:
        parts = [self.intersections()]
        while self.peek() == "|":
            self.take()
            parts.append(self.intersections())
        return parts[0] if len(parts) == 1 else ("alt", tuple(parts))

    def intersections(self) -> Expr:
        parts = [self.sequence()]
        while self.peek() == "&":
            self.take()
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else ("and", tuple(parts))

    def sequence(self) -> Expr:
        parts = []
        while self.peek() not in ("", "|", "&", ")"):
            if self.peek() == "~":
                self.take()
                parts.append(("not", self.sequence()))
            else:
                parts.append(self.repeated())
        return parts[0] if len(parts) == 1 else ("cat", tuple(parts))

    def repeated(self) -> Expr:
        expr = self.atom()
        while self.peek() and self.peek() in "*+?{":
            match self.take():
                case "*":
                    bounds: tuple[int, int | None] = (0, None)
                case "+":
                    bounds = (1, None)
                case "?":
                    bounds = (0, 1)
                case _:
                    text = self.pattern[self.at : self.pattern.index("}", self.at)]
                    self.at += len(text) + 1
                    least, comma, most = text.partition(",")
                    bounds = (int(least), (int(most) if most else None) if comma else int(least))
            expr = ("repeat", expr, *bounds)
        return expr

    def character(self) -> str:
        char = self.take()
        return {"n": "\n", "t": "\t"}.get(self.peek(), self.peek()) + self.skip() if char == "\\" else char

    def skip(self) -> str:
        self.at += 1
        return ""

    def atom(self) -> Expr:
        match self.peek():
            case "(":
                self.take()
                expr = self.alternatives()
                assert self.take() == ")"
                return expr
            case ".":
                self.take()
                return ("class", ((0, 9), (11, 0x10FFFF)))
            case "[":
                self.take()
                return self.char_class()
            case _:
                return ("lit", self.character())

    def char_class(self) -> Expr:
        negated = self.peek() == "^"
        if negated:
            self.take()
        ranges = []
        while self.peek() != "]":
            lo = hi = self.character()
            if self.peek() == "-" and self.pattern[self.at + 1] != "]":
                self.take()
                hi = self.character()
            ranges.append((ord(lo), ord(hi)))
        self.take()
        if not negated:
            return ("class", tuple(ranges))
        kept = []
        at = 0
        for lo_code, hi_code in sorted(ranges):
            if at < lo_code:
                kept.append((at, lo_code - 1))
            at = max(at, hi_code + 1)
        return ("class", (*kept, (at, 0x10FFFF)))


def lit(text: str, **options: Any) -> Terminal:
    """Return a literal terminal."""
    return Terminal(name=text, expr=("lit", text), literal=True, **options)


def pat(pattern: str, name: str | None = None, **options: Any) -> Terminal:
    """Return a pattern terminal."""
    return Terminal(name=name or f"/{pattern}/", expr=rx(pattern), **options)


def grammar(
    rules: dict[str, str], terminals: dict[str, Terminal], lexer: str = "basic", start: str | None = None
) -> GrammarIR:
    """Build an IR from rules such as ``{"s": "A s | "}``; names that are no rule are terminals."""
    names = list(rules)
    index = {name: i for i, name in enumerate(terminals)}
    productions = []
    for lhs, text in rules.items():
        for alternative in text.split("|"):
            rhs = tuple(~names.index(s) if s in rules else index[s] for s in alternative.split())
            productions.append(Production(names.index(lhs), rhs, lhs))
    return GrammarIR(
        start=names.index(start) if start else 0,
        terminals=tuple(replace(t, name=name) for name, t in terminals.items()),
        nonterminals=tuple(Nonterminal(name) for name in names),
        productions=tuple(productions),
        lexer=lexer,
    )


# Families: terminals that may be used, terminals that may be ignored, the alphabet.

Pool = list[tuple[str, bool]]


@dataclass(frozen=True)
class Family:
    """Terminals over a small alphabet."""

    alphabet: str
    literals: tuple[str, ...]
    patterns: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    one_rank: bool = False
    """Literals and patterns always rank alike, as in JSON Schema's lowering."""

    def __or__(self, other: Family) -> Family:
        return Family(
            self.alphabet + "".join(c for c in other.alphabet if c not in self.alphabet),
            tuple(dict.fromkeys(self.literals + other.literals)),
            tuple(dict.fromkeys(self.patterns + other.patterns)),
            tuple(dict.fromkeys(self.ignored + other.ignored)),
        )


FAMILIES = {
    "ab": Family(
        "ab ",
        ("a", "b", "ab", "ba", "aab", "bab", "abab"),
        (
            "a+",
            "b+",
            "a+b",
            "ab*",
            "(ab)+",
            "a(b|ab)?",
            "ab?a",
            "b(aa)*",
            "a(ba)*b?",
            "[ab]+",
            "a{2,3}",
            "aab",
        ),
        (" +", " ", "b+ ", " a? "),
    ),
    "number": Family(
        "1e.- ",
        ("1", "e", ".", "..", "-", "--", "1e"),
        ("1+", "1+(e1+)?", "1+(\\.1+)?(e-?1+)?", "1+\\.1*", "e[e1]*", "[1e]+", "\\.1+", "-?1+", "1e-1"),
        (" +", "--[1e ]*\\.", " "),
    ),
    "comment": Family(
        "/*a \n",
        ("/", "*", "a", "**", "*/"),
        ("a+", "/a+", "//[a/*]*", "/\\*~((.|\n)*\\*/(.|\n)*)\\*/", "[a/]+", "a(/a)*"),
        ("//[^\n]*", "/\\*([^*]|\\*+[^*/])*\\*+/", "[ \n]+", " +"),
    ),
    "keyword": Family(
        "ifx_ ",
        ("if", "i", "x", "xi", "fi", "ifx", "_"),
        ("[ifx]+", "[ifx_]+", "[if]+x?", "i[f_]*", "x(_x)*", "[ifx]{1,3}", "[ifx_]+&~(if|fi)"),
        (" +", "_+", "[ _]+", " "),
    ),
    "utf8": Family(
        "aèéε€😀 ",
        ("é", "€", "aé", "a", "😀", "éè"),
        ("[è-é]+", "[^a ]", "[^a€ ]+", "[aé]+", ".é", "(é|€)+a?", "[ε-€]", "[€-😀]+", "~(.*a.*)&[^ ]+"),
        (" +", "[ ε]+", "€ "),
    ),
    "repeat": Family(
        "ab0x ",
        ("a", "0x", "b", "aaaaaa", "0"),
        (
            "a{5,9}",
            "[ab]{3,20}",
            "(ab){2,7}",
            "0x[ab0]{8}",
            "a{4}b{4}",
            "(a|0){6,}",
            "(a{2}b?){3,5}",
            "[ab0x]{12}",
            "a{30}",
            "b+",
        ),
        (" {1,6}", "x{7} ", " +", "( x?){2,3}"),
    ),
    "boolean": Family(
        "abc\n ",
        ("a", "ab", "abc", "cc", "ba"),
        (
            "[abc]+&~(.*ab.*)",
            "[abc]+&~(ab|ba|c)",
            "(a|b)+&.*bb.*",
            "~((.|\n)*c(.|\n)*)&.+",
            "[ab]+c&~(a.*)",
            "(ab|c)+&(a.*|.*c)",
            "a[abc]{2,4}&~(.*cc)",
            "b+",
        ),
        (" +", "[ \n]+", "\n+&~\n\n\n", " b* &~  "),
    ),
    "string": Family(
        '"\\ae0.-,: é',
        ('"a"', '"ae"', '"', ",", ":", "-", "0", '"\\'),
        (
            '"([^"\\\\]|\\\\["\\\\ae])*"',
            '"[ae]{0,3}"',
            '"[^"]*"',
            '"a(e|é)*"',
            "-?(0|e+)",
            "-?0(\\.[0e]+)?(e-?0+)?",
            "-?(0|a[0e]*)",
            '"[^a"]{2,9}"',
            '"(a|\\\\a)*"',
        ),
        (" +", " ", ": "),
        one_rank=True,
    ),
    "template": Family(
        "{}ab% ",
        ("{{", "}}", "{%", "%}", "a", "ab", "{", "}"),
        (
            "([^{]|\\{[^{%])+",
            "[^{}]+",
            "[ab]+",
            "[ab %]+",
            "\\{\\{[ab]*\\}\\}",
            "\\{+",
            "(%[^}])+",
            "[ab ]+\\}?",
            "[^%]",
        ),
        (" +", "%% *", "[ %]+"),
    ),
    "prefix": Family(
        "abcd ",
        ("a", "ab", "abc", "abcd", "b", "bc", "bcd", "cd", "abab"),
        ("a+", "ab*", "abc*", "(abc)+d?", "[ab]+", "[abc]+", "[abcd]+", "b[cd]*", "ab(cd)?", "a{3}"),
        (" +", "d+", " ", "cd? "),
    ),
}

COUNT = Family(
    'ab1" ',
    ("a", "b", "1", "ab", '"', '""', "aa"),
    (
        "a{12,40}",
        "[ab]{0,30}1",
        "(ab?){9,}1?",
        "(a|b1){8,30}",
        "[ab1]{25}",
        "(ab){2,25}",
        "(aab|b){12,20}a*",
        '"[^"]{0,20}"',
        '"a{2,20}1{2,25}"',
        '"(a|b)*"&.{12,25}',
        '"((a|b)+1+){0,12}[ab]+"&.{0,40}',
        '"~(.*aa.*)"&"[ab1]{7,26}"',
        "(a|aa){8,20}",
        "a(aaa)*b",
        "a{19}b",
        "a{20}b",
        "(a{9,15}b){1,3}",
        "(1(a|b){10,}|b1)+",
        "((ab){7,12}1){7,9}",
        "a+",
        "b*1?a",
    ),
    (" {1,20}", "b{14} ", " +", "(b{9,}1?)&.{9,22}"),
)
"""Repeats of more copies than tokens complete: alone, in a row, nested, intersected, and some with two counts."""

JSON = Family(
    '{}[],:"ab1.-t ',
    ('"a"', '"b"', '"ab"', '"aa"', '"ba"', "1", "11", "1.1", "t", "tt"),
    (
        '"[ab]*"',
        '"a+"',
        '"(ab|b)*"',
        '"[ab]{1,2}"',
        '"[ab]*a"',
        '"[ab]*"&~"ab?"',
        '"(a|1)(b|1)"',
        "-?1+",
        "1+(\\.1+)?",
        "1{1,2}",
        "-1|1",
        "t+",
    ),
    (" +", " ", "[ t] "),
)
"""Keys, values and punctuation as schemas of JSON make them: many rows, most of which can share a lexer."""

OTHERS = {"json": JSON, "count": COUNT}
"""Families that are asked for by name only."""

STARTS = (
    {"s": "0 1 2"},
    {"s": "0 t", "t": "1 0 t | "},
    {"s": "s 0 | 1"},
    {"s": "t | s 0 t", "t": "u | t 1 u", "u": "2 | 3 s 4"},
    {"s": "t u", "t": "0 | ", "u": "1 | 2 u"},
    {"s": "s s | 0 | 1"},
    {"s": "0 s 1 | 2"},
    {"s": "t 0 | u 1", "t": "2", "u": "3"},
    {"s": "0 t 1 | 2 t 3", "t": "4"},
    {"s": "t 0", "t": "1 t | 1"},
    {"s": "t s 0 | 1", "t": "2 | "},
    {"s": "t | 0", "t": "s | 1 s"},
    # Mostly nothing.
    {"s": "t t u t", "t": "0 | ", "u": "t t | 1 | "},
    {"s": "t u v 0", "t": "1 | ", "u": "2 | ", "v": "3 v | "},
    # Lists of things in brackets; a reserved word as a name; free text with code in it; dangling else.
    {"s": "t s | ", "t": "0 u 1 | 2", "u": "3 u | "},
    {"s": "t | s t", "t": "0 u 1 u", "u": "2 | 0"},
    {"s": "u s | ", "u": "0 | 1 t 2", "t": "3 | t 4 | 1"},
    {"s": "0 s | 0 s 1 s | 2"},
    {"s": "0 t 1 | 2", "t": "s | t 3 s | "},
    # A cycle through three rules, hidden left and right recursion.
    {"s": "t | 0 s", "t": "u | 1", "u": "s | 2 t"},
    {"s": "t u s 0 | 1", "t": "2 | ", "u": "t | 3"},
    {"s": "0 s t | 1", "t": "u u", "u": "2 | "},
    # Not LR for any number of symbols; LR(1) and not LALR(1).
    {"s": "0 s 0 | 1 s 1 | 0 | 1 | "},
    {"s": "0 t 1 | 2 u 1 | 0 u 3 | 2 t 3", "t": "4", "u": "4"},
)


@dataclass(frozen=True)
class Case:
    """A grammar with what is needed to walk it.

    ``tokens`` holds ``None`` for ids without bytes, aliases, and invalid pieces of characters.
    """

    ir: GrammarIR
    alphabet: bytes
    tokens: tuple[bytes | None, ...]
    texts: tuple[bytes, ...]
    """Texts sampled from the grammar; lexing may still refuse them."""
    long_texts: tuple[bytes, ...] = ()
    """Long ones, as deeply nested as the grammar allows."""
    family: str = ""
    oracle: Oracle = field(default=None, compare=False, repr=False)  # type: ignore[assignment]


def random_terminals(rng: random.Random, family: Family, count: int) -> list[Terminal]:
    """Draw terminals that overlap; ignored and reject ones come last."""
    pool: list[Terminal] = [lit(text) for text in family.literals] + [pat(text) for text in family.patterns]
    chosen = rng.sample(pool, min(count, len(pool)))
    ranked = rng.random() < 0.4
    if family.one_rank or rng.random() < 0.2:
        chosen = [replace(t, literal=False) for t in chosen]
    chosen = [replace(t, priority=rng.choice((0, 0, 0, 1, -1))) if ranked else t for t in chosen]
    if rng.random() < 0.35:  # chains of fallbacks
        for i in (
            rng.sample(range(1, len(chosen)), rng.randint(1, len(chosen) - 1)) if len(chosen) > 1 else ()
        ):
            chosen[i] = replace(chosen[i], fallback=rng.randrange(i))
    extra = []
    if rng.random() < 0.6:
        for text in rng.sample(family.ignored, rng.choice((1, 1, 2, min(3, len(family.ignored))))):
            extra.append(
                pat(text, f"I:{text}", ignored=True, priority=rng.choice((0, 0, 1)) if ranked else 0)
            )
    if rng.random() < 0.35:
        text = rng.choice(family.patterns)
        extra.append(pat(text, f"R:{text}", reject=True))
    return chosen + extra


def random_productions(
    rng: random.Random, usable: list[int], finite: bool = False
) -> tuple[list[Nonterminal], list[Production]]:
    """Draw productions, from a template half of the time; without recursion if ``finite``."""
    if not finite and rng.random() < 0.5:
        template = rng.choice(STARTS)
        names = list(template)
        digits = {str(i): rng.choice(usable) for i in range(5)}
        if len(usable) >= 5 and rng.random() < 0.7:
            digits = dict(zip("01234", rng.sample(usable, 5), strict=True))
        productions = [
            Production(
                names.index(lhs),
                tuple(digits[s] if s in digits else ~names.index(s) for s in alternative.split()),
                lhs,
            )
            for lhs, text in template.items()
            for alternative in text.split("|")
        ]
        return [Nonterminal(name) for name in names], productions
    count = rng.randint(1, 6)
    nonterminals = [Nonterminal(string.ascii_lowercase[i]) for i in range(count)]
    productions = []
    for lhs in range(count):
        for _ in range(rng.choice((1, 2, 2, 3))):
            rhs = []
            for _ in range(rng.choice((0, 1, 1, 2, 2, 3))):
                lowest = lhs + 1 if finite else 0
                if rng.random() < 0.4 and lowest < count:
                    rhs.append(~rng.randrange(lowest, count))
                else:
                    rhs.append(rng.choice(usable))
            productions.append(Production(lhs, tuple(rhs), nonterminals[lhs].name))
    return nonterminals, productions


class _JsonRules:
    """Objects with optional members in a fixed order, and arrays, as rules."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.terminals: dict[str, Terminal] = {}
        self.ranked = rng.random() < 0.25
        self.count = 0
        self.productions: list[Production] = []
        self.keys = [t for t in (*JSON.literals, *JSON.patterns) if t.startswith('"')]
        self.values = [*JSON.literals, *JSON.patterns, *JSON.patterns]

    def terminal(self, text: str) -> int:
        if text not in self.terminals:
            literal = text not in JSON.patterns
            self.terminals[text] = replace(
                lit(text) if literal else pat(text), literal=literal and self.ranked
            )
        return list(self.terminals).index(text)

    def rule(self, *alternatives: list[int]) -> int:
        """Add a nonterminal; nonterminal ``n`` is the symbol ``~n``."""
        self.count += 1
        return self.define(self.count, *alternatives)

    def define(self, number: int, *alternatives: list[int]) -> int:
        self.productions += [Production(number, tuple(rhs), f"r{number}") for rhs in alternatives]
        return ~number

    def value(self, depth: int) -> int:
        kind = self.rng.random()
        if depth and kind < 0.3:
            return self.object(depth - 1)
        if depth and kind < 0.45:
            item = self.value(depth - 1)
            comma = self.terminal(",")
            self.count += 1
            rest = ~self.count
            self.define(self.count, [comma, item, rest], [])
            bounds = [self.terminal("["), self.terminal("]")]
            return self.rule([bounds[0], item, rest, bounds[1]], bounds)
        if kind < 0.6:
            return self.rule(*[[self.terminal(t)] for t in self.rng.sample(self.values, 2)])
        return self.terminal(self.rng.choice(self.values))

    def object(self, depth: int) -> int:
        keys = self.rng.sample(self.keys, self.rng.randint(1, 4))
        comma, colon = self.terminal(","), self.terminal(":")
        first = later = self.rule([])
        for key in reversed(keys):
            member = [self.terminal(key), colon, self.value(depth), later]
            required = self.rng.random() < 0.3
            first = self.rule(member, *([] if required else [[first]]))
            later = self.rule([comma, *member], *([] if required else [[later]]))
        return self.rule([self.terminal("{"), first, self.terminal("}")])


def json_ir(rng: random.Random, lexer: str = "contextual") -> GrammarIR:
    """Draw a grammar such as a JSON Schema is lowered to."""
    rules = _JsonRules(rng)
    rules.define(0, [rules.object(2) if rng.random() < 0.8 else rules.value(2)])
    terminals = list(rules.terminals.values())
    for text in rng.sample(JSON.ignored, rng.choice((0, 1, 1, 2))):
        terminals.append(pat(text, f"I:{text}", ignored=True))
    nonterminals = tuple(Nonterminal(f"r{i}") for i in range(rules.count + 1))
    return GrammarIR(0, tuple(terminals), nonterminals, tuple(rules.productions), lexer)


def large_productions(
    rng: random.Random, usable: list[int], most: int
) -> tuple[list[Nonterminal], list[Production]]:
    """Draw productions of up to so many nonterminals.

    Most alternatives begin with a terminal of their own, or ambiguity would explode.
    """
    count = rng.randint(4, most)
    nonterminals = [Nonterminal(string.ascii_lowercase[i]) for i in range(count)]
    productions = []
    for lhs in range(count):
        for first in rng.sample(usable, min(len(usable), rng.choice((2, 3, 4, 6)))):
            length = rng.choice((0, 1, 2, 2, 3, 4))
            rest = [
                ~rng.randrange(count) if rng.random() < 0.4 else rng.choice(usable) for _ in range(length)
            ]
            rhs = rest if rng.random() < 0.08 else [first, *rest]
            productions.append(Production(lhs, tuple(rhs), nonterminals[lhs].name))
    return nonterminals, productions


def random_ir(
    rng: random.Random,
    *,
    family: str | None = None,
    lexer: str | None = None,
    cycles: bool = True,
    hidden_left_recursion: bool = True,
    fallback: bool = True,
) -> GrammarIR:
    """Draw a grammar with a non-empty language that the reference can serve. ``a|b`` is both families, and large."""
    while True:
        names = (family or rng.choice(sorted(FAMILIES))).split("|")
        large = len(names) > 1
        mode = lexer or rng.choice(("basic", "basic", "contextual"))
        chosen = functools.reduce(operator.or_, (OTHERS.get(name) or FAMILIES[name] for name in names))
        # With a lexer for each row, the reference takes long over many.
        most = 11 if mode == "contextual" else 18
        # The reference makes the product of all terminals, and of watchers in it.
        fewest, most_alone = (1, 3) if family == "count" else (2, 7)
        count = rng.randint(most // 2, most) if large else rng.randint(fewest, most_alone)
        terminals = random_terminals(rng, chosen, count)
        if not fallback:
            terminals = [replace(t, fallback=None) for t in terminals]
        usable = [i for i, t in enumerate(terminals) if not t.ignored and not t.reject]
        if rng.random() < 0.3 and len(usable) > 2:
            usable = usable[:-1]  # one stays unused
        if large:
            nonterminals, productions = large_productions(rng, usable, most * 2 // 3)
        else:
            nonterminals, productions = random_productions(rng, usable)
        ir = GrammarIR(0, tuple(terminals), tuple(nonterminals), tuple(productions), mode)
        try:
            cfg = Cfg(ir)
        except ValueError:
            continue
        hidden = cfg.has_hidden_left_recursion()
        if hidden and any(t.fallback is not None for t in terminals) and rng.random() < 0.5:
            ir = replace(ir, terminals=tuple(replace(t, fallback=None) for t in terminals))
        needs_table = mode == "contextual" or any(t.fallback is not None for t in ir.terminals)
        if hidden and (needs_table or not hidden_left_recursion):
            continue
        if cfg.has_cycle() and not cycles:
            continue
        if cfg.used:
            return ir


# Texts.


class Sampler:
    """Draws sentences and texts of a grammar."""

    def __init__(self, ir: GrammarIR, dfas: list[Dfa] | None = None, lengths: tuple[int, ...] = (5,)) -> None:
        self.ir = ir
        self.lengths = lengths
        self.cfg = Cfg(ir)
        self.dfas = dfas or [compile_expr(t.expr) for t in ir.terminals]
        self.ignored = [i for i, t in enumerate(ir.terminals) if t.ignored]
        self._far = [_distances(dfa) for dfa in self.dfas]
        self._height: dict[int, int] = {s: 0 for s in range(self.cfg.end)}
        changed = True
        while changed:
            changed = False
            for lhs, rhs in self.cfg.productions:
                if all(s in self._height for s in rhs):
                    height = 1 + max((self._height[s] for s in rhs), default=0)
                    if height < self._height.get(lhs, height + 1):
                        self._height[lhs] = height
                        changed = True
        self.falling_to: dict[int, list[int]] = {}
        for t, chain in enumerate(self.cfg.fallbacks):
            for f in chain:
                self.falling_to.setdefault(f, []).append(t)

    def sentence(self, rng: random.Random, budget: int = 12, deep: bool = False) -> list[int]:
        """Draw a sequence of terminals, from rules with nonterminals mostly if it shall be ``deep``."""
        terminals: list[int] = []
        todo = [self.cfg.productions[0][0]]
        while todo:
            symbol = todo.pop()
            if symbol >= 0:
                terminals.append(symbol)
                continue
            rules = [self.cfg.productions[i][1] for i in self.cfg.by_lhs[symbol]]
            if budget <= 0:
                height = {rhs: max((self._height[s] for s in rhs), default=0) for rhs in rules}
                rules = [rhs for rhs in rules if height[rhs] == min(height.values())]
            elif deep and rng.random() < 0.97:
                rules = [rhs for rhs in rules if any(s < 0 for s in rhs)] or rules
            budget -= 1
            todo.extend(reversed(rng.choice(rules)))
        return terminals

    def word(self, rng: random.Random, terminal: int, length: int = 5) -> bytes:
        """Draw a string of a terminal, about as long as ``length``, and seldom shorter if that is long."""
        dfa, far = self.dfas[terminal], self._far[terminal]
        state = 0
        out = bytearray()
        while True:
            if dfa.accepting[state] and (len(out) >= length or rng.random() < (0.4 if length <= 5 else 0.04)):
                return bytes(out)
            steps: dict[int, list[int]] = {}
            for byte, successor in enumerate(dfa.next[state]):
                if successor is not None:
                    steps.setdefault(successor, []).append(byte)
            if not steps:
                return bytes(out)
            if len(out) >= length:
                nearest = min(far[s] for s in steps)
                steps = {s: b for s, b in steps.items() if far[s] == nearest}
            state = rng.choice(sorted(steps))
            members = [b for b in steps[state] if 0x20 <= b < 0x7F or b == 10 or b >= 0x80]
            out.append(rng.choice(members or steps[state]))

    def text(self, rng: random.Random, budget: int = 12, deep: bool = False) -> bytes:
        """Draw a text: a sentence's words, now and then with ignored ones in between."""
        out = b""
        spaced = rng.random()
        for terminal in self.sentence(rng, budget, deep):
            if rng.random() < 0.2 and terminal in self.falling_to:
                terminal = rng.choice(self.falling_to[terminal])
            if self.ignored and rng.random() < spaced:
                out += self.word(rng, rng.choice(self.ignored), 2)
            out += self.word(
                rng,
                terminal,
                1 if deep else self.lengths[0] if len(self.lengths) == 1 else rng.choice(self.lengths),
            )
        return out


def _distances(dfa: Dfa) -> list[int]:
    """Bytes to the nearest accepting state."""
    far = [0 if accepting else 1 << 30 for accepting in dfa.accepting]
    targets = [{s for s in row if s is not None} for row in dfa.next]
    changed = True
    while changed:
        changed = False
        for state in reversed(range(len(far))):
            nearest = min([far[state], *(far[s] + 1 for s in targets[state])])
            changed |= nearest < far[state]
            far[state] = nearest
    return far


def random_tokens(
    rng: random.Random, alphabet: str, texts: tuple[bytes, ...], count: int, longest: int = 40
) -> tuple[bytes | None, ...]:
    """Draw a vocabulary.

    It has every byte of the alphabet, pieces of texts (some as long as the text) and of characters, bytes that
    no character has, aliases, and ids without bytes.
    """
    encoded = alphabet.encode()
    pieces = [bytes([b]) for b in sorted(set(encoded))]
    tokens: list[bytes | None] = [*pieces]
    joined = [text for text in texts if text] or [encoded]
    while len(tokens) < count - 4:
        kind = rng.random()
        if kind < 0.7:
            text = rng.choice(joined) + rng.choice((b"", b"", rng.choice(joined)))
            length = rng.randint(1, min(len(text), rng.choice((3, 6, 10, longest))))
            at = rng.randint(0, len(text) - length)
            tokens.append(text[at : at + length])
        elif kind < 0.9:
            tokens.append("".join(rng.choice(alphabet) for _ in range(rng.randint(2, 4))).encode())
        elif kind < 0.97:
            at = rng.randrange(len(encoded))
            tokens.append(encoded[at : at + rng.randint(1, 3)])
        else:
            odd = bytes([rng.choice((0x00, 0x80, 0xBF, 0xC0, 0xC3, 0xE2, 0xED, 0xF0, 0xF5, 0xFF))])
            tokens.append(rng.choice((odd, odd + rng.choice(pieces), rng.choice(pieces) + odd)))
    tokens += [rng.choice(tokens), rng.choice(tokens), None, b""]
    rng.shuffle(tokens)
    return tuple(tokens)


SMALL_LEXERS = ("ab", "comment", "keyword", "number", "prefix", "string", "template")
LARGE = 0.2
"""Share of grammars that unite two families."""


def random_case(rng: random.Random, **options: Any) -> Case:
    """Draw a grammar some text of which is accepted, its vocabulary and texts.

    The texts stay within the oracle's branch limit; a walk along random tokens may still meet
    :class:`TooManyBranches` and should stop there. Options are those of :func:`random_ir`, whose families
    are joined by ``"json"``, for :func:`json_ir`.
    """
    while True:
        family = options.get("family") or rng.choice(sorted(FAMILIES))
        if "family" not in options and rng.random() < LARGE:
            family = "|".join(rng.sample(SMALL_LEXERS, 2))
        ir = json_ir(rng) if family == "json" else random_ir(rng, **{**options, "family": family})
        oracle = Oracle(ir, max_branches=30 if "|" in family else 400)
        counts = family == "count"
        sampler = Sampler(ir, oracle.lexer.dfas, (3, 10, 18, 25, 45) if counts else (5,))
        texts = tuple(dict.fromkeys(sampler.text(rng) for _ in range(12)))
        long_texts = tuple(sampler.text(rng, 120, deep=True)[:300] for _ in range(2))
        try:
            for text in texts:
                oracle.advance(oracle.start(), text)
            if any(text and oracle.accepts(text) for text in texts):
                break
        except TooManyBranches:
            continue  # too ambiguous for explicit stacks
    families = [OTHERS.get(name) or FAMILIES[name] for name in family.split("|")]
    alphabet = functools.reduce(operator.or_, families).alphabet
    # Long tokens of many lexemes take long to compile where each may end in many LR states.
    size = (rng.randint(80, 240), 8) if "|" in family else (rng.randint(20, 60), 40)
    if counts:  # what is counted are copies that no token completes
        size = (rng.randint(20, 60), rng.choice((2, 3, 5, 8)))
    tokens = random_tokens(rng, alphabet, texts, *size)
    return Case(ir, alphabet.encode(), tokens, texts, long_texts, family, oracle)


def cases(**options: Any) -> st.SearchStrategy[Case]:
    """Return :func:`random_case` as a Hypothesis strategy."""
    return st.randoms(use_true_random=False).map(lambda rng: random_case(rng, **options))
