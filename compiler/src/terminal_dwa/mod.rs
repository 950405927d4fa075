//! The Terminal DWA: which terminal sequences each token can produce from each lexer state.
//!
//! `outcomes` names what can happen, as a trie of emitted candidate sets with what is left pending at the end; `walk` runs
//! the vocabulary trie through the watched lexer; `horizon` knows which lexer
//! states short texts cannot tell apart; `regions` remembers what tokens do inside of strings and white space; `recipes` stores each lexer state as pieces of shared partitions plus
//! the few tokens that differ.

mod horizon;
mod outcomes;
mod recipes;
mod regions;
mod walk;

pub use outcomes::{Change, Outcomes, REACHED, ROOT, SequenceNode};
pub(crate) use recipes::Builder;
pub(crate) use recipes::build;
pub use recipes::{Difference, Group, Piece, Recipe, TerminalDwa};
pub(crate) use regions::Regions;
pub use walk::{Classes, Segment};
