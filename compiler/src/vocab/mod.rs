//! The vocabulary as the compiler sees it.

mod trie;

pub use trie::{ByteSet, Trie};
