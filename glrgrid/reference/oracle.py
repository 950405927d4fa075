"""The executable specification of masks: try every token, byte by byte, on every branch.

A *branch* is one way to read the bytes so far: the lexer state of the unfinished lexeme (or none), the
watchers (longer matches that must not come true) and one parser stack. A :class:`State` is a set of branches.
Nothing here is fast; what is memoised is only ever a pure function of one branch.

:meth:`Oracle.accepts` is deliberately another algorithm: it cuts a whole text by longest match, as the
definition of the language says, and knows nothing of delayed emission or watchers.

Where the definitions leave room, this is what holds:

1. Inside :meth:`Oracle.advance` only branches with nothing live are dropped; the mask rule is applied once,
   at the end. Where separability fails, the cut into tokens can therefore matter.
2. A lexeme that ends in ``x`` is emitted as those of its candidates that are in ``live(x)``: traps are not
   followed. In a state that emits at once nothing stays pending, and the mask rule would no longer see one.
3. A terminal whose language is empty makes the productions that use it useless.
4. ``live`` counts every candidate, reject and unused terminals too; only the mask rule asks whether a
   stack can shift one.

Where a grammar has token terminals, a text is a sequence of letters: bytes, and tokens taken as one symbol (``TOKENS +
id``). A token may be read as either, its bytes or the symbol, and all readings are followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from glrgrid.grammar.ir import GrammarIR
from glrgrid.reference.cfg import Cfg
from glrgrid.reference.lexer import Lexer, Liveness, Report, TooManyBranches, Trap, Universe, Watchers
from glrgrid.reference.parser import EarleyParser, LrParser, Parser, Stack
from glrgrid.reference.regex import TOKENS, compile_expr

__all__ = ["Branch", "Oracle", "State", "TooManyBranches", "Trial"]


class Branch(NamedTuple):
    """One way to read the bytes so far."""

    pending: int | None
    """Lexer state of the unfinished lexeme, ``None`` if nothing is pending."""
    watchers: Watchers
    stack: Stack


@dataclass(frozen=True)
class State:
    """All the ways to read the bytes so far; immutable."""

    branches: frozenset[Branch]

    @property
    def has_watcher(self) -> bool:
        """Whether some branch depends on a longer match not coming true."""
        return any(branch.watchers for branch in self.branches)


class _Events(NamedTuple):
    """What one byte did to one branch."""

    emitted: int = 0
    """Lexemes ended, ignored ones included."""
    fallback: bool = False
    reject: bool = False
    fork: bool = False
    watcher: bool = False
    regrouped: bool = False
    """The next lexeme began, at once and in another universe."""

    def then(self, other: _Events) -> _Events:
        emitted = self.emitted + other.emitted
        return _Events(emitted, *(a or b for a, b in zip(self[1:], other[1:], strict=True)))

    def beside(self, other: _Events) -> _Events:
        emitted = max(self.emitted, other.emitted)
        return _Events(emitted, *(a or b for a, b in zip(self[1:], other[1:], strict=True)))


_Moves = list[tuple[Branch, _Events]]


@dataclass(frozen=True)
class Trial:
    """What trying some bytes showed; for tests that must know which paths they cover.

    Attributes
    ----------
    state : State or None
        Result of :meth:`Oracle.advance`.
    emitted : int
        Most lexemes, ignored ones included, that one surviving branch ended.
    in_ignored : bool
        A surviving branch has a pending lexeme that may be an ignored one.
    fallback, reject, fork, watcher : bool
        On the way, also on branches that died since: a cell filled by fallback was used; a reject terminal
        was a candidate; one lexeme led to several stacks; a longer match was watched.
    regrouped : bool
        Likewise: a lexeme was followed by another in another universe (a pending one that ended, in contextual mode).
    """

    state: State | None
    emitted: int
    in_ignored: bool
    fallback: bool
    reject: bool
    fork: bool
    watcher: bool
    regrouped: bool


class Oracle:
    """Trial lexing and parsing for one grammar.

    Parameters
    ----------
    ir
        The grammar, of either lexer mode.
    parser
        ``"lr"``, ``"earley"``, or ``None``: LR unless the grammar has hidden left recursion or a cycle and
        neither fallback nor contextual lexing, which are defined on the LR table.
    max_branches
        Explicit stacks grow exponentially under heavy ambiguity; beyond this many branches every method that
        steps raises :class:`TooManyBranches`.
    ids
        Size of the vocabulary, for grammars with token terminals.

    Raises
    ------
    ValueError
        The grammar derives no sentence, breaks a rule of the IR, or asks for a parser that cannot serve it.
    """

    def __init__(
        self, ir: GrammarIR, parser: str | None = None, max_branches: int = 2000, ids: int = 0
    ) -> None:
        self.ir = ir
        self.max_branches = max_branches
        dfas = [compile_expr(terminal.expr, ids) for terminal in ir.terminals]
        for terminal, dfa in zip(ir.terminals, dfas, strict=True):
            if dfa.accepting[0]:
                raise ValueError(f"terminal {terminal.name} matches the empty string")
        self.cfg = Cfg(ir, frozenset(t for t, dfa in enumerate(dfas) if dfa.is_empty()))
        self.lexer = Lexer(ir.terminals, dfas)
        self.contextual = ir.lexer == "contextual"
        needs_table = self.contextual or any(terminal.fallback is not None for terminal in ir.terminals)
        if parser is None:
            awkward = self.cfg.has_hidden_left_recursion() or self.cfg.has_cycle()
            parser = "earley" if awkward and not needs_table else "lr"
        if parser == "earley" and needs_table:
            raise ValueError("fallback and contextual lexing are defined on the LR table")
        self.parser: Parser = EarleyParser(self.cfg) if parser == "earley" else LrParser(self.cfg)
        self._everything: Universe = frozenset(range(len(ir.terminals)))
        self._everywhere = self.lexer.ignored | {
            t for t, terminal in enumerate(ir.terminals) if terminal.reject
        }
        self.liveness = Liveness(
            self.cfg, self.lexer, self.universe(self.parser.start()), self._universes_after
        )
        self._moves: dict[tuple[Branch, int], _Moves] = {}
        self._verdicts: dict[Branch, bool] = {}

    def universe(self, stack: Stack) -> Universe:
        """Return the terminals that take part in the longest match of a lexeme that starts on this stack."""
        if not self.contextual:
            return self._everything
        assert isinstance(self.parser, LrParser)
        return self._with_ignored(self.parser.row(stack))

    def _universes_after(self, terminal: int) -> Iterable[Universe]:
        if not self.contextual:
            return [self._everything] if terminal in self.cfg.usable else []
        assert isinstance(self.parser, LrParser)
        return [self._with_ignored(row) for row in self.parser.rows_after(terminal)]

    def _with_ignored(self, row: Universe) -> Universe:
        """A row with the ignored and reject terminals that belong to no part, or to that of another one."""
        scopes = {self.ir.terminals[t].scope for t in row if t < len(self.ir.terminals)} | {None}
        return row | {t for t in self._everywhere if self.ir.terminals[t].scope in scopes}

    def start(self) -> State:
        """Return the state before any byte."""
        return State(frozenset({Branch(None, frozenset(), self.parser.start())}))

    def readings(self, token_id: int, data: bytes | None) -> list[Sequence[int]]:
        """Return the letters that a token can be read as: its bytes, if it has any, and itself."""
        return [*([data] if data else []), [TOKENS + token_id]]

    def accept(self, state: State, token_id: int, data: bytes | None) -> State | None:
        """Return the state after a token; ``data`` is what it spells."""
        found = [self.advance(state, letters) for letters in self.readings(token_id, data)]
        branches = frozenset[Branch]().union(*(after.branches for after in found if after is not None))
        return State(branches) if branches else None

    def mask_ids(self, state: State, tokens: Sequence[bytes | None]) -> list[bool]:
        """Return for each id whether it may come next, ``tokens`` being all that the ids spell."""
        by_bytes = self.mask(state, tokens)
        return [spelt or self.advance(state, [TOKENS + i]) is not None for i, spelt in enumerate(by_bytes)]

    def advance(self, state: State, data: Sequence[int]) -> State | None:
        """Return the state after ``data``, ``None`` if no branch meets the mask rule there."""
        branches = state.branches
        for byte in data:
            branches = self._step_all(branches, byte)
        return self._survivors(branches)

    def mask(self, state: State, tokens: Sequence[bytes | None]) -> list[bool]:
        """Return for each token whether it may come next: the trial of every one. Empty ones may not.

        Cost: one step a byte; neighbours in sorted order share the steps of their common prefix.
        """
        verdict: dict[bytes, bool] = {}
        path = [state.branches]  # path[n]: the branches after n bytes of the previous token
        previous = b""
        for token in sorted({token for token in tokens if token}):
            shared = 0
            while shared < min(len(previous), len(token)) and previous[shared] == token[shared]:
                shared += 1
            del path[shared + 1 :]
            for byte in token[shared:]:
                path.append(self._step_all(path[-1], byte))
            previous = token
            verdict[token] = any(map(self._is_viable, path[-1]))
        return [token is not None and verdict.get(token, False) for token in tokens]

    def is_accepting(self, state: State) -> bool:
        """Return whether the text so far is in the language, so that end-of-sequence may come (§2.1)."""
        return any(map(self._may_end, state.branches))

    def accepts(self, text: Sequence[int]) -> bool:
        """Return whether ``text`` is in the language, by cutting it into longest matches."""
        todo = [(0, self.parser.start())]
        seen = set(todo)
        while todo:
            position, stack = todo.pop()
            if position == len(text):
                if self.parser.accepts_end(stack):
                    return True
                continue
            state: int | None = self.lexer.start(self.universe(stack))
            longest, candidates = 0, frozenset[int]()
            for end in range(position, len(text)):
                assert state is not None
                state = self.lexer.step(state, text[end])
                if state is None:
                    break
                if self.lexer.candidates(state):
                    longest, candidates = end + 1, self.lexer.candidates(state)
            for terminal in candidates:
                after = {stack} if terminal in self.lexer.ignored else self.parser.shift(stack, terminal)
                todo.extend({(longest, s) for s in after} - seen)
                seen.update((longest, s) for s in after)
            if len(seen) > self.max_branches * (len(text) + 1):
                raise TooManyBranches(
                    f"more than max_branches = {self.max_branches} readings of one position"
                )
        return False

    def separability(self) -> list[Report]:
        """Return a report for each (terminal, following) that fails separability; none: masks are exact."""
        return self.liveness.check()[0]

    def traps(self) -> list[Trap]:
        """Return, for each terminal removed from some live set, a shortest text where it is."""
        return self.liveness.check()[1]

    def trial(self, state: State, data: bytes) -> Trial:
        """Advance, and report which paths were taken."""
        none = _Events()
        met = none
        reached: dict[Branch, _Events] = dict.fromkeys(state.branches, none)
        for byte in data:
            following: dict[Branch, _Events] = {}
            for branch, events in reached.items():
                for successor, event in self._step(branch, byte):
                    path = events.then(event)
                    met = met.beside(path)
                    following[successor] = path.beside(following.get(successor, none))
                met = met.beside(self._lost_events(branch, byte))
            if len(following) > self.max_branches:
                raise TooManyBranches(f"more than max_branches = {self.max_branches} branches")
            reached = following
        after = self._survivors(frozenset(reached))
        alive = after.branches if after else frozenset[Branch]()
        return Trial(
            state=after,
            emitted=max((reached[branch].emitted for branch in alive), default=0),
            in_ignored=any(self._live(branch) & self.lexer.ignored for branch in alive),
            fallback=met.fallback,
            reject=met.reject,
            fork=met.fork,
            watcher=met.watcher,
            regrouped=met.regrouped,
        )

    def _step_all(self, branches: frozenset[Branch], byte: int) -> frozenset[Branch]:
        found = frozenset(successor for branch in branches for successor, _ in self._step(branch, byte))
        if len(found) > self.max_branches:
            raise TooManyBranches(
                f"{len(found)} branches, expected at most max_branches = {self.max_branches}"
            )
        return found

    def _step(self, branch: Branch, byte: int) -> _Moves:
        """One byte on one branch."""
        if (branch, byte) not in self._moves:
            moves: _Moves = []
            watchers = self.lexer.advance_watchers(branch.watchers, byte)
            if watchers is not None:
                if branch.pending is None:
                    self._begin(moves, branch.stack, watchers, byte, _Events())
                else:
                    self._continue(moves, branch, branch.pending, watchers, byte)
            self._moves[branch, byte] = moves
        return self._moves[branch, byte]

    def _continue(self, moves: _Moves, branch: Branch, state: int, watchers: Watchers, byte: int) -> None:
        longer = self.lexer.step(state, byte)
        if longer is not None:
            self._arrive(moves, longer, branch.stack, watchers, _Events())
        if self.lexer.candidates(state) and (longer is None or not self.lexer.candidates(longer)):
            if longer is not None:
                watchers = watchers | {longer}
            stacks, events = self._emit(branch)
            events = events._replace(watcher=longer is not None)
            before = self.universe(branch.stack)
            for after in stacks:
                changed = self.universe(after) != before
                self._begin(moves, after, watchers, byte, events._replace(regrouped=changed))

    def _begin(self, moves: _Moves, stack: Stack, watchers: Watchers, byte: int, events: _Events) -> None:
        """The first byte of a lexeme."""
        state = self.lexer.step(self.lexer.start(self.universe(stack)), byte)
        if state is not None:
            self._arrive(moves, state, stack, watchers, events)

    def _arrive(self, moves: _Moves, state: int, stack: Stack, watchers: Watchers, events: _Events) -> None:
        """Keep the branch if something is live; emit at once if no byte leads on."""
        branch = Branch(state, watchers, stack)
        if not self._live(branch):
            return
        if not self.lexer.is_final(state):
            moves.append((branch, events))
            return
        stacks, emitted = self._emit(branch)
        moves.extend((Branch(None, watchers, after), events.then(emitted)) for after in stacks)

    def _emit(self, branch: Branch) -> tuple[frozenset[Stack], _Events]:
        """The stacks after the lexeme has ended."""
        assert branch.pending is not None
        stack = branch.stack
        stacks: frozenset[Stack] = frozenset()
        fallback = reject = False
        for terminal in self.lexer.candidates(branch.pending) & self._live(branch):
            if terminal in self.lexer.ignored:
                stacks |= {stack}
            elif self.ir.terminals[terminal].reject:
                reject = True
            else:
                after = self.parser.shift(stack, terminal)
                fallback |= bool(after) and self.parser.uses_fallback(stack, terminal)
                stacks |= after
        return stacks, _Events(1, fallback, reject, len(stacks) > 1)

    def _lost_events(self, branch: Branch, byte: int) -> _Events:
        """Events of an emission that no branch survives, so that no move carries them."""
        if branch.pending is None or not self.lexer.candidates(branch.pending):
            return _Events()
        longer = self.lexer.step(branch.pending, byte)
        if longer is not None and self.lexer.candidates(longer):
            return _Events()
        return self._emit(branch)[1]._replace(emitted=0)

    def _live(self, branch: Branch) -> frozenset[int]:
        if branch.pending is None:
            return frozenset()
        return self.liveness.live((self.universe(branch.stack), branch.pending, branch.watchers))

    def _survivors(self, branches: frozenset[Branch]) -> State | None:
        alive = frozenset(filter(self._is_viable, branches))
        return State(alive) if alive else None

    def _is_viable(self, branch: Branch) -> bool:
        """The mask rule."""
        if branch not in self._verdicts:
            live = self._live(branch)
            self._verdicts[branch] = (
                branch.pending is None
                or bool(live & self.lexer.ignored)
                or any(self._can_shift(branch.stack, terminal) for terminal in live)
            )
        return self._verdicts[branch]

    def _can_shift(self, stack: Stack, terminal: int) -> bool:
        return terminal in self.cfg.usable and bool(self.parser.shift(stack, terminal))

    def _may_end(self, branch: Branch) -> bool:
        if branch.pending is None:
            return self.parser.accepts_end(branch.stack)
        return any(map(self.parser.accepts_end, self._emit(branch)[0]))
