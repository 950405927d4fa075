//! Words beside patterns: keywords, keys, the names of a catalog.
//!
//! Most terminals of a large lexer are texts, or lists of them. Subset construction and refinement would find out, state by
//! state, that these are a trie beside an automaton of a few patterns. Here they are one from the beginning: [`Words`] takes
//! what is a line of byte sets out of the expressions, the patterns that are left are made into a minimal automaton G as
//! usual, and [`Words::join`] makes the product of G and the trie of the words. A state of it is a pair (state of G, node);
//! where the words end it is a state of G alone. So the product has no cycles but those of G, and comparing rows once, last
//! states first, makes it minimal: the same automaton that the long way leads to.
//!
//! Trie nodes branch by classes of bytes that no word tells apart. A word in which some byte set is a union of several
//! classes is left among the patterns; so are all words of a lexer that counts (`counters`).

use std::hash::Hasher;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::classes::{ByteClasses, classes_of};
use super::counters::Moves;
use super::determinize::{Dfa, Overflow};
use super::minimize::{merge_classes, renumber};
use super::terminals::Part;
use super::{DEAD, LexerLimits};
use crate::bits;
use crate::grammar::ir::{Expr, MAX_EXPR_DEPTH, TerminalId};
use crate::vocab::ByteSet;

/// The words of a grammar.
#[derive(Debug)]
pub(super) struct Words<'a> {
    sets: Vec<ByteSet>,
    set_ids: FxHashMap<ByteSet, u32>,
    /// Number of the set of each byte alone, and of it in either case, or [`DEAD`] where it has none yet.
    of_byte: Vec<u32>,
    /// Byte sets of all words, by number.
    places: Vec<u32>,
    words: Vec<(Range<usize>, Part<'a>)>,
}

impl<'a> Words<'a> {
    pub(super) fn new() -> Self {
        let (sets, set_ids) = (Vec::new(), FxHashMap::default());
        Words { sets, set_ids, of_byte: vec![DEAD; 512], places: Vec::new(), words: Vec::new() }
    }

    /// Take the words out of an expression, and return which these are; the alternatives that are none are appended to `rest`.
    pub(super) fn take(&mut self, expr: &'a Expr, rest: &mut Vec<Part<'a>>) -> Range<usize> {
        let from = self.words.len();
        self.take_part(expr, 0, rest);
        from..self.words.len()
    }

    fn take_part(&mut self, expr: &'a Expr, depth: usize, rest: &mut Vec<Part<'a>>) {
        if let (Expr::Alt(parts), true) = (expr, depth < MAX_EXPR_DEPTH) {
            return parts.iter().for_each(|part| self.take_part(part, depth + 1, rest));
        }
        let from = self.places.len();
        if self.line(expr, depth) && from < self.places.len() {
            self.words.push((from..self.places.len(), Part::new(expr)));
        } else {
            self.places.truncate(from);
            rest.push(Part::new(expr));
        }
    }

    /// Append the byte sets of an expression; whether it is a line of them.
    fn line(&mut self, expr: &Expr, depth: usize) -> bool {
        match expr {
            Expr::Bytes(bytes) => bytes.iter().for_each(|&b| self.byte(b, false)),
            Expr::Fold(bytes) => bytes.iter().for_each(|&b| self.byte(b, true)),
            Expr::ByteClass(ranges) if !ranges.is_empty() => self.place(ranges),
            Expr::Class(ranges) if !ranges.is_empty() && ranges.iter().all(|r| r.1 < 0x80) => {
                let ranges: SmallVec<[(u8, u8); 4]> = ranges.iter().map(|&(lo, hi)| (lo as u8, hi as u8)).collect();
                self.place(&ranges);
            }
            Expr::Cat(parts) if depth < MAX_EXPR_DEPTH => return parts.iter().all(|part| self.line(part, depth + 1)),
            _ => return false,
        }
        true
    }

    /// The place of one byte, in either case if it is a letter and `folded`.
    fn byte(&mut self, byte: u8, folded: bool) {
        let at = usize::from(byte) * 2 + usize::from(folded);
        if self.of_byte[at] == DEAD {
            let both = if folded { [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()] } else { [byte; 2] };
            self.place(&both.map(|b| (b, b)));
            self.of_byte[at] = self.places.pop().unwrap_or(DEAD);
        }
        self.places.push(self.of_byte[at]);
    }

    fn place(&mut self, ranges: &[(u8, u8)]) {
        let mut set: ByteSet = [0; 4];
        ranges.iter().flat_map(|&(lo, hi)| lo..=hi).for_each(|b| set[usize::from(b) / 64] |= 1 << (b % 64));
        let next = self.sets.len() as u32;
        let id = *self.set_ids.entry(set).or_insert_with(|| {
            self.sets.push(set);
            next
        });
        self.places.push(id);
    }

    /// The trie of the words of some terminals, and those that are to be left among the patterns, ascending if these are: they
    /// are no lines of its classes, or too long for so many bytes in all.
    pub(super) fn trie(
        &self,
        of: impl Iterator<Item = (TerminalId, Range<usize>)>,
        most: usize,
    ) -> (Trie, Vec<(TerminalId, &Part<'a>)>) {
        let (mut fitting, mut left, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut used = vec![false; self.sets.len()];
        for (id, words) in of {
            for (places, part) in &self.words[words] {
                if bytes + places.len() > most {
                    left.push((id, part));
                    continue;
                }
                bytes += places.len();
                let places = &self.places[places.clone()];
                places.iter().for_each(|&set| used[set as usize] = true);
                fitting.push((id, places, part));
            }
        }
        let mut classes = ByteClasses::one();
        for (set, _) in self.sets.iter().zip(&used).filter(|(_, used)| **used) {
            classes.refine(2, |byte| usize::from(bits::has(set, byte.into())));
        }
        let class_of_set = |set: &ByteSet| -> Option<u8> {
            let mut classes = bits::iter(set).map(|byte| classes.of[byte as usize]);
            let first = classes.next();
            first.filter(|&first| classes.all(|class| class == first))
        };
        let class_of_set: Vec<Option<u8>> = self.sets.iter().map(class_of_set).collect();
        let mut trie = Trie { byte_class: classes.of, ..Trie::default() };
        for (id, places, part) in fitting {
            let path: Option<SmallVec<[u8; 32]>> = places.iter().map(|&set| class_of_set[set as usize]).collect();
            match path {
                Some(path) => trie.insert(&path, id),
                None => left.push((id, part)),
            }
        }
        left.sort_by_key(|(id, _)| *id);
        (trie, left)
    }
}

/// Words by their beginnings.
pub(super) struct Trie {
    byte_class: [u8; 256],
    /// The root first.
    nodes: Vec<Node>,
}

struct Node {
    /// Class of the bytes that lead here.
    class: u8,
    /// Last child, and the child of the same parent that was before this one; or [`DEAD`].
    child: u32,
    sibling: u32,
    /// What ends here.
    terminals: SmallVec<[TerminalId; 2]>,
}

impl Node {
    fn new(class: u8, sibling: u32) -> Self {
        Node { class, child: DEAD, sibling, terminals: SmallVec::new() }
    }
}

impl Default for Trie {
    fn default() -> Self {
        Trie { byte_class: [0; 256], nodes: vec![Node::new(0, DEAD)] }
    }
}

impl Trie {
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    fn insert(&mut self, path: &[u8], id: TerminalId) {
        let mut at = 0;
        for &class in path {
            let found = self.children(at).find(|&child| self.nodes[child as usize].class == class);
            at = found.unwrap_or_else(|| {
                let node = self.nodes.len() as u32;
                let sibling = std::mem::replace(&mut self.nodes[at as usize].child, node);
                self.nodes.push(Node::new(class, sibling));
                node
            });
        }
        self.nodes[at as usize].terminals.push(id);
    }

    fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let next = |child: u32| (child != DEAD).then_some(child);
        std::iter::successors(next(self.nodes[node as usize].child), move |&c| next(self.nodes[c as usize].sibling))
    }

    /// The minimal automaton of the words and of the patterns whose minimal automaton is `patterns`, which counts nothing.
    /// `candidates` unites what a state of `patterns` accepts with terminals.
    pub(super) fn join(
        &self,
        patterns: &Dfa,
        limits: &LexerLimits,
        mut candidates: impl FnMut(u32, &[TerminalId]) -> u32,
    ) -> Result<Dfa, Overflow> {
        let classes = JointClasses::new(&self.byte_class, patterns);
        let product = self.product(patterns, &classes, limits)?;
        let mut joined = Joined::new(patterns, &product, &classes);
        let mut number = vec![DEAD; product.pairs.len()];
        let mut known: FxHashMap<SmallVec<[u32; 8]>, u32> = FxHashMap::default();
        let mut key = SmallVec::new();
        for (i, &(g, node)) in product.pairs.iter().enumerate().rev() {
            let edges = &product.edges[product.edge_start[i]..product.edge_start[i + 1]];
            let cand = if g == DEAD { 0 } else { patterns.cand[g as usize] };
            let terminals = &self.nodes[node as usize].terminals;
            let cand = if terminals.is_empty() { cand } else { candidates(cand, terminals) };
            let row = edges.iter().map(|&(class, to)| (class, number[to as usize]));
            if i == 0 {
                joined.start(g, row);
                break;
            }
            key.clear();
            key.extend([g, cand]);
            row.clone().for_each(|(class, to)| key.extend([class, to]));
            number[i] = match known.get(&key) {
                Some(&state) => state,
                None => {
                    let state = joined.state(g, cand, row);
                    known.insert(key.clone(), state);
                    state
                }
            };
        }
        let dfa = Dfa {
            byte_class: classes.byte_class,
            class_count: classes.count,
            next: joined.next,
            cand: joined.cand,
            moves: Moves::default(),
        };
        // Some state of the patterns may have lost all that led to it: it must keep no classes apart.
        Ok(merge_classes(renumber(&dfa, 0)))
    }

    /// All pairs that texts lead to, as long as they begin words, breadth first.
    fn product(&self, patterns: &Dfa, classes: &JointClasses, limits: &LexerLimits) -> Result<Product, Overflow> {
        let mut product = Product { pairs: vec![(0, 0)], edges: Vec::new(), edge_start: vec![0] };
        // Nearly always, all texts that lead to a node lead to one state.
        let mut first: Vec<(u32, u32)> = vec![(DEAD, DEAD); self.nodes.len()];
        let mut others: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut done = 0;
        while let Some(&(g, node)) = product.pairs.get(done) {
            crate::control::check();
            for child in self.children(node) {
                for &(class, pattern_class) in &classes.of_word_class[usize::from(self.nodes[child as usize].class)] {
                    let to = if g == DEAD { DEAD } else { patterns.row(g as usize)[pattern_class] };
                    let next = product.pairs.len() as u32;
                    let known = match first[child as usize] {
                        (_, DEAD) => {
                            first[child as usize] = (to, next);
                            next
                        }
                        (state, pair) if state == to => pair,
                        _ => *others.entry((to, child)).or_insert(next),
                    };
                    if known == next {
                        product.pairs.push((to, child));
                    }
                    product.edges.push((class, known));
                }
            }
            if product.pairs.len() > limits.max_dfa_states {
                return Err(Overflow::States(limits.max_dfa_states));
            }
            product.edge_start.push(product.edges.len());
            done += 1;
        }
        Ok(product)
    }
}

/// Pairs of a state of the patterns (or [`DEAD`]) and a node, with the edges between them.
struct Product {
    pairs: Vec<(u32, u32)>,
    /// Class and pair, delimited by `edge_start`.
    edges: Vec<(u32, u32)>,
    edge_start: Vec<usize>,
}

/// Classes of bytes that neither words nor patterns tell apart.
struct JointClasses {
    byte_class: [u8; 256],
    count: usize,
    /// The patterns' class of each.
    pattern: Vec<usize>,
    /// For each class of the words, its classes, with the patterns' class of each.
    of_word_class: Vec<Vec<(u32, usize)>>,
}

impl JointClasses {
    fn new(words: &[u8; 256], patterns: &Dfa) -> Self {
        let joint = ByteClasses::joint([words, &patterns.byte_class].into_iter());
        let (samples, mut of_word_class) = (joint.samples(), vec![Vec::new(); 256]);
        let pattern = classes_of(&samples, &patterns.byte_class);
        for ((class, &byte), &pattern) in (0..).zip(&samples).zip(&pattern) {
            of_word_class[usize::from(words[usize::from(byte)])].push((class, pattern));
        }
        JointClasses { byte_class: joint.of, count: joint.count, pattern, of_word_class }
    }
}

/// The states of the product, no two alike: first those of the patterns, the first of which makes way for the start.
struct Joined {
    classes: usize,
    next: Vec<u32>,
    cand: Vec<u32>,
    /// First state of each hash, and the next one with the same.
    first_of: FxHashMap<u64, u32>,
    next_of: Vec<u32>,
}

impl Joined {
    fn new(patterns: &Dfa, product: &Product, classes: &JointClasses) -> Self {
        let states = patterns.state_count();
        let mut next = Vec::with_capacity((states + product.pairs.len()) * classes.count);
        for q in 0..states {
            let row = patterns.row(q);
            next.extend(classes.pattern.iter().map(|&class| row[class]));
        }
        let mut joined = Joined {
            classes: classes.count,
            next,
            cand: patterns.cand.clone(),
            first_of: FxHashMap::default(),
            next_of: vec![DEAD; states],
        };
        for q in 1..states as u32 {
            let hash = joined.hash(q);
            joined.next_of[q as usize] = joined.first_of.insert(hash, q).unwrap_or(DEAD);
        }
        joined
    }

    fn row(&self, q: u32) -> &[u32] {
        &self.next[q as usize * self.classes..][..self.classes]
    }

    fn hash(&self, q: u32) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write(bytemuck::cast_slice(self.row(q)));
        hasher.write_u32(self.cand[q as usize]);
        hasher.finish()
    }

    /// The row of a state of the patterns with some other transitions, at the end of `next`.
    fn push(&mut self, g: u32, cand: u32, edges: impl Iterator<Item = (u32, u32)>) -> u32 {
        let state = self.cand.len() as u32;
        let row = self.next.len();
        match g {
            DEAD => self.next.resize(row + self.classes, DEAD),
            _ => self.next.extend_from_within(g as usize * self.classes..(g as usize + 1) * self.classes),
        }
        self.cand.push(cand);
        edges.for_each(|(class, to)| self.next[row + class as usize] = to);
        state
    }

    /// The state with this row, new or known.
    fn state(&mut self, g: u32, cand: u32, edges: impl Iterator<Item = (u32, u32)>) -> u32 {
        let state = self.push(g, cand, edges);
        let hash = self.hash(state);
        let first = self.first_of.get(&hash).copied().unwrap_or(DEAD);
        let mut twin = first;
        while twin != DEAD {
            let same = self.cand[twin as usize] == cand && self.row(twin) == self.row(state);
            if same {
                self.cand.pop();
                self.next.truncate(state as usize * self.classes);
                return twin;
            }
            twin = self.next_of[twin as usize];
        }
        self.next_of.push(first);
        self.first_of.insert(hash, state);
        state
    }

    fn start(&mut self, g: u32, edges: impl Iterator<Item = (u32, u32)>) {
        let start = self.push(g, 0, edges) as usize;
        let row = self.next.split_off(start * self.classes);
        self.next[..self.classes].copy_from_slice(&row);
        self.cand.pop();
    }
}
