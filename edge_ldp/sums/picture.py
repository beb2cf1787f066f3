"""The picture of a forecast: what more homes bring, and what a split of the budget does."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import BinaryIO

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edge_ldp.sums.modes import ONLY_REPORTS, ModeChoice
from edge_ldp.sums.modes_text import ASKED, best_sums
from edge_ldp.sums.text import TITLES, ForecastStudy, percent_text, split_text, window_text

COLOURS = {"whole": "#111111", "week": "#0b6bcb", "day": "#d1495b", "hour-of-day": "#2a9d5c"}
NOTE = "#555555"
DPI = 160
_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)


def draw_forecast(study: ForecastStudy, file: BinaryIO, kind: str) -> None:
    """Write the picture as `kind` ("png", "svg"); one number of homes has a panel of modes."""
    modes = study.modes[0] if len(study.modes) == 1 else ()
    drawn: list[Callable[[Axes], None]] = []
    if study.parts == 1:  # of longer slots there are no reports
        drawn.append(partial(_homes, study=study))
    if len(study.splits) > 1 and study.parts == 1:
        drawn.append(partial(_splits, study=study))
    if modes or not drawn:
        drawn.append(partial(_modes, study=study))
    figure = Figure(figsize=(6 * len(drawn), 4.8), dpi=DPI, facecolor="white", layout="constrained")
    for axes, draw in zip(figure.subplots(1, len(drawn), squeeze=False)[0], drawn, strict=True):
        draw(axes)
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


def _modes(axes: Axes, study: ForecastStudy) -> None:
    title = "the same ε, by mode" if study.parts == 1 else "sums at home"
    axes.set_title(f"{title}: ± % of the mean", loc="left", fontsize=11)
    by_homes = [[c for c in each if c.question not in ONLY_REPORTS] for each in study.modes]
    shown = by_homes[0]
    if study.parts == 1:
        reports = [next((r.percent for r in one.rows if r.shape is None), None) for one in shown]
        series = {"reports": reports, "sums at home": _of_sums(shown)}
    else:
        pairs = zip(study.by_homes, by_homes, strict=True)
        series = {f"{each.fleet.homes:,} homes": _of_sums(found) for each, found in pairs}
    thick = 0.8 / len(series)
    for number, (name, found) in enumerate(series.items()):
        places = [at + thick * (number - (len(series) - 1) / 2) for at in range(len(shown))]
        bars = axes.barh(places, [one or 0 for one in found], thick, label=name)
        told = [f"± {percent_text(one)}" for one in found]
        axes.bar_label(bars, labels=told, padding=4, fontsize=8)
    axes.set_yticks(range(len(shown)), [ASKED[one.question] for one in shown])
    axes.set_xlim(0, 1.25 * max([1.0, *(one or 0 for each in series.values() for one in each)]))
    axes.invert_yaxis()
    axes.legend(frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def _of_sums(found: Sequence[ModeChoice]) -> list[float | None]:
    return [None if (row := best_sums(one)) is None else row.percent for one in found]


def _percent_axis(axes: Axes) -> None:
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.set_yticks([tick for tick in _TICKS if low <= tick <= high], minor=False)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
    axes.yaxis.set_minor_formatter(lambda *_: "")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
