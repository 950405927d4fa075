//! What lexers have in common is found out once.
//!
//! Grammars come and go, and each has white space, strings and numbers. What only their expressions determine is kept beside
//! a vocabulary, since grammars are compiled for it again and again, and found there by the *numbers* of the expressions: one
//! that was seen before is compared once, and everything else is looked up by its number.

use super::LexerLimits;
use super::components::Component;
use super::nfa::Minimal;
use super::sharing::{Alone, Verdict};
use crate::grammar::ir::Expr;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// What is known of the patterns that there were. When it has grown large it starts anew.
#[derive(Debug, Default)]
pub(crate) struct KnownPatterns(Mutex<Known>);

/// Number of an expression. It is never used again.
pub(super) type ExprId = u64;

#[derive(Debug, Default)]
struct Known {
    /// Expressions and other things numbered so far.
    numbered: u64,
    exprs: FxHashMap<Expr, ExprId>,
    components: FxHashMap<ComponentKey, Arc<Component>>,
    minimal: FxHashMap<PartKey, Option<Arc<Minimal>>>,
    alone: FxHashMap<AloneKey, Option<Arc<Alone>>>,
    verdicts: FxHashMap<(u64, u64), Verdict>,
    size: usize,
}

/// All that a component depends on.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ComponentKey {
    pub members: Vec<MemberKey>,
    pub resolve_ranks: bool,
    pub limits: LexerLimits,
}

/// What a component depends on of a terminal.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct MemberKey {
    pub parts: Vec<ExprId>,
    pub whole: bool,
    pub rank: (i32, bool),
    pub copied_states: u64,
}

/// All that the minimal automaton of an expression depends on.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct PartKey {
    pub expr: ExprId,
    pub copied_states: u64,
    pub limits: LexerLimits,
}

/// All that the automaton of one terminal depends on.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct AloneKey {
    pub expr: ExprId,
    pub copied_states: u64,
}

impl KnownPatterns {
    /// Numbers of four bytes that are kept, about; what takes more than a sixteenth of them is not.
    const MOST: usize = 1 << 24;

    /// The number of an expression.
    pub(super) fn number(&self, expr: &Expr) -> ExprId {
        if let Some(&number) = self.lock().exprs.get(expr) {
            return number;
        }
        let (number, size) = (self.new_number(), expr.size() * 16);
        self.keep(size, |known| _ = known.exprs.insert(expr.clone(), number));
        number
    }

    /// A number that is given once.
    pub(super) fn new_number(&self) -> u64 {
        let mut known = self.lock();
        known.numbered += 1;
        known.numbered
    }

    /// A component, built by `build` if it is not known.
    ///
    /// # Errors
    /// Those of `build`.
    pub(super) fn component<E>(
        &self,
        key: ComponentKey,
        build: impl FnOnce() -> Result<Component, E>,
    ) -> Result<Arc<Component>, E> {
        if let Some(component) = self.lock().components.get(&key) {
            return Ok(Arc::clone(component));
        }
        let component = Arc::new(build()?);
        self.keep(component.size(), |known| _ = known.components.insert(key, Arc::clone(&component)));
        Ok(component)
    }

    /// The minimal automaton of an expression, built by `build` if it is not known; none if it matches nothing.
    ///
    /// # Errors
    /// Those of `build`.
    pub(super) fn minimal<E>(
        &self,
        key: PartKey,
        build: impl FnOnce() -> Result<Option<Minimal>, E>,
    ) -> Result<Option<Arc<Minimal>>, E> {
        if let Some(minimal) = self.lock().minimal.get(&key) {
            return Ok(minimal.clone());
        }
        let minimal = build()?.map(Arc::new);
        let size = minimal.as_ref().map_or(1, |minimal| minimal.size());
        self.keep(size, |known| _ = known.minimal.insert(key, minimal.clone()));
        Ok(minimal)
    }

    /// The automaton of one terminal, built by `build` if it is not known, or none where it is too large.
    pub(super) fn alone(&self, key: AloneKey, build: impl FnOnce() -> Option<Alone>) -> Option<Arc<Alone>> {
        if let Some(alone) = self.lock().alone.get(&key) {
            return alone.clone();
        }
        let alone = build().map(Arc::new);
        let size = alone.as_ref().map_or(1, |alone| alone.size());
        self.keep(size, |known| _ = known.alone.insert(key, alone.clone()));
        alone
    }

    /// How two terminals disturb each other, if that is known.
    pub(super) fn verdict(&self, a: &Alone, b: &Alone) -> Option<Verdict> {
        self.lock().verdicts.get(&(a.number, b.number)).copied()
    }

    /// Keep that for the next time.
    pub(super) fn keep_verdict(&self, a: &Alone, b: &Alone, verdict: Verdict) {
        self.keep(16, |known| _ = known.verdicts.insert((a.number, b.number), verdict));
    }

    fn keep(&self, size: usize, insert: impl FnOnce(&mut Known)) {
        if size > Self::MOST / 16 {
            return;
        }
        let mut known = self.lock();
        if known.size + size > Self::MOST {
            *known = Known { numbered: known.numbered, ..Known::default() };
        }
        known.size += size;
        insert(&mut known);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_not_used_again_when_it_starts_anew() {
        let known = KnownPatterns::default();
        let expr = |byte: u8| Expr::Bytes(vec![byte]);
        let numbers = [expr(1), expr(2), expr(1)].map(|expr| known.number(&expr));
        assert_eq!((numbers[0], numbers[0] == numbers[1]), (numbers[2], false));
        // What is too large is not kept, and the rest as long as there is room.
        known.keep(KnownPatterns::MOST, |_| panic!("kept"));
        (0..15).for_each(|_| known.keep(KnownPatterns::MOST / 16, |_| ()));
        assert_eq!(known.number(&expr(1)), numbers[0]);
        (0..2).for_each(|_| known.keep(KnownPatterns::MOST / 16, |_| ()));
        let anew = known.number(&expr(1));
        assert!(!numbers.contains(&anew));
        assert_eq!(known.number(&expr(1)), anew);
    }
}
