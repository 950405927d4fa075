//! Checks that an artifact's sections agree with each other, so that no index read later can be out of range.

use super::{Ids, NONE};
use crate::error::ArtifactError;
use crate::tables::{Meta, Tables};

/// Largest number of anything; keeps sums of products inside 32 bits.
const MAX_COUNT: usize = 1 << 30;
/// Verdict classes; bounds what a matcher keeps per stack.
const MAX_VERDICTS: u32 = 1 << 20;
/// Kinds of tokens that are read as one symbol.
const MAX_SYMBOLS: u32 = 1 << 15;
/// Alternatives of an entry of the watched lexer; bounds the branches that a byte can make of one.
const MAX_ALTERNATIVES: usize = 1 << 14;
/// Counters of a far state.
const MAX_COUNTERS: usize = 4;
/// Memory that loading may allocate beside the file, as a multiple of the file's size, and at least this much.
const LOAD_FACTOR: usize = 64;
const LOAD_BYTES: usize = 64 << 20;
/// Words that composing one row may read, and words of verdicts that it may take.
const ROW_WORDS: usize = 1 << 28;
const ROW_VERDICT_WORDS: usize = 1 << 20;
/// Words that the classes of a source take, as a multiple of a row's. They are disjoint, and stored as they take least.
const SOURCE_ROWS: usize = 128;

struct Section(&'static str);

impl Section {
    fn fail<T>(&self, problem: impl Into<String>) -> Result<T, ArtifactError> {
        Err(ArtifactError::Inconsistent { section: self.0, problem: problem.into() })
    }

    fn len(&self, found: usize, expected: usize) -> Result<(), ArtifactError> {
        if found == expected { Ok(()) } else { self.fail(format!("{found} entries, expected {expected}")) }
    }

    /// `starts` delimits lists in an array of `total` entries; returns how many lists.
    fn starts(&self, starts: &Ids, total: usize) -> Result<usize, ArtifactError> {
        let ends = (starts.iter().next(), starts.iter().next_back());
        match ends {
            (Some(0), Some(last)) if last as usize == total && starts.iter().is_sorted() && total <= MAX_COUNT => {
                Ok(starts.len() - 1)
            }
            _ => self.fail("list boundaries are not ascending from 0 to the end"),
        }
    }

    /// No list is longer than `most`.
    fn lists(&self, starts: &Ids, most: usize) -> Result<(), ArtifactError> {
        match (1..starts.len()).find(|&i| (starts.get(i) - starts.get(i - 1)) as usize > most) {
            None => Ok(()),
            Some(i) => self.fail(format!("list {} has more than {most} entries", i - 1)),
        }
    }

    /// Every id is below `bound`, or [`NONE`] where that is allowed.
    fn ids(&self, ids: &Ids, bound: usize, none_allowed: bool) -> Result<(), ArtifactError> {
        match ids.iter().find(|&id| id as usize >= bound && !(none_allowed && id == NONE)) {
            None => Ok(()),
            Some(id) => self.fail(format!("id {id} is not below {bound}")),
        }
    }
}

pub(crate) fn check(t: &Tables, vocab_size: u64, file_bytes: usize) -> Result<Meta, ArtifactError> {
    let s = Section;
    let Some(meta) = Meta::from_section(&t.meta) else { return s("meta").fail("wrong number of scalars") };
    let terminals = meta.terminals as usize;
    if terminals >= usize::from(u16::MAX)
        || meta.symbols > MAX_SYMBOLS
        || meta.classes.saturating_sub(meta.symbols) > 256
        || meta.classes <= meta.symbols
        || meta.verdicts < 2
        || meta.verdicts > MAX_VERDICTS
        || meta.groups == 0
    {
        return s("meta").fail("a count is out of range");
    }
    if vocab_size == 0 || u64::from(meta.vocab_words) != vocab_size.div_ceil(32) {
        return s("meta").fail("bitmask width does not fit the vocabulary");
    }
    check_names(t, &meta)?;
    let sets = s("set_start").starts(&t.set_start, t.set_terms.len())?;
    s("set_start").lists(&t.set_start, terminals)?;
    s("set_terms").ids(&t.set_terms, terminals, false)?;
    s("set_ignored").len(t.set_ignored.len(), sets)?;
    let states = check_lexer(t, &meta, sets)?;
    let lr_states = check_lr(t, &meta)?;
    check_dwa(t, &meta, lr_states)?;
    check_rows(t, &meta, states)?;
    // Rows that loading makes: of differences, of byte sets, and the latest ones of large sources.
    let rows = t.dense_base.len() + t.byte_sets.len() / 4 + 2 * t.source_start.len();
    let bytes = rows.saturating_mul(4 * meta.vocab_words as usize)
        + t.source_start.len().saturating_mul(8 * meta.verdicts as usize);
    if bytes > LOAD_BYTES.max(file_bytes.saturating_mul(LOAD_FACTOR)) {
        return s("dense_base").fail(format!("its rows would take {bytes} bytes of memory"));
    }
    Ok(meta)
}

fn check_names(t: &Tables, meta: &Meta) -> Result<(), ArtifactError> {
    let expected = meta.terminals as usize + meta.nonterminals as usize + meta.productions as usize;
    match std::str::from_utf8(&t.names) {
        Ok(text) if text.matches('\n').count() == expected => Ok(()),
        _ => Section("names").fail(format!("not {expected} lines of UTF-8")),
    }
}

fn check_lexer(t: &Tables, meta: &Meta, sets: usize) -> Result<usize, ArtifactError> {
    let s = Section;
    let classes = meta.classes as usize;
    s("byte_class").len(t.byte_class.len(), 256)?;
    if t.byte_class.iter().any(|&c| usize::from(c) >= classes - meta.symbols as usize) {
        return s("byte_class").fail("a class is out of range");
    }
    s("symbol_of").len(t.symbol_of.len(), t.symbol_first.len())?;
    s("symbol_of").ids(&t.symbol_of, meta.symbols as usize, true)?;
    if t.symbol_first.windows(2).any(|pair| pair[0] >= pair[1]) {
        return s("symbol_first").fail("intervals are not ascending");
    }
    let states = t.lexer_row.len();
    if states == 0 || states > MAX_COUNT {
        return s("lexer_row").fail("no states, or too many");
    }
    if !t.lexer_rows.len().is_multiple_of(classes) {
        return s("lexer_rows").fail("not whole rows");
    }
    s("lexer_row").ids(&t.lexer_row, t.lexer_rows.len() / classes, false)?;
    s("lexer_patch_class").len(t.lexer_patch_class.len(), t.lexer_patch_step.len())?;
    let patched = s("lexer_patch_start").starts(&t.lexer_patch_start, t.lexer_patch_step.len())?;
    s("lexer_patch_start").len(patched, states)?;
    s("lexer_patch_start").lists(&t.lexer_patch_start, classes)?;
    let alternatives = t.entry_next.len();
    let entries = s("entry_start").starts(&t.entry_start, alternatives)?;
    s("entry_start").lists(&t.entry_start, MAX_ALTERNATIVES)?;
    let ids = check_far(t, meta, states)?;
    s("lexer_rows").ids(&t.lexer_rows, ids + entries, true)?;
    s("lexer_patch_step").ids(&t.lexer_patch_step, ids + entries, true)?;
    s("entry_emit").len(t.entry_emit.len(), alternatives)?;
    s("entry_emit2").len(t.entry_emit2.len(), alternatives)?;
    let changes = t.change_set.len();
    s("change_set").ids(&t.change_set, sets, false)?;
    s("change_groups").len(t.change_groups.len(), changes)?;
    let width = (meta.groups as usize).div_ceil(64);
    if width == 0 || !t.group_sets.len().is_multiple_of(width) {
        return s("group_sets").fail("not whole sets");
    }
    s("change_groups").ids(&t.change_groups, t.group_sets.len() / width, true)?;
    s("entry_emit").ids(&t.entry_emit, changes, true)?;
    s("entry_emit2").ids(&t.entry_emit2, changes, true)?;
    s("entry_next").ids(&t.entry_next, ids, false)?;
    s("lexer_cand").len(t.lexer_cand.len(), states)?;
    s("lexer_cand").ids(&t.lexer_cand, sets, true)?;
    s("lexer_live").len(t.lexer_live.len(), states)?;
    s("lexer_live").ids(&t.lexer_live, sets, true)?;
    Ok(states)
}

/// The far states, and the ids that they stand for; returns the number of states and ids.
fn check_far(t: &Tables, meta: &Meta, states: usize) -> Result<usize, ArtifactError> {
    let s = Section;
    let (far, ids) = (t.far_state.len(), meta.lexer_ids as usize);
    s("far_state").ids(&t.far_state, states, false)?;
    s("far_first").len(t.far_first.len(), far + 1)?;
    let ends = (t.far_first[0] as usize, t.far_first[far] as usize);
    if ends != (states, ids) || ids > MAX_COUNT || t.far_first.windows(2).any(|pair| pair[0] >= pair[1]) {
        return s("far_first").fail("ids are not ascending from the number of states to that of all ids");
    }
    let counters = t.far_chain.len();
    let counting = s("far_counters").starts(&t.far_counters, counters)?;
    s("far_counters").len(counting, far)?;
    s("far_counters").lists(&t.far_counters, MAX_COUNTERS)?;
    s("far_chain").ids(&t.far_chain, t.chain_length.len(), false)?;
    s("far_layer").len(t.far_layer.len(), counters)?;
    s("far_down").len(t.far_down.len(), counters)?;
    for i in 0..far {
        let list = t.far_counters.list(i as u32);
        let lengths = list.clone().map(|c| t.chain_length[t.far_chain.get(c) as usize] as usize);
        if lengths.fold(1usize, usize::saturating_mul) != (t.far_first[i + 1] - t.far_first[i]) as usize {
            return s("far_first").fail(format!("far state {i} has not as many ids as its counters have values"));
        }
        // Counters run out one after the other, so that stepping ends.
        for down in list.clone().map(|c| t.far_down[c] as usize) {
            let next = t.far_first.partition_point(|&first| first as usize <= down);
            let left = if down < states { 0 } else { t.far_counters.list(next as u32 - 1).len() };
            if down >= ids || left >= list.len() {
                return s("far_down").fail(format!("a counter of far state {i} does not run out"));
            }
        }
    }
    Ok(ids)
}

fn check_lr(t: &Tables, meta: &Meta) -> Result<usize, ArtifactError> {
    let s = Section;
    let states = s("shift_start").starts(&t.shift_start, t.shift_to.len())?;
    if states == 0 {
        return s("shift_start").fail("no states");
    }
    s("shift_start").lists(&t.shift_start, meta.terminals as usize + 1)?;
    s("shift_term").len(t.shift_term.len(), t.shift_to.len())?;
    s("shift_term").ids(&t.shift_term, meta.terminals as usize + 1, false)?;
    s("shift_to").ids(&t.shift_to, states + 1, false)?;
    let reducing = s("reduce_start").starts(&t.reduce_start, t.reduce_prod.len())?;
    s("reduce_start").len(reducing, states)?;
    s("reduce_start").lists(&t.reduce_start, meta.productions as usize)?;
    s("reduce_set").len(t.reduce_set.len(), t.reduce_prod.len())?;
    s("reduce_prod").ids(&t.reduce_prod, meta.productions as usize, false)?;
    let words = meta.terminal_words();
    if !t.lookahead.len().is_multiple_of(words) {
        return s("lookahead").fail("not whole sets");
    }
    s("reduce_set").ids(&t.reduce_set, t.lookahead.len() / words, false)?;
    let going = s("goto_start").starts(&t.goto_start, t.goto_to.len())?;
    s("goto_start").len(going, states)?;
    s("goto_start").lists(&t.goto_start, meta.nonterminals as usize)?;
    s("goto_nonterminal").len(t.goto_nonterminal.len(), t.goto_to.len())?;
    s("goto_nonterminal").ids(&t.goto_nonterminal, meta.nonterminals as usize, false)?;
    s("goto_to").ids(&t.goto_to, states, false)?;
    s("prod_lhs").len(t.prod_lhs.len(), meta.productions as usize)?;
    s("prod_lhs").ids(&t.prod_lhs, meta.nonterminals as usize, false)?;
    s("prod_len").len(t.prod_len.len(), meta.productions as usize)?;
    // The states passed on the way through a production differ.
    s("prod_len").ids(&t.prod_len, states, false)?;
    Ok(states)
}

fn check_dwa(t: &Tables, meta: &Meta, lr_states: usize) -> Result<(), ArtifactError> {
    let s = Section;
    let states = s("dwa_start").starts(&t.dwa_start, t.dwa_symbol.len())?;
    if states == 0 {
        return s("dwa_start").fail("no states");
    }
    s("dwa_default_next").len(t.dwa_default_next.len(), states)?;
    s("dwa_default_next").ids(&t.dwa_default_next, states, true)?;
    s("dwa_default_output").len(t.dwa_default_output.len(), states)?;
    s("lr_class").len(t.lr_class.len(), lr_states)?;
    s("lr_group").len(t.lr_group.len(), lr_states)?;
    s("lr_group").ids(&t.lr_group, meta.groups as usize, false)?;
    s("dwa_next").len(t.dwa_next.len(), t.dwa_symbol.len())?;
    s("dwa_next").ids(&t.dwa_next, states, true)?;
    s("dwa_output").len(t.dwa_output.len(), t.dwa_symbol.len())?;
    let words = meta.verdict_words();
    if !t.output_verdicts.len().is_multiple_of(words) || !t.verdict_masks.len().is_multiple_of(words) {
        return s("output_verdicts").fail("not whole sets");
    }
    s("dwa_output").ids(&t.dwa_output, t.output_verdicts.len() / words, true)?;
    s("dwa_default_output").ids(&t.dwa_default_output, t.output_verdicts.len() / words, true)
}

fn check_rows(t: &Tables, meta: &Meta, states: usize) -> Result<(), ArtifactError> {
    let s = Section;
    let words = meta.vocab_words as usize;
    let verdicts = meta.verdicts as usize;
    if !t.dense.len().is_multiple_of(words) {
        return s("dense").fail("not whole rows");
    }
    s("run_bits").len(t.run_bits.len(), t.run_word.len())?;
    let runs = s("run_start").starts(&t.run_start, t.run_word.len())?;
    if t.run_word.iter().any(|&w| usize::from(w) >= words) {
        return s("run_word").fail("a word is beyond the bitmask");
    }
    s("run_start").lists(&t.run_start, words)?;
    let dense = t.dense.len() / words;
    s("dense_base").ids(&t.dense_base, dense, false)?;
    s("dense_delta").len(t.dense_delta.len(), t.dense_base.len())?;
    s("dense_delta").ids(&t.dense_delta, runs, false)?;
    let classes = t.class_verdict.len();
    let sources = s("source_start").starts(&t.source_start, classes)?;
    s("class_verdict").ids(&t.class_verdict, verdicts, false)?;
    s("class_dense").len(t.class_dense.len(), classes)?;
    s("class_dense").ids(&t.class_dense, dense + t.dense_base.len(), true)?;
    s("class_run").len(t.class_run.len(), classes)?;
    s("class_run").ids(&t.class_run, runs, true)?;
    if t.class_dense.iter().zip(t.class_run.iter()).any(|(dense, run)| (dense == NONE) == (run == NONE)) {
        return s("class_run").fail("a class is neither dense nor sparse, or both");
    }
    s("source_start").lists(&t.source_start, verdicts)?;
    let run = |run: u32| t.run_start.list(run).len();
    for source in 0..sources as u32 {
        let class = |class: usize| if t.class_run.get(class) == NONE { words } else { run(t.class_run.get(class)) };
        if t.source_start.list(source).map(class).sum::<usize>() > SOURCE_ROWS * (words + 1) {
            return s("source_start").fail(format!("the classes of source {source} are too large"));
        }
    }
    let groups = t.group_emit.len();
    let recipes = s("group_start").starts(&t.group_start, groups)?;
    s("group_start").len(recipes, states)?;
    s("group_emit").ids(&t.group_emit, t.change_set.len(), true)?;
    s("group_flags").len(t.group_flags.len(), groups)?;
    s("group_mask").len(t.group_mask.len(), groups)?;
    s("group_mask").ids(&t.group_mask, t.verdict_masks.len() / meta.verdict_words(), false)?;
    let with_pieces = s("piece_start").starts(&t.piece_start, t.piece_source.len())?;
    s("piece_start").len(with_pieces, groups)?;
    s("piece_source").ids(&t.piece_source, sources, false)?;
    s("piece_bytes").len(t.piece_bytes.len(), t.piece_source.len())?;
    if !t.byte_sets.len().is_multiple_of(4) {
        return s("byte_sets").fail("not whole sets");
    }
    s("piece_bytes").ids(&t.piece_bytes, t.byte_sets.len() / 4, true)?;
    let with_own = s("own_start").starts(&t.own_start, t.own_verdict.len())?;
    s("own_start").len(with_own, groups)?;
    s("own_verdict").ids(&t.own_verdict, verdicts, false)?;
    s("own_run").len(t.own_run.len(), t.own_verdict.len())?;
    s("own_run").ids(&t.own_run, runs, false)?;
    for state in 0..states as u32 {
        let read = |group: usize| {
            let own = t.own_start.list(group as u32).map(|i| run(t.own_run.get(i)) + 1).sum::<usize>();
            t.piece_start.list(group as u32).len() * words + own
        };
        if t.group_start.list(state).map(read).sum::<usize>() > ROW_WORDS {
            return s("group_start").fail(format!("the row of lexer state {state} takes too much work"));
        }
        if t.group_start.list(state).len() * meta.verdict_words() > ROW_VERDICT_WORDS {
            return s("group_start").fail(format!("the row of lexer state {state} takes too many verdicts"));
        }
    }
    s("recipe_drop").len(t.recipe_drop.len(), states)?;
    s("recipe_drop").ids(&t.recipe_drop, t.drop_run.len(), true)?;
    s("drop_run").ids(&t.drop_run, runs, false)?;
    s("drop_more").len(t.drop_more.len(), t.drop_run.len())?;
    let mut taken: Vec<usize> = Vec::with_capacity(t.drop_run.len());
    for drop in 0..t.drop_run.len() {
        let more = match t.drop_more.get(drop) {
            NONE => 0,
            more if (more as usize) < drop => taken[more as usize],
            more => return s("drop_more").fail(format!("drop {drop} has drop {more}, which is no earlier one")),
        };
        taken.push(more + run(t.drop_run.get(drop)) + 1);
        if taken[drop] > ROW_WORDS {
            return s("drop_more").fail(format!("drop {drop} takes too much work"));
        }
    }
    Ok(())
}
