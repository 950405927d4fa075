"""Walks every way to serve a grammar beside the reference and counts what was met on the way."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from strategies import Case

import glrgrid as gg
from glrgrid import _native
from glrgrid.reference.oracle import State, TooManyBranches, Trial

EOS_BYTES = b"\xff<end>"
WIDE_IDS = 70_000
"""Ids of a wide vocabulary: enough bitmask words for dense rows, and for rows stored as differences."""

MOST_ENTRIES = 1000
"""Entries of all stacks together with which a walk ends: the reference compares and hashes them whole."""


def variants(
    ir: str, vocab: _native.Vocab, **tuning: int
) -> dict[str, Callable[[], _native.CompiledGrammar]]:
    """Every way to serve a grammar; all of them must agree. Add here what is to be compared."""
    compiled = _native.compile(ir, vocab, **tuning)
    limited = _native.compile(ir, vocab, max_seconds=1e-9, **tuning)
    return {
        "aot": lambda: compiled,
        "reloaded": lambda: _native.load(compiled.to_bytes(), vocab),
        "lazy": lambda: _native.compile(ir, vocab, lazy=True, **tuning),
        "partial, reloaded": lambda: _native.load(limited.to_bytes(), vocab),
    }


@dataclass
class Walks:
    """Counters of a run; every one of them must be positive, or the run has not tested what it claims to."""

    counts: Counter[str] = field(default_factory=Counter)

    def check_floors(self, floors: dict[str, int]) -> None:
        short = {name: self.counts[name] for name, floor in floors.items() if self.counts[name] < floor}
        assert not short, f"too few of {short}; expected at least {floors}; all counts: {dict(self.counts)}"


@dataclass(frozen=True)
class Subject:
    """A case compiled in every way.

    Attributes
    ----------
    compiled : dict
        Compiled grammars by variant.
    tokens : list of bytes or None
        What ids can spell; behind them stands what ends the output.
    spelling : int array of shape (ids,)
        For each id its index in ``tokens``, or ``len(tokens)`` if it ends the output.
    """

    case: Case
    compiled: dict[str, _native.CompiledGrammar]
    tokens: list[bytes | None]
    spelling: np.ndarray

    def ids_of(self, index: int) -> np.ndarray:
        return np.flatnonzero(self.spelling == index)

    def stats(self) -> dict[str, Any]:
        """Figures of the build, and how many there are of what in the artifact."""
        aot = self.compiled["aot"]
        return {**aot.stats, **_native.inspect(aot.to_bytes())["counts"]}


def compile_case(case: Case, rng: random.Random, wide: bool = False) -> Subject:
    """Compile a case. Tuning is drawn, so that every kind of recipe is met.

    ``wide`` spreads the tokens over many ids; otherwise each has one, and the last ids end the output.
    """
    tokens = [t if t else None for t in case.tokens]
    end = len(tokens)
    spelling = np.array([*range(end), *([end] * rng.choice((1, 1, 2)))])
    if wide:
        # Some tokens are nearly everywhere, some are rare; runs of one token touch few words.
        shares = np.array(rng.sample([1 / i for i in range(1, end + 1)], end))
        many = np.random.default_rng(rng.randrange(2**32)).choice(end, WIDE_IDS, p=shares / shares.sum())
        spelling = np.concatenate([spelling, np.sort(many[: WIDE_IDS // 4]), many[WIDE_IDS // 4 :]])
    spelled = [*tokens, EOS_BYTES]
    vocab = _native.Vocab([spelled[i] for i in spelling], np.flatnonzero(spelling == end).tolist())
    made = variants(
        case.ir.to_json(),
        vocab,
        shared_tokens=rng.choice([0, 3, 10, 2048]),
        min_agreement=rng.choice([0, 1, 4, 256]),
        overlapping_sets=rng.choice([0, 1, 64]),
        # By the grammar, so that what else is drawn stays the same.
        copied_states=random.Random(case.ir.to_json()).choice([0, 0, 20, 6000]),
    )
    return Subject(case, {name: make() for name, make in made.items()}, tokens, spelling)


class Lanes:
    """One matcher of each variant, driven side by side; ``where`` tells of a difference."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.matchers = {name: _native.Matcher(compiled) for name, compiled in subject.compiled.items()}
        self.row = np.zeros(-(-len(subject.spelling) // 32), np.int32)

    def __iter__(self):
        return iter(self.matchers.items())

    def check(self, expected: list[bool], where: str) -> bool:
        """Compare masks, and completeness. Returns whether it is a dead end."""
        wanted = np.array(expected)[self.subject.spelling]
        bits = np.packbits(wanted, bitorder="little")
        for name, matcher in self:
            self.row[:] = -1
            try:
                matcher.fill_next_token_bitmask(self.row)
            except gg.DeadEnd:
                assert not wanted.any(), f"{name}: dead end {where}"
            found = self.row.view(np.uint8)
            if not (found[: len(bits)] == bits).all() or found[len(bits) :].any():
                self.explain(name, wanted, where)
            assert matcher.is_accepting() == expected[-1], f"{name}: wrongly complete or not {where}"
        return not wanted.any()

    def explain(self, name: str, wanted: np.ndarray, where: str) -> None:
        found = np.unpackbits(self.row.view(np.uint8), bitorder="little").astype(bool)
        ids = np.flatnonzero(found[: len(wanted)] != wanted)[:20]
        spelled = [*self.subject.tokens, b"<eos>"]
        wrong = [(int(i), spelled[self.subject.spelling[i]], bool(found[i])) for i in ids]
        raise AssertionError(f"{name}: mask differs at (id, token, engine says) {wrong} {where}")

    def accept(self, token: int, allowed: bool, where: str) -> None:
        for name, matcher in self:
            assert matcher.accept_token(token) == allowed, (
                f"{name}: token {token} should be {allowed} {where}"
            )

    def validate(self, ids: list[int], expected: int, where: str) -> None:
        for name, matcher in self:
            assert matcher.validate_tokens(ids) == expected, f"{name}: validating {ids} {where}"

    def rollback(self, steps: int) -> Lanes:
        """Undo steps, in a copy half of the time. Returns lanes that are left in the former state."""
        former = Lanes(self.subject)
        for name, matcher in self:
            copy = matcher.fork()
            if steps % 2:
                matcher, copy = copy, matcher
            matcher.rollback(steps)
            self.matchers[name], former.matchers[name] = matcher, copy
        return former

    def restart(self) -> None:
        for _, matcher in self:
            matcher.reset()


def walk(
    subject: Subject, lanes: Lanes, rng: random.Random, walks: Walks, follow: bytes | None, steps: int
) -> None:
    """Take one path, along ``follow`` where it can, comparing mask, acceptance and completeness at every position."""
    oracle, counts = subject.case.oracle, walks.counts
    counts["walks"] += 1
    state: State = oracle.start()
    tokens, states = subject.tokens, [state]
    path: list[int] = []
    taken = b""
    in_ignored = False
    try:
        for _ in range(steps):
            expected = [*oracle.mask(state, tokens), oracle.is_accepting(state)]
            where = f"after {taken!r} of\n{subject.case.ir}\ntokens {tokens}"
            counts["dead ends"] += lanes.check(expected, where)
            counts["positions"] += 1
            counts["live watcher"] += state.has_watcher
            counts["ambiguous"] += any(matcher.branch_counts > (1, 1) for _, matcher in lanes)
            depth = max((len(b.stack) for b in state.branches if isinstance(b.stack, tuple)), default=0)
            if len(state.branches) * depth > MOST_ENTRIES:
                raise TooManyBranches
            counts["stack over 16"] += depth > 16
            counts["stack over 64"] += depth > 64
            if rng.random() < 0.2:
                refused = rng.randrange(len(subject.spelling))
                if not expected[subject.spelling[refused]]:
                    lanes.accept(refused, False, where)
                    counts["refusals"] += 1
            if path and rng.random() < 0.07:
                back = rng.randint(1, min(len(path), rng.choice((2, 2, 2, 99))))
                former = lanes.rollback(back)
                former.check(expected, f"left behind by a rollback {where}")
                del path[-back:], states[-back:]
                state = states[-1]
                taken = b"".join(tokens[i] or b"" for i in path)
                in_ignored = False
                counts["rollbacks"] += 1
                continue
            allowed = [i for i in range(len(tokens)) if expected[i]]
            if not allowed:
                break
            along = [i for i in allowed if follow and follow.startswith(taken + (tokens[i] or b"?"))]
            token = rng.choice(along or allowed)
            data = tokens[token]
            assert data is not None
            trial = oracle.trial(state, data)
            assert trial.state is not None
            count_events(counts, trial, in_ignored)
            id_ = int(rng.choice(subject.ids_of(token)))
            if rng.random() < 0.1:
                after = oracle.mask(trial.state, tokens)
                other = rng.randrange(len(tokens))
                second = int(rng.choice(subject.ids_of(other)))
                lanes.validate([id_, second], 1 + after[other], where)
            lanes.accept(id_, True, where)
            state, in_ignored = trial.state, trial.in_ignored
            path.append(token)
            states.append(state)
            taken += data
    except TooManyBranches:
        counts["too ambiguous for the reference"] += 1


def walk_some(case: Case, rng: random.Random, walks: Walks, number: int = 4) -> None:
    """Take a few short paths through a case."""
    subject = compile_case(case, rng)
    for _ in range(number):
        follow = rng.choice(case.texts) if case.texts and rng.random() < 0.6 else None
        walk(subject, Lanes(subject), rng, walks, follow, rng.randint(3, 14))


def count_events(counts: Counter[str], trial: Trial, in_ignored: bool) -> None:
    """Count what a token did; ``in_ignored``: the one before may have ended inside of an ignored lexeme."""
    counts["three terminals"] += trial.emitted >= 3
    counts["eight terminals"] += trial.emitted >= 8
    counts["ends in ignored"] += trial.in_ignored
    counts["ignored split"] += in_ignored and trial.in_ignored and trial.emitted == 0
    counts["fallback"] += trial.fallback
    counts["reject"] += trial.reject
    counts["fork"] += trial.fork
    counts["group change inside a token"] += trial.regrouped
