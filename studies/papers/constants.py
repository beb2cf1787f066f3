"""K: the mean squared noise of a range sum in units of θ²/ε², exactly and by simulation."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.continual.noise import fresh_key
from edge_ldp.continual.smoothers import Recent
from edge_ldp.continual.variance import coefficient, value_runs
from studies.evaluate.tops.release import range_sums
from studies.evaluate.tops.systems import draws

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge_ldp.continual import Shape

    Integers = NDArray[np.int64]

THETA, EPSILON = 20, Fraction(1, 10)  # a noise so wide that its grid of whole numbers is nothing
_TREES = {0: 2, 1: 6, 2: 20, 3: 60}  # simulated a task: fewer where one is large


def exact_constant(shape: Shape, pairs: Integers) -> float:
    """Return 2·levels²·(mean coefficient) over the pairs: no noise is drawn."""
    found = [
        float(coefficient(shape, value_runs(shape, Recent(), first, end)))
        for first, end in pairs.tolist()
    ]
    return 2 * shape.levels**2 * float(np.mean(found))


def simulated_constant(shape: Shape, pairs: Integers, rng: np.random.Generator) -> float:
    """Return the mean squared released sum of a stream of zeros, over fresh keys, times ε²/θ².

    A block before any was released is predicted as half of what it may hold: that share is public,
    and taken off.
    """
    zeros = np.zeros(shape.chunk, np.int64)
    draw = draws(rng)
    found = []
    for _ in range(_TREES.get(shape.pruned, 2)):
        sums = range_sums(
            zeros, pairs, shape=shape, theta=THETA, epsilon=EPSILON, key=fresh_key(draw)
        )
        found.append(np.mean((sums - _first_guess(shape, pairs)).astype(np.float64) ** 2))
    return float(np.mean(found)) * float(EPSILON) ** 2 / THETA**2


def _first_guess(shape: Shape, pairs: Integers) -> Integers:
    """Return what θ/2 a value in the first block adds to each range."""
    inside = np.where(pairs < shape.block, pairs, 0) * (THETA // 2)
    return (
        np.asarray(inside[:, 1] - inside[:, 0])
        if shape.block > 1
        else np.zeros(len(pairs), np.int64)
    )
