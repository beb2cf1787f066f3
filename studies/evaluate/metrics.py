"""The metrics of both papers, on known truth.

Of densities ([SW] §3): mass is uniform inside a cell, positions are shares of the truth's range, so
that figures of streams with different units compare. The two may have different cells. Of range
sums over a stream ([ToPS] §5, Appendix F): in the stream's unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from edge_ldp.checks import GENERATOR, a, chance, integer_in, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.estimate.density import Density

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

STARTS = 2000  # left ends of range queries, evenly spread
QUERIES = 200  # range sums of a run
_DECILES = np.arange(1, 10) / 10
_ROUNDING = 1e-12  # by how much a cumulative sum may miss a decile it stands for


@dataclass(frozen=True, slots=True, eq=False)
class Masses:
    """Cells that need not be a density: unbiased frequencies, some below 0, any sum."""

    edges: Floats
    probabilities: Floats

    def __post_init__(self) -> None:
        """Refuse what would make every error NaN; raises ParameterError."""
        if not (np.isfinite(self.edges).all() and np.isfinite(self.probabilities).all()):
            raise ParameterError("edges, probabilities", "finite numbers")


Spread: TypeAlias = Density | Masses


_SPREAD = a("edge_ldp.estimate.density.Density", "studies.evaluate.metrics.Masses")


@taking(truth=_SPREAD, found=_SPREAD)
def w1(truth: Spread, found: Spread) -> float:
    """Wasserstein distance as a share of the range: mean |difference| at the truth's cells' ends.

    [SW] §3.1 without the division by d multiplies it by the number of cells.
    """
    at = truth.edges[1:]
    apart = np.abs(_below(truth, at) - _below(found, at))
    return float(apart @ np.diff(truth.edges)) / _span(truth)


@taking(truth=_SPREAD, found=_SPREAD)
def ks(truth: Spread, found: Spread) -> float:
    """Kolmogorov-Smirnov distance: the largest difference at any edge of the two. [SW] §3.1."""
    at = np.concatenate([truth.edges, found.edges])
    return float(np.abs(_below(truth, at) - _below(found, at)).max())


@taking(truth=_SPREAD, found=_SPREAD, alpha=chance, starts=integer_in(1, 1 << 20))
def range_error(truth: Spread, found: Spread, alpha: float, *, starts: int = STARTS) -> float:
    """Mean absolute error of queries for the share in [i, i + α), α a share of the range.

    Left ends i are spread evenly over where the query fits. Source: [SW] §3.2 (α = 0.1 and 0.4).
    """
    if not alpha:
        raise ParameterError("alpha", "above 0, at most 1")
    left = truth.edges[0] + _span(truth) * (1 - alpha) * (np.arange(starts) + 0.5) / starts
    right = left + alpha * _span(truth)
    errors = [_below(x, right) - _below(x, left) for x in (truth, found)]
    return float(np.abs(errors[0] - errors[1]).mean())


@taking(truth=_SPREAD, found=_SPREAD)
def mean_error(truth: Spread, found: Spread) -> float:
    """Absolute error of the mean, as a share of the range. [SW] §3.2."""
    return abs(_moments(truth)[0] - _moments(found)[0]) / _span(truth)


@taking(truth=_SPREAD, found=_SPREAD)
def variance_error(truth: Spread, found: Spread) -> float:
    """Absolute error of the variance, in squares of the range. [SW] §3.2."""
    return abs(_moments(truth)[1] - _moments(found)[1]) / _span(truth) ** 2


@taking(truth=_SPREAD, found=_SPREAD)
def quantile_error(truth: Spread, found: Spread) -> float:
    """Mean absolute error of the nine deciles, as a share of the range. [SW] §3.2.

    A quantile is the last of the truth's edges with no more than the share below it.
    """
    at = truth.edges
    ends = [
        at[np.searchsorted(_below(x, at), _DECILES + _ROUNDING, side="right") - 1]
        for x in (truth, found)
    ]
    return float(np.abs(ends[0] - ends[1]).mean()) / _span(truth)


@dataclass(frozen=True, slots=True)
class SumErrors:
    """Errors of range sums over queries [i, j): squared and absolute, of sums and of means.

    MMSE and MMAE divide each query's error by its length j − i. Source: [ToPS] §5, Appendix F.
    """

    mse: float
    mae: float
    mmse: float
    mmae: float


@taking(rng=GENERATOR, length=integer_in(1, 1 << 53), count=integer_in(1, 1 << 24))
def query_pairs(
    length: int, *, rng: np.random.Generator, count: int = QUERIES
) -> NDArray[np.int64]:
    """Return `count` pairs 0 ≤ i < j ≤ length, uniform: of mean length about length/3.

    Shape (count, 2). `rng` draws queries, never privacy noise.
    """
    first = rng.integers(0, length + 1, count)
    second = rng.integers(0, length, count)
    second += second >= first  # any other end
    return np.sort(np.stack([first, second], axis=1), axis=1)


def errors_between(true: ArrayLike, estimated: ArrayLike, widths: ArrayLike) -> SumErrors:
    """Return the errors of range sums against the true ones, ranges being `widths` values long."""
    error = np.subtract(estimated, true).astype(np.float64)
    if not np.isfinite(error).all():
        raise ParameterError("truth, found", "finite numbers")
    each = error / np.asarray(widths, np.float64)
    return SumErrors(
        mse=float((error**2).mean()),
        mae=float(np.abs(error).mean()),
        mmse=float((each**2).mean()),
        mmae=float(np.abs(each).mean()),
    )


def _span(truth: Spread) -> float:
    return float(truth.edges[-1] - truth.edges[0])


def _below(x: Spread, at: Floats) -> Floats:
    """Return the mass left of each point."""
    sums = np.concatenate([[0.0], np.cumsum(x.probabilities)])
    return np.asarray(np.interp(at, x.edges, sums))


def _moments(x: Spread) -> tuple[float, float]:
    """Return mean and variance of the mass, uniform inside cells."""
    middles, widths = (x.edges[1:] + x.edges[:-1]) / 2, np.diff(x.edges)
    mean = float(x.probabilities @ middles)
    return mean, float(x.probabilities @ ((middles - mean) ** 2 + widths**2 / 12))
