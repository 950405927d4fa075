"""Ambiguity, recursion of every kind and deep nesting: exact, and at bounded cost."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import glrgrid as gg

Rules = dict[str, list[str]]
"""Right-hand sides by nonterminal; a letter that is no key is a terminal, and "" is empty."""

BASIC = '%glrgrid {"lexer": "basic"}\n'
TOPS = 8
"""More stack tops than any of the grammars below ever needs at once."""


@pytest.fixture(scope="module")
def vocab() -> gg.Vocab:
    """Every byte a token, then the end."""
    return gg.Vocab([*(bytes([b]) for b in range(256)), b"<end>"], [256])


def matcher_of(vocab: gg.Vocab, lark: str) -> gg.Matcher:
    return gg.Matcher(gg.compile(gg.Grammar.from_lark(BASIC + lark), vocab))


def take(matcher: gg.Matcher, data: bytes) -> bool:
    """Whether all of the bytes are accepted; they count as one step."""
    taken = matcher.accept_bytes(data)
    branches, tops = matcher.branch_counts
    assert branches <= 2 and tops <= TOPS, (branches, tops)
    return taken == len(data)


def allowed(matcher: gg.Matcher) -> set[str]:
    """The bytes allowed next, and "" if the output may end."""
    try:
        return {"" if i == 256 else chr(i) for i in matcher.mask().nonzero()[0]}
    except gg.DeadEnd:
        return set()


# The reference for long ambiguous texts, where explicit stacks would be too many: an Earley recogniser.

Item = tuple[str, str, int, int]


def earley(rules: Rules, text: str) -> Iterator[set[str]]:
    """What may come next after each prefix of the text."""
    nullable: set[str] = set()
    while True:
        more = {lhs for lhs, alts in rules.items() if any(all(s in nullable for s in alt) for alt in alts)}
        if more == nullable:
            break
        nullable = more
    chart: list[set[Item]] = []
    scanned: set[Item] = {("^", "s", 0, 0)}
    for at in range(len(text) + 1):
        items: set[Item] = set()
        chart.append(items)
        todo = list(scanned)
        while todo:
            item = todo.pop()
            if item in items:
                continue
            items.add(item)
            lhs, rhs, dot, origin = item
            if dot == len(rhs):
                todo += [
                    (over, body, there + 1, start)
                    for over, body, there, start in chart[origin]
                    if body[there : there + 1] == lhs
                ]
            elif rhs[dot] in rules:
                todo += [(rhs[dot], body, 0, at) for body in rules[rhs[dot]]]
                if rhs[dot] in nullable:
                    todo.append((lhs, rhs, dot + 1, origin))
        following = {rhs[dot] for _, rhs, dot, _ in items if dot < len(rhs) and rhs[dot] not in rules}
        yield following | ({""} if ("^", "s", 1, 0) in items else set())
        scanned = {
            (lhs, rhs, dot + 1, origin)
            for lhs, rhs, dot, origin in items
            if at < len(text) and rhs[dot : dot + 1] == text[at]
        }


def as_lark(rules: Rules) -> str:
    def body(alternative: str) -> str:
        return " ".join(f"r{s}" if s in rules else f'"{s}"' for s in alternative)

    lines = [f"r{lhs}: " + " | ".join(body(alt) for alt in alts) for lhs, alts in rules.items()]
    return "start: rs\n" + "\n".join(lines)


def check_against_earley(vocab: gg.Vocab, rules: Rules, rng: random.Random, length: int) -> int:
    """Follow a random text and compare what may follow each prefix; return how long it was."""
    compiled = gg.compile(gg.Grammar.from_lark(BASIC + as_lark(rules)), vocab)
    matcher = gg.Matcher(compiled)
    lr_states = compiled.stats["lr_states"]
    masks = [allowed(matcher)]
    text = ""
    while len(text) < length and masks[-1] - {""}:
        text += rng.choice(sorted(masks[-1] - {""}))
        assert matcher.accept_token(ord(text[-1]))
        assert matcher.branch_counts <= (1, lr_states)
        masks.append(allowed(matcher))
    for at, expected in enumerate(earley(rules, text)):
        assert masks[at] == expected, f"after {text[:at]!r} of {rules}"
    matcher.rollback(len(text) - len(text) // 2)
    assert allowed(matcher) == masks[len(text) // 2]
    return len(text)


AMBIGUOUS: list[Rules] = [
    {"s": ["ss", "a"]},
    {"s": ["ss", "a", ""]},
    {"s": ["sss", "ss", "a"]},
    {"s": ["ss", "s+s", "a"]},
    {"s": ["ss", "s+s", "s*s", "(s)", "a"]},
    {"s": ["asa", "a", "b", ""]},
    {"s": ["ss", "t"], "t": ["tt", "a", "st", "b"]},
    {"s": ["isels", "is", "a"]},
    {"s": ["tu", "ut"], "t": ["ta", "a", ""], "u": ["au", "bu", ""]},
    {"s": ["tsa", "b"], "t": ["", "c"]},
    {"s": ["t", "a"], "t": ["s", "ut", "sa"], "u": ["", "b"]},
    {"s": ["asb", "sb", "as", "ss", "c"]},
]


@pytest.mark.parametrize("rules", AMBIGUOUS, ids=as_lark)
def test_exact_where_explicit_stacks_would_be_too_many(vocab: gg.Vocab, rules: Rules) -> None:
    rng = random.Random(5)
    assert max(check_against_earley(vocab, rules, rng, 45) for _ in range(4)) > 5


@pytest.mark.filterwarnings("ignore::glrgrid.GrammarWarning")
def test_exact_on_random_ambiguous_grammars(vocab: gg.Vocab) -> None:
    rng = random.Random(17)
    long_ones = 0
    for _ in range(150):
        names = "stu"[: rng.randint(1, 3)]
        rules = {}
        for name in names:
            bodies = [
                "".join(rng.choices(names * 2 + "abc", k=rng.choice((0, 1, 2, 2, 3, 3)))) for _ in range(3)
            ]
            rules[name] = sorted({*bodies, rng.choice("abc")})
        long_ones += check_against_earley(vocab, rules, rng, 24) == 24
    assert long_ones > 75


@pytest.mark.parametrize("text", ["i" * 160, "i+" * 80 + "i", "ii+" * 50 + "i", "i+i" * 50])
def test_expressions_side_by_side_and_with_operators(vocab: gg.Vocab, text: str) -> None:
    matcher = matcher_of(vocab, 'start: e\ne: e e | e "+" e | "i"')
    assert take(matcher, text.encode())
    assert allowed(matcher) == {"i", "+", ""}
    assert not take(matcher, b"++")
    assert allowed(matcher) == {"i"}


def test_dangling_else(vocab: gg.Vocab) -> None:
    matcher = matcher_of(vocab, 'start: s\ns: "i" s | "i" s "e" s | "x"')
    assert take(matcher, b"i" * 12 + b"x")
    for left in range(12, 0, -1):
        assert allowed(matcher) == {"e", ""}, left
        assert take(matcher, b"ex")
    assert allowed(matcher) == {""}


@pytest.mark.parametrize(
    ("lark", "element"),
    [
        ('start: l\nl: "a" "," l | "a"', b"a,"),
        ('start: l\nl: "a" l | "a"', b"a"),
        ('start: l\nl: "a" t\nt: "," "a" t | ', b"a,"),
        ('start: l\nl: e "," l | e\ne: "a" | "(" l ")"', b"(a),"),
    ],
)
def test_right_recursion(vocab: gg.Vocab, lark: str, element: bytes) -> None:
    matcher = matcher_of(vocab, lark)
    empty = allowed(matcher)
    assert take(matcher, element * 9_999) and take(matcher, element.rstrip(b","))
    assert "" in allowed(matcher)
    assert not take(matcher, b")")
    fork = matcher.fork()
    matcher.rollback()
    fork.reset()
    assert allowed(fork) == empty
    matcher.reset()
    assert allowed(matcher) == empty


@pytest.mark.parametrize("between", ["", '";"'])
def test_statement_lists_closed_by_a_keyword(vocab: gg.Vocab, between: str) -> None:
    """Until the keyword, another statement may follow; what closes the list is also how a name could go on."""
    lark = (
        f'start: s\ns: assign | block\nblock: "begin" list "end"\nlist: s {between} list | s {between}\n'
        'assign: NAME "=" NAME\nNAME: /[a-z]+/\n%ignore " "\n'
    )
    matcher = matcher_of(vocab, lark)
    end = b"; " if between else b" "
    body = b"begin " + (b"x = y" + end) * 500 + b"begin endx = ends" + end + b"end" + end
    assert take(matcher, body)
    assert matcher.branch_counts == (1, 1)
    assert take(matcher, b"end")
    assert matcher.is_accepting()
    assert not take(matcher, b" x")


def test_nesting_as_deep_as_5000(vocab: gg.Vocab) -> None:
    matcher = matcher_of(vocab, 'start: e\ne: e "+" t | t\nt: "(" e ")" | "x"')
    assert take(matcher, b"(" * 5_000)
    fork = matcher.fork()
    assert take(matcher, b"x" + b")" * 4_999)
    assert allowed(matcher) == {"+", ")"}
    assert take(matcher, b")")
    assert allowed(matcher) == {"+", ""}
    assert take(fork, b"x+x")
    fork.reset()
    assert allowed(fork) == {"(", "x"}
    matcher.rollback(3)
    assert allowed(matcher) == {"(", "x"}


def test_ambiguous_nesting_as_deep_as_5000(vocab: gg.Vocab) -> None:
    matcher = matcher_of(vocab, 'start: e\ne: e e | "(" e ")" | "x"')
    assert take(matcher, b"(x" * 5_000)
    assert allowed(matcher) == {"(", ")", "x"}
    assert take(matcher, b")" * 5_000)
    assert allowed(matcher) == {"(", "x", ""}
    matcher.reset()
    assert allowed(matcher) == {"(", "x"}


@pytest.mark.parametrize(
    "lark",
    [
        'start: s\ns: t s "a" | "b"\nt: | "c"',
        'start: s\ns: t u s "a" | "b"\nt: | "c"\nu: t | t t',
    ],
)
def test_hidden_left_recursion(vocab: gg.Vocab, lark: str) -> None:
    matcher = matcher_of(vocab, lark)
    assert take(matcher, b"c" * 200 + b"b")
    assert take(matcher, b"a" * 99)
    assert "a" in allowed(matcher)
    assert take(matcher, b"a" * 101)
    assert "" in allowed(matcher)
    assert allowed(matcher) == {"a", ""}


@pytest.mark.parametrize(
    "lark", ['start: s\ns: s | "a" s |', 'start: s\ns: t | "a" s | "b"\nt: s | u\nu: t | t u']
)
def test_cycles(vocab: gg.Vocab, lark: str) -> None:
    matcher = matcher_of(vocab, lark)
    assert take(matcher, b"a" * 2_000)
    assert "a" in allowed(matcher)
    fork = matcher.fork()
    matcher.rollback()
    assert allowed(matcher) == allowed(gg.Matcher(gg.compile(gg.Grammar.from_lark(BASIC + lark), vocab)))
    assert "a" in allowed(fork)


def nullable_chain(depth: int) -> gg.Grammar:
    """Up to ``2 ** depth`` letters, each half of which may be any, then a full stop."""
    links = "".join(f"a{i}: a{i + 1} a{i + 1}\n" for i in range(depth))
    return gg.Grammar.from_lark(f'{BASIC}start: a0 "."\n{links}a{depth}: "x" |\n')


LONGEST = 40
RUNS = gg.Vocab(
    [*(bytes([b]) for b in range(256)), *(b"x" * n for n in range(2, LONGEST + 1)), b"<end>"], [295]
)
"""Every byte, and runs of x: the run of n is token 254 + n."""


@pytest.mark.parametrize(
    ("mode", "depth"),
    [("aot", 3), ("aot", 5), ("aot", 8), ("lazy", 3), ("lazy", 5), ("lazy", 8), ("lazy", 30)],
)
def test_chains_of_nullable_halves(mode: str, depth: int) -> None:
    matcher = gg.Matcher(gg.compile(nullable_chain(depth), RUNS, mode=mode))
    taken = 0
    for run in (1, 2, 5, 20, 37):
        runs = {n for n in range(1, LONGEST + 1) if taken + n <= 2**depth}
        tokens = {ord("x") if n == 1 else 254 + n for n in runs}
        assert set(matcher.mask().nonzero()[0]) == {ord("."), *tokens}
        if run not in runs:
            break
        assert matcher.accept_token(ord("x") if run == 1 else 254 + run)
        taken += run
