//! The LR(0) automaton.
//!
//! A symbol is coded as one number, terminals first. An item is its index in `slots`, which holds every production's
//! right-hand side followed by a mark that ends it; so advancing an item adds one. States are numbered breadth first, by
//! ascending symbol code.

use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

use super::table::{LrError, LrLimits};
use crate::grammar::ir::Symbol;
use crate::grammar::reduce::ReducedGrammar;
use crate::grammar::relation::Relation;

/// Set in the slot that ends a production; the other bits are the production's index.
pub(super) const ENDS: u32 = 1 << 31;

/// A grammar laid out for item arithmetic. The augmented production `S' → S` has the index after the last one.
pub(super) struct Slots {
    pub terminal_count: u32,
    pub slots: Vec<u32>,
    /// First slot of each production.
    pub starts: Vec<u32>,
    pub by_lhs: Relation,
}

impl Slots {
    pub fn new(grammar: &ReducedGrammar) -> Result<Self, LrError> {
        let size = grammar.productions.iter().map(|p| p.rhs.len() + 1).sum::<usize>() + 2;
        let symbols = grammar.terminal_count + grammar.nonterminal_names.len();
        if size.max(symbols) >= ENDS as usize {
            return Err(LrError::Limit { what: "grammar symbols", limit: ENDS as usize - 1 });
        }
        let terminal_count = grammar.terminal_count as u32;
        let mut slots = Vec::with_capacity(size);
        let mut starts = Vec::with_capacity(grammar.productions.len() + 1);
        for (i, p) in grammar.productions.iter().enumerate() {
            starts.push(slots.len() as u32);
            slots.extend(p.rhs.iter().map(|&s| match s {
                Symbol::T(t) => t,
                Symbol::N(n) => terminal_count + n,
            }));
            slots.push(ENDS | i as u32);
        }
        starts.push(slots.len() as u32);
        slots.push(terminal_count + grammar.start);
        slots.push(ENDS | grammar.productions.len() as u32);
        Ok(Slots { terminal_count, slots, starts, by_lhs: grammar.productions_by_lhs() })
    }

    pub fn symbol(&self, code: u32) -> Symbol {
        match code.checked_sub(self.terminal_count) {
            None => Symbol::T(code),
            Some(n) => Symbol::N(n),
        }
    }
}

/// The LR(0) automaton. State 0 is the start.
pub(super) struct Automaton {
    /// Where each state's moves begin.
    pub move_starts: Vec<u32>,
    /// Symbol codes of the moves; ascending within a state.
    pub move_symbols: Vec<u32>,
    pub move_targets: Vec<u32>,
    /// Where each state's reductions begin.
    pub reduction_starts: Vec<u32>,
    /// Productions that end in the state; ascending within a state.
    pub reductions: Vec<u32>,
    /// Symbol code that leads to each state; for the start, none.
    pub accessing: Vec<u32>,
}

impl Automaton {
    pub fn build(grammar: &Slots, limits: &LrLimits) -> Result<Self, LrError> {
        let augmented = grammar.starts.len() - 1;
        let mut kernels = Kernels::default();
        kernels.intern(&[grammar.starts[augmented]]);
        let mut automaton = Automaton {
            move_starts: vec![0],
            move_symbols: Vec::new(),
            move_targets: Vec::new(),
            reduction_starts: vec![0],
            reductions: Vec::new(),
            accessing: vec![u32::MAX],
        };
        let mut expanded_in = vec![u32::MAX; grammar.by_lhs.len()];
        let mut to_expand: Vec<u32> = Vec::new();
        let mut moves: Vec<u64> = Vec::new();
        let mut kernel: Vec<u32> = Vec::new();
        let mut state = 0;
        while state < kernels.len() {
            crate::control::check();
            moves.clear();
            let mut visit = |item: u32, to_expand: &mut Vec<u32>| {
                let slot = grammar.slots[item as usize];
                if slot & ENDS != 0 {
                    if slot & !ENDS != augmented as u32 {
                        automaton.reductions.push(slot & !ENDS);
                    }
                    return;
                }
                moves.push(u64::from(slot) << 32 | u64::from(item + 1));
                if let Some(n) = slot.checked_sub(grammar.terminal_count)
                    && expanded_in[n as usize] != state as u32
                {
                    expanded_in[n as usize] = state as u32;
                    to_expand.push(n);
                }
            };
            kernels.items(state).iter().for_each(|&item| visit(item, &mut to_expand));
            while let Some(n) = to_expand.pop() {
                for &p in grammar.by_lhs.row(n as usize) {
                    visit(grammar.starts[p as usize], &mut to_expand);
                }
            }
            let reductions_start = automaton.reduction_starts[state] as usize;
            automaton.reductions[reductions_start..].sort_unstable();
            automaton.reduction_starts.push(automaton.reductions.len() as u32);

            moves.sort_unstable();
            for group in moves.chunk_by(|a, b| a >> 32 == b >> 32) {
                let symbol = (group[0] >> 32) as u32;
                kernel.clear();
                kernel.extend(group.iter().map(|&m| m as u32));
                let target = kernels.intern(&kernel);
                if target as usize == automaton.accessing.len() {
                    automaton.accessing.push(symbol);
                }
                automaton.move_symbols.push(symbol);
                automaton.move_targets.push(target);
            }
            automaton.move_starts.push(automaton.move_symbols.len() as u32);
            limits.check("states", kernels.len(), limits.max_states)?;
            limits.check("items", kernels.items.len(), limits.max_items)?;
            limits.check("moves", automaton.move_symbols.len() + automaton.reductions.len(), limits.max_items)?;
            state += 1;
        }
        Ok(automaton)
    }

    pub fn state_count(&self) -> usize {
        self.accessing.len()
    }

    /// Indices of a state's moves.
    pub fn moves(&self, state: usize) -> std::ops::Range<usize> {
        self.move_starts[state] as usize..self.move_starts[state + 1] as usize
    }

    /// Index of a state's move on a symbol that it has.
    pub fn find_move(&self, state: usize, symbol: u32) -> usize {
        let moves = self.moves(state);
        let found = self.move_symbols[moves.clone()].binary_search(&symbol);
        moves.start + found.unwrap_or_else(|_| unreachable!("state {state} has no move on symbol {symbol}"))
    }

    /// Indices of a state's reductions.
    pub fn reductions(&self, state: usize) -> std::ops::Range<usize> {
        self.reduction_starts[state] as usize..self.reduction_starts[state + 1] as usize
    }
}

/// The kernels of all states, each stored once.
#[derive(Default)]
struct Kernels {
    starts: Vec<u32>,
    items: Vec<u32>,
    /// Latest state of each hash, and for each state the one before it.
    latest: FxHashMap<u64, u32>,
    earlier: Vec<Option<u32>>,
}

impl Kernels {
    fn len(&self) -> usize {
        self.earlier.len()
    }

    fn items(&self, state: usize) -> &[u32] {
        let end = self.starts.get(state + 1).map_or(self.items.len(), |&e| e as usize);
        &self.items[self.starts[state] as usize..end]
    }

    fn intern(&mut self, kernel: &[u32]) -> u32 {
        let hash = FxBuildHasher.hash_one(kernel);
        let latest = self.latest.get(&hash).copied();
        let mut candidate = latest;
        while let Some(state) = candidate {
            if self.items(state as usize) == kernel {
                return state;
            }
            candidate = self.earlier[state as usize];
        }
        let state = self.len() as u32;
        self.starts.push(self.items.len() as u32);
        self.items.extend_from_slice(kernel);
        self.earlier.push(latest);
        self.latest.insert(hash, state);
        state
    }
}
