//! Separability: can what is pending really end as terminal `t` with something that may follow it?
//!
//! For a state x and t ∈ live(x) some continuation that completes no watcher must end the lexeme as t where the next byte
//! can start a terminal of FOLLOW(t), in a row that shifting t leads to. Where this fails for every follower, x is a *trap*
//! for t and t is taken out of live(x); this is repeated, since followers can be trapped in turn. Where it fails for some
//! followers only, a [`Report`] says so: masks are then exact for the engine's rule but a dead end may be reachable.
//!
//! Source: the project's own analysis; the pairwise rule of terminals alone is not enough.

use super::counters::top_of;
use super::groups::GroupedDfa;
use super::watched::{Afters, Goes, Raw, TerminalFacts, WatchedError, WatchedLexer, by_target, propagate};
use super::{chain_of, is_far};
use crate::bits;
use rustc_hash::FxHashMap;

/// A follower that a pending terminal can never be separated from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// A shortest text after which it happens.
    pub text: Vec<u8>,
    /// The pending terminal.
    pub terminal: u32,
    /// What may follow it in the grammar but can never be cut from it.
    pub follower: u32,
}

/// What is wrong with how the grammar cuts its texts.
#[derive(Debug, Default)]
pub struct Findings {
    /// Followers that cannot be cut from a pending terminal somewhere.
    pub reports: Vec<Report>,
    /// Terminals that can never be used: whatever may follow them is always taken into them, or another wins.
    pub unusable: Vec<u32>,
    /// No text can begin, though the empty one is no sentence.
    pub nothing_begins: bool,
}

/// Reports kept; one per pair of terminals is enough for people.
const MAX_REPORTS: usize = 1000;

/// Build the watched lexer.
///
/// # Errors
/// [`WatchedError`], if there are more than `max_states` or a counter cannot be exact.
pub fn build_watched(
    dfa: &GroupedDfa,
    facts: &TerminalFacts,
    max_states: usize,
) -> Result<(WatchedLexer, Findings), WatchedError> {
    let raw = Raw::explore(dfa, facts, max_states)?;
    let mut analysis = Analysis::new(&raw)?;
    let mut trapped = bits::Matrix::new(raw.width, raw.states.len());
    loop {
        crate::control::check();
        analysis.find_live(&trapped)?;
        analysis.find_followers()?;
        if !analysis.find_traps(&mut trapped)? {
            break;
        }
    }
    let findings = analysis.findings();

    let Analysis { live, ended, .. } = analysis;
    let ended = ended.into_iter().map(|(end, (alive, _))| (end, alive)).collect();
    Ok((raw.finish(&live, &ended), findings))
}

/// States that count, each with a state in which all its counters have come to their last values, and the chain.
type Leaves = Vec<(u32, u32, u32)>;

/// Which states count, and the leaves of [`Analysis`].
fn leaves(raw: &Raw) -> Result<(Vec<bool>, Leaves), WatchedError> {
    let states = raw.moves.states();
    if states.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let first_far = |x: u32| raw.moves.of(x).iter().find(|(letter, _)| is_far(*letter)).copied();
    let mut far = vec![false; raw.states.len()];
    let mut leaves = Vec::new();
    for x in states {
        let Some((letter, _)) = first_far(x) else { continue };
        if raw.is_start(x) && !bits::is_empty(&raw.facts.ignored) {
            // What ignored lexemes lead to is followed from one state between lexemes to the next, as if nothing counted.
            return Err(WatchedError::Uncountable(chain_of(letter)));
        }
        far[x as usize] = true;
        let mut pending = vec![x];
        while let Some(at) = pending.pop() {
            let Some((letter, top)) = first_far(at) else {
                if raw.cand_of(at) != raw.cand_of(x) {
                    return Err(WatchedError::Uncountable(chain_of(letter)));
                }
                leaves.push((x, at, chain_of(letter)));
                continue;
            };
            let below = raw.moves.of(top).iter().find(|m| m.0 == top_of(letter));
            let &(_, below) = below.ok_or(WatchedError::Uncountable(chain_of(letter)))?;
            pending.extend([top, below]);
        }
    }
    Ok((far, leaves))
}

/// A way for a lexeme to end: the last state inside it, and where to look up what can come then, by next group.
type Ending = (u32, Vec<(u32, u32)>);

/// Numbers those pairs of a state x and a group g that occur: where the sets have what can come after a lexeme that ends
/// in x, if the next one is of group g. With hundreds of groups, a state's lexemes are followed by few of them. States
/// that end alike share their numbers; a state between lexemes stands for "just ended".
#[derive(Default)]
struct Slots {
    ids: FxHashMap<(u32, u32), u32>,
}

impl Slots {
    fn key(raw: &Raw, x: u32, group: u32) -> (u32, u32) {
        let lists = raw.ends.len() as u32;
        (if raw.is_start(x) { lists + x } else { raw.ends_of[x as usize] }, group)
    }

    fn number(&mut self, key: (u32, u32)) -> u32 {
        let next = self.ids.len() as u32;
        *self.ids.entry(key).or_insert(next)
    }
}

struct Analysis<'a> {
    raw: &'a Raw<'a>,
    /// Whether each state counts; empty if none does.
    far: Vec<bool>,
    leaves: Leaves,
    slots: Slots,
    /// Edges inside a lexeme, (source, target), and the sources by target.
    inside: Vec<(u32, u32)>,
    /// States from which a byte ends a lexeme that cannot go on, with the step.
    ends: Vec<(u32, &'a Goes)>,
    sources: Vec<u32>,
    source_start: Vec<u32>,
    /// For each terminal the ways a lexeme can end as it.
    endings: Vec<Vec<Ending>>,
    /// live(x).
    live: bits::Matrix,
    /// What a lexeme that ends at once can be, traps left out, and where it leads; by [`Goes::end`].
    ended: FxHashMap<(u32, u32), (Vec<u64>, Afters)>,
    /// sep(x) for each next group: what the next byte can start, if the lexeme ends in x; closed through ignored
    /// terminals. A state between lexemes has a slot for its own group only.
    followers: bits::Matrix,
}

impl<'a> Analysis<'a> {
    fn new(raw: &'a Raw<'a>) -> Result<Self, WatchedError> {
        let n = raw.states.len() as u32;
        let mut inside: Vec<(u32, u32)> = Vec::new();
        let mut ends: Vec<(u32, &Goes)> = Vec::new();
        let mut ended = FxHashMap::default();
        let mut note = |goes: &Goes| {
            if let (Some(end), Goes::Ends(p, afters)) = (goes.end(), goes) {
                ended.entry(end).or_insert_with(|| (raw.cand(*p).to_vec(), afters.clone()));
            }
        };
        let lists = 0..raw.ends.len() as u32;
        let mains = |list: u32| raw.ends_at(list).map(|(main, _)| main).filter(|main| **main != Goes::Dead).collect();
        let longer: Vec<Vec<&Goes>> = lists.clone().map(mains).collect();
        lists.flat_map(|list| raw.ends_at(list)).flat_map(|(_, shorts)| shorts).for_each(|short| note(&short.goes));
        for x in 0..n {
            for main in
                raw.inside_of(x).map(|step| step.0).chain(longer[raw.ends_of[x as usize] as usize].iter().copied())
            {
                note(main);
                match main {
                    _ if raw.is_start(x) => {}
                    Goes::Dead => {}
                    Goes::To(to) => inside.push((x, *to)),
                    Goes::Ends(..) => ends.push((x, main)),
                }
            }
            inside.extend(raw.moves.ends(x).map(|to| (x, to)));
        }
        let (far, leaves) = leaves(raw)?;
        let (source_start, sources) = by_target(inside.iter().copied(), n as usize);
        let mut analysis = Analysis {
            raw,
            far,
            leaves,
            slots: Slots::default(),
            inside,
            ends,
            sources,
            source_start,
            endings: Vec::new(),
            live: bits::Matrix::default(),
            ended,
            followers: bits::Matrix::default(),
        };
        for after in analysis.ended.values().flat_map(|(_, afters)| afters.iter()) {
            analysis.slots.number(Slots::key(raw, after.state, after.group));
        }
        analysis.slots.number(Slots::key(raw, 0, raw.group_of(0)));
        analysis.endings = analysis.find_endings();
        Ok(analysis)
    }

    /// Whether an edge leads to a state that counts from one that does not.
    fn enters(&self, from: u32, to: u32) -> bool {
        let is_far = |x: u32| self.far.get(x as usize).copied().unwrap_or(false);
        is_far(to) && !is_far(from)
    }

    /// [`propagate`], if the result holds whatever the counters are, else the chain to blame.
    ///
    /// A state that counts stands for many. The result unites what holds for all values, so no value has more. It is exact
    /// if the last two layers, seen without all that could be counted again, have as much: by induction so has every other
    /// layer, since it leads to the layer below as that one leads to the next.
    fn propagate(&self, sets: bits::Matrix, edges: Vec<(u32, u32)>) -> Result<bits::Matrix, WatchedError> {
        if self.leaves.is_empty() {
            return Ok(propagate(sets, edges));
        }
        let least = edges.iter().copied().filter(|&(from, to)| !self.enters(from, to)).collect();
        let least = propagate(sets.clone(), least);
        let sets = propagate(sets, edges);
        self.check(|x, leaf| sets[x as usize] == least[leaf as usize])?;
        Ok(sets)
    }

    /// Whether something holds of each state that counts and its leaves.
    fn check(&self, same: impl Fn(u32, u32) -> bool) -> Result<(), WatchedError> {
        match self.leaves.iter().find(|(x, leaf, _)| !same(*x, *leaf)) {
            Some(&(.., chain)) => Err(WatchedError::Uncountable(chain)),
            None => Ok(()),
        }
    }

    fn find_endings(&mut self) -> Vec<Vec<Ending>> {
        let raw = self.raw;
        let facts = raw.facts;
        let mut endings = vec![Vec::new(); facts.count];
        for x in (0..raw.states.len() as u32).filter(|&x| !raw.is_start(x)) {
            for t in bits::iter(raw.cand_of(x)) {
                let slots = if bits::has(&facts.ignored, t) {
                    vec![(self.slots.number(Slots::key(raw, x, raw.group_of(x))), raw.group_of(x))]
                } else {
                    let after = facts.after[t as usize].iter();
                    after.map(|(g, _)| (self.slots.number(Slots::key(raw, x, *g)), *g)).collect()
                };
                endings[t as usize].push((x, slots));
            }
        }
        for &(x, end) in &self.ends {
            let Goes::Ends(p, afters) = end else { continue };
            for t in bits::iter(raw.cand(*p)) {
                endings[t as usize].push((x, self.slots_after(t, afters)));
            }
        }
        for list in &mut endings {
            list.sort_unstable();
            list.dedup();
        }
        endings
    }

    /// The slots of those ways on from a lexeme's end that are open to terminal `t`.
    fn slots_after(&self, t: u32, afters: &Afters) -> Vec<(u32, u32)> {
        let facts = self.raw.facts;
        let ignored = bits::has(&facts.ignored, t);
        let open =
            afters.iter().filter(|a| a.ignored == ignored && (ignored || facts.rows_after(t, a.group).is_some()));
        open.map(|a| (self.slots.ids[&Slots::key(self.raw, a.state, a.group)], a.group)).collect()
    }

    fn find_live(&mut self, trapped: &bits::Matrix) -> Result<(), WatchedError> {
        let raw = self.raw;
        let mut own = bits::Matrix::new(raw.width, raw.states.len());
        for x in 0..raw.states.len() {
            own[x].copy_from_slice(raw.cand_of(x as u32));
        }
        for (x, end) in &self.ends {
            bits::unite(&mut own[*x as usize], &self.ended[&end.end().unwrap_or_default()].0);
        }
        self.live = self.propagate(own, self.inside.clone())?;
        for x in 0..raw.states.len() {
            self.live[x].iter_mut().zip(&trapped[x]).for_each(|(a, b)| *a &= !b);
        }
        self.check(|x, leaf| self.live[x as usize] == self.live[leaf as usize])
    }

    /// Least solution of: followers(x, g) ⊇ live(y) and after_ignored(y) for every lexeme y of group g that can start when
    /// x's ends; after_ignored(y) ⊇ followers(z, g) for every z inside y's lexeme, of group g, that ends as an ignored
    /// terminal. In `sets`, after_ignored of all states comes first, then the slots.
    fn find_followers(&mut self) -> Result<(), WatchedError> {
        let raw = self.raw;
        let n = raw.states.len() as u32;
        let ignored = &raw.facts.ignored;
        let mut slots = std::mem::take(&mut self.slots);
        let mut sets = bits::Matrix::new(raw.width, n as usize + slots.ids.len());
        let mut edges: Vec<(u32, u32)> = Vec::new();
        let mut slot = |sets: &mut bits::Matrix, key: (u32, u32)| {
            let at = n + slots.number(key);
            if at as usize == sets.len() {
                sets.push();
            }
            at
        };
        let mut start = |sets: &mut bits::Matrix, key: (u32, u32), goes: &Goes, edges: &mut Vec<(u32, u32)>| match goes
        {
            Goes::Dead => {}
            Goes::To(y) => {
                let (from, live) = (slot(sets, key), &self.live[*y as usize]);
                bits::unite(&mut sets[from as usize], live);
                // Otherwise nothing comes after an ignored one.
                if bits::meets(live, ignored) {
                    edges.push((from, *y));
                }
            }
            Goes::Ends(..) => {
                let from = slot(sets, key);
                let (alive, afters) = &self.ended[&goes.end().unwrap_or_default()];
                bits::unite(&mut sets[from as usize], alive);
                if bits::meets(alive, ignored) {
                    let on = afters.iter().filter(|a| a.ignored);
                    edges.extend(on.map(|a| (from, slot(sets, Slots::key(raw, a.state, a.group)))));
                }
            }
        };
        for list in 0..raw.ends.len() as u32 {
            for short in raw.ends_at(list).flat_map(|(_, shorts)| shorts) {
                start(&mut sets, (list, short.group), &short.goes, &mut edges);
            }
        }
        for x in (0..n).filter(|&x| raw.is_start(x)) {
            let key = Slots::key(raw, x, raw.group_of(x));
            raw.inside_of(x).for_each(|(main, _)| start(&mut sets, key, main, &mut edges));
        }
        for x in (0..n).filter(|&x| !raw.is_start(x) && bits::meets(&self.live[x as usize], ignored)) {
            edges.extend(raw.moves.ends(x).map(|to| (x, to)));
            for (main, _) in raw.steps_of(x) {
                match main {
                    Goes::Dead => {}
                    Goes::To(to) => edges.push((x, *to)),
                    Goes::Ends(..) => {
                        let (alive, afters) = &self.ended[&main.end().unwrap_or_default()];
                        if bits::meets(alive, ignored) {
                            let on = afters.iter().filter(|a| a.ignored);
                            edges.extend(on.map(|a| (x, slot(&mut sets, Slots::key(raw, a.state, a.group)))));
                        }
                    }
                }
            }
            if bits::meets(raw.cand_of(x), ignored) {
                edges.push((x, slot(&mut sets, Slots::key(raw, x, raw.group_of(x)))));
            }
        }
        self.slots = slots;
        self.followers = self.propagate(sets, edges)?.split_off(n as usize);
        Ok(())
    }

    /// Terminals whose separability matters: those that never end a sentence and must be followed by something.
    fn checked(&self) -> impl Iterator<Item = u32> + '_ {
        let facts = self.raw.facts;
        bits::iter(&facts.usable).filter(|&t| {
            let follow = &facts.follow[t as usize];
            !bits::is_empty(follow) && !bits::has(follow, facts.count as u32)
        })
    }

    /// Followers of `t` that can be cut from it, looked up in `slots`.
    fn separable(&self, t: u32, slots: &[(u32, u32)]) -> Vec<u64> {
        let facts = self.raw.facts;
        let mut found = vec![0; self.raw.width];
        for &(slot, group) in slots {
            let rows = facts.rows_after(t, group);
            let follow = &facts.follow[t as usize];
            for (i, word) in found.iter_mut().enumerate() {
                let possible = match rows {
                    Some(rows) => rows[i] & follow[i],
                    // Anything can come after an ignored lexeme.
                    None => facts.usable[i],
                };
                *word |= self.followers[slot as usize][i] & possible;
            }
        }
        found
    }

    fn find_traps(&mut self, trapped: &mut bits::Matrix) -> Result<bool, WatchedError> {
        let mut found = false;
        let checked: Vec<u32> = self.checked().collect();
        for t in checked {
            let trapped_ends: Vec<(u32, u32)> = self
                .ended
                .iter()
                .filter(|(_, (alive, afters))| {
                    bits::has(alive, t) && bits::is_empty(&self.separable(t, &self.slots_after(t, afters)))
                })
                .map(|(end, _)| *end)
                .collect();
            for end in trapped_ends {
                found = true;
                if let Some((alive, _)) = self.ended.get_mut(&end) {
                    bits::remove(alive, t);
                }
            }
            let good = |(_, slots): &&Ending| !bits::is_empty(&self.separable(t, slots));
            let endings = &self.endings[t as usize];
            if endings.iter().all(|e| good(&e)) {
                continue;
            }
            let good: Vec<u32> = endings.iter().filter(good).map(|e| e.0).collect();
            let fine = self.reaching(good.clone(), |_, _| true);
            if !self.leaves.is_empty() {
                let least = self.reaching(good, |from, to| !self.enters(from, to));
                self.check(|x, leaf| fine[x as usize] == least[leaf as usize])?;
            }
            for x in 0..self.live.len() {
                if !fine[x] && bits::has(&self.live[x], t) && !self.raw.is_start(x as u32) {
                    bits::insert(&mut trapped[x], t);
                    found = true;
                }
            }
        }
        Ok(found)
    }

    /// The states from which one of `states` can be reached inside a lexeme, over edges that are open.
    fn reaching(&self, mut states: Vec<u32>, is_open: impl Fn(u32, u32) -> bool) -> Vec<bool> {
        let mut reaching = vec![false; self.live.len()];
        while let Some(x) = states.pop() {
            crate::control::check();
            if !std::mem::replace(&mut reaching[x as usize], true) {
                let range = self.source_start[x as usize]..self.source_start[x as usize + 1];
                let sources = &self.sources[range.start as usize..range.end as usize];
                states.extend(sources.iter().filter(|&&from| is_open(from, x)));
            }
        }
        reaching
    }

    fn findings(&self) -> Findings {
        let facts = self.raw.facts;
        let mut used = vec![0; self.raw.width];
        for set in self.live.rows().chain(self.ended.values().map(|(alive, _)| &alive[..])) {
            bits::unite(&mut used, set);
        }
        let begins = &self.followers[self.slots.ids[&Slots::key(self.raw, 0, self.raw.group_of(0))] as usize];
        Findings {
            reports: self.reports(),
            unusable: bits::iter(&facts.usable).filter(|&t| !bits::has(&used, t)).collect(),
            nothing_begins: !bits::has(&facts.begin, facts.count as u32) && !bits::meets(&facts.begin, begins),
        }
    }

    fn reports(&self) -> Vec<Report> {
        let mut reports = Vec::new();
        let facts = self.raw.facts;
        let end = facts.count as u32;
        let mut reported_terminals = facts.usable.clone();
        bits::unite(&mut reported_terminals, &facts.ignored);
        for t in bits::iter(&reported_terminals) {
            let ignored = bits::has(&facts.ignored, t);
            let mut follow = if ignored { facts.usable.clone() } else { facts.follow[t as usize].clone() };
            bits::remove(&mut follow, end);
            let endings = &self.endings[t as usize];
            let misses = |found: &[u64]| follow.iter().zip(found).any(|(f, s)| f & !s != 0);
            if endings.iter().all(|(_, slots)| !misses(&self.separable(t, slots))) {
                continue;
            }
            let mut reach = bits::Matrix::new(self.raw.width, self.live.len());
            for (x, slots) in endings {
                bits::unite(&mut reach[*x as usize], &self.separable(t, slots));
            }
            let reach = propagate(reach, self.inside.clone());
            let mut reported = vec![0u64; self.raw.width];
            for x in 0..self.live.len() {
                if !bits::has(&self.live[x], t) || self.raw.is_start(x as u32) {
                    continue;
                }
                // In contextual mode an ignored lexeme is followed by what its own group knows.
                let known = self.raw.dfa.starts[self.raw.group_of(x as u32) as usize];
                for follower in bits::iter(&follow) {
                    let possible =
                        !ignored || self.raw.dfa.starts.len() == 1 || bits::has(self.raw.live_at(known), follower);
                    if possible && !bits::has(&reach[x], follower) && !bits::has(&reported, follower) {
                        bits::insert(&mut reported, follower);
                        reports.push(Report { text: self.raw.text(x as u32), terminal: t, follower });
                    }
                }
            }
            if reports.len() >= MAX_REPORTS {
                break;
            }
        }
        reports.truncate(MAX_REPORTS);
        reports
    }
}
