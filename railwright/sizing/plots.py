"""Plots as SVG: what fills a whole, and a sweep with its knee. Needs the extra ``plots``."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from railwright.sizing.parallel import SizingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from railwright.sizing.document import Breakdown, Report, Sweep
    from railwright.sizing.units import Quantity

_SIZE = (8.0, 4.5)
_WIDE = 8
"""A range of values that is drawn on a logarithmic axis."""
_SCALES = {"B": 1e9, "B/s": 1e9, "GPU·s": 3600.0, "FLOP": 1e21, "token/s": 1e3, "": 0.01}
_NAMES = {
    "B": "GB",
    "B/s": "GB/s",
    "GPU·s": "GPU·h",
    "FLOP": "ZFLOP",
    "token/s": "thousand tokens/s",
    "": "%",
}
_INPUTS = {
    "sequence": "sequence (tokens)",
    "batch": "batch (sequences)",
    "micro_batch": "micro-batch (sequences)",
    "used": "used (share of the time)",
    "effective": "effective (share of the time)",
    "overlap": "overlap (share of the computation)",
    "efficiency": "efficiency (share of the peak)",
    "mfu": "MFU (share of the peak)",
}
# Okabe and Ito's palette, told apart also by those who see fewer colours, and one of Tol's.
_COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9",
    "#D55E00", "#F0E442", "#999999", "#882255", "#000000",
)  # fmt: skip


def plot(report: Report, path: Path) -> None:
    """Write the sweep of ``report``, or where it has none its breakdown, to ``path`` as SVG.

    Raises SizingError where matplotlib is missing or there is nothing to plot.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SizingError("plots need matplotlib: pip install 'railwright[plots]'") from error
    # Text stays text, and the same answer gives the same file.
    mpl.rcParams["svg.fonttype"] = "none"
    mpl.rcParams["svg.hashsalt"] = "railwright"
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.add_subplot()
    if report.sweep is not None:
        _sweep(axes, report.sweep)
    elif report.answer.breakdown is not None:
        _breakdown(axes, report.answer.breakdown)
    else:
        raise SizingError(f"`size {report.answer.command}` has nothing to plot without --sweep")
    title = report.answer.question
    if report.sweep is not None:
        title = f"size {report.answer.command} over {report.sweep.name}, all else as in: {title}"
    figure.suptitle(title, fontsize=8, wrap=True)
    try:
        figure.savefig(path, format="svg", metadata={"Date": None})
    except OSError as error:
        raise SizingError(f"{path}: {error.strerror}") from error


def _unit(amounts: Sequence[Quantity]) -> tuple[float, str]:
    """Scale and name of an axis for ``amounts``, which are of one unit."""
    unit = amounts[0].unit
    most = max(amount.value for amount in amounts)
    if unit == "s":
        spans = ((172800, 86400.0, "days"), (7200, 3600.0, "hours"), (0.5, 1.0, "s"))
        return next(((s, n) for least, s, n in spans if most >= least), (1e-3, "ms"))
    if len(unit) == 3 and unit.isupper() and most >= 1e6:
        return 1e6, f"million {unit}"
    if unit == "B" and most >= 1e12:
        return 1e12, "TB"
    return _SCALES.get(unit, 1.0), _NAMES.get(unit, unit)


def _breakdown(axes: Axes, breakdown: Breakdown) -> None:
    bars = breakdown.bars
    scale, unit = _unit([amount for parts in bars.values() for amount in parts.values()])
    ends = dict.fromkeys(bars, 0.0)
    for name, colour in zip(_parts(breakdown), itertools.cycle(_COLOURS), strict=False):
        label = name
        for row, (bar, parts) in enumerate(bars.items()):
            if name not in parts:
                continue
            width = parts[name].value / scale
            if len(bars) == 1:
                label = f"{name}: {f'{width:.3g} %' if unit == '%' else parts[name]}"
            axes.barh([row], [width], left=ends[bar], height=0.5, color=colour, label=label)
            ends[bar] += width
            label = ""
    right = max(ends.values())
    if breakdown.limit is not None:
        limit = breakdown.limit.value / scale
        name = f"{breakdown.limit_name}: {breakdown.limit}"
        axes.axvline(limit, color="black", linestyle="--", label=name)
        right = max(right, limit)
    axes.set_xlim(0, right * 1.05 or 1)
    # From the top downwards, as in the table.
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_yticks(range(len(bars)), list(bars))
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"{breakdown.title} ({unit})")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2, fontsize=8, frameon=False)


def _parts(breakdown: Breakdown) -> list[str]:
    """The names of all parts, each once: a part has one colour in all bars."""
    return list(dict.fromkeys(name for parts in breakdown.bars.values() for name in parts))


def _sweep(axes: Axes, sweep: Sweep) -> None:
    points = [point for point in sweep.points if point.results]
    if not points:
        raise SizingError(f"no value of {sweep.name} can be: there is nothing to plot")
    names = _shown(sweep)
    scale, unit = _unit([point.results[name] for point in points for name in names])
    numbers = [_number(point.value) for point in points]
    numeric = all(number is not None for number in numbers)
    places = [float(index) for index in range(len(points))]
    if numeric:
        places = [number or 0.0 for number in numbers]
    drawn: list[float] = []
    for name, colour in zip(names, _COLOURS, strict=False):
        heights = [point.results[name].value / scale for point in points]
        axes.plot(places, heights, marker="o", color=colour, label=name)
        drawn += heights
    if sweep.name == "nodes" and points[0].speed is not None:
        _knee(axes, sweep, places, drawn)
    _scaled(axes, places, drawn, numeric=numeric)
    axes.set_xticks(places, [point.value for point in points])
    axes.minorticks_off()
    axes.set_xlabel(_INPUTS.get(sweep.name, sweep.name.replace("_", " ")))
    axes.set_ylabel(f"{names[0] if len(names) == 1 else 'in all'} ({unit})")
    axes.grid(visible=True, color="#dddddd")
    axes.legend(fontsize=8, frameon=False)


def _knee(axes: Axes, sweep: Sweep, places: list[float], heights: list[float]) -> None:
    """What speed would ideally be, and a ring around the knee."""
    ideal = [heights[0] * place / places[0] for place in places]
    axes.plot(places, ideal, linestyle=":", color=_COLOURS[7], label="ideal, from the first")
    for place, height in zip(places, heights, strict=True):
        if sweep.knee is not None and place == float(sweep.knee):
            _ring(axes, place, height, f"knee: {sweep.knee}")


def _ring(axes: Axes, place: float, height: float, label: str) -> None:
    axes.plot(
        [place],
        [height],
        marker="o",
        markersize=12,
        markerfacecolor="none",
        markeredgecolor=_COLOURS[5],
        linestyle="none",
        label=label,
    )


def _shown(sweep: Sweep) -> list[str]:
    """What is drawn: over nodes what grows with them, else the main result and all of its unit.

    Results of the cost command are of one unit: its ways are drawn side by side.
    """
    results = next(point.results for point in sweep.points if point.results)
    if sweep.name == "nodes" and "throughput" in results:
        return ["throughput"]
    main = next(iter(results.values()))
    return [name for name, amount in results.items() if amount.unit == main.unit]


def _scaled(axes: Axes, places: list[float], heights: list[float], *, numeric: bool) -> None:
    """Logarithmic where values span more than a factor of eight, from zero elsewhere."""
    if numeric and min(places) > 0 and max(places) / min(places) >= _WIDE:
        axes.set_xscale("log", base=2)
    if min(heights) > 0 and max(heights) / min(heights) >= _WIDE:
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter("{x:g}")
    else:
        axes.set_ylim(0, max(heights) * 1.1 or 1)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
