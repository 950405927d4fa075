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
    /// The automaton, minimised, with verdict sets as outputs.
    pub states: Vec<State>,
}

/// Merge the classes that no output of the (complete) automaton tells apart.
pub(crate) fn merge(dwa: ParserDwa, outcomes: &Outcomes, end: u32) -> Verdicts {
    // Outputs on which each outcome holds.
    let mut by_node: Vec<Vec<u32>> = vec![Vec::new(); outcomes.nodes.len()];
    for (id, &(node, _)) in outcomes.outcomes.iter().enumerate() {
        by_node[node as usize].push(id as u32);
    }
    let mut holds_on: Vec<Vec<u32>> = vec![Vec::new(); outcomes.outcomes.len()];
    let mut ends_on: Vec<u32> = Vec::new();
    for (output, parts) in dwa.outputs.iter().enumerate() {
        crate::control::check();
        for &(node, set, reached) in parts {
            let set = dwa.sets.get(set);
            for &outcome in &by_node[node as usize] {
                let holds = match outcomes.outcomes[outcome as usize].1 {
                    REACHED => reached,
                    pending => outcomes.labels.sets[pending as usize].terms.iter().any(|&t| bits::has(set, t)),
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
    const { assert!(ALWAYS == 0 && END_VERDICT == 1) };
    let count = members.len();
    let width = bits::words(count);
    let mut raw = vec![0u64; dwa.outputs.len() * width];
    for (verdict, on) in members.iter().enumerate() {
        for &output in on {
            bits::insert(&mut raw[output as usize * width..][..width], verdict as u32);
        }
    }
    let mut pool = bits::Pool::new(width);
    let renumbered: Vec<u32> =
        raw.chunks_exact(width).map(|set| if bits::is_empty(set) { NONE } else { pool.intern(set) }).collect();
    let renumber = |out: u32| if out == NONE { NONE } else { renumbered[out as usize] };
    let rows = dwa.edges.into_iter().zip(dwa.default).map(|(row, default)| match default {
        NONE => Row::Edges(row.into_iter().map(|(symbol, next, out)| (symbol, next, renumber(out))).collect()),
        next => Row::Always(next),
    });
    let states = minimize(rows.collect());
    Verdicts { of_class, count, outputs: pool.into_words(), states }
}

/// A state of the finished automaton.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Next state and output where no edge says otherwise; `NONE` where there is none.
    pub default: (u32, u32),
    /// Edges that differ from the default, by symbol.
    pub edges: Vec<Edge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Row {
    Always(u32),
    Edges(Vec<Edge>),
}

/// Merge equal states until none are, and give each state the default that leaves the fewest edges.
///
/// A symbol that cannot be read in a state has no edge, so the default may answer for it: it is never asked.
fn minimize(mut rows: Vec<Row>) -> Vec<State> {
    // States are numbered from the start, so most targets come later: one pass from the end merges nearly all.
    loop {
        let mut kept: FxHashMap<Row, u32> = FxHashMap::default();
        let mut to: Vec<u32> = (0..rows.len() as u32).collect();
        for state in (1..rows.len()).rev() {
            crate::control::check();
            let moved = |next: u32| if next == NONE { NONE } else { to[next as usize] };
            let row = match &rows[state] {
                Row::Always(next) => Row::Always(moved(*next)),
                Row::Edges(row) => Row::Edges(row.iter().map(|&(s, next, out)| (s, moved(next), out)).collect()),
            };
            to[state] = *kept.entry(row).or_insert(state as u32);
        }
        if to.iter().enumerate().all(|(state, &t)| t == state as u32) {
            break;
        }
        let mut number = vec![NONE; rows.len()];
        let mut count = 0;
        for state in 0..rows.len() {
            if to[state] == state as u32 {
                number[state] = count;
                count += 1;
            }
        }
        let target = |next: u32| if next == NONE { NONE } else { number[to[next as usize] as usize] };
        rows = rows
            .into_iter()
            .enumerate()
            .filter(|(state, _)| to[*state] == *state as u32)
            .map(|(_, row)| match row {
                Row::Always(next) => Row::Always(target(next)),
                Row::Edges(row) => Row::Edges(row.into_iter().map(|(s, next, out)| (s, target(next), out)).collect()),
            })
            .collect();
    }
    rows.into_iter()
        .map(|row| match row {
            Row::Always(next) => State { default: (next, NONE), edges: Vec::new() },
            Row::Edges(row) => {
                let mut counts: FxHashMap<(u32, u32), u32> = FxHashMap::default();
                for &(_, next, out) in &row {
                    *counts.entry((next, out)).or_default() += 1;
                }
                let default = counts.into_iter().map(|(edge, n)| (n, edge)).max().map_or((NONE, NONE), |m| m.1);
                State { default, edges: row.into_iter().filter(|&(_, next, out)| (next, out) != default).collect() }
            }
        })
        .collect()
}
