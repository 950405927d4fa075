//! Terminal expressions → one byte DFA whose states know every terminal they accept.
//!
//! The stages, each a pure function in its own file:
//!
//! 1. `nfa`: an [`Expr`](crate::grammar::ir::Expr) becomes a Thompson NFA over byte ranges; `utf8` and `json_class` turn
//!    code-point classes into small shared byte automata, `boolean` computes `&` and `~` on automata of the operands;
//! 2. `determinize`: subset construction over byte classes, keyed by the NFA states that matter;
//! 3. `minimize`: Hopcroft's partition refinement, then the coarsest byte classes, then breadth-first numbering;
//! 4. `components`: all this happens once for each part of a terminal, and again for the automata of those together that may
//!    begin alike, once for each set of them;
//! 5. `words`: what are no patterns but words joins them as a trie, without passing through the other stages.
//!
//! Which is which is found out once for all lexers of a grammar (`terminals`), and what its patterns have in common with those
//! of other grammars, once for all (`known`).
//!
//! What holds of every [`LexerDfa`]:
//!
//! 1. State 0 is the start of a lexeme; no transition leads to it and it is merged with nothing, so "at the start" and
//!    "inside a lexeme" are different states.
//! 2. Every state is reachable and can reach an accepting state: an undefined transition means "no terminal any more".
//! 3. Apart from the start it is minimal, with respect to candidate sets and transitions; so are its byte classes.
//! 4. States are numbered breadth first in byte-class order, classes by their first byte, candidate sets by first use:
//!    the same input gives the same automaton, always.
//!
//! Cost: O(transitions × log transitions) for the last stage; the subset construction is linear for expressions that are
//! close to deterministic (keywords, strings, numbers, bounded repeats) and exponential at worst, which [`LexerLimits`]
//! cuts off. Bounded repeats of few copies are copied, those of many are counted (`counters`).

mod boolean;
mod classes;
mod components;
mod counters;
mod cuts;
mod determinize;
mod explore;
mod finish;
mod groups;
mod json_class;
mod known;
mod minimize;
mod models;
mod nfa;
mod propagate;
mod raw;
mod reach;
mod separability;
mod sharing;
mod symbols;
mod terminals;
#[cfg(test)]
mod tests;
mod unfold;
mod utf8;
mod watched;
mod watchers;
mod words;

use components::{Rules, automaton};
pub use counters::{Chain, Counting};
pub(crate) use counters::{Moves, chain_of, is_far};
pub use cuts::Cut;
pub(crate) use cuts::{find as find_cuts, shortest_text};
pub use groups::{GroupedDfa, Groups};
pub(crate) use known::KnownPatterns;
pub(crate) use reach::reach;
pub use separability::{Findings, Report, build_watched};
pub use symbols::Symbols;
pub(crate) use terminals::Terminals;
pub(crate) use unfold::unfold;
pub use unfold::{Far, FarCounter, FarState};
pub use watched::{
    Alternative, DEAD_ENTRY, Emission, Entry, NONE, TermSet, TermSets, TerminalFacts, WatchedError, WatchedLexer,
};

use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::grammar::ir::{Terminal, TerminalId};
use determinize::{Dfa, Overflow};
use minimize::renumber;
use words::Trie;

/// The transition that is not there.
pub const DEAD: u32 = u32::MAX;

/// How large the automata of one lexer may grow before the build gives up with a [`LexerError`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LexerLimits {
    /// NFA states of a terminal. Default 4,000,000, some 100 MB.
    pub max_nfa_states: usize,
    /// DFA states before minimisation, of the lexer and of each operand of `&` and `~`. Default 1,000,000; a state takes
    /// four bytes per byte class.
    pub max_dfa_states: usize,
    /// NFA states held in the sets that the subset construction keeps, counted with repetition. Default 64,000,000, of
    /// four bytes each.
    pub max_subset_elements: usize,
}

impl Default for LexerLimits {
    fn default() -> Self {
        Self { max_nfa_states: 4_000_000, max_dfa_states: 1_000_000, max_subset_elements: 64_000_000 }
    }
}

/// Why no lexer could be built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LexerError {
    /// A terminal that matches nothing would make lexemes of length zero.
    #[error("terminal {terminal:?} matches the empty string; make one of its parts mandatory")]
    Nullable {
        /// The terminal's name.
        terminal: String,
    },
    /// No byte string matches.
    #[error("terminal {terminal:?} matches no string at all; remove it or widen its expression")]
    EmptyLanguage {
        /// The terminal's name.
        terminal: String,
    },
    /// A token id beyond the vocabulary.
    #[error("terminal {terminal:?} names token {id}, but the vocabulary has ids 0 to {max}")]
    TokenRange {
        /// The terminal's name.
        terminal: String,
        /// The id.
        id: u64,
        /// The largest valid id.
        max: u64,
    },
    /// A name that was not looked up in the vocabulary.
    #[error("terminal {terminal:?} names a token by a name that was not resolved to an id")]
    UnresolvedToken {
        /// The terminal's name.
        terminal: String,
    },
    /// More kinds of tokens than are addressed.
    #[error("the token terminals tell more than {limit} kinds of tokens apart; let them share ranges of ids")]
    TooManySymbols {
        /// The limit.
        limit: usize,
    },
    /// A bounded repeat whose copies do not fit.
    #[error(
        "terminal {terminal:?} repeats a part {min} to {} times, which takes {states} NFA states, limit {limit}; lower \
         the bound, leave it open, or raise max_nfa_states",
        max.map_or_else(|| "unbounded".to_owned(), |max| max.to_string())
    )]
    RepeatTooLarge {
        /// The terminal's name.
        terminal: String,
        /// The repeat's lower bound.
        min: u32,
        /// The repeat's upper bound.
        max: Option<u32>,
        /// States its copies would take.
        states: u64,
        /// [`LexerLimits::max_nfa_states`].
        limit: usize,
    },
    /// A part of a terminal cannot be counted: building starts again, with copies. Never reported.
    #[error("a repeat in terminal number {terminal} cannot be counted")]
    Uncountable {
        /// The terminal.
        terminal: TerminalId,
    },
    /// Nesting that only hostile input has.
    #[error("terminal {terminal:?} is nested deeper than {limit} levels; flatten its expression")]
    TooDeep {
        /// The terminal's name.
        terminal: String,
        /// [`MAX_EXPR_DEPTH`](crate::grammar::ir::MAX_EXPR_DEPTH).
        limit: usize,
    },
    /// The NFA outgrew its limit.
    #[error("lexer passed {limit} NFA states in terminal {terminal:?}; shorten its expression or raise max_nfa_states")]
    NfaStates {
        /// The name of the terminal under construction.
        terminal: String,
        /// [`LexerLimits::max_nfa_states`].
        limit: usize,
    },
    /// A DFA outgrew its limit.
    #[error(
        "lexer passed {limit} DFA states{}; simplify ambiguous repeats or raise max_dfa_states",
        in_terminal(terminal)
    )]
    DfaStates {
        /// The terminal's name; none when the automaton of all terminals together is too large.
        terminal: Option<String>,
        /// [`LexerLimits::max_dfa_states`].
        limit: usize,
    },
    /// The subset construction outgrew its limit.
    #[error(
        "lexer passed {limit} subset elements{}; simplify ambiguous repeats or raise max_subset_elements",
        in_terminal(terminal)
    )]
    SubsetElements {
        /// The terminal's name; none when the automaton of all terminals together is too large.
        terminal: Option<String>,
        /// [`LexerLimits::max_subset_elements`].
        limit: usize,
    },
}

fn in_terminal(terminal: &Option<String>) -> String {
    match terminal {
        Some(name) => format!(" in terminal {name:?}"),
        None => " for all terminals together".to_owned(),
    }
}

impl LexerError {
    fn overflow(overflow: Overflow, terminal: Option<&str>) -> Self {
        let terminal = terminal.map(str::to_owned);
        match overflow {
            Overflow::States(limit) => Self::DfaStates { terminal, limit },
            Overflow::Elements(limit) => Self::SubsetElements { terminal, limit },
            Overflow::Counter(terminal) => Self::Uncountable { terminal },
        }
    }
}

/// The byte DFA of a set of terminals; see the module for what it guarantees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LexerDfa {
    /// Byte → class. Two bytes share a class exactly when every state treats them alike.
    pub byte_class: [u8; 256],
    /// Number of classes, 1 to 256.
    pub class_count: usize,
    /// `[state * class_count + class]` → state, or [`DEAD`].
    pub next: Vec<u32>,
    /// Per state: its index in `cand_sets`; 0 when it does not accept.
    pub cand: Vec<u32>,
    /// Sorted sets of terminals, distinct, numbered by first use; the first one is empty.
    pub cand_sets: Vec<Box<[TerminalId]>>,
    /// Repeats that are counted; see the module `counters`.
    pub chains: Vec<Chain>,
    /// Moves of the states that count.
    pub(crate) moves: Moves,
}

impl LexerDfa {
    /// Build the automaton of the terminals `members`, which index `terminals`; order and repetition do not matter. No bytes
    /// match token terminals, which are left out.
    ///
    /// With `resolve_ranks` a state keeps only the accepting terminals of the highest [`Terminal::rank`], otherwise all.
    ///
    /// # Errors
    /// [`LexerError`], if a member is nullable, matches nothing, or outgrows `limits`.
    ///
    /// # Panics
    /// If a member is no index of `terminals`.
    pub fn build(
        terminals: &[Terminal],
        members: &[TerminalId],
        resolve_ranks: bool,
        limits: &LexerLimits,
    ) -> Result<Self, LexerError> {
        let known = KnownPatterns::default();
        let terminals = &Terminals::new(terminals, &known, limits);
        Self::build_once(&Rules { terminals, resolve_ranks, limits, counting: &Counting::none() }, members, true)
    }

    /// As [`build`](Self::build), with repeats counted where that is exact, and of components that are known.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub(crate) fn counted(
        terminals: &Terminals,
        members: &[TerminalId],
        resolve_ranks: bool,
        limits: &LexerLimits,
        counting: &Counting,
    ) -> Result<Self, LexerError> {
        let mut counting = counting.clone();
        loop {
            let rules = Rules { terminals, resolve_ranks, limits, counting: &counting };
            match Self::build_once(&rules, members, true) {
                Err(LexerError::Uncountable { terminal }) => counting.copied.insert(terminal),
                result => return result,
            };
        }
    }

    fn build_once(rules: &Rules, members: &[TerminalId], take_words: bool) -> Result<Self, LexerError> {
        let Rules { terminals, limits, .. } = *rules;
        let mut members = members.to_vec();
        members.sort_unstable();
        members.dedup();
        members.retain(|&t| !terminals.all[t as usize].expr.is_token());
        let (trie, patterns) = match take_words {
            true => terminals.words_and_patterns(&members, limits.max_nfa_states),
            false => (Trie::default(), members.iter().map(|&t| terminals.pattern(t)).collect()),
        };
        let mut sets = CandidateSets::default();
        let (mut dfa, chains) = automaton(patterns, rules, &mut sets)?;
        if !trie.is_empty() && !chains.is_empty() {
            // States inside of words would have to move, too: subset construction sees to that.
            return Self::build_once(rules, &members, false);
        }
        if trie.is_empty() {
            dfa = renumber(&dfa, 0);
        } else {
            let unite = |set: u32, words: &[TerminalId]| {
                let mut all = [&sets.sets[set as usize][..], words].concat();
                all.sort_unstable();
                all.dedup();
                sets.intern(rules.best(&all))
            };
            let overflow = |overflow| LexerError::overflow(overflow, None);
            dfa = trie.join(&dfa, limits, unite).map_err(overflow)?;
        }
        Ok(Self::from_dfa(dfa, &sets, chains))
    }

    fn from_dfa(dfa: Dfa, sets: &CandidateSets, chains: Vec<Chain>) -> Self {
        let mut used = CandidateSets::default();
        let mut ids = vec![DEAD; sets.sets.len()];
        let mut id = |set: u32| {
            if ids[set as usize] == DEAD {
                ids[set as usize] = used.intern(sets.sets[set as usize].clone());
            }
            ids[set as usize]
        };
        let cand = dfa.cand.iter().map(|&set| id(set)).collect();
        let Dfa { byte_class, class_count, next, moves, .. } = dfa;
        Self { byte_class, class_count, next, cand, cand_sets: used.sets, chains, moves }
    }

    /// The state after byte `b` in state `q`; none when no terminal matches any more.
    #[inline]
    pub fn step(&self, q: u32, b: u8) -> Option<u32> {
        let next = self.next[q as usize * self.class_count + usize::from(self.byte_class[usize::from(b)])];
        (next != DEAD).then_some(next)
    }

    /// The state after `text` in state `q`.
    pub fn run(&self, q: u32, text: &[u8]) -> Option<u32> {
        text.iter().try_fold(q, |q, &b| self.step(q, b))
    }

    /// The transitions of state `q` by byte class, [`DEAD`] where undefined.
    #[inline]
    pub fn row(&self, q: u32) -> &[u32] {
        &self.next[q as usize * self.class_count..][..self.class_count]
    }

    /// Number of states.
    #[inline]
    pub fn state_count(&self) -> usize {
        self.cand.len()
    }

    /// The candidates if the lexeme ended in state `q`, sorted.
    #[inline]
    pub fn candidates(&self, q: u32) -> &[TerminalId] {
        &self.cand_sets[self.cand[q as usize] as usize]
    }

    /// Does the lexeme possibly end in state `q`?
    #[inline]
    pub fn is_accepting(&self, q: u32) -> bool {
        self.cand[q as usize] != 0
    }
}

/// Interns sets of terminals; the empty set is number 0.
struct CandidateSets {
    sets: Vec<Box<[TerminalId]>>,
    ids: FxHashMap<Box<[TerminalId]>, u32>,
}

impl Default for CandidateSets {
    fn default() -> Self {
        let empty: Box<[TerminalId]> = Box::default();
        Self { sets: vec![empty.clone()], ids: [(empty, 0)].into_iter().collect() }
    }
}

impl CandidateSets {
    fn intern(&mut self, set: Box<[TerminalId]>) -> u32 {
        if let Some(&id) = self.ids.get(&set) {
            return id;
        }
        let id = self.sets.len() as u32;
        self.sets.push(set.clone());
        self.ids.insert(set, id);
        id
    }
}
