"""Figure 1: how near equation 6, by which θ is chosen, comes to the errors of range sums.

Both as root errors: equation 6 scaled back, −q·c·r/(3m), and what H16, the tree that it stands for,
misses of 200 range sums of a run. θ_q is the least of equation 6, θ_t the least of the expected
error, which needs no draw: the tree's noise, and the bias of all ranges. Source: [ToPS] §3.3; its
DNS is not to be had.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edge_ldp.continual.noise import fresh_key
from edge_ldp.continual.smoothers import Recent
from edge_ldp.continual.threshold import GRID_BITS, TUNING
from edge_ldp.continual.variance import coefficient, value_runs
from studies.evaluate.metrics import query_pairs
from studies.evaluate.study import Task, rng
from studies.evaluate.topl.stream import mean_square_of_ranges
from studies.evaluate.tops.layout import lay_out
from studies.evaluate.tops.release import range_sums
from studies.evaluate.tops.runs import errors_of, pairs_of
from studies.evaluate.tops.systems import counts, draws, noisy_max, structure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from edge_ldp.continual import Shape
    from studies.evaluate.study import Values
    from studies.evaluate.tops.layout import Layout

EPSILON = Fraction(1, 10)
EQUATION, MEASURED, EXPECTED = "equation 6", "measured", "expected"
LEAST = {EQUATION: "θ_q", EXPECTED: "θ_t"}
STEPS = 2  # a doubling of θ
DOUBLINGS = 3  # below θ_q, and above
SEEDS = 3
_PAIRS = 600  # whose noise is averaged


class Curve(NamedTuple):
    """A data set's chunk, equation 6 as a root error for θ = 1, 2, …, and H16's noise at θ = 1."""

    lay: Layout
    equation: tuple[float, ...]
    unit_noise: float

    def expected(self, theta: int) -> float:
        """Return the root of the expected squared error of a range sum under θ."""
        bias = mean_square_of_ranges(np.maximum(self.lay.stream - theta, 0))
        return float((self.unit_noise * theta**2 + bias) ** 0.5)

    @property
    def theta_q(self) -> int:
        """The θ of least equation 6."""
        return 1 + int(np.argmin(self.equation))

    @property
    def theta_t(self) -> int:
        """The θ of least expected error, which is convex in θ."""
        left, right = 1, len(self.equation)
        while left < right:
            middle = (left + right) // 2
            if self.expected(middle) <= self.expected(middle + 1):
                right = middle
            else:
                left = middle + 1
        return left


@lru_cache(maxsize=2)
def curve_of(values: Values) -> Curve:
    """Return what the tasks of a data set share. Cost: a second."""
    lay = lay_out(values)
    chunk, readings = len(lay.stream), len(lay.readings)
    scores = noisy_max(lay.ceiling, chunk, EPSILON, EPSILON).scores(
        counts(lay.readings, lay.ceiling)
    )
    scale = TUNING * chunk / (3 * readings) / (1 << GRID_BITS)
    noise = _noise(structure("H16", chunk, EPSILON))
    return Curve(lay, tuple(-scale * score for score in scores), noise)


def tasks(values: Values, seeds: int) -> Iterator[Task]:
    """Yield the work: a grid about θ_q, evenly by its logarithm, and the two least."""
    curve = curve_of(values)
    for seed in range(min(seeds, SEEDS)):
        for theta in grid(curve):
            if not seed:
                yield Task("1", values.name, EQUATION, float(theta), 0)
                yield Task("1", values.name, EXPECTED, float(theta), 0)
            yield Task("1", values.name, MEASURED, float(theta), seed)
    for name in LEAST.values():
        at = curve.theta_q if name == LEAST[EQUATION] else curve.theta_t
        yield Task("1", values.name, name, float(at), 0)


def grid(curve: Curve) -> list[int]:
    """Return the values of θ that are drawn."""
    steps = np.arange(-DOUBLINGS * STEPS, DOUBLINGS * STEPS + 1) / STEPS
    found = np.rint(curve.theta_q * 2.0**steps).astype(int)
    return sorted({min(max(1, theta), len(curve.equation)) for theta in found.tolist()})


def measure(task: Task, values: Values) -> Mapping[str, float]:
    """Return the root error at a θ."""
    curve, theta = curve_of(values), round(task.x)
    if task.series == EQUATION:
        return {"root error": curve.equation[theta - 1]}
    if task.series != MEASURED:
        return {"root error": curve.expected(theta)}
    stream = curve.lay.stream
    pairs = pairs_of(task, len(stream))
    sums = range_sums(
        stream,
        pairs,
        shape=structure("H16", len(stream), EPSILON),
        theta=theta,
        epsilon=EPSILON,
        key=fresh_key(draws(rng(task, "key"))),
    )
    return {"root error": errors_of(stream, pairs, sums).mse ** 0.5}


def _noise(shape: Shape) -> float:
    """Return the mean squared noise of a range sum at θ = 1: exact, no noise is drawn."""
    pairs = query_pairs(shape.chunk, rng=np.random.default_rng(1), count=_PAIRS)
    runs = [value_runs(shape, Recent(), first, end) for first, end in pairs.tolist()]
    mean = float(np.mean([float(coefficient(shape, run)) for run in runs]))
    return 2 * shape.levels**2 * mean / float(EPSILON) ** 2
