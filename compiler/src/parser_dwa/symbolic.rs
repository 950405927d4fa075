//! LR actions on a stack of which only the symbols read so far are known.
//!
//! A configuration is a sequence node n, an LR state s on top of the stack, and a set of terminals T that are still undecided
//! there; an LR row splits T by action. What follows from it before s is popped does not depend on what lies below, so it is
//! worked out once, as the *frame* of (n, s, T): what it outputs, and how it leaves s, as suspended configurations
//! (n', j, A, T'): pop j more symbols below s, then go to A from the next one, and continue with T' at n'. A frame calls the
//! frame of each state that is pushed on s, and continues what leaves that one with nothing more to pop, with a goto from s.
//! Frames that call each other are iterated until nothing changes. So the cost is polynomial, however many stacks there are.

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

/// Bytes of a frame and its keys, about.
const FRAME_BYTES: usize = 200;

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
    scratch: Vec<u64>,
    frames: Vec<Frame>,
    /// By node, LR state and set.
    frame_ids: FxHashMap<(u32, u32, u32), u32>,
    /// Frames by node and LR state. Their sets may overlap until there are this many; then each further terminal gets a frame
    /// of its own. Overlapping sets could otherwise be as many as there are sets of terminals.
    frame_counts: FxHashMap<(u32, u32), usize>,
    overlapping: usize,
    /// By node, set, symbol below and LR state: frames of that symbol in which the state was pushed on it.
    resumed_ids: FxHashMap<(u32, u32, u32, u32), u32>,
    // While frames are iterated; empty when all are complete.
    /// Frames before this one are complete.
    complete: u32,
    /// What they hold in memory, about.
    bytes: usize,
    work: Vec<Work>,
    /// By frame and what was called from it, node and LR state: for which terminals.
    called: FxHashMap<(u32, u32, u32), u32>,
    /// By frame, node, pops and left-hand side: position among its exits.
    exit_ids: FxHashMap<(u32, u32, u32, u32), u32>,
    output_ids: FxHashMap<(u32, u32), u32>,
}

/// What follows after an LR state was pushed, until it is popped.
#[derive(Debug)]
struct Frame {
    state: u32,
    exits: Vec<Suspended>,
    output: Output,
    /// Frames that called this one while it was not complete.
    callers: Vec<u32>,
}

/// What is left to do while frames are iterated.
#[derive(Debug)]
enum Work {
    /// Run a frame with what it decides.
    Run { frame: u32, node: u32, set: u32 },
    /// Tell a frame how one that it called is left.
    Exit { caller: u32, exit: Suspended },
    /// Tell a frame what one that it called outputs.
    Output { caller: u32, output: (u32, u32, bool) },
}

impl Symbolic {
    /// For a table, so far without nodes.
    pub fn new(table: Arc<Quotient>, overlapping: usize) -> Self {
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
            scratch: vec![0; width],
            frames: Vec::new(),
            frame_ids: FxHashMap::default(),
            frame_counts: FxHashMap::default(),
            overlapping,
            resumed_ids: FxHashMap::default(),
            complete: 0,
            bytes: 0,
            work: Vec::new(),
            called: FxHashMap::default(),
            exit_ids: FxHashMap::default(),
            output_ids: FxHashMap::default(),
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

    /// What frames hold in memory, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Read `symbol` with nothing read before, to decide what the domain of node `root` is about.
    pub fn read_first(&mut self, root: u32, symbol: u32) -> (Vec<Suspended>, Output) {
        let frame = self.new_frame(symbol);
        self.arrive(frame, root);
        self.work.push(Work::Run { frame, node: root, set: self.nodes[root as usize].wanted });
        self.iterate();
        let Frame { exits, output, .. } = &self.frames[frame as usize];
        (exits.clone(), output.clone())
    }

    /// Read `symbol` in a set of suspended configurations. They do not influence each other, so what each resumes to is
    /// computed once and shared by all the states it occurs in.
    pub fn read(&mut self, configurations: &[Suspended], symbol: u32) -> (Vec<Suspended>, Output) {
        let mut resumed: Vec<u32> = Vec::with_capacity(configurations.len());
        let mut popped: Vec<Suspended> = Vec::new();
        for c in configurations {
            if c.pops > 0 {
                popped.push(Suspended { pops: c.pops - 1, ..*c });
            } else if let Some(to) = self.table.goto(symbol, c.lhs) {
                resumed.push(self.resume(c.node, c.set, symbol, to));
            }
        }
        if let [only] = resumed[..]
            && popped.is_empty()
        {
            let Frame { exits, output, .. } = &self.frames[only as usize];
            return (exits.clone(), output.clone());
        }
        let exits = resumed.iter().flat_map(|&frame| &self.frames[frame as usize].exits);
        let mut suspended: Vec<Suspended> = exits.copied().chain(popped).collect();
        suspended.sort_unstable();
        suspended.dedup_by(|next, kept| {
            let same = (next.node, next.pops, next.lhs) == (kept.node, kept.pops, kept.lhs);
            if same {
                kept.set = unite(&mut self.sets, &mut self.scratch, kept.set, next.set);
            }
            same
        });
        let mut output: Output = resumed.iter().flat_map(|&f| &self.frames[f as usize].output).copied().collect();
        output.sort_unstable();
        output.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = unite(&mut self.sets, &mut self.scratch, kept.1, next.1);
                kept.2 |= next.2;
            }
            same
        });
        (suspended, output)
    }

    /// The frame of `symbol` when `state` was pushed on it, to decide `set` at `node`.
    fn resume(&mut self, node: u32, set: u32, symbol: u32, state: u32) -> u32 {
        let key = (node, set, symbol, state);
        if let Some(&frame) = self.resumed_ids.get(&key) {
            return frame;
        }
        let frame = self.new_frame(symbol);
        self.call(frame, node, state, set);
        self.iterate();
        self.resumed_ids.insert(key, frame);
        frame
    }

    fn new_frame(&mut self, state: u32) -> u32 {
        self.frames.push(Frame { state, exits: Vec::new(), output: Vec::new(), callers: Vec::new() });
        self.frames.len() as u32 - 1
    }

    /// Complete all frames.
    fn iterate(&mut self) {
        while let Some(work) = self.work.pop() {
            crate::control::check();
            match work {
                Work::Run { frame, node, set } => self.run(frame, node, set),
                Work::Exit { caller, exit } => self.returned(caller, exit),
                Work::Output { caller, output } => self.output(caller, output),
            }
        }
        for frame in &mut self.frames[self.complete as usize..] {
            frame.exits.sort_unstable();
            frame.output.sort_unstable();
            frame.callers = Vec::new();
            self.bytes += FRAME_BYTES + size_of_val(&frame.exits[..]) + size_of_val(&frame.output[..]);
        }
        self.complete = self.frames.len() as u32;
        self.called.clear();
        self.exit_ids.clear();
        self.output_ids.clear();
    }

    /// Do what a frame's state does by itself.
    fn run(&mut self, frame: u32, node: u32, set: u32) {
        let state = self.frames[frame as usize].state;
        if state == self.accept {
            return;
        }
        let split = self.split(state, set);
        let shifted = self.splits[split].shifted;
        if shifted != EMPTY {
            let what = self.shift(node, shifted);
            let asked = self.shifted[what].asked;
            if asked != EMPTY {
                self.output(frame, (node, asked, false));
            }
            for i in 0..self.shifted[what].onward.len() {
                let (terminal, child, ref groups) = self.shifted[what].onward[i];
                let shifts = &self.rows[state as usize].shifts;
                if let Ok(at) = shifts.binary_search_by_key(&terminal, |s| s.0)
                    && self.is_of(shifts[at].1, groups.as_deref())
                {
                    let to = shifts[at].1;
                    self.arrive(frame, child);
                    self.call(frame, child, to, self.nodes[child as usize].wanted);
                }
            }
        }
        for i in 0..self.splits[split].reductions.len() {
            let (lhs, pops, set) = self.splits[split].reductions[i];
            match pops {
                0 => self.returned(frame, Suspended { node, pops, lhs, set }),
                _ => self.exit(frame, Suspended { node, pops: pops - 1, lhs, set }),
            }
        }
    }

    fn arrive(&mut self, frame: u32, node: u32) {
        if self.nodes[node as usize].reached {
            self.output(frame, (node, EMPTY, true));
        }
    }

    /// Push `state` on a frame's, to decide `set` at `node`.
    fn call(&mut self, caller: u32, node: u32, state: u32, mut set: u32) {
        if set == EMPTY {
            return;
        }
        // What was called before needs no second call; a cycle of reductions ends here.
        match self.called.entry((caller, node, state)) {
            Entry::Vacant(e) => drop(e.insert(set)),
            Entry::Occupied(mut e) => {
                let known = *e.get();
                *e.get_mut() = unite(&mut self.sets, &mut self.scratch, known, set);
                set = without(&mut self.sets, &mut self.scratch, set, known);
                if set == EMPTY {
                    return;
                }
            }
        }
        if let Some(&frame) = self.frame_ids.get(&(node, state, set)) {
            return self.connect(caller, frame);
        }
        let count = self.frame_counts.entry((node, state)).or_default();
        *count += 1;
        if *count <= self.overlapping {
            let frame = self.frame(node, state, set);
            return self.connect(caller, frame);
        }
        let terminals: Vec<u32> = bits::iter(self.sets.get(set)).collect();
        for terminal in terminals {
            self.scratch.fill(0);
            bits::insert(&mut self.scratch, terminal);
            let set = self.sets.intern(&self.scratch);
            let frame = self.frame(node, state, set);
            self.connect(caller, frame);
        }
    }

    fn frame(&mut self, node: u32, state: u32, set: u32) -> u32 {
        if let Some(&frame) = self.frame_ids.get(&(node, state, set)) {
            return frame;
        }
        let frame = self.new_frame(state);
        self.frame_ids.insert((node, state, set), frame);
        self.work.push(Work::Run { frame, node, set });
        frame
    }

    /// Tell a frame all that is known of one that it calls, and what will be.
    fn connect(&mut self, caller: u32, frame: u32) {
        let called = &mut self.frames[frame as usize];
        if frame >= self.complete {
            called.callers.push(caller);
        }
        self.work.extend(called.exits.iter().map(|&exit| Work::Exit { caller, exit }));
        self.work.extend(called.output.iter().map(|&output| Work::Output { caller, output }));
    }

    /// Continue a frame after one that it called was left.
    fn returned(&mut self, caller: u32, exit: Suspended) {
        if exit.pops > 0 {
            self.exit(caller, Suspended { pops: exit.pops - 1, ..exit });
        } else if let Some(to) = self.table.goto(self.frames[caller as usize].state, exit.lhs) {
            self.call(caller, exit.node, to, exit.set);
        }
    }

    fn exit(&mut self, frame: u32, mut exit: Suspended) {
        let Frame { exits, callers, .. } = &mut self.frames[frame as usize];
        match self.exit_ids.entry((frame, exit.node, exit.pops, exit.lhs)) {
            Entry::Vacant(e) => {
                e.insert(exits.len() as u32);
                exits.push(exit);
            }
            Entry::Occupied(e) => {
                let known = &mut exits[*e.get() as usize].set;
                exit.set = without(&mut self.sets, &mut self.scratch, exit.set, *known);
                *known = unite(&mut self.sets, &mut self.scratch, *known, exit.set);
                if exit.set == EMPTY {
                    return;
                }
            }
        }
        self.work.extend(callers.iter().map(|&caller| Work::Exit { caller, exit }));
    }

    fn output(&mut self, frame: u32, output: (u32, u32, bool)) {
        let (node, set, reached) = output;
        let Frame { output: outputs, callers, .. } = &mut self.frames[frame as usize];
        match self.output_ids.entry((frame, node)) {
            Entry::Vacant(e) => {
                e.insert(outputs.len() as u32);
                outputs.push(output);
            }
            Entry::Occupied(e) => {
                let known = &mut outputs[*e.get() as usize];
                let before = *known;
                known.1 = unite(&mut self.sets, &mut self.scratch, known.1, set);
                known.2 |= reached;
                if *known == before {
                    return;
                }
            }
        }
        self.work.extend(callers.iter().map(|&caller| Work::Output { caller, output }));
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

fn without(sets: &mut Pool, scratch: &mut [u64], a: u32, b: u32) -> u32 {
    for ((out, x), y) in scratch.iter_mut().zip(sets.get(a)).zip(sets.get(b)) {
        *out = x & !y;
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
