//! Exploring a lexer: from every state that texts lead to, the steps of all byte classes.

use super::DEAD;
use super::Moves;
use super::groups::GroupedDfa;
use super::models::{Counts, Distinct, Model, Models};
use super::propagate::propagate;
use super::raw::{After, Bits, DEAD_STEP, Ended, Goes, NextGroups, Raw, Row, Short, Step, UNWATCHED};
use super::watched::{NONE, TerminalFacts, WatchedError};
use super::watchers::Watchers;
use crate::bits;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A state whose steps are being made.
struct Origin {
    x: u32,
    q: u32,
    watchers: u32,
    /// Whether a lexeme can end here, and the row of short steps if so.
    may_end: bool,
    short: usize,
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
        let count = dfa.state_count();
        // Nearly always, there are few more than those of the DFA.
        let (mut steps, mut starts) = (Vec::with_capacity(count), Vec::with_capacity(count + 1));
        steps.push(Step { main: Goes::Dead, shorts: SmallVec::new(), may_end: false });
        starts.push(0);
        let mut raw = Raw {
            dfa,
            facts,
            width,
            states: Vec::with_capacity(count),
            ids: FxHashMap::default(),
            plain: vec![NONE; count],
            met: Vec::with_capacity(count),
            watchers: Watchers::default(),
            steps,
            rows: Vec::new(),
            row_of: Vec::with_capacity(count),
            own: Vec::with_capacity(2 * count),
            own_start: starts.clone(),
            inside: Vec::with_capacity(2 * count),
            inside_start: starts,
            ends_of: Vec::with_capacity(count),
            ends: Vec::new(),
            ends_ids: FxHashMap::default(),
            cand_sets,
            unwatched: bits::Matrix::default(),
            is_final: (0..count).map(|q| dfa.row(q as u32).iter().fold(DEAD, |a, to| a & to) == DEAD).collect(),
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

    /// Candidates of every DFA state reachable from each, watchers aside.
    fn live_of_dfa(&self) -> bits::Matrix {
        let mut own = bits::Matrix::new(self.width, 0);
        let mut edges: Vec<(u32, u32)> = Vec::new();
        let mut seen_by = vec![NONE; self.dfa.state_count()];
        for q in 0..self.dfa.state_count() as u32 {
            own.push(self.cand(q));
            let mut last = DEAD;
            for few in self.dfa.row(q).chunks(8) {
                // Mostly, a state leads to one place or nowhere.
                if few.iter().fold(0, |different, &to| different | (to ^ last)) == 0 {
                    continue;
                }
                for &to in few {
                    if to != last && to != DEAD && std::mem::replace(&mut seen_by[to as usize], q) != q {
                        edges.push((q, to));
                    }
                    last = to;
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
}
