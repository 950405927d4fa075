"""The Lark text front end, checked against Lark's Earley parser and Python's ``re``."""

from __future__ import annotations

import itertools
import logging
import random
import re
import warnings
from pathlib import Path

import lark
import pytest

from glrgrid.errors import GrammarError
from glrgrid.grammar import Grammar, GrammarWarning
from glrgrid.grammar.ir import GrammarIR, Terminal
from glrgrid.grammar.regex import from_literal, from_pattern
from glrgrid.reference.regex import compile_expr

EVERYTHING = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))


def read(text: str, **options) -> GrammarIR:
    """Read a grammar that warns of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", GrammarWarning)
        return Grammar.from_lark(text, **options).ir


def terminals(text: str, **options) -> dict[str, Terminal]:
    return {t.name: t for t in read(text, **options).terminals}


def productions(ir: GrammarIR) -> list[tuple[str, str, list[str]]]:
    def name(symbol: int) -> str:
        return ir.terminals[symbol].name if symbol >= 0 else ir.nonterminals[~symbol].name

    return [(p.name, name(~p.lhs), [name(s) for s in p.rhs]) for p in ir.productions]


def language(ir: GrammarIR, length: int) -> set[str]:
    """Texts up to ``length`` of a grammar whose terminals are literals."""
    words: list[set[str]] = [set() for _ in ir.nonterminals]
    grew = True
    while grew:
        grew = False
        for production in ir.productions:
            texts = {""}
            for symbol in production.rhs:
                parts = {ir.terminals[symbol].expr[1]} if symbol >= 0 else words[~symbol]
                texts = {a + b for a in texts for b in parts if len(a + b) <= length}
            if not texts <= words[production.lhs]:
                words[production.lhs] |= texts
                grew = True
    return words[ir.start]


def check(text: str, alphabet: str = "abc", length: int = 5) -> GrammarIR:
    """Our productions and Lark's Earley parser agree on all texts up to a length."""
    ir = read(text)
    parser = lark.Lark(text, parser="earley", ambiguity="resolve")
    ours = language(ir, length)
    for size in range(length + 1):
        for letters in itertools.product(alphabet, repeat=size):
            word = "".join(letters)
            try:
                parser.parse(word)
                accepted = True
            except (lark.UnexpectedInput, lark.exceptions.ParseError):
                accepted = False
            assert accepted == (word in ours), word
    return ir


def check_error(text, message, line=None, column=None, **options) -> None:
    """Reading fails with this message, at this place."""
    with pytest.raises(GrammarError) as caught:
        Grammar.from_lark(text, **options)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)


# Lowering


@pytest.mark.parametrize(
    "text",
    [
        'start: "a" ["b"] "c"?',
        'start: ("a" | "b" "c")* "a"',
        'start: ("a" ["b"])+ | "c"*',
        'start: ["a" ["b" ["c"]]] "a"~2',
        'start: "a"~1..3 ("b" | "c")~0..2',
        'start: x*\nx: "a" | "b" x "c"',
        'start: (("a"?)* "b")? "c"',
        'start: (("a" | "b")+ | "c")+',
        'start: "a"? | ("b" | ["c"]) -> two',
        'start:\n  | "a" start "b" // comment\n  # another\n\n  | "c"\n',
        'start: pair{"a", x} | pair{pair{"b", "b"}, "c"}\npair{p, q}: p q | q\nx: "c"',
        'start: list{"a", "b"}\nlist{item, sep}: item (sep item)*',
        'start: a b\n!a: "a"*\n_b: "b"\n?b: _b | "c"',
        'start: A "b"? \\\n "c"\nA: "a"',
        'start: ("a" | "a" "b" | "c")~2..3',
        'start: ("a"~2)* "b"',
    ],
)
def test_same_language_as_lark(text):
    check(text)


@pytest.mark.parametrize("seed", range(12))
def test_random_grammars_have_the_same_language_as_lark(seed):
    source = random.Random(seed)

    def expression(depth: int) -> str:
        if depth == 0 or source.random() < 0.3:
            return source.choice(['"a"', '"b"', '"c"', "x"])
        first, second = expression(depth - 1), expression(depth - 1)
        forms = [f"{first} {second}", f"({first} | {second})", f"[{first}] {second}", f"({first})+"]
        return source.choice([*forms, f"({first} {second})~1..2"])

    start, tail, inner = expression(3), expression(2), expression(1).replace("x", '"c"')
    check(f'start: {start}\n  | "c" {tail} x\nx: "a" | "b" {inner}', length=4)


@pytest.mark.parametrize(
    "low, high", [(0, 1), (0, 7), (3, 3), (9, 9), (0, 12), (5, 21), (13, 13), (16, 31), (31, 32)]
)
def test_counts(low, high):
    assert language(read(f'start: "a"~{low}..{high}'), 40) == {"a" * n for n in range(low, high + 1)}


def test_counts_stay_small():
    assert len(read('start: "a"~1000').productions) < 30
    assert len(read('start: "a"~0..1000').productions) < 60
    assert len(read('start: (("a"~1000)~1000)~1000').productions) < 80


@pytest.mark.parametrize("text", ['"a"~5..21 "b"', '"a"~9', '("a" "b"~2..12)~0..37 "c"', '["a"~0..6] "b"*'])
def test_counts_are_lalr(text, caplog):
    ir = read(f"start: {text}")
    rules: dict[int, list[str]] = {}
    for production in ir.productions:
        symbols = (f"T{s}" if s >= 0 else f"n{~s}" for s in production.rhs)
        rules.setdefault(production.lhs, []).append(" ".join(symbols))
    flat = "".join(f"n{lhs}: {' | '.join(bodies)}\n" for lhs, bodies in rules.items())
    flat += "".join(f'T{i}: "{t.expr[1]}"\n' for i, t in enumerate(ir.terminals))
    with caplog.at_level(logging.DEBUG, lark.logger.name):
        lark.Lark(flat, start=f"n{ir.start}", parser="lalr", debug=True)
    assert [m for m in caplog.messages if "onflict" in m] == []


def test_options_do_not_multiply():
    ir = read("start: " + " ".join(f'["{chr(97 + i)}"]' for i in range(26)))
    assert len(ir.productions) == 1 + 2 * 26


def test_equal_helpers_are_one():
    ir = read('start: "a" ["n"] "b" | "a" ["n"] "c"')
    assert [n.name for n in ir.nonterminals] == ["start", "__opt_0"]
    assert productions(ir)[0] == ("start", "__opt_0", ["N"])


def test_production_names():
    ir = read('start: x -> first | "b" x* -> second | ?\n'.replace(" | ?", "") + '?x: "a"\n')
    assert {(name, lhs) for name, lhs, _ in productions(ir)} == {
        ("first", "start"),
        ("second", "start"),
        ("start", "__star_0"),
        ("x", "x"),
    }


# Terminals


def test_anonymous_names():
    found = terminals('start: "select"i "(" "<=" "a b" LESS /x+/ "less" "x"\nLESS: "less"')
    assert list(found) == ["LESS", "SELECT", "LPAR", "__ANON_0", "__ANON_1", "__ANON_2", "X"]


def test_literal_flag():
    found = terminals('start: A B C D E /e/\nA: "a"\nB: ("b"i)\nC: "c" "c"\nD: "d" | "e"\nE: A')
    assert [t.name for t in found.values() if t.literal] == ["A", "B", "E"]


def test_many_warnings_are_cut():
    text = 'start: "a"\n' + "".join(f"A{i}.{i + 1}: /a+/\n" for i in range(9))
    assert " and 26 more, Lark may" in warnings_of(text)[0]


def test_unused_terminals_are_kept_but_parts_of_imports_are_not():
    imports = "%import common (INT, WS)\n%import common.CNAME -> ID\n%ignore WS\n"
    found = terminals(imports + 'start: INT\nUNUSED: "u"')
    assert list(found) == ["INT", "WS", "ID", "UNUSED"]
    assert found["WS"].ignored and not found["INT"].ignored


def test_ignored_expressions():
    found = terminals('start: "a"\n%ignore " "\n%ignore /#[^\\n]*/ "\\n"')
    assert [t.name for t in found.values() if t.ignored] == ["__IGNORE_0", "__IGNORE_1"]


def test_ascii_literals_fold_ascii_letters_only():
    automaton = compile_expr(from_literal("sk1", True))
    assert automaton.fullmatch(b"sK1")
    assert not automaton.fullmatch("ſk1".encode()) and not automaton.fullmatch("s\u212a1".encode())
    assert compile_expr(from_literal("é", True)).fullmatch("É".encode())


@pytest.mark.parametrize(
    "written, text",
    [
        (r'"\n\t\r\f"', "\n\t\r\f"),
        (r'"\x41\u00e9\U0001F600"', "Aé😀"),
        (r'"\"\\\\n"', '"\\\\n'),
        (r'"\d\/"', r"\d\/"),
        ('"é\'"', "é'"),
    ],
)
def test_string_escapes_are_larks(written, text):
    (terminal,) = read(f"start: A\nA: {written}").terminals
    assert terminal.expr == ("lit", text)
    assert lark.Lark(f"start: A\nA: {written}").terminals[0].pattern.value == text


@pytest.mark.parametrize(
    "written",
    [r"/a\/b/", r"/[\/]\x41\\x41/", r"/\"[^\"\\\n]*\"/i", r"/\u00e9+\.\d/", "/a b # c\n/x"],
)
def test_regex_escapes_are_larks(written):
    theirs = lark.Lark(f"start: A\nA: {written}").terminals[0].pattern
    (ours,) = read(f"start: A\nA: {written}").terminals
    flags = "".join(theirs.flags)
    assert ours.expr == from_pattern(theirs.value, flags)


# Regular expressions


@pytest.mark.parametrize(
    "pattern, flags",
    [
        ("a|ab|b*", ""),
        ("(a|b)*c{2,3}", ""),
        ("[^a-c]+.", ""),
        ("a.b", "s"),
        ("(?i:k)(?-i:s)?", "i"),
        ("(?:ab?c??|)".replace("??", "?"), "x"),
        (r"\d+\s?\w", ""),
        (r"[^\W\d]\S*", ""),
        (r"[\w.-]+\D", "i"),
        (r"(?P<n>[ak-m])(?#note)\W", ""),
        (r"(?a:\w)\w", ""),
        (r"k[s-t]+[^i]", "i"),
        ("é[à-ü]", "i"),
    ],
)
def test_patterns_match_what_re_matches(pattern, flags):
    source = random.Random(pattern)
    compiled = re.compile(pattern, sum(re.RegexFlag[f.upper()] for f in flags))
    automaton = compile_expr(from_pattern(pattern, flags))
    hits = 0
    for _ in range(4000):
        text = "".join(source.choices("abckstiéÀüſKı٣ 1\n-._😀", k=source.randrange(6)))
        expected = compiled.fullmatch(text) is not None
        hits += expected
        assert automaton.fullmatch(text.encode()) == expected, text
    assert hits


@pytest.mark.parametrize(
    "pattern",
    [
        r"\w",
        r"[^\W\d_]",
        "[^é]",
        "[a-z]",
        "[^k]",
        "ſ",
        "ǆ",
        "[İı]",
        r"[\d\u0130-\u0180]",
        "[\U00010400-\U00010430]",
    ],
)
@pytest.mark.parametrize("flags", ["", "i", "ia"])
def test_classes_are_exact_over_all_code_points(pattern, flags):
    expected = "".join(re.findall(f"(?:{pattern})+", EVERYTHING, sum(re.RegexFlag[f.upper()] for f in flags)))
    expr = from_pattern(pattern, flags)
    ranges = expr[1] if expr[0] == "class" else [(ord(expr[1]), ord(expr[1]))]
    assert "".join("".join(map(chr, range(low, high + 1))) for low, high in ranges) == expected


@pytest.mark.parametrize(
    "pattern, name",
    [
        ("a*?", "a lazy quantifier"),
        ("a(?=b)", "a look-around"),
        ("(?<!a)b", "a negative look-around"),
        ("^a", "an anchor"),
        (r"a\b", "an anchor"),
        ("a$", "an anchor"),
        (r"(a)\1", "a backreference"),
        ("a++", "a possessive quantifier"),
        ("(?>a)", "an atomic group"),
        ("(a)?(?(1)b|c)", "a conditional group"),
    ],
)
def test_refused_patterns(pattern, name):
    check_error(f"start: A\nA: /{pattern}/", f"uses {name}", 2, 4)


@pytest.mark.parametrize(
    "pattern, advice",
    [
        (r"if\b", 'write "if"'),
        (r"\bif\b", 'write "if"'),
        (r"if(?!\w)", 'write "if"'),
        (r"if(?![a-z_])", 'write "if"'),
        (r"(if|do)\b", "the longest match wins anyway"),
        ("^if", "may begin, so leave it out"),
        ("<.*?>", "/<[^>]*>/"),
        (r"(a|b)\1", "as alternatives"),
        ("a(?=b)", "exactly the text it should consume"),
    ],
)
def test_refused_patterns_come_with_advice(pattern, advice):
    check_error(f"start: A\nA: /{pattern}/", advice, 2, 4)


def test_advice_keeps_the_flag():
    check_error("start: A\nA: /if\\b/i", 'write "if"i', 2, 4)


@pytest.mark.parametrize(
    "name, alphabet, opening, length",
    [
        ("common.ESCAPED_STRING", '"\\a\n', "", 6),
        ("common.C_COMMENT", "/*a\n", "", 6),
        ("common.C_COMMENT", "/*", "", 9),
        ("python.LONG_STRING", '"\\a', '"""', 8),
        ("python.LONG_STRING", "'\\\n", "fR'''", 8),
    ],
)
def test_rewritten_imports_match_where_lark_stops(name, alphabet, opening, length):
    text = f"%import {name} -> X\nstart: X"
    theirs = re.compile(lark.Lark(text).terminals[0].pattern.to_regexp())
    (ours,) = read(text).terminals
    automaton = compile_expr(ours.expr)
    hits = 0
    for size in range(length + 1):
        for letters in itertools.product(alphabet, repeat=size):
            word = opening + "".join(letters)
            match = theirs.match(word)
            expected = match is not None and match.end() == len(word)
            hits += expected
            assert automaton.fullmatch(word.encode()) == expected, word
    assert hits


# Imports and changes


def test_imported_rules_bring_what_they_need():
    ir = read("%import lark (rule_params, RULE)\nstart: rule_params")
    assert [n.name for n in ir.nonterminals if not n.name.startswith("__")] == ["rule_params", "start"]
    assert {t.name for t in ir.terminals} == {"RULE", "LBRACE", "COMMA", "RBRACE"}


def test_one_name_under_two_aliases():
    assert list(terminals("%import common.INT\n%import common.INT -> N\nstart: INT N")) == ["INT", "N"]


def test_override_and_extend():
    text = '%import lark.OP\n%override OP: "+"\n%extend OP: "-"\nstart: OP'
    assert terminals(text)["OP"].expr == ("alt", (("lit", "+"), ("lit", "-")))


# The directive


def test_directive():
    text = 'go: ID KEY\nID: /[a-z]+/\nKEY: "key"\nJUNK: /[0-9]+[a-z]+/\n'
    directive = '%glrgrid {"lexer": "basic", "start": "go", "fallback": {"ID": ["KEY"]}, "reject": ["JUNK"]}'
    ir = Grammar.from_lark(text + directive).ir
    by_name = {t.name: t for t in ir.terminals}
    assert ir.terminals[by_name["KEY"].fallback].name == "ID"
    assert by_name["JUNK"].reject and not by_name["ID"].reject
    assert ir.lexer == "basic" and ir.nonterminals[ir.start].name == "go"


def test_lexer():
    basic = '%glrgrid {"lexer": "basic"}\nstart: "a"'
    assert Grammar.from_lark('start: "a"').lexer == "contextual"
    assert Grammar.from_lark('start: "a"', lexer="basic").lexer == "basic"
    assert Grammar.from_lark(basic).lexer == "basic"
    assert Grammar.from_lark(basic, lexer="contextual").lexer == "contextual"
    with pytest.raises(GrammarError, match="unknown lexer"):
        Grammar.from_lark('start: "a"', lexer="dynamic")


# Grammar


def test_warnings():
    text = 'start.2: A | b\nA.1: "a"\nb: b "x"\nlost: "y"'
    with pytest.warns(GrammarWarning) as caught:
        grammar = Grammar.from_lark(text, lexer="basic")
    assert tuple(str(w.message) for w in caught) == grammar.warnings
    assert [w.split(" (")[0] for w in grammar.warnings] == [
        'priority of rule "start"',
        'rule "b"',
        'rule "lost"',
    ]
    assert "(line 3) derives no text" in grammar.warnings[1]
    assert '(line 4) cannot be reached from "start"' in grammar.warnings[2]


def warnings_of(text: str, **options) -> tuple[str, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        return Grammar.from_lark(text, **options).warnings


@pytest.mark.parametrize(
    "high, low, fires",
    [
        ('"a"', '"ab"', True),
        ('"ab"', '"a"', False),
        ('"a"', '"b"', False),
        ('"a"', "/a+/", True),
        ('"ab"', "/[a-z]/", False),
        ("/[a-c]x?/", "/[c-e]+/", True),
        ("/[a-c]+/", "/[d-z]+/", False),
        ("/x?y/", "/y*z/", True),
        ("/x?y/", "/z*w/", False),
        ("/é/", "/ê+/", True),  # one first byte
        ("/é/", "/[^é]+/", True),
        ("/[a-z]+/", '"if"', True),
        ("/[a-z]{3,}/", '"if"', False),
        ('"if"i', '"IFF"', True),
        ('"if"i', '"elif"', False),
    ],
)
def test_priorities_warn_only_where_lark_could_cut_short(high, low, fires):
    found = warnings_of(f"start: A B\nA.2: {high}\nB: {low}")
    assert len(found) == fires
    assert not fires or 'terminals "A" (2) and "B" (0), Lark may take the first' in found[0]


def test_unused_terminals_are_warned_of_with_the_basic_lexer_only():
    text = 'start: A "x"\nA: D "a"\nD: /[0-9]/\nWS: " "\nK: "k"\nR: "r"\nX: "x"\nL: "l"\nM: "m"\n%ignore WS\n'
    text += '%glrgrid {"reject": ["R"], "fallback": {"A": ["K"], "L": ["X"]}}'
    (found,) = warnings_of(text, lexer="basic")
    assert found.startswith(
        'terminals "D", "M" take part in the longest match though no rule uses them; with'
    )
    assert warnings_of(text) == ()


def test_nullable_terminals_that_no_rule_uses_are_left_out():
    text = "start: NUM\nNUM: INT EXP\nINT: /[0-9]+/\nEXP: /(e[0-9]+)?/\nLOST: /x*/"
    (found,) = warnings_of(text)
    assert found == 'terminal "LOST" (line 5) is left out: no rule uses it, and it can match the empty string'
    with pytest.warns(GrammarWarning, match="LOST"):
        assert [t.name for t in Grammar.from_lark(text).ir.terminals] == ["NUM", "INT"]


def test_grammar_is_a_value():
    one, two = (Grammar.from_lark('start: "a"', lexer="basic") for _ in range(2))
    assert one == two and one.fingerprint == two.fingerprint and len(one.fingerprint) == 64
    assert one.fingerprint != Grammar.from_lark('start: "b"', lexer="basic").fingerprint
    assert repr(one).startswith('<Grammar "start": 1 terminals, 1 productions, basic lexer, ')
    with pytest.raises(AttributeError):
        one.ir = two.ir


# Errors


@pytest.mark.parametrize(
    "text, message, line, column",
    [
        ('start: ("a"', 'unexpected end of line after `start: ("a"`; expected ")"', 1, 12),
        ("my_grammar.lark", "pass the text of a grammar, not its name", 1, 12),
        ("start: 'a'", "strings are written in double quotes", 1, 8),
        ('start ::= "a"', 'a definition is written as "name: ..."', 1, 8),
        ('start: "a"\nb = "c"', 'unexpected "=" after `b`; expected', 2, 3),
        ('start: "a" myRule', "rules are lower case, those of terminals upper case", 1, 12),
        ('start: "a";', "a definition ends with its line", 1, 11),
        ('start: "a" "b', "a string ends on its line", 1, 12),
        ('start: "a" )', 'unexpected ")"', 1, 12),
        ('start: "a"\n%foo x', 'unexpected "%"', 2, 1),
        ('Aa: "x"', 'unexpected "Aa"', 1, 1),
        ('start: lst\nlist: "d"', 'rule "start" uses undefined symbol "lst"; closest name: "list"', 1, 8),
        ('start: A\nA: "a" B', 'terminal "A" uses undefined symbol "B"', 2, 8),
        ('start: "a"\nstart: "b"', 'rule "start" is defined more than once, first on line 1', 2, 1),
        ('start: A\nA: "x"*', 'terminal "A" can match the empty string', 2, 1),
        ("start: /x?/", 'a pattern /x?/ in rule "start" can match the empty string', 1, 8),
        ("start: X y\ny: /x?/\nX: /x?/", 'terminal "X" can match the empty string', 3, 1),
        ('start: "a"\n%ignore /x*/', 'terminal "__IGNORE_0" can match the empty string', 2, 9),
        ('start: "a"\nX: /x*/\n%glrgrid {"reject": ["X"]}', 'terminal "X" can match the empty string', 2, 1),
        ('start: "a" [WS]\nWS: " "\n%ignore WS', 'rule "start" uses terminal "WS", which is ignored', 1, 13),
        ('start: "a" t{" "}\nt{x}: x x\nWS: " "\n%ignore WS', 'uses terminal "WS", which is ignored', 1, 14),
        ('start: A\nA.2147483648: "a"', "priority 2147483648 is out of range; expected -2147483648 to", 2, 3),
        ('start: A\nA.-99999999999999: "a"', "priority -99999999999 is out of range", 2, 3),
        ('start: A\nA: B "x"\nB: A | "y"', 'terminal "A" refers to itself (A -> B -> A)', 3, 4),
        ('start: A\nA: "x" b\nb: "c"', 'terminal "A" uses rule "b"', 2, 8),
        ('start: A\nA: "x" -> y', 'terminal "A" has alias "y"', 2, 11),
        ('start: "a" (b -> c)\nb: "d"', 'alias "c" inside a group', 1, 18),
        ('start: "a" -> x\n | "a" -> y', 'one alternative twice, as "x" and "y"', 2, 11),
        ('start: "a"~5..3', "bad repetition ~5..3", 1, 12),
        ('start: "a"~2000000', "bad repetition", 1, 12),
        ('start: "a"~99999999999999', "is too large", 1, 12),
        ('start: ""', "empty string", 1, 8),
        (r'start: "\x4"', r"bad escape \x4", 1, 8),
        (r'start: "\ud800"', "surrogate code point", 1, 8),
        ('start: "z".."a"', "bad range", 1, 8),
        ("start: /(/", "is malformed", 1, 8),
        ("start: /a\nb/", "takes flag x", 1, 8),
        ("start: /a/l", "the locale is not supported", 1, 8),
        ('__x: "a"', 'unexpected "__x"', 1, 1),
        ("start: X\n%import foo.X", 'cannot import "foo.X"', 2, 9),
        ("start: X\n%import .foo.X", 'cannot import ".foo.X"', 2, 9),
        ("start: INTT\n%import common.INTT", 'grammar "common" has no "INTT"; closest name: "INT"', 2, 9),
        ("start: x\n%import common.INT -> x", 'cannot import "INT" as "x"', 2, 9),
        ("start: X\n%import lark.REGEXP -> X", "a negative look-around", 2, 9),
        ("start: X\n%declare X", "%declare X", 2, 10),
        ('%extend foo: "a"\nstart: "a"', '%extend of rule "foo"', 1, 9),
        ('start: t\nt{x}: "a" x', 'uses template "t" without arguments: t{x}', 1, 8),
        ('start: t{"a", "b"}\nt{x}: "a" x', "takes 1 arguments, found 2", 1, 8),
        ('start: t{"a"}\nt{x}: "a" t{p{x, x}} | x\np{x, y}: x y', "instances; is it endless?", 2, 11),
        ('start: "x" start', 'start rule "start" derives no text', 1, 1),
        ('start: J\nJ: " "\n%glrgrid {"reject": ["J"]}', 'start rule "start" derives no text', 1, 1),
        ("", 'start rule "start" is not defined; the grammar has no rules', 1, 1),
        ('A: "a"', 'start rule "start" is not defined; the grammar has no rules', 1, 1),
        ('A: "a"\n  b: A', 'start rule "start" is not defined; there are: b', 2, 3),
        ('a: "a"\n%glrgrid {"start": "b"}', 'start rule "b" is not defined; there are: a', 2, 20),
        ('%glrgrid {"lexer": "x"}\nstart: "a"', '"lexer" must be "basic" or "contextual", found "x"', 1, 11),
        ('%glrgrid {"lxer": "basic"}\nstart: "a"', 'unknown key "lxer"; closest name: "lexer"', 1, 11),
        ('%glrgrid {"reject": "A"}\nstart: "a"', '"reject" must be a list of terminal names', 1, 11),
        ('start: FO\nFO: "a"\n%glrgrid {"reject": ["FOO"]}', 'terminal "FOO"; closest name: "FO"', 3, 22),
        ('start: "a" "b"\n%glrgrid {"fallback": {"A": ["B"], "B": ["A"]}}', "leads back to itself", 2, 24),
        ('%glrgrid {"reject": [}\nstart: "a"', "bad JSON", 1, 22),
        ("%glrgrid []\nstart: \"a\"", "expected a JSON object", 1, 1),
    ],
)  # fmt: skip
def test_errors(text, message, line, column):
    check_error(text, message, line, column)


def test_text_that_is_none():
    for text in (None, b'start: "a"', Path("x.lark")):
        with pytest.raises(TypeError, match="pass the grammar's text"):
            Grammar.from_lark(text)


def test_unknown_start():
    there = 'closest name: "begin"; there are: other, begin; name one with start="..."'
    text = '%import lark.rule_params -> other\nbegin: "a"'
    check_error(text, f'start rule "begn" is not defined; {there}', 1, 9, start="begn")
    many = "".join(f'r{i}: "a"\n' for i in range(11))
    check_error(many, "there are: r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, ...; name one", 1, 1, start="zz")


@pytest.mark.parametrize(
    "text",
    [
        "start: " + "(" * 50_000 + '"a"' + ")" * 50_000,
        "start: " + '["b" ' * 101 + '"a"' + "]" * 101,
        "start: A\nA: " + '("b" ' * 101 + '"a"' + ")*" * 101,
        "start: A\nA: /" + "(a" * 3000 + ")*" * 3000 + "/",
        "start: A\nA: /" + "(a" * 61 + ")*" * 61 + "/",
        "start: A0\n" + "".join(f'A{i}: A{i + 1} "x" | "y"\n' for i in range(3000)) + 'A3000: "z"',
        "start: A0\n" + "".join(f"A{i}: A{i + 1} A{i + 1}\n" for i in range(40)) + 'A40: "z"',
        "start: t{" * 3000 + '"a"' + "}" * 3000 + "\nt{x}: x",
    ],
    ids=range(8),
)  # fmt: skip
def test_hostile_nesting_is_an_error(text):
    with pytest.raises(GrammarError):
        Grammar.from_lark(text, lexer="basic")


def test_names_are_not_limited_by_nesting():
    chain = "start: r0\n" + "".join(f'r{i}: r{i + 1} | "a" r{i + 1}\n' for i in range(2000)) + 'r2000: "z"'
    assert len(read(chain).productions) == 4002
