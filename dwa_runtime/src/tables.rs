//! Everything an artifact holds, by section.
//!
//! The compiler fills a [`TableData`]; the runtime reads [`Tables`], the same fields as views into the artifact. Lists of
//! lists are stored as a `*_start` array (one more entry than there are lists) beside the flat contents.

use crate::artifact::{self, Array, Buffer, Header};
use crate::error::ArtifactError;
use crate::vocab::Vocab;
use std::sync::Arc;

/// "None" in arrays of ids.
pub const NONE: u32 = u32::MAX;
/// An undefined transition of the lexer.
pub const DEAD: u32 = u32::MAX;
/// Flag of a lexer step that emits or forks: the other bits index the entries.
pub const ENTRY_FLAG: u32 = 1 << 31;
/// Pseudo LR state: the shift of the end of input.
pub const ACCEPT: u32 = u32::MAX - 1;
/// Lexer state between lexemes with no watcher.
pub const START: u32 = 0;
/// Verdict class that holds on every stack.
pub const ALWAYS: u32 = 0;
/// Verdict class that holds on stacks which accept the end of input.
pub const END_VERDICT: u32 = 1;
/// Flag of a recipe's group: if its stacks accept the end, the output is complete.
pub const GROUP_ENDS: u32 = 1;

macro_rules! sections {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        /// The tables as the compiler makes them.
        #[derive(Debug, Default, Clone)]
        pub struct TableData { $($(#[$doc])* pub $name: Vec<$type>,)* }

        /// The tables as views into an artifact.
        #[derive(Debug)]
        pub struct Tables { $($(#[$doc])* pub $name: Array<$type>,)* }

        pub(crate) const SECTION_NAMES: &[&str] = &[$(stringify!($name)),*];

        impl TableData {
            /// Lay the tables out as an artifact.
            pub fn write(&self, header: &Header) -> Vec<u8> {
                artifact::write(header, &[$((stringify!($name), bytemuck::cast_slice(&self.$name))),*])
            }
        }

        impl Tables {
            fn from_ranges(
                buffer: &Arc<Buffer>, ranges: Vec<std::ops::Range<usize>>,
            ) -> Result<Self, ArtifactError> {
                let mut ranges = ranges.into_iter();
                Ok(Tables { $($name: Array::new(buffer, ranges.next().unwrap_or(0..0)).ok_or_else(|| {
                    ArtifactError::Inconsistent {
                        section: stringify!($name), problem: "not a whole number of entries".into(),
                    }
                })?,)* })
            }

            /// Bytes of each section.
            pub fn section_sizes(&self) -> Vec<(&'static str, usize)> {
                vec![$((stringify!($name), std::mem::size_of_val::<[$type]>(&self.$name))),*]
            }
        }
    };
}

sections! {
    /// Scalars; see [`Meta`].
    meta: u32,
    /// UTF-8 of terminal names, then nonterminal names, then production names, each ended by a newline.
    names: u8,

    // Watched lexer (DESIGN §2): a state is (lexer state, watchers).
    /// Byte to byte class.
    byte_class: u8,
    /// Row of `lexer_rows` that a state starts from.
    lexer_row: u32,
    /// Exceptions of each state to its row.
    lexer_patch_start: u32,
    /// Byte class of an exception.
    lexer_patch_class: u8,
    /// Step of an exception.
    lexer_patch_step: u32,
    /// Rows of steps by byte class: a state, `DEAD`, or `ENTRY_FLAG` and an index into `entry_start`.
    lexer_rows: u32,
    /// Alternatives of each entry.
    entry_start: u32,
    /// Candidate set that an alternative emits first, or `NONE`.
    entry_emit: u32,
    /// Candidate set that it emits second, or `NONE`.
    entry_emit2: u32,
    /// State it goes to.
    entry_next: u32,
    /// Candidates if the lexeme ended here.
    lexer_cand: u32,
    /// What the pending lexeme can still become; `NONE` between lexemes.
    lexer_live: u32,
    /// Terminal sets: candidates and live sets, reject terminals left out.
    set_start: u32,
    /// Their members, ascending, ignored terminals left out.
    set_terms: u32,
    /// 1 if the set contains an ignored terminal.
    set_ignored: u8,

    // LR tables.
    /// Shifts of each LR state.
    shift_start: u32,
    /// Terminal shifted, ascending in each state; the end of input is the last terminal.
    shift_term: u16,
    /// Target, or `ACCEPT`.
    shift_to: u32,
    /// Reductions of each LR state.
    reduce_start: u32,
    /// Production.
    reduce_prod: u32,
    /// Lookahead set, an index into rows of `lookahead`.
    reduce_set: u32,
    /// Lookahead sets, `terminal_words` words each.
    lookahead: u64,
    /// Gotos of each LR state.
    goto_start: u32,
    /// Nonterminal, ascending in each state.
    goto_nonterminal: u32,
    /// Target.
    goto_to: u32,
    /// Left-hand side of each production.
    prod_lhs: u32,
    /// Length of each production.
    prod_len: u32,

    // Parser DWA (DESIGN §4).
    /// Edges of each state; empty for states with a default edge.
    dwa_start: u32,
    /// Default edge of each state, taken whatever is read, or `NONE`.
    dwa_default: u32,
    /// LR state read, ascending in each state.
    dwa_symbol: u32,
    /// Target or `NONE`.
    dwa_next: u32,
    /// Output or `NONE`.
    dwa_output: u32,
    /// Verdict sets of the outputs, `verdict_words` words each.
    output_verdicts: u64,

    // Rows (DESIGN §5).
    /// Classes of each source.
    source_start: u32,
    /// Verdict class.
    class_verdict: u32,
    /// Dense row, or `NONE`.
    class_dense: u32,
    /// Sparse run, an index into `run_start`.
    class_run: u32,
    /// Dense rows, `vocab_words` words each.
    dense: u32,
    /// Sparse runs.
    run_start: u32,
    /// Bitmask word.
    run_word: u16,
    /// Bits in it.
    run_bits: u32,
    /// Groups of each lexer state's recipe.
    group_start: u32,
    /// Candidate set that a group's stacks were shifted by, or `NONE` for the stack as it is.
    group_emit: u32,
    /// `GROUP_ENDS`.
    group_flags: u32,
    /// Verdicts that matter to a group, a row of `verdict_masks`.
    group_mask: u32,
    /// Verdict sets, `verdict_words` words each.
    verdict_masks: u64,
    /// Pieces of each group.
    piece_start: u32,
    /// Source.
    piece_source: u32,
    /// First bytes it is restricted to, a row of `byte_sets`, or `NONE`.
    piece_bytes: u32,
    /// Sets of bytes, 4 words each.
    byte_sets: u64,
    /// Own classes of each group.
    own_start: u32,
    /// Verdict class.
    own_verdict: u32,
    /// Sparse run.
    own_run: u32,
    /// Sparse run of tokens each recipe takes out of its pieces, or `NONE`.
    recipe_drop: u32,
}

/// The scalars of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// Terminals; the end of input has this index.
    pub terminals: u32,
    /// Nonterminals.
    pub nonterminals: u32,
    /// Productions.
    pub productions: u32,
    /// Byte classes.
    pub classes: u32,
    /// Verdict classes.
    pub verdicts: u32,
    /// Words of a bitmask row.
    pub vocab_words: u32,
}

impl Meta {
    /// Words of a terminal set.
    pub fn terminal_words(&self) -> usize {
        (self.terminals as usize + 1).div_ceil(64)
    }

    /// Words of a verdict set.
    pub fn verdict_words(&self) -> usize {
        (self.verdicts as usize).div_ceil(64)
    }

    /// As stored.
    pub fn to_section(self) -> Vec<u32> {
        vec![self.terminals, self.nonterminals, self.productions, self.classes, self.verdicts, self.vocab_words]
    }

    pub(crate) fn from_section(meta: &[u32]) -> Option<Self> {
        match *meta {
            [terminals, nonterminals, productions, classes, verdicts, vocab_words] => {
                Some(Meta { terminals, nonterminals, productions, classes, verdicts, vocab_words })
            }
            _ => None,
        }
    }
}

impl Tables {
    /// Read and check an artifact built for `vocab`.
    ///
    /// # Errors
    /// [`ArtifactError`] naming what differs.
    pub fn read(buffer: Buffer, vocab: &Vocab) -> Result<(Self, Meta, Header), ArtifactError> {
        let (header, ranges) = artifact::read(&buffer, SECTION_NAMES)?;
        if header.vocab != *vocab.fingerprint() || header.vocab_size != vocab.size() as u64 {
            return Err(ArtifactError::Vocabulary {
                expected: blake3::Hash::from_bytes(header.vocab).to_hex().to_string(),
                expected_size: header.vocab_size,
                found: vocab.fingerprint_hex(),
                found_size: vocab.size() as u64,
            });
        }
        let tables = Tables::from_ranges(&Arc::new(buffer), ranges)?;
        let meta = artifact::check(&tables, vocab)?;
        Ok((tables, meta, header))
    }

    /// Step of lexer state `x` on a byte.
    #[inline]
    pub(crate) fn lexer_step(&self, classes: u32, x: u32, byte: u8) -> u32 {
        let class = self.byte_class[byte as usize];
        let patches = self.lexer_patch_start[x as usize] as usize..self.lexer_patch_start[x as usize + 1] as usize;
        for i in patches {
            if self.lexer_patch_class[i] == class {
                return self.lexer_patch_step[i];
            }
        }
        self.lexer_rows[(self.lexer_row[x as usize] * classes + u32::from(class)) as usize]
    }

    /// Members of a terminal set, ignored and reject terminals left out.
    #[inline]
    pub(crate) fn set(&self, set: u32) -> &[u32] {
        &self.set_terms[list(&self.set_start, set)]
    }
}

/// Range of list `i`.
#[inline]
pub(crate) fn list(starts: &[u32], i: u32) -> std::ops::Range<usize> {
    starts[i as usize] as usize..starts[i as usize + 1] as usize
}
