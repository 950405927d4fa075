//! Languages of strings: what they mean, how long they are, and how JSON spells them.
//!
//! A *decoded* language is an [`Expr`] over code points (`Class`, and `Bytes` of UTF-8), in which `Not` is the complement
//! within all strings of code points. [`spell`] turns it into the language of JSON texts that stand for its strings, with
//! every spelling of every code point. It leaves the shape as it is, so repeats stay repeats.
//!
//! A surrogate alone (`"\ud800"`) stands for no code point. RFC 8259 tolerates it and calls the outcome unpredictable; no
//! language here contains it.

use std::collections::BTreeMap;

use super::Reason;
use crate::grammar::ir::{Expr, GraphState};

/// One code point, whichever.
pub fn any_char() -> Expr {
    Expr::Class(vec![(0, 0x10FFFF)])
}

/// Every JSON string, quotes included.
pub fn any_string() -> Expr {
    quoted(any_body())
}

/// Every spelling of `text`, quotes included.
pub fn literal(text: &str) -> Expr {
    quoted(Expr::Cat(text.chars().map(|c| json_char(c as u32)).collect()))
}

/// Every JSON string that is none of `words`, quotes included.
///
/// The automaton is the trie of the words with what leaves it.
pub fn any_string_except(words: &[&str]) -> Expr {
    // State 0 starts, state 1 has left the trie for good.
    const LEFT: u32 = 1;
    let mut trie: Vec<(bool, BTreeMap<char, u32>)> = vec![Default::default(); 2];
    for word in words {
        let mut at = 0;
        for c in word.chars() {
            let new = trie.len() as u32;
            at = *trie[at].1.entry(c).or_insert(new) as usize;
            if at == new as usize {
                trie.push(Default::default());
            }
        }
        trie[at].0 = true;
    }
    let state = |(is_word, children): &(bool, BTreeMap<char, u32>)| {
        let codes: Vec<u32> = children.keys().map(|&c| c as u32).collect();
        // The part beyond ASCII is one label for nearly all states, and so one automaton.
        let others = [(0, 0x7F), (0x80, 0x10FFFF)].map(|range| (Expr::JsonClass(without(range, &codes)), LEFT));
        let edges = children.iter().map(|(&c, &to)| (json_char(c as u32), to)).chain(others).collect();
        GraphState { accepting: !is_word, edges }
    };
    let states = trie.iter().map(state).collect();
    quoted(Expr::Graph(states))
}

/// `range` without the sorted `codes`.
fn without((lo, hi): (u32, u32), codes: &[u32]) -> Vec<(u32, u32)> {
    let inside = codes.iter().copied().filter(|code| (lo..=hi).contains(code));
    let starts = std::iter::once(lo).chain(inside.clone().map(|code| code + 1));
    // An end before its start is where two codes are neighbours.
    let ends = inside.map(|code| code.wrapping_sub(1)).chain([hi]);
    starts.zip(ends).filter(|&(from, to)| from <= to && to <= hi).collect()
}

fn quoted(body: Expr) -> Expr {
    Expr::Cat(vec![Expr::Bytes(b"\"".to_vec()), body, Expr::Bytes(b"\"".to_vec())])
}

fn any_body() -> Expr {
    Expr::Repeat(Box::new(Expr::JsonClass(vec![(0, 0x10FFFF)])), 0, None)
}

fn json_char(code: u32) -> Expr {
    Expr::JsonClass(vec![(code, code)])
}

/// The JSON texts, quotes included, whose values are in the decoded language.
///
/// # Errors
/// If `decoded` has parts that are no text: bytes outside of UTF-8, or byte classes.
pub fn spell(decoded: &Expr) -> Result<Expr, Reason> {
    Ok(quoted(body(decoded)?))
}

fn body(decoded: &Expr) -> Result<Expr, Reason> {
    let all = |parts: &[Expr]| parts.iter().map(body).collect::<Result<Vec<_>, _>>();
    Ok(match decoded {
        Expr::Bytes(bytes) => {
            let text = std::str::from_utf8(bytes)
                .map_err(|_| Reason("a string language holds bytes that are no UTF-8".into()))?;
            let mut chars: Vec<Expr> = text.chars().map(|c| json_char(c as u32)).collect();
            if chars.len() == 1 { chars.remove(0) } else { Expr::Cat(chars) }
        }
        Expr::Class(ranges) | Expr::JsonClass(ranges) => Expr::JsonClass(ranges.clone()),
        Expr::ByteClass(_) => return Err(Reason("a string language holds a class of bytes".into())),
        Expr::Cat(parts) => Expr::Cat(all(parts)?),
        Expr::Alt(parts) => Expr::Alt(all(parts)?),
        Expr::Repeat(part, min, max) => Expr::Repeat(Box::new(body(part)?), *min, *max),
        // A spelling has one value, so spelling commutes with intersection and with complement among spellings.
        Expr::And(parts) => Expr::And(all(parts)?),
        Expr::Not(part) => Expr::And(vec![any_body(), Expr::Not(Box::new(body(part)?))]),
        Expr::Graph(states) => Expr::Graph(
            states
                .iter()
                .map(|state| {
                    let edges = state.edges.iter().map(|(label, to)| Ok((body(label)?, *to)));
                    Ok(GraphState { accepting: state.accepting, edges: edges.collect::<Result<_, Reason>>()? })
                })
                .collect::<Result<_, Reason>>()?,
        ),
    })
}

/// The strings of `decoded` (all, if none is given) that have `min` to `max` code points.
///
/// The bounds go into a repeat where that is exact, as in `[a-z]+` or `[a-z][a-z0-9]*`; else they become a factor of an
/// intersection. A `max` beyond 32 bits is none, since no text that fits in memory comes near it.
///
/// # Errors
/// If `min` does not fit into 32 bits.
pub fn with_length(decoded: Option<Expr>, min: u64, max: Option<u64>) -> Result<Expr, Reason> {
    let Ok(min) = u32::try_from(min) else {
        return Err(Reason(format!(
            "no string of at least {min} code points can be written; the limit is {}",
            u32::MAX
        )));
    };
    let max = max.and_then(|max| u32::try_from(max).ok());
    if max.is_some_and(|max| max < min) {
        return Ok(Expr::Alt(Vec::new()));
    }
    let any = |min, max| Expr::Repeat(Box::new(any_char()), min, max);
    Ok(decoded.map_or_else(|| any(min, max), |decoded| bounded(decoded, min, max)))
}

/// The strings of `expr` with `min` to `max` code points.
fn bounded(expr: Expr, min: u32, max: Option<u32>) -> Expr {
    let (least, most) = lengths(&expr);
    let fits = |most: Option<u64>| max.is_none_or(|max| most.is_some_and(|most| most <= u64::from(max)));
    if least >= u64::from(min) && fits(most) {
        return expr;
    }
    if most.is_some_and(|most| most < u64::from(min)) || max.is_some_and(|max| least > u64::from(max)) {
        return Expr::Alt(Vec::new());
    }
    match expr {
        Expr::Alt(parts) => Expr::Alt(parts.into_iter().map(|part| bounded(part, min, max)).collect()),
        Expr::Repeat(body, from, to) if matches!(lengths(&body), (n, Some(m)) if n == m && n > 0) => {
            let unit = lengths(&body).0.min(u64::from(u32::MAX)) as u32;
            let to = max.map_or(to, |max| Some(to.map_or(max / unit, |to| to.min(max / unit))));
            let from = from.max(min.div_ceil(unit));
            if to.is_some_and(|to| to < from) { Expr::Alt(Vec::new()) } else { Expr::Repeat(body, from, to) }
        }
        Expr::Cat(mut parts) => {
            let is_fixed = |part: &Expr| matches!(lengths(part), (n, Some(m)) if n == m);
            let mut open = (0..parts.len()).filter(|&i| !is_fixed(&parts[i]));
            match (open.next(), open.next()) {
                (Some(i), None) => {
                    // The other parts have a length of their own, so the bounds are those of this one.
                    let rest = u32::try_from(least - lengths(&parts[i]).0).unwrap_or(u32::MAX);
                    let part = std::mem::replace(&mut parts[i], Expr::Bytes(Vec::new()));
                    parts[i] = bounded(part, min.saturating_sub(rest), max.map(|max| max.saturating_sub(rest)));
                    Expr::Cat(parts)
                }
                _ => within(Expr::Cat(parts), min, max),
            }
        }
        expr => within(expr, min, max),
    }
}

fn within(expr: Expr, min: u32, max: Option<u32>) -> Expr {
    Expr::And(vec![expr, Expr::Repeat(Box::new(any_char()), min, max)])
}

/// Bounds on the code points of a decoded language's strings: at least, and at most; none is unbounded.
fn lengths(expr: &Expr) -> (u64, Option<u64>) {
    let sum = |(a, b): (u64, Option<u64>), (c, d): (u64, Option<u64>)| {
        (a.saturating_add(c), b.zip(d).map(|(b, d)| b.saturating_add(d)))
    };
    match expr {
        Expr::Bytes(bytes) => {
            let count = String::from_utf8_lossy(bytes).chars().count() as u64;
            (count, Some(count))
        }
        Expr::Class(_) | Expr::JsonClass(_) | Expr::ByteClass(_) => (1, Some(1)),
        Expr::Cat(parts) => parts.iter().map(lengths).fold((0, Some(0)), sum),
        Expr::Alt(parts) => {
            let either =
                |(a, b): (u64, Option<u64>), (c, d): (u64, Option<u64>)| (a.min(c), b.zip(d).map(|(b, d)| b.max(d)));
            parts.iter().map(lengths).reduce(either).unwrap_or((0, Some(0)))
        }
        Expr::Repeat(body, min, max) => {
            let (least, most) = lengths(body);
            let most =
                if most == Some(0) { most } else { most.zip(*max).map(|(n, max)| n.saturating_mul(u64::from(max))) };
            (least.saturating_mul(u64::from(*min)), most)
        }
        Expr::And(parts) => {
            let both = |(a, b): (u64, Option<u64>), (c, d): (u64, Option<u64>)| {
                (a.max(c), if b.is_none() { d } else { d.map_or(b, |d| b.map(|b| b.min(d))) })
            };
            parts.iter().map(lengths).fold((0, None), both)
        }
        Expr::Not(_) | Expr::Graph(_) => (0, None),
    }
}

#[cfg(test)]
pub(super) mod testing {
    use crate::grammar::ir::{Expr, Terminal};
    use crate::lexer::{LexerDfa, LexerError, LexerLimits};

    /// The texts of a terminal expression.
    pub(in super::super) struct Language(pub(in super::super) Option<LexerDfa>);

    impl Language {
        pub(in super::super) fn of(expr: &Expr) -> Self {
            let (name, expr) = (String::new(), expr.clone());
            let flags = (0, false, false, false);
            let (priority, literal, ignored, reject) = flags;
            let (fallback, position, scope) = (None, None, None);
            let terminal = Terminal { name, expr, priority, literal, ignored, reject, fallback, position, scope };
            match LexerDfa::build(&[terminal], &[0], false, &LexerLimits::default()) {
                Ok(dfa) => Self(Some(dfa)),
                Err(LexerError::EmptyLanguage { .. }) => Self(None),
                Err(error) => panic!("{error}"),
            }
        }

        pub(in super::super) fn has(&self, text: &str) -> bool {
            self.0.as_ref().is_some_and(|dfa| dfa.run(0, text.as_bytes()).is_some_and(|q| dfa.is_accepting(q)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Language;
    use super::*;

    fn bytes(text: &str) -> Expr {
        Expr::Bytes(text.as_bytes().to_vec())
    }

    /// Spellings of a text that differ in all the ways there are.
    fn spellings(text: &str) -> Vec<String> {
        let raw = serde_json::to_string(text).expect("a string");
        let units = |case: fn(u16) -> String| text.encode_utf16().map(case).collect::<String>();
        let escaped = [units(|unit| format!("\\u{unit:04x}")), units(|unit| format!("\\u{unit:04X}"))];
        let mut all: Vec<String> = escaped.iter().map(|body| format!("\"{body}\"")).collect();
        all.extend([raw.replace('/', "\\/"), raw]);
        all
    }

    #[test]
    fn a_literal_has_all_spellings_of_one_text() {
        let texts = ["", "a", "ab", "a/b\"\\\n\t\u{7F}", "é", "😀", "\u{0}\u{1F}", "a\u{2028}"];
        for text in texts {
            let (literal, spelled) = (Language::of(&literal(text)), Language::of(&spell(&bytes(text)).expect("text")));
            for other in texts {
                for spelling in spellings(other) {
                    assert_eq!(literal.has(&spelling), text == other, "{spelling} for {text:?}");
                    assert_eq!(spelled.has(&spelling), text == other, "{spelling} for {text:?}");
                }
            }
        }
        let any = Language::of(&any_string());
        assert!(texts.iter().flat_map(|text| spellings(text)).all(|spelling| any.has(&spelling)));
        for bad in ["", "\"", "a", "\"\n\"", "\"\\x41\"", "\"\\'\"", "\"\\ud800\"", "\"\\udc00\\ud800\"", "\"a\"b\""] {
            assert!(!any.has(bad), "{bad}");
        }
    }

    #[test]
    fn a_complement_is_one_of_strings() {
        let words = ["", "id", "idea", "name", "é", "a/b"];
        let not = Expr::Not(Box::new(Expr::Alt(words.iter().map(|word| bytes(word)).collect())));
        let all = [Language::of(&any_string_except(&words)), Language::of(&spell(&not).expect("text"))];
        for text in ["i", "ide", "ideas", "nam", "e", "éé", "a\\b", "ID", "b", "\u{0}", "😀"] {
            assert!(
                spellings(text).iter().all(|spelling| all.iter().all(|language| language.has(spelling))),
                "{text:?}"
            );
        }
        for text in words {
            assert!(
                spellings(text).iter().all(|spelling| all.iter().all(|language| !language.has(spelling))),
                "{text:?}"
            );
        }
        assert!(
            all.iter().all(|language| !language.has("\"i") && !language.has("\"\\ud800\"") && !language.has("\"\n\""))
        );
        assert_eq!(all[0].0, all[1].0, "two routes to one minimal automaton");
        let none = Language::of(&any_string_except(&[]));
        assert_eq!(none.0, Language::of(&any_string()).0);
    }

    #[test]
    fn many_words_are_quick_to_exclude() {
        let words: Vec<String> = (0..500).map(|i| format!("property_{:x}", i * 7919)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let except = Language::of(&any_string_except(&words));
        assert!(words.iter().all(|word| !except.has(&format!("\"{word}\"")) && except.has(&format!("\"{word}x\""))));
    }

    #[test]
    fn lengths_count_code_points_and_stay_repeats() {
        let class = |lo: char, hi: char| Expr::Class(vec![(lo as u32, hi as u32)]);
        let repeat = |expr: Expr, min, max| Expr::Repeat(Box::new(expr), min, max);
        let (a_z, any) = (class('a', 'z'), any_char());
        for (decoded, min, max, expected) in [
            (None, 0, None, repeat(any.clone(), 0, None)),
            (None, 3, Some(100_000), repeat(any.clone(), 3, Some(100_000))),
            (None, 0, Some(u64::MAX), repeat(any.clone(), 0, None)),
            (None, 5, Some(4), Expr::Alt(vec![])),
            (Some(repeat(a_z.clone(), 1, None)), 0, Some(9), repeat(a_z.clone(), 1, Some(9))),
            (Some(repeat(bytes("éb"), 0, None)), 3, Some(9), repeat(bytes("éb"), 2, Some(4))),
            (Some(repeat(bytes("ab"), 0, None)), 3, Some(3), Expr::Alt(vec![])),
            (Some(repeat(a_z.clone(), 4, Some(4))), 4, Some(9), repeat(a_z.clone(), 4, Some(4))),
            (Some(bytes("éé")), 3, None, Expr::Alt(vec![])),
            (
                Some(Expr::Cat(vec![a_z.clone(), repeat(a_z.clone(), 0, None)])),
                3,
                Some(63),
                Expr::Cat(vec![a_z.clone(), repeat(a_z.clone(), 2, Some(62))]),
            ),
            (
                Some(Expr::Alt(vec![bytes("a"), repeat(bytes("bc"), 0, None)])),
                2,
                None,
                Expr::Alt(vec![Expr::Alt(vec![]), repeat(bytes("bc"), 1, None)]),
            ),
        ] {
            assert_eq!(with_length(decoded, min, max), Ok(expected));
        }
        assert!(with_length(None, 1 << 32, None).is_err());

        // Two open parts: an intersection.
        let two = Expr::Cat(vec![repeat(a_z, 0, None), bytes("-"), repeat(any, 0, None)]);
        let language = Language::of(&spell(&with_length(Some(two), 2, Some(4)).expect("fits")).expect("text"));
        for (text, expected) in
            [("a-", true), ("-😀", true), ("ab-é", true), ("a-\\ud83d\\ude00b", true), ("-", false), ("abc-d", false)]
        {
            assert_eq!(language.has(&format!("\"{text}\"")), expected, "{text}");
        }
    }
}
