"""The tables of the study `sums`, in Markdown: a line a data set, a column a horizon."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aggregator.evaluate.report import table
from aggregator.evaluate.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aggregator.evaluate.study import Row
    from aggregator.evaluate.summary import Point


def tables(rows: Sequence[Row]) -> str:
    """Return for each figure: what held ± its sampling error, half-width and mean error."""
    points = summarise(rows)
    found = {(p.figure, p.data, p.x, p.series, p.metric): p for p in points}
    horizons = list(dict.fromkeys(point.series for point in points))
    parts = []
    for figure in dict.fromkeys(point.figure for point in points):
        keys = dict.fromkeys((p.data, p.x) for p in points if p.figure == figure)
        lines = [
            [
                f"{data}, ε {x:g}",
                *(
                    _cell(*(found.get((figure, data, x, name, m)) for m in _TOLD))
                    for name in horizons
                ),
            ]
            for data, x in keys
        ]
        title = (
            f"### {figure}\n\nHolds ± standard error of that, % of intervals at 95 %; half-width "
            "and mean error in % of the mean of all.\n"
        )
        parts.append(f"{title}\n{table(['data', *horizons], lines)}")
    return "\n".join(parts)


_TOLD = ("coverage", "half_width", "error")


def _cell(coverage: Point | None, half: Point | None, error: Point | None) -> str:
    if coverage is None or half is None or error is None:
        return ""
    apart = 100 * (coverage.standard_error or 0.0)
    return (
        f"{100 * coverage.mean:.1f} ± {apart:.1f}; ± {_short(100 * half.mean)}; "
        f"{_short(100 * error.mean, sign='+')}"
    )


def _short(number: float, sign: str = "") -> str:
    return f"{number:{sign}.3g}"
