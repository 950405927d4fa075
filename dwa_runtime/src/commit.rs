//! Advances branches by bytes: the watched lexer, and GLR steps for what it emits.

use crate::lr::{EMIT, Lr, Tops};
use crate::tables::{NONE, START, Step};
use crate::verdict::Memo;
use std::sync::Arc;
use weighted_gss::Weighted;

/// The branches of an output, nearly always one: stacks, weighed by the state that the lexer is in. What a stack can still
/// become depends on its lexer state alone, so stacks of one state are united and others stay apart.
pub(crate) type Branches = Weighted<u32, Memo, u32>;

/// Branches that are united while others are still to come.
const MANY: usize = 64;

impl Lr<'_> {
    /// The branches of the empty output.
    pub(crate) fn initial(self) -> Branches {
        Branches::of(START, Tops::from_iter([Arc::clone(self.stacks.bottom())]))
    }

    /// The branches after `bytes`, before the mask rule; empty if none survives.
    pub(crate) fn advance(self, branches: &Branches, bytes: &[u8]) -> Branches {
        let mut now = branches.clone();
        let mut next = Branches::default();
        for &byte in bytes {
            let mut most = MANY;
            for (lexer, tops) in now.drain() {
                self.step(lexer, tops, byte, &mut next);
                if next.groups().len() > most {
                    next.merge();
                    most = MANY.max(2 * next.groups().len());
                }
            }
            next.merge();
            std::mem::swap(&mut now, &mut next);
            if now.is_empty() {
                break;
            }
        }
        now
    }

    /// The branches after a token, before the mask rule: by its bytes, and as the symbol that it can be read as.
    pub(crate) fn advance_token(self, branches: &Branches, bytes: &[u8], symbol: Option<u32>) -> Branches {
        let mut next = if bytes.is_empty() { Branches::default() } else { self.advance(branches, bytes) };
        if let Some(symbol) = symbol {
            self.advance_symbol(branches, symbol, &mut next);
        }
        next
    }

    fn advance_symbol(self, branches: &Branches, symbol: u32, out: &mut Branches) {
        for (lexer, tops) in branches.groups() {
            self.follow(*lexer, self.tables.symbol_step(self.meta, *lexer, symbol), tops.clone(), out);
        }
        out.merge();
    }

    /// Whether some symbol can come next.
    pub(crate) fn allows_symbol(self, branches: &Branches) -> bool {
        (0..self.meta.symbols).any(|symbol| {
            let next = self.advance_token(branches, &[], Some(symbol));
            next.tops().next().is_some()
        })
    }

    fn step(self, lexer: u32, tops: Tops, byte: u8, out: &mut Branches) {
        self.follow(lexer, self.tables.lexer_step(self.meta, lexer, byte), tops, out);
    }

    fn follow(self, lexer: u32, step: Step, tops: Tops, out: &mut Branches) {
        let entry = match step {
            Step::Dead => return,
            Step::To(state) => return out.add(state, tops),
            Step::Entry(entry) => entry,
        };
        for i in self.tables.entry_start.list(entry) {
            let mut tops = tops.clone();
            for emit in [self.tables.entry_emit.get(i), self.tables.entry_emit2.get(i)] {
                if emit != NONE {
                    tops = self.change(tops, emit);
                }
            }
            out.add(self.tables.after(lexer, self.tables.entry_next.get(i)), tops);
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
            _ => self.stacks.step(&tops, EMIT | set, || {
                let mut all: Tops = terms.flat_map(|t| self.shift(&tops, t)).collect();
                if ignored {
                    all.extend(tops.iter().map(Arc::clone));
                }
                weighted_gss::merge(&mut all);
                all
            }),
        }
    }

    /// Drop the stacks that fail the mask rule: their pending lexeme cannot become anything they could shift.
    pub(crate) fn retain_viable(self, branches: &mut Branches) {
        branches.retain(|&lexer, top| {
            let live = self.tables.live(lexer);
            live == NONE
                || self.tables.set_ignored[live as usize] != 0
                || self.tables.set(live).any(|t| self.can_shift(std::slice::from_ref(top), t))
        });
    }

    /// Whether the output so far is a sentence. Watchers do not matter: no longer match can come.
    pub(crate) fn is_accepting(self, branches: &Branches) -> bool {
        let end = self.meta.terminals;
        branches.groups().iter().any(|(lexer, tops)| {
            let cand = self.tables.cand(*lexer);
            if self.tables.live(*lexer) == NONE {
                self.can_shift(tops, end)
            } else if cand == NONE {
                false
            } else {
                self.can_shift(&self.emit_set(tops.clone(), cand), end)
            }
        })
    }
}
