"""Rules without a lexer to :class:`~glrgrid.grammar.ir.GrammarIR`, in which the longest match decides nothing.

Grammars over characters (GBNF, regular expressions, choices) have no terminals of their own. One terminal for each
character class would do, but is slow: a token then is as many terminals as it has characters. So the largest regular
parts become terminals, unless that could change the language: the engine says where the longest match might take what
should follow (``find_cuts``), and there the terminal is taken apart by one step and everything is looked at again. A
terminal of one character can never be cut wrongly, so this ends, at worst with only those.

All terminals have one rank: where two match the same text, both are followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from .. import _native
from ..errors import BudgetExceeded, GrammarError
from . import compose, regex
from .ebnf import Alt, Alternative, Leaf, Lowering, Name, Node, Repeat, Seq
from .ir import Expr, GrammarIR, Position, Terminal
from .regular import (
    EMPTY,
    NOT_EMPTY,
    NOTHING,
    alt,
    cat,
    fits,
    has_reference,
    references,
    solve,
    split_first,
    without_empty,
)

__all__ = ["build"]

MAX_STATES = 10_000
"""States of the automaton of one terminal, and of those that compete, above which a terminal is taken apart."""

MAX_PART_STATES = 1_000_000
"""The same where there are parts with lexers of their own, which cannot be taken apart."""

MAX_PEELED = 12
"""Concatenations of more items are halved; from shorter ones the first or the last item is taken."""

Rules = Mapping[str, tuple[Expr, Position]]


def build(
    rules: Rules, start: str, parts: Mapping[str, GrammarIR] | None = None, tokens: Rules | None = None
) -> GrammarIR:
    """Choose terminals and lower rules.

    Parameters
    ----------
    rules : mapping of str to (Expr, Position)
        Bodies, in which ``("ref", name)`` refers to a rule that is there.
    start : str
        The start rule.
    parts : mapping of str to GrammarIR, optional
        Grammars with lexers of their own, under further names that bodies can refer to.
    tokens : mapping of str to (Expr, Position), optional
        Token terminals, likewise.

    Returns
    -------
    GrammarIR
        Its language is that of the rules, byte for byte. It warns of rules that the start does not lead to.

    Raises
    ------
    GrammarError
        No text matches, or it depends on the longest match where a part ends.
    BudgetExceeded
        A part that cannot be taken apart is too large.
    """
    try:
        return _build(rules, start, parts or {}, tokens or {})
    except RecursionError:
        raise GrammarError("the grammar is nested too deeply; name the inner groups as rules") from None


def _build(rules: Rules, start: str, parts: Mapping[str, GrammarIR], tokens: Rules) -> GrammarIR:
    solved = solve({name: body for name, (body, _) in rules.items()})
    if solved[start] == NOTHING:
        raise GrammarError(
            f'rule "{start}", where the output begins, derives no text: every alternative needs the rule itself, or '
            "a character that there is not",
            *rules[start][1],
        )
    return _Build(rules, solved, start, parts, tokens).run()


class _Build:
    """Attempts with ever smaller terminals, until the longest match decides nothing."""

    def __init__(
        self,
        rules: Rules,
        solved: dict[str, Expr],
        start: str,
        parts: Mapping[str, GrammarIR],
        tokens: Rules,
    ) -> None:
        self._rules = rules
        self._tokens = tokens
        self._parts_by_name = parts
        self._solved = solved
        self._start = start
        self._names = {
            without_empty(body): name
            for name, body in solved.items()
            if name != start and not has_reference(body) and fits(body)
        }
        self._apart: dict[Expr, str] = {}
        """What cannot be a terminal; for a concatenation, at which end it is cut."""
        self._terminals: dict[Expr, int] = {}
        self._rule_ids: dict[str, int] = {}

    def run(self) -> GrammarIR:
        while True:
            host, parts = self._lower()
            ir = compose.embed(host, parts, share=False)
            cuts, too_large = _native.find_cuts(
                ir.to_json(), MAX_PART_STATES if self._parts_by_name else MAX_STATES
            )
            if too_large is None and not cuts:
                return compose.embed(host, parts)
            if too_large is not None:
                self._take_apart_large([t for t in ir.terminals if t.scope is None], too_large)
            for _, terminal, longer, _ in cuts:
                self._take_apart_cut(ir.terminals[terminal], ir.terminals[longer])

    def _take_apart_cut(self, terminal: Terminal, longer: Terminal) -> None:
        """Make ``longer`` shorter; where it is the terminal itself, so that its end stands alone."""
        if terminal != longer and longer.scope is None and _can_split(longer.expr):
            self._apart[longer.expr] = "first"
        elif terminal.scope is None and _can_split(terminal.expr):
            self._apart[terminal.expr] = "last"
        else:
            raise GrammarError(
                f"{longer.name} may take what should follow {terminal.name}, and it cannot be taken apart; give "
                f"{terminal.name} an end that cannot be part of it"
            )

    def _take_apart_large(self, terminals: list[Terminal], name: str) -> None:
        candidates = [t for t in terminals if name in ("", t.name) and _can_split(t.expr)]
        if not candidates:
            what = name or "all terminals together"
            raise BudgetExceeded(f"the automaton of {what} has more than {MAX_STATES:,} states; simplify it")
        largest = max(candidates, key=lambda t: _weight(t.expr))
        self._apart[largest.expr] = "last"

    def _lower(self) -> tuple[GrammarIR, dict[int, GrammarIR]]:
        """The grammar with the terminals of this attempt, and the parts to embed, by nonterminal."""
        self._terminals, self._rule_ids = {}, {}
        lowering = Lowering(self._symbol)
        reached = self._reached()
        for name in reached:
            position = self._rules[name][1] if name in self._rules else None
            self._rule_ids[name] = lowering.declare(name, position)
        for name in reached:
            if name in self._rules:
                body = Seq((self._node(self._solved[name]),))
                lowering.add_rule(self._rule_ids[name], name, Alt((Alternative(body),)))
        ir = GrammarIR(
            start=0,
            terminals=tuple(self._named_terminals()),
            nonterminals=tuple(lowering.nonterminals),
            productions=lowering.productions,
            lexer="contextual",
            warnings=tuple(self._warnings()),
        )
        parts = self._parts_by_name.items()
        return ir, {self._rule_ids[name]: part for name, part in parts if name in self._rule_ids}

    def _reached(self) -> list[str]:
        """The start rule, and the irregular ones and parts it needs; regular rules have become parts of others."""
        reached, work = {self._start: None}, [self._start]
        while work:
            for name in references(self._solved.get(work.pop(), EMPTY)):
                if name not in reached and name not in self._tokens:
                    reached[name] = None
                    work.append(name)
        return list(reached)

    def _named_terminals(self) -> Iterator[Terminal]:
        used: set[str] = set()
        tokens = {expr: (name, position) for name, (expr, position) in self._tokens.items()}
        for expr in self._terminals:
            if expr in tokens:
                name, position = tokens[expr]
                yield Terminal(name, expr, position=position)
                continue
            name = wanted = self._names.get(expr) or regex.render(expr)
            while name in used:
                name = f"{wanted}~{len(used)}"
            used.add(name)
            yield Terminal(name, expr)

    def _warnings(self) -> Iterator[str]:
        reached, work = {self._start}, [self._start]
        while work:
            new = set(references(self._rules[work.pop()][0])) - reached
            reached |= new
            work += new & self._rules.keys()
        productive = self._productive()
        for name, (_, position) in self._rules.items():
            if name not in productive:
                yield f'rule "{name}" (line {position[0]}) derives no text'
            elif name not in reached:
                yield f'rule "{name}" (line {position[0]}) cannot be reached from "{self._start}"'

    def _productive(self) -> set[str]:
        """Names of rules, tokens and parts that some text matches."""
        known = {*self._tokens, *self._parts_by_name}

        def derives(expr: Expr) -> bool:
            tag, *args = expr
            if not has_reference(expr):
                return bool(expr != NOTHING)
            if tag == "ref":
                return args[0] in known
            if tag == "repeat":
                return args[1] == 0 or derives(args[0])
            return (any if tag == "alt" else all)(map(derives, args[0]))

        found = True
        while found:
            new = {name for name in self._rules.keys() - known if derives(self._solved[name])}
            known |= new
            found = bool(new)
        return known

    # Trees

    def _symbol(self, leaf: Leaf) -> int:
        assert isinstance(leaf, Name)
        if leaf.name in self._tokens:
            return self._terminal(self._tokens[leaf.name][0])
        return ~self._rule_ids[leaf.name] if leaf.name in self._rule_ids else int(leaf.name[1:])

    def _terminal(self, expr: Expr) -> int:
        return self._terminals.setdefault(expr, len(self._terminals))

    def _node(self, expr: Expr) -> Node:
        if not has_reference(expr):
            return self._regular(expr)
        tag, *args = expr
        if tag == "ref":
            return Name(args[0], (1, 1))
        if tag == "repeat":
            return Repeat(self._node(args[0]), args[1], args[2])
        if tag == "alt":
            plain = [item for item in args[0] if not has_reference(item)]
            others = [item for item in args[0] if has_reference(item)]
            return _choice([*([self._regular(alt(plain))] if plain else []), *map(self._node, others)])
        items: list[Node] = []
        for irregular, group in groupby(args[0], has_reference):
            run = list(group)
            items += map(self._node, run) if irregular else [self._regular(cat(run))]
        return Seq(tuple(items))

    def _regular(self, expr: Expr) -> Node:
        """A terminal, or what it is made of; optional if it can be empty."""
        if expr == EMPTY:
            return Seq(())
        if expr == NOTHING:
            return Alt(())
        full = without_empty(expr)
        if full in self._apart or not fits(full):
            return self._parts(expr)
        node = Name(f"\0{self._terminal(full)}", (1, 1))
        return node if full == expr else Repeat(node, 0, 1)

    def _parts(self, expr: Expr) -> Node:
        tag, *args = expr
        if tag == "lit":
            return Seq(tuple(self._regular(("lit", character)) for character in args[0]))
        if tag == "bytes":
            return Seq(tuple(self._regular(("bytes", (byte,))) for byte in args[0]))
        if tag == "alt":
            return _choice(list(map(self._regular, args[0])))
        if tag == "repeat":
            return Repeat(self._regular(args[0]), args[1], args[2])
        if tag == "and" and args[0][1:] == (NOT_EMPTY,):
            return self._regular(split_first(args[0][0][1]))
        if tag != "cat":
            raise GrammarError(f"{regex.render(expr)} is too large to be a terminal; simplify it")
        count, end = len(args[0]), self._apart.get(without_empty(expr))
        at = count // 2 if count > MAX_PEELED or end is None else 1 if end == "first" else count - 1
        return Seq((self._regular(cat(args[0][:at])), self._regular(cat(args[0][at:]))))


def _choice(nodes: list[Node]) -> Alt:
    return Alt(tuple(Alternative(Seq((node,))) for node in nodes))


def _can_split(expr: Expr) -> bool:
    tag, *args = expr
    if tag == "and":
        return bool(args[0][1:] == (NOT_EMPTY,))
    return tag in ("cat", "alt", "repeat") or (tag in ("lit", "bytes") and len(args[0]) > 1)


def _weight(expr: Expr) -> int:
    """Roughly how many states an expression takes."""
    tag, *args = expr
    if tag in ("lit", "bytes"):
        return len(args[0])
    if tag in ("cat", "alt", "and"):
        return sum(map(_weight, args[0]))
    if tag == "repeat":
        copies: int = args[1] + 1 if args[2] is None else args[2]
        return _weight(args[0]) * copies
    return _weight(args[0]) if tag == "not" else 1
