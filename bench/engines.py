"""One small class per engine, so that benchmarks drive them all alike.

An adapter lives in a worker process of its own (see :mod:`worker`) and imports its engine there. To add an
engine, derive from :class:`Engine`, fill in the methods and add it to :data:`ENGINES`.

``fill`` and ``accept`` return the engine's own bound functions, with nothing of ours around them but a
``functools.partial`` over the constant arguments: what is timed is the engine's fastest public route from
Python into an int32 numpy bitmask.
"""

from __future__ import annotations

import importlib.metadata
import os
import pickle
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import peer_grammar

MANY = 1_000
"""Passes, as many as are asked for."""
TRIVIAL = 'start: "a"'
"""Compiled once before anything is timed, to make an engine prepare its vocabulary."""


class Engine:
    """What a benchmark needs of an engine.

    Attributes
    ----------
    name : str
        As on the command line.
    package : str
        The distribution, for its version.
    has_artifact : bool
        Whether a compiled grammar can be saved. If not, ``save`` keeps the grammar's text and ``load``
        compiles it again.
    most_passes : int
        How many passes to time at most. Below :data:`MANY`, a pass takes long, and is not repeated on one object.
    flavour : str or None
        The peer grammar it reads, one of ``peer_grammar.FLAVOURS``; None for the original.
    language : str
        Where the language it then decodes differs from ours.
    """

    name: ClassVar[str]
    package: ClassVar[str]
    has_artifact: ClassVar[bool] = True
    most_passes: ClassVar[int] = MANY
    flavour: ClassVar[str | None] = None
    language: ClassVar[str] = "the original grammar"
    encode: Callable[[str], list[int]] | None = None
    """The tokenizer, where a benchmark has one; set before the vocabulary is prepared."""

    def prepare_vocab(self, tokens: Sequence[bytes | None], eos_ids: Sequence[int]) -> None:
        """Take the vocabulary and do all that can be done before a grammar is known."""
        raise NotImplementedError

    def grammar_text(self, original: str) -> str:
        """The text this engine is given."""
        return original if self.flavour is None else peer_grammar.derive(original, self.flavour)

    def parse(self, text: str) -> Any:
        """Grammar text to the engine's grammar object."""
        raise NotImplementedError

    def parse_schema(self, schema: str) -> Any:
        """JSON Schema text to the engine's grammar object."""
        raise NotImplementedError

    def compile(self, grammar: Any) -> Any:
        """Grammar object to a compiled one, for the prepared vocabulary."""
        raise NotImplementedError

    def save(self, compiled: Any, path: str) -> int:
        """Write the artifact; return its bytes."""
        raise NotImplementedError

    def load(self, path: str) -> Any:
        """The compiled object from an artifact, independent of any loaded before."""
        raise NotImplementedError

    def new(self, compiled: Any) -> Any:
        """A matcher at the empty output."""
        raise NotImplementedError

    def fork(self, matcher: Any) -> Any:
        """An independent copy of a matcher."""
        raise NotImplementedError

    def fill(self, matcher: Any, bitmask: np.ndarray) -> Callable[[], object]:
        """A function that writes the mask into one row of int32 words, given here."""
        raise NotImplementedError

    def accept(self, matcher: Any) -> Callable[[int], bool]:
        """A function that takes a token and says whether it was allowed, or raises if it was not."""
        raise NotImplementedError

    def is_accepting(self, matcher: Any) -> bool:
        """Whether the output may end here."""
        raise NotImplementedError

    def version(self) -> str:
        return importlib.metadata.version(self.package)


class Glrgrid(Engine):
    """glrgrid ahead of time: what is not whole in half a minute is refused, and not left to be filled on demand."""

    name = "glrgrid"
    package = "glrgrid"

    def prepare_vocab(self, tokens: Sequence[bytes | None], eos_ids: Sequence[int]) -> None:
        import glrgrid

        self.module = glrgrid
        self.vocab = glrgrid.Vocab(tokens, eos_ids)
        self.compile(glrgrid.Grammar.from_lark(TRIVIAL, lexer="basic"))

    def parse(self, text: str) -> Any:
        return self.module.Grammar.from_lark(text)

    def parse_schema(self, schema: str) -> Any:
        with warnings.catch_warnings(action="ignore"):
            return self.module.Grammar.from_json_schema(schema)

    def compile(self, grammar: Any) -> Any:
        return self.module.compile(grammar, self.vocab, max_seconds=30, on_budget="error")

    def save(self, compiled: Any, path: str) -> int:
        compiled.save(path)
        return os.path.getsize(path)

    def load(self, path: str) -> Any:
        return self.module.load(path, self.vocab)

    def new(self, compiled: Any) -> Any:
        return self.module.Matcher(compiled)

    def fork(self, matcher: Any) -> Any:
        return matcher.fork()

    def fill(self, matcher: Any, bitmask: np.ndarray) -> Callable[[], object]:
        return partial(matcher.fill_next_token_bitmask, bitmask)

    def accept(self, matcher: Any) -> Callable[[int], bool]:
        return matcher.accept_token

    def is_accepting(self, matcher: Any) -> bool:
        return matcher.is_accepting()

    def version(self) -> str:
        return self.module.__version__


class GlrgridLazy(Glrgrid):
    """glrgrid with tables filled on demand: a fresh object begins with none."""

    name = "glrgrid-lazy"
    has_artifact = False

    def parse(self, text: str) -> Any:
        self.text = text
        return super().parse(text)

    def compile(self, grammar: Any) -> Any:
        return self.module.compile(grammar, self.vocab, mode="lazy")

    def save(self, compiled: Any, path: str) -> int:
        with open(path, "w", encoding="utf-8") as file:
            return file.write(self.text)

    def load(self, path: str) -> Any:
        with open(path, encoding="utf-8") as file:
            return self.compile(self.parse(file.read()))


class Glrmask(Engine):
    """GLRMask with its parser DWA: precompiled, its fastest masks."""

    name = "glrmask"
    package = "glrmask"
    strategy: ClassVar[str] = "PARSER_DWA"
    flavour = "reserved"
    language = (
        "larger: longest match is of each terminal by itself, so a word may follow another without a space "
        "(`selecta`, `order bya`) and `--` may be two minus signs; where two names may stand in a row, a "
        "reserved word counts as a shorter name and the rest of it (`select select` has column `selec`, "
        "alias `t`); letters of keywords fold as in Unicode (a long s begins `select`); no end tokens"
    )

    def prepare_vocab(self, tokens: Sequence[bytes | None], eos_ids: Sequence[int]) -> None:
        import glrmask

        self.module = glrmask
        self.vocab = glrmask.Vocab.from_id_to_bytes({id_: token for id_, token in enumerate(tokens) if token})
        self.compile(self.parse(TRIVIAL))

    def parse(self, text: str) -> Any:
        return self.module.Grammar.from_lark(text)

    def parse_schema(self, schema: str) -> Any:
        return self.module.Grammar.from_json_schema(schema)

    def compile(self, grammar: Any) -> Any:
        return grammar.compile(self.vocab, mask_strategy=getattr(self.module.MaskStrategy, self.strategy))

    def save(self, compiled: Any, path: str) -> int:
        with open(path, "wb") as file:
            return file.write(compiled.save())

    def load(self, path: str) -> Any:
        with open(path, "rb") as file:
            return self.module.Constraint.load(file.read(), self.vocab)

    def new(self, compiled: Any) -> Any:
        return compiled.start()

    def fork(self, matcher: Any) -> Any:
        return matcher.copy()

    def fill(self, matcher: Any, bitmask: np.ndarray) -> Callable[[], object]:
        return partial(matcher.fill_mask, bitmask)

    def accept(self, matcher: Any) -> Callable[[int], bool]:
        return matcher.commit_token

    def is_accepting(self, matcher: Any) -> bool:
        return matcher.is_accepting()


class GlrmaskLoose(Glrmask):
    """GLRMask without reserved words: its quickest compile and smallest artifact."""

    name = "glrmask-loose"
    flavour = "loose"
    language = f"no word is reserved (`select from from t`); for the rest as {Glrmask.name}"


class GlrmaskAuto(Glrmask):
    """GLRMask with the strategy that it chooses: the parser DWA unless that would grow large."""

    name = "glrmask-auto"
    strategy = "AUTO"


class GlrmaskTrie(Glrmask):
    """GLRMask with its quickest compile: masks are computed by walking the vocabulary."""

    name = "glrmask-trie"
    strategy = "TOKEN_TRIE"


class Llguidance(Engine):
    """llguidance: nothing precompiled, so a compiled grammar is a matcher from which others are copied."""

    name = "llguidance"
    package = "llguidance"
    has_artifact = False
    most_passes = 2
    flavour = "reserved"
    language = (
        "larger: longest match is among the terminals that may come next, so a word may follow another "
        "without a space (`selecta`, `order bya`); letters of keywords fold as in Unicode. Smaller: nothing "
        "may follow `;`"
    )
    limits: ClassVar[dict[str, int]] = {}
    """Of what a step may take, where the default is not to apply."""

    def grammar_text(self, original: str) -> str:
        return super().grammar_text(original) + '%llguidance {"allow_initial_skip": true}\n'

    def prepare_vocab(self, tokens: Sequence[bytes | None], eos_ids: Sequence[int]) -> None:
        import llguidance

        self.module = llguidance
        self.tokenizer = llguidance.LLTokenizer(
            llguidance.TokenizerWrapper(_BytesTokenizer(tokens, eos_ids, self.encode))
        )
        self.compile(self.parse(TRIVIAL))

    def parse(self, text: str) -> Any:
        return self.module.LLMatcher.grammar_from_lark(text)

    def parse_schema(self, schema: str) -> Any:
        return self.module.LLMatcher.grammar_from_json_schema(schema)

    def compile(self, grammar: Any) -> Any:
        limits = self.module.LLParserLimits(**self.limits)
        matcher = self.module.LLMatcher(self.tokenizer, grammar, log_level=0, limits=limits)
        if matcher.is_error():
            raise RuntimeError(matcher.get_error())
        self.grammar = grammar
        return matcher

    def save(self, compiled: Any, path: str) -> int:
        with open(path, "w", encoding="utf-8") as file:
            return file.write(self.grammar)

    def load(self, path: str) -> Any:
        with open(path, encoding="utf-8") as file:
            return self.compile(file.read())

    def new(self, compiled: Any) -> Any:
        return compiled.deep_copy()

    def fork(self, matcher: Any) -> Any:
        return matcher.deep_copy()

    def fill(self, matcher: Any, bitmask: np.ndarray) -> Callable[[], object]:
        return partial(matcher.unsafe_compute_mask_ptr, bitmask.ctypes.data, bitmask.nbytes)

    def accept(self, matcher: Any) -> Callable[[int], bool]:
        return matcher.consume_token

    def is_accepting(self, matcher: Any) -> bool:
        return matcher.is_accepting()


class LlguidanceLarge(Llguidance):
    """llguidance with a mask allowed to take longer than it would by itself: it gives up SQL under a role otherwise."""

    name = "llguidance-large"
    limits: ClassVar[dict[str, int]] = {"step_max_items": 10_000_000}


class Xgrammar(Engine):
    """xgrammar, with white space wherever JSON allows it. Compiled grammars are not taken from its cache."""

    name = "xgrammar"
    package = "xgrammar"

    def prepare_vocab(self, tokens: Sequence[bytes | None], eos_ids: Sequence[int]) -> None:
        import xgrammar

        self.module = xgrammar
        raw = xgrammar.VocabType.RAW
        spelled = [token or b"" for token in tokens]
        self.info = xgrammar.TokenizerInfo(spelled, raw, vocab_size=len(tokens), stop_token_ids=[*eos_ids])
        self.compiler = xgrammar.GrammarCompiler(self.info, cache_enabled=False)
        self.compile(self.parse_schema('{"type":"null"}'))

    def parse_schema(self, schema: str) -> Any:
        # It parses and compiles in one call.
        return schema

    def compile(self, grammar: Any) -> Any:
        # Not strict: properties that a schema does not mention are allowed, as the standard says.
        return self.compiler.compile_json_schema(grammar, strict_mode=False)

    def save(self, compiled: Any, path: str) -> int:
        with open(path, "w", encoding="utf-8") as file:
            return file.write(compiled.serialize_json())

    def load(self, path: str) -> Any:
        with open(path, encoding="utf-8") as file:
            return self.module.CompiledGrammar.deserialize_json(file.read(), self.info)

    def new(self, compiled: Any) -> Any:
        return self.module.GrammarMatcher(compiled)

    def fork(self, matcher: Any) -> Any:
        return matcher.fork()

    def fill(self, matcher: Any, bitmask: np.ndarray) -> Callable[[], object]:
        import torch

        return partial(matcher.fill_next_token_bitmask, torch.from_numpy(bitmask[None]))

    def accept(self, matcher: Any) -> Callable[[int], bool]:
        return matcher.accept_token

    def is_accepting(self, matcher: Any) -> bool:
        return matcher.is_completed()


class OutlinesCore(Engine):
    """outlines-core: a schema is turned into a regular expression, of which all of an index is computed."""

    name = "outlines-core"
    package = "outlines_core"

    def prepare_vocab(self, tokens: Sequence[bytes | None], eos_ids: Sequence[int]) -> None:
        import outlines_core

        self.module = outlines_core
        ids: dict[bytes, list[int]] = {}
        for id_, token in enumerate(tokens):
            if token and id_ not in eos_ids:
                ids.setdefault(token, []).append(id_)
        self.vocab = outlines_core.Vocabulary(eos_ids[0], ids)

    def parse_schema(self, schema: str) -> Any:
        return self.module.json_schema.build_regex_from_schema(schema)

    def compile(self, grammar: Any) -> Any:
        return self.module.Index(grammar, self.vocab)

    def save(self, compiled: Any, path: str) -> int:
        with open(path, "wb") as file:
            return file.write(pickle.dumps(compiled))

    def load(self, path: str) -> Any:
        with open(path, "rb") as file:
            return pickle.load(file)

    def new(self, compiled: Any) -> Any:
        return self.module.Guide(compiled)

    def fork(self, matcher: Any) -> Any:
        # The only way there is; it copies the index too.
        return pickle.loads(pickle.dumps(matcher))

    def fill(self, matcher: Any, bitmask: np.ndarray) -> Callable[[], object]:
        return partial(matcher.write_mask_into, bitmask.ctypes.data, bitmask.size, bitmask.itemsize)

    def accept(self, matcher: Any) -> Callable[[int], bool]:
        return partial(matcher.advance, return_tokens=False)

    def is_accepting(self, matcher: Any) -> bool:
        return matcher.is_finished()


class _BytesTokenizer:
    """A byte vocabulary as llguidance wants to be shown one. Ids without bytes are special tokens."""

    def __init__(
        self,
        tokens: Sequence[bytes | None],
        eos_ids: Sequence[int],
        encode: Callable[[str], list[int]] | None,
    ) -> None:
        self.encode = encode
        self.eos_token_id = eos_ids[0]
        self.bos_token_id = None
        self.tokens = [token or f"<|{id_}|>".encode() for id_, token in enumerate(tokens)]
        self.special_token_ids = [id_ for id_, token in enumerate(tokens) if not token]

    def __call__(self, text: bytes | str) -> list[int]:
        """Asked for text that is forced: where there is any, only its tokens are allowed."""
        if self.encode is None:
            return []
        return self.encode(text if isinstance(text, str) else text.decode(errors="replace"))


LARK_ENGINES = (Glrgrid, GlrgridLazy, Glrmask, GlrmaskLoose, Llguidance)
SCHEMA_ENGINES = (Glrgrid, GlrgridLazy, GlrmaskAuto, GlrmaskTrie, Llguidance, Xgrammar, OutlinesCore)
ENGINES = {engine.name: engine for engine in (*LARK_ENGINES, *SCHEMA_ENGINES, LlguidanceLarge)}
