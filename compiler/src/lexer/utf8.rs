//! Code-point classes as byte automata.
//!
//! The UTF-8 sequences of a class come in byte order and without overlap, so reading them as a trie whose equal subtrees
//! are shared gives the minimal acyclic DFA of the class: 8 states for `[^"]`, a few hundred for `\w`, where one path for
//! each of its 770 ranges would take thousands.

use regex_syntax::utf8::{Utf8Range, Utf8Sequence, Utf8Sequences};
use rustc_hash::FxHashMap;

use super::nfa::{Fragment, NEXT, Range};

/// The automaton of one code point out of `ranges`; none if there is no such code point.
///
/// The ranges may overlap and come in any order. Surrogates and numbers above U+10FFFF are no code points.
pub(super) fn class(ranges: &[(u32, u32)]) -> Option<Fragment> {
    let mut trie = Trie::default();
    let start = trie.class(&scalar_ranges(ranges))?;
    Some(Fragment::from_nodes(trie.nodes, start))
}

/// Sorted, disjoint and non-adjacent ranges of Unicode scalar values.
pub(super) fn scalar_ranges(ranges: &[(u32, u32)]) -> Vec<(char, char)> {
    let mut parts: Vec<(u32, u32)> = Vec::with_capacity(ranges.len() + 1);
    for &(lo, hi) in ranges {
        parts.push((lo, hi.min(0xD7FF)));
        parts.push((lo.max(0xE000), hi.min(0x10FFFF)));
    }
    parts.retain(|(lo, hi)| lo <= hi);
    parts.sort_unstable();
    let mut merged: Vec<(u32, u32)> = Vec::with_capacity(parts.len());
    for (lo, hi) in parts {
        match merged.last_mut() {
            // U+D7FF and U+E000 stay apart: a range of characters may not span the surrogates' sequences.
            Some(last) if lo <= last.1 + 1 => last.1 = last.1.max(hi),
            _ => merged.push((lo, hi)),
        }
    }
    merged.into_iter().filter_map(|(lo, hi)| Some((char::from_u32(lo)?, char::from_u32(hi)?))).collect()
}

/// Nodes of an acyclic automaton, equal ones shared.
#[derive(Default)]
pub(super) struct Trie {
    pub(super) nodes: Vec<Vec<Range>>,
    ids: FxHashMap<Vec<Range>, u32>,
}

impl Trie {
    /// The node that reads one code point out of sorted ranges; none if there are none.
    pub(super) fn class(&mut self, ranges: &[(char, char)]) -> Option<u32> {
        let sequences: Vec<Utf8Sequence> = ranges.iter().flat_map(|&(lo, hi)| Utf8Sequences::new(lo, hi)).collect();
        let tails: Vec<&[Utf8Range]> = sequences.iter().map(Utf8Sequence::as_slice).collect();
        (!tails.is_empty()).then(|| self.node(&tails, 0))
    }

    /// The node that reads the rest of `sequences` from position `depth` on; all of them share what comes before.
    fn node(&mut self, sequences: &[&[Utf8Range]], depth: usize) -> u32 {
        if sequences[0].len() == depth {
            return NEXT;
        }
        let mut node: Vec<Range> = Vec::new();
        for group in sequences.chunk_by(|a, b| a[depth] == b[depth]) {
            let Utf8Range { start: lo, end: hi } = group[0][depth];
            let target = self.node(group, depth + 1);
            match node.last_mut() {
                Some(last) if last.target == target && u16::from(last.hi) + 1 == u16::from(lo) => last.hi = hi,
                _ => node.push(Range { lo, hi, target }),
            }
        }
        self.intern(node)
    }

    /// The node with these ranges, sorted and disjoint.
    pub(super) fn intern(&mut self, node: Vec<Range>) -> u32 {
        if let Some(&id) = self.ids.get(&node) {
            return id;
        }
        let id = self.nodes.len() as u32;
        self.nodes.push(node.clone());
        self.ids.insert(node, id);
        id
    }
}
