"""The picture of a run: four panels, drawn without a display."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from edge_ldp.arrays import Floats
from firmware_stubs.demo.compare import Comparison
from firmware_stubs.demo.drawing import ESTIMATE, FAINT, NOTE, PLAIN, TRUTH, canvas, entitle, key
from firmware_stubs.demo.scenario import BIN_W, CEILING_W, DAY_S, EPSILON

SOURCES = (
    "Data: 400 Swiss homes, calendar weeks 44 to 50 of an unpublished year (University of Bamberg, "
    "CC BY-SA 4.0), and two winters of one French home (UCI 235, CC BY 4.0)."
)
QUANTILE = 0.995
KILO = 1000
_HOUR_TICKS = range(0, 25, 3)
_NOTE: dict[str, Any] = {"color": NOTE, "fontsize": 9, "va": "top"}


def draw(found: Comparison, true_density: Floats, path: Path) -> None:
    """Write the picture as a PNG."""
    title = f"What {found.scenario.devices} homes use, without any of them telling"
    figure = canvas(title, _summary(found), SOURCES)
    axes = figure.subplots(2, 2)
    _hours(axes[0, 0], found)
    _density(axes[0, 1], found, true_density)
    _thresholds(axes[1, 0], found)
    _days(axes[1, 1], found)
    figure.savefig(path)


def _summary(found: Comparison) -> str:
    scenario, whole = found.scenario, found.whole
    error = whole.percent(whole.estimate.mean - whole.truth)
    return (
        f"{found.readings / 1e6:.2f} million real quarter-hour readings over {scenario.weeks} "
        f"weeks, each randomised on the device at ε = {EPSILON}. "
        f"Whole run: {whole.total.mean:,.0f} MWh estimated\n"
        f"± {whole.percent(whole.estimate.half_width):.1f} %, {whole.true_total:,.0f} MWh true "
        f"({signed(error)} %). {found.held} of 24 hour-of-day intervals hold the truth."
    )


def _hours(axes: Axes, found: Comparison) -> None:
    """Draw mean power by hour of the day: truth, estimate with interval, and without truncation."""
    entitle(axes, "Mean power of a home by hour of the day, kW")
    hours = np.array([row.hour for row in found.hours]) + 0.5
    plain = np.array([_interval(row.untruncated) for row in found.hours]) / KILO
    given = np.array([_interval(row.estimate) for row in found.hours]) / KILO
    truth = np.array([row.truth for row in found.hours]) / KILO
    _bars(axes, hours, plain, PLAIN, width=1.2)
    axes.bar(hours, given[:, 2] - given[:, 1], 0.72, given[:, 1], color=ESTIMATE, alpha=0.25)
    axes.hlines(given[:, 0], hours - 0.36, hours + 0.36, ESTIMATE, linewidth=2)
    axes.plot(hours, truth, color=TRUTH, linewidth=1.8, marker="o", markersize=3.5)
    axes.set_ylim(0, float(np.maximum(plain, given).max()) * 1.35)
    _hour_axis(axes)
    key(
        axes,
        ("truth (only the demo knows it)", TRUTH),
        ("estimate with 95 % interval", ESTIMATE),
        (f"simulated without truncation (θ = {CEILING_W / KILO:.1f} kW)", PLAIN),
    )


def _density(axes: Axes, found: Comparison, true_density: Floats) -> None:
    """Draw the reconstructed distribution beside the true one, up to its 99.5 % quantile."""
    edges = np.array(found.density["edges"], float)
    cut = float(np.interp(QUANTILE, np.cumsum(true_density), edges[1:]))
    bins = np.arange(0, np.ceil(cut / BIN_W) * BIN_W + 1, BIN_W)
    truth = 100 * np.diff(_cumulative(edges, true_density, bins))
    shown, low, high = (
        [100 * row[name] for row in found.shares[: len(truth)]]
        for name in ("share", "share_low", "share_high")
    )
    entitle(axes, f"Share of readings in each {BIN_W / KILO:.1f} kW, % (log scale)")
    axes.stairs(truth, bins / KILO, fill=True, color=FAINT, baseline=1e-3)
    axes.stairs(high, bins / KILO, baseline=low, fill=True, color=ESTIMATE, alpha=0.22)
    axes.stairs(shown, bins / KILO, color=ESTIMATE, linewidth=2, baseline=None)
    axes.set_yscale("log")
    axes.set_ylim(max(0.01, float(truth[truth > 0].min()) / 3), 200)
    axes.set_xlim(0, float(bins[-1]) / KILO)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel(f"power, kW (up to the {100 * QUANTILE:g} % quantile)")
    key(
        axes,
        ("true readings", "#8a8a8a"),
        ("reconstructed from reports, 95 %", ESTIMATE),
        right=True,
    )


def _thresholds(axes: Axes, found: Comparison) -> None:
    """Draw the threshold θ of each plan, and its share of surveys, over the simulated days."""
    entitle(axes, "Threshold θ, kW, and share of surveys, as chosen")
    origin_s, days = found.scenario.origin_s, found.scenario.days
    rows = found.thetas_played
    edges = [*(max(0.0, (row["issued_s"] - origin_s) / DAY_S) for row in rows), float(days)]
    thetas = [row["theta"] / KILO for row in rows]
    if len(rows) > 1:  # the first plan asks for surveys alone: it has no θ yet
        axes.stairs(thetas[1:], edges[1:], baseline=None, color=ESTIMATE, linewidth=2.5)
        axes.text(edges[1] + 0.5, CEILING_W / KILO * 0.94, "← first: surveys only", **_NOTE)
    axes.axhline(CEILING_W / KILO, color=PLAIN, linewidth=1.2, linestyle=(0, (4, 3)))
    axes.text(
        *(days, CEILING_W / KILO * 0.985, "rating of the connection"),
        ha="right",
        **_NOTE,
    )
    last = -np.inf
    nexts = [*thetas[1:], thetas[-1]]
    for start, theta, after, row in list(zip(edges, thetas, nexts, rows, strict=False))[1:]:
        if start - last > days / 6:
            label = f"{theta:.1f} kW, {row['survey_share']:.0%} surveys"
            where = (theta - 0.8, "top") if after > theta else (theta + 0.8, "bottom")
            axes.text(start + 0.4, where[0], label, va=where[1], color=ESTIMATE, fontsize=9.5)
            last = start
    axes.set_xlim(0, days)
    axes.set_ylim(0, CEILING_W / KILO * 1.06)
    axes.set_xticks(range(0, days + 1, 7))
    axes.set_xlabel("simulated day (lines: weeks)")
    axes.grid(axis="x", color=FAINT, linewidth=0.8)


def _days(axes: Axes, found: Comparison) -> None:
    """Draw each day's total by homes' daily sums, as they ship, and what reports would tell."""
    entitle(axes, "Each day's energy of all homes, MWh, as shipped: ε 8")
    shipped = found.shipped
    if shipped is None:  # no day was whole
        axes.set_axis_off()
        return
    given = np.array([_interval(row.total) for row in shipped.days])
    at = np.array(range(len(given))) + 0.5
    _bars(axes, at, given, ESTIMATE, width=2.4)
    axes.plot(at, [row.truth for row in shipped.days], color=TRUTH, linewidth=1.8)
    axes.set_xlim(0, len(given))
    axes.set_ylim(0, float(given.max()) * 1.35)
    axes.set_xlabel("simulated day")
    (_, whole), (_, day) = ((row[0], row[-2:]) for row in shipped.lines)
    key(
        axes,
        ("truth (only the demo knows it)", TRUTH),
        (f"daily sums: ± {day[0]} % a day, {whole[0]} % of the run", ESTIMATE),
        (f"8 reports in 97 slots would tell: ± {day[1]} %, {whole[1]} %", PLAIN),
    )


def signed(number: float, digits: int = 1) -> str:
    """Return a number with its sign, as it is printed: a minus is no hyphen."""
    return f"{number:+.{digits}f}".replace("-", "−")


def _interval(interval: object) -> tuple[float, float, float]:
    mean, low, high = (getattr(interval, name) for name in ("mean", "low", "high"))
    return mean, low, high


def _cumulative(edges: Floats, probabilities: Floats, at: Floats) -> Floats:
    """Return the share below each point, straight within a bucket."""
    return np.asarray(np.interp(at, edges, np.concatenate([[0.0], np.cumsum(probabilities)])))


def _bars(axes: Axes, at: Floats, rows: Floats, color: str, *, width: float) -> None:
    axes.vlines(at, rows[:, 1], rows[:, 2], color, linewidth=width)
    axes.plot(at, rows[:, 0], "o", color=color, markersize=3 + width / 2)


def _hour_axis(axes: Axes) -> None:
    axes.set_xlim(0, 24)
    axes.set_xticks(list(_HOUR_TICKS), [f"{hour:02d}:00" for hour in _HOUR_TICKS])
