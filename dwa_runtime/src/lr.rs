//! LR and GLR steps on the stack graph.

use crate::tables::{Meta, Tables};
use crate::verdict::Memo;
use smallvec::SmallVec;
use std::sync::Arc;
use weighted_gss::{Link, Node};

/// A parser stack, or several: LR states with the Parser DWA's memo.
pub(crate) type Stack = Link<u32, Memo>;
/// The tops of a branch: nearly always one.
pub(crate) type Tops = SmallVec<[Stack; 1]>;

/// States pushed above an existing node, not yet nodes themselves.
pub(crate) type Local = SmallVec<[u32; 16]>;

/// What an LR row says about one terminal.
enum Cell {
    Empty,
    Shift(u32),
    Reduce(u32),
    Conflict,
}

/// Result of a step that needed no fork.
pub(crate) enum Linear<'a> {
    /// The terminal cannot be shifted.
    Refused,
    /// It was: these states now stand above that node.
    Shifted(&'a Stack, Local),
    /// The end of input was accepted.
    Accepted,
    /// A conflict or a forked stack was met: take the general route.
    Forks,
}

/// The LR tables, with lookups.
#[derive(Clone, Copy)]
pub(crate) struct Lr<'t> {
    pub tables: &'t Tables,
    pub meta: &'t Meta,
}

impl<'t> Lr<'t> {
    fn shift_target(self, state: u32, terminal: u32) -> Option<u32> {
        let range = self.tables.shift_start.list(state);
        self.tables.shift_term.search(range, terminal).map(|i| self.tables.shift_to.get(i))
    }

    fn reductions(self, state: u32, terminal: u32) -> impl Iterator<Item = u32> + 't {
        let words = self.meta.terminal_words();
        let Lr { tables, .. } = self;
        tables.reduce_start.list(state).filter_map(move |i| {
            let word = tables.lookahead[tables.reduce_set.get(i) as usize * words + terminal as usize / 64];
            (word >> (terminal % 64) & 1 == 1).then(|| tables.reduce_prod.get(i))
        })
    }

    /// The pseudo state that the end of input is shifted to.
    fn accept(self) -> u32 {
        self.tables.lr_class.len() as u32
    }

    fn cell(self, state: u32, terminal: u32) -> Cell {
        let mut reductions = self.reductions(state, terminal);
        match (self.shift_target(state, terminal), reductions.next()) {
            (None, None) => Cell::Empty,
            (Some(to), None) => Cell::Shift(to),
            (None, Some(production)) if reductions.next().is_none() => Cell::Reduce(production),
            _ => Cell::Conflict,
        }
    }

    fn goto(self, state: u32, nonterminal: u32) -> Option<u32> {
        let range = self.tables.goto_start.list(state);
        self.tables.goto_nonterminal.search(range, nonterminal).map(|i| self.tables.goto_to.get(i))
    }

    fn production(self, production: u32) -> (u32, usize) {
        (self.tables.prod_lhs.get(production as usize), self.tables.prod_len.get(production as usize) as usize)
    }

    /// Shift `terminal` from a single stack as far as no fork is met. Allocates nothing in the usual case.
    pub(crate) fn shift_linear<'a>(self, top: &'a Stack, terminal: u32) -> Linear<'a> {
        let mut base = top;
        let mut local = Local::new();
        loop {
            let state = local.last().copied().unwrap_or_else(|| base.symbol());
            match self.cell(state, terminal) {
                Cell::Empty => return Linear::Refused,
                Cell::Conflict => return Linear::Forks,
                Cell::Shift(to) if to == self.accept() => return Linear::Accepted,
                Cell::Shift(to) => {
                    local.push(to);
                    return Linear::Shifted(base, local);
                }
                Cell::Reduce(production) => {
                    let (lhs, len) = self.production(production);
                    let from_base = len.saturating_sub(local.len());
                    local.truncate(local.len().saturating_sub(len));
                    for _ in 0..from_base {
                        match base.preds() {
                            [below] => base = below,
                            [] => return Linear::Refused,
                            _ => return Linear::Forks,
                        }
                    }
                    let state = local.last().copied().unwrap_or_else(|| base.symbol());
                    match self.goto(state, lhs) {
                        Some(to) => local.push(to),
                        None => return Linear::Refused,
                    }
                }
            }
        }
    }

    /// The stacks after shifting `terminal` from `tops`; empty if it cannot be shifted.
    pub(crate) fn shift(self, tops: &[Stack], terminal: u32) -> Tops {
        if let [top] = tops {
            match self.shift_linear(top, terminal) {
                Linear::Refused | Linear::Accepted => return Tops::new(),
                Linear::Shifted(base, local) => {
                    let mut node = Arc::clone(base);
                    for state in local {
                        node = Node::push(node, state);
                    }
                    return Tops::from_iter([node]);
                }
                Linear::Forks => {}
            }
        }
        Forks::reduce_all(self, tops, terminal).shift(terminal)
    }

    /// Whether some stack of `tops` can shift `terminal` (the end of input: accepts).
    pub(crate) fn can_shift(self, tops: &[Stack], terminal: u32) -> bool {
        if let [top] = tops {
            match self.shift_linear(top, terminal) {
                Linear::Refused => return false,
                Linear::Shifted(..) | Linear::Accepted => return true,
                Linear::Forks => {}
            }
        }
        let forks = Forks::reduce_all(self, tops, terminal);
        forks.nodes.iter().any(|n| self.shift_target(n.state, terminal).is_some())
    }
}

/// What lies below a node that is being made.
#[derive(Clone)]
enum Below {
    Old(Stack),
    New(usize),
}

impl Below {
    fn key(&self) -> (usize, usize) {
        match self {
            Below::Old(link) => (0, Arc::as_ptr(link) as usize),
            Below::New(i) => (1, *i),
        }
    }
}

struct Draft {
    state: u32,
    below: Vec<Below>,
    /// The existing node this one equals, while nothing was added to it.
    origin: Option<Stack>,
    queued: bool,
}

/// The general step: every reduction under one lookahead, on all stacks at once.
///
/// One node per LR state is drafted. A reduction pops level by level with duplicates removed, so each edge is visited
/// once per level however many paths share it. When a draft gains an edge, the reductions that could pass through it are
/// redone; drafts are few (at most one per LR state) and edges only accumulate, so this ends.
struct Forks<'t> {
    lr: Lr<'t>,
    nodes: Vec<Draft>,
}

impl<'t> Forks<'t> {
    fn reduce_all(lr: Lr<'t>, tops: &[Stack], terminal: u32) -> Self {
        let mut forks = Forks { lr, nodes: Vec::new() };
        for top in tops {
            let below: Vec<Below> = top.preds().iter().cloned().map(Below::Old).collect();
            match forks.nodes.iter_mut().find(|n| n.state == top.symbol()) {
                Some(node) => {
                    node.origin = None;
                    for b in below {
                        add_edge(&mut node.below, b);
                    }
                }
                None => {
                    forks.nodes.push(Draft { state: top.symbol(), below, origin: Some(Arc::clone(top)), queued: true })
                }
            }
        }
        let mut queue: Vec<usize> = (0..forks.nodes.len()).rev().collect();
        while let Some(i) = queue.pop() {
            forks.nodes[i].queued = false;
            let productions: SmallVec<[u32; 4]> = lr.reductions(forks.nodes[i].state, terminal).collect();
            for production in productions {
                let (lhs, len) = lr.production(production);
                for base in forks.pop(i, len) {
                    let Some(to) = lr.goto(forks.state_of(&base), lhs) else { continue };
                    forks.connect(to, base, &mut queue);
                }
            }
        }
        forks
    }

    fn state_of(&self, below: &Below) -> u32 {
        match below {
            Below::Old(link) => link.symbol(),
            Below::New(i) => self.nodes[*i].state,
        }
    }

    /// Everything `len` levels below draft `i`, without duplicates.
    fn pop(&self, i: usize, len: usize) -> Vec<Below> {
        let mut level = vec![Below::New(i)];
        for _ in 0..len {
            let mut next: Vec<Below> = Vec::new();
            for node in &level {
                match node {
                    Below::Old(link) => next.extend(link.preds().iter().cloned().map(Below::Old)),
                    Below::New(i) => next.extend(self.nodes[*i].below.iter().cloned()),
                }
            }
            next.sort_by_key(Below::key);
            next.dedup_by_key(|b| b.key());
            level = next;
        }
        level
    }

    fn connect(&mut self, state: u32, base: Below, queue: &mut Vec<usize>) {
        let mut enqueue = |nodes: &mut Vec<Draft>, i: usize| {
            if !std::mem::replace(&mut nodes[i].queued, true) {
                queue.push(i);
            }
        };
        match self.nodes.iter().position(|n| n.state == state) {
            None => {
                self.nodes.push(Draft { state, below: vec![base], origin: None, queued: false });
                let i = self.nodes.len() - 1;
                enqueue(&mut self.nodes, i);
            }
            Some(i) => {
                if add_edge(&mut self.nodes[i].below, base) {
                    self.nodes[i].origin = None;
                    enqueue(&mut self.nodes, i);
                    // Drafts above drafts come from empty reductions; their paths may pass through the new edge.
                    for j in 0..self.nodes.len() {
                        if self.nodes[j].below.iter().any(|b| matches!(b, Below::New(_))) {
                            enqueue(&mut self.nodes, j);
                        }
                    }
                }
            }
        }
    }

    fn shift(self, terminal: u32) -> Tops {
        let mut made: Vec<Option<Stack>> = vec![None; self.nodes.len()];
        let mut tops: Vec<(u32, Vec<Stack>)> = Vec::new();
        for i in 0..self.nodes.len() {
            let Some(to) = self.lr.shift_target(self.nodes[i].state, terminal) else { continue };
            if to == self.lr.accept() {
                continue;
            }
            let below = self.make(i, &mut made);
            match tops.iter_mut().find(|(state, _)| *state == to) {
                Some((_, links)) => links.push(below),
                None => tops.push((to, vec![below])),
            }
        }
        tops.sort_by_key(|(state, _)| *state);
        tops.into_iter().map(|(state, below)| Node::push_all(below, state)).collect()
    }

    /// Turn draft `i`, and the drafts below it, into nodes. Drafts form no cycle: the compiler removed `A ⇒+ A` and hidden
    /// left recursion. Their depth is bounded by the number of LR states.
    fn make(&self, i: usize, made: &mut Vec<Option<Stack>>) -> Stack {
        if let Some(node) = &made[i] {
            return Arc::clone(node);
        }
        let node = match &self.nodes[i].origin {
            Some(origin) => Arc::clone(origin),
            None => {
                let mut below: Vec<Stack> = Vec::with_capacity(self.nodes[i].below.len());
                for b in &self.nodes[i].below {
                    below.push(match b {
                        Below::Old(link) => Arc::clone(link),
                        Below::New(j) => self.make(*j, made),
                    });
                }
                weighted_gss::merge(&mut below);
                Node::push_all(below, self.nodes[i].state)
            }
        };
        made[i] = Some(Arc::clone(&node));
        node
    }
}

fn add_edge(edges: &mut Vec<Below>, edge: Below) -> bool {
    let key = edge.key();
    let new = edges.iter().all(|e| e.key() != key);
    if new {
        edges.push(edge);
    }
    new
}
