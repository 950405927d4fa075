//! JSON Schema → grammar.
//!
//! A schema is normalised ([`normalise`]) into unions of constraints by type ([`shape`]), whose strings and numbers become
//! terminals ([`languages`]) and whose arrays and objects productions ([`emit`]). Everything is enforced exactly, or refused
//! with a [`SchemaError`] that names the place; a lenient caller gets a warning and a larger language instead.
//!
//! The language is that of RFC 8259 texts, with white space bounded, keys in a certain order, and no key twice among those
//! that the schema names. `docs/json_schema.md` says what that means for a user.

mod arrays;
mod derivative;
mod document;
mod effort;
mod emit;
pub mod format;
mod keywords;
mod languages;
mod list;
mod normalise;
pub mod number;
mod objects;
pub mod pattern;
mod shape;
pub mod string;

use crate::grammar::ir::Grammar;
use document::Document;
use serde_json::Value;

/// Why something is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason(pub String);

/// Where white space may stand outside of strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whitespace {
    /// Between any two tokens, before and after the text: runs of at most so many of each.
    Flexible {
        /// Line feeds.
        newlines: u32,
        /// Spaces, tabs and carriage returns.
        blanks: u32,
    },
    /// Only what is written here.
    Compact {
        /// Between items and between members: a comma, and what surrounds it.
        item: String,
        /// Between key and value: a colon, and what surrounds it.
        key: String,
    },
}

/// In which order the keys of an object come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PropertyOrder {
    /// Those under `properties` in their order, then those that are only required, then others.
    Schema,
    /// Any.
    Any,
}

/// How a schema is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// White space.
    pub whitespace: Whitespace,
    /// Order of keys.
    pub property_order: PropertyOrder,
    /// Read `oneOf` as `anyOf`.
    pub one_of_any: bool,
    /// Turn refusals into warnings where leaving the constraint out gives a larger language.
    pub lenient: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            whitespace: Whitespace::Flexible { newlines: 2, blanks: 64 },
            property_order: PropertyOrder::Schema,
            one_of_any: false,
            lenient: false,
        }
    }
}

/// What a refusal means for a lenient caller, and for the exception it becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The constraint could be left out.
    Unsupported,
    /// The schema is malformed, or accepts nothing.
    Malformed,
    /// The schema is too large.
    Budget,
}

/// Why a schema is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SchemaError {
    /// JSON Pointer of the place.
    pub pointer: String,
    /// What is wrong and what to do.
    pub reason: String,
    /// What kind of refusal it is.
    pub severity: Severity,
}

impl SchemaError {
    /// The pointer, readable also where it is empty, which is the pointer to the whole document.
    pub fn place(&self) -> &str {
        if self.pointer.is_empty() { "the root" } else { &self.pointer }
    }
}

/// A schema as a grammar.
#[derive(Debug)]
pub struct Lowered {
    /// The grammar.
    pub grammar: Grammar,
    /// What is not enforced.
    pub warnings: Vec<String>,
}

/// Lower a schema, given as JSON text.
///
/// # Errors
/// [`SchemaError`].
pub fn lower(text: &str, options: &Options) -> Result<Lowered, SchemaError> {
    let root: Value = serde_json::from_str(text).map_err(|e| SchemaError {
        pointer: String::new(),
        reason: format!("the schema is not JSON that can be read: {e}"),
        severity: Severity::Malformed,
    })?;
    emit::lower(Document::new(&root, text), options)
}
