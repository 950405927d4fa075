//! Counters, not copies: bounded repeats of many copies.
//!
//! `x{0,100000}` as copies makes an automaton of layers, one for each copy, nearly all of which do the same: a token of L
//! bytes cannot tell the layers apart that have more than L to go. So only a few copies are made:
//!
//! ```text
//!  first ──► second ──► far 0 ─► far 1 ─► far 2 ─► far 3 ─► far 0 ...
//!                                  :
//!                                 top ──► below ──► third ──► last ──► what follows
//! ```
//!
//! The four *far* layers stand in turn for all the layers in between, of which a *counter* knows how many are left. Coming
//! from `second` sets it to the chain's `length`; each copy that is completed leads to the next far layer and counts down; and
//! at 0, what is in the far layer *moves* to the same place of `top`. A state of the true automaton is a state of this one
//! with the values of its counters.
//!
//! A subset may be in two layers at once, one after the other: after `"a "`, a part `\S+\s+` may go on or be complete. Then
//! the counter is that of the layer behind, which moves to `top` when the one ahead moves to `below`. With four far layers, two
//! that follow each other say which is which, and how far a step counts down: by up to two.
//!
//! A move is a transition that reads no byte: a letter of its own, by chain and layer. So a state says by its letters what
//! it counts, in which layer, and minimisation keeps apart what differs in it. `first` and `second` have letters that lead
//! nowhere else. `top` and `below` have one that leads to the layer after: it is taken where a counter comes to −1, and shows
//! which states of two layers are alike ([`super::separability`] compares them).
//!
//! All this is exact as long as a state has one value for each counter. Subset construction sees where it would have more, as
//! in `(a|aa){2,500}`: by members in layers that do not follow each other, or that are entered while others still count. Then
//! the terminal's repeats are copied. A move changes no candidates, since layers differ in nothing else.

use super::determinize::{Dfa, Overflow};
use crate::grammar::ir::TerminalId;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;

/// Copies that are made of a counted repeat before the far layers, and after them. With two before, the first byte of a
/// lexeme never begins to count.
pub(super) const COPIES_BEFORE: u32 = 2;
pub(super) const COPIES_AFTER: u32 = 4;
/// Far layers.
pub(super) const COPIES_FAR: u32 = 4;
/// Copies that are made in all, and the fewest that are counted.
pub(super) const COPIES: u32 = COPIES_BEFORE + COPIES_FAR + COPIES_AFTER;

/// The layers that have a letter; `top` and `below` have the same.
pub(super) const FIRST: u32 = 0;
pub(super) const SECOND: u32 = 1;
pub(super) const FAR: u32 = 2;
pub(super) const TOP: u32 = FAR + COPIES_FAR;
const LETTERS: u32 = TOP + 1;

/// The letter of a chain's layer.
pub(super) fn letter(chain: u32, layer: u32) -> u32 {
    chain * LETTERS + layer
}

/// The letter when other chains come before its own.
pub(super) fn of_chain(letter: u32, chains_before: usize) -> u32 {
    letter + chains_before as u32 * LETTERS
}

/// The chain of a letter.
pub(crate) fn chain_of(letter: u32) -> u32 {
    letter / LETTERS
}

/// The letter of the same chain's `top`.
pub(super) fn top_of(letter: u32) -> u32 {
    self::letter(chain_of(letter), TOP)
}

/// The far layer of a letter, from 0, if it is of one.
pub(crate) fn far_layer(letter: u32) -> Option<u32> {
    (letter % LETTERS).checked_sub(FAR).filter(|&layer| layer < COPIES_FAR)
}

/// Whether a letter is of a far layer.
pub(crate) fn is_far(letter: u32) -> bool {
    far_layer(letter).is_some()
}

/// Whether a letter is of `first`, which lets a counter have another value elsewhere.
pub(super) fn is_first(letter: u32) -> bool {
    letter % LETTERS == FIRST
}

/// Whether a letter leads nowhere else.
pub(super) fn stays(letter: u32) -> bool {
    letter % LETTERS < FAR
}

/// Of the sorted letters of one chain that a subset has: the far layer behind, if there is one, and the letter of the far
/// layer ahead of it, if that is there too.
///
/// # Errors
/// The chain, if its counter would have several values.
pub(super) fn layers(letters: &[u32]) -> Result<Option<(u32, Option<u32>)>, Overflow> {
    let chain = chain_of(letters[0]);
    let far: SmallVec<[u32; 4]> = letters.iter().copied().filter_map(far_layer).collect();
    let others = letters.len() - far.len();
    let behind = match far[..] {
        [] => return Ok(None),
        [only] => only,
        [a, b] if a + 1 == b => a,
        [0, b] if b + 1 == COPIES_FAR => b,
        _ => return Err(Overflow::Counter(chain)),
    };
    // Coming from `second`, the counter still has its first value.
    let entered = letters.contains(&letter(chain, SECOND)) && far[..] == [0];
    if others > usize::from(entered) {
        return Err(Overflow::Counter(chain));
    }
    let ahead = (far.len() == 2).then(|| letter(chain, FAR + (behind + 1) % COPIES_FAR));
    Ok(Some((letter(chain, FAR + behind), ahead)))
}

/// A repeat that is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Terminal that it is part of.
    pub terminal: TerminalId,
    /// Value from which it is counted down: layers that the far ones stand for.
    pub length: u32,
    /// What one copy matches.
    pub(crate) body: Arc<Dfa>,
}

/// Which repeats are counted.
#[derive(Debug, Clone, Default)]
pub struct Counting {
    /// A repeat is copied if that takes no more NFA states than this, else it is counted. An intersection whose automaton
    /// has more states than this with its repeats copied counts those that take more than a sixteenth.
    pub copied_states: u64,
    /// Terminals whose repeats are copied whatever they take, because they cannot be counted.
    pub copied: FxHashSet<TerminalId>,
}

impl Counting {
    /// Nothing is counted.
    pub fn none() -> Self {
        Counting { copied_states: u64::MAX, copied: FxHashSet::default() }
    }

    /// NFA states up to which repeats of a terminal are copied: all, if they are not to be counted.
    pub(super) fn copied_states_of(&self, terminal: TerminalId) -> u64 {
        if self.copied.contains(&terminal) { u64::MAX } else { self.copied_states }
    }
}

/// The moves of some states: pairs of a letter and a target, by letter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Moves(FxHashMap<u32, Vec<(u32, u32)>>);

impl Moves {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The moves of a state.
    #[inline]
    pub(crate) fn of(&self, state: u32) -> &[(u32, u32)] {
        if self.0.is_empty() {
            return &[];
        }
        self.0.get(&state).map_or(&[], |moves| &moves[..])
    }

    /// Where a state leads as its counters end: to the state after the move of a far layer, at 0, and one layer on, at −1.
    ///
    /// These are transitions that texts take; the other moves only say what is alike.
    pub(crate) fn ends(&self, state: u32) -> impl Iterator<Item = u32> + '_ {
        let far = self.of(state).iter().filter(|(letter, _)| is_far(*letter));
        far.flat_map(|&(letter, top)| {
            let below = self.of(top).iter().find(|m| m.0 == top_of(letter)).map(|m| m.1);
            [Some(top), below].into_iter().flatten()
        })
    }

    pub(crate) fn insert(&mut self, state: u32, moves: Vec<(u32, u32)>) {
        self.0.insert(state, moves);
    }

    /// Add one move.
    pub(crate) fn push(&mut self, state: u32, letter: u32, to: u32) {
        let moves = self.0.entry(state).or_default();
        moves.insert(moves.partition_point(|m| m.0 < letter), (letter, to));
    }

    /// States with moves, ascending.
    pub(crate) fn states(&self) -> Vec<u32> {
        let mut states: Vec<u32> = self.0.keys().copied().collect();
        states.sort_unstable();
        states
    }

    /// The moves after states were given other numbers; without the states that have none.
    pub(crate) fn renumbered(&self, number: impl Fn(u32) -> Option<u32>) -> Self {
        let of_state = |(&state, moves): (&u32, &Vec<(u32, u32)>)| {
            let targets = moves.iter().filter_map(|&(letter, to)| Some((letter, number(to)?)));
            Some((number(state)?, targets.collect()))
        };
        Moves(self.0.iter().filter_map(of_state).collect())
    }
}

impl Dfa {
    /// Where a state is live, all that it counts down to must be.
    pub(super) fn check_moves(&self, live: &[bool]) -> Result<(), Overflow> {
        for state in self.moves.states().into_iter().filter(|&q| live[q as usize]) {
            if let Some((letter, _)) = self.moves.of(state).iter().find(|(_, to)| !live[*to as usize]) {
                return Err(Overflow::Counter(chain_of(*letter)));
            }
        }
        Ok(())
    }
}
