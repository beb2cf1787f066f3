"""Rows over seeds: mean, standard error and median of each point of each line."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from studies.evaluate.study import Panel, StudyRow

    _Key = tuple[str, str, str, float, str]  # the first fields of a Point

FIELDS = ("figure", "data", "series", "x", "metric", "n", "mean", "standard_error", "median")


@dataclass(frozen=True, slots=True)
class Point:
    """One measure of one point over `n` seeds; one seed tells no standard error (None)."""

    figure: str
    data: str
    series: str
    x: float
    metric: str
    n: int
    mean: float
    standard_error: float | None
    median: float


def summarise(rows: Iterable[StudyRow]) -> list[Point]:
    """Return the points, in the order in which the rows first name them."""
    groups: dict[_Key, list[float]] = {}
    for row in rows:
        task = row.task
        for metric, value in row.measures.items():
            key = (task.figure, task.data, task.series, task.x, metric)
            groups.setdefault(key, []).append(value)
    return [_point(key, np.array(values)) for key, values in groups.items()]


def summary_csv(points: Sequence[Point]) -> str:
    """Return the points as CSV, six digits."""
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    for point in points:
        writer.writerow({name: _short(value) for name, value in asdict(point).items()})
    return text.getvalue()


def drawn_in(panel: Panel, points: Sequence[Point]) -> list[Point]:
    """Return the points that a panel shows."""
    of = panel.of or panel.figure
    found = [point for point in points if point.figure == of and point.metric == panel.metric]
    return [point for point in found if not panel.series or point.series in panel.series]


def _point(key: _Key, values: NDArray[np.float64]) -> Point:
    error = float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else None
    return Point(*key, len(values), float(values.mean()), error, float(np.median(values)))


def _short(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value
