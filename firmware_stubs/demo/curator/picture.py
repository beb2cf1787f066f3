"""The picture of a run: daily sums, weekly sums, and how the errors are spread."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from firmware_stubs.demo.curator.compare import Comparison, Row
from firmware_stubs.demo.curator.scenario import DAY_SLOTS, EPSILON, SHARE, SLOT_S, THETA_DAYS
from firmware_stubs.demo.drawing import ESTIMATE, FAINT, PLAIN, TRUTH, canvas, entitle, key

BIN_KWH = 1.0
SOURCE = (
    "Data: one home in Sceaux, France, 2007-08 to 2008-09 (Hebrail and Berard, UCI 235, CC BY 4.0)."
)


def draw(found: Comparison, path: Path) -> None:
    """Write the picture as a PNG."""
    figure = canvas("A year of one home, published by its own agent", _summary(found), SOURCE)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.6, 1))
    _sums(figure.add_subplot(grid[0, :]), found.days, "Energy of each day, kWh", markers=False)
    _sums(figure.add_subplot(grid[1, 0]), found.weeks, "Energy of each week, kWh", markers=True)
    _errors(figure.add_subplot(grid[1, 1]), found)
    figure.savefig(path)


def _summary(found: Comparison) -> str:
    whole = found.whole
    return (
        f"{found.scenario.days * DAY_SLOTS:,} readings of {SLOT_S // 60} minutes, event-level "
        f"ε = {EPSILON} each, cut at θ = {found.theta_w / 1000:.2f} kW (near the "
        f"{100 * float(SHARE):g} % quantile of {THETA_DAYS} days before). Year: "
        f"{whole.released:,.0f} kWh released\n"
        f"(95 %: {whole.low:,.0f} to {whole.high:,.0f}), {whole.cut:,.0f} true when cut at θ, "
        f"{whole.truth:,.0f} true. {found.held} of {len(found.days)} daily intervals hold the sum "
        "cut at θ."
    )


def _sums(axes: Axes, rows: Sequence[Row], title: str, *, markers: bool) -> None:
    """Draw truth, truth cut at θ, and the released sums with their intervals."""
    rows = [row for row in rows if row.days == rows[0].days]
    at = np.array([row.day for row in rows]) + rows[0].days / 2
    low, high, released, cut, truth = (
        np.array([getattr(row, name) for row in rows])
        for name in ("low", "high", "released", "cut", "truth")
    )
    entitle(axes, title)
    axes.fill_between(at, low, high, step="mid", color=ESTIMATE, alpha=0.16, linewidth=0)
    axes.step(at, truth, where="mid", color=PLAIN, linewidth=1.2)
    axes.step(at, cut, where="mid", color=TRUTH, linewidth=1.2)
    axes.plot(at, released, "o", color=ESTIMATE, markersize=5 if markers else 2.6)
    axes.axhline(0, color=FAINT, linewidth=0.8)
    axes.set_xlim(0, rows[-1].day + rows[-1].days)
    axes.set_ylim(min(float(low.min()) * 1.05, 0.0), float(high.max()) * 1.28)
    axes.set_xlabel("day of the published year")
    key(
        axes,
        ("released, with 95 % interval", ESTIMATE),
        ("true, cut at θ: what the interval is about", TRUTH),
        ("true", PLAIN),
    )


def _errors(axes: Axes, found: Comparison) -> None:
    """Draw the daily errors and the noise's law, which is published."""
    errors = np.array([row.released - row.cut for row in found.days])
    scale = float(np.mean([(row.high - row.low) / 2 for row in found.days]) / np.log(20))
    reach = float(np.ceil(max(abs(errors).max(), 4 * scale)))
    entitle(axes, "Released minus true (cut), days a kWh")
    edges = np.arange(-reach, reach + BIN_KWH, BIN_KWH)
    axes.hist(errors, edges.tolist(), color=ESTIMATE, alpha=0.45)
    at = np.linspace(-reach, reach, 401)
    law = len(errors) * BIN_KWH * np.exp(-abs(at) / scale) / (2 * scale)
    axes.plot(at, law, color=TRUTH, linewidth=1.6)
    axes.set_xlabel("kWh")
    axes.set_ylim(0, float(law.max()) * 1.6)
    key(
        axes,
        (f"days; root mean square {np.sqrt(np.mean(errors**2)):.1f} kWh", ESTIMATE),
        (f"the law: Laplace, {np.sqrt(2) * scale:.1f} kWh", TRUTH),
    )
