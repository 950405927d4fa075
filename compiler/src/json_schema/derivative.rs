//! Questions about a language of decoded strings: is it empty, and is a text in it?
//!
//! What may follow a code point is a language again, its *derivative*. So strings can be searched for step by step, without an
//! automaton of the whole language: nearly every language that is asked about has a string, and a short one shows it. Code
//! points are divided into *symbols*, the coarsest classes that no class of the expression divides; the search goes first
//! where the shortest string may be.
//!
//! Source: Owens, Reppy and Turon, "Regular-expression derivatives re-examined", 2009. We differ in dividing code points once
//! and not for each derivative.

use super::effort::Effort;
use crate::grammar::ir::Expr;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

type Id = u32;
/// Index of a symbol.
type Symbol = u32;
type Ranges = Vec<(u32, u32)>;

const NOTHING: Id = 0;
const EMPTY: Id = 1;
const EVERYTHING: Id = 2;
const SURROGATES: (u32, u32) = (0xD800, 0xE000);
const END: u32 = 0x11_0000;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Node {
    /// The empty string.
    Empty,
    /// One code point of a class.
    Class(u32),
    /// The first part is none of these.
    Cat(Id, Id),
    /// Sorted.
    Alt(Rc<[Id]>),
    /// Sorted.
    And(Rc<[Id]>),
    Not(Id),
    Repeat(Id, u32, Option<u32>),
    /// What a graph accepts from a state on.
    Graph(u32, u32),
}

/// What is known of a node.
#[derive(Debug, Clone, Copy)]
struct Facts {
    /// Is the empty string in it?
    nullable: bool,
    /// No string of it is shorter.
    least: u64,
}

/// States: accepting, and labels with what they lead to.
type Graph = Vec<(bool, Vec<(Id, u32)>)>;

/// A language, and those of its derivatives that were made.
#[derive(Debug)]
pub(super) struct Language {
    start: Id,
    nodes: Vec<(Node, Facts)>,
    ids: FxHashMap<Node, Id>,
    graphs: Vec<Rc<Graph>>,
    classes: Vec<Ranges>,
    class_ids: FxHashMap<Ranges, u32>,
    /// Where the intervals of code points begin, and their symbols; surrogates have none.
    intervals: Vec<(u32, Option<Symbol>)>,
    symbol_count: u32,
    /// For each class its symbols, as bits.
    members: Vec<Vec<u64>>,
    steps: FxHashMap<(Id, Symbol), Id>,
}

impl Language {
    /// The language of an expression over code points; none if it is about bytes, or too large.
    pub(super) fn new(expr: &Expr, effort: &mut Effort) -> Option<Self> {
        let mut language = Language {
            start: NOTHING,
            nodes: Vec::new(),
            ids: FxHashMap::default(),
            graphs: Vec::new(),
            classes: Vec::new(),
            class_ids: FxHashMap::default(),
            intervals: Vec::new(),
            symbol_count: 0,
            members: Vec::new(),
            steps: FxHashMap::default(),
        };
        for node in [Node::Alt(Rc::new([])), Node::Empty, Node::Not(NOTHING)] {
            language.intern(node);
        }
        effort.ask(|effort| {
            language.start = language.build(expr, effort)?;
            language.divide(effort)
        })?;
        Some(language)
    }

    /// Has it no strings? None if that is not decided.
    pub(super) fn is_empty(&mut self, effort: &mut Effort) -> Option<bool> {
        effort.ask(|effort| self.search(effort))
    }

    /// Is the text in it? None if that is not decided.
    pub(super) fn accepts(&mut self, text: &str, effort: &mut Effort) -> Option<bool> {
        effort.ask(|effort| {
            let mut at = self.start;
            for c in text.chars() {
                let i = self.intervals.partition_point(|interval| interval.0 <= c as u32) - 1;
                at = self.step(at, self.intervals[i].1.expect("a code point"), effort)?;
            }
            Some(self.facts(at).nullable)
        })
    }

    fn search(&mut self, effort: &mut Effort) -> Option<bool> {
        let mut seen: FxHashSet<Id> = [self.start, NOTHING].into_iter().collect();
        // Of equals the latest: what was begun is followed to its end.
        let mut open = BinaryHeap::from([(Reverse(0), 0, self.start)]);
        if self.facts(self.start).nullable {
            return Some(false);
        }
        while let Some((_, _, id)) = open.pop() {
            for symbol in 0..self.symbol_count {
                let next = self.step(id, symbol, effort)?;
                if self.facts(next).nullable {
                    return Some(false);
                }
                if seen.insert(next) {
                    open.push((Reverse(self.facts(next).least), seen.len(), next));
                }
            }
        }
        Some(true)
    }

    fn facts(&self, id: Id) -> Facts {
        self.nodes[id as usize].1
    }

    fn intern(&mut self, node: Node) -> Id {
        if let Some(&known) = self.ids.get(&node) {
            return known;
        }
        let of = |parts: &[Id]| parts.iter().map(|&part| self.facts(part)).collect::<Vec<_>>();
        let facts = match &node {
            Node::Empty => Facts { nullable: true, least: 0 },
            Node::Class(_) => Facts { nullable: false, least: 1 },
            &Node::Cat(a, b) => {
                let (a, b) = (self.facts(a), self.facts(b));
                Facts { nullable: a.nullable && b.nullable, least: a.least.saturating_add(b.least) }
            }
            Node::Alt(parts) => Facts {
                nullable: of(parts).iter().any(|part| part.nullable),
                least: of(parts).iter().map(|part| part.least).min().unwrap_or(u64::MAX),
            },
            Node::And(parts) => Facts {
                nullable: of(parts).iter().all(|part| part.nullable),
                least: of(parts).iter().map(|part| part.least).max().unwrap_or(0),
            },
            &Node::Not(part) => Facts { nullable: !self.facts(part).nullable, least: 0 },
            &Node::Repeat(body, min, _) => {
                Facts { nullable: min == 0, least: self.facts(body).least.saturating_mul(min.into()) }
            }
            &Node::Graph(graph, state) => {
                let accepting = self.graphs[graph as usize][state as usize].0;
                Facts { nullable: accepting, least: u64::from(!accepting) }
            }
        };
        let id = self.nodes.len() as Id;
        self.nodes.push((node.clone(), facts));
        self.ids.insert(node, id);
        id
    }

    fn build(&mut self, expr: &Expr, effort: &mut Effort) -> Option<Id> {
        effort.spend(0)?;
        Some(match expr {
            Expr::Bytes(bytes) => {
                let text = std::str::from_utf8(bytes).ok()?;
                effort.spend(bytes.len())?;
                let letters: Vec<Id> = text.chars().map(|c| self.class(vec![(c as u32, c as u32)])).collect();
                letters.into_iter().rfold(EMPTY, |rest, letter| self.cat(letter, rest))
            }
            Expr::Class(ranges) => self.class(ranges.clone()),
            Expr::ByteClass(ranges) if ranges.iter().all(|range| range.1 < 0x80) => {
                self.class(ranges.iter().map(|&(lo, hi)| (lo.into(), hi.into())).collect())
            }
            Expr::Cat(parts) => {
                let parts = self.build_all(parts, effort)?;
                parts.into_iter().rfold(EMPTY, |rest, part| self.cat(part, rest))
            }
            Expr::Alt(parts) => {
                let parts = self.build_all(parts, effort)?;
                self.alt(parts)
            }
            Expr::And(parts) => {
                let parts = self.build_all(parts, effort)?;
                self.and(parts)
            }
            Expr::Not(part) => {
                let part = self.build(part, effort)?;
                self.not(part)
            }
            Expr::Repeat(body, 0, None) if **body == Expr::Class(vec![(0, END - 1)]) => EVERYTHING,
            Expr::Repeat(body, min, max) => {
                let body = self.build(body, effort)?;
                self.repeat(body, *min, *max)
            }
            Expr::Graph(states) if states.is_empty() => NOTHING,
            Expr::Graph(states) => {
                let mut graph = Graph::with_capacity(states.len());
                for state in states {
                    let labels = state.edges.iter().map(|(label, to)| Some((self.build(label, effort)?, *to)));
                    graph.push((state.accepting, labels.collect::<Option<_>>()?));
                }
                self.graphs.push(Rc::new(graph));
                self.intern(Node::Graph(self.graphs.len() as u32 - 1, 0))
            }
            Expr::Fold(_) | Expr::JsonClass(_) | Expr::ByteClass(_) | Expr::Tokens { .. } => return None,
        })
    }

    fn build_all(&mut self, parts: &[Expr], effort: &mut Effort) -> Option<Vec<Id>> {
        parts.iter().map(|part| self.build(part, effort)).collect()
    }

    fn class(&mut self, mut ranges: Ranges) -> Id {
        ranges.sort_unstable();
        ranges.dedup_by(|next, last| {
            let joined = next.0 <= last.1 + 1;
            last.1 = if joined { last.1.max(next.1) } else { last.1 };
            joined
        });
        if ranges.is_empty() {
            return NOTHING;
        }
        let new = self.classes.len() as u32;
        let id = *self.class_ids.entry(ranges).or_insert_with_key(|ranges| {
            self.classes.push(ranges.clone());
            new
        });
        self.intern(Node::Class(id))
    }

    /// Divide the code points by all classes.
    fn divide(&mut self, effort: &mut Effort) -> Option<()> {
        let bounds = self.classes.iter().flatten().flat_map(|&(lo, hi)| [lo, hi + 1]);
        let mut starts: Vec<u32> = bounds.chain([0, SURROGATES.0, SURROGATES.1, END]).collect();
        starts.sort_unstable();
        starts.dedup();
        let covered = |&(lo, hi): &(u32, u32)| {
            let at = |code: u32| starts.binary_search(&code).expect("a bound");
            (at(lo)..at(hi + 1)).filter(|&i| !(SURROGATES.0..SURROGATES.1).contains(&starts[i]))
        };
        let mut symbols: Vec<Symbol> = vec![0; starts.len() - 1];
        let mut next = 1;
        for class in &self.classes {
            let mut inside: FxHashMap<Symbol, Symbol> = FxHashMap::default();
            for i in class.iter().flat_map(covered) {
                effort.spend(0)?;
                symbols[i] = *inside.entry(symbols[i]).or_insert_with(|| {
                    next += 1;
                    next - 1
                });
            }
        }
        let mut numbers: FxHashMap<Symbol, Symbol> = FxHashMap::default();
        self.intervals = std::iter::zip(&starts, &symbols)
            .map(|(&start, &symbol)| {
                let new = numbers.len() as Symbol;
                let is_surrogate = (SURROGATES.0..SURROGATES.1).contains(&start);
                (start, (!is_surrogate).then(|| *numbers.entry(symbol).or_insert(new)))
            })
            .collect();
        self.symbol_count = numbers.len() as u32;
        for class in &self.classes {
            let mut members = vec![0; numbers.len().div_ceil(64)];
            effort.spend(members.len())?;
            for symbol in class.iter().flat_map(covered).filter_map(|i| self.intervals[i].1) {
                members[symbol as usize / 64] |= 1 << (symbol % 64);
            }
            self.members.push(members);
        }
        Some(())
    }

    /// The derivative by a symbol.
    fn step(&mut self, id: Id, symbol: Symbol, effort: &mut Effort) -> Option<Id> {
        if let Node::Class(class) = self.nodes[id as usize].0 {
            let is_member = self.members[class as usize][symbol as usize / 64] >> (symbol % 64) & 1 == 1;
            return Some(if is_member { EMPTY } else { NOTHING });
        }
        if let Some(&known) = self.steps.get(&(id, symbol)) {
            return Some(known);
        }
        effort.spend(0)?;
        let to = match self.nodes[id as usize].0.clone() {
            Node::Empty | Node::Class(_) => NOTHING,
            Node::Cat(mut first, mut rest) => {
                let mut all = Vec::new();
                loop {
                    let begun = self.step(first, symbol, effort)?;
                    all.push(self.cat(begun, rest));
                    if !self.facts(first).nullable {
                        break;
                    }
                    match self.nodes[rest as usize].0 {
                        Node::Cat(next, after) => (first, rest) = (next, after),
                        _ => {
                            all.push(self.step(rest, symbol, effort)?);
                            break;
                        }
                    }
                }
                effort.spend(all.len())?;
                self.alt(all)
            }
            Node::Alt(parts) => {
                let parts = self.steps(&parts, symbol, effort)?;
                self.alt(parts)
            }
            Node::And(parts) => {
                let parts = self.steps(&parts, symbol, effort)?;
                self.and(parts)
            }
            Node::Not(part) => {
                let part = self.step(part, symbol, effort)?;
                self.not(part)
            }
            Node::Repeat(body, min, max) => {
                let begun = self.step(body, symbol, effort)?;
                let rest = self.repeat(body, min.saturating_sub(1), max.map(|max| max - 1));
                self.cat(begun, rest)
            }
            Node::Graph(graph, state) => {
                let edges = Rc::clone(&self.graphs[graph as usize]);
                let mut all = Vec::new();
                for &(label, to) in &edges[state as usize].1 {
                    effort.spend(0)?;
                    let begun = self.step(label, symbol, effort)?;
                    if begun != NOTHING {
                        let rest = self.intern(Node::Graph(graph, to));
                        all.push(self.cat(begun, rest));
                    }
                }
                self.alt(all)
            }
        };
        self.steps.insert((id, symbol), to);
        Some(to)
    }

    fn steps(&mut self, parts: &[Id], symbol: Symbol, effort: &mut Effort) -> Option<Vec<Id>> {
        effort.spend(parts.len())?;
        parts.iter().map(|&part| self.step(part, symbol, effort)).collect()
    }

    /// Concatenation, from the right: the first part of none is one itself.
    fn cat(&mut self, a: Id, b: Id) -> Id {
        if a == NOTHING || b == NOTHING {
            return NOTHING;
        }
        let mut firsts = Vec::new();
        let mut last = a;
        while let Node::Cat(first, rest) = self.nodes[last as usize].0 {
            firsts.push(first);
            last = rest;
        }
        firsts.push(last);
        firsts.into_iter().rfold(b, |rest, first| match (first, rest) {
            (EMPTY, rest) => rest,
            (first, EMPTY) => first,
            (EVERYTHING, EVERYTHING) => EVERYTHING,
            (first, rest) => self.intern(Node::Cat(first, rest)),
        })
    }

    /// Sorted members of a set of languages, with those of sets of its kind, as `inner` tells them, in their place.
    fn flat<'a>(&'a self, parts: &'a [Id], inner: impl Fn(&'a Node) -> Option<&'a [Id]>) -> Vec<Id> {
        let members = |part: &'a Id| inner(&self.nodes[*part as usize].0).unwrap_or(std::slice::from_ref(part));
        let mut all: Vec<Id> = parts.iter().flat_map(members).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn alt(&mut self, parts: Vec<Id>) -> Id {
        let all = self.flat(&parts, |node| if let Node::Alt(parts) = node { Some(parts) } else { None });
        match all[..] {
            [only] => only,
            _ if all.contains(&EVERYTHING) => EVERYTHING,
            _ => self.intern(Node::Alt(all.into())),
        }
    }

    fn and(&mut self, parts: Vec<Id>) -> Id {
        let mut all = self.flat(&parts, |node| if let Node::And(parts) = node { Some(parts) } else { None });
        all.retain(|&part| part != EVERYTHING);
        let is_excluded =
            |&part: &Id| matches!(self.nodes[part as usize].0, Node::Not(other) if all.binary_search(&other).is_ok());
        match all[..] {
            [] => EVERYTHING,
            [only] => only,
            _ if all[0] == NOTHING || all.iter().any(is_excluded) => NOTHING,
            _ => self.intern(Node::And(all.into())),
        }
    }

    fn not(&mut self, part: Id) -> Id {
        match self.nodes[part as usize].0 {
            Node::Not(other) => other,
            _ => self.intern(Node::Not(part)),
        }
    }

    fn repeat(&mut self, body: Id, min: u32, max: Option<u32>) -> Id {
        let min = if self.facts(body).nullable { 0 } else { min };
        match (body, min, max) {
            (_, _, Some(0)) | (EMPTY, ..) | (NOTHING, 0, _) => EMPTY,
            (NOTHING, ..) => NOTHING,
            (body, 1, Some(1)) => body,
            (_, min, Some(max)) if max < min => NOTHING,
            _ => self.intern(Node::Repeat(body, min, max)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{pattern, string};
    use super::*;
    use crate::grammar::ir::GraphState;

    fn not(expr: Expr) -> Expr {
        Expr::Not(Box::new(expr))
    }

    fn is_empty(expr: &Expr) -> Option<bool> {
        let effort = &mut Effort::default();
        Language::new(expr, effort)?.is_empty(effort)
    }

    #[test]
    fn derivatives_and_automata_agree() {
        // Decoded languages, and texts some of which are in them.
        let patterns = [
            "^a+$",
            "a",
            "^(ab|a)*b$",
            "^[^a]{2,3}$",
            "^$",
            "^.{0,2}$",
            "(a|b){2}$",
            "^(?!ab)",
            "\\bab",
            "^a{3,5}b?$",
            "é|😀",
            "^(a?){3}$",
            "^([ab]{1,2}c?){2,3}$",
        ];
        let texts = [
            "", "a", "ab", "b", "aab", "aaab", "abab", "bb", "é", "x😀", "\n", "cc", "ba ab", "aaaaa", "abcabc",
            "\u{D7FF}",
        ];
        let exprs: Vec<Expr> = patterns.iter().map(|text| pattern::ecma(text).expect(text)).collect();
        let effort = &mut Effort::default();
        let mut empty = 0;
        for (i, a) in exprs.iter().enumerate() {
            for b in exprs.iter().chain([&string::with_length(None, 4, Some(6)).expect("fits")]) {
                for expr in [Expr::And(vec![a.clone(), b.clone()]), Expr::And(vec![a.clone(), not(b.clone())])] {
                    let automaton =
                        string::testing::Language::of(&string::spell(&expr, string::Spelling::Any).expect("text"));
                    assert_eq!(is_empty(&expr), Some(automaton.0.is_none()), "{} and {b:?}", patterns[i]);
                    empty += usize::from(automaton.0.is_none());
                    let mut language = Language::new(&expr, effort).expect("text");
                    for text in texts {
                        let has = automaton.has(&serde_json::to_string(text).expect("text"));
                        assert_eq!(language.accepts(text, effort), Some(has), "{text:?} {} {b:?}", patterns[i]);
                    }
                }
            }
        }
        assert!(empty > 30, "{empty} are empty");
    }

    #[test]
    fn graphs_are_followed() {
        let letter = |c: u8| Expr::Bytes(vec![c]);
        let state = |accepting, edges: Vec<(u8, u32)>| GraphState {
            accepting,
            edges: edges.into_iter().map(|(c, to)| (letter(c), to)).collect(),
        };
        let graph = Expr::Graph(vec![state(false, vec![(b'a', 1)]), state(true, vec![(b'b', 0)]), state(true, vec![])]);
        let effort = &mut Effort::default();
        let mut language = Language::new(&graph, effort).expect("text");
        let texts = ["", "a", "ab", "aba", "b"];
        let found = texts.map(|text| language.accepts(text, effort));
        assert_eq!(found, [false, true, false, true, false].map(Some));
        assert_eq!(is_empty(&Expr::And(vec![graph, letter(b'b')])), Some(true));
        assert_eq!(is_empty(&Expr::Graph(vec![])), Some(true));
        let dead = Expr::Graph(vec![state(false, vec![(b'a', 1)]), state(false, vec![(b'b', 0)])]);
        assert_eq!(is_empty(&dead), Some(true));
        assert_eq!(is_empty(&Expr::Class(vec![(0xD800, 0xDFFF)])), Some(true));
        assert_eq!(is_empty(&Expr::Bytes(vec![0xFF])), None, "no text");
    }

    #[test]
    fn what_takes_too_long_is_undecided() {
        // Which of the last thirty letters were "a" takes 2^30 states to tell; that they end in both ways, no string does.
        let ends = |last: &str| pattern::ecma(&format!("^[ab]*a[ab]{{29}}{last}$")).expect("a pattern");
        assert_eq!(is_empty(&Expr::And(vec![ends("a"), not(ends("a"))])), Some(true), "equal parts are seen at once");
        let effort = &mut Effort::default();
        let mut language = Language::new(&Expr::And(vec![ends("[ab]"), ends("c")]), effort).expect("text");
        assert_eq!(language.is_empty(effort), None);
        assert!(effort.spend(0).is_some(), "there is more for other questions");
    }
}
