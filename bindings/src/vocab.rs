//! `_native.Vocab`.

use crate::compiled::write_atomically;
use crate::error::{self, guard};
use compiler::vocab::saved::{Named, Names};
use compiler::vocab::{Trie, saved};
use dwa_runtime::artifact::Buffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Token ids and their bytes.
#[pyclass(frozen, module = "glrgrid._native")]
pub struct Vocab {
    pub inner: Arc<dwa_runtime::Vocab>,
    named: Named,
    trie: Arc<OnceLock<Arc<Trie>>>,
}

impl Vocab {
    /// The vocabulary prepared for compiling; built on first use.
    pub fn prepared(&self) -> Arc<OnceLock<Arc<Trie>>> {
        Arc::clone(&self.trie)
    }
}

#[pymethods]
impl Vocab {
    #[new]
    #[pyo3(signature = (tokens, eos_ids, names=None, markers=None))]
    fn new(
        py: Python<'_>,
        tokens: Vec<Option<Bound<'_, PyBytes>>>,
        eos_ids: Vec<u32>,
        names: Option<Names>,
        markers: Option<Vec<u32>>,
    ) -> PyResult<Self> {
        guard(|| {
            let mut names = names.unwrap_or_default();
            names.sort_unstable();
            names.retain(|(_, id)| (*id as usize) < tokens.len());
            let mut markers = markers.unwrap_or_default();
            markers.sort_unstable();
            markers.dedup();
            markers.retain(|id| (*id as usize) < tokens.len());
            let named = Named { names, markers };
            let tokens: Vec<Vec<u8>> =
                tokens.iter().map(|t| t.as_ref().map_or_else(Vec::new, |b| b.as_bytes().to_vec())).collect();
            let inner = py.detach(|| dwa_runtime::Vocab::new(&tokens, &eos_ids)).map_err(error::vocab)?;
            Ok(Vocab { inner: Arc::new(inner), named, trie: Arc::new(OnceLock::new()) })
        })
    }

    /// Build what compiling needs of the vocabulary now, instead of in the first ``compile``.
    fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        guard(|| {
            py.detach(|| {
                self.trie.get_or_init(|| Arc::new(Trie::new(&self.inner)));
            });
            Ok(())
        })
    }

    /// Write the vocabulary and what compiling needs of it, atomically.
    ///
    /// Raises
    /// ------
    /// VocabError
    ///     If the file cannot be written.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        guard(|| {
            py.detach(|| {
                let trie = self.trie.get_or_init(|| Arc::new(Trie::new(&self.inner)));
                write_atomically(&path, &saved::write(&self.inner, trie, &self.named))
            })
            .map_err(|e| error::vocab_file(&path, &format!("cannot be written: {e}")))
        })
    }

    /// Map what ``save`` wrote.
    ///
    /// Raises
    /// ------
    /// VocabError
    ///     If it is missing, damaged or of another version.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        guard(|| {
            py.detach(|| {
                let buffer = Buffer::map(&path).map_err(|e| format!("cannot be read: {e}"))?;
                saved::read(&Arc::new(buffer)).map_err(|e| e.to_string())
            })
            .map(|(vocab, trie, named)| Vocab {
                inner: Arc::new(vocab),
                named,
                trie: Arc::new(OnceLock::from(Arc::new(trie))),
            })
            .map_err(|problem| error::vocab_file(&path, &problem))
        })
    }

    fn __repr__(&self) -> String {
        format!("<Vocab {}: {} ids>", &self.inner.fingerprint_hex()[..12], self.inner.size())
    }

    /// Number of ids, padding included.
    #[getter]
    fn size(&self) -> usize {
        self.inner.size()
    }

    /// Ids of tokens by the names they are known by, sorted.
    #[getter]
    fn names(&self) -> Names {
        self.named.names.clone()
    }

    /// Ids of markers, ascending: named tokens that a grammar may also name by their text.
    #[getter]
    fn markers(&self) -> Vec<u32> {
        self.named.markers.clone()
    }

    /// Ids that end the output, ascending.
    #[getter]
    fn eos_ids(&self) -> Vec<u32> {
        self.inner.eos_ids().to_vec()
    }

    /// Bytes that no token of one byte spells.
    #[getter]
    fn missing_bytes(&self) -> Vec<u8> {
        self.inner.missing_bytes()
    }

    /// BLAKE3 of ids, bytes and end ids, hexadecimal.
    #[getter]
    fn fingerprint(&self) -> String {
        self.inner.fingerprint_hex()
    }

    /// Bytes of a token; None for ids that spell no text.
    fn token_bytes<'py>(&self, py: Python<'py>, token_id: usize) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if token_id >= self.inner.size() {
            let max = self.inner.size() - 1;
            return Err(error::state(format!(
                "token id {token_id} is out of range: the vocabulary has ids 0 to {max}"
            )));
        }
        let bytes = self.inner.token(token_id as u32);
        Ok((!bytes.is_empty()).then(|| PyBytes::new(py, bytes)))
    }
}
