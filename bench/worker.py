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
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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


@dataclass
class Schema:
    """What an engine made of a JSON Schema. Times are in nanoseconds, of steps in the order of instances.

    Attributes
    ----------
    refused : str or None
        Why it was not compiled.
    first_mask : int
        From schema text to the first mask.
    first, second, minima : array
        Steps of the first pass, on the object that was compiled; of the second, on one that was loaded or
        compiled anew, as for all others; the least of all.
    preempted : array of bool
        Steps of the first pass in which the thread lost its core.
    loads : list of (int, int)
        For each further pass: loading an artifact; the same to the first mask.
    """

    refused: str | None = None
    valid_refused: int = 0
    invalid_accepted: int = 0
    first_mask: int = 0
    compile_bytes: int = 0
    artifact_bytes: int | None = None
    loads: list[tuple[int, int]] = field(default_factory=list)
    first: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    second: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    minima: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    preempted: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    new: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    fork: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


class Bench:
    """The worker's end.

    ``prepare_vocab`` comes first. Whatever reads ``path`` expects there what ``save`` wrote, in this process
    or another.
    """

    def __init__(self, engine: str) -> None:
        self.engine = engines.ENGINES[engine]()

    def prepare_vocab(
        self, tokens: Sequence[bytes | None], eos_ids: Sequence[int], tokenizer: str | None = None
    ) -> float:
        """Seconds to prepare the vocabulary, a trivial grammar's compilation included.

        ``tokenizer`` is a file, for engines that tokenize text that is forced.
        """
        self.words = (len(tokens) + 31) // 32
        if tokenizer is not None:
            from corpus import encoder  # which imports glrgrid

            self.engine.encode = encoder(tokenizer, tokens)
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

    def schema(
        self,
        schema: str,
        valid: Sequence[Sequence[Sequence[int]]],
        invalid: Sequence[Sequence[Sequence[int]]],
        passes: int,
        seconds: float,
    ) -> Schema:
        """Everything about one JSON Schema: compile it, judge its instances, time their steps.

        An instance is given in one or several spellings, and accepted if one of them is. No further pass begins
        after ``seconds``.
        """
        result, bitmask = Schema(), np.zeros(self.words, dtype=np.int32)
        _trim()
        before, begun = self.rss_bytes(), time.monotonic()
        start = time.perf_counter_ns()
        try:
            compiled = self.engine.compile(self.engine.parse_schema(schema))
            self.engine.fill(self.engine.new(compiled), bitmask)()
        except Exception as error:
            result.refused = f"{type(error).__name__}: {error}"[:300]
            return result
        result.first_mask = time.perf_counter_ns() - start
        result.compile_bytes = max(0, self.peak_rss_bytes() - before)
        texts: list[Sequence[int]] = []
        for spellings in valid:
            taken = next((ids for ids in spellings if self._accepts(compiled, ids, result)), None)
            result.valid_refused += taken is None
            texts += [] if taken is None else [taken]
        result.invalid_accepted = sum(
            any(self._accepts(compiled, ids) for ids in spellings) for spellings in invalid
        )
        if result.valid_refused or result.invalid_accepted:
            return result
        result.minima = result.first.copy()
        with tempfile.NamedTemporaryFile() as file:
            if self.engine.has_artifact:
                result.artifact_bytes = self.engine.save(compiled, file.name)
            for number in range(1, passes):
                if time.monotonic() - begun > seconds:
                    break
                start = time.perf_counter_ns()
                if self.engine.has_artifact:
                    fresh = self.engine.load(file.name)
                    loaded = time.perf_counter_ns()
                    self.engine.fill(self.engine.new(fresh), bitmask)()
                    result.loads.append((loaded - start, time.perf_counter_ns() - start))
                else:
                    fresh = self.engine.compile(self.engine.parse_schema(schema))
                times = self._time(fresh, texts)
                if number == 1:
                    result.second, result.new, result.fork = times.step, times.new, times.fork
                for least, found in (
                    (result.minima, times.step),
                    (result.new, times.new),
                    (result.fork, times.fork),
                ):
                    np.minimum(least, found, out=least)
        return result

    def _accepts(self, compiled: Any, ids: Sequence[int], result: Schema | None = None) -> bool:
        """Whether a text is accepted, the end included. If so, its steps are added to the first pass of ``result``."""
        clock, usage = time.perf_counter_ns, resource.getrusage
        bitmask, steps = np.zeros(self.words, dtype=np.int32), []
        switches = [usage(resource.RUSAGE_THREAD).ru_nivcsw]
        matcher = self.engine.new(compiled)
        fill, accept = self.engine.fill(matcher, bitmask), self.engine.accept(matcher)
        with _gc_off(collect=False):
            for id_ in ids:
                start = clock()
                try:
                    fill()
                    taken = accept(id_)
                except Exception:
                    return False
                steps.append(clock() - start)
                switches.append(usage(resource.RUSAGE_THREAD).ru_nivcsw)
                if taken is False or not (int(bitmask[id_ // 32]) >> id_ % 32) & 1:
                    return False
        if not self.engine.is_accepting(matcher):
            return False
        if result is not None:
            result.first = np.append(result.first, np.array(steps, dtype=np.int64))
            result.preempted = np.append(result.preempted, np.diff(switches) > 0)
        return True

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

    def resident() -> int:
        _trim()
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    before = resident()
    made = make()
    return resident() - before, made


def _trim() -> None:
    """Return free memory."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


@contextlib.contextmanager
def _gc_off(collect: bool = True):
    if collect:
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

    def call(self, method: str, *arguments: Any, timeout: float | None = None) -> Any:
        """Run a method of :class:`Bench` there.

        Raises
        ------
        RuntimeError
            With the worker's traceback, or if it died.
        TimeoutError
            If it took more seconds than ``timeout``. The worker is then ended.
        """
        try:
            self._pipe.send((method, arguments))
            if late := not self._pipe.poll(timeout):
                self._process.kill()
            failed, result = (False, None) if late else self._pipe.recv()
        except (EOFError, OSError) as error:
            self._process.join()
            raise RuntimeError(
                f"{self.engine}: the worker ended with code {self._process.exitcode} in {method}"
            ) from error
        if late:
            self._process.join()
            raise TimeoutError(f"{self.engine}: {method} took more than {timeout:g} s")
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
