//! NFA → DFA by subset construction.
//!
//! A subset is the sorted list of the NFA states that matter: those that read a byte or accept. ε-closures of single
//! states are computed once and kept. Most transitions lead to the closure of a single NFA state, which is looked up by
//! that state without building its subset; the others gather the targets of each byte class. Bytes that no NFA state
//! tells apart by a range's end share a class; the coarsest classes are found after minimisation.
//!
//! Of a [`Chain`](super::nfa::Chain) a subset keeps, for each place in the repeated body, only the copy that matches
//! the most. That changes no language and turns the quadratic subsets of ambiguous bounded repeats into constant ones.
//!
//! The start is not interned: a transition into an equal subset makes a second state, so nothing ever leads to state 0.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::counters::{Moves, chain_of, layers, stays, top_of};
use super::nfa::{Nfa, Range, State};
use super::{DEAD, LexerLimits};
use crate::grammar::ir::TerminalId;

/// A deterministic automaton without names: state 0 is the start and nothing leads to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dfa {
    pub(super) byte_class: [u8; 256],
    pub(super) class_count: usize,
    pub(super) next: Vec<u32>,
    /// 0: does not accept; the other numbers are the caller's.
    pub(super) cand: Vec<u32>,
    /// How the states in which a repeat is counted leave it.
    pub(super) moves: Moves,
}

impl Dfa {
    pub(super) fn state_count(&self) -> usize {
        self.cand.len()
    }

    pub(super) fn row(&self, q: usize) -> &[u32] {
        &self.next[q * self.class_count..][..self.class_count]
    }

    /// The targets of state `q`: of its byte classes, then where its counters end.
    pub(super) fn targets(&self, q: usize) -> impl Iterator<Item = u32> + '_ {
        self.row(q).iter().copied().filter(|&to| to != DEAD).chain(self.moves.ends(q as u32))
    }
}

/// Why a construction gave up: which limit it passed, or which counter would have had two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overflow {
    States(usize),
    Elements(usize),
    Counter(u32),
}

/// Determinise `nfa`; `candidates` numbers the sorted, non-empty sets of terminals that states accept.
pub(super) fn determinize(
    nfa: &Nfa,
    start: u32,
    limits: &LexerLimits,
    mut candidates: impl FnMut(&[TerminalId]) -> u32,
) -> Result<Dfa, Overflow> {
    let (byte_class, class_count) = byte_classes(nfa);
    let mut subsets = Subsets::new(nfa, limits);
    subsets.start(start)?;
    let mut next: Vec<u32> = Vec::new();
    let mut cand = Vec::new();
    let mut moves = Moves::default();
    let mut accepting: Vec<TerminalId> = Vec::new();
    let mut readers: Vec<&[Range]> = Vec::new();
    let mut buckets: Vec<Vec<u32>> = vec![Vec::new(); class_count];
    let classes = |r: &Range| usize::from(byte_class[usize::from(r.lo)])..=usize::from(byte_class[usize::from(r.hi)]);

    while cand.len() < subsets.sets.len() {
        crate::control::check();
        accepting.clear();
        readers.clear();
        let set = Rc::clone(&subsets.sets[cand.len()]);
        for &s in set.iter() {
            match nfa.states[s as usize] {
                State::Ranges(from, to) => readers.push(&nfa.ranges[from as usize..to as usize]),
                State::Accept(id) => accepting.push(id),
                State::Union(..) => unreachable!("closures hold no unions"),
            }
        }
        accepting.sort_unstable();
        accepting.dedup();
        let state = cand.len() as u32;
        cand.push(if accepting.is_empty() { 0 } else { candidates(&accepting) });
        if !nfa.moves.is_empty() {
            let of_state = subsets.moves(state, &set)?;
            if !of_state.is_empty() {
                moves.insert(state, of_state);
            }
        }

        let row = next.len();
        next.resize(row + class_count, DEAD);
        if let [ranges] = readers[..] {
            for range in ranges {
                let target = subsets.of_state(range.target)?;
                for class in classes(range) {
                    next[row + class] = target;
                }
            }
            continue;
        }
        for range in readers.iter().copied().flatten() {
            for class in classes(range) {
                buckets[class].push(range.target);
            }
        }
        for class in 0..class_count {
            if class > 0 && buckets[class] == buckets[class - 1] {
                next[row + class] = next[row + class - 1];
            } else {
                next[row + class] = subsets.of_states(&buckets[class])?;
            }
        }
        buckets.iter_mut().for_each(Vec::clear);
    }
    Ok(Dfa { byte_class, class_count, next, cand, moves })
}

/// Classes of adjacent bytes between which no range begins or ends.
fn byte_classes(nfa: &Nfa) -> ([u8; 256], usize) {
    let mut begins = [false; 257];
    for range in &nfa.ranges {
        begins[usize::from(range.lo)] = true;
        begins[usize::from(range.hi) + 1] = true;
    }
    let mut byte_class = [0u8; 256];
    for b in 1..256 {
        byte_class[b] = byte_class[b - 1] + u8::from(begins[b]);
    }
    (byte_class, usize::from(byte_class[255]) + 1)
}

/// The subsets found so far, numbered.
struct Subsets<'a> {
    nfa: &'a Nfa,
    limits: &'a LexerLimits,
    sets: Vec<Rc<[u32]>>,
    ids: FxHashMap<Rc<[u32]>, u32>,
    /// NFA state → number of its closure as a subset, or [`DEAD`] while it was not asked for.
    of_state: Vec<u32>,
    /// NFA state → its closure as a part of `closures`; (0, 0) while it was not asked for.
    closure_of: Vec<(u32, u32)>,
    closures: Vec<u32>,
    elements: usize,
    seen: Vec<u32>,
    epoch: u32,
    stack: Vec<u32>,
    scratch: Vec<u32>,
}

impl<'a> Subsets<'a> {
    fn new(nfa: &'a Nfa, limits: &'a LexerLimits) -> Self {
        let count = nfa.states.len();
        Self {
            nfa,
            limits,
            sets: Vec::new(),
            ids: FxHashMap::default(),
            of_state: vec![DEAD; count],
            closure_of: vec![(0, 0); count],
            closures: Vec::new(),
            elements: 0,
            seen: vec![0; count],
            epoch: 0,
            stack: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Make the closure of `state` subset 0, without making it known to look-ups.
    fn start(&mut self, state: u32) -> Result<(), Overflow> {
        let (from, to) = self.closure(state)?;
        self.push(Rc::from(&self.closures[from..to]))?;
        Ok(())
    }

    /// The subset that is the closure of one state.
    fn of_state(&mut self, state: u32) -> Result<u32, Overflow> {
        if self.of_state[state as usize] == DEAD {
            let (from, to) = self.closure(state)?;
            let set = std::mem::take(&mut self.closures);
            let id = self.intern(&set[from..to]);
            self.closures = set;
            self.of_state[state as usize] = id?;
        }
        Ok(self.of_state[state as usize])
    }

    /// The subset that is the closure of several states; [`DEAD`] for none.
    fn of_states(&mut self, states: &[u32]) -> Result<u32, Overflow> {
        match states {
            [] => return Ok(DEAD),
            [state] => return self.of_state(*state),
            [first, rest @ ..] if rest.iter().all(|state| state == first) => return self.of_state(*first),
            _ => {}
        }
        let mut set = std::mem::take(&mut self.scratch);
        set.clear();
        for &state in states {
            let (from, to) = self.closure(state)?;
            set.extend_from_slice(&self.closures[from..to]);
        }
        set.sort_unstable();
        set.dedup();
        self.prune(&mut set);
        let id = self.intern(&set);
        self.scratch = set;
        id
    }

    fn intern(&mut self, set: &[u32]) -> Result<u32, Overflow> {
        if let Some(&id) = self.ids.get(set) {
            return Ok(id);
        }
        let set: Rc<[u32]> = Rc::from(set);
        let id = self.push(Rc::clone(&set))?;
        self.ids.insert(set, id);
        Ok(id)
    }

    fn push(&mut self, set: Rc<[u32]>) -> Result<u32, Overflow> {
        if self.sets.len() >= self.limits.max_dfa_states {
            return Err(Overflow::States(self.limits.max_dfa_states));
        }
        self.count(set.len())?;
        self.sets.push(set);
        Ok(self.sets.len() as u32 - 1)
    }

    fn count(&mut self, elements: usize) -> Result<(), Overflow> {
        self.elements += elements;
        if self.elements > self.limits.max_subset_elements {
            return Err(Overflow::Elements(self.limits.max_subset_elements));
        }
        Ok(())
    }

    /// The closure of `state`: where its sorted members lie in `closures`.
    fn closure(&mut self, state: u32) -> Result<(usize, usize), Overflow> {
        let (from, to) = self.closure_of[state as usize];
        if from < to {
            return Ok((from as usize, to as usize));
        }
        self.epoch += 1;
        let from = self.closures.len();
        self.stack.push(state);
        while let Some(s) = self.stack.pop() {
            if std::mem::replace(&mut self.seen[s as usize], self.epoch) == self.epoch {
                continue;
            }
            match self.nfa.states[s as usize] {
                State::Union(a, b) => self.stack.extend_from_slice(&self.nfa.epsilons[a as usize..b as usize]),
                _ => self.closures.push(s),
            }
        }
        self.closures[from..].sort_unstable();
        let mut set = self.closures.split_off(from);
        self.prune(&mut set);
        self.closures.append(&mut set);
        let to = self.closures.len();
        self.count(to - from)?;
        self.closure_of[state as usize] = (from as u32, to as u32);
        Ok((from, to))
    }

    /// The moves of subset number `state`: what has one goes, the rest stays.
    fn moves(&mut self, state: u32, set: &[u32]) -> Result<Vec<(u32, u32)>, Overflow> {
        let nfa = self.nfa;
        let mut letters: Vec<u32> = set.iter().flat_map(|&s| nfa.moves.of(s)).map(|&(letter, _)| letter).collect();
        letters.sort_unstable();
        letters.dedup();
        let mut moves = Vec::with_capacity(letters.len());
        for letters in letters.chunk_by(|a, b| chain_of(*a) == chain_of(*b)) {
            let far = layers(letters)?;
            for &letter in letters {
                if stays(letter) {
                    moves.push((letter, state));
                } else if far.is_none() || far.is_some_and(|(behind, _)| behind == letter) {
                    let ahead = far.and_then(|(_, ahead)| ahead);
                    moves.push((letter, self.moved(set, letter, ahead)?));
                }
            }
        }
        Ok(moves)
    }

    /// The subset after a move, and of what is one layer ahead by another one after that.
    fn moved(&mut self, set: &[u32], letter: u32, ahead: Option<u32>) -> Result<u32, Overflow> {
        let nfa = self.nfa;
        let target = |s: u32, letter: u32| nfa.moves.of(s).iter().find(|m| m.0 == letter).map(|m| m.1);
        let mut after: Vec<u32> = Vec::with_capacity(set.len());
        for &s in set {
            let to = match (target(s, letter), ahead.and_then(|ahead| target(s, ahead))) {
                (Some(to), _) => to,
                (None, Some(to)) => target(to, top_of(letter)).ok_or(Overflow::Counter(chain_of(letter)))?,
                (None, None) => {
                    after.push(s);
                    continue;
                }
            };
            let (from, to) = self.closure(to)?;
            after.extend_from_slice(&self.closures[from..to]);
        }
        after.sort_unstable();
        after.dedup();
        self.prune(&mut after);
        self.intern(&after)
    }

    /// Drop from a sorted set the states whose language another one of the same chain includes.
    fn prune(&mut self, set: &mut Vec<u32>) {
        for chains in &self.nfa.chains {
            let mut from = 0;
            while set.len() - from > 1 {
                // The chain that holds set[from], or the next one.
                let at = chains.partition_point(|chain| chain.end <= set[from]);
                let Some(chain) = chains.get(at) else { break };
                from += set[from..].partition_point(|&s| s < chain.base);
                let to = from + set[from..].partition_point(|&s| s < chain.end);
                if to - from > 1 {
                    self.epoch += 1;
                    let (seen, epoch) = (&mut self.seen, self.epoch);
                    let mut is_new = |s: u32| {
                        let place = chain.base + (s - chain.base) % chain.stride;
                        std::mem::replace(&mut seen[place as usize], epoch) != epoch
                    };
                    let mut kept: Vec<u32> = if chain.last_is_widest {
                        set[from..to].iter().rev().copied().filter(|&s| is_new(s)).collect()
                    } else {
                        set[from..to].iter().copied().filter(|&s| is_new(s)).collect()
                    };
                    kept.sort_unstable();
                    let kept_to = from + kept.len();
                    set.splice(from..to, kept);
                    from = kept_to;
                } else {
                    from = to;
                }
            }
        }
    }
}
