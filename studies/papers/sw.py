"""The tables of `sw`: beside others' runs, every method at one ε, and figures 5 to 7 in numbers."""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING

from studies.evaluate.report import markdown_table
from studies.evaluate.summary import summarise
from studies.evaluate.sw.waves import BUDGETS, SHAPE_EPSILON, TOPS, best_width, budget_series
from studies.papers.sw_runs import AUTHORS, METRICS, reference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from studies.evaluate.study import StudyRow
    from studies.evaluate.summary import Point

    Key = tuple[str, str, str, float, str]

HEADS = ("W1", "KS", "range 0.1", "range 0.4", "mean", "variance", "deciles")
SHOWN_EPSILON = 1.0
FAR = 3.0  # combined standard errors


def tables(rows: Sequence[StudyRow]) -> str:
    """Return all tables that the rows have something for."""
    points = {(p.figure, p.data, p.series, p.x, p.metric): p for p in summarise(rows)}
    parts = (
        _beside(points, True, "SW+EM and SW+EMS beside the authors' code"),
        _beside(points, False, "The other methods beside an independent implementation"),
        _methods(rows, points),
        _shapes(points),
        _widths(points),
        _sizes(points),
    )
    return "\n".join(part for part in parts if part)


def _beside(points: dict[Key, Point], authors: bool, title: str) -> str:  # noqa: FBT001 (private)
    """Return our errors over theirs, with the distance in combined standard errors in brackets."""
    lines: list[list[str]] = []
    apart: list[float] = []
    for (data, epsilon, name), theirs in reference().items():
        ours = [points.get(("2", data, name, epsilon, metric)) for metric in METRICS]
        if (name in AUTHORS) != authors or not any(ours):
            continue
        told = [_compared(point, theirs.get(m)) for m, point in zip(METRICS, ours, strict=True)]
        lines.append([data, f"{epsilon:g}", name, *(text for text, _ in told)])
        apart += [z for text, z in told if text]
    if not lines:
        return ""
    inside = sum(abs(z) <= FAR for z in apart)
    note = (
        "Thousandths of the range: ours / theirs (difference in combined standard errors). "
        f"{inside} of {len(apart)} lie within {FAR:g}; the farthest is "
        f"{max(apart, key=abs):+.1f}, the mean difference {sum(apart) / len(apart):+.2f}.\n"
    )
    return f"### {title}\n\n{note}\n" + markdown_table(("data", "ε", "method", *HEADS), lines)


def _compared(ours: Point | None, theirs: tuple[float, float] | None) -> tuple[str, float]:
    """Return what the cell says and the difference in combined standard errors."""
    if ours is None or theirs is None:
        return "", 0.0
    mean, error = theirs
    z = (ours.mean - mean) / hypot(ours.standard_error or 0.0, error)
    return f"{_milli(ours.mean)} / {_milli(mean)} ({z:+.1f})", z


def _methods(rows: Sequence[StudyRow], points: dict[Key, Point]) -> str:
    """Return every method's errors and time at one ε, a table for each data set."""
    names = dict.fromkeys(r.task.series for r in rows if r.task.figure == "2")
    epsilons = sorted({row.task.x for row in rows if row.task.figure == "2"})
    if not epsilons:
        return ""
    epsilon = min(epsilons, key=lambda e: abs(e - SHOWN_EPSILON))
    parts = [f"### Every method at ε = {epsilon:g}\n", _METHODS_NOTE]
    for data in dict.fromkeys(row.task.data for row in rows if row.task.figure == "2"):
        lines = []
        for name in names:
            told = [points.get(("2", data, name, epsilon, metric)) for metric in METRICS]
            cells = [_with_error(point) for point in told]
            lines.append([name, *cells, f"{_seconds(rows, data, name, epsilon):.2g}"])
        parts.append(markdown_table((data, *HEADS, "CPU s"), lines))
    return "\n".join(parts)


_METHODS_NOTE = (
    "Thousandths of the range (variance: of its square), mean over seeds ± standard error. CPU s: "
    "one repeat, drawing all reports, counting and estimating.\n"
)


def _shapes(points: dict[Key, Point]) -> str:
    """Return figure 5 at the square wave's b and at each shape's own best b."""
    b = best_width(SHAPE_EPSILON)
    lines = []
    for shape in TOPS:
        cells = []
        for data in _data(points, "5"):
            line = list(_line(points, "5", data, shape))
            at = points.get(("5", data, shape, b, "w1"))
            least = min(line, key=lambda point: point.mean)
            cells.append(f"{_with_error(at)}; {_milli(least.mean)} at {least.x:g}")
        lines.append([shape, *cells])
    if not _data(points, "5"):
        return ""
    title = f"### Figure 5: W1 of shapes at b = {b:g}; least over b\n"
    return f"{title}\n" + markdown_table(("shape", *_data(points, "5")), lines)


def _widths(points: dict[Key, Point]) -> str:
    """Return figure 6 at the derived b, and how much the best b of those tried would gain."""
    names = {budget_series(epsilon): best_width(epsilon) for epsilon in BUDGETS}
    lines = []
    for name, b in names.items():
        if not any(key[0] == "6" and key[2] == name for key in points):
            continue
        cells = []
        for data in _data(points, "6"):
            at = points.get(("6", data, name, b, "w1"))
            least = min(_line(points, "6", data, name), key=lambda point: point.mean)
            cells.append(f"{_with_error(at)}; {_milli(least.mean)} at {least.x:g}")
        lines.append([name, f"{b:g}", *cells])
    if not lines:
        return ""
    title = "### Figure 6: W1 of the square wave at the derived b; least over b\n"
    return f"{title}\n" + markdown_table(("", "b", *_data(points, "6")), lines)


def _sizes(points: dict[Key, Point]) -> str:
    """Return figure 7: the number of buckets with the least W1, and what the others lose."""
    keys = [key for key in points if key[0] == "7"]
    if not keys:
        return ""
    names = dict.fromkeys(key[2] for key in keys)
    lines = [
        [data, f"{x:g}", *(_with_error(points.get(("7", data, name, x, "w1"))) for name in names)]
        for data in _data(points, "7")
        for x in sorted({key[3] for key in keys if key[1] == data})
    ]
    return "### Figure 7: W1 by the number of buckets\n\n" + markdown_table(
        ("data", "ε", *names), lines
    )


def _line(points: dict[Key, Point], figure: str, data: str, series: str) -> Iterator[Point]:
    wanted = (figure, data, series)
    return (point for key, point in points.items() if key[:3] == wanted)


def _data(points: dict[Key, Point], figure: str) -> list[str]:
    return list(dict.fromkeys(key[1] for key in points if key[0] == figure))


def _seconds(rows: Sequence[StudyRow], data: str, series: str, epsilon: float) -> float:
    wanted = ("2", data, series, epsilon)
    tasks = ((row.task, row.cpu_s) for row in rows)
    times = [cpu_s for t, cpu_s in tasks if (t.figure, t.data, t.series, t.x) == wanted]
    return sum(times) / len(times)


def _milli(value: float) -> str:
    return f"{1000 * value:.3g}"


def _with_error(point: Point | None) -> str:
    if point is None:
        return ""
    error = point.standard_error
    return _milli(point.mean) + ("" if error is None else f" ± {1000 * error:.2g}")
