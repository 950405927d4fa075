//! Removes hidden left recursion, the one thing that makes LR stacks grow without end.
//!
//! *Hidden left recursion* is `A ⇒+ α A β` where α is not empty but derives the empty string: the parser could reduce
//! α from nothing for ever. (A cycle `A ⇒+ A` needs no rewriting: it reduces on one stack, where the graph-structured stack
//! and the symbolic simulation both meet what they have already seen.) Everything else, with any other ε-rules and left or
//! right recursion, passes through unchanged, and so keep rows and fallback, which are defined on the table.
//!
//! In `A → X1 … Xk B β`, with all `X` nullable and `B` left-recursive with `A`, the leftmost `X` that is not empty is made
//! explicit: `A → X1+ X2 … Xk B β | X2+ X3 … B β | … | B β`. `X+` stands for a new nonterminal for what `X` derives
//! without the empty string; its productions hold no nullable symbol.
//!
//! Cost: linear in the grammar. Productions with many nullable symbols are cut into chains of new nonterminals first, so
//! the 2^k ways to leave out k symbols are never listed.

use rustc_hash::FxHashSet;

use super::analysis::{is_nullable, nullable};
use super::ir::{Name, Production, Symbol};
use super::reduce::{ReducedGrammar, deriving};
use super::relation::{Relation, components};

/// Nullable symbols of one production up to which the ways to leave them out are written down directly.
const DIRECT: usize = 2;

/// Remove hidden left recursion; the language stays the same, and so does a grammar without it.
pub fn remove_hidden_recursion(grammar: ReducedGrammar) -> ReducedGrammar {
    let nullable = nullable(&grammar);
    let hidden = hidden_prefixes(&grammar, &nullable);
    if hidden.iter().all(|&h| h == 0) {
        return grammar;
    }
    Rewriter::new(grammar, nullable).run(&hidden)
}

/// For each production the length of the nullable prefix before its last left-recursive symbol.
fn hidden_prefixes(grammar: &ReducedGrammar, nullable: &[bool]) -> Vec<usize> {
    let count = grammar.nonterminal_names.len();
    let left = grammar.productions.iter().flat_map(|p| left_corners(p, nullable).map(|(_, n)| (p.lhs, n)));
    let parts = components(&Relation::from_pairs(count, &left.collect::<Vec<_>>())).of;
    let hidden = |p: &Production| {
        let recursive = left_corners(p, nullable).filter(|&(_, n)| parts[n as usize] == parts[p.lhs as usize]);
        recursive.map(|(i, _)| i).last().unwrap_or(0)
    };
    grammar.productions.iter().map(hidden).collect()
}

fn nonterminal(symbol: Symbol) -> Option<u32> {
    match symbol {
        Symbol::T(_) => None,
        Symbol::N(n) => Some(n),
    }
}

/// The nonterminals of a production before which everything is nullable, with their positions.
fn left_corners<'a>(p: &'a Production, nullable: &'a [bool]) -> impl Iterator<Item = (usize, u32)> + 'a {
    let prefix = p.rhs.iter().take_while(|&&s| is_nullable(s, nullable)).count();
    p.rhs[..p.rhs.len().min(prefix + 1)].iter().enumerate().filter_map(|(i, &s)| Some((i, nonterminal(s)?)))
}

/// Index of the old production that a new one stems from.
#[derive(Clone, Copy)]
struct Source(usize);

struct Rewriter {
    old: ReducedGrammar,
    nullable: Vec<bool>,
    names: Vec<Name>,
    /// `A+` of each old nonterminal that needed one.
    nonempty: Vec<Option<u32>>,
    /// Old nonterminals whose `A+` has no productions yet.
    pending: Vec<u32>,
    productions: Vec<Production>,
    origins: Vec<u32>,
}

impl Rewriter {
    fn new(old: ReducedGrammar, nullable: Vec<bool>) -> Self {
        Rewriter {
            names: old.nonterminal_names.clone(),
            nonempty: vec![None; nullable.len()],
            pending: Vec::new(),
            productions: Vec::with_capacity(old.productions.len()),
            origins: Vec::with_capacity(old.productions.len()),
            old,
            nullable,
        }
    }

    fn run(mut self, hidden: &[usize]) -> ReducedGrammar {
        let by_lhs = self.old.productions_by_lhs();
        for (i, &prefix) in hidden.iter().enumerate() {
            let Production { lhs, rhs, .. } = self.old.productions[i].clone();
            match prefix {
                0 => self.push(Source(i), lhs, rhs),
                prefix => self.unhide(Source(i), lhs, &rhs, prefix),
            }
        }
        while let Some(n) = self.pending.pop() {
            let Symbol::N(lhs) = self.nonempty(Symbol::N(n)) else { continue };
            for &i in by_lhs.row(n as usize) {
                let rhs = self.old.productions[i as usize].rhs.clone();
                self.without_empty(Source(i as usize), lhs, &rhs);
            }
        }
        self.drop_useless()
    }

    fn push(&mut self, source: Source, lhs: u32, rhs: Vec<Symbol>) {
        let name = self.old.productions[source.0].name.clone();
        self.productions.push(Production { lhs, rhs, name });
        self.origins.push(self.old.origins[source.0]);
    }

    /// A new nonterminal for a part of a production.
    fn part(&mut self, source: Source, what: &str) -> u32 {
        let rule = self.old.productions[source.0].lhs as usize;
        self.names.push(format!("{}{what}", self.old.nonterminal_names[rule]).into());
        (self.names.len() - 1) as u32
    }

    /// A symbol for the non-empty strings of an old symbol.
    fn nonempty(&mut self, symbol: Symbol) -> Symbol {
        let Symbol::N(n) = symbol else { return symbol };
        if !self.nullable[n as usize] {
            return symbol;
        }
        if let Some(id) = self.nonempty[n as usize] {
            return Symbol::N(id);
        }
        let id = self.names.len() as u32;
        self.names.push(format!("{}+", self.old.nonterminal_names[n as usize]).into());
        self.nonempty[n as usize] = Some(id);
        self.pending.push(n);
        Symbol::N(id)
    }

    /// Make the leftmost non-empty symbol of the nullable prefix explicit.
    fn unhide(&mut self, source: Source, lhs: u32, rhs: &[Symbol], prefix: usize) {
        let mut head = lhs;
        // The part that stands for rhs[i..]; a short prefix is written down without.
        let mut tail = None;
        for i in 0..prefix {
            let mut variant = vec![self.nonempty(rhs[i])];
            if prefix <= DIRECT {
                variant.extend_from_slice(&rhs[i + 1..]);
                self.push(source, head, variant);
                continue;
            }
            let rest = self.part(source, "~");
            if let Some(tail) = tail {
                self.push(source, tail, vec![rhs[i], Symbol::N(rest)]);
            }
            tail = Some(rest);
            variant.push(Symbol::N(rest));
            self.push(source, head, variant);
            let next = self.part(source, "~");
            self.push(source, head, vec![Symbol::N(next)]);
            head = next;
        }
        if let Some(tail) = tail {
            self.push(source, tail, rhs[prefix..].to_vec());
        }
        self.push(source, head, rhs[prefix..].to_vec());
    }

    /// Add productions that give `lhs` the non-empty strings of `rhs`, without nullable symbols.
    fn without_empty(&mut self, source: Source, mut lhs: u32, mut rhs: &[Symbol]) {
        loop {
            crate::control::check();
            let optional: Vec<usize> = (0..rhs.len()).filter(|&i| is_nullable(rhs[i], &self.nullable)).collect();
            if optional.len() <= DIRECT {
                for left_out in 0..1usize << optional.len() {
                    let is_left_out =
                        |i| optional.iter().position(|&o| o == i).is_some_and(|bit| left_out >> bit & 1 == 1);
                    let chosen: Vec<Symbol> = (0..rhs.len()).filter(|&i| !is_left_out(i)).map(|i| rhs[i]).collect();
                    let variant: Vec<Symbol> = chosen.into_iter().map(|s| self.nonempty(s)).collect();
                    if !variant.is_empty() {
                        self.push(source, lhs, variant);
                    }
                }
                return;
            }
            // lhs → w (X+ | ε) (R+ | ε), where the second ε needs a nullable rest.
            let (solid, rest) = (&rhs[..optional[0]], &rhs[optional[0] + 1..]);
            let present = self.nonempty(rhs[optional[0]]);
            let tail = self.part(source, "~+");
            let rest_is_nullable = rest.iter().all(|&s| is_nullable(s, &self.nullable));
            for variant in [&[present, Symbol::N(tail)][..], &[Symbol::N(tail)], &[present], &[]] {
                let has_tail = variant.last() == Some(&Symbol::N(tail));
                let variant = [solid, variant].concat();
                if (has_tail || rest_is_nullable) && !variant.is_empty() {
                    self.push(source, lhs, variant);
                }
            }
            (lhs, rhs) = (tail, rest);
        }
    }

    /// Drop what became useless or stands there twice.
    fn drop_useless(self) -> ReducedGrammar {
        // A nonterminal that derives only the empty string has an unproductive `A+`.
        let productive = deriving(self.names.len(), &self.productions, |_| true);
        let mut seen = FxHashSet::default();
        let (mut productions, mut origins) = (Vec::new(), Vec::new());
        for (p, origin) in self.productions.into_iter().zip(self.origins) {
            let derives = p.rhs.iter().all(|&s| nonterminal(s).is_none_or(|n| productive[n as usize]));
            if derives && p.rhs[..] != [Symbol::N(p.lhs)] && seen.insert((p.lhs, p.rhs.clone())) {
                productions.push(p);
                origins.push(origin);
            }
        }
        let mut grammar = ReducedGrammar { nonterminal_names: self.names, productions, origins, ..self.old };
        grammar.retain_reachable();
        grammar
    }
}

#[cfg(test)]
mod tests {
    use super::super::reduce::validate_and_reduce;
    use super::super::testing::{any_grammar, grammar};
    use super::*;
    use proptest::prelude::*;

    fn rewritten(text: &str) -> ReducedGrammar {
        remove_hidden_recursion(validate_and_reduce(&grammar(text)).unwrap())
    }

    fn has_problems(grammar: &ReducedGrammar) -> bool {
        hidden_prefixes(grammar, &nullable(grammar)).iter().any(|&h| h > 0)
    }

    fn size(grammar: &ReducedGrammar) -> usize {
        grammar.productions.iter().map(|p| p.rhs.len() + 1).sum()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn nothing_hidden_remains_and_what_is_clean_stays(g in any_grammar(2, 6)) {
            let Ok(reduced) = validate_and_reduce(&g) else { return Ok(()) };
            let after = remove_hidden_recursion(reduced.clone());
            prop_assert!(!has_problems(&after));
            prop_assert_eq!(after.origins.len(), after.productions.len());
            prop_assert!(size(&after) <= 20 * size(&reduced));
            if !has_problems(&reduced) {
                prop_assert_eq!(format!("{after:?}"), format!("{reduced:?}"));
            }
        }
    }

    #[test]
    fn only_affected_productions_change() {
        let after = rewritten(r#"top: s o | top "t" ; s: a s "x" | "y" ; a: | "z" ; o: | "o""#);
        let names = &after.nonterminal_names;
        let lines: Vec<String> = after
            .productions
            .iter()
            .map(|p| {
                let symbol = |s: &Symbol| nonterminal(*s).map_or(format!("{s:?}"), |n| names[n as usize].to_string());
                format!("{}: {}", names[p.lhs as usize], p.rhs.iter().map(symbol).collect::<Vec<_>>().join(" "))
            })
            .collect();
        let expected = ["top: s o", "top: top T(0)", "s: a+ s T(1)", "s: s T(1)", "s: T(2)"];
        assert_eq!(lines, [&expected[..], &["o: ", "o: T(4)", "a+: T(3)"]].concat());
        assert_eq!(after.origins, [0, 1, 2, 2, 3, 6, 7, 5]);
    }

    #[test]
    fn many_optional_symbols_grow_linearly() {
        for (k, tail) in [(200, r#"s "x" | "y""#), (200, r#"s | "y""#)] {
            let text = format!("s: {} {tail} ; o: | \"z\"", "o ".repeat(k));
            let after = rewritten(&text);
            assert!(!has_problems(&after));
            assert!(size(&after) < 20 * k, "{}", size(&after));
        }
    }
}
