//! Everything an artifact holds, by section.
//!
//! The compiler fills a [`TableData`]; the runtime reads [`Tables`], the same fields as views into the artifact. Lists of
//! lists are stored as a `*_start` array (one more entry than there are lists) beside the flat contents.

use crate::artifact::{self, Array, Buffer, Header, Ids, Section};

pub use crate::artifact::NONE;
use crate::error::ArtifactError;
use crate::mask::{Change, holds};
use crate::vocab::Vocab;
use std::sync::Arc;

/// Lexer state between lexemes with no watcher.
pub const START: u32 = 0;
/// Verdict class that holds on every stack.
pub const ALWAYS: u32 = 0;
/// Verdict class that holds on stacks which accept the end of input.
pub const END_VERDICT: u32 = 1;
/// Flag of a recipe's group: if its stacks accept the end, the output is complete.
pub const GROUP_ENDS: u8 = 1;

/// How the elements of a section are stored: as they are, or, for ids, as narrow as they fit.
pub trait Element {
    /// As the compiler makes it.
    type Data: Default + Clone + std::fmt::Debug;
    /// As the runtime reads it.
    type View: std::fmt::Debug;
    /// Bytes, and bytes per element.
    fn encode(data: &[Self::Data]) -> (Vec<u8>, u32);
    /// View a section; `None` if it does not hold whole elements of a known width.
    fn view(buffer: &Arc<Buffer>, section: Section) -> Option<Self::View>;
    /// Bytes of a view.
    fn size(view: &Self::View) -> usize;
}

/// An id or offset.
#[derive(Debug)]
pub enum Id {}

impl Element for Id {
    type Data = u32;
    type View = Ids;

    fn encode(data: &[u32]) -> (Vec<u8>, u32) {
        Ids::encode(data)
    }

    fn view(buffer: &Arc<Buffer>, section: Section) -> Option<Ids> {
        Ids::new(buffer, section.range, section.width)
    }

    fn size(view: &Ids) -> usize {
        view.size_bytes()
    }
}

macro_rules! plain {
    ($($type:ty),*) => {$(
        impl Element for $type {
            type Data = $type;
            type View = Array<$type>;

            fn encode(data: &[$type]) -> (Vec<u8>, u32) {
                (bytemuck::cast_slice(data).to_vec(), size_of::<$type>() as u32)
            }

            fn view(buffer: &Arc<Buffer>, section: Section) -> Option<Array<$type>> {
                (section.width as usize == size_of::<$type>()).then(|| Array::new(buffer, section.range))?
            }

            fn size(view: &Array<$type>) -> usize {
                size_of_val::<[$type]>(view)
            }
        }
    )*};
}

plain!(u8, u16, u32, u64);

macro_rules! sections {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        /// The tables as the compiler makes them.
        #[derive(Debug, Default, Clone)]
        pub struct TableData { $($(#[$doc])* pub $name: Vec<<$type as Element>::Data>,)* }

        /// The tables as views into an artifact.
        #[derive(Debug)]
        pub struct Tables { $($(#[$doc])* pub $name: <$type as Element>::View,)* }

        const SECTION_NAMES: &[&str] = &[$(stringify!($name)),*];

        impl TableData {
            /// Lay the tables out as an artifact.
            pub fn write(&self, header: &Header) -> Vec<u8> {
                artifact::write(artifact::FORMAT, header, &[$(<$type as Element>::encode(&self.$name)),*])
            }
        }

        impl Tables {
            fn from_sections(buffer: &Arc<Buffer>, sections: Vec<Section>) -> Result<Self, ArtifactError> {
                let mut sections = sections.into_iter();
                Ok(Tables { $($name: <$type as Element>::view(buffer, sections.next().unwrap_or_default())
                    .ok_or_else(|| ArtifactError::Inconsistent {
                        section: stringify!($name), problem: "not a whole number of elements".into(),
                    })?,)* })
            }

            /// Bytes of each section.
            pub fn section_sizes(&self) -> Vec<(&'static str, usize)> {
                vec![$((stringify!($name), <$type as Element>::size(&self.$name))),*]
            }
        }
    };
}

sections! {
    /// Scalars; see [`Meta`].
    meta: u32,
    /// UTF-8 of terminal names, then nonterminal names, then production names, each ended by a newline.
    names: u8,

    /// The grammar in canonical text, if recipes and automaton are not here but filled on demand; else empty.
    grammar: u8,

    // Watched lexer: a state is (lexer state, watchers).
    /// Byte to byte class.
    byte_class: u8,
    /// Row of `lexer_rows` that a state starts from.
    lexer_row: Id,
    /// Exceptions of each state to its row.
    lexer_patch_start: Id,
    /// Byte class of an exception.
    lexer_patch_class: u8,
    /// Step of an exception.
    lexer_patch_step: Id,
    /// Rows of steps by byte class: a state or id, or `NONE`, or the number of states and ids plus an entry.
    lexer_rows: Id,
    /// Alternatives of each entry.
    entry_start: Id,
    /// Change that an alternative makes, or `NONE`.
    entry_emit: Id,
    /// Its second change, or `NONE`.
    entry_emit2: Id,
    /// State or id it goes to.
    entry_next: Id,
    /// First id of each interval of ids that are read as one symbol, or are not, ascending; ...
    symbol_first: u32,
    /// ... and the symbol, whose class comes after those of bytes, or `NONE`.
    symbol_of: Id,
    /// Candidates if the lexeme ended here.
    lexer_cand: Id,
    /// What the pending lexeme can still become; `NONE` between lexemes.
    lexer_live: Id,
    /// Far states: those that stand for many; ...
    far_state: Id,
    /// ... the first of the ids that each stands for, ascending from the number of states on, and the end of them all; ...
    far_first: u32,
    /// ... their counters: ...
    far_counters: Id,
    /// ... chain, ...
    far_chain: Id,
    /// ... layer of it, ...
    far_layer: u8,
    /// ... and the state or id from which the counter has no value any more.
    far_down: u32,
    /// Values of a counter of each chain.
    chain_length: u32,
    /// Terminal sets: candidates and live sets, reject terminals left out.
    set_start: Id,
    /// Their members, ascending, ignored terminals left out.
    set_terms: Id,
    /// 1 if the set contains an ignored terminal.
    set_ignored: u8,

    /// Changes that emissions make to stacks: the candidates, one of which is shifted, ...
    change_set: Id,
    /// ... and the set of lexer groups of which the LR state on top then must be, or `NONE` for any.
    change_groups: Id,
    /// Sets of lexer groups, all of one width.
    group_sets: u64,

    // LR tables.
    /// Shifts of each LR state.
    shift_start: Id,
    /// Terminal shifted, ascending in each state; the end of input is the last terminal.
    shift_term: Id,
    /// Target; the end of input leads to the number of states.
    shift_to: Id,
    /// Reductions of each LR state.
    reduce_start: Id,
    /// Production.
    reduce_prod: Id,
    /// Lookahead set, an index into rows of `lookahead`.
    reduce_set: Id,
    /// Lookahead sets, `terminal_words` words each.
    lookahead: u64,
    /// Gotos of each LR state.
    goto_start: Id,
    /// Nonterminal, ascending in each state.
    goto_nonterminal: Id,
    /// Target.
    goto_to: Id,
    /// Left-hand side of each production.
    prod_lhs: Id,
    /// Length of each production.
    prod_len: Id,

    // Parser DWA.
    /// Lexer group of each LR state.
    lr_group: Id,
    /// What the automaton reads for each LR state.
    lr_class: Id,
    /// Edges of each state that differ from its default.
    dwa_start: Id,
    /// Default target of each state, or `NONE`.
    dwa_default_next: Id,
    /// Default output of each state, or `NONE`.
    dwa_default_output: Id,
    /// Class of LR states read, ascending in each state.
    dwa_symbol: Id,
    /// Target or `NONE`.
    dwa_next: Id,
    /// Output or `NONE`.
    dwa_output: Id,
    /// Verdict sets of the outputs, `verdict_words` words each.
    output_verdicts: u64,

    // Rows.
    /// Classes of each source.
    source_start: Id,
    /// Verdict class.
    class_verdict: Id,
    /// Dense row, or `NONE`.
    class_dense: Id,
    /// Sparse run, an index into `run_start`.
    class_run: Id,
    /// Dense rows, `vocab_words` words each.
    dense: u32,
    /// For each dense row that is stored as a difference: the row it resembles, ...
    dense_base: Id,
    /// ... and the sparse run to exclusive-or it with. These rows come after those in `dense`.
    dense_delta: Id,
    /// Sparse runs.
    run_start: Id,
    /// Bitmask word.
    run_word: u16,
    /// Bits in it.
    run_bits: u32,
    /// Groups of each lexer state's recipe.
    group_start: Id,
    /// Change that a group's stacks went through, or `NONE` for the stack as it is.
    group_emit: Id,
    /// `GROUP_ENDS`.
    group_flags: u8,
    /// Verdicts that matter to a group, a row of `verdict_masks`.
    group_mask: Id,
    /// Verdict sets, `verdict_words` words each.
    verdict_masks: u64,
    /// Pieces of each group.
    piece_start: Id,
    /// Source.
    piece_source: Id,
    /// First bytes it is restricted to, a row of `byte_sets`, or `NONE`.
    piece_bytes: Id,
    /// Sets of bytes, 4 words each.
    byte_sets: u64,
    /// Own classes of each group.
    own_start: Id,
    /// Verdict class.
    own_verdict: Id,
    /// Sparse run.
    own_run: Id,
    /// Drop that each recipe takes out of its pieces, or `NONE`.
    recipe_drop: Id,
    /// Sparse run of tokens of each drop.
    drop_run: Id,
    /// Earlier drop that belongs to it as well, or `NONE`.
    drop_more: Id,
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
    /// Classes of bytes, then symbols.
    pub classes: u32,
    /// Verdict classes.
    pub verdicts: u32,
    /// Words of a bitmask row.
    pub vocab_words: u32,
    /// Lexer groups.
    pub groups: u32,
    /// Symbols: kinds of tokens that the lexer reads as one letter.
    pub symbols: u32,
    /// Lexer states, and ids of what far states stand for.
    pub lexer_ids: u32,
    /// What the compiler makes the tables of the lexer again with: repeats of more NFA states are counted.
    pub copied_states: u32,
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
        vec![
            self.terminals,
            self.nonterminals,
            self.productions,
            self.classes,
            self.verdicts,
            self.vocab_words,
            self.groups,
            self.symbols,
            self.lexer_ids,
            self.copied_states,
        ]
    }

    pub(crate) fn from_section(meta: &[u32]) -> Option<Self> {
        match *meta {
            [
                terminals,
                nonterminals,
                productions,
                classes,
                verdicts,
                vocab_words,
                groups,
                symbols,
                lexer_ids,
                copied_states,
            ] => Some(Meta {
                terminals,
                nonterminals,
                productions,
                classes,
                verdicts,
                vocab_words,
                groups,
                symbols,
                lexer_ids,
                copied_states,
            }),
            _ => None,
        }
    }
}

impl Tables {
    /// Read and check an artifact built for `vocab`.
    ///
    /// # Errors
    /// [`ArtifactError`] naming what differs.
    pub fn read(buffer: &Arc<Buffer>, vocab: &Vocab) -> Result<(Self, Meta, Header), ArtifactError> {
        let (tables, meta, header) = Self::open(buffer)?;
        if header.vocab != *vocab.fingerprint() || header.vocab_size != vocab.size() as u64 {
            return Err(ArtifactError::Vocabulary {
                expected: blake3::Hash::from_bytes(header.vocab).to_hex().to_string(),
                expected_size: header.vocab_size,
                found: vocab.fingerprint_hex(),
                found_size: vocab.size() as u64,
            });
        }
        Ok((tables, meta, header))
    }

    /// Read and check an artifact without its vocabulary.
    ///
    /// # Errors
    /// [`ArtifactError`] naming what is wrong.
    pub fn open(buffer: &Arc<Buffer>) -> Result<(Self, Meta, Header), ArtifactError> {
        let (header, sections) = artifact::read(artifact::FORMAT, buffer, SECTION_NAMES)?;
        let tables = Tables::from_sections(buffer, sections)?;
        let meta = artifact::check(&tables, header.vocab_size, buffer.bytes().len())?;
        Ok((tables, meta, header))
    }

    /// Step of lexer state or id `x` on a byte.
    #[inline]
    pub(crate) fn lexer_step(&self, meta: &Meta, x: u32, byte: u8) -> Step {
        if x as usize >= self.lexer_row.len() {
            return self.far_step(x, || self.lexer_step(meta, self.lexer_state(x), byte));
        }
        let class = self.byte_class[byte as usize];
        let step = self.lexer_patch_start.list(x).find(|&i| self.lexer_patch_class[i] == class).map_or_else(
            || self.lexer_rows.get((self.lexer_row.get(x as usize) * meta.classes + u32::from(class)) as usize),
            |i| self.lexer_patch_step.get(i),
        );
        Self::step(meta, step)
    }

    /// A step of the far state that `x` is of, as a step of `x`.
    #[cold]
    fn far_step(&self, x: u32, step: impl FnOnce() -> Step) -> Step {
        match step() {
            Step::To(next) => Step::To(self.after(x, next)),
            // Where its alternatives lead, whoever takes them asks.
            step => step,
        }
    }

    /// Step of lexer state or id `x` on a symbol.
    pub(crate) fn symbol_step(&self, meta: &Meta, x: u32, symbol: u32) -> Step {
        if x as usize >= self.lexer_row.len() {
            return self.far_step(x, || self.symbol_step(meta, self.lexer_state(x), symbol));
        }
        let class = meta.classes - meta.symbols + symbol;
        Self::step(meta, self.lexer_rows.get((self.lexer_row.get(x as usize) * meta.classes + class) as usize))
    }

    #[inline]
    fn step(meta: &Meta, step: u32) -> Step {
        match step {
            NONE => Step::Dead,
            state if state < meta.lexer_ids => Step::To(state),
            entry => Step::Entry(entry - meta.lexer_ids),
        }
    }

    /// The symbol that token `id` can be read as.
    #[inline]
    pub(crate) fn symbol(&self, id: u32) -> Option<u32> {
        let after = self.symbol_first.partition_point(|&first| first <= id);
        after.checked_sub(1).map(|i| self.symbol_of.get(i)).filter(|&symbol| symbol != NONE)
    }

    /// What a change does.
    #[inline]
    pub(crate) fn change(&self, id: u32) -> Change<'_> {
        let width = self.group_width();
        let groups = match self.change_groups.get(id as usize) {
            NONE => None,
            set => Some(&self.group_sets[set as usize * width..][..width]),
        };
        Change { id, set: self.change_set.get(id as usize), groups }
    }

    /// Whether an LR state is of one of these lexer groups.
    #[inline]
    pub(crate) fn is_of(&self, groups: Option<&[u64]>, state: u32) -> bool {
        groups.is_none_or(|groups| holds(groups, self.lr_group.get(state as usize)))
    }

    /// Words of a set of lexer groups.
    fn group_width(&self) -> usize {
        (self.meta[6] as usize).div_ceil(64)
    }

    /// Members of a terminal set, ignored and reject terminals left out.
    #[inline]
    pub(crate) fn set(&self, set: u32) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.set_start.list(set).map(|i| self.set_terms.get(i))
    }
}

/// A step of the watched lexer.
pub(crate) enum Step {
    /// No terminal matches any more.
    Dead,
    /// One way on, nothing emitted.
    To(u32),
    /// The alternatives of this entry; [`Tables::after`] says where each leads.
    Entry(u32),
}
