//! Advances branches by bytes: the watched lexer, and GLR steps for what it emits.

use crate::lr::{Lr, Stack, Tops};
use crate::tables::{NONE, Step};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// Lexer state and the stacks that go with it.
#[derive(Debug, Clone)]
pub(crate) struct Branch {
    pub lexer: u32,
    pub tops: Tops,
}

/// Branches that are united by lexer state through a table, and while others are still to come.
const MANY: usize = 64;

/// All branches of an output: nearly always one.
pub(crate) type Branches = SmallVec<[Branch; 1]>;

impl Lr<'_> {
    /// The branches after `bytes`, before the mask rule; empty if none survives.
    pub(crate) fn advance(self, branches: &Branches, bytes: &[u8]) -> Branches {
        let mut now = branches.clone();
        let mut next = Branches::new();
        for &byte in bytes {
            let mut most = MANY;
            for branch in now.drain(..) {
                self.step(branch, byte, &mut next);
                if next.len() > most {
                    unite(&mut next);
                    most = MANY.max(2 * next.len());
                }
            }
            if next.len() > 1 {
                unite(&mut next);
            }
            std::mem::swap(&mut now, &mut next);
            if now.is_empty() {
                break;
            }
        }
        now
    }

    fn step(self, mut branch: Branch, byte: u8, out: &mut Branches) {
        let entry = match self.tables.lexer_step(self.meta.classes, branch.lexer, byte) {
            Step::Dead => return,
            Step::To(state) => {
                branch.lexer = state;
                out.push(branch);
                return;
            }
            Step::Entry(entry) => entry,
        };
        for i in self.tables.entry_start.list(entry) {
            let mut tops = branch.tops.clone();
            for emit in [self.tables.entry_emit.get(i), self.tables.entry_emit2.get(i)] {
                if emit != NONE {
                    tops = self.change(tops, emit);
                }
            }
            if !tops.is_empty() {
                out.push(Branch { lexer: self.tables.entry_next.get(i), tops });
            }
        }
    }

    /// The stacks after a change.
    pub(crate) fn change(self, tops: Tops, change: u32) -> Tops {
        let change = self.tables.change(change);
        let mut tops = self.emit_set(tops, change.set);
        tops.retain(|top| self.tables.is_of(change.groups, top.symbol()));
        tops
    }

    /// The stacks after a lexeme that is any of the candidates of `set`.
    pub(crate) fn emit_set(self, tops: Tops, set: u32) -> Tops {
        let ignored = self.tables.set_ignored[set as usize] != 0;
        let mut terms = self.tables.set(set);
        match (ignored, terms.len()) {
            (true, 0) => tops,
            (false, 1) => terms.next().map_or_else(Tops::new, |only| self.shift(&tops, only)),
            _ => {
                let mut all: Vec<_> = terms.flat_map(|t| self.shift(&tops, t)).collect();
                if ignored {
                    all.extend(tops);
                }
                weighted_gss::merge(&mut all);
                Tops::from_vec(all)
            }
        }
    }

    /// Drop the stacks that fail the mask rule: their pending lexeme cannot become anything they could shift.
    pub(crate) fn retain_viable(self, branches: &mut Branches) {
        branches.retain(|branch| {
            let live = self.tables.lexer_live.get(branch.lexer as usize);
            if live != NONE && self.tables.set_ignored[live as usize] == 0 {
                branch.tops.retain(|top| self.tables.set(live).any(|t| self.can_shift(std::slice::from_ref(top), t)));
            }
            !branch.tops.is_empty()
        });
    }

    /// Whether the output so far is a sentence. Watchers do not matter: no longer match can come.
    pub(crate) fn is_accepting(self, branches: &Branches) -> bool {
        let end = self.meta.terminals;
        branches.iter().any(|branch| {
            let cand = self.tables.lexer_cand.get(branch.lexer as usize);
            if self.tables.lexer_live.get(branch.lexer as usize) == NONE {
                self.can_shift(&branch.tops, end)
            } else if cand == NONE {
                false
            } else {
                self.can_shift(&self.emit_set(branch.tops.clone(), cand), end)
            }
        })
    }
}

/// Merge branches of one lexer state, keeping the order of first appearance.
fn unite(branches: &mut Branches) {
    if branches.len() > MANY {
        return unite_many(branches);
    }
    let mut i = 0;
    while i < branches.len() {
        let mut j = i + 1;
        while j < branches.len() {
            if branches[j].lexer == branches[i].lexer {
                let other = branches.remove(j);
                let mut tops = std::mem::take(&mut branches[i].tops).into_vec();
                tops.extend(other.tops.iter().map(Arc::clone));
                weighted_gss::merge(&mut tops);
                branches[i].tops = Tops::from_vec(tops);
            } else {
                j += 1;
            }
        }
        i += 1;
    }
}

/// As [`unite`], in time linear in the branches. Only tables made by hand have so many.
fn unite_many(branches: &mut Branches) {
    let mut place: FxHashMap<u32, usize> = FxHashMap::default();
    let mut united: Vec<(u32, Vec<Stack>)> = Vec::new();
    for branch in branches.drain(..) {
        let i = *place.entry(branch.lexer).or_insert(united.len());
        match united.get_mut(i) {
            Some((_, tops)) => tops.extend(branch.tops),
            None => united.push((branch.lexer, branch.tops.into_vec())),
        }
    }
    branches.extend(united.into_iter().map(|(lexer, mut tops)| {
        weighted_gss::merge(&mut tops);
        Branch { lexer, tops: Tops::from_vec(tops) }
    }));
}
