//! Tables that are filled on demand.
//!
//! [`Supply`] is what a compiler offers: recipes of lexer states and edges of a Parser DWA, computed when they are first
//! asked for. [`Filled`] keeps what was supplied, shared by all matchers of a grammar and read without locks, and serves it
//! to the same mask code as an artifact's tables. When it has grown past its limit, matchers go on with an empty one.
//!
//! Verdicts are numbered for each group on its own here (its *domain*): [`ALWAYS`](crate::ALWAYS) and
//! [`END_VERDICT`](crate::END_VERDICT) as everywhere, then the boundary classes that occur in it. Groups with the same classes
//! start in the same state of the automaton.

use crate::bitmask::{Tokens, Union};
use crate::mask::{self, Schedule, holds};
use crate::rows::{Cache, Large};
use crate::tables::{NONE, Tables};
use crate::verdict::{Automaton, unite};
use crate::vocab::Vocab;
use arc_swap::{ArcSwap, Guard};
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Computes what is missing.
pub trait Supply: Send + Sync + Debug {
    /// Begin with nothing filled.
    fn begin(&self) -> Box<dyn Filler>;
}

/// Computes recipes and edges, numbering states as it meets them.
pub trait Filler: Send + Debug {
    /// The recipe of a lexer state.
    fn recipe(&mut self, x: u32) -> Recipe;
    /// The edge of an automaton state on a class of LR states.
    fn edge(&mut self, state: u32, class: u32) -> Edge;
    /// Bytes it holds, about.
    fn bytes(&self) -> usize;
}

/// How the row of a lexer state is composed: the groups' pieces, minus `dropped`, plus their own.
#[derive(Debug, Default)]
pub struct Recipe {
    /// Groups.
    pub groups: Vec<Group>,
    /// Tokens to take out of the pieces.
    pub dropped: Option<TokenSet>,
}

/// Tokens whose stacks go through the same change first.
#[derive(Debug)]
pub struct Group {
    /// The change, if there is one.
    pub change: Option<Change>,
    /// State in which the automaton starts.
    pub start: u32,
    /// Verdicts that matter.
    pub relevant: Box<[u64]>,
    /// Whether the output is complete if the stacks accept the end.
    pub ends: bool,
    /// Pieces of shared sources.
    pub pieces: Vec<Piece>,
    /// Verdict and tokens of each class that only this recipe has.
    pub own: Vec<(u32, TokenSet)>,
}

/// What an emission does to stacks.
#[derive(Debug, Clone)]
pub struct Change {
    /// Its number.
    pub id: u32,
    /// Candidates, one of which is shifted.
    pub set: u32,
    /// Lexer groups of which the LR state on top then must be, as bits; `None` for any.
    pub groups: Option<Arc<[u64]>>,
}

/// A source, restricted to tokens with certain first bytes (`None`: all).
#[derive(Debug)]
pub struct Piece {
    /// The source.
    pub source: Arc<Source>,
    /// Verdict of each of its classes.
    pub verdicts: Arc<[u32]>,
    /// First bytes, 256 bits.
    pub bytes: Option<[u64; 4]>,
}

/// Disjoint sets of tokens, shared between recipes.
#[derive(Debug)]
pub struct Source {
    /// Empty if the source is large.
    classes: Vec<Arc<TokenSet>>,
    large: Option<Large>,
}

impl Source {
    /// From the tokens of each class, in rows of so many words.
    pub fn new(classes: Vec<Arc<TokenSet>>, words: usize) -> Self {
        let numbered = classes.iter().zip(0..).map(|(tokens, i)| (i, tokens.tokens())).collect();
        let large = Large::new(numbered, classes.len(), words);
        let classes = if large.is_some() { Vec::new() } else { classes };
        Source { classes, large }
    }

    /// Bytes it takes, about.
    pub fn bytes(&self) -> usize {
        let large = self.large.as_ref().map_or(0, Large::bytes);
        self.classes.iter().map(|tokens| tokens.bytes()).sum::<usize>() + large
    }
}

/// A set of tokens.
#[derive(Debug)]
pub enum TokenSet {
    /// A bitmask row.
    Dense(Box<[u32]>),
    /// Ascending numbers of bitmask words, and the bits in them.
    Sparse(Box<[u16]>, Box<[u32]>),
}

impl TokenSet {
    fn tokens(&self) -> Tokens<'_> {
        match self {
            TokenSet::Dense(row) => Tokens::Dense(row),
            TokenSet::Sparse(words, bits) => Tokens::Sparse(words, bits),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            TokenSet::Dense(row) => size_of_val(&**row),
            TokenSet::Sparse(words, bits) => size_of_val(&**words) + size_of_val(&**bits),
        }
    }
}

/// An edge of the automaton.
#[derive(Debug, Clone)]
pub struct Edge {
    /// State it leads to, or [`NONE`].
    pub next: u32,
    /// Verdicts that hold once it is taken, if any do.
    pub output: Option<Arc<[u64]>>,
    /// Whether it is the same on every class.
    pub always: bool,
}

/// A list of things with numbers, made as they are first asked for. Its parts double in size and never move.
#[derive(Debug)]
struct Growing<T>([OnceLock<Box<[T]>>; 32]);

impl<T: Default> Growing<T> {
    fn new() -> Self {
        Growing(std::array::from_fn(|_| OnceLock::new()))
    }

    #[inline]
    fn get(&self, i: u32) -> &T {
        let part = (u64::from(i) + 1).ilog2();
        let first = (1u64 << part) - 1;
        let part = self.0[part as usize].get_or_init(|| (0..1u64 << part).map(|_| T::default()).collect());
        &part[(u64::from(i) - first) as usize]
    }
}

/// Known edges of one automaton state: the first one, and others in lists by class that only grow.
#[derive(Debug, Default)]
struct State {
    always: OnceLock<u32>,
    first: OnceLock<(u32, Edge)>,
    others: OnceLock<Box<[Edges]>>,
}

#[derive(Debug, Default)]
struct Edges(OnceLock<Box<KnownEdge>>);

#[derive(Debug)]
struct KnownEdge {
    class: u32,
    edge: Edge,
    rest: Edges,
}

impl Drop for Edges {
    // A derived drop would recurse once per edge.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut edge) = next {
            next = edge.rest.0.take();
        }
    }
}

impl State {
    /// Lists of a state. One in which reading starts gets an edge for most classes.
    const LISTS: usize = 32;

    #[inline]
    fn get(&self, class: u32) -> Option<&Edge> {
        let (first, edge) = self.first.get()?;
        if *first == class {
            return Some(edge);
        }
        let lists = self.others.get()?;
        let mut list = &lists[class as usize % Self::LISTS];
        while let Some(known) = list.0.get() {
            if known.class == class {
                return Some(&known.edge);
            }
            list = &known.rest;
        }
        None
    }

    /// Add an edge that is not there. One thread at a time does.
    fn insert(&self, class: u32, edge: Edge) {
        let Err((class, edge)) = self.first.set((class, edge)) else { return };
        let lists = self.others.get_or_init(|| (0..Self::LISTS).map(|_| Edges::default()).collect());
        let mut list = &lists[class as usize % Self::LISTS];
        while let Some(known) = list.0.get() {
            list = &known.rest;
        }
        list.0.get_or_init(|| Box::new(KnownEdge { class, edge, rest: Edges::default() }));
    }
}

/// What was filled so far.
#[derive(Debug)]
pub(crate) struct Filled {
    generation: u16,
    recipes: Box<[OnceLock<Recipe>]>,
    states: Growing<State>,
    composed: Cache,
    filler: Mutex<Box<dyn Filler>>,
    /// Bytes kept here, about; what the filler holds comes on top.
    bytes: AtomicUsize,
    filled_recipes: AtomicUsize,
}

impl Filled {
    fn new(supply: &dyn Supply, lexer_states: usize, words: usize, generation: u16) -> Self {
        Filled {
            generation,
            recipes: (0..lexer_states).map(|_| OnceLock::new()).collect(),
            states: Growing::new(),
            composed: Cache::new(words),
            filler: Mutex::new(supply.begin()),
            bytes: AtomicUsize::new(0),
            filled_recipes: AtomicUsize::new(0),
        }
    }

    /// Rows composed so far.
    pub(crate) fn composed(&self) -> &Cache {
        &self.composed
    }

    fn fill<R>(&self, fill: impl FnOnce(&mut dyn Filler) -> R) -> R {
        // A filler that panicked may be inconsistent: what asks it again fails too.
        let mut filler = self.filler.lock().expect("filling on demand failed before");
        fill(&mut **filler)
    }

    fn recipe(&self, x: u32) -> &Recipe {
        let cell = &self.recipes[x as usize];
        if let Some(recipe) = cell.get() {
            return recipe;
        }
        self.fill(|filler| {
            // Another thread may have been faster; only whoever fills initialises cells, so nobody waits in here.
            cell.get_or_init(|| {
                let before = filler.bytes();
                let recipe = filler.recipe(x);
                let own = recipe.groups.iter().flat_map(|g| &g.own).map(|(_, tokens)| tokens.bytes() + 64);
                let kept = own.sum::<usize>() + recipe.groups.len() * 128;
                self.bytes.fetch_add(kept + filler.bytes().saturating_sub(before), Ordering::Relaxed);
                self.filled_recipes.fetch_add(1, Ordering::Relaxed);
                recipe
            });
        });
        cell.get().expect("the recipe was just filled")
    }

    #[cold]
    fn fill_edge(&self, state: u32, class: u32) {
        self.fill(|filler| {
            let cell = self.states.get(state);
            if cell.always.get().is_some() || cell.get(class).is_some() {
                return;
            }
            let before = filler.bytes();
            let edge = filler.edge(state, class);
            self.bytes.fetch_add(160 + filler.bytes().saturating_sub(before), Ordering::Relaxed);
            if edge.always {
                cell.always.get_or_init(|| edge.next);
            } else {
                cell.insert(class, edge);
            }
        });
    }
}

/// What was filled, what fills it, and how much it may become.
#[derive(Debug)]
pub(crate) struct OnDemand {
    supply: Arc<dyn Supply>,
    filled: ArcSwap<Filled>,
    limit: usize,
}

/// Bytes that tables filled on demand may take before they are begun anew.
const FILLED_BYTES: usize = 512 << 20;

impl OnDemand {
    pub(crate) fn new(supply: Arc<dyn Supply>, lexer_states: usize, words: usize) -> Self {
        let filled = ArcSwap::from_pointee(Filled::new(&*supply, lexer_states, words, 0));
        OnDemand { supply, filled, limit: FILLED_BYTES }
    }

    /// The tables to use now.
    #[inline]
    pub(crate) fn filled(&self) -> Guard<Arc<Filled>> {
        let filled = self.filled.load();
        if filled.bytes.load(Ordering::Relaxed) > self.limit {
            // Kept stacks may remember what the tables of 65,536 generations ago said, but no process gets that old.
            let generation = filled.generation.wrapping_add(1);
            let next = Filled::new(&*self.supply, filled.recipes.len(), filled.composed.words(), generation);
            self.filled.compare_and_swap(&filled, Arc::new(next));
            return self.filled.load();
        }
        filled
    }

    /// Lexer states whose recipe is not there.
    pub(crate) fn missing(&self) -> usize {
        let filled = self.filled();
        filled.recipes.len() - filled.filled_recipes.load(Ordering::Relaxed)
    }
}

/// The schedule of tables that are filled on demand.
#[derive(Clone, Copy)]
pub(crate) struct Demanded<'c> {
    pub filled: &'c Filled,
    pub tables: &'c Tables,
    pub vocab: &'c Vocab,
}

impl Automaton for Demanded<'_> {
    #[inline]
    fn step(self, state: u32, symbol: u32, out: &mut [u64]) -> u32 {
        let class = self.tables.lr_class.get(symbol as usize);
        let cell = self.filled.states.get(state);
        loop {
            if let Some(next) = cell.always.get() {
                return *next;
            }
            if let Some(edge) = cell.get(class) {
                if let Some(output) = &edge.output {
                    unite(out, output);
                }
                return edge.next;
            }
            self.filled.fill_edge(state, class);
        }
    }

    fn generation(self) -> u16 {
        self.filled.generation
    }
}

impl<'c> Schedule<'c> for Demanded<'c> {
    type Group = &'c Group;

    fn groups(self, x: u32) -> impl Iterator<Item = &'c Group> {
        self.filled.recipe(x).groups.iter()
    }

    fn change(self, group: &'c Group) -> Option<mask::Change<'c>> {
        let change = group.change.as_ref()?;
        Some(mask::Change { id: change.id, set: change.set, groups: change.groups.as_deref() })
    }

    fn start(self, group: &'c Group) -> u32 {
        group.start
    }

    fn relevant(self, group: &'c Group) -> &'c [u64] {
        &group.relevant
    }

    fn ends(self, group: &'c Group) -> bool {
        group.ends
    }

    fn unite_pieces(self, group: &'c Group, verdicts: &[u64], row: &mut Union<'_>) {
        for piece in &group.pieces {
            let bytes = piece.bytes.as_ref().map(|bytes| self.vocab.first_byte_row(bytes));
            let held = piece.verdicts.iter().enumerate().filter(|&(_, &v)| v != NONE && holds(verdicts, v));
            let classes = &piece.source.classes;
            match &piece.source.large {
                None => held.for_each(|(class, _)| row.add(classes[class].tokens(), bytes.as_deref())),
                Some(large) => {
                    let mut of_source = vec![0; piece.verdicts.len().div_ceil(64)];
                    held.for_each(|(class, _)| of_source[class / 64] |= 1 << (class % 64));
                    large.unite(&of_source, bytes.as_deref(), row);
                }
            }
        }
    }

    fn unite_own(self, group: &'c Group, verdicts: &[u64], row: &mut [u32]) {
        let held = group.own.iter().filter(|(v, _)| holds(verdicts, *v));
        held.for_each(|(_, tokens)| tokens.tokens().or_into(row));
    }

    fn drop_from(self, x: u32, row: &mut [u32]) {
        if let Some(dropped) = &self.filled.recipe(x).dropped {
            dropped.tokens().clear_from(row);
        }
    }

    fn composed(self) -> &'c Cache {
        &self.filled.composed
    }
}
