//! Arrays as productions.
//!
//! A count is written with doubling: `twice_k` is 2^k items, so n items take log n rules, LR states and stack symbols.
//! Arrays with `contains` or `uniqueItems` are automata like objects, of which few have more than a handful of states.

use super::emit::Emitter;
use super::list::{Brackets, State};
use super::normalise::Result;
use super::number::Decimal;
use super::shape::{ArraySet, Conj, Meet, NOTHING};
use super::{SchemaError, Severity};
use crate::grammar::ir::Symbol;
use rustc_hash::FxHashMap;

/// States of one array's automaton.
const MAX_STATES: usize = 20_000;
/// Values of which an array can hold each once.
const MAX_UNIQUE: usize = 16;
/// `contains` of one array, those that come from complements included.
const MAX_CONTAINS: usize = 4;
/// Where a length is cut off; no output is that long.
const MAX_LENGTH: u64 = 1 << 40;

/// A part of a counted list, by what it consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Counted {
    /// 2^k times a comma and an item.
    Twice(Symbol, u32),
    /// At most so many times.
    UpTo(Symbol, u64),
    /// Any number of times.
    Star(Symbol),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Progress {
    length: u64,
    /// Matches of each `contains`, as far as they are counted.
    matches: Vec<u64>,
    /// Values that were there.
    used: u32,
}

/// A value that an item can have.
enum Item<'a> {
    Known(Symbol, Value<'a>),
    Kind(Conj),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value<'a> {
    Null,
    Bool(bool),
    Number(Decimal),
    Text(&'a str),
}

impl<'a> Emitter<'a> {
    /// `lhs` → any of these arrays.
    pub(super) fn arrays(&mut self, lhs: u32, sets: &[ArraySet]) -> Result<()> {
        for set in sets {
            let unique = set.unique && set.max.is_none_or(|max| max > 1) && !self.items_differ(set);
            if !unique && set.contains.is_empty() {
                self.plain(lhs, set)?;
            } else {
                self.automaton(lhs, set, unique, sets.len() > 1)?;
            }
        }
        Ok(())
    }

    /// Can no two items ever be equal?
    fn items_differ(&mut self, set: &ArraySet) -> bool {
        if set.max.is_none_or(|max| max > set.prefix.len() as u64) {
            return false;
        }
        let prefix = &set.prefix;
        (0..prefix.len()).all(|i| {
            (0..i).all(|j| {
                let both = self.normaliser.meet(prefix[i], prefix[j]);
                self.normaliser.is_empty(both)
            })
        })
    }

    fn plain(&mut self, lhs: u32, set: &ArraySet) -> Result<()> {
        let (open, close, comma) =
            (Symbol::T(self.punctuation("[")), Symbol::T(self.punctuation("]")), Symbol::T(self.comma()));
        if set.min == 0 {
            self.produce(lhs, vec![open, close]);
        }
        let max = set.max.unwrap_or(u64::MAX);
        if max == 0 {
            return Ok(());
        }
        let rest = if set.rest == NOTHING { None } else { self.symbol(set.rest)? };
        if let (Some(item), [], 0..=1, u64::MAX) = (rest, &set.prefix[..], set.min, max) {
            let items = self.run(&[item]);
            self.produce(lhs, vec![open, Symbol::N(items), close]);
            return Ok(());
        }
        // What can follow the first `i` items, from the back.
        let length = set.prefix.len().max(1);
        let mut prefix = Vec::with_capacity(length);
        for i in 0..length {
            match self.symbol(set.item(i))? {
                Some(item) => prefix.push(item),
                None => break,
            }
        }
        if (prefix.len() as u64) < set.min.min(length as u64) || prefix.is_empty() {
            return Ok(());
        }
        let cut = prefix.len() < length;
        let counted = prefix.len() as u64;
        let mut tail = match rest.filter(|_| !cut && max > counted) {
            Some(rest) => self.more(rest, set.min.saturating_sub(counted), set.max.map(|max| max - counted)),
            None if set.min > counted => return Ok(()),
            None => Vec::new(),
        };
        for (i, &item) in prefix.iter().enumerate().skip(1).rev() {
            let mut one = vec![comma, item];
            one.append(&mut tail);
            if set.min > i as u64 {
                tail = one;
            } else {
                let optional = self.nonterminal("items");
                self.produce(optional, vec![]);
                self.produce(optional, one);
                tail = vec![Symbol::N(optional)];
            }
        }
        let mut rhs = vec![open, prefix[0]];
        rhs.append(&mut tail);
        rhs.push(close);
        self.produce(lhs, rhs);
        Ok(())
    }

    /// `min` to `max` times a comma and an item.
    fn more(&mut self, item: Symbol, min: u64, max: Option<u64>) -> Vec<Symbol> {
        let max = max.filter(|&max| max < MAX_LENGTH);
        let min = min.min(MAX_LENGTH);
        let mut out: Vec<Symbol> =
            (0..64).rev().filter(|k| min >> k & 1 == 1).map(|k| Symbol::N(self.twice(item, k))).collect();
        match max {
            None => out.push(Symbol::N(self.star(item))),
            Some(max) if max > min => out.push(Symbol::N(self.up_to(item, max - min))),
            Some(_) => {}
        }
        out
    }

    fn counted(&mut self, part: Counted) -> (u32, bool) {
        if let Some(&known) = self.counted.get(&part) {
            return (known, true);
        }
        let new = self.nonterminal("items");
        self.counted.insert(part, new);
        (new, false)
    }

    fn twice(&mut self, item: Symbol, k: u32) -> u32 {
        let (lhs, known) = self.counted(Counted::Twice(item, k));
        if !known {
            let rhs = match k {
                0 => vec![Symbol::T(self.comma()), item],
                _ => vec![Symbol::N(self.twice(item, k - 1)); 2],
            };
            self.produce(lhs, rhs);
        }
        lhs
    }

    fn up_to(&mut self, item: Symbol, max: u64) -> u32 {
        let (lhs, known) = self.counted(Counted::UpTo(item, max));
        if known {
            return lhs;
        }
        if max == 0 {
            self.produce(lhs, vec![]);
            return lhs;
        }
        // Fewer than 2^k, or 2^k and at most as many as are left.
        let k = max.ilog2();
        let fewer = self.up_to(item, (1 << k) - 1);
        let whole = self.twice(item, k);
        let left = self.up_to(item, max - (1 << k));
        self.produce(lhs, vec![Symbol::N(fewer)]);
        self.produce(lhs, vec![Symbol::N(whole), Symbol::N(left)]);
        lhs
    }

    fn star(&mut self, item: Symbol) -> u32 {
        let (lhs, known) = self.counted(Counted::Star(item));
        if !known {
            self.produce(lhs, vec![]);
            self.produce(lhs, vec![Symbol::N(lhs), Symbol::T(self.comma()), item]);
        }
        lhs
    }

    /// One or more of these, with commas.
    pub(super) fn run(&mut self, symbols: &[Symbol]) -> u32 {
        if let Some(&known) = self.runs.get(symbols) {
            return known;
        }
        let lhs = self.nonterminal("items");
        self.runs.insert(symbols.to_vec(), lhs);
        let comma = Symbol::T(self.comma());
        for &symbol in symbols {
            self.produce(lhs, vec![symbol]);
            self.produce(lhs, vec![Symbol::N(lhs), comma, symbol]);
        }
        lhs
    }

    fn automaton(&mut self, lhs: u32, set: &ArraySet, unique: bool, several: bool) -> Result<()> {
        if set.contains.len() > MAX_CONTAINS {
            return Err(self.unsupported_here(format!("more than {MAX_CONTAINS} contains apply to one array")));
        }
        let mut values: Vec<Value<'a>> = Vec::new();
        let mut unique = unique;
        if unique && !self.finite(set, &mut values)? {
            let error = self.unsupported_here(format!(
                "uniqueItems needs items with at most {MAX_UNIQUE} values, named by enum, const or small ranges of integers"
            ));
            self.normaliser.relax(error)?;
            unique = false;
            if set.contains.is_empty() {
                return self.plain(lhs, set);
            }
        }
        let start = Progress { length: 0, matches: vec![0; set.contains.len()], used: 0 };
        let mut ids: FxHashMap<Progress, usize> = FxHashMap::default();
        ids.insert(start.clone(), 0);
        let (mut list, mut states) = (vec![start], Vec::new());
        // Beyond this, lengths make no difference.
        let from = set.contains.iter().map(|c| c.from as u64).max().unwrap_or(0);
        let horizon = set.max.unwrap_or(set.min).max(set.prefix.len() as u64).max(from);
        while let Some(progress) = list.get(states.len()).cloned() {
            let mut state = State {
                accepting: progress.length >= set.min
                    && set.contains.iter().zip(&progress.matches).all(|(c, &m)| m >= c.min),
                ..State::default()
            };
            if set.max.is_none_or(|max| progress.length < max) {
                for (symbol, next) in self.steps(set, &progress, horizon, unique.then_some(&values))? {
                    let id = *ids.entry(next).or_insert_with_key(|next| {
                        list.push(next.clone());
                        list.len() - 1
                    });
                    state.edges.push((symbol, id));
                }
            }
            states.push(state);
            if list.len() > MAX_STATES {
                let reason = format!("the array takes more than {MAX_STATES} states; loosen its limits");
                return Err(SchemaError { severity: Severity::Budget, ..self.unsupported_here(reason) });
            }
        }
        let brackets = Brackets { open: self.punctuation("["), close: self.punctuation("]"), empty: true };
        if several {
            self.list_right(lhs, &states, brackets);
        } else {
            self.list_left(lhs, &states, brackets);
        }
        Ok(())
    }

    /// The items that can come next, and what the array comes to with each.
    fn steps(
        &mut self,
        set: &ArraySet,
        progress: &Progress,
        horizon: u64,
        values: Option<&Vec<Value<'a>>>,
    ) -> Result<Vec<(Symbol, Progress)>> {
        let index = progress.length as usize;
        let mut parts = vec![(set.item(index), progress.matches.clone())];
        for (i, contains) in set.contains.iter().enumerate().filter(|(_, c)| index >= c.from) {
            let Some(other) = self.normaliser.complement(contains.item) else {
                return Err(self.unsupported_here("contains is about too complex a combination of schemas".into()));
            };
            let mut next = Vec::new();
            for (item, matches) in parts {
                let fails = self.normaliser.meet(item, other);
                if fails != NOTHING && !self.normaliser.is_empty(fails) {
                    next.push((fails, matches.clone()));
                }
                let holds = self.normaliser.meet(item, contains.item);
                if holds == NOTHING
                    || contains.max.is_some_and(|max| matches[i] >= max)
                    || self.normaliser.is_empty(holds)
                {
                    continue;
                }
                let mut matches = matches;
                matches[i] = (matches[i] + 1).min(contains.max.unwrap_or(contains.min));
                next.push((holds, matches));
            }
            parts = next;
        }
        let length = (progress.length + 1).min(horizon);
        let mut out = Vec::new();
        for (item, matches) in parts {
            let items = match values {
                Some(_) => self.known_items(item)?.unwrap_or_default(),
                None => vec![Item::Kind(item)],
            };
            for item in items {
                let (symbol, used) = match item {
                    Item::Kind(conj) => match self.symbol(conj)? {
                        Some(symbol) => (symbol, progress.used),
                        None => continue,
                    },
                    Item::Known(symbol, value) => {
                        let place = values.and_then(|values| values.iter().position(|v| *v == value));
                        let bit = 1 << place.expect("a value of an item");
                        if progress.used & bit != 0 {
                            continue;
                        }
                        (symbol, progress.used | bit)
                    }
                };
                out.push((symbol, Progress { length, matches: matches.clone(), used }));
            }
        }
        Ok(out)
    }

    /// Collect the values of all items; false if there are too many.
    fn finite(&mut self, set: &ArraySet, values: &mut Vec<Value<'a>>) -> Result<bool> {
        let mut kinds = set.prefix.clone();
        if set.rest != NOTHING {
            kinds.push(set.rest);
        }
        for kind in kinds {
            let Some(items) = self.known_items(kind)? else { return Ok(false) };
            for item in items {
                let Item::Known(_, value) = item else { return Ok(false) };
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            if values.len() > MAX_UNIQUE {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The values of a kind of item, each with its symbol; `None` if there are too many.
    fn known_items(&mut self, kind: Conj) -> Result<Option<Vec<Item<'a>>>> {
        let shape = self.normaliser.expand(kind)?;
        if !shape.arrays.is_empty() || !shape.objects.is_empty() {
            return Ok(None);
        }
        let mut out = Vec::new();
        for (there, text, value) in [
            (shape.null, "null", Value::Null),
            (shape.yes, "true", Value::Bool(true)),
            (shape.no, "false", Value::Bool(false)),
        ] {
            if there {
                out.push(Item::Known(Symbol::T(self.punctuation(text)), value));
            }
        }
        let mut seen: Vec<Value<'a>> = Vec::new();
        for set in &shape.strings {
            let Some(finite) = set.finite.clone() else { return Ok(None) };
            for text in finite {
                if self.normaliser.holds(set, text)? {
                    seen.push(Value::Text(text));
                }
            }
        }
        for set in &shape.numbers {
            match &set.finite {
                Some(finite) => seen.extend(finite.iter().cloned().map(Value::Number)),
                None => {
                    let (Some(min), Some(max)) = (&set.bounds.min, &set.bounds.max) else { return Ok(None) };
                    let range = [&min.0, &max.0].map(|n| n.to_string().split('.').next().map(str::parse::<i64>));
                    let [Some(Ok(first)), Some(Ok(last))] = range else { return Ok(None) };
                    if !set.bounds.integer || last.saturating_sub(first) > MAX_UNIQUE as i64 {
                        return Ok(None);
                    }
                    let all = (first - 1..=last + 1).map(Decimal::from_i64);
                    seen.extend(all.filter(|n| set.contains(n)).map(Value::Number));
                }
            }
        }
        for (i, value) in seen.iter().enumerate() {
            if !seen[..i].contains(value) {
                let symbol = match value {
                    Value::Text(text) => self.text(text),
                    Value::Number(n) => self.number(n),
                    _ => continue,
                };
                out.push(Item::Known(symbol, value.clone()));
            }
        }
        Ok(Some(out))
    }
}
