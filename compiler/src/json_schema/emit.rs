//! Normalised schemas → a grammar.
//!
//! Each conjunction that is used becomes one symbol: its terminal if it has but one, else a nonterminal. Equal terminal
//! expressions are one terminal. All terminals have one rank, so that none hides another of the same text.

use super::arrays::Counted;
use super::document::Document;
use super::normalise::{Normaliser, Result};
use super::number::{self, Decimal};
use super::shape::{ANY, Conj, NumberSet, StringSet};
use super::{Lowered, Options, Whitespace, string};
use crate::grammar::ir::{Expr, Grammar, GraphState, LexerMode, Nonterminal, Production, Symbol, Terminal, TerminalId};
use crate::grammar::reduce::deriving;
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::sync::{Arc, LazyLock};

/// Productions of one grammar.
const MAX_PRODUCTIONS: usize = 2_000_000;

/// The usual limits of white space, in line feeds and blanks.
const USUAL: (u32, u32) = (2, 64);
/// The runs within them: two hundred states that nearly every grammar has.
static USUAL_WHITE_SPACE: LazyLock<Arc<Expr>> = LazyLock::new(|| Arc::new(white_space(USUAL.0, USUAL.1)));

/// A grammar under construction.
pub(super) struct Emitter<'a> {
    pub(super) normaliser: Normaliser<'a>,
    /// The part of the document that is being written, for errors.
    pub(super) here: &'a Value,
    pub(super) counted: FxHashMap<Counted, u32>,
    pub(super) runs: FxHashMap<Vec<Symbol>, u32>,
    grammar: Grammar,
    terminals: FxHashMap<Arc<Expr>, TerminalId>,
    punctuation: FxHashMap<&'static str, TerminalId>,
    keys: FxHashMap<&'a str, TerminalId>,
    /// Any key but certain ones.
    pub(super) other_keys: FxHashMap<Vec<&'a str>, TerminalId>,
    strings: FxHashMap<Vec<StringSet<'a>>, Option<TerminalId>>,
    number_sets: FxHashMap<Vec<NumberSet>, Option<TerminalId>>,
    symbols: FxHashMap<Conj, Option<Symbol>>,
    pairs: FxHashMap<(TerminalId, Symbol), u32>,
    queue: Vec<(Conj, u32)>,
    comma: TerminalId,
    colon: TerminalId,
}

/// Lower a document.
pub(super) fn lower<'a>(document: Document<'a>, options: &'a Options) -> Result<Lowered> {
    let root = document.root;
    let mut emitter = Emitter {
        normaliser: Normaliser::new(document, options),
        here: root,
        counted: FxHashMap::default(),
        runs: FxHashMap::default(),
        grammar: Grammar {
            start: 0,
            lexer: LexerMode::Contextual,
            terminals: Vec::new(),
            nonterminals: Vec::new(),
            productions: Vec::new(),
        },
        terminals: FxHashMap::default(),
        punctuation: FxHashMap::default(),
        keys: FxHashMap::default(),
        other_keys: FxHashMap::default(),
        strings: FxHashMap::default(),
        number_sets: FxHashMap::default(),
        symbols: FxHashMap::default(),
        pairs: FxHashMap::default(),
        queue: Vec::new(),
        comma: 0,
        colon: 0,
    };
    emitter.document(root)?;
    let Emitter { grammar, normaliser, .. } = emitter;
    Ok(Lowered { grammar, warnings: normaliser.warnings() })
}

impl<'a> Emitter<'a> {
    fn document(&mut self, root: &'a Value) -> Result<()> {
        match self.normaliser.options.whitespace.clone() {
            Whitespace::Flexible { newlines, blanks } => {
                self.comma = self.punctuation(",");
                self.colon = self.punctuation(":");
                self.white_space(newlines, blanks);
            }
            Whitespace::Compact { item, key } => {
                self.comma = self.terminal(&format!("{item:?}"), Expr::Bytes(item.into_bytes()));
                self.colon = self.terminal(&format!("{key:?}"), Expr::Bytes(key.into_bytes()));
            }
        }
        let start = self.nonterminal("start");
        let conj = self.normaliser.schema(root)?;
        if let Some(symbol) = self.symbol(conj)? {
            self.produce(start, vec![symbol]);
        }
        let mut written = 0;
        while let Some((conj, lhs)) = self.queue.pop() {
            self.here = if conj == ANY { root } else { self.normaliser.origin(conj) };
            self.normaliser.spend(self.grammar.productions.len() - written)?;
            written = self.grammar.productions.len();
            self.value(conj, lhs)?;
            if self.grammar.productions.len() > MAX_PRODUCTIONS {
                let reason = format!("the grammar has more than {MAX_PRODUCTIONS} productions; simplify the schema");
                return Err(self.normaliser.too_large(root, reason));
            }
        }
        let Grammar { nonterminals, productions, .. } = &self.grammar;
        if !deriving(nonterminals.len(), productions, |_| true)[start as usize] {
            return Err(self.normaliser.error(root, "", "no value satisfies the schema; its constraints contradict"));
        }
        Ok(())
    }

    /// Runs of white space are ignored up to their limit. Whatever is longer is one lexeme of a terminal that no rule has,
    /// because two runs side by side would be a longer one.
    fn white_space(&mut self, newlines: u32, blanks: u32) {
        if newlines == 0 && blanks == 0 {
            return;
        }
        let within = match (newlines, blanks) {
            USUAL => Arc::clone(&USUAL_WHITE_SPACE),
            _ => Arc::new(white_space(newlines, blanks)),
        };
        let any = Expr::ByteClass(vec![(b'\t', b'\n'), (b'\r', b'\r'), (b' ', b' ')]);
        let allowed = Terminal { ignored: true, ..Terminal::plain("white space", within) };
        let longer = Terminal::plain("too much white space", Expr::Repeat(Box::new(any), 1, None));
        self.grammar.terminals.extend([allowed, Terminal { reject: true, priority: -1, ..longer }]);
    }

    pub(super) fn nonterminal(&mut self, name: &'static str) -> u32 {
        self.grammar.nonterminals.push(Nonterminal { name: name.into(), position: None });
        self.grammar.nonterminals.len() as u32 - 1
    }

    pub(super) fn produce(&mut self, lhs: u32, rhs: Vec<Symbol>) {
        let name = self.grammar.nonterminals[lhs as usize].name.clone();
        self.grammar.productions.push(Production { lhs, rhs, name });
    }

    /// The terminal of an expression; `name` is used if it is new.
    pub(super) fn terminal(&mut self, name: &str, expr: impl Into<Arc<Expr>>) -> TerminalId {
        let expr = expr.into();
        if let Some(&known) = self.terminals.get(&expr) {
            return known;
        }
        let id = self.grammar.terminals.len() as TerminalId;
        self.terminals.insert(Arc::clone(&expr), id);
        self.grammar.terminals.push(Terminal::plain(name, expr));
        id
    }

    /// The terminal of a fixed text.
    pub(super) fn punctuation(&mut self, text: &'static str) -> TerminalId {
        if let Some(&known) = self.punctuation.get(text) {
            return known;
        }
        let id = self.terminal(text, Expr::Bytes(text.as_bytes().to_vec()));
        self.punctuation.insert(text, id);
        id
    }

    pub(super) fn comma(&self) -> TerminalId {
        self.comma
    }

    pub(super) fn key(&mut self, name: &'a str) -> TerminalId {
        if let Some(&known) = self.keys.get(name) {
            return known;
        }
        let id = self.terminal(&serde_json::to_string(name).expect("text is always JSON"), string::literal(name));
        self.keys.insert(name, id);
        id
    }

    /// A member of an object.
    pub(super) fn pair(&mut self, key: TerminalId, value: Symbol) -> Symbol {
        if let Some(&known) = self.pairs.get(&(key, value)) {
            return Symbol::N(known);
        }
        let lhs = self.nonterminal("member");
        self.pairs.insert((key, value), lhs);
        self.produce(lhs, vec![Symbol::T(key), Symbol::T(self.colon), value]);
        Symbol::N(lhs)
    }

    /// The terminal of one text as a value.
    pub(super) fn text(&mut self, text: &'a str) -> Symbol {
        Symbol::T(self.key(text))
    }

    /// The terminal of one number.
    pub(super) fn number(&mut self, n: &Decimal) -> Symbol {
        Symbol::T(self.terminal(&n.to_string(), number::literal_of(n)))
    }

    fn string_terminal(&mut self, sets: &[StringSet<'a>]) -> Result<Option<TerminalId>> {
        if let Some(&known) = self.strings.get(sets) {
            return Ok(known);
        }
        let expr = self.normaliser.languages.strings(sets);
        let expr = expr.map_err(|(text, reason)| match text {
            "" => self.unsupported_here(reason.0),
            text => self.normaliser.at_text(text, reason.0),
        })?;
        let terminal = expr.map(|expr| self.terminal("string", expr));
        self.strings.insert(sets.to_vec(), terminal);
        Ok(terminal)
    }

    fn number_terminal(&mut self, sets: &[NumberSet]) -> Result<Option<TerminalId>> {
        if let Some(&known) = self.number_sets.get(sets) {
            return Ok(known);
        }
        let expr = self.normaliser.languages.numbers(sets).map_err(|reason| self.unsupported_here(reason.0))?;
        let whole = sets.iter().all(|set| set.bounds.integer);
        let terminal = expr.map(|expr| self.terminal(if whole { "integer" } else { "number" }, expr));
        self.number_sets.insert(sets.to_vec(), terminal);
        Ok(terminal)
    }

    /// The terminals of the values that are neither arrays nor objects.
    fn scalars(&mut self, conj: Conj) -> Result<Vec<TerminalId>> {
        let shape = self.normaliser.expand(conj)?;
        let mut out = Vec::new();
        for (there, text) in [(shape.null, "null"), (shape.yes, "true"), (shape.no, "false")] {
            if there {
                out.push(self.punctuation(text));
            }
        }
        if !shape.strings.is_empty() {
            out.extend(self.string_terminal(&shape.strings)?);
        }
        if !shape.numbers.is_empty() {
            out.extend(self.number_terminal(&shape.numbers)?);
        }
        Ok(out)
    }

    /// What stands for a set of values; `None` if it is certainly empty.
    pub(super) fn symbol(&mut self, conj: Conj) -> Result<Option<Symbol>> {
        if let Some(&known) = self.symbols.get(&conj) {
            return Ok(known);
        }
        let outer = self.here;
        if conj != ANY {
            self.here = self.normaliser.origin(conj);
        }
        let scalars = self.scalars(conj)?;
        let shape = self.normaliser.expand(conj)?;
        let symbol = match (&scalars[..], shape.arrays.is_empty() && shape.objects.is_empty()) {
            ([], true) => None,
            (&[only], true) => Some(Symbol::T(only)),
            _ => {
                let lhs = self.nonterminal("value");
                self.queue.push((conj, lhs));
                Some(Symbol::N(lhs))
            }
        };
        self.here = outer;
        self.symbols.insert(conj, symbol);
        Ok(symbol)
    }

    fn value(&mut self, conj: Conj, lhs: u32) -> Result<()> {
        for terminal in self.scalars(conj)? {
            self.produce(lhs, vec![Symbol::T(terminal)]);
        }
        let shape = self.normaliser.expand(conj)?;
        self.arrays(lhs, &shape.arrays)?;
        self.objects(lhs, &shape.objects)
    }
}

/// Runs of so many line feeds and blanks at most.
fn white_space(newlines: u32, blanks: u32) -> Expr {
    let blank = Expr::ByteClass(vec![(b'\t', b'\t'), (b'\r', b'\r'), (b' ', b' ')]);
    let newline = Expr::Bytes(b"\n".to_vec());
    // State b + n · (blanks + 1): so many were read of each.
    let state = |i: u32| {
        let mut edges = Vec::with_capacity(2);
        if i % (blanks + 1) < blanks {
            edges.push((blank.clone(), i + 1));
        }
        if i / (blanks + 1) < newlines {
            edges.push((newline.clone(), i + blanks + 1));
        }
        GraphState { accepting: i > 0, edges }
    };
    Expr::Graph((0..(newlines + 1) * (blanks + 1)).map(state).collect())
}
