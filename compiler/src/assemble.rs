//! Lays lexer, LR tables and Parser DWA out as the runtime's arrays.

use crate::bits;
use crate::front::Front;
use crate::lexer::{DEAD_ENTRY, Far, NONE, Symbols, WatchedLexer};
use crate::lr::{Action, LrTable};
use crate::parser_dwa::Verdicts;
use crate::terminal_dwa::Outcomes;
use dwa_runtime::{START, TableData};
use rustc_hash::FxHashMap;

/// Names, lexer, and LR tables.
pub(crate) fn front(front: &Front, outcomes: &Outcomes) -> TableData {
    let mut out = TableData::default();
    let terminals = front.grammar.terminals.iter().map(|t| t.name.as_str());
    let others = front.reduced.nonterminal_names.iter().chain(&front.table.production_names).map(|name| &**name);
    for name in terminals.chain(others) {
        out.names.extend(name.bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }));
        out.names.push(b'\n');
    }
    write_lexer(&front.lexer, &front.far, &outcomes.change_of, &mut out);
    write_far(&front.far, &front.lexer, &mut out);
    write_symbols(&front.symbols, &mut out);
    out.set_start.push(0);
    for set in &outcomes.sets.sets {
        out.set_terms.extend(&set.terms);
        out.set_start.push(out.set_terms.len() as u32);
        out.set_ignored.push(u8::from(set.ignored));
    }
    for change in &outcomes.changes {
        out.change_set.push(change.set);
        out.change_groups.push(change.groups);
    }
    out.group_sets = outcomes.group_sets.clone().into_words();
    write_table(&front.table, &mut out);
    out.lr_class = front.quotient.state_class.clone();
    out.lr_group.clone_from(&front.groups.of_state);
    out
}

/// The Parser DWA.
pub(crate) fn automaton(verdicts: &Verdicts, out: &mut TableData) {
    out.dwa_start.push(0);
    for state in &verdicts.states {
        for &(symbol, next, output) in &state.edges {
            out.dwa_symbol.push(symbol);
            out.dwa_next.push(next);
            out.dwa_output.push(output);
        }
        out.dwa_start.push(out.dwa_symbol.len() as u32);
        out.dwa_default_next.push(state.default.0);
        out.dwa_default_output.push(state.default.1);
    }
    out.output_verdicts.clone_from(&verdicts.outputs);
}

/// No automaton, and recipes without groups: they are filled on demand.
pub(crate) fn nothing_else(out: &mut TableData) {
    let states = out.lexer_row.len();
    (out.dwa_start, out.dwa_default_next, out.dwa_default_output) = (vec![0, 0], vec![NONE], vec![NONE]);
    (out.run_start, out.source_start, out.piece_start, out.own_start) = (vec![0], vec![0], vec![0], vec![0]);
    out.group_start = vec![0; states + 1];
    out.recipe_drop = vec![NONE; states];
}

/// Exceptions a lexer state may have to the row it shares.
const MAX_PATCHES: u32 = 6;
/// Rows tried, those that served last first, for a state to share.
const ROWS_TRIED: usize = 64;

fn write_lexer(lexer: &WatchedLexer, far: &Far, change_of: &[u32], out: &mut TableData) {
    let change = |emission: u32| if emission == NONE { NONE } else { change_of[emission as usize] };
    out.byte_class = lexer.byte_class.to_vec();
    out.lexer_cand.clone_from(&lexer.cand);
    out.lexer_live.clone_from(&lexer.live);
    // A step that goes one way and emits nothing is the state itself; others point to their alternatives. A far state is
    // entered with its counters at their most.
    let mut ids: Vec<u32> = (0..lexer.state_count() as u32).collect();
    far.states.iter().for_each(|state| ids[state.state as usize] = far.at_most(state));
    let all_ids = lexer.state_count() + far.ids as usize;
    out.entry_start.push(0);
    let codes: Vec<u32> = lexer
        .entries
        .iter()
        .enumerate()
        .map(|(id, entry)| match &entry[..] {
            [] => {
                debug_assert_eq!(id as u32, DEAD_ENTRY);
                NONE
            }
            [only] if only.emit == [NONE; 2] => ids[only.next as usize],
            alternatives => {
                for a in alternatives {
                    out.entry_emit.push(change(a.emit[0]));
                    out.entry_emit2.push(change(a.emit[1]));
                    out.entry_next.push(ids[a.next as usize]);
                }
                out.entry_start.push(out.entry_next.len() as u32);
                (all_ids + out.entry_start.len() - 2) as u32
            }
        })
        .collect();
    let (classes, bytes) = (lexer.classes, lexer.byte_classes());
    let mut rows: Vec<Vec<u32>> = Vec::new();
    let mut recent: Vec<usize> = Vec::new();
    out.lexer_patch_start.push(0);
    for x in 0..lexer.state_count() {
        let steps = &lexer.steps[x * classes..][..classes];
        // Patches are for bytes; symbols have to agree.
        let shares = |row: &usize| {
            rows[*row][bytes..] == steps[bytes..] && bits::differ_at_most(&rows[*row], steps, MAX_PATCHES)
        };
        match recent.iter().position(shares) {
            Some(at) => recent[..=at].rotate_right(1),
            None => {
                recent.truncate(ROWS_TRIED - 1);
                recent.insert(0, rows.len());
                rows.push(steps.to_vec());
            }
        }
        let row = recent[0];
        for class in bits::differing(&rows[row], steps) {
            out.lexer_patch_class.push(class as u8);
            out.lexer_patch_step.push(codes[steps[class as usize] as usize]);
        }
        out.lexer_row.push(row as u32);
        out.lexer_patch_start.push(out.lexer_patch_step.len() as u32);
    }
    out.lexer_rows = rows.iter().flatten().map(|&entry| codes[entry as usize]).collect();
}

/// The far states.
fn write_far(far: &Far, lexer: &WatchedLexer, out: &mut TableData) {
    let mut first = lexer.state_count() as u32;
    out.far_first.push(first);
    out.far_counters.push(0);
    for state in &far.states {
        first += far.ids_of(state);
        out.far_first.push(first);
        out.far_state.push(state.state);
        for counter in &state.counters {
            out.far_chain.push(counter.chain);
            out.far_layer.push(counter.layer as u8);
            out.far_down.push(match counter.down {
                // It never runs out there.
                NONE => START,
                down => far.state(down).map_or(down, |state| far.at_most(state)),
            });
        }
        out.far_counters.push(out.far_chain.len() as u32);
    }
    out.chain_length.clone_from(&far.lengths);
}

/// The symbol of each interval of ids.
fn write_symbols(symbols: &Symbols, out: &mut TableData) {
    let numbered =
        symbols.ids.iter().zip(0..).flat_map(|(ids, symbol)| ids.iter().map(move |&(lo, hi)| (lo, hi, symbol)));
    let mut intervals: Vec<(u32, u32, u32)> = numbered.collect();
    intervals.sort_unstable();
    for (lo, hi, symbol) in intervals {
        if out.symbol_first.last() == Some(&lo) {
            out.symbol_of.pop();
        } else {
            out.symbol_first.push(lo);
        }
        out.symbol_of.push(symbol);
        out.symbol_first.push(hi);
        out.symbol_of.push(NONE);
    }
}

fn write_table(table: &LrTable, out: &mut TableData) {
    let mut lookahead = bits::Pool::new(bits::words(table.terminal_count + 1));
    let width = bits::words(table.terminal_count + 1);
    out.shift_start.push(0);
    out.reduce_start.push(0);
    out.goto_start.push(0);
    for state in 0..table.state_count as u32 {
        let mut reductions: FxHashMap<u32, Vec<u64>> = FxHashMap::default();
        for (terminal, actions) in table.row(state) {
            for &action in actions {
                let to = match action {
                    Action::Shift(to) => to,
                    Action::Accept => table.state_count as u32,
                    Action::Reduce(production) => {
                        bits::insert(reductions.entry(production).or_insert_with(|| vec![0; width]), terminal);
                        continue;
                    }
                };
                out.shift_term.push(terminal);
                out.shift_to.push(to);
            }
        }
        out.shift_start.push(out.shift_to.len() as u32);
        let mut reductions: Vec<_> = reductions.into_iter().collect();
        reductions.sort_unstable();
        for (production, set) in reductions {
            out.reduce_prod.push(production);
            out.reduce_set.push(lookahead.intern(&set));
        }
        out.reduce_start.push(out.reduce_prod.len() as u32);
        for (nonterminal, to) in table.gotos(state) {
            out.goto_nonterminal.push(nonterminal);
            out.goto_to.push(to);
        }
        out.goto_start.push(out.goto_to.len() as u32);
    }
    out.lookahead = lookahead.into_words();
    out.prod_lhs = table.productions.iter().map(|p| p.0).collect();
    out.prod_len = table.productions.iter().map(|p| p.1).collect();
}
