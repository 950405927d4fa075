//! The stack graph: nodes, push, predecessors, merge.

use std::sync::Arc;

/// The top of a set of stacks.
pub type Link<S, M> = Arc<Node<S, M>>;

/// How deep [`merge`] follows predecessors that carry the same symbol. Below it such predecessors stay apart, which is
/// still exact.
pub const MERGE_DEPTH: u32 = 64;

#[derive(Debug)]
enum Preds<S, M> {
    Bottom,
    One(Link<S, M>),
    Many(Box<[Link<S, M>]>),
}

/// A stack symbol with everything that can lie below it.
#[derive(Debug)]
pub struct Node<S, M> {
    symbol: S,
    depth: u32,
    preds: Preds<S, M>,
    memo: M,
}

impl<S: Copy + Ord, M: Default> Node<S, M> {
    /// The bottom of a stack.
    pub fn bottom(symbol: S) -> Link<S, M> {
        Arc::new(Node { symbol, depth: 0, preds: Preds::Bottom, memo: M::default() })
    }

    /// `symbol` pushed on every stack of `below`.
    pub fn push(below: Link<S, M>, symbol: S) -> Link<S, M> {
        let depth = below.depth + 1;
        Arc::new(Node { symbol, depth, preds: Preds::One(below), memo: M::default() })
    }

    /// `symbol` pushed on every stack of every link of `below`, which must not be empty.
    pub fn push_all(mut below: Vec<Link<S, M>>, symbol: S) -> Link<S, M> {
        assert!(!below.is_empty(), "a node needs a predecessor");
        if below.len() == 1 {
            return Self::push(below.swap_remove(0), symbol);
        }
        let depth = below.iter().map(|p| p.depth).max().unwrap_or(0) + 1;
        Arc::new(Node { symbol, depth, preds: Preds::Many(below.into_boxed_slice()), memo: M::default() })
    }

    /// The symbol on top.
    #[inline]
    pub fn symbol(&self) -> S {
        self.symbol
    }

    /// Length of the longest stack below this node.
    #[inline]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// What lies directly below; empty at the bottom.
    #[inline]
    pub fn preds(&self) -> &[Link<S, M>] {
        match &self.preds {
            Preds::Bottom => &[],
            Preds::One(p) => std::slice::from_ref(p),
            Preds::Many(ps) => ps,
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
            Preds::Many(ps) => pending.extend(ps.into_vec()),
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
/// Cost: linear in the part the tops do not share, down to [`MERGE_DEPTH`].
pub fn merge<S: Copy + Ord, M: Default>(tops: &mut Vec<Link<S, M>>) {
    merge_to_depth(tops, MERGE_DEPTH);
}

fn merge_to_depth<S: Copy + Ord, M: Default>(tops: &mut Vec<Link<S, M>>, depth: u32) {
    if tops.len() < 2 {
        return;
    }
    tops.sort_by(|a, b| a.symbol.cmp(&b.symbol).then(Arc::as_ptr(a).cmp(&Arc::as_ptr(b))));
    tops.dedup_by(|a, b| Arc::ptr_eq(a, b));
    if depth == 0 || tops.windows(2).all(|w| w[0].symbol != w[1].symbol) {
        return;
    }
    let mut merged: Vec<Link<S, M>> = Vec::with_capacity(tops.len());
    let mut run: Vec<Link<S, M>> = Vec::new();
    let flush = |run: &mut Vec<Link<S, M>>, merged: &mut Vec<Link<S, M>>| {
        if run.len() < 2 {
            merged.append(run);
            return;
        }
        let symbol = run[0].symbol;
        // A bottom has nothing below it and a stack of one symbol equals no longer one: keep it as it is.
        let (bottoms, mut rest): (Vec<_>, Vec<_>) = run.drain(..).partition(|n| n.preds().is_empty());
        merged.extend(bottoms.into_iter().take(1));
        if rest.len() < 2 {
            merged.append(&mut rest);
        } else {
            let mut below: Vec<Link<S, M>> = rest.iter().flat_map(|n| n.preds().iter().cloned()).collect();
            merge_to_depth(&mut below, depth - 1);
            // Often one of the nodes already stands for all of them.
            let whole = rest.into_iter().find(|n| {
                n.preds().len() == below.len() && below.iter().all(|b| n.preds().iter().any(|p| Arc::ptr_eq(p, b)))
            });
            merged.push(whole.unwrap_or_else(|| Node::push_all(below, symbol)));
        }
    };
    for link in tops.drain(..) {
        if run.last().is_some_and(|last| last.symbol != link.symbol) {
            flush(&mut run, &mut merged);
        }
        run.push(link);
    }
    flush(&mut run, &mut merged);
    *tops = merged;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    type L = Link<u8, ()>;

    fn stacks(tops: &[L]) -> BTreeSet<Vec<u8>> {
        fn walk(node: &L, above: &mut Vec<u8>, out: &mut BTreeSet<Vec<u8>>) {
            above.push(node.symbol());
            if node.preds().is_empty() {
                out.insert(above.clone());
            }
            for p in node.preds() {
                walk(p, above, out);
            }
            above.pop();
        }
        let mut out = BTreeSet::new();
        for top in tops {
            walk(top, &mut Vec::new(), &mut out);
        }
        out
    }

    proptest! {
        /// The graph stands for exactly the set of stacks that an explicit list of stacks would hold.
        #[test]
        fn merge_keeps_the_set_of_stacks(ops in prop::collection::vec((0u8..4, 0u8..3, any::<u8>()), 1..60)) {
            let mut tops: Vec<L> = vec![Node::bottom(0)];
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
                    2 => {
                        let below: Vec<L> = tops.iter().flat_map(|t| t.preds().to_vec()).collect();
                        if !below.is_empty() {
                            tops = below;
                            model = model.into_iter().filter(|s| s.len() > 1).map(|s| s[1..].to_vec()).collect();
                        }
                    }
                    _ => {
                        let i = pick as usize % tops.len();
                        let again = Node::push_all(tops.clone(), symbol);
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
            }
        }
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
