//! Composes bitmask rows from verdicts.
//!
//! The row of (lexer state, verdicts of its groups) is the recipe's pieces united, minus its dropped tokens, plus its own.
//! A piece is the tokens of a source's classes that hold. A source's classes share no token, so its row for one set of
//! verdicts becomes that for another by toggling the classes in which they differ: a large source keeps a few of its
//! latest rows and starts from the nearest. Composed rows are cached; the cache is shared by all matchers of a grammar, is
//! read without locks, and stops growing at a byte limit, past which rows are composed each time.

use crate::bitmask::Tokens;
use crate::tables::{END_VERDICT, GROUP_ENDS, Meta, NONE, Tables};
use crate::vocab::Vocab;
use papaya::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

type Row = Box<[u32]>;
type Key = Box<[u64]>;

/// A byte-limited map that is only added to.
#[derive(Debug)]
struct Cache {
    rows: HashMap<Key, Arc<[u32]>, FxBuildHasher>,
    bytes: AtomicUsize,
    limit: usize,
}

impl Cache {
    fn new(limit: usize) -> Self {
        Cache { rows: HashMap::with_hasher(FxBuildHasher), bytes: AtomicUsize::new(0), limit }
    }

    fn insert(&self, key: &[u64], row: Arc<[u32]>) {
        let cost = size_of_val(key) + size_of_val(&row[..]) + 64;
        if self.bytes.load(Ordering::Relaxed) + cost <= self.limit {
            self.bytes.fetch_add(cost, Ordering::Relaxed);
            self.rows.pin().insert(key.into(), row);
        }
    }
}

/// The row caches of a compiled grammar.
#[derive(Debug)]
pub(crate) struct RowCaches {
    composed: Cache,
    /// The vocabulary's rows of the artifact's byte sets.
    byte_rows: Vec<Arc<[u32]>>,
    /// Sources that are large enough to keep rows of.
    large: Vec<Option<Large>>,
    /// Dense rows that the artifact stores as differences.
    expanded: Vec<Row>,
}

/// Bytes the cache may hold.
const CACHE_BYTES: usize = 64 << 20;

impl RowCaches {
    pub(crate) fn new(tables: &Tables, meta: &Meta, vocab: &Vocab) -> Self {
        let byte_sets = tables.byte_sets.chunks_exact(4);
        let mut caches = RowCaches {
            composed: Cache::new(CACHE_BYTES),
            byte_rows: byte_sets.map(|set| vocab.first_byte_row(&[set[0], set[1], set[2], set[3]])).collect(),
            expanded: expand(tables, vocab.words()),
            large: Vec::new(),
        };
        let rows = Rows { tables, meta, vocab, caches: &caches };
        let large = (1..tables.source_start.len() as u32).map(|source| Large::new(rows, source - 1)).collect();
        caches.large = large;
        caches
    }
}

/// A source large enough for its rows to be kept.
#[derive(Debug)]
struct Large {
    /// Verdicts that occur in it.
    mask: Vec<u64>,
    /// Those whose tokens are a dense row.
    dense: Vec<u64>,
    /// Class of each verdict.
    class_of: Vec<u32>,
    latest: Mutex<Latest>,
}

/// Rows of a source with their verdicts: of none, of all, and the latest ones made, overwritten in turn.
#[derive(Debug)]
struct Latest {
    rows: Vec<(Box<[u64]>, Row)>,
    next: usize,
}

/// Rows a large source keeps.
const LATEST: usize = 10;

impl Large {
    fn new(rows: Rows<'_>, source: u32) -> Option<Self> {
        let words = rows.meta.vocab_words as usize;
        if rows.classes(source).map(|(_, tokens)| tokens.cost()).sum::<usize>() < words / 4 {
            return None;
        }
        let mut mask = vec![0; rows.meta.verdict_words()];
        let mut dense = mask.clone();
        let mut class_of = vec![NONE; rows.meta.verdicts as usize];
        let mut all = vec![0u32; words];
        for (class, (v, tokens)) in rows.tables.source_start.list(source).zip(rows.classes(source)) {
            mask[v as usize / 64] |= 1 << (v % 64);
            if matches!(tokens, Tokens::Dense(_)) {
                dense[v as usize / 64] |= 1 << (v % 64);
            }
            class_of[v as usize] = class as u32;
            tokens.or_into(&mut all);
        }
        let none = (vec![0; mask.len()].into(), vec![0u32; words].into());
        let latest = Mutex::new(Latest { rows: vec![none, (mask.clone().into(), all.into())], next: 2 });
        Some(Large { mask, dense, class_of, latest })
    }

    /// Call `read` with the row for `verdicts`, which hold nothing outside the mask.
    fn with_row(&self, rows: Rows<'_>, verdicts: &[u64], read: impl FnOnce(&[u32])) {
        let mut latest = self.latest.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // A dense class is as much work as some twenty sparse ones.
        let differing = |other: &[u64]| -> u32 {
            let words = verdicts.iter().zip(other).zip(&self.dense);
            words.map(|((a, b), dense)| (a ^ b).count_ones() + 20 * ((a ^ b) & dense).count_ones()).sum()
        };
        let costs = latest.rows.iter().map(|(other, _)| differing(other));
        let Some((cost, nearest)) = costs.enumerate().map(|(i, cost)| (cost, i)).min() else { return };
        if cost == 0 {
            return read(&latest.rows[nearest].1);
        }
        let slot = latest.next;
        latest.next = if slot + 1 == LATEST { 2 } else { slot + 1 };
        if slot == latest.rows.len() {
            latest.rows.push((verdicts.into(), vec![0; rows.meta.vocab_words as usize].into()));
        }
        let mut row = std::mem::take(&mut latest.rows[slot].1);
        if slot != nearest {
            row.copy_from_slice(&latest.rows[nearest].1);
        }
        for v in differences(verdicts, &latest.rows[nearest].0) {
            rows.class(self.class_of[v] as usize).toggle_in(&mut row);
        }
        read(&row);
        latest.rows[slot] = (verdicts.into(), row);
    }
}

/// Verdicts in which two sets differ.
fn differences<'v>(a: &'v [u64], b: &'v [u64]) -> impl Iterator<Item = usize> + 'v {
    a.iter().zip(b).enumerate().flat_map(|(i, (a, b))| {
        let mut rest = a ^ b;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                i * 64 + bit
            })
        })
    })
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
    /// Write the row of a lexer state to `out`, or unite it into what is there. `key` is the state followed by the
    /// verdicts of its groups in order, each restricted to the group's mask.
    pub(crate) fn apply(self, key: &[u64], out: &mut [u32], unite: bool) {
        let composed = &self.caches.composed;
        if let Some(row) = composed.rows.pin().get(key) {
            return if unite { Tokens::Dense(row).or_into(out) } else { out.copy_from_slice(row) };
        }
        if unite {
            let mut row = vec![0u32; out.len()];
            self.compose(key, &mut row);
            Tokens::Dense(&row).or_into(out);
            composed.insert(key, row.into());
        } else {
            out.fill(0);
            self.compose(key, out);
            composed.insert(key, (&*out).into());
        }
    }

    /// Compose a row into `row`, which is all zero.
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
            self.run(t.recipe_drop.get(state as usize)).clear_from(row);
        }
        let mut complete = false;
        for g in groups.clone() {
            for i in t.own_start.list(g as u32) {
                if holds(verdicts(g), t.own_verdict.get(i)) {
                    self.run(t.own_run.get(i)).or_into(row);
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

    /// Unite one piece: the tokens of a source's classes that hold, restricted to first bytes.
    fn piece(self, source: u32, bytes: u32, verdicts: &[u64], out: &mut [u32]) {
        let mut unite = |tokens: Tokens<'_>| match bytes {
            NONE => tokens.or_into(out),
            set => tokens.or_masked_into(out, &self.caches.byte_rows[set as usize]),
        };
        let Some(large) = &self.caches.large[source as usize] else {
            let held = self.classes(source).filter(|&(v, _)| holds(verdicts, v));
            return held.for_each(|(_, tokens)| unite(tokens));
        };
        let held: SmallVec<[u64; 24]> = verdicts.iter().zip(&large.mask).map(|(v, m)| v & m).collect();
        if held.iter().any(|&v| v != 0) {
            large.with_row(self, &held, |row| unite(Tokens::Dense(row)));
        }
    }

    fn run(&self, run: u32) -> Tokens<'_> {
        let range = self.tables.run_start.list(run);
        Tokens::Sparse(&self.tables.run_word[range.clone()], &self.tables.run_bits[range])
    }

    /// Verdict and tokens of each class of a source.
    fn classes(&self, source: u32) -> impl Iterator<Item = (u32, Tokens<'_>)> {
        self.tables.source_start.list(source).map(|c| (self.tables.class_verdict.get(c), self.class(c)))
    }

    fn class(&self, class: usize) -> Tokens<'_> {
        let t = self.tables;
        let words = self.meta.vocab_words as usize;
        match t.class_dense.get(class) {
            NONE => self.run(t.class_run.get(class)),
            row => Tokens::Dense(match (row as usize).checked_sub(t.dense.len() / words) {
                None => &t.dense[row as usize * words..][..words],
                Some(i) => &self.caches.expanded[i],
            }),
        }
    }
}
