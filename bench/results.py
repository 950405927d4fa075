"""Write ``RESULTS.md``, and the table of the README, from what the benchmarks left in their folder.

``make bench`` runs the benchmarks, then this.

    python bench/results.py [--out bench/out]
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import report

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
SHOWN = ("glrgrid", "glrgrid-lazy", "glrmask-auto", "llguidance", "xgrammar")
"""Columns of the README's table, those that were measured."""
ROWS = {
    "time to first mask": ("ms", 1e3, ("p50", "p99")),
    "load to first mask": ("ms", 1e3, ("p50",)),
    "mask + commit, minima": ("µs", 1, ("p50", "p99", "p99.9", "p99.99")),
    "mask + commit, first pass": ("µs", 1, ("p99", "p99.99")),
    "new matcher, minima": ("µs", 1, ("p50",)),
    "artifact": ("KB", 1e3, ("mean",)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=HERE / "out", help="where results are (default: %(default)s)"
    )
    folder = parser.parse_args().out
    records = [json.loads(line) for line in (folder / "maskbench.jsonl").read_text("utf-8").splitlines()]
    day = time.strftime("%Y-%m-%d", time.gmtime(records[0]["time"]))
    schemas = (folder / "maskbench.md").read_text("utf-8").removeprefix("# JSON Schema\n")
    statements = (folder / "sql_tail.txt").read_text("utf-8").rstrip()
    (HERE / "RESULTS.md").write_text(
        "# Results\n\n"
        f"Made by `make bench`, {day}; how each is measured stands at the head of its script. Figures of one machine, "
        "with whatever else it did: judge by ratios and minima.\n\n"
        f"# JSON Schema (`maskbench.py`)\n\n![Tails](maskbench.svg)\n{schemas}\n"
        f"# SQL (`sql_tail.py`)\n\n![Tail](sql_tail.svg)\n\n```text\n{statements}\n```\n",
        encoding="utf-8",
    )
    for plot in ("maskbench.svg", "sql_tail.svg"):
        if (folder / plot).exists():
            shutil.copy(folder / plot, HERE / plot)
    text = README.read_text("utf-8")
    found = re.sub(
        r"(?s)(<!-- maskbench -->\n).*(<!-- end -->)",
        lambda match: match[1] + readme_table(records, day) + match[2],
        text,
    )
    README.write_text(found, encoding="utf-8")
    print("written: bench/RESULTS.md and its plots, the table in README.md")


def readme_table(records: list[Mapping[str, Any]], day: str) -> str:
    """The main figures, over the schemas that all engines pass."""
    run = records[0]
    figures = {(r["engine"], r["quantity"]): r for r in records if r.get("over") == "schemas all pass"}
    outcomes: dict[str, list[str]] = {}
    for record in records:
        if "schema" in record:
            outcomes.setdefault(record["engine"], []).append(record["outcome"])
    engines = [engine for engine in SHOWN if engine in outcomes]
    lines = ["| | " + " | ".join(engines) + " |", "|---|" + "---:|" * len(engines)]
    for outcome in ("passed", "refused", "wrong"):
        counts = [str(outcomes[engine].count(outcome)) for engine in engines]
        lines.append(f"| schemas {outcome} | " + " | ".join(counts) + " |")
    for quantity, (unit, scale, points) in ROWS.items():
        for point in points:
            found = [figures.get((engine, quantity)) for engine in engines]
            cells = ["–" if of is None else report.figure(of[point] / scale) for of in found]
            lines.append(f"| {quantity}, {point}, {unit} | " + " | ".join(cells) + " |")
    machine = run["machine"]
    return (
        f"{run['schemas']} schemas of MaskBench (seed {run['seed']}), {run['vocab_size']:,} ids; times over the "
        f"{run['schemas_all_pass']} that all engines pass, {run['steps_all_pass']:,} steps. One core of a "
        f"{machine['cores']}-core {machine['cpu']}, {day}; all of it in [bench/RESULTS.md](bench/RESULTS.md).\n\n"
        + "\n".join(lines)
        + "\n\n![Tails](bench/maskbench.svg)\n"
    )


if __name__ == "__main__":
    main()
