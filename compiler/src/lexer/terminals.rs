//! The terminals of a grammar, taken apart once for all the lexers that they are of.

use super::components::{Pattern, first_bytes};
use super::known::{ExprId, KnownPatterns, PartKey};
use super::nfa::Minimal;
use super::words::{Trie, Words};
use super::{Counting, LexerError, LexerLimits};
use crate::grammar::ir::{Expr, Terminal, TerminalId};
use crate::vocab::ByteSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The terminals of a grammar, with what is known of them.
#[derive(Debug)]
pub(crate) struct Terminals<'a> {
    pub all: &'a [Terminal],
    pub(super) known: &'a KnownPatterns,
    /// How large the automaton of a single part may grow.
    limits: LexerLimits,
    words: Words<'a>,
    parts: Vec<Parts<'a>>,
}

/// A terminal: its words, the alternatives that are none, and its whole expression.
#[derive(Debug)]
struct Parts<'a> {
    words: Range<usize>,
    rest: Vec<Part<'a>>,
    whole: Part<'a>,
}

/// An expression, with its number and its automata once somebody asks for them.
#[derive(Debug)]
pub(super) struct Part<'a> {
    expr: &'a Expr,
    number: OnceLock<ExprId>,
    /// Without and with repeats that are counted.
    minimal: [OnceLock<MaybeMinimal>; 2],
}

/// None for what matches nothing.
type MaybeMinimal = Result<Option<Arc<Minimal>>, LexerError>;

impl<'a> Part<'a> {
    pub(super) fn new(expr: &'a Expr) -> Self {
        Part { expr, number: OnceLock::new(), minimal: Default::default() }
    }

    pub(super) fn number(&self, known: &KnownPatterns) -> ExprId {
        *self.number.get_or_init(|| known.number(self.expr))
    }

    /// Bytes that what it matches may begin with, perhaps more.
    pub(super) fn first_bytes(&self) -> ByteSet {
        first_bytes(self.expr, 0).0
    }

    /// The minimal automaton, as a part of terminal `id`; none if it matches nothing.
    pub(super) fn minimal(&self, terminals: &Terminals, id: TerminalId, counting: &Counting) -> MaybeMinimal {
        let copied_states = counting.copied_states_of(id);
        let Terminals { all, known, limits, .. } = terminals;
        let build = || Minimal::of(self.expr, (&all[id as usize].name, id), limits, counting);
        let find = || known.minimal(PartKey { expr: self.number(known), copied_states, limits: limits.clone() }, build);
        self.minimal[usize::from(copied_states < u64::MAX)].get_or_init(find).clone()
    }
}

impl<'a> Terminals<'a> {
    /// Take terminals apart.
    pub(crate) fn new(all: &'a [Terminal], known: &'a KnownPatterns, limits: &LexerLimits) -> Self {
        let mut words = Words::new();
        let parts_of = |terminal: &'a Terminal| {
            let mut rest = Vec::new();
            Parts { words: words.take(&terminal.expr, &mut rest), rest, whole: Part::new(&terminal.expr) }
        };
        let parts = all.iter().map(parts_of).collect();
        Terminals { all, known, limits: limits.clone(), words, parts }
    }

    /// The number of a terminal's expression.
    pub(super) fn number(&self, id: TerminalId) -> ExprId {
        self.parts[id as usize].whole.number(self.known)
    }

    /// The words and the patterns of some terminals, ascending; the words have so many bytes at most, the others are patterns.
    pub(super) fn words_and_patterns(&self, members: &[TerminalId], most: usize) -> (Trie, Vec<Pattern<'_>>) {
        let words = members.iter().map(|&id| (id, self.parts[id as usize].words.clone()));
        let (trie, left) = self.words.trie(words, most);
        let mut patterns: Vec<Pattern> = Vec::new();
        let mut left = left.into_iter().peekable();
        for &id in members {
            let Parts { words, rest, .. } = &self.parts[id as usize];
            if words.is_empty() {
                patterns.push(self.pattern(id));
                continue;
            }
            let mut parts: Vec<&Part> = rest.iter().collect();
            while let Some((_, part)) = left.next_if(|(of, _)| *of == id) {
                parts.push(part);
            }
            if !parts.is_empty() {
                patterns.push(Pattern { id, parts, whole: false });
            }
        }
        (trie, patterns)
    }

    /// The whole of a terminal as a pattern.
    pub(super) fn pattern(&self, id: TerminalId) -> Pattern<'_> {
        Pattern { id, parts: vec![&self.parts[id as usize].whole], whole: true }
    }
}
