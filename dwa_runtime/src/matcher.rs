//! [`Compiled`]: an artifact bound to its vocabulary. [`Matcher`]: one output decoded against it.

use crate::artifact::{Buffer, Header};
use crate::commit::Branches;
use crate::error::{ArtifactError, MatcherError};
use crate::history::{History, Taken};
use crate::lr::{Lr, Stacks, stacks};
use crate::mask::Masks;
use crate::rows::{RowCaches, Whole};
use crate::supply::{Demanded, OnDemand, Supply};
use crate::tables::{Meta, NONE, Tables};
use crate::vocab::Vocab;
use std::path::Path;
use std::sync::Arc;

/// Map an artifact's file.
///
/// # Errors
/// [`ArtifactError::Io`].
pub fn map_file(path: &Path) -> Result<Buffer, ArtifactError> {
    let failed = |reason: String| ArtifactError::Io { action: "read", path: path.display().to_string(), reason };
    if path.is_dir() {
        return Err(failed("it is a folder".into()));
    }
    Buffer::map(path).map_err(|e| failed(e.to_string()))
}

/// A compiled grammar, ready to serve any number of matchers on any number of threads.
#[derive(Debug)]
pub struct Compiled {
    tables: Tables,
    meta: Meta,
    header: Header,
    vocab: Arc<Vocab>,
    rows: Supplied,
    stacks: Stacks,
    buffer: Arc<Buffer>,
}

/// Where masks come from.
#[derive(Debug)]
enum Supplied {
    Whole(Box<RowCaches>),
    OnDemand(OnDemand),
}

impl Compiled {
    /// Serve the artifact in `buffer`.
    ///
    /// # Errors
    /// [`ArtifactError`] if it is damaged, of another version, or for another vocabulary.
    pub fn new(buffer: impl Into<Arc<Buffer>>, vocab: Arc<Vocab>) -> Result<Self, ArtifactError> {
        let buffer = buffer.into();
        let (tables, meta, header) = Tables::read(&buffer, &vocab)?;
        if !tables.grammar.is_empty() {
            return Err(ArtifactError::NeedsCompiler);
        }
        let rows = Supplied::Whole(Box::new(RowCaches::new(&tables, &meta, &vocab)));
        Ok(Compiled { tables, meta, header, vocab, rows, stacks: stacks(), buffer })
    }

    /// Serve an artifact without recipes and automaton, which are supplied on demand.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn on_demand(
        buffer: impl Into<Arc<Buffer>>,
        vocab: Arc<Vocab>,
        supply: Arc<dyn Supply>,
    ) -> Result<Self, ArtifactError> {
        let buffer = buffer.into();
        let (tables, meta, header) = Tables::read(&buffer, &vocab)?;
        let rows = Supplied::OnDemand(OnDemand::new(supply, tables.lexer_row.len(), vocab.words()));
        Ok(Compiled { tables, meta, header, vocab, rows, stacks: stacks(), buffer })
    }

    /// Have in stock what composing rows takes, so that no later step allocates it.
    fn settle(&self) {
        match &self.rows {
            Supplied::Whole(caches) => caches.composed().settle(),
            Supplied::OnDemand(demand) => demand.filled().composed().settle(),
        }
    }

    /// Lexer states whose rows are not there yet: they are supplied on demand.
    pub fn rows_missing(&self) -> usize {
        match &self.rows {
            Supplied::Whole(_) => 0,
            Supplied::OnDemand(on_demand) => on_demand.missing(),
        }
    }

    /// Map the file at `path` and serve it.
    ///
    /// # Errors
    /// As [`new`](Self::new), and those of reading the file.
    pub fn load(path: &Path, vocab: Arc<Vocab>) -> Result<Self, ArtifactError> {
        Self::new(map_file(path)?, vocab)
    }

    /// The vocabulary it was compiled for.
    pub fn vocab(&self) -> &Arc<Vocab> {
        &self.vocab
    }

    /// The artifact's header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Scalars of the tables.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The artifact.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }

    /// How many there are of what.
    pub fn counts(&self) -> Vec<(&'static str, usize)> {
        crate::inspect::counts(&self.tables, &self.meta)
    }

    /// Bytes of each section.
    pub fn section_sizes(&self) -> Vec<(&'static str, usize)> {
        self.tables.section_sizes()
    }

    /// Name of terminal `t`; the end of input has the last index.
    pub fn terminal_name(&self, t: u32) -> &str {
        if t >= self.meta.terminals {
            return "end of input";
        }
        let names = std::str::from_utf8(&self.tables.names).unwrap_or_default();
        names.split('\n').nth(t as usize).unwrap_or_default()
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    pub(crate) fn lr(&self) -> Lr<'_> {
        Lr { tables: &self.tables, meta: &self.meta, stacks: &self.stacks }
    }

    /// Write to `out` the tokens that some branch allows.
    pub(crate) fn mask(&self, branches: &Branches, out: &mut [u32]) {
        let (lr, vocab, tables) = (self.lr(), &*self.vocab, &self.tables);
        match &self.rows {
            Supplied::Whole(caches) => {
                let schedule = Whole { tables, meta: &self.meta, caches };
                Masks { lr, vocab, schedule }.mask(branches, out);
            }
            Supplied::OnDemand(on_demand) => {
                let filled = on_demand.filled();
                Masks { lr, vocab, schedule: Demanded { filled: &filled, tables, vocab } }.mask(branches, out);
            }
        }
    }
}

/// One output being decoded.
#[derive(Debug, Clone)]
pub struct Matcher {
    compiled: Arc<Compiled>,
    branches: Branches,
    /// An end token was accepted.
    terminated: bool,
    history: History,
}

impl Matcher {
    /// A matcher at the empty output.
    pub fn new(compiled: Arc<Compiled>) -> Self {
        let branches = compiled.lr().initial();
        Matcher { compiled, branches, terminated: false, history: History::default() }
    }

    pub(crate) fn branches(&self) -> &Branches {
        &self.branches
    }

    /// The compiled grammar.
    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    /// Write the tokens allowed next into `out`: bit `t % 32` of word `t / 32` is token id `t`.
    ///
    /// # Errors
    /// [`MatcherError::RowLength`], with `out` untouched; [`MatcherError::Terminated`]; [`MatcherError::DeadEnd`] if nothing
    /// is allowed and the output is not complete, with `out` all zero.
    pub fn fill_bitmask(&self, out: &mut [u32]) -> Result<(), MatcherError> {
        self.check_fill(out)?;
        self.compiled.mask(&self.branches, out);
        if out.iter().all(|&w| w == 0) && !self.is_accepting() {
            return Err(MatcherError::DeadEnd { configuration: self.describe() });
        }
        Ok(())
    }

    /// Whether a row could be filled, a dead end apart.
    pub(crate) fn check_fill(&self, out: &[u32]) -> Result<(), MatcherError> {
        let expected = self.compiled.meta.vocab_words as usize;
        if out.len() != expected {
            return Err(MatcherError::RowLength { found: out.len(), expected });
        }
        if self.terminated {
            return Err(MatcherError::Terminated);
        }
        Ok(())
    }

    /// Take token `id`. Returns whether it was allowed; if not, nothing changes.
    ///
    /// # Errors
    /// [`MatcherError::TokenRange`] and [`MatcherError::Terminated`].
    pub fn accept_token(&mut self, id: u32) -> Result<bool, MatcherError> {
        self.check_range(id)?;
        if self.terminated {
            return Err(MatcherError::Terminated);
        }
        let Some((next, terminated)) = self.after(&self.branches, id) else { return Ok(false) };
        self.take(next, Taken::Token(id));
        self.terminated = terminated;
        Ok(true)
    }

    /// How many of `ids` could be accepted one after the other, end ids included. Nothing changes; 0 after an end token.
    ///
    /// # Errors
    /// [`MatcherError::TokenRange`] for the first id that is out of range, wherever it stands.
    pub fn validate_tokens(&self, ids: &[u32]) -> Result<usize, MatcherError> {
        for &id in ids {
            self.check_range(id)?;
        }
        let mut terminated = self.terminated;
        let mut branches = None;
        for (taken, &id) in ids.iter().enumerate() {
            match self.after(branches.as_ref().unwrap_or(&self.branches), id) {
                Some(next) if !terminated => (branches, terminated) = (Some(next.0), next.1),
                _ => return Ok(taken),
            }
        }
        Ok(ids.len())
    }

    pub(crate) fn check_range(&self, id: u32) -> Result<(), MatcherError> {
        let size = self.compiled.vocab.size();
        if id as usize >= size {
            return Err(MatcherError::TokenRange { id: i64::from(id), max: size - 1 });
        }
        Ok(())
    }

    /// The branches after token `id`, and whether it ended the output; `None` where it is not allowed. An end id that the
    /// grammar names as well ends the output where that is complete.
    fn after(&self, branches: &Branches, id: u32) -> Option<(Branches, bool)> {
        let (vocab, lr) = (&self.compiled.vocab, self.compiled.lr());
        if vocab.is_eos(id) && lr.is_accepting(branches) {
            return Some((branches.clone(), true));
        }
        let mut next = lr.advance_token(branches, vocab.token(id), self.compiled.tables.symbol(id));
        lr.retain_viable(&mut next);
        (!next.is_empty()).then_some((next, false))
    }

    fn take(&mut self, next: Branches, taken: Taken<'_>) {
        let before = std::mem::replace(&mut self.branches, next);
        self.history.push(before, taken);
    }

    /// Take bytes up to the first that is not allowed; return how many were taken. Taking any is one step for
    /// [`rollback`](Self::rollback).
    ///
    /// # Errors
    /// [`MatcherError::Terminated`].
    pub fn accept_bytes(&mut self, bytes: &[u8]) -> Result<usize, MatcherError> {
        if self.terminated {
            return Err(MatcherError::Terminated);
        }
        let lr = self.compiled.lr();
        let mut branches = self.branches.clone();
        let mut taken = 0;
        for &byte in bytes {
            let mut next = lr.advance(&branches, &[byte]);
            lr.retain_viable(&mut next);
            if next.is_empty() {
                break;
            }
            branches = next;
            taken += 1;
        }
        if taken > 0 {
            self.take(branches, Taken::Bytes(&bytes[..taken]));
        }
        Ok(taken)
    }

    /// Undo the last `steps` accepted tokens (or accepted byte strings).
    ///
    /// # Errors
    /// [`MatcherError::Rollback`] if fewer were taken; nothing changes.
    pub fn rollback(&mut self, steps: usize) -> Result<(), MatcherError> {
        let taken = self.history.len();
        if steps > taken {
            return Err(MatcherError::Rollback { asked: steps, taken });
        }
        if steps > 0
            && let Some(branches) = self.history.undo(steps)
        {
            self.branches = branches;
            self.terminated = false;
        }
        Ok(())
    }

    /// Back to the empty output.
    pub fn reset(&mut self) {
        self.branches = self.compiled.lr().initial();
        self.terminated = false;
        self.history.clear();
        self.compiled.settle();
    }

    /// Whether the output is a sentence of the language, so that an end token is allowed.
    pub fn is_accepting(&self) -> bool {
        self.compiled.lr().is_accepting(&self.branches)
    }

    /// Whether an end token was accepted.
    pub fn is_terminated(&self) -> bool {
        self.terminated
    }

    /// Steps that can be rolled back.
    pub fn steps(&self) -> usize {
        self.history.len()
    }

    pub(crate) fn taken_steps(&self) -> impl Iterator<Item = Taken<'_>> {
        self.history.taken()
    }

    /// What each step took, latest first; end tokens, and other special ones, spell nothing.
    pub fn taken(&self) -> impl Iterator<Item = &[u8]> {
        self.history.taken().map(|taken| match taken {
            Taken::Token(id) => self.compiled.vocab.token(id),
            Taken::Bytes(bytes) => bytes,
        })
    }

    /// The output so far.
    pub fn text(&self) -> Vec<u8> {
        let mut steps: Vec<&[u8]> = self.taken().collect();
        steps.reverse();
        steps.concat()
    }

    /// Live branches, and stacks' tops in all of them.
    pub fn branch_counts(&self) -> (usize, usize) {
        (self.branches.groups().len(), self.branches.tops().count())
    }

    /// The configurations, for people.
    fn describe(&self) -> String {
        let c = &self.compiled;
        let mut parts = Vec::new();
        for (lexer, tops) in self.branches.groups() {
            let live = c.tables.live(*lexer);
            let pending = match live {
                NONE => "between lexemes".to_string(),
                set => {
                    let names: Vec<&str> = c.tables.set(set).take(8).map(|t| c.terminal_name(t)).collect();
                    let more = if c.tables.set(set).len() > names.len() { " or others" } else { "" };
                    format!("pending {}{more}", names.join(" or "))
                }
            };
            let tops: Vec<u32> = tops.iter().map(|t| t.symbol()).collect();
            parts.push(format!("lexer state {lexer}, {pending}, LR states {tops:?}"));
        }
        parts.join("; ")
    }
}
