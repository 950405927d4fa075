//! The vocabulary as a byte trie in preorder.
//!
//! Tokens with equal bytes are one *token index*; indices ascend in byte order, so the tokens below a node are an interval.
//! Nodes are numbered in preorder, so a subtree is an interval too and a walk is a loop that can skip.

use super::utf8;
use dwa_runtime::Vocab;

/// Set of byte values.
pub type ByteSet = [u64; 4];

/// A vocabulary prepared for compiling. Build it once per vocabulary.
#[derive(Debug)]
pub struct Trie {
    /// Byte that leads to each node; node 0 is the root.
    pub byte: Vec<u8>,
    /// Length of each node's text.
    pub depth: Vec<u32>,
    /// First node after each node's subtree.
    pub end: Vec<u32>,
    /// Length of the longest text below each node.
    pub height: Vec<u32>,
    /// Tokens before each node in byte order; one entry more than there are nodes. Node `i` is a token iff the count
    /// rises from `i` to `i + 1`.
    pub token_before: Vec<u32>,
    /// Bytes that occur strictly below each node.
    pub below: Vec<ByteSet>,
    /// UTF-8 states (bits) from which every text below each node is a prefix of valid UTF-8.
    pub utf8_below: Vec<u8>,
    /// Ids of each token index, delimited by `id_start`.
    pub ids: Vec<u32>,
    /// Boundaries in `ids`.
    pub id_start: Vec<u32>,
}

impl Trie {
    /// Build the trie of all ids that have bytes.
    pub fn new(vocab: &Vocab) -> Self {
        let mut order: Vec<u32> = (0..vocab.size() as u32).filter(|&id| !vocab.token(id).is_empty()).collect();
        order.sort_by(|&a, &b| vocab.token(a).cmp(vocab.token(b)).then(a.cmp(&b)));
        let mut trie = Trie {
            byte: vec![0],
            depth: vec![0],
            end: vec![0],
            height: Vec::new(),
            token_before: vec![0],
            below: Vec::new(),
            utf8_below: Vec::new(),
            ids: Vec::with_capacity(order.len()),
            id_start: Vec::new(),
        };
        let mut parent = vec![0u32];
        let mut path: Vec<u32> = vec![0];
        let mut last: &[u8] = &[];
        let mut tokens = 0;
        for id in order {
            let bytes = vocab.token(id);
            if bytes != last {
                let common = bytes.iter().zip(last).take_while(|(a, b)| a == b).count();
                path.truncate(common + 1);
                for (depth, &byte) in bytes.iter().enumerate().skip(common) {
                    let node = trie.byte.len() as u32;
                    parent.push(path[depth]);
                    trie.byte.push(byte);
                    trie.depth.push(depth as u32 + 1);
                    trie.token_before.push(tokens);
                    path.push(node);
                }
                trie.id_start.push(trie.ids.len() as u32);
                tokens += 1;
                last = bytes;
            }
            trie.ids.push(id);
        }
        trie.id_start.push(trie.ids.len() as u32);
        trie.token_before.push(tokens);
        let nodes = trie.byte.len();
        trie.end = (1..=nodes as u32).collect();
        trie.below = vec![[0; 4]; nodes];
        trie.height = vec![0; nodes];
        trie.utf8_below = vec![0xFF; nodes];
        // For each byte and set of states that are fine after it, the states that are fine before it.
        let before = |byte: u8, after: u8| -> u8 {
            let fine = |s: u8| utf8::step(s, byte).is_some_and(|to| after >> to & 1 == 1);
            (0..utf8::STATES).filter(|&s| fine(s)).fold(0, |set, s| set | 1 << s)
        };
        let all_fine: Vec<u8> = (0..=255).map(|byte| before(byte, 0xFF)).collect();
        for node in (1..nodes).rev() {
            let up = parent[node] as usize;
            trie.end[up] = trie.end[up].max(trie.end[node]);
            trie.height[up] = trie.height[up].max(trie.height[node] + 1);
            let fine = trie.utf8_below[node];
            let byte = trie.byte[node];
            trie.utf8_below[up] &= if fine == 0xFF { all_fine[byte as usize] } else { before(byte, fine) };
            let mut set = trie.below[node];
            set[trie.byte[node] as usize / 64] |= 1 << (trie.byte[node] % 64);
            for (a, b) in trie.below[up].iter_mut().zip(set) {
                *a |= b;
            }
        }
        trie
    }

    /// Number of distinct token texts.
    pub fn token_count(&self) -> usize {
        self.id_start.len() - 1
    }

    /// Tokens in the subtree of `node`, itself included.
    pub fn tokens_of(&self, node: u32) -> std::ops::Range<u32> {
        self.token_before[node as usize]..self.token_before[self.end[node as usize] as usize]
    }

    /// The token that ends at `node`.
    pub fn token_at(&self, node: u32) -> Option<u32> {
        let before = self.token_before[node as usize];
        (self.token_before[node as usize + 1] > before).then_some(before)
    }

    /// Ids of a token index.
    pub fn ids_of(&self, token: u32) -> &[u32] {
        &self.ids[self.id_start[token as usize] as usize..self.id_start[token as usize + 1] as usize]
    }

    /// Children of the root.
    pub fn first_bytes(&self) -> impl Iterator<Item = u32> + '_ {
        let mut node = 1u32;
        std::iter::from_fn(move || {
            ((node as usize) < self.byte.len()).then(|| {
                let child = node;
                node = self.end[child as usize];
                child
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtrees_and_tokens_are_intervals() {
        let texts: [&[u8]; 7] = [b"b", b"ab", b"", b"a", b"abc", b"ab", b"ca"];
        let trie = Trie::new(&Vocab::new(&texts, &[]).unwrap());
        assert_eq!(trie.token_count(), 5);
        let first: Vec<u8> = trie.first_bytes().map(|n| trie.byte[n as usize]).collect();
        assert_eq!(first, b"abc");
        let a = trie.first_bytes().next().unwrap();
        assert_eq!(trie.tokens_of(a), 0..3);
        assert_eq!(trie.token_at(a), Some(0));
        assert_eq!(trie.ids_of(0), [3]);
        assert_eq!(trie.ids_of(1), [1, 5]);
        assert_eq!(trie.below[a as usize][1], (1 << (b'b' - 64)) | (1 << (b'c' - 64)));
        let c = trie.first_bytes().nth(2).unwrap();
        assert_eq!(trie.token_at(c), None);
        assert_eq!(trie.tokens_of(c), 4..5);
    }
}
