//! Persistent graph-structured stacks: many stacks that share their common parts.
//!
//! A [`Link`] is the top of a set of stacks. Nodes are immutable and reference counted, so pushing, forking and rolling
//! back cost a pointer each; a stack that never forked is a plain linked list and pays nothing for the generality.
//! Each node carries a memo cell of a type its user chooses, for results that depend on the node and all below it.
//!
//! Invariants
//! 1. A node never changes after it was made, its memo apart.
//! 2. The predecessors of a node have distinct symbols where [`merge`] made it (below [`MERGE_DEPTH`] levels).
//! 3. The graph has no cycles.

mod gss;

pub use gss::{Link, MERGE_DEPTH, Node, merge};
