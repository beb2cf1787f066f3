"""Sums of a curated stream over ranges of slots, with the variance that its noise really has.

Which values came decides: each run of values that follow each other has its own weights on the
noise of their blocks, so a sum with holes is as exact as one without. What is not in the variance:
what θ cut off, what a smoother mispredicts in at most one block at each end of a run, 2 units of
rounding a run. Post-processing: spends nothing. Source: edge_ldp.continual.variance.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

from aggregator.counting.curated import shape_of
from edge_ldp.continual import RangeSum, Shape
from edge_ldp.continual.smoothers import SMOOTHERS, Smoother
from edge_ldp.continual.variance import (
    Run,
    coefficient,
    node_variance,
    runs_within_chunks,
    value_runs,
)
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.protocol.released import PublicDesign

MAX_CHUNKS = 1 << 20  # that the weights of a sum may reach over: a liar's position costs no more


class ReleasedError(EdgeLdpError):
    """A curated stream whose frames contradict each other: no sum of it means anything."""


class Value(NamedTuple):
    """One released value as stored."""

    slot: int
    series: int
    position: int
    value: int


@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """What holds for one chunk of a series: its θ and the stream's design."""

    theta: int
    design: PublicDesign


@dataclass(frozen=True, slots=True)
class ReleasedSum:
    """A range's sum; `is_whole`: no block is cut, so no prediction is part of it.

    `sum.is_exact` is False too when a chunk's θ never came and the largest known stands for it.
    """

    sum: RangeSum
    is_whole: bool
    thetas: tuple[int, ...]


def released_sum(
    values: Sequence[Value], chunks: Mapping[tuple[int, int], ChunkFacts], first: int, end: int
) -> ReleasedSum:
    """Return the sum over slots first … end-1 of values in rising slots; all others are ignored.

    chunks: by (series, number). Raises ReleasedError for a series whose design changes.
    """
    inside = [one for one in values if first <= one.slot < end]
    variance, is_exact, is_whole = 0.0, True, True
    thetas: dict[int, None] = {}
    for series, of_series in groupby(inside, key=lambda one: one.series):
        runs = list(_runs(list(of_series)))
        facts = {number: fact for (of, number), fact in chunks.items() if of == series}
        design = _design(series, facts)
        shape, smoother = shape_of(design), SMOOTHERS[design.smoother]()
        epsilon = Fraction(*design.epsilon)
        more, exact = _variance(shape, smoother, epsilon, facts, runs)
        variance += more
        is_whole &= not any(low % shape.block or high % shape.block for low, high in runs)
        is_exact &= exact and (smoother.is_linear or is_whole)
        for low, high in runs:
            for number in range(low // shape.chunk, (high - 1) // shape.chunk + 1):
                thetas[facts[number].theta] = None
    total = sum(one.value for one in inside)
    missing = end - first - len(inside)
    found = RangeSum(total, len(inside), missing, variance, is_exact)
    return ReleasedSum(found, is_whole, tuple(thetas))


def _runs(values: Sequence[Value]) -> list[tuple[int, int]]:
    """Return [low, high) of the positions that follow each other, in order."""
    runs: list[tuple[int, int]] = []
    for one in values:
        if runs and runs[-1][1] == one.position:
            runs[-1] = (runs[-1][0], one.position + 1)
        else:
            runs.append((one.position, one.position + 1))
    return runs


def _design(series: int, facts: Mapping[int, ChunkFacts]) -> PublicDesign:
    designs = {fact.design for fact in facts.values()}
    if len(designs) != 1:
        raise ReleasedError(f"series {series} comes with {len(designs)} designs: it is not counted")
    return designs.pop()


def _variance(
    shape: Shape,
    smoother: Smoother,
    epsilon: Fraction,
    facts: Mapping[int, ChunkFacts],
    runs: Sequence[tuple[int, int]],
) -> tuple[float, bool]:
    """Return the noise's variance in the sum of these runs, and whether every θ is known."""
    weights: list[Run] = []
    for low, high in runs:
        weights += value_runs(shape, smoother, low, high)
    if sum(end - start for start, end, _ in weights) > MAX_CHUNKS * shape.blocks:
        raise ReleasedError(f"a sum over more than {MAX_CHUNKS:,} chunks: ask for less at a time")
    largest = max(fact.theta for fact in facts.values())
    variance, is_known = 0.0, True
    for number, piece in runs_within_chunks(weights, shape.blocks).items():
        is_known &= number in facts
        theta = facts[number].theta if number in facts else largest
        scale = shape.scale(theta, epsilon)
        variance += float(coefficient(shape, piece)) * node_variance(scale)
    return variance, is_known
