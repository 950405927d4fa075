//! Lexer states that short texts cannot tell apart.
//!
//! Below a trie node of height h no text has more than h bytes, so states that do the same on all texts of up to h bytes do
//! the same there. That is what collapses a bounded repeat: in `[^"]{0,1000}` the hundreds of states with many repeats to
//! go differ only after hundreds of bytes. Classes are kept for a few horizons; a height is rounded up to the next.

use crate::lexer::{NONE, WatchedLexer};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Heights for which classes are kept: powers of two.
const HORIZONS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Steps looked at in all; past it the larger horizons are left out, which costs time elsewhere and nothing else.
const MAX_WORK: usize = 100_000_000;

/// Classes of lexer states, and of steps, by horizon.
#[derive(Debug)]
pub(super) struct Horizons {
    /// Class of each state, for the horizons up to the one at which classes no longer split.
    states: Vec<Vec<u32>>,
    /// Class of each entry: what it emits, and the classes of the states it leads to.
    entries: Vec<Vec<u32>>,
    /// Whether the last classes hold for all heights.
    stable: bool,
}

impl Horizons {
    /// Classes for the horizons that texts of up to `highest` bytes need.
    pub fn new(lexer: &WatchedLexer, highest: u32) -> Self {
        let n = lexer.state_count();
        let mut class: Vec<u32> = Vec::with_capacity(n);
        let mut ids: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        for x in 0..n {
            let next = ids.len() as u32;
            class.push(*ids.entry((lexer.live[x], lexer.group[x])).or_insert(next));
        }
        let mut horizons = Horizons { states: Vec::new(), entries: Vec::new(), stable: false };
        let mut count = ids.len();
        let needed = HORIZONS.iter().copied().find(|&h| h >= highest).unwrap_or(HORIZONS[HORIZONS.len() - 1]);
        let affordable = (MAX_WORK / lexer.steps.len().max(1)) as u32;
        for height in 1..=needed.min(affordable) {
            let entry_class = entry_classes(lexer, &class);
            // What is alone in its class stays so; the others are told apart by where their steps lead.
            let mut members = vec![0u32; count];
            class.iter().for_each(|&c| members[c as usize] += 1);
            let mut ids: FxHashMap<(u32, Vec<u32>), u32> = FxHashMap::default();
            let mut first = vec![true; count];
            let before = count;
            for x in (0..n).filter(|&x| members[class[x] as usize] > 1).collect::<Vec<_>>() {
                crate::control::check();
                // Below a node there are bytes only.
                let steps = &lexer.steps[x * lexer.classes..][..lexer.byte_classes()];
                let key = (class[x], steps.iter().map(|&entry| entry_class[entry as usize]).collect());
                class[x] = *ids.entry(key).or_insert_with_key(|&(old, _)| {
                    // The first part of a class keeps its number.
                    if std::mem::take(&mut first[old as usize]) {
                        old
                    } else {
                        count += 1;
                        count as u32 - 1
                    }
                });
            }
            horizons.stable = count == before;
            if HORIZONS.contains(&height) || horizons.stable {
                horizons.entries.push(entry_classes(lexer, &class));
                horizons.states.push(class.clone());
            }
            if horizons.stable {
                break;
            }
        }
        horizons
    }

    /// Which classes to use below a node of this height; `None` if none will do.
    pub fn level(&self, height: u32) -> Option<usize> {
        // The first horizon that is not below it; they are powers of two.
        let level = height.max(1).next_power_of_two().trailing_zeros() as usize;
        match level < self.states.len() {
            true => Some(level),
            false if self.stable => Some(self.states.len() - 1),
            false => None,
        }
    }

    /// Class of a state.
    pub fn state(&self, level: usize, x: u32) -> u32 {
        self.states[level][x as usize]
    }

    /// A number for what an entry does, as far as texts of a height can show after their byte.
    pub fn entry(&self, height: u32, entry: u32) -> u32 {
        self.level(height).map_or(entry, |level| self.entries[level][entry as usize])
    }
}

fn entry_classes(lexer: &WatchedLexer, class: &[u32]) -> Vec<u32> {
    let mut ids: FxHashMap<SmallVec<[u32; 6]>, u32> = FxHashMap::default();
    // Entries that only lead to a state are numbered as its class, the others from there on.
    let others = class.len() as u32;
    lexer
        .entries
        .iter()
        .map(|entry| match &entry[..] {
            [only] if only.emit == [NONE; 2] => class[only.next as usize],
            entry => {
                let key = entry.iter().flat_map(|a| [a.emit[0], a.emit[1], class[a.next as usize]]).collect();
                let next = others + ids.len() as u32;
                *ids.entry(key).or_insert(next)
            }
        })
        .collect()
}
