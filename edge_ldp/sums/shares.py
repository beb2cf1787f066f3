"""Shares of the values below a point or in a range, and quantiles, with honest bands (NumPy).

The share below x is the mean of a step from 1 to 0 at x. The unbiased estimate of so sharp a step
is little but noise (`functionals`), that of a ramp is not: its standard deviation falls with the
root of its width. So a step is held between two ramps: one that has come down to 0 at x, and never
counts a value too many, and one that only begins to fall there, and never counts one too few. The
mean of each is estimated without bias, and ends at z standard errors outside; a range is a step
less another. What lies between the two ramps is what the band does not know: nothing is assumed of
the density, not even that it is smooth.

Narrow ramps are noisy, wide ones vague, and which is better depends on the density. So there are
several widths, each twice the next, chosen by the mechanism and the number of reports alone;
each has its part of the error allowed (Bonferroni), and a band is where all of them agree.

Sources: measured in docs/results/bands.md; Gauss-Markov theorem (the estimates); Neyman (intervals
by tests).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edge_ldp.checks import a, each, floats, inner_chance, taking
from edge_ldp.device.channel import Wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.sums.functionals import design_of, distinct, sum_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from edge_ldp.arrays import Floats, Ints
    from edge_ldp.device.channel import Channel
    from edge_ldp.mechanisms import Mechanism
    from edge_ldp.sums.counted import CodeCounts, Weighed


LEVEL = 0.95
WIDEST = 4  # the widest ramp is this part of the range, each next one half as wide
VAGUE = 0.25  # expected noise of a share: ramps narrower than those that reach it say nothing


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """What one kind of surveys can tell, whatever was reported.

    `edges`: of the cells, integers; `weights` of each code for the share below each edge; `even`:
    the law of the codes under the even density; `blur`: the largest sum of errors of neighbouring
    steps under any value, 0 (but for rounding) unless cells are wider than buckets.
    """

    mechanism: Mechanism
    edges: Ints
    weights: Floats
    even: Floats
    blur: float

    def cells(self, width: float) -> int:
        """Return how many cells a ramp of a width, in the unit, has."""
        cells = len(self.edges) - 1
        wanted = width * cells / (self.mechanism.high - self.mechanism.low + 1)
        return max(1, min(round(wanted), cells // WIDEST))

    def variance(self, wide: int) -> float:
        """Return that of one report's share under a ramp amid the range, the density being even."""
        first = max(0, (len(self.edges) - wide) // 2)
        ramp = self.weights[:, first : first + wide].mean(axis=1)
        return float(self.even @ (ramp - self.even @ ramp) ** 2)


class Band(NamedTuple):
    """Intervals, an entry each: the truth lies in low ≤ · ≤ high."""

    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Unbiased shares below every edge of one kind of surveys, with their covariance.

    `sums` of the shares and `blocks` of their covariance over all entries before, padded by `pad`
    entries where shares are exactly 0 or 1. `ends`: the first and last step that tell of the whole
    range, as the first and last cell of a kind also hold what lies beyond its own.
    """

    known: _Known
    reports: float
    ends: tuple[int, int]
    pad: int
    sums: Floats
    blocks: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Surveys:
    """Surveys that are ready to be asked: kinds, their whole range, and the ramps' widths, unit.

    Made by `surveys_of`.
    """

    kinds: tuple[Steps, ...]
    low: int
    high: int
    widths: tuple[float, ...]

    @property
    def points(self) -> Ints:
        """The edges of all kinds' cells, rising."""
        return distinct([kind.known.edges for kind in self.kinds])


def prepare(mechanism: Mechanism) -> None:
    """Work out what `surveys_of` needs of a mechanism, whatever is counted; four are kept.

    It is half of its work, and may be done while counts are still being read. Raises
    ParameterError for what is no survey.
    """
    _known(mechanism)


@taking(parts=each(a("edge_ldp.sums.counted.CodeCounts")))
def surveys_of(parts: Sequence[CodeCounts]) -> Surveys:
    """Return surveys, counted by code and one entry a kind, ready for bands.

    Cost: O(codes · cells²), about 0.05 s at 1,024 buckets, and once a mechanism as much again.
    Raises ParameterError without reports, for counts that are none, and for what are no surveys.
    """
    counted = [(part.mechanism, part.weighed()) for part in parts if part.checked().sum() >= 1]
    if not counted:
        raise ParameterError("parts", "one survey report or more")
    low = min(mechanism.low for mechanism, _ in counted)
    high = max(mechanism.high for mechanism, _ in counted)
    kinds = tuple(_steps(mechanism, counts, low, high) for mechanism, counts in counted)
    return Surveys(kinds, low, high, _widths(kinds, high - low + 1))


_SURVEYS = a("edge_ldp.sums.shares.Surveys")


@taking(surveys=_SURVEYS, at=floats, level=inner_chance)
def cdf_band(surveys: Surveys, at: ArrayLike, *, level: float = LEVEL) -> Band:
    """Return the band of the share of values v < each of `at`, in 0..1; each holds with `level`."""
    points = np.asarray(at, np.float64)
    return range_band(surveys, np.full(points.shape, -np.inf), points, level=level)


@taking(surveys=_SURVEYS, first=floats, beyond=floats, level=inner_chance)
def range_band(
    surveys: Surveys, first: ArrayLike, beyond: ArrayLike, *, level: float = LEVEL
) -> Band:
    """Return the band of the share of values first ≤ v < beyond, in 0..1; each holds with `level`.

    Both of one length, in the unit; values outside the surveys' range count at its ends. Cost:
    microseconds an entry. Raises ParameterError.
    """
    starts, ends = (np.atleast_1d(np.asarray(at, np.float64)) for at in (first, beyond))
    if starts.size == 1 or ends.size == 1:
        starts, ends = np.broadcast_arrays(starts, ends)
    if starts.ndim != 1 or starts.shape != ends.shape or not (starts <= ends).all():
        raise ParameterError("first, beyond", "lists of numbers, first <= beyond")
    z = -NormalDist().inv_cdf((1 - level) / 2 / len(surveys.widths))
    low, high = np.zeros(starts.shape), np.ones(starts.shape)
    for width in surveys.widths:
        low = np.maximum(low, _end(surveys, starts, ends, width, -z))
        high = np.minimum(high, _end(surveys, starts, ends, width, z))
    # crossed ends are rare noise: both stay in the band then, and in 0..1
    low, high = np.clip([np.minimum(low, high), np.maximum(low, high)], 0.0, 1.0)
    return Band(low, high)


@taking(surveys=_SURVEYS, shares=floats, level=inner_chance)
def quantile_band(surveys: Surveys, shares: Sequence[float], *, level: float = LEVEL) -> Band:
    """Return the band of the quantile of each share, in the unit; each holds with `level`.

    The quantile of p is the least value v with a share of at least p at or below it. Its band are
    the points that the test of "a share p lies below" does not refuse, and all between them. Ends
    are half a unit outside of the integers that they admit, as for `Density.quantile`. Raises
    ParameterError for shares outside 0..1.
    """
    wanted = np.asarray(shares, np.float64)
    if not ((wanted >= 0) & (wanted <= 1)).all():
        raise ParameterError("shares", "0..1")
    points = surveys.points
    below = cdf_band(surveys, points, level=level)
    # the first point that may have p below it, and the last that need not have more
    first = np.searchsorted(np.maximum.accumulate(below.high), wanted, side="left")
    last = np.searchsorted(np.minimum.accumulate(below.low[::-1])[::-1], wanted, side="right")
    ends = surveys.low, surveys.high
    low = np.clip(points[np.maximum(first - 1, 0)] - 0.5, *ends)
    high = np.clip(points[np.minimum(last, len(points) - 1)] - 0.5, *ends)
    return Band(np.minimum(low, high), np.maximum(low, high))


def _end(surveys: Surveys, starts: Floats, ends: Floats, width: float, z: float) -> Floats:
    """Return shares under one ramp less another, z standard errors off, and blur.

    z > 0: of a function that is nowhere less than 1 in the range and 0 beside it; z < 0: nowhere
    more. Kinds that reach both points count by their reports and their noise under the even
    density; where none does, all do.
    """
    value, variance, blur, weight = np.zeros((4, len(starts)))
    for kind in surveys.kinds:
        known = kind.known
        wide = known.cells(width)
        up = _first(kind, surveys, starts, wide, after=z < 0)
        down = _first(kind, surveys, ends, wide, after=z > 0)
        reaches = _reaches(known.mechanism, surveys, starts) & _reaches(
            known.mechanism, surveys, ends
        )
        share = np.where(reaches, 1.0, np.finfo(float).eps) * kind.reports / known.variance(wide)
        square = (
            _covariance(kind, up, up, wide)
            + _covariance(kind, down, down, wide)
            - 2 * _covariance(kind, up, down, wide)
        )
        value += share * (_mean(kind, down, wide) - _mean(kind, up, wide))
        variance += share**2 * np.maximum(square, 0)
        blur += share * 2 * known.blur / wide
        weight += share
    found: Floats = (value + z * np.sqrt(variance) + np.sign(z) * blur) / weight
    return found


def _first(kind: Steps, surveys: Surveys, x: Floats, wide: int, *, after: bool) -> Ints:
    """Return the first of the `wide` steps whose mean is the ramp after or before each x."""
    edges = kind.known.edges
    if after:
        first = np.clip(np.searchsorted(edges, x, side="left"), kind.ends[0], len(edges) - 1)
        return np.where(x <= surveys.low, -wide, first)
    last = np.minimum(np.searchsorted(edges, x, side="right") - 1, kind.ends[1])
    return np.where(x > surveys.high, len(edges) - 1, last - wide + 1)


def _reaches(mechanism: Mechanism, surveys: Surveys, x: Floats) -> NDArray[np.bool_]:
    trivial = (x <= surveys.low) | (x > surveys.high)
    return trivial | ((x >= mechanism.low) & (x <= mechanism.high))


def _mean(kind: Steps, first: Ints, wide: int) -> Floats:
    at = first + kind.pad
    mean: Floats = (kind.sums[at + wide] - kind.sums[at]) / wide
    return mean


def _covariance(kind: Steps, one: Ints, two: Ints, wide: int) -> Floats:
    a, b, blocks = one + kind.pad, two + kind.pad, kind.blocks
    inner = blocks[a + wide, b + wide] - blocks[a, b + wide] - blocks[a + wide, b] + blocks[a, b]
    mean: Floats = inner / wide**2
    return mean


def _steps(mechanism: Mechanism, counted: Weighed, low: int, high: int) -> Steps:
    known = _known(mechanism)
    n, last = counted.total, len(known.edges) - 1
    # as in `counted.estimate`, one more report of the largest variance: no code is likelier
    # than the largest ratio of weights allows
    one_more = float(mechanism.max_ratio) * counted.heaviest**2 / n
    half = known.weights * np.sqrt(counted.squares / n + one_more * known.even)[:, None]
    spread = half.T @ half  # BLAS sees that it is symmetric
    shares, even = counted.sums @ known.weights / n, known.even @ known.weights
    # about the mean: what squares weigh less evenly than sums do, crosswise
    uneven = counted.squares @ known.weights / n - shares * (counted.squares.sum() / n / 2)
    spread -= np.outer(uneven, shares)
    spread -= np.outer(shares, uneven)
    spread -= np.outer(one_more * even, even)
    spread /= n
    pad = max(1, last // WIDEST)  # the widest ramp's
    blocks = np.zeros((last + 2 * pad + 2,) * 2)
    blocks[pad + 1 : -pad, pad + 1 : -pad] = spread
    sum_rows(blocks)
    np.cumsum(blocks, axis=1, out=blocks)
    padded = np.pad(shares, pad)
    padded[pad + last :] = 1
    return Steps(
        known=known,
        reports=n**2 / float(counted.squares.sum()),
        ends=(int(mechanism.low > low), last - int(mechanism.high < high)),
        pad=pad,
        sums=np.concatenate([[0.0], np.cumsum(padded)]),
        blocks=blocks,
    )


@lru_cache(maxsize=4)
def _known(mechanism: Mechanism) -> _Known:
    design = design_of(mechanism)
    cells = len(design.edges) - 1
    if cells < 2:  # noqa: PLR2004
        raise ParameterError(
            "parts", "surveys that tell values apart: a larger epsilon, or buckets"
        )
    weights = design.weights(1 - np.tri(cells, cells + 1))  # 1 in the cells below an edge
    weights[:, 0], weights[:, -1] = 0, 1
    return _Known(
        mechanism=mechanism,
        edges=design.edges,
        weights=weights,
        even=design.law.mean(axis=1),
        blur=_blur(mechanism, design.edges, weights),
    )


def _blur(mechanism: Mechanism, edges: Ints, weights: Floats) -> float:
    """Return how far the sum of neighbouring steps is off at most, under any value."""
    off = np.zeros((mechanism.size, weights.shape[1]))
    for coin, first, channel in mechanism.branches:
        sent = _expected(channel, weights[first : first + channel.code_count])
        sent *= float(coin)
        off += sent
    span = mechanism.high - mechanism.low + 1
    buckets = mechanism.low - (-np.arange(mechanism.size, dtype=np.int64) * span // mechanism.size)
    off -= buckets[:, None] < edges
    np.cumsum(off, axis=1, out=off)
    return float((off.max(axis=1, initial=0) - off.min(axis=1, initial=0)).max())


def _expected(channel: Channel, weights: Floats) -> Floats:
    """Return the mean of the weights under the law of the codes of each input, inputs × columns."""
    if isinstance(channel, Wave):
        sums = np.empty((len(weights) + 1, weights.shape[1]))
        sums[0], sums[1:] = 0, weights
        sum_rows(sums)
        law: Floats = sums[2 * channel.c + 1 :] - sums[: channel.d]
        law *= channel.r_num - channel.r_den
        law += channel.r_den * sums[-1]
    else:
        rows = [[channel.weight(i, j) for j in range(channel.code_count)] for i in range(channel.d)]
        law = np.array(rows, np.float64) @ weights
    law /= channel.total
    return law


def _widths(kinds: Sequence[Steps], span: int) -> tuple[float, ...]:
    """Return the widths worth asking, widest first: data do not decide."""
    widths: list[float] = []
    wide = span / WIDEST
    finest = min(np.diff(kind.known.edges).min() for kind in kinds)
    while not widths or 2 * wide > finest:
        noise = sum(k.reports / k.known.variance(k.known.cells(wide)) for k in kinds) ** -0.5
        if widths and NormalDist().inv_cdf((1 + LEVEL) / 2) * noise > VAGUE:
            break
        widths.append(wide)
        wide /= 2
    return tuple(widths)
