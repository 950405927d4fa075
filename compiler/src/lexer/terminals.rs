//! The terminals of a grammar, taken apart once for all the lexers that they are of.

use super::components::Pattern;
use super::known::{ExprId, KnownPatterns};
use super::words::{Trie, Words};
use crate::grammar::ir::{Expr, Terminal, TerminalId};
use std::ops::Range;
use std::sync::OnceLock;

/// The terminals of a grammar, with what is known of them.
#[derive(Debug)]
pub(crate) struct Terminals<'a> {
    pub all: &'a [Terminal],
    pub(super) known: &'a KnownPatterns,
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

/// An expression, with its number once somebody asks for it.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub expr: &'a Expr,
    number: OnceLock<ExprId>,
}

impl<'a> Part<'a> {
    pub(super) fn new(expr: &'a Expr) -> Self {
        Part { expr, number: OnceLock::new() }
    }

    pub(super) fn number(&self, known: &KnownPatterns) -> ExprId {
        *self.number.get_or_init(|| known.number(self.expr))
    }
}

impl<'a> Terminals<'a> {
    /// Take terminals apart.
    pub(crate) fn new(all: &'a [Terminal], known: &'a KnownPatterns) -> Self {
        let mut words = Words::new();
        let parts_of = |terminal: &'a Terminal| {
            let mut rest = Vec::new();
            Parts { words: words.take(&terminal.expr, &mut rest), rest, whole: Part::new(&terminal.expr) }
        };
        let parts = all.iter().map(parts_of).collect();
        Terminals { all, known, words, parts }
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
