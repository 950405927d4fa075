//! LR actions on a stack of which only the symbols read so far are known.
//!
//! A configuration is a sequence node n, the local segment λ (what was read last with what was pushed since), and a set of
//! terminals T that are still undecided there; an LR row splits T by action. When a reduction pops more than λ holds, the
//! configuration is suspended as (n, j, A, T): pop j more symbols, then go to A from the next one, and continue with T.

use crate::bits::{self, Pool};
use crate::lexer::NONE;
use crate::lr::{Action, LrTable};
use crate::terminal_dwa::{Outcomes, REACHED, ROOT};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A set of terminals and the end.
pub(super) type Set = SmallVec<[u64; 4]>;

/// A suspended configuration; the set is an id in [`Symbolic::sets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Suspended {
    pub node: u32,
    pub pops: u32,
    pub lhs: u32,
    pub set: u32,
}

/// What one transition established at a node: the terminals shifted there (those that some outcome asks about), and
/// whether the node was reached.
pub(super) type Output = Vec<(u32, u32, bool)>;

struct Row {
    shifted: Set,
    shifts: Vec<(u32, u32)>,
    reductions: Vec<(u32, u32, Set)>,
}

struct Node {
    /// Terminals to simulate on arrival: labels of the edges that leave, and what outcomes ask about.
    wanted: Set,
    /// What outcomes ask about.
    asked: Set,
    /// Whether some outcome holds once the node is reached.
    reached: bool,
    /// Children by the terminal that leads to them.
    children: FxHashMap<u32, SmallVec<[u32; 2]>>,
    labels: Set,
    /// Children whose label contains an ignored terminal.
    for_free: Vec<u32>,
}

pub(super) struct Symbolic<'t> {
    table: &'t LrTable,
    rows: Vec<Row>,
    nodes: Vec<Node>,
    pub sets: Pool,
    width: usize,
    accept: u32,
    // Scratch of one transition.
    segments: Vec<(u32, u32, u32)>,
    segment_ids: FxHashMap<(u32, u32), u32>,
    simulated: FxHashMap<(u32, u32), Set>,
    suspended: FxHashMap<(u32, u32, u32), Set>,
    output: FxHashMap<u32, (Set, bool)>,
    work: Vec<(u32, u32, Set)>,
}

/// The pseudo state that the end is shifted to.
fn accept_state(table: &LrTable) -> u32 {
    table.state_count as u32
}

impl<'t> Symbolic<'t> {
    pub fn new(table: &'t LrTable, outcomes: &Outcomes<'_>) -> Self {
        let width = bits::words(table.terminal_count + 1);
        let empty: Set = smallvec::smallvec![0; width];
        let accept = accept_state(table);
        let rows = (0..table.state_count as u32)
            .map(|state| {
                let mut row = Row { shifted: empty.clone(), shifts: Vec::new(), reductions: Vec::new() };
                let mut grouped: Vec<(u32, u32, Set)> = Vec::new();
                for (terminal, actions) in table.row(state) {
                    for &action in actions {
                        match action {
                            Action::Shift(to) => row.shifts.push((terminal, to)),
                            Action::Accept => row.shifts.push((terminal, accept)),
                            Action::Reduce(production) => {
                                let (lhs, len) = table.productions[production as usize];
                                let i = grouped.iter().position(|g| (g.0, g.1) == (lhs, len)).unwrap_or_else(|| {
                                    grouped.push((lhs, len, empty.clone()));
                                    grouped.len() - 1
                                });
                                bits::insert(&mut grouped[i].2, terminal);
                                continue;
                            }
                        }
                        bits::insert(&mut row.shifted, terminal);
                    }
                }
                row.reductions = grouped;
                row
            })
            .collect();
        let mut nodes: Vec<Node> = outcomes
            .nodes
            .iter()
            .map(|_| Node {
                wanted: empty.clone(),
                asked: empty.clone(),
                reached: false,
                children: FxHashMap::default(),
                labels: empty.clone(),
                for_free: Vec::new(),
            })
            .collect();
        for (child, &(parent, label)) in outcomes.nodes.iter().enumerate().skip(1) {
            let set = &outcomes.sets.sets[label as usize];
            let parent = &mut nodes[parent as usize];
            for &t in &set.terms {
                parent.children.entry(t).or_default().push(child as u32);
                bits::insert(&mut parent.labels, t);
            }
            if set.ignored {
                parent.for_free.push(child as u32);
            }
        }
        for &(node, pending) in &outcomes.outcomes {
            let node = &mut nodes[node as usize];
            match pending {
                REACHED => node.reached = true,
                set => outcomes.sets.sets[set as usize].terms.iter().for_each(|&t| bits::insert(&mut node.asked, t)),
            }
        }
        bits::insert(&mut nodes[ROOT as usize].asked, table.terminal_count as u32);
        for node in &mut nodes {
            node.wanted = node.labels.clone();
            bits::unite(&mut node.wanted, &node.asked);
        }
        Symbolic {
            table,
            rows,
            nodes,
            sets: Pool::new(width),
            width,
            accept,
            segments: Vec::new(),
            segment_ids: FxHashMap::default(),
            simulated: FxHashMap::default(),
            suspended: FxHashMap::default(),
            output: FxHashMap::default(),
            work: Vec::new(),
        }
    }

    /// Read `symbol` with nothing read before.
    pub fn read_first(&mut self, symbol: u32) -> (Vec<Suspended>, Output) {
        let segment = self.segment(NONE, symbol);
        self.arrive(ROOT, segment);
        self.finish()
    }

    /// Read `symbol` in a set of suspended configurations.
    pub fn read(&mut self, configurations: &[Suspended], symbol: u32) -> (Vec<Suspended>, Output) {
        let base = self.segment(NONE, symbol);
        for c in configurations {
            let set = Set::from_slice(self.sets.get(c.set));
            if c.pops > 0 {
                self.suspend(c.node, c.pops - 1, c.lhs, &set);
            } else if let Some(to) = self.table.goto(symbol, c.lhs) {
                let segment = self.segment(base, to);
                self.work.push((c.node, segment, set));
            }
        }
        self.finish()
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
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            let n = &self.nodes[node as usize];
            if n.reached && node != ROOT {
                let empty = || (smallvec::smallvec![0; self.width], false);
                self.output.entry(node).or_insert_with(empty).1 = true;
            }
            if !bits::is_empty(&n.wanted) {
                self.work.push((node, segment, n.wanted.clone()));
            }
            pending.extend(&n.for_free);
        }
    }

    fn suspend(&mut self, node: u32, pops: u32, lhs: u32, set: &[u64]) {
        match self.suspended.entry((node, pops, lhs)) {
            std::collections::hash_map::Entry::Occupied(mut e) => {
                bits::unite(e.get_mut(), set);
            }
            std::collections::hash_map::Entry::Vacant(e) => {
                e.insert(Set::from_slice(set));
            }
        }
    }

    fn finish(&mut self) -> (Vec<Suspended>, Output) {
        while let Some((node, segment, set)) = self.work.pop() {
            self.simulate(node, segment, set);
        }
        let mut suspended: Vec<Suspended> = self
            .suspended
            .drain()
            .map(|((node, pops, lhs), set)| Suspended { node, pops, lhs, set: self.sets.intern(&set) })
            .collect();
        suspended.sort_unstable();
        let mut output: Output =
            self.output.drain().map(|(node, (set, reached))| (node, self.sets.intern(&set), reached)).collect();
        output.sort_unstable();
        self.segments.clear();
        self.segment_ids.clear();
        self.simulated.clear();
        (suspended, output)
    }

    fn simulate(&mut self, node: u32, segment: u32, mut set: Set) {
        // What was simulated here before needs no second run.
        match self.simulated.entry((node, segment)) {
            std::collections::hash_map::Entry::Vacant(e) => {
                e.insert(set.clone());
            }
            std::collections::hash_map::Entry::Occupied(mut e) => {
                let seen = e.get_mut();
                for (t, s) in set.iter_mut().zip(seen.iter_mut()) {
                    *t &= !*s;
                    *s |= *t;
                }
                if bits::is_empty(&set) {
                    return;
                }
            }
        }
        let (_, top, len) = self.segments[segment as usize];
        if top == self.accept {
            return;
        }
        let and = |a: &[u64], b: &[u64]| -> Set { a.iter().zip(b).map(|(x, y)| x & y).collect() };
        let shifted = and(&set, &self.rows[top as usize].shifted);
        if !bits::is_empty(&shifted) {
            let asked = and(&shifted, &self.nodes[node as usize].asked);
            if !bits::is_empty(&asked) {
                let empty = || (smallvec::smallvec![0; self.width], false);
                bits::unite(&mut self.output.entry(node).or_insert_with(empty).0, &asked);
            }
            let onward = and(&shifted, &self.nodes[node as usize].labels);
            if !bits::is_empty(&onward) {
                for i in 0..self.rows[top as usize].shifts.len() {
                    let (terminal, to) = self.rows[top as usize].shifts[i];
                    if bits::has(&onward, terminal) {
                        let above = self.segment(segment, to);
                        let children = self.nodes[node as usize].children[&terminal].clone();
                        for child in children {
                            self.arrive(child, above);
                        }
                    }
                }
            }
        }
        for i in 0..self.rows[top as usize].reductions.len() {
            let (lhs, pops, lookahead) = &self.rows[top as usize].reductions[i];
            let (lhs, pops) = (*lhs, *pops);
            let on = and(&set, lookahead);
            if bits::is_empty(&on) {
                continue;
            }
            if pops >= len {
                self.suspend(node, pops - len, lhs, &on);
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
}
