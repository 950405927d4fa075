//! The table against canonical LR(1), and a GLR run over explicit stacks against enumeration.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::grammar::epsilon::remove_hidden_recursion;
use crate::grammar::ir::{Grammar, Symbol};
use crate::grammar::reduce::{ReducedGrammar, validate_and_reduce};
use crate::grammar::testing::{any_grammar, grammar, grammar_of, sentences};

fn reduced(text: &str) -> ReducedGrammar {
    validate_and_reduce(&grammar(text)).unwrap()
}

fn table_of(grammar: &ReducedGrammar) -> LrTable {
    LrTable::build(grammar, &vec![None; grammar.terminal_count], LrLimits::default()).unwrap()
}

type Cells = BTreeMap<(u32, u32), BTreeSet<Action>>;
type Gotos = BTreeMap<(u32, u32), u32>;

fn cells(table: &LrTable) -> Cells {
    let states = 0..table.state_count as u32;
    states.flat_map(|s| table.row(s).map(move |(t, a)| ((s, t), a.iter().copied().collect()))).collect()
}

/// Production (the number of productions stands for the augmented one), position, lookahead.
type Item = (usize, usize, u32);

/// Canonical LR(1), by the definitions.
struct Canonical<'a> {
    grammar: &'a ReducedGrammar,
    first: Vec<BTreeSet<u32>>,
    nullable: BTreeSet<u32>,
}

impl<'a> Canonical<'a> {
    fn new(grammar: &'a ReducedGrammar) -> Self {
        let first = vec![BTreeSet::new(); grammar.nonterminal_names.len()];
        let mut this = Canonical { grammar, first, nullable: BTreeSet::new() };
        loop {
            let before = (this.first.clone(), this.nullable.len());
            for p in &grammar.productions {
                // A lookahead that is no symbol shows whether the whole right-hand side is nullable.
                let mut first = this.first_of(&p.rhs, u32::MAX);
                if first.remove(&u32::MAX) {
                    this.nullable.insert(p.lhs);
                }
                this.first[p.lhs as usize].append(&mut first);
            }
            if before == (this.first.clone(), this.nullable.len()) {
                return this;
            }
        }
    }

    fn first_of(&self, symbols: &[Symbol], lookahead: u32) -> BTreeSet<u32> {
        let mut result = BTreeSet::new();
        for symbol in symbols {
            match symbol {
                Symbol::T(t) => result.insert(*t),
                Symbol::N(n) if self.nullable.contains(n) => {
                    result.extend(&self.first[*n as usize]);
                    continue;
                }
                Symbol::N(n) => {
                    result.extend(&self.first[*n as usize]);
                    return result;
                }
            };
            return result;
        }
        result.insert(lookahead);
        result
    }

    fn rhs(&self, production: usize) -> Vec<Symbol> {
        let augmented = vec![Symbol::N(self.grammar.start)];
        self.grammar.productions.get(production).map_or(augmented, |p| p.rhs.clone())
    }

    fn closure(&self, kernel: BTreeSet<Item>) -> BTreeSet<Item> {
        let mut items = kernel.clone();
        let mut pending: Vec<Item> = kernel.into_iter().collect();
        while let Some((p, dot, lookahead)) = pending.pop() {
            let rhs = self.rhs(p);
            let Some(Symbol::N(n)) = rhs.get(dot) else { continue };
            for (q, _) in self.grammar.productions.iter().enumerate().filter(|(_, q)| q.lhs == *n) {
                for next in self.first_of(&rhs[dot + 1..], lookahead) {
                    if items.insert((q, 0, next)) {
                        pending.push((q, 0, next));
                    }
                }
            }
        }
        items
    }

    /// Cells and gotos of the states merged by core; nothing if there are too many states.
    fn merged(&self) -> Option<(Cells, Gotos)> {
        let augmented = self.grammar.productions.len();
        let end = self.grammar.terminal_count as u32;
        let core = |items: &BTreeSet<Item>| items.iter().map(|&(p, d, _)| (p, d)).collect::<BTreeSet<_>>();
        let start = self.closure(BTreeSet::from([(augmented, 0, end)]));
        let mut seen = BTreeSet::from([start.clone()]);
        let mut pending = VecDeque::from([start.clone()]);
        let mut merged: BTreeMap<_, BTreeSet<Item>> = BTreeMap::new();
        let mut moves: BTreeMap<_, BTreeMap<Symbol, _>> = BTreeMap::new();
        while let Some(items) = pending.pop_front() {
            if seen.len() > 400 {
                return None;
            }
            merged.entry(core(&items)).or_default().extend(&items);
            for symbol in items.iter().filter_map(|&(p, d, _)| self.rhs(p).get(d).copied()).collect::<BTreeSet<_>>() {
                let on_symbol = items.iter().filter(|&&(p, d, _)| self.rhs(p).get(d) == Some(&symbol));
                let target = self.closure(on_symbol.map(|&(p, d, l)| (p, d + 1, l)).collect());
                moves.entry(core(&items)).or_default().insert(symbol, core(&target));
                if seen.insert(target.clone()) {
                    pending.push_back(target);
                }
            }
        }
        let mut order = vec![core(&start)];
        let (mut cells, mut gotos) = (Cells::new(), Gotos::new());
        let mut state = 0;
        while state < order.len() {
            let from = order[state].clone();
            for (&symbol, to) in moves.get(&from).into_iter().flatten() {
                let target = order.iter().position(|c| c == to).unwrap_or_else(|| {
                    order.push(to.clone());
                    order.len() - 1
                }) as u32;
                match symbol {
                    Symbol::T(t) => drop(cells.entry((state as u32, t)).or_default().insert(Action::Shift(target))),
                    Symbol::N(n) => drop(gotos.insert((state as u32, n), target)),
                }
            }
            for &(p, dot, lookahead) in &merged[&from] {
                if dot == self.rhs(p).len() {
                    let action = if p == augmented { Action::Accept } else { Action::Reduce(p as u32) };
                    cells.entry((state as u32, lookahead)).or_default().insert(action);
                }
            }
            state += 1;
        }
        Some((cells, gotos))
    }
}

fn check_against_canonical(grammar: &ReducedGrammar) {
    let Some((expected, gotos)) = Canonical::new(grammar).merged() else { return };
    let table = table_of(grammar);
    assert_eq!(cells(&table), expected);
    let states = 0..table.state_count as u32;
    assert!(states.clone().flat_map(|s| table.gotos(s).map(move |(n, t)| ((s, n), t))).eq(gotos));
    for s in states {
        for (t, actions) in table.row(s) {
            assert!(actions.is_sorted() && !actions.is_empty());
            assert_eq!(table.actions(s, t), actions);
            assert_eq!(table.conflict_cells.contains(&(s, t)), actions.len() > 1);
            for action in actions {
                if let Action::Shift(target) = action {
                    assert_eq!(table.accessing[*target as usize], Some(Symbol::T(t)));
                }
            }
        }
        for (n, target) in table.gotos(s) {
            assert_eq!(table.goto(s, n), Some(target));
            assert_eq!(table.accessing[target as usize], Some(Symbol::N(n)));
        }
    }
    assert_eq!((table.accessing[0], table.conflicts), (None, table.conflict_cells.len()));
}

/// Whether the table accepts a string, over explicit stacks. A stack that reduces to itself (a cycle `A ⇒+ A`) is met again
/// and ends there; panics if stacks grow without bound.
fn accepts(table: &LrTable, tokens: &[u32]) -> bool {
    let mut stacks = BTreeSet::from([vec![0u32]]);
    for &token in tokens.iter().chain([&(table.terminal_count as u32)]) {
        let mut next = BTreeSet::new();
        let mut accepted = false;
        let mut seen: BTreeSet<Vec<u32>> = BTreeSet::new();
        let mut pending: Vec<Vec<u32>> = stacks.into_iter().collect();
        while let Some(stack) = pending.pop() {
            if !seen.insert(stack.clone()) {
                continue;
            }
            assert!(stack.len() < 100 * (tokens.len() + 1), "a stack grows without end");
            for action in table.actions(*stack.last().unwrap(), token) {
                match *action {
                    Action::Accept => accepted = true,
                    Action::Shift(state) => drop(next.insert([&stack[..], &[state]].concat())),
                    Action::Reduce(p) => {
                        let (lhs, len) = table.productions[p as usize];
                        let mut below = stack[..stack.len() - len as usize].to_vec();
                        below.push(table.goto(*below.last().unwrap(), lhs).unwrap());
                        pending.push(below);
                    }
                }
            }
        }
        if token == table.terminal_count as u32 {
            return accepted;
        }
        stacks = next;
    }
    false
}

fn check_language(g: &Grammar, max_len: usize) {
    let table = table_of(&remove_hidden_recursion(validate_and_reduce(g).unwrap()));
    let expected = sentences(g, max_len);
    let mut strings = vec![vec![]];
    while let Some(string) = strings.pop() {
        assert_eq!(accepts(&table, &string), expected.contains(&string), "{string:?}");
        if string.len() < max_len {
            strings.extend((0..g.terminals.len() as u32).map(|t| [&string[..], &[t]].concat()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn table_equals_canonical_lr1_merged_by_core(g in any_grammar(3, 6)) {
        let Ok(reduced) = validate_and_reduce(&g) else { return Ok(()) };
        check_against_canonical(&reduced);
        check_against_canonical(&remove_hidden_recursion(reduced));
    }

    #[test]
    fn glr_over_the_rewritten_grammar_accepts_the_language(g in any_grammar(2, 5)) {
        if validate_and_reduce(&g).is_ok() {
            check_language(&g, 4);
        }
    }

    #[test]
    fn fallback_fills_exactly_the_cells_without_action(
        g in any_grammar(3, 4),
        (one, two) in (prop::option::of(Just(0)), prop::option::of(0u32..2)),
    ) {
        let fallback = [None, one, two];
        let Ok(reduced) = validate_and_reduce(&g) else { return Ok(()) };
        let plain = table_of(&reduced);
        let filled = LrTable::build(&reduced, &fallback, LrLimits::default()).unwrap();
        for (s, t) in (0..plain.state_count as u32).flat_map(|s| (0..=3).map(move |t| (s, t))) {
            let mut donor = Some(t);
            while let Some(d) = donor.filter(|&d| d < 3 && plain.actions(s, d).is_empty()) {
                donor = fallback[d as usize];
            }
            prop_assert_eq!(filled.actions(s, t), donor.map_or(&[][..], |d| plain.actions(s, d)));
        }
        prop_assert_eq!(plain.conflict_cells, filled.conflict_cells);
    }
}

#[test]
fn hidden_recursion_and_cycles_keep_their_language() {
    for text in [
        r#"s: a s "x" | "y" ; a: | "z""#,
        r#"s: a ; a: a | b ; b: a | "x""#,
        r#"s: s s | "x" |"#,
        r#"s: s s s | "x" | o ; o: |"#,
        r#"s: a b s "x" | a s b | "y" ; a: | b b ; b: | a | "z""#,
        r#"s: a a a a a s "x" | "y" ; a: | "z""#,
        r#"s: a a a a a s | "y" ; a: | "z""#,
        r#"s: e ; e: "x" e | e o | ; o: | o "y""#,
        r#"s: s o | "x" ; o: |"#,
        r#"s: l "x" ; l: o l | ; o: l | "y""#,
        r#"s: a s | s a | ; a: s | "x""#,
    ] {
        check_language(&grammar(text), 6);
    }
}

#[test]
fn merged_lookaheads_make_a_conflict_that_lr1_lacks() {
    let table = table_of(&reduced(r#"s: "a" e "c" | "a" f "d" | "b" f "c" | "b" e "d" ; e: "e" ; f: "e""#));
    assert_eq!(table.conflicts, 2);
    let state = table.conflict_cells[0].0;
    assert_eq!(table.actions(state, 1), [Action::Reduce(4), Action::Reduce(5)]);
    assert_eq!(table.actions(state, 2), [Action::Reduce(4), Action::Reduce(5)]);
    assert!(accepts(&table, &[0, 4, 1]) && !accepts(&table, &[0, 4, 4]));
}

#[test]
fn dangling_else_keeps_shift_and_reduce() {
    let table = table_of(&reduced(r#"s: "if" s | "if" s "else" s | "x""#));
    assert_eq!(table.conflicts, 1);
    let (state, terminal) = table.conflict_cells[0];
    assert_eq!(terminal, 1);
    assert!(matches!(table.actions(state, terminal), [Action::Shift(_), Action::Reduce(0)]));
}

#[test]
fn the_empty_sentence_and_recursion_on_the_start_are_accepted() {
    let table = table_of(&reduced(r#"s: s "x" |"#));
    assert_eq!(table.actions(0, 1), [Action::Reduce(1)]);
    let after = table.goto(0, 0).unwrap();
    assert_eq!(table.actions(after, 1), [Action::Accept]);
    assert!(matches!(table.actions(after, 0), [Action::Shift(_)]));
    assert!((0..4).all(|n| accepts(&table, &vec![0; n])));
}

#[test]
fn limits_are_errors() {
    let grammar = reduced(r#"s: "a" s "b" | "c""#);
    let build = |limits| LrTable::build(&grammar, &[None; 3], limits).unwrap_err().to_string();
    let default = LrLimits::default();
    assert_eq!(build(LrLimits { max_states: 3, ..default }), "parse table passed its limit of 3 states");
    assert_eq!(build(LrLimits { max_items: 3, ..default }), "parse table passed its limit of 3 items");
    assert_eq!(build(LrLimits { max_actions: 3, ..default }), "parse table passed its limit of 3 actions");
}

#[test]
fn long_chains_need_no_call_stack() {
    let g = grammar_of(1, 20_001, {
        let chain = (0..20_000).map(|i| (i, vec![Symbol::N(i + 1)]));
        chain.chain([(20_000, vec![Symbol::T(0)])]).collect()
    });
    let table = table_of(&remove_hidden_recursion(validate_and_reduce(&g).unwrap()));
    assert_eq!(table.state_count, 20_003);
    assert!(accepts(&table, &[0]));
}
