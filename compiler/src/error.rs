//! Why a grammar was not compiled.

use crate::grammar::reduce::GrammarIssue;
use crate::lexer::LexerError;
use crate::lr::LrError;
use thiserror::Error;

/// Why a grammar was not compiled.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The text is not a grammar in IR form.
    #[error("malformed grammar: {0}")]
    Malformed(String),
    /// The grammar itself.
    #[error("{0}")]
    Grammar(#[from] GrammarIssue),
    /// A terminal.
    #[error("{error}{}", position.map_or(String::new(), |(line, column)| format!(" (line {line}, column {column})")))]
    Lexer {
        /// What is wrong.
        error: LexerError,
        /// Position of the terminal, where known.
        position: Option<(u32, u32)>,
    },
    /// No text can even begin.
    #[error(
        "no text matches the grammar: by the longest match, none of the terminals it can begin with can ever be followed \
         by what must come after it ({}); give them distinct endings, or lower the rank of what takes their place",
        terminals.join(", ")
    )]
    NothingBegins {
        /// Terminals that a sentence begins with.
        terminals: Vec<String>,
    },
    /// More terminals than the tables address.
    #[error("the grammar has {found} terminals, at most {limit} are supported; share terminals between rules")]
    TooManyTerminals {
        /// Terminals found.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The LR tables outgrew a limit.
    #[error("{0}; simplify the grammar")]
    Lr(#[from] LrError),
    /// A later stage outgrew a limit.
    #[error("build passed its limit of {limit} {what} in stage {stage}; simplify the grammar or raise the limit")]
    Limit {
        /// The stage.
        stage: &'static str,
        /// What there was too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The caller asked to stop.
    #[error("build was cancelled in stage {stage}")]
    Cancelled {
        /// The stage it was in.
        stage: &'static str,
    },
    /// The build took more than it may.
    #[error("build passed {limit} in stage {stage}")]
    Budget {
        /// The limit and its value.
        limit: String,
        /// The stage it was in.
        stage: &'static str,
    },
    /// A broken invariant.
    #[error("internal error: {0}")]
    Internal(String),
}
