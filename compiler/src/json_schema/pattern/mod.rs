//! `pattern`: ECMA-262 regular expressions → languages of decoded strings.
//!
//! A pattern matches anywhere in a string, so its language is that of the strings around a match. Strings are sequences of
//! code points, as with the `u` flag; `^` and `$` are the ends of the string. `parse` reads the text. Where assertions
//! stand at the ends (`^…$`, look-aheads after `^`), they are taken away and the rest is an [`Expr`] of the same shape,
//! so repeats stay repeats; look-aheads become factors of an intersection. Where they stand elsewhere, `automaton` follows
//! them symbol by symbol. Backreferences are not regular and are refused.

mod automaton;
mod parse;
#[cfg(test)]
mod tests;

use regex_syntax::hir::ClassUnicode;
use std::collections::VecDeque;

use super::Reason;
use super::string::any_char;
use crate::grammar::ir::Expr;
use parse::Node;

/// The strings in which `pattern` matches somewhere.
///
/// # Errors
/// If it is not a regular expression of ECMA-262, has a backreference, or grows too large.
pub fn ecma(pattern: &str) -> Result<Expr, Reason> {
    let node = parse::parse(pattern)?;
    search(node).map_err(|reason| Reason(format!("pattern {pattern:?}: {reason}")))
}

fn search(node: Node) -> Result<Expr, String> {
    let alternatives = match node {
        Node::Alt(all) => all,
        node => vec![node],
    };
    // Alternatives that are open at the same ends share what is around them: any*(a|b)any*, not any*a any*|any*b any*.
    let mut bodies: Vec<(Ends, Vec<Expr>)> = Vec::new();
    let mut all = Vec::new();
    for node in alternatives {
        let parts = match node {
            Node::Cat(parts) => parts,
            node => vec![node],
        };
        let Some((ends, aheads, body)) = split(&parts) else {
            all.push(automaton::search(&Node::Cat(parts))?);
            continue;
        };
        if aheads.is_empty() {
            match bodies.iter_mut().find(|(other, _)| *other == ends) {
                Some((_, bodies)) => bodies.push(body),
                None => bodies.push((ends, vec![body])),
            }
            continue;
        }
        let mut factors = vec![around(ends, body)];
        for (wanted, body) in aheads {
            let here = search(anchored(body))?;
            factors.push(if wanted { here } else { Expr::Not(Box::new(here)) });
        }
        all.push(Expr::And(factors));
    }
    all.extend(bodies.into_iter().map(|(ends, bodies)| around(ends, one_or_alt(bodies))));
    Ok(one_or_alt(all))
}

fn one_or_alt(mut all: Vec<Expr>) -> Expr {
    if all.len() == 1 { all.remove(0) } else { Expr::Alt(all) }
}

/// May anything come before a match, and after it?
type Ends = (bool, bool);

/// Look-aheads, and whether they are wanted.
type Aheads = Vec<(bool, Node)>;

/// An alternative as its ends, the look-aheads at the string's beginning, and what is to be matched; none if there are
/// assertions elsewhere.
fn split(parts: &[Node]) -> Option<(Ends, Aheads, Expr)> {
    let head = leading_assertions(parts);
    let tail = parts[head..].iter().rev().take_while(|part| **part == Node::End).count();
    let body = &parts[head..parts.len() - tail];
    if body.iter().any(Node::has_assertion) {
        return None;
    }
    let ends = (head == 0, tail == 0);
    let mut exprs: VecDeque<Expr> = body.iter().map(lower).collect();
    if ends.0 {
        shorten(&mut exprs, VecDeque::pop_front, VecDeque::push_front);
    }
    if ends.1 {
        shorten(&mut exprs, VecDeque::pop_back, VecDeque::push_back);
    }
    let aheads = parts[..head].iter().filter_map(|part| match part {
        Node::Ahead(wanted, body) => Some((*wanted, (**body).clone())),
        _ => None,
    });
    Some((ends, aheads.collect(), Expr::Cat(exprs.into())))
}

fn around((before, after): Ends, body: Expr) -> Expr {
    let anything = || Expr::Repeat(Box::new(any_char()), 0, None);
    match (before, after) {
        (true, true) if body == Expr::Cat(Vec::new()) => anything(),
        (false, false) => body,
        _ => Expr::Cat([before.then(anything), Some(body), after.then(anything)].into_iter().flatten().collect()),
    }
}

/// How many parts come before the first that is neither `^` nor a look-ahead at the string's beginning; 0 without a `^`.
fn leading_assertions(parts: &[Node]) -> usize {
    if parts.first() != Some(&Node::Begin) {
        return 0;
    }
    parts.iter().take_while(|part| matches!(part, Node::Begin | Node::Ahead(..))).count()
}

/// `node`, matched at the string's beginning.
fn anchored(node: Node) -> Node {
    match node {
        Node::Alt(all) => Node::Alt(all.into_iter().map(anchored).collect()),
        Node::Cat(parts) => Node::Cat(std::iter::once(Node::Begin).chain(parts).collect()),
        node => Node::Cat(vec![Node::Begin, node]),
    }
}

/// Take optional copies off the part at an end beyond which anything may come: any*·a{2,9} is any*·a{2}.
fn shorten(
    exprs: &mut VecDeque<Expr>,
    pop: fn(&mut VecDeque<Expr>) -> Option<Expr>,
    push: fn(&mut VecDeque<Expr>, Expr),
) {
    while let Some(part) = pop(exprs) {
        match part {
            Expr::Repeat(_, 0, _) => {}
            Expr::Repeat(body, 1, _) => push(exprs, *body),
            Expr::Repeat(body, min, _) => return push(exprs, Expr::Repeat(body, min, Some(min))),
            part => return push(exprs, part),
        }
    }
}

fn class(set: &ClassUnicode) -> Expr {
    Expr::Class(set.iter().map(|range| (range.start().into(), range.end().into())).collect())
}

/// The language of a tree without assertions.
fn lower(node: &Node) -> Expr {
    match node {
        Node::Cat(parts) => Expr::Cat(parts.iter().map(lower).collect()),
        Node::Alt(parts) => Expr::Alt(parts.iter().map(lower).collect()),
        Node::Repeat(body, min, max) => Expr::Repeat(Box::new(lower(body)), *min, *max),
        Node::Set(set) => class(set),
        node => unreachable!("{node:?} is an assertion"),
    }
}
