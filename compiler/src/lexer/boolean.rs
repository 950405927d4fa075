//! Complement and intersection of DFAs. Results are trimmed: every state but the start is live.

use rustc_hash::FxHashMap;

use super::DEAD;
use super::classes::{ByteClasses, classes_of};
use super::counters::Moves;
use super::determinize::{Dfa, Overflow};
use super::minimize::renumber;

/// The DFA of all byte strings.
pub(super) fn all_strings() -> Dfa {
    Dfa { byte_class: [0; 256], class_count: 1, next: vec![1, 1], cand: vec![1, 1], moves: Moves::default() }
}

/// The DFA of the byte strings that `dfa` does not accept.
pub(super) fn complement(dfa: &Dfa) -> Result<Dfa, Overflow> {
    let sink = dfa.state_count() as u32;
    let mut next: Vec<u32> = dfa.next.iter().map(|&t| if t == DEAD { sink } else { t }).collect();
    next.extend(std::iter::repeat_n(sink, dfa.class_count));
    let cand = dfa.cand.iter().chain([&0]).map(|&cand| u32::from(cand == 0)).collect();
    trim(Dfa { next, cand, moves: dfa.moves.clone(), ..*dfa })
}

/// The DFA of the byte strings that both accept.
pub(super) fn intersection(a: &Dfa, b: &Dfa, max_states: usize) -> Result<Dfa, Overflow> {
    let joint = ByteClasses::joint([&a.byte_class, &b.byte_class].into_iter());
    let samples = joint.samples();
    let classes: Vec<(usize, usize)> =
        classes_of(&samples, &a.byte_class).into_iter().zip(classes_of(&samples, &b.byte_class)).collect();
    // Neither start has a transition into it, so the pair (0, 0) has none either.
    let mut ids: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut pairs = vec![(0u32, 0u32)];
    let (mut next, mut cand, mut moves) = (Vec::new(), Vec::new(), Moves::default());
    while let Some(&(p, q)) = pairs.get(cand.len()) {
        crate::control::check();
        // What one of them counts moves in that one only.
        let of_a = a.moves.of(p).iter().map(|&(letter, to)| (letter, (to, q)));
        let of_b = b.moves.of(q).iter().map(|&(letter, to)| (letter, (p, to)));
        for (letter, pair) in of_a.chain(of_b) {
            let to = *ids.entry(pair).or_insert_with(|| {
                pairs.push(pair);
                pairs.len() as u32 - 1
            });
            moves.push(cand.len() as u32, letter, to);
        }
        let (p, q) = (p as usize, q as usize);
        cand.push(u32::from(a.cand[p] != 0 && b.cand[q] != 0));
        for &(in_a, in_b) in &classes {
            let pair = (a.row(p)[in_a], b.row(q)[in_b]);
            if pair.0 == DEAD || pair.1 == DEAD {
                next.push(DEAD);
                continue;
            }
            next.push(*ids.entry(pair).or_insert_with(|| {
                pairs.push(pair);
                pairs.len() as u32 - 1
            }));
        }
        if pairs.len() > max_states {
            return Err(Overflow::States(max_states));
        }
    }
    trim(Dfa { byte_class: joint.of, class_count: joint.count, next, cand, moves })
}

/// Drop the transitions to states that cannot reach an accepting one, then the states that nothing leads to any more.
///
/// # Errors
/// [`Overflow::Counter`], if what is counted cannot go on once the counter is 0.
fn trim(mut dfa: Dfa) -> Result<Dfa, Overflow> {
    let k = dfa.class_count;
    let mut sources: Vec<Vec<u32>> = vec![Vec::new(); dfa.state_count()];
    for q in 0..dfa.state_count() {
        for target in dfa.targets(q) {
            if sources[target as usize].last() != Some(&(q as u32)) {
                sources[target as usize].push(q as u32);
            }
        }
    }
    let mut live: Vec<bool> = dfa.cand.iter().map(|&cand| cand != 0).collect();
    let mut stack: Vec<u32> = (0..dfa.state_count() as u32).filter(|&q| live[q as usize]).collect();
    while let Some(q) = stack.pop() {
        for &source in &sources[q as usize] {
            if !std::mem::replace(&mut live[source as usize], true) {
                stack.push(source);
            }
        }
    }
    dfa.check_moves(&live)?;
    for target in dfa.next.iter_mut().filter(|t| **t != DEAD) {
        if !live[*target as usize] {
            *target = DEAD;
        }
    }
    debug_assert_eq!(dfa.next.len(), k * dfa.state_count());
    Ok(renumber(&dfa, 0))
}
