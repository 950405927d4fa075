//! States of the lexer that serve others as models: see [`Model`].

use super::groups::GroupedDfa;
use crate::bits;

/// What the steps of a state without watchers depend on, besides its row.
pub(super) type Kind = (usize, bool, bool);

/// A step of a state, and how many classes take it.
#[derive(Clone, Copy)]
pub(super) struct Distinct {
    pub step: u32,
    pub classes: u32,
    pub may_end: bool,
}

impl Distinct {
    /// Count a class that takes a step.
    pub fn count(all: &mut Vec<Distinct>, step: u32, may_end: bool) {
        match all.iter_mut().find(|d| d.step == step) {
            Some(known) => known.classes += 1,
            None => all.push(Distinct { step, classes: 1, may_end }),
        }
    }
}

/// A state without watchers, for others that differ from it in a few classes: as the states inside of words, of which
/// there are many, do from those of the pattern that goes on where the words do not.
pub(super) struct Model {
    pub x: u32,
    pub q: u32,
    pub kind: Kind,
    pub distinct: Vec<Distinct>,
}

/// The models that served last first.
#[derive(Default)]
pub(super) struct Models {
    recent: Vec<Model>,
}

impl Models {
    /// How many are kept, and in how many classes a state may differ from one.
    const KEPT: usize = 32;
    const MOST: usize = 8;

    /// One that serves a state.
    pub fn find(&mut self, dfa: &GroupedDfa, q: u32, kind: Kind) -> Option<&Model> {
        let row = dfa.row(q);
        let serves = |m: &Model| m.kind == kind && bits::differences(dfa.row(m.q), row, Self::MOST) <= Self::MOST;
        let at = self.recent.iter().position(serves)?;
        self.recent[..=at].rotate_right(1);
        self.recent.first()
    }

    pub fn add(&mut self, model: Model) {
        self.recent.truncate(Self::KEPT - 1);
        self.recent.insert(0, model);
    }
}
