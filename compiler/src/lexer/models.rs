//! States of the lexer that serve others as models: see [`Model`].

use super::groups::GroupedDfa;
use crate::bits;
use smallvec::SmallVec;

/// What the steps of a state without watchers depend on, besides its row.
pub(super) type Kind = (usize, bool, bool);

/// A step of a state inside the lexeme, and how many classes take it.
#[derive(Clone, Copy)]
pub(super) struct Distinct {
    pub step: u32,
    pub classes: u32,
}

/// The distinct ones.
pub(super) type Counts = SmallVec<[Distinct; 16]>;

impl Distinct {
    /// Count a class that takes a step.
    pub fn count(all: &mut Counts, step: u32) {
        match all.iter_mut().find(|d| d.step == step) {
            Some(known) => known.classes += 1,
            None => all.push(Distinct { step, classes: 1 }),
        }
    }
}

/// A state without watchers, for others that differ from it in a few classes: as the states inside of words, of which
/// there are many, do from those of the pattern that goes on where the words do not.
pub(super) struct Model {
    pub x: u32,
    pub q: u32,
    pub kind: Kind,
    pub inside: Counts,
}

/// The models that served last first.
#[derive(Default)]
pub(super) struct Models {
    recent: Vec<Model>,
}

impl Models {
    /// How many are kept, and in how many classes a state may differ from one.
    const KEPT: usize = 32;
    const MOST: u32 = 8;

    /// One that serves a state, with the classes in which their rows differ.
    pub fn find(&mut self, dfa: &GroupedDfa, q: u32, kind: Kind) -> Option<(&Model, bits::Places)> {
        let row = dfa.row(q);
        let serves = |m: &Model| m.kind == kind && bits::differ_at_most(dfa.row(m.q), row, Self::MOST);
        let at = self.recent.iter().position(serves)?;
        self.recent[..=at].rotate_right(1);
        let model = self.recent.first()?;
        Some((model, bits::differing(dfa.row(model.q), row)))
    }

    pub fn add(&mut self, model: Model) {
        self.recent.truncate(Self::KEPT - 1);
        self.recent.insert(0, model);
    }
}
