//! Outcomes, and the boundary classes that sets of them form.
//!
//! A *sequence node* is a path of emissions from the last point at which the stack is known; those of ignored
//! terminals leave no trace. An *outcome* (n, E) is a node and what the unfinished lexeme can still become: it holds
//! on a stack that can shift the whole path and then some terminal of E. A *class* is the set of outcomes of a token (short
//! branches give it several); it holds iff one of them does.

use crate::bits::{self, Pool};
use crate::front::Front;
use crate::lexer::{Emission, NONE, TermSet, TermSets, TerminalFacts};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// The empty sequence.
pub const ROOT: u32 = 0;
/// E of an outcome that holds as soon as its node is reached: nothing is pending, or an ignored lexeme may be.
pub const REACHED: u32 = u32::MAX;

/// A node of the sequence trie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SequenceNode {
    /// Parent, or `NONE` for the root.
    pub parent: u32,
    /// Set of terminal classes emitted on the way from it.
    pub label: u32,
    /// Lexer groups, one of which the LR state on top then must be of: a set, or `NONE` for any.
    pub groups: u32,
}

/// What an emission does to stacks: shift one of these terminals, and keep what is then of one of these groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Change {
    /// Candidate set; without members it leaves stacks as they are.
    pub set: u32,
    /// Set of lexer groups, or `NONE` for any.
    pub groups: u32,
}

/// All outcomes and classes met so far.
#[derive(Debug)]
pub struct Outcomes {
    facts: Arc<TerminalFacts>,
    terminal_class: Arc<[u32]>,
    /// Candidate and live sets of the lexer.
    pub sets: TermSets,
    /// Ways in which stacks change first in a recipe's groups, and, through `emission_of`, those of the lexer's emissions.
    pub changes: Vec<Change>,
    /// Change of each of the lexer's emissions.
    pub change_of: Vec<u32>,
    /// Sets of lexer groups.
    pub(crate) group_sets: Pool,
    /// Sets of terminal classes: labels of sequences, and what may be pending.
    pub labels: TermSets,
    /// Each sequence node.
    pub nodes: Vec<SequenceNode>,
    /// Node and E of each outcome.
    pub outcomes: Vec<(u32, u32)>,
    /// Sorted outcomes of each class.
    pub classes: Vec<SmallVec<[u32; 1]>>,
    node_ids: FxHashMap<SequenceNode, u32>,
    outcome_ids: FxHashMap<(u32, u32), u32>,
    pending_ids: FxHashMap<(u32, u32), u32>,
    change_ids: FxHashMap<Change, u32>,
    class_ids: FxHashMap<SmallVec<[u32; 1]>, u32>,
    singleton: Vec<u32>,
}

impl Outcomes {
    /// With what the lexer has itself, and nothing that tokens do.
    pub(crate) fn of(front: &Front) -> Self {
        let (facts, terminal_class) = (Arc::clone(&front.facts), Arc::clone(&front.quotient.terminal_class));
        Self::new(facts, terminal_class, front.lexer.sets.clone(), &front.lexer.emissions)
    }

    /// Start from the sets and emissions of a watched lexer.
    pub fn new(facts: Arc<TerminalFacts>, terminal_class: Arc<[u32]>, sets: TermSets, emissions: &[Emission]) -> Self {
        let groups = facts.after.iter().flatten().map(|(group, _)| *group).max().map_or(1, |max| max + 1);
        let mut outcomes = Outcomes {
            facts,
            terminal_class,
            sets,
            changes: Vec::new(),
            change_of: Vec::new(),
            group_sets: Pool::new(bits::words(groups as usize)),
            labels: TermSets::default(),
            nodes: vec![SequenceNode { parent: NONE, label: NONE, groups: NONE }],
            outcomes: Vec::new(),
            classes: Vec::new(),
            node_ids: FxHashMap::default(),
            outcome_ids: FxHashMap::default(),
            pending_ids: FxHashMap::default(),
            change_ids: FxHashMap::default(),
            class_ids: FxHashMap::default(),
            singleton: Vec::new(),
        };
        for emission in emissions {
            let groups: &[u32] = if emission.group == NONE { &[] } else { std::slice::from_ref(&emission.group) };
            let change = outcomes.change(emission.set, groups);
            outcomes.change_of.push(change);
        }
        outcomes
    }

    /// The set of these groups, or `NONE` if they are all that can come after a candidate of `set`.
    fn groups(&mut self, set: u32, groups: &[u32]) -> u32 {
        let possible = |g: &(u32, Vec<u64>)| groups.contains(&g.0);
        if self.sets.sets[set as usize].terms.iter().all(|&t| self.facts.after[t as usize].iter().all(possible)) {
            return NONE;
        }
        let widest = self.facts.after.iter().flatten().map(|(group, _)| *group).max().unwrap_or(0);
        let mut bits = vec![0; bits::words(widest as usize + 1)];
        groups.iter().for_each(|&g| bits::insert(&mut bits, g));
        self.group_sets.intern(&bits)
    }

    /// The change of emitting `set` where the next lexeme is of one of `groups`.
    pub fn change(&mut self, set: u32, groups: &[u32]) -> u32 {
        let change = Change { set, groups: self.groups(set, groups) };
        let next = self.changes.len() as u32;
        *self.change_ids.entry(change).or_insert_with(|| {
            self.changes.push(change);
            next
        })
    }

    /// The node after emitting `set`, which leaves a trace, at `node` where the next lexeme is of one of `groups`.
    pub fn child(&mut self, node: u32, set: u32, groups: &[u32]) -> u32 {
        let label = self.labels.intern(classes(&self.terminal_class, &self.sets.sets[set as usize].terms));
        let child = SequenceNode { parent: node, label, groups: self.groups(set, groups) };
        let next = self.nodes.len() as u32;
        *self.node_ids.entry(child).or_insert_with(|| {
            self.nodes.push(child);
            next
        })
    }

    /// Whether emitting a set leaves every stack unchanged.
    pub fn leaves_no_trace(&self, set: u32) -> bool {
        self.sets.sets[set as usize].terms.is_empty()
    }

    /// The outcome of ending at `node`, whose last emission was the set `last` (or `NONE`), with `live` pending (or `NONE`).
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
                    _ => after(&self.facts, &self.sets.sets[last as usize], &set.terms),
                };
                self.labels.intern(classes(&self.terminal_class, &terms))
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

fn classes(terminal_class: &[u32], terms: &[u32]) -> TermSet {
    let mut terms: Vec<u32> = terms.iter().map(|&t| terminal_class[t as usize]).collect();
    terms.sort_unstable();
    terms.dedup();
    TermSet { terms, ignored: false }
}

/// The terminals of `terms` that may come after some candidate of `last`.
fn after(facts: &TerminalFacts, last: &TermSet, terms: &[u32]) -> Vec<u32> {
    if last.ignored {
        return terms.to_vec();
    }
    let follows = |t: u32| last.terms.iter().any(|&l| bits::has(&facts.follow[l as usize], t));
    terms.iter().copied().filter(|&t| follows(t)).collect()
}
