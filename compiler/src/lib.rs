//! Turns a grammar and a vocabulary into an artifact: one file that serves exact next-token masks.
//!
//! The pipeline, each stage a pure function with its own module:
//!
//! grammar IR → reduced grammar → LALR(1) table with its conflicts → lexer DFA → watched lexer → Terminal DWA (what each
//! token does) → Parser DWA (which stacks allow it) → verdict classes → rows → artifact.
//!
//! [`compile`] runs all of it ahead of time. [`compile_lazy`] runs the first stages ([`front`]) and leaves the others to
//! [`Lazy`], which runs the same code for the lexer states and automaton edges that matchers ask for.

mod assemble;
mod bits;
mod config;
mod error;
mod front;
pub mod grammar;
pub mod json_schema;
mod lazy;
pub mod lexer;
pub mod lr;
pub mod parser_dwa;
mod rows;
pub mod terminal_dwa;
pub mod vocab;

pub use config::Config;
pub use error::CompileError;
pub use lazy::Lazy;

use dwa_runtime::artifact::Header;
use dwa_runtime::{TableData, Vocab};
use front::Front;
use grammar::ir::Grammar;
use std::sync::Arc;
use std::time::Instant;
use vocab::Trie;

/// A grammar, and its canonical text, which artifacts are known by.
#[derive(Debug)]
pub struct Source {
    text: String,
    grammar: Arc<Grammar>,
}

impl Source {
    /// Read canonical text.
    ///
    /// # Errors
    /// [`CompileError::Malformed`].
    pub fn read(text: String) -> Result<Self, CompileError> {
        let grammar = serde_json::from_str(&text).map_err(|e| CompileError::Malformed(e.to_string()))?;
        Ok(Source { text, grammar: Arc::new(grammar) })
    }

    /// The canonical text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl From<Grammar> for Source {
    fn from(grammar: Grammar) -> Self {
        Source { text: grammar::canonical::to_json(&grammar), grammar: Arc::new(grammar) }
    }
}

/// An artifact and how it came about.
#[derive(Debug)]
pub struct Artifact {
    /// The file's bytes.
    pub bytes: Vec<u8>,
    /// Sizes and times.
    pub stats: Stats,
    /// What the author of the grammar should know.
    pub warnings: Vec<String>,
}

/// Sizes and times of a build.
#[derive(Debug, Default, Clone)]
pub struct Stats {
    /// Milliseconds of each stage, in order.
    pub milliseconds: Vec<(&'static str, f64)>,
    /// Counts.
    pub sizes: Vec<(&'static str, u64)>,
}

/// Told of each stage and its share done, 0 to 1; returns false to cancel the build.
pub type Progress<'p> = &'p mut dyn FnMut(&'static str, f64) -> bool;

struct Stages<'p> {
    progress: Progress<'p>,
    stats: Stats,
    started: Instant,
    stage: &'static str,
}

impl Stages<'_> {
    fn begin(&mut self, stage: &'static str) -> Result<(), CompileError> {
        self.end();
        self.stage = stage;
        self.started = Instant::now();
        if (self.progress)(stage, 0.0) { Ok(()) } else { Err(CompileError::Cancelled) }
    }

    fn end(&mut self) {
        if !self.stage.is_empty() {
            self.stats.milliseconds.push((self.stage, self.started.elapsed().as_secs_f64() * 1e3));
        }
    }

    fn size(&mut self, what: &'static str, count: usize) {
        self.stats.sizes.push((what, count as u64));
    }
}

/// Compile a grammar.
///
/// The same input gives the same bytes.
///
/// # Errors
/// [`CompileError`].
pub fn compile(
    source: &Source,
    vocab: &Vocab,
    trie: &Arc<Trie>,
    config: &Config,
    progress: Progress<'_>,
) -> Result<Artifact, CompileError> {
    let mut stages = Stages { progress, stats: Stats::default(), started: Instant::now(), stage: "" };
    let front = Front::build(source, config, &mut stages)?;

    stages.begin("terminal_dwa")?;
    let mut report = |done: usize, of: usize| (stages.progress)("terminal_dwa", done as f64 / of.max(1) as f64);
    let terminal = terminal_dwa::build(front.recipes(trie, config), &mut report).ok_or(CompileError::Cancelled)?;
    stages.size("partitions", terminal.partitions.len());
    stages.size("sequence_nodes", terminal.outcomes.nodes.len());
    stages.size("boundary_classes", terminal.outcomes.classes.len());

    stages.begin("parser_dwa")?;
    let mut report = |done: usize, of: usize| (stages.progress)("parser_dwa", done as f64 / of.max(1) as f64);
    let dwa = parser_dwa::build(&front.quotient, &terminal.outcomes, config.max_dwa_edges, &mut report)?;
    stages.size("dwa_subsets", dwa.edges.len());
    stages.size("dwa_configurations_max", dwa.max_configurations);
    let verdicts = parser_dwa::merge(dwa, &terminal.outcomes, front.quotient.terminal_classes as u32 - 1);
    stages.size("dwa_states", verdicts.states.len());
    stages.size("dwa_edges", verdicts.states.iter().map(|s| s.edges.len()).sum());
    stages.size("verdict_classes", verdicts.count);

    stages.begin("rows")?;
    let mut data = assemble::front(&front, &terminal.outcomes);
    assemble::automaton(&verdicts, &mut data);
    rows::write(&terminal, &verdicts, trie, vocab.words(), &mut data);
    data.meta = front.meta(verdicts.count, vocab).to_section();
    stages.begin("artifact")?;
    Ok(finish(&data, source, &front, vocab, stages))
}

/// Run the first stages only: an artifact that holds the grammar instead of recipes and automaton, and what supplies those.
///
/// # Errors
/// [`CompileError`].
pub fn compile_lazy(
    source: &Source,
    vocab: &Vocab,
    trie: &Arc<Trie>,
    config: &Config,
    progress: Progress<'_>,
) -> Result<(Artifact, Arc<Lazy>), CompileError> {
    let mut stages = Stages { progress, stats: Stats::default(), started: Instant::now(), stage: "" };
    let front = Arc::new(Front::build(source, config, &mut stages)?);
    stages.begin("artifact")?;
    let lazy = Lazy::new(Arc::clone(&front), Arc::clone(trie), vocab.words(), config.clone());
    let mut data = assemble::front(&front, &terminal_dwa::Outcomes::of(&front));
    assemble::nothing_else(&mut data);
    data.grammar = source.text.as_bytes().to_vec();
    data.meta = front.meta(2, vocab).to_section();
    Ok((finish(&data, source, &front, vocab, stages), Arc::new(lazy)))
}

fn finish(data: &TableData, source: &Source, front: &Front, vocab: &Vocab, mut stages: Stages<'_>) -> Artifact {
    let bytes = data.write(&Header {
        vocab: *vocab.fingerprint(),
        vocab_size: vocab.size() as u64,
        grammar: *blake3::hash(source.text.as_bytes()).as_bytes(),
    });
    stages.size("artifact_bytes", bytes.len());
    stages.end();
    Artifact { bytes, stats: stages.stats, warnings: front.warnings.clone() }
}
