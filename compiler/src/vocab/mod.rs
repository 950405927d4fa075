//! The vocabulary as the compiler sees it.

mod trie;
pub mod utf8;

pub use trie::{ByteSet, Trie};
