//! Composes bitmask rows from verdicts.
//!
//! The row of (lexer state, verdicts of its groups) is the recipe's pieces united, minus its dropped tokens, plus its own.
//! A piece is the tokens of a source's classes that hold. A source's classes share no token, so its row for one set of
//! verdicts becomes that for another by toggling the classes in which they differ: a large source keeps a few of its
//! latest rows and starts from the nearest. Composed rows are cached; the cache is shared by all matchers of a grammar, is
//! read without locks, and stops growing at a byte limit, past which rows are composed each time.

use crate::bitmask::Tokens;
use crate::mask::{Change, Schedule, holds};
use crate::tables::{GROUP_ENDS, Meta, NONE, Tables};
use crate::verdict::{Automaton, unite};
use crate::vocab::Vocab;
use papaya::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

type Row = Box<[u32]>;
type Key = Box<[u64]>;

/// A lexer state, and the address of the one stack that goes with it.
pub(crate) type Place = (usize, u32);

/// Rows composed so far: by what they are made of, and by where that was found. It is only added to, up to a byte limit.
#[derive(Debug)]
pub(crate) struct Cache {
    rows: HashMap<Key, Arc<[u32]>, FxBuildHasher>,
    places: HashMap<Place, Arc<[u32]>, FxBuildHasher>,
    bytes: AtomicUsize,
    limit: usize,
}

/// Bytes the cache may hold.
const CACHE_BYTES: usize = 64 << 20;
/// What an entry takes beside key and row, about.
const ENTRY_BYTES: usize = 64;

impl Cache {
    pub(crate) fn new() -> Self {
        let (rows, places) = (HashMap::with_hasher(FxBuildHasher), HashMap::with_hasher(FxBuildHasher));
        Cache { rows, places, bytes: AtomicUsize::new(0), limit: CACHE_BYTES }
    }

    /// The row of `key`.
    pub(crate) fn get(&self, key: &[u64]) -> Option<Arc<[u32]>> {
        self.rows.pin().get(key).map(Arc::clone)
    }

    /// Keep the row of `key`, if there is room.
    pub(crate) fn insert(&self, key: &[u64], row: &[u32]) -> Option<Arc<[u32]>> {
        self.has_room(size_of_val(key) + size_of_val(row)).then(|| {
            let row: Arc<[u32]> = row.into();
            self.rows.pin().insert(key.into(), Arc::clone(&row));
            row
        })
    }

    /// Call `read` with the row of `place`; false if it is not known.
    #[inline]
    pub(crate) fn at(&self, place: Place, read: impl FnOnce(&[u32])) -> bool {
        self.places.pin().get(&place).map(|row| read(row)).is_some()
    }

    /// Remember the row of `place`, whose stack must outlive the cache.
    pub(crate) fn insert_at(&self, place: Place, row: Arc<[u32]>) {
        if self.has_room(size_of::<(Place, Arc<[u32]>)>()) {
            self.places.pin().insert(place, row);
        }
    }

    fn has_room(&self, bytes: usize) -> bool {
        let room = self.bytes.load(Ordering::Relaxed) + bytes + ENTRY_BYTES <= self.limit;
        if room {
            self.bytes.fetch_add(bytes + ENTRY_BYTES, Ordering::Relaxed);
        }
        room
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

impl RowCaches {
    pub(crate) fn new(tables: &Tables, meta: &Meta, vocab: &Vocab) -> Self {
        let byte_sets = tables.byte_sets.chunks_exact(4);
        let mut caches = RowCaches {
            composed: Cache::new(),
            byte_rows: byte_sets.map(|set| vocab.first_byte_row(&[set[0], set[1], set[2], set[3]])).collect(),
            expanded: expand(tables, vocab.words()),
            large: Vec::new(),
        };
        let whole = Whole { tables, meta, caches: &caches };
        let large = (1..tables.source_start.len() as u32).map(|source| whole.large(source - 1)).collect();
        caches.large = large;
        caches
    }
}

/// A source large enough for its rows to be kept.
#[derive(Debug)]
pub(crate) struct Large {
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
    /// The verdict, number and tokens of each class, of so many verdicts, in rows of so many words; `None` if the source
    /// is not large.
    pub(crate) fn new(classes: &[(u32, u32, Tokens<'_>)], verdicts: usize, words: usize) -> Option<Self> {
        if classes.iter().map(|(.., tokens)| tokens.cost()).sum::<usize>() < words / 4 {
            return None;
        }
        let mut mask = vec![0; verdicts.div_ceil(64)];
        let mut dense = mask.clone();
        let mut class_of = vec![NONE; verdicts];
        let mut all = vec![0u32; words];
        for &(v, class, tokens) in classes {
            mask[v as usize / 64] |= 1 << (v % 64);
            if matches!(tokens, Tokens::Dense(_)) {
                dense[v as usize / 64] |= 1 << (v % 64);
            }
            class_of[v as usize] = class;
            tokens.or_into(&mut all);
        }
        let none = (vec![0; mask.len()].into(), vec![0u32; words].into());
        let latest = Mutex::new(Latest { rows: vec![none, (mask.clone().into(), all.into())], next: 2 });
        Some(Large { mask, dense, class_of, latest })
    }

    /// Bytes it may take.
    pub(crate) fn bytes(&self) -> usize {
        LATEST * size_of_val(&*self.latest.lock().unwrap_or_else(std::sync::PoisonError::into_inner).rows[0].1)
    }

    /// Call `unite` with the tokens of the classes that hold; `class` has those of each.
    pub(crate) fn unite<'t>(
        &self,
        verdicts: &[u64],
        class: impl Fn(u32) -> Tokens<'t>,
        unite: impl FnOnce(Tokens<'_>),
    ) {
        let held: SmallVec<[u64; 24]> = verdicts.iter().zip(&self.mask).map(|(v, m)| v & m).collect();
        if held.iter().all(|&v| v == 0) {
            return;
        }
        let mut latest = self.latest.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // A dense class is as much work as some twenty sparse ones.
        let differing = |other: &[u64]| -> u32 {
            let words = held.iter().zip(other).zip(&self.dense);
            words.map(|((a, b), dense)| (a ^ b).count_ones() + 20 * ((a ^ b) & dense).count_ones()).sum()
        };
        let costs = latest.rows.iter().map(|(other, _)| differing(other));
        let Some((cost, nearest)) = costs.enumerate().map(|(i, cost)| (cost, i)).min() else { return };
        if cost == 0 {
            return unite(Tokens::Dense(&latest.rows[nearest].1));
        }
        let slot = latest.next;
        latest.next = if slot + 1 == LATEST { 2 } else { slot + 1 };
        if slot == latest.rows.len() {
            let blank = vec![0; latest.rows[0].1.len()].into();
            latest.rows.push((held.as_slice().into(), blank));
        }
        let mut row = std::mem::take(&mut latest.rows[slot].1);
        if slot != nearest {
            row.copy_from_slice(&latest.rows[nearest].1);
        }
        for v in differences(&held, &latest.rows[nearest].0) {
            class(self.class_of[v]).toggle_in(&mut row);
        }
        unite(Tokens::Dense(&row));
        latest.rows[slot] = (held.as_slice().into(), row);
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

/// The schedule of an artifact that has everything: recipes and automaton are read from its tables.
#[derive(Clone, Copy)]
pub(crate) struct Whole<'c> {
    pub tables: &'c Tables,
    pub meta: &'c Meta,
    pub caches: &'c RowCaches,
}

impl Automaton for Whole<'_> {
    #[inline]
    fn step(self, state: u32, symbol: u32, out: &mut [u64]) -> u32 {
        let t = self.tables;
        let (next, output) = match t.dwa_symbol.search(t.dwa_start.list(state), t.lr_class.get(symbol as usize)) {
            Some(i) => (t.dwa_next.get(i), t.dwa_output.get(i)),
            None => (t.dwa_default_next.get(state as usize), t.dwa_default_output.get(state as usize)),
        };
        if output != NONE {
            let words = out.len();
            unite(out, &t.output_verdicts[output as usize * words..][..words]);
        }
        next
    }

    fn generation(self) -> u16 {
        0
    }
}

impl<'c> Schedule<'c> for Whole<'c> {
    type Group = u32;

    fn groups(self, x: u32) -> impl Iterator<Item = u32> {
        self.tables.group_start.list(x).map(|g| g as u32)
    }

    fn change(self, group: u32) -> Option<Change<'c>> {
        let id = self.tables.group_emit.get(group as usize);
        (id != NONE).then(|| self.tables.change(id))
    }

    fn start(self, _: u32) -> u32 {
        0
    }

    fn relevant(self, group: u32) -> &'c [u64] {
        let words = self.meta.verdict_words();
        &self.tables.verdict_masks[self.tables.group_mask.get(group as usize) as usize * words..][..words]
    }

    fn ends(self, group: u32) -> bool {
        self.tables.group_flags[group as usize] & GROUP_ENDS != 0
    }

    fn unite_pieces(self, group: u32, verdicts: &[u64], row: &mut [u32]) {
        let t = self.tables;
        for p in t.piece_start.list(group) {
            let bytes = match t.piece_bytes.get(p) {
                NONE => None,
                set => Some(&*self.caches.byte_rows[set as usize]),
            };
            let source = t.piece_source.get(p);
            let unite = |tokens: Tokens<'_>| tokens.or_into_where(row, bytes);
            match &self.caches.large[source as usize] {
                None => self.classes(source).filter(|&(v, _)| holds(verdicts, v)).map(|(_, t)| t).for_each(unite),
                Some(large) => large.unite(verdicts, |class| self.class(class as usize), unite),
            }
        }
    }

    fn unite_own(self, group: u32, verdicts: &[u64], row: &mut [u32]) {
        let t = self.tables;
        for i in t.own_start.list(group) {
            if holds(verdicts, t.own_verdict.get(i)) {
                self.run(t.own_run.get(i)).or_into(row);
            }
        }
    }

    fn dropped(self, x: u32) -> Option<Tokens<'c>> {
        let run = self.tables.recipe_drop.get(x as usize);
        (run != NONE).then(|| self.run(run))
    }

    fn composed(self) -> &'c Cache {
        &self.caches.composed
    }
}

impl<'c> Whole<'c> {
    fn run(self, run: u32) -> Tokens<'c> {
        let range = self.tables.run_start.list(run);
        Tokens::Sparse(&self.tables.run_word[range.clone()], &self.tables.run_bits[range])
    }

    /// Verdict and tokens of each class of a source.
    fn classes(self, source: u32) -> impl Iterator<Item = (u32, Tokens<'c>)> {
        self.tables.source_start.list(source).map(move |c| (self.tables.class_verdict.get(c), self.class(c)))
    }

    fn class(self, class: usize) -> Tokens<'c> {
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

    fn large(self, source: u32) -> Option<Large> {
        let classes = self.tables.source_start.list(source).zip(self.classes(source));
        let classes: Vec<_> = classes.map(|(class, (v, tokens))| (v, class as u32, tokens)).collect();
        Large::new(&classes, self.meta.verdicts as usize, self.meta.vocab_words as usize)
    }
}
