//! Watchers: DFA states in which a longer match may still come that would undo what was emitted.

use super::counters::{is_first, stays, top_of};
use super::groups::GroupedDfa;
use super::raw::{MOVE, Raw, UNWATCHED};
use super::watched::WatchedError;
use super::{DEAD, chain_of, is_far};
use crate::bits;
use crate::grammar::relation::Relation;
use rustc_hash::FxHashMap;

/// Sets of watchers, by number.
#[derive(Default)]
pub(super) struct Watchers {
    pub sets: Vec<Box<[u32]>>,
    pub ids: FxHashMap<Box<[u32]>, u32>,
    /// What becomes of each set under each byte class, `DEAD` if a watcher accepts; made when it is asked for.
    pub rows: Vec<Vec<u32>>,
    /// Whether a lexeme from a DFA state can end before a watcher accepts.
    pub hopes: FxHashMap<(u32, u32), bool>,
}

impl Watchers {
    pub(super) fn intern(&mut self, mut set: Vec<u32>) -> u32 {
        set.sort_unstable();
        set.dedup();
        let set = set.into_boxed_slice();
        let next = self.sets.len() as u32;
        *self.ids.entry(set).or_insert_with_key(|set| {
            self.sets.push(set.clone());
            self.rows.push(Vec::new());
            next
        })
    }

    pub(super) fn with(&mut self, set: u32, watcher: u32) -> u32 {
        let set = [&self.sets[set as usize][..], &[watcher]].concat();
        self.intern(set)
    }

    pub(super) fn after(&mut self, set: u32, class: usize, dfa: &GroupedDfa) -> Option<u32> {
        if set == UNWATCHED {
            return Some(UNWATCHED);
        }
        self.fill_row(set, dfa);
        let next = self.rows[set as usize][class];
        (next != DEAD).then_some(next)
    }

    pub(super) fn fill_row(&mut self, set: u32, dfa: &GroupedDfa) {
        if self.rows[set as usize].is_empty() {
            let advance = |class: usize| {
                let next = self.sets[set as usize].iter().map(|&w| dfa.next[w as usize * dfa.class_count + class]);
                let next: Vec<u32> = next.filter(|&w| w != DEAD).collect();
                if next.iter().any(|&w| dfa.cand[w as usize] != 0) { DEAD } else { self.intern(next) }
            };
            self.rows[set as usize] = (0..dfa.class_count).map(advance).collect();
        }
    }
}

impl Raw<'_> {
    /// Find the moves of a state, each by the one of its DFA state and watchers that counts.
    pub(super) fn find_moves(&mut self, x: u32) -> Result<(), WatchedError> {
        let (q, watchers) = self.states[x as usize];
        self.check_counters(q, watchers)?;
        for (letter, (q, watchers)) in self.moves_of(q, watchers) {
            let to = self.state(q, watchers, (x, MOVE));
            self.moves.push(x, letter, to);
        }
        Ok(())
    }

    /// Whether each counter has one value in a state: where one of its members counts, no other counts or soon would.
    pub(super) fn check_counters(&self, q: u32, watchers: u32) -> Result<(), WatchedError> {
        let dfa = self.dfa;
        let watchers = &self.watchers.sets[watchers as usize];
        let members = || std::iter::once(q).chain(watchers.iter().copied());
        let letters = members().flat_map(|q| dfa.moves.of(q)).map(|&(letter, _)| letter);
        for chain in letters.filter(|&letter| is_far(letter)).map(chain_of) {
            let takes_part =
                |q: &u32| dfa.moves.of(*q).iter().any(|&(letter, _)| chain_of(letter) == chain && !is_first(letter));
            if members().filter(takes_part).count() > 1 {
                return Err(WatchedError::Uncountable(chain));
            }
        }
        Ok(())
    }

    /// The moves of a DFA state with watchers.
    pub(super) fn moves_of(&mut self, q: u32, watchers: u32) -> Vec<(u32, (u32, u32))> {
        let dfa = self.dfa;
        if dfa.moves.is_empty() {
            return Vec::new();
        }
        let going = |q: u32| dfa.moves.of(q).iter().filter(|(letter, _)| !stays(*letter));
        let mut moves: Vec<_> = going(q).map(|&(letter, to)| (letter, (to, watchers))).collect();
        let set = self.watchers.sets[watchers as usize].clone();
        for &watcher in &*set {
            for &(letter, to) in going(watcher) {
                let others = set.iter().copied().filter(|&w| w != watcher);
                moves.push((letter, (q, self.watchers.intern(others.chain([to]).collect()))));
            }
        }
        moves
    }

    /// As [`Moves::ends`], of a DFA state with watchers.
    pub(super) fn ends_of_counters(&mut self, q: u32, watchers: u32) -> Vec<(u32, u32)> {
        let mut ends = Vec::new();
        for (letter, top) in self.moves_of(q, watchers).into_iter().filter(|(letter, _)| is_far(*letter)) {
            let below = self.moves_of(top.0, top.1).into_iter().find(|m| m.0 == top_of(letter));
            ends.extend([top].into_iter().chain(below.map(|m| m.1)));
        }
        ends
    }

    /// Whether a lexeme that has come to DFA state `q` can become anything before a watcher accepts.
    ///
    /// Where it cannot, because the longer match always comes first, as behind `"a""`, no state is made: there is a whole
    /// copy of the lexer of them.
    pub(super) fn is_hopeful(&mut self, q: u32, watchers: u32) -> bool {
        if watchers == UNWATCHED {
            return true;
        }
        if let Some(&hope) = self.watchers.hopes.get(&(q, watchers)) {
            return hope;
        }
        // All that can be reached and is not known, with the edges backwards; then those that hope is reached from.
        let mut pairs = vec![(q, watchers)];
        let mut ids: FxHashMap<(u32, u32), u32> = FxHashMap::from_iter([((q, watchers), 0)]);
        let mut edges: Vec<(u32, u32)> = Vec::new();
        let mut hopeful: Vec<u32> = Vec::new();
        // The last pair met of each DFA state: its watchers and number.
        let mut met: Vec<(u32, u32)> = vec![(DEAD, 0); self.dfa.state_count()];
        let mut done = 0;
        while let Some(&(q, watchers)) = pairs.get(done as usize) {
            crate::control::check();
            if !bits::is_empty(self.cand(q)) || watchers == UNWATCHED && !bits::is_empty(&self.unwatched[q as usize]) {
                hopeful.push(done);
            } else if let Some(&hope) = self.watchers.hopes.get(&(q, watchers)) {
                hopeful.extend(hope.then_some(done));
            } else if watchers != UNWATCHED {
                let mut lead = |(q, watchers): (u32, u32)| {
                    let known = &mut met[q as usize];
                    if known.0 != watchers {
                        let next = pairs.len() as u32;
                        let id = *ids.entry((q, watchers)).or_insert(next);
                        if id == next {
                            pairs.push((q, watchers));
                        }
                        *known = (watchers, id);
                    }
                    edges.push((known.1, done));
                };
                self.watchers.fill_row(watchers, self.dfa);
                let after = &self.watchers.rows[watchers as usize];
                let mut last = (DEAD, DEAD);
                for (&to, &watchers) in self.dfa.row(q).iter().zip(after) {
                    if to == DEAD || watchers == DEAD || to == last.0 && watchers == last.1 {
                        continue;
                    }
                    last = (to, watchers);
                    lead(last);
                }
                self.ends_of_counters(q, watchers).into_iter().for_each(lead);
            }
            done += 1;
        }
        let sources = Relation::from_pairs(pairs.len(), &edges);
        let mut hopes = vec![false; pairs.len()];
        while let Some(pair) = hopeful.pop() {
            if !std::mem::replace(&mut hopes[pair as usize], true) {
                hopeful.extend(sources.row(pair as usize));
            }
        }
        let hope = hopes[0];
        self.watchers.hopes.extend(pairs.into_iter().zip(hopes));
        hope
    }
}
