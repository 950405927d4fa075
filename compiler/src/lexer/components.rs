//! Terminals that may begin alike are built together; what was built is remembered.
//!
//! Terminals that share no first byte have nothing in common but the start. So the patterns of a lexer fall into
//! *components*, and its automaton is that of each component behind one start. It is minimal if theirs are: from states of
//! different components different terminals are accepted. White space, strings, and numbers are components of most JSON
//! Schemas, in several groups of each, and make up most of their states: they are built once ([`super::known`]).

use std::sync::Arc;

use super::classes::{ByteClasses, classes_of};
use super::counters::{Chain, Counting, Moves, of_chain};
use super::determinize::{Dfa, Overflow, determinize};
use super::known::{ComponentKey, MemberKey};
use super::minimize::minimize;
use super::nfa::{Minimal, united as united_automata};
use super::terminals::{Part, Terminals};
use super::{CandidateSets, DEAD, LexerError, LexerLimits};
use crate::grammar::ir::{Expr, MAX_EXPR_DEPTH, TerminalId};
use crate::vocab::ByteSet;

const ALL: ByteSet = [u64::MAX; 4];

/// What is not a word of a terminal.
#[derive(Debug)]
pub(super) struct Pattern<'a> {
    pub id: TerminalId,
    /// Alternatives.
    pub parts: Vec<&'a Part<'a>>,
    /// Whether they are all there is, so that one of them must match something.
    pub whole: bool,
}

/// How the lexers of a grammar are built.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'a> {
    pub terminals: &'a Terminals<'a>,
    /// Whether a state keeps only the accepting terminals of the highest rank.
    pub resolve_ranks: bool,
    pub limits: &'a LexerLimits,
    pub counting: &'a Counting,
}

impl Rules<'_> {
    fn rank(&self, t: TerminalId) -> (i32, bool) {
        self.terminals.all[t as usize].rank()
    }

    /// Of sorted terminals that accept the same, those that count.
    pub fn best(&self, accepting: &[TerminalId]) -> Box<[TerminalId]> {
        let top = accepting.iter().map(|&t| self.rank(t)).max();
        accepting.iter().copied().filter(|&t| !self.resolve_ranks || Some(self.rank(t)) == top).collect()
    }
}

/// The minimal automaton of a component.
#[derive(Debug)]
pub(super) struct Component {
    members: Vec<TerminalId>,
    dfa: Dfa,
    sets: Vec<Box<[TerminalId]>>,
    chains: Vec<Chain>,
}

impl Component {
    /// The component of some patterns, ascending by terminal.
    fn get(patterns: &[Pattern], rules: &Rules) -> Result<Arc<Self>, LexerError> {
        let known = rules.terminals.known;
        let member = |pattern: &Pattern| MemberKey {
            parts: pattern.parts.iter().map(|part| part.number(known)).collect(),
            whole: pattern.whole,
            rank: rules.rank(pattern.id),
            copied_states: rules.counting.copied_states_of(pattern.id),
        };
        let key = ComponentKey {
            members: patterns.iter().map(member).collect(),
            resolve_ranks: rules.resolve_ranks,
            limits: rules.limits.clone(),
        };
        known.component(key, || Self::build(patterns, rules))
    }

    fn build(patterns: &[Pattern], rules: &Rules) -> Result<Self, LexerError> {
        let members = patterns.iter().map(|p| p.id).collect();
        let mut minimal: Vec<(TerminalId, Arc<Minimal>)> = Vec::with_capacity(patterns.len());
        for Pattern { id, parts, whole } in patterns {
            let before = minimal.len();
            for part in parts {
                minimal.extend(part.minimal(rules.terminals, *id, rules.counting)?.map(|part| (*id, part)));
            }
            if *whole && minimal.len() == before {
                return Err(LexerError::EmptyLanguage { terminal: rules.terminals.all[*id as usize].name.clone() });
            }
        }
        let mut sets = CandidateSets::default();
        if let [(id, only)] = &minimal[..] {
            sets.intern(Box::from([*id]));
            let chains = only.chains.iter().map(|chain| Chain { terminal: *id, ..chain.clone() }).collect();
            return Ok(Self { members, dfa: only.dfa.clone(), sets: sets.sets, chains });
        }
        let (nfa, start, chains) = united_automata(&minimal);
        let dfa = determinize(&nfa, start, rules.limits, |accepting| sets.intern(rules.best(accepting)));
        let dfa = dfa.map_err(|overflow| match overflow {
            Overflow::Counter(chain) => LexerError::Uncountable { terminal: chains[chain as usize].terminal },
            overflow => LexerError::overflow(overflow, None),
        })?;
        Ok(Self { members, dfa: minimize(dfa), sets: sets.sets, chains })
    }

    /// Numbers of four bytes that it takes, about.
    pub fn size(&self) -> usize {
        self.dfa.next.len() + self.dfa.cand.len()
    }
}

/// The minimal automaton of patterns, ascending by terminal, its states in any order but for the start; its candidates are
/// numbered in `sets`. And what is counted.
pub(super) fn automaton(
    patterns: Vec<Pattern>,
    rules: &Rules,
    sets: &mut CandidateSets,
) -> Result<(Dfa, Vec<Chain>), LexerError> {
    let split = split(patterns);
    let mut parts: Vec<Arc<Component>> = Vec::with_capacity(split.len());
    let (mut states, most) = (1, rules.limits.max_dfa_states);
    for patterns in &split {
        parts.push(Component::get(patterns, rules)?);
        // The start of a component is the start; nothing leads back to it.
        states += parts[parts.len() - 1].dfa.state_count() - 1;
        if states > most {
            return Err(LexerError::overflow(Overflow::States(most), None));
        }
    }
    let joint = ByteClasses::joint(parts.iter().map(|part| &part.dfa.byte_class));
    let (byte_class, k, samples) = (joint.of, joint.count, joint.samples());
    let (mut next, mut cand) = (Vec::with_capacity(states * k), Vec::with_capacity(states));
    next.resize(k, DEAD);
    cand.push(0);
    let mut out = Dfa { byte_class, class_count: k, next, cand, moves: Moves::default() };
    let mut chains: Vec<Chain> = Vec::new();
    for (part, patterns) in parts.iter().zip(&split) {
        let classes = classes_of(&samples, &part.dfa.byte_class);
        let id = |old: TerminalId| patterns[part.members.partition_point(|&member| member < old)].id;
        let set_ids: Vec<u32> = part.sets.iter().map(|set| sets.intern(set.iter().map(|&t| id(t)).collect())).collect();
        let offset = out.cand.len() as u32 - 1;
        let of = |q: u32| if q == DEAD { DEAD } else { q + offset };
        for q in 0..part.dfa.state_count() {
            let row = part.dfa.row(q);
            if q == 0 {
                for (to, &class) in out.next.iter_mut().zip(&classes) {
                    *to = (*to).min(of(row[class]));
                }
            } else {
                out.next.extend(classes.iter().map(|&class| of(row[class])));
                out.cand.push(set_ids[part.dfa.cand[q] as usize]);
            }
        }
        for from in part.dfa.moves.states() {
            for &(letter, to) in part.dfa.moves.of(from) {
                out.moves.push(of(from), of_chain(letter, chains.len()), of(to));
            }
        }
        chains.extend(part.chains.iter().map(|chain| Chain { terminal: id(chain.terminal), ..chain.clone() }));
    }
    Ok((out, chains))
}

/// The components of patterns, in the order of their first terminals.
fn split(patterns: Vec<Pattern>) -> Vec<Vec<Pattern>> {
    let mut components: Vec<(ByteSet, Vec<Pattern>)> = Vec::new();
    for pattern in patterns {
        let mut first = pattern.parts.iter().map(|part| part.first_bytes()).fold([0; 4], united);
        // Before what matches nothing is refused, it must be somewhere.
        if first == [0; 4] {
            first = ALL;
        }
        let meets = |other: &ByteSet| first.iter().zip(other).any(|(a, b)| a & b != 0);
        let (mut met, rest): (Vec<_>, Vec<_>) = components.into_iter().partition(|(bytes, _)| meets(bytes));
        components = rest;
        let bytes = met.iter().map(|(bytes, _)| *bytes).fold(first, united);
        let mut members: Vec<Pattern> = met.drain(..).flat_map(|(_, members)| members).collect();
        members.push(pattern);
        components.push((bytes, members));
    }
    let mut components: Vec<Vec<Pattern>> = components.into_iter().map(|(_, members)| members).collect();
    components.iter_mut().for_each(|members| members.sort_by_key(|pattern| pattern.id));
    components.sort_by_key(|members| members[0].id);
    components
}

fn united(a: ByteSet, b: ByteSet) -> ByteSet {
    std::array::from_fn(|i| a[i] | b[i])
}

/// Bytes that what an expression matches may begin with, perhaps more; and whether it may match the empty string.
pub(super) fn first_bytes(expr: &Expr, depth: usize) -> (ByteSet, bool) {
    if depth > MAX_EXPR_DEPTH {
        return (ALL, true);
    }
    let of = |ranges: &mut dyn Iterator<Item = (u8, u8)>| {
        let mut bytes: ByteSet = [0; 4];
        ranges.flat_map(|(lo, hi)| lo..=hi).for_each(|b| bytes[usize::from(b) / 64] |= 1 << (b % 64));
        bytes
    };
    match expr {
        Expr::Bytes(bytes) => (of(&mut bytes.iter().take(1).map(|&b| (b, b))), bytes.is_empty()),
        Expr::Fold(bytes) => {
            let cases = |b: &u8| [b.to_ascii_lowercase(), b.to_ascii_uppercase()].map(|b| (b, b));
            (of(&mut bytes.iter().take(1).flat_map(cases)), bytes.is_empty())
        }
        Expr::ByteClass(ranges) => (of(&mut ranges.iter().copied()), false),
        Expr::Class(ranges) if ranges.iter().all(|r| r.1 < 0x80) => {
            (of(&mut ranges.iter().map(|&(lo, hi)| (lo as u8, hi as u8))), false)
        }
        Expr::Cat(parts) => {
            let mut all: ByteSet = [0; 4];
            for part in parts {
                let (bytes, nullable) = first_bytes(part, depth + 1);
                all = united(all, bytes);
                if !nullable {
                    return (all, false);
                }
            }
            (all, true)
        }
        Expr::Alt(parts) => {
            let of_parts = parts.iter().map(|part| first_bytes(part, depth + 1));
            of_parts.fold(([0; 4], false), |(a, a_null), (b, b_null)| (united(a, b), a_null || b_null))
        }
        Expr::Repeat(body, min, _) => {
            let (bytes, nullable) = first_bytes(body, depth + 1);
            (bytes, nullable || *min == 0)
        }
        Expr::Graph(states) => match states.first() {
            Some(state) => {
                let labels = state.edges.iter().map(|(label, _)| first_bytes(label, depth + 1).0);
                (labels.fold([0; 4], united), state.accepting)
            }
            None => (ALL, true),
        },
        _ => (ALL, true),
    }
}
