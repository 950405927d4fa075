//! Composes bitmask rows from verdicts, in two cached levels.
//!
//! Level 1, per (source, verdicts): the tokens of the source's classes that hold. Level 2, per (lexer state, verdicts of
//! its groups): the recipe's pieces united, minus its dropped tokens, plus its own. Both caches are shared by all
//! matchers of a grammar, are read without locks, and stop growing at a byte limit; past it rows are composed in place.

use crate::bitmask;
use crate::tables::{END_VERDICT, GROUP_ENDS, Meta, NONE, Tables, list};
use crate::vocab::Vocab;
use papaya::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

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

    fn insert(&self, key: &[u64], row: &[u32]) {
        let cost = size_of_val(key) + size_of_val(row) + 64;
        if self.bytes.load(Ordering::Relaxed) + cost <= self.limit {
            self.bytes.fetch_add(cost, Ordering::Relaxed);
            self.rows.pin().insert(key.into(), row.into());
        }
    }
}

/// The row caches of a compiled grammar.
#[derive(Debug)]
pub(crate) struct RowCaches {
    composed: Cache,
    level1: Cache,
    byte_rows: Vec<OnceLock<Row>>,
    unions: Vec<OnceLock<Row>>,
}

/// Bytes each of the two caches may hold.
const CACHE_BYTES: usize = 64 << 20;

impl RowCaches {
    pub(crate) fn new(tables: &Tables) -> Self {
        RowCaches {
            composed: Cache::new(CACHE_BYTES),
            level1: Cache::new(CACHE_BYTES),
            byte_rows: (0..tables.byte_sets.len() / 4).map(|_| OnceLock::new()).collect(),
            unions: (1..tables.source_start.len()).map(|_| OnceLock::new()).collect(),
        }
    }
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
        if let Some(row) = self.caches.composed.rows.pin().get(key) {
            if first { out.copy_from_slice(row) } else { bitmask::or(out, row) }
            return;
        }
        let mut row = vec![0u32; out.len()];
        self.compose(key, &mut row);
        self.caches.composed.insert(key, &row);
        if first { out.copy_from_slice(&row) } else { bitmask::or(out, &row) }
    }

    fn compose(self, key: &[u64], row: &mut [u32]) {
        let t = self.tables;
        let words = self.meta.verdict_words();
        let state = key[0] as u32;
        let groups = list(&t.group_start, state);
        let verdicts = |g: usize| &key[1 + (g - groups.start) * words..][..words];
        for g in groups.clone() {
            for p in list(&t.piece_start, g as u32) {
                self.piece(t.piece_source[p], t.piece_bytes[p], verdicts(g), row);
            }
        }
        if t.recipe_drop[state as usize] != NONE {
            let run = list(&t.run_start, t.recipe_drop[state as usize]);
            bitmask::clear_sparse(row, &t.run_word[run.clone()], &t.run_bits[run]);
        }
        let mut complete = false;
        for g in groups.clone() {
            for i in list(&t.own_start, g as u32) {
                if holds(verdicts(g), t.own_verdict[i]) {
                    let run = list(&t.run_start, t.own_run[i]);
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
        key.resize(verdicts.len() + 1, 0);
        let mut any = false;
        for c in list(&self.tables.source_start, source) {
            let v = self.tables.class_verdict[c];
            if holds(verdicts, v) {
                key[1 + v as usize / 64] |= 1 << (v % 64);
                any = true;
            }
        }
        if !any {
            return;
        }
        let guard = self.caches.level1.rows.pin();
        let fresh: Row;
        let row = match guard.get(&key[..]) {
            Some(row) => row,
            None => {
                fresh = self.level1(source, verdicts);
                self.caches.level1.insert(&key, &fresh);
                &fresh
            }
        };
        if bytes == NONE {
            bitmask::or(out, row);
        } else {
            let mask = self.caches.byte_rows[bytes as usize].get_or_init(|| {
                let set = &self.tables.byte_sets[bytes as usize * 4..][..4];
                self.vocab.first_byte_row(&[set[0], set[1], set[2], set[3]])
            });
            bitmask::or_masked(out, row, mask);
        }
    }

    /// The tokens of a source's classes that hold: united from nothing, or taken from the whole, whichever is shorter.
    fn level1(self, source: u32, verdicts: &[u64]) -> Row {
        let t = self.tables;
        let classes = list(&t.source_start, source);
        let words = self.meta.vocab_words as usize;
        let cost = |c: usize| {
            let dense = if t.class_dense[c] == NONE { 0 } else { words / 4 };
            let run = t.class_run[c];
            dense + if run == NONE { 0 } else { list(&t.run_start, run).len() }
        };
        let (mut with, mut without) = (0, words / 4);
        for c in classes.clone() {
            if holds(verdicts, t.class_verdict[c]) { with += cost(c) } else { without += cost(c) }
        }
        type Dense = fn(&mut [u32], &[u32]);
        type Sparse = fn(&mut [u32], &[u16], &[u32]);
        let apply = |row: &mut [u32], wanted: &dyn Fn(usize) -> bool, dense: Dense, sparse: Sparse| {
            for c in classes.clone().filter(|&c| wanted(c)) {
                if t.class_dense[c] != NONE {
                    dense(row, &t.dense[t.class_dense[c] as usize * words..][..words]);
                }
                if t.class_run[c] != NONE {
                    let run = list(&t.run_start, t.class_run[c]);
                    sparse(row, &t.run_word[run.clone()], &t.run_bits[run]);
                }
            }
        };
        let held = |c: usize| holds(verdicts, t.class_verdict[c]);
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
