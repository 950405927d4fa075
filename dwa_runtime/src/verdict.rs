//! Reads stacks with a Parser DWA: which verdict classes hold.
//!
//! The automaton reads a stack from the top down and the verdicts of all transitions are united. Deep stacks are not read
//! to the bottom each time: every [`STRIDE`]th node, and every node where stacks meet, remembers the verdicts of
//! everything from there down for each automaton state it was entered in. A new node therefore costs at most [`STRIDE`]
//! transitions however deep the recursion is.

use crate::lr::{Local, Stack};
use crate::tables::NONE;
use std::sync::OnceLock;
use weighted_gss::Below;

/// Distance of remembering nodes on a straight stack.
const STRIDE: u32 = 16;

/// A Parser DWA: an artifact's, or one that is filled on demand.
pub(crate) trait Automaton: Copy {
    /// Read one LR state: unite the output's verdicts into `out`, return the next state or [`NONE`].
    fn step(self, state: u32, symbol: u32, out: &mut [u64]) -> u32;

    /// Sets the states and changes of this automaton apart, in what stacks remember, from those of others before it.
    fn generation(self) -> u16;
}

/// What a stack node remembers, by key: verdicts from there down in a state of the automaton, verdicts after a change, or
/// whether a terminal can be shifted. A list that only grows, so readers need no lock.
#[derive(Debug, Default)]
pub(crate) struct Memo(OnceLock<Box<MemoEntry>>);

#[derive(Debug)]
struct MemoEntry {
    key: u64,
    verdicts: Box<[u64]>,
    rest: Memo,
}

impl Drop for Memo {
    // A derived drop would recurse once per entry.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut entry) = next {
            next = entry.rest.0.take();
        }
    }
}

impl Memo {
    /// Reductions that go deeper than this are remembered: a pending lexeme would repeat them for every token of it.
    pub(crate) const DEEP: u32 = 64;
    /// Entries of a straight node that is not deep: it may outlive its matchers, and the bottom is near.
    const MOST: usize = 32;

    /// Verdicts from a node down, read in this state.
    fn below(generation: u16, state: u32) -> u64 {
        u64::from(generation) << 32 | u64::from(state)
    }

    /// Verdicts, as the automaton reads them from state `start`, after a change to the stacks that end in a node. None if
    /// the numbers are too large to be told apart.
    pub(crate) fn after(generation: u16, start: u32, change: u32) -> Option<u64> {
        let fits = start >> 23 == 0 && change >> 23 == 0;
        fits.then_some(1 << 63 | u64::from(generation) << 46 | u64::from(start) << 23 | u64::from(change))
    }

    /// 1 if a stack that ends in a node can shift the terminal, 0 if none can.
    pub(crate) fn can_shift(terminal: u32) -> u64 {
        1 << 62 | u64::from(terminal)
    }

    pub(crate) fn get(&self, key: u64) -> Option<&[u64]> {
        let mut memo = self;
        while let Some(entry) = memo.0.get() {
            if entry.key == key {
                return Some(&entry.verdicts);
            }
            memo = &entry.rest;
        }
        None
    }

    fn is_full(&self) -> bool {
        let entries = std::iter::successors(self.0.get(), |entry| entry.rest.0.get());
        entries.take(Self::MOST).count() == Self::MOST
    }

    pub(crate) fn insert(&self, key: u64, verdicts: &[u64]) {
        let mut memo = self;
        loop {
            let entry =
                memo.0.get_or_init(|| Box::new(MemoEntry { key, verdicts: verdicts.into(), rest: Memo::default() }));
            if entry.key == key {
                return;
            }
            memo = &entry.rest;
        }
    }
}

/// Reads stacks from one state of an automaton.
#[derive(Clone, Copy)]
pub(crate) struct Reader<A> {
    pub automaton: A,
    pub start: u32,
}

impl<A: Automaton> Reader<A> {
    /// Unite into `out` the verdicts of every stack of `top`.
    pub(crate) fn read(self, top: &Stack, out: &mut [u64]) {
        self.read_from(top, self.start, out);
    }

    /// As [`read`](Self::read), of `base` with the states of `local` above it.
    pub(crate) fn read_local(self, base: &Stack, local: &Local, out: &mut [u64]) {
        let mut state = self.start;
        for &symbol in local.iter().rev() {
            state = self.automaton.step(state, symbol, out);
            if state == NONE {
                return;
            }
        }
        self.read_from(base, state, out);
    }

    fn key(self, state: u32) -> u64 {
        Memo::below(self.automaton.generation(), state)
    }

    fn read_from(self, node: &Stack, state: u32, out: &mut [u64]) {
        let Some((node, state)) = self.straight(node, state, out) else { return };
        if let Some(verdicts) = node.memo().get(self.key(state)) {
            unite(out, verdicts);
            return;
        }
        self.fill(node, state, out);
    }

    /// Read down to the next remembering node, or to the end.
    fn straight<'a>(self, mut node: &'a Stack, mut state: u32, out: &mut [u64]) -> Option<(&'a Stack, u32)> {
        loop {
            if state == NONE {
                return None;
            }
            match node.only() {
                Some(below) if !node.depth().is_multiple_of(STRIDE) => {
                    state = self.automaton.step(state, node.symbol(), out);
                    node = below;
                }
                None if matches!(node.below(), Below::Pushed([])) => {
                    self.automaton.step(state, node.symbol(), out);
                    return None;
                }
                _ => return Some((node, state)),
            }
        }
    }

    fn enter<'a>(self, node: &'a Stack, state: u32, words: usize) -> Frame<'a> {
        let mut verdicts = vec![0; words];
        let (links, next) = match node.below() {
            Below::Pushed(preds) => (preds, self.automaton.step(state, node.symbol(), &mut verdicts)),
            Below::Union(members) => (members, state),
        };
        Frame { node, state, links, next, done: 0, verdicts }
    }

    /// Compute and remember the verdicts of a remembering node and of those below it that lack them, without recursion.
    fn fill(self, node: &Stack, state: u32, out: &mut [u64]) {
        let words = out.len();
        let mut frames = vec![self.enter(node, state, words)];
        while let Some(frame) = frames.last_mut() {
            if frame.next != NONE && frame.done < frame.links.len() {
                let below = &frame.links[frame.done];
                frame.done += 1;
                if let Some((node, state)) = self.straight(below, frame.next, &mut frame.verdicts) {
                    match node.memo().get(self.key(state)) {
                        Some(verdicts) => unite(&mut frame.verdicts, verdicts),
                        None => frames.push(self.enter(node, state, words)),
                    }
                }
                continue;
            }
            let node = frame.node;
            if node.only().is_none() || node.depth() > Memo::DEEP || !node.memo().is_full() {
                node.memo().insert(self.key(frame.state), &frame.verdicts);
            }
            let verdicts = std::mem::take(&mut frame.verdicts);
            frames.pop();
            match frames.last_mut() {
                Some(above) => unite(&mut above.verdicts, &verdicts),
                None => unite(out, &verdicts),
            }
        }
    }
}

/// A remembering node whose verdicts are being computed.
struct Frame<'a> {
    node: &'a Stack,
    state: u32,
    /// What is read next, in which state, and how many of it were read.
    links: &'a [Stack],
    next: u32,
    done: usize,
    verdicts: Vec<u64>,
}

pub(crate) fn unite(out: &mut [u64], verdicts: &[u64]) {
    for (o, v) in out.iter_mut().zip(verdicts) {
        *o |= v;
    }
}
