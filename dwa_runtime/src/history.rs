//! What a matcher took, and the branches before each step, so that steps can be undone: 16 bytes a step.
//!
//! Steps lie in chunks, linked from the latest back. Forks share chunks: a history says how many steps of its last chunk are
//! its own, and only a chunk that nobody shares is written to. So forking copies a pointer, and undoing costs at most the
//! chunks that are left behind.

use crate::commit::Branches;
use crate::lr::{Stack, Tops};
use std::sync::Arc;

/// Most steps of a chunk, and steps that a chunk grows by at most.
const CHUNK: usize = 4096;
const GROWTH: usize = 128;
/// Stands for text that was taken as bytes.
const BYTES: u32 = u32::MAX;

/// What one step took.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Taken<'a> {
    Token(u32),
    Bytes(&'a [u8]),
}

/// A token, or `BYTES`, and the first stack before it with its lexer state. There rarely are more: `Chunk::more` has those.
#[derive(Debug)]
struct Step {
    top: Stack,
    lexer: u32,
    taken: u32,
}

#[derive(Debug, Default)]
struct Chunk {
    /// The steps before these, and how many of that chunk's they are.
    before: Option<Arc<Chunk>>,
    kept_before: usize,
    steps: Vec<Step>,
    /// By step: further stacks before it, with their lexer states.
    more: Vec<(u32, u32, Stack)>,
    /// By step: the bytes it took.
    bytes: Vec<(u32, Box<[u8]>)>,
}

impl Chunk {
    fn truncate(&mut self, kept: usize) {
        self.steps.truncate(kept);
        self.more.truncate(self.more.partition_point(|(step, ..)| (*step as usize) < kept));
        self.bytes.truncate(self.bytes.partition_point(|(step, _)| (*step as usize) < kept));
    }

    fn push(&mut self, mut before: Branches, taken: Taken<'_>) {
        let step = self.steps.len() as u32;
        let token = match taken {
            Taken::Token(id) => id,
            Taken::Bytes(bytes) => {
                self.bytes.push((step, bytes.into()));
                BYTES
            }
        };
        if self.steps.len() == self.steps.capacity() {
            self.steps.reserve_exact(self.steps.len().clamp(4, GROWTH));
        }
        for (lexer, tops) in before.drain() {
            for top in tops {
                if self.steps.len() == step as usize {
                    self.steps.push(Step { top, lexer, taken: token });
                } else {
                    self.more.push((step, lexer, top));
                }
            }
        }
    }

    fn branches(&self, step: usize) -> Branches {
        let Step { top, lexer, .. } = &self.steps[step];
        let (mut lexer, mut tops) = (*lexer, Tops::from_iter([Arc::clone(top)]));
        let mut branches = Branches::default();
        let from = self.more.partition_point(|(other, ..)| (*other as usize) < step);
        for (_, other, top) in self.more[from..].iter().take_while(|(other, ..)| *other as usize == step) {
            if *other != lexer {
                branches.add(std::mem::replace(&mut lexer, *other), std::mem::take(&mut tops));
            }
            tops.push(Arc::clone(top));
        }
        branches.add(lexer, tops);
        branches
    }

    fn taken(&self, step: usize) -> Taken<'_> {
        match self.steps[step].taken {
            BYTES => {
                let at = self.bytes.partition_point(|(other, _)| (*other as usize) < step);
                Taken::Bytes(&self.bytes[at].1)
            }
            id => Taken::Token(id),
        }
    }
}

impl Drop for Chunk {
    // A derived drop would recurse once per chunk, and forks may leave very many short ones.
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut chunk) = before.and_then(Arc::into_inner) {
            before = chunk.before.take();
        }
    }
}

/// The steps of a matcher.
#[derive(Debug, Default)]
pub(crate) struct History {
    last: Option<Arc<Chunk>>,
    /// Steps of the last chunk that are this history's.
    kept: usize,
    len: usize,
    /// An empty chunk for later.
    spare: Option<Arc<Chunk>>,
}

impl Clone for History {
    fn clone(&self) -> Self {
        History { last: self.last.clone(), kept: self.kept, len: self.len, spare: None }
    }
}

impl History {
    /// Steps taken.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Add a step, with the branches before it, which are not empty.
    pub(crate) fn push(&mut self, before: Branches, taken: Taken<'_>) {
        let room = self.last.as_mut().is_some_and(|last| self.kept < CHUNK && Arc::get_mut(last).is_some());
        if !room {
            let mut chunk = self.spare.take().unwrap_or_default();
            if let Some(chunk) = Arc::get_mut(&mut chunk) {
                chunk.before = self.last.take();
                chunk.kept_before = self.kept;
            }
            self.last = Some(chunk);
            self.kept = 0;
        }
        if let Some(chunk) = self.last.as_mut().and_then(Arc::get_mut) {
            // What others had beyond this history, who are gone.
            chunk.truncate(self.kept);
            chunk.push(before, taken);
            self.kept += 1;
            self.len += 1;
        }
    }

    /// Undo `steps`, from 1 to all, and return the branches before them.
    pub(crate) fn undo(&mut self, mut steps: usize) -> Option<Branches> {
        self.len -= steps;
        while steps > self.kept {
            steps -= self.kept;
            self.leave_chunk();
        }
        self.kept -= steps;
        let branches = self.last.as_ref().map(|chunk| chunk.branches(self.kept));
        if let Some(chunk) = self.last.as_mut().and_then(Arc::get_mut) {
            chunk.truncate(self.kept);
        }
        branches
    }

    /// Forget all steps.
    pub(crate) fn clear(&mut self) {
        while self.last.is_some() {
            self.leave_chunk();
        }
        self.len = 0;
    }

    /// Go back to the chunk before the last, which is kept for later if nobody shares it.
    fn leave_chunk(&mut self) {
        let Some(mut left) = self.last.take() else { return };
        self.kept = left.kept_before;
        match Arc::get_mut(&mut left) {
            None => self.last = left.before.clone(),
            Some(chunk) => {
                self.last = chunk.before.take();
                chunk.truncate(0);
                self.spare = Some(left);
            }
        }
    }

    /// What the steps took, latest first.
    pub(crate) fn taken(&self) -> impl Iterator<Item = Taken<'_>> {
        let mut at = self.last.as_ref().map(|chunk| (chunk, self.kept));
        std::iter::from_fn(move || {
            loop {
                let (chunk, kept) = at?;
                if let Some(step) = kept.checked_sub(1) {
                    at = Some((chunk, step));
                    return Some(chunk.taken(step));
                }
                at = chunk.before.as_ref().map(|before| (before, chunk.kept_before));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weighted_gss::Node;

    #[test]
    fn a_step_takes_16_bytes() {
        assert_eq!(size_of::<Step>(), 16);
    }

    /// Lexer states with their tops' symbols; a token, or bytes.
    type Plain = (Vec<(u32, Vec<u32>)>, Result<u32, Vec<u8>>);

    fn branches(plain: &[(u32, Vec<u32>)]) -> Branches {
        let mut branches = Branches::default();
        for (lexer, tops) in plain {
            branches.add(*lexer, tops.iter().map(|&symbol| Node::bottom(symbol)).collect());
        }
        branches
    }

    fn plain(branches: &Branches) -> Vec<(u32, Vec<u32>)> {
        branches.groups().iter().map(|(lexer, tops)| (*lexer, tops.iter().map(|top| top.symbol()).collect())).collect()
    }

    fn step() -> impl Strategy<Value = Plain> {
        let one = (0u32..9, prop::collection::vec(0u32..9, 1..=1)).prop_map(|one| vec![one]);
        let many = prop::collection::btree_map(0u32..9, prop::collection::vec(0u32..9, 1..4), 1..4);
        let before = prop_oneof![5 => one, 1 => many.prop_map(|many| many.into_iter().collect())];
        let taken = prop_oneof![5 => (0u32..9).prop_map(Ok), 1 => prop::collection::vec(0u8..9, 0..4).prop_map(Err)];
        (before, taken)
    }

    proptest! {
        /// Histories that fork equal lists that are copied.
        #[test]
        fn equals_a_list(
            ops in prop::collection::vec((0u8..8, step(), 0usize..4, 0usize..6000, 1usize..5000), 1..60),
        ) {
            let mut all: Vec<(History, Vec<Plain>)> = vec![Default::default()];
            for (op, step, which, back, times) in ops {
                let (which, count) = (which % all.len(), all.len());
                let (history, model) = &mut all[which];
                match op {
                    // Enough to fill chunks, now and then.
                    0..=3 => for _ in 0..if op == 0 { times } else { 1 } {
                        let taken = step.1.as_ref().map_or_else(|bytes| Taken::Bytes(bytes), |&id| Taken::Token(id));
                        history.push(branches(&step.0), taken);
                        model.push(step.clone());
                    },
                    4 | 5 if !model.is_empty() => {
                        let steps = 1 + (if op == 4 { back } else { back % 4 }) % model.len();
                        let before = history.undo(steps).map(|before| plain(&before));
                        let kept = model.len() - steps;
                        prop_assert_eq!(before, Some(model[kept].0.clone()));
                        model.truncate(kept);
                    }
                    6 if count < 4 => {
                        let fork = (history.clone(), model.clone());
                        all.push(fork);
                    }
                    7 if count > 1 && back % 2 == 0 => drop(all.swap_remove(which)),
                    7 => {
                        history.clear();
                        model.clear();
                    }
                    _ => {}
                }
                for (history, model) in &all {
                    prop_assert_eq!(history.len(), model.len());
                    let taken = history.taken().map(|taken| match taken {
                        Taken::Token(id) => Ok(id),
                        Taken::Bytes(bytes) => Err(bytes.to_vec()),
                    });
                    prop_assert!(taken.eq(model.iter().rev().map(|(_, taken)| taken.clone())));
                }
            }
        }
    }

    #[test]
    fn dropping_very_many_chunks_does_not_recurse() {
        let mut history = History::default();
        for _ in 0..200_000 {
            let fork = history.clone();
            history.push(branches(&[(1, vec![2])]), Taken::Token(3));
            drop(fork);
        }
        assert_eq!(history.len(), 200_000);
        drop(history);
    }
}
