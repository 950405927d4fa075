//! The vocabulary as a byte trie in preorder.
//!
//! Tokens with equal bytes are one *token index*; indices ascend in byte order, so the tokens below a node are an interval.
//! Nodes are numbered in preorder, so a subtree is an interval too and a walk is a loop that can skip.

use super::utf8;
use crate::lexer::KnownPatterns;
use crate::terminal_dwa::Regions;
use dwa_runtime::Vocab;
use dwa_runtime::artifact::Array;
use dwa_runtime::supply::TokenSet;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Set of byte values.
pub type ByteSet = [u64; 4];

/// Sets of tokens as bitmask rows, by intervals of token indices. What is inside a string is the same in every grammar, so the
/// second one finds it here. When it has grown large it starts anew.
#[derive(Debug, Default)]
pub(crate) struct KnownSets(Mutex<FxHashMap<Intervals, Arc<TokenSet>>>);

type Intervals = Box<[(u32, u32)]>;

impl KnownSets {
    /// Sets of fewer tokens are made faster than they are found.
    const WORTHWHILE: u32 = 4096;
    const MOST: usize = 512;

    /// The set of these tokens, made by `make` if it is not known.
    pub fn get(&self, intervals: &[(u32, u32)], make: impl FnOnce() -> TokenSet) -> Arc<TokenSet> {
        if intervals.iter().map(|(lo, hi)| hi - lo).sum::<u32>() < Self::WORTHWHILE {
            return Arc::new(make());
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = known.get(intervals) {
            return Arc::clone(set);
        }
        if known.len() == Self::MOST {
            known.clear();
        }
        let set = Arc::new(make());
        known.insert(intervals.into(), Arc::clone(&set));
        set
    }
}

/// A vocabulary prepared for compiling. Build it once per vocabulary.
#[derive(Debug)]
pub struct Trie {
    /// Byte that leads to each node; node 0 is the root.
    pub byte: Array<u8>,
    /// Length of each node's text.
    pub depth: Array<u32>,
    /// First node after each node's subtree.
    pub end: Array<u32>,
    /// Length of the longest text below each node.
    pub height: Array<u32>,
    /// Tokens before each node in byte order; one entry more than there are nodes. Node `i` is a token iff the count
    /// rises from `i` to `i + 1`.
    pub token_before: Array<u32>,
    /// Bytes that occur strictly below each node.
    pub below: Array<ByteSet>,
    /// UTF-8 states (bits) from which every text below each node is a prefix of valid UTF-8.
    pub utf8_below: Array<u8>,
    /// Ids of each token index, delimited by `id_start`.
    pub ids: Array<u32>,
    /// Boundaries in `ids`.
    pub id_start: Array<u32>,
    /// Large sets of tokens that grammars asked for.
    pub(crate) known: KnownSets,
    /// What lexers have in common.
    pub(crate) patterns: KnownPatterns,
    /// Regions of lexers, with what tokens do in them.
    pub(crate) regions: Regions,
}

impl Trie {
    /// Build the trie of all ids that have bytes.
    pub fn new(vocab: &Vocab) -> Self {
        let mut order: Vec<u32> = (0..vocab.size() as u32).filter(|&id| !vocab.token(id).is_empty()).collect();
        order.sort_by(|&a, &b| vocab.token(a).cmp(vocab.token(b)).then(a.cmp(&b)));
        let (mut byte, mut depth, mut token_before) = (vec![0u8], vec![0u32], vec![0u32]);
        let (mut ids, mut id_start) = (Vec::with_capacity(order.len()), Vec::new());
        let mut last: &[u8] = &[];
        let mut tokens = 0;
        for id in order {
            let bytes = vocab.token(id);
            if bytes != last {
                let common = bytes.iter().zip(last).take_while(|(a, b)| a == b).count();
                for (at, &b) in bytes.iter().enumerate().skip(common) {
                    byte.push(b);
                    depth.push(at as u32 + 1);
                    token_before.push(tokens);
                }
                id_start.push(ids.len() as u32);
                tokens += 1;
                last = bytes;
            }
            ids.push(id);
        }
        id_start.push(ids.len() as u32);
        token_before.push(tokens);
        let nodes = byte.len();
        let (mut end, mut height) = (vec![0; nodes], vec![0; nodes]);
        let (mut below, mut utf8_below) = (vec![[0; 4]; nodes], vec![0; nodes]);
        for_each_subtree(&byte, &depth, |node, subtree| {
            (end[node], height[node]) = (subtree.end, subtree.height);
            (below[node], utf8_below[node]) = (subtree.below, subtree.utf8_below);
            true
        });
        Trie {
            byte: byte.into(),
            depth: depth.into(),
            end: end.into(),
            height: height.into(),
            token_before: token_before.into(),
            below: below.into(),
            utf8_below: utf8_below.into(),
            ids: ids.into(),
            id_start: id_start.into(),
            known: KnownSets::default(),
            patterns: KnownPatterns::default(),
            regions: Regions::default(),
        }
    }

    /// Whether this is what [`new`](Self::new) makes of `vocab`, whatever the arrays hold.
    pub fn is_of(&self, vocab: &Vocab) -> bool {
        self.has_structure_of(vocab)
            && for_each_subtree(&self.byte, &self.depth, |node, subtree| {
                (self.end[node], self.height[node]) == (subtree.end, subtree.height)
                    && (self.below[node], self.utf8_below[node]) == (subtree.below, subtree.utf8_below)
            })
    }

    /// Lengths fit, the nodes are a trie in preorder, and its tokens are those of `vocab`.
    fn has_structure_of(&self, vocab: &Vocab) -> bool {
        let nodes = self.byte.len();
        let lengths = [self.depth.len(), self.end.len(), self.height.len(), self.below.len(), self.utf8_below.len()];
        let with_bytes = (0..vocab.size() as u32).filter(|&id| !vocab.token(id).is_empty()).count();
        if nodes == 0
            || lengths.iter().any(|&length| length != nodes)
            || self.token_before.len() != nodes + 1
            || (self.byte[0], self.depth[0], self.token_before[0], self.token_before[1]) != (0, 0, 0, 0)
            || self.ids.len() != with_bytes
            || self.id_start.len() != self.token_before[nodes] as usize + 1
            || self.id_start[0] != 0
            || self.id_start[self.id_start.len() - 1] as usize != with_bytes
            || self.id_start.windows(2).any(|pair| pair[0] >= pair[1])
        {
            return false;
        }
        let mut path: Vec<u8> = Vec::new();
        for node in 1..nodes {
            let parent = (self.depth[node] as usize).wrapping_sub(1);
            // A node continues the one before it, or is a later sibling of one that is open.
            if parent > path.len() || path.get(parent).is_some_and(|&sibling| sibling >= self.byte[node]) {
                return false;
            }
            path.truncate(parent);
            path.push(self.byte[node]);
            let (token, after) = (self.token_before[node], self.token_before[node + 1]);
            let is_leaf = self.depth.get(node + 1).is_none_or(|&depth| depth as usize <= path.len());
            let fits = match after.wrapping_sub(token) {
                0 => !is_leaf,
                1 => {
                    let ids = self.ids_of(token);
                    ids.is_sorted()
                        && ids.windows(2).all(|pair| pair[0] != pair[1])
                        && ids.iter().all(|&id| (id as usize) < vocab.size() && vocab.token(id) == path)
                }
                _ => false,
            };
            if !fits {
                return false;
            }
        }
        true
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
        self.siblings_from(1)
    }

    /// A node and, each where the subtree before it ends, those that come next: first its siblings.
    pub fn siblings_from(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let is_node = |node: &u32| (*node as usize) < self.byte.len();
        std::iter::successors(Some(node).filter(is_node), move |&node| Some(self.end[node as usize]).filter(is_node))
    }

    /// Whether a state stays as it is on every text below a node: under each byte, by `stays`, which is quick to ask, or by
    /// `staying`, which has them all; or because characters beyond ASCII lead back to it.
    pub fn stays_below(
        &self,
        node: u32,
        stays: impl Fn(u8) -> bool,
        staying: impl FnOnce() -> ByteSet,
        on_characters: impl FnOnce() -> bool,
    ) -> bool {
        let below = &self.below[node as usize];
        // Most states do not, and show it under the first byte.
        let first = (0..4).find(|&i| below[i] != 0).map(|i| (i as u32 * 64 + below[i].trailing_zeros()) as u8);
        if first.is_some_and(|byte| byte < 0x80 && !stays(byte)) {
            return false;
        }
        let staying = staying();
        let leaves: ByteSet = std::array::from_fn(|i| below[i] & !staying[i]);
        leaves[0] | leaves[1] == 0
            && (leaves[2] | leaves[3] == 0
                || self.utf8_below[node as usize] >> utf8::BOUNDARY & 1 == 1 && on_characters())
    }
}

/// What is known of a node when its subtree is complete.
#[derive(Clone, Copy)]
struct Subtree {
    end: u32,
    height: u32,
    below: ByteSet,
    utf8_below: u8,
}

/// Call `found` with every node and its subtree, children first, until it says false. Returns whether it never did.
fn for_each_subtree(byte: &[u8], depth: &[u32], mut found: impl FnMut(usize, Subtree) -> bool) -> bool {
    // For each byte and set of states that are fine after it, the states that are fine before it.
    let before = |byte: u8, after: u8| -> u8 {
        let fine = |s: u8| utf8::step(s, byte).is_some_and(|to| after >> to & 1 == 1);
        (0..utf8::STATES).filter(|&s| fine(s)).fold(0, |set, s| set | 1 << s)
    };
    let all_fine: Vec<u8> = (0..=255).map(|byte| before(byte, 0xFF)).collect();
    let mut open: Vec<(usize, Subtree)> = Vec::new();
    for node in 0..=byte.len() {
        let closed_from = depth.get(node).map_or(0, |&depth| depth as usize);
        while open.len() > closed_from {
            let Some((closed, mut subtree)) = open.pop() else { break };
            subtree.end = node as u32;
            if !found(closed, subtree) {
                return false;
            }
            let Some((_, up)) = open.last_mut() else { break };
            let (byte, fine) = (byte[closed], subtree.utf8_below);
            up.height = up.height.max(subtree.height + 1);
            up.utf8_below &= if fine == 0xFF { all_fine[byte as usize] } else { before(byte, fine) };
            subtree.below[byte as usize / 64] |= 1 << (byte % 64);
            up.below.iter_mut().zip(subtree.below).for_each(|(a, b)| *a |= b);
        }
        open.push((node, Subtree { end: 0, height: 0, below: [0; 4], utf8_below: 0xFF }));
    }
    true
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
