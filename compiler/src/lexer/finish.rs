//! The watched lexer as it is used: without what is known to lead nowhere, and numbered in the order in which texts meet it.

use super::Moves;
use super::raw::{Bits, DEAD_STEP, Goes, Raw, Step, UNWATCHED};
use super::watched::{Alternative, DEAD_ENTRY, Emission, Entry, NONE, TermSet, TermSets, WatchedLexer};
use crate::bits;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;

impl Raw<'_> {
    /// The lexer with what `live` leaves alive, states renumbered in breadth-first order. `ended` has the candidates of
    /// lexemes that end at once. What is a trap is not emitted either: nothing could come after it.
    pub(super) fn finish(self, live: &bits::Matrix, ended: &[Vec<u64>]) -> WatchedLexer {
        let count = self.states.len();
        let mut finish = Finish {
            number: vec![NONE; count],
            order: VecDeque::from([0]),
            count: 1,
            pool: bits::Pool::new(self.width),
            sets: Vec::new(),
            emission_ids: FxHashMap::default(),
            emissions: FxHashMap::default(),
            entry_ids: FxHashMap::from_iter([(Entry::new(), DEAD_ENTRY)]),
            plain: vec![NONE; count],
            entry_of: vec![NONE; self.steps.len()],
            out: WatchedLexer {
                byte_class: self.dfa.byte_class,
                classes: self.dfa.class_count,
                symbols: self.dfa.symbols,
                steps: Vec::with_capacity(count * self.dfa.class_count),
                entries: vec![Entry::new()],
                cand: Vec::with_capacity(count),
                cand_emissions: Vec::with_capacity(count),
                starts: vec![NONE; self.dfa.starts.len()],
                group: Vec::with_capacity(count),
                live: Vec::with_capacity(count),
                sets: TermSets::default(),
                emissions: Vec::new(),
                watched_states: 0,
                watched: Vec::with_capacity(count),
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
        let mut emitted_of: Vec<u32> = Vec::with_capacity(count);
        let mut ends_of: FxHashMap<(u32, u32), Box<[u32]>> = FxHashMap::default();
        let mut emissions_of: FxHashMap<(u32, u32), SmallVec<[u32; 1]>> = FxHashMap::default();
        while let Some(x) = finish.order.pop_front() {
            crate::control::check();
            let number = finish.number[x as usize];
            let row = self.row_of[x as usize];
            let model = finish.number[row.state as usize];
            let is_alike = model < number
                && live[x as usize] == live[row.state as usize]
                && self.cand_of(x) == self.cand_of(row.state);
            let emitted = if is_alike { emitted_of[model as usize] } else { finish.emitted(x) };
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
            let pending = if self.is_start(x) {
                NONE
            } else if is_alike && !self.is_start(row.state) {
                finish.out.live[model as usize]
            } else {
                let pending = finish.pool.intern(&live[x as usize]);
                finish.set(pending)
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
