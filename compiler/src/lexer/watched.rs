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

use super::counters::{is_first, stays, top_of};
use super::groups::GroupedDfa;
use super::models::{Counts, Distinct, Model, Models};
use super::{DEAD, Moves, chain_of, is_far};
use crate::bits;
use crate::grammar::relation::Relation;
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
    /// Number of classes, those of bytes first, then the symbols.
    pub classes: usize,
    /// How many of them are symbols.
    pub symbols: usize,
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
    /// Whether each state has watchers.
    pub watched: Vec<bool>,
    /// Value from which each chain is counted down.
    pub chains: Vec<u32>,
    /// Moves of the states that count, into what is no longer counted.
    pub(crate) moves: Moves,
}

/// Why there is no watched lexer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchedError {
    /// More states than this limit.
    TooManyStates(usize),
    /// This chain cannot be counted exactly: its terminal's repeats have to be copied.
    Uncountable(u32),
}

impl WatchedLexer {
    /// Number of states.
    pub fn state_count(&self) -> usize {
        self.cand.len()
    }

    /// Entry of a state and byte.
    pub fn entry(&self, state: u32, byte: u8) -> &Entry {
        &self.entries[self.entry_id(state, byte) as usize]
    }

    /// Entry of a state and class.
    pub fn entry_of_class(&self, state: u32, class: usize) -> &Entry {
        &self.entries[self.steps[state as usize * self.classes + class] as usize]
    }

    /// Id of the entry of a state and byte.
    pub fn entry_id(&self, state: u32, byte: u8) -> u32 {
        self.steps[state as usize * self.classes + self.byte_class[byte as usize] as usize]
    }

    /// Classes of bytes.
    pub fn byte_classes(&self) -> usize {
        self.classes - self.symbols
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

/// A lexeme that ends with its last byte, since none could make it longer: its DFA state, and where that leads.
pub(super) struct Ended {
    pub q: u32,
    pub afters: SmallVec<[After; 1]>,
}

/// The main way on from a state under one byte class, or what a byte starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goes {
    /// Nowhere.
    Dead,
    /// Inside the lexeme.
    To(u32),
    /// The lexeme ends with this byte, as this one of [`Raw::ended`].
    Ends(u32),
}

/// A short way on: the lexeme ended before the byte, which starts the next one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Short {
    pub ignored: bool,
    pub group: u32,
    pub goes: Goes,
}

/// A step.
pub(super) struct Step {
    /// The main way on.
    pub main: Goes,
    /// The short ones.
    pub shorts: SmallVec<[Short; 1]>,
    /// Whether the lexeme may end before the byte.
    may_end: bool,
}

/// All states that bytes can lead to, before anything is known to be a trap.
pub(super) struct Raw<'a> {
    pub dfa: &'a GroupedDfa,
    pub facts: &'a TerminalFacts,
    pub width: usize,
    /// DFA state and watchers of each state.
    pub states: Vec<(u32, u32)>,
    ids: FxHashMap<(u32, u32), u32>,
    /// Number of each DFA state without watchers, or `NONE`.
    plain: Vec<u32>,
    /// First state that each state was met from, with the byte class: gives a shortest text.
    met: Vec<(u32, u16)>,
    watchers: Watchers,
    /// All steps; the first one is dead.
    steps: Vec<Step>,
    /// Rows of steps by byte class. A state has one of its own, or, but for some steps inside the lexeme, that of a model.
    rows: Vec<u32>,
    row_of: Vec<Row>,
    /// The classes and steps in which each state differs from its model, delimited by `own_start`.
    own: Vec<(u32, u32)>,
    own_start: Vec<usize>,
    /// Distinct steps of each state inside the lexeme that lead somewhere, delimited by `inside_start`.
    inside: Vec<u32>,
    inside_start: Vec<usize>,
    /// The list of each state's distinct steps at which the lexeme may end; states that accept the same share them.
    pub ends_of: Vec<u32>,
    pub ends: Vec<Box<[u32]>>,
    ends_ids: FxHashMap<Box<[u32]>, u32>,
    /// Usable and ignored candidates of each candidate set, as bits.
    cand_sets: bits::Matrix,
    /// What a lexeme can become from each DFA state, watchers aside.
    unwatched: bits::Matrix,
    /// Whether a lexeme cannot go on from each DFA state, so that it is emitted at once.
    is_final: Vec<bool>,
    /// Lexemes that are, and where coming to a DFA state of them with watchers leads.
    pub ended: Vec<Ended>,
    arrivals: FxHashMap<(u32, u32), Goes>,
    /// Moves of the states that count.
    pub moves: Moves,
}

/// Groups of the next lexeme, and whether what ended is then ignored.
type NextGroups = SmallVec<[(bool, u32); 2]>;
/// A set of terminals.
type Bits = SmallVec<[u64; 8]>;

/// Whose row a state has, and which one that is.
#[derive(Clone, Copy)]
struct Row {
    state: u32,
    number: usize,
}

/// A state whose steps are being made.
struct Origin {
    x: u32,
    q: u32,
    watchers: u32,
    /// Whether a lexeme can end here, and the row of short steps if so.
    may_end: bool,
    short: usize,
}

const DEAD_STEP: u32 = 0;
/// In place of a byte class: a move.
const MOVE: u16 = u16::MAX;
/// The empty set of watchers.
const UNWATCHED: u32 = 0;

/// Sets of watchers, by number.
#[derive(Default)]
struct Watchers {
    sets: Vec<Box<[u32]>>,
    ids: FxHashMap<Box<[u32]>, u32>,
    /// What becomes of each set under each byte class, `DEAD` if a watcher accepts; made when it is asked for.
    rows: Vec<Vec<u32>>,
    /// Whether a lexeme from a DFA state can end before a watcher accepts.
    hopes: FxHashMap<(u32, u32), bool>,
}

impl Watchers {
    fn intern(&mut self, mut set: Vec<u32>) -> u32 {
        set.sort_unstable();
        set.dedup();
        let set = set.into_boxed_slice();
        let next = self.sets.len() as u32;
        *self.ids.entry(set).or_insert_with_key(|set| {
            self.sets.push(set.clone());
            self.rows.push(Vec::new());
            next
        })
    }

    fn with(&mut self, set: u32, watcher: u32) -> u32 {
        let set = [&self.sets[set as usize][..], &[watcher]].concat();
        self.intern(set)
    }

    fn after(&mut self, set: u32, class: usize, dfa: &GroupedDfa) -> Option<u32> {
        if set == UNWATCHED {
            return Some(UNWATCHED);
        }
        self.fill_row(set, dfa);
        let next = self.rows[set as usize][class];
        (next != DEAD).then_some(next)
    }

    fn fill_row(&mut self, set: u32, dfa: &GroupedDfa) {
        if self.rows[set as usize].is_empty() {
            let advance = |class: usize| {
                let next = self.sets[set as usize].iter().map(|&w| dfa.next[w as usize * dfa.class_count + class]);
                let next: Vec<u32> = next.filter(|&w| w != DEAD).collect();
                if next.iter().any(|&w| dfa.cand[w as usize] != 0) { DEAD } else { self.intern(next) }
            };
            self.rows[set as usize] = (0..dfa.class_count).map(advance).collect();
        }
    }
}

/// Steps that were made before, by all that they depend on; `NONE` where there is none yet.
struct KnownSteps {
    /// Steps into each DFA state without watchers that leave no choice.
    inside: Vec<u32>,
    /// Steps without watchers that end a lexeme which no byte of the class goes on with.
    short_rows: Vec<ShortRow>,
    /// Row of each candidate set and group, and of what these come to.
    short_ids: FxHashMap<(u32, u32), usize>,
    follow_ids: FxHashMap<(NextGroups, Bits), usize>,
    /// Classes by where they lead from the starts of lexemes.
    start_class: Vec<u32>,
    start_classes: usize,
    /// The others, by their row and start class (or `NONE` if the lexeme cannot end), where a longer match would be, and
    /// the watchers.
    others: FxHashMap<[u32; 4], u32>,
}

/// Short steps by start class, and what they depend on: the next groups, and what may follow.
struct ShortRow {
    groups: NextGroups,
    follow: Bits,
    steps: Vec<u32>,
}

impl KnownSteps {
    fn new(dfa: &GroupedDfa) -> Self {
        let mut ids: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
        let start_class = (0..dfa.class_count)
            .map(|class| {
                let next = ids.len() as u32;
                let targets = dfa.starts.iter().map(|&q| dfa.next[q as usize * dfa.class_count + class]).collect();
                *ids.entry(targets).or_insert(next)
            })
            .collect();
        KnownSteps {
            inside: vec![NONE; dfa.state_count()],
            short_rows: Vec::new(),
            short_ids: FxHashMap::default(),
            follow_ids: FxHashMap::default(),
            start_class,
            start_classes: ids.len(),
            others: FxHashMap::default(),
        }
    }
}

impl<'a> Raw<'a> {
    pub(super) fn explore(
        dfa: &'a GroupedDfa,
        facts: &'a TerminalFacts,
        max_states: usize,
    ) -> Result<Self, WatchedError> {
        let width = bits::words(facts.count + 1);
        let mut cand_sets = bits::Matrix::new(width, dfa.cand_sets.len());
        for (set, terminals) in dfa.cand_sets.iter().enumerate() {
            let known = |t: u32| bits::has(&facts.usable, t) || bits::has(&facts.ignored, t);
            terminals.iter().filter(|&&t| known(t)).for_each(|&t| bits::insert(&mut cand_sets[set], t));
        }
        let mut raw = Raw {
            dfa,
            facts,
            width,
            states: Vec::new(),
            ids: FxHashMap::default(),
            plain: vec![NONE; dfa.state_count()],
            met: Vec::new(),
            watchers: Watchers::default(),
            steps: vec![Step { main: Goes::Dead, shorts: SmallVec::new(), may_end: false }],
            rows: Vec::new(),
            row_of: Vec::new(),
            own: Vec::new(),
            own_start: vec![0],
            inside: Vec::new(),
            inside_start: vec![0],
            ends_of: Vec::new(),
            ends: Vec::new(),
            ends_ids: FxHashMap::default(),
            cand_sets,
            unwatched: bits::Matrix::default(),
            is_final: (0..dfa.state_count())
                .map(|q| dfa.row(q as u32).iter().fold(DEAD, |a, to| a & to) == DEAD)
                .collect(),
            ended: Vec::new(),
            arrivals: FxHashMap::default(),
            moves: Moves::default(),
        };
        raw.watchers.intern(Vec::new());
        raw.unwatched = raw.live_of_dfa();

        raw.state(dfa.starts[0], UNWATCHED, (0, 0));
        let mut known = KnownSteps::new(dfa);
        let mut models = Models::default();
        let mut x = 0;
        while x < raw.states.len() {
            crate::control::check();
            let (q, watchers) = raw.states[x];
            let may_end = !bits::is_empty(raw.cand(q));
            let from = Origin { x: x as u32, q, watchers, may_end, short: raw.short_row(q, &mut known) };
            let kind = (from.short, raw.accepts(q), may_end);
            match if watchers == UNWATCHED { models.find(dfa, q, kind) } else { None } {
                Some((model, differing)) => raw.steps_like(model, &differing, &from, &mut known),
                None => {
                    let inside = raw.steps_anew(&from, &mut known);
                    if watchers == UNWATCHED {
                        models.add(Model { x: x as u32, q, kind, inside });
                    }
                }
            }
            raw.inside_start.push(raw.inside.len());
            raw.own_start.push(raw.own.len());
            if !dfa.moves.is_empty() {
                raw.find_moves(x as u32)?;
            }
            if raw.states.len() > max_states {
                return Err(WatchedError::TooManyStates(max_states));
            }
            x += 1;
        }
        Ok(raw)
    }

    /// Find the moves of a state, each by the one of its DFA state and watchers that counts.
    fn find_moves(&mut self, x: u32) -> Result<(), WatchedError> {
        let (q, watchers) = self.states[x as usize];
        self.check_counters(q, watchers)?;
        for (letter, (q, watchers)) in self.moves_of(q, watchers) {
            let to = self.state(q, watchers, (x, MOVE));
            self.moves.push(x, letter, to);
        }
        Ok(())
    }

    /// Whether each counter has one value in a state: where one of its members counts, no other counts or soon would.
    fn check_counters(&self, q: u32, watchers: u32) -> Result<(), WatchedError> {
        let dfa = self.dfa;
        let watchers = &self.watchers.sets[watchers as usize];
        let members = || std::iter::once(q).chain(watchers.iter().copied());
        let letters = members().flat_map(|q| dfa.moves.of(q)).map(|&(letter, _)| letter);
        for chain in letters.filter(|&letter| is_far(letter)).map(chain_of) {
            let takes_part =
                |q: &u32| dfa.moves.of(*q).iter().any(|&(letter, _)| chain_of(letter) == chain && !is_first(letter));
            if members().filter(takes_part).count() > 1 {
                return Err(WatchedError::Uncountable(chain));
            }
        }
        Ok(())
    }

    /// The moves of a DFA state with watchers.
    fn moves_of(&mut self, q: u32, watchers: u32) -> Vec<(u32, (u32, u32))> {
        let dfa = self.dfa;
        if dfa.moves.is_empty() {
            return Vec::new();
        }
        let going = |q: u32| dfa.moves.of(q).iter().filter(|(letter, _)| !stays(*letter));
        let mut moves: Vec<_> = going(q).map(|&(letter, to)| (letter, (to, watchers))).collect();
        let set = self.watchers.sets[watchers as usize].clone();
        for &watcher in &*set {
            for &(letter, to) in going(watcher) {
                let others = set.iter().copied().filter(|&w| w != watcher);
                moves.push((letter, (q, self.watchers.intern(others.chain([to]).collect()))));
            }
        }
        moves
    }

    /// As [`Moves::ends`], of a DFA state with watchers.
    fn ends_of_counters(&mut self, q: u32, watchers: u32) -> Vec<(u32, u32)> {
        let mut ends = Vec::new();
        for (letter, top) in self.moves_of(q, watchers).into_iter().filter(|(letter, _)| is_far(*letter)) {
            let below = self.moves_of(top.0, top.1).into_iter().find(|m| m.0 == top_of(letter));
            ends.extend([top].into_iter().chain(below.map(|m| m.1)));
        }
        ends
    }

    fn state(&mut self, q: u32, watchers: u32, from: (u32, u16)) -> u32 {
        let next = self.states.len() as u32;
        let id = if watchers == UNWATCHED {
            match &mut self.plain[q as usize] {
                known if *known == NONE => {
                    *known = next;
                    next
                }
                known => *known,
            }
        } else {
            *self.ids.entry((q, watchers)).or_insert(next)
        };
        if id == next {
            self.states.push((q, watchers));
            self.met.push(from);
        }
        id
    }

    fn delta(&self, q: u32, class: usize) -> Option<u32> {
        let to = self.dfa.next[q as usize * self.dfa.class_count + class];
        (to != DEAD).then_some(to)
    }

    fn accepts(&self, q: u32) -> bool {
        self.dfa.cand[q as usize] != 0
    }

    /// Usable and ignored candidates of a DFA state.
    pub(super) fn cand(&self, q: u32) -> &[u64] {
        &self.cand_sets[self.dfa.cand[q as usize] as usize]
    }

    /// Candidates of every DFA state reachable from each, watchers aside.
    fn live_of_dfa(&self) -> bits::Matrix {
        let mut own = bits::Matrix::new(self.width, 0);
        let mut edges: Vec<(u32, u32)> = Vec::new();
        let mut seen_by = vec![NONE; self.dfa.state_count()];
        for q in 0..self.dfa.state_count() as u32 {
            own.push(self.cand(q));
            let mut last = DEAD;
            for &to in self.dfa.row(q) {
                if to == last || to == DEAD {
                    continue;
                }
                last = to;
                if std::mem::replace(&mut seen_by[to as usize], q) != q {
                    edges.push((q, to));
                }
            }
            edges.extend(self.dfa.moves.ends(q).map(|to| (q, to)));
        }
        propagate(own, &edges)
    }

    /// Add the steps of a state, and count the distinct ones inside the lexeme.
    fn steps_anew(&mut self, from: &Origin, known: &mut KnownSteps) -> Counts {
        let mut inside = Counts::new();
        let mut row = Vec::with_capacity(self.dfa.class_count);
        for class in 0..self.dfa.class_count {
            let step = self.step_from(from, class, known);
            row.push(step);
            if step != DEAD_STEP && !self.steps[step as usize].may_end {
                Distinct::count(&mut inside, step);
            }
        }
        self.add_row(from.x, &row);
        self.inside.extend(inside.iter().map(|d| d.step));
        inside
    }

    /// The same, for a state that has the steps of a model but where their rows differ.
    fn steps_like(&mut self, model: &Model, differing: &[u32], from: &Origin, known: &mut KnownSteps) {
        let number = self.row_of[model.x as usize].number;
        let start = number * self.dfa.class_count;
        let mut inside = model.inside.clone();
        let own = self.own.len();
        let mut same_ends = true;
        for &class in differing {
            let step = self.step_from(from, class as usize, known);
            let before = self.rows[start + class as usize];
            same_ends &= !self.steps[step as usize].may_end && !self.steps[before as usize].may_end;
            inside.iter_mut().filter(|d| d.step == before).for_each(|d| d.classes -= 1);
            if step != DEAD_STEP && !self.steps[step as usize].may_end {
                Distinct::count(&mut inside, step);
            }
            self.own.push((class, step));
        }
        self.inside.extend(inside.iter().filter(|d| d.classes > 0).map(|d| d.step));
        if same_ends {
            self.row_of.push(Row { state: model.x, number });
            self.ends_of.push(self.ends_of[model.x as usize]);
        } else {
            let mut row = self.rows[start..][..self.dfa.class_count].to_vec();
            self.own.drain(own..).for_each(|(class, step)| row[class as usize] = step);
            self.add_row(from.x, &row);
        }
    }

    /// Add a row for a state, with the list of its steps at which the lexeme may end.
    fn add_row(&mut self, x: u32, row: &[u32]) {
        self.row_of.push(Row { state: x, number: self.rows.len() / self.dfa.class_count });
        self.rows.extend_from_slice(row);
        let mut ends: Vec<u32> = row.iter().copied().filter(|&step| self.steps[step as usize].may_end).collect();
        ends.sort_unstable();
        ends.dedup();
        let next = self.ends.len() as u32;
        let list = *self.ends_ids.entry(ends.into()).or_insert_with_key(|ends| {
            self.ends.push(ends.clone());
            next
        });
        self.ends_of.push(list);
    }

    /// The number of a step, made before or anew.
    fn step_from(&mut self, from: &Origin, class: usize, known: &mut KnownSteps) -> u32 {
        let to = self.dfa.row(from.q)[class];
        let Some(watchers) = self.watchers.after(from.watchers, class, self.dfa) else { return DEAD_STEP };
        let goes_on = !from.may_end || to != DEAD && self.accepts(to);
        if goes_on && to == DEAD {
            return DEAD_STEP;
        }
        let short = &mut known.short_rows[from.short];
        let start = known.start_class[class];
        let step = match (goes_on, to) {
            (true, _) if watchers == UNWATCHED => &mut known.inside[to as usize],
            (true, _) => known.others.entry([NONE, NONE, to, watchers]).or_insert(NONE),
            (false, DEAD) if watchers == UNWATCHED => &mut short.steps[start as usize],
            _ => known.others.entry([from.short as u32, start, to, watchers]).or_insert(NONE),
        };
        if *step == NONE {
            let met = (from.x, class as u16);
            *step = if goes_on {
                let main = self.arrive(to, watchers, met);
                self.new_step(Step { main, shorts: SmallVec::new(), may_end: false })
            } else {
                self.step_at_end(to, class, watchers, (&short.groups, &short.follow), met)
            };
        }
        *step
    }

    /// The row of short steps from a DFA state.
    fn short_row(&self, q: u32, known: &mut KnownSteps) -> usize {
        let (cand, group) = (self.dfa.cand[q as usize], self.dfa.group[q as usize]);
        if let Some(&row) = known.short_ids.get(&(cand, group)) {
            return row;
        }
        let emitted = self.cand(q);
        let mut follow = Bits::from_elem(0, self.width);
        for t in bits::iter(emitted).filter(|&t| bits::has(&self.facts.usable, t)) {
            bits::unite(&mut follow, &self.facts.follow[t as usize]);
        }
        let groups = self.next_groups(emitted, group);
        let row = *known.follow_ids.entry((groups, follow)).or_insert_with_key(|(groups, follow)| {
            let (groups, follow, steps) = (groups.clone(), follow.clone(), vec![NONE; known.start_classes]);
            known.short_rows.push(ShortRow { groups, follow, steps });
            known.short_rows.len() - 1
        });
        known.short_ids.insert((cand, group), row);
        row
    }

    fn new_step(&mut self, step: Step) -> u32 {
        if step.main == Goes::Dead && step.shorts.is_empty() {
            return DEAD_STEP;
        }
        self.steps.push(step);
        self.steps.len() as u32 - 1
    }

    /// The step from a state that accepts to one that does not, or to none. The next lexeme is of one of the groups, and
    /// can become an ignored terminal or one that may follow.
    fn step_at_end(
        &mut self,
        to: u32,
        class: usize,
        watchers: u32,
        (groups, follow): (&NextGroups, &Bits),
        met: (u32, u16),
    ) -> u32 {
        let (main, watchers) = match to {
            DEAD => (Goes::Dead, watchers),
            _ => (self.arrive(to, watchers, met), self.watchers.with(watchers, to)),
        };
        let mut shorts: SmallVec<[Short; 1]> = SmallVec::new();
        for &(ignored, group) in groups {
            let Some(r) = self.delta(self.dfa.starts[group as usize], class) else { continue };
            let next = &self.unwatched[r as usize];
            if ignored || bits::meets(next, &self.facts.ignored) || bits::meets(next, follow) {
                let goes = self.arrive(r, watchers, met);
                if goes != Goes::Dead {
                    shorts.push(Short { ignored, group, goes });
                }
            }
        }
        self.new_step(Step { main, shorts, may_end: true })
    }

    /// What it means to come to a DFA state inside a lexeme.
    fn arrive(&mut self, p: u32, watchers: u32, from: (u32, u16)) -> Goes {
        if bits::is_empty(&self.unwatched[p as usize]) {
            return Goes::Dead;
        }
        if !self.is_final[p as usize] {
            return if self.is_hopeful(p, watchers) { Goes::To(self.state(p, watchers, from)) } else { Goes::Dead };
        }
        if let Some(&goes) = self.arrivals.get(&(p, watchers)) {
            return goes;
        }
        let groups = self.next_groups(self.cand(p), self.dfa.group[p as usize]);
        let after = groups.into_iter().map(|(ignored, group)| {
            let state = self.state(self.dfa.starts[group as usize], watchers, from);
            After { ignored, group, state }
        });
        let afters: SmallVec<[After; 1]> = after.collect();
        let goes = if afters.is_empty() { Goes::Dead } else { Goes::Ends(self.ended.len() as u32) };
        if !afters.is_empty() {
            self.ended.push(Ended { q: p, afters });
        }
        self.arrivals.insert((p, watchers), goes);
        goes
    }

    /// Whether a lexeme that has come to DFA state `q` can become anything before a watcher accepts.
    ///
    /// Where it cannot, because the longer match always comes first, as behind `"a""`, no state is made: there is a whole
    /// copy of the lexer of them.
    fn is_hopeful(&mut self, q: u32, watchers: u32) -> bool {
        if watchers == UNWATCHED {
            return true;
        }
        if let Some(&hope) = self.watchers.hopes.get(&(q, watchers)) {
            return hope;
        }
        // All that can be reached and is not known, with the edges backwards; then those that hope is reached from.
        let mut pairs = vec![(q, watchers)];
        let mut ids: FxHashMap<(u32, u32), u32> = FxHashMap::from_iter([((q, watchers), 0)]);
        let mut edges: Vec<(u32, u32)> = Vec::new();
        let mut hopeful: Vec<u32> = Vec::new();
        // The last pair met of each DFA state: its watchers and number.
        let mut met: Vec<(u32, u32)> = vec![(DEAD, 0); self.dfa.state_count()];
        let mut done = 0;
        while let Some(&(q, watchers)) = pairs.get(done as usize) {
            crate::control::check();
            if !bits::is_empty(self.cand(q)) || watchers == UNWATCHED && !bits::is_empty(&self.unwatched[q as usize]) {
                hopeful.push(done);
            } else if let Some(&hope) = self.watchers.hopes.get(&(q, watchers)) {
                hopeful.extend(hope.then_some(done));
            } else if watchers != UNWATCHED {
                let mut lead = |(q, watchers): (u32, u32)| {
                    let known = &mut met[q as usize];
                    if known.0 != watchers {
                        let next = pairs.len() as u32;
                        let id = *ids.entry((q, watchers)).or_insert(next);
                        if id == next {
                            pairs.push((q, watchers));
                        }
                        *known = (watchers, id);
                    }
                    edges.push((known.1, done));
                };
                self.watchers.fill_row(watchers, self.dfa);
                let after = &self.watchers.rows[watchers as usize];
                let mut last = (DEAD, DEAD);
                for (&to, &watchers) in self.dfa.row(q).iter().zip(after) {
                    if to == DEAD || watchers == DEAD || to == last.0 && watchers == last.1 {
                        continue;
                    }
                    last = (to, watchers);
                    lead(last);
                }
                self.ends_of_counters(q, watchers).into_iter().for_each(lead);
            }
            done += 1;
        }
        let sources = Relation::from_pairs(pairs.len(), &edges);
        let mut hopes = vec![false; pairs.len()];
        while let Some(pair) = hopeful.pop() {
            if !std::mem::replace(&mut hopes[pair as usize], true) {
                hopeful.extend(sources.row(pair as usize));
            }
        }
        let hope = hopes[0];
        self.watchers.hopes.extend(pairs.into_iter().zip(hopes));
        hope
    }

    /// Groups that the next lexeme can be of after these candidates of a lexeme of `group`: first the same one, if there
    /// are ignored candidates, then those after the others.
    fn next_groups(&self, candidates: &[u64], group: u32) -> NextGroups {
        let mut groups: NextGroups = SmallVec::new();
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

    pub(super) fn cand_of(&self, x: u32) -> &[u64] {
        self.cand(self.states[x as usize].0)
    }

    /// The distinct steps of a state, but for the dead one.
    pub(super) fn steps_of(&self, x: u32) -> impl Iterator<Item = &Step> {
        self.inside_of(x).chain(self.ends_at(self.ends_of[x as usize]))
    }

    /// Those at which the lexeme goes on.
    pub(super) fn inside_of(&self, x: u32) -> impl Iterator<Item = &Step> {
        self.inside_steps(x).iter().map(|&step| &self.steps[step as usize])
    }

    /// If a state leads and accepts as its model does and in some ways more: the model, and the steps for those.
    pub(super) fn more_than_model(&self, x: u32) -> Option<(u32, impl Iterator<Item = &Step>)> {
        let model = self.row_of[x as usize].state;
        let cand = |x: u32| self.dfa.cand[self.states[x as usize].0 as usize];
        let is_alike = model != x
            && !self.is_start(model)
            && (cand(x), self.group_of(x)) == (cand(model), self.group_of(model))
            && self.moves.of(x).is_empty()
            && self.moves.of(model).is_empty();
        let more = self.inside_steps(x).strip_prefix(self.inside_steps(model)).filter(|_| is_alike)?;
        Some((model, more.iter().map(|&step| &self.steps[step as usize])))
    }

    fn inside_steps(&self, x: u32) -> &[u32] {
        &self.inside[self.inside_start[x as usize]..self.inside_start[x as usize + 1]]
    }

    /// Those of a list of steps at which it may end.
    pub(super) fn ends_at(&self, list: u32) -> impl Iterator<Item = &Step> {
        self.ends[list as usize].iter().map(|&step| &self.steps[step as usize])
    }

    /// The classes and steps in which a state differs from its model.
    fn own_of(&self, x: u32) -> &[(u32, u32)] {
        &self.own[self.own_start[x as usize]..self.own_start[x as usize + 1]]
    }

    /// A shortest text that leads to a state, with one byte per class chosen.
    pub(super) fn text(&self, mut x: u32) -> Vec<u8> {
        let mut text = Vec::new();
        while x != 0 {
            let (from, class) = self.met[x as usize];
            if class == MOVE {
                text.extend(b"...");
                x = from;
                continue;
            }
            let bytes = (0..=255u8).filter(|&b| u16::from(self.dfa.byte_class[b as usize]) == class);
            match bytes.min_by_key(|b| (!b.is_ascii_graphic(), *b)) {
                Some(byte) => text.push(byte),
                None => text.extend(b"<token>".iter().rev()),
            }
            x = from;
        }
        text.reverse();
        text
    }

    /// The lexer with what `live` leaves alive, states renumbered in breadth-first order. `ended` has the candidates of
    /// lexemes that end at once. What is a trap is not emitted either: nothing could come after it.
    pub(super) fn finish(self, live: &bits::Matrix, ended: &[Vec<u64>]) -> WatchedLexer {
        let mut finish = Finish {
            number: vec![NONE; self.states.len()],
            order: VecDeque::from([0]),
            count: 1,
            pool: bits::Pool::new(self.width),
            sets: Vec::new(),
            emission_ids: FxHashMap::default(),
            emissions: FxHashMap::default(),
            entry_ids: FxHashMap::from_iter([(Entry::new(), DEAD_ENTRY)]),
            plain: vec![NONE; self.states.len()],
            entry_of: vec![NONE; self.steps.len()],
            out: WatchedLexer {
                byte_class: self.dfa.byte_class,
                classes: self.dfa.class_count,
                symbols: self.dfa.symbols,
                steps: Vec::with_capacity(self.states.len() * self.dfa.class_count),
                entries: vec![Entry::new()],
                cand: Vec::new(),
                cand_emissions: Vec::new(),
                starts: vec![NONE; self.dfa.starts.len()],
                group: Vec::new(),
                live: Vec::new(),
                sets: TermSets::default(),
                emissions: Vec::new(),
                watched_states: 0,
                watched: Vec::new(),
                chains: self.dfa.chains.iter().map(|chain| chain.length).collect(),
                moves: Moves::default(),
            },
            raw: &self,
            live,
            ended,
        };
        finish.number[0] = 0;
        finish.entry_of[DEAD_STEP as usize] = DEAD_ENTRY;
        // What each state emits; and by that, and the list or the group, the entries of ends, and emissions.
        let mut emitted_of: Vec<u32> = Vec::new();
        let mut ends_of: FxHashMap<(u32, u32), Box<[u32]>> = FxHashMap::default();
        let mut emissions_of: FxHashMap<(u32, u32), SmallVec<[u32; 1]>> = FxHashMap::default();
        while let Some(x) = finish.order.pop_front() {
            crate::control::check();
            let number = finish.number[x as usize];
            let emitted = finish.emitted(x);
            let row = self.row_of[x as usize];
            let model = finish.number[row.state as usize];
            let steps = finish.out.steps.len();
            if model < number && emitted_of[model as usize] == emitted {
                let model = model as usize * self.dfa.class_count;
                finish.out.steps.extend_from_within(model..model + self.dfa.class_count);
            } else {
                for &step in self.inside_steps(x) {
                    finish.inside_entry(step);
                }
                let list = self.ends_of[x as usize];
                let ends = &self.ends[list as usize];
                let entries = ends_of.entry((list, emitted)).or_insert_with(|| finish.end_entries(ends, emitted));
                ends.iter().zip(&**entries).for_each(|(&step, &entry)| finish.entry_of[step as usize] = entry);
                let row = &self.rows[row.number * self.dfa.class_count..][..self.dfa.class_count];
                finish.out.steps.extend(row.iter().map(|&step| finish.entry_of[step as usize]));
            }
            for &(class, step) in self.own_of(x) {
                finish.out.steps[steps + class as usize] = finish.inside_entry(step);
            }
            emitted_of.push(emitted);
            let (_, watchers) = self.states[x as usize];
            let group = self.group_of(x);
            let cand = finish.set(emitted);
            let emissions = emissions_of.entry((emitted, group)).or_insert_with(|| {
                let groups =
                    self.next_groups(finish.pool.get(emitted), group).into_iter().filter(|(ignored, _)| !ignored);
                groups.map(|(ignored, group)| finish.emission(emitted, ignored, group)).collect()
            });
            let pending = match self.is_start(x) {
                true => NONE,
                false => {
                    let pending = finish.pool.intern(&live[x as usize]);
                    finish.set(pending)
                }
            };
            let out = &mut finish.out;
            out.cand.push(cand);
            out.cand_emissions.push(emissions.clone());
            out.live.push(pending);
            out.group.push(group);
            out.watched_states += usize::from(watchers != UNWATCHED);
            out.watched.push(watchers != UNWATCHED);
            for &(letter, to) in self.moves.of(x).iter().filter(|m| !bits::is_empty(&live[m.1 as usize])) {
                let to = finish.state(to);
                finish.out.moves.push(number, letter, to);
            }
            if self.is_start(x) && watchers == UNWATCHED {
                finish.out.starts[group as usize] = number;
            }
        }
        finish.out
    }
}

/// A watched lexer in the making.
struct Finish<'r, 'a> {
    raw: &'r Raw<'a>,
    live: &'r bits::Matrix,
    ended: &'r [Vec<u64>],
    /// New number of each raw state.
    number: Vec<u32>,
    order: VecDeque<u32>,
    count: u32,
    /// Sets of candidates and live sets as bits, and which of the lexer's they are, as far as it has them.
    pool: bits::Pool,
    sets: Vec<Option<u32>>,
    emission_ids: FxHashMap<Emission, u32>,
    /// Emissions by what they were made of.
    emissions: FxHashMap<(u32, bool, u32), u32>,
    entry_ids: FxHashMap<Entry, u32>,
    /// Entries that lead to a state and emit nothing, by that state.
    plain: Vec<u32>,
    /// Entry of each step, or `NONE` as long as nobody came there. Those of ends change with what is emitted.
    entry_of: Vec<u32>,
    out: WatchedLexer,
}

impl Finish<'_, '_> {
    /// The candidates of a state that are not traps.
    fn emitted(&mut self, x: u32) -> u32 {
        let emitted: Bits = self.raw.cand_of(x).iter().zip(&self.live[x as usize]).map(|(c, l)| c & l).collect();
        self.pool.intern(&emitted)
    }

    /// One of the pool's sets as the lexer has it; `NONE` for the empty one.
    fn set(&mut self, id: u32) -> u32 {
        let facts = self.raw.facts;
        self.sets.resize(self.sets.len().max(id as usize + 1), None);
        *self.sets[id as usize].get_or_insert_with(|| {
            let set = self.pool.get(id);
            if bits::is_empty(set) {
                return NONE;
            }
            let terms = bits::iter(set).filter(|&t| bits::has(&facts.usable, t)).collect();
            self.out.sets.intern(TermSet { terms, ignored: bits::meets(set, &facts.ignored) })
        })
    }

    /// The number of the entry that a step inside a lexeme becomes.
    fn inside_entry(&mut self, step: u32) -> u32 {
        if self.entry_of[step as usize] == NONE {
            let mut entry = Entry::new();
            self.go(self.raw.steps[step as usize].main, NONE, &mut entry);
            self.entry_of[step as usize] = self.number_of(entry);
        }
        self.entry_of[step as usize]
    }

    /// The numbers of the entries that steps become at which the lexeme may end, as one of `emitted`.
    fn end_entries(&mut self, ends: &[u32], emitted: u32) -> Box<[u32]> {
        let facts = self.raw.facts;
        // What may be next. Traps are not emitted, so there may be nothing.
        let mut next = Bits::from_slice(&facts.ignored);
        for t in bits::iter(self.pool.get(emitted)).filter(|&t| bits::has(&facts.usable, t)) {
            bits::unite(&mut next, &facts.follow[t as usize]);
        }
        let raw = self.raw;
        let of_step = |&step: &u32| {
            let Step { main, shorts, .. } = &raw.steps[step as usize];
            let mut entry = Entry::new();
            self.go(*main, NONE, &mut entry);
            for short in shorts {
                let live = match short.goes {
                    Goes::To(to) => &self.live[to as usize],
                    Goes::Ends(end) => &self.ended[end as usize][..],
                    Goes::Dead => continue,
                };
                let may = short.ignored || bits::meets(&next, live);
                let emission = if may { self.emission(emitted, short.ignored, short.group) } else { NONE };
                if emission != NONE {
                    self.go(short.goes, emission, &mut entry);
                }
            }
            self.number_of(entry)
        };
        ends.iter().map(of_step).collect()
    }

    fn number_of(&mut self, entry: Entry) -> u32 {
        let next = self.out.entries.len() as u32;
        if let [Alternative { emit: [NONE, NONE], next: to }] = entry[..] {
            let known = &mut self.plain[to as usize];
            if *known == NONE {
                *known = next;
                self.out.entries.push(entry);
            }
            return *known;
        }
        *self.entry_ids.entry(entry).or_insert_with_key(|entry| {
            self.out.entries.push(entry.clone());
            next
        })
    }

    /// Add the alternatives of a way on, after an emission or `NONE`.
    fn go(&mut self, goes: Goes, first: u32, entry: &mut Entry) {
        match goes {
            Goes::Dead => {}
            Goes::To(to) if bits::is_empty(&self.live[to as usize]) => {}
            Goes::To(to) => {
                let next = self.state(to);
                entry.push(Alternative { emit: [first, NONE], next });
            }
            Goes::Ends(end) => {
                let candidates = self.pool.intern(&self.ended[end as usize]);
                for after in &self.raw.ended[end as usize].afters {
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
    fn emission(&mut self, candidates: u32, ignored: bool, group: u32) -> u32 {
        let key = (candidates, ignored, group);
        if let Some(&emission) = self.emissions.get(&key) {
            return emission;
        }
        let emission = self.new_emission(candidates, ignored, group);
        self.emissions.insert(key, emission);
        emission
    }

    fn new_emission(&mut self, candidates: u32, ignored: bool, group: u32) -> u32 {
        let facts = self.raw.facts;
        let candidates = self.pool.get(candidates);
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

/// Least sets that contain `sets` and, along every edge (from, to), what the target's set contains.
pub(super) fn propagate(mut sets: bits::Matrix, edges: &[(u32, u32)]) -> bits::Matrix {
    let sources = sources(sets.len(), edges);
    // Those that many lead to first, so that what they have is passed on once; then the last ones.
    let mut queue: Vec<u32> = (0..sets.len() as u32).collect();
    queue.sort_by_key(|&x| sources.row(x as usize).len());
    let mut queued = vec![true; sets.len()];
    while let Some(to) = queue.pop() {
        queued[to as usize] = false;
        if bits::is_empty(&sets[to as usize]) {
            continue;
        }
        for &from in sources.row(to as usize) {
            if sets.unite(from as usize, to as usize) && !std::mem::replace(&mut queued[from as usize], true) {
                queue.push(from);
            }
        }
    }
    sets
}

/// The sources of edges (from, to) by target.
pub(super) fn sources(len: usize, edges: &[(u32, u32)]) -> Relation {
    let backwards: Vec<(u32, u32)> = edges.iter().map(|&(from, to)| (to, from)).collect();
    Relation::from_pairs(len, &backwards)
}
