//! What can go wrong at run time.

use thiserror::Error;

/// A compiled artifact cannot be used.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum ArtifactError {
    /// The file could not be read or written.
    #[error("cannot {action} artifact {path}: {reason}")]
    Io {
        /// "read" or "write".
        action: &'static str,
        /// The file.
        path: String,
        /// The operating system's words.
        reason: String,
    },
    /// Not one of our files.
    #[error("not a glrgrid artifact: {0}; compile the grammar again")]
    NotAnArtifact(&'static str),
    /// Written by another format version.
    #[error("unsupported artifact version: expected {expected}, found {found}; recompile with this release")]
    Version {
        /// What this release reads.
        expected: u32,
        /// What the file says.
        found: u32,
    },
    /// Shorter or longer than its header says.
    #[error("artifact is truncated or padded: expected {expected} bytes, found {found}; copy or compile it again")]
    Length {
        /// Bytes promised by the header.
        expected: u64,
        /// Bytes found.
        found: u64,
    },
    /// A section's hash differs.
    #[error("artifact is damaged: section {section:?} does not match its hash; copy or compile it again")]
    Damaged {
        /// The section's name.
        section: &'static str,
    },
    /// A section's contents contradict each other.
    #[error("artifact is inconsistent: section {section:?}: {problem}; compile it again")]
    Inconsistent {
        /// The section's name.
        section: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// Built for another vocabulary.
    #[error(
        "artifact was built for vocabulary {expected} ({expected_size} ids), tokenizer is {found} ({found_size} ids)"
    )]
    Vocabulary {
        /// Fingerprint in the file.
        expected: String,
        /// Ids in the file.
        expected_size: u64,
        /// Fingerprint given.
        found: String,
        /// Ids given.
        found_size: u64,
    },
    /// Recipes and automaton are left out.
    #[error(
        "the artifact is partial: it is completed while it serves, which takes the compiler; load it with the compiler, or compile it whole"
    )]
    NeedsCompiler,
}

/// A matcher was used in a way it does not allow. Nothing was changed.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum MatcherError {
    /// No such token.
    #[error("token id {id} is out of range: the vocabulary has ids 0 to {max}")]
    TokenRange {
        /// The id given.
        id: i64,
        /// The largest valid id.
        max: usize,
    },
    /// An end-of-sequence token was accepted before.
    #[error("the matcher is terminated: an end token was accepted; call rollback or reset first")]
    Terminated,
    /// More steps than were taken.
    #[error("cannot roll back {asked} steps: only {taken} were taken")]
    Rollback {
        /// Steps asked for.
        asked: usize,
        /// Steps that can be undone.
        taken: usize,
    },
    /// A bitmask row of the wrong length.
    #[error("bitmask row has {found} words, expected {expected}")]
    RowLength {
        /// Words given.
        found: usize,
        /// Words needed.
        expected: usize,
    },
    /// No token can continue the output.
    #[error(
        "dead end: no token can continue the output and it is not complete ({configuration}); the grammar cannot be \
         cut there (see CompiledGrammar.warnings), or the vocabulary cannot spell what must come next"
    )]
    DeadEnd {
        /// The configurations, for people.
        configuration: String,
    },
}

/// A vocabulary is malformed.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum VocabError {
    /// No ids at all.
    #[error("the vocabulary is empty: give at least one token")]
    Empty,
    /// Too many ids for a bitmask row's 16-bit word index.
    #[error("the vocabulary has {size} ids, at most {max} are supported")]
    TooLarge {
        /// Ids given.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// An end id outside the vocabulary.
    #[error("end token id {id} is out of range: the vocabulary has ids 0 to {max}")]
    EosRange {
        /// The id.
        id: u32,
        /// The largest valid id.
        max: usize,
    },
    /// More bytes than offsets can count.
    #[error("the tokens have {bytes} bytes in all, at most {max} are supported")]
    TooManyBytes {
        /// Their sum.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// A saved vocabulary that cannot be used.
    #[error("the saved vocabulary {problem}; save it again, or load the tokenizer that it was made of")]
    Saved {
        /// What is wrong.
        problem: String,
    },
    /// A token longer than the limit.
    #[error("token {id} has {length} bytes, at most {max} are supported")]
    TokenTooLong {
        /// The id.
        id: usize,
        /// Its length.
        length: usize,
        /// The limit.
        max: usize,
    },
}
