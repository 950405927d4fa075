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
    stock: Stock,
    bytes: AtomicUsize,
    limit: usize,
}

/// Bytes the cache may hold.
const CACHE_BYTES: usize = 64 << 20;
/// Entries there is room for at once.
const CAPACITY: usize = 512;
/// What an entry takes beside key and row, about.
const ENTRY_BYTES: usize = 64;

impl Cache {
    /// For rows of so many words.
    pub(crate) fn new(words: usize) -> Self {
        Cache {
            rows: HashMap::with_capacity_and_hasher(CAPACITY, FxBuildHasher),
            places: HashMap::with_capacity_and_hasher(CAPACITY, FxBuildHasher),
            stock: Stock::new(words),
            bytes: AtomicUsize::new(0),
            limit: CACHE_BYTES,
        }
    }

    /// Words of its rows.
    pub(crate) fn words(&self) -> usize {
        self.stock.words
    }

    /// The row of `key`.
    pub(crate) fn get(&self, key: &[u64]) -> Option<Arc<[u32]>> {
        let row = self.rows.pin().get(key).map(Arc::clone);
        if row.is_some() {
            self.stock.refill();
        }
        row
    }

    /// Keep the row of `key`, if there is room.
    pub(crate) fn insert(&self, key: &[u64], row: &[u32]) -> Option<Arc<[u32]>> {
        self.has_room(size_of_val(key) + size_of_val(row)).then(|| {
            let row = self.stock.copy(row);
            self.rows.pin().insert(key.into(), Arc::clone(&row));
            row
        })
    }

    /// Call `read` with the row of `place`; false if it is not known.
    #[inline]
    pub(crate) fn at(&self, place: Place, read: impl FnOnce(&[u32])) -> bool {
        let known = self.places.pin().get(&place).map(|row| read(row)).is_some();
        if known {
            self.stock.refill();
        }
        known
    }

    /// Make ready for rows to come.
    pub(crate) fn settle(&self) {
        (0..STOCK).for_each(|_| self.stock.refill());
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

/// Blank rows, so that a step which composes a row need not allocate it as well: steps that find theirs, and have time,
/// make up for what was taken.
#[derive(Debug)]
struct Stock {
    words: usize,
    blank: Mutex<Vec<Arc<[u32]>>>,
    /// How many rows the stock lacks, for those who do not hold the lock; written by those who do.
    missing: AtomicUsize,
}

/// Blank rows in stock.
const STOCK: usize = 8;

impl Stock {
    fn new(words: usize) -> Self {
        let blank = (0..STOCK).map(|_| blank_row(words)).collect();
        Stock { words, blank: Mutex::new(blank), missing: AtomicUsize::new(0) }
    }

    /// A copy of a row.
    fn copy(&self, row: &[u32]) -> Arc<[u32]> {
        let blank = self.blank.try_lock().ok().and_then(|mut blank| {
            let taken = blank.pop();
            self.missing.store(STOCK - blank.len(), Ordering::Relaxed);
            taken
        });
        let Some(mut copy) = blank else { return row.into() };
        Arc::get_mut(&mut copy).expect("nobody else has a row in stock").copy_from_slice(row);
        copy
    }

    /// Add a row if one is missing.
    #[inline]
    fn refill(&self) {
        if self.missing.load(Ordering::Relaxed) > 0 {
            self.add();
        }
    }

    #[cold]
    fn add(&self) {
        if let Ok(mut blank) = self.blank.try_lock()
            && blank.len() < STOCK
        {
            blank.push(blank_row(self.words));
            self.missing.store(STOCK - blank.len(), Ordering::Relaxed);
        }
    }
}

fn blank_row(words: usize) -> Arc<[u32]> {
    std::iter::repeat_n(0, words).collect()
}

/// The row caches of a compiled grammar.
#[derive(Debug)]
pub(crate) struct RowCaches {
    composed: Cache,
    /// The vocabulary's rows of the artifact's byte sets.
    byte_rows: Vec<Arc<[u32]>>,
    /// By source, those that are large enough to keep rows of.
    large: Vec<Option<Large>>,
    /// Dense rows that the artifact stores as differences.
    expanded: Vec<Row>,
}

impl RowCaches {
    pub(crate) fn new(tables: &Tables, meta: &Meta, vocab: &Vocab) -> Self {
        let byte_sets = tables.byte_sets.chunks_exact(4);
        let mut caches = RowCaches {
            composed: Cache::new(vocab.words()),
            byte_rows: byte_sets.map(|set| vocab.first_byte_row(&[set[0], set[1], set[2], set[3]])).collect(),
            expanded: expand(tables, vocab.words()),
            large: Vec::new(),
        };
        let whole = Whole { tables, meta, caches: &caches };
        let large = (1..tables.source_start.len() as u32).map(|source| whole.large(source - 1)).collect();
        caches.large = large;
        caches
    }

    /// Rows composed so far.
    pub(crate) fn composed(&self) -> &Cache {
        &self.composed
    }
}

/// A source large enough for its rows to be kept.
#[derive(Debug)]
pub(crate) struct Large {
    /// Verdicts that occur in it.
    mask: Box<[u64]>,
    /// The verdicts' costs, a row of bits by binary digit.
    costs: [Box<[u64]>; COST_DIGITS],
    tokens: Flat,
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
/// Costs are counted in units of so many sparse words, with so many binary digits.
const COST_UNIT: usize = 64;
const COST_DIGITS: usize = 4;
/// A set of at least one in so many of a row's words is quicker united as a whole row.
const DENSE: usize = 12;
/// What finding a set of tokens costs, in sparse words.
const FIND_COST: usize = 32;

impl Large {
    /// From the verdict and the tokens of each class, of so many verdicts, in rows of so many words; `None` if the source
    /// is not large.
    pub(crate) fn new(mut classes: Vec<(u32, Tokens<'_>)>, verdicts: usize, words: usize) -> Option<Self> {
        if classes.iter().map(|(_, tokens)| tokens.cost()).sum::<usize>() < words / 4 {
            return None;
        }
        classes.sort_unstable_by_key(|&(v, _)| v);
        let none: Box<[u64]> = vec![0; verdicts.div_ceil(64)].into();
        let mut mask = none.clone();
        let mut costs = std::array::from_fn(|_| none.clone());
        let mut all: Row = vec![0; words].into();
        for &(v, tokens) in &classes {
            let (word, bit) = (v as usize / 64, 1 << (v % 64));
            mask[word] |= bit;
            let cost = units(tokens.cost().min(words / DENSE) + FIND_COST);
            (0..COST_DIGITS).filter(|digit| cost >> digit & 1 == 1).for_each(|digit| costs[digit][word] |= bit);
            tokens.or_into(&mut all);
        }
        let rows = vec![(none, vec![0; words].into()), (mask.clone(), all)];
        let tokens = Flat::new(&classes, verdicts, words);
        Some(Large { mask, costs, tokens, latest: Mutex::new(Latest { rows, next: 2 }) })
    }

    /// Bytes it may take.
    pub(crate) fn bytes(&self) -> usize {
        let latest = self.latest.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        LATEST * size_of_val(&*latest.rows[0].1) + self.tokens.bytes()
    }

    /// Unite into `out` the tokens of the classes that hold, of those in `bytes`.
    pub(crate) fn unite(&self, verdicts: &[u64], bytes: Option<&[u32]>, out: &mut Union<'_>) {
        let held: SmallVec<[u64; 24]> = verdicts.iter().zip(&self.mask).map(|(v, m)| v & m).collect();
        if held.iter().all(|&v| v == 0) {
            return;
        }
        let mut latest = self.latest.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let direct = self.difference(&held, &latest.rows[0].0, usize::MAX);
        let (mut nearest, mut cost) = (0, direct);
        for (i, (other, _)) in latest.rows.iter().enumerate().skip(1) {
            let difference = self.difference(&held, other, cost);
            if difference < cost {
                (nearest, cost) = (i, difference);
            }
        }
        // To keep a row is to copy one and to unite the copy.
        let keep = 2 * units(out.words() / DENSE);
        if direct <= cost + keep {
            return members(held.iter().copied()).for_each(|v| out.add(self.tokens.of(v), bytes));
        }
        let row = if cost == 0 { &latest.rows[nearest].1 } else { self.make(&mut latest, &held, nearest) };
        out.add(Tokens::Dense(row), bytes);
    }

    /// Make the row of `held` from the nearest one, and keep it.
    fn make<'l>(&self, latest: &'l mut Latest, held: &[u64], nearest: usize) -> &'l [u32] {
        let slot = latest.next;
        latest.next = if slot + 1 == LATEST { 2 } else { slot + 1 };
        if slot == latest.rows.len() {
            let blank = vec![0; latest.rows[0].1.len()].into();
            latest.rows.push((held.into(), blank));
        }
        let mut row = std::mem::take(&mut latest.rows[slot].1);
        if slot != nearest {
            row.copy_from_slice(&latest.rows[nearest].1);
        }
        let differing = held.iter().zip(&latest.rows[nearest].0).map(|(a, b)| a ^ b);
        members(differing).for_each(|v| self.tokens.of(v).toggle_in(&mut row));
        latest.rows[slot] = (held.into(), row);
        &latest.rows[slot].1
    }

    /// What the classes in which two sets of verdicts differ cost, or anything not below `most`.
    fn difference(&self, a: &[u64], b: &[u64], most: usize) -> usize {
        let mut cost = 0;
        for (i, (a, b)) in a.iter().zip(b).enumerate().filter(|(_, (a, b))| a != b) {
            let digits = (0..COST_DIGITS).map(|digit| ((a ^ b) & self.costs[digit][i]).count_ones() << digit);
            cost += digits.sum::<u32>() as usize;
            if cost >= most {
                break;
            }
        }
        cost
    }
}

/// Units of cost.
fn units(cost: usize) -> usize {
    cost.div_ceil(COST_UNIT).min((1 << COST_DIGITS) - 1)
}

/// The tokens of each verdict of a large source, side by side: an artifact has them in many places, and reading those for
/// the first time is what composing a row would mostly wait for.
#[derive(Debug)]
struct Flat {
    /// Per verdict first and last place in the words and bits; or a dense row, and [`NONE`].
    places: Vec<(u32, u32)>,
    words: Vec<u16>,
    bits: Vec<u32>,
    dense: Vec<Row>,
}

impl Flat {
    fn new(classes: &[(u32, Tokens<'_>)], verdicts: usize, words: usize) -> Self {
        let mut flat = Flat { places: vec![(0, 0); verdicts], words: Vec::new(), bits: Vec::new(), dense: Vec::new() };
        for &(v, tokens) in classes {
            flat.places[v as usize] = match tokens {
                Tokens::Sparse(w, bits) if w.len() < words / DENSE => {
                    let start = flat.words.len() as u32;
                    flat.words.extend_from_slice(w);
                    flat.bits.extend_from_slice(bits);
                    (start, flat.words.len() as u32)
                }
                _ => {
                    let mut row: Row = vec![0; words].into();
                    tokens.or_into(&mut row);
                    flat.dense.push(row);
                    (flat.dense.len() as u32 - 1, NONE)
                }
            };
        }
        flat
    }

    #[inline]
    fn of(&self, verdict: usize) -> Tokens<'_> {
        let (start, end) = self.places[verdict];
        if end == NONE {
            return Tokens::Dense(&self.dense[start as usize]);
        }
        let range = start as usize..end as usize;
        Tokens::Sparse(&self.words[range.clone()], &self.bits[range])
    }

    fn bytes(&self) -> usize {
        let rows = self.dense.iter().map(|row| size_of_val(&**row)).sum::<usize>();
        rows + size_of_val(&*self.places) + size_of_val(&*self.words) + size_of_val(&*self.bits)
    }
}

/// Members of a set of verdicts.
fn members(words: impl Iterator<Item = u64>) -> impl Iterator<Item = usize> {
    words.enumerate().flat_map(|(i, mut rest)| {
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

    fn unite_pieces(self, group: u32, verdicts: &[u64], row: &mut Union<'_>) {
        let t = self.tables;
        for p in t.piece_start.list(group) {
            let bytes = match t.piece_bytes.get(p) {
                NONE => None,
                set => Some(&*self.caches.byte_rows[set as usize]),
            };
            let source = t.piece_source.get(p);
            match &self.caches.large[source as usize] {
                None => {
                    let held = self.classes(source).filter(|&(v, _)| holds(verdicts, v));
                    held.for_each(|(_, tokens)| row.add(tokens, bytes));
                }
                Some(large) => large.unite(verdicts, bytes, row),
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

    fn drop_from(self, x: u32, row: &mut [u32]) {
        let mut drop = self.tables.recipe_drop.get(x as usize);
        while drop != NONE {
            self.run(self.tables.drop_run.get(drop as usize)).clear_from(row);
            drop = self.tables.drop_more.get(drop as usize);
        }
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
        Large::new(self.classes(source).collect(), self.meta.verdicts as usize, self.meta.vocab_words as usize)
    }
}
