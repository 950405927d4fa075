//! The watched lexer: the lexer DFA with delayed emission and backtracking made explicit.
//!
//! A state is x = (q, W): a DFA state (which knows its lexer group) and the watchers, DFA states in which a longer match may
//! still come that would undo an emission already made. W is nearly always empty. State 0 is the start of the text. A step
//! has a main alternative and short ones, one for each group that the next lexeme can be of: which, only the LR state on
//! top after the shift can tell, so an emission says which group it expects. An alternative has up to two emissions: of
//! the lexeme that ended before the byte, and of a lexeme that is this one byte and cannot go on.
//!
//! Invariants
//! 1. An alternative exists only if it can matter: what is pending in its target can still become a terminal that may
//!    follow what it emitted, or an ignored one. (The parser would refuse the others; leaving them out keeps the states few.)
//! 2. Candidate and live sets hold only terminals that some stack can shift; ignored ones are a flag.
//! 3. `live` is after trap removal ([`super::separability`]).

use super::DEAD;
use super::groups::GroupedDfa;
use crate::bits;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// "Nothing is emitted".
pub const NONE: u32 = u32::MAX;

/// What the lexer needs to know of the terminals. Sets have a bit for every terminal and one for the end of input.
#[derive(Debug, Clone)]
pub struct TerminalFacts {
    /// Number of terminals; the end's bit.
    pub count: usize,
    /// Ignored terminals.
    pub ignored: Vec<u64>,
    /// Terminals that some LR state shifts, ignored ones left out.
    pub usable: Vec<u64>,
    /// What a sentence can begin with; the end, if the empty text is one.
    pub begin: Vec<u64>,
    /// What may follow each terminal in a sentence.
    pub follow: Vec<Vec<u64>>,
    /// Groups that the next lexeme can be of after each terminal, with the terminals of the rows in question.
    pub after: Vec<Vec<(u32, Vec<u64>)>>,
}

impl TerminalFacts {
    /// Terminals of the rows of group `group` that shifting `t` can lead to; `None` if it leads to none.
    pub fn rows_after(&self, t: u32, group: u32) -> Option<&[u64]> {
        self.after[t as usize].iter().find(|(g, _)| *g == group).map(|(_, rows)| &rows[..])
    }
}

/// What a lexeme turned out to be: some of its candidates, and the group that the next lexeme is then of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Emission {
    /// Candidates: usable ones, or, as a set without members, ignored ones.
    pub set: u32,
    /// Group, or `NONE` after ignored ones, which change nothing.
    pub group: u32,
}

/// A set of terminals as the runtime stores it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermSet {
    /// Usable members, ascending.
    pub terms: Vec<u32>,
    /// Whether an ignored terminal is a member.
    pub ignored: bool,
}

/// Interned [`TermSet`]s: candidate sets and live sets.
#[derive(Debug, Clone, Default)]
pub struct TermSets {
    /// The sets by id.
    pub sets: Vec<TermSet>,
    ids: FxHashMap<TermSet, u32>,
}

impl TermSets {
    /// Id of a set.
    pub fn intern(&mut self, set: TermSet) -> u32 {
        if let Some(&id) = self.ids.get(&set) {
            return id;
        }
        let id = self.sets.len() as u32;
        self.sets.push(set.clone());
        self.ids.insert(set, id);
        id
    }
}

/// One way a step can go.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Alternative {
    /// Emissions, in order; `NONE` where nothing is emitted.
    pub emit: [u32; 2],
    /// Next state.
    pub next: u32,
}

/// All ways a step can go; empty if the branch dies.
pub type Entry = SmallVec<[Alternative; 1]>;

/// Entry that leads nowhere.
pub const DEAD_ENTRY: u32 = 0;

/// The watched lexer.
#[derive(Debug)]
pub struct WatchedLexer {
    /// Byte to class.
    pub byte_class: [u8; 256],
    /// Number of classes.
    pub classes: usize,
    /// Entry of each state and class.
    pub steps: Vec<u32>,
    /// Entries; [`DEAD_ENTRY`] is empty.
    pub entries: Vec<Entry>,
    /// Candidate set if the lexeme ended here, or `NONE`.
    pub cand: Vec<u32>,
    /// The same as emissions, ignored candidates left out.
    pub cand_emissions: Vec<SmallVec<[u32; 1]>>,
    /// State in which a lexeme of each group starts without watchers; `NONE` if none ever does.
    pub starts: Vec<u32>,
    /// Group of each state.
    pub group: Vec<u32>,
    /// Live set, or `NONE` between lexemes.
    pub live: Vec<u32>,
    /// All sets.
    pub sets: TermSets,
    /// All emissions.
    pub emissions: Vec<Emission>,
    /// States with watchers.
    pub watched_states: usize,
}

/// More states than the engine addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyStates(
    /// The limit.
    pub usize,
);

impl WatchedLexer {
    /// Number of states.
    pub fn state_count(&self) -> usize {
        self.cand.len()
    }

    /// Entry of a state and byte.
    pub fn entry(&self, state: u32, byte: u8) -> &Entry {
        &self.entries[self.entry_id(state, byte) as usize]
    }

    /// Id of the entry of a state and byte.
    pub fn entry_id(&self, state: u32, byte: u8) -> u32 {
        self.steps[state as usize * self.classes + self.byte_class[byte as usize] as usize]
    }
}

/// Where a lexeme's end leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct After {
    /// Whether it is for ignored candidates; else it is for those that can be followed by a lexeme of `group`.
    pub ignored: bool,
    /// Group of the next lexeme.
    pub group: u32,
    /// State in which it starts, or, for a short way, is.
    pub state: u32,
}

/// Ends of a lexeme, by candidates and next group.
pub(super) type Afters = SmallVec<[After; 1]>;

/// The main way on from a state under one byte class, or what a byte starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Goes {
    /// Nowhere.
    Dead,
    /// Inside the lexeme.
    To(u32),
    /// The lexeme ends with this byte, in that DFA state; `Afters` is not empty.
    Ends(u32, Afters),
}

impl Goes {
    /// Names the end of a lexeme: its DFA state, and a state from which the watchers can be told.
    pub(super) fn end(&self) -> Option<(u32, u32)> {
        match self {
            Goes::Ends(p, afters) => Some((*p, afters[0].state)),
            _ => None,
        }
    }
}

/// A short way on: the lexeme ended before the byte, which starts the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Short {
    pub ignored: bool,
    pub group: u32,
    pub goes: Goes,
}

/// All states that bytes can lead to, before anything is known to be a trap.
pub(super) struct Raw<'a> {
    pub dfa: &'a GroupedDfa,
    pub facts: &'a TerminalFacts,
    pub width: usize,
    /// DFA state and watchers of each state.
    pub states: Vec<(u32, Box<[u32]>)>,
    /// Distinct steps of each state, delimited by `step_start`.
    steps: Vec<RawStep>,
    step_start: Vec<usize>,
    /// Step of each state and byte class.
    step_of: Vec<u32>,
    /// Usable and ignored candidates of each DFA state, as bits.
    pub cand: Vec<Box<[u64]>>,
    /// What a lexeme can become from each DFA state, watchers aside.
    unwatched: Vec<Vec<u64>>,
    /// First state that each state was met from, with the byte class: gives a shortest text.
    pub met: Vec<(u32, u8)>,
    /// Number of each DFA state without watchers, or `NONE`.
    plain: Vec<u32>,
    ids: FxHashMap<(u32, Box<[u32]>), u32>,
    /// Whether a lexeme cannot go on from each DFA state, so that it is emitted at once.
    is_final: Vec<bool>,
}

/// A step: the main way on, and the short ones.
type RawStep = (Goes, SmallVec<[Short; 1]>);

impl<'a> Raw<'a> {
    pub(super) fn explore(
        dfa: &'a GroupedDfa,
        facts: &'a TerminalFacts,
        max_states: usize,
    ) -> Result<Self, TooManyStates> {
        let width = bits::words(facts.count + 1);
        let mut known = facts.usable.clone();
        bits::unite(&mut known, &facts.ignored);
        let cand: Vec<Box<[u64]>> = (0..dfa.state_count() as u32)
            .map(|q| {
                let mut set = vec![0; width];
                for &t in &dfa.candidates[q as usize] {
                    if bits::has(&known, t) {
                        bits::insert(&mut set, t);
                    }
                }
                set.into_boxed_slice()
            })
            .collect();
        let mut raw = Raw {
            dfa,
            facts,
            width,
            states: Vec::new(),
            steps: Vec::new(),
            step_start: vec![0],
            step_of: Vec::new(),
            cand,
            unwatched: Vec::new(),
            met: Vec::new(),
            plain: vec![NONE; dfa.state_count()],
            ids: FxHashMap::default(),
            is_final: dfa.next.chunks_exact(dfa.class_count).map(|row| row.iter().all(|&to| to == DEAD)).collect(),
        };
        let live_unwatched = raw.live_of_dfa();
        raw.state(dfa.starts[0], Box::new([]), (0, 0));
        let mut x = 0;
        while x < raw.states.len() {
            crate::control::check();
            for class in 0..dfa.class_count {
                let step = raw.step(x as u32, class, &live_unwatched);
                let from = raw.step_start[x];
                let known = raw.steps[from..].iter().position(|known| *known == step);
                raw.step_of.push((from + known.unwrap_or(raw.steps.len() - from)) as u32);
                if known.is_none() {
                    raw.steps.push(step);
                }
            }
            raw.step_start.push(raw.steps.len());
            if raw.states.len() > max_states {
                return Err(TooManyStates(max_states));
            }
            x += 1;
        }
        raw.unwatched = live_unwatched;
        Ok(raw)
    }

    fn state(&mut self, q: u32, watchers: Box<[u32]>, from: (u32, u8)) -> u32 {
        let id = self.states.len() as u32;
        if watchers.is_empty() {
            if self.plain[q as usize] != NONE {
                return self.plain[q as usize];
            }
            self.plain[q as usize] = id;
            self.states.push((q, watchers));
        } else {
            let key = (q, watchers);
            if let Some(&id) = self.ids.get(&key) {
                return id;
            }
            self.states.push(key.clone());
            self.ids.insert(key, id);
        }
        self.met.push(from);
        id
    }

    fn delta(&self, q: u32, class: usize) -> Option<u32> {
        let to = self.dfa.next[q as usize * self.dfa.class_count + class];
        (to != DEAD).then_some(to)
    }

    fn accepts(&self, q: u32) -> bool {
        !self.dfa.candidates[q as usize].is_empty()
    }

    /// Candidates of every DFA state reachable from each, watchers aside.
    fn live_of_dfa(&self) -> Vec<Vec<u64>> {
        let n = self.dfa.state_count();
        let edges =
            (0..n as u32).flat_map(|q| (0..self.dfa.class_count).filter_map(move |c| Some((q, self.delta(q, c)?))));
        propagate(self.cand.iter().map(|c| c.to_vec()).collect(), edges)
    }

    fn step(&mut self, x: u32, class: usize, live: &[Vec<u64>]) -> RawStep {
        let (q, ref watchers) = self.states[x as usize];
        let (from, longer) = ((x, class as u8), self.delta(q, class));
        if watchers.is_empty() && (bits::is_empty(&self.cand[q as usize]) || longer.is_some_and(|p| self.accepts(p))) {
            let main = longer.map_or(Goes::Dead, |p| self.arrive(p, Box::default(), from, live));
            return (main, SmallVec::new());
        }
        let watchers = watchers.clone();
        let mut advanced: Vec<u32> = Vec::with_capacity(watchers.len() + 1);
        for &w in &watchers {
            match self.delta(w, class) {
                None => {}
                Some(w) if self.accepts(w) => return (Goes::Dead, SmallVec::new()),
                Some(w) => advanced.push(w),
            }
        }
        let sorted = |mut watchers: Vec<u32>| {
            watchers.sort_unstable();
            watchers.dedup();
            watchers.into_boxed_slice()
        };
        let main = match longer {
            Some(p) => self.arrive(p, sorted(advanced.clone()), from, live),
            None => Goes::Dead,
        };
        let emitted = self.cand[q as usize].clone();
        let mut shorts: SmallVec<[Short; 1]> = SmallVec::new();
        if !bits::is_empty(&emitted) && longer.is_none_or(|p| !self.accepts(p)) {
            advanced.extend(longer);
            let watchers = sorted(advanced);
            for (ignored, group) in self.next_groups(&emitted, self.dfa.group[q as usize]) {
                let Some(r) = self.delta(self.dfa.starts[group as usize], class) else { continue };
                if ignored || self.may_follow(&emitted, &live[r as usize]) {
                    let goes = self.arrive(r, watchers.clone(), from, live);
                    if goes != Goes::Dead {
                        shorts.push(Short { ignored, group, goes });
                    }
                }
            }
        }
        (main, shorts)
    }

    /// What it means to come to a DFA state inside a lexeme.
    fn arrive(&mut self, p: u32, watchers: Box<[u32]>, from: (u32, u8), live: &[Vec<u64>]) -> Goes {
        if bits::is_empty(&live[p as usize]) {
            return Goes::Dead;
        }
        if !self.is_final[p as usize] {
            return Goes::To(self.state(p, watchers, from));
        }
        let candidates = self.cand[p as usize].clone();
        let groups = self.next_groups(&candidates, self.dfa.group[p as usize]);
        let after = groups.into_iter().map(|(ignored, group)| {
            let state = self.state(self.dfa.starts[group as usize], watchers.clone(), from);
            After { ignored, group, state }
        });
        let afters: Afters = after.collect();
        if afters.is_empty() { Goes::Dead } else { Goes::Ends(p, afters) }
    }

    /// Groups that the next lexeme can be of after these candidates of a lexeme of `group`: first the same one, if there
    /// are ignored candidates, then those after the others.
    fn next_groups(&self, candidates: &[u64], group: u32) -> SmallVec<[(bool, u32); 2]> {
        let mut groups: SmallVec<[(bool, u32); 2]> = SmallVec::new();
        if bits::meets(candidates, &self.facts.ignored) {
            groups.push((true, group));
        }
        let from = groups.len();
        for t in bits::iter(candidates).filter(|&t| bits::has(&self.facts.usable, t)) {
            groups.extend(self.facts.after[t as usize].iter().map(|(g, _)| (false, *g)));
        }
        groups[from..].sort_unstable();
        groups.dedup();
        groups
    }

    /// Whether a state is between lexemes.
    pub(super) fn is_start(&self, x: u32) -> bool {
        let q = self.states[x as usize].0;
        self.dfa.starts[self.dfa.group[q as usize] as usize] == q
    }

    /// What a lexeme can become from a DFA state, watchers aside.
    pub(super) fn live_at(&self, q: u32) -> &[u64] {
        &self.unwatched[q as usize]
    }

    pub(super) fn group_of(&self, x: u32) -> u32 {
        self.dfa.group[self.states[x as usize].0 as usize]
    }

    /// Whether some terminal of `next` can come after some usable candidate of `emitted`.
    pub(super) fn may_follow(&self, emitted: &[u64], next: &[u64]) -> bool {
        if bits::meets(next, &self.facts.ignored) {
            return !bits::is_empty(emitted);
        }
        let usable = bits::iter(emitted).filter(|&t| bits::has(&self.facts.usable, t));
        usable.into_iter().any(|t| bits::meets(&self.facts.follow[t as usize], next))
    }

    pub(super) fn cand_of(&self, x: u32) -> &[u64] {
        &self.cand[self.states[x as usize].0 as usize]
    }

    /// The distinct steps of a state.
    pub(super) fn steps_of(&self, x: u32) -> impl Iterator<Item = (&Goes, &SmallVec<[Short; 1]>)> {
        let steps = &self.steps[self.step_start[x as usize]..self.step_start[x as usize + 1]];
        steps.iter().map(|(main, short)| (main, short))
    }

    /// A shortest text that leads to a state, with one byte per class chosen.
    pub(super) fn text(&self, mut x: u32) -> Vec<u8> {
        let mut text = Vec::new();
        while x != 0 {
            let (from, class) = self.met[x as usize];
            let bytes = (0..=255u8).filter(|&b| self.dfa.byte_class[b as usize] == class);
            text.extend(bytes.min_by_key(|b| (!b.is_ascii_graphic(), *b)));
            x = from;
        }
        text.reverse();
        text
    }

    /// The lexer with what `live` leaves alive, states renumbered in breadth-first order. `ended` has the candidates of
    /// lexemes that end at once. What is a trap is not emitted either: nothing could come after it.
    pub(super) fn finish(self, live: &[Vec<u64>], ended: &FxHashMap<(u32, u32), Vec<u64>>) -> WatchedLexer {
        let mut finish = Finish {
            number: vec![NONE; self.states.len()],
            order: VecDeque::from([0]),
            count: 1,
            emission_ids: FxHashMap::default(),
            out: WatchedLexer {
                byte_class: self.dfa.byte_class,
                classes: self.dfa.class_count,
                steps: Vec::new(),
                entries: vec![Entry::new()],
                cand: Vec::new(),
                cand_emissions: Vec::new(),
                starts: vec![NONE; self.dfa.starts.len()],
                group: Vec::new(),
                live: Vec::new(),
                sets: TermSets::default(),
                emissions: Vec::new(),
                watched_states: 0,
            },
            raw: &self,
            live,
            ended,
        };
        finish.number[0] = 0;
        let mut entry_ids: FxHashMap<Entry, u32> = FxHashMap::from_iter([(Entry::new(), DEAD_ENTRY)]);
        while let Some(x) = finish.order.pop_front() {
            crate::control::check();
            let emitted: Vec<u64> = self.cand_of(x).iter().zip(&live[x as usize]).map(|(c, l)| c & l).collect();
            let first = self.step_start[x as usize];
            let entries = self.steps[first..self.step_start[x as usize + 1]].iter().map(|step| {
                let entry = finish.entry(step, &emitted);
                let next = finish.out.entries.len() as u32;
                *entry_ids.entry(entry).or_insert_with_key(|entry| {
                    finish.out.entries.push(entry.clone());
                    next
                })
            });
            let entries: SmallVec<[u32; 16]> = entries.collect();
            let steps = &self.step_of[x as usize * self.dfa.class_count..][..self.dfa.class_count];
            finish.out.steps.extend(steps.iter().map(|&step| entries[step as usize - first]));
            let (_, watchers) = &self.states[x as usize];
            let cand = self.set(&mut finish.out.sets, &emitted);
            let emissions = self.next_groups(&emitted, self.group_of(x)).into_iter().filter(|(ignored, _)| !ignored);
            let emissions = emissions.map(|(ignored, group)| finish.emission(&emitted, ignored, group)).collect();
            let pending = if self.is_start(x) { NONE } else { self.set(&mut finish.out.sets, &live[x as usize]) };
            let out = &mut finish.out;
            out.cand.push(cand);
            out.cand_emissions.push(emissions);
            out.live.push(pending);
            out.group.push(self.group_of(x));
            out.watched_states += usize::from(!watchers.is_empty());
            if self.is_start(x) && watchers.is_empty() {
                out.starts[self.group_of(x) as usize] = finish.number[x as usize];
            }
        }
        finish.out
    }

    /// Intern a set of bits; `NONE` for the empty one.
    fn set(&self, sets: &mut TermSets, set: &[u64]) -> u32 {
        if bits::is_empty(set) {
            return NONE;
        }
        let ignored = bits::meets(set, &self.facts.ignored);
        let terms = bits::iter(set).filter(|&t| bits::has(&self.facts.usable, t)).collect();
        sets.intern(TermSet { terms, ignored })
    }
}

/// A watched lexer in the making.
struct Finish<'r, 'a> {
    raw: &'r Raw<'a>,
    live: &'r [Vec<u64>],
    ended: &'r FxHashMap<(u32, u32), Vec<u64>>,
    /// New number of each raw state.
    number: Vec<u32>,
    order: VecDeque<u32>,
    count: u32,
    emission_ids: FxHashMap<Emission, u32>,
    out: WatchedLexer,
}

impl Finish<'_, '_> {
    fn entry(&mut self, (main, short): &RawStep, emitted: &[u64]) -> Entry {
        let raw = self.raw;
        let mut entry = Entry::new();
        self.go(main, NONE, &mut entry);
        for short in short {
            let next = match &short.goes {
                Goes::To(to) => &self.live[*to as usize],
                Goes::Dead => continue,
                ends => &self.ended[&ends.end().unwrap_or_default()],
            };
            let part = if short.ignored { &raw.facts.ignored } else { &raw.facts.usable };
            let emitted: Vec<u64> = emitted.iter().zip(part).map(|(e, p)| e & p).collect();
            let may = if short.ignored { !bits::is_empty(&emitted) } else { raw.may_follow(&emitted, next) };
            // No candidate may lead to the group any more: traps are not emitted.
            let emission = if may { self.emission(&emitted, short.ignored, short.group) } else { NONE };
            if emission != NONE {
                self.go(&short.goes, emission, &mut entry);
            }
        }
        entry
    }

    /// Add the alternatives of a way on, after an emission or `NONE`.
    fn go(&mut self, goes: &Goes, first: u32, entry: &mut Entry) {
        match goes {
            Goes::Dead => {}
            Goes::To(to) if bits::is_empty(&self.live[*to as usize]) => {}
            Goes::To(to) => {
                let next = self.state(*to);
                entry.push(Alternative { emit: [first, NONE], next });
            }
            Goes::Ends(_, afters) => {
                let candidates = &self.ended[&goes.end().unwrap_or_default()];
                for after in afters {
                    let emission = self.emission(candidates, after.ignored, after.group);
                    if emission != NONE {
                        let next = self.state(after.state);
                        let emit = if first == NONE { [emission, NONE] } else { [first, emission] };
                        entry.push(Alternative { emit, next });
                    }
                }
            }
        }
    }

    fn state(&mut self, raw: u32) -> u32 {
        if self.number[raw as usize] == NONE {
            self.number[raw as usize] = self.count;
            self.count += 1;
            self.order.push_back(raw);
        }
        self.number[raw as usize]
    }

    /// The emission of those candidates that are ignored, or that can be followed by a lexeme of `group`.
    fn emission(&mut self, candidates: &[u64], ignored: bool, group: u32) -> u32 {
        let facts = self.raw.facts;
        let set = if ignored {
            if !bits::meets(candidates, &facts.ignored) {
                return NONE;
            }
            TermSet { terms: Vec::new(), ignored: true }
        } else {
            let leads = |t: u32| bits::has(&facts.usable, t) && facts.rows_after(t, group).is_some();
            let terms: Vec<u32> = bits::iter(candidates).filter(|&t| leads(t)).collect();
            if terms.is_empty() {
                return NONE;
            }
            TermSet { terms, ignored: false }
        };
        let group = if ignored { NONE } else { group };
        let emission = Emission { set: self.out.sets.intern(set), group };
        let next = self.out.emissions.len() as u32;
        *self.emission_ids.entry(emission).or_insert_with(|| {
            self.out.emissions.push(emission);
            next
        })
    }
}

/// Least sets that contain `start` and, along every edge (from, to), what the target's set contains.
pub(super) fn propagate(mut sets: Vec<Vec<u64>>, edges: impl Iterator<Item = (u32, u32)>) -> Vec<Vec<u64>> {
    let mut edges: Vec<(u32, u32)> = edges.filter(|(from, to)| from != to).map(|(from, to)| (to, from)).collect();
    // Byte classes next to each other mostly do the same.
    edges.dedup();
    edges.sort_unstable();
    edges.dedup();
    let starts = edge_starts(&edges, sets.len());
    let mut queue: Vec<u32> = (0..sets.len() as u32).collect();
    let mut queued = vec![true; sets.len()];
    while let Some(to) = queue.pop() {
        queued[to as usize] = false;
        for &(_, from) in &edges[starts[to as usize]..starts[to as usize + 1]] {
            let (a, b) = two(&mut sets, from as usize, to as usize);
            if bits::unite(a, b) && !std::mem::replace(&mut queued[from as usize], true) {
                queue.push(from);
            }
        }
    }
    sets
}

/// Boundaries of each first component in sorted pairs.
pub(super) fn edge_starts(edges: &[(u32, u32)], n: usize) -> Vec<usize> {
    let mut starts = vec![0; n + 1];
    for &(key, _) in edges {
        starts[key as usize + 1] += 1;
    }
    for i in 0..n {
        starts[i + 1] += starts[i];
    }
    starts
}

/// Two different elements, the first mutable.
fn two(sets: &mut [Vec<u64>], a: usize, b: usize) -> (&mut [u64], &[u64]) {
    if a < b {
        let (left, right) = sets.split_at_mut(b);
        (&mut left[a], &right[0])
    } else {
        let (left, right) = sets.split_at_mut(a);
        (&mut right[0], &left[b])
    }
}
