"""The page of the study `sums`, in Markdown: a line a data set, a column a horizon."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studies.evaluate.report import markdown_table
from studies.evaluate.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from studies.evaluate.study import StudyRow
    from studies.evaluate.summary import Point

    Found = dict[tuple[str, str, float, str, str], Point]

REQUIRED = 0.935
_LEGEND = """Do 95 % intervals hold 95 %, on laws and homes that nobody tuned them to? Each cell:
how many intervals held, in % ± its own standard error (between seeds); their half-width; the mean
error, both in % of the mean of all readings. A week, a day and an hour of the day are strata that
share a tail as far as their own surveys allow; ranges and groups stand by theirs alone. The truth
is the mean of these very homes in these slots. Asked of each cell: 93.5 % or more, less two
standard errors of its own.

"given": θ and the share of surveys are given, the best for hours of the day. "pipeline": both are
chosen from reports, first of surveys alone. Which slots report each home's own ledger says, of the
shipped window's ε split into reports of ε; homes join, leave and miss slots. Made-up laws of hours
give each home and each hour a level of its own, so that tails sit with few of them. Sets of less
than 100,000 reports stand for as many copies of their homes, but in groups.

Where more than 99 % hold, there are two reasons, and neither can be had back without an assumption.
Strata that hardly differ: how much they differ is not known either, and the larger half of what it
may be is in the interval; with 49 days the surveys of one say so little that this is most of it.
And ends that stop at the truncated mean, or at Markov's bound above it: where surveys are few
beside the range (narrow, ends, small sets), the normal interval would reach far beyond both.
"""


def tables(rows: Sequence[StudyRow]) -> str:
    """Return the page: what was asked and found at the least, then a table for each figure."""
    points = summarise(rows)
    found: Found = {(p.figure, p.data, p.x, p.series, p.metric): p for p in points}
    parts = [_LEGEND, _least(points)]
    for figure in dict.fromkeys(point.figure for point in points):
        mine = [point for point in points if point.figure == figure]
        horizons = list(dict.fromkeys(point.series for point in mine))
        lines = [
            [f"{data}, ε {x:g}", *(_cell(found, figure, data, x, name) for name in horizons)]
            for data, x in dict.fromkeys((point.data, point.x) for point in mine)
        ]
        parts.append(f"### {figure}\n\n{markdown_table(['data', *horizons], lines)}")
    return "\n".join(parts)


def short_of(points: Sequence[Point]) -> list[Point]:
    """Return the cells that hold less than required, by more than two of their standard errors."""
    return [
        point
        for point in points
        if point.metric == "coverage" and point.mean < REQUIRED - 2 * (point.standard_error or 0.0)
    ]


def _least(points: Sequence[Point]) -> str:
    """Return for each figure and horizon the mean of its cells and the lowest one."""
    cells = [point for point in points if point.metric == "coverage"]
    short = short_of(points)
    lines = []
    for key in dict.fromkeys((cell.figure, cell.series) for cell in cells):
        mine = [cell for cell in cells if (cell.figure, cell.series) == key]
        low = min(mine, key=lambda cell: cell.mean)
        lines.append(
            [
                ", ".join(key),
                str(len(mine)),
                f"{100 * sum(cell.mean for cell in mine) / len(mine):.1f}",
                f"{_held(low)} ({low.data})",
                str(sum(cell in short for cell in mine)),
            ]
        )
    return markdown_table(
        ["figure, horizon", "cells", "hold on average, %", "the lowest", "short"], lines
    )


def _cell(found: Found, figure: str, data: str, x: float, horizon: str) -> str:
    told = [
        found.get((figure, data, x, horizon, name)) for name in ("coverage", "half_width", "error")
    ]
    coverage, half, error = told
    if coverage is None or half is None or error is None:
        return ""
    return f"{_held(coverage)}; ± {100 * half.mean:.3g}; {100 * error.mean:+.2g}"


def _held(point: Point) -> str:
    return f"{100 * point.mean:.1f} ± {100 * (point.standard_error or 0.0):.1f}"
