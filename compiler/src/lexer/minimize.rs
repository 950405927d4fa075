//! The minimal DFA with the coarsest byte classes, numbered breadth first.
//!
//! Hopcroft's algorithm in the form of Valmari, "Fast brief practical DFA minimization" (2012): one partition of the
//! states and one of the transitions refine each other, so undefined transitions cost nothing and need no sink state.
//! O(m log m) for m transitions. We differ in the first partition: by candidate set, the start by itself, and states of finite
//! language merged beforehand, in linear time.

use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::DEAD;
use super::determinize::Dfa;

/// Minimise `dfa`, whose states are live and reachable; the start stays a state of its own.
pub(super) fn minimize(dfa: Dfa) -> Dfa {
    let dfa = merge_classes(dfa);
    let block = refine(&dfa);
    let count = block.iter().max().map_or(0, |max| max + 1) as usize;
    let (k, mut next, mut cand) = (dfa.class_count, vec![DEAD; count * dfa.class_count], vec![0; count]);
    let moves = dfa.moves.renumbered(|q| Some(block[q as usize]));
    for q in 0..dfa.state_count() {
        // Block numbers are arbitrary but for the start; `renumber` gives the final ones.
        let at = block[q] as usize;
        cand[at] = dfa.cand[q];
        for (to, &target) in next[at * k..(at + 1) * k].iter_mut().zip(dfa.row(q)) {
            *to = if target == DEAD { DEAD } else { block[target as usize] };
        }
    }
    let start = block[0];
    renumber(&merge_classes(Dfa { next, cand, moves, ..dfa }), start)
}

/// Drop the states that are not reachable from `start` and number the others breadth first in class order.
pub(super) fn renumber(dfa: &Dfa, start: u32) -> Dfa {
    let k = dfa.class_count;
    let mut number = vec![DEAD; dfa.state_count()];
    let mut order = Vec::with_capacity(dfa.state_count());
    order.push(start);
    number[start as usize] = 0;
    let mut next = Vec::with_capacity(dfa.next.len());
    let mut done = 0;
    while done < order.len() {
        let q = order[done];
        let mut meet = |target: u32| {
            let known = &mut number[target as usize];
            if *known == DEAD {
                *known = order.len() as u32;
                order.push(target);
            }
            *known
        };
        next.extend(dfa.row(q as usize).iter().map(|&target| if target == DEAD { DEAD } else { meet(target) }));
        dfa.moves.of(q).iter().for_each(|&(_, target)| _ = meet(target));
        done += 1;
    }
    debug_assert_eq!(next.len(), order.len() * k);
    let cand = order.iter().map(|&q| dfa.cand[q as usize]).collect();
    let moves = dfa.moves.renumbered(|q| Some(number[q as usize]).filter(|&q| q != DEAD));
    Dfa { next, cand, moves, ..*dfa }
}

/// Merge the byte classes that no state tells apart and number classes by their first byte.
pub(super) fn merge_classes(dfa: Dfa) -> Dfa {
    let k = dfa.class_count;
    // For each class the first one that no state told from it so far, and those of which that is another one.
    let mut first = vec![0usize; k];
    let mut others: Vec<usize> = (1..k).collect();
    for q in 0..dfa.state_count() {
        let row = dfa.row(q);
        // The class that those that had one first, and lead to one state, now have.
        let mut split: SmallVec<[(usize, u32, usize); 8]> = SmallVec::new();
        for &c in &others {
            if row[c] == row[first[c]] {
                continue;
            }
            let found = split.iter().find(|(before, to, _)| (*before, *to) == (first[c], row[c]));
            let now = found.map_or(c, |found| found.2);
            if now == c {
                split.push((first[c], row[c], c));
            }
            first[c] = now;
        }
        if !split.is_empty() {
            others.retain(|&c| first[c] != c);
        }
    }
    // Old classes need not be in byte order after an earlier merge or a product: number by first byte.
    let mut number = vec![DEAD; k];
    let mut representative = Vec::with_capacity(first.len());
    let mut byte_class = [0u8; 256];
    for b in 0..256 {
        let merged = first[usize::from(dfa.byte_class[b])];
        if number[merged] == DEAD {
            number[merged] = representative.len() as u32;
            representative.push(merged);
        }
        byte_class[b] = number[merged] as u8;
    }
    if representative.iter().copied().eq(0..k) {
        return Dfa { byte_class, ..dfa };
    }
    let mut next = Vec::with_capacity(dfa.state_count() * representative.len());
    for q in 0..dfa.state_count() {
        let row = dfa.row(q);
        next.extend(representative.iter().map(|&c| row[c]));
    }
    Dfa { byte_class, class_count: representative.len(), next, cand: dfa.cand, moves: dfa.moves }
}

/// State → block of the coarsest partition that respects `cand`, the start and the transitions.
fn refine(dfa: &Dfa) -> Vec<u32> {
    let (n, k) = (dfa.state_count(), dfa.class_count);
    let representative = merge_finite(dfa);
    // The blocks of finite states are known; only the others, and the start, have transitions to split by.
    let keys: Vec<u32> = (0..n)
        .map(|q| match representative[q] {
            _ if q == 0 => 0,
            DEAD => 1 + n as u32 + dfa.cand[q],
            finite => finite, // not the start, which represents no other state
        })
        .collect();
    // Moves are transitions as others are.
    let mut letters: Vec<u32> = dfa.moves.states().iter().flat_map(|&q| dfa.moves.of(q)).map(|m| m.0).collect();
    letters.sort_unstable();
    letters.dedup();
    let edges = |q: usize| {
        let splits = q == 0 || representative[q] == DEAD;
        let moves = dfa.moves.of(q as u32).iter().map(|(letter, t)| (k + letters.partition_point(|l| l < letter), t));
        dfa.row(q).iter().enumerate().chain(moves).filter(move |&(_, &t)| splits && t != DEAD)
    };
    let k = k + letters.len();
    // Transitions by class, so that the transitions of one class are one set of the first partition of transitions.
    let mut class_size = vec![0u32; k + 1];
    for q in 0..n {
        edges(q).for_each(|(c, _)| class_size[c + 1] += 1);
    }
    let class_start = prefix_sums(class_size);
    let mut free = class_start.clone();
    let total = class_start[k] as usize;
    let (mut source, mut target) = (vec![0u32; total], vec![0u32; total]);
    for q in 0..n {
        for (c, &t) in edges(q) {
            let at = free[c] as usize;
            free[c] += 1;
            (source[at], target[at]) = (q as u32, t);
        }
    }
    let (incoming_start, incoming) = group_by(&target, n);

    let mut blocks = Partition::by_key(&keys);
    let mut cords = Partition::of_runs(total, &class_start);
    // Block 0 is the start, which no transition leads to.
    let (mut block, mut cord) = (1, 0);
    while cord < cords.set_count() {
        crate::control::check();
        for i in cords.members(cord) {
            blocks.mark(source[cords.elements[i] as usize]);
        }
        blocks.split();
        cord += 1;
        while block < blocks.set_count() {
            for i in blocks.members(block) {
                let q = blocks.elements[i] as usize;
                for &transition in &incoming[incoming_start[q] as usize..incoming_start[q + 1] as usize] {
                    cords.mark(transition);
                }
            }
            cords.split();
            block += 1;
        }
    }
    blocks.set_of
}

/// State → the first equivalent state found, if its language is finite, else [`DEAD`]. The start is like no other state.
///
/// States that reach no cycle, such as those of literals and bounded repeats, are minimised by comparing their rows once,
/// successors first. What is counted lies on a cycle, and what has moves is left to the other stage.
fn merge_finite(dfa: &Dfa) -> Vec<u32> {
    const UNSEEN: u32 = u32::MAX - 1;
    const OPEN: u32 = u32::MAX - 2;
    let (n, k) = (dfa.state_count(), dfa.class_count);
    let mut representative = vec![UNSEEN; n];
    let mut finite = vec![true; n];
    let mut first_of: FxHashMap<u64, u32> = FxHashMap::default();
    let mut next_of = vec![DEAD; n]; // representatives of one hash, chained
    // Everything is reachable from the start.
    let mut stack = vec![(0usize, 0usize)];
    representative[0] = OPEN;
    while let Some((q, edge)) = stack.last_mut() {
        let (q, moves) = (*q, dfa.moves.of(*q as u32));
        let transition = (*edge..k).find(|&class| dfa.row(q)[class] != DEAD).map(|class| (class, dfa.row(q)[class]));
        let after = (*edge).max(k);
        if let Some((at, target)) = transition.or_else(|| moves.get(after - k).map(|&(_, to)| (after, to))) {
            *edge = at;
            match representative[target as usize] {
                UNSEEN => {
                    representative[target as usize] = OPEN;
                    stack.push((target as usize, 0)); // and come back to this transition
                }
                OPEN | DEAD => {
                    finite[q] = false;
                    *edge += 1;
                }
                _ => *edge += 1,
            }
            continue;
        }
        stack.pop();
        if !finite[q] || !moves.is_empty() {
            representative[q] = DEAD;
            continue;
        }
        let signature = |q: usize| {
            let row = dfa.row(q).iter();
            row.map(|&t| if t == DEAD { DEAD } else { representative[t as usize] }).chain([dfa.cand[q]])
        };
        let mut hasher = FxHasher::default();
        signature(q).for_each(|part| hasher.write_u32(part));
        let first = first_of.entry(hasher.finish()).or_insert(DEAD);
        let mut twin = *first;
        while twin != DEAD && !signature(twin as usize).eq(signature(q)) {
            twin = next_of[twin as usize];
        }
        if twin == DEAD && q != 0 {
            next_of[q] = std::mem::replace(first, q as u32);
        }
        representative[q] = if twin == DEAD { q as u32 } else { twin };
    }
    representative
}

fn prefix_sums(mut sizes: Vec<u32>) -> Vec<u32> {
    for i in 1..sizes.len() {
        sizes[i] += sizes[i - 1];
    }
    sizes
}

/// The indices of `keys` grouped by key: group `g` is `indices[start[g]..start[g + 1]]`.
fn group_by(keys: &[u32], key_count: usize) -> (Vec<u32>, Vec<u32>) {
    let mut sizes = vec![0u32; key_count + 1];
    for &key in keys {
        sizes[key as usize + 1] += 1;
    }
    let start = prefix_sums(sizes);
    let mut free = start.clone();
    let mut indices = vec![0u32; keys.len()];
    for (i, &key) in keys.iter().enumerate() {
        indices[free[key as usize] as usize] = i as u32;
        free[key as usize] += 1;
    }
    (start, indices)
}

/// A refinable partition of 0..n. Marked members of a set lie at its front.
struct Partition {
    elements: Vec<u32>,
    /// Element → its place in `elements`.
    place: Vec<u32>,
    set_of: Vec<u32>,
    /// Set → (first place, end, marked members).
    sets: Vec<(u32, u32, u32)>,
    touched: Vec<u32>,
}

impl Partition {
    fn by_key(keys: &[u32]) -> Self {
        let count = keys.iter().max().map_or(0, |max| *max as usize + 1);
        let (start, elements) = group_by(keys, count);
        Self::new(elements, &start)
    }

    /// The elements 0..n, cut at `start`.
    fn of_runs(n: usize, start: &[u32]) -> Self {
        Self::new((0..n as u32).collect(), start)
    }

    fn new(elements: Vec<u32>, start: &[u32]) -> Self {
        let mut place = vec![0; elements.len()];
        for (at, &e) in elements.iter().enumerate() {
            place[e as usize] = at as u32;
        }
        let mut set_of = vec![0; elements.len()];
        let mut sets = Vec::new();
        for bounds in start.windows(2).filter(|bounds| bounds[0] < bounds[1]) {
            for &e in &elements[bounds[0] as usize..bounds[1] as usize] {
                set_of[e as usize] = sets.len() as u32;
            }
            sets.push((bounds[0], bounds[1], 0));
        }
        Self { elements, place, set_of, sets, touched: Vec::new() }
    }

    fn set_count(&self) -> usize {
        self.sets.len()
    }

    /// The places of the members of a set.
    fn members(&self, set: usize) -> std::ops::Range<usize> {
        self.sets[set].0 as usize..self.sets[set].1 as usize
    }

    fn mark(&mut self, element: u32) {
        let set = self.set_of[element as usize];
        let (first, _, marked) = &mut self.sets[set as usize];
        let (from, to) = (self.place[element as usize], *first + *marked);
        if from < to {
            return; // already marked
        }
        if *marked == 0 {
            self.touched.push(set);
        }
        *marked += 1;
        let other = self.elements[to as usize];
        self.elements.swap(from as usize, to as usize);
        (self.place[element as usize], self.place[other as usize]) = (to, from);
    }

    /// Split every set with marked and unmarked members; the smaller part becomes a new set. Removes all marks.
    fn split(&mut self) {
        while let Some(set) = self.touched.pop() {
            let (first, end, marked) = std::mem::take(&mut self.sets[set as usize]);
            let middle = first + marked;
            if middle == end {
                self.sets[set as usize] = (first, end, 0);
                continue;
            }
            let (small, large) = if marked <= end - middle {
                ((first, middle, 0), (middle, end, 0))
            } else {
                ((middle, end, 0), (first, middle, 0))
            };
            self.sets[set as usize] = large;
            let new = self.sets.len() as u32;
            self.sets.push(small);
            for &e in &self.elements[small.0 as usize..small.1 as usize] {
                self.set_of[e as usize] = new;
            }
        }
    }
}
