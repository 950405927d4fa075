//! Outcomes, and the boundary classes that sets of them form.
//!
//! A *sequence node* is a path of emitted candidate sets from the last point at which the stack is known; sets of ignored
//! terminals alone leave no trace. An *outcome* (n, E) is a node and what the unfinished lexeme can still become: it holds
//! on a stack that can shift the whole path and then some terminal of E. A *class* is the set of outcomes of a token (short
//! branches give it several); it holds iff one of them does.

use crate::bits;
use crate::lexer::{NONE, TermSet, TermSets, TerminalFacts};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The empty sequence.
pub const ROOT: u32 = 0;
/// E of an outcome that holds as soon as its node is reached: nothing is pending, or an ignored lexeme may be.
pub const REACHED: u32 = u32::MAX;

/// All outcomes and classes met so far.
#[derive(Debug)]
pub struct Outcomes<'a> {
    facts: &'a TerminalFacts,
    terminal_class: &'a [u32],
    /// Candidate and live sets of the lexer.
    pub sets: TermSets,
    /// Sets of terminal classes: labels of sequences, and what may be pending.
    pub labels: TermSets,
    /// Parent and label of each sequence node.
    pub nodes: Vec<(u32, u32)>,
    /// Node and E of each outcome.
    pub outcomes: Vec<(u32, u32)>,
    /// Sorted outcomes of each class.
    pub classes: Vec<SmallVec<[u32; 1]>>,
    node_ids: FxHashMap<(u32, u32), u32>,
    outcome_ids: FxHashMap<(u32, u32), u32>,
    pending_ids: FxHashMap<(u32, u32), u32>,
    class_ids: FxHashMap<SmallVec<[u32; 1]>, u32>,
    singleton: Vec<u32>,
}

impl<'a> Outcomes<'a> {
    /// Start from the sets of a watched lexer.
    pub fn new(facts: &'a TerminalFacts, terminal_class: &'a [u32], sets: TermSets) -> Self {
        Outcomes {
            facts,
            terminal_class,
            sets,
            labels: TermSets::default(),
            nodes: vec![(NONE, NONE)],
            outcomes: Vec::new(),
            classes: Vec::new(),
            node_ids: FxHashMap::default(),
            outcome_ids: FxHashMap::default(),
            pending_ids: FxHashMap::default(),
            class_ids: FxHashMap::default(),
            singleton: Vec::new(),
        }
    }

    /// The node after `node` emits candidate set `label`.
    pub fn child(&mut self, node: u32, label: u32) -> u32 {
        if self.leaves_no_trace(label) {
            return node;
        }
        let set = &self.sets.sets[label as usize];
        let label = self.labels.intern(classes(self.terminal_class, &set.terms, set.ignored));
        let next = self.nodes.len() as u32;
        *self.node_ids.entry((node, label)).or_insert_with(|| {
            self.nodes.push((node, label));
            next
        })
    }

    /// Whether emitting this set leaves every stack unchanged.
    pub fn leaves_no_trace(&self, label: u32) -> bool {
        self.sets.sets[label as usize].terms.is_empty()
    }

    /// The outcome of ending at `node`, whose last emission was `last` (or `NONE`), with `live` pending (or `NONE`).
    pub fn outcome(&mut self, node: u32, last: u32, live: u32) -> u32 {
        let pending = match live {
            NONE => REACHED,
            _ => *self.pending_ids.entry((last, live)).or_insert_with(|| {
                let set = &self.sets.sets[live as usize];
                if set.ignored {
                    return REACHED;
                }
                let terms = match last {
                    NONE => set.terms.clone(),
                    _ => after(self.facts, &self.sets.sets[last as usize], &set.terms),
                };
                self.labels.intern(classes(self.terminal_class, &terms, false))
            }),
        };
        let next = self.outcomes.len() as u32;
        *self.outcome_ids.entry((node, pending)).or_insert_with(|| {
            self.outcomes.push((node, pending));
            next
        })
    }

    /// The class of a set of outcomes.
    pub fn class(&mut self, outcomes: &[u32]) -> u32 {
        if let [only] = outcomes {
            if let Some(&class) = self.singleton.get(*only as usize)
                && class != NONE
            {
                return class;
            }
            let class = self.intern(SmallVec::from_slice(outcomes));
            if self.singleton.len() <= *only as usize {
                self.singleton.resize(*only as usize + 1, NONE);
            }
            self.singleton[*only as usize] = class;
            return class;
        }
        let mut sorted: SmallVec<[u32; 1]> = SmallVec::from_slice(outcomes);
        sorted.sort_unstable();
        sorted.dedup();
        self.intern(sorted)
    }

    fn intern(&mut self, outcomes: SmallVec<[u32; 1]>) -> u32 {
        let next = self.classes.len() as u32;
        *self.class_ids.entry(outcomes).or_insert_with_key(|outcomes| {
            self.classes.push(outcomes.clone());
            next
        })
    }
}

fn classes(terminal_class: &[u32], terms: &[u32], ignored: bool) -> TermSet {
    let mut terms: Vec<u32> = terms.iter().map(|&t| terminal_class[t as usize]).collect();
    terms.sort_unstable();
    terms.dedup();
    TermSet { terms, ignored }
}

/// The terminals of `terms` that may come after some candidate of `last`.
fn after(facts: &TerminalFacts, last: &TermSet, terms: &[u32]) -> Vec<u32> {
    if last.ignored {
        return terms.to_vec();
    }
    let follows = |t: u32| last.terms.iter().any(|&l| bits::has(&facts.follow[l as usize], t));
    terms.iter().copied().filter(|&t| follows(t)).collect()
}
