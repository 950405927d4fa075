//! Small grammars for tests: written down, or random; and what they derive, by enumeration.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::ir::{Expr, Grammar, LexerMode, Nonterminal, Production, Symbol, Terminal};

/// A terminal that plays no special part.
pub fn terminal(name: &str) -> Terminal {
    Terminal {
        name: name.into(),
        expr: Expr::Bytes(name.bytes().collect()).into(),
        priority: 0,
        literal: true,
        ignored: false,
        reject: false,
        fallback: None,
        scope: None,
        position: None,
    }
}

/// A grammar out of its parts; terminals and nonterminals are named by their index.
pub fn grammar_of(terminals: usize, nonterminals: usize, productions: Vec<(u32, Vec<Symbol>)>) -> Grammar {
    let nonterminal = |i: usize| Nonterminal { name: format!("n{i}").into(), position: None };
    let production = |(lhs, rhs)| Production { lhs, rhs, name: format!("n{lhs}").into() };
    Grammar {
        start: 0,
        lexer: LexerMode::Basic,
        terminals: (0..terminals).map(|i| terminal(&format!("t{i}"))).collect(),
        nonterminals: (0..nonterminals).map(nonterminal).collect(),
        productions: productions.into_iter().map(production).collect(),
    }
}

/// A grammar like `s: s "x" | a ; a: "y" |`. Its terminals are numbered as they occur, the first rule is the start.
pub fn grammar(text: &str) -> Grammar {
    let mut grammar = grammar_of(0, 0, Vec::new());
    let rules: Vec<(&str, &str)> = text.split(';').filter_map(|rule| rule.split_once(':')).collect();
    let nonterminal = |name: &str| Nonterminal { name: name.trim().to_owned().into(), position: None };
    grammar.nonterminals = rules.iter().map(|(name, _)| nonterminal(name)).collect();
    for (lhs, (name, alternatives)) in rules.iter().enumerate() {
        for alternative in alternatives.split('|') {
            let mut rhs = Vec::new();
            for word in alternative.split_whitespace() {
                rhs.push(match word.strip_prefix('"') {
                    Some(word) => {
                        let name = word.trim_end_matches('"');
                        let known = grammar.terminals.iter().position(|t| t.name == name);
                        Symbol::T(known.unwrap_or_else(|| {
                            grammar.terminals.push(terminal(name));
                            grammar.terminals.len() - 1
                        }) as u32)
                    }
                    None => Symbol::N(rules.iter().position(|(name, _)| name.trim() == word).expect(word) as u32),
                });
            }
            grammar.productions.push(Production { lhs: lhs as u32, rhs, name: name.trim().to_owned().into() });
        }
    }
    grammar
}

/// Random grammars of every kind; some have an empty language.
pub fn any_grammar(terminals: u32, nonterminals: u32) -> impl Strategy<Value = Grammar> {
    (1..=nonterminals).prop_flat_map(move |count| {
        let symbol = prop_oneof![
            (0..terminals).prop_map(Symbol::T),
            (0..count).prop_map(Symbol::N),
            (0..count).prop_map(Symbol::N)
        ];
        let rhs = prop::collection::vec(symbol, 0..=4);
        prop::collection::vec((0..count, rhs), 1..=(2 * count as usize + 2))
            .prop_map(move |productions| grammar_of(terminals as usize, count as usize, productions))
    })
}

/// Random grammars whose nonterminals only use later ones, so that they derive finitely many strings.
pub fn finite_grammar() -> impl Strategy<Value = Grammar> {
    let symbol = prop_oneof![(0u32..4).prop_map(Symbol::T), (1u32..4).prop_map(Symbol::N)];
    prop::collection::vec((0u32..4, prop::collection::vec(symbol, 0..=3)), 1..=7).prop_map(|mut productions| {
        for (lhs, rhs) in &mut productions {
            rhs.retain(|s| !matches!(s, Symbol::N(n) if n <= lhs));
        }
        grammar_of(4, 4, productions)
    })
}

/// The strings of up to `max_len` terminals that the start derives.
pub fn sentences(grammar: &Grammar, max_len: usize) -> BTreeSet<Vec<u32>> {
    let mut derived = vec![BTreeSet::<Vec<u32>>::new(); grammar.nonterminals.len()];
    loop {
        let mut changed = false;
        for p in &grammar.productions {
            let mut strings = BTreeSet::from([Vec::new()]);
            for &symbol in &p.rhs {
                let own;
                let parts = match symbol {
                    Symbol::N(n) => &derived[n as usize],
                    Symbol::T(t) => {
                        own = BTreeSet::from([vec![t]]);
                        &own
                    }
                };
                let pairs = strings.iter().flat_map(|a| parts.iter().map(move |b| (a, b)));
                let fitting = pairs.filter(|(a, b)| a.len() + b.len() <= max_len);
                strings = fitting.map(|(a, b)| [&a[..], b].concat()).collect();
            }
            let before = derived[p.lhs as usize].len();
            derived[p.lhs as usize].append(&mut strings);
            changed |= derived[p.lhs as usize].len() > before;
        }
        if !changed {
            return derived.swap_remove(grammar.start as usize);
        }
    }
}
