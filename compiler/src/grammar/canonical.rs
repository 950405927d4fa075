//! A [`Grammar`] as the canonical JSON that `GrammarIR.to_json` in `glrgrid/grammar/ir.py` writes, byte for byte.

use super::ir::{Expr, Grammar, LexerMode, Symbol};
/// Write `grammar` as canonical JSON.
pub fn to_json(grammar: &Grammar) -> String {
    let mut out = Writer(Vec::with_capacity(1 << 15));
    let lexer = match grammar.lexer {
        LexerMode::Basic => "basic",
        LexerMode::Contextual => "contextual",
    };
    out.raw("{\"start\":").number(grammar.start).raw(",\"lexer\":\"").raw(lexer).raw("\",\"terminals\":[");
    out.list(&grammar.terminals, |out, t| {
        out.raw("{\"name\":").text(&t.name).raw(",\"expr\":").expr(&t.expr);
        out.raw(",\"priority\":").signed(t.priority).raw(",\"literal\":").flag(t.literal);
        out.raw(",\"ignored\":").flag(t.ignored).raw(",\"reject\":").flag(t.reject);
        out.raw(",\"fallback\":").optional(t.fallback).position(t.position);
        if let Some(scope) = t.scope {
            out.raw(",\"scope\":").number(scope);
        }
        out.raw("}");
    });
    out.raw("],\"nonterminals\":[");
    out.list(&grammar.nonterminals, |out, n| {
        out.raw("{\"name\":").text(&n.name).position(n.position).raw("}");
    });
    out.raw("],\"productions\":[");
    out.list(&grammar.productions, |out, p| {
        out.raw("{\"lhs\":").number(p.lhs).raw(",\"rhs\":[");
        out.list(&p.rhs, |out, symbol| {
            match symbol {
                Symbol::T(t) => out.number(*t),
                Symbol::N(n) => out.signed(!(*n as i32)),
            };
        });
        out.raw("],\"name\":").text(&p.name).raw("}");
    });
    out.raw("]}");
    String::from_utf8(out.0).expect("it is made of texts")
}

struct Writer(Vec<u8>);

impl Writer {
    fn raw(&mut self, text: &str) -> &mut Self {
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    /// Digit by digit: there are thousands of small numbers, for which formatting takes several times as long.
    fn number(&mut self, number: u32) -> &mut Self {
        let (mut digits, mut first, mut rest) = ([0; 10], 10, number);
        while rest > 0 || first == 10 {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        self.0.extend_from_slice(&digits[first..]);
        self
    }

    fn signed(&mut self, number: i32) -> &mut Self {
        if number < 0 {
            self.raw("-");
        }
        self.number(number.unsigned_abs())
    }

    fn optional(&mut self, number: Option<u32>) -> &mut Self {
        match number {
            Some(number) => self.number(number),
            None => self.raw("null"),
        }
    }

    fn flag(&mut self, flag: bool) -> &mut Self {
        self.raw(if flag { "true" } else { "false" })
    }

    /// A string; serde_json and Python escape alike.
    fn text(&mut self, text: &str) -> &mut Self {
        if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
            return self.raw("\"").raw(text).raw("\"");
        }
        self.raw(&serde_json::to_string(text).expect("text is always JSON"))
    }

    fn position(&mut self, position: Option<(u32, u32)>) -> &mut Self {
        match position {
            Some(position) => self.raw(",\"position\":").pair(position),
            None => self.raw(",\"position\":null"),
        }
    }

    fn pair(&mut self, (first, second): (u32, u32)) -> &mut Self {
        self.raw("[").number(first).raw(",").number(second).raw("]")
    }

    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.raw(",");
            }
            write(self, item);
        }
    }

    fn ranges<T: Copy + Into<u32>>(&mut self, tag: &str, ranges: &[(T, T)]) {
        self.raw("[\"").raw(tag).raw("\",[");
        self.list(ranges, |out, &(low, high)| {
            out.pair((low.into(), high.into()));
        });
        self.raw("]]");
    }

    fn nested(&mut self, tag: &str, parts: &[Expr]) {
        self.raw("[\"").raw(tag).raw("\",[");
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
                    self.list(bytes, |out, &byte| {
                        out.number(byte.into());
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
                self.raw("[\"tokens\",").flag(*negated).raw(",[");
                self.list(ranges, |out, &range| {
                    out.pair(range);
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
                self.raw(",").number(*min).raw(",").optional(*max).raw("]");
            }
            Expr::Graph(states) => {
                self.raw("[\"graph\",[");
                self.list(states, |out, state| {
                    out.raw("[").flag(state.accepting).raw(",[");
                    out.list(&state.edges, |out, (label, to)| {
                        out.raw("[").expr(label);
                        out.raw(",").number(*to).raw("]");
                    });
                    out.raw("]]");
                });
                self.raw("]]");
            }
        }
    }
}
