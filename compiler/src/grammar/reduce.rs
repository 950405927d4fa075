//! Checks a [`Grammar`] and drops what no sentence can use.
//!
//! Nonterminals and productions are dropped, terminals never: that would change how bytes are cut into lexemes.
//! What the lexer has to judge (a terminal accepting the empty string, or nothing) is not checked here, but
//! [`validate_and_reduce_without`] takes the terminals that accept nothing.

use rustc_hash::FxHashSet;

use super::ir::{Grammar, Name, Production, Symbol};
use super::relation::Relation;

/// 1-based line and column in the grammar text.
pub type Position = Option<(u32, u32)>;

/// A grammar in which every nonterminal and every production is part of some sentence.
#[derive(Debug, Clone)]
pub struct ReducedGrammar {
    /// Number of terminals; the same as in the IR.
    pub terminal_count: usize,
    /// Names of the nonterminals, which are numbered densely.
    pub nonterminal_names: Vec<Name>,
    /// Start nonterminal.
    pub start: u32,
    /// Productions, in the order of the IR.
    pub productions: Vec<Production>,
    /// For each production the index of the IR production it stems from.
    pub origins: Vec<u32>,
    /// What was dropped, for warnings.
    pub dropped: Vec<Dropped>,
}

/// Something [`validate_and_reduce`] dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dropped {
    /// A nonterminal, with all its productions.
    Nonterminal {
        /// Its name.
        name: String,
        /// Its position.
        position: Position,
        /// Why.
        why: Useless,
    },
    /// A production of a nonterminal that stays.
    Production {
        /// Its index in the IR.
        index: u32,
        /// Name of its nonterminal.
        rule: String,
        /// Position of its nonterminal.
        position: Position,
        /// Why.
        why: Useless,
    },
}

/// Why something can be dropped without changing the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Useless {
    /// No text can be derived from it.
    Unproductive,
    /// The start nonterminal does not lead to it.
    Unreachable,
    /// An equal production comes earlier.
    Duplicate,
}

/// Why a grammar is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrammarIssue {
    /// The start index names no nonterminal.
    #[error("start nonterminal {index} does not exist; the grammar has {count}")]
    StartOutOfRange {
        /// The index given.
        index: u32,
        /// Number of nonterminals.
        count: usize,
    },
    /// The start nonterminal has no production.
    #[error("start rule {name:?}{} has no production", place(.position))]
    StartUndefined {
        /// Its name.
        name: String,
        /// Its position.
        position: Position,
    },
    /// A production belongs to a nonterminal that does not exist.
    #[error("production {production} belongs to nonterminal {index}; the grammar has {count}")]
    LhsOutOfRange {
        /// Index of the production.
        production: usize,
        /// The index given.
        index: u32,
        /// Number of nonterminals.
        count: usize,
    },
    /// A production uses a symbol that does not exist.
    #[error("rule {rule:?}{} uses {symbol:?} in production {production}; the grammar has {terminals} terminals and {nonterminals} nonterminals", place(.position))]
    SymbolOutOfRange {
        /// Name of the production's nonterminal.
        rule: String,
        /// Position of the production's nonterminal.
        position: Position,
        /// Index of the production.
        production: usize,
        /// The symbol given.
        symbol: Symbol,
        /// Number of terminals.
        terminals: usize,
        /// Number of nonterminals.
        nonterminals: usize,
    },
    /// A terminal falls back to a terminal that does not exist.
    #[error("terminal {terminal:?}{} falls back to terminal {index}; the grammar has {count}", place(.position))]
    FallbackOutOfRange {
        /// Name of the terminal.
        terminal: String,
        /// Its position.
        position: Position,
        /// The index given.
        index: u32,
        /// Number of terminals.
        count: usize,
    },
    /// Fallbacks lead back to where they began.
    #[error("fallback cycle{}: {}", place(.position), .terminals.join(" -> "))]
    FallbackCycle {
        /// Names along the cycle; the first one is repeated at the end.
        terminals: Vec<String>,
        /// Position of the first one.
        position: Position,
    },
    /// A reject terminal has a fallback, which would let it be shifted.
    #[error("reject terminal {terminal:?}{} has a fallback; a reject terminal can never be shifted", place(.position))]
    RejectFallback {
        /// Name of the terminal.
        terminal: String,
        /// Its position.
        position: Position,
    },
    /// A production uses a reject terminal.
    #[error("rule {rule:?}{} uses reject terminal {terminal:?}, which can never be shifted", place(.position))]
    RejectUsed {
        /// Name of the production's nonterminal.
        rule: String,
        /// Position of the production's nonterminal.
        position: Position,
        /// Name of the terminal.
        terminal: String,
    },
    /// A production uses an ignored terminal.
    #[error("rule {rule:?}{} uses ignored terminal {terminal:?}, which never reaches the parser; take it out of the rule or no longer ignore it", place(.position))]
    IgnoredUsed {
        /// Name of the production's nonterminal.
        rule: String,
        /// Position of the production's nonterminal.
        position: Position,
        /// Name of the terminal.
        terminal: String,
    },
    /// No text matches the grammar.
    #[error("no finite text can be derived from start rule {start:?}{}{}", place(.position), undefined_hint(.undefined))]
    EmptyLanguage {
        /// Name of the start nonterminal.
        start: String,
        /// Its position.
        position: Position,
        /// Nonterminals that have no production at all.
        undefined: Vec<String>,
    },
}

impl GrammarIssue {
    /// Where in the grammar text it is, if that is known.
    pub fn position(&self) -> Position {
        match self {
            GrammarIssue::StartOutOfRange { .. } | GrammarIssue::LhsOutOfRange { .. } => None,
            GrammarIssue::StartUndefined { position, .. }
            | GrammarIssue::SymbolOutOfRange { position, .. }
            | GrammarIssue::FallbackOutOfRange { position, .. }
            | GrammarIssue::FallbackCycle { position, .. }
            | GrammarIssue::RejectFallback { position, .. }
            | GrammarIssue::RejectUsed { position, .. }
            | GrammarIssue::IgnoredUsed { position, .. }
            | GrammarIssue::EmptyLanguage { position, .. } => *position,
        }
    }
}

fn place(position: &Position) -> String {
    position.map_or(String::new(), |(line, column)| format!(" (line {line}, column {column})"))
}

fn undefined_hint(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => format!("; rule {only:?} has no production"),
        [first, rest @ ..] => format!("; rule {first:?} and {} more have no production", rest.len()),
    }
}

/// Check a grammar and drop its useless nonterminals and productions.
///
/// # Errors
/// The first [`GrammarIssue`] found.
pub fn validate_and_reduce(grammar: &Grammar) -> Result<ReducedGrammar, GrammarIssue> {
    validate_and_reduce_without(grammar, |_| false)
}

/// [`validate_and_reduce`], where the terminals that `accepts_nothing` holds for have an empty language. Such a terminal
/// can still stand for one that falls back to it.
///
/// Cost: linear in the grammar.
///
/// # Errors
/// The first [`GrammarIssue`] found.
pub fn validate_and_reduce_without(
    grammar: &Grammar,
    accepts_nothing: impl Fn(u32) -> bool,
) -> Result<ReducedGrammar, GrammarIssue> {
    check_symbols(grammar)?;
    check_fallbacks(grammar)?;
    let mut usable: Vec<bool> = (0..grammar.terminals.len() as u32).map(|t| !accepts_nothing(t)).collect();
    for t in (0..usable.len()).filter(|&t| !accepts_nothing(t as u32)) {
        let mut next = grammar.terminals[t].fallback;
        while let Some(f) = next {
            next = if usable[f as usize] { None } else { grammar.terminals[f as usize].fallback };
            usable[f as usize] = true;
        }
    }

    let (nonterminals, productions) = (&grammar.nonterminals, &grammar.productions);
    let start = &nonterminals[grammar.start as usize];
    let mut defined = vec![false; nonterminals.len()];
    productions.iter().for_each(|p| defined[p.lhs as usize] = true);
    if !defined[grammar.start as usize] {
        return Err(GrammarIssue::StartUndefined { name: start.name.to_string(), position: start.position });
    }
    let productive = deriving(nonterminals.len(), productions, |t| usable[t as usize]);
    if !productive[grammar.start as usize] {
        let undefined = (0..nonterminals.len()).filter(|&n| !defined[n]).map(|n| nonterminals[n].name.to_string());
        return Err(GrammarIssue::EmptyLanguage {
            start: start.name.to_string(),
            position: start.position,
            undefined: undefined.collect(),
        });
    }

    let is_productive = |p: &Production| {
        p.rhs.iter().all(|&s| match s {
            Symbol::T(t) => usable[t as usize],
            Symbol::N(n) => productive[n as usize],
        })
    };
    let mut reduced = ReducedGrammar {
        terminal_count: grammar.terminals.len(),
        nonterminal_names: nonterminals.iter().map(|n| n.name.clone()).collect(),
        start: grammar.start,
        productions: Vec::new(),
        origins: Vec::new(),
        dropped: Vec::new(),
    };
    let mut seen = FxHashSet::default();
    let mut dropped_productions = Vec::new();
    for (index, p) in productions.iter().enumerate() {
        let why = if !is_productive(p) {
            Useless::Unproductive
        } else if !seen.insert((p.lhs, &p.rhs)) {
            Useless::Duplicate
        } else {
            reduced.productions.push(p.clone());
            reduced.origins.push(index as u32);
            continue;
        };
        dropped_productions.push((index as u32, p.lhs, why));
    }
    let kept = reduced.retain_reachable();
    for (n, nonterminal) in nonterminals.iter().enumerate().filter(|&(n, _)| !kept[n]) {
        let why = if productive[n] { Useless::Unreachable } else { Useless::Unproductive };
        reduced.dropped.push(Dropped::Nonterminal {
            name: nonterminal.name.to_string(),
            position: nonterminal.position,
            why,
        });
    }
    for (index, lhs, why) in dropped_productions.into_iter().filter(|&(_, lhs, _)| kept[lhs as usize]) {
        let nonterminal = &nonterminals[lhs as usize];
        let (rule, position) = (nonterminal.name.to_string(), nonterminal.position);
        reduced.dropped.push(Dropped::Production { index, rule, position, why });
    }
    Ok(reduced)
}

fn check_symbols(grammar: &Grammar) -> Result<(), GrammarIssue> {
    let (terminals, nonterminals) = (grammar.terminals.len(), grammar.nonterminals.len());
    if grammar.start as usize >= nonterminals {
        return Err(GrammarIssue::StartOutOfRange { index: grammar.start, count: nonterminals });
    }
    for (production, p) in grammar.productions.iter().enumerate() {
        let Some(lhs) = grammar.nonterminals.get(p.lhs as usize) else {
            return Err(GrammarIssue::LhsOutOfRange { production, index: p.lhs, count: nonterminals });
        };
        for &symbol in &p.rhs {
            let exists = match symbol {
                Symbol::T(t) => (t as usize) < terminals,
                Symbol::N(n) => (n as usize) < nonterminals,
            };
            if !exists {
                let (rule, position) = (lhs.name.to_string(), lhs.position);
                return Err(GrammarIssue::SymbolOutOfRange {
                    rule,
                    position,
                    production,
                    symbol,
                    terminals,
                    nonterminals,
                });
            }
            if let Symbol::T(t) = symbol {
                let used = &grammar.terminals[t as usize];
                let place = || (lhs.name.to_string(), lhs.position, used.name.clone());
                if used.reject {
                    let (rule, position, terminal) = place();
                    return Err(GrammarIssue::RejectUsed { rule, position, terminal });
                }
                if used.ignored {
                    let (rule, position, terminal) = place();
                    return Err(GrammarIssue::IgnoredUsed { rule, position, terminal });
                }
            }
        }
    }
    Ok(())
}

fn check_fallbacks(grammar: &Grammar) -> Result<(), GrammarIssue> {
    let terminals = &grammar.terminals;
    for t in terminals {
        let Some(index) = t.fallback else { continue };
        if index as usize >= terminals.len() {
            let count = terminals.len();
            return Err(GrammarIssue::FallbackOutOfRange {
                terminal: t.name.clone(),
                position: t.position,
                index,
                count,
            });
        }
        if t.reject {
            return Err(GrammarIssue::RejectFallback { terminal: t.name.clone(), position: t.position });
        }
    }
    // Each walk marks what it passes with its own number, so meeting that number again closes a cycle.
    let mut walk = vec![0; terminals.len()];
    for t in 0..terminals.len() {
        let mut next = Some(t as u32);
        while let Some(at) = next.filter(|&at| walk[at as usize] == 0) {
            walk[at as usize] = t + 1;
            next = terminals[at as usize].fallback;
        }
        let Some(first) = next.filter(|&at| walk[at as usize] == t + 1) else { continue };
        let mut names = vec![terminals[first as usize].name.clone()];
        let mut next = terminals[first as usize].fallback;
        while let Some(at) = next {
            names.push(terminals[at as usize].name.clone());
            next = if at == first { None } else { terminals[at as usize].fallback };
        }
        return Err(GrammarIssue::FallbackCycle { terminals: names, position: terminals[first as usize].position });
    }
    Ok(())
}

/// The nonterminals that derive a string of terminals for which `usable` holds. With `|_| false`: the nullable ones.
///
/// Cost: linear in the productions.
pub fn deriving(nonterminal_count: usize, productions: &[Production], usable: impl Fn(u32) -> bool) -> Vec<bool> {
    let mut derives = vec![false; nonterminal_count];
    let mut missing = vec![0u32; productions.len()];
    let mut uses = Vec::new();
    let mut found = Vec::new();
    for (i, p) in productions.iter().enumerate() {
        if p.rhs.iter().any(|s| matches!(s, Symbol::T(t) if !usable(*t))) {
            continue;
        }
        for s in &p.rhs {
            if let Symbol::N(n) = s {
                uses.push((*n, i as u32));
                missing[i] += 1;
            }
        }
        if missing[i] == 0 && !derives[p.lhs as usize] {
            derives[p.lhs as usize] = true;
            found.push(p.lhs);
        }
    }
    let uses = Relation::from_pairs(nonterminal_count, &uses);
    while let Some(n) = found.pop() {
        for &i in uses.row(n as usize) {
            missing[i as usize] -= 1;
            let lhs = productions[i as usize].lhs;
            if missing[i as usize] == 0 && !derives[lhs as usize] {
                derives[lhs as usize] = true;
                found.push(lhs);
            }
        }
    }
    derives
}

impl ReducedGrammar {
    /// Drop the nonterminals the start does not lead to, with their productions, and number the rest densely in order.
    /// Returns which were kept.
    pub(super) fn retain_reachable(&mut self) -> Vec<bool> {
        let count = self.nonterminal_names.len();
        let by_lhs = self.productions_by_lhs();
        let mut kept = vec![false; count];
        kept[self.start as usize] = true;
        let mut found = vec![self.start];
        while let Some(n) = found.pop() {
            for &p in by_lhs.row(n as usize) {
                for s in &self.productions[p as usize].rhs {
                    if let Symbol::N(m) = *s
                        && !kept[m as usize]
                    {
                        kept[m as usize] = true;
                        found.push(m);
                    }
                }
            }
        }
        if kept.iter().all(|&k| k) {
            return kept;
        }
        let mut renumbered = vec![0; count];
        let mut next = 0;
        for n in 0..count {
            renumbered[n] = next;
            next += u32::from(kept[n]);
        }
        let mut origins = std::mem::take(&mut self.origins).into_iter();
        let mut kept_origins = Vec::new();
        self.productions.retain_mut(|p| {
            let origin = origins.next();
            if !kept[p.lhs as usize] {
                return false;
            }
            kept_origins.extend(origin);
            p.lhs = renumbered[p.lhs as usize];
            for s in &mut p.rhs {
                if let Symbol::N(n) = s {
                    *n = renumbered[*n as usize];
                }
            }
            true
        });
        self.origins = kept_origins;
        self.start = renumbered[self.start as usize];
        let mut keep = kept.iter();
        self.nonterminal_names.retain(|_| keep.next().is_some_and(|&k| k));
        kept
    }

    /// The productions of each nonterminal.
    pub fn productions_by_lhs(&self) -> Relation {
        let pairs: Vec<_> = self.productions.iter().enumerate().map(|(i, p)| (p.lhs, i as u32)).collect();
        Relation::from_pairs(self.nonterminal_names.len(), &pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{any_grammar, grammar, sentences};
    use super::*;
    use crate::grammar::ir::Nonterminal;
    use proptest::prelude::*;

    /// The reduced grammar as an IR grammar, with its terminals.
    fn as_ir(g: &Grammar, reduced: &ReducedGrammar) -> Grammar {
        let nonterminal = |name: &Name| Nonterminal { name: name.clone(), position: None };
        Grammar {
            start: reduced.start,
            nonterminals: reduced.nonterminal_names.iter().map(nonterminal).collect(),
            productions: reduced.productions.clone(),
            ..g.clone()
        }
    }

    proptest! {
        #[test]
        fn reducing_keeps_the_language_and_only_useful_parts(g in any_grammar(2, 6)) {
            let Ok(reduced) = validate_and_reduce(&g) else {
                prop_assert_eq!(sentences(&g, 5).len(), 0);
                return Ok(());
            };
            let ir = as_ir(&g, &reduced);
            prop_assert_eq!(sentences(&g, 5), sentences(&ir, 5));
            let again = validate_and_reduce(&ir).unwrap();
            prop_assert_eq!(again.dropped, vec![]);
            prop_assert_eq!(again.productions.len(), reduced.productions.len());
        }
    }

    #[test]
    fn drops_are_reported_with_their_reason() {
        let g = grammar(r#"s: "a" | loop "b" | "a" ; loop: loop "c" ; far: "d""#);
        let reduced = validate_and_reduce(&g).unwrap();
        assert_eq!((reduced.terminal_count, reduced.nonterminal_names.len()), (4, 1));
        assert_eq!(reduced.origins, [0]);
        let nonterminal = |name: &str, why| Dropped::Nonterminal { name: name.into(), position: None, why };
        let production = |index, why| Dropped::Production { index, rule: "s".into(), position: None, why };
        assert_eq!(
            reduced.dropped,
            [
                nonterminal("loop", Useless::Unproductive),
                nonterminal("far", Useless::Unreachable),
                production(1, Useless::Unproductive),
                production(2, Useless::Duplicate)
            ]
        );
    }

    #[test]
    fn a_terminal_that_accepts_nothing_counts_only_if_another_falls_back_to_it() {
        let mut g = grammar(r#"s: "a" | "b" ; unused: "c""#);
        let count = |g: &Grammar| validate_and_reduce_without(g, |t| t == 1).unwrap().productions.len();
        assert_eq!(count(&g), 1);
        g.terminals[2].fallback = Some(1);
        assert_eq!(count(&g), 2);
    }

    #[test]
    fn issues_name_what_is_wrong() {
        let check = |text: &str, change: fn(&mut Grammar), expected: &str| {
            let mut g = grammar(text);
            change(&mut g);
            assert_eq!(validate_and_reduce(&g).unwrap_err().to_string(), expected);
        };
        let text = r#"s: "a" b ; b: "b" "c""#;
        check(text, |g| g.start = 7, "start nonterminal 7 does not exist; the grammar has 2");
        check(text, |g| g.productions[1].lhs = 9, "production 1 belongs to nonterminal 9; the grammar has 2");
        check(
            text,
            |g| {
                g.productions[1].rhs[0] = Symbol::T(3);
                g.nonterminals[1].position = Some((4, 2));
            },
            "rule \"b\" (line 4, column 2) uses T(3) in production 1; the grammar has 3 terminals and 2 nonterminals",
        );
        check(
            text,
            |g| g.terminals[0].fallback = Some(3),
            "terminal \"a\" falls back to terminal 3; the grammar has 3",
        );
        check(
            text,
            |g| {
                g.terminals[0].fallback = Some(1);
                g.terminals[1].fallback = Some(2);
                g.terminals[2].fallback = Some(1);
            },
            "fallback cycle: b -> c -> b",
        );
        check(text, |g| g.terminals[0].fallback = Some(0), "fallback cycle: a -> a");
        check(
            text,
            |g| g.terminals[1].reject = true,
            "rule \"b\" uses reject terminal \"b\", which can never be shifted",
        );
        check(
            r#"s: "a" ; b: "b""#,
            |g| {
                g.terminals.push(g.terminals[0].clone());
                g.terminals[2].reject = true;
                g.terminals[2].fallback = Some(0);
            },
            "reject terminal \"a\" has a fallback; a reject terminal can never be shifted",
        );
        check(text, |g| drop(g.productions.remove(0)), "start rule \"s\" has no production");
        check(
            text,
            |g| drop(g.productions.remove(1)),
            "no finite text can be derived from start rule \"s\"; rule \"b\" has no production",
        );
        check(r#"s: "a" s"#, |_| (), "no finite text can be derived from start rule \"s\"");
    }
}
