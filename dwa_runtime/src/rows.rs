//! Composes bitmask rows from verdicts.
//!
//! The row of (lexer state, verdicts of its groups) is the recipe's pieces united, minus its dropped tokens, plus its own.
//! A piece is the tokens of a source's classes that hold. A source's classes share no token, so its row for one set of
//! verdicts becomes that for another by toggling the classes in which they differ: a large source keeps a few of its
//! latest rows and starts from the nearest. Composed rows are cached; the cache is shared by all matchers of a grammar, is
//! read without locks, and stops growing at a byte limit, past which rows are composed each time.

use crate::bitmask::{Tokens, Union};
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
/// Rows it has room for from the start: growing takes longer than composing a row.
const CACHE_ROWS: usize = 512;

impl Cache {
    pub(crate) fn new() -> Self {
        let rows = HashMap::with_capacity_and_hasher(CACHE_ROWS, FxBuildHasher);
        let places = HashMap::with_capacity_and_hasher(CACHE_ROWS, FxBuildHasher);
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
    /// Those that take long to toggle.
    heavy: Vec<u64>,
    /// How long, for each verdict.
    cost_of: Vec<u32>,
    /// Class of each verdict.
    class_of: Vec<u32>,
    latest: Mutex<Latest>,
}

/// Rows of a source and their verdicts, one set after the other: of none, of all, and the latest ones made. A row that is
/// near to what is wanted is changed to that in place; otherwise they are overwritten in turn.
#[derive(Debug)]
struct Latest {
    verdicts: Vec<u64>,
    rows: Vec<Row>,
    next: usize,
}

impl Latest {
    /// Where the next row goes.
    fn slot(&mut self) -> usize {
        let slot = self.next;
        self.next = if slot + 1 == LATEST { 2 } else { slot + 1 };
        if slot == self.rows.len() {
            self.verdicts.resize(self.verdicts.len() / slot * (slot + 1), 0);
            self.rows.push(vec![0; self.rows[0].len()].into());
        }
        slot
    }
}

/// Rows a large source keeps.
const LATEST: usize = 10;
/// Words from which on a class is heavy; and what others count for.
const HEAVY: usize = 64;
const LIGHT: u32 = 12;

impl Large {
    /// The verdict, number and tokens of each class, of so many verdicts, in rows of so many words; `None` if the source
    /// is not large.
    pub(crate) fn new(classes: &[(u32, u32, Tokens<'_>)], verdicts: usize, words: usize) -> Option<Self> {
        if classes.iter().map(|(.., tokens)| tokens.cost()).sum::<usize>() < words / 4 {
            return None;
        }
        let mut mask = vec![0; verdicts.div_ceil(64)];
        let mut heavy = mask.clone();
        let mut cost_of = vec![0; verdicts];
        let mut class_of = vec![NONE; verdicts];
        let mut all = vec![0u32; words];
        for &(v, class, tokens) in classes {
            mask[v as usize / 64] |= 1 << (v % 64);
            cost_of[v as usize] = tokens.cost() as u32;
            if tokens.cost() >= HEAVY {
                heavy[v as usize / 64] |= 1 << (v % 64);
            }
            class_of[v as usize] = class;
            tokens.or_into(&mut all);
        }
        let rows = vec![vec![0u32; words].into(), all.into()];
        let latest = Latest { verdicts: [vec![0; mask.len()], mask.clone()].concat(), rows, next: 2 };
        Some(Large { mask, heavy, cost_of, class_of, latest: Mutex::new(latest) })
    }

    /// Bytes it may take.
    pub(crate) fn bytes(&self) -> usize {
        LATEST * size_of_val(&*self.latest.lock().unwrap_or_else(std::sync::PoisonError::into_inner).rows[0])
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
        // About how long toggling takes: most of it goes into few classes, the others are only counted.
        let differing = |other: &[u64]| -> u32 {
            let light = held.iter().zip(other).zip(&self.heavy).map(|((a, b), heavy)| ((a ^ b) & !heavy).count_ones());
            let heavy = differences(&held, other, &self.heavy).map(|v| self.cost_of[v]);
            LIGHT * light.sum::<u32>() + heavy.sum::<u32>()
        };
        let costs = latest.verdicts.chunks_exact(held.len()).map(differing);
        let Some((cost, nearest)) = costs.enumerate().map(|(i, cost)| (cost, i)).min() else { return };
        if cost == 0 {
            return unite(Tokens::Dense(&latest.rows[nearest]));
        }
        let at = |row: usize| row * held.len()..(row + 1) * held.len();
        let from: SmallVec<[u64; 24]> = SmallVec::from_slice(&latest.verdicts[at(nearest)]);
        let toggled = || differences(&held, &from, &self.mask).map(|v| class(self.class_of[v]));
        let is_near = toggled().map(Tokens::cost).sum::<usize>() < Tokens::Dense(&latest.rows[0]).cost();
        let slot = if nearest >= 2 && is_near { nearest } else { latest.slot() };
        let mut row = std::mem::take(&mut latest.rows[slot]);
        if slot != nearest {
            row.copy_from_slice(&latest.rows[nearest]);
        }
        toggled().for_each(|tokens| tokens.toggle_in(&mut row));
        unite(Tokens::Dense(&row));
        latest.verdicts[at(slot)].copy_from_slice(&held);
        latest.rows[slot] = row;
    }
}

/// Verdicts of `among` in which two sets differ.
fn differences<'v>(a: &'v [u64], b: &'v [u64], among: &'v [u64]) -> impl Iterator<Item = usize> + 'v {
    a.iter().zip(b).zip(among).enumerate().flat_map(|(i, ((a, b), among))| {
        let mut rest = (a ^ b) & among;
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

    fn unite_pieces(self, group: u32, verdicts: &[u64], pieces: &mut Union<'_>) {
        let t = self.tables;
        for p in t.piece_start.list(group) {
            let bytes = match t.piece_bytes.get(p) {
                NONE => None,
                set => Some(&*self.caches.byte_rows[set as usize]),
            };
            let source = t.piece_source.get(p);
            let unite = |tokens: Tokens<'_>| pieces.add(tokens, bytes);
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
