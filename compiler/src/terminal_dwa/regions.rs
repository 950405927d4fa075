//! What tokens do inside of lexemes, apart from what they do behind them.
//!
//! The *region* of a lexer state is what can be reached from it without an emission. What a token does inside depends on the
//! region alone, where it is at every byte in one state; what it does behind the byte with which it leaves is walked. A region is
//! *closed* if its lexeme can always come back, or can only be ignored: strings and white space, which many
//! grammars have in common. What was found is kept beside the vocabulary.
//!
//! Two ways of leaving are alike, wherever in the region they begin, if the byte ends a lexeme which nothing can go on with
//! in the same entry of the lexer ([`Way::Final`]), or if it comes after a lexeme with the same candidates
//! ([`Way::After`]): whether that holds of a lexer is checked when one of its regions is found.

use super::horizon::{Horizons, Steps};
use super::walk::stays_on_characters;
use crate::bits;
use crate::grammar::relation::Relation;
use crate::lexer::{Alternative, DEAD_ENTRY, Entry, NONE, WatchedLexer};
use crate::vocab::{ByteSet, Trie};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// States of the largest regions that are looked at.
const MOST_STATES: usize = 1 << 15;
/// States of the largest white space that is kept.
const MOST_KEPT: usize = 1024;

/// What a byte does in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Way {
    /// Leads to a state of the region.
    Inside(u32),
    /// Leads nowhere, or, if something ended before the byte, where the grammar says; by candidate set.
    After(u32),
    /// Ends a lexeme; by entry.
    Final(u32),
}

/// A state that accepts nothing, among candidate sets.
const NOTHING: u32 = 0;

/// All that tells regions apart. States, and what is pending in them, are numbered as they are met.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Shape {
    byte_class: Box<[u8]>,
    /// By state and class.
    ways: Box<[Way]>,
    live: Box<[u32]>,
}

/// Tokens that do the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    /// First token.
    pub lo: u32,
    /// Past the last.
    pub hi: u32,
    /// State of the region that they end in, or leave from.
    pub state: u32,
    /// Trie node at which the first of them leaves, or `NONE`; the others do there or at siblings that come next.
    pub node: u32,
}

/// How the events of one state differ from another's.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// Tokens of the other that do something else.
    pub lost: Vec<(u32, u32)>,
    /// What they do.
    pub own: Vec<Event>,
}

impl Differences {
    /// Add tokens of the other, to the last ones if those are not among the first `begun`.
    fn lose(&mut self, begun: usize, lo: u32, hi: u32) {
        match self.lost[begun..].last_mut() {
            Some(last) if last.1 == lo => last.1 = hi,
            _ => self.lost.push((lo, hi)),
        }
    }
}

/// A region.
#[derive(Debug)]
pub(super) struct Region {
    shape: Shape,
    /// How many classes of bytes there are.
    classes: usize,
    is_closed: bool,
    /// Tokens by the class of their first byte.
    class_tokens: OnceLock<Box<[u32]>>,
    /// What tokens do from the first state.
    events: OnceLock<Box<[Event]>>,
    differences: Mutex<FxHashMap<(u32, u32), Arc<Differences>>>,
    horizons: OnceLock<Horizons>,
    /// Bytes under which each state stays as it is, and whether characters beyond ASCII lead back to it.
    staying: Box<[OnceLock<(ByteSet, bool)>]>,
}

/// A region as a lexer has it.
#[derive(Debug)]
pub(super) struct Place {
    pub region: Arc<Region>,
    /// The lexer's states, and which of them each is.
    pub states: Vec<u32>,
    pub local: FxHashMap<u32, u32>,
}

/// Regions that were found: closed ones, and others, of which fewer are kept. When there are many, they are found anew.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    closed: Known,
    open: Known,
}

type Known = Mutex<FxHashMap<Shape, Arc<Region>>>;

impl Regions {
    const MOST_CLOSED: usize = 64;
    const MOST_OPEN: usize = 16;

    fn get(&self, shape: Shape, is_closed: bool) -> Arc<Region> {
        let (known, most) = match is_closed {
            true => (&self.closed, Self::MOST_CLOSED),
            false => (&self.open, Self::MOST_OPEN),
        };
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(region) = known.get(&shape) {
            return Arc::clone(region);
        }
        if known.len() == most {
            known.clear();
        }
        let region = Arc::new(Region::new(shape.clone(), is_closed));
        known.insert(shape, Arc::clone(&region));
        region
    }

    /// The region of a state; `None` if it is large, or if ways of leaving are not alike, or if lexemes that are not ignored
    /// go on with few bytes, fewer than `wide`.
    pub(super) fn find(&self, lexer: &WatchedLexer, x: u32, wide: u32) -> Option<Place> {
        let (states, ids, is_closed) = reached(lexer, x, wide)?;
        let columns = Columns::of(lexer, &states, &ids)?;
        let local = states.iter().copied().zip(0..).collect();
        let live = numbered(states.iter().map(|&x| lexer.live[x as usize]));
        let (byte_class, ways) = columns.shape(lexer, states.len());
        let shape = Shape { byte_class, ways: ways.into(), live };
        Some(Place { region: self.get(shape, is_closed), states, local })
    }
}

/// The state inside of the lexeme that an entry leads to, if that is all it does.
fn inside(lexer: &WatchedLexer, entry: u32) -> Option<u32> {
    match &lexer.entries[entry as usize][..] {
        [only] if only.emit == [NONE; 2] => Some(only.next),
        _ => None,
    }
}

/// Whether a lexeme ends with the byte, and nothing else.
fn ends(lexer: &WatchedLexer, way: &Alternative) -> bool {
    way.emit[0] != NONE && way.emit[1] == NONE && lexer.live[way.next as usize] == NONE
}

/// The states of the region of `x`, if it is not large, which of them each state is, and whether it is closed.
fn reached(lexer: &WatchedLexer, x: u32, wide: u32) -> Option<(Vec<u32>, Vec<u32>, bool)> {
    let row = |x: u32| &lexer.steps[x as usize * lexer.classes..][..lexer.byte_classes()];
    let ignored = lexer.sets.sets[*lexer.live.get(x as usize).filter(|live| **live != NONE)? as usize].terms.is_empty();
    let bytes = |class: usize| lexer.byte_class.iter().filter(|&&c| usize::from(c) == class).count();
    let goes_on = row(x).iter().enumerate().filter(|(_, entry)| inside(lexer, **entry).is_some());
    if !ignored && goes_on.map(|(class, _)| bytes(class)).sum::<usize>() < wide as usize {
        return None;
    }
    let mut states = vec![x];
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut ids = vec![NONE; lexer.state_count()];
    ids[x as usize] = 0;
    let mut done = 0;
    while done < states.len() {
        if lexer.watched[states[done] as usize] {
            return None;
        }
        let mut last = NONE;
        for &entry in row(states[done]) {
            let Some(next) = inside(lexer, entry).filter(|next| *next != last) else { continue };
            last = next;
            let id = &mut ids[next as usize];
            if *id == NONE {
                *id = states.len() as u32;
                states.push(next);
            }
            edges.push((*id, done as u32));
        }
        if states.len() > MOST_STATES {
            return None;
        }
        done += 1;
    }
    let is_closed = ignored && states.len() <= MOST_KEPT || all_reach_first(states.len(), &edges);
    Some((states, ids, is_closed))
}

/// Whether the first node is reached from all, given the edges backwards.
fn all_reach_first(count: usize, edges: &[(u32, u32)]) -> bool {
    let sources = Relation::from_pairs(count, edges);
    let (mut seen, mut pending, mut found) = (vec![false; count], vec![0], 0);
    while let Some(node) = pending.pop() {
        if !std::mem::replace(&mut seen[node as usize], true) {
            found += 1;
            pending.extend(sources.row(node as usize));
        }
    }
    found == count
}

/// The ways of a region's states by the lexer's classes.
struct Columns(Vec<Vec<Way>>);

impl Columns {
    fn of(lexer: &WatchedLexer, states: &[u32], ids: &[u32]) -> Option<Self> {
        let mut cands: FxHashMap<u32, u32> = FxHashMap::from_iter([(NONE, NOTHING)]);
        let mut finals: FxHashMap<u32, u32> = FxHashMap::default();
        // The entry of each class after each set of candidates.
        let mut after: Vec<Vec<Option<u32>>> = Vec::new();
        let mut columns: Vec<Vec<Way>> = vec![Vec::with_capacity(states.len()); lexer.byte_classes()];
        for &x in states {
            let next = cands.len() as u32;
            let cand = *cands.entry(lexer.cand[x as usize]).or_insert(next);
            after.resize(cands.len(), vec![None; lexer.byte_classes()]);
            for (class, column) in columns.iter_mut().enumerate() {
                let entry = lexer.steps[x as usize * lexer.classes + class];
                let ways = &lexer.entries[entry as usize];
                column.push(if let Some(next) = inside(lexer, entry) {
                    Way::Inside(ids[next as usize])
                } else if entry != DEAD_ENTRY && ways.iter().all(|a| ends(lexer, a)) {
                    let next = finals.len() as u32;
                    Way::Final(*finals.entry(entry).or_insert(next))
                } else {
                    // What ended before the byte says all, in whichever state; one that accepts nothing is dead.
                    let known = *after[cand as usize][class].get_or_insert(entry);
                    if known != entry
                        || ways.iter().any(|a| a.emit[0] == NONE)
                        || cand == NOTHING && entry != DEAD_ENTRY
                    {
                        return None;
                    }
                    Way::After(cand)
                });
            }
        }
        Some(Columns(columns))
    }

    /// The class of each byte, in the order of their first bytes, and the ways by state and class.
    fn shape(&self, lexer: &WatchedLexer, states: usize) -> (Box<[u8]>, Vec<Way>) {
        let mut ids: FxHashMap<&[Way], u8> = FxHashMap::default();
        let mut of_class = vec![None; self.0.len()];
        let mut columns: Vec<&[Way]> = Vec::new();
        let byte_class = lexer.byte_class.iter().map(|&class| {
            *of_class[usize::from(class)].get_or_insert_with(|| {
                let column = &self.0[usize::from(class)][..];
                *ids.entry(column).or_insert_with(|| {
                    columns.push(column);
                    (columns.len() - 1) as u8
                })
            })
        });
        let byte_class = byte_class.collect();
        (byte_class, (0..states).flat_map(|state| columns.iter().map(move |column| column[state])).collect())
    }
}

/// Things numbered in the order in which they are first met.
fn numbered(things: impl Iterator<Item = u32>) -> Box<[u32]> {
    let mut ids: FxHashMap<u32, u32> = FxHashMap::default();
    let number = |thing| {
        let next = ids.len() as u32;
        *ids.entry(thing).or_insert(next)
    };
    things.map(number).collect()
}

impl Region {
    fn new(shape: Shape, is_closed: bool) -> Self {
        let staying = shape.live.iter().map(|_| OnceLock::new()).collect();
        Region {
            classes: shape.ways.len() / shape.live.len(),
            shape,
            is_closed,
            class_tokens: OnceLock::new(),
            events: OnceLock::new(),
            differences: Mutex::default(),
            horizons: OnceLock::new(),
            staying,
        }
    }

    /// What a state does, by class.
    fn ways(&self, state: u32) -> &[Way] {
        &self.shape.ways[state as usize * self.classes..][..self.classes]
    }

    fn way(&self, state: u32, byte: u8) -> Way {
        self.ways(state)[usize::from(self.shape.byte_class[usize::from(byte)])]
    }

    /// What all tokens do from the first state.
    pub fn events_of_first(&self, trie: &Trie) -> &[Event] {
        self.events.get_or_init(|| {
            let mut events = Vec::new();
            trie.first_bytes().for_each(|child| self.walk(trie, child, 0, &mut events));
            events.into()
        })
    }

    /// How what tokens do from `state` differs from what they do from `base`.
    pub fn differences(&self, trie: &Trie, state: u32, base: u32) -> Arc<Differences> {
        let lock = || self.differences.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&(state, base)) {
            return Arc::clone(known);
        }
        let mut found = Differences::default();
        let mut states = Vec::new();
        let (mine, theirs) = (self.ways(state), self.ways(base));
        for child in trie.first_bytes() {
            let class = usize::from(self.shape.byte_class[usize::from(trie.byte[child as usize])]);
            if mine[class] != theirs[class] {
                self.compare(trie, child, (state, base), &mut states, &mut found);
            }
        }
        let found = Arc::new(found);
        // Those of an open region can be as many as its states, with a part of the vocabulary each.
        if self.is_closed {
            lock().insert((state, base), Arc::clone(&found));
        }
        found
    }

    fn horizons(&self, trie: &Trie) -> &Horizons {
        self.horizons.get_or_init(|| {
            let mut ids: FxHashMap<Way, u32> = FxHashMap::default();
            let mut entries: Vec<Entry> = Vec::new();
            let entry = |way: &Way| {
                *ids.entry(*way).or_insert_with(|| {
                    entries.push(match *way {
                        Way::Inside(next) => Entry::from_elem(Alternative { emit: [NONE; 2], next }, 1),
                        Way::After(NOTHING) => Entry::new(),
                        Way::After(set) => Entry::from_elem(Alternative { emit: [set, NONE], next: 0 }, 1),
                        Way::Final(entry) => Entry::from_elem(Alternative { emit: [entry, 0], next: 0 }, 1),
                    });
                    entries.len() as u32 - 1
                })
            };
            let rows: Vec<u32> = self.shape.ways.iter().map(entry).collect();
            let steps = Steps { entries: &entries, rows: &rows, width: self.classes, used: self.classes };
            Horizons::of(steps, self.shape.live.iter().map(|live| (*live, 0)), trie.height[0])
        })
    }

    /// Add what the tokens below `top` do, with `above` as the state before its byte.
    pub fn walk(&self, trie: &Trie, top: u32, above: u32, events: &mut Vec<Event>) {
        crate::control::check();
        // Events of one walk are not joined with those before: some may not be asked for.
        let begun = events.len();
        let (first_depth, last) = (trie.depth[top as usize] as usize, trie.end[top as usize]);
        let mut states: Vec<u32> = vec![above];
        // Where the last subtree ends whose tokens leave.
        let mut left = 0;
        let mut node = top;
        while node < last {
            let depth = trie.depth[node as usize] as usize - first_depth;
            let state = states[depth];
            let tokens = trie.tokens_of(node);
            let end = trie.end[node as usize];
            node = match self.way(state, trie.byte[node as usize]) {
                Way::Inside(to) => {
                    let (hi, next) = match self.stays_below(trie, node, to) {
                        true => (tokens.end, end),
                        false => (tokens.start + u32::from(trie.token_at(node).is_some()), node + 1),
                    };
                    states.truncate(depth + 1);
                    states.push(to);
                    self.end_in(to, (tokens.start, hi), begun, events);
                    next
                }
                Way::After(NOTHING) => end,
                Way::After(_) | Way::Final(_) => {
                    let event = Event { lo: tokens.start, hi: tokens.end, state, node };
                    match events[begun..].last_mut() {
                        Some(last) if left == node && self.leave_together(trie, last, &event) => last.hi = event.hi,
                        _ => events.push(event),
                    }
                    left = end;
                    end
                }
            };
        }
    }

    /// How many tokens do the same in two states, as far as so many bytes after the first can show. Those count that leave
    /// neither at once.
    pub fn agreement<const N: usize>(&self, trie: &Trie, state: u32, other: u32, lengths: [u32; N]) -> [u32; N] {
        let horizons = self.horizons(trie);
        let levels = lengths.map(|length| horizons.level(length));
        let mut found = [0; N];
        for ((a, b), &tokens) in self.ways(state).iter().zip(self.ways(other)).zip(self.class_tokens(trie)) {
            match (*a, *b) {
                (Way::After(_), _) => {}
                (a, b) if a == b => found.iter_mut().for_each(|found| *found += tokens),
                (Way::Inside(a), Way::Inside(b)) => {
                    for (found, level) in found.iter_mut().zip(levels) {
                        if level.is_some_and(|level| horizons.state(level, a) == horizons.state(level, b)) {
                            *found += tokens;
                        }
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// Tokens that do not leave a state at once.
    pub fn staying_tokens(&self, trie: &Trie, state: u32) -> u32 {
        let ways = self.ways(state).iter().zip(self.class_tokens(trie));
        ways.filter(|(way, _)| !matches!(way, Way::After(_))).map(|(_, tokens)| tokens).sum()
    }

    /// Tokens that begin with a byte of each class.
    fn class_tokens(&self, trie: &Trie) -> &[u32] {
        self.class_tokens.get_or_init(|| {
            let mut tokens = vec![0; self.ways(0).len()];
            for child in trie.first_bytes() {
                let class = self.shape.byte_class[usize::from(trie.byte[child as usize])];
                tokens[usize::from(class)] += trie.tokens_of(child).len() as u32;
            }
            tokens.into()
        })
    }

    /// Add how what the tokens below `top` do from `mine` differs from what they do from `theirs`; `states` is room for those
    /// on the way.
    fn compare(&self, trie: &Trie, top: u32, above: (u32, u32), states: &mut Vec<(u32, u32)>, found: &mut Differences) {
        crate::control::check();
        let horizons = self.horizons(trie);
        // Those below one first byte are not joined with those before: some may not be asked for.
        let begun = (found.lost.len(), found.own.len());
        states.clear();
        states.push(above);
        let mut node = top;
        while node < trie.end[top as usize] {
            let depth = trie.depth[node as usize] as usize - 1;
            let ((mine, theirs), byte) = (states[depth], trie.byte[node as usize]);
            let (tokens, end) = (trie.tokens_of(node), trie.end[node as usize]);
            let (to, other) = match (self.way(mine, byte), self.way(theirs, byte)) {
                (a, b) if a == b => {
                    node = end;
                    continue;
                }
                (Way::Inside(to), Way::Inside(other)) => (to, other),
                (a, b) => {
                    match a {
                        Way::After(NOTHING) => {}
                        Way::Inside(_) => self.walk(trie, node, mine, &mut found.own),
                        _ => found.own.push(Event { lo: tokens.start, hi: tokens.end, state: mine, node }),
                    }
                    if b != Way::After(NOTHING) {
                        found.lose(begun.0, tokens.start, tokens.end);
                    }
                    node = end;
                    continue;
                }
            };
            let level = horizons.level(trie.height[node as usize]);
            if level.is_some_and(|level| horizons.state(level, to) == horizons.state(level, other)) {
                node = end;
                continue;
            }
            let (hi, next) = match self.stays_below(trie, node, to) && self.stays_below(trie, node, other) {
                true => (tokens.end, end),
                false => (tokens.start + u32::from(trie.token_at(node).is_some()), node + 1),
            };
            if tokens.start < hi && self.shape.live[to as usize] != self.shape.live[other as usize] {
                found.lose(begun.0, tokens.start, hi);
                self.end_in(to, (tokens.start, hi), begun.1, &mut found.own);
            }
            states.truncate(depth + 1);
            states.push((to, other));
            node = next;
        }
    }

    /// Add tokens that end in a state, to the last event if they come next and do the same, unless it is of the first `begun`.
    fn end_in(&self, state: u32, (lo, hi): (u32, u32), begun: usize, events: &mut Vec<Event>) {
        let live = |state: u32| self.shape.live[state as usize];
        match events[begun..].last_mut() {
            Some(last) if last.hi == lo && last.node == NONE && live(last.state) == live(state) => last.hi = hi,
            _ if lo < hi => events.push(Event { lo, hi, state, node: NONE }),
            _ => {}
        }
    }

    /// Whether tokens leave the region after the same, at siblings, of which the next follows the last of those so far.
    fn leave_together(&self, trie: &Trie, event: &Event, next: &Event) -> bool {
        let way = |event: &Event| self.way(event.state, trie.byte[event.node as usize]);
        let depth = |event: &Event| trie.depth[event.node as usize];
        let after = |event: &Event| matches!(way(event), Way::After(_));
        event.node != NONE && depth(event) == depth(next) && after(event) && way(event) == way(next)
    }

    /// Whether every byte below a node leaves a state as it is, or every character leads back to it with the same pending.
    fn stays_below(&self, trie: &Trie, node: u32, state: u32) -> bool {
        let stays = |byte: u8| self.way(state, byte) == Way::Inside(state);
        let staying = || {
            self.staying[state as usize].get_or_init(|| {
                let mut bytes: ByteSet = [0; 4];
                (0..=255u8).filter(|&b| stays(b)).for_each(|b| bits::insert(&mut bytes, b.into()));
                let step = |from: u32, byte: u8| match self.way(from, byte) {
                    Way::Inside(to) if self.shape.live[to as usize] == self.shape.live[state as usize] => Some(to),
                    _ => None,
                };
                (bytes, stays_on_characters(state, step))
            })
        };
        trie.stays_below(node, stays, || staying().0, || staying().1)
    }
}
