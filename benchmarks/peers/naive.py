"""What speed without exactness looks like: float mechanisms on NumPy's statistical generator.

They are here to be compared with, never to protect anything: the generator is predictable, and
floats leave codes that some values can give and others cannot (docs/methods.md, Attacks).
"""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


def square_wave(epsilon: float, low: int, high: int) -> Callable[[Ints], Floats]:
    """Return a function from values to float square-wave reports in [-b, 1 + b] ([SW] §5).

    One uniform float a report, taken through the inverse of the distribution function: faster than
    two uniforms a report, and than boolean indices.
    """
    e = exp(epsilon)
    b = (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
    far = 1 / (2 * b * e + 1)
    near = e * far
    rng = np.random.default_rng(0)

    def reports(values: Ints) -> Floats:
        x = (values - low) / (high - low)
        u = rng.random(len(x))
        left = far * x
        right = left + 2 * b * near
        beyond = (u - 2 * b * near) / far + b
        return np.where(
            u < left, u / far - b, np.where(u < right, (u - left) / near + x - b, beyond)
        )

    return reports


def randomised_response(epsilon: float, size: int) -> Callable[[Ints], Ints]:
    """Return a function from categories 0..size-1 to reports: the truth, or any other category."""
    e = exp(epsilon)
    keep = e / (e + size - 1)
    rng = np.random.default_rng(0)

    def reports(values: Ints) -> Ints:
        lies = rng.integers(0, size - 1, len(values))
        lies += lies >= values
        return np.where(rng.random(len(values)) < keep, values, lies)

    return reports


def in_blocks(function: Callable[[Ints], Floats], block: int) -> Callable[[Ints], Floats]:
    """Return the function applied to `block` values at a time, which stay in the cache."""

    def reports(values: Ints) -> Floats:
        parts = [function(values[at : at + block]) for at in range(0, len(values), block)]
        return np.concatenate(parts)

    return reports
