"""θ from a posterior: the one whose cost is expected nearest to the best possible.

Each draw of the density has its own best θ and least cost. A θ's regret under a draw is the
logarithm of its cost over that least cost: twice the best error is as bad at any level. θ minimises
the expected square root of the regret, which goes with the distance from the draw's best θ. A cost
itself has no useful expectation here: a few draws with heavy tails would own it, and push θ up.
Where the draws are of two readings of the reports (`posterior`), the regret itself is taken: its
minimum lies between the two, that of its square root at one of them.
Source: DESIGN §7 (cost); METHODS §3 (choose by the estimated cost's own uncertainty).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from aggregator.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

PER_CELL = 8  # thresholds: a cell is narrow where the density is, so they lie 1 % apart or nearer


@dataclass(frozen=True, slots=True)
class Aim:
    """What the sums are for (DESIGN §7).

    `unit_variance`: V of the stream mechanism on [−1, 1]; `horizon`: r, longest query in values;
    `inclusion`: π, probability that a slot gives a stream report. `profile`: V at equally spaced
    inputs from −1 to 1 where it depends on the input (`aggregator.adaptive.mechanism`); it then
    counts as expected under each draw of the density. Empty: `unit_variance` everywhere.
    """

    unit_variance: float
    horizon: int
    inclusion: float = 1.0
    profile: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not (isfinite(self.unit_variance) and self.unit_variance > 0):
            raise ArgumentError("unit_variance", "a finite number above 0")
        if not (isfinite(self.horizon) and self.horizon >= 1):
            raise ArgumentError("horizon", "at least 1 value")
        if not 0 < self.inclusion <= 1:
            raise ArgumentError("inclusion", "a probability above 0")
        if len(self.profile) == 1 or not all(isfinite(v) and v > 0 for v in self.profile):
            raise ArgumentError("profile", "at least 2 finite numbers above 0, or none")


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """The cost of every candidate θ as a function of the cells' masses: two small matrices.

    `cut` @ masses = bias of each θ; `square` @ masses = E(min(value, θ)²); `spread` @ masses =
    expected variance over the one that `noise` counts with (None: equal).
    """

    thetas: Ints
    cut: Floats
    square: Floats
    noise: Floats
    weights: tuple[float, float]  # of E(x̂²) and of bias²
    spread: Floats | None = None

    def of(self, masses: Floats) -> Floats:
        """Return the expected squared error of a range sum, unit²: thetas × columns of masses."""
        cost: Floats = self.scatter(masses) + self.weights[1] * (self.cut @ masses) ** 2
        return cost

    def scatter(self, masses: Floats) -> Floats:
        """Return the part of `of` that does not come from truncation, same shape."""
        noise = self.noise if masses.ndim == 1 else self.noise[:, None]
        if self.spread is not None:
            noise = noise * (self.spread @ masses)
        missed = self.weights[0]
        return noise + missed * (self.square @ masses) if missed else noise + 0 * masses[0]

    def best(self, masses: Floats) -> Ints:
        """Return the θ of least cost of each column."""
        best: Ints = self.thetas[self.of(masses).argmin(axis=0)]
        return best

    def good(self, masses: Floats, factor: float) -> Flags:
        """Return which θ cost at most `factor` times the least under one law."""
        costs = self.of(masses)
        return np.asarray(costs <= factor * costs.min())

    def choose(self, samples: Floats, *, between: bool = False) -> tuple[int, float]:
        """Return θ and its expected regret, E ln(cost / least cost) over the columns.

        `between`: by the expected regret itself, not its square root.
        """
        costs = self.of(samples)
        regrets = np.log(costs / costs.min(axis=0))
        at = int((regrets if between else np.sqrt(regrets)).mean(axis=1).argmin())
        return int(self.thetas[at]), float(regrets[at].mean())


def costs_on(edges: Ints, aim: Aim) -> Costs:
    """Return the costs of 8 thresholds a cell over (low, high], low = edges[0], high the last."""
    low, high = int(edges[0]), int(edges[-1]) - 1
    parts = np.linspace(edges[:-1], edges[1:], PER_CELL, endpoint=False).round()
    thetas = np.unique(np.append(np.clip(parts, low + 1, high), high)).astype(np.int64)
    theta, start, width = thetas[:, None].astype(np.float64), edges[:-1], np.diff(edges)
    above = np.clip(edges[1:] - 1 - theta, 0, width)  # a cell's integers above θ
    first = np.maximum(start, theta + 1)
    cut = above * ((first + edges[1:] - 1) / 2 - theta) / width
    square = (_squares(start.astype(np.float64), width - above) + above * theta**2) / width
    r, share = float(aim.horizon), aim.inclusion
    noise = r / 3 * aim.unit_variance * ((thetas - low) / 2) ** 2 / share
    weights = (r / 3 * (1 - share) / share, r * r / 6)
    spread = _spread(aim, edges, theta - low) if aim.profile else None
    return Costs(thetas, cut, square, noise, weights, spread)


def _spread(aim: Aim, edges: Ints, span: Floats) -> Floats:
    """Return the mean of V(truncated value) over each cell, over `unit_variance`: thetas × cells.

    Along the line through the profile; a cell's integers stand for the real values around them.
    """
    at = np.linspace(0, 1, len(aim.profile))
    line = np.array(aim.profile) / aim.unit_variance
    area = np.concatenate([[0.0], np.cumsum((line[1:] + line[:-1]) / 2 * np.diff(at))])
    starts = (edges - edges[0] - 0.5) / span  # thetas × edges, as shares of [low, θ]
    below = np.interp(np.clip(starts, 0, 1), at, area)
    beyond = np.maximum(starts - 1, 0) * line[-1] + np.minimum(starts, 0) * line[0]
    spread: Floats = np.diff(below + beyond, axis=1) / np.diff(starts, axis=1)
    return spread


def _squares(start: Floats, count: Floats) -> Floats:
    """Return Σ t² over the `count` integers from `start` on."""
    sums = count * (count - 1) / 2
    squares: Floats = start * start * count + 2 * start * sums + sums * (2 * count - 1) / 3
    return squares
