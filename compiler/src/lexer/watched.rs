//! The watched lexer: the lexer DFA with delayed emission and backtracking made explicit.
//!
//! A state is x = (q, W): a DFA state (which knows its lexer group) and the watchers, DFA states in which a longer match may
//! still come that would undo an emission already made. W is nearly always empty. State 0 is the start of the text. A step
//! has a main alternative and short ones, one for each group that the next lexeme can be of: which, only the LR state on
//! top after the shift can tell, so an emission says which group it expects. An alternative has up to two emissions: of
//! the lexeme that ended before the byte, and of a lexeme that is this one byte and cannot go on.
//!
//! Invariants
//! 1. An alternative exists only if it can matter: what is pending in its target can still become a terminal that may
//!    follow what it emitted, or an ignored one. (The parser would refuse the others; leaving them out keeps the states few.)
//! 2. Candidate and live sets hold only terminals that some stack can shift; ignored ones are a flag.
//! 3. `live` is after trap removal ([`super::separability`]).
//!
//! It is made by exploring the DFA ([`super::explore`]), and put together of what is left after the analysis
//! ([`super::finish`]).

use super::Moves;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

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
    /// What a sentence can begin with; the end, if the empty text is one.
    pub begin: Vec<u64>,
    /// What may follow each terminal in a sentence.
    pub follow: Vec<Vec<u64>>,
    /// Groups that the next lexeme can be of after each terminal, with the terminals of the rows in question.
    pub after: Vec<Vec<(u32, Vec<u64>)>>,
}

impl TerminalFacts {
    /// Terminals of the rows of group `group` that shifting `t` can lead to; `None` if it leads to none.
    pub fn rows_after(&self, t: u32, group: u32) -> Option<&[u64]> {
        self.after[t as usize].iter().find(|(g, _)| *g == group).map(|(_, rows)| &rows[..])
    }
}

/// What a lexeme turned out to be: some of its candidates, and the group that the next lexeme is then of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Emission {
    /// Candidates: usable ones, or, as a set without members, ignored ones.
    pub set: u32,
    /// Group, or `NONE` after ignored ones, which change nothing.
    pub group: u32,
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
    /// Emissions, in order; `NONE` where nothing is emitted.
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
    /// Number of classes, those of bytes first, then the symbols.
    pub classes: usize,
    /// How many of them are symbols.
    pub symbols: usize,
    /// Entry of each state and class.
    pub steps: Vec<u32>,
    /// Entries; [`DEAD_ENTRY`] is empty.
    pub entries: Vec<Entry>,
    /// Candidate set if the lexeme ended here, or `NONE`.
    pub cand: Vec<u32>,
    /// The same as emissions, ignored candidates left out.
    pub cand_emissions: Vec<SmallVec<[u32; 1]>>,
    /// State in which a lexeme of each group starts without watchers; `NONE` if none ever does.
    pub starts: Vec<u32>,
    /// Group of each state.
    pub group: Vec<u32>,
    /// Live set, or `NONE` between lexemes.
    pub live: Vec<u32>,
    /// All sets.
    pub sets: TermSets,
    /// All emissions.
    pub emissions: Vec<Emission>,
    /// States with watchers.
    pub watched_states: usize,
    /// Whether each state has watchers.
    pub watched: Vec<bool>,
    /// Value from which each chain is counted down.
    pub chains: Vec<u32>,
    /// Moves of the states that count, into what is no longer counted.
    pub(crate) moves: Moves,
}

/// Why there is no watched lexer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchedError {
    /// More states than this limit.
    TooManyStates(usize),
    /// This chain cannot be counted exactly: its terminal's repeats have to be copied.
    Uncountable(u32),
}

impl WatchedLexer {
    /// Number of states.
    pub fn state_count(&self) -> usize {
        self.cand.len()
    }

    /// Entry of a state and byte.
    pub fn entry(&self, state: u32, byte: u8) -> &Entry {
        &self.entries[self.entry_id(state, byte) as usize]
    }

    /// Entry of a state and class.
    pub fn entry_of_class(&self, state: u32, class: usize) -> &Entry {
        &self.entries[self.steps[state as usize * self.classes + class] as usize]
    }

    /// Id of the entry of a state and byte.
    pub fn entry_id(&self, state: u32, byte: u8) -> u32 {
        self.steps[state as usize * self.classes + self.byte_class[byte as usize] as usize]
    }

    /// Classes of bytes.
    pub fn byte_classes(&self) -> usize {
        self.classes - self.symbols
    }
}
