//! LR and GLR steps on the stack graph.

use crate::tables::{Meta, Tables};
use crate::verdict::Memo;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::sync::Arc;
use weighted_gss::{Below, Interner, Link, Node};

/// A parser stack, or several: LR states with the Parser DWA's memo.
pub(crate) type Stack = Link<u32, Memo>;
/// The tops of a branch: nearly always one.
pub(crate) type Tops = weighted_gss::Tops<u32, Memo>;
/// The stacks that all matchers of a grammar share.
pub(crate) type Stacks = Interner<u32, Memo>;

/// The stacks of a grammar before anything is read. Those that matchers come to are kept, about 150 bytes each, so that
/// they and what they remember cost nothing when they are met again. Deeper ones than that are memories of their own
/// kind ([`Memo::DEEP`]), and few meet them again.
pub(crate) fn stacks() -> Stacks {
    Stacks::new(0, 1 << 16, Memo::DEEP)
}

/// Marks steps of [`Stacks`] that emit a set; the others shift a terminal.
pub(crate) const EMIT: u32 = 1 << 31;

/// States pushed above an existing node, not yet nodes themselves.
pub(crate) type Local = SmallVec<[u32; 16]>;

/// Reductions one after the other, for each level of the stack, before the general route is taken.
const MOST_REDUCTIONS: u64 = 256;

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
    /// A conflict or a forked stack was met, or very many reductions: take the general route.
    Forks,
}

/// The LR tables, with lookups.
#[derive(Clone, Copy)]
pub(crate) struct Lr<'t> {
    pub tables: &'t Tables,
    pub meta: &'t Meta,
    pub stacks: &'t Stacks,
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
        self.shift_linear_to(top, terminal, &mut 0)
    }

    /// As [`shift_linear`](Self::shift_linear); `reached` is set to the depth that the reductions went down to.
    pub(crate) fn shift_linear_to<'a>(self, top: &'a Stack, terminal: u32, reached: &mut u32) -> Linear<'a> {
        let mut base = top;
        let mut local = Local::new();
        // Nullable symbols can take exponentially many reductions one by one, and tables made by hand endlessly many. The
        // general route makes each once.
        let most = (u64::from(top.depth()) + 2) * MOST_REDUCTIONS;
        for _ in 0..most {
            *reached = base.depth();
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
                        match (base.only(), base.below()) {
                            (Some(below), _) => base = below,
                            (None, Below::Pushed([])) => return Linear::Refused,
                            (None, _) => return Linear::Forks,
                        }
                    }
                    let state = local.last().copied().unwrap_or_else(|| base.symbol());
                    match self.goto(state, lhs) {
                        Some(to) if local.len() <= self.tables.lr_class.len() => local.push(to),
                        Some(_) => return Linear::Forks,
                        None => return Linear::Refused,
                    }
                }
            }
        }
        Linear::Forks
    }

    /// The stacks after shifting `terminal` from `tops`; empty if it cannot be shifted.
    pub(crate) fn shift(self, tops: &[Stack], terminal: u32) -> Tops {
        if let [top] = tops {
            match self.shift_linear(top, terminal) {
                Linear::Refused | Linear::Accepted => return Tops::new(),
                Linear::Shifted(base, local) => {
                    return Tops::from_iter([self.stacks.push(base, &local)]);
                }
                Linear::Forks => {}
            }
        }
        self.stacks.step(tops, terminal, || {
            let mut forks = Forks::new(self, tops, terminal);
            forks.run(false);
            if forks.shifts { forks.shift() } else { Tops::new() }
        })
    }

    /// Whether some stack of `tops` can shift `terminal` (the end of input: accepts).
    pub(crate) fn can_shift(self, tops: &[Stack], terminal: u32) -> bool {
        let forks = || {
            let mut forks = Forks::new(self, tops, terminal);
            forks.run(true);
            forks.shifts
        };
        let [top] = tops else { return forks() };
        let key = Memo::can_shift(terminal);
        let known = || top.memo().get(key).map(|known| known[0] == 1);
        let deep = top.depth() > Memo::DEEP;
        if deep && let Some(can) = known() {
            return can;
        }
        let mut reached = 0;
        let step = self.shift_linear_to(top, terminal, &mut reached);
        let forked = matches!(step, Linear::Forks);
        if forked && let Some(can) = known() {
            return can;
        }
        let can = match step {
            Linear::Refused => false,
            Linear::Shifted(..) | Linear::Accepted => true,
            Linear::Forks => forks(),
        };
        if forked || (deep && reached + Memo::DEEP < top.depth()) {
            top.memo().insert(key, &[u64::from(can)]);
        }
        can
    }
}

/// What lies below a draft: a node that was there before, or another draft.
#[derive(Clone, Copy)]
enum Under<'s> {
    Old(&'s Stack),
    New(usize),
}

/// The rest of a reduction: pop so many more symbols, then go to this nonterminal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Rest {
    pops: u32,
    lhs: u32,
}

/// A node that is being made.
struct Draft<'s> {
    state: u32,
    below: SmallVec<[Under<'s>; 4]>,
    /// The existing node this one equals, while nothing was added to it.
    origin: Option<&'s Stack>,
    /// Reductions that start or pass here and pop further: every edge takes part in them, also one that comes later.
    rests: SmallVec<[Rest; 4]>,
}

/// The general step: every reduction under one lookahead, on all stacks at once.
///
/// One node per LR state is drafted. What a reduction still has to pop is carried down edge by edge, and a node is visited
/// once for each [`Rest`], however many paths lead there and whatever they started from: so an edge is passed at most
/// once per `Rest` and step. A union is put below a draft as a whole. Its members are settled with it, so the links of a
/// node stay few where every node may lie on all before it, and a step is linear in the nodes there are.
struct Forks<'t, 's> {
    lr: Lr<'t>,
    terminal: u32,
    drafts: Vec<Draft<'s>>,
    seen: Seen,
    /// Still to visit.
    work: Vec<(Under<'s>, Rest)>,
    /// Some draft can shift the terminal.
    shifts: bool,
}

impl<'t, 's> Forks<'t, 's> {
    fn new(lr: Lr<'t>, tops: &'s [Stack], terminal: u32) -> Self {
        let mut forks =
            Forks { lr, terminal, drafts: Vec::new(), seen: Seen::default(), work: Vec::new(), shifts: false };
        for top in tops {
            let i = match forks.drafts.iter().position(|draft| draft.state == top.symbol()) {
                None => forks.draft(top.symbol(), Some(top)),
                Some(i) => {
                    forks.drafts[i].origin = None;
                    i
                }
            };
            if let Below::Pushed(preds) = top.below() {
                for below in preds {
                    forks.connect(i, Under::Old(below));
                }
            }
        }
        forks
    }

    /// Carry out the reductions, or only until a draft is found that can shift the terminal.
    fn run(&mut self, until_shift: bool) {
        let mut next = 0;
        while next < self.work.len() && !(until_shift && self.shifts) {
            let (node, rest) = self.work[next];
            next += 1;
            self.visit(node, rest);
        }
    }

    fn visit(&mut self, node: Under<'s>, rest: Rest) {
        if !self.seen.insert(node, rest) {
            return;
        }
        if rest.pops == 0 {
            let state = match node {
                Under::Old(link) => link.symbol(),
                Under::New(i) => self.drafts[i].state,
            };
            if let Some(to) = self.lr.goto(state, rest.lhs) {
                let i = self.drafts.iter().position(|draft| draft.state == to);
                let i = i.unwrap_or_else(|| self.draft(to, None));
                self.drafts[i].origin = None;
                self.connect(i, node);
            }
            self.settle(node, rest);
            return;
        }
        let deeper = Rest { pops: rest.pops - 1, ..rest };
        match node {
            Under::Old(link) => {
                let (links, rest) = match link.below() {
                    Below::Pushed(preds) => (preds, deeper),
                    Below::Union(members) => (members, rest),
                };
                self.work.extend(links.iter().map(|below| (Under::Old(below), rest)));
            }
            Under::New(i) => {
                self.drafts[i].rests.push(deeper);
                self.work.extend(self.drafts[i].below.iter().map(|&below| (below, deeper)));
            }
        }
    }

    /// What is done for a union is done for its members.
    fn settle(&mut self, node: Under<'s>, rest: Rest) {
        let Under::Old(link) = node else { return };
        let mut settled: SmallVec<[&Stack; 8]> = SmallVec::from_iter([link]);
        while let Some(link) = settled.pop() {
            if let Below::Union(members) = link.below() {
                settled.extend(members.iter().filter(|member| self.seen.insert(Under::Old(member), rest)));
            }
        }
    }

    /// Draft a node of `state` with nothing below it yet.
    fn draft(&mut self, state: u32, origin: Option<&'s Stack>) -> usize {
        let i = self.drafts.len();
        self.shifts |= self.lr.shift_target(state, self.terminal).is_some();
        self.drafts.push(Draft { state, below: SmallVec::new(), origin, rests: SmallVec::new() });
        for production in self.lr.reductions(state, self.terminal) {
            let (lhs, len) = self.lr.production(production);
            self.work.push((Under::New(i), Rest { pops: len as u32, lhs }));
        }
        i
    }

    /// Put `below` under draft `i`.
    fn connect(&mut self, i: usize, below: Under<'s>) {
        let draft = &mut self.drafts[i];
        draft.below.push(below);
        self.work.extend(draft.rests.iter().map(|&rest| (below, rest)));
    }

    /// The stacks after shifting the terminal; call [`run`](Self::run) before.
    fn shift(self) -> Tops {
        let mut made: Vec<Option<Stack>> = vec![None; self.drafts.len()];
        let mut tops: Vec<(u32, Vec<Stack>)> = Vec::new();
        for (i, draft) in self.drafts.iter().enumerate() {
            let Some(to) = self.lr.shift_target(draft.state, self.terminal) else { continue };
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

    /// Turn draft `root`, and the drafts below it, into nodes, those below first. Compiled tables draft no cycles, as hidden
    /// left recursion was removed; an edge that closes one, in tables made by hand, is left out.
    fn make(&self, root: usize, made: &mut [Option<Stack>]) -> Stack {
        let mut entered = vec![false; self.drafts.len()];
        let mut pending = vec![(root, false)];
        while let Some((i, below_is_made)) = pending.pop() {
            if made[i].is_some() {
                continue;
            }
            let draft = &self.drafts[i];
            if let Some(origin) = draft.origin {
                made[i] = Some(Arc::clone(origin));
            } else if below_is_made {
                let links = draft.below.iter().filter_map(|edge| match edge {
                    Under::Old(link) => Some(Arc::clone(link)),
                    Under::New(j) => made[*j].clone(),
                });
                let links: Vec<Stack> = links.collect();
                let node =
                    if links.is_empty() { Node::bottom(draft.state) } else { Node::push_all(links, draft.state) };
                made[i] = Some(node);
            } else if !std::mem::replace(&mut entered[i], true) {
                pending.push((i, true));
                pending.extend(draft.below.iter().filter_map(|edge| match edge {
                    Under::New(j) if !entered[*j] => Some((*j, false)),
                    _ => None,
                }));
            }
        }
        made[root].clone().unwrap_or_else(|| Node::bottom(self.drafts[root].state))
    }
}

/// Visited pairs: a list while they are few.
#[derive(Default)]
struct Seen {
    few: SmallVec<[(usize, Rest); Seen::FEW]>,
    many: FxHashSet<(usize, Rest)>,
}

impl Seen {
    const FEW: usize = 16;

    /// False if it was there.
    fn insert(&mut self, node: Under, rest: Rest) -> bool {
        // Nodes are aligned, so a draft's odd number is no address.
        let at = match node {
            Under::Old(link) => Arc::as_ptr(link) as usize,
            Under::New(i) => 2 * i + 1,
        };
        let key = (at, rest);
        if !self.many.is_empty() {
            return self.many.insert(key);
        }
        if self.few.contains(&key) {
            return false;
        }
        if self.few.len() < Self::FEW {
            self.few.push(key);
        } else {
            self.many.extend(self.few.drain(..));
            self.many.insert(key);
        }
        true
    }
}
