//! Persistent weighted graph-structured stacks: many stacks that share their common parts.
//!
//! A [`Link`] is the top of a set of stacks. Nodes are immutable and reference counted, so pushing, forking and rolling
//! back cost a pointer each; a stack that never forked is a plain linked list and pays nothing for the generality. An
//! [`Interner`] lets everybody share such stacks, which then cost nothing to make again.
//! Each node carries a memo cell of a type its user chooses, for results that depend on the node and all below it.
//!
//! [`Weighted`] attaches weights to stacks. What it stands for is a map from stacks to weights. Weights are kept with the
//! tops alone, so that nodes and memos are the same whatever a stack weighs.
//!
//! Invariants
//! 1. A node never changes after it was made, its memo apart.
//! 2. A node has few links for each symbol: many become a union, itself a node, which the next node that lies on all of
//!    them and more takes up as one of its links. So where ambiguity makes the sets of links grow, they are shared.
//! 3. All members of a union have one symbol, that of the union. A union is never a top.
//! 4. The graph has no cycles.

mod gss;
mod interner;
#[cfg(test)]
mod model;
mod weight;

pub use gss::{Below, Link, Node, Tops, merge};
pub use interner::Interner;
pub use weight::{Weight, Weighted};
