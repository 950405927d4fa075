//! The grammar intermediate representation: what front ends produce and the compiler reads.
//!
//! A [`Grammar`] is a plain context-free grammar over terminals whose languages are [`Expr`] trees over bytes. It arrives
//! as the canonical JSON of `glrgrid/grammar/ir.py`; the two files define one format.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// A terminal's index.
pub type TerminalId = u32;

/// A name that many nonterminals and productions may have.
pub type Name = Cow<'static, str>;

/// The language of a terminal, as a regular expression over bytes. Code points are UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Expr {
    /// These bytes, in order.
    Bytes(Vec<u8>),
    /// The same, each ASCII letter in either case.
    Fold(Vec<u8>),
    /// One code point out of inclusive ranges; surrogates never match.
    Class(Vec<(u32, u32)>),
    /// One code point out of inclusive ranges, in any of its spellings in a JSON string; surrogates never match.
    JsonClass(Vec<(u32, u32)>),
    /// One byte out of inclusive ranges.
    ByteClass(Vec<(u8, u8)>),
    /// Concatenation; of nothing, the empty string.
    Cat(Vec<Expr>),
    /// Union; of nothing, the empty language.
    Alt(Vec<Expr>),
    /// `min` to `max` copies; `None` is unbounded.
    Repeat(Box<Expr>, u32, Option<u32>),
    /// Intersection.
    And(Vec<Expr>),
    /// Complement within all byte strings.
    Not(Box<Expr>),
    /// What an automaton accepts; it begins in state 0, and with no states accepts nothing.
    Graph(Vec<GraphState>),
    /// Exactly one token, of some ids or of all others, as a symbol of its own; only a whole terminal.
    Tokens {
        /// Whether it is the ids that are left out.
        negated: bool,
        /// First and last ids.
        ranges: Vec<(u32, u32)>,
        /// Names of ids that were not looked up in a vocabulary.
        names: Vec<String>,
    },
}

impl Expr {
    /// Whether it is a token terminal's, which no bytes match.
    pub fn is_token(&self) -> bool {
        matches!(self, Expr::Tokens { .. })
    }

    /// Number of its parts, about.
    pub(crate) fn size(&self) -> usize {
        let of = |parts: &[Expr]| parts.iter().map(Expr::size).sum::<usize>();
        1 + match self {
            Expr::Bytes(bytes) | Expr::Fold(bytes) => bytes.len() / 16,
            Expr::Class(ranges) | Expr::JsonClass(ranges) | Expr::Tokens { ranges, .. } => ranges.len() / 4,
            Expr::ByteClass(ranges) => ranges.len() / 8,
            Expr::Cat(parts) | Expr::Alt(parts) | Expr::And(parts) => of(parts),
            Expr::Repeat(body, ..) | Expr::Not(body) => body.size(),
            Expr::Graph(states) => {
                states.iter().flat_map(|state| &state.edges).map(|(label, _)| 1 + label.size()).sum()
            }
        }
    }
}

/// A state of an [`Expr::Graph`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct GraphState {
    /// May the text end here?
    pub accepting: bool,
    /// What leads to which state; no label matches the empty string.
    pub edges: Vec<(Expr, u32)>,
}

/// Nesting of a terminal expression beyond which a grammar is refused: deeper ones only come from hostile input.
pub const MAX_EXPR_DEPTH: usize = 200;

impl<'de> Deserialize<'de> for Expr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        expr_from_value(&value, 0).map_err(D::Error::custom)
    }
}

fn expr_from_value(value: &Value, depth: usize) -> Result<Expr, String> {
    if depth > MAX_EXPR_DEPTH {
        return Err(format!("terminal expression nested deeper than {MAX_EXPR_DEPTH}"));
    }
    let items = value.as_array().ok_or("terminal expression is not an array")?;
    let tag = items.first().and_then(Value::as_str).ok_or("terminal expression has no tag")?;
    let arg = |i: usize| items.get(i).ok_or_else(|| format!("expression {tag:?} lacks argument {i}"));
    let list = |i: usize| -> Result<&Vec<Value>, String> {
        arg(i)?.as_array().ok_or_else(|| format!("argument {i} of expression {tag:?} is not an array"))
    };
    let number = |v: &Value, max: u64| -> Result<u32, String> {
        match v.as_u64() {
            Some(n) if n <= max => Ok(n as u32),
            _ => Err(format!("{v} is not a number up to {max} in expression {tag:?}")),
        }
    };
    let ranges = |i: usize, max: u64| -> Result<Vec<(u32, u32)>, String> {
        list(i)?
            .iter()
            .map(|r| match r.as_array().map(Vec::as_slice) {
                Some([lo, hi]) => match (number(lo, max)?, number(hi, max)?) {
                    (lo, hi) if lo <= hi => Ok((lo, hi)),
                    _ => Err(format!("range {r} is empty in expression {tag:?}")),
                },
                _ => Err(format!("range {r} is not a pair in expression {tag:?}")),
            })
            .collect()
    };
    let children = || -> Result<Vec<Expr>, String> { list(1)?.iter().map(|v| expr_from_value(v, depth + 1)).collect() };
    Ok(match tag {
        "lit" => Expr::Bytes(arg(1)?.as_str().ok_or("literal is not a string")?.as_bytes().to_vec()),
        "fold" => Expr::Fold(arg(1)?.as_str().ok_or("folded literal is not a string")?.as_bytes().to_vec()),
        "words" => {
            let text = |v| Value::as_str(v).ok_or("a word is not a string");
            let pairs = list(1)?.iter().map(|pair| match pair.as_array().map(Vec::as_slice) {
                Some([before, after]) => Ok((text(before)?, text(after)?)),
                _ => Err(format!("{pair} is not a pair in expression {tag:?}")),
            });
            let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
            let texts = list(2)?.iter().map(text).collect::<Result<Vec<_>, _>>()?;
            let word = |(before, after): &(&str, &str), text: &str| Expr::Fold([before, text, after].concat().into());
            Expr::Alt(texts.iter().flat_map(|text| pairs.iter().map(move |pair| word(pair, text))).collect())
        }
        "bytes" => Expr::Bytes(list(1)?.iter().map(|v| number(v, 255).map(|b| b as u8)).collect::<Result<_, _>>()?),
        "class" => Expr::Class(ranges(1, 0x10FFFF)?),
        "jsonclass" => Expr::JsonClass(ranges(1, 0x10FFFF)?),
        "byteclass" => Expr::ByteClass(ranges(1, 255)?.into_iter().map(|(l, h)| (l as u8, h as u8)).collect()),
        "cat" => Expr::Cat(children()?),
        "alt" => Expr::Alt(children()?),
        "and" => Expr::And(children()?),
        "not" => Expr::Not(Box::new(expr_from_value(arg(1)?, depth + 1)?)),
        "repeat" => {
            let min = number(arg(2)?, u64::from(u32::MAX))?;
            let max = match arg(3)? {
                Value::Null => None,
                v => Some(number(v, u64::from(u32::MAX))?),
            };
            if max.is_some_and(|max| max < min) {
                return Err(format!("repeat {min} to {max:?} is empty"));
            }
            Expr::Repeat(Box::new(expr_from_value(arg(1)?, depth + 1)?), min, max)
        }
        "graph" => {
            let states = list(1)?;
            let last = (states.len() as u64).saturating_sub(1);
            let edge = |edge: &Value| match edge.as_array().map(Vec::as_slice) {
                Some([label, to]) => Ok((expr_from_value(label, depth + 1)?, number(to, last)?)),
                _ => Err(format!("edge {edge} is not a pair in expression {tag:?}")),
            };
            let state = |state: &Value| match state.as_array().map(Vec::as_slice) {
                Some([Value::Bool(accepting), Value::Array(edges)]) => {
                    Ok(GraphState { accepting: *accepting, edges: edges.iter().map(edge).collect::<Result<_, _>>()? })
                }
                _ => Err(format!("a state is not a flag and a list of edges in expression {tag:?}")),
            };
            Expr::Graph(states.iter().map(state).collect::<Result<_, _>>()?)
        }
        "tokens" if depth > 0 => return Err("a token is a whole terminal, not a part of one".into()),
        "tokens" => {
            let negated = arg(1)?.as_bool().ok_or("argument 1 of expression \"tokens\" is not true or false")?;
            let name = |name: &Value| name.as_str().map(str::to_owned).ok_or("the name of a token is not a string");
            let names = list(3)?.iter().map(name).collect::<Result<_, _>>()?;
            Expr::Tokens { negated, ranges: ranges(2, u64::from(u32::MAX))?, names }
        }
        other => return Err(format!("unknown expression tag {other:?}")),
    })
}

/// One terminal. Among those that match the same longest prefix the highest `(priority, literal)` wins.
#[derive(Debug, Clone, Deserialize)]
pub struct Terminal {
    /// Name shown to people.
    pub name: String,
    /// Its language; never contains the empty string. Grammars share what they have in common.
    pub expr: Arc<Expr>,
    /// Declared priority.
    pub priority: i32,
    /// A literal outranks a pattern of the same priority.
    pub literal: bool,
    /// Leaves the parser stack unchanged.
    pub ignored: bool,
    /// Takes part in the longest match, but no stack can shift it.
    pub reject: bool,
    /// Terminal whose action is used in LR states where this one has none.
    pub fallback: Option<TerminalId>,
    /// The part of the grammar it belongs to: an ignored or reject terminal then takes part only where another of its part
    /// can begin.
    #[serde(default)]
    pub scope: Option<u32>,
    /// 1-based line and column in the grammar text.
    pub position: Option<(u32, u32)>,
}

impl Terminal {
    /// A terminal that plays no special part.
    pub fn plain(name: impl Into<String>, expr: impl Into<Arc<Expr>>) -> Self {
        Terminal {
            name: name.into(),
            expr: expr.into(),
            priority: 0,
            literal: false,
            ignored: false,
            reject: false,
            fallback: None,
            scope: None,
            position: None,
        }
    }

    /// Rank among the terminals that match the same prefix: higher wins, equals are all followed.
    pub fn rank(&self) -> (i32, bool) {
        (self.priority, self.literal)
    }
}

/// One nonterminal.
#[derive(Debug, Clone, Deserialize)]
pub struct Nonterminal {
    /// Name shown to people.
    pub name: Name,
    /// 1-based line and column in the grammar text.
    pub position: Option<(u32, u32)>,
}

/// A grammar symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Symbol {
    /// Terminal with this index.
    T(TerminalId),
    /// Nonterminal with this index.
    N(u32),
}

impl<'de> Deserialize<'de> for Symbol {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = i32::deserialize(deserializer)?;
        Ok(if code >= 0 { Symbol::T(code as u32) } else { Symbol::N(!code as u32) })
    }
}

/// `lhs -> rhs`.
#[derive(Debug, Clone, Deserialize)]
pub struct Production {
    /// Nonterminal on the left.
    pub lhs: u32,
    /// Symbols on the right.
    pub rhs: Vec<Symbol>,
    /// Alias or rule name.
    pub name: Name,
}

/// How lexemes are cut (ARCHITECTURE.md, "The language").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LexerMode {
    /// Longest match over all terminals of the grammar.
    Basic,
    /// Longest match over the terminals that the LR state on top has an action for.
    Contextual,
}

/// A grammar.
#[derive(Debug, Clone, Deserialize)]
pub struct Grammar {
    /// Start nonterminal.
    pub start: u32,
    /// How lexemes are cut.
    pub lexer: LexerMode,
    /// Terminals, used or not.
    pub terminals: Vec<Terminal>,
    /// Nonterminals.
    pub nonterminals: Vec<Nonterminal>,
    /// Productions.
    pub productions: Vec<Production>,
}
