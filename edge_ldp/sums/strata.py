"""A pooled tail allotted to strata (hours, weeks, groups) by what the strata's own surveys show.

Every stratum has an unbiased tail of its own, seen with much noise. Tails are first predicted from
all strata: a straight line in the strata's truncated means, its slope estimated from the tails
themselves. What the tails differ from that line beyond their noise is the spread: the value under
which the sum of squares would be at its median. Each stratum then leans on its own tail as far as
the spread is large beside its noise; line, spread and noise are all in its error. With fewer than
LEAST strata each stands by itself. No shape of a density enters.

Sources: Paule and Mandel 1982 (the spread), with the median in the place of the mean; Efron and
Morris 1975 (leaning); Wilson and Hilferty 1931 (the chi-squared distribution's quantiles).
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEAST = 4  # strata: fewer leave nothing to measure a spread by
_FITTED = 2  # the line's two numbers
_HALVINGS = 60
_LEVELS = 64


class Allotted(NamedTuple):
    """Each stratum's tail, `se` its error apart from the truncated mean's, and how it came.

    `own`: how far each leans on its own surveys, 0..1; `slope`: how far a tail moves with its
    truncated mean, which therefore carries its noise 1 + `carried` times; `spread`: standard
    deviation between strata about the line, unit; `unseen`: a spread that would not have shown.
    """

    tails: Floats
    se: Floats
    own: Floats
    slope: float
    carried: Floats
    spread: float
    unseen: float


def allot(tails: Floats, errors: Floats, means: Floats, pooled: Floats) -> Allotted:
    """Return the strata's tails from their own unbiased ones.

    `tails`, `errors`: of each stratum and their standard errors, infinite where there were no
    surveys; `means`: truncated means; `pooled`: the tail of all strata together, above each
    stratum's own θ. All in the unit, an entry a stratum.
    """
    known = np.isfinite(errors)
    noise = np.where(known, errors, 1.0) ** 2
    if known.sum() < LEAST:
        return Allotted(
            np.where(known, tails, pooled),
            errors,
            np.ones(len(tails)),
            0.0,
            np.zeros(len(tails)),
            0.0,
            float("inf"),
        )
    off = np.where(known, tails, 0.0) - pooled
    quantile = chi_squared(0.5, int(known.sum()) - _FITTED)
    spread2 = _spread(off[known], noise[known], means[known], quantile)
    line, slope, of_line = _line(off, noise + spread2, means, known)
    own = np.where(known, spread2 / (spread2 + noise), 0.0)
    found = pooled + line + own * (off - line)
    variance = (1 - own**2) * of_line + own**2 * noise + (1 - own) ** 2 * spread2
    middle = float(np.median(noise[known]))
    unseen = middle * max(0.0, chi_squared(0.95, int(known.sum()) - _FITTED) / quantile - 1)
    return Allotted(
        found, np.sqrt(variance), own, slope, (1 - own) * slope, spread2**0.5, unseen**0.5
    )


def expected_variance(strata: int, spread2: float = 0.0) -> float:
    """Return the variance that `allot` is expected to put on a tail, over one stratum's own noise.

    For equal strata whose true spread about the line is `spread2` of a stratum's noise variance.
    """
    if strata < LEAST:
        return 1.0
    degrees = strata - _FITTED
    sums = _quantiles(degrees) * (1 + spread2)
    own = np.maximum(0.0, 1 - chi_squared(0.5, degrees) / sums)
    return float((own + (1 - own**2) * _FITTED / strata).mean())


def chi_squared(level: float, degrees: int) -> float:
    """Return about the quantile of a chi-squared distribution: within 1 % from 3 degrees on."""
    part = 2 / (9 * degrees)
    root: float = 1 - part + NormalDist().inv_cdf(level) * part**0.5
    return degrees * max(root, 0.0) ** 3


@lru_cache(maxsize=64)
def _quantiles(degrees: int) -> Floats:
    """Return 64 equally likely sums of squares."""
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    return np.array([chi_squared(float(level), degrees) for level in levels])


def _spread(off: Floats, noise: Floats, means: Floats, quantile: float) -> float:
    """Return the variance between strata under which the residuals' sum is the quantile."""
    every = np.ones(len(off), dtype=bool)

    def excess(spread2: float) -> float:
        line, _, _ = _line(off, noise + spread2, means, every)
        return float(((off - line) ** 2 / (noise + spread2)).sum()) - quantile

    if excess(0.0) <= 0:
        return 0.0
    low, high = 0.0, float(noise.max() + off @ off)
    while excess(high) > 0:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def _line(
    off: Floats, variance: Floats, means: Floats, known: NDArray[np.bool_]
) -> tuple[Floats, float, Floats]:
    """Return the weighted line through the known strata, its slope, and its variance at each."""
    weight = np.where(known, 1 / variance, 0.0)
    total = weight.sum()
    centre = weight @ means / total
    level = weight @ off / total
    away = means - centre
    squares = float(weight @ (away * away))
    if squares <= 0:
        return np.full(len(off), level), 0.0, np.full(len(off), 1 / total)
    slope = float(weight @ (away * off)) / squares
    return level + slope * away, slope, 1 / total + away * away / squares
