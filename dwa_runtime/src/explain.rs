//! Why a token may or may not come next, in words.
//!
//! The output is read again from its start, this time remembering where each branch's pending lexeme began; then the bytes
//! in question, up to the one after which no branch is left. What that byte did to each branch is the answer. Linear in
//! the output: for people, not for decoding.

use crate::commit::Branches;
use crate::error::MatcherError;
use crate::history::Taken;
use crate::lr::Tops;
use crate::matcher::{Compiled, Matcher};
use crate::tables::{NONE, Step};
use std::collections::BTreeSet;

/// Stands for the names of ignored terminals, which an artifact does not tell apart from unused ones.
const IGNORED: &str = "ignored text";
/// Names that a sentence lists.
const LISTED: usize = 8;

/// Whether some bytes may come next, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Whether they may.
    pub allowed: bool,
    /// Why, in a sentence.
    pub reason: String,
    /// The first of the bytes that cannot stand where it does; their number if all can.
    pub at_byte: usize,
    /// Names of the terminals that could have come there.
    pub expected: Vec<String>,
    /// Names of the terminals that came instead; none if the text is no terminal.
    pub found: Vec<String>,
}

/// Terminals, by index: the end of input comes after them, ignored text last.
type Set = BTreeSet<u32>;

/// A branch, where its pending lexeme began, and the longer matches that would end it: where each of them began, and the
/// lexer state that its text leads to.
struct Traced {
    lexer: u32,
    tops: Tops,
    start: usize,
    longer: Vec<(usize, u32)>,
}

/// What the lexer reads: a byte, or a token as one symbol.
#[derive(Clone, Copy)]
enum Letter {
    Byte(u8),
    Symbol(u32),
}

/// What a byte did to a branch.
struct Refusal {
    reason: String,
    expected: Set,
    found: Set,
}

impl Matcher {
    /// Names of the terminals that may come next, or that the pending lexeme can still become; "end of input" if the output
    /// is complete, "ignored text" where that may come.
    pub fn expected_terminals(&self) -> Vec<String> {
        let c = self.compiled();
        if self.is_terminated() { Vec::new() } else { c.names(&c.expected(self.branches())) }
    }

    /// Whether token `id` may come next, and why.
    ///
    /// # Errors
    /// [`MatcherError::TokenRange`]; [`MatcherError::Terminated`].
    pub fn explain(&self, id: u32) -> Result<Explanation, MatcherError> {
        self.check_range(id)?;
        if self.is_terminated() {
            return Err(MatcherError::Terminated);
        }
        let c = self.compiled();
        let bytes = c.vocab().token(id);
        let symbol = c.tables().symbol(id);
        let as_symbol = symbol.map(|symbol| self.explain_symbol(symbol));
        match as_symbol {
            Some(explained) if explained.allowed => return Ok(explained),
            _ if !bytes.is_empty() => return self.explain_bytes(bytes),
            Some(explained) if !c.vocab().is_eos(id) => return Ok(explained),
            _ => {}
        }
        let expected = self.expected_terminals();
        let (allowed, found, reason) = if !c.vocab().is_eos(id) {
            (false, vec![], "this id spells no text (a special token, or padding)".to_string())
        } else if self.is_accepting() {
            (true, vec![c.terminal_name(c.meta().terminals).to_string()], "the output is complete".to_string())
        } else {
            let end = vec![c.terminal_name(c.meta().terminals).to_string()];
            (false, end, format!("the output is not complete; {}", listed("expected", &expected)))
        };
        Ok(Explanation { allowed, reason, at_byte: 0, expected, found })
    }

    /// Whether `bytes` may come next, and why.
    ///
    /// # Errors
    /// [`MatcherError::Terminated`].
    pub fn explain_bytes(&self, bytes: &[u8]) -> Result<Explanation, MatcherError> {
        if self.is_terminated() {
            return Err(MatcherError::Terminated);
        }
        let c = self.compiled();
        let (mut text, mut traced) = self.read_again();
        for (at, &byte) in bytes.iter().enumerate() {
            text.push(byte);
            let next = c.trace(&traced, text.len() - 1, Letter::Byte(byte));
            if next.is_empty() {
                return Ok(c.refused(&traced, &text, at));
            }
            traced = next;
        }
        Ok(c.allowed(traced, bytes.len(), "every byte of it can stand where it does"))
    }

    /// Whether a token may come next as one symbol, and why.
    fn explain_symbol(&self, symbol: u32) -> Explanation {
        let c = self.compiled();
        let (text, traced) = self.read_again();
        let next = c.trace(&traced, text.len(), Letter::Symbol(symbol));
        if !next.is_empty() {
            return c.allowed(next, 0, "the grammar names this token here");
        }
        let mut branches = Branches::default();
        traced.into_iter().for_each(|t| branches.add(t.lexer, t.tops));
        let (found, expected) = (c.names(&c.begun_by(Letter::Symbol(symbol))), c.names(&c.expected(&branches)));
        let reason = format!("token {} cannot come here; {}", joined(&found, "or"), listed("expected", &expected));
        Explanation { allowed: false, reason, at_byte: 0, expected, found }
    }

    /// The output, and the branches after it.
    fn read_again(&self) -> (Vec<u8>, Vec<Traced>) {
        let c = self.compiled();
        let at_start = |(lexer, tops)| Traced { lexer, tops, start: 0, longer: vec![] };
        let (mut text, mut traced) = (Vec::new(), c.lr().initial().drain().map(at_start).collect::<Vec<_>>());
        let mut steps: Vec<Taken> = self.taken_steps().collect();
        steps.reverse();
        for step in steps {
            let (bytes, symbol) = match step {
                Taken::Token(id) => (c.vocab().token(id), c.tables().symbol(id)),
                Taken::Bytes(bytes) => (bytes, None),
            };
            let as_symbol = symbol.map(|symbol| c.trace(&traced, text.len() + bytes.len(), Letter::Symbol(symbol)));
            if bytes.is_empty() && symbol.is_some() {
                traced.clear();
            }
            for &byte in bytes {
                text.push(byte);
                traced = c.trace(&traced, text.len() - 1, Letter::Byte(byte));
            }
            traced.extend(as_symbol.unwrap_or_default());
        }
        (text, traced)
    }
}

impl Compiled {
    fn allowed(&self, traced: Vec<Traced>, at_byte: usize, reason: &str) -> Explanation {
        let mut branches = Branches::default();
        traced.into_iter().for_each(|t| branches.add(t.lexer, t.tops));
        let expected = self.names(&self.expected(&branches));
        Explanation { allowed: true, reason: reason.to_string(), at_byte, expected, found: Vec::new() }
    }

    fn step(&self, lexer: u32, letter: Letter) -> Step {
        match letter {
            Letter::Byte(byte) => self.tables().lexer_step(self.meta(), lexer, byte),
            Letter::Symbol(symbol) => self.tables().symbol_step(self.meta(), lexer, symbol),
        }
    }

    /// The branches after `letter`, which stands at `at`, where a symbol takes no room; those that fail the mask rule are
    /// dropped.
    fn trace(&self, now: &[Traced], at: usize, letter: Letter) -> Vec<Traced> {
        let end = at + usize::from(matches!(letter, Letter::Byte(_)));
        let (lr, tables) = (self.lr(), self.tables());
        let mut next: Vec<Traced> = Vec::new();
        let mut add = |lexer: u32, tops: Tops, start: usize, longer: Vec<(usize, u32)>| {
            let mut kept = Branches::of(lexer, tops);
            lr.retain_viable(&mut kept);
            let Some((_, tops)) = kept.drain().next() else { return };
            match next.iter_mut().find(|t| (t.lexer, t.start) == (lexer, start)) {
                Some(same) => {
                    same.tops.extend(tops);
                    weighted_gss::merge(&mut same.tops);
                }
                None => next.push(Traced { lexer, tops, start, longer }),
            }
        };
        for t in now {
            let Traced { lexer, tops, .. } = t;
            let longer: Vec<(usize, u32)> =
                t.longer.iter().filter_map(|&(from, state)| Some((from, self.inside(state, letter)?))).collect();
            let entry = match self.step(*lexer, letter) {
                Step::Dead => continue,
                Step::To(to) => {
                    add(to, tops.clone(), t.start, longer);
                    continue;
                }
                Step::Entry(entry) => entry,
            };
            for i in tables.entry_start.list(entry) {
                let emits = [tables.entry_emit.get(i), tables.entry_emit2.get(i)];
                let to = tables.after(*lexer, tables.entry_next.get(i));
                let mut tops = tops.clone();
                for emit in emits.into_iter().filter(|&emit| emit != NONE) {
                    tops = lr.change(tops, emit);
                }
                if tops.is_empty() {
                    continue;
                }
                let mut longer = longer.clone();
                if emits[0] != NONE {
                    longer.extend(self.inside(*lexer, letter).map(|state| (t.start, state)));
                }
                let start = match (self.is_between_lexemes(to), emits[0]) {
                    (true, _) => end,
                    (false, NONE) => t.start,
                    (false, _) => at,
                };
                add(to, tops, start, longer);
            }
        }
        next
    }

    /// The state after `letter` if the pending lexeme of `lexer` goes on.
    fn inside(&self, lexer: u32, letter: Letter) -> Option<u32> {
        let tables = self.tables();
        match self.step(lexer, letter) {
            Step::Dead => None,
            Step::To(to) => Some(to),
            Step::Entry(entry) => {
                let mut alternatives = tables.entry_start.list(entry);
                let inside = alternatives.find(|&i| tables.entry_emit.get(i) == NONE);
                inside.map(|i| tables.after(lexer, tables.entry_next.get(i)))
            }
        }
    }

    /// What an emission says the lexeme was.
    fn emitted(&self, emission: u32) -> u32 {
        self.tables().change_set.get(emission as usize)
    }

    fn is_between_lexemes(&self, lexer: u32) -> bool {
        self.tables().live(lexer) == NONE
    }

    /// The last byte of `text` left no branch.
    fn refused(&self, traced: &[Traced], text: &[u8], at_byte: usize) -> Explanation {
        let mut reasons: Vec<String> = Vec::new();
        let (mut expected, mut found) = (Set::new(), Set::new());
        for refusal in traced.iter().flat_map(|t| self.refusals(t, text)) {
            if !reasons.contains(&refusal.reason) {
                reasons.push(refusal.reason);
            }
            expected.extend(refusal.expected);
            found.extend(refusal.found);
        }
        let (expected, found) = (self.names(&expected), self.names(&found));
        let reason = format!("{}; {}", reasons.join(", and "), listed("expected", &expected));
        Explanation { allowed: false, reason, at_byte, expected, found }
    }

    /// Why the last byte of `text` ended a branch, for each way it could have gone on.
    fn refusals(&self, t: &Traced, text: &[u8]) -> Vec<Refusal> {
        let tables = self.tables();
        let (lexer, at) = (t.lexer, text.len() - 1);
        let letter = Letter::Byte(text[at]);
        let Step::Entry(entry) = self.step(lexer, letter) else {
            return match self.step(lexer, letter) {
                Step::To(to) => vec![self.came(&t.tops, tables.live(to), &text[t.start..])],
                _ => vec![self.longer_match(t, text).unwrap_or_else(|| self.no_step(t, text))],
            };
        };
        let mut refusals = Vec::new();
        for i in tables.entry_start.list(entry) {
            let emits = [tables.entry_emit.get(i), tables.entry_emit2.get(i)];
            let to = tables.after(lexer, tables.entry_next.get(i));
            let live = tables.live(to);
            let (ended, rest) = match (emits, live) {
                ([NONE, _], _) => (&text[t.start..t.start], &text[t.start..]),
                ([_, NONE], NONE) => (&text[t.start..], &text[at..at]),
                _ => (&text[t.start..at], &text[at..]),
            };
            let mut tops = t.tops.clone();
            let (mut refusal, mut other_group) = (None, false);
            for (emit, lexeme) in [(emits[0], ended), (emits[1], rest)] {
                if emit == NONE || refusal.is_some() {
                    continue;
                }
                let after = self.lr().change(tops.clone(), emit);
                if after.is_empty() {
                    other_group = !self.lr().emit_set(tops.clone(), self.emitted(emit)).is_empty();
                    refusal = Some(self.came(&tops, self.emitted(emit), lexeme));
                }
                tops = after;
            }
            // Another alternative is for the lexer group that the stacks are of.
            if other_group {
                continue;
            }
            refusals.push(refusal.unwrap_or_else(|| self.came(&tops, live, rest)));
        }
        if refusals.is_empty() {
            refusals.push(self.no_step(t, text));
        }
        refusals
    }

    /// A lexeme, complete or not, that could only be terminals of `set`, on stacks that can shift none of them.
    fn came(&self, tops: &Tops, set: u32, lexeme: &[u8]) -> Refusal {
        let found = self.members(set);
        let expected = self.shiftable(tops);
        let reason =
            format!("{} would be {}, which cannot come here", quoted(lexeme), joined(&self.names(&found), "or"));
        Refusal { reason, expected, found }
    }

    /// The branch had given up a longer match, which came after all.
    fn longer_match(&self, t: &Traced, text: &[u8]) -> Option<Refusal> {
        let byte = Letter::Byte(*text.last()?);
        let completes = |state: u32| {
            let complete = self.inside(state, byte).is_none_or(|to| self.tables().cand(to) != NONE);
            Some(self.begun(state, byte)).filter(|found| complete && !found.is_empty())
        };
        let (from, found) = t.longer.iter().find_map(|&(from, state)| Some((from, completes(state)?)))?;
        let (longer, name) = (quoted(&text[from..]), joined(&self.names(&found), "or"));
        let reason =
            format!("{longer} is a longer match ({name}), so it is not cut before {}", quoted(&text[t.start..]));
        Some(Refusal { reason, expected: self.expected(&Branches::of(t.lexer, t.tops.clone())), found })
    }

    /// What `letter` makes of the lexeme pending in `lexer`, if that goes on: its live set, or what it ends as.
    fn begun(&self, lexer: u32, letter: Letter) -> Set {
        let tables = self.tables();
        match self.step(lexer, letter) {
            Step::Dead => Set::new(),
            Step::To(to) => self.members(tables.live(to)),
            Step::Entry(entry) => tables
                .entry_start
                .list(entry)
                .flat_map(|i| {
                    let to = tables.after(lexer, tables.entry_next.get(i));
                    match (tables.entry_emit.get(i), tables.entry_emit2.get(i)) {
                        (NONE, _) => self.members(tables.live(to)),
                        (emit, NONE) if self.is_between_lexemes(to) => self.members(self.emitted(emit)),
                        _ => Set::new(),
                    }
                })
                .collect(),
        }
    }

    /// What `letter` can begin.
    fn begun_by(&self, letter: Letter) -> Set {
        let states = 0..self.tables().lexer_live.len() as u32;
        states.filter(|&state| self.is_between_lexemes(state)).flat_map(|state| self.begun(state, letter)).collect()
    }

    /// The lexer had no way on.
    fn no_step(&self, t: &Traced, text: &[u8]) -> Refusal {
        let (lexer, at) = (t.lexer, text.len() - 1);
        let (byte, pending) = (quoted(&text[at..]), quoted(&text[t.start..at]));
        let expected = self.expected(&Branches::of(t.lexer, t.tops.clone()));
        let refusal = |reason, found| Refusal { reason, expected: expected.clone(), found };
        if self.is_between_lexemes(lexer) {
            return refusal(format!("no terminal that the grammar uses starts with {byte}"), Set::new());
        }
        let cand = self.tables().cand(lexer);
        if cand == NONE {
            let live = self.names(&self.members(self.tables().live(lexer)));
            let reason = format!("{pending}, which can only become {}, cannot go on with {byte}", joined(&live, "or"));
            return refusal(reason, Set::new());
        }
        let begun = self.begun_by(Letter::Byte(text[at]));
        let what = joined(&self.names(&self.members(cand)), "or");
        if begun.is_empty() {
            let reason = format!("{pending} ({what}) cannot go on with {byte}, and no terminal can start with it");
            return refusal(reason, begun);
        }
        let name = joined(&self.names(&begun), "or");
        refusal(format!("{byte} would be {name}, which cannot follow {pending} ({what})"), begun)
    }

    /// What may come next, or what the pending lexeme can still become.
    fn expected(&self, branches: &Branches) -> Set {
        let (lr, tables) = (self.lr(), self.tables());
        let mut expected = Set::new();
        for (lexer, tops) in branches.groups() {
            let live = tables.live(*lexer);
            let cand = tables.cand(*lexer);
            if live == NONE {
                expected.extend(self.shiftable(tops));
                continue;
            }
            let end = self.meta().terminals;
            expected.extend(self.members(live).into_iter().filter(|&t| t > end || lr.can_shift(tops, t)));
            if cand != NONE {
                expected.extend(self.shiftable(&lr.emit_set(tops.clone(), cand)));
            }
        }
        expected
    }

    /// What can come after complete lexemes.
    fn shiftable(&self, tops: &Tops) -> Set {
        let end = self.meta().terminals;
        if tops.is_empty() {
            return Set::new();
        }
        let mut set: Set = (0..=end).filter(|&t| self.lr().can_shift(tops, t)).collect();
        if self.tables().set_ignored.iter().any(|&ignored| ignored != 0) {
            set.insert(end + 1);
        }
        set
    }

    fn members(&self, set: u32) -> Set {
        if set == NONE {
            return Set::new();
        }
        let mut members: Set = self.tables().set(set).collect();
        if self.tables().set_ignored[set as usize] != 0 {
            members.insert(self.meta().terminals + 1);
        }
        members
    }

    fn names(&self, set: &Set) -> Vec<String> {
        let name = |&t: &u32| if t > self.meta().terminals { IGNORED } else { self.terminal_name(t) };
        set.iter().map(|t| name(t).to_string()).collect()
    }
}

/// Bytes in double quotes, escaped where they are not text.
fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\'' => out.push(c),
                _ => out.extend(c.escape_debug()),
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out.push('"');
    out
}

/// "a, b or c", the first few.
fn joined(names: &[String], word: &str) -> String {
    match names {
        [] => "nothing that the grammar uses".to_string(),
        [only] => only.clone(),
        _ if names.len() > LISTED => {
            format!("{} {word} {} more", names[..LISTED].join(", "), names.len() - LISTED)
        }
        [most @ .., last] => format!("{} {word} {last}", most.join(", ")),
    }
}

fn listed(what: &str, names: &[String]) -> String {
    format!("{what} {}", if names.is_empty() { "nothing".to_string() } else { joined(names, "or") })
}
