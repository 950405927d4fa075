//! Which rows of the LR table may share a lexer.
//!
//! A lexer over the terminals U serves a row R ⊆ U exactly if no terminal of U∖R changes what is cut, ranked or pending
//! on a stack with row R. Two rules suffice, for all r ∈ R and f ∈ U∖R:
//! 1. no word of r is a proper prefix of a word of f;
//! 2. where r and f have a word in common, f does not outrank r.
//!
//! *Proof.* Let y be the lexeme so far, on a stack with row R. What has no action in R cannot be shifted there, after any
//! reductions, so emissions and live sets never hold there by terminals of U∖R; it remains to show that those of R are
//! the same. If no prefix of y is a word of R, neither lexer has emitted anything of R. If y is a word of R, then by rule 1
//! both lexers can go on alike from here, so longest matches, lexemes that end at once and watchers agree, and by rule 2 the
//! candidates of R. If a proper prefix of y is a word of R, no terminal of U∖R is left. So the same continuations end as a
//! candidate r in both lexers. Whether r is a trap is asked of the rows that shifting r leads to
//! ([`TerminalFacts::after`](super::TerminalFacts)), terminal by terminal, not of the union those rows share: by induction
//! over the removal of traps live sets agree on R. Rows that share have the same ignored terminals, which need no action.
//!
//! The rules are decided for pairs: of words by looking up prefixes, of a word and an automaton by running it, of automata
//! on their product. A pair whose product has more states than the two have together is kept apart as well, so that lexers
//! do not multiply automata; and so is, from everything, what is too large to look at. Where an automaton counts, what its
//! counters allow is not looked at, which can only keep more apart; two that count are kept apart at once, since a lexer of
//! both would have states for all pairs of their counts.

use super::classes::{ByteClasses, classes_of};
use super::known::AloneKey;
use super::{Counting, DEAD, LexerDfa, LexerLimits, Terminals};
use crate::bits;
use crate::grammar::ir::{Expr, TerminalId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A terminal is wide if so many bytes can come next somewhere inside it: there, much of the vocabulary goes on. Rows that
/// know no such terminal keep to themselves, so that in the middle of their keywords few tokens have to be told apart.
const WIDE_BYTES: usize = 64;

/// Largest automata of terminals that are looked at.
const LIMITS: LexerLimits =
    LexerLimits { max_nfa_states: 200_000, max_dfa_states: 10_000, max_subset_elements: 1_000_000 };

/// Steps of automata looked at in all; what comes later is kept apart.
const MAX_WORK: usize = 20_000_000;

/// Give each row the first colour whose rows it can share a lexer with: the colour of each row, the terminals of each.
pub(super) fn colour(terminals: &Terminals, rows: &[Vec<u64>], counting: &Counting) -> (Vec<u32>, Vec<Vec<u64>>) {
    let mut used = vec![0; rows.first().map_or(0, Vec::len)];
    for row in rows {
        bits::unite(&mut used, row);
    }
    let Pairs { disturbs, wide, .. } = Pairs::of(terminals, &used, counting);
    let mut ignored = vec![0; used.len()];
    bits::iter(&used).filter(|&t| terminals.all[t as usize].ignored).for_each(|t| bits::insert(&mut ignored, t));
    let (mut unions, mut refused): (Vec<Vec<u64>>, Vec<Vec<u64>>) = (Vec::new(), Vec::new());
    let colour = |row: &Vec<u64>| {
        // An ignored terminal needs no action, so one that the row lacks always makes a difference.
        let mut disturbing = ignored.clone();
        for t in bits::iter(row) {
            disturbs[t as usize].iter().for_each(|&f| bits::insert(&mut disturbing, f));
        }
        disturbing.iter_mut().zip(row).for_each(|(f, r)| *f &= !r);
        let as_wide = |union: &[u64]| bits::meets(union, &wide) == bits::meets(row, &wide);
        let fits = |c: &usize| {
            let union = &unions[*c];
            !bits::meets(&disturbing, union) && !bits::meets(row, &refused[*c]) && as_wide(union)
        };
        let colour = (0..unions.len()).find(fits).unwrap_or_else(|| {
            unions.push(vec![0; row.len()]);
            refused.push(vec![0; row.len()]);
            unions.len() - 1
        });
        bits::unite(&mut unions[colour], row);
        bits::unite(&mut refused[colour], &disturbing);
        colour as u32
    };
    (rows.iter().map(colour).collect(), unions)
}

/// The word that is all an expression matches, appended to `word`; whether there is one.
fn only_word(expr: &Expr, word: &mut Vec<u8>) -> bool {
    match expr {
        Expr::Bytes(bytes) => {
            word.extend(bytes);
            true
        }
        Expr::Cat(parts) => parts.iter().all(|part| only_word(part, word)),
        _ => false,
    }
}

/// The automaton of one terminal, whichever it is.
#[derive(Debug)]
pub(super) struct Alone {
    pub number: u64,
    dfa: LexerDfa,
    /// Whether a word can go on from each state.
    goes_on: Vec<bool>,
    is_wide: bool,
}

impl Alone {
    /// The one of a terminal; none if it is too large to look at.
    fn of(terminals: &Terminals, id: TerminalId, counting: &Counting) -> Option<Arc<Self>> {
        let key = AloneKey { expr: terminals.number(id), copied_states: counting.copied_states_of(id) };
        terminals.known.alone(key, || {
            let dfa = LexerDfa::counted(terminals, &[id], false, &LIMITS, counting).ok()?;
            let goes_on = (0..dfa.state_count() as u32).map(|q| dfa.row(q).iter().any(|&to| to != DEAD)).collect();
            let is_wide = is_wide(&dfa);
            Some(Alone { number: terminals.known.new_number(), dfa, goes_on, is_wide })
        })
    }

    /// Numbers of four bytes that it takes, about.
    pub fn size(&self) -> usize {
        self.dfa.next.len() + 2 * self.dfa.state_count()
    }
}

fn is_wide(dfa: &LexerDfa) -> bool {
    let mut bytes = vec![0; dfa.class_count];
    dfa.byte_class.iter().for_each(|&class| bytes[usize::from(class)] += 1);
    (0..dfa.state_count() as u32).any(|q| {
        let next = dfa.row(q).iter().zip(&bytes);
        next.filter(|(to, _)| **to != DEAD).map(|(_, bytes)| *bytes).sum::<usize>() >= WIDE_BYTES
    })
}

/// What two automata say of their words, and how many steps it takes to find out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Verdict {
    /// Whether a word of the first begins a longer one of the second.
    a_then_b: bool,
    b_then_a: bool,
    /// Whether they have one in common.
    common: bool,
    /// Whether their product is too large.
    too_large: bool,
    work: usize,
}

impl Verdict {
    /// The verdict on two automata; none if it takes more work than this.
    fn new(a: &Alone, b: &Alone, most_work: usize) -> Option<Self> {
        let samples = ByteClasses::joint([&a.dfa.byte_class, &b.dfa.byte_class].into_iter()).samples();
        let (of_a, of_b) = (classes_of(&samples, &a.dfa.byte_class), classes_of(&samples, &b.dfa.byte_class));
        let classes: Vec<(usize, usize)> = of_a.into_iter().zip(of_b).collect();
        let most = a.dfa.state_count() + b.dfa.state_count();
        let mut pairs = vec![(0, 0)];
        let mut seen = Seen::new(a.dfa.state_count(), b.dfa.state_count());
        let mut verdict = Verdict::default();
        let mut done = 0;
        while let Some(&(p, q)) = pairs.get(done) {
            let (in_a, in_b) = (a.dfa.is_accepting(p), b.dfa.is_accepting(q));
            verdict.a_then_b |= in_a && b.goes_on[q as usize];
            verdict.b_then_a |= in_b && a.goes_on[p as usize];
            verdict.common |= in_a && in_b;
            verdict.too_large = pairs.len() > most;
            if verdict.too_large || verdict.a_then_b && verdict.b_then_a {
                break;
            }
            verdict.work += classes.len();
            if verdict.work > most_work {
                return None;
            }
            let (row, other) = (a.dfa.row(p), b.dfa.row(q));
            let mut last = (DEAD, DEAD);
            for &(in_a, in_b) in &classes {
                let pair = (row[in_a], other[in_b]);
                if pair.0 != DEAD && pair.1 != DEAD && pair != last && seen.insert(pair) {
                    pairs.push(pair);
                }
                last = pair;
            }
            let of_a = a.dfa.moves.of(p).iter().map(|&(_, to)| (to, q));
            let of_b = b.dfa.moves.of(q).iter().map(|&(_, to)| (p, to));
            pairs.extend(of_a.chain(of_b).filter(|pair| seen.insert(*pair)));
            done += 1;
        }
        Some(verdict)
    }
}

/// Pairs of states that were met.
enum Seen {
    /// As bits, of so many a row.
    Few(Vec<u64>, usize),
    Many(FxHashSet<(u32, u32)>),
}

impl Seen {
    /// Pairs up to which they are bits.
    const FEW: usize = 1 << 24;

    fn new(a: usize, b: usize) -> Self {
        match a * b <= Self::FEW {
            true => Seen::Few(vec![0; bits::words(a * b)], b),
            false => Seen::Many(FxHashSet::default()),
        }
    }

    /// Whether a pair is new.
    fn insert(&mut self, (p, q): (u32, u32)) -> bool {
        match self {
            Seen::Few(seen, width) => {
                let at = p as usize * *width + q as usize;
                let is_new = seen[at / 64] >> (at % 64) & 1 == 0;
                seen[at / 64] |= 1 << (at % 64);
                is_new
            }
            Seen::Many(seen) => seen.insert((p, q)),
        }
    }
}

/// Decides which pairs of terminals break a rule.
struct Pairs<'t> {
    terminals: &'t Terminals<'t>,
    counting: &'t Counting,
    /// For each terminal those that a row with it must not meet outside of it.
    disturbs: Vec<Vec<TerminalId>>,
    /// Terminals that are wide, or too large to look at.
    wide: Vec<u64>,
    /// What is left of [`MAX_WORK`], whether what was looked at was known or not.
    work: usize,
}

impl<'t> Pairs<'t> {
    fn of(terminals: &'t Terminals<'t>, used: &[u64], counting: &'t Counting) -> Self {
        let (disturbs, wide) = (vec![Vec::new(); terminals.all.len()], vec![0; used.len()]);
        let mut pairs = Pairs { terminals, counting, disturbs, wide, work: MAX_WORK };
        let mut words: Vec<(TerminalId, Vec<u8>)> = Vec::new();
        let mut automata: Vec<(TerminalId, Arc<Alone>)> = Vec::new();
        // One token is the beginning of no other terminal, and token terminals have no ranks: they disturb nothing.
        for t in bits::iter(used).filter(|&t| !terminals.all[t as usize].expr.is_token()) {
            let mut word = Vec::new();
            if only_word(&terminals.all[t as usize].expr, &mut word) {
                words.push((t, word));
            } else if let Some(alone) = pairs.alone(t) {
                if alone.is_wide {
                    bits::insert(&mut pairs.wide, t);
                }
                automata.push((t, alone));
            } else {
                bits::insert(&mut pairs.wide, t);
                bits::iter(used).filter(|&other| other != t).for_each(|other| pairs.keep_apart(t, other));
            }
        }
        pairs.words(&words);
        for (i, (a, alone)) in automata.iter().enumerate() {
            words.iter().for_each(|(t, word)| pairs.word_and_automaton(*t, word, *a, alone));
            automata[..i].iter().for_each(|(b, other)| pairs.automata((*a, alone), (*b, other)));
        }
        pairs
    }

    fn alone(&mut self, id: TerminalId) -> Option<Arc<Alone>> {
        let alone = if self.work > 0 { Alone::of(self.terminals, id, self.counting)? } else { return None };
        self.work = self.work.saturating_sub(alone.dfa.next.len());
        Some(alone)
    }

    /// Terminal `f` would make a difference to a row with `r`.
    fn disturb(&mut self, r: TerminalId, f: TerminalId) {
        self.disturbs[r as usize].push(f);
    }

    fn keep_apart(&mut self, a: TerminalId, b: TerminalId) {
        self.disturb(a, b);
        self.disturb(b, a);
    }

    fn common_word(&mut self, a: TerminalId, b: TerminalId) {
        let rank = |t: TerminalId| self.terminals.all[t as usize].rank();
        match rank(a).cmp(&rank(b)) {
            Ordering::Less => self.disturb(a, b),
            Ordering::Equal => {}
            Ordering::Greater => self.disturb(b, a),
        }
    }

    fn words(&mut self, words: &[(TerminalId, Vec<u8>)]) {
        let mut ids: FxHashMap<&[u8], Vec<TerminalId>> = FxHashMap::default();
        words.iter().for_each(|(t, word)| ids.entry(word).or_default().push(*t));
        // Prefixes of other lengths are no words; looking them all up would take quadratic time.
        let lengths: BTreeSet<usize> = words.iter().map(|(_, word)| word.len()).collect();
        for (f, word) in words {
            for &length in lengths.range(1..word.len().max(1)) {
                ids.get(&word[..length]).into_iter().flatten().for_each(|&t| self.disturb(t, *f));
            }
            ids[&word[..]].iter().filter(|t| *t < f).for_each(|&t| self.common_word(t, *f));
        }
    }

    fn word_and_automaton(&mut self, t: TerminalId, word: &[u8], id: TerminalId, a: &Alone) {
        if a.dfa.chains.iter().any(|chain| chain.length as usize <= word.len()) {
            return self.keep_apart(t, id);
        }
        let mut at = Some(0);
        let mut accepted = false;
        for &byte in word {
            let Some(q) = at else { break };
            accepted |= a.dfa.is_accepting(q);
            at = a.dfa.step(q, byte);
        }
        if accepted {
            self.disturb(id, t);
        }
        let Some(q) = at else { return };
        if a.goes_on[q as usize] {
            self.disturb(t, id);
        }
        if a.dfa.is_accepting(q) {
            self.common_word(id, t);
        }
    }

    fn automata(&mut self, (a, of_a): (TerminalId, &Alone), (b, of_b): (TerminalId, &Alone)) {
        if !of_a.dfa.chains.is_empty() && !of_b.dfa.chains.is_empty() {
            return self.keep_apart(a, b);
        }
        let known = self.terminals.known;
        let verdict = known.verdict(of_a, of_b).or_else(|| {
            let verdict = Verdict::new(of_a, of_b, self.work)?;
            known.keep_verdict(of_a, of_b, verdict);
            Some(verdict)
        });
        let Some(verdict) = verdict.filter(|verdict| verdict.work <= self.work) else {
            self.work = 0;
            return self.keep_apart(a, b);
        };
        self.work -= verdict.work;
        if verdict.too_large || verdict.a_then_b && verdict.b_then_a {
            return self.keep_apart(a, b);
        }
        if verdict.a_then_b {
            self.disturb(a, b);
        }
        if verdict.b_then_a {
            self.disturb(b, a);
        }
        if verdict.common {
            self.common_word(a, b);
        }
    }
}
