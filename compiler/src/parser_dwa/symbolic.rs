//! LR actions on a stack of which only the symbols read so far are known.
//!
//! A configuration is a sequence node n, the local segment λ (what was read last with what was pushed since), and a set of
//! terminals T that are still undecided there; an LR row splits T by action. When a reduction pops more than λ holds, the
//! configuration is suspended as (n, j, A, T): pop j more symbols, then go to A from the next one, and continue with T.

use super::quotient::{self, Quotient};
use crate::bits::{self, Pool};
use crate::lexer::NONE;
use crate::terminal_dwa::{Outcomes, REACHED, ROOT, SequenceNode};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// A suspended configuration; the set is an id in [`Symbolic::sets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Suspended {
    pub node: u32,
    pub pops: u32,
    pub lhs: u32,
    pub set: u32,
}

/// What one transition established at a node: the terminals shifted there (those that some outcome asks about), and
/// whether the node was reached.
pub(crate) type Output = Vec<(u32, u32, bool)>;

/// The empty set's id.
const EMPTY: u32 = 0;

/// An LR row.
#[derive(Debug)]
struct Row {
    shifted: Vec<u64>,
    shifts: Vec<(u32, u32)>,
    /// Left-hand side, length, lookahead.
    reductions: Vec<(u32, u32, Vec<u64>)>,
}

#[derive(Debug)]
struct Node {
    /// Terminals to simulate on arrival: labels of the edges that leave, and what outcomes ask about.
    wanted: u32,
    /// What outcomes ask about.
    asked: Vec<u64>,
    labels: Vec<u64>,
    /// Whether some outcome holds once the node is reached.
    reached: bool,
    /// Children by the terminal that leads to them, with the groups that the LR state on top then must be of.
    children: FxHashMap<u32, Vec<(u32, GroupSet)>>,
}

/// How an LR row splits a set.
#[derive(Debug)]
struct Split {
    shifted: u32,
    /// Left-hand side, length, set.
    reductions: Vec<(u32, u32, u32)>,
}

/// What shifting a set at a node means.
#[derive(Debug)]
struct Shifted {
    asked: u32,
    /// Terminal, child, groups.
    onward: Vec<(u32, u32, GroupSet)>,
}

/// Lexer groups as bits; `None` for any.
type GroupSet = Option<Arc<[u64]>>;

/// Runs LR actions on partly known stacks. Sets are interned, so that each way to split one is computed once.
#[derive(Debug)]
pub(crate) struct Symbolic {
    table: Arc<Quotient>,
    rows: Vec<Row>,
    nodes: Vec<Node>,
    pub sets: Pool,
    accept: u32,
    splits: Vec<Split>,
    split_ids: FxHashMap<(u32, u32), u32>,
    shifted: Vec<Shifted>,
    shifted_ids: FxHashMap<(u32, u32), u32>,
    resumed: Vec<(Vec<Suspended>, Output)>,
    resumed_ids: FxHashMap<(u32, u32, u32, u32), u32>,
    scratch: Vec<u64>,
    // The state of one transition.
    /// Local segments: what is below (`NONE` for the symbol read), LR state, length.
    segments: Vec<(u32, u32, u32)>,
    segment_ids: FxHashMap<(u32, u32), u32>,
    simulated: FxHashMap<(u32, u32), u32>,
    suspended: FxHashMap<(u32, u32, u32), u32>,
    output: FxHashMap<u32, (u32, bool)>,
    work: Vec<(u32, u32, u32)>,
}

impl Symbolic {
    /// For a table, so far without nodes.
    pub fn new(table: Arc<Quotient>) -> Self {
        let width = bits::words(table.terminal_classes);
        let mut sets = Pool::new(width);
        sets.intern(&vec![0; width]);
        let rows = table.rows.iter().map(|row| Row::new(row, width)).collect();
        let accept = table.accept();
        Symbolic {
            table,
            rows,
            nodes: Vec::new(),
            sets,
            accept,
            splits: Vec::new(),
            split_ids: FxHashMap::default(),
            shifted: Vec::new(),
            shifted_ids: FxHashMap::default(),
            resumed: Vec::new(),
            resumed_ids: FxHashMap::default(),
            scratch: vec![0; width],
            segments: Vec::new(),
            segment_ids: FxHashMap::default(),
            simulated: FxHashMap::default(),
            suspended: FxHashMap::default(),
            output: FxHashMap::default(),
            work: Vec::new(),
        }
    }

    /// Add nodes that decide some outcomes, and the end of input: a domain of their own. Returns its root, and the sequence
    /// nodes that this node and those numbered after it stand for.
    pub fn add_domain(&mut self, from: &Outcomes, outcomes: impl Iterator<Item = u32> + Clone) -> (u32, Vec<u32>) {
        let mut places: Vec<u32> = vec![ROOT];
        let mut known: FxHashSet<u32> = FxHashSet::from_iter([ROOT]);
        for outcome in outcomes.clone() {
            let mut node = from.outcomes[outcome as usize].0;
            while known.insert(node) {
                places.push(node);
                node = from.nodes[node as usize].parent;
            }
        }
        places.sort_unstable();
        let first = self.nodes.len() as u32;
        let ids: FxHashMap<u32, u32> = places.iter().copied().zip(first..).collect();
        let width = self.scratch.len();
        let mut nodes: Vec<Node> = places.iter().map(|_| Node::new(width)).collect();
        for (child, &place) in places.iter().enumerate().skip(1) {
            let SequenceNode { parent, label, groups } = from.nodes[place as usize];
            let parent = &mut nodes[(ids[&parent] - first) as usize];
            let groups: Option<Arc<[u64]>> = (groups != NONE).then(|| from.group_sets.get(groups).into());
            for &t in &from.labels.sets[label as usize].terms {
                parent.children.entry(t).or_default().push((first + child as u32, groups.clone()));
                bits::insert(&mut parent.labels, t);
            }
        }
        for outcome in outcomes {
            let (place, pending) = from.outcomes[outcome as usize];
            let node = &mut nodes[(ids[&place] - first) as usize];
            match pending {
                // What holds as soon as the stack is there holds always: nobody asks.
                REACHED => node.reached |= place != ROOT,
                set => from.labels.sets[set as usize].terms.iter().for_each(|&t| bits::insert(&mut node.asked, t)),
            }
        }
        bits::insert(&mut nodes[0].asked, self.table.terminal_classes as u32 - 1);
        for node in &mut nodes {
            let mut wanted = node.labels.clone();
            bits::unite(&mut wanted, &node.asked);
            node.wanted = self.sets.intern(&wanted);
        }
        self.nodes.extend(nodes);
        (first, places)
    }

    /// Read `symbol` with nothing read before, to decide what the domain of node `root` is about.
    pub fn read_first(&mut self, root: u32, symbol: u32) -> (Vec<Suspended>, Output) {
        let segment = self.segment(NONE, symbol);
        self.arrive(root, segment);
        self.finish()
    }

    /// Read `symbol` in a set of suspended configurations. They do not influence each other, so what each resumes to is
    /// computed once and shared by all the states it occurs in.
    pub fn read(&mut self, configurations: &[Suspended], symbol: u32) -> (Vec<Suspended>, Output) {
        let mut resumed: Vec<u32> = Vec::with_capacity(configurations.len());
        for c in configurations {
            if c.pops == 0
                && let Some(to) = self.table.goto(symbol, c.lhs)
            {
                resumed.push(self.resume(c.node, c.set, symbol, to));
            }
        }
        for c in configurations.iter().filter(|c| c.pops > 0) {
            self.suspend(c.node, c.pops - 1, c.lhs, c.set);
        }
        if let [only] = resumed[..]
            && self.suspended.is_empty()
        {
            return self.resumed[only as usize].clone();
        }
        for id in resumed {
            let (suspended, output) = std::mem::take(&mut self.resumed[id as usize]);
            for c in &suspended {
                self.suspend(c.node, c.pops, c.lhs, c.set);
            }
            for &(node, set, reached) in &output {
                let out = self.output.entry(node).or_insert((EMPTY, false));
                out.0 = unite(&mut self.sets, &mut self.scratch, out.0, set);
                out.1 |= reached;
            }
            self.resumed[id as usize] = (suspended, output);
        }
        self.finish()
    }

    /// Continue with `set` at `node` on a stack of which `symbol` and above it `state` are known.
    fn resume(&mut self, node: u32, set: u32, symbol: u32, state: u32) -> u32 {
        let key = (node, set, symbol, state);
        if let Some(&id) = self.resumed_ids.get(&key) {
            return id;
        }
        let base = self.segment(NONE, symbol);
        let segment = self.segment(base, state);
        self.work.push((node, segment, set));
        let result = self.finish();
        let id = self.resumed.len() as u32;
        self.resumed.push(result);
        self.resumed_ids.insert(key, id);
        id
    }

    fn segment(&mut self, below: u32, state: u32) -> u32 {
        let next = self.segments.len() as u32;
        let len = if below == NONE { 1 } else { self.segments[below as usize].2 + 1 };
        *self.segment_ids.entry((below, state)).or_insert_with(|| {
            self.segments.push((below, state, len));
            next
        })
    }

    fn arrive(&mut self, node: u32, segment: u32) {
        let n = &self.nodes[node as usize];
        if n.reached {
            self.output.entry(node).or_insert((EMPTY, false)).1 = true;
        }
        if n.wanted != EMPTY {
            self.work.push((node, segment, n.wanted));
        }
    }

    fn suspend(&mut self, node: u32, pops: u32, lhs: u32, set: u32) {
        match self.suspended.entry((node, pops, lhs)) {
            Entry::Occupied(mut e) => *e.get_mut() = unite(&mut self.sets, &mut self.scratch, *e.get(), set),
            Entry::Vacant(e) => drop(e.insert(set)),
        }
    }

    fn finish(&mut self) -> (Vec<Suspended>, Output) {
        while let Some((node, segment, set)) = self.work.pop() {
            self.simulate(node, segment, set);
        }
        let suspended = self.suspended.drain().map(|((node, pops, lhs), set)| Suspended { node, pops, lhs, set });
        let mut suspended: Vec<Suspended> = suspended.collect();
        suspended.sort_unstable();
        let mut output: Output = self.output.drain().map(|(node, (set, reached))| (node, set, reached)).collect();
        output.sort_unstable();
        self.segments.clear();
        self.segment_ids.clear();
        self.simulated.clear();
        (suspended, output)
    }

    fn simulate(&mut self, node: u32, segment: u32, mut set: u32) {
        crate::control::check();
        // What was simulated here before needs no second run; a cycle of reductions ends here.
        match self.simulated.entry((node, segment)) {
            Entry::Vacant(e) => drop(e.insert(set)),
            Entry::Occupied(mut e) => {
                let seen = *e.get();
                *e.get_mut() = unite(&mut self.sets, &mut self.scratch, seen, set);
                for (i, word) in self.scratch.iter_mut().enumerate() {
                    *word = self.sets.get(set)[i] & !self.sets.get(seen)[i];
                }
                set = self.sets.intern(&self.scratch);
                if set == EMPTY {
                    return;
                }
            }
        }
        let (_, top, len) = self.segments[segment as usize];
        if top == self.accept {
            return;
        }
        let split = self.split(top, set);
        let shifted = self.splits[split].shifted;
        if shifted != EMPTY {
            let what = self.shift(node, shifted);
            let asked = self.shifted[what].asked;
            if asked != EMPTY {
                let out = &mut self.output.entry(node).or_insert((EMPTY, false)).0;
                *out = unite(&mut self.sets, &mut self.scratch, *out, asked);
            }
            for i in 0..self.shifted[what].onward.len() {
                let (terminal, child, ref groups) = self.shifted[what].onward[i];
                let shifts = &self.rows[top as usize].shifts;
                if let Ok(at) = shifts.binary_search_by_key(&terminal, |s| s.0)
                    && self.is_of(shifts[at].1, groups.as_deref())
                {
                    let above = self.segment(segment, shifts[at].1);
                    self.arrive(child, above);
                }
            }
        }
        for i in 0..self.splits[split].reductions.len() {
            let (lhs, pops, on) = self.splits[split].reductions[i];
            if pops >= len {
                self.suspend(node, pops - len, lhs, on);
                continue;
            }
            let mut below = segment;
            for _ in 0..pops {
                below = self.segments[below as usize].0;
            }
            if let Some(to) = self.table.goto(self.segments[below as usize].1, lhs) {
                let above = self.segment(below, to);
                self.work.push((node, above, on));
            }
        }
    }

    /// Whether an LR state is of one of these groups. The pseudo state of the end is of none.
    fn is_of(&self, state: u32, groups: Option<&[u64]>) -> bool {
        let group = self.table.group_of.get(state as usize);
        group.is_some_and(|&group| groups.is_none_or(|groups| bits::has(groups, group)))
    }

    fn split(&mut self, top: u32, set: u32) -> usize {
        if let Some(&id) = self.split_ids.get(&(top, set)) {
            return id as usize;
        }
        let Symbolic { rows, sets, scratch, .. } = self;
        let row = &rows[top as usize];
        let shifted = meet(sets, scratch, set, &row.shifted);
        let mut reductions = Vec::new();
        for (lhs, pops, lookahead) in &row.reductions {
            let on = meet(sets, scratch, set, lookahead);
            if on != EMPTY {
                reductions.push((*lhs, *pops, on));
            }
        }
        self.split_ids.insert((top, set), self.splits.len() as u32);
        self.splits.push(Split { shifted, reductions });
        self.splits.len() - 1
    }

    fn shift(&mut self, node: u32, set: u32) -> usize {
        if let Some(&id) = self.shifted_ids.get(&(node, set)) {
            return id as usize;
        }
        let Symbolic { nodes, sets, scratch, .. } = self;
        let n = &nodes[node as usize];
        let asked = meet(sets, scratch, set, &n.asked);
        let mut onward = Vec::new();
        for terminal in bits::iter(sets.get(set)).filter(|&t| bits::has(&n.labels, t)) {
            onward.extend(n.children[&terminal].iter().map(|(child, groups)| (terminal, *child, groups.clone())));
        }
        self.shifted_ids.insert((node, set), self.shifted.len() as u32);
        self.shifted.push(Shifted { asked, onward });
        self.shifted.len() - 1
    }
}

fn meet(sets: &mut Pool, scratch: &mut [u64], a: u32, b: &[u64]) -> u32 {
    for ((out, x), y) in scratch.iter_mut().zip(sets.get(a)).zip(b) {
        *out = x & y;
    }
    sets.intern(scratch)
}

fn unite(sets: &mut Pool, scratch: &mut [u64], a: u32, b: u32) -> u32 {
    if a == b || b == EMPTY {
        return a;
    }
    if a == EMPTY {
        return b;
    }
    for ((out, x), y) in scratch.iter_mut().zip(sets.get(a)).zip(sets.get(b)) {
        *out = x | y;
    }
    sets.intern(scratch)
}

impl Row {
    fn new(row: &quotient::Row, width: usize) -> Self {
        let set = |classes: &mut dyn Iterator<Item = u32>| {
            let mut set = vec![0; width];
            classes.for_each(|c| bits::insert(&mut set, c));
            set
        };
        let reductions = row.reductions.iter().map(|(lhs, len, on)| (*lhs, *len, set(&mut on.iter().copied())));
        Row {
            shifted: set(&mut row.shifts.iter().map(|s| s.0)),
            shifts: row.shifts.clone(),
            reductions: reductions.collect(),
        }
    }
}

impl Node {
    fn new(width: usize) -> Self {
        Node {
            wanted: EMPTY,
            asked: vec![0; width],
            labels: vec![0; width],
            reached: false,
            children: FxHashMap::default(),
        }
    }
}
