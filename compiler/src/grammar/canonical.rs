//! A [`Grammar`] as the canonical JSON that `GrammarIR.to_json` in `glrgrid/grammar/ir.py` writes, byte for byte.

use super::ir::{Expr, Grammar, LexerMode, Symbol};
use std::fmt::Write;

/// Write `grammar` as canonical JSON.
pub fn to_json(grammar: &Grammar) -> String {
    let mut out = Writer(String::with_capacity(1 << 14));
    let lexer = match grammar.lexer {
        LexerMode::Basic => "basic",
        LexerMode::Contextual => "contextual",
    };
    out.format(format_args!("{{\"start\":{},\"lexer\":\"{lexer}\",\"terminals\":[", grammar.start));
    out.list(&grammar.terminals, |out, t| {
        out.raw("{\"name\":").text(&t.name).raw(",\"expr\":").expr(&t.expr);
        out.format(format_args!(
            ",\"priority\":{},\"literal\":{},\"ignored\":{},\"reject\":{},\"fallback\":",
            t.priority, t.literal, t.ignored, t.reject
        ));
        match t.fallback {
            Some(index) => out.format(format_args!("{index}")),
            None => out.raw("null"),
        };
        out.position(t.position);
        if let Some(scope) = t.scope {
            out.format(format_args!(",\"scope\":{scope}"));
        }
        out.raw("}");
    });
    out.raw("],\"nonterminals\":[");
    out.list(&grammar.nonterminals, |out, n| {
        out.raw("{\"name\":").text(&n.name).position(n.position).raw("}");
    });
    out.raw("],\"productions\":[");
    out.list(&grammar.productions, |out, p| {
        out.format(format_args!("{{\"lhs\":{},\"rhs\":[", p.lhs));
        out.list(&p.rhs, |out, symbol| {
            match symbol {
                Symbol::T(t) => out.format(format_args!("{t}")),
                Symbol::N(n) => out.format(format_args!("{}", !(*n as i32))),
            };
        });
        out.raw("],\"name\":").text(&p.name).raw("}");
    });
    out.raw("]}");
    out.0
}

struct Writer(String);

impl Writer {
    fn raw(&mut self, text: &str) -> &mut Self {
        self.0.push_str(text);
        self
    }

    fn format(&mut self, text: std::fmt::Arguments<'_>) -> &mut Self {
        self.0.write_fmt(text).expect("strings take everything");
        self
    }

    /// A string; serde_json and Python escape alike.
    fn text(&mut self, text: &str) -> &mut Self {
        self.raw(&serde_json::to_string(text).expect("text is always JSON"))
    }

    fn position(&mut self, position: Option<(u32, u32)>) -> &mut Self {
        match position {
            Some((line, column)) => self.format(format_args!(",\"position\":[{line},{column}]")),
            None => self.raw(",\"position\":null"),
        }
    }

    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.raw(",");
            }
            write(self, item);
        }
    }

    fn ranges<T: std::fmt::Display>(&mut self, tag: &str, ranges: &[(T, T)]) {
        self.format(format_args!("[\"{tag}\",["));
        self.list(ranges, |out, (low, high)| {
            out.format(format_args!("[{low},{high}]"));
        });
        self.raw("]]");
    }

    fn nested(&mut self, tag: &str, parts: &[Expr]) {
        self.format(format_args!("[\"{tag}\",["));
        self.list(parts, Self::expr);
        self.raw("]]");
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => {
                    self.raw("[\"lit\",").text(text).raw("]");
                }
                Err(_) => {
                    self.raw("[\"bytes\",[");
                    self.list(bytes, |out, byte| {
                        out.format(format_args!("{byte}"));
                    });
                    self.raw("]]");
                }
            },
            Expr::Fold(bytes) => {
                self.raw("[\"fold\",").text(&String::from_utf8_lossy(bytes)).raw("]");
            }
            Expr::Class(ranges) => self.ranges("class", ranges),
            Expr::JsonClass(ranges) => self.ranges("jsonclass", ranges),
            Expr::ByteClass(ranges) => self.ranges("byteclass", ranges),
            Expr::Tokens { negated, ranges, names } => {
                self.format(format_args!("[\"tokens\",{negated},["));
                self.list(ranges, |out, (low, high)| {
                    out.format(format_args!("[{low},{high}]"));
                });
                self.raw("],[");
                self.list(names, |out, name| {
                    out.text(name);
                });
                self.raw("]]");
            }
            Expr::Cat(parts) => self.nested("cat", parts),
            Expr::Alt(parts) => self.nested("alt", parts),
            Expr::And(parts) => self.nested("and", parts),
            Expr::Not(part) => {
                self.raw("[\"not\",").expr(part);
                self.raw("]");
            }
            Expr::Repeat(part, min, max) => {
                self.raw("[\"repeat\",").expr(part);
                match max {
                    Some(max) => self.format(format_args!(",{min},{max}]")),
                    None => self.format(format_args!(",{min},null]")),
                };
            }
            Expr::Graph(states) => {
                self.raw("[\"graph\",[");
                self.list(states, |out, state| {
                    out.format(format_args!("[{},[", state.accepting));
                    out.list(&state.edges, |out, (label, to)| {
                        out.raw("[").expr(label);
                        out.format(format_args!(",{to}]"));
                    });
                    out.raw("]]");
                });
                self.raw("]]");
            }
        }
    }
}
