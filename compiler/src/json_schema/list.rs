//! Comma-separated lists between brackets, as right-hand sides.
//!
//! What a list may hold is an automaton over symbols. A state may *skip* to another, whose edges it then has as well: an
//! object of n optional keys has n states of one edge and one skip each, instead of n² edges.
//!
//! There are two ways to write an automaton as productions. *Left* recursion keeps the parser's stack as high as one
//! element, whatever the list's length; but it commits to an automaton at the first comma. *Right* recursion lets the LR
//! states follow several automata at once, as long as they read the same symbols; the stack grows with the keys that the
//! schema names (repeated elements are lists of their own). So one automaton is written left, alternatives right.

use super::emit::Emitter;
use crate::grammar::ir::{Symbol, TerminalId};

/// A state of an automaton; state 0 is the start.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) edges: Vec<(Symbol, usize)>,
    /// A state whose edges, and acceptance, this one has too.
    pub(super) skip: Option<usize>,
    pub(super) accepting: bool,
}

/// The brackets of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Brackets {
    pub(super) open: TerminalId,
    pub(super) close: TerminalId,
    /// Is the empty list one, if the start accepts?
    pub(super) empty: bool,
}

impl State {
    fn leads_on(&self) -> bool {
        !self.edges.is_empty() || self.skip.is_some()
    }
}

/// A state and those it skips to.
fn closure(states: &[State], from: usize) -> impl Iterator<Item = &State> {
    std::iter::successors(Some(&states[from]), |state| state.skip.map(|next| &states[next]))
}

/// Which states accept, or skip to one that does. Skips lead to later states.
fn accepting(states: &[State]) -> Vec<bool> {
    let mut out = vec![false; states.len()];
    for (i, state) in states.iter().enumerate().rev() {
        out[i] = state.accepting || state.skip.is_some_and(|next| out[next]);
    }
    out
}

impl Emitter<'_> {
    /// `lhs` → the lists of one automaton.
    pub(super) fn list_left(&mut self, lhs: u32, states: &[State], brackets: Brackets) {
        let (open, close) = (Symbol::T(brackets.open), Symbol::T(brackets.close));
        let comma = Symbol::T(self.comma());
        let accepting = accepting(states);
        if accepting[0] && brackets.empty {
            self.produce(lhs, vec![open, close]);
        }
        let mut read: Vec<Option<u32>> = vec![None; states.len()];
        let mut ready: Vec<Option<u32>> = vec![None; states.len()];
        for state in states {
            for &(_, target) in &state.edges {
                read[target].get_or_insert_with(|| self.nonterminal("members"));
            }
        }
        for (i, state) in states.iter().enumerate() {
            let Some(members) = read[i].map(Symbol::N) else { continue };
            if accepting[i] {
                self.produce(lhs, vec![open, members, close]);
            }
            if state.leads_on() {
                let next = *ready[i].get_or_insert_with(|| self.nonterminal("next_member"));
                self.produce(next, vec![members, comma]);
            }
        }
        for state in closure(states, 0) {
            for &(symbol, target) in &state.edges {
                self.produce(read[target].expect("a target"), vec![symbol]);
            }
        }
        for (i, state) in states.iter().enumerate() {
            let Some(next) = ready[i] else { continue };
            for &(symbol, target) in &state.edges {
                self.produce(read[target].expect("a target"), vec![Symbol::N(next), symbol]);
            }
            if let Some(target) = state.skip.filter(|&target| states[target].leads_on()) {
                let skipped = *ready[target].get_or_insert_with(|| self.nonterminal("next_member"));
                self.produce(skipped, vec![Symbol::N(next)]);
            }
        }
    }

    /// `lhs` → the lists of one automaton among several.
    pub(super) fn list_right(&mut self, lhs: u32, states: &[State], brackets: Brackets) {
        let (open, close) = (Symbol::T(brackets.open), Symbol::T(brackets.close));
        let comma = Symbol::T(self.comma());
        let accepting = accepting(states);
        if accepting[0] && brackets.empty {
            self.produce(lhs, vec![open, close]);
        }
        let ready: Vec<u32> = states.iter().map(|_| self.nonterminal("members")).collect();
        let mut rest: Vec<Option<u32>> = vec![None; states.len()];
        self.produce(lhs, vec![open, Symbol::N(ready[0])]);
        for (i, state) in states.iter().enumerate() {
            if state.skip.is_none() && state.accepting && state.edges.iter().all(|&(_, target)| target == i) {
                let symbols: Vec<Symbol> = state.edges.iter().map(|edge| edge.0).collect();
                if !symbols.is_empty() {
                    let run = self.run(&symbols);
                    self.produce(ready[i], vec![Symbol::N(run), close]);
                }
                continue;
            }
            for &(symbol, target) in &state.edges {
                let next = *rest[target].get_or_insert_with(|| self.nonterminal("more_members"));
                self.produce(ready[i], vec![symbol, Symbol::N(next)]);
            }
            if let Some(target) = state.skip {
                self.produce(ready[i], vec![Symbol::N(ready[target])]);
            }
        }
        for (i, state) in states.iter().enumerate() {
            let Some(rest) = rest[i] else { continue };
            if accepting[i] {
                self.produce(rest, vec![close]);
            }
            if state.leads_on() {
                self.produce(rest, vec![comma, Symbol::N(ready[i])]);
            }
        }
    }
}
