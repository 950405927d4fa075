"""Numbers of a benchmark as a table, as JSON lines and as a tail plot."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

POINTS = ("p50", "p90", "p99", "p99.9", "p99.99", "max", "mean")


def machine() -> dict[str, Any]:
    """What the numbers were taken on."""
    model = platform.processor() or platform.machine()
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), model)
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def distribution(nanoseconds: np.ndarray) -> dict[str, float]:
    """Percentiles, maximum and mean in microseconds. A percentile is a value that occurred."""
    shares = {"p50": 50, "p90": 90, "p99": 99, "p99.9": 99.9, "p99.99": 99.99, "max": 100}
    values = np.percentile(nanoseconds, list(shares.values()), method="higher") / 1e3
    return {**dict(zip(shares, map(float, values), strict=True)), "mean": float(nanoseconds.mean()) / 1e3}


def spread(values: Sequence[float]) -> dict[str, float]:
    """Minimum and median of repeated measurements."""
    return {"min": min(values), "median": statistics.median(values)}


@dataclass
class Row:
    """A line of the table.

    Attributes
    ----------
    values : mapping
        One figure per engine, NaN where it has none.
    aim : float, optional
        How small the first engine's should be beside the best of those it is compared with.
    compared : bool
        Whether a comparison means anything here.
    """

    label: str
    values: Mapping[str, float]
    aim: float | None = None
    digits: int = 2
    compared: bool = True


def table(engines: Sequence[str], against: Sequence[str], sections: Mapping[str, Iterable[Row]]) -> str:
    """Rows under headings; the last column is the first engine's figure over the least of ``against``."""
    wide = max(len(row.label) for rows in sections.values() for row in rows) + 2
    columns = [max(10, len(engine) + 2) for engine in engines]
    lines = [" " * wide + "".join(f"{name:>{width}}" for name, width in zip(engines, columns, strict=True))]
    if against:
        lines[0] += f"   {engines[0]} / {'best of ' if len(against) > 1 else ''}{', '.join(against)}"
    for heading, rows in sections.items():
        lines += ["", heading]
        for row in rows:
            line = f"  {row.label:<{wide - 2}}"
            for engine, width in zip(engines, columns, strict=True):
                value = row.values[engine]
                line += f"{'-' if math.isnan(value) else f'{value:,.{row.digits}f}':>{width}}"
            lines.append(line + (_comparison(engines[0], against, row) if row.compared else ""))
    return "\n".join(lines)


def _comparison(engine: str, against: Sequence[str], row: Row) -> str:
    others = [value for name in against if not math.isnan(value := row.values[name])]
    own = row.values[engine]
    if not others or not own or not min(others):
        return ""
    ratio = own / min(others)
    return f"   {share(ratio)}" + (verdict(ratio, row.aim) if row.aim is not None else "")


def share(ratio: float) -> str:
    """A ratio as people say it: one in so many, or so many times."""
    return f"1/{1 / ratio:.1f}" if ratio < 1 else f"{ratio:.2f}"


def verdict(ratio: float, aim: float) -> str:
    """Whether a ratio is as small as it should be."""
    return f"  (aim {f'1/{1 / aim:.0f}' if aim < 1 else f'{aim:.1f}'}: {'met' if ratio <= aim else 'missed'})"


def write_jsonl(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def figure(value: float) -> str:
    """Three digits, or all before the point."""
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def tail_plot(
    path: Path,
    title: str,
    panels: Mapping[str, tuple[str, float]],
    curves: Mapping[str, Mapping[str, np.ndarray]],
) -> bool:
    """Side by side, for each panel (with its unit and how many nanoseconds that is), the share of values above x.

    Returns False if matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawing, all_axes = pyplot.subplots(1, len(panels), figsize=(5 * len(panels), 4), constrained_layout=True)
    for axes, (panel, (unit, scale)) in zip(all_axes, panels.items(), strict=True):
        for engine, series in curves.items():
            values = np.sort(series[panel]) / scale
            # Two hundred points of each curve, dense in its tail, show the same.
            above = np.unique(np.geomspace(1, len(values), 200).astype(int))[::-1]
            axes.step(values[len(values) - above], above / len(values), label=engine, where="pre")
        axes.set(xscale="log", yscale="log", xlabel=f"{panel}, {unit}")
        axes.grid(True, which="both", alpha=0.3)
    all_axes[0].set_ylabel("share above x")
    all_axes[-1].legend(fontsize=8)
    drawing.suptitle(title)
    drawing.savefig(path)
    pyplot.close(drawing)
    return True
