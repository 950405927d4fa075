//! Schemas → [`Shape`]s.
//!
//! A *literal* is a schema of the document, or its complement; a [`Conj`] an interned set of literals. Expanding a
//! conjunction intersects the shapes of its literals, and the shape of a literal unites and intersects those of the schemas
//! that apply to the same value (`allOf`, `anyOf`, `$ref`, ...). What applies to parts of the value stays a conjunction, so
//! each call does a bounded amount of work and recursive schemas are as finite as their document.

use super::document::{Document, REFERENCES_HAVE_SIBLINGS, address};
use super::effort;
use super::languages::Languages;
use super::shape::{ANY, ArraySet, Conj, Meet, NOTHING, ObjectSet, Presence, Scope, Shape, StringSet};
use super::{Options, SchemaError, Severity};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};
use std::rc::Rc;

/// Schemas applied to one value inside of each other.
const MAX_DEPTH: usize = 120;
/// Alternatives of one shape.
const MAX_WIDTH: usize = 500;
/// Pairs of alternatives that are tried for it.
const MAX_PRODUCTS: usize = 10_000;
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
    pub(super) warned: Vec<(Option<usize>, String)>,
    pub(super) languages: Languages<'a>,
    nodes: Vec<Node<'a>>,
    node_ids: FxHashMap<(usize, bool), u32>,
    conjs: Vec<Rc<[Literal]>>,
    conj_ids: FxHashMap<Rc<[Literal]>, Conj>,
    meets: FxHashMap<(Conj, Conj), Conj>,
    shapes: FxHashMap<Conj, Rc<Shape<'a>>>,
    literal_shapes: FxHashMap<Literal, Memo<Rc<Shape<'a>>>>,
    empty: FxHashMap<Conj, Memo<bool>>,
    /// The schema that is being expanded, for errors.
    at: &'a Value,
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
            at: document.root,
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
        self.languages.effort.charge(literals.len());
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

    pub(super) fn unsupported(&self, schema: &Value, keyword: &str, reason: impl Into<String>) -> SchemaError {
        SchemaError { severity: Severity::Unsupported, ..self.error(schema, keyword, reason) }
    }

    pub(super) fn too_large(&self, schema: &Value, reason: String) -> SchemaError {
        SchemaError { severity: Severity::Budget, ..self.error(schema, "", reason) }
    }

    /// Take steps, unless lowering the document takes too many.
    pub(super) fn spend(&mut self, steps: usize) -> Result<()> {
        match self.languages.effort.spend(steps) {
            Some(()) => Ok(()),
            None => {
                let reason = format!("lowering takes more than {} steps in all; simplify the schema", effort::ALL);
                Err(self.too_large(self.at, reason))
            }
        }
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
    pub(super) fn pointless(&self) -> bool {
        !self.since(6)
    }

    /// Is the keyword part of the document's draft, since this one?
    pub(super) fn since(&self, draft: u8) -> bool {
        self.document.draft.is_none_or(|d| d >= draft)
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
    pub(super) fn literal(&mut self, mut schema: &'a Value) -> Result<Literal> {
        for _ in 0..MAX_HOPS {
            let map = match schema {
                Value::Bool(accepts) => return Ok(if *accepts { TRUE } else { FALSE }),
                Value::Object(map) => map,
                _ => return Err(self.error(schema, "", "a schema is an object or a boolean")),
            };
            if map.contains_key("$ref") && !self.since(REFERENCES_HAVE_SIBLINGS) {
                self.warn_of_siblings(schema, map);
                schema = self.target(schema, map)?;
                continue;
            }
            let mut keywords = map.iter().filter(|(key, _)| constrains(key));
            match (keywords.next(), keywords.next()) {
                (None, _) => return Ok(TRUE),
                (Some((key, _)), None) if key == "$ref" => schema = self.target(schema, map)?,
                _ => return Ok(self.node(Node::Schema(schema))),
            }
        }
        Err(self.error(schema, "$ref", "references lead round in circles"))
    }

    fn warn_of_siblings(&mut self, schema: &'a Value, map: &'a Map<String, Value>) {
        let ignored: Vec<_> =
            map.keys().filter(|key| *key != "$ref" && constrains(key)).map(|k| format!("{k:?}")).collect();
        let text = format!("{} beside $ref means nothing in this draft and is not enforced", ignored.join(", "));
        let warning = (Some(address(schema)), text);
        if !ignored.is_empty() && !self.warned.contains(&warning) {
            self.warned.push(warning);
        }
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

    pub(super) fn not_schema(&mut self, schema: &'a Value) -> Result<Conj> {
        let literal = self.literal(schema)?;
        Ok(self.conj(vec![literal ^ 1]))
    }

    pub(super) fn not_constant(&mut self, value: &'a Value) -> Conj {
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
        self.spend(0)?;
        let literals = self.conjs[conj.0 as usize].clone();
        let shape = match *literals {
            [only] => self.expand_literal(only)?,
            _ => {
                let mut shape = Shape::any();
                // What is not excluded last: there, most alternatives are empty.
                let (accepted, excluded): (Vec<_>, Vec<_>) = literals.iter().partition(|&l| l & 1 == 0);
                for literal in accepted.into_iter().chain(excluded) {
                    let next = self.expand_literal(literal)?;
                    shape = self.intersection(&shape, &next)?;
                }
                Rc::new(shape)
            }
        };
        self.shapes.insert(conj, shape.clone());
        Ok(shape)
    }

    pub(super) fn intersection(&mut self, a: &Shape<'a>, b: &Shape<'a>) -> Result<Shape<'a>> {
        self.spend(a.steps(b))?;
        let products = a.objects.len() * b.objects.len() + a.arrays.len() * b.arrays.len();
        let mut shape = if products > MAX_PRODUCTS { Shape::default() } else { a.intersect(b, self) };
        if a.objects.len() * b.objects.len() > 1 {
            let objects = std::mem::take(&mut shape.objects);
            for object in objects {
                if !self.object_is_empty(&object) {
                    shape.objects.push(object);
                }
            }
        }
        if products > MAX_PRODUCTS || shape.width() > MAX_WIDTH {
            return Err(self.too_wide());
        }
        Ok(shape)
    }

    fn too_wide(&self) -> SchemaError {
        let reason = format!("its alternatives multiply to more than {MAX_WIDTH}; simplify the schema");
        self.too_large(self.at, reason)
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
        let (Node::Schema(here) | Node::Const(here)) = node;
        let outer = std::mem::replace(&mut self.at, here);
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
            Node::Const(value) if literal & 1 == 0 => self.values(std::slice::from_ref(value)),
            Node::Const(value) => self.other_values(std::slice::from_ref(value)),
        };
        self.depth -= 1;
        self.at = outer;
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
            if shape.width() > MAX_PRODUCTS {
                return Err(self.too_wide());
            }
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
            let values = self.values(values)?;
            shape = self.intersection(&shape, &values)?;
        }
        if let Some(value) = map.get("const").filter(|_| self.since(6)) {
            let values = self.values(std::slice::from_ref(value))?;
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
            shape = match self.one_of(&branches, &shape) {
                Err(error) if !self.options.one_of_any => {
                    self.relax(error)?;
                    let any = self.union(&branches)?;
                    self.intersection(&shape, &any)?
                }
                one => one?,
            };
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

    pub(super) fn within(&mut self, shape: &Shape<'a>, literal: Literal) -> Result<Shape<'a>> {
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

    /// The values of `context` of which exactly one of the branches holds.
    fn one_of(&mut self, branches: &[Literal], context: &Shape<'a>) -> Result<Shape<'a>> {
        let mut shapes = Vec::with_capacity(branches.len());
        for &branch in branches {
            shapes.push(self.within(context, branch)?);
        }
        let mut excluded: Vec<Vec<Literal>> = vec![Vec::new(); branches.len()];
        for i in 0..branches.len() {
            for j in 0..i {
                let apart =
                    self.options.one_of_any || (branches[i] != branches[j] && self.disjoint(&shapes[i], &shapes[j])?);
                if !apart {
                    excluded[i].push(branches[j] ^ 1);
                    excluded[j].push(branches[i] ^ 1);
                }
            }
        }
        let mut out = Shape::default();
        for (mut shape, excluded) in shapes.into_iter().zip(excluded) {
            for literal in excluded {
                shape = self.within(&shape, literal)?;
            }
            out.unite(shape);
        }
        Ok(out)
    }

    fn disjoint(&mut self, a: &Shape<'a>, b: &Shape<'a>) -> Result<bool> {
        if (a.null && b.null) || (a.yes && b.yes) || (a.no && b.no) {
            return Ok(false);
        }
        if a.width() * b.width() > MAX_PRODUCTS {
            return Ok(false);
        }
        self.spend(a.steps(b))?;
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
        if named(scope).is_some_and(|map| map.contains_key(name)) {
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
}

/// What a scope mentions by name.
fn named(scope: Scope<'_>) -> Option<&Map<String, Value>> {
    let map = match scope {
        Scope::Schema(schema) => schema.get("properties"),
        Scope::Const(value) => Some(value),
    };
    map.and_then(Value::as_object)
}

/// Keys that a scope mentions by name.
pub(super) fn names<'a>(scope: Scope<'a>) -> impl Iterator<Item = &'a str> {
    named(scope).into_iter().flat_map(|map| map.keys().map(String::as_str))
}

/// Patterns that a scope mentions.
pub(super) fn patterns<'a>(scope: Scope<'a>) -> impl Iterator<Item = &'a str> {
    let map = match scope {
        Scope::Schema(schema) => schema.get("patternProperties"),
        Scope::Const(_) => None,
    };
    map.and_then(Value::as_object).into_iter().flat_map(|map| map.keys().map(String::as_str))
}
