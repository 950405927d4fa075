//! Turns a grammar and a vocabulary into an artifact: one file that serves exact next-token masks.
//!
//! The pipeline, each stage a pure function with its own module:
//!
//! grammar IR → reduced grammar → LALR(1) table with its conflicts → lexer DFA → watched lexer → Terminal DWA (what each
//! token does) → Parser DWA (which stacks allow it) → verdict classes → rows → artifact.
//!
//! [`compile`] runs all of it ahead of time, or the first stages only ([`front`]): then, and when the others take more than
//! they may ([`control`]), they are left to [`Lazy`], which runs the same code for the lexer states and automaton edges that
//! matchers ask for.

mod assemble;
mod bits;
mod config;
pub mod control;
mod error;
mod front;
pub mod grammar;
pub mod json_schema;
mod lazy;
pub mod lexer;
pub mod lint;
pub mod lr;
mod parallel;
pub mod parser_dwa;
mod rows;
pub mod terminal_dwa;
pub mod vocab;

pub use config::Config;
pub use control::Budget;
pub use error::CompileError;
pub use front::find_cuts;
pub use lazy::Lazy;

use control::{Control, Stop, supervise};
use dwa_runtime::artifact::{Buffer, Header};
use dwa_runtime::{ArtifactError, Compiled, TableData, Tables, Vocab};
use front::Front;
use grammar::ir::Grammar;
use std::sync::{Arc, OnceLock};
use vocab::Trie;

/// A grammar, and its canonical text, which artifacts are known by.
#[derive(Debug, Clone)]
pub struct Source {
    text: Arc<str>,
    grammar: Arc<Grammar>,
}

impl Source {
    /// Read canonical text.
    ///
    /// # Errors
    /// [`CompileError::Malformed`].
    pub fn read(text: String) -> Result<Self, CompileError> {
        let grammar = serde_json::from_str(&text).map_err(|e| CompileError::Malformed(e.to_string()))?;
        Ok(Source { text: text.into(), grammar: Arc::new(grammar) })
    }

    /// The canonical text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl From<Grammar> for Source {
    fn from(grammar: Grammar) -> Self {
        Source { text: grammar::canonical::to_json(&grammar).into(), grammar: Arc::new(grammar) }
    }
}

/// An artifact and how it came about.
#[derive(Debug)]
pub struct Artifact {
    /// The file's bytes.
    pub bytes: Vec<u8>,
    /// Computes what the artifact leaves out, if it does.
    pub lazy: Option<Arc<Lazy>>,
    /// Sizes, times and memory.
    pub stats: Stats,
    /// What the author of the grammar, or whoever set the budget, should know.
    pub warnings: Vec<String>,
}

/// Sizes, times and memory of a build.
#[derive(Debug, Default, Clone)]
pub struct Stats {
    /// Name, milliseconds, and highest number of bytes allocated of each stage, in order.
    pub stages: Vec<(&'static str, f64, usize)>,
    /// Counts.
    pub sizes: Sizes,
}

/// Lexer states up to which a build that has no limits makes their rows ahead of time. One of more takes ten
/// seconds to minutes, for states of which a text meets a few: the products of bounded strings.
const MOST_STATES_AHEAD: usize = 1 << 14;

/// Counts, by name.
type Sizes = Vec<(&'static str, u64)>;

/// Told of each stage and its share done, 0 to 1; returns false to cancel the build.
pub type Progress<'p> = &'p mut dyn FnMut(&'static str, f64) -> bool;

/// How much is computed before serving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// Everything, as far as the budget goes.
    AheadOfTime,
    /// What serving cannot do without.
    OnDemand,
}

/// Compile a grammar.
///
/// The same input gives the same bytes.
///
/// # Errors
/// [`CompileError`].
pub fn compile(
    source: &Source,
    vocab: &Arc<Vocab>,
    trie: &Arc<Trie>,
    schedule: Schedule,
    config: &Config,
    progress: Progress<'_>,
) -> Result<Artifact, CompileError> {
    let build = Arc::new(Build {
        source: source.clone(),
        vocab: Arc::clone(vocab),
        trie: Arc::clone(trie),
        config: config.clone(),
        front: OnceLock::new(),
    });
    let own = Arc::clone(&build);
    let (result, control) = supervise(&config.budget, config.threads, progress, move |control| {
        let build = own;
        let vocab = Some((&*build.trie, build.vocab.size()));
        let built = Front::build(&build.source, vocab, &build.config)?;
        let front = build.front.get_or_init(|| Arc::new(built));
        let mut sizes = front.sizes();
        let bytes = match schedule {
            Schedule::AheadOfTime => {
                let states = front.lexer.state_count();
                if build.config.budget.is_default() && states > MOST_STATES_AHEAD {
                    let limit = format!("the default limit of {MOST_STATES_AHEAD} lexer states (there are {states})");
                    return Err(CompileError::Budget { limit, stage: "lexer" });
                }
                control.rest_is_optional();
                Some(build.whole(front, &mut sizes)?)
            }
            Schedule::OnDemand => None,
        };
        Ok((bytes, sizes))
    });
    let (found, over) = match result {
        Ok(Ok((Some(bytes), sizes))) => match config.budget.max_artifact {
            Some(most) if bytes.len() > most => (None, Some(build.over_artifact(bytes.len(), most))),
            _ => (Some((bytes, sizes)), None),
        },
        Ok(Ok((None, _))) => (None, None),
        Ok(Err(error @ (CompileError::Limit { .. } | CompileError::Budget { .. }))) if build.front.get().is_some() => {
            (None, Some(error))
        }
        Ok(Err(error)) => return Err(error),
        Err(stop) => (None, Some(build.stopped(stop, &control)?)),
    };
    let stats = |sizes| Stats { stages: control.summary(), sizes };
    match (found, build.front.get(), over) {
        (Some((bytes, sizes)), Some(front), _) => {
            Ok(Artifact { bytes, lazy: None, stats: stats(sizes), warnings: front.warnings.clone() })
        }
        (None, Some(front), over) if over.is_none() || config.budget.partial => {
            let mut sizes = front.sizes();
            let bytes = build.front_only(front, &mut sizes);
            let mut warnings = front.warnings.clone();
            warnings.extend(over.map(|over| format!("{over}; what is missing is filled on demand while it serves")));
            let lazy = Lazy::new(Arc::clone(front), Arc::clone(trie), vocab.words(), config.clone());
            Ok(Artifact { bytes, lazy: Some(Arc::new(lazy)), stats: stats(sizes), warnings })
        }
        (_, _, over) => Err(over.unwrap_or_else(|| CompileError::Internal("a build ended without a result".into()))),
    }
}

/// Serve an artifact: as it is, or, if it is partial, with the compiler behind it.
///
/// A partial artifact holds its grammar. The first stages run again, and must give the tables that stand in the file.
///
/// # Errors
/// [`ArtifactError`].
pub fn load(
    buffer: Buffer,
    vocab: &Arc<Vocab>,
    trie: impl FnOnce() -> Arc<Trie>,
    config: &Config,
) -> Result<Compiled, ArtifactError> {
    let buffer = Arc::new(buffer);
    let (tables, meta, _) = Tables::read(&buffer, vocab)?;
    if tables.grammar.is_empty() {
        return Compiled::new(buffer, Arc::clone(vocab));
    }
    let fail = |problem: String| ArtifactError::Inconsistent { section: "grammar", problem };
    let text = std::str::from_utf8(&tables.grammar).map_err(|e| fail(e.to_string()))?;
    let source = Source::read(text.to_owned()).map_err(|e| fail(e.to_string()))?;
    let config = Config { copied_states: meta.copied_states, ..config.clone() };
    let built = compile(&source, vocab, &trie(), Schedule::OnDemand, &config, &mut |_, _| true);
    let built = built.map_err(|e| fail(e.to_string()))?;
    match built.lazy {
        Some(lazy) if built.bytes == buffer.bytes() => Compiled::on_demand(buffer, Arc::clone(vocab), lazy),
        _ => Err(fail("it makes other tables than those in the file".into())),
    }
}

/// What a build is made from, and its first stages once they are done.
struct Build {
    source: Source,
    vocab: Arc<Vocab>,
    trie: Arc<Trie>,
    config: Config,
    front: OnceLock<Arc<Front>>,
}

impl Build {
    /// The stages after the first ones, and the artifact of all of them.
    fn whole(&self, front: &Front, sizes: &mut Sizes) -> Result<Vec<u8>, CompileError> {
        let mut size = |what: &'static str, count: usize| sizes.push((what, count as u64));
        control::begin("terminal_dwa");
        let terminal = terminal_dwa::build(front.recipes(&self.trie, &self.config));
        size("partitions", terminal.partitions.len());
        size("sequence_nodes", terminal.outcomes.nodes.len());
        size("boundary_classes", terminal.outcomes.classes.len());

        control::begin("parser_dwa");
        let dwa = parser_dwa::build(&front.quotient, &terminal.outcomes, &self.config)?;
        size("dwa_subsets", dwa.edges.len());
        size("dwa_configurations_max", dwa.max_configurations);
        let verdicts = parser_dwa::merge(dwa, &terminal.outcomes, front.quotient.terminal_classes as u32 - 1);
        size("dwa_states", verdicts.states.len());
        size("dwa_edges", verdicts.states.iter().map(|s| s.edges.len()).sum());
        size("verdict_classes", verdicts.count);

        control::begin("rows");
        let mut data = assemble::front(front, &terminal.outcomes);
        assemble::automaton(&verdicts, &mut data);
        rows::write(&terminal, &verdicts, (&self.trie, &front.symbols), self.vocab.words(), &mut data);
        data.meta = front.meta(verdicts.count, &self.vocab).to_section();
        control::begin("artifact");
        Ok(self.bytes(&data, sizes))
    }

    /// An artifact with the grammar in place of recipes and automaton.
    fn front_only(&self, front: &Front, sizes: &mut Sizes) -> Vec<u8> {
        let mut data = assemble::front(front, &terminal_dwa::Outcomes::of(front));
        assemble::nothing_else(&mut data);
        data.grammar = self.source.text.as_bytes().to_vec();
        data.meta = front.meta(2, &self.vocab).to_section();
        self.bytes(&data, sizes)
    }

    fn bytes(&self, data: &TableData, sizes: &mut Sizes) -> Vec<u8> {
        let bytes = data.write(&Header {
            vocab: *self.vocab.fingerprint(),
            vocab_size: self.vocab.size() as u64,
            grammar: *blake3::hash(self.source.text.as_bytes()).as_bytes(),
        });
        sizes.push(("artifact_bytes", bytes.len() as u64));
        bytes
    }

    /// The error of a build that was stopped; the other way round if it was cancelled.
    fn stopped(&self, stop: Stop, control: &Control) -> Result<CompileError, CompileError> {
        let (stage, budget) = (control.stage(), &self.config.budget);
        match stop {
            Stop::Cancelled => Err(CompileError::Cancelled { stage }),
            Stop::Seconds => {
                let limit = format!("max_seconds = {}", budget.max_seconds.unwrap_or_default());
                Ok(CompileError::Budget { limit, stage })
            }
            Stop::Memory => {
                let limit = match budget.max_memory {
                    Some(most) => format!("max_memory_mb = {}", mebibytes(most)),
                    None => format!("the default limit of {} MiB", mebibytes(control::MOST_OPTIONAL)),
                };
                Ok(CompileError::Budget { limit, stage })
            }
        }
    }

    fn over_artifact(&self, found: usize, most: usize) -> CompileError {
        let limit = format!("max_artifact_mb = {} (the whole takes {})", mebibytes(most), mebibytes(found));
        CompileError::Budget { limit, stage: "artifact" }
    }
}

/// Bytes in MiB, rounded for people.
fn mebibytes(bytes: usize) -> f64 {
    (bytes as f64 / f64::from(1 << 20) * 1000.0).round() / 1000.0
}
