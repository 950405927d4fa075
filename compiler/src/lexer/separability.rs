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
use super::propagate::propagate;
use super::raw::{Ended, Goes, Raw, Step};
use super::watched::{NONE, TerminalFacts, WatchedError, WatchedLexer};
use super::{chain_of, is_far};
use crate::bits;
use crate::grammar::relation::Relation;
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
    let mut trapped: Vec<(u32, u32)> = Vec::new();
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

/// A way for lexemes to end as some terminal: the nodes where they do, and where to look up what can come then, by next group.
#[derive(Clone)]
struct Ending {
    nodes: Vec<u32>,
    slots: Vec<(u32, u32)>,
}

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

/// The analysis of a lexer as a graph. Its nodes are the states, then the lexemes that end at once, then, since many states
/// share them, the lists of steps at which a lexeme may end: twice, for states that do not count and for those that do.
struct Analysis<'a> {
    raw: &'a Raw<'a>,
    /// Whether each node counts; empty if none does.
    far: Vec<bool>,
    leaves: Leaves,
    slots: Slots,
    /// Number of nodes, and edges inside a lexeme, (source, target). What leads where its model does leads to that.
    nodes: usize,
    inside: Vec<(u32, u32)>,
    /// For each terminal the ways a lexeme can end as it.
    endings: Vec<Vec<Ending>>,
    /// live(x), for all nodes.
    live: bits::Matrix,
    /// What each lexeme that ends at once can be, traps left out.
    ended: Vec<Vec<u64>>,
    /// sep(x) for each next group: what the next byte can start, if the lexeme ends in x; closed through ignored
    /// terminals. A state between lexemes has a slot for its own group only.
    followers: bits::Matrix,
}

impl<'a> Analysis<'a> {
    fn new(raw: &'a Raw<'a>) -> Result<Self, WatchedError> {
        let (mut far, leaves) = leaves(raw)?;
        let n = raw.states.len() as u32;
        let first_list = n + raw.ended.len() as u32;
        let nodes = first_list as usize + 2 * raw.ends.len();
        if !far.is_empty() {
            far.resize(first_list as usize, false);
            far.extend((0..2 * raw.ends.len()).map(|list| list % 2 == 1));
        }
        let is_far = |x: u32| far.get(x as usize).copied().unwrap_or(false);
        let node = |goes: Goes| match goes {
            Goes::Dead => None,
            Goes::To(x) => Some(x),
            Goes::Ends(end) => Some(n + end),
        };
        let mut inside: Vec<(u32, u32)> = Vec::new();
        for from in first_list..nodes as u32 {
            let steps = raw.ends_at((from - first_list) / 2);
            inside.extend(steps.filter_map(|step| Some((from, node(step.main)?))));
        }
        for x in 0..n {
            if !raw.is_start(x) {
                let edge = |step: &Step| Some((x, node(step.main)?));
                match raw.more_than_model(x) {
                    Some((model, more)) => {
                        inside.push((x, model));
                        inside.extend(more.filter_map(edge));
                    }
                    None => {
                        inside.push((x, first_list + 2 * raw.ends_of[x as usize] + u32::from(is_far(x))));
                        inside.extend(raw.inside_of(x).filter_map(edge));
                    }
                }
            }
            inside.extend(raw.moves.ends(x).map(|to| (x, to)));
        }
        let mut analysis = Analysis {
            raw,
            far,
            leaves,
            slots: Slots::default(),
            nodes,
            inside,
            endings: Vec::new(),
            live: bits::Matrix::default(),
            ended: raw.ended.iter().map(|end| raw.cand(end.q).to_vec()).collect(),
            followers: bits::Matrix::default(),
        };
        for after in raw.ended.iter().flat_map(|end| &end.afters) {
            analysis.slots.number(Slots::key(raw, after.state, after.group));
        }
        analysis.slots.number(Slots::key(raw, 0, raw.group_of(0)));
        analysis.endings = analysis.find_endings();
        Ok(analysis)
    }

    /// The states.
    fn states(&self) -> std::ops::Range<u32> {
        0..self.raw.states.len() as u32
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
    fn propagate(&self, sets: bits::Matrix, edges: &[(u32, u32)]) -> Result<bits::Matrix, WatchedError> {
        if self.leaves.is_empty() {
            return Ok(propagate(sets, edges));
        }
        let least: Vec<_> = edges.iter().copied().filter(|&(from, to)| !self.enters(from, to)).collect();
        let least = propagate(sets.clone(), &least);
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
        // Those of states by terminal, list and, if the terminal is ignored, group.
        let mut ids: FxHashMap<(u32, u32, u32), usize> = FxHashMap::default();
        for x in self.states().filter(|&x| !raw.is_start(x)) {
            let (list, group) = (raw.ends_of[x as usize], raw.group_of(x));
            for t in bits::iter(raw.cand_of(x)) {
                let ignored = bits::has(&facts.ignored, t);
                let endings = &mut endings[t as usize];
                let at = *ids.entry((t, list, if ignored { group } else { NONE })).or_insert_with(|| {
                    let mut slot = |group: u32| (self.slots.number(Slots::key(raw, x, group)), group);
                    let after = facts.after[t as usize].iter();
                    let slots =
                        if ignored { vec![slot(group)] } else { after.map(|(group, _)| slot(*group)).collect() };
                    endings.push(Ending { nodes: Vec::new(), slots });
                    endings.len() - 1
                });
                endings[at].nodes.push(x);
            }
        }
        for (node, end) in (raw.states.len() as u32..).zip(&raw.ended) {
            for t in bits::iter(raw.cand(end.q)) {
                endings[t as usize].push(Ending { nodes: vec![node], slots: self.slots_after(t, end) });
            }
        }
        endings
    }

    /// The slots of those ways on from a lexeme's end that are open to terminal `t`.
    fn slots_after(&self, t: u32, end: &Ended) -> Vec<(u32, u32)> {
        let facts = self.raw.facts;
        let ignored = bits::has(&facts.ignored, t);
        let open =
            end.afters.iter().filter(|a| a.ignored == ignored && (ignored || facts.rows_after(t, a.group).is_some()));
        open.map(|a| (self.slots.ids[&Slots::key(self.raw, a.state, a.group)], a.group)).collect()
    }

    fn find_live(&mut self, trapped: &[(u32, u32)]) -> Result<(), WatchedError> {
        let raw = self.raw;
        let mut own = bits::Matrix::new(raw.width, self.nodes);
        self.states().for_each(|x| own[x as usize].copy_from_slice(raw.cand_of(x)));
        for (node, alive) in (raw.states.len()..).zip(&self.ended) {
            own[node].copy_from_slice(alive);
        }
        self.live = self.propagate(own, &self.inside)?;
        trapped.iter().for_each(|&(x, t)| bits::remove(&mut self.live[x as usize], t));
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
        let empty = vec![0; raw.width];
        let mut slot = |sets: &mut bits::Matrix, key: (u32, u32)| {
            let at = n + slots.number(key);
            if at as usize == sets.len() {
                sets.push(&empty);
            }
            at
        };
        let mut start = |sets: &mut bits::Matrix, key: (u32, u32), goes: Goes, edges: &mut Vec<(u32, u32)>| match goes {
            Goes::Dead => {}
            Goes::To(y) => {
                let (from, live) = (slot(sets, key), &self.live[y as usize]);
                bits::unite(&mut sets[from as usize], live);
                // Otherwise nothing comes after an ignored one.
                if bits::meets(live, ignored) {
                    edges.push((from, y));
                }
            }
            Goes::Ends(end) => {
                let (from, alive) = (slot(sets, key), &self.ended[end as usize]);
                bits::unite(&mut sets[from as usize], alive);
                if bits::meets(alive, ignored) {
                    let on = raw.ended[end as usize].afters.iter().filter(|a| a.ignored);
                    edges.extend(on.map(|a| (from, slot(sets, Slots::key(raw, a.state, a.group)))));
                }
            }
        };
        for list in 0..raw.ends.len() as u32 {
            for short in raw.ends_at(list).flat_map(|step| &step.shorts) {
                start(&mut sets, (list, short.group), short.goes, &mut edges);
            }
        }
        for x in self.states().filter(|&x| raw.is_start(x)) {
            let key = Slots::key(raw, x, raw.group_of(x));
            raw.inside_of(x).for_each(|step| start(&mut sets, key, step.main, &mut edges));
        }
        for x in self.states().filter(|&x| !raw.is_start(x) && bits::meets(&self.live[x as usize], ignored)) {
            edges.extend(raw.moves.ends(x).map(|to| (x, to)));
            for step in raw.steps_of(x) {
                match step.main {
                    Goes::Dead => {}
                    Goes::To(to) => edges.push((x, to)),
                    Goes::Ends(end) => {
                        if bits::meets(&self.ended[end as usize], ignored) {
                            let on = raw.ended[end as usize].afters.iter().filter(|a| a.ignored);
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
        self.followers = self.propagate(sets, &edges)?.split_off(n as usize);
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

    fn find_traps(&mut self, trapped: &mut Vec<(u32, u32)>) -> Result<bool, WatchedError> {
        let mut found = false;
        let mut backwards = None;
        let checked: Vec<u32> = self.checked().collect();
        for t in checked {
            let trapped_ends: Vec<usize> = (0..self.ended.len())
                .filter(|&end| {
                    bits::has(&self.ended[end], t)
                        && bits::is_empty(&self.separable(t, &self.slots_after(t, &self.raw.ended[end])))
                })
                .collect();
            for end in trapped_ends {
                found = true;
                bits::remove(&mut self.ended[end], t);
            }
            let endings = &self.endings[t as usize];
            let good: Vec<&Ending> =
                endings.iter().filter(|ending| !bits::is_empty(&self.separable(t, &ending.slots))).collect();
            if good.len() == endings.len() {
                continue;
            }
            let good: Vec<u32> = good.into_iter().flat_map(|ending| &ending.nodes).copied().collect();
            let sources = backwards.get_or_insert_with(|| Relation::sources(self.nodes, &self.inside));
            let fine = reaching(sources, good.clone(), |_, _| true);
            if !self.leaves.is_empty() {
                let least = reaching(sources, good, |from, to| !self.enters(from, to));
                self.check(|x, leaf| fine[x as usize] == least[leaf as usize])?;
            }
            for x in self.states() {
                if !fine[x as usize] && bits::has(&self.live[x as usize], t) && !self.raw.is_start(x) {
                    trapped.push((x, t));
                    found = true;
                }
            }
        }
        Ok(found)
    }

    fn findings(&self) -> Findings {
        let facts = self.raw.facts;
        let mut used = vec![0; self.raw.width];
        self.states().for_each(|x| _ = bits::unite(&mut used, &self.live[x as usize]));
        self.ended.iter().for_each(|alive| _ = bits::unite(&mut used, alive));
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
            // In contextual mode an ignored lexeme is followed by what its own group knows.
            let known = |group: u32| {
                let in_context = ignored && self.raw.dfa.starts.len() > 1;
                in_context.then(|| self.raw.live_at(self.raw.dfa.starts[group as usize]))
            };
            let misses = |Ending { slots, .. }: &Ending| {
                let known = slots.first().and_then(|slot| known(slot.1));
                let possible = (0..).zip(&follow).map(|(i, word)| word & known.map_or(u64::MAX, |known| known[i]));
                possible.zip(self.separable(t, slots)).any(|(possible, found)| possible & !found != 0)
            };
            if !endings.iter().any(misses) {
                continue;
            }
            let mut reach = bits::Matrix::new(self.raw.width, self.nodes);
            for Ending { nodes, slots } in endings {
                let separable = self.separable(t, slots);
                nodes.iter().for_each(|&node| _ = bits::unite(&mut reach[node as usize], &separable));
            }
            let reach = propagate(reach, &self.inside);
            let mut reported = vec![0u64; self.raw.width];
            for x in self.states() {
                if !bits::has(&self.live[x as usize], t) || self.raw.is_start(x) {
                    continue;
                }
                let known = known(self.raw.group_of(x));
                for follower in bits::iter(&follow) {
                    let possible = known.is_none_or(|known| bits::has(known, follower));
                    if possible && !bits::has(&reach[x as usize], follower) && !bits::has(&reported, follower) {
                        bits::insert(&mut reported, follower);
                        reports.push(Report { text: self.raw.text(x), terminal: t, follower });
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

/// The nodes from which one of `nodes` can be reached over edges that are open.
fn reaching(sources: &Relation, mut nodes: Vec<u32>, is_open: impl Fn(u32, u32) -> bool) -> Vec<bool> {
    let mut reaching = vec![false; sources.len()];
    while let Some(to) = nodes.pop() {
        crate::control::check();
        if !std::mem::replace(&mut reaching[to as usize], true) {
            nodes.extend(sources.row(to as usize).iter().filter(|&&from| is_open(from, to)));
        }
    }
    reaching
}
