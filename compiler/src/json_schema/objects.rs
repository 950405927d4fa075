//! Objects: what each key can hold, and the automaton of their members.

use super::emit::Emitter;
use super::languages::{any_text, words};
use super::list::{Brackets, State};
use super::normalise::{Result, names, patterns};
use super::shape::{ANY, Conj, KeyKind, Meet, NOTHING, ObjectSet, Presence, Scope};
use super::string::{self, Spelling};
use super::{PropertyOrder, SchemaError, Severity};
use crate::grammar::ir::{Expr, TerminalId};
use rustc_hash::FxHashMap;

/// Steps of lowering that a letter of a declared key counts for.
const STEPS_OF_LETTER: usize = 16;
/// States of one object's automaton.
const MAX_STATES: usize = 20_000;
/// Patterns that apply to the keys of one object.
const MAX_PATTERNS: usize = 30;
/// Kinds of keys that those patterns tell apart.
const MAX_ATOMS: usize = 40;
/// Declared keys that can come in any order.
const MAX_ANY_ORDER: usize = 12;
/// Keys of which one object must hold certain ones, without their names being known.
const MAX_EXISTS: usize = 4;

/// An object of which each key is either declared, or of one of several disjoint classes.
struct Resolved<'a> {
    declared: Vec<Declared<'a>>,
    classes: Vec<Class>,
    /// What the keys that must exist hold.
    exists: Vec<Conj>,
}

struct Declared<'a> {
    name: &'a str,
    value: Conj,
    required: bool,
    /// Which of [`Resolved::exists`] it can be.
    exists: u32,
}

struct Class {
    key: TerminalId,
    value: Conj,
    exists: u32,
}

/// What the members so far come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Progress {
    /// Number of declared keys that are past, or the set of those that were used.
    position: u32,
    /// Members, as far as they are counted.
    count: u64,
    /// Which of the keys that must exist do.
    exists: u32,
}

impl<'a> Emitter<'a> {
    /// `lhs` → any of these objects.
    pub(super) fn objects(&mut self, lhs: u32, sets: &[ObjectSet<'a>]) -> Result<()> {
        let brackets = Brackets { open: self.punctuation("{"), close: self.punctuation("}"), empty: true };
        for set in sets {
            let Some(resolved) = self.resolve(set)? else { continue };
            let states = self.members(set, &resolved)?;
            let brackets = Brackets { empty: set.min == 0, ..brackets };
            if sets.len() == 1 {
                self.list_left(lhs, &states, brackets);
            } else {
                self.list_right(lhs, &states, brackets);
            }
        }
        Ok(())
    }

    /// `None` if no object satisfies the set.
    fn resolve(&mut self, set: &ObjectSet<'a>) -> Result<Option<Resolved<'a>>> {
        let mut order: Vec<&'a str> = Vec::with_capacity(set.named.len());
        order.extend(set.named.keys());
        order.sort_by_key(|name| set.named[name].declared.unwrap_or(u32::MAX));
        // A name that only tells which keys are additional is a key like others, but has to be told apart.
        for scope in scopes(set) {
            order.extend(names(scope).filter(|name| !set.named.contains_key(name)));
        }
        dedup(&mut order, set);
        if set.exists.len() > MAX_EXISTS {
            let reason = format!("more than {MAX_EXISTS} unnamed keys would have to exist; simplify what is negated");
            return Err(self.unsupported_here(reason));
        }
        let mut resolved = Resolved {
            declared: Vec::with_capacity(order.len()),
            classes: Vec::new(),
            exists: set.exists.iter().map(|e| e.value).collect(),
        };
        for &name in &order {
            let said = set.named.get(name);
            if said.is_some_and(|said| said.presence == Presence::Forbidden) {
                continue;
            }
            let required = said.is_some_and(|said| said.presence == Presence::Required);
            let value = self.normaliser.value_of(set, name, said.map_or(ANY, |said| said.value))?;
            if value == NOTHING || self.normaliser.is_empty(value) {
                if required {
                    return Ok(None);
                }
                continue;
            }
            let mut exists = 0;
            for (i, e) in set.exists.iter().enumerate() {
                let is = match &e.key {
                    KeyKind::Outside(scope) => !self.normaliser.mentions(*scope, name)?,
                    KeyKind::Matching(pattern) => self.normaliser.matches(pattern, name)?,
                    KeyKind::Of(conj) => {
                        let shape = self.normaliser.expand(*conj)?;
                        let mut holds = false;
                        for strings in &shape.strings {
                            holds = holds || self.normaliser.holds(strings, name)?;
                        }
                        holds
                    }
                };
                exists |= u32::from(is) << i;
            }
            resolved.declared.push(Declared { name, value, required, exists });
        }
        self.classes(set, &order, &mut resolved)?;
        Ok(Some(resolved))
    }

    /// The keys that have no name in `order`, divided by which patterns they match.
    fn classes(&mut self, set: &ObjectSet<'a>, order: &[&'a str], out: &mut Resolved<'a>) -> Result<()> {
        let mut tests: Vec<&'a str> = Vec::new();
        let mentioned = set.patterns.iter().map(|p| p.0).chain(scopes(set).flat_map(patterns));
        for pattern in mentioned.chain(set.exists.iter().filter_map(|e| match e.key {
            KeyKind::Matching(pattern) => Some(pattern),
            _ => None,
        })) {
            if !tests.contains(&pattern) {
                tests.push(pattern);
            }
        }
        if tests.len() > MAX_PATTERNS {
            let reason = format!("more than {MAX_PATTERNS} patterns apply to the keys of one object; merge them");
            return Err(self.unsupported_here(reason));
        }
        let mut base = Vec::new();
        for &names in &set.names {
            match self.key_language(names)? {
                Some(Some(expr)) => base.push(expr),
                Some(None) => return Ok(()),
                None => {}
            }
        }
        let of: Vec<Option<Expr>> = set
            .exists
            .iter()
            .map(|e| match e.key {
                KeyKind::Of(conj) => Ok(Some(self.key_language(conj)?.flatten().unwrap_or_else(any_text))),
                _ => Ok(None),
            })
            .collect::<Result<_>>()?;
        let splits: Vec<usize> = (0..of.len()).filter(|&i| of[i].is_some()).collect();
        let mut atoms: Vec<(u32, Vec<Expr>)> = vec![(0, base)];
        for (i, &pattern) in tests.iter().enumerate() {
            let expr = self.normaliser.languages.pattern(pattern);
            let expr = (*expr.map_err(|reason| self.normaliser.at_text(pattern, reason.0))?).clone();
            let mut next = Vec::new();
            for (signs, parts) in atoms {
                for sign in [1, 0] {
                    let mut parts = parts.clone();
                    parts.push(if sign == 1 { expr.clone() } else { not(expr.clone()) });
                    let signs = signs | sign << i;
                    let decided = (1 << (i + 1)) - 1;
                    if self.atom_value(set, &tests, signs, decided) == NOTHING || self.nothing(&parts) {
                        continue;
                    }
                    next.push((signs, parts));
                }
            }
            atoms = next;
            if atoms.len() > MAX_ATOMS {
                let reason = format!("the patterns of its keys overlap in more than {MAX_ATOMS} ways; separate them");
                return Err(SchemaError { severity: Severity::Budget, ..self.unsupported_here(reason) });
            }
        }
        let mut groups: Vec<((Conj, u32), Vec<Expr>)> = Vec::new();
        for (signs, parts) in atoms {
            let value = self.atom_value(set, &tests, signs, u32::MAX);
            if value == NOTHING || self.normaliser.is_empty(value) {
                continue;
            }
            let mut exists = 0;
            for (i, e) in set.exists.iter().enumerate() {
                let is = match &e.key {
                    KeyKind::Outside(scope) => !patterns(*scope).any(|p| matched(&tests, signs, p)),
                    KeyKind::Matching(pattern) => matched(&tests, signs, pattern),
                    KeyKind::Of(_) => false,
                };
                exists |= u32::from(is) << i;
            }
            for choice in 0..1u32 << splits.len() {
                let (mut parts, mut exists) = (parts.clone(), exists);
                for (bit, &i) in splits.iter().enumerate() {
                    let expr = of[i].clone().expect("a split");
                    let is = choice >> bit & 1;
                    parts.push(if is == 1 { expr } else { not(expr) });
                    exists |= is << i;
                }
                if parts.len() > 1 && self.nothing(&parts) {
                    continue;
                }
                let expr = conjunction(parts);
                match groups.iter_mut().find(|(key, _)| *key == (value, exists)) {
                    Some((_, exprs)) => exprs.push(expr),
                    None => groups.push(((value, exists), vec![expr])),
                }
            }
        }
        for ((value, exists), exprs) in groups {
            if let Some(key) = self.class_key(exprs, order)? {
                out.classes.push(Class { key, value, exists });
            }
        }
        Ok(())
    }

    /// What keys of an atom hold, by the patterns whose bit is in `decided`.
    fn atom_value(&mut self, set: &ObjectSet<'a>, tests: &[&str], signs: u32, decided: u32) -> Conj {
        let mut value = ANY;
        for &(pattern, item) in &set.patterns {
            if matched(tests, signs, pattern) {
                value = self.normaliser.meet(value, item);
            }
        }
        for &(scope, item) in &set.additional {
            let mut known = patterns(scope).map(|p| tests.iter().position(|t| *t == p).expect("a test"));
            if known.all(|i| decided >> i & 1 == 1 && signs >> i & 1 == 0) {
                value = self.normaliser.meet(value, item);
            }
        }
        value
    }

    /// The terminal of keys in any of `exprs` (decoded) that are none of `declared`.
    fn class_key(&mut self, exprs: Vec<Expr>, declared: &[&'a str]) -> Result<Option<TerminalId>> {
        let all = exprs.iter().any(|expr| *expr == any_text());
        if let Some(&known) = self.other_keys.get(declared).filter(|_| all) {
            return Ok(Some(known));
        }
        // Each letter is a state.
        self.normaliser.spend(declared.iter().map(|name| name.len()).sum::<usize>().saturating_mul(STEPS_OF_LETTER))?;
        let expr = match declared {
            [] if all => string::any_string(Spelling::Plain),
            declared if all => string::any_string_except(declared, Spelling::Plain),
            [] => self.spelled(&union(exprs))?,
            declared => {
                let decoded = Expr::And(vec![union(exprs), not(words(declared))]);
                if self.nothing(std::slice::from_ref(&decoded)) {
                    return Ok(None);
                }
                self.spelled(&decoded)?
            }
        };
        let key = self.terminal("key", expr);
        if all {
            self.other_keys.insert(declared.to_vec(), key);
        }
        Ok(Some(key))
    }

    fn nothing(&mut self, parts: &[Expr]) -> bool {
        self.normaliser.languages.is_empty(&conjunction(parts.to_vec()))
    }

    fn spelled(&self, decoded: &Expr) -> Result<Expr> {
        string::spell(decoded, Spelling::Plain).map_err(|reason| self.unsupported_here(reason.0))
    }

    /// The strings of a conjunction, decoded: outer `None` for all, inner for none.
    fn key_language(&mut self, conj: Conj) -> Result<Option<Option<Expr>>> {
        let shape = self.normaliser.expand(conj)?;
        if shape.strings.iter().any(|set| *set == Default::default()) {
            return Ok(None);
        }
        let mut parts = Vec::new();
        for set in &shape.strings {
            let decoded = self.normaliser.languages.decoded(set);
            parts.extend(decoded.map_err(|(text, reason)| self.normaliser.at_text(text, reason.0))?);
        }
        Ok(Some(if parts.is_empty() { None } else { Some(union(parts)) }))
    }

    fn members(&mut self, set: &ObjectSet<'a>, resolved: &Resolved<'a>) -> Result<Vec<State>> {
        let required = resolved.declared.iter().filter(|d| d.required).count() as u64;
        let counted_min = if set.min <= required.max(1) { 0 } else { set.min };
        let most = if resolved.classes.is_empty() { resolved.declared.len() as u64 } else { u64::MAX };
        let counted_max = set.max.filter(|&max| max < most);
        let repeated = !resolved.classes.is_empty();
        if repeated && counted_min > required + 1 {
            let error = self.unsupported_here(format!(
                "at least {} keys without names would have to differ, which a grammar cannot see; name them, or lower \
                 minProperties",
                counted_min - required
            ));
            self.normaliser.relax(error)?;
        }
        let any_order = self.normaliser.options.property_order == PropertyOrder::Any;
        if any_order && resolved.declared.len() > MAX_ANY_ORDER {
            return Err(self.unsupported_here(format!(
                "property_order=\"any\" takes at most {MAX_ANY_ORDER} declared properties, there are {}",
                resolved.declared.len()
            )));
        }
        let build = Build { resolved, any_order, min: counted_min, max: counted_max };
        build.run(self)
    }

    pub(super) fn unsupported_here(&self, reason: String) -> SchemaError {
        SchemaError { severity: Severity::Unsupported, ..self.normaliser.error(self.here, "", reason) }
    }
}

/// One automaton under construction.
struct Build<'r, 'a> {
    resolved: &'r Resolved<'a>,
    any_order: bool,
    min: u64,
    max: Option<u64>,
}

impl<'a> Build<'_, 'a> {
    fn run(&self, emitter: &mut Emitter<'a>) -> Result<Vec<State>> {
        let start = Progress { position: 0, count: 0, exists: 0 };
        let mut ids: FxHashMap<Progress, usize> = FxHashMap::default();
        let mut list = vec![start];
        ids.insert(start, 0);
        let mut states = Vec::new();
        while let Some(&progress) = list.get(states.len()) {
            let mut id = |progress: Progress| {
                *ids.entry(progress).or_insert_with(|| {
                    list.push(progress);
                    list.len() - 1
                })
            };
            let state = self.state(emitter, progress, &mut id)?;
            states.push(state);
            if list.len() > MAX_STATES {
                return Err(SchemaError {
                    severity: Severity::Budget,
                    ..emitter.unsupported_here(format!(
                        "the object takes more than {MAX_STATES} states; loosen minProperties or maxProperties"
                    ))
                });
            }
        }
        Ok(states)
    }

    fn state(
        &self,
        emitter: &mut Emitter<'a>,
        progress: Progress,
        id: &mut dyn FnMut(Progress) -> usize,
    ) -> Result<State> {
        let declared = &self.resolved.declared;
        let mut state = State::default();
        let all_exist = progress.exists + 1 == 1 << self.resolved.exists.len();
        let enough = all_exist && progress.count >= self.min;
        let full = self.max.is_some_and(|max| progress.count >= max);
        let classes_now;
        if self.any_order {
            for (i, one) in declared.iter().enumerate() {
                if progress.position >> i & 1 == 0 && !full {
                    let next = Progress { position: progress.position | 1 << i, ..progress };
                    self.named(emitter, one, next, id, &mut state)?;
                }
            }
            let missing = declared.iter().enumerate().any(|(i, d)| d.required && progress.position >> i & 1 == 0);
            state.accepting = enough && !missing;
            classes_now = true;
        } else {
            let here = declared.get(progress.position as usize);
            if let Some(one) = here {
                let next = Progress { position: progress.position + 1, ..progress };
                if !full {
                    self.named(emitter, one, next, id, &mut state)?;
                }
                if !one.required {
                    state.skip = Some(id(next));
                }
            }
            state.accepting = here.is_none() && enough;
            classes_now = here.is_none();
        }
        if classes_now && !full {
            for class in &self.resolved.classes {
                for (value, exists) in self.split(emitter, class.value, class.exists, progress.exists, true)? {
                    if let Some(symbol) = emitter.symbol(value)? {
                        let pair = emitter.pair(class.key, symbol);
                        let next = Progress { count: self.counted(progress.count), exists, ..progress };
                        state.edges.push((pair, id(next)));
                    }
                }
            }
        }
        Ok(state)
    }

    fn named(
        &self,
        emitter: &mut Emitter<'a>,
        one: &Declared<'a>,
        next: Progress,
        id: &mut dyn FnMut(Progress) -> usize,
        state: &mut State,
    ) -> Result<()> {
        let key = emitter.key(one.name);
        for (value, exists) in self.split(emitter, one.value, one.exists, next.exists, false)? {
            if let Some(symbol) = emitter.symbol(value)? {
                let pair = emitter.pair(key, symbol);
                state.edges.push((pair, id(Progress { count: self.counted(next.count), exists, ..next })));
            }
        }
        Ok(())
    }

    /// One more member, as far as that matters.
    fn counted(&self, count: u64) -> u64 {
        (count + 1).min(self.max.unwrap_or(self.min))
    }

    /// Divide a value by which of the keys that must exist it can be.
    ///
    /// If a key comes twice its last value counts. So behind a key that must exist, those that might be the same (they are
    /// `repeated`) must be like it.
    fn split(
        &self,
        emitter: &mut Emitter<'a>,
        value: Conj,
        can: u32,
        have: u32,
        repeated: bool,
    ) -> Result<Vec<(Conj, u32)>> {
        let mut parts = vec![(value, have)];
        for (i, &wanted) in self.resolved.exists.iter().enumerate() {
            if can >> i & 1 == 0 || (have >> i & 1 == 1 && !repeated) {
                continue;
            }
            if have >> i & 1 == 1 {
                parts.iter_mut().for_each(|part| part.0 = emitter.normaliser.meet(part.0, wanted));
                parts.retain(|part| part.0 != NOTHING);
                continue;
            }
            let Some(other) = emitter.normaliser.complement(wanted) else {
                return Err(emitter.unsupported_here("a key that must exist holds too complex a value".into()));
            };
            let mut next = Vec::new();
            for (value, exists) in parts {
                for (part, exists) in [(wanted, exists | 1 << i), (other, exists)] {
                    let both = emitter.normaliser.meet(value, part);
                    if both != NOTHING && !emitter.normaliser.is_empty(both) {
                        next.push((both, exists));
                    }
                }
            }
            parts = next;
        }
        Ok(parts)
    }
}

fn not(expr: Expr) -> Expr {
    Expr::Not(Box::new(expr))
}

fn conjunction(mut parts: Vec<Expr>) -> Expr {
    match parts.len() {
        0 => any_text(),
        1 => parts.remove(0),
        _ => Expr::And(parts),
    }
}

fn union(mut parts: Vec<Expr>) -> Expr {
    if parts.len() == 1 { parts.remove(0) } else { Expr::Alt(parts) }
}

fn matched(tests: &[&str], signs: u32, pattern: &str) -> bool {
    tests.iter().position(|test| *test == pattern).is_some_and(|i| signs >> i & 1 == 1)
}

/// Everything that says which keys are additional.
fn scopes<'s, 'a>(set: &'s ObjectSet<'a>) -> impl Iterator<Item = Scope<'a>> + 's {
    set.additional.iter().map(|a| a.0).chain(set.exists.iter().filter_map(|e| match e.key {
        KeyKind::Outside(scope) => Some(scope),
        _ => None,
    }))
}

/// Drop repeated names behind those that the set itself names.
fn dedup(order: &mut Vec<&str>, set: &ObjectSet<'_>) {
    let own = set.named.len();
    let mut seen: rustc_hash::FxHashSet<&str> = rustc_hash::FxHashSet::default();
    let mut i = 0;
    order.retain(|name| {
        i += 1;
        i <= own || seen.insert(name)
    });
}
