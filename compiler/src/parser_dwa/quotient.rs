//! The LR table as far as masks can see it: states and terminals that no stack tells apart are one.
//!
//! Two states are equal if their lexer groups are, and their rows hold the same reductions (as left-hand side and length), and shifts and gotos to equal
//! states; two terminals if their columns do. Acceptance of any sequence on any stack is the same in the quotient, and it
//! is smaller: `=` and `<` are one comparison operator, `ASC` and `DESC` one word. Only masks use it; commits need the
//! real states.

use crate::grammar::ir::Symbol;
use crate::lr::{Action, LrTable};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// A row of the quotient.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Row {
    /// Terminal class and state class, ascending. The end is shifted to the pseudo state [`Quotient::accept`].
    pub shifts: Vec<(u32, u32)>,
    /// Left-hand side, length, terminal classes.
    pub reductions: Vec<(u32, u32, Vec<u32>)>,
    /// Nonterminal and state class, ascending.
    pub gotos: Vec<(u32, u32)>,
}

/// The table's quotient.
#[derive(Debug)]
pub struct Quotient {
    /// Class of each LR state.
    pub state_class: Vec<u32>,
    /// Class of each terminal, the end included, which is alone in the last class.
    pub terminal_class: Arc<[u32]>,
    /// Number of terminal classes, that of the end included.
    pub terminal_classes: usize,
    /// Row of each state class.
    pub rows: Vec<Row>,
    /// Lexer group of each state class.
    pub group_of: Vec<u32>,
    /// State classes in which a stack can end: where it starts or where a terminal was shifted.
    pub tops: Vec<u32>,
}

/// What an action does, as far as masks can see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Effect {
    Shift(u32),
    Reduce(u32, u32),
}

impl Quotient {
    /// The coarsest quotient that one refinement over states and then terminals gives.
    pub fn new(table: &LrTable, group_of_state: &[u32]) -> Self {
        let state_class = refine_states(table, group_of_state);
        let accept = state_class.iter().max().map_or(0, |m| m + 1);
        let end = table.terminal_count as u32;
        let effect = |action: &Action| match *action {
            Action::Shift(to) => Effect::Shift(state_class[to as usize]),
            Action::Accept => Effect::Shift(accept),
            Action::Reduce(p) => {
                let (lhs, len) = table.productions[p as usize];
                Effect::Reduce(lhs, len)
            }
        };
        // One state of each class stands for it.
        let mut representatives = vec![u32::MAX; accept as usize];
        for state in (0..table.state_count as u32).rev() {
            representatives[state_class[state as usize] as usize] = state;
        }
        let mut columns: Vec<Vec<(u32, Effect)>> = vec![Vec::new(); table.terminal_count + 1];
        for &state in &representatives {
            for (terminal, actions) in table.row(state) {
                let mut effects: SmallVec<[Effect; 4]> = actions.iter().map(effect).collect();
                effects.sort_unstable();
                effects.dedup();
                columns[terminal as usize].extend(effects.into_iter().map(|e| (state, e)));
            }
        }
        let mut ids: FxHashMap<&[(u32, Effect)], u32> = FxHashMap::default();
        let mut terminal_class: Vec<u32> = Vec::with_capacity(columns.len());
        for column in &columns[..end as usize] {
            let next = ids.len() as u32;
            terminal_class.push(*ids.entry(column).or_insert(next));
        }
        terminal_class.push(ids.len() as u32);
        let terminal_classes = ids.len() + 1;
        let rows = representatives
            .iter()
            .map(|&state| {
                let mut row = Row::default();
                let mut reductions: FxHashMap<(u32, u32), Vec<u32>> = FxHashMap::default();
                for (terminal, actions) in table.row(state) {
                    let class = terminal_class[terminal as usize];
                    for action in actions {
                        match effect(action) {
                            Effect::Shift(to) => row.shifts.push((class, to)),
                            Effect::Reduce(lhs, len) => reductions.entry((lhs, len)).or_default().push(class),
                        }
                    }
                }
                row.shifts.sort_unstable();
                row.shifts.dedup();
                row.reductions = reductions.into_iter().map(|((lhs, len), classes)| (lhs, len, classes)).collect();
                row.reductions.sort_unstable();
                row.gotos = table.gotos(state).map(|(n, to)| (n, state_class[to as usize])).collect();
                row
            })
            .collect();
        let mut tops: Vec<u32> = (0..table.state_count)
            .filter(|&s| s == 0 || matches!(table.accessing[s], Some(Symbol::T(_))))
            .map(|s| state_class[s])
            .collect();
        tops.sort_unstable();
        tops.dedup();
        let group_of = representatives.iter().map(|&state| group_of_state[state as usize]).collect();
        Quotient { state_class, terminal_class: terminal_class.into(), terminal_classes, rows, group_of, tops }
    }

    /// The pseudo state that the end is shifted to.
    pub fn accept(&self) -> u32 {
        self.rows.len() as u32
    }

    /// Target of a goto.
    pub fn goto(&self, state: u32, nonterminal: u32) -> Option<u32> {
        let row = &self.rows[state as usize].gotos;
        row.binary_search_by_key(&nonterminal, |g| g.0).ok().map(|i| row[i].1)
    }

    /// For each state class those that can lie directly below it on a stack.
    pub fn below(&self) -> Vec<Vec<u32>> {
        let mut below = vec![Vec::new(); self.rows.len()];
        for (state, row) in self.rows.iter().enumerate() {
            for &(_, to) in row.shifts.iter().chain(&row.gotos) {
                if to != self.accept() {
                    below[to as usize].push(state as u32);
                }
            }
        }
        for list in &mut below {
            list.sort_unstable();
            list.dedup();
        }
        below
    }
}

/// Rounds of refinement after which states are not merged at all: a chain of thousands of states that differ only at
/// its end would take as many rounds, and has little to merge.
const MAX_ROUNDS: usize = 60;

/// Classes of bisimilar states, numbered by their first state.
///
/// The first round looks at whole rows; later ones only at where states lead to whose class has changed. Those that have
/// not changed in a class were alike and still are, and the others differ from them.
fn refine_states(table: &LrTable, group_of_state: &[u32]) -> Vec<u32> {
    let n = table.state_count;
    let targets = Targets::new(table);
    let (mut class, mut count) = by_row(table, group_of_state);
    let mut changed: Vec<u32> = (0..n as u32).collect();
    for _ in 0..MAX_ROUNDS {
        let mut members = vec![0u32; count];
        class.iter().for_each(|&c| members[c as usize] += 1);
        // What is alone in its class stays so; if all members of a class are looked at, the first part keeps its number.
        changed.retain(|&state| members[class[state as usize] as usize] > 1);
        changed.iter().for_each(|&state| members[class[state as usize] as usize] -= 1);
        let mut ids: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
        let mut moved: Vec<(u32, u32)> = Vec::new();
        for &state in &changed {
            crate::control::check();
            let old = class[state as usize];
            let key = std::iter::once(old).chain(targets.of(state).iter().map(|&to| class[to as usize])).collect();
            let new = *ids.entry(key).or_insert_with(|| {
                if members[old as usize] == 0 {
                    members[old as usize] = 1;
                    return old;
                }
                count += 1;
                count as u32 - 1
            });
            if new != old {
                moved.push((state, new));
            }
        }
        if moved.is_empty() {
            return by_first_state(&class);
        }
        let mut seen = vec![false; n];
        changed.clear();
        for (state, new) in moved {
            class[state as usize] = new;
            changed.extend(
                targets.sources(state).iter().filter(|&&from| !std::mem::replace(&mut seen[from as usize], true)),
            );
        }
        changed.sort_unstable();
    }
    (0..n as u32).collect()
}

/// Classes of states whose rows are equal but for the states they lead to, and their number.
fn by_row(table: &LrTable, group_of_state: &[u32]) -> (Vec<u32>, usize) {
    let mut ids: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
    let row = |state: u32| {
        let mut key = vec![group_of_state[state as usize]];
        for (terminal, actions) in table.row(state) {
            key.extend([terminal, actions.len() as u32]);
            for action in actions {
                match *action {
                    Action::Shift(_) => key.push(0),
                    Action::Accept => key.push(1),
                    Action::Reduce(p) => {
                        let (lhs, len) = table.productions[p as usize];
                        key.extend([2, lhs, len]);
                    }
                }
            }
        }
        key.push(u32::MAX);
        key.extend(table.gotos(state).map(|(n, _)| n));
        key
    };
    let classes = (0..table.state_count as u32).map(|state| {
        let next = ids.len() as u32;
        *ids.entry(row(state)).or_insert(next)
    });
    let classes = classes.collect();
    (classes, ids.len())
}

/// Where each state leads to, by shifts and then gotos, and where from.
struct Targets {
    start: Vec<u32>,
    targets: Vec<u32>,
    source_start: Vec<u32>,
    sources: Vec<u32>,
}

impl Targets {
    fn new(table: &LrTable) -> Self {
        let (mut start, mut targets) = (vec![0], Vec::new());
        for state in 0..table.state_count as u32 {
            for action in table.row(state).flat_map(|(_, actions)| actions) {
                if let Action::Shift(to) = *action {
                    targets.push(to);
                }
            }
            targets.extend(table.gotos(state).map(|(_, to)| to));
            start.push(targets.len() as u32);
        }
        let mut source_start = vec![0; table.state_count + 1];
        targets.iter().for_each(|&to| source_start[to as usize + 1] += 1);
        (0..table.state_count).for_each(|i| source_start[i + 1] += source_start[i]);
        let (mut free, mut sources) = (source_start.clone(), vec![0; targets.len()]);
        for state in 0..table.state_count {
            for &to in &targets[start[state] as usize..start[state + 1] as usize] {
                sources[free[to as usize] as usize] = state as u32;
                free[to as usize] += 1;
            }
        }
        Targets { start, targets, source_start, sources }
    }

    fn of(&self, state: u32) -> &[u32] {
        &self.targets[self.start[state as usize] as usize..self.start[state as usize + 1] as usize]
    }

    fn sources(&self, state: u32) -> &[u32] {
        &self.sources[self.source_start[state as usize] as usize..self.source_start[state as usize + 1] as usize]
    }
}

/// The same classes, numbered by their first state.
fn by_first_state(class: &[u32]) -> Vec<u32> {
    let mut ids: FxHashMap<u32, u32> = FxHashMap::default();
    class
        .iter()
        .map(|c| {
            let next = ids.len() as u32;
            *ids.entry(*c).or_insert(next)
        })
        .collect()
}
