"""Choosing θ, the truncation threshold of stream reports, from an estimated density.

A high θ adds noise to every report, a low one cuts the tail off: θ minimises the expected squared
error of a random range sum over r values. Sources: [ToPS] §4.1 (eq 8), docs/design.md, The
threshold, docs/methods.md, Decided readings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.checks import (
    COUNTABLE,
    DENSITY,
    MAX_EXACT,
    TRUTH,
    chance,
    finite,
    integer_in,
    ints,
    kept,
    taking,
)
from edge_ldp.device.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from edge_ldp.estimate import Density

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

PRUNE_BELOW = 1e-4
PRUNE_RUN = 5
_GRID = 257


@dataclass(frozen=True, slots=True, eq=False)
class Threshold:
    """The cheapest threshold, and what every candidate looked at would cost.

    `theta`: integer, stream's unit; `bias`: b̂(θ) = E(value − θ)⁺ under the density, unit;
    `candidates`: integers, rising; `costs`: expected squared error of a range sum, unit², for each.
    """

    theta: int
    bias: float
    candidates: Ints
    costs: Floats


@taking(
    unit_variance=finite(0, 1e100, inner=True),
    horizon=kept(finite(1, 1e100)),
    low=COUNTABLE,
    inclusion=chance,
    published=TRUTH,
)
@dataclass(frozen=True, slots=True)
class Cost:
    """The error of a range sum as a function of θ (docs/design.md, The threshold), unit².

    `unit_variance`: V, the mechanism's variance on [−1, 1]; `horizon`: r, the longest query in
    values; `inclusion`: π, the probability that a slot gives a stream report. `published`: the
    constants of the authors' code (V·θ² and r²/24), to reproduce their thresholds only.
    """

    unit_variance: float
    horizon: int
    low: int = 0
    inclusion: float = 1.0
    published: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.inclusion <= 1:
            raise ParameterError("inclusion", "a probability above 0")

    def at(self, density: Density, thetas: ArrayLike) -> Floats:
        """Return the cost of each threshold. Cost: O(size + thetas · log size)."""
        theta = np.asarray(thetas, np.int64)
        r, share = float(self.horizon), self.inclusion
        half, weight = (1.0, 24) if self.published else (0.5, 6)
        noise = self.unit_variance * ((theta - self.low) * half) ** 2 / share
        missed = (1 - share) / share * mean_square(density, theta)
        cost: Floats = r / 3 * (noise + missed) + r * r / weight * bias(density, theta) ** 2
        return cost


@taking(density=DENSITY)
def choose_threshold(  # noqa: PLR0913 (the arguments of one formula)
    density: Density,
    unit_variance: float,
    horizon: int,
    *,
    low: int = 0,
    inclusion: float = 1,
    published: bool = False,
) -> Threshold:
    """Return the integer θ of least cost: first over the bucket edges, then between them.

    Prune the density first: a spurious tail raises θ. low < θ ≤ the density's largest value.
    See Cost for the arguments. Cost: O(size). Raises ParameterError.
    """
    _check_buckets(density)
    cost = Cost(unit_variance, horizon, low, inclusion, published)
    top = int(density.edges[-1]) - 1
    if not low < top:  # NaN, too
        raise ParameterError("low", "below the density's largest value")
    edges = density.edges.astype(np.int64)
    seen = np.unique(np.clip(edges, low + 1, top))
    costs = cost.at(density, seen)
    while True:
        best = int(np.argmin(costs))
        left, right = seen[max(best - 1, 0)], seen[min(best + 1, len(seen) - 1)]
        fresh = np.setdiff1d(np.linspace(left, right, _GRID).astype(np.int64), seen)
        if not len(fresh):
            break
        seen, order = np.unique(np.concatenate([seen, fresh]), return_index=True)
        costs = np.concatenate([costs, cost.at(density, fresh)])[order]
    theta = seen[best]
    return Threshold(int(theta), float(bias(density, theta[None])[0]), seen, costs)


@taking(density=DENSITY, below=chance, run=integer_in(least=1))
def prune(density: Density, *, below: float = PRUNE_BELOW, run: int = PRUNE_RUN) -> Density:
    """Return the density without its spurious tail, renormalised by a factor.

    The tail starts with the first `run` consecutive estimates under `below` above the mode; no
    such run, no change. Looked for above the mode only: from the left, an empty low end would
    erase everything. A true tail thinner than `below` in each bucket goes too: on real homes 10⁻⁵
    keeps it and still frees POS of its spurious one (docs/results.md).
    Source: [ToPS] §4.1 (SW-W) as read in docs/methods.md, Decided readings. Raises ParameterError.
    """
    starts = empty_runs(density.probabilities, below, run)
    return cut_off(density, int(starts[0])) if len(starts) else density


def empty_runs(mass: Floats, below: float, run: int) -> Ints:
    """Return where the runs of `run` or more estimates under `below` start, above the mode."""
    mode = int(np.argmax(mass))
    small = np.concatenate([[0], np.cumsum(mass[mode + 1 :] < below)])
    empty = small[run:] - small[:-run] == run
    starts: Ints = mode + 1 + np.flatnonzero(empty & ~np.append(False, empty)[:-1])
    return starts


def cut_off(density: Density, start: int) -> Density:
    """Return the density without its buckets from `start` on, renormalised by a factor."""
    kept = density.probabilities.copy()
    kept[start:] = 0
    kept /= kept.sum()
    kept.setflags(write=False)
    return replace(density, probabilities=kept)


@taking(density=DENSITY, thetas=ints)
def bias(density: Density, thetas: ArrayLike) -> Floats:
    """Return b̂(θ) = Σ_{t>θ} f_t·(t − θ), what truncation at each integer θ takes off the mean."""
    _check_buckets(density)
    theta = np.asarray(thetas, np.int64)
    f, edges = density.probabilities, density.edges
    k = _bucket(edges, theta)
    mass = _suffix(f)[k + 1]
    first = _suffix(f * density.centres)[k + 1]
    above = np.clip(edges[k + 1] - 1 - theta, 0, edges[k + 1] - edges[k])  # its integers above θ
    inside = f[k] * above * (above + 1) / 2 / (edges[k + 1] - edges[k])
    cut: Floats = np.where(theta < edges[0], density.mean() - theta, first - theta * mass + inside)
    return cut


@taking(density=DENSITY, thetas=ints)
def mean_square(density: Density, thetas: ArrayLike) -> Floats:
    """Return E(min(value, θ)²) for each integer θ, unit²."""
    theta = np.asarray(thetas, np.int64)
    f, edges = density.probabilities, density.edges
    width = edges[1:] - edges[:-1]
    whole = np.concatenate([[0.0], np.cumsum(f * _squares(edges[:-1], width) / width)])
    k = _bucket(edges, theta)
    kept = np.clip(theta + 1 - edges[k], 0, width[k])  # its integers up to θ
    inside = f[k] / width[k] * (_squares(edges[k], kept) + (width[k] - kept) * theta**2.0)
    above = _suffix(f)[k + 1]
    square: Floats = whole[k] + inside + above * theta**2.0
    return square


def _check_buckets(density: Density) -> None:
    if density.lattice or max(-density.edges[0], density.edges[-1]) > MAX_EXACT:
        raise ParameterError(
            "density", "buckets over the whole range, from survey reports, within 2**53"
        )
    if not np.isfinite(density.probabilities).all() or density.probabilities.min() < 0:
        raise ParameterError("density", "finite probabilities of at least 0")


def _bucket(edges: Floats, theta: Ints) -> Ints:
    return np.clip(np.searchsorted(edges, theta, side="right") - 1, 0, len(edges) - 2)


def _suffix(x: Floats) -> Floats:
    """Return Σ_{k ≥ i} x_k for i = 0..len(x)."""
    return np.concatenate([np.cumsum(x[::-1])[::-1], [0.0]])


def _squares(start: Floats, count: Floats) -> Floats:
    """Return Σ t² over the `count` integers from `start` on."""
    sums = count * (count - 1) / 2
    squares: Floats = start * start * count + 2 * start * sums + sums * (2 * count - 1) / 3
    return squares
