//! LALR(1) tables for generalised parsing: every conflict is kept.

mod items;
mod lookahead;
mod table;

pub use table::{Action, LrError, LrLimits, LrTable};

#[cfg(test)]
mod tests;
