//! `_native.CompiledGrammar`, `compile` and `load`.

use crate::error::{self, guard};
use crate::schema::SchemaGrammar;
use crate::vocab::Vocab;
use compiler::vocab::Trie;
use compiler::{Budget, Config, Schedule, Source, Stats};
use dwa_runtime::artifact::Buffer;
use dwa_runtime::{ArtifactError, Compiled};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A grammar compiled for a vocabulary; serves any number of matchers on any number of threads.
#[pyclass(frozen, module = "glrgrid._native")]
pub struct CompiledGrammar {
    pub inner: Arc<Compiled>,
    stats: Stats,
    warnings: Vec<String>,
}

fn io_error(action: &'static str, path: &Path, e: &std::io::Error) -> PyErr {
    error::artifact(ArtifactError::Io { action, path: path.display().to_string(), reason: e.to_string() })
}

/// Write a file so that readers see the old contents or the new, never a part: they may have the old one mapped. Links are
/// followed, a file keeps its mode, and what is no file (a device, a pipe) is written to.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let path = target.as_path();
    let known = std::fs::metadata(path).ok();
    if known.as_ref().is_some_and(|of| !of.is_file()) {
        return std::fs::OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}-{}.partial", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    let temporary = path.with_file_name(name);
    let written = std::fs::File::create_new(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| known.map_or(Ok(()), |of| std::fs::set_permissions(&temporary, of.permissions())))
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        std::fs::remove_file(&temporary).ok();
    }
    written
}

#[pymethods]
impl CompiledGrammar {
    /// Write the artifact to ``path``, atomically.
    ///
    /// Raises
    /// ------
    /// ArtifactError
    ///     If the file cannot be written.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        guard(|| py.detach(|| write_atomically(&path, self.inner.bytes()).map_err(|e| io_error("write", &path, &e))))
    }

    /// The artifact's bytes, as ``save`` writes them.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        guard(|| Ok(PyBytes::new(py, self.inner.bytes())))
    }

    /// Milliseconds by stage (of the build, empty if loaded), counts, and artifact bytes by section.
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = PyDict::new(py);
        let (milliseconds, peak_bytes) = (PyDict::new(py), PyDict::new(py));
        for (stage, ms, peak) in &self.stats.stages {
            milliseconds.set_item(stage, ms)?;
            peak_bytes.set_item(stage, peak)?;
        }
        stats.set_item("milliseconds", milliseconds)?;
        stats.set_item("peak_bytes", peak_bytes)?;
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

    /// Fingerprint of the grammar, hexadecimal.
    #[getter]
    fn grammar_fingerprint(&self) -> String {
        self.inner.header().grammar.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// Fingerprint of the vocabulary, hexadecimal.
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

/// Stops the builds it was given to.
#[pyclass(frozen, module = "glrgrid._native")]
#[derive(Default)]
pub struct CancelToken {
    cancelled: AtomicBool,
}

#[pymethods]
impl CancelToken {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Stop them. A build that sees this raises ``Cancelled``.
    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether ``cancel`` was called.
    #[getter]
    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Bytes that the native side has allocated now.
fn allocated() -> usize {
    crate::ALLOCATOR.allocated()
}

/// A positive number of MiB in bytes.
fn mebibytes(name: &str, value: Option<f64>) -> PyResult<Option<usize>> {
    Ok(positive(name, value)?.map(|mib| (mib * f64::from(1 << 20)) as usize))
}

fn positive(name: &str, value: Option<f64>) -> PyResult<Option<f64>> {
    match value {
        Some(value) if value.is_nan() || value <= 0.0 => {
            Err(error::state(format!("{name} is {value}; pass a positive number, or None")))
        }
        value => Ok(value),
    }
}

/// Compile a grammar, in canonical IR text or as it was lowered.
#[pyfunction]
#[pyo3(signature = (
    ir, vocab, *, lazy=false, max_seconds=None, max_memory_mb=None, max_artifact_mb=None, partial=true, max_threads=None,
    cancel=None, progress=None, shared_tokens=None, min_agreement=None, overlapping_sets=None, copied_states=None
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords of a Python function")]
pub fn compile(
    py: Python<'_>,
    ir: &Bound<'_, PyAny>,
    vocab: &Vocab,
    lazy: bool,
    max_seconds: Option<f64>,
    max_memory_mb: Option<f64>,
    max_artifact_mb: Option<f64>,
    partial: bool,
    max_threads: Option<usize>,
    cancel: Option<Py<CancelToken>>,
    progress: Option<Py<PyAny>>,
    shared_tokens: Option<u32>,
    min_agreement: Option<u32>,
    overlapping_sets: Option<usize>,
    copied_states: Option<u32>,
) -> PyResult<CompiledGrammar> {
    guard(|| {
        let mut config = Config::default();
        config.shared_tokens = shared_tokens.unwrap_or(config.shared_tokens);
        config.min_agreement = min_agreement.unwrap_or(config.min_agreement);
        config.overlapping_sets = overlapping_sets.unwrap_or(config.overlapping_sets);
        config.copied_states = copied_states.unwrap_or(config.copied_states);
        config.threads = max_threads;
        config.budget = Budget {
            max_seconds: positive("max_seconds", max_seconds)?,
            max_memory: mebibytes("max_memory_mb", max_memory_mb)?,
            max_artifact: mebibytes("max_artifact_mb", max_artifact_mb)?,
            partial,
            allocated: Some(allocated),
        };
        let schedule = if lazy { Schedule::OnDemand } else { Schedule::AheadOfTime };
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
                if cancel.as_ref().is_some_and(|token| token.get().is_cancelled()) {
                    return false;
                }
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
            compiler::compile(source, &inner, trie, schedule, &config, &mut tell)
        });
        if let Some(error) = raised {
            return Err(error);
        }
        let artifact = built.map_err(error::compile)?;
        let buffer = Buffer::from_bytes(&artifact.bytes);
        let compiled = py.detach(|| match artifact.lazy {
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
        let (inner, trie) = (Arc::clone(&vocab.inner), vocab.prepared());
        let buffer = match source.cast::<PyBytes>() {
            Ok(bytes) => Buffer::from_bytes(bytes.as_bytes()),
            Err(_) => dwa_runtime::map_file(&source.extract::<PathBuf>()?).map_err(error::artifact)?,
        };
        let trie = || Arc::clone(trie.get_or_init(|| Arc::new(Trie::new(&inner))));
        let compiled =
            py.detach(|| compiler::load(buffer, &inner, trie, &Config::default())).map_err(error::artifact)?;
        Ok(CompiledGrammar { inner: Arc::new(compiled), stats: Stats::default(), warnings: Vec::new() })
    })
}
