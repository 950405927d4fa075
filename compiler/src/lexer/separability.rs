//! Separability: can what is pending really end as terminal `t` with something that may follow it?
//!
//! For a state x and t ∈ live(x) some continuation that completes no watcher must end the lexeme as t where the next byte
//! can start a terminal of FOLLOW(t). Where this fails for every follower, x is a *trap* for t and t is taken out of live(x);
//! this is repeated, since followers can be trapped in turn. Where it fails for some followers only, a [`Report`] says so:
//! masks are then exact for the engine's rule but a dead end may be reachable.
//!
//! Source: the project's own analysis; the pairwise rule of terminals alone is not enough.

use super::LexerDfa;
use super::watched::{Main, Raw, Short, TerminalFacts, TooManyStates, WatchedLexer, edge_starts, propagate};
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

/// Reports kept; one per pair of terminals is enough for people.
const MAX_REPORTS: usize = 1000;

/// Build the watched lexer.
///
/// # Errors
/// [`TooManyStates`] past `max_states`.
pub fn build_watched(
    dfa: &LexerDfa,
    facts: &TerminalFacts,
    max_states: usize,
) -> Result<(WatchedLexer, Vec<Report>), TooManyStates> {
    let raw = Raw::explore(dfa, facts, max_states)?;
    let mut analysis = Analysis::new(&raw);
    let mut trapped = vec![vec![0u64; raw.width]; raw.states.len()];
    loop {
        analysis.find_live(&trapped);
        analysis.find_followers();
        if !analysis.find_traps(&mut trapped) {
            break;
        }
    }
    let reports = analysis.reports();
    let Analysis { live, ended, .. } = analysis;
    Ok((raw.finish(&live, &ended), reports))
}

struct Analysis<'a> {
    raw: &'a Raw<'a>,
    /// Edges inside a lexeme, (target, source), sorted.
    inside: Vec<(u32, u32)>,
    inside_start: Vec<usize>,
    /// For each terminal the states x whose lexeme can end as it, with the state whose followers then count.
    endings: Vec<Vec<(u32, u32)>>,
    /// live(x).
    live: Vec<Vec<u64>>,
    /// What a lexeme that ends at once can be: by DFA state and the state after it, the candidates that are no traps.
    ended: FxHashMap<(u32, u32), Vec<u64>>,
    /// sep(x): what the next byte can start, if the lexeme ends in x; closed through ignored terminals.
    followers: Vec<Vec<u64>>,
}

impl<'a> Analysis<'a> {
    fn new(raw: &'a Raw<'a>) -> Self {
        let n = raw.states.len() as u32;
        let mut inside: Vec<(u32, u32)> = (0..n)
            .flat_map(|x| {
                raw.steps_of(x).filter_map(move |(main, _)| match main {
                    Main::To(to) if raw.states[x as usize].0 != 0 => Some((*to, x)),
                    _ => None,
                })
            })
            .collect();
        inside.sort_unstable();
        inside.dedup();
        let inside_start = edge_starts(&inside, n as usize);
        let mut ended = FxHashMap::default();
        for (main, short) in raw.main.iter().zip(&raw.short) {
            for end in [main.end(), short.end()].into_iter().flatten() {
                ended.entry(end).or_insert_with(|| raw.cand[end.0 as usize].to_vec());
            }
        }
        Analysis { raw, inside, inside_start, endings: endings(raw), live: Vec::new(), ended, followers: Vec::new() }
    }

    fn find_live(&mut self, trapped: &[Vec<u64>]) {
        let raw = self.raw;
        let own = (0..raw.states.len() as u32)
            .map(|x| {
                let mut set = raw.cand_of(x).to_vec();
                if raw.states[x as usize].0 != 0 {
                    for (main, _) in raw.steps_of(x) {
                        if let Some(end) = main.end() {
                            bits::unite(&mut set, &self.ended[&end]);
                        }
                    }
                }
                set
            })
            .collect();
        self.live = propagate(own, self.inside.iter().map(|&(to, from)| (from, to)));
        for (live, trapped) in self.live.iter_mut().zip(trapped) {
            for (a, b) in live.iter_mut().zip(trapped) {
                *a &= !b;
            }
        }
    }

    /// Least solution of: followers(x) ⊇ live(y) and after_ignored(y) for every lexeme y that can start when x's ends;
    /// after_ignored(y) ⊇ followers(z) for every z inside y's lexeme that ends as an ignored terminal.
    fn find_followers(&mut self) {
        let raw = self.raw;
        let n = raw.states.len();
        let ignored = &raw.facts.ignored;
        // Nodes 0..n are followers(x), n..2n after_ignored(x). A state between lexemes stands for "just ended".
        let mut sets = vec![vec![0u64; raw.width]; 2 * n];
        let mut edges: Vec<(u32, u32)> = Vec::new();
        for x in 0..n as u32 {
            let between = raw.states[x as usize].0 == 0;
            for (main, short) in raw.steps_of(x) {
                // What starts with this byte once the lexeme has ended.
                let (starts, ends) = match (between, main, short) {
                    (true, Main::To(to), _) | (false, _, Short::To(to)) => (Some(*to), None),
                    (true, Main::Ends(p, to), _) | (false, _, Short::Ends(p, to)) => (None, Some((*p, *to))),
                    _ => (None, None),
                };
                if let Some(y) = starts {
                    bits::unite(&mut sets[x as usize], &self.live[y as usize]);
                    edges.push((x, n as u32 + y));
                }
                if let Some(end) = ends {
                    bits::unite(&mut sets[x as usize], &self.ended[&end]);
                    if bits::meets(&self.ended[&end], ignored) {
                        edges.push((x, end.1));
                    }
                }
                if between {
                    continue;
                }
                match main {
                    Main::To(to) => edges.push((n as u32 + x, n as u32 + to)),
                    Main::Ends(p, after) if bits::meets(&self.ended[&(*p, *after)], ignored) => {
                        edges.push((n as u32 + x, *after));
                    }
                    _ => {}
                }
            }
            if bits::meets(raw.cand_of(x), ignored) {
                edges.push((n as u32 + x, x));
            }
        }
        sets = propagate(sets, edges.into_iter());
        sets.truncate(n);
        self.followers = sets;
    }

    /// Terminals whose separability matters: those that never end a sentence and must be followed by something.
    fn checked(&self) -> impl Iterator<Item = u32> + '_ {
        let facts = self.raw.facts;
        bits::iter(&facts.usable).filter(|&t| {
            let follow = &facts.follow[t as usize];
            !bits::is_empty(follow) && !bits::has(follow, facts.count as u32)
        })
    }

    fn find_traps(&mut self, trapped: &mut [Vec<u64>]) -> bool {
        let mut found = false;
        let checked: Vec<u32> = self.checked().collect();
        for t in checked {
            let follow = &self.raw.facts.follow[t as usize];
            for (&(_, after), set) in &mut self.ended {
                if bits::has(set, t) && !bits::meets(&self.followers[after as usize], follow) {
                    bits::remove(set, t);
                    found = true;
                }
            }
            let endings = &self.endings[t as usize];
            let good = |&(_, end): &(u32, u32)| bits::meets(&self.followers[end as usize], follow);
            if endings.iter().all(good) {
                continue;
            }
            let mut fine = vec![false; self.live.len()];
            let mut queue: Vec<u32> = endings.iter().filter(|e| good(e)).map(|e| e.0).collect();
            while let Some(x) = queue.pop() {
                if !std::mem::replace(&mut fine[x as usize], true) {
                    let range = self.inside_start[x as usize]..self.inside_start[x as usize + 1];
                    queue.extend(self.inside[range].iter().map(|&(_, from)| from));
                }
            }
            for x in 0..self.live.len() {
                if !fine[x] && bits::has(&self.live[x], t) && self.raw.states[x].0 != 0 {
                    bits::insert(&mut trapped[x], t);
                    found = true;
                }
            }
        }
        found
    }

    fn reports(&self) -> Vec<Report> {
        let mut reports = Vec::new();
        let facts = self.raw.facts;
        let end = facts.count as u32;
        let mut reported_terminals = facts.usable.clone();
        bits::unite(&mut reported_terminals, &facts.ignored);
        for t in bits::iter(&reported_terminals) {
            // Anything can come after an ignored lexeme.
            let ignored = bits::has(&facts.ignored, t);
            let mut follow = if ignored { facts.usable.clone() } else { facts.follow[t as usize].clone() };
            bits::remove(&mut follow, end);
            let endings = &self.endings[t as usize];
            let covers =
                |&(_, at): &(u32, u32)| follow.iter().zip(&self.followers[at as usize]).all(|(f, s)| f & !s == 0);
            if endings.iter().all(covers) {
                continue;
            }
            let mut reach = vec![vec![0u64; self.raw.width]; self.live.len()];
            for &(x, at) in endings {
                let source = self.followers[at as usize].clone();
                bits::unite(&mut reach[x as usize], &source);
            }
            let reach = propagate(reach, self.inside.iter().map(|&(to, from)| (from, to)));
            let mut reported = vec![0u64; self.raw.width];
            for x in 0..self.live.len() {
                if !bits::has(&self.live[x], t) || self.raw.states[x].0 == 0 {
                    continue;
                }
                for follower in bits::iter(&follow) {
                    if !bits::has(&reach[x], follower) && !bits::has(&reported, follower) {
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

fn endings(raw: &Raw<'_>) -> Vec<Vec<(u32, u32)>> {
    let mut endings = vec![Vec::new(); raw.facts.count];
    for x in (0..raw.states.len() as u32).filter(|&x| raw.states[x as usize].0 != 0) {
        bits::iter(raw.cand_of(x)).for_each(|t| endings[t as usize].push((x, x)));
        for (main, _) in raw.steps_of(x) {
            if let Main::Ends(p, after) = main {
                bits::iter(&raw.cand[*p as usize]).for_each(|t| endings[t as usize].push((x, *after)));
            }
        }
    }
    for list in &mut endings {
        list.sort_unstable();
        list.dedup();
    }
    endings
}
