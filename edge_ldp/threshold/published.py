"""Choosing θ, the truncation threshold of stream reports, from an estimated density.

A high θ adds noise to every report, a low one cuts the tail off: θ minimises the expected squared
error of a random range sum over r values. Sources: [ToPS] §4.1 (eq 8), docs/design.md, The
threshold, docs/methods.md, Decided readings.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from edge_ldp import checks
from edge_ldp.arrays import Floats, Ints
from edge_ldp.device.errors import ParameterError
from edge_ldp.estimate import Density
from edge_ldp.estimate.density import bias, check_buckets, cut_off, empty_runs, mean_square

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


@checks.taking(
    unit_variance=checks.finite(0, 1e100, inner=True),
    horizon=checks.kept(checks.finite(1, 1e100)),
    low=checks.COUNTABLE,
    inclusion=checks.chance,
    published=checks.TRUTH,
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


@checks.taking(density=checks.DENSITY)
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
    check_buckets(density)
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


@checks.taking(density=checks.DENSITY, below=checks.chance, run=checks.integer_in(least=1))
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
