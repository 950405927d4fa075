"""Runs JSON Schemas with test instances through the engine, and says which pass.

``python tests/python/maskbench.py FILE`` (JSON lines: ``id``, ``schema``, ``tests``) prints an outcome for each schema
that is not ``pass``, and counts; ``--expected`` compares with a file of ids and outcomes, ``--write`` makes one. An
outcome is

* ``pass``: every valid instance is accepted to the end in four ways of writing it, every invalid one in none;
* ``refused``: ``SchemaError`` or ``BudgetExceeded``;
* ``wrong``: anything else, a schema that takes more than ``LIMIT_SECONDS`` or ``LIMIT_BYTES`` included.

Keys are put in the order that a grammar wants, those the schema names first (module ``json_schema_order``): of valid
instances that are not accepted as they are, and of all invalid ones, so that none is refused for its order alone. An
instance whose label ``jsonschema`` contradicts is ``mislabelled``: it is listed, and the engine has to agree with
``jsonschema``.

Schemas run in processes of their own (:class:`Runner`), so that none can harm another.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import resource
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from json_schema_order import Reorderer
from json_schema_support import Judge

import glrgrid as gg

SPELLINGS: tuple[dict[str, Any], ...] = (
    {"separators": (",", ":")},
    {"separators": (", ", ": "), "ensure_ascii": False},
    {},
    {"indent": 2},
)
LIMIT_SECONDS, LIMIT_BYTES = 300, 3 << 30
"""What a schema with its instances may take."""


Task = Callable[[dict[str, Any], gg.Vocab], dict[str, Any]]


def byte_vocab() -> gg.Vocab:
    """One token for each byte: small, and every text has one tokenization."""
    return gg.Vocab.from_bytes({**{i: bytes([i]) for i in range(256)}, 256: b""}, eos_ids=[256])


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The cases of a file of JSON lines, gzipped or not."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for line in data.splitlines():
        yield json.loads(line)


def accepts(compiled: gg.CompiledGrammar, text: str) -> bool:
    """Whether the text is accepted to its end, with the end allowed there."""
    matcher = gg.Matcher(compiled)
    data = text.encode("utf-8", "surrogatepass")
    return matcher.accept_bytes(data) == len(data) and matcher.is_accepting()


def outcome(
    case: dict[str, Any],
    vocab: gg.Vocab,
    mode: str = "lazy",
    spellings: tuple[dict[str, Any], ...] = SPELLINGS,
) -> dict[str, Any]:
    """Run one case."""
    result: dict[str, Any] = {"id": case["id"], "outcome": "pass", "tests": len(case["tests"])}
    try:
        compiled = timed_compile(case["schema"], vocab, mode, result)
    except (gg.SchemaError, gg.BudgetExceeded) as error:
        return {**result, "outcome": "refused", "why": str(error), "error": type(error).__name__}
    except gg.GlrgridError as error:
        return {**result, "outcome": "wrong", "why": f"{type(error).__name__}: {error}"}
    reorderer, mislabelled = Reorderer(case["schema"]), []
    result |= {"reordered": 0, "mislabelled": mislabelled}
    for number, test in enumerate(case["tests"]):
        as_is, ordered = test["data"], reorderer.reordered(test["data"], [case["schema"]])
        plain = [accepts(compiled, json.dumps(as_is, **s)) for s in spellings]
        if (not all(plain) if test["valid"] else not any(plain)) and ordered_differently(as_is, ordered):
            plain = [accepts(compiled, json.dumps(ordered, **s)) for s in spellings]
            result["reordered"] += test["valid"]
        if all(p == test["valid"] for p in plain):
            continue
        if (verdict := judged(case["schema"], as_is)) is not None and verdict != test["valid"]:
            mislabelled.append(number)
            if all(p == verdict for p in plain):
                continue
        text = json.dumps(ordered, **spellings[plain.index(not test["valid"])])
        why = refusal(compiled, text) if test["valid"] else f"invalid accepted: {text[:300]}"
        return {**result, "outcome": "wrong", "test": number, "why": f"{plain} {why}"}
    return result


def timed_compile(schema: Any, vocab: gg.Vocab, mode: str, result: dict[str, Any]) -> gg.CompiledGrammar:
    """Compile; what it takes to the first mask goes into ``result``."""
    bitmask, text = gg.allocate_token_bitmask(1, vocab.size), json.dumps(schema)
    started = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grammar = gg.Grammar.from_json_schema(text)
        result["lower_ms"] = (time.perf_counter() - started[0]) * 1e3
        compiled = gg.compile(grammar, vocab, mode=mode, max_memory_mb=LIMIT_BYTES >> 20, on_budget="error")
    gg.Matcher(compiled).fill_next_token_bitmask(bitmask)
    result["first_mask_ms"] = (time.perf_counter() - started[0]) * 1e3
    result["cpu_ms"] = (time.process_time() - started[1]) * 1e3
    result["stats"] = compiled.stats
    if compiled.warnings:
        result["compile_warning"] = compiled.warnings[0]
    return compiled


def ordered_differently(value: Any, other: Any) -> bool:
    """Whether keys come in another order."""
    return json.dumps(value) != json.dumps(other)


def judged(schema: Any, value: Any) -> bool | None:
    """What ``jsonschema`` says; None if it cannot say."""
    try:
        return Judge(schema).accepts(json.dumps(value))
    except Exception:  # the judge's own troubles with odd schemas are not what is tested
        return None


def refusal(compiled: gg.CompiledGrammar, text: str) -> str:
    """Where a text is refused, and why."""
    matcher, data = gg.Matcher(compiled), text.encode("utf-8", "surrogatepass")
    taken = matcher.accept_bytes(data)
    why = matcher.explain_bytes(data[taken : taken + 1]).reason if taken < len(data) else "not complete"
    return f"valid refused: ...{data[max(0, taken - 60) : taken]!r} | {data[taken : taken + 30]!r}: {why}"


class Runner:
    """A process that runs one case after the other; another one takes its place when it dies or takes too long.

    ``task`` makes a result of a case and a vocabulary; ``vocab`` is a tokenizer file, or none for :func:`byte_vocab`.
    """

    def __init__(self, task: Task, vocab: str | None = None) -> None:
        self.settings = (task, vocab)
        self.process: Any = None

    def run(self, case: dict[str, Any]) -> dict[str, Any]:
        """The outcome of a case; ``wrong`` if the process did not survive it."""
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.pipe, theirs = context.Pipe()
            self.process = context.Process(target=_serve, args=(theirs, *self.settings), daemon=True)
            self.process.start()
            theirs.close()
            self.pipe.recv()
        self.pipe.send(case)
        try:
            if self.pipe.poll(LIMIT_SECONDS):
                result: dict[str, Any] = self.pipe.recv()
                return result
            why = f"took more than {LIMIT_SECONDS} s"
        except (EOFError, OSError):
            self.process.join()
            why = f"the process ended with code {self.process.exitcode}"
        self.close()
        return {"id": case["id"], "outcome": "wrong", "tests": len(case["tests"]), "why": why}

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def _serve(pipe: Any, task: Task, path: str | None) -> None:
    vocab = byte_vocab() if path is None else gg.Vocab.from_file(path)
    timed_compile({}, vocab, "lazy", {})  # what is kept beside a vocabulary
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES + (1 << 30),) * 2)
    pipe.send(None)
    while True:
        case = pipe.recv()
        try:
            pipe.send(task(case, vocab))
        except Exception as error:
            pipe.send({"id": case["id"], "outcome": "wrong", "tests": len(case["tests"]), "why": repr(error)})


def read_outcomes(path: Path) -> dict[str, str]:
    """The expected outcome of each schema."""
    return dict(line.split(" ") for line in path.read_text().splitlines())


def main() -> None:
    """Run a file and print what does not pass, then counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", help="ids that contain this")
    parser.add_argument("--skip", type=int, default=0, help="schemas to leave out at the beginning")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--vocab", help="tokenizer file; one token for each byte if left out")
    parser.add_argument("--mode", default="lazy", choices=("lazy", "aot"))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--quick", action="store_true", help="one spelling")
    parser.add_argument("--out", type=Path, help="JSON lines, one for each schema")
    parser.add_argument("--expected", type=Path, help="ids and outcomes; exit with 1 if any differs")
    parser.add_argument("--write", type=Path, help="write ids and outcomes")
    options = parser.parse_args()
    cases = [case for case in read(options.file) if not options.only or options.only in case["id"]]
    cases = list(islice(cases, options.skip, options.limit and options.skip + options.limit))
    task = partial(outcome, mode=options.mode, spellings=SPELLINGS[:1] if options.quick else SPELLINGS)
    out = options.out.open("w") if options.out else None
    results: dict[str, dict[str, Any]] = {}

    def run(share: list[dict[str, Any]]) -> None:
        runner = Runner(task, options.vocab)
        for case in share:
            results[case["id"]] = result = runner.run(case)
            if out:
                print(json.dumps(result), file=out, flush=True)
            if result["outcome"] != "pass":
                print(result["outcome"], result["id"], result.get("test", ""), result.get("why"), flush=True)
            elif result["mislabelled"]:
                print("pass, but mislabelled", result["id"], result["mislabelled"], flush=True)
        runner.close()

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(run, [cases[i :: options.jobs] for i in range(options.jobs)]))
    counts = Counter(r["outcome"] + ("" if r["tests"] else " (no tests)") for r in results.values())
    print(counts, f"reordered {sum(r.get('reordered', 0) for r in results.values())}", file=sys.stderr)
    for key in ("lower_ms", "first_mask_ms", "cpu_ms"):
        times = sorted(r[key] for r in results.values() if key in r)
        points = [times[min(len(times) - 1, int(len(times) * q))] for q in (0.5, 0.9, 0.99, 1) if times]
        print(key, *(f"{time:.2f}" for time in points), file=sys.stderr)
    outcomes = {case["id"]: results[case["id"]]["outcome"] for case in cases}
    if options.write:
        options.write.write_text("".join(f"{name} {outcome}\n" for name, outcome in outcomes.items()))
    if options.expected:
        expected = read_outcomes(options.expected)
        changed = [name for name, now in outcomes.items() if expected.get(name) != now]
        for name in changed:
            print(f"changed: {name} was {expected.get(name)}, is {outcomes[name]}", file=sys.stderr)
        sys.exit(bool(changed))


if __name__ == "__main__":
    main()
