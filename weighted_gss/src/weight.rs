//! Weights, and stacks that have them.

use crate::gss::{Below, Link, Node, Tops, merge};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::hash::Hash;
use std::sync::Arc;

/// What stacks can weigh.
///
/// Laws: `join` is associative, commutative and idempotent.
pub trait Weight: Clone + Eq {
    /// The weight of a stack that has both weights.
    fn join(&mut self, other: &Self);
}

/// No weight at all.
impl Weight for () {
    fn join(&mut self, _: &()) {}
}

/// Groups that are united through a table.
const MANY: usize = 64;

/// Tops of one weight each: a map from stacks to weights.
///
/// A stack's weight is the join of the weights whose tops it is under. Only [`joined_weight`](Self::joined_weight) works
/// that out; where stacks are pushed, popped and merged, weights are compared, and tops are united if they weigh the same.
#[derive(Debug)]
pub struct Weighted<S, M, W> {
    groups: SmallVec<[(W, Tops<S, M>); 2]>,
}

impl<S, M, W: Clone> Clone for Weighted<S, M, W> {
    #[inline]
    fn clone(&self) -> Self {
        Weighted { groups: self.groups.clone() }
    }
}

impl<S, M, W> Default for Weighted<S, M, W> {
    fn default() -> Self {
        Weighted { groups: SmallVec::new() }
    }
}

impl<S, M, W> Weighted<S, M, W> {
    /// The stacks of `tops`, all of one weight.
    #[inline]
    pub fn of(weight: W, tops: Tops<S, M>) -> Self {
        let mut stacks = Self::default();
        stacks.add(weight, tops);
        stacks
    }

    /// Add stacks, whose tops were merged. Call [`merge`](Self::merge) when the last are added.
    #[inline]
    pub fn add(&mut self, weight: W, tops: Tops<S, M>) {
        if !tops.is_empty() {
            self.groups.push((weight, tops));
        }
    }

    /// Whether there are no stacks.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Weights with their tops, in the order they were added.
    #[inline]
    pub fn groups(&self) -> &[(W, Tops<S, M>)] {
        &self.groups
    }

    /// Take all groups out.
    #[inline]
    pub fn drain(&mut self) -> impl Iterator<Item = (W, Tops<S, M>)> {
        self.groups.drain(..)
    }

    /// Every top with its weight.
    pub fn tops(&self) -> impl Iterator<Item = (&Link<S, M>, &W)> {
        self.groups.iter().flat_map(|(weight, tops)| tops.iter().map(move |top| (top, weight)))
    }

    /// Keep the tops for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&W, &Link<S, M>) -> bool) {
        self.groups.retain(|(weight, tops)| {
            tops.retain(|top| keep(weight, top));
            !tops.is_empty()
        });
    }
}

impl<S: Copy + Ord, M: Default, W: Clone + Eq + Hash> Weighted<S, M, W> {
    /// Unite groups of one weight, and the tops in them; no stack's weight changes.
    pub fn merge(&mut self) {
        match self.groups.len() {
            0 | 1 => {}
            2..=MANY => self.merge_few(),
            _ => self.merge_many(),
        }
    }

    fn merge_few(&mut self) {
        let mut i = 0;
        while i < self.groups.len() {
            let mut j = i + 1;
            while j < self.groups.len() {
                if self.groups[j].0 == self.groups[i].0 {
                    let (_, tops) = self.groups.remove(j);
                    self.groups[i].1.extend(tops);
                } else {
                    j += 1;
                }
            }
            merge(&mut self.groups[i].1);
            i += 1;
        }
    }

    /// As [`merge_few`](Self::merge_few), in time linear in the groups.
    fn merge_many(&mut self) {
        let mut place: FxHashMap<W, usize> = FxHashMap::default();
        let mut united: SmallVec<[(W, Tops<S, M>); 2]> = SmallVec::new();
        for (weight, tops) in self.groups.drain(..) {
            let i = *place.entry(weight.clone()).or_insert(united.len());
            match united.get_mut(i) {
                Some((_, all)) => all.extend(tops),
                None => united.push((weight, tops)),
            }
        }
        united.iter_mut().for_each(|(_, tops)| merge(tops));
        self.groups = united;
    }

    /// `symbol` pushed on every stack.
    pub fn push(&mut self, symbol: S) {
        for (_, tops) in &mut self.groups {
            *tops = Tops::from_iter([Node::push_all(std::mem::take(tops).into_vec(), symbol)]);
        }
    }

    /// Every stack without its top symbol. Stacks of one symbol vanish.
    pub fn pop(&self) -> Self {
        let mut popped = Self::default();
        for (weight, tops) in &self.groups {
            popped.add(weight.clone(), below(tops));
        }
        popped.merge();
        popped
    }

    /// What is below each symbol that some stack has on top.
    pub fn pop_branches(&self) -> Vec<(S, Self)> {
        let mut branches: Vec<(S, Self)> = Vec::new();
        for (top, weight) in self.tops() {
            let at = branches.iter().position(|(symbol, _)| *symbol == top.symbol()).unwrap_or_else(|| {
                branches.push((top.symbol(), Self::default()));
                branches.len() - 1
            });
            branches[at].1.add(weight.clone(), below(std::slice::from_ref(top)));
        }
        branches.iter_mut().for_each(|(_, stacks)| stacks.merge());
        branches
    }

    /// The same stacks with other weights. The map that they stand for is mapped too if `f` turns joins into joins.
    pub fn map_weights<V: Clone + Eq + Hash>(&self, mut f: impl FnMut(&W) -> V) -> Weighted<S, M, V> {
        let mut mapped = Weighted::default();
        for (weight, tops) in &self.groups {
            mapped.add(f(weight), tops.clone());
        }
        mapped.merge();
        mapped
    }
}

impl<S, M, W: Weight> Weighted<S, M, W> {
    /// The join of the weights of all stacks; `None` if there are none.
    pub fn joined_weight(&self) -> Option<W> {
        let mut weights = self.groups.iter().map(|(weight, _)| weight);
        let first = weights.next()?.clone();
        Some(weights.fold(first, |mut joined, weight| {
            joined.join(weight);
            joined
        }))
    }
}

/// The tops of what is below `tops`.
fn below<S: Copy + Ord, M: Default>(tops: &[Link<S, M>]) -> Tops<S, M> {
    let mut found = Tops::new();
    let mut entered: FxHashSet<*const Node<S, M>> = FxHashSet::default();
    for top in tops {
        let (Below::Pushed(links) | Below::Union(links)) = top.below();
        let mut pending: Vec<&Link<S, M>> = links.iter().collect();
        while let Some(link) = pending.pop() {
            match link.below() {
                // A union that comes to the top is read as its members.
                Below::Union(members) if entered.insert(Arc::as_ptr(link)) => pending.extend(members),
                Below::Union(_) => {}
                Below::Pushed(_) => found.push(Arc::clone(link)),
            }
        }
    }
    merge(&mut found);
    found
}
