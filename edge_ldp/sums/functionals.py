"""Unbiased functionals of surveys: means, tails and shares below a point, under every density.

A survey's channel gives code j to a value of cell i with probability L[j, i]. Weights w with
Lᵀw = h make the average of w[code] unbiased for E h(value), whatever the density is. Of all such
weights those that have least variance under one reference density are taken, here the even one: it
decides how much noise there is, never where the estimate is centred, and at ε = 1 it costs 1 to 2 %
beside the true density. Several surveys, of other ranges or mechanisms, are solved for together.

Of one square wave the weights are had in closed form, O(codes). Input i makes the codes i … i + m −
1 likelier than the others by `gap`, m = 2c + 1. The next input makes one code less and one more so:
weights are unbiased for h if and only if w[i + m] − w[i] = (h[i + 1] − h[i]) / gap for all i, and
the mean under the first input is h[0]. Along the chain of codes i, i + m, i + 2m … only where it
begins is free. Least variance under the even density makes the mean of each chain a multiple of its
odds, P(chain | first input) / P(chain | even); the last condition says which (Lagrange). No matrix
is inverted, so rounding stays that of a few sums under every ε.

Sources: docs/sums.md; Gauss-Markov theorem; [SW] §5 (the channel).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edge_ldp.checks import (
    COUNTABLE,
    MECHANISM,
    each,
    finite,
    floats,
    ints,
    row,
    taking,
)
from edge_ldp.device.channel import Wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import BUCKETS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from edge_ldp.device.channel import Channel
    from edge_ldp.mechanisms import Mechanism

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

MOST = 1024  # cells of one survey
CELLS = 256  # of each range, where surveys of several ranges are solved for together
EXACT = 1e-7  # of the largest |h|: how far Lᵀw may be from h
SHARE_STEPS = 64  # surveys' shares of the reports are rounded to so many parts: they are cached by


class FunctionalEstimate(NamedTuple):
    """An unbiased estimate, its standard error, and the reports it was made of."""

    value: float
    se: float
    n: int


@dataclass(frozen=True, slots=True, eq=False)
class SurveyDesign:
    """Some surveys together: what a report of each says of a value's cell.

    `edges`: of the cells, integers, rising: cell k holds the values edges[k] ≤ v < edges[k + 1],
    and the first and last also what lies below and above. `laws`: for each mechanism P(code |
    cell), codes × cells; `solve` gives its weights a code for functions, cells × functions.
    `widened`: the cells are wider than the finest survey's buckets, as those could not be told
    apart. Made by `design_of`.
    """

    mechanisms: tuple[Mechanism, ...]
    shares: tuple[float, ...]
    edges: Ints
    laws: tuple[Floats, ...]
    solve: Callable[[Floats], tuple[Floats, ...]]
    widened: bool = False

    @property
    def centres(self) -> Floats:
        """The mean of each cell's integers, in the unit."""
        centres: Floats = (self.edges[:-1] + self.edges[1:] - 1) / 2
        return centres

    @taking(h=floats)
    def weights(self, h: ArrayLike) -> tuple[Floats, ...]:
        """Return for each mechanism a weight a code: Σ of their averages is unbiased for E h.

        `h`: mean of the function over each cell, one number a cell, or cells × functions; weights
        are codes, or codes × functions. Cost of a function: O(codes) for one square wave whose
        buckets are the cells, else O(codes · cells), about a millisecond. Raises ParameterError for
        another length.
        """
        wanted = np.asarray(h, np.float64)
        if not wanted.ndim or len(wanted) != len(self.edges) - 1:
            raise ParameterError("h", f"{len(self.edges) - 1} values, one a cell")
        found = self.solve(wanted.reshape(len(wanted), -1))
        return tuple(w.reshape(-1, *wanted.shape[1:]) for w in found)

    def error(self, h: ArrayLike) -> float:
        """Return how far the weights' expectation is from h at most, over the largest |h|."""
        wanted = np.asarray(h, np.float64)
        pairs = zip(self.laws, self.weights(wanted), strict=True)
        off = np.abs(sum(law.T @ w for law, w in pairs) - wanted).max()
        return float(off / max(np.abs(wanted).max(), np.finfo(float).tiny))


@taking(mechanisms=each(MECHANISM), reports=each(finite(least=0)))
def design_of(mechanisms: Sequence[Mechanism], reports: Sequence[int] = ()) -> SurveyDesign:
    """Return the joint design of surveys; the last 8 are kept.

    `reports`: how many of each there are (default: as many of each), which decides how much each is
    relied on. Where cells cannot be told apart in double precision, wider ones are taken, and
    `widened` says so. Cost, once: O(cells·codes) for one square wave of at most 1,024 buckets, else
    O(cells²·codes), about 0.2 s at 1,024 cells. Raises ParameterError for no survey, or a mechanism
    that is none.
    """
    if not mechanisms:
        raise ParameterError("mechanisms", "at least one survey mechanism")
    if any(mechanism.encoder != BUCKETS for mechanism in mechanisms):
        raise ParameterError("mechanisms", "surveys: mechanisms of buckets")
    counts = np.asarray(reports or [1] * len(mechanisms), np.float64)
    if len(counts) != len(mechanisms) or not (counts > 0).all():
        raise ParameterError("reports", "a number above 0 for each mechanism")
    parts = np.maximum(1, np.round(counts / counts.sum() * SHARE_STEPS)).astype(int)
    return _designed(tuple(mechanisms), tuple(parts.tolist()))


@taking(weights=each(floats), laws=each(floats), counts=each(floats))
def estimate(
    weights: Sequence[Floats], laws: Sequence[Floats], counts: Sequence[ArrayLike]
) -> FunctionalEstimate:
    """Return the unbiased estimate that weights give for counts by code, one array a mechanism.

    The variance is the empirical one of the weights over the reports, with one more observation of
    the largest variance possible, so that a handful of equal reports does not look certain. Raises
    ParameterError for what are not counts, and for a mechanism without reports.
    """
    sizes = [(len(law) if law.ndim == 2 else 0,) for law in laws]  # noqa: PLR2004
    if [w.shape for w in weights] != sizes or len(counts) != len(sizes):
        raise ParameterError("weights, laws, counts", "of as many mechanisms, a weight a code")
    triples = zip(weights, laws, counts, strict=True)
    parts = [averaged(w, largest_variance(w, law), counted) for w, law, counted in triples]
    variance = sum(part.se**2 for part in parts)
    return FunctionalEstimate(
        sum(part.value for part in parts), variance**0.5, sum(p.n for p in parts)
    )


def averaged(w: Floats, most: float, counted: ArrayLike) -> FunctionalEstimate:
    """Return the average of one survey's weights; `most`: their `largest_variance`."""
    c = np.asarray(counted, np.float64)
    if c.shape != w.shape or not np.isfinite(c).all() or c.min() < 0 or not c.any():
        raise ParameterError("counts", f"{len(w)} finite numbers of at least 0, some above it")
    n = float(c.sum())
    mean = float(c @ w) / n
    return FunctionalEstimate(mean, (float(c @ (w - mean) ** 2) + most) ** 0.5 / n, round(n))


def largest_variance(w: Floats, law: Floats) -> float:
    """Return a bound of the variance of w[code] of one report, whatever the density is."""
    first, second = law.T @ w, law.T @ (w * w)
    return float((second - first * first).max() + np.ptp(first) ** 2 / 4)


@taking(edges=row(ints), theta=COUNTABLE)
def excess(edges: Ints, theta: int) -> Floats:
    """Return the mean of (v − θ)⁺ over each cell's integers."""
    width = np.diff(edges).astype(np.float64)
    above = np.clip(edges[1:] - 1 - theta, 0, width)
    first = np.maximum(edges[:-1], theta + 1)
    cut: Floats = above * ((first + edges[1:] - 1) / 2 - theta) / width
    return cut


@taking(edges=row(ints), point=COUNTABLE)
def below(edges: Ints, point: int) -> Floats:
    """Return the share of each cell's integers that are at most `point`: h of the CDF there."""
    share: Floats = np.clip((point + 1 - edges[:-1]) / np.diff(edges), 0, 1)
    return share


@lru_cache(maxsize=8)
def _designed(mechanisms: tuple[Mechanism, ...], parts: tuple[int, ...]) -> SurveyDesign:
    cells = min(CELLS if len(mechanisms) > 1 else MOST, max(m.size for m in mechanisms))
    while cells:
        made, exact = _solved(mechanisms, parts, cells)
        if exact:
            return made
        cells //= 2
    raise ParameterError("mechanisms", "surveys that tell values apart")


def _solved(
    mechanisms: tuple[Mechanism, ...], parts: tuple[int, ...], cells: int
) -> tuple[SurveyDesign, bool]:
    """Return the design over cells, and whether its weights are exact."""
    edges = _cells(mechanisms, cells)
    shares = np.array(parts, np.float64) / sum(parts)
    size = len(edges) - 1
    (_, _, channel), *others = (branch for one in mechanisms for branch in one.branches)
    wave = channel if not others and size == mechanisms[0].size else None
    solve: Callable[[Floats], tuple[Floats, ...]]
    if isinstance(wave, Wave):
        laws: tuple[Floats, ...] = (_banded(wave),)
        solve = partial(chained, wave, laws[0])
    else:
        laws = tuple(_law(m, edges) for m in mechanisms)
        solve = _inverting(laws, shares)
    made = SurveyDesign(
        mechanisms,
        tuple(shares.tolist()),
        edges,
        laws,
        solve,
        widened=size < max(mechanism.size for mechanism in mechanisms),
    )
    quarters = range(0, size, max(1, size // 4))
    probes = [np.ones(size), *(excess(edges, int(edges[at])) for at in quarters)]
    return made, all(made.error(h) < EXACT for h in probes)


def _inverting(laws: Sequence[Floats], shares: Floats) -> Callable[[Floats], tuple[Floats, ...]]:
    """Return what gives the weights of any surveys, by the inverse of their Fisher information."""
    even = np.full(laws[0].shape[1], 1 / laws[0].shape[1])
    scaled = [
        share * law / np.maximum(law @ even, np.finfo(float).tiny)[:, None]
        for share, law in zip(shares, laws, strict=True)
    ]
    fisher = sum(law.T @ back for law, back in zip(laws, scaled, strict=True))
    try:
        inverse = np.linalg.inv(fisher)
    except np.linalg.LinAlgError:
        inverse = np.full_like(fisher, np.nan)

    def solve(h: Floats) -> tuple[Floats, ...]:
        solved = inverse @ h
        return tuple(back @ solved for back in scaled)

    return solve


def chained(wave: Wave, law: Floats, h: Floats) -> tuple[Floats]:
    """Return for each function of the input, inputs × functions, a weight a code.

    `law`: P(code | input), codes × inputs. Of all weights whose mean is h under every input they
    vary least where inputs are even. Shape: codes × functions, of the one wave.
    """
    width = 2 * wave.c + 1
    links = -(-wave.code_count // width)
    beyond = (0, links * width - wave.code_count)
    even = np.pad(law.mean(axis=1), beyond).reshape(links, width)
    first = np.pad(law[:, 0], beyond).reshape(links, width)
    w = np.zeros((links, width, h.shape[1]))
    rises = w.reshape(links * width, -1)[width : width + wave.d - 1]
    np.subtract(h[1:], h[:-1], out=rises)
    rises *= wave.total / (wave.r_num - wave.r_den)
    sum_rows(w)
    w -= np.einsum("lc,lcf->cf", even, w) / even.sum(axis=0)[:, None]
    odds = first.sum(axis=0) / even.sum(axis=0)
    short = h[0] - np.einsum("lc,lcf->f", first, w)
    w += np.outer(odds, short / (first.sum(axis=0) @ odds))
    return (w.reshape(links * width, -1)[: wave.code_count],)


def sum_rows(rows: Floats) -> None:
    """Add to each row all that stand before it: eight times as fast as `cumsum` along that axis."""
    for above, here in pairwise(rows):
        np.add(above, here, out=here)


def distinct(parts: Sequence[Ints]) -> Ints:
    """Return every number that stands in one of the parts once, rising.

    `np.unique` loads numpy.ma with its first call, which takes as long as all of `_solved`.
    """
    return np.array(sorted(set(np.concatenate(parts).tolist())), np.int64)


def _cells(mechanisms: tuple[Mechanism, ...], cells: int) -> Ints:
    """Return the edges: a survey's own buckets, or those of all, at most `cells` of each."""
    edges = []
    for mechanism in mechanisms:
        span, size = mechanism.high - mechanism.low + 1, mechanism.size
        every = min(cells, size)
        # the first value of bucket k of d is ⌈k·span/d⌉; of a coarser grid every so many of these
        own = -(-np.arange(size + 1, dtype=np.int64) * span // size)
        edges.append(mechanism.low + own[np.arange(every + 1) * size // every])
    return distinct(edges)


def _law(mechanism: Mechanism, edges: Ints) -> Floats:
    """Return P(code | cell), codes × cells, a cell's integers being equally likely."""
    inputs = _inputs(mechanism, edges)
    sent = [float(coin) * _sent(channel, inputs) for coin, _, channel in mechanism.branches]
    return np.vstack(sent)


def _banded(wave: Wave) -> Floats:
    """Return the law of a wave's codes for each of its inputs, to the bit as `_sent` has it.

    It has two values, the near one 2c + 1 codes wide: a window moved along, in place of sums.
    """
    far, near = (wave.r_den + (wave.r_num - wave.r_den) * np.arange(2.0)) / wave.total
    moved = np.full(wave.code_count + wave.d - 1, far)
    moved[wave.d - 1 : wave.d + 2 * wave.c] = near
    windows = np.lib.stride_tricks.sliding_window_view(moved, wave.d)
    return np.ascontiguousarray(windows[:, ::-1])


def _inputs(mechanism: Mechanism, edges: Ints) -> Floats:
    """Return the share of each cell's integers that falls into each bucket, buckets × cells."""
    own = _buckets(mechanism)
    starts, ends = own[:-1].copy(), own[1:].copy()
    starts[0], ends[-1] = min(starts[0], edges[0]), max(ends[-1], edges[-1])
    over = np.minimum(ends[:, None], edges[1:]) - np.maximum(starts[:, None], edges[:-1])
    share: Floats = np.maximum(over, 0) / np.diff(edges)
    return share


def _buckets(mechanism: Mechanism) -> Ints:
    """Return the edges of a survey's buckets: the first value of each, and one beyond the last."""
    span, size = mechanism.high - mechanism.low + 1, mechanism.size
    edges: Ints = mechanism.low - (-np.arange(size + 1, dtype=np.int64) * span // size)
    return edges


def _sent(channel: Channel, inputs: Floats) -> Floats:
    """Return the law of the channel's codes for each column of inputs' probabilities."""
    if isinstance(channel, Wave):
        sums = np.vstack([np.zeros(inputs.shape[1]), np.cumsum(inputs, axis=0)])
        code = np.arange(channel.code_count)
        near = sums[np.minimum(code + 1, channel.d)] - sums[np.maximum(code - 2 * channel.c, 0)]
        law = channel.r_den + (channel.r_num - channel.r_den) * near
    else:
        rows = [[channel.weight(i, j) for i in range(channel.d)] for j in range(channel.code_count)]
        law = np.array(rows, np.float64) @ inputs
    sent: Floats = law / channel.total
    return sent
