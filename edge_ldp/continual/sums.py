"""Range sums of released values with the variance of their noise. Post-processing: spends nothing.

What a range's variance does not hold: what θ cut off, what a smoother mispredicts at the range's
two ends (at most a block each), and up to 2 units of rounding.
"""

from array import array
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt
from statistics import NormalDist

from edge_ldp.checks import exact_integer, inner_chance, taking
from edge_ldp.continual.curator import Release
from edge_ldp.continual.design import Design
from edge_ldp.continual.variance import (
    coefficient,
    node_variance,
    runs_within_chunks,
    value_runs,
    walk,
)
from edge_ldp.device.errors import ParameterError


@dataclass(frozen=True, slots=True)
class RangeSum:
    """Sum of the readings of some slots, in their unit, missing ones left out.

    `variance`: of the noise, exact for the released law but for rounding (unit²); `is_exact` is
    False when a median's prediction, whose noise has no such variance, is part of the sum.
    """

    total: int
    readings: int
    missing: int
    variance: float
    is_exact: bool = True

    @taking(confidence=inner_chance)
    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return bounds for the true sum of readings cut at θ.

        Half-width: the larger of a normal's and a single Laplace's of this variance, as the noise
        of one node is Laplace and that of many nearly normal.
        """
        normal = NormalDist().inv_cdf((1 + confidence) / 2)
        reach = max(normal, -log(1 - confidence) / sqrt(2)) * sqrt(self.variance)
        return self.total - reach, self.total + reach


class Released:
    """Collects a stream's releases in order and sums ranges of slots.

    Memory: 16 bytes a value, for a tree that is walked 16 more. Cost of a range: O(b·h) but for the
    search of its slots.
    """

    def __init__(self, design: Design) -> None:
        self._design = design
        self._smoother = design.make_smoother()
        self._slots = array("q")
        self._sums = array("q", [0])
        self._thetas: list[int] = []
        levels = design.shape.levels if design.shape.kind == "tree" else 0
        self._nodes = [array("q") for _ in range(levels)]

    def add(self, release: Release) -> None:
        """Take the next release; raises ParameterError when it is not after the last one."""
        if release.value is None or release.theta is None:
            return
        if self._slots and release.slot <= self._slots[-1]:
            raise ParameterError("slot", "above every slot before")
        if len(self._slots) % self._design.shape.chunk == 0:
            self._thetas.append(release.theta)
        self._slots.append(release.slot)
        self._sums.append(self._sums[-1] + release.value)
        for level, total in enumerate((release.value, *release.nodes) if self._nodes else ()):
            self._nodes[level].append(total)

    @taking(first=exact_integer, end=exact_integer)
    def range(self, first: int, end: int) -> RangeSum:
        """Return the sum over slots first, …, end - 1; raises ParameterError if end < first."""
        if end < first:
            raise ParameterError("range", "an end not before its beginning")
        low, high = bisect_left(self._slots, first), bisect_left(self._slots, end)
        shape = self._design.shape
        runs = value_runs(shape, self._smoother, low, high)
        variance = 0.0
        for chunk, piece in runs_within_chunks(runs, shape.blocks).items():
            scale = shape.scale(self._thetas[chunk], self._design.epsilon)
            variance += float(coefficient(shape, piece)) * node_variance(scale)
        return RangeSum(
            total=self._walked(low, high) if self._nodes else self._sums[high] - self._sums[low],
            readings=high - low,
            missing=end - first - (high - low),
            variance=variance,
            is_exact=self._smoother.is_linear or not (low % shape.block or high % shape.block),
        )

    def _walked(self, low: int, high: int) -> int:
        total = 0
        shape = self._design.shape
        for chunk, pieces in runs_within_chunks([(low, high, Fraction(1))], shape.chunk).items():
            for first, end, _ in pieces:
                for level, index in walk(shape, first, end):
                    a_chunk = shape.chunk // shape.fanout**level
                    total += self._nodes[level][chunk * a_chunk + index]
        return total
