//! Sets of strings and numbers → terminal expressions; and what there is to know about them before.

use super::derivative::Language;
use super::effort::Effort;
use super::number::{self, Decimal, NumberBounds};
use super::shape::{NumberSet, StringSet};
use super::string::{self, Spelling};
use super::{Reason, format, pattern};
use crate::grammar::ir::Expr;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Steps of lowering that a state of an automaton of numbers counts for.
const STEPS_OF_STATE: usize = 16;

type Result<T> = std::result::Result<T, Reason>;
/// Why something about a text of the document is refused.
type Refused<'a> = (&'a str, Reason);

/// Languages of patterns, each built once, and what was asked about them.
#[derive(Default)]
pub(super) struct Languages<'a> {
    patterns: FxHashMap<&'a str, Result<Rc<Expr>>>,
    asked: FxHashMap<&'a str, Option<Language>>,
    empty_strings: FxHashMap<StringSet<'a>, bool>,
    pub(super) effort: Effort,
}

/// Every string, decoded.
pub(super) fn any_text() -> Expr {
    Expr::Repeat(Box::new(string::any_char()), 0, None)
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
        if !self.asked.contains_key(pattern) {
            let language = Language::new(&*self.pattern(pattern)?, &mut self.effort);
            self.asked.insert(pattern, language);
        }
        let language = self.asked.get_mut(pattern).and_then(Option::as_mut);
        let answer = language.and_then(|language| language.accepts(text, &mut self.effort));
        answer
            .ok_or_else(|| Reason(format!("whether {text:?} matches takes too long to find out; simplify the pattern")))
    }

    /// Has a language certainly no strings? Not if it takes too long to find out; compiling will.
    pub(super) fn is_empty(&mut self, decoded: &Expr) -> bool {
        let language = Language::new(decoded, &mut self.effort);
        language.and_then(|mut language| language.is_empty(&mut self.effort)) == Some(true)
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
            let language = Language::new(expr, &mut self.effort);
            match language.and_then(|mut language| language.accepts(text, &mut self.effort)) {
                Some(holds) if holds == fails => return Ok(false),
                Some(_) => {}
                None => {
                    return Err((
                        name,
                        Reason(format!("whether {text:?} is of the format takes too long to find out")),
                    ));
                }
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
        if !checked {
            return Ok(Some(expr));
        }
        let empty = match self.empty_strings.get(set) {
            Some(&known) => known,
            None => self.is_empty(&expr),
        };
        self.empty_strings.insert(set.clone(), empty);
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
        matches!(self.numbers(std::slice::from_ref(set)), Ok(None))
    }

    /// The terminal expression of a union of sets; `None` if they are all empty.
    pub(super) fn numbers(&mut self, sets: &[NumberSet]) -> Result<Option<Expr>> {
        let mut parts = Vec::new();
        for set in sets {
            if *set == NumberSet::default() {
                return Ok(Some(number::any_number()));
            }
            match &set.finite {
                Some(finite) if set.bounds.pointless => parts.extend(finite.iter().map(number::integer_literal)),
                Some(finite) => parts.extend(finite.iter().map(number::literal_of)),
                None => parts.extend(self.number_set(set)?),
            }
        }
        Ok(union(parts))
    }

    fn number_set(&mut self, set: &NumberSet) -> Result<Option<Expr>> {
        let bounds = &set.bounds;
        // Where something is taken away, only plain decimals are left: the complement knows no others.
        let Some(expr) = number::bounded(bounds)? else { return Ok(None) };
        if let Expr::Graph(states) = &expr {
            self.effort.charge(STEPS_OF_STATE * states.len());
        }
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
        Ok((!self.is_empty(&expr)).then_some(expr))
    }
}

fn union(mut parts: Vec<Expr>) -> Option<Expr> {
    match parts.len() {
        0 => None,
        1 => parts.pop(),
        _ => Some(Expr::Alt(parts)),
    }
}
