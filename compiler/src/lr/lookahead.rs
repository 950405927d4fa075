//! LALR(1) lookaheads.
//!
//! Source: DeRemer and Pennello, "Efficient computation of LALR(1) look-ahead sets", 1982. Their nodes are nonterminal
//! moves `(p, A)`; we compute Read per state instead, as it depends on the state that the move leads to alone.

use super::items::{Automaton, ENDS, Slots};
use crate::grammar::relation::{BitMatrix, EMPTY, Relation, close};

/// The lookahead set of each reduction of each state.
pub(super) struct Lookaheads {
    pub sets: BitMatrix,
    /// Row of each reduction, in the automaton's order.
    pub rows: Vec<u32>,
}

pub(super) fn lookaheads(grammar: &Slots, automaton: &Automaton, nullable: &[bool]) -> Lookaheads {
    let terminal_count = grammar.terminal_count;
    let mut sets = BitMatrix::new(0, terminal_count as usize + 1);
    let read = read_sets(grammar, automaton, nullable, &mut sets);

    // Nonterminal moves are numbered in order; a state's come after its terminal moves.
    let mut node_offset = vec![0usize; automaton.state_count()];
    let mut base = Vec::new();
    let mut origins = Vec::new();
    for state in 0..automaton.state_count() {
        let moves = automaton.moves(state);
        let terminals = automaton.move_symbols[moves.clone()].partition_point(|&s| s < terminal_count);
        node_offset[state] = moves.start + terminals - base.len();
        for m in moves.start + terminals..moves.end {
            base.push(read[automaton.move_targets[m] as usize]);
            origins.push((state as u32, automaton.move_symbols[m] - terminal_count));
        }
    }

    let tail_is_nullable = nullable_tails(grammar, nullable);
    let (mut includes, mut lookback) = (Vec::new(), Vec::new());
    for (node, &(from, n)) in origins.iter().enumerate() {
        for &p in grammar.by_lhs.row(n as usize) {
            let mut state = from as usize;
            let mut item = grammar.starts[p as usize] as usize;
            while grammar.slots[item] & ENDS == 0 {
                let symbol = grammar.slots[item];
                let m = automaton.find_move(state, symbol);
                if tail_is_nullable[item] && symbol >= terminal_count {
                    includes.push(((m - node_offset[state]) as u32, node as u32));
                }
                state = automaton.move_targets[m] as usize;
                item += 1;
            }
            let reductions = automaton.reductions(state);
            if let Ok(i) = automaton.reductions[reductions.clone()].binary_search(&p) {
                lookback.push(((reductions.start + i) as u32, node as u32));
            }
        }
    }
    let follow = close(&Relation::from_pairs(base.len(), &includes), &base, &mut sets);
    let lookback = Relation::from_pairs(automaton.reductions.len(), &lookback);
    let mut parts = Vec::new();
    let mut rows = Vec::with_capacity(automaton.reductions.len());
    for reduction in 0..automaton.reductions.len() {
        parts.clear();
        parts.extend(lookback.row(reduction).iter().map(|&node| follow[node as usize]));
        rows.push(sets.union_of(&mut parts));
    }
    Lookaheads { sets, rows }
}

/// For each state the terminals that can be shifted in it before any non-empty reduction, and the end after the start.
fn read_sets(grammar: &Slots, automaton: &Automaton, nullable: &[bool], sets: &mut BitMatrix) -> Vec<u32> {
    let terminal_count = grammar.terminal_count;
    let start_symbol = grammar.slots[grammar.starts[grammar.starts.len() - 1] as usize];
    let accepting = automaton.move_targets[automaton.find_move(0, start_symbol)];
    let mut direct = vec![EMPTY; automaton.state_count()];
    let mut reads = Vec::new();
    let mut row = vec![0u64; sets.words()];
    for state in 0..automaton.state_count() {
        row.fill(0);
        let mut is_empty = true;
        let mut add = |t: u32| {
            row[t as usize / 64] |= 1 << (t % 64);
            is_empty = false;
        };
        for m in automaton.moves(state) {
            let symbol = automaton.move_symbols[m];
            match symbol.checked_sub(terminal_count) {
                None => add(symbol),
                Some(n) if nullable[n as usize] => reads.push((state as u32, automaton.move_targets[m])),
                Some(_) => {}
            }
        }
        if state as u32 == accepting {
            add(terminal_count);
        }
        if !is_empty {
            direct[state] = sets.push(&row);
        }
    }
    close(&Relation::from_pairs(automaton.state_count(), &reads), &direct, sets)
}

/// For each slot whether everything after it in its production derives the empty string.
fn nullable_tails(grammar: &Slots, nullable: &[bool]) -> Vec<bool> {
    let mut tails = vec![false; grammar.slots.len()];
    let mut tail = true;
    for (item, &slot) in grammar.slots.iter().enumerate().rev() {
        tail |= slot & ENDS != 0;
        tails[item] = tail;
        if slot & ENDS == 0 {
            tail &= slot.checked_sub(grammar.terminal_count).is_some_and(|n| nullable[n as usize]);
        }
    }
    tails
}
