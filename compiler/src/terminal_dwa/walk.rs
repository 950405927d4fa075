//! Walks the vocabulary trie through the watched lexer.
//!
//! The trie is in preorder, so a walk is one loop with a stack of branch lists by depth. A subtree whose bytes all keep the
//! lexer in one state is recorded as an interval without being entered: that is most of the vocabulary inside strings,
//! comments and identifiers.

use super::horizon::Horizons;
use super::outcomes::{Outcomes, ROOT};
use crate::lexer::{DEAD_ENTRY, NONE, WatchedLexer};
use crate::vocab::{ByteSet, Trie, utf8};
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::sync::Arc;

/// Tokens `lo..hi` (token indices) of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Segment {
    /// First token.
    pub lo: u32,
    /// Past the last token.
    pub hi: u32,
    /// Class.
    pub class: u32,
}

/// Where a branch of a token stands.
///
/// Which group the next lexeme is of after an emission depends on the stack, and often it does not matter: `)` is cut the
/// same way in all. So the branch carries the lexer states of all groups side by side, and the emission that is `pending`
/// gets its groups when they part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct At {
    /// Lexer states, ascending; more than one only after a pending emission.
    pub states: SmallVec<[u32; 2]>,
    /// First change of the stacks, or `NONE`.
    pub first: u32,
    /// Sequence node after it.
    pub node: u32,
    /// Set emitted after that, of which the groups are still open, or `NONE`.
    pub pending: u32,
    /// Set emitted last, ignored or not, or `NONE`.
    pub last: u32,
}

pub(super) type Branches = SmallVec<[At; 1]>;

/// Class of a token in each group (first emission) in which it has outcomes, sorted by group.
pub type Classes = SmallVec<[(u32, u32); 1]>;

/// Whether every character beyond ASCII leads from `x` back to it, given what each byte leads to.
pub(super) fn stays_on_characters(x: u32, step: impl Fn(u32, u8) -> Option<u32>) -> bool {
    let mut states: Vec<Option<u32>> = vec![None; utf8::STATES as usize];
    states[utf8::BOUNDARY as usize] = Some(x);
    let mut pending = vec![utf8::BOUNDARY];
    while let Some(from) = pending.pop() {
        let Some(at) = states[from as usize] else { continue };
        for byte in 0x80..=255u8 {
            let Some(to) = utf8::step(from, byte) else { continue };
            let Some(next) = step(at, byte) else { return false };
            match states[to as usize] {
                None => {
                    states[to as usize] = Some(next);
                    pending.push(to);
                }
                Some(known) if known != next => return false,
                Some(_) => {}
            }
        }
    }
    true
}

/// What a walk starts from: emissions extend the sequence from the start, or the first one selects the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    Boundary,
    Lexeme,
}

/// What a branch's class depends on besides its lexer state.
type Place = (From, [u32; 4]);

#[derive(Debug)]
pub(super) struct Walker {
    pub lexer: Arc<WatchedLexer>,
    pub trie: Arc<Trie>,
    pub outcomes: Outcomes,
    horizons: OnceCell<Horizons>,
    /// What the last token that ended in each lexer state came from, and its group and class: neighbours often agree.
    recent: Vec<(Place, (u32, u32))>,
    /// Branches by depth: room for the next walk.
    levels: Vec<Branches>,
    /// Bytes of each class.
    class_bytes: Vec<ByteSet>,
    /// Bytes under which each state stays as it is, emitting nothing; made for the states that are asked for.
    bytes_staying: Vec<OnceCell<ByteSet>>,
    /// Whether every character beyond ASCII leads back to each state, with the same pending on the way.
    stays_on_characters: Vec<OnceCell<bool>>,
}

impl Walker {
    pub fn new(lexer: Arc<WatchedLexer>, trie: Arc<Trie>, outcomes: Outcomes) -> Self {
        let mut class_bytes = vec![[0; 4]; lexer.classes];
        for b in 0..=255u8 {
            class_bytes[lexer.byte_class[b as usize] as usize][b as usize / 64] |= 1 << (b % 64);
        }
        let recent = vec![((From::Boundary, [NONE; 4]), (NONE, NONE)); lexer.state_count()];
        let bytes_staying = vec![OnceCell::new(); lexer.state_count()];
        let stays_on_characters = vec![OnceCell::new(); lexer.state_count()];
        let horizons = OnceCell::new();
        Walker {
            lexer,
            trie,
            outcomes,
            horizons,
            recent,
            levels: Vec::new(),
            class_bytes,
            bytes_staying,
            stays_on_characters,
        }
    }

    /// Byte classes under which a state stays as it is and emits nothing.
    pub fn classes_staying(&self, x: u32) -> impl Iterator<Item = usize> + '_ {
        let steps = &self.lexer.steps[x as usize * self.lexer.classes..][..self.lexer.byte_classes()];
        let stays = move |entry: u32| match &self.lexer.entries[entry as usize][..] {
            [only] => only.emit == [NONE; 2] && only.next == x,
            _ => false,
        };
        (0..steps.len()).filter(move |&class| stays(steps[class]))
    }

    /// Whether a state stays as it is under a byte, emitting nothing.
    fn stays_under(&self, x: u32, byte: u8) -> bool {
        matches!(&self.lexer.entry(x, byte)[..], [only] if only.emit == [NONE; 2] && only.next == x)
    }

    fn bytes_staying(&self, x: u32) -> &ByteSet {
        self.bytes_staying[x as usize].get_or_init(|| {
            let mut bytes = [0; 4];
            for class in self.classes_staying(x) {
                bytes.iter_mut().zip(self.class_bytes[class]).for_each(|(a, b)| *a |= b);
            }
            bytes
        })
    }

    /// Whether every character beyond ASCII, byte by byte, emits nothing, leaves the same pending, and ends in `x` again.
    fn stays_on_characters(&self, x: u32) -> bool {
        let lexer = &self.lexer;
        stays_on_characters(x, |at, byte| match &lexer.entry(at, byte)[..] {
            [only] if only.emit == [NONE; 2] && lexer.live[only.next as usize] == lexer.live[x as usize] => {
                Some(only.next)
            }
            _ => None,
        })
    }

    /// Made when two states are compared for the first time.
    pub fn horizons(&self) -> &Horizons {
        self.horizons.get_or_init(|| Horizons::new(&self.lexer, self.trie.height[0]))
    }

    pub fn start(x: u32) -> Branches {
        let states = SmallVec::from_elem(x, 1);
        Branches::from_iter([At { states, first: NONE, node: ROOT, pending: NONE, last: NONE }])
    }

    /// Fix the groups of the pending emission to those of `states`.
    fn settle(&mut self, from: From, at: &At, states: &[u32]) -> (u32, u32) {
        if at.pending == NONE {
            return (at.first, at.node);
        }
        let mut groups: SmallVec<[u32; 4]> = states.iter().map(|&x| self.lexer.group[x as usize]).collect();
        groups.sort_unstable();
        groups.dedup();
        self.push(from, (at.first, at.node), at.pending, &groups)
    }

    /// Add an emission with known groups.
    fn push(&mut self, from: From, (first, node): (u32, u32), set: u32, groups: &[u32]) -> (u32, u32) {
        if from == From::Lexeme && first == NONE {
            (self.outcomes.change(set, groups), ROOT)
        } else {
            (first, self.outcomes.child(node, set, groups))
        }
    }

    /// The branches after a byte of a class, or a symbol.
    pub fn step(&mut self, from: From, branches: &Branches, class: usize, out: &mut Branches) {
        out.clear();
        for at in branches {
            if let [x] = at.states[..]
                && let [only] = &self.lexer.entry_of_class(x, class)[..]
                && only.emit == [NONE; 2]
            {
                let to = At { states: SmallVec::from_elem(only.next, 1), ..at.clone() };
                if !out.contains(&to) {
                    out.push(to);
                }
                continue;
            }
            self.step_any(from, at, class, out);
        }
    }

    /// The general step: lexer states from which the same is emitted and the same is left go on together.
    ///
    /// States side by side differ in their group alone. So states that emit may only go on together where each leads to the
    /// same states: one may leave a watcher behind that another does not, and that depends on the groups settled here.
    fn step_any(&mut self, from: From, at: &At, class: usize, out: &mut Branches) {
        #[derive(Default)]
        struct Way {
            /// Sets emitted that leave a trace, and the last one emitted.
            emits: SmallVec<[u32; 2]>,
            last: u32,
            from: SmallVec<[u32; 2]>,
            /// Groups after the first of two emissions.
            between: SmallVec<[u32; 2]>,
            to: SmallVec<[u32; 2]>,
        }
        let mut ways: Vec<Way> = Vec::new();
        for &x in &at.states {
            let mut own: SmallVec<[Way; 2]> = SmallVec::new();
            for alternative in self.lexer.entry_of_class(x, class) {
                let mut way = Way { last: at.last, from: SmallVec::from_elem(x, 1), ..Way::default() };
                for emission in alternative.emit.into_iter().filter(|&e| e != NONE) {
                    let emission = self.lexer.emissions[emission as usize];
                    way.last = emission.set;
                    if !self.outcomes.leaves_no_trace(emission.set) {
                        way.emits.push(emission.set);
                        way.between.push(emission.group);
                    }
                }
                way.between.truncate(1);
                way.to.push(alternative.next);
                match own.iter_mut().find(|w| (&w.emits, w.last) == (&way.emits, way.last)) {
                    Some(known) => {
                        known.between.extend(way.between);
                        known.to.extend(way.to);
                    }
                    None => own.push(way),
                }
            }
            for mut way in own {
                for list in [&mut way.between, &mut way.to] {
                    list.sort_unstable();
                    list.dedup();
                }
                let together = |w: &&mut Way| {
                    (&w.emits, w.last) == (&way.emits, way.last)
                        && (way.emits.is_empty() || (&w.to, &w.between) == (&way.to, &way.between))
                };
                match ways.iter_mut().find(together) {
                    Some(known) => {
                        known.from.push(x);
                        known.to.extend(way.to);
                    }
                    None => ways.push(way),
                }
            }
        }
        for mut way in ways {
            way.to.sort_unstable();
            way.to.dedup();
            let mut to = At { states: way.to, last: way.last, ..at.clone() };
            if let Some(&pending) = way.emits.last() {
                let mut place = self.settle(from, at, &way.from);
                if let [first, _] = way.emits[..] {
                    place = self.push(from, place, first, &way.between);
                }
                (to.first, to.node) = place;
                to.pending = pending;
            }
            if !out.contains(&to) {
                out.push(to);
            }
        }
    }

    /// Classes of a token that ends here.
    pub fn classes(&mut self, from: From, branches: &Branches) -> Classes {
        if let [at] = &branches[..]
            && let [x] = at.states[..]
        {
            let key = (from, [at.first, at.node, at.pending, at.last]);
            if self.recent[x as usize].0 != key {
                let (first, node) = self.settle(from, at, &[x]);
                let outcome = self.outcomes.outcome(node, at.last, self.lexer.live[x as usize]);
                self.recent[x as usize] = (key, (first, self.outcomes.class(&[outcome])));
            }
            return Classes::from_iter([self.recent[x as usize].1]);
        }
        let mut all: SmallVec<[(u32, u32); 4]> = SmallVec::new();
        for at in branches {
            // States with the same pending go together, whatever their group.
            let mut states = at.states.clone();
            states.sort_by_key(|&x| self.lexer.live[x as usize]);
            let mut rest = &states[..];
            while let Some(&x) = rest.first() {
                let live = self.lexer.live[x as usize];
                let count = rest.iter().take_while(|&&x| self.lexer.live[x as usize] == live).count();
                let (same, others) = rest.split_at(count);
                let (first, node) = self.settle(from, at, same);
                all.push((first, self.outcomes.outcome(node, at.last, live)));
                rest = others;
            }
        }
        all.sort_unstable();
        let mut classes = Classes::new();
        for group in all.chunk_by(|a, b| a.0 == b.0) {
            let outcomes: SmallVec<[u32; 4]> = group.iter().map(|g| g.1).collect();
            classes.push((group[0].0, self.outcomes.class(&outcomes)));
        }
        classes
    }

    /// Whether two lists of branches plainly do the same under a byte.
    fn same_step(&self, a: &Branches, b: &Branches, byte: u8) -> bool {
        let ([a], [b]) = (&a[..], &b[..]) else { return false };
        let ([x], [y]) = (&a.states[..], &b.states[..]) else { return false };
        (a.first, a.node, a.pending, a.last) == (b.first, b.node, b.pending, b.last)
            && self.lexer.group[*x as usize] == self.lexer.group[*y as usize]
            && self.lexer.entry_id(*x, byte) == self.lexer.entry_id(*y, byte)
    }

    /// Whether two lists of branches do the same on the token that ends at `node` and on all below it.
    fn same_below(&self, node: u32, a: &Branches, b: &Branches) -> bool {
        let Some(level) = self.horizons().level(self.trie.height[node as usize]) else { return false };
        let class = |&x: &u32| self.horizons().state(level, x);
        let same = |a: &At, b: &At| {
            let place = |at: &At| (at.first, at.node, at.pending, at.last);
            place(a) == place(b) && a.states.iter().map(class).eq(b.states.iter().map(class))
        };
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
    }

    /// Whether every byte below trie node `node` leaves `branches` as they are.
    pub fn stays_below(&self, node: u32, branches: &Branches) -> bool {
        match &branches[..] {
            [At { states, .. }] if states.len() == 1 => {
                let x = states[0];
                let on_characters =
                    || *self.stays_on_characters[x as usize].get_or_init(|| self.stays_on_characters(x));
                self.trie.stays_below(node, |byte| self.stays_under(x, byte), || *self.bytes_staying(x), on_characters)
            }
            _ => false,
        }
    }

    /// Class of the byte that leads to a node.
    fn class(&self, node: u32) -> usize {
        usize::from(self.lexer.byte_class[usize::from(self.trie.byte[node as usize])])
    }

    /// Whether the byte that leads to a node leads from a lexer state anywhere.
    pub fn goes_on(&self, x: u32, node: u32) -> bool {
        self.lexer.entry_id(x, self.trie.byte[node as usize]) != DEAD_ENTRY
    }

    /// Walk the subtree of `top`, with lexer state `x` above it; `record` gets each interval of tokens with outcomes, in
    /// ascending order. What came before `top` must have emitted nothing.
    pub fn walk(&mut self, from: From, x: u32, top: u32, mut record: impl FnMut(u32, u32, Classes)) {
        crate::control::check();
        let mut levels = std::mem::take(&mut self.levels);
        let first = self.trie.depth[top as usize] as usize;
        if levels.len() < first {
            levels.resize(first, Branches::new());
        }
        levels[first - 1] = Self::start(x);
        let mut node = top;
        let end = self.trie.end[top as usize];
        while node < end {
            let depth = self.trie.depth[node as usize] as usize;
            if levels.len() <= depth {
                levels.resize(depth + 1, Branches::new());
            }
            let (above, here) = levels.split_at_mut(depth);
            let (above, here) = (&above[depth - 1], &mut here[0]);
            self.step(from, above, self.class(node), here);
            if here.is_empty() {
                node = self.trie.end[node as usize];
            } else if self.stays_below(node, here) {
                let tokens = self.trie.tokens_of(node);
                record(tokens.start, tokens.end, self.classes(from, here));
                node = self.trie.end[node as usize];
            } else {
                if let Some(token) = self.trie.token_at(node) {
                    record(token, token + 1, self.classes(from, here));
                }
                node += 1;
            }
        }
        self.levels = levels;
    }

    /// Walk the subtree of `child` from lexer states `x` and `base` at once and report where they differ: `lost` gets
    /// intervals in which `base` may have outcomes that do not hold for `x`, `own` what `x` has there.
    pub fn compare(
        &mut self,
        from: From,
        x: u32,
        base: u32,
        child: u32,
        mut lost: impl FnMut(u32, u32),
        mut own: impl FnMut(u32, u32, Classes),
    ) {
        crate::control::check();
        let mut levels: Vec<(Branches, Branches)> = vec![(Self::start(x), Self::start(base))];
        let mut node = child;
        let end = self.trie.end[child as usize];
        while node < end {
            let depth = self.trie.depth[node as usize] as usize;
            if levels.len() <= depth {
                levels.resize(depth + 1, Default::default());
            }
            let (above, here) = levels.split_at_mut(depth);
            let (above, here) = (&above[depth - 1], &mut here[0]);
            let byte = self.trie.byte[node as usize];
            if self.same_step(&above.0, &above.1, byte) {
                node = self.trie.end[node as usize];
                continue;
            }
            let class = self.class(node);
            self.step(from, &above.0, class, &mut here.0);
            self.step(from, &above.1, class, &mut here.1);
            let (mine, theirs) = (&here.0, &here.1);
            let tokens = self.trie.tokens_of(node);
            if mine == theirs || self.same_below(node, mine, theirs) {
                node = self.trie.end[node as usize];
            } else if mine.is_empty() {
                lost(tokens.start, tokens.end);
                node = self.trie.end[node as usize];
            } else if self.stays_below(node, mine) && (theirs.is_empty() || self.stays_below(node, theirs)) {
                let classes = self.classes(from, mine);
                if theirs.is_empty() || self.classes(from, theirs) != classes {
                    if !theirs.is_empty() {
                        lost(tokens.start, tokens.end);
                    }
                    own(tokens.start, tokens.end, classes);
                }
                node = self.trie.end[node as usize];
            } else {
                if let Some(token) = self.trie.token_at(node) {
                    let classes = self.classes(from, mine);
                    if theirs.is_empty() || self.classes(from, theirs) != classes {
                        if !theirs.is_empty() {
                            lost(token, token + 1);
                        }
                        own(token, token + 1, classes);
                    }
                }
                node += 1;
            }
        }
    }
}
