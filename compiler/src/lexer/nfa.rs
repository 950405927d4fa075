//! Terminal expressions → a Thompson NFA over byte ranges.
//!
//! An expression is first lowered to a tree in which classes, intersections and complements are finished [`Fragment`]s,
//! and the empty language has been pulled out: it is the whole tree or nowhere. The tree is then emitted back to front,
//! each part knowing the state that follows it. So concatenation needs no ε-moves, and from every state that is emitted an
//! accepting state can be reached, which makes every subset of the determiniser live by construction.
//!
//! `x{m,n}` becomes m copies and then n − m copies that may each be left for the *end* of the repeat: a state then leads
//! to one copy and the end, never to all later copies, and the subset construction stays linear. That needs a body that
//! cannot match ε; where it can, ε is taken out of it first (then x{m,n} = (x∖ε){0,n}). Where the body is ambiguous
//! (`(\w+ ?){1,50}`) a text can be in many copies at once; the copies form a [`Chain`], which tells the determiniser
//! which of them it may forget. Where copies would take much, [`super::counters`] has the repeat counted instead.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::counters::{
    COPIES, COPIES_AFTER, COPIES_BEFORE, COPIES_FAR, Chain as Counted, Counting, FAR, FIRST, Moves, SECOND, TOP,
    letter, of_chain,
};
use super::determinize::{Dfa, Overflow, determinize};
use super::minimize::minimize;
use super::{DEAD, LexerError, LexerLimits, boolean, json_class, utf8};
use crate::grammar::ir::{Expr, GraphState, MAX_EXPR_DEPTH, TerminalId};

/// One transition: bytes `lo..=hi` to `target`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Range {
    pub(super) lo: u8,
    pub(super) hi: u8,
    pub(super) target: u32,
}

/// One NFA state; the pairs index [`Nfa::ranges`] and [`Nfa::epsilons`].
#[derive(Debug, Clone, Copy)]
pub(super) enum State {
    /// Reads one byte; the ranges are disjoint and sorted.
    Ranges(u32, u32),
    /// Moves to any of several states, reading nothing.
    Union(u32, u32),
    /// Accepts a terminal.
    Accept(TerminalId),
}

/// Equal copies of a repeat's body, one after the other, of which some match all that others do.
///
/// State `base + i * stride + j` is place j of copy i. From place j of one copy everything can be matched that can be
/// matched from place j of another one that leaves fewer optional, or more mandatory, copies to come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chain {
    pub(super) base: u32,
    pub(super) end: u32,
    pub(super) stride: u32,
    /// Which of several copies matches the most: the last one, or else the first one.
    pub(super) last_is_widest: bool,
}

#[derive(Debug, Default)]
pub(super) struct Nfa {
    pub(super) states: Vec<State>,
    pub(super) ranges: Vec<Range>,
    pub(super) epsilons: Vec<u32>,
    /// By height, those that contain no other ones first; of one height they are disjoint and sorted.
    pub(super) chains: Vec<Vec<Chain>>,
    /// How what is counted leaves the counted layers.
    pub(super) moves: Moves,
}

impl Nfa {
    fn push(&mut self, state: State) -> u32 {
        self.states.push(state);
        self.states.len() as u32 - 1
    }

    fn byte(&mut self, byte: u8, target: u32) -> u32 {
        let at = self.ranges.len() as u32;
        self.ranges.push(Range { lo: byte, hi: byte, target });
        self.push(State::Ranges(at, at + 1))
    }

    /// A byte, or, if it is a letter, the other one that is it in another case.
    fn folded(&mut self, byte: u8, target: u32) -> u32 {
        let at = self.ranges.len() as u32;
        let (upper, lower) = (byte.to_ascii_uppercase(), byte.to_ascii_lowercase());
        self.ranges.push(Range { lo: upper, hi: upper, target });
        if lower != upper {
            self.ranges.push(Range { lo: lower, hi: lower, target });
        }
        self.push(State::Ranges(at, self.ranges.len() as u32))
    }

    /// Note a chain from `base` to the last state, begun when there were as many chains of each height as `before` says.
    fn chain(&mut self, base: u32, stride: u32, last_is_widest: bool, before: &[usize]) {
        let chain = Chain { base, end: self.states.len() as u32, stride, last_is_widest };
        let inside = |&h: &usize| self.chains[h].len() > before.get(h).copied().unwrap_or(0);
        let height = (0..self.chains.len()).rev().find(inside).map_or(0, |h| h + 1);
        if height == self.chains.len() {
            self.chains.push(Vec::new());
        }
        self.chains[height].push(chain);
    }

    fn union(&mut self, targets: &[u32]) -> State {
        let at = self.epsilons.len() as u32;
        self.epsilons.extend_from_slice(targets);
        State::Union(at, self.epsilons.len() as u32)
    }

    /// Add a fragment in front of `next`, so many chains after those that are there, and return its first state.
    fn paste(&mut self, fragment: &Fragment, next: u32, chains: usize) -> u32 {
        let (states, ranges, epsilons) =
            (self.states.len() as u32, self.ranges.len() as u32, self.epsilons.len() as u32);
        let place = |target: u32| if target == NEXT { next } else { target + states };
        for from in fragment.nfa.moves.states() {
            for &(letter, to) in fragment.nfa.moves.of(from) {
                self.moves.push(place(from), of_chain(letter, chains), place(to));
            }
        }
        self.ranges.extend(fragment.nfa.ranges.iter().map(|r| Range { target: place(r.target), ..*r }));
        self.epsilons.extend(fragment.nfa.epsilons.iter().map(|&target| place(target)));
        self.states.extend(fragment.nfa.states.iter().map(|&state| match state {
            State::Ranges(from, to) => State::Ranges(from + ranges, to + ranges),
            State::Union(from, to) => State::Union(from + epsilons, to + epsilons),
            State::Accept(id) => State::Accept(id),
        }));
        place(fragment.start)
    }
}

/// The minimal automaton of an expression, and the repeats that it counts. All lexers that it is of are put together from it.
#[derive(Debug)]
pub(super) struct Minimal {
    pub(super) dfa: Dfa,
    pub(super) chains: Vec<Counted>,
}

impl Minimal {
    /// The one of an expression of a terminal; none if it matches nothing.
    ///
    /// # Errors
    /// [`LexerError`], if it matches the empty string or outgrows `limits`.
    pub(super) fn of(
        expr: &Expr,
        (terminal, id): (&str, TerminalId),
        limits: &LexerLimits,
        counting: &Counting,
    ) -> Result<Option<Self>, LexerError> {
        let mut builder = Builder::new(limits, counting, terminal, id);
        let Some(node) = builder.lower(expr, 0)? else { return Ok(None) };
        if node.nullable {
            return Err(LexerError::Nullable { terminal: terminal.to_owned() });
        }
        let dfa = builder.dfa(&node)?;
        Ok(Some(Self { dfa, chains: builder.counted }))
    }

    /// Numbers of four bytes that it takes, about.
    pub(super) fn size(&self) -> usize {
        self.dfa.next.len() + self.dfa.state_count()
    }
}

/// The NFA of several automata of terminals, its start, from which all of them begin, and the repeats that they count.
pub(super) fn united(parts: &[(TerminalId, Arc<Minimal>)]) -> (Nfa, u32, Vec<Counted>) {
    let mut nfa = Nfa::default();
    let mut chains: Vec<Counted> = Vec::new();
    let mut entries = Vec::with_capacity(parts.len());
    for (id, part) in parts {
        let accept = nfa.push(State::Accept(*id));
        let fragment = Fragment::from_dfa(&part.dfa);
        entries.extend(fragment.map(|fragment| nfa.paste(&fragment, accept, chains.len())));
        chains.extend(part.chains.iter().map(|chain| Counted { terminal: *id, ..chain.clone() }));
    }
    let start = nfa.union(&entries);
    let start = nfa.push(start);
    (nfa, start, chains)
}

/// In a [`Fragment`]: the state after the fragment.
pub(super) const NEXT: u32 = u32::MAX;

/// A deterministic automaton to be pasted into an NFA, with [`NEXT`] for the state that follows. States are relative.
#[derive(Debug)]
pub(super) struct Fragment {
    nfa: Nfa,
    start: u32,
    nullable: bool,
}

impl Fragment {
    /// From nodes that are lists of ranges and accept nothing themselves.
    pub(super) fn from_nodes(nodes: Vec<Vec<Range>>, start: u32) -> Self {
        let mut nfa = Nfa::default();
        for node in nodes {
            let at = nfa.ranges.len() as u32;
            nfa.ranges.extend(node);
            nfa.push(State::Ranges(at, nfa.ranges.len() as u32));
        }
        Self { nfa, start, nullable: start == NEXT }
    }

    /// One byte out of `ranges`, in any order; none if there are none.
    fn byte_class(ranges: &[(u8, u8)]) -> Option<Self> {
        let mut member = [false; 256];
        for &(lo, hi) in ranges {
            (lo..=hi).for_each(|b| member[usize::from(b)] = true);
        }
        let node = runs(|b| member[usize::from(b)].then_some(NEXT));
        (!node.is_empty()).then(|| Self::from_nodes(vec![node], 0))
    }

    /// The language of a trimmed DFA; none if it is empty.
    fn from_dfa(dfa: &Dfa) -> Option<Self> {
        // A state with transitions becomes a `Ranges` state; if it also accepts, a union with NEXT in front of it.
        let count = dfa.state_count();
        let has_transitions: Vec<bool> = (0..count).map(|q| dfa.row(q).iter().any(|&t| t != DEAD)).collect();
        let mut entry = vec![NEXT; count];
        let mut len = 0;
        for q in 0..count {
            if has_transitions[q] {
                entry[q] = len;
                len += 1 + u32::from(dfa.cand[q] != 0);
            } else if dfa.cand[q] == 0 {
                return None; // only the start of an empty automaton is like this
            }
        }
        let mut nfa = Nfa::default();
        let ranges_of = |q: u32| entry[q as usize] + u32::from(dfa.cand[q as usize] != 0);
        for q in (0..count).filter(|&q| has_transitions[q]) {
            for &(letter, to) in dfa.moves.of(q as u32) {
                nfa.moves.push(ranges_of(q as u32), letter, ranges_of(to));
            }
            if dfa.cand[q] != 0 {
                let union = nfa.union(&[entry[q] + 1, NEXT]);
                nfa.push(union);
            }
            let at = nfa.ranges.len() as u32;
            let row = dfa.row(q);
            nfa.ranges.extend(runs(|b| {
                let target = row[usize::from(dfa.byte_class[usize::from(b)])];
                (target != DEAD).then(|| entry[target as usize])
            }));
            nfa.push(State::Ranges(at, nfa.ranges.len() as u32));
        }
        Some(Self { nfa, start: entry[0], nullable: dfa.cand[0] != 0 })
    }
}

/// The maximal runs of bytes that have one target.
fn runs(target: impl Fn(u8) -> Option<u32>) -> Vec<Range> {
    let mut runs: Vec<Range> = Vec::new();
    for b in 0..=255u8 {
        let Some(target) = target(b) else { continue };
        match runs.last_mut() {
            Some(last) if last.target == target && last.hi + 1 == b => last.hi = b,
            _ => runs.push(Range { lo: b, hi: b, target }),
        }
    }
    runs
}

/// A lowered expression that matches something.
struct Node<'a> {
    kind: Kind<'a>,
    nullable: bool,
    /// NFA states it takes, an upper bound; 0 exactly if ε is all it matches.
    size: u64,
}

enum Kind<'a> {
    /// In any case of the letters.
    Fold(&'a [u8]),
    Bytes(&'a [u8]),
    Fragment(Rc<Fragment>),
    Cat(Vec<Node<'a>>),
    Alt(Vec<Node<'a>>),
    /// Body, bounds, and the counters of its mandatory and its optional copies, if these are counted.
    Repeat(Box<Node<'a>>, u32, Option<u32>, [Option<u32>; 2]),
    /// States that an accepting one can be reached from, the first one the start: accepting or not, and its edges.
    Graph(Vec<(bool, Edges<'a>)>),
}

/// Labels and the states they lead to.
type Edges<'a> = Vec<(Rc<Node<'a>>, u32)>;

const EPSILON: Node<'static> = Node { kind: Kind::Bytes(&[]), nullable: true, size: 0 };

impl<'a> Node<'a> {
    fn fragment(fragment: Rc<Fragment>) -> Self {
        let size = fragment.nfa.states.len() as u64;
        Self { nullable: fragment.nullable, kind: Kind::Fragment(fragment), size }
    }

    fn cat(mut parts: Vec<Self>) -> Self {
        parts.retain(|part| part.size > 0);
        match parts.len() {
            0 => EPSILON,
            1 => parts.remove(0),
            _ => Self {
                nullable: parts.iter().all(|part| part.nullable),
                size: parts.iter().fold(0, |sum, part| part.size.saturating_add(sum)),
                kind: Kind::Cat(parts),
            },
        }
    }

    fn alt(mut parts: Vec<Self>) -> Option<Self> {
        match parts.len() {
            0 => None,
            1 => parts.pop(),
            _ if parts.iter().all(|part| part.size == 0) => Some(EPSILON),
            _ => Some(Self {
                nullable: parts.iter().any(|part| part.nullable),
                size: parts.iter().fold(1, |sum, part| part.size.saturating_add(sum)),
                kind: Kind::Alt(parts),
            }),
        }
    }
}

/// The intersection around an expression that is being lowered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Product {
    None,
    /// One that has few states even with repeats copied.
    Small,
    /// One in which copies would multiply.
    Any,
}

/// Emits a terminal into an NFA.
struct Builder<'a> {
    nfa: Nfa,
    limits: &'a LexerLimits,
    /// Name of the terminal under construction.
    terminal: &'a str,
    id: TerminalId,
    product: Product,
    counting: &'a Counting,
    /// Repeats that are counted.
    counted: Vec<Counted>,
    classes: FxHashMap<&'a Expr, Option<Rc<Fragment>>>,
}

impl<'a> Builder<'a> {
    fn new(limits: &'a LexerLimits, counting: &'a Counting, terminal: &'a str, id: TerminalId) -> Self {
        let (nfa, counted, classes) = (Nfa::default(), Vec::new(), FxHashMap::default());
        Self { nfa, limits, terminal, id, product: Product::None, counting, counted, classes }
    }

    /// Lower `expr`; none if its language is empty.
    fn lower(&mut self, expr: &'a Expr, depth: usize) -> Result<Option<Node<'a>>, LexerError> {
        if depth > MAX_EXPR_DEPTH {
            return Err(LexerError::TooDeep { terminal: self.terminal.to_owned(), limit: MAX_EXPR_DEPTH });
        }
        Ok(match expr {
            Expr::Bytes(bytes) => {
                Some(Node { kind: Kind::Bytes(bytes), nullable: bytes.is_empty(), size: bytes.len() as u64 })
            }
            Expr::Fold(bytes) => {
                Some(Node { kind: Kind::Fold(bytes), nullable: bytes.is_empty(), size: bytes.len() as u64 })
            }
            Expr::Class(ranges) => {
                let class = self.classes.entry(expr).or_insert_with(|| utf8::class(ranges).map(Rc::new));
                class.clone().map(Node::fragment)
            }
            Expr::JsonClass(ranges) => {
                let class = self.classes.entry(expr).or_insert_with(|| json_class::class(ranges).map(Rc::new));
                class.clone().map(Node::fragment)
            }
            Expr::ByteClass(ranges) => Fragment::byte_class(ranges).map(|f| Node::fragment(Rc::new(f))),
            Expr::Cat(parts) => {
                let mut nodes = Vec::with_capacity(parts.len());
                for part in parts {
                    nodes.push(self.lower(part, depth + 1)?);
                }
                nodes.into_iter().collect::<Option<Vec<_>>>().map(Node::cat)
            }
            Expr::Alt(parts) => {
                let mut nodes = Vec::with_capacity(parts.len());
                for part in parts {
                    nodes.extend(self.lower(part, depth + 1)?);
                }
                Node::alt(nodes)
            }
            Expr::Repeat(body, min, max) => {
                let body = self.lower(body, depth + 1)?;
                self.lower_repeat(body, *min, *max)?
            }
            Expr::And(parts) => self.lower_product(parts, depth)?,
            Expr::Not(part) => {
                let dfa = match self.lower(part, depth + 1)? {
                    Some(node) => boolean::complement(&self.dfa(&node)?).map_err(|overflow| self.overflow(overflow))?,
                    None => boolean::all_strings(),
                };
                Fragment::from_dfa(&minimize(dfa)).map(|f| Node::fragment(Rc::new(f)))
            }
            Expr::Graph(states) => self.lower_graph(states, depth)?,
            // No bytes.
            Expr::Tokens { .. } => None,
        })
    }

    fn lower_graph(&mut self, states: &'a [GraphState], depth: usize) -> Result<Option<Node<'a>>, LexerError> {
        let mut labels: FxHashMap<&Expr, Option<Rc<Node<'a>>>> = FxHashMap::default();
        let mut edges = Vec::with_capacity(states.len());
        for state in states {
            let mut kept = Vec::with_capacity(state.edges.len());
            for (label, target) in &state.edges {
                if !labels.contains_key(label) {
                    let node = self.lower(label, depth + 1)?;
                    if node.as_ref().is_some_and(|node| node.nullable) {
                        return Err(LexerError::Nullable { terminal: self.terminal.to_owned() });
                    }
                    labels.insert(label, node.map(Rc::new));
                }
                kept.extend(labels[label].clone().map(|node| (node, *target)));
            }
            edges.push(kept);
        }
        let number = useful_states(states, &edges);
        if number.first().is_none_or(Option::is_none) {
            return Ok(None);
        }
        let kept = states.iter().zip(edges).zip(&number).filter(|(_, number)| number.is_some());
        let graph: Vec<(bool, Vec<_>)> = kept
            .map(|((state, edges), _)| {
                let edges = edges.into_iter().filter_map(|(node, to)| Some((node, number[to as usize]?)));
                (state.accepting, edges.collect())
            })
            .collect();
        if graph[0].1.is_empty() {
            return Ok(Some(EPSILON));
        }
        let labels = graph.iter().flat_map(|(_, edges)| edges).map(|(node, _)| node.size);
        let size = labels.fold(graph.len() as u64, u64::saturating_add);
        Ok(Some(Node { nullable: graph[0].0, kind: Kind::Graph(graph), size }))
    }

    /// Lower an intersection: with its repeats copied, and counted if that makes a large product.
    fn lower_product(&mut self, parts: &'a [Expr], depth: usize) -> Result<Option<Node<'a>>, LexerError> {
        if self.product != Product::None {
            return self.lower_and(parts, depth);
        }
        let counted = self.counted.len();
        if self.counting.copied_states_of(self.id) < u64::MAX {
            self.product = Product::Small;
            let small = self.lower_and(parts, depth);
            if small.is_ok() && self.counted.len() == counted {
                self.product = Product::None;
                return small;
            }
            self.counted.truncate(counted);
        }
        self.product = Product::Any;
        let any = self.lower_and(parts, depth);
        self.product = Product::None;
        any
    }

    fn lower_and(&mut self, parts: &'a [Expr], depth: usize) -> Result<Option<Node<'a>>, LexerError> {
        let most = match self.product {
            Product::Small => self.limits.max_dfa_states.min(self.counting.copied_states as usize),
            _ => self.limits.max_dfa_states,
        };
        let mut all: Option<Dfa> = None;
        for part in parts {
            let Some(node) = self.lower(part, depth + 1)? else { return Ok(None) };
            let dfa = self.dfa(&node)?;
            all = Some(match all {
                None => dfa,
                Some(all) => {
                    let product = boolean::intersection(&all, &dfa, most);
                    minimize(product.map_err(|overflow| self.overflow(overflow))?)
                }
            });
        }
        let all = all.unwrap_or_else(boolean::all_strings);
        Ok(Fragment::from_dfa(&all).map(|f| Node::fragment(Rc::new(f))))
    }

    fn lower_repeat(
        &mut self,
        body: Option<Node<'a>>,
        mut min: u32,
        max: Option<u32>,
    ) -> Result<Option<Node<'a>>, LexerError> {
        if max.is_some_and(|max| max < min) {
            return Ok(None);
        }
        let Some(mut body) = body else {
            return Ok((min == 0).then_some(EPSILON));
        };
        if max == Some(0) || body.size == 0 {
            return Ok(Some(EPSILON));
        }
        if (min, max) == (1, Some(1)) {
            return Ok(Some(body));
        }
        if body.nullable {
            min = 0;
            if max.is_some_and(|max| max > 1) {
                body = self.without_epsilon(&body)?;
            }
        }
        // An open repeat has one copy that loops, behind its mandatory ones.
        let zones = [max.map_or(min.saturating_sub(1), |_| min), max.map_or(0, |max| max - min)];
        let counters = [self.counter(&body, zones[0])?, self.counter(&body, zones[1])?];
        let copies_of =
            |(&copies, counter): (&u32, &Option<u32>)| u64::from(if counter.is_some() { COPIES } else { copies });
        let copies = zones.iter().zip(&counters).map(copies_of).sum::<u64>() + u64::from(max.is_none());
        let size = copies.saturating_mul(body.size.saturating_add(1));
        let limit = self.limits.max_nfa_states;
        if size > limit as u64 {
            let terminal = self.terminal.to_owned();
            return Err(LexerError::RepeatTooLarge { terminal, min, max, states: size, limit });
        }
        let nullable = min == 0;
        Ok(Some(Node { kind: Kind::Repeat(Box::new(body), min, max, counters), nullable, size }))
    }

    /// A counter for so many copies, if they are to be counted.
    fn counter(&mut self, body: &Node<'a>, copies: u32) -> Result<Option<u32>, LexerError> {
        let size = u64::from(copies).saturating_mul(body.size.saturating_add(1));
        let most = match self.counting.copied_states_of(self.id) {
            u64::MAX => u64::MAX,
            states if self.product == Product::Any => states / 16,
            states => states,
        };
        if copies < COPIES || size <= most {
            return Ok(None);
        }
        let (length, body) = (copies - COPIES_BEFORE - COPIES_AFTER, Arc::new(self.dfa(body)?));
        self.counted.push(Counted { terminal: self.id, length, body });
        Ok(Some(self.counted.len() as u32 - 1))
    }

    fn overflow(&self, overflow: Overflow) -> LexerError {
        match overflow {
            Overflow::Counter(_) => LexerError::Uncountable { terminal: self.id },
            overflow => LexerError::overflow(overflow, Some(self.terminal)),
        }
    }

    /// What `node` matches beside ε; it does match more.
    fn without_epsilon(&self, node: &Node<'a>) -> Result<Node<'a>, LexerError> {
        let mut dfa = self.dfa(node)?;
        dfa.cand[0] = 0; // the start is isolated, so only ε is lost
        let fragment = Fragment::from_dfa(&dfa).expect("a node of positive size matches more than the empty string");
        Ok(Node::fragment(Rc::new(fragment)))
    }

    /// The minimal DFA of one node.
    fn dfa(&self, node: &Node<'a>) -> Result<Dfa, LexerError> {
        let mut builder = Builder::new(self.limits, self.counting, self.terminal, self.id);
        let accept = builder.nfa.push(State::Accept(0));
        let start = builder.emit(node, accept)?;
        let dfa = determinize(&builder.nfa, start, self.limits, |accepting| u32::from(!accepting.is_empty()));
        Ok(minimize(dfa.map_err(|overflow| self.overflow(overflow))?))
    }

    /// Emit `node` in front of `next` and return its first state.
    fn emit(&mut self, node: &Node<'a>, next: u32) -> Result<u32, LexerError> {
        let limit = self.limits.max_nfa_states;
        if node.size.saturating_add(self.nfa.states.len() as u64) > limit as u64 {
            return Err(LexerError::NfaStates { terminal: self.terminal.to_owned(), limit });
        }
        Ok(match &node.kind {
            Kind::Bytes(bytes) => bytes.iter().rev().fold(next, |next, &b| self.nfa.byte(b, next)),
            Kind::Fold(bytes) => bytes.iter().rev().fold(next, |next, &b| self.nfa.folded(b, next)),
            Kind::Fragment(fragment) => self.nfa.paste(fragment, next, 0),
            Kind::Cat(parts) => parts.iter().rev().try_fold(next, |next, part| self.emit(part, next))?,
            Kind::Alt(parts) => {
                let entries = parts.iter().map(|part| self.emit(part, next)).collect::<Result<Vec<_>, _>>()?;
                let union = self.nfa.union(&entries);
                self.nfa.push(union)
            }
            Kind::Repeat(body, min, max, counters) => self.emit_repeat(body, (*min, *max), *counters, next)?,
            Kind::Graph(states) => self.emit_graph(states, next)?,
        })
    }

    fn emit_graph(&mut self, states: &[(bool, Edges<'a>)], next: u32) -> Result<u32, LexerError> {
        let base = self.nfa.states.len() as u32;
        self.nfa.states.resize(states.len() + base as usize, State::Union(0, 0));
        let mut entries: FxHashMap<(*const Node, u32), u32> = FxHashMap::default();
        for (i, (accepting, edges)) in states.iter().enumerate() {
            let mut targets: Vec<u32> = if *accepting { vec![next] } else { Vec::new() };
            for (label, to) in edges {
                // States that go to one place with one label share the way.
                let key = (Rc::as_ptr(label), *to);
                let entry = match entries.get(&key) {
                    Some(&entry) => entry,
                    None => self.emit(label, base + to)?,
                };
                entries.insert(key, entry);
                targets.push(entry);
            }
            self.nfa.states[base as usize + i] = self.nfa.union(&targets);
        }
        Ok(base)
    }

    fn emit_repeat(
        &mut self,
        body: &Node<'a>,
        (min, max): (u32, Option<u32>),
        counters: [Option<u32>; 2],
        next: u32,
    ) -> Result<u32, LexerError> {
        let before: Vec<usize> = self.nfa.chains.iter().map(Vec::len).collect();
        let Some(max) = max else {
            let hub = self.nfa.push(State::Union(0, 0));
            let mut entry = self.emit(body, hub)?;
            self.nfa.states[hub as usize] = self.nfa.union(&[entry, next]);
            if min == 0 {
                return Ok(hub);
            }
            if let Some(counter) = counters[0] {
                return self.emit_counted(body, counter, None, entry);
            }
            let stride = self.nfa.states.len() as u32 - hub - 1;
            for _ in 1..min {
                entry = self.emit(body, entry)?;
            }
            if min > 1 {
                self.nfa.chain(hub + 1, stride, false, &before);
            }
            return Ok(entry);
        };
        let base = self.nfa.states.len() as u32;
        let mut entry = next;
        let mut stride = 0;
        if let Some(counter) = counters[1] {
            entry = self.emit_counted(body, counter, Some(next), entry)?;
        } else {
            for _ in min..max {
                let copy = self.emit(body, entry)?;
                let union = self.nfa.union(&[copy, next]);
                entry = self.nfa.push(union);
                if stride == 0 {
                    stride = self.nfa.states.len() as u32 - base;
                }
            }
        }
        if let Some(counter) = counters[0] {
            if min < max && counters[1].is_none() {
                self.nfa.chain(base, stride, true, &before);
            }
            return self.emit_counted(body, counter, None, entry);
        }
        let chained = counters[1].is_none();
        for copy in 0..min {
            entry = self.emit(body, entry)?;
            // What follows the last mandatory copy is what would follow one more optional copy.
            if copy == 0 && min < max && chained {
                self.nfa.chain(base, stride, true, &before);
            }
        }
        if min == 0 && max > 1 && chained {
            self.nfa.chain(base, stride, true, &before);
        }
        Ok(entry)
    }

    /// Emit a repeat that is counted, each copy of which may be left for `exit`, in front of `next`; see
    /// [`super::counters`].
    fn emit_counted(&mut self, body: &Node<'a>, counter: u32, exit: Option<u32>, next: u32) -> Result<u32, LexerError> {
        let mut entry = next;
        let mut bases = Vec::new();
        for _ in 0..COPIES_AFTER {
            let first = self.copy(body, entry, &mut bases)?;
            entry = self.begin(first, exit);
        }
        // The entry of the first far layer, to which the last one leads.
        let hub = self.nfa.push(State::Union(0, 0));
        entry = hub;
        for _ in 1..COPIES_FAR {
            let first = self.copy(body, entry, &mut bases)?;
            entry = self.begin(first, exit);
        }
        let first = self.copy(body, entry, &mut bases)?;
        let size = self.nfa.states.len() as u32 - bases[bases.len() - 1];
        self.nfa.states[hub as usize] = self.beginning(first, exit);
        entry = hub;
        for _ in 0..COPIES_BEFORE {
            let first = self.copy(body, entry, &mut bases)?;
            entry = self.begin(first, exit);
        }
        bases.reverse();
        let (before, far) = (&bases[..COPIES_BEFORE as usize], &bases[COPIES_BEFORE as usize..]);
        let (far, after) = far.split_at(COPIES_FAR as usize);
        let mut moves = vec![(FIRST, before[0], before[0]), (SECOND, before[1], before[1])];
        moves.extend((FAR..).zip(far).map(|(layer, &base)| (layer, base, after[0])));
        moves.extend([(TOP, after[0], after[1]), (TOP, after[1], after[2])]);
        for (layer, from, to) in moves {
            for place in (0..size).filter(|place| matches!(self.nfa.states[(from + place) as usize], State::Ranges(..)))
            {
                self.nfa.moves.push(from + place, letter(counter, layer), to + place);
            }
        }
        Ok(entry)
    }

    /// Emit one more copy, and note where it begins.
    fn copy(&mut self, body: &Node<'a>, entry: u32, bases: &mut Vec<u32>) -> Result<u32, LexerError> {
        bases.push(self.nfa.states.len() as u32);
        self.emit(body, entry)
    }

    /// The state in front of a copy that may be left out for `exit`.
    fn begin(&mut self, copy: u32, exit: Option<u32>) -> u32 {
        let begins = self.beginning(copy, exit);
        self.nfa.push(begins)
    }

    fn beginning(&mut self, copy: u32, exit: Option<u32>) -> State {
        match exit {
            Some(exit) => self.nfa.union(&[copy, exit]),
            None => self.nfa.union(&[copy]),
        }
    }
}

/// New numbers of the states of a graph from which an accepting one can be reached.
fn useful_states(states: &[GraphState], edges: &[Edges]) -> Vec<Option<u32>> {
    let mut sources: Vec<Vec<usize>> = vec![Vec::new(); states.len()];
    for (source, edges) in edges.iter().enumerate() {
        edges.iter().for_each(|(_, to)| sources[*to as usize].push(source));
    }
    let mut useful: Vec<bool> = states.iter().map(|state| state.accepting).collect();
    let mut stack: Vec<usize> = (0..states.len()).filter(|&q| useful[q]).collect();
    while let Some(q) = stack.pop() {
        for &source in &sources[q] {
            if !std::mem::replace(&mut useful[source], true) {
                stack.push(source);
            }
        }
    }
    let mut count = 0..;
    useful.iter().map(|&useful| if useful { count.next() } else { None }).collect()
}
