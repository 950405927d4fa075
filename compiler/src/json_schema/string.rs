//! Languages of strings: what they mean, how long they are, and how JSON spells them.
//!
//! A *decoded* language is an [`Expr`] over code points (`Class`, and `Bytes` of UTF-8), in which `Not` is the complement
//! within all strings of code points. [`spell`] turns it into the language of JSON texts that stand for its strings. It
//! leaves the shape as it is, so repeats stay repeats.
//!
//! Values have every spelling of every code point. Keys, and the strings of `const` and `enum`, are spelled *plainly*: what
//! is ASCII raw, by its short escape where it needs one, or as `\u00XX` where there is none; the rest raw or as `\uXXXX`.
//! That is what writers of JSON write, and it makes the automaton of a word as long as the word.
//!
//! A surrogate alone (`"\ud800"`) stands for no code point. RFC 8259 tolerates it and calls the outcome unpredictable; no
//! language here contains it.

use super::Reason;
use crate::grammar::ir::{Expr, GraphState};

/// Which spellings of a code point there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// All that RFC 8259 allows.
    Any,
    /// The usual ones.
    Plain,
}

type Ranges = Vec<(u32, u32)>;

/// ASCII that stands for itself in a JSON string.
const RAW: [(u32, u32); 3] = [(0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7F)];
/// ASCII that does not.
const ESCAPED: [(u32, u32); 3] = [(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)];
const BEYOND_ASCII: [(u32, u32); 1] = [(0x80, 0x10FFFF)];
/// What has a short escape and needs one, and its letter.
const SHORT: [(u32, u8); 7] =
    [(0x22, b'"'), (0x5C, b'\\'), (0x08, b'b'), (0x0C, b'f'), (0x0A, b'n'), (0x0D, b'r'), (0x09, b't')];

/// One code point, whichever.
pub fn any_char() -> Expr {
    Expr::Class(vec![(0, 0x10FFFF)])
}

/// Every JSON string, quotes included.
pub fn any_string(spelling: Spelling) -> Expr {
    quoted(any_body(spelling))
}

/// The plain spellings of `text`, quotes included.
pub fn literal(text: &str) -> Expr {
    quoted(word(text, Spelling::Plain))
}

/// Every JSON string that is none of `words`, quotes included.
///
/// The automaton is the trie of the words with what leaves it.
pub fn any_string_except(words: &[&str], spelling: Spelling) -> Expr {
    // State 0 starts; state 1 has left the trie for good, and state 2 of plain spellings will have with the rest of an escape.
    const LEFT: u32 = 1;
    const ESCAPE: u32 = 2;
    let mut trie: Vec<(bool, Vec<(char, u32)>)> =
        vec![Default::default(); if spelling == Spelling::Any { 2 } else { 3 }];
    for word in words {
        let mut at = 0;
        for c in word.chars() {
            let new = trie.len() as u32;
            let children = &mut trie[at].1;
            at = match children.binary_search_by_key(&c, |child| child.0) {
                Ok(i) => children[i].1 as usize,
                Err(i) => {
                    children.insert(i, (c, new));
                    trie.push(Default::default());
                    new as usize
                }
            };
        }
        trie[at].0 = true;
    }
    let state = |(is_word, children): &(bool, Vec<(char, u32)>)| {
        let mut edges = Vec::with_capacity(children.len() + 3);
        edges.extend(children.iter().map(|&(c, to)| (letter(c, spelling), to)));
        let is_escaped = |&(c, _): &(char, u32)| ESCAPED.iter().any(|&(lo, hi)| (lo..=hi).contains(&(c as u32)));
        // What leaves the trie is cut so that most states have the same labels for most of it, and so share its automata.
        let rest = |area: &[(u32, u32)]| without(area, children.iter().map(|child| child.0 as u32));
        match spelling {
            Spelling::Any => edges.push((Expr::JsonClass(rest(&[(0, 0x7F)])), LEFT)),
            Spelling::Plain => {
                edges.push((Expr::Class(rest(&RAW)), LEFT));
                edges.push(match children.iter().any(is_escaped) {
                    true => (class(&rest(&ESCAPED), spelling), LEFT),
                    false => (bytes("\\"), ESCAPE),
                });
            }
        }
        edges.push((Expr::JsonClass(rest(&BEYOND_ASCII)), LEFT));
        GraphState { accepting: !is_word, edges }
    };
    let mut states: Vec<GraphState> = trie.iter().map(state).collect();
    if spelling == Spelling::Plain {
        let rests = escapes(&ESCAPED).map(|(before, last)| (Expr::Cat(vec![bytes(before), last]), LEFT));
        states[ESCAPE as usize] = GraphState { accepting: false, edges: rests.collect() };
    }
    quoted(Expr::Graph(states))
}

/// One code point; of ASCII that stands for itself, its byte.
fn letter(c: char, spelling: Spelling) -> Expr {
    let code = c as u32;
    match spelling {
        Spelling::Plain if RAW.iter().any(|&(lo, hi)| (lo..=hi).contains(&code)) => Expr::Bytes(vec![code as u8]),
        _ => class(&[(code, code)], spelling),
    }
}

/// `ranges` without the sorted `codes`.
fn without(ranges: &[(u32, u32)], codes: impl ExactSizeIterator<Item = u32> + Clone) -> Ranges {
    let mut out = Vec::with_capacity(ranges.len() + codes.len());
    for &(lo, hi) in ranges {
        let mut from = lo;
        for code in codes.clone().filter(|code| (lo..=hi).contains(code)) {
            out.extend((from < code).then(|| (from, code - 1)));
            from = code + 1;
        }
        out.extend((from <= hi).then_some((from, hi)));
    }
    out
}

fn within(ranges: &[(u32, u32)], area: &[(u32, u32)]) -> Ranges {
    let both = ranges.iter().flat_map(|&(lo, hi)| area.iter().map(move |&(from, to)| (lo.max(from), hi.min(to))));
    both.filter(|(lo, hi)| lo <= hi).collect()
}

fn quoted(body: Expr) -> Expr {
    Expr::Cat(vec![bytes("\""), body, bytes("\"")])
}

fn bytes(text: &str) -> Expr {
    Expr::Bytes(text.as_bytes().to_vec())
}

fn any_body(spelling: Spelling) -> Expr {
    Expr::Repeat(Box::new(class(&[(0, 0x10FFFF)], spelling)), 0, None)
}

/// One code point of `ranges`.
fn class(ranges: &[(u32, u32)], spelling: Spelling) -> Expr {
    if spelling == Spelling::Any {
        return Expr::JsonClass(ranges.to_vec());
    }
    let (raw, beyond) = (within(ranges, &RAW), within(ranges, &BEYOND_ASCII));
    let escaped = within(ranges, &ESCAPED);
    let mut parts = Vec::new();
    if !raw.is_empty() {
        parts.push(Expr::Class(raw));
    }
    if !escaped.is_empty() {
        let escape = |(before, last): (&str, Expr)| Expr::Cat(vec![bytes(&format!("\\{before}")), last]);
        parts.extend(escapes(&escaped).map(escape));
    }
    if !beyond.is_empty() {
        parts.push(Expr::JsonClass(beyond));
    }
    if parts.len() == 1 { parts.remove(0) } else { Expr::Alt(parts) }
}

/// What follows the backslash in plain spellings of `codes`, which are escaped: a letter, or hexadecimal digits, the last of
/// them apart.
fn escapes(codes: &[(u32, u32)]) -> impl Iterator<Item = (&'static str, Expr)> {
    let is_member = |code: u32| codes.iter().any(|&(lo, hi)| (lo..=hi).contains(&code));
    let has_no_short = |code: &u32| SHORT.iter().all(|(short, _)| short != code);
    let letters = SHORT.iter().filter(|&&(code, _)| is_member(code)).map(|&(_, letter)| (letter, letter));
    let digits = |high: u32| {
        let lows = (0..16).filter(move |low| is_member(high + low) && has_no_short(&(high + low)));
        let digits = lows.flat_map(|low| [b"0123456789abcdef", b"0123456789ABCDEF"].map(|digits| digits[low as usize]));
        Expr::ByteClass(digits.map(|b| (b, b)).collect())
    };
    [("", Expr::ByteClass(letters.collect())), ("u000", digits(0)), ("u001", digits(16))].into_iter()
}

/// The spellings of one text.
fn word(text: &str, spelling: Spelling) -> Expr {
    let mut parts: Vec<Expr> = Vec::new();
    for c in text.chars() {
        let code = c as u32;
        let short = SHORT.iter().find(|&&(short, _)| short == code).map(|&(_, letter)| vec![b'\\', letter]);
        let only = if (0x20..0x80).contains(&code) { short.or(Some(vec![code as u8])) } else { short };
        match (only.filter(|_| spelling == Spelling::Plain), parts.last_mut()) {
            (Some(only), Some(Expr::Bytes(last))) => last.extend(only),
            (Some(only), _) => parts.push(Expr::Bytes(only)),
            (None, _) => parts.push(class(&[(code, code)], spelling)),
        }
    }
    if parts.len() == 1 { parts.remove(0) } else { Expr::Cat(parts) }
}

/// The JSON texts, quotes included, whose values are in the decoded language.
///
/// # Errors
/// If `decoded` has parts that are no text: bytes outside of UTF-8, or byte classes.
pub fn spell(decoded: &Expr, spelling: Spelling) -> Result<Expr, Reason> {
    Ok(quoted(body(decoded, spelling)?))
}

fn body(decoded: &Expr, spelling: Spelling) -> Result<Expr, Reason> {
    let all = |parts: &[Expr]| parts.iter().map(|part| body(part, spelling)).collect::<Result<Vec<_>, _>>();
    Ok(match decoded {
        Expr::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => word(text, spelling),
            Err(_) => return Err(Reason("a string language holds bytes that are no UTF-8".into())),
        },
        Expr::Class(ranges) => class(ranges, spelling),
        Expr::ByteClass(_) | Expr::JsonClass(_) | Expr::Fold(_) | Expr::Tokens { .. } => {
            return Err(Reason("a string language holds what is no class of code points".into()));
        }
        Expr::Cat(parts) => Expr::Cat(all(parts)?),
        Expr::Alt(parts) => Expr::Alt(all(parts)?),
        Expr::Repeat(part, min, max) => Expr::Repeat(Box::new(body(part, spelling)?), *min, *max),
        // A spelling has one value, so spelling commutes with intersection and with complement among spellings.
        Expr::And(parts) => Expr::And(all(parts)?),
        Expr::Not(part) => Expr::And(vec![any_body(spelling), Expr::Not(Box::new(body(part, spelling)?))]),
        Expr::Graph(states) => {
            let edge = |(label, to): &(Expr, u32)| Ok((body(label, spelling)?, *to));
            let state = |state: &GraphState| {
                let edges = state.edges.iter().map(edge).collect::<Result<_, Reason>>()?;
                Ok(GraphState { accepting: state.accepting, edges })
            };
            Expr::Graph(states.iter().map(state).collect::<Result<_, Reason>>()?)
        }
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
                _ => with_bounds(Expr::Cat(parts), min, max),
            }
        }
        expr => with_bounds(expr, min, max),
    }
}

fn with_bounds(expr: Expr, min: u32, max: Option<u32>) -> Expr {
    Expr::And(vec![expr, Expr::Repeat(Box::new(any_char()), min, max)])
}

/// Bounds on the code points of a decoded language's strings: at least, and at most; none is unbounded.
fn lengths(expr: &Expr) -> (u64, Option<u64>) {
    let sum = |(a, b): (u64, Option<u64>), (c, d): (u64, Option<u64>)| {
        (a.saturating_add(c), b.zip(d).map(|(b, d)| b.saturating_add(d)))
    };
    match expr {
        Expr::Bytes(bytes) | Expr::Fold(bytes) => {
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
        Expr::Not(_) | Expr::Graph(_) | Expr::Tokens { .. } => (0, None),
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
            let (name, expr) = (String::new(), expr.clone().into());
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

    /// Spellings of a text that differ in all the ways there are.
    fn spellings(text: &str) -> Vec<String> {
        let raw = serde_json::to_string(text).expect("a string");
        let units = |case: fn(u16) -> String| text.encode_utf16().map(case).collect::<String>();
        let escaped = [units(|unit| format!("\\u{unit:04x}")), units(|unit| format!("\\u{unit:04X}"))];
        let mut all: Vec<String> = escaped.iter().map(|body| format!("\"{body}\"")).collect();
        all.extend([raw.replace('/', "\\/"), raw]);
        all
    }

    const TEXTS: [&str; 9] =
        ["", "a", "ab", "a/b\"\\\n\t\u{7F}", "é", "😀", "\u{0}\u{1F}", "a\u{2028}", "\u{8}\u{C}\r\u{B}"];

    #[test]
    fn a_text_has_all_its_spellings_and_no_others() {
        for text in TEXTS {
            let all = Language::of(&spell(&bytes(text), Spelling::Any).expect("text"));
            for other in TEXTS {
                for spelling in spellings(other) {
                    assert_eq!(all.has(&spelling), text == other, "{spelling} for {text:?}");
                }
            }
        }
        let any = Language::of(&any_string(Spelling::Any));
        assert!(TEXTS.iter().flat_map(|text| spellings(text)).all(|spelling| any.has(&spelling)));
        for bad in ["", "\"", "a", "\"\n\"", "\"\\x41\"", "\"\\'\"", "\"\\ud800\"", "\"\\udc00\\ud800\"", "\"a\"b\""] {
            assert!(!any.has(bad) && !Language::of(&any_string(Spelling::Plain)).has(bad), "{bad}");
        }
    }

    /// Whether a spelling is plain, by its definition.
    fn is_plain(spelling: &str) -> bool {
        let value: String = serde_json::from_str(spelling).expect("a string");
        let unescaped = |c: char| (' '..'\u{80}').contains(&c);
        let written =
            serde_json::to_string(&value.chars().filter(|&c| unescaped(c)).collect::<String>()).expect("a string");
        let mut rest = spelling.to_lowercase();
        for c in value.chars().filter(|&c| !unescaped(c)) {
            let raw = serde_json::to_string(&c.to_string()).expect("a string").to_lowercase();
            let units: String = c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let escape = if c < ' ' { None } else { Some(units.as_str()) };
            let raw = &raw[1..raw.len() - 1];
            let found = [Some(raw), escape].into_iter().flatten().find(|form| rest.contains(form));
            let Some(form) = found else { return false };
            rest = rest.replacen(form, "", 1);
        }
        rest == written.to_lowercase()
    }

    #[test]
    fn literals_are_plain() {
        for text in TEXTS {
            let literal = Language::of(&literal(text));
            let spelled = Language::of(&spell(&bytes(text), Spelling::Plain).expect("text"));
            assert_eq!(literal.0, spelled.0);
            for other in TEXTS {
                for spelling in spellings(other) {
                    let expected = text == other && is_plain(&spelling);
                    assert_eq!(literal.has(&spelling), expected, "{spelling} for {text:?}");
                }
            }
        }
        let any = Language::of(&any_string(Spelling::Plain));
        for spelling in TEXTS.iter().flat_map(|text| spellings(text)) {
            assert_eq!(any.has(&spelling), is_plain(&spelling), "{spelling}");
        }
        assert!(any.has("\"\\u000b\\u001F\\ud83D\\uDe00é\\u00e9\"") && !any.has("\"\\/\"") && !any.has("\"\\u000a\""));
        let Expr::Cat(parts) = super::literal("property \"x\"") else { panic!("quotes") };
        assert_eq!(parts[1], bytes("property \\\"x\\\""));
    }

    #[test]
    fn a_complement_is_one_of_strings() {
        let words = ["", "id", "idea", "name", "é", "a/b", "\n\""];
        let not = Expr::Not(Box::new(Expr::Alt(words.iter().map(|word| bytes(word)).collect())));
        for spelling in [Spelling::Any, Spelling::Plain] {
            let two = [
                Language::of(&any_string_except(&words, spelling)),
                Language::of(&spell(&not, spelling).expect("text")),
            ];
            assert_eq!(two[0].0, two[1].0, "two routes to one minimal automaton");
            let any = Language::of(&any_string(spelling));
            assert_eq!(Language::of(&any_string_except(&[], spelling)).0, any.0);
            for text in
                ["i", "ide", "ideas", "nam", "e", "éé", "a\\b", "ID", "b", "\u{0}", "😀", "\n"].iter().chain(&words)
            {
                let is_word = words.contains(text);
                assert!(spellings(text).iter().all(|form| two[0].has(form) == (any.has(form) && !is_word)), "{text:?}");
            }
            assert!(!two[0].has("\"i") && !two[0].has("\"\\ud800\"") && !two[0].has("\"\n\""));
        }
    }

    #[test]
    fn many_words_are_quick_to_exclude() {
        let words: Vec<String> = (0..500).map(|i| format!("property_{:x}", i * 7919)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let except = Language::of(&any_string_except(&words, Spelling::Plain));
        assert!(words.iter().all(|word| !except.has(&format!("\"{word}\"")) && except.has(&format!("\"{word}x\""))));
        let letters: usize = words.iter().map(|word| word.len()).sum();
        let states = except.0.as_ref().map_or(0, |dfa| dfa.state_count());
        assert!(states < letters, "{states} states for {letters} letters");
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
        let language =
            Language::of(&spell(&with_length(Some(two), 2, Some(4)).expect("fits"), Spelling::Any).expect("text"));
        for (text, expected) in
            [("a-", true), ("-😀", true), ("ab-é", true), ("a-\\ud83d\\ude00b", true), ("-", false), ("abc-d", false)]
        {
            assert_eq!(language.has(&format!("\"{text}\"")), expected, "{text}");
        }
    }
}
