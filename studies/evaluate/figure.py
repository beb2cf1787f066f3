"""A figure of a study as PNG and SVG: one axes for each panel and data set, one legend for all.

Data sets stand beside each other, MOST_COLUMNS in a row; each axes names its data set and unit.
"""

from __future__ import annotations

import re
from io import BytesIO
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from PIL import Image

from studies.evaluate.summary import drawn_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from studies.evaluate.study import Panel
    from studies.evaluate.summary import Point

# Okabe and Ito's colours that are dark enough on white: told apart by nearly everyone
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444")
_MARKERS = "osD^vPX*<>"
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
_WIDTH_IN, _HEIGHT_IN, _DPI = 3.0, 2.5, 110
MOST_COLUMNS = 6
_PALETTE = 128  # colours of a PNG: a quarter of its bytes
_FEW_TICKS, _MANY_POINTS = 8, 24
_PANEL_LETTERS, _KEY_LETTERS = 43, 8  # of a legend: as wide as a panel, as its line and gaps
_LEAST_FOR_SPREAD = 5  # repeats; fewer say nothing of their spread
_SPREAD = 2  # standard errors on each side
_NARROW = 100  # ratio of a log axis' ends below which decades are divided
_PLAIN = (1e-4, 1e5)  # numbers written without a power of ten
_COORDINATES, _DIGITS = re.compile(rb' (?:d|x|y)="[^"]*"'), re.compile(rb"(\.\d)\d+")
_STYLE: Any = {
    "svg.hashsalt": "edge-ldp",
    "svg.fonttype": "none",
    "font.size": 9,
    "font.sans-serif": ["DejaVu Sans"],  # Matplotlib brings it; more names stand in every text
}


def draw_figure(
    panels: Sequence[Panel],
    points: Sequence[Point],
    title: str,
    stem: Path,
    units: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write `stem`.png and `stem`.svg of one figure's panels; return the paths written.

    `units`: of the data sets' values, by name. Equal points give equal bytes (no date, no random
    ids). Panels and data sets without a point are left out; nothing is written if there is none.
    """
    shown = [(panel, of) for panel in panels if (of := drawn_in(panel, points))]
    if not shown:
        return []
    with mpl.rc_context(_STYLE):
        figure = _figure(shown, _series(shown, points), title, units or {})
        paths = [stem.with_name(f"{stem.name}.{ending}") for ending in ("png", "svg")]
        paths[0].write_bytes(_png(figure))
        paths[1].write_bytes(_svg(figure))
    return paths


def _figure(
    shown: list[tuple[Panel, list[Point]]],
    series: list[str],
    title: str,
    units: Mapping[str, str],
) -> Figure:
    sets = list(dict.fromkeys(point.data for _, of in shown for point in of))
    each = -(-len(sets) // MOST_COLUMNS)  # rows of axes a panel
    columns = -(-len(sets) // each)
    figure = Figure(
        figsize=(_WIDTH_IN * max(columns, 2) + 0.3, _HEIGHT_IN * each * len(shown) + 1.2),
        dpi=_DPI,
        facecolor="white",
        layout="constrained",
    )
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    grid = figure.subplots(each * len(shown), columns, squeeze=False)
    for block, (panel, of) in zip(np.split(grid, len(shown)), shown, strict=True):
        for axes, data in zip_longest(block.ravel(), sets):
            _axes(axes, panel, [point for point in of if point.data == data], series)
            unit = units.get(data, "")
            axes.set_title(f"{data}, {unit}" if unit else data, loc="left", fontsize=9)
        for axes in block[:, 0]:
            axes.set_ylabel(panel.y_label)
        if panel.title:
            first = block[0, 0]
            name = first.get_title(loc="left")
            first.set_title(f"{panel.title}\n{name}", loc="left", fontsize=9)
    _legend(figure, grid, series, [point for _, of in shown for point in of])
    return figure


def _series(shown: list[tuple[Panel, list[Point]]], points: Sequence[Point]) -> list[str]:
    """Return all lines of the tasks behind the panels: each keeps its colour in every figure."""
    of = {panel.of or panel.figure for panel, _ in shown}
    return list(dict.fromkeys(point.series for point in points if point.figure in of))


def _axes(axes: Axes, panel: Panel, points: list[Point], series: list[str]) -> None:
    thick = series[0] if panel.compared is None else panel.compared
    for number, name in enumerate(series):
        line = sorted((point for point in points if point.series == name), key=lambda p: p.x)
        if line:
            _line(axes, line, number, thick=name == thick, log_y=panel.log_y)
    for name, at in panel.marks:
        if any(point.series == name for point in points):
            colour = _COLOURS[series.index(name) % len(_COLOURS)]
            axes.axvline(at, color=colour, linewidth=1.1, linestyle=(0, (1, 1.5)), zorder=1)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(panel.x_label)
    _scales(axes, panel, points)
    if not points:
        axes.set_axis_off()


def _line(axes: Axes, line: list[Point], number: int, *, thick: bool, log_y: bool) -> None:
    """Draw one line with its spread."""
    x, y = np.array([(point.x, point.mean) for point in line]).T
    is_banded = min(point.n for point in line) >= _LEAST_FOR_SPREAD
    colour = _COLOURS[number % len(_COLOURS)]
    if is_banded:
        error = _SPREAD * np.array([point.standard_error or 0.0 for point in line])
        low = np.maximum(y - error, y / 10) if log_y else y - error
        axes.fill_between(x, low, y + error, color=colour, alpha=0.15, linewidth=0)
    axes.plot(
        x,
        y,
        color=colour,
        label=line[0].series,
        linestyle=_DASHES[number // len(_COLOURS) % len(_DASHES)],
        linewidth=2.4 if thick else 1.2,
        marker=_MARKERS[number % len(_MARKERS)] if len(x) <= _MANY_POINTS else "",
        markersize=4.5 if thick else 3.5,
        zorder=3 if thick else 2,
    )


def _scales(axes: Axes, panel: Panel, points: list[Point]) -> None:
    """Set scales; name the x's where there are few, and parts of decades where they are few."""
    marked = {at for _, at in panel.marks}
    x = sorted({point.x for point in points} - marked)
    if panel.log_x and len(x) > 1:
        axes.set_xscale("log")
    if 0 < len(x) <= _FEW_TICKS:
        axes.set_xticks(x, [f"{at:g}" for at in x])
        axes.xaxis.set_minor_locator(NullLocator())
    heights = [point.mean for point in points if point.mean > 0]
    if panel.log_y and heights:
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(NullLocator())
        if max(heights) < _NARROW * min(heights):
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        plain = _PLAIN[0] <= min(heights) and max(heights) <= _PLAIN[1]
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}" if plain else _power(value))


def _power(value: float) -> str:
    """Return 5·10⁶ for 5e6."""
    digits, _, exponent = f"{value:.0e}".partition("e")
    factor = "" if digits == "1" else rf"{digits}\cdot"
    return f"${factor}10^{{{int(exponent)}}}$"


def _legend(figure: Figure, grid: Any, series: list[str], points: list[Point]) -> None:
    """Put one legend below all, in the series' order, saying what lines and bands are."""
    found: dict[str, Any] = {}
    for axes in grid.ravel():
        for line, name in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(name, line)
    order = [name for name in series if name in found]
    figure.legend(
        [found[name] for name in order],
        order,
        loc="outside lower center",
        ncols=min(len(order), _columns(order, grid.shape[1])),
        frameon=False,
        title=_caption([point.n for point in points]),
        title_fontsize=8,
    )


def _columns(names: list[str], panels: int) -> int:
    """Return how many columns of these names fit below so many panels."""
    wide, widest = max(panels, 2), max((len(name) for name in names), default=1)
    return max(1, min(2 * wide, _PANEL_LETTERS * wide // (widest + _KEY_LETTERS)))


def _caption(repeats: list[int]) -> str:
    least, most = min(repeats), max(repeats)
    if most == 1:
        return "one run"
    text = f"means of {most} repeats" if least == most else f"means of {least} to {most} repeats"
    if most < _LEAST_FOR_SPREAD:
        return f"{text}, too few for bands"
    return f"{text}; bands: ± {_SPREAD} standard errors of the mean"


def _png(figure: Figure) -> bytes:
    """Return a PNG of few colours: text and lines lose nothing anyone sees."""
    drawn, packed = BytesIO(), BytesIO()
    figure.savefig(drawn, format="png", metadata={"Software": None})
    with Image.open(drawn) as image:
        flat = image.convert("RGB").quantize(_PALETTE, dither=Image.Dither.NONE)
        flat.save(packed, format="PNG", optimize=True)
    return packed.getvalue()


def _svg(figure: Figure) -> bytes:
    """Return an SVG without date; coordinates to a tenth of a point, which is half the bytes."""
    drawn = BytesIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    short = _COORDINATES.sub(lambda found: _DIGITS.sub(rb"\1", found[0]), drawn.getvalue())
    return re.sub(rb"\n +", b"\n", short)
