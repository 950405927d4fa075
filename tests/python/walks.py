"""Walks the engine and the reference side by side and counts what was met on the way."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from strategies import Case

import glrgrid as gg
from glrgrid import _native
from glrgrid.reference.oracle import State, TooManyBranches

EOS_BYTES = b"\xff<end>"


@dataclass
class Walks:
    """Counters of a run; every one of them must be positive, or the run has not tested what it claims to."""

    counts: Counter[str] = field(default_factory=Counter)

    def check_floors(self, floors: dict[str, int]) -> None:
        short = {name: self.counts[name] for name, floor in floors.items() if self.counts[name] < floor}
        assert not short, f"too few of {short}; expected at least {floors}; all counts: {dict(self.counts)}"


def compile_case(case: Case, rng: random.Random) -> tuple[_native.CompiledGrammar, list[bytes | None], int]:
    """Compile a case; the last id ends the output. Tuning is drawn, so that every kind of recipe is met."""
    tokens = [t if t else None for t in case.tokens]
    eos = len(tokens)
    vocab = _native.Vocab([*tokens, EOS_BYTES], [eos])
    compiled = _native.compile(
        case.ir.to_json(),
        vocab,
        shared_tokens=rng.choice([0, 3, 10, 2048]),
        min_agreement=rng.choice([0, 1, 4, 256]),
    )
    if rng.random() < 0.3:
        compiled = _native.load(compiled.to_bytes(), vocab)
    return compiled, tokens, eos


def walk(
    case: Case,
    compiled: _native.CompiledGrammar,
    tokens: list[bytes | None],
    eos: int,
    rng: random.Random,
    walks: Walks,
) -> None:
    """Take one random path, comparing mask, acceptance and completeness at every position."""
    oracle = case.oracle
    counts = walks.counts
    counts["walks"] += 1
    matcher = _native.Matcher(compiled)
    state: State = oracle.start()
    path: list[int] = []
    states = [state]
    follow = rng.choice(case.texts) if case.texts and rng.random() < 0.6 else None
    taken = b""
    try:
        for _ in range(rng.randint(3, 14)):
            expected = [*oracle.mask(state, tokens), oracle.is_accepting(state)]
            where = f"after {taken!r} of\n{case.ir}\ntokens {tokens}"
            try:
                found = matcher.mask().tolist()
            except gg.DeadEnd:
                counts["dead ends"] += 1
                found = [False] * len(expected)
            if found != expected:
                wrong = [
                    (i, [*tokens, b"<eos>"][i], found[i])
                    for i in range(len(found))
                    if found[i] != expected[i]
                ]
                raise AssertionError(f"mask differs at (id, token, engine says) {wrong} {where}")
            assert matcher.is_accepting() == expected[eos], where
            counts["positions"] += 1
            counts["live watcher"] += state.has_watcher
            counts["ambiguous"] += matcher.branch_counts > (1, 1)
            if rng.random() < 0.2:
                refused = rng.randrange(len(expected))
                if not expected[refused]:
                    assert not matcher.accept_token(refused), where
                    counts["refusals"] += 1
            if path and rng.random() < 0.1:
                back = rng.randint(1, len(path))
                other = matcher.fork()
                matcher.rollback(back)
                del path[-back:], states[-back:]
                state = states[-1]
                taken = b"".join(tokens[i] or b"" for i in path)
                follow = None
                assert not any(expected) or other.mask().tolist() == expected
                counts["rollbacks"] += 1
                continue
            allowed = [i for i in range(eos) if expected[i]]
            if not allowed:
                break
            along = [i for i in allowed if follow and follow.startswith(taken + (tokens[i] or b"?"))]
            token = rng.choice(along or allowed)
            data = tokens[token]
            assert data is not None
            trial = oracle.trial(state, data)
            assert trial.state is not None
            counts["three terminals"] += trial.emitted >= 3
            counts["ends in ignored"] += trial.in_ignored
            counts["fallback"] += trial.fallback
            counts["reject"] += trial.reject
            counts["fork"] += trial.fork
            assert matcher.accept_token(token), where
            state = trial.state
            path.append(token)
            states.append(state)
            taken += data
    except TooManyBranches:
        counts["too ambiguous for the reference"] += 1
