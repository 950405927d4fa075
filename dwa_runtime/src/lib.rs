//! Serves exact next-token masks from a compiled Parser DWA.
//!
//! [`Compiled`] is an artifact bound to its vocabulary; a [`Matcher`] is one output being decoded against it. The crate
//! needs no compiler: everything it reads stands in the artifact ([`artifact`] defines the layout).
//!
//! A mask is decided by parser configurations, lexer state × parser stack. For each live branch the stack is read from
//! the top down by the Parser DWA ([`verdict`]), which yields the set of verdict classes that hold; the lexer state's
//! recipe ([`rows`]) says which token sets those classes stand for; the resulting row is cached and copied out.

pub mod artifact;
mod batch;
mod bitmask;
mod commit;
mod error;
mod explain;
mod far;
mod forced;
mod history;
mod inspect;
mod lr;
mod mask;
mod matcher;
mod rows;
pub mod supply;
mod tables;
mod verdict;
mod vocab;

pub use batch::fill_bitmasks;
pub use bitmask::words_for;
pub use error::{ArtifactError, MatcherError, VocabError};
pub use explain::Explanation;
pub use forced::Encode;
pub use inspect::Opened;
pub use matcher::{Compiled, Matcher, map_file};
pub use tables::{ALWAYS, END_VERDICT, GROUP_ENDS, Meta, NONE, START, TableData, Tables};
pub use vocab::Vocab;
