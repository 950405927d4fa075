//! The parse table that everything behind it reads.

use super::items::{Automaton, Slots};
use super::lookahead::lookaheads;
use crate::grammar::analysis::nullable;
use crate::grammar::ir::{Name, Symbol};
use crate::grammar::reduce::ReducedGrammar;
use crate::grammar::relation::{EMPTY, columns};

/// What a parser can do on a terminal. The order is the order in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Push this state and read on.
    Shift(u32),
    /// Apply this production.
    Reduce(u32),
    /// The sentence is complete.
    Accept,
}

/// Sizes beyond which no table is built. The defaults only stop what would not fit in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LrLimits {
    /// Number of states.
    pub max_states: usize,
    /// Number of kernel items, and of moves and reductions, of all states together.
    pub max_items: usize,
    /// Number of actions in the table.
    pub max_actions: usize,
}

impl Default for LrLimits {
    fn default() -> Self {
        LrLimits { max_states: 1 << 22, max_items: 1 << 27, max_actions: 1 << 27 }
    }
}

impl LrLimits {
    pub(super) fn check(&self, what: &'static str, count: usize, limit: usize) -> Result<(), LrError> {
        // Counts are stored in 32 bits.
        let limit = limit.min(u32::MAX as usize);
        if count > limit { Err(LrError::Limit { what, limit }) } else { Ok(()) }
    }
}

/// Why a table was not built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LrError {
    /// A limit was passed.
    #[error("parse table passed its limit of {limit} {what}")]
    Limit {
        /// What there was too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

/// An LALR(1) table with all conflicts.
///
/// State 0 is the start. After the start nonterminal, the end is accepted. A stack is a list of states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LrTable {
    /// Number of states.
    pub state_count: usize,
    /// Number of terminals; this is also the column of the end.
    pub terminal_count: usize,
    /// Number of nonterminals.
    pub nonterminal_count: usize,
    /// Left-hand side and length of each production.
    pub productions: Vec<(u32, u32)>,
    /// Alias or rule name of each production.
    pub production_names: Vec<Name>,
    /// The symbol that leads to each state; none leads to state 0.
    pub accessing: Vec<Option<Symbol>>,
    /// Number of cells with several actions, not counting those filled by a fallback.
    pub conflicts: usize,
    /// The state and terminal of these cells, ascending.
    pub conflict_cells: Vec<(u32, u32)>,
    row_starts: Vec<u32>,
    cell_terminals: Vec<u32>,
    cell_starts: Vec<u32>,
    actions: Vec<Action>,
    goto_starts: Vec<u32>,
    goto_nonterminals: Vec<u32>,
    goto_targets: Vec<u32>,
}

impl LrTable {
    /// Build the table of a grammar, then give terminals without an action in a state those of the first terminal along
    /// their fallback chain that has one there.
    ///
    /// `fallback` holds a terminal or nothing for each terminal and has no cycles. Parsing with the table terminates if the
    /// grammar went through [`remove_hidden_recursion`](crate::grammar::epsilon::remove_hidden_recursion).
    ///
    /// # Errors
    /// [`LrError::Limit`] if the table would pass a limit.
    pub fn build(grammar: &ReducedGrammar, fallback: &[Option<u32>], limits: LrLimits) -> Result<LrTable, LrError> {
        let slots = Slots::new(grammar)?;
        let automaton = Automaton::build(&slots, &limits)?;
        let mut table = LrTable {
            state_count: automaton.state_count(),
            terminal_count: grammar.terminal_count,
            nonterminal_count: grammar.nonterminal_names.len(),
            productions: grammar.productions.iter().map(|p| (p.lhs, p.rhs.len() as u32)).collect(),
            production_names: grammar.productions.iter().map(|p| p.name.clone()).collect(),
            accessing: automaton.accessing.iter().map(|&s| (s != u32::MAX).then(|| slots.symbol(s))).collect(),
            conflicts: 0,
            conflict_cells: Vec::new(),
            row_starts: vec![0],
            cell_terminals: Vec::new(),
            cell_starts: vec![0],
            actions: Vec::new(),
            goto_starts: vec![0],
            goto_nonterminals: Vec::new(),
            goto_targets: Vec::new(),
        };
        let lookaheads = lookaheads(&slots, &automaton, &nullable(grammar));
        let fallbacks = Fallbacks::new(fallback);
        let mut cells: Cells = Vec::new();
        for state in 0..table.state_count {
            cells.clear();
            for m in automaton.moves(state) {
                let (symbol, target) = (automaton.move_symbols[m], automaton.move_targets[m]);
                match slots.symbol(symbol) {
                    Symbol::T(t) => cells.push((t, Action::Shift(target))),
                    Symbol::N(n) => {
                        table.goto_nonterminals.push(n);
                        table.goto_targets.push(target);
                    }
                }
            }
            table.goto_starts.push(table.goto_targets.len() as u32);
            for r in automaton.reductions(state).filter(|&r| lookaheads.rows[r] != EMPTY) {
                let action = Action::Reduce(automaton.reductions[r]);
                cells.extend(columns(lookaheads.sets.row(lookaheads.rows[r])).map(|t| (t, action)));
            }
            if table.goto(0, grammar.start) == Some(state as u32) {
                cells.push((table.terminal_count as u32, Action::Accept));
            }
            // Stable, because it is fast on a few sorted runs.
            cells.sort();
            let conflicts = cells.chunk_by(|a, b| a.0 == b.0).filter(|cell| cell.len() > 1);
            table.conflict_cells.extend(conflicts.map(|cell| (state as u32, cell[0].0)));
            fallbacks.fill(&mut cells);
            table.push_row(&cells);
            limits.check("actions", table.actions.len(), limits.max_actions)?;
        }
        table.conflicts = table.conflict_cells.len();
        Ok(table)
    }

    fn push_row(&mut self, cells: &Cells) {
        for cell in cells.chunk_by(|a, b| a.0 == b.0) {
            self.cell_terminals.push(cell[0].0);
            self.actions.extend(cell.iter().map(|&(_, action)| action));
            self.cell_starts.push(self.actions.len() as u32);
        }
        self.row_starts.push(self.cell_terminals.len() as u32);
    }

    fn cells(&self, state: u32) -> std::ops::Range<usize> {
        self.row_starts[state as usize] as usize..self.row_starts[state as usize + 1] as usize
    }

    fn cell(&self, cell: usize) -> &[Action] {
        &self.actions[self.cell_starts[cell] as usize..self.cell_starts[cell + 1] as usize]
    }

    /// What can be done in a state on a terminal, or on the end: shift first, then reductions by production, then accept.
    pub fn actions(&self, state: u32, terminal: u32) -> &[Action] {
        let cells = self.cells(state);
        match self.cell_terminals[cells.clone()].binary_search(&terminal) {
            Ok(i) => self.cell(cells.start + i),
            Err(_) => &[],
        }
    }

    /// The cells of a state that have an action, by ascending terminal; the end is last.
    pub fn row(&self, state: u32) -> impl ExactSizeIterator<Item = (u32, &[Action])> + '_ {
        self.cells(state).map(|cell| (self.cell_terminals[cell], self.cell(cell)))
    }

    /// The terminals that have an action in a state, ascending; the end is last.
    pub fn row_terminals(&self, state: u32) -> &[u32] {
        &self.cell_terminals[self.cells(state)]
    }

    /// The state to push after a reduction to `nonterminal` has uncovered `state`.
    pub fn goto(&self, state: u32, nonterminal: u32) -> Option<u32> {
        let range = self.goto_starts[state as usize] as usize..self.goto_starts[state as usize + 1] as usize;
        let found = self.goto_nonterminals[range.clone()].binary_search(&nonterminal).ok()?;
        Some(self.goto_targets[range.start + found])
    }

    /// The gotos of a state, by ascending nonterminal.
    pub fn gotos(&self, state: u32) -> impl ExactSizeIterator<Item = (u32, u32)> + '_ {
        let range = self.goto_starts[state as usize] as usize..self.goto_starts[state as usize + 1] as usize;
        range.map(|i| (self.goto_nonterminals[i], self.goto_targets[i]))
    }

    /// Number of actions in all cells.
    pub fn action_count(&self) -> usize {
        self.actions.len()
    }
}

/// The actions of one state with their terminals, sorted.
type Cells = Vec<(u32, Action)>;

fn on_terminal(cells: &Cells, t: u32) -> &[(u32, Action)] {
    let start = cells.partition_point(|c| c.0 < t);
    let len = cells[start..].partition_point(|c| c.0 == t);
    &cells[start..start + len]
}

struct Fallbacks<'a> {
    next: &'a [Option<u32>],
    /// Terminals that have one.
    terminals: Vec<u32>,
}

impl<'a> Fallbacks<'a> {
    fn new(next: &'a [Option<u32>]) -> Self {
        Fallbacks { next, terminals: (0..next.len() as u32).filter(|&t| next[t as usize].is_some()).collect() }
    }

    /// Give each terminal without an action those of the first terminal along its chain that has one.
    fn fill(&self, cells: &mut Cells) {
        let mut filled = Vec::new();
        for &t in self.terminals.iter().filter(|&&t| on_terminal(cells, t).is_empty()) {
            let mut donor = self.next[t as usize];
            while let Some(f) = donor {
                let actions = on_terminal(cells, f);
                filled.extend(actions.iter().map(|&(_, action)| (t, action)));
                donor = if actions.is_empty() { self.next[f as usize] } else { None };
            }
        }
        if !filled.is_empty() {
            cells.append(&mut filled);
            cells.sort();
        }
    }
}
