"""Token terminals: the engine beside the reference on random grammars, and what they mean in Lark."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from strategies import Case, random_case
from walks import Lanes, Subject, variants

from glrgrid import _native
from glrgrid.grammar.ir import GrammarIR, Production, Terminal
from glrgrid.reference.oracle import Oracle, TooManyBranches

CASES = 150
FLOORS = {
    "positions": 4_000,
    "by symbol alone": 300,
    "by bytes alone": 2_000,
    "either way": 300,
    "end id as a symbol": 20,
    "symbol ends a pending lexeme": 100,
    "several symbols": 50,
    "watched": 3,
    "rollbacks": 100,
    "bytes": 100,
    "forced": 10,
    "refused by explain": 200,
}


def with_tokens(rng: random.Random, ir: GrammarIR, ids: int) -> GrammarIR:
    """Put token terminals into the productions of a grammar."""
    terminals, productions = list(ir.terminals), list(ir.productions)
    for number in range(rng.randint(1, 3)):
        ranges = sorted(
            sorted((rng.randrange(ids), rng.randrange(ids))) for _ in range(rng.choice((1, 1, 2, 3)))
        )
        if rng.random() < 0.5:
            ranges = [[low, low] for low, _ in ranges]
        negated = rng.random() < 0.2
        expr = ("tokens", negated, tuple(map(tuple, ranges)), ())
        if negated and all(any(low <= i <= high for low, high in ranges) for i in range(ids)):
            expr = ("tokens", True, (), ())
        symbol = len(terminals)
        terminals.append(Terminal(f"<{number}>", expr))
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(productions))
            old = productions[at]
            place = rng.randint(0, len(old.rhs))
            new = Production(
                old.lhs, (*old.rhs[:place], symbol, *old.rhs[place + (rng.random() < 0.3) :]), old.name
            )
            if rng.random() < 0.4:
                productions[at] = new
            elif new not in productions:
                productions.append(new)
    return replace(ir, terminals=tuple(terminals), productions=tuple(productions))


def token_case(rng: random.Random, lexer: str) -> Case:
    while True:
        family = {"family": rng.choice(("number", "comment"))} if rng.random() < 0.4 else {}
        case = random_case(rng, lexer=lexer, **family)
        tokens = (*case.tokens, None, None)
        try:
            ir = with_tokens(rng, case.ir, len(tokens))
            oracle = Oracle(ir, max_branches=300, ids=len(tokens))
            oracle.mask_ids(oracle.start(), tokens)
            return replace(case, ir=ir, tokens=tokens, oracle=oracle)
        except (ValueError, TooManyBranches):
            continue  # no sentence is left, or too many ways


def subject_of(case: Case, rng: random.Random) -> Subject:
    """The last id ends the output."""
    tokens = [token or None for token in case.tokens]
    vocab = _native.Vocab(tokens, [len(tokens) - 1])
    tuning = {"shared_tokens": rng.choice([0, 3, 10, 2048]), "min_agreement": rng.choice([0, 1, 4, 256])}
    compiled = {name: make() for name, make in variants(case.ir.to_json(), vocab, **tuning).items()}
    return Subject(case, compiled, tokens, np.arange(len(tokens)))


def walk(subject: Subject, rng: random.Random, counts: Counter[str], steps: int) -> None:
    oracle, tokens, lanes = subject.case.oracle, subject.tokens, Lanes(subject)
    end = len(tokens) - 1
    states = [oracle.start()]
    for _ in range(steps):
        state = states[-1]
        accepting = oracle.is_accepting(state)
        expected = oracle.mask_ids(state, tokens)
        by_bytes = oracle.mask(state, tokens)
        as_symbol = [oracle.advance(state, [256 + i]) is not None for i in range(len(tokens))]
        counts["end id as a symbol"] += as_symbol[end]
        where = f"after {lanes.matchers['aot']!r} of\n{subject.case.ir}\ntokens {tokens}"
        expected[end] |= accepting
        lanes.check([*expected, accepting], where)
        counts["positions"] += 1
        counts["watched"] += state.has_watcher and any(as_symbol)
        counts["several symbols"] += len(state.branches) > 1 and any(as_symbol)
        check_people(lanes, rng, expected, accepting, counts, where)
        refused = rng.randrange(len(tokens))
        if not expected[refused]:
            lanes.accept(refused, False, where)
        if len(states) > 1 and rng.random() < 0.1:
            back = rng.randint(1, min(3, len(states) - 1))
            lanes.rollback(back)
            del states[-back:]
            counts["rollbacks"] += 1
            continue
        if rng.random() < 0.1 and any(tokens):
            data = rng.choice([t for t in tokens if t])
            after = oracle.start() if not data else next_bytes(oracle, state, data)
            for name, matcher in lanes:
                assert (matcher.fork().accept_bytes(data) == len(data)) == (after is not None), (
                    name,
                    data,
                    where,
                )
            counts["bytes"] += 1
        allowed = [i for i in range(len(tokens)) if expected[i] and not (i == end and accepting)]
        if not allowed:
            break
        symbols = [i for i in allowed if as_symbol[i]]
        token = rng.choice(symbols if symbols and rng.random() < 0.4 else allowed)
        counts["by symbol alone"] += as_symbol[token] and not by_bytes[token]
        counts["by bytes alone"] += by_bytes[token] and not as_symbol[token]
        counts["either way"] += by_bytes[token] and as_symbol[token]
        pending = all(branch.pending is not None for branch in state.branches)
        counts["symbol ends a pending lexeme"] += as_symbol[token] and pending
        following = oracle.accept(state, token, tokens[token])
        assert following is not None
        lanes.accept(token, True, where)
        states.append(following)


def next_bytes(oracle: Oracle, state, data: bytes):
    """The state after bytes that are taken one by one, each under the mask rule."""
    for byte in data:
        state = oracle.advance(state, [byte])
        if state is None:
            return None
    return state


def check_people(
    lanes: Lanes, rng: random.Random, expected: list[bool], accepting: bool, counts: Counter[str], where: str
) -> None:
    """What is forced, and what is explained."""
    allowed = np.flatnonzero(expected)
    asked = rng.randrange(len(expected))
    for name, matcher in lanes:
        forced = matcher.forced_tokens()
        assert bool(forced) == (len(allowed) == 1 and not accepting), (name, forced, where)
        if forced:
            counts["forced"] += 1
            assert forced[0] == allowed[0]
            assert matcher.validate_tokens(forced) == len(forced)
        assert matcher.fork().accept_bytes(matcher.forced_bytes()) == len(matcher.forced_bytes())
        explained = matcher.explain(asked)
        assert explained.allowed == expected[asked], (name, asked, explained, where)
        counts["refused by explain"] += not explained.allowed


def batch(lexer: str, seeds: range) -> Counter[str]:
    counts: Counter[str] = Counter()
    for seed in seeds:
        rng = random.Random(f"tokens {lexer} {seed}")
        subject = subject_of(token_case(rng, lexer), rng)
        try:
            for _ in range(4):
                walk(subject, rng, counts, rng.randint(4, 14))
        except TooManyBranches:
            counts["too ambiguous"] += 1
        except AssertionError as error:
            raise AssertionError(f"tokens {lexer} {seed}: {error}") from None
    return counts


@pytest.mark.parametrize("lexer", ["basic", "contextual"])
def test_masks_equal_the_reference(lexer: str) -> None:
    times = int(os.environ.get("GLRGRID_FUZZ_TIMES", "1"))
    counts = batch(lexer, range(CASES * times))
    short = {name: counts[name] for name, floor in FLOORS.items() if counts[name] < floor * times}
    assert not short, counts


if __name__ == "__main__":
    import sys

    seed = int(sys.argv[2])
    if len(sys.argv) > 3:
        until = time.monotonic() + float(sys.argv[3])
        total: Counter[str] = Counter()
        while time.monotonic() < until:
            total += batch(sys.argv[1], range(seed, seed + 1))
            seed += 1
        print(seed, dict(total))
    else:
        print(dict(batch(sys.argv[1], range(seed, seed + 1))))
