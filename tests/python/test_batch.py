"""``fill_bitmask_batch`` against filling row by row."""

from __future__ import annotations

import functools
import hashlib
import itertools
import multiprocessing
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pytest

import glrgrid as gg
from glrgrid import grammars

VOCAB = gg.Vocab.default()
WORDS = (VOCAB.size + 31) // 32
EOS = VOCAB.eos_ids[0]
NAMES = ("calc", "json", "sql_core")
MANY = 20_000
"""Rows that would take one thread several milliseconds."""
BEGINNINGS = {
    "calc": [b"", b"1", b"f(", b"1 + ", b"1e", b"((x"],
    "json": [b"", b"{", b'{"a', b"[1, ", b"-", b"tr", b'{"a": [null, ']
    + [b"[" * depth for depth in range(1, 30)],
    "sql_core": [
        b"",
        b"SEL",
        b"SELECT ",
        b"SELECT a FROM t ",
        b"INSERT INTO t (",
        b"DELETE ",
        b"SELECT '",
        b"(",
    ],
}


@functools.cache
def compiled(name: str) -> gg.CompiledGrammar:
    return gg.compile(gg.Grammar.from_lark(grammars.load(name)), VOCAB)


def mixed(count: int, seed: int = 1) -> list[gg.Matcher]:
    """Matchers of several grammars in various places."""
    rng = random.Random(seed)
    matchers = []
    for _ in range(count):
        name = rng.choice(NAMES)
        matcher = gg.Matcher(compiled(name))
        matcher.accept_bytes(rng.choice(BEGINNINGS[name]))
        for _ in range(rng.randrange(4)):
            tokens = np.flatnonzero(matcher.mask())
            matcher.accept_token(int(rng.choice(tokens)))
            if matcher.is_terminated():
                matcher.rollback()
        matchers.append(matcher)
    return matchers


def one_by_one(matchers: list[gg.Matcher]) -> npt.NDArray[np.int32]:
    bitmask = gg.allocate_token_bitmask(len(matchers), VOCAB.size)
    for row, matcher in enumerate(matchers):
        matcher.fill_next_token_bitmask(bitmask, row)
    return bitmask


@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, 100, 512])
def test_equals_row_by_row(count: int) -> None:
    matchers = mixed(count)
    bitmask = gg.allocate_token_bitmask(count, VOCAB.size)
    gg.fill_bitmask_batch(matchers, bitmask)
    assert np.array_equal(bitmask, one_by_one(matchers))


def test_rows_are_free_to_choose() -> None:
    matchers = mixed(40)
    rows = random.Random(2).sample(range(100), 40)
    bitmask = np.full((100, WORDS), 7, dtype=np.int32)
    gg.fill_bitmask_batch(iter(matchers), bitmask, np.array(rows))
    expected = np.full((100, WORDS), 7, dtype=np.int32)
    expected[rows] = one_by_one(matchers)
    assert np.array_equal(bitmask, expected)


def test_one_row_without_a_batch_dimension() -> None:
    [matcher] = mixed(1)
    row = np.zeros(WORDS, dtype=np.int32)
    gg.fill_bitmask_batch([matcher], row, rows=[0])
    assert np.array_equal(row[None], one_by_one([matcher]))


@pytest.mark.parametrize("count", [3, 60])
def test_misuse_writes_nothing(count: int) -> None:
    matchers = mixed(count)
    bitmask = np.full((count, WORDS), 7, dtype=np.int32)

    def check(parts: str, *arguments: object) -> None:
        with pytest.raises(gg.StateError) as caught:
            gg.fill_bitmask_batch(*arguments)  # type: ignore[arg-type]
        for part in parts.split("|"):
            assert part in str(caught.value)
        assert (bitmask == 7).all()

    twice = [*matchers[:-1], matchers[0]]
    check(f"matchers[{count - 1}]|is matchers[0] again", twice, bitmask)
    check("row 1 is given twice|own row", matchers, bitmask, [1, 1, *range(2, count)])
    check(f"row {count} is out of range", matchers, bitmask, range(1, count + 1))
    check("row -1 is out of range", matchers, bitmask, range(-1, count - 1))
    check(f"{count} matchers and 2 rows", matchers, bitmask, [0, 1])
    check(f"row {count - 1} is out of range", matchers, bitmask[: count - 1])
    check("has shape", matchers, bitmask[:, :-1])
    check("C-contiguous", matchers, np.asfortranarray(bitmask))
    check("int32", matchers, bitmask.astype(np.int64))
    ended = gg.Matcher(compiled("calc"))
    ended.accept_bytes(b"1")
    ended.accept_token(EOS)
    check(f"matchers[{count - 1}]: |terminated", [*matchers[:-1], ended], bitmask)
    with pytest.raises(TypeError):
        gg.fill_bitmask_batch([*matchers[:-1], "matcher"], bitmask)  # type: ignore[list-item]
    assert (bitmask == 7).all()
    gg.fill_bitmask_batch(matchers, bitmask)
    assert np.array_equal(bitmask, one_by_one(matchers))


def dead_end() -> gg.Matcher:
    """A matcher from which no token leads on."""
    with pytest.warns(gg.VocabWarning):
        no_c = gg.Vocab.from_bytes({0: b"a", 1: b"b"}, eos_ids=[2], size=VOCAB.size)
    grammar = gg.Grammar.from_lark('%glrgrid {"lexer": "basic"}\nstart: "a" "c" | "b"')
    dead = gg.Matcher(gg.compile(grammar, no_c))
    assert dead.accept_token(0)
    return dead


@pytest.mark.parametrize("count", [4, 60])
def test_a_dead_end_leaves_the_other_rows_filled(count: int) -> None:
    dead = dead_end()
    matchers = mixed(count)
    for place in (count - 2, 1):
        matchers[place] = dead.fork()
    bitmask = np.full((count, WORDS), 7, dtype=np.int32)
    with pytest.raises(gg.DeadEnd, match=r"^matchers\[1\]: dead end"):
        gg.fill_bitmask_batch(matchers, bitmask)
    assert not bitmask[1].any() and not bitmask[count - 2].any()
    alive = [row for row in range(count) if row not in (1, count - 2)]
    assert np.array_equal(bitmask[alive], one_by_one([matchers[row] for row in alive]))


def test_many_threads_on_one_cold_grammar() -> None:
    """Threads decode and fill batches at once, on a grammar that nobody has used before."""
    fresh = gg.load(compiled("sql_core").to_bytes(), VOCAB)
    start = threading.Barrier(6)
    failures: list[BaseException] = []

    def decode(seed: int) -> None:
        try:
            rng = random.Random(seed)
            matchers = [gg.Matcher(fresh) for _ in range(40)]
            bitmask = gg.allocate_token_bitmask(len(matchers), VOCAB.size)
            start.wait()
            for _ in range(12):
                gg.fill_bitmask_batch(matchers, bitmask)
                for row, matcher in enumerate(matchers):
                    bits = np.unpackbits(bitmask[row].view(np.uint8), bitorder="little")
                    token = int(rng.choice(np.flatnonzero(bits)))
                    assert matcher.accept_token(token)
                    if matcher.is_terminated():
                        matcher.rollback()
            for matcher in matchers:
                assert np.array_equal(matcher.mask(), matcher.fork().mask())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=decode, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_many_threads_see_the_masks_of_one() -> None:
    """Threads that walk the same texts at once, on a grammar nobody has used before, see what one thread sees."""
    texts = [
        b"SELECT a, b FROM t WHERE x = 'it''s' OR y IN (1, 2.5e3)",
        b"DELETE FROM t; SELECT (((1)))",
        b"(" * 90,
    ]
    paths = []
    for seed in range(8):
        rng = random.Random(seed)
        text = rng.choice(texts)
        cuts = sorted({0, len(text), *rng.sample(range(len(text)), 12)})
        paths.append([text[a:b] for a, b in itertools.pairwise(cuts)])

    def walk(grammar: gg.CompiledGrammar, path: list[bytes]) -> list[bytes]:
        matcher = gg.Matcher(grammar)
        masks = []
        for part in path:
            matcher.accept_bytes(part)
            masks.append(matcher.mask().tobytes())
        while matcher.steps:
            matcher.rollback()
            masks.append(matcher.mask().tobytes())
        return masks

    alone = [walk(compiled("sql_core"), path) for path in paths]
    for _ in range(5):
        fresh = gg.load(compiled("sql_core").to_bytes(), VOCAB)
        with ThreadPoolExecutor(len(paths)) as threads:
            assert list(threads.map(functools.partial(walk, fresh), paths)) == alone


def test_a_matcher_in_use_is_refused_and_the_gil_is_free() -> None:
    """While one thread fills batches, others run Python; a matcher that is being filled refuses their calls."""
    matchers = mixed(400)
    bitmask = gg.allocate_token_bitmask(len(matchers), VOCAB.size)
    done = threading.Event()

    def fill() -> None:
        until = time.monotonic() + 10
        while not done.is_set() and time.monotonic() < until:
            gg.fill_bitmask_batch(matchers, bitmask)

    thread = threading.Thread(target=fill)
    thread.start()
    refused = 0
    until = time.monotonic() + 10
    while not refused and time.monotonic() < until:
        try:
            matchers[200].is_accepting()
        except gg.StateError as error:
            assert "in use" in str(error)
            refused += 1
        except BaseException:
            done.set()
            raise
    done.set()
    thread.join()
    assert refused
    assert not matchers[200].is_terminated()


def test_a_batch_that_is_worth_help() -> None:
    """So many rows that helpers are called; some rows in their midst are dead ends."""
    matchers = mixed(50)
    expected = one_by_one(matchers)
    many = [matchers[row % 50].fork() for row in range(MANY)]
    bitmask = np.full((MANY, WORDS), 7, dtype=np.int32)
    gg.fill_bitmask_batch(many, bitmask)
    assert np.array_equal(bitmask.reshape(-1, 50, WORDS), np.broadcast_to(expected, (MANY // 50, 50, WORDS)))
    dead = dead_end()
    for place in (MANY - 7, 50 * 77 + 3):
        many[place] = dead.fork()
    bitmask[:] = 7
    with pytest.raises(gg.DeadEnd, match=r"^matchers\[3853\]: dead end"):
        gg.fill_bitmask_batch(many, bitmask)
    assert not bitmask[[3853, MANY - 7]].any()
    alive = np.setdiff1d(np.arange(MANY), [3853, MANY - 7])
    assert np.array_equal(bitmask[alive], expected[alive % 50])


def fill_in_child(matchers: list[gg.Matcher], queue: multiprocessing.Queue[bytes]) -> None:
    bitmask = gg.allocate_token_bitmask(len(matchers), VOCAB.size)
    gg.fill_bitmask_batch(matchers, bitmask)
    queue.put(hashlib.sha256(bitmask).digest())


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="processes are not forked here"
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_fills_batches_too() -> None:
    matchers = [matcher.fork() for matcher in mixed(50) for _ in range(MANY // 50)]
    bitmask = gg.allocate_token_bitmask(MANY, VOCAB.size)
    gg.fill_bitmask_batch(matchers, bitmask)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=fill_in_child, args=(matchers, queue))
    child.start()
    found = queue.get(timeout=60)
    child.join()
    assert found == hashlib.sha256(bitmask).digest()
