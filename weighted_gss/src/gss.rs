//! The stack graph: nodes, push, what lies below, merge.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The top of a set of stacks.
pub type Link<S, M> = Arc<Node<S, M>>;

/// Tops of a set of stacks: nearly always one.
pub type Tops<S, M> = SmallVec<[Link<S, M>; 2]>;

/// Links of one symbol that a node keeps side by side; more of them become a union.
const SIDE_BY_SIDE: usize = 4;

/// How deep two nodes are compared. Equal ones that differ further down stay apart, which is still exact.
const COMPARED: usize = 64;

#[derive(Debug)]
enum Preds<S, M> {
    Bottom,
    One(Link<S, M>),
    Many(Box<[Link<S, M>]>),
    Union(Box<[Link<S, M>]>),
}

/// A stack symbol with everything that can lie below it, or a union of such nodes.
#[derive(Debug)]
pub struct Node<S, M> {
    symbol: S,
    depth: u32,
    /// Whether an interner keeps it.
    kept: AtomicBool,
    preds: Preds<S, M>,
    memo: M,
}

/// What a node is made of.
#[derive(Debug)]
pub enum Below<'a, S, M> {
    /// Its symbol, pushed on the stacks of these; on nothing if there are none.
    Pushed(&'a [Link<S, M>]),
    /// The stacks of all of these, which have its symbol on top.
    Union(&'a [Link<S, M>]),
}

impl<S: Copy + Ord, M: Default> Node<S, M> {
    fn new(symbol: S, depth: u32, preds: Preds<S, M>) -> Self {
        Node { symbol, depth, kept: AtomicBool::new(false), preds, memo: M::default() }
    }

    /// The bottom of a stack.
    pub fn bottom(symbol: S) -> Link<S, M> {
        Arc::new(Node::new(symbol, 0, Preds::Bottom))
    }

    /// `symbol` pushed on every stack of `below`.
    pub fn push(below: Link<S, M>, symbol: S) -> Link<S, M> {
        let depth = below.depth + 1;
        Arc::new(Node::new(symbol, depth, Preds::One(below)))
    }

    /// Whether an [`Interner`](crate::Interner) keeps this node.
    #[inline]
    pub fn is_kept(&self) -> bool {
        self.kept.load(Ordering::Relaxed)
    }

    /// Mark this node, and all below it that are not marked yet. An interner does that to what it keeps.
    pub(crate) fn mark_kept(&self) {
        let mut pending = vec![self];
        while let Some(node) = pending.pop() {
            if !node.kept.swap(true, Ordering::Relaxed) {
                let (Below::Pushed(links) | Below::Union(links)) = node.below();
                pending.extend(links.iter().map(|link| &**link));
            }
        }
    }

    /// `symbol` pushed on every stack of every link of `below`, which must not be empty.
    pub fn push_all(mut below: Vec<Link<S, M>>, symbol: S) -> Link<S, M> {
        assert!(!below.is_empty(), "a node needs a predecessor");
        pool(&mut below);
        if below.len() == 1 {
            return Self::push(below.swap_remove(0), symbol);
        }
        let depth = below.iter().map(|p| p.depth).max().unwrap_or(0) + 1;
        Arc::new(Node::new(symbol, depth, Preds::Many(below.into_boxed_slice())))
    }

    /// The symbol on top.
    #[inline]
    pub fn symbol(&self) -> S {
        self.symbol
    }

    /// Length of the longest stack below this node, or below a member.
    #[inline]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// What the symbol lies on if that is one link: all there is to know of a stack that never forked.
    #[inline]
    pub fn only(&self) -> Option<&Link<S, M>> {
        match &self.preds {
            Preds::One(p) => Some(p),
            _ => None,
        }
    }

    /// What this node is made of.
    #[inline]
    pub fn below(&self) -> Below<'_, S, M> {
        match &self.preds {
            Preds::Bottom => Below::Pushed(&[]),
            Preds::One(p) => Below::Pushed(std::slice::from_ref(p)),
            Preds::Many(ps) => Below::Pushed(ps),
            Preds::Union(members) => Below::Union(members),
        }
    }

    /// The memo cell.
    #[inline]
    pub fn memo(&self) -> &M {
        &self.memo
    }
}

impl<S, M> Drop for Node<S, M> {
    // A derived drop would recurse once per level and overflow the thread's stack on deep nesting.
    fn drop(&mut self) {
        let mut pending: Vec<Link<S, M>> = Vec::new();
        let release = |preds: Preds<S, M>, pending: &mut Vec<Link<S, M>>| match preds {
            Preds::Bottom => {}
            Preds::One(p) => pending.push(p),
            Preds::Many(ps) | Preds::Union(ps) => pending.extend(ps.into_vec()),
        };
        let mut next = match std::mem::replace(&mut self.preds, Preds::Bottom) {
            // The common case, a shared predecessor, needs no list.
            Preds::One(p) => Some(p),
            other => {
                release(other, &mut pending);
                None
            }
        };
        while let Some(link) = next.take().or_else(|| pending.pop()) {
            if let Some(mut node) = Arc::into_inner(link) {
                match std::mem::replace(&mut node.preds, Preds::Bottom) {
                    Preds::One(p) => next = Some(p),
                    other => release(other, &mut pending),
                }
            }
        }
    }
}

/// Unite tops that carry the same symbol, in place; the represented set of stacks is unchanged.
///
/// Afterwards symbols are distinct, except that a bottom stays beside a longer stack. What lies below tops of one symbol
/// is pooled and not united in turn, so one call makes at most one node per symbol, unions apart.
///
/// # Panics
/// If a top is a union: only [`Node::push_all`] makes those, for what lies below.
pub fn merge<S: Copy + Ord, M: Default>(tops: &mut Tops<S, M>) {
    if tops.len() < 2 {
        return;
    }
    sort(tops);
    tops.dedup_by(|a, b| Arc::ptr_eq(a, b));
    if tops.windows(2).all(|pair| pair[0].symbol != pair[1].symbol) {
        return;
    }
    let mut merged: Tops<S, M> = SmallVec::with_capacity(tops.len());
    for run in tops.chunk_by(|a, b| a.symbol == b.symbol) {
        // A bottom has nothing below it and a stack of one symbol equals no longer one: keep it as it is.
        let longer = run.iter().take_while(|top| top.depth > 0).count();
        let (longer, bottoms) = run.split_at(longer);
        merged.extend(bottoms.first().map(Arc::clone));
        match longer {
            [] => {}
            [first, rest @ ..] if rest.iter().all(|top| same(first, top)) => merged.push(Arc::clone(first)),
            [first, ..] => {
                let preds = |top: &Link<S, M>| match top.below() {
                    Below::Pushed(preds) => preds.to_vec(),
                    Below::Union(_) => panic!("a union is no top"),
                };
                merged.push(Node::push_all(longer.iter().flat_map(preds).collect(), first.symbol));
            }
        }
    }
    *tops = merged;
}

/// By symbol, then the deepest first: a union comes before what it might contain.
fn sort<S: Copy + Ord, M>(links: &mut [Link<S, M>]) {
    links.sort_unstable_by_key(|link| (link.symbol, Reverse(link.depth), Arc::as_ptr(link)));
}

/// Make a set of links small, the represented set of stacks unchanged: without what is there twice or in a union beside
/// it, and with a union for every symbol that many have.
fn pool<S: Copy + Ord, M: Default>(links: &mut Vec<Link<S, M>>) {
    if links.len() < 2 {
        return;
    }
    sort(links);
    links.dedup_by(|b, a| same(a, b));
    let mut pooled: Vec<Link<S, M>> = Vec::with_capacity(links.len());
    for run in links.chunk_by(|a, b| a.symbol == b.symbol) {
        if run.len() <= SIDE_BY_SIDE {
            pooled.extend_from_slice(run);
            continue;
        }
        let members = outermost(run);
        let (symbol, depth) = (run[0].symbol, run[0].depth);
        pooled.push(match &members[..] {
            [one] => Arc::clone(one),
            _ => Arc::new(Node::new(symbol, depth, Preds::Union(members.into_boxed_slice()))),
        });
    }
    *links = pooled;
}

/// Those of a sorted run that are in no union of it.
fn outermost<S: Copy + Ord, M>(run: &[Link<S, M>]) -> Vec<Link<S, M>> {
    let shallowest = run.last().map_or(0, |link| link.depth);
    let mut inside: FxHashSet<*const Node<S, M>> = FxHashSet::default();
    let mut kept = Vec::with_capacity(run.len());
    let mut unions: Vec<&Link<S, M>> = Vec::new();
    for link in run {
        if inside.contains(&Arc::as_ptr(link)) {
            continue;
        }
        kept.push(Arc::clone(link));
        unions.push(link);
        while let Some(union) = unions.pop() {
            let Preds::Union(members) = &union.preds else { continue };
            for member in members.iter().filter(|member| member.depth >= shallowest) {
                if inside.insert(Arc::as_ptr(member)) {
                    unions.push(member);
                }
            }
        }
    }
    kept
}

/// Whether two nodes are made alike, as far as they are compared.
fn same<S: Copy + Ord, M>(mut a: &Link<S, M>, mut b: &Link<S, M>) -> bool {
    for _ in 0..COMPARED {
        if Arc::ptr_eq(a, b) {
            return true;
        }
        if a.symbol != b.symbol || a.depth != b.depth {
            return false;
        }
        match (&a.preds, &b.preds) {
            (Preds::Bottom, Preds::Bottom) => return true,
            (Preds::One(below_a), Preds::One(below_b)) => (a, b) = (below_a, below_b),
            (Preds::Many(a), Preds::Many(b)) => {
                return a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b));
            }
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    type L = Link<u8, ()>;
    type T = Tops<u8, ()>;

    fn stacks(tops: &[L]) -> BTreeSet<Vec<u8>> {
        fn walk(node: &L, above: &mut Vec<u8>, out: &mut BTreeSet<Vec<u8>>) {
            above.push(node.symbol());
            let links = match node.below() {
                Below::Pushed([]) => {
                    out.insert(above.clone());
                    &[]
                }
                Below::Pushed(links) => links,
                Below::Union(members) => {
                    above.pop();
                    return members.iter().for_each(|member| walk(member, above, out));
                }
            };
            links.iter().for_each(|link| walk(link, above, out));
            above.pop();
        }
        let mut out = BTreeSet::new();
        for top in tops {
            walk(top, &mut Vec::new(), &mut out);
        }
        out
    }

    fn below(tops: &[L]) -> Vec<L> {
        let preds = |top: &L| match top.below() {
            Below::Pushed(preds) => preds.to_vec(),
            Below::Union(_) => unreachable!("a union is no top"),
        };
        // A union that comes to the top is read as its members.
        let mut found: Vec<L> = tops.iter().flat_map(preds).collect();
        let mut i = 0;
        while i < found.len() {
            if let Below::Union(members) = found[i].below() {
                let members = members.to_vec();
                found.swap_remove(i);
                found.extend(members);
            } else {
                i += 1;
            }
        }
        found
    }

    proptest! {
        /// The graph stands for exactly the set of stacks that an explicit list of stacks would hold.
        #[test]
        fn merge_keeps_the_set_of_stacks(ops in prop::collection::vec((0u8..5, 0u8..3, any::<u8>()), 1..60)) {
            let mut tops: T = SmallVec::from_iter([Node::bottom(0)]);
            let mut old: Vec<L> = tops.to_vec();
            let mut model: BTreeSet<Vec<u8>> = BTreeSet::from([vec![0]]);
            for (op, symbol, pick) in ops {
                match op {
                    // Fork: every stack goes on as itself and with one more symbol.
                    0 if model.len() < 200 => {
                        let pushed: Vec<L> = tops.iter().map(|t| Node::push(t.clone(), symbol)).collect();
                        tops.extend(pushed);
                        model.extend(model.clone().into_iter().map(|s| [vec![symbol], s].concat()));
                    }
                    1 => {
                        tops = tops.iter().map(|t| Node::push(t.clone(), symbol)).collect();
                        model = model.into_iter().map(|s| [vec![symbol], s].concat()).collect();
                    }
                    2 if model.iter().any(|s| s.len() > 1) => {
                        tops = below(&tops).into();
                        model = model.into_iter().filter(|s| s.len() > 1).map(|s| s[1..].to_vec()).collect();
                    }
                    // All tops that there ever were: many of one symbol, of which some hold others.
                    3 => {
                        let links: Vec<L> = old.iter().filter(|_| stacks(&tops).len() < 200).chain(&tops).cloned().collect();
                        model = stacks(&links).into_iter().map(|s| [vec![symbol], s].concat()).collect();
                        tops = SmallVec::from_iter([Node::push_all(links, symbol)]);
                    }
                    _ => {
                        let i = pick as usize % tops.len();
                        let again = Node::push_all(tops.to_vec(), symbol);
                        tops.push(again);
                        tops.swap_remove(i);
                        model = stacks(&tops);
                    }
                }
                merge(&mut tops);
                prop_assert_eq!(stacks(&tops), model.clone());
                let symbols: BTreeSet<u8> = tops.iter().map(|t| t.symbol()).collect();
                // A bottom may stay beside a longer stack of the same symbol.
                prop_assert!(tops.len() <= symbols.len() + 1);
                old.extend(tops.iter().cloned());
                if old.len() > 12 {
                    old.drain(..old.len() - 12);
                }
            }
        }
    }

    /// Where each node may lie on all before it, a node still has few links, and the graph few in all.
    #[test]
    fn unions_are_shared() {
        let mut top: L = Node::push(Node::bottom(0), 1);
        for n in 1..200usize {
            // Below the new node: the last one, and whatever lies below that.
            let links: Vec<L> = [top.clone()]
                .into_iter()
                .chain(match top.below() {
                    Below::Pushed(preds) => preds.to_vec(),
                    Below::Union(_) => unreachable!("a union is no top"),
                })
                .collect();
            top = Node::push_all(links, 1);
            let Below::Pushed(preds) = top.below() else { unreachable!("a union is no top") };
            assert!(preds.len() <= SIDE_BY_SIDE + 1, "{} links", preds.len());
            if n < 12 {
                assert_eq!(stacks(std::slice::from_ref(&top)).len(), n + 1);
            }
        }
        let mut seen: BTreeSet<*const Node<u8, ()>> = BTreeSet::new();
        let mut links = 0;
        let mut todo = vec![&top];
        while let Some(node) = todo.pop() {
            if seen.insert(Arc::as_ptr(node)) {
                let (Below::Pushed(more) | Below::Union(more)) = node.below();
                links += more.len();
                todo.extend(more);
            }
        }
        assert!(links < 200 * 10, "{links} links");
    }

    #[test]
    fn dropping_a_deep_stack_does_not_recurse() {
        let mut top: L = Node::bottom(0);
        for _ in 0..1_000_000 {
            top = Node::push(top, 1);
        }
        assert_eq!(top.depth(), 1_000_000);
        drop(top);
    }
}
