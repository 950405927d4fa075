//! Patterns with assertions anywhere → automata over sets of code points.
//!
//! An assertion says something of the text around a place, so the subset construction carries along what has been said. A
//! [`Config`] is a set of threads at one place between two symbols. A thread is a state of the pattern's Thompson NFA and
//! its *obligations*: configurations, one for each look-ahead passed on the way, that what follows must be accepted by, or
//! must not. A configuration is deterministic, so "must not" is no harder than "must". What came before is known to a
//! configuration as far as it can matter: the kind of the last symbol (for `^` and `\b`), and for each look-behind the
//! configuration of a search that began with the string. Configurations are numbered as they are met; there are finitely
//! many. Symbols are the coarsest sets that no set of the pattern divides.

use regex_syntax::hir::ClassUnicode;
use rustc_hash::{FxHashMap, FxHashSet};

use super::class;
use super::parse::{Node, set, word};
use crate::grammar::ir::{Expr, GraphState};

/// NFA states, and configurations, beyond which a pattern is refused.
const MAX_STATES: usize = 20_000;

type Symbol = u16;
type StateId = u32;
type ConfigId = u32;

enum State {
    /// Reads one of the symbols.
    Read(Vec<bool>, StateId),
    Split(Vec<StateId>),
    Begin(StateId),
    End(StateId),
    Boundary(bool, StateId),
    Ahead(bool, StateId, StateId),
    /// The index of the look-behind.
    Behind(bool, usize, StateId),
    Match,
    /// Matches whatever follows.
    MatchAll,
}

/// What the last symbol was; none if it makes no difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Before {
    Nothing,
    Word,
    Other,
}

/// Configurations that must accept the rest, or must not.
type Obligations = Vec<(ConfigId, bool)>;
type Thread = (StateId, Obligations);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Config {
    before: Before,
    /// For each look-behind, where its search stands.
    behinds: Vec<ConfigId>,
    threads: Vec<Thread>,
}

struct Machine {
    symbols: Vec<ClassUnicode>,
    is_word: Vec<bool>,
    states: Vec<State>,
    /// Where the search of each look-behind begins.
    behinds: Vec<StateId>,
    has_boundary: bool,
    configs: Vec<Config>,
    ids: FxHashMap<Config, ConfigId>,
    steps: FxHashMap<(ConfigId, Symbol), ConfigId>,
}

/// The configuration that accepts nothing, and the one that accepts everything.
const DEAD: ConfigId = 0;
const ALL: ConfigId = 1;
const MATCH_ALL: StateId = 0;
const MATCH: StateId = 1;

/// The strings in which `node` matches somewhere.
pub(super) fn search(node: &Node) -> Result<Expr, String> {
    let mut machine = Machine::new(node);
    let body = machine.emit(node, MATCH_ALL)?;
    let start = machine.anywhere(body);
    let behinds = machine.behinds.clone();
    let behinds =
        behinds.into_iter().map(|start| machine.intern(Before::Nothing, Vec::new(), vec![(start, Vec::new())]));
    let behinds = behinds.collect::<Result<_, _>>()?;
    let start = machine.intern(Before::Nothing, behinds, vec![(start, Vec::new())])?;
    machine.graph(start)
}

/// Every set in `node`, once, and whether a boundary is in it.
fn collect<'a>(node: &'a Node, sets: &mut Vec<&'a ClassUnicode>) -> bool {
    match node {
        Node::Set(set) => {
            if !sets.contains(&set) {
                sets.push(set);
            }
            false
        }
        Node::Cat(parts) | Node::Alt(parts) => parts.iter().fold(false, |found, part| collect(part, sets) | found),
        Node::Repeat(body, ..) | Node::Ahead(_, body) | Node::Behind(_, body) => collect(body, sets),
        Node::Boundary(_) => true,
        Node::Begin | Node::End => false,
    }
}

/// The coarsest division of all code points that divides none of `sets`.
fn symbols(sets: &[&ClassUnicode]) -> Vec<ClassUnicode> {
    let mut symbols = vec![set(&[('\0', char::MAX)])];
    for set in sets {
        let mut divided = Vec::with_capacity(symbols.len() + 1);
        for symbol in symbols {
            let (mut inside, mut outside) = (symbol.clone(), symbol);
            inside.intersect(set);
            outside.difference(set);
            divided.extend([inside, outside].into_iter().filter(|part| !part.ranges().is_empty()));
        }
        symbols = divided;
    }
    symbols
}

impl Machine {
    fn new(node: &Node) -> Self {
        let word = word();
        let mut sets = Vec::new();
        let has_boundary = collect(node, &mut sets);
        if has_boundary {
            sets.push(&word);
        }
        let symbols = symbols(&sets);
        let is_word = symbols.iter().map(|symbol| is_within(symbol, &word)).collect();
        let nothing = Config { before: Before::Other, behinds: Vec::new(), threads: Vec::new() };
        let all = Config { threads: vec![(MATCH_ALL, Vec::new())], ..nothing.clone() };
        Self {
            symbols,
            is_word,
            states: vec![State::MatchAll, State::Match],
            behinds: Vec::new(),
            has_boundary,
            ids: [(nothing.clone(), DEAD), (all.clone(), ALL)].into_iter().collect(),
            configs: vec![nothing, all],
            steps: FxHashMap::default(),
        }
    }

    fn push(&mut self, state: State) -> Result<StateId, String> {
        if self.states.len() >= MAX_STATES {
            return Err(format!("its repeats and assertions take more than {MAX_STATES} states; lower the counts"));
        }
        self.states.push(state);
        Ok(self.states.len() as StateId - 1)
    }

    /// A loop over everything that may be left for `next` at any place.
    fn anywhere(&mut self, next: StateId) -> StateId {
        let base = self.states.len() as StateId;
        self.states.push(State::Read(vec![true; self.symbols.len()], base + 1));
        self.states.push(State::Split(vec![base, next]));
        base + 1
    }

    /// Put `node` in front of `next`; its first state.
    fn emit(&mut self, node: &Node, next: StateId) -> Result<StateId, String> {
        match node {
            Node::Set(set) => {
                let members = self.symbols.iter().map(|symbol| is_within(symbol, set)).collect();
                self.push(State::Read(members, next))
            }
            Node::Cat(parts) => parts.iter().rev().try_fold(next, |next, part| self.emit(part, next)),
            Node::Alt(parts) => {
                let entries = parts.iter().map(|part| self.emit(part, next)).collect::<Result<_, _>>()?;
                self.push(State::Split(entries))
            }
            Node::Repeat(body, min, max) => self.emit_repeat(body, *min, *max, next),
            Node::Begin => self.push(State::Begin(next)),
            Node::End => self.push(State::End(next)),
            Node::Boundary(wanted) => self.push(State::Boundary(*wanted, next)),
            Node::Ahead(wanted, body) => {
                let body = self.emit(body, MATCH_ALL)?;
                self.push(State::Ahead(*wanted, body, next))
            }
            Node::Behind(wanted, body) => {
                if has_look(body) {
                    return Err(
                        "a look-ahead or look-behind in a look-behind is not supported; take it out of there".into()
                    );
                }
                let body = self.emit(body, MATCH)?;
                let start = self.anywhere(body);
                self.behinds.push(start);
                self.push(State::Behind(*wanted, self.behinds.len() - 1, next))
            }
        }
    }

    fn emit_repeat(&mut self, body: &Node, min: u32, max: Option<u32>, next: StateId) -> Result<StateId, String> {
        let mut entry = next;
        match max {
            Some(max) => {
                for _ in min..max {
                    let copy = self.emit(body, entry)?;
                    entry = self.push(State::Split(vec![copy, next]))?;
                }
            }
            None => {
                entry = self.push(State::Split(Vec::new()))?;
                let copy = self.emit(body, entry)?;
                self.states[entry as usize] = State::Split(vec![copy, next]);
            }
        }
        for _ in 0..min {
            let before = self.states.len();
            entry = self.emit(body, entry)?;
            if self.states.len() == before {
                break; // an empty body
            }
        }
        Ok(entry)
    }

    fn intern(&mut self, before: Before, behinds: Vec<ConfigId>, mut threads: Vec<Thread>) -> Result<ConfigId, String> {
        threads.sort_unstable();
        threads.dedup();
        if threads.is_empty() {
            return Ok(DEAD);
        }
        if threads.contains(&(MATCH_ALL, Vec::new())) {
            return Ok(ALL);
        }
        // A thread that promises more than another one at the same place adds nothing.
        let weaker =
            |a: &Thread, b: &Thread| a.0 == b.0 && a.1.len() < b.1.len() && a.1.iter().all(|o| b.1.contains(o));
        let kept =
            threads.iter().filter(|&thread| !threads.iter().any(|other| weaker(other, thread))).cloned().collect();
        let config = Config { before, behinds, threads: kept };
        if let Some(&id) = self.ids.get(&config) {
            return Ok(id);
        }
        let id = self.configs.len();
        if id >= MAX_STATES {
            return Err(format!("its assertions take more than {MAX_STATES} states; simplify them"));
        }
        self.configs.push(config.clone());
        self.ids.insert(config, id as ConfigId);
        Ok(id as ConfigId)
    }

    /// The threads of `id` that read a symbol or match, when `next` follows; at the end, none does.
    fn closure(&mut self, id: ConfigId, next: Option<Symbol>) -> Result<Vec<Thread>, String> {
        let Config { before, behinds, threads: mut stack } = self.configs[id as usize].clone();
        let mut seen: FxHashSet<Thread> = FxHashSet::default();
        let mut threads = Vec::new();
        while let Some((state, mut obligations)) = stack.pop() {
            if !seen.insert((state, obligations.clone())) {
                continue;
            }
            match &self.states[state as usize] {
                State::Read(..) | State::Match | State::MatchAll => threads.push((state, obligations)),
                State::Split(targets) => stack.extend(targets.iter().map(|&to| (to, obligations.clone()))),
                State::Begin(to) => stack.extend((before == Before::Nothing).then_some((*to, obligations))),
                State::End(to) => stack.extend(next.is_none().then_some((*to, obligations))),
                State::Boundary(wanted, to) => {
                    let is_boundary = (before == Before::Word) != next.is_some_and(|s| self.is_word[usize::from(s)]);
                    stack.extend((is_boundary == *wanted).then_some((*to, obligations)));
                }
                &State::Ahead(wanted, body, to) => {
                    let body = self.intern(before, behinds.clone(), vec![(body, Vec::new())])?;
                    if body != ALL {
                        obligations.push((body, wanted));
                        obligations.sort_unstable();
                        obligations.dedup();
                        stack.push((to, obligations));
                    } else if wanted {
                        stack.push((to, obligations));
                    }
                }
                &State::Behind(wanted, which, to) => {
                    let holds = self.closure(behinds[which], next)?.iter().any(|(state, _)| *state == MATCH);
                    stack.extend((holds == wanted).then_some((to, obligations)));
                }
            }
        }
        Ok(threads)
    }

    fn step(&mut self, id: ConfigId, symbol: Symbol) -> Result<ConfigId, String> {
        if id == DEAD || id == ALL {
            return Ok(id);
        }
        if let Some(&to) = self.steps.get(&(id, symbol)) {
            return Ok(to);
        }
        let mut threads = Vec::new();
        for (state, obligations) in self.closure(id, Some(symbol))? {
            let to = match &self.states[state as usize] {
                State::Read(members, to) if members[usize::from(symbol)] => *to,
                State::MatchAll => state,
                _ => continue,
            };
            let mut left = Some(Vec::with_capacity(obligations.len()));
            for (obligation, wanted) in obligations {
                let after = self.step(obligation, symbol)?;
                match after {
                    DEAD | ALL if (after == ALL) != wanted => left = None,
                    DEAD | ALL => {}
                    _ => left.iter_mut().for_each(|left| left.push((after, wanted))),
                }
            }
            if let Some(mut left) = left {
                left.sort_unstable();
                left.dedup();
                threads.push((to, left));
            }
        }
        let before = if self.has_boundary && self.is_word[usize::from(symbol)] { Before::Word } else { Before::Other };
        let behinds = self.configs[id as usize].behinds.clone();
        let behinds = behinds.into_iter().map(|behind| self.step(behind, symbol)).collect::<Result<_, _>>()?;
        let to = self.intern(before, behinds, threads)?;
        self.steps.insert((id, symbol), to);
        Ok(to)
    }

    /// Does the string match if it ends here?
    fn accepts(&mut self, id: ConfigId) -> Result<bool, String> {
        for (state, obligations) in self.closure(id, None)? {
            let mut holds = state == MATCH_ALL;
            for (obligation, wanted) in obligations {
                holds = holds && self.accepts(obligation)? == wanted;
            }
            if holds {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What can be reached from `start`, as an automaton over code points.
    fn graph(&mut self, start: ConfigId) -> Result<Expr, String> {
        let mut reached = vec![start];
        let mut numbers: FxHashMap<ConfigId, u32> = [(start, 0)].into_iter().collect();
        let mut graph = Vec::new();
        while let Some(&id) = reached.get(graph.len()) {
            let mut edges: Vec<(ClassUnicode, u32)> = Vec::new();
            for symbol in 0..self.symbols.len() {
                let to = self.step(id, symbol as Symbol)?;
                if to == DEAD {
                    continue;
                }
                let to = *numbers.entry(to).or_insert_with(|| {
                    reached.push(to);
                    reached.len() as u32 - 1
                });
                match edges.iter_mut().find(|(_, target)| *target == to) {
                    Some((set, _)) => set.union(&self.symbols[symbol]),
                    None => edges.push((self.symbols[symbol].clone(), to)),
                }
            }
            let edges = edges.iter().map(|(set, to)| (class(set), *to)).collect();
            graph.push(GraphState { accepting: self.accepts(id)?, edges });
        }
        Ok(Expr::Graph(graph))
    }
}

/// Is the symbol, which `set` does not divide, in it?
fn is_within(symbol: &ClassUnicode, set: &ClassUnicode) -> bool {
    let first = symbol.ranges()[0].start();
    set.ranges().iter().any(|range| range.start() <= first && first <= range.end())
}

fn has_look(node: &Node) -> bool {
    match node {
        Node::Ahead(..) | Node::Behind(..) => true,
        Node::Cat(parts) | Node::Alt(parts) => parts.iter().any(has_look),
        Node::Repeat(body, ..) => has_look(body),
        _ => false,
    }
}
