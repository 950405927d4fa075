"""The executable specification against plainer truths: enumeration, ``re``, and its own second parser."""

from __future__ import annotations

import contextlib
import random
import re
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from strategies import (
    FAMILIES,
    Case,
    cases,
    grammar,
    lit,
    pat,
    random_case,
    random_productions,
    random_terminals,
    rx,
)

from glrgrid.grammar.ir import GrammarIR
from glrgrid.reference.cfg import Cfg
from glrgrid.reference.enumerate import language, prefixes, texts_over
from glrgrid.reference.oracle import Oracle, State, TooManyBranches
from glrgrid.reference.regex import compile_expr


def viable(oracle: Oracle, text: bytes) -> bool:
    """The mask rule after ``text`` from the start."""
    return oracle.advance(oracle.start(), text) is not None


def wrong_prefixes(ir: GrammarIR, alphabet: bytes, max_length: int, checked: int) -> list[bytes]:
    """Texts of up to ``checked`` bytes that mask rule and enumeration judge differently."""
    oracle = Oracle(ir)
    exact = prefixes(language(oracle, texts_over(alphabet, max_length)))
    return [text for text in texts_over(alphabet, checked) if viable(oracle, text) != (text in exact)]


# Terminal expressions.


def random_pattern(rng: random.Random, depth: int = 3) -> str:
    """A pattern that ``rx`` and ``re`` read alike."""
    if depth == 0 or rng.random() < 0.25:
        return rng.choice(("a", "b", "é", "€", "[ab]", "[^a]", "[a-é]", ".", "ab", "[é-€]"))
    match rng.randrange(4):
        case 0:
            return "".join(random_pattern(rng, depth - 1) for _ in range(rng.randint(0, 3)))
        case 1:
            return "(" + "|".join(random_pattern(rng, depth - 1) for _ in range(rng.randint(1, 3))) + ")"
        case 2:
            return "(" + random_pattern(rng, depth - 1) + ")" + rng.choice(("*", "+", "?"))
        case _:
            least = rng.randint(0, 2)
            return f"({random_pattern(rng, depth - 1)}){{{least},{least + rng.randint(0, 2)}}}"


def test_automata_agree_with_re() -> None:
    rng = random.Random(1)
    texts = ["".join(t) for n in range(5) for t in product("abé€", repeat=n)]
    for _ in range(120):
        pattern, other = random_pattern(rng), random_pattern(rng)
        plain, second = re.compile(pattern), re.compile(other)
        dfa = compile_expr(rx(pattern))
        both = compile_expr(("and", (rx(pattern), ("not", rx(other)))))
        for text in texts:
            matches = plain.fullmatch(text) is not None
            assert dfa.fullmatch(text.encode()) == matches, (pattern, text)
            assert both.fullmatch(text.encode()) == (matches and not second.fullmatch(text)), (pattern, other)


@pytest.mark.parametrize(
    ("lo", "hi"),
    [(0, 0x10FFFF), (0x7F, 0x80), (0x7FF, 0x800), (0xD700, 0xE000), (0xFFFF, 0x10000), (0x9F, 0x20AC)],
)
def test_code_points_are_utf8(lo: int, hi: int) -> None:
    dfa = compile_expr(("class", ((lo, hi),)))
    rng = random.Random(lo)
    codes = {
        lo,
        hi,
        *(rng.randrange(0x110000) for _ in range(500)),
        *range(0xD7F0, 0xE010),
        0x7F,
        0x80,
        0x800,
    }
    for code in codes:
        data = chr(code).encode("utf-8", "surrogatepass")
        surrogate = 0xD800 <= code < 0xE000
        assert dfa.fullmatch(data) == (lo <= code <= hi and not surrogate), hex(code)
    for data in (b"\xc0\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80", b"\x80", b"\xff"):
        assert not dfa.fullmatch(data)  # overlong, too large, not UTF-8


def test_complement_is_over_byte_strings() -> None:
    dfa = compile_expr(("not", ("lit", "a")))
    assert dfa.fullmatch(b"") and dfa.fullmatch(b"\xff") and dfa.fullmatch(b"aa") and not dfa.fullmatch(b"a")
    assert compile_expr(("alt", ())).is_empty()
    assert compile_expr(("cat", ())).fullmatch(b"")
    assert compile_expr(("repeat", ("lit", "ab"), 2, 3)).fullmatch(b"ababab")
    assert compile_expr(("and", (rx("a*"), rx("(aa)*"), ("not", ("cat", ()))))).fullmatch(b"aa")


# The counterexamples that shaped the mask rule.


def test_trap_state_is_left_out() -> None:
    ir = grammar({"s": "NAME SEMI"}, {"NAME": pat("x|y[xy;]*"), "SEMI": lit(";")})
    oracle = Oracle(ir)
    assert not wrong_prefixes(ir, b"xy;", 6, 3)
    assert not viable(oracle, b"y") and viable(oracle, b"x;")
    assert [(trap.text, trap.terminal) for trap in oracle.traps()] == [(b"y", 0)]
    assert not oracle.separability()


def test_ignored_comment_to_the_end_is_reported() -> None:
    terminals = {"A": lit("a"), "B": lit("b"), "COM": pat("#[ab#]*", ignored=True)}
    ir = grammar({"s": "A B"}, terminals)
    assert wrong_prefixes(
        ir, b"ab#", 6, 3
    )  # "a#" can never end the sentence, yet an ignored lexeme is allowed
    assert {(r.text, r.terminal, r.following) for r in Oracle(ir).separability()} == {
        (b"#", 2, 0),
        (b"#", 2, 1),
    }


def test_branch_doomed_by_its_own_watcher() -> None:
    terminals = {"A": lit("a"), "B": lit("b"), "C": lit("c"), "L": lit("abc")}
    elsewhere = grammar({"s": "A B C | B L"}, terminals)
    assert [(r.terminal, r.following) for r in Oracle(elsewhere).separability()] == [(1, 2)]
    ir = grammar({"s": "A B C | L"}, terminals)
    assert not wrong_prefixes(ir, b"abc", 6, 3) and not Oracle(ir).separability()
    assert [(trap.text, trap.terminal) for trap in Oracle(ir).traps()] == [(b"a", 0), (b"ab", 1)]


def test_keyword_shadows_name() -> None:
    ir = grammar({"s": "NAME C | C KW"}, {"NAME": pat("a|ab"), "KW": lit("ab"), "C": lit("c")})
    assert not wrong_prefixes(ir, b"abc", 6, 3)
    assert not viable(Oracle(ir), b"ab")


def test_merged_row_shadows() -> None:
    terminals = {
        "P": lit("p"),
        "Q": lit("q"),
        "R": lit("r"),
        "K": lit("k"),
        "X": lit("x"),
        "NAME": pat("x|k"),
    }
    rules = {"s": "P r X | Q r NAME | P K", "r": "R"}
    ir = grammar(rules, terminals, lexer="contextual")
    assert not Oracle(ir).separability() and not wrong_prefixes(ir, b"pqrxk", 5, 4)
    assert not viable(Oracle(ir), b"qrx") and viable(Oracle(ir), b"qrk")  # rank is resolved in the merged row


def test_pairs_of_terminals_are_not_enough() -> None:
    ir = grammar({"s": "A B C"}, {"A": pat("a(x)?"), "B": pat("xb|yb?"), "C": lit("b")})
    wrong = wrong_prefixes(ir, b"axyb", 7, 4)
    assert not wrong and not Oracle(ir).separability()  # the watchers tell the triples apart


def test_numbers_backtrack() -> None:
    spaces = {"WS": pat(" +", ignored=True)}
    ir = grammar({"s": "NUM n m", "n": "NAME |", "m": "NUM |"}, {"NUM": pat("1+(e1+)?"), "NAME": pat("e+")})
    assert not wrong_prefixes(ir, b"1e", 7, 4)
    ir = grammar({"s": "NUM SEMI | s NUM SEMI"}, {"NUM": pat("1+(e1+)?"), "SEMI": lit(";"), **spaces})
    assert not wrong_prefixes(ir, b"1e; ", 6, 4)


def test_trap_is_not_emitted_either() -> None:
    terminals = {"LETTER": pat("[ab]", priority=1), "B": lit("b"), "X": pat("b|ca", priority=1)}
    ir = grammar({"s": "X B |"}, terminals)  # B is always an X or a LETTER, and "b" is over at once
    assert not wrong_prefixes(ir, b"abc", 5, 3) and not Oracle(ir).separability()
    assert not viable(Oracle(ir), b"b") and Oracle(ir).accepts(b"")


# Longest match.


def test_reserved_word_is_not_a_name() -> None:
    terminals = {"SELECT": lit("select"), "NAME": pat("[a-z]+"), "WS": pat(" +", ignored=True)}
    oracle = Oracle(grammar({"s": "SELECT NAME"}, terminals))
    assert oracle.accepts(b"select a")
    assert not oracle.accepts(b"selecta") and not oracle.accepts(b"select select")
    state = oracle.advance(oracle.start(), b"select")
    assert state is not None
    assert oracle.mask(state, [b" ", b" a", b"a", None, b""]) == [True, True, False, False, False]
    assert oracle.trial(state, b" a").emitted == 2


def test_longer_unused_terminal_takes_the_text() -> None:
    terminals = {"IF": lit("if"), "X": pat("[0-9]+"), "BANG": lit("!"), "ID": pat("[a-z0-9]+")}
    oracle = Oracle(grammar({"s": "IF X BANG | ID"}, terminals))
    assert not oracle.accepts(b"if1!") and oracle.accepts(b"if1") and not viable(oracle, b"if1!")
    contextual = Oracle(grammar({"s": "IF X BANG"}, terminals, lexer="contextual"))
    assert contextual.accepts(b"if1!") and viable(contextual, b"if1!")  # ID is in no row
    assert not Oracle(grammar({"s": "IF X BANG"}, terminals)).accepts(b"if1!")


def test_reject_terminal_is_one_lexeme() -> None:
    terminals = {
        "A": lit("a"),
        "B": lit("b"),
        "NAME": pat("[ab]+", reject=True),
        "WS": pat(" ", ignored=True),
    }
    oracle = Oracle(grammar({"s": "A B"}, terminals))
    assert oracle.accepts(b"a b") and not oracle.accepts(b"ab")
    state = oracle.advance(oracle.start(), b"a")
    assert state is not None and not oracle.mask(state, [b"b"])[0] and not oracle.is_accepting(state)


def test_fallback_is_taken_where_nothing_else_is() -> None:
    terminals = {"ID": pat("x+"), "KW": lit("k", fallback=0), "C": lit("c", fallback=1)}
    oracle = Oracle(grammar({"s": "KW ID | ID"}, terminals))
    assert oracle.accepts(b"kx") and oracle.accepts(b"kk") and oracle.accepts(b"kc")
    assert not oracle.accepts(b"k"), "KW has an action of its own at the start"
    assert oracle.trial(oracle.start(), b"kk").fallback and not oracle.trial(oracle.start(), b"kx").fallback


def test_watcher_kills_the_short_branch() -> None:
    terminals = {"NUM": pat("1+(e1+)?"), "E": lit("e"), "X": lit("x"), "ONE": lit("1")}
    oracle = Oracle(grammar({"s": "ONE E y", "y": "X | ONE"}, terminals))
    state = oracle.advance(oracle.start(), b"1e")
    assert state is not None and state.has_watcher and oracle.trial(oracle.start(), b"1e").watcher
    assert oracle.mask(state, [b"x", b"1"]) == [True, False]  # "1e1" is one NUM
    after = oracle.advance(state, b"x")
    assert after is not None and not after.has_watcher and oracle.is_accepting(after)
    assert [(r.text, r.terminal, r.following) for r in oracle.separability()] == [(b"1e", 1, 3)]


# Grammars that are refused.


@pytest.mark.parametrize(
    ("rules", "terminals", "message"),
    [
        ({"s": "A s"}, {"A": lit("a")}, "derives no sentence"),
        ({"s": "A"}, {"A": pat("a*")}, "matches the empty string"),
        ({"s": "A"}, {"A": lit("a", reject=True)}, "reject terminal A"),
        ({"s": "A B"}, {"A": lit("a"), "B": lit("b", ignored=True)}, "ignored terminal B"),
        ({"s": "A"}, {"A": lit("a", fallback=1), "B": lit("b", fallback=0)}, "cycle"),
        ({"s": "A"}, {"A": pat("a&b")}, "derives no sentence"),
    ],
)
def test_refused(rules: dict[str, str], terminals: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Oracle(grammar(rules, terminals))  # type: ignore[arg-type]


def test_hidden_left_recursion_and_cycles_are_seen() -> None:
    terminals = {"A": lit("a"), "B": lit("b")}
    hidden = grammar({"s": "t s B | A", "t": "A |"}, terminals)
    cycle = grammar({"s": "t | A", "t": "s B | s"}, terminals)
    plain = grammar({"s": "s A | t", "t": "B |"}, terminals)
    found = [(Cfg(ir).has_hidden_left_recursion(), Cfg(ir).has_cycle()) for ir in (hidden, cycle, plain)]
    assert found == [(True, False), (False, True), (False, False)]
    assert Oracle(hidden).accepts(b"aab") and Oracle(cycle).accepts(b"abb")
    assert Oracle(cycle, parser="lr").accepts(b"abb")
    with pytest.raises(ValueError, match="hidden left recursion"):
        Oracle(hidden, parser="lr")


# Random grammars.


def walk(case: Case, oracles: list[Oracle], rng: random.Random, steps: int) -> int:
    """Walk all oracles side by side; return the number of masks compared."""
    states: list[State] = [oracle.start() for oracle in oracles]
    for step in range(steps):
        if max(len(state.branches) for state in states) > 200:
            return step  # ambiguity: explicit stacks grow exponentially
        masks = [oracle.mask(state, case.tokens) for oracle, state in zip(oracles, states, strict=True)]
        assert all(mask == masks[0] for mask in masks), case
        ends = [oracle.is_accepting(state) for oracle, state in zip(oracles, states, strict=True)]
        assert all(end == ends[0] for end in ends), case
        allowed = [token for token, bit in zip(case.tokens, masks[0], strict=True) if bit]
        if not allowed:
            return step + 1
        token = rng.choice(allowed)
        following = [oracle.advance(state, token) for oracle, state in zip(oracles, states, strict=True)]
        assert all(following), case
        states = [state for state in following if state]
    return steps


@pytest.mark.parametrize("seed", range(40))
def test_lr_and_earley_agree(seed: int) -> None:
    rng = random.Random(seed)
    case = random_case(rng, lexer="basic", fallback=False, hidden_left_recursion=False)
    with contextlib.suppress(TooManyBranches):
        walk(case, [Oracle(case.ir, parser="lr"), Oracle(case.ir, parser="earley")], rng, 12)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_advance_agrees_with_longest_match(case: Case) -> None:
    """``accepts`` cuts whole texts; ``advance`` never looks ahead: both must find the same language."""
    oracle = case.oracle
    for text in case.texts:
        reached = oracle.advance(oracle.start(), text)
        assert reached == oracle.trial(oracle.start(), text).state
        accepted = oracle.accepts(text)
        assert (reached is not None and oracle.is_accepting(reached)) == accepted, text
        state: State | None = oracle.start()
        for at in range(
            len(text)
        ):  # no mask may refuse a way into the language, however it is cut into tokens
            state = oracle.advance(state, text[at : at + 1]) if state else None
            assert state or not accepted, text[: at + 1]
        assert not accepted or (state and oracle.is_accepting(state)), text


WORDS = (
    "a",
    "b",
    "ab",
    "ba",
    "aa",
    "aab",
    "bab",
    "a|ab",
    "b|ba",
    "a(ba)?",
    "b|aab",
    "ab?a",
    "a{1,2}",
    "[ab]",
)
LETTERS = ("a", "b", "c", "ab", "bc", "abc", "a(bc)?", "[ab]", "b|ca", "c|cab", "ac?")


LONGEST = {"/a/": 1, "/b/": 1, "/c/": 1, "/[ab]/": 1} | dict.fromkeys(
    ("/ab/", "/ba/", "/aa/", "/bc/", "/a|ab/", "/b|ba/", "/a{1,2}/", "/b|ca/", "/ac?/"), 2
)
MAX_LENGTH = 8


def random_finite_ir(rng: random.Random) -> GrammarIR:
    """A grammar whose texts, without needless blanks, have at most ``MAX_LENGTH`` bytes."""
    while True:
        words = rng.choice((WORDS, WORDS, LETTERS))
        terminals = [
            replace(
                pat(word), literal=word.isalpha() and rng.random() < 0.8, priority=rng.choice((0, 0, 0, 1))
            )
            for word in rng.sample(words, rng.randint(2, 5))
        ]
        if rng.random() < 0.3:
            terminals[-1] = replace(terminals[-1], reject=True)
        if rng.random() < 0.3 and len(terminals) > 2:
            terminals[1] = replace(terminals[1], fallback=0)
        if rng.random() < 0.4:
            terminals.append(pat("_", ignored=True))
        usable = [i for i, t in enumerate(terminals) if not t.reject and not t.ignored]
        nonterminals, productions = random_productions(rng, usable, finite=True)
        lexer = rng.choice(("basic", "basic", "contextual"))
        ir = GrammarIR(0, tuple(terminals), tuple(nonterminals), tuple(productions), lexer)
        try:
            cfg = Cfg(ir)
        except ValueError:
            continue
        count = longest_sentence(cfg)
        longest = max((LONGEST.get(terminals[t].name, 3) for t in cfg.usable), default=0)
        blanks = count + 1 if terminals[-1].ignored else 0
        if count > 1 and longest * count + blanks <= MAX_LENGTH:
            return ir


def longest_sentence(cfg: Cfg) -> int:
    """Terminals in the longest sentence of a grammar without recursion."""
    length = dict.fromkeys(range(cfg.end), 1)
    while cfg.productions[0][0] not in length:
        for lhs, indices in cfg.by_lhs.items():
            bodies = [cfg.productions[i][1] for i in indices]
            if all(s in length for body in bodies for s in body):
                length[lhs] = max(sum(length[s] for s in body) for body in bodies)
    return length[cfg.productions[0][0]]


def compare_with_enumeration(
    oracle: Oracle, max_length: int, checked: int
) -> tuple[int, list[bytes], list[bytes]]:
    """Compare the mask rule with the enumeration on all texts of up to ``checked`` bytes.

    Exact, because a viable text of such a grammar can be completed within ``max_length`` once needless blanks
    are left out. Returns how many texts there were, those wrongly allowed and those wrongly refused.
    """
    alphabet = bytes(byte for byte in b"abc_" if any(chr(byte) in t.name for t in oracle.ir.terminals))
    exact = prefixes(language(oracle, texts_over(alphabet, max_length, without=b"__")))
    texts = texts_over(alphabet, checked, without=b"__")
    allowed = {text for text in texts if viable(oracle, text)}
    return len(texts), sorted(allowed - exact), sorted(exact.intersection(texts) - allowed)


def test_masks_agree_with_enumeration() -> None:
    clean = traps = watched = 0
    for seed in range(150):
        ir = random_finite_ir(random.Random(seed))
        oracle = Oracle(ir)
        _, wrongly_allowed, wrongly_refused = compare_with_enumeration(oracle, MAX_LENGTH, checked=4)
        assert not wrongly_refused, (seed, ir)
        if not oracle.separability():
            clean += 1
            traps += bool(oracle.traps())
            watched += any(watchers for _, _, watchers in oracle.liveness.reachable())
            assert not wrongly_allowed, (seed, ir)
    assert clean > 100 and traps > 3 and watched > 15  # the comparison means something


def test_families_are_byte_complete() -> None:
    rng = random.Random(5)
    for name, family in FAMILIES.items():
        for terminal in random_terminals(rng, family, 99):
            assert not compile_expr(terminal.expr).accepting[0], (name, terminal)
            assert not compile_expr(terminal.expr).is_empty(), (name, terminal)
