"""How values spread, as far as a forecast needs to know: from a sample, or guessed.

A sample in time also tells how hours, days and weeks differ: where homes are on at the same time,
an hour's readings are far more alike than all are.

The guess is the spread of mean power over a quarter hour in 400 Swiss homes in winter, brought to
another range or mean. Source of it: `firmware_stubs/data` (a test compares the figures).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edge_ldp.arrays import Floats
from edge_ldp.checks import (
    COUNTABLE,
    TRUTH,
    array,
    finite,
    floats,
    integer_in,
    optional,
    row,
    taking,
)
from edge_ldp.device.errors import ParameterError

WEEK, HOURS = 7, 24
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
    """A spread of values within [low, ceiling]: rising `values`, and their `shares`.

    `parts`: the laws of each hour of the day, day and week, by the horizon's name, where known.
    """

    values: Floats
    shares: Floats
    low: int
    ceiling: int
    source: str
    parts: "Mapping[str, tuple[Law, ...]]" = field(default_factory=dict)

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
    found = _readings(readings, low, ceiling, clamp=clamp, name=name)
    if found.ndim != 1 or not found.size:
        raise ParameterError(name, "a list of one reading or more, all of them numbers")
    if missing := int(np.isnan(found).sum()):
        what = f"numbers; {missing} of {found.size} are missing: leave those rows out"
        raise ParameterError(name, what)
    return _counted(found, low, ceiling)


@taking(low=COUNTABLE, ceiling=COUNTABLE, slots_a_day=integer_in(1, 86_400), clamp=TRUTH)
def law_in_time(  # noqa: PLR0913 (a sample, and what it may be)
    readings: ArrayLike,
    low: int,
    ceiling: int,
    slots_a_day: int,
    *,
    clamp: bool = False,
    name: str = "readings",
) -> Law:
    """Return the law of homes × slots in time, each home's whole days from midnight on, with parts.

    What is missing is NaN. Raises ParameterError, which shows no reading.
    """
    found = _readings(readings, low, ceiling, clamp=clamp, name=name)
    is_there = ~np.isnan(found)
    if found.ndim != 2 or found.shape[1] % slots_a_day or not is_there.any():  # noqa: PLR2004
        raise ParameterError(name, f"readings of homes × slots, whole days of {slots_a_day}")
    day, at = np.divmod(np.arange(found.shape[1]), slots_a_day)
    weeks = (day[-1] + 1) // WEEK
    strata = {
        "week": np.where(day < weeks * WEEK, day // WEEK, -1),
        "day": day,
        "hour-of-day": at * HOURS // slots_a_day,
    }
    parts = {
        horizon: tuple(
            _counted(found[:, of == one][some], low, ceiling)
            for one in range(of.max() + 1)
            if (some := is_there[:, of == one]).any()
        )
        for horizon, of in strata.items()
    }
    whole = _counted(found[is_there], low, ceiling)
    return replace(whole, source=f"{whole.source} in time", parts=parts)


def _readings(given: ArrayLike, low: int, ceiling: int, *, clamp: bool, name: str) -> Floats:
    """Return readings within the range; what is no finite number is missing."""
    _refuse_range(low, ceiling)
    found = array(name, given)
    if found.dtype.kind not in "iuf":
        raise ParameterError(name, "a list of one reading or more, all of them numbers")
    real = found.astype(np.float64)
    real[~np.isfinite(real)] = np.nan
    if (outside := int(((real < low) | (real > ceiling)).sum())) and not clamp:
        what = f"readings in {low}..{ceiling}; {outside} of {found.size} lie outside"
        raise ParameterError(name, f"{what}: give another low or ceiling, or clamp")
    clipped: Floats = np.clip(real, low, ceiling)
    return clipped


def _counted(readings: Floats, low: int, ceiling: int) -> Law:
    values, counts = np.unique(readings, return_counts=True)
    shares = counts / readings.size
    return Law(values, shares, low, ceiling, f"{readings.size:,} readings")


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
