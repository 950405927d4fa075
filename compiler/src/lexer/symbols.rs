//! Tokens that are symbols of their own.
//!
//! A token terminal ([`Expr::Tokens`]) is matched by exactly one token, whatever that spells. For the lexer such a token is
//! one letter beside the bytes. Ids that the same terminals name are one letter, a *symbol*: so there are few, and each is
//! named by some terminal.

use super::groups::GroupedDfa;
use super::{DEAD, LexerError};
use crate::control;
use crate::grammar::ir::{Expr, Terminal, TerminalId};
use rustc_hash::FxHashMap;

/// Most symbols of a grammar.
const MAX_SYMBOLS: usize = 1 << 15;
/// Ids that stand for names where there is no vocabulary to resolve them.
const UNRESOLVED: u64 = 1 << 32;

/// The symbols of a grammar, numbered by their first id.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    /// Token ids of each symbol, as ascending ranges without their ends.
    pub ids: Vec<Vec<(u32, u32)>>,
    /// Terminals that each symbol matches, ascending.
    pub terminals: Vec<Vec<TerminalId>>,
}

/// Ascending ranges without their ends.
type Ranges = Vec<(u64, u64)>;

impl Symbols {
    /// The symbols of these terminals for a vocabulary of `size` ids; `None` if there is none, as when linting.
    ///
    /// # Errors
    /// [`LexerError`], if an id is out of range, a name was not resolved, or there are too many symbols.
    pub fn new(terminals: &[Terminal], size: Option<usize>) -> Result<Self, LexerError> {
        let mut sets: Vec<(TerminalId, Ranges)> = Vec::new();
        let mut names: FxHashMap<&str, u64> = FxHashMap::default();
        for (t, terminal) in terminals.iter().enumerate() {
            let Expr::Tokens { negated, ranges, names: own } = &*terminal.expr else { continue };
            if size.is_some() && !own.is_empty() {
                return Err(LexerError::UnresolvedToken { terminal: terminal.name.clone() });
            }
            let mut ids: Ranges = ranges.iter().map(|&(lo, hi)| (u64::from(lo), u64::from(hi) + 1)).collect();
            for name in own {
                let next = UNRESOLVED + names.len() as u64;
                let id = *names.entry(name).or_insert(next);
                ids.push((id, id + 1));
            }
            sets.push((t as TerminalId, id_set(terminal, *negated, ids, size.map_or(u64::MAX, |size| size as u64))?));
        }
        let mut ends: Vec<u64> = sets.iter().flat_map(|(_, set)| set.iter().flat_map(|&(lo, hi)| [lo, hi])).collect();
        ends.sort_unstable();
        ends.dedup();
        let mut symbols = Symbols::default();
        let mut known: FxHashMap<Vec<TerminalId>, usize> = FxHashMap::default();
        for pair in ends.windows(2) {
            control::check();
            let names = |(_, set): &&(TerminalId, Ranges)| {
                let after = set.partition_point(|&(lo, _)| lo <= pair[0]);
                after > 0 && pair[0] < set[after - 1].1
            };
            let naming: Vec<TerminalId> = sets.iter().filter(names).map(|(t, _)| *t).collect();
            if naming.is_empty() {
                continue;
            }
            let symbol = *known.entry(naming).or_insert_with_key(|naming| {
                symbols.terminals.push(naming.clone());
                symbols.ids.push(Vec::new());
                symbols.ids.len() - 1
            });
            if symbol == MAX_SYMBOLS {
                return Err(LexerError::TooManySymbols { limit: MAX_SYMBOLS });
            }
            symbols.ids[symbol].push((pair[0] as u32, pair[1] as u32));
        }
        Ok(symbols)
    }

    /// Number of symbols.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether no terminal names tokens.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

/// The ids that a terminal names, given those that it lists.
fn id_set(terminal: &Terminal, negated: bool, mut sorted: Ranges, size: u64) -> Result<Ranges, LexerError> {
    sorted.sort_unstable();
    if let Some(&(_, end)) = sorted.iter().find(|(_, end)| *end > size) {
        return Err(LexerError::TokenRange { terminal: terminal.name.clone(), id: end - 1, max: size - 1 });
    }
    let mut named: Ranges = Vec::new();
    for (lo, hi) in sorted {
        match named.last_mut() {
            Some(last) if lo <= last.1 => last.1 = hi.max(last.1),
            _ => named.push((lo, hi)),
        }
    }
    if negated {
        let begins = std::iter::once(0).chain(named.iter().map(|range| range.1));
        let ends = named.iter().map(|range| range.0).chain([size]);
        named = begins.zip(ends).filter(|(lo, hi)| lo < hi).collect();
    }
    match named.is_empty() {
        true => Err(LexerError::EmptyLanguage { terminal: terminal.name.clone() }),
        false => Ok(named),
    }
}

impl GroupedDfa {
    /// Give the automaton the symbols as further classes: from a group's start each leads to where its terminals are
    /// accepted, and nothing leads on.
    pub(super) fn add_symbols(&mut self, groups: &[Vec<TerminalId>], symbols: &Symbols) {
        if symbols.is_empty() {
            return;
        }
        let (bytes, classes) = (self.class_count, self.class_count + symbols.len());
        self.class_count = classes;
        self.next = self
            .next
            .chunks_exact(bytes)
            .flat_map(|row| row.iter().copied().chain(std::iter::repeat_n(DEAD, symbols.len())))
            .collect();
        let mut ends: FxHashMap<(usize, Vec<TerminalId>), u32> = FxHashMap::default();
        for (group, members) in groups.iter().enumerate() {
            for (symbol, terminals) in symbols.terminals.iter().enumerate() {
                let found: Vec<TerminalId> = terminals.iter().copied().filter(|t| members.contains(t)).collect();
                if found.is_empty() {
                    continue;
                }
                let next = self.cand.len() as u32;
                let end = *ends.entry((group, found)).or_insert_with_key(|(_, found)| {
                    self.next.extend(std::iter::repeat_n(DEAD, classes));
                    self.cand.push(self.cand_sets.len() as u32);
                    self.cand_sets.push(found.as_slice().into());
                    self.group.push(group as u32);
                    next
                });
                self.next[self.starts[group] as usize * classes + bytes + symbol] = end;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(negated: bool, ranges: &[(u32, u32)], names: &[&str]) -> Terminal {
        let names = names.iter().map(|name| name.to_string()).collect();
        Terminal::plain("t", Expr::Tokens { negated, ranges: ranges.into(), names })
    }

    fn symbols(sets: &[(bool, &[(u32, u32)])], size: Option<usize>) -> Result<Symbols, LexerError> {
        let terminals: Vec<_> = sets.iter().map(|(negated, ranges)| terminal(*negated, ranges, &[])).collect();
        Symbols::new(&terminals, size)
    }

    #[test]
    fn ids_named_by_the_same_terminals_are_one_symbol() {
        let found = symbols(&[(false, &[(3, 5), (1, 1)]), (true, &[(4, 8), (0, 1)])], Some(10)).unwrap();
        assert_eq!(found.ids, [vec![(1, 2), (4, 6)], vec![(2, 3), (9, 10)], vec![(3, 4)]]);
        assert_eq!(found.terminals, [vec![0], vec![1], vec![0, 1]]);
        assert_eq!(symbols(&[(true, &[])], Some(10)).unwrap().ids, [[(0, 10)]]);
        assert_eq!(symbols(&[(false, &[(7, 9), (2, 8), (10, 11)])], Some(20)).unwrap().ids, [[(2, 12)]]);
    }

    #[test]
    fn what_names_nothing_is_refused() {
        assert!(matches!(symbols(&[(true, &[(0, 9)])], Some(10)), Err(LexerError::EmptyLanguage { .. })));
        assert!(matches!(symbols(&[(false, &[])], Some(10)), Err(LexerError::EmptyLanguage { .. })));
        let error = symbols(&[(false, &[(0, 10)])], Some(10)).unwrap_err();
        assert!(matches!(error, LexerError::TokenRange { id: 10, max: 9, .. }));
        assert!(symbols(&[(false, &[(u32::MAX, u32::MAX)])], None).is_ok());
        let named = [terminal(false, &[], &["<a>"]), terminal(true, &[], &["<b>", "<a>"])];
        assert!(matches!(Symbols::new(&named, Some(9)), Err(LexerError::UnresolvedToken { .. })));
        assert_eq!(Symbols::new(&named, None).unwrap().terminals, [[1], [0]]);
    }
}
