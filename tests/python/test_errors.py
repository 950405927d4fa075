"""Errors through the public API: each says what, where and what to do, and changes nothing."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import glrgrid as gg
from glrgrid import errors, grammars

WORDS = (gg.Vocab.default().size + 31) // 32
LAST = gg.Vocab.default().size - 1
BASIC = '%glrgrid {"lexer": "basic"}\n'

NOT_RAISED_YET = {gg.InternalError, gg.PolicyError, gg.SchemaError}
"""Classes that nothing in the package raises on purpose today."""


@pytest.fixture(scope="module")
def compiled() -> gg.CompiledGrammar:
    return gg.compile(gg.Grammar.from_lark(grammars.load("calc")), gg.Vocab.default())


@pytest.fixture(scope="module")
def artifact(compiled: gg.CompiledGrammar) -> bytes:
    return compiled.to_bytes()


@pytest.fixture
def matcher(compiled: gg.CompiledGrammar) -> gg.Matcher:
    """After ``1 +``, taken in two steps."""
    matcher = gg.Matcher(compiled)
    assert matcher.accept_bytes(b"1 ") == 2
    assert matcher.accept_bytes(b"+") == 1
    return matcher


def check(
    kind: type[Exception], parts: str, call: Callable[..., object], *arguments: Any, **named: Any
) -> None:
    """The call raises exactly ``kind``, with a message that has all ``parts`` (split at ``|``)."""
    with pytest.raises(kind) as caught:
        call(*arguments, **named)
    assert type(caught.value) is kind
    message = str(caught.value)
    for part in parts.split("|"):
        assert part in message
    assert message == message.strip() and not message.endswith(".") and "\n" not in message


def check_usable(matcher: gg.Matcher) -> None:
    """The matcher still stands after ``1 +``, wherever errors happened meanwhile."""
    assert matcher.steps == 2
    assert not matcher.is_terminated()
    other = matcher.fork()
    assert other.mask().any()
    assert other.accept_bytes(b"2") == 1
    assert other.is_accepting()


def test_every_class_is_listed_and_triggered():
    classes = {kind for kind in vars(errors).values() if isinstance(kind, type)} - {gg.GlrgridError}
    assert all(issubclass(kind, gg.GlrgridError) for kind in classes)
    assert classes == {getattr(gg, kind.__name__) for kind in classes}
    with open(__file__, encoding="utf-8") as text:
        triggered = {getattr(gg, name) for name in re.findall(r"check\(\s*gg\.(\w+),", text.read())}
    assert triggered | NOT_RAISED_YET == classes
    assert triggered.isdisjoint(NOT_RAISED_YET)


# Matchers


def bad_bitmasks() -> Iterator[tuple[str, Any]]:
    yield "ndarray of dtype int64|expected an int32", np.zeros((1, WORDS), np.int64)
    yield "ndarray of dtype uint32|expected an int32", np.zeros((1, WORDS), np.uint32)
    yield "ndarray of dtype float32|expected an int32", np.zeros((1, WORDS), np.float32)
    yield "list|expected an int32", [0] * WORDS
    yield "NoneType|expected an int32", None
    yield f"shape [1, {WORDS + 1}]|expected (batch, {WORDS}) int32|size=", np.zeros((1, WORDS + 1), np.int32)
    yield f"shape [{WORDS - 1}]|expected (batch, {WORDS}) int32|vocab.size", np.zeros(WORDS - 1, np.int32)
    yield f"shape [1, 1, {WORDS}]|expected (batch, {WORDS})", np.zeros((1, 1, WORDS), np.int32)
    yield "not C-contiguous|expected", np.zeros((2, 2 * WORDS), np.int32)[:, ::2]
    yield "not C-contiguous|expected", np.zeros((2, WORDS), np.int32, order="F")
    read_only = np.zeros((1, WORDS), np.int32)
    read_only.setflags(write=False)
    yield "read-only|expected", read_only


@pytest.mark.parametrize(("parts", "bitmask"), list(bad_bitmasks()))
def test_bitmasks(matcher, parts, bitmask):
    check(gg.StateError, parts, matcher.fill_next_token_bitmask, bitmask)
    if isinstance(bitmask, np.ndarray):
        assert not bitmask.any()
    check_usable(matcher)


@pytest.mark.parametrize("row", [2, -1])
def test_rows(matcher, row):
    bitmask = np.zeros((2, WORDS), np.int32)
    check(gg.StateError, f"row {row} is out of range|2 rows", matcher.fill_next_token_bitmask, bitmask, row)
    assert not bitmask.any()
    check_usable(matcher)


def test_only_the_named_row_is_written(matcher):
    bitmask = np.full((3, WORDS), 7, np.int32)
    matcher.fill_next_token_bitmask(bitmask, index=1)
    assert (bitmask[[0, 2]] == 7).all()
    assert (np.unpackbits(bitmask[1].view(np.uint8), bitorder="little")[: LAST + 1] == matcher.mask()).all()


@pytest.mark.parametrize("token_id", [LAST + 1, -1, 2**31, -(2**31)])
def test_token_ids(matcher, token_id):
    check(gg.StateError, f"token id {token_id} is out of range|0 to {LAST}", matcher.accept_token, token_id)
    check_usable(matcher)


def test_arguments_of_other_types(matcher):
    for call, argument in [
        (matcher.accept_token, "1"),
        (matcher.accept_token, 1.5),
        (matcher.accept_bytes, "1"),
        (matcher.rollback, None),
        (gg.Matcher, None),
    ]:
        with pytest.raises(TypeError):
            call(argument)
    check_usable(matcher)


def test_refusals_are_no_errors(matcher):
    assert not matcher.accept_token(gg.Vocab.default().eos_ids[0])
    assert not matcher.accept_token(next(i for i, allowed in enumerate(matcher.mask()) if not allowed))
    assert matcher.accept_bytes(b"*") == 0
    assert matcher.accept_bytes(b"") == 0
    check_usable(matcher)


def test_rollback(matcher):
    check(gg.StateError, "cannot roll back 3 steps|only 2 were taken", matcher.rollback, 3)
    check_usable(matcher)
    matcher.rollback(2)
    check(gg.StateError, "cannot roll back 1 steps|only 0 were taken", matcher.rollback)
    matcher.rollback(0)
    assert matcher.accept_bytes(b"1 +") == 3


def test_after_the_end(matcher):
    (end,) = gg.Vocab.default().eos_ids
    bitmask = np.zeros((1, WORDS), np.int32)
    assert matcher.accept_bytes(b"2") == 1
    assert matcher.accept_token(end)
    assert matcher.is_terminated()
    advice = "terminated|rollback or reset"
    check(gg.StateError, advice, matcher.fill_next_token_bitmask, bitmask)
    check(gg.StateError, advice, matcher.mask)
    check(gg.StateError, advice, matcher.accept_token, end)
    check(gg.StateError, advice, matcher.accept_bytes, b"1")
    assert not bitmask.any()
    assert matcher.is_terminated() and matcher.is_accepting() and matcher.steps == 4
    matcher.rollback(2)
    check_usable(matcher)
    matcher.reset()
    assert matcher.accept_bytes(b"1") == 1


def test_dead_end():
    vocab = vocab_of([b"a", b"b", None], eos_ids=[2])
    compiled = gg.compile(gg.Grammar.from_lark(f'{BASIC}start: "a" "c" | "b"'), vocab)
    matcher = gg.Matcher(compiled)
    assert matcher.accept_token(0)
    bitmask = gg.allocate_token_bitmask(1, vocab.size)
    check(gg.DeadEnd, "no token can continue|not complete", matcher.fill_next_token_bitmask, bitmask)
    check(gg.DeadEnd, "no token can continue|not complete", matcher.mask)
    matcher.rollback()
    assert matcher.accept_token(1)
    assert matcher.mask().tolist() == [False, False, True]


# Logits


def test_logits():
    bitmask = gg.allocate_token_bitmask(2, 64)
    check(gg.StateError, "65 wide|64 ids", gg.apply_token_bitmask_inplace, np.zeros((2, 65)), bitmask)
    check(gg.StateError, "1 rows|has 2", gg.apply_token_bitmask_inplace, np.zeros((1, 64)), bitmask)
    check(gg.StateError, "int64|floating", gg.apply_token_bitmask_inplace, np.zeros((2, 64), int), bitmask)
    check(gg.StateError, "batch|at least 0|-1", gg.allocate_token_bitmask, -1, 64)


# Artifacts


def test_files(tmp_path, compiled, artifact):
    vocab = gg.Vocab.default()
    check(gg.ArtifactError, "cannot read|missing.glrgrid", gg.load, tmp_path / "missing.glrgrid", vocab)
    check(gg.ArtifactError, f"cannot read|{tmp_path}", gg.load, tmp_path, vocab)
    check(gg.ArtifactError, "cannot write|no folder", compiled.save, tmp_path / "no folder" / "x")
    assert list(tmp_path.iterdir()) == []

    file = tmp_path / "calc.glrgrid"
    compiled.save(file)
    assert file.read_bytes() == artifact
    assert [path.name for path in tmp_path.iterdir()] == ["calc.glrgrid"]
    (tmp_path / "empty").touch()
    check(gg.ArtifactError, "not a glrgrid artifact|compile", gg.load, tmp_path / "empty", vocab)
    (tmp_path / "text").write_text("start: A\n" * 100, "utf-8")
    check(gg.ArtifactError, "not a glrgrid artifact|compile", gg.load, tmp_path / "text", vocab)
    (tmp_path / "half").write_bytes(artifact[: len(artifact) // 2])
    parts = f"truncated|expected {len(artifact)} bytes|found {len(artifact) // 2}|again"
    check(gg.ArtifactError, parts, gg.load, tmp_path / "half", vocab)


def test_another_vocabulary(artifact):
    other = vocab_of([b"a", None], eos_ids=[1])
    parts = f"{gg.Vocab.default().fingerprint}|{LAST + 1} ids|{other.fingerprint}|2 ids"
    check(gg.ArtifactError, parts, gg.load, artifact, other)


def test_another_version(artifact):
    changed = bytearray(artifact)
    changed[8] += 1
    parts = f"version|expected {artifact[8]}|found {artifact[8] + 1}|recompile"
    check(gg.ArtifactError, parts, gg.load, bytes(changed), gg.Vocab.default())


def test_every_length(artifact):
    vocab = gg.Vocab.default()
    for length in range(0, len(artifact), 61):
        check(gg.ArtifactError, "artifact", gg.load, artifact[:length], vocab)
    check(gg.ArtifactError, "truncated or padded", gg.load, artifact + b"\0", vocab)


def test_a_flipped_bit_in_any_byte(artifact):
    vocab, rng = gg.Vocab.default(), random.Random(1)
    for at in range(len(artifact)):
        changed = bytearray(artifact)
        changed[at] ^= 1 << rng.randrange(8)
        with pytest.raises(gg.ArtifactError):
            gg.load(bytes(changed), vocab)
    gg.load(artifact, vocab)


# Grammars and vocabularies


def test_grammars():
    lark = gg.Grammar.from_lark
    check(gg.GrammarError, "line 2, column 13", lark, f'{BASIC}start: "a" (')
    check(gg.GrammarError, '"begin" is not defined|start=', lark, f'{BASIC}start: "a"', start="begin")
    check(gg.GrammarError, '"greedy"|"basic"', lark, 'start: "a"', lexer="greedy")
    check(gg.GrammarError, 'no bundled grammar "sql"|sql_core', grammars.load, "sql")
    check(gg.StateError, '\'eager\'|"aot"|"lazy"', compile_text, 'start: "a"', mode="eager")
    check(gg.GrammarError, '"A"|empty string|line 3, column 1', compile_text, "start: A\nA: /x*/")
    check(gg.GrammarError, '"start" derives no text|line 2, column 1', compile_text, 'start: start "a"')


def test_grammar_errors_have_a_position():
    for text in ('start: "a" (', "start: A\nA: /x*/"):
        with pytest.raises(gg.GrammarError) as caught:
            compile_text(text)
        assert caught.value.line is not None and caught.value.column is not None
        assert f"(line {caught.value.line}, column {caught.value.column})" in str(caught.value)


def test_budget():
    check(gg.BudgetExceeded, "lexer passed|simplify", compile_text, "start: A\nA: /(a|b)*a(a|b){25}/")


def test_a_cancelled_build():
    token = gg.CancelToken()
    token.cancel()
    check(gg.Cancelled, "cancelled|stage", compile_text, 'start: "a"', cancel=token)


def test_progress_tells_of_each_stage_from_its_beginning_to_its_end():
    told: list[tuple[str, float]] = []
    compiled = compile_text('start: "a"', progress=lambda stage, share: told.append((stage, share)))
    stages = list(dict.fromkeys(stage for stage, _ in told))
    assert stages == list(compiled.stats["milliseconds"])
    for stage in stages:
        shares = [share for name, share in told if name == stage]
        assert shares == sorted(shares) and (shares[0], shares[-1]) == (0.0, 1.0)


def test_a_schema_as_a_whole_is_the_root():
    with pytest.raises(gg.SchemaError, match=r"\(at the root\)$") as caught:
        gg.Grammar.from_json_schema(False)
    assert caught.value.pointer == "" and caught.value.reason in str(caught.value)
    with pytest.raises(gg.SchemaError, match=r"lone surrogate.*ud800"):
        gg.Grammar.from_json_schema({"required": ["\ud800"]})
    with pytest.raises(gg.SchemaError, match="lone surrogate"):
        gg.Grammar.from_json_schema('{"const": "\ud800"}')


def test_an_exception_in_progress_stops_the_build():
    def stop(stage: str, share: float) -> None:
        raise LookupError(stage)

    with pytest.raises(LookupError, match="grammar"):
        compile_text('start: "a"', progress=stop)
    with pytest.raises(TypeError):
        compile_text('start: "a"', progress=3)


def test_vocabularies(tmp_path):
    vocab = gg.Vocab.default()
    check(
        gg.VocabError,
        "no.json|cannot be read|pass a tokenizer.json",
        gg.Vocab.from_file,
        tmp_path / "no.json",
    )
    check(gg.VocabError, "no tokens|pass", gg.Vocab.from_bytes, {})
    check(gg.VocabError, "id -1", gg.Vocab.from_bytes, {-1: b"a"})
    check(gg.VocabError, "tokens[0]|str|encode", gg.Vocab.from_bytes, {0: "a"})
    check(gg.VocabError, "token 0|100000 bytes", gg.Vocab.from_bytes, {0: b"a" * 100_000})
    check(gg.VocabError, "7|3 ids|eos_ids=", gg.Vocab.from_bytes, {0: b"a"}, eos_ids=[7], size=3)
    check(gg.VocabError, "dict|pass", gg.Vocab.from_tokenizer, {})
    check(gg.StateError, f"{LAST + 1}|0 to {LAST}", vocab.token_bytes, LAST + 1)
    check(gg.StateError, f"-1|0 to {LAST}", vocab.token_bytes, -1)


def vocab_of(tokens: list[bytes | None], eos_ids: list[int]) -> gg.Vocab:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.VocabWarning)
        return gg.Vocab.from_bytes(tokens, eos_ids)


def compile_text(text: str, **options: Any) -> gg.CompiledGrammar:
    return gg.compile(gg.Grammar.from_lark(BASIC + text), gg.Vocab.default(), **options)
