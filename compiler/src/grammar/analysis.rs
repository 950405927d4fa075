//! Which nonterminals derive the empty string, which terminals begin them, and which terminals can stand side by side.
//!
//! All answers are exact for a reduced grammar, apart from the fallback closure of [`Follow`], which assumes that a
//! fallback is used wherever it could be.

use super::ir::Symbol;
use super::reduce::{ReducedGrammar, deriving};
use super::relation::{BitMatrix, EMPTY, Relation, close, columns, unite};

/// For each nonterminal whether it derives the empty string.
pub fn nullable(grammar: &ReducedGrammar) -> Vec<bool> {
    deriving(grammar.nonterminal_names.len(), &grammar.productions, |_| false)
}

/// The terminals that can begin what each nonterminal derives; one row per nonterminal, which also has room for the end.
pub fn first(grammar: &ReducedGrammar, nullable: &[bool]) -> BitMatrix {
    let count = grammar.nonterminal_names.len();
    let mut sets = BitMatrix::new(count, grammar.terminal_count + 1);
    let mut begins = Vec::new();
    for p in &grammar.productions {
        for &symbol in &p.rhs {
            match symbol {
                Symbol::T(t) => sets.insert(p.lhs, t),
                Symbol::N(n) => begins.push((p.lhs, n)),
            }
            if !is_nullable(symbol, nullable) {
                break;
            }
        }
    }
    let base: Vec<u32> = (0..count as u32).collect();
    let rows = close(&Relation::from_pairs(count, &begins), &base, &mut sets);
    let mut result = BitMatrix::new(count, grammar.terminal_count + 1);
    for (n, &row) in rows.iter().enumerate() {
        result.unite_with(n as u32, sets.row(row));
    }
    result
}

/// Whether a symbol derives the empty string.
pub fn is_nullable(symbol: Symbol, nullable: &[bool]) -> bool {
    matches!(symbol, Symbol::N(n) if nullable[n as usize])
}

/// What can come right after each symbol in a sentential form. The end of the sentence is column `terminal_count`.
#[derive(Debug, Clone)]
pub struct Follow {
    terminal_count: usize,
    sets: BitMatrix,
    terminals: Vec<u32>,
    nonterminals: Vec<u32>,
}

impl Follow {
    /// FOLLOW of every symbol, that of terminals closed under fallback: a terminal can be followed by whatever can follow
    /// its fallback, and wherever a terminal can follow, so can those whose fallback chain reaches it.
    ///
    /// `fallback` has no cycles. Terminals that no production uses and that have no fallback have an empty set.
    /// Cost: one union of bit rows per symbol occurrence.
    pub fn build(grammar: &ReducedGrammar, fallback: &[Option<u32>]) -> Follow {
        let (terminal_count, count) = (grammar.terminal_count, grammar.nonterminal_names.len());
        let nullable = nullable(grammar);
        let first = first(grammar, &nullable);
        let node = |symbol: Symbol| match symbol {
            Symbol::T(t) => t,
            Symbol::N(n) => terminal_count as u32 + n,
        };
        let nodes = terminal_count + count;
        let mut sets = BitMatrix::new(nodes, terminal_count + 1);
        sets.insert(node(Symbol::N(grammar.start)), terminal_count as u32);
        let mut inherits = Vec::new();
        let mut next = vec![0; sets.words()];
        for p in &grammar.productions {
            next.fill(0);
            let mut at_end = true;
            for &symbol in p.rhs.iter().rev() {
                sets.unite_with(node(symbol), &next);
                if at_end {
                    inherits.push((node(symbol), node(Symbol::N(p.lhs))));
                }
                if !is_nullable(symbol, &nullable) {
                    at_end = false;
                    next.fill(0);
                }
                match symbol {
                    Symbol::T(t) => next[t as usize / 64] |= 1 << (t % 64),
                    Symbol::N(n) => unite(&mut next, first.row(n)),
                }
            }
        }
        let base: Vec<u32> = (0..nodes as u32).collect();
        let rows = close(&Relation::from_pairs(nodes, &inherits), &base, &mut sets);
        let (terminals, nonterminals) = rows.split_at(terminal_count);
        let mut follow =
            Follow { terminal_count, sets, terminals: terminals.to_vec(), nonterminals: nonterminals.to_vec() };
        follow.close_under_fallback(fallback);
        follow
    }

    fn close_under_fallback(&mut self, fallback: &[Option<u32>]) {
        let pairs: Vec<_> =
            (0..self.terminal_count as u32).filter_map(|t| Some((t, (*fallback.get(t as usize)?)?))).collect();
        if pairs.is_empty() {
            return;
        }
        let down = Relation::from_pairs(self.terminal_count, &pairs);
        self.terminals = close(&down, &self.terminals, &mut self.sets);
        // users[t]: t and the terminals whose chain reaches t.
        let up: Vec<_> = pairs.iter().map(|&(t, f)| (f, t)).collect();
        let mut users = BitMatrix::new(self.terminal_count, self.terminal_count + 1);
        (0..self.terminal_count as u32).for_each(|t| users.insert(t, t));
        let own: Vec<u32> = (0..self.terminal_count as u32).collect();
        let rows = close(&Relation::from_pairs(self.terminal_count, &up), &own, &mut users);
        let mut widened = vec![EMPTY; self.sets.rows()];
        for set in &mut self.terminals {
            if widened[*set as usize] == EMPTY {
                let mut sum = self.sets.row(*set).to_vec();
                for &(_, f) in pairs.iter().filter(|&&(_, f)| self.sets.contains(*set, f)) {
                    unite(&mut sum, users.row(rows[f as usize]));
                }
                widened[*set as usize] = self.sets.push(&sum);
            }
            *set = widened[*set as usize];
        }
    }

    /// The terminals, and the end, that can come right after terminal `t`; bit `c % 64` of word `c / 64` is column `c`.
    pub fn after(&self, t: u32) -> &[u64] {
        self.sets.row(self.terminals[t as usize])
    }

    /// The columns of [`Self::after`], ascending.
    pub fn iter_after(&self, t: u32) -> impl Iterator<Item = u32> + '_ {
        columns(self.after(t))
    }

    /// Whether `next`, a terminal or the end, can come right after `t`.
    pub fn allows(&self, t: u32, next: u32) -> bool {
        self.sets.contains(self.terminals[t as usize], next)
    }

    /// Whether a sentence can end with `t`.
    pub fn can_end_with(&self, t: u32) -> bool {
        self.allows(t, self.terminal_count as u32)
    }

    /// The terminals, and the end, that can come right after what a nonterminal derives; fallback is not considered.
    pub fn after_nonterminal(&self, n: u32) -> &[u64] {
        self.sets.row(self.nonterminals[n as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::super::reduce::validate_and_reduce;
    use super::super::testing::{finite_grammar, grammar, sentences};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Pairs of neighbours in all sentences, the end being 4, closed under fallback by the definition.
    fn neighbours(strings: &BTreeSet<Vec<u32>>, fallback: &[Option<u32>]) -> BTreeSet<(u32, u32)> {
        let mut pairs = BTreeSet::new();
        for string in strings {
            let shifted = string.iter().skip(1).copied().chain([4]);
            pairs.extend(string.iter().copied().zip(shifted));
        }
        loop {
            let mut more = pairs.clone();
            for (t, f) in fallback.iter().enumerate().filter_map(|(t, &f)| Some((t as u32, f?))) {
                more.extend(pairs.iter().filter(|&&(a, _)| a == f).map(|&(_, b)| (t, b)));
                more.extend(pairs.iter().filter(|&&(_, b)| b == f).map(|&(a, _)| (a, t)));
            }
            if more == pairs {
                return pairs;
            }
            pairs = more;
        }
    }

    proptest! {
        #[test]
        fn follow_first_and_nullable_equal_enumeration(
            g in finite_grammar(),
            fallback in prop_oneof![Just([None; 4]), (0u32..4, 0u32..4).prop_map(|(a, b)| {
                // Terminals fall back to smaller ones only.
                [None, Some(0).filter(|_| a > 0), Some(a % 2).filter(|_| b > 0), Some(b % 3).filter(|_| a > 1)]
            })],
        ) {
            let Ok(reduced) = validate_and_reduce(&g) else { return Ok(()) };
            let strings = sentences(&g, 12);
            prop_assume!(sentences(&g, 27).len() == strings.len());
            let follow = Follow::build(&reduced, &fallback);
            let expected = neighbours(&strings, &fallback);
            for (t, next) in (0..20).map(|i| (i / 5, i % 5)) {
                prop_assert_eq!(follow.allows(t, next), expected.contains(&(t, next)), "{} {}", t, next);
            }
            (0..4).for_each(|t| assert_eq!(follow.iter_after(t).any(|c| c == 4), follow.can_end_with(t)));
            let nullable = nullable(&reduced);
            prop_assert_eq!(nullable[reduced.start as usize], strings.contains(&vec![]));
            let begins: BTreeSet<u32> = strings.iter().filter_map(|s| s.first().copied()).collect();
            prop_assert!(columns(first(&reduced, &nullable).row(reduced.start)).eq(begins));
        }
    }

    #[test]
    fn follow_reaches_through_nullable_symbols_and_recursion() {
        let reduced = validate_and_reduce(&grammar(r#"s: "(" s o ")" | s "," | ; o: | "o" o"#)).unwrap();
        let follow = Follow::build(&reduced, &[None; 4]);
        let after = |t| follow.iter_after(t).collect::<Vec<_>>();
        assert_eq!((after(0), after(1)), (vec![0, 1, 2, 3], vec![1, 2, 3, 4]));
        assert_eq!((after(2), after(3)), (vec![1, 2, 3, 4], vec![1, 3]));
        assert!(columns(follow.after_nonterminal(reduced.start)).eq([1, 2, 3, 4]));
    }
}
