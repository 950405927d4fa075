//! Scratch.
#[allow(missing_docs)]
pub mod format;
#[allow(missing_docs)]
pub mod number;
#[allow(missing_docs)]
pub mod pattern;
#[allow(missing_docs)]
pub mod string;

/// Why something is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason(pub String);
