//! The stages that every schedule begins with: grammar → LR table → watched lexer → quotient.

use crate::bits;
use crate::config::Config;
use crate::error::CompileError;
use crate::grammar::analysis::Follow;
use crate::grammar::ir::{Grammar, LexerMode, TerminalId};
use crate::grammar::reduce::ReducedGrammar;
use crate::lexer::{
    self, Counting, Cut, Far, Findings, GroupedDfa, Groups, KnownPatterns, LexerError, LexerLimits, Symbols,
    TerminalFacts, Terminals, WatchedError, WatchedLexer, build_watched, unfold,
};
use crate::lr::{Action, LrLimits, LrTable};
use crate::parser_dwa::Quotient;
use crate::terminal_dwa::Builder;
use crate::vocab::Trie;
use crate::{Sizes, Source, control, grammar, parallel};
use dwa_runtime::{Meta, Vocab};
use std::sync::Arc;

/// Largest number of terminals: their ids, and the end's, take 16 bits.
const MAX_TERMINALS: usize = u16::MAX as usize - 1;

/// Productions, and LR states, beyond which it pays to do two things at once.
const LARGE: usize = 500;

/// What the first stages made.
#[derive(Debug)]
pub(crate) struct Front {
    pub grammar: Arc<Grammar>,
    pub reduced: ReducedGrammar,
    pub table: LrTable,
    pub groups: Groups,
    /// Tokens that the lexer reads as one letter.
    pub symbols: Arc<Symbols>,
    pub facts: Arc<TerminalFacts>,
    pub lexer: Arc<WatchedLexer>,
    /// What the states of the lexer stand for that stand for many.
    pub far: Far,
    pub quotient: Arc<Quotient>,
    /// What the author of the grammar should know.
    pub warnings: Vec<String>,
    copied_states: u32,
    sizes: Sizes,
}

impl Front {
    /// Run the stages on a grammar, for a vocabulary, if there is one: its trie, and how many ids it has.
    pub fn build(source: &Source, vocab: Option<(&Trie, usize)>, config: &Config) -> Result<Self, CompileError> {
        let mut counting = Counting { copied_states: config.copied_states.into(), ..Counting::default() };
        loop {
            match Self::build_counting(source, vocab, config, &counting)? {
                Ok(front) => return Ok(front),
                Err(terminals) => counting.copied.extend(terminals),
            }
        }
    }

    /// As [`build`](Self::build); or terminals whose repeats are to be copied: one that cannot be counted, or all, if counting
    /// takes too many states.
    fn build_counting(
        source: &Source,
        vocab: Option<(&Trie, usize)>,
        config: &Config,
        counting: &Counting,
    ) -> Result<Result<Self, Vec<TerminalId>>, CompileError> {
        control::begin("grammar");
        let grammar = Arc::clone(&source.grammar);
        if grammar.terminals.len() > MAX_TERMINALS {
            return Err(CompileError::TooManyTerminals { found: grammar.terminals.len(), limit: MAX_TERMINALS });
        }
        let fallback: Vec<Option<u32>> = grammar.terminals.iter().map(|t| t.fallback).collect();
        let reduced = grammar::epsilon::remove_hidden_recursion(grammar::reduce::validate_and_reduce(&grammar)?);
        let follow = Follow::build(&reduced, &fallback);

        control::begin("lr_table");
        let unkept = KnownPatterns::default();
        let terminals =
            Terminals::new(&grammar.terminals, vocab.map_or(&unkept, |(trie, _)| &trie.patterns), &config.lexer);
        let lexer_error = |error| CompileError::Lexer { position: terminal_position(&grammar, &error), error };
        let symbols = Symbols::new(&grammar.terminals, vocab.map(|(_, size)| size)).map_err(lexer_error)?;
        // The basic lexer does not ask the table for anything.
        let is_basic = grammar.lexer == LexerMode::Basic;
        let (table, of_all) = parallel::join(
            is_basic && grammar.productions.len() > LARGE,
            || LrTable::build(&reduced, &fallback, config.lr),
            || is_basic.then(|| GroupedDfa::basic(&terminals, &symbols, &config.lexer, counting)),
        );
        let table = table?;
        let of_all = of_all.transpose().map_err(lexer_error)?;

        control::begin("lexer");
        let follow: Vec<Vec<u64>> = (0..grammar.terminals.len() as u32).map(|t| follow.after(t).to_vec()).collect();
        let watched = |groups: Groups, dfa: GroupedDfa| -> Result<Result<_, Vec<TerminalId>>, CompileError> {
            let facts = facts(&grammar, &table, &groups, follow.clone());
            let (watched, quotient) = parallel::join(
                table.state_count > LARGE,
                || build_watched(&dfa, &facts, config.max_watched_states),
                || Quotient::new(&table, &groups.of_state),
            );
            let unfolded = watched.and_then(|(counting, findings)| {
                // What is ahead of the counter by a layer must not come to the end either.
                let reach_of =
                    |chain: &lexer::Chain| vocab.map_or(1, |(trie, _)| lexer::reach(trie, &chain.body)).max(1) + 1;
                let reach: Vec<u32> = dfa.chains.iter().map(reach_of).collect();
                Ok((unfold(counting, &reach, config.max_watched_states)?, findings))
            });
            match unfolded {
                Ok(((lexer, far), findings)) => Ok(Ok((groups, dfa, facts, (lexer, far), findings, quotient))),
                Err(WatchedError::Uncountable(chain)) => Ok(Err(vec![dfa.chains[chain as usize].terminal])),
                Err(WatchedError::TooManyStates(_)) if !dfa.chains.is_empty() => {
                    Ok(Err(dfa.chains.iter().map(|chain| chain.terminal).collect()))
                }
                Err(WatchedError::TooManyStates(limit)) => {
                    Err(CompileError::Limit { stage: "lexer", what: "watched lexer states", limit })
                }
            }
        };
        let contextual = |shared: bool| {
            let built = GroupedDfa::contextual(&terminals, &table, &symbols, shared, &config.lexer, counting);
            let (groups, dfa) = built.map_err(lexer_error)?;
            watched(groups, dfa)
        };
        let built = match of_all {
            Some(dfa) => watched(Groups::basic(&table), dfa)?,
            None => contextual(true)?,
        };
        let mut built = match built {
            Ok(built) => built,
            Err(terminals) => return Ok(Err(terminals)),
        };
        // In a lexer that rows share, a terminal of one may look inseparable where only the others can be: so nothing is
        // reported of such a lexer.
        if !built.4.reports.is_empty() && built.0.members.len() < built.0.rows {
            built = match contextual(false)? {
                Ok(built) => built,
                Err(terminals) => return Ok(Err(terminals)),
            };
        }
        let (groups, dfa, facts, (lexer, far), findings, quotient) = built;
        let facts = Arc::new(facts);
        if findings.nothing_begins {
            let name = |t: u32| grammar.terminals[t as usize].name.clone();
            return Err(CompileError::NothingBegins { terminals: bits::iter(&facts.begin).map(name).collect() });
        }
        let warnings = warnings(&grammar, &findings);
        let (symbols, lexer, quotient) = (Arc::new(symbols), Arc::new(lexer), Arc::new(quotient));
        let mut front = Front {
            grammar,
            reduced,
            table,
            groups,
            symbols,
            facts,
            lexer,
            far,
            quotient,
            warnings,
            copied_states: config.copied_states,
            sizes: Sizes::new(),
        };
        front.count(dfa.state_count(), findings.reports.len());
        Ok(Ok(front))
    }

    fn count(&mut self, dfa_states: usize, reports: usize) {
        let counts = [
            ("terminals", self.grammar.terminals.len()),
            ("productions", self.reduced.productions.len()),
            ("lr_states", self.table.state_count),
            ("lr_conflicts", self.table.conflicts),
            ("lr_state_classes", self.quotient.rows.len()),
            ("terminal_classes", self.quotient.terminal_classes),
            ("lexer_rows", self.groups.rows),
            ("lexer_groups", self.groups.members.len()),
            ("lexer_dfa_states", dfa_states),
            ("lexer_states", self.lexer.state_count()),
            ("lexer_states_watched", self.lexer.watched_states),
            ("lexer_states_far", self.far.states.len()),
            ("separability_reports", reports),
        ];
        self.sizes = counts.map(|(what, count)| (what, count as u64)).into();
    }

    /// How many there are of what.
    pub fn sizes(&self) -> Sizes {
        self.sizes.clone()
    }

    /// Makes the recipes of this lexer for a vocabulary.
    pub fn recipes(&self, trie: &Arc<Trie>, config: &Config) -> Builder {
        let terminal_class = Arc::clone(&self.quotient.terminal_class);
        Builder::new(Arc::clone(&self.lexer), Arc::clone(trie), Arc::clone(&self.facts), terminal_class, config)
    }

    /// The scalars of an artifact.
    pub fn meta(&self, verdicts: usize, vocab: &Vocab) -> Meta {
        Meta {
            terminals: self.table.terminal_count as u32,
            nonterminals: self.table.nonterminal_count as u32,
            productions: self.table.productions.len() as u32,
            classes: self.lexer.classes as u32,
            verdicts: verdicts as u32,
            vocab_words: vocab.words() as u32,
            groups: self.groups.members.len() as u32,
            symbols: self.symbols.len() as u32,
            lexer_ids: self.lexer.state_count() as u32 + self.far.ids,
            copied_states: self.copied_states,
        }
    }
}

/// Where the longest match could cut a sentence elsewhere than the grammar does: see [`Cut`].
///
/// # Errors
/// [`CompileError`].
pub fn find_cuts(source: &Source, limits: &LexerLimits) -> Result<Vec<Cut>, CompileError> {
    let grammar = &source.grammar;
    let fallback: Vec<Option<u32>> = grammar.terminals.iter().map(|t| t.fallback).collect();
    let reduced = grammar::epsilon::remove_hidden_recursion(grammar::reduce::validate_and_reduce(grammar)?);
    let table = LrTable::build(&reduced, &fallback, LrLimits::default())?;
    let known = KnownPatterns::default();
    let groups =
        Groups::contextual(&Terminals::new(&grammar.terminals, &known, limits), &table, false, &Counting::none());
    lexer::find_cuts(&grammar.terminals, &groups, &Follow::build(&reduced, &fallback), limits)
        .map_err(|error| CompileError::Lexer { position: terminal_position(grammar, &error), error })
}

fn warnings(grammar: &Grammar, findings: &Findings) -> Vec<String> {
    let name = |t: u32| grammar.terminals[t as usize].name.as_str();
    let unusable = findings.unusable.iter().map(|&t| {
        format!(
            "terminal {} can never be used: another terminal always takes its place, or whatever may follow it is taken \
             into it; texts that need it are not in the language",
            name(t)
        )
    });
    let inseparable = findings.reports.iter().map(|r| {
        format!(
            "after {:?} terminal {} can no longer be separated from a following {}; masks may lead to a dead end or to a \
             lexeme that cannot end",
            String::from_utf8_lossy(&r.text),
            name(r.terminal),
            name(r.follower)
        )
    });
    unusable.chain(inseparable).collect()
}

fn facts(grammar: &Grammar, table: &LrTable, groups: &Groups, follow: Vec<Vec<u64>>) -> TerminalFacts {
    let count = grammar.terminals.len();
    let width = bits::words(count + 1);
    let (mut ignored, mut usable) = (vec![0; width], vec![0; width]);
    for (t, terminal) in grammar.terminals.iter().enumerate() {
        if terminal.ignored {
            bits::insert(&mut ignored, t as u32);
        }
    }
    let mut after: Vec<Vec<(u32, Vec<u64>)>> = vec![Vec::new(); count];
    for state in 0..table.state_count as u32 {
        for (t, actions) in table.row(state) {
            if t as usize >= count || bits::has(&ignored, t) {
                continue;
            }
            for action in actions {
                let Action::Shift(to) = *action else { continue };
                bits::insert(&mut usable, t);
                let group = groups.of_state[to as usize];
                let after = &mut after[t as usize];
                let i = after.iter().position(|(g, _)| *g == group).unwrap_or_else(|| {
                    // With the basic lexer, every terminal takes part in every lexeme.
                    after.push((group, vec![if grammar.lexer == LexerMode::Basic { u64::MAX } else { 0 }; width]));
                    after.len() - 1
                });
                if grammar.lexer == LexerMode::Contextual {
                    table.row_terminals(to).iter().for_each(|&next| bits::insert(&mut after[i].1, next));
                }
            }
        }
    }
    after.iter_mut().for_each(|groups| groups.sort_unstable());
    let mut begin = vec![0; width];
    table.row_terminals(0).iter().for_each(|&t| bits::insert(&mut begin, t));
    TerminalFacts { count, ignored, usable, begin, follow, after }
}

fn terminal_position(grammar: &Grammar, error: &LexerError) -> Option<(u32, u32)> {
    let name = match error {
        LexerError::Nullable { terminal }
        | LexerError::EmptyLanguage { terminal }
        | LexerError::RepeatTooLarge { terminal, .. }
        | LexerError::TooDeep { terminal, .. }
        | LexerError::TokenRange { terminal, .. }
        | LexerError::UnresolvedToken { terminal }
        | LexerError::NfaStates { terminal, .. } => Some(terminal),
        LexerError::Uncountable { .. } => None,
        LexerError::DfaStates { terminal, .. } | LexerError::SubsetElements { terminal, .. } => terminal.as_ref(),
        LexerError::TooManySymbols { .. } => None,
    };
    grammar.terminals.iter().find(|t| Some(&t.name) == name)?.position
}
