//! What exploring a lexer finds: its states and steps, before anything is known to be a trap.

use super::groups::GroupedDfa;
use super::watched::{NONE, TerminalFacts};
use super::watchers::Watchers;
use super::{DEAD, Moves};
use crate::bits;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Where a lexeme's end leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct After {
    /// Whether it is for ignored candidates; else it is for those that can be followed by a lexeme of `group`.
    pub ignored: bool,
    /// Group of the next lexeme.
    pub group: u32,
    /// State in which it starts, or, for a short way, is.
    pub state: u32,
}

/// A lexeme that ends with its last byte, since none could make it longer: its DFA state, and where that leads.
pub(super) struct Ended {
    pub q: u32,
    pub afters: SmallVec<[After; 1]>,
}

/// The main way on from a state under one byte class, or what a byte starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goes {
    /// Nowhere.
    Dead,
    /// Inside the lexeme.
    To(u32),
    /// The lexeme ends with this byte, as this one of [`Raw::ended`].
    Ends(u32),
}

/// A short way on: the lexeme ended before the byte, which starts the next one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Short {
    pub ignored: bool,
    pub group: u32,
    pub goes: Goes,
}

/// A step.
pub(super) struct Step {
    /// The main way on.
    pub main: Goes,
    /// The short ones.
    pub shorts: SmallVec<[Short; 1]>,
    /// Whether the lexeme may end before the byte.
    pub may_end: bool,
}

/// All states that bytes can lead to, before anything is known to be a trap.
pub(super) struct Raw<'a> {
    pub dfa: &'a GroupedDfa,
    pub facts: &'a TerminalFacts,
    pub width: usize,
    /// DFA state and watchers of each state.
    pub states: Vec<(u32, u32)>,
    pub ids: FxHashMap<(u32, u32), u32>,
    /// Number of each DFA state without watchers, or `NONE`.
    pub plain: Vec<u32>,
    /// First state that each state was met from, with the byte class: gives a shortest text.
    pub met: Vec<(u32, u16)>,
    pub watchers: Watchers,
    /// All steps; the first one is dead.
    pub steps: Vec<Step>,
    /// Rows of steps by byte class. A state has one of its own, or, but for some steps inside the lexeme, that of a model.
    pub rows: Vec<u32>,
    pub row_of: Vec<Row>,
    /// The classes and steps in which each state differs from its model, delimited by `own_start`.
    pub own: Vec<(u32, u32)>,
    pub own_start: Vec<usize>,
    /// Distinct steps of each state inside the lexeme that lead somewhere, delimited by `inside_start`.
    pub inside: Vec<u32>,
    pub inside_start: Vec<usize>,
    /// The list of each state's distinct steps at which the lexeme may end; states that accept the same share them.
    pub ends_of: Vec<u32>,
    pub ends: Vec<Box<[u32]>>,
    pub ends_ids: FxHashMap<Box<[u32]>, u32>,
    /// Usable and ignored candidates of each candidate set, as bits.
    pub cand_sets: bits::Matrix,
    /// What a lexeme can become from each DFA state, watchers aside.
    pub unwatched: bits::Matrix,
    /// Whether a lexeme cannot go on from each DFA state, so that it is emitted at once.
    pub is_final: Vec<bool>,
    /// Lexemes that are, and where coming to a DFA state of them with watchers leads.
    pub ended: Vec<Ended>,
    pub arrivals: FxHashMap<(u32, u32), Goes>,
    /// Moves of the states that count.
    pub moves: Moves,
}

/// Groups of the next lexeme, and whether what ended is then ignored.
pub(super) type NextGroups = SmallVec<[(bool, u32); 2]>;
/// A set of terminals.
pub(super) type Bits = SmallVec<[u64; 8]>;

/// Whose row a state has, and which one that is.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub state: u32,
    pub number: usize,
}

pub(super) const DEAD_STEP: u32 = 0;
/// In place of a byte class: a move.
pub(super) const MOVE: u16 = u16::MAX;
/// The empty set of watchers.
pub(super) const UNWATCHED: u32 = 0;

impl<'a> Raw<'a> {
    pub(super) fn state(&mut self, q: u32, watchers: u32, from: (u32, u16)) -> u32 {
        let next = self.states.len() as u32;
        let id = if watchers == UNWATCHED {
            match &mut self.plain[q as usize] {
                known if *known == NONE => {
                    *known = next;
                    next
                }
                known => *known,
            }
        } else {
            *self.ids.entry((q, watchers)).or_insert(next)
        };
        if id == next {
            self.states.push((q, watchers));
            self.met.push(from);
        }
        id
    }

    pub(super) fn delta(&self, q: u32, class: usize) -> Option<u32> {
        let to = self.dfa.next[q as usize * self.dfa.class_count + class];
        (to != DEAD).then_some(to)
    }

    pub(super) fn accepts(&self, q: u32) -> bool {
        self.dfa.cand[q as usize] != 0
    }

    /// Usable and ignored candidates of a DFA state.
    pub(super) fn cand(&self, q: u32) -> &[u64] {
        &self.cand_sets[self.dfa.cand[q as usize] as usize]
    }

    /// Groups that the next lexeme can be of after these candidates of a lexeme of `group`: first the same one, if there
    /// are ignored candidates, then those after the others.
    pub(super) fn next_groups(&self, candidates: &[u64], group: u32) -> NextGroups {
        let mut groups: NextGroups = SmallVec::new();
        if bits::meets(candidates, &self.facts.ignored) {
            groups.push((true, group));
        }
        let from = groups.len();
        for t in bits::iter(candidates).filter(|&t| bits::has(&self.facts.usable, t)) {
            groups.extend(self.facts.after[t as usize].iter().map(|(g, _)| (false, *g)));
        }
        groups[from..].sort_unstable();
        groups.dedup();
        groups
    }

    /// Whether a state is between lexemes.
    pub(super) fn is_start(&self, x: u32) -> bool {
        let q = self.states[x as usize].0;
        self.dfa.starts[self.dfa.group[q as usize] as usize] == q
    }

    /// What a lexeme can become from a DFA state, watchers aside.
    pub(super) fn live_at(&self, q: u32) -> &[u64] {
        &self.unwatched[q as usize]
    }

    pub(super) fn group_of(&self, x: u32) -> u32 {
        self.dfa.group[self.states[x as usize].0 as usize]
    }

    pub(super) fn cand_of(&self, x: u32) -> &[u64] {
        self.cand(self.states[x as usize].0)
    }

    /// The distinct steps of a state, but for the dead one.
    pub(super) fn steps_of(&self, x: u32) -> impl Iterator<Item = &Step> {
        self.inside_of(x).chain(self.ends_at(self.ends_of[x as usize]))
    }

    /// Those at which the lexeme goes on.
    pub(super) fn inside_of(&self, x: u32) -> impl Iterator<Item = &Step> {
        self.inside_steps(x).iter().map(|&step| &self.steps[step as usize])
    }

    /// If a state leads and accepts as its model does and in some ways more: the model, and the steps for those.
    pub(super) fn more_than_model(&self, x: u32) -> Option<(u32, impl Iterator<Item = &Step>)> {
        let model = self.row_of[x as usize].state;
        let cand = |x: u32| self.dfa.cand[self.states[x as usize].0 as usize];
        let is_alike = model != x
            && !self.is_start(model)
            && (cand(x), self.group_of(x)) == (cand(model), self.group_of(model))
            && self.moves.of(x).is_empty()
            && self.moves.of(model).is_empty();
        let more = self.inside_steps(x).strip_prefix(self.inside_steps(model)).filter(|_| is_alike)?;
        Some((model, more.iter().map(|&step| &self.steps[step as usize])))
    }

    pub(super) fn inside_steps(&self, x: u32) -> &[u32] {
        &self.inside[self.inside_start[x as usize]..self.inside_start[x as usize + 1]]
    }

    /// Those of a list of steps at which it may end.
    pub(super) fn ends_at(&self, list: u32) -> impl Iterator<Item = &Step> {
        self.ends[list as usize].iter().map(|&step| &self.steps[step as usize])
    }

    /// The classes and steps in which a state differs from its model.
    pub(super) fn own_of(&self, x: u32) -> &[(u32, u32)] {
        &self.own[self.own_start[x as usize]..self.own_start[x as usize + 1]]
    }

    /// A shortest text that leads to a state, with one byte per class chosen.
    pub(super) fn text(&self, mut x: u32) -> Vec<u8> {
        let mut text = Vec::new();
        while x != 0 {
            let (from, class) = self.met[x as usize];
            if class == MOVE {
                text.extend(b"...");
                x = from;
                continue;
            }
            let bytes = (0..=255u8).filter(|&b| u16::from(self.dfa.byte_class[b as usize]) == class);
            match bytes.min_by_key(|b| (!b.is_ascii_graphic(), *b)) {
                Some(byte) => text.push(byte),
                None => text.extend(b"<token>".iter().rev()),
            }
            x = from;
        }
        text.reverse();
        text
    }
}
