"""What truncation takes off a mean: the tail above θ, seen by few surveys, allotted to strata.

Surveys see above θ, but weakly: at ε = 1 even 150,000 of them leave an error of some 60 W in the
tail's weight on homes up to 43 kW, and those of one hour of the day ten times that. Stream reports
see below θ only, but sharply. So the tail's weight comes from all surveys pooled, and a stratum's
part of it from its own truncated mean: of all densities with that mean, the one nearest to the
pooled density (least relative entropy) is the pooled one times exp(γ·truncated value). On real
homes by hour of day, θ from 8 to 20 kW, it gave the hourly truncation bias to 22-24 %, whereas the
biases themselves differ by a factor of 20. Source: METHODS §3 (correction, shrinkage, intervals).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SHAPE_SPREAD = 0.3  # how far a stratum's tail may differ from the tilted one; 0.24 was measured
_MAX_TILT = 500.0
_INSIDE = 1e-3  # of the attainable range: how near its ends a tilted mean may come


@dataclass(frozen=True, slots=True)
class Truncation:
    """The thresholds behind a mean, each with its share of the reports; values in the unit."""

    thetas: tuple[int, ...]
    shares: tuple[float, ...]

    def kept(self, values: Floats) -> Floats:
        """Return what truncation leaves of each value, on average over the thresholds."""
        left = np.zeros(len(values))
        for theta, share in zip(self.thetas, self.shares, strict=True):
            left += share * np.minimum(values, theta)
        return left


@dataclass(frozen=True, slots=True)
class Correction:
    """What to add to a truncated mean, in the stream's unit.

    `bias`: the estimate, shrunk; `most`: the same before it was shrunk (≥ bias), from where an
    interval's upper end is counted; `se`: standard error apart from the truncated mean's own noise;
    `slope`: how far the bias moves with the truncated mean (≥ 0): its noise counts 1 + slope times.
    """

    bias: float
    most: float
    se: float
    slope: float


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """The pooled density of a stream, as far as surveys and stream reports tell it.

    `values`, `probabilities`: the survey estimate's cells; `resampled`: draws of how it may be
    instead (draws × cells: of its posterior, or from resampled surveys); `reference`: the density
    that strata are compared with; `n`: the stream reports it was anchored to (0: none).
    """

    values: Floats
    probabilities: Floats
    resampled: Floats
    reference: Floats
    n: int = 0

    def anchored(self, truncation: Truncation, mean: float, n: int) -> Tail:
        """Return the tail with a reference whose truncated mean is that of all n stream reports."""
        reference = tilted(self.reference, truncation.kept(self.values), mean)
        return replace(self, reference=reference, n=n)

    def correction(self, truncation: Truncation, mean: float, se: float, n: int) -> Correction:
        """Return the correction of a stratum's truncated mean (standard error se, n reports).

        The part of the mean's distance from the pool that may be noise does not move the tail:
        it is shrunk by 1 − se²/distance². Cost: O(cells).
        """
        kept = truncation.kept(self.values)
        cut = self.values - kept
        most, shrunk, se_pool = self._pooled(cut)
        pooled_cut, pooled_mean = float(self.reference @ cut), float(self.reference @ kept)
        if pooled_cut <= 0:
            return Correction(0.0, 0.0, se_pool, 0.0)
        distance = mean - pooled_mean
        trust = max(0.0, 1 - (se / distance) ** 2) if distance else 0.0
        x = tilted(self.reference, kept, pooled_mean + trust * distance)
        part = float(x @ cut) / pooled_cut
        apart = max(0.0, 1 - n / self.n) if self.n else 1.0  # the pool itself has no other shape
        shape = SHAPE_SPREAD * shrunk * part * apart**0.5
        slope = trust * shrunk / pooled_cut * _regression(x, cut, kept)
        return Correction(shrunk * part, most * part, float(np.hypot(se_pool * part, shape)), slope)

    def _pooled(self, cut: Floats) -> tuple[float, float, float]:
        """Return the pooled bias, the same shrunk, and the standard error without shrinking.

        Noise cannot push a density below 0, so it pushes tails up: the mean of resampled estimates
        shows by how much, and brings the estimate down again (a posterior's own mean stays). Then
        w = b²/(b² + Var b) as in METHODS §3.
        """
        again = self.resampled @ cut
        most = max(0.0, 2 * float(self.probabilities @ cut) - float(again.mean()))
        variance = float(again.var(ddof=1))
        shrunk = most**3 / (most * most + variance) if most > 0 else 0.0
        return most, shrunk, variance**0.5


def tilted(x: Floats, kept: Floats, mean: float) -> Floats:
    """Return x·exp(γ·kept), normalised, with E(kept) = mean (brought inside what x can attain)."""
    some = kept[x > 0]
    low, high = float(some.min()), float(some.max())
    if high <= low:
        return x
    unit = (kept - low) / (high - low)
    target = float(np.clip((mean - low) / (high - low), _INSIDE, 1 - _INSIDE))

    def weighted(gamma: float) -> Floats:
        mass = x * np.exp(np.minimum(gamma * unit - max(gamma, 0.0), 0.0))
        return np.asarray(mass / mass.sum())

    def miss(gamma: float) -> float:
        return float(weighted(gamma) @ unit) - target

    if miss(-_MAX_TILT) >= 0:
        return weighted(-_MAX_TILT)
    if miss(_MAX_TILT) <= 0:
        return weighted(_MAX_TILT)
    return weighted(float(brentq(miss, -_MAX_TILT, _MAX_TILT, xtol=1e-10)))


def _regression(x: Floats, y: Floats, on: Floats) -> float:
    """Return Cov(y, on) / Var(on) under x: how E(y) moves with E(on) along the tilt."""
    away = on - x @ on
    variance = float(x @ (away * away))
    return float(x @ (away * y)) / variance if variance > 0 else 0.0
