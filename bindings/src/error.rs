//! The table of core errors and the Python exceptions they become.

use compiler::CompileError;
use compiler::json_schema::{SchemaError, Severity};
use dwa_runtime::{ArtifactError, MatcherError, VocabError};
use pyo3::PyErr;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

mod py {
    pyo3::import_exception!(glrgrid.errors, ArtifactError);
    pyo3::import_exception!(glrgrid.errors, BudgetExceeded);
    pyo3::import_exception!(glrgrid.errors, Cancelled);
    pyo3::import_exception!(glrgrid.errors, DeadEnd);
    pyo3::import_exception!(glrgrid.errors, GrammarError);
    pyo3::import_exception!(glrgrid.errors, InternalError);
    pyo3::import_exception!(glrgrid.errors, SchemaError);
    pyo3::import_exception!(glrgrid.errors, StateError);
    pyo3::import_exception!(glrgrid.errors, VocabError);
}

pub fn vocab(error: VocabError) -> PyErr {
    py::VocabError::new_err(error.to_string())
}

pub fn vocab_file(path: &Path, problem: &str) -> PyErr {
    py::VocabError::new_err(format!("{}: {problem}", path.display()))
}

pub fn artifact(error: ArtifactError) -> PyErr {
    py::ArtifactError::new_err(error.to_string())
}

pub fn state(message: String) -> PyErr {
    py::StateError::new_err(message)
}

pub fn matcher(error: MatcherError) -> PyErr {
    raised(&error, error.to_string())
}

/// An error of one matcher of a batch.
pub fn matcher_at(index: usize, error: &MatcherError) -> PyErr {
    raised(error, format!("matchers[{index}]: {error}"))
}

fn raised(error: &MatcherError, message: String) -> PyErr {
    match error {
        MatcherError::DeadEnd { .. } => py::DeadEnd::new_err(message),
        _ => py::StateError::new_err(message),
    }
}

/// An automaton too large to be drawn.
pub fn too_large(what: &str, states: usize, limit: usize) -> PyErr {
    py::BudgetExceeded::new_err(format!(
        "the {what} automaton has {states} states, max_states is {limit}; raise it, or draw a smaller grammar"
    ))
}

pub fn compile(error: CompileError) -> PyErr {
    let message = error.to_string();
    match error {
        CompileError::Malformed(_) | CompileError::NothingBegins { .. } | CompileError::TooManyTerminals { .. } => {
            py::GrammarError::new_err(message)
        }
        CompileError::Grammar(issue) => placed(py::GrammarError::new_err(message), issue.position()),
        CompileError::Lexer { error, position } => {
            use compiler::lexer::LexerError::{EmptyLanguage, Nullable, TokenRange, TooDeep, UnresolvedToken};
            let raised = match error {
                Nullable { .. }
                | EmptyLanguage { .. }
                | TooDeep { .. }
                | TokenRange { .. }
                | UnresolvedToken { .. } => py::GrammarError::new_err(message),
                _ => return py::BudgetExceeded::new_err(message),
            };
            placed(raised, position)
        }
        CompileError::Lr(_) | CompileError::Limit { .. } | CompileError::Budget { .. } => {
            py::BudgetExceeded::new_err(message)
        }
        CompileError::Cancelled { .. } => py::Cancelled::new_err(message),
        CompileError::Internal(_) => py::InternalError::new_err(message),
    }
}

/// A grammar's error whose message already names the place; the attributes are for programs.
fn placed(raised: PyErr, position: Option<(u32, u32)>) -> PyErr {
    if let Some((line, column)) = position {
        Python::attach(|py| {
            let value = raised.value(py);
            value.setattr("line", line).and_then(|()| value.setattr("column", column))
        })
        .ok();
    }
    raised
}

pub fn schema(error: SchemaError) -> PyErr {
    match error.severity {
        Severity::Budget => py::BudgetExceeded::new_err(format!("{} (at {})", error.reason, error.place())),
        _ => py::SchemaError::new_err((error.reason, error.pointer)),
    }
}

/// Run `body`; a panic becomes an `InternalError`.
pub fn guard<T>(body: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let what = panic
            .downcast_ref::<&str>()
            .map(|s| (*s).to_string())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "unknown panic".into());
        Err(py::InternalError::new_err(format!("a broken invariant inside glrgrid, please report it: {what}")))
    })
}

/// An integer argument; one that no machine word holds is an ordinary misuse, not an `OverflowError`.
pub struct Int(pub i64);

impl<'py> FromPyObject<'_, 'py> for Int {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        object.extract::<i64>().map(Int).map_err(|e| {
            if e.is_instance_of::<pyo3::exceptions::PyOverflowError>(object.py()) {
                state(format!("{} is out of range", object.to_owned()))
            } else {
                e
            }
        })
    }
}
