//! Token sets of verdict classes, and the recipes in the form the runtime composes.

mod tokens;

pub(crate) use tokens::Collector;

use crate::bits;
use crate::lexer::{NONE, Symbols};
use crate::parallel;
use crate::parser_dwa::{NEVER, Verdicts};
use crate::terminal_dwa::{Group, Piece, Recipe, Segment, TerminalDwa};
use crate::vocab::{ByteSet, Trie};
use dwa_runtime::supply::TokenSet;
use dwa_runtime::{END_VERDICT, GROUP_ENDS, TableData};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// A dense row that differs from an earlier one in fewer words than this is stored as the difference.
const DELTA_WORDS: usize = 1500;

/// Bitmask words and the bits in them.
type Run = (Box<[u16]>, Box<[u32]>);
/// Tokens as intervals of token indices.
type Intervals = Vec<(u32, u32)>;

/// Drops that are tried, the latest first, for another to be more than.
const DROPS_TRIED: usize = 16;
/// Drops that one may be made of.
const MAX_DEPTH: usize = 32;

/// A drop that was stored: all its tokens, and how many others it is made of.
struct Drop {
    id: u32,
    depth: usize,
    all: Run,
}

/// Whether a set of tokens is part of another.
fn is_part(part: &Run, of: &Run) -> bool {
    let mut of = of.0.iter().zip(&of.1);
    let has =
        |(word, bits): (&u16, &u32)| of.find(|(w, _)| *w >= word).is_some_and(|(w, b)| w == word && bits & !b == 0);
    part.0.iter().zip(&part.1).all(has)
}

/// A set of tokens without those of a part.
fn rest(all: &Run, part: &Run) -> Run {
    let mut part = part.0.iter().zip(&part.1).peekable();
    let left = all.0.iter().zip(&all.1).filter_map(|(word, bits)| {
        let bits = bits & !part.next_if(|(w, _)| *w == word).map_or(0, |(_, bits)| *bits);
        (bits != 0).then_some((*word, bits))
    });
    let (words, bits): (Vec<u16>, Vec<u32>) = left.unzip();
    (words.into(), bits.into())
}

struct Writer<'a> {
    trie: &'a Trie,
    of_class: &'a [u32],
    verdict_words: usize,
    collector: Collector,
    dense_ids: FxHashMap<Box<[u32]>, u32>,
    dense_rows: Vec<Box<[u32]>>,
    run_ids: FxHashMap<Run, u32>,
    drop_ids: FxHashMap<Run, u32>,
    recent_drops: VecDeque<Drop>,
    byte_set_ids: FxHashMap<ByteSet, u32>,
    masks: bits::Pool,
    /// Verdicts of each partition by first byte.
    partition_verdicts: Vec<FxHashMap<u8, Vec<u64>>>,
    /// Verdicts of pieces, which most recipes share.
    piece_masks: FxHashMap<(u32, Option<ByteSet>), Vec<u64>>,
    out: &'a mut TableData,
}

/// Write sources, runs and recipes into `out`.
pub fn write(
    terminal: &TerminalDwa,
    verdicts: &Verdicts,
    (trie, symbols): (&Trie, &Arc<Symbols>),
    words: usize,
    out: &mut TableData,
) {
    out.run_start.push(0);
    out.source_start.push(0);
    out.group_start.push(0);
    out.piece_start.push(0);
    out.own_start.push(0);
    let verdict_words = bits::words(verdicts.count);
    let mut writer = Writer {
        trie,
        of_class: &verdicts.of_class,
        verdict_words,
        collector: Collector::new(words, symbols),
        dense_ids: FxHashMap::default(),
        dense_rows: Vec::new(),
        run_ids: FxHashMap::default(),
        drop_ids: FxHashMap::default(),
        recent_drops: VecDeque::new(),
        byte_set_ids: FxHashMap::default(),
        masks: bits::Pool::new(verdict_words),
        partition_verdicts: Vec::new(),
        piece_masks: FxHashMap::default(),
        out,
    };
    let of_partition = |partition: &Vec<Segment>| {
        SourceRows::new(partition, &verdicts.of_class, verdict_words, trie, Collector::new(words, symbols))
    };
    for source in parallel::map(&terminal.partitions, of_partition) {
        writer.source(source);
    }
    writer.store_dense_rows();
    for recipe in &terminal.recipes {
        writer.recipe(recipe);
    }
    writer.out.verdict_masks = writer.masks.into_words();
}

/// A partition's tokens by verdict, and its verdicts by first byte.
struct SourceRows {
    classes: Vec<(u32, Arc<TokenSet>)>,
    by_byte: FxHashMap<u8, Vec<u64>>,
}

impl SourceRows {
    fn new(
        partition: &[Segment],
        of_class: &[u32],
        verdict_words: usize,
        trie: &Trie,
        mut collector: Collector,
    ) -> Self {
        crate::control::check();
        let mut by_verdict: Vec<(u32, u32, u32)> = partition
            .iter()
            .map(|s| (of_class[s.class as usize], s.lo, s.hi))
            .filter(|&(verdict, ..)| verdict != NEVER)
            .collect();
        by_verdict.sort_unstable();
        let tokens = |class: &[(u32, u32, u32)]| {
            let intervals: Intervals = class.iter().map(|&(_, lo, hi)| (lo, hi)).collect();
            let set = trie.known.get(&intervals, || {
                collector.add(trie, intervals.iter().copied());
                collector.take()
            });
            (class[0].0, set)
        };
        let classes = by_verdict.chunk_by(|a, b| a.0 == b.0).map(tokens).collect();
        let mut by_byte: FxHashMap<u8, Vec<u64>> = FxHashMap::default();
        let mut segments = partition.iter().peekable();
        for child in trie.first_bytes() {
            let tokens = trie.tokens_of(child);
            let mut set = vec![0; verdict_words];
            while let Some(segment) = segments.peek().filter(|s| s.lo < tokens.end) {
                let verdict = of_class[segment.class as usize];
                if verdict != NEVER {
                    bits::insert(&mut set, verdict);
                }
                if segment.hi > tokens.end {
                    break;
                }
                segments.next();
            }
            by_byte.insert(trie.byte[child as usize], set);
        }
        SourceRows { classes, by_byte }
    }
}

impl Writer<'_> {
    fn source(&mut self, source: SourceRows) {
        for (verdict, tokens) in source.classes {
            let (dense, run) = match &*tokens {
                TokenSet::Dense(row) => (self.dense(row.clone()), NONE),
                TokenSet::Sparse(words, bits) => (NONE, self.run((words.clone(), bits.clone()))),
            };
            self.out.class_verdict.push(verdict);
            self.out.class_dense.push(dense);
            self.out.class_run.push(run);
        }
        self.out.source_start.push(self.out.class_verdict.len() as u32);
        self.partition_verdicts.push(source.by_byte);
    }

    fn recipe(&mut self, recipe: &Recipe) {
        crate::control::check();
        for group in &recipe.groups {
            let mut mask = vec![0; self.verdict_words];
            for piece in &group.pieces {
                self.piece_mask(piece, &mut mask);
            }
            let own = self.own(recipe, group.emit);
            for (verdict, _) in &own {
                bits::insert(&mut mask, *verdict);
            }
            if group.ends {
                bits::insert(&mut mask, END_VERDICT);
            }
            if !bits::is_empty(&mask) {
                self.group(group, &mask, own);
            }
        }
        self.out.group_start.push(self.out.group_emit.len() as u32);
        let drop = self.drop(&recipe.lost);
        self.out.recipe_drop.push(drop);
    }

    fn group(&mut self, group: &Group, mask: &[u64], own: Vec<(u32, Intervals)>) {
        self.out.group_emit.push(group.emit);
        self.out.group_flags.push(if group.ends { GROUP_ENDS } else { 0 });
        let mask = self.masks.intern(mask);
        self.out.group_mask.push(mask);
        for piece in &group.pieces {
            let bytes = piece.bytes.map_or(NONE, |set| {
                let next = self.byte_set_ids.len() as u32;
                *self.byte_set_ids.entry(set).or_insert_with(|| {
                    self.out.byte_sets.extend_from_slice(&set);
                    next
                })
            });
            self.out.piece_source.push(piece.partition);
            self.out.piece_bytes.push(bytes);
        }
        self.out.piece_start.push(self.out.piece_source.len() as u32);
        for (verdict, tokens) in own {
            self.collector.add(self.trie, tokens.into_iter());
            let run = self.collected();
            self.out.own_verdict.push(verdict);
            self.out.own_run.push(run);
        }
        self.out.own_start.push(self.out.own_verdict.len() as u32);
    }

    /// Unite `mask` with the verdicts of a piece.
    fn piece_mask(&mut self, piece: &Piece, mask: &mut [u64]) {
        let known = self.piece_masks.entry((piece.partition, piece.bytes)).or_insert_with(|| {
            let mut mask = vec![0; mask.len()];
            for (&byte, set) in &self.partition_verdicts[piece.partition as usize] {
                if piece.bytes.is_none_or(|bytes| bytes[byte as usize / 64] >> (byte % 64) & 1 == 1) {
                    bits::unite(&mut mask, set);
                }
            }
            mask
        });
        bits::unite(mask, known);
    }

    /// A recipe's own tokens in one group, by verdict.
    fn own(&self, recipe: &Recipe, emit: u32) -> Vec<(u32, Intervals)> {
        let mut own: Vec<(u32, u32, u32)> = Vec::new();
        for difference in &recipe.own {
            for &(group, class) in &difference.classes {
                let verdict = self.of_class[class as usize];
                if group == emit && verdict != NEVER {
                    own.push((verdict, difference.lo, difference.hi));
                }
            }
        }
        own.sort_unstable();
        own.chunk_by(|a, b| a.0 == b.0).map(|c| (c[0].0, c.iter().map(|&(_, lo, hi)| (lo, hi)).collect())).collect()
    }

    /// Keep a dense row.
    fn dense(&mut self, row: Box<[u32]>) -> u32 {
        let next = self.dense_rows.len() as u32;
        *self.dense_ids.entry(row).or_insert_with_key(|row| {
            self.dense_rows.push(row.clone());
            next
        })
    }

    /// Store the dense rows, those that resemble an earlier one as differences, and renumber the classes' references.
    fn store_dense_rows(&mut self) {
        let rows = std::mem::take(&mut self.dense_rows);
        // Rows stored whole come first.
        let mut whole: Vec<usize> = Vec::new();
        let mut deltas: Vec<(usize, u32, u32)> = Vec::new();
        for (i, row) in rows.iter().enumerate() {
            let differs = |j: &usize| rows[*j].iter().zip(row).filter(|(a, b)| a != b).count();
            match whole.iter().enumerate().map(|(at, j)| (differs(j), at)).min() {
                Some((count, base)) if count < DELTA_WORDS => {
                    for (w, (a, b)) in rows[whole[base]].iter().zip(row).enumerate().filter(|(_, (a, b))| a != b) {
                        self.collector.add_bits(w as u16, a ^ b);
                    }
                    let run = self.collected();
                    deltas.push((i, base as u32, run));
                }
                _ => whole.push(i),
            }
        }
        let mut number = vec![0; rows.len()];
        for (new, &i) in whole.iter().enumerate() {
            number[i] = new as u32;
            self.out.dense.extend_from_slice(&rows[i]);
        }
        for (new, &(i, base, run)) in deltas.iter().enumerate() {
            number[i] = (whole.len() + new) as u32;
            self.out.dense_base.push(base);
            self.out.dense_delta.push(run);
        }
        for class in self.out.class_dense.iter_mut().filter(|class| **class != NONE) {
            *class = number[*class as usize];
        }
    }

    /// Store the tokens that a recipe has not, as more than an earlier drop if that has most of them: the longer a lexeme
    /// of bounded length is, the more tokens are too long for what is left of it.
    fn drop(&mut self, lost: &[(u32, u32)]) -> u32 {
        if lost.is_empty() {
            return NONE;
        }
        self.collector.add(self.trie, lost.iter().copied());
        let all = self.collector.take_sparse();
        if let Some(&known) = self.drop_ids.get(&all) {
            return known;
        }
        let parts = self.recent_drops.iter().filter(|drop| drop.depth < MAX_DEPTH && is_part(&drop.all, &all));
        let part = parts.max_by_key(|drop| drop.all.0.len()).map(|part| (part.id, part.depth, rest(&all, &part.all)));
        let (more, depth, run) = match part {
            Some((more, depth, rest)) if 2 * rest.0.len() <= all.0.len() => (more, depth + 1, rest),
            _ => (NONE, 0, all.clone()),
        };
        let id = self.out.drop_run.len() as u32;
        let run = self.run(run);
        self.out.drop_run.push(run);
        self.out.drop_more.push(more);
        self.drop_ids.insert(all.clone(), id);
        self.recent_drops.truncate(DROPS_TRIED - 1);
        self.recent_drops.push_front(Drop { id, depth, all });
        id
    }

    /// Store what was collected sparse.
    fn collected(&mut self) -> u32 {
        let run = self.collector.take_sparse();
        self.run(run)
    }

    /// Store a sparse run.
    fn run(&mut self, run: Run) -> u32 {
        let next = self.run_ids.len() as u32;
        *self.run_ids.entry(run).or_insert_with_key(|(words, bits)| {
            self.out.run_word.extend_from_slice(words);
            self.out.run_bits.extend_from_slice(bits);
            self.out.run_start.push(self.out.run_word.len() as u32);
            next
        })
    }
}
