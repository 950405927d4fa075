//! Lexer groups: which LR states share a lexer.
//!
//! In `basic` mode all do. In `contextual` mode the terminals that take part in a lexeme are those of the row of the LR
//! state on top when it starts, with the ignored and the reject terminals (of the parts these belong to): states with equal rows share a lexer, and rows
//! that differ do, over the union of their terminals, where [`sharing`] proves that it cuts their lexemes as their own would.

use super::classes::{ByteClasses, classes_of};
use super::counters::of_chain;
use super::{Chain, Counting, DEAD, LexerDfa, LexerError, LexerLimits, Moves, Symbols, Terminals, sharing};
use crate::bits;
use crate::grammar::ir::{Symbol, TerminalId};
use crate::lr::LrTable;
use crate::parallel;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Which LR states share a lexer.
#[derive(Debug, Clone)]
pub struct Groups {
    /// Group of each LR state; what it is where no lexeme can start does not matter.
    pub of_state: Vec<u32>,
    /// Terminals of each group.
    pub members: Vec<Vec<TerminalId>>,
    /// Distinct rows in which lexemes start, or 1 in `basic` mode.
    pub rows: usize,
}

impl Groups {
    /// One group with all terminals.
    pub(crate) fn basic(table: &LrTable) -> Self {
        let all = (0..table.terminal_count as u32).collect();
        Groups { of_state: vec![0; table.state_count], members: vec![all], rows: 1 }
    }

    /// Groups of the rows of the states in which a lexeme can start, coloured in state order. If not `shared`, one group for
    /// each distinct row.
    pub(crate) fn contextual(terminals: &Terminals, table: &LrTable, shared: bool, counting: &Counting) -> Self {
        let all = terminals.all;
        let everywhere: Vec<u32> =
            (0..all.len() as u32).filter(|&t| all[t as usize].ignored || all[t as usize].reject).collect();
        let mut of_state = vec![0; table.state_count];
        let mut rows: Vec<Vec<u64>> = Vec::new();
        let mut ids: FxHashMap<Vec<u64>, u32> = FxHashMap::default();
        for state in 0..table.state_count as u32 {
            if state != 0 && !matches!(table.accessing[state as usize], Some(Symbol::T(_))) {
                continue;
            }
            let mut row = vec![0; bits::words(table.terminal_count + 1)];
            let own = table.row_terminals(state).iter().filter(|&&t| (t as usize) < table.terminal_count);
            own.clone().for_each(|&t| bits::insert(&mut row, t));
            for &t in &everywhere {
                let scope = all[t as usize].scope;
                if scope.is_none() || own.clone().any(|&t| all[t as usize].scope == scope) {
                    bits::insert(&mut row, t);
                }
            }
            of_state[state as usize] = *ids.entry(row).or_insert_with_key(|row| {
                rows.push(row.clone());
                rows.len() as u32 - 1
            });
        }
        let count = rows.len();
        if shared {
            let (colours, unions) = sharing::colour(terminals, &rows, counting);
            of_state.iter_mut().for_each(|row| *row = colours[*row as usize]);
            rows = unions;
        }
        Groups { of_state, members: rows.iter().map(|row| bits::iter(row).collect()).collect(), rows: count }
    }
}

/// The lexers of all groups as one automaton with several starts.
#[derive(Debug)]
pub struct GroupedDfa {
    /// Byte to class, common to all groups.
    pub byte_class: [u8; 256],
    /// Number of classes, those of bytes first, then the symbols.
    pub class_count: usize,
    /// How many of them are symbols.
    pub symbols: usize,
    /// `[state * class_count + class]` → state, or [`DEAD`].
    pub next: Vec<u32>,
    /// Set of candidates of each state, of which number 0 is empty: for states that do not accept.
    pub cand: Vec<u32>,
    /// Sets of candidates.
    pub cand_sets: Vec<Box<[TerminalId]>>,
    /// Start of each group's lexemes.
    pub starts: Vec<u32>,
    /// Group of each state.
    pub group: Vec<u32>,
    /// Repeats that are counted, those of each group in a row.
    pub chains: Vec<Chain>,
    /// Moves of the states that count.
    pub(crate) moves: Moves,
}

impl GroupedDfa {
    /// The lexer of all terminals.
    ///
    /// # Errors
    /// [`LexerError`] if it cannot be built.
    pub(crate) fn basic(
        terminals: &Terminals,
        symbols: &Symbols,
        limits: &LexerLimits,
        counting: &Counting,
    ) -> Result<Self, LexerError> {
        Self::build(terminals, &[(0..terminals.all.len() as u32).collect()], symbols, limits, counting)
    }

    /// The lexers of the rows, `shared` where that is exact. Where shared ones grow large, each distinct row has its own.
    ///
    /// # Errors
    /// [`LexerError`] of the first that cannot be built.
    pub(crate) fn contextual(
        terminals: &Terminals,
        table: &LrTable,
        symbols: &Symbols,
        shared: bool,
        limits: &LexerLimits,
        counting: &Counting,
    ) -> Result<(Groups, Self), LexerError> {
        let small = LexerLimits {
            max_dfa_states: limits.max_dfa_states / 16,
            max_subset_elements: limits.max_subset_elements / 16,
            ..limits.clone()
        };
        if shared {
            // Two counters in one lexer may take more states than the copies that they stand for.
            for counting in [counting, &Counting::none()] {
                let groups = Groups::contextual(terminals, table, true, counting);
                if let Ok(dfa) = Self::build(terminals, &groups.members, symbols, &small, counting) {
                    return Ok((groups, dfa));
                }
            }
        }
        let groups = Groups::contextual(terminals, table, false, counting);
        let dfa = Self::build(terminals, &groups.members, symbols, limits, counting)?;
        Ok((groups, dfa))
    }

    /// Build the lexer of each group, candidates resolved by rank.
    fn build(
        terminals: &Terminals,
        groups: &[Vec<TerminalId>],
        symbols: &Symbols,
        limits: &LexerLimits,
        counting: &Counting,
    ) -> Result<Self, LexerError> {
        let left = AtomicUsize::new(limits.max_dfa_states);
        let parts = parallel::map(groups, |members| {
            let part = LexerDfa::counted(terminals, members, true, limits, counting)?;
            let states = part.state_count();
            match left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(states)) {
                Ok(_) => Ok(part),
                Err(_) => Err(LexerError::DfaStates { terminal: None, limit: limits.max_dfa_states }),
            }
        });
        let parts: Vec<LexerDfa> = parts.into_iter().collect::<Result<_, _>>()?;
        let joint = ByteClasses::joint(parts.iter().map(|part| &part.byte_class));
        let samples = joint.samples();
        let states: usize = parts.iter().map(LexerDfa::state_count).sum();
        let mut out = GroupedDfa {
            byte_class: joint.of,
            class_count: joint.count,
            symbols: symbols.len(),
            next: Vec::with_capacity(states * joint.count),
            cand: Vec::with_capacity(states),
            cand_sets: vec![Box::default()],
            starts: Vec::new(),
            group: Vec::new(),
            chains: Vec::new(),
            moves: Moves::default(),
        };
        for (group, part) in parts.iter().enumerate() {
            let (offset, sets) = (out.cand.len() as u32, out.cand_sets.len() as u32 - 1);
            out.starts.push(offset);
            let classes = classes_of(&samples, &part.byte_class);
            for q in 0..part.state_count() as u32 {
                let row = part.row(q);
                out.next
                    .extend(classes.iter().map(|&class| if row[class] == DEAD { DEAD } else { row[class] + offset }));
            }
            for from in part.moves.states() {
                for &(letter, to) in part.moves.of(from) {
                    out.moves.push(from + offset, of_chain(letter, out.chains.len()), to + offset);
                }
            }
            out.chains.extend_from_slice(&part.chains);
            out.cand.extend(part.cand.iter().map(|&set| if set == 0 { 0 } else { set + sets }));
            out.cand_sets.extend_from_slice(&part.cand_sets[1..]);
            out.group.resize(out.cand.len(), group as u32);
        }
        out.add_symbols(groups, symbols);
        Ok(out)
    }

    /// Number of states.
    pub fn state_count(&self) -> usize {
        self.cand.len()
    }

    /// The transitions of a state by class, [`DEAD`] where there is none.
    pub fn row(&self, q: u32) -> &[u32] {
        &self.next[q as usize * self.class_count..][..self.class_count]
    }
}
