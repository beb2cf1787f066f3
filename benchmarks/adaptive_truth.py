"""What every θ really costs under a law, by the papers' cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from aggregator.estimate.joint import Evidence, view_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from aggregator.adaptive import Aim
    from edge_ldp import Mechanism

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """A law over the integers low..low + len(law) − 1, and what every θ > low costs under it.

    `bias` is that of each θ, `weight` what its square costs.
    """

    law: Floats
    low: int
    costs: Floats
    bias: Floats
    weight: float

    def ratio(self, theta: int, correction: float = 0.0) -> float:
        """Return the cost of θ, its sums corrected, over the least cost without correction."""
        at = min(theta - self.low, len(self.costs)) - 1
        left = (self.bias[at] - correction) ** 2 - self.bias[at] ** 2
        return float((self.costs[at] + self.weight * left) / self.costs.min())

    def counts(self, mechanism: Mechanism, reports: int, rng: np.random.Generator) -> Evidence:
        """Return the counts of independent reports, drawn from the exact law of the codes."""
        edges = np.arange(self.low, self.low + len(self.law) + 1)
        law = view_of(mechanism, edges).apply(self.law)
        return Evidence(mechanism, rng.multinomial(reports, law / law.sum()))

    def scaled(self, factor: int, aim: Aim) -> Truth:
        """Return the truth with all values `factor` times as large, clamped to the ceiling."""
        law = np.zeros_like(self.law)
        np.add.at(law, np.minimum(np.arange(len(law)) * factor, len(law) - 1), self.law)
        return truth(law, aim, self.low)


def truth(law: Floats, aim: Aim, low: int = 0) -> Truth:
    """Return the costs of θ = low + 1, low + 2, …, exactly (DESIGN §7)."""
    at = np.arange(len(law)) + float(low)
    above = np.append(np.cumsum(law[::-1])[::-1][1:], 0)  # share of the values above each
    bias = np.cumsum(above[::-1])[::-1]
    square = np.cumsum(law * at * at) + above * at * at
    r, share = float(aim.horizon), aim.inclusion
    noise = aim.unit_variance * ((at - low) / 2) ** 2 / share + (1 - share) / share * square
    costs = r / 3 * noise + r * r / 6 * bias**2
    return Truth(law, low, costs[1:], bias[1:], r * r / 6)
