//! What can be said about a grammar without a vocabulary: sizes, warnings, and LR conflicts with an example of each.

use crate::Source;
use crate::config::Config;
use crate::error::CompileError;
use crate::front::Front;
use crate::grammar::ir::Symbol;
use crate::lexer::{LexerLimits, shortest_text};
use crate::lr::Action;
use std::collections::VecDeque;

/// A place where the parser cannot decide with one terminal of look-ahead, and follows every way.
#[derive(Debug, Clone)]
pub struct Conflict {
    /// Names of the symbols read so far, the shortest such list.
    pub before: Vec<String>,
    /// Name of the terminal that comes next; `None` is the end.
    pub next: Option<String>,
    /// A text that gets there, `next` included; lexemes are separated by a shortest ignored text, if there is one.
    pub example: Vec<u8>,
    /// What the parser can do: `shift`, or the production to apply as `rule: symbols`.
    pub actions: Vec<String>,
}

/// What [`lint`] found.
#[derive(Debug)]
pub struct Findings {
    /// Sizes of lexer and parser.
    pub sizes: Vec<(&'static str, u64)>,
    /// What compiling warns of.
    pub warnings: Vec<String>,
    /// The first conflicts, by LR state.
    pub conflicts: Vec<Conflict>,
}

/// Look at a grammar; at most `max_conflicts` conflicts are described.
///
/// # Errors
/// [`CompileError`].
pub fn lint(source: &Source, max_conflicts: usize) -> Result<Findings, CompileError> {
    let front = Front::build(source, None, &Config::default())?;
    let sizes = front.sizes();
    let examples = Examples::new(&front);
    let cells = front.table.conflict_cells.iter().take(max_conflicts);
    let conflicts = cells.map(|&(state, next)| examples.conflict(state, next)).collect();
    Ok(Findings { sizes, warnings: front.warnings.clone(), conflicts })
}

struct Examples<'a> {
    front: &'a Front,
    /// For each LR state the state and symbol before it on a shortest path from the start.
    before: Vec<Option<(u32, Symbol)>>,
    /// A text of few terminals for each nonterminal.
    sentences: Vec<Vec<u32>>,
    /// A shortest text of each terminal.
    texts: Vec<Vec<u8>>,
    between: Vec<u8>,
}

impl<'a> Examples<'a> {
    fn new(front: &'a Front) -> Self {
        let terminals = &front.grammar.terminals;
        // Terminals that could not be built would have stopped the lexer.
        let text = |t: u32| shortest_text(terminals, t, &LexerLimits::default()).unwrap_or_default();
        let texts: Vec<_> = (0..terminals.len() as u32).map(text).collect();
        let between = terminals.iter().zip(&texts).filter(|(t, _)| t.ignored).map(|(_, text)| text.clone());
        let between = between.min_by_key(Vec::len).unwrap_or_default();
        Examples { front, before: paths(front), sentences: sentences(front), texts, between }
    }

    fn conflict(&self, state: u32, next: u32) -> Conflict {
        let mut symbols = Vec::new();
        let mut at = state;
        while let Some((before, symbol)) = self.before[at as usize] {
            symbols.push(symbol);
            at = before;
        }
        symbols.reverse();
        let is_end = next as usize == self.texts.len();
        let mut terminals: Vec<u32> = symbols.iter().flat_map(|&s| self.terminals_of(s)).collect();
        terminals.extend((!is_end).then_some(next));
        let lexemes: Vec<&[u8]> = terminals.iter().map(|&t| self.texts[t as usize].as_slice()).collect();
        Conflict {
            before: symbols.iter().map(|&s| self.name(s)).collect(),
            next: (!is_end).then(|| self.name(Symbol::T(next))),
            example: lexemes.join(self.between.as_slice()),
            actions: self.front.table.actions(state, next).iter().map(|&a| self.action(a)).collect(),
        }
    }

    fn terminals_of(&self, symbol: Symbol) -> Vec<u32> {
        match symbol {
            Symbol::T(t) => vec![t],
            Symbol::N(n) => self.sentences[n as usize].clone(),
        }
    }

    fn name(&self, symbol: Symbol) -> String {
        match symbol {
            Symbol::T(t) => self.front.grammar.terminals[t as usize].name.clone(),
            Symbol::N(n) => self.front.reduced.nonterminal_names[n as usize].to_string(),
        }
    }

    fn action(&self, action: Action) -> String {
        match action {
            Action::Shift(_) => "shift".into(),
            Action::Accept => "accept".into(),
            Action::Reduce(p) => {
                let production = &self.front.reduced.productions[p as usize];
                let rhs: Vec<String> = production.rhs.iter().map(|&s| self.name(s)).collect();
                format!("{}: {}", self.name(Symbol::N(production.lhs)), rhs.join(" ")).trim_end().into()
            }
        }
    }
}

/// Breadth-first over the LR automaton.
fn paths(front: &Front) -> Vec<Option<(u32, Symbol)>> {
    let table = &front.table;
    let mut before = vec![None; table.state_count];
    let mut work = VecDeque::from([0u32]);
    while let Some(state) = work.pop_front() {
        let shifts = table.row(state).flat_map(|(t, actions)| actions.iter().map(move |&a| (Symbol::T(t), a)));
        let shifts = shifts.filter_map(|(s, a)| if let Action::Shift(to) = a { Some((s, to)) } else { None });
        for (symbol, to) in shifts.chain(table.gotos(state).map(|(n, to)| (Symbol::N(n), to))) {
            // No edge leads back to the start.
            if before[to as usize].is_none() {
                before[to as usize] = Some((state, symbol));
                work.push_back(to);
            }
        }
    }
    before
}

/// Few terminals that each nonterminal derives, by repeated improvement; a reduced grammar has some for all.
fn sentences(front: &Front) -> Vec<Vec<u32>> {
    let mut found: Vec<Option<Vec<u32>>> = vec![None; front.reduced.nonterminal_names.len()];
    loop {
        let mut changed = false;
        for p in &front.reduced.productions {
            let parts = p.rhs.iter().map(|&s| match s {
                Symbol::T(t) => Some(vec![t]),
                Symbol::N(n) => found[n as usize].clone(),
            });
            let Some(parts) = parts.collect::<Option<Vec<_>>>() else { continue };
            let sentence = parts.concat();
            let known = &mut found[p.lhs as usize];
            if known.as_ref().is_none_or(|k| sentence.len() < k.len()) {
                *known = Some(sentence);
                changed = true;
            }
        }
        if !changed {
            return found.into_iter().map(Option::unwrap_or_default).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_dangling_else() {
        let terminal = |text: &str| {
            format!(
                r#"{{"name":"{text}","expr":["lit","{text}"],"priority":0,"literal":true,"ignored":false,"reject":false,"fallback":null,"position":null}}"#
            )
        };
        let terminals: Vec<String> = ["if", "else", "x"].map(terminal).to_vec();
        let space = terminals[0].replace("if", " ").replace(r#""ignored":false"#, r#""ignored":true"#);
        let productions = ["0,-1", "0,-1,1,-1", "2"].map(|rhs| format!(r#"{{"lhs":0,"rhs":[{rhs}],"name":"s"}}"#));
        let text = format!(
            r#"{{"start":0,"lexer":"basic","terminals":[{},{space}],"nonterminals":[{{"name":"s","position":null}}],"productions":[{}]}}"#,
            terminals.join(","),
            productions.join(",")
        );
        let found = super::lint(&crate::Source::read(text).unwrap(), 10).unwrap();
        let [conflict] = &found.conflicts[..] else { panic!("{:?}", found.conflicts) };
        assert_eq!(conflict.before, ["if", "s"]);
        assert_eq!(conflict.next.as_deref(), Some("else"));
        assert_eq!(conflict.example, b"if x else");
        assert_eq!(conflict.actions, ["shift", "s: if s"]);
    }
}
