"""What each task measures: pure functions of a task and the true values.

Queries are the same for all lines of a data set and repeat, so lines differ by method, not luck.
"""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.continual.noise import fresh_key
from studies.evaluate.study import Task, rng
from studies.evaluate.tops import approximation
from studies.evaluate.tops.layout import Layout, drawn_again, lay_out
from studies.evaluate.tops.release import before, range_sums
from studies.evaluate.tops.runs import (
    PUBLISHED,
    chosen,
    errors_of,
    exact,
    pairs_of,
    released,
    run_published,
    run_system,
)
from studies.evaluate.tops.systems import draws, noisy_max, optimiser, structure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from studies.evaluate.study import Values

    Integers = NDArray[np.int64]

INTERVALS = 120  # [ToPS] figure 2
FIXED_EPSILON = Fraction(1, 20)  # of what figures 6 and 7 hold fixed
PERCENTILE = Fraction(95, 100)  # θ of figures 4 and 5
ZERO = "always 0"

layout_of = lru_cache(maxsize=2)(lay_out)


def measure(task: Task, values: Values) -> Mapping[str, float]:
    """Return the task's measures. Raises KeyError for a task that no figure has."""
    return _MEASURES[task.figure](task, values)


def visual(task: Task, values: Values) -> Mapping[str, float]:
    """Figure 2: one interval's mean value, released or true; PAK's apart, as it hides the rest."""
    name = "PAK mean" if task.series.startswith("PAK") else "mean"
    found = float(_intervals(values, task.series, task.seed)[int(task.x)])
    return {"mean": found, "PAK mean": found} if task.series == "truth" else {name: found}


def system(task: Task, values: Values) -> Mapping[str, float]:
    """Figures 3 and 10: θ and the errors of range sums, end to end."""
    lay = layout_of(values)
    pairs = pairs_of(task, len(lay.stream))
    if task.series == ZERO:
        return asdict(errors_of(lay.stream, pairs, None))
    release = run_published if task.series in PUBLISHED else run_system
    theta, sums = release(task, lay, pairs)
    return {**asdict(errors_of(lay.stream, pairs, sums)), "theta": float(theta)}


def smoother(task: Task, values: Values) -> Mapping[str, float]:
    """Figure 4: a smoother on Ĥ16c, truth cut at its 95th percentile."""
    return {"mse": _at_percentile(task, values, "Ĥ16c", task.series)}


def structure_errors(task: Task, values: Values) -> Mapping[str, float]:
    """Figure 5: a structure, truth cut at its 95th percentile."""
    return {"mse": _at_percentile(task, values, task.series, "recent")}


def percentiles(task: Task, values: Values) -> Mapping[str, float]:
    """Figure 6: true percentiles as θ, from m/16 readings and from m."""
    readings = layout_of(values).readings
    few, many = readings[: max(1, len(readings) // 16)], readings
    return {
        "mse of few": _of_readings(task, values, few),
        "mse of many": _of_readings(task, values, many),
    }


def rule(task: Task, values: Values) -> Mapping[str, float]:
    """Figure 7: rules for θ at budget x, the stream at 0.05."""
    lay = layout_of(values)
    stream = drawn_again(lay.readings, rng(task, "stream"))
    if task.series == ZERO:
        return {"mse": errors_of(stream, pairs_of(task, len(stream)), None).mse}
    chosen_by = optimiser(
        task.series,
        ceiling=lay.ceiling,
        chunk=len(stream),
        epsilon=exact(task.x),
        stream_epsilon=FIXED_EPSILON,
    )
    theta = chosen(task, lay, chosen_by)
    return released(task, stream, theta, FIXED_EPSILON)


_MEASURES: dict[str, Callable[[Task, Values], Mapping[str, float]]] = {
    "1": approximation.measure,
    "2": visual,
    "3": system,
    "4": smoother,
    "5": structure_errors,
    "6": percentiles,
    "7": rule,
}


@lru_cache(maxsize=8)
def _intervals(values: Values, series: str, seed: int) -> NDArray[np.float64]:
    """Return the mean of each of 120 intervals of the stream."""
    lay = layout_of(values)
    edges = np.linspace(0, len(lay.stream), INTERVALS + 1).astype(np.int64)
    pairs = np.stack([edges[:-1], edges[1:]], axis=1)
    name, _, budget = series.partition(", ε=")
    if series == "truth":
        sums = before(lay.stream)[pairs]
        sums = sums[:, 1] - sums[:, 0]
    else:
        task = Task("2", values.name, name, float(budget), seed)
        _, sums = run_system(task, lay, pairs)
    return np.asarray(sums / np.diff(edges))


def percentile(readings: Integers, share: Fraction) -> int:
    """Return the least value that at least `share` of the readings do not exceed; not private."""
    return int(np.sort(readings)[ceil(share * len(readings)) - 1])


def _at_percentile(task: Task, values: Values, name: str, smoothed_by: str) -> float:
    lay = layout_of(values)
    theta = min(percentile(lay.stream, PERCENTILE), lay.ceiling)
    stream = np.minimum(lay.stream, max(1, theta))
    pairs = pairs_of(task, len(stream))
    if task.series == ZERO:
        return errors_of(stream, pairs, None).mse
    epsilon = exact(task.x)
    sums = range_sums(
        stream,
        pairs,
        shape=structure(name, len(stream), epsilon),
        theta=max(1, theta),
        epsilon=epsilon,
        key=fresh_key(draws(rng(task, "key"))),
        smoother=smoothed_by,
    )
    return errors_of(stream, pairs, sums).mse


def _of_readings(task: Task, values: Values, readings: Integers) -> float:
    lay = Layout(readings, readings, layout_of(values).ceiling)
    stream = drawn_again(readings, rng(task, f"stream of {len(readings)}"))
    epsilon = exact(task.x)
    if task.series.startswith("NM-E"):
        theta = chosen(task, lay, noisy_max(lay.ceiling, len(stream), FIXED_EPSILON, epsilon))
    else:
        share = Fraction(task.series.removeprefix("p=")) / 100
        theta = max(1, min(percentile(readings, share), lay.ceiling))
    return released(task, stream, theta, epsilon)["mse"]
