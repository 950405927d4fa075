//! ECMA-262 regular expressions → syntax trees.
//!
//! The grammar is that of the `u` flag, loosened as Annex B loosens the other one where both readings agree: `\-` and
//! other punctuation may be escaped, `{`, `}` and `]` may stand for themselves, `[\w-.]` has a hyphen. What only other
//! dialects know, or read differently, is refused: `(?P<n>…)`, `(?i)`, `\A`, `\Z`, `a{,5}`, `a++`.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange, HirKind};

use super::super::Reason;

/// Groups in groups beyond which a pattern is refused.
const MAX_DEPTH: usize = 50;

/// A regular expression. Captures and laziness are gone: they change no language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Set(ClassUnicode),
    Cat(Vec<Node>),
    Alt(Vec<Node>),
    Repeat(Box<Node>, u32, Option<u32>),
    /// `^`
    Begin,
    /// `$`
    End,
    /// `\b`, or `\B` if false.
    Boundary(bool),
    /// `(?=…)`, or `(?!…)` if false.
    Ahead(bool, Box<Node>),
    /// `(?<=…)`, or `(?<!…)` if false.
    Behind(bool, Box<Node>),
}

impl Node {
    /// Is there anything in it that looks at what it does not match?
    pub(super) fn has_assertion(&self) -> bool {
        match self {
            Node::Set(_) => false,
            Node::Cat(parts) | Node::Alt(parts) => parts.iter().any(Node::has_assertion),
            Node::Repeat(body, ..) => body.has_assertion(),
            _ => true,
        }
    }
}

pub(super) fn set(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|&(lo, hi)| ClassUnicodeRange::new(lo, hi)))
}

/// `[0-9A-Za-z_]`, what `\b` calls a word character.
pub(super) fn word() -> ClassUnicode {
    set(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')])
}

fn line_terminators() -> ClassUnicode {
    set(&[('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')])
}

fn space() -> ClassUnicode {
    set(&[
        ('\t', '\r'),
        (' ', ' '),
        ('\u{A0}', '\u{A0}'),
        ('\u{1680}', '\u{1680}'),
        ('\u{2000}', '\u{200A}'),
        ('\u{2028}', '\u{2029}'),
        ('\u{202F}', '\u{202F}'),
        ('\u{205F}', '\u{205F}'),
        ('\u{3000}', '\u{3000}'),
        ('\u{FEFF}', '\u{FEFF}'),
    ])
}

fn negated(mut set: ClassUnicode) -> ClassUnicode {
    set.negate();
    set
}

/// A code point, which may be a surrogate alone, or a set of them.
enum Atom {
    Code(u32),
    Set(ClassUnicode),
}

impl Atom {
    fn set(self) -> ClassUnicode {
        match self {
            Atom::Code(code) => code_range(code, code),
            Atom::Set(set) => set,
        }
    }
}

/// The characters from `lo` to `hi`; surrogates are none.
fn code_range(lo: u32, hi: u32) -> ClassUnicode {
    let parts = [(lo, hi.min(0xD7FF)), (lo.max(0xE000), hi)];
    let chars =
        parts.iter().filter(|(lo, hi)| lo <= hi).filter_map(|&(lo, hi)| char::from_u32(lo).zip(char::from_u32(hi)));
    set(&chars.collect::<Vec<_>>())
}

/// The tree of `pattern`.
pub(super) fn parse(pattern: &str) -> Result<Node, Reason> {
    let mut parser = Parser { chars: pattern.chars().collect(), at: 0, depth: 0 };
    let node = parser.alternatives()?;
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(parser.error("\")\" without \"(\"")),
    }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn error(&self, what: impl std::fmt::Display) -> Reason {
        Reason(format!("pattern {:?}: {what} (character {})", self.chars.iter().collect::<String>(), self.at + 1))
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn take(&mut self, text: &str) -> bool {
        let found = text.chars().enumerate().all(|(i, c)| self.chars.get(self.at + i) == Some(&c));
        if found {
            self.at += text.chars().count();
        }
        found
    }

    fn alternatives(&mut self) -> Result<Node, Reason> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(format_args!("groups are nested deeper than {MAX_DEPTH}")));
        }
        let mut all = vec![self.sequence()?];
        while self.take("|") {
            all.push(self.sequence()?);
        }
        self.depth -= 1;
        Ok(if all.len() == 1 { all.remove(0) } else { Node::Alt(all) })
    }

    fn sequence(&mut self) -> Result<Node, Reason> {
        let mut parts = Vec::new();
        while !matches!(self.peek(), None | Some('|' | ')')) {
            let (node, repeatable) = self.term()?;
            match self.quantified(node, repeatable)? {
                Node::Cat(inner) => parts.extend(inner),
                node => parts.push(node),
            }
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Node::Cat(parts) })
    }

    /// A term before its quantifier, and whether it may have one.
    fn term(&mut self) -> Result<(Node, bool), Reason> {
        let start = self.at;
        let Some(c) = self.peek() else { return Err(self.error("a term is missing")) };
        self.at += 1;
        Ok(match c {
            '^' => (Node::Begin, false),
            '$' => (Node::End, false),
            '.' => (Node::Set(negated(line_terminators())), true),
            '(' => self.group()?,
            '[' => (Node::Set(self.class()?), true),
            '\\' => match self.peek() {
                Some(c @ ('b' | 'B')) => {
                    self.at += 1;
                    (Node::Boundary(c == 'b'), false)
                }
                _ => (Node::Set(self.escape()?.set()), true),
            },
            '*' | '+' | '?' => {
                self.at = start;
                return Err(self.error(format_args!("nothing to repeat before {c:?}")));
            }
            '{' => {
                self.at = start;
                if self.counts()?.is_some() {
                    return Err(self.error("nothing to repeat before a count"));
                }
                self.at = start + 1;
                (Node::Set(set(&[('{', '{')])), true)
            }
            c => (Node::Set(set(&[(c, c)])), true),
        })
    }

    fn group(&mut self) -> Result<(Node, bool), Reason> {
        type Wrap = fn(Box<Node>) -> Node;
        let (wrap, repeatable): (Option<Wrap>, bool) = if self.take("?:") {
            (None, true)
        } else if self.take("?=") {
            (Some(|node| Node::Ahead(true, node)), true)
        } else if self.take("?!") {
            (Some(|node| Node::Ahead(false, node)), true)
        } else if self.take("?<=") {
            (Some(|node| Node::Behind(true, node)), false)
        } else if self.take("?<!") {
            (Some(|node| Node::Behind(false, node)), false)
        } else if self.take("?<") {
            let start = self.at;
            while self.peek().is_some_and(|c| c == '$' || c == '_' || c.is_alphanumeric()) {
                self.at += 1;
            }
            if self.at == start || self.chars[start].is_numeric() || !self.take(">") {
                return Err(self.error("a group's name is not an identifier followed by \">\""));
            }
            (None, true)
        } else if self.peek() == Some('?') {
            let found: String = self.chars[self.at..].iter().take(2).collect();
            return Err(self.error(format_args!("\"({found}\" begins no group of ECMA-262")));
        } else {
            (None, true)
        };
        let body = self.alternatives()?;
        if !self.take(")") {
            return Err(self.error("\")\" is missing"));
        }
        let node = match wrap {
            Some(wrap) => wrap(Box::new(body)),
            None => body,
        };
        Ok((node, repeatable))
    }

    fn quantified(&mut self, node: Node, repeatable: bool) -> Result<Node, Reason> {
        let start = self.at;
        let counts = match self.peek() {
            Some('*') => Some((0, None)),
            Some('+') => Some((1, None)),
            Some('?') => Some((0, Some(1))),
            Some('{') => self.counts()?,
            _ => None,
        };
        let Some((min, max)) = counts else {
            self.at = start;
            return Ok(node);
        };
        if !repeatable {
            self.at = start;
            return Err(self.error("an assertion cannot be repeated"));
        }
        if self.chars[start] != '{' {
            self.at += 1;
        }
        self.take("?");
        Ok(Node::Repeat(Box::new(node), min, max))
    }

    /// `{n}`, `{n,}` or `{n,m}`, if that is what comes here; otherwise the brace is an ordinary character.
    fn counts(&mut self) -> Result<Option<(u32, Option<u32>)>, Reason> {
        self.at += 1;
        if self.peek() == Some(',') {
            let digits = self.chars[self.at + 1..].iter().take_while(|c| c.is_ascii_digit()).count();
            if digits > 0 && self.chars.get(self.at + 1 + digits) == Some(&'}') {
                return Err(self.error("a count without a lower bound is not ECMA-262, write {0,…}"));
            }
        }
        let Some(min) = self.count()? else { return Ok(None) };
        let max = if self.take(",") { self.count()? } else { Some(min) };
        if !self.take("}") {
            return Ok(None);
        }
        match max {
            Some(max) if max < min => Err(self.error("a count's bounds are out of order")),
            max => Ok(Some((min, max))),
        }
    }

    fn count(&mut self) -> Result<Option<u32>, Reason> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        let digits: String = self.chars[start..self.at].iter().collect();
        if digits.is_empty() {
            return Ok(None);
        }
        let count = digits.parse().map_err(|_| self.error(format_args!("a count is greater than {}", u32::MAX)))?;
        Ok(Some(count))
    }

    /// What follows a backslash, outside of a class and inside.
    fn escape(&mut self) -> Result<Atom, Reason> {
        let Some(c) = self.peek() else { return Err(self.error("the pattern ends in a backslash")) };
        self.at += 1;
        let next = self.peek();
        Ok(match c {
            'd' => Atom::Set(set(&[('0', '9')])),
            'D' => Atom::Set(negated(set(&[('0', '9')]))),
            'w' => Atom::Set(word()),
            'W' => Atom::Set(negated(word())),
            's' => Atom::Set(space()),
            'S' => Atom::Set(negated(space())),
            'p' | 'P' => Atom::Set(self.property(c == 'P')?),
            't' => Atom::Code(0x09),
            'n' => Atom::Code(0x0A),
            'v' => Atom::Code(0x0B),
            'f' => Atom::Code(0x0C),
            'r' => Atom::Code(0x0D),
            '0' if !next.is_some_and(|c| c.is_ascii_digit()) => Atom::Code(0),
            'c' if next.is_some_and(|c| c.is_ascii_alphabetic()) => {
                self.at += 1;
                Atom::Code(next.map_or(0, |c| c as u32 % 32))
            }
            'x' => match self.hex(2) {
                Some(code) => Atom::Code(code),
                None => return Err(self.error("\"\\x\" wants two hexadecimal digits")),
            },
            'u' => Atom::Code(self.unicode()?),
            '0'..='9' => {
                return Err(self.error(format_args!(
                    "\"\\{c}\" is a backreference or an octal escape; a backreference is not regular, list the texts instead"
                )));
            }
            'k' => return Err(self.error("a backreference is not regular, list the texts instead")),
            c if c.is_ascii_alphabetic() => {
                return Err(self.error(format_args!("\"\\{c}\" has no meaning in ECMA-262")));
            }
            c => Atom::Code(c as u32),
        })
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let text: String = self.chars.get(self.at..self.at + digits)?.iter().collect();
        let code = text.chars().all(|c| c.is_ascii_hexdigit()).then(|| u32::from_str_radix(&text, 16).ok())??;
        self.at += digits;
        Some(code)
    }

    /// What follows `\u`: a code point in braces, or four digits, or a surrogate pair of them.
    fn unicode(&mut self) -> Result<u32, Reason> {
        if self.take("{") {
            let digits = self.chars[self.at..].iter().take_while(|c| c.is_ascii_hexdigit()).count();
            let code = self.hex(digits).filter(|&code| digits > 0 && code <= 0x10FFFF);
            return match code {
                Some(code) if self.take("}") => Ok(code),
                _ => Err(self.error("\"\\u{\" wants a code point in hexadecimal digits and \"}\"")),
            };
        }
        let Some(high) = self.hex(4) else { return Err(self.error("\"\\u\" wants four hexadecimal digits or braces")) };
        let start = self.at;
        if (0xD800..0xDC00).contains(&high) && self.take("\\u") {
            match self.hex(4) {
                Some(low @ 0xDC00..=0xDFFF) => return Ok(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)),
                _ => self.at = start,
            }
        }
        Ok(high)
    }

    /// What follows `\p` or `\P`.
    fn property(&mut self, is_negated: bool) -> Result<ClassUnicode, Reason> {
        let start = self.at;
        let name = |c: &&char| c.is_ascii_alphanumeric() || matches!(c, '_' | '=');
        if self.take("{") {
            self.at += self.chars[self.at..].iter().take_while(name).count();
        }
        let text: String = self.chars[start..self.at].iter().collect();
        if !self.take("}") {
            return Err(self.error("\"\\p\" wants the name of a Unicode property in braces"));
        }
        match regex_syntax::parse(&format!("\\p{text}}}")).map(regex_syntax::hir::Hir::into_kind) {
            Ok(HirKind::Class(regex_syntax::hir::Class::Unicode(set))) => {
                Ok(if is_negated { negated(set) } else { set })
            }
            Ok(HirKind::Literal(literal)) => {
                let chars = String::from_utf8_lossy(&literal.0).chars().map(|c| (c, c)).collect::<Vec<_>>();
                Ok(if is_negated { negated(set(&chars)) } else { set(&chars) })
            }
            _ => Err(self.error(format_args!("no Unicode property is called \"{}\"", &text[1..]))),
        }
    }

    /// What follows `[`.
    fn class(&mut self) -> Result<ClassUnicode, Reason> {
        let is_negated = self.take("^");
        let mut all = ClassUnicode::empty();
        while !self.take("]") {
            let first = self.class_atom()?;
            let ahead = self.chars.get(self.at + 1);
            if self.peek() != Some('-') || matches!(ahead, Some(']') | None) {
                all.union(&first.set());
                continue;
            }
            self.at += 1;
            match (first, self.class_atom()?) {
                (Atom::Code(lo), Atom::Code(hi)) if lo <= hi => all.union(&code_range(lo, hi)),
                (Atom::Code(_), Atom::Code(_)) => return Err(self.error("a range is out of order")),
                // Annex B: with a set at either end the hyphen is a hyphen.
                (first, last) => {
                    all.union(&first.set());
                    all.union(&set(&[('-', '-')]));
                    all.union(&last.set());
                }
            }
        }
        Ok(if is_negated { negated(all) } else { all })
    }

    fn class_atom(&mut self) -> Result<Atom, Reason> {
        let Some(c) = self.peek() else { return Err(self.error("\"]\" is missing")) };
        self.at += 1;
        if c != '\\' {
            return Ok(Atom::Code(c as u32));
        }
        let escaped = self.peek();
        if matches!(escaped, Some('b' | '-')) {
            self.at += 1;
            return Ok(Atom::Code(if escaped == Some('b') { 0x08 } else { '-' as u32 }));
        }
        self.escape()
    }
}
