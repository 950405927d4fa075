//! Lexer groups: which LR states share a lexer.
//!
//! In `basic` mode all do. In `contextual` mode the terminals that take part in a lexeme are those of the row of the LR
//! state on top when it starts, with the ignored and the reject terminals. States share a lexer, over the union of their
//! rows, unless a terminal that one of them lacks could make a difference to it:
//! 1. it outranks what the row's own terminals make of some lexeme, or
//! 2. it goes on where the row's own terminals have matched, to a match that none of them has, and the byte it goes on
//!    with could have started the next lexeme.
//!
//! Otherwise a terminal from another row changes neither cut nor candidates; no stack of the row can shift it.
//! Rows are coloured greedily in LR-state order. Where the automaton of all terminals together is too large to decide
//! this, every distinct row has a lexer of its own.

use super::{DEAD, LexerDfa, LexerError, LexerLimits};
use crate::bits;
use crate::grammar::ir::{Symbol, Terminal, TerminalId};
use crate::lr::LrTable;
use rustc_hash::FxHashMap;

/// DFA states up to which the automaton of all terminals is built to look for conflicts.
const MAX_JOINT_STATES: usize = 20_000;

/// Which LR states share a lexer.
#[derive(Debug, Clone)]
pub struct Groups {
    /// Group of each LR state; what it is where no lexeme can start does not matter.
    pub of_state: Vec<u32>,
    /// Terminals of each group.
    pub members: Vec<Vec<TerminalId>>,
}

impl Groups {
    /// One group with all terminals.
    pub fn basic(table: &LrTable) -> Self {
        let all = (0..table.terminal_count as u32).collect();
        Groups { of_state: vec![0; table.state_count], members: vec![all] }
    }

    /// Groups by rows. `follow` has what may come after each terminal, as bits.
    pub fn contextual(terminals: &[Terminal], table: &LrTable, follow: &[Vec<u64>], limits: &LexerLimits) -> Self {
        let width = bits::words(table.terminal_count + 1);
        let mut always = vec![0; width];
        for (t, _) in terminals.iter().enumerate().filter(|(_, t)| t.ignored || t.reject) {
            bits::insert(&mut always, t as u32);
        }
        // Distinct rows of the states in which a lexeme can start, in state order.
        let mut rows: Vec<Vec<u64>> = Vec::new();
        let mut ids: FxHashMap<Vec<u64>, u32> = FxHashMap::default();
        let mut row_of = vec![0; table.state_count];
        for state in 0..table.state_count as u32 {
            if state != 0 && !matches!(table.accessing[state as usize], Some(Symbol::T(_))) {
                continue;
            }
            let mut row = always.clone();
            for &t in table.row_terminals(state).iter().filter(|&&t| (t as usize) < table.terminal_count) {
                bits::insert(&mut row, t);
            }
            let next = rows.len() as u32;
            row_of[state as usize] = *ids.entry(row).or_insert_with_key(|row| {
                rows.push(row.clone());
                next
            });
        }
        let colours = match Joint::new(terminals, &rows, limits) {
            Ok(joint) => colour(&rows, &joint.conflicts(terminals, &rows, follow)),
            Err(_) => (0..rows.len() as u32).collect(),
        };
        let count = colours.iter().max().map_or(0, |m| m + 1);
        let mut unions = vec![vec![0; width]; count as usize];
        for (row, &colour) in rows.iter().zip(&colours) {
            bits::unite(&mut unions[colour as usize], row);
        }
        Groups {
            of_state: row_of.iter().map(|&row| colours[row as usize]).collect(),
            members: unions.iter().map(|union| bits::iter(union).collect()).collect(),
        }
    }
}

/// The automaton of all terminals that occur in a row.
struct Joint {
    dfa: LexerDfa,
    accepts: Vec<Vec<u64>>,
    /// Terminals that each state can still become.
    live: Vec<Vec<u64>>,
    edges: Vec<(u32, u32)>,
}

impl Joint {
    fn new(terminals: &[Terminal], rows: &[Vec<u64>], limits: &LexerLimits) -> Result<Self, LexerError> {
        let width = bits::words(terminals.len() + 1);
        let mut used = vec![0; width];
        for row in rows {
            bits::unite(&mut used, row);
        }
        let members: Vec<u32> = bits::iter(&used).collect();
        let limits = LexerLimits { max_dfa_states: limits.max_dfa_states.min(MAX_JOINT_STATES), ..limits.clone() };
        let dfa = LexerDfa::build(terminals, &members, false, &limits)?;
        let n = dfa.state_count() as u32;
        let set = |q: u32| {
            let mut set = vec![0; width];
            dfa.candidates(q).iter().for_each(|&t| bits::insert(&mut set, t));
            set
        };
        let accepts: Vec<Vec<u64>> = (0..n).map(set).collect();
        let mut edges: Vec<(u32, u32)> =
            (0..n).flat_map(|q| dfa.row(q).iter().filter(|&&to| to != DEAD).map(move |&to| (q, to))).collect();
        edges.sort_unstable();
        edges.dedup();
        let live = super::watched::propagate(accepts.clone(), edges.iter().copied());
        Ok(Joint { dfa, accepts, live, edges })
    }

    /// For each row the terminals outside of it that would make a difference.
    fn conflicts(&self, terminals: &[Terminal], rows: &[Vec<u64>], follow: &[Vec<u64>]) -> Vec<Vec<u64>> {
        rows.iter().map(|row| self.conflicts_of(terminals, row, follow)).collect()
    }

    fn conflicts_of(&self, terminals: &[Terminal], row: &[u64], follow: &[Vec<u64>]) -> Vec<u64> {
        let width = row.len();
        let own = |q: usize| -> Vec<u64> { self.accepts[q].iter().zip(row).map(|(a, r)| a & r).collect() };
        // What each state can still become by a match that none of the row's own terminals has.
        let foreign = (0..self.accepts.len())
            .map(|q| if bits::meets(&self.accepts[q], row) { vec![0; width] } else { self.accepts[q].clone() })
            .collect();
        let foreign = super::watched::propagate(foreign, self.edges.iter().copied());
        let mut conflicts = vec![0; width];
        for q in 0..self.accepts.len() {
            let matched = own(q);
            let Some(rank) = bits::iter(&matched).map(|t| terminals[t as usize].rank()).max() else { continue };
            for t in bits::iter(&self.accepts[q]).filter(|&t| !bits::has(row, t)) {
                if terminals[t as usize].rank() > rank {
                    bits::insert(&mut conflicts, t);
                }
            }
            // Anything can come after an ignored lexeme, and an ignored one after anything.
            let mut next = vec![0; width];
            for t in bits::iter(&matched) {
                if terminals[t as usize].ignored {
                    next.fill(u64::MAX);
                }
                bits::unite(&mut next, &follow[t as usize]);
            }
            for (t, _) in terminals.iter().enumerate().filter(|(_, t)| t.ignored) {
                bits::insert(&mut next, t as u32);
            }
            for (class, &to) in self.dfa.row(q as u32).iter().enumerate() {
                let starts = self.dfa.row(0)[class];
                if to != DEAD && starts != DEAD && bits::meets(&self.live[starts as usize], &next) {
                    bits::unite(&mut conflicts, &foreign[to as usize]);
                }
            }
        }
        conflicts
    }
}

/// Give each row the first colour whose rows it can share a lexer with.
fn colour(rows: &[Vec<u64>], conflicts: &[Vec<u64>]) -> Vec<u32> {
    // Whether a terminal of `theirs` that `mine` lacks makes a difference to row `mine`.
    let disturbs = |theirs: &[u64], mine: usize| {
        theirs.iter().zip(&rows[mine]).zip(&conflicts[mine]).any(|((t, m), c)| t & !m & c != 0)
    };
    let mut colours: Vec<u32> = Vec::with_capacity(rows.len());
    let mut members: Vec<(Vec<u64>, Vec<usize>)> = Vec::new();
    for row in 0..rows.len() {
        let fits = |(union, with): &(Vec<u64>, Vec<usize>)| {
            !disturbs(union, row) && with.iter().all(|&other| !disturbs(&rows[row], other))
        };
        let colour = members.iter().position(fits).unwrap_or_else(|| {
            members.push((vec![0; rows[row].len()], Vec::new()));
            members.len() - 1
        });
        bits::unite(&mut members[colour].0, &rows[row]);
        members[colour].1.push(row);
        colours.push(colour as u32);
    }
    colours
}

/// The lexers of all groups as one automaton with several starts.
#[derive(Debug)]
pub struct GroupedDfa {
    /// Byte to class, common to all groups.
    pub byte_class: [u8; 256],
    /// Number of classes.
    pub class_count: usize,
    /// `[state * class_count + class]` → state, or [`DEAD`].
    pub next: Vec<u32>,
    /// Candidates of each state; empty if it does not accept.
    pub candidates: Vec<Box<[TerminalId]>>,
    /// Start of each group's lexemes.
    pub starts: Vec<u32>,
    /// Group of each state.
    pub group: Vec<u32>,
}

impl GroupedDfa {
    /// Build the lexer of each group, candidates resolved by rank.
    ///
    /// # Errors
    /// [`LexerError`] of the first that cannot be built.
    pub fn build(terminals: &[Terminal], groups: &Groups, limits: &LexerLimits) -> Result<Self, LexerError> {
        let parts: Vec<LexerDfa> = groups
            .members
            .iter()
            .map(|members| LexerDfa::build(terminals, members, true, limits))
            .collect::<Result<_, _>>()?;
        let mut byte_class = [0u8; 256];
        let mut ids: FxHashMap<Vec<u8>, u8> = FxHashMap::default();
        let mut sample: Vec<u8> = Vec::new();
        for byte in 0..=255u8 {
            let key = parts.iter().map(|p| p.byte_class[byte as usize]).collect();
            let next = ids.len() as u8;
            byte_class[byte as usize] = *ids.entry(key).or_insert_with(|| {
                sample.push(byte);
                next
            });
        }
        let mut out = GroupedDfa {
            byte_class,
            class_count: sample.len(),
            next: Vec::new(),
            candidates: Vec::new(),
            starts: Vec::new(),
            group: Vec::new(),
        };
        for (group, part) in parts.iter().enumerate() {
            let offset = out.candidates.len() as u32;
            out.starts.push(offset);
            for q in 0..part.state_count() as u32 {
                out.next.extend(sample.iter().map(|&byte| part.step(q, byte).map_or(DEAD, |to| to + offset)));
                out.candidates.push(part.candidates(q).into());
                out.group.push(group as u32);
            }
        }
        Ok(out)
    }

    /// Number of states.
    pub fn state_count(&self) -> usize {
        self.candidates.len()
    }
}
