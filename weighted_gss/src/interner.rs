//! Stacks that many share.

use crate::{Link, Node, Tops};
use papaya::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::hash::Hash;
use std::sync::Arc;

/// Keeps stacks, and finds them again: a symbol pushed on a kept stack is the same node each time, with the memo it has by
/// then, and so is what a step makes of kept tops. Shared by any number of threads; looking up takes no lock.
///
/// It only grows. Past its limit, and deeper than its depth, nodes are made as if there were none.
pub struct Interner<S, M> {
    bottom: Link<S, M>,
    /// By the address of what it is pushed on, and the symbol. What is kept is never freed, so an address means one node.
    pushed: HashMap<(usize, S), Link<S, M>, FxBuildHasher>,
    /// By the addresses of tops, and the step.
    steps: HashMap<Step, Tops<S, M>, FxBuildHasher>,
    limit: usize,
    depth: u32,
}

#[derive(PartialEq, Eq, Hash)]
struct Step {
    tops: SmallVec<[usize; 4]>,
    step: u32,
}

/// Straight stacks that are kept for every other step that is.
const PUSHED_PER_STEP: usize = 16;

impl<S, M> std::fmt::Debug for Interner<S, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interner").field("limit", &self.limit).field("depth", &self.depth).finish_non_exhaustive()
    }
}

impl<S: Copy + Ord + Hash, M: Default> Interner<S, M> {
    /// For stacks on the bottom `symbol`, `limit` of them, that are at most `depth` high.
    pub fn new(symbol: S, limit: usize, depth: u32) -> Self {
        let (pushed, steps) = (HashMap::with_hasher(FxBuildHasher), HashMap::with_hasher(FxBuildHasher));
        let bottom = Node::bottom(symbol);
        bottom.mark_kept();
        Interner { bottom, pushed, steps, limit, depth }
    }

    /// The bottom.
    pub fn bottom(&self) -> &Link<S, M> {
        &self.bottom
    }

    /// `symbols` pushed on the stacks of `below`, one on the other.
    pub fn push(&self, below: &Link<S, M>, symbols: &[S]) -> Link<S, M> {
        let pushed = self.pushed.pin();
        let mut top = below;
        for (i, &symbol) in symbols.iter().enumerate() {
            let key = (Arc::as_ptr(top) as usize, symbol);
            let found = if top.is_kept() { pushed.get(&key) } else { None };
            top = match found {
                Some(found) => found,
                None if self.keeps(top) && pushed.len() < self.limit => {
                    let kept = pushed.get_or_insert_with(key, || Node::push(Arc::clone(top), symbol));
                    kept.mark_kept();
                    kept
                }
                None => return symbols[i..].iter().fold(Arc::clone(top), |top, &symbol| Node::push(top, symbol)),
            };
        }
        Arc::clone(top)
    }

    /// What step `step` makes of `tops`; `make` works it out if that is not known.
    pub fn step(&self, tops: &[Link<S, M>], step: u32, make: impl FnOnce() -> Tops<S, M>) -> Tops<S, M> {
        if !tops.iter().all(|top| self.keeps(top)) {
            return make();
        }
        let key = Step { tops: tops.iter().map(|top| Arc::as_ptr(top) as usize).collect(), step };
        let steps = self.steps.pin();
        if let Some(found) = steps.get(&key) {
            return found.clone();
        }
        let made = make();
        if steps.len() >= self.limit / PUSHED_PER_STEP {
            return made;
        }
        let kept = steps.get_or_insert(key, made);
        kept.iter().for_each(|top| top.mark_kept());
        kept.clone()
    }

    /// Whether what is made of this top is kept.
    fn keeps(&self, top: &Link<S, M>) -> bool {
        top.is_kept() && top.depth() < self.depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(mut top: &Link<u8, ()>) -> Vec<u8> {
        let mut symbols = vec![top.symbol()];
        while let Some(below) = top.only() {
            top = below;
            symbols.push(top.symbol());
        }
        symbols
    }

    #[test]
    fn finds_what_was_pushed_and_nothing_else() {
        let stacks: Interner<u8, ()> = Interner::new(0, 4, 3);
        let push = |text: &[u8]| stacks.push(stacks.bottom(), text);
        let (a, b) = (push(&[1, 2]), push(&[1, 2]));
        assert!(Arc::ptr_eq(&a, &b));
        let c = push(&[1, 3]);
        assert!(Arc::ptr_eq(a.only().unwrap(), c.only().unwrap()));
        assert_eq!((symbols(&a), symbols(&c)), (vec![2, 1, 0], vec![3, 1, 0]));
        // Too deep: not kept, and right all the same.
        let (d, e) = (push(&[1, 2, 1, 4, 5]), push(&[1, 2, 1, 4, 5]));
        assert!(!Arc::ptr_eq(&d, &e));
        assert_eq!((symbols(&d), symbols(&e)), (vec![5, 4, 1, 2, 1, 0], vec![5, 4, 1, 2, 1, 0]));
        // The limit is reached: what is kept is found, what is new is made.
        assert!(Arc::ptr_eq(&push(&[1, 2]), &a));
        assert!(!Arc::ptr_eq(&push(&[7]), &push(&[7])));
        assert_eq!(symbols(&push(&[7, 1])), vec![1, 7, 0]);
    }

    #[test]
    fn finds_what_steps_made() {
        let stacks: Interner<u8, ()> = Interner::new(0, 64, 9);
        let below = [stacks.push(stacks.bottom(), &[1]), stacks.push(stacks.bottom(), &[2, 3])];
        let fork = || stacks.step(&below, 7, || Tops::from_iter([Node::push_all(below.to_vec(), 4)]));
        let (a, b) = (fork(), fork());
        assert!(Arc::ptr_eq(&a[0], &b[0]));
        // What is pushed on it is kept, too.
        assert!(Arc::ptr_eq(&stacks.push(&a[0], &[5]), &stacks.push(&b[0], &[5])));
        let other = stacks.step(&below, 8, Tops::new);
        assert!(other.is_empty() && stacks.step(&below[..1], 7, Tops::new).is_empty());
        // What is not kept is made each time.
        let own = [Node::push(Arc::clone(&below[0]), 1)];
        let make = || Tops::from_iter([Node::push(Arc::clone(&own[0]), 1)]);
        assert!(!Arc::ptr_eq(&stacks.step(&own, 7, make)[0], &stacks.step(&own, 7, make)[0]));
    }

    #[test]
    fn threads_agree() {
        let stacks: Interner<u32, ()> = Interner::new(0, 1000, 100);
        let tops: Vec<Vec<Link<u32, ()>>> = std::thread::scope(|scope| {
            let walk = || {
                let mut top = Arc::clone(stacks.bottom());
                let push = |i| {
                    top = stacks.push(&top, &[i]);
                    Arc::clone(&top)
                };
                (0..100).map(push).collect()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(walk)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for other in &tops[1..] {
            assert!(tops[0].iter().zip(other).all(|(a, b)| Arc::ptr_eq(a, b)));
        }
    }
}
