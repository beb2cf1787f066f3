"""A law below a ceiling: counts of reports drawn from it, and what every θ prints and costs there.

What is printed is the half-width of hour of day over 28 days of 400 homes, forecast as
`edge_ldp.threshold.choice` does, but from the law itself: its tails, the noise of its own surveys,
and the variance that the stream mechanism has at its values. Surveys always span the whole range.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp import Hybrid, ParameterError, SquareWave, Tuned
from edge_ldp.estimate.joint import view_of
from edge_ldp.sums import Question, design_of, half_width, tail_sds
from edge_ldp.sums.forecast import SHARES
from edge_ldp.threshold.choice import Aim, candidates

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from edge_ldp import Mechanism

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

QUESTION = Question(1.08e6, 24)
LONGEST = 2**20  # values in the longest query, r of the papers' cost
POINTS = 257  # of a mechanism's variance by input


def stream(epsilon: float, theta: int) -> Mechanism:
    """Return the stream mechanism: the ready table where there is one for this ε."""
    try:
        return Tuned(epsilon=epsilon, low=0, high=theta)
    except ParameterError:
        return Hybrid(epsilon=epsilon, low=0, high=theta)


@lru_cache(maxsize=8)
def ready_profile(epsilon: float) -> Floats:
    """Return the stream mechanism's variance on [−1, 1] at equally spaced inputs."""
    return profile(stream(epsilon, 1 << 14))


def profile(mechanism: Mechanism) -> Floats:
    """Return the variance on [−1, 1] at equally spaced inputs."""
    span = mechanism.high - mechanism.low
    values = mechanism.low + np.linspace(0, span, POINTS).round().astype(int)
    return np.array([mechanism.variance(v) / (span / 2) ** 2 for v in values.tolist()])


class World:
    """A law over 0, 1, … and the ceiling that its stream is configured with."""

    def __init__(self, law: Floats, ceiling: int, epsilon: float) -> None:
        """`law`: a histogram over 0..len(law) − 1 ≤ ceiling; `epsilon`: of every report."""
        self.values = np.flatnonzero(law)
        self.masses: Floats = law[self.values] / law.sum()
        self.ceiling, self.epsilon = ceiling, epsilon
        size = min(1024, ceiling + 1)
        self.survey = SquareWave(epsilon=epsilon, low=0, high=ceiling, size=size)
        self.unit_variance = stream(epsilon, 1 << 14).unit_variance
        self.aim = Aim(0, ceiling, self.unit_variance, self.survey, QUESTION)
        self._codes: dict[Mechanism, Floats] = {}
        finer = np.geomspace(1, self.values[-1], 300).round().astype(np.int64)
        self.thetas = np.union1d(finer, candidates(0, ceiling))
        self.least_half = float(self.halves(self.thetas).min())
        self.least_cost = float(self.costs(self.thetas).min())

    def counts(self, mechanism: Mechanism, reports: int, rng: np.random.Generator) -> Floats:
        """Return the counts of independent reports, drawn from the exact law of the codes."""
        if mechanism not in self._codes:
            ends = np.array([0, self.ceiling + 1])
            edges = np.unique(np.concatenate([self.values, self.values + 1, ends]))
            masses = np.zeros(len(edges) - 1)
            masses[np.searchsorted(edges, self.values)] = self.masses
            law = view_of(mechanism, edges).apply(masses)
            self._codes[mechanism] = law / law.sum()
        return rng.multinomial(reports, self._codes[mechanism]).astype(np.float64)

    def tails(self, thetas: ArrayLike) -> Floats:
        """Return E(v − θ)⁺ of each θ."""
        over = [np.maximum(self.values - theta, 0) @ self.masses for theta in np.atleast_1d(thetas)]
        return np.array(over)

    def halves(self, thetas: Ints, table: Floats | None = None) -> Floats:
        """Return the half-widths that are printed, thetas × SHARES; `table`: a `profile`."""
        by_input = ready_profile(self.epsilon) if table is None else table
        at = np.linspace(0, 1, POINTS)
        edges = design_of(self.survey).edges
        cells = np.searchsorted(edges, self.values, side="right") - 1
        masses = np.bincount(cells, self.masses, len(edges) - 1).astype(np.float64)
        found = np.empty((len(thetas), len(SHARES)))
        tails, sds = self.tails(thetas), tail_sds(self.survey, thetas.tolist(), masses)
        for row, theta in enumerate(thetas.tolist()):
            kept = np.minimum(self.values, theta)
            unit = float(np.interp(kept / theta, at, by_input) @ self.masses)
            variance = max(0.0, float(kept**2.0 @ self.masses - (kept @ self.masses) ** 2))
            for of, share in enumerate(SHARES):
                found[row, of] = half_width(
                    QUESTION,
                    unit_variance=unit,
                    span=theta,
                    share=share,
                    tail_sd=float(sds[row]),
                    tail=float(tails[row]),
                    variance=variance,
                ).half
        return found

    def printed(self, theta: int, share: float | None = None, table: Floats | None = None) -> float:
        """Return the half-width of a θ, with its best share unless one is given, over the least."""
        halves = self.halves(np.array([theta]), table)[0]
        half = halves.min() if share is None else halves[SHARES.index(share)]
        return float(half / self.least_half)

    def costs(self, thetas: ArrayLike, added: float = 0.0) -> Floats:
        """Return the papers' cost of a range sum to which `added` is added back a value."""
        noise = LONGEST / 3 * self.unit_variance * (np.atleast_1d(thetas) / 2) ** 2
        cost: Floats = noise + LONGEST**2 / 6 * (self.tails(thetas) - added) ** 2
        return cost

    def papers(self, theta: int, added: float = 0.0) -> float:
        """Return the papers' cost of a θ over the least without correction."""
        return float(self.costs(theta, added)[0]) / self.least_cost
