"""Randomise before bucketising (R-B): continuous square-wave reports, counted in bins.

A value v on [0, 1] is reported as a real number on [−b, 1 + b], with density p within b of v and q
elsewhere; reports are counted in equal bins, values are uniform in equal buckets. The probability
of a bin under a bucket is an integral of a window over both, and the second integral of the density
gives all of them at once, exactly. For comparison with the paper: our devices send integers (B-R).
Sources: [SW] §5.2 (p, q, b), §5.4 (R-B), §5.5 (the matrix).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.checks import finite, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError
from edge_ldp.estimate.density import category_edges
from edge_ldp.estimate.operator import Branch, Model, Operator

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_SERIES_BELOW = 0.05


@dataclass(frozen=True, slots=True)
class ContinuousWave:
    """The square wave on real numbers; `p` and `q` are densities. Build it with its epsilon."""

    epsilon: float
    b: float
    p: float
    q: float

    def perturb(self, values: ArrayLike, uniform: Floats) -> Floats:
        """Return reports of values on [0, 1], from as many uniform numbers on [0, 1).

        For experiments: floats leak (docs/methods.md, Attacks), so nothing of this may leave a
        device.
        """
        v = np.asarray(values, dtype=np.float64)
        near = 2 * self.b * self.p
        inside = v - self.b + uniform / self.p
        beyond = (uniform - near) / self.q - self.b  # on the line without the window
        return np.where(uniform < near, inside, beyond + 2 * self.b * (beyond >= v - self.b))

    def count(self, reports: ArrayLike, bins: int) -> Ints:
        """Return how many reports lie in each of equal bins on [−b, 1 + b]; raises CountsError."""
        at = np.asarray(reports, dtype=np.float64)
        if not ((at >= -self.b - 1e-12) & (at <= 1 + self.b + 1e-12)).all():
            raise CountsError("reports outside the wave's range")
        places = ((at + self.b) / (1 + 2 * self.b) * bins).astype(np.int64)
        return np.bincount(np.clip(places, 0, bins - 1), minlength=bins)

    def model(self, size: int, bins: int | None = None, *, edges: ArrayLike | None = None) -> Model:
        """Return the likelihood of counts in `bins` (as many as buckets unless given).

        For `em`, `ems`, `held_out`; bucket k is [k, k + 1), or by `edges`. Raises ParameterError.
        """
        codes = size if bins is None else bins
        if size < 2 or codes < 2:
            raise ParameterError("size, bins", "2 or more")
        branch = _binned(self, size, codes)
        operator = Operator(size, codes, np.ones(codes, bool), (branch,), (0, codes))
        return Model(
            operator, category_edges(size, edges), lattice=False, max_ratio=self.p / self.q
        )


@taking(epsilon=finite(0, 700, inner=True))
def continuous_wave(epsilon: float) -> ContinuousWave:
    """Return the square wave of an epsilon above 0, with the paper's b; raises ParameterError."""
    ratio = exp(epsilon)
    if epsilon < _SERIES_BELOW:  # both differences cancel: their series, over ε²/2
        above = 1 + epsilon * (2 / 3 + epsilon * (1 / 4 + epsilon * (1 / 15 + epsilon / 72)))
        under = 1 + epsilon * (1 / 3 + epsilon * (1 / 12 + epsilon * (1 / 60 + epsilon / 360)))
    else:
        above, under = epsilon * ratio - expm1(epsilon), expm1(epsilon) - epsilon
    b = above / (2 * ratio * under)
    q = 1 / (2 * b * ratio + 1)
    return ContinuousWave(epsilon, b, ratio * q, q)


@dataclass(frozen=True, slots=True, eq=False)
class _Points:
    """Points of the axis as (bucket, distance into it in buckets); left of 0 is (0, 0)."""

    bucket: NDArray[np.intp]
    into: Floats

    def integral(self, twice: Floats, once: Floats, x: Floats) -> Floats:
        """Return the integral of the distribution function up to each point, in buckets."""
        at, u = self.bucket, self.into
        value: Floats = twice[at] + u * (once[at] + u / 2 * x[at])
        return value


@dataclass(frozen=True, slots=True, eq=False)
class Binned(Branch):
    """P(bin | bucket): `flat` for each bin, and `steep` times a window's integral.

    `upper`, `lower`: the bins' edges shifted by b up and down.
    """

    flat: float
    steep: float
    upper: _Points
    lower: _Points

    def apply(self, x: Floats, out: Floats) -> None:
        """Put the probability of each bin in `out`."""
        once = np.concatenate([[0.0], np.cumsum(x)])
        twice = np.concatenate([[0.0], np.cumsum(once[:-1] + x / 2)])
        beyond = np.append(x, 0.0)
        window = self.upper.integral(twice, once, beyond) - self.lower.integral(twice, once, beyond)
        np.subtract(window[1:], window[:-1], out=out)
        out *= self.steep
        out += self.flat * once[-1]

    def adjoint(self, y: Floats, out: Floats) -> None:
        """Put Σ_j P(j|i)·y_j for every bucket i in `out`."""
        weight = np.zeros(len(y) + 1)
        weight[1:] += y
        weight[:-1] -= y
        size = len(out)
        twice, once, x = np.zeros((3, size + 1))
        for points, sign in ((self.upper, 1.0), (self.lower, -1.0)):
            at, u, w = points.bucket, points.into, sign * weight
            twice += np.bincount(at, w, size + 1)
            once += np.bincount(at, w * u, size + 1)
            x += np.bincount(at, w * u * (u / 2), size + 1)
        beyond = np.cumsum(twice[::-1])[::-1][1:]  # of the buckets after each
        once[:-1] += beyond
        after = np.cumsum(once[::-1])[::-1][1:]
        np.add(x[:-1] + beyond / 2, after, out=out)
        out *= self.steep
        out += self.flat * y.sum()


def _binned(wave: ContinuousWave, size: int, bins: int) -> Binned:
    width = (1 + 2 * wave.b) / bins
    edges = np.arange(bins + 1, dtype=np.float64) * width - wave.b
    return Binned(
        flat=wave.q * width,
        steep=(wave.p - wave.q) / size,
        upper=_points((edges + wave.b) * size, size),
        lower=_points((edges - wave.b) * size, size),
    )


def _points(at: Floats, size: int) -> _Points:
    bucket = np.clip(np.floor(at), 0, size).astype(np.intp)
    return _Points(bucket, np.maximum(at - bucket, 0))
