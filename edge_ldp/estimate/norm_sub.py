"""Norm-Sub: the nearest probabilities to noisy estimates that may be negative.

One number is taken from all estimates, and what falls below 0 is set to 0, so that the rest adds up
to 1: the Euclidean projection on the simplex. Source: [SW] §4.1; Wang et al., NDSS 2020.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.checks import finite, floats, taking
from edge_ldp.device.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


@taking(estimates=floats, total=finite(0, inner=True))
def norm_sub(estimates: ArrayLike, total: float = 1.0) -> Floats:
    """Return max(estimates − δ, 0) with the δ for which it adds up to `total` > 0.

    Where the positive estimates add up to less than `total`, δ is negative. Cost: O(d·log d).
    Raises ParameterError for what is not a list of finite numbers.
    """
    x = np.asarray(estimates, dtype=np.float64)
    if x.ndim != 1 or not x.size or not isfinite(float(np.abs(x).max()) * len(x)):
        raise ParameterError("estimates", "a list of finite numbers, of a finite sum")
    if not 0 < total < np.inf:
        raise ParameterError("total", "a finite number above 0")
    projected = projection(x, total)
    projected *= total / projected.sum()  # takes rounding away
    return projected


def projection(x: Floats, total: float) -> Floats:
    """Return the nearest vector of numbers of at least 0 whose sum is `total`, unchecked."""
    falling = np.sort(x)[::-1]
    excess = np.add.accumulate(falling)
    excess -= total
    # entry k stays positive if the δ of the k + 1 largest alone leaves it so
    kept = np.count_nonzero(falling * np.arange(1, len(x) + 1) > excess)
    nearest: Floats = np.maximum(x - excess[kept - 1] / kept, 0)
    return nearest
