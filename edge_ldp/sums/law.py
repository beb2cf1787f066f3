"""How values spread, as far as a forecast needs to know: from a sample, or guessed.

The guess is the spread of mean power over a quarter hour in 400 Swiss homes in winter, brought to
another range or mean. Source of it: `firmware_stubs/data` (a test compares the figures).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edge_ldp.checks import COUNTABLE, TRUTH, array, finite, floats, optional, row, taking
from edge_ldp.device.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

# of 10,000 readings so many are about so many W, clamped to 0..HOMES_CEILING
HOMES_CEILING = 43_470
HOMES = (
    *((1000, 26), (1000, 120), (1000, 229), (1000, 389), (1000, 637), (1000, 1055), (1000, 1732)),
    *((1000, 2625), (500, 3497), (500, 4410), (300, 5577), (200, 6690), (200, 8511), (100, 10_637)),
    *((50, 12_421), (50, 14_539), (30, 16_922), (20, 19_201), (20, 21_977), (10, 24_666)),
    *((10, 27_466), (5, 32_077), (3, 36_711), (2, 39_672)),
)


class Cut(NamedTuple):
    """What a law says of a threshold: of values cut there, and of what lies above, unit and unit².

    `slope`: how far the tail moves with the truncated mean where values are scaled about low.
    """

    mean: float
    variance: float
    tail: float
    slope: float


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """A spread of values within [low, ceiling]: rising `values`, and their `shares`."""

    values: Floats
    shares: Floats
    low: int
    ceiling: int
    source: str

    @property
    def mean(self) -> float:
        """The mean, in the unit."""
        return float(self.shares @ self.values)

    @taking(theta=finite())
    def cut(self, theta: float) -> Cut:
        """Return what a threshold means for these values."""
        kept = np.minimum(self.values, theta)
        mean = float(self.shares @ kept)
        risen = self.shares * (self.values - self.low)
        above = self.values > theta
        under = float(risen[~above].sum())
        return Cut(
            mean=mean,
            variance=float(self.shares @ (kept - mean) ** 2),
            tail=float(self.shares @ (self.values - kept)),
            slope=float(risen[above].sum()) / under if under else 0.0,
        )

    @taking(edges=row(floats))
    def masses(self, edges: ArrayLike) -> Floats:
        """Return the share of the values in each cell edges[k] ≤ v < edges[k + 1]."""
        inner = np.asarray(edges, np.float64)[1:-1]
        at = np.searchsorted(inner, self.values, side="right")
        return np.bincount(at, self.shares, len(inner) + 1).astype(np.float64)


@taking(low=COUNTABLE, ceiling=COUNTABLE, clamp=TRUTH)
def law_of(
    readings: ArrayLike, low: int, ceiling: int, *, clamp: bool = False, name: str = "readings"
) -> Law:
    """Return the law of a sample; raises ParameterError, which counts readings and shows none.

    `clamp`: readings outside are put on the range's ends, as a device does.
    """
    _refuse_range(low, ceiling)
    given = array(name, readings)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iuf":
        raise ParameterError(name, "a list of one reading or more, all of them numbers")
    found = given.astype(np.float64)
    if missing := int((~np.isfinite(found)).sum()):
        what = f"numbers; {missing} of {found.size} are missing: leave those rows out"
        raise ParameterError(name, what)
    if (outside := int(((found < low) | (found > ceiling)).sum())) and not clamp:
        what = f"readings in {low}..{ceiling}; {outside} of {found.size} lie outside"
        raise ParameterError(name, f"{what}: give another low or ceiling, or clamp")
    values, counts = np.unique(np.clip(found, low, ceiling), return_counts=True)
    return Law(values, counts / found.size, low, ceiling, f"{found.size:,} readings")


@taking(low=COUNTABLE, ceiling=COUNTABLE, mean=optional(finite()))
def homes_law(low: int, ceiling: int, mean: float | None = None) -> Law:
    """Return the guess: values above low spread like the homes', with another mean if given.

    Without one they grow with the range: the mean is 1/22 of it. Raises ParameterError.
    """
    _refuse_range(low, ceiling)
    shares, watts = (np.array(part, np.float64) for part in zip(*HOMES, strict=True))
    shares /= shares.sum()
    unit = (ceiling - low) / HOMES_CEILING
    if mean is not None:
        if not low < mean < ceiling:
            raise ParameterError("mean", f"a number between {low} and {ceiling}")
        unit = (mean - low) / float(shares @ watts)
    source = "a guess: 400 Swiss homes in winter" + ("" if unit == 1 else ", scaled")
    return Law(np.minimum(low + watts * unit, ceiling), shares, low, ceiling, source)


def _refuse_range(low: int, ceiling: int) -> None:
    if not -(1 << 53) <= low < ceiling <= 1 << 53:
        raise ParameterError("low, ceiling", "low < ceiling, within 2**53")
