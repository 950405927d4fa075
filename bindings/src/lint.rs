//! `_native.find_cuts` and `_native.lint`: what can be said about grammars without a vocabulary.

use crate::error::{self, guard};
use compiler::lexer::{LexerError, LexerLimits};
use compiler::{CompileError, Source};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// A text, the terminal that should end there, what can match more, and what follows.
type Cut<'py> = (Bound<'py, PyBytes>, u32, u32, u32);

/// Where the longest match could cut a sentence elsewhere than the grammar does.
///
/// Parameters
/// ----------
/// ir : str
///     Canonical JSON of a grammar.
/// max_states : int
///     Largest automaton to build.
///
/// Returns
/// -------
/// list of (bytes, int, int, int)
///     A text, the terminal that should end there, a terminal that can match more, and the terminal that follows.
/// str or None
///     If an automaton is too large, the terminal's name, empty for all of them together; nothing is known then.
///
/// Raises
/// ------
/// GrammarError
///     If the grammar derives nothing, or a terminal is empty or matches the empty string.
#[pyfunction]
pub fn find_cuts<'py>(py: Python<'py>, ir: String, max_states: usize) -> PyResult<(Vec<Cut<'py>>, Option<String>)> {
    guard(|| {
        let limits = LexerLimits {
            max_nfa_states: 16 * max_states,
            max_dfa_states: max_states,
            max_subset_elements: 64 * max_states,
        };
        match py.detach(|| compiler::find_cuts(&Source::read(ir)?, &limits)) {
            Ok(cuts) => {
                let cuts =
                    cuts.into_iter().map(|c| (PyBytes::new(py, &c.text), c.terminal, c.longer, c.follower)).collect();
                Ok((cuts, None))
            }
            Err(CompileError::Lexer {
                error: LexerError::DfaStates { terminal, .. } | LexerError::SubsetElements { terminal, .. },
                ..
            }) => Ok((Vec::new(), Some(terminal.unwrap_or_default()))),
            Err(CompileError::Lexer {
                error: LexerError::RepeatTooLarge { terminal, .. } | LexerError::NfaStates { terminal, .. },
                ..
            }) => Ok((Vec::new(), Some(terminal))),
            Err(error) => Err(error::compile(error)),
        }
    })
}

/// What can be said about a grammar without a vocabulary.
///
/// Returns
/// -------
/// dict
///     ``sizes`` of lexer and parser; ``warnings`` that compiling would give; the first ``conflicts``, each the names
///     of the symbols read, that of the next terminal (``None`` at the end), an example text up to there, and what
///     the parser can do.
///
/// Raises
/// ------
/// GrammarError, BudgetExceeded
///     As compiling does.
#[pyfunction]
pub fn lint<'py>(py: Python<'py>, ir: String, max_conflicts: usize) -> PyResult<Bound<'py, PyDict>> {
    guard(|| {
        let found = py.detach(|| compiler::lint::lint(&Source::read(ir)?, max_conflicts)).map_err(error::compile)?;
        let (report, sizes) = (PyDict::new(py), PyDict::new(py));
        for (what, count) in &found.sizes {
            sizes.set_item(what, count)?;
        }
        report.set_item("sizes", sizes)?;
        report.set_item("warnings", found.warnings)?;
        let conflicts: Vec<_> =
            found.conflicts.into_iter().map(|c| (c.before, c.next, PyBytes::new(py, &c.example), c.actions)).collect();
        report.set_item("conflicts", conflicts)?;
        Ok(report)
    })
}
