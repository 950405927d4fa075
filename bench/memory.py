"""Memory of matchers: glrgrid beside its peers.

Reported is what a process of its own grows by, with free memory returned to the system before and after: for
1,000 live matchers, each in the middle of an SQL statement, the first time, when what they share is made
too, and again; per new matcher; per fork; and per token of a long list of columns, which keeps the stack as
low as it is. Only glrgrid's matchers can undo all that they took.

Texts and vocabulary: ``corpus.py``. To have the real ones, set ``GLRGRID_DATA``.

    python bench/memory.py [--engines glrgrid,glrmask,llguidance] [--matchers 1000] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import cli
import report
from corpus import note, read_sql
from worker import Worker

from glrgrid import grammars

ENGINES_MEASURED = ("glrgrid", "glrmask", "llguidance")
GRAMMAR = "sql_core"
LONG = "SELECT a" + ", a" * 10_000
LIVE_AIM, TOKEN_AIM, MATCHER_AIM = 8e6, 16, 4096
"""Bytes that 1,000 live matchers, a token of history, and a matcher beside both, may take."""
QUANTITIES = {
    "live": ("{count:,} live matchers, MB", 1e6, 2),
    "live again": ("as many again, MB", 1e6, 2),
    "new": ("new matcher, bytes", 1, 0),
    "fork": ("fork, bytes", 1, 0),
    "token": ("token of a long text, bytes", 1, 1),
}


def main() -> None:
    options = _options()
    corpus = read_sql()
    long = corpus.encode(LONG)
    core = {max(os.sched_getaffinity(0))}
    machine = report.machine()
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for engine in options.engines:
            note(f"measure {engine}")
            path = str(Path(folder) / engine)
            with Worker(engine, core) as worker:
                worker.call("prepare_vocab", corpus.vocab.tokens, corpus.vocab.eos_ids)
                worker.call("compile", grammars.load(GRAMMAR))
                worker.call("save", path)
            # Afresh, so that what compiling left free does not hide what matchers take.
            with Worker(engine, core) as worker:
                worker.call("prepare_vocab", corpus.vocab.tokens, corpus.vocab.eos_ids)
                refused = worker.call("check", path, corpus.texts).refused
                accepted = [ids for ids, at in zip(corpus.texts, refused, strict=True) if at is None]
            with Worker(engine, core) as worker:
                worker.call("prepare_vocab", corpus.vocab.tokens, corpus.vocab.eos_ids)
                found[engine] = worker.call("memory", path, accepted, long, options.matchers)

    records: list[dict[str, Any]] = [
        {"bench": "memory", "quantity": "run", "time": int(time.time()), "machine": machine}
    ]
    for engine, grown in found.items():
        records += [
            {"bench": "memory", "engine": engine, "quantity": what, "unit": "bytes", "value": value}
            for what, value in grown.items()
        ]
    options.out.mkdir(parents=True, exist_ok=True)
    report.write_jsonl(options.out / "memory.jsonl", records)
    if options.json:
        print("\n".join(map(json.dumps, records)))
        return
    rows = [
        report.Row(
            label.format(count=options.matchers),
            {engine: found[engine][what] / unit for engine in found},
            digits=digits,
        )
        for what, (label, unit, digits) in QUANTITIES.items()
    ]
    others = [engine for engine in found if engine != "glrgrid"]
    print(f"{GRAMMAR}: {corpus.source}; {corpus.vocab.size:,} ids\n")
    print(report.table(list(found), others, {"Memory": rows}))
    if ours := found.get("glrgrid"):
        live = ours["live"] * 1000 / options.matchers
        token = ours["token"] - MATCHER_AIM / len(long)
        for what, value, aim in (
            ("1,000 live matchers", live, LIVE_AIM),
            (f"token of {len(long):,}, beyond {MATCHER_AIM} bytes a matcher", token, TOKEN_AIM),
        ):
            print(f"{what}: {value:,.2f} bytes (aim {aim:,.0f}: {'met' if value <= aim else 'missed'})")


def _options() -> argparse.Namespace:
    parser = cli.parser(__doc__)
    cli.add_engines(parser, ENGINES_MEASURED, ENGINES_MEASURED)
    parser.add_argument("--matchers", type=int, default=1000, help="default: %(default)s")
    return cli.parse(parser)


if __name__ == "__main__":
    main()
