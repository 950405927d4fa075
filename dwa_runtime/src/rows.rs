//! Composes bitmask rows from verdicts, in two cached levels.
//!
//! Level 1, per (source, verdicts): the tokens of the source's classes that hold. Level 2, per (lexer state, verdicts of
//! its groups): the recipe's pieces united, minus its dropped tokens, plus its own. Both caches are shared by all
//! matchers of a grammar, are read without locks, and stop growing at a byte limit; past it rows are composed in place.

use crate::bitmask;
use crate::tables::{END_VERDICT, GROUP_ENDS, Meta, NONE, Tables};
use crate::vocab::Vocab;
use papaya::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

type Row = Box<[u32]>;
type Key = Box<[u64]>;

/// A byte-limited map that is only added to.
#[derive(Debug)]
struct Cache {
    rows: HashMap<Key, Row, FxBuildHasher>,
    bytes: AtomicUsize,
    limit: usize,
}

impl Cache {
    fn new(limit: usize) -> Self {
        Cache { rows: HashMap::with_hasher(FxBuildHasher), bytes: AtomicUsize::new(0), limit }
    }

    /// Call `read` with the row of `key`, composed now if it is not there yet.
    fn with<T>(&self, key: &[u64], compose: impl FnOnce() -> Row, read: impl FnOnce(&[u32]) -> T) -> T {
        let rows = self.rows.pin();
        if let Some(row) = rows.get(key) {
            return read(row);
        }
        let row = compose();
        let cost = size_of_val(key) + size_of_val(&row[..]) + 64;
        if self.bytes.load(Ordering::Relaxed) + cost > self.limit {
            return read(&row);
        }
        self.bytes.fetch_add(cost, Ordering::Relaxed);
        read(rows.get_or_insert(key.into(), row))
    }
}

/// The row caches of a compiled grammar.
#[derive(Debug)]
pub(crate) struct RowCaches {
    composed: Cache,
    level1: Cache,
    /// The vocabulary's rows of the artifact's byte sets.
    byte_rows: Vec<Arc<[u32]>>,
    unions: Vec<OnceLock<Row>>,
    /// Verdicts that occur in each source.
    source_masks: Vec<u64>,
    /// Dense rows that the artifact stores as differences.
    expanded: Vec<Row>,
}

/// Bytes each of the two caches may hold.
const CACHE_BYTES: usize = 64 << 20;

impl RowCaches {
    pub(crate) fn new(tables: &Tables, meta: &Meta, vocab: &Vocab) -> Self {
        let width = meta.verdict_words();
        let mut source_masks = vec![0; (tables.source_start.len() - 1) * width];
        for (source, mask) in source_masks.chunks_exact_mut(width).enumerate() {
            for c in tables.source_start.list(source as u32) {
                let v = tables.class_verdict.get(c);
                mask[v as usize / 64] |= 1 << (v % 64);
            }
        }
        let byte_sets = tables.byte_sets.chunks_exact(4);
        RowCaches {
            composed: Cache::new(CACHE_BYTES),
            level1: Cache::new(CACHE_BYTES),
            byte_rows: byte_sets.map(|set| vocab.first_byte_row(&[set[0], set[1], set[2], set[3]])).collect(),
            source_masks,
            expanded: expand(tables, vocab.words()),
            unions: (1..tables.source_start.len()).map(|_| OnceLock::new()).collect(),
        }
    }
}

fn expand(tables: &Tables, words: usize) -> Vec<Row> {
    let row = |(base, delta): (u32, u32)| {
        let mut row: Row = tables.dense[base as usize * words..][..words].into();
        for i in tables.run_start.list(delta) {
            row[tables.run_word[i] as usize] ^= tables.run_bits[i];
        }
        row
    };
    tables.dense_base.iter().zip(tables.dense_delta.iter()).map(row).collect()
}

/// Composes the rows of one compiled grammar.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'c> {
    pub tables: &'c Tables,
    pub meta: &'c Meta,
    pub vocab: &'c Vocab,
    pub caches: &'c RowCaches,
}

fn holds(verdicts: &[u64], v: u32) -> bool {
    verdicts[v as usize / 64] >> (v % 64) & 1 == 1
}

impl Rows<'_> {
    /// Unite into `out` the row of a lexer state. `key` is the state followed by the verdicts of its groups in order,
    /// each restricted to the group's mask.
    pub(crate) fn unite_into(self, key: &[u64], out: &mut [u32], first: bool) {
        let compose = || {
            let mut row = vec![0u32; self.meta.vocab_words as usize].into_boxed_slice();
            self.compose(key, &mut row);
            row
        };
        self.caches.composed.with(
            key,
            compose,
            |row| if first { out.copy_from_slice(row) } else { bitmask::or(out, row) },
        );
    }

    fn compose(self, key: &[u64], row: &mut [u32]) {
        let t = self.tables;
        let words = self.meta.verdict_words();
        let state = key[0] as u32;
        let groups = t.group_start.list(state);
        let verdicts = |g: usize| &key[1 + (g - groups.start) * words..][..words];
        for g in groups.clone() {
            for p in t.piece_start.list(g as u32) {
                self.piece(t.piece_source.get(p), t.piece_bytes.get(p), verdicts(g), row);
            }
        }
        if t.recipe_drop.get(state as usize) != NONE {
            let run = t.run_start.list(t.recipe_drop.get(state as usize));
            bitmask::clear_sparse(row, &t.run_word[run.clone()], &t.run_bits[run]);
        }
        let mut complete = false;
        for g in groups.clone() {
            for i in t.own_start.list(g as u32) {
                if holds(verdicts(g), t.own_verdict.get(i)) {
                    let run = t.run_start.list(t.own_run.get(i));
                    bitmask::or_sparse(row, &t.run_word[run.clone()], &t.run_bits[run]);
                }
            }
            complete |= t.group_flags[g] & GROUP_ENDS != 0 && holds(verdicts(g), END_VERDICT);
        }
        if complete {
            for &id in self.vocab.eos_ids() {
                row[id as usize / 32] |= 1 << (id % 32);
            }
        }
    }

    /// Unite one piece: a source's level-1 row, restricted to first bytes.
    fn piece(self, source: u32, bytes: u32, verdicts: &[u64], out: &mut [u32]) {
        let mut key: smallvec::SmallVec<[u64; 24]> = smallvec::SmallVec::with_capacity(verdicts.len() + 1);
        key.push(u64::from(source));
        let mask = &self.caches.source_masks[source as usize * verdicts.len()..][..verdicts.len()];
        key.extend(verdicts.iter().zip(mask).map(|(v, m)| v & m));
        if key[1..].iter().all(|&v| v == 0) {
            return;
        }
        self.caches.level1.with(
            &key,
            || self.level1(source, verdicts),
            |row| {
                if bytes == NONE {
                    return bitmask::or(out, row);
                }
                bitmask::or_masked(out, row, &self.caches.byte_rows[bytes as usize]);
            },
        );
    }

    fn dense(&self, row: u32) -> &[u32] {
        let words = self.meta.vocab_words as usize;
        let stored = self.tables.dense.len() / words;
        match (row as usize).checked_sub(stored) {
            None => &self.tables.dense[row as usize * words..][..words],
            Some(i) => &self.caches.expanded[i],
        }
    }

    /// The tokens of a source's classes that hold: united from nothing, or taken from the whole, whichever is shorter.
    fn level1(self, source: u32, verdicts: &[u64]) -> Row {
        let t = self.tables;
        let classes = t.source_start.list(source);
        let words = self.meta.vocab_words as usize;
        let cost = |c: usize| {
            let dense = if t.class_dense.get(c) == NONE { 0 } else { words / 4 };
            let run = t.class_run.get(c);
            dense + if run == NONE { 0 } else { t.run_start.list(run).len() }
        };
        let (mut with, mut without) = (0, words / 4);
        for c in classes.clone() {
            if holds(verdicts, t.class_verdict.get(c)) { with += cost(c) } else { without += cost(c) }
        }
        type Dense = fn(&mut [u32], &[u32]);
        type Sparse = fn(&mut [u32], &[u16], &[u32]);
        let apply = |row: &mut [u32], wanted: &dyn Fn(usize) -> bool, dense: Dense, sparse: Sparse| {
            for c in classes.clone().filter(|&c| wanted(c)) {
                if t.class_dense.get(c) != NONE {
                    dense(row, self.dense(t.class_dense.get(c)));
                }
                if t.class_run.get(c) != NONE {
                    let run = t.run_start.list(t.class_run.get(c));
                    sparse(row, &t.run_word[run.clone()], &t.run_bits[run]);
                }
            }
        };
        let held = |c: usize| holds(verdicts, t.class_verdict.get(c));
        if with <= without {
            let mut row = vec![0u32; words].into_boxed_slice();
            apply(&mut row, &held, bitmask::or, bitmask::or_sparse);
            row
        } else {
            let mut row = self.caches.unions[source as usize]
                .get_or_init(|| {
                    let mut row = vec![0u32; words].into_boxed_slice();
                    apply(&mut row, &|_| true, bitmask::or, bitmask::or_sparse);
                    row
                })
                .clone();
            apply(&mut row, &|c| !held(c), bitmask::clear, bitmask::clear_sparse);
            row
        }
    }
}
