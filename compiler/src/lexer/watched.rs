//! The watched lexer: the lexer DFA with delayed emission and backtracking made explicit.
//!
//! A state is x = (q, W): a DFA state and the watchers, DFA states in which a longer match may still come that would undo
//! an emission already made. W is nearly always empty. State 0 is the start of a lexeme without watchers. A step has
//! at most two alternatives, the main one and the short one, and an alternative emits up to two candidate sets: of the
//! lexeme that ended before the byte, and of a lexeme that is this one byte and cannot go on.
//!
//! Invariants
//! 1. An alternative exists only if it can matter: what is pending in its target can still become a terminal that may
//!    follow what it emitted, or an ignored one. (The parser would refuse the others; leaving them out keeps the states few.)
//! 2. Candidate and live sets hold only terminals that some stack can shift; ignored ones are a flag.
//! 3. `live` is after trap removal ([`super::separability`]).

use super::{DEAD, LexerDfa};
use crate::bits;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// "Nothing is emitted".
pub const NONE: u32 = u32::MAX;

/// What the lexer needs to know of the terminals. Sets have a bit for every terminal and one for the end of input.
#[derive(Debug, Clone)]
pub struct TerminalFacts {
    /// Number of terminals; the end's bit.
    pub count: usize,
    /// Ignored terminals.
    pub ignored: Vec<u64>,
    /// Terminals that some LR state shifts, ignored ones left out.
    pub usable: Vec<u64>,
    /// What may follow each terminal in a sentence.
    pub follow: Vec<Vec<u64>>,
}

/// A set of terminals as the runtime stores it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermSet {
    /// Usable members, ascending.
    pub terms: Vec<u32>,
    /// Whether an ignored terminal is a member.
    pub ignored: bool,
}

/// Interned [`TermSet`]s: candidate sets and live sets.
#[derive(Debug, Clone, Default)]
pub struct TermSets {
    /// The sets by id.
    pub sets: Vec<TermSet>,
    ids: FxHashMap<TermSet, u32>,
}

impl TermSets {
    /// Id of a set.
    pub fn intern(&mut self, set: TermSet) -> u32 {
        if let Some(&id) = self.ids.get(&set) {
            return id;
        }
        let id = self.sets.len() as u32;
        self.sets.push(set.clone());
        self.ids.insert(set, id);
        id
    }
}

/// One way a step can go.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Alternative {
    /// Candidate sets emitted, in order; `NONE` where nothing is.
    pub emit: [u32; 2],
    /// Next state.
    pub next: u32,
}

/// All ways a step can go; empty if the branch dies.
pub type Entry = SmallVec<[Alternative; 1]>;

/// Entry that leads nowhere.
pub const DEAD_ENTRY: u32 = 0;

/// The watched lexer.
#[derive(Debug)]
pub struct WatchedLexer {
    /// Byte to class.
    pub byte_class: [u8; 256],
    /// Number of classes.
    pub classes: usize,
    /// Entry of each state and class.
    pub steps: Vec<u32>,
    /// Entries; [`DEAD_ENTRY`] is empty.
    pub entries: Vec<Entry>,
    /// Candidate set if the lexeme ended here, or `NONE`.
    pub cand: Vec<u32>,
    /// Live set, or `NONE` between lexemes.
    pub live: Vec<u32>,
    /// All sets.
    pub sets: TermSets,
    /// States with watchers.
    pub watched_states: usize,
}

/// More states than the engine addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyStates(
    /// The limit.
    pub usize,
);

impl WatchedLexer {
    /// Number of states.
    pub fn state_count(&self) -> usize {
        self.cand.len()
    }

    /// Entry of a state and byte.
    pub fn entry(&self, state: u32, byte: u8) -> &Entry {
        &self.entries[self.entry_id(state, byte) as usize]
    }

    /// Id of the entry of a state and byte.
    pub fn entry_id(&self, state: u32, byte: u8) -> u32 {
        self.steps[state as usize * self.classes + self.byte_class[byte as usize] as usize]
    }
}

/// The main way on from a state under one byte class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Main {
    Dead,
    /// Still inside the lexeme.
    To(u32),
    /// The lexeme ends with this byte, in that (raw) DFA state; the next lexeme starts in that state.
    Ends(u32, u32),
}

/// The short way on: the lexeme ended before the byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Short {
    Dead,
    /// The byte starts a lexeme that goes on.
    To(u32),
    /// The byte is a lexeme: DFA state it ends in, and the state after it.
    Ends(u32, u32),
}

impl Main {
    pub(super) fn end(self) -> Option<(u32, u32)> {
        match self {
            Main::Ends(p, after) => Some((p, after)),
            _ => None,
        }
    }
}

impl Short {
    pub(super) fn end(self) -> Option<(u32, u32)> {
        match self {
            Short::Ends(p, after) => Some((p, after)),
            _ => None,
        }
    }
}

/// All states that bytes can lead to, before anything is known to be a trap.
pub(super) struct Raw<'a> {
    pub dfa: &'a LexerDfa,
    pub facts: &'a TerminalFacts,
    pub width: usize,
    /// DFA state and watchers of each state.
    pub states: Vec<(u32, Box<[u32]>)>,
    pub main: Vec<Main>,
    pub short: Vec<Short>,
    /// Usable and ignored candidates of each DFA state, as bits.
    pub cand: Vec<Box<[u64]>>,
    /// First state that each state was met from, with the byte class: gives a shortest text.
    pub met: Vec<(u32, u8)>,
    ids: FxHashMap<(u32, Box<[u32]>), u32>,
}

impl<'a> Raw<'a> {
    pub(super) fn explore(
        dfa: &'a LexerDfa,
        facts: &'a TerminalFacts,
        max_states: usize,
    ) -> Result<Self, TooManyStates> {
        let width = bits::words(facts.count + 1);
        let mut known = facts.usable.clone();
        bits::unite(&mut known, &facts.ignored);
        let cand: Vec<Box<[u64]>> = (0..dfa.state_count() as u32)
            .map(|q| {
                let mut set = vec![0; width];
                for &t in dfa.candidates(q) {
                    if bits::has(&known, t) {
                        bits::insert(&mut set, t);
                    }
                }
                set.into_boxed_slice()
            })
            .collect();
        let mut raw = Raw {
            dfa,
            facts,
            width,
            states: Vec::new(),
            main: Vec::new(),
            short: Vec::new(),
            cand,
            met: Vec::new(),
            ids: FxHashMap::default(),
        };
        let live_unwatched = raw.live_of_dfa();
        raw.state(0, Box::new([]), (0, 0));
        let mut x = 0;
        while x < raw.states.len() {
            for class in 0..dfa.class_count {
                let (main, short) = raw.step(x as u32, class, &live_unwatched);
                raw.main.push(main);
                raw.short.push(short);
            }
            if raw.states.len() > max_states {
                return Err(TooManyStates(max_states));
            }
            x += 1;
        }
        Ok(raw)
    }

    fn state(&mut self, q: u32, watchers: Box<[u32]>, from: (u32, u8)) -> u32 {
        let key = (q, watchers);
        if let Some(&id) = self.ids.get(&key) {
            return id;
        }
        let id = self.states.len() as u32;
        self.states.push(key.clone());
        self.met.push(from);
        self.ids.insert(key, id);
        id
    }

    fn delta(&self, q: u32, class: usize) -> Option<u32> {
        let to = self.dfa.next[q as usize * self.dfa.class_count + class];
        (to != DEAD).then_some(to)
    }

    fn accepts(&self, q: u32) -> bool {
        self.dfa.cand[q as usize] != 0
    }

    /// Whether the lexeme cannot go on from here, so that it is emitted at once.
    fn is_final(&self, q: u32) -> bool {
        (0..self.dfa.class_count).all(|c| self.delta(q, c).is_none())
    }

    /// Candidates of every DFA state reachable from each, watchers aside.
    fn live_of_dfa(&self) -> Vec<Vec<u64>> {
        let n = self.dfa.state_count();
        let edges =
            (0..n as u32).flat_map(|q| (0..self.dfa.class_count).filter_map(move |c| Some((q, self.delta(q, c)?))));
        propagate(self.cand.iter().map(|c| c.to_vec()).collect(), edges)
    }

    fn step(&mut self, x: u32, class: usize, live: &[Vec<u64>]) -> (Main, Short) {
        let (q, watchers) = self.states[x as usize].clone();
        let mut advanced: Vec<u32> = Vec::with_capacity(watchers.len() + 1);
        for &w in &watchers {
            match self.delta(w, class) {
                None => {}
                Some(w) if self.accepts(w) => return (Main::Dead, Short::Dead),
                Some(w) => advanced.push(w),
            }
        }
        let sorted = |mut watchers: Vec<u32>| {
            watchers.sort_unstable();
            watchers.dedup();
            watchers.into_boxed_slice()
        };
        let from = (x, class as u8);
        let longer = self.delta(q, class);
        let main = match longer {
            Some(p) if !bits::is_empty(&live[p as usize]) => {
                let watchers = sorted(advanced.clone());
                if self.is_final(p) {
                    Main::Ends(p, self.state(0, watchers, from))
                } else {
                    Main::To(self.state(p, watchers, from))
                }
            }
            _ => Main::Dead,
        };
        let emitted = self.cand[q as usize].clone();
        let may_stop = !bits::is_empty(&emitted) && longer.is_none_or(|p| !self.accepts(p));
        let short = match self.delta(0, class) {
            Some(r) if may_stop && self.may_follow(&emitted, &live[r as usize]) => {
                advanced.extend(longer);
                let watchers = sorted(advanced);
                if self.is_final(r) {
                    Short::Ends(r, self.state(0, watchers, from))
                } else {
                    Short::To(self.state(r, watchers, from))
                }
            }
            _ => Short::Dead,
        };
        (main, short)
    }

    /// Whether some terminal of `next` can come after some candidate of `emitted`.
    pub(super) fn may_follow(&self, emitted: &[u64], next: &[u64]) -> bool {
        if bits::is_empty(next) {
            return false;
        }
        bits::meets(emitted, &self.facts.ignored)
            || bits::meets(next, &self.facts.ignored)
            || bits::iter(emitted).any(|t| bits::meets(&self.facts.follow[t as usize], next))
    }

    pub(super) fn cand_of(&self, x: u32) -> &[u64] {
        &self.cand[self.states[x as usize].0 as usize]
    }

    pub(super) fn steps_of(&self, x: u32) -> impl Iterator<Item = (&Main, &Short)> {
        let range = x as usize * self.dfa.class_count..(x as usize + 1) * self.dfa.class_count;
        self.main[range.clone()].iter().zip(&self.short[range])
    }

    /// A shortest text that leads to a state, with one byte per class chosen.
    pub(super) fn text(&self, mut x: u32) -> Vec<u8> {
        let mut text = Vec::new();
        while x != 0 {
            let (from, class) = self.met[x as usize];
            let bytes = (0..=255u8).filter(|&b| self.dfa.byte_class[b as usize] == class);
            text.extend(bytes.min_by_key(|b| (!b.is_ascii_graphic(), *b)));
            x = from;
        }
        text.reverse();
        text
    }

    /// The lexer with what `live` leaves alive, states renumbered in breadth-first order. `ended` has the candidates of
    /// lexemes that end at once. What is a trap is not emitted either: nothing could come after it.
    pub(super) fn finish(self, live: &[Vec<u64>], ended: &FxHashMap<(u32, u32), Vec<u64>>) -> WatchedLexer {
        let classes = self.dfa.class_count;
        let mut out = WatchedLexer {
            byte_class: self.dfa.byte_class,
            classes,
            steps: Vec::new(),
            entries: vec![Entry::new()],
            cand: Vec::new(),
            live: Vec::new(),
            sets: TermSets::default(),
            watched_states: 0,
        };
        let mut entry_ids: FxHashMap<Entry, u32> = FxHashMap::from_iter([(Entry::new(), DEAD_ENTRY)]);
        let mut renumbered: Vec<u32> = vec![NONE; self.states.len()];
        let mut order = VecDeque::from([0u32]);
        renumbered[0] = 0;
        let mut count = 1u32;
        while let Some(x) = order.pop_front() {
            let emitted: Vec<u64> = self.cand_of(x).iter().zip(&live[x as usize]).map(|(c, l)| c & l).collect();
            let cand = self.set(&mut out.sets, &emitted);
            for class in 0..classes {
                let i = x as usize * classes + class;
                let mut raw_alternatives: SmallVec<[([u32; 2], u32); 2]> = SmallVec::new();
                match self.main[i] {
                    Main::To(to) if !bits::is_empty(&live[to as usize]) => raw_alternatives.push(([NONE; 2], to)),
                    Main::Ends(p, to) => {
                        let set = self.set(&mut out.sets, &ended[&(p, to)]);
                        if set != NONE {
                            raw_alternatives.push(([set, NONE], to));
                        }
                    }
                    _ => {}
                }
                match self.short[i] {
                    Short::To(to) if !bits::is_empty(&emitted) && self.may_follow(&emitted, &live[to as usize]) => {
                        raw_alternatives.push(([cand, NONE], to));
                    }
                    Short::Ends(r, to) if !bits::is_empty(&emitted) && self.may_follow(&emitted, &ended[&(r, to)]) => {
                        let set = self.set(&mut out.sets, &ended[&(r, to)]);
                        raw_alternatives.push(([cand, set], to));
                    }
                    _ => {}
                }
                let entry: Entry = raw_alternatives
                    .into_iter()
                    .map(|(emit, to)| {
                        if renumbered[to as usize] == NONE {
                            renumbered[to as usize] = count;
                            count += 1;
                            order.push_back(to);
                        }
                        Alternative { emit, next: renumbered[to as usize] }
                    })
                    .collect();
                let next = out.entries.len() as u32;
                let id = *entry_ids.entry(entry).or_insert_with_key(|entry| {
                    out.entries.push(entry.clone());
                    next
                });
                out.steps.push(id);
            }
            let (q, watchers) = &self.states[x as usize];
            out.cand.push(cand);
            out.live.push(if *q == 0 { NONE } else { self.set(&mut out.sets, &live[x as usize]) });
            out.watched_states += usize::from(!watchers.is_empty());
        }
        out
    }

    /// Intern a set of bits; `NONE` for the empty one.
    fn set(&self, sets: &mut TermSets, set: &[u64]) -> u32 {
        if bits::is_empty(set) {
            return NONE;
        }
        let ignored = bits::meets(set, &self.facts.ignored);
        let terms = bits::iter(set).filter(|&t| bits::has(&self.facts.usable, t)).collect();
        sets.intern(TermSet { terms, ignored })
    }
}

/// Least sets that contain `start` and, along every edge (from, to), what the target's set contains.
pub(super) fn propagate(mut sets: Vec<Vec<u64>>, edges: impl Iterator<Item = (u32, u32)>) -> Vec<Vec<u64>> {
    let mut edges: Vec<(u32, u32)> = edges.filter(|(from, to)| from != to).map(|(from, to)| (to, from)).collect();
    edges.sort_unstable();
    edges.dedup();
    let starts = edge_starts(&edges, sets.len());
    let mut queue: Vec<u32> = (0..sets.len() as u32).collect();
    let mut queued = vec![true; sets.len()];
    while let Some(to) = queue.pop() {
        queued[to as usize] = false;
        for &(_, from) in &edges[starts[to as usize]..starts[to as usize + 1]] {
            let (a, b) = two(&mut sets, from as usize, to as usize);
            if bits::unite(a, b) && !std::mem::replace(&mut queued[from as usize], true) {
                queue.push(from);
            }
        }
    }
    sets
}

/// Boundaries of each first component in sorted pairs.
pub(super) fn edge_starts(edges: &[(u32, u32)], n: usize) -> Vec<usize> {
    let mut starts = vec![0; n + 1];
    for &(key, _) in edges {
        starts[key as usize + 1] += 1;
    }
    for i in 0..n {
        starts[i + 1] += starts[i];
    }
    starts
}

/// Two different elements, the first mutable.
fn two(sets: &mut [Vec<u64>], a: usize, b: usize) -> (&mut [u64], &[u64]) {
    if a < b {
        let (left, right) = sets.split_at_mut(b);
        (&mut left[a], &right[0])
    } else {
        let (left, right) = sets.split_at_mut(a);
        (&mut right[0], &left[b])
    }
}
