//! Sets of strings and numbers → terminal expressions; and what there is to know about them before.

use super::number::{self, Decimal, NumberBounds};
use super::shape::{NumberSet, StringSet};
use super::string::{self, Spelling};
use super::{Reason, format, pattern};
use crate::grammar::ir::{Expr, Terminal};
use crate::lexer::{LexerDfa, LexerError, LexerLimits};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;

type Result<T> = std::result::Result<T, Reason>;
/// Why something about a text of the document is refused.
type Refused<'a> = (&'a str, Reason);

/// Size of the automata built to decide what is empty.
const LIMITS: LexerLimits =
    LexerLimits { max_nfa_states: 100_000, max_dfa_states: 4_000, max_subset_elements: 400_000 };

/// Languages of patterns and formats, each built once.
#[derive(Default)]
pub(super) struct Languages<'a> {
    patterns: FxHashMap<&'a str, Result<Rc<Expr>>>,
    pattern_automata: FxHashMap<&'a str, Result<Option<Rc<LexerDfa>>>>,
    empty_strings: FxHashMap<StringSet<'a>, bool>,
}

/// The automaton of "!" and `expr`: lexemes are not empty, but what `expr` matches may be. `None` if it matches nothing.
fn automaton(expr: Expr) -> Result<Option<LexerDfa>> {
    let expr = Expr::Cat(vec![Expr::Bytes(b"!".to_vec()), expr]);
    let terminal = Terminal::plain("the text", expr);
    match LexerDfa::build(&[terminal], &[0], false, &LIMITS) {
        Ok(dfa) => Ok(Some(dfa)),
        Err(LexerError::EmptyLanguage { .. }) => Ok(None),
        Err(error) => Err(Reason(error.to_string())),
    }
}

/// Has a decoded language certainly no strings? Not if it takes too long to find out; compiling will.
pub(super) fn is_empty(decoded: Expr) -> bool {
    is_empty_bytes(Expr::And(vec![any_text(), decoded]))
}

fn is_empty_bytes(expr: Expr) -> bool {
    matches!(automaton(expr), Ok(None))
}

/// Every string, decoded.
pub(super) fn any_text() -> Expr {
    Expr::Repeat(Box::new(string::any_char()), 0, None)
}

fn accepts(dfa: &LexerDfa, text: &str) -> bool {
    dfa.step(0, b'!').and_then(|q| dfa.run(q, text.as_bytes())).is_some_and(|q| dfa.is_accepting(q))
}

pub(super) fn words(texts: &[&str]) -> Expr {
    Expr::Alt(texts.iter().map(|text| Expr::Bytes(text.as_bytes().to_vec())).collect())
}

impl<'a> Languages<'a> {
    pub(super) fn pattern(&mut self, text: &'a str) -> Result<Rc<Expr>> {
        self.patterns.entry(text).or_insert_with(|| pattern::ecma(text).map(Rc::new)).clone()
    }

    /// Does the pattern find something in this text?
    pub(super) fn matches(&mut self, pattern: &'a str, text: &str) -> Result<bool> {
        if let Some(known) = self.pattern_automata.get(pattern) {
            return known.as_ref().map(|dfa| dfa.as_ref().is_some_and(|dfa| accepts(dfa, text))).map_err(Reason::clone);
        }
        let built = self
            .pattern(pattern)
            .and_then(|expr| automaton(Expr::And(vec![any_text(), (*expr).clone()])))
            .map(|dfa| dfa.map(Rc::new));
        self.pattern_automata.insert(pattern, built);
        self.matches(pattern, text)
    }

    /// Is the text in the set?
    pub(super) fn holds(&mut self, set: &StringSet<'a>, text: &str) -> std::result::Result<bool, Refused<'a>> {
        let length = text.chars().count() as u64;
        if length < set.min
            || set.max.is_some_and(|max| length > max)
            || set.finite.as_ref().is_some_and(|finite| finite.binary_search(&text).is_err())
            || set.excluded.binary_search(&text).is_ok()
        {
            return Ok(false);
        }
        for &(pattern, fails) in &set.patterns {
            if self.matches(pattern, text).map_err(|reason| (pattern, reason))? == fails {
                return Ok(false);
            }
        }
        for &(name, fails) in &set.formats {
            let Some(expr) = format::format(name) else { continue };
            let dfa = automaton(expr.clone()).map_err(|reason| (name, reason))?;
            if dfa.is_some_and(|dfa| accepts(&dfa, text)) == fails {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The strings of the set, decoded; `None` if there are none.
    pub(super) fn decoded(&mut self, set: &StringSet<'a>) -> std::result::Result<Option<Expr>, Refused<'a>> {
        if let Some(finite) = &set.finite {
            let rest = StringSet { finite: None, ..set.clone() };
            let mut kept = Vec::new();
            for &text in finite {
                if self.holds(&rest, text)? {
                    kept.push(text);
                }
            }
            return Ok((!kept.is_empty()).then(|| words(&kept)));
        }
        let mut parts = Vec::new();
        let (mut text, mut checked) = ("", set.patterns.len() + set.formats.len() > 1);
        for &(pattern, fails) in &set.patterns {
            let expr = (*self.pattern(pattern).map_err(|reason| (pattern, reason))?).clone();
            parts.push(if fails { Expr::Not(Box::new(expr)) } else { expr });
            text = pattern;
            checked |= fails;
        }
        for &(name, fails) in &set.formats {
            let expr = format::format(name).map_or(Expr::Alt(Vec::new()), Expr::clone);
            parts.push(if fails { Expr::Not(Box::new(expr)) } else { expr });
            text = name;
            checked |= fails;
        }
        if !set.excluded.is_empty() {
            parts.push(Expr::Not(Box::new(words(&set.excluded))));
            checked |= set.max.is_some() || !text.is_empty();
        }
        let bounded = (set.min, set.max) != (0, None);
        checked |= bounded && !parts.is_empty();
        let body = match parts.len() {
            0 => None,
            1 => parts.pop(),
            _ => Some(Expr::And(parts)),
        };
        let expr = string::with_length(body, set.min, set.max).map_err(|reason| (text, reason))?;
        let empty = checked && is_empty(expr.clone());
        Ok((!empty).then_some(expr))
    }

    /// False also where it cannot be decided.
    pub(super) fn string_is_empty(&mut self, set: &StringSet<'a>) -> bool {
        if set.patterns.is_empty() && set.formats.is_empty() && set.excluded.is_empty() {
            return false;
        }
        if let Some(&known) = self.empty_strings.get(set) {
            return known;
        }
        let empty = self.decoded(set).is_ok_and(|expr| expr.is_none());
        self.empty_strings.insert(set.clone(), empty);
        empty
    }

    /// The terminal expression of a union of sets; `None` if they are all empty.
    pub(super) fn strings(&mut self, sets: &[StringSet<'a>]) -> std::result::Result<Option<Arc<Expr>>, Refused<'a>> {
        if let [StringSet { formats, .. }] = sets
            && let [(name, false)] = formats[..]
            && sets[0] == (StringSet { formats: formats.clone(), ..StringSet::default() })
        {
            return Ok(format::spelled(name));
        }
        let mut parts = Vec::new();
        for set in sets {
            if *set == StringSet::default() {
                return Ok(Some(string::any_string(Spelling::Any).into()));
            }
            let unchecked = set.patterns.is_empty() && set.formats.is_empty();
            if let Some(finite) = set.finite.as_ref().filter(|_| unchecked) {
                parts.extend(finite.iter().map(|text| string::literal(text)));
            } else if unchecked && *set == (StringSet { excluded: set.excluded.clone(), ..StringSet::default() }) {
                parts.push(string::any_string_except(&set.excluded, Spelling::Any));
            } else if let Some(expr) = self.decoded(set)? {
                let text = set.patterns.first().or(set.formats.first()).map_or("", |part| part.0);
                parts.push(string::spell(&expr, Spelling::Any).map_err(|reason| (text, reason))?);
            }
        }
        Ok(union(parts).map(Arc::new))
    }

    /// False also where it cannot be decided.
    pub(super) fn number_is_empty(&mut self, set: &NumberSet) -> bool {
        matches!(numbers(std::slice::from_ref(set)), Ok(None))
    }
}

fn union(mut parts: Vec<Expr>) -> Option<Expr> {
    match parts.len() {
        0 => None,
        1 => parts.pop(),
        _ => Some(Expr::Alt(parts)),
    }
}

/// The terminal expression of a union of sets; `None` if they are all empty.
pub(super) fn numbers(sets: &[NumberSet]) -> Result<Option<Expr>> {
    let mut parts = Vec::new();
    for set in sets {
        if *set == NumberSet::default() {
            return Ok(Some(number::any_number()));
        }
        match &set.finite {
            Some(finite) if set.bounds.pointless => parts.extend(finite.iter().map(number::integer_literal)),
            Some(finite) => parts.extend(finite.iter().map(number::literal_of)),
            None => parts.extend(number_set(set)?),
        }
    }
    Ok(union(parts))
}

fn number_set(set: &NumberSet) -> Result<Option<Expr>> {
    let bounds = &set.bounds;
    // Where something is taken away, only plain decimals are left: the complement knows no others.
    let Some(expr) = number::bounded(bounds)? else { return Ok(None) };
    let mut parts = vec![expr];
    if let Some(pointless) = set.not_integer {
        let integers = number::bounded(&NumberBounds { integer: true, pointless, ..NumberBounds::default() })?;
        parts.extend(integers.map(|expr| Expr::Not(Box::new(expr))));
    }
    for multiple in &set.not_multiple_of {
        let multiples =
            number::bounded(&NumberBounds { multiple_of: vec![multiple.clone()], ..NumberBounds::default() })?;
        parts.extend(multiples.map(|expr| Expr::Not(Box::new(expr))));
    }
    parts.extend(set.excluded.iter().map(|n: &Decimal| Expr::Not(Box::new(number::literal_of(n)))));
    if parts.len() == 1 {
        return Ok(parts.pop());
    }
    parts.push(number::plain());
    let expr = Expr::And(parts);
    Ok((!is_empty_bytes(expr.clone())).then_some(expr))
}
