//! Every knob of the compiler. The compiler reads no environment.

use crate::control::Budget;
use crate::lexer::LexerLimits;
use crate::lr::LrLimits;

/// Limits and tuning of a build.
#[derive(Debug, Clone)]
pub struct Config {
    /// What a build may take. Default: no limit.
    pub budget: Budget,
    /// Threads that a build may use; `None`: one for each core.
    pub threads: Option<usize>,
    /// Sizes of the lexer's automata.
    pub lexer: LexerLimits,
    /// A bounded repeat whose copies take more NFA states than this is counted instead; inside of intersections, a sixteenth.
    /// Default 6,000; tests lower it so that short repeats are counted.
    pub copied_states: u32,
    /// Sizes of the LR tables.
    pub lr: LrLimits,
    /// States of the watched lexer. Default 1,000,000.
    pub max_watched_states: usize,
    /// Edges of the Parser DWA. Default 20,000,000.
    pub max_dwa_edges: usize,
    /// A lexer state with more tokens than this of its own gets a partition that other states can build on; if lexemes go on
    /// there with as many bytes, what tokens do inside of them is remembered beside the vocabulary.
    /// Default 64; tests lower it so that small vocabularies take that path too.
    pub shared_tokens: u32,
    /// Tokens for which a state must do the same as another to build on it. Default 16.
    pub min_agreement: u32,
    /// Frames of one sequence node and LR state, while the Parser DWA is made, whose sets of terminals may overlap; after
    /// these each terminal has its own, so that there are never exponentially many. Default 64; tests lower it.
    pub overlapping_sets: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            budget: Budget::default(),
            threads: None,
            lexer: LexerLimits::default(),
            copied_states: 6_000,
            lr: LrLimits::default(),
            max_watched_states: 1_000_000,
            max_dwa_edges: 20_000_000,
            shared_tokens: 64,
            min_agreement: 16,
            overlapping_sets: 64,
        }
    }
}
