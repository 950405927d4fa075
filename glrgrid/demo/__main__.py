"""Runs the two parts of the demo and prints what happened.

The exit code is 1 if, in the first part, an output decoded under masks was refused by Lark or did not end (sqlglot
knows a somewhat smaller language than the grammar, so what it alone refuses is printed and is no failure), or if, in
the second, anything of :attr:`RoleResult.failures` happened.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

try:
    from .experiment import Judged, Result, run
    from .roles import VERDICTS, RoleResult, Ruled, run_roles
except ModuleNotFoundError as missing:
    sys.exit(f"error: the demo needs {missing.name}; pip install 'glrgrid[demo]'")

SHOWN = 8
"""Statements that are printed."""

SEED = 28
"""Of the statements decoded by default: one with which sqlglot, too, accepts all of them. Of others it refuses
about 1 %, though they are in the grammar."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m glrgrid.demo", description="Decode SQL under masks.")
    parser.add_argument("--count", type=int, default=200, help="statements to decode, in each part and role")
    parser.add_argument("--seed", type=int, default=SEED)
    chosen = parser.parse_args(arguments)
    if chosen.count < 1:
        parser.error("--count must be at least 1")

    console = Console(highlight=False, soft_wrap=True, markup=False)
    console.print("glrgrid demo: SQL from a small n-gram model, under the masks of the grammar sql_core\n")
    result = run(chosen.count, chosen.seed)
    _print_statements(console, result)
    _print_build(console, result)
    _print_times(console, result)
    _print_verdicts(console, result)
    failed = not all(judged.output.finished and judged.lark for judged in result.masked)

    console.print("\nRoles: the same kind of model over a shop's database, under the masks of three roles\n")
    started = time.perf_counter()
    results = run_roles(chosen.count, chosen.seed)
    for role_result in results:
        _print_role(console, role_result)
    _print_roles(console, results)
    console.print(f"in {time.perf_counter() - started:.0f} s")
    failures = [failure for role_result in results for failure in role_result.failures]
    for failure in failures:
        console.print(f"FAILED: {failure}")
    return 1 if failed or failures else 0


def _print_statements(console: Console, result: Result) -> None:
    console.print(f"Of {len(result.masked)} statements decoded under masks, every {_step(result)}th:")
    for judged in result.masked[:: _step(result)][:SHOWN]:
        console.print(f"  {_mark(judged)}  {judged.output.text}")
    broken = [judged for judged in result.free if not judged.valid]
    console.print("\nThe same model without masks, first of those that are no SQL:")
    for judged in broken[: SHOWN // 2]:
        console.print(f"  {_mark(judged)}  {judged.output.text}")
    console.print()


def _step(result: Result) -> int:
    return max(1, len(result.masked) // SHOWN)


def _mark(judged: Judged) -> str:
    return "valid  " if judged.valid else "invalid"


def _print_build(console: Console, result: Result) -> None:
    table = _table("build", "ms")
    for what, milliseconds in result.milliseconds.items():
        table.add_row(what, f"{milliseconds:,.1f}")
    console.print(table)
    console.print(f"artifact: {result.artifact_bytes:,} bytes\n")


def _print_times(console: Console, result: Result) -> None:
    table = _table("µs a call, from Python", "p50", "p99")
    for name, timing in (("while decoding", result.first_pass), ("best of five replays", result.best_pass)):
        for call, nanoseconds in (("mask", timing.mask), ("commit", timing.commit)):
            p50, p99 = np.percentile(nanoseconds, [50, 99]) / 1e3
            table.add_row(f"{call}, {name} ({len(nanoseconds):,} calls)", f"{p50:.2f}", f"{p99:.2f}")
    console.print(table)
    console.print()


def _print_verdicts(console: Console, result: Result) -> None:
    table = _table("statements", "with masks", "without")
    questions: list[tuple[str, Callable[[Judged], bool]]] = [
        ("decoded", lambda judged: True),
        ("finished", lambda judged: judged.output.finished),
        ("accepted by Lark, from the grammar's text", lambda judged: judged.lark),
        ("accepted by sqlglot", lambda judged: judged.sqlglot),
        ("valid: finished and accepted by both", lambda judged: judged.valid),
    ]
    for what, holds in questions:
        table.add_row(what, *(str(sum(map(holds, side))) for side in (result.masked, result.free)))
    console.print(table)
    cut, restarts = (
        sum(getattr(side.output, name) for side in result.masked) for name in ("cut", "restarts")
    )
    console.print(
        f"With masks, {cut} grew long and were rolled back to where they were last complete, and {restarts} "
        f"starts that had led to nothing complete were given up."
    )
    for judged in result.masked:
        if not judged.valid:
            console.print(f"{_reason(judged)}: {judged.output.text}")


def _reason(judged: Judged) -> str:
    if not judged.output.finished:
        return "unfinished"
    return "refused by sqlglot" if judged.lark else "refused by Lark"


def _print_role(console: Console, result: RoleResult) -> None:
    def shown(outputs: list[Ruled], verdict: str, count: int) -> list[str]:
        texts = sorted({r.output.text for r in outputs if r.verdict == verdict}, key=len)
        return texts[len(texts) // 2 :][:count]

    for text in shown(result.masked, "ran", SHOWN // 2):
        console.print(f"  {result.role.name:<8} {text}")
    for text in shown(result.free, "denied", SHOWN // 4):
        console.print(f"  without masks, denied by SQLite's authorizer:  {text}")


def _print_roles(console: Console, results: Sequence[RoleResult]) -> None:
    console.print()
    table = _table("statements", *(f"{r.role.name}\n{how}" for r in results for how in ("masks", "without")))
    sides = [side for result in results for side in (result.masked, result.free)]
    counts = [Counter(ruled.verdict for ruled in side) for side in sides]
    table.add_row("decoded", *(str(len(side)) for side in sides))
    for verdict, what in VERDICTS.items():
        table.add_row(what, *(str(count[verdict]) for count in counts))
    console.print(table)
    for result in results:
        controls = result.controls
        console.print(
            f"{result.role.name}: compiled in {result.compile_milliseconds:,.0f} ms; of {controls.hidden} statements "
            f"that touch one hidden thing and {controls.granted} that read one granted column, masks, checker and "
            f"SQLite judge {len(controls.missed)} otherwise than the grants"
        )


def _table(title: str, *columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(title, min_width=48)
    for column in columns:
        table.add_column(column, justify="right", min_width=10)
    return table


if __name__ == "__main__":
    sys.exit(main())
