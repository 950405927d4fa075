//! `_native.CompiledGrammar`, `compile` and `load`.

use crate::error::{self, guard};
use crate::vocab::Vocab;
use compiler::vocab::Trie;
use compiler::{Config, Stats};
use dwa_runtime::artifact::Buffer;
use dwa_runtime::{ArtifactError, Compiled};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A compiled grammar; serves any number of matchers.
#[pyclass(frozen, module = "glrgrid._native")]
pub struct CompiledGrammar {
    pub inner: Arc<Compiled>,
    bytes: Option<Vec<u8>>,
    path: Option<PathBuf>,
    stats: Stats,
    warnings: Vec<String>,
}

impl CompiledGrammar {
    fn artifact(&self) -> PyResult<std::borrow::Cow<'_, [u8]>> {
        match (&self.bytes, &self.path) {
            (Some(bytes), _) => Ok(bytes.into()),
            (None, Some(path)) => Ok(std::fs::read(path).map_err(|e| io_error("read", path, &e))?.into()),
            (None, None) => Ok((&[] as &[u8]).into()),
        }
    }
}

fn io_error(action: &'static str, path: &Path, e: &std::io::Error) -> PyErr {
    error::artifact(ArtifactError::Io { action, path: path.display().to_string(), reason: e.to_string() })
}

#[pymethods]
impl CompiledGrammar {
    /// Write the artifact to `path`, atomically.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        guard(|| {
            let bytes = self.artifact()?;
            py.detach(|| {
                // A reader may have the old file mapped: write a new one and rename it into place.
                let temporary = path.with_extension(format!("tmp{}", std::process::id()));
                let written = std::fs::File::create(&temporary)
                    .and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()))
                    .and_then(|()| std::fs::rename(&temporary, &path));
                written.map_err(|e| {
                    std::fs::remove_file(&temporary).ok();
                    io_error("write", &path, &e)
                })
            })
        })
    }

    /// The artifact's bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        guard(|| Ok(PyBytes::new(py, &self.artifact()?)))
    }

    /// Milliseconds by stage, sizes, and artifact bytes by section.
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = PyDict::new(py);
        let milliseconds = PyDict::new(py);
        for (stage, ms) in &self.stats.milliseconds {
            milliseconds.set_item(stage, ms)?;
        }
        stats.set_item("milliseconds", milliseconds)?;
        for (what, count) in &self.stats.sizes {
            stats.set_item(what, count)?;
        }
        let sections = PyDict::new(py);
        for (section, size) in self.inner.section_sizes() {
            sections.set_item(section, size)?;
        }
        stats.set_item("section_bytes", sections)?;
        stats.set_item("artifact_bytes", self.inner.artifact_bytes())?;
        stats.set_item("rows_missing", 0)?;
        Ok(stats)
    }

    /// What the author of the grammar should know.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// Fingerprint of the grammar, in hexadecimal.
    #[getter]
    fn grammar_fingerprint(&self) -> String {
        self.inner.header().grammar.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// Fingerprint of the vocabulary, in hexadecimal.
    #[getter]
    fn vocab_fingerprint(&self) -> String {
        self.inner.vocab().fingerprint_hex()
    }

    /// Width of the logits, padding included.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.inner.vocab().size()
    }

    fn __repr__(&self) -> String {
        format!(
            "CompiledGrammar({} bytes, vocabulary of {} ids)",
            self.inner.artifact_bytes(),
            self.inner.vocab().size()
        )
    }
}

/// Compile a grammar in canonical IR text.
#[pyfunction]
#[pyo3(signature = (ir, vocab, *, progress=None, shared_tokens=None, min_agreement=None))]
pub fn compile(
    py: Python<'_>,
    ir: String,
    vocab: &Vocab,
    progress: Option<Py<PyAny>>,
    shared_tokens: Option<u32>,
    min_agreement: Option<u32>,
) -> PyResult<CompiledGrammar> {
    guard(|| {
        let mut config = Config::default();
        config.shared_tokens = shared_tokens.unwrap_or(config.shared_tokens);
        config.min_agreement = min_agreement.unwrap_or(config.min_agreement);
        let (inner, trie) = (Arc::clone(&vocab.inner), vocab.prepared());
        let mut raised: Option<PyErr> = None;
        let built = py.detach(|| {
            let trie = trie.get_or_init(|| Trie::new(&inner));
            let mut tell = |stage: &'static str, share: f64| -> bool {
                let told = Python::attach(|py| {
                    py.check_signals()?;
                    progress.as_ref().map_or(Ok(()), |p| p.call1(py, (stage, share)).map(drop))
                });
                match told {
                    Ok(()) => true,
                    Err(e) => {
                        raised.get_or_insert(e);
                        false
                    }
                }
            };
            compiler::compile(&ir, &inner, trie, &config, &mut tell)
        });
        if let Some(error) = raised {
            return Err(error);
        }
        let artifact = built.map_err(error::compile)?;
        let compiled =
            py.detach(|| Compiled::new(Buffer::from_bytes(&artifact.bytes), inner)).map_err(error::artifact)?;
        Ok(CompiledGrammar {
            inner: Arc::new(compiled),
            bytes: Some(artifact.bytes),
            path: None,
            stats: artifact.stats,
            warnings: artifact.warnings,
        })
    })
}

/// Load an artifact, from a file (mapped) or from its bytes.
#[pyfunction]
pub fn load(py: Python<'_>, source: &Bound<'_, PyAny>, vocab: &Vocab) -> PyResult<CompiledGrammar> {
    guard(|| {
        let inner = Arc::clone(&vocab.inner);
        let (compiled, bytes, path) = if let Ok(bytes) = source.cast::<PyBytes>() {
            let bytes = bytes.as_bytes().to_vec();
            let compiled = py.detach(|| Compiled::new(Buffer::from_bytes(&bytes), inner)).map_err(error::artifact)?;
            (compiled, Some(bytes), None)
        } else {
            let path: PathBuf = source.extract()?;
            (py.detach(|| Compiled::load(&path, inner)).map_err(error::artifact)?, None, Some(path))
        };
        Ok(CompiledGrammar { inner: Arc::new(compiled), bytes, path, stats: Stats::default(), warnings: Vec::new() })
    })
}
