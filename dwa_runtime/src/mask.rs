//! Masks: branches → bitmask.
//!
//! For each live branch: read what holds on the stacks of each group of the lexer state's recipe, and compose the row that
//! this makes, or find it in the cache. A [`Schedule`] says where recipes and automaton come from: an artifact that has all of
//! them ([`crate::rows::Whole`]), or tables that are filled on demand ([`crate::supply::Filled`]).

use crate::bitmask::{Tokens, Union};
use crate::commit::Branches;
use crate::lr::{Linear, Lr, Tops};
use crate::rows::Cache;
use crate::tables::{ALWAYS, END_VERDICT};
use crate::verdict::{Automaton, Memo, Reader};
use crate::vocab::Vocab;
use smallvec::SmallVec;
use std::sync::Arc;

/// What an emission does to stacks before a group's verdicts are read.
#[derive(Clone, Copy)]
pub(crate) struct Change<'c> {
    /// Its number.
    pub id: u32,
    /// Candidates, one of which is shifted.
    pub set: u32,
    /// Lexer groups of which the LR state on top then must be; `None` for any.
    pub groups: Option<&'c [u64]>,
}

/// Where recipes, and the automaton that decides them, come from.
pub(crate) trait Schedule<'c>: Automaton {
    /// A group of a recipe.
    type Group: Copy;

    /// Groups of a lexer state's recipe.
    fn groups(self, x: u32) -> impl Iterator<Item = Self::Group>;
    /// The change that the group's stacks go through first.
    fn change(self, group: Self::Group) -> Option<Change<'c>>;
    /// State in which the automaton starts reading them.
    fn start(self, group: Self::Group) -> u32;
    /// Verdicts that matter.
    fn relevant(self, group: Self::Group) -> &'c [u64];
    /// Whether the output is complete if the stacks accept the end.
    fn ends(self, group: Self::Group) -> bool;
    /// Unite the group's pieces into `row`.
    fn unite_pieces(self, group: Self::Group, verdicts: &[u64], row: &mut Union<'_>);
    /// Unite the group's own tokens into `row`.
    fn unite_own(self, group: Self::Group, verdicts: &[u64], row: &mut [u32]);
    /// Take out of `row` what the recipe of `x` has not of the pieces of all groups.
    fn drop_from(self, x: u32, row: &mut [u32]);
    /// Rows composed so far.
    fn composed(self) -> &'c Cache;
}

/// Masks of one compiled grammar.
#[derive(Clone, Copy)]
pub(crate) struct Masks<'c, S> {
    pub lr: Lr<'c>,
    pub vocab: &'c Vocab,
    pub schedule: S,
}

impl<'c, S: Schedule<'c>> Masks<'c, S> {
    /// Write to `out` the tokens that some branch allows.
    pub(crate) fn mask(self, branches: &Branches, out: &mut [u32]) {
        for (i, (lexer, tops)) in branches.groups().iter().enumerate() {
            self.branch_mask(self.lr.tables.lexer_state(*lexer), tops, out, i > 0);
        }
    }

    /// Write to `out`, or unite into it, the tokens that a branch allows.
    fn branch_mask(self, lexer: u32, tops: &Tops, out: &mut [u32], unite: bool) {
        let composed = self.schedule.composed();
        let place = match &tops[..] {
            // What is kept lives as long as the grammar.
            [top] if top.is_kept() => Some((Arc::as_ptr(top) as usize, lexer)),
            _ => None,
        };
        if place.is_some_and(|place| composed.at(place, |row| write(row, out, unite))) {
            return;
        }
        let mut key: SmallVec<[u64; 40]> = SmallVec::new();
        key.push(u64::from(lexer));
        for group in self.schedule.groups(lexer) {
            let relevant = self.schedule.relevant(group);
            let at = key.len();
            key.resize(at + relevant.len(), 0);
            let verdicts = &mut key[at..];
            let reader = Reader { automaton: self.schedule, start: self.schedule.start(group) };
            self.verdicts_after(tops, self.schedule.change(group), reader, verdicts);
            verdicts.iter_mut().zip(relevant).for_each(|(v, r)| *v &= r);
        }
        let row = self.apply(&key, out, unite);
        if let (Some(place), Some(row)) = (place, row) {
            composed.insert_at(place, row);
        }
    }

    /// Write to `verdicts`, which are empty, what holds on the stacks that result from a change, or on `tops` as they are.
    fn verdicts_after(self, tops: &Tops, change: Option<Change<'_>>, reader: Reader<S>, verdicts: &mut [u64]) {
        let ([top], Some(change)) = (&tops[..], change) else {
            return self.read_after(tops, change, reader, verdicts, &mut 0);
        };
        let key = match top.depth() > Memo::DEEP {
            true => Memo::after(self.schedule.generation(), reader.start, change.id),
            false => None,
        };
        if let Some(known) = key.and_then(|key| top.memo().get(key)) {
            return verdicts.copy_from_slice(known);
        }
        let mut reached = top.depth();
        self.read_after(tops, Some(change), reader, verdicts, &mut reached);
        if let Some(key) = key
            && reached + Memo::DEEP < top.depth()
        {
            top.memo().insert(key, verdicts);
        }
    }

    /// As [`verdicts_after`](Self::verdicts_after), without remembering; `reached` is lowered to the depth gone down to.
    fn read_after(
        self,
        tops: &Tops,
        change: Option<Change<'_>>,
        reader: Reader<S>,
        verdicts: &mut [u64],
        reached: &mut u32,
    ) {
        let (lr, t) = (self.lr, self.lr.tables);
        let mut read = |stacks: &Tops| {
            for top in stacks {
                reader.read(top, verdicts);
                verdicts[0] |= 1 << ALWAYS;
            }
        };
        let Some(change) = change else { return read(tops) };
        if t.set_ignored[change.set as usize] != 0 {
            read(tops);
        }
        for terminal in t.set(change.set) {
            if let [top] = &tops[..] {
                let mut base_depth = 0;
                let step = lr.shift_linear_to(top, terminal, &mut base_depth);
                *reached = base_depth.min(*reached);
                match step {
                    Linear::Refused | Linear::Accepted => continue,
                    Linear::Shifted(base, local) => {
                        if local.last().is_some_and(|&state| t.is_of(change.groups, state)) {
                            reader.read_local(base, &local, verdicts);
                            verdicts[0] |= 1 << ALWAYS;
                        }
                        continue;
                    }
                    Linear::Forks => {}
                }
            }
            for top in lr.shift(tops, terminal).iter().filter(|top| t.is_of(change.groups, top.symbol())) {
                reader.read(top, verdicts);
                verdicts[0] |= 1 << ALWAYS;
            }
        }
    }

    /// Write the row of a lexer state to `out`, or unite it into what is there; return it if it is cached. `key` is the
    /// state followed by the verdicts of its groups in order, each restricted to what is relevant to the group.
    fn apply(self, key: &[u64], out: &mut [u32], unite: bool) -> Option<Arc<[u32]>> {
        let composed = self.schedule.composed();
        if let Some(row) = composed.get(key) {
            write(&row, out, unite);
            return Some(row);
        }
        if unite {
            let mut row = vec![0u32; out.len()];
            self.compose(key, Union::new(&mut row));
            Tokens::Dense(&row).or_into(out);
            composed.insert(key, &row)
        } else {
            self.compose(key, Union::new(out));
            composed.insert(key, out)
        }
    }

    /// Compose a row.
    fn compose(self, key: &[u64], mut union: Union<'_>) {
        let (x, verdicts) = (key[0] as u32, &key[1..]);
        let each = |act: &mut dyn FnMut(S::Group, &[u64])| {
            let mut rest = verdicts;
            for group in self.schedule.groups(x) {
                let (own, others) = rest.split_at(self.schedule.relevant(group).len());
                act(group, own);
                rest = others;
            }
        };
        each(&mut |group, verdicts| self.schedule.unite_pieces(group, verdicts, &mut union));
        let row = union.row();
        self.schedule.drop_from(x, row);
        let mut complete = false;
        each(&mut |group, verdicts| {
            self.schedule.unite_own(group, verdicts, row);
            complete |= self.schedule.ends(group) && holds(verdicts, END_VERDICT);
        });
        if complete {
            for &id in self.vocab.eos_ids() {
                row[id as usize / 32] |= 1 << (id % 32);
            }
        }
    }
}

/// Write a row to `out`, or unite it into what is there.
#[inline]
fn write(row: &[u32], out: &mut [u32], unite: bool) {
    if unite {
        Tokens::Dense(row).or_into(out);
    } else {
        out.copy_from_slice(row);
    }
}

/// Whether a verdict is in a set.
pub(crate) fn holds(verdicts: &[u64], v: u32) -> bool {
    verdicts[v as usize / 64] >> (v % 64) & 1 == 1
}
