//! Lexer states that short texts cannot tell apart.
//!
//! Below a trie node of height h no text has more than h bytes, so states that do the same on all texts of up to h bytes do
//! the same there. That is what collapses a bounded repeat: in `[^"]{0,1000}` the hundreds of states with many repeats to
//! go differ only after hundreds of bytes. Classes are kept for a few horizons; a height is rounded up to the next.

use crate::grammar::relation::Relation;
use crate::lexer::{Entry, NONE, WatchedLexer};
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
        // Below a trie node there are bytes only.
        let steps =
            Steps { entries: &lexer.entries, rows: &lexer.steps, width: lexer.classes, used: lexer.byte_classes() };
        let looks = lexer.live.iter().zip(&lexer.group).map(|(live, group)| (*live, *group));
        Self::of(steps, looks, highest)
    }

    /// The same of an automaton, given what tells its states apart at once.
    pub fn of(steps: Steps, looks: impl Iterator<Item = (u32, u32)>, highest: u32) -> Self {
        let mut horizons = Horizons { states: Vec::new(), entries: Vec::new(), stable: false };
        let mut classes = Refinement::new(steps, looks);
        let needed = HORIZONS.iter().copied().find(|&h| h >= highest).unwrap_or(HORIZONS[HORIZONS.len() - 1]);
        for height in 1..=needed {
            let Some(changed) = classes.refine() else { break };
            horizons.stable = !changed;
            if HORIZONS.contains(&height) || horizons.stable {
                horizons.entries.push(classes.of_entry.clone());
                horizons.states.push(classes.of_state.clone());
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

/// The steps of an automaton: an entry for each state and class.
#[derive(Clone, Copy)]
pub(super) struct Steps<'l> {
    pub entries: &'l [Entry],
    /// By state and class.
    pub rows: &'l [u32],
    /// Classes in a row, and how many of them count.
    pub width: usize,
    pub used: usize,
}

impl<'l> Steps<'l> {
    fn of(self, x: u32) -> &'l [u32] {
        &self.rows[x as usize * self.width..][..self.used]
    }
}

/// Classes of states and entries, told apart by ever longer texts.
struct Refinement<'l> {
    steps: Steps<'l>,
    of_state: Vec<u32>,
    of_entry: Vec<u32>,
    /// Whether the class of each entry has changed since states were looked at.
    is_new: Vec<bool>,
    /// States of each class.
    members: Vec<u32>,
    /// States that have each entry; entries that lead to each state.
    states_with: Relation,
    entries_to: Relation,
    /// Classes of entries that do more than lead to a state, counted from [`OTHERS`].
    others: FxHashMap<SmallVec<[u32; 6]>, u32>,
    /// States to look at next: those with an entry whose class has changed.
    pending: Vec<u32>,
    work: usize,
}

/// Steps of a state by class of bytes, with their new classes.
type News = SmallVec<[(u32, u32); 4]>;

/// Classes of entries from here on are of those that do more than lead to a state.
const OTHERS: u32 = 1 << 31;

impl<'l> Refinement<'l> {
    /// What texts of no bytes tell apart.
    fn new(steps: Steps<'l>, looks: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut ids: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let class = |look| {
            let next = ids.len() as u32;
            *ids.entry(look).or_insert(next)
        };
        let of_state: Vec<u32> = looks.map(class).collect();
        let n = of_state.len();
        let mut members = vec![0; ids.len()];
        of_state.iter().for_each(|&class| members[class as usize] += 1);
        let mut with: Vec<(u32, u32)> = Vec::new();
        let mut last = vec![NONE; steps.entries.len()];
        for x in 0..n as u32 {
            for &entry in steps.of(x) {
                if std::mem::replace(&mut last[entry as usize], x) != x {
                    with.push((entry, x));
                }
            }
        }
        let leads =
            |(entry, ways): (u32, &Entry)| ways.iter().map(move |way| (way.next, entry)).collect::<SmallVec<[_; 2]>>();
        let to: Vec<(u32, u32)> = (0..).zip(steps.entries).flat_map(leads).collect();
        let mut classes = Refinement {
            steps,
            of_state,
            of_entry: vec![NONE; steps.entries.len()],
            is_new: vec![true; steps.entries.len()],
            members,
            states_with: Relation::from_pairs(steps.entries.len(), &with),
            entries_to: Relation::from_pairs(n, &to),
            others: FxHashMap::default(),
            pending: (0..n as u32).collect(),
            work: 0,
        };
        (0..steps.entries.len() as u32).for_each(|entry| _ = classes.classify(entry));
        classes
    }

    /// Find the class of an entry anew; whether it is another one.
    fn classify(&mut self, entry: u32) -> bool {
        let class = |x: u32| self.of_state[x as usize];
        let found = match &self.steps.entries[entry as usize][..] {
            [only] if only.emit == [NONE; 2] => class(only.next),
            ways => {
                let key = ways.iter().flat_map(|a| [a.emit[0], a.emit[1], class(a.next)]).collect();
                let next = OTHERS + self.others.len() as u32;
                *self.others.entry(key).or_insert(next)
            }
        };
        let is_new = std::mem::replace(&mut self.of_entry[entry as usize], found) != found;
        self.is_new[entry as usize] = is_new;
        is_new
    }

    /// Tell states apart by texts longer by a byte. Returns whether any were; `None` if that takes too long.
    fn refine(&mut self) -> Option<bool> {
        let mut pending = std::mem::take(&mut self.pending);
        // What is alone in its class stays so.
        pending.retain(|&x| self.members[self.of_state[x as usize] as usize] > 1);
        self.work += pending.len() * self.steps.used;
        if self.work > MAX_WORK {
            return None;
        }
        // States of a class did the same so far. Those that are not looked at still do, so the others leave; if all are
        // looked at, the first and those like it stay.
        let mut looked_at: FxHashMap<u32, u32> = FxHashMap::default();
        pending.iter().for_each(|&x| *looked_at.entry(self.of_state[x as usize]).or_default() += 1);
        let mut parts: FxHashMap<(u32, News), u32> = FxHashMap::default();
        let mut changed: Vec<(u32, u32)> = Vec::new();
        for x in pending {
            crate::control::check();
            let old = self.of_state[x as usize];
            // In all else it does what the others of its class do.
            let news = self.steps.of(x).iter().zip(0..).filter(|(entry, _)| self.is_new[**entry as usize]);
            let does = news.map(|(&entry, class)| (class, self.of_entry[entry as usize])).collect();
            let all = looked_at.get_mut(&old).filter(|count| **count == self.members[old as usize]);
            let next = self.members.len() as u32;
            let members = &mut self.members;
            let class = *parts.entry((old, does)).or_insert_with(|| match all {
                Some(count) => {
                    // Nothing else of the class stays.
                    *count = 0;
                    old
                }
                None => {
                    members.push(0);
                    next
                }
            });
            if class != old {
                changed.push((x, class));
            }
        }
        let mut entries: Vec<u32> = Vec::new();
        for &(x, class) in &changed {
            self.members[self.of_state[x as usize] as usize] -= 1;
            self.members[class as usize] += 1;
            self.of_state[x as usize] = class;
            entries.extend(self.entries_to.row(x as usize));
        }
        entries.sort_unstable();
        entries.dedup();
        self.is_new.iter_mut().for_each(|is_new| *is_new = false);
        for entry in entries {
            if self.classify(entry) {
                self.pending.extend(self.states_with.row(entry as usize));
            }
        }
        self.pending.sort_unstable();
        self.pending.dedup();
        Some(!changed.is_empty())
    }
}
