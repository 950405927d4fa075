//! How much lowering one document may take.
//!
//! Steps are counted, not seconds: what is refused, and what stays undecided, is the same on any machine. A step is something
//! like one part of a set or of a derivative, so that all of them take a second or two.

/// Steps that are left for one document.
#[derive(Debug)]
pub(super) struct Effort(u64);

/// For one document, and of these for one question about a language.
pub(super) const ALL: u64 = 16_000_000;
const ONE: u64 = 1_500_000;

impl Default for Effort {
    fn default() -> Self {
        Effort(ALL)
    }
}

impl Effort {
    /// Take a step with so many parts; none if that is too much.
    pub(super) fn spend(&mut self, parts: usize) -> Option<()> {
        self.0 = self.0.checked_sub(1 + parts as u64)?;
        Some(())
    }

    /// Note what was done.
    pub(super) fn charge(&mut self, parts: usize) {
        self.0 = self.0.saturating_sub(1 + parts as u64);
    }

    /// Do something that takes no more than one question may; none if that does not decide it.
    pub(super) fn ask<T>(&mut self, question: impl FnOnce(&mut Effort) -> Option<T>) -> Option<T> {
        let all = self.0.min(ONE);
        let mut own = Effort(all);
        let answer = question(&mut own);
        // An undecided question took what it may.
        self.0 -= if answer.is_some() { all - own.0 } else { all };
        answer
    }
}
