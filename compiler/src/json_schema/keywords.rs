//! Keywords of one type of value → [`Shape`]s, of what they accept (`numbers`, ...) and of what they do not (`not_numbers`,
//! ...). A keyword is silent about values of other types.

use super::document::address;
use super::format;
use super::normalise::{Normaliser, Result};
use super::number::Decimal;
use super::shape::{
    ANY, ArraySet, Conj, Contains, Exists, KeyKind, Limit, NOTHING, Named, NumberSet, ObjectSet, Presence, Scope,
    Shape, StringSet,
};
use serde_json::{Map, Number, Value};

impl<'a> Normaliser<'a> {
    pub(super) fn types(&mut self, schema: &'a Value, types: &'a Value, positive: bool) -> Result<Shape<'a>> {
        let list = match types {
            Value::Array(list) => &list[..],
            one => std::slice::from_ref(one),
        };
        let (mut accepted, mut integer, mut number) = (Shape::default(), false, false);
        for name in list {
            match name.as_str() {
                Some("null") => accepted.null = true,
                Some("boolean") => (accepted.yes, accepted.no) = (true, true),
                Some("number") => number = true,
                Some("integer") => integer = true,
                Some("string") => accepted.strings = vec![StringSet::default()],
                Some("array") => accepted.arrays = vec![ArraySet::default()],
                Some("object") => accepted.objects = vec![ObjectSet::default()],
                _ => {
                    let reason = format!(
                        "{name} is not a type; there are null, boolean, number, integer, string, array and object"
                    );
                    return Err(self.error(schema, "type", reason));
                }
            }
        }
        let mut integers = NumberSet::default();
        (integers.bounds.integer, integers.bounds.pointless) = (true, self.pointless());
        accepted.numbers = if number { vec![NumberSet::default()] } else { Vec::new() };
        if integer && !number {
            accepted.numbers = vec![integers];
        }
        if positive {
            return Ok(accepted);
        }
        let rest = |set: bool| !set;
        let mut other =
            Shape { null: rest(accepted.null), yes: rest(accepted.yes), no: rest(accepted.no), ..Shape::default() };
        if !number {
            other.numbers = vec![NumberSet { not_integer: integer.then(|| self.pointless()), ..NumberSet::default() }];
        }
        if accepted.strings.is_empty() {
            other.strings = vec![StringSet::default()];
        }
        if accepted.arrays.is_empty() {
            other.arrays = vec![ArraySet::default()];
        }
        if accepted.objects.is_empty() {
            other.objects = vec![ObjectSet::default()];
        }
        Ok(other)
    }

    /// The shape of a list of values.
    pub(super) fn values(&mut self, values: &'a [Value]) -> Result<Shape<'a>> {
        let mut shape = Shape::default();
        let (mut numbers, mut strings) = (Vec::new(), Vec::new());
        for value in values {
            match value {
                Value::Null => shape.null = true,
                Value::Bool(true) => shape.yes = true,
                Value::Bool(false) => shape.no = true,
                Value::Number(n) => numbers.push(self.known(value, n)?),
                Value::String(text) => strings.push(text.as_str()),
                Value::Array(items) => {
                    let length = items.len() as u64;
                    let prefix = items.iter().map(|item| self.constant(item)).collect();
                    let set = ArraySet { prefix, rest: NOTHING, min: length, max: Some(length), ..ArraySet::default() };
                    shape.arrays.extend(set.normal());
                }
                Value::Object(map) => {
                    let mut set = ObjectSet::default();
                    for (key, item) in map {
                        let named =
                            Named { value: self.constant(item), presence: Presence::Required, declared: Some(0) };
                        set.say(key, named, self);
                    }
                    set.additional.push((Scope::Const(value), NOTHING));
                    shape.objects.push(set);
                }
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        strings.sort_unstable();
        strings.dedup();
        if !numbers.is_empty() {
            shape.numbers.push(NumberSet { finite: Some(numbers), ..NumberSet::default() });
        }
        if !strings.is_empty() {
            shape.strings.push(StringSet { finite: Some(strings), ..StringSet::default() });
        }
        Ok(shape)
    }

    fn known(&self, place: &Value, number: &Number) -> Result<Decimal> {
        Decimal::from_number(number).map_err(|reason| self.error(place, "", reason.0))
    }

    /// All values but these.
    pub(super) fn other_values(&mut self, values: &'a [Value]) -> Result<Shape<'a>> {
        let mut shape = Shape::any();
        let (mut numbers, mut strings) = (Vec::new(), Vec::new());
        for value in values {
            match value {
                Value::Null => shape.null = false,
                Value::Bool(true) => shape.yes = false,
                Value::Bool(false) => shape.no = false,
                Value::Number(n) => numbers.push(self.known(value, n)?),
                Value::String(text) => strings.push(text.as_str()),
                Value::Array(items) => {
                    let mut others = Shape::any();
                    others.arrays = self.other_arrays(items);
                    shape = self.intersection(&shape, &others)?;
                }
                Value::Object(map) => {
                    let mut others = Shape::any();
                    others.objects = self.other_objects(value, map);
                    shape = self.intersection(&shape, &others)?;
                }
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        strings.sort_unstable();
        strings.dedup();
        shape.numbers = vec![NumberSet { excluded: numbers, ..NumberSet::default() }];
        shape.strings = vec![StringSet { excluded: strings, ..StringSet::default() }];
        Ok(shape)
    }

    fn other_arrays(&mut self, items: &'a [Value]) -> Vec<ArraySet> {
        let length = items.len() as u64;
        let mut sets = vec![ArraySet { min: length + 1, ..ArraySet::default() }];
        if length > 0 {
            sets.push(ArraySet { max: Some(length - 1), ..ArraySet::default() });
        }
        for (i, item) in items.iter().enumerate() {
            let mut prefix = vec![ANY; i];
            prefix.push(self.not_constant(item));
            sets.push(ArraySet { prefix, min: length, max: Some(length), ..ArraySet::default() });
        }
        sets.into_iter().filter_map(ArraySet::normal).collect()
    }

    fn other_objects(&mut self, value: &'a Value, map: &'a Map<String, Value>) -> Vec<ObjectSet<'a>> {
        let mut sets = Vec::new();
        for (key, item) in map {
            let differs = self.not_constant(item);
            for (value, presence) in [(ANY, Presence::Forbidden), (differs, Presence::Required)] {
                sets.push(single(key, Named { value, presence, declared: None }));
            }
        }
        let exists = vec![Exists { key: KeyKind::Outside(Scope::Const(value)), value: ANY }];
        sets.push(ObjectSet { exists, ..ObjectSet::default() });
        sets
    }

    fn text<'v>(&self, schema: &Value, keyword: &str, value: &'v Value) -> Result<&'v str> {
        value.as_str().ok_or_else(|| self.error(schema, keyword, "expected a string"))
    }

    fn count(&self, schema: &Value, map: &Map<String, Value>, keyword: &str) -> Result<Option<u64>> {
        let Some(value) = map.get(keyword) else { return Ok(None) };
        let whole = |f: &f64| *f >= 0.0 && f.fract() == 0.0 && *f < 1e18;
        match value.as_u64().or_else(|| value.as_f64().filter(whole).map(|f| f as u64)) {
            Some(count) => Ok(Some(count)),
            None => Err(self.error(schema, keyword, format!("expected a whole number from 0 on, found {value}"))),
        }
    }

    fn decimal(&self, schema: &Value, map: &Map<String, Value>, keyword: &str) -> Result<Option<Decimal>> {
        match map.get(keyword) {
            None => Ok(None),
            Some(Value::Number(n)) => {
                Decimal::from_number(n).map(Some).map_err(|reason| self.error(schema, keyword, reason.0))
            }
            Some(other) => Err(self.error(schema, keyword, format!("expected a number, found {other}"))),
        }
    }

    /// Lower and upper bound, each with whether it is excluded. Draft 4 excludes by a boolean.
    fn limits(&self, schema: &Value, map: &Map<String, Value>) -> Result<[Vec<Limit>; 2]> {
        let mut limits = [Vec::new(), Vec::new()];
        for (i, [inclusive, exclusive]) in
            [["minimum", "exclusiveMinimum"], ["maximum", "exclusiveMaximum"]].into_iter().enumerate()
        {
            let excluded = match map.get(exclusive) {
                Some(Value::Bool(excluded)) => *excluded,
                _ => {
                    limits[i].extend(self.decimal(schema, map, exclusive)?.map(|value| (value, true)));
                    false
                }
            };
            limits[i].extend(self.decimal(schema, map, inclusive)?.map(|value| (value, excluded)));
        }
        Ok(limits)
    }

    pub(super) fn numbers(&mut self, schema: &'a Value, map: &'a Map<String, Value>) -> Result<Option<NumberSet>> {
        let [lower, upper] = self.limits(schema, map)?;
        let multiple = self.multiple_of(schema, map)?;
        let mut set = Some(NumberSet::default());
        for one in lower.into_iter().map(|n| (Some(n), None)).chain(upper.into_iter().map(|n| (None, Some(n)))) {
            let mut next = NumberSet::default();
            (next.bounds.min, next.bounds.max) = one;
            set = set.and_then(|set| set.intersect(&next));
        }
        if let Some(multiple) = multiple {
            set = set.map(|mut set| {
                set.bounds.multiple_of = vec![multiple];
                set
            });
        }
        Ok(set)
    }

    fn multiple_of(&self, schema: &Value, map: &Map<String, Value>) -> Result<Option<Decimal>> {
        let multiple = self.decimal(schema, map, "multipleOf")?;
        if multiple.as_ref().is_some_and(|m| *m <= Decimal::from_i64(0)) {
            return Err(self.error(schema, "multipleOf", "expected a number above 0"));
        }
        Ok(multiple)
    }

    pub(super) fn not_numbers(
        &mut self,
        schema: &'a Value,
        map: &'a Map<String, Value>,
        out: &mut Shape<'a>,
    ) -> Result<()> {
        let [lower, upper] = self.limits(schema, map)?;
        let mut sets = Vec::new();
        for (value, excluded) in lower {
            let mut set = NumberSet::default();
            set.bounds.max = Some((value, !excluded));
            sets.push(set);
        }
        for (value, excluded) in upper {
            let mut set = NumberSet::default();
            set.bounds.min = Some((value, !excluded));
            sets.push(set);
        }
        if let Some(multiple) = self.multiple_of(schema, map)? {
            sets.push(NumberSet { not_multiple_of: vec![multiple], ..NumberSet::default() });
        }
        out.unite(Shape { numbers: sets, ..Shape::default() });
        Ok(())
    }

    /// The format, if it is one that is enforced.
    fn format(&mut self, schema: &'a Value, map: &'a Map<String, Value>) -> Result<Option<&'a str>> {
        let Some(name) = map.get("format") else { return Ok(None) };
        let name = self.text(schema, "format", name)?;
        if format::is_known(name) {
            return Ok(Some(name));
        }
        let warning = (Some(address(schema)), format!("format {name:?} is not known and not enforced"));
        if !self.warned.contains(&warning) {
            self.warned.push(warning);
        }
        Ok(None)
    }

    pub(super) fn strings(&mut self, schema: &'a Value, map: &'a Map<String, Value>) -> Result<Option<StringSet<'a>>> {
        let mut set = StringSet {
            min: self.count(schema, map, "minLength")?.unwrap_or(0),
            max: self.count(schema, map, "maxLength")?,
            ..StringSet::default()
        };
        if let Some(pattern) = map.get("pattern") {
            let pattern = self.text(schema, "pattern", pattern)?;
            match self.languages.pattern(pattern) {
                Ok(_) => set.patterns.push((pattern, false)),
                Err(reason) => self.relax(self.unsupported(schema, "pattern", reason.0))?,
            }
        }
        if let Some(name) = self.format(schema, map)? {
            set.formats.push((name, false));
        }
        Ok(set.normal())
    }

    pub(super) fn not_strings(
        &mut self,
        schema: &'a Value,
        map: &'a Map<String, Value>,
        out: &mut Shape<'a>,
    ) -> Result<()> {
        let mut sets = Vec::new();
        if let Some(min) = self.count(schema, map, "minLength")?.filter(|&min| min > 0) {
            sets.push(StringSet { max: Some(min - 1), ..StringSet::default() });
        }
        if let Some(max) = self.count(schema, map, "maxLength")? {
            sets.push(StringSet { min: max + 1, ..StringSet::default() });
        }
        if let Some(pattern) = map.get("pattern") {
            let pattern = self.text(schema, "pattern", pattern)?;
            self.languages.pattern(pattern).map_err(|reason| self.unsupported(schema, "pattern", reason.0))?;
            sets.push(StringSet { patterns: vec![(pattern, true)], ..StringSet::default() });
        }
        if let Some(name) = self.format(schema, map)? {
            sets.push(StringSet { formats: vec![(name, true)], ..StringSet::default() });
        }
        out.unite(Shape { strings: sets, ..Shape::default() });
        Ok(())
    }

    /// Schemas of the first items, the schema of all others, and the keyword of the latter.
    #[allow(clippy::type_complexity)]
    fn items(&self, schema: &'a Value, map: &'a Map<String, Value>) -> Result<(&'a [Value], Option<&'a Value>)> {
        if let Some(prefix) = map.get("prefixItems").filter(|_| self.since(20)) {
            return Ok((self.array(schema, "prefixItems", prefix)?, map.get("items")));
        }
        match map.get("items") {
            Some(Value::Array(prefix)) => Ok((prefix, map.get("additionalItems"))),
            items => Ok((&[], items)),
        }
    }

    pub(super) fn arrays(&mut self, schema: &'a Value, map: &'a Map<String, Value>) -> Result<Option<ArraySet>> {
        let (prefix, rest) = self.items(schema, map)?;
        let prefix = prefix.iter().map(|item| self.schema(item)).collect::<Result<_>>()?;
        let rest = rest.map_or(Ok(ANY), |rest| self.schema(rest))?;
        let mut set = ArraySet {
            prefix,
            rest,
            min: self.count(schema, map, "minItems")?.unwrap_or(0),
            max: self.count(schema, map, "maxItems")?,
            contains: Vec::new(),
            unique: map.get("uniqueItems") == Some(&Value::Bool(true)),
        };
        if let Some((item, min, max)) = self.contains(schema, map)?
            && (min > 0 || max.is_some())
        {
            set.contains.push(Contains { from: 0, item, min, max });
        }
        Ok(set.normal())
    }

    fn contains(&mut self, schema: &'a Value, map: &'a Map<String, Value>) -> Result<Option<(Conj, u64, Option<u64>)>> {
        let Some(item) = map.get("contains").filter(|_| self.since(6)) else { return Ok(None) };
        let item = self.schema(item)?;
        let limits = self.since(19);
        let min = if limits { self.count(schema, map, "minContains")? } else { None };
        let max = if limits { self.count(schema, map, "maxContains")? } else { None };
        Ok(Some((item, min.unwrap_or(1), max)))
    }

    pub(super) fn not_arrays(
        &mut self,
        schema: &'a Value,
        map: &'a Map<String, Value>,
        out: &mut Shape<'a>,
    ) -> Result<()> {
        let (prefix, rest) = self.items(schema, map)?;
        let mut sets = Vec::new();
        for (i, item) in prefix.iter().enumerate() {
            let mut items = vec![ANY; i];
            items.push(self.not_schema(item)?);
            sets.push(ArraySet { prefix: items, min: i as u64 + 1, ..ArraySet::default() });
        }
        if let Some(rest) = rest {
            let item = self.not_schema(rest)?;
            let from = prefix.len();
            if item == ANY {
                sets.push(ArraySet { min: from as u64 + 1, ..ArraySet::default() });
            } else if item != NOTHING {
                let contains = vec![Contains { from, item, min: 1, max: None }];
                sets.push(ArraySet { min: from as u64 + 1, contains, ..ArraySet::default() });
            }
        }
        if let Some(min) = self.count(schema, map, "minItems")?.filter(|&min| min > 0) {
            sets.push(ArraySet { max: Some(min - 1), ..ArraySet::default() });
        }
        if let Some(max) = self.count(schema, map, "maxItems")? {
            sets.push(ArraySet { min: max + 1, ..ArraySet::default() });
        }
        if let Some((item, min, max)) = self.contains(schema, map)? {
            if min > 0 {
                let contains = vec![Contains { from: 0, item, min: 0, max: Some(min - 1) }];
                sets.push(ArraySet { contains, ..ArraySet::default() });
            }
            if let Some(max) = max {
                let contains = vec![Contains { from: 0, item, min: max + 1, max: None }];
                sets.push(ArraySet { contains, ..ArraySet::default() });
            }
        }
        if map.get("uniqueItems") == Some(&Value::Bool(true)) {
            return Err(self.unsupported(
                schema,
                "uniqueItems",
                "its complement, arrays that repeat an item, is not supported",
            ));
        }
        out.unite(Shape { arrays: sets.into_iter().filter_map(ArraySet::normal).collect(), ..Shape::default() });
        Ok(())
    }

    fn required(&self, schema: &'a Value, keyword: &str, names: &'a Value) -> Result<Vec<&'a str>> {
        self.array(schema, keyword, names)?.iter().map(|name| self.text(schema, keyword, name)).collect()
    }

    pub(super) fn objects(&mut self, schema: &'a Value, map: &'a Map<String, Value>) -> Result<Option<ObjectSet<'a>>> {
        let mut set = ObjectSet {
            min: self.count(schema, map, "minProperties")?.unwrap_or(0),
            max: self.count(schema, map, "maxProperties")?,
            ..ObjectSet::default()
        };
        if let Some(properties) = map.get("properties") {
            let properties = self.object(schema, "properties", properties)?;
            set.named.reserve(properties.len());
            for (name, value) in properties {
                let value = self.schema(value)?;
                set.say(name, Named { value, presence: Presence::Optional, declared: Some(0) }, self);
            }
        }
        let mut possible = true;
        if let Some(names) = map.get("required") {
            for name in self.required(schema, "required", names)? {
                possible &= set.say(name, Named { value: ANY, presence: Presence::Required, declared: None }, self);
            }
        }
        if let Some(patterns) = map.get("patternProperties") {
            for (pattern, value) in self.object(schema, "patternProperties", patterns)? {
                self.languages.pattern(pattern).map_err(|reason| self.at_text(pattern, reason.0))?;
                let value = self.schema(value)?;
                if value != ANY {
                    set.patterns.push((pattern, value));
                }
            }
        }
        if let Some(value) = map.get("additionalProperties") {
            let value = self.schema(value)?;
            if value != ANY {
                set.additional.push((Scope::Schema(schema), value));
            }
        }
        if let Some(names) = map.get("propertyNames").filter(|_| self.since(6)) {
            let names = self.schema(names)?;
            if names != ANY {
                set.names.push(names);
            }
        }
        Ok(Some(set).filter(|set| possible && set.max.is_none_or(|max| set.min <= max)))
    }

    pub(super) fn not_objects(
        &mut self,
        schema: &'a Value,
        map: &'a Map<String, Value>,
        out: &mut Shape<'a>,
    ) -> Result<()> {
        let mut sets = Vec::new();
        if let Some(properties) = map.get("properties") {
            for (name, value) in self.object(schema, "properties", properties)? {
                let value = self.not_schema(value)?;
                if value != NOTHING {
                    sets.push(single(name, Named { value, presence: Presence::Required, declared: None }));
                }
            }
        }
        if let Some(names) = map.get("required") {
            for name in self.required(schema, "required", names)? {
                sets.push(single(name, Named { value: ANY, presence: Presence::Forbidden, declared: None }));
            }
        }
        let mut exists = Vec::new();
        if let Some(patterns) = map.get("patternProperties") {
            for (pattern, value) in self.object(schema, "patternProperties", patterns)? {
                self.languages.pattern(pattern).map_err(|reason| self.at_text(pattern, reason.0))?;
                exists.push(Exists { key: KeyKind::Matching(pattern), value: self.not_schema(value)? });
            }
        }
        if let Some(value) = map.get("additionalProperties") {
            exists.push(Exists { key: KeyKind::Outside(Scope::Schema(schema)), value: self.not_schema(value)? });
        }
        if let Some(names) = map.get("propertyNames").filter(|_| self.since(6)) {
            let names = self.not_schema(names)?;
            if names != NOTHING {
                exists.push(Exists { key: KeyKind::Of(names), value: ANY });
            }
        }
        for exists in exists.into_iter().filter(|e| e.value != NOTHING) {
            sets.push(ObjectSet { exists: vec![exists], ..ObjectSet::default() });
        }
        if let Some(min) = self.count(schema, map, "minProperties")?.filter(|&min| min > 0) {
            sets.push(ObjectSet { max: Some(min - 1), ..ObjectSet::default() });
        }
        if let Some(max) = self.count(schema, map, "maxProperties")? {
            sets.push(ObjectSet { min: max + 1, ..ObjectSet::default() });
        }
        out.unite(Shape { objects: sets, ..Shape::default() });
        Ok(())
    }

    /// What depends on the presence of which key.
    pub(super) fn dependencies(
        &self,
        schema: &'a Value,
        map: &'a Map<String, Value>,
    ) -> Result<Vec<(&'a str, &'a Value)>> {
        let mut all = Vec::new();
        for (keyword, since) in [("dependencies", 0), ("dependentRequired", 19), ("dependentSchemas", 19)] {
            if let Some(value) = map.get(keyword).filter(|_| self.since(since)) {
                all.extend(self.object(schema, keyword, value)?.iter().map(|(name, value)| (name.as_str(), value)));
            }
        }
        Ok(all)
    }

    /// The key is absent, or what depends on it holds.
    pub(super) fn dependency(&mut self, schema: &'a Value, name: &'a str, dependency: &'a Value) -> Result<Shape<'a>> {
        let absent = single(name, Named { value: ANY, presence: Presence::Forbidden, declared: None });
        let mut present = single(name, Named { value: ANY, presence: Presence::Required, declared: None });
        let mut shape = Shape::any();
        let implied = match dependency {
            Value::Array(_) | Value::String(_) => {
                for needed in self.needed(schema, dependency)? {
                    present.say(needed, Named { value: ANY, presence: Presence::Required, declared: None }, self);
                }
                vec![present]
            }
            dependency => {
                let literal = self.literal(dependency)?;
                let only = Shape { objects: vec![present], ..Shape::default() };
                self.within(&only, literal)?.objects
            }
        };
        shape.objects = vec![absent];
        shape.unite(Shape { objects: implied, ..Shape::default() });
        Ok(shape)
    }

    /// The key is present, and what depends on it does not hold.
    pub(super) fn broken_dependency(
        &mut self,
        schema: &'a Value,
        name: &'a str,
        dependency: &'a Value,
    ) -> Result<Shape<'a>> {
        let present = single(name, Named { value: ANY, presence: Presence::Required, declared: None });
        let mut shape = Shape::default();
        match dependency {
            Value::Array(_) | Value::String(_) => {
                for needed in self.needed(schema, dependency)? {
                    let mut set = present.clone();
                    if set.say(needed, Named { value: ANY, presence: Presence::Forbidden, declared: None }, self) {
                        shape.objects.push(set);
                    }
                }
            }
            dependency => {
                let literal = self.literal(dependency)? ^ 1;
                let only = Shape { objects: vec![present], ..Shape::default() };
                shape = self.within(&only, literal)?;
            }
        }
        Ok(shape)
    }

    /// Draft 3 wrote a single name without its array.
    fn needed(&self, schema: &'a Value, dependency: &'a Value) -> Result<Vec<&'a str>> {
        match dependency {
            Value::String(name) => Ok(vec![name]),
            names => self.required(schema, "dependencies", names),
        }
    }
}

fn single<'a>(name: &'a str, named: Named) -> ObjectSet<'a> {
    let mut set = ObjectSet::default();
    set.named.insert(name, named);
    set
}
