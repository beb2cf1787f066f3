"""The picture of a forecast: what more homes bring, and what a split of the budget does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from edge_ldp.sums.modes import ONLY_REPORTS
from edge_ldp.sums.modes_text import ASKED, best_sums
from edge_ldp.sums.text import TITLES, percent_text, split_text, window_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from matplotlib.axes import Axes

    from edge_ldp.sums.modes import ModeChoice
    from edge_ldp.sums.text import ForecastStudy

COLOURS = {"whole": "#111111", "week": "#0b6bcb", "day": "#d1495b", "hour-of-day": "#2a9d5c"}
NOTE = "#555555"
DPI = 160
_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)


def draw_forecast(study: ForecastStudy, file: BinaryIO, kind: str) -> None:
    """Write the picture as `kind` ("png", "svg"); one number of homes has a panel of modes."""
    modes = study.modes[0] if len(study.modes) == 1 else ()
    panels = 1 + (len(study.splits) > 1) + bool(modes)
    figure = Figure(figsize=(6 * panels, 4.8), dpi=DPI, facecolor="white", layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    _homes(axes[0], study)
    if len(study.splits) > 1:
        _splits(axes[1], study)
    if modes:
        _modes(axes[-1], modes)
    first = study.by_homes[0]
    about = f"{first.fleet.days} days; {window_text(first.fleet)}; {study.law.source}"
    figure.supxlabel(about, fontsize=9, color=NOTE)
    figure.savefig(file, format=kind)


def _homes(axes: Axes, study: ForecastStudy) -> None:
    axes.set_title("95 % interval of the mean, ± % of the mean", loc="left", fontsize=11)
    first, curve = study.by_homes[0], study.curve
    homes = [found.fleet.homes for found in curve]
    for name in (row.horizon for row in first.rows if row.horizon in TITLES):
        found = [
            next(row.percent or 0.0 for row in each.rows if row.horizon == name) for each in curve
        ]
        axes.plot(homes, found, color=COLOURS[name], linewidth=2, label=TITLES[name])
    if len(study.by_homes) == 1:
        axes.axvline(first.fleet.homes, color=NOTE, linestyle=":")
    axes.set_xscale("log")
    axes.set_xlabel(f"homes (θ best for {TITLES[first.horizon]})")
    _percent_axis(axes)
    axes.grid(visible=True, which="major", color="#e4e4e4")
    axes.legend(frameon=False, fontsize=9)


def _splits(axes: Axes, study: ForecastStudy) -> None:
    first = study.by_homes[0]
    fleet = first.fleet
    title = f"the same ε {float(fleet.total):g} a window, split otherwise: ± % by "
    axes.set_title(title + TITLES[first.horizon], loc="left", fontsize=11)
    names = [split_text(found) for found in study.splits]
    asked = [found.fleet.window == fleet.window for found in study.splits]
    percents = [found.asked.percent or 0.0 for found in study.splits]
    colours = [COLOURS["hour-of-day"] if is_asked else "#b3a394" for is_asked in asked]
    bars = axes.barh(names, percents, color=colours)
    right = [
        f"± {percent_text(percent)}; one report: guess right {100 * found.guess:.4g} %"
        for percent, found in zip(percents, study.splits, strict=True)
    ]
    axes.bar_label(bars, labels=right, padding=4, fontsize=8)
    axes.set_xlim(0, 2.1 * max(percents))
    axes.invert_yaxis()
    axes.set_ylabel("reports × ε")
    axes.spines[["top", "right"]].set_visible(False)


def _modes(axes: Axes, modes: Sequence[ModeChoice]) -> None:
    axes.set_title("the same ε, by mode: ± % of the mean", loc="left", fontsize=11)
    shown = [one for one in modes if one.question not in ONLY_REPORTS]
    places = range(len(shown))
    reports = [next((r.percent for r in one.rows if r.shape is None), None) for one in shown]
    sums = [None if (row := best_sums(one)) is None else row.percent for one in shown]
    for shift, found, name in ((-0.2, reports, "reports"), (0.2, sums, "sums at home")):
        bars = axes.barh(
            [at + shift for at in places], [one or 0 for one in found], 0.4, label=name
        )
        told = [f"± {percent_text(one)}" for one in found]
        axes.bar_label(bars, labels=told, padding=4, fontsize=8)
    axes.set_yticks(list(places), [ASKED[one.question] for one in shown])
    axes.set_xlim(0, 1.25 * max([1.0, *(one or 0 for one in (*reports, *sums))]))
    axes.invert_yaxis()
    axes.legend(frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def _percent_axis(axes: Axes) -> None:
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.set_yticks([tick for tick in _TICKS if low <= tick <= high], minor=False)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
    axes.yaxis.set_minor_formatter(lambda *_: "")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
