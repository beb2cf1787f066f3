"""The law of a sum's noise: variance, reach, and the interval that holds what it adds up to.

`Noise` is what one home adds to one answer: `taken` cells of each of its blocks that the answer
touches. A block's radius r + 1/2 weighs (2r+1)^k·q^r, so its moments are those of a gamma law to
within a relative 1/b^(k+1): formulas here are for that law, enumerated tests for small b beside
them. Source: docs/methods.md, Period sums.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, expm1, factorial, log1p, sqrt
from statistics import NormalDist

import numpy as np

from edge_ldp.arrays import Floats
from edge_ldp.device.errors import ParameterError
from edge_ldp.period_sums.layout import PeriodLayout

FEW = 24  # independent noises: beyond, the normal quantile is within 0.5 % of the exact one
TAIL = 2.0**-40  # probability that an honest cell lies beyond its reach
_TIMES = 1 << 14  # places where the characteristic function is taken
_RADII = 256
_STEPS = 60


@dataclass(frozen=True, slots=True, order=True)
class Noise:
    """Noise of scale b in blocks of `block` cells, `taken` of which are added up, in each."""

    scale: int
    block: int = 1
    taken: int = 1

    @property
    def variance(self) -> float:
        """Variance of the sum of the cells taken, in squares of the stream's unit."""
        return self.taken * cell_variance(self.scale, self.block)


def cell_variance(scale: int, block: int = 1) -> float:
    """Return the variance of one cell's noise: 2q/(1-q)², or ((k+1)(k+2)·b² - 1/4)/3 in a block."""
    if block == 1:
        return 2 * exp(-1 / scale) / expm1(-1 / scale) ** 2
    return ((block + 1) * (block + 2) * scale**2 - 0.25) / 3


def reach(block: int = 1) -> int:
    """Return m: an honest cell's noise is beyond m·b with probability at most 2^-40."""
    m = 1
    while exp(-m) * sum(m**i / factorial(i) for i in range(block + 1 if block > 1 else 1)) > TAIL:
        m += 1
    return m


def noise_half_width(noises: Iterable[Noise], level: float = 0.95) -> float:
    """Return x: the sum of these noises lies within ±x with probability `level`.

    Exact, by the sum's characteristic function, for up to FEW of them; the normal law beyond.
    Raises ParameterError for a level outside (0, 1).
    """
    if not 0 < level < 1:
        raise ParameterError("level", "more than 0 and less than 1")
    counted = Counter(noises)
    spread = sqrt(sum(many * noise.variance for noise, many in counted.items()))
    if not counted or counted.total() > FEW:
        return spread * NormalDist().inv_cdf((1 + level) / 2)
    if counted.total() == 1 and (only := next(iter(counted))).block == only.taken == 1:
        return -only.scale * log1p(-level)  # a Laplace law's own
    times, weights = _inversion(counted, spread)
    low, high = 0.0, 40 * spread
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if float((weights * np.sin(middle * times)).sum()) < level:
            low = middle
        else:
            high = middle
    return high


def _inversion(noises: Counter[Noise], spread: float) -> tuple[Floats, Floats]:
    """Return t and w: the probability of ±x is Σ w·sin(tx), from (2/π)∫ sin(tx)/t·φ(t) dt."""
    # φ falls as t^-2 for each noise at the least: far enough out for what is left to be nothing
    end = (2000 if noises.total() == 1 else 400) / spread
    times = np.arange(0.5, _TIMES, dtype=np.float64) * (end / _TIMES)
    phi = np.ones(_TIMES)
    for noise, many in noises.items():
        phi = phi * _characteristic(noise, times) ** many
    return times, (2 / np.pi) * (end / _TIMES) * phi / times


def _characteristic(noise: Noise, t: Floats) -> Floats:
    """Return E cos(t·Z) of a noise, at each t."""
    bt = noise.scale * t
    if noise.block == 1:
        return (1 + bt**2) ** -noise.taken
    if noise.taken == 1:  # E sin(rt)/(rt) over the radius, in closed form
        return ((1 - 1j * bt) ** -noise.block).imag / (noise.block * bt)
    radii, weights = _radii(noise.block)
    found = np.zeros_like(t)
    for radius, weight in zip(radii, weights, strict=True):
        found += weight * np.sinc(radius * bt / np.pi) ** noise.taken
    return found


def _radii(block: int) -> tuple[Floats, Floats]:
    """Return radii in units of b, and what each weighs: r^k·e^-r / k!, by midpoints."""
    top = block + 10 * sqrt(block + 1) + 30
    radii = np.arange(0.5, _RADII, dtype=np.float64) * (top / _RADII)
    weights = radii**block * np.exp(-radii)
    return radii, weights / weights.sum()


def forecast_total(  # noqa: PLR0913 (a question: how many of whom, of what)
    layout: PeriodLayout,
    scale: int,
    *,
    homes: int,
    periods: int,
    cells: int | None = None,
    cell_sum: float = float("inf"),
    level: float = 0.95,
) -> float:
    """Return the half-width of a total over so many neighbouring cells, in unit · slots.

    `cell_sum`: what one home's cell holds in a period, about; folding saves most where it is small
    against the noise. Half-widths of means: divide by the slots. Raises ParameterError.
    """
    wanted = layout.cells if cells is None else cells
    if homes < 1 or periods < 1 or not 1 <= wanted <= layout.cells:
        raise ParameterError("homes, periods, cells", f"above 0, and {layout.cells} cells at most")
    full, rest = divmod(wanted, layout.block)
    of_home = [Noise(scale, layout.block, layout.block)] * full
    of_home += [Noise(scale, layout.block, rest)] * (rest > 0)
    if len(of_home) * homes * periods <= FEW:
        return noise_half_width(of_home * (homes * periods), level)
    one = cell_variance(scale, layout.block)
    if layout.block == 1:
        one *= 1 - _below(cell_sum, scale) / 2
    return sqrt(homes * periods * wanted * one) * NormalDist().inv_cdf((1 + level) / 2)


def _below(cell_sum: float, scale: int) -> float:
    """Return the probability that a cell is not above 0: q^S/(1+q)."""
    return exp(-cell_sum / scale) / (1 + exp(-1 / scale))
