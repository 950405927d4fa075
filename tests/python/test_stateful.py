"""Any interleaving of calls leaves a matcher as a fresh one that replays what was accepted and not undone."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import glrgrid as gg
from glrgrid import grammars

VOCAB = gg.Vocab.default()
EOS = VOCAB.eos_ids[0]
TEXTS = {
    "calc": [b"1", b"12.5e", b" + ", b"f(x, ", b")", b"-(", b"1e", b"* 3", b"?"],
    "json": [b'{"a": ', b"[1, ", b"2]", b"null", b'"x\\u00', b"4fz", b"}", b"]", b" ", b"-"],
    "sql_core": [b"SELECT ", b"a, b ", b"FROM t", b" WHERE x = ", b"'it''", b"1", b";", b"--", b"(", b"WITH"],
}

Step = int | bytes


@functools.cache
def compiled(name: str) -> gg.CompiledGrammar:
    return gg.compile(gg.Grammar.from_lark(grammars.load(name)), VOCAB)


def replay(name: str, steps: list[Step]) -> gg.Matcher:
    matcher = gg.Matcher(compiled(name))
    for step in steps:
        if isinstance(step, bytes):
            assert matcher.accept_bytes(step) == len(step)
        else:
            assert matcher.accept_token(step)
    return matcher


@dataclass
class Sequence:
    """A matcher, and what it should have accepted."""

    matcher: gg.Matcher
    steps: list[Step] = field(default_factory=list)

    @property
    def terminated(self) -> bool:
        return bool(self.steps) and self.steps[-1] == EOS


def allowed(matcher: gg.Matcher) -> list[int]:
    if matcher.is_terminated():
        return []
    return [int(token) for token in np.flatnonzero(matcher.mask())]


class Interleavings(RuleBasedStateMachine):
    """Several sequences of one grammar, related by forks; ``self.now`` is the one that calls go to."""

    @initialize(name=st.sampled_from(sorted(TEXTS)))
    def begin(self, name: str) -> None:
        self.name = name
        self.all = [Sequence(gg.Matcher(compiled(name)))]
        self.now = self.all[0]

    @rule(position=st.integers(min_value=0, max_value=10**6))
    def accept_allowed(self, position: int) -> None:
        if tokens := allowed(self.now.matcher):
            token = tokens[position % len(tokens)]
            assert self.now.matcher.accept_token(token)
            self.now.steps.append(token)

    @precondition(lambda self: self.now.matcher.is_accepting())
    @rule()
    def accept_end(self) -> None:
        if self.now.terminated:
            with pytest.raises(gg.StateError):
                self.now.matcher.accept_token(EOS)
        else:
            assert self.now.matcher.accept_token(EOS)
            self.now.steps.append(EOS)

    @rule(token=st.integers(min_value=-1, max_value=VOCAB.size))
    def accept_any(self, token: int) -> None:
        if self.now.terminated or not 0 <= token < VOCAB.size:
            with pytest.raises(gg.StateError):
                self.now.matcher.accept_token(token)
            return
        may = token in allowed(self.now.matcher)
        assert self.now.matcher.accept_token(token) == may
        if may:
            self.now.steps.append(token)

    @rule(index=st.integers(min_value=0, max_value=9))
    def accept_text(self, index: int) -> None:
        texts = TEXTS[self.name]
        text = texts[index % len(texts)]
        if self.now.terminated:
            with pytest.raises(gg.StateError):
                self.now.matcher.accept_bytes(text)
        elif taken := self.now.matcher.accept_bytes(text):
            self.now.steps.append(text[:taken])

    @rule(back=st.integers(min_value=0, max_value=12))
    def rollback(self, back: int) -> None:
        if back > len(self.now.steps):
            with pytest.raises(gg.StateError):
                self.now.matcher.rollback(back)
        elif back:
            self.now.matcher.rollback(back)
            del self.now.steps[-back:]
        else:
            self.now.matcher.rollback(0)

    @precondition(lambda self: len(self.all) < 4)
    @rule()
    def fork(self) -> None:
        self.all.append(Sequence(self.now.matcher.fork(), list(self.now.steps)))

    @rule(index=st.integers(min_value=0, max_value=3))
    def turn_to(self, index: int) -> None:
        self.now = self.all[index % len(self.all)]

    @rule()
    def reset(self) -> None:
        self.now.matcher.reset()
        self.now.steps.clear()

    @rule(data=st.data(), length=st.integers(min_value=0, max_value=6))
    def validate(self, data: st.DataObject, length: int) -> None:
        """Drafts that mostly begin well, against accepting them one by one on a fork."""
        other = self.now.matcher.fork()
        draft = []
        expected = None
        for _ in range(length):
            tokens = allowed(other) if expected is None else []
            good = bool(tokens) and data.draw(st.integers(0, 4)) > 0
            token = data.draw(st.sampled_from(tokens) if good else st.integers(0, VOCAB.size - 1))
            if expected is None and (other.is_terminated() or not other.accept_token(token)):
                expected = len(draft)
            draft.append(token)
        assert self.now.matcher.validate_tokens(draft) == (len(draft) if expected is None else expected)
        with pytest.raises(gg.StateError):
            self.now.matcher.validate_tokens([*draft, VOCAB.size])

    @rule()
    def look(self) -> None:
        """Calls that must not change anything."""
        self.now.matcher.expected_terminals()
        self.now.matcher.forced_tokens()
        repr(self.now.matcher)
        if not self.now.terminated:
            self.now.matcher.explain(17)

    @invariant()
    def equals_a_replay(self) -> None:
        matcher, fresh = self.now.matcher, replay(self.name, self.now.steps)
        assert matcher.steps == len(self.now.steps)
        assert matcher.is_terminated() == fresh.is_terminated() == self.now.terminated
        assert matcher.is_accepting() == fresh.is_accepting()
        assert matcher.branch_counts == fresh.branch_counts
        if self.now.terminated:
            with pytest.raises(gg.StateError):
                matcher.mask()
        else:
            assert np.array_equal(matcher.mask(), fresh.mask())

    def teardown(self) -> None:
        for sequence in getattr(self, "all", []):
            self.now = sequence
            self.equals_a_replay()


Interleavings.TestCase.settings = settings(
    max_examples=100, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
test_interleavings = Interleavings.TestCase


def test_rollback_over_an_accepted_end_and_after_refusals() -> None:
    matcher = gg.Matcher(compiled("calc"))
    assert matcher.accept_bytes(b"1 + 2") == 5
    before = matcher.mask()
    assert matcher.accept_token(EOS)
    assert matcher.is_terminated() and matcher.validate_tokens([EOS]) == 0
    matcher.rollback(1)
    assert not matcher.is_terminated()
    assert np.array_equal(matcher.mask(), before)
    refused = next(token for token in range(VOCAB.size) if not before[token])
    assert not matcher.accept_token(refused)
    assert matcher.steps == 1
    assert np.array_equal(matcher.mask(), before)
    assert matcher.accept_token(EOS)
    matcher.rollback(2)
    assert matcher.steps == 0 and matcher.accept_bytes(b"(") == 1


def test_validate_tokens() -> None:
    matcher = gg.Matcher(compiled("calc"))
    one, plus = VOCAB.tokens.index(b"1"), VOCAB.tokens.index(b"+")
    assert matcher.validate_tokens([]) == 0
    assert matcher.validate_tokens([one, plus, one, EOS]) == 4
    assert matcher.validate_tokens([one, plus, EOS]) == 2
    assert matcher.validate_tokens([one, EOS, one]) == 2
    assert matcher.validate_tokens(iter([EOS, one])) == 0
    assert matcher.validate_tokens(np.array([one, plus])) == 2
    for out_of_range in (-1, VOCAB.size, 2**70):
        with pytest.raises(gg.StateError, match="out of range"):
            matcher.validate_tokens([plus, out_of_range])
    assert matcher.steps == 0
