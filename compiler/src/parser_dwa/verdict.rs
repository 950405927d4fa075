//! Verdict classes: boundary classes that hold on the same stacks.

use super::subset::{Edge, ParserDwa};
use crate::bits;
use crate::lexer::NONE;
use crate::terminal_dwa::{Outcomes, REACHED, ROOT};
use dwa_runtime::{ALWAYS, END_VERDICT};
use rustc_hash::FxHashMap;

/// Verdict of classes that hold on no stack.
pub const NEVER: u32 = u32::MAX;

/// The automaton with verdicts as weights, and each class's verdict.
#[derive(Debug)]
pub struct Verdicts {
    /// Verdict of each class, or [`NEVER`].
    pub of_class: Vec<u32>,
    /// Number of verdict classes.
    pub count: usize,
    /// Verdict set of each output, `words(count)` words each.
    pub outputs: Vec<u64>,
    /// Edges as in [`ParserDwa`], outputs renumbered.
    pub edges: Vec<Vec<Edge>>,
    /// Default edges.
    pub default: Vec<u32>,
}

/// Merge the classes that no output of the (complete) automaton tells apart.
pub fn merge(dwa: ParserDwa, outcomes: &Outcomes<'_>, end: u32) -> Verdicts {
    // Outputs on which each outcome holds.
    let mut by_node: Vec<Vec<u32>> = vec![Vec::new(); outcomes.nodes.len()];
    for (id, &(node, _)) in outcomes.outcomes.iter().enumerate() {
        by_node[node as usize].push(id as u32);
    }
    let mut holds_on: Vec<Vec<u32>> = vec![Vec::new(); outcomes.outcomes.len()];
    let mut ends_on: Vec<u32> = Vec::new();
    for (output, parts) in dwa.outputs.iter().enumerate() {
        for &(node, set, reached) in parts {
            let set = dwa.sets.get(set);
            for &outcome in &by_node[node as usize] {
                let holds = match outcomes.outcomes[outcome as usize].1 {
                    REACHED => reached,
                    pending => outcomes.sets.sets[pending as usize].terms.iter().any(|&t| bits::has(set, t)),
                };
                if holds {
                    holds_on[outcome as usize].push(output as u32);
                }
            }
            if node == ROOT && bits::has(set, end) {
                ends_on.push(output as u32);
            }
        }
    }
    // Verdicts 0 and 1 are fixed; the others are numbered by first class.
    let mut members: Vec<Vec<u32>> = vec![Vec::new(), ends_on];
    let mut ids: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
    let of_class = outcomes
        .classes
        .iter()
        .map(|class| {
            if class.iter().any(|&o| outcomes.outcomes[o as usize] == (ROOT, REACHED)) {
                return ALWAYS;
            }
            let mut on: Vec<u32> = class.iter().flat_map(|&o| holds_on[o as usize].iter().copied()).collect();
            on.sort_unstable();
            on.dedup();
            if on.is_empty() {
                return NEVER;
            }
            let next = members.len() as u32;
            *ids.entry(on).or_insert_with_key(|on| {
                members.push(on.clone());
                next
            })
        })
        .collect();
    debug_assert!(ALWAYS == 0 && END_VERDICT == 1);
    let count = members.len();
    let width = bits::words(count);
    let mut raw = vec![0u64; dwa.outputs.len() * width];
    for (verdict, on) in members.iter().enumerate() {
        for &output in on {
            bits::insert(&mut raw[output as usize * width..][..width], verdict as u32);
        }
    }
    let mut pool = bits::Pool::new(width);
    let renumbered: Vec<u32> = raw
        .chunks_exact(width)
        .map(|set| if bits::is_empty(set) { NONE } else { pool.intern(set) })
        .collect();
    let edges = dwa
        .edges
        .into_iter()
        .map(|row| {
            row.into_iter()
                .map(|(symbol, next, out)| (symbol, next, if out == NONE { NONE } else { renumbered[out as usize] }))
                .filter(|&(_, next, out)| (next, out) != (NONE, NONE))
                .collect()
        })
        .collect();
    Verdicts { of_class, count, outputs: pool.into_words(), edges, default: dwa.default }
}
