//! `_native.Matcher`.

use crate::buffer::with_row;
use crate::compiled::CompiledGrammar;
use crate::error::{self, Int, guard};
use dwa_runtime::MatcherError;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

/// One output being decoded.
#[pyclass(module = "glrgrid._native")]
pub struct Matcher {
    inner: dwa_runtime::Matcher,
}

impl Matcher {
    fn id(&self, token_id: i64) -> PyResult<u32> {
        let max = self.inner.compiled().vocab().size() - 1;
        u32::try_from(token_id).map_err(|_| error::matcher(MatcherError::TokenRange { id: token_id, max }))
    }
}

#[pymethods]
impl Matcher {
    #[new]
    fn new(compiled: &CompiledGrammar) -> Self {
        Matcher { inner: dwa_runtime::Matcher::new(compiled.inner.clone()) }
    }

    #[pyo3(signature = (bitmask, index=Int(0)), text_signature = "($self, bitmask, index=0)")]
    fn fill_next_token_bitmask(&self, py: Python<'_>, bitmask: &Bound<'_, PyAny>, index: Int) -> PyResult<()> {
        guard(|| {
            let words = self.inner.compiled().meta().vocab_words as usize;
            with_row(py, bitmask, index.0, words, |row| self.inner.fill_bitmask(row).map_err(error::matcher))
        })
    }

    fn accept_token(&mut self, token_id: Int) -> PyResult<bool> {
        guard(|| {
            let id = self.id(token_id.0)?;
            self.inner.accept_token(id).map_err(error::matcher)
        })
    }

    fn accept_bytes(&mut self, data: &[u8]) -> PyResult<usize> {
        guard(|| self.inner.accept_bytes(data).map_err(error::matcher))
    }

    #[pyo3(signature = (n=Int(1)), text_signature = "($self, n=1)")]
    fn rollback(&mut self, n: Int) -> PyResult<()> {
        guard(|| {
            let n = usize::try_from(n.0)
                .map_err(|_| error::state(format!("cannot roll back {} steps: give 0 or more", n.0)))?;
            self.inner.rollback(n).map_err(error::matcher)
        })
    }

    fn fork(&self) -> Self {
        Matcher { inner: self.inner.clone() }
    }

    fn reset(&mut self) {
        self.inner.reset();
    }

    fn is_accepting(&self) -> PyResult<bool> {
        guard(|| Ok(self.inner.is_accepting()))
    }

    fn is_terminated(&self) -> bool {
        self.inner.is_terminated()
    }

    /// The next mask as a numpy bool array of shape `(size,)`.
    fn mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guard(|| {
            let compiled = self.inner.compiled();
            let mut row = vec![0u32; compiled.meta().vocab_words as usize];
            self.inner.fill_bitmask(&mut row).map_err(error::matcher)?;
            let bools: Vec<u8> = (0..compiled.vocab().size()).map(|id| (row[id / 32] >> (id % 32) & 1) as u8).collect();
            py.import("numpy")?.call_method1("frombuffer", (PyByteArray::new(py, &bools), "?"))
        })
    }

    /// Steps that can be rolled back.
    #[getter]
    fn steps(&self) -> usize {
        self.inner.steps()
    }

    /// Live branches and stack tops, for tests of ambiguity.
    #[getter]
    fn branch_counts(&self) -> (usize, usize) {
        self.inner.branch_counts()
    }

    fn __repr__(&self) -> String {
        format!("Matcher(steps={}, terminated={})", self.inner.steps(), self.inner.is_terminated())
    }
}
