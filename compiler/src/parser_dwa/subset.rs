//! Subset construction: the states of the automaton are sets of suspended configurations.

use super::quotient::Quotient;
use super::symbolic::{Output, Suspended, Symbolic};
use crate::bits::Pool;
use crate::config::Config;
use crate::control;
use crate::error::CompileError;
use crate::lexer::NONE;
use crate::terminal_dwa::Outcomes;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// An edge: symbol read, next state or `NONE`, output or `NONE`.
pub type Edge = (u32, u32, u32);

/// The automaton over classes of LR states, read from the top of the stack down.
#[derive(Debug)]
pub(crate) struct ParserDwa {
    /// Edges of each state by symbol, one for every symbol that can be read there, dead ones included; empty for states
    /// with a default edge. State 0 is the start.
    pub edges: Vec<Vec<Edge>>,
    /// Next state whatever is read, or `NONE` where that depends.
    pub default: Vec<u32>,
    /// Distinct outputs: per sequence node the set shifted there and whether it was reached.
    pub outputs: Vec<Output>,
    /// The sets in `outputs`.
    pub(crate) sets: Pool,
    /// Largest number of configurations in a state.
    pub max_configurations: usize,
}

/// Build the automaton that decides every outcome of `outcomes` on every stack of `table`.
///
/// # Errors
/// [`CompileError::Limit`] past `max_dwa_edges`.
pub(crate) fn build(table: &Arc<Quotient>, outcomes: &Outcomes, config: &Config) -> Result<ParserDwa, CompileError> {
    let below = table.below();
    let mut symbolic = Symbolic::new(Arc::clone(table), config.overlapping_sets);
    let (root, places) = symbolic.add_domain(outcomes, 0..outcomes.outcomes.len() as u32);
    let mut states: Vec<Vec<Suspended>> = vec![Vec::new()];
    let mut state_ids: FxHashMap<Vec<Suspended>, u32> = FxHashMap::default();
    let mut outputs: Vec<Output> = Vec::new();
    let mut output_ids: FxHashMap<Output, u32> = FxHashMap::default();
    let mut edges: Vec<FxHashMap<u32, (u32, u32)>> = vec![FxHashMap::default()];
    let mut default: Vec<u32> = vec![NONE];
    let mut edge_count = 0;

    // (state, symbol read last): only symbols that can lie below that one are read next.
    let mut queue: Vec<(u32, u32)> = table.tops.iter().rev().map(|&top| (0, top)).collect();
    let mut seen: FxHashSet<(u32, u32)> = queue.iter().copied().collect();
    while let Some((state, symbol)) = queue.pop() {
        let by_default = default[state as usize];
        let (next, _) = if by_default != NONE {
            (by_default, NONE)
        } else if let Some(&edge) = edges[state as usize].get(&symbol) {
            edge
        } else {
            let (suspended, output) = if state == 0 {
                symbolic.read_first(root, symbol)
            } else {
                symbolic.read(&states[state as usize], symbol)
            };
            let mut next = NONE;
            if !suspended.is_empty() {
                let fresh = states.len() as u32;
                next = *state_ids.entry(suspended).or_insert_with_key(|key| {
                    states.push(key.clone());
                    edges.push(FxHashMap::default());
                    default.push(NONE);
                    fresh
                });
            }
            let mut out = NONE;
            if !output.is_empty() {
                let fresh = outputs.len() as u32;
                out = *output_ids.entry(output).or_insert_with_key(|key| {
                    outputs.push(key.clone());
                    fresh
                });
            }
            if state != 0 && states[state as usize].iter().all(|c| c.pops > 0) {
                default[state as usize] = next;
            } else {
                edges[state as usize].insert(symbol, (next, out));
                edge_count += 1;
                if edge_count > config.max_dwa_edges {
                    return Err(CompileError::Limit {
                        stage: "parser_dwa",
                        what: "edges",
                        limit: config.max_dwa_edges,
                    });
                }
                control::progress(edge_count, edge_count + queue.len());
            }
            (next, out)
        };
        if next != NONE {
            for &symbol in &below[symbol as usize] {
                if seen.insert((next, symbol)) {
                    queue.push((next, symbol));
                }
            }
        }
    }
    for (node, ..) in outputs.iter_mut().flatten() {
        *node = places[(*node - root) as usize];
    }
    let max_configurations = states.iter().map(Vec::len).max().unwrap_or(0);
    let edges = edges
        .into_iter()
        .map(|map| {
            let mut row: Vec<Edge> = map.into_iter().map(|(symbol, (next, out))| (symbol, next, out)).collect();
            row.sort_unstable();
            row
        })
        .collect();
    Ok(ParserDwa { edges, default, outputs, sets: symbolic.sets, max_configurations })
}
