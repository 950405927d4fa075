//! The normal form: a set of JSON values as unions, type by type, of conjunctions of constraints.
//!
//! A [`Shape`] is closed under union and intersection. The values of properties and the items of arrays are not spelt out
//! in it: they are [`Conj`]unctions of schemas of the document and their complements, of which there are finitely many, so
//! recursion needs no care here.

use super::number::{Decimal, NumberBounds};
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use serde_json::Value;

/// An interned conjunction of schemas and complements of schemas: a set of JSON values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Conj(pub(super) u32);

/// The conjunction of nothing: every value.
pub(super) const ANY: Conj = Conj(0);
/// The conjunction that no value satisfies.
pub(super) const NOTHING: Conj = Conj(1);

/// Strings that satisfy all of this.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct StringSet<'a> {
    pub(super) min: u64,
    pub(super) max: Option<u64>,
    /// Patterns, and whether they must fail.
    pub(super) patterns: Vec<(&'a str, bool)>,
    /// Known formats, and whether they must fail.
    pub(super) formats: Vec<(&'a str, bool)>,
    /// One of these, sorted.
    pub(super) finite: Option<Vec<&'a str>>,
    /// None of these, sorted.
    pub(super) excluded: Vec<&'a str>,
}

/// Whether integers are spelt without a point, as in draft 4.
pub(super) type Pointless = bool;

/// Numbers that satisfy all of this.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct NumberSet {
    pub(super) bounds: NumberBounds,
    pub(super) not_multiple_of: Vec<Decimal>,
    /// Not an integer, or (of integers without a point) not such a one.
    pub(super) not_integer: Option<Pointless>,
    /// One of these, sorted.
    pub(super) finite: Option<Vec<Decimal>>,
    /// None of these, sorted.
    pub(super) excluded: Vec<Decimal>,
}

/// Arrays that satisfy all of this.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ArraySet {
    pub(super) prefix: Vec<Conj>,
    pub(super) rest: Conj,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
    pub(super) contains: Vec<Contains>,
    pub(super) unique: bool,
}

/// `min` to `max` of the items from index `from` on are of this kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Contains {
    pub(super) from: usize,
    pub(super) item: Conj,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

/// Objects that satisfy all of this.
#[derive(Debug, Clone, Default)]
pub(super) struct ObjectSet<'a> {
    /// What is said of names, in the order in which they are mentioned.
    pub(super) named: IndexMap<&'a str, Named, FxBuildHasher>,
    /// Number of declared names.
    pub(super) declared: u32,
    /// What is said of keys that match a pattern.
    pub(super) patterns: Vec<(&'a str, Conj)>,
    /// What is said of keys that a schema does not mention.
    pub(super) additional: Vec<(Scope<'a>, Conj)>,
    /// What every key is.
    pub(super) names: Vec<Conj>,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
    /// Keys that must exist.
    pub(super) exists: Vec<Exists<'a>>,
}

/// What is said of the key of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Named {
    pub(super) value: Conj,
    pub(super) presence: Presence,
    /// Place among the names under `properties`; none if it is only under `required` or the like.
    pub(super) declared: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Presence {
    Optional,
    Required,
    Forbidden,
}

/// The keys that an object of the document mentions: as a schema, or as a constant.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scope<'a> {
    Schema(&'a Value),
    Const(&'a Value),
}

/// Some key of this kind has a value of this kind.
#[derive(Debug, Clone)]
pub(super) struct Exists<'a> {
    pub(super) key: KeyKind<'a>,
    pub(super) value: Conj,
}

#[derive(Debug, Clone)]
pub(super) enum KeyKind<'a> {
    Outside(Scope<'a>),
    Matching(&'a str),
    Of(Conj),
}

/// A set of JSON values.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape<'a> {
    pub(super) null: bool,
    pub(super) yes: bool,
    pub(super) no: bool,
    pub(super) numbers: Vec<NumberSet>,
    pub(super) strings: Vec<StringSet<'a>>,
    pub(super) arrays: Vec<ArraySet>,
    pub(super) objects: Vec<ObjectSet<'a>>,
}

/// Intersects interned conjunctions; parts of shapes need it.
pub(super) trait Meet {
    fn meet(&mut self, a: Conj, b: Conj) -> Conj;
}

impl Shape<'_> {
    pub(super) fn any() -> Self {
        Shape {
            null: true,
            yes: true,
            no: true,
            numbers: vec![NumberSet::default()],
            strings: vec![StringSet::default()],
            arrays: vec![ArraySet::default()],
            objects: vec![ObjectSet::default()],
        }
    }
}

impl<'a> Shape<'a> {
    pub(super) fn unite(&mut self, other: Shape<'a>) {
        self.null |= other.null;
        self.yes |= other.yes;
        self.no |= other.no;
        unite(&mut self.numbers, other.numbers, |n| *n == NumberSet::default());
        unite(&mut self.strings, other.strings, |s| *s == StringSet::default());
        unite(&mut self.arrays, other.arrays, |a| *a == ArraySet::default());
        for set in other.objects {
            let same_name = self.objects.iter_mut().find_map(|known| known.absorb(&set).then_some(()));
            if same_name.is_none() {
                unite(&mut self.objects, vec![set], ObjectSet::is_any);
            }
        }
    }

    pub(super) fn intersect(&self, other: &Self, meet: &mut dyn Meet) -> Self {
        Shape {
            null: self.null && other.null,
            yes: self.yes && other.yes,
            no: self.no && other.no,
            numbers: product(&self.numbers, &other.numbers, NumberSet::intersect),
            strings: product(&self.strings, &other.strings, StringSet::intersect),
            arrays: product(&self.arrays, &other.arrays, |a, b| a.intersect(b, meet)),
            objects: product(&self.objects, &other.objects, |a, b| a.intersect(b, meet)),
        }
    }

    /// About how many steps an intersection takes.
    pub(super) fn steps(&self, other: &Self) -> usize {
        fn of<T>(a: &[T], b: &[T], size: impl Fn(&T) -> usize) -> usize {
            let all = |sets: &[T]| sets.iter().map(&size).sum::<usize>();
            // To copy a part is nothing beside making a set.
            2 * a.len() * b.len() + (all(a) * b.len() + all(b) * a.len()) / 4
        }
        of(&self.numbers, &other.numbers, |n| n.finite.as_ref().map_or(0, Vec::len) + n.excluded.len())
            + of(&self.strings, &other.strings, |s| s.finite.as_ref().map_or(0, Vec::len) + s.excluded.len())
            + of(&self.arrays, &other.arrays, |a| a.prefix.len())
            + of(&self.objects, &other.objects, |o| o.named.len() + o.additional.len() + o.patterns.len())
    }

    /// Number of alternatives.
    pub(super) fn width(&self) -> usize {
        self.numbers.len() + self.strings.len() + self.arrays.len() + self.objects.len()
    }
}

fn unite<T: PartialEq>(into: &mut Vec<T>, from: Vec<T>, is_any: impl Fn(&T) -> bool) {
    for set in from {
        if into.iter().any(|known| is_any(known) || *known == set) {
            continue;
        }
        if is_any(&set) {
            into.clear();
        }
        into.push(set);
    }
}

/// Alternatives beyond which equal ones are no longer looked for.
const MAX_COMPARED: usize = 64;

fn product<T: PartialEq>(a: &[T], b: &[T], mut meet: impl FnMut(&T, &T) -> Option<T>) -> Vec<T> {
    let mut out: Vec<T> = Vec::with_capacity(a.len() * b.len());
    for x in a {
        for y in b {
            if let Some(both) = meet(x, y).filter(|both| out.len() > MAX_COMPARED || !out.contains(both)) {
                out.push(both);
            }
        }
    }
    out
}

fn smaller<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The union of sorted lists, sorted.
fn merged<T: Ord + Clone>(a: &[T], b: &[T]) -> Vec<T> {
    let mut out = [a, b].concat();
    out.sort_unstable();
    out.dedup();
    out
}

fn common<T: Ord + Clone>(a: Option<&Vec<T>>, b: Option<&Vec<T>>) -> Option<Vec<T>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.iter().filter(|x| b.binary_search(x).is_ok()).cloned().collect()),
        (a, b) => a.or(b).cloned(),
    }
}

impl<'a> StringSet<'a> {
    pub(super) fn intersect(&self, other: &Self) -> Option<Self> {
        let both = StringSet {
            min: self.min.max(other.min),
            max: smaller(self.max, other.max),
            patterns: merged(&self.patterns, &other.patterns),
            formats: merged(&self.formats, &other.formats),
            excluded: merged(&self.excluded, &other.excluded),
            finite: common(self.finite.as_ref(), other.finite.as_ref()),
        };
        both.normal()
    }

    /// `None` if it is empty at first sight.
    pub(super) fn normal(mut self) -> Option<Self> {
        let contradiction = |list: &[(&str, bool)]| list.windows(2).any(|w| w[0].0 == w[1].0);
        if self.max.is_some_and(|max| max < self.min) || contradiction(&self.patterns) || contradiction(&self.formats) {
            return None;
        }
        if let Some(finite) = &mut self.finite {
            let (min, max, excluded) = (self.min, self.max, &self.excluded);
            finite.retain(|text| {
                let length = text.chars().count() as u64;
                length >= min && max.is_none_or(|max| length <= max) && excluded.binary_search(text).is_err()
            });
            if finite.is_empty() {
                return None;
            }
            (self.min, self.max) = (0, None);
            self.excluded.clear();
        }
        Some(self)
    }
}

/// A bound, and whether it is itself excluded.
pub(super) type Limit = (Decimal, bool);

impl NumberSet {
    pub(super) fn intersect(&self, other: &Self) -> Option<Self> {
        let (a, b) = (&self.bounds, &other.bounds);
        let tightest = |x: &Option<Limit>, y: &Option<Limit>, upper: bool| match (x, y) {
            (Some(x), Some(y)) if x.0 == y.0 => Some((x.0.clone(), x.1 || y.1)),
            (Some(x), Some(y)) => Some(if (x.0 < y.0) == upper { x } else { y }.clone()),
            (x, y) => x.as_ref().or(y.as_ref()).cloned(),
        };
        let both = NumberSet {
            bounds: NumberBounds {
                min: tightest(&a.min, &b.min, false),
                max: tightest(&a.max, &b.max, true),
                multiple_of: merged(&a.multiple_of, &b.multiple_of),
                integer: a.integer || b.integer,
                pointless: a.pointless || b.pointless,
            },
            not_multiple_of: merged(&self.not_multiple_of, &other.not_multiple_of),
            not_integer: self.not_integer.or(other.not_integer),
            finite: common(self.finite.as_ref(), other.finite.as_ref()),
            excluded: merged(&self.excluded, &other.excluded),
        };
        both.normal()
    }

    /// Does it hold this number?
    pub(super) fn contains(&self, n: &Decimal) -> bool {
        let bounds = &self.bounds;
        bounds.min.as_ref().is_none_or(|(min, exclusive)| n > min || (n == min && !exclusive))
            && bounds.max.as_ref().is_none_or(|(max, exclusive)| n < max || (n == max && !exclusive))
            && bounds.multiple_of.iter().all(|m| n.is_multiple_of(m))
            && !self.not_multiple_of.iter().any(|m| n.is_multiple_of(m))
            && (!bounds.integer || n.is_integer())
            && !(self.not_integer.is_some() && n.is_integer())
            && self.finite.as_ref().is_none_or(|finite| finite.binary_search(n).is_ok())
            && self.excluded.binary_search(n).is_err()
    }

    /// `None` if it is empty at first sight.
    pub(super) fn normal(mut self) -> Option<Self> {
        if let Some(finite) = self.finite.take() {
            let kept: Vec<Decimal> = finite.into_iter().filter(|n| self.contains(n)).collect();
            // What matters of the bounds from here on is how the values may be spelt.
            let bounds = NumberBounds { pointless: self.bounds.pointless, ..NumberBounds::default() };
            return (!kept.is_empty()).then(|| NumberSet { bounds, finite: Some(kept), ..NumberSet::default() });
        }
        let bounds = &self.bounds;
        let crossed = matches!((&bounds.min, &bounds.max), (Some(a), Some(b))
            if a.0 > b.0 || (a.0 == b.0 && (a.1 || b.1)));
        let contradiction = (bounds.integer && self.not_integer.is_some())
            || bounds.multiple_of.iter().any(|m| self.not_multiple_of.binary_search(m).is_ok());
        (!crossed && !contradiction).then_some(self)
    }
}

impl Default for ArraySet {
    fn default() -> Self {
        ArraySet { prefix: Vec::new(), rest: ANY, min: 0, max: None, contains: Vec::new(), unique: false }
    }
}

impl ArraySet {
    pub(super) fn item(&self, index: usize) -> Conj {
        self.prefix.get(index).copied().unwrap_or(self.rest)
    }

    pub(super) fn intersect(&self, other: &Self, meet: &mut dyn Meet) -> Option<Self> {
        let mut contains = self.contains.clone();
        contains.extend(other.contains.iter().filter(|c| !self.contains.contains(c)).cloned());
        let length = self.prefix.len().max(other.prefix.len());
        let both = ArraySet {
            prefix: (0..length).map(|i| meet.meet(self.item(i), other.item(i))).collect(),
            rest: meet.meet(self.rest, other.rest),
            min: self.min.max(other.min),
            max: smaller(self.max, other.max),
            contains,
            unique: self.unique || other.unique,
        };
        both.normal()
    }

    /// `None` if it is empty at first sight. Items that cannot be bound the length.
    pub(super) fn normal(mut self) -> Option<Self> {
        if let Some(i) = self.prefix.iter().position(|&item| item == NOTHING) {
            self.prefix.truncate(i);
            self.max = smaller(self.max, Some(i as u64));
        } else if self.rest == NOTHING {
            self.max = smaller(self.max, Some(self.prefix.len() as u64));
        }
        if let Some(max) = self.max {
            self.prefix.truncate(usize::try_from(max).unwrap_or(usize::MAX));
            if max <= self.prefix.len() as u64 {
                self.rest = NOTHING;
            }
        }
        while self.prefix.last() == Some(&self.rest) && self.rest != NOTHING {
            self.prefix.pop();
        }
        (self.max.is_none_or(|max| self.min <= max)).then_some(self)
    }
}

impl<'a> ObjectSet<'a> {
    pub(super) fn is_any(&self) -> bool {
        self.named.values().all(|n| n.value == ANY && n.presence == Presence::Optional && n.declared.is_none())
            && self.patterns.iter().all(|p| p.1 == ANY)
            && self.additional.iter().all(|a| a.1 == ANY)
            && self.names.is_empty()
            && self.exists.is_empty()
            && (self.min, self.max) == (0, None)
    }

    /// What the set says, if it says it of one name alone.
    fn only_name(&self) -> Option<(&'a str, Named)> {
        let bare = self.patterns.is_empty()
            && self.additional.is_empty()
            && self.names.is_empty()
            && self.exists.is_empty()
            && (self.min, self.max) == (0, None);
        let (&name, &named) = self.named.first().filter(|_| bare && self.named.len() == 1)?;
        Some((name, named))
    }

    /// Join a set that differs only in whether one key is there: "absent, or like this" is an optional key like this.
    /// Without it, complements of `required` beside `properties` would double alternatives each time.
    fn absorb(&mut self, other: &Self) -> bool {
        let (Some((name, a)), Some((same, b))) = (self.only_name(), other.only_name()) else { return false };
        let value = match (a.presence, b.presence) {
            (Presence::Forbidden, Presence::Required) => b.value,
            (Presence::Required, Presence::Forbidden) => a.value,
            _ => return false,
        };
        if name == same {
            self.named[0] = Named { value, presence: Presence::Optional, ..a };
        }
        name == same
    }

    /// Say something of a name; false if nothing can satisfy it any more.
    pub(super) fn say(&mut self, name: &'a str, said: Named, meet: &mut dyn Meet) -> bool {
        let named =
            self.named.entry(name).or_insert(Named { value: ANY, presence: Presence::Optional, declared: None });
        named.value = meet.meet(named.value, said.value);
        if said.declared.is_some() && named.declared.is_none() {
            named.declared = Some(self.declared);
            self.declared += 1;
        }
        named.presence = match (named.presence, said.presence) {
            (Presence::Optional, p) | (p, Presence::Optional) => p,
            (a, b) if a == b => a,
            _ => return false,
        };
        if named.value == NOTHING {
            if named.presence == Presence::Required {
                return false;
            }
            named.presence = Presence::Forbidden;
        }
        true
    }

    pub(super) fn intersect(&self, other: &Self, meet: &mut dyn Meet) -> Option<Self> {
        let mut both = self.clone();
        let mut said: Vec<(&'a str, Named)> = other.named.iter().map(|(&name, &said)| (name, said)).collect();
        said.sort_by_key(|(_, said)| said.declared.unwrap_or(u32::MAX));
        for (name, said) in said {
            if !both.say(name, said, meet) {
                return None;
            }
        }
        both.patterns.extend(other.patterns.iter().copied());
        both.additional.extend(other.additional.iter().copied());
        both.names.extend(other.names.iter().filter(|n| !self.names.contains(n)));
        both.exists.extend(other.exists.iter().cloned());
        both.min = self.min.max(other.min);
        both.max = smaller(self.max, other.max);
        both.max.is_none_or(|max| both.min <= max).then_some(both)
    }
}

impl PartialEq for ObjectSet<'_> {
    fn eq(&self, other: &Self) -> bool {
        let scope = |s: &Scope<'_>| match s {
            Scope::Schema(v) | Scope::Const(v) => std::ptr::from_ref(*v),
        };
        let kind = |e: &Exists<'_>| match &e.key {
            KeyKind::Outside(s) => (Some(scope(s)), None, None, e.value),
            KeyKind::Matching(p) => (None, Some(std::ptr::from_ref(*p)), None, e.value),
            KeyKind::Of(c) => (None, None, Some(*c), e.value),
        };
        self.named.len() == other.named.len()
            && self.named.iter().eq(other.named.iter())
            && self.patterns == other.patterns
            && self
                .additional
                .iter()
                .map(|(s, c)| (scope(s), c))
                .eq(other.additional.iter().map(|(s, c)| (scope(s), c)))
            && self.names == other.names
            && (self.min, self.max) == (other.min, other.max)
            && self.exists.iter().map(kind).eq(other.exists.iter().map(kind))
    }
}
