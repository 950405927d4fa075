"""An engine in a process of its own, pinned, that does one thing at a time when told to.

:class:`Worker` is the driver's end: ``worker.call("method", ...)`` runs :class:`Bench`'s method there and
returns its result. Since the driver waits for each call, two engines never run at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import itertools
import multiprocessing
import os
import resource
import time
import traceback
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import engines
import numpy as np


@dataclass
class Checked:
    """What an engine made of some texts, untimed.

    Attributes
    ----------
    refused : list of int or None
        Per text the step at which it was refused, ``len(ids)`` if it may not end where it does; None if it
        was accepted.
    digests : list of int
        One per mask, to compare runs of one engine.
    """

    refused: list[int | None]
    digests: list[int]


@dataclass
class Times:
    """Nanoseconds: ``step`` and its parts ``fill`` and ``accept`` by step, ``new`` and ``fork`` by text."""

    step: np.ndarray
    fill: np.ndarray
    accept: np.ndarray
    new: np.ndarray
    fork: np.ndarray


@dataclass
class Pass:
    """One pass: on an object just loaded, then, unless the engine is slow, once more on the same object."""

    load: int
    fresh: Times
    warm: Times | None


class Bench:
    """The worker's end.

    ``prepare_vocab`` comes first. Whatever reads ``path`` expects there what ``save`` wrote, in this process
    or another.
    """

    def __init__(self, engine: str) -> None:
        self.engine = engines.ENGINES[engine]()

    def prepare_vocab(self, tokens: Sequence[bytes | None], eos_ids: Sequence[int]) -> float:
        """Seconds to prepare the vocabulary, a trivial grammar's compilation included."""
        self.words = (len(tokens) + 31) // 32
        start = time.perf_counter_ns()
        self.engine.prepare_vocab(tokens, eos_ids)
        return (time.perf_counter_ns() - start) / 1e9

    def version(self) -> str:
        return self.engine.version()

    def compile(self, text: str, derive: bool = True) -> tuple[float, float]:
        """Seconds to parse the grammar, and to compile it. Deriving it from the original is not timed.

        Without ``derive`` the engine is given the text as it is.
        """
        if derive:
            text = self.engine.grammar_text(text)
        gc.collect()
        start = time.perf_counter_ns()
        grammar = self.engine.parse(text)
        parsed = time.perf_counter_ns()
        self.compiled = self.engine.compile(grammar)
        return (parsed - start) / 1e9, (time.perf_counter_ns() - parsed) / 1e9

    def save(self, path: str) -> int | None:
        """Bytes of the artifact; None if the engine has none."""
        size = self.engine.save(self.compiled, path)
        return size if self.engine.has_artifact else None

    def check(self, path: str, texts: Sequence[Sequence[int]], poison: bool = False) -> Checked:
        """Run texts untimed. With ``poison``, the bitmask holds noise before each fill."""
        compiled = self.engine.load(path)
        noise = np.random.default_rng(0).integers(-(2**31), 2**31, self.words, dtype=np.int32)
        bitmask = np.zeros(self.words, dtype=np.int32)
        result = Checked([], [])
        for ids in texts:
            matcher = self.engine.new(compiled)
            fill, accept = self.engine.fill(matcher, bitmask), self.engine.accept(matcher)
            at = None
            for step, id_ in enumerate(ids):
                if poison:
                    np.copyto(bitmask, noise)
                try:
                    fill()
                    allowed = (int(bitmask[id_ // 32]) >> id_ % 32) & 1
                    accepted = accept(id_)
                except Exception:
                    allowed = accepted = False
                if bool(allowed) != bool(accepted):
                    raise RuntimeError(
                        f"{self.engine.name}: mask and commit disagree on token {id_} at step {step}"
                    )
                if not accepted:
                    at = step
                    break
                result.digests.append(zlib.crc32(bitmask))
            if at is None and not self.engine.is_accepting(matcher):
                at = len(ids)
            result.refused.append(at)
        return result

    def masks(self, path: str, texts: Sequence[Sequence[int]], out: str) -> None:
        """Write the masks of accepted texts to a file, one row per step."""
        compiled = self.engine.load(path)
        rows = np.lib.format.open_memmap(out, "w+", np.int32, (sum(map(len, texts)), self.words))
        row = 0
        for ids in texts:
            matcher = self.engine.new(compiled)
            accept = self.engine.accept(matcher)
            for id_ in ids:
                self.engine.fill(matcher, rows[row])()
                accept(id_)
                row += 1
        rows.flush()

    def run(self, path: str, texts: Sequence[Sequence[int]]) -> Pass:
        """One timed pass."""
        start = time.perf_counter_ns()
        compiled = self.engine.load(path)
        load = time.perf_counter_ns() - start
        fresh = self._time(compiled, texts)
        repeated = self.engine.most_passes >= engines.MANY
        return Pass(load, fresh, self._time(compiled, texts) if repeated else None)

    def _time(self, compiled: Any, texts: Sequence[Sequence[int]]) -> Times:
        """A fresh matcher per text, one step per token, a fork at the end."""
        clock = time.perf_counter_ns
        bitmask = np.zeros(self.words, dtype=np.int32)
        begun, filled, done, new, fork = [], [], [], [], []
        with _gc_off():
            for ids in texts:
                start = clock()
                matcher = self.engine.new(compiled)
                new.append(clock() - start)
                fill, accept = self.engine.fill(matcher, bitmask), self.engine.accept(matcher)
                for id_ in ids:
                    before = clock()
                    fill()
                    between = clock()
                    accept(id_)
                    after = clock()
                    begun.append(before)
                    filled.append(between)
                    done.append(after)
                start = clock()
                copy = self.engine.fork(matcher)
                fork.append(clock() - start)
                del copy
        t0, t1, t2 = (np.array(times, dtype=np.int64) for times in (begun, filled, done))
        return Times(t2 - t0, t1 - t0, t2 - t1, np.array(new), np.array(fork))

    def memory(
        self, path: str, texts: Sequence[Sequence[int]], long: Sequence[int], count: int
    ) -> dict[str, float]:
        """Bytes that the process grows by.

        For ``count`` matchers, each in the middle of one of ``texts``, which it accepts; for as many again;
        per new matcher, per fork, and per token of ``long`` of one matcher.
        """
        compiled = self.engine.load(path)

        def start(ids: Sequence[int]) -> Any:
            matcher = self.engine.new(compiled)
            accept = self.engine.accept(matcher)
            for id_ in ids:
                if not accept(id_):
                    raise RuntimeError(f"{self.engine.name} refuses token {id_}")
            return matcher

        def live() -> list[Any]:
            return [start(ids[: len(ids) // 2]) for ids in itertools.islice(itertools.cycle(texts), count)]

        first, matchers = _grown(live)
        grown = {"live": first, "live again": _grown(live)[0]}
        grown["new"] = _grown(lambda: [self.engine.new(compiled) for _ in range(count)])[0] / count
        grown["fork"] = _grown(lambda: [self.engine.fork(matcher) for matcher in matchers])[0] / count
        grown["token"] = _grown(lambda: start(long))[0] / len(long)
        return grown

    def overhead(self, steps: int) -> np.ndarray:
        """What the timing itself costs: nanoseconds of the same loop around nothing."""
        clock = time.perf_counter_ns
        begun, filled, done = [], [], []
        with _gc_off():
            for _ in range(steps):
                before = clock()
                between = clock()
                after = clock()
                begun.append(before)
                filled.append(between)
                done.append(after)
        return np.array(done, dtype=np.int64) - np.array(begun, dtype=np.int64)

    def rss_bytes(self) -> int:
        """Resident now. Peaks are counted from here on."""
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
        return self._status("VmRSS")

    def peak_rss_bytes(self) -> int:
        return self._status("VmHWM")

    def _status(self, field: str) -> int:
        with open("/proc/self/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


def _grown(make: Callable[[], Any]) -> tuple[float, Any]:
    """What resident memory grows by, and what was made. Free memory is returned before and after."""
    libc = ctypes.CDLL(None)

    def resident() -> int:
        gc.collect()
        libc.malloc_trim(0)
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    before = resident()
    made = make()
    return resident() - before, made


@contextlib.contextmanager
def _gc_off():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Worker:
    """A process that holds one engine.

    Parameters
    ----------
    engine : str
        A key of ``engines.ENGINES``.
    cores : set of int
        Where it may run. It is pinned before the engine is imported, so threads that the engine starts are
        too.
    """

    def __init__(self, engine: str, cores: set[int]) -> None:
        self.engine = engine
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, engine, cores), daemon=True)
        self._process.start()
        theirs.close()

    def call(self, method: str, *arguments: Any) -> Any:
        """Run a method of :class:`Bench` there.

        Raises
        ------
        RuntimeError
            With the worker's traceback, or if it died.
        """
        try:
            self._pipe.send((method, arguments))
            failed, result = self._pipe.recv()
        except (EOFError, OSError) as error:
            self._process.join()
            raise RuntimeError(
                f"{self.engine}: the worker ended with code {self._process.exitcode} in {method}"
            ) from error
        if failed:
            raise RuntimeError(f"{self.engine}: {method} failed\n{result}")
        return result

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._pipe.send(None)
        self._process.join()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _serve(pipe: Any, engine: str, cores: set[int]) -> None:
    os.sched_setaffinity(0, cores)
    bench = Bench(engine)
    while (request := pipe.recv()) is not None:
        method, arguments = request
        try:
            pipe.send((False, getattr(bench, method)(*arguments)))
        except Exception:
            pipe.send((True, traceback.format_exc()))
