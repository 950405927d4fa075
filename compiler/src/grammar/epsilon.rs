//! Removes hidden left recursion and cycles, the two things that keep an LR parser from terminating.
//!
//! *Hidden left recursion* is `A ⇒+ α A β` where α is not empty but derives the empty string: the parser could reduce
//! α from nothing for ever, and the stack would grow. A *cycle* is `A ⇒+ A`: it could reduce for ever on one stack. An LR
//! automaton of a grammar with neither terminates on every input, with any other ε-rules and left or right recursion.
//!
//! Only the affected productions change; `A+` stands for a new nonterminal for what `A` derives without the empty string.
//! 1. Hidden: in `A → X1 … Xk B β`, with all `X` nullable and `B` left-recursive with `A`, the leftmost `X` that is not
//!    empty is made explicit: `A → X1+ X2 … Xk B β | X2+ X3 … B β | … | B β`.
//! 2. Cyclic: if `A ⇒+ A`, every nullable symbol of its productions is replaced by its `+` or left out, so that cycles
//!    remain only along unit rules `A → B`. The members of such a cycle derive the same strings: they become one.
//!
//! Why it suffices: nothing nullable stands left of a left-recursive symbol in the new productions, and a cycle in the new
//! grammar maps to one in the old, whose members are all treated by step 2.
//!
//! Cost: linear in the grammar. Productions with many nullable symbols are cut into chains of new nonterminals first, so
//! the 2^k ways to leave out k symbols are never listed.

use rustc_hash::FxHashSet;

use super::analysis::{is_nullable, nullable};
use super::ir::{Production, Symbol};
use super::reduce::{ReducedGrammar, deriving};
use super::relation::{Relation, components};

/// Nullable symbols of one production up to which the ways to leave them out are written down directly.
const DIRECT: usize = 2;

/// Remove hidden left recursion and cycles; the language stays the same, and so does a grammar that has neither.
pub fn remove_hidden_recursion(grammar: ReducedGrammar) -> ReducedGrammar {
    let nullable = nullable(&grammar);
    let problems = Problems::find(&grammar, &nullable);
    if problems.is_empty() {
        return grammar;
    }
    Rewriter::new(grammar, nullable).run(&problems)
}

/// What keeps LR parsing of a grammar from terminating.
#[derive(Debug)]
struct Problems {
    /// For each nonterminal whether it derives itself.
    cyclic: Vec<bool>,
    /// For each production the length of the nullable prefix before its last left-recursive symbol.
    hidden: Vec<usize>,
}

impl Problems {
    fn find(grammar: &ReducedGrammar, nullable: &[bool]) -> Problems {
        let count = grammar.nonterminal_names.len();
        let (mut left, mut alone) = (Vec::new(), Vec::new());
        for p in &grammar.productions {
            left.extend(left_corners(p, nullable).map(|(_, n)| (p.lhs, n)));
            let mut solid = p.rhs.iter().filter(|&&s| !is_nullable(s, nullable));
            match (solid.next(), solid.next()) {
                (None, _) => alone.extend(p.rhs.iter().filter_map(|s| Some((p.lhs, nonterminal(*s)?)))),
                (Some(Symbol::N(n)), None) => alone.push((p.lhs, *n)),
                _ => {}
            }
        }
        let parts = components(&Relation::from_pairs(count, &alone)).of;
        let mut cyclic = vec![false; count];
        for (a, b) in alone {
            cyclic[a as usize] |= parts[a as usize] == parts[b as usize];
        }
        let parts = components(&Relation::from_pairs(count, &left)).of;
        let hidden = |p: &Production| {
            let recursive = left_corners(p, nullable).filter(|&(_, n)| parts[n as usize] == parts[p.lhs as usize]);
            recursive.map(|(i, _)| i).last().unwrap_or(0)
        };
        Problems { cyclic, hidden: grammar.productions.iter().map(hidden).collect() }
    }

    fn is_empty(&self) -> bool {
        !self.cyclic.contains(&true) && self.hidden.iter().all(|&h| h == 0)
    }
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
    names: Vec<String>,
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

    fn run(mut self, problems: &Problems) -> ReducedGrammar {
        let by_lhs = self.old.productions_by_lhs();
        for i in 0..self.old.productions.len() {
            let Production { lhs, rhs, .. } = self.old.productions[i].clone();
            let source = Source(i);
            if !problems.cyclic[lhs as usize] {
                match problems.hidden[i] {
                    0 => self.push(source, lhs, rhs),
                    prefix => self.unhide(source, lhs, &rhs, prefix),
                }
            } else if !self.nullable[lhs as usize] {
                self.without_empty(source, lhs, &rhs);
            } else if by_lhs.row(lhs as usize)[0] as usize == i {
                let nonempty = self.nonempty(Symbol::N(lhs));
                self.push(source, lhs, Vec::new());
                self.push(source, lhs, vec![nonempty]);
            }
        }
        while let Some(n) = self.pending.pop() {
            let Symbol::N(lhs) = self.nonempty(Symbol::N(n)) else { continue };
            for &i in by_lhs.row(n as usize) {
                let rhs = self.old.productions[i as usize].rhs.clone();
                self.without_empty(Source(i as usize), lhs, &rhs);
            }
        }
        self.merge_unit_cycles()
    }

    fn push(&mut self, source: Source, lhs: u32, rhs: Vec<Symbol>) {
        let name = self.old.productions[source.0].name.clone();
        self.productions.push(Production { lhs, rhs, name });
        self.origins.push(self.old.origins[source.0]);
    }

    /// A new nonterminal for a part of a production.
    fn part(&mut self, source: Source, what: &str) -> u32 {
        let rule = self.old.productions[source.0].lhs as usize;
        self.names.push(format!("{}{what}", self.old.nonterminal_names[rule]));
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
        self.names.push(format!("{}+", self.old.nonterminal_names[n as usize]));
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

    /// Make the nonterminals of each cycle of unit rules one, and drop what became useless.
    fn merge_unit_cycles(self) -> ReducedGrammar {
        let count = self.names.len();
        let units = self.productions.iter().filter_map(|p| match p.rhs[..] {
            [Symbol::N(n)] => Some((p.lhs, n)),
            _ => None,
        });
        let parts = components(&Relation::from_pairs(count, &units.collect::<Vec<_>>()));
        let mut merged = vec![0; count];
        for part in 0..parts.members.len() {
            let members = parts.members.row(part);
            let first = members.iter().copied().min().unwrap_or(0);
            members.iter().for_each(|&n| merged[n as usize] = first);
        }
        // A nonterminal that derives only the empty string has an unproductive `A+`.
        let productive = deriving(count, &self.productions, |_| true);
        let mut seen = FxHashSet::default();
        let (mut productions, mut origins) = (Vec::new(), Vec::new());
        for (mut p, origin) in self.productions.into_iter().zip(self.origins) {
            if p.rhs.iter().any(|&s| nonterminal(s).is_some_and(|n| !productive[n as usize])) {
                continue;
            }
            p.lhs = merged[p.lhs as usize];
            for s in &mut p.rhs {
                if let Symbol::N(n) = s {
                    *n = merged[*n as usize];
                }
            }
            if p.rhs[..] != [Symbol::N(p.lhs)] && seen.insert((p.lhs, p.rhs.clone())) {
                productions.push(p);
                origins.push(origin);
            }
        }
        let start = merged[self.old.start as usize];
        let mut grammar = ReducedGrammar { nonterminal_names: self.names, start, productions, origins, ..self.old };
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
        !Problems::find(grammar, &nullable(grammar)).is_empty()
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
                let symbol = |s: &Symbol| nonterminal(*s).map_or(format!("{s:?}"), |n| names[n as usize].clone());
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
