//! `_native.inspect` and `_native.dot`: artifacts for people, without their vocabulary.

use crate::error::{self, guard};
use dwa_runtime::Opened;
use dwa_runtime::artifact::{Buffer, FORMAT_VERSION};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;

fn open(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Opened> {
    if let Ok(bytes) = source.cast::<PyBytes>() {
        return Opened::new(Buffer::from_bytes(bytes.as_bytes())).map_err(error::artifact);
    }
    let path: PathBuf = source.extract()?;
    py.detach(|| Opened::load(&path)).map_err(error::artifact)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// What an artifact, a file or its bytes, holds: fingerprints, terminals, counts, bytes of each section.
///
/// Raises
/// ------
/// ArtifactError
///     If it is missing, damaged or of another version.
#[pyfunction]
pub fn inspect<'py>(py: Python<'py>, source: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    guard(|| {
        let opened = open(py, source)?;
        let header = opened.header();
        let report = PyDict::new(py);
        report.set_item("format_version", FORMAT_VERSION)?;
        report.set_item("grammar_fingerprint", hexadecimal(&header.grammar))?;
        report.set_item("vocab_fingerprint", hexadecimal(&header.vocab))?;
        report.set_item("vocab_size", header.vocab_size)?;
        report.set_item("artifact_bytes", opened.size())?;
        report.set_item("terminals", opened.terminals())?;
        let (counts, sections) = (PyDict::new(py), PyDict::new(py));
        for (what, count) in opened.counts() {
            counts.set_item(what, count)?;
        }
        for (section, size) in opened.section_sizes() {
            sections.set_item(section, size)?;
        }
        report.set_item("counts", counts)?;
        report.set_item("section_bytes", sections)?;
        Ok(report)
    })
}

/// The ``"lexer"`` or the ``"parser"`` automaton of an artifact in Graphviz's language.
///
/// Raises
/// ------
/// ArtifactError
///     If it is missing, damaged or of another version.
/// BudgetExceeded
///     If the automaton has more than ``max_states`` states.
/// StateError
///     For another automaton.
#[pyfunction]
#[pyo3(signature = (source, automaton, max_states=200))]
pub fn dot(py: Python<'_>, source: &Bound<'_, PyAny>, automaton: &str, max_states: usize) -> PyResult<String> {
    guard(|| {
        let opened = open(py, source)?;
        let drawn = match automaton {
            "lexer" => opened.lexer_dot(max_states),
            "parser" => opened.parser_dot(max_states),
            _ => return Err(error::state(format!("no automaton {automaton:?}; expected \"lexer\" or \"parser\""))),
        };
        drawn.map_err(|states| error::too_large(automaton, states, max_states))
    })
}
