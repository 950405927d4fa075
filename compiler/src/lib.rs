//! Turns a grammar and a vocabulary into an artifact: one file that serves exact next-token masks.
//!
//! The pipeline, each stage a pure function with its own module:
//!
//! grammar IR → reduced grammar → LALR(1) table with its conflicts → lexer DFA → watched lexer → Terminal DWA (what each
//! token does) → Parser DWA (which stacks allow it) → verdict classes → rows → artifact.

mod assemble;
mod bits;
mod config;
mod error;
pub mod grammar;
pub mod lexer;
pub mod lr;
pub mod parser_dwa;
mod rows;
pub mod terminal_dwa;
pub mod vocab;

pub use config::Config;
pub use error::CompileError;

use dwa_runtime::Vocab;
use dwa_runtime::artifact::Header;
use grammar::analysis::Follow;
use grammar::ir::{Grammar, LexerMode};
use lexer::{GroupedDfa, Groups, LexerError, TerminalFacts, build_watched};
use lr::{Action, LrTable};
use std::time::Instant;
use vocab::Trie;

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

/// Largest number of terminals: their ids, and the end's, take 16 bits.
const MAX_TERMINALS: usize = u16::MAX as usize - 1;

/// Compile a grammar given as canonical IR text.
///
/// The same input gives the same bytes.
///
/// # Errors
/// [`CompileError`].
pub fn compile(
    text: &str,
    vocab: &Vocab,
    trie: &Trie,
    config: &Config,
    progress: Progress<'_>,
) -> Result<Artifact, CompileError> {
    let mut stages = Stages { progress, stats: Stats::default(), started: Instant::now(), stage: "" };
    stages.begin("grammar")?;
    let grammar: Grammar = serde_json::from_str(text).map_err(|e| CompileError::Malformed(e.to_string()))?;
    if grammar.terminals.len() > MAX_TERMINALS {
        return Err(CompileError::TooManyTerminals { found: grammar.terminals.len(), limit: MAX_TERMINALS });
    }
    let fallback: Vec<Option<u32>> = grammar.terminals.iter().map(|t| t.fallback).collect();
    let reduced = grammar::epsilon::remove_hidden_recursion(grammar::reduce::validate_and_reduce(&grammar)?);
    let follow = Follow::build(&reduced, &fallback);

    stages.begin("lr_table")?;
    let table = LrTable::build(&reduced, &fallback, config.lr)?;
    stages.size("terminals", grammar.terminals.len());
    stages.size("productions", reduced.productions.len());
    stages.size("lr_states", table.state_count);
    stages.size("lr_conflicts", table.conflicts);

    stages.begin("lexer")?;
    let lexer_error = |error| CompileError::Lexer { position: terminal_position(&grammar, &error), error };
    let follow: Vec<Vec<u64>> = (0..grammar.terminals.len() as u32).map(|t| follow.after(t).to_vec()).collect();
    let groups = match grammar.lexer {
        LexerMode::Basic => Groups::basic(&table),
        LexerMode::Contextual => Groups::contextual(&grammar.terminals, &table),
    };
    let dfa = GroupedDfa::build(&grammar.terminals, &groups, &config.lexer).map_err(lexer_error)?;
    let facts = facts(&grammar, &table, &groups, follow);
    let (watched, findings) = build_watched(&dfa, &facts, config.max_watched_states)
        .map_err(|e| CompileError::Limit { stage: "lexer", what: "watched lexer states", limit: e.0 })?;
    let name = |t: u32| grammar.terminals[t as usize].name.as_str();
    if findings.nothing_begins {
        let terminals = bits::iter(&facts.begin).map(|t| name(t).to_string()).collect();
        return Err(CompileError::NothingBegins { terminals });
    }
    let quotient = parser_dwa::Quotient::new(&table, &groups.of_state);
    stages.size("lr_state_classes", quotient.rows.len());
    stages.size("terminal_classes", quotient.terminal_classes);
    stages.size("lexer_groups", groups.members.len());
    stages.size("lexer_dfa_states", dfa.state_count());
    stages.size("lexer_states", watched.state_count());
    stages.size("lexer_states_watched", watched.watched_states);
    stages.size("separability_reports", findings.reports.len());

    stages.begin("terminal_dwa")?;
    let mut report = |done: usize, of: usize| (stages.progress)("terminal_dwa", done as f64 / of.max(1) as f64);
    let terminal = terminal_dwa::build(&watched, trie, &facts, &quotient.terminal_class, config, &mut report)
        .ok_or(CompileError::Cancelled)?;
    stages.size("partitions", terminal.partitions.len());
    stages.size("sequence_nodes", terminal.outcomes.nodes.len());
    stages.size("boundary_classes", terminal.outcomes.classes.len());

    stages.begin("parser_dwa")?;
    let mut report = |done: usize, of: usize| (stages.progress)("parser_dwa", done as f64 / of.max(1) as f64);
    let dwa = parser_dwa::build(&quotient, &terminal.outcomes, config.max_dwa_edges, &mut report)?;
    stages.size("dwa_subsets", dwa.edges.len());
    stages.size("dwa_configurations_max", dwa.max_configurations);
    let verdicts = parser_dwa::merge(dwa, &terminal.outcomes, quotient.terminal_classes as u32 - 1);
    stages.size("dwa_states", verdicts.states.len());
    stages.size("dwa_edges", verdicts.states.iter().map(|s| s.edges.len()).sum());
    stages.size("verdict_classes", verdicts.count);

    stages.begin("rows")?;
    let mut data = assemble::assemble(&assemble::Parts {
        grammar: &grammar,
        reduced: &reduced,
        table: &table,
        quotient: &quotient,
        groups: &groups,
        lexer: &watched,
        terminal: &terminal,
        verdicts: &verdicts,
    });
    rows::write(&terminal, &verdicts, trie, vocab.words(), &mut data);
    data.meta = dwa_runtime::Meta {
        terminals: table.terminal_count as u32,
        nonterminals: table.nonterminal_count as u32,
        productions: table.productions.len() as u32,
        classes: watched.classes as u32,
        verdicts: verdicts.count as u32,
        vocab_words: vocab.words() as u32,
        groups: groups.members.len() as u32,
    }
    .to_section();

    stages.begin("artifact")?;
    let bytes = data.write(&Header {
        vocab: *vocab.fingerprint(),
        vocab_size: vocab.size() as u64,
        grammar: *blake3::hash(text.as_bytes()).as_bytes(),
    });
    stages.size("rows_missing", 0);
    stages.size("artifact_bytes", bytes.len());
    stages.end();
    let unusable = findings.unusable.iter().map(|&t| {
        format!(
            "terminal {} can never be used: another terminal always takes its place, or whatever may follow it is taken \
             into it; texts that need it are not in the language",
            name(t)
        )
    });
    let warnings = findings.reports.iter().map(|r| {
        format!(
            "after {:?} terminal {} can no longer be separated from a following {}; masks may lead to a dead end or to a \
             lexeme that cannot end",
            String::from_utf8_lossy(&r.text),
            name(r.terminal),
            name(r.follower)
        )
    });
    let warnings = unusable.chain(warnings);
    Ok(Artifact { bytes, stats: stages.stats, warnings: warnings.collect() })
}

fn facts(grammar: &Grammar, table: &LrTable, groups: &Groups, follow: Vec<Vec<u64>>) -> TerminalFacts {
    let count = grammar.terminals.len();
    let width = bits::words(count + 1);
    let (mut ignored, mut usable) = (vec![0; width], vec![0; width]);
    for (t, terminal) in grammar.terminals.iter().enumerate() {
        if terminal.ignored {
            bits::insert(&mut ignored, t as u32);
        }
    }
    let mut after: Vec<Vec<(u32, Vec<u64>)>> = vec![Vec::new(); count];
    for state in 0..table.state_count as u32 {
        for (t, actions) in table.row(state) {
            if t as usize >= count || bits::has(&ignored, t) {
                continue;
            }
            for action in actions {
                let Action::Shift(to) = *action else { continue };
                bits::insert(&mut usable, t);
                let group = groups.of_state[to as usize];
                let after = &mut after[t as usize];
                let i = after.iter().position(|(g, _)| *g == group).unwrap_or_else(|| {
                    after.push((group, vec![0; width]));
                    after.len() - 1
                });
                match grammar.lexer {
                    // Every terminal takes part in every lexeme.
                    LexerMode::Basic => after[i].1.fill(u64::MAX),
                    LexerMode::Contextual => {
                        table.row_terminals(to).iter().for_each(|&next| bits::insert(&mut after[i].1, next));
                    }
                }
            }
        }
    }
    after.iter_mut().for_each(|groups| groups.sort_unstable());
    let mut begin = vec![0; width];
    table.row_terminals(0).iter().for_each(|&t| bits::insert(&mut begin, t));
    TerminalFacts { count, ignored, usable, begin, follow, after }
}

fn terminal_position(grammar: &Grammar, error: &LexerError) -> Option<(u32, u32)> {
    let name = match error {
        LexerError::Nullable { terminal }
        | LexerError::EmptyLanguage { terminal }
        | LexerError::RepeatTooLarge { terminal, .. }
        | LexerError::TooDeep { terminal, .. }
        | LexerError::NfaStates { terminal, .. } => Some(terminal),
        LexerError::DfaStates { terminal, .. } | LexerError::SubsetElements { terminal, .. } => terminal.as_ref(),
    };
    grammar.terminals.iter().find(|t| Some(&t.name) == name)?.position
}
