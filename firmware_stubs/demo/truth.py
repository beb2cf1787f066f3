"""What only the demo knows: the true means, and what sums without truncation would have given.

Both are kept as sums for each slot over all homes, so that they can be had for the very slots that
an answer is about. Slots are quarter hours from local midnight; powers in W.
"""

from dataclasses import dataclass

import numpy as np

from edge_ldp.arrays import Floats, Ints
from edge_ldp.entropy import Entropy
from edge_ldp.mechanisms import Tuned
from edge_ldp.vectorized import decode_many, perturb_many

HOURS = 24
HOUR_SLOTS = 4
Z95 = 1.959964
_CHUNK_HOMES = 50  # bounds memory: about 10 MB at a time


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95 % interval."""

    mean: float
    low: float
    high: float

    def holds(self, truth: float) -> bool:
        """Say whether the truth lies in the interval, ends included."""
        return self.low <= truth <= self.high

    @property
    def half_width(self) -> float:
        """Half the interval's length."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class TrueSums:
    """A true mean of one home, W, and total of all homes, W × slots."""

    mean: float
    total: float


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """All homes' readings clamped to [low, ceiling], added up for each slot.

    `values`: readings in all; `clamped`: how many of them lay outside.
    """

    homes: int
    sums: Ints
    values: int
    clamped: int

    def over(self, slots: slice) -> tuple[TrueSums, list[TrueSums]]:
        """Return the truth over some slots, and for each hour of the day."""
        totals = _by_hour(self.sums.astype(np.float64), slots)
        counts = self.homes * _by_hour(np.ones(len(self.sums)), slots)
        hours = [
            TrueSums(*row) for row in zip(_ratio(totals, counts), totals.tolist(), strict=True)
        ]
        return TrueSums(float(totals.sum() / counts.sum()), float(totals.sum())), hours


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """Decoded stream reports at θ = B, and their squares, added up for each slot."""

    homes: int
    sums: Floats
    squares: Floats

    def over(self, slots: slice) -> tuple[Interval, list[Interval]]:
        """Return the estimate over some slots, and for each hour of the day.

        The interval is of sampling noise alone, for nothing is truncated.
        """
        counts = self.homes * _by_hour(np.ones(len(self.sums)), slots)
        totals, squares = _by_hour(self.sums, slots), _by_hour(self.squares, slots)
        means = zip(counts, _ratio(totals, counts), _ratio(squares, counts), strict=True)
        count = counts.sum()
        whole = _interval(count, float(totals.sum() / count), float(squares.sum() / count))
        return whole, [_interval(*row) for row in means]


def find_truth(values: Ints, low: int, ceiling: int) -> Truth:
    """Return the truth of readings of shape (homes, slots)."""
    inside = np.clip(values, low, ceiling)
    clamped = int(np.count_nonzero(inside != values))
    return Truth(len(values), inside.sum(axis=0), values.size, clamped)


def simulate_plain(values: Ints, epsilon: int, low: int, ceiling: int, entropy: Entropy) -> Plain:
    """Simulate one stream report for each reading with θ = B; entropy as on a device."""
    mechanism = Tuned(epsilon=epsilon, low=low, high=ceiling)
    sums, squares = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    for at in range(0, len(values), _CHUNK_HOMES):
        chunk = values[at : at + _CHUNK_HOMES]
        codes = perturb_many(mechanism, chunk, entropy=entropy).reshape(chunk.shape)
        decoded = decode_many(mechanism, codes)
        sums += decoded.sum(axis=0)
        squares += (decoded**2).sum(axis=0)
    return Plain(len(values), sums, squares)


def true_density(values: Ints, edges: Floats) -> Floats:
    """Return the share of the values in each bucket [edge, next edge); outliers go to the ends."""
    counts, _ = np.histogram(np.clip(values, edges[0], np.nextafter(edges[-1], 0)), edges)
    return np.asarray(counts / values.size)


def _by_hour(of_slots: Floats, slots: slice) -> Floats:
    """Add up what belongs to each hour of the day."""
    hours = np.arange(len(of_slots)) // HOUR_SLOTS % HOURS
    return np.asarray(np.bincount(hours[slots], of_slots[slots], HOURS), np.float64)


def _ratio(sums: Floats, counts: Floats) -> list[float]:
    """Return the means; not a number where there is nothing."""
    means = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
    return [float(mean) for mean in means]


def _interval(count: float, mean: float, mean_square: float) -> Interval:
    error = Z95 * float(np.sqrt((mean_square - mean**2) / max(count, 1)))
    return Interval(mean, mean - error, mean + error)
