use std::collections::{BTreeSet, HashMap};

use proptest::prelude::*;

use super::*;
use crate::bits;
use crate::grammar::ir::{Expr, GraphState};

fn terminal(name: &str, expr: Expr, priority: i32, literal: bool) -> Terminal {
    Terminal {
        name: name.into(),
        expr: expr.into(),
        priority,
        literal,
        ignored: false,
        reject: false,
        fallback: None,
        scope: None,
        position: None,
    }
}

fn lit(text: &str) -> Expr {
    Expr::Bytes(text.as_bytes().to_vec())
}

fn class(lo: char, hi: char) -> Expr {
    Expr::Class(vec![(lo as u32, hi as u32)])
}

fn repeat(expr: Expr, min: u32, max: Option<u32>) -> Expr {
    Expr::Repeat(Box::new(expr), min, max)
}

fn not(expr: Expr) -> Expr {
    Expr::Not(Box::new(expr))
}

/// The lexer of patterns of one rank, all of them members.
pub(super) fn build(exprs: &[Expr]) -> Result<LexerDfa, LexerError> {
    build_within(exprs, &LexerLimits::default())
}

fn build_within(exprs: &[Expr], limits: &LexerLimits) -> Result<LexerDfa, LexerError> {
    let terminals: Vec<Terminal> =
        exprs.iter().enumerate().map(|(i, e)| terminal(&format!("T{i}"), e.clone(), 0, false)).collect();
    let members: Vec<TerminalId> = (0..exprs.len() as u32).collect();
    LexerDfa::build(&terminals, &members, false, limits)
}

pub(super) fn accepts(dfa: &LexerDfa, text: &[u8]) -> Vec<TerminalId> {
    dfa.run(0, text).map_or_else(Vec::new, |q| dfa.candidates(q).to_vec())
}

/// The definition of [`Expr`], spelt out: where the matches that begin at `from` end.
struct Naive<'a> {
    text: &'a [u8],
    memo: HashMap<(*const Expr, usize), BTreeSet<usize>>,
}

impl<'a> Naive<'a> {
    fn matches(expr: &Expr, text: &'a [u8]) -> bool {
        Naive { text, memo: HashMap::new() }.ends(expr, 0).contains(&text.len())
    }

    fn ends(&mut self, expr: &Expr, from: usize) -> BTreeSet<usize> {
        let key = (std::ptr::from_ref(expr), from);
        if let Some(ends) = self.memo.get(&key) {
            return ends.clone();
        }
        let ends = self.ends_anew(expr, from);
        self.memo.insert(key, ends.clone());
        ends
    }

    fn after(&mut self, expr: &Expr, from: &BTreeSet<usize>) -> BTreeSet<usize> {
        from.iter().flat_map(|&i| self.ends(expr, i)).collect()
    }

    fn ends_anew(&mut self, expr: &Expr, from: usize) -> BTreeSet<usize> {
        let rest = &self.text[from..];
        match expr {
            Expr::Bytes(bytes) => rest.starts_with(bytes).then_some(from + bytes.len()).into_iter().collect(),
            Expr::Fold(bytes) => {
                let hit = rest.get(..bytes.len()).is_some_and(|text| text.eq_ignore_ascii_case(bytes));
                hit.then_some(from + bytes.len()).into_iter().collect()
            }
            Expr::ByteClass(ranges) => {
                let hit = rest.first().is_some_and(|b| ranges.iter().any(|(lo, hi)| lo <= b && b <= hi));
                hit.then_some(from + 1).into_iter().collect()
            }
            Expr::Class(ranges) => (1..=rest.len().min(4))
                .filter(|&len| {
                    let Ok(text) = std::str::from_utf8(&rest[..len]) else { return false };
                    let mut chars = text.chars().map(u32::from);
                    let (Some(c), None) = (chars.next(), chars.next()) else { return false };
                    ranges.iter().any(|&(lo, hi)| lo <= c && c <= hi)
                })
                .map(|len| from + len)
                .collect(),
            Expr::JsonClass(ranges) => (1..=rest.len().min(12))
                .filter(|&len| {
                    let quoted = [b"\"", &rest[..len], b"\""].concat();
                    let Ok(text) = serde_json::from_slice::<String>(&quoted) else { return false };
                    let mut chars = text.chars().map(u32::from);
                    let (Some(c), None) = (chars.next(), chars.next()) else { return false };
                    ranges.iter().any(|&(lo, hi)| lo <= c && c <= hi)
                })
                .map(|len| from + len)
                .collect(),
            Expr::Cat(parts) => parts.iter().fold(BTreeSet::from([from]), |ends, part| self.after(part, &ends)),
            Expr::Alt(parts) => parts.iter().flat_map(|part| self.ends(part, from)).collect(),
            Expr::Repeat(body, min, max) => {
                let mut ends = BTreeSet::from([from]);
                for _ in 0..*min {
                    ends = self.after(body, &ends);
                }
                let mut all = ends.clone();
                // Beyond the text's length more copies can only add empty matches.
                for _ in *min..max.unwrap_or(min + self.text.len() as u32) {
                    ends = self.after(body, &ends);
                    all.extend(&ends);
                }
                all
            }
            Expr::And(parts) => {
                let mut ends: BTreeSet<usize> = (from..=self.text.len()).collect();
                for part in parts {
                    ends = &ends & &self.ends(part, from);
                }
                ends
            }
            Expr::Not(part) => {
                let matched = self.ends(part, from);
                (from..=self.text.len()).filter(|end| !matched.contains(end)).collect()
            }
            Expr::Tokens { .. } => BTreeSet::new(),
            Expr::Graph(states) => {
                let mut reached: Vec<(u32, usize)> = if states.is_empty() { Vec::new() } else { vec![(0, from)] };
                let mut done = 0;
                while let Some(&(q, at)) = reached.get(done) {
                    done += 1;
                    for (label, to) in &states[q as usize].edges {
                        let ends = self.ends(label, at);
                        reached.extend(ends.into_iter().map(|end| (*to, end)));
                    }
                    reached = reached
                        .iter()
                        .enumerate()
                        .filter(|(i, r)| !reached[..*i].contains(r))
                        .map(|(_, &r)| r)
                        .collect();
                }
                reached.iter().filter(|(q, _)| states[*q as usize].accepting).map(|&(_, at)| at).collect()
            }
        }
    }
}

/// Check every promise of the module's list that does not need the expressions.
fn check_invariants(dfa: &LexerDfa) {
    let (n, k) = (dfa.state_count(), dfa.class_count);
    assert_eq!(dfa.next.len(), n * k);
    assert!(dfa.next.iter().all(|&t| t == DEAD || (t as usize) < n));
    assert!(!dfa.next.contains(&0), "a transition leads to the start");

    // Every state reaches an accepting one.
    let mut live: Vec<bool> = (0..n as u32).map(|q| dfa.is_accepting(q)).collect();
    for _ in 0..n {
        for q in 0..n {
            live[q] |= dfa.row(q as u32).iter().any(|&t| t != DEAD && live[t as usize]);
        }
    }
    assert!(live.iter().all(|&live| live) || (n == 1 && dfa.row(0).iter().all(|&t| t == DEAD)));

    // Breadth first in class order, hence reachable as well.
    let mut seen = 1;
    for &target in dfa.next.iter().filter(|&&t| t != DEAD) {
        assert!(target <= seen, "state {target} comes too early");
        seen = seen.max(target + 1);
    }
    assert_eq!(seen as usize, n);

    // Table filling: any two states but the start differ.
    let mut differ = vec![vec![false; n]; n];
    let differs = |differ: &Vec<Vec<bool>>, p: u32, q: u32| match (p, q) {
        (DEAD, DEAD) => false,
        (DEAD, _) | (_, DEAD) => true, // the other state reaches an accepting one
        (p, q) => differ[p as usize][q as usize],
    };
    for p in 0..n {
        for q in 0..n {
            differ[p][q] = dfa.cand[p] != dfa.cand[q];
        }
    }
    loop {
        let before = differ.clone();
        for p in 0..n {
            for q in 0..n {
                let (p_row, q_row) = (dfa.row(p as u32), dfa.row(q as u32));
                differ[p][q] |= (0..k).any(|c| differs(&before, p_row[c], q_row[c]));
            }
        }
        if differ == before {
            break;
        }
    }
    for p in 1..n {
        for q in 1..p {
            assert!(differ[p][q], "states {p} and {q} are equivalent");
        }
    }

    // Classes: distinct columns, numbered by first byte, all in use.
    let column = |c: usize| (0..n).map(|q| dfa.next[q * k + c]).collect::<Vec<_>>();
    assert_eq!((0..k).map(column).collect::<BTreeSet<_>>().len(), k, "two byte classes have one column");
    let mut classes = 0;
    for &c in &dfa.byte_class {
        assert!(usize::from(c) <= classes);
        classes = classes.max(usize::from(c) + 1);
    }
    assert_eq!(classes, k);

    // Candidate sets: sorted, distinct, by first use.
    assert!(dfa.cand_sets[0].is_empty());
    assert!(dfa.cand_sets.iter().all(|set| set.is_sorted_by(|a, b| a < b)));
    assert_eq!(dfa.cand_sets.iter().collect::<BTreeSet<_>>().len(), dfa.cand_sets.len());
    let mut used = 0;
    for &set in &dfa.cand {
        assert!(set <= used + 1);
        used = used.max(set);
    }
    assert_eq!(used as usize + 1, dfa.cand_sets.len());
}

fn any_expr() -> impl Strategy<Value = Expr> {
    let point = prop::sample::select(vec![
        0x61, 0x62, 0x63, 0x7F, 0x80, 0xE9, 0x7FF, 0x800, 0xFFF, 0x1000, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xFFFF,
        0x10000, 0x3FFFF, 0x10FFFF,
    ]);
    let range = (point.clone(), point).prop_map(|(a, b): (u32, u32)| (a.min(b), a.max(b)));
    let byte = prop::sample::select(vec![b'a', b'b', b'c', 0x80, 0xA9, 0xC3, 0xED, 0xFF]);
    let byte_range = (byte.clone(), byte.clone()).prop_map(|(a, b): (u8, u8)| (a.min(b), a.max(b)));
    let leaf = prop_oneof![
        4 => prop::sample::select(vec!["", "a", "b", "ab", "ba", "abc", "é"]).prop_map(lit),
        1 => prop::collection::vec(byte.clone(), 0..3).prop_map(Expr::Bytes),
        1 => prop::collection::vec(byte, 0..3).prop_map(Expr::Fold),
        3 => prop::collection::vec(range.clone(), 0..4).prop_map(Expr::Class),
        1 => prop::collection::vec(range, 0..4).prop_map(Expr::JsonClass),
        2 => prop::collection::vec(byte_range, 0..3).prop_map(Expr::ByteClass),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let several = prop::collection::vec(inner.clone(), 0..4);
        let label = (prop::sample::select(vec!["a", "b", "c"]), inner.clone());
        let label = label.prop_map(|(first, rest)| Expr::Cat(vec![lit(first), rest]));
        let state = (any::<bool>(), prop::collection::vec((label, 0..3u32), 0..3));
        let state = state.prop_map(|(accepting, edges)| GraphState { accepting, edges });
        prop_oneof![
            1 => prop::collection::vec(state, 3).prop_map(Expr::Graph),
            4 => several.clone().prop_map(Expr::Cat),
            3 => several.clone().prop_map(Expr::Alt),
            1 => several.prop_map(Expr::And),
            1 => inner.clone().prop_map(not),
            2 => (inner.clone(), 0..4u32, 0..4u32).prop_map(|(e, min, more)| repeat(e, min, Some(min + more))),
            2 => (inner, 0..3u32).prop_map(|(e, min)| repeat(e, min, None)),
        ]
    })
}

/// Repeats nested in repeats over two letters, where a text fits in many ways.
fn any_ambiguous_expr() -> impl Strategy<Value = Expr> {
    let leaf = prop::sample::select(vec!["a", "b", "ab", "aa", "ba"]).prop_map(lit);
    leaf.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            2 => prop::collection::vec(inner.clone(), 1..4).prop_map(Expr::Cat),
            2 => prop::collection::vec(inner.clone(), 1..4).prop_map(Expr::Alt),
            4 => (inner.clone(), 0..4u32, 0..5u32).prop_map(|(e, min, more)| repeat(e, min, Some(min + more))),
            2 => (inner, 0..5u32).prop_map(|(e, min)| repeat(e, min, None)),
        ]
    })
}

/// Once "a", "aa", "ab" and "ba" are there, nothing leads to the pattern's state after "b" any more.
#[test]
fn what_words_replace_keeps_no_classes_apart() {
    let words = ["a", "aa", "ba", "ab"].map(lit);
    let dfa = build(&[Expr::Alt([&words[..], &[repeat(lit("b"), 1, Some(2))]].concat())]).unwrap();
    check_invariants(&dfa);
    assert_eq!(dfa.class_count, 2);
}

/// The same with repeats of many copies.
fn any_counted_expr() -> impl Strategy<Value = Expr> {
    let leaf = prop::sample::select(vec!["a", "b", "ab", "aa", "ba", "c"]).prop_map(lit);
    leaf.prop_recursive(4, 10, 3, |inner| {
        prop_oneof![
            2 => prop::collection::vec(inner.clone(), 1..4).prop_map(Expr::Cat),
            2 => prop::collection::vec(inner.clone(), 1..4).prop_map(Expr::Alt),
            4 => (inner.clone(), 0..25u32, 0..30u32).prop_map(|(e, min, more)| repeat(e, min, Some(min + more))),
            1 => (inner.clone(), 0..30u32).prop_map(|(e, min)| repeat(e, min, None)),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| Expr::And(vec![a, b])),
            1 => (inner.clone(), inner).prop_map(|(a, b)| Expr::And(vec![a, not(b)])),
        ]
    })
}

/// What an automaton that counts accepts; see the module `counters`.
fn accepts_counting(dfa: &LexerDfa, text: &[u8]) -> Vec<TerminalId> {
    let far =
        |q: u32| dfa.moves.of(q).iter().filter_map(|&(l, to)| Some((chain_of(l), counters::far_layer(l)?, l, to)));
    let (mut q, mut values) = (0, HashMap::<u32, (u32, i64)>::new());
    for &byte in text {
        let Some(mut next) = dfa.step(q, byte) else { return Vec::new() };
        let mut left = HashMap::new();
        while let Some((chain, layer, letter, moved)) = far(next).find(|(chain, ..)| !left.contains_key(chain)) {
            let value = match values.get(&chain) {
                Some((before, value)) => {
                    value - i64::from((layer + counters::COPIES_FAR - before) % counters::COPIES_FAR)
                }
                None => i64::from(dfa.chains[chain as usize].length),
            };
            match value {
                0 => next = moved,
                -1 => {
                    next =
                        dfa.moves.of(moved).iter().find(|m| m.0 == counters::top_of(letter)).expect("a layer below").1
                }
                _ => _ = left.insert(chain, (layer, value)),
            }
        }
        (q, values) = (next, left);
    }
    dfa.candidates(q).to_vec()
}

fn count(exprs: &[Expr]) -> Result<LexerDfa, LexerError> {
    let terminals: Vec<Terminal> =
        exprs.iter().enumerate().map(|(i, e)| terminal(&format!("T{i}"), e.clone(), 0, false)).collect();
    let members: Vec<TerminalId> = (0..exprs.len() as u32).collect();
    let known = KnownPatterns::default();
    let terminals = Terminals::new(&terminals, &known, &LexerLimits::default());
    LexerDfa::counted(&terminals, &members, false, &LexerLimits::default(), &Counting::default())
}

#[test]
fn many_copies_are_counted() {
    let quoted = |expr: Expr| Expr::Cat(vec![lit("\""), expr, lit("\"")]);
    let (word, blank) = (class('a', 'z'), lit(" "));
    let words = Expr::Cat(vec![repeat(word.clone(), 1, None), repeat(blank.clone(), 1, None)]);
    let words = Expr::Cat(vec![repeat(words, 0, Some(4_900)), repeat(word.clone(), 1, None)]);
    let any = repeat(Expr::Alt(vec![word.clone(), blank]), 0, Some(50_000));
    for (expr, chains) in [
        (quoted(repeat(word.clone(), 0, Some(100_000))), 1),
        (quoted(repeat(word.clone(), 500, Some(100_000))), 2),
        (quoted(repeat(Expr::JsonClass(vec![(0, 0x10FFFF)]), 129, None)), 1),
        (quoted(Expr::And(vec![words, any])), 2),
        (repeat(Expr::Cat(vec![repeat(lit("ab"), 20, Some(3_000)), lit("c")]), 30, Some(7_000)), 4),
        (
            repeat(Expr::Alt(vec![Expr::Cat(vec![lit("a"), repeat(lit("b"), 0, Some(1))]), lit("c")]), 12, Some(3_000)),
            2,
        ),
    ] {
        let dfa = count(std::slice::from_ref(&expr)).unwrap();
        assert_eq!(dfa.chains.len(), chains, "{expr:?}");
        assert!(dfa.state_count() < 2_000, "{expr:?}: {} states", dfa.state_count());
    }
}

#[test]
fn what_has_two_counts_is_copied() {
    for expr in [
        repeat(Expr::Alt(vec![lit("a"), lit("aa")]), 2, Some(50)),
        Expr::Cat(vec![repeat(Expr::Alt(vec![lit("a"), lit("b")]), 0, None), repeat(lit("a"), 20, Some(30))]),
        repeat(Expr::Cat(vec![repeat(lit("a"), 20, Some(30)), repeat(lit("b"), 0, Some(1))]), 1, None),
    ] {
        let dfa = count(&[lit("c"), expr.clone()]).unwrap();
        assert!(dfa.chains.is_empty(), "{expr:?}");
        assert_eq!(dfa, build(&[lit("c"), expr]).unwrap());
    }
}

fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&[u8]> = vec![
        b"a",
        b"a",
        b"b",
        b"b",
        b"c",
        b"\x7F",
        "\u{80}".as_bytes(),
        "é".as_bytes(),
        "\u{7FF}".as_bytes(),
        "\u{800}".as_bytes(),
        "\u{D7FF}".as_bytes(),
        "\u{E000}".as_bytes(),
        "\u{FFFF}".as_bytes(),
        "\u{10000}".as_bytes(),
        "\u{10FFFF}".as_bytes(),
        b"\x80",
        b"\xA9",
        b"\xC3",
        b"\xED\xA0\x80",
        b"\xF4\x90\x80\x80",
        b"\xFF",
        b"\\u0061",
        b"\\uD83d\\",
        b"uDE00",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..7).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn counting_agrees_with_copying(
        exprs in prop::collection::vec(any_counted_expr(), 1..3),
        texts in prop::collection::vec(prop::collection::vec((prop::sample::select(b"aabbc".to_vec()), 1..20usize), 1..12), 30),
    ) {
        let small = LexerLimits { max_nfa_states: 20_000, max_dfa_states: 5_000, max_subset_elements: 100_000 };
        let Ok(copied) = build_within(&exprs, &small) else { return Ok(()) };
        let counted = count(&exprs).unwrap();
        for text in texts {
            let text: Vec<u8> = text.into_iter().flat_map(|(byte, times)| std::iter::repeat_n(byte, times)).collect();
            for end in 0..=text.len() {
                let text = &text[..end];
                prop_assert_eq!(accepts_counting(&counted, text), accepts(&copied, text), "{:?}", text);
            }
        }
    }

    #[test]
    fn agrees_with_the_definition(
        exprs in prop::collection::vec((any_expr(), -1..2i32, any::<bool>()), 1..4),
        texts in prop::collection::vec(any_text(), 12),
        resolve in any::<bool>(),
    ) {
        let terminals: Vec<Terminal> = exprs
            .iter()
            .enumerate()
            .map(|(i, (expr, priority, literal))| terminal(&format!("T{i}"), expr.clone(), *priority, *literal))
            .collect();
        let mut members = Vec::new();
        for id in 0..terminals.len() as u32 {
            let expr = &terminals[id as usize].expr;
            match LexerDfa::build(&terminals, &[id], resolve, &LexerLimits::default()) {
                Ok(_) => {
                    prop_assert!(!Naive::matches(expr, b""));
                    members.push(id);
                }
                Err(LexerError::Nullable { .. }) => prop_assert!(Naive::matches(expr, b"")),
                Err(LexerError::EmptyLanguage { .. }) => {
                    prop_assert!(texts.iter().all(|text| !Naive::matches(expr, text)));
                }
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
        let dfa = LexerDfa::build(&terminals, &members, resolve, &LexerLimits::default()).unwrap();
        if dfa.state_count() < 60 {
            check_invariants(&dfa);
        }
        for text in &texts {
            let matching = members.iter().copied().filter(|&t| Naive::matches(&terminals[t as usize].expr, text));
            let mut expected: Vec<TerminalId> = matching.collect();
            if resolve {
                let top = expected.iter().map(|&t| terminals[t as usize].rank()).max();
                expected.retain(|&t| Some(terminals[t as usize].rank()) == top);
            }
            prop_assert_eq!(accepts(&dfa, text), expected, "on {:?}", text);
        }
        members.reverse();
        prop_assert_eq!(LexerDfa::build(&terminals, &members, resolve, &LexerLimits::default()).unwrap(), dfa);
    }

    #[test]
    fn rows_that_share_a_lexer_are_cut_alike(
        exprs in prop::collection::vec((any_ambiguous_expr(), prop::sample::select(vec![0, 0, 0, 1])), 2..6),
        rows in prop::collection::vec(1..32u64, 2..5),
    ) {
        let name = |i: usize| format!("T{i}");
        let terminals = exprs.iter().enumerate().map(|(i, (e, priority))| terminal(&name(i), e.clone(), *priority, false));
        let terminals: Vec<Terminal> = terminals.filter(|t| !Naive::matches(&t.expr, b"")).collect();
        let rows: Vec<Vec<u64>> = rows.iter().map(|row| vec![row & ((1 << terminals.len()) - 1)]).collect();
        let (colours, unions) = sharing::colour(&Terminals::new(&terminals, &KnownPatterns::default(), &LexerLimits::default()), &rows, &Counting::none());
        let build = |row: &[u64]| {
            LexerDfa::build(&terminals, &bits::iter(row).collect::<Vec<_>>(), true, &LexerLimits::default()).unwrap()
        };
        for (row, colour) in rows.iter().zip(colours) {
            let (own, shared) = (build(row), build(&unions[colour as usize]));
            // Whether a word of the row has ended, with the states after a text.
            let mut pairs = vec![(false, Some(0), Some(0))];
            let mut done = 0;
            while let Some(&(ended, p, q)) = pairs.get(done) {
                done += 1;
                let candidates = |dfa: &LexerDfa, q: Option<u32>| q.map_or(vec![], |q| dfa.candidates(q).to_vec());
                let (mine, theirs) = (candidates(&own, p), candidates(&shared, q));
                let foreign = theirs.iter().any(|&t| !bits::has(row, t));
                prop_assert!(!ended || !foreign);
                prop_assert!(mine.iter().all(|t| theirs.contains(t)));
                prop_assert!(theirs.iter().all(|&t| !bits::has(row, t) || mine.contains(&t)));
                let ended = ended || !mine.is_empty();
                for byte in *b"ab" {
                    let next = |dfa: &LexerDfa, q: Option<u32>| q.and_then(|q| dfa.step(q, byte));
                    let pair = (ended, next(&own, p), next(&shared, q));
                    prop_assert!(!ended || pair.1.is_some() == pair.2.is_some());
                    if !pairs.contains(&pair) {
                        pairs.push(pair);
                    }
                }
            }
        }
    }

    #[test]
    fn ambiguous_repeats_agree_with_the_definition(expr in any_ambiguous_expr()) {
        let dfa = match build(std::slice::from_ref(&expr)) {
            Ok(dfa) => dfa,
            Err(LexerError::Nullable { .. }) => build(&[Expr::Cat(vec![lit("a"), expr.clone()])]).unwrap(),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        if dfa.state_count() < 60 {
            check_invariants(&dfa);
        }
        let nullable = Naive::matches(&expr, b"");
        for len in 0..=9 {
            for bits in 0..1u32 << len {
                let text: Vec<u8> = (0..len).map(|i| if bits >> i & 1 == 0 { b'a' } else { b'b' }).collect();
                let rest = if nullable { text.strip_prefix(b"a") } else { Some(&*text) };
                let expected = rest.is_some_and(|rest| Naive::matches(&expr, rest));
                prop_assert_eq!(!accepts(&dfa, &text).is_empty(), expected, "on {:?}", text);
            }
        }
    }

    #[test]
    fn a_class_is_its_code_points(
        ranges in prop::collection::vec((0..0x11_0100u32, 0..0x3000u32), 1..6),
        points in prop::collection::vec(any::<char>(), 40),
    ) {
        let ranges: Vec<(u32, u32)> = ranges.into_iter().map(|(lo, len)| (lo, lo.saturating_add(len))).collect();
        let ends = ranges.iter().flat_map(|&(lo, hi)| [lo.wrapping_sub(1), lo, hi, hi + 1]).filter_map(char::from_u32);
        let Ok(dfa) = build(&[Expr::Class(ranges.clone())]) else {
            prop_assert!(ranges.iter().all(|&(lo, hi)| lo > 0x10FFFF || (0xD800 <= lo && hi < 0xE000)));
            return Ok(());
        };
        for c in points.into_iter().chain(ends) {
            let expected = ranges.iter().any(|&(lo, hi)| (lo..=hi).contains(&u32::from(c)));
            prop_assert_eq!(!accepts(&dfa, c.to_string().as_bytes()).is_empty(), expected, "on {:?}", c);
        }
    }
}

#[test]
fn keywords_outrank_identifiers() {
    let word = repeat(class('a', 'z'), 1, None);
    let terminals = [
        terminal("IF", lit("if"), 0, true),
        terminal("NAME", word.clone(), 0, false),
        terminal("OTHER_NAME", word.clone(), 0, false),
        terminal("LOUD", lit("loud"), 1, false),
        terminal("QUIET", word, -1, true),
    ];
    let members = [0, 1, 2, 3, 4];
    let resolved = LexerDfa::build(&terminals, &members, true, &LexerLimits::default()).unwrap();
    check_invariants(&resolved);
    assert_eq!(accepts(&resolved, b"if"), [0]);
    assert_eq!(accepts(&resolved, b"iff"), [1, 2]);
    assert_eq!(accepts(&resolved, b"loud"), [3]);
    let all = LexerDfa::build(&terminals, &members, false, &LexerLimits::default()).unwrap();
    check_invariants(&all);
    assert_eq!(accepts(&all, b"if"), [0, 1, 2, 4]);
    assert_eq!(accepts(&all, b"loud"), [1, 2, 3, 4]);
    let some = LexerDfa::build(&terminals, &[2, 0, 2], true, &LexerLimits::default()).unwrap();
    assert_eq!(accepts(&some, b"if"), [0]);
    assert_eq!(accepts(&some, b"loud"), [2]);
}

#[test]
fn keys_and_punctuation_share_a_lexer_and_strings_another() {
    let string = Expr::Cat(vec![lit("\""), repeat(class('0', 'z'), 0, None), lit("\"")]);
    let digits = repeat(class('0', '9'), 1, None);
    let fraction = Expr::Cat(vec![digits.clone(), repeat(Expr::Cat(vec![lit("."), digits.clone()]), 0, Some(1))]);
    let mut exprs = vec![string.clone(), digits, fraction, lit("true"), lit(","), lit("}")];
    exprs.extend((0..1000).map(|i| lit(&format!("\"key{i}\""))));
    let known = KnownPatterns::default();
    let of = |literal: bool, rows: &[&[u32]]| {
        let named = exprs.iter().enumerate().map(|(i, e)| terminal(&format!("T{i}"), e.clone(), 0, literal && i > 0));
        let rows = rows.iter().map(|row| {
            let mut set = vec![0; bits::words(exprs.len())];
            row.iter().for_each(|&t| bits::insert(&mut set, t));
            set
        });
        let rows: Vec<Vec<u64>> = rows.collect();
        let terminals: Vec<Terminal> = named.collect();
        // What is remembered changes nothing.
        let [first, again] = [(); 2].map(|()| {
            sharing::colour(&Terminals::new(&terminals, &known, &LexerLimits::default()), &rows, &Counting::none()).0
        });
        assert_eq!(first, again);
        again
    };
    // Strings are wide. A whole number goes on as one with a fraction; keys do not go on as strings.
    assert_eq!(of(false, &[&[5, 6, 1005], &[4, 5], &[0], &[1], &[2], &[3], &[0, 7]]), [0, 0, 1, 0, 2, 0, 1]);
    // A key that outranks strings must not be met where strings are asked for.
    assert_eq!(of(true, &[&[5, 6, 1005], &[4, 5], &[0], &[1], &[2], &[3], &[0, 7]]), [0, 0, 1, 0, 2, 0, 3]);
}

#[test]
fn what_is_remembered_serves_other_terminals() {
    let digits = || repeat(class('0', '9'), 1, None);
    let (spaces, word) = (|| repeat(class(' ', ' '), 1, Some(9)), || repeat(class('a', 'z'), 2, Some(4)));
    let known = KnownPatterns::default();
    let build = |exprs: Vec<(Expr, i32)>, resolve_ranks: bool| {
        let named = exprs.into_iter().enumerate().map(|(i, (e, rank))| terminal(&format!("T{i}"), e, rank, false));
        let terminals: Vec<Terminal> = named.collect();
        let members: Vec<TerminalId> = (0..terminals.len() as u32).collect();
        let (limits, counting) = (LexerLimits::default(), Counting::none());
        let made = |known: &KnownPatterns| {
            LexerDfa::counted(&Terminals::new(&terminals, known, &limits), &members, resolve_ranks, &limits, &counting)
                .unwrap()
        };
        let dfa = made(&known);
        check_invariants(&dfa);
        assert_eq!(dfa, made(&KnownPatterns::default()));
        dfa
    };
    let first = build(vec![(digits(), 0), (spaces(), 0)], true);
    assert_eq!((first.candidates(first.run(0, b"7").unwrap()), first.run(0, b" 7")), (&[0][..], None));
    // The same patterns as other terminals, beside others, and of another rank.
    let second = build(vec![(word(), 0), (spaces(), 0), (digits(), 0)], true);
    assert_eq!(second.candidates(second.run(0, b"  ").unwrap()), [1]);
    assert_eq!(second.candidates(second.run(0, b"7").unwrap()), [2]);
    let among_equals = build(vec![(digits(), 0), (class('0', '9'), 0)], true);
    assert_eq!(among_equals.candidates(among_equals.run(0, b"7").unwrap()), [0, 1]);
    let outranked = build(vec![(digits(), 0), (class('0', '9'), 1)], true);
    assert_eq!(outranked.candidates(outranked.run(0, b"7").unwrap()), [1]);
    let both = build(vec![(digits(), 0), (class('0', '9'), 1)], false);
    assert_eq!(both.candidates(both.run(0, b"7").unwrap()), [0, 1]);
}

#[test]
fn components_are_limited_together() {
    let limits = LexerLimits { max_dfa_states: 100, ..LexerLimits::default() };
    let exprs = ['a', 'b'].map(|c| repeat(class(c, c), 60, Some(60)));
    assert!(build_within(&exprs[..1], &limits).is_ok());
    assert_eq!(build_within(&exprs, &limits), Err(LexerError::DfaStates { terminal: None, limit: 100 }));
}

#[test]
fn the_start_is_isolated() {
    // In a* without isolation the start would be reached again.
    let dfa = build(&[repeat(lit("a"), 1, None), repeat(lit("ab"), 1, None)]).unwrap();
    check_invariants(&dfa);
    assert_eq!(accepts(&dfa, b"aaa"), [0]);
    assert_eq!(accepts(&dfa, b"a"), [0]);
    assert_eq!(accepts(&dfa, b"abab"), [1]);

    // [ab]*c: state 0 and the state inside the loop are equivalent, and stay two.
    let dfa = build(&[Expr::Cat(vec![repeat(class('a', 'b'), 0, None), lit("c")])]).unwrap();
    assert_eq!(dfa.state_count(), 3);
    assert_eq!(dfa.class_count, 3);
    check_invariants(&dfa);
}

#[test]
fn dead_parts_are_trimmed() {
    let dead = Expr::Cat(vec![lit("x"), Expr::Class(vec![(0xD800, 0xDFFF)])]);
    let none = Expr::And(vec![lit("y"), lit("z")]);
    let dfa = build(&[Expr::Alt(vec![lit("a"), dead, none, Expr::Cat(vec![lit("ab"), Expr::Alt(vec![])])])]).unwrap();
    check_invariants(&dfa);
    assert_eq!((dfa.state_count(), dfa.class_count), (2, 2));
    // Everything that begins with "b" is excluded, so no "b" leaves the start.
    let text = repeat(class('a', 'b'), 1, None);
    let dfa = build(&[Expr::And(vec![text.clone(), not(Expr::Cat(vec![lit("b"), repeat(text, 0, None)]))])]).unwrap();
    check_invariants(&dfa);
    assert_eq!(dfa.step(0, b'b'), None);
    assert_eq!(accepts(&dfa, b"abba"), [0]);
}

#[test]
fn no_members_make_a_single_state() {
    let dfa = build(&[]).unwrap();
    check_invariants(&dfa);
    assert_eq!((dfa.state_count(), dfa.class_count, dfa.step(0, b'a')), (1, 1, None));
}

#[test]
fn comments_by_complement() {
    // /\* ~(.* \*/ .*) \*/
    let any = || repeat(Expr::ByteClass(vec![(0, 255)]), 0, None);
    let body = not(Expr::Cat(vec![any(), lit("*/"), any()]));
    let dfa = build(&[Expr::Cat(vec![lit("/*"), body, lit("*/")])]).unwrap();
    check_invariants(&dfa);
    assert_eq!(accepts(&dfa, b"/* x */"), [0]);
    assert_eq!(accepts(&dfa, b"/***/"), [0]);
    assert!(accepts(&dfa, b"/*/").is_empty());
    assert!(accepts(&dfa, b"/**/*/").is_empty());
}

#[test]
fn bounded_repeats_stay_linear() {
    let not_x = Expr::Class(vec![(0, 0x77), (0x79, 0x10FFFF)]);
    let dfa = build(&[Expr::Cat(vec![lit("x"), repeat(not_x, 0, Some(1000)), lit("x")])]).unwrap();
    // Per count: one state between code points and seven inside one.
    assert!(dfa.state_count() < 8 * 1001 + 10, "{}", dfa.state_count());
    let text = |n: usize| format!("x{}x", "é".repeat(n));
    assert_eq!(accepts(&dfa, text(1000).as_bytes()), [0]);
    assert!(accepts(&dfa, text(1001).as_bytes()).is_empty());

    // A body that matches the empty string, and one that is ambiguous.
    let dfa = build(&[Expr::Cat(vec![lit("x"), repeat(repeat(lit("a"), 0, Some(1)), 500, Some(20_000))])]).unwrap();
    assert_eq!(dfa.state_count(), 20_002);
    let dfa =
        build(&[repeat(repeat(lit("a"), 0, Some(3)), 0, Some(5)), lit("b")].map(|e| Expr::Cat(vec![lit("x"), e])));
    assert_eq!(dfa.unwrap().state_count(), 18);
    let words = Expr::Cat(vec![repeat(class('a', 'z'), 1, None), repeat(lit("-"), 0, Some(1))]);
    assert_eq!(build(&[repeat(words.clone(), 1, Some(1000))]).unwrap().state_count(), 2001);
    assert_eq!(build(&[repeat(words.clone(), 1000, None)]).unwrap().state_count(), 2001);
    let lines = repeat(Expr::Cat(vec![repeat(words, 1, Some(50)), repeat(lit("."), 0, Some(1))]), 1, Some(50));
    let limits = LexerLimits { max_subset_elements: 60_000, ..LexerLimits::default() };
    build_within(&[lines], &limits).unwrap();
    assert!(
        build(&[repeat(Expr::Cat(vec![]), 1, Some(u32::MAX)), lit("a")])
            .is_err_and(|e| matches!(e, LexerError::Nullable { .. }))
    );
    assert_eq!(build(&[Expr::Cat(vec![repeat(lit(""), 9, Some(u32::MAX)), lit("a")])]).unwrap().state_count(), 2);
}

#[test]
fn large_classes_stay_small() {
    let word = regex_syntax::Parser::new().parse(r"\w").unwrap();
    let regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(word)) = word.into_kind() else {
        panic!("\\w is a class")
    };
    let ranges: Vec<(u32, u32)> = word.ranges().iter().map(|r| (r.start().into(), r.end().into())).collect();
    let dfa = build(&[repeat(Expr::Class(ranges), 1, None)]).unwrap();
    assert!(dfa.state_count() < 400, "{}", dfa.state_count());
    assert_eq!(accepts(&dfa, "größe_été日本".as_bytes()), [0]);
    assert!(accepts(&dfa, "a b".as_bytes()).is_empty());
}

#[test]
fn every_error_says_what_and_where() {
    let check = |exprs: &[Expr], limits: &LexerLimits, message: &str| {
        assert_eq!(build_within(exprs, limits).unwrap_err().to_string(), message);
    };
    let limits = LexerLimits::default();
    let small =
        |nfa, dfa, elements| LexerLimits { max_nfa_states: nfa, max_dfa_states: dfa, max_subset_elements: elements };
    let ab = || class('a', 'b');
    // The 20th letter from the end is an a: 2^20 states.
    let hard = || Expr::Cat(vec![repeat(ab(), 0, None), lit("a"), repeat(ab(), 19, Some(19))]);
    let nested = (0..=crate::grammar::ir::MAX_EXPR_DEPTH).fold(lit("a"), |e, _| Expr::Cat(vec![e]));

    check(
        &[lit("a"), repeat(lit("b"), 0, None)],
        &limits,
        "terminal \"T1\" matches the empty string; make one of its parts mandatory",
    );
    check(
        &[Expr::And(vec![lit("a"), lit("b")])],
        &limits,
        "terminal \"T0\" matches no string at all; remove it or widen its expression",
    );
    check(
        &[repeat(lit("ab"), 1, Some(u32::MAX))],
        &limits,
        "terminal \"T0\" repeats a part 1 to 4294967295 times, which takes 12884901885 NFA states, limit 4000000; lower \
         the bound, leave it open, or raise max_nfa_states",
    );
    check(
        &[repeat(lit("ab"), 2_000_000, None)],
        &limits,
        "terminal \"T0\" repeats a part 2000000 to unbounded times, which takes 6000000 NFA states, limit 4000000; lower \
         the bound, leave it open, or raise max_nfa_states",
    );
    check(&[nested], &limits, "terminal \"T0\" is nested deeper than 200 levels; flatten its expression");
    check(
        &[lit("a"), lit("abcdefghijkl")],
        &small(10, 1000, 1000),
        "lexer passed 10 NFA states in terminal \"T1\"; shorten its expression or raise max_nfa_states",
    );
    check(
        &[hard()],
        &small(1000, 1000, 1_000_000),
        "lexer passed 1000 DFA states in terminal \"T0\"; simplify ambiguous repeats or raise max_dfa_states",
    );
    check(
        &[Expr::Cat(vec![repeat(ab(), 0, None), lit("a"), repeat(ab(), 8, Some(8))]), repeat(lit("aba"), 1, None)],
        &small(1000, 513, 1_000_000),
        "lexer passed 513 DFA states for all terminals together; simplify ambiguous repeats or raise max_dfa_states",
    );
    check(
        &[Expr::Cat(vec![lit("x"), not(hard())])],
        &small(1000, 1000, 1_000_000),
        "lexer passed 1000 DFA states in terminal \"T0\"; simplify ambiguous repeats or raise max_dfa_states",
    );
    check(
        &[hard()],
        &small(1000, 1_000_000, 1000),
        "lexer passed 1000 subset elements in terminal \"T0\"; simplify ambiguous repeats or raise max_subset_elements",
    );
}

#[test]
fn nested_repeats_and_complements_end() {
    let hostile = (0..6).fold(lit("a"), |e, _| repeat(e, 10, Some(100)));
    assert!(matches!(build(&[hostile]), Err(LexerError::RepeatTooLarge { .. })));
    let flip = (0..100).fold(lit("a"), |e, _| not(e));
    assert_eq!(build(&[flip]).unwrap().state_count(), 2);
}
