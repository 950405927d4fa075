//! The vocabulary as the compiler sees it.

pub mod saved;
mod trie;
pub mod utf8;

pub use trie::{ByteSet, Trie};
