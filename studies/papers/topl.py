"""The tables of the study `topl`, in Markdown, from its rows; beside them the authors' code.

PUBLISHED is what that gives on its two shipped data sets, 12 runs each. SW is EMS with its last row
mended, without pruning; SW-W is EM with pruning. Both with the published constants of eq 8,
m = 65,536, r = 2^20, stream ε = 1, 1024 buckets; the error is the expectation under the hybrid
mechanism on the stream that follows the survey. Source: runs of the published code (dp-cont) at
commit 7a1e85a, made to run again.
"""

from __future__ import annotations

from math import hypot
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from studies.evaluate.report import markdown_table
from studies.evaluate.topl.rules import ADAPTIVE, EPOCHS, ONE_SURVEY
from studies.evaluate.topl.study import BEST, ZERO

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from studies.evaluate.study import StudyRow

Name = TypeVar("Name", str, float)
RUNS = 12


class Published(NamedTuple):
    """Mean and standard deviation over runs of θ and of the expected squared error."""

    theta: float
    theta_sd: float
    mse: float
    mse_sd: float


PUBLISHED: dict[tuple[str, str, float], Published] = {
    ("pos", "SW", 0.2): Published(596.4, 343.7, 1.706e11, 2.275e11),
    ("pos", "SW", 0.6): Published(231.4, 161.3, 2.85e10, 3.563e10),
    ("pos", "SW", 1.0): Published(347.5, 287.2, 7.029e10, 8.562e10),
    ("pos", "SW", 1.6): Published(228.9, 185.4, 3.208e10, 4.841e10),
    ("pos", "SW", 2.0): Published(223.8, 145.4, 2.57e10, 2.811e10),
    ("pos", "SW-W", 0.2): Published(170.6, 45.97, 1.147e10, 6.421e09),
    ("pos", "SW-W", 0.6): Published(62.25, 25.56, 1.842e09, 1.554e09),
    ("pos", "SW-W", 1.0): Published(43.06, 11.8, 2.276e09, 2.264e09),
    ("pos", "SW-W", 1.6): Published(35.99, 10.84, 4.378e09, 5.426e09),
    ("pos", "SW-W", 2.0): Published(28.39, 3.135, 6.879e09, 5.125e09),
    ("retail", "SW", 0.2): Published(6176, 3548, 1.826e13, 2.359e13),
    ("retail", "SW", 0.6): Published(2871, 2272, 4.772e12, 6.214e12),
    ("retail", "SW", 1.0): Published(4083, 3304, 9.571e12, 1.085e13),
    ("retail", "SW", 1.6): Published(2831, 2058, 4.561e12, 5.883e12),
    ("retail", "SW", 2.0): Published(2807, 1629, 3.816e12, 3.727e12),
    ("retail", "SW-W", 0.2): Published(1583, 505.3, 1.013e12, 6.638e11),
    ("retail", "SW-W", 0.6): Published(339.1, 203.5, 5.663e10, 7.511e10),
    ("retail", "SW-W", 1.0): Published(140.7, 73.59, 9.444e09, 1.177e10),
    ("retail", "SW-W", 1.6): Published(67.02, 24.57, 2.319e09, 1.766e09),
    ("retail", "SW-W", 2.0): Published(63, 21.09, 2.462e09, 1.515e09),
}


def tables(rows: Sequence[StudyRow]) -> str:
    """Return every table that the rows are enough for."""
    parts = (_least(rows), _errors(rows), _epochs(rows), _authors(rows))
    return "\n\n".join(part for part in parts if part) + "\n"


def _errors(rows: Sequence[StudyRow]) -> str:
    """Return error over the least possible: a line a data set and rule, a column an ε."""
    found = [row for row in rows if row.task.figure == "8"]
    epsilons = _distinct(row.task.x for row in found)
    lines = []
    for data in _distinct(row.task.data for row in found):
        for rule in (ADAPTIVE, *ONE_SURVEY):
            cells = [_spread(_of(found, data, rule, x, "ratio")) for x in epsilons]
            if any(cells):
                lines.append([data, rule, *cells])
    head = ["data", "θ by", *(f"ε {x:g}" for x in epsilons)]
    title = (
        "Expected squared error of a range sum over the least possible, one survey of 65,536 "
        "reports (adaptive: five); median over seeds, worst seed in brackets."
    )
    return _table(title, head, lines)


def _least(rows: Sequence[StudyRow]) -> str:
    """Return what is possible at all: the best θ, its error, and that of answering 0."""
    found = {(row.task.data, row.task.series): row.measures for row in rows}
    lines = [
        [
            data,
            f"{found[data, BEST]['theta']:.0f}",
            _e(found[data, BEST]["mse"]),
            _e(found[data, ZERO]["mse"]),
        ]
        for data in _distinct(row.task.data for row in rows)
        if (data, BEST) in found and (data, ZERO) in found
    ]
    head = ["data", "best θ", "its expected squared error", "error of answering 0"]
    title = "What is possible: queries over 2^20 values at stream ε = 1, squares of the unit."
    return _table(title, head, lines)


def _epochs(rows: Sequence[StudyRow]) -> str:
    """Return the adaptive rule's ratio after each survey."""
    found = [row for row in rows if row.task.figure == "epochs"]
    lines = []
    for data in _distinct(row.task.data for row in found):
        for series in _distinct(row.task.series for row in found):
            per_epoch = (_of(found, data, series, x, "ratio") for x in range(1, EPOCHS + 1))
            cells = [_spread(ratios) for ratios in per_epoch]
            if any(cells):
                lines.append([data, series, *cells])
    head = ["data", "survey", *(f"after {x}" for x in range(1, EPOCHS + 1))]
    return _table("Adaptive rule: the same ratio after each survey of 65,536 reports.", head, lines)


def _authors(rows: Sequence[StudyRow]) -> str:
    """Return our figures beside those of the authors' code, in combined standard errors."""
    lines = []
    for (data, rule, epsilon), theirs in PUBLISHED.items():
        thetas = _of(rows, data, rule, epsilon, "theta")
        errors = _of(rows, data, rule, epsilon, "mse")
        if len(thetas) > 1:
            lines.append(
                [
                    f"{data}, {rule}, ε {epsilon:g}",
                    f"{fmean(thetas):.1f} ± {stdev(thetas):.1f}",
                    f"{theirs.theta:.1f} ± {theirs.theta_sd:.1f}",
                    _apart(thetas, theirs.theta, theirs.theta_sd),
                    f"{_e(fmean(errors))} ± {_e(stdev(errors))}",
                    f"{_e(theirs.mse)} ± {_e(theirs.mse_sd)}",
                    _apart(errors, theirs.mse, theirs.mse_sd),
                ]
            )
    head = ["", "θ", "theirs", "apart", "error", "theirs", "apart"]
    title = (
        "The published rules beside the authors' code (12 runs): mean ± standard deviation over "
        "runs, and how far the means are apart in combined standard errors."
    )
    return _table(title, head, lines)


def apart(ours: Sequence[float], mean: float, deviation: float) -> float:
    """Return the difference of the means in combined standard errors; theirs of 12 runs."""
    error = hypot(stdev(ours) / len(ours) ** 0.5, deviation / RUNS**0.5)
    return (fmean(ours) - mean) / error


def _apart(ours: Sequence[float], mean: float, deviation: float) -> str:
    return f"{apart(ours, mean, deviation):+.1f}"


def _of(rows: Sequence[StudyRow], data: str, series: str, x: float, metric: str) -> list[float]:
    return [
        row.measures[metric]
        for row in rows
        if (row.task.data, row.task.series, row.task.x) == (data, series, x)
        and metric in row.measures
    ]


def _distinct(names: Iterable[Name]) -> list[Name]:
    return list(dict.fromkeys(names))


def _spread(ratios: Sequence[float]) -> str:
    return f"{_short(median(ratios))} ({_short(max(ratios))})" if ratios else ""


def _short(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 100 else f"{ratio:.0f}"


def _e(number: float) -> str:
    return f"{number:.2e}".replace("e+0", "e").replace("e+", "e")


def _table(title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    if not lines:
        return ""
    return f"{title}\n\n{markdown_table(head, lines)}"
