//! Token sets as bitmask words.

use crate::lexer::Symbols;
use crate::vocab::Trie;
use dwa_runtime::supply::TokenSet;
use std::sync::Arc;

/// A set that touches more bitmask words than this gets a dense row: there, both forms take about the same time.
const DENSE_WORDS: usize = 2000;

/// Collects tokens in a bitmask row.
#[derive(Debug)]
pub(crate) struct Collector {
    /// A bitmask row, all zero between uses.
    row: Vec<u32>,
    /// Words of it that are not zero.
    touched: Vec<u16>,
    /// What stands for the token indices behind those of the vocabulary.
    symbols: Arc<Symbols>,
}

impl Collector {
    /// For rows of so many words.
    pub fn new(words: usize, symbols: &Arc<Symbols>) -> Self {
        Collector { row: vec![0; words], touched: Vec::new(), symbols: Arc::clone(symbols) }
    }

    /// Add all ids of these tokens.
    pub fn add(&mut self, trie: &Trie, intervals: impl Iterator<Item = (u32, u32)>) {
        let tokens = trie.token_count();
        for (lo, hi) in intervals {
            if lo as usize >= tokens {
                (lo as usize..hi as usize).for_each(|token| self.add_symbol(token - tokens));
                continue;
            }
            let ids = trie.id_start[lo as usize] as usize..trie.id_start[hi as usize] as usize;
            for &id in &trie.ids[ids] {
                self.add_bits((id / 32) as u16, 1 << (id % 32));
            }
        }
    }

    fn add_symbol(&mut self, symbol: usize) {
        let symbols = Arc::clone(&self.symbols);
        for id in symbols.ids[symbol].iter().flat_map(|&(lo, hi)| lo..hi) {
            self.add_bits((id / 32) as u16, 1 << (id % 32));
        }
    }

    /// Add bits to a word.
    pub fn add_bits(&mut self, word: u16, bits: u32) {
        let sum = &mut self.row[word as usize];
        if *sum == 0 {
            self.touched.push(word);
        }
        *sum |= bits;
    }

    /// What was collected, in the form that takes less time to read; nothing is collected afterwards.
    pub fn take(&mut self) -> TokenSet {
        if self.touched.len() > DENSE_WORDS {
            self.touched.clear();
            let zero = vec![0; self.row.len()];
            return TokenSet::Dense(std::mem::replace(&mut self.row, zero).into());
        }
        let (words, bits) = self.take_sparse();
        TokenSet::Sparse(words, bits)
    }

    /// The words that are not zero, ascending, and their bits; nothing is collected afterwards.
    pub fn take_sparse(&mut self) -> (Box<[u16]>, Box<[u32]>) {
        self.touched.sort_unstable();
        let bits = self.touched.iter().map(|&w| std::mem::take(&mut self.row[w as usize])).collect();
        (self.touched.drain(..).collect(), bits)
    }
}
