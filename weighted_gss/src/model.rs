//! The slow twin: an explicit map from stacks to weights. For tests.

use crate::{Below, Interner, Link, Node, Tops, Weight, Weighted};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A weight with a true join: a set of numbers below 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Bits(u8);

impl Weight for Bits {
    fn join(&mut self, other: &Self) {
        self.0 |= other.0;
    }
}

/// Alternative sets, the smallest of them only, as watchers have them: the empty set absorbs all others.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Alternatives(Vec<u8>);

impl Alternatives {
    fn of(mut sets: Vec<u8>) -> Self {
        sets.sort_unstable();
        sets.dedup();
        let all = sets.clone();
        sets.retain(|set| !all.iter().any(|less| less != set && less & set == *less));
        Alternatives(sets)
    }
}

impl Weight for Alternatives {
    fn join(&mut self, other: &Self) {
        *self = Self::of([&self.0[..], &other.0].concat());
    }
}

/// Stacks, top first, with their weights.
type Model<W> = BTreeMap<Vec<u8>, W>;

fn insert<W: Weight>(model: &mut Model<W>, stack: Vec<u8>, weight: &W) {
    model.entry(stack).and_modify(|known| known.join(weight)).or_insert_with(|| weight.clone());
}

/// What weighted tops stand for.
fn meaning<W: Weight>(stacks: &Weighted<u8, (), W>) -> Model<W> {
    fn walk(node: &Link<u8, ()>, above: &mut Vec<u8>, found: &mut dyn FnMut(Vec<u8>)) {
        match node.below() {
            Below::Union(members) => return members.iter().for_each(|member| walk(member, above, found)),
            Below::Pushed(links) => {
                above.push(node.symbol());
                if links.is_empty() {
                    found(above.clone());
                }
                links.iter().for_each(|link| walk(link, above, found));
            }
        }
        above.pop();
    }
    let mut model = Model::new();
    for (top, weight) in stacks.tops() {
        walk(top, &mut Vec::new(), &mut |stack| insert(&mut model, stack, weight));
    }
    model
}

fn joined<'w, W: Weight + 'w>(weights: impl IntoIterator<Item = &'w W>) -> Option<W> {
    weights.into_iter().cloned().reduce(|mut a, b| {
        a.join(&b);
        a
    })
}

#[derive(Debug, Clone)]
enum Op<W> {
    Add(Vec<u8>, W),
    Push(u8),
    Pop,
    /// Go on with what is below a symbol.
    Branch(u8),
    /// Push on everything, keeping what there was.
    Fork(u8, W),
    Map,
}

fn op<W: Weight + std::fmt::Debug + 'static>(
    weight: impl Strategy<Value = W> + Clone + 'static,
) -> impl Strategy<Value = Op<W>> {
    prop_oneof![
        3 => (prop::collection::vec(1u8..4, 0..5), weight.clone()).prop_map(|(stack, weight)| Op::Add(stack, weight)),
        3 => (1u8..4).prop_map(Op::Push),
        2 => Just(Op::Pop),
        1 => (0u8..4).prop_map(Op::Branch),
        2 => (1u8..4, weight).prop_map(|(symbol, weight)| Op::Fork(symbol, weight)),
        1 => Just(Op::Map),
    ]
}

/// Run `ops` on both; after each, the graph stands for the model. `map` turns joins into joins.
fn run<W: Weight + std::hash::Hash + std::fmt::Debug>(ops: Vec<Op<W>>, map: impl Fn(&W) -> W) {
    // Few are interned, so that interned and other nodes meet.
    let interner = Interner::new(0, 20, 4);
    let mut graph: Weighted<u8, (), W> = Weighted::default();
    let mut model: Model<W> = Model::new();
    for op in ops {
        match op {
            Op::Add(symbols, weight) => {
                graph.add(weight.clone(), Tops::from_iter([interner.push(interner.bottom(), &symbols)]));
                let stack = symbols.iter().rev().copied().chain([0]).collect();
                insert(&mut model, stack, &weight);
                graph.merge();
            }
            Op::Push(symbol) => {
                graph.push(symbol);
                model = model.into_iter().map(|(stack, weight)| ([vec![symbol], stack].concat(), weight)).collect();
            }
            Op::Pop => {
                graph = graph.pop();
                model = tails(&model, None);
            }
            Op::Branch(symbol) => {
                let branches = graph.pop_branches();
                for (symbol, stacks) in &branches {
                    assert_eq!(meaning(stacks), tails(&model, Some(*symbol)));
                }
                let mut symbols: Vec<u8> = branches.iter().map(|(symbol, _)| *symbol).collect();
                symbols.sort_unstable();
                let mut expected: Vec<u8> = model.keys().map(|stack| stack[0]).collect();
                expected.sort_unstable();
                expected.dedup();
                assert_eq!(symbols, expected);
                model = tails(&model, Some(symbol));
                let found = branches.into_iter().find(|(on_top, _)| *on_top == symbol);
                graph = found.map_or_else(Weighted::default, |(_, stacks)| stacks);
            }
            Op::Fork(symbol, weight) => {
                if model.len() > 100 {
                    continue;
                }
                let mut pushed = graph.map_weights(|_| weight.clone());
                pushed.push(symbol);
                pushed.drain().for_each(|(weight, tops)| graph.add(weight, tops));
                graph.merge();
                for stack in model.keys().cloned().collect::<Vec<_>>() {
                    insert(&mut model, [vec![symbol], stack].concat(), &weight);
                }
            }
            Op::Map => {
                graph = graph.map_weights(&map);
                model.values_mut().for_each(|weight| *weight = map(weight));
            }
        }
        assert_eq!(meaning(&graph), model);
        assert_eq!(graph.joined_weight(), joined(model.values()));
        assert_eq!(graph.is_empty(), model.is_empty());
        let weights: Vec<&W> = graph.groups().iter().map(|(weight, _)| weight).collect();
        assert!(weights.iter().enumerate().all(|(i, weight)| !weights[..i].contains(weight)), "{weights:?}");
    }
}

/// The stacks without their top symbols, which must be `symbol` if there is one.
fn tails<W: Weight>(model: &Model<W>, symbol: Option<u8>) -> Model<W> {
    let mut tails = Model::new();
    for (stack, weight) in model.iter().filter(|(stack, _)| symbol.is_none_or(|symbol| symbol == stack[0])) {
        if let [_, tail @ ..] = &stack[..]
            && !tail.is_empty()
        {
            insert(&mut tails, tail.to_vec(), weight);
        }
    }
    tails
}

fn laws<W: Weight + std::fmt::Debug>(a: &W, b: &W, c: &W) {
    let join = |a: &W, b: &W| joined([a, b]).unwrap();
    assert_eq!(join(a, a), *a);
    assert_eq!(join(a, b), join(b, a));
    assert_eq!(join(&join(a, b), c), join(a, &join(b, c)));
}

fn bits() -> impl Strategy<Value = Bits> + Clone {
    any::<u8>().prop_map(|set| Bits(set & 7))
}

fn alternatives() -> impl Strategy<Value = Alternatives> + Clone {
    prop::collection::vec(0u8..8, 1..4).prop_map(Alternatives::of)
}

proptest! {
    #[test]
    fn weights_keep_the_laws(a in bits(), b in bits(), c in bits(), d in alternatives(), e in alternatives(), f in alternatives()) {
        laws(&(), &(), &());
        laws(&a, &b, &c);
        laws(&d, &e, &f);
    }

    #[test]
    fn stands_for_the_map(ops in prop::collection::vec(op(bits()), 1..30)) {
        run(ops, |weight| Bits(weight.0 << 1 & 7));
    }

    #[test]
    fn stands_for_the_map_of_alternatives(ops in prop::collection::vec(op(alternatives()), 1..30)) {
        run(ops, |weight| Alternatives::of(weight.0.iter().map(|set| set & 5).collect()));
    }

    #[test]
    fn stands_for_the_set_without_weights(ops in prop::collection::vec(op(Just(())), 1..30)) {
        run(ops, |()| ());
    }
}

/// Many weights are united through a table.
#[test]
fn unites_many_groups() {
    let interner = Interner::new(0, 100, 9);
    let mut graph: Weighted<u8, (), Bits> = Weighted::default();
    let mut model = Model::new();
    for i in 0..200u8 {
        let (symbols, weight) = ([i % 7, i % 3], Bits(i % 31));
        graph.add(weight, Tops::from_iter([interner.push(interner.bottom(), &symbols)]));
        insert(&mut model, vec![symbols[1], symbols[0], 0], &weight);
    }
    graph.merge();
    assert_eq!(graph.groups().len(), 31);
    assert_eq!(meaning(&graph), model);
}

/// A weight that says nothing takes no room, nor does the mark of an interned node.
#[test]
fn no_weight_costs_nothing() {
    assert_eq!(size_of::<((), Tops<u32, ()>)>(), size_of::<Tops<u32, ()>>());
    assert_eq!(size_of::<Tops<u32, ()>>(), 24);
    assert_eq!(size_of::<Node<u32, u64>>(), 48);
}
