"""Exact next-token masks for grammar-constrained decoding, from precompiled automata.

A grammar is compiled against a vocabulary once; a :class:`Matcher` then says, in about a microsecond, which
tokens keep an output inside the language.

>>> import glrgrid as gg
>>> from glrgrid import grammars
>>> vocab = gg.Vocab.default()
>>> compiled = gg.compile(gg.Grammar.from_lark(grammars.load("calc")), vocab)
>>> matcher = gg.Matcher(compiled)
>>> bitmask = gg.allocate_token_bitmask(1, vocab.size)
>>> matcher.fill_next_token_bitmask(bitmask)
>>> matcher.accept_bytes(b"1 + ")
4
>>> matcher.is_accepting()
False
"""

from glrgrid._native import CompiledGrammar, Matcher, __version__, fill_bitmask_batch
from glrgrid.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace
from glrgrid.compiled import CancelToken, CompileWarning, compile, load
from glrgrid.errors import (
    ArtifactError,
    BudgetExceeded,
    Cancelled,
    DeadEnd,
    GlrgridError,
    GrammarError,
    InternalError,
    PolicyError,
    SchemaError,
    StateError,
    VocabError,
)
from glrgrid.explain import Explanation, allowed_tokens
from glrgrid.grammar import Grammar, GrammarWarning
from glrgrid.vocab import Vocab, VocabWarning

__all__ = [
    "ArtifactError",
    "BudgetExceeded",
    "CancelToken",
    "Cancelled",
    "CompileWarning",
    "CompiledGrammar",
    "DeadEnd",
    "Explanation",
    "GlrgridError",
    "Grammar",
    "GrammarError",
    "GrammarWarning",
    "InternalError",
    "Matcher",
    "PolicyError",
    "SchemaError",
    "StateError",
    "Vocab",
    "VocabError",
    "VocabWarning",
    "__version__",
    "allocate_token_bitmask",
    "allowed_tokens",
    "apply_token_bitmask_inplace",
    "compile",
    "fill_bitmask_batch",
    "load",
]
