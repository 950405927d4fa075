//! From the grammar IR to a reduced grammar that LR parsing terminates on, and what the lexer needs to know about it.
//!
//! [`reduce`] checks a grammar and drops its useless parts, [`epsilon`] removes hidden left recursion and cycles, and
//! [`analysis`] answers which terminals can come next to each other.

pub mod analysis;
pub mod canonical;
pub mod epsilon;
pub mod ir;
pub mod reduce;
pub mod relation;

#[cfg(test)]
pub(crate) mod testing;
