use std::collections::BTreeSet;

use proptest::prelude::*;

use super::parse::{Node, set};
use super::*;
use crate::json_schema::string::{Spelling, testing::Language};

/// Does the language of `expr`, which is decoded, have `text`?
fn has(expr: &Expr, text: &str) -> bool {
    Language::of(&super::super::string::spell(expr, Spelling::Any).expect("text"))
        .has(&serde_json::to_string(text).expect("a string"))
}

#[track_caller]
fn check(pattern: &str, good: &[&str], bad: &[&str]) {
    let expr = ecma(pattern).expect("a pattern");
    good.iter().for_each(|text| assert!(has(&expr, text), "{pattern:?} should match {text:?}"));
    bad.iter().for_each(|text| assert!(!has(&expr, text), "{pattern:?} should not match {text:?}"));
}

// The expectations below are those of V8 with the u flag where that takes the pattern, else without.

#[test]
fn matches_anywhere_unless_anchored() {
    check("b", &["b", "abc", "\nb"], &["", "a"]);
    check("^b", &["b", "bc"], &["ab", "a\nb"]);
    check("b$", &["b", "ab"], &["bc", "b\n"]);
    check("^b$", &["b"], &["ab", "bc", "b\n", "bb"]);
    check("^cat$|^dog$", &["cat", "dog"], &["ca", "catdog", ""]);
    check("^a|b|c$", &["ax", "xbx", "xc"], &["xa", "cx", ""]);
    check("(^a$)", &["a"], &["aa"]);
    check("a*", &["", "x"], &[]);
    check("^", &["", "x"], &[]);
    check("", &["", "x"], &[]);
    check("x{2,3}", &["xx", "xxxx", "axxb"], &["x", "xax"]);
    check("(t|8){10,10}$", &["t8t8t8t8t8", "xt8t8t8t8t8t"], &["t8t8t8t8t", "t8t8t8t8t8x"]);
}

#[test]
fn classes_and_escapes_are_those_of_ecma() {
    check(r"^\d$", &["0", "9"], &["a", "٣", ""]);
    check(r"^\w$", &["a", "Z", "_", "5"], &["é", "-", "ſ"]);
    check(
        r"^\s$",
        &[" ", "\t", "\u{B}", "\u{A0}", "\u{FEFF}", "\u{2028}", "\u{3000}"],
        &["a", "\u{1C}", "\u{85}", "\u{180E}"],
    );
    check(r"^\S+$", &["[", "a]", "[x]"], &["", " ", "a b"]);
    check("^.$", &["a", "é", "😀", "\u{85}"], &["\n", "\r", "\u{2028}", "\u{2029}", "ab"]);
    check(r"^[\w-.]$", &["a", "-", "."], &["+"]);
    check(r"^[a\-z]$", &["a", "-", "z"], &["b", "\\"]);
    check(r"^[^]$", &["\n", "a"], &["", "ab"]);
    check(r"^[]$", &[], &["", "a"]);
    check(r"^[\b]$", &["\u{8}"], &["b"]);
    check(r"^[A-z]$", &["A", "z", "_", "^"], &["5"]);
    check(r"^\x41\u0042\u{43}\u{1F600}$", &["ABC😀"], &["ABC"]);
    check(r"^\ud83d\ude00$", &["😀"], &["\u{FFFD}"]);
    check(r"^\t\n\v\f\r\0\cJ\/\-\_$", &["\t\n\u{B}\u{C}\r\0\n/-_"], &[]);
    check(r"^a{,b{x}c{1$", &["a{,b{x}c{1"], &["a"]);
    check(r"^]}$", &["]}"], &[]);
    check(r"^\p{Lu}\P{L}\p{Script=Greek}$", &["A1λ", "É-Ω"], &["a1λ", "Abλ", "A1l"]);
    check(r"^a+?b??c{1,2}?$", &["ac", "aabcc"], &["c", "accc"]);
    check(r"^(?<name>a)(?:b)$", &["ab"], &["a"]);
}

#[test]
fn assertions_hold_wherever_they_stand() {
    check(r"^(?!.*\/)^(.*[^.]+.*)$", &["a", ".a"], &["a/b", "..", ""]);
    check(r"^(?=.*\d)(?=.*[a-z]).{4,6}$", &["abc1", "1aaaaa"], &["abcd", "ab1", "1234567", "1111"]);
    check(r"^((?!foo).)*$", &["", "fo", "barfo"], &["foo", "xfoox"]);
    check(r"^(?:(?!--)[a-z-])+$", &["a-b", "-"], &["a--b", "", "A"]);
    check(r"\bcat\b", &["cat", "a cat.", "é cat"], &["cats", "_cat", "concat"]);
    check(r"^a\Bb$", &["ab"], &["a", "a b"]);
    check(r"(?<=\$)\d", &["$5", "a$5b"], &["5", "$a5"]);
    check(r"^.*(?<!x)y$", &["y", "ay"], &["xy", "axy", "yx"]);
    check(r"^(\/?((\.{2})|([a-z0-9\-]*))($|\/))*$", &["", "../a/", "/a/b", "a"], &["A", "a.b", "..."]);
    check(r"^([^,]|$)", &["", "a"], &[",", ",a"]);
    check(r"(^|,)a(,|$)", &["a", "b,a", "a,b"], &["ba", "b,ab"]);
    check(r"^(https?://|/?.?-?(?!\w+://)\w).+\.ya?ml$", &["a.b.yml", "http://x.yaml"], &["a.yaml2", ".yml"]);
    check(r"(?!)", &[], &["", "a"]);
    check(r"(?=)", &["", "a"], &[]);
}

#[test]
fn what_is_not_ecma_is_refused_by_name() {
    for (pattern, word) in [
        (r"(a)\1", "backreference"),
        (r"(?<n>a)\k<n>", "backreference"),
        (r"(?P<n>a)", "(?P"),
        (r"(?i)a", "(?i"),
        (r"(?>a)", "(?>"),
        (r"\Aa", "\\A"),
        (r"a\Z", "\\Z"),
        (r"\x4", "\\x"),
        (r"\u12", "\\u"),
        (r"\u{110000}", "\\u{"),
        (r"\p{Klingon}", "Klingon"),
        (r"\p", "\\p"),
        (r"\01", "octal"),
        ("a{,5}", "lower bound"),
        ("a{3,2}", "out of order"),
        ("a{99999999999}", "greater"),
        ("a++", "nothing to repeat"),
        ("*a", "nothing to repeat"),
        ("{2}", "nothing to repeat"),
        ("^*", "assertion"),
        ("(?<=a)*", "assertion"),
        ("(a", "missing"),
        ("a)", "without"),
        ("[a", "missing"),
        ("[b-a]", "out of order"),
        ("a\\", "backslash"),
        ("(?<1>a)", "name"),
        (r"(?<=(?=a)b)c", "look-behind"),
        (r"\b(?:a{999}){999}", "states"),
    ] {
        let Reason(reason) = ecma(pattern).expect_err(pattern);
        assert!(reason.contains(word) && reason.contains(&format!("{pattern:?}")), "{pattern}: {reason}");
    }
    assert!(ecma(&"(".repeat(100_000)).is_err());
    assert!(ecma(&format!("{}a{}", "(?:".repeat(40), ")".repeat(40))).is_ok());
}

/// The definition: where the matches of `node` from `at` end.
fn ends(node: &Node, text: &[char], at: usize) -> BTreeSet<usize> {
    let word = |i: usize| text.get(i).is_some_and(|c| c.is_ascii_alphanumeric() || *c == '_');
    let holds = |holds: bool| holds.then_some(at).into_iter().collect();
    let after = |from: BTreeSet<usize>, node: &Node| from.into_iter().flat_map(|i| ends(node, text, i)).collect();
    match node {
        Node::Set(set) => {
            let found = text.get(at).is_some_and(|&c| set.iter().any(|r| (r.start()..=r.end()).contains(&c)));
            found.then_some(at + 1).into_iter().collect()
        }
        Node::Cat(parts) => parts.iter().fold(BTreeSet::from([at]), after),
        Node::Alt(parts) => parts.iter().flat_map(|part| ends(part, text, at)).collect(),
        Node::Repeat(body, min, max) => {
            let mut last = (0..*min).fold(BTreeSet::from([at]), |from, _| after(from, body));
            let mut all = last.clone();
            for _ in *min..max.unwrap_or(min + text.len() as u32) {
                last = after(last, body);
                all.extend(&last);
            }
            all
        }
        Node::Begin => holds(at == 0),
        Node::End => holds(at == text.len()),
        Node::Boundary(wanted) => holds(((at > 0 && word(at - 1)) != word(at)) == *wanted),
        Node::Ahead(wanted, body) => holds(ends(body, text, at).is_empty() != *wanted),
        Node::Behind(wanted, body) => holds((0..=at).any(|from| ends(body, text, from).contains(&at)) == *wanted),
    }
}

fn any_node() -> impl Strategy<Value = Node> {
    let sets = [set(&[('a', 'a')]), set(&[('a', 'b')]), set(&[(' ', ' ')]), set(&[('b', 'b'), ('é', 'é')])];
    let leaf = prop_oneof![
        6 => prop::sample::select(sets.to_vec()).prop_map(Node::Set),
        1 => prop::sample::select(vec![Node::Begin, Node::End, Node::Boundary(true), Node::Boundary(false)]),
    ];
    let behind = prop::collection::vec(leaf.clone(), 0..3).prop_map(Node::Cat);
    let leaf = prop_oneof![
        8 => leaf,
        1 => (any::<bool>(), behind).prop_map(|(wanted, body)| Node::Behind(wanted, Box::new(body))),
    ];
    leaf.prop_recursive(4, 20, 3, |inner| {
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 0..4).prop_map(Node::Cat),
            2 => prop::collection::vec(inner.clone(), 1..4).prop_map(Node::Alt),
            1 => (any::<bool>(), inner.clone()).prop_map(|(wanted, body)| Node::Ahead(wanted, Box::new(body))),
            2 => (inner.clone(), 0..3u32, 0..3u32).prop_map(|(body, min, more)| Node::Repeat(Box::new(body), min, Some(min + more))),
            2 => (inner, 0..2u32).prop_map(|(body, min)| Node::Repeat(Box::new(body), min, None)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn agrees_with_the_definition(
        node in any_node(),
        head in any::<bool>(),
        tail in any::<bool>(),
        texts in prop::collection::vec("[ab é]{0,6}", 12),
    ) {
        // Anchors at the ends take the way through expressions, others the automaton; both ways have to agree.
        let parts = [head.then_some(Node::Begin), Some(node), tail.then_some(Node::End)];
        let node = Node::Cat(parts.into_iter().flatten().collect());
        let language = |expr: &Expr| Language::of(&super::super::string::spell(expr, Spelling::Any).expect("text"));
        let two = [language(&search(node.clone()).expect("small")), language(&automaton::search(&node).expect("small"))];
        for text in texts {
            let chars: Vec<char> = text.chars().collect();
            let expected = (0..=chars.len()).any(|from| !ends(&node, &chars, from).is_empty());
            for language in &two {
                prop_assert_eq!(language.has(&format!("\"{text}\"")), expected, "{:?} on {:?}", node, text);
            }
        }
    }
}
