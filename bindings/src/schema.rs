//! `_native.SchemaGrammar` and `lower_schema`: JSON Schema → grammar.

use crate::error::{self, guard};
use compiler::Source;
use compiler::json_schema::{self, Options, PropertyOrder, Whitespace};
use pyo3::prelude::*;

/// The grammar of a JSON Schema.
#[pyclass(frozen, module = "glrgrid._native")]
pub struct SchemaGrammar {
    pub source: Source,
    warnings: Vec<String>,
}

#[pymethods]
impl SchemaGrammar {
    /// Canonical JSON of the grammar, as ``GrammarIR.to_json`` writes it.
    fn to_json(&self) -> &str {
        self.source.text()
    }

    /// What is not enforced.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

/// Lower a JSON Schema, given as text; see ``Grammar.from_json_schema``.
#[pyfunction]
#[pyo3(signature = (text, *, separators=None, max_newlines=2, max_blanks=64, any_order=false, one_of_any=false, lenient=false))]
#[allow(clippy::too_many_arguments)]
pub fn lower_schema(
    py: Python<'_>,
    text: &str,
    separators: Option<(String, String)>,
    max_newlines: u32,
    max_blanks: u32,
    any_order: bool,
    one_of_any: bool,
    lenient: bool,
) -> PyResult<SchemaGrammar> {
    guard(|| {
        let whitespace = match separators {
            Some((item, key)) => Whitespace::Compact { item, key },
            None => Whitespace::Flexible { newlines: max_newlines, blanks: max_blanks },
        };
        let property_order = if any_order { PropertyOrder::Any } else { PropertyOrder::Schema };
        let options = Options { whitespace, property_order, one_of_any, lenient };
        let lowered = py.detach(|| json_schema::lower(text, &options)).map_err(error::schema)?;
        Ok(SchemaGrammar { source: lowered.grammar.into(), warnings: lowered.warnings })
    })
}
