"""Unbiased functionals of surveys: means, tails and shares below a point, under every density.

A survey's channel gives code j to a value of cell i with probability L[j, i]. Weights w with
Lᵀw = h make the average of w[code] unbiased for E h(value), whatever the density is. Of all such
weights those that have least variance under one reference density are taken, here the even one: it
decides how much noise there is, never where the estimate is centred, and at ε = 1 it costs 1 to 2 %
beside the true density.

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

from edge_ldp import checks
from edge_ldp.device.channel import Wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import BUCKETS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from edge_ldp.arrays import Floats, Ints
    from edge_ldp.device.channel import Channel
    from edge_ldp.mechanisms import Mechanism

MOST = 1024  # cells
EXACT = 1e-7  # of the largest |h|: how far Lᵀw may be from h


class FunctionalEstimate(NamedTuple):
    """An unbiased estimate, its standard error, and the reports it was made of."""

    value: float
    se: float
    n: int


@dataclass(frozen=True, slots=True, eq=False)
class SurveyDesign:
    """A survey: what a report says of a value's cell.

    `edges`: of the cells, integers, rising: cell k holds the values edges[k] ≤ v < edges[k + 1],
    and the first and last also what lies below and above. `law`: P(code | cell), codes × cells;
    `solve` gives weights a code for functions, cells × functions. `widened`: the cells are wider
    than the survey's buckets, as those could not be told apart. Made by `design_of`.
    """

    survey: Mechanism
    edges: Ints
    law: Floats
    solve: Callable[[Floats], Floats]
    widened: bool = False

    @property
    def centres(self) -> Floats:
        """The mean of each cell's integers, in the unit."""
        centres: Floats = (self.edges[:-1] + self.edges[1:] - 1) / 2
        return centres

    @checks.taking(h=checks.floats)
    def weights(self, h: ArrayLike) -> Floats:
        """Return a weight a code, whose average is unbiased for E h.

        `h`: mean of the function over each cell, one number a cell, or cells × functions; weights
        are codes, or codes × functions. Cost of a function: O(codes) for one square wave whose
        buckets are the cells, else O(codes · cells), about a millisecond. Raises ParameterError for
        another length.
        """
        wanted = np.asarray(h, np.float64)
        if not wanted.ndim or len(wanted) != len(self.edges) - 1:
            raise ParameterError("h", f"{len(self.edges) - 1} values, one a cell")
        return self.solve(wanted.reshape(len(wanted), -1)).reshape(-1, *wanted.shape[1:])

    def error(self, h: ArrayLike) -> float:
        """Return how far the weights' expectation is from h at most, over the largest |h|."""
        wanted = np.asarray(h, np.float64)
        off = np.abs(self.law.T @ self.weights(wanted) - wanted).max()
        return float(off / max(np.abs(wanted).max(), np.finfo(float).tiny))


@checks.taking(survey=checks.MECHANISM)
def design_of(survey: Mechanism) -> SurveyDesign:
    """Return the design of a survey; the last 8 are kept.

    Where cells cannot be told apart in double precision, wider ones are taken, and `widened` says
    so. Cost, once: O(cells·codes) for a square wave of at most 1,024 buckets, else O(cells²·codes),
    about 0.2 s at 1,024 cells. Raises ParameterError for a mechanism that is no survey.
    """
    if survey.encoder != BUCKETS:
        raise ParameterError("survey", "a mechanism of buckets")
    return _designed(survey)


def largest_variance(w: Floats, law: Floats) -> float:
    """Return a bound of the variance of w[code] of one report, whatever the density is."""
    first, second = law.T @ w, law.T @ (w * w)
    return float((second - first * first).max() + np.ptp(first) ** 2 / 4)


@checks.taking(edges=checks.row(checks.ints), theta=checks.COUNTABLE)
def excess(edges: Ints, theta: int) -> Floats:
    """Return the mean of (v − θ)⁺ over each cell's integers."""
    width = np.diff(edges).astype(np.float64)
    above = np.clip(edges[1:] - 1 - theta, 0, width)
    first = np.maximum(edges[:-1], theta + 1)
    cut: Floats = above * ((first + edges[1:] - 1) / 2 - theta) / width
    return cut


@checks.taking(edges=checks.row(checks.ints), point=checks.COUNTABLE)
def below(edges: Ints, point: int) -> Floats:
    """Return the share of each cell's integers that are at most `point`: h of the CDF there."""
    share: Floats = np.clip((point + 1 - edges[:-1]) / np.diff(edges), 0, 1)
    return share


@lru_cache(maxsize=8)
def _designed(survey: Mechanism) -> SurveyDesign:
    cells = min(MOST, survey.size)
    while cells:
        made, exact = _solved(survey, cells)
        if exact:
            return made
        cells //= 2
    raise ParameterError("survey", "one that tells values apart")


def _solved(survey: Mechanism, cells: int) -> tuple[SurveyDesign, bool]:
    """Return the design over cells, and whether its weights are exact."""
    # of a coarser grid every so many of the buckets' edges
    edges = _buckets(survey)[np.arange(cells + 1) * survey.size // cells]
    (_, _, wave), *others = survey.branches
    solve: Callable[[Floats], Floats]
    if isinstance(wave, Wave) and not others and cells == survey.size:
        law = _banded(wave)
        solve = partial(chained, wave, law)
    else:
        law = _law(survey, edges)
        solve = _inverting(law)
    made = SurveyDesign(survey, edges, law, solve, widened=cells < survey.size)
    quarters = range(0, cells, max(1, cells // 4))
    probes = [np.ones(cells), *(excess(edges, int(edges[at])) for at in quarters)]
    return made, all(made.error(h) < EXACT for h in probes)


def _inverting(law: Floats) -> Callable[[Floats], Floats]:
    """Return what gives the weights of any survey, by the inverse of its Fisher information."""
    back = law / np.maximum(law.sum(axis=1), np.finfo(float).tiny)[:, None]
    fisher = law.T @ back
    try:
        inverse = np.linalg.inv(fisher)
    except np.linalg.LinAlgError:
        inverse = np.full_like(fisher, np.nan)
    return lambda h: back @ (inverse @ h)


def chained(wave: Wave, law: Floats, h: Floats) -> Floats:
    """Return for each function of the input, inputs × functions, a weight a code.

    `law`: P(code | input), codes × inputs. Of all weights whose mean is h under every input they
    vary least where inputs are even.
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
    return w.reshape(links * width, -1)[: wave.code_count]


def sum_rows(rows: Floats) -> None:
    """Add to each row all that stand before it: eight times as fast as `cumsum` along that axis."""
    for above, here in pairwise(rows):
        np.add(above, here, out=here)


def distinct(parts: Sequence[Ints]) -> Ints:
    """Return every number that stands in one of the parts once, rising.

    `np.unique` loads numpy.ma with its first call, which takes as long as all of `_solved`.
    """
    return np.array(sorted(set(np.concatenate(parts).tolist())), np.int64)


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
    own[0], own[-1] = edges[0], edges[-1]  # what lies outside is sent as the nearest
    over = np.minimum(own[1:, None], edges[1:]) - np.maximum(own[:-1, None], edges[:-1])
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
