"""A pooled tail allotted to strata (hours, weeks, groups) by what the strata's own surveys show.

Tails are predicted by a line in the strata's truncated means; each stratum leans on its own tail as
far as the spread about that line is large beside its noise, on average over levels of the spread.
What a tail weighs must not go with its value: a few surveys with a low tail also vary little.
Its error is that of the larger half of them. With fewer than LEAST strata each stands by itself. No
shape of a density enters.

Sources: docs/sums.md, Strata; Paule and Mandel 1982 (the spread), with all quantiles in the place
of the mean, as in generalised confidence intervals (Iyer, Wang and Mathew 2004); Efron and Morris
1975 (leaning); Wilson and Hilferty 1931 (the chi-squared distribution's quantiles).
"""

from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from edge_ldp.arrays import Floats

LEAST = 4  # strata: fewer leave nothing to measure a spread by
FITTED = 2  # the line's two numbers
_LEVELS = 16  # of the spread, the largest first
_LARGER = 8  # of them: their half
_CASES = 16
_HALVINGS = 50
_ROUNDING = 1e-24  # of squares: means that differ by less are equal


class Allotted(NamedTuple):
    """Each stratum's tail, `se` its error apart from the truncated mean's, and how it came.

    `own`: how far each leans on its own surveys, 0..1; `slope`: how far a tail moves with its
    truncated mean, which therefore carries its noise 1 + `carried` times; `spread`: standard
    deviation between strata about the line, unit, the median of what it may be; `unseen`: a spread
    that would not have shown.
    """

    tails: Floats
    se: Floats
    own: Floats
    carried: Floats
    slope: float
    spread: float
    unseen: float


def allot(tails: Floats, errors: Floats, usual: Floats, means: Floats, pooled: Floats) -> Allotted:
    """Return the strata's tails from their own unbiased ones.

    `tails`, `errors`: of each stratum and their standard errors, infinite where there were no
    surveys; `usual`: what so many surveys err by in all strata together, which decides what tails
    weigh; `means`: what each stratum's mean would be with the pooled tail; `pooled`: the tail of
    all strata together, above each stratum's own θ. All in the unit, an entry a stratum.
    """
    known = np.isfinite(errors) & (usual > 0)
    if known.sum() < LEAST:
        found = np.where(np.isfinite(errors), tails, pooled)
        alone, none = np.ones(len(tails)), np.zeros(len(tails))
        return Allotted(found, errors, alone, none, 0.0, 0.0, float("inf"))
    noise = np.where(known, usual, np.inf) ** 2
    off = np.where(known, tails, 0.0) - pooled
    degrees = int(known.sum()) - FITTED
    spreads = _spreads(off, noise, means, _quantiles(_LEVELS, degrees))
    line, slope, of_line, _ = _line(off, noise, means, spreads)
    own = spreads[:, None] / (spreads[:, None] + noise)
    each = pooled + line + own * (off - line)
    found = each.mean(axis=0)
    # the line is made of these tails too, but of the spread about it only the rest is not known
    variance = own**2 * np.where(known, errors, 0.0) ** 2
    variance += (1 - own) ** 2 * (of_line + spreads[:, None]) + (each - found) ** 2
    larger = variance[:_LARGER].mean(axis=0)
    middle = float(np.median(noise[known]))
    unseen = middle * max(0.0, chi_squared(0.95, degrees) / chi_squared(0.5, degrees) - 1)
    return Allotted(
        found,
        np.sqrt(larger),
        own.mean(axis=0),
        ((1 - own) * slope).mean(axis=0),
        float(slope.mean()),
        float(np.median(spreads)) ** 0.5,
        unseen**0.5,
    )


def expected_cases(strata: int, spread2: float = 0.0) -> tuple[Floats, Floats]:
    """Return what `allot` is expected to do, in cases that are equally likely.

    The variance that it puts on a tail, over one stratum's own noise, and how far it leans on the
    stratum's own tail. For equal strata whose true spread about the line is `spread2` of a
    stratum's noise variance; below 0 where that is overstated, down to −1.
    """
    if strata < LEAST:
        return np.ones(1), np.ones(1)
    degrees = strata - FITTED
    sums = _quantiles(_CASES, degrees)[:, None] * max(_ROUNDING, 1 + spread2)
    own = np.maximum(0.0, 1 - _quantiles(_LEVELS, degrees) / sums)
    apart = (own - own.mean(axis=1, keepdims=True)) ** 2 * sums / strata
    variance = own + (1 - own) * FITTED / strata + apart  # the line's grows as own does
    return variance[:, :_LARGER].mean(axis=1), own.mean(axis=1)


def chi_squared(level: float, degrees: int) -> float:
    """Return about the quantile of a chi-squared distribution.

    From 3 degrees on within 1.5 % at levels from 0.25 on; below it is too small with few degrees,
    by up to 14 % at 3.
    """
    part = 2 / (9 * degrees)
    root: float = 1 - part + NormalDist().inv_cdf(level) * part**0.5
    return degrees * max(root, 0.0) ** 3


@lru_cache(maxsize=256)
def _quantiles(count: int, degrees: int) -> Floats:
    """Return the chi-squared quantiles of so many even levels, rising."""
    return np.array([chi_squared((at + 0.5) / count, degrees) for at in range(count)])


def _spreads(off: Floats, noise: Floats, means: Floats, quantiles: Floats) -> Floats:
    """Return the variances between strata under which the residuals' sum is each quantile.

    The sum falls as the variance grows: halved until it is found; 0 where it is below at once.
    """
    known = np.isfinite(noise)
    low = np.zeros(len(quantiles))
    high = np.full(len(quantiles), float(noise[known].max() + off[known] @ off[known]))
    while (above := _line(off, noise, means, high)[3] > quantiles).any():
        high = np.where(above, 2 * high, high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = _line(off, noise, means, middle)[3] > quantiles
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    at_once = _line(off, noise, means, np.zeros(len(quantiles)))[3] <= quantiles
    return np.where(at_once, 0.0, high)


def _line(
    off: Floats, noise: Floats, means: Floats, spreads: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return for each spread, a row each, the weighted line, its slope and its variance, and Σ.

    Σ: the weighted sum of squared residuals. Strata of infinite noise have no weight.
    """
    weight = 1 / (noise + spreads[:, None])
    total = weight.sum(axis=1, keepdims=True)
    away = means - weight @ means[:, None] / total
    squares = (weight * away**2).sum(axis=1, keepdims=True)
    flat = squares <= _ROUNDING * (weight * means**2).sum(axis=1, keepdims=True)
    squares = np.where(flat, np.inf, squares)
    slope = (weight * away * off).sum(axis=1, keepdims=True) / squares
    line = weight @ off[:, None] / total + slope * away
    residuals = (weight * (off - line) ** 2).sum(axis=1)
    return line, slope, 1 / total + away**2 / squares, residuals
