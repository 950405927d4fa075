//! What tokens do inside of lexemes that many grammars have: strings, white space. Found once, kept beside the vocabulary.
//!
//! The *region* of a lexer state is what can be reached from it without an emission. Where a region is small and closed
//! (a lexeme can always come back, or it can only be ignored), a token is taken apart: what it does inside depends on the region
//! alone, so it is kept; what it does behind the byte with which it leaves is the grammar's matter, and is walked.
//!
//! Two ways of leaving are alike, wherever in the region they begin, if the byte ends a lexeme which nothing can go on with
//! in the same entry of the lexer ([`Way::Final`]), or if it comes after a lexeme with the same candidates
//! ([`Way::After`]): whether that holds of a lexer is checked when one of its regions is found.

use super::walk::stays_on_characters;
use crate::grammar::relation::Relation;
use crate::lexer::{Alternative, DEAD_ENTRY, NONE, WatchedLexer};
use crate::vocab::{ByteSet, Trie, utf8};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// States of the largest regions that are looked at.
const MOST_STATES: usize = 256;

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
#[derive(Debug, PartialEq, Eq, Hash)]
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
    /// How many tokens differ.
    pub tokens: u32,
}

/// A region.
#[derive(Debug)]
pub(super) struct Region {
    shape: Shape,
    classes: usize,
    /// What tokens do from each state, by token; made when it is asked for.
    events: Box<[OnceLock<Box<[Event]>>]>,
    differences: Mutex<FxHashMap<(u32, u32), Arc<Differences>>>,
}

/// A region as a lexer has it.
#[derive(Debug)]
pub(super) struct Place {
    pub region: Arc<Region>,
    /// The lexer's states.
    pub states: Vec<u32>,
}

/// Regions that were found. When there are many, they are found anew.
#[derive(Debug, Default)]
pub(crate) struct Regions(Mutex<FxHashMap<Shape, Arc<Region>>>);

impl Regions {
    const MOST: usize = 64;

    fn get(&self, shape: Shape, classes: usize) -> Arc<Region> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(region) = known.get(&shape) {
            return Arc::clone(region);
        }
        if known.len() == Self::MOST {
            known.clear();
        }
        let events = shape.live.iter().map(|_| OnceLock::new()).collect();
        let copy = Shape { byte_class: shape.byte_class.clone(), ways: shape.ways.clone(), live: shape.live.clone() };
        let region = Arc::new(Region { shape, classes, events, differences: Mutex::default() });
        known.insert(copy, Arc::clone(&region));
        region
    }

    /// The region of a state; `None` if it is large, or open, or if ways of leaving are not alike, or if lexemes that are
    /// not ignored go on with few bytes, fewer than `wide`.
    pub(super) fn find(&self, lexer: &WatchedLexer, x: u32, wide: u32) -> Option<Place> {
        let states = reached(lexer, x, wide)?;
        let columns = Columns::of(lexer, &states)?;
        let live = numbered(states.iter().map(|&x| lexer.live[x as usize]));
        let (byte_class, ways) = columns.shape(lexer, states.len());
        let classes = ways.len() / states.len();
        let shape = Shape { byte_class, ways: ways.into(), live };
        Some(Place { region: self.get(shape, classes), states })
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

/// The states of the region of `x`, if it is closed and not large.
fn reached(lexer: &WatchedLexer, x: u32, wide: u32) -> Option<Vec<u32>> {
    let row = |x: u32| &lexer.steps[x as usize * lexer.classes..][..lexer.byte_classes()];
    let ignored = lexer.sets.sets[*lexer.live.get(x as usize).filter(|live| **live != NONE)? as usize].terms.is_empty();
    let bytes = |class: usize| lexer.byte_class.iter().filter(|&&c| usize::from(c) == class).count();
    let goes_on = row(x).iter().enumerate().filter(|(_, entry)| inside(lexer, **entry).is_some());
    if !ignored && goes_on.map(|(class, _)| bytes(class)).sum::<usize>() < wide as usize {
        return None;
    }
    let mut states = vec![x];
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut ids = FxHashMap::from_iter([(x, 0)]);
    let mut done = 0;
    while done < states.len() {
        if lexer.watched[states[done] as usize] {
            return None;
        }
        let mut last = NONE;
        for &entry in row(states[done]) {
            let Some(next) = inside(lexer, entry).filter(|next| *next != last) else { continue };
            last = next;
            let id = *ids.entry(next).or_insert_with(|| {
                states.push(next);
                states.len() as u32 - 1
            });
            edges.push((id, done as u32));
        }
        if states.len() > MOST_STATES {
            return None;
        }
        done += 1;
    }
    (ignored || all_reach_first(states.len(), &edges)).then_some(states)
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
    fn of(lexer: &WatchedLexer, states: &[u32]) -> Option<Self> {
        let ids: FxHashMap<u32, u32> = states.iter().copied().zip(0..).collect();
        let mut cands: FxHashMap<u32, u32> = FxHashMap::from_iter([(NONE, NOTHING)]);
        let mut finals: FxHashMap<u32, u32> = FxHashMap::default();
        let mut after: FxHashMap<(u32, usize), u32> = FxHashMap::default();
        let mut columns: Vec<Vec<Way>> = vec![Vec::with_capacity(states.len()); lexer.byte_classes()];
        for &x in states {
            let next = cands.len() as u32;
            let cand = *cands.entry(lexer.cand[x as usize]).or_insert(next);
            for (class, column) in columns.iter_mut().enumerate() {
                let entry = lexer.steps[x as usize * lexer.classes + class];
                let ways = &lexer.entries[entry as usize];
                column.push(if let Some(next) = inside(lexer, entry) {
                    Way::Inside(ids[&next])
                } else if entry != DEAD_ENTRY && ways.iter().all(|a| ends(lexer, a)) {
                    let next = finals.len() as u32;
                    Way::Final(*finals.entry(entry).or_insert(next))
                } else {
                    // What ended before the byte says all, in whichever state; one that accepts nothing is dead.
                    let known = *after.entry((cand, class)).or_insert(entry);
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
    fn way(&self, state: u32, byte: u8) -> Way {
        self.shape.ways[state as usize * self.classes + usize::from(self.shape.byte_class[usize::from(byte)])]
    }

    /// What tokens do from a state.
    pub fn events(&self, trie: &Trie, state: u32) -> &[Event] {
        self.events[state as usize].get_or_init(|| self.walk(trie, state).into())
    }

    /// How what tokens do from `state` differs from what they do from `base`.
    pub fn differences(&self, trie: &Trie, state: u32, base: u32) -> Arc<Differences> {
        let lock = || self.differences.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&(state, base)) {
            return Arc::clone(known);
        }
        let found = Arc::new(self.compare(trie, self.events(trie, state), self.events(trie, base)));
        lock().insert((state, base), Arc::clone(&found));
        found
    }

    fn walk(&self, trie: &Trie, start: u32) -> Vec<Event> {
        crate::control::check();
        let mut events: Vec<Event> = Vec::new();
        let mut staying: Vec<Option<ByteSet>> = vec![None; self.events.len()];
        let mut staying_on_characters: Vec<Option<bool>> = vec![None; self.events.len()];
        let mut states: Vec<u32> = vec![start];
        // Events of one first byte are not joined with those of another: some may not be asked for.
        let mut of_byte = 0;
        // Where the last subtree ends whose tokens leave.
        let mut left = 0;
        let mut node = 1;
        while (node as usize) < trie.byte.len() {
            let depth = trie.depth[node as usize] as usize;
            let state = states[depth - 1];
            let tokens = trie.tokens_of(node);
            let end = trie.end[node as usize];
            if depth == 1 {
                of_byte = events.len();
            }
            node = match self.way(state, trie.byte[node as usize]) {
                Way::Inside(to) => {
                    let bytes = staying[to as usize].get_or_insert_with(|| self.bytes_staying(to));
                    let leaves: ByteSet = std::array::from_fn(|i| trie.below[node as usize][i] & !bytes[i]);
                    let stays = leaves[0] | leaves[1] == 0
                        && (leaves[2] | leaves[3] == 0
                            || trie.utf8_below[node as usize] >> utf8::BOUNDARY & 1 == 1
                                && *staying_on_characters[to as usize]
                                    .get_or_insert_with(|| self.stays_on_characters(to)));
                    let (hi, next) = match stays {
                        true => (tokens.end, end),
                        false => (tokens.start + u32::from(trie.token_at(node).is_some()), node + 1),
                    };
                    states.truncate(depth);
                    states.push(to);
                    match events[of_byte..].last_mut() {
                        Some(last) if last.hi == tokens.start && self.ends_alike(last, to) => last.hi = hi,
                        _ if tokens.start < hi => events.push(Event { lo: tokens.start, hi, state: to, node: NONE }),
                        _ => {}
                    }
                    next
                }
                Way::After(NOTHING) => end,
                Way::After(_) | Way::Final(_) => {
                    let event = Event { lo: tokens.start, hi: tokens.end, state, node };
                    match events[of_byte..].last_mut() {
                        Some(last) if left == node && self.leave_together(trie, last, &event) => last.hi = event.hi,
                        _ => events.push(event),
                    }
                    left = end;
                    end
                }
            };
        }
        events
    }

    fn ends_alike(&self, event: &Event, state: u32) -> bool {
        event.node == NONE && self.shape.live[event.state as usize] == self.shape.live[state as usize]
    }

    /// Whether tokens leave the region after the same, at siblings, of which the next follows the last of those so far.
    fn leave_together(&self, trie: &Trie, event: &Event, next: &Event) -> bool {
        let way = |event: &Event| self.way(event.state, trie.byte[event.node as usize]);
        let depth = |event: &Event| trie.depth[event.node as usize];
        event.node != NONE
            && depth(event) == depth(next)
            && matches!(way(event), Way::After(_))
            && way(event) == way(next)
    }

    /// Bytes under which a state stays as it is.
    fn bytes_staying(&self, state: u32) -> ByteSet {
        let mut bytes: ByteSet = [0; 4];
        let stays = |byte: &u8| self.way(state, *byte) == Way::Inside(state);
        (0..=255u8).filter(stays).for_each(|byte| bytes[usize::from(byte) / 64] |= 1 << (byte % 64));
        bytes
    }

    /// Whether characters beyond ASCII lead back to a state, with the same pending on the way.
    fn stays_on_characters(&self, state: u32) -> bool {
        stays_on_characters(state, |from, byte| match self.way(from, byte) {
            Way::Inside(to) if self.shape.live[to as usize] == self.shape.live[state as usize] => Some(to),
            _ => None,
        })
    }

    /// Whether the tokens that two events have in common do the same.
    fn alike(&self, trie: &Trie, a: &Event, b: &Event) -> bool {
        if a.node == NONE {
            return self.ends_alike(b, a.state);
        }
        let way = |event: &Event| self.way(event.state, trie.byte[event.node as usize]);
        // They leave at the same node if they do at the same depth.
        b.node != NONE && trie.depth[a.node as usize] == trie.depth[b.node as usize] && way(a) == way(b)
    }

    /// Run through two lists of events side by side.
    fn compare(&self, trie: &Trie, mine: &[Event], theirs: &[Event]) -> Differences {
        let mut out = Differences::default();
        let (mut mine, mut theirs) = (mine.iter().copied().peekable(), theirs.iter().copied().peekable());
        let mut at = 0;
        loop {
            // What is left of the first event of each, and as far as both are the same throughout.
            let cut = |event: Option<&Event>| event.map(|event| Event { lo: event.lo.max(at), ..*event });
            let (own, base) = (cut(mine.peek()), cut(theirs.peek()));
            let begins = |event: &Option<Event>| event.map_or(u32::MAX, |event| event.lo);
            let lo = begins(&own).min(begins(&base));
            if lo == u32::MAX {
                return out;
            }
            let here = |event: Option<Event>| event.filter(|event| event.lo == lo);
            let until = |event: Option<Event>| match event {
                Some(event) if event.lo == lo => event.hi,
                Some(event) => event.lo,
                None => u32::MAX,
            };
            let hi = until(own).min(until(base));
            let (own, base) = (here(own), here(base));
            if !matches!((own, base), (Some(own), Some(base)) if self.alike(trie, &own, &base)) {
                out.tokens += hi - lo;
                out.own.extend(own.map(|own| Event { lo, hi, ..own }));
                out.lost.extend(base.map(|_| (lo, hi)));
            }
            at = hi;
            mine.next_if(|event| event.hi <= at);
            theirs.next_if(|event| event.hi <= at);
        }
    }
}
