//! The Parser DWA: which boundary classes a stack accepts.
//!
//! `quotient` merges what no stack tells apart; `symbolic` runs LR actions on a stack of which only the top part is known; `subset` determinises that, reading one stack
//! symbol at a time from the top down; `verdict` merges classes that no stack tells apart. The theory on one small grammar
//! is in the README beside this file.

mod quotient;
mod subset;
mod symbolic;
mod verdict;

pub use quotient::Quotient;
pub(crate) use subset::build;
pub(crate) use symbolic::{Output, Suspended, Symbolic};
pub(crate) use verdict::merge;
pub use verdict::{NEVER, State, Verdicts};
