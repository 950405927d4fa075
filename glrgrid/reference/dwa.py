"""An exported Parser DWA, run in the slow and obvious way: the twin of the runtime's fast path.

The runtime reads a graph of stacks with memos, and composes rows from caches and differences. Here every stack is a
tuple of LR states, bottom first, every walk reads it from the top down, and every row is united anew. Both read the
same artifact, so this says nothing about whether its tables are right: that is what the oracle is for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from glrgrid.reference.oracle import TooManyBranches

__all__ = ["SECTIONS", "Configuration", "ExportedDwa", "Stack", "Weight"]

Stack = tuple[int, ...]
"""LR states, bottom first."""
Configuration = tuple[int, Stack]
"""State of the watched lexer, and a stack."""
Weight = npt.NDArray[np.bool_]
"""A set of verdict classes, one element for each."""
Tokens = npt.NDArray[np.bool_]
"""A set of token ids, one element for each."""

NONE = -1
"""What all ones in an id stands for."""
START = 0
ALWAYS = 0
END_VERDICT = 1
GROUP_ENDS = 1
HEADER_BYTES = 128
ENTRY = np.dtype([("offset", "<u8"), ("length", "<u8"), ("width", "<u4"), ("zero", "<u4"), ("hash", "V32")])

_LAYOUT = """
    meta* names* grammar*
    byte_class* lexer_row lexer_patch_start lexer_patch_class* lexer_patch_step lexer_rows
    entry_start entry_emit entry_emit2 entry_next symbol_first* symbol_of lexer_cand lexer_live
    far_state far_first* far_counters far_chain far_layer* far_down* chain_length*
    set_start set_terms set_ignored* change_set change_groups group_sets*
    shift_start shift_term shift_to reduce_start reduce_prod reduce_set lookahead*
    goto_start goto_nonterminal goto_to prod_lhs prod_len
    lr_group lr_class dwa_start dwa_default_next dwa_default_output dwa_symbol dwa_next dwa_output output_verdicts*
    source_start class_verdict class_dense class_run dense* dense_base dense_delta run_start run_word* run_bits*
    group_start group_emit group_flags* group_mask verdict_masks*
    piece_start piece_source piece_bytes byte_sets* own_start own_verdict own_run recipe_drop drop_run drop_more
"""
SECTIONS = {name.rstrip("*"): not name.endswith("*") for name in _LAYOUT.split()}
"""Sections of an artifact, in order, and whether their elements are ids (in which all ones stand for none)."""


def _bits(words: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """The bits of little-endian words, lowest first."""
    return np.unpackbits(words.view(np.uint8), bitorder="little").astype(np.bool_)


@dataclass(frozen=True)
class ExportedDwa:
    """The tables of an artifact, and walks over explicit stacks.

    Attributes
    ----------
    tables : mapping from str to array
        The sections by name; ids are signed, with -1 for none.
    vocab_size : int
        Ids in the vocabulary.
    limit : int
        Explicit stacks grow exponentially under heavy ambiguity; beyond this many at once
        :class:`~glrgrid.reference.oracle.TooManyBranches` is raised.
    """

    tables: Mapping[str, npt.NDArray[Any]]
    vocab_size: int
    limit: int = 2000

    @classmethod
    def from_bytes(cls, artifact: bytes, limit: int = 2000) -> ExportedDwa:
        """Read an artifact; only the number of sections, and that their elements are whole, is checked."""
        vocab_size = int.from_bytes(artifact[88:96], "little")
        count = int.from_bytes(artifact[12:16], "little")
        entries = np.frombuffer(artifact, ENTRY, count, HEADER_BYTES)
        tables: dict[str, npt.NDArray[Any]] = {}
        for name, (offset, length, width, _, _) in zip(SECTIONS, entries.tolist(), strict=True):
            section = np.frombuffer(artifact[offset : offset + length], np.dtype(f"<u{width}"))
            if SECTIONS[name]:
                none = section == np.iinfo(section.dtype).max
                section = np.where(none, NONE, section.astype(np.int64))
            tables[name] = section
        return cls(tables, vocab_size, limit)

    # Tables.

    def _at(self, section: str, index: int) -> int:
        return int(self.tables[section][index])

    def _list(self, section: str, index: int) -> range:
        """Positions of the members of a list, given the section of its boundaries."""
        return range(self._at(section, index), self._at(section, index + 1))

    def _row(self, section: str, index: int, width: int) -> npt.NDArray[np.bool_]:
        """The bits of a row of ``width`` words."""
        return _bits(self.tables[section][index * width : (index + 1) * width])

    @property
    def _verdicts(self) -> int:
        return self._at("meta", 4)

    @property
    def _everything(self) -> Weight:
        return np.ones(self._verdicts, np.bool_)

    # The walk.

    def walk(self, stack: Sequence[int]) -> set[int]:
        """The verdict classes that hold on a stack: the outputs of all transitions, and the one that always holds."""
        return set(np.flatnonzero(self.run({tuple(stack): self._everything})).tolist())

    def run(self, stacks: Mapping[Stack, Weight]) -> Weight:
        """Run the automaton on weighted stacks.

        Parameters
        ----------
        stacks
            The verdict classes that count on each stack.

        Returns
        -------
        Weight
            The union, over all stacks and transitions, of the stack's weight met with the transition's output.
        """
        out = np.zeros(self._verdicts, np.bool_)
        for stack, weight in stacks.items():
            out[ALWAYS] |= weight[ALWAYS]
            state = 0
            for symbol in reversed(stack):
                state, output = self._transition(state, self._at("lr_class", symbol))
                out |= weight & output
                if state == NONE:
                    break
        return out

    def _transition(self, state: int, symbol: int) -> tuple[int, Weight]:
        """Next state, and output."""
        following, output = self._at("dwa_default_next", state), self._at("dwa_default_output", state)
        for edge in self._list("dwa_start", state):
            if self._at("dwa_symbol", edge) == symbol:
                following, output = self._at("dwa_next", edge), self._at("dwa_output", edge)
        if output == NONE:
            return following, np.zeros(self._verdicts, np.bool_)
        width = -(-self._verdicts // 64)
        return following, self._row("output_verdicts", output, width)[: self._verdicts]

    # Masks.

    def mask(
        self,
        configurations: Collection[Configuration],
        tokens: Sequence[bytes | None],
        eos_ids: Collection[int] = (),
    ) -> Tokens:
        """Compose the row of tokens that some configuration allows.

        The verdict sets by which the runtime restricts what it reads are not used: they must make no difference.

        Parameters
        ----------
        configurations
            Lexer states with their stacks: a set, or a mapping with them as keys.
        tokens
            What each id spells; end ids and others without bytes are ``None`` or empty.
        eos_ids
            Ids that end the output.
        """
        first = np.array([token[0] if token else NONE for token in tokens])
        row = np.zeros(self.vocab_size, np.bool_)
        for lexer in {lexer for lexer, _ in configurations}:
            stacks = {stack for state, stack in configurations if state == lexer}
            found, complete = self._compose(self._state(lexer), stacks, first)
            row |= found
            row[list(eos_ids)] |= complete
        return row

    def _compose(self, lexer: int, stacks: set[Stack], first: npt.NDArray[np.int64]) -> tuple[Tokens, bool]:
        """The recipe of one lexer state: pieces, minus dropped tokens, plus its own; and whether the end is allowed."""
        row, own = np.zeros((2, self.vocab_size), np.bool_)
        complete = False
        for group in self._list("group_start", lexer):
            change = self._at("group_emit", group)
            after = stacks if change == NONE else self._change(stacks, change)
            holds = self.run({stack: self._everything for stack in after})
            for piece in self._list("piece_start", group):
                found = self._source(self._at("piece_source", piece), holds)
                byte_set = self._at("piece_bytes", piece)
                if byte_set != NONE:
                    found &= (first != NONE) & self._row("byte_sets", byte_set, 4)[first]
                row |= found
            for i in self._list("own_start", group):
                if holds[self._at("own_verdict", i)]:
                    own |= self._run_tokens(self._at("own_run", i))
            complete |= bool(self._at("group_flags", group) & GROUP_ENDS and holds[END_VERDICT])
        drop = self._at("recipe_drop", lexer)
        while drop != NONE:
            row &= ~self._run_tokens(self._at("drop_run", drop))
            drop = self._at("drop_more", drop)
        return row | own, complete

    def _source(self, source: int, holds: Weight) -> Tokens:
        """The tokens of those classes of a source that hold."""
        found = np.zeros(self.vocab_size, np.bool_)
        for i in self._list("source_start", source):
            if holds[self._at("class_verdict", i)]:
                dense = self._at("class_dense", i)
                found |= self._run_tokens(self._at("class_run", i)) if dense == NONE else self._dense(dense)
        return found

    def _dense(self, row: int) -> Tokens:
        """A dense row, or one that is stored by its difference from such a row."""
        width = self._at("meta", 5)
        stored = len(self.tables["dense"]) // width
        if row < stored:
            return self._row("dense", row, width)[: self.vocab_size]
        base, delta = (self._at(name, row - stored) for name in ("dense_base", "dense_delta"))
        return self._dense(base) ^ self._run_tokens(delta)

    def _run_tokens(self, run: int) -> Tokens:
        """The tokens of a sparse run."""
        words = np.zeros(self._at("meta", 5), np.uint32)
        for i in self._list("run_start", run):
            words[self._at("run_word", i)] = self._at("run_bits", i)
        return _bits(words)[: self.vocab_size]

    # Steps.

    def start(self) -> frozenset[Configuration]:
        """The configuration before any byte."""
        return frozenset({(START, (0,))})

    def advance(self, configurations: Collection[Configuration], data: bytes) -> frozenset[Configuration]:
        """The configurations after some bytes that meet the mask rule there; empty if there are none."""
        now = frozenset(configurations)
        for byte in data:
            now = frozenset(after for lexer, stack in now for after in self._step(lexer, stack, byte))
            self._check(len(now))
        return frozenset((lexer, stack) for lexer, stack in now if self._is_viable(lexer, stack))

    def is_accepting(self, configurations: Collection[Configuration]) -> bool:
        """Whether the bytes so far are a sentence."""
        for lexer, stack in configurations:
            stacks = {stack}
            if self._at("lexer_live", self._state(lexer)) != NONE:
                candidates = self._at("lexer_cand", self._state(lexer))
                stacks = set() if candidates == NONE else self._emit(stacks, candidates)
            if any(self._shift(after, self._at("meta", 0)) for after in stacks):
                return True
        return False

    def _check(self, count: int) -> None:
        if count > self.limit:
            raise TooManyBranches(f"{count} stacks, expected at most limit = {self.limit}")

    def _step(self, lexer: int, stack: Stack, byte: int) -> Iterator[Configuration]:
        """One byte on one configuration."""
        byte_class = self._at("byte_class", byte)
        state = self._state(lexer)
        step = self._at("lexer_rows", self._at("lexer_row", state) * self._at("meta", 3) + byte_class)
        for i in self._list("lexer_patch_start", state):
            if self._at("lexer_patch_class", i) == byte_class:
                step = self._at("lexer_patch_step", i)
        ids = self._at("meta", 8)
        if step == NONE:
            return
        if step < ids:
            yield self._after(lexer, step), stack
            return
        for i in self._list("entry_start", step - ids):
            stacks = {stack}
            for name in ("entry_emit", "entry_emit2"):
                change = self._at(name, i)
                stacks = stacks if change == NONE else self._change(stacks, change)
            for after in stacks:
                yield self._after(lexer, self._at("entry_next", i)), after

    def _state(self, lexer: int) -> int:
        """The state whose tables a state, or an id of a far one, has."""
        return lexer if lexer < len(self.tables["lexer_row"]) else self._at("far_state", self._far(lexer))

    def _far(self, lexer: int) -> int:
        """The far state of an id."""
        return int(np.searchsorted(self.tables["far_first"], lexer, "right")) - 1

    def _after(self, lexer: int, following: int) -> int:
        """Where a step leads to, counters brought along, if the tables say ``following``."""
        states = len(self.tables["lexer_row"])
        if lexer < states:
            return following
        before = {chain: (layer, value) for _, chain, layer, value in self._values(lexer)}
        while following >= states:
            far = self._far(following)
            number, digit = self._at("far_first", far), 1
            for i, chain, layer, value in self._values(following):
                if chain in before:
                    value = before[chain][1] - (layer - before[chain][0]) % 4
                if value < 0:
                    following = self._at("far_down", i)
                    break
                number += value * digit
                digit *= self._at("chain_length", chain)
            else:
                return number
        return following

    def _values(self, lexer: int) -> list[tuple[int, int, int, int]]:
        """Position, chain, layer, and value of each counter of an id."""
        far = self._far(lexer)
        rest = lexer - self._at("far_first", far)
        values = []
        for i in self._list("far_counters", far):
            chain = self._at("far_chain", i)
            rest, value = divmod(rest, self._at("chain_length", chain))
            values.append((i, chain, self._at("far_layer", i), value))
        return values

    def _is_viable(self, lexer: int, stack: Stack) -> bool:
        """The mask rule: nothing is pending, or it can become what the stack can shift, or an ignored terminal."""
        live = self._at("lexer_live", self._state(lexer))
        if live == NONE or self._at("set_ignored", live):
            return True
        return any(self._shift(stack, terminal) for terminal in self._members(live))

    def _members(self, terminal_set: int) -> list[int]:
        return [self._at("set_terms", i) for i in self._list("set_start", terminal_set)]

    def _change(self, stacks: set[Stack], change: int) -> set[Stack]:
        """The stacks after a change: a lexeme, then a lexer group that the next one must begin in."""
        after = self._emit(stacks, self._at("change_set", change))
        groups = self._at("change_groups", change)
        if groups == NONE:
            return after
        allowed = self._row("group_sets", groups, -(-self._at("meta", 6) // 64))
        return {stack for stack in after if allowed[self._at("lr_group", stack[-1])]}

    def _emit(self, stacks: set[Stack], candidates: int) -> set[Stack]:
        """The stacks after a lexeme that is any of the candidates."""
        after = {s for stack in stacks for t in self._members(candidates) for s in self._shift(stack, t)}
        return after | stacks if self._at("set_ignored", candidates) else after

    def _shift(self, stack: Stack, terminal: int) -> set[Stack]:
        """All stacks that shifting a terminal can lead to; the end of input leads to a state beyond the last."""
        words = -(-(self._at("meta", 0) + 1) // 64)
        shifted: set[Stack] = set()
        todo = [stack]
        seen = {stack}
        while todo:
            stack = todo.pop()
            for i in self._list("shift_start", stack[-1]):
                if self._at("shift_term", i) == terminal:
                    shifted.add((*stack, self._at("shift_to", i)))
            for i in self._list("reduce_start", stack[-1]):
                if not self._row("lookahead", self._at("reduce_set", i), words)[terminal]:
                    continue
                production = self._at("reduce_prod", i)
                below = stack[: len(stack) - self._at("prod_len", production)]
                for j in self._list("goto_start", below[-1]):
                    if self._at("goto_nonterminal", j) == self._at("prod_lhs", production):
                        reduced = (*below, self._at("goto_to", j))
                        todo.extend({reduced} - seen)
                        seen.add(reduced)
            self._check(len(seen))
        return shifted
