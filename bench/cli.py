"""The options that benchmarks share."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Sequence
from pathlib import Path

from corpus import note
from engines import ENGINES


def parser(documentation: str) -> argparse.ArgumentParser:
    """Options of every benchmark: ``--json`` and ``--out``."""
    result = argparse.ArgumentParser(description=documentation.splitlines()[0])
    result.add_argument("--json", action="store_true", help="print the JSON lines and nothing else")
    result.add_argument(
        "--out",
        type=Path,
        default=Path(__file__).with_name("out"),
        help="where results go (default: %(default)s)",
    )
    return result


def add_engines(of: argparse.ArgumentParser, known: Sequence[str], default: Sequence[str]) -> None:
    """The option ``--engines``."""
    of.add_argument(
        "--engines", default=",".join(default), help=f"of {', '.join(known)} (default: %(default)s)"
    )
    of.set_defaults(known_engines=known)


def parse(of: argparse.ArgumentParser) -> argparse.Namespace:
    """The options; ``engines`` are those that are installed, ours first: the others are compared with it."""
    options = of.parse_args()
    if "known_engines" in options:
        wanted = options.engines.split(",")
        if unknown := set(wanted) - set(options.known_engines):
            of.error(f"no engine {', '.join(sorted(unknown))}; there are {', '.join(options.known_engines)}")
        options.engines = sorted(
            filter(_is_installed, wanted), key=lambda name: not name.startswith("glrgrid")
        )
    for name in ("passes", "rounds", "matchers", "sample"):
        if getattr(options, name, None) is not None and getattr(options, name) < 1:
            of.error(f"{name} start at 1")
    return options


def _is_installed(engine: str) -> bool:
    package = ENGINES[engine].package
    found = importlib.util.find_spec(package) is not None
    if not found:
        note(f"{engine} is left out: {package} is not installed")
    return found
