//! Schemas → [`Shape`]s.
//!
//! A *literal* is a schema of the document, or its complement; a [`Conj`] an interned set of literals. Expanding a
//! conjunction intersects the shapes of its literals, and the shape of a literal unites and intersects those of the schemas
//! that apply to the same value (`allOf`, `anyOf`, `$ref`, ...). What applies to parts of the value stays a conjunction, so
//! each call does a bounded amount of work and recursive schemas are as finite as their document.

use super::document::{Document, address};
use super::languages::Languages;
use super::number::Decimal;
use super::shape::{
    ANY, ArraySet, Conj, Contains, Exists, KeyKind, Limit, Meet, NOTHING, Named, NumberSet, ObjectSet, Presence, Scope,
    Shape, StringSet,
};
use super::{Options, SchemaError, Severity};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};
use std::rc::Rc;

/// Schemas applied to one value inside of each other.
const MAX_DEPTH: usize = 120;
/// Alternatives of one shape.
const MAX_WIDTH: usize = 4_000;
/// Conjunctions of one document.
const MAX_CONJUNCTIONS: usize = 500_000;
/// Nesting of values that emptiness is decided for; beyond, a set counts as not empty.
const MAX_EMPTY_DEPTH: usize = 24;
/// References in a row that are followed before they are called a cycle.
const MAX_HOPS: usize = 100;

pub(super) type Result<T> = std::result::Result<T, SchemaError>;

/// A node, shifted left by one, with the lowest bit set for its complement.
type Literal = u32;
/// The literal of the schema `false`; its complement is `true`.
const FALSE: Literal = 0;
const TRUE: Literal = 1;

/// What a literal is about.
#[derive(Clone, Copy)]
enum Node<'a> {
    Schema(&'a Value),
    /// The one value that equals this one.
    Const(&'a Value),
}

/// How much is known about a memoised answer.
#[derive(Clone)]
enum Memo<T> {
    Open,
    Known(T),
}

pub(super) struct Normaliser<'a> {
    pub(super) document: Document<'a>,
    pub(super) options: &'a Options,
    /// Address of the schema, unless the text names it, and what is not enforced.
    warned: Vec<(Option<usize>, String)>,
    pub(super) languages: Languages<'a>,
    /// Two digits of the draft's year or number; `None` if the document does not say: then all keywords count.
    draft: Option<u8>,
    nodes: Vec<Node<'a>>,
    node_ids: FxHashMap<(usize, bool), u32>,
    conjs: Vec<Rc<[Literal]>>,
    conj_ids: FxHashMap<Rc<[Literal]>, Conj>,
    meets: FxHashMap<(Conj, Conj), Conj>,
    shapes: FxHashMap<Conj, Rc<Shape<'a>>>,
    literal_shapes: FxHashMap<Literal, Memo<Rc<Shape<'a>>>>,
    empty: FxHashMap<Conj, Memo<bool>>,
    depth: usize,
    empty_depth: usize,
}

/// Keywords that say nothing about the value itself.
fn constrains(key: &str) -> bool {
    matches!(
        key,
        "type"
            | "enum"
            | "const"
            | "properties"
            | "required"
            | "additionalProperties"
            | "patternProperties"
            | "propertyNames"
            | "minProperties"
            | "maxProperties"
            | "dependentRequired"
            | "dependentSchemas"
            | "dependencies"
            | "items"
            | "prefixItems"
            | "additionalItems"
            | "minItems"
            | "maxItems"
            | "contains"
            | "uniqueItems"
            | "minLength"
            | "maxLength"
            | "pattern"
            | "format"
            | "minimum"
            | "maximum"
            | "exclusiveMinimum"
            | "exclusiveMaximum"
            | "multipleOf"
            | "allOf"
            | "anyOf"
            | "oneOf"
            | "not"
            | "if"
            | "$ref"
            | "$dynamicRef"
            | "$recursiveRef"
            | "unevaluatedItems"
            | "unevaluatedProperties"
    )
}

/// Keywords of newer drafts that are refused.
const REFUSED: [(&str, &str); 4] = [
    ("$dynamicRef", "dynamic references are not supported; use $ref"),
    ("$recursiveRef", "recursive references are not supported; use $ref"),
    ("unevaluatedItems", "not supported; use items or additionalItems"),
    ("unevaluatedProperties", "not supported; use additionalProperties beside the properties it is about"),
];

fn draft(root: &Value) -> Option<u8> {
    let uri = root.get("$schema")?.as_str()?;
    [("draft-04", 4), ("draft-06", 6), ("draft-07", 7), ("2019-09", 19), ("2020-12", 20)]
        .iter()
        .find(|(name, _)| uri.contains(name))
        .map(|&(_, draft)| draft)
}

impl Meet for Normaliser<'_> {
    fn meet(&mut self, a: Conj, b: Conj) -> Conj {
        if a == b || b == ANY || a == NOTHING {
            return a;
        }
        if a == ANY || b == NOTHING {
            return b;
        }
        let key = (a.min(b), a.max(b));
        if let Some(&known) = self.meets.get(&key) {
            return known;
        }
        let literals = [&self.conjs[a.0 as usize][..], &self.conjs[b.0 as usize][..]].concat();
        let both = self.conj(literals);
        self.meets.insert(key, both);
        both
    }
}

impl<'a> Normaliser<'a> {
    pub(super) fn new(document: Document<'a>, options: &'a Options) -> Self {
        let mut normaliser = Normaliser {
            draft: draft(document.root),
            document,
            options,
            warned: Vec::new(),
            languages: Languages::default(),
            nodes: vec![Node::Schema(&Value::Bool(false))],
            node_ids: FxHashMap::default(),
            conjs: Vec::new(),
            conj_ids: FxHashMap::default(),
            meets: FxHashMap::default(),
            shapes: FxHashMap::default(),
            literal_shapes: FxHashMap::default(),
            empty: FxHashMap::default(),
            depth: 0,
            empty_depth: 0,
        };
        for literals in [vec![], vec![FALSE]] {
            normaliser.intern(literals);
        }
        normaliser
    }

    fn intern(&mut self, literals: Vec<Literal>) -> Conj {
        let literals: Rc<[Literal]> = literals.into();
        *self.conj_ids.entry(literals.clone()).or_insert_with(|| {
            self.conjs.push(literals);
            Conj(self.conjs.len() as u32 - 1)
        })
    }

    fn conj(&mut self, mut literals: Vec<Literal>) -> Conj {
        literals.retain(|&l| l != TRUE);
        literals.sort_unstable();
        literals.dedup();
        if literals.first() == Some(&FALSE) || literals.windows(2).any(|w| w[0] ^ 1 == w[1]) {
            return NOTHING;
        }
        self.intern(literals)
    }

    /// An error about a keyword of a schema.
    pub(super) fn error(&self, schema: &Value, keyword: &str, reason: impl Into<String>) -> SchemaError {
        let mut pointer = self.document.pointer(address(schema));
        if !keyword.is_empty() {
            pointer = format!("{pointer}/{}", super::document::escaped(keyword));
        }
        SchemaError { pointer, reason: reason.into(), severity: Severity::Malformed }
    }

    fn unsupported(&self, schema: &Value, keyword: &str, reason: impl Into<String>) -> SchemaError {
        SchemaError { severity: Severity::Unsupported, ..self.error(schema, keyword, reason) }
    }

    pub(super) fn too_large(&self, schema: &Value, reason: String) -> SchemaError {
        SchemaError { severity: Severity::Budget, ..self.error(schema, "", reason) }
    }

    /// Something is not supported: an error, or if the caller is lenient a warning.
    pub(super) fn relax(&mut self, error: SchemaError) -> Result<()> {
        if !self.options.lenient || error.severity != Severity::Unsupported {
            return Err(error);
        }
        let warning = (None, format!("{}: not enforced: {}", error.place(), error.reason));
        if !self.warned.contains(&warning) {
            self.warned.push(warning);
        }
        Ok(())
    }

    /// What is not enforced, and where.
    pub(super) fn warnings(&self) -> Vec<String> {
        let places: Vec<usize> = self.warned.iter().filter_map(|warning| warning.0).collect();
        let pointers = self.document.pointers(&places);
        let place = |at: &Option<usize>| at.map(|at| format!("{}: ", pointers.get(&at).map_or("", String::as_str)));
        self.warned.iter().map(|(at, text)| format!("{}{text}", place(at).unwrap_or_default())).collect()
    }

    /// Must integers have no point? Since draft 6, 1.0 is one.
    fn pointless(&self) -> bool {
        !self.since(6)
    }

    /// Is the keyword part of the document's draft, since this one?
    fn since(&self, draft: u8) -> bool {
        self.draft.is_none_or(|d| d >= draft)
    }

    fn node(&mut self, node: Node<'a>) -> Literal {
        let key = match node {
            Node::Schema(value) => (address(value), false),
            Node::Const(value) => (address(value), true),
        };
        let next = self.nodes.len() as u32;
        let id = *self.node_ids.entry(key).or_insert_with(|| {
            self.nodes.push(node);
            next
        });
        id << 1
    }

    /// The literal of a schema. References that stand alone are followed here, so that they cost nothing.
    fn literal(&mut self, mut schema: &'a Value) -> Result<Literal> {
        for _ in 0..MAX_HOPS {
            let map = match schema {
                Value::Bool(accepts) => return Ok(if *accepts { TRUE } else { FALSE }),
                Value::Object(map) => map,
                _ => return Err(self.error(schema, "", "a schema is an object or a boolean")),
            };
            let mut keywords = map.iter().filter(|(key, _)| constrains(key));
            match (keywords.next(), keywords.next()) {
                (None, _) => return Ok(TRUE),
                (Some((key, _)), None) if key == "$ref" => schema = self.target(schema, map)?,
                _ => return Ok(self.node(Node::Schema(schema))),
            }
        }
        Err(self.error(schema, "$ref", "references lead round in circles"))
    }

    fn target(&self, schema: &'a Value, map: &'a Map<String, Value>) -> Result<&'a Value> {
        let Some(reference) = map["$ref"].as_str() else {
            return Err(self.error(schema, "$ref", "a reference is a string"));
        };
        self.document.resolve(schema, reference).ok_or_else(|| {
            let reason = format!("{reference:?} is not in the document; put what it refers to under $defs");
            self.error(schema, "$ref", reason)
        })
    }

    pub(super) fn schema(&mut self, schema: &'a Value) -> Result<Conj> {
        let literal = self.literal(schema)?;
        Ok(self.conj(vec![literal]))
    }

    pub(super) fn constant(&mut self, value: &'a Value) -> Conj {
        let literal = self.node(Node::Const(value));
        self.conj(vec![literal])
    }

    fn not_schema(&mut self, schema: &'a Value) -> Result<Conj> {
        let literal = self.literal(schema)?;
        Ok(self.conj(vec![literal ^ 1]))
    }

    fn not_constant(&mut self, value: &'a Value) -> Conj {
        let literal = self.node(Node::Const(value));
        self.conj(vec![literal ^ 1])
    }

    /// The complement of a conjunction of at most one literal.
    pub(super) fn complement(&mut self, conj: Conj) -> Option<Conj> {
        match *self.conjs[conj.0 as usize].clone() {
            [] => Some(NOTHING),
            [literal] => Some(self.conj(vec![literal ^ 1])),
            _ => None,
        }
    }

    /// Some schema or constant that a conjunction is about, for errors.
    pub(super) fn origin(&self, conj: Conj) -> &'a Value {
        let literal = self.conjs[conj.0 as usize].first().copied().unwrap_or(FALSE);
        match self.nodes[literal as usize >> 1] {
            Node::Schema(value) | Node::Const(value) => value,
        }
    }

    pub(super) fn expand(&mut self, conj: Conj) -> Result<Rc<Shape<'a>>> {
        if let Some(known) = self.shapes.get(&conj) {
            return Ok(known.clone());
        }
        if self.conjs.len() > MAX_CONJUNCTIONS {
            let reason =
                format!("the schema takes more than {MAX_CONJUNCTIONS} combinations of its parts; simplify it");
            return Err(self.too_large(self.document.root, reason));
        }
        let literals = self.conjs[conj.0 as usize].clone();
        let shape = match *literals {
            [only] => self.expand_literal(only)?,
            _ => {
                let mut shape = Shape::any();
                for &literal in &*literals {
                    let next = self.expand_literal(literal)?;
                    shape = self.intersection(&shape, &next)?;
                }
                Rc::new(shape)
            }
        };
        self.shapes.insert(conj, shape.clone());
        Ok(shape)
    }

    fn intersection(&mut self, a: &Shape<'a>, b: &Shape<'a>) -> Result<Shape<'a>> {
        let products = a.objects.len() * b.objects.len() + a.arrays.len() * b.arrays.len();
        if products > MAX_WIDTH {
            let reason = format!("its alternatives multiply to more than {MAX_WIDTH}; simplify the schema");
            return Err(self.too_large(self.document.root, reason));
        }
        let mut shape = a.intersect(b, self);
        if a.objects.len() * b.objects.len() > 1 {
            let objects = std::mem::take(&mut shape.objects);
            for object in objects {
                if !self.object_is_empty(&object) {
                    shape.objects.push(object);
                }
            }
        }
        Ok(shape)
    }

    fn expand_literal(&mut self, literal: Literal) -> Result<Rc<Shape<'a>>> {
        match self.literal_shapes.get(&literal) {
            Some(Memo::Known(shape)) => return Ok(shape.clone()),
            Some(Memo::Open) => {
                let Node::Schema(schema) = self.nodes[literal as usize >> 1] else {
                    unreachable!("constants are finite")
                };
                let reason = "the schema applies itself to the same value, so nothing decides what it accepts";
                return Err(self.error(schema, "", reason));
            }
            None => {}
        }
        let node = self.nodes[literal as usize >> 1];
        self.literal_shapes.insert(literal, Memo::Open);
        self.depth += 1;
        let shape = match node {
            Node::Schema(schema) if self.depth > MAX_DEPTH => {
                let reason = format!("schemas applied to one value are nested deeper than {MAX_DEPTH}; flatten them");
                Err(self.too_large(schema, reason))
            }
            Node::Schema(schema) if literal & 1 == 0 => self.positive(schema),
            Node::Schema(schema) => match self.negative(schema) {
                Err(error) => self.relax(error).map(|()| Shape::any()),
                shape => shape,
            },
            Node::Const(value) if literal & 1 == 0 => Ok(self.values(std::slice::from_ref(value))),
            Node::Const(value) => self.other_values(std::slice::from_ref(value)),
        };
        self.depth -= 1;
        let shape = match shape {
            Ok(shape) => Rc::new(shape),
            Err(error) => {
                self.literal_shapes.remove(&literal);
                return Err(error);
            }
        };
        self.literal_shapes.insert(literal, Memo::Known(shape.clone()));
        Ok(shape)
    }

    fn union(&mut self, literals: &[Literal]) -> Result<Shape<'a>> {
        let mut shape = Shape::default();
        for &literal in literals {
            let next = self.expand_literal(literal)?;
            shape.unite((*next).clone());
        }
        Ok(shape)
    }

    /// What a schema accepts.
    fn positive(&mut self, schema: &'a Value) -> Result<Shape<'a>> {
        let Value::Object(map) = schema else { return Ok(Shape::default()) };
        for (keyword, reason) in REFUSED {
            if map.contains_key(keyword) && self.since(19) {
                self.relax(self.unsupported(schema, keyword, reason))?;
            }
        }
        let mut shape = match map.get("type") {
            Some(types) => self.types(schema, types, true)?,
            None => Shape::any(),
        };
        if let Some(values) = map.get("enum") {
            let values = self.array(schema, "enum", values)?;
            let values = self.values(values);
            shape = self.intersection(&shape, &values)?;
        }
        if let Some(value) = map.get("const").filter(|_| self.since(6)) {
            let values = self.values(std::slice::from_ref(value));
            shape = self.intersection(&shape, &values)?;
        }
        let mut own = Shape::any();
        if !shape.numbers.is_empty() {
            own.numbers = self.numbers(schema, map)?.into_iter().collect();
        }
        if !shape.strings.is_empty() {
            own.strings = self.strings(schema, map)?.into_iter().collect();
        }
        if !shape.arrays.is_empty() {
            own.arrays = self.arrays(schema, map)?.into_iter().collect();
        }
        if !shape.objects.is_empty() {
            own.objects = self.objects(schema, map)?.into_iter().collect();
        }
        shape = self.intersection(&shape, &own)?;
        if !shape.objects.is_empty() {
            for (name, dependency) in self.dependencies(schema, map)? {
                let holds = self.dependency(schema, name, dependency)?;
                shape = self.intersection(&shape, &holds)?;
            }
        }
        if map.contains_key("$ref") {
            let target = self.target(schema, map)?;
            let literal = self.literal(target)?;
            shape = self.within(&shape, literal)?;
        }
        for branch in self.branches(schema, map, "allOf")?.unwrap_or_default() {
            shape = self.within(&shape, branch)?;
        }
        if let Some(branches) = self.branches(schema, map, "anyOf")? {
            let any = self.union(&branches)?;
            shape = self.intersection(&shape, &any)?;
        }
        if let Some(branches) = self.branches(schema, map, "oneOf")? {
            let one = match self.one_of(&branches, &shape) {
                Err(error) if !self.options.one_of_any => {
                    self.relax(error)?;
                    self.union(&branches)?
                }
                one => one?,
            };
            shape = self.intersection(&shape, &one)?;
        }
        if let Some(excluded) = map.get("not") {
            let literal = self.literal(excluded)? ^ 1;
            shape = self.within(&shape, literal)?;
        }
        if let Some(test) = map.get("if").filter(|_| self.since(7)) {
            let condition = self.conditional(map, test, false)?;
            shape = self.intersection(&shape, &condition)?;
        }
        Ok(shape)
    }

    fn within(&mut self, shape: &Shape<'a>, literal: Literal) -> Result<Shape<'a>> {
        let other = self.expand_literal(literal)?;
        self.intersection(shape, &other)
    }

    /// `if`, `then`, `else`, or what they do not accept.
    fn conditional(&mut self, map: &'a Map<String, Value>, test: &'a Value, negated: bool) -> Result<Shape<'a>> {
        let test = self.literal(test)?;
        let mut shape = Shape::default();
        for (literal, keyword) in [(test, "then"), (test ^ 1, "else")] {
            let branch = match map.get(keyword) {
                Some(branch) => self.literal(branch)?,
                None => TRUE,
            };
            let both = self.conj(vec![literal, branch ^ u32::from(negated)]);
            let both = self.expand(both)?;
            shape.unite((*both).clone());
        }
        Ok(shape)
    }

    /// Exactly one of the branches, as far as values of `context` go.
    fn one_of(&mut self, branches: &[Literal], context: &Shape<'a>) -> Result<Shape<'a>> {
        if self.options.one_of_any {
            return self.union(branches);
        }
        let mut others: Vec<Vec<Literal>> = branches.iter().map(|&b| vec![b]).collect();
        let mut contexts = Vec::with_capacity(branches.len());
        for &branch in branches {
            contexts.push(self.within(context, branch)?);
        }
        for i in 0..branches.len() {
            for j in 0..i {
                let disjoint = branches[i] != branches[j] && self.disjoint(&contexts[i], &contexts[j])?;
                if !disjoint {
                    others[i].push(branches[j] ^ 1);
                    others[j].push(branches[i] ^ 1);
                }
            }
        }
        let mut shape = Shape::default();
        for literals in others {
            let only = self.conj(literals);
            let only = self.expand(only)?;
            shape.unite((*only).clone());
        }
        Ok(shape)
    }

    fn disjoint(&mut self, a: &Shape<'a>, b: &Shape<'a>) -> Result<bool> {
        if (a.null && b.null) || (a.yes && b.yes) || (a.no && b.no) {
            return Ok(false);
        }
        if a.width() * b.width() > MAX_WIDTH {
            return Ok(false);
        }
        let both = a.intersect(b, self);
        Ok(self.shape_is_empty(&both))
    }

    fn branches(&mut self, schema: &'a Value, map: &'a Map<String, Value>, key: &str) -> Result<Option<Vec<Literal>>> {
        let Some(branches) = map.get(key) else { return Ok(None) };
        let branches = self.array(schema, key, branches)?;
        branches.iter().map(|branch| self.literal(branch)).collect::<Result<_>>().map(Some)
    }

    /// What a schema does not accept.
    fn negative(&mut self, schema: &'a Value) -> Result<Shape<'a>> {
        let Value::Object(map) = schema else { return Ok(Shape::any()) };
        for (keyword, reason) in REFUSED {
            if map.contains_key(keyword) && self.since(19) {
                return Err(self.unsupported(schema, keyword, reason));
            }
        }
        let mut shape = Shape::default();
        if let Some(types) = map.get("type") {
            shape.unite(self.types(schema, types, false)?);
        }
        if let Some(values) = map.get("enum") {
            let values = self.array(schema, "enum", values)?;
            shape.unite(self.other_values(values)?);
        }
        if let Some(value) = map.get("const").filter(|_| self.since(6)) {
            shape.unite(self.other_values(std::slice::from_ref(value))?);
        }
        self.not_numbers(schema, map, &mut shape)?;
        self.not_strings(schema, map, &mut shape)?;
        self.not_arrays(schema, map, &mut shape)?;
        self.not_objects(schema, map, &mut shape)?;
        for (name, dependency) in self.dependencies(schema, map)? {
            let fails = self.broken_dependency(schema, name, dependency)?;
            shape.unite(fails);
        }
        if map.contains_key("$ref") {
            let target = self.target(schema, map)?;
            let literal = self.literal(target)? ^ 1;
            shape.unite((*self.expand_literal(literal)?).clone());
        }
        for branch in self.branches(schema, map, "allOf")?.unwrap_or_default() {
            shape.unite((*self.expand_literal(branch ^ 1)?).clone());
        }
        if let Some(branches) = self.branches(schema, map, "anyOf")? {
            let none = self.conj(branches.iter().map(|b| b ^ 1).collect());
            shape.unite((*self.expand(none)?).clone());
        }
        if let Some(branches) = self.branches(schema, map, "oneOf")? {
            let none = self.conj(branches.iter().map(|b| b ^ 1).collect());
            shape.unite((*self.expand(none)?).clone());
            for i in 0..branches.len() {
                for j in 0..i {
                    let two = self.conj(vec![branches[i], branches[j]]);
                    shape.unite((*self.expand(two)?).clone());
                }
            }
        }
        if let Some(excluded) = map.get("not") {
            let literal = self.literal(excluded)?;
            shape.unite((*self.expand_literal(literal)?).clone());
        }
        if let Some(test) = map.get("if").filter(|_| self.since(7)) {
            shape.unite(self.conditional(map, test, true)?);
        }
        Ok(shape)
    }

    fn types(&mut self, schema: &'a Value, types: &'a Value, positive: bool) -> Result<Shape<'a>> {
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
    fn values(&mut self, values: &'a [Value]) -> Shape<'a> {
        let mut shape = Shape::default();
        let (mut numbers, mut strings) = (Vec::new(), Vec::new());
        for value in values {
            match value {
                Value::Null => shape.null = true,
                Value::Bool(true) => shape.yes = true,
                Value::Bool(false) => shape.no = true,
                Value::Number(n) => numbers.extend(Decimal::from_number(n).ok()),
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
                        let named = Named { value: self.constant(item), presence: Presence::Required, declared: true };
                        set.named.insert(key, named);
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
        shape
    }

    /// All values but these.
    fn other_values(&mut self, values: &'a [Value]) -> Result<Shape<'a>> {
        let mut shape = Shape::any();
        let (mut numbers, mut strings) = (Vec::new(), Vec::new());
        for value in values {
            match value {
                Value::Null => shape.null = false,
                Value::Bool(true) => shape.yes = false,
                Value::Bool(false) => shape.no = false,
                Value::Number(n) => numbers.extend(Decimal::from_number(n).ok()),
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
                sets.push(single(key, Named { value, presence, declared: false }));
            }
        }
        let exists = vec![Exists { key: KeyKind::Outside(Scope::Const(value)), value: ANY }];
        sets.push(ObjectSet { exists, ..ObjectSet::default() });
        sets
    }

    pub(super) fn is_empty(&mut self, conj: Conj) -> bool {
        match self.empty.get(&conj) {
            Some(Memo::Known(empty)) => return *empty,
            Some(Memo::Open) => return false,
            None if self.empty_depth >= MAX_EMPTY_DEPTH => return false,
            None => {}
        }
        self.empty.insert(conj, Memo::Open);
        self.empty_depth += 1;
        // What cannot be expanded is reported where it is used, not where emptiness would have helped.
        let warned = self.warned.len();
        let empty = self.expand(conj).is_ok_and(|shape| self.shape_is_empty(&shape));
        self.warned.truncate(warned);
        self.empty_depth -= 1;
        self.empty.insert(conj, Memo::Known(empty));
        empty
    }

    fn shape_is_empty(&mut self, shape: &Shape<'a>) -> bool {
        !(shape.null || shape.yes || shape.no)
            && shape.numbers.iter().all(|set| self.languages.number_is_empty(set))
            && shape.strings.iter().all(|set| self.languages.string_is_empty(set))
            && shape.arrays.iter().all(|set| self.array_is_empty(set))
            && shape.objects.iter().all(|set| self.object_is_empty(set))
    }

    fn array_is_empty(&mut self, set: &ArraySet) -> bool {
        let shown = set.min.min(set.prefix.len() as u64 + 1) as usize;
        if (0..shown).any(|i| self.is_empty(set.item(i))) {
            return true;
        }
        let kinds: Vec<Conj> = set.prefix.iter().copied().chain([set.rest]).collect();
        set.contains.iter().any(|c| {
            c.min > 0
                && kinds[c.from.min(kinds.len() - 1)..].iter().all(|&kind| {
                    let both = self.meet(kind, c.item);
                    self.is_empty(both)
                })
        })
    }

    fn object_is_empty(&mut self, set: &ObjectSet<'a>) -> bool {
        set.max.is_some_and(|max| set.min > max)
            || set.named.iter().any(|(name, named)| {
                named.presence == Presence::Required && {
                    let value = self.value_of(set, name, named.value);
                    value.is_ok_and(|value| value == NOTHING || self.is_empty(value))
                }
            })
    }

    /// What the key `name` can hold, by all that is said of it.
    pub(super) fn value_of(&mut self, set: &ObjectSet<'a>, name: &'a str, said: Conj) -> Result<Conj> {
        let mut value = said;
        for &(pattern, item) in &set.patterns {
            if item != ANY && self.matches(pattern, name)? {
                value = self.meet(value, item);
            }
        }
        for &(scope, item) in &set.additional {
            if item != ANY && !self.mentions(scope, name)? {
                value = self.meet(value, item);
            }
        }
        for &names in &set.names {
            let shape = self.expand(names)?;
            let mut allowed = false;
            for strings in &shape.strings {
                allowed = allowed || self.holds(strings, name)?;
            }
            if !allowed {
                return Ok(NOTHING);
            }
        }
        Ok(value)
    }

    pub(super) fn matches(&mut self, pattern: &'a str, name: &str) -> Result<bool> {
        self.languages.matches(pattern, name).map_err(|reason| self.at_text(pattern, reason.0))
    }

    pub(super) fn holds(&mut self, strings: &StringSet<'a>, name: &str) -> Result<bool> {
        self.languages.holds(strings, name).map_err(|(text, reason)| self.at_text(text, reason.0))
    }

    /// An error about a text of the document.
    pub(super) fn at_text(&self, text: &str, reason: String) -> SchemaError {
        let pointer = self.document.pointer(text.as_ptr() as usize);
        SchemaError { pointer, reason, severity: Severity::Unsupported }
    }

    /// Does the scope mention this key?
    pub(super) fn mentions(&mut self, scope: Scope<'a>, name: &str) -> Result<bool> {
        if names(scope).any(|known| known == name) {
            return Ok(true);
        }
        for pattern in patterns(scope) {
            if self.matches(pattern, name)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn array<'v>(&self, schema: &Value, keyword: &str, value: &'v Value) -> Result<&'v [Value]> {
        match value {
            Value::Array(items) => Ok(items),
            _ => Err(self.error(schema, keyword, "expected an array")),
        }
    }

    pub(super) fn object<'v>(&self, schema: &Value, keyword: &str, value: &'v Value) -> Result<&'v Map<String, Value>> {
        match value {
            Value::Object(map) => Ok(map),
            _ => Err(self.error(schema, keyword, "expected an object")),
        }
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

    fn numbers(&mut self, schema: &'a Value, map: &'a Map<String, Value>) -> Result<Option<NumberSet>> {
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

    fn not_numbers(&mut self, schema: &'a Value, map: &'a Map<String, Value>, out: &mut Shape<'a>) -> Result<()> {
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
        if self.languages.format(name).is_some() {
            return Ok(Some(name));
        }
        let warning = (Some(address(schema)), format!("format {name:?} is not known and not enforced"));
        if !self.warned.contains(&warning) {
            self.warned.push(warning);
        }
        Ok(None)
    }

    fn strings(&mut self, schema: &'a Value, map: &'a Map<String, Value>) -> Result<Option<StringSet<'a>>> {
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

    fn not_strings(&mut self, schema: &'a Value, map: &'a Map<String, Value>, out: &mut Shape<'a>) -> Result<()> {
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

    fn arrays(&mut self, schema: &'a Value, map: &'a Map<String, Value>) -> Result<Option<ArraySet>> {
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

    fn not_arrays(&mut self, schema: &'a Value, map: &'a Map<String, Value>, out: &mut Shape<'a>) -> Result<()> {
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

    fn objects(&mut self, schema: &'a Value, map: &'a Map<String, Value>) -> Result<Option<ObjectSet<'a>>> {
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
                set.say(name, Named { value, presence: Presence::Optional, declared: true }, self);
            }
        }
        let mut possible = true;
        if let Some(names) = map.get("required") {
            for name in self.required(schema, "required", names)? {
                possible &= set.say(name, Named { value: ANY, presence: Presence::Required, declared: false }, self);
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

    fn not_objects(&mut self, schema: &'a Value, map: &'a Map<String, Value>, out: &mut Shape<'a>) -> Result<()> {
        let mut sets = Vec::new();
        if let Some(properties) = map.get("properties") {
            for (name, value) in self.object(schema, "properties", properties)? {
                let value = self.not_schema(value)?;
                if value != NOTHING {
                    sets.push(single(name, Named { value, presence: Presence::Required, declared: false }));
                }
            }
        }
        if let Some(names) = map.get("required") {
            for name in self.required(schema, "required", names)? {
                sets.push(single(name, Named { value: ANY, presence: Presence::Forbidden, declared: false }));
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
    fn dependencies(&self, schema: &'a Value, map: &'a Map<String, Value>) -> Result<Vec<(&'a str, &'a Value)>> {
        let mut all = Vec::new();
        for (keyword, since) in [("dependencies", 0), ("dependentRequired", 19), ("dependentSchemas", 19)] {
            if let Some(value) = map.get(keyword).filter(|_| self.since(since)) {
                all.extend(self.object(schema, keyword, value)?.iter().map(|(name, value)| (name.as_str(), value)));
            }
        }
        Ok(all)
    }

    /// The key is absent, or what depends on it holds.
    fn dependency(&mut self, schema: &'a Value, name: &'a str, dependency: &'a Value) -> Result<Shape<'a>> {
        let absent = single(name, Named { value: ANY, presence: Presence::Forbidden, declared: false });
        let mut present = single(name, Named { value: ANY, presence: Presence::Required, declared: false });
        let mut shape = Shape::any();
        let implied = match dependency {
            Value::Array(_) | Value::String(_) => {
                for needed in self.needed(schema, dependency)? {
                    present.say(needed, Named { value: ANY, presence: Presence::Required, declared: false }, self);
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
    fn broken_dependency(&mut self, schema: &'a Value, name: &'a str, dependency: &'a Value) -> Result<Shape<'a>> {
        let present = single(name, Named { value: ANY, presence: Presence::Required, declared: false });
        let mut shape = Shape::default();
        match dependency {
            Value::Array(_) | Value::String(_) => {
                for needed in self.needed(schema, dependency)? {
                    let mut set = present.clone();
                    if set.say(needed, Named { value: ANY, presence: Presence::Forbidden, declared: false }, self) {
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

/// Keys that a scope mentions by name.
pub(super) fn names<'a>(scope: Scope<'a>) -> impl Iterator<Item = &'a str> {
    let map = match scope {
        Scope::Schema(schema) => schema.get("properties"),
        Scope::Const(value) => Some(value),
    };
    map.and_then(Value::as_object).into_iter().flat_map(|map| map.keys().map(String::as_str))
}

/// Patterns that a scope mentions.
pub(super) fn patterns<'a>(scope: Scope<'a>) -> impl Iterator<Item = &'a str> {
    let map = match scope {
        Scope::Schema(schema) => schema.get("patternProperties"),
        Scope::Const(_) => None,
    };
    map.and_then(Value::as_object).into_iter().flat_map(|map| map.keys().map(String::as_str))
}
