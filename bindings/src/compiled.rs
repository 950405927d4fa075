//! `_native.CompiledGrammar`, `compile` and `load`.

use crate::error::{self, guard};
use crate::schema::SchemaGrammar;
use crate::vocab::Vocab;
use compiler::vocab::Trie;
use compiler::{Config, Source, Stats};
use dwa_runtime::artifact::Buffer;
use dwa_runtime::{ArtifactError, Compiled};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A compiled grammar; serves any number of matchers.
#[pyclass(frozen, module = "glrgrid._native")]
pub struct CompiledGrammar {
    pub inner: Arc<Compiled>,
    stats: Stats,
    warnings: Vec<String>,
}

fn io_error(action: &'static str, path: &Path, e: &std::io::Error) -> PyErr {
    error::artifact(ArtifactError::Io { action, path: path.display().to_string(), reason: e.to_string() })
}

/// Write a file so that readers see the old contents or the new, never a part: they may have the old one mapped.
fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}-{}.partial", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    let temporary = path.with_file_name(name);
    let written = std::fs::File::create_new(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        std::fs::remove_file(&temporary).ok();
    }
    written
}

#[pymethods]
impl CompiledGrammar {
    /// Write the artifact to `path`, atomically.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        guard(|| py.detach(|| write_atomically(&path, self.inner.bytes()).map_err(|e| io_error("write", &path, &e))))
    }

    /// The artifact's bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        guard(|| Ok(PyBytes::new(py, self.inner.bytes())))
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
        stats.set_item("artifact_bytes", self.inner.bytes().len())?;
        stats.set_item("rows_missing", self.inner.rows_missing())?;
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
        let counts = self.inner.counts();
        let count = |what: &str| counts.iter().find(|(name, _)| *name == what).map_or(0, |(_, count)| *count);
        format!(
            "<CompiledGrammar {}: {} terminals, {} lexer states, {} LR states, {} bytes, for {} ids>",
            &self.grammar_fingerprint()[..12],
            count("terminals"),
            count("lexer_states"),
            count("lr_states"),
            self.inner.bytes().len(),
            self.inner.vocab().size()
        )
    }
}

/// Compile a grammar, in canonical IR text or as it was lowered.
#[pyfunction]
#[pyo3(signature = (ir, vocab, *, lazy=false, progress=None, shared_tokens=None, min_agreement=None))]
pub fn compile(
    py: Python<'_>,
    ir: &Bound<'_, PyAny>,
    vocab: &Vocab,
    lazy: bool,
    progress: Option<Py<PyAny>>,
    shared_tokens: Option<u32>,
    min_agreement: Option<u32>,
) -> PyResult<CompiledGrammar> {
    guard(|| {
        let mut config = Config::default();
        config.shared_tokens = shared_tokens.unwrap_or(config.shared_tokens);
        config.min_agreement = min_agreement.unwrap_or(config.min_agreement);
        let (inner, trie) = (Arc::clone(&vocab.inner), vocab.prepared());
        let read: Source;
        let source = match ir.cast::<SchemaGrammar>() {
            Ok(lowered) => &lowered.get().source,
            Err(_) => {
                read = Source::read(ir.extract()?).map_err(error::compile)?;
                &read
            }
        };
        let mut raised: Option<PyErr> = None;
        let built = py.detach(|| {
            let trie = trie.get_or_init(|| Arc::new(Trie::new(&inner)));
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
            if lazy {
                compiler::compile_lazy(source, &inner, trie, &config, &mut tell).map(|(a, lazy)| (a, Some(lazy)))
            } else {
                compiler::compile(source, &inner, trie, &config, &mut tell).map(|a| (a, None))
            }
        });
        if let Some(error) = raised {
            return Err(error);
        }
        let (artifact, lazy) = built.map_err(error::compile)?;
        let buffer = Buffer::from_bytes(&artifact.bytes);
        let compiled = py.detach(|| match lazy {
            Some(lazy) => Compiled::on_demand(buffer, inner, lazy),
            None => Compiled::new(buffer, inner),
        });
        let compiled = compiled.map_err(error::artifact)?;
        Ok(CompiledGrammar { inner: Arc::new(compiled), stats: artifact.stats, warnings: artifact.warnings })
    })
}

/// Load an artifact, from a file (mapped) or from its bytes.
#[pyfunction]
pub fn load(py: Python<'_>, source: &Bound<'_, PyAny>, vocab: &Vocab) -> PyResult<CompiledGrammar> {
    guard(|| {
        let inner = Arc::clone(&vocab.inner);
        let compiled = if let Ok(bytes) = source.cast::<PyBytes>() {
            let buffer = Buffer::from_bytes(bytes.as_bytes());
            py.detach(|| Compiled::new(buffer, inner)).map_err(error::artifact)?
        } else {
            let path: PathBuf = source.extract()?;
            py.detach(|| Compiled::load(&path, inner)).map_err(error::artifact)?
        };
        Ok(CompiledGrammar { inner: Arc::new(compiled), stats: Stats::default(), warnings: Vec::new() })
    })
}
