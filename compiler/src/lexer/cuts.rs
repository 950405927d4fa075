//! Where the longest match could cut a sentence elsewhere than the grammar does.
//!
//! Dialects without a lexer (GBNF, regular expressions) are cut into terminals by their front end, which must not change
//! the language. It does not if no sentence has a place where terminal `t` ends and the text beyond, which begins like some
//! `f` of FOLLOW(t), lets a terminal of the same universe match more than `t` did. [`find`] looks for such places by walking
//! the group's automaton from where `t` is accepted together with the automaton of `f` alone. It errs on one side only:
//! what may follow `f` in turn is not looked at, but taken to go on with the longer match. A terminal that loses against
//! one of higher rank, which matches the same text, is reported as well, with the winner in both places.

use super::{Groups, LexerDfa, LexerError, LexerLimits};
use crate::grammar::analysis::Follow;
use crate::grammar::ir::{Terminal, TerminalId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// A place where a longer match can take what should follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// A shortest text of `terminal` that begins one of `longer`.
    pub text: Vec<u8>,
    /// The terminal that should end here.
    pub terminal: TerminalId,
    /// What may match more.
    pub longer: TerminalId,
    /// What may follow `terminal`, and begins as the longer match goes on.
    pub follower: TerminalId,
}

/// All such places, the first of each pair of terminals; those that concern one part of a composed grammar only are left
/// out, because its lexing is part of its meaning.
///
/// # Errors
/// [`LexerError`] of the first automaton that cannot be built.
pub fn find(
    terminals: &[Terminal],
    groups: &Groups,
    follow: &Follow,
    limits: &LexerLimits,
) -> Result<Vec<Cut>, LexerError> {
    let end = terminals.len() as TerminalId;
    let part = |t: TerminalId| terminals[t as usize].scope;
    let within_a_part = |ts: &[TerminalId]| part(ts[0]).is_some() && ts.iter().all(|&t| part(t) == part(ts[0]));
    let alone: Vec<LexerDfa> =
        (0..end).map(|t| LexerDfa::build(terminals, &[t], true, limits)).collect::<Result<_, _>>()?;
    let mut cuts = Vec::new();
    let mut seen = FxHashSet::default();
    let starts: Vec<[u64; 4]> = alone.iter().map(|dfa| bytes_of(dfa, 0)).collect();
    for members in groups.members.iter().filter(|members| !members.is_empty()) {
        let of_one_part = within_a_part(members);
        let lexer = LexerDfa::build(terminals, members, false, limits)?;
        let going: Vec<[u64; 4]> = (0..lexer.state_count() as u32).map(|q| bytes_of(&lexer, q)).collect();
        let texts = shortest_texts(&lexer);
        let mut memo: FxHashMap<(u32, TerminalId, Option<u32>), Option<TerminalId>> = FxHashMap::default();
        let mut walks: FxHashMap<(TerminalId, Option<u32>), Walk> = FxHashMap::default();
        for q in (0..lexer.state_count() as u32).filter(|&q| lexer.is_accepting(q)) {
            let candidates = lexer.candidates(q);
            let Some(&best) = candidates.iter().max_by_key(|&&t| terminals[t as usize].rank()) else { continue };
            for &t in candidates {
                let loses = terminals[t as usize].rank() < terminals[best as usize].rank();
                if loses && !within_a_part(&[t, best]) && seen.insert((t, best)) {
                    cuts.push(Cut { text: texts[q as usize].clone(), terminal: t, longer: best, follower: best });
                }
                for f in crate::bits::iter(follow.after(t)).filter(|&f| f != end) {
                    let apart = going[q as usize].iter().zip(starts[f as usize]).all(|(a, b)| a & b == 0);
                    if apart || of_one_part && part(f) == part(t) {
                        continue;
                    }
                    let other = &alone[f as usize];
                    let counts = |longer: TerminalId| !within_a_part(&[t, f, longer]);
                    let longer = *memo.entry((q, f, part(t))).or_insert_with(|| {
                        let walk = walks.entry((f, part(t))).or_insert_with(|| Walk::new(&lexer, other));
                        longer_match(&lexer, q, other, walk, &counts)
                    });
                    if let Some(longer) = longer.filter(|&longer| seen.insert((t, longer))) {
                        cuts.push(Cut { text: texts[q as usize].clone(), terminal: t, longer, follower: f });
                    }
                }
            }
        }
    }
    Ok(cuts)
}

/// The bytes with a transition.
fn bytes_of(dfa: &LexerDfa, q: u32) -> [u64; 4] {
    let mut set = [0; 4];
    (0..=255u8).filter(|&b| dfa.step(q, b).is_some()).for_each(|b| set[usize::from(b) / 64] |= 1 << (b % 64));
    set
}

/// What is known of walks through two automata side by side.
struct Walk {
    /// A byte of each class: those of one class lead both automata to the same states.
    bytes: Vec<u8>,
    /// Pairs of states from which no longer match is found.
    fruitless: FxHashSet<(u32, u32)>,
}

impl Walk {
    fn new(lexer: &LexerDfa, other: &LexerDfa) -> Self {
        let mut seen = FxHashSet::default();
        let class = |b: u8| (lexer.byte_class[usize::from(b)], other.byte_class[usize::from(b)]);
        Walk { bytes: (0..=255u8).filter(|&b| seen.insert(class(b))).collect(), fruitless: FxHashSet::default() }
    }
}

/// Some terminal that `counts` and matches more from `q` on, over text that begins a text of `other` or begins with one.
fn longer_match(
    lexer: &LexerDfa,
    q: u32,
    other: &LexerDfa,
    walk: &mut Walk,
    counts: &impl Fn(TerminalId) -> bool,
) -> Option<TerminalId> {
    let (mut work, mut seen) = (VecDeque::from([(q, 0)]), FxHashSet::default());
    while let Some((a, b)) = work.pop_front() {
        crate::control::check();
        for &byte in &walk.bytes {
            let (Some(a), Some(b)) = (lexer.step(a, byte), other.step(b, byte)) else { continue };
            if walk.fruitless.contains(&(a, b)) || !seen.insert((a, b)) {
                continue;
            }
            let here = lexer.candidates(a).iter().copied().find(|&t| counts(t));
            let found = here.or_else(|| if other.is_accepting(b) { nearest(lexer, a, counts) } else { None });
            if found.is_some() {
                return found;
            }
            work.push_back((a, b));
        }
    }
    walk.fruitless.extend(seen);
    None
}

/// The terminal that `counts` and is accepted soonest after `q`.
fn nearest(lexer: &LexerDfa, q: u32, counts: &impl Fn(TerminalId) -> bool) -> Option<TerminalId> {
    let (mut work, mut seen) = (VecDeque::from([q]), FxHashSet::default());
    while let Some(q) = work.pop_front() {
        if let Some(found) = lexer.candidates(q).iter().copied().find(|&t| counts(t)) {
            return Some(found);
        }
        work.extend(lexer.row(q).iter().filter(|&&to| to != super::DEAD && seen.insert(to)));
    }
    None
}

/// A shortest text of a terminal.
pub fn shortest_text(terminals: &[Terminal], t: TerminalId, limits: &LexerLimits) -> Result<Vec<u8>, LexerError> {
    let dfa = LexerDfa::build(terminals, &[t], true, limits)?;
    let texts = shortest_texts(&dfa);
    let ends = (0..dfa.state_count()).filter(|&q| dfa.is_accepting(q as u32));
    Ok(ends.map(|q| &texts[q]).min_by_key(|text| text.len()).cloned().unwrap_or_default())
}

/// A shortest text that leads to each state.
fn shortest_texts(dfa: &LexerDfa) -> Vec<Vec<u8>> {
    let mut texts = vec![None; dfa.state_count()];
    texts[0] = Some(Vec::new());
    let mut work = VecDeque::from([0u32]);
    while let Some(q) = work.pop_front() {
        for byte in 0..=255u8 {
            let Some(to) = dfa.step(q, byte).filter(|&to| texts[to as usize].is_none()) else { continue };
            let mut text = texts[q as usize].clone().expect("set before it was queued");
            text.push(byte);
            texts[to as usize] = Some(text);
            work.push_back(to);
        }
    }
    texts.into_iter().map(|text| text.expect("every state is reachable")).collect()
}

#[cfg(test)]
mod tests {
    use crate::find_cuts;

    fn cuts(terminals: &str, productions: &str) -> Vec<(Vec<u8>, u32, u32, u32)> {
        let terminals: Vec<String> = terminals
            .split(' ')
            .map(|expr| {
                let (expr, literal) = (expr.trim_end_matches('!'), expr.ends_with('!'));
                format!(
                    r#"{{"name":"t","expr":{expr},"priority":0,"literal":{literal},"ignored":false,"reject":false,"fallback":null,"position":null}}"#
                )
            })
            .collect();
        let text = format!(
            r#"{{"start":0,"lexer":"contextual","terminals":[{}],"nonterminals":[{{"name":"s","position":null}}],"productions":[{productions}]}}"#,
            terminals.join(",")
        );
        let found = find_cuts(&crate::Source::read(text).unwrap(), &Default::default()).unwrap();
        found.into_iter().map(|c| (c.text, c.terminal, c.longer, c.follower)).collect()
    }

    fn production(rhs: &str) -> String {
        format!(r#"{{"lhs":0,"rhs":[{rhs}],"name":"s"}}"#)
    }

    #[test]
    fn a_terminal_that_goes_on_into_itself() {
        let letters = r#"["repeat",["lit","a"],1,null]"#;
        assert_eq!(cuts(letters, &production("0,0")), [(b"a".to_vec(), 0, 0, 0)]);
        assert_eq!(cuts(&format!(r#"{letters} ["lit","b"]"#), &production("0,1,0")), []);
    }

    #[test]
    fn a_terminal_that_loses_by_its_rank() {
        let both = [production("0"), production("1")].join(",");
        assert_eq!(cuts(r#"["lit","a"] ["class",[[97,98]]]"#, &both), []);
        assert_eq!(cuts(r#"["lit","a"]! ["class",[[97,98]]]"#, &both), [(b"a".to_vec(), 1, 0, 0)]);
    }

    #[test]
    fn only_terminals_of_one_universe_compete() {
        let two = r#"["lit","a"] ["lit","ab"] ["lit","b"]"#;
        let both = [production("0,2"), production("1")].join(",");
        assert_eq!(cuts(two, &both), [(b"a".to_vec(), 0, 1, 2)]);
        assert_eq!(cuts(two, &production("0,2,1")), []);
    }

    #[test]
    fn a_longer_match_that_diverges_before_it_is_complete_does_no_harm() {
        let characters = r#"["repeat",["class",[[224,233]]],1,null] ["lit","ñ"]"#;
        assert_eq!(cuts(characters, &production("0,1")), []);
        let numbers = r#"["lit","1"] ["lit","1e5"] ["lit","el"]"#;
        assert_eq!(cuts(numbers, &[production("0,2"), production("1")].join(",")), []);
        let numbers = r#"["lit","1"] ["lit","1e5"] ["lit","e"]"#;
        assert_eq!(cuts(numbers, &[production("0,2"), production("1")].join(",")), [(b"1".to_vec(), 0, 1, 2)]);
    }
}
