//! Lexer states that stand for many: far states, and the ids of what they stand for.
//!
//! A bounded repeat of many copies is counted. As long as more copies are left than any token completes, all lexer states
//! that differ in their number alone do the same under every token: the tables have one, a *far* state. Ids from the number
//! of states on, `far_first` says from where for each far state, are such a state with the values of its counters: digits of
//! a mixed radix, the first counter's first, each a number of copies left beyond its chain's reach. An id leads to another
//! one by the far state's own step, with the values brought along ([`Tables::after`]): a counter that the next far state has
//! as well goes down by as many as the layers are apart, modulo 4, and one that it has anew is at its most. Below zero the
//! state is the one that `far_down` names.

use crate::tables::Tables;
use smallvec::SmallVec;

/// Chain, layer, and value of each counter of a far state.
type Values = SmallVec<[(u32, u8, u32); 4]>;

impl Tables {
    /// The state of the tables that `x`, a state or an id, behaves as.
    #[inline]
    pub(crate) fn lexer_state(&self, x: u32) -> u32 {
        if (x as usize) < self.lexer_row.len() { x } else { self.far_state.get(self.far_of(x)) }
    }

    /// The live set of a state or id.
    #[inline]
    pub(crate) fn live(&self, x: u32) -> u32 {
        self.lexer_live.get(self.lexer_state(x) as usize)
    }

    /// The candidates of a state or id.
    #[inline]
    pub(crate) fn cand(&self, x: u32) -> u32 {
        self.lexer_cand.get(self.lexer_state(x) as usize)
    }

    /// What a step from `x` leads to where the tables say `next`.
    #[inline]
    pub(crate) fn after(&self, x: u32, next: u32) -> u32 {
        let states = self.lexer_row.len();
        if (x as usize) < states || (next as usize) < states { next } else { self.bring_along(x, next) }
    }

    /// The far state of an id.
    #[cold]
    fn far_of(&self, id: u32) -> usize {
        self.far_first.partition_point(|&first| first <= id).saturating_sub(1)
    }

    /// The counters of a far state that has this id.
    fn values(&self, far: usize, id: u32) -> Values {
        let mut rest = id - self.far_first[far];
        let value = |i: usize| {
            let (chain, length) = (self.far_chain.get(i), self.chain_length[self.far_chain.get(i) as usize]);
            let value = rest % length;
            rest /= length;
            (chain, self.far_layer[i], value)
        };
        self.far_counters.list(far as u32).map(value).collect()
    }

    #[cold]
    fn bring_along(&self, x: u32, mut next: u32) -> u32 {
        let before = self.values(self.far_of(x), x);
        'far: while next as usize >= self.lexer_row.len() {
            let far = self.far_of(next);
            let (mut id, mut digit) = (self.far_first[far], 1);
            for i in self.far_counters.list(far as u32) {
                let chain = self.far_chain.get(i);
                let length = self.chain_length[chain as usize];
                let value = match before.iter().find(|(other, ..)| *other == chain) {
                    None => length - 1,
                    Some(&(_, layer, value)) => {
                        match value.checked_sub(u32::from(self.far_layer[i].wrapping_sub(layer) & 3)) {
                            Some(value) => value,
                            None => {
                                // One counter less, and so on to the end.
                                next = self.far_down[i];
                                continue 'far;
                            }
                        }
                    }
                };
                id += value * digit;
                digit *= length;
            }
            return id;
        }
        next
    }
}
