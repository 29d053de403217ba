# SPDX-License-Identifier: GPL-2.0-or-later
"""Draw a described plot: as SVG for the report, with characters for a terminal."""

import io
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.results import Line, Plot

# One colour a policy or placement, the same everywhere (Okabe and Ito's: the colour-blind tell them
# apart).
COLOURS = {
    "none": "#0072b2",
    "movable": "#d55e00",
    "gcma": "#009e73",
    "noclean": "#f0e442",
    "clean": "#e69f00",
    "lazy": "#cc79a7",
    "adaptive": "#56b4e9",
    "gcma, always": "#cc79a7",
    "more memory": "#56b4e9",
    "Belady": "#999999",
    "same bank": "#d55e00",
    "different bank": "#e69f00",
    "different controller": "#009e73",
    "alone": "#0072b2",
}
OTHERS = ("#e69f00", "#56b4e9", "#cc79a7", "#999999", "#f0e442", "#000000")
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "gcma",  # the same picture is the same file
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "axes.axisbelow": True,
}
INCHES = (5.6, 3.6)
LEGEND_LETTERS = 85  # in a line
MANY = 100  # points: a line through them would be a stain
DOTS: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 2, "markeredgewidth": 0}

Scale = Callable[[float], float]


def colour(label: str, number: int) -> str:
    return COLOURS.get(label, OTHERS[number % len(OTHERS)])


def svg(plot: Plot) -> str:
    """The picture, ready to stand in an HTML page."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=INCHES, layout="constrained")
        axes = figure.add_subplot()
        _DRAW[plot.kind](axes, plot)
        axes.set(xlabel=plot.x, ylabel=plot.y)
        if plot.log_x:
            axes.set_xscale("log")
        if plot.log_y:
            axes.set_yscale("log")
        if len(plot.lines) > 1:
            _draw_legend(figure, plot)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return re.sub(r"^.*?(?=<svg)", "", text.getvalue(), flags=re.S)


def _draw_legend(figure: Figure, plot: Plot) -> None:
    """Above the picture, where it hides nothing."""
    columns = LEGEND_LETTERS // (max(len(line.label) for line in plot.lines) + 6)  # and its mark
    figure.legend(
        loc="outside upper left",
        ncols=max(columns, 1),
        frameon=False,
        fontsize=9,
        markerscale=2.5 if any(_crowded(line) for line in plot.lines) else 1,
    )


def _crowded(line: Line) -> bool:
    return len(line.points) > MANY


def _draw_cdf(axes: Axes, plot: Plot) -> None:
    for number, line in enumerate(plot.lines):
        x, y = steps(line)
        axes.plot(x, y, label=line.label, color=colour(line.label, number), linewidth=2)
    axes.set_ylim(0, 1.02)


def steps(line: Line) -> tuple[list[float], list[float]]:
    """The corners of the stairs: a share holds until the next value."""
    x, y = [line.points[0][0]], [0.0]
    for value, share in line.points:
        x += [value, value]
        y += [y[-1], share]
    return x, y


def _draw_lines(axes: Axes, plot: Plot) -> None:
    for number, line in enumerate(plot.lines):
        x, y = zip(*line.points, strict=True)
        style = DOTS if _crowded(line) else {"marker": "o", "markersize": 4}
        axes.plot(x, y, label=line.label, color=colour(line.label, number), **style)


def _draw_points(axes: Axes, plot: Plot) -> None:
    for number, line in enumerate(plot.lines):
        x, y = zip(*line.points, strict=True)
        style = DOTS | {"markersize": 2 if _crowded(line) else 5}
        axes.plot(x, y, label=line.label, color=colour(line.label, number), **style)


def _draw_bars(axes: Axes, plot: Plot) -> None:
    width = 0.8 / len(plot.lines)
    for number, line in enumerate(plot.lines):
        shift = (number - (len(plot.lines) - 1) / 2) * width
        at = [x + shift for x, _ in line.points]
        axes.bar(
            at,
            [y for _, y in line.points],
            width,
            label=line.label,
            color=colour(line.label, number),
        )
    axes.set_xticks(range(len(plot.groups)), plot.groups)
    axes.grid(False, axis="x")


_DRAW = {"cdf": _draw_cdf, "lines": _draw_lines, "points": _draw_points, "bars": _draw_bars}


# Terminal

MARKS = "oxv+*#"
COLUMNS, ROWS = 68, 16


def text(plot: Plot, columns: int = COLUMNS, rows: int = ROWS) -> str:
    """A CDF in characters; the later line wins where two cross."""
    values = [x for line in plot.lines for x, _ in line.points]
    low, high = min(values), max(values)
    scale = math.log10 if plot.log_x and low > 0 else float
    span = scale(high) - scale(low) or 1.0
    cells = [[" "] * columns for _ in range(rows)]
    for number, line in enumerate(plot.lines):
        for column in range(columns):
            at = scale(low) + span * (column + 1) / columns
            share = _share(line.points, at, scale)
            if share > 0:
                cells[rows - math.ceil(share * rows)][column] = MARKS[number % len(MARKS)]
    return "\n".join([plot.title, *_frame(cells), *_foot(plot, low, high, columns)])


def _share(points: Sequence[tuple[float, float]], at: float, scale: Scale) -> float:
    return max((share for value, share in points if scale(value) <= at + 1e-9), default=0.0)


def _frame(cells: Sequence[Sequence[str]]) -> list[str]:
    rows = len(cells)
    lines = []
    for number, row in enumerate(cells):
        percent = round(100 * (rows - number) / rows)
        tick = f"{percent:4d} %" if number % 4 == 0 else " " * 6
        lines.append(f"{tick} |{''.join(row)}".rstrip())
    return lines


def _foot(plot: Plot, low: float, high: float, columns: int) -> list[str]:
    ends = f"{low:,.3g}", f"{high:,.3g}" + (" (log)" if plot.log_x else "")
    middle = plot.x.center(max(columns - len(ends[0]) - len(ends[1]), 0))
    key = "   ".join(
        f"{MARKS[number % len(MARKS)]} {line.label}" for number, line in enumerate(plot.lines)
    )
    return ["       +" + "-" * columns, f"        {ends[0]}{middle}{ends[1]}", f"        {key}"]
