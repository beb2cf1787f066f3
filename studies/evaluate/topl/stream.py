"""A stream to be surveyed and summed, and the exact error of its range sums under a threshold.

Values longer than the data are the data mirrored again and again, as in the authors' code. The
first m values are surveyed; queries are uniform pairs over the r values after them. Their expected
squared error has no simulation in it: noise V·((θ − low)/2)² a value, and the sums of what
truncation takes, averaged over all pairs. Sources: [ToPS] §5 (setting), E.2 (V); docs/methods.md,
Decided readings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp import Hybrid, SquareWave
from edge_ldp.vectorized import perturb_many

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge_ldp import Mechanism
    from studies.evaluate.study import Values

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

SURVEYED, HORIZON = 65_536, 2**20  # m and r
STREAM_EPSILON = 1
BUCKETS = 1024
_REMEMBERED = 8  # data sets


@dataclass(frozen=True, slots=True)
class Stream:
    """A data set as a stream; equal digests are equal streams, so that results can be kept."""

    digest: str
    source: Values = field(compare=False)

    @property
    def low(self) -> int:
        """Smallest possible value, unit."""
        return self.source.low

    @property
    def ceiling(self) -> int:
        """Largest possible value, unit."""
        return self.source.ceiling

    def part(self, start: int, end: int) -> Ints:
        """Return the values at positions start ≤ t < end of the mirrored stream."""
        given = self.source.values
        at = np.arange(start, end) % (2 * len(given))
        return given[np.minimum(at, 2 * len(given) - 1 - at)]

    def survey(self, epsilon: float) -> SquareWave:
        """Return the survey over the whole range."""
        size = min(BUCKETS, self.ceiling - self.low + 1)
        return SquareWave(epsilon=epsilon, low=self.low, high=self.ceiling, size=size)

    def mse(self, theta: int) -> float:
        """Return the expected squared error of a range sum of values truncated at θ, unit²."""
        noise = unit_variance() * ((theta - self.low) / 2) ** 2 * (HORIZON + 2) / 3
        return noise + mean_square_of_ranges(np.maximum(queried(self) - theta, 0))

    def zero_mse(self) -> float:
        """Return the mean squared error of answering 0 to every range sum, unit²."""
        return mean_square_of_ranges(queried(self))


def stream_of(values: Values) -> Stream:
    """Return a data set as a stream. Cost: a digest of it."""
    return Stream(values.digest(), values)


def reports(mechanism: Mechanism, values: Ints, rng: np.random.Generator) -> Ints:
    """Return how many of the values' reports are each code, each value randomised once."""
    codes = perturb_many(mechanism, values, entropy=rng.bytes)
    return np.bincount(codes, minlength=mechanism.code_count)


@lru_cache(maxsize=1)
def unit_variance() -> float:
    """Return V, the hybrid mechanism's variance on [−1, 1]."""
    return Hybrid(epsilon=STREAM_EPSILON, low=0, high=1000).unit_variance


def mean_square_of_ranges(values: Ints) -> float:
    """Return the mean of (Σ of values[i:j])² over all 0 ≤ i < j ≤ len: exact, no query is drawn.

    That is twice the sample variance of the cumulative sums. Cost: O(len).
    """
    sums = np.concatenate([[0], np.cumsum(values)]).astype(np.float64)
    sums -= sums.mean()
    return 2 * float(sums @ sums) / (len(sums) - 1)


@lru_cache(maxsize=1)
def queried(stream: Stream) -> Ints:
    """Return the values that range sums are asked of."""
    return stream.part(SURVEYED, SURVEYED + HORIZON)


@lru_cache(maxsize=_REMEMBERED)
def least(stream: Stream) -> float:
    """Return the least possible MSE, unit²."""
    return stream.mse(best(stream))


@lru_cache(maxsize=_REMEMBERED)
def best(stream: Stream) -> int:
    """Return the integer θ of least MSE, which is convex in θ. Cost: some 50 times `mse`."""
    left, right = stream.low + 1, stream.ceiling
    while left < right:
        middle = (left + right) // 2
        if stream.mse(middle) <= stream.mse(middle + 1):
            right = middle
        else:
            left = middle + 1
    return left
